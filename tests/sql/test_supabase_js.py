"""Supabase's real JavaScript client against the real PostgREST: it writes and reads with only JSON."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from langchain_supabase_memory import SupabaseMemory
from tests.services.data_api import DataApi, token

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

SERVICES = Path(__file__).parents[1] / "services"
PAGE = Path(__file__).parents[2] / "docs" / "javascript.md"

TURN: list[dict[str, Any]] = [
    {"role": "user", "content": "How hot is the kiln? 🫖 مرحبا"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c", "type": "function", "function": {"name": "read", "arguments": '{"of":"kiln"}'}}],
    },
    {"role": "tool", "tool_call_id": "c", "content": "1240 °C"},
    {"role": "assistant", "content": [{"type": "text", "text": "It has 1240 °C."}]},
]
SAID: list[BaseMessage] = [
    HumanMessage("How hot is the kiln? 🫖 مرحبا"),
    AIMessage("", tool_calls=[{"name": "read", "args": {"of": "kiln"}, "id": "c"}]),
    ToolMessage("1240 °C", tool_call_id="c"),
    AIMessage([{"type": "text", "text": "It has 1240 °C."}]),
]


@dataclass(frozen=True)
class Browser:
    """A JavaScript client of one user, or of nobody.

    Attributes:
        api: Where it calls.
        user_id: Who is signed in.
    """

    api: DataApi
    user_id: str | None

    def run(self, calls: list[tuple[str, dict[str, Any]]]) -> list[dict[str, Any]]:
        """What each call came to: data, error and status."""
        session = None if self.user_id is None else token("authenticated", self.user_id)
        given = {"url": self.api.url, "key": token("anon"), "token": session, "calls": calls}
        answers: list[dict[str, Any]] = json.loads(node(["supabase_js.mjs"], json.dumps(given)))
        return answers

    def rpc(self, name: str, **arguments: Any) -> Any:
        """What a call that succeeds answers."""
        (answer,) = self.run([(name, arguments)])
        assert answer["error"] is None
        return answer["data"]


def node(command: list[str], given: str) -> str:
    run = subprocess.run(
        ["node", *command], cwd=SERVICES, input=given, capture_output=True, text=True, timeout=60, check=False
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.fixture
def maya(data_api: DataApi, user_id: str) -> Browser:
    return Browser(data_api, user_id)


@pytest.fixture
def sam(data_api: DataApi, user_id: str) -> Browser:
    return Browser(data_api, f"{user_id}-sam")


def test_a_turn_is_written_and_read_by_nothing_but_json(maya: Browser, conn_string: str) -> None:
    written, read, pack, listed, count = maya.run(
        [
            ("memory_append", {"p_thread_id": "t", "p_messages": TURN}),
            ("memory_read", {"p_thread_id": "t", "p_columns": ["role", "text", "message_id"]}),
            ("memory_context", {"p_thread_id": "t"}),
            ("memory_conversations", {}),
            ("memory_count", {"p_thread_id": "t"}),
        ]
    )
    assert [each["error"] for each in (written, read, pack, listed, count)] == [None] * 5
    assert (written["data"]["sequences"], written["data"]["appended"]) == ([0, 1, 2, 3], 4)
    rows = read["data"]["messages"]
    assert [(each["role"], each["text"]) for each in rows] == [
        ("user", "How hot is the kiln? 🫖 مرحبا"),
        ("assistant", ""),
        ("tool", "1240 °C"),
        ("assistant", "It has 1240 °C."),
    ]
    assert [each["message_id"] for each in rows] == written["data"]["message_ids"]
    assert [each["payload"]["type"] for each in pack["data"]["messages"]] == ["human", "ai", "tool", "ai"]
    assert (pack["data"]["message_count"], count["data"]) == (4, 4)
    assert [(each["thread_id"], each["message_count"]) for each in listed["data"]["conversations"]] == [("t", 4)]
    # And Python goes on where JavaScript ended.
    with SupabaseMemory.from_conn_string(conn_string, user_id=maya.user_id, model=None) as memory:
        talk = memory.conversation("t")
        stored = [each.message for each in talk.read()]
        named = [
            each.model_copy(update={"id": name})
            for each, name in zip(SAID, written["data"]["message_ids"], strict=True)
        ]
        assert stored == named
        assert [(turn.user_query, turn.ai_response) for turn in talk.turns.list()] == [
            (TURN[0]["content"], "It has 1240 °C.")
        ]
        talk.append([HumanMessage("Thanks.")])
    assert maya.rpc("memory_read", p_thread_id="t", p_last=1, p_columns=["text"])["messages"] == [
        {"sequence": 4, "text": "Thanks."}
    ]


def test_a_second_user_sees_nothing_and_writes_into_nobody_else_s_conversation(maya: Browser, sam: Browser) -> None:
    maya.rpc("memory_append", p_thread_id="t", p_messages=TURN)
    theirs = {"p_thread_id": "t", "p_user_id": maya.user_id}
    read, pack, listed, named, context = sam.run(
        [
            ("memory_read", {"p_thread_id": "t"}),
            ("memory_context", {"p_thread_id": "t"}),
            ("memory_conversations", {}),
            ("memory_read", theirs),
            ("memory_context", theirs),
        ]
    )
    assert (read["data"], pack["data"], listed["data"]) == (
        {"messages": [], "more": False},
        None,
        {"conversations": [], "before": None, "after": None},
    )
    assert (named["data"], context["data"]) == ({"messages": [], "more": False}, None)
    for write in ("memory_append", "memory_append_context"):
        (forged,) = sam.run([(write, {**theirs, "p_messages": TURN[:1]})])
        assert (forged["error"]["code"], forged["status"]) == ("42501", 403)
        assert forged["data"] is None
    # With what is stored only their own is read.
    both = sam.rpc("memory_append_context", p_thread_id="t", p_messages=TURN[:1])
    assert both["context"]["message_count"] == 1
    # Under the same name each has a conversation of their own.
    sam.rpc("memory_append", p_thread_id="t", p_messages=TURN[:1])
    assert [each.rpc("memory_count", p_thread_id="t") for each in (maya, sam)] == [4, 2]


def test_who_is_not_signed_in_may_not_even_call(data_api: DataApi) -> None:
    (answer,) = Browser(data_api, None).run([("memory_append", {"p_thread_id": "t", "p_messages": TURN})])
    assert answer["error"]["code"] == "42501"
    assert answer["status"] == 401


def test_an_error_has_a_code_and_a_hint_and_never_what_was_said(maya: Browser) -> None:
    secret = "a-secret-that-was-said"
    bad: dict[str, Any] = {
        'has an unknown key "contents"': [{"role": "user", "contents": secret}],
        "no role that is known": [{"role": "bot", "content": secret}],
        "words that are not known": [{"role": "user", "content": [{"type": "poem", "lines": secret}]}],
        "messages are a list": {"role": "user", "content": secret},
    }
    answers = maya.run([("memory_append", {"p_thread_id": "t", "p_messages": messages}) for messages in bad.values()])
    for why, answer in zip(bad, answers, strict=True):
        assert (answer["status"], answer["error"]["code"], answer["data"]) == (400, "PT400", None)
        assert why in answer["error"]["message"]
        assert answer["error"]["hint"]
        assert secret not in json.dumps(answer)
    # PostgREST cannot even pass a NUL on.
    nul = {"p_thread_id": "t", "p_messages": [{"role": "user", "content": f"{secret}\0"}]}
    (answer,) = maya.run([("memory_append", nul)])
    assert (answer["status"], answer["error"]["code"]) == (400, "22P05")
    assert secret not in json.dumps(answer)
    assert maya.rpc("memory_count", p_thread_id="t") == 0


def test_a_retry_with_ids_of_one_s_own_stores_nothing_twice(maya: Browser) -> None:
    turn = [{**message, "id": f"m{number}"} for number, message in enumerate(TURN)]
    call = ("memory_append", {"p_thread_id": "t", "p_messages": turn})
    first, second = (answer["data"] for answer in maya.run([call, call]))
    assert first["message_ids"] == second["message_ids"] == ["m0", "m1", "m2", "m3"]
    assert (first["appended"], second["appended"], second["updated"]) == (4, 0, [])


def test_the_page_s_program_runs_as_it_stands(data_api: DataApi, maya: Browser) -> None:
    first, *blocks = re.findall(r"^```js\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    assert "createClient(" in first
    assert len(blocks) >= 3
    session = json.dumps([data_api.url, token("anon"), token("authenticated", maya.user_id)])
    opened = (
        f"const [url, key, token] = {session};\n"
        'import { createClient } from "@supabase/supabase-js";\nimport WebSocket from "ws";\n'
        "const supabase = createClient(url, key, { accessToken: async () => token, realtime: { transport: WebSocket },\n"
        '  global: { fetch: (at, options) => fetch(String(at).replace("/rest/v1/", "/"), options) } });\n'
    )
    printed = node(["--input-type=module", "--eval", opened + "\n".join(blocks)], "")
    expected = [
        line.removeprefix("// >").strip() for block in blocks for line in block.splitlines() if line.startswith("// >")
    ]
    assert expected
    assert printed.splitlines() == expected
