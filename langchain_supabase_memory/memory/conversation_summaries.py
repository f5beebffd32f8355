# Written by tools/handles.py. Do not edit.
"""Operations on a conversation's summaries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_supabase_memory.memory.handle import ConversationPartHandle, load
from langchain_supabase_memory.values import Scope, Segment, SummaryResult

if TYPE_CHECKING:
    import builtins

    from langchain_supabase_memory.adapters.summarizer import Summarizer
    from langchain_supabase_memory.operations.summaries.complete import CompleteSummary
    from langchain_supabase_memory.settings import SummaryPolicy


class ConversationSummaries(ConversationPartHandle):
    """A conversation's summaries: the segments of the rolling one, and the complete one."""

    def make(self, *, policy: SummaryPolicy | None = None, model: Summarizer | None = None) -> SummaryResult:
        """Summarize now the messages beyond those that the policy keeps verbatim, whether due or not.

        Args:
            policy: The summary policy; the memory's by default.
            model: The model; the memory's by default.

        Returns:
            The result. If the model fails, nothing is changed and nothing is raised.

        Raises:
            ConfigurationError: There is no model.
            SupabaseMemoryError: The database refused or could not be reached.
        """
        from langchain_supabase_memory.memory.summaries import summarize

        return self._services.run(summarize(self._services, self._key, policy=policy, model=model))

    async def amake(self, *, policy: SummaryPolicy | None = None, model: Summarizer | None = None) -> SummaryResult:
        """The async twin of `make`."""
        await load("langchain_supabase_memory.memory.summaries")
        from langchain_supabase_memory.memory.summaries import summarize

        return await self._services.arun(summarize(self._services, self._key, policy=policy, model=model))

    def complete(self, *, policy: SummaryPolicy | None = None, model: Summarizer | None = None) -> CompleteSummary:
        """Summarize the whole conversation, of any length, level by level, with its vector, topics and key facts.

        The board is revised first, because topics and key facts come from it. Finished summaries are reused: when a
        conversation continues, only the last branch is written again.

        Args:
            policy: The maximum length of a summary and the input of one model call; the memory's by default.
            model: The model; the memory's by default.

        Returns:
            The summary. If the model fails, nothing is raised: finished parts stay, and the next call continues.

        Raises:
            ConfigurationError: There is no model.
            SupabaseMemoryError: The database refused or could not be reached.
        """
        from langchain_supabase_memory.memory.summaries import complete_summary

        return self._services.run(complete_summary(self._services, self._key, policy=policy, model=model))

    async def acomplete(
        self, *, policy: SummaryPolicy | None = None, model: Summarizer | None = None
    ) -> CompleteSummary:
        """The async twin of `complete`."""
        await load("langchain_supabase_memory.memory.summaries")
        from langchain_supabase_memory.memory.summaries import complete_summary

        return await self._services.arun(complete_summary(self._services, self._key, policy=policy, model=model))

    def list(self, *, last: int | None = None) -> builtins.list[Segment]:
        """List the segments of the rolling summary, in order.

        Args:
            last: Only this many of the newest segments; `None` means all.

        Raises:
            InvalidInputError: `last` is negative.
        """
        from langchain_supabase_memory.operations.summaries.rolling import list_segments

        return self._services.run(list_segments(self._key, last=last, retention=self._services.settings.retention))

    async def alist(self, *, last: int | None = None) -> builtins.list[Segment]:
        """The async twin of `list`."""
        await load("langchain_supabase_memory.operations.summaries.rolling")
        from langchain_supabase_memory.operations.summaries.rolling import list_segments

        return await self._services.arun(
            list_segments(self._key, last=last, retention=self._services.settings.retention)
        )

    def edit(self, number: int, text: str, *, actor: str) -> int:
        """Replace the text of a segment of the rolling summary. The next segment continues from it.

        Later segments are deleted and written again when they are due. Regeneration does not change an edited segment;
        it is only deleted when a message that it covers, or an earlier one, is edited or forgotten.

        Args:
            number: The segment's number, as in `summaries`.
            text: The new text, up to 10,000 characters.
            actor: Who edits it.

        Returns:
            How many segments were deleted.

        Raises:
            InvalidInputError: The text is not a string, is too long, or mentions an opted-out topic.
            NotFoundError: There is no such conversation or segment.
        """
        from langchain_supabase_memory.operations.controls import edit_segment

        return self._services.run(edit_segment(self._key, number, text, actor=actor, redactor=self._services.redactor))

    async def aedit(self, number: int, text: str, *, actor: str) -> int:
        """The async twin of `edit`."""
        await load("langchain_supabase_memory.operations.controls")
        from langchain_supabase_memory.operations.controls import edit_segment

        return await self._services.arun(
            edit_segment(self._key, number, text, actor=actor, redactor=self._services.redactor)
        )

    def delete(self, number: int, *, actor: str) -> int:
        """Delete a segment and all that were built on it; they are written again when due.

        Segments created from expired messages cannot be written again.

        Args:
            number: The segment's number, as in `summaries`.
            actor: Who deletes it.

        Returns:
            How many segments were deleted.

        Raises:
            NotFoundError: There is no such conversation or segment.
        """
        from langchain_supabase_memory.operations.controls import delete_segment

        return self._services.run(delete_segment(self._key, number, actor=actor))

    async def adelete(self, number: int, *, actor: str) -> int:
        """The async twin of `delete`."""
        await load("langchain_supabase_memory.operations.controls")
        from langchain_supabase_memory.operations.controls import delete_segment

        return await self._services.arun(delete_segment(self._key, number, actor=actor))

    def regenerate(self, *, actor: str, include_edited: bool = False) -> SummaryResult:
        """Regenerate the summaries from the messages after the last segment that a person wrote.

        Args:
            actor: Who requests it.
            include_edited: Whether to regenerate edited segments as well. Segments created from expired messages always
                stay.

        Returns:
            The result; empty if the memory has no model: then the summaries are written when they are due.

        Raises:
            NotFoundError: There is no such conversation.
        """
        from langchain_supabase_memory.operations.controls import regenerate_summaries

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
        await load("langchain_supabase_memory.operations.controls")
        from langchain_supabase_memory.operations.controls import regenerate_summaries

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
            priority: The new priority, -32,768 to 32,767; `None` leaves it. A signed-in user may only lower
                it.

        Returns:
            Whether the conversation exists.
        """
        from langchain_supabase_memory.operations.work import request

        return self._services.run(request(self._key, priority=priority))

    async def arequest(self, *, priority: int | None = None) -> bool:
        """The async twin of `request`."""
        await load("langchain_supabase_memory.operations.work")
        from langchain_supabase_memory.operations.work import request

        return await self._services.arun(request(self._key, priority=priority))

    def index(self) -> int:
        """Embed the newest summary of each conversation in a scope that has no vector of the model.

        Returns:
            How many summaries were embedded.

        Raises:
            EmbeddingError: The embedder failed; finished work stays, and the next call continues.
        """
        from langchain_supabase_memory.operations.recall.summaries import index_summaries

        return self._services.run(index_summaries(Scope.of(self._key), embedder=self._services.require_embedder()))

    async def aindex(self) -> int:
        """The async twin of `index`."""
        await load("langchain_supabase_memory.operations.recall.summaries")
        from langchain_supabase_memory.operations.recall.summaries import index_summaries

        return await self._services.arun(
            index_summaries(Scope.of(self._key), embedder=self._services.require_embedder())
        )
