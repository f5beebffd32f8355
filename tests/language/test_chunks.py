"""From texts to units, kinds and episodes, without a database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from langchain_supabase_memory.language import query_hints
from langchain_supabase_memory.language.chunks import kinds
from langchain_supabase_memory.language.chunks.episodes import assign_episodes
from langchain_supabase_memory.language.chunks.parts import parts
from langchain_supabase_memory.language.chunks.units import StoredText, Unit, units
from langchain_supabase_memory.language.messages import encoded_data, fence
from langchain_supabase_memory.language.tokens import count_tokens
from tests.each_case import each_case

START = datetime(2026, 3, 2, 9, tzinfo=UTC)


def said(*messages: BaseMessage, every: timedelta = timedelta(minutes=1)) -> list[StoredText]:
    return [StoredText(n, f"m{n}", message, START + every * n) for n, message in enumerate(messages)]


def made(*messages: BaseMessage, max_tokens: int = 256, **asked: Any) -> list[Unit]:
    found, _ = units(said(*messages), max_tokens=max_tokens, **asked)
    return found


def calling(*names: str) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": {"n": 1}, "id": name} for name in names])


def result(name: str, text: str = "ok") -> ToolMessage:
    return ToolMessage(text, tool_call_id=name, name=name)


# --- Sentences


def test_a_short_text_is_one_part() -> None:
    assert parts("  One. Two.  ", 50) == ["One. Two."]
    assert parts(" \n ", 50) == []


def test_a_long_text_is_cut_where_a_sentence_ends() -> None:
    sentences = [f"This is sentence number {n}, of some length." for n in range(9)]
    found = parts(" ".join(sentences), 30)
    assert len(found) > 2
    assert all(each.endswith(".") for each in found)
    assert " ".join(found) == " ".join(sentences)


@each_case(
    ("text", "ends"),
    [
        ("我们明天去北京。你有三张票吗？好的，明天见！" * 4, "。？！"),
        ("هل أنت هناك؟ نعم أنا هنا. حسنا. " * 6, "؟."),
        ("First paragraph without an end\n\nSecond paragraph without an end\n\n" * 6, "d"),
    ],
)
def test_sentences_of_other_scripts(text: str, ends: str) -> None:
    found = parts(text, 40)
    assert len(found) > 1
    assert all(each[-1] in ends for each in found)


@given(text=st.text(alphabet=st.sampled_from("abBx1 .!?\n。é我አ😀\u200b"), max_size=400), most=st.integers(1, 40))
def test_nothing_but_white_space_is_lost_and_no_part_is_too_long(text: str, most: int) -> None:
    found = parts(text, most)
    assert "".join("".join(found).split()) == "".join(text.split())
    assert all(each.strip() for each in found)
    assert all(count_tokens(each) <= max(most, 4) for each in found)
    assert bool(found) == bool(text.strip())


def test_one_endless_word_is_cut_all_the_same() -> None:
    found = parts("x" * 100_000, 256)
    assert "".join(found) == "x" * 100_000
    assert max(map(count_tokens, found)) <= 256


# --- Kinds


@each_case(
    ("text", "kind"),
    [
        ("When is it?", "question"),
        ("I met Ana on Tuesday with 3 dogs.", "fact"),
        ("well, you know how that is", "dialogue"),
    ],
)
def test_what_a_text_is(text: str, kind: str) -> None:
    assert kinds.chunk_kind(query_hints.marks(text), is_action=False, after_question=False) == kind


def test_what_follows_a_question_is_an_answer_and_a_tool_is_an_action() -> None:
    found = made(
        HumanMessage("Where is it?"), AIMessage("over there"), calling("find"), result("find"), AIMessage("so")
    )
    assert [unit.parts[0].kind for unit in found] == ["question", "answer", "action", "dialogue"]
    [later] = made(AIMessage("over there"), after_question=True)
    assert later.parts[0].kind == "answer"


@given(text=st.text(max_size=200), kind=st.sampled_from(kinds.KINDS))
def test_importance_lies_between_0_and_1(text: str, kind: Any) -> None:
    assert 0 <= kinds.importance(text, query_hints.marks(text), kind) <= 1


def test_importance_may_be_said_by_a_function_and_stays_in_its_bounds() -> None:
    def weigh(text: str, kind: Any) -> float:
        return {"low": -1.0, "high": 7.0}.get(text, 0.5)

    found = made(HumanMessage("low"), HumanMessage("high"), HumanMessage("other"), importance=weigh)
    assert [unit.parts[0].importance for unit in found] == [0, 1, 0.5]
    names = kinds.importance("Ana paid 300 on Friday.", query_hints.marks("Ana paid 300 on Friday."), "fact")
    assert names > kinds.importance("hm", query_hints.marks("hm"), "dialogue")


@each_case("text", ["Done.", "OK, it's done!", "Tapos na po.", "Fixed the bug.", "Listo.", "Erledigt!"])
def test_what_says_that_something_is_done(text: str) -> None:
    assert kinds.completes(text)


@each_case("text", ["I am not done", "What is done here is wrong", "Done " + "and so on " * 20, ""])
def test_what_does_not(text: str) -> None:
    assert not kinds.completes(text)


# --- Units


def test_calls_stay_with_their_results() -> None:
    found = made(calling("a", "b"), result("a"), result("b"), HumanMessage("thanks"))
    assert [[each.message_id for each in unit.messages] for unit in found] == [["m0", "m1", "m2"], ["m3"]]
    assert found[0].completes
    assert "[a] ok" in found[0].parts[0].text


@each_case(
    ("messages", "more", "taken"),
    [
        ([HumanMessage("q"), calling("a", "b"), result("a")], False, 1),
        ([HumanMessage("q"), calling("a", "b"), result("a")], True, 1),
        ([calling("a", "b"), result("a")], False, 0),
        ([calling("a", "b"), result("a")], True, 2),  # the whole batch is one call's: it is taken as it is
        ([calling("a", "b"), result("a"), HumanMessage("never mind")], False, 3),
        ([calling("a"), result("a")], False, 2),
        ([result("late"), HumanMessage("q")], False, 2),
        ([], False, 0),
    ],
)
def test_what_waits_for_results(messages: list[BaseMessage], more: bool, taken: int) -> None:
    assert units(said(*messages), max_tokens=64, more=more)[1] == taken


def test_what_is_no_talk_becomes_no_unit() -> None:
    ours = fence.fenced(["something"])
    shown = made(SystemMessage("be kind"), HumanMessage(" \n"), calling("recall"), result("recall", ours))
    assert shown == []  # neither what was looked for nor what was found was said
    both = AIMessage("I look.", tool_calls=[*calling("recall").tool_calls])
    [unit] = made(both, result("recall", ours))
    assert [part.text for part in unit.parts] == ["I look."]


def test_a_message_of_many_words_has_an_end() -> None:
    [unit] = made(HumanMessage("word " * 300_000), max_tokens=512)
    assert encoded_data.LONGEST * 0.9 < sum(len(part.text) for part in unit.parts) <= encoded_data.LONGEST
    assert any("[… 500 KB left out …]" in part.text for part in unit.parts)
    assert all(part.tokens <= 512 for part in unit.parts)


def test_nuls_and_halves_of_characters_are_gone_at_once() -> None:
    [unit] = made(HumanMessage("a\x00b \ud800 c", name="A\x00na"))
    assert unit.parts[0].text == "a\ufffdb \ufffd c"
    assert unit.speaker == "A\ufffdna"


# --- Segments


def run(
    messages: list[StoredText], vectors: list[list[float] | None] | None = None, **asked: Any
) -> list[tuple[int, int]]:
    found, _ = units(messages, max_tokens=256)
    asked = {"pause": timedelta(hours=4), "max_tokens": 1000, **asked}
    return [
        (each.place, each.episode) for each in assign_episodes(found, vectors or [None] * len(found), None, **asked)
    ]


def test_a_long_pause_begins_a_segment_and_leaves_a_gap() -> None:
    messages = said(*(HumanMessage(f"kiln {n}") for n in range(4)))
    messages[2:] = [
        StoredText(each.sequence, each.message_id, each.message, each.said_at + timedelta(hours=5))
        for each in messages[2:]
    ]
    assert run(messages) == [(0, 0), (1, 0), (4, 2), (5, 2)]


def test_a_segment_has_a_ceiling() -> None:
    messages = said(*(HumanMessage("the same kiln again and again") for _ in range(9)))
    size = count_tokens("the same kiln again and again")
    episodes = [episode for _, episode in run(messages, max_tokens=3 * size)]
    assert episodes == [0, 0, 0, 3, 3, 3, 6, 6, 6]


def test_a_completed_action_ends_a_segment_at_the_next_question() -> None:
    messages = said(
        HumanMessage("book the flight"),
        calling("book"),
        result("book"),
        AIMessage("Done."),
        HumanMessage("now the kiln"),
    )
    assert [episode for _, episode in run(messages)] == [0, 0, 0, 4]


@each_case("embedded", [True, False])
def test_a_change_of_topic_begins_a_segment(embedded: bool) -> None:
    """By the vectors, or by the words that are shared."""
    kiln, plane = "the kiln glaze fires pottery", "airline ticket boarding luggage"
    messages = said(*(HumanMessage(kiln) for _ in range(8)), *(HumanMessage(plane) for _ in range(4)))
    vectors: list[list[float] | None] = [*([[1.0, 0.0]] * 8), *([[0.0, 1.0]] * 4)]
    episodes = [episode for _, episode in run(messages, vectors if embedded else None)]
    assert episodes[:8] == [0] * 8
    assert episodes[8] == 8


def test_talk_of_one_topic_is_not_cut() -> None:
    messages = said(*((HumanMessage, AIMessage)[n % 2]("the kiln glaze fires pottery") for n in range(30)))
    assert {episode for _, episode in run(messages)} == {0}
