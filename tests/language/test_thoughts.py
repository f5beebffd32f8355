"""Reasoning within a model's text."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ChatMessage, HumanMessage, ToolMessage

from langchain_supabase_memory import ExtractiveSummarizer, MemoryConfig, SummaryPolicy, SupabaseMemory
from langchain_supabase_memory.effects import Expand
from langchain_supabase_memory.language.messages import codec, content, reasoning
from langchain_supabase_memory.models import ExpandModel
from langchain_supabase_memory.operations.boards.kinds import BOARD_KINDS
from tests.chat_models import says
from tests.conftest import Caller
from tests.each_case import each_case

pure = pytest.mark.pure

THOUGHT = "The user seems upset"
SAID = "The kiln shows E-47."
ANSWERS = {
    "think": f"<think>\n{THOUGHT}\n</think>\n\n{SAID}",
    "on one line": f"<think>{THOUGHT}</think>{SAID}",
    "thinking": f"<thinking>{THOUGHT}</thinking> {SAID}",
    "reasoning": f"<reasoning>{THOUGHT}</reasoning>\n{SAID}",
    "thought": f"<thought>{THOUGHT}</thought>\n{SAID}",
    "upper case": f"<THINK>{THOUGHT}</THINK>\n{SAID}",
    "with an attribute": f'<think budget="512">{THOUGHT}</think>\n{SAID}',
    "seed": f"<seed:think>{THOUGHT}</seed:think>{SAID}",
    "another closing name": f"<think>{THOUGHT}</thinking>{SAID}",
    "behind the answer": f"{SAID}\n<think>{THOUGHT}</think>",
    "behind it and cut off": f"{SAID}\n\n<think>{THOUGHT}",
    "twice": f"<think>{THOUGHT}</think><think>{THOUGHT}</think>{SAID}",
    "in one another": f"<think>{THOUGHT} <think>{THOUGHT}</think> {THOUGHT}.</think>{SAID}",
    "closed twice": f"<think>{THOUGHT}</think>{SAID}</think>",
    "about its own tag": f"<think>{THOUGHT}. I close with </think> at the end.</think>{SAID}",
    "with a tick in it": f"<think>{THOUGHT}: `kiln</think>{SAID}",
    "opened by the prompt": f"{THOUGHT}.\n</think>\n\n{SAID}",
    "opened by the prompt, on one line": f"{THOUGHT}.</think> {SAID}",
    "empty": f"<think>\n\n</think>\n\n{SAID}",
    "magistral": f"[THINK]{THOUGHT}[/THINK]{SAID}",
    "kimi": f"◁think▷{THOUGHT}◁/think▷{SAID}",
    "sky": f"<|begin_of_thought|>{THOUGHT}<|end_of_thought|>\n<|begin_of_solution|>{SAID}<|end_of_solution|>",
    "cohere": f"<|START_THINKING|>{THOUGHT}<|END_THINKING|><|START_RESPONSE|>{SAID}<|END_RESPONSE|>",
    "gemma": f"<|channel>thought\n{THOUGHT}<channel|>{SAID}",
    "harmony": f"<|channel|>analysis<|message|>{THOUGHT}<|end|><|start|>assistant<|channel|>final<|message|>{SAID}<|return|>",
    "harmony from within": f"{THOUGHT}<|end|><|start|>assistant<|channel|>final<|message|>{SAID}",
    "harmony without marks of messages": f"<|channel|>analysis {THOUGHT}<|end|><|start|>assistant<|channel|>final {SAID}",
    "harmony with a call": "<|channel|>analysis<|message|>" + THOUGHT + "<|end|><|start|>assistant<|channel|>commentary "
    'to=functions.find <|constrain|>json<|message|>{"q": 1}<|call|><|start|>assistant<|channel|>final<|message|>' + SAID,
    "harmony whose marks were taken out": f"analysis{THOUGHT}assistantfinal{SAID}",
}  # fmt: skip
ALONE = {
    "closed": f"<think>{THOUGHT}</think>",
    "cut off": f"<think>{THOUGHT}",
    "opened by the prompt": f"{THOUGHT}\n</think>\n",
    "harmony": f"<|channel|>analysis<|message|>{THOUGHT}",
    "harmony, ended": f"<|channel|>analysis<|message|>{THOUGHT}<|end|>",
    "magistral": f"[THINK]{THOUGHT}",
}
ABOUT = {
    "in code": "Qwen writes `<think>` first and `</think>` last.",
    "in a block of code": "So:\n```xml\n<think>hm</think>\n```\nThat is all.",
    "in quotation marks": 'The template ends with "<think>", and the answer has "</think>" alone.',
    "in a sentence": "It stands between <think> and </think> tags, which a parser takes out.",
    "in JSON": '{"summary": "The user removes <think> tags with a parser."}',
    "other tags": "<b>Bold</b>, a < b, [TODO] and <thinker>.",
    "analysis": "analysis of the kiln: E-47",
}


@pure
@each_case("name", ANSWERS)
def test_what_is_said_is_told_from_what_is_thought(name: str) -> None:
    said, thought = reasoning.split(ANSWERS[name])
    assert said == SAID
    assert THOUGHT in thought or name == "empty"


@pure
@each_case("name", ALONE)
def test_thoughts_alone_say_nothing(name: str) -> None:
    assert reasoning.answer_text(ALONE[name]) == ""


@pure
@each_case("name", ABOUT)
def test_a_text_about_tags_stays_as_it_is(name: str) -> None:
    assert reasoning.split(ABOUT[name]) == (ABOUT[name], "")


@pure
@each_case(
    "hostile",
    ["<think>", "</think>", "a <think> b ", '"</think>" ', "`", "```a", "<think ", "[THINK]", "<|channel|>analysis",
     "<think>a</think>b ", "<|channel|>", "<|channel>thought"],
)  # fmt: skip
def test_a_text_of_tags_is_looked_at_once(hostile: str) -> None:
    # Quadratic it would take hours.
    said, thought = reasoning.split(hostile * (2_000_000 // len(hostile)))
    assert len(said) + len(thought) <= 2_000_100


@pure
@each_case("name", [*ANSWERS, *ALONE])
def test_thoughts_in_an_answer_are_no_words_of_it(name: str) -> None:
    text = {**ANSWERS, **ALONE}[name]
    words = SAID if name in ANSWERS and text == ANSWERS[name] else ""
    answers: list[BaseMessage] = [
        AIMessage(text),
        AIMessage([{"type": "text", "text": text}]),
        AIMessage([{"type": "text", "text": text[:5]}, {"type": "text", "text": text[5:]}]),
        AIMessageChunk(content=text),
        ChatMessage(content=text, role="assistant"),
    ]
    for answer in answers:
        assert content.words(answer) == words
        assert THOUGHT not in content.display_text(answer)
        assert codec.to_row(answer.model_copy(update={"id": "m"}))["text"] == words
        # It is sent, so it is paid for.
        assert content.characters(answer) >= len(words) + (0 if name == "empty" else len(THOUGHT))
    row = codec.to_row(AIMessage(text, id="m"))
    assert codec.from_payload(row["payload"]).content == text


@pure
def test_what_a_person_and_a_tool_write_is_theirs() -> None:
    text = ANSWERS["think"]
    for message in (HumanMessage(text), ToolMessage(text, tool_call_id="c"), ChatMessage(content=text, role="user")):
        assert content.words(message) == text


async def test_thoughts_are_in_nothing_that_is_derived(caller: Caller, user_id: str) -> None:
    """Neither recalled, nor quoted, nor found, nor in a turn; and stored as they were written."""
    conversation = caller.service.for_user(user_id).conversation(thread_id="t")
    secret = "Peculiar marmalade thermocouple"
    answer = AIMessage(f"<think>{secret} may be broken.</think>\n\nThe kiln shows E-47 since Monday, 14 March.")
    asked = HumanMessage("Why does it write <think>hm</think> in the log?")
    await caller(conversation.append, [asked, answer, HumanMessage("And now?"), AIMessage("Now it is warm.")])
    await caller(conversation.index)
    await caller(conversation.summaries.make, model=ExtractiveSummarizer(), policy=SummaryPolicy(keep_messages=1))
    found = await caller(conversation.recall, secret)
    derived = "\n".join(
        [
            *(each.content for each in found.chunks),
            *(each.content for each in await caller(conversation.chunks.list)),
            *(each.content for each in await caller(conversation.summaries.list)),
            *(turn.ai_response for turn in await caller(conversation.turns.list)),
            (await caller(conversation.context)).text(),
        ]
    )
    assert "E-47" in derived
    assert "<think>hm</think>" in derived, "a person's own words stay"
    assert "marmalade" not in derived
    read = await caller(conversation.read)
    assert [each.message.content for each in read[:2]] == [asked.content, answer.content]


def _function(*answers: AIMessage | str) -> Any:
    model = says(*answers)
    return lambda prompt: str(model.invoke(prompt).text)


WRITERS: dict[str, Callable[..., Any]] = {"chat model": says, "function": _function}


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("name", ["think", "opened by the prompt", "harmony", "magistral"])
async def test_a_summary_is_what_its_writer_says(caller: Caller, user_id: str, name: str, writer: str) -> None:
    conversation = caller.service.for_user(user_id).conversation(thread_id="t")
    for turn in range(3):
        await caller(conversation.add_turn, f"The kiln shows E-47 for the {turn}th time", "That is the thermocouple.")
    policy = SummaryPolicy(messages=1, keep_messages=1, attempts=2)
    # Thoughts alone are no answer, and it is asked again.
    model = WRITERS[writer](ALONE["cut off"], ANSWERS[name])
    await caller(conversation.summaries.make, model=model, policy=policy)
    assert [each.content for each in await caller(conversation.summaries.list)] == [SAID]


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("name", ALONE)
async def test_thoughts_alone_are_no_summary(caller: Caller, user_id: str, name: str, writer: str) -> None:
    conversation = caller.service.for_user(user_id).conversation(thread_id="t")
    for turn in range(3):
        await caller(conversation.add_turn, f"The kiln shows E-47 for the {turn}th time", "That is the thermocouple.")
    made = await caller(
        conversation.summaries.make,
        model=WRITERS[writer](ALONE[name]),
        policy=SummaryPolicy(messages=1, keep_messages=1),
    )
    assert made.failed == "empty"
    assert await caller(conversation.summaries.list) == []


async def test_a_board_and_further_questions_are_what_is_said(conn_string: str, user_id: str) -> None:
    document = {
        "summary": SAID,
        "closed": [],
        **{each.plural: [] for each in BOARD_KINDS.values()},
        "facts": [{"text": "The kiln shows E-47.", "source": 0, "quote": "The kiln shows E-47"}],
    }
    text = f"<think>{THOUGHT}: {{}}</think>\n```json\n{json.dumps(document)}\n```"
    with SupabaseMemory.from_conn_string(
        conn_string,
        user_id=user_id,
        model=says(text),
        config=MemoryConfig(expander=says(f"<think>{THOUGHT}</think>\nkiln error code\nbroken thermocouple")),
    ) as memory:
        conversation = memory.conversation("t")
        conversation.add_turn("The kiln shows E-47 again", "That is the thermocouple.")
        conversation.board.revise()
        assert conversation.board.read().summary == SAID
        assert memory._services.expander is not None
        assert memory._services.expander.answer(Expand("What is wrong?")) == ["kiln error code", "broken thermocouple"]
    of_a_function = ExpandModel(lambda _: f"<think>{THOUGHT}</think>\nkiln error code")
    assert of_a_function.answer(Expand("What is wrong?")) == ["kiln error code"]
