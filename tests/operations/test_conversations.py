"""The conformance suite: every verb over conversations, through {Data API, direct} × {sync, async}."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.operations.conversations import ALL_COLUMNS
from langchain_supabase_memory.types import Conversation
from langchain_supabase_memory.values import Receipt
from tests.conftest import Caller
from tests.owners import conversation_of
from tests.recount import assert_counted


def turn(number: int) -> list[BaseMessage]:
    return [HumanMessage(f"question {number}"), AIMessage(f"answer {number}")]


async def texts(caller: Caller, conversation: Conversation, **bounds: Any) -> list[str]:
    return [str(stored.message.text) for stored in await caller(conversation.read, **bounds)]


async def test_append_numbers_from_zero_and_reads_back_in_order(caller: Caller, user_id: str) -> None:
    where = {"thread_id": "t", "user_id": user_id}
    first = await caller(conversation_of(caller.service, **where).append, turn(1))
    second = await caller(conversation_of(caller.service, **where).append, turn(2))
    assert (first.sequences, second.sequences) == ([0, 1], [2, 3])
    assert first.conversation_id == second.conversation_id
    assert await texts(caller, conversation_of(caller.service, **where)) == [
        "question 1",
        "answer 1",
        "question 2",
        "answer 2",
    ]
    assert await caller(conversation_of(caller.service, **where).count) == 4


async def test_the_same_message_is_stored_once_and_nothing_happens(caller: Caller, user_id: str) -> None:
    where = {"thread_id": "t", "user_id": user_id}
    messages = turn(1)
    await caller(conversation_of(caller.service, **where).append, messages)
    before = (await caller(caller.service.for_user(user_id).conversations))[0]
    again = await caller(conversation_of(caller.service, **where).append, messages)
    assert (again.sequences, again.appended, again.updated) == ([0, 1], 0, [])
    assert (await caller(caller.service.for_user(user_id).conversations))[0] == before


async def test_ids_are_set_on_the_callers_objects(caller: Caller, user_id: str) -> None:
    messages = turn(1)
    await caller(caller.service.for_user(user_id).conversation("t").append, messages)
    assert all(str(message.id).startswith("lc_") for message in messages)
    stored = await caller(caller.service.for_user(user_id).conversation("t").read)
    assert [each.message for each in stored] == messages


async def test_the_same_id_with_other_content_is_updated_in_place_and_said_so(caller: Caller, user_id: str) -> None:
    where = {"thread_id": "t", "user_id": user_id}
    messages = [*turn(1), *turn(2)]
    await caller(conversation_of(caller.service, **where).append, messages)
    edited = HumanMessage("a much longer question than before", id=messages[2].id)
    new = HumanMessage("new")
    result = await caller(conversation_of(caller.service, **where).append, [edited, new])
    assert (result.sequences, result.appended, result.updated) == ([2, 4], 1, [edited.id])
    assert await texts(caller, conversation_of(caller.service, **where)) == [
        "question 1",
        "answer 1",
        edited.text,
        "answer 2",
        "new",
    ]
    rows = await caller(conversation_of(caller.service, **where).read, columns=["updated_at", "characters"])
    assert [row.updated_at is not None for row in rows] == [False, False, True, False, False]


async def test_the_sums_stay_exact_through_updates_and_deletions(
    caller: Caller, user_id: str, conn_string: str
) -> None:
    where = {"thread_id": "t", "user_id": user_id}
    messages = [*turn(1), *turn(2), *turn(3)]
    conversation = conversation_of(caller.service, **where)
    await caller(conversation.append, messages)
    await caller(conversation.append, [HumanMessage("x" * 100, id=messages[1].id)])
    await caller(conversation.forget_message, str(messages[3].id))
    await caller(conversation.append, turn(4))
    with psycopg.connect(conn_string) as connection:
        assert connection.execute(
            "select message_count from memory.conversations where user_id = %s", [user_id]
        ).fetchone() == (7,)
        assert_counted(connection, user_id)


async def test_one_id_twice_in_a_batch_is_one_message(caller: Caller, user_id: str) -> None:
    batch = [HumanMessage("draft", id="m"), AIMessage("between"), HumanMessage("final", id="m")]
    result = await caller(caller.service.for_user(user_id).conversation("t").append, batch)
    assert result.sequences == [0, 1, 0]
    assert await texts(caller, caller.service.for_user(user_id).conversation("t")) == ["final", "between"]


async def test_a_batch_is_stored_whole_or_not_at_all(caller: Caller, user_id: str) -> None:
    batch: list[Any] = [*turn(1), b"not a message"]
    with pytest.raises(InvalidInputError, match=r"position 2.*bytes.*Pass messages"):
        await caller(caller.service.for_user(user_id).conversation("t").append, batch)
    # And where the database refuses the last row, which no client of ours would send.
    arguments = {
        "p_thread_id": "t",
        "p_user_id": user_id,
        "p_messages": [
            {
                "id": "a",
                "role": "user",
                "text": "",
                "characters": 0,
                "tokens": 0,
                "payload": {"type": "human", "data": {}},
            },
            {
                "id": "b",
                "role": "user",
                "text": "secret",
                "characters": 0,
                "tokens": 0,
                "payload": {"type": "human", "data": {}},
            },
        ],
    }
    from langchain_supabase_memory.effects import Call

    with pytest.raises(InvalidInputError) as caught:
        caller.service._services.transport.perform(Call("memory_append", arguments))
    assert caught.value.code == "23514"
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert await caller(caller.service.for_user(user_id).conversation("t").count) == 0
    assert not await caller(caller.service.for_user(user_id).conversations)


async def test_an_empty_batch_begins_no_conversation(caller: Caller, user_id: str) -> None:
    result = await caller(caller.service.for_user(user_id).conversation("t").append, [])
    assert (result.sequences, result.conversation_id) == ([], None)
    assert not await caller(caller.service.for_user(user_id).conversations)


async def test_reads_are_bounded_as_asked(caller: Caller, user_id: str) -> None:
    where = {"thread_id": "t", "user_id": user_id}
    start = datetime(2026, 1, 1, tzinfo=UTC)
    times = [start + timedelta(hours=hour) for hour in range(10)]
    await caller(
        conversation_of(caller.service, **where).append, [HumanMessage(str(n)) for n in range(10)], created_at=times
    )
    assert await texts(caller, conversation_of(caller.service, **where), last=3) == ["7", "8", "9"]
    assert await texts(caller, conversation_of(caller.service, **where), last=0) == []
    assert await texts(caller, conversation_of(caller.service, **where), last=99) == [str(n) for n in range(10)]
    assert await texts(caller, conversation_of(caller.service, **where), since=times[8]) == ["8", "9"]
    assert await texts(caller, conversation_of(caller.service, **where), until=times[2]) == ["0", "1"]
    assert await texts(caller, conversation_of(caller.service, **where), since=times[2], until=times[6], last=2) == [
        "4",
        "5",
    ]
    assert await texts(caller, conversation_of(caller.service, **where), from_sequence=4, to_sequence=6) == [
        "4",
        "5",
        "6",
    ]
    assert await texts(caller, conversation_of(caller.service, **where), to_sequence=6, last=2) == ["5", "6"]
    assert await texts(caller, caller.service.for_user(user_id).conversation("other")) == []
    stored = await caller(conversation_of(caller.service, **where).read, last=1, columns=["created_at"])
    assert stored[0].created_at == times[9]


async def test_only_the_columns_asked_for_come(caller: Caller, user_id: str) -> None:
    where = {"thread_id": "t", "user_id": user_id}
    image = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
    message = HumanMessage([{"type": "text", "text": "Look at this"}, image])
    conversation = conversation_of(caller.service, **where)
    await caller(conversation.append, [message], metadata={"channel": "web"})
    bare = (await caller(conversation.read, columns=[]))[0]
    assert bare.sequence == 0
    assert bare.payload is None
    with pytest.raises(InvalidInputError, match="Use its text, or read with"):
        _ = bare.message
    assert bare.text is None
    whole = (await caller(conversation.read, columns=ALL_COLUMNS))[0]
    assert whole.message == message
    assert (whole.message_id, whole.role, whole.text, whole.characters) == (message.id, "user", "Look at this", 12)
    assert whole.tokens > 800
    assert whole.metadata == {"channel": "web"}
    assert whole.images == [{"kind": "image", "url": "https://example.com/a.png"}]
    with pytest.raises(InvalidInputError, match="columns has an unknown name, 'secrets'"):
        await caller(conversation.read, columns=["secrets"])


async def test_3500_messages_come_back_complete_and_in_order(caller: Caller, user_id: str) -> None:
    where = {"thread_id": "long", "user_id": user_id}
    await caller(conversation_of(caller.service, **where).append, [HumanMessage(str(n)) for n in range(3500)])
    assert await texts(caller, conversation_of(caller.service, **where)) == [str(n) for n in range(3500)]
    assert await texts(caller, conversation_of(caller.service, **where), last=2500) == [
        str(n) for n in range(1000, 3500)
    ]
    assert await texts(caller, conversation_of(caller.service, **where), from_sequence=500, to_sequence=2499) == [
        str(n) for n in range(500, 2500)
    ]
    assert await caller(conversation_of(caller.service, **where).count) == 3500


async def test_page_boundaries_lose_and_double_nothing(caller: Caller, user_id: str) -> None:
    where = {"thread_id": "page", "user_id": user_id}
    await caller(conversation_of(caller.service, **where).append, [HumanMessage(str(n)) for n in range(2000)])
    for last in (999, 1000, 1001, 2000, 2001):
        expected = [str(n) for n in range(max(0, 2000 - last), 2000)]
        assert await texts(caller, conversation_of(caller.service, **where), last=last) == expected


async def test_conversations_are_listed_newest_first(caller: Caller, user_id: str) -> None:
    for thread in ("a", "b", "c"):
        await caller(caller.service.for_user(user_id).conversation(thread).append, turn(1))
    await caller(caller.service.for_user(user_id).conversation("c", agent_id="other").append, turn(1))
    await caller(caller.service.for_user(user_id).conversation("a").append, turn(2))
    listed = await caller(caller.service.for_user(user_id).conversations)
    assert [(each.thread_id, each.agent_id, each.message_count) for each in listed] == [
        ("a", "default", 4),
        ("c", "other", 2),
        ("c", "default", 2),
        ("b", "default", 2),
    ]
    assert [each.thread_id for each in await caller(caller.service.for_user(user_id).conversations, limit=1)] == ["a"]
    others = await caller(caller.service.for_user(user_id).conversations, agent_id="other")
    assert [each.thread_id for each in others] == ["c"]


async def test_forgetting_one_message_leaves_the_numbers_of_the_others(caller: Caller, user_id: str) -> None:
    where = {"thread_id": "t", "user_id": user_id}
    messages = turn(1) + turn(2)
    conversation = conversation_of(caller.service, **where)
    await caller(conversation.append, messages)
    assert (await caller(conversation.forget_message, str(messages[1].id))).messages == 1
    assert await caller(conversation.forget_message, str(messages[1].id)) == Receipt()
    assert [stored.sequence for stored in await caller(conversation.read)] == [0, 2, 3]
    assert await caller(conversation.count) == 3
    assert (await caller(conversation.append, turn(3))).sequences == [4, 5]


async def test_forgetting_a_conversation_leaves_the_others(caller: Caller, user_id: str) -> None:
    for thread in ("a", "b"):
        await caller(caller.service.for_user(user_id).conversation(thread).append, turn(1))
    assert await caller(caller.service.for_user(user_id).conversation("a").forget) == Receipt(1, 2)
    assert await caller(caller.service.for_user(user_id).conversation("a").forget) == Receipt()
    assert await texts(caller, caller.service.for_user(user_id).conversation("a")) == []
    assert len(await texts(caller, caller.service.for_user(user_id).conversation("b"))) == 2
    assert (await caller(caller.service.for_user(user_id).conversation("a").append, turn(2))).sequences == [0, 1]


async def test_users_and_agents_of_one_thread_name_are_apart(caller: Caller, user_id: str) -> None:
    await caller(caller.service.for_user(user_id).conversation("t").append, turn(1))
    await caller(caller.service.for_user(user_id).conversation("t", agent_id="b").append, turn(2))
    await caller(caller.service.for_user(user_id + "-other").conversation("t").append, turn(3))
    assert await texts(caller, caller.service.for_user(user_id).conversation("t")) == ["question 1", "answer 1"]
    assert await texts(caller, caller.service.for_user(user_id).conversation("t", agent_id="b")) == [
        "question 2",
        "answer 2",
    ]


@pytest.mark.parametrize(
    "thread_id", ["user@x.com/a.b", "日本語 🎉", "'; drop table x; --", "a" * 512, "{}", "%s %(a)s"]
)
async def test_any_string_names_a_thread(caller: Caller, user_id: str, thread_id: str) -> None:
    await caller(caller.service.for_user(user_id).conversation(thread_id).append, turn(1))
    assert len(await texts(caller, caller.service.for_user(user_id).conversation(thread_id))) == 2
    assert (await caller(caller.service.for_user(user_id).conversations))[0].thread_id == thread_id


@pytest.mark.both_colors("threads and tasks share a transport in other ways")
async def test_fifty_writers_at_once_lose_double_and_reorder_nothing(caller: Caller, user_id: str) -> None:
    busy = caller.service.for_user(user_id).conversation("busy")
    batches = [[HumanMessage(f"{writer}-{n}", id=f"{writer}-{n}") for n in range(4)] for writer in range(25)]
    writes = [
        asyncio.to_thread(busy.append, batch) if caller.color == "sync" else busy.aappend(batch)
        for batch in batches * 2  # every batch by two writers, as a retry would
    ]
    results = await asyncio.gather(*writes)
    assert sum(result.appended for result in results) == 100
    stored = await caller(busy.read)
    assert [each.sequence for each in stored] == list(range(100))
    order = [str(each.message.text) for each in stored]
    assert sorted(order) == sorted(str(message.text) for batch in batches for message in batch)
    for batch in batches:
        start = order.index(str(batch[0].text))
        assert order[start : start + 4] == [message.text for message in batch]


async def test_tool_call_arguments_keep_their_key_order(caller: Caller, user_id: str) -> None:
    arguments = {"zeta": 1, "alpha": {"y": [1, 2], "b": None}, "mid": "x"}
    call = {"name": "search", "args": arguments, "id": "call_1", "type": "tool_call"}
    messages = [
        AIMessage("", tool_calls=[call]),
        ToolMessage("found", tool_call_id="call_1", artifact={"z": 1, "a": 2}),
    ]
    await caller(caller.service.for_user(user_id).conversation("t").append, messages)
    stored = [each.message for each in await caller(caller.service.for_user(user_id).conversation("t").read)]
    assert stored == messages
    assert str(stored[0].tool_calls[0]["args"]) == str(arguments)
    assert str(stored[1].artifact) == str(messages[1].artifact)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("name", "value"),
    [("thread_id", ""), ("thread_id", None), ("user_id", 7), ("agent_id", "a\x00b"), ("user_id", "\ud800")],
)
async def test_ids_that_name_nothing_are_refused(caller: Caller, user_id: str, name: str, value: Any) -> None:
    where: dict[str, Any] = {"thread_id": "t", "user_id": user_id, name: value}
    with pytest.raises(InvalidInputError, match=name):
        conversation_of(caller.service, **where)


async def test_nobody_named_as_the_owner_is_an_error_and_not_everybody(caller: Caller) -> None:
    with pytest.raises(InvalidInputError, match="No user is named.*user_id"):
        caller.service.conversation("t")
    with pytest.raises(InvalidInputError, match="No user is named"):
        await caller(caller.service.conversations)


@pytest.mark.parametrize("bounds", [{"last": -1}, {"last": 1.5}, {"since": datetime(2026, 1, 1)}, {"since": "2026"}])
async def test_bad_bounds_are_refused(caller: Caller, user_id: str, bounds: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        await caller(caller.service.for_user(user_id).conversation("t").read, **bounds)


async def test_a_memory_can_carry_the_user(caller: Caller, user_id: str) -> None:
    memory = SupabaseMemory(caller.service._services.transport, user_id=user_id, agent_id="carried")
    await caller(memory.conversation("t").append, turn(1))
    assert len(await texts(caller, caller.service.for_user(user_id).conversation("t", agent_id="carried"))) == 2


def test_a_retry_that_waited_while_its_message_was_forgotten_does_not_bring_it_back(
    conn_string: str, user_id: str
) -> None:
    message = HumanMessage("secret", id="m")
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory, ThreadPoolExecutor(1) as threads:
        memory.conversation("t").append([message, HumanMessage("kept", id="k")])
        with psycopg.connect(conn_string) as connection:
            connection.execute("select public.memory_forget_message('t', 'm', %s)", [user_id])
            retry = threads.submit(memory.conversation("t").append, [message, HumanMessage("new", id="n")])
            for _ in range(200):
                waiting = connection.execute(
                    "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query like '%memory_append%'"
                ).fetchone()
                if waiting and waiting[0]:
                    break
                time.sleep(0.02)
            assert not retry.done()
        assert retry.result().sequences == [None, 2]
        assert [each.message_id for each in memory.conversation("t").read(columns=["message_id"])] == ["k", "n"]
