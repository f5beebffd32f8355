"""The limits of one call: set by the operator, with clear errors, and no turn is lost."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import psycopg
import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from langchain_supabase_memory import (
    SupabaseChatMessageHistory,
    SupabaseMemory,
    SupabaseMemoryMiddleware,
    SupabaseStore,
)
from langchain_supabase_memory.effects import Call
from langchain_supabase_memory.errors import InvalidInputError, TooLargeError
from langchain_supabase_memory.language.messages import codec, truncation
from langchain_supabase_memory.operations import conversations
from langchain_supabase_memory.values import check_id, is_id
from tests.chat_models import ScriptedModel
from tests.conftest import Caller
from tests.each_case import each_case
from tests.owners import conversation_of
from tests.services.postgres import Cluster

MIB: Final = 1_048_576


def picture(size: int, **more: Any) -> dict[str, Any]:
    return {
        "type": "image",
        "base64": base64.b64encode(b"x" * (size * 3 // 4)).decode(),
        "mime_type": "image/png",
        **more,
    }


@pytest.fixture
def limited(cluster: Cluster, own: str) -> Iterator[Callable[..., SupabaseMemory]]:
    """A memory under the limits that are given; they are put back."""
    memory = SupabaseMemory.from_conn_string(cluster.conn_string(own), user_id="u")

    def under(**limits: int) -> SupabaseMemory:
        for name, value in limits.items():
            cluster.execute(f"update memory_private.limits set {name} = {value}", database=own)
        return memory

    yield under
    cluster.execute("delete from memory_private.limits; insert into memory_private.limits default values", database=own)
    memory.close()


# A message


@pytest.mark.parametrize("caller", ["data_api-async", "direct-sync"], indirect=True)
async def test_a_turn_is_not_dropped_for_a_picture(
    caller: Caller, user_id: str, caplog: pytest.LogCaptureFixture
) -> None:
    asked = HumanMessage([{"type": "text", "text": "What is this kiln?"}, picture(6 * MIB), picture(100)], id="asked")
    await caller(caller.service.for_user(user_id).conversation("t").append, [asked, AIMessage("A Cress.")])
    assert len(asked.content[1]["base64"]) > 5 * MIB, "the caller's own stays"  # type: ignore[index]
    stored = (await caller(caller.service.for_user(user_id).conversation("t").read))[0].message
    assert stored.content[0] == {"type": "text", "text": "What is this kiln?"}
    assert stored.content[1] == {"type": "text", "text": "[image/png, 6.3 MB, left out: more than a message may have]"}
    assert stored.content[2] == asked.content[2], "what fits stays"
    assert "[image/png" in (await caller(caller.service.for_user(user_id).conversation("t").turns.list))[0].user_query
    (logged,) = [each for each in caplog.records if each.levelname == "WARNING"]
    assert logged.getMessage().startswith("A message of 6.3 MB is stored without some of it")
    assert getattr(logged, "memory_message_id", None) == "asked"


@pytest.mark.parametrize(
    "message",
    [
        HumanMessage("long " * 1_500_000, id="m"),
        HumanMessage("窯" * 3_000_000, id="m"),
        HumanMessage([{"type": "text", "text": '\u0000\\"' * 900_000}, picture(5 * MIB)], id="m"),
        ToolMessage("found", tool_call_id="c", artifact={"rows": ["x" * 1000] * 9000}, id="m"),
        AIMessage("", tool_calls=[{"name": "write", "args": {"text": "y" * 6 * MIB}, "id": "c"}], id="m"),
        AIMessage(
            "said", additional_kwargs={"raw": "z" * 6 * MIB}, response_metadata={"more": list(range(900_000))}, id="m"
        ),
        HumanMessage([{"type": "text", "text": "w" * 50}] * 60_000, id="m"),
        HumanMessage([picture(2 * MIB), picture(MIB), picture(3 * MIB)], id="m"),
    ],
    ids=["text", "cjk", "escapes", "artifact", "arguments", "provider", "many blocks", "pictures"],
)
def test_whatever_is_too_large_the_message_is_stored_within_the_limit(message: BaseMessage, limited: Any) -> None:
    memory = limited()
    memory.conversation(str(uuid4())).append([message])
    row = codec.fit_row(codec.to_row(message), truncation.MESSAGE_BYTES)
    assert truncation.size(row) <= truncation.MESSAGE_BYTES
    kept = codec.from_payload(row["payload"])
    assert (type(kept), kept.id) == (type(message), "m")
    assert codec.unreadable_message(kept) is None
    assert "left out" in json.dumps(row["payload"])
    if isinstance(kept, AIMessage) and isinstance(message, AIMessage):
        assert [call["name"] for call in kept.tool_calls] == [call["name"] for call in message.tool_calls]


def test_what_fits_is_stored_as_it_is() -> None:
    message = HumanMessage([{"type": "text", "text": "x" * MIB}, picture(MIB)], id="m")
    assert codec.from_payload(codec.fit_row(codec.to_row(message), truncation.MESSAGE_BYTES)["payload"]) == message


LARGE: Final[dict[str, dict[str, Any]]] = {
    "one text": {"notes": "x" * 6_000_000},
    "many small ones": {f"k{number}": "y" * 600 for number in range(10_000)},
    "a list": {"rows": list(range(1_200_000))},
}


@pytest.mark.parametrize("metadata", LARGE.values(), ids=LARGE)
@pytest.mark.parametrize("caller", ["data_api-async", "direct-sync"], indirect=True)
async def test_metadata_that_is_too_large_ends_with_an_error_that_names_it(
    metadata: dict[str, Any], caller: Caller, user_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = appends(caller.service, monkeypatch)
    conversation = caller.service.for_user(user_id).conversation("t")
    with pytest.raises(TooLargeError, match=r"The metadata of a message has .* MB, exceeds .*Store less in metadata"):
        await caller(conversation.append, [HumanMessage("hello")], metadata=metadata)
    assert len(made) <= 2
    assert await caller(conversation.count) == 0
    await caller(conversation.append, [HumanMessage("hello")], metadata={"kept": 1})
    assert await caller(conversation.count) == 1


def test_a_row_of_an_import_that_is_too_large_is_refused_and_the_others_are_stored(
    limited: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = limited()
    made = appends(memory, monkeypatch)
    rows = {f"m{number}": codec.to_row(HumanMessage(str(number), id=f"m{number}")) for number in range(4)}
    rows["m2"]["metadata"] = LARGE["one text"]
    key = memory.conversation(uuid4())._key
    result = memory._services.run(conversations.append_rows(key, rows, retention=None, skip=True))
    assert (result.new, list(result.refused)) == (3, ["m2"])
    assert "The metadata of a message" in str(result.refused["m2"])
    assert len(made) <= 8


def appends(memory: SupabaseMemory, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The appends that are sent from now on; after twenty the twenty-first fails, so that no loop holds up the suite."""
    made: list[str] = []

    def counted(perform: Callable[[Call], Any]) -> Callable[[Call], Any]:
        def performed(call: Call) -> Any:
            if call.function == "memory_append":
                made.append(call.function)
                assert len(made) <= 20, "the same call again and again"
            return perform(call)

        return performed

    for name in ("perform", "aperform"):
        monkeypatch.setattr(memory._services.transport, name, counted(getattr(memory._services.transport, name)))
    return made


