"""What a person changes of a board: items added, edited, pinned, deleted; its summary; the board written anew."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from langchain_supabase_memory.checks import choice
from langchain_supabase_memory.effects import Flow, call
from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.language.messages.redaction.payload import redact_value
from langchain_supabase_memory.language.messages.sanitizer import clean
from langchain_supabase_memory.operations.arguments import check_actor, conversation_ids
from langchain_supabase_memory.operations.boards.board import BoardItem
from langchain_supabase_memory.operations.boards.kinds import BOARD_KINDS, BoardItemKind
from langchain_supabase_memory.operations.boards.parse_answer import LONGEST_TEXT

if TYPE_CHECKING:
    from langchain_supabase_memory.language.messages.redaction.redactor import Redactor
    from langchain_supabase_memory.operations.boards.schema import AuthorKind
    from langchain_supabase_memory.values import ConversationKey

Action = Literal["add", "edit", "pin", "unpin", "delete", "summary", "regenerate"]
"""What a person does with a board."""

EDITORS: Final[tuple[AuthorKind, ...]] = ("person", "application", "model")
"""Who may be named as the author of a change."""

LONGEST_SUMMARY: Final = 10_000
"""The most characters of a summary that a person writes."""

_ALL_STATES: Final = frozenset(state for each in BOARD_KINDS.values() for state in each.states)


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
    entity_type: str | None = None,
    state: str | None = None,
    author_kind: AuthorKind = "person",
    begin: bool = False,
    redactor: Redactor | None = None,
) -> Flow[str]:
    """Write an item on the board; the same twice is one.

    Args:
        key: The conversation.
        kind: What it is, such as `fact` or `action`; the page on boards has all kinds.
        text: What it says, up to 500 characters.
        actor: Who writes it.
        entity_type: Of an entity, what it is: a person, a place, an organization, a date or other.
        state: One of the states of its kind; the first of them by default.
        author_kind: What `actor` is: `person`, `application` or `model`. Packs say so, and what a model notes is
            no person's word: a writer may change it.
        begin: Whether a conversation that has not begun begins with this item.
        redactor: What takes secrets and personal data out of what is stored.

    Returns:
        The item's id.

    Raises:
        InvalidInputError: The kind, the type, the state or the text is none, or a model writes what was deleted.
        NotFoundError: There is no such conversation, and it is not to begin.
    """
    if kind not in tuple(BOARD_KINDS):
        raise InvalidInputError("That is no kind of item.", hint=f"Kinds are {', '.join(BOARD_KINDS)}.")
    types = BOARD_KINDS["entity"].types
    if entity_type is not None and entity_type not in types:
        raise InvalidInputError("That is no type of entity.", hint=f"Types are {', '.join(types)}.")
    states = BOARD_KINDS[kind].states
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


def edit_item(
    key: ConversationKey,
    item: BoardItem | str,
    *,
    actor: str,
    text: str | None = None,
    state: str | None = None,
    author_kind: AuthorKind = "person",
    redactor: Redactor | None = None,
) -> Flow[None]:
    """Change an item's words or state.

    Args:
        key: The conversation.
        item: The item, or its id.
        actor: Who changes it.
        text: What it says from now on.
        state: Its state from now on.
        author_kind: What `actor` is: `person`, `application` or `model`. A model changes only what nobody else
            wrote, changed or pinned.
        redactor: What takes secrets and personal data out of what is stored.

    Raises:
        InvalidInputError: Nothing is changed, the text is none, the board has such an item already, or a model may
            not change this one.
        NotFoundError: There is no such item.
    """
    if text is None and state is None:
        raise InvalidInputError("Nothing is changed.", hint="Pass text, or state.")
    if state is not None and state not in _ALL_STATES:
        raise InvalidInputError("That is no state.", hint=f"States are {', '.join(sorted(_ALL_STATES))}.")
    words = None if text is None else _item_text(text, redactor)
    yield from edit_board(key, "edit", actor=actor, item=item, text=words, state=state, author_kind=author_kind)


def pin_item(key: ConversationKey, item: BoardItem | str, *, actor: str, pinned: bool = True) -> Flow[None]:
    """Hold on to an item, or let go of it: what is pinned stands first, and no model supersedes or closes it.

    Args:
        key: The conversation.
        item: The item, or its id.
        actor: Who does it.
        pinned: Whether it is pinned from now on.

    Raises:
        NotFoundError: There is no such item.
    """
    yield from edit_board(key, "pin" if pinned else "unpin", actor=actor, item=item)


def delete_item(key: ConversationKey, item: BoardItem | str, *, actor: str) -> Flow[None]:
    """Delete an item for good: its words go, and no model writes the same again.

    What was said stays in the history: to forget that, call `forget_message`.

    Args:
        key: The conversation.
        item: The item, or its id.
        actor: Who does it.

    Raises:
        NotFoundError: There is no such item.
    """
    yield from edit_board(key, "delete", actor=actor, item=item)


def edit_summary(
    key: ConversationKey,
    text: str,
    *,
    actor: str,
    author_kind: AuthorKind = "person",
    redactor: Redactor | None = None,
) -> Flow[None]:
    """Write what the board's summary is to say first; an empty text takes that back.

    Args:
        key: The conversation.
        text: What it says, up to 10,000 characters.
        actor: Who writes it.
        author_kind: What that is: `person` or `application`.
        redactor: What takes secrets and personal data out of what is stored.

    Raises:
        InvalidInputError: It is no text, or longer than 10,000 characters; or a model is to write it.
        NotFoundError: There is no such conversation.
    """
    if not isinstance(text, str) or len(text) > LONGEST_SUMMARY:
        raise InvalidInputError(
            f"A summary is a text of at most {LONGEST_SUMMARY:,} characters.", hint="An empty one takes it back."
        )
    words = str(redact_value(clean(text).strip(), redactor))
    yield from edit_board(key, "summary", actor=actor, text=words, author_kind=author_kind)


def _item_text(text: str, redactor: Redactor | None) -> str:
    words = redact_value(" ".join(clean(text).split()), redactor) if isinstance(text, str) else ""
    if not words or len(words) > LONGEST_TEXT:
        raise InvalidInputError(
            f"An item is a text of 1 to {LONGEST_TEXT} characters.", hint="Write it shorter, or as several items."
        )
    return str(words)
