# Written by tools/handles.py. Do not edit.
"""Operations on one conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_supabase_memory.memory.conversation_board import ConversationBoard
from langchain_supabase_memory.memory.conversation_chunks import ConversationChunks
from langchain_supabase_memory.memory.conversation_privacy import ConversationPrivacy
from langchain_supabase_memory.memory.conversation_summaries import ConversationSummaries
from langchain_supabase_memory.memory.conversation_turns import ConversationTurns
from langchain_supabase_memory.memory.conversation_work import ConversationWork
from langchain_supabase_memory.memory.handle import ConversationHandle, load
from langchain_supabase_memory.memory.superseded_messages import SupersededMessages
from langchain_supabase_memory.operations.recall.exact_search import LIMIT, Order
from langchain_supabase_memory.operations.recall.query import EXACT_BELOW, Filters, Fusion
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
    from langchain_supabase_memory.context.explanation import Explanation
    from langchain_supabase_memory.context.pack import ContextPack
    from langchain_supabase_memory.context.past_prompt import RebuiltPrompt
    from langchain_supabase_memory.language.chunks.kinds import Kind
    from langchain_supabase_memory.language.messages.codec import MessagesLike
    from langchain_supabase_memory.operations.boards.kinds import BoardItemKind
    from langchain_supabase_memory.operations.boards.perspective import Perspective
    from langchain_supabase_memory.operations.contributions import Contribution
    from langchain_supabase_memory.operations.conversations import Column
    from langchain_supabase_memory.operations.manifests.manifest import Manifest, ManifestPage
    from langchain_supabase_memory.operations.recall.ranges import TimeRange


class Conversation(ConversationHandle):
    """One conversation of a memory: `memory.conversation("studio")`. It only holds ids, so creating one is free.

    Each method has an async twin with LangChain's prefix `a`: `append` and `aappend`. `actor` is the name of the person
    who makes a change; it is recorded with the change and its time.
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
        """Store messages in order, each once, all or none, in one round trip.

        Messages that nobody wrote (a human or system message with LangChain's `lc_source`, such as a summary, or
        anything that this package added to a prompt) are not stored. Expired and forgotten messages are not stored
        either: a retry does not bring them back. Parts of a message that exceed the database's limit (4 MiB by default)
        are removed, and a note names them in place: media first, then the artifact of a tool, then the middle of the
        longest text.

        Args:
            messages: Anything that LangChain accepts as messages: a list of messages, strings (the user's), pairs such
                as `("assistant", "Hello")` or dictionaries with `role` and `content`; or a single one. A message
                without an id gets one, on the object itself, so that a retry is recognized. Of several messages with
                the same id, the last one is stored, at the position of the first. A stored message with other content
                is replaced.
            metadata: Metadata to store with each message: a JSON object.
            created_at: The messages' times, with a time zone: one for all, or one for each. The database's clock by
                default.
            retention: The retention; older messages are deleted in the same transaction. The memory's by default.
            idempotency_key: Identifies this call, such as a request's id: if another process repeats it with messages
                that have no ids, nothing is stored twice. 1 to 512 bytes.
            pack: The context pack that these messages answer: its manifest is stored with them, in numbers, for
                `manifests`, as the memory's `manifests` policy says; it never causes an error.

        Returns:
            The number of each message, how many were new, and which were replaced because their content differed.

        Raises:
            InvalidInputError: An argument is not a message, a time is naive, or the pack belongs to another
                conversation; nothing was stored.
            TooLargeError: All messages together exceed the limit of one call; nothing was stored.
            ConfigurationError: A rule of the redactor failed; nothing was stored.
            SupabaseMemoryError: The database refused or could not be reached.
        """
        from langchain_supabase_memory.memory.messages import append

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
        await load("langchain_supabase_memory.memory.messages")
        from langchain_supabase_memory.memory.messages import append

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
            query: The user's message.
            response: The final answer.
            retention: The retention to apply; the memory's by default.
            idempotency_key: Identifies this call, such as a request's id: the turn is stored once, however often the
                call is repeated.
            pack: The context pack behind the answer, as for `append`.

        Returns:
            As for `append`.

        Raises:
            InvalidInputError: One of them is not a string, is blank, or is longer than a million characters.
            SupabaseMemoryError: The database refused or could not be reached.
        """
        from langchain_supabase_memory.memory.messages import add_turn

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
        await load("langchain_supabase_memory.memory.messages")
        from langchain_supabase_memory.memory.messages import add_turn

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
        """Read messages in order: all of them, or those within every given bound.

        Args:
            first: Only this many of the oldest messages.
            last: Only this many of the newest messages.
            since: Only messages from this time on, with a time zone.
            until: Only messages before this time, with a time zone.
            from_sequence: Only messages with this number or a higher one.
            to_sequence: Only messages with this number or a lower one; -1 is before the first.
            columns: The columns to read; `sequence` is always included. Without `payload`, `message` raises. By
                default `payload`, and with `display` the columns of a chat page: `message_id`, `role`, `text`,
                `images`, `created_at`, `updated_at` and `metadata`; in a space also `author_id` and
                `author_name`.
            display: Only what a chat page shows: text of the user and the assistant, with media as references; no tool
                calls or results, no system messages.
            retention: Messages beyond this retention are not returned; by default the memory's retention.

        Returns:
            The messages, oldest first, however many there are: long ranges are read by pages. An unreadable message is
            empty, and its `unreadable` gives the reason.

        Raises:
            InvalidInputError: A bound is negative, both `first` and `last` are given, a time is naive, or a column is
                unknown.
            SupabaseMemoryError: The database refused or could not be reached.
        """
        from langchain_supabase_memory.operations.conversations import read

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
        await load("langchain_supabase_memory.operations.conversations")
        from langchain_supabase_memory.operations.conversations import read

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
        """Find the messages that contain a phrase, a number, a file name or an id exactly, in one round trip.

        It searches the text of messages, and the names and arguments of their tool calls, but not what the memory
        itself returned to a tool. One call scans at most 2,000 messages; in a search over several conversations, each
        conversation counts as ten. Conversations are searched in the order of their creation, from the newest or the
        oldest on. Nothing needs to be indexed.

        Args:
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
        await load("langchain_supabase_memory.operations.recall.exact_search")
        from langchain_supabase_memory.operations.recall.exact_search import find

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
        """Count the conversation's messages; 0 if it does not exist. The cost does not grow with the history."""
        from langchain_supabase_memory.operations.conversations import count

        return self._services.run(count(self._key, retention=self._services.settings.retention))

    async def acount(self) -> int:
        """The async twin of `count`."""
        await load("langchain_supabase_memory.operations.conversations")
        from langchain_supabase_memory.operations.conversations import count

        return await self._services.arun(count(self._key, retention=self._services.settings.retention))

    def info(self) -> ConversationInfo:
        """Return the conversation as it is listed: title, metadata and last message.

        Raises:
            NotFoundError: It does not exist, or belongs to another user.
        """
        from langchain_supabase_memory.operations.listing import info

        return self._services.run(info(self._key, retention=self._services.settings.retention))

    async def ainfo(self) -> ConversationInfo:
        """The async twin of `info`."""
        await load("langchain_supabase_memory.operations.listing")
        from langchain_supabase_memory.operations.listing import info

        return await self._services.arun(info(self._key, retention=self._services.settings.retention))

    def update(self, *, title: str | None = None, metadata: Mapping[str, object] | None = None) -> ConversationInfo:
        """Set the conversation's title or metadata. The order of lists does not change.

        Args:
            title: The new title, one line of up to 200 characters. A blank title removes it: then the generated title
                is shown, or the first words of the first question.
            metadata: The application's metadata, a JSON object of up to 16 KiB; it replaces the previous metadata.

        Returns:
            The updated conversation, as it is listed.

        Raises:
            InvalidInputError: There is nothing to set, the title is too long or mentions an opted-out topic, or the
                metadata is not an object.
            TooLargeError: The metadata is too large.
            NotFoundError: There is no such conversation.
            SupabaseMemoryError: The database refused or could not be reached.
        """
        from langchain_supabase_memory.operations.listing import update

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
        await load("langchain_supabase_memory.operations.listing")
        from langchain_supabase_memory.operations.listing import update

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
            dry_run: Only report what would be deleted.

        Returns:
            What was deleted.
        """
        from langchain_supabase_memory.memory.messages import forget

        return self._services.run(forget(self._services, self._key, dry_run=dry_run))

    async def aforget(self, *, dry_run: bool = False) -> Receipt:
        """The async twin of `forget`."""
        await load("langchain_supabase_memory.memory.messages")
        from langchain_supabase_memory.memory.messages import forget

        return await self._services.arun(forget(self._services, self._key, dry_run=dry_run))

    def forget_message(self, message_id: str, *, dry_run: bool = False) -> Receipt:
        """Delete one message, and the summaries created from it. Other messages keep their numbers.

        No message with this id is stored in the conversation again: a graph that still holds it does not bring it back.

        Args:
            message_id: The LangChain message's id.
            dry_run: Only report what would be deleted.

        Returns:
            What was deleted; no message, if there was none with this id.
        """
        from langchain_supabase_memory.memory.messages import forget_message

        return self._services.run(forget_message(self._services, self._key, message_id, dry_run=dry_run))

    async def aforget_message(self, message_id: str, *, dry_run: bool = False) -> Receipt:
        """The async twin of `forget_message`."""
        await load("langchain_supabase_memory.memory.messages")
        from langchain_supabase_memory.memory.messages import forget_message

        return await self._services.arun(forget_message(self._services, self._key, message_id, dry_run=dry_run))

    def resolve(self, text: str) -> Reference | None:
        """Return the turn that a user's words refer to, such as "the second one" or "yung una".

        Deterministic, without a model. The database is only called if the text contains a reference.

        Args:
            text: The user's message; it is not part of a turn yet.

        Returns:
            The turn, the words and the rule; `None` if the words refer to no turn, or to one that does not exist. Only
            retained turns are counted: when the oldest is removed, "the first one" is the one after it.

        Raises:
            InvalidInputError: `text` is not a string.
        """
        from langchain_supabase_memory.operations.turns import resolve

        return self._services.run(resolve(self._key, text, retention=self._services.settings.retention))

    async def aresolve(self, text: str) -> Reference | None:
        """The async twin of `resolve`."""
        await load("langchain_supabase_memory.operations.turns")
        from langchain_supabase_memory.operations.turns import resolve

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
        spaces: Sequence[str] = (),
        agents: Sequence[str] = (),
        perspective: Perspective | None = None,
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
        """Build the context pack for the next prompt within a budget: a summary, recent messages, recalled passages.

        One round trip, plus the embedding of the query. If the policies say `inline`, a summary is written first if one
        is due and there is a model, and messages that the pack would otherwise miss are indexed first.

        Args:
            current: The user's message to answer (or the whole current turn). It is left out of the history, is never
                cut, and comes last in `ContextPack.prompt`. A message without an id gets one, on the object itself, so
                that it is recognized once it is stored.
            budget: The maximum size of the pack; the memory's by default.
            policy: The summary policy; the memory's by default.
            model: The summary model; the memory's by default. With `None` no summary is written.
            retention: The retention to apply; the memory's by default.
            query: What to recall, as for `recall`; the user's message by default. Recalled passages come in addition to
                the recent messages, within the budget's share `recalled`.
            recall: The conversations to recall from: this conversation, all with this agent, or all of this user;
                `None`: none. The memory's by default, or this conversation if a query is given.
            spaces: The ids of at most 10 spaces: the quotes on their boards come in addition, if the user is in them.
            agents: At most 10 other agents of the user: what the boards of the newest conversations with them hold
                comes in addition, and recall searches all conversations with them, too.
            perspective: What the agent watches: the order of the board's items. The usual order by default.
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

        Raises:
            InvalidInputError: An argument is not a message, or not one of its choices.
            ConfigurationError: A setting is of another class than its name says.
            MigrationConflictError: The stored vectors come from another model, and a `query` was given.
            SupabaseMemoryError: The database refused or could not be reached.
        """
        from langchain_supabase_memory.memory.context_defaults import context

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
                spaces=spaces,
                agents=agents,
                perspective=perspective,
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
        spaces: Sequence[str] = (),
        agents: Sequence[str] = (),
        perspective: Perspective | None = None,
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
        await load("langchain_supabase_memory.memory.context_defaults")
        from langchain_supabase_memory.memory.context_defaults import context

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
                spaces=spaces,
                agents=agents,
                perspective=perspective,
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
        """Return a page of manifests, newest first: what was in the prompts of earlier answers, and why, in numbers.

        Middleware, nodes and histories store a manifest with each answer, and so does `append` if `pack` is given. The
        memory's `manifests` policy decides for how many answers and for how long. `Manifest.since` compares two
        manifests. A manifest says if messages that it names have changed or gone since.

        Args:
            limit: The maximum number on a page, 1 to 200.
            after: The `after` of a page, to get the page of older manifests.
            from_sequence: Only manifests of answers from this number on; both bounds may be one answer's number.
            to_sequence: Only manifests of answers up to this number.

        Raises:
            InvalidInputError: An argument is not one of its choices.
            SupabaseMemoryError: The database refused or could not be reached.
        """
        from langchain_supabase_memory.operations.manifests.listing import manifests

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
        await load("langchain_supabase_memory.operations.manifests.listing")
        from langchain_supabase_memory.operations.manifests.listing import manifests

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

    def prompt(self, answer: Manifest | int) -> RebuiltPrompt:
        """Rebuild what the prompt of a past answer was made of: each part with its words, in the order of the model.

        It is made from the answer's manifest and from what is stored, so each part says whether it is as it was, and
        if not, why: what was edited, forgotten or has expired since does not come back. The board is read as it was.
        Boards of spaces and other agents are named, and not read. One round trip with a manifest, two with a number;
        one more for each 1,000 messages, or about 4 MiB, of a part, and one where it showed a profile.

        Args:
            answer: A manifest of `manifests`, or the number of the message that answered: the last one that was stored
                with the manifest.

        Raises:
            InvalidInputError: It is neither a stored manifest nor a number.
            NotFoundError: No manifest is stored for the answer.
            SupabaseMemoryError: The database refused or could not be reached.
        """
        from langchain_supabase_memory.context.read_past_prompt import prompt

        return self._services.run(
            prompt(
                self._key,
                answer,
                retention=self._services.settings.retention,
                time_zone=self._services.config.time_zone,
            )
        )

    async def aprompt(self, answer: Manifest | int) -> RebuiltPrompt:
        """The async twin of `prompt`."""
        await load("langchain_supabase_memory.context.read_past_prompt")
        from langchain_supabase_memory.context.read_past_prompt import prompt

        return await self._services.arun(
            prompt(
                self._key,
                answer,
                retention=self._services.settings.retention,
                time_zone=self._services.config.time_zone,
            )
        )

    def why(self, answer: Manifest | int, expected: str) -> Explanation:
        """Explain why a past answer did not know something: where it was said, and what became of it in the prompt.

        The words are searched as `find` and `recall` search: in this conversation, on its board as it was, in the
        user's profile and in their other conversations, by words, and by meaning if there is an embedder. What became
        of them is read from the answer's manifest and its rebuilt prompt. Whether recall would find them is asked of
        recall as it is today, with the question of then. Nothing is written.

        Six to ten round trips, and two embeddings at most; up to eight more where there are more than 2,000
        messages: the first 10,000 of the conversation and the newest 10,000 of the user are searched letter by letter.

        Args:
            answer: A manifest of `manifests`, or the number of the message that answered.
            expected: What it should have known: a fact or a code in a few words, up to 1,000 characters.

        Returns:
            The explanation: `text` is one paragraph, and each of its `parts` names its message, segment or item.

        Raises:
            InvalidInputError: It is neither a stored manifest nor a number, or the words are blank or too long.
            NotFoundError: No manifest is stored for the answer.
            SupabaseMemoryError: The database refused or could not be reached.
        """
        from langchain_supabase_memory.context.read_explanation import why

        return self._services.run(
            why(
                self._key,
                answer,
                expected,
                retention=self._services.settings.retention,
                time_zone=self._services.config.time_zone,
                capabilities=self._services.capabilities,
            )
        )

    async def awhy(self, answer: Manifest | int, expected: str) -> Explanation:
        """The async twin of `why`."""
        await load("langchain_supabase_memory.context.read_explanation")
        from langchain_supabase_memory.context.read_explanation import why

        return await self._services.arun(
            why(
                self._key,
                answer,
                expected,
                retention=self._services.settings.retention,
                time_zone=self._services.config.time_zone,
                capabilities=self._services.capabilities,
            )
        )

    def coverage(self, *, budget: ContextBudget | None = None) -> Coverage:
        """Report where every message is: verbatim in the next pack, in a segment, omitted and why, or forgotten.

        The pack recalls nothing: with recalled passages, fewer messages are verbatim and segments cover more. Only the
        messages' numbers are read, not their content; it is meant for people and tests, not for each turn.

        Args:
            budget: The budget of the pack; the memory's by default.
        """
        from langchain_supabase_memory.memory.context_defaults import coverage

        return self._services.run(coverage(self._services, self._key, budget=budget))

    async def acoverage(self, *, budget: ContextBudget | None = None) -> Coverage:
        """The async twin of `coverage`."""
        await load("langchain_supabase_memory.memory.context_defaults")
        from langchain_supabase_memory.memory.context_defaults import coverage

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
        """Recall the chunks that fit a question, by vector and keyword search, in one round trip plus model calls.

        Args:
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
        await load("langchain_supabase_memory.operations.recall.search")
        from langchain_supabase_memory.operations.recall.search import recall

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
        """Index unindexed messages batch by batch; the same messages never create a second chunk.

        Keyword search finds the messages at once. Vectors may come later: if there is no embedder or it fails, the next
        indexing that has an embedder adds them.

        Args:
            chunking: The chunk policy; the memory's by default.

        Returns:
            The result. If the embedder fails, nothing is raised: the vectors are missing, and it is called again later.

        Raises:
            MigrationConflictError: The stored vectors come from another model.
            SupabaseMemoryError: The database refused or could not be reached.
        """
        from langchain_supabase_memory.operations.recall.indexing import index_messages

        return self._services.run(
            index_messages(
                self._key,
                chunking=self._services.chunking(chunking),
                embedder=self._services.embedder_name,
                respect_backoff=False,
                tone=self._services.rates_tone,
            )
        )

    async def aindex(self, *, chunking: ChunkPolicy | None = None) -> IndexResult:
        """The async twin of `index`."""
        await load("langchain_supabase_memory.operations.recall.indexing")
        from langchain_supabase_memory.operations.recall.indexing import index_messages

        return await self._services.arun(
            index_messages(
                self._key,
                chunking=self._services.chunking(chunking),
                embedder=self._services.embedder_name,
                respect_backoff=False,
                tone=self._services.rates_tone,
            )
        )

    def opt_out(self, topic: str | None = None, *, actor: str) -> bool:
        """Stop remembering a conversation, or a topic in it or in all current and future conversations of the user.

        Opting out of a conversation retains its messages, because the chat needs them, and deletes everything derived
        from it in the same transaction. Nothing new is derived: no chunk, summary or board. Board items that a person
        or the application wrote, pinned, rated or deleted stay until they delete them; an edited segment of the summary
        is deleted, because it stands for messages. What was promoted to long-term memory is forgotten there by the next
        `forget_source`. The conversation need not exist yet. For a minute `opt_in` undoes the opt-out; later it derives
        the rest again.

        Text that mentions an opted-out topic is not indexed, written to a board or left in a summary; what already
        exists is deleted. A topic is one word, or several adjacent words. Matching ignores case, accents and
        punctuation, and endings in English and in the conversation's language ("divorce" also matches "divorced", but
        "health" does not match "healthy" or "hospital": name each). In scripts without spaces, and in Korean, the
        characters are searched for. The messages stay. The summarizer is told to leave the topic out; sentences that
        mention it anyway are removed, but a paraphrase is left to the summarizer.

        Args:
            topic: The topic, up to 200 characters; `None` for the conversation itself.
            actor: Who opts out; recorded with the time.

        Returns:
            Whether the opt-out is new.

        Raises:
            InvalidInputError: The topic has no letters, or neither a topic nor a conversation is named.
        """
        from langchain_supabase_memory.operations.controls import opt_out

        return self._services.run(opt_out(Scope.of(self._key), topic, actor=actor))

    async def aopt_out(self, topic: str | None = None, *, actor: str) -> bool:
        """The async twin of `opt_out`."""
        await load("langchain_supabase_memory.operations.controls")
        from langchain_supabase_memory.operations.controls import opt_out

        return await self._services.arun(opt_out(Scope.of(self._key), topic, actor=actor))

    def opt_in(self, topic: str | None = None, *, actor: str) -> bool:
        """Undo an `opt_out` that had the same arguments.

        Within a minute, summaries, the board, ratings and the title are restored, and chunks are indexed again. What
        was written in that minute stays. If messages changed or were deleted in that minute, and at any later time, the
        conversation becomes due again from its beginning. For a topic, unindexed messages are indexed again, and
        summaries and boards stay as they are until they are regenerated.

        Args:
            topic: The topic; `None` for the conversation itself.
            actor: Who opts in; recorded with the time.

        Returns:
            Whether there was an opt-out.
        """
        from langchain_supabase_memory.operations.controls import opt_in

        return self._services.run(opt_in(Scope.of(self._key), topic, actor=actor))

    async def aopt_in(self, topic: str | None = None, *, actor: str) -> bool:
        """The async twin of `opt_in`."""
        await load("langchain_supabase_memory.operations.controls")
        from langchain_supabase_memory.operations.controls import opt_in

        return await self._services.arun(opt_in(Scope.of(self._key), topic, actor=actor))

    def contribute(
        self, message: BaseMessage | str, *, quote: str, kind: BoardItemKind = "fact", to: str
    ) -> Contribution:
        """Copy a quote from the conversation onto the board of a space. Nothing else of the message moves.

        Only the conversation's owner can follow the item back. It goes when the message is forgotten, expires, or does
        not say it any more, and when the conversation or the topic is opted out of.

        Args:
            message: The stored message, or its id.
            quote: What it says, up to 500 characters. Spaces, case and the shape of quotation marks may differ.
            kind: The item's kind, such as `fact` or `action`; the page on boards lists all kinds.
            to: The id of the space. Its board is that of its conversation `board`.

        Returns:
            The contribution, with the words as they stand in the message.

        Raises:
            InvalidInputError: The message does not say that, it is not to be remembered, or the kind is not valid.
            NotFoundError: There is no such message of the user, no such space, or the user is not in it.
            PermissionDeniedError: The user is a reader of the space.
            TooLargeError: The space's board is full.
        """
        from langchain_supabase_memory.operations.contributions import contribute

        return self._services.run(contribute(self._key, message, quote=quote, kind=kind, to=to))

    async def acontribute(
        self, message: BaseMessage | str, *, quote: str, kind: BoardItemKind = "fact", to: str
    ) -> Contribution:
        """The async twin of `contribute`."""
        await load("langchain_supabase_memory.operations.contributions")
        from langchain_supabase_memory.operations.contributions import contribute

        return await self._services.arun(contribute(self._key, message, quote=quote, kind=kind, to=to))

    @property
    def board(self) -> ConversationBoard:
        """A conversation's board: a summary, and items of each kind that `operations.boards.kinds` lists."""
        return ConversationBoard(self._services, self._key)

    @property
    def summaries(self) -> ConversationSummaries:
        """A conversation's summaries: the segments of the rolling one, and the complete one."""
        return ConversationSummaries(self._services, self._key)

    @property
    def turns(self) -> ConversationTurns:
        """A conversation's complete turns: the user's message and the final answer."""
        return ConversationTurns(self._services, self._key)

    @property
    def chunks(self) -> ConversationChunks:
        """A conversation's chunks, which recall searches."""
        return ConversationChunks(self._services, self._key)

    @property
    def superseded(self) -> SupersededMessages:
        """The messages that a graph has left, because it was forked or they were removed from its state."""
        return SupersededMessages(self._services, self._key)

    @property
    def privacy(self) -> ConversationPrivacy:
        """A person's overrides for one conversation: opt-outs, ratings and edits."""
        return ConversationPrivacy(self._services, self._key)

    @property
    def work(self) -> ConversationWork:
        """Background work on one conversation."""
        return ConversationWork(self._services, self._key)
