"""Public values can be passed on: as JSON by FastAPI and pydantic, to another process, and as a copy."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, tzinfo
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langgraph.store.memory import InMemoryStore
from pydantic import TypeAdapter

from langchain_supabase_memory import (
    ExtractiveSummarizer,
    LoadContextNode,
    MemoryConfig,
    SaveTurnNode,
    SupabaseChatMessageHistory,
    SupabaseMemory,
    SupabaseMemoryMiddleware,
    SupabaseMemoryRetriever,
    SupabaseMemoryToolkit,
    SupabaseStore,
    SupabaseSummarizationNode,
    Worker,
    errors,
)
from langchain_supabase_memory.json_types import AnyMessage, Named
from langchain_supabase_memory.long_term import StoreLongTerm
from langchain_supabase_memory.memory.doctor.finding import Finding
from langchain_supabase_memory.models import EdgeEmbeddings, SupabaseSummarizer
from langchain_supabase_memory.operations.rollout.stages import Decision
from langchain_supabase_memory.settings import BreakerPolicy, ManifestPolicy, RecallWeights, RetryPolicy
from langchain_supabase_memory.telemetry import Metrics
from langchain_supabase_memory.testing import StoreCheck
from langchain_supabase_memory.values import Signal, UnreadableMessage
from langchain_supabase_memory.worker.worker import WorkerStats
from tests.chat_models import says
from tests.each_case import each_case
from tests.public import public_names

ANSWER = AIMessage(
    "It is 4.",
    id="m1",
    name="adder",
    tool_calls=[{"name": "add", "args": {"a": 2, "b": 2}, "id": "c1"}],
    usage_metadata={"input_tokens": 3, "output_tokens": 4, "total_tokens": 7},
)
WHEN = datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC)


def exported() -> Iterator[type[Any]]:
    """Each dataclass that the package exports, and those that its verbs return beside."""
    for each in public_names().values():
        # A memory's settings hold models, and a check of stores a function; no verb returns them.
        if isinstance(each, type) and dataclasses.is_dataclass(each) and each not in (MemoryConfig, StoreCheck):
            yield each
    yield from (BreakerPolicy, ManifestPolicy, RecallWeights, RetryPolicy)
    yield from (Decision, Finding, WorkerStats, UnreadableMessage)


VALUES = sorted(exported(), key=lambda each: each.__name__)


def sample(of: Any, depth: int = 0) -> Any:
    """A value of a type with something in each field that it has no default for, and mostly in the others."""
    origin, arguments = get_origin(of), get_args(of)
    simple: dict[Any, Any] = {
        str: "word",
        int: 1,
        float: 0.5,
        bool: True,
        datetime: WHEN,
        date: WHEN.date(),
        Signal: Signal.THANKS | Signal.COMPLAINT,
        Any: "any",
        AnyMessage: ANSWER,
    }
    if of in simple:
        return simple[of]
    if origin is Annotated and Named in arguments[1:]:
        return None
    if origin is Literal:
        return arguments[0]
    if origin in (Union, UnionType):
        return sample(next(each for each in arguments if each not in (type(None), tzinfo)), depth)
    if origin is tuple and Ellipsis not in arguments:
        return tuple(sample(each, depth) for each in arguments)
    if origin in (list, tuple, Sequence):
        return (tuple if origin is tuple else list)([sample(arguments[0], depth + 1)] if depth < 3 else [])
    if origin in (dict, Mapping):
        return {sample(arguments[0], depth): sample(arguments[1], depth + 1)}
    assert isinstance(of, type), of
    assert dataclasses.is_dataclass(of), of
    hints = get_type_hints(of, include_extras=True)
    checked = of.__module__.endswith(
        (".settings", ".stages", ".policy", ".memories")
    )  # they refuse what does not fit together
    needed = [
        each
        for each in dataclasses.fields(of)
        if each.init and not (checked and (each.default, each.default_factory) != (dataclasses.MISSING,) * 2)
    ]
    return of(**{each.name: sample(hints[each.name], depth + 1) for each in needed})


@each_case("value", VALUES, ids=lambda each: each.__name__)
def test_each_value_is_a_response_model_of_fastapi(value: type[Any]) -> None:
    from fastapi import FastAPI  # a second of the processor
    from fastapi.testclient import TestClient

    application = FastAPI()
    made = sample(value)

    def answer() -> Any:
        return made

    def answers() -> Any:
        return [made]

    application.get("/one", response_model=value)(answer)
    application.get("/many", response_model=list[value])(answers)  # type: ignore[valid-type]
    client = TestClient(application)
    assert client.get("/openapi.json").status_code == 200
    document = TypeAdapter(value).dump_python(made, mode="json")
    assert client.get("/one").json() == document
    assert client.get("/many").json() == [document]
    assert TypeAdapter(value).validate_python(document) == made


@each_case("value", VALUES, ids=lambda each: each.__name__)
def test_each_value_can_be_pickled_and_copied(value: type[Any]) -> None:
    made = sample(value)
    for again in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made), copy.copy(made)):
        assert again == made
        assert type(again) is value


ERRORS = [
    each for _, each in inspect.getmembers(errors, inspect.isclass) if issubclass(each, errors.SupabaseMemoryError)
]


@each_case("error", ERRORS, ids=lambda each: each.__name__)
def test_each_error_reaches_another_process_as_it_is(error: type[errors.SupabaseMemoryError]) -> None:
    if issubclass(error, errors.MissingDependencyError):
        made: errors.SupabaseMemoryError = error("The page", "inspector")
    else:
        made = error("It failed.", code="42501", hint="Try again.")
    for again in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made)):
        assert (type(again), str(again), vars(again)) == (error, str(made), vars(made))


def handles() -> Iterator[Any]:
    """One of each that belongs to its process; nothing is connected."""
    for memory in (
        SupabaseMemory.from_url(
            "http://localhost:1", "a-secret-key", user_id="maya", model=None, config=MemoryConfig(recall=None)
        ),
        SupabaseMemory.from_conn_string("postgresql://maya:a-secret@localhost:1/x", user_id="maya", model=None),
    ):
        yield from (memory, memory._services.transport, memory.conversation("t"), memory.work, memory.rollout)
        yield memory.for_token("a-secret-token") if memory._services.transport.acts_as_user else memory
    yield SupabaseMemoryMiddleware(memory)
    yield LoadContextNode(memory)
    yield SaveTurnNode(memory)
    yield SupabaseSummarizationNode(memory)
    yield SupabaseSummarizer(memory, model=ExtractiveSummarizer())
    yield SupabaseChatMessageHistory("t", memory)
    yield Worker(memory)
    yield SupabaseStore(memory)
    yield StoreLongTerm(InMemoryStore(), "maya")
    yield Metrics()
    yield EdgeEmbeddings("https://project.supabase.co", "a-secret-key")


def test_what_holds_connections_is_shared_by_its_copies_and_refuses_pickle() -> None:
    for handle in handles():
        assert copy.deepcopy(handle) is handle
        assert copy.deepcopy({"configurable": [handle]})["configurable"][0] is handle
        assert vars(copy.copy(handle)) == vars(handle)
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            with pytest.raises(
                errors.ConfigurationError, match=f"{type(handle).__name__} .*cannot be pickled"
            ) as refused:
                pickle.dumps(handle, protocol)
            assert "create the memory there" in refused.value.hint
            assert "secret" not in str(refused.value)


def test_a_copy_of_an_agent_or_of_a_part_of_a_chain_uses_the_same_memory() -> None:
    memory = SupabaseMemory.from_conn_string("postgresql://localhost:1/x", user_id="maya", model=None)
    for part in (SupabaseMemoryRetriever(memory=memory), SupabaseMemoryToolkit(memory=memory)):
        assert copy.deepcopy(part).memory is memory
        assert part.model_copy(deep=True).memory is memory
        with pytest.raises(errors.ConfigurationError, match="cannot be pickled"):
            pickle.dumps(part)
    agent = create_agent(says("Yes."), middleware=[SupabaseMemoryMiddleware(memory)])
    assert set(copy.deepcopy(agent).nodes) == set(agent.nodes)
