"""Signals by words: what users say counts, what assistants, tools and quotations say does not."""

from __future__ import annotations

import json
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, FunctionMessage, HumanMessage, SystemMessage, ToolMessage

from langchain_supabase_memory.language.chunks.speech import SpeechBefore, signals_of
from langchain_supabase_memory.language.chunks.units import StoredText, units
from langchain_supabase_memory.language.lexicon import languages
from langchain_supabase_memory.language.messages import fence
from langchain_supabase_memory.language.signals import AskedText, find_signals, mask_foreign
from langchain_supabase_memory.values import Signal

FOLDER: Final = Path(__file__).parent
DEV, HELD_OUT = (
    [json.loads(line) for line in FOLDER.joinpath(f"signals_{name}.jsonl").read_text(encoding="utf-8").splitlines()]
    for name in ("dev", "held_out")
)
"""Labeled turns: those that the rules were written by, and those that were written after the rules."""

NOW: Final = datetime(2026, 3, 2, 9, tzinfo=UTC)
BY_WORDS: Final = {each.label for each in Signal} - {"asked_again", "tool_failed"}


def turn(row: dict[str, Any]) -> list[BaseMessage]:
    """What a row is about: the user's earlier questions with answers, a tool, and their words."""
    before: list[BaseMessage] = []
    for question in row.get("earlier", ()):
        before += [HumanMessage(question), AIMessage("One moment.")]
    if "tool" in row:
        call = {"name": "look_up", "args": {}, "id": "c"}
        before += [HumanMessage("Please do."), AIMessage("", tool_calls=[call])]
        before += [ToolMessage("No.", tool_call_id="c", status=row["tool"]), AIMessage("I tried.")]
    return [*before, HumanMessage(row["text"])]


def told(messages: list[BaseMessage], max_tokens: int = 256) -> list[tuple[int, str, str]]:
    """The signals of messages: the number of the message, the signal, and its quote."""
    stored = [StoredText(n, f"m{n}", message, NOW) for n, message in enumerate(messages)]
    made, _ = units(stored, max_tokens=max_tokens, listens=True)
    found = signals_of(made, stored, SpeechBefore(), {})
    parts = {unit.messages[0].sequence: unit.parts for unit in made}
    return [
        (sequence, signal.label, parts[sequence][part].text[start:end])
        for sequence, by_part in found.items()
        for part, (bits, quotes) in by_part.items()
        for signal, (start, end) in zip(Signal(bits), quotes, strict=True)
    ]


def scores(rows: list[dict[str, Any]]) -> dict[str, tuple[float, float]]:
    """The precision and the recall of each signal."""
    right, found, wanted = Counter[str](), Counter[str](), Counter[str]()
    for row in rows:
        messages = turn(row)
        names = {name for number, name, _ in told(messages) if number == len(messages) - 1}
        found.update(names)
        wanted.update(row["signals"])
        right.update(names & set(row["signals"]))
    return {each: (right[each] / found[each], right[each] / wanted[each]) for each in wanted}


@pytest.mark.parametrize("rows", [DEV, HELD_OUT], ids=["dev", "held out"])
def test_nine_of_ten_are_right(rows: list[dict[str, Any]], record_property: Any) -> None:
    measured = scores(rows)
    record_property("signals", measured)
    assert {row["language"] for row in rows} == {"en", "tl", "taglish"}
    assert set(measured) == {each.label for each in Signal}
    assert {name: one for name, one in measured.items() if one[0] < 0.9} == {}
    assert {name: one for name, one in measured.items() if one[1] < 0.7} == {}


SAID: Final = [row["text"] for row in DEV + HELD_OUT if BY_WORDS & set(row["signals"])]


def test_nobody_else_gives_signals() -> None:
    """Each text gives a signal as a user's; as an assistant's, a tool's, or an instruction it gives none."""
    texts = [text for text in SAID if told([HumanMessage(text)])][:200]
    assert len(texts) == 200
    call = {"name": "look_up", "args": {"text": texts[0]}, "id": "c"}
    for text in texts:
        messages = [
            SystemMessage(text),
            AIMessage(text),
            AIMessage(text, tool_calls=[{**call, "args": {"text": text}}]),
            ToolMessage(text, tool_call_id="c"),
            FunctionMessage(content=text, name="look_up"),
            HumanMessage(text, additional_kwargs={"lc_source": "summarization"}),
            HumanMessage("Here it is."),
        ]
        assert told(messages) == [], text


