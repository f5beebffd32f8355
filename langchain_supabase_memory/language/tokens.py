"""A local, approximate token count of text, for budgets and reports. It never raises and asks no network.

The weights were fitted to o200k, the vocabulary of current OpenAI models, and lean to the high side: a budget that is
not quite used is better than one that is broken.
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
"""The tokens of role and separators that each message adds."""

# Words and spaces of ASCII come at about four characters a token; digits and punctuation at about two; other
# alphabets (Cyrillic, Greek, Arabic, accented Latin) at about two; everything beyond, CJK and emoji, at one or more.
# In twentieths of a token, by a character's first byte in UTF-8; the bytes that follow it weigh nothing.
_PLAIN, _DENSE, _WIDE = 5, 10, 22
_DENSE_ASCII: Final = (string.digits + string.punctuation + "\n\t").encode()
_WEIGHTS: Final = bytes(
    [_DENSE if byte in _DENSE_ASCII else _PLAIN for byte in range(0x80)]
    + [0] * (0xC0 - 0x80)
    + [_DENSE] * (0xE0 - 0xC0)
    + [_WIDE] * (0x100 - 0xE0)
)
# Indic alphabets begin with a byte that they share with Thai, Lao and Tibetan, which take more.
_INDIC: Final = re.compile(r"[\u0800-\u0dff]")

_VOCABULARY: Final = "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken"


@cache
def best_counter() -> Callable[[str], int]:
    """The best count of a text's tokens that is here: `tiktoken` with its vocabulary on disk, else `count_tokens`.

    `tiktoken` is never asked to download: its own cache folder is looked at first, as `tiktoken.load` names it.
    """
    folder = os.environ.get("TIKTOKEN_CACHE_DIR") or os.environ.get("DATA_GYM_CACHE_DIR")
    path = Path(folder or Path(tempfile.gettempdir()) / "data-gym-cache")
    if not (path / hashlib.sha1(_VOCABULARY.encode()).hexdigest()).is_file():
        return count_tokens
    try:
        import tiktoken

        encoding = tiktoken.get_encoding("o200k_base")
    except Exception:  # an extra that is absent or broken must not cost the answer
        return count_tokens
    # Lone surrogates cannot be encoded, and half a million equal letters take it minutes: count those ourselves.
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
    data = text.encode("utf-8", "surrogatepass")
    weights = data.translate(_WEIGHTS)
    total = sum(weight * weights.count(weight) for weight in (_PLAIN, _DENSE, _WIDE))
    if b"\xe0" in data:
        total -= (_WIDE - _DENSE) * len(_INDIC.findall(text))
    return -(-total // 20)
