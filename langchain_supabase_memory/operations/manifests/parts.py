"""The parts of a prompt in a manifest, and the recalled passages.

The tables define all parts and reasons. Stored manifests refer to them by position, so new ones are appended at the
end. The comment of `memory_manifests` and the inspector read the tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

PartName: TypeAlias = Literal[
    "summary", "note", "recent", "board", "recalled", "reference", "current", "shared", "profile"
]
"""A part of a prompt, in the order of the codes."""

SharedKind: TypeAlias = Literal["space", "agent"]
"""Whose board a prompt shows beside its own: a space's, or that of the user's newest conversation with an agent."""

Reason: TypeAlias = Literal[
    "older", "omitted", "opening", "all", "newest", "messages", "holds", "meaning", "words", "reranked", "pointed_at",
    "asked", "budget", "cut", "no_room", "branch", "unreadable", "orphan", "quotes", "other", "media",
    "recalled", "shared", "held",
]  # fmt: skip
"""Why a part is in a prompt, or why messages are not.

A summary covers messages that are `older` than what fits. A note: something is `omitted`, or the assistant spoke
first (`opening`). Recent messages: `all` that no summary covers, the `newest` that fit the budget, or as many
`messages` as `max_messages` allows. The board: its items hold (`holds`); of others, they are `shared` with this
agent. The profile: what is `held` of the user. Recalled passages: found by `meaning`, by `words` only, or as a model
`reranked` them. A turn that the user `pointed_at`, and the user's message (`asked`). Left out: beyond the `budget` or
`max_messages` (`messages`), `cut` to fit, `no_room` for a summary, on another `branch` of the graph, `unreadable`, a
result without its call (`orphan`), a summary of `quotes` that recall finds instead, more `media` than the budget
allows, or what is `recalled` for a question about the past takes their room.
"""


@dataclass(frozen=True)
class PromptPart:
    """A kind of prompt part.

    Attributes:
        name: Its name.
        title: Its heading for people.
        state: The state of its messages; the inspector has a color for each state.
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
    PromptPart("shared", "Shared", "board"),
    PromptPart("profile", "Profile", "board"),
)
"""All kinds of parts, in the order of their codes."""

PART_REASONS: Final[Mapping[Reason, str]] = MappingProxyType(
    {
        "older": "It covers the messages that are too old to fit.",
        "omitted": "Messages are omitted, and the prompt says so.",
        "opening": "The assistant spoke first.",
        "all": "All messages that no summary covers.",
        "newest": "The newest messages that fit the budget.",
        "messages": "max_messages allows no more messages.",
        "holds": "What is known so far.",
        "meaning": "It matches the question by meaning.",
        "words": "It matches the question by keywords only.",
        "reranked": "It matches the question, in the reranker’s order.",
        "pointed_at": "The user referred to this turn.",
        "asked": "The message to answer.",
        "budget": "Beyond the budget.",
        "cut": "Truncated to fit.",
        "no_room": "Its summary did not fit.",
        "branch": "On another branch of the graph.",
        "unreadable": "It cannot be read.",
        "orphan": "A tool result without its call.",
        "quotes": "Its summary has quotes only, which recall finds when needed.",
        "other": "For another reason.",
        "media": "Only its text is included: its images and files exceed the budget.",
        "recalled": "What is recalled for the question takes their room, in this turn alone.",
        "shared": "The agent is given the boards of these spaces and agents.",
        "held": "What is held of the user.",
    }
)
"""Each reason as a sentence, in the order of the codes."""


@dataclass(frozen=True)
class ManifestPart:
    """A part of a prompt.

    Attributes:
        name: The part's name: see `PartName`.
        reason: The reason: see `Reason`.
        messages: The number of messages.
        characters: Its characters.
        tokens: Its approximate tokens.
        first: The first message that it shows or covers; `None` if unknown.
        last: The last message.
        number: The number of a summary's segment or of a reference's turn; otherwise `None`.
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
class ManifestBoard:
    """What a prompt showed of the board of a space or another agent.

    Attributes:
        kind: `space` or `agent`.
        place: Its place among the spaces, or the agents, that the agent was given, from 0.
        is_refused: Whether it was a space that the user was not in.
        left_out: How many items were read but did not fit.
        items: The items, each by the first eight digits of its id; empty if they did not fit into the manifest.
    """

    kind: str
    place: int
    is_refused: bool = False
    left_out: int = 0
    items: tuple[str, ...] = ()


@dataclass(frozen=True)
class ManifestPassage:
    """A recalled passage.

    Attributes:
        first: The first message of the passage; `None` if it is from another conversation.
        last: The last message.
        part: The part of those messages, from 1.
        id: The first eight digits of the chunk's id if it is from another conversation; otherwise `None`.
        score_parts: The parts of its score, rounded to hundredths; empty if they did not fit.
    """

    first: int | None
    last: int | None
    part: int | None
    id: str | None = None
    score_parts: Mapping[str, float] = field(default_factory=dict)
