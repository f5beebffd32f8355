"""What the user holds: a sync and an async method for each verb, one line each over its flow."""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any, Final, TypedDict, TypeVar

from langchain_core.messages import BaseMessage, HumanMessage

from langchain_supabase_memory import boards, conversations, indexing, summaries, summary_recall, turns, work
from langchain_supabase_memory.boards.verbs import Boards
from langchain_supabase_memory.branch import Records
from langchain_supabase_memory.checks import choice, known, wrong
from langchain_supabase_memory.complete_summary import CompleteSummary, complete_summary
from langchain_supabase_memory.context.cover import coverage
from langchain_supabase_memory.context.load import context
from langchain_supabase_memory.context.recalled import Recalling
from langchain_supabase_memory.controls import Controls
from langchain_supabase_memory.conversations import MessageBounds
from langchain_supabase_memory.deadline import in_thread
from langchain_supabase_memory.embedding_model import EmbeddingModel, embedder
from langchain_supabase_memory.errors import (
    ConfigurationError,
    InvalidInputError,
    SchemaOutdatedError,
    SupabaseMemoryError,
    TooLargeError,
)
from langchain_supabase_memory.extractive import ExtractiveSummarizer
from langchain_supabase_memory.flow import LITTLE, SCHEMA, Ask, Compute, Embed, Flow, Step, call, compute
from langchain_supabase_memory.messages import codec
from langchain_supabase_memory.messages.redaction.redactor import redactor
from langchain_supabase_memory.models import (
    DEFAULT_AGENT_ID,
    ConversationKey,
    Health,
    IndexResult,
    SummaryResult,
    check_id,
)
from langchain_supabase_memory.outbox import Outbox, Waiting
from langchain_supabase_memory.recall import search
from langchain_supabase_memory.recall.question import Filters, Question, question_of
from langchain_supabase_memory.rollout.verbs import Rollouts
from langchain_supabase_memory.schema import script
from langchain_supabase_memory.settings import (
    DEFAULT_BOARD,
    DEFAULT_BREAKER,
    DEFAULT_BUDGET,
    DEFAULT_CHUNKS,
    DEFAULT_POLICY,
    DEFAULT_RETRY_POLICY,
    INHERITED,
    BoardPolicy,
    BreakerPolicy,
    ChunkPolicy,
    ContextBudget,
    Inherited,
    Retention,
    RetryPolicy,
    SummaryPolicy,
    checked,
)
from langchain_supabase_memory.summary_model import (
    Summarizer,
    SummaryModel,
    amodel_if_any,
    aselected,
    chosen,
    model_if_any,
    selected,
)
from langchain_supabase_memory.telemetry import watch
from langchain_supabase_memory.telemetry.causes import Causes
from langchain_supabase_memory.telemetry.metrics import NO_METRICS, Metrics, NoMetrics
from langchain_supabase_memory.transports.breaker import CLOSED, Breaker, BreakingTransport
from langchain_supabase_memory.turns import TEMPLATE, TurnBounds

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime, tzinfo
    from types import TracebackType
    from typing import Never, Self, Unpack

    from langchain_core.embeddings import Embeddings
    from supabase import AsyncClient, Client

    from langchain_supabase_memory.boards.board import Board
    from langchain_supabase_memory.context.pack import ContextPack
    from langchain_supabase_memory.messages.redaction.redactor import Redactor
    from langchain_supabase_memory.messages.redaction.rules import RedactionRule
    from langchain_supabase_memory.models import (
        AppendResult,
        Chunk,
        Conversation,
        Coverage,
        Recall,
        RecalledSummary,
        Receipt,
        Reference,
        Segment,
        StoredMessage,
        Turn,
        UnreadableMessage,
    )
    from langchain_supabase_memory.recall.ranges import TimeRange
    from langchain_supabase_memory.recall.search import RecallScope
    from langchain_supabase_memory.transports.base import Transport
    from langchain_supabase_memory.transports.postgres import Claims
    from langchain_supabase_memory.transports.supabase import AccessToken
    from langchain_supabase_memory.work import ConversationStatus, Queue, WorkState

T = TypeVar("T")


class Settings(TypedDict, total=False):
    """What every way to make a memory takes beside its address; see `SupabaseMemory`."""

    outbox_limit: int
    model: Summarizer | None
    embeddings: Embeddings | EmbeddingModel | str | None
    budget: ContextBudget
    policy: SummaryPolicy
    board_policy: BoardPolicy
    chunking: ChunkPolicy
    recall: RecallScope | None
    retention: Retention | None
    breaker: BreakerPolicy
    metrics: Metrics | None
    redact: Redactor | Iterable[RedactionRule] | None


_REFUSALS: Final = (InvalidInputError, TooLargeError)
"""What is refused for what it holds, and will be the next time too."""

_QUOTES: Final = ExtractiveSummarizer()

OUTBOX_LIMIT: Final = 1000
"""The most messages of failed writes kept for a retry, over all conversations of a memory."""