def test_an_operators_limit_holds_both_ways(limited: Any) -> None:
    memory = limited(message_bytes=20_000)
    history = SupabaseChatMessageHistory("less", memory=memory)
    history.add_messages([HumanMessage("short"), HumanMessage("x" * 100_000), AIMessage("answer")])
    said = [str(message.content) for message in history.messages]
    assert (said[0], said[2]) == ("short", "answer")
    assert "left out" in said[1]
    assert len(said[1]) < 20_000
    memory = limited(message_bytes=12 * MIB)
    memory.conversation("more").append([HumanMessage("y" * 5 * MIB)])
    assert len(str(memory.conversation("more").read()[0].message.content)) == 5 * MIB


# A call


def test_more_than_a_call_takes_is_refused_and_a_history_goes_on_in_parts(limited: Any) -> None:
    memory = limited(call_items=10)
    many = [HumanMessage(str(number)) for number in range(35)]
    with pytest.raises(TooLargeError, match="PT413.*fewer at once.*call_items"):
        memory.conversation("many").append(many)
    assert memory.conversation("many").count() == 0, "all or none"
    SupabaseChatMessageHistory("many", memory=memory).add_messages(many)
    assert [str(each.message.content) for each in memory.conversation("many").read()] == [str(n) for n in range(35)]
    memory = limited(call_bytes=65_536)
    with pytest.raises(TooLargeError, match="bytes.*less at once.*call_bytes"):
        memory.conversation("bytes").append([HumanMessage("x" * 9_000) for _ in range(5)])


