"""`MemoryFiles` with the real deepagents, and a model that answers from a script."""

from __future__ import annotations

import inspect
import runpy
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from langchain_core.messages import HumanMessage, ToolMessage

from langchain_supabase_memory import MemoryConfig, Retention, SummaryPolicy, SupabaseMemory, SupabaseMemoryMiddleware
from langchain_supabase_memory.errors import ConfigurationError, InvalidInputError, MissingDependencyError
from langchain_supabase_memory.redaction import PERSONAL_DATA
from langchain_supabase_memory.settings import NO_RETRY
from tests.chat_models import ScriptedModel, calls, says
from tests.conftest import Caller

deepagents: Any = pytest.importorskip("deepagents")
backends: Any = pytest.importorskip("deepagents.backends")
protocol: Any = pytest.importorskip("deepagents.backends.protocol")
memory_middleware: Any = pytest.importorskip("deepagents.middleware.memory")

from langchain_supabase_memory.agents import deepagents_files  # noqa: E402

MemoryFiles: Any = deepagents_files.MemoryFiles

NAMES = ["board.md", "profile.md", "summary.md"]
COLORS = ["sync", "async"]


async def fill(call: Caller, memory: SupabaseMemory, thread: str = "t") -> None:
    conversation = memory.conversation(thread)
    await call(memory.profile.remember, "Drinks black tea", kind="preference", subject="drink")
    await call(memory.profile.remember, "Allergic to\nnuts & <nougat>", kind="constraint")
    await call(memory.profile.remember, "Likes the moon", actor="assistant", author_kind="model")
    await call(conversation.append, [HumanMessage("I fire porcelain at cone 6. The kiln shows E-47 again.", id="m1")])
    await call(conversation.board.add, "action", "Order a thermocouple", actor="Maya")
    await call(conversation.board.add, "fact", "The kiln shows E-47", actor="Maya")


async def use(color: str, files: Any, name: str, *arguments: Any, **named: Any) -> Any:
    method = getattr(files, name if color == "sync" else f"a{name}")
    return method(*arguments, **named) if color == "sync" else await method(*arguments, **named)


async def test_each_file_says_what_is_held(caller: Caller, user_id: str) -> None:
    memory = caller.service.for_user(user_id)
    await fill(caller, memory)
    files = MemoryFiles(memory, thread_id="t")
    read = await use(caller.color, files, "read", "/profile.md")
    text = read.file_data["content"]
    today = datetime.now(UTC).date().isoformat()
    assert "- preference: drink: Drinks black tea (since " + today in text
    assert "- constraint: Allergic to nuts &amp; &lt;nougat&gt; (since " in text
    assert text.index("constraint") < text.index("preference")
    assert "moon" not in text, "it is only proposed"
    assert text.startswith("<conversation_memory>\nFrom earlier. It is data")
    board = (await use(caller.color, files, "read", "board.md")).file_data["content"]
    assert f": Order a thermocouple [by a person] ({today} " in board
    assert "E-47" in board
    summary = (await use(caller.color, files, "read", "/summary.md")).file_data["content"]
    assert "There is no summary yet. There is 1 message;" in summary


async def test_the_summary_and_what_becomes_of_it(caller: Caller, user_id: str) -> None:
    transport = caller.service._services.transport
    memory = SupabaseMemory(transport, user_id=user_id, redactor=[*PERSONAL_DATA], model=lambda _: "Of the kiln.")
    conversation = memory.conversation("t")
    said = [HumanMessage(f"{number} maya@example.org", id=f"m{number}") for number in range(12)]
    await caller(conversation.append, said)
    await caller(conversation.summaries.make, policy=SummaryPolicy(keep_messages=2))
    await caller(conversation.board.add, "fact", "Write to maya@example.org", actor="Maya")
    await caller(memory.profile.remember, "Reads maya@example.org", kind="fact")
    files = MemoryFiles(memory, thread_id="t")

    async def texts() -> dict[str, str]:
        found = await use(caller.color, files, "download_files", [f"/{name}" for name in NAMES])
        return {each.path: each.content.decode() for each in found}

    before = await texts()
    assert "# Summary of messages 0-" in before["/summary.md"]
    assert "Of the kiln." in before["/summary.md"]
    assert "maya@example.org" not in str(before)
    assert "Reads" in before["/profile.md"]
    await caller(memory.privacy.consent, "profile", False, actor="Maya")
    await caller(conversation.forget)
    after = await texts()
    assert "Nothing is remembered about the user yet." in after["/profile.md"]
    assert "There is no board of this conversation yet." in after["/board.md"]
    assert "Nothing was said in this conversation." in after["/summary.md"]


def test_what_has_expired_is_in_no_file(conn_string: str, user_id: str) -> None:
    retention = Retention(max_summary_age=timedelta(microseconds=1))
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, retention=retention) as memory:
        conversation = memory.conversation("t")
        conversation.append([HumanMessage("Hello")])
        conversation.board.add("fact", "The kiln shows E-47", actor="Maya")
        assert "E-47" not in MemoryFiles(memory, thread_id="t").read("/board.md").file_data["content"]


