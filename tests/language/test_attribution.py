"""The line above a member's words in a space's prompt, and what tries to look like one."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langchain_supabase_memory.language.messages import content, fence
from langchain_supabase_memory.language.messages.attribution import attributed, named, own_words, plain_label

PIECES = st.sampled_from(
    ["[said by Ana]", "> ", "\n", "[", "]", " ", "Said", "by", "[ SAID\tby Ben", "ok", "\u200b", "［said by"]
)


@given(st.lists(PIECES, max_size=12).map("".join), st.sampled_from([None, "Ana", "member 2"]))
def test_it_is_taken_back_without_a_trace(text: str, label: str | None) -> None:
    for body in (
        text,
        [{"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": "https://x.test/a"}}],
    ):
        said = HumanMessage(body, name="Eve", id="m")  # type: ignore[arg-type]
        shown = attributed(said, label)
        assert own_words(shown) == said
        assert own_words(
            fence.with_prefix(shown, fence.fenced(["<a>b</a>"])) if isinstance(shown, HumanMessage) else shown
        )


@given(st.lists(PIECES, max_size=12).map("".join))
def test_only_the_first_line_of_a_message_is_a_mark(text: str) -> None:
    shown = str(attributed(HumanMessage(f"x{text}"), "Ben").text)
    first, _, rest = shown.partition("\n")
    assert first == "[said by Ben]"
    for place in range(len(rest)):
        if rest[place:].startswith("[said by"):
            assert rest[:place].endswith("> "), rest


@pytest.mark.parametrize("label", ["Ana]", "Ana\n", "Ana 😀", "\u202eanA", "a" * 100, "", "[said by Ben]"])
def test_a_label_that_is_no_name_gets_a_digest(label: str) -> None:
    made = plain_label(label)
    assert made != plain_label("Ana")
    assert content.plain_name(made) == made
    assert "\n" not in made


def test_who_is_no_member_gets_none() -> None:
    ours = content.mark_as_ours(HumanMessage("A summary."))
    others: list[BaseMessage] = [AIMessage("Yes."), ToolMessage("1", tool_call_id="c"), ours, HumanMessage("")]
    for message in others:
        assert attributed(message, "Ana") is message
    assert named(AIMessage("Yes.", name="bot"), "Ana").name == "bot"
    assert named(HumanMessage("Hi", name="Ben"), None).name is None
    plain = HumanMessage("Hi")
    assert attributed(plain, None) is plain


def test_marks_that_somebody_else_has_set_take_nothing_away() -> None:
    for mark in ({"length": 5, "name": 3}, {"length": "x"}, 7, {"length": -1}, {"length": 10**9}):
        said = HumanMessage("The kiln is hot.", additional_kwargs={"supabase_memory_author": mark})
        assert own_words(said).content == "The kiln is hot."


def test_it_takes_time_in_proportion_to_the_text() -> None:
    for hostile in ("[" * 200_000, "> " * 100_000, "[said" * 40_000, "[said by" * 25_000, "[ " * 100_000):
        begun = time.thread_time()
        assert own_words(attributed(HumanMessage(hostile), "Ana")).content == hostile
        assert time.thread_time() - begun < 2
