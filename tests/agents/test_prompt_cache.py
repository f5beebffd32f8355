"""What a provider's prompt cache is told, in the payloads that LangChain's integrations build; no network is asked."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware.types import ModelRequest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool

from langchain_supabase_memory import ContextBudget, SupabaseMemory, SupabaseMemoryMiddleware
from langchain_supabase_memory.agents.run.prompt_cache import cache_key, cache_kind, with_breakpoint
from langchain_supabase_memory.errors import ConfigurationError
from langchain_supabase_memory.values import ConversationKey
from tests.each_case import each_case

Payload = dict[str, Any]


@pytest.fixture(scope="module")
def models() -> Any:
    """The models of the integrations, imported here: every process imports this file, and each takes up to a second."""
    from tests.agents import provider_models

    return provider_models


@pytest.fixture
def payloads(models: Any) -> list[Payload]:
    """The payloads of a test's requests."""
    kept: list[Payload] = models.payloads
    kept.clear()
    return kept


NO_KEY: Any = "none"
ANTHROPIC: dict[str, Any] = {"model": "claude-sonnet-4-5", "api_key": NO_KEY}
OPENAI: dict[str, Any] = {"model": "gpt-5", "api_key": NO_KEY}


@tool
def look(what: str) -> str:
    """Look something up."""
    return f"{what}: fired at cone nine"


def talk(memory: SupabaseMemory, model: Any, *more: Any, turns: int = 6, tools: bool = False, **settings: Any) -> None:
    ours = SupabaseMemoryMiddleware(memory, **settings)
    middleware = [ours if each is SupabaseMemoryMiddleware else each for each in more] or [ours]
    agent: Any = create_agent(model, [look] if tools else [], middleware=middleware, system_prompt="Be kind. " * 500)
    for number in range(turns):
        asked = HumanMessage(f"Question {number}: what of the kiln? " + "We spoke of clay. " * 30)
        agent.invoke({"messages": [asked]}, {"configurable": {"thread_id": "t"}})


def controls(value: Any) -> list[Any]:
    """Every `cache_control` of a payload, in its order."""
    if isinstance(value, dict):
        own = [value["cache_control"]] if "cache_control" in value else []
        return [*own, *(each for name, inner in value.items() if name != "cache_control" for each in controls(inner))]
    return [each for inner in value for each in controls(inner)] if isinstance(value, list) else []


def texts(payload: Payload) -> list[str]:
    """The texts of the messages of a payload for Anthropic, in their order."""
    bodies = [message["content"] for message in payload["messages"]]
    return [
        text
        for body in bodies
        for text in ([body] if isinstance(body, str) else [each.get("text", "") for each in body])
    ]


def marked(payload: Payload) -> str:
    """All that stands in the messages of a payload before its breakpoint, the marked block among it."""
    shown = []
    for message in payload["messages"]:
        for block in message["content"] if isinstance(message["content"], list) else []:
            shown.append(block.get("text", ""))
            if "cache_control" in block:
                return "\n".join(shown)
        if isinstance(message["content"], str):
            shown.append(message["content"])
    return ""


@pytest.mark.parametrize("order", ["alone", "behind", "before"])
@pytest.mark.parametrize("tools", [False, True])
def test_the_beginning_ends_with_one_breakpoint(
    memory: SupabaseMemory, order: str, tools: bool, models: Any, payloads: list[Payload]
) -> None:
    theirs = models.AnthropicPromptCachingMiddleware()
    stack = {"alone": [], "behind": [theirs, SupabaseMemoryMiddleware], "before": [SupabaseMemoryMiddleware, theirs]}
    talk(memory, models.Anthropic(**ANTHROPIC), *stack[order], tools=tools)
    assert max(len(controls(payload)) for payload in payloads) <= 4
    for before, payload in pairwise(each for each in payloads if "Question 1" in json.dumps(each)):
        in_messages = controls(payload["messages"])
        assert len(in_messages) == 1, "the end of the beginning"
        assert marked(payload).startswith(marked(before)), "what was cached is read again"
        assert "Question" in marked(payload)
        roles = [message["role"] for message in payload["messages"]]
        assert all(role != after for role, after in pairwise(roles)), "roles alternate"
    asked = [text for text in texts(payloads[-1]) if text.endswith("We spoke of clay. ")]
    assert asked[-1] not in marked(payloads[-1]), "the question is not part of it"


