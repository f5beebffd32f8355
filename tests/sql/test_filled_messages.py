"""SQL fills in omitted message fields as Python would, and rejects bad input."""

from __future__ import annotations

import json
import re
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    ToolMessage,
    message_to_dict,
)
from psycopg.rows import dict_row

from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.language.messages.codec import to_row
from langchain_supabase_memory.language.tokens import count_tokens
from tests.cases import COUNTED, cases, message_of
from tests.fuzzing import examples
from tests.token_kinds import TEXTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool"}
CALL = {
    "name": "find",
    "args": {"q": "kiln", "n": [1, 2.5, None, True], "ü": "🫖"},
    "id": "call-1",
    "type": "tool_call",
}
OTHER_CALL = {"name": "clock", "args": {}, "id": "call-2", "type": "tool_call"}
WRITTEN = json.dumps(CALL["args"])


@pytest.fixture(scope="module")
def connection(conn_string: str) -> Iterator[psycopg.Connection[dict[str, Any]]]:
    with psycopg.connect(conn_string, autocommit=True, row_factory=dict_row) as connection:
        yield connection


def append(
    connection: psycopg.Connection[dict[str, Any]], user_id: str, messages: Any, thread_id: str = "t", **more: Any
) -> dict[str, Any]:
    arguments = {"p_thread_id": thread_id, "p_user_id": user_id, "p_messages": json.dumps(messages), **more}
    named = ", ".join(f"{name} => %({name})s" for name in arguments)
    found = connection.execute(f"select public.memory_append({named}) as answer".encode(), arguments).fetchone()
    assert found is not None
    answer: dict[str, Any] = found["answer"]
    return answer


def stored(connection: psycopg.Connection[dict[str, Any]], user_id: str, thread_id: str = "t") -> list[dict[str, Any]]:
    """The rows of a conversation, with all that does not depend on when and where they were written."""
    return connection.execute(
        "select m.sequence, m.message_id, m.role, m.text, m.characters, m.tokens, m.metadata,"
        " m.images, m.payload, m.final, m.unreadable from memory.conversation_messages m"
        " join memory.conversations c on c.user_id = m.user_id and c.id = m.conversation_id"
        " where m.user_id = %s and c.thread_id = %s order by m.sequence",
        [user_id, thread_id],
    ).fetchall()


def lean(message: BaseMessage) -> dict[str, Any]:
    """A message as a client that knows no LangChain writes it: role, content and what it has besides."""
    made: dict[str, Any] = {"role": ROLES[message.type], "content": message.content, "id": message.id}
    for key in (
        "name",
        "tool_calls",
        "tool_call_id",
        "artifact",
        "additional_kwargs",
        "response_metadata",
        "usage_metadata",
    ):
        if value := getattr(message, key, None):
            made[key] = value
    if isinstance(message, ToolMessage) and message.status != "success":
        made["status"] = message.status
    return made


def langchain(message: BaseMessage) -> dict[str, Any]:
    """A message as LangChain writes it, in Python; in JavaScript, what is empty is left out."""
    made = message_to_dict(message)
    return {
        **made,
        "data": {key: value for key, value in made["data"].items() if value not in (None, [], {})}
        | {"content": message.content},
    }


TABLE = {case["case"]: case for case in cases("messages")}
MESSAGES: dict[str, BaseMessage] = {name: message_of(case) for name, case in TABLE.items()}


FORMS: dict[str, Callable[[BaseMessage], dict[str, Any]]] = {
    "lean": lean,
    "langchain": langchain,
    "payload": lambda message: {"payload": langchain(message)},
    "python": to_row,
}


