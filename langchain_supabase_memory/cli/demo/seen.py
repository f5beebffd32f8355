"""What a model sees in its prompt, line by line, and where each line is from."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal
from xml.sax.saxutils import unescape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from langchain_core.messages import BaseMessage

Part = Literal["recalled", "passage", "summary", "recent"]
"""Where a line is: recalled into the prompt, found with a tool, in the summary, among the newest messages."""

_PARTS: Final[dict[str, Part]] = {"recalled": "recalled", "passage": "passage", "summary": "summary"}
_FENCED: Final = "<conversation_memory>"
_TAG: Final = re.compile(r"</?(\w+)([^>]*)>")
_MESSAGES: Final = re.compile(r'messages="(\d+)')
_AT: Final = re.compile(r'at="(\d{4}-\d\d-\d\d)')
_DAY: Final = re.compile(r"(\d{4}-\d\d-\d\d):")
_SAID: Final = re.compile(r"\S[^\[\n]* \[(\d+)(?: of [^\]\n]*)?\]: (.*)")
_WORD: Final = re.compile(r"\w+")


@dataclass(frozen=True)
class Line:
    """A line that a model sees.

    Attributes:
        text: The words.
        part: Where it is.
        message: The number of the message that it is from, if the prompt says so.
        day: The day when it was said, if the prompt says so.
    """

    text: str
    part: Part
    message: int | None = None
    day: str | None = None


def lines(messages: Sequence[BaseMessage]) -> list[Line]:
    """The lines of a prompt, without the developer's own and without what fences the memory."""
    return [line for message in messages if message.type != "system" for line in _of(str(message.text)) if line.text]


def _of(text: str) -> Iterator[Line]:
    if not text.startswith(_FENCED):
        yield from (Line(line.strip(), "recent") for line in text.splitlines())
        return
    part: Part | None = None
    message = day = None
    for raw in text.splitlines():
        tag = _TAG.fullmatch(raw)
        if tag is not None:
            name, attributes = tag.groups()
            opens = not raw.startswith("</")
            part = _PARTS.get(name) if opens else None
            number, at = _MESSAGES.search(attributes), _AT.search(attributes)
            message = int(number[1]) if number and part == "passage" else None
            day = at[1] if at and part == "passage" else None
            continue
        dated, said = _DAY.fullmatch(raw), _SAID.fullmatch(raw)
        if part == "recalled" and dated:
            day = dated[1]
        elif part == "recalled" and said:
            message = int(said[1])
            yield Line(unescape(said[2]).strip(), part, message, day)
        elif part is not None:
            yield Line(unescape(raw).strip(), part, message, day)


def ranked(said: Sequence[Line], query: str, key: Callable[[Line], str] = lambda line: line.text) -> list[Line]:
    """The lines that share a word with a query, the best first: long words say more, and so do short lines.

    How rare a word is does not matter: among lines that were recalled for a question, its best words are common.

    Args:
        said: The lines.
        query: A question, or an answer.
        key: What of a line is looked at.
    """
    wanted = words(query)

    def score(line: Line) -> float:
        text = key(line)
        shared = sum(max(wanted[word] - 2, 0) for word in wanted.keys() & words(text).keys())
        return float(shared / (100 + len(text)) ** 0.5)

    best = sorted(((score(line), line) for line in said), key=lambda each: -each[0])
    return [line for points, line in best if points]


def words(text: str) -> dict[str, int]:
    """The words of a text in lower case, cut to five letters, so that `glaze` finds `glazes`; and how long they are."""
    return {word[:5]: len(word) for word in _WORD.findall(text.lower())}
