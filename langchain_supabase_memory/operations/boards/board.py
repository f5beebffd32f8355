"""A board as a value, and the flow that reads it."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory.checks import require_type
from langchain_supabase_memory.effects import Flow, call, offload
from langchain_supabase_memory.operations.arguments import conversation_ids, moment, retention_argument
from langchain_supabase_memory.operations.boards.kinds import BoardItemKind, ItemLists
from langchain_supabase_memory.operations.boards.perspective import EXAMPLE, KEPT, Perspective, ordering_effort, ranked
from langchain_supabase_memory.operations.boards.schema import AuthorKind
from langchain_supabase_memory.operations.rows import frozen_value, time_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from langchain_supabase_memory.settings import Retention
    from langchain_supabase_memory.values import ConversationKey


WRITTEN_BY: Final[Mapping[AuthorKind, str]] = {
    "person": "by a person",
    "application": "by the application",
    "model": "by a model",
    "rule": "by a rule",
    "import": "from an import",
}
"""How the author of an item is shown to a reader."""


@dataclass(frozen=True)
class BoardItem:
    """An item of a board, with its evidence.

    Attributes:
        id: Its uuid, as a string.
        kind: The item's kind, such as `fact` or `action`; the page on boards lists all kinds.
        text: The item's text.
        state: A state of its kind: `current`; or `open`, until something closes it (`done`, `answered`).
        type: For an entity, `person`, `place`, `organization`, `date` or `other`.
        quote: The supporting quote from the first of its messages. `None` if a person wrote the item.
        message_ids: The messages that it comes from, the first one first.
        sequences: Their numbers.
        importance: Its importance, from 0 to 1.
        first_seen_at: When it was first mentioned.
        last_seen_at: When it was last mentioned.
        version: How often it was changed, from 1.
        superseded_by: The item that contradicts it.
        superseded_at: When that was mentioned; `None` while the item holds.
        pinned: Whether a person pinned it.
        author: Who wrote it: a model's name, or a person.
        edited_by: Who changed it last: a person or the application. No summarizer changes it after that.
        edited_at: When it was changed.
        author_kind: The kind of `author`: `person`, `application`, `model`, `rule` (quotes were selected) or
            `import` (a file that does not name its author).
        editor_kind: The kind of `edited_by`: `person`, `application` or `import`.
        contributed_by: In a space, who quoted it from a conversation of their own.
        said_at: When it was said there.
        author_id: In a space, who said it: who contributed it, or wrote its first message.
        author_name: What they are called there.
    """

    id: str
    kind: BoardItemKind
    text: str = field(repr=False)
    state: str
    type: str | None
    quote: str | None = field(repr=False)
    message_ids: list[str]
    sequences: list[int]
    importance: float
    first_seen_at: datetime
    last_seen_at: datetime
    version: int
    superseded_by: str | None
    superseded_at: datetime | None
    pinned: bool
    author: str
    edited_by: str | None
    edited_at: datetime | None
    author_kind: AuthorKind = "model"
    editor_kind: AuthorKind | None = None
    contributed_by: str | None = None
    said_at: datetime | None = None
    author_id: str | None = None
    author_name: str | None = None

    @property
    def written_by(self) -> str | None:
        """The author of the item's words, as shown to a reader: `by a person`; `None` if messages support them."""
        if self.edited_at is not None:
            return WRITTEN_BY[self.editor_kind or "person"]
        return None if self.sequences else WRITTEN_BY[self.author_kind]

    @property
    def is_open(self) -> bool:
        """Whether it holds and is neither done nor answered."""
        return self.superseded_at is None and self.state in ("current", "open")


@dataclass(frozen=True)
class BoardChange:
    """A change of a board.

    Attributes:
        version: The board's version after the change.
        item_id: The item; `None` for the summary or the whole board.
        action: The action.
        before: The previous text, if it was replaced.
        changed_by: Who made the change: a model's name, or a person.
        changed_at: When.
    """

    version: int
    item_id: str | None
    action: str
    before: str | None = field(repr=False)
    changed_by: str
    changed_at: datetime


