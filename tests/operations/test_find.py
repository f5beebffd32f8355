"""Exact search: messages that contain the given texts, page by page, over every transport, for one user only."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from langchain_supabase_memory import SECRETS, Retention, SupabaseMemory
from langchain_supabase_memory.errors import InvalidInputError, SupabaseMemoryError
from langchain_supabase_memory.operations.recall.exact_search import place
from langchain_supabase_memory.types import FoundPage
from tests.conftest import Caller
from tests.services.data_api import token

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


def numbers(page: FoundPage) -> list[int]:
    return [each.message.sequence for each in page]


async def test_letters_are_found_with_the_messages_around(caller: Caller, user_id: str) -> None:
    talk = caller.service.for_user(user_id).conversation("t")
    said = [HumanMessage(f"Kiln {n} shows E-4{n}.", id=f"m{n}", name="Maya") for n in range(9)]
    await caller(talk.append, said, created_at=[NOON + timedelta(hours=n) for n in range(9)])
    page: FoundPage = await caller(talk.find, "shows e-4", limit=2, around=1)
    assert numbers(page) == [8, 7]
    assert page[0].message.message == said[8]
    assert (page[0].thread_id, page[0].message.role, page[0].message.created_at) == (
        "t",
        "user",
        NOON + timedelta(hours=8),
    )
    assert [[each.sequence for each in (*hit.before, *hit.after)] for hit in page] == [[7], [6, 8]]
    rest = await caller(talk.find, "shows e-4", after=page.after, limit=100)
    assert (numbers(rest), rest.after) == ([6, 5, 4, 3, 2, 1, 0], None)
    assert numbers(await caller(talk.find, "kiln", order="oldest", limit=3)) == [0, 1, 2]
    assert numbers(await caller(talk.find, ["kiln", "E-45"])) == [5]
    assert numbers(
        await caller(talk.find, "kiln", since=NOON + timedelta(hours=3), until=NOON + timedelta(hours=5))
    ) == [
        4,
        3,
    ]
    assert numbers(await caller(talk.find, "kiln", match_case=True)) == []
    assert numbers(await caller(talk.find, "kiln shows")) == []


@pytest.mark.parametrize(
    ("said", "wanted", "is_there"),
    [
        ("100% of a_b", "100%", True),
        ("100 parts", "100%", False),
        ("a_b", "A_B", True),
        ("axb", "a_b", False),
        (r"C:\new\table", r"c:\NEW", True),
        ("CAFE\u0301", "caf\u00e9", True),
        ("cafe", "caf\u00e9", False),
        ("STRASSE", "stra\u00dfe", True),
        ("\u039f\u0394\u039f\u03a3", "\u03bf\u03b4\u03cc\u03c2".replace("\u03cc", "\u03bf"), True),
        ("\u0130stanbul", "istanbul", True),
        ("The \U0001f3b9 is here", "\U0001f3b9", True),
        ("a\0b", "a\0b", True),
        ("line one\nline two", "one\nline", True),
        ("(.*)[x]", "(.*)", True),
        ("abc", ".*", False),
        ("\u0e01\u0e32\u0e23", "\u0e32", True),
    ],
)
async def test_each_letter_counts_and_its_case_does_not(
    conn_string: str, user_id: str, said: str, wanted: str, is_there: bool
) -> None:
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory:
        memory.conversation("t").append([HumanMessage(said)])
        assert (numbers(memory.conversation("t").find(wanted)) == [0]) is is_there


@pytest.fixture(scope="module")
def quiet(conn_string: str) -> Any:
    with SupabaseMemory.from_conn_string(conn_string, user_id="find-anything") as memory:
        yield memory


@given(st.text(min_size=1, max_size=50).filter(lambda text: text.strip(" \t\r\n")), st.booleans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
def test_what_was_said_finds_itself(quiet: SupabaseMemory, text: str, match_case: bool) -> None:
    talk = quiet.conversation("t")
    talk.append([HumanMessage(f"before {text} after", id="m")])
    assert len(talk.find(text, match_case=match_case)) == 1
    assert 0 <= place(f"before {text} after", text) < len(f"before {text} after")


async def test_calls_are_looked_through_and_what_the_memory_gave_is_not(caller: Caller, user_id: str) -> None:
    talk = caller.service.for_user(user_id).conversation("t")
    calls = [
        {"name": "read_file", "args": {"path": 'src/"kiln".py', "id": 4711}, "id": "c1"},
        {"name": "search_conversation_history", "args": {"query": "secret phrase"}, "id": "c2"},
    ]
    said = [
        AIMessage("", tool_calls=calls),
        ToolMessage("no such file kiln.txt", tool_call_id="c1"),
        ToolMessage(" <conversation_memory>\nsecret phrase\n</conversation_memory>", tool_call_id="c2"),
    ]
    await caller(talk.append, said)
    for wanted, expected in (
        ('src/"KILN".py', [0]), ("4711", [0]), ("read_FILE", [0]), ("kiln.txt", [1]), ("secret phrase", []), ("c1", []),
    ):  # fmt: skip
        assert numbers(await caller(talk.find, wanted)) == expected, wanted


async def test_all_of_a_user_or_of_an_agent_is_looked_through_once(caller: Caller, user_id: str) -> None:
    for number in range(5):
        talk = caller.service.for_user(user_id).conversation(f"t{number}", agent_id=f"a{number % 2}")
        await caller(talk.append, [HumanMessage(f"Order 17-{number}-{n}") for n in range(3)])
    await caller(caller.service.for_user(user_id + "x").conversation("t0").append, [HumanMessage("Order 17-foreign")])
    every = []
    after, calls = None, 0
    while calls == 0 or after:
        page = await caller(caller.service.for_user(user_id).find, "order 17", limit=2, after=after)
        every += [(each.thread_id, each.message.sequence) for each in page]
        after, calls = page.after, calls + 1
        # What goes on meanwhile is neither left out nor does it bring anything back.
        await caller(caller.service.for_user(user_id).conversation("t0", agent_id="a0").append, [HumanMessage("More")])
    assert every == [(f"t{number}", n) for number in (4, 3, 2, 1, 0) for n in (2, 1, 0)]
    oldest = await caller(caller.service.for_user(user_id).find, "order 17", agent_id="a1", order="oldest")
    assert [(each.agent_id, each.thread_id) for each in oldest] == [("a1", "t1")] * 3 + [("a1", "t3")] * 3


async def test_nobody_else_finds_them(caller: Caller, user_id: str) -> None:
    await caller(caller.service.for_user(user_id).conversation("t").append, [HumanMessage("The code is 4711.")])
    mine = caller.as_token(token("authenticated", sub=user_id))
    other = caller.as_token(token("authenticated", sub=user_id + "-other"))
    assert numbers(await caller(mine.find, "4711")) == [0]
    assert numbers(await caller(other.find, "4711")) == []
    stolen = (await caller(mine.find, "the", limit=1)).after
    assert numbers(await caller(other.find, "4711", after=stolen, order="oldest")) == []
    assert numbers(await caller(other.for_user(user_id).find, "4711")) == []
    with pytest.raises(InvalidInputError):
        await caller(caller.service.find, "4711")


def test_what_is_gone_is_not_found(conn_string: str, user_id: str) -> None:
    with SupabaseMemory.from_conn_string(
        conn_string, user_id=user_id, redactor=SECRETS, retention=Retention(max_messages=4)
    ) as memory:
        talk = memory.conversation("t")
        key = "sk-proj-" + "Ab3" * 16
        talk.append([HumanMessage(f"Clay {n}", id=f"m{n}") for n in range(3)] + [HumanMessage(f"clay {key}", id="k")])
        assert numbers(talk.find(key)) == []
        talk.forget_message("m1")
        assert numbers(talk.find("clay", around=2)) == [3, 2, 0]
        assert [each.sequence for each in talk.find("clay 2", around=2)[0].before] == [0]
        with SupabaseMemory.from_conn_string(
            conn_string, user_id=user_id, retention=Retention(max_messages=2)
        ) as strict:
            page = strict.conversation("t").find("clay", around=3)
            assert numbers(page) == [3, 2]
            assert [[each.sequence for each in hit.before] for hit in page] == [[2], []]
        talk.append([HumanMessage("clay again", id="m2")])
        assert numbers(talk.find("clay again")) == [2]


def test_what_a_fork_left_is_not_found(conn_string: str, user_id: str) -> None:
    from tests.converse import Caller, rows

    with psycopg.connect(conn_string, autocommit=True) as connection:
        call = Caller(connection, user_id)
        said = rows([HumanMessage("clay one", id="b0"), AIMessage("clay two", id="b1")], metadata={"via": "graph"})
        state = {"token": "1", "expected": None, "after": None, "ids": ["b0", "b1"]}
        call("append", thread_id="graph", messages=said, branch=state)
        left = {**state, "token": "2", "expected": "1", "ids": ["b0"], "removed": ["b1"]}
        call("append", thread_id="graph", messages=[], branch=left)
        found = call("find", texts=["clay"])["found"]
        assert [each["message"]["message_id"] for each in found] == ["b0"]


async def test_one_call_looks_at_so_many_and_says_where_to_go_on(caller: Caller, user_id: str) -> None:
    talk = caller.service.for_user(user_id).conversation("t")
    for begin in range(0, 3000, 1000):
        await caller(talk.append, [HumanMessage("needle" if n == 100 else "hay") for n in range(begin, begin + 1000)])
    first = await caller(talk.find, "needle")
    assert (numbers(first), first.read) == ([], 2000)
    second = await caller(talk.find, "needle", after=first.after)
    assert (numbers(second), second.after) == ([100], None)


@pytest.fixture(scope="module")
def talker(conn_string: str) -> str:
    """A user with seven messages of 3 MB each, where a call reads about 8."""
    user_id = "who-talks-at-length"
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, model=None) as memory:
        for n in range(7):
            memory.conversation("t").append([HumanMessage(f"{n} clay " + "x" * 1_500_000)])
    return user_id


async def test_an_answer_ends_where_it_is_large(caller: Caller, talker: str) -> None:
    talk = caller.service.for_user(talker).conversation("t")
    sizes: list[int] = []
    after = None
    while not sizes or after:
        page = await caller(talk.find, "clay", after=after, order="oldest")
        assert numbers(page) == list(range(sum(sizes), sum(sizes) + len(page)))
        sizes, after = [*sizes, len(page)], page.after
    assert sum(sizes) == 7
    assert max(sizes) <= 3
    page = await caller(talk.find, "nothing of this")
    assert page.after is not None, "what was not found was read, too"


@pytest.mark.parametrize(
    "wrong",
    [
        {"texts": ""}, {"texts": " \n"}, {"texts": []}, {"texts": ["a", ""]}, {"texts": "x" * 100_000}, {"texts": 5},
        {"texts": ["a"] * 11}, {"texts": b"x"}, {"texts": {"a"}}, {"order": "best"}, {"limit": 0}, {"limit": 101},
        {"limit": True}, {"around": -1}, {"around": 11}, {"since": datetime(2026, 1, 1)}, {"after": 5}, {"after": "x"},
        {"after": "2026-01-01/x"}, {"after": ""}, {"after": "\0"},
    ],
)  # fmt: skip
async def test_what_is_none_of_the_choices_is_refused(conn_string: str, user_id: str, wrong: dict[str, Any]) -> None:
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory:
        memory.conversation("t").append([HumanMessage("x")])
        for subject in (memory, memory.conversation("t")):
            with pytest.raises(SupabaseMemoryError) as refused:
                subject.find(**{"texts": "x", **wrong})
            assert isinstance(refused.value, InvalidInputError)
            assert refused.value.hint
            assert len(str(refused.value)) < 300


@pytest.mark.parametrize(
    "arguments",
    [
        "'[]'", "null", "'{}'", "'5'", "'[null]'", "'[\" \"]'", "'[\"a\\u0000b\"]'",
        "json_build_array(repeat('x', 1001))", "'[\"a\"]', p_order => null", "'[\"a\"]', p_order => 'x'",
        "'[\"a\"]', p_after => 'x'", "'[\"a\"]', p_after => '2026-01-01/x/1'",
        "array_to_json(array_fill('a'::text, array[11]))",
    ],
)  # fmt: skip
def test_sql_refuses_the_same(conn_string: str, user_id: str, arguments: str) -> None:
    with psycopg.connect(conn_string, autocommit=True) as connection:
        with pytest.raises(psycopg.Error) as refused:
            connection.execute(f"select public.memory_find({arguments}, p_user_id => %s)".encode(), [user_id])
        assert refused.value.sqlstate == "PT400"
