"""The import flow: many messages per call, and many conversations per call if they are short; ends with a receipt."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory.effects import INLINE_LIMIT, Flow, call, offload
from langchain_supabase_memory.errors import InvalidInputError, SupabaseMemoryError, TooLargeError
from langchain_supabase_memory.operations import conversations
from langchain_supabase_memory.operations.arguments import conversation_ids, retention_argument
from langchain_supabase_memory.operations.columns import CARRIED
from langchain_supabase_memory.transfer.batches import ORPHANED, SMALLER, Batches, BatchLimits
from langchain_supabase_memory.transfer.retention_count import RetentionCount
from langchain_supabase_memory.transfer.sanitize import clean
from langchain_supabase_memory.transfer.values import (
    ImportReceipt,
    SourceProblem,
    ThreadEdits,
    ThreadOptOuts,
    ThreadStart,
    UserProfile,
    UserTopics,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from langchain_supabase_memory.memory.services import Services
    from langchain_supabase_memory.settings import Retention
    from langchain_supabase_memory.transfer.batches import Batch
    from langchain_supabase_memory.transfer.values import Source
    from langchain_supabase_memory.values import ConversationKey

MESSAGES: Final = 1000
"""The maximum number of messages in one call."""

BYTES: Final = 4 * 1024 * 1024
"""The approximate maximum size of one call, in bytes."""


CONVERSATIONS: Final = 50
"""The maximum number of conversations in one call."""

_KEY: Final = ("agent_id", "thread_id")
"""The columns under which a conversation is stored; the others are restored after its messages."""


@dataclass
class _OpenThread:
    """A conversation that is being read, or waits to be stored.

    Attributes:
        thread: The conversation, as the source describes it.
        key: The key under which it is stored.
        retention_count: Counts what retention would remove, for a dry run.
        rows: The messages to store, by id.
        places: Their locations in the source.
        size: Their approximate size in bytes.
        messages: How many messages it has had.
        edits: What people have set on it.
        is_stored: Whether part of it was already stored by separate calls.
    """

    thread: ThreadStart
    key: ConversationKey
    retention_count: RetentionCount
    rows: dict[str, dict[str, Any]] = field(default_factory=dict, repr=False)
    places: dict[str, str] = field(default_factory=dict)
    size: int = 0
    messages: int = 0
    edits: ThreadEdits | None = None
    is_stored: bool = False

    @property
    def before(self) -> dict[str, Any] | None:
        """Settings to restore before its first message."""
        return {"opt_outs": self.thread.opt_outs} if self.thread.opt_outs else None

    @property
    def after(self) -> dict[str, Any] | None:
        """Settings to restore after its messages."""
        told = {name: getattr(self.thread, name) for name in CARRIED if name not in _KEY}
        told |= {name: value.isoformat() for name, value in told.items() if isinstance(value, datetime)}
        if self.edits is not None:
            told.update(self.edits.document)
        return told if self.edits is not None or any(told.values()) else None

    @property
    def place(self) -> str:
        """The location of its settings in the source."""
        return self.thread.place if self.edits is None else self.edits.place


class Importer:
    """Runs one import.

    Args:
        memory: The memory.
        agent_id: The conversations' agent, if the source names none.
        owner: Returns a conversation's owner, which replaces the memory's.
        dry_run: Whether nothing is stored.
        skip: Whether unreadable items are recorded in the receipt instead of ending the import.
        progress: Called with the receipt so far, after each call.
    """

    def __init__(
        self,
        memory: Services,
        *,
        agent_id: str | None,
        owner: Callable[[ThreadStart], str] | None,
        dry_run: bool,
        skip: bool,
        progress: Callable[[ImportReceipt], None] | None,
    ) -> None:
        self._memory = memory
        self._agent_id = agent_id
        self._owner = owner
        self._skip = skip
        self._progress = progress
        self._receipt = ImportReceipt(dry_run=dry_run)
        self._retention: Retention | None = memory.settings.retention
        self._items, self._bytes = MESSAGES, BYTES
        self._open: _OpenThread | None = None  # the conversation that is being read
        self._waiting: list[_OpenThread] = []  # complete and short: stored together by one call

    def flow(self, source: Source) -> Flow[ImportReceipt]:
        """Store the content of a source; arguments and errors as for `import_conversations`."""
        if self._owner is None:
            self._memory.owner()  # fails before anything is read
        allowed = yield from call("memory_limits", {})
        self._items, self._bytes = min(MESSAGES, allowed["call_items"]), min(BYTES, allowed["call_bytes"] // 2)
        limits = BatchLimits(self._items, self._bytes, allowed["message_bytes"])
        batches = Batches(source, self._memory.redactor, limits, skip=self._skip)
        try:
            while (batch := (yield from offload(batches.take, INLINE_LIMIT))) is not None:
                if batch.is_first:
                    yield from self._end()
                    yield from self._begin(batch.thread)
                yield from self._store(batch)
                if self._progress is not None:
                    self._progress(self._receipt)
            yield from self._settle()
        finally:
            batches.close()
        if self._progress is not None:
            self._progress(self._receipt)
        return self._receipt

    def _begin(self, thread: ThreadStart | None) -> Flow[None]:
        """Start a conversation."""
        if thread is None:
            return
        user_id = None if self._owner is None else self._owner(thread)
        try:
            key = self._memory.key(thread.thread_id, user_id, thread.agent_id or self._agent_id)
        except InvalidInputError as error:
            yield from self._settle()
            self._refuse(thread.place, error)
            return
        self._receipt.conversations += 1
        self._open = _OpenThread(thread, key, RetentionCount(self._retention))

    def _store(self, batch: Batch) -> Flow[None]:
        """Store a batch, or keep it until its conversation is complete."""
        other = batch.other
        if batch.rows:
            yield from self._take(batch)
        for each in batch.lost.values():
            self._receipt.record_loss(each.kind, each.place, each.count)
        if isinstance(other, SourceProblem) or batch.error is not None:
            yield from self._settle()
            if isinstance(other, SourceProblem):
                raise self._with_progress(InvalidInputError(f"{other.place}: {other.why}", hint=other.hint))
            assert batch.error is not None
            raise self._with_progress(batch.error)
        if isinstance(other, ThreadOptOuts):
            user_id = self._memory.owner()
            yield from self._restore({"opt_outs": other.opt_outs}, other.place, {"p_user_id": user_id})
        elif isinstance(other, UserProfile | UserTopics):
            if isinstance(other, UserProfile):
                self._receipt.items += len(other.document["profile"])
            edits = other.document if isinstance(other, UserProfile) else {"topics": other.topics}
            yield from self._settle()
            yield from self._restore(edits, other.place, {"p_user_id": self._memory.owner()})
        elif isinstance(other, ThreadEdits):
            if self._open is None:
                self._receipt.record_loss(ORPHANED, other.place)
                return
            if self._open.edits is not None:
                yield from self._store_alone(self._open)
                yield from self._restore(
                    self._open.edits.document, self._open.edits.place, conversation_ids(self._open.key)
                )
            self._open.edits = other

    def _take(self, batch: Batch) -> Flow[None]:
        """Add messages to the conversation that is being read."""
        held = self._open
        if held is None:
            self._receipt.record_loss(ORPHANED, next(iter(batch.places.values())), len(batch.places))
            return
        held.messages += len(batch.rows)
        self._receipt.messages += len(batch.rows)
        if self._receipt.dry_run:
            for row in batch.rows.values():
                held.retention_count.add(row)
            return
        if held.rows:
            yield from self._store_alone(held)
        held.rows, held.places, held.size = batch.rows, batch.places, batch.size
        if held.is_stored or len(held.rows) >= self._items or held.size >= self._bytes:
            yield from self._store_alone(held)

    def _end(self) -> Flow[None]:
        """End a conversation: store the rest of it."""
        held, self._open = self._open, None
        if held is None:
            return
        self._receipt.expired += held.retention_count.expired
        if not (held.messages or held.edits or held.before or held.thread.stands_alone):
            self._receipt.record_loss("a conversation without messages", held.thread.place)
        elif held.is_stored:
            yield from self._finish(held)
        elif not self._receipt.dry_run:
            messages, size = (sum(len(each.rows) for each in self._waiting), sum(each.size for each in self._waiting))
            if self._waiting and (
                len(self._waiting) >= CONVERSATIONS
                or messages + len(held.rows) > self._items
                or size + held.size > self._bytes
                or self._waiting[0].key.user_id != held.key.user_id
            ):
                yield from self._flush()
            self._waiting.append(held)

    def _settle(self) -> Flow[None]:
        """Store everything that was read."""
        yield from self._end()
        yield from self._flush()

    def _flush(self) -> Flow[None]:
        """Store the waiting conversations by one call, and those that it refuses by separate calls."""
        waiting, self._waiting = self._waiting, []
        done: list[Mapping[str, Any]] = [{"failed": "alone"}] * len(waiting)
        if len(waiting) > 1:
            arguments = {
                "p_conversations": [
                    {
                        "thread_id": each.key.thread_id,
                        "agent_id": each.key.agent_id,
                        "before": self._clean(each.before),
                        "messages": [*each.rows.values()] or None,
                        "edits": self._clean(each.after),
                    }
                    for each in waiting
                ],
                "p_user_id": waiting[0].key.user_id,
                "p_retention": retention_argument(self._retention),
            }
            with suppress(InvalidInputError, TooLargeError):  # storing them separately finds the cause
                done = yield from call("memory_import", arguments)
        for each, answer in zip(waiting, done, strict=True):
            if "failed" not in answer:
                self._receipt.restored += answer["restored"]
                self._receipt.refused += answer["refused"]
                new = answer["appended"]
                result = conversations.AppendedRows(
                    new, len(each.rows) - new, different=answer["different"], expired=answer["expired"]
                )
                self._count(result, each.places)
        for each, answer in zip(waiting, done, strict=True):
            if "failed" in answer:
                yield from self._store_alone(each)
                yield from self._finish(each)

    def _store_alone(self, thread: _OpenThread) -> Flow[None]:
        """Store one conversation separately, after the waiting ones; its opt-outs apply from its first message on."""
        yield from self._flush()
        ids = conversation_ids(thread.key)
        if thread.before is not None and not thread.is_stored:
            yield from self._restore(thread.before, thread.thread.place, ids)
        thread.is_stored = True
        rows, places = thread.rows, thread.places
        thread.rows, thread.places, thread.size = {}, {}, 0
        if rows:
            done = yield from conversations.append_rows(thread.key, rows, retention=self._retention, skip=self._skip)
            self._count(done, places)

    def _finish(self, thread: _OpenThread) -> Flow[None]:
        """Restore what people set on a conversation whose messages are stored."""
        if thread.rows:
            yield from self._store_alone(thread)
        if thread.after is not None:
            yield from self._restore(thread.after, thread.place, conversation_ids(thread.key))

    def _count(self, done: conversations.AppendedRows, places: Mapping[str, str]) -> None:
        """Count the results of stored messages."""
        receipt = self._receipt
        receipt.stored += done.new
        receipt.known += done.known
        receipt.expired += done.expired
        for row_id in done.smaller:
            receipt.record_loss(SMALLER, places[row_id])
        for row_id in done.different:
            receipt.record_loss("messages that are there already with other content, which stays", places[row_id])
        for row_id, error in done.refused.items():
            self._refuse(places[row_id], error)

    def _clean(self, edits: Mapping[str, Any] | None) -> dict[str, Any] | None:
        return None if edits is None else clean(edits, self._memory.redactor)

    def _restore(self, edits: Mapping[str, Any], place: str, ids: Mapping[str, Any]) -> Flow[None]:
        if self._receipt.dry_run:
            return
        try:
            answer = yield from call("memory_restore", {**ids, "p_edits": self._clean(edits)})
        except (InvalidInputError, TooLargeError) as error:
            self._refuse(place, error)
            return
        self._receipt.restored += answer["restored"]
        self._receipt.refused += answer["refused"]

    def _refuse(self, place: str, error: SupabaseMemoryError) -> None:
        """Record what cannot be stored if `skip` is set; otherwise raise and end the import."""
        if not self._skip:
            raise self._with_progress(type(error)(f"{place}: {error.message}", code=error.code, hint=error.hint))
        self._receipt.record_loss(error.reason, place)

    def _with_progress(self, error: Exception) -> Exception:
        """Add to an error what was stored before it."""
        if not isinstance(error, SupabaseMemoryError):
            return error
        stored = self._receipt.stored + self._receipt.known
        if stored and not self._receipt.dry_run:
            count = "1 message" if stored == 1 else f"{stored:,} messages"
            error.hint += f" What stands before it is stored ({count}); the same import goes on from there."
        return error
