"""A board as a value: read, and written out for a prompt."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory.effects import Flow, call
from langchain_supabase_memory.operations.arguments import conversation_ids, retention_argument
from langchain_supabase_memory.operations.boards.kinds import BoardItemKind, ItemLists
from langchain_supabase_memory.operations.boards.schema import AuthorKind

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
"""How a reader is told who wrote something."""


@dataclass(frozen=True)
class BoardItem:
    """An item of a board, with its evidence.

    Attributes:
        id: Its uuid, as a string.
        kind: What it is, such as `fact` or `action`; the page on boards has all kinds.
        text: What it says.
        state: One of the states of its kind: `current`; or `open`, until something closes it (`done`, `answered`).
        type: Of an entity `person`, `place`, `organization`, `date` or `other`.
        quote: The words that say so: a part of the first of its messages. `None` where a person wrote it.
        message_ids: The messages that it came from, the first first.
        sequences: Their numbers.
        importance: How much it matters, from 0 to 1.
        first_seen_at: When it was first said.
        last_seen_at: When it was last said.
        version: How often it was changed, from 1.
        superseded_by: The item that contradicts it.
        superseded_at: When that was said; `None` as long as it holds.
        pinned: Whether a person holds on to it.
        author: Who wrote it: a model's name, or a person.
        edited_by: Who changed it last: a person or the application. No writer changes it since.
        edited_at: When.
        author_kind: What `author` is: `person`, `application`, `model`, `rule` (quotes were selected) or `import` (a
            file that does not say).
        editor_kind: What `edited_by` is: `person`, `application` or `import`.
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

    @property
    def written_by(self) -> str | None:
        """Who stands for its words, as a reader is told: `by a person`; `None` where the messages do that."""
        if self.edited_at is not None:
            return WRITTEN_BY[self.editor_kind or "person"]
        return None if self.sequences else WRITTEN_BY[self.author_kind]

    @property
    def is_open(self) -> bool:
        """Whether it holds, and is neither done nor answered."""
        return self.superseded_at is None and self.state in ("current", "open")


@dataclass(frozen=True)
class BoardChange:
    """A change of a board.

    Attributes:
        version: The board's version that it made.
        item_id: The item; `None` for the summary or the whole board.
        action: What was done.
        before: What stood there before, where that was replaced.
        changed_by: Who did it: a model's name, or a person.
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
    """What is known of a conversation so far.

    Attributes:
        thread_id: The conversation's thread.
        title: What its writer calls the conversation; `None` if it has not said. A list shows what a person set first.
        summary: The conversation up to `through_sequence`, as the writer has it.
        edited_summary: What a person wrote about it; it stands first, and no model changes it.
        context_notes: How to go on.
        items: Its items: pinned ones first, then what was said last.
        through_sequence: The last message that is taken in; -1 if none.
        next_sequence: The number that the next message will have.
        version: How often the board was changed.
        language: The text search configuration of the conversation's language, if known.
        model: What wrote the summary.
        tokens: The approximate tokens of the summary.
        quality: How much of what it summarizes it holds, from 0 to 1.
        edited_by: Who wrote `edited_summary`.
        editor_kind: What that is: `person`, `application` or `import`.
        edited_at: When.
        updated_at: When the board was changed; `None` if there is none yet.
        changes: Its history, the newest first, if that was asked for.
        unlisted: How many items there are beyond those that are listed.
        revision: How often a message of the conversation was edited or forgotten.
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

    @property
    def is_empty(self) -> bool:
        """Whether nothing is on it."""
        return not (self.items or self.summary or self.edited_summary)

    def _repr_html_(self) -> str:
        """The board as a card, in a notebook."""
        from langchain_supabase_memory.operations.boards.html import board_card

        return board_card(self)


def read_board(
    key: ConversationKey, *, history: bool = False, limit: int = 500, retention: Retention | None = None
) -> Flow[Board]:
    """The board: its living summary with facts, entities, topics, action items and questions.

    Args:
        key: The conversation.
        history: Whether what people changed comes with it.
        limit: The most items, up to 1,000: pinned ones, then what was said last; of changes the newest 500.
        retention: What is kept; a board beyond its `max_summary_age` is not shown.

    Returns:
        The board; an empty one if there is none.
    """
    bounds = {"p_history": history, "p_limit": limit, "p_retention": retention_argument(retention)}
    row = yield from call("memory_board", {**conversation_ids(key), **bounds})
    return Board(key.thread_id) if row is None else _board(key, row)


def _board(key: ConversationKey, row: Mapping[str, Any]) -> Board:
    plain: dict[str, Any] = {name: row[name] for name in _PLAIN}
    return Board(
        thread_id=key.thread_id,
        items=[board_item(each) for each in row["items"]],
        changes=[_change(each) for each in row["changes"] or []],
        edited_at=_time(row["edited_at"]),
        updated_at=_time(row["updated_at"]),
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
    "revision",
)


def board_item(row: Mapping[str, Any]) -> BoardItem:
    """An item as the SQL functions give it."""
    fields: dict[str, Any] = {n: _time(value) if n.endswith("_at") else value for n, value in row.items()}
    return BoardItem(**fields)


def _change(row: Mapping[str, Any]) -> BoardChange:
    fields = {name: row[name] for name in ("version", "item_id", "action", "before", "changed_by")}
    return BoardChange(**fields, changed_at=datetime.fromisoformat(row["changed_at"]))


def _time(value: str | None) -> datetime | None:
    return None if value is None else datetime.fromisoformat(value)
