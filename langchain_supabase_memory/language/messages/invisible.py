"""Remove or spell out characters that are invisible or break the layout: controls, direction marks, fillers, tags.

These are characters of Unicode's categories Cc (except tab and line feed), Cf, Cs, Zl and Zp, characters with the
property Default_Ignorable_Code_Point (DerivedCoreProperties.txt), and blanks that count as letters or symbols. Numeral
signs above the digits that follow them (Prepended_Concatenation_Mark) are in Cf, but visible.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

# `unicodedata` gives categories but not this property. Code points that are reserved for it are included.
_IGNORABLE: Final = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_BLANK: Final = frozenset("\u2800\u3164\uffa0\U00016fe4\U0001d159")
"""Blanks of Braille, Hangul, Khitan and music: as wide as a letter."""

_PREPENDED: Final = frozenset("\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd")
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_BREAKS: Final = frozenset("\r\x85\u2028\u2029")
_NO_CHARACTERS: Final = frozenset("\ufffe\uffff")  # XML does not allow these

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
# Arabic, Syriac, Thaana, N'Ko, Mandaic; the scripts of India and Southeast Asia that have a virama.
_JOINED: Final = re.compile(
    "[\u0620-\u08ff\u0900-\u0dff\u1000-\u109f\u1780-\u17ff\u1820-\u18aa\u1a20-\u1aad\u1b00-\u1bff\ua800-\ua8ff\ua980-\uaa7f"
    "\uaae0-\uaaff\uabc0-\uabff\ufb50-\ufdff\ufe70-\ufefe\U00010a00-\U00010a5f\U00011000-\U00011fff]"
)
_VIRAMA: Final = 9
"""The combining class of the sign that removes a consonant's vowel."""

_MAX_KNOWN: Final = 20_000


def is_invisible(character: str) -> bool:
    """Return whether a character is invisible, or breaks the layout of a line.

    Args:
        character: One character. Tab and line feed count as visible.
    """
    if character in "\t\n" or character in _PREPENDED:
        return False
    if character in _BLANK or unicodedata.category(character) in _UNSEEN:
        return True
    return _IGNORABLE.match(character) is not None


def visible(text: str) -> str:
    """Return a text without invisible characters.

    Invisible characters are removed, so no text can hide between two letters. All line ends become line feeds; control
    characters, and blanks that count as letters, become spaces. Characters that shape visible text stay: joiners within
    emoji and between letters of scripts that need them, and the sign after an emoji that selects how it is drawn.
    """
    return text if _PLAIN.fullmatch(text) else _shaped(text.replace("\r\n", "\n"), _SEEN)


def legible(text: str) -> str:
    r"""Return a text of several lines for a terminal; characters that shape visible text stay, as in `visible`.

    Other invisible characters are written as codes, such as `\u202e`, so that they have no effect and are noticed.
    """
    return text if _PLAIN.fullmatch(text) else _shaped(text.replace("\r\n", "\n"), _LEGIBLE)


def _shaped(text: str, table: _VisibleTable) -> str:
    """Translate the text by a table, except for characters that shape visible text."""
    made: list[str] = []
    start = 0
    for found in _SHAPING.finditer(text):
        if len(found[0]) > 1 or _shapes(text, found.start()):
            made += [text[start : found.start()].translate(table), found[0]]
            start = found.end()
    return "".join([*made, text[start:].translate(table)])


def spell_out(text: str) -> str:
    r"""Return a text for one line, with invisible characters as codes, such as `\u202e`.

    Characters that shape visible text stay, as in `visible`: joiners within emoji and between letters that need them.
    """
    return _shaped(text, _SPELLED)


def spell_out_lines(text: str) -> str:
    """Apply `spell_out` to each line of a text."""
    return "\n".join(map(spell_out, text.split("\n")))


def _shapes(text: str, index: int) -> bool:
    """Return whether a joiner or a variation selector affects an adjacent visible character."""
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
    """Return whether it is a letter, or a mark on one, of a script that uses joiners."""
    return (
        _JOINED.fullmatch(character) is not None
        and unicodedata.category(character)[0] in "LM"
        and not is_invisible(character)
    )


class _VisibleTable(dict[int, int | str]):
    """The replacement of each character in visible text, computed on demand."""

    def __missing__(self, code: int) -> int | str:
        if len(self) > _MAX_KNOWN:
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
    """The replacement of each character on a terminal."""

    def _replacement(self, character: str) -> int | str:
        code = ord(character)
        if character not in "\t\n" and not is_invisible(character):
            return code
        return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


class _LegibleTable(_SpelledTable):
    """The replacement of each character in a text of several lines, with tabs."""

    def _replacement(self, character: str) -> int | str:
        return ord(character) if character in "\t\n" else super()._replacement(character)


_SEEN: Final = _VisibleTable()
_SPELLED: Final = _SpelledTable()
_LEGIBLE: Final = _LegibleTable()
