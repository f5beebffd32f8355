"""`SupabaseChatMessageHistory`: the store of `RunnableWithMessageHistory`, and of code written for LangChain histories.

`RunnableWithMessageHistory` reads the history when a run begins and may read it again when the run ends, to tell what
is new by position; and it swallows the error of a failed write. So one instance serves the same snapshot until it
writes, messages are stored by id so that a repeated history is not stored twice, and a failed write, whatever was
raised, is kept in order in the memory's outbox, logged, and shown to whoever asks.

The base class leaves `langchain-core` in 2.0, so this module is imported only when it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_core.chat_history import BaseChatMessageHistory

from langchain_supabase_memory import conversations
from langchain_supabase_memory.errors import InvalidInputError, SupabaseMemoryError
from langchain_supabase_memory.guard import OnError, checked, failed, ours
from langchain_supabase_memory.messages import codec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_core.messages import BaseMessage

    from langchain_supabase_memory.flow import Flow
    from langchain_supabase_memory.memory import SupabaseMemory
    from langchain_supabase_memory.settings import Retention


class SupabaseChatMessageHistory(BaseChatMessageHistory):
    """The messages of one conversation, as LangChain's histories are.

    Make one for each run (it costs nothing: no connection, no query), over a memory that the process shares.

    Args:
        session_id: The conversation's thread: any string of 1 to 512 characters.
        memory: Where it is stored.
        user_id: The owner; the memory's by default.
        agent_id: The agent; the memory's by default.
        max_messages: Serve only the newest so many; `None` means all.
        retention: How long, or how many turns, are kept; the memory's by default.
        on_error: What happens when a read or a write fails after its retries. A read that fails gives what waits to be
            stored, and no more. Messages of a write that fails are kept in the memory's outbox, and stored before the
            next write to this conversation or by `memory.flush()`. In every case the failure is logged with user and
            session and without content; `"raise"` also raises it, a function also receives it.

    Raises:
        InvalidInputError: An id is not a usable string, or nobody is named as the owner.

    Example:
        ```python
        history = SupabaseChatMessageHistory("session-1", memory, user_id="maya")
        history.add_messages([HumanMessage("Hello"), AIMessage("Hello, Maya")])
        history.messages
        ```
    """

    def __init__(
        self,
        session_id: str,
        memory: SupabaseMemory,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        max_messages: int | None = None,
        retention: Retention | None = None,
        on_error: OnError = "log",
    ) -> None:
        self._memory = memory
        self._key = memory.key(session_id, user_id, agent_id)
        self._max_messages = max_messages
        self._retention = retention or memory.retention
        self._on_error = checked(on_error)
        self._snapshot: list[Mapping[str, Any]] | None = None
        self.last_error: SupabaseMemoryError | None = None
        """The error of the newest read or write that failed; `None` after a write that succeeded."""

    @property
    def session_id(self) -> str:
        """The conversation's thread."""
        return self._key.thread_id

    @property
    def pending(self) -> int:
        """How many messages of this conversation wait in the outbox."""
        return len(self._memory.outbox.waiting(self._key))

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]
        """The messages, oldest first: the same until this instance writes, and fresh objects at each read.

        Raises:
            SupabaseMemoryError: They could not be read, with `on_error="raise"`.
        """
        return self._memory.run(self._read())

    async def aget_messages(self) -> list[BaseMessage]:
        """The async twin of `messages`."""
        return await self._memory.arun(self._read())

    def add_message(self, message: BaseMessage) -> None:
        """Store one message; see `add_messages`."""
        self.add_messages([message])

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Store messages, behind those of failed writes, in one round trip.

        Args:
            messages: LangChain messages; those without an id get one, on the object itself.

        Raises:
            InvalidInputError: Something passed is no message; or the database refuses one of those in the outbox.
            OutboxFullError: The write failed, and too many earlier ones wait already.
            SupabaseMemoryError: The write failed, with `on_error="raise"`; the messages are in the outbox.
        """
        self._memory.run(self._write(messages))

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        """The async twin of `add_messages`."""
        await self._memory.arun(self._write(messages))

    def clear(self) -> None:
        """Delete the conversation, with everything in it and with what waits for it.

        Raises:
            SupabaseMemoryError: It could not be deleted; what waits for it waits still.
        """
        self._snapshot = None
        self._memory.run(conversations.forget(self._key))
        self._memory.outbox.drop(self._key)

    async def aclear(self) -> None:
        """The async twin of `clear`."""
        self._snapshot = None
        await self._memory.arun(conversations.forget(self._key))
        self._memory.outbox.drop(self._key)

    def __repr__(self) -> str:
        """The ids; it reads nothing."""
        return (
            f"SupabaseChatMessageHistory({self._key.thread_id!r}, user_id={self._key.user_id!r}, "
            f"agent_id={self._key.agent_id!r})"
        )

    __str__ = __repr__

    def _read(self) -> Flow[list[BaseMessage]]:
        if self._snapshot is None:
            failure = None
            try:
                rows = yield from conversations.read_rows(self._key, last=self._max_messages, retention=self._retention)
                snapshot = [row["payload"] for row in rows]
            except Exception as error:
                failure, snapshot = ours(error), []
            if failure is not None:
                self.last_error = failure
                failed(failure, "A read failed; the history is taken to be empty", self._key, self._on_error)
            self._snapshot = snapshot
        stored = [codec.from_payload(payload) for payload in self._snapshot]
        known = {message.id for message in stored}
        waiting = [message for message, _ in self._memory.outbox.waiting(self._key) if message.id not in known]
        return [*stored, *(message.model_copy(deep=True) for message in waiting)]

    def _write(self, messages: Sequence[BaseMessage]) -> Flow[None]:
        batch = codec.checked(messages)
        codec.ensure_ids(batch)
        self._snapshot = None
        failure = None
        try:
            yield from self._memory.deliver(self._key, batch, retention=self._retention)
        except Exception as error:
            failure = ours(error)
            self._memory.outbox.keep(self._key, batch)
        self.last_error = failure
        if failure is None:
            return
        failed(failure, f"A write failed; {self.pending} messages wait in the outbox", self._key, self._on_error)
        if isinstance(failure, InvalidInputError):
            raise failure
