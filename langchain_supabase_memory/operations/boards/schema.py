"""The schema of a summarizer's answer when it revises a board.

The answer lists what is new or has changed, not the whole board, so nothing is lost if a model forgets to repeat it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from langchain_supabase_memory.operations.boards.kinds import BOARD_KINDS, CLOSING

if TYPE_CHECKING:
    from langchain_supabase_memory.operations.boards.kinds import BoardKind

AuthorKind: TypeAlias = Literal["person", "application", "model", "rule", "import"]
"""The kind of an author: a rule selects quotes, and an import is a file that does not name its author."""


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


def _list_of(kind: BoardKind) -> dict[str, Any]:
    """Return the schema of the list of new items of a kind."""
    extra: dict[str, Any] = {"type": {"type": "string", "enum": list(kind.types)}} if kind.types else {}
    extra |= {"state": {"type": "string", "enum": list(kind.states)}} if kind.is_new_in_any_state else {}
    return _list(kind.description, _item(extra | (_REPLACES if kind.is_replaceable else {})))


_LISTS: Final = {kind.plural: _list_of(kind) for kind in BOARD_KINDS.values()}

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
        **_LISTS,
        "closed": _list(
            f"Items of the board that are {', '.join(CLOSING[:-1])} or {CLOSING[-1]}.",
            {
                "type": "object",
                "properties": {
                    "id": {"type": "string", "description": "The item's id on the board."},
                    "state": {"type": "string", "enum": list(CLOSING)},
                    "source": {"type": "integer", "description": "The number of the message that says so."},
                },
                "required": ["id", "state", "source"],
            },
        ),
    },
    "required": ["summary", *_LISTS, "closed"],
}
"""The JSON schema of the answer."""
