"""The flow behind `context`: one call that reads what the budget needs; a summary first, if the policy asks for it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from langchain_core.messages import ToolMessage

from langchain_supabase_memory.context.board import max_items_of
from langchain_supabase_memory.context.build import PackBuilder
from langchain_supabase_memory.context.history import read_history
from langchain_supabase_memory.context.manifest import POINTED_AT, REFERENCE_ID, is_reference
from langchain_supabase_memory.context.profile_part import max_profile_items
from langchain_supabase_memory.context.reasons import BY_NUMBER, LEFT_OUT, LEFT_TO_RECALL, NO_ROOM, SUPERSEDED
from langchain_supabase_memory.context.recent_messages import recent_messages
from langchain_supabase_memory.context.shared_part import NOTHING_SHARED, SharedRequest
from langchain_supabase_memory.context.turn_parts import Position
from langchain_supabase_memory.effects import INLINE_LIMIT, Flow, call, named_like, offload
from langchain_supabase_memory.errors import MigrationConflictError
from langchain_supabase_memory.language import tokens
from langchain_supabase_memory.language.messages import codec, content, fence
from langchain_supabase_memory.language.messages.blocks import PromptEntry
from langchain_supabase_memory.operations.arguments import conversation_ids, retention_argument
from langchain_supabase_memory.operations.boards import perspective as perspectives
from langchain_supabase_memory.operations.branch import ALONE, Lineage
from langchain_supabase_memory.operations.conversations import forget_expired, read_rows
from langchain_supabase_memory.operations.recall import search
from langchain_supabase_memory.operations.summaries import due_argument, shorten, summarize
from langchain_supabase_memory.operations.turns import speaker
from langchain_supabase_memory.operations.unreadable import quarantine
from langchain_supabase_memory.settings import DEFAULT_POLICY, KEPT_SHARE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import tzinfo

    from langchain_core.messages import BaseMessage

    from langchain_supabase_memory.context.history import History
    from langchain_supabase_memory.context.pack import ContextPack
    from langchain_supabase_memory.context.recall_part import RecallRequest
    from langchain_supabase_memory.context.turn_parts import TurnParts
    from langchain_supabase_memory.operations.boards.perspective import Perspective
    from langchain_supabase_memory.operations.conversations import Column
    from langchain_supabase_memory.settings import ContextBudget, Retention, SummaryPolicy
    from langchain_supabase_memory.values import Chunk, ConversationKey, IndexResult, SummaryResult, Turn

T = TypeVar("T")

VIA: Final = "graph"
"""What `metadata` says of messages that came from a graph's state, whose branches supersede one another."""

_LIMIT: Final = 1000
"""The most messages that one pack reads."""


