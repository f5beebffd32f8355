"""How much a turn recalls: as much as its question is worth, little where the user asks nothing."""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.context.manifest import is_reference
from langchain_supabase_memory.context.recall_part import WORTH_OF_PAST
from langchain_supabase_memory.context.token_meter import Sizes
from langchain_supabase_memory.language.messages import content
from langchain_supabase_memory.language.query_hints.statement import is_question_or_request, mostly_asks

if TYPE_CHECKING:
    from langchain_supabase_memory.context.history import History
    from langchain_supabase_memory.context.recall_part import RecallPart
    from langchain_supabase_memory.context.token_meter import Meter
    from langchain_supabase_memory.language.messages.blocks import PromptEntry
    from langchain_supabase_memory.settings import ContextBudget

ASKED: Final = 8_400
"""The most characters of what is recalled for a question; the questions of the last messages share it."""

UNASKED: Final = 200
"""The most characters of what is recalled where the user asks nothing."""

_SHARING: Final = 4
"""Questions among so many of the user's last messages share what is recalled: who asks at every turn pays each time."""

_IN_A_ROW: Final = 6
"""So many share it where nothing else was said between them."""

_WORTH: Final = 0.45
"""A passage is shown that has at least this share of the best one's score."""

_BEST: Final = 5
"""A question is about the past if so many of the best passages are further back than the history goes."""


def worth_showing(
    recalled: RecallPart,
    history: History,
    budget: ContextBudget,
    meter: Meter,
    *,
    is_query: bool,
    is_about_past: bool = False,
) -> RecallPart:
    """Return the passages that are worth their price.

    Args:
        recalled: What was found.
        history: The history with the current turn.
        budget: The budget; a small one shows whatever fits.
        meter: The meter of the whole budget.
        is_query: Whether the application named what is recalled, which is then always asked for.
        is_about_past: Whether the user asks about the past, and so shares nothing with the questions before.
    """
    if budget.is_small or not recalled:
        return recalled
    room = int(meter.limit * budget.recalled_share)
    if not is_query:
        users = _users(history)
        asked = [is_question_or_request(str(entry.message.text)) for entry in reversed(users[-_IN_A_ROW:])]
        if is_about_past:
            asked = asked[:1]
        sharing = max(1, sum(asked[:_SHARING]), len(list(takewhile(bool, asked))))
        characters = ASKED // sharing if asked and asked[0] else UNASKED
        room = min(room // sharing, characters * meter.limit // budget.about_characters)
        least = WORTH_OF_PAST if is_about_past else _WORTH
        best = max(chunk.score or 0.0 for chunk in recalled.chunks)
        worth = [chunk for chunk in recalled.chunks if (chunk.score or 0.0) >= best * least]
        recalled = replace(recalled, chunks=worth)
    return recalled.fitting(Sizes(room, room), meter)


def is_about_past(recalled: RecallPart, unshown: RecallPart, history: History) -> bool:
    """Return whether the user asks for something that was said before all that is shown.

    The message is mostly a question or a request, and the history shows none of the best passages for it.

    Args:
        recalled: What was found.
        unshown: What of it the history does not show.
        history: The history with the current turn.
    """
    there = {chunk.id for chunk in unshown.chunks}
    users = _users(history)
    if not users or not recalled or not all(chunk.id in there for chunk in recalled.chunks[:_BEST]):
        return False
    return mostly_asks(str(users[-1].message.text))


def _users(history: History) -> list[PromptEntry]:
    return [each for each in (*history.entries, *history.current) if _is_users(each)]


def _is_users(entry: PromptEntry) -> bool:
    return content.role(entry.message) == "user" and not is_reference(entry.message)
