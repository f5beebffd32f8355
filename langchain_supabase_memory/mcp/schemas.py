"""Compact JSON schemas, because a model reads them at every request."""

from __future__ import annotations

from typing import Any, Final

_DEFINITIONS: Final = "$defs"
_REFERENCE: Final = "$ref"
_NULL: Final = {"type": "null"}


def compact_schema(schema: Any) -> Any:
    """Return a JSON schema without titles, with references inlined, and without null for optional arguments.

    Args:
        schema: The schema, as pydantic writes it.
    """
    definitions = schema.get(_DEFINITIONS, {}) if isinstance(schema, dict) else {}
    return _compact(schema, definitions)


def _compact(schema: Any, definitions: dict[str, Any]) -> Any:
    if isinstance(schema, list):
        return [_compact(each, definitions) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if _REFERENCE in schema:
        beside = {name: each for name, each in schema.items() if name != _REFERENCE}
        return _compact({**definitions[schema[_REFERENCE].rsplit("/", 1)[-1]], **beside}, definitions)
    made = {name: each for name, each in schema.items() if name != _DEFINITIONS and not _is_title(name, each)}
    either = made.get("anyOf")
    if either is not None and _NULL in either and made.get("default", 0) is None:
        rest = [each for each in either if each != _NULL]
        if len(rest) == 1:
            del made["anyOf"], made["default"]
            return _compact({**rest[0], **made}, definitions)
    return {name: _compact(each, definitions) for name, each in made.items()}


def _is_title(name: str, value: object) -> bool:
    """Return whether it is a title, and not a property with this name."""
    return name == "title" and isinstance(value, str)