class SupabaseMemory:
    """A memory on Supabase, or on any Postgres. It opens connections at the first call, never when it is made.

    Make one with `from_url`, `from_client`, `from_conn_string` or `embedded`, share it in the whole process, and close
    it at the end. Each verb has an async twin with LangChain's prefix `a`: `append` and `aappend`.

    Args:
        transport: The door to the database.
        key: Nothing; a url and a key go to `from_url`.
        user_id: The owner of the conversations where a call names none. Leave it out when calls carry a user's token.
        agent_id: The agent where a call names none.
        outbox_limit: The most messages of failed writes that histories over this memory keep for a retry.
        model: The model that writes summaries: a LangChain chat model, a runnable or a function, or a chat model's
            name, such as `"openai:gpt-5.5"`. By default quotes are selected, by `ExtractiveSummarizer`. With `None`
            nothing is summarized, and a pack says what it leaves out.
        embeddings: What finds by meaning: any LangChain embedder, or its name, such as
            `"openai:text-embedding-3-small"`, or an `EmbeddingModel` with settings of its own. Without one, or where it
            fails, what was said is found by its words.
        budget: The budget of a context pack where a call gives none.
        policy: When and how older messages are summarized, where a call does not say.
        board_policy: When and how boards are revised.
        chunking: How what was said becomes chunks that can be recalled.
        recall: From where a pack recalls what has left it: by default from its conversation; `"agent"`: from all of
            the user's with the same agent; `"user"`: from all of the user's; `None`: nothing is recalled.
        retention: How long, or how many turns, are kept, where a call does not say; everything by default.
        breaker: When calls to a database that is away are no longer tried.
        metrics: Where to count what is done; nowhere by default.
        redact: What takes secrets and personal data out before it is stored: out of every message, what a person
            writes on a board or as a summary, and the values of a `SupabaseStore` of this memory. Rules, such as
            `[*SECRETS, *PERSONAL_DATA]`, or a `Redactor`. Nothing is taken out by default. It is about what is stored
            and made from it: your message objects stay as they are, so a pack shows the turn under way, and a graph's
            own state, in the user's own words. What waits in the outbox is in this process alone, and is redacted when
            it is delivered. If a rule fails, nothing is stored: `append` raises, and histories, middleware and nodes
            keep the messages in the outbox, as when the database is away.

    Raises:
        InvalidInputError: An id is not a usable string.
        ConfigurationError: An argument is of another type than it must be, or the key of a model or an embedder is
            missing.
        MissingDependencyError: A package that a model or an embedder by its name needs is not installed.
    """

    def __init__(
        self,
        transport: Transport,
        *key: Never,
        user_id: str | None = None,
        agent_id: str = DEFAULT_AGENT_ID,
        outbox_limit: int = OUTBOX_LIMIT,
        model: Summarizer | None = _QUOTES,
        embeddings: Embeddings | EmbeddingModel | str | None = None,
        budget: ContextBudget = DEFAULT_BUDGET,
        policy: SummaryPolicy = DEFAULT_POLICY,
        board_policy: BoardPolicy = DEFAULT_BOARD,
        chunking: ChunkPolicy = DEFAULT_CHUNKS,
        recall: RecallScope | None = "conversation",
        retention: Retention | None = None,
        breaker: BreakerPolicy = DEFAULT_BREAKER,
        metrics: Metrics | None = None,
        redact: Redactor | Iterable[RedactionRule] | None = None,
    ) -> None:
        _checked(transport, key, user_id=user_id, agent_id=agent_id, metrics=metrics)
        checked(False, budget=budget, policy=policy, board_policy=board_policy, chunking=chunking, breaker=breaker)
        checked(retention=retention)
        if not isinstance(transport, BreakingTransport):
            transport = BreakingTransport(transport, Breaker(breaker))
        self.transport: Transport = transport
        self.user_id = user_id
        self.agent_id = agent_id
        self.outbox = Outbox(outbox_limit)
        self.records = Records()
        self.causes = Causes(transport.breaker, of_a_user=self.transport.acts_as_user)
        self.model = None if model is None else SummaryModel(model)
        self.embeddings = (
            embeddings if embeddings is None or isinstance(embeddings, EmbeddingModel) else EmbeddingModel(embeddings)
        )
        self.budget = budget
        self.policy = policy
        self.board_policy = board_policy
        self.chunking = chunking
        choice("recall", recall, search.RECALL_SCOPES, optional=True, more="None")
        self.recall_scope = recall
        self.retention = retention
        self.metrics: NoMetrics = metrics or NO_METRICS
        self.redactor = redactor(redact)

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
        **settings: Unpack[Settings],
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
            settings: `outbox_limit`, `model`, `embeddings`, `budget`, `policy`, `board_policy`, `chunking`,
                `recall`, `retention`, `breaker`, `metrics` and `redact`, as for the class.

        Raises:
            ConfigurationError: The url or the key is none.
            AuthenticationError: The access token is none.
        """
        known("SupabaseMemory.from_url", settings, Settings.__annotations__, ConfigurationError)
        from langchain_supabase_memory.transports.supabase import SupabaseTransport

        transport = SupabaseTransport(url, key, access_token=access_token, retry=retry, rest_path=rest_path)
        return cls(transport, user_id=user_id, agent_id=agent_id, **settings)

    @classmethod
    def from_client(
        cls,
        client: Client | AsyncClient,
        *,
        access_token: AccessToken | None = None,
        user_id: str | None = None,
        agent_id: str = DEFAULT_AGENT_ID,
        retry: RetryPolicy = DEFAULT_RETRY_POLICY,
        **settings: Unpack[Settings],
    ) -> SupabaseMemory:
        """A memory over a `supabase` client of yours, which is never closed. Arguments and errors as for `from_url`.

        A sync client serves the sync methods and an async client the async ones; the other color is opened from the
        client's url and key when it is needed.
        """
        known("SupabaseMemory.from_client", settings, Settings.__annotations__, ConfigurationError)
        from langchain_supabase_memory.transports.supabase import SupabaseTransport

        transport = SupabaseTransport.from_client(client, access_token=access_token, retry=retry)
        return cls(transport, user_id=user_id, agent_id=agent_id, **settings)

    @classmethod
    def from_conn_string(
        cls,
        conn_string: str,
        *,
        claims: Claims | None = None,
        user_id: str | None = None,
        agent_id: str = DEFAULT_AGENT_ID,
        retry: RetryPolicy = DEFAULT_RETRY_POLICY,
        **settings: Unpack[Settings],
    ) -> SupabaseMemory:
        """A memory over a direct connection to Postgres; any of Supabase's poolers will do.

        Args:
            conn_string: A connection string such as `postgresql://postgres:…@db.abc.supabase.co:5432/postgres`.
            claims: The claims of an access token that you have verified, or a (sync or async) function that gives the
                present ones, to act as that user under row level security.
            user_id: The owner where a call names none.
            agent_id: The agent where a call names none.
            retry: How a call is repeated when the server cannot be reached.
            settings: `outbox_limit`, `model`, `embeddings`, `budget`, `policy`, `board_policy`, `chunking`,
                `recall`, `retention`, `breaker`, `metrics` and `redact`, as for the class.

        Raises:
            MissingDependencyError: The extra `postgres` is not installed.
            ConfigurationError: The connection string cannot be parsed.
            AuthenticationError: The claims are none, name no user, or a role that is none of Supabase's.
        """
        known("SupabaseMemory.from_conn_string", settings, Settings.__annotations__, ConfigurationError)
        from langchain_supabase_memory.transports.postgres import PostgresTransport

        transport = PostgresTransport(conn_string, claims=claims, retry=retry)
        return cls(transport, user_id=user_id, agent_id=agent_id, **settings)

    @classmethod
    def embedded(
        cls,
        path: str | os.PathLike[str] | None = None,
        *,
        user_id: str | None = "me",
        agent_id: str = DEFAULT_AGENT_ID,
        **settings: Unpack[Settings],
    ) -> SupabaseMemory:
        """A memory on a private Postgres in a folder: no account, no server, no key. Made ready at the first call.

        Args:
            path: The folder of the database; made if absent. By default the user's data folder.
            user_id: The owner where a call names none.
            agent_id: The agent where a call names none.
            settings: `outbox_limit`, `model`, `embeddings`, `budget`, `policy`, `board_policy`, `chunking`,
                `recall`, `retention`, `breaker`, `metrics` and `redact`, as for the class.

        Raises:
            MissingDependencyError: The extra `embedded` is not installed.
        """
        known("SupabaseMemory.embedded", settings, Settings.__annotations__, ConfigurationError)
        _a_folder(path)
        from langchain_supabase_memory.transports.embedded import start_migrated
        from langchain_supabase_memory.transports.postgres import PostgresTransport

        transport = PostgresTransport(partial(start_migrated, path))
        return cls(transport, user_id=user_id, agent_id=agent_id, **settings)

    def as_user(self, identity: AccessToken | Claims) -> SupabaseMemory:
        """The same memory for another user, over the same connections. Cheap: make one for each request.

        Args:
            identity: Over the Data API the user's access token, or a function that gives it. Over a direct connection
                the claims of an access token that you have verified, or a function that gives them.

        Returns:
            A memory whose calls row level security judges as that user. Its outbox is its own.

        Raises:
            AuthenticationError: Nobody is signed in: the token is none, or the claims name no user.
        """
        memory = SupabaseMemory(
            self.transport.as_user(identity),
            agent_id=self.agent_id,
            outbox_limit=self.outbox.limit,
            embeddings=self.embeddings,
            budget=self.budget,
            policy=self.policy,
            board_policy=self.board_policy,
            chunking=self.chunking,
            recall=self.recall_scope,
            retention=self.retention,
        )
        memory.causes = self.causes.of_a_user()
        memory.model = self.model
        memory.metrics = self.metrics
        memory.redactor = self.redactor
        return memory

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

    def _whose(self, user_id: str | None) -> str | None:
        """Whose conversations a verb over several is about: the user's who is named, or the memory's; `None` for all.

        Raises:
            InvalidInputError: The id is not a usable string; an empty one never means everybody.
        """
        if user_id is None:
            return self.user_id
        check_id("user_id", user_id)
        return user_id

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
        retention: Retention | None = None,
        idempotency_key: str | None = None,
    ) -> AppendResult:
        """Store messages: once each, in order, all or none, in one round trip. See `conversations.append`."""
        key = self.key(thread_id, user_id, agent_id)
        return self.run(
            conversations.append(
                key,
                messages,
                metadata=metadata,
                created_at=created_at,
                retention=retention or self.retention,
                redactor=self.redactor,
                idempotency_key=idempotency_key,
            )
        )

    async def aappend(
        self,
        messages: Iterable[BaseMessage],
        *,
        thread_id: str,
        user_id: str | None = None,
        agent_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        created_at: datetime | Sequence[datetime | None] | None = None,
        retention: Retention | None = None,
        idempotency_key: str | None = None,
    ) -> AppendResult:
        """The async twin of `append`."""
        key = self.key(thread_id, user_id, agent_id)
        return await self.arun(
            conversations.append(
                key,
                messages,
                metadata=metadata,
                created_at=created_at,
                retention=retention or self.retention,
                redactor=self.redactor,
                idempotency_key=idempotency_key,
            )
        )

    def read(
        self,
        *,
        thread_id: str,
        user_id: str | None = None,
        agent_id: str | None = None,
        **bounds: Unpack[MessageBounds],
    ) -> list[StoredMessage]:
        """Read messages in order; `last`, `since`, `until`, `from_sequence`, `to_sequence` and `columns` bound what.

        See `conversations.read`.
        """
        known("read", bounds, MessageBounds.__annotations__)
        bounds.setdefault("retention", self.retention)
        return self.run(conversations.read(self.key(thread_id, user_id, agent_id), **bounds))

    async def aread(
        self,
        *,
        thread_id: str,
        user_id: str | None = None,
        agent_id: str | None = None,
        **bounds: Unpack[MessageBounds],
    ) -> list[StoredMessage]:
        """The async twin of `read`."""
        known("aread", bounds, MessageBounds.__annotations__)
        bounds.setdefault("retention", self.retention)
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

    def forget(
        self,
        *,
        thread_id: str,
        user_id: str | None = None,
        agent_id: str | None = None,
        dry_run: bool = False,
    ) -> Receipt:
        """Delete a conversation with everything derived from it. See `conversations.forget`."""
        key = self.key(thread_id, user_id, agent_id)
        receipt = self.run(conversations.forget(key, dry_run=dry_run))
        self._dropped([key], dry_run)
        return receipt

    async def aforget(
        self,
        *,
        thread_id: str,
        user_id: str | None = None,
        agent_id: str | None = None,
        dry_run: bool = False,
    ) -> Receipt:
        """The async twin of `forget`."""
        key = self.key(thread_id, user_id, agent_id)
        receipt = await self.arun(conversations.forget(key, dry_run=dry_run))
        self._dropped([key], dry_run)
        return receipt

    def forget_user(self, *, user_id: str | None = None, dry_run: bool = False) -> Receipt:
        """Delete everything of a user, with all agents. See `conversations.forget_user`."""
        owner = self.key("any", user_id).user_id
        receipt = self.run(conversations.forget_user(owner, dry_run=dry_run))
        self._dropped([key for key in self.outbox.conversations() if key.user_id == owner], dry_run)
        return receipt

    async def aforget_user(self, *, user_id: str | None = None, dry_run: bool = False) -> Receipt:
        """The async twin of `forget_user`."""
        owner = self.key("any", user_id).user_id
        receipt = await self.arun(conversations.forget_user(owner, dry_run=dry_run))
        self._dropped([key for key in self.outbox.conversations() if key.user_id == owner], dry_run)
        return receipt

    def forget_message(
        self,
        message_id: str,
        *,
        thread_id: str,
        user_id: str | None = None,
        agent_id: str | None = None,
        dry_run: bool = False,
    ) -> Receipt:
        """Delete one message, and the summaries made from it. See `conversations.forget_message`."""
        key = self.key(thread_id, user_id, agent_id)
        receipt = self.run(conversations.forget_message(key, message_id, dry_run=dry_run))
        if not dry_run:
            self.outbox.forget(key, message_id)
        return receipt

    async def aforget_message(
        self,
        message_id: str,
        *,
        thread_id: str,
        user_id: str | None = None,
        agent_id: str | None = None,
        dry_run: bool = False,
    ) -> Receipt:
        """The async twin of `forget_message`."""
        key = self.key(thread_id, user_id, agent_id)
        receipt = await self.arun(conversations.forget_message(key, message_id, dry_run=dry_run))
        if not dry_run:
            self.outbox.forget(key, message_id)
        return receipt

    def forget_expired(self, *, user_id: str | None = None, retention: Retention | None = None) -> Receipt:
        """Remove what retention does not keep, and chunks that have expired, in all conversations the memory may see.

        Call it from a scheduled task. See `conversations.forget_expired`; the memory's retention by default. Without
        any, only expired chunks go.
        """
        return self.run(conversations.forget_expired(retention or self.retention, user_id=self._whose(user_id)))

    async def aforget_expired(self, *, user_id: str | None = None, retention: Retention | None = None) -> Receipt:
        """The async twin of `forget_expired`."""
        kept = retention or self.retention
        return await self.arun(conversations.forget_expired(kept, user_id=self._whose(user_id)))

    def add_turn(
        self,
        query: str,
        response: str,
        *,
        thread_id: str,
        user_id: str | None = None,
        agent_id: str | None = None,
        retention: Retention | None = None,
        idempotency_key: str | None = None,
    ) -> AppendResult:
        """Store a complete turn, a user's query and its answer, in one round trip. See `append`.

        With an `idempotency_key`, such as a request's id, the same turn is stored once however often that is tried.

        Raises:
            InvalidInputError: One of them is no text, blank, or longer than a million characters.
        """
        return self.append(
            turns.made(query, response),
            thread_id=thread_id,
            user_id=user_id,
            agent_id=agent_id,
            retention=retention,
            idempotency_key=idempotency_key,
        )

    async def aadd_turn(
        self,
        query: str,
        response: str,
        *,
        thread_id: str,
        user_id: str | None = None,
        agent_id: str | None = None,
        retention: Retention | None = None,
        idempotency_key: str | None = None,
    ) -> AppendResult:
        """The async twin of `add_turn`."""
        return await self.aappend(
            turns.made(query, response),
            thread_id=thread_id,
            user_id=user_id,
            agent_id=agent_id,
            retention=retention,
            idempotency_key=idempotency_key,
        )

    def turns(
        self,
        *,
        thread_id: str,
        user_id: str | None = None,
        agent_id: str | None = None,
        **bounds: Unpack[TurnBounds],
    ) -> list[Turn]:
        """The complete turns, oldest first; `last`, `since`, `until` and `retention` bound them. See `turns.turns`."""
        known("turns", bounds, TurnBounds.__annotations__)
        bounds.setdefault("retention", self.retention)
        return self.run(turns.turns(self.key(thread_id, user_id, agent_id), **bounds))

    async def aturns(
        self,
        *,
        thread_id: str,
        user_id: str | None = None,
        agent_id: str | None = None,
        **bounds: Unpack[TurnBounds],
    ) -> list[Turn]:
        """The async twin of `turns`."""
        known("aturns", bounds, TurnBounds.__annotations__)
        bounds.setdefault("retention", self.retention)
        return await self.arun(turns.turns(self.key(thread_id, user_id, agent_id), **bounds))

    def turns_as_text(
        self,
        *,
        thread_id: str,
        user_id: str | None = None,
        agent_id: str | None = None,
        template: str = TEMPLATE,
        separator: str = "\n\n",
        **bounds: Unpack[TurnBounds],
    ) -> str:
        """The complete turns as text for a prompt, query and answer in a template. See `turns` and `turns.written`."""
        listed = self.turns(thread_id=thread_id, user_id=user_id, agent_id=agent_id, **bounds)
        return turns.written(listed, template, separator)

    async def aturns_as_text(
        self,
        *,
        thread_id: str,
        user_id: str | None = None,
        agent_id: str | None = None,
        template: str = TEMPLATE,
        separator: str = "\n\n",
        **bounds: Unpack[TurnBounds],
    ) -> str:
        """The async twin of `turns_as_text`."""
        listed = await self.aturns(thread_id=thread_id, user_id=user_id, agent_id=agent_id, **bounds)
        return turns.written(listed, template, separator)

    def turn(
        self, number: int, *, thread_id: str, user_id: str | None = None, agent_id: str | None = None
    ) -> Turn | None:
        """One complete turn by its number, from the end if that is negative. See `turns.turn`."""
        return self.run(turns.turn(self.key(thread_id, user_id, agent_id), number, retention=self.retention))

    async def aturn(
        self, number: int, *, thread_id: str, user_id: str | None = None, agent_id: str | None = None
    ) -> Turn | None:
        """The async twin of `turn`."""
        return await self.arun(turns.turn(self.key(thread_id, user_id, agent_id), number, retention=self.retention))

    def resolve(
        self, text: str, *, thread_id: str, user_id: str | None = None, agent_id: str | None = None
    ) -> Reference | None:
        """The turn that a user's words point at, such as "the second one" or "yung una". See `turns.resolve`."""
        return self.run(turns.resolve(self.key(thread_id, user_id, agent_id), text, retention=self.retention))

    async def aresolve(
        self, text: str, *, thread_id: str, user_id: str | None = None, agent_id: str | None = None
    ) -> Reference | None:
        """The async twin of `resolve`."""
        return await self.arun(turns.resolve(self.key(thread_id, user_id, agent_id), text, retention=self.retention))

    def context(
        self,
        current: Sequence[BaseMessage] | BaseMessage | str | None = None,
        *,
        thread_id: str,
        user_id: str | None = None,
        agent_id: str | None = None,
        budget: ContextBudget | None = None,
        policy: SummaryPolicy | None = None,
        model: Summarizer | Inherited | None = INHERITED,
        retention: Retention | None = None,
        query: str | None = None,
        recall: RecallScope | Inherited | None = INHERITED,
        **asked: Unpack[Filters],
    ) -> ContextPack:
        """What the next prompt receives, within a budget: a summary, recent messages verbatim, what a query recalls.

        One round trip, beside the embedding of the query. Where the policies say `inline`, a summary is made first if
        one is due and there is a model, and what the pack would otherwise miss is indexed first.

        Args:
            current: The user's message that is to be answered (or the whole turn under way). It is left out of the
                history, is never cut, and comes last in `ContextPack.prompt`. A message without an id gets one, on the
                object itself, so that it is known again when it has been stored.
            thread_id: The conversation's thread.
            user_id: The owner; the memory's by default.
            agent_id: The agent; the memory's by default.
            budget: The most that the pack may hold; the memory's by default.
            policy: When and how a summary is made; the memory's by default.
            model: The summary model; the memory's by default. With `None` no summary is made.
            retention: What is kept; the memory's by default.
            query: What to recall; the user's message by default. What is found stands beside the recent messages,
                within the budget's share `recalled`.
            recall: Where to recall from: this conversation, all with this agent, or all of this user; `None`: nothing.
                The memory's by default, or this conversation if a query is given.
            asked: Filters and weights, see `recall.question.Question`: `time_range`, `types`, `min_similarity`, ….

        Raises:
            InvalidInputError: Something passed is no message, or nobody is named as the owner.
            MigrationConflictError: What is stored was embedded by another model, and a `query` was given.
            SupabaseMemoryError: The database refused or could not be reached.
        """
        writer = model_if_any(model, self.model)
        key, turn = self.key(thread_id, user_id, agent_id), _turn(current)
        found = self._recalling(turn, query, recall, asked)
        return self.run(self._context(turn, key, budget, policy, writer, retention, found), model=writer)

    async def acontext(
        self,
        current: Sequence[BaseMessage] | BaseMessage | str | None = None,
        *,
        thread_id: str,
        user_id: str | None = None,
        agent_id: str | None = None,
        budget: ContextBudget | None = None,
        policy: SummaryPolicy | None = None,
        model: Summarizer | Inherited | None = INHERITED,
        retention: Retention | None = None,
        query: str | None = None,
        recall: RecallScope | Inherited | None = INHERITED,
        **asked: Unpack[Filters],
    ) -> ContextPack:
        """The async twin of `context`."""
        writer = await amodel_if_any(model, self.model)
        key, turn = self.key(thread_id, user_id, agent_id), _turn(current)
        found = self._recalling(turn, query, recall, asked)
        return await self.arun(self._context(turn, key, budget, policy, writer, retention, found), model=writer)

    def summarize(
        self,
        *,
        thread_id: str,
        user_id: str | None = None,
        agent_id: str | None = None,
        policy: SummaryPolicy | None = None,
        model: Summarizer | None = None,
    ) -> SummaryResult:
        """Summarize now what is beyond what the policy keeps verbatim, whether it is due or not.

        Args:
            thread_id: The conversation's thread.
            user_id: The owner; the memory's by default.
            agent_id: The agent; the memory's by default.
            policy: How; the memory's by default.
            model: The model; the memory's by default.

        Returns:
            What was done. A model that failed is no error: nothing is changed.

        Raises:
            ConfigurationError: There is no model.
            SupabaseMemoryError: The database refused or could not be reached.
        """
        asked = selected(model, self.model)
        flow = summaries.summarize(
            self.key(thread_id, user_id, agent_id), self.within(policy), model=asked.name, patient=False
        )
        return self.run(flow, model=asked)

    async def asummarize(
        self,
        *,
        thread_id: str,
        user_id: str | None = None,
        agent_id: str | None = None,
        policy: SummaryPolicy | None = None,
        model: Summarizer | None = None,
    ) -> SummaryResult:
        """The async twin of `summarize`."""
        asked = await aselected(model, self.model)
        flow = summaries.summarize(
            self.key(thread_id, user_id, agent_id), self.within(policy), model=asked.name, patient=False
        )
        return await self.arun(flow, model=asked)

    def complete_summary(
        self,
        *,
        thread_id: str,
        user_id: str | None = None,
        agent_id: str | None = None,
        policy: SummaryPolicy | None = None,
        model: Summarizer | None = None,
    ) -> CompleteSummary:
        """Summarize a whole conversation of any length, level by level, with its vector, topics and key facts.

        The board is revised first: topics and key facts are its own. What was made before is used again, so that of a
        conversation that went on only the last branch is written anew. See `complete_summary.complete_summary`.

        Args:
            thread_id: The conversation's thread.
            user_id: The owner; the memory's by default.
            agent_id: The agent; the memory's by default.
            policy: How long a summary may be, how much one call of the model reads; the memory's by default.
            model: The model; the memory's by default.

        Returns:
            The summary. A model that failed is no error: what was made stays, and the next call goes on.

        Raises:
            ConfigurationError: There is no model.
            SupabaseMemoryError: The database refused or could not be reached.
        """
        asked = selected(model, self.model)
        return self.run(self._complete(self.key(thread_id, user_id, agent_id), policy, asked), model=asked)

    async def acomplete_summary(
        self,
        *,
        thread_id: str,
        user_id: str | None = None,
        agent_id: str | None = None,
        policy: SummaryPolicy | None = None,
        model: Summarizer | None = None,
    ) -> CompleteSummary:
        """The async twin of `complete_summary`."""
        asked = await aselected(model, self.model)
        return await self.arun(self._complete(self.key(thread_id, user_id, agent_id), policy, asked), model=asked)

    def board(
        self, *, thread_id: str, user_id: str | None = None, agent_id: str | None = None, history: bool = False
    ) -> Board:
        """The board of a conversation; an empty one if there is none. `boards` changes it. See `boards.board.board`."""
        return self.run(boards.board(self.key(thread_id, user_id, agent_id), history=history))

    async def aboard(
        self, *, thread_id: str, user_id: str | None = None, agent_id: str | None = None, history: bool = False
    ) -> Board:
        """The async twin of `board`."""
        return await self.arun(boards.board(self.key(thread_id, user_id, agent_id), history=history))

    @property
    def rollout(self) -> Rollouts:
        """The stage at which agents are that are introduced to the memory, and how the contexts compare."""
        return Rollouts(self)

    @property
    def controls(self) -> Controls:
        """What people control: what is not to be remembered, what matters, and what summaries say."""
        return Controls(self)

    @property
    def boards(self) -> Boards:
        """What is done with boards: revise, add, edit, pin, delete, regenerate."""
        return Boards(self)

    def request_summary(
        self,
        *,
        thread_id: str,
        user_id: str | None = None,
        agent_id: str | None = None,
        priority: int | None = None,
    ) -> bool:
        """Ask a worker to summarize a conversation now, whether it is due or not. See `work.request`."""
        return self.run(work.request(self.key(thread_id, user_id, agent_id), priority=priority))

    async def arequest_summary(
        self,
        *,
        thread_id: str,
        user_id: str | None = None,
        agent_id: str | None = None,
        priority: int | None = None,
    ) -> bool:
        """The async twin of `request_summary`."""
        return await self.arun(work.request(self.key(thread_id, user_id, agent_id), priority=priority))

    def status(
        self,
        *,
        thread_id: str | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        state: WorkState | None = None,
        limit: int | None = None,
    ) -> list[ConversationStatus]:
        """What is due, running, waiting and dead, and how far each conversation is covered. See `work.status`.

        By default for the memory's user; without one for everybody's that the memory may see.
        """
        owner = self._whose(user_id)
        return self.run(work.status(owner, agent_id=agent_id, thread_id=thread_id, state=state, limit=limit))

    async def astatus(
        self,
        *,
        thread_id: str | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        state: WorkState | None = None,
        limit: int | None = None,
    ) -> list[ConversationStatus]:
        """The async twin of `status`."""
        owner = self._whose(user_id)
        return await self.arun(work.status(owner, agent_id=agent_id, thread_id=thread_id, state=state, limit=limit))

    def unreadable(self, *, user_id: str | None = None, limit: int | None = None) -> list[UnreadableMessage]:
        """The messages that cannot be read and are set aside: of the memory's user, or of all it may see.

        See `conversations.unreadable`.
        """
        return self.run(conversations.unreadable(self._whose(user_id), limit=limit))

    async def aunreadable(self, *, user_id: str | None = None, limit: int | None = None) -> list[UnreadableMessage]:
        """The async twin of `unreadable`."""
        return await self.arun(conversations.unreadable(self._whose(user_id), limit=limit))

    def queue(self) -> Queue:
        """The work of all conversations, in numbers; it needs a server's rights. See `work.queue`."""
        return self.run(work.queue())

    async def aqueue(self) -> Queue:
        """The async twin of `queue`."""
        return await self.arun(work.queue())

    def revive(self, *, thread_id: str | None = None, user_id: str | None = None, agent_id: str | None = None) -> int:
        """Try again what workers have given up; it needs a server's rights. See `work.revive`.

        By default for the memory's user; without one for everybody.
        """
        return self.run(work.revive(self._whose(user_id), agent_id=agent_id, thread_id=thread_id))

    async def arevive(
        self, *, thread_id: str | None = None, user_id: str | None = None, agent_id: str | None = None
    ) -> int:
        """The async twin of `revive`."""
        return await self.arun(work.revive(self._whose(user_id), agent_id=agent_id, thread_id=thread_id))

    def summarize_due(
        self,
        *,
        user_id: str | None = None,
        policy: SummaryPolicy | None = None,
        model: Summarizer | None = None,
    ) -> dict[ConversationKey, SummaryResult]:
        """Summarize every conversation of which more is not yet summarized than the policy allows.

        Call it from a scheduled task where the policy's mode is `background`. Any number of processes may do so at
        once: one of them wins each segment, the others change nothing.

        Args:
            user_id: Only this user's conversations; by default those of everybody whom the memory may see.
            policy: When and how; the memory's by default.
            model: The model; the memory's by default.

        Returns:
            What was done for each conversation that was due.

        Raises:
            ConfigurationError: There is no model.
            SupabaseMemoryError: The database refused or could not be reached.
        """
        asked = selected(model, self.model)
        within = self.within(policy)
        keys = self.run(summaries.due(within, user_id=self._whose(user_id)))
        return {key: self.run(_summarized(key, within, asked.name), model=asked) for key in keys}

    async def asummarize_due(
        self,
        *,
        user_id: str | None = None,
        policy: SummaryPolicy | None = None,
        model: Summarizer | None = None,
    ) -> dict[ConversationKey, SummaryResult]:
        """The async twin of `summarize_due`."""
        asked = await aselected(model, self.model)
        within = self.within(policy)
        keys = await self.arun(summaries.due(within, user_id=self._whose(user_id)))
        return {key: await self.arun(_summarized(key, within, asked.name), model=asked) for key in keys}

    def summaries(
        self, *, thread_id: str, user_id: str | None = None, agent_id: str | None = None, last: int | None = None
    ) -> list[Segment]:
        """The stored summaries of a conversation, in order. See `summaries.segments`."""
        return self.run(summaries.segments(self.key(thread_id, user_id, agent_id), last=last))

    async def asummaries(
        self, *, thread_id: str, user_id: str | None = None, agent_id: str | None = None, last: int | None = None
    ) -> list[Segment]:
        """The async twin of `summaries`."""
        return await self.arun(summaries.segments(self.key(thread_id, user_id, agent_id), last=last))

    def coverage(
        self,
        *,
        thread_id: str,
        user_id: str | None = None,
        agent_id: str | None = None,
        budget: ContextBudget | None = None,
    ) -> Coverage:
        """Where every message is: verbatim in the next pack, in a segment, omitted and why, or forgotten.

        See `context.cover.coverage`.
        """
        return self.run(self._coverage(self.key(thread_id, user_id, agent_id), budget))

    async def acoverage(
        self,
        *,
        thread_id: str,
        user_id: str | None = None,
        agent_id: str | None = None,
        budget: ContextBudget | None = None,
    ) -> Coverage:
        """The async twin of `coverage`."""
        return await self.arun(self._coverage(self.key(thread_id, user_id, agent_id), budget))

    def index(
        self,
        *,
        thread_id: str,
        user_id: str | None = None,
        agent_id: str | None = None,
        chunking: ChunkPolicy | None = None,
    ) -> IndexResult:
        """Index now what can not be recalled yet. See `indexing.index`; the memory's embedder and policy are used."""
        return self.run(self._index(self.key(thread_id, user_id, agent_id), chunking, patient=False))

    async def aindex(
        self,
        *,
        thread_id: str,
        user_id: str | None = None,
        agent_id: str | None = None,
        chunking: ChunkPolicy | None = None,
    ) -> IndexResult:
        """The async twin of `index`."""
        return await self.arun(self._index(self.key(thread_id, user_id, agent_id), chunking, patient=False))

    def index_due(self, *, user_id: str | None = None, messages: int = 0) -> dict[ConversationKey, IndexResult]:
        """Index every conversation of which more than so many messages, or the newest summary, can not be recalled yet.

        Call it from a scheduled task where the policy's mode is `background`. Any number of processes may do so at
        once: one of them wins each batch, the others change nothing.

        Args:
            user_id: Only this user's conversations; by default those of everybody whom the memory may see.
            messages: How many messages do not matter yet.

        Returns:
            What was done for each conversation that was due.
        """
        owner = self._whose(user_id)
        keys = self.run(indexing.due(user_id=owner, messages=messages, vectors=self.embeddings is not None))
        done = {key: self.run(_indexed(key, self._index(key, None))) for key in keys}
        return self.run(summary_recall.index_due(done, search.Scope(owner), model=self.embedder_name))

    async def aindex_due(self, *, user_id: str | None = None, messages: int = 0) -> dict[ConversationKey, IndexResult]:
        """The async twin of `index_due`."""
        owner = self._whose(user_id)
        keys = await self.arun(indexing.due(user_id=owner, messages=messages, vectors=self.embeddings is not None))
        done = {key: await self.arun(_indexed(key, self._index(key, None))) for key in keys}
        return await self.arun(summary_recall.index_due(done, search.Scope(owner), model=self.embedder_name))

    def index_summaries(self, *, thread_id: str, user_id: str | None = None, agent_id: str | None = None) -> int:
        """Give a conversation's newest summary a vector of the memory's embedder. See `summary_recall.index`.

        Raises:
            ConfigurationError: There is no embedder.
        """
        scope = self._scope(thread_id, user_id, agent_id)
        return self.run(summary_recall.index(scope, model=embedder(self.embeddings).name))

    async def aindex_summaries(self, *, thread_id: str, user_id: str | None = None, agent_id: str | None = None) -> int:
        """The async twin of `index_summaries`."""
        scope = self._scope(thread_id, user_id, agent_id)
        return await self.arun(summary_recall.index(scope, model=embedder(self.embeddings).name))

    def reembed(
        self, *, thread_id: str, user_id: str | None = None, agent_id: str | None = None, drop: bool = False
    ) -> int:
        """Give every chunk a vector of the memory's embedder, beside those of other models. See `indexing.reembed`."""
        key = self.key(thread_id, user_id, agent_id)
        return self.run(indexing.reembed(key, model=embedder(self.embeddings).name, drop=drop))

    async def areembed(
        self, *, thread_id: str, user_id: str | None = None, agent_id: str | None = None, drop: bool = False
    ) -> int:
        """The async twin of `reembed`."""
        key = self.key(thread_id, user_id, agent_id)
        return await self.arun(indexing.reembed(key, model=embedder(self.embeddings).name, drop=drop))

    def chunks(self, *, thread_id: str, user_id: str | None = None, agent_id: str | None = None) -> list[Chunk]:
        """The chunks of a conversation, in order. See `indexing.chunks`."""
        return self.run(indexing.chunks(self.key(thread_id, user_id, agent_id)))

    async def achunks(self, *, thread_id: str, user_id: str | None = None, agent_id: str | None = None) -> list[Chunk]:
        """The async twin of `chunks`."""
        return await self.arun(indexing.chunks(self.key(thread_id, user_id, agent_id)))

    def recall(
        self,
        query: str,
        *,
        thread_id: str | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        **asked: Unpack[Filters],
    ) -> Recall:
        """What was said and fits a question, by meaning and by words, in one round trip beside the embedding.

        Args:
            query: The question, in the user's words; blank lists what the filters leave.
            thread_id: Only in this conversation; by default in all of the user's.
            user_id: The owner; the memory's by default. Nobody else's words are ever looked at.
            agent_id: Only with this agent. In a conversation the memory's by default, else all.
            asked: `limit` or `characters`, `time_range`, `time_zone`, `types`, `min_importance`, `min_similarity`,
                `neighbors`, `segment`, `fusion`, `weights`, `exact_below`; see `recall.question.Question`.

        Returns:
            The chunks, the best first, and how they were found.

        Raises:
            InvalidInputError: Nobody is named as the owner, or an argument is none of its choices.
            MigrationConflictError: What is stored was embedded by another model.
            SupabaseMemoryError: The database refused or could not be reached.
        """
        scope, question = self._scope(thread_id, user_id, agent_id), question_of(query, asked)
        return self.run(search.recall(scope, question, model=self.embedder_name))

    async def arecall(
        self,
        query: str,
        *,
        thread_id: str | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        **asked: Unpack[Filters],
    ) -> Recall:
        """The async twin of `recall`."""
        scope, question = self._scope(thread_id, user_id, agent_id), question_of(query, asked)
        return await self.arun(search.recall(scope, question, model=self.embedder_name))

    def recall_summaries(
        self,
        query: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        limit: int = 5,
        time_range: TimeRange = "all",
        time_zone: str | tzinfo | None = None,
        min_similarity: float | None = None,
    ) -> list[RecalledSummary]:
        """The user's conversations that a question is about, by their newest summaries, in one round trip.

        Args:
            query: The question, in the user's words; blank lists the newest.
            user_id: The owner; the memory's by default. Nobody else's summaries are ever looked at.
            agent_id: Only conversations with this agent; by default with all.
            limit: The most conversations.
            time_range: Only summaries that were stored then. Those older than the retention's `max_summary_age`, 90
                days by default, are never found.
            time_zone: That of the person who asks, by its name or itself; UTC by default.
            min_similarity: Only summaries whose cosine with the question is at least so much; where there are no
                vectors, whose words fit so much in relation to the best.

        Returns:
            The summaries, the best first. One without a vector (`index_summaries` makes it) is found by its words.

        Raises:
            InvalidInputError: Nobody is named as the owner, or an argument is none of its choices.
            MigrationConflictError: The embedder has another width than it had.
            SupabaseMemoryError: The database refused or could not be reached.
        """
        scope = self._scope(None, user_id, agent_id)
        question = Question(
            query, limit=limit, time_range=time_range, time_zone=time_zone, min_similarity=min_similarity
        )
        return self.run(summary_recall.recall(scope, question, model=self.embedder_name, retention=self.retention))

    async def arecall_summaries(
        self,
        query: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        limit: int = 5,
        time_range: TimeRange = "all",
        time_zone: str | tzinfo | None = None,
        min_similarity: float | None = None,
    ) -> list[RecalledSummary]:
        """The async twin of `recall_summaries`."""
        scope = self._scope(None, user_id, agent_id)
        question = Question(
            query, limit=limit, time_range=time_range, time_zone=time_zone, min_similarity=min_similarity
        )
        flow = summary_recall.recall(scope, question, model=self.embedder_name, retention=self.retention)
        return await self.arun(flow)

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

    def health(self) -> Health:
        """How the memory stands, without asking anybody: whether calls pass, what waits, and what fails and why."""
        transport = self.transport
        circuit = transport.breaker.circuit if isinstance(transport, BreakingTransport) else CLOSED
        return Health(
            circuit.state,
            circuit.failures,
            circuit.retry_in_seconds,
            circuit.last_code,
            len(self.outbox),
            self.causes.standing,
        )

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

    def run(self, flow: Flow[T], *, model: SummaryModel | None = None, embeddings: EmbeddingModel | None = None) -> T:
        """Drive a flow through this memory's transport, and its summary model and embedder or others."""

        def perform(step: Step) -> Any:
            if isinstance(step, Ask):
                writer = chosen(model, self.model)
                with self.causes.watching("writer"):
                    return writer.answer(step)
            if isinstance(step, Embed):
                embedding = embedder(embeddings or self.embeddings)
                with self.causes.watching("embedder"):
                    return embedding.answer(step)
            if isinstance(step, Compute):
                return step.function()
            with self.causes.watching("database", settles=step.function != SCHEMA):
                return self.transport.perform(step)

        return watch.run(flow, perform, self.metrics)

    async def arun(
        self, flow: Flow[T], *, model: SummaryModel | None = None, embeddings: EmbeddingModel | None = None
    ) -> T:
        """The async twin of `run`."""

        async def perform(step: Step) -> Any:
            if isinstance(step, Ask):
                writer = chosen(model, self.model)
                with self.causes.watching("writer"):
                    return await writer.aanswer(step)
            if isinstance(step, Embed):
                embedding = embedder(embeddings or self.embeddings)
                with self.causes.watching("embedder"):
                    return await embedding.aanswer(step)
            if isinstance(step, Compute):
                return await in_thread(step.function)
            with self.causes.watching("database", settles=step.function != SCHEMA):
                return await self.transport.aperform(step)

        return await watch.arun(flow, perform, self.metrics)

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
        refusals = []
        for key in self.outbox.conversations():
            try:
                yield from self.deliver(key, [])
            except _REFUSALS as refusal:  # of one conversation, for which the others need not wait
                refusals.append(refusal)
        if refusals:
            raise refusals[0]
        return len(self.outbox)

    def _waiting(self, key: ConversationKey) -> list[BaseMessage]:
        """The messages of a conversation that could not be stored yet."""
        return [message for message, _ in self.outbox.waiting(key)]

    def _context(
        self,
        turn: Sequence[BaseMessage],
        key: ConversationKey,
        budget: ContextBudget | None,
        policy: SummaryPolicy | None,
        model: SummaryModel | None,
        retention: Retention | None,
        recalling: Recalling | None,
    ) -> Flow[ContextPack]:
        checked(budget=budget, policy=policy)
        policy = policy or self.policy
        pack = yield from context(
            key,
            budget=budget or self.budget,
            policy=policy,
            current=turn,
            waiting=self._waiting(key),
            model=None if model is None else model.name,
            retention=retention or self.retention,
            recalling=recalling,
        )
        self.causes.look_at(pack, has_writer=model is not None and policy.mode == "inline")
        return pack

    def _recalling(
        self,
        turn: Sequence[BaseMessage],
        query: str | None,
        scope: RecallScope | Inherited | None,
        asked: Mapping[str, Any],
    ) -> Recalling | None:
        """What a pack recalls for a query, or else for the user's message."""
        if isinstance(scope, Inherited):  # who asks for something wants it recalled
            scope = self.recall_scope if query is None else self.recall_scope or "conversation"
        said = str(turn[0].text) if turn else None
        found = self.recalling(said if query is None else query, scope, asked)
        return None if found is None else replace(found, strict=query is not None)

    def recalling(
        self, query: str | None, scope: RecallScope | None, asked: Mapping[str, Any] | None = None
    ) -> Recalling | None:
        """What a pack recalls for a query, with this memory's embedder and policy; `None` for no scope or no words.

        Raises:
            InvalidInputError: The query is no text, or an argument is none of its choices.
        """
        known("context", asked or {}, Filters.__annotations__)
        if scope is None or query is None or (isinstance(query, str) and not query.strip()):
            return None
        found = Recalling(query, scope, asked or {}, self.embedder_name, self.chunking)
        found.question(self.budget)  # refuses what is no question
        return found

    def _dropped(self, keys: Iterable[ConversationKey], dry_run: bool) -> None:
        """What waits for a conversation that was forgotten goes too; only then, or a failure would lose it."""
        for key in () if dry_run else keys:
            self.outbox.drop(key)

    def _coverage(self, key: ConversationKey, budget: ContextBudget | None) -> Flow[Coverage]:
        checked(budget=budget)
        return coverage(key, budget=budget or self.budget, policy=self.policy, waiting=self._waiting(key))

    @property
    def embedder_name(self) -> str | None:
        """What the embedder's vectors are recorded under; `None` without one."""
        return None if self.embeddings is None else self.embeddings.name

    def _index(self, key: ConversationKey, chunking: ChunkPolicy | None, *, patient: bool = True) -> Flow[IndexResult]:
        checked(chunking=chunking)
        return indexing.index(key, chunking or self.chunking, model=self.embedder_name, patient=patient)

    def _scope(self, thread_id: str | None, user_id: str | None, agent_id: str | None) -> search.Scope:
        key = self.key("any" if thread_id is None else thread_id, user_id, agent_id)
        return search.Scope(key.user_id, agent_id if thread_id is None else key.agent_id, thread_id)

    def _complete(
        self, key: ConversationKey, policy: SummaryPolicy | None, model: SummaryModel
    ) -> Flow[CompleteSummary]:
        yield from boards.revise(key, self.board_policy, model=model.name)
        return (yield from complete_summary(key, self.within(policy), model=model.name, embedder=self.embedder_name))

    def within(self, policy: SummaryPolicy | None) -> SummaryPolicy:
        """A policy, or the memory's, with every number that was left open derived from the budget."""
        checked(policy=policy)
        # Beside what is recalled a pack has less room for what stays verbatim.
        budget = self.budget if self.recall_scope is None else self.budget.beside_recalled
        return (policy or self.policy).within(budget)

    def deliver(
        self,
        key: ConversationKey,
        messages: Sequence[BaseMessage],
        *,
        metadata: Mapping[str, Any] | None = None,
        replace: bool = True,
        retention: Retention | None = None,
        branch: Mapping[str, Any] | None = None,
    ) -> Flow[None]:
        """Store messages behind those that wait for the same conversation, in one call, so that the order holds.

        Where the database refuses what one of them holds, those that wait are stored one by one: the one that is
        refused waits on, and holds nothing else back.

        Args:
            key: The conversation.
            messages: What is new; it may be nothing.
            metadata: What to store beside each of them.
            replace: Whether a message that is there already with other content is replaced.
            retention: What is kept; the memory's by default.
            branch: What a graph's state holds; see `conversations.append`.

        Raises:
            SupabaseMemoryError: What is new was not stored, and is not kept here; what waited and was not stored
                waits on.
        """

        def stored(
            batch: Sequence[Waiting | tuple[BaseMessage, None]], branch: Mapping[str, Any] | None = None
        ) -> Flow[None]:
            try:
                yield from conversations.append(
                    key,
                    [message for message, _ in batch],
                    created_at=[time for _, time in batch],
                    metadata=metadata,
                    replace=replace,
                    retention=retention or self.retention,
                    redactor=self.redactor,
                    branch=branch,
                )
            except TooLargeError:
                if len(batch) < 2:
                    raise
                # In order, in as many calls as the limits ask for; the last says what the graph's state holds.
                half = len(batch) // 2
                yield from stored(batch[:half])
                yield from stored(batch[half:], branch)
            else:
                self.outbox.delivered(key, [message for message, _ in batch])

        waiting = self.outbox.waiting(key)
        fresh = [(message, None) for message in messages]
        try:
            return (yield from stored([*waiting, *fresh], branch))
        except _REFUSALS as refusal:
            if not waiting or len(waiting) + len(fresh) == 1:
                raise
            refused: SupabaseMemoryError = refusal
        still_refused = False
        for one in waiting:
            try:
                yield from stored([one])
            except _REFUSALS as refusal:
                refused, still_refused = refusal, True
        if fresh or branch is not None:
            yield from stored(fresh, branch)
        elif still_refused:
            raise refused


