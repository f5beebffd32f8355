"""Transfer over every transport, sync and async, as a user with their own token, and as Markdown."""

from __future__ import annotations

import io
import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from langchain_supabase_memory import ExtractiveSummarizer, SupabaseMemory
from langchain_supabase_memory.errors import InvalidInputError, SupabaseMemoryError
from langchain_supabase_memory.language.messages.codec import to_row
from langchain_supabase_memory.transfer import (
    aexport_conversations,
    aimport_conversations,
    export_conversations,
    import_conversations,
)
from langchain_supabase_memory.transfer.markdown_text import plain_line
from langchain_supabase_memory.transfer.sources import jsonl
from langchain_supabase_memory.transfer.values import Event, SourceMessage, ThreadOptOuts, ThreadStart
from tests.conftest import Caller
from tests.counting import recorded_calls
from tests.services.data_api import token

AT = datetime(2025, 3, 1, 12, tzinfo=UTC)


async def run(caller: Caller, sync: Any, color: Any, memory: SupabaseMemory, *arguments: Any, **named: Any) -> Any:
    if caller.color == "sync":
        return sync(memory, *arguments, **named)
    return await color(memory, *arguments, **named)


async def test_a_user_takes_along_what_is_theirs_by_their_own_token(
    caller: Caller, user_id: str, tmp_path: Path
) -> None:
    other = f"{user_id}-other"
    for each in (user_id, other):
        conversation = caller.service.for_user(each).conversation("studio")
        await caller(conversation.append, [HumanMessage(f"Said by {each}.", id="m0")], created_at=AT)
        await caller(conversation.append, [AIMessage(f"m{n}", id=f"m{n}") for n in range(1, 1201)])
    mine = caller.as_token(token("authenticated", user_id))
    exporting = partial(run, caller, export_conversations, aexport_conversations)
    importing = partial(run, caller, import_conversations, aimport_conversations)
    receipt = await exporting(mine, tmp_path / "mine.jsonl")
    assert (receipt.conversations, receipt.messages) == (1, 1201)
    text = (tmp_path / "mine.jsonl").read_text(encoding="utf-8")
    assert f"Said by {user_id}." in text
    assert f"Said by {other}." not in text
    assert receipt.bytes == len(text.encode())
    assert stat.S_IMODE(os.stat(tmp_path / "mine.jsonl").st_mode) == 0o600
    assert os.listdir(tmp_path) == ["mine.jsonl"]

    # And brings it to another account of theirs, under row level security; nobody else's is touched.
    third = caller.as_token(token("authenticated", f"{user_id}-third"))
    stored = await importing(third, jsonl(tmp_path / "mine.jsonl"))
    assert stored.stored == 1201
    found = await caller(third.conversation("studio").read, first=1, columns=("created_at", "payload"))
    assert (found[0].created_at, found[0].message.id) == (AT, "m0")
    with pytest.raises(SupabaseMemoryError):
        await importing(third.for_user(other), jsonl(tmp_path / "mine.jsonl"))
    nothing = await exporting(third.for_user(other), tmp_path / "theirs.jsonl")
    assert (nothing.conversations, nothing.messages) == (0, 0)


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
    half = SupabaseMemory(memory._services.transport, user_id="half")
    with pytest.raises(InvalidInputError, match="its last line is missing"):
        import_conversations(half, jsonl(path))
    assert half.conversation("t").count() == 8
    path.write_bytes(b"".join(whole[:-3]) + whole[-3][:40])
    with pytest.raises(InvalidInputError, match="line 11"):
        import_conversations(half, jsonl(path))
    path.write_bytes(b"".join(whole))
    assert import_conversations(half, jsonl(path)).stored == 2
    path.write_bytes(b'{"kind": "export", "format": 99}\n')
    with pytest.raises(InvalidInputError, match="another format"):
        import_conversations(half, jsonl(path))


