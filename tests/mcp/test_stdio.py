"""`supabase-memory mcp` over standard input and output: the program as a client starts it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from langchain_supabase_memory import SupabaseMemory
from tests.cli.running import PROGRAM, refused, surroundings
from tests.mcp.conftest import FOUND, MODES, READING, WRITING, YES, Person, failed, result_text
from tests.services.data_api import token
from tests.services.project import PUBLISHABLE, Project

CANARY = "canary-5519"
_SECONDS = 60.0


def started(*arguments: str, **environment: str) -> StdioServerParameters:
    """How a client starts it."""
    return StdioServerParameters(
        command=PROGRAM[0], args=[*PROGRAM[1:], "mcp", *arguments], env=surroundings(**environment)
    )


@contextmanager
def process(*arguments: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """The program with its pipes, for what no client would send."""
    made = subprocess.Popen(
        [*PROGRAM, "mcp", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=surroundings(**environment),
    )
    try:
        yield made
    finally:
        made.kill()
        made.wait()
        for pipe in (made.stdin, made.stdout, made.stderr):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()


def initialize(number: int = 1) -> str:
    params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": "initialize", "params": params})


def request(number: int, name: str, arguments: dict[str, Any]) -> str:
    params = {"name": name, "arguments": arguments}
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_reads_and_stores_and_forgets(
    studio: SupabaseMemory, conn_string: str, user_id: str, mode: str
) -> None:
    person = Person(YES)
    server = started("--write", "--destructive", SUPABASE_DB_URL=conn_string, SUPABASE_MEMORY_USER=user_id)
    async with Client(server, mode=mode, elicitation_callback=person) as client:
        assert client.protocol_version == MODES[mode]
        assert client.server_info is None or client.server_info.name == "supabase-memory"
        for name, arguments in READING.items():
            assert FOUND[name] in result_text(await client.call_tool(name, arguments)), name
        stored = {**WRITING["save_turn"], "conversation_id": "garden"}
        assert "Stored as messages 0-1." in result_text(await client.call_tool("save_turn", stored))
        assert "garden" in result_text(await client.call_tool("list_conversations", {}))
        gone = await client.call_tool("forget", {"conversation_id": "garden", "dry_run": False})
        assert "Forgotten: 1 conversation" in result_text(gone)
        text = (await client.read_resource("memory://conversations")).contents[0].text  # type: ignore[union-attr]
        assert 'id="studio"' in text
    assert len(person.asked) == 1
    assert await studio.conversation("garden").acount() == 0


@pytest.mark.slow
async def test_it_serves_its_own_person_alone(conn_string: str, studio: SupabaseMemory, user_id: str) -> None:
    async with Client(started("--user", f"{user_id}-other", SUPABASE_DB_URL=conn_string)) as client:
        assert "There are no conversations." in result_text(await client.call_tool("list_conversations", {}))
        assert "E-47" not in str(await client.call_tool("read_messages", {**READING["read_messages"]}))


@pytest.mark.slow
async def test_a_person_by_their_own_token(project: Project, studio: SupabaseMemory, user_id: str) -> None:
    address = {"SUPABASE_URL": project.url, "SUPABASE_KEY": PUBLISHABLE}
    async with Client(started(**address, SUPABASE_MEMORY_TOKEN=project.token(user_id))) as client:
        assert "E-47" in result_text(await client.call_tool("get_turn", {"n": 1}))
    expired = project.token(user_id, expires_in=-100)
    async with Client(started(**address, SUPABASE_MEMORY_TOKEN=expired)) as client:
        for name, arguments in READING.items():
            text = failed(await client.call_tool(name, arguments))
            assert "The access token has expired" in text
            assert "Ask the person to sign in again" in text


@pytest.mark.slow
async def test_a_service_key_serves_the_person_who_is_named_alone(
    project: Project, studio: SupabaseMemory, user_id: str
) -> None:
    address = {"SUPABASE_URL": project.url, "SUPABASE_KEY": token("service_role")}
    async with Client(started("--user", user_id, **address)) as client:
        assert "E-47" in result_text(await client.call_tool("get_turn", {"n": 1}))
    async with Client(started("--user", f"{user_id}-other", **address)) as client:
        assert "E-47" not in str(await client.call_tool("search_conversation_history", {"query": "kiln"}))


def test_standard_output_carries_the_protocol_alone_and_nothing_of_what_was_said_is_logged(
    conn_string: str, user_id: str
) -> None:
    bad = [
        "no JSON",
        "",
        f'{{"jsonrpc": "2.0", "id": 7, "method": "{CANARY}"}}',
        f'{{"jsonrpc": "2.0", "id": 8, "method": "tools/call", "params": ["{CANARY}"]}}',
        "[" * 20_000,
        json.dumps({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": CANARY, "arguments": {}}}),
        request(10, "get_turn", {"n": CANARY}),
        request(11, "read_messages", {"first": 0, "last": 1, "conversation_id": f"{CANARY}\u0000"}),
        '{"jsonrpc": "2.0", "id": 12',
    ]
    asked = request(13, "save_turn", {**WRITING["save_turn"], "user": CANARY})
    with process("--write", "--user", user_id, SUPABASE_DB_URL=conn_string) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        started_by = '{"jsonrpc": "2.0", "method": "notifications/initialized"}'
        server.stdin.write("\n".join([initialize(), started_by, *bad, asked]) + "\n")
        server.stdin.flush()
        answers: dict[object, Any] = {}
        while 13 not in answers:
            line = json.loads(server.stdout.readline())
            answers[line.get("id")] = line
        out, err = server.communicate(timeout=_SECONDS)
        assert server.returncode == 0
    assert answers[1]["result"]["serverInfo"]["name"] == "supabase-memory"
    assert "Stored" in str(answers[13]["result"])
    assert answers[7]["error"]
    assert answers[10]["result"]["isError"]
    for line in out.splitlines():
        assert json.loads(line)["jsonrpc"] == "2.0"
    assert CANARY not in err


def test_it_ends_when_its_client_goes_away_in_the_middle(conn_string: str, user_id: str) -> None:
    with process("--write", "--user", user_id, SUPABASE_DB_URL=conn_string) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(initialize() + "\n" + request(2, "save_turn", WRITING["save_turn"]) + "\n")
        server.stdin.flush()
        assert json.loads(server.stdout.readline())["id"] == 1
        server.stdout.close()  # nobody reads what comes
        server.stdin.close()
        assert server.wait(_SECONDS) in (0, 1)
        assert server.stderr is not None
        assert "hello" not in server.stderr.read()


def test_who_starts_it_by_hand_is_told_what_it_waits_for(conn_string: str, user_id: str) -> None:
    keyboard, terminal = os.openpty()
    command = [*PROGRAM, "mcp", "--user", user_id, "--database-url", conn_string]
    with subprocess.Popen(
        command, stdin=terminal, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=surroundings()
    ) as server:
        os.close(terminal)
        assert server.stderr is not None
        assert "A client starts this command" in server.stderr.readline()
        assert "Ctrl-D ends it." in server.stderr.readline()
        time.sleep(0.5)  # until it reads
        os.write(keyboard, b"\x04")
        out, err = server.communicate(timeout=_SECONDS)
    os.close(keyboard)
    assert (server.returncode, out, err) == (0, "", "")


def test_what_is_missing_is_said_before_anything_is_opened(tmp_path: Path, conn_string: str) -> None:
    assert "No user is given" in refused("mcp", "--database-url", conn_string)
    assert "No database is named" in refused("mcp", "--user", "maya")
    assert "There is no folder" in refused("mcp", "--user", "maya", "--embedded", str(tmp_path / "none"))
    assert "A token goes with the Data API" in refused("mcp", "--token", "a.b.c", "--database-url", conn_string)
    assert "time_zone is not a time zone" in refused("mcp", "--user", "maya", "--time-zone", "Nowhere/None")
    assert "It goes with --http" in refused("mcp", "--user", "maya", "--port", "9000")
    url = ("--url", "http://127.0.0.1:1")
    assert "is no JWT" in refused("mcp", *url, "--key", PUBLISHABLE, "--token", "secret")
    assert "Pass the secret key" in refused("mcp", *url, "--key", PUBLISHABLE, "--user", "maya")


def test_what_to_install_is_said_where_the_extra_is_missing() -> None:
    hide = "import sys; sys.modules['mcp'] = None; from langchain_supabase_memory.cli import main; main()"
    result = subprocess.run(
        [sys.executable, "-P", "-c", hide, "mcp", "--user", "maya"],
        capture_output=True,
        text=True,
        check=False,
        env=surroundings(),
    )
    assert result.returncode == 1
    assert "langchain-supabase-memory[mcp]" in result.stderr
    assert "Traceback" not in result.stderr
