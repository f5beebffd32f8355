"""Flows, stepped by hand: no database, no mock."""

from __future__ import annotations

import threading
from functools import cache, partial
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.effects import Call, Flow, Offload, arun, call, offload, run
from langchain_supabase_memory.errors import SchemaMissingError, SchemaOutdatedError
from langchain_supabase_memory.operations import conversations
from langchain_supabase_memory.types import ConversationKey
from tests.stepping import Answers

KEY = ConversationKey("t", "u")


def finish(flow: Flow[Any], answer: Any) -> Any:
    with pytest.raises(StopIteration) as stopped:
        flow.send(answer)
    return stopped.value.value


def test_an_append_is_one_call() -> None:
    flow = conversations.append(KEY, [HumanMessage("hello", id="m")])
    step = next(flow)
    assert isinstance(step, Call)
    assert step.function == "memory_append"
    assert step.arguments["p_messages"][0]["id"] == "m"
    result = finish(flow, {"conversation_id": "c", "sequences": [4], "appended": 1, "updated": []})
    assert result.sequences == [4]


def test_a_read_of_everything_pages_by_the_last_number() -> None:
    flow = conversations.read_rows(KEY)
    first = next(flow)
    assert isinstance(first, Call)
    assert first.arguments["p_from"] is None
    second = flow.send({"messages": [{"sequence": n} for n in range(1000)], "more": True})
    assert isinstance(second, Call)
    assert second.arguments["p_from"] == 1000
    assert len(finish(flow, {"messages": [], "more": False})) == 1000


def test_nothing_is_called_before_the_input_is_checked() -> None:
    with pytest.raises(ValueError, match="position 0"):
        next(conversations.append(KEY, [b"no message"]))  # type: ignore[list-item]


def test_a_missing_function_is_told_apart_from_a_missing_schema() -> None:
    flow = call("memory_new_verb", {})
    next(flow)
    assert flow.throw(SchemaMissingError(code="PGRST202")) == Call("memory_schema")
    with pytest.raises(SchemaOutdatedError, match=r"release 0\.0\.1 and has no memory_new_verb.*migrate"):
        flow.send({"version": "0.0.1"})
    bare = call("memory_read", {})
    next(bare)
    bare.throw(SchemaMissingError())
    with pytest.raises(SchemaMissingError, match="supabase-memory migrate"):
        bare.throw(SchemaMissingError())


def test_a_call_does_not_show_what_it_carries() -> None:
    assert "secret" not in repr(Call("memory_append", {"p_messages": "secret"}))


def _recovering() -> Flow[list[Any]]:
    seen: list[Any] = []
    for number in range(3):
        try:
            seen.append((yield Call("f", {"n": number})))
        except ValueError:
            seen.append("failed")
    return seen


async def test_both_drivers_run_one_flow_alike() -> None:
    def answer(call: Call) -> Any:
        if call.arguments["n"] == 1:
            raise ValueError
        return call.arguments["n"]

    assert run(_recovering(), Answers(answer)) == await arun(_recovering(), Answers(answer)) == [0, "failed", 2]


async def test_what_takes_the_processor_long_is_computed_beside_the_event_loop(conn_string: str) -> None:
    async with SupabaseMemory.from_conn_string(conn_string, user_id="u") as memory:
        assert await memory._services.arun(offload(threading.get_ident, 1000)) != threading.get_ident()
        assert memory._services.run(offload(threading.get_ident, 1000)) == threading.get_ident()
        assert await memory._services.arun(offload(threading.get_ident, 10)) == threading.get_ident(), (
            "not what is done at once"
        )
        with pytest.raises(ZeroDivisionError):
            await memory._services.arun(offload(lambda: 1 // 0, 1000))


async def test_what_reads_files_once_does_so_beside_the_event_loop(conn_string: str) -> None:
    @cache
    def words() -> int:
        return threading.get_ident()

    @cache
    def others() -> int:
        return words()

    async with SupabaseMemory.from_conn_string(conn_string, user_id="u") as memory:
        assert await memory._services.arun(offload(words, 1, warm_caches=(words,))) != threading.get_ident()
        assert (
            await memory._services.arun(offload(threading.get_ident, 1, warm_caches=(words, others)))
            != threading.get_ident()
        )
        others()
        assert (
            await memory._services.arun(offload(threading.get_ident, 1, warm_caches=(words, others)))
            == threading.get_ident()
        )
        words.cache_clear()
        assert memory._services.run(offload(words, 1, warm_caches=(words,))) == threading.get_ident()


def test_a_computation_does_not_show_what_it_holds() -> None:
    assert "secret" not in repr(Offload(partial(len, "secret")))
