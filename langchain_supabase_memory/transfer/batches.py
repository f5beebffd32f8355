"""What a source yields, put together into what one call stores; messages become rows here, redacted."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.language.messages import codec, content, oversize, sanitizer
from langchain_supabase_memory.language.messages.redaction.payload import redacted_value
from langchain_supabase_memory.transfer import ids
from langchain_supabase_memory.transfer.values import Edits, Lost, OptOuts, Problem, Said, Thread

if TYPE_CHECKING:
    from collections.abc import Iterator

    from langchain_supabase_memory.language.messages.redaction.redactor import Redactor
    from langchain_supabase_memory.transfer.values import Event, Source

AHEAD: Final = timedelta(days=1)
"""A time may be so far ahead: clocks differ."""

ORPHANED: Final = "messages and edits of a conversation that cannot be stored"
SMALLER: Final = "parts of messages that are larger than the database takes"
UNTIMED: Final = "times of messages that the source does not have: they have that of the import"

_ROW: Final = ("id", "role", "text", "characters", "tokens", "created_at", "metadata", "images", "payload")


@dataclass(frozen=True)
class Limits:
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

    thread: Thread | None
    rows: dict[str, dict[str, Any]] = field(default_factory=dict, repr=False)
    places: dict[str, str] = field(default_factory=dict)
    size: int = 0
    lost: dict[str, Lost] = field(default_factory=dict)
    other: Edits | OptOuts | Problem | None = None
    is_first: bool = False
    error: Exception | None = None

    def lose(self, what: str, place: str, count: int = 1) -> None:
        """Note something that cannot be kept."""
        before = self.lost.get(what)
        self.lost[what] = Lost(what, place, count) if before is None else Lost(what, before.place, before.count + count)


class Batches:
    """Reads a source, and gives what one call stores.

    Args:
        source: The source.
        redactor: What takes secrets and personal data out.
        limits: How much one call stores.
        skip: Whether what cannot be read is noted like what cannot be kept.
    """

    def __init__(self, source: Source, redactor: Redactor | None, limits: Limits, *, skip: bool) -> None:
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
            if isinstance(event, Thread):
                yield batch
                batch, self._number = Batch(event, is_first=True), 0
                self._is_untimed = self._is_broken = False
                continue
            other = self._take(event, batch)
            if isinstance(other, Problem) and self._skip:
                batch.lose(other.why, other.place)
                if other.breaks:
                    yield batch
                    batch, self._is_broken = Batch(None), True
                continue
            batch.other = other
            if other is not None or len(batch.rows) >= self._limits.items or batch.size >= self._limits.bytes:
                yield batch
                batch = Batch(batch.thread)

    def _take(self, event: Event, batch: Batch) -> Edits | OptOuts | Problem | None:
        """Put an event into a batch, or return what is done by itself."""
        if isinstance(event, Lost):
            batch.lose(event.what, event.place, event.count)
        elif not isinstance(event, Said | Edits):
            return event if isinstance(event, OptOuts | Problem) else None
        elif self._is_broken:
            batch.lose(ORPHANED, event.place)
        elif batch.thread is None:
            return Problem("It stands before any conversation.", "Begin with the conversation's line.", event.place)
        elif isinstance(event, Edits):
            return event
        else:
            return self._add(event, batch, batch.thread)
        return None

    def _add(self, said: Said, batch: Batch, thread: Thread) -> Problem | None:
        """Put a message into a batch, or say why not."""
        number, self._number = self._number, self._number + 1
        if said.message is not None and not content.was_said(said.message):
            batch.lose("what nobody said, such as a summary in a graph's state", said.place)
            return None
        row = self._row(said, thread, number)
        if (strange := _time_problem(row, said)) is not None:
            return strange
        row_id = row.get("id")
        if not isinstance(row_id, str):
            return Problem("A message has no id.", "Take the line as it was exported.", said.place)
        size = said.size or oversize.size(row)
        if size > self._limits.message_bytes:
            whole, row = row, codec.fitted(row, self._limits.message_bytes)
            size = oversize.size(row)
            if row is not whole:
                batch.lose(SMALLER, said.place)
        if row_id in batch.rows:
            if batch.rows[row_id] == row:
                batch.lose("the same message a second time", said.place)
                return None
            return Problem(
                "A conversation has two different messages with one id.", "Give one of them another id.", said.place
            )
        if row.get("created_at") is None and not self._is_untimed:
            self._is_untimed = True
            batch.lose(UNTIMED, said.place)
        batch.rows[row_id] = row
        batch.places[row_id] = said.place
        batch.size += size
        return None

    def _row(self, said: Said, thread: Thread, number: int) -> dict[str, Any]:
        """A message as `memory_append` takes it, redacted."""
        if said.message is None:
            row = {name: said.row[name] for name in _ROW if name in said.row} if said.row else {}
            return row if self._redactor is None else _redacted(row, self._redactor)
        said.message.id = said.message.id or ids.message_id(thread.thread_id, number)
        row = codec.to_row(said.message, self._redactor)
        beside = None if said.metadata is None else sanitizer.encode(dict(said.metadata))
        row["metadata"] = redacted_value(beside, self._redactor)
        row["created_at"] = None if said.created_at is None else said.created_at.isoformat()
        return row


def _redacted(row: dict[str, Any], redactor: Redactor) -> dict[str, Any]:
    """An exported row as the redactor leaves it."""
    message = codec.from_payload(row.get("payload"))
    if codec.unreadable(message) is None:
        message.id = message.id or row.get("id")
        made = codec.to_row(message, redactor)
        return {**row, **made, "metadata": redacted_value(row.get("metadata"), redactor)}
    kept: dict[str, Any] = {name: row[name] for name in ("id", "role", "created_at") if name in row}
    text = str(redacted_value(row.get("text") or "", redactor))
    payload = redacted_value(row.get("payload"), redactor)
    beside = redacted_value(row.get("metadata"), redactor)
    return {
        **kept, "text": text, "payload": payload, "metadata": beside, "images": None,
        "characters": len(text), "tokens": max(1, len(text) // 4),
    }  # fmt: skip


def _time_problem(row: dict[str, Any], said: Said) -> Problem | None:
    """What is wrong with when it was said."""
    time = said.created_at
    if time is None and (given := row.get("created_at")) is not None:
        try:
            time = datetime.fromisoformat(given)
        except (TypeError, ValueError):
            return Problem("A message's time cannot be read.", "Write it as 2026-01-31T12:00:00Z.", said.place)
    if time is None:
        return None
    if time.tzinfo is None:
        return Problem("A message's time has no time zone.", "Write it as 2026-01-31T12:00:00Z.", said.place)
    if time.year < 2:
        return Problem("A message's time is before every calendar.", "Correct it, or leave it out.", said.place)
    if time > datetime.now(UTC) + AHEAD:
        return Problem("A message's time is in the future.", "Correct it, or leave it out.", said.place)
    return None
