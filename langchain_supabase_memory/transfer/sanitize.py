"""Sanitizes what people set on a conversation: valid for Postgres, and redacted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory.language.messages import sanitizer
from langchain_supabase_memory.language.messages.redaction.payload import redact_value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from langchain_supabase_memory.language.messages.redaction.redactor import Redactor

_WORDS: Final = {
    "summary": ("text",),
    "items": ("text", "quote"),
    "summaries": ("content",),
    "profile": ("subject", "value", "condition"),
    "topics": ("name", "words"),
}
"""The text fields of `memory_restore`, besides the title and the metadata; the rest are ids and names."""


def clean(edits: Mapping[str, Any], redactor: Redactor | None) -> dict[str, Any]:
    """Return edits in the form that `memory_restore` may store.

    Args:
        edits: Its arguments, from any source.
        redactor: Removes secrets and personal data.

    Raises:
        ConfigurationError: A rule of the redactor failed.
    """
    made: dict[str, Any] = storable(dict(edits))
    if redactor is None:
        return made
    for name in ("title", "metadata"):
        if name in made:
            made[name] = redact_value(made[name], redactor)
    for name, fields in _WORDS.items():
        held = made.get(name)
        for each in held if isinstance(held, list) else [held]:
            if isinstance(each, dict):
                each.update({field: redact_value(each[field], redactor) for field in fields if field in each})
    return made


def storable(value: Any) -> Any:
    """Return a decoded JSON value as JSON that Postgres can store; values tagged by the sanitizer stay unchanged."""
    if isinstance(value, list):
        return [storable(each) for each in value]
    if isinstance(value, dict):
        return {sanitizer.clean(str(key)): storable(each) for key, each in value.items()}
    return sanitizer.encode(value)
