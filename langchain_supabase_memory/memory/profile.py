# Written by tools/handles.py. Do not edit.
"""What is known of a user."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from langchain_supabase_memory.memory.handle import MemoryHandle, load

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from langchain_supabase_memory.operations.profile import ProfileItem, ProfileKind, ProfileState


class Profile(MemoryHandle):
    """What is known of a user, from all of their conversations and from themself: `memory.profile`.

    `actor` is the name of the person who makes a change, the user by default; it is recorded with the change.
    """

    def read(
        self,
        *,
        at: datetime | None = None,
        agent_id: str | None = None,
        states: Sequence[ProfileState] = ("held", "proposed"),
        limit: int | None = 200,
    ) -> list[ProfileItem]:
        """Read what is known of the user: pinned items, instructions and constraints, preferences, traits, facts.

        Args:
            at: What held at this time, by when things were said; now by default. Then `states` do not count.
            agent_id: What holds with this agent, and with all; by default with any.
            states: Which states.
            limit: The maximum number of items; `None` means all.

        Raises:
            InvalidInputError: A time has no time zone, a state is unknown, or a space is named: it has no profile.
        """
        from langchain_supabase_memory.operations.profile import read

        return self._services.run(read(self._services.owner(), at=at, agent_id=agent_id, states=states, limit=limit))

    async def aread(
        self,
        *,
        at: datetime | None = None,
        agent_id: str | None = None,
        states: Sequence[ProfileState] = ("held", "proposed"),
        limit: int | None = 200,
    ) -> list[ProfileItem]:
        """The async twin of `read`."""
        await load("langchain_supabase_memory.operations.profile")
        from langchain_supabase_memory.operations.profile import read

        return await self._services.arun(
            read(self._services.owner(), at=at, agent_id=agent_id, states=states, limit=limit)
        )

    def history(self, item: ProfileItem | str) -> list[ProfileItem]:
        """Read what was known of the same matter over time: what an item superseded, and what superseded it.

        Args:
            item: The item, or its id.

        Returns:
            The items, those that were said first first; empty if there is no such item.
        """
        from langchain_supabase_memory.operations.profile import history

        return self._services.run(history(self._services.owner(), item))

    async def ahistory(self, item: ProfileItem | str) -> list[ProfileItem]:
        """The async twin of `history`."""
        await load("langchain_supabase_memory.operations.profile")
        from langchain_supabase_memory.operations.profile import history

        return await self._services.arun(history(self._services.owner(), item))

    def remember(
        self,
        text: str,
        *,
        kind: ProfileKind = "fact",
        subject: str | None = None,
        polarity: Literal[-1, 0, 1] = 0,
        condition: str | None = None,
        agent_id: str | None = None,
        actor: str | None = None,
        author_kind: Literal["person", "application", "model"] = "person",
    ) -> str:
        """Remember something about the user, without a conversation. It holds from now on.

        What a model remembers is proposed, and holds once a person confirms it. At most 100 such items wait.

        Args:
            text: What is remembered, up to 500 characters.
            kind: What it is.
            subject: What it is about, up to 200 characters: another value of the same subject takes over. By default
                the text itself, so that nothing is superseded.
            polarity: 1 if they want or like it, -1 if they do not.
            condition: When it holds; by default always.
            agent_id: The agent with which it holds; by default all.
            actor: Who remembers it; the user by default.
            author_kind: The kind of `actor`. An application counts as much as a person; pass `model` for what a model
                decided by itself.

        Returns:
            The item's id. What is held already is not remembered twice.

        Raises:
            InvalidInputError: The text, the kind or the subject is not valid, it mentions an opted-out topic, the user
                does not allow a profile, or a model suggests what the user deleted.
            TooLargeError: The profile is full, or too many suggestions wait for the user.
        """
        from langchain_supabase_memory.operations.profile import remember

        return self._services.run(
            remember(
                self._services.owner(),
                text,
                kind=kind,
                subject=subject,
                polarity=polarity,
                condition=condition,
                agent_id=agent_id,
                actor=actor,
                author_kind=author_kind,
                redactor=self._services.redactor,
            )
        )

    async def aremember(
        self,
        text: str,
        *,
        kind: ProfileKind = "fact",
        subject: str | None = None,
        polarity: Literal[-1, 0, 1] = 0,
        condition: str | None = None,
        agent_id: str | None = None,
        actor: str | None = None,
        author_kind: Literal["person", "application", "model"] = "person",
    ) -> str:
        """The async twin of `remember`."""
        await load("langchain_supabase_memory.operations.profile")
        from langchain_supabase_memory.operations.profile import remember

        return await self._services.arun(
            remember(
                self._services.owner(),
                text,
                kind=kind,
                subject=subject,
                polarity=polarity,
                condition=condition,
                agent_id=agent_id,
                actor=actor,
                author_kind=author_kind,
                redactor=self._services.redactor,
            )
        )

    def confirm(self, item: ProfileItem | str, *, actor: str | None = None) -> str:
        """Confirm an item: what was proposed holds, and what was superseded holds again, from now on.

        Args:
            item: The item, or its id.
            actor: Who confirms it; the user by default.

        Returns:
            The id of the item that holds: a new one for what was superseded.

        Raises:
            NotFoundError: There is no such item.
        """
        from langchain_supabase_memory.operations.profile import confirm

        return self._services.run(confirm(self._services.owner(), item, actor=actor))

    async def aconfirm(self, item: ProfileItem | str, *, actor: str | None = None) -> str:
        """The async twin of `confirm`."""
        await load("langchain_supabase_memory.operations.profile")
        from langchain_supabase_memory.operations.profile import confirm

        return await self._services.arun(confirm(self._services.owner(), item, actor=actor))

    def correct(
        self,
        item: ProfileItem | str,
        value: str,
        *,
        polarity: Literal[-1, 0, 1] | None = None,
        actor: str | None = None,
    ) -> str:
        """Correct an item: another value holds from now on. The old one stays in the history, with both dates.

        Args:
            item: The item, or its id.
            value: The right value, up to 500 characters.
            polarity: Its polarity; by default as it was.
            actor: Who corrects it; the user by default.

        Returns:
            The id of the item that holds now.

        Raises:
            InvalidInputError: The value is not valid, or mentions an opted-out topic.
            NotFoundError: There is no such item.
        """
        from langchain_supabase_memory.operations.profile import correct

        return self._services.run(
            correct(
                self._services.owner(), item, value, polarity=polarity, actor=actor, redactor=self._services.redactor
            )
        )

    async def acorrect(
        self,
        item: ProfileItem | str,
        value: str,
        *,
        polarity: Literal[-1, 0, 1] | None = None,
        actor: str | None = None,
    ) -> str:
        """The async twin of `correct`."""
        await load("langchain_supabase_memory.operations.profile")
        from langchain_supabase_memory.operations.profile import correct

        return await self._services.arun(
            correct(
                self._services.owner(), item, value, polarity=polarity, actor=actor, redactor=self._services.redactor
            )
        )

    def delete(self, item: ProfileItem | str, *, actor: str | None = None) -> None:
        """Delete an item with its quotes. No conversation brings it back; a person may remember it again.

        Args:
            item: The item, or its id.
            actor: Who deletes it; the user by default.

        Raises:
            NotFoundError: There is no such item.
        """
        from langchain_supabase_memory.operations.profile import delete

        self._services.run(delete(self._services.owner(), item, actor=actor))

    async def adelete(self, item: ProfileItem | str, *, actor: str | None = None) -> None:
        """The async twin of `delete`."""
        await load("langchain_supabase_memory.operations.profile")
        from langchain_supabase_memory.operations.profile import delete

        await self._services.arun(delete(self._services.owner(), item, actor=actor))

    def pin(self, item: ProfileItem | str, *, pinned: bool = True, actor: str | None = None) -> None:
        """Pin an item, so that it comes before all others, or unpin it.

        Args:
            item: The item, or its id.
            pinned: Whether it is pinned from now on.
            actor: Who does it; the user by default.

        Raises:
            NotFoundError: There is no such item.
        """
        from langchain_supabase_memory.operations.profile import pin

        self._services.run(pin(self._services.owner(), item, pinned=pinned, actor=actor))

    async def apin(self, item: ProfileItem | str, *, pinned: bool = True, actor: str | None = None) -> None:
        """The async twin of `pin`."""
        await load("langchain_supabase_memory.operations.profile")
        from langchain_supabase_memory.operations.profile import pin

        await self._services.arun(pin(self._services.owner(), item, pinned=pinned, actor=actor))
