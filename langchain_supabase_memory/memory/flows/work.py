"""What is done with due work, over all conversations that a memory may see."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_supabase_memory.adapters import summarizer as writers
from langchain_supabase_memory.operations import pages, summaries, unreadable, work
from langchain_supabase_memory.operations.recall import indexing
from langchain_supabase_memory.operations.recall import summaries as summary_recall
from langchain_supabase_memory.settings import INHERITED
from langchain_supabase_memory.values import IndexResult, Scope, SummaryResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_supabase_memory.adapters.summarizer import Summarizer
    from langchain_supabase_memory.flow import Flow
    from langchain_supabase_memory.memory.services import Services
    from langchain_supabase_memory.operations.work import ConversationStatus, Queue, WorkState
    from langchain_supabase_memory.settings import SummaryPolicy
    from langchain_supabase_memory.values import ConversationKey, UnreadableMessage


class WorkFlows:
    """What is due, running, waiting and dead: `memory.work`.

    A verb is about the memory's user; where the memory has none, about everybody's conversations that it may see.
    """

    def __init__(self, memory: Services) -> None:
        self._memory = memory

    def status(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        thread_id: str | None = None,
        state: WorkState | None = None,
        ids: Sequence[str] | None = None,
        limit: int | None = None,
        after: tuple[str, str] | None = None,
    ) -> Flow[list[ConversationStatus]]:
        """What is due, running, waiting and dead, and how far each conversation is covered.

        Args:
            user_id: Only this user's; the memory's by default.
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
        owner = self._memory.scope_text(user_id)
        made = work.status(
            owner, agent_id=agent_id, thread_id=thread_id, state=state, ids=ids, limit=limit, after=after
        )
        return (yield from made)

    def queue(self) -> Flow[Queue]:
        """The work of all conversations, in numbers; it needs a server's rights."""
        return (yield from work.queue())

    def retry(
        self, *, user_id: str | None = None, agent_id: str | None = None, thread_id: str | None = None
    ) -> Flow[int]:
        """Try again what workers have given up; it needs a server's rights.

        Args:
            user_id: Only this user's; the memory's by default.
            agent_id: Only this agent's.
            thread_id: Only those of this thread.

        Returns:
            How many conversations.
        """
        return (yield from work.retry(self._memory.scope_text(user_id), agent_id=agent_id, thread_id=thread_id))

    def unreadable(self, *, user_id: str | None = None, limit: int | None = None) -> Flow[list[UnreadableMessage]]:
        """The messages that cannot be read and are set aside: each is left out of packs, and stays.

        A payload that is written anew, by `append` with the message's id or by SQL, gives it back: it is shown,
        summarized and indexed like any other.

        Args:
            user_id: Only this user's; the memory's by default.
            limit: The most to return; `None` means all.

        Returns:
            Where they are, in the order of owners and conversations.

        Raises:
            InvalidInputError: `limit` is negative.
        """
        return (yield from unreadable.unreadable(self._memory.scope_text(user_id), limit=limit))

    def summarize_due(
        self, *, user_id: str | None = None, policy: SummaryPolicy | None = None, model: Summarizer | None = None
    ) -> Flow[dict[ConversationKey, SummaryResult]]:
        """Summarize every conversation of which more is not yet summarized than the policy allows.

        Call it from a scheduled task where the policy's mode is `background`. Any number of processes may do so at
        once: one of them wins each segment, the others change nothing.

        Args:
            user_id: Only this user's conversations; the memory's by default.
            policy: When and how; the memory's by default.
            model: The model; the memory's by default.

        Returns:
            What was done for each conversation that was due.

        Raises:
            ConfigurationError: There is no model.
            SupabaseMemoryError: The database refused or could not be reached.
        """
        memory = self._memory
        chosen = yield from writers.summarizer_of(INHERITED if model is None else model, memory.model)
        writer = writers.require_summarizer(chosen)
        within = memory.summary_policy(policy)
        done = {}
        for key in (yield from summaries.is_summary_due(within, user_id=memory.scope_text(user_id))):
            made = writers.asking(summaries.summarize(key, within, model=writer.name), writer)
            done[key] = yield from pages.isolate_failure(key, made, lambda word: SummaryResult(-1, failed=word))
        return done

    def index_due(self, *, user_id: str | None = None, messages: int = 0) -> Flow[dict[ConversationKey, IndexResult]]:
        """Index every conversation of which more than so many messages, or the newest summary, can not be recalled yet.

        Call it from a scheduled task where the policy's mode is `background`. Any number of processes may do so at
        once: one of them wins each batch, the others change nothing.

        Args:
            user_id: Only this user's conversations; the memory's by default.
            messages: How many messages do not matter yet.

        Returns:
            What was done for each conversation that was due.
        """
        memory, owner, name = self._memory, self._memory.scope_text(user_id), self._memory.embedder_name
        done = {}
        for key in (yield from indexing.index_due(user_id=owner, messages=messages, vectors=name is not None)):
            made = indexing.index_messages(key, memory.settings.chunking, model=name)
            done[key] = yield from pages.isolate_failure(key, made, lambda word: IndexResult(-1, failed=word))
        return (yield from summary_recall.index_summaries_due(done, Scope(owner), model=name))