def test_a_tool_loop_reads_the_same_beginning(memory: SupabaseMemory, models: Any, payloads: list[Payload]) -> None:
    talk(memory, models.Anthropic(**ANTHROPIC), tools=True)
    first, second = [each for each in payloads if "Question 5" in json.dumps(each)][-2:]
    assert second["messages"][: len(first["messages"])] == first["messages"]
    assert marked(second) == marked(first)


@each_case(
    ("model", "marks"),
    [
        ("claude-sonnet-4-5", 1),
        ("claude-opus-4-5", 0),
        ("claude-haiku-4-5-20251001", 0),
        ("claude-opus-5", 1),
        ("claude-3-5-haiku-latest", 0),
    ],
)
def test_a_beginning_below_the_models_minimum_is_not_marked(model: str, marks: int, models: Any) -> None:
    beginning = [HumanMessage("word " * 1_000), AIMessage("Yes."), HumanMessage("And?")]
    shown = with_breakpoint(beginning, 2, model=models.Anthropic(**{**ANTHROPIC, "model": model}))
    assert sum("cache_control" in str(each.content) for each in shown) == marks


LONG = "word " * 2_000


@each_case(
    ("beginning", "place"),
    [
        ([HumanMessage(LONG), AIMessage("Yes.")], 1),
        ([HumanMessage([{"type": "text", "text": LONG}, {"type": "text", "text": "More."}])], 0),
        ([HumanMessage(LONG), AIMessage("", tool_calls=[{"name": "f", "args": {}, "id": "1"}])], 0),
        ([HumanMessage(LONG), AIMessage(" ")], 0),
        ([HumanMessage(LONG), AIMessage("Yes."), ToolMessage("So.", tool_call_id="1")], 1),
        ([HumanMessage([{"type": "image", "url": "https://example.com/a.png"}]), AIMessage(LONG)], 1),
        ([HumanMessage([LONG, "More."])], 0),
        ([ToolMessage(LONG, tool_call_id="1")], None),
        ([HumanMessage("Short.")], None),
        ([], None),
    ],
)
def test_where_the_mark_stands(beginning: list[BaseMessage], place: int | None) -> None:
    given = [*beginning, HumanMessage("And now?")]
    shown = with_breakpoint(given, len(beginning))
    places = [at for at, each in enumerate(shown) if "cache_control" in str(each.content)]
    assert places == ([] if place is None else [place])
    assert [each.text for each in shown] == [each.text for each in given]
    assert "cache_control" not in str(given), "the caller's messages stay as they are"


def test_there_are_never_more_than_four(memory: SupabaseMemory) -> None:
    block: dict[str, Any] = {"type": "text", "text": LONG, "cache_control": {"type": "ephemeral"}}
    given: list[BaseMessage] = [HumanMessage([block, block]), AIMessage("Yes."), HumanMessage("And?")]
    system = {"type": "ephemeral"}
    assert with_breakpoint(given, 2, others=[system, system]) == given
    assert with_breakpoint(given, 2, others=[system]) != given


@pytest.mark.parametrize("roles", [True, False])
def test_where_roles_alternate_the_question_is_not_marked(
    memory: SupabaseMemory, roles: bool, models: Any, payloads: list[Payload]
) -> None:
    budget = ContextBudget(alternate_roles=roles, characters=40_000)
    memory.conversation("t").append([HumanMessage("One"), HumanMessage("Two")])
    talk(memory, models.Anthropic(**ANTHROPIC), turns=2, budget=budget)
    for number in range(90):
        memory.conversation("t").append([HumanMessage(f"{number} {'word ' * 60}"), AIMessage("word " * 100)])
    memory.conversation("t").context("Hm.", budget=budget)
    talk(memory, models.Anthropic(**ANTHROPIC), turns=1, budget=budget)
    assert controls(payloads[-1]["messages"])
    assert "Question 0: what of the kiln" not in marked(payloads[-1]).rpartition("word")[2]


def test_it_lasts_as_long_as_the_others(memory: SupabaseMemory, models: Any, payloads: list[Payload]) -> None:
    talk(
        memory,
        models.Anthropic(**ANTHROPIC),
        models.AnthropicPromptCachingMiddleware(ttl="1h"),
        SupabaseMemoryMiddleware,
    )
    assert {each.get("ttl") for each in controls(payloads[-1])} == {"1h"}


def test_the_systems_own_breakpoints_count(memory: SupabaseMemory, models: Any) -> None:
    mark = {"type": "ephemeral"}
    blocks: list[Any] = [{"type": "text", "text": f"Rule {each}.", "cache_control": mark} for each in range(4)]
    request: Any = ModelRequest(
        model=models.Anthropic(**ANTHROPIC),
        messages=[HumanMessage(LONG), AIMessage("Yes."), HumanMessage("And?", id="q")],
        system_message=SystemMessage(blocks),
    )
    key = ConversationKey("t", "maya", "default")
    assert SupabaseMemoryMiddleware(memory)._with_cache(request, key, "q").messages == request.messages


