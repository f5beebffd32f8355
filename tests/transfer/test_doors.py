"""By every door and color, as a user with their own token, and as Markdown."""

from __future__ import annotations

import io
import json
import os
import re
import stat
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from langchain_core.messages import AIMessage, HumanMessage

from langchain_supabase_memory import (
    SupabaseMemory,
    aexport_conversations,
    aimport_conversations,
    export_conversations,
    import_conversations,
)
from langchain_supabase_memory.cli.application import commands
from langchain_supabase_memory.errors import InvalidInputError, SupabaseMemoryError
from langchain_supabase_memory.transfer.sources import jsonl
from langchain_supabase_memory.transfer.values import Event, OptOuts, Said, Thread
from tests.conftest import Door
from tests.services.data_api import DataApi, token

AT = datetime(2025, 3, 1, 12, tzinfo=UTC)


async def run(door: Door, sync: Any, color: Any, memory: SupabaseMemory, *arguments: Any, **named: Any) -> Any:
    if door.color == "sync":
        return sync(memory, *arguments, **named)
    return await color(memory, *arguments, **named)


async def test_a_user_takes_along_what_is_theirs_by_their_own_token(door: Door, user_id: str, tmp_path: Path) -> None:
    other = f"{user_id}-other"
    for each in (user_id, other):
        conversation = door.service.conversation("studio", user_id=each)
        await door(conversation.append, [HumanMessage(f"Said by {each}.", id="m0")], created_at=AT)
        await door(conversation.append, [AIMessage(f"m{n}", id=f"m{n}") for n in range(1, 1201)])
    mine = door.as_token(token("authenticated", user_id))
    exporting = partial(run, door, export_conversations, aexport_conversations)
    importing = partial(run, door, import_conversations, aimport_conversations)
    receipt = await exporting(mine, tmp_path / "mine.jsonl")
    assert (receipt.conversations, receipt.messages) == (1, 1201)
    text = (tmp_path / "mine.jsonl").read_text(encoding="utf-8")
    assert f"Said by {user_id}." in text
    assert f"Said by {other}." not in text
    assert receipt.bytes == len(text.encode())
    assert stat.S_IMODE(os.stat(tmp_path / "mine.jsonl").st_mode) == 0o600
    assert os.listdir(tmp_path) == ["mine.jsonl"]

    # And brings it to another account of theirs, under row level security; nobody else's is touched.
    third = door.as_token(token("authenticated", f"{user_id}-third"))
    stored = await importing(third, jsonl(tmp_path / "mine.jsonl"))
    assert stored.stored == 1201
    found = await door(third.conversation("studio").read, first=1, columns=("created_at", "payload"))
    assert (found[0].created_at, found[0].message.id) == (AT, "m0")
    with pytest.raises(SupabaseMemoryError):
        await importing(third, jsonl(tmp_path / "mine.jsonl"), user_id=other)
    nothing = await exporting(third, tmp_path / "theirs.jsonl", user_id=other)
    assert (nothing.conversations, nothing.messages) == (0, 0)


@pytest.fixture
def memory(conn_string: str, user_id: str) -> Any:
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, recall=None, model=None) as made:
        yield made


def test_one_conversation_an_agent_or_a_user_is_exported(memory: SupabaseMemory, tmp_path: Path) -> None:
    for thread, agent in (("a", "default"), ("b", "default"), ("b", "second")):
        memory.conversation(thread, agent_id=agent).append([HumanMessage("Hello", id="m")])
    narrowed: tuple[dict[str, Any], ...] = (
        {}, {"agent_id": "default"}, {"thread_id": "b"}, {"thread_id": "b", "agent_id": "second"},
    )  # fmt: skip
    counts = [export_conversations(memory, tmp_path / "x.jsonl", **only).conversations for only in narrowed]
    assert counts == [3, 2, 2, 1]


def test_what_changes_meanwhile_is_exported_as_well(memory: SupabaseMemory) -> None:
    for number in range(250):
        memory.conversation(f"t{number}").append([HumanMessage("Before", id="m0")])
    told: list[int] = []

    def go_on(receipt: Any) -> None:
        if not told:
            memory.conversation("t0").append([HumanMessage("Meanwhile", id="m1")])  # the last of the list
        told.append(receipt.conversations)

    out = io.BytesIO()
    export_conversations(memory, out, progress=go_on)
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert {line["thread_id"] for line in lines if line["kind"] == "conversation"} == {f"t{n}" for n in range(250)}
    assert sum(line.get("text") == "Meanwhile" for line in lines) == 1


