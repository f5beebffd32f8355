"""Find a message's own words: without code, quotations, quoted lines, forwarded mail and what was pasted."""

from __future__ import annotations

import re
from typing import Final

MASK: Final = "\x1a"
"""Stands for each hidden character, so that offsets stay."""

_LONG: Final = 2000  # characters; a longer message is a document with a few own words before and after
_OWN: Final = 400  # characters of a paragraph of own words beside a document
_FENCE: Final = re.compile(r"```[^`]*(?:```|\Z)|`[^`\n]{1,400}`")
_QUOTED_LINE: Final = re.compile(r"^[ \t]*>[^\n]*", re.MULTILINE)
_FORWARDED: Final = re.compile(
    r"^[-_ \t>]{0,20}(?:begin forwarded message|forwarded message|original message|ipinasang mensahe"
    r"|(?:from|mula kay|von|de):[^\n]*\n(?:to|sent|date|subject|para kay|petsa):)",
    re.IGNORECASE | re.MULTILINE,
)
# Every quotation mark is in the leading set: a pattern that begins with a character set is the fastest.
_QUOTATION: Final = re.compile(
    "[\"\u201c\u00ab\u201e'\u2018](?:"
    '(?<=")[^"\n]{0,600}(?:"|$)|(?<=\u201c)[^\u201d\n]{0,600}(?:\u201d|$)|(?<=\u00ab)[^\u00bb\n]{0,600}\u00bb'
    "|(?<=\u201e)[^\u201c\n]{0,600}\u201c|(?<=')(?<!\\w')[^'\n]{2,200}'(?!\\w)"
    "|(?<=\u2018)(?<!\\w\u2018)[^\u2019\n]{2,200}\u2019(?!\\w))",
    re.MULTILINE,
)
_MENTION: Final = 20  # characters; a shorter quotation only names something: call me "Bea"
_PARAGRAPH: Final = re.compile(r"\n[ \t]*\n")


def own_words(text: str) -> str:
    """Return a message of the same length whose foreign parts are masked.

    Hidden are code, quotations of several words, lines that begin with ">", what follows the head of a forwarded mail,
    and of a message of more than 2,000 characters all but its first and last paragraph of at most 400 characters.
    """
    if len(text) > _LONG:
        text = _ends(text)
    if "`" in text:
        text = _FENCE.sub(_masked, text)
    if ">" in text:
        text = _QUOTED_LINE.sub(_masked, text)
    if found := _FORWARDED.search(text):
        text = text[: found.start()] + _hidden(text[found.start() :])
    return _QUOTATION.sub(_masked_quotation, text)


def _hidden(text: str) -> str:
    """Return a mask of a text that keeps its lines."""
    return "\n".join(MASK * len(line) for line in text.split("\n"))


def _masked(match: re.Match[str]) -> str:
    return _hidden(match.group())


def _masked_quotation(match: re.Match[str]) -> str:
    text = match.group()
    return text if len(text) < _MENTION and text.count(" ") < 2 and MASK not in text else _hidden(text)


def _ends(text: str) -> str:
    """Return a document of which all but a short first and last paragraph is hidden."""
    breaks = [found.span() for found in _PARAGRAPH.finditer(text)]
    if not breaks:
        return _hidden(text)
    (first, _), (_, last) = breaks[0], breaks[-1]
    head = text[:first] if first <= _OWN else _hidden(text[:first])
    tail = text[last:] if len(text) - last <= _OWN else _hidden(text[last:])
    return head + _hidden(text[first:last]) + tail
