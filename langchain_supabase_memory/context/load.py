"""The flow behind `context`: one call that reads what the budget needs; a summary first, if the policy asks for it."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from datetime import UTC
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from langchain_core.messages import ToolMessage

from langchain_supabase_memory.context.board import BoardPart, allocate, is_persons, most_items
from langchain_supabase_memory.context.fit import (
    LEFT_OUT,
    LEFT_TO_RECALL,
    NO_ROOM,
    SUPERSEDED,
    UNREADABLE,
    FittedContext,
    History,
    fit,
)
from langchain_supabase_memory.context.manifest import POINTED_AT, REFERENCE_ID
from langchain_supabase_memory.context.pack import ContextPack
from langchain_supabase_memory.context.recall_part import RecallPart
from langchain_supabase_memory.context.recent_messages import recent_messages
from langchain_supabase_memory.context.summary_part import SummaryPart
from langchain_supabase_memory.context.token_meter import Sizes, meter
from langchain_supabase_memory.effects import INLINE_LIMIT, Flow, call, named_like, offload
from langchain_supabase_memory.errors import MigrationConflictError
from langchain_supabase_memory.language import tokens
from langchain_supabase_memory.language.messages import codec, content, fence
from langchain_supabase_memory.language.messages.blocks import PromptEntry
from langchain_supabase_memory.language.query_hints.statement import is_question_or_request
from langchain_supabase_memory.operations.arguments import conversation_ids, retention_argument
from langchain_supabase_memory.operations.branch import ALONE, Lineage
from langchain_supabase_memory.operations.conversations import forget_expired, read_rows
from langchain_supabase_memory.operations.recall import search
from langchain_supabase_memory.operations.recall.indexing import index_messages
from langchain_supabase_memory.operations.summaries import read_segment, shorten, summarize
from langchain_supabase_memory.operations.unreadable import quarantine
from langchain_supabase_memory.settings import DEFAULT_POLICY

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import tzinfo

    from langchain_core.messages import BaseMessage

    from langchain_supabase_memory.context.recall_part import RecallRequest
    from langchain_supabase_memory.context.token_meter import Meter
    from langchain_supabase_memory.settings import ContextBudget, Retention, SummaryPolicy
    from langchain_supabase_memory.values import Chunk, ConversationKey, IndexResult, SummaryResult, Turn

T = TypeVar("T")

VIA: Final = "graph"
"""What `metadata` says of messages that came from a graph's state, whose branches supersede one another."""

_LIMIT: Final = 1000
"""The most messages that one pack reads."""


_ASKED: Final = 8_400
"""The most characters of what is recalled for a question; the questions of the last messages share it."""

_UNASKED: Final = 300
"""The most characters of what is recalled where the user asks nothing."""

_SHARING: Final = 4
"""Questions among so many of the user's last messages share what is recalled: who asks at every turn pays each time."""

_WORTH: Final = 0.45
"""A passage is shown that has at least this share of the best one's score."""

_INDEXING_SECONDS: Final = 8.0
"""How long an answer waits for the vectors of one batch; without them its words are indexed all the same."""


