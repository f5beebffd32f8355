"""Align a history that is sent again without ids, or with some, with the stored messages: nothing is stored twice."""

from __future__ import annotations

import json
from bisect import bisect_left
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


class ComparableMessage(NamedTuple):
    """The parts of a message that identify its copies.

    Attributes:
        role: Its role.
        text: Its text, without surrounding spaces.
        calls: The names and arguments of its tool calls.
    """

    role: str
    text: str
    calls: str


def comparable(row: Mapping[str, Any]) -> ComparableMessage:
    """Return the comparable parts of a row, stored or not.

    Args:
        row: A row with `role`, `text` and `payload`.
    """
    calls = [[call.get("name"), call.get("args")] for call in row["payload"]["data"].get("tool_calls") or ()]
    return ComparableMessage(row["role"], row["text"].strip(), json.dumps(calls, sort_keys=True))


def align(
    state: Sequence[ComparableMessage], history: int, stored: Sequence[ComparableMessage], *, is_whole: bool
) -> dict[int, int] | None:
    """Match each message of a state to a stored message.

    The end of the stored messages is searched in the state, so that equal messages keep their positions. The newest
    answer may have been edited, and so may older messages if both lists start together. Otherwise the whole history
    may be an earlier part of the stored messages, where the conversation branched to another question.

    Args:
        state: The state's messages.
        history: How many of them come before the current turn.
        stored: The newest stored messages.
        is_whole: Whether those are all stored messages.

    Returns:
        Indexes in `stored` by indexes in `state`; `None` if the two do not match.
    """
    for edited in (0, 1):
        length, end = _run(state, stored[: len(stored) - edited])
        if length == 0 or (edited and not _is_edited(state, end, history, stored)):
            continue
        first = len(stored) - edited - length
        places = {end - length + place: first + place for place in range(length + edited)}
        if is_whole and end - length == first and all(state[n].role == stored[n].role for n in range(first)):
            places.update({place: place for place in range(first)})
        return places
    if history < 2:
        return None
    beginning = list(state[:history])
    for end in range(len(stored) - 1, history - 1, -1):
        if list(stored[end - history : end]) == beginning:
            return {place: end - history + place for place in range(history)}
    return None


def align_around(
    state: Sequence[ComparableMessage],
    history: int,
    stored: Sequence[ComparableMessage],
    known: Mapping[int, int],
    *,
    is_whole: bool,
) -> dict[int, int] | None:
    """Match the other messages of a state of which some are known by their ids.

    Between two known messages, equal ones are matched in order. Where a single message of a role is left on both sides,
    it was edited. Of the current turn, only what the stored messages end with is matched.

    Args:
        state: The state's messages.
        history: How many of them come before the current turn.
        stored: The newest stored messages.
        known: Indexes in `stored` by indexes in `state`, for the messages that are known; one at least.
        is_whole: Whether `stored` are all stored messages.

    Returns:
        Indexes in `stored` by indexes in `state`; `None` if the known ones stand in another order.
    """
    ordered = sorted(known.items())
    if any(later[1] <= earlier[1] for earlier, later in pairwise(ordered)):
        return None
    (first, first_row), (last, last_row) = ordered[0], ordered[-1]
    places = {**known, **_in_order(state, stored, range(first - 1, -1, -1), range(first_row - 1, -1, -1))}
    for (place, row), (next_place, next_row) in pairwise(ordered):
        places.update(_in_order(state, stored, range(place + 1, next_place), range(row + 1, next_row)))
    places.update(_in_order(state, stored, range(last + 1, history), range(last_row + 1, len(stored))))
    places.update(_edited(state, history, stored, places, is_whole=is_whole))
    rest = stored[max(places.values()) + 1 :]
    if max(places) == history - 1 and list(state[history : history + len(rest)]) == list(rest):
        places.update({history + number: len(stored) - len(rest) + number for number in range(len(rest))})
    return places


def _in_order(
    state: Sequence[ComparableMessage], stored: Sequence[ComparableMessage], places: Iterable[int], rows: Iterable[int]
) -> dict[int, int]:
    """Match places of a state to rows with equal messages, each behind the one before in the given order."""
    order = list(rows)
    equal: dict[ComparableMessage, list[int]] = {}
    for number, row in enumerate(order):
        equal.setdefault(stored[row], []).append(number)
    found: dict[int, int] = {}
    start = 0
    for place in places:
        numbers = equal.get(state[place], [])
        at = bisect_left(numbers, start)
        if at < len(numbers):
            found[place] = order[numbers[at]]
            start = numbers[at] + 1
    return found


def _edited(
    state: Sequence[ComparableMessage],
    history: int,
    stored: Sequence[ComparableMessage],
    places: Mapping[int, int],
    *,
    is_whole: bool,
) -> dict[int, int]:
    """Match messages in another wording: between two matched ones, each that is the only one of its role."""
    end = max(history, max(places) + 1)
    edges = [*([(-1, -1)] if is_whole else []), *sorted(places.items()), (end, len(stored))]
    found: dict[int, int] = {}
    for (place, row), (next_place, next_row) in pairwise(edges):
        # Behind all that is matched, a question is another one.
        for role in ("assistant",) if next_row == len(stored) else ("user", "assistant"):
            mine = [each for each in range(place + 1, next_place) if _is_text(state[each], role)]
            theirs = [each for each in range(row + 1, next_row) if _is_text(stored[each], role)]
            if len(mine) == len(theirs) == 1 and all(
                (mine[0] < other) == (theirs[0] < other_row) for other, other_row in found.items()
            ):
                found[mine[0]] = theirs[0]
    return found


def _is_text(message: ComparableMessage, role: str) -> bool:
    """Return whether a message has a role and calls no tool."""
    return message.role == role and message.calls == "[]"


def _is_edited(state: Sequence[ComparableMessage], end: int, history: int, stored: Sequence[ComparableMessage]) -> bool:
    """Return whether the newest stored message is an answer that the history has in another wording."""
    return end < history and stored[-1].role == "assistant" == state[end].role


def _run(state: Sequence[ComparableMessage], stored: Sequence[ComparableMessage]) -> tuple[int, int]:
    """Find the state's longest run that equals the end of the stored messages; return its length and end index."""
    longest, longest_end = 0, 0
    for end in range(1, len(state) + 1):
        length = 0
        while length < min(end, len(stored)) and state[end - 1 - length] == stored[len(stored) - 1 - length]:
            length += 1
        if length > longest:
            longest, longest_end = length, end
    return longest, longest_end
