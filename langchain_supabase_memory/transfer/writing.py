"""The flow of an import: several messages a call, each once, in order; a receipt at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory.errors import (
    InvalidInputError,
    NotFoundError,
    SupabaseMemoryError,
    TooLargeError,
)
from langchain_supabase_memory.flow import LITTLE, Flow, call, compute
from langchain_supabase_memory.operations import conversations
from langchain_supabase_memory.operations.arguments import conversation_ids
from langchain_supabase_memory.transfer.batches import Batches
from langchain_supabase_memory.transfer.outliving import Outliving
from langchain_supabase_memory.transfer.values import Edits, ImportReceipt, Lost, OptOuts, Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from langchain_supabase_memory.memory.core import Core
    from langchain_supabase_memory.settings import Retention
    from langchain_supabase_memory.transfer.batches import Batch
    from langchain_supabase_memory.transfer.values import Source, Thread
    from langchain_supabase_memory.values import ConversationKey

MESSAGES: Final = 1000
"""The most messages of one call."""

BYTES: Final = 4 * 1024 * 1024
"""About the most bytes of one call."""


class Importing:
    """One import.

    Args:
        memory: The memory.
        user_id: Whose the conversations are.
        agent_id: Their agent, where the source knows none.
        owner: Whose a conversation is, in place of `user_id`.
        dry_run: Whether nothing is stored.
        skip: Whether what cannot be read is noted in the receipt, and does not end the import.
        progress: Told the receipt so far, after each call.
    """

    def __init__(
        self,
        memory: Core,
        *,
        user_id: str | None,
        agent_id: str | None,
        owner: Callable[[Thread], str] | None,
        dry_run: bool,
        skip: bool,
        progress: Callable[[ImportReceipt], None] | None,
    ) -> None:
        self._memory = memory
        self._user_id = user_id
        self._agent_id = agent_id
        self._owner = owner
        self._skip = skip
        self._progress = progress
        self._receipt = ImportReceipt(dry_run=dry_run)
        self._retention: Retention | None = memory.settings.retention
        self._outliving = Outliving(None)
        self._key: ConversationKey | None = None

    def flow(self, source: Source) -> Flow[ImportReceipt]:
        """Store what a source holds; arguments and errors as for `import_conversations`."""
        if self._owner is None:
            self._memory.owner(self._user_id)  # before anything is read
        limits = yield from call("memory_limits", {})
        items, size = min(MESSAGES, limits["call_items"]), min(BYTES, limits["call_bytes"] // 2)
        batches = Batches(source, self._memory.redactor, items, size)
        try:
            last: Thread | None = None
            while (batch := (yield from compute(batches.take, LITTLE))) is not None:
                if batch.is_first:
                    yield from self._end(last)
                    last = batch.thread
                    yield from self._begin(batch.thread)
                yield from self._store(batch)
                if batch.error is not None:
                    raise self._told(batch.error)
                if self._progress is not None:
                    self._progress(self._receipt)
            yield from self._end(last)
        finally:
            batches.close()
        return self._receipt

    def _begin(self, thread: Thread | None) -> Flow[None]:
        """A conversation begins: opt-outs hold from its first message on."""
        if thread is None:
            return
        self._outliving = Outliving(self._retention)
        user_id = self._user_id if self._owner is None else self._owner(thread)
        try:
            self._key = self._memory.key(thread.thread_id, user_id, thread.agent_id or self._agent_id)
        except InvalidInputError as error:
            raise _at(thread.place, error) from None
        self._receipt.conversations += 1
        if thread.opt_outs:
            yield from self._restore({"opt_outs": thread.opt_outs}, thread.place, conversation_ids(self._key))

    def _store(self, batch: Batch) -> Flow[None]:
        receipt, other = self._receipt, batch.other
        if batch.rows and self._key is not None:
            for row in batch.rows.values():
                self._outliving.add(row)
            receipt.messages += len(batch.rows)
            if not receipt.dry_run:
                try:
                    new = yield from conversations.append_rows(
                        self._key, batch.rows, largest=batch.largest, retention=self._retention
                    )
                except (InvalidInputError, TooLargeError) as error:
                    raise _at(batch.thread.place if batch.thread else "the beginning", error) from None
                receipt.stored += new
                receipt.known += len(batch.rows) - new
        if isinstance(other, Problem):
            if not self._skip:
                raise self._told(InvalidInputError(f"{other.place}: {other.why}", hint=other.hint))
            receipt.lose(other.why, other.place)
        elif isinstance(other, Lost):
            receipt.lose(other.what, other.place, other.count)
        elif isinstance(other, OptOuts):
            user_id = self._memory.owner(self._user_id)
            yield from self._restore({"opt_outs": other.opt_outs}, other.place, {"p_user_id": user_id})
        elif isinstance(other, Edits) and self._key is not None:
            yield from self._restore(other.document, other.place, conversation_ids(self._key))

    def _end(self, thread: Thread | None) -> Flow[None]:
        """A conversation ends: what is told of it as a whole is set, and what of it is not kept is counted."""
        self._receipt.expired += self._outliving.expired
        if thread is None or self._key is None:
            return
        told: dict[str, Any] = {
            "title": thread.title,
            "metadata": thread.metadata,
            "created_at": None if thread.created_at is None else thread.created_at.isoformat(),
            "updated_at": None if thread.updated_at is None else thread.updated_at.isoformat(),
        }
        if any(told.values()):
            try:
                yield from self._restore(told, thread.place, conversation_ids(self._key))
            except NotFoundError:  # it had no message
                self._receipt.lose("a conversation without messages", thread.place)

    def _restore(self, edits: Mapping[str, Any], place: str, ids: Mapping[str, Any]) -> Flow[None]:
        if self._receipt.dry_run:
            return
        try:
            answer = yield from call("memory_restore", {**ids, "p_edits": edits})
        except (InvalidInputError, TooLargeError) as error:
            raise _at(place, error) from None
        self._receipt.restored += answer["restored"]
        self._receipt.refused += answer["refused"]

    def _told(self, error: Exception) -> Exception:
        """An error with what was stored before it."""
        if not isinstance(error, SupabaseMemoryError):
            return error
        if not self._receipt.dry_run:
            stored = self._receipt.stored + self._receipt.known
            error.hint += f" What stands before it is stored ({stored:,} messages); the same import goes on from there."
        return error


def _at(place: str, error: SupabaseMemoryError) -> SupabaseMemoryError:
    """An error of the database's, with the place that it is about."""
    return type(error)(f"{place}: {error.message}", code=error.code, hint=error.hint)
