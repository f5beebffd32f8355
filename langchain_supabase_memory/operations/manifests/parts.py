"""What a manifest is made of: the parts of a prompt, and the passages that were recalled.

Which parts there are, and for which reasons, is said here: what is stored names them by their places in the tables, so
new ones come at the ends. The comment of `memory_manifests` and the inspector read the tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

PartName: TypeAlias = Literal["summary", "note", "recent", "board", "recalled", "reference", "current"]
"""A part of a prompt, in the manifest's order."""

Reason: TypeAlias = Literal[
    "older", "omitted", "opening", "all", "newest", "messages", "holds", "meaning", "words", "reranked", "pointed_at",
    "asked", "budget", "cut", "no_room", "branch", "unreadable", "orphan", "quotes", "other", "media",
]  # fmt: skip
"""Why a part stands in a prompt, or why messages do not.

A summary: it covers what is `older` than what fits. A note: something is `omitted`, or the assistant spoke first
(`opening`). Recent messages: `all` that no summary covers, the `newest` that fit the budget, or as many `messages` as
`max_messages` allows. The board: it `holds`. What was recalled: by `meaning`, by `words` alone, or as a model
`reranked` it. A turn that the user `pointed_at`, and what was `asked`. Left out: beyond the `budget` or beyond
`max_messages` (`messages`), `cut` to fit, a summary for which there was `no_room`, on another `branch` of the graph,
`unreadable`, a result without its call (`orphan`), a summary of `quotes` where recall finds them,
more `media` than the budget allows.
"""


@dataclass(frozen=True)
class PromptPart:
    """A kind of part that a prompt may have.

    Attributes:
        name: What it is called.
        title: What stands above it where a person reads it.
        state: What has happened to the messages that it is made of; the inspector has a color for each state.
    """

    name: PartName
    title: str
    state: Literal["verbatim", "segment", "omitted", "board", "recalled", "asked"]


PROMPT_PARTS: Final = (
    PromptPart("summary", "Summary", "segment"),
    PromptPart("note", "Note", "omitted"),
    PromptPart("recent", "Recent", "verbatim"),
    PromptPart("board", "Board", "board"),
    PromptPart("recalled", "Recalled", "recalled"),
    PromptPart("reference", "Reference", "recalled"),
    PromptPart("current", "Question", "asked"),
)
"""All of them, in the order of their codes."""

PART_REASONS: Final[Mapping[Reason, str]] = MappingProxyType(
    {
        "older": "It covers what is older than what fits.",
        "omitted": "Something is left out, and the prompt says so.",
        "opening": "The assistant spoke first.",
        "all": "All that no summary covers.",
        "newest": "The newest that fit the budget.",
        "messages": "No more messages than max_messages allows.",
        "holds": "What is known by now.",
        "meaning": "It fits the question, by its meaning.",
        "words": "It fits the question, by its words alone.",
        "reranked": "It fits the question, in the reranker’s order.",
        "pointed_at": "The user pointed at that turn.",
        "asked": "What was to be answered.",
        "budget": "Beyond the budget.",
        "cut": "Cut to fit.",
        "no_room": "There was no room for its summary.",
        "branch": "On another branch of the graph.",
        "unreadable": "It cannot be read.",
        "orphan": "A result without its call.",
        "quotes": "Its summary has quotes alone, which recall finds where they are asked for.",
        "other": "For another reason.",
        "media": "Its words are shown; its images and files are more than the budget allows.",
    }
)
"""Why a part is there, or messages are not, in a sentence; in the order of the codes."""


@dataclass(frozen=True)
class ManifestPart:
    """A part of a prompt.

    Attributes:
        name: Which one: see `PartName`.
        reason: Why it stands there: see `Reason`.
        messages: How many messages.
        characters: Its characters.
        tokens: Its approximate tokens.
        first: The first message that it shows or covers; `None` if that cannot be said.
        last: The last one.
        number: Of a summary its segment's number, of a reference the turn's; else `None`.
    """

    name: str
    reason: str
    messages: int
    characters: int
    tokens: int
    first: int | None = None
    last: int | None = None
    number: int | None = None


@dataclass(frozen=True)
class ManifestPassage:
    """A passage that was recalled.

    Attributes:
        first: The first message that it is made of; `None` if it is of another conversation.
        last: The last one.
        part: Which part of them, from 1.
        id: The first eight digits of the chunk's id, where it is of another conversation; else `None`.
        score_parts: What each part added to its score, in hundredths as fractions; empty where there was no room.
    """

    first: int | None
    last: int | None
    part: int | None
    id: str | None = None
    score_parts: Mapping[str, float] = field(default_factory=dict)
