# Written by tools/handles.py. Do not edit.
"""What is done with a conversation's summaries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_supabase_memory.memory.handle import ConversationHandle
from langchain_supabase_memory.memory.summaries import complete_summary, summarize
from langchain_supabase_memory.operations.controls import delete_segment, edit_segment, regenerate_summaries
from langchain_supabase_memory.operations.recall.summaries import index_summaries
from langchain_supabase_memory.operations.summaries.rolling import list_segments
from langchain_supabase_memory.operations.work import request
from langchain_supabase_memory.values import Scope, Segment, SummaryResult

if TYPE_CHECKING:
    import builtins

    from langchain_supabase_memory.adapters.summarizer import Summarizer
    from langchain_supabase_memory.operations.summaries.complete import CompleteSummary
    from langchain_supabase_memory.settings import SummaryPolicy


class ConversationSummaries(ConversationHandle):
    """A conversation's summaries: the segments of the rolling one, and the complete one."""

    def make(self, *, policy: SummaryPolicy | None = None, model: Summarizer | None = None) -> SummaryResult:
        """Summarize now what is beyond what the policy keeps verbatim, whether it is due or not.

        Args:
            policy: How; the memory's by default.
            model: The model; the memory's by default.

        Returns:
            What was done. A model that failed is no error: nothing is changed.

        Raises:
            ConfigurationError: There is no model.
            SupabaseMemoryError: The database refused or could not be reached.
        """
        return self._services.run(summarize(self._services, self._key, policy=policy, model=model))

    async def amake(self, *, policy: SummaryPolicy | None = None, model: Summarizer | None = None) -> SummaryResult:
        """The async twin of `make`."""
        return await self._services.arun(summarize(self._services, self._key, policy=policy, model=model))

    def complete(self, *, policy: SummaryPolicy | None = None, model: Summarizer | None = None) -> CompleteSummary:
        """Summarize the whole conversation, of any length, level by level, with its vector, topics and key facts.

        The board is revised first: topics and key facts are its own. What was made before is used again, so that of a
        conversation that went on only the last branch is written anew.

        Args:
            policy: How long a summary may be, how much one call of the model reads; the memory's by default.
            model: The model; the memory's by default.

        Returns:
            The summary. A model that failed is no error: what was made stays, and the next call goes on.

        Raises:
            ConfigurationError: There is no model.
            SupabaseMemoryError: The database refused or could not be reached.
        """
        return self._services.run(complete_summary(self._services, self._key, policy=policy, model=model))

    async def acomplete(
        self, *, policy: SummaryPolicy | None = None, model: Summarizer | None = None
    ) -> CompleteSummary:
        """The async twin of `complete`."""
        return await self._services.arun(complete_summary(self._services, self._key, policy=policy, model=model))

    def list(self, *, last: int | None = None) -> builtins.list[Segment]:
        """The segments of the rolling summary, in order.

        Args:
            last: Only the newest so many; `None` means all.
        """
        return self._services.run(list_segments(self._key, last=last, retention=self._services.settings.retention))

    async def alist(self, *, last: int | None = None) -> builtins.list[Segment]:
        """The async twin of `list`."""
        return await self._services.arun(
            list_segments(self._key, last=last, retention=self._services.settings.retention)
        )

    def edit(self, number: int, text: str, *, actor: str) -> int:
        """Write what a segment of the rolling summary says. The next goes on from there.

        What was built on it is taken back and written anew when it is due. Regeneration leaves what a person wrote as
        it is; it goes only with what it was made from, when a message of it or before it is edited or forgotten.

        Args:
            number: The segment, as `summaries` numbers them.
            text: What it says, up to 10,000 characters.
            actor: Who writes it.

        Returns:
            How many segments were taken back.

        Raises:
            InvalidInputError: It is no text, is too long, or mentions a topic that is not to be remembered.
            NotFoundError: There is no such conversation or segment.
        """
        return self._services.run(edit_segment(self._key, number, text, actor=actor, redactor=self._services.redactor))

    async def aedit(self, number: int, text: str, *, actor: str) -> int:
        """The async twin of `edit`."""
        return await self._services.arun(
            edit_segment(self._key, number, text, actor=actor, redactor=self._services.redactor)
        )

    def delete(self, number: int, *, actor: str) -> int:
        """Take a segment back and all that were built on it; they are written anew when that is due.

        What was made from messages that have expired cannot be written anew.

        Args:
            number: The segment, as `summaries` numbers them.
            actor: Who wants that.

        Returns:
            How many segments were taken back.

        Raises:
            NotFoundError: There is no such conversation or segment.
        """
        return self._services.run(delete_segment(self._key, number, actor=actor))

    async def adelete(self, number: int, *, actor: str) -> int:
        """The async twin of `delete`."""
        return await self._services.arun(delete_segment(self._key, number, actor=actor))

    def regenerate(self, *, actor: str, include_edited: bool = False) -> SummaryResult:
        """Write the summaries anew from the messages: those after the last that a person wrote.

        Args:
            actor: Who wants that.
            include_edited: Whether what a person wrote is written anew as well. What was made from messages that have
                expired stays in any case.

        Returns:
            What was written; nothing, if the memory has no model: then they are written when that is due.

        Raises:
            NotFoundError: There is no such conversation.
        """
        return self._services.run(
            regenerate_summaries(
                self._key,
                self._services.summary_policy(),
                actor=actor,
                include_edited=include_edited,
                summarizer=self._services.summarizer_name,
            )
        )

    async def aregenerate(self, *, actor: str, include_edited: bool = False) -> SummaryResult:
        """The async twin of `regenerate`."""
        return await self._services.arun(
            regenerate_summaries(
                self._key,
                self._services.summary_policy(),
                actor=actor,
                include_edited=include_edited,
                summarizer=self._services.summarizer_name,
            )
        )

    def request(self, *, priority: int | None = None) -> bool:
        """Ask a worker to summarize the conversation now, whether it is due or not.

        Args:
            priority: Its priority from now on, -32,768 to 32,767; `None` leaves it. A signed-in user may only lower
                it.

        Returns:
            Whether there is such a conversation.
        """
        return self._services.run(request(self._key, priority=priority))

    async def arequest(self, *, priority: int | None = None) -> bool:
        """The async twin of `request`."""
        return await self._services.arun(request(self._key, priority=priority))

    def index(self) -> int:
        """Embed the newest summary of each conversation of a scope, where it has no vector of the model.

        Returns:
            How many summaries were embedded.

        Raises:
            EmbeddingError: The embedder failed; what was done so far stays, and the next call goes on.
        """
        return self._services.run(index_summaries(Scope.of(self._key), embedder=self._services.require_embedder()))

    async def aindex(self) -> int:
        """The async twin of `index`."""
        return await self._services.arun(
            index_summaries(Scope.of(self._key), embedder=self._services.require_embedder())
        )
