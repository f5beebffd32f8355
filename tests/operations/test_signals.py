"""Signals and tone of a conversation: set where chunks are made, gone with the words."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.runnables import RunnableLambda

from langchain_supabase_memory import ChunkPolicy, MemoryConfig, Retention, SupabaseMemory
from langchain_supabase_memory.effects import Call
from langchain_supabase_memory.errors import ConfigurationError, InvalidInputError
from langchain_supabase_memory.models import ToneModel
from langchain_supabase_memory.operations.recall.indexing import index_messages
from langchain_supabase_memory.transfer import export_conversations, import_conversations
from langchain_supabase_memory.transfer.sources import jsonl
from langchain_supabase_memory.types import Conversation, FoundSignal, Signal
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
        assert told(conversation.turns.signals(from_sequence=4, to_sequence=8)) == WANTED[2:5]
        assert told(conversation.turns.signals(from_sequence=8)) == WANTED[5:]


@pytest.fixture
def spoken(memory: SupabaseMemory) -> Conversation:
    conversation = memory.conversation("t")
    conversation.append(TALK)
    conversation.index()
    return conversation


def listed(memory: SupabaseMemory, *signals: str) -> list[str]:
    return [each.thread_id for each in memory.conversations(signals=signals or None)]


def bits(memory: SupabaseMemory) -> Signal:
    return memory.conversations()[0].signals


@pytest.mark.parametrize("quotes", [None, [], ["[0,1)"], ["[0,1)", None], ["[0,1)"] * 3], ids=repr)
def test_a_chunk_has_as_many_quotes_as_signals(
    conn_string: str, user_id: str, spoken: Conversation, quotes: list[str | None] | None
) -> None:
    with psycopg.connect(conn_string) as connection, pytest.raises(psycopg.errors.CheckViolation):
        connection.execute(
            "update memory.working_memory_chunks set signals = 3, quotes = %s::int4range[] where user_id = %s and role = 'user'",
            [quotes, user_id],
        )


def test_what_is_forgotten_has_none(memory: SupabaseMemory, spoken: Conversation) -> None:
    spoken.forget_message("m6")
    assert told(spoken.turns.signals()) == [*WANTED[:2], WANTED[5]]
    assert Signal.COMPLAINT not in bits(memory)
    assert listed(memory, "complaint") == []
    assert listed(memory, "complaint", "thanks") == ["t"]
    spoken.forget()
    assert spoken.turns.signals() == []


def test_what_is_edited_has_those_of_its_new_words(memory: SupabaseMemory, spoken: Conversation) -> None:
    spoken.append([HumanMessage("I don't understand the second step.", id="m6")])
    assert told(spoken.turns.signals(only=["complaint", "confusion"])) == [], "no words are left before it is indexed"
    assert Signal.COMPLAINT not in bits(memory)
    spoken.index()
    found = told(spoken.turns.signals(only=["complaint", "confusion"]))
    assert found == [("m6", "confusion", "I don't understand the second step.")]
    assert Signal.CONFUSION in bits(memory)


def test_what_expires_has_none(conn_string: str, user_id: str) -> None:
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory:
        conversation = memory.conversation("t")
        old = datetime.now(UTC) - timedelta(days=9)
        conversation.append(TALK[:4], created_at=[old] * 4)
        conversation.append(TALK[4:])
        conversation.index()
        keep = Retention(max_age=timedelta(days=5))
        assert told(conversation.turns.signals(retention=keep)) == WANTED[2:]
        assert told(conversation.turns.signals()) == WANTED
        memory.forget_expired(retention=keep)
        assert told(conversation.turns.signals()) == WANTED[2:]
        assert Signal.CORRECTION not in bits(memory)


def test_a_quote_is_redacted_as_its_message_is(conn_string: str, user_id: str) -> None:
    from langchain_supabase_memory.redaction import PERSONAL_DATA

    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, redactor=PERSONAL_DATA) as memory:
        conversation = memory.conversation("t")
        conversation.append([HumanMessage("That's wrong, my mail is ana@example.com.", id="m0")])
        conversation.index()
        (found,) = conversation.turns.signals()
        assert found.signal is Signal.CORRECTION
        assert "ana@" not in found.quote


def test_what_is_opted_out_has_none(memory: SupabaseMemory, spoken: Conversation) -> None:
    spoken.opt_out("human", actor="ana")
    spoken.index()
    assert told(spoken.turns.signals()) == [*WANTED[:2], WANTED[5]]
    spoken.opt_out(actor="ana")
    assert spoken.turns.signals() == []
    assert listed(memory, "thanks") == []
    assert bits(memory) == Signal(0)


def test_a_private_conversation_has_none(memory: SupabaseMemory) -> None:
    conversation = memory.conversation("p", private=True)
    conversation.append(TALK)
    conversation.index()
    assert conversation.turns.signals() == []


def test_who_refuses_has_none(memory: SupabaseMemory, spoken: Conversation) -> None:
    other = memory.conversation("u")
    other.append([HumanMessage("Thanks.", id="n0")])
    memory.privacy.consent("signals", allowed=False, actor="ana")
    assert spoken.turns.signals() == []
    assert listed(memory, "thanks") == []
    other.index()
    assert other.turns.signals() == []
    memory.privacy.consent("signals", allowed=True, actor="ana")
    other.append([HumanMessage("Many thanks.", id="n1")])
    other.index()
    assert told(other.turns.signals()) == [("n1", "thanks", "Many thanks.")], "what was said before is not looked at"


def test_a_space_has_none(sql: psycopg.Connection[Any]) -> None:
    row = sql.execute("select memory_private.refused_purposes('space:x')").fetchone()
    assert row == (["signals", "tone"],)


def test_another_user_sees_none(conn_string: str, memory: SupabaseMemory, spoken: Conversation) -> None:
    with SupabaseMemory.from_conn_string(conn_string, user_id="somebody-else") as other:
        assert other.conversation("t").turns.signals() == []
        assert listed(other, "thanks") == []


def test_an_import_has_them_again(memory: SupabaseMemory, spoken: Conversation, user_id: str, tmp_path: Path) -> None:
    export_conversations(memory, tmp_path / "talk.jsonl")
    memory.for_user(user_id).forget_user()
    import_conversations(memory, jsonl(tmp_path / "talk.jsonl"))
    assert spoken.turns.signals() == []
    spoken.index()
    assert told(spoken.turns.signals()) == WANTED


def test_a_list_is_paged_by_signals(memory: SupabaseMemory) -> None:
    words = ["Thanks.", "Forget it.", "That's wrong.", "Where is it?"]
    for number in range(24):
        conversation = memory.conversation(f"t{number:02}")
        conversation.append([HumanMessage(words[number % 4], id=f"m{number}")])
        conversation.index()
    wanted = [f"t{number:02}" for number in range(23, -1, -1) if number % 4 in (0, 2)]
    after, found, pages = None, [], []
    while True:
        page = memory.conversations(signals=["thanks", Signal.CORRECTION], limit=5, after=after)
        pages.append(page)
        found += [each.thread_id for each in page]
        if (after := page.after) is None:
            break
    assert found == wanted
    before = memory.conversations(signals=["thanks", "correction"], limit=5, before=pages[1].before)
    assert [each.thread_id for each in before] == wanted[:5]
    assert listed(memory, "thanks", "correction") == wanted
    assert listed(memory, "complaint") == []
    assert [each.signals for each in memory.conversations(signals="thanks")] == [Signal.THANKS] * 6


@pytest.mark.parametrize("signals", ["anger", ["thanks", "anger"], [Signal(0)], [7.5], []], ids=repr)
def test_what_is_no_signal_is_refused(memory: SupabaseMemory, spoken: Conversation, signals: Any) -> None:
    with pytest.raises(InvalidInputError, match="signal"):
        memory.conversations(signals=signals)
    with pytest.raises(InvalidInputError, match="signal"):
        spoken.turns.signals(only=signals)


class Rater:
    """Rates thanks as good and complaints as bad."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def rate(self, texts: list[str]) -> list[float]:
        self.texts += texts
        return [0.8 if "Thanks" in text else -0.333 for text in texts]


