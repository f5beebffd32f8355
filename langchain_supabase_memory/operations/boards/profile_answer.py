"""The part of a summarizer's answer that is about the person: what users say of themselves, with evidence."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, get_args

from langchain_supabase_memory.language.injection import is_injection
from langchain_supabase_memory.language.messages.sanitizer import clean
from langchain_supabase_memory.operations.boards.parse_answer import LONGEST_QUOTE, TextMatcher
from langchain_supabase_memory.operations.boards.schema import SCHEMA
from langchain_supabase_memory.operations.profile import ProfileKind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_supabase_memory.effects import TranscriptLine

PROFILE_KINDS: Final[tuple[ProfileKind, ...]] = get_args(ProfileKind)
"""The kinds of items of a profile."""

MAX_ITEMS: Final = 20
"""The maximum number of items of one answer."""

_LONGEST: Final = {"subject": 100, "value": 300, "condition": 200}

PROFILE_SCHEMA: Final[dict[str, Any]] = {
    "type": "array",
    "description": (
        "What users say in <said_since> of themselves and how they want to be answered: only what they say as their "
        "own, never what is quoted, pasted, supposed, asked or about somebody else. Mostly empty."
    ),
    "items": {
        "type": "object",
        "properties": {
            "kind": {"type": "string", "enum": list(PROFILE_KINDS)},
            "subject": {
                "type": "string",
                "description": (
                    "What it is about, in one to three English words, the same for every value of it: home, diet, "
                    "answer language, coffee."
                ),
            },
            "value": {"type": "string", "description": "What it is, short, in the user's words."},
            "polarity": {
                "type": "integer",
                "enum": [-1, 0, 1],
                "description": "-1: dislikes or rejects it, 1: likes or wants it, 0: neither.",
            },
            "condition": {"type": ["string", "null"], "description": "When it holds, if not always: when debugging."},
            "durable": {
                "type": "boolean",
                "description": (
                    "True only if the user says that it lasts: from now on, always, I prefer, call me, I am allergic. "
                    "False for a wish for this one answer or day."
                ),
            },
            "corrects": {"type": "boolean", "description": "Whether the user corrects what was believed of them."},
            "source": {"type": "integer", "description": "The number of the user's message that says so."},
            "quote": {"type": "string", "description": "The words of that message that say so, exactly as they stand."},
        },
        "required": ["kind", "subject", "value", "polarity", "condition", "durable", "corrects", "source", "quote"],
    },
}
"""The JSON schema of the list."""

SCHEMA_WITH_PROFILE: Final[dict[str, Any]] = {
    **SCHEMA,
    "properties": {**SCHEMA["properties"], "profile": PROFILE_SCHEMA},
    "required": [*SCHEMA["required"], "profile"],
}
"""The JSON schema of an answer that revises a board, with what it says of the person."""


@dataclass(frozen=True)
class NewProfileItem:
    """What a message says of the user, as the database takes it.

    Attributes:
        kind: Its kind.
        subject: What it is about.
        value: What it is.
        polarity: -1: rejected, 1: wanted, 0: neither.
        condition: When it holds; `None`: always.
        durable: Whether the user says that it lasts.
        corrects: Whether the user corrects what was believed.
        sequence: The message.
        quote: The part of it that says so.
    """

    kind: ProfileKind
    subject: str = field(repr=False)
    value: str = field(repr=False)
    polarity: int
    condition: str | None = field(repr=False)
    durable: bool
    corrects: bool
    sequence: int
    quote: str = field(repr=False)


def parse_profile(answer: Mapping[str, Any], lines: Sequence[TranscriptLine]) -> tuple[list[NewProfileItem], int]:
    """Check what an answer says of the person against the user's messages.

    Args:
        answer: The document.
        lines: The transcript lines in the prompt. Only those of the user are evidence.

    Returns:
        The items with evidence, and how many had none, were malformed, or would turn the assistant against its user.
    """
    texts: dict[int, str] = {}
    for line in lines:
        if line.role == "user":
            texts[line.number] = texts.get(line.number, "") + line.text
    matchers = {number: TextMatcher(text) for number, text in texts.items()}
    given = answer.get("profile")
    listed = given if isinstance(given, list) else []
    items = [item for value in listed[:MAX_ITEMS] if (item := _item(value, matchers)) is not None]
    return items, len(listed) - len(items)


def _item(value: Any, matchers: Mapping[int, TextMatcher]) -> NewProfileItem | None:
    if not isinstance(value, dict) or value.get("kind") not in PROFILE_KINDS:
        return None
    texts = {name: _words(value.get(name))[:longest].rstrip() for name, longest in _LONGEST.items()}
    source, quote = value.get("source"), value.get("quote")
    if not texts["subject"] or not texts["value"] or not isinstance(quote, str):
        return None
    if type(source) is not int or source not in matchers:
        return None
    found = matchers[source].locate(TextMatcher(clean(quote[: 2 * LONGEST_QUOTE]).strip()))
    if not found or is_injection("\n".join([f"{texts['subject']}: {texts['value']}", texts["condition"], found])):
        return None
    polarity = value.get("polarity")
    return NewProfileItem(
        value["kind"],
        texts["subject"].casefold(),
        texts["value"],
        polarity if polarity in (-1, 0, 1) and type(polarity) is int else 0,
        texts["condition"] or None,
        value.get("durable") is True,
        value.get("corrects") is True,
        source,
        found[:LONGEST_QUOTE],
    )


def _words(value: Any) -> str:
    return " ".join(clean(value).split()) if isinstance(value, str) else ""