@pytest.mark.parametrize(
    ("limits", "use", "names"),
    [
        ({"store_bytes": 2000}, lambda s, _: s.put(("a",), "k", {"x": "y" * 3000}), "store_bytes"),
        ({"store_calls": 5}, lambda s, _: [s.batch([_get(n) for n in range(6)])], "store_calls"),
        ({"store_searches": 1}, lambda s, _: s.batch([_search(), _search()]), "store_searches"),
        (
            {"opt_outs": 1},
            lambda _, m: [m.privacy.opt_out(actor="ana", topic=each) for each in ("kiln", "glaze")],
            "opt_outs",
        ),
        (
            {"board_items": 1},
            lambda _, m: [m.conversation("b").board.add("fact", each, actor="ana") for each in "ab"],
            "board_items",
        ),
    ],
    ids=["value", "operations", "searches", "opt-outs", "board"],
)
def test_each_limit_says_its_name(limited: Any, limits: dict[str, int], use: Any, names: str) -> None:
    memory = limited(**limits)
    memory.conversation("b").append([HumanMessage("Hello")])
    with pytest.raises(TooLargeError, match=names):
        use(SupabaseStore(memory), memory)


def _get(number: int) -> Any:
    from langgraph.store.base import GetOp

    return GetOp(("a",), str(number))


def _search() -> Any:
    from langgraph.store.base import SearchOp

    return SearchOp(("a",))


def test_pages_end_by_bytes_and_nothing_is_lost(limited: Any) -> None:
    memory = limited(answer_bytes=65_536)
    said = [
        HumanMessage(f"{n} " + "tea " * 5_000) if n % 2 == 0 else AIMessage(f"{n} " + "clay " * 4_000)
        for n in range(20)
    ]
    pages = memory.conversation("pages")
    pages.append(said)
    assert [each.message.content for each in pages.read()] == [each.content for each in said]
    assert [each.sequence for each in pages.read(last=9)] == list(range(11, 20))
    assert len(pages.turns.list()) == 10
    pages.index()
    chunks = pages.chunks.list()
    assert sum(len(each.content) for each in chunks) > 390_000
    pack = pages.context(model=None)
    shown = {n for entry in pack.fitted.recent for n in entry.sequences}
    told = {n for first, last, _ in pack.omitted for n in range(first, last + 1)}
    assert shown | told == set(range(20)), "what was not read is named"


async def test_what_the_database_refuses_costs_no_answer_and_waits(limited: Any, cluster: Cluster, own: str) -> None:
    memory = limited()
    model = ScriptedModel(script=lambda _: "answered")
    agent: Any = create_agent(model, middleware=[SupabaseMemoryMiddleware(memory)], checkpointer=InMemorySaver())
    run: RunnableConfig = {"configurable": {"thread_id": "refused"}}
    refuse = "alter table memory.conversation_messages add constraint no_kilns check (text !~ 'kiln')"
    cluster.execute(refuse, database=own)
    assert agent.invoke({"messages": "My kiln is red."}, run)["messages"][-1].content == "answered"
    assert (await agent.ainvoke({"messages": "And blue."}, run))["messages"][-1].content == "answered"
    assert memory.health().pending > 0
    cluster.execute("alter table memory.conversation_messages drop constraint no_kilns", database=own)
    agent.invoke({"messages": "And green."}, run)
    memory.flush()
    said = [str(each.message.content) for each in memory.conversation("refused").read()]
    assert sorted(said) == sorted(["My kiln is red.", "And blue.", "And green.", *["answered"] * 3])


