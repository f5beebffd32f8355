# Written by tools/handles.py. Do not edit.
"""The spaces of a user."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_supabase_memory.memory.handle import MemoryHandle, load

if TYPE_CHECKING:
    import builtins

    from langchain_supabase_memory.operations.contributions import SharedData
    from langchain_supabase_memory.operations.spaces import SpaceInfo
    from langchain_supabase_memory.settings import Retention


class Spaces(MemoryHandle):
    """The spaces that a user is in: `memory.spaces`. `memory.space(space_id)` is the handle of one."""

    def create(self, name: str, *, about: str = "", keep: Retention | None = None) -> SpaceInfo:
        """Create a space. Who creates it manages it.

        Args:
            name: What it is called, 1 to 200 characters; for display alone.
            about: What it is for, at most 8,000 bytes.
            keep: What is kept of its messages, in place of what any call says; everything by default.

        Returns:
            The new space: `memory.space(made.space_id)` is its handle.

        Raises:
            InvalidInputError: The name or the text is too long, or the name is empty.
            TooLargeError: The user has created, or is in, as many spaces as the limits allow.
            MigrationConflictError: Spaces are not switched on in this database.
        """
        from langchain_supabase_memory.operations.spaces import create

        return self._services.run(create(self._services.owner(), name, about=about, keep=keep))

    async def acreate(self, name: str, *, about: str = "", keep: Retention | None = None) -> SpaceInfo:
        """The async twin of `create`."""
        await load("langchain_supabase_memory.operations.spaces")
        from langchain_supabase_memory.operations.spaces import create

        return await self._services.arun(create(self._services.owner(), name, about=about, keep=keep))

    def list(self) -> builtins.list[SpaceInfo]:
        """List the spaces that the user is in, by their names."""
        from langchain_supabase_memory.operations.spaces import spaces

        return self._services.run(spaces(self._services.owner()))

    async def alist(self) -> builtins.list[SpaceInfo]:
        """The async twin of `list`."""
        await load("langchain_supabase_memory.operations.spaces")
        from langchain_supabase_memory.operations.spaces import spaces

        return await self._services.arun(spaces(self._services.owner()))

    def join(self, token: str) -> SpaceInfo:
        """Join a space by an invitation.

        Who is in it already keeps the higher of the two roles. Who has left, or was removed, needs an invitation newer
        than that.

        Args:
            token: What `space.invite` gave.

        Raises:
            NotFoundError: There is no such invitation, or it has expired or is used up.
            TooLargeError: The space has as many members, or the user is in as many spaces, as the limits allow.
        """
        from langchain_supabase_memory.operations.spaces import join

        return self._services.run(join(self._services.owner(), token))

    async def ajoin(self, token: str) -> SpaceInfo:
        """The async twin of `join`."""
        await load("langchain_supabase_memory.operations.spaces")
        from langchain_supabase_memory.operations.spaces import join

        return await self._services.arun(join(self._services.owner(), token))

    def shared_data(self) -> SharedData:
        """Return what spaces hold of the user: where they are or were, what they wrote there, and what they quoted."""
        from langchain_supabase_memory.operations.contributions import shared_data

        return self._services.run(shared_data(self._services.owner()))

    async def ashared_data(self) -> SharedData:
        """The async twin of `shared_data`."""
        await load("langchain_supabase_memory.operations.contributions")
        from langchain_supabase_memory.operations.contributions import shared_data

        return await self._services.arun(shared_data(self._services.owner()))