def load_context(
    key: ConversationKey,
    *,
    budget: ContextBudget,
    policy: SummaryPolicy,
    current: Sequence[BaseMessage] = (),
    branch: Sequence[BaseMessage] | None = None,
    lineage: Lineage = ALONE,
    pending: Sequence[BaseMessage] = (),
    summarizer: str | None = None,
    retention: Retention | None = None,
    recalling: RecallRequest | None = None,
    prepared: bool = True,
    passages: Sequence[str] | None = None,
) -> Flow[ContextPack]:
    """What the next prompt receives, in one round trip; with more, if a summary has to be made first.

    Args:
        key: The conversation; one that does not exist gives an empty pack.
        budget: The most that the pack may hold.
        policy: Whether and when a summary is made first.
        current: The current turn: the user's message, and what followed it so far. It is not part of the history,
            whether it is stored already or not, and the user's message is never cut.
        branch: The history as a graph's state has it.
        lineage: Where that comes from. Where the run names the checkpoint that it goes on from, messages that came from
            a graph and lie beyond it are left out.
        pending: Messages that could not be stored yet; they are shown last.
        summarizer: The name of the summary model that is at hand; `None` if there is none.
        retention: What is kept; what is beyond it is not shown, and removed before anything is made from the rest.
        recalling: What is recalled; `None` for nothing.
        prepared: Whether what is due is summarized and indexed first, where the policies say so.
        passages: The ids of the passages that an earlier prompt of this turn showed, in order: those that are still
            found are shown again, and no others.

    Returns:
        The pack.

    Raises:
        MigrationConflictError: What is stored was embedded by another model than is at hand.
        SupabaseMemoryError: The database refused or could not be reached.
    """
    within = policy.for_budget(budget, recalls=recalling is not None)
    ask = ContextRequest(key, budget, within, current, branch, lineage, pending, retention, recalling, passages)
    pack = yield from ask.load()
    if not prepared:
        return pack
    summarized = indexed = None
    if summarizer is not None and policy.mode == "inline" and pack.due:
        made = summarize(
            key, within, summarizer=summarizer, at_least_through=pack.due_through, max_segments=policy.inline_segments
        )
        summarized = yield from load_after_expiry(pack, retention, made)
    if recalling is not None and is_index_due(pack, recalling, summarized):
        try:
            indexed = yield from load_after_expiry(pack, retention, index_before_loading(key, recalling))
        except MigrationConflictError:
            if recalling.strict:
                raise
    if (summarized and (summarized.segments or summarized.conflict)) or (
        indexed and (indexed.chunks or indexed.embedded)
    ):
        pack = yield from ask.load()
    return replace(pack, summary_error=summarized.failed) if summarized and summarized.failed else pack


def is_index_due(pack: ContextPack, recalling: RecallRequest, summarized: SummaryResult | None) -> bool:
    """Whether messages have to be indexed before the answer: a segment takes them out of view in the same turn.

    Args:
        pack: The pack as it was read before the segment was made.
        recalling: What is recalled.
        summarized: What was summarized since; `None` if nothing was due.
    """
    has_segment = summarized is not None and bool(summarized.segments) and not pack.opted_out
    return pack.index_due or (has_segment and recalling.chunking.mode == "inline")


def load_after_expiry(pack: ContextPack, retention: Retention | None, flow: Flow[T]) -> Flow[T]:
    """Make something of a conversation whose pack was read.

    A read only hides what has expired, so that is removed first: nothing is made from it.

    Args:
        pack: The pack.
        retention: What is kept, as the pack was read with.
        flow: What makes something.
    """

    def run_flow() -> Flow[T]:
        key = pack.key
        yield from forget_expired(retention, user_id=key.user_id, agent_id=key.agent_id, thread_id=key.thread_id)
        return (yield from flow)

    return named_like(run_flow(), flow) if pack.expired else flow


def index_before_loading(key: ConversationKey, recalling: RecallRequest) -> Flow[IndexResult]:
    """Index what a pack would otherwise miss, as much as may be done before one answer."""
    chunking = recalling.chunking
    flow = index_messages(
        key, chunking, embedder=recalling.means.model, max_batches=chunking.inline_batches, seconds=_INDEXING_SECONDS
    )
    return (yield from flow)


def last_messages(
    key: ConversationKey,
    max_characters: int,
    *,
    current: Sequence[BaseMessage] = (),
    branch: Sequence[BaseMessage] | None = None,
    pending: Sequence[BaseMessage] = (),
    retention: Retention | None = None,
) -> Flow[list[BaseMessage]]:
    """The context without a summary and without anything recalled; see `recent`. Arguments as for `context`.

    Args:
        key: The conversation.
        max_characters: The most messages, those of the current turn among them.
        current: The current turn, which is never cut.
        branch: The history as a graph's state has it.
        pending: Messages that could not be stored yet.
        retention: What is kept.
    """
    rows = yield from read_rows(key, last=max_characters + len(current), columns=["payload"], retention=retention)
    history = _history({"messages": rows}, [*map(PromptEntry, current)], branch, pending)
    return recent_messages([entry.message for entry in history.entries], current, max_characters)