@pytest.mark.parametrize("form", FORMS)
def test_what_a_client_writes_reads_as_if_python_had_written_it(
    connection: psycopg.Connection[dict[str, Any]], conn_string: str, user_id: str, form: str
) -> None:
    # Only LangChain knows calls that are invalid.
    kept = [
        message.model_copy(update={"id": name})
        for name, message in MESSAGES.items()
        if form != "lean" or name != "an invalid call"
    ]
    written = [FORMS[form](each) for each in kept]
    answer = append(connection, user_id, written)
    assert answer["sequences"] == list(range(len(kept)))
    assert answer["message_ids"] == [each.id for each in kept]
    with SupabaseMemory.from_conn_string(conn_string, user_id=f"{user_id}-python", model=None) as memory:
        memory.conversation("t").append(kept)
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, model=None) as memory:
        assert [each.message for each in memory.conversation("t").read()] == kept

        ours, expected = stored(connection, user_id), stored(connection, f"{user_id}-python")
        assert ours == expected
        for row in ours:
            case = TABLE[row["message_id"]]
            assert row["text"] == case["text"] * case.get("times", 1), case["case"]
            assert {name: row[name] for name in COUNTED} == {name: case[name] for name in COUNTED}, case["case"]
        assert [[*each["payload"]["data"]] for each in ours] == [[*each["payload"]["data"]] for each in expected]
        # What Python stores again is what is there: nothing was edited, so no summary is taken back.
        again = memory.conversation("t").append(kept)
        assert (again.appended, again.updated) == (0, [])
    counts = "select message_count, total_characters, total_tokens, next_sequence from memory.conversations where user_id = %s"
    assert (
        connection.execute(counts, [user_id]).fetchall() == connection.execute(counts, [f"{user_id}-python"]).fetchall()
    )


def test_openai_s_calls_become_langchain_s(connection: psycopg.Connection[dict[str, Any]], user_id: str) -> None:
    calls = [
        {"id": "call-1", "type": "function", "function": {"name": "find", "arguments": WRITTEN}},
        {"id": "call-2", "type": "function", "function": {"name": "clock", "arguments": ""}},
        {"id": "call-3", "type": "function", "function": {"name": "cut", "arguments": '{"q": "k'}},
        {"id": "call-4", "type": "function", "function": {"name": "list", "arguments": "[1]"}},
    ]
    append(connection, user_id, [{"id": "m", "role": "assistant", "content": None, "tool_calls": calls}])
    append(
        connection,
        f"{user_id}-python",
        [
            to_row(
                AIMessage(
                    "",
                    id="m",
                    tool_calls=[CALL, OTHER_CALL],
                    invalid_tool_calls=[
                        {"name": "cut", "args": '{"q": "k', "id": "call-3", "error": None},
                        {"name": "list", "args": "[1]", "id": "call-4", "error": None},
                    ],
                )
            )
        ],
    )
    assert stored(connection, user_id) == stored(connection, f"{user_id}-python")


def test_a_turn_is_nothing_but_json(
    connection: psycopg.Connection[dict[str, Any]], conn_string: str, user_id: str
) -> None:
    answer = append(
        connection, user_id, [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi."}]
    )
    assert (answer["sequences"], answer["appended"]) == ([0, 1], 2)
    assert all(re.fullmatch(r"lc_[0-9a-f-]{36}", each) for each in answer["message_ids"])
    assert len({*answer["message_ids"]}) == 2
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, model=None) as memory:
        talk = memory.conversation("t")
        assert [each.message and each.message.id for each in talk.read()] == answer["message_ids"]
        assert [(turn.user_query, turn.ai_response) for turn in talk.turns.list()] == [("Hello", "Hi.")]
        assert "Hello" in talk.context().text()


def test_what_a_client_says_beside_a_message_is_taken_as_it_is(
    connection: psycopg.Connection[dict[str, Any]], conn_string: str, user_id: str
) -> None:
    said = {
        "id": "m", "role": "user", "content": [{"type": "map", "points": [1, 2]}], "text": "A map of the town.",
        "characters": 40, "tokens": 50, "created_at": "2026-01-02T03:04:05.678Z", "metadata": {"from": "web"},
        "images": [{"kind": "map"}],
    }  # fmt: skip
    append(connection, user_id, [said, {"type": "human", "content": "Hi", "name": None, "tool_calls": None}])
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, model=None) as memory:
        columns: Any = ["text", "characters", "tokens", "created_at", "metadata", "images", "payload"]
        first, second = memory.conversation("t").read(columns=columns)
    assert (first.text, first.characters, first.tokens) == ("A map of the town.", 40, 50)
    assert (first.metadata, first.images) == ({"from": "web"}, [{"kind": "map"}])
    assert first.created_at is not None
    assert first.created_at.isoformat() == "2026-01-02T03:04:05.678000+00:00"
    assert first.message is not None
    assert first.message.content == said["content"]
    assert (second.text, second.message and second.message.name) == ("Hi", None)