def test_what_is_not_to_be_remembered_holds_before_the_first_message(memory: SupabaseMemory) -> None:
    events: list[Event] = [
        ThreadOptOuts([{"topic": "divorce", "by": "maya", "at": AT.isoformat()}], "line 1"),
        ThreadStart("quiet", "line 2", opt_outs=[{"topic": None, "by": "maya", "at": AT.isoformat()}]),
        SourceMessage("line 3", HumanMessage("Nothing of this", id="m")),
    ]
    receipt = import_conversations(memory, events)
    assert (receipt.restored, receipt.stored) == (2, 1)
    assert {(each.topic, each.thread_id, each.actor, each.at) for each in memory.privacy.opt_outs()} == {
        ("divorce", None, "maya", AT), (None, "quiet", "maya", AT),
    }  # fmt: skip
    assert memory.conversation("quiet").index().opted_out


def test_markdown_is_read_by_people_and_compared_by_git(memory: SupabaseMemory, tmp_path: Path) -> None:
    conversation = memory.conversation("a/b: studio")
    conversation.append(
        [
            HumanMessage("Hello\n\n# Not a heading\n## Assistant, 2025\n```\nopen fence", id="m0"),
            AIMessage("", tool_calls=[{"name": "look_up", "args": {"q": "`x`"}, "id": "c"}], id="m1"),
            ToolMessage("</details># Found", tool_call_id="c", name="look_up", id="m2"),
        ],
        created_at=AT,
    )
    conversation.update(title="A *kiln*")
    conversation.board.pin(conversation.board.add("fact", "The kiln is blue", actor="ana"), actor="ana")
    conversation.board.edit_summary("Blue is", actor="ana")
    folder = tmp_path / "diary"
    export_conversations(memory, folder, format="markdown")
    (name,) = os.listdir(folder)
    assert re.fullmatch(r"a-b-studio-[0-9a-f]{8}\.md", name)
    before = (folder / name).read_text(encoding="utf-8")
    assert [line for line in before.splitlines() if line.startswith("#")] == [
        "# A \\*kiln\\*", "## Note", "## Board", "### Facts", "## Saturday, 1 March 2025",
    ]  # fmt: skip
    assert "\n- The kiln is blue (pinned, by a person)\n" in before
    assert "> Blue is\n\n## Board" in before
    assert (
        "\n**User**, 12:00 [0]\n\n> Hello\n>\n> \\# Not a heading  \n> \\## Assistant, 2025\n> ```\n> open fence\n> ```\n"
        in before
    )
    assert (
        '\n**Assistant**, 12:00 [1]\n\n<details><summary>Calls look_up</summary>\n\n```json\n{"q": "`x`"}\n```\n\n</details>\n'
        in before
    )
    assert (
        "\n<details><summary>Tool (look_up), 12:00 [2]</summary>\n\n```text\n</details># Found\n```\n\n</details>\n"
        in before
    )
    assert "- Thread: `a/b: studio`\n- Agent: `default`\n- Begun: " in before.rpartition("\n---\n")[2]
    export_conversations(memory, folder, format="markdown")
    assert (folder / name).read_text(encoding="utf-8") == before
    conversation.append([AIMessage("Later.", id="m3")])
    export_conversations(memory, folder, format="markdown")
    after = (folder / name).read_text(encoding="utf-8")
    said = before.rpartition("\n---\n")[0]
    assert after.startswith(said)
    assert "[3]\n\n> Later.\n\n---\n" in after[len(said) :]


def test_markdown_has_the_summary_and_the_board_of_each_conversation(memory: SupabaseMemory, tmp_path: Path) -> None:
    summarizer = ExtractiveSummarizer()
    with SupabaseMemory(memory._services.transport, user_id=memory.user_id, model=summarizer) as other:
        for thread in ("one", "two"):
            conversation = other.conversation(thread)
            conversation.append([HumanMessage(f"My kiln {thread} is a Rohde."), AIMessage("Noted.")])
            conversation.board.revise()
        expected = other.conversation("two").board.read()
        export_conversations(other, tmp_path, format="markdown", thread_id="two")
        receipt = export_conversations(other, tmp_path / "all", format="markdown")
    (text,) = (each.read_text(encoding="utf-8") for each in tmp_path.glob("*.md"))
    assert text.startswith("# My kiln two is a Rohde.\n\n## Summary\n\n> ")
    assert expected.summary.splitlines()[-1] in text
    assert "## Board\n\n### " in text
    assert all(f"{plain_line(each.text)}" in text for each in expected.items)
    assert "kiln one" not in text
    assert (receipt.conversations, receipt.messages) == (2, 4)


