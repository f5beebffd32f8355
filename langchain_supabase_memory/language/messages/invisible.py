"""What is not seen of a text, or breaks its layout: control characters, marks of direction, fillers, hidden tags.

Such a character is one of Unicode's categories Cc (but for tab and line feed), Cf, Cs, Zl and Zp, or it has the
property Default_Ignorable_Code_Point (DerivedCoreProperties.txt), or it is a blank that counts as a letter or a symbol.
The numeral signs that stand over the digits after them (Prepended_Concatenation_Mark) are of Cf, and seen.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

# Categories come from `unicodedata`, which knows no properties. Code points that are reserved for this one are in it.
_IGNORABLE: Final = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_BLANK: Final = frozenset("\u2800\u3164\uffa0\U00016fe4\U0001d159")
"""Blanks of Braille, Hangul, Khitan and music: as wide as a letter."""

_PREPENDED: Final = frozenset("\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd")
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_BREAKS: Final = frozenset("\r\x85\u2028\u2029")
_NO_CHARACTERS: Final = frozenset("\ufffe\uffff")  # which XML has no place for

_PLAIN: Final = re.compile(r"[\t\n\x20-\x7e]*")
_NON_JOINER, _JOINER, _AS_TEXT, _AS_EMOJI, _KEYCAP = "\u200c", "\u200d", "\ufe0e", "\ufe0f", "\u20e3"
_FLAGS: Final = "|".join(
    "".join(chr(0xE0000 + ord(letter)) for letter in region) + "\U000e007f" for region in ("gbeng", "gbsct", "gbwls")
)
_SHAPING: Final = re.compile(f"(?<=\U0001f3f4)(?:{_FLAGS})|[{_NON_JOINER}{_JOINER}{_AS_TEXT}{_AS_EMOJI}]")
_EMOJI: Final = re.compile(
    "[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u27bf\u2900-\u297f\u2b00-\u2bff\u3030\u303d\u3297\u3299"
    "\U0001f000-\U0001faff]"
)
# Arabic, Syriac, Thaana, N'Ko, Mandaic; the scripts of India and of the south-east that have a virama.
_JOINED: Final = re.compile(
    "[\u0620-\u08ff\u0900-\u0dff\u1000-\u109f\u1780-\u17ff\u1820-\u18aa\u1a20-\u1aad\u1b00-\u1bff\ua800-\ua8ff\ua980-\uaa7f"
    "\uaae0-\uaaff\uabc0-\uabff\ufb50-\ufdff\ufe70-\ufefe\U00010a00-\U00010a5f\U00011000-\U00011fff]"
)
_VIRAMA: Final = 9
"""The combining class of the sign that takes a consonant's vowel."""

_MOST_KNOWN: Final = 20_000


def is_invisible(character: str) -> bool:
    """Whether a character is not seen, or breaks the layout of a line.

    Args:
        character: One character. Tab and line feed are taken as seen.
    """
    if character in "\t\n" or character in _PREPENDED:
        return False
    if character in _BLANK or unicodedata.category(character) in _UNSEEN:
        return True
    return _IGNORABLE.match(character) is not None


def visible(text: str) -> str:
    """A text of which everything is seen.

    What is not seen is left out, and cannot hide another text between two letters. Line ends of every kind become line
    feeds; control characters and blanks that pass for letters become spaces. What shapes visible text stays: joiners
    within emoji, and between letters of scripts that need them, a sign after an emoji that says how it is drawn.
    """
    return text if _PLAIN.fullmatch(text) else _shaped(text.replace("\r\n", "\n"), _SEEN)


def legible(text: str) -> str:
    r"""A text of several lines for a person at a terminal: what shapes visible text stays, as for `seen`.

    What else is not seen is written as its code, such as `\u202e`, so that it is neither obeyed nor overlooked.
    """
    return text if _PLAIN.fullmatch(text) else _shaped(text.replace("\r\n", "\n"), _LEGIBLE)


def _shaped(text: str, table: _VisibleTable) -> str:
    """The text by a table, but for what shapes what is seen."""
    made: list[str] = []
    start = 0
    for found in _SHAPING.finditer(text):
        if len(found[0]) > 1 or _shapes(text, found.start()):
            made += [text[start : found.start()].translate(table), found[0]]
            start = found.end()
    return "".join([*made, text[start:].translate(table)])


def spell_out(text: str) -> str:
    r"""A text for one line: what is not seen is written as its code, such as `\u202e`.

    What shapes visible text stays, as for `seen`: joiners within emoji and between letters that need them.
    """
    return _shaped(text, _SPELLED)


def spell_out_lines(text: str) -> str:
    """The same for a text of several lines, which stay."""
    return "\n".join(map(spell_out, text.split("\n")))


def _shapes(text: str, index: int) -> bool:
    """Whether a joiner or a variation selector has an effect on what is beside it that is seen."""
    mark, before, after = text[index], text[index - 1 : index], text[index + 1 : index + 2]
    if not before:
        return False
    if mark in (_AS_TEXT, _AS_EMOJI):
        return _is_emoji(before) or (mark == _AS_EMOJI and before in "0123456789#*" and after == _KEYCAP)
    if mark == _JOINER and _is_emoji(after):
        return _is_emoji(text[index - 2 : index - 1] if before == _AS_EMOJI else before)
    return _is_joined(before) and (_is_joined(after) or unicodedata.combining(before) == _VIRAMA)


def _is_emoji(character: str) -> bool:
    return _EMOJI.fullmatch(character) is not None


def _is_joined(character: str) -> bool:
    """Whether it is a letter, or a sign on one, of a script that has use for joiners."""
    return (
        _JOINED.fullmatch(character) is not None
        and unicodedata.category(character)[0] in "LM"
        and not is_invisible(character)
    )


class _VisibleTable(dict[int, int | str]):
    """What stands for each character where everything is to be seen, as it is asked for."""

    def __missing__(self, code: int) -> int | str:
        if len(self) > _MOST_KNOWN:
            self.clear()
        made = self[code] = self._replacement(chr(code))
        return made

    def _replacement(self, character: str) -> int | str:
        if character in _NO_CHARACTERS or unicodedata.category(character) == "Cs":
            return "\ufffd"
        if not is_invisible(character):
            return ord(character)
        if character in _BREAKS:
            return "\n"
        return " " if character in _BLANK or unicodedata.category(character) == "Cc" else ""


class _SpelledTable(_VisibleTable):
    """What is written for each character on a terminal."""

    def _replacement(self, character: str) -> int | str:
        code = ord(character)
        if character not in "\t\n" and not is_invisible(character):
            return code
        return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


class _LegibleTable(_SpelledTable):
    """The same for a text of several lines, with tabs."""

    def _replacement(self, character: str) -> int | str:
        return ord(character) if character in "\t\n" else super()._replacement(character)


_SEEN: Final = _VisibleTable()
_SPELLED: Final = _SpelledTable()
_LEGIBLE: Final = _LegibleTable()
