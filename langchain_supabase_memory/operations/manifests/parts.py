"""What a manifest is made of: the parts of a prompt, and the passages that were recalled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class ManifestPart:
    """A part of a prompt.

    Attributes:
        name: Which one: see `codes.PartName`.
        reason: Why it stands there: see `codes.Reason`.
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
