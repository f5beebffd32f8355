# Written by tools/handles.py. Do not edit.
"""What is done with all conversations of a user, and with the memory itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Never, Self

from langchain_supabase_memory.memory.config import DEFAULT_CONFIG, QUOTES, MemoryConfig, Settings
from langchain_supabase_memory.memory.constructors import Constructors
from langchain_supabase_memory.memory.doctor.checks import doctor
from langchain_supabase_memory.memory.messages import forget_expired, forget_user
from langchain_supabase_memory.memory.outbox_delivery import flush
from langchain_supabase_memory.memory.privacy import Privacy
from langchain_supabase_memory.memory.rollouts import Rollouts
from langchain_supabase_memory.memory.services import ME
from langchain_supabase_memory.memory.work import Work
from langchain_supabase_memory.operations.listing import conversations
from langchain_supabase_memory.operations.recall.exact_search import LIMIT, Order, find
from langchain_supabase_memory.operations.recall.query import EXACT_BELOW, Filters, Fusion
from langchain_supabase_memory.operations.recall.search import recall
from langchain_supabase_memory.operations.recall.summaries import recall_summaries
from langchain_supabase_memory.settings import (
    DEFAULT_BUDGET,
    DEFAULT_RETRY_POLICY,
    DEFAULT_WEIGHTS,
    ContextBudget,
    RecallWeights,
    Retention,
    RetryPolicy,
)
from langchain_supabase_memory.values import (
    DEFAULT_AGENT_ID,
    ConversationPage,
    ConversationState,
    FoundPage,
    Recall,
    RecalledSummary,
    Receipt,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from datetime import datetime, tzinfo
    from os import PathLike
    from uuid import UUID

    from langchain_core.embeddings import Embeddings
    from supabase import AsyncClient, Client

    from langchain_supabase_memory.adapters.embedder import EmbeddingModel
    from langchain_supabase_memory.adapters.summarizer import Summarizer, SummaryModel
    from langchain_supabase_memory.adapters.transports.base import Transport
    from langchain_supabase_memory.language.chunks.kinds import Kind
    from langchain_supabase_memory.language.messages.redaction.redactor import Redactor
    from langchain_supabase_memory.language.messages.redaction.rules import RedactionRule
    from langchain_supabase_memory.memory.doctor.finding import Finding
    from langchain_supabase_memory.operations.recall.ranges import TimeRange


class SupabaseMemory(Constructors):
    """A memory on Supabase, or on any Postgres. It opens connections at the first call, never when it is made.

    Make one with `from_url`, `from_client`, `from_conn_string` or `embedded`, share it in the whole process, and close
    it at the end. What concerns one conversation is on its handle, `memory.conversation("studio")`; what spans a user's
    conversations is here. Each verb has an async twin with LangChain's prefix `a`: `recall` and `arecall`.
    """

    def __init__(
        self,
        transport: Transport,
        *key: Never,
        user_id: str | UUID | None = None,
        agent_id: str = DEFAULT_AGENT_ID,
        model: Summarizer | SummaryModel | None = QUOTES,
        embeddings: Embeddings | EmbeddingModel | str | None = None,
        budget: ContextBudget = DEFAULT_BUDGET,
        retention: Retention | None = None,
        redactor: Redactor | Iterable[RedactionRule] | None = None,
        config: MemoryConfig = DEFAULT_CONFIG,
    ) -> None:
        """Make a memory over a transport.

        Args:
            transport: What reaches the database.
            key: Nothing; a url and a key go to `from_url`.
            user_id: The one user of this memory: no run can name another. Leave it out where `for_user`, `for_token`
                or each run names the user.
            agent_id: The agent where a call names none.
            model: The model that writes summaries: a LangChain chat model, a runnable or a function, or a chat
                model's name, such as `"openai:gpt-5.5"`. By default `ExtractiveSummarizer` selects quotes. With
                `None` nothing is summarized, and a pack says what it leaves out.
            embeddings: What finds by meaning: a LangChain embedder, its name, such as
                `"openai:text-embedding-3-small"`, or an `EmbeddingModel` with its own settings. Without one, or
                where it fails, recall searches by words.
            budget: The budget of a context pack where a call gives none.
            retention: How long, or how many turns, are kept, where a call does not say; everything by default.
            redactor: What removes secrets and personal data before anything is stored: from messages, from what a
                person writes on a board or as a summary, and from the values of a `SupabaseStore` of this memory.
                Rules, such as `[*SECRETS, *PERSONAL_DATA]`, or a `Redactor`. Nothing is removed by default. Your
                message objects stay as they are, so the turn under way and a graph's own state show the user's own
                words. Messages in the outbox are redacted when they are delivered. If a rule fails, nothing is
                stored: `append` raises, and histories, middleware and nodes keep the messages in the outbox, as
                when the database is away.
            config: All other settings.

        Raises:
            InvalidInputError: An id is not a usable string.
            ConfigurationError: An argument is of another type than it must be, or the key of a model or an embedder is
                missing.
            MissingDependencyError: A package that a model or an embedder by its name needs is not installed.
        """
        super().__init__(
            transport,
            *key,
            user_id=user_id,
            agent_id=agent_id,
            settings=Settings(
                model=model, embeddings=embeddings, budget=budget, retention=retention, redactor=redactor, config=config
            ),
        )

    @classmethod
    def from_url(
        cls,
        url: str,
        key: str,
        *,
        user_id: str | UUID | None = None,
        agent_id: str = DEFAULT_AGENT_ID,
        retry: RetryPolicy = DEFAULT_RETRY_POLICY,
        rest_path: str = "/rest/v1",
        model: Summarizer | SummaryModel | None = QUOTES,
        embeddings: Embeddings | EmbeddingModel | str | None = None,
        budget: ContextBudget = DEFAULT_BUDGET,
        retention: Retention | None = None,
        redactor: Redactor | Iterable[RedactionRule] | None = None,
        config: MemoryConfig = DEFAULT_CONFIG,
    ) -> Self:
        """A memory over a project's Data API.

        Args:
            url: The project's url, such as `https://abc.supabase.co`.
            key: The publishable key, for a memory `for_token`; or, on a server, the secret key.
            user_id: The one user of this memory: no run can name another. Without it, and with the secret key, which
                sees everybody, `for_user`, `for_token` or each run names the user.
            agent_id: The agent where a call names none.
            retry: How a call is repeated when the server cannot be reached.
            rest_path: Where the Data API lies under `url`; empty for a bare PostgREST.
            model: The model that writes summaries: a LangChain chat model, a runnable or a function, or a chat
                model's name, such as `"openai:gpt-5.5"`. By default `ExtractiveSummarizer` selects quotes. With
                `None` nothing is summarized, and a pack says what it leaves out.
            embeddings: What finds by meaning: a LangChain embedder, its name, such as
                `"openai:text-embedding-3-small"`, or an `EmbeddingModel` with its own settings. Without one, or
                where it fails, recall searches by words.
            budget: The budget of a context pack where a call gives none.
            retention: How long, or how many turns, are kept, where a call does not say; everything by default.
            redactor: What removes secrets and personal data before anything is stored: from messages, from what a
                person writes on a board or as a summary, and from the values of a `SupabaseStore` of this memory.
                Rules, such as `[*SECRETS, *PERSONAL_DATA]`, or a `Redactor`. Nothing is removed by default. Your
                message objects stay as they are, so the turn under way and a graph's own state show the user's own
                words. Messages in the outbox are redacted when they are delivered. If a rule fails, nothing is
                stored: `append` raises, and histories, middleware and nodes keep the messages in the outbox, as
                when the database is away.
            config: All other settings.

        Raises:
            ConfigurationError: The url or the key is none, or a setting is of another type than it must be.
        """
        return cls._from_url(
            url,
            key,
            user_id=user_id,
            agent_id=agent_id,
            retry=retry,
            rest_path=rest_path,
            settings=Settings(
                model=model, embeddings=embeddings, budget=budget, retention=retention, redactor=redactor, config=config
            ),
        )

    @classmethod
    def from_client(
        cls,
        client: Client | AsyncClient,
        *,
        user_id: str | UUID | None = None,
        agent_id: str = DEFAULT_AGENT_ID,
        retry: RetryPolicy = DEFAULT_RETRY_POLICY,
        model: Summarizer | SummaryModel | None = QUOTES,
        embeddings: Embeddings | EmbeddingModel | str | None = None,
        budget: ContextBudget = DEFAULT_BUDGET,
        retention: Retention | None = None,
        redactor: Redactor | Iterable[RedactionRule] | None = None,
        config: MemoryConfig = DEFAULT_CONFIG,
    ) -> Self:
        """A memory over a `supabase` client of yours, which is never closed.

        A sync client serves the sync methods and an async client the async ones; the other color is opened from the
        client's url and key when it is needed, and so are both in a process that is forked from this one.

        Args:
            client: The client.
            user_id: The one user of this memory: no run can name another. Without it, and with the secret key, which
                sees everybody, `for_user`, `for_token` or each run names the user.
            agent_id: The agent where a call names none.
            retry: How a call is repeated when the server cannot be reached.
            model: The model that writes summaries: a LangChain chat model, a runnable or a function, or a chat
                model's name, such as `"openai:gpt-5.5"`. By default `ExtractiveSummarizer` selects quotes. With
                `None` nothing is summarized, and a pack says what it leaves out.
            embeddings: What finds by meaning: a LangChain embedder, its name, such as
                `"openai:text-embedding-3-small"`, or an `EmbeddingModel` with its own settings. Without one, or
                where it fails, recall searches by words.
            budget: The budget of a context pack where a call gives none.
            retention: How long, or how many turns, are kept, where a call does not say; everything by default.
            redactor: What removes secrets and personal data before anything is stored: from messages, from what a
                person writes on a board or as a summary, and from the values of a `SupabaseStore` of this memory.
                Rules, such as `[*SECRETS, *PERSONAL_DATA]`, or a `Redactor`. Nothing is removed by default. Your
                message objects stay as they are, so the turn under way and a graph's own state show the user's own
                words. Messages in the outbox are redacted when they are delivered. If a rule fails, nothing is
                stored: `append` raises, and histories, middleware and nodes keep the messages in the outbox, as
                when the database is away.
            config: All other settings.

        Raises:
            ConfigurationError: The client is none, or a setting is of another type than it must be.
        """
        return cls._from_client(
            client,
            user_id=user_id,
            agent_id=agent_id,
            retry=retry,
            settings=Settings(
                model=model, embeddings=embeddings, budget=budget, retention=retention, redactor=redactor, config=config
            ),
        )

    @classmethod
    def from_conn_string(
        cls,
        conn_string: str,
        *,
        user_id: str | UUID | None = None,
        agent_id: str = DEFAULT_AGENT_ID,
        retry: RetryPolicy = DEFAULT_RETRY_POLICY,
        model: Summarizer | SummaryModel | None = QUOTES,
        embeddings: Embeddings | EmbeddingModel | str | None = None,
        budget: ContextBudget = DEFAULT_BUDGET,
        retention: Retention | None = None,
        redactor: Redactor | Iterable[RedactionRule] | None = None,
        config: MemoryConfig = DEFAULT_CONFIG,
    ) -> Self:
        """A memory over a direct connection to Postgres; any of Supabase's poolers will do.

        Args:
            conn_string: A connection string such as `postgresql://postgres:…@db.abc.supabase.co:5432/postgres`.
            user_id: The one user of this memory: no run can name another. Without it `for_user`, `for_token` or each
                run names the user.
            agent_id: The agent where a call names none.
            retry: How a call is repeated when the server cannot be reached.
            model: The model that writes summaries: a LangChain chat model, a runnable or a function, or a chat
                model's name, such as `"openai:gpt-5.5"`. By default `ExtractiveSummarizer` selects quotes. With
                `None` nothing is summarized, and a pack says what it leaves out.
            embeddings: What finds by meaning: a LangChain embedder, its name, such as
                `"openai:text-embedding-3-small"`, or an `EmbeddingModel` with its own settings. Without one, or
                where it fails, recall searches by words.
            budget: The budget of a context pack where a call gives none.
            retention: How long, or how many turns, are kept, where a call does not say; everything by default.
            redactor: What removes secrets and personal data before anything is stored: from messages, from what a
                person writes on a board or as a summary, and from the values of a `SupabaseStore` of this memory.
                Rules, such as `[*SECRETS, *PERSONAL_DATA]`, or a `Redactor`. Nothing is removed by default. Your
                message objects stay as they are, so the turn under way and a graph's own state show the user's own
                words. Messages in the outbox are redacted when they are delivered. If a rule fails, nothing is
                stored: `append` raises, and histories, middleware and nodes keep the messages in the outbox, as
                when the database is away.
            config: All other settings.

        Raises:
            MissingDependencyError: The extra `postgres` is not installed.
            ConfigurationError: The connection string cannot be parsed, or a setting is of another type than it must be.
        """
        return cls._from_conn_string(
            conn_string,
            user_id=user_id,
            agent_id=agent_id,
            retry=retry,
            settings=Settings(
                model=model, embeddings=embeddings, budget=budget, retention=retention, redactor=redactor, config=config
            ),
        )

    @classmethod
    def embedded(
        cls,
        path: str | PathLike[str] | None = None,
        *,
        user_id: str | UUID | None = ME,
        agent_id: str = DEFAULT_AGENT_ID,
        model: Summarizer | SummaryModel | None = QUOTES,
        embeddings: Embeddings | EmbeddingModel | str | None = None,
        budget: ContextBudget = DEFAULT_BUDGET,
        retention: Retention | None = None,
        redactor: Redactor | Iterable[RedactionRule] | None = None,
        config: MemoryConfig = DEFAULT_CONFIG,
    ) -> Self:
        """A memory on a private Postgres in a folder: no account, no server, no key. Made ready at the first call.

        Args:
            path: The folder of the database; made if absent. By default the user's data folder.
            user_id: The one user of this memory: no run can name another. By default `for_user` or a run may name the
                user, and what names nobody belongs to the user `"me"`. With `None` each must name one.
            agent_id: The agent where a call names none.
            model: The model that writes summaries: a LangChain chat model, a runnable or a function, or a chat
                model's name, such as `"openai:gpt-5.5"`. By default `ExtractiveSummarizer` selects quotes. With
                `None` nothing is summarized, and a pack says what it leaves out.
            embeddings: What finds by meaning: a LangChain embedder, its name, such as
                `"openai:text-embedding-3-small"`, or an `EmbeddingModel` with its own settings. Without one, or
                where it fails, recall searches by words.
            budget: The budget of a context pack where a call gives none.
            retention: How long, or how many turns, are kept, where a call does not say; everything by default.
            redactor: What removes secrets and personal data before anything is stored: from messages, from what a
                person writes on a board or as a summary, and from the values of a `SupabaseStore` of this memory.
                Rules, such as `[*SECRETS, *PERSONAL_DATA]`, or a `Redactor`. Nothing is removed by default. Your
                message objects stay as they are, so the turn under way and a graph's own state show the user's own
                words. Messages in the outbox are redacted when they are delivered. If a rule fails, nothing is
                stored: `append` raises, and histories, middleware and nodes keep the messages in the outbox, as
                when the database is away.
            config: All other settings.

        Raises:
            MissingDependencyError: The extra `embedded` is not installed.
            ConfigurationError: The path is none, or a setting is of another type than it must be.
        """
        return cls._embedded(
            path,
            user_id=user_id,
            agent_id=agent_id,
            settings=Settings(
                model=model, embeddings=embeddings, budget=budget, retention=retention, redactor=redactor, config=config
            ),
        )

    def conversations(
        self,
        *,
        agent_id: str | None = None,
        state: ConversationState | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 50,
        before: str | None = None,
        after: str | None = None,
    ) -> ConversationPage:
        """A page of a user's conversations, the most recently changed first, each with a title and its last words.

        Args:
            agent_id: Only this agent's; `None` means all agents'.
            state: Only `active` or only `archived` ones; `None` means both.
            since: Only those that changed at or after this time, with a time zone.
            until: Only those that changed before this time, with a time zone.
            limit: The most of a page, 1 to 1,000.
            before: What a page gives as `before`: the page before it, of newer ones.
            after: What a page gives as `after`: the page after it, of older ones.

        Returns:
            The page. A conversation that changes meanwhile moves to the front; by `after` none is shown twice.

        Raises:
            InvalidInputError: An argument is none of its choices, a time is naive, or nobody is named as the owner.
            SupabaseMemoryError: The database refused or could not be reached.
        """
        return self._services.run(
            conversations(
                self._services.owner(),
                agent_id=agent_id,
                state=state,
                since=since,
                until=until,
                limit=limit,
                before=before,
                after=after,
                retention=self._services.settings.retention,
            )
        )

    async def aconversations(
        self,
        *,
        agent_id: str | None = None,
        state: ConversationState | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 50,
        before: str | None = None,
        after: str | None = None,
    ) -> ConversationPage:
        """The async twin of `conversations`."""
        return await self._services.arun(
            conversations(
                self._services.owner(),
                agent_id=agent_id,
                state=state,
                since=since,
                until=until,
                limit=limit,
                before=before,
                after=after,
                retention=self._services.settings.retention,
            )
        )

    def recall(
        self,
        query: str | Sequence[str],
        *,
        agent_id: str | None = None,
        limit: int | None = None,
        characters: int | None = None,
        time_range: TimeRange = "all",
        time_zone: str | tzinfo | None = None,
        types: Collection[Kind] | None = None,
        min_importance: float | None = None,
        min_similarity: float | None = None,
        neighbors: int = 0,
        episode: bool = False,
        fusion: Fusion = "score",
        weights: RecallWeights = DEFAULT_WEIGHTS,
        exact_below: int = EXACT_BELOW,
    ) -> Recall:
        """What was said and fits a question, by meaning and by words, in one round trip beside the models.

        Args:
            agent_id: Only with this agent; by default with all.
            query: The question, in the user's words, of which 10,000 characters count; blank lists what the filters
                leave. Or up to 8 of them: the ranking serves each, its best first.
            limit: The most chunks; 10 if neither this nor `characters` is given, and never more than 1,000.
            characters: The most characters of what is returned.
            time_range: Only what was said then.
            time_zone: That of the person who asks, by its name or itself; the memory's by default, else UTC.
            types: Only chunks of these types.
            min_importance: Only chunks that matter at least so much, 0 to 1.
            min_similarity: Only chunks whose cosine with the question is at least so much; where there are no
                vectors, whose words fit so much in relation to the best.
            neighbors: How many units before and after each chunk come with it.
            episode: Whether the whole episode of talk of each chunk comes with it.
            fusion: How words and meaning become one ranking.
            weights: What each part of the score counts.
            exact_below: Scopes of more chunks than this are not compared one by one.

        Returns:
            The chunks, the best first, and how they were found.

        Raises:
            InvalidInputError: An argument is none of its choices.
            MigrationConflictError: What is stored was embedded by another model.
            SupabaseMemoryError: The database refused or could not be reached.
        """
        return self._services.run(
            recall(
                self._services.scope(agent_id=agent_id),
                query,
                filters=Filters(
                    limit=limit,
                    characters=characters,
                    time_range=time_range,
                    time_zone=time_zone,
                    types=types,
                    min_importance=min_importance,
                    min_similarity=min_similarity,
                    neighbors=neighbors,
                    episode=episode,
                    fusion=fusion,
                    weights=weights,
                    exact_below=exact_below,
                ),
                zone=self._services.config.time_zone,
                capabilities=self._services.capabilities,
            )
        )

    async def arecall(
        self,
        query: str | Sequence[str],
        *,
        agent_id: str | None = None,
        limit: int | None = None,
        characters: int | None = None,
        time_range: TimeRange = "all",
        time_zone: str | tzinfo | None = None,
        types: Collection[Kind] | None = None,
        min_importance: float | None = None,
        min_similarity: float | None = None,
        neighbors: int = 0,
        episode: bool = False,
        fusion: Fusion = "score",
        weights: RecallWeights = DEFAULT_WEIGHTS,
        exact_below: int = EXACT_BELOW,
    ) -> Recall:
        """The async twin of `recall`."""
        return await self._services.arun(
            recall(
                self._services.scope(agent_id=agent_id),
                query,
                filters=Filters(
                    limit=limit,
                    characters=characters,
                    time_range=time_range,
                    time_zone=time_zone,
                    types=types,
                    min_importance=min_importance,
                    min_similarity=min_similarity,
                    neighbors=neighbors,
                    episode=episode,
                    fusion=fusion,
                    weights=weights,
                    exact_below=exact_below,
                ),
                zone=self._services.config.time_zone,
                capabilities=self._services.capabilities,
            )
        )

    def find(
        self,
        texts: str | Sequence[str],
        *,
        agent_id: str | None = None,
        order: Order = "newest",
        match_case: bool = False,
        since: datetime | None = None,
        until: datetime | None = None,
        around: int = 0,
        limit: int = LIMIT,
        after: str | None = None,
    ) -> FoundPage:
        """The messages that hold a phrase, a number, a file name or an id, letter by letter, in one round trip.

        It looks at the words of the messages, and at the names and arguments of what they call; not at what the memory
        itself gave a tool. One call looks at 2,000 messages at most; of several conversations, each counts as ten.
        Several come in the order in which they were begun, from the newest or the oldest on. Nothing needs to be
        indexed.

        Args:
            agent_id: Only with this agent; by default with all.
            texts: What to look for, 1 to 1,000 characters; of up to ten, a message holds each.
            order: From the `newest` message on, or from the `oldest`.
            match_case: Whether capitals matter. If not, ß is ss, and İ is i.
            since: Only messages of this time or later, with a time zone.
            until: Only messages before this time, with a time zone.
            around: So many messages before and after each come with it, up to 10.
            limit: The most messages that this call finds, 1 to 100.
            after: `after` of the page before, for what follows.

        Returns:
            The messages in the order that was asked for, and where to go on: `page.after` is `None` if everything was
            looked at.

        Raises:
            InvalidInputError: A text is blank or too long, a time is naive, or an argument is none of its choices.
            SupabaseMemoryError: The database refused or could not be reached.
        """
        return self._services.run(
            find(
                self._services.scope(agent_id=agent_id),
                texts,
                order=order,
                match_case=match_case,
                since=since,
                until=until,
                around=around,
                limit=limit,
                after=after,
                retention=self._services.settings.retention,
            )
        )

    async def afind(
        self,
        texts: str | Sequence[str],
        *,
        agent_id: str | None = None,
        order: Order = "newest",
        match_case: bool = False,
        since: datetime | None = None,
        until: datetime | None = None,
        around: int = 0,
        limit: int = LIMIT,
        after: str | None = None,
    ) -> FoundPage:
        """The async twin of `find`."""
        return await self._services.arun(
            find(
                self._services.scope(agent_id=agent_id),
                texts,
                order=order,
                match_case=match_case,
                since=since,
                until=until,
                around=around,
                limit=limit,
                after=after,
                retention=self._services.settings.retention,
            )
        )

    def recall_summaries(
        self,
        query: str,
        *,
        agent_id: str | None = None,
        limit: int = 5,
        time_range: TimeRange = "all",
        time_zone: str | tzinfo | None = None,
        min_similarity: float | None = None,
    ) -> list[RecalledSummary]:
        """The user's conversations that a question is about, by their newest summaries, in one round trip.

        Args:
            agent_id: Only with this agent; by default with all.
            query: The question, in the user's words; blank lists the newest.
            limit: The most conversations.
            time_range: Only summaries that were stored then. Those older than the retention's `max_summary_age`, 90
                days by default, are never found.
            time_zone: That of the person who asks, by its name or itself; the memory's by default.
            min_similarity: Only summaries whose cosine with the question is at least so much; where there are no
                vectors, whose words fit so much in relation to the best.

        Returns:
            The summaries, the best first. One without a vector (`index_summaries` makes it) is found by its words.

        Raises:
            InvalidInputError: Nobody is named as the owner, or an argument is none of its choices.
            MigrationConflictError: The embedder has another width than it had.
            SupabaseMemoryError: The database refused or could not be reached.
        """
        return self._services.run(
            recall_summaries(
                self._services.scope(agent_id=agent_id),
                query,
                limit=limit,
                time_range=time_range,
                time_zone=time_zone,
                min_similarity=min_similarity,
                zone=self._services.config.time_zone,
                embedder=self._services.embedder_name,
                retention=self._services.settings.retention,
            )
        )

    async def arecall_summaries(
        self,
        query: str,
        *,
        agent_id: str | None = None,
        limit: int = 5,
        time_range: TimeRange = "all",
        time_zone: str | tzinfo | None = None,
        min_similarity: float | None = None,
    ) -> list[RecalledSummary]:
        """The async twin of `recall_summaries`."""
        return await self._services.arun(
            recall_summaries(
                self._services.scope(agent_id=agent_id),
                query,
                limit=limit,
                time_range=time_range,
                time_zone=time_zone,
                min_similarity=min_similarity,
                zone=self._services.config.time_zone,
                embedder=self._services.embedder_name,
                retention=self._services.settings.retention,
            )
        )

    def forget_user(self, *, agent_id: str | None = None, dry_run: bool = False) -> Receipt:
        """Delete all of a user: conversations with all agents, everything derived from them, the items of the store.

        Args:
            agent_id: Only the conversations with this agent, with everything derived from them; `None` means all, and
                the items of the store.
            dry_run: Only say what would go.

        Returns:
            What went.

        Raises:
            InvalidInputError: Nobody is named.
        """
        return self._services.run(
            forget_user(self._services, self._services.owner(), agent_id=agent_id, dry_run=dry_run)
        )

    async def aforget_user(self, *, agent_id: str | None = None, dry_run: bool = False) -> Receipt:
        """The async twin of `forget_user`."""
        return await self._services.arun(
            forget_user(self._services, self._services.owner(), agent_id=agent_id, dry_run=dry_run)
        )

    def forget_expired(
        self,
        *,
        agent_id: str | None = None,
        thread_id: str | None = None,
        retention: Retention | None = None,
        dry_run: bool = False,
    ) -> Receipt:
        """Remove what retention does not keep, and chunks that have expired, in all conversations the memory may see.

        Call it from a scheduled task.

        Args:
            agent_id: Only those with this agent; `None` means all.
            thread_id: Only this thread; `None` means all.
            retention: What is kept; the memory's by default. Without any, only expired chunks go.
            dry_run: Only say what would go: it is done, counted and taken back, one conversation after the other.

        Returns:
            What went: the conversations that lost messages, how many messages, summaries and chunks.
        """
        return self._services.run(
            forget_expired(
                self._services,
                self._services.scope_text(),
                agent_id=agent_id,
                thread_id=thread_id,
                retention=retention or self._services.settings.retention,
                dry_run=dry_run,
            )
        )

    async def aforget_expired(
        self,
        *,
        agent_id: str | None = None,
        thread_id: str | None = None,
        retention: Retention | None = None,
        dry_run: bool = False,
    ) -> Receipt:
        """The async twin of `forget_expired`."""
        return await self._services.arun(
            forget_expired(
                self._services,
                self._services.scope_text(),
                agent_id=agent_id,
                thread_id=thread_id,
                retention=retention or self._services.settings.retention,
                dry_run=dry_run,
            )
        )

    def flush(self) -> int:
        """Store what earlier writes of histories left in the outbox.

        Returns:
            How many messages are still waiting, which is 0 unless an error is raised.

        Raises:
            SupabaseMemoryError: The database still refuses; everything is kept.
        """
        return self._services.run(flush(self._services))

    async def aflush(self) -> int:
        """The async twin of `flush`."""
        return await self._services.arun(flush(self._services))

    def doctor(self) -> list[Finding]:
        """How this memory stands, line by line, with the next action: what `supabase-memory doctor` shows.

        The database is asked once, the embedder once, and over the Data API the project for the keys that sign its
        tokens. It costs the same on a hundred conversations as on a million. With a user's own token the database
        tells less, and a line says so.

        Returns:
            What was found; whatever fails is a finding, and nothing is raised for it.

        Example:
            ```python
            broken = [finding for finding in memory.doctor() if finding.state == "red"]
            ```
        """
        return self._services.run(doctor(self._services))

    async def adoctor(self) -> list[Finding]:
        """The async twin of `doctor`."""
        return await self._services.arun(doctor(self._services))

    @property
    def privacy(self) -> Privacy:
        """What people decide about all of a user's conversations, and what that changed: `memory.privacy`."""
        return Privacy(self._services)

    @property
    def work(self) -> Work:
        """What is due, running, waiting and dead: `memory.work`."""
        return Work(self._services)

    @property
    def rollout(self) -> Rollouts:
        """How agents are introduced to the memory, stage by stage, and how the contexts compare: `memory.rollout`."""
        return Rollouts(self._services)
