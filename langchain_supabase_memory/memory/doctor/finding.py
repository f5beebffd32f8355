"""What the doctor finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

State: TypeAlias = Literal["green", "yellow", "red"]
"""`green`: as it should be. `yellow`: it works, and something is to be known or mended. `red`: something is broken."""


@dataclass(frozen=True)
class Finding:
    """One line of the doctor's.

    Attributes:
        name: What was looked at, such as `pgvector`.
        state: How it stands.
        text: What was found, in a sentence or two, without any content.
        next_action: What to do next; `None` where there is nothing to do.
    """

    name: str
    state: State
    text: str
    next_action: str | None = None


def green(name: str, text: str) -> Finding:
    """All is well."""
    return Finding(name, "green", text)


def yellow(name: str, text: str, next_action: str) -> Finding:
    """It works, but."""
    return Finding(name, "yellow", text, next_action)


def red(name: str, text: str, next_action: str) -> Finding:
    """It is broken."""
    return Finding(name, "red", text, next_action)


def duration_text(seconds: float) -> str:
    """How long something is, in the unit that a person would say."""
    for unit, length in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length:.0f} {unit}"
    return f"{seconds:.0f} seconds"