async def test_short_conversations_go_and_come_many_at_a_time(caller: Caller, user_id: str, tmp_path: Path) -> None:
    """By few calls; one that is refused keeps none of the others, and is named."""
    mine = caller.as_token(token("authenticated", user_id))
    path = tmp_path / "mine.jsonl"

    def talks(fault: int | None) -> Iterator[Event]:
        for number in range(120):
            divorce = {"topic": "divorce", "by": "maya", "at": AT.isoformat()}
            quiet: list[Mapping[str, Any]] = [divorce] if number == 7 else []
            yield ThreadStart(
                f"t{number:03d}", f"conversation {number}", title=f"Talk {number}", updated_at=AT, opt_outs=quiet
            )
            for place in range(3):
                row = to_row(HumanMessage(f"{number}: {place}", id=f"m{place}"))
                beside = {"characters": -1} if (number, place) == (fault, 1) else {}
                yield SourceMessage(
                    f"conversation {number}, message {place}", row={**row, "created_at": AT.isoformat(), **beside}
                )

    importing = partial(run, caller, import_conversations, aimport_conversations)
    with pytest.raises(InvalidInputError, match="conversation 60, message 1"):
        await importing(mine, talks(60))
    skipped = await importing(mine, talks(60), skip=True)
    assert skipped.stored + skipped.known == 359
    assert [place for _, place in skipped.lost.values()] == ["conversation 60, message 1"]
    called = recorded_calls(mine)
    whole = await importing(mine, talks(None))
    assert (whole.stored, whole.known, whole.restored, whole.lost) == (1, 359, 0, {})
    assert sorted({*called}) == ["memory_import", "memory_limits"]
    assert len(called) == 4
    called.clear()
    receipt = await run(caller, export_conversations, aexport_conversations, mine, path)
    assert (receipt.conversations, receipt.messages) == (120, 360)
    assert called.count("memory_export") <= 6
    assert "memory_read" not in called
    there = caller.as_token(token("authenticated", f"{user_id}-2"))
    back = await importing(there, jsonl(path))
    assert (back.stored, back.restored) == (360, 121)
    info = await caller(there.conversation("t007").info)
    assert (info.title, info.message_count) == ("Talk 7", 3)


@pytest.mark.parametrize("kind", ["jsonl", "markdown"])
def test_an_export_follows_no_planted_link_and_takes_over_no_mode(
    conn_string: str, user_id: str, tmp_path: Path, kind: Any
) -> None:
    """Also where somebody else may write into the folder, and knows the name."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    folder = tmp_path / "out"
    folder.mkdir()
    target = folder if kind == "markdown" else folder / "mine.jsonl"
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, model=None) as memory:
        memory.conversation("studio").append([HumanMessage("My kiln shows E-47")])
        export_conversations(memory, target, format=kind)
        (name,) = (each.name for each in folder.iterdir())
        whole = (folder / name).read_bytes()
        (folder / f".{name}.part").symlink_to(victim)
        (folder / name).unlink()
        (folder / name).symlink_to(victim)
        export_conversations(memory, target, format=kind)
        assert victim.read_text() == "precious"
        assert not (folder / name).is_symlink()
        stale = folder / f".{name}.part"
        stale.unlink()
        stale.write_text("stale")
        stale.chmod(0o666)
        export_conversations(memory, target, format=kind)
    assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600
    assert (folder / name).read_bytes() == whole
    assert {each.name for each in folder.iterdir()} == {name, stale.name}
