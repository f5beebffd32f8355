"""The flow that reports where every message of a conversation is."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from langchain_supabase_memory.context.load import load_context
from langchain_supabase_memory.context.pack import merge_ranges
from langchain_supabase_memory.context.reasons import UNREADABLE
from langchain_supabase_memory.effects import Flow, call
from langchain_supabase_memory.operations.arguments import conversation_ids, retention_argument
from langchain_supabase_memory.values import Coverage, CoveredRange, LevelFault

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_core.messages import BaseMessage

    from langchain_supabase_memory.settings import ContextBudget, Retention, SummaryPolicy
    from langchain_supabase_memory.values import ConversationKey


def report_coverage(
    key: ConversationKey,
    *,
    budget: ContextBudget,
    policy: SummaryPolicy,
    pending: Sequence[BaseMessage] = (),
    retention: Retention | None = None,
) -> Flow[Coverage]:
    """Report where each message is: verbatim in the next pack, in a segment, omitted, forgotten, or superseded.

    The pack recalls nothing: with recalled passages, fewer messages are verbatim and segments cover more.

    It reads the messages' numbers, not their content; it is meant for people and tests, not for each turn.

    Args:
        key: The conversation; one that does not exist is fully covered.
        budget: The budget of the pack.
        policy: As for `context`; nothing is summarized here.
        pending: As for `context`.
        retention: Messages beyond this retention count as expired, whether they are deleted yet or not.

    Raises:
        SupabaseMemoryError: The database refused or could not be reached.
    """
    document = yield from call(
        "memory_coverage", {**conversation_ids(key), "p_retention": retention_argument(retention)}
    )
    if document is None:
        return Coverage([])
    pack = yield from load_context(key, budget=budget, policy=policy, pending=pending, retention=retention)
    shown = {sequence for entry in pack.fitted.recent for sequence in entry.sequences}
    return _coverage(document, shown, set(pack.clipped), pack.omitted)


def _coverage(
    document: Mapping[str, Any], shown_sequences: set[int], clipped: set[int], omitted: list[tuple[int, int, str]]
) -> Coverage:
    """Split the sequences wherever the state may change, and assign each range its state."""
    stored = [(first, last) for first, last in document["stored"]]
    through, end = document["through_sequence"], document["next_sequence"]
    expired = document["expired_through"]
    aside = [(first, last) for first, last in document["superseded"]]
    edges = {0, end, through + 1}
    begun: dict[int, list[int]] = {}
    ended: dict[int, list[int]] = {}
    for number, first, last, _ in document["segments"]:
        begun.setdefault(max(first, 0), []).append(number)
        ended.setdefault(last + 1, []).append(number)
    for first, last in [*stored, *aside, *((first, last) for first, last, _ in omitted)]:
        edges |= {first, last + 1}
    edges |= {*begun, *ended}
    unreadable = set(document["unreadable"])
    edges |= {edge for sequence in shown_sequences | unreadable for edge in (sequence, sequence + 1)}
    cuts = sorted(edge for edge in edges if 0 <= edge <= end)

    ranges: list[CoveredRange] = []
    gaps = [(sequence, sequence, "") for sequence in document["unshown"]]
    overlaps: list[tuple[int, int, str]] = []
    place = 0
    claims: set[int] = set()
    for first, following in pairwise(cuts):
        last = following - 1
        while place < len(stored) and stored[place][1] < first:
            place += 1
        is_stored = place < len(stored) and stored[place][0] <= first
        claims |= {*begun.get(first, ())}
        claims -= {*ended.get(first, ())}
        number = min(claims, default=None)
        if len(claims) > 1:
            overlaps.append((first, last, ""))
        if is_stored and number is None and first <= through:
            gaps.append((first, last, ""))
        if not is_stored and any(low <= first <= high for low, high in aside):
            made = CoveredRange(first, last, "superseded", number)
        elif not is_stored:
            made = CoveredRange(first, last, "expired" if first <= expired else "forgotten", number)
        elif first in unreadable:
            made = CoveredRange(first, last, "omitted", number, UNREADABLE)
        elif first in shown_sequences and first not in clipped:
            made = CoveredRange(first, last, "verbatim", number)
        elif number is not None:
            made = CoveredRange(first, last, "segment", number)
        else:
            why = next((why for low, high, why in omitted if low <= first <= high), None)
            made = CoveredRange(first, last, "omitted", None, why or "not covered")
        _add(ranges, made)
    return Coverage(ranges, _pairs(gaps), _pairs(overlaps), _levels(document["levels"], stored))


def _levels(rows: Sequence[Sequence[Any]], stored: Sequence[tuple[int, int]]) -> list[LevelFault]:
    """Find faults in the levels of the complete summary.

    Each summary of a level must start where the previous one ends, and a parent must have the exact range of its
    parts.
    """
    levels: dict[int, dict[int, tuple[int, int]]] = {}
    faults: list[LevelFault] = []
    for level, number, first, last, parts in rows:
        below = levels.get(level - 1, {})
        there = levels.setdefault(level, {})
        expected = there[max(there)][1] + 1 if there else 0
        if first > expected and any(low < first and high >= expected for low, high in stored):
            faults.append(LevelFault(level, number, expected, first - 1, "gap"))
        elif first < expected:
            faults.append(LevelFault(level, number, first, min(last, expected - 1), "overlap"))
        there[number] = (first, last)
        if level == 1:
            continue
        made_of = [below[part] for part in parts or () if part in below]
        whole = len(made_of) == len(parts or ()) > 0 and (made_of[0][0], made_of[-1][1]) == (first, last)
        if not whole or any(following[0] != before[1] + 1 for before, following in pairwise(made_of)):
            faults.append(LevelFault(level, number, first, last, "parts"))
    return faults


def _add(ranges: list[CoveredRange], covered: CoveredRange) -> None:
    before = ranges[-1] if ranges else None
    if before is not None and (before.state, before.segment, before.reason) == (
        covered.state,
        covered.segment,
        covered.reason,
    ):
        ranges[-1] = CoveredRange(
            before.from_sequence, covered.to_sequence, covered.state, covered.segment, covered.reason
        )
    else:
        ranges.append(covered)


def _pairs(ranges: list[tuple[int, int, str]]) -> list[tuple[int, int]]:
    return [(first, last) for first, last, _ in merge_ranges(ranges)]
