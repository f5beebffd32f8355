"""A local, approximate token count of text, for budgets and reports. It never raises and asks no network.

The weights were fitted to o200k, the vocabulary of current OpenAI models, and lean to the high side: a budget that is
not quite used is better than one that is broken.
"""

from __future__ import annotations

import re
from typing import Final

MEDIA_TOKENS: Final = 800
"""The tokens assumed for one image or file: between a small and a large tile count of current models."""

MESSAGE_TOKENS: Final = 4
"""The tokens of role and separators that each message adds."""

# Words and spaces of ASCII come at about four characters a token; digits and punctuation at about two; other
# alphabets (Cyrillic, Greek, Arabic, accented Latin) at about two; everything beyond, CJK and emoji, at one or more.
_DENSE: Final = re.compile(r"[0-9!-/:-@\[-`{-~\n\t]")
_ALPHABETIC: Final = re.compile(r"[\u0080-\u0dff]")


def count_tokens(text: str) -> int:
    """Estimate the tokens of a text.

    Args:
        text: Any string.

    Returns:
        The estimate; 0 for the empty string, else at least 1.
    """
    dense = len(_DENSE.findall(text))
    if text.isascii():
        plain, alphabetic, wide = len(text) - dense, 0, 0
    else:
        beyond = sum(1 for character in text if character > "\x7f")
        alphabetic = len(_ALPHABETIC.findall(text))
        plain, wide = len(text) - dense - beyond, beyond - alphabetic
    return -(-(plain * 5 + dense * 10 + alphabetic * 10 + wide * 22) // 20)
