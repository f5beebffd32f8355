# Written by tools/handles.py. Do not edit.
"""Operations on one space."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_supabase_memory.memory.handle import SpaceHandle, load
from langchain_supabase_memory.operations.spaces import INVITATION_EXPIRY, Invitation, SpaceInfo

if TYPE_CHECKING:
    from datetime import timedelta

    from langchain_supabase_memory.operations.boards.board import BoardItem
    from langchain_supabase_memory.operations.contributions import Contribution
    from langchain_supabase_memory.settings import Retention
    from langchain_supabase_memory.values import Receipt, SpaceRole


class Space(SpaceHandle):
    """One space: `memory.space(space_id)`. Memory that several people share; `space.memory` reads and writes in it.

    A space is an owner: all that a memory does for a user it does in a space, for whoever the role allows it. Members
    read, append, edit their own messages and forget them. Summaries, boards and chunks are made by a server.
    """

    def info(self) -> SpaceInfo:
        """Return what the space is, and who is in it.

        Raises:
            NotFoundError: There is no such space, or who asks is not in it.
        """
        from langchain_supabase_memory.operations.spaces import info

        return self._services.run(info(self._services.space_id, self._services.member))

    async def ainfo(self) -> SpaceInfo:
        """The async twin of `info`."""
        await load("langchain_supabase_memory.operations.spaces")
        from langchain_supabase_memory.operations.spaces import info

        return await self._services.arun(info(self._services.space_id, self._services.member))

    def update(self, *, name: str | None = None, about: str | None = None, keep: Retention | None = None) -> None:
        """Change what the space is called, what it is for, and what is kept there, as one of its managers.

        Args:
            name: What it is called from now on, 1 to 200 characters; as before by default.
            about: What it is for, at most 8,000 bytes; as before by default.
            keep: What is kept of its messages; as before by default, and everything with `Retention()`.

        Raises:
            InvalidInputError: The name or the text is too long, or the name is empty.
            PermissionDeniedError: Only a manager may.
        """
        from langchain_supabase_memory.operations.spaces import update

        self._services.run(update(self._services.space_id, self._services.member, name=name, about=about, keep=keep))

    async def aupdate(
        self, *, name: str | None = None, about: str | None = None, keep: Retention | None = None
    ) -> None:
        """The async twin of `update`."""
        await load("langchain_supabase_memory.operations.spaces")
        from langchain_supabase_memory.operations.spaces import update

        await self._services.arun(
            update(self._services.space_id, self._services.member, name=name, about=about, keep=keep)
        )

    def invite(
        self, role: SpaceRole = "reader", *, uses: int = 1, expires: timedelta = INVITATION_EXPIRY
    ) -> Invitation:
        """Invite people into the space, as one of its managers. Whoever has the token joins by `memory.spaces.join`.

        Args:
            role: What it makes of who uses it: `reader` or `contributor`. Managers are made by `set_member`.
            uses: How many people it lets in, 1 to 1,000.
            expires: How long it can be used, at most a year.

        Returns:
            The invitation with its token, which is shown this once.

        Raises:
            ConfigurationError: There is no such role, or the time is no timedelta.
            InvalidInputError: The uses or the time is out of range.
            PermissionDeniedError: Only a manager may.
            TooLargeError: There are as many open invitations as the limits allow.
        """
        from langchain_supabase_memory.operations.spaces import invite

        return self._services.run(
            invite(self._services.space_id, self._services.member, role, uses=uses, expires=expires)
        )

    async def ainvite(
        self, role: SpaceRole = "reader", *, uses: int = 1, expires: timedelta = INVITATION_EXPIRY
    ) -> Invitation:
        """The async twin of `invite`."""
        await load("langchain_supabase_memory.operations.spaces")
        from langchain_supabase_memory.operations.spaces import invite

        return await self._services.arun(
            invite(self._services.space_id, self._services.member, role, uses=uses, expires=expires)
        )

    def withdraw_invitations(self) -> None:
        """Take all open invitations back, as one of the managers.

        Raises:
            PermissionDeniedError: Only a manager may.
        """
        from langchain_supabase_memory.operations.spaces import withdraw_invitations

        self._services.run(withdraw_invitations(self._services.space_id, self._services.member))

    async def awithdraw_invitations(self) -> None:
        """The async twin of `withdraw_invitations`."""
        await load("langchain_supabase_memory.operations.spaces")
        from langchain_supabase_memory.operations.spaces import withdraw_invitations

        await self._services.arun(withdraw_invitations(self._services.space_id, self._services.member))

    def set_member(self, member_id: str, role: SpaceRole | None) -> None:
        """Set what a member may do, as one of the managers. It holds from the next statement on.

        Args:
            member_id: The user whose role is set.
            role: What they may do from now on; `None` removes them. What they wrote stays, and is theirs to forget.

        Raises:
            ConfigurationError: There is no such role.
            InvalidInputError: The space would have no manager.
            NotFoundError: There is no such member.
            PermissionDeniedError: Only a manager may.
        """
        from langchain_supabase_memory.operations.spaces import set_member

        self._services.run(set_member(self._services.space_id, self._services.member, member_id, role))

    async def aset_member(self, member_id: str, role: SpaceRole | None) -> None:
        """The async twin of `set_member`."""
        await load("langchain_supabase_memory.operations.spaces")
        from langchain_supabase_memory.operations.spaces import set_member

        await self._services.arun(set_member(self._services.space_id, self._services.member, member_id, role))

    def set_name(self, name: str, *, member_id: str | None = None) -> str:
        """Set what prompts call a member, as that member or as one of the managers; it holds for all that they wrote.

        Args:
            name: The name, 1 to 40 letters, digits, spaces and signs of names.
            member_id: The member; who sets it by default.

        Returns:
            What they are called now: with a number where somebody else is called that already.

        Raises:
            InvalidInputError: That is no name, or it is that of a role, such as `assistant`.
            NotFoundError: There is no such member.
            PermissionDeniedError: Only the member and a manager may.
        """
        from langchain_supabase_memory.operations.spaces import set_name

        return self._services.run(set_name(self._services.space_id, self._services.member, name, member_id=member_id))

    async def aset_name(self, name: str, *, member_id: str | None = None) -> str:
        """The async twin of `set_name`."""
        await load("langchain_supabase_memory.operations.spaces")
        from langchain_supabase_memory.operations.spaces import set_name

        return await self._services.arun(
            set_name(self._services.space_id, self._services.member, name, member_id=member_id)
        )

    def leave(self) -> None:
        """Leave the space. What the member wrote stays, and they may still forget it.

        Raises:
            InvalidInputError: The last manager cannot leave: make somebody else one, or forget the space.
            NotFoundError: There is no such space, or who leaves is not in it.
        """
        from langchain_supabase_memory.operations.spaces import leave

        self._services.run(leave(self._services.space_id, self._services.member))

    async def aleave(self) -> None:
        """The async twin of `leave`."""
        await load("langchain_supabase_memory.operations.spaces")
        from langchain_supabase_memory.operations.spaces import leave

        await self._services.arun(leave(self._services.space_id, self._services.member))

    def withdraw(self, item: Contribution | BoardItem | str) -> None:
        """Take an item back that was contributed, as who contributed it or as a manager. Who has left may do so, too.

        Args:
            item: The contribution, the item of the board, or its id.

        Raises:
            NotFoundError: Nobody has contributed such an item, or who asks never was in the space.
            PermissionDeniedError: Somebody else contributed it, and who asks is no manager.
        """
        from langchain_supabase_memory.operations.contributions import withdraw

        self._services.run(withdraw(self._services.space_id, self._services.member, item))

    async def awithdraw(self, item: Contribution | BoardItem | str) -> None:
        """The async twin of `withdraw`."""
        await load("langchain_supabase_memory.operations.contributions")
        from langchain_supabase_memory.operations.contributions import withdraw

        await self._services.arun(withdraw(self._services.space_id, self._services.member, item))

    def forget(self, *, dry_run: bool = False) -> Receipt:
        """Erase the space, as one of its managers: everything that it owns, its members and its invitations.

        Args:
            dry_run: Only report what would go.

        Returns:
            What was removed. What its members hold for themselves stays.

        Raises:
            PermissionDeniedError: Only a manager may.
        """
        from langchain_supabase_memory.operations.spaces import forget

        return self._services.run(forget(self._services.space_id, self._services.member, dry_run=dry_run))

    async def aforget(self, *, dry_run: bool = False) -> Receipt:
        """The async twin of `forget`."""
        await load("langchain_supabase_memory.operations.spaces")
        from langchain_supabase_memory.operations.spaces import forget

        return await self._services.arun(forget(self._services.space_id, self._services.member, dry_run=dry_run))
