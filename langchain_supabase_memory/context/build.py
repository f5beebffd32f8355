"""Build a pack of what was read: the history first, then the board and what was recalled. Pure; it asks nobody."""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING, Any

from langchain_supabase_memory.context.board import BoardPart, allocate, max_items_of
from langchain_supabase_memory.context.fit import FittedContext, fit
from langchain_supabase_memory.context.pack import ContextPack
from langchain_supabase_memory.context.profile_part import ProfilePart
from langchain_supabase_memory.context.reasons import CUT, FOR_RECALLED, LEFT_OUT, NO_ROOM
from langchain_supabase_memory.context.recall_part import RecallPart
from langchain_supabase_memory.context.recall_share import is_about_past, worth_showing
from langchain_supabase_memory.context.shared_part import SharedPart
from langchain_supabase_memory.context.summary_part import SummaryPart
from langchain_supabase_memory.context.token_meter import Sizes, meter
from langchain_supabase_memory.context.turn_parts import Position
from langchain_supabase_memory.operations.boards.perspective import is_persons
from langchain_supabase_memory.operations.rows import time_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_supabase_memory.context.history import History
    from langchain_supabase_memory.context.recall_part import RecallRequest
    from langchain_supabase_memory.context.token_meter import Meter
    from langchain_supabase_memory.context.turn_parts import TurnParts
    from langchain_supabase_memory.operations.boards.perspective import Perspective
    from langchain_supabase_memory.settings import ContextBudget
    from langchain_supabase_memory.values import Chunk, ConversationKey


@dataclass(frozen=True)
class PackBuilder:
    """Builds packs of one conversation.

    Attributes:
        key: The conversation.
        budget: The most that the pack may hold.
        request: What is recalled; `None` for nothing.
        turn: The parts that an earlier prompt of the turn showed, which are shown again.
        time_zone: The reader's time zone, for the dates of shared items.
        perspective: The order of the items of boards; the usual one without it.
    """

    key: ConversationKey
    budget: ContextBudget
    request: RecallRequest | None = None
    turn: TurnParts | None = None
    time_zone: tzinfo = UTC
    perspective: Perspective | None = None

    def build(self, document: Mapping[str, Any], history: History, chunks: Sequence[Chunk] = ()) -> ContextPack:
        """Return the pack.

        Args:
            document: The answer of `memory_context`; empty if there is no such conversation.
            history: What there is to choose from.
            chunks: What was recalled.
        """
        whole = meter(self.budget)
        limit = whole.limit
        history = replace(history, max_media=self.budget.media)
        most = max_items_of(self.budget, self.budget.board_share, self.perspective)
        read = board = BoardPart.from_document(document.get("board"), most, history.superseded, self.perspective)
        turn = None if self.turn is None else self.turn.without_lost(chunks)
        shared = SharedPart.from_document(document.get("shared"), self.time_zone, self.perspective)
        is_kept = turn is not None and turn.board.is_part_of(read) and turn.shared.is_part_of(shared)
        if turn is not None and is_kept:
            shared = turn.shared.with_refusals_of(shared)
        else:
            shared = self._fit_shared(shared, whole)
        held = ProfilePart.from_document(document.get("profile"))
        is_same_person = turn is not None and turn.profile.is_part_of(held)
        profile = turn.profile if turn is not None and is_same_person else held.fitting(self.budget, whole)
        limit -= profile.forms(whole).heavier
        whole.limit = limit - shared.forms(whole).heavier
        if turn is not None and is_kept:
            board, recalled = turn.board, turn.recalled
            fitted = self._fit_history(history, whole, turn.forms(whole).heavier)
            if turn.takes_room:
                fitted = _for_recalled(fitted, self._fit_history(history, whole))
        else:
            chunks = chunks if turn is None else turn.recalled.chunks
            recalled = RecallPart(chunks, None if self.request is None else self.request.time_zone, self.key)
            fitted, recalled = self._with_recalled(document, history, recalled, whole)
            if board:
                fitted, board = self._with_board(board, history, fitted, whole)
        # What the others leave over; where the user's message alone is more than there is, nothing.
        frame = Sizes() if fitted.has_text else whole.sizes(None, SummaryPart().with_note())
        if shared and fitted.weight > whole.limit:
            shared = shared.fitting((fitted.forms + frame).left_of(limit), whole)
        whole.limit = limit - shared.forms(whole).heavier
        if not is_same_person:  # a tool loop keeps what its turn began with
            profile = profile.held_since(_moved_at(document, fitted))
        if profile and fitted.weight > whole.limit:
            profile = ProfilePart()
        room = (fitted.forms + frame).left_of(whole.limit)
        if not is_kept or not (board.forms(whole) + recalled.forms(whole)).fits(room):
            share = int(whole.limit * self.budget.board_share)
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
            shared=shared,
            profile=profile,
            work=document.get("work"),
            branch_token=document.get("branch_token"),
            expired=document.get("expired", False),
            position=Position.of(document),
            taken=recalled.forms(whole)
            + board.forms(whole)
            + shared.forms(whole)
            + profile.forms(whole)
            + (frame if recalled or board or shared or profile else Sizes()),
        )

    def _fit_shared(self, shared: SharedPart, meter: Meter) -> SharedPart:
        """What fits of the boards of others into their share."""
        share = int(meter.limit * (self.budget.shared or 0))
        return shared.fitting(Sizes(share, share), meter)

    def _with_recalled(
        self, document: Mapping[str, Any], history: History, recalled: RecallPart, meter: Meter
    ) -> tuple[FittedContext, RecallPart]:
        """The history, and what of the recalled passages is worth showing beside it."""
        if self.budget.is_small:
            fitted = self._share(history, recalled, meter, is_recalling=document.get("recalled") is not None)
            return fitted, self._worth(recalled, fitted, history, meter)
        # Whatever is recalled, the history stays where it is: it changes only with what is stored.
        fitted = self._fit_history(history, meter)
        unshown = recalled.without_shown(_shown_whole(fitted), self.key)
        is_named = self.request is not None and self.request.strict
        if is_named or not is_about_past(recalled, unshown, history):
            return fitted, self._worth(recalled, fitted, history, meter)
        # A question about the past takes what it needs from the history, for its own turn.
        needed = self._worth(recalled, fitted, history, meter, is_about_past=True)
        weight = needed.weight(meter)
        if fitted.weight + weight > meter.limit:
            fitted = self._without_indexed(document, history, meter, weight, fitted)
        return fitted, self._worth(recalled, fitted, history, meter, is_about_past=True)

    def _without_indexed(
        self, document: Mapping[str, Any], history: History, meter: Meter, weight: int, usual: FittedContext
    ) -> FittedContext:
        """The history with so much room for what is recalled; but what is not indexed yet is not taken out of view."""
        through = document.get("indexed_through", math.inf)
        unindexed = {each for each in _shown_whole(usual) if each > through}
        while weight:
            fitted = self._fit_history(history, meter, weight)
            if unindexed <= _shown_whole(fitted):
                return _for_recalled(fitted, usual)
            weight = weight * 3 // 4
        return usual

    def _worth(
        self,
        recalled: RecallPart,
        fitted: FittedContext,
        history: History,
        meter: Meter,
        *,
        is_about_past: bool = False,
    ) -> RecallPart:
        """What of the recalled passages the history does not show, and is worth its price."""
        unshown = recalled.without_shown(_shown_whole(fitted), self.key)
        is_query = self.request is not None and self.request.strict
        return worth_showing(unshown, history, self.budget, meter, is_query=is_query, is_about_past=is_about_past)

    def _share(self, history: History, recalled: RecallPart, meter: Meter, *, is_recalling: bool) -> FittedContext:
        """The history in a small budget, which it shares with what is recalled."""
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

    def _with_board(
        self, board: BoardPart, history: History, fitted: FittedContext, meter: Meter
    ) -> tuple[FittedContext, BoardPart]:
        """What fits of a board into its share, beside what was chosen without it; that changes as little as it can.

        The board takes from what is recalled first, then from the history; but no pack that leaves out nothing without
        it leaves something out because of it.
        """
        share = int(meter.limit * self.budget.board_share)
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
        return fit(history, left, self.budget.max_messages, None if self.budget.is_small else self.budget.window)


