"""Recall and packs of conversations that nobody expects: huge, one-sided, repeated, of any script and any time."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from langchain_supabase_memory import ContextBudget, SupabaseMemory
from langchain_supabase_memory.context.pack import ContextPack
from langchain_supabase_memory.memory.conversation import Conversation
from tests.embedders import WordEmbedder

START = datetime(2026, 3, 2, 9, tzinfo=UTC)
EVERY_WAY = pytest.mark.parametrize("exact_below", [2000, 0], ids=["all", "candidates"])
BUDGET = ContextBudget(characters=4000)
SMALL = ContextBudget(characters=1500)
ASIDE = "Many people came to see it, and all of them went home late and content."
WORDS = [
    "red", "old", "dry", "big", "odd", "low", "wet", "new", "sad", "shy", "tiny", "vast", "calm", "bold", "cold", "warm",
    "dull", "fair", "grim", "holy", "idle", "keen", "lazy", "mild",
]  # fmt: skip


@pytest.fixture(params=[None, WordEmbedder()], ids=["words", "vectors"])
def memory(conn_string: str, user_id: str, request: pytest.FixtureRequest) -> Iterator[SupabaseMemory]:
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, embeddings=request.param, model=None) as memory:
        yield memory


def without_embedder(memory: SupabaseMemory) -> SupabaseMemory:
    return SupabaseMemory(memory._services.transport, user_id=memory.user_id, model=None)


def held(memory: SupabaseMemory, messages: list[BaseMessage], times: list[datetime] | None = None) -> Conversation:
    """A conversation with these messages, indexed."""
    conversation = memory.conversation("t")
    conversation.append(messages, created_at=times)
    conversation.index()
    return conversation


def told(pack: ContextPack) -> str:
    return "\n".join(str(each.text) for each in pack.prompt)


@pytest.mark.slow
def test_a_message_of_megabytes(memory: SupabaseMemory) -> None:
    """One of four is left out and says so; what stands beside it, and in one that is stored, is found."""
    logged = "".join(f"Line {number} of the log is all about water level {number % 97}.\n" for number in range(80_000))
    long = f"{logged[:450_000]}The kiln of Ana exploded.\n{logged[450_000:900_000]}"
    assert len(logged) > 4_000_000
    short: list[BaseMessage] = [HumanMessage(f"Short words {number}.", id=f"m{number}") for number in range(20)]
    short[3] = HumanMessage("The glaze of Ben is green.", id="glaze")
    large: list[BaseMessage] = [
        HumanMessage(logged, id="log"),
        AIMessage("It is large."),
        HumanMessage(long, id="long"),
    ]
    conversation = held(memory, [*short[:10], *large, *short[10:]])
    (log,) = [each.content for each in conversation.chunks.list() if each.message_ids == ["log"]]
    assert "4.1 MB, left out" in log
    for question, name, words in (
        ("Whose kiln exploded?", "long", "The kiln of Ana exploded."),
        ("Which color has the glaze of Ben?", "glaze", "The glaze of Ben is green."),
    ):
        found = without_embedder(memory).conversation("t").recall(question, limit=5).chunks
        assert found[0].message_ids == [name]
        assert words in found[0].content
        assert conversation.recall(question, limit=5).chunks
        assert len(told(conversation.context(question, budget=BUDGET))) <= 4000


@EVERY_WAY
def test_a_question_of_a_hundred_thousand_characters(memory: SupabaseMemory, exact_below: int) -> None:
    messages: list[BaseMessage] = [HumanMessage(f"We spoke of topic{n}.", id=f"m{n}") for n in range(30)]
    conversation = held(memory, [*messages[:5], HumanMessage("The kiln of Ana is red.", id="kiln"), *messages[5:]])
    question = ("Which color has the kiln of Ana? " + "Please tell me all of it, and more. " * 3_000)[:100_000]
    assert len(question) == 100_000
    found = conversation.recall(question, limit=5, exact_below=exact_below)
    assert "kiln" in {each.message_ids[0] for each in found.chunks}
    assert conversation.context(HumanMessage(question), budget=BUDGET).prompt


ROWS = [f"| cone {number} | {900 + 7 * number} degrees | shelf {number % 5} |" for number in range(300)]
TABLE = "\n".join(["| cone | temperature | shelf |", "| --- | --- | --- |", *ROWS])
CODE = "\n".join(["```python", *(f"def cone_{n}(): return {900 + 7 * n}" for n in range(300)), "```"])


@pytest.mark.parametrize(
    ("answer", "question", "line"),
    [(TABLE, "How many degrees has cone 217?", ROWS[217]), (CODE, "cone_217", "def cone_217(): return 2419")],
    ids=["table", "code"],
)
@EVERY_WAY
def test_an_answer_of_one_block(
    memory: SupabaseMemory, answer: str, question: str, line: str, exact_below: int
) -> None:
    """It is cut between lines, and the part that has what is asked for is shown."""
    messages: list[BaseMessage] = []
    for number in range(20):
        messages += [HumanMessage(f"We spoke of topic{number}."), AIMessage(f"That was day {number}.")]
    messages[20:20] = [HumanMessage("Give me all cones."), AIMessage(answer, id="block")]
    conversation = held(memory, messages)
    parts = [each.content for each in conversation.chunks.list() if each.message_ids == ["block"]]
    assert len(parts) > 5
    assert {*"\n".join(parts).splitlines()} <= {*answer.splitlines()}, "no line is cut"
    found = conversation.recall(question, limit=20, exact_below=exact_below).chunks
    (block, *_) = [each for each in found if each.message_ids == ["block"]]
    assert line in block.content
    assert line in told(conversation.context(HumanMessage(question), budget=BUDGET))


@EVERY_WAY
def test_only_the_assistant_speaks(memory: SupabaseMemory, exact_below: int) -> None:
    long = " ".join(f"filler{place}" for place in range(90))
    messages: list[BaseMessage] = [AIMessage(f"Step {n} is about topic{n}. {long}", id=f"m{n}") for n in range(30)]
    messages[7] = AIMessage(f"The kiln reached cone 6. {long}", id="kiln")
    conversation = held(memory, messages)
    assert conversation.recall("Which cone did the kiln reach?", exact_below=exact_below).chunks[0].message_ids == [
        "kiln"
    ]
    assert "The kiln reached cone 6." in told(conversation.context("Which cone did the kiln reach?", budget=BUDGET))


@EVERY_WAY
def test_names_in_three_scripts(memory: SupabaseMemory, exact_below: int) -> None:
    """A name of a script with capitals is a cue; another is found by its words."""
    names = ["Maya", "Дмитрий", "田中"]
    messages: list[BaseMessage] = [
        HumanMessage(f"The glaze is of color {number}. {ASIDE}", name=names[number % 3], id=f"m{number}")
        for number in range(30)
    ]
    conversation = held(memory, messages)
    for name in names:
        question = f"What did {name} say about the glaze?"
        if name[0].isupper():
            found = conversation.recall(question, limit=10, exact_below=exact_below).chunks
            assert all(("speaker" in each.score_parts) is (each.speaker == name) for each in found)
        else:
            found = without_embedder(memory).conversation("t").recall(question, exact_below=exact_below).chunks
        assert found[0].speaker == name
        assert f"({name})" in told(conversation.context(question, budget=SMALL))


@EVERY_WAY
def test_a_thousand_equal_messages(memory: SupabaseMemory, exact_below: int) -> None:
    messages: list[BaseMessage] = [HumanMessage("The kiln is hot.", id=f"m{number}") for number in range(1000)]
    messages[500] = HumanMessage("The kiln is broken.", id="other")
    conversation = held(memory, messages, [START + timedelta(hours=number) for number in range(1000)])
    found = conversation.recall("How is the kiln?", limit=10, exact_below=exact_below).chunks
    assert [each.content for each in found].count("The kiln is hot.") == 1
    (hot,) = [each for each in found if each.content == "The kiln is hot."]
    assert hot.repeats is not None
    if exact_below:
        assert "other" in {each.message_ids[0] for each in found}
        assert (hot.repeats.count, hot.repeats.first, hot.repeats.last) == (999, START, START + timedelta(hours=999))
    assert "said " in told(conversation.context("How is the kiln?", budget=BUDGET))


@EVERY_WAY
def test_days_before_1970_and_after_2038(memory: SupabaseMemory, exact_below: int) -> None:
    times = [
        datetime(1901, 12, 13, 20, tzinfo=UTC),
        datetime(1969, 7, 20, 20, 17, tzinfo=UTC),
        *(START + timedelta(days=number) for number in range(20)),
        datetime(2038, 1, 19, 3, 14, 8, tzinfo=UTC),
        datetime(2107, 5, 3, 12, tzinfo=UTC),
    ]
    messages: list[BaseMessage] = [
        HumanMessage(f"The {word} event took place. {ASIDE}") for word in WORDS[: len(times)]
    ]
    conversation = held(memory, messages, times)
    for time in (*times[:2], *times[-2:]):
        day = f"{time.day} {time:%B} {time.year}"
        (best, *_) = conversation.recall(f"What took place on {day}?", limit=3, exact_below=exact_below).chunks
        assert best.said_at == time
        around = (time - timedelta(hours=1), time + timedelta(hours=1))
        found = conversation.recall("event", time_range=around, exact_below=exact_below).chunks
        assert [each.said_at for each in found] == [time]
        pack = conversation.context(f"What took place on {day}?", budget=SMALL)
        assert time == times[-1] or f"{time.date().isoformat()}:" in told(pack), "the last is shown as it was said"


@EVERY_WAY
def test_a_time_zone_that_changes_in_the_middle(memory: SupabaseMemory, exact_below: int) -> None:
    """Somebody moves from Manila to New York: days are those of where the question is asked."""
    manila, new_york = ZoneInfo("Asia/Manila"), ZoneInfo("America/New_York")
    times = [datetime(2026, 5, 3, 23, tzinfo=manila) - timedelta(days=number) for number in range(10, 0, -1)]
    times += [
        datetime(2026, 5, 4, 1, 0, tzinfo=manila),  # the 3rd in New York
        datetime(2026, 5, 4, 22, 0, tzinfo=new_york),  # the 5th in Manila
    ]
    times += [datetime(2026, 5, 6, 8, tzinfo=new_york) + timedelta(days=number) for number in range(10)]
    messages: list[BaseMessage] = [HumanMessage(f"The {word} place was visited.") for word in WORDS[: len(times)]]
    conversation = held(memory, messages, times)
    for zone, number, other in (("Asia/Manila", 10, 11), ("America/New_York", 11, 10)):
        asked = "What was visited on 4 May 2026?"
        found = conversation.recall(asked, limit=20, time_zone=zone, exact_below=exact_below).chunks
        assert found[0].from_sequence == number
        assert found[0].score_parts["date"] > 0
        assert all("date" not in each.score_parts for each in found if each.from_sequence == other)