def _turn(current: Sequence[BaseMessage] | BaseMessage | str | None) -> list[BaseMessage]:
    """The turn under way as messages with ids."""
    if isinstance(current, str):
        current = [HumanMessage(current)]
    elif isinstance(current, BaseMessage):
        current = [current]
    turn = codec.checked(current or [])
    codec.ensure_ids(turn)
    return turn


def _summarized(key: ConversationKey, policy: SummaryPolicy, model: str) -> Flow[SummaryResult]:
    flow = summaries.summarize(key, policy, model=model)
    return conversations.alone(key, flow, lambda word: SummaryResult(-1, failed=word))


def _indexed(key: ConversationKey, flow: Flow[IndexResult]) -> Flow[IndexResult]:
    return conversations.alone(key, flow, lambda word: IndexResult(-1, failed=word))


def _check() -> Flow[script.Installed]:
    found = yield from call(SCHEMA, {})
    make = partial(script.current, found.get("vector_schema", script.VECTOR_SCHEMA))
    expected = yield from compute(make, LITTLE)  # it reads every SQL file
    if found | {"version": expected.version, "vector_moved_to": None} != asdict(expected):
        raise SchemaOutdatedError(
            f"The memory's schema in this database is of release {found['version']}, not {expected.version}."
        )
    if found["vector_moved_to"] is not None:
        raise SchemaOutdatedError(
            f"pgvector has moved to the schema {found['vector_moved_to']!r} since the last migration."
        )
    return script.Installed(**found)


