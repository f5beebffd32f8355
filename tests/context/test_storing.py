"""Storing and reading in one call, stepped by hand: new messages are stored even if reading fails."""

from __future__ import annotations

from typing import Any

import pytest

from langchain_supabase_memory.context.append_and_load import append_and_load
from langchain_supabase_memory.effects import Call, Embed, Flow, call
from langchain_supabase_memory.errors import (
    AccessError,
    EmbeddingError,
    MigrationConflictError,
    TooLargeError,
    UnavailableError,
)
from tests.each_case import each_case

APPEND = {"p_thread_id": "t", "p_user_id": "u", "p_messages": [1], "p_retention": {"turns": 9}}
READ = {"p_thread_id": "t", "p_user_id": "u", "p_retention": {"turns": 9}}
ASKED = {
    "characters": 100,
    "messages": 7,
    "recall": None,
    "recent": 5,
    "board": 0,
    "branch_ids": None,
    "due": None,
    "shared": {"agents": ["bookkeeper"], "items": 5},
    "profile": 5,
}


def storing(pages: int = 1) -> Flow[list[Any]]:
    stored = []
    for page in range(pages):
        stored.append((yield from call("memory_append", {**APPEND, "page": page})))
    return stored


def reading(then: Exception | None = None) -> Flow[Any]:
    vectors = yield Embed(["tea"], is_query=True)
    read = yield from call(
        "memory_context", {**READ, **{f"p_{name}": value for name, value in ASKED.items()}}, "load context"
    )
    if then is not None:
        raise then
    noted = yield from call("memory_set_aside", {})
    return vectors, read, noted


def stepped(flow: Flow[Any], *answers: Any) -> tuple[list[str], Any]:
    """What a flow calls and returns, if it is answered so; an exception is raised in it."""
    steps, asked = [], next(flow)
    try:
        for answer in answers:
            steps.append(asked.function if isinstance(asked, Call) else type(asked).__name__)
            asked = flow.throw(answer) if isinstance(answer, Exception) else flow.send(answer)
    except StopIteration as stop:
        return steps, stop.value
    pytest.fail(f"it goes on after {steps} with {asked}")


def test_an_append_and_a_reading_are_one_call() -> None:
    flow = append_and_load(storing(), reading())
    assert isinstance(next(flow), Embed)
    both = flow.send([[1.0]])
    assert isinstance(both, Call)
    assert (both.function, both.operation) == ("memory_append_context", "load context")
    assert both.arguments == {**APPEND, "page": 0, "p_context": ASKED}
    noted = flow.send({"stored": "s", "context": "c"})
    assert isinstance(noted, Call)
    assert noted.function == "memory_set_aside"
    with pytest.raises(StopIteration) as stopped:
        flow.send(True)
    assert stopped.value.value == (["s"], ([[1.0]], "c", True))


@each_case("refusal", [MigrationConflictError("other"), TooLargeError("large"), AccessError("no")])
def test_what_is_refused_is_stored_by_itself(refusal: Exception) -> None:
    steps, made = stepped(append_and_load(storing(), reading()), [[1.0]], refusal, "s")
    assert steps == ["Embed", "memory_append_context", "memory_append"]
    assert made == (["s"], None), "it is read by itself, and told why that fails"


def test_an_append_that_is_refused_by_itself_is_refused() -> None:
    with pytest.raises(AccessError):
        stepped(append_and_load(storing(), reading()), [[1.0]], AccessError("no"), AccessError("no"))


def test_a_database_that_is_away_is_not_asked_again() -> None:
    with pytest.raises(UnavailableError):
        stepped(append_and_load(storing(), reading()), [[1.0]], UnavailableError("away"))


def test_an_embedder_that_fails_costs_only_the_reading() -> None:
    steps, made = stepped(append_and_load(storing(), reading()), EmbeddingError("down"), "s")
    assert (steps, made) == (["Embed", "memory_append"], (["s"], None))


def test_what_fails_after_the_call_costs_only_the_reading() -> None:
    answer = {"stored": "s", "context": "c"}
    assert stepped(append_and_load(storing(), reading(ValueError("x"))), [[1.0]], answer)[1] == (["s"], None)
    _, made = stepped(append_and_load(storing(), reading()), [[1.0]], answer, UnavailableError("away"))
    assert made == (["s"], None)


def test_pages_are_not_read_in_between() -> None:
    first = {"stored": "s", "context": "too early"}
    steps, made = stepped(append_and_load(storing(3), reading()), [[1.0]], first, "s", "s")
    assert steps == ["Embed", "memory_append_context", "memory_append", "memory_append"]
    assert made == (["s", "s", "s"], None)


def test_what_was_not_stored_is_read_behind_what_is_stored_then() -> None:
    nothing, then = {"stored": None, "context": None}, {"stored": "s", "context": "c"}
    steps, made = stepped(append_and_load(storing(2), reading()), [[1.0]], nothing, then, "noted")
    assert steps == ["Embed", "memory_append_context", "memory_append_context", "memory_set_aside"]
    assert made == ([None, "s"], ([[1.0]], "c", "noted"))


def test_both_are_closed_with_it() -> None:
    store, read = storing(), reading()
    flow = append_and_load(store, read)
    next(flow)
    flow.close()
    assert store.gi_frame is None  # type: ignore[attr-defined]
    assert read.gi_frame is None  # type: ignore[attr-defined]
