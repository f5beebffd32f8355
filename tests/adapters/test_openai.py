"""The real `langchain-openai` as the summarizer, over both APIs, against a server that rejects what OpenAI rejects."""

from __future__ import annotations

import copy
import json
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_openai import AzureChatOpenAI, ChatOpenAI
from langgraph.graph import END, START, MessagesState, StateGraph

from langchain_supabase_memory import (
    BoardPolicy,
    ContextBudget,
    MemoryConfig,
    SummaryPolicy,
    SupabaseMemory,
    SupabaseMemoryMiddleware,
)
from langchain_supabase_memory.operations.boards.board import Board
from langchain_supabase_memory.operations.boards.kinds import BOARD_KINDS
from langchain_supabase_memory.operations.boards.schema import SCHEMA
from tests.owners import conversation_of
from tests.services.openai_api import CHAT, RESPONSES, Answer, OpenAiApi, Request, Script, strict_faults, violations

# What langchain-openai says of a model, or of an answer, that has no structured output.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Cannot use method='json_schema'"),
    pytest.mark.filterwarnings("ignore:This model does not support OpenAI's structured output"),
]

# So that the file needs one connection of the kind.
ONE_LOOP = pytest.mark.asyncio(loop_scope="module")

WHERE: dict[str, Any] = {"thread_id": "t"}
SECRET = "tourmaline"
SAID = ("I am Ada and I live in Vilnius.", f"The kiln's code word is {SECRET}.", "Please order 40 kg of clay by 3 May.")
SUMMARY = f"Ada lives in Vilnius, needs 40 kg of clay by 3 May, and the code word is {SECRET}."


@dataclass(frozen=True)
class Api:
    """One of the ways in which a model is asked.

    Attributes:
        path: Where its requests go.
        kind: How it is asked for a document: `format` or `tool`.
        settings: The model's.
    """

    path: str
    kind: str
    settings: dict[str, Any]

    def model(self, api: OpenAiApi, **named: Any) -> ChatOpenAI:
        return ChatOpenAI(
            base_url=api.url,
            api_key="x",  # type: ignore[arg-type]
            **{"max_retries": 0, **self.settings, **named},
        )


CURRENT, OLDER = "gpt-4.1-mini", "gpt-4"
WAYS = {
    "chat": Api(CHAT, "format", {"model": CURRENT}),
    "chat-streamed": Api(CHAT, "format", {"model": CURRENT, "streaming": True}),
    "chat-tool": Api(CHAT, "tool", {"model": OLDER}),
    "chat-tool-streamed": Api(CHAT, "tool", {"model": OLDER, "streaming": True}),
    "responses": Api(RESPONSES, "format", {"model": CURRENT, "use_responses_api": True}),
    "responses-streamed": Api(RESPONSES, "format", {"model": CURRENT, "use_responses_api": True, "streaming": True}),
    "responses-tool": Api(RESPONSES, "tool", {"model": OLDER, "use_responses_api": True}),
}


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> Api:
    return WAYS[request.param]


