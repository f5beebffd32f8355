"""Comparisons of the old context with the new one, in numbers: for one model call, and over many."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory import markup
from langchain_supabase_memory.effects import Flow, call
from langchain_supabase_memory.operations.arguments import check_limit, conversation_ids, moment
from langchain_supabase_memory.operations.rollout.stages import STAGES
from langchain_supabase_memory.operations.rows import value_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from langchain_supabase_memory.values import ConversationKey


@dataclass(frozen=True)
class Comparison:
    """The old context (the last messages) and the new one (the pack) for one model call, in numbers.

    Both include the current turn and exclude the developer's own system message. A failed pack has no numbers.

    Attributes:
        thread_id: The conversation's thread.
        user_id: The owner; `None` means the subject of the caller's token.
        agent_id: The agent.
        stage: The stage of the call.
        old_messages: Messages of the old context.
        new_messages: Messages of the new context.
        old_tokens: Approximate tokens of the old context.
        new_tokens: Approximate tokens of the new context.
        old_characters: Characters of the old context.
        new_characters: Characters of the new context.
        old_ms: The time to create the old context, in milliseconds.
        new_ms: The time to create the new context, in milliseconds, including a summary written for it; also if it
            failed.
        shared: How many messages are in both.
        only_old: How many messages are only in the old one.
        only_new: How many messages are only in the new one.
        covered_by_summary: How many of `only_old` the summary in the new one covers; `None` if not recorded.
        omitted: How many messages of the history the new one omits and reports: neither shown nor covered.
        error: Why there is no new context, in one word; `None` if there is one.
        compared_at: When it was recorded; `None` if it was not recorded.
    """

    thread_id: str
    user_id: str | None
    agent_id: str
    stage: str
    old_messages: int
    old_tokens: int
    old_characters: int
    old_ms: float
    new_messages: int | None = None
    new_tokens: int | None = None
    new_characters: int | None = None
    new_ms: float | None = None
    shared: int | None = None
    only_old: int | None = None
    only_new: int | None = None
    covered_by_summary: int | None = None
    omitted: int | None = None
    error: str | None = None
    compared_at: datetime | None = None

    @property
    def saved_tokens(self) -> int | None:
        """The approximate tokens that the new context saves; below 0 if it costs more."""
        return None if self.new_tokens is None else self.old_tokens - self.new_tokens

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as JSON-like values, for a stream event or a log."""
        return {**asdict(self), "compared_at": None if self.compared_at is None else self.compared_at.isoformat()}


@dataclass(frozen=True)
class StageReport:
    """The comparisons of one stage; pairs are the median and the 95th percentile.

    Attributes:
        stage: The stage.
        comparisons: The number of comparisons.
        failures: How many of them have no new context.
        old_tokens: Approximate tokens of the old context.
        new_tokens: Approximate tokens of the new context; `None` if there is none.
        old_ms: Milliseconds to create the old context.
        new_ms: Milliseconds to create the new context.
        saved_percent: The percentage of tokens that the new contexts save; below 0 if they cost more.
        shared: Messages in both, over all comparisons.
        only_old: Messages only in the old context.
        only_new: Messages only in the new context.
        covered_by_summary: How many of `only_old` the summary covers.
        omitted: Messages that the new contexts neither show nor cover.
    """

    stage: str
    comparisons: int
    failures: int
    old_tokens: tuple[float, float]
    new_tokens: tuple[float, float] | None
    old_ms: tuple[float, float]
    new_ms: tuple[float, float] | None
    saved_percent: float | None
    shared: int
    only_old: int
    only_new: int
    covered_by_summary: int
    omitted: int


