# Written by tools/handles.py. Do not edit.
"""What is done with one conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_supabase_memory.memory.context_defaults import context, coverage
from langchain_supabase_memory.memory.conversation_board import ConversationBoard
from langchain_supabase_memory.memory.conversation_chunks import ConversationChunks
from langchain_supabase_memory.memory.conversation_privacy import ConversationPrivacy
from langchain_supabase_memory.memory.conversation_summaries import ConversationSummaries
from langchain_supabase_memory.memory.conversation_turns import ConversationTurns
from langchain_supabase_memory.memory.conversation_work import ConversationWork
from langchain_supabase_memory.memory.handle import ConversationHandle
from langchain_supabase_memory.memory.messages import add_turn, append, forget, forget_message
from langchain_supabase_memory.memory.superseded_messages import SupersededMessages
from langchain_supabase_memory.operations.controls import opt_in, opt_out
from langchain_supabase_memory.operations.conversations import Column, count, read
from langchain_supabase_memory.operations.listing import info, update
from langchain_supabase_memory.operations.manifests.listing import manifests
from langchain_supabase_memory.operations.recall.exact_search import LIMIT, Order, find
from langchain_supabase_memory.operations.recall.indexing import index_messages
from langchain_supabase_memory.operations.recall.query import EXACT_BELOW, Filters, Fusion
from langchain_supabase_memory.operations.recall.search import recall
from langchain_supabase_memory.operations.turns import resolve
from langchain_supabase_memory.settings import (
    DEFAULT_WEIGHTS,
    INHERITED,
    ChunkPolicy,
    ContextBudget,
    Inherited,
    RecallWeights,
    Retention,
    SummaryPolicy,
)
from langchain_supabase_memory.values import (
    AppendResult,
    ConversationInfo,
    Coverage,
    FoundPage,
    IndexResult,
    Recall,
    RecallScope,
    Receipt,
    Reference,
    Scope,
    StoredMessage,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from datetime import datetime, tzinfo

    from langchain_core.messages import BaseMessage

    from langchain_supabase_memory.adapters.summarizer import Summarizer
    from langchain_supabase_memory.context.pack import ContextPack
    from langchain_supabase_memory.language.chunks.kinds import Kind
    from langchain_supabase_memory.language.messages.codec import MessagesLike
    from langchain_supabase_memory.operations.manifests.manifest import ManifestPage
    from langchain_supabase_memory.operations.recall.ranges import TimeRange


class Conversation(ConversationHandle):
    """One conversation of a memory: `memory.conversation("studio")`. It holds ids alone, and costs nothing.

    Each verb has an async twin with LangChain's prefix `a`: `append` and `aappend`. Where a verb takes `actor`, that is
    the name of the person who does it: it is noted with the change and its time.
    """

    def append(
        self,
        messages: MessagesLike,
        *,
        metadata: Mapping[str, object] | None = None,
        created_at: datetime | Sequence[datetime | None] | None = None,
        retention: Retention | None = None,
        idempotency_key: str | None = None,
        pack: ContextPack | None = None,
    ) -> AppendResult:
        """Store messages: once each, in order, all or none, in one round trip.

        What nobody said (a human or system message that carries LangChain's `lc_source`, such as a summary; anything
        that this package put into a prompt) is not stored. Nor is what has expired or was forgotten: a retry does not
        bring it back. What of a message is larger than the database takes (4 MiB by default) is left out, and named
        where it was: media first, then what a tool keeps for the application, then the middle of the longest text.

        Args:
            messages: What LangChain takes for messages: a list of messages, texts (the user's), pairs such as
                `("assistant", "Hello")` or dictionaries with `role` and `content`; or one of them. A message without
                an id gets one, on the object itself, so that a retry is a retry. Of several with one id the last is
                stored, at the place of the first. A message that is stored already with other content is replaced.
            metadata: What to store beside each of them: a JSON object.
            created_at: When they were said, with a time zone: one time for all, or one for each. The database's clock
                by default.
            retention: What is kept; what is beyond it is removed in the same transaction. The memory's by default.
            idempotency_key: What names this call, such as a request's id: a repeat of it by another process, with
                messages that have no ids, stores nothing twice. 1 to 512 bytes.
            pack: What these messages answer: what stood in it is kept with them, in numbers, for `manifests`. As the
                memory's `manifests` says; nothing is refused for it.

        Returns:
            The number of each message, how many were new, and which were replaced because their content differed.

        Raises:
            InvalidInputError: Something passed is no message, a time is naive, or the pack is of another conversation;
                nothing was stored.
            TooLargeError: All messages together are more than one call takes; nothing was stored.
            ConfigurationError: A rule of the redactor failed; nothing was stored.
            SupabaseMemoryError: The database refused or could not be reached.
        """
        return self._services.run(
            append(
                self._services,
                self._key,
                messages,
                metadata=metadata,
                created_at=created_at,
                retention=retention or self._services.settings.retention,
                idempotency_key=idempotency_key,
                pack=pack,
            )
        )

    async def aappend(
        self,
        messages: MessagesLike,
        *,
        metadata: Mapping[str, object] | None = None,
        created_at: datetime | Sequence[datetime | None] | None = None,
        retention: Retention | None = None,
        idempotency_key: str | None = None,
        pack: ContextPack | None = None,
    ) -> AppendResult:
        """The async twin of `append`."""
        return await self._services.arun(
            append(
                self._services,
                self._key,
                messages,
                metadata=metadata,
                created_at=created_at,
                retention=retention or self._services.settings.retention,
                idempotency_key=idempotency_key,
                pack=pack,
            )
        )

    def add_turn(
        self,
        query: str,
        response: str,
        *,
        retention: Retention | None = None,
        idempotency_key: str | None = None,
        pack: ContextPack | None = None,
    ) -> AppendResult:
        """Store a complete turn, a user's query and its answer, in one round trip.

        Args:
            query: What the user said.
            response: The final answer.
            retention: What is kept; the memory's by default.
            idempotency_key: What names this call, such as a request's id: the same turn is stored once however often
                that is tried.
            pack: What the answer was made from, as for `append`.

        Returns:
            As for `append`.

        Raises:
            InvalidInputError: One of them is no text, blank, or longer than a million characters.
            SupabaseMemoryError: The database refused or could not be reached.
        """
        return self._services.run(
            add_turn(
                self._services,
                self._key,
                query,
                response,
                retention=retention or self._services.settings.retention,
                idempotency_key=idempotency_key,
                pack=pack,
            )
        )

    async def aadd_turn(
        self,
        query: str,
        response: str,
        *,
        retention: Retention | None = None,
        idempotency_key: str | None = None,
        pack: ContextPack | None = None,
    ) -> AppendResult:
        """The async twin of `add_turn`."""
        return await self._services.arun(
            add_turn(
                self._services,
                self._key,
                query,
                response,
                retention=retention or self._services.settings.retention,
                idempotency_key=idempotency_key,
                pack=pack,
            )
        )

    def read(
        self,
        *,
        first: int | None = None,
        last: int | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        from_sequence: int | None = None,
        to_sequence: int | None = None,
        columns: Sequence[Column] | None = None,
        display: bool = False,
        retention: Retention | None = None,
    ) -> list[StoredMessage]:
        """Read messages in order: all of them, or those within every bound that is given.

        Args:
            first: Only the oldest so many.
            last: Only the newest so many.
            since: Only those said at or after this time, with a time zone.
            until: Only those said before this time, with a time zone.
            from_sequence: Only those with this number or a higher one.
            to_sequence: Only those with this number or a lower one; -1 is before the first.
            columns: What to read of each; `sequence` always comes. Without `payload` there is no `message`. By default
                `payload`, and with `display` the columns of a chat page: `message_id`, `role`, `text`, `images`,
                `created_at`, `updated_at` and `metadata`.
            display: Only what a chat page shows: what the user and the assistant said, with media as references; no
                tool's call or result, no system message.
            retention: What is kept; what is beyond it is not shown. The memory's by default.

        Returns:
            The messages, oldest first, however many there are: long ranges are read by pages. One that cannot be read
            has an empty message and says why in `unreadable`.

        Raises:
            InvalidInputError: A bound is negative, both ends are asked for, a time is naive, or a column is unknown.
            SupabaseMemoryError: The database refused or could not be reached.
        """
        return self._services.run(
            read(
                self._key,
                first=first,
                last=last,
                since=since,
                until=until,
                from_sequence=from_sequence,
                to_sequence=to_sequence,
                columns=columns,
                display=display,
                retention=retention or self._services.settings.retention,
            )
        )

    async def aread(
        self,
        *,
        first: int | None = None,
        last: int | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        from_sequence: int | None = None,
        to_sequence: int | None = None,
        columns: Sequence[Column] | None = None,
        display: bool = False,
        retention: Retention | None = None,
    ) -> list[StoredMessage]:
        """The async twin of `read`."""
        return await self._services.arun(
            read(
                self._key,
                first=first,
                last=last,
                since=since,
                until=until,
                from_sequence=from_sequence,
                to_sequence=to_sequence,
                columns=columns,
                display=display,
                retention=retention or self._services.settings.retention,
            )
        )

    def find(
        self,
        texts: str | Sequence[str],
        *,
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
                Scope.of(self._key),
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
                Scope.of(self._key),
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

    def count(self) -> int:
        """How many messages the conversation holds; 0 if it does not exist. Its cost does not grow with the history."""
        return self._services.run(count(self._key, retention=self._services.settings.retention))

    async def acount(self) -> int:
        """The async twin of `count`."""
        return await self._services.arun(count(self._key, retention=self._services.settings.retention))

    def info(self) -> ConversationInfo | None:
        """The conversation as it is listed: its title, its metadata, its last message; `None` if it does not exist."""
        return self._services.run(info(self._key, retention=self._services.settings.retention))

    async def ainfo(self) -> ConversationInfo | None:
        """The async twin of `info`."""
        return await self._services.arun(info(self._key, retention=self._services.settings.retention))

    def update(self, *, title: str | None = None, metadata: Mapping[str, object] | None = None) -> ConversationInfo:
        """Set the conversation's title or metadata. Lists keep their order.

        Args:
            title: What it is called from now on, in up to 200 characters and one line. A blank one takes that back:
                then the writer's title is shown, or the first words of the first question.
            metadata: What the application keeps beside it from now on: a JSON object of up to 16 KiB, in place of what
                there was.

        Returns:
            The conversation as it is listed from now on.

        Raises:
            InvalidInputError: There is nothing to set, the title is too long or mentions a topic that is not to be
                remembered, or the metadata is no object.
            TooLargeError: The metadata is too large.
            NotFoundError: There is no such conversation.
            SupabaseMemoryError: The database refused or could not be reached.
        """
        return self._services.run(
            update(
                self._key,
                title=title,
                metadata=metadata,
                redactor=self._services.redactor,
                retention=self._services.settings.retention,
            )
        )

    async def aupdate(
        self, *, title: str | None = None, metadata: Mapping[str, object] | None = None
    ) -> ConversationInfo:
        """The async twin of `update`."""
        return await self._services.arun(
            update(
                self._key,
                title=title,
                metadata=metadata,
                redactor=self._services.redactor,
                retention=self._services.settings.retention,
            )
        )

    def forget(self, *, dry_run: bool = False) -> Receipt:
        """Delete the conversation with everything derived from it.

        Args:
            dry_run: Only say what would go.

        Returns:
            What went.
        """
        return self._services.run(forget(self._services, self._key, dry_run=dry_run))

    async def aforget(self, *, dry_run: bool = False) -> Receipt:
        """The async twin of `forget`."""
        return await self._services.arun(forget(self._services, self._key, dry_run=dry_run))

    def forget_message(self, message_id: str, *, dry_run: bool = False) -> Receipt:
        """Delete one message, and the summaries that were made from it. The others keep their numbers.

        A message of this id is not stored again in the conversation: a graph that still holds it does not bring it
        back.

        Args:
            message_id: The LangChain message's id.
            dry_run: Only say what would go.

        Returns:
            What went; no message, if there was none of this id.
        """
        return self._services.run(forget_message(self._services, self._key, message_id, dry_run=dry_run))

    async def aforget_message(self, message_id: str, *, dry_run: bool = False) -> Receipt:
        """The async twin of `forget_message`."""
        return await self._services.arun(forget_message(self._services, self._key, message_id, dry_run=dry_run))

    def resolve(self, text: str) -> Reference | None:
        """The turn that a user's words point at, such as "the second one" or "yung una".

        Deterministic and without a model. The database is asked only if there are such words.

        Args:
            text: What the user says; it is not part of a turn yet.

        Returns:
            The turn, the words and the rule; `None` if the words point at none, or at one that does not exist. Turns
            are counted as they are kept now: when the oldest is removed, "the first one" is the one after it.

        Raises:
            InvalidInputError: `text` is none.
        """
        return self._services.run(resolve(self._key, text, retention=self._services.settings.retention))

    async def aresolve(self, text: str) -> Reference | None:
        """The async twin of `resolve`."""
        return await self._services.arun(resolve(self._key, text, retention=self._services.settings.retention))

    def context(
        self,
        current: Sequence[BaseMessage] | BaseMessage | str | None = None,
        *,
        budget: ContextBudget | None = None,
        policy: SummaryPolicy | None = None,
        model: Summarizer | Inherited | None = INHERITED,
        retention: Retention | None = None,
        query: str | Sequence[str] | None = None,
        recall: RecallScope | Inherited | None = INHERITED,
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
    ) -> ContextPack:
        """What the next prompt receives, within a budget: a summary, recent messages verbatim, what a query recalls.

        One round trip, beside the embedding of the query. Where the policies say `inline`, a summary is made first if
        one is due and there is a model, and what the pack would otherwise miss is indexed first.

        Args:
            current: The user's message that is to be answered (or the whole turn under way). It is left out of the
                history, is never cut, and comes last in `ContextPack.prompt`. A message without an id gets one, on the
                object itself, so that it is known again when it has been stored.
            budget: The most that the pack may hold; the memory's by default.
            policy: When and how a summary is made; the memory's by default.
            model: The summary model; the memory's by default. With `None` no summary is made.
            retention: What is kept; the memory's by default.
            query: What to recall, as for `recall`; the user's message by default. What is found stands beside the
                recent messages, within the budget's share `recalled`.
            recall: Where to recall from: this conversation, all with this agent, or all of this user; `None`: nothing.
                The memory's by default, or this conversation if a query is given.
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

        Raises:
            InvalidInputError: Something passed is no message, or an argument is none of its choices.
            MigrationConflictError: What is stored was embedded by another model, and a `query` was given.
            SupabaseMemoryError: The database refused or could not be reached.
        """
        return self._services.run(
            context(
                self._services,
                self._key,
                current,
                budget=budget,
                policy=policy,
                model=model,
                retention=retention or self._services.settings.retention,
                query=query,
                recall=recall,
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
            )
        )

    async def acontext(
        self,
        current: Sequence[BaseMessage] | BaseMessage | str | None = None,
        *,
        budget: ContextBudget | None = None,
        policy: SummaryPolicy | None = None,
        model: Summarizer | Inherited | None = INHERITED,
        retention: Retention | None = None,
        query: str | Sequence[str] | None = None,
        recall: RecallScope | Inherited | None = INHERITED,
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
    ) -> ContextPack:
        """The async twin of `context`."""
        return await self._services.arun(
            context(
                self._services,
                self._key,
                current,
                budget=budget,
                policy=policy,
                model=model,
                retention=retention or self._services.settings.retention,
                query=query,
                recall=recall,
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
            )
        )

    def manifests(
        self,
        *,
        limit: int = 20,
        after: str | None = None,
        from_sequence: int | None = None,
        to_sequence: int | None = None,
    ) -> ManifestPage:
        """What stood in the prompts of earlier answers, and why, in numbers: a page, the newest first.

        Middleware, nodes and histories keep it with each answer, `append` where its `pack` is given; of how many and
        for how long, the memory's `manifests` says. `Manifest.since` says what differs between two. Where words that
        one names have changed or gone since, it says so.

        Args:
            limit: The most of a page, 1 to 200.
            after: What a page gives as `after`: the page after it, of older ones.
            from_sequence: Only of answers from this number on; both bounds may be one answer's.
            to_sequence: Only of answers up to this number.

        Raises:
            InvalidInputError: An argument is none of its choices.
            SupabaseMemoryError: The database refused or could not be reached.
        """
        return self._services.run(
            manifests(
                self._key,
                limit=limit,
                after=after,
                from_sequence=from_sequence,
                to_sequence=to_sequence,
                retention=self._services.settings.retention,
            )
        )

    async def amanifests(
        self,
        *,
        limit: int = 20,
        after: str | None = None,
        from_sequence: int | None = None,
        to_sequence: int | None = None,
    ) -> ManifestPage:
        """The async twin of `manifests`."""
        return await self._services.arun(
            manifests(
                self._key,
                limit=limit,
                after=after,
                from_sequence=from_sequence,
                to_sequence=to_sequence,
                retention=self._services.settings.retention,
            )
        )

    def coverage(self, *, budget: ContextBudget | None = None) -> Coverage:
        """Where every message is: verbatim in the next pack, in a segment, omitted and why, or forgotten.

        The pack is one that recalls nothing: beside what is recalled less is verbatim, and more is told by segments.
        It reads every message's number, and nothing of its content; it is meant for people and tests, not for each
        turn.

        Args:
            budget: The budget of the pack that is meant; the memory's by default.
        """
        return self._services.run(coverage(self._services, self._key, budget=budget))

    async def acoverage(self, *, budget: ContextBudget | None = None) -> Coverage:
        """The async twin of `coverage`."""
        return await self._services.arun(coverage(self._services, self._key, budget=budget))

    def recall(
        self,
        query: str | Sequence[str],
        *,
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
                Scope.of(self._key),
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
                Scope.of(self._key),
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

    def index(self, *, chunking: ChunkPolicy | None = None) -> IndexResult:
        """Index what is not indexed yet, batch by batch; the same messages never make a second chunk.

        What was said is found by its words at once. Vectors are for an embedder to give: what it does not give,
        because there is none or because it fails, whoever indexes next with an embedder fills in.

        Args:
            chunking: How; the memory's by default.

        Returns:
            What was done. An embedder that failed is no error: it costs the vectors, and is asked again later.

        Raises:
            MigrationConflictError: What is stored was embedded by another model.
            SupabaseMemoryError: The database refused or could not be reached.
        """
        return self._services.run(
            index_messages(
                self._key,
                chunking=self._services.chunking(chunking),
                embedder=self._services.embedder_name,
                respect_backoff=False,
            )
        )

    async def aindex(self, *, chunking: ChunkPolicy | None = None) -> IndexResult:
        """The async twin of `index`."""
        return await self._services.arun(
            index_messages(
                self._key,
                chunking=self._services.chunking(chunking),
                embedder=self._services.embedder_name,
                respect_backoff=False,
            )
        )

    def opt_out(self, topic: str | None = None, *, actor: str) -> bool:
        """Do not remember a conversation, or a topic in it or in all of a user's conversations, also those to come.

        Of a conversation the messages stay, for the chat needs them; all that is derived from it goes in the same
        transaction, and nothing new is made: no chunk, no summary, no board. What a person or the application wrote,
        pinned, rated or deleted on its board stays until they delete it; a segment of the summary that one edited
        stands for messages, and goes. What had moved to long-term memory goes with the next `forget_source`. The
        conversation need not have begun. For a minute `opt_in` undoes it; later it makes the rest anew.

        What mentions a topic is not indexed, nor written on a board, nor left in a summary; what is there already
        goes. A topic is one word or several that stand next to one another. Case, accents and punctuation do not
        matter, nor do endings in English and in the conversation's language ("divorce" is "divorced" too, but "health"
        is not "healthy", nor "hospital": name each). In scripts that set no spaces, and in Korean, its characters are
        looked for. The messages stay. A writer is told to leave the topic out; of what it writes all the same, the
        sentences that mention the topic are taken out, and what says it in other words is left to the writer.

        Args:
            topic: The topic, up to 200 characters; `None` for a conversation itself.
            actor: Who says so; it is noted with the time.

        Returns:
            Whether that is new.

        Raises:
            InvalidInputError: The topic has no letters, or neither a topic nor a conversation is named.
        """
        return self._services.run(opt_out(Scope.of(self._key), topic, actor=actor))

    async def aopt_out(self, topic: str | None = None, *, actor: str) -> bool:
        """The async twin of `opt_out`."""
        return await self._services.arun(opt_out(Scope.of(self._key), topic, actor=actor))

    def opt_in(self, topic: str | None = None, *, actor: str) -> bool:
        """Remember again what `opt_out` with the same arguments had named.

        Within a minute of `opt_out` it is undone: summaries, the board, ratings and the title are as they were, and
        chunks are indexed again. What was written in that minute stays. Where messages changed or went in it, and
        after it, a conversation is due again from its beginning; of a topic, what was not indexed is indexed again,
        and summaries and boards stay as they are until they are regenerated.

        Args:
            topic: The topic; `None` for a conversation itself.
            actor: Who says so; it is noted with the time.

        Returns:
            Whether it had not been remembered.
        """
        return self._services.run(opt_in(Scope.of(self._key), topic, actor=actor))

    async def aopt_in(self, topic: str | None = None, *, actor: str) -> bool:
        """The async twin of `opt_in`."""
        return await self._services.arun(opt_in(Scope.of(self._key), topic, actor=actor))

    @property
    def board(self) -> ConversationBoard:
        """A conversation's board: facts, entities, topics, action items and questions, with a summary."""
        return ConversationBoard(self._services, self._key)

    @property
    def summaries(self) -> ConversationSummaries:
        """A conversation's summaries: the segments of the rolling one, and the complete one."""
        return ConversationSummaries(self._services, self._key)

    @property
    def turns(self) -> ConversationTurns:
        """A conversation's complete turns: what the user said and the final answer."""
        return ConversationTurns(self._services, self._key)

    @property
    def chunks(self) -> ConversationChunks:
        """The slices of a conversation that recall finds."""
        return ConversationChunks(self._services, self._key)

    @property
    def superseded(self) -> SupersededMessages:
        """The messages that a graph has left, because it was forked or they were removed from its state."""
        return SupersededMessages(self._services, self._key)

    @property
    def privacy(self) -> ConversationPrivacy:
        """What people decided about a conversation: opt-outs, ratings and edits."""
        return ConversationPrivacy(self._services, self._key)

    @property
    def work(self) -> ConversationWork:
        """What workers have to do for a conversation."""
        return ConversationWork(self._services, self._key)
