"""What is done with one conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_supabase_memory.adapters import embedder as embedders
from langchain_supabase_memory.adapters import summarizer as writers
from langchain_supabase_memory.context import coverage
from langchain_supabase_memory.language.messages import codec
from langchain_supabase_memory.memory import context_defaults, outbox_delivery
from langchain_supabase_memory.operations import boards, controls, conversations, listing, summaries, turns, work
from langchain_supabase_memory.operations.boards import editing
from langchain_supabase_memory.operations.manifests import listing as manifests
from langchain_supabase_memory.operations.recall import exact_search, indexing, search
from langchain_supabase_memory.operations.recall import summaries as summary_recall
from langchain_supabase_memory.operations.recall.exact_search import LIMIT, ExactQuery, Order
from langchain_supabase_memory.operations.recall.query import Filters, check_questions
from langchain_supabase_memory.operations.rollout import comparison
from langchain_supabase_memory.operations.summaries.complete import complete_summary
from langchain_supabase_memory.operations.turns import TEMPLATE
from langchain_supabase_memory.settings import INHERITED, Inherited, check_settings
from langchain_supabase_memory.values import Scope

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from langchain_core.messages import BaseMessage

    from langchain_supabase_memory.adapters.summarizer import Summarizer, SummaryModel
    from langchain_supabase_memory.context.pack import ContextPack
    from langchain_supabase_memory.flow import Flow
    from langchain_supabase_memory.memory.services import Services
    from langchain_supabase_memory.operations.boards.board import Board, BoardItem
    from langchain_supabase_memory.operations.boards.schema import AuthorKind, BoardItemKind
    from langchain_supabase_memory.operations.controls import ControlChange, OptOut
    from langchain_supabase_memory.operations.conversations import Column
    from langchain_supabase_memory.operations.manifests.manifest import ManifestPage
    from langchain_supabase_memory.operations.rollout.comparison import Comparison
    from langchain_supabase_memory.operations.summaries.complete import CompleteSummary
    from langchain_supabase_memory.operations.work import ConversationStatus
    from langchain_supabase_memory.settings import ChunkPolicy, ContextBudget, Retention, SummaryPolicy
    from langchain_supabase_memory.values import (
        AppendResult,
        BoardResult,
        Chunk,
        ConversationInfo,
        ConversationKey,
        Coverage,
        FoundPage,
        IndexResult,
        Recall,
        RecallScope,
        Receipt,
        Reference,
        Segment,
        StoredMessage,
        SummaryResult,
        Turn,
    )


class ConversationFlows:
    """One conversation of a memory: `memory.conversation("studio")`. It holds ids alone, and costs nothing.

    Each verb has an async twin with LangChain's prefix `a`: `append` and `aappend`. Where a verb takes `by`, that is
    the name of the person who does it: it is noted with the change and its time. What a person adds to a board, edits,
    pins or deletes survives every regeneration: no model changes what a person wrote, supersedes what is pinned, or
    brings back what was deleted.
    """

    def __init__(self, memory: Services, key: ConversationKey) -> None:
        self._memory = memory
        self._key = key

    # Messages

    def append(
        self,
        messages: Iterable[BaseMessage],
        *,
        metadata: Mapping[str, object] | None = None,
        created_at: datetime | Sequence[datetime | None] | None = None,
        retention: Retention | None = None,
        idempotency_key: str | None = None,
        pack: ContextPack | None = None,
    ) -> Flow[AppendResult]:
        """Store messages: once each, in order, all or none, in one round trip.

        What nobody said (a human or system message that carries LangChain's `lc_source`, such as a summary; anything
        that this package put into a prompt) is not stored. Nor is what has expired or was forgotten: a retry does not
        bring it back. What of a message is larger than the database takes (4 MiB by default) is left out, and named
        where it was: media first, then what a tool keeps for the application, then the middle of the longest text.

        Args:
            messages: LangChain messages. Those without an id get one, on the object itself, so that a retry is a
                retry. Of several with one id the last is stored, at the place of the first. A message that is there
                already with other content is replaced.
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
        memory = self._memory
        listed = codec.check_messages(messages)
        codec.separate_ids(listed)
        made = conversations.append(
            self._key,
            listed,
            metadata=metadata,
            created_at=created_at,
            retention=retention or memory.settings.retention,
            redactor=memory.redactor,
            idempotency_key=idempotency_key,
            manifest=context_defaults.manifest_of(memory, self._key, pack, listed, idempotency_key),
        )
        return (yield from made)

    def add_turn(
        self,
        query: str,
        response: str,
        *,
        retention: Retention | None = None,
        idempotency_key: str | None = None,
        pack: ContextPack | None = None,
    ) -> Flow[AppendResult]:
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
        made = turns.messages_of(query, response)
        return (yield from self.append(made, retention=retention, idempotency_key=idempotency_key, pack=pack))

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
        superseded: bool = False,
        retention: Retention | None = None,
    ) -> Flow[list[StoredMessage]]:
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
            superseded: The messages that a graph has left, in place of those that stand; see `reinstate`.
            retention: What is kept; what is beyond it is not shown. The memory's by default.

        Returns:
            The messages, oldest first, however many there are: long ranges are read by pages. One that cannot be read
            has an empty message and says why in `unreadable`.

        Raises:
            InvalidInputError: A bound is negative, both ends are asked for, a time is naive, or a column is unknown.
            SupabaseMemoryError: The database refused or could not be reached.
        """
        made = conversations.read(
            self._key,
            first=first,
            last=last,
            since=since,
            until=until,
            from_sequence=from_sequence,
            to_sequence=to_sequence,
            columns=columns,
            display=display,
            superseded=superseded,
            retention=retention or self._memory.settings.retention,
        )
        return (yield from made)

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
    ) -> Flow[FoundPage]:
        """The messages that hold a phrase, a number, a file name or an id, letter by letter, in one round trip.

        It looks at the words of the messages, and at the names and arguments of what they call; not at what the memory
        itself gave a tool. One call looks at 2,000 messages at most. Nothing needs to be indexed.

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
        wanted = ExactQuery(
            texts=texts, order=order, match_case=match_case, since=since, until=until, around=around, limit=limit
        )
        retention = self._memory.settings.retention
        return (yield from exact_search.find(Scope.of(self._key), wanted, after=after, retention=retention))

    def count(self) -> Flow[int]:
        """How many messages the conversation holds; 0 if it does not exist. Its cost does not grow with the history."""
        return (yield from conversations.count(self._key, retention=self._memory.settings.retention))

    def info(self) -> Flow[ConversationInfo | None]:
        """The conversation as it is listed: its title, its metadata, its last message; `None` if it does not exist."""
        return (yield from listing.info(self._key, retention=self._memory.settings.retention))

    def update(
        self, *, title: str | None = None, metadata: Mapping[str, object] | None = None
    ) -> Flow[ConversationInfo]:
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
        memory = self._memory
        made = listing.update(
            self._key,
            title=title,
            metadata=metadata,
            redactor=memory.redactor,
            retention=memory.settings.retention,
        )
        return (yield from made)

    def forget(self, *, dry_run: bool = False) -> Flow[Receipt]:
        """Delete the conversation with everything derived from it.

        Args:
            dry_run: Only say what would go.

        Returns:
            What went.
        """
        receipt = yield from conversations.forget(self._key, dry_run=dry_run)
        outbox_delivery.drop(self._memory, [self._key], dry_run=dry_run)
        return receipt

    def forget_message(self, message_id: str, *, dry_run: bool = False) -> Flow[Receipt]:
        """Delete one message, and the summaries that were made from it. The others keep their numbers.

        A message of this id is not stored again in the conversation: a graph that still holds it does not bring it
        back.

        Args:
            message_id: The LangChain message's id.
            dry_run: Only say what would go.

        Returns:
            What went; no message, if there was none of this id.
        """
        receipt = yield from conversations.forget_message(self._key, message_id, dry_run=dry_run)
        if not dry_run:
            self._memory.outbox.forget(self._key, message_id)
        return receipt

    def reinstate(self, message_ids: Sequence[str]) -> Flow[list[int]]:
        """Bring messages back that a graph has left, because it was forked or they were removed from its state.

        They stand at their own numbers again, and no state of a graph takes them away any more.

        Args:
            message_ids: The ids of superseded messages, as `read(superseded=True)` gives them.

        Returns:
            The numbers of those that are back. An id that is not superseded is passed over.

        Raises:
            InvalidInputError: `message_ids` is no list.
        """
        return (yield from conversations.reinstate(self._key, message_ids))

    # Turns

    def turns(
        self,
        *,
        last: int | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        before: int | None = None,
        retention: Retention | None = None,
    ) -> Flow[list[Turn]]:
        """The complete turns, oldest first: what was asked and the final answer, without what tools did in between.

        Args:
            last: Only the newest so many.
            since: Only those asked at or after this time, with a time zone.
            until: Only those asked before this time, with a time zone.
            before: Only those that begin before the message with this number: the `from_sequence` of the first turn of
                a page, for the page before it.
            retention: What is kept; what is beyond it is not shown. The memory's by default.

        Raises:
            InvalidInputError: `last` or `before` is negative, or a time is naive.
        """
        within = retention or self._memory.settings.retention
        return (
            yield from turns.list_turns(self._key, last=last, since=since, until=until, before=before, retention=within)
        )

    def turns_as_text(
        self,
        *,
        template: str = TEMPLATE,
        separator: str = "\n\n",
        last: int | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        retention: Retention | None = None,
    ) -> Flow[str]:
        """The complete turns as text for a prompt, query and answer in a template.

        Args:
            template: How one is written: a format string over `number`, `user_query`, `ai_response` and `created_at`.
            separator: What stands between two.
            last: Only the newest so many.
            since: Only those asked at or after this time, with a time zone.
            until: Only those asked before this time, with a time zone.
            retention: What is kept; what is beyond it is not shown. The memory's by default.

        Raises:
            InvalidInputError: `last` is negative, a time is naive, or the template names something else.
        """
        listed = yield from self.turns(last=last, since=since, until=until, retention=retention)
        return turns.turns_text(listed, template, separator)

    def turn(self, number: int) -> Flow[Turn | None]:
        """One complete turn by its number; from the end, if it is negative.

        Args:
            number: From 1 for the oldest that is kept; -1 is the newest.

        Returns:
            The turn; `None` if there is none of this number.

        Raises:
            InvalidInputError: The number is 0 or none.
        """
        return (yield from turns.read_turn(self._key, number, retention=self._memory.settings.retention))

    def resolve(self, text: str) -> Flow[Reference | None]:
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
        return (yield from turns.resolve(self._key, text, retention=self._memory.settings.retention))

    # The context pack

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
        filters: Filters,
    ) -> Flow[ContextPack]:
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
            filters: What narrows down what is recalled.

        Raises:
            InvalidInputError: Something passed is no message, or an argument is none of its choices.
            MigrationConflictError: What is stored was embedded by another model, and a `query` was given.
            SupabaseMemoryError: The database refused or could not be reached.
        """
        writer = yield from writers.summarizer_of(model, self._memory.model)
        turn = context_defaults.turn_of(current)
        made = context_defaults.load_context(
            self._memory,
            self._key,
            turn,
            budget=budget,
            policy=policy,
            writer=writer,
            retention=retention,
            recalling=context_defaults.recall_request(self._memory, turn, query, recall, filters),
        )
        return (yield from writers.asking(made, writer))

    def manifests(
        self,
        *,
        limit: int = 20,
        after: str | None = None,
        from_sequence: int | None = None,
        to_sequence: int | None = None,
    ) -> Flow[ManifestPage]:
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
        made = manifests.manifests(
            self._key,
            limit=limit,
            after=after,
            from_sequence=from_sequence,
            to_sequence=to_sequence,
            retention=self._memory.settings.retention,
        )
        return (yield from made)

    def coverage(self, *, budget: ContextBudget | None = None) -> Flow[Coverage]:
        """Where every message is: verbatim in the next pack, in a segment, omitted and why, or forgotten.

        The pack is one that recalls nothing: beside what is recalled less is verbatim, and more is told by segments.
        It reads every message's number, and nothing of its content; it is meant for people and tests, not for each
        turn.

        Args:
            budget: The budget of the pack that is meant; the memory's by default.
        """
        check_settings(budget=budget)
        settings = self._memory.settings
        waiting = outbox_delivery.pending(self._memory, self._key)
        made = coverage.report_coverage(
            self._key,
            budget=budget or settings.budget,
            policy=settings.policy,
            pending=waiting,
            retention=settings.retention,
        )
        return (yield from made)

    # Summaries

    def summarize(self, *, policy: SummaryPolicy | None = None, model: Summarizer | None = None) -> Flow[SummaryResult]:
        """Summarize now what is beyond what the policy keeps verbatim, whether it is due or not.

        Args:
            policy: How; the memory's by default.
            model: The model; the memory's by default.

        Returns:
            What was done. A model that failed is no error: nothing is changed.

        Raises:
            ConfigurationError: There is no model.
            SupabaseMemoryError: The database refused or could not be reached.
        """
        writer = yield from self._writer(model)
        within = self._memory.summary_policy(policy)
        made = summaries.summarize(self._key, within, model=writer.name, respect_backoff=False)
        return (yield from writers.asking(made, writer))

    def complete_summary(
        self, *, policy: SummaryPolicy | None = None, model: Summarizer | None = None
    ) -> Flow[CompleteSummary]:
        """Summarize the whole conversation, of any length, level by level, with its vector, topics and key facts.

        The board is revised first: topics and key facts are its own. What was made before is used again, so that of a
        conversation that went on only the last branch is written anew.

        Args:
            policy: How long a summary may be, how much one call of the model reads; the memory's by default.
            model: The model; the memory's by default.

        Returns:
            The summary. A model that failed is no error: what was made stays, and the next call goes on.

        Raises:
            ConfigurationError: There is no model.
            SupabaseMemoryError: The database refused or could not be reached.
        """
        memory = self._memory
        writer = yield from self._writer(model)
        yield from writers.asking(
            boards.revise_board(
                self._key, memory.settings.board_policy, model=writer.name, time_zone=memory.settings.time_zone
            ),
            writer,
        )
        made = complete_summary(
            self._key, memory.summary_policy(policy), model=writer.name, embedder=memory.embedder_name
        )
        return (yield from writers.asking(made, writer))

    def summaries(self, *, last: int | None = None) -> Flow[list[Segment]]:
        """The segments of the rolling summary, in order.

        Args:
            last: Only the newest so many; `None` means all.
        """
        return (yield from summaries.list_segments(self._key, last=last, retention=self._memory.settings.retention))

    def request_summary(self, *, priority: int | None = None) -> Flow[bool]:
        """Ask a worker to summarize the conversation now, whether it is due or not.

        Args:
            priority: Its priority from now on, -32,768 to 32,767; `None` leaves it. A signed-in user may only lower it.

        Returns:
            Whether there is such a conversation.
        """
        return (yield from work.request(self._key, priority=priority))

    def edit_summary(self, number: int, text: str, *, actor: str) -> Flow[int]:
        """Write what a segment of the rolling summary says. The next goes on from there.

        What was built on it is taken back and written anew when it is due. Regeneration leaves what a person wrote as
        it is; it goes only with what it was made from, when a message of it or before it is edited or forgotten.

        Args:
            number: The segment, as `summaries` numbers them.
            text: What it says, up to 10,000 characters.
            actor: Who writes it.

        Returns:
            How many segments were taken back.

        Raises:
            InvalidInputError: It is no text, is too long, or mentions a topic that is not to be remembered.
            NotFoundError: There is no such conversation or segment.
        """
        words = controls.summary_text(text, self._memory.redactor)
        return (yield from controls.edit_summary(self._key, "edit", actor, number=number, text=words))

    def delete_summary(self, number: int, *, actor: str) -> Flow[int]:
        """Take a segment back and all that were built on it; they are written anew when that is due.

        What was made from messages that have expired cannot be written anew.

        Args:
            number: The segment, as `summaries` numbers them.
            actor: Who wants that.

        Returns:
            How many segments were taken back.

        Raises:
            NotFoundError: There is no such conversation or segment.
        """
        return (yield from controls.edit_summary(self._key, "delete", actor, number=number))

    def regenerate_summaries(self, *, actor: str, include_edited: bool = False) -> Flow[SummaryResult]:
        """Write the summaries anew from the messages: those after the last that a person wrote.

        Args:
            actor: Who wants that.
            include_edited: Whether what a person wrote is written anew as well. What was made from messages that have
                expired stays in any case.

        Returns:
            What was written; nothing, if the memory has no model: then they are written when that is due.

        Raises:
            NotFoundError: There is no such conversation.
        """
        memory = self._memory
        made = controls.regenerate_summaries(
            self._key,
            actor,
            include_edited=include_edited,
            policy=memory.summary_policy(),
            model=memory.summarizer_name,
        )
        return (yield from made)

    # The board

    def board(self, *, history: bool = False) -> Flow[Board]:
        """The board: its living summary with facts, entities, topics, action items and questions.

        Args:
            history: Whether what people changed comes with it.

        Returns:
            The board; an empty one if there is none.
        """
        return (yield from boards.read_board(self._key, history=history, retention=self._memory.settings.retention))

    def revise_board(self) -> Flow[BoardResult]:
        """Bring the board up to the newest message now, whether it is due or not.

        Returns:
            What was done. A model that failed is no error: nothing is changed.

        Raises:
            ConfigurationError: There is no model.
        """
        memory = self._memory
        return (
            yield from boards.revise_board(
                self._key,
                memory.settings.board_policy,
                model=memory.summarizer_name,
                time_zone=memory.settings.time_zone,
            )
        )

    def regenerate_board(self, *, actor: str) -> Flow[BoardResult]:
        """Write the board anew from the messages; what a person wrote, edited, pinned or deleted stays so.

        Args:
            actor: Who wants that.

        Raises:
            ConfigurationError: There is no model.
            NotFoundError: There is no such conversation.
        """
        yield from editing.edit_board(self._key, "regenerate", actor=actor)
        return (yield from self.revise_board())

    def edit_board_summary(self, text: str, *, actor: str, author_kind: AuthorKind = "person") -> Flow[None]:
        """Write what the board's summary is to say first; an empty text takes that back.

        Args:
            text: What it says, up to 10,000 characters.
            actor: Who writes it.
            author_kind: What that is: `person` or `application`.

        Raises:
            InvalidInputError: It is no text, or longer than 10,000 characters; or a model is to write it.
            NotFoundError: There is no such conversation.
        """
        yield from editing.write_summary(
            self._key, text, actor=actor, author_kind=author_kind, redactor=self._memory.redactor
        )

    def add_board_item(
        self,
        kind: BoardItemKind,
        text: str,
        *,
        actor: str,
        entity_type: str | None = None,
        state: str | None = None,
        author_kind: AuthorKind = "person",
        begin: bool = False,
    ) -> Flow[str]:
        """Write an item on the board; the same twice is one.

        Args:
            kind: `fact`, `entity`, `topic`, `action` or `question`.
            text: What it says, up to 500 characters.
            actor: Who writes it.
            entity_type: Of an entity, what it is: a person, a place, an organization, a date or other.
            state: Of an action or a question, its state; `open` by default.
            author_kind: What `actor` is: `person`, `application` or `model`. Packs say so, and what a model notes is no
                person's word: a writer may change it.
            begin: Whether a conversation that has not begun begins with this item.

        Returns:
            The item's id.

        Raises:
            InvalidInputError: The kind, the type, the state or the text is none, or a model writes what was deleted.
            NotFoundError: There is no such conversation, and it is not to begin.
        """
        made = editing.add_item(
            self._key,
            kind,
            text,
            actor=actor,
            entity_type=entity_type,
            state=state,
            author_kind=author_kind,
            begin=begin,
            redactor=self._memory.redactor,
        )
        return (yield from made)

    def edit_board_item(
        self,
        item: BoardItem | str,
        *,
        actor: str,
        text: str | None = None,
        state: str | None = None,
        author_kind: AuthorKind = "person",
    ) -> Flow[None]:
        """Change an item's words or state.

        Args:
            item: The item, or its id.
            actor: Who changes it.
            text: What it says from now on.
            state: Its state from now on.
            author_kind: What `actor` is: `person`, `application` or `model`. A model changes only what nobody else
                wrote, changed or pinned.

        Raises:
            InvalidInputError: Nothing is changed, the text is none, the board has such an item already, or a model may
                not change this one.
            NotFoundError: There is no such item.
        """
        yield from editing.change_item(
            self._key,
            item,
            actor=actor,
            text=text,
            state=state,
            author_kind=author_kind,
            redactor=self._memory.redactor,
        )

    def pin_board_item(self, item: BoardItem | str, *, actor: str, pinned: bool = True) -> Flow[None]:
        """Hold on to an item, or let go of it: what is pinned stands first, and no model supersedes or closes it.

        Args:
            item: The item, or its id.
            actor: Who does it.
            pinned: Whether it is pinned from now on.

        Raises:
            NotFoundError: There is no such item.
        """
        yield from editing.edit_board(self._key, "pin" if pinned else "unpin", actor=actor, item=item)

    def delete_board_item(self, item: BoardItem | str, *, actor: str) -> Flow[None]:
        """Delete an item for good: its words go, and no model writes the same again.

        What was said stays in the history: to forget that, call `forget_message`.

        Args:
            item: The item, or its id.
            actor: Who does it.

        Raises:
            NotFoundError: There is no such item.
        """
        yield from editing.edit_board(self._key, "delete", actor=actor, item=item)

    # Recall

    def recall(self, query: str | Sequence[str], *, filters: Filters) -> Flow[Recall]:
        """What was said here and fits a question, by meaning and by words, in one round trip beside the models.

        Args:
            query: The question, in the user's words, of which 10,000 characters count; blank lists what the filters
                leave. Or up to 8 of them: the ranking serves each, its best first.
            filters: What narrows it down.

        Returns:
            The chunks, the best first, and how they were found.

        Raises:
            InvalidInputError: An argument is none of its choices.
            MigrationConflictError: What is stored was embedded by another model.
            SupabaseMemoryError: The database refused or could not be reached.
        """
        made = search.recall_chunks(
            Scope.of(self._key),
            check_questions(query, filters.in_zone(self._memory.settings.time_zone)),
            self._memory.capabilities,
        )
        return (yield from made)

    def chunks(self) -> Flow[list[Chunk]]:
        """The chunks that are not expired, in order."""
        return (yield from indexing.chunks(self._key))

    def index(self, *, chunking: ChunkPolicy | None = None) -> Flow[IndexResult]:
        """Index now what can not be recalled yet; the same messages never make a second chunk.

        Args:
            chunking: How; the memory's by default.

        Returns:
            What was done. An embedder that failed is no error: it costs the vectors, and is asked again later.

        Raises:
            MigrationConflictError: What is stored was embedded by another model.
            SupabaseMemoryError: The database refused or could not be reached.
        """
        check_settings(chunking=chunking)
        policy = chunking or self._memory.settings.chunking
        return (
            yield from indexing.index_messages(
                self._key, policy, model=self._memory.embedder_name, respect_backoff=False
            )
        )

    def index_summaries(self) -> Flow[int]:
        """Give the newest summary a vector of the memory's embedder, where it has none.

        Returns:
            How many summaries were embedded.

        Raises:
            ConfigurationError: There is no embedder.
            EmbeddingError: The embedder failed.
        """
        return (yield from summary_recall.index_summaries(Scope.of(self._key), model=self._embedder_name()))

    def reembed(self, *, drop: bool = False) -> Flow[int]:
        """Give every chunk a vector of the memory's embedder. The vectors of other models stay in use meanwhile.

        Args:
            drop: Whether to remove the vectors of other models, once no chunk lacks one of this.

        Returns:
            How many chunks were embedded.

        Raises:
            ConfigurationError: There is no embedder.
            EmbeddingError: The embedder failed; what was done so far stays, and the next call goes on.
            MigrationConflictError: With `drop`, others went on indexing with another embedder; nothing was removed.
        """
        return (yield from indexing.reembed(self._key, model=self._embedder_name(), drop=drop))

    # What people control, and how the work stands

    def opt_out(self, topic: str | None = None, *, actor: str) -> Flow[bool]:
        """Do not remember this conversation, or a topic in it.

        The conversation's messages stay, for the chat needs them; all that is derived from it goes in the same
        transaction, and nothing new is made: no chunk, no summary, no board. What a person or the application wrote,
        pinned, rated or deleted on its board stays until they delete it; a segment of the summary that one edited
        stands for messages, and goes. For a minute `opt_in` undoes it; later it makes the rest anew. What had moved to
        long-term memory goes with the next `forget_source`. The conversation need not have begun. For a topic see
        `SupabaseMemory.opt_out`, which is about all of a user's conversations.

        Args:
            topic: The topic, up to 200 characters; `None` for the conversation itself.
            actor: Who says so.

        Returns:
            Whether that is new.

        Raises:
            InvalidInputError: The topic has no letters.
        """
        return (yield from controls.opt_out(Scope.of(self._key), topic, actor))

    def opt_in(self, topic: str | None = None, *, actor: str) -> Flow[bool]:
        """Remember again what `opt_out` with the same arguments had named.

        Within a minute of `opt_out` it is undone: summaries, the board, ratings and the title are as they were, and
        chunks are indexed again. What was written in that minute stays. Where messages changed or went in it, and
        after it, a conversation is due again from its beginning; of a topic, what was not indexed is indexed again, and
        summaries and boards stay as they are until they are regenerated.

        Args:
            topic: The topic; `None` for the conversation itself.
            actor: Who says so.

        Returns:
            Whether it had not been remembered.
        """
        return (yield from controls.opt_in(Scope.of(self._key), topic, actor))

    def opt_outs(self) -> Flow[list[OptOut]]:
        """What is not to be remembered of it, with who said so and when."""
        return (yield from controls.opt_outs(Scope.of(self._key)))

    def changes(self, *, limit: int = 100) -> Flow[list[ControlChange]]:
        """Who changed what by opt-outs, ratings and edits of summaries, and when, the newest first.

        Args:
            limit: The most, up to 500.
        """
        return (yield from controls.changes(Scope.of(self._key), limit))

    def status(self) -> Flow[ConversationStatus | None]:
        """What of it is due, running, waiting or dead, and how far it is covered; `None` if there is no such one."""
        key = self._key
        found = yield from work.status(key.user_id, agent_id=key.agent_id, thread_id=key.thread_id)
        return found[0] if found else None

    def retry(self) -> Flow[int]:
        """Try again what workers have given up here; it needs a server's rights.

        Returns:
            How many conversations: 1 or 0.
        """
        key = self._key
        return (yield from work.retry(key.user_id, agent_id=key.agent_id, thread_id=key.thread_id))

    def comparisons(self, *, last: int = 100) -> Flow[list[Comparison]]:
        """The newest comparisons that a rollout made here, in order. They are kept for 30 days.

        Args:
            last: How many.
        """
        return (yield from comparison.comparisons(self._key, last))

    def _writer(self, model: Summarizer | None) -> Flow[SummaryModel]:
        made = yield from writers.summarizer_of(INHERITED if model is None else model, self._memory.model)
        return writers.require_summarizer(made)

    def _embedder_name(self) -> str:
        return embedders.require_embedder(self._memory.embeddings).name
