"""Align a history that is sent again without ids with the stored messages, so that nothing is stored twice."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


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
