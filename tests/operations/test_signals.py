"""Signals and tone of a conversation: set where chunks are made, gone with the words."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.runnables import RunnableLambda

from langchain_supabase_memory import MemoryConfig, Retention, SupabaseMemory
from langchain_supabase_memory.errors import ConfigurationError, InvalidInputError
from langchain_supabase_memory.models import ToneModel
from langchain_supabase_memory.types import FoundSignal, Signal
from tests.embedders import WordEmbedder

TALK: list[BaseMessage] = [
    SystemMessage("Say thank you.", id="s"),
    HumanMessage("How do I reset the timer of the kiln?", id="m0"),
    AIMessage("I'm sorry, I don't understand. Thank you!", id="m1"),
    HumanMessage("That's wrong, I asked for the timer. So how do I reset the kiln's timer?", id="m2"),
    AIMessage("", id="m3", tool_calls=[{"name": "look_up", "args": {}, "id": "c1"}]),
    ToolMessage("Timed out. This is useless, forget it.", id="m4", tool_call_id="c1", status="error"),
    AIMessage("I could not look it up.", id="m5"),
    HumanMessage("You never listen to what I say. Let me talk to a human!", id="m6"),
    AIMessage("One moment.", id="m7"),
    HumanMessage("Thanks.", id="m8"),
]


def told(found: list[FoundSignal]) -> list[tuple[str, str, str]]:
    return [(each.message_id, each.signal.label, each.quote) for each in found]


WANTED = [
    ("m2", "correction", "That's wrong, I asked for the timer."),
    ("m2", "asked_again", "So how do I reset the kiln's timer?"),
    ("m6", "complaint", "You never listen to what I say."),
    ("m6", "asks_for_person", "Let me talk to a human!"),
    ("m6", "tool_failed", "You never listen to what I say."),
    ("m8", "thanks", "Thanks."),
]


@pytest.mark.parametrize("batch", [1, 2, 3, 99], ids="{} at a time".format)
@pytest.mark.parametrize("embeddings", [None, WordEmbedder()], ids=["words", "vectors"])
def test_each_signal_has_its_quote_however_it_arrives(
    conn_string: str, user_id: str, batch: int, embeddings: WordEmbedder | None
) -> None:
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, embeddings=embeddings) as memory:
        conversation = memory.conversation("t")
        for first in range(0, len(TALK), batch):
            conversation.append(TALK[first : first + batch])
            conversation.index()
        found = conversation.turns.signals()
        assert told(found) == WANTED
        assert [each.sequence for each in found] == [3, 3, 7, 7, 7, 9]
        every = Signal.CORRECTION | Signal.ASKED_AGAIN | Signal.COMPLAINT | Signal.ASKS_FOR_PERSON
        every |= Signal.TOOL_FAILED | Signal.THANKS
        [info] = memory.conversations()
        assert info.signals == every
        some = conversation.turns.signals(only=["thanks", Signal.COMPLAINT])
        assert told(some) == [WANTED[2], WANTED[5]]
        assert told(conversation.turns.signals(limit=1)) == WANTED[:2]
        assert sum(each.signals.bit_count() for each in conversation.chunks.list()) == len(WANTED)
