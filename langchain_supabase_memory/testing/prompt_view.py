"""The lines of a prompt, and where each is from."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal
from xml.sax.saxutils import unescape

from langchain_supabase_memory.language.messages import attribution

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from langchain_core.messages import BaseMessage

PromptPart = Literal["recalled", "passage", "summary", "recent", "profile", "board", "shared", "turn"]
"""The part of a prompt: recalled messages, a tool's passage, the summary, the newest messages, items of the profile, of
the board and of boards that are shared, or the turn that the user's words point at."""

_PARTS: Final[dict[str, PromptPart]] = {
    "recalled": "recalled",
    "passage": "passage",
    "summary": "summary",
    "user_profile": "profile",
    "board": "board",
    "shared": "shared",
    "referenced_turn": "turn",
}
_ITEMS: Final = frozenset({"profile", "board", "shared"})
_ITEM: Final = re.compile(r"- [^:]+: (.*?)(?: \[[^\]]*\])?")
_SPEAKER: Final = re.compile(r"(?:User|Assistant)[^:]*: (.*)")
_FENCE: Final = "<conversation_memory>"
_TAG: Final = re.compile(r"</?(\w+)([^>]*)>")
_MESSAGES: Final = re.compile(r'messages="(\d+)')
_AT: Final = re.compile(r'at="(\d{4}-\d\d-\d\d)')
_DAY: Final = re.compile(r"(\d{4}-\d\d-\d\d):")
_MESSAGE: Final = re.compile(r"\S[^\[\n]* \[(\d+)(?: of [^\]\n]*)?\]: (.*)")
_WORD: Final = re.compile(r"\w+")


@dataclass(frozen=True)
class PromptLine:
    """A line of a prompt.

    Attributes:
        text: The text of the line.
        part: The part of the prompt.
        message: The number of its message, if the prompt has it.
        day: The day of its message, if the prompt has it.
    """

    text: str
    part: PromptPart
    message: int | None = None
    day: str | None = None


def question_and_lines(messages: Sequence[BaseMessage]) -> tuple[str, list[PromptLine]]:
    """Split a prompt into the user's newest question and the lines that stand beside it.

    Args:
        messages: The prompt, with a user's message.
    """
    place = max((place for place, message in enumerate(messages) if message.type == "human"), default=0)
    asked = attribution.own_words(messages[place])
    # Of the question's own message only what the memory put before it is a line.
    before = [] if asked is messages[place] else [messages[place]]
    return str(asked.text), lines([*messages[:place], *before, *messages[place + 1 :]])


def lines(messages: Sequence[BaseMessage]) -> list[PromptLine]:
    """Split a prompt into lines, without the system message and the tags of the memory."""
    return [
        line
        for message in messages
        if message.type != "system"
        for line in _prompt_lines(str(message.text))
        if line.text
    ]


def _prompt_lines(text: str) -> Iterator[PromptLine]:
    if not text.startswith(_FENCE):
        yield from (PromptLine(line.strip(), "recent") for line in text.splitlines())
        return
    part: PromptPart | None = None
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
        dated, match = _DAY.fullmatch(raw), _MESSAGE.fullmatch(raw)
        if part == "recalled" and dated:
            day = dated[1]
        elif part == "recalled" and match:
            message = int(match[1])
            yield PromptLine(unescape(match[2]).strip(), part, message, day)
        elif part in _ITEMS or part == "turn":
            found = (_ITEM if part in _ITEMS else _SPEAKER).fullmatch(raw)
            if found and part:  # other lines are headings
                yield PromptLine(unescape(found[1]).strip(), part)
        elif part is not None:
            yield PromptLine(unescape(raw).strip(), part, message, day)


def rank(
    lines: Sequence[PromptLine], query: str, key: Callable[[PromptLine], str] = lambda line: line.text
) -> list[PromptLine]:
    """Sort the lines that share a word with a query, the best first. Long words and short lines score higher.

    The rarity of a word does not count: the best words of a question are common among the lines recalled for it.

    Args:
        lines: The lines.
        query: A question or an answer.
        key: Gets the text of a line to compare.
    """
    query_stems = stems(query)

    def score(line: PromptLine) -> float:
        text = key(line)
        shared = sum(max(query_stems[word] - 2, 0) for word in query_stems.keys() & stems(text).keys())
        return float(shared / (100 + len(text)) ** 0.5)

    best = sorted(((score(line), line) for line in lines), key=lambda each: -each[0])
    return [line for points, line in best if points]


def stems(text: str) -> dict[str, int]:
    """Get the words of a text, cut to five letters so that `glaze` finds `glazes`, with their lengths."""
    return {word[:5]: len(word) for word in _WORD.findall(text.lower())}
