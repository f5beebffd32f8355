"""The constructors of a memory, and its handles; `tools/handles.py` turns each setting into a keyword."""

from __future__ import annotations

from functools import partial
from types import FunctionType
from typing import TYPE_CHECKING, cast

from langchain_supabase_memory.errors import MissingDependencyError
from langchain_supabase_memory.memory.argument_checks import require_folder, require_transport
from langchain_supabase_memory.memory.conversation import Conversation
from langchain_supabase_memory.memory.handle import MEMORY_SYNONYMS, MemoryHandle
from langchain_supabase_memory.memory.services import ME, Services
from langchain_supabase_memory.settings import DEFAULT_RETRY_POLICY, RetryPolicy
from langchain_supabase_memory.values import DEFAULT_AGENT_ID, ConversationKey

if TYPE_CHECKING:
    from os import PathLike
    from types import TracebackType
    from typing import Never, Self
    from uuid import UUID

    from supabase import AsyncClient, Client

    from langchain_supabase_memory.adapters.transports.base import Transport
    from langchain_supabase_memory.adapters.transports.postgres import Claims
    from langchain_supabase_memory.adapters.transports.supabase import AccessToken
    from langchain_supabase_memory.memory.config import Settings
    from langchain_supabase_memory.memory.memory import SupabaseMemory
    from langchain_supabase_memory.memory.space import Space
    from langchain_supabase_memory.values import Health