_INDEXING_SECONDS: Final = 4.0
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
    recalls: bool | None = None,
    prepared: bool = True,
    turn: TurnParts | None = None,
    shared: SharedRequest = NOTHING_SHARED,
    profile: bool = False,
    perspective: Perspective | None = None,
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
        recalls: Whether turns recall at all, whatever this one asks; by default whether this one does.
        prepared: Whether what is due is summarized and indexed first, where the policies say so.
        turn: The parts that an earlier prompt of this turn showed: they are shown again, unless something was edited or
            forgotten since.
        shared: Whose boards are read beside that of the conversation.
        profile: Whether what is held of the user is shown.
        perspective: The order of the board's items; the usual one without it.

    Returns:
        The pack.

    Raises:
        MigrationConflictError: What is stored was embedded by another model than is at hand.
        SupabaseMemoryError: The database refused or could not be reached.
    """
    recalls = recalling is not None if recalls is None else recalls
    within = policy.for_budget(budget, recalls=recalls)
    ask = ContextRequest(
        key,
        budget,
        within,
        current,
        branch,
        lineage,
        pending,
        retention,
        recalling,
        recalls,
        turn,
        shared,
        profile,
        perspective,
    )
    pack = yield from ask.load()
    if not prepared:
        return pack
    summarized = indexed = None
    expired = retention if pack.expired else None
    if summarizer is not None and policy.mode == "inline" and pack.due:
        made = summarize(
            key, within, summarizer=summarizer, at_least_through=pack.due_through, max_segments=policy.inline_segments
        )
        summarized = yield from load_after_expiry(key, expired, made)
    if recalling is not None and is_index_due(pack, recalling, summarized):
        try:
            indexed = yield from load_after_expiry(key, expired, index_before_loading(key, recalling))
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


def load_after_expiry(key: ConversationKey, expired: Retention | None, flow: Flow[T]) -> Flow[T]:
    """Make something of a conversation whose pack was read.

    A read only hides what has expired, so that is removed first: nothing is made from it.

    Args:
        key: The conversation.
        expired: The retention that the pack was read with, if something is beyond it; `None` if nothing is.
        flow: What makes something.
    """

    def run_flow() -> Flow[T]:
        yield from forget_expired(expired, user_id=key.user_id, agent_id=key.agent_id, thread_id=key.thread_id)
        return (yield from flow)

    return flow if expired is None else named_like(run_flow(), flow)


def index_before_loading(key: ConversationKey, recalling: RecallRequest) -> Flow[IndexResult]:
    """Index what a pack would otherwise miss, as much as may be done before one answer."""
    from langchain_supabase_memory.operations.recall.indexing import index_messages

    chunking = recalling.chunking
    flow = index_messages(
        key,
        chunking,
        embedder=recalling.capabilities.model,
        max_batches=chunking.inline_batches,
        seconds=_INDEXING_SECONDS,
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
    columns: list[Column] = ["payload", "author_name"] if key.is_in_space else ["payload"]
    rows = yield from read_rows(key, last=max_characters + len(current), columns=columns, retention=retention)
    turn = [*map(PromptEntry, current)]
    history = read_history({"messages": rows}, turn, branch, pending, is_in_space=key.is_in_space)
    said, now = ([entry.message for entry in entries] for entries in (history.entries, history.current))
    return recent_messages(said, now, max_characters)


def unread_messages(key: ConversationKey, budget: ContextBudget, pending: Sequence[BaseMessage]) -> Flow[ContextPack]:
    """The pack of what waits to be stored, where nothing can be read; it asks nobody. Arguments as for `context`.

    Args:
        key: The conversation.
        budget: The most that the pack may hold.
        pending: Messages that could not be stored yet.
    """
    asking = ContextRequest(key, budget, DEFAULT_POLICY, (), None, ALONE, pending, None, None)
    return (yield from asking.build_pack({}, read_history({}, pending=pending, is_in_space=key.is_in_space)))


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
    said = f"{speaker(turn)}: {shorten(turn.user_query, room)}\nAssistant: {shorten(turn.ai_response, room)}"
    # "The second one" may also choose from a list that was just offered, which the prompt shows.
    text = f"The user's words mean this turn, unless they mean something in the newest answer:\n{said}"
    element = fence.element(
        "referenced_turn", text, number=turn.number, at=f"{turn.created_at.astimezone(time_zone):%Y-%m-%d %H:%M}"
    )
    made = fence.message(fence.fenced([element]), REFERENCE_ID)
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
    recalls: bool = False
    turn: TurnParts | None = None
    shared: SharedRequest = NOTHING_SHARED
    profile: bool = False
    perspective: Perspective | None = None

    def load(self) -> Flow[ContextPack]:
        """The pack as it is now, in one round trip beside the embedding of the question."""
        asked, turn = None, [*map(PromptEntry, self.current)]
        if self.recalling is not None and (self.turn is None or self.turn.has_other_conversations):
            asked = yield from search.prepare_recall(self.recalling.questions(self.budget), self.recalling.capabilities)
        try:
            document = yield from self._document(turn, asked)
        except MigrationConflictError as error:
            if asked is None or self.recalling is None or self.recalling.strict:
                raise
            asked = asked.without_vectors(error.message)
            document = yield from self._document(turn, asked)
        if self.turn is not None and not self.turn.is_current(Position.of(document)):
            # Something was edited or forgotten, which may stand in what the turn showed.
            current = [message for message in self.current if not is_reference(message)]
            return (yield from replace(self, current=current, turn=None).load())
        found = document.get("recalled")
        recall = None if found is None or asked is None else (yield from asked.read_answer(found))
        history = read_history(
            document,
            turn,
            self.branch,
            self.pending,
            recalls=self.recalls,
            retention=None if self.budget.is_small else self.retention,
            is_in_space=self.key.is_in_space,
        )
        # What the application names is shown whatever it is.
        is_named = self.recalling is not None and self.recalling.strict
        nothing_fits = recall is not None and not recall.fits and not is_named
        chunks = () if recall is None or nothing_fits else recall.chunks
        pack = yield from self.build_pack(document, history, chunks)
        yield from quarantine(self.key, history.undecodable)
        is_due, through = _due(document, history, pack)
        is_index_due = self._is_index_due(document, pack)
        reasons = {why for _, _, why in pack.omitted}
        lacks_summary = not reasons.isdisjoint(LEFT_OUT)
        is_unattended = document.get("unattended", False) and (lacks_summary or NO_ROOM in reasons)
        return replace(
            pack,
            due=is_due,
            due_through=through,
            index_due=is_index_due,
            index_soon=not is_index_due and self._is_index_soon(document, pack),
            recall_error=None if asked is None else asked.failed,
            rerank_error=None if recall is None else recall.rerank_failed,
            nothing_fits=nothing_fits,
            recall_scope=None if self.recalling is None else self.recalling.scope,
            lacks_summary=lacks_summary,
            unattended=is_unattended and not pack.opted_out,
        )

    def _document(
        self, turn: Sequence[PromptEntry], questions: search.PreparedRecall | None
    ) -> Flow[Mapping[str, Any]]:
        """What the database answers; empty if there is no such conversation."""
        arguments = {
            **conversation_ids(self.key),
            **self._bounds(turn),
            "p_retention": retention_argument(self.retention),
            "p_recall": self._recalled(questions),
            "p_branch_ids": self._branch_ids(),
            "p_due": due_argument(self.policy),
            "p_shared": self.shared.argument(self.budget),
            "p_profile": max_profile_items(self.budget) if self.profile else 0,
        }
        if self.key.author_id is not None:
            arguments["p_author_id"] = self.key.author_id
        return (yield from call("memory_context", arguments, "load context")) or {}

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
        beside = 1 - max(self.budget.recalled_share, self.budget.board_share)
        recent = int(self.budget.about_characters * beside) - (self.policy.max_characters or 0)
        return {
            "p_characters": characters,
            "p_messages": wanted,
            "p_recent": max(0, recent // 2) + said,
            "p_board": max_items_of(self.budget, self.budget.board_share, self.perspective),
        }

    def build_pack(
        self, document: Mapping[str, Any], history: History, chunks: Sequence[Chunk] = ()
    ) -> Flow[ContextPack]:
        """The pack of what was read."""
        builder = PackBuilder(self.key, self.budget, self.recalling, self.turn, self.shared.time_zone, self.perspective)
        fitting = partial(builder.build, document, history, chunks)
        # A counter of the application may read a vocabulary, or ask a server.
        is_ours = self.budget.token_counter in (None, "approximate")
        effort = 0 if is_ours else INLINE_LIMIT
        boards = [*(document.get("shared") or ())]  # they are ordered and dated in any case
        if self.perspective is not None:
            boards.append(document.get("board") or {})
        effort += perspectives.ordering_effort(row["text"] for each in boards for row in each.get("items") or ())
        counting = () if self.budget.tokens is None else tokens.KEPT
        ordering = () if self.perspective is None else perspectives.KEPT
        return (yield from offload(fitting, effort, warm_caches=(*counting, *ordering)))

    def _may_index(self, document: Mapping[str, Any], pack: ContextPack) -> bool:
        """Whether this process indexes what the turn recalls from: nothing new is recalled in a tool loop."""
        if self.recalling is None or self.recalling.chunking.mode != "inline":
            return False
        return "indexed_through" in document and not pack.opted_out and self.turn is None

    def _is_index_due(self, document: Mapping[str, Any], pack: ContextPack) -> bool:
        if self.recalling is None or not self._may_index(document, pack):
            return False
        first = document["next_sequence"] if pack.first_sequence is None else pack.first_sequence
        unshown = max([first - 1, *pack.clipped])
        lacks_vectors = self.recalling.capabilities.model is not None and document["unembedded"]
        return document["has_stale"] or document["indexed_through"] < unshown or lacks_vectors

    def _is_index_soon(self, document: Mapping[str, Any], pack: ContextPack) -> bool:
        """Whether more is shown and not indexed than stays in view with the next segment, or others look for it."""
        if self.recalling is None or not self._may_index(document, pack):
            return False
        through = document["indexed_through"]
        if self.recalling.scope != "conversation":
            return bool(through < document["next_sequence"] - 1)  # another conversation does not show it
        if self.budget.is_small:
            return False
        after = [each.characters for each in pack.fitted.recent if each.sequences and each.sequences[0] > through]
        return sum(after) > self.budget.about_characters * KEPT_SHARE


def _due(document: Mapping[str, Any], history: History, pack: ContextPack) -> tuple[bool, int | None]:
    """Whether a summary is due, and through which message it has to go because that is not shown whole.

    The newest block, and the current turn, are never summarized: where nothing else is left, nothing is due.
    """
    if "conversation_id" not in document or document["summary_waiting"] or pack.opted_out:
        return False, None
    newest = _newest(history, document["next_sequence"])
    if newest <= document["through_sequence"] + 1:
        return False, None
    is_due = document["due"]
    # A segment that the policy makes due covers what a step leaves out for the number of messages alone.
    reasons = LEFT_OUT - BY_NUMBER if is_due and pack.fitted.is_stepped else LEFT_OUT
    left = [min(last, newest - 1) for first, last, why in pack.omitted if why in reasons and first < newest]
    left = [last for last in left if last > document["through_sequence"]]
    return is_due or bool(left), max(left, default=None)


def _newest(history: History, following: int) -> int:
    """The number of the first message that stays as it is: of the current turn, else of the newest block."""
    if history.current:
        return min((each for entry in history.current for each in entry.sequences), default=following)
    for entry in reversed(history.entries):
        if not isinstance(entry.message, ToolMessage):
            return entry.sequences[0] if entry.sequences else following
    return following
