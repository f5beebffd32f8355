# Written by tools/handles.py. Do not edit.
"""A person's overrides for all of a user's conversations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_supabase_memory.memory.handle import MemoryHandle, load

if TYPE_CHECKING:
    from langchain_supabase_memory.operations.controls import ControlChange, OptOut
    from langchain_supabase_memory.operations.profile import Consent, Purpose
    from langchain_supabase_memory.values import Chunk


class Privacy(MemoryHandle):
    """A person's overrides for all of a user's conversations, and their history: `memory.privacy`."""

    def opt_out(self, topic: str | None = None, *, agent_id: str | None = None, actor: str) -> bool:
        """Stop remembering a conversation, or a topic in it or in all current and future conversations of the user.

        Opting out of a conversation retains its messages, because the chat needs them, and deletes everything derived
        from it in the same transaction. Nothing new is derived: no chunk, summary or board. Board items that a person
        or the application wrote, pinned, rated or deleted stay until they delete them; an edited segment of the summary
        is deleted, because it stands for messages. What was promoted to long-term memory is forgotten there by the next
        `forget_source`. The conversation need not exist yet. For a minute `opt_in` undoes the opt-out; later it derives
        the rest again.

        Text that mentions an opted-out topic is not indexed, written to a board or left in a summary; what already
        exists is deleted. A topic is one word, or several adjacent words. Matching ignores case, accents and
        punctuation, and endings in English and in the conversation's language ("divorce" also matches "divorced", but
        "health" does not match "healthy" or "hospital": name each). In scripts without spaces, and in Korean, the
        characters are searched for. The messages stay. The summarizer is told to leave the topic out; sentences that
        mention it anyway are removed, but a paraphrase is left to the summarizer.

        Args:
            agent_id: Only with this agent; by default with all.
            topic: The topic, up to 200 characters; `None` for the conversation itself.
            actor: Who opts out; recorded with the time.

        Returns:
            Whether the opt-out is new.

        Raises:
            InvalidInputError: The topic has no letters, or neither a topic nor a conversation is named.
        """
        from langchain_supabase_memory.operations.controls import opt_out

        return self._services.run(opt_out(self._services.scope(agent_id=agent_id), topic, actor=actor))

    async def aopt_out(self, topic: str | None = None, *, agent_id: str | None = None, actor: str) -> bool:
        """The async twin of `opt_out`."""
        await load("langchain_supabase_memory.operations.controls")
        from langchain_supabase_memory.operations.controls import opt_out

        return await self._services.arun(opt_out(self._services.scope(agent_id=agent_id), topic, actor=actor))

    def opt_in(self, topic: str | None = None, *, agent_id: str | None = None, actor: str) -> bool:
        """Undo an `opt_out` that had the same arguments.

        Within a minute, summaries, the board, ratings and the title are restored, and chunks are indexed again. What
        was written in that minute stays. If messages changed or were deleted in that minute, and at any later time, the
        conversation becomes due again from its beginning. For a topic, unindexed messages are indexed again, and
        summaries and boards stay as they are until they are regenerated.

        Args:
            agent_id: Only with this agent; by default with all.
            topic: The topic; `None` for the conversation itself.
            actor: Who opts in; recorded with the time.

        Returns:
            Whether there was an opt-out.
        """
        from langchain_supabase_memory.operations.controls import opt_in

        return self._services.run(opt_in(self._services.scope(agent_id=agent_id), topic, actor=actor))

    async def aopt_in(self, topic: str | None = None, *, agent_id: str | None = None, actor: str) -> bool:
        """The async twin of `opt_in`."""
        await load("langchain_supabase_memory.operations.controls")
        from langchain_supabase_memory.operations.controls import opt_in

        return await self._services.arun(opt_in(self._services.scope(agent_id=agent_id), topic, actor=actor))

    def opt_outs(self, *, agent_id: str | None = None) -> list[OptOut]:
        """List the opt-outs, with who made each and when, oldest first.

        Args:
            agent_id: Only with this agent; by default with all.
        """
        from langchain_supabase_memory.operations.controls import opt_outs

        return self._services.run(opt_outs(self._services.scope(agent_id=agent_id)))

    async def aopt_outs(self, *, agent_id: str | None = None) -> list[OptOut]:
        """The async twin of `opt_outs`."""
        await load("langchain_supabase_memory.operations.controls")
        from langchain_supabase_memory.operations.controls import opt_outs

        return await self._services.arun(opt_outs(self._services.scope(agent_id=agent_id)))

    def changes(self, *, agent_id: str | None = None, limit: int = 100) -> list[ControlChange]:
        """List the changes by opt-outs, ratings and edits of summaries, with who made each and when, newest first.

        Args:
            agent_id: Only with this agent; by default with all.
            limit: The maximum number of changes, up to 500.
        """
        from langchain_supabase_memory.operations.controls import changes

        return self._services.run(changes(self._services.scope(agent_id=agent_id), limit=limit))

    async def achanges(self, *, agent_id: str | None = None, limit: int = 100) -> list[ControlChange]:
        """The async twin of `changes`."""
        await load("langchain_supabase_memory.operations.controls")
        from langchain_supabase_memory.operations.controls import changes

        return await self._services.arun(changes(self._services.scope(agent_id=agent_id), limit=limit))

    def rate(
        self, chunk: Chunk | str, *, actor: str, useful: bool | None = None, importance: float | None = None
    ) -> float:
        """Rate how much a chunk matters. Recall uses the rating, and chunks with the same text keep it.

        Args:
            chunk: A recalled chunk, or its id.
            actor: Who rates it; recorded with the time.
            useful: Whether it was useful: sets an importance of 0.9 or 0.1.
            importance: Or the importance itself, from 0 to 1.

        Returns:
            The new importance.

        Raises:
            InvalidInputError: Not exactly one of `useful` and `importance` is given, or the value is not valid.
            NotFoundError: There is no such chunk.
        """
        from langchain_supabase_memory.operations.controls import rate

        return self._services.run(
            rate(self._services.owner(), chunk, actor=actor, useful=useful, importance=importance)
        )

    async def arate(
        self, chunk: Chunk | str, *, actor: str, useful: bool | None = None, importance: float | None = None
    ) -> float:
        """The async twin of `rate`."""
        await load("langchain_supabase_memory.operations.controls")
        from langchain_supabase_memory.operations.controls import rate

        return await self._services.arun(
            rate(self._services.owner(), chunk, actor=actor, useful=useful, importance=importance)
        )

    def consent(self, purpose: Purpose, allowed: bool, *, actor: str) -> bool:
        """Set what the user allows to be derived. What they refuse is derived no more, and what there is goes.

        Args:
            purpose: The purpose.
            allowed: Whether they allow it.
            actor: Who says so; recorded with the time.

        Returns:
            Whether that is new.

        Raises:
            ConfigurationError: There is no such purpose.
            InvalidInputError: `allowed` is not a boolean, or the actor is empty.
        """
        from langchain_supabase_memory.operations.profile import consent

        return self._services.run(consent(self._services.owner(), purpose, allowed, actor=actor))

    async def aconsent(self, purpose: Purpose, allowed: bool, *, actor: str) -> bool:
        """The async twin of `consent`."""
        await load("langchain_supabase_memory.operations.profile")
        from langchain_supabase_memory.operations.profile import consent

        return await self._services.arun(consent(self._services.owner(), purpose, allowed, actor=actor))

    def consents(self) -> list[Consent]:
        """List what the user allows or refuses to have derived, with who said so and when."""
        from langchain_supabase_memory.operations.profile import consents

        return self._services.run(consents(self._services.owner()))

    async def aconsents(self) -> list[Consent]:
        """The async twin of `consents`."""
        await load("langchain_supabase_memory.operations.profile")
        from langchain_supabase_memory.operations.profile import consents

        return await self._services.arun(consents(self._services.owner()))
