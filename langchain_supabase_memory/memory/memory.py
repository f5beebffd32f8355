# Written by tools/handles.py. Do not edit.
"""Operations on all conversations of a user, and on the memory itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Never, Self

from langchain_supabase_memory.memory.config import DEFAULT_CONFIG, QUOTES, MemoryConfig, Settings
from langchain_supabase_memory.memory.constructors import Constructors
from langchain_supabase_memory.memory.handle import load
from langchain_supabase_memory.memory.privacy import Privacy
from langchain_supabase_memory.memory.profile import Profile
from langchain_supabase_memory.memory.rollouts import Rollouts
from langchain_supabase_memory.memory.services import ME
from langchain_supabase_memory.memory.spaces import Spaces
from langchain_supabase_memory.memory.topics import Topics
from langchain_supabase_memory.memory.usage import DailyUsage
from langchain_supabase_memory.memory.work import Work
from langchain_supabase_memory.operations.recall.exact_search import LIMIT, Order
from langchain_supabase_memory.operations.recall.query import EXACT_BELOW, Filters, Fusion
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
    Signal,
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
    from langchain_supabase_memory.operations.advice import Advice
    from langchain_supabase_memory.operations.recall.ranges import TimeRange


class SupabaseMemory(Constructors):
    """A memory on Supabase, or on any Postgres. It opens connections at the first call, not when it is created.

    Create one with `from_url`, `from_client`, `from_conn_string` or `embedded`, share it in the whole process, and
    close it at the end. Methods for one conversation are on its handle, `memory.conversation("studio")`; methods for
    all of a user's conversations are here. Each method has an async twin with LangChain's prefix `a`: `recall` and
    `arecall`.
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
        """Create a memory over a transport.

        Args:
            transport: The transport that reaches the database.
            key: Must be empty; pass a URL and a key to `from_url`.
            user_id: The only user of this memory: no run can name another. Omit it if `for_user`, `for_token` or
                each run names the user.
            agent_id: The default agent.
            model: The model that writes summaries: a LangChain chat model, a runnable or a function, or a chat
                model's name, such as `"openai:gpt-5.5"`. By default `ExtractiveSummarizer` selects quotes. With
                `None` nothing is summarized, and a pack says what it leaves out.
            embeddings: The embedder for vector search: a LangChain embedder, its name, such as
                `"openai:text-embedding-3-small"`, or an `EmbeddingModel` with its own settings. Without one, or if
                it fails, recall uses keyword search.
            budget: The default budget of a context pack.
            retention: The default retention, by age or number of turns; everything is retained by default.
            redactor: Removes secrets and personal data before anything is stored: from messages, from what a person
                writes on a board or as a summary, and from the values of a `SupabaseStore` of this memory. Rules,
                such as `[*SECRETS, *PERSONAL_DATA]`, or a `Redactor`. Nothing is removed by default. Your message
                objects do not change, so the current turn and a graph's own state show the user's original text.
                Messages in the outbox are redacted when they are delivered. If a rule fails, nothing is stored:
                `append` raises, and histories, middleware and nodes put the messages into the outbox, as if the
                database were unreachable.
            config: All other settings.

        Raises:
            InvalidInputError: An id is not a usable string.
            ConfigurationError: An argument has the wrong type, or the key of a model or an embedder is missing.
            MissingDependencyError: A model or an embedder given by name needs a package that is not installed.
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
        """Create a memory over a project's Data API.

        Args:
            url: The project's URL, such as `https://abc.supabase.co`.
            key: The publishable key, for a memory `for_token`; or, on a server, the secret key.
            user_id: The only user of this memory: no run can name another. Without it, and with the secret key,
                which can access all users, `for_user`, `for_token` or each run names the user.
            agent_id: The default agent.
            retry: The retry policy when the server cannot be reached.
            rest_path: The path of the Data API below `url`; empty for a bare PostgREST.
            model: The model that writes summaries: a LangChain chat model, a runnable or a function, or a chat
                model's name, such as `"openai:gpt-5.5"`. By default `ExtractiveSummarizer` selects quotes. With
                `None` nothing is summarized, and a pack says what it leaves out.
            embeddings: The embedder for vector search: a LangChain embedder, its name, such as
                `"openai:text-embedding-3-small"`, or an `EmbeddingModel` with its own settings. Without one, or if
                it fails, recall uses keyword search.
            budget: The default budget of a context pack.
            retention: The default retention, by age or number of turns; everything is retained by default.
            redactor: Removes secrets and personal data before anything is stored: from messages, from what a person
                writes on a board or as a summary, and from the values of a `SupabaseStore` of this memory. Rules,
                such as `[*SECRETS, *PERSONAL_DATA]`, or a `Redactor`. Nothing is removed by default. Your message
                objects do not change, so the current turn and a graph's own state show the user's original text.
                Messages in the outbox are redacted when they are delivered. If a rule fails, nothing is stored:
                `append` raises, and histories, middleware and nodes put the messages into the outbox, as if the
                database were unreachable.
            config: All other settings.

        Raises:
            ConfigurationError: The URL or the key is not valid, or a setting has the wrong type.
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
        """Create a memory over your own `supabase` client, which is never closed.

        A sync client serves the sync methods and an async client the async ones; the other kind is created from the
        client's URL and key when it is needed, and so are both in a forked process.

        Args:
            client: The client.
            user_id: The only user of this memory: no run can name another. Without it, and with the secret key,
                which can access all users, `for_user`, `for_token` or each run names the user.
            agent_id: The default agent.
            retry: The retry policy when the server cannot be reached.
            model: The model that writes summaries: a LangChain chat model, a runnable or a function, or a chat
                model's name, such as `"openai:gpt-5.5"`. By default `ExtractiveSummarizer` selects quotes. With
                `None` nothing is summarized, and a pack says what it leaves out.
            embeddings: The embedder for vector search: a LangChain embedder, its name, such as
                `"openai:text-embedding-3-small"`, or an `EmbeddingModel` with its own settings. Without one, or if
                it fails, recall uses keyword search.
            budget: The default budget of a context pack.
            retention: The default retention, by age or number of turns; everything is retained by default.
            redactor: Removes secrets and personal data before anything is stored: from messages, from what a person
                writes on a board or as a summary, and from the values of a `SupabaseStore` of this memory. Rules,
                such as `[*SECRETS, *PERSONAL_DATA]`, or a `Redactor`. Nothing is removed by default. Your message
                objects do not change, so the current turn and a graph's own state show the user's original text.
                Messages in the outbox are redacted when they are delivered. If a rule fails, nothing is stored:
                `append` raises, and histories, middleware and nodes put the messages into the outbox, as if the
                database were unreachable.
            config: All other settings.

        Raises:
            ConfigurationError: The client is not valid, or a setting has the wrong type.
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
        """Create a memory over a direct connection to Postgres; any of Supabase's poolers works too.

        Args:
            conn_string: A connection string such as `postgresql://postgres:…@db.abc.supabase.co:5432/postgres`.
            user_id: The only user of this memory: no run can name another. Without it, `for_user`, `for_token` or
                each run names the user.
            agent_id: The default agent.
            retry: The retry policy when the server cannot be reached.
            model: The model that writes summaries: a LangChain chat model, a runnable or a function, or a chat
                model's name, such as `"openai:gpt-5.5"`. By default `ExtractiveSummarizer` selects quotes. With
                `None` nothing is summarized, and a pack says what it leaves out.
            embeddings: The embedder for vector search: a LangChain embedder, its name, such as
                `"openai:text-embedding-3-small"`, or an `EmbeddingModel` with its own settings. Without one, or if
                it fails, recall uses keyword search.
            budget: The default budget of a context pack.
            retention: The default retention, by age or number of turns; everything is retained by default.
            redactor: Removes secrets and personal data before anything is stored: from messages, from what a person
                writes on a board or as a summary, and from the values of a `SupabaseStore` of this memory. Rules,
                such as `[*SECRETS, *PERSONAL_DATA]`, or a `Redactor`. Nothing is removed by default. Your message
                objects do not change, so the current turn and a graph's own state show the user's original text.
                Messages in the outbox are redacted when they are delivered. If a rule fails, nothing is stored:
                `append` raises, and histories, middleware and nodes put the messages into the outbox, as if the
                database were unreachable.
            config: All other settings.

        Raises:
            MissingDependencyError: The extra `postgres` is not installed.
            ConfigurationError: The connection string cannot be parsed, or a setting has the wrong type.
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
        """Create a memory on a private Postgres in a folder, without account or key; it starts at the first call.

        Args:
            path: The folder of the database; created if missing. The user's data folder by default.
            user_id: The only user of this memory: no run can name another. By default `for_user` or a run may name
                the user, and calls without a user belong to the user `"me"`. With `None` each must name one.
            agent_id: The default agent.
            model: The model that writes summaries: a LangChain chat model, a runnable or a function, or a chat
                model's name, such as `"openai:gpt-5.5"`. By default `ExtractiveSummarizer` selects quotes. With
                `None` nothing is summarized, and a pack says what it leaves out.
            embeddings: The embedder for vector search: a LangChain embedder, its name, such as
                `"openai:text-embedding-3-small"`, or an `EmbeddingModel` with its own settings. Without one, or if
                it fails, recall uses keyword search.
            budget: The default budget of a context pack.
            retention: The default retention, by age or number of turns; everything is retained by default.
            redactor: Removes secrets and personal data before anything is stored: from messages, from what a person
                writes on a board or as a summary, and from the values of a `SupabaseStore` of this memory. Rules,
                such as `[*SECRETS, *PERSONAL_DATA]`, or a `Redactor`. Nothing is removed by default. Your message
                objects do not change, so the current turn and a graph's own state show the user's original text.
                Messages in the outbox are redacted when they are delivered. If a rule fails, nothing is stored:
                `append` raises, and histories, middleware and nodes put the messages into the outbox, as if the
                database were unreachable.
            config: All other settings.

        Raises:
            MissingDependencyError: The extra `embedded` is not installed.
            ConfigurationError: The path is not valid, or a setting has the wrong type.
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
        signals: Iterable[Signal | str] | None = None,
        limit: int = 50,
        before: str | None = None,
        after: str | None = None,
    ) -> ConversationPage:
        """Return a page of a user's conversations, most recently changed first, each with its title and last message.

        Args:
            agent_id: Only this agent's conversations; `None` means all agents.
            state: Only `active` or only `archived` conversations; `None` means both.
            since: Only conversations that changed at or after this time, with a time zone.
            until: Only conversations that changed before this time, with a time zone.
            signals: Only conversations with one of these signals, such as `["complaint"]`; `None` means all.
            limit: The maximum number of conversations on a page, 1 to 1,000.
            before: The `before` of a page, to get the page of newer conversations.
            after: The `after` of a page, to get the page of older conversations.

        Returns:
            The page. A conversation that changes meanwhile moves to the front; paging with `after` shows none twice.

        Raises:
            InvalidInputError: An argument is not one of its choices, a time is naive, or there is no owner.
            SupabaseMemoryError: The database refused or could not be reached.
        """
        from langchain_supabase_memory.operations.listing import conversations

        return self._services.run(
            conversations(
                self._services.owner(),
                agent_id=agent_id,
                state=state,
                since=since,
                until=until,
                signals=signals,
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
        signals: Iterable[Signal | str] | None = None,
        limit: int = 50,
        before: str | None = None,
        after: str | None = None,
    ) -> ConversationPage:
        """The async twin of `conversations`."""
        await load("langchain_supabase_memory.operations.listing")
        from langchain_supabase_memory.operations.listing import conversations

        return await self._services.arun(
            conversations(
                self._services.owner(),
                agent_id=agent_id,
                state=state,
                since=since,
                until=until,
                signals=signals,
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
        """Recall the chunks that fit a question, by vector and keyword search, in one round trip plus model calls.

        Args:
            agent_id: Only with this agent; by default with all.
            query: The question, in the user's words, of which 10,000 characters count; a blank one lists what passes
                the filters. Or up to 8 questions: the ranking serves each, the best of each first.
            limit: The maximum number of chunks; 10 if neither this nor `characters` is given, and never more than
                1,000.
            characters: The maximum number of characters returned.
            time_range: Only chunks of messages in this range.
            time_zone: The asking person's time zone, as a name or a `tzinfo`; the memory's by default, else UTC.
            types: Only chunks of these types.
            min_importance: Only chunks with at least this importance, 0 to 1.
            min_similarity: Only chunks with at least this cosine similarity to the question; without vectors, with
                at least this keyword score relative to the best one.
            neighbors: How many units before and after each chunk to return with it.
            episode: Whether to return the whole episode of each chunk.
            fusion: How keyword and vector rankings are fused.
            weights: The weight of each part of the score.
            exact_below: In scopes with more chunks than this, not every chunk is compared.

        Returns:
            The chunks, the best first, and how they were found.

        Raises:
            InvalidInputError: An argument is not one of its choices.
            MigrationConflictError: The stored vectors come from another model.
            SupabaseMemoryError: The database refused or could not be reached.
        """
        from langchain_supabase_memory.operations.recall.search import recall

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
        await load("langchain_supabase_memory.operations.recall.search")
        from langchain_supabase_memory.operations.recall.search import recall

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
        """Find the messages that contain a phrase, a number, a file name or an id exactly, in one round trip.

        It searches the text of messages, and the names and arguments of their tool calls, but not what the memory
        itself returned to a tool. One call scans at most 2,000 messages; in a search over several conversations, each
        conversation counts as ten. Conversations are searched in the order of their creation, from the newest or the
        oldest on. Nothing needs to be indexed.

        Args:
            agent_id: Only with this agent; by default with all.
            texts: The text to find, 1 to 1,000 characters; or up to ten texts that a message must all contain.
            order: From the `newest` message on, or from the `oldest`.
            match_case: Whether the search is case-sensitive. If not, ß equals ss, and İ equals i.
            since: Only messages from this time on, with a time zone.
            until: Only messages before this time, with a time zone.
            around: How many messages before and after each match to return, up to 10.
            limit: The maximum number of messages that this call returns, 1 to 100.
            after: The `after` of a page, to get the next page.

        Returns:
            The messages in the requested order, and where to continue: `page.after` is `None` once everything was
            searched.

        Raises:
            InvalidInputError: A text is blank or too long, a time is naive, or an argument is not one of its choices.
            SupabaseMemoryError: The database refused or could not be reached.
        """
        from langchain_supabase_memory.operations.recall.exact_search import find

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
        await load("langchain_supabase_memory.operations.recall.exact_search")
        from langchain_supabase_memory.operations.recall.exact_search import find

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
        """Find the user's conversations that a question is about, by their newest summaries, in one round trip.

        Args:
            agent_id: Only with this agent; by default with all.
            query: The question, in the user's words; a blank one lists the newest summaries.
            limit: The maximum number of conversations.
            time_range: Only summaries stored in this range. Summaries older than the retention's `max_summary_age`, 90
                days by default, are never found.
            time_zone: The asking person's time zone, as a name or a `tzinfo`; the memory's by default.
            min_similarity: Only summaries with at least this cosine similarity to the question; without vectors, with
                at least this keyword score relative to the best one.

        Returns:
            The summaries, the best first. Keyword search finds those without a vector (`index_summaries` creates it).

        Raises:
            InvalidInputError: There is no owner, or an argument is not one of its choices.
            MigrationConflictError: The embedder's dimensions have changed.
            SupabaseMemoryError: The database refused or could not be reached.
        """
        from langchain_supabase_memory.operations.recall.summaries import recall_summaries

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
        await load("langchain_supabase_memory.operations.recall.summaries")
        from langchain_supabase_memory.operations.recall.summaries import recall_summaries

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
        """Delete all data of a user: conversations with all agents, everything derived from them, and store items.

        Args:
            agent_id: Only the conversations with this agent, with everything derived from them; `None` means all, and
                the items of the store.
            dry_run: Only report what would be deleted.

        Returns:
            What was deleted.

        Raises:
            InvalidInputError: There is no owner.
        """
        from langchain_supabase_memory.memory.messages import forget_user

        return self._services.run(
            forget_user(self._services, self._services.owner(), agent_id=agent_id, dry_run=dry_run)
        )

    async def aforget_user(self, *, agent_id: str | None = None, dry_run: bool = False) -> Receipt:
        """The async twin of `forget_user`."""
        await load("langchain_supabase_memory.memory.messages")
        from langchain_supabase_memory.memory.messages import forget_user

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
        """Delete what has expired in all conversations that the memory may access.

        That is messages beyond the retention, expired chunks, and private conversations that are a day old.
        Call it from a scheduled task.

        Args:
            agent_id: Only conversations with this agent; `None` means all agents.
            thread_id: Only this thread; `None` means all threads.
            retention: The retention; the memory's by default. Without one, only expired chunks and private
                conversations are deleted.
            dry_run: Only report what would be deleted: each conversation is processed, counted and rolled back in turn.

        Returns:
            What was deleted: the number of conversations that lost messages, and of messages, summaries and chunks.
        """
        from langchain_supabase_memory.memory.messages import forget_expired

        return self._services.run(
            forget_expired(
                self._services,
                self._services.served_user_id,
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
        await load("langchain_supabase_memory.memory.messages")
        from langchain_supabase_memory.memory.messages import forget_expired

        return await self._services.arun(
            forget_expired(
                self._services,
                self._services.served_user_id,
                agent_id=agent_id,
                thread_id=thread_id,
                retention=retention or self._services.settings.retention,
                dry_run=dry_run,
            )
        )

    def flush(self) -> int:
        """Finish what was put off: work behind answers, and messages that failed writes left in the outbox.

        Before a process pauses or ends, call it to have nothing due. It waits a minute at most for the work.

        Returns:
            How many messages are still in the outbox, which is 0 unless an error is raised.

        Raises:
            SupabaseMemoryError: The database still refuses; everything stays in the outbox.
        """
        from langchain_supabase_memory.memory.outbox_delivery import flush

        return self._services.run(flush(self._services))

    async def aflush(self) -> int:
        """The async twin of `flush`."""
        await load("langchain_supabase_memory.memory.outbox_delivery")
        from langchain_supabase_memory.memory.outbox_delivery import flush

        return await self._services.arun(flush(self._services))

    def doctor(self) -> list[Finding]:
        """Check the whole setup and return findings with next actions: the report of `supabase-memory doctor`.

        It calls the database once and the embedder once. Over the Data API it also fetches the project's public
        signing keys. The cost does not depend on the number of conversations. With a user's own token the database
        reports less, and a finding says so.

        Returns:
            The findings. A failed check is a finding, not an exception.

        Example:
            ```python
            broken = [finding for finding in memory.doctor() if finding.state == "red"]
            ```
        """
        from langchain_supabase_memory.memory.doctor.checks import doctor

        return self._services.run(doctor(self._services))

    async def adoctor(self) -> list[Finding]:
        """The async twin of `doctor`."""
        await load("langchain_supabase_memory.memory.doctor.checks")
        from langchain_supabase_memory.memory.doctor.checks import doctor

        return await self._services.arun(doctor(self._services))

    def advice(self, *, agent_id: str | None = None) -> list[Advice]:
        """Say which settings would have saved tokens or found more, by the last 30 days and the newest 200 packs.

        Each finding has its numbers. A smaller budget is advised only where the replay of the packs shows that no word
        of an answer would have been left out of its prompt. Nothing is changed, and no model is asked.

        Args:
            agent_id: Only conversations with this agent.

        Returns:
            The findings, in the order of `Rule`; none if nothing is to be changed, or if too little is known.
        """
        from langchain_supabase_memory.operations.advice import advice

        return self._services.run(advice(self._services.owner(), agent_id=agent_id))

    async def aadvice(self, *, agent_id: str | None = None) -> list[Advice]:
        """The async twin of `advice`."""
        await load("langchain_supabase_memory.operations.advice")
        from langchain_supabase_memory.operations.advice import advice

        return await self._services.arun(advice(self._services.owner(), agent_id=agent_id))

    @property
    def privacy(self) -> Privacy:
        """A person's overrides for all of a user's conversations, and their history: `memory.privacy`."""
        return Privacy(self._services)

    @property
    def work(self) -> Work:
        """Due, running, waiting and dead work: `memory.work`."""
        return Work(self._services)

    @property
    def rollout(self) -> Rollouts:
        """The rollout of the memory to agents in stages, and comparisons of old and new context: `memory.rollout`."""
        return Rollouts(self._services)

    @property
    def spaces(self) -> Spaces:
        """The spaces that a user is in: `memory.spaces`. `memory.space(space_id)` is the handle of one."""
        return Spaces(self._services)

    @property
    def profile(self) -> Profile:
        """What is known of a user, from all of their conversations and from themself: `memory.profile`."""
        return Profile(self._services)

    @property
    def topics(self) -> Topics:
        """What a user's conversations are about, found without a model: `memory.topics`."""
        return Topics(self._services)

    @property
    def usage(self) -> DailyUsage:
        """What conversations came to on each day, in numbers alone: `memory.usage`."""
        return DailyUsage(self._services)
