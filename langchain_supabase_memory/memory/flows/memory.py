"""What is done with all conversations of a user, and with the memory itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_supabase_memory.memory import outbox_delivery
from langchain_supabase_memory.memory.doctor.checks import run_checks
from langchain_supabase_memory.operations import controls, conversations, listing
from langchain_supabase_memory.operations.recall import exact_search, search
from langchain_supabase_memory.operations.recall import summaries as summary_recall
from langchain_supabase_memory.operations.recall.exact_search import LIMIT, ExactQuery, Order
from langchain_supabase_memory.operations.recall.query import Filters, RecallQuery, check_questions
from langchain_supabase_memory.values import Chunk, Scope

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime, tzinfo

    from langchain_supabase_memory.flow import Flow
    from langchain_supabase_memory.memory.doctor.finding import Finding
    from langchain_supabase_memory.memory.services import Services
    from langchain_supabase_memory.operations.controls import ControlChange, OptOut
    from langchain_supabase_memory.operations.recall.ranges import TimeRange
    from langchain_supabase_memory.settings import Retention
    from langchain_supabase_memory.values import (
        ConversationPage,
        ConversationState,
        FoundPage,
        Recall,
        RecalledSummary,
        Receipt,
    )


class MemoryFlows:
    """A memory on Supabase, or on any Postgres. It opens connections at the first call, never when it is made.

    Make one with `from_url`, `from_client`, `from_conn_string` or `embedded`, share it in the whole process, and close
    it at the end. What concerns one conversation is on its handle, `memory.conversation("studio")`; what spans a user's
    conversations is here; `memory.work` is what workers have to do, `memory.rollout` how agents are introduced to the
    memory. Each verb has an async twin with LangChain's prefix `a`: `recall` and `arecall`.
    """

    def __init__(self, memory: Services) -> None:
        self._memory = memory

    def conversations(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        state: ConversationState | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 50,
        before: str | None = None,
        after: str | None = None,
    ) -> Flow[ConversationPage]:
        """A page of a user's conversations, the most recently changed first, each with a title and its last words.

        Args:
            user_id: The owner; the memory's by default.
            agent_id: Only this agent's; `None` means all agents'.
            state: Only `active` or only `archived` ones; `None` means both.
            since: Only those that changed at or after this time, with a time zone.
            until: Only those that changed before this time, with a time zone.
            limit: The most of a page, 1 to 1,000.
            before: What a page gives as `before`: the page before it, of newer ones.
            after: What a page gives as `after`: the page after it, of older ones.

        Returns:
            The page. A conversation that changes meanwhile moves to the front; by `after` none is shown twice.

        Raises:
            InvalidInputError: An argument is none of its choices, a time is naive, or nobody is named as the owner.
            SupabaseMemoryError: The database refused or could not be reached.
        """
        made = listing.conversations(
            self._memory.owner(user_id),
            agent_id=agent_id,
            state=state,
            since=since,
            until=until,
            limit=limit,
            before=before,
            after=after,
            retention=self._memory.settings.retention,
        )
        return (yield from made)

    def recall(
        self, query: str | Sequence[str], *, user_id: str | None = None, agent_id: str | None = None, filters: Filters
    ) -> Flow[Recall]:
        """What was said in any of the user's conversations and fits a question, by meaning and by words.

        One round trip beside the models.

        Args:
            query: The question, in the user's words, of which 10,000 characters count; blank lists what the filters
                leave. Or up to 8 of them: the ranking serves each, its best first.
            user_id: The owner; the memory's by default. Nobody else's words are ever looked at.
            agent_id: Only with this agent; by default with all.
            filters: What narrows it down.

        Returns:
            The chunks, the best first, and how they were found.

        Raises:
            InvalidInputError: Nobody is named as the owner, or an argument is none of its choices.
            MigrationConflictError: What is stored was embedded by another model.
            SupabaseMemoryError: The database refused or could not be reached.
        """
        scope = self._memory.scope(user_id, agent_id)
        return (
            yield from search.recall_chunks(
                scope,
                check_questions(query, filters.in_zone(self._memory.settings.time_zone)),
                self._memory.capabilities,
            )
        )

    def find(
        self,
        texts: str | Sequence[str],
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        order: Order = "newest",
        match_case: bool = False,
        since: datetime | None = None,
        until: datetime | None = None,
        around: int = 0,
        limit: int = LIMIT,
        after: str | None = None,
    ) -> Flow[FoundPage]:
        """The messages of any of the user's conversations that hold some texts letter by letter, in one round trip.

        As `Conversation.find`. Conversations come in the order in which they were begun, from the newest or the oldest
        on, each with its messages in that order. Of the 2,000 messages that one call looks at, each conversation counts
        as ten.

        Args:
            texts: What to look for, 1 to 1,000 characters; of up to ten, a message holds each.
            user_id: The owner; the memory's by default. Nobody else's words are ever looked at.
            agent_id: Only with this agent; by default with all.
            order: From the `newest` message on, or from the `oldest`.
            match_case: Whether capitals matter. If not, ß is ss, and İ is i.
            since: Only messages of this time or later, with a time zone.
            until: Only messages before this time, with a time zone.
            around: So many messages before and after each come with it, up to 10.
            limit: The most messages that this call finds, 1 to 100.
            after: `after` of the page before, for what follows.

        Returns:
            The messages, and where to go on: `page.after` is `None` if everything was looked at.

        Raises:
            InvalidInputError: Nobody is named as the owner, a text is blank or too long, a time is naive, or an
                argument is none of its choices.
            SupabaseMemoryError: The database refused or could not be reached.
        """
        wanted = ExactQuery(
            texts=texts, order=order, match_case=match_case, since=since, until=until, around=around, limit=limit
        )
        scope, retention = self._memory.scope(user_id, agent_id), self._memory.settings.retention
        return (yield from exact_search.find(scope, wanted, after=after, retention=retention))

    def recall_summaries(
        self,
        query: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        limit: int = 5,
        time_range: TimeRange = "all",
        time_zone: str | tzinfo | None = None,
        min_similarity: float | None = None,
    ) -> Flow[list[RecalledSummary]]:
        """The user's conversations that a question is about, by their newest summaries, in one round trip.

        Args:
            query: The question, in the user's words; blank lists the newest.
            user_id: The owner; the memory's by default. Nobody else's summaries are ever looked at.
            agent_id: Only conversations with this agent; by default with all.
            limit: The most conversations.
            time_range: Only summaries that were stored then. Those older than the retention's `max_summary_age`, 90
                days by default, are never found.
            time_zone: That of the person who asks, by its name or itself; the memory's by default.
            min_similarity: Only summaries whose cosine with the question is at least so much; where there are no
                vectors, whose words fit so much in relation to the best.

        Returns:
            The summaries, the best first. One without a vector (`index_summaries` makes it) is found by its words.

        Raises:
            InvalidInputError: Nobody is named as the owner, or an argument is none of its choices.
            MigrationConflictError: The embedder has another width than it had.
            SupabaseMemoryError: The database refused or could not be reached.
        """
        memory, scope = self._memory, self._memory.scope(user_id, agent_id)
        filters = Filters(limit=limit, time_range=time_range, time_zone=time_zone, min_similarity=min_similarity)
        made = summary_recall.recall_summaries(
            scope,
            RecallQuery(query, filters.in_zone(memory.settings.time_zone)),
            model=memory.embedder_name,
            retention=memory.settings.retention,
        )
        return (yield from made)

    def forget_user(
        self, *, user_id: str | None = None, agent_id: str | None = None, dry_run: bool = False
    ) -> Flow[Receipt]:
        """Delete all of a user: conversations with all agents, everything derived from them, the items of the store.

        Args:
            user_id: The user; the memory's by default.
            agent_id: Only the conversations with this agent, with everything derived from them; `None` means all, and
                the items of the store.
            dry_run: Only say what would go.

        Returns:
            What went.

        Raises:
            InvalidInputError: Nobody is named.
        """
        memory, owner = self._memory, self._memory.owner(user_id)
        receipt = yield from conversations.forget_user(owner, agent_id=agent_id, dry_run=dry_run)
        theirs = [
            key for key in memory.outbox.conversations() if key.user_id == owner and agent_id in (None, key.agent_id)
        ]
        outbox_delivery.drop(memory, theirs, dry_run=dry_run)
        return receipt

    def forget_expired(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        thread_id: str | None = None,
        retention: Retention | None = None,
        dry_run: bool = False,
    ) -> Flow[Receipt]:
        """Remove what retention does not keep, and chunks that have expired, in all conversations the memory may see.

        Call it from a scheduled task.

        Args:
            user_id: Only this user's; by default the memory's user, or everybody's that the memory may see.
            agent_id: Only those with this agent; `None` means all.
            thread_id: Only this thread; `None` means all.
            retention: What is kept; the memory's by default. Without any, only expired chunks go.
            dry_run: Only say what would go: it is done, counted and taken back, one conversation after the other.

        Returns:
            What went: the conversations that lost messages, how many messages, summaries and chunks.
        """
        removed = conversations.forget_expired(
            retention or self._memory.settings.retention,
            user_id=self._memory.scope_text(user_id),
            agent_id=agent_id,
            thread_id=thread_id,
            dry_run=dry_run,
        )
        return (yield from removed)

    def opt_out(self, topic: str, *, actor: str, user_id: str | None = None) -> Flow[bool]:
        """Do not remember a topic, in all of a user's conversations, also those to come.

        What mentions the topic is not indexed, nor written on a board, nor left in a summary; what is there already
        goes. A topic is one word or several that stand next to one another. Case, accents and punctuation do not
        matter, nor do endings in English and in the conversation's language ("divorce" is "divorced" too, but "health"
        is not "healthy", nor "hospital": name each). In scripts that set no spaces, and in Korean, its characters are
        looked for. The messages stay. A writer is told to leave the topic out; of what it writes all the same, the
        sentences that mention the topic are taken out, and what says it in other words is left to the writer.

        Args:
            topic: The topic, up to 200 characters.
            actor: Who says so; it is noted with the time.
            user_id: The owner; the memory's by default.

        Returns:
            Whether that is new.

        Raises:
            InvalidInputError: The topic has no letters.
        """
        return (yield from controls.opt_out(self._memory.scope(user_id), topic, actor))

    def opt_in(self, topic: str, *, actor: str, user_id: str | None = None) -> Flow[bool]:
        """Remember a topic again that `opt_out` had named.

        Within a minute of `opt_out` it is undone: summaries, boards, ratings and titles are as before, and chunks are
        indexed again. Later what was not indexed is indexed; summaries and boards stay as they are until they are
        regenerated.

        Args:
            topic: The topic.
            actor: Who says so; it is noted with the time.
            user_id: The owner; the memory's by default.

        Returns:
            Whether it had not been remembered.
        """
        return (yield from controls.opt_in(self._memory.scope(user_id), topic, actor))

    def opt_outs(self, *, user_id: str | None = None, agent_id: str | None = None) -> Flow[list[OptOut]]:
        """What is not to be remembered, with who said so and when.

        Args:
            user_id: The owner; the memory's by default.
            agent_id: Only with this agent; by default with all.
        """
        return (yield from controls.opt_outs(self._memory.scope(user_id, agent_id)))

    def changes(
        self, *, user_id: str | None = None, agent_id: str | None = None, limit: int = 100
    ) -> Flow[list[ControlChange]]:
        """Who changed what by opt-outs, ratings and edits of summaries, and when, the newest first.

        Args:
            user_id: The owner; the memory's by default.
            agent_id: Only with this agent; by default with all.
            limit: The most, up to 500.
        """
        return (yield from controls.changes(self._memory.scope(user_id, agent_id), limit))

    def rate(
        self,
        chunk: Chunk | str,
        *,
        actor: str,
        useful: bool | None = None,
        importance: float | None = None,
        user_id: str | None = None,
    ) -> Flow[float]:
        """Say how much a chunk matters: recall and promotion go by it, and the same words keep it for good.

        Args:
            chunk: The chunk, as it was recalled, or its id.
            actor: Who says so; it is noted with the time.
            useful: Whether it was of use: an importance of 0.9 or 0.1.
            importance: Or its importance itself, from 0 to 1.
            user_id: The owner; the memory's by default.

        Returns:
            Its importance from now on.

        Raises:
            InvalidInputError: Not exactly one of `useful` and `importance` is given, or that is none.
            NotFoundError: There is no such chunk.
        """
        weight, owner = controls.weight(useful, importance), self._memory.owner(user_id)
        if isinstance(chunk, Chunk):
            scope, chunk_id = Scope(owner, chunk.agent_id, chunk.thread_id), chunk.id
        else:
            scope, chunk_id = Scope(owner), chunk
        return (yield from controls.rate(scope, chunk_id, weight, actor))

    def flush(self) -> Flow[int]:
        """Store what earlier writes of histories left in the outbox.

        Returns:
            How many messages are still waiting, which is 0 unless an error is raised.

        Raises:
            SupabaseMemoryError: The database still refuses; everything is kept.
        """
        return (yield from outbox_delivery.flush(self._memory))

    def doctor(self) -> Flow[list[Finding]]:
        """How this memory stands, line by line, with the next action: what `supabase-memory doctor` shows.

        The database is asked once, the embedder once, and over the Data API the project for the keys that sign its
        tokens. It costs the same on a hundred conversations as on a million. With a user's own token the database tells
        less, and a line says so.

        Returns:
            What was found; whatever fails is a finding, and nothing is raised for it.

        Example:
            ```python
            broken = [finding for finding in memory.doctor() if finding.state == "red"]
            ```
        """
        return (yield from run_checks(self._memory))
