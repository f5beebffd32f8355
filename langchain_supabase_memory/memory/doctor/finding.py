"""The findings of the doctor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

State: TypeAlias = Literal["green", "yellow", "red"]
"""`green`: OK. `yellow`: it works, but needs attention. `red`: something is broken."""


@dataclass(frozen=True)
class Finding:
    """One line of the doctor's report.

    Attributes:
        name: What was checked, such as `pgvector`.
        state: Its state.
        text: The finding, in a sentence or two, without any text from conversations.
        next_action: What to do next; `None` if there is nothing to do.
    """

    name: str
    state: State
    text: str
    next_action: str | None = None


def green(name: str, text: str) -> Finding:
    """Return a finding that all is well."""
    return Finding(name, "green", text)


def yellow(name: str, text: str, next_action: str) -> Finding:
    """Return a finding that needs attention."""
    return Finding(name, "yellow", text, next_action)


def red(name: str, text: str, next_action: str) -> Finding:
    """Return a finding that something is broken."""
    return Finding(name, "red", text, next_action)