async def rate(texts: list[str]) -> list[float]:
    await asyncio.sleep(0)
    return Rater().rate(texts)


def tones(conversation: Conversation) -> dict[str, float | None]:
    return {each.message_ids[0]: each.tone for each in conversation.chunks.list()}


TONES = {
    "object": Rater(),
    "function": Rater().rate,
    "coroutine": rate,
    "runnable": RunnableLambda(Rater().rate),
    "async runnable": RunnableLambda(rate),
    "model": ToneModel(rate, seconds=5),
}


@pytest.mark.parametrize(
    ("tone", "is_async"),
    [
        pytest.param(tone, is_async, id=f"{name}-{'async' if is_async else 'sync'}")
        for name, tone in TONES.items()
        for is_async in (False, True)
        if is_async or name != "async runnable"  # LangChain gives that one no sync method
    ],
)
async def test_the_tone_is_rated_by_ones_own_function(
    conn_string: str, user_id: str, tone: Any, is_async: bool
) -> None:
    memory = SupabaseMemory.from_conn_string(conn_string, user_id=user_id, config=MemoryConfig(tone=tone))
    async with memory:
        conversation = memory.conversation("t")
        await conversation.aappend(TALK)
        if is_async:
            await conversation.aindex()
        else:
            await asyncio.to_thread(conversation.index)
        found = {each.message_ids[0]: each.tone for each in await conversation.chunks.alist()}
    users = {"m0": -0.33, "m2": -0.33, "m6": -0.33, "m8": 0.8}
    assert found == {**dict.fromkeys(found, None), **users}


