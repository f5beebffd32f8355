# Written by tools/handles.py. Do not edit.
"""What is done with due work, over all conversations that a memory may see."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_supabase_memory.memory.handle import MemoryHandle
from langchain_supabase_memory.memory.summaries import summarize_due
from langchain_supabase_memory.operations.due import index_due
from langchain_supabase_memory.operations.unreadable import unreadable
from langchain_supabase_memory.operations.work import ConversationStatus, Queue, WorkState, queue, retry, status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_supabase_memory.adapters.summarizer import Summarizer
    from langchain_supabase_memory.settings import SummaryPolicy
    from langchain_supabase_memory.values import ConversationKey, IndexResult, SummaryResult, UnreadableMessage


class Work(MemoryHandle):
    """What is due, running, waiting and dead: `memory.work`.

    A verb is about the memory's user; where the memory has none, about everybody's conversations that it may see.
    """

    def status(
        self,
        *,
        agent_id: str | None = None,
        thread_id: str | None = None,
        state: WorkState | None = None,
        ids: Sequence[str] | None = None,
        limit: int | None = None,
        after: tuple[str, str] | None = None,
    ) -> list[ConversationStatus]:
        """What is due, running, waiting and dead, and how far each conversation is covered.

        Args:
            agent_id: Only this agent's.
            thread_id: Only those of this thread.
            state: Only those in this state.
            ids: Only the conversations with these ids, as lists give them.
            limit: The most; `None` means all.
            after: The owner and the id of a conversation: only those behind it.

        Returns:
            Their status, in the order of owners and ids. A conversation whose ids cannot be used is left out, and
            logged.
        """
        return self._services.run(
            status(
                self._services.scope_text(),
                agent_id=agent_id,
                thread_id=thread_id,
                state=state,
                ids=ids,
                limit=limit,
                after=after,
            )
        )

    async def astatus(
        self,
        *,
        agent_id: str | None = None,
        thread_id: str | None = None,
        state: WorkState | None = None,
        ids: Sequence[str] | None = None,
        limit: int | None = None,
        after: tuple[str, str] | None = None,
    ) -> list[ConversationStatus]:
        """The async twin of `status`."""
        return await self._services.arun(
            status(
                self._services.scope_text(),
                agent_id=agent_id,
                thread_id=thread_id,
                state=state,
                ids=ids,
                limit=limit,
                after=after,
            )
        )

    def queue(self) -> Queue:
        """The work of all conversations, in numbers; it needs a server's rights."""
        return self._services.run(queue())

    async def aqueue(self) -> Queue:
        """The async twin of `queue`."""
        return await self._services.arun(queue())

    def retry(self, *, agent_id: str | None = None, thread_id: str | None = None) -> int:
        """Try again what workers have given up; it needs a server's rights.

        Args:
            agent_id: Only this agent's.
            thread_id: Only those of this thread.

        Returns:
            How many conversations.
        """
        return self._services.run(retry(self._services.scope_text(), agent_id=agent_id, thread_id=thread_id))

    async def aretry(self, *, agent_id: str | None = None, thread_id: str | None = None) -> int:
        """The async twin of `retry`."""
        return await self._services.arun(retry(self._services.scope_text(), agent_id=agent_id, thread_id=thread_id))

    def unreadable(self, *, limit: int | None = None) -> list[UnreadableMessage]:
        """The messages that cannot be read and are set aside: each is left out of packs, and stays.

        A payload that is written anew, by `append` with the message's id or by SQL, gives it back: it is shown,
        summarized and indexed like any other.

        Args:
            limit: The most to return; `None` means all.

        Returns:
            Where they are, in the order of owners and conversations.

        Raises:
            InvalidInputError: `limit` is negative.
        """
        return self._services.run(unreadable(self._services.scope_text(), limit=limit))

    async def aunreadable(self, *, limit: int | None = None) -> list[UnreadableMessage]:
        """The async twin of `unreadable`."""
        return await self._services.arun(unreadable(self._services.scope_text(), limit=limit))

    def summarize_due(
        self, *, policy: SummaryPolicy | None = None, model: Summarizer | None = None
    ) -> dict[ConversationKey, SummaryResult]:
        """Summarize every conversation of which more is not yet summarized than the policy allows.

        Call it from a scheduled task where the policy's mode is `background`. Any number of processes may do so at
        once: one of them wins each segment, the others change nothing.

        Args:
            policy: When and how; the memory's by default.
            model: The model; the memory's by default.

        Returns:
            What was done for each conversation that was due.

        Raises:
            ConfigurationError: There is no model.
            SupabaseMemoryError: The database refused or could not be reached.
        """
        return self._services.run(
            summarize_due(self._services, self._services.scope_text(), policy=policy, model=model)
        )

    async def asummarize_due(
        self, *, policy: SummaryPolicy | None = None, model: Summarizer | None = None
    ) -> dict[ConversationKey, SummaryResult]:
        """The async twin of `summarize_due`."""
        return await self._services.arun(
            summarize_due(self._services, self._services.scope_text(), policy=policy, model=model)
        )

    def index_due(self, *, messages: int = 0) -> dict[ConversationKey, IndexResult]:
        """Index every conversation of which more than so many messages, or the newest summary, can not be recalled yet.

        Call it from a scheduled task where the policy's mode is `background`. Any number of processes may do so at
        once: one of them wins each batch, the others change nothing.

        Args:
            messages: How many messages do not matter yet.

        Returns:
            What was done for each conversation that was due.
        """
        return self._services.run(
            index_due(
                self._services.scope_text(),
                chunking=self._services.chunking(),
                messages=messages,
                embedder=self._services.embedder_name,
            )
        )

    async def aindex_due(self, *, messages: int = 0) -> dict[ConversationKey, IndexResult]:
        """The async twin of `index_due`."""
        return await self._services.arun(
            index_due(
                self._services.scope_text(),
                chunking=self._services.chunking(),
                messages=messages,
                embedder=self._services.embedder_name,
            )
        )
