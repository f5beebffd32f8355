"""A local, approximate token count of text, for budgets and reports. It never raises and uses no network.

The weights are fitted to o200k, the vocabulary of current OpenAI models, and overestimate: an underused budget is
better than an exceeded one. `tests/language/test_tokens.py` compares them with that vocabulary.
"""

from __future__ import annotations

import hashlib
import os
import re
import string
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

MEDIA_TOKENS: Final = 800
"""The tokens assumed for one image or file: between a small and a large tile count of current models."""

MESSAGE_TOKENS: Final = 4
"""The tokens that each message adds for its role and separators."""

# In twentieths of a token, by a character's first UTF-8 byte; continuation bytes weigh nothing. Letters weigh more if
# they are frequent where words split into more tokens: a, g, k and n in languages that the vocabulary covers less; j,
# q, x and z in text without a language, such as base64.
_PLAIN, _DIGIT, _DENSE, _ODD = 4, 7, 9, 24
_ASCII: Final = (
    ((string.digits + "agkn").encode(), _DIGIT),
    ((string.ascii_uppercase + string.punctuation + "\n\t").encode(), _DENSE),
    (b"jqxz", _ODD),
)
# Two-byte alphabets; Asia and Georgia; symbols; CJK; private use and full width; emoji.
_BEYOND: Final = ((0xC0, 10), (0xE0, 14), (0xE2, 30), (0xE3, 20), (0xEE, 40), (0xF0, 60))
_WEIGHTS: Final = bytes(
    [next((weight for bytes_, weight in _ASCII if byte in bytes_), _PLAIN) for byte in range(0x80)]
    + [[0, *(weight for first, weight in _BEYOND if first <= byte)][-1] for byte in range(0x80, 0x100)]
)
# Scripts that share a first byte with others: the scripts of India take fewer tokens; those that vocabularies rarely
# cover (Ethiopic, Lao, Tibetan, Cherokee, Mongolian, Yi, ...) are split into single bytes.
_INDIC: Final = re.compile(r"[\u0900-\u0d7f]")
_RARE: Final = re.compile(r"[\u0800-\u08ff\u0e80-\u0fff\u1100-\u177f\u1800-\u1dff\ua000-\uabff]")
_INDIC_LESS, _RARE_MORE = 4, 46
# A run of digits or punctuation costs more than its characters, and so does a capital after a lowercase letter. All
# three are found at once, as bits of one number, since `bytes.count` is slow for two bytes.
_RUN_OF_DIGITS, _RUN_OF_PUNCTUATION, _CAPITAL = 27, 8, 12
_DIGIT_BIT, _PUNCTUATION_BIT, _SMALL_BIT, _CAPITAL_BIT = 1, 4, 16, 32
_BITS: Final = {
    **dict.fromkeys(string.digits.encode(), _DIGIT_BIT),
    **dict.fromkeys((string.punctuation + "\n\t").encode(), _PUNCTUATION_BIT),
    **dict.fromkeys(string.ascii_lowercase.encode(), _SMALL_BIT),
    **dict.fromkeys(string.ascii_uppercase.encode(), _CAPITAL_BIT),
}
_KINDS: Final = bytes(_BITS.get(byte, 0) for byte in range(0x100))

_VOCABULARY: Final = "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken"


@cache
def best_counter() -> Callable[[str], int]:
    """Return the best available token counter: `tiktoken` with its vocabulary on disk, else `count_tokens`.

    `tiktoken` never downloads: its own cache folder is checked first, at the path that `tiktoken.load` uses.
    """
    folder = os.environ.get("TIKTOKEN_CACHE_DIR") or os.environ.get("DATA_GYM_CACHE_DIR")
    path = Path(folder or Path(tempfile.gettempdir()) / "data-gym-cache")
    if not (path / hashlib.sha1(_VOCABULARY.encode()).hexdigest()).is_file():
        return count_tokens
    try:
        import tiktoken

        encoding = tiktoken.get_encoding("o200k_base")
    except Exception:  # a missing or broken extra must not fail the call
        return count_tokens
    # Lone surrogates cannot be encoded, and half a million equal letters take minutes: use `count_tokens` for those.
    return lambda text: len(encoding.encode_ordinary(text)) if _ORDINARY.search(text) is None else count_tokens(text)


KEPT: Final = (best_counter,)
"""What is read from files once; see `flow.compute`."""

_ORDINARY: Final = re.compile(r"[\ud800-\udfff]|\S{2000}")


def count_tokens(text: str) -> int:
    """Estimate the tokens of a text.

    Args:
        text: Any string.

    Returns:
        The estimate; 0 for the empty string, else at least 1.
    """
    key = hash(text), len(text)
    known = _KNOWN.get(key)
    if known is None:
        if len(_KNOWN) >= _MOST_KNOWN:
            _KNOWN.clear()
        known = _KNOWN[key] = _count_tokens(text)
    return known


_KNOWN: Final[dict[tuple[int, int], int]] = {}
"""Counts of texts, by a hash that says nothing of their words: each turn counts the same messages."""

_MOST_KNOWN: Final = 20_000


def _count_tokens(text: str) -> int:
    data = text.encode("utf-8", "surrogatepass")
    weights = data.translate(_WEIGHTS)
    total = _PLAIN * len(text) + sum((weight - _PLAIN) * weights.count(weight) for weight in (_DIGIT, _DENSE, _ODD))
    if len(data) > len(text):
        total += sum((weight - _PLAIN) * weights.count(weight) for _, weight in _BEYOND)
        if b"\xe0" in data:
            total -= _INDIC_LESS * len(_INDIC.findall(text))
        if b"\xe0" in data or b"\xe1" in data or b"\xea" in data:
            total += _RARE_MORE * len(_RARE.findall(text))
    kinds = int.from_bytes(data.translate(_KINDS), "little")
    starts = (kinds ^ (kinds & kinds << 8)).to_bytes(len(data), "little")
    total += _RUN_OF_DIGITS * starts.count(_DIGIT_BIT) + _RUN_OF_PUNCTUATION * starts.count(_PUNCTUATION_BIT)
    total += _CAPITAL * (kinds & kinds << 9).bit_count()  # the bit that meets its neighbor
    return -(-total // 20)
