"""`SupabaseChatMessageHistory`: the store of `RunnableWithMessageHistory`, and of code written for LangChain histories.

LangChain deprecates both base classes since 1.x and removes them in 2.0: new code takes the middleware or the nodes.

`RunnableWithMessageHistory` reads the history when a run begins and may read it again when the run ends, to tell what
is new by position; and it swallows the error of a failed write. So one instance serves the same snapshot until it
writes. What was served is not taken in again, and what is stored is not replaced: a prompt holds cut and repaired
copies, and a runnable may hand back all that it was given. A failed write, whatever was raised, is kept in order in
the memory's outbox, logged, and shown to whoever asks.

This module is imported only when it is asked for, since it cannot be imported where the base class is gone.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import AIMessage

from langchain_supabase_memory import effects
from langchain_supabase_memory.agents.run.fail_open import FailOpen, GuardedTask, OnError, log_failed, wrap_error
from langchain_supabase_memory.agents.run.graph_state import GraphState
from langchain_supabase_memory.agents.run.load import Loader
from langchain_supabase_memory.checks import wrong_type
from langchain_supabase_memory.context.load import unread_messages
from langchain_supabase_memory.errors import InvalidInputError, SupabaseMemoryError
from langchain_supabase_memory.language.messages import attribution, codec
from langchain_supabase_memory.memory.memory import SupabaseMemory
from langchain_supabase_memory.memory.outbox_delivery import flush_and_append, pending
from langchain_supabase_memory.memory.pending_manifests import build_manifest
from langchain_supabase_memory.memory.require_memory import require_memory
from langchain_supabase_memory.operations import conversations
from langchain_supabase_memory.settings import INHERITED, Inherited
from langchain_supabase_memory.settings import check_settings as checked_settings
from langchain_supabase_memory.unpicklable import Unpicklable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from langchain_core.messages import BaseMessage

    from langchain_supabase_memory.context.pack import ContextPack
    from langchain_supabase_memory.effects import Effects, Flow
    from langchain_supabase_memory.settings import ContextBudget, Retention

_UNREAD: Final = GuardedTask("The history could not be read; it is taken to hold only what waits to be stored")


class SupabaseChatMessageHistory(Unpicklable, BaseChatMessageHistory):
    """The messages of one conversation, as LangChain's histories are; what it serves stays within a budget.

    Make one for each run (it costs nothing: no connection, no query), over a memory that the process shares.

    What it serves is a context pack without the question, which a history is not told: older messages as a fenced
    summary, the recent ones verbatim, the board; nothing is recalled. The question comes on top of the budget. A
    summary that is due is made first, as before any answer. To show or export what was said, use `budget=None` or
    `SupabaseMemory.read`.

    Args:
        session_id: The conversation's thread: any string of 1 to 512 bytes, or a UUID.
        memory: Where it is stored.
        agent_id: The agent; the memory's by default.
        budget: The most that is served; the memory's by default. A history does not see the model: pass
            `alternate_roles=True` in it where that wants roles in turn. `None` serves all messages as they are
            stored, and the prompt grows with them.
        retention: How long, or how many turns, are kept; the memory's by default.
        on_error: What happens when a read or a write fails after its retries. A read that fails gives what waits to be
            stored, and no more. Messages of a write that fails are kept in the memory's outbox, and stored before the
            next write to this conversation or by `memory.flush()`. In every case the failure is logged with user and
            session and without content. By default (`"setup"`) a mistake in the set-up is also raised at the first
            call; `"raise"` raises every failure, a function receives it; see `guard.OnError`.
        deadline_seconds: How long one read may take, in seconds, with all that belongs to it. A model that writes a
            summary before it may take the policy's `timeout_seconds` beyond that.
        private: Whether a conversation that it begins is private; see `SupabaseMemory.conversation`.

    Raises:
        InvalidInputError: An id is not a usable string, or nobody is named as the owner.
        ConfigurationError: An argument is of another type than it must be.

    Example:
        ```python
        history = SupabaseChatMessageHistory("session-1", memory.for_user("maya"))
        history.add_messages([HumanMessage("Hello"), AIMessage("Hello, Maya")])
        history.messages
        ```
    """

    def __init__(
        self,
        session_id: str | UUID,
        memory: SupabaseMemory,
        *,
        agent_id: str | None = None,
        budget: ContextBudget | Inherited | None = INHERITED,
        retention: Retention | None = None,
        on_error: OnError = "setup",
        deadline_seconds: float = 10.0,
        private: bool = False,
    ) -> None:
        if isinstance(session_id, SupabaseMemory):
            raise wrong_type(
                "session_id",
                "the session's id, and the memory comes after it",
                session_id,
                'Pass SupabaseChatMessageHistory("session-1", memory).',
            )
        self._memory = require_memory(memory)
        checked_settings(budget=None if isinstance(budget, Inherited) else budget, retention=retention)
        self._key = memory._services.key(session_id, None, agent_id, private=private)
        self._retention = retention or memory._services.settings.retention
        self._on_error = on_error
        self._guard = FailOpen(memory, memory._services.model, on_error, deadline_seconds).with_listener(
            self._note, raises=True
        )
        bounds = memory._services.settings.budget if isinstance(budget, Inherited) else budget
        self._loader = (
            None
            if bounds is None
            else Loader(self._guard, bounds, memory._services.config.policy, retention=self._retention)
        )
        self._snapshot: list[BaseMessage] | None = None
        self._pack: ContextPack | None = None
        self.last_error: SupabaseMemoryError | None = None
        """The error of the newest read or write that failed; `None` after a write that succeeded."""

    @property
    def session_id(self) -> str:
        """The conversation's thread."""
        return self._key.thread_id

    @property
    def pending(self) -> int:
        """How many messages of this conversation wait in the outbox."""
        return len(self._memory._services.outbox.pending(self._key))

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]
        """The messages, oldest first: the same until this instance writes, and fresh objects at each read.

        Raises:
            SupabaseMemoryError: They could not be read, and `on_error` says that it is raised.
        """
        return effects.run(self._messages())

    async def aget_messages(self) -> list[BaseMessage]:
        """The async twin of `messages`."""
        return await effects.arun(self._messages())

    def add_message(self, message: BaseMessage) -> None:
        """Store one message; see `add_messages`."""
        self.add_messages([message])

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Store messages, behind those of failed writes, in one round trip.

        A history adds: what was served, or is stored already under the same id, stays as it is stored.

        Args:
            messages: LangChain messages; those without an id get one, on the object itself.

        Raises:
            InvalidInputError: Something passed is no message; or the database refuses one of those in the outbox.
            OutboxError: The write failed, and too many earlier ones wait already.
            SupabaseMemoryError: The write failed, and `on_error` says that it is raised; the messages are in the
                outbox.
        """
        self._memory._services.run(self._write(messages))

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        """The async twin of `add_messages`."""
        await self._memory._services.arun(self._write(messages))

    def clear(self) -> None:
        """Delete the conversation, with everything in it and with what waits for it.

        Raises:
            SupabaseMemoryError: It could not be deleted; what waits for it waits still.
        """
        effects.run(self._clear())

    async def aclear(self) -> None:
        """The async twin of `clear`."""
        await effects.arun(self._clear())

    def __repr__(self) -> str:
        """The ids; it reads nothing."""
        return (
            f"SupabaseChatMessageHistory({self._key.thread_id!r}, user_id={self._key.user_id!r}, "
            f"agent_id={self._key.agent_id!r})"
        )

    __str__ = __repr__

    def _messages(self) -> Effects[list[BaseMessage]]:
        snapshot = self._snapshot
        if snapshot is None:
            snapshot = yield from self._all() if self._loader is None else self._load_within_budget(self._loader)
            self._snapshot = snapshot
        return [message.model_copy(deep=True) for message in snapshot]

    def _all(self) -> Effects[list[BaseMessage]]:
        """All messages, and those that wait to be stored."""
        stored = (yield from self._guard.attempt(self._rows(), _UNREAD, self._key)) or []
        known = {message.id for message in stored}
        return [
            *stored,
            *(message for message in pending(self._memory._services, self._key) if message.id not in known),
        ]

    def _rows(self) -> Flow[list[BaseMessage]]:
        columns: list[conversations.Column] = ["payload", "author_name"] if self._key.is_in_space else ["payload"]
        rows = yield from conversations.read_rows(self._key, columns=columns, retention=self._retention)
        messages = codec.from_payloads([row["payload"] for row in rows])
        if self._key.is_in_space:
            said = zip(messages, rows, strict=True)
            messages = [attribution.attributed(message, row["author_name"]) for message, row in said]
        return messages

    def _load_within_budget(self, loader: Loader) -> Effects[list[BaseMessage]]:
        """The messages of a pack; of what waits to be stored, where there is none."""
        loader = replace(loader, guard=self._guard.begin(self._key, ()))
        pack = yield from loader.load(self._key, _NOBODY_ASKS, _no_stream)
        self._pack = pack
        if pack is None:
            flow = unread_messages(self._key, loader.budget, pending(self._memory._services, self._key))
            pack = yield from effects.in_one_step(flow, self._memory._services)
        return pack.messages

    def _clear(self) -> Effects[None]:
        self._snapshot = None
        yield from effects.in_one_step(conversations.forget(self._key), self._memory._services)
        self._memory._services.outbox.drop(self._key)

    def _note(self, error: SupabaseMemoryError) -> None:
        self.last_error = error

    def _write(self, messages: Sequence[BaseMessage]) -> Flow[None]:
        served = {message.id: message for message in self._snapshot or () if message.id is not None}
        # What was served may come back changed, and from the outbox it would replace what is stored. Behind a new
        # question another answer with a served id is another message: some providers repeat their ids.
        batch: list[BaseMessage] = []
        for message in codec.as_messages(messages):
            before = served.get(str(message.id))
            is_asked = any(each.type == "human" for each in batch)
            if before is None or (is_asked and message.type == "ai" and message.content != before.content):
                batch.append(message)
        codec.ensure_ids(batch)
        codec.separate_ids(batch)
        self._snapshot = None
        failure = manifest = None
        if self._pack is not None and any(isinstance(message, AIMessage) for message in batch):
            manifest, self._pack = build_manifest(self._memory._services.config.manifests, self._pack, "history"), None
        try:
            yield from flush_and_append(
                self._memory._services, self._key, batch, replace=False, retention=self._retention, manifest=manifest
            )
        except Exception as error:
            failure = wrap_error(error)
            self._memory._services.outbox.keep(self._key, batch)
        self.last_error = failure
        if failure is None:
            return
        what = f"A write failed; {self.pending} messages wait in the outbox"
        log_failed(failure, what, self._key, self._on_error, self._memory)
        if isinstance(failure, InvalidInputError):
            raise failure


_NOBODY_ASKS: Final = GraphState([], [], [])
"""A history is not told what is asked, nor what a graph's state holds."""


def _no_stream(_: object) -> None:
    """In the place of a graph's stream."""
