"""How a memory is made, and the handles that it gives; `tools/handles.py` writes each setting out as a keyword."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from langchain_supabase_memory.errors import MissingDependencyError
from langchain_supabase_memory.memory.argument_checks import require_folder, require_transport
from langchain_supabase_memory.memory.conversation import Conversation
from langchain_supabase_memory.memory.services import ME, Services, Settings
from langchain_supabase_memory.settings import DEFAULT_RETRY_POLICY, RetryPolicy
from langchain_supabase_memory.values import DEFAULT_AGENT_ID

if TYPE_CHECKING:
    from os import PathLike
    from typing import Never, Self

    from supabase import AsyncClient, Client

    from langchain_supabase_memory.adapters.transports.base import Transport
    from langchain_supabase_memory.adapters.transports.postgres import Claims
    from langchain_supabase_memory.adapters.transports.supabase import AccessToken


class Constructors(Services):
    """How a memory is made: over a transport, a url, a client, a connection string, or in a folder."""

    def __init__(
        self,
        transport: Transport,
        *key: Never,
        user_id: str | None = None,
        agent_id: str = DEFAULT_AGENT_ID,
        settings: Settings,
    ) -> None:
        """Make a memory over a transport.

        Args:
            transport: The door to the database.
            key: Nothing; a url and a key go to `from_url`.
            user_id: The one user whose memory this is: no call and no run can name another. Leave it out when calls
                carry a user's token, or when each call or run names its user.
            agent_id: The agent where a call names none.
            settings: The defaults.

        Raises:
            InvalidInputError: An id is not a usable string.
            ConfigurationError: An argument is of another type than it must be, or the key of a model or an embedder is
                missing.
            MissingDependencyError: A package that a model or an embedder by its name needs is not installed.
        """
        require_transport(transport, key)
        super().__init__(transport, user_id=user_id, agent_id=agent_id, settings=settings)

    @classmethod
    def _from_url(
        cls,
        url: str,
        key: str,
        *,
        access_token: AccessToken | None = None,
        user_id: str | None = None,
        agent_id: str = DEFAULT_AGENT_ID,
        retry: RetryPolicy = DEFAULT_RETRY_POLICY,
        rest_path: str = "/rest/v1",
        settings: Settings,
    ) -> Self:
        """A memory over a project's Data API.

        Args:
            url: The project's url, such as `https://abc.supabase.co`.
            key: The publishable key, together with `access_token`; or, on a server, the secret key.
            access_token: The signed-in user's access token, or a (sync or async) function that gives the present one.
            user_id: The one user whose memory this is: no call and no run can name another. Without it, and with the
                secret key, which sees everybody, each call or run names its user.
            agent_id: The agent where a call names none.
            retry: How a call is repeated when the server cannot be reached.
            rest_path: Where the Data API lies under `url`; empty for a bare PostgREST.
            settings: The defaults.

        Raises:
            ConfigurationError: The url or the key is none, or a setting is of another type than it must be.
            AuthenticationError: The access token is none.
        """
        from langchain_supabase_memory.adapters.transports.supabase import SupabaseTransport

        transport = SupabaseTransport(url, key, access_token=access_token, retry=retry, rest_path=rest_path)
        return cls(transport, user_id=user_id, agent_id=agent_id, **settings.keywords())

    @classmethod
    def _from_client(
        cls,
        client: Client | AsyncClient,
        *,
        access_token: AccessToken | None = None,
        user_id: str | None = None,
        agent_id: str = DEFAULT_AGENT_ID,
        retry: RetryPolicy = DEFAULT_RETRY_POLICY,
        settings: Settings,
    ) -> Self:
        """A memory over a `supabase` client of yours, which is never closed.

        A sync client serves the sync methods and an async client the async ones; the other color is opened from the
        client's url and key when it is needed, and so are both in a process that is forked from this one.

        Args:
            client: The client.
            access_token: The signed-in user's access token, or a (sync or async) function that gives the present one.
            user_id: The one user whose memory this is: no call and no run can name another. Without it, and with the
                secret key, which sees everybody, each call or run names its user.
            agent_id: The agent where a call names none.
            retry: How a call is repeated when the server cannot be reached.
            settings: The defaults.

        Raises:
            ConfigurationError: The client is none, or a setting is of another type than it must be.
            AuthenticationError: The access token is none.
        """
        from langchain_supabase_memory.adapters.transports.supabase import SupabaseTransport

        transport = SupabaseTransport.from_client(client, access_token=access_token, retry=retry)
        return cls(transport, user_id=user_id, agent_id=agent_id, **settings.keywords())

    @classmethod
    def _from_conn_string(
        cls,
        conn_string: str,
        *,
        claims: Claims | None = None,
        user_id: str | None = None,
        agent_id: str = DEFAULT_AGENT_ID,
        retry: RetryPolicy = DEFAULT_RETRY_POLICY,
        settings: Settings,
    ) -> Self:
        """A memory over a direct connection to Postgres; any of Supabase's poolers will do.

        Args:
            conn_string: A connection string such as `postgresql://postgres:…@db.abc.supabase.co:5432/postgres`.
            claims: The claims of an access token that you have verified, or a (sync or async) function that gives the
                present ones, to act as that user under row level security.
            user_id: The one user whose memory this is: no call and no run can name another. Without it each call or
                run names its user.
            agent_id: The agent where a call names none.
            retry: How a call is repeated when the server cannot be reached.
            settings: The defaults.

        Raises:
            MissingDependencyError: The extra `postgres` is not installed.
            ConfigurationError: The connection string cannot be parsed, or a setting is of another type than it must be.
            AuthenticationError: The claims are none, name no user, or a role that is none of Supabase's.
        """
        from langchain_supabase_memory.adapters.transports.postgres import PostgresTransport

        transport = PostgresTransport(conn_string, claims=claims, retry=retry)
        return cls(transport, user_id=user_id, agent_id=agent_id, **settings.keywords())

    @classmethod
    def _embedded(
        cls,
        path: str | PathLike[str] | None = None,
        *,
        user_id: str | None = ME,
        agent_id: str = DEFAULT_AGENT_ID,
        settings: Settings,
    ) -> Self:
        """A memory on a private Postgres in a folder: no account, no server, no key. Made ready at the first call.

        Args:
            path: The folder of the database; made if absent. By default the user's data folder.
            user_id: The one user whose memory this is: no call and no run can name another. By default calls and runs
                may name their user, and what names nobody belongs to the user `"me"`. With `None` each must name one.
            agent_id: The agent where a call names none.
            settings: The defaults.

        Raises:
            MissingDependencyError: The extra `embedded` is not installed.
            ConfigurationError: The path is none, or a setting is of another type than it must be.
        """
        require_folder(path)
        from langchain_supabase_memory.adapters.transports.embedded import start_migrated

        try:
            from langchain_supabase_memory.adapters.transports.postgres import PostgresTransport
        except MissingDependencyError:  # one extra brings both
            raise MissingDependencyError("The embedded Postgres", "embedded") from None

        transport = PostgresTransport(partial(start_migrated, path))
        return cls(transport, user_id=user_id, agent_id=agent_id, **settings.keywords())

    def as_user(self, identity: AccessToken | Claims) -> Self:
        """The same memory for another user, over the same connections. Cheap: make one for each request.

        Args:
            identity: Over the Data API the user's access token, or a function that gives it. Over a direct connection
                the claims of an access token that you have verified, or a function that gives them.

        Returns:
            A memory whose calls row level security judges as that user. Its outbox is its own.

        Raises:
            AuthenticationError: Nobody is signed in: the token is none, or the claims name no user.
        """
        # What was made once is not made for each request.
        models = {
            "model": self.model,
            "embeddings": self.embeddings,
            "reranker": self.reranker,
            "expand": self.expander,
        }
        settings = {**self.settings.keywords(), **models, "redact": self.redactor}
        memory = type(self)(self.transport.as_user(identity), agent_id=self.agent_id, **settings)
        memory.causes = self.causes.for_user()
        memory.metrics = self.metrics
        return memory

    def conversation(self, thread_id: str, *, user_id: str | None = None, agent_id: str | None = None) -> Conversation:
        """The handle of one conversation: ids alone. It costs nothing, and the conversation need not have begun.

        Args:
            thread_id: Any string of 1 to 512 bytes of UTF-8: a LangGraph thread, a session, a ticket.
            user_id: The owner; the memory's by default. A memory that was made for one user takes no other.
            agent_id: The agent; the memory's by default.

        Raises:
            InvalidInputError: An id is not a usable string, nobody is named as the owner, or the memory was made for
                another user.
        """
        return Conversation(self, self.key(thread_id, user_id, agent_id))
