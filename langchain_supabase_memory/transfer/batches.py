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

_ROW: Final = ("id", "role", "text", "characters", "tokens", "created_at", "metadata", "images", "payload")


@dataclass
class Batch:
    """What one call stores: messages of one conversation; or an event that is done by itself.

    Attributes:
        thread: The conversation; `None` before the first.
        rows: Its messages, by their ids.
        size: About how many bytes they take.
        largest: And the largest of them.
        other: What is done after they are stored.
        is_first: Whether the conversation begins with it.
        error: What ended the source; what was read before is stored first.
    """

    thread: Thread | None
    rows: dict[str, dict[str, Any]] = field(default_factory=dict, repr=False)
    size: int = 0
    largest: int = 0
    other: Edits | OptOuts | Lost | Problem | None = None
    is_first: bool = False
    error: Exception | None = None


class Batches:
    """Reads a source, and gives what one call stores.

    Args:
        source: The source.
        redactor: What takes secrets and personal data out.
        items: The most messages of a batch.
        size: About the most bytes of a batch.
    """

    def __init__(self, source: Source, redactor: Redactor | None, items: int, size: int) -> None:
        self._made = self._batches(source)
        self._redactor = redactor
        self._items = items
        self._size = size
        self._number = 0  # of the next message in its conversation

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
                continue
            if isinstance(event, Said):
                event = self._take(event, batch)
            if event is not None:
                batch.other = event
            if batch.other is not None or len(batch.rows) >= self._items or batch.size >= self._size:
                yield batch
                batch = Batch(batch.thread)

    def _take(self, said: Said, batch: Batch) -> Lost | Problem | None:
        """Put a message into a batch, or say why not."""
        if batch.thread is None:
            return Problem(
                "A message stands before any conversation.", "Begin with the conversation's line.", said.place
            )
        number, self._number = self._number, self._number + 1
        if said.message is None:
            row: dict[str, Any] = {name: said.row[name] for name in _ROW if name in said.row} if said.row else {}
            if self._redactor is not None:
                row = _redacted(row, self._redactor)
        else:
            if not content.was_said(said.message):
                return Lost("what nobody said, such as a summary in a graph's state", said.place)
            said.message.id = said.message.id or ids.message_id(batch.thread.thread_id, number)
            row = codec.to_row(said.message, self._redactor)
            beside = None if said.metadata is None else sanitizer.encode(dict(said.metadata))
            row["metadata"] = beside if self._redactor is None else redacted_value(beside, self._redactor)
            row["created_at"] = None if said.created_at is None else said.created_at.isoformat()
        if (strange := _time_problem(row, said)) is not None:
            return strange
        row_id = row.get("id")
        if not isinstance(row_id, str):
            return Problem("A message has no id.", "Take the line as it was exported.", said.place)
        if row_id in batch.rows:
            if batch.rows[row_id] == row:
                return Lost("the same message a second time", said.place)
            return Problem(
                "A conversation has two different messages with one id.", "Give one of them another id.", said.place
            )
        batch.rows[row_id] = row
        size = said.size or oversize.size(row)
        batch.size += size
        batch.largest = max(batch.largest, size)
        return None


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