@dataclass(frozen=True)
class Board(ItemLists):
    """What is known about a conversation so far.

    Attributes:
        thread_id: The conversation's thread.
        title: The generated title; `None` if there is none. Lists prefer a title that a person set.
        summary: The generated summary of the conversation up to `through_sequence`.
        edited_summary: A summary that a person wrote; it comes first, and no model changes it.
        context_notes: Notes on how to continue.
        items: Its items: pinned ones first, then the most recently mentioned; or in the order of a perspective.
        through_sequence: The last message that it covers; -1 if none.
        next_sequence: The number of the next message.
        version: How often the board was changed.
        language: The text search configuration of the conversation's language, if known.
        model: The model that wrote the summary.
        tokens: The approximate tokens of the summary.
        quality: How much of the summarized content the summary contains, from 0 to 1.
        edited_by: Who wrote `edited_summary`.
        editor_kind: The kind of `edited_by`: `person`, `application` or `import`.
        edited_at: When.
        updated_at: When the board was changed; `None` if there is no board yet.
        changes: Its history, newest first, if it was requested.
        unlisted: How many more items there are than `items` lists.
        revision: How often a message of the conversation was edited or forgotten.
        gone: Of a board as it was at an instant, how many of its items a person has deleted since.
        rewritten: Whether its summary, notes and title have been written anew since that instant, so that they are
            empty: their earlier words are not kept.
    """

    thread_id: str
    summary: str = field(default="", repr=False)
    edited_summary: str | None = field(default=None, repr=False)
    context_notes: str = field(default="", repr=False)
    items: list[BoardItem] = field(default_factory=list)
    through_sequence: int = -1
    next_sequence: int = 0
    version: int = 0
    language: str | None = None
    model: str | None = None
    tokens: int = 0
    quality: float | None = None
    edited_by: str | None = None
    editor_kind: AuthorKind | None = None
    edited_at: datetime | None = None
    updated_at: datetime | None = None
    changes: list[BoardChange] = field(default_factory=list, repr=False)
    unlisted: int = 0
    revision: int = 0
    title: str | None = field(default=None, repr=False)
    gone: int = 0
    rewritten: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether the board is empty."""
        return not (self.items or self.summary or self.edited_summary)

    def _repr_html_(self) -> str:
        """Return the board as an HTML card for a notebook."""
        from langchain_supabase_memory.operations.boards.html import board_card

        return board_card(self)


def read_board(
    key: ConversationKey,
    *,
    history: bool = False,
    limit: int = 500,
    retention: Retention | None = None,
    perspective: Perspective | None = None,
    at: datetime | None = None,
    version: int | None = None,
) -> Flow[Board]:
    """Return the board: its summary and the items of each kind; as it is, or as it was at an instant.

    At an instant, items that were added later are absent, and those that were superseded, closed or edited later
    are as they were. What a person has deleted since, and what was read from messages that are forgotten, stays
    deleted.

    Args:
        key: The conversation.
        history: Whether to include the changes that people made.
        limit: The maximum number of items, up to 1,000: pinned ones, then the most recently mentioned; at most 500
            changes, the newest.
        retention: The retention; a board beyond its `max_summary_age` is not returned.
        perspective: What an agent watches: its order of the items that hold, without kinds that it is not shown;
            the others come last.
        at: The instant, with a time zone, by the database's clock; now by default.
        version: Instead, the version of the board.

    Returns:
        The board; an empty one if none exists, or if none existed then.

    Raises:
        ConfigurationError: It is no perspective.
        InvalidInputError: The time is naive.
    """
    require_type("perspective", perspective, Perspective, EXAMPLE, optional=True)
    bounds = {"p_history": history, "p_limit": limit, "p_retention": retention_argument(retention)}
    then = {"p_at": moment("at", at), "p_version": version}
    row = yield from call("memory_board", {**conversation_ids(key), **bounds, **then})
    board = Board(key.thread_id) if row is None else board_of(key, row)
    if perspective is None:
        return board
    effort = ordering_effort(item.text for item in board.items)
    return (yield from offload(partial(_seen_by, perspective, board), effort, warm_caches=KEPT))


def _seen_by(perspective: Perspective, board: Board) -> Board:
    """Return a board in the order of a perspective."""
    seen = ranked([item for item in board.items if item.is_open], perspective)
    left = sum(item.is_open for item in board.items) - len(seen)
    return replace(
        board,
        items=[*seen, *(item for item in board.items if not item.is_open)],
        unlisted=board.unlisted + left,
    )


def board_of(key: ConversationKey, row: Mapping[str, Any]) -> Board:
    """Return a board of the SQL functions as a value."""
    plain: dict[str, Any] = {name: row[name] for name in _PLAIN}
    return Board(
        thread_id=key.thread_id,
        items=[board_item(each) for each in row["items"]],
        changes=[_change(each) for each in row["changes"] or []],
        edited_at=time_of(row["edited_at"]),
        updated_at=time_of(row["updated_at"]),
        **plain,
    )


_PLAIN = (
    "title",
    "summary",
    "edited_summary",
    "context_notes",
    "through_sequence",
    "next_sequence",
    "version",
    "language",
    "model",
    "tokens",
    "quality",
    "edited_by",
    "editor_kind",
    "unlisted",
    "gone",
    "rewritten",
    "revision",
)


def board_item(row: Mapping[str, Any]) -> BoardItem:
    """Return an item from a row of the SQL functions."""
    values = dict(row)
    for name in _TIMES:
        value = row.get(name)
        if value is not None:
            values[name] = datetime.fromisoformat(value)
    return frozen_value(BoardItem, values)


def _change(row: Mapping[str, Any]) -> BoardChange:
    fields = {name: row[name] for name in ("version", "item_id", "action", "before", "changed_by")}
    return BoardChange(**fields, changed_at=datetime.fromisoformat(row["changed_at"]))


_TIMES: Final = tuple(each.name for each in fields(BoardItem) if each.name.endswith("_at"))