def test_only_the_users_own_words_are_rated(conn_string: str, user_id: str) -> None:
    rater = Rater()
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, config=MemoryConfig(tone=rater)) as memory:
        conversation = memory.conversation("t")
        conversation.opt_out("yeti", actor="ana")
        words = ["> you are useless\nWell.", "A yeti ate it.", "```\nbad\n```"]
        conversation.append([HumanMessage(text, id=f"w{n}") for n, text in enumerate(words)])
        conversation.append(TALK[1:])
        conversation.index()
    assert rater.texts == ["Well.", *(str(each.content) for each in TALK if isinstance(each, HumanMessage))]


@pytest.mark.parametrize(
    "tone",
    [lambda texts: 1 / 0, lambda texts: [], lambda texts: [2.0] * len(texts), lambda texts: None,
     lambda texts: ["bad"] * len(texts), lambda texts: [float("nan")] * len(texts)],
    ids=["raises", "too few", "too large", "nothing", "words", "no number"],
)  # fmt: skip
def test_without_a_tone_chunks_are_stored_and_health_counts_it(conn_string: str, user_id: str, tone: Any) -> None:
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, config=MemoryConfig(tone=tone)) as memory:
        conversation = memory.conversation("t")
        conversation.append(TALK)
        assert conversation.index().failed is None
        assert set(tones(conversation).values()) == {None}
        assert told(conversation.turns.signals()) == WANTED
        (cause,) = memory.health().causes
        assert (cause.part, cause.error, cause.times) == ("tone", "ToneError", 1)
        conversation.append([HumanMessage("And now?", id="m9")])
        conversation.index()
        assert memory.health().causes[0].times == 2


def test_who_refuses_is_not_rated(conn_string: str, user_id: str) -> None:
    rater = Rater()
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, config=MemoryConfig(tone=rater)) as memory:
        conversation = memory.conversation("t")
        conversation.append(TALK)
        conversation.index()
        assert tones(conversation)["m8"] == 0.8
        memory.privacy.consent("tone", allowed=False, actor="ana")
        assert set(tones(conversation).values()) == {None}
        assert told(conversation.turns.signals()) == WANTED, "that is another purpose"
        rated = len(rater.texts)
        conversation.append([HumanMessage("And now?", id="m9")])
        conversation.index()
        assert len(rater.texts) == rated


def test_what_rates_nothing_is_refused() -> None:
    for tone in (3, "vader", Rater):
        with pytest.raises(ConfigurationError, match="tone"):
            SupabaseMemory.from_conn_string("postgresql://nowhere", config=MemoryConfig(tone=tone))  # type: ignore[arg-type]


def test_no_caller_stores_signals_of_others(sql: psycopg.Connection[Any], memory: SupabaseMemory, user_id: str) -> None:
    conversation = memory.conversation("t")
    conversation.append([AIMessage("Thanks.", id="m0")])
    pending = sql.execute("select public.memory_pending_chunks('t', %s)", [user_id]).fetchall()[0][0]
    row = {
        "place": 0, "part": 1, "id": "00000000-0000-4000-8000-000000000000", "from_sequence": 0, "to_sequence": 0,
        "message_ids": ["m0"], "stretch": 0, "type": "dialogue", "role": "assistant", "said_at": "2026-03-02",
        "content": "Thanks.", "tokens": 2, "importance": 0.5, "has_time": False, "has_number": False, "signals": 4,
            "quotes": ["[0,6)"],
    }  # fmt: skip
    commit = "select public.memory_commit_chunks('t', %s, -1, %s, 0, %s::json, p_user_id => %s)"
    with pytest.raises(psycopg.errors.CheckViolation, match="speech"):
        sql.execute(commit, [pending["conversation_id"], pending["revision"], json.dumps([row]), user_id])


def test_a_commit_under_way_does_not_bring_back_what_is_refused(memory: SupabaseMemory) -> None:
    conversation = memory.conversation("t")
    conversation.append(TALK)
    flow = index_messages(conversation._key, ChunkPolicy(), embedder=None)
    step = next(flow)
    while not (isinstance(step, Call) and step.function == "memory_commit_chunks"):
        step = flow.send(step.perform(memory._services))
    memory.privacy.consent("signals", allowed=False, actor="ana")
    with pytest.raises(StopIteration):
        while True:
            step = flow.send(step.perform(memory._services))
    assert conversation.turns.signals() == []
    assert bits(memory) == Signal(0)