def opened(memory: object) -> SupabaseMemory:
    """What was passed as a memory, if it is one: for what is made over a memory.

    Args:
        memory: What was passed.

    Raises:
        ConfigurationError: It is none.
    """
    if isinstance(memory, SupabaseMemory):
        return memory
    raise wrong("memory", "a SupabaseMemory", memory, _HOW_TO_OPEN if memory is None else _instead_of(memory))


_HOW_TO_OPEN: Final = "Make one with SupabaseMemory.from_url, from_client, from_conn_string or embedded, and pass it."


def _instead_of(given: object) -> str:
    """How a memory is made of what was passed in a memory's or a transport's place."""
    if isinstance(given, str):
        if given.startswith(("postgres://", "postgresql://")) or "host=" in given:
            return "Use SupabaseMemory.from_conn_string(conn_string)."
        return "Use SupabaseMemory.from_url(url, key)." if "://" in given else _HOW_TO_OPEN
    if hasattr(given, "supabase_url"):
        return "Use SupabaseMemory.from_client(client)."
    if hasattr(given, "add_messages"):
        return "Pass the SupabaseMemory that the history is made over."
    if type(given).__module__.startswith(("psycopg", "asyncpg", "sqlalchemy")):
        return "Use SupabaseMemory.from_conn_string(conn_string), with the address of the database."
    if callable(getattr(given, "perform", None)):
        return "Make a memory over it: SupabaseMemory(transport)."
    return _HOW_TO_OPEN


def _checked(
    transport: object, more: tuple[object, ...], *, user_id: object, agent_id: object, metrics: object
) -> None:
    """Refuse what a memory cannot be made of, before anything is done with it."""
    if more or isinstance(transport, SupabaseMemory) or not callable(getattr(transport, "perform", None)):
        hint = _instead_of(transport)
        if isinstance(transport, SupabaseMemory):
            hint = "It is a memory already. For another user make memory.as_user(token); or pass memory.transport."
        raise wrong("transport", "a SupabaseTransport or a PostgresTransport, alone", transport, hint)
    if user_id is not None:
        check_id("user_id", user_id)
    check_id("agent_id", agent_id)
    if metrics is not None and not isinstance(metrics, NoMetrics):
        raise wrong("metrics", "a Metrics", metrics, "Pass metrics=Metrics().")


def _a_folder(path: object) -> None:
    if path is not None and not isinstance(path, (str, PathLike)):
        raise wrong("path", "a folder's path", path, 'Pass "./memory", for example.')
    if isinstance(path, str) and "://" in path:
        hint = "Use SupabaseMemory.from_conn_string or from_url for a database that has an address."
        raise ConfigurationError("path must be a folder, not an address.", hint=hint)