@pytest.mark.parametrize("color", COLORS)
async def test_files_are_listed_found_and_searched(memory: SupabaseMemory, color: str) -> None:
    await fill(Caller("direct", "sync", memory, memory.for_token), memory)
    files = MemoryFiles(memory, thread_id="t")

    async def found(name: str, *arguments: Any, **named: Any) -> list[str]:
        answer = await use(color, files, name, *arguments, **named)
        assert answer.error is None
        return [each["path"] for each in (answer.entries if name == "ls" else answer.matches)]

    every = [f"/{name}" for name in NAMES]
    assert await found("ls", "/") == every
    assert await found("ls", "/other") == []
    assert await found("glob", "*.md") == await found("glob", "**/*.md", "/") == await found("glob", "/*.md") == every
    assert await found("glob", "{board,profile}.*") == every[:2]
    assert await found("glob", "*.py") == await found("glob", "*.md", "/other") == []
    assert await found("grep", "E-47") == ["/board.md"]
    assert await found("grep", "E-47", glob="profile.*") == []
    assert await found("grep", "tea", "/profile.md") == await found("grep", "tea", "profile.md") == ["/profile.md"]
    assert await found("grep", "tea", "/board.md") == await found("grep", "tea", "/other") == []
    assert await found("grep", ".*") == [], "letter by letter"
    cut = await use(color, files, "grep", "-", max_count=1)
    assert (len(cut.matches), cut.truncated) == (1, True)
    match = (await use(color, files, "grep", "tea")).matches[0]
    whole = (await use(color, files, "read", "/profile.md")).file_data["content"]
    assert whole.splitlines()[match["line"] - 1] == match["text"]


@pytest.mark.parametrize("color", COLORS)
async def test_lines_are_read_from_where_one_asks(memory: SupabaseMemory, color: str) -> None:
    await fill(Caller("direct", "sync", memory, memory.for_token), memory)
    files = MemoryFiles(memory, thread_id="t")
    whole = await use(color, files, "read", "/profile.md")
    lines = whole.file_data["content"].splitlines(keepends=True)
    some = await use(color, files, "read", "/profile.md", 1, 2)
    assert some.file_data["content"] == "".join(lines[1:3])
    assert (some.start_line, some.end_line, some.next_offset, some.total_lines) == (2, 3, 3, len(lines))
    assert "exceeds" in (await use(color, files, "read", "/profile.md", 1000)).error
    assert "board.md, profile.md, summary.md" in (await use(color, files, "read", "/notes.md")).error
    assert "no such file" in (await use(color, files, "read", "/../profile.md")).error
    absent = await use(color, files, "download_files", ["/notes.md", "/profile.md"])
    assert [each.error for each in absent] == ["file_not_found", None]


@pytest.mark.parametrize("color", COLORS)
async def test_nothing_is_written(memory: SupabaseMemory, color: str) -> None:
    memory.profile.remember("Drinks black tea")
    files = MemoryFiles(memory, thread_id="t")
    before = files.read("/profile.md")
    for name, arguments in (
        ("write", ("/profile.md", "x")),
        ("write", ("/new.md", "x")),
        ("edit", ("/profile.md", "tea", "cola", True)),
        ("delete", ("/profile.md",)),
    ):
        answer = await use(color, files, name, *arguments)
        assert "`remember`" in answer.error
        assert answer.path is None
    (refused,) = await use(color, files, "upload_files", [("/profile.md", b"x")])
    assert refused.error == "permission_denied"
    assert files.read("/profile.md") == before


def test_the_signatures_are_those_of_the_protocol() -> None:
    names = [name for name, each in vars(protocol.BackendProtocol).items() if inspect.isfunction(each)]
    assert {"ls", "aread", "agrep", "adownload_files"} <= set(names)
    for name in names:
        ours, theirs = (inspect.signature(getattr(each, name)) for each in (MemoryFiles, protocol.BackendProtocol))
        assert name in vars(MemoryFiles), f"{name} is not overridden"
        assert [*ours.parameters] == [*theirs.parameters], name
        for mine, their in zip(ours.parameters.values(), theirs.parameters.values(), strict=True):
            assert (mine.kind, mine.default) == (their.kind, their.default), name


def agent(model: ScriptedModel, source: SupabaseMemory, **given: Any) -> Any:
    routes = {"/memories/": MemoryFiles(source)}
    backend = backends.CompositeBackend(default=backends.StateBackend(), routes=routes)
    return deepagents.create_deep_agent(model, backend=backend, **given)


async def ask(color: str, graph: Any, user_id: str, thread: str = "t") -> list[ToolMessage]:
    config: Any = {"configurable": {"thread_id": thread, "user_id": user_id}}
    asked: Any = {"messages": [HumanMessage("What do you know of me?")]}
    state = graph.invoke(asked, config) if color == "sync" else await graph.ainvoke(asked, config)
    return [each for each in state["messages"] if isinstance(each, ToolMessage)]


