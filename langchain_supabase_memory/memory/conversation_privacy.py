# Written by tools/handles.py. Do not edit.
"""A person's overrides for one conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_supabase_memory.memory.handle import ConversationPartHandle, load
from langchain_supabase_memory.values import Scope

if TYPE_CHECKING:
    from langchain_supabase_memory.operations.controls import ControlChange, OptOut


class ConversationPrivacy(ConversationPartHandle):
    """A person's overrides for one conversation: opt-outs, ratings and edits."""

    def opt_outs(self) -> list[OptOut]:
        """List the opt-outs, with who made each and when, oldest first."""
        from langchain_supabase_memory.operations.controls import opt_outs

        return self._services.run(opt_outs(Scope.of(self._key)))

    async def aopt_outs(self) -> list[OptOut]:
        """The async twin of `opt_outs`."""
        await load("langchain_supabase_memory.operations.controls")
        from langchain_supabase_memory.operations.controls import opt_outs

        return await self._services.arun(opt_outs(Scope.of(self._key)))

    def changes(self, *, limit: int = 100) -> list[ControlChange]:
        """List the changes by opt-outs, ratings and edits of summaries, with who made each and when, newest first.

        Args:
            limit: The maximum number of changes, up to 500.
        """
        from langchain_supabase_memory.operations.controls import changes

        return self._services.run(changes(Scope.of(self._key), limit=limit))

    async def achanges(self, *, limit: int = 100) -> list[ControlChange]:
        """The async twin of `changes`."""
        await load("langchain_supabase_memory.operations.controls")
        from langchain_supabase_memory.operations.controls import changes

        return await self._services.arun(changes(Scope.of(self._key), limit=limit))
