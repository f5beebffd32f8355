"""What a person changes of a board: items added, edited, pinned, deleted; its summary; the board written anew."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from langchain_supabase_memory.checks import choice
from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.flow import Flow, call
from langchain_supabase_memory.language.messages.redaction.payload import redact_value
from langchain_supabase_memory.language.messages.sanitizer import clean
from langchain_supabase_memory.operations.arguments import check_actor, conversation_ids
from langchain_supabase_memory.operations.boards.board import BoardItem
from langchain_supabase_memory.operations.boards.parse_answer import LONGEST_TEXT
from langchain_supabase_memory.operations.boards.schema import ENTITY_TYPES, KINDS, STATES, AuthorKind, BoardItemKind

if TYPE_CHECKING:
    from langchain_supabase_memory.language.messages.redaction.redactor import Redactor
    from langchain_supabase_memory.values import ConversationKey

Action = Literal["add", "edit", "pin", "unpin", "delete", "summary", "regenerate"]
"""What a person does with a board."""

EDITORS: Final[tuple[AuthorKind, ...]] = ("person", "application", "model")
"""Who may be named as the author of a change."""

LONGEST_SUMMARY: Final = 10_000
"""The most characters of a summary that a person writes."""

_ALL_STATES: Final = frozenset(state for states in STATES.values() for state in states)


def edit_board(
    key: ConversationKey,
    action: Action,
    *,
    actor: str,
    item: BoardItem | str | None = None,
    kind: BoardItemKind | None = None,
    entity_type: str | None = None,
    text: str | None = None,
    state: str | None = None,
    author_kind: AuthorKind = "person",
    begin: bool = False,
) -> Flow[str | None]:
    """Change a board as a person does; it is noted with who and when.

    Returns:
        The item's id, if it is about one.

    Raises:
        NotFoundError: There is no such conversation or item.
        InvalidInputError: Nobody is named, the board has the item already, or a model may not do that.
        ConfigurationError: `author_kind` is none.
    """
    choice("author_kind", author_kind, EDITORS)
    answer = yield from call(
        "memory_edit_board",
        {
            **conversation_ids(key),
            "p_action": action,
            "p_by": check_actor(actor),
            "p_item_id": item.id if isinstance(item, BoardItem) else item,
            "p_kind": kind,
            "p_type": entity_type,
            "p_text": text,
            "p_state": state,
            "p_author_kind": author_kind,
            "p_begin": begin,
        },
    )
    item_id: str | None = answer["item_id"]
    return item_id


def add_item(
    key: ConversationKey,
    kind: BoardItemKind,
    text: str,
    *,
    actor: str,
    entity_type: str | None,
    state: str | None,
    author_kind: AuthorKind,
    begin: bool,
    redactor: Redactor | None,
) -> Flow[str]:
    """Write an item; returns its id."""
    if kind not in KINDS:
        raise InvalidInputError("That is no kind of item.", hint=f"Kinds are {', '.join(KINDS)}.")
    if entity_type is not None and entity_type not in ENTITY_TYPES:
        raise InvalidInputError("That is no type of entity.", hint=f"Types are {', '.join(ENTITY_TYPES)}.")
    states = STATES[kind]
    if state is not None and state not in states:
        raise InvalidInputError(f"That is no state of a {kind}.", hint=f"States are {', '.join(states)}.")
    words = _item_text(text, redactor)
    state = state or states[0]
    made = edit_board(
        key,
        "add",
        actor=actor,
        kind=kind,
        entity_type=entity_type,
        text=words,
        state=state,
        author_kind=author_kind,
        begin=begin,
    )
    return str((yield from made))


def change_item(
    key: ConversationKey,
    item: BoardItem | str,
    *,
    actor: str,
    text: str | None,
    state: str | None,
    author_kind: AuthorKind,
    redactor: Redactor | None,
) -> Flow[str | None]:
    """Change an item's words or state."""
    if text is None and state is None:
        raise InvalidInputError("Nothing is changed.", hint="Pass text, or state.")
    if state is not None and state not in _ALL_STATES:
        raise InvalidInputError("That is no state.", hint=f"States are {', '.join(sorted(_ALL_STATES))}.")
    words = None if text is None else _item_text(text, redactor)
    return (
        yield from edit_board(key, "edit", actor=actor, item=item, text=words, state=state, author_kind=author_kind)
    )


def write_summary(
    key: ConversationKey, text: str, *, actor: str, author_kind: AuthorKind, redactor: Redactor | None
) -> Flow[str | None]:
    """Write what the board's summary is to say first; an empty text takes that back."""
    if not isinstance(text, str) or len(text) > LONGEST_SUMMARY:
        raise InvalidInputError(
            f"A summary is a text of at most {LONGEST_SUMMARY:,} characters.", hint="An empty one takes it back."
        )
    words = str(redact_value(clean(text).strip(), redactor))
    return (yield from edit_board(key, "summary", actor=actor, text=words, author_kind=author_kind))


def _item_text(text: str, redactor: Redactor | None) -> str:
    words = redact_value(" ".join(clean(text).split()), redactor) if isinstance(text, str) else ""
    if not words or len(words) > LONGEST_TEXT:
        raise InvalidInputError(
            f"An item is a text of 1 to {LONGEST_TEXT} characters.", hint="Write it shorter, or as several items."
        )
    return str(words)
