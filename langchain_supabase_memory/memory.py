"""What the user holds: a sync and an async method for each verb, one line each over its flow."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from langchain_supabase_memory import conversations
from langchain_supabase_memory.errors import InvalidInputError, SchemaOutdatedError
from langchain_supabase_memory.flow import Flow, arun, call, run
from langchain_supabase_memory.models import DEFAULT_AGENT_ID, ConversationKey, check_id
from langchain_supabase_memory.outbox import Outbox
from langchain_supabase_memory.schema import script
from langchain_supabase_memory.settings import (
    DEFAULT_DIMENSIONS,
    DEFAULT_RETRY_POLICY,
    RetryPolicy,
)

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime
    from types import TracebackType
    from typing import Self

    from langchain_core.messages import BaseMessage
    from supabase import AsyncClient, Client

    from langchain_supabase_memory.models import AppendResult, Conversation, StoredMessage
    from langchain_supabase_memory.transports.base import Transport
    from langchain_supabase_memory.transports.postgres import Claims
    from langchain_supabase_memory.transports.supabase import AccessToken

T = TypeVar("T")

OUTBOX_LIMIT: Final = 1000
"""The most messages of failed writes kept for a retry, over all conversations of a memory."""


class SupabaseMemory:
    """A memory on Supabase, or on any Postgres. It opens connections at the first call, never when it is made.

    Make one with `from_url`, `from_client`, `from_conn_string` or `embedded`, share it in the whole process, and close
    it at the end. Each verb has an async twin with LangChain's prefix `a`: `append` and `aappend`.

    Args:
        transport: The door to the database.
        user_id: The owner of the conversations where a call names none. Leave it out when calls carry a user's token.
        agent_id: The agent where a call names none.
        outbox_limit: The most messages of failed writes that histories over this memory keep for a retry.

    Raises:
        InvalidInputError: An id is not a usable string.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        user_id: str | None = None,
        agent_id: str = DEFAULT_AGENT_ID,
        outbox_limit: int = OUTBOX_LIMIT,
    ) -> None:
        if user_id is not None:
            check_id("user_id", user_id)
        check_id("agent_id", agent_id)
        self.transport = transport
        self.user_id = user_id
        self.agent_id = agent_id
        self.outbox = Outbox(outbox_limit)

    @classmethod
    def from_url(
        cls,
        url: str,
        key: str,
        *,
        access_token: AccessToken | None = None,
        user_id: str | None = None,
        agent_id: str = DEFAULT_AGENT_ID,
        retry: RetryPolicy = DEFAULT_RETRY_POLICY,
        rest_path: str = "/rest/v1",
        outbox_limit: int = OUTBOX_LIMIT,
    ) -> SupabaseMemory:
        """A memory over a project's Data API.

        Args:
            url: The project's url, such as `https://abc.supabase.co`.
            key: The publishable key, together with `access_token`; or, on a server, the secret key.
            access_token: The signed-in user's access token, or a (sync or async) function that gives the present one.
            user_id: The owner where a call names none; needed with the secret key, which sees everybody.
            agent_id: The agent where a call names none.
            retry: How a call is repeated when the server cannot be reached.
            rest_path: Where the Data API lies under `url`; empty for a bare PostgREST.
            outbox_limit: As for the class.

        Raises:
            ConfigurationError: The url or the key is none.
        """
        from langchain_supabase_memory.transports.supabase import SupabaseTransport

        transport = SupabaseTransport(url, key, access_token=access_token, retry=retry, rest_path=rest_path)
        return cls(transport, user_id=user_id, agent_id=agent_id, outbox_limit=outbox_limit)

    @classmethod
    def from_client(
        cls,
        client: Client | AsyncClient,
        *,
        access_token: AccessToken | None = None,
        user_id: str | None = None,
        agent_id: str = DEFAULT_AGENT_ID,
        retry: RetryPolicy = DEFAULT_RETRY_POLICY,
        outbox_limit: int = OUTBOX_LIMIT,
    ) -> SupabaseMemory:
        """A memory over a `supabase` client of yours, which is never closed. Arguments and errors as for `from_url`.

        A sync client serves the sync methods and an async client the async ones; the other colour is opened from the
        client's url and key when it is needed.
        """
        from langchain_supabase_memory.transports.supabase import SupabaseTransport

        transport = SupabaseTransport.from_client(client, access_token=access_token, retry=retry)
        return cls(transport, user_id=user_id, agent_id=agent_id, outbox_limit=outbox_limit)

    @classmethod
    def from_conn_string(
        cls,
        conn_string: str,
        *,
        claims: Claims | None = None,
        user_id: str | None = None,
        agent_id: str = DEFAULT_AGENT_ID,
        retry: RetryPolicy = DEFAULT_RETRY_POLICY,
        outbox_limit: int = OUTBOX_LIMIT,
    ) -> SupabaseMemory:
        """A memory over a direct connection to Postgres; any of Supabase's poolers will do.

        Args:
            conn_string: A connection string such as `postgresql://postgres:…@db.abc.supabase.co:5432/postgres`.
            claims: The claims of an access token that you have verified, to act as that user under row level security.
            user_id: The owner where a call names none.
            agent_id: The agent where a call names none.
            retry: How a call is repeated when the server cannot be reached.
            outbox_limit: As for the class.

        Raises:
            MissingDependencyError: The extra `postgres` is not installed.
            ConfigurationError: The connection string cannot be parsed.
        """
        from langchain_supabase_memory.transports.postgres import PostgresTransport

        transport = PostgresTransport(conn_string, claims=claims, retry=retry)
        return cls(transport, user_id=user_id, agent_id=agent_id, outbox_limit=outbox_limit)

    @classmethod
    def embedded(
        cls,
        path: str | os.PathLike[str] | None = None,
        *,
        user_id: str | None = "me",
        agent_id: str = DEFAULT_AGENT_ID,
        dimensions: int = DEFAULT_DIMENSIONS,
        outbox_limit: int = OUTBOX_LIMIT,
    ) -> SupabaseMemory:
        """A memory on a private Postgres in a folder: no account, no server, no key. Made ready at the first call.

        Args:
            path: The folder of the database; made if absent. By default the user's data folder.
            user_id: The owner where a call names none.
            agent_id: The agent where a call names none.
            dimensions: The embedding width, recorded at the first use.
            outbox_limit: As for the class.

        Raises:
            MissingDependencyError: The extra `embedded` is not installed.
        """
        from langchain_supabase_memory.transports.embedded import start_migrated
        from langchain_supabase_memory.transports.postgres import PostgresTransport

        transport = PostgresTransport(partial(start_migrated, path, dimensions))
        return cls(transport, user_id=user_id, agent_id=agent_id, outbox_limit=outbox_limit)

    def as_user(self, identity: AccessToken | Claims) -> SupabaseMemory:
        """The same memory for another user, over the same connections. Cheap: make one for each request.

        Args:
            identity: Over the Data API the user's access token, or a function that gives it. Over a direct connection
                the claims of an access token that you have verified.

        Returns:
            A memory whose calls row level security judges as that user. Its outbox is its own.
        """
        limit = self.outbox.limit
        return SupabaseMemory(self.transport.as_user(identity), agent_id=self.agent_id, outbox_limit=limit)

    def key(self, thread_id: str, user_id: str | None = None, agent_id: str | None = None) -> ConversationKey:
        """The conversation that these ids and this memory's defaults name.

        Raises:
            InvalidInputError: An id is not a usable string, or nobody is named as the owner.
        """
        owner = self.user_id if user_id is None else user_id
        if owner is None and not self.transport.acts_as_user:
            raise InvalidInputError(
                "No user is named.",
                hint="Pass user_id (to the call or to the memory), or the signed-in user's access token.",
            )
        return ConversationKey(thread_id, owner, self.agent_id if agent_id is None else agent_id)

    # The verbs. What they do, take, return and raise is said at their flows in `conversations`.

    def append(
        self,
        messages: Iterable[BaseMessage],
        *,
        thread_id: str,
        user_id: str | None = None,
        agent_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        created_at: datetime | Sequence[datetime | None] | None = None,
    ) -> AppendResult:
        """Store messages: once each, in order, all or none, in one round trip. See `conversations.append`."""
        key = self.key(thread_id, user_id, agent_id)
        return self.run(conversations.append(key, messages, metadata=metadata, created_at=created_at))

    async def aappend(
        self,
        messages: Iterable[BaseMessage],
        *,
        thread_id: str,
        user_id: str | None = None,
        agent_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        created_at: datetime | Sequence[datetime | None] | None = None,
    ) -> AppendResult:
        """The async twin of `append`."""
        key = self.key(thread_id, user_id, agent_id)
        return await self.arun(conversations.append(key, messages, metadata=metadata, created_at=created_at))

    def read(
        self, *, thread_id: str, user_id: str | None = None, agent_id: str | None = None, **bounds: Any
    ) -> list[StoredMessage]:
        """Read messages in order; `last`, `since`, `until`, `from_sequence`, `to_sequence` and `columns` bound what.

        See `conversations.read`.
        """
        return self.run(conversations.read(self.key(thread_id, user_id, agent_id), **bounds))

    async def aread(
        self, *, thread_id: str, user_id: str | None = None, agent_id: str | None = None, **bounds: Any
    ) -> list[StoredMessage]:
        """The async twin of `read`."""
        return await self.arun(conversations.read(self.key(thread_id, user_id, agent_id), **bounds))

    def count(self, *, thread_id: str, user_id: str | None = None, agent_id: str | None = None) -> int:
        """How many messages a conversation holds. See `conversations.count`."""
        return self.run(conversations.count(self.key(thread_id, user_id, agent_id)))

    async def acount(self, *, thread_id: str, user_id: str | None = None, agent_id: str | None = None) -> int:
        """The async twin of `count`."""
        return await self.arun(conversations.count(self.key(thread_id, user_id, agent_id)))

    def conversations(
        self, *, user_id: str | None = None, agent_id: str | None = None, limit: int | None = None
    ) -> list[Conversation]:
        """A user's conversations, of all agents unless one is named. See `conversations.conversations`."""
        owner = self.key("any", user_id).user_id
        return self.run(conversations.conversations(owner, agent_id=agent_id, limit=limit))

    async def aconversations(
        self, *, user_id: str | None = None, agent_id: str | None = None, limit: int | None = None
    ) -> list[Conversation]:
        """The async twin of `conversations`."""
        owner = self.key("any", user_id).user_id
        return await self.arun(conversations.conversations(owner, agent_id=agent_id, limit=limit))

    def forget(self, *, thread_id: str, user_id: str | None = None, agent_id: str | None = None) -> int:
        """Delete a conversation with everything in it. See `conversations.forget`."""
        key = self.key(thread_id, user_id, agent_id)
        self.outbox.drop(key)
        return self.run(conversations.forget(key))

    async def aforget(self, *, thread_id: str, user_id: str | None = None, agent_id: str | None = None) -> int:
        """The async twin of `forget`."""
        key = self.key(thread_id, user_id, agent_id)
        self.outbox.drop(key)
        return await self.arun(conversations.forget(key))

    def forget_message(
        self, message_id: str, *, thread_id: str, user_id: str | None = None, agent_id: str | None = None
    ) -> bool:
        """Delete one message. See `conversations.forget_message`."""
        return self.run(conversations.forget_message(self.key(thread_id, user_id, agent_id), message_id))

    async def aforget_message(
        self, message_id: str, *, thread_id: str, user_id: str | None = None, agent_id: str | None = None
    ) -> bool:
        """The async twin of `forget_message`."""
        return await self.arun(conversations.forget_message(self.key(thread_id, user_id, agent_id), message_id))

    def flush(self) -> int:
        """Store what earlier writes of histories left in the outbox.

        Returns:
            How many messages are still waiting, which is 0 unless an error is raised.

        Raises:
            SupabaseMemoryError: The database still refuses; everything is kept.
        """
        return self.run(self._flush())

    async def aflush(self) -> int:
        """The async twin of `flush`."""
        return await self.arun(self._flush())

    def check(self) -> script.Installed:
        """Ask the database what it is set up with, and compare it with this release.

        Returns:
            What is installed.

        Raises:
            SchemaMissingError: Nothing is there.
            SchemaOutdatedError: It is of another release.
            AccessError: The key or the token is not accepted.
            UnavailableError: The server cannot be reached.
        """
        return self.run(_check())

    async def acheck(self) -> script.Installed:
        """The async twin of `check`."""
        return await self.arun(_check())

    def run(self, flow: Flow[T]) -> T:
        """Drive a flow through this memory's transport."""
        return run(flow, self.transport.perform)

    async def arun(self, flow: Flow[T]) -> T:
        """The async twin of `run`."""
        return await arun(flow, self.transport.aperform)

    def close(self) -> None:
        """Close the connections of the sync methods; clients that you passed stay open."""
        self.transport.close()

    async def aclose(self) -> None:
        """Close the connections of this event loop and of the sync methods; clients that you passed stay open."""
        await self.transport.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        """The door and the defaults, without keys."""
        return f"SupabaseMemory({self.transport!r}, user_id={self.user_id!r}, agent_id={self.agent_id!r})"

    def _flush(self) -> Flow[int]:
        for key in self.outbox.conversations():
            yield from self.deliver(key, [])
        return len(self.outbox)

    def deliver(self, key: ConversationKey, messages: Sequence[BaseMessage]) -> Flow[None]:
        """Store messages behind those that wait for the same conversation, in one call, so that the order holds.

        Args:
            key: The conversation.
            messages: What is new; it may be nothing.

        Raises:
            SupabaseMemoryError: Nothing was stored; what waited still waits, what is new is not kept here.
        """
        waiting = self.outbox.waiting(key)
        batch = [*(message for message, _ in waiting), *messages]
        times = [*(time for _, time in waiting), *(None for _ in messages)]
        yield from conversations.append(key, batch, created_at=times)
        self.outbox.delivered(key, batch)


def _check() -> Flow[script.Installed]:
    installed = script.Installed(**(yield from call("memory_schema", {})))
    expected = script.current(installed.dimensions)
    if replace(installed, version=expected.version) != expected:
        raise SchemaOutdatedError(
            f"The memory's schema in this database is of release {installed.version}, not {expected.version}."
        )
    return installed