def _moved_at(document: Mapping[str, Any], fitted: FittedContext) -> datetime | None:
    """When the prompt's beginning moved last: with its segment, or as the conversation began; `None` if unknown.

    It is unknown where messages are left out that no summary covers: what was learned from these is nowhere else.
    """
    if fitted.ranges or any(why in LEFT_OUT - {CUT} for why in fitted.omitted.values()):
        return None
    summary = fitted.head.summary
    if summary is None:
        return time_of(document.get("created_at"))
    return summary.created_at if summary.edited_at is None else max(summary.created_at, summary.edited_at)


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


def _for_recalled(fitted: FittedContext, usual: FittedContext) -> FittedContext:
    """A history that leaves out more than it would by itself, with the reason of what it leaves out beyond that."""
    there = _shown_whole(usual)
    for sequence, why in fitted.omitted.items():
        if why in LEFT_OUT and sequence in there:
            fitted.omitted[sequence] = FOR_RECALLED
    return fitted


def _leaves_out(fitted: FittedContext) -> bool:
    """Whether something is cut, or neither shown nor covered, for want of room."""
    return bool(fitted.ranges or any(why in LEFT_OUT for why in fitted.omitted.values()))


def _lacks_summary(fitted: FittedContext) -> bool:
    """Whether a summary is left out for want of room."""
    return any(why == NO_ROOM for _, _, why in fitted.ranges)


def _fits_whole(fitted: FittedContext) -> bool:
    """Whether everything that is stored is shown as it was said."""
    return fitted.head.summary is None and not _leaves_out(fitted)
