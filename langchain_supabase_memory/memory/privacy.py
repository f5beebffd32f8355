# Written by tools/handles.py. Do not edit.
"""What people decide about all that is remembered of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_supabase_memory.memory.handle import MemoryHandle
from langchain_supabase_memory.operations.controls import (
    ControlChange,
    OptOut,
    changes,
    opt_in,
    opt_out,
    opt_outs,
    rate,
)

if TYPE_CHECKING:
    from langchain_supabase_memory.values import Chunk


class Privacy(MemoryHandle):
    """What people decide about all of a user's conversations, and what that changed: `memory.privacy`."""

    def opt_out(self, topic: str | None = None, *, agent_id: str | None = None, actor: str) -> bool:
        """Do not remember a conversation, or a topic in it or in all of a user's conversations, also those to come.

        Of a conversation the messages stay, for the chat needs them; all that is derived from it goes in the same
        transaction, and nothing new is made: no chunk, no summary, no board. What a person or the application wrote,
        pinned, rated or deleted on its board stays until they delete it; a segment of the summary that one edited
        stands for messages, and goes. What had moved to long-term memory goes with the next `forget_source`. The
        conversation need not have begun. For a minute `opt_in` undoes it; later it makes the rest anew.

        What mentions a topic is not indexed, nor written on a board, nor left in a summary; what is there already
        goes. A topic is one word or several that stand next to one another. Case, accents and punctuation do not
        matter, nor do endings in English and in the conversation's language ("divorce" is "divorced" too, but "health"
        is not "healthy", nor "hospital": name each). In scripts that set no spaces, and in Korean, its characters are
        looked for. The messages stay. A writer is told to leave the topic out; of what it writes all the same, the
        sentences that mention the topic are taken out, and what says it in other words is left to the writer.

        Args:
            agent_id: Only with this agent; by default with all.
            topic: The topic, up to 200 characters; `None` for a conversation itself.
            actor: Who says so; it is noted with the time.

        Returns:
            Whether that is new.

        Raises:
            InvalidInputError: The topic has no letters, or neither a topic nor a conversation is named.
        """
        return self._services.run(opt_out(self._services.scope(agent_id=agent_id), topic, actor=actor))

    async def aopt_out(self, topic: str | None = None, *, agent_id: str | None = None, actor: str) -> bool:
        """The async twin of `opt_out`."""
        return await self._services.arun(opt_out(self._services.scope(agent_id=agent_id), topic, actor=actor))

    def opt_in(self, topic: str | None = None, *, agent_id: str | None = None, actor: str) -> bool:
        """Remember again what `opt_out` with the same arguments had named.

        Within a minute of `opt_out` it is undone: summaries, the board, ratings and the title are as they were, and
        chunks are indexed again. What was written in that minute stays. Where messages changed or went in it, and
        after it, a conversation is due again from its beginning; of a topic, what was not indexed is indexed again,
        and summaries and boards stay as they are until they are regenerated.

        Args:
            agent_id: Only with this agent; by default with all.
            topic: The topic; `None` for a conversation itself.
            actor: Who says so; it is noted with the time.

        Returns:
            Whether it had not been remembered.
        """
        return self._services.run(opt_in(self._services.scope(agent_id=agent_id), topic, actor=actor))

    async def aopt_in(self, topic: str | None = None, *, agent_id: str | None = None, actor: str) -> bool:
        """The async twin of `opt_in`."""
        return await self._services.arun(opt_in(self._services.scope(agent_id=agent_id), topic, actor=actor))

    def opt_outs(self, *, agent_id: str | None = None) -> list[OptOut]:
        """What is not to be remembered, with who said so and when, the oldest first.

        Args:
            agent_id: Only with this agent; by default with all.
        """
        return self._services.run(opt_outs(self._services.scope(agent_id=agent_id)))

    async def aopt_outs(self, *, agent_id: str | None = None) -> list[OptOut]:
        """The async twin of `opt_outs`."""
        return await self._services.arun(opt_outs(self._services.scope(agent_id=agent_id)))

    def changes(self, *, agent_id: str | None = None, limit: int = 100) -> list[ControlChange]:
        """Who changed what by opt-outs, ratings and edits of summaries, and when, the newest first.

        Args:
            agent_id: Only with this agent; by default with all.
            limit: The most, up to 500.
        """
        return self._services.run(changes(self._services.scope(agent_id=agent_id), limit=limit))

    async def achanges(self, *, agent_id: str | None = None, limit: int = 100) -> list[ControlChange]:
        """The async twin of `changes`."""
        return await self._services.arun(changes(self._services.scope(agent_id=agent_id), limit=limit))

    def rate(
        self, chunk: Chunk | str, *, actor: str, useful: bool | None = None, importance: float | None = None
    ) -> float:
        """Say how much a chunk matters: recall and promotion go by it, and the same words keep it for good.

        Args:
            chunk: The chunk, as it was recalled, or its id.
            actor: Who says so; it is noted with the time.
            useful: Whether it was of use: an importance of 0.9 or 0.1.
            importance: Or its importance itself, from 0 to 1.

        Returns:
            Its importance from now on.

        Raises:
            InvalidInputError: Not exactly one of `useful` and `importance` is given, or that is none.
            NotFoundError: There is no such chunk.
        """
        return self._services.run(
            rate(self._services.owner(), chunk, actor=actor, useful=useful, importance=importance)
        )

    async def arate(
        self, chunk: Chunk | str, *, actor: str, useful: bool | None = None, importance: float | None = None
    ) -> float:
        """The async twin of `rate`."""
        return await self._services.arun(
            rate(self._services.owner(), chunk, actor=actor, useful=useful, importance=importance)
        )
