"""The command line, and the demo as a newcomer runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from rich.console import Console

from langchain_supabase_memory import ChunkPolicy, ExtractiveSummariser, SupabaseMemory
from langchain_supabase_memory.cli.commands import _models, commands
from langchain_supabase_memory.demo import seen, transcript
from langchain_supabase_memory.demo.model import OfflineQuotingModel
from langchain_supabase_memory.demo.show import show
from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.messages import fence
from langchain_supabase_memory.schema.migrate import migrate
from tests.services.postgres import Cluster


def run(*arguments: str, environment: dict[str, str] | None = None) -> tuple[int, str]:
    result = CliRunner().invoke(commands, arguments, env={"SUPABASE_DB_URL": "", **(environment or {})})
    return result.exit_code, result.output


def test_migrate_and_check_over_a_connection_string(cluster: Cluster) -> None:
    conn_string = cluster.conn_string(cluster.create_database())
    code, output = run("check", "--database-url", conn_string)
    assert code == 1
    assert "supabase-memory migrate" in output
    code, output = run("migrate", "--dimensions", "384", environment={"SUPABASE_DB_URL": conn_string})
    assert (code, "384 dimensions" in output) == (0, True)
    assert run("check", "--database-url", conn_string)[0] == 0
    code, output = run("migrate", "--database-url", conn_string)
    assert code == 1
    assert "--dimensions 384" in output
    assert "Traceback" not in output


def test_no_database_named_says_what_to_pass() -> None:
    code, output = run("migrate")
    assert code == 1
    assert "--database-url" in output
    assert "SUPABASE_DB_URL" in output


def test_sql_prints_everything_and_writes_files_once(tmp_path: Path) -> None:
    code, output = run("sql", "--dimensions", "768")
    assert code == 0
    for piece in ("create table memory.conversations", "function public.memory_append", "create policy", "(768)"):
        assert piece in output
    assert "create role" not in output  # on Supabase the roles are there
    assert "files written" in run("sql", "--output", str(tmp_path))[1]
    assert "Nothing new" in run("sql", "--output", str(tmp_path))[1]


def test_cleanup_removes_what_is_not_to_be_kept(cluster: Cluster) -> None:
    conn_string = cluster.conn_string(cluster.create_database())
    migrate(conn_string)
    with SupabaseMemory.from_conn_string(conn_string, user_id="u") as memory:
        memory.append([HumanMessage("old")], thread_id="t", created_at=datetime.now(UTC) - timedelta(hours=30))
        memory.append([HumanMessage("new")], thread_id="t")
        memory.index(thread_id="t", chunking=ChunkPolicy(max_age=timedelta(microseconds=1)))
        # Without limits only chunks that have expired go.
        code, output = run("cleanup", "--database-url", conn_string)
        assert (code, output) == (0, "0 messages of 0 conversations and 2 chunks removed.\n")
        code, output = run("cleanup", "--database-url", conn_string, "--max-age", "24")
        assert (code, output) == (0, "1 messages of 1 conversations and 0 chunks removed.\n")
        assert [each.text for each in memory.read(thread_id="t", columns=["text"])] == ["new"]


def demo(folder: Path, *arguments: str) -> str:
    command = [sys.executable, "-c", "from langchain_supabase_memory.cli import main; main()", "demo"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI")}
    result = subprocess.run(
        [*command, "--path", str(folder / "postgres"), *arguments],
        capture_output=True, text=True, check=False, timeout=500, env={**environment, "COLUMNS": "200"},
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.mark.timeout(600)
def test_the_demo_is_killed_goes_on_and_answers(tmp_path: Path) -> None:
    output = demo(tmp_path)
    assert "was killed (kill -9)" in output
    assert "All 692 messages are there" in output
    right = int(output.split("Right answers: ")[1].split(" of 12")[0])
    assert right >= 11
    assert "no memory: 0 of 12" in output
    assert "692 chunks" in output
    assert "to be recalled by words;" in " ".join(output.split())  # no key, no embedder, no network
    assert "from message 112 of 2026-10-02, one of" in output
    assert "from message 310 of 2026-10-16, found with search_conversation_history" in output
    assert "│ recalled" in output
    assert "nothing fell between" in output
    assert "nothing omitted" in output
    assert "of 692 chunks recalled" in output
    assert int(output.split("│ characters")[1].split("%")[0].split()[-1]) >= 90
    with SupabaseMemory.embedded(tmp_path / "postgres", user_id="maya") as memory:
        assert memory.count(thread_id="demo") == 692 + 11 * 2 + 4  # the last with a tool's call and its result


@pytest.mark.timeout(600)
def test_the_demo_takes_a_transcript_of_the_users(tmp_path: Path) -> None:
    lines = [{"role": "user", "content": "My cat is called Bituin"}, {"role": "assistant", "content": "Noted."}]
    lines += [{"role": role, "content": f"chatter {n} {role}"} for n in range(40) for role in ("user", "assistant")]
    path = tmp_path / "mine.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in lines))
    output = demo(tmp_path, "--transcript", str(path), "--ask", "What is my cat called?")
    assert "All 82 messages are there" in output
    assert "“My cat is called Bituin”" in output
    assert "What 1 question took" in output


@pytest.mark.timeout(600)
def test_the_demo_finds_by_meaning_where_there_is_an_embedder(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    lines = [{"role": "user", "content": f"My cat is called [bold]Bituin[/bold] {n}"} for n in range(3)]
    path.write_text("\n".join(json.dumps(line) for line in lines))
    console, embedder = Console(record=True, width=200), DeterministicFakeEmbedding(size=1536)
    folder, asked = tmp_path / "postgres", ["Who is called [Bituin]?", "Who else?"]
    show(
        console, folder, OfflineQuotingModel(), ExtractiveSummariser(), path=path, questions=asked, embeddings=embedder
    )
    output = console.export_text()
    assert "recalled by words, and by meaning with DeterministicFakeEmbedding" in output
    assert "Who is called [Bituin]?" in output
    assert "“My cat is called [bold]Bituin[/bold] 0”" in output
    with SupabaseMemory.embedded(folder, user_id="maya", embeddings=embedder) as memory:
        [best, *_] = memory.recall("cat", thread_id="demo").chunks
        assert best.similarity is not None


def test_a_key_brings_the_real_models_and_no_key_the_stand_ins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    chat, _, embedder = _models("gpt-5.5")
    assert (type(chat), embedder) == (OfflineQuotingModel, None)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    chat, _, embedder = _models("gpt-5.5")
    assert type(chat).__name__ == "ChatOpenAI"
    assert getattr(embedder, "model", None) == "text-embedding-3-small"


@pytest.mark.parametrize("line", ["not json", '{"role": "nobody", "content": "x"}', '{"role": "user"}', "[]", ""])
def test_a_transcript_that_is_none_names_the_line(tmp_path: Path, line: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text('{"role": "user", "content": "fine"}\n' * bool(line) + line)
    with pytest.raises(InvalidInputError, match="Line 2" if line else "empty"):
        transcript.load(path)


def test_the_stand_in_can_only_quote() -> None:
    model = OfflineQuotingModel()
    assert model.invoke([HumanMessage("Where was Rizal born?")]).text == "I can see nothing about that."
    said = [HumanMessage("Rizal was born in Calamba"), AIMessage("I see")]
    assert model.invoke([*said, HumanMessage("Where was Rizal born?")]).text == "“Rizal was born in Calamba”"
    hinted = SystemMessage("Rizal was born in Calamba")  # it is not told by its developer either
    assert model.invoke([hinted, HumanMessage("Where was Rizal born?")]).text == "I can see nothing about that."
    asked = [HumanMessage("Was Rizal born in Cebu? I forgot"), HumanMessage("Where was Rizal born?")]
    assert model.invoke(asked).text == "I can see nothing about that."


def test_the_stand_in_asks_its_tool_only_where_nothing_was_recalled() -> None:
    @tool
    def look(query: str) -> str:
        """Look."""
        return query

    model = OfflineQuotingModel().bind_tools([look])
    question = HumanMessage("Where was Rizal born?")
    [call] = model.invoke([HumanMessage("Hello"), question]).tool_calls
    assert (call["name"], call["args"]) == ("look", {"query": "Where was Rizal born?"})
    recalled = fence.message(fence.fenced([fence.element("recalled", "2026-10-02:\nUser [3]: Rizal was born")]), "m")
    assert model.invoke([recalled, question]).text == "“Rizal was born”"


def test_where_a_line_of_a_prompt_is_from() -> None:
    recalled = (
        "2026-10-02:\nUser [12]: a <b> & c\n  and on\nMang Tonyo [14]: 1,800\n2026-10-03:\nAssistant [20]: [x]: y"
    )
    prompt = [
        SystemMessage("You are kind"),
        fence.message(fence.fenced([fence.element("summary", "Maya has a kiln", messages="0-9")]), "one"),
        HumanMessage("Hello\nthere [5]: no"),
        fence.message(fence.fenced([fence.element("recalled", recalled)]), "two"),
        ToolMessage(
            fence.fenced([fence.element("passage", "It is\n7391", messages="30-31", by="user", at="2026-10-15 00:00")]),
            tool_call_id="c",
        ),
    ]
    assert [(line.text, line.part, line.message, line.day) for line in seen.lines(prompt)] == [
        ("Maya has a kiln", "summary", None, None),
        ("Hello", "recent", None, None),
        ("there [5]: no", "recent", None, None),
        ("a <b> & c", "recalled", 12, "2026-10-02"),
        ("and on", "recalled", 12, "2026-10-02"),
        ("1,800", "recalled", 14, "2026-10-02"),
        ("[x]: y", "recalled", 20, "2026-10-03"),
        ("It is", "passage", 30, "2026-10-15"),
        ("7391", "passage", 30, "2026-10-15"),
    ]


def test_the_bundled_questions_are_about_what_is_said_once_and_long_ago() -> None:
    said = transcript.load()
    for question in transcript.questions():
        places = [place for place, each in enumerate(said) if question.expect in str(each.message.text)]
        assert len(places) == 1
        assert places[0] < len(said) // 2
        assert said[places[0]].created_at == question.said_at


def test_a_worker_does_what_is_due_and_says_so(conn_string: str, user_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    door, mine = ("--database-url", conn_string), ("--user", user_id)
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory:
        for number in range(6):
            memory.add_turn(f"Flight {number} is on May {number + 1}.", "Noted.", thread_id="canary-31 [bold]trip")
        assert "due" in run("status", *door, *mine)[1]
        code, output = run("worker", *door, "--drain", "--metrics-port", "0", "--archive-after", "1000")
        assert code == 0
        assert "boards" in output
        (row,) = memory.status(thread_id="canary-31 [bold]trip")
        assert (row.state, row.indexed_through, row.board_through) == ("idle", 11, 11)
        assert memory.board(thread_id="canary-31 [bold]trip").model == "extractive"
    code, output = run("status", *door, *mine, environment={"COLUMNS": "200"})
    assert code == 0
    assert "canary-31" in output
    code, output = run("status", *door, *mine, "--json")
    (found,) = json.loads(output)["conversations"]
    assert found["board_through"] == 11
    assert run("status", *door, *mine, "--state", "dead")[1].count(user_id) == 0
    assert "0 conversations are due again" in run("retry", *door, *mine)[1]


def test_a_worker_of_an_application(
    conn_string: str, user_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_memory.py").write_text(
        "from langchain_supabase_memory import ExtractiveSummariser, SupabaseMemory, Worker\n"
        f"memory = SupabaseMemory.from_conn_string({conn_string!r}, model=ExtractiveSummariser())\n"
        "def made(): return Worker(memory)\n"
        "nothing = 5\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory:
        memory.add_turn("I am Maya.", "Hello Maya.", thread_id="t")
        memory.request_summary(thread_id="t")
        assert run("worker", "--app", "my_memory:made", "--drain")[0] == 0
        assert memory.board(thread_id="t").through_sequence == 1
        memory.add_turn("I am from Cebu.", "Noted.", thread_id="t")
        assert run("worker", "--app", "my_memory:memory", "--drain")[0] == 0
        assert memory.status(thread_id="t")[0].indexed_through == 3
    for name, said in (("my_memory:nothing", "gives a int"), ("my_memory:none", "not found"), ("nowhere", "not found")):
        code, output = run("worker", "--app", name, "--drain")
        assert (code, said in output, "Traceback" in output) == (1, True, False), output


def test_a_worker_without_a_database_or_a_schema_says_what_to_do(cluster: Cluster) -> None:
    code, output = run("worker", "--drain", environment={"SUPABASE_URL": "", "SUPABASE_KEY": ""})
    assert (code, "--database-url" in output) == (1, True)
    code, output = run("worker", "--database-url", cluster.conn_string(cluster.create_database()), "--drain")
    assert (code, "supabase-memory migrate" in output, "Traceback" in output) == (1, True, False)
