"""The flows over usage: count what is not counted yet, list it by day, and count users over all users."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import date, datetime
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory.effects import Flow, call
from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.operations.arguments import check_limit
from langchain_supabase_memory.operations.pages import concerns_everybody, isolate_failure, key_of
from langchain_supabase_memory.values import Signal

if TYPE_CHECKING:
    from collections.abc import Sequence

COUNTED: Final = "usage_counted"
"""The chore that is noted when everything is counted, so that the next time only what changed since is looked at."""

_PAGE: Final = 200
_STEP: Final = 5000
"""How many messages, chunks and segments of one owner are counted in one transaction."""


@dataclass(frozen=True)
class UsageDay:
    """What a user's conversations with an agent came to on one day.

    Attributes:
        agent_id: The agent.
        day: The day, in UTC.
        turns: The user's messages.
        messages: All messages.
        characters: Their characters.
        packs: Prompts that came with a manifest.
        pack_tokens: The tokens of these prompts, estimated.
        whole_tokens: The tokens of the whole history in their place.
        wider: For how many prompts the whole history was smaller than the prompt.
        calls: For how many prompts the model reported its tokens.
        input_tokens: The tokens that these models read.
        cached_tokens: How many of these came from a cache.
        output_tokens: The tokens that they wrote.
        recalls: The prompts for which recall searched.
        recalls_empty: The prompts for which it found nothing.
        passages: The passages that prompts showed.
        boards_shown: The prompts that showed the board.
        failures: The prompts whose summary, recall or reranker failed.
        summaries: The segments written.
        boards: The revisions of boards.
        chunks: The chunks indexed.
        embeds: The chunks that have a vector.
        signals: The number of chunks with each signal; signals without any are left out.
        tone: The mean tone, from -100 to 100; `None` without a tone function.
    """

    agent_id: str
    day: date
    turns: int = 0
    messages: int = 0
    characters: int = 0
    packs: int = 0
    pack_tokens: int = 0
    whole_tokens: int = 0
    wider: int = 0
    calls: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    recalls: int = 0
    recalls_empty: int = 0
    passages: int = 0
    boards_shown: int = 0
    failures: int = 0
    summaries: int = 0
    boards: int = 0
    chunks: int = 0
    embeds: int = 0
    signals: Mapping[str, int] = field(default_factory=dict)
    tone: float | None = None

    @property
    def spared_tokens(self) -> int:
        """The tokens that the prompts were smaller than the whole histories; 0 if they were larger."""
        return max(0, self.whole_tokens - self.pack_tokens)


@dataclass(frozen=True)
class UserCount:
    """How many users did something on a day.

    Attributes:
        agent_id: The agent.
        day: The day, in UTC.
        what: `talked`, the name of a signal, or `empty_recall`.
        users: The approximate number of users.
    """

    agent_id: str
    day: date
    what: str
    users: int


@dataclass(frozen=True)
class Insights:
    """Counts over all users, with noise.

    Attributes:
        k: The minimum number of users that share a count.
        least: Counts below this, after noise, are left out.
        error: In 19 of 20 counts, the noise is smaller than this.
        counts: The counts by day, agent and what was counted.
    """

    k: int
    least: float
    error: int
    counts: tuple[UserCount, ...]


_NUMBERS: Final = tuple(each.name for each in fields(UsageDay) if each.default == 0)
_SIGNALS: Final = tuple(each.label for each in Signal)


def by_day(
    owner: str | None, *, since: date | None = None, until: date | None = None, agent_id: str | None = None
) -> Flow[list[UsageDay]]:
    """List what the user's conversations came to on each day, the oldest day first.

    A day without anything has no row. Today's numbers are those that were counted so far.

    Args:
        owner: The owner; `None` means the access token's subject.
        since: The first day, in UTC; by default 30 days up to `until`.
        until: The last day, in UTC; by default today.
        agent_id: Only conversations with this agent; by default each agent has its own rows.

    Raises:
        InvalidInputError: A day is no date, or a time.
    """
    asked = {"p_from": _day("since", since), "p_to": _day("until", until), "p_agent_id": agent_id}
    rows = yield from call("memory_usage", {**asked, "p_user_id": owner})
    return [_usage_day(row) for row in rows]


def update(user_id: str | None) -> Flow[int]:
    """Count what was said, sent and found since it was counted last.

    A worker does it by itself. It may be killed and repeated at any time: nothing is counted twice. It needs server
    permissions.

    Args:
        user_id: Only this owner's conversations; by default the memory's user.

    Returns:
        How many messages were counted.
    """
    return (yield from count_changed(user_id, None))


def count_changed(user_id: str | None, seconds: float | None) -> Flow[int]:
    """Count what is not counted yet of conversations that changed.

    Args:
        user_id: Only this owner's conversations; `None` means everybody's.
        seconds: Only those that changed in the last so many seconds; `None` means all of one owner, and of everybody
            those that changed since a day before the last time.

    Returns:
        How many messages were counted.
    """
    counted = 0
    after: Mapping[str, Any] = {}
    while True:
        place = {"p_after_hour": after.get("hour"), "p_after_user": after.get("user"), "p_after": after.get("id")}
        page = yield from call(
            "memory_worker_usage", {"p_limit": _PAGE, "p_seconds": seconds, "p_user_id": user_id, **place}
        )
        for owner, rows in groupby(page["conversations"], key=itemgetter("user_id")):
            counted += yield from _count_rows(owner, list(rows))
        if page["after"] is None:
            break
        after = page["after"]
    if user_id is None:
        yield from call("memory_worker_chore", {"p_name": COUNTED, "p_every_seconds": 0})
    return counted


def insights(
    *, since: date | None = None, until: date | None = None, agent_id: str | None = None, k: int | None = None
) -> Flow[Insights]:
    """Count users over all users by whole day: how many talked, had each signal, or got nothing from recall.

    The counts have noise, so that nobody can tell by them whether somebody is among them. Users who refuse
    analytics are in none. It needs server permissions.

    Args:
        since: The first day, in UTC; by default 30 days up to `until`.
        until: The last day, in UTC; by default yesterday, which is also the last possible day.
        agent_id: Only users of this agent.
        k: Leaves out more counts than the database does by itself; a smaller number has no effect.

    Raises:
        InvalidInputError: A day is no date, or k is negative.
    """
    check_limit("k", k)
    asked = {"p_from": _day("since", since), "p_to": _day("until", until), "p_agent_id": agent_id, "p_k": k}
    answer = yield from call("memory_worker_insights", asked)
    counts = (
        UserCount(row["agent_id"], date.fromisoformat(row["day"]), row["what"], int(row["users"]))
        for row in answer["cells"]
    )
    return Insights(answer["k"], float(answer["least"]), int(answer["error"]), tuple(counts))


def _count_rows(owner: str, rows: Sequence[Mapping[str, Any]]) -> Flow[int]:
    """Count conversations of one owner together, or each by itself where one of them cannot be counted."""
    try:
        return (yield from _count(owner, [row["id"] for row in rows]))
    except Exception as error:
        if concerns_everybody(error):
            raise
    counted = 0
    for row in rows:
        key = key_of(row)
        if key is not None:
            counted += yield from isolate_failure(key, _count(owner, [row["id"]]), lambda _: 0)
    return counted


def _count(owner: str, ids: Sequence[str]) -> Flow[int]:
    counted = 0
    while True:
        asked = {"p_conversations": ids, "p_user_id": owner, "p_limit": _STEP}
        answer = yield from call("memory_worker_count_usage", asked)
        counted += int(answer["counted"])
        if not answer["more"]:
            return counted


def _day(name: str, value: date | None) -> str | None:
    if value is None:
        return None
    if isinstance(value, datetime) or not isinstance(value, date):
        raise InvalidInputError(f"{name} is no day.", hint="Pass a datetime.date; days are in UTC.")
    return value.isoformat()


def _usage_day(row: Mapping[str, Any]) -> UsageDay:
    signals = {name: count for name, count in zip(_SIGNALS, row["signals"], strict=True) if count}
    tone = round(row["tone_sum"] / row["tone_count"], 1) if row["tone_count"] else None
    numbers = {name: row[name] for name in _NUMBERS}
    return UsageDay(row["agent_id"], date.fromisoformat(row["day"]), **numbers, signals=signals, tone=tone)
