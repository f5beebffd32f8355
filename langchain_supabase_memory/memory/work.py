# Written by tools/handles.py. Do not edit.
"""Operations on due work, over all conversations that a memory may access."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_supabase_memory.memory.handle import MemoryHandle, load

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_supabase_memory.adapters.summarizer import Summarizer
    from langchain_supabase_memory.operations.users import UserPage
    from langchain_supabase_memory.operations.work import ConversationStatus, Queue, WorkState
    from langchain_supabase_memory.settings import SummaryPolicy
    from langchain_supabase_memory.values import ConversationKey, IndexResult, SummaryResult, UnreadableMessage


class Work(MemoryHandle):
    """Due, running, waiting and dead work: `memory.work`.

    The methods cover the memory's user; without one, all users that the memory may access.
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
        """List due, running, waiting and dead work, and how far each conversation is covered.

        Args:
            agent_id: Only conversations with this agent.
            thread_id: Only this thread.
            state: Only conversations in this state.
            ids: Only the conversations with these ids.
            limit: The maximum number to return; `None` means all.
            after: The owner and id of a conversation: only conversations after it.

        Returns:
            The statuses, ordered by owner and id. A conversation with ids that are not valid is left out and logged.

        Raises:
            InvalidInputError: `state` is unknown, `ids` or `after` are no ids, or `limit` is negative.
        """
        from langchain_supabase_memory.operations.work import status

        return self._services.run(
            status(
                self._services.served_user_id,
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
        await load("langchain_supabase_memory.operations.work")
        from langchain_supabase_memory.operations.work import status

        return await self._services.arun(
            status(
                self._services.served_user_id,
                agent_id=agent_id,
                thread_id=thread_id,
                state=state,
                ids=ids,
                limit=limit,
                after=after,
            )
        )

    def queue(self) -> Queue:
        """Return the work queue of all conversations, in numbers; requires a server's rights."""
        from langchain_supabase_memory.operations.work import queue

        return self._services.run(queue())

    async def aqueue(self) -> Queue:
        """The async twin of `queue`."""
        await load("langchain_supabase_memory.operations.work")
        from langchain_supabase_memory.operations.work import queue

        return await self._services.arun(queue())

    def retry(self, *, agent_id: str | None = None, thread_id: str | None = None) -> int:
        """Retry work that workers have given up; requires a server's rights.

        Args:
            agent_id: Only conversations with this agent.
            thread_id: Only this thread.

        Returns:
            The number of conversations.
        """
        from langchain_supabase_memory.operations.work import retry

        return self._services.run(retry(self._services.served_user_id, agent_id=agent_id, thread_id=thread_id))

    async def aretry(self, *, agent_id: str | None = None, thread_id: str | None = None) -> int:
        """The async twin of `retry`."""
        await load("langchain_supabase_memory.operations.work")
        from langchain_supabase_memory.operations.work import retry

        return await self._services.arun(retry(self._services.served_user_id, agent_id=agent_id, thread_id=thread_id))

    def unreadable(self, *, limit: int | None = None) -> list[UnreadableMessage]:
        """List the messages that cannot be read. They are left out of context packs but stay stored.

        A message becomes readable again when its payload is rewritten, by `append` with the message's id or by SQL.
        Then it is shown, summarized and indexed like any other.

        Args:
            limit: The maximum number to return; `None` means all.

        Returns:
            Where the messages are, ordered by owner and conversation.

        Raises:
            InvalidInputError: `limit` is negative.
        """
        from langchain_supabase_memory.operations.unreadable import unreadable

        return self._services.run(unreadable(self._services.served_user_id, limit=limit))

    async def aunreadable(self, *, limit: int | None = None) -> list[UnreadableMessage]:
        """The async twin of `unreadable`."""
        await load("langchain_supabase_memory.operations.unreadable")
        from langchain_supabase_memory.operations.unreadable import unreadable

        return await self._services.arun(unreadable(self._services.served_user_id, limit=limit))

    def users(
        self, *, prefix: str | None = None, contains: str | None = None, limit: int = 25, after: str | None = None
    ) -> UserPage:
        """List the users who have conversations, by their ids, in one round trip; it needs a server's rights.

        Args:
            prefix: Only users whose ids begin with it; `None` means all.
            contains: Only users whose ids contain it, in whatever case. One call looks at 500 users, so that a page may
                have fewer than `limit`, or none, and still an `after`.
            limit: The maximum number of users, 1 to 100.
            after: The `after` of a page, to get the next page.

        Returns:
            The users, each with their ten newest conversations in numbers. Spaces are left out.

        Raises:
            InvalidInputError: The memory belongs to one user, or an argument is not one of its choices.
            SupabaseMemoryError: The database refused or could not be reached.
        """
        from langchain_supabase_memory.operations.users import list_users

        return self._services.run(
            list_users(self._services.served_user_id, prefix=prefix, contains=contains, limit=limit, after=after)
        )

    async def ausers(
        self, *, prefix: str | None = None, contains: str | None = None, limit: int = 25, after: str | None = None
    ) -> UserPage:
        """The async twin of `users`."""
        await load("langchain_supabase_memory.operations.users")
        from langchain_supabase_memory.operations.users import list_users

        return await self._services.arun(
            list_users(self._services.served_user_id, prefix=prefix, contains=contains, limit=limit, after=after)
        )

    def summarize_due(
        self, *, policy: SummaryPolicy | None = None, model: Summarizer | None = None
    ) -> dict[ConversationKey, SummaryResult]:
        """Summarize every conversation with more unsummarized messages than the policy allows.

        Call it from a scheduled task if the policy's mode is `background`. Any number of processes may call it at once:
        one of them wins each segment, and the others change nothing.

        Args:
            policy: The summary policy; the memory's by default.
            model: The model; the memory's by default.

        Returns:
            The result for each conversation that was due.

        Raises:
            ConfigurationError: There is no model.
            SupabaseMemoryError: The database refused or could not be reached.
        """
        from langchain_supabase_memory.memory.summaries import summarize_due

        return self._services.run(
            summarize_due(self._services, self._services.served_user_id, policy=policy, model=model)
        )

    async def asummarize_due(
        self, *, policy: SummaryPolicy | None = None, model: Summarizer | None = None
    ) -> dict[ConversationKey, SummaryResult]:
        """The async twin of `summarize_due`."""
        await load("langchain_supabase_memory.memory.summaries")
        from langchain_supabase_memory.memory.summaries import summarize_due

        return await self._services.arun(
            summarize_due(self._services, self._services.served_user_id, policy=policy, model=model)
        )

    def index_due(self, *, messages: int = 0) -> dict[ConversationKey, IndexResult]:
        """Index every conversation that has too many unindexed messages or an unindexed newest summary.

        Call it from a scheduled task if the policy's mode is `background`. Any number of processes may call it at once:
        one of them wins each batch, and the others change nothing.

        Args:
            messages: How many unindexed messages to tolerate.

        Returns:
            The result for each conversation that was due.
        """
        from langchain_supabase_memory.operations.due import index_due

        return self._services.run(
            index_due(
                self._services.served_user_id,
                chunking=self._services.chunking(),
                messages=messages,
                embedder=self._services.embedder_name,
                tone=self._services.rates_tone,
            )
        )

    async def aindex_due(self, *, messages: int = 0) -> dict[ConversationKey, IndexResult]:
        """The async twin of `index_due`."""
        await load("langchain_supabase_memory.operations.due")
        from langchain_supabase_memory.operations.due import index_due

        return await self._services.arun(
            index_due(
                self._services.served_user_id,
                chunking=self._services.chunking(),
                messages=messages,
                embedder=self._services.embedder_name,
                tone=self._services.rates_tone,
            )
        )
