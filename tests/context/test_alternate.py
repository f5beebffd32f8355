"""Prompts for models whose chat template requires alternating roles."""

from __future__ import annotations

from typing import Any

import jinja2
import pytest
from langchain.agents import create_agent
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    convert_to_openai_messages,
)
from langgraph.graph import START, MessagesState, StateGraph

from langchain_supabase_memory import (
    ContextBudget,
    LoadContextNode,
    SupabaseMemory,
    SupabaseMemoryMiddleware,
    SupabaseSummarizationNode,
)
from langchain_supabase_memory.adapters.runnable_types import alternates
from langchain_supabase_memory.agents.history import SupabaseChatMessageHistory
from langchain_supabase_memory.context.alternate import alternate_roles
from langchain_supabase_memory.errors import ConfigurationError
from langchain_supabase_memory.language.messages import content
from tests.chat_models import ScriptedModel, calls, says
from tests.each_case import each_case

# As Mistral's template with tools has it: calls and results are not counted.
MISTRAL = """
{%- if messages[0].role == 'system' %}{% set rest = messages[1:] %}{% else %}{% set rest = messages %}{% endif -%}
{%- set ns = namespace(at=0) -%}
{%- for message in rest if not (message.role == 'tool' or message.tool_calls) -%}
{%- if (message.role == 'user') != (ns.at % 2 == 0) %}{{ refuse('roles must alternate') }}{% endif -%}
{%- set ns.at = ns.at + 1 -%}
{%- endfor -%}
{%- for message in rest -%}
{%- if message.role not in ('user', 'assistant', 'tool') %}{{ refuse('a role') }}{% endif -%}
{{ message.role }}|
{%- endfor -%}
"""
# As Gemma's has it: every message is counted, and there are no tools.
GEMMA = """
{%- if messages[0].role == 'system' %}{% set rest = messages[1:] %}{% else %}{% set rest = messages %}{% endif -%}
{%- for message in rest -%}
{%- if (message.role == 'user') != (loop.index0 % 2 == 0) %}{{ refuse('roles must alternate') }}{% endif -%}
{%- if message.content is not string %}{{ refuse('content') }}{% endif -%}
{{ message.role }}|
{%- endfor -%}
"""
BUDGET = ContextBudget(characters=4000, alternate_roles=True)
LOOSE = ContextBudget(characters=4000)


def refuse(why: str) -> str:
    raise ValueError(why)


def rendered(messages: list[BaseMessage], template: str = GEMMA) -> str:
    listed = convert_to_openai_messages(messages)
    return jinja2.Environment().from_string(template).render(messages=listed, refuse=refuse)


def talk(memory: SupabaseMemory, turns: int = 30) -> None:
    conversation = memory.conversation("t")
    for turn in range(turns):
        asked = f"Question {turn} about glaze {turn * 7}, which ran down the shelf again. " * 3
        conversation.add_turn(asked, f"Try cone {turn}, slowly. " * 6)


def words(messages: list[BaseMessage]) -> str:
    return "\n".join(content.words(message) for message in messages)


@pytest.mark.pure
@each_case("template", [MISTRAL, GEMMA])
@each_case("ends", [False, True])
def test_any_order_without_tools_is_taken(template: str, ends: bool) -> None:
    kinds = {"s": SystemMessage, "u": HumanMessage, "a": AIMessage}
    for order in ("u", "a", "uu", "aa", "ss", "ssuu", "ua", "sau", "uusua", "uaauu", "sua", "usaus", ""):
        given = [kinds[each](f"{each}{place}") for place, each in enumerate(order)]
        made = alternate_roles(given, ends=ends)
        rendered([*made, *([HumanMessage("next")] if ends else [])] or [HumanMessage("next")], template)
        assert all(f"{each}{place}" in words(made) for place, each in enumerate(order))
        assert [each.content for each in given] == [f"{each}{place}" for place, each in enumerate(order)]
        assert alternate_roles(made) == made


@pytest.mark.pure
def test_calls_and_results_stay_together() -> None:
    call, result = calls("find", q="x"), ToolMessage("found", tool_call_id="call_find_1")
    for given in (
        [HumanMessage("a"), call, result, AIMessage("b"), HumanMessage("c")],
        [HumanMessage("a"), call, result, HumanMessage("c")],  # interrupted
        [HumanMessage("a"), AIMessage("b"), call, result, AIMessage("d"), AIMessage("e")],
        [call, result, call, result, AIMessage("b"), HumanMessage("c"), HumanMessage("d"), call, result],
    ):
        made = alternate_roles(given)
        rendered(made, MISTRAL)
        for place, message in enumerate(made):
            if isinstance(message, ToolMessage):
                assert content.tool_calls(made[place - 1])
        assert sum(isinstance(message, ToolMessage) for message in made) == given.count(result)