@dataclass(frozen=True)
class RolloutReport:
    """The comparisons, aggregated by stage.

    Attributes:
        stages: One report for each stage that has comparisons, in the order of the stages.
    """

    stages: tuple[StageReport, ...] = ()

    def __str__(self) -> str:
        """Return a table in plain text."""
        if not self.stages:
            return "No comparisons yet."
        rows = [_HEADINGS, *self._rows()]
        widths = [max(len(row[place]) for row in rows) for place in range(len(_HEADINGS))]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
        )

    def _repr_html_(self) -> str:
        return markup.table("Old and new context, median / 95th percentile", _HEADINGS, self._rows())

    def _rows(self) -> Iterator[tuple[str, ...]]:
        for each in self.stages:
            yield (
                each.stage,
                f"{each.comparisons:,}",
                f"{each.failures:,}",
                _pair(each.old_tokens),
                _pair(each.new_tokens),
                "" if each.saved_percent is None else f"{each.saved_percent:.0f} %",
                _pair(each.old_ms, 1),
                _pair(each.new_ms, 1),
                f"{each.only_old:,} ({each.covered_by_summary:,} covered)",
                f"{each.only_new:,}",
                f"{each.omitted:,}",
            )


_HEADINGS: Final = (
    "stage", "compared", "failed", "old tokens", "new tokens", "saved", "old ms", "new ms", "only old", "only new",
    "omitted",
)  # fmt: skip

_NUMBERS: Final = (
    "old_messages", "new_messages", "old_tokens", "new_tokens", "old_characters", "new_characters", "old_ms", "new_ms",
    "shared", "only_old", "only_new", "omitted", "stage", "error",
)  # fmt: skip


def record_comparison(
    key: ConversationKey, comparison: Comparison, only_old: Sequence[str], through: int
) -> Flow[Mapping[str, Any]]:
    """Store a comparison in numbers, and compute how much of the old context the summary covers.

    Args:
        key: The conversation; if it does not exist, nothing is stored.
        comparison: The comparison.
        only_old: The ids of the messages that are only in the old context; they are not stored.
        through: The last message that the summary in the new context covers; -1 without a summary.
    """
    numbers = {name: getattr(comparison, name) for name in _NUMBERS}
    arguments = {"p_comparison": numbers, "p_only_old": list(only_old), "p_through": through}
    answer: Mapping[str, Any] = yield from call("memory_compare", {**conversation_ids(key), **arguments})
    return answer


def comparisons(key: ConversationKey, *, last: int = 100) -> Flow[list[Comparison]]:
    """List the newest comparisons of a rollout in a conversation, in order. They are retained for 30 days.

    Args:
        key: The conversation.
        last: The maximum number to return.
    """
    rows = yield from call(
        "memory_comparisons", {**conversation_ids(key), "p_limit": check_limit("last", last, optional=False)}
    )
    return [value_of(Comparison, row) for row in rows]


def report(
    *, user_id: str | None = None, agent_id: str | None = None, since: datetime | None = None
) -> Flow[RolloutReport]:
    """Aggregate the comparisons by stage.

    Args:
        user_id: Only this user's comparisons; `None` means all users that the caller may access.
        agent_id: Only this agent's comparisons; `None` means all agents.
        since: Only comparisons from this time on, with a time zone.

    Raises:
        InvalidInputError: The time is naive.
    """
    arguments = {"p_user_id": user_id, "p_agent_id": agent_id, "p_since": moment("since", since)}
    rows = yield from call("memory_comparison_report", arguments)
    order = {str(stage): place for place, stage in enumerate(STAGES)}
    return RolloutReport(tuple(_stage(row) for row in sorted(rows, key=lambda row: order.get(row["stage"], -1))))


def _stage(row: Mapping[str, Any]) -> StageReport:
    pairs = {name: _two(row[name]) for name in ("old_tokens", "new_tokens", "old_ms", "new_ms")}
    old, new = row["all_old_tokens"], row["all_new_tokens"]
    kept = {name: row[name] for name in StageReport.__dataclass_fields__ if name in row and name not in pairs}
    return StageReport(**kept, **pairs, saved_percent=100 * (old - new) / old if old else None)  # type: ignore[arg-type]


def _two(values: Sequence[float | None] | None) -> tuple[float, float] | None:
    if values is None or values[0] is None or values[1] is None:
        return None
    return float(values[0]), float(values[1])


def _pair(values: tuple[float, float] | None, digits: int = 0) -> str:
    return "" if values is None else f"{values[0]:,.{digits}f} / {values[1]:,.{digits}f}"