class Constructors(MemoryHandle):
    """The constructors of a memory: from a transport, a URL, a client, a connection string, or a folder."""

    _parts = ("privacy", "work", "rollout", "spaces")
    _synonyms = MEMORY_SYNONYMS

    def _hint(self, name: str) -> str | None:
        own = super()._hint(name)
        if own is not None or name == "conversation":
            return own
        handle = Conversation(self._services, ConversationKey("thread"))
        there = f".{name}()" if hasattr(Conversation, name) else handle._hint(name)
        return None if there is None or not there.startswith(".") else f'.conversation("..."){there}'

    def __init__(
        self,
        transport: Transport,
        *key: Never,
        user_id: str | UUID | None = None,
        agent_id: str = DEFAULT_AGENT_ID,
        settings: Settings,
    ) -> None:
        """Create a memory over a transport.

        Args:
            transport: The transport that reaches the database.
            key: Must be empty; pass a URL and a key to `from_url`.
            user_id: The only user of this memory: no run can name another. Omit it if `for_user`, `for_token` or
                each run names the user.
            agent_id: The default agent.
            settings: The defaults.

        Raises:
            InvalidInputError: An id is not a usable string.
            ConfigurationError: An argument has the wrong type, or the key of a model or an embedder is missing.
            MissingDependencyError: A model or an embedder given by name needs a package that is not installed.
        """
        require_transport(transport, key)
        super().__init__(Services(transport, user_id=user_id, agent_id=agent_id, settings=settings))

    @classmethod
    def _from_url(
        cls,
        url: str,
        key: str,
        *,
        user_id: str | UUID | None = None,
        agent_id: str = DEFAULT_AGENT_ID,
        retry: RetryPolicy = DEFAULT_RETRY_POLICY,
        rest_path: str = "/rest/v1",
        settings: Settings,
    ) -> Self:
        """Create a memory over a project's Data API.

        Args:
            url: The project's URL, such as `https://abc.supabase.co`.
            key: The publishable key, for a memory `for_token`; or, on a server, the secret key.
            user_id: The only user of this memory: no run can name another. Without it, and with the secret key,
                which can access all users, `for_user`, `for_token` or each run names the user.
            agent_id: The default agent.
            retry: The retry policy when the server cannot be reached.
            rest_path: The path of the Data API below `url`; empty for a bare PostgREST.
            settings: The defaults.

        Raises:
            ConfigurationError: The URL or the key is not valid, or a setting has the wrong type.
        """
        from langchain_supabase_memory.adapters.transports.supabase import SupabaseTransport

        transport = SupabaseTransport(url, key, retry=retry, rest_path=rest_path)
        return cls(transport, user_id=user_id, agent_id=agent_id, **settings.keywords())

    @classmethod
    def _from_client(
        cls,
        client: Client | AsyncClient,
        *,
        user_id: str | UUID | None = None,
        agent_id: str = DEFAULT_AGENT_ID,
        retry: RetryPolicy = DEFAULT_RETRY_POLICY,
        settings: Settings,
    ) -> Self:
        """Create a memory over your own `supabase` client, which is never closed.

        A sync client serves the sync methods and an async client the async ones; the other kind is created from the
        client's URL and key when it is needed, and so are both in a forked process.

        Args:
            client: The client.
            user_id: The only user of this memory: no run can name another. Without it, and with the secret key,
                which can access all users, `for_user`, `for_token` or each run names the user.
            agent_id: The default agent.
            retry: The retry policy when the server cannot be reached.
            settings: The defaults.

        Raises:
            ConfigurationError: The client is not valid, or a setting has the wrong type.
        """
        from langchain_supabase_memory.adapters.transports.supabase import SupabaseTransport

        transport = SupabaseTransport.from_client(client, retry=retry)
        return cls(transport, user_id=user_id, agent_id=agent_id, **settings.keywords())

    @classmethod
    def _from_conn_string(
        cls,
        conn_string: str,
        *,
        user_id: str | UUID | None = None,
        agent_id: str = DEFAULT_AGENT_ID,
        retry: RetryPolicy = DEFAULT_RETRY_POLICY,
        settings: Settings,
    ) -> Self:
        """Create a memory over a direct connection to Postgres; any of Supabase's poolers works too.

        Args:
            conn_string: A connection string such as `postgresql://postgres:…@db.abc.supabase.co:5432/postgres`.
            user_id: The only user of this memory: no run can name another. Without it, `for_user`, `for_token` or
                each run names the user.
            agent_id: The default agent.
            retry: The retry policy when the server cannot be reached.
            settings: The defaults.

        Raises:
            MissingDependencyError: The extra `postgres` is not installed.
            ConfigurationError: The connection string cannot be parsed, or a setting has the wrong type.
        """
        from langchain_supabase_memory.adapters.transports.postgres import PostgresTransport

        transport = PostgresTransport(conn_string, retry=retry)
        return cls(transport, user_id=user_id, agent_id=agent_id, **settings.keywords())

    @classmethod
    def _embedded(
        cls,
        path: str | PathLike[str] | None = None,
        *,
        user_id: str | UUID | None = ME,
        agent_id: str = DEFAULT_AGENT_ID,
        settings: Settings,
    ) -> Self:
        """Create a memory on a private Postgres in a folder, without account or key; it starts at the first call.

        Args:
            path: The folder of the database; created if missing. The user's data folder by default.
            user_id: The only user of this memory: no run can name another. By default `for_user` or a run may name
                the user, and calls without a user belong to the user `"me"`. With `None` each must name one.
            agent_id: The default agent.
            settings: The defaults.

        Raises:
            MissingDependencyError: The extra `embedded` is not installed.
            ConfigurationError: The path is not valid, or a setting has the wrong type.
        """
        require_folder(path)
        from langchain_supabase_memory.adapters.transports.embedded import start_migrated

        try:
            from langchain_supabase_memory.adapters.transports.embedded_transport import EmbeddedTransport
        except MissingDependencyError:  # one extra brings both
            raise MissingDependencyError("The embedded Postgres", "embedded") from None

        transport = EmbeddedTransport(partial(start_migrated, path))
        return cls(transport, user_id=user_id, agent_id=agent_id, **settings.keywords())

    @property
    def user_id(self) -> str | None:
        """The default user; `None` if the token or each run names the user."""
        return self._services.user_id

    @property
    def agent_id(self) -> str:
        """The default agent."""
        return self._services.agent_id

    def for_user(self, user_id: str | UUID) -> Self:
        """Return this memory for one user, over the same connections. It is free: create one for each request.

        Your server says who the user is, and must have checked it. With `for_token`, row level security checks it.

        Args:
            user_id: The user: 1 to 512 bytes of UTF-8, or a UUID.

        Returns:
            A memory in which no call or run can name another user. It closes with this one.

        Raises:
            InvalidInputError: The id is not a usable string, or the memory belongs to another user.
        """
        return self._over(self._services.for_user(user_id))

    def for_token(self, token: AccessToken | Claims) -> Self:
        """Return this memory for a signed-in user, over the same connections. Create one for each request for free.

        Args:
            token: The user's access token, or a (sync or async) function that returns the current one. Over a
                direct connection, the claims of a token that you have verified, or a function that returns them.
                The embedded database accepts both, and cannot verify a token's signature.

        Returns:
            A memory whose calls row level security checks as that user. What it could not store is stored with the
            user's next token.

        Raises:
            AuthenticationError: Nobody is signed in: the token is not valid, or the claims name no user.
        """
        return self._over(self._services.for_identity(token))

    def _for(self, user_id: str | None) -> Self:
        return self if user_id is None else self.for_user(user_id)

    def _over(self, services: Services) -> Self:
        memory = object.__new__(type(self))
        MemoryHandle.__init__(memory, services)
        return memory

    def conversation(
        self, thread_id: str | UUID, *, agent_id: str | None = None, private: bool = False
    ) -> Conversation:
        """Return the free, ids-only handle of one conversation; the conversation need not exist.

        Args:
            thread_id: Any string of 1 to 512 bytes of UTF-8, or a UUID: a LangGraph thread, a session, a ticket.
            agent_id: The agent; the memory's by default.
            private: Whether the conversation that its first message begins is private: nothing is derived from it,
                each message is shown for a day, and it is deleted a day after the last one. It cannot be changed
                later: messages for a conversation that was begun otherwise are refused.

        Raises:
            InvalidInputError: An id is not a usable string, or there is no owner.
            ConfigurationError: `private` is not a boolean.
        """
        return Conversation(self._services, self._services.key(thread_id, None, agent_id, private=private))

    def space(self, space_id: str) -> Space:
        """Return the free handle of one space, in which this memory's user acts as a member; without one, a server.

        `space.memory` is a memory that reads and writes there: pass it wherever a memory is taken.

        Args:
            space_id: The space, as `memory.spaces.list()` returns it.

        Raises:
            InvalidInputError: It is not the id of a space.
        """
        from langchain_supabase_memory.memory.space import Space

        services = self._services.for_space(space_id)
        return Space(services, cast("SupabaseMemory", self._over(services)))

    def health(self) -> Health:
        """Report, without a call, whether calls succeed, how much is in the outbox, and what fails and why."""
        return self._services.health()

    def close(self) -> None:
        """Close the connections of the sync methods; clients that you passed stay open.

        Work behind answers has five seconds to end; what is not done by then stays due.

        Later calls raise `ConfigurationError`, until the memory is entered again with `with`.
        """
        self._services.drain()
        self._services.lifetime.is_closed = True
        self._services.transport.close()

    async def aclose(self) -> None:
        """Close the connections of this event loop and of the sync methods; clients that you passed stay open.

        Work behind answers has five seconds to end; what is not done by then stays due.

        Later calls raise `ConfigurationError`, until the memory is entered again with `async with`.
        """
        await self._services.adrain()
        self._services.lifetime.is_closed = True
        await self._services.transport.aclose()

    def __enter__(self) -> Self:
        self._services.lifetime.enter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._services.drain()
        self._services.lifetime.leave()
        self._services.transport.close()

    async def __aenter__(self) -> Self:
        self._services.lifetime.enter()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._services.adrain()
        self._services.lifetime.leave()
        await self._services.transport.aclose()

    def __repr__(self) -> str:
        """Return the transport and the ids, without keys."""
        return f"SupabaseMemory({self._services.transport!r}, user_id={self.user_id!r}, agent_id={self.agent_id!r})"


for _name, _method in vars(Constructors).items():
    if isinstance(_method, FunctionType):
        _method.__qualname__ = f"SupabaseMemory.{_name}"  # the name in Python's errors about arguments