# Ids: one rule, in Python and in the tables


IDS: Final = (
    "a", "x" * 512, "x" * 513, "漢" * 170, "漢" * 171, "", "a\nb", "a\x7fb", "a\x80b", "a\x9fb", "a\xa0b", "a b", " ", "🏺" * 128,
    "🏺" * 129, "\u2028", "\u202e", "a\tb", "\x01", "é" * 256, "é" * 257, "'; drop", "%", "\\",
)  # fmt: skip


@each_case("name", IDS)
def test_sql_and_python_accept_the_same_ids(cluster: Cluster, own: str, name: str) -> None:
    statements = {
        "thread_id": "insert into memory.conversations (user_id, thread_id) values ('ids', %s)",
        "user_id": "insert into memory.conversations (user_id, thread_id) values (%s, 'ids')",
        "agent_id": "insert into memory.conversations (user_id, thread_id, agent_id) values ('ids', 'ids', %s)",
    }
    with psycopg.connect(cluster.conn_string(own)) as connection:
        for statement in statements.values():
            try:
                with connection.transaction(force_rollback=True):
                    connection.execute(statement.encode(), [name])
                accepted = True
            except psycopg.errors.CheckViolation:
                accepted = False
            assert accepted is is_id(name)
    if not is_id(name):
        with pytest.raises(InvalidInputError):
            check_id("thread_id", name)


def test_a_message_whose_id_names_nothing_is_stored_all_the_same(limited: Any) -> None:
    memory = limited()
    odd = [HumanMessage("one", id="a\nb"), HumanMessage("two", id="漢" * 400), HumanMessage("three", id="x" * 5000)]
    conversation = memory.conversation("odd")
    assert conversation.append(odd).sequences == [0, 1, 2]
    assert conversation.append(odd).appended == 0, "the same ids again"
    assert [each.message.id for each in conversation.read()] == [each.id for each in odd]
    assert conversation.forget_message("a\nb").messages == 1


# The same call in another process


@pytest.mark.parametrize("caller", ["data_api-sync", "direct-async"], indirect=True)
async def test_an_idempotency_key_makes_a_repeat_of_another_process_one(caller: Caller, user_id: str) -> None:
    where = {"thread_id": "t", "user_id": user_id}
    conversation = conversation_of(caller.service, **where)
    for _ in range(2):  # each time with fresh objects, as another process has them
        said = [HumanMessage("Hello"), AIMessage("Hello yourself", id="given")]
        await caller(conversation.append, said, idempotency_key="request-1")
        await caller(conversation.add_turn, "How?", "So.", idempotency_key="request-2")
    stored = [each.message for each in await caller(conversation.read)]
    assert [each.content for each in stored] == ["Hello", "Hello yourself", "How?", "So."]
    assert stored[1].id == "given"
    await caller(conversation.add_turn, "How?", "So.", idempotency_key="request-3")
    assert await caller(conversation.count) == 6
    with pytest.raises(InvalidInputError, match="idempotency_key"):
        await caller(conversation.add_turn, "How?", "So.", idempotency_key="")
    assert not any("Hello" in str(each.id) or "request" in str(each.id) for each in stored)


# What a backend needs


HEAVY: Final = 200
"""In MiB; what limits.md promises."""


def peak(pid: int) -> int:
    """The most memory that a backend has had of its own, in bytes: what it shares with all is not counted."""
    status = dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return 1024 * (int(status["VmHWM"].split()[0]) - int(status["RssShmem"].split()[0]))


