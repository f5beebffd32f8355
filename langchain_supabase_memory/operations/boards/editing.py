"""Changes to a board by a person: add, edit, pin and delete items, edit the summary, regenerate the board."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from langchain_supabase_memory.checks import as_uuid, boolean, choice
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
"""An action of a person on a board."""

EDITORS: Final[tuple[AuthorKind, ...]] = ("person", "application", "model")
"""The kinds of authors of a change."""

LONGEST_SUMMARY: Final = 10_000
"""The maximum number of characters of a summary that a person writes."""

_ALL_STATES: Final = tuple(sorted({state for each in BOARD_KINDS.values() for state in each.states}))


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
    """Change a board for a person; the change records who made it and when.

    Returns:
        The item's id, if the action concerns an item.

    Raises:
        NotFoundError: There is no such conversation or item.
        InvalidInputError: The actor is empty, `item` is no id, the board already has the item, a model may not do
            that, or the conversation is private.
        ConfigurationError: `author_kind` is not valid.
    """
    choice("author_kind", author_kind, EDITORS)
    if begin and key.private:  # it would begin one that is not
        raise InvalidInputError(
            "A private conversation has no board.", hint="Write it on the board of one that is not private."
        )
    item_id = None
    if action in ("edit", "pin", "unpin", "delete"):
        item_id = item.id if isinstance(item, BoardItem) else as_uuid("item", item)
    answer = yield from call(
        "memory_edit_board",
        {
            **conversation_ids(key),
            "p_action": action,
            "p_by": check_actor(actor),
            "p_item_id": item_id,
            "p_kind": kind,
            "p_type": entity_type,
            "p_text": text,
            "p_state": state,
            "p_author_kind": author_kind,
            "p_begin": begin,
        },
    )
    changed: str | None = answer["item_id"]
    return changed


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
    """Add an item to the board; adding the same item twice adds it once.

    Args:
        key: The conversation.
        kind: The item's kind, such as `fact` or `action`; the page on boards lists all kinds.
        text: The item's text, up to 500 characters.
        actor: Who adds it.
        entity_type: For an entity, its type: a person, a place, an organization, a date or other.
        state: A state of its kind; the first one by default.
        author_kind: The kind of `actor`: `person`, `application` or `model`. Context packs name it. An item by a
            model does not count as a person's: a summarizer may change it.
        begin: Whether to create the conversation if it does not exist.
        redactor: Removes secrets and personal data before storage.

    Returns:
        The item's id.

    Raises:
        InvalidInputError: The kind, the type, the state or the text is not valid, or a model adds a deleted item.
        NotFoundError: The conversation does not exist, and `begin` is false.
    """
    choice("kind", kind, BOARD_KINDS, error=InvalidInputError)
    choice("entity_type", entity_type, BOARD_KINDS["entity"].types, optional=True, error=InvalidInputError)
    states = BOARD_KINDS[kind].states
    choice("state", state, states, optional=True, more=f"None for a {kind}", error=InvalidInputError)
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
    """Change an item's text or state.

    Args:
        key: The conversation.
        item: The item, or its id.
        actor: Who changes it.
        text: The new text.
        state: The new state.
        author_kind: The kind of `actor`: `person`, `application` or `model`. A model changes only items that nobody
            else wrote, changed or pinned.
        redactor: Removes secrets and personal data before storage.

    Raises:
        InvalidInputError: Nothing changes, the text is not valid, the board already has such an item, or a model
            may not change this one.
        NotFoundError: There is no such item.
    """
    if text is None and state is None:
        raise InvalidInputError("There is nothing to change.", hint="Pass text, or state.")
    choice("state", state, _ALL_STATES, optional=True, error=InvalidInputError)
    words = None if text is None else _item_text(text, redactor)
    yield from edit_board(key, "edit", actor=actor, item=item, text=words, state=state, author_kind=author_kind)


def pin_item(key: ConversationKey, item: BoardItem | str, *, actor: str, pinned: bool = True) -> Flow[None]:
    """Pin or unpin an item: pinned items come first, and no model supersedes or closes them.

    Args:
        key: The conversation.
        item: The item, or its id.
        actor: Who does it.
        pinned: Whether to pin or to unpin it.

    Raises:
        NotFoundError: There is no such item.
    """
    boolean("pinned", pinned)
    yield from edit_board(key, "pin" if pinned else "unpin", actor=actor, item=item)


def delete_item(key: ConversationKey, item: BoardItem | str, *, actor: str) -> Flow[None]:
    """Delete an item permanently: its text is deleted, and no model adds it again.

    The messages stay in the history: to delete those, call `forget_message`.

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
    """Write a summary that comes before the generated one; an empty text removes it.

    Args:
        key: The conversation.
        text: The summary, up to 10,000 characters.
        actor: Who writes it.
        author_kind: The kind of `actor`: `person` or `application`.
        redactor: Removes secrets and personal data before storage.

    Raises:
        InvalidInputError: It is not a string, is longer than 10,000 characters, or a model writes it.
        NotFoundError: There is no such conversation.
    """
    if not isinstance(text, str) or len(text) > LONGEST_SUMMARY:
        raise InvalidInputError(
            f"A summary is a text of at most {LONGEST_SUMMARY:,} characters.", hint="Pass an empty text to remove it."
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
