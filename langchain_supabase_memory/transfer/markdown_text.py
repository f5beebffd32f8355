"""What somebody said as Markdown: it reads as it was written, and cannot leave its quote.

Emphasis, lists, tables, links and code stay. Headings, HTML, images and definitions of links are escaped: they would
change the page around them, or load something when it is opened. Fences are written anew, so that none stays open.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.language.messages.invisible import legible, spell_out

if TYPE_CHECKING:
    from collections.abc import Iterator

_FENCE: Final = re.compile(r" {0,3}(?P<fence>`{3,}(?=[^`]*$)|~{3,})(?P<info>.*)")
# A definition of a link begins a line; its name may go on in the next one.
_CONTAINERS: Final = r"(?P<before>(?:[ \t>]|[-*+][ \t]|\d{1,9}[.)][ \t])*)"
_HEADING: Final = re.compile(_CONTAINERS + r"(?=#{1,6}(?:[ \t]|$)|(?:=+|-+)[ \t]*$|\[(?![^\[\]\\]*\](?!:)))")
_RUN: Final = re.compile("`+")
_LANGUAGE: Final = re.compile(r"[\w+#.-]{1,30}")
_INFORMATION: Final = "text"
_PUNCTUATION: Final = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_LIST: Final = re.compile(r"^(\d{0,9})([-+.)=])(?=\s|$|[-=])")
_LINK: Final = re.compile(r"\]\((?!https?://|mailto:)")


def quoted(text: str) -> str:
    """Return a text of several lines as a quote.

    Args:
        text: The text, which may be Markdown of anybody's.
    """
    return "\n".join(f"> {line}" if line else ">" for line in _lines(legible(text).strip("\n")))


def code_block(text: str, language: str = _INFORMATION) -> str:
    """Return a text as a block of code, with a fence that nothing in it can close.

    Args:
        text: The text.
        language: The language of the code; letters and digits.
    """
    content = legible(text).strip("\n")
    fence = "`" * max(3, 1 + max(map(len, _RUN.findall(content)), default=0))
    return f"{fence}{language}\n{content}\n{fence}"


def code_span(text: str) -> str:
    """Return a text as code within a line, however many backticks it contains."""
    content = spell_out(" ".join(text.split()))
    longest = max(map(len, _RUN.findall(content)), default=0)
    fence, room = "`" * (longest + 1), " " if longest else ""
    return f"{fence}{room}{content}{room}{fence}"


def plain_line(text: str) -> str:
    """Return a text as one line without markup."""
    line = re.sub(r"([\\`*_{}\[\]<>#|])", r"\\\1", spell_out(" ".join(text.split())))
    return _LIST.sub(r"\1\\\2", line, count=1)


def _lines(text: str) -> Iterator[str]:
    """Yield the lines of a quote."""
    lines = text.split("\n")
    place = 0
    while place < len(lines):
        opened = _FENCE.fullmatch(lines[place])
        if opened is None:
            yield _with_break(lines, place)
            place += 1
            continue
        end = _end_of_fence(lines, place, opened["fence"])
        language = _LANGUAGE.match(opened["info"].strip())
        # It begins its line, so that no list can hold it, and end it by ending.
        yield from code_block("\n".join(lines[place + 1 : end]), language[0] if language else "").split("\n")
        place = end + 1


def _end_of_fence(lines: list[str], place: int, fence: str) -> int:
    """Return the place of the line that closes a fence, or of the end."""
    closing = re.compile(rf" {{0,3}}{re.escape(fence[0])}{{{len(fence)},}}[ \t]*")
    return next((at for at in range(place + 1, len(lines)) if closing.fullmatch(lines[at])), len(lines))


def _with_break(lines: list[str], place: int) -> str:
    """Return a line outside of code; two blanks at its end keep the line break that somebody typed."""
    line = _escaped(lines[place].rstrip())
    following = lines[place + 1] if place + 1 < len(lines) else ""
    return f"{line}  " if line and following.strip() and not _FENCE.fullmatch(following) else line


def _escaped(line: str) -> str:
    """Escape what would be a heading, HTML, an image or a definition of a link."""
    heading = _HEADING.match(line)
    before = heading["before"] if heading else ""
    return before + ("\\" if heading else "") + _LINK.sub(r"]\\(", _inline(line[len(before) :]).replace("![", "!\\["))


def _inline(line: str) -> str:
    """Escape HTML outside of code spans, and backticks that begin none within the line."""
    parts = []
    place = 0
    while place < len(line):
        character = line[place]
        if character == "\\" and line[place + 1 : place + 2] in _PUNCTUATION and place + 1 < len(line):
            parts.append("&lt;" if line[place + 1] == "<" else line[place : place + 2])
            place += 2
        elif character == "`":
            run = _RUN.match(line, place)
            assert run is not None
            closing = next((each for each in _RUN.finditer(line, run.end()) if each[0] == run[0]), None)
            end = run.end() if closing is None else closing.end()
            span = line[place:end]
            if closing is None:
                span = span.replace("`", "\\`")
            elif "|" in span:  # a table cuts a code span at it
                span = span.replace("<", "&lt;")
            parts.append(span)
            place = end
        else:
            parts.append("&lt;" if character == "<" else character)
            place += 1
    return "".join(parts)
