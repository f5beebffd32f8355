"""A history that is sent anew without ids, aligned with what is stored, so that nothing is stored twice."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class ComparableMessage(NamedTuple):
    """What two copies of a message have in common.

    Attributes:
        role: Who said it.
        text: The words, without spaces around them.
        calls: The names and arguments of the tools that it calls.
    """

    role: str
    text: str
    calls: str


def comparable(row: Mapping[str, Any]) -> ComparableMessage:
    """What a row says; one to be stored, or one that is.

    Args:
        row: With `role`, `text` and `payload`.
    """
    calls = [[call.get("name"), call.get("args")] for call in row["payload"]["data"].get("tool_calls") or ()]
    return ComparableMessage(row["role"], row["text"].strip(), json.dumps(calls, sort_keys=True))


def align(
    state: Sequence[ComparableMessage], history: int, stored: Sequence[ComparableMessage], *, is_whole: bool
) -> dict[int, int] | None:
    """Which stored message each message of a state is.

    The end of what is stored is looked for in the state, so that equal messages stay in their places; the newest answer
    may have been edited, and so may older messages where both begin together. Failing that, the whole history may be a
    part of what is stored, which was left there for another question.

    Args:
        state: What the state holds.
        history: How many of these come before the current turn.
        stored: The newest of what is stored.
        is_whole: Whether that is all.

    Returns:
        Places in `stored` by places in `state`; `None` if the state has nothing to do with it.
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


def _is_edited(state: Sequence[ComparableMessage], end: int, history: int, stored: Sequence[ComparableMessage]) -> bool:
    """Whether the newest stored message is an answer, of which the history has another wording."""
    return end < history and stored[-1].role == "assistant" == state[end].role


def _run(state: Sequence[ComparableMessage], stored: Sequence[ComparableMessage]) -> tuple[int, int]:
    """The longest run of the state that is the end of what is stored: its length, and where it ends in the state."""
    longest, longest_end = 0, 0
    for end in range(1, len(state) + 1):
        length = 0
        while length < min(end, len(stored)) and state[end - 1 - length] == stored[len(stored) - 1 - length]:
            length += 1
        if length > longest:
            longest, longest_end = length, end
    return longest, longest_end
