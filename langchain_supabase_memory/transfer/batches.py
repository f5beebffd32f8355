"""What a source yields, put together into what one call stores; messages become rows here, redacted."""

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
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from langchain_supabase_memory.language.messages.redaction.redactor import Redactor
    from langchain_supabase_memory.transfer.values import Event, Source

AHEAD: Final = timedelta(days=1)
"""A time may be so far ahead: clocks differ."""

ORPHANED: Final = "messages and edits of a conversation that cannot be stored"
SMALLER: Final = "parts of messages that are larger than the database takes"
UNTIMED: Final = "times of messages that the source does not have: they have that of the import"

_ROW: Final = ("id", *(name for name in MESSAGE_CARRIED if name != "message_id"))


@dataclass(frozen=True)
class BatchLimits:
    """How much is put together.

    Attributes:
        items: The most messages of a batch.
        bytes: About the most bytes of a batch.
        message_bytes: The most bytes of a message; a larger one is made smaller.
    """

    items: int
    bytes: int
    message_bytes: int


@dataclass
class Batch:
    """What one call stores: messages of one conversation; or an event that is done by itself.

    Attributes:
        thread: The conversation; `None` before the first, and where it is not known.
        rows: Its messages, by their ids.
        places: Where these stand in the source, by the same.
        size: About how many bytes they take.
        lost: What could not be kept meanwhile.
        other: What is done after they are stored.
        is_first: Whether the conversation begins with it.
        error: What ended the source; what was read before is stored first.
    """

    thread: ThreadStart | None
    rows: dict[str, dict[str, Any]] = field(default_factory=dict, repr=False)
    places: dict[str, str] = field(default_factory=dict)
    size: int = 0
    lost: dict[str, LossCount] = field(default_factory=dict)
    other: ThreadEdits | ThreadOptOuts | SourceProblem | None = None
    is_first: bool = False
    error: Exception | None = None

    def record_loss(self, kind: str, place: str, count: int = 1) -> None:
        """Note something that cannot be kept."""
        before = self.lost.get(kind)
        self.lost[kind] = (
            LossCount(kind, place, count) if before is None else LossCount(kind, before.place, before.count + count)
        )


class Batches:
    """Reads a source, and gives what one call stores.

    Args:
        source: The source.
        redactor: What takes secrets and personal data out.
        limits: How much one call stores.
        skip: Whether what cannot be read is noted like what cannot be kept.
    """

    def __init__(self, source: Source, redactor: Redactor | None, limits: BatchLimits, *, skip: bool) -> None:
        self._made = self._batches(source)
        self._redactor = redactor
        self._limits = limits
        self._skip = skip
        self._number = 0  # of the next message in its conversation
        self._is_untimed = False  # whether it is noted that the conversation's messages lack times
        self._is_broken = False  # whether nobody knows of which conversation the messages are

    def take(self) -> Batch | None:
        """The next one; `None` at the end."""
        return next(self._made, None)

    def close(self) -> None:
        """End the source. One that is read at this moment by a thread that nobody waits for ends by itself."""
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

    def _take(self, event: Event, batch: Batch) -> ThreadEdits | ThreadOptOuts | SourceProblem | None:
        """Put an event into a batch, or return what is done by itself."""
        if isinstance(event, LossCount):
            batch.record_loss(event.kind, event.place, event.count)
        elif not isinstance(event, SourceMessage | ThreadEdits):
            return event if isinstance(event, ThreadOptOuts | SourceProblem) else None
        elif self._is_broken:
            batch.record_loss(ORPHANED, event.place)
        elif batch.thread is None:
            return SourceProblem(
                "It stands before any conversation.", "Begin with the conversation's line.", event.place
            )
        elif isinstance(event, ThreadEdits):
            return event
        else:
            return self._add(event, batch, batch.thread)
        return None

    def _add(self, message: SourceMessage, batch: Batch, thread: ThreadStart) -> SourceProblem | None:
        """Put a message into a batch, or say why not."""
        number, self._number = self._number, self._number + 1
        if message.message is not None and not content.is_conversation(message.message):
            batch.record_loss("what nobody said, such as a summary in a graph's state", message.place)
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
        """A message as `memory_append` takes it, redacted."""
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
    """An exported row as the redactor leaves it."""
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
    """What is wrong with when it was said."""
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
    if time > datetime.now(UTC) + AHEAD:
        return SourceProblem("A message's time is in the future.", "Correct it, or leave it out.", message.place)
    return None