@pytest.mark.parametrize(
    "around",
    ["> {}", 'The guest wrote "well then {} and so on" to us', "```\n{}\n```", "Forwarded message\n{}",
     f"<{fence.TAG}>\n{{}}\n</{fence.TAG}>", f"<{fence.TAG}>\n{{}}"],
)  # fmt: skip
def test_what_is_quoted_gives_none(around: str) -> None:
    for text in SAID:
        if '"' not in text:
            assert told([HumanMessage(around.format(text))]) == [], text


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("correction", ["No es eso, quiero la de marzo.", "Ce n'est pas ce que j'ai demandé.", "Das ist falsch."]),
        ("thanks", ["¡Muchas gracias!", "Merci beaucoup", "Vielen Dank!"]),
        ("complaint", ["Esto es inútil.", "C'est inutile.", "Das ist nutzlos."]),
        ("confusion", ["No entiendo nada.", "Je ne comprends pas.", "Das verstehe ich nicht."]),
        ("giving_up", ["Olvídalo.", "Laisse tomber.", "Vergiss es."]),
        (
            "asks_for_person",
            ["Quiero hablar con una persona.", "Je voudrais parler à un humain.", "Ich möchte mit einem Menschen sprechen."],
        ),
    ],
)  # fmt: skip
def test_other_languages(name: str, texts: list[str]) -> None:
    for text in texts:
        assert told([HumanMessage(text)]) == [(0, name, text.removeprefix("¡"))] or [
            each[1] for each in told([HumanMessage(text)])
        ] == [name], text


@pytest.mark.parametrize(
    "text", ["Si no es eso, dime.", "¿Cómo se dice gracias?", "Comment dit-on merci ?", "Wie sagt man danke auf Englisch?"]
)  # fmt: skip
def test_what_is_supposed_or_asked_about_gives_none(text: str) -> None:
    assert told([HumanMessage(text)]) == []


def test_the_languages() -> None:
    assert languages("signals") == ("de", "en", "es", "fr", "tl")


def test_a_question_is_repeated_by_its_words() -> None:
    def repeats(text: str, earlier: str) -> bool:
        return AskedText(text).repeats(AskedText(earlier)) is not None

    assert repeats("Where is my order?", "can you tell me where the order is?")
    assert not repeats("Where is my order?", "Where is my invoice?")
    assert not repeats("How do I fly from Cebu to Bohol?", "How do I fly from Bohol to Cebu?")
    assert not repeats("Is room 12 free on Monday?", "Is room 13 free on Monday?")
    assert not repeats("Why?", "Why?")
    assert AskedText("Where is it kept?", speaker="Ana").repeats(AskedText("Where is it kept?", speaker="Ben")) is None


def test_a_question_is_repeated_by_its_meaning() -> None:
    one = AskedText("How can I reset the kiln timer to zero?", [0.6, 0.8])
    assert one.repeats(AskedText("How do I set the kiln timer back to zero?", [0.6, 0.8])) == (0, 39)
    assert one.repeats(AskedText("How do I set the kiln timer back to zero?", [0.8, -0.6])) is None
    assert one.repeats(AskedText("How do I set the kiln timer back to 7?", [0.6, 0.8])) is None
    assert one.repeats(AskedText("How do I set the kiln timer back to zero?")) is None


def test_a_tool_that_worked_in_the_end_did_not_fail() -> None:
    call = {"name": "look_up", "args": {}, "id": "c"}
    failed = [AIMessage("", tool_calls=[call]), ToolMessage("No.", tool_call_id="c", status="error")]
    worked = [AIMessage("", tool_calls=[call]), ToolMessage("Yes.", tool_call_id="c")]
    asked, after = HumanMessage("Book it."), HumanMessage("And now? Tell me.")
    assert told([asked, *failed, AIMessage("Sorry."), after]) == [(4, "tool_failed", "And now?")]
    assert told([asked, *failed, *worked, AIMessage("It is booked."), after]) == []
    assert [each[0] for each in told([asked, *failed, after, AIMessage("Yes."), after])] == [3], "only right before"


def test_a_quote_is_in_the_part_that_has_it() -> None:
    text = "The kiln is in the yard. " * 30 + "\n\nI don't understand the second step.\n\n" + "The yard is wet. " * 20
    assert told([HumanMessage(text)], max_tokens=40) == [(0, "confusion", "I don't understand the second step.")]


ALPHABET = st.sampled_from([*"abc'\u2019 ,.?!\n\"`>\x1a\u0301é🙂", "no ", "thanks ", "po ", "what", "```", "forget it"])


@given(st.lists(ALPHABET, max_size=60).map("".join))
@example("\u0301" * 99)
@example("no no no no, not not not")
@settings(max_examples=400)
def test_each_quote_is_a_part_of_the_text(text: str) -> None:
    for span in find_signals(mask_foreign(text)):
        assert text[span.start : span.end].strip()
        assert "\x1a" not in mask_foreign(text)[span.start : span.end]


@pytest.mark.parametrize(
    "piece", ["no ", "no, ", "thanks. ", "i said not ", "talk to a human ", "ang bagal nyo ", "?", "```", '"', "a" * 50, "<conversation_memory>", "\n> x"],
    ids=repr,
)  # fmt: skip
def test_it_takes_a_bounded_time(piece: str) -> None:
    find_signals(mask_foreign(piece))

    def seconds(size: int) -> float:
        text = piece * (size // len(piece))
        best = 9.0
        for _ in range(3):
            begun = time.thread_time()
            find_signals(mask_foreign(text))
            best = min(best, time.thread_time() - begun)
        return best

    assert seconds(1_000_000) < max(1.0, 50 * seconds(100_000))
    assert seconds(1_900) < 0.5, "all of it is the user's own"
