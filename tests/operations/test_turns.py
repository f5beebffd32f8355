"""Turns: only complete ones, in order, numbered among those retained, over every transport; and turns as text."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from langchain_supabase_memory import Retention, SupabaseMemory
from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.memory.services import DefaultUser
from langchain_supabase_memory.operations import turns
from langchain_supabase_memory.values import Turn
from tests.conftest import Caller
from tests.each_case import each_case
from tests.owners import conversation_of
from tests.services.data_api import token

START = datetime(2026, 1, 1, tzinfo=UTC)
CALL = {"name": "search", "args": {"for": "tea"}, "id": "call"}


def said(*pairs: tuple[str, str]) -> list[BaseMessage]:
    return [message for query, response in pairs for message in (HumanMessage(query), AIMessage(response))]


def pairs(found: list[Turn]) -> list[tuple[int, str, str]]:
    return [(each.number, each.user_query, each.ai_response) for each in found]


async def listed(caller: Caller, user_id: str, thread_id: str = "t", **bounds: Any) -> list[tuple[int, str, str]]:
    return pairs(await caller(caller.service.for_user(user_id).conversation(thread_id).turns.list, **bounds))


async def test_a_turn_is_stored_and_shown(caller: Caller, user_id: str) -> None:
    where = {"thread_id": "t", "user_id": user_id}
    result = await caller(conversation_of(caller.service, **where).add_turn, "What is tea?", "A drink.")
    assert (result.sequences, result.appended) == ([0, 1], 2)
    [turn] = await caller(conversation_of(caller.service, **where).turns.list)
    assert (turn.number, turn.user_query, turn.ai_response) == (1, "What is tea?", "A drink.")
    assert (turn.from_sequence, turn.to_sequence) == (0, 1)
    stored = await caller(conversation_of(caller.service, **where).read, columns=["created_at"])
    assert turn.created_at == stored[0].created_at


async def test_a_conversation_that_does_not_exist_has_none(caller: Caller, user_id: str) -> None:
    assert await listed(caller, user_id) == []
    assert await caller(caller.service.for_user(user_id).conversation("t").turns.get, 1) is None
    assert not await caller(caller.service.for_user(user_id).conversations)


INCOMPLETE: dict[str, list[BaseMessage]] = {
    "only a question": [HumanMessage("q")],
    "only an answer": [AIMessage("a")],
    "a call without a result": [HumanMessage("q"), AIMessage("I look.", tool_calls=[CALL])],
    "a result without an answer": [
        HumanMessage("q"),
        AIMessage("", tool_calls=[CALL]),
        ToolMessage("tea", tool_call_id="call"),
    ],
    "an empty answer": [HumanMessage("q"), AIMessage("")],
    "an instruction": [SystemMessage("s"), HumanMessage("q"), SystemMessage("s")],
}


@pytest.mark.parametrize("messages", INCOMPLETE.values(), ids=list(INCOMPLETE))
async def test_what_is_not_complete_is_not_counted(caller: Caller, user_id: str, messages: list[BaseMessage]) -> None:
    where = {"thread_id": "t", "user_id": user_id}
    fresh = [each.model_copy(update={"id": None}) for each in messages]
    conversation = conversation_of(caller.service, **where)
    await caller(conversation.append, fresh)
    assert await listed(caller, user_id) == []
    assert await caller(conversation.turns.get, 1) is None
    assert await caller(conversation.turns.get, -1) is None
    # Between two complete ones neither.
    await caller(conversation.append, said(("1", "one")))
    await caller(conversation.append, [each.model_copy(update={"id": None}) for each in messages])
    await caller(conversation.append, said(("2", "two")))
    expected = "a" if messages[0].type == "ai" else "one"  # one more answer belongs to the same turn
    assert await listed(caller, user_id) == [(1, "1", expected), (2, "2", "two")]


async def test_tool_calls_lie_inside_a_turn_and_the_final_answer_ends_it(caller: Caller, user_id: str) -> None:
    messages = [
        HumanMessage("Which tea?"),
        AIMessage("I look.", tool_calls=[CALL]),
        ToolMessage("oolong", tool_call_id="call"),
        AIMessage("", tool_calls=[CALL]),
        ToolMessage("green", tool_call_id="call"),
        AIMessage("A draft."),
        AIMessage("Green or oolong."),
    ]
    await caller(caller.service.for_user(user_id).conversation("t").append, messages)
    [turn] = await caller(caller.service.for_user(user_id).conversation("t").turns.list)
    assert (turn.user_query, turn.ai_response, turn.from_sequence, turn.to_sequence) == (
        "Which tea?",
        "Green or oolong.",
        0,
        6,
    )


async def test_two_questions_in_a_row_are_one_turn_of_the_second(caller: Caller, user_id: str) -> None:
    messages = [
        AIMessage("Welcome."),
        HumanMessage("Hm"),
        HumanMessage("Tea?"),
        AIMessage("Yes."),
        HumanMessage("And?"),
    ]
    await caller(caller.service.for_user(user_id).conversation("t").append, messages)
    assert await listed(caller, user_id) == [(1, "Tea?", "Yes.")]
    await caller(caller.service.for_user(user_id).conversation("t").append, [AIMessage("Milk.")])
    assert await listed(caller, user_id) == [(1, "Tea?", "Yes."), (2, "And?", "Milk.")]


async def test_an_edit_makes_and_unmakes_a_turn(caller: Caller, user_id: str) -> None:
    where = {"thread_id": "t", "user_id": user_id}
    messages = said(("1", "one"), ("2", "two"))
    conversation = conversation_of(caller.service, **where)
    await caller(conversation.append, messages)
    await caller(conversation.append, [AIMessage("", tool_calls=[CALL], id=messages[1].id)])
    assert await listed(caller, user_id) == [(1, "2", "two")]
    await caller(conversation.append, [AIMessage("uno", id=messages[1].id)])
    assert await listed(caller, user_id) == [(1, "1", "uno"), (2, "2", "two")]
    await caller(conversation.forget_message, str(messages[0].id))
    assert await listed(caller, user_id) == [(1, "2", "two")]


async def test_an_answer_that_is_an_image_is_one(caller: Caller, user_id: str) -> None:
    image = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
    await caller(caller.service.for_user(user_id).conversation("t").append, [HumanMessage("Draw"), AIMessage([image])])
    assert await listed(caller, user_id) == [(1, "Draw", "")]


async def test_bounds(caller: Caller, user_id: str) -> None:
    where = {"thread_id": "t", "user_id": user_id}
    times = [START + timedelta(hours=n) for n in range(6)]
    for n, time in enumerate(times, 1):
        await caller(conversation_of(caller.service, **where).append, said((f"q{n}", f"a{n}")), created_at=time)
    whole = [(n, f"q{n}", f"a{n}") for n in range(1, 7)]
    assert await listed(caller, user_id) == whole
    assert await listed(caller, user_id, last=2) == whole[4:]
    assert await listed(caller, user_id, last=99) == whole
    assert await listed(caller, user_id, last=0) == []
    assert await listed(caller, user_id, since=times[4]) == whole[4:]
    assert await listed(caller, user_id, until=times[2]) == whole[:2]
    assert await listed(caller, user_id, since=times[1], until=times[4]) == whole[1:4]
    assert await listed(caller, user_id, since=times[1], until=times[4], last=2) == whole[2:4]
    assert await listed(caller, user_id, until=times[3], last=1) == whole[2:3], "the newest within the window"
    assert await listed(caller, user_id, since=times[5] + timedelta(hours=1)) == []


@pytest.mark.parametrize("bounds", [{"last": -1}, {"last": True}, {"since": datetime(2026, 1, 1)}, {"until": "2026"}])
async def test_bad_bounds_are_refused(caller: Caller, user_id: str, bounds: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        await caller(caller.service.for_user(user_id).conversation("t").turns.list, **bounds)


async def test_one_by_its_number(caller: Caller, user_id: str) -> None:
    where = {"thread_id": "t", "user_id": user_id}
    conversation = conversation_of(caller.service, **where)
    await caller(
        conversation.append,
        [HumanMessage("unanswered"), *said(("1", "one"), ("2", "two"), ("3", "three"))],
    )
    await caller(conversation.append, [HumanMessage("pending")])
    for number, text in ((1, "1"), (2, "2"), (3, "3"), (-1, "3"), (-2, "2"), (-3, "1")):
        turn = await caller(conversation.turns.get, number)
        assert (turn.user_query, turn.number) == (text, int(text))
    for number in (4, -4, 10**6, -(10**6)):
        assert await caller(conversation.turns.get, number) is None
    wrong: list[Any] = [0, 1.5, "1", True, None]
    for number in wrong:
        with pytest.raises(InvalidInputError, match="whole number other than 0"):
            await caller(conversation.turns.get, number)


async def test_2500_turns_come_back_complete_and_in_order(caller: Caller, user_id: str) -> None:
    where = {"thread_id": "long", "user_id": user_id}
    whole = [(n, f"q{n}", f"a{n}") for n in range(1, 2501)]
    await caller(
        conversation_of(caller.service, **where).append,
        said(*((query, answer) for _, query, answer in whole)),
        created_at=START,
    )
    await caller(conversation_of(caller.service, **where).append, [HumanMessage("pending")])
    assert await listed(caller, user_id, "long") == whole
    assert await listed(caller, user_id, "long", last=1001) == whole[-1001:]
    assert await listed(caller, user_id, "long", last=2000) == whole[-2000:]
    assert await listed(caller, user_id, "long", since=START) == whole, "a window is not cut at a page"
    turn = await caller(conversation_of(caller.service, **where).turns.get, 3)
    assert pairs([turn]) == whole[2:3]


async def test_after_the_limit_removed_the_oldest_the_others_move_up(caller: Caller, user_id: str) -> None:
    where = {"thread_id": "t", "user_id": user_id}
    conversation = conversation_of(caller.service, **where)
    for n in range(1, 6):
        await caller(conversation.add_turn, f"q{n}", f"a{n}", retention=Retention(max_turns=3))
    found = await caller(conversation.turns.list)
    assert pairs(found) == [(1, "q3", "a3"), (2, "q4", "a4"), (3, "q5", "a5")]
    assert [each.from_sequence for each in found] == [4, 6, 8], "what names them for good"
    assert (await caller(conversation.turns.get, 1)).user_query == "q3"
    assert (await caller(conversation.turns.get, -1)).user_query == "q5"
    assert await caller(conversation.turns.get, 4) is None


async def test_a_memorys_retention_holds_for_reading_turns(caller: Caller, user_id: str) -> None:
    old = datetime.now(UTC) - timedelta(hours=25)
    await caller(caller.service.for_user(user_id).conversation("t").append, said(("old", "old")), created_at=old)
    await caller(caller.service.for_user(user_id).conversation("t").add_turn, "new", "new")
    memory = SupabaseMemory(
        caller.service._services.transport, user_id=user_id, retention=Retention(max_age=timedelta(hours=24))
    )
    assert (await caller(memory.conversation("t").turns.get, 1)).user_query == "new"
    assert await caller(memory.conversation("t").turns.get, 2) is None
    assert pairs(await caller(memory.conversation("t").turns.list)) == [(1, "new", "new")]


async def test_only_the_owner_has_them(caller: Caller, user_id: str) -> None:
    await caller(caller.service.for_user(user_id).conversation("t").add_turn, "q", "a")
    owner, stranger = (caller.as_token(token(user_id=name)) for name in (user_id, f"{user_id}-stranger"))
    assert pairs(await caller(owner.conversation("t").turns.list)) == [(1, "q", "a")]
    assert await caller(stranger.for_user(user_id).conversation("t").turns.list) == []
    assert await caller(stranger.for_user(user_id).conversation("t").turns.get, 1) is None
    assert (
        await caller(
            stranger.for_user(user_id).conversation("t").turns.list,
            retention=Retention(max_age=timedelta(microseconds=1)),
        )
        == []
    )
    assert await listed(caller, user_id) == [(1, "q", "a")]


def test_the_view_shows_the_same_to_the_owner_alone(conn_string: str, user_id: str) -> None:
    other = f"{user_id}-other"
    with SupabaseMemory.from_conn_string(conn_string, user_id=DefaultUser(user_id)) as memory:
        memory.conversation("t").append(
            [HumanMessage("unanswered"), *said(("1", "one"), ("2", "two")), HumanMessage("?")]
        )
        memory.conversation("t", agent_id="b").add_turn("3", "three")
        memory.for_user(other).conversation("t").add_turn("4", "four")
        expected = memory.conversation("t").turns.list()
    query = (
        "select agent_id, thread_id, turn_number, user_query, ai_response, created_at, from_sequence, to_sequence"
        " from memory.conversation_turns where user_id = any (%s) order by user_id, agent_id, turn_number"
    )
    with psycopg.connect(conn_string) as connection:

        def seen_by(role: str, subject: str) -> list[tuple[Any, ...]]:
            with connection.transaction(force_rollback=True):
                claims = json.dumps({"role": role, "sub": subject})
                connection.execute("select set_config('request.jwt.claims', %s, true)", [claims])
                connection.execute("select set_config('role', %s, true)", [role])
                return connection.execute(query, [[user_id, other]]).fetchall()

        mine = seen_by("authenticated", user_id)
        assert [row[:5] for row in mine] == [
            ("b", "t", 1, "3", "three"),
            ("default", "t", 1, "1", "one"),
            ("default", "t", 2, "2", "two"),
        ]
        assert [Turn(*row[2:]) for row in mine[1:]] == expected
        assert [row[3] for row in seen_by("authenticated", other)] == ["4"]
        assert seen_by("authenticated", f"{user_id}-stranger") == []
        assert len(seen_by("service_role", "")) == 4
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            seen_by("anon", user_id)


# --- As text

LISTED = [
    Turn(1, "What is {tea}?", "A drink: {0} %s $x", START, 0, 1),
    Turn(2, "And milk?", "Too.", START + timedelta(minutes=1), 2, 5),
]


def test_turns_are_written_both_query_and_response() -> None:
    assert turns.turns_text(LISTED) == (
        "User: What is {tea}?\nAssistant: A drink: {0} %s $x\n\nUser: And milk?\nAssistant: Too."
    )
    assert turns.turns_text([]) == ""


def test_a_template_is_the_users() -> None:
    template = "{number:02}. {created_at:%H:%M} {user_query!r} -> {ai_response:>6} {{kept}}"
    assert turns.turns_text(LISTED[1:], template) == "02. 00:01 'And milk?' ->   Too. {kept}"
    assert turns.turns_text(LISTED, "{number}", separator=", ") == "1, 2"
    assert turns.turns_text(LISTED[:1], "no field") == "no field"


@each_case(
    "template",
    [
        "{user_query.__class__}",
        "{user_query.__class__.__mro__}",
        "{ai_response[0]}",
        "{created_at.__class__.__init__.__globals__}",
        "{number:{user_query.__class__}}",
        "{number:{number}}",
        "{user_query:{ai_response}}",
        "{}",
        "{0}",
        "{nothing}",
        "{from_sequence}",
        "{user_query",
        "user_query}",
        "{user_query!x}",
        "{user_query:d}",
        "{number:%H}",
    ],
)
def test_a_template_reaches_nothing_but_a_turns_texts(template: str) -> None:
    with pytest.raises(InvalidInputError, match="template|has no") as caught:
        turns.turns_text(LISTED, template)
    assert not re.search("tea|drink|<class", str(caught.value))


def test_what_is_no_template_is_refused() -> None:
    wrong: list[Any] = [None, 7, b"{number}"]
    for template in wrong:
        with pytest.raises(InvalidInputError):
            turns.turns_text(LISTED, template)