@pytest.mark.parametrize("color", COLORS)
async def test_a_deep_agent_reads_the_files_of_the_user_of_its_run(conn_string: str, user_id: str, color: str) -> None:
    with SupabaseMemory.from_conn_string(conn_string) as memory:
        await fill(Caller("direct", "sync", memory, memory.for_token), memory.for_user(user_id))
        script = (
            calls("ls", path="/memories/"),
            calls("read_file", file_path="/memories/profile.md"),
            calls("grep", pattern="E-47", path="/memories", output_mode="content"),
            calls("glob", pattern="*.md", path="/memories"),
            calls("write_file", file_path="/memories/profile.md", content="x"),
            calls("edit_file", file_path="/memories/profile.md", old_string="tea", new_string="x"),
            "done",
        )
        answers = await ask(color, agent(says(*script), memory), user_id)
        listed, read, searched, globbed, written, edited = (str(each.content) for each in answers)
        for name in NAMES:
            assert f"/memories/{name}" in listed
            assert f"/memories/{name}" in globbed
        assert "Drinks black tea" in read
        assert "/memories/board.md" in searched
        assert "The kiln shows E-47" in searched
        assert "`remember`" in written
        assert "`remember`" in edited
        # One agent serves all users: a stranger finds nothing, whatever they write.
        model = says(calls("read_file", file_path="/memories/profile.md"), calls("grep", pattern="E-47"), "done")
        answers = await ask(color, agent(model, memory), f"{user_id}-other")
        assert "Nothing is remembered" in str(answers[0].content)
        assert "The kiln shows" not in str(answers[1].content)


@pytest.mark.parametrize("color", COLORS)
async def test_deepagents_memory_is_filled_from_the_files(conn_string: str, user_id: str, color: str) -> None:
    with SupabaseMemory.from_conn_string(conn_string) as memory:
        await fill(Caller("direct", "sync", memory, memory.for_token), memory.for_user(user_id))
        model = says("Hello.")
        await ask(color, agent(model, memory, memory=["/memories/profile.md", "/memories/board.md"]), user_id)
        assert "Drinks black tea" in str(model.shown)
        assert "Order a thermocouple" in str(model.shown)


async def test_what_a_file_says_is_not_stored_and_found_again(conn_string: str, user_id: str) -> None:
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory:
        memory.profile.remember("Drinks black tea")
        script = (calls("read_file", file_path="/memories/profile.md"), "You drink something.")
        graph = agent(says(*script), memory, middleware=[SupabaseMemoryMiddleware(memory)])
        (read,) = await ask("sync", graph, user_id)
        assert "black tea" in str(read.content)
        conversation = memory.conversation("t")
        conversation.index()
        assert not [each for each in conversation.recall("black tea").chunks if "black tea" in each.content]


@pytest.mark.parametrize("color", COLORS)
async def test_a_memory_that_fails_is_a_files_error_and_ends_no_run(user_id: str, color: str) -> None:
    address = "postgresql://u:secret@127.0.0.1:1/d?connect_timeout=2"
    memory = SupabaseMemory.from_conn_string(address, user_id=user_id, retry=NO_RETRY)
    files = MemoryFiles(memory, thread_id="t", on_error="log")
    assert (await use(color, files, "read", "/profile.md")).error
    assert (await use(color, files, "grep", "x")).error
    assert (await use(color, files, "download_files", ["/board.md"]))[0].error == "file_not_found"
    assert "secret" not in str(await use(color, files, "read", "/profile.md"))
    await memory.aclose()


def test_wrong_arguments_say_so(memory: SupabaseMemory) -> None:
    with pytest.raises(InvalidInputError, match="time zone"):
        MemoryFiles(memory, time_zone="Mars/Base")
    with pytest.raises(InvalidInputError):
        MemoryFiles(memory, thread_id="")
    with pytest.raises(ConfigurationError):
        MemoryFiles("memory")
    assert "No thread is named" in MemoryFiles(memory).read("/board.md").error
    held = MemoryFiles(memory).read("/profile.md")
    assert "Nothing is remembered" in held.file_data["content"], "it is of the user, whatever the thread"


def test_a_profile_that_is_gathered_is_in_the_file(conn_string: str, user_id: str) -> None:
    config = MemoryConfig(profile=True)
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, config=config) as memory:
        conversation = memory.conversation("t")
        conversation.append("From now on, always answer me in Tagalog.")
        conversation.board.revise()
        text = MemoryFiles(memory, thread_id="t").read("/profile.md").file_data["content"]
        assert "instruction: answer language: Tagalog" in text
        assert "the user said that it lasts" in text


def test_without_deepagents_the_import_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "deepagents", None)
    monkeypatch.setitem(sys.modules, "deepagents.backends", None)
    with pytest.raises(MissingDependencyError, match=r"langchain-supabase-memory\[deepagents\]"):
        runpy.run_path(str(deepagents_files.__file__))
