# Written by tools/handles.py. Do not edit.
"""What a user's conversations are about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_supabase_memory.memory.handle import MemoryHandle, load

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from langchain_supabase_memory.operations.topics import ForgottenTopic, Topic, TopicDay, TopicUpdate


class Topics(MemoryHandle):
    """What a user's conversations are about, found without a model: `memory.topics`.

    `actor` is the name of the person who makes a change; it is recorded with the change.
    """

    def read(
        self, *, since: datetime | None = None, hidden: bool = False, quotes: int = 1, limit: int = 200
    ) -> list[Topic]:
        """List what the user's conversations are about: the topics with the most episodes first.

        Args:
            since: Only what was talked about since; the counts are since then. By default ever.
            hidden: Whether topics that a person hid are listed, too.
            quotes: The maximum number of quotes of each, up to 20.
            limit: The maximum number of topics, up to 500.

        Raises:
            InvalidInputError: A number is negative, or a time has no time zone.
        """
        from langchain_supabase_memory.operations.topics import read

        return self._services.run(
            read(
                self._services.owner(),
                since=since,
                hidden=hidden,
                quotes=quotes,
                limit=limit,
                retention=self._services.settings.retention,
            )
        )

    async def aread(
        self, *, since: datetime | None = None, hidden: bool = False, quotes: int = 1, limit: int = 200
    ) -> list[Topic]:
        """The async twin of `read`."""
        await load("langchain_supabase_memory.operations.topics")
        from langchain_supabase_memory.operations.topics import read

        return await self._services.arun(
            read(
                self._services.owner(),
                since=since,
                hidden=hidden,
                quotes=quotes,
                limit=limit,
                retention=self._services.settings.retention,
            )
        )

    def get(self, topic: Topic | str, *, quotes: int = 5) -> Topic | None:
        """Return one topic, or the one that it was merged into.

        Args:
            topic: The topic, or its id.
            quotes: The maximum number of quotes, up to 20.

        Returns:
            The topic; `None` if there is no such topic.
        """
        from langchain_supabase_memory.operations.topics import get

        return self._services.run(
            get(self._services.owner(), topic, quotes=quotes, retention=self._services.settings.retention)
        )

    async def aget(self, topic: Topic | str, *, quotes: int = 5) -> Topic | None:
        """The async twin of `get`."""
        await load("langchain_supabase_memory.operations.topics")
        from langchain_supabase_memory.operations.topics import get

        return await self._services.arun(
            get(self._services.owner(), topic, quotes=quotes, retention=self._services.settings.retention)
        )

    def days(
        self, *, since: datetime | None = None, topic: Topic | str | None = None, hidden: bool = False
    ) -> list[TopicDay]:
        """Count by topic and day how much was talked about it. A day without anything has no row.

        Args:
            since: Since when; by default the last 90 days.
            topic: Only this topic, or its id.
            hidden: Whether topics that a person hid count, too.

        Raises:
            InvalidInputError: A time has no time zone.
        """
        from langchain_supabase_memory.operations.topics import days

        return self._services.run(days(self._services.owner(), since=since, topic=topic, hidden=hidden))

    async def adays(
        self, *, since: datetime | None = None, topic: Topic | str | None = None, hidden: bool = False
    ) -> list[TopicDay]:
        """The async twin of `days`."""
        await load("langchain_supabase_memory.operations.topics")
        from langchain_supabase_memory.operations.topics import days

        return await self._services.arun(days(self._services.owner(), since=since, topic=topic, hidden=hidden))

    def rename(self, topic: Topic | str, name: str | None, *, actor: str) -> None:
        """Give a topic a name, which stays when topics are found anew.

        Args:
            topic: The topic, or its id.
            name: The name, up to 200 characters; `None` calls it by its words again.
            actor: Who names it; recorded with the time.

        Raises:
            InvalidInputError: The name is no text, is empty or too long, or mentions an opted-out topic.
            NotFoundError: There is no such topic.
        """
        from langchain_supabase_memory.operations.topics import rename

        self._services.run(rename(self._services.owner(), topic, name, actor=actor, redactor=self._services.redactor))

    async def arename(self, topic: Topic | str, name: str | None, *, actor: str) -> None:
        """The async twin of `rename`."""
        await load("langchain_supabase_memory.operations.topics")
        from langchain_supabase_memory.operations.topics import rename

        await self._services.arun(
            rename(self._services.owner(), topic, name, actor=actor, redactor=self._services.redactor)
        )

    def merge(self, topic: Topic | str, into: Topic | str | None, *, actor: str) -> str:
        """Make a topic a part of another, or one of its own again. No new finding of topics takes it back.

        Args:
            topic: The topic, or its id.
            into: The topic that it becomes a part of, or its id; `None` takes a merge back.
            actor: Who does it; recorded with the time.

        Returns:
            The id of the topic that it is a part of now, or its own.

        Raises:
            InvalidInputError: It is the same topic.
            NotFoundError: There is no such topic.
        """
        from langchain_supabase_memory.operations.topics import merge

        return self._services.run(merge(self._services.owner(), topic, into, actor=actor))

    async def amerge(self, topic: Topic | str, into: Topic | str | None, *, actor: str) -> str:
        """The async twin of `merge`."""
        await load("langchain_supabase_memory.operations.topics")
        from langchain_supabase_memory.operations.topics import merge

        return await self._services.arun(merge(self._services.owner(), topic, into, actor=actor))

    def hide(self, topic: Topic | str, *, hidden: bool = True, actor: str) -> None:
        """Hide a topic from lists, or show it again. What was said stays where it is.

        Args:
            topic: The topic, or its id.
            hidden: Whether it is hidden from now on.
            actor: Who does it; recorded with the time.

        Raises:
            NotFoundError: There is no such topic.
        """
        from langchain_supabase_memory.operations.topics import hide

        self._services.run(hide(self._services.owner(), topic, hidden=hidden, actor=actor))

    async def ahide(self, topic: Topic | str, *, hidden: bool = True, actor: str) -> None:
        """The async twin of `hide`."""
        await load("langchain_supabase_memory.operations.topics")
        from langchain_supabase_memory.operations.topics import hide

        await self._services.arun(hide(self._services.owner(), topic, hidden=hidden, actor=actor))

    def forget(
        self, topic: Topic | str, *, words: Sequence[str] | None = None, actor: str, dry_run: bool = False
    ) -> ForgottenTopic:
        """Remember nothing more of a topic: opt out of its words, and delete the chunks of its episodes.

        The words are opted out of in all conversations, as `privacy.opt_out` does it, so other topics with these words
        lose them, too. The messages stay; summaries and boards lose what mentions the words.

        Args:
            topic: The topic, or its id. Topics that were merged into it go with it.
            words: Which of its words to opt out of; the first three by default.
            actor: Who does it; recorded with the time.
            dry_run: Whether only to say what would go.

        Raises:
            InvalidInputError: One of the words is not the topic's.
            NotFoundError: There is no such topic.
            TooLargeError: The user has as many opt-outs as are allowed.
        """
        from langchain_supabase_memory.operations.topics import forget

        return self._services.run(forget(self._services.owner(), topic, words=words, actor=actor, dry_run=dry_run))

    async def aforget(
        self, topic: Topic | str, *, words: Sequence[str] | None = None, actor: str, dry_run: bool = False
    ) -> ForgottenTopic:
        """The async twin of `forget`."""
        await load("langchain_supabase_memory.operations.topics")
        from langchain_supabase_memory.operations.topics import forget

        return await self._services.arun(
            forget(self._services.owner(), topic, words=words, actor=actor, dry_run=dry_run)
        )

    def recluster(self) -> bool:
        """Find an owner's topics anew from the newest 2,000 episodes. Ids, names and what was merged stay.

        A topic goes on in the group that shares most episodes with it. It may be killed and repeated at any time: one
        commit stores all of it, and a second one is refused.

        Returns:
            Whether it was stored; not if there are no topics, or another process was faster.
        """
        from langchain_supabase_memory.operations.topics import recluster

        return self._services.run(recluster(self._services.owner(), embedder=self._services.embedder_name))

    async def arecluster(self) -> bool:
        """The async twin of `recluster`."""
        await load("langchain_supabase_memory.operations.topics")
        from langchain_supabase_memory.operations.topics import recluster

        return await self._services.arun(recluster(self._services.owner(), embedder=self._services.embedder_name))

    def update(self) -> TopicUpdate:
        """Find a topic for all that was indexed since, and find topics anew where that is due.

        A worker does it by itself. Any number of processes may call it at once. It needs server permissions.
        """
        from langchain_supabase_memory.operations.topics import update

        return self._services.run(update(self._services.served_user_id, embedder=self._services.embedder_name))

    async def aupdate(self) -> TopicUpdate:
        """The async twin of `update`."""
        await load("langchain_supabase_memory.operations.topics")
        from langchain_supabase_memory.operations.topics import update

        return await self._services.arun(update(self._services.served_user_id, embedder=self._services.embedder_name))
