"""The context without a memory: the last messages of a history, cut where a conversation may be cut."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_core.messages import HumanMessage

from langchain_supabase_memory.context.summary_part import opening
from langchain_supabase_memory.language.messages import chaining
from langchain_supabase_memory.language.messages.blocks import PromptEntry, blocks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import BaseMessage


def recent_messages(
    history: Sequence[BaseMessage], current: Sequence[BaseMessage], max_messages: int
) -> list[BaseMessage]:
    """The last messages, as every provider accepts them.

    A call stays with its results, a history that was broken before is repaired, and where something is cut off the rest
    begins with a user's message, as it does with LangChain's `trim_messages(start_on="human")`. Ids of responses are
    left out, so that all of it is really sent.

    Args:
        history: What was said before the current turn.
        current: The current turn, which is never cut.
        max_messages: The most messages, those of the current turn among them.
    """
    entries = [PromptEntry(message) for message in (*history, *current)]
    made, _ = blocks(entries)
    first, count = len(made), 0
    while first > 0:
        longer = count + len(made[first - 1].entries)
        if longer > max_messages and made[first - 1].place < len(history):
            break
        first, count = first - 1, longer
    shown = made[first:]
    if first > 0 and shown:
        asked = next((block for block in shown if block.is_question), shown[0])
        # Once more without what is cut off, which must not decide how a call is named.
        shown, _ = blocks(entries[asked.place :])
    messages = [entry.message for block in shown for entry in block.entries]
    if messages and not isinstance(messages[0], HumanMessage):
        messages = [opening(), *messages]
    return chaining.cut(messages)
