"""What a writer answers when a board is to be revised: its schema, and the reading of it, however it was wrapped.

The answer says what is new and what has changed, not the whole board: what a writer forgets to repeat is not lost.
"""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias

BoardItemKind: TypeAlias = Literal["fact", "entity", "topic", "action", "question"]
"""What an item of a board is."""

AuthorKind: TypeAlias = Literal["person", "application", "model", "rule", "import"]
"""What somebody or something is that wrote: a rule selects quotes, and an import is a file that does not say."""

KINDS: Final[tuple[BoardItemKind, ...]] = ("fact", "entity", "topic", "action", "question")

LISTS: Final[dict[str, BoardItemKind]] = {
    "facts": "fact",
    "entities": "entity",
    "topics": "topic",
    "action_items": "action",
    "pending_questions": "question",
}
"""The lists of an answer, and the kind of their items."""

ENTITY_TYPES: Final = ("person", "place", "organization", "date", "other")

STATES: Final[dict[BoardItemKind, tuple[str, ...]]] = {
    "fact": ("current",),
    "entity": ("current",),
    "topic": ("current",),
    "action": ("open", "done", "cancelled"),
    "question": ("open", "answered", "dropped"),
}
"""The states of an item; the first is that of a new one."""


def _item(extra: dict[str, Any] | None = None) -> dict[str, Any]:
    properties = {
        "text": {"type": "string", "description": "In one sentence or less, in the language of the conversation."},
        "source": {"type": "integer", "description": "The number of the message that says so."},
        "quote": {"type": "string", "description": "The words of that message that say so, exactly as they stand."},
        **(extra or {}),
    }
    return {"type": "object", "properties": properties, "required": ["text", "source", "quote"]}


def _list(description: str, item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "description": description, "items": item}


_REPLACES: Final = {
    "replaces": {
        "type": ["string", "null"],
        "description": "The id of the item on the board that no longer holds because of this one, if there is one.",
    }
}

SCHEMA: Final[dict[str, Any]] = {
    "title": "revise_board",
    "description": "What is new or has changed on the board of a conversation.",
    "type": "object",
    "properties": {
        "title": {
            "type": "string",
            "description": "What the conversation is about, in two to eight words of its language.",
        },
        "summary": {"type": "string", "description": "The conversation so far, the summary until now included."},
        "context_notes": {
            "type": "string",
            "description": "How to go on: tone, preferences of style, what was just being done. May be empty.",
        },
        "facts": _list("New or corrected facts that matter later.", _item(_REPLACES)),
        "entities": _list(
            "New people, places, organizations and dates.",
            _item({"type": {"type": "string", "enum": list(ENTITY_TYPES)}}),
        ),
        "topics": _list("New topics, in a few words each.", _item()),
        "action_items": _list(
            "New tasks and promises, or those that changed.",
            _item({"state": {"type": "string", "enum": list(STATES["action"])}, **_REPLACES}),
        ),
        "pending_questions": _list("New questions that nobody has answered yet.", _item()),
        "closed": _list(
            "Items of the board that are done, cancelled, answered or dropped.",
            {
                "type": "object",
                "properties": {
                    "id": {"type": "string", "description": "The item's id on the board."},
                    "state": {"type": "string", "enum": ["done", "cancelled", "answered", "dropped"]},
                    "source": {"type": "integer", "description": "The number of the message that says so."},
                },
                "required": ["id", "state", "source"],
            },
        ),
    },
    "required": ["summary", "facts", "entities", "topics", "action_items", "pending_questions", "closed"],
}
"""The JSON schema of the answer."""