@pytest.mark.pure
def test_media_and_blocks_are_joined_too() -> None:
    image = {"type": "image_url", "image_url": {"url": "https://x.test/a.png"}}
    (made,) = alternate_roles(
        [HumanMessage("See:", id="a"), HumanMessage([image, {"type": "text", "text": "What?"}], id="b")]
    )
    assert made.content == [{"type": "text", "text": "See:"}, image, {"type": "text", "text": "What?"}]
    assert made.id == "b"


@pytest.mark.pure
def test_models_are_known_by_class_and_name() -> None:
    def model(kind: str, **names: Any) -> Any:
        return type(kind, (), names)()

    for needs in (
        model("ChatMistralAI", model="mistral-large-latest"),
        model("ChatOllama", model="gemma3:4b"),
        model("ChatOpenAI", model_name="mistralai/Mixtral-8x7B-Instruct-v0.1"),
        model("ChatHuggingFace", model_id="google/gemma-2-9b-it"),
        model("ChatHuggingFace", llm=model("HuggingFaceEndpoint", repo_id="mistralai/Mistral-7B")),
        model("ChatLlamaCpp", model_path="/models/mistral-7b.gguf"),
        model("RunnableBinding", bound=model("ChatOllama", model="mistral")),
    ):
        assert alternates(needs)
    for takes in (
        model("ChatOpenAI", model_name="gpt-5.5"),
        model("ChatAnthropic", model="claude-sonnet-5"),
        model("ChatOllama", model="qwen3:8b"),
        says("ok"),
        None,
    ):
        assert not alternates(takes)


@pytest.fixture
def memory(conn_string: str, user_id: str) -> Any:
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory:
        talk(memory)
        yield memory


class Gemma(ScriptedModel):
    model_name: str = "gemma-3-27b-it"


@pytest.mark.parametrize("color", ["sync", "async"])
@pytest.mark.parametrize("asked", [True, None, False])
async def test_an_agent_of_such_a_model_gets_roles_that_alternate(
    memory: SupabaseMemory, color: str, asked: bool | None
) -> None:
    for kind in (Gemma, ScriptedModel):
        model = kind(script=lambda _: "ok")
        budget = ContextBudget(characters=4000, alternate_roles=asked)
        agent = create_agent(
            model, system_prompt="Be kind.", middleware=[SupabaseMemoryMiddleware(memory, budget=budget)]
        )
        given: Any = {"messages": [SystemMessage("And brief."), HumanMessage("What did I ask about glaze 21?")]}
        config: Any = {"configurable": {"thread_id": "t"}}
        await agent.ainvoke(given, config) if color == "async" else agent.invoke(given, config)
        shown = model.shown[-1]
        assert "glaze 21?" in str(shown[-1].text)
        if asked or (asked is None and kind is Gemma):
            rendered(shown)
            assert str(shown[0].text) == "Be kind.\n\nAnd brief."
            assert "<recalled>" in str(shown[-1].text)
        else:
            with pytest.raises(ValueError, match="alternate"):
                rendered(shown)
    # What is stored is what was said, and nothing of the memory's.
    stored = [str(each.message.text) for each in memory.conversation("t").read(last=4)]
    assert stored == ["What did I ask about glaze 21?", "ok"] * 2


@pytest.mark.parametrize("kind", [LoadContextNode, SupabaseSummarizationNode])
def test_nodes_give_roles_that_alternate_under_a_key_of_their_own(memory: SupabaseMemory, kind: Any) -> None:
    class State(MessagesState):
        context: list[Any]

    builder = StateGraph(State)
    builder.add_node("load", kind(memory, output_messages_key="context", budget=BUDGET))
    builder.add_edge(START, "load")
    given: Any = {"messages": [HumanMessage("What did I ask about glaze 21?")]}
    made: Any = builder.compile().invoke(given, {"configurable": {"thread_id": "t"}})
    rendered(made["context"])
    assert len(made["context"]) > 2
    with pytest.raises(ConfigurationError, match="summarized_messages"):
        kind(memory, output_messages_key="messages", budget=BUDGET)


def test_packs_and_histories_alternate(memory: SupabaseMemory, user_id: str) -> None:
    conversation = memory.conversation("t")
    asked = HumanMessage("What did I ask about glaze 21?")
    pack, loose = (conversation.context(asked, budget=budget) for budget in (BUDGET, LOOSE))
    rendered(pack.prompt)
    rendered([*pack.messages, asked])
    with pytest.raises(ValueError, match="alternate"):
        rendered(loose.prompt)
    assert sum(map(content.characters, pack.prompt)) <= 4000
    assert words(pack.prompt).split() == words(loose.prompt).split()
    history = SupabaseChatMessageHistory("t", memory, budget=BUDGET)
    rendered([*history.messages, asked])


def test_a_choice_that_is_none_is_refused() -> None:
    given: Any = "yes"
    with pytest.raises(ConfigurationError, match="alternate_roles"):
        ContextBudget(alternate_roles=given)