@pytest.mark.slow
def test_the_heaviest_call_that_is_allowed_keeps_a_backend_small(cluster: Cluster) -> None:
    address = cluster.conn_string(cluster.migrated_database())  # whose sessions are new: peaks of others do not count
    text = "word " * 200_000
    large = [
        codec.to_row(HumanMessage([{"type": "text", "text": text}, picture(2 * MIB)], id=f"l{n}")) for n in range(4)
    ]
    many = [codec.to_row(HumanMessage("x" * 200, id=f"s{n}")) for n in range(9_999)]
    calls: list[tuple[str, dict[str, Any]]] = [
        ("memory_append", {"p_thread_id": "large", "p_messages": large}),
        ("memory_append", {"p_thread_id": "large", "p_messages": [{**row, "id": f"{row['id']}b"} for row in large]}),
        ("memory_append", {"p_thread_id": "many", "p_messages": many}),
        ("memory_append", {"p_thread_id": "many", "p_messages": [{**row, "text": "y" * 200} for row in many]}),
        ("memory_read", {"p_thread_id": "large", "p_limit": 1000}),
        ("memory_read", {"p_thread_id": "many", "p_limit": 10**9, "p_columns": ["payload", "text", "images"]}),
        ("memory_context", {"p_thread_id": "large", "p_characters": 10**15, "p_messages": 2**31 - 1, "p_board": 10**6}),
        ("memory_context", {"p_thread_id": "many", "p_characters": 10**15, "p_messages": 2**31 - 1}),
        ("memory_turns", {"p_thread_id": "large", "p_last": 10**6}),
        ("memory_pending", {"p_thread_id": "large", "p_characters": 10**15, "p_until": 10**15}),
        ("memory_pending_chunks", {"p_thread_id": "large", "p_messages": 10**6, "p_characters": 10**15}),
        ("memory_pending_chunks", {"p_thread_id": "many", "p_messages": 10**6, "p_characters": 10**15}),
        ("memory_pending_board", {"p_thread_id": "large", "p_messages": 10**6, "p_items": 10**6, "p_characters": 10**15}),
        ("memory_store", {"p_ops": [
            {"op": "put", "namespace": ["n"], "key": str(n), "value": {"text": "word " * 190_000}} for n in range(14)]}),
        ("memory_store", {"p_ops": [
            {"op": "search", "prefix": ["n"], "query": "word", "limit": 7, "offset": 0, "refresh": False}] * 2}),
        ("memory_store", {"p_ops": [
            {"op": "get", "namespace": ["n"], "key": str(n), "refresh": False} for n in range(14)]}),
        ("memory_recall", {"p_ask": {"query": "word " * 100_000, "limit": 1000, "neighbors": 10**6, "whole": True}}),
    ]  # fmt: skip
    # Chunks with vectors of 3,072 numbers, as much as one call may pass.
    vector = [0.018042] * 3072
    chunks = [
        {"place": n, "part": 1, "id": str(uuid4()), "from_sequence": 0, "to_sequence": 0, "message_ids": ["l0"],
         "stretch": 0, "type": "fact", "role": "user", "speaker": None, "said_at": "2026-01-01", "content": "word " * 400,
         "tokens": 400, "importance": 0.5, "cohesion": 0.5, "has_time": False, "has_number": False, "embedding": vector}
        for n in range(480)
    ]  # fmt: skip
    heaviest: dict[str, int] = {}
    claims = json.dumps({"role": "authenticated", "sub": "heavy"})
    for function, arguments in calls:
        with psycopg.connect(address, autocommit=True) as fresh:
            fresh.execute("select set_config('request.jwt.claims', %s, false)", [claims])
            fresh.execute("set role authenticated")
            named = ", ".join(f"{name} => %({name})s" for name in arguments)
            given = {
                name: json.dumps(value) if isinstance(value, (list, dict)) else value
                for name, value in arguments.items()
            }
            answered = fresh.execute(f"select public.{function}({named})".encode(), given).fetchone()
            assert answered is not None
            heaviest[function] = max(heaviest.get(function, 0), peak(fresh.info.backend_pid) // MIB)
    with psycopg.connect(address, autocommit=True) as fresh:
        fresh.execute("select set_config('request.jwt.claims', %s, false)", [claims])
        fresh.execute("set role authenticated")
        answered = fresh.execute(
            "select public.memory_commit_chunks('large', id, -1, revision, 0, %s, p_model => 'm') ->> 'committed'"
            " from memory.conversations where thread_id = 'large'",
            [json.dumps(chunks)],
        ).fetchone()
        assert answered == ("true",)
        heaviest["memory_commit_chunks"] = peak(fresh.info.backend_pid) // MIB
    assert max(heaviest.values()) < HEAVY, heaviest
    assert max(heaviest.values()) > 20, "it is measured at all"
