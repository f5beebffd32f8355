"""Groups the events of a source into batches, each stored by one call; converts messages to redacted rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.language.messages import codec, content, sanitizer, truncation
from langchain_supabase_memory.language.messages.redaction.payload import redact_value
from langchain_supabase_memory.operations.columns import MESSAGE_CARRIED
from langchain_supabase_memory.transfer import ids
from langchain_supabase_memory.transfer.values import (
    LossCount,
    SourceMessage,
    SourceProblem,
    ThreadEdits,
    ThreadOptOuts,
    ThreadStart,
    UserProfile,
    UserTopics,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from langchain_supabase_memory.language.messages.redaction.redactor import Redactor
    from langchain_supabase_memory.transfer.values import Event, Source

AHEAD: Final = timedelta(days=1)
"""How far in the future a time may be, because clocks differ."""

ORPHANED: Final = "messages and edits of a conversation that cannot be stored"
SMALLER: Final = "parts of messages that are larger than the database takes"
UNTIMED: Final = "times of messages that the source does not have: they have that of the import"

_ROW: Final = ("id", *(name for name in MESSAGE_CARRIED if name != "message_id"))


@dataclass(frozen=True)
class BatchLimits:
    """The limits of a batch.

    Attributes:
        items: The maximum number of messages in a batch.
        bytes: The approximate maximum size of a batch, in bytes.
        message_bytes: The maximum size of a message, in bytes; a larger one is truncated.
    """

    items: int
    bytes: int
    message_bytes: int


@dataclass
class Batch:
    """What one call stores: messages of one conversation, or one other event.

    Attributes:
        thread: The conversation; `None` before the first one, and if it is unknown.
        rows: Its messages, by id.
        places: Their locations in the source, by id.
        size: Their approximate size in bytes.
        lost: What could not be stored since the last batch.
        other: An event to process after the messages are stored.
        is_first: Whether the conversation begins with this batch.
        error: The error that ended the source; everything read before it is stored first.
    """

    thread: ThreadStart | None
    rows: dict[str, dict[str, Any]] = field(default_factory=dict, repr=False)
    places: dict[str, str] = field(default_factory=dict)
    size: int = 0
    lost: dict[str, LossCount] = field(default_factory=dict)
    other: ThreadEdits | ThreadOptOuts | UserProfile | UserTopics | SourceProblem | None = None
    is_first: bool = False
    error: Exception | None = None

    def record_loss(self, kind: str, place: str, count: int = 1) -> None:
        """Count something that cannot be stored."""
        before = self.lost.get(kind)
        self.lost[kind] = (
            LossCount(kind, place, count) if before is None else LossCount(kind, before.place, before.count + count)
        )


class Batches:
    """Reads a source, and returns batches.

    Args:
        source: The source.
        redactor: Removes secrets and personal data.
        limits: The limits of a batch.
        skip: Whether unreadable items are counted as lost instead of ending the import.
    """

    def __init__(self, source: Source, redactor: Redactor | None, limits: BatchLimits, *, skip: bool) -> None:
        self._made = self._batches(source)
        self._redactor = redactor
        self._limits = limits
        self._skip = skip
        self._number = 0  # of the next message in its conversation
        self._is_untimed = False  # whether missing times of the conversation's messages were already recorded
        self._is_broken = False  # whether the conversation of the messages is unknown

    def take(self) -> Batch | None:
        """Return the next batch; `None` at the end."""
        return next(self._made, None)

    def close(self) -> None:
        """Close the source. If an abandoned thread is reading it right now, it is left to finish."""
        try:
            self._made.close()  # type: ignore[attr-defined]
        except ValueError:
            return

    def _batches(self, source: Source) -> Iterator[Batch]:
        batch = Batch(None)
        events = iter(source)
        while True:
            try:
                event: Event | None = next(events, None)
            except InvalidInputError as error:
                batch.error = error
                yield batch
                return
            if event is None:
                yield batch
                return
            if isinstance(event, ThreadStart):
                yield batch
                batch, self._number = Batch(event, is_first=True), 0
                self._is_untimed = self._is_broken = False
                continue
            other = self._take(event, batch)
            if isinstance(other, SourceProblem) and self._skip:
                batch.record_loss(other.why, other.place)
                if other.breaks:
                    yield batch
                    batch, self._is_broken = Batch(None), True
                continue
            batch.other = other
            if other is not None or len(batch.rows) >= self._limits.items or batch.size >= self._limits.bytes:
                yield batch
                batch = Batch(batch.thread)

    def _take(
        self, event: Event, batch: Batch
    ) -> ThreadEdits | ThreadOptOuts | UserProfile | UserTopics | SourceProblem | None:
        """Add an event to a batch, or return it if it is processed separately."""
        if isinstance(event, LossCount):
            batch.record_loss(event.kind, event.place, event.count)
        elif not isinstance(event, SourceMessage | ThreadEdits):
            return event if isinstance(event, ThreadOptOuts | UserProfile | UserTopics | SourceProblem) else None
        elif self._is_broken:
            batch.record_loss(ORPHANED, event.place)
        elif batch.thread is None:
            return SourceProblem(
                "It comes before any conversation.", "Begin with the conversation's line.", event.place
            )
        elif isinstance(event, ThreadEdits):
            return event
        else:
            return self._add(event, batch, batch.thread)
        return None

    def _add(self, message: SourceMessage, batch: Batch, thread: ThreadStart) -> SourceProblem | None:
        """Add a message to a batch, or return a problem."""
        number, self._number = self._number, self._number + 1
        if message.message is not None and not content.is_conversation(message.message):
            batch.record_loss("messages that nobody wrote, such as a summary in a graph's state", message.place)
            return None
        row = self._row(message, thread, number)
        if (strange := _time_problem(row, message)) is not None:
            return strange
        row_id = row.get("id")
        if not isinstance(row_id, str):
            return SourceProblem("A message has no id.", "Take the line as it was exported.", message.place)
        size = message.size or truncation.size(row)
        if size > self._limits.message_bytes:
            whole, row = row, codec.fit_row(row, self._limits.message_bytes)
            size = truncation.size(row)
            if row is not whole:
                batch.record_loss(SMALLER, message.place)
        if row_id in batch.rows:
            if batch.rows[row_id] == row:
                batch.record_loss("the same message a second time", message.place)
                return None
            return SourceProblem(
                "A conversation has two different messages with one id.", "Give one of them another id.", message.place
            )
        if row.get("created_at") is None and not self._is_untimed:
            self._is_untimed = True
            batch.record_loss(UNTIMED, message.place)
        batch.rows[row_id] = row
        batch.places[row_id] = message.place
        batch.size += size
        return None

    def _row(self, message: SourceMessage, thread: ThreadStart, number: int) -> dict[str, Any]:
        """Convert a message to a redacted row for `memory_append`."""
        if message.message is None:
            row = {name: message.row[name] for name in _ROW if name in message.row} if message.row else {}
            return row if self._redactor is None else _redacted(row, self._redactor)
        message.message.id = message.message.id or ids.message_id(thread.thread_id, number)
        row = codec.to_row(message.message, self._redactor)
        beside = None if message.metadata is None else sanitizer.encode(dict(message.metadata))
        row["metadata"] = redact_value(beside, self._redactor)
        row["created_at"] = None if message.created_at is None else message.created_at.isoformat()
        return row


def _redacted(row: dict[str, Any], redactor: Redactor) -> dict[str, Any]:
    """Redact an exported row."""
    message = codec.from_payload(row.get("payload"))
    if codec.unreadable_message(message) is None:
        message.id = message.id or row.get("id")
        made = codec.to_row(message, redactor)
        return {**row, **made, "metadata": redact_value(row.get("metadata"), redactor)}
    kept: dict[str, Any] = {name: row[name] for name in ("id", "role", "created_at") if name in row}
    text = str(redact_value(row.get("text") or "", redactor))
    payload = redact_value(row.get("payload"), redactor)
    beside = redact_value(row.get("metadata"), redactor)
    return {
        **kept, "text": text, "payload": payload, "metadata": beside, "images": None,
        "characters": len(text), "tokens": max(1, len(text) // 4),
    }  # fmt: skip


def _time_problem(row: dict[str, Any], message: SourceMessage) -> SourceProblem | None:
    """Return what is wrong with a message's time."""
    time = message.created_at
    if time is None and (given := row.get("created_at")) is not None:
        try:
            time = datetime.fromisoformat(given)
        except (TypeError, ValueError):
            return SourceProblem("A message's time cannot be read.", "Write it as 2026-01-31T12:00:00Z.", message.place)
    if time is None:
        return None
    if time.tzinfo is None:
        return SourceProblem("A message's time has no time zone.", "Write it as 2026-01-31T12:00:00Z.", message.place)
    if time.year < 2:
        return SourceProblem(
            "A message's time is before every calendar.", "Correct it, or leave it out.", message.place
        )
    # A row of an export has the time that a database took, so that no export is refused.
    if message.row is None and time > datetime.now(UTC) + AHEAD:
        return SourceProblem("A message's time is in the future.", "Correct it, or leave it out.", message.place)
    return None