SECRET = "a-secret-that-was-said"
BAD: dict[str, tuple[Any, str, str]] = {
    "no list": ({"role": "user", "content": SECRET}, "messages are a list", "role"),
    "a text": (SECRET, "messages are a list", "role"),
    "null": (None, "messages are a list", "role"),
    "no object": ([[]], "position 0 is no object", "role"),
    "a text within": ([SECRET], "position 0 is no object", "role"),
    "an empty object": ([{}], "position 0 has no role that is known", "user, assistant, system or tool"),
    "an unknown key": (
        [{"role": "user", "content": SECRET}, {"role": "user", "content": SECRET, "contnet": SECRET}],
        'position 1 has an unknown key "contnet"',
        "the keys are role, content, name, tool_calls, tool_call_id",
    ),
    "a key of JSON.stringify": (
        [{"lc": 1, "type": "constructor", "id": ["langchain_core"], "kwargs": {"content": SECRET}}],
        'has an unknown key "',
        "toDict()",
    ),
    "an unknown role": ([{"role": "moderator", "content": SECRET}], "has no role that is known", "user, assistant"),
    "a role that is no text": ([{"role": 7, "content": SECRET}], "has role of another type", "role is a text"),
    "an unknown type": ([{"type": "generic", "data": {"content": SECRET}}], "no type that is known", "human, ai"),
    "the role of another type": (
        [{"role": "assistant", "type": "human", "data": {"content": SECRET}}], "not its type's", "user, assistant"
    ),
    "no content": ([{"role": "user"}], "has no content", "content is a text, or a list"),
    "no content nor calls": ([{"role": "assistant", "content": None, "tool_calls": []}], "has no content", "a text"),
    "a number as content": ([{"role": "user", "content": 7}], "content of another type", "a text, or a list"),
    "a number as a block": ([{"role": "user", "content": [7]}], "content of another type", "a text, or a list"),
    "content twice": ([{"role": "user", "content": SECRET, "payload": {"type": "human", "data": {}}}], "in two ways", "payload"),
    "no data": ([{"type": "human", "data": None}], "no content", "a text"),
    "a payload of something else": ([{"payload": {"type": "human", "data": {}, "lc": 1}}], 'unknown key "lc"', "type"),
    "data of something else": ([{"payload": {"type": "human", "data": SECRET}}], "data of another type", "an object"),
    "another type in its data": (
        [{"type": "human", "data": {"type": "ai", "content": SECRET}}], "another id or type in its data", "leave"
    ),
    "another id in its data": (
        [{"id": "a", "type": "human", "data": {"id": "b", "content": SECRET}}], "another id or type", "leave"
    ),
    "content_blocks": ([{"type": "ai", "data": {"content_blocks": [], "content": SECRET}}], "content_blocks", "content"),
    "calls of a user": ([{"role": "user", "content": SECRET, "tool_calls": [CALL]}], "has tool_calls", "an assistant's"),
    "a call that is none": ([{"role": "assistant", "content": "", "tool_calls": [SECRET]}], "no object", "a call is"),
    "a call without a name": ([{"role": "assistant", "content": "", "tool_calls": [{"id": "c"}]}], "without a name", "a call"),
    "a call with another key": (
        [{"role": "assistant", "content": "", "tool_calls": [{**CALL, "arguments": SECRET}]}],
        'call with an unknown key "arguments"',
        "a call is",
    ),
    "arguments that are no object": (
        [{"role": "assistant", "content": "", "tool_calls": [{**CALL, "args": SECRET}]}], "a call's args", "an object"
    ),
    "a call in a block alone": (
        [{"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {"q": SECRET}}]}],
        "tool_use block that is not among its tool_calls",
        "as text",
    ),
    "raw calls alone": (
        [{"role": "assistant", "content": SECRET, "additional_kwargs": {"tool_calls": [{"id": "c"}]}}],
        "additional_kwargs.tool_calls",
        "as text",
    ),
    "a result of no call": ([{"role": "tool", "content": SECRET}], "no tool_call_id", "the id of the call"),
    "a status of its own": (
        [{"role": "tool", "content": SECRET, "tool_call_id": "c", "status": "odd"}], "unknown status", "success or error"
    ),
    "usage without a sum": (
        [{"role": "assistant", "content": SECRET, "usage_metadata": {"input_tokens": 1, "output_tokens": 1}}],
        "total_tokens",
        "total_tokens",
    ),
    "a block of another kind": (
        [{"role": "assistant", "content": [{"type": "web_search_tool_result", "content": SECRET}]}],
        "words that are not known here: web_search_tool_result block",
        "pass what the message says as text",
    ),
    "a block whose type is a text": ([{"role": "user", "content": [{"type": SECRET + "!"}]}], "no known type", "as text"),
    "a text with a source": (
        [{"role": "assistant", "content": [{"type": "text", "text": SECRET, "citations": [{"title": SECRET}]}]}],
        "text block with citations",
        "as text",
    ),
    "a document": (
        [{"role": "user", "content": [{"type": "file", "source": {"type": "text", "data": SECRET}}]}], "file block", "as text"
    ),
    "an id that is no text": ([{"id": 7, "role": "user", "content": SECRET}], "id of another type", "a text"),
    "an empty id": ([{"id": "", "role": "user", "content": SECRET}], "an id that cannot name it", "1 to 512 bytes"),
    "a long id": ([{"id": "你" * 171, "role": "user", "content": SECRET}], "cannot name it", "1 to 512 bytes"),
    "an id with a line break": ([{"id": "a\nb", "role": "user", "content": SECRET}], "cannot name it", "control"),
    "a text that is none": ([{"role": "user", "content": "x", "text": [SECRET]}], "text of another type", "a text"),
    "characters that are a text": ([{"role": "user", "content": "x", "characters": SECRET}], "another type", "a number"),
    "negative tokens": ([{"role": "user", "content": SECRET, "tokens": -1}], "tokens that are no count", "whole number"),
    "half a character": ([{"role": "user", "content": SECRET, "characters": 30.5}], "no count", "whole number"),
    "characters beyond all": ([{"role": "user", "content": SECRET, "characters": 1e30}], "no count", "whole number"),
    "a time that is none": ([{"role": "user", "content": "x", "created_at": SECRET}], "no time", "toISOString()"),
    "a time that is a number": ([{"role": "user", "content": "x", "created_at": 1767323045}], "another type", "a text"),
    "a time without end": ([{"role": "user", "content": SECRET, "created_at": "infinity"}], "no time", "2026"),
    "metadata that is a list": ([{"role": "user", "content": "x", "metadata": [SECRET]}], "metadata of", "an object"),
    "images that are none": ([{"role": "user", "content": "x", "images": SECRET}], "images of another", "a list"),
    "a NUL": ([{"role": "user", "content": SECRET + "\0"}], "what cannot be stored", "U+0000"),
    "a NUL in a key": ([{"role": "user", "content": "x", "metadata": {SECRET + "\0": 1}}], "cannot be stored", "U+0000"),
    "half a character of two": ([{"role": "user", "content": SECRET + "\ud83e"}], "cannot be stored", "toWellFormed()"),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_bad_input_is_refused_with_the_next_action_and_nothing_is_stored(
    connection: psycopg.Connection[dict[str, Any]], user_id: str, what: str
) -> None:
    messages, why, hint = BAD[what]
    good: list[Any] = [{"role": "user", "content": "first"}]
    with pytest.raises(psycopg.Error) as caught:
        append(connection, user_id, messages)
    assert caught.value.sqlstate == "PT400"
    assert why in str(caught.value.diag.message_primary)
    assert hint in str(caught.value.diag.message_hint)
    assert SECRET not in f"{caught.value} {caught.value.diag.message_detail} {caught.value.diag.context}"
    assert stored(connection, user_id) == []
    if isinstance(messages, list):
        with pytest.raises(psycopg.Error, match=f"position {len(messages)} "):
            append(connection, user_id, [*good, *messages])
        assert stored(connection, user_id) == []


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ({"role": "user", "content": "x" * 9_000_000}, "PT413"),
        ({"role": "user", "content": "x" * 5_000_000}, "PT413"),  # as it is stored it has its text twice
        ({"role": "user", "content": "tea", "characters": 1}, "23514"),
        ({"role": "user", "content": "x", "metadata": json.loads("[" * 130 + "]" * 130)}, "PT400"),
        ({"role": "user", "content": "x", "metadata": {"deep": json.loads("[" * 130 + "]" * 130)}}, "23514"),
        ({"role": "user", "content": "x", "additional_kwargs": {"deep": json.loads("[" * 130 + "]" * 130)}}, "23514"),
    ],
)
def test_the_tables_limits_hold_for_what_was_filled_in(
    connection: psycopg.Connection[dict[str, Any]], user_id: str, message: dict[str, Any], code: str
) -> None:
    with pytest.raises(psycopg.Error) as caught:
        append(connection, user_id, [message])
    assert caught.value.sqlstate == code
    assert caught.value.diag.message_hint
    assert stored(connection, user_id) == []


def test_a_message_that_is_whole_is_taken_as_it_is_beside_lean_ones(
    connection: psycopg.Connection[dict[str, Any]], user_id: str
) -> None:
    # Of a kind that only Python knows, with a payload that is no longer LangChain's whole.
    whole = {**to_row(ChatMessage(content="Hm.", role="moderator", id="w")), "metadata": {"a": 1}}
    del whole["payload"]["data"]["response_metadata"]
    append(connection, user_id, [{"role": "user", "content": "Hello"}, whole])
    assert stored(connection, user_id)[1] == {
        "sequence": 1, "message_id": "w", "role": "user", "text": "Hm.", "characters": 3, "tokens": whole["tokens"],
        "metadata": {"a": 1}, "images": None, "payload": whole["payload"], "final": False,
        "unreadable": None,
    }  # fmt: skip
    for wrong in (
        {"characters": 1.5},
        {"tokens": SECRET},
        {"role": "nobody"},
        {"contnet": "x", "text": None},
    ):
        with pytest.raises(psycopg.Error) as caught:
            append(connection, user_id, [{**whole, **wrong}])
        assert caught.value.sqlstate == "PT400"
        assert SECRET not in str(caught.value)


def test_an_empty_list_stores_nothing(connection: psycopg.Connection[dict[str, Any]], user_id: str) -> None:
    assert append(connection, user_id, []) == {
        "conversation_id": None, "sequences": [], "message_ids": [], "appended": 0, "updated": []
    }  # fmt: skip


def test_a_retry_with_the_same_ids_stores_nothing_twice(
    connection: psycopg.Connection[dict[str, Any]], user_id: str
) -> None:
    turn = [{"id": "q", "role": "user", "content": "Hello"}, {"id": "a", "role": "assistant", "content": "Hi."}]
    first = append(connection, user_id, turn)
    before = stored(connection, user_id)
    second = append(connection, user_id, turn)
    assert (second["sequences"], second["message_ids"]) == (first["sequences"], first["message_ids"])
    assert (second["appended"], second["updated"]) == (0, [])
    assert stored(connection, user_id) == before
    # Half a retry: what was there stays, what is new comes after it, without a hole.
    third = append(connection, user_id, [turn[1], {"id": "n", "role": "user", "content": "And?"}])
    assert (third["sequences"], third["message_ids"], third["appended"]) == ([1, 2], ["a", "n"], 1)
    # Other words under the same id replace it, or do not.
    changed = {"id": "q", "role": "user", "content": "Good evening"}
    assert append(connection, user_id, [changed], p_replace=False)["updated"] == []
    assert append(connection, user_id, [changed])["updated"] == ["q"]
    rows = stored(connection, user_id)
    assert [each["text"] for each in rows] == ["Good evening", "Hi.", "And?"]
    assert [each["characters"] for each in rows] == [12, 3, 4]


def test_what_was_forgotten_is_not_brought_back(connection: psycopg.Connection[dict[str, Any]], user_id: str) -> None:
    turn = [{"id": "q", "role": "user", "content": "Hello"}, {"id": "a", "role": "assistant", "content": "Hi."}]
    append(connection, user_id, turn)
    connection.execute("select public.memory_forget_message('t', 'q', %s)", [user_id])
    again = append(connection, user_id, turn)
    assert (again["sequences"], again["message_ids"], again["appended"]) == ([None, 1], ["q", "a"], 0)
    assert [each["message_id"] for each in stored(connection, user_id)] == ["a"]


def test_an_id_twice_in_a_call_is_one_message_with_the_last_words(
    connection: psycopg.Connection[dict[str, Any]], user_id: str
) -> None:
    answer = append(connection, user_id, [{"id": "m", "role": "user", "content": text} for text in ("one", "second")])
    assert (answer["sequences"], answer["appended"], answer["updated"]) == ([0, 0], 1, ["m"])
    (row,) = stored(connection, user_id)
    assert (row["text"], row["characters"]) == ("second", 6)
    found = connection.execute(
        "select message_count, next_sequence, total_characters from memory.conversations where user_id = %s", [user_id]
    ).fetchone()
    assert found == {"message_count": 1, "next_sequence": 1, "total_characters": row["characters"]}


def test_an_id_twice_before_others_leaves_no_hole(connection: psycopg.Connection[dict[str, Any]], user_id: str) -> None:
    def said(*ids: str) -> list[dict[str, Any]]:
        return [{"id": each, "role": "user", "content": each} for each in ids]

    assert append(connection, user_id, said("a", "a", "b"))["sequences"] == [0, 0, 1]
    assert append(connection, user_id, said("c", "c", "a", "d"))["sequences"] == [2, 2, 0, 3]
    assert [row["message_id"] for row in stored(connection, user_id)] == ["a", "b", "c", "d"]


def test_a_retry_changes_no_time(connection: psycopg.Connection[dict[str, Any]], user_id: str) -> None:
    times = []
    for _ in range(3):
        append(connection, user_id, [{"id": "a", "role": "user", "content": "tiles"}])
        row = connection.execute("select updated_at from memory.conversations where user_id = %s", [user_id]).fetchone()
        assert row is not None
        times.append(row["updated_at"])
    assert len(set(times)) == 1


def test_two_writers_at_once_keep_an_order_without_holes(conn_string: str, user_id: str) -> None:
    def write(writer: int) -> list[int]:
        with psycopg.connect(conn_string, autocommit=True, row_factory=dict_row) as own:
            sequences: list[int] = []
            for number in range(30):
                turn = [
                    {"id": f"{writer}-{number}-{role}", "role": role, "content": "x"} for role in ("user", "assistant")
                ]
                answers = [append(own, user_id, turn) for _ in range(2)]  # each turn is written twice
                assert answers[0]["sequences"] == answers[1]["sequences"]
                sequences += answers[0]["sequences"]
            return sequences

    with ThreadPoolExecutor(2) as threads:
        taken = [each for sequences in threads.map(write, range(2)) for each in sequences]
    with psycopg.connect(conn_string, row_factory=dict_row) as connection:
        rows = stored(connection, user_id)
    assert sorted(taken) == [each["sequence"] for each in rows] == list(range(120))


def test_a_writer_that_waits_goes_on_where_the_other_ended(conn_string: str, user_id: str) -> None:
    turn = [{"id": "m", "role": "user", "content": "Hello"}]
    with (
        psycopg.connect(conn_string, row_factory=dict_row) as first,
        psycopg.connect(conn_string, autocommit=True, row_factory=dict_row) as second,
        ThreadPoolExecutor(1) as threads,
    ):
        append(first, user_id, turn)  # open
        waiting = threads.submit(append, second, user_id, [*turn, {"id": "n", "role": "user", "content": "Hi"}])
        for _ in range(500):
            found = first.execute("select pg_blocking_pids(%s) as by", [second.info.backend_pid]).fetchone()
            if found and found["by"]:
                break
            time.sleep(0.02)
        assert not waiting.done()
        first.commit()
        assert waiting.result(30)["sequences"] == [0, 1]
        assert [each["message_id"] for each in stored(second, user_id)] == ["m", "n"]


@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=200))
@example("\x7f\x80\u07ff\u0800\u0dff\u0e00\uffff\U00010000\U0010ffff")
@example("".join(map(chr, range(1, 0xD800))))
@example("aB1-.2xY")
def test_tokens_are_estimated_as_python_estimates_them(
    connection: psycopg.Connection[dict[str, Any]], text: str
) -> None:
    found = connection.execute("select memory_private.estimate_tokens(%s) as tokens", [text]).fetchone()
    assert found == {"tokens": count_tokens(text)}


def test_tokens_of_each_kind_of_text_are_estimated_as_python_estimates_them(
    connection: psycopg.Connection[dict[str, Any]],
) -> None:
    for text in (text for texts in TEXTS.values() for text in texts):
        found = connection.execute("select memory_private.estimate_tokens(%s) as tokens", [text]).fetchone()
        assert found == {"tokens": count_tokens(text)}, text
