"""What `find_profile` finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

ProfileKind: TypeAlias = Literal["fact", "preference", "instruction", "trait", "constraint"]
"""What a finding is: about the person, what they like, what the assistant is to do, what they do, what must not be."""


@dataclass(frozen=True, slots=True)
class ProfileFinding:
    """Something that a user says of themselves or asks for.

    Attributes:
        kind: What it is.
        subject: What it is about, normalized: another value for the same thing has the same subject.
        value: The value, in the user's words.
        polarity: -1 for what is not so or not wanted, else 1.
        condition: When it holds, in the user's words; `None` for always.
        is_durable: Whether it is stated to hold for good, rather than this once.
        corrects: Whether it says that something earlier does not hold.
        quote: The clause that says it, a verbatim part of the message.
    """

    kind: ProfileKind
    subject: str
    value: str
    polarity: Literal[-1, 0, 1]
    condition: str | None
    is_durable: bool
    corrects: bool
    quote: str