def unread_messages(key: ConversationKey, budget: ContextBudget, pending: Sequence[BaseMessage]) -> Flow[ContextPack]:
    """The pack of what waits to be stored, where nothing can be read; it asks nobody. Arguments as for `context`.

    Args:
        key: The conversation.
        budget: The most that the pack may hold.
        pending: Messages that could not be stored yet.
    """
    asking = ContextRequest(key, budget, DEFAULT_POLICY, (), None, ALONE, pending, None, None)
    return (yield from asking.build_pack({}, _history({}, (), None, pending)))


def omitted_messages(pack: ContextPack) -> int:
    """How many messages a pack neither shows nor covers, though they belong to the conversation."""
    return sum(last - first + 1 for first, last, why in pack.omitted if why not in (SUPERSEDED, LEFT_TO_RECALL))


def referenced_turn_message(turn: Turn, budget: ContextBudget, time_zone: tzinfo = UTC) -> BaseMessage:
    """A turn that the user points at, as a fenced message to stand before theirs; at most a quarter of the budget.

    Args:
        turn: The turn.
        budget: The budget of the pack that it goes with.
        time_zone: The time zone of the user.
    """
    room = max(budget.about_characters // 8, 1)
    text = f"User: {shorten(turn.user_query, room)}\nAssistant: {shorten(turn.ai_response, room)}"
    said = fence.element(
        "referenced_turn", text, number=turn.number, at=f"{turn.created_at.astimezone(time_zone):%Y-%m-%d %H:%M}"
    )
    made = fence.message(fence.fenced([said]), REFERENCE_ID)
    made.response_metadata = {POINTED_AT: [turn.from_sequence, turn.to_sequence, turn.number]}  # providers send none
    return made


@dataclass(frozen=True)
class ContextRequest:
    """Everything that a pack is made from, beside the database; arguments as for `context`."""

    key: ConversationKey
    budget: ContextBudget
    policy: SummaryPolicy
    current: Sequence[BaseMessage]
    branch: Sequence[BaseMessage] | None
    lineage: Lineage
    pending: Sequence[BaseMessage]
    retention: Retention | None
    recalling: RecallRequest | None
    passages: Sequence[str] | None = None

    def load(self) -> Flow[ContextPack]:
        """The pack as it is now, in one round trip beside the embedding of the question."""
        asked, turn = None, [*map(PromptEntry, self.current)]
        if self.recalling is not None:
            asked = yield from search.prepare_recall(self.recalling.questions(self.budget), self.recalling.means)
        arguments = {
            **conversation_ids(self.key),
            **self._bounds(turn),
            "p_retention": retention_argument(self.retention),
            "p_recall": self._recalled(asked),
            "p_branch_ids": self._branch_ids(),
        }
        try:
            document = (yield from call("memory_context", arguments, "load context")) or {}
        except MigrationConflictError as error:
            if asked is None or self.recalling is None or self.recalling.strict:
                raise
            asked = asked.without_vectors(error.message)
            arguments = {**arguments, "p_recall": self._recalled(asked)}
            document = (yield from call("memory_context", arguments, "load context")) or {}
        found = document.get("recalled")
        recall = None if found is None or asked is None else (yield from asked.read_answer(found))
        history = _history(document, turn, self.branch, self.pending)
        pack = yield from self.build_pack(document, history, () if recall is None else recall.chunks)
        yield from quarantine(self.key, history.undecodable)
        is_due, through = _due(document, history, pack, self.policy)
        is_index_due = self._is_index_due(document, pack)
        lacks_summary = any(why in LEFT_OUT or why == NO_ROOM for _, _, why in pack.omitted)
        is_unattended = document.get("unattended", False) and lacks_summary and not pack.opted_out
        return replace(
            pack,
            due=is_due,
            due_through=through,
            index_due=is_index_due,
            recall_error=None if asked is None else asked.failed,
            rerank_error=None if recall is None else recall.rerank_failed,
            unattended=is_unattended,
            expired=document.get("expired", False),
        )

    def _recalled(self, questions: search.PreparedRecall | None) -> dict[str, Any] | None:
        """What the SQL function takes of what is to be recalled."""
        if questions is None or self.recalling is None:
            return None
        return {**questions.document, "scope": self.recalling.scope}

    def _branch_ids(self) -> list[str] | None:
        """The ids of the state's messages, where the database has to say what the run leaves."""
        if self.branch is None or not self.lineage.checkpoint_id:
            return None
        return [codec.row_id(each.id) for each in (*self.branch, *self.current) if each.id is not None]

    def _bounds(self, turn: Sequence[PromptEntry]) -> dict[str, Any]:
        # The current turn may be stored already and is not shown from there: it must not use up what is read.
        said = sum(content.model_input(entry.message, entry.rendered).characters for entry in turn)
        characters = self.budget.about_characters * (1 if self.budget.tokens is None else 2) + said
        most = self.budget.max_messages
        wanted = _LIMIT if most is None else min(_LIMIT, most + 1 + len(self.current))
        # What is surely shown, whatever the labels and the summary take.
        beside = 1 - max(self.budget.recalled_share, self.budget.board or 0)
        recent = int(self.budget.about_characters * beside) - (self.policy.max_characters or 0)
        return {
            "p_characters": characters,
            "p_messages": wanted,
            "p_recent": max(0, recent // 2) + said,
            "p_board": most_items(self.budget),
        }

    def build_pack(
        self, document: Mapping[str, Any], history: History, chunks: Sequence[Chunk] = ()
    ) -> Flow[ContextPack]:
        """The pack of what was read."""
        fitting = partial(self._build_pack, document, history, chunks)
        # A counter of the application may read a vocabulary, or ask a server.
        is_ours = self.budget.token_counter in (None, "approximate")
        kept = () if self.budget.tokens is None else tokens.KEPT
        return (yield from offload(fitting, 0 if is_ours else INLINE_LIMIT, warm_caches=kept))

    def _build_pack(self, document: Mapping[str, Any], history: History, chunks: Sequence[Chunk]) -> ContextPack:
        whole = meter(self.budget)
        history = replace(history, max_media=self.budget.media)
        recalled = RecallPart(chunks, None if self.recalling is None else self.recalling.time_zone, self.key)
        fitted = self._choose(history, recalled, whole, is_recalling=document.get("recalled") is not None)
        recalled = recalled.without_shown(_shown_whole(fitted), self.key)
        recalled = self._worth_showing(recalled, history, whole)
        read = board = BoardPart.from_document(document.get("board"), most_items(self.budget), history.superseded)
        if board:
            fitted, board = self._with_board(board, history, fitted, whole)
        # What the others leave over; where the user's message alone is more than there is, nothing.
        frame = Sizes() if fitted.has_text else whole.sizes(None, SummaryPart().with_note())
        room = (fitted.forms + frame).left_of(whole.limit)
        share = int(whole.limit * (self.budget.board or 0))
        board, recalled = allocate(board, read, recalled, _shown_whole(fitted), self.key, room, share, whole)
        return ContextPack(
            key=self.key,
            budget=self.budget,
            fitted=fitted,
            full_messages=document.get("message_count", 0),
            full_characters=document.get("total_characters", 0),
            full_tokens=document.get("total_tokens", 0),
            through_sequence=document.get("through_sequence", -1),
            summary_error=document.get("summary_error"),
            opted_out=document.get("opted_out", False),
            remembered=recalled,
            board=board,
            work=document.get("work"),
            branch_token=document.get("branch_token"),
            taken=recalled.forms(whole) + board.forms(whole) + (frame if recalled or board else Sizes()),
        )

    def _choose(self, history: History, recalled: RecallPart, meter: Meter, *, is_recalling: bool) -> FittedContext:
        """The history, beside what is recalled."""
        if not self.budget.is_small:
            # Whatever is recalled, the history stays where it is: it changes only with what is stored. In a tool loop
            # that outgrows the room, the passages of its first prompt stay, and the window moves by a step.
            left = copy(meter)
            if self.passages is not None:
                left.limit -= self._worth_showing(recalled, history, meter).weight(meter)
            return fit(history, left, self.budget.max_messages, self.budget.window)
        fitted = self._fit_history(history, meter)
        if not is_recalling or (_fits_whole(fitted) and not recalled.without_shown(_shown_whole(fitted), self.key)):
            return fitted
        # However much is recalled, the history keeps its share, so that the prompt's beginning stays the same.
        room = int(meter.limit * self.budget.recalled_share)
        fitted = self._fit_history(history, meter, room)
        if not _leaves_out(fitted):
            return fitted
        while room and _lacks_summary(fitted):
            # What is recalled stands beside a summary, and never in its place.
            room = room * 7 // 8
            fitted = self._fit_history(history, meter, room)
        found = recalled.without_shown(_shown_whole(fitted), self.key)
        part = found.fitting(Sizes(room, room), meter)
        if len(part.chunks) < len(found.chunks):
            # More was found than has room, so that nothing is left for the history, whatever the question.
            return fitted
        fitted = self._fit_history(history, meter, part.weight(meter))
        repeated = part.without_shown(_shown_whole(fitted), self.key)
        if len(repeated.chunks) < len(part.chunks):
            # What is shown anyway is not recalled, and leaves room for more of the history, which may be shown anyway.
            fitted = self._fit_history(history, meter, repeated.weight(meter))
        return fitted

    def _worth_showing(self, recalled: RecallPart, history: History, meter: Meter) -> RecallPart:
        """What of the passages is worth its price: a user who asks nothing is told little."""
        if self.passages is not None:
            found = {chunk.id: chunk for chunk in recalled.chunks}
            return RecallPart([found[each] for each in self.passages if each in found], recalled.time_zone, self.key)
        if self.budget.is_small or self.recalling is None or not recalled:
            return recalled
        most = int(meter.limit * self.budget.recalled_share)
        if not self.recalling.strict:
            said = [str(each.message.text) for each in (*history.entries, *history.current[:1]) if is_users(each)]
            asked = [is_question_or_request(text) for text in said[-_SHARING:]]
            unit = meter.limit / self.budget.about_characters
            characters = _ASKED // max(1, sum(asked)) if asked and asked[-1] else _UNASKED
            most = min(most // max(1, sum(asked)), int(characters * unit))
            best = max(chunk.score or 0.0 for chunk in recalled.chunks)
            chunks = [chunk for chunk in recalled.chunks if (chunk.score or 0.0) >= best * _WORTH]
            recalled = RecallPart(chunks, recalled.time_zone, recalled.conversation)
        return recalled.fitting(Sizes(most, most), meter)

    def _with_board(
        self, board: BoardPart, history: History, fitted: FittedContext, meter: Meter
    ) -> tuple[FittedContext, BoardPart]:
        """What fits of a board into its share, beside what was chosen without it; that changes as little as it can.

        The board takes from what is recalled first, then from the history; but no pack that leaves out nothing without
        it leaves something out because of it.
        """
        share = int(meter.limit * (self.budget.board or 0))
        part = _unread(board, fitted).fitting(Sizes(share, share), meter)
        weight = part.forms(meter).heavier
        if not part or (fitted.forms + part.forms(meter)).heavier <= meter.limit:
            return fitted, part
        shorter = self._fit_history(history, meter, weight)
        part = _unread(board, shorter).fitting(Sizes(weight, weight), meter)
        if (shorter.forms + part.forms(meter)).heavier <= meter.limit and (
            _leaves_out(fitted) or not _leaves_out(shorter)
        ):
            return shorter, part
        return fitted, _unread(board, fitted).fitting(fitted.forms.left_of(meter.limit), meter)

    def _fit_history(self, history: History, meter: Meter, used: int = 0) -> FittedContext:
        """The history beside something else."""
        left = copy(meter)  # what was weighed once is known
        left.limit = meter.limit - used
        return fit(history, left, self.budget.max_messages)

    def _is_index_due(self, document: Mapping[str, Any], pack: ContextPack) -> bool:
        if self.recalling is None or self.recalling.chunking.mode != "inline" or "indexed_through" not in document:
            return False
        if pack.opted_out or self.passages is not None:  # nothing new is recalled in a tool loop
            return False
        first = document["next_sequence"] if pack.first_sequence is None else pack.first_sequence
        unshown = max([first - 1, *pack.clipped])
        lacks_vectors = self.recalling.means.model is not None and document["unembedded"]
        return document["has_stale"] or document["indexed_through"] < unshown or lacks_vectors


def is_users(entry: PromptEntry) -> bool:
    """Whether a message is the user's."""
    return content.role(entry.message) == "user" and entry.message.id != REFERENCE_ID


def _unread(board: BoardPart, fitted: FittedContext) -> BoardPart:
    """A board without what can be read in the history."""
    board = board.without_shown(_shown_whole(fitted))
    if _fits_whole(fitted) and all(map(is_persons, board.items)):
        return replace(board, context_notes="")
    return board


def _shown_whole(fitted: FittedContext) -> set[int]:
    """The messages that a pack shows whole."""
    shown = {sequence for entry in (*fitted.recent, *fitted.current) for sequence in entry.sequences}
    return shown.difference(fitted.truncated)


def _leaves_out(fitted: FittedContext) -> bool:
    """Whether something is cut, or neither shown nor covered, for want of room."""
    return bool(fitted.ranges or any(why in LEFT_OUT for why in fitted.omitted.values()))


def _lacks_summary(fitted: FittedContext) -> bool:
    """Whether a summary is left out for want of room."""
    return any(why == NO_ROOM for _, _, why in fitted.ranges)


def _fits_whole(fitted: FittedContext) -> bool:
    """Whether everything that is stored is shown as it was said."""
    return fitted.head.summary is None and not _leaves_out(fitted)


def _history(
    document: Mapping[str, Any],
    current: Sequence[PromptEntry],
    branch: Sequence[BaseMessage] | None,
    pending: Sequence[BaseMessage],
) -> History:
    """What there is to choose from; the entries of the current turn get their numbers, where they are stored."""
    rows = document.get("messages", [])
    messages = codec.from_payloads([row["payload"] for row in rows])
    turn = {entry.message.id for entry in current if entry.message.id is not None}
    stored = {message.id: row["sequence"] for row, message in zip(rows, messages, strict=True)}
    for entry in current:
        entry.sequences = (stored[entry.message.id],) if entry.message.id in stored else ()
    on_branch = {message.id: message for message in branch or ()}
    # What a run has left that names its checkpoint, and that is still to be moved out.
    left = set(document.get("superseded") or ())
    entries: list[PromptEntry] = []
    superseded: dict[int, str] = {}
    for row, message in zip(rows, messages, strict=True):
        sequence = row["sequence"]
        if message.id in turn:
            continue
        if message.content == content.HIDDEN and codec.unreadable_message(message) is not None:
            superseded[sequence] = UNREADABLE
            continue
        if sequence in left:
            superseded[sequence] = SUPERSEDED
            continue
        held = on_branch.get(message.id)
        here = held if held is not None and content.is_conversation(held) else message
        entries.append(PromptEntry(content.in_prompt(here), (sequence,)))
    entries += [
        PromptEntry(content.in_prompt(message))
        for message in pending
        if message.id not in stored and message.id not in turn
    ]

    segments = [read_segment(row) for row in document.get("segments", [])]
    whole = not segments or (bool(rows) and rows[0]["sequence"] <= segments[0].to_sequence)
    asked = document.get("asked")
    under_way = sum(entry.counts[1] for entry in current if entry.sequences)
    return History(
        entries=entries,
        segments=[*([None] if whole else []), *segments],
        unread_from=document.get("unread_from"),
        question=None if asked is None else PromptEntry(codec.from_payload(asked["payload"]), (asked["sequence"],)),
        current=current,
        superseded=superseded,
        undecodable=codec.undecodable_rows(rows, messages),
        read=[(row["sequence"], message) for row, message in zip(rows, messages, strict=True)],
        recallable=-1 if document.get("recalled") is None else document.get("indexed_through", -1),
        characters=document.get("total_characters", 0) - document.get("summarized_characters", 0) - under_way,
    )


def _due(
    document: Mapping[str, Any], history: History, pack: ContextPack, policy: SummaryPolicy
) -> tuple[bool, int | None]:
    """Whether a summary is due, and through which message it has to go because that is not shown whole.

    The newest block, and the current turn, are never summarized: where nothing else is left, nothing is due.
    """
    if "conversation_id" not in document or document["summary_waiting"] or pack.opted_out:
        return False, None
    newest = _newest(history, document["next_sequence"])
    if newest <= document["through_sequence"] + 1:
        return False, None
    beyond = (
        (policy.characters, document["total_characters"] - document["summarized_characters"]),
        (policy.tokens, document["total_tokens"] - document["summarized_tokens"]),
        (policy.messages, document["next_sequence"] - 1 - document["through_sequence"]),
    )
    over = any(most is not None and most < held for most, held in beyond) and _is_any_left(document, history, policy)
    left = [min(last, newest - 1) for first, last, why in pack.omitted if why in LEFT_OUT and first < newest]
    left = [last for last in left if last > document["through_sequence"]]
    return over or bool(left), max(left, default=None)


def _is_any_left(document: Mapping[str, Any], history: History, policy: SummaryPolicy) -> bool:
    """Whether there is anything to summarize beside what the policy keeps; as `memory_pending` decides it."""
    through, unread = document["through_sequence"], document.get("unread_from")
    held = [each for each in history.read if each[0] > through]
    if not held or (unread is not None and unread > through):
        return bool(held)
    read = [(sequence, content.role(message), content.characters(message)) for sequence, message in held]
    keep, messages = policy.keep_characters, policy.keep_messages
    segments = document.get("segments") or [{}]
    quality = segments[-1].get("quality")
    if quality is not None and policy.min_quality is not None and quality < policy.min_quality and keep is not None:
        keep = keep if policy.keep_when_poor is None else max(keep, policy.keep_when_poor)
    low = _tail(read, keep, messages)
    middle = _tail(read, None if keep is None else keep // 2, None if messages is None else -(-4 * messages // 5))
    asked = (sequence for sequence, role, _ in read if low <= sequence <= middle and role == "user")
    blocks = (sequence for sequence, role, _ in reversed(read) if sequence <= low and role != "tool")
    cut = next(asked, None)
    cut = next(blocks, None) if cut is None else cut
    return cut is not None and read[0][0] < cut


def _tail(read: Sequence[tuple[int, str, int]], characters: int | None, messages: int | None) -> int:
    """The first of the messages that reach into so many characters, and are no more than so many."""
    lowest, after = read[-1][0], 0
    for sequence, _, held in reversed(read[-messages:] if messages else read):
        if characters is not None and after >= characters:
            break
        lowest, after = sequence, after + held
    return lowest


def _newest(history: History, following: int) -> int:
    """The number of the first message that stays as it is: of the current turn, else of the newest block."""
    if history.current:
        return min((each for entry in history.current for each in entry.sequences), default=following)
    for entry in reversed(history.entries):
        if not isinstance(entry.message, ToolMessage):
            return entry.sequences[0] if entry.sequences else following
    return following