@pytest.fixture(params=["sync", "async"])
def color(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def server() -> Iterator[OpenAiApi]:
    """One for the file: langchain-openai keeps its clients, which are costly to make, by the address."""
    server = OpenAiApi(good)
    yield server
    server.stop()


@pytest.fixture
def api(server: OpenAiApi) -> OpenAiApi:
    server.script = good
    server.requests.clear()
    return server


@pytest.fixture
def slow_api() -> Iterator[OpenAiApi]:
    """One for the test: what it is late with must not reach another test."""
    api = OpenAiApi(good)
    yield api
    api.stop()


@pytest.fixture(scope="module")
def connected(conn_string: str) -> Iterator[SupabaseMemory]:
    """One for the file: the first calls over a connection cost more than all that follow."""
    with SupabaseMemory.from_conn_string(conn_string) as memory:
        yield memory


@pytest.fixture
def memory(connected: SupabaseMemory, user_id: str) -> SupabaseMemory:
    """A memory with a conversation, and without a model."""
    memory = SupabaseMemory(connected._services.transport, user_id=user_id)
    conversation_of(memory, **WHERE).append([HumanMessage(text, id=f"m{number}") for number, text in enumerate(SAID)])
    return memory


def asking(memory: SupabaseMemory, model: BaseChatModel, **policy: Any) -> SupabaseMemory:
    """The same database and user with a model."""
    return SupabaseMemory(
        memory._services.transport,
        user_id=memory.user_id,
        model=model,
        config=MemoryConfig(board_policy=BoardPolicy(**policy), policy=SummaryPolicy(keep_characters=0, **policy)),
    )


async def do(color: str, verb: Callable[..., Any], **named: Any) -> Any:
    """Call a verb or its async twin."""
    if color == "sync":
        return verb(**named)
    return await getattr(verb.__self__, "a" + verb.__name__)(**named)  # type: ignore[attr-defined]


def document(summary: str = SUMMARY, facts: Sequence[tuple[int, str, str | None]] = ((0, SAID[0], None),)) -> str:
    """A board's document, with every property as a strict schema has it."""
    made = [{"text": text, "source": at, "quote": text, "replaces": replaces} for at, text, replaces in facts]
    task = {
        "text": "Order 40 kg of clay",
        "source": 2,
        "quote": "order 40 kg of clay",
        "state": "open",
        "replaces": None,
    }
    topics = [{"text": "Clay", "source": 2, "quote": "40 kg of clay"}]
    lists: dict[str, Any] = {each.plural: [] for each in BOARD_KINDS.values()}
    lists |= {"facts": made, "topics": topics, "action_items": [task]}
    return json.dumps({"summary": summary, "context_notes": None, **lists, "closed": []})


def good(request: Request) -> str:
    return document() if is_board(request) else SUMMARY


def is_board(request: Request) -> bool:
    return "You keep the board" in request.prompt


def in_turn(*answers: Answer | str) -> Script:
    """These answers one after another, the last one for ever."""
    left = list(answers)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


def texts(board: Board) -> list[str]:
    return sorted(item.text for item in board.items)


# --- What is sent


@ONE_LOOP
async def test_everything_is_written_with_requests_that_openai_accepts(
    memory: SupabaseMemory, api: OpenAiApi, way: Api, color: str
) -> None:
    before = copy.deepcopy(SCHEMA)
    asked = asking(memory, way.model(api))
    conversation = conversation_of(asked, **WHERE)
    made = await do(color, conversation.summaries.make)
    assert (made.failed, made.model_calls, len(made.segments)) == (None, 1, 1)
    assert [each.content for each in await do(color, conversation.summaries.list)] == [SUMMARY]

    revised = await do(color, conversation.board.revise)
    assert (revised.failed, revised.model_calls, revised.added, revised.refused) == (None, 1, 3, 0)
    board = await do(color, conversation.board.read)
    assert board.summary == SUMMARY
    assert [(item.text, item.quote) for item in board.facts] == [(SAID[0], SAID[0])]
    assert board.model == way.settings["model"]

    # A second revision is told of the first one's items, and replaces one.
    conversation_of(memory, **WHERE).append([HumanMessage("No, I live in Kaunas.", id="m3")])
    number = next(n for n, item in enumerate(board.items, 1) if item.kind == "fact")
    api.script = lambda request: (
        document(facts=[(3, "No, I live in Kaunas.", f"f{number}")]) if is_board(request) else SUMMARY
    )
    whole = await do(color, conversation.summaries.complete)
    assert (whole.failed, whole.model_calls) == (None, 1)
    assert whole.summary.content == SUMMARY
    assert "Clay" in whole.summary.topics
    assert [item.text for item in (await do(color, conversation.board.read)).facts if item.is_open] == [
        "No, I live in Kaunas."
    ]

    assert {request.path for request in api.requests} == {way.path}
    assert [violations(request) for request in api.requests] == [[]] * 4
    assert [bool(request.body.get("stream")) for request in api.requests] == [bool(way.settings.get("streaming"))] * 4
    boards = [request for request in api.requests if is_board(request)]
    for request in boards:
        assert request.schema is not None
        assert (request.schema.kind, request.schema.name, request.schema.strict) == (way.kind, "revise_board", True)
        assert strict_faults(request.schema.body) == []
        # What may be left out is null instead; nothing else may be.
        facts = request.schema.body["properties"]["facts"]["items"]["properties"]
        assert [facts[name]["type"] for name in ("text", "source", "replaces")] == [
            "string",
            "integer",
            ["string", "null"],
        ]
        assert request.schema.body["properties"]["context_notes"]["type"] == ["string", "null"]
        assert request.schema.body["properties"]["summary"]["type"] == "string"
    assert len(boards) == 2
    assert [request.schema for request in api.requests if not is_board(request)] == [None, None]
    assert before == SCHEMA


def test_the_rules_find_what_openai_refuses() -> None:
    item: dict[str, Any] = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    right = {**item, "properties": {"a": {"type": ["string", "null"]}}, "required": ["a"]}
    deep: dict[str, Any] = right
    for _ in range(5):
        deep = {**item, "properties": {"a": deep}, "required": ["a"]}
    nested = {**item, "properties": {"a": {"type": "array", "items": {**right, "required": []}}}, "required": ["a"]}
    wrong: list[dict[str, Any]] = [
        {"type": "array", "items": right}, {**right, "anyOf": [right]}, {**right, "required": []}, nested, deep,
        {**right, "additionalProperties": True}, {name: right[name] for name in ("type", "properties", "required")},
        {**right, "properties": {"a": {"type": "string", "default": "x"}}}, {**right, "allOf": [right]},
        {**right, "properties": {"a": {"type": "array"}}}, {**right, "properties": {"a": {"description": "any"}}},
        {**right, "properties": {"a": {"type": "string", "enum": ["x" * 20_000]}}},
    ]  # fmt: skip
    assert strict_faults(right) == []
    assert all(strict_faults(each) for each in [*wrong, SCHEMA])

    form = {"type": "json_schema", "json_schema": {"name": "a b", "strict": True, "schema": right}}
    messages = [{"role": "user", "content": "x"}]
    refused: list[dict[str, Any]] = [{"response_format": form}, {"ls_structured_output_format": {}}, {"messages": []}]
    for more in refused:
        assert violations(Request(CHAT, {"model": "m", "messages": messages, **more}))
    assert violations(Request(CHAT, {"model": "m", "messages": messages})) == []


def test_a_model_derived_from_openais_is_asked_with_what_it_takes(memory: SupabaseMemory, api: OpenAiApi) -> None:
    class Plain(ChatOpenAI):
        def with_structured_output(self, *_: Any, **__: Any) -> Any:
            raise TypeError("unexpected keyword")

    plain = Plain(model=CURRENT, base_url=api.url, api_key="x", max_retries=0)  # type: ignore[arg-type]
    assert conversation_of(asking(memory, plain), **WHERE).board.revise().failed is None
    assert [request.schema for request in api.requests] == [None]


def test_azure_is_asked_alike(memory: SupabaseMemory, api: OpenAiApi) -> None:
    model = AzureChatOpenAI(
        azure_endpoint=api.url.removesuffix("/v1"),
        api_key="x",  # type: ignore[arg-type]
        api_version="2025-01-01-preview",
        model="gpt-4o",
        max_retries=0,
    )
    assert conversation_of(asking(memory, model, attempts=1), **WHERE).board.revise().failed is None
    (request,) = api.requests
    assert violations(request) == []
    assert request.schema is not None
    assert request.schema.strict


# --- What comes back


CUT_OFF = {"cut off", "LengthFinishReasonError"}
REFUSED = {"refused", "ContentFilterFinishReasonError"}
UNSUPPORTED = "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model."

BAD: dict[str, tuple[Answer, set[str]]] = {
    # Of a streamed refusal in plain text langchain-openai keeps nothing.
    "refusal": (Answer(refusal=f"I'm not going to write about {SECRET}."), {"refused", "empty"}),
    "length": (Answer(document()[:90], finish="length"), CUT_OFF),
    # The Responses API calls both incomplete.
    "content filter": (Answer(f"It is {SECRET}", finish="content_filter"), REFUSED | CUT_OFF),
    "429": (Answer(f"Slow down, {SECRET}", status=429, headers={"Retry-After": "30"}), {"OpenAIRateLimitError"}),
    "500": (Answer(f"Failed at {SECRET}", status=500), {"OpenAIAPIError"}),
    "400": (Answer(f"{UNSUPPORTED} {SECRET}", status=400), {"OpenAIInvalidRequestError"}),
    "no document": (Answer(f"The word is {SECRET}."), {"malformed"}),
    # Servers that do not say that they cut.
    "half a document": (Answer(document()[:90]), {"malformed"}),
    "nothing": (Answer(""), {"empty"}),
}  # fmt: skip


# Every answer over every way, and by turns in either color, so that each color meets every answer and every way.
CASES = [
    pytest.param(WAYS[way], ("sync", "async")[(place + number) % 2], name, id=f"{way}-{name}")
    for place, way in enumerate(WAYS)
    for number, name in enumerate(BAD)
]


@ONE_LOOP
@pytest.mark.parametrize(("way", "color", "name"), CASES)
async def test_a_bad_answer_changes_nothing_and_a_good_one_after_it_counts(
    memory: SupabaseMemory, api: OpenAiApi, way: Api, color: str, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    caplog.set_level(logging.DEBUG, logger="langchain_supabase_memory")
    bad, reasons = BAD[name]
    asked = asking(memory, way.model(api))
    assert (await do(color, conversation_of(asked, **WHERE).board.revise)).failed is None
    conversation_of(memory, **WHERE).append([HumanMessage("I moved to Kaunas.", id="m3")])
    before = await do(color, conversation_of(asked, **WHERE).board.read)

    # A fresh memory each time: what a server cannot do is remembered.
    asked, api.script = asking(memory, way.model(api)), in_turn(bad)
    api.requests.clear()
    failed = await do(color, conversation_of(asked, **WHERE).board.revise)
    assert failed.failed in reasons
    assert (failed.model_calls, failed.added, failed.through_sequence) == (2, 0, 2)
    assert len(api.requests) == 2
    assert [request.schema is None for request in api.requests] == [False, True]
    assert await do(color, conversation_of(asked, **WHERE).board.read) == before
    failed_summary = await do(color, conversation_of(asked, **WHERE).summaries.make)
    if name in ("no document", "half a document"):
        assert failed_summary.failed is None  # for a summary it is a text like any other
    else:
        assert (failed_summary.failed in reasons, failed_summary.model_calls, failed_summary.segments) == (True, 2, [])
    assert SECRET not in repr(failed)
    assert SECRET not in repr(failed_summary)

    asked, api.script = asking(memory, way.model(api)), in_turn(bad, document(facts=[(3, "I moved to Kaunas.", None)]))
    api.requests.clear()
    revised = await do(color, conversation_of(asked, **WHERE).board.revise)
    assert (revised.failed, revised.model_calls, revised.through_sequence) == (None, 2, 3)
    assert [request.schema is None for request in api.requests] == [False, True]
    assert [violations(request) for request in api.requests] == [[], []]
    assert "I moved to Kaunas." in texts(await do(color, conversation_of(asked, **WHERE).board.read))
    assert SECRET not in logged(caplog)


def logged(caplog: pytest.LogCaptureFixture) -> str:
    """All that was logged, with its extra fields and exceptions."""
    return "\n".join([caplog.text, *(str(vars(record)) for record in caplog.records)])


@ONE_LOOP
async def test_a_server_without_structured_output_is_asked_plainly_from_then_on(
    memory: SupabaseMemory, api: OpenAiApi, way: Api, color: str
) -> None:
    api.script = lambda request: Answer(UNSUPPORTED, status=400) if request.schema else f"```json\n{document()}\n```"
    asked = asking(memory, way.model(api), attempts=1)
    failed = await do(color, conversation_of(asked, **WHERE).board.revise)
    assert (failed.failed, failed.model_calls) == ("OpenAIInvalidRequestError", 1)
    revised = await do(color, conversation_of(asked, **WHERE).board.revise)
    assert (revised.failed, revised.model_calls, revised.added) == (None, 1, 3)
    assert [request.schema is None for request in api.requests] == [False, True]


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "This model's maximum context length is 8192 tokens. Please reduce the length of the messages."),
        (500, UNSUPPORTED),
        (429, UNSUPPORTED),
    ],
)
def test_other_failures_do_not_end_structured_output(
    memory: SupabaseMemory, api: OpenAiApi, status: int, message: str
) -> None:
    asked = asking(memory, WAYS["chat"].model(api), attempts=1)
    api.script = in_turn(Answer(message, status=status), document())
    assert conversation_of(asked, **WHERE).board.revise().failed is not None
    assert conversation_of(asked, **WHERE).board.revise().failed is None
    assert [request.schema is None for request in api.requests] == [False, False]