def test_half_an_export_is_known_by_its_missing_end(memory: SupabaseMemory, tmp_path: Path) -> None:
    path = tmp_path / "all.jsonl"
    memory.conversation("t").append([HumanMessage(f"{number}", id=f"m{number}") for number in range(10)])
    export_conversations(memory, path)
    whole = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(whole[:-3]))
    with pytest.raises(InvalidInputError, match="its last line is missing"):
        import_conversations(memory, jsonl(path), user_id="half")
    assert memory.conversation("t", user_id="half").count() == 8
    path.write_bytes(b"".join(whole[:-3]) + whole[-3][:40])
    with pytest.raises(InvalidInputError, match="line 11"):
        import_conversations(memory, jsonl(path), user_id="half")
    path.write_bytes(b"".join(whole))
    assert import_conversations(memory, jsonl(path), user_id="half").stored == 2
    path.write_bytes(b'{"kind": "export", "format": 99}\n')
    with pytest.raises(InvalidInputError, match="another format"):
        import_conversations(memory, jsonl(path), user_id="half")


def test_what_is_not_to_be_remembered_holds_before_the_first_message(memory: SupabaseMemory) -> None:
    events: list[Event] = [
        OptOuts([{"topic": "divorce", "by": "maya", "at": AT.isoformat()}], "line 1"),
        Thread("quiet", "line 2", opt_outs=[{"topic": None, "by": "maya", "at": AT.isoformat()}]),
        Said("line 3", HumanMessage("Nothing of this", id="m")),
    ]
    receipt = import_conversations(memory, events)
    assert (receipt.restored, receipt.stored) == (2, 1)
    assert {(each.topic, each.thread_id, each.by, each.at) for each in memory.opt_outs()} == {
        ("divorce", None, "maya", AT), (None, "quiet", "maya", AT),
    }  # fmt: skip
    assert memory.conversation("quiet").index().opted_out


def test_markdown_is_read_by_people_and_compared_by_git(memory: SupabaseMemory, tmp_path: Path) -> None:
    conversation = memory.conversation("a/b: studio")
    conversation.append(
        [
            HumanMessage("Hello\n\n# Not a heading\n## Assistant, 2025\n```\nopen fence", id="m0"),
            AIMessage("", tool_calls=[{"name": "look_up", "args": {"q": "`x`"}, "id": "c"}], id="m1"),
        ],
        created_at=AT,
    )
    conversation.update(title="A *kiln*")
    conversation.add_board_item("fact", "The kiln is blue", by="ana")
    folder = tmp_path / "diary"
    export_conversations(memory, folder, format="markdown")
    (name,) = os.listdir(folder)
    assert re.fullmatch(r"a-b-studio-[0-9a-f]{8}\.md", name)
    before = (folder / name).read_text(encoding="utf-8")
    headings = [line for line in before.splitlines() if line.startswith("#")]
    assert headings == [
        "# A \\*kiln\\*", "## User, 2025-03-01 12:00:00 UTC", "## Assistant, 2025-03-01 12:00:00 UTC",
        "## Noted by people",
    ]  # fmt: skip
    assert "> # Not a heading" in before
    assert "The kiln is blue (fact, current)" in before
    export_conversations(memory, folder, format="markdown")
    assert (folder / name).read_text(encoding="utf-8") == before
    conversation.append([AIMessage("Later.", id="m2")])
    export_conversations(memory, folder, format="markdown")
    after = (folder / name).read_text(encoding="utf-8")
    said = before.partition("## Noted")[0]
    assert after.startswith(said)
    assert "> Later." in after[len(said) :]


def test_the_commands(conn_string: str, data_api: DataApi, user_id: str, tmp_path: Path) -> None:
    runner = CliRunner(env={"SUPABASE_DB_URL": conn_string})
    path = tmp_path / "lines.jsonl"
    path.write_text('{"thread_id": "t", "messages": [{"role": "user", "content": "Hello"}]}\nno JSON\n')
    source = ["import", "jsonl", str(path), "--user", user_id]
    dry = runner.invoke(commands, [*source, "--dry-run", "--skip"])
    assert (dry.exit_code, dry.output) == (
        0,
        "1 message of 1 conversation would be imported.\n"
        "Not kept: 1 × The line is no JSON, or is nested too deeply. (first: line 2)\n",
    )
    failed = runner.invoke(commands, source)
    assert failed.exit_code == 1
    assert "line 2: The line is no JSON" in failed.output
    assert "What stands before it is stored (1 messages)" in failed.output
    again = runner.invoke(commands, [*source, "--skip"])
    assert again.output.startswith("1 message of 1 conversation read: 0 stored, 1 were there already.\n")

    shown = runner.invoke(commands, ["export", "-", "--user", user_id])
    assert '"text":"Hello"' in shown.stdout
    assert "1 message of 1 conversation exported" in shown.stderr
    nobody = runner.invoke(commands, ["export", "-"])
    assert "No user is named" in nobody.output

    # A token goes to the Data API alone, whatever else is in the environment: this one answers without /rest/v1.
    user = ["--access-token", token("authenticated", user_id)]
    address = ["--url", data_api.url, "--key", token("anon")]
    assert "no Data API at this address" in runner.invoke(commands, ["export", "-", *address, *user]).output
    refused = runner.invoke(commands, ["export", "-", "--database-url", conn_string, *user])
    assert "A user's token is for the Data API" in refused.output