@pytest.mark.parametrize("wanted", [None, False])
def test_openai_has_a_key_for_each_conversation(
    memory: SupabaseMemory, user_id: str, wanted: bool | None, models: Any, payloads: list[Payload]
) -> None:
    talk(memory, models.OpenAI(**OPENAI), turns=3, prompt_cache=wanted)
    keys = {payload.get("prompt_cache_key") for payload in payloads}
    assert keys == {None if wanted is False else cache_key(ConversationKey("t", user_id, "default"))}
    assert controls(payloads) == []


def test_mistral_has_a_key_too_and_roles_that_alternate(
    memory: SupabaseMemory, models: Any, payloads: list[Payload]
) -> None:
    talk(memory, models.Mistral(**{"model": "mistral-large-latest", "api_key": NO_KEY}), turns=3)
    assert len({payload["prompt_cache_key"] for payload in payloads}) == 1
    assert controls(payloads) == []
    for payload in payloads:
        roles = [message["role"] for message in payload["messages"] if message["role"] != "system"]
        assert roles == ["user", "assistant"] * (len(roles) // 2) + ["user"]


def test_google_is_told_nothing_and_its_beginning_stays(
    memory: SupabaseMemory, models: Any, payloads: list[Payload]
) -> None:
    talk(memory, models.Google(model="gemini-3-pro", api_key=NO_KEY), turns=4)
    for before, payload in pairwise(payloads):
        old, new = (each["contents"] for each in (before, payload))
        assert new[: len(old) - 1] == old[:-1]
    assert controls(payloads) == []
    assert "prompt_cache_key" not in str(payloads)


def test_a_key_of_the_applications_own_stays(memory: SupabaseMemory, models: Any, payloads: list[Payload]) -> None:
    talk(memory, models.OpenAI(**OPENAI, model_kwargs={"prompt_cache_key": "own"}), turns=2)
    assert {payload["prompt_cache_key"] for payload in payloads} == {"own"}


@each_case(
    ("model", "wanted", "kind"),
    [
        (lambda models: models.OpenAI(**OPENAI), None, "key"),
        (lambda models: models.OpenAI(**OPENAI, base_url="https://models.example.com/v1"), None, None),
        (lambda models: models.OpenAI(**OPENAI, base_url="https://models.example.com/v1"), True, "key"),
        (lambda models: models.Mistral(api_key=NO_KEY, base_url="https://models.example.com/v1"), None, None),
        (lambda models: models.Anthropic(**ANTHROPIC), None, "breakpoint"),
        (lambda models: models.Anthropic(**ANTHROPIC), False, None),
        (
            lambda models: models.AzureChatOpenAI(
                azure_endpoint="https://a.example.com", api_key=NO_KEY, api_version="1"
            ),
            None,
            None,
        ),
        (
            lambda models: models.AzureChatOpenAI(
                azure_endpoint="https://a.example.com", api_key=NO_KEY, api_version="1"
            ),
            True,
            "key",
        ),
        (lambda models: models.Google(model="gemini-3-pro", api_key=NO_KEY), None, None),
        (lambda models: models.Google(model="gemini-3-pro", api_key=NO_KEY), True, "breakpoint"),
        (lambda models: models.OpenAI(**OPENAI).with_retry(), None, None),
        (lambda models: models.OpenAI(**OPENAI).with_retry(), True, "key"),
        (lambda _: "openai:gpt-5", None, None),
    ],
)
def test_which_models_are_told(model: Any, wanted: bool | None, kind: str | None, models: Any) -> None:
    assert cache_kind(model(models), wanted) == kind


def test_a_key_says_nothing_of_its_conversation() -> None:
    key = cache_key(ConversationKey("thread of Maya", "maya", "studio"))
    assert len(key) <= 64
    assert "maya" not in key.lower()
    assert key != cache_key(ConversationKey("thread of Maya", "ines", "studio"))
    assert key == cache_key(ConversationKey("thread of Maya", "maya", "studio"))


def test_a_wrong_choice_is_refused(memory: SupabaseMemory) -> None:
    with pytest.raises(ConfigurationError, match="prompt_cache"):
        SupabaseMemoryMiddleware(memory, prompt_cache="1h")  # type: ignore[arg-type]