@ONE_LOOP
@pytest.mark.parametrize("around", ["```json\n{}\n```", "Here it is:\n\n```\n{}\n```\nAnything else?", " \n{}\n"])
async def test_a_document_in_a_fence_is_read(memory: SupabaseMemory, api: OpenAiApi, color: str, around: str) -> None:
    """Servers that take a schema and do not hold to it."""
    for number, way in enumerate(each for each in WAYS.values() if each.kind == "format"):
        fact = f"Room {number} is cold."
        conversation_of(memory, **WHERE).append([HumanMessage(fact, id=f"r{number}")])
        api.script = in_turn(around.replace("{}", document(facts=[(3 + number, fact, None)])))
        result = await do(color, conversation_of(asking(memory, way.model(api)), **WHERE).board.revise)
        assert (result.failed, result.model_calls) == (None, 1)
        assert fact in texts(conversation_of(memory, **WHERE).board.read())


# --- Time


@ONE_LOOP
async def test_an_answer_that_does_not_come_is_not_waited_for(
    memory: SupabaseMemory, slow_api: OpenAiApi, way: Api, color: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    asked = asking(memory, way.model(slow_api))
    conversation = conversation_of(asked, **WHERE)
    assert (await do(color, conversation.board.revise)).failed is None
    conversation_of(memory, **WHERE).append([HumanMessage(f"Still {SECRET}.", id="m3")])
    before = await do(color, conversation.board.read)
    slow_api.requests.clear()
    slow_api.script = in_turn(Answer(hangs=True))
    begun = time.monotonic()
    failed = await do(
        color, conversation_of(asking(memory, way.model(slow_api), timeout_seconds=0.3), **WHERE).board.revise
    )
    assert time.monotonic() - begun > 0.59
    assert (failed.failed, failed.model_calls) == ("TimeoutError", 2)
    assert len(slow_api.requests) <= 2  # on a slow machine the limit may pass before the request is there
    assert await do(color, conversation.board.read) == before
    slow_api.script = in_turn(document())
    assert (await do(color, conversation.board.revise)).failed is None
    assert SECRET not in logged(caplog)


@ONE_LOOP
@pytest.mark.parametrize("status", [429, 500])
async def test_the_clients_own_repeats_are_within_one_call(
    memory: SupabaseMemory, api: OpenAiApi, color: str, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    bad = Answer(SECRET, status=status, headers={"Retry-After": "0.02"})
    for number, way in enumerate((WAYS["chat"], WAYS["responses"])):
        conversation_of(memory, **WHERE).append([HumanMessage(f"Line {number}.", id=f"n{number}")])
        api.requests.clear()
        api.script = in_turn(bad, bad, document())
        result = await do(color, conversation_of(asking(memory, way.model(api, max_retries=2)), **WHERE).board.revise)
        assert (result.failed, result.model_calls, len(api.requests)) == (None, 1, 3)
        assert all(request.schema is not None for request in api.requests)

        conversation_of(memory, **WHERE).append([HumanMessage(f"Next {number}.", id=f"x{number}")])
        api.requests.clear()
        api.script = in_turn(bad)
        result = await do(color, conversation_of(asking(memory, way.model(api, max_retries=2)), **WHERE).board.revise)
        assert result.failed in ("OpenAIRateLimitError", "OpenAIAPIError")
        assert (result.model_calls, len(api.requests)) == (2, 2 * 3)
        api.script = good
        assert (await do(color, conversation_of(asking(memory, way.model(api)), **WHERE).board.revise)).failed is None
    assert SECRET not in logged(caplog)


@ONE_LOOP
async def test_a_long_retry_after_is_cut_by_the_timeout(memory: SupabaseMemory, slow_api: OpenAiApi) -> None:
    slow_api.script = in_turn(Answer("later", status=429, headers={"Retry-After": "60"}))
    begun = time.monotonic()
    asked = asking(memory, WAYS["chat"].model(slow_api, max_retries=2), timeout_seconds=0.5)
    failed = await conversation_of(asked, **WHERE).board.arevise()
    assert (failed.failed, failed.model_calls) == ("TimeoutError", 2)
    assert time.monotonic() - begun < 30
    assert len(slow_api.requests) <= 2


# --- Nothing of it is streamed to the user


IN_GRAPHS = ("chat", "responses", "chat-tool")


async def streamed(color: str, graph: Any, given: Any) -> str:
    """The tokens that a user of the graph sees."""
    settings: Any = {"configurable": {"thread_id": "t"}}
    if color == "sync":
        events = list(graph.stream(given, settings, stream_mode="messages"))
    else:
        events = [event async for event in graph.astream(given, settings, stream_mode="messages")]
    return "".join(str(chunk.text) for chunk, _ in events)


@ONE_LOOP
@pytest.mark.parametrize("name", IN_GRAPHS)
async def test_a_summary_before_an_answer_is_not_streamed(
    memory: SupabaseMemory, api: OpenAiApi, color: str, name: str
) -> None:
    # LangGraph asks every model in a graph for its tokens; those of the memory are nobody's.
    way = WAYS[name]
    api.script = lambda request: SUMMARY if "You keep the memory" in request.prompt else "a long and winding answer"
    middleware = SupabaseMemoryMiddleware(memory, model=way.model(api), budget=ContextBudget(characters=2000))
    agent = create_agent(way.model(api), middleware=[middleware])
    turns = ((HumanMessage(f"q{n} " * 20), AIMessage(f"a{n} " * 20)) for n in range(30))
    conversation_of(memory, **WHERE).append([each for turn in turns for each in turn])
    tokens = await streamed(color, agent, {"messages": [HumanMessage("tell")]})
    assert tokens == "a long and winding answer"
    assert len(api.requests) >= 2
    assert [bool(request.body.get("stream")) for request in api.requests][-1:] == [True]
    assert not any(request.body.get("stream") for request in api.requests[:-1])
    assert SECRET in conversation_of(memory, **WHERE).summaries.list()[-1].content


@ONE_LOOP
@pytest.mark.parametrize("name", IN_GRAPHS)
async def test_a_board_in_a_node_is_not_streamed(memory: SupabaseMemory, api: OpenAiApi, color: str, name: str) -> None:
    way = WAYS[name]
    asked = asking(memory, way.model(api))

    conversation = conversation_of(asked, **WHERE)

    def revise(_: MessagesState) -> dict[str, Any]:
        assert conversation.board.revise().failed is None
        assert conversation.summaries.complete().failed is None
        return {}

    async def arevise(_: MessagesState) -> dict[str, Any]:
        assert (await conversation.board.arevise()).failed is None
        assert (await conversation.summaries.acomplete()).failed is None
        return {}

    def answer(_: MessagesState) -> dict[str, Any]:
        return {"messages": [way.model(api).invoke("tell")]}

    graph: Any = StateGraph(MessagesState)
    graph.add_node("revise", revise if color == "sync" else arevise)
    graph.add_node("answer", answer)
    graph.add_edge(START, "revise")
    graph.add_edge("revise", "answer")
    graph.add_edge("answer", END)
    api.script = lambda request: good(request) if request.prompt != "tell" else "a winding answer"
    assert await streamed(color, graph.compile(), {"messages": []}) == "a winding answer"
    assert [bool(request.body.get("stream")) for request in api.requests] == [False, False, True]
    assert conversation_of(memory, **WHERE).board.read().summary == SUMMARY
