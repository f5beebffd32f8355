"""What people set of a conversation, as it may be stored: what Postgres holds, without what is to be redacted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory.language.messages import sanitizer
from langchain_supabase_memory.language.messages.redaction.payload import redact_value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from langchain_supabase_memory.language.messages.redaction.redactor import Redactor

_WORDS: Final = {"summary": ("text",), "items": ("text", "quote"), "summaries": ("content",)}
"""Where words stand in what `memory_restore` takes, beside the title and the metadata. The rest are ids and names."""


def clean(edits: Mapping[str, Any], redactor: Redactor | None) -> dict[str, Any]:
    """Edits as `memory_restore` may store them.

    Args:
        edits: As it takes them, from wherever.
        redactor: What takes secrets and personal data out.

    Raises:
        ConfigurationError: A rule of the redactor failed.
    """
    made: dict[str, Any] = storable_id(dict(edits))
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


def storable_id(value: Any) -> Any:
    """A value that was JSON once, as JSON that Postgres can hold; what the sanitizer had tagged stays as it is."""
    if isinstance(value, list):
        return [storable_id(each) for each in value]
    if isinstance(value, dict):
        return {sanitizer.clean(str(key)): storable_id(each) for key, each in value.items()}
    return sanitizer.encode(value)
