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
from langchain_core.messages import HumanMessage

from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.cli.commands import commands
from langchain_supabase_memory.demo import transcript
from langchain_supabase_memory.demo.model import OfflineQuotingModel
from langchain_supabase_memory.errors import InvalidInputError
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
        code, output = run("cleanup", "--database-url", conn_string)
        assert (code, "--max-age 24" in output) == (1, True)
        code, output = run("cleanup", "--database-url", conn_string, "--max-age", "24")
        assert (code, output) == (0, "1 messages of 1 conversations removed.\n")
        assert [each.text for each in memory.read(thread_id="t", columns=["text"])] == ["new"]


def demo(folder: Path, *arguments: str) -> str:
    command = [sys.executable, "-c", "from langchain_supabase_memory.cli import main; main()", "demo"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI")}
    result = subprocess.run(
        [*command, "--path", str(folder / "postgres"), *arguments],
        capture_output=True, text=True, check=False, timeout=120, env={**environment, "COLUMNS": "200"},
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_the_demo_is_killed_goes_on_and_answers(tmp_path: Path) -> None:
    output = demo(tmp_path)
    assert "was killed (kill -9)" in output
    assert "All 692 messages are there" in output
    right = int(output.split("Right answers: ")[1].split(" of 12")[0])
    assert right >= 11
    assert "no memory: 0 of 12" in output
    with SupabaseMemory.embedded(tmp_path / "postgres", user_id="maya") as memory:
        assert memory.count(thread_id="demo") == 692 + 12 * 4  # question, tool call, tool result, answer


def test_the_demo_takes_a_transcript_of_the_users(tmp_path: Path) -> None:
    lines = [{"role": "user", "content": "My cat is called Bituin"}, {"role": "assistant", "content": "Noted."}]
    lines += [{"role": role, "content": f"chatter {n} {role}"} for n in range(40) for role in ("user", "assistant")]
    path = tmp_path / "mine.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in lines))
    output = demo(tmp_path, "--transcript", str(path), "--ask", "What is my cat called?")
    assert "All 82 messages are there" in output
    assert "Bituin" in output


@pytest.mark.parametrize("line", ["not json", '{"role": "nobody", "content": "x"}', '{"role": "user"}', "[]", ""])
def test_a_transcript_that_is_none_names_the_line(tmp_path: Path, line: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text('{"role": "user", "content": "fine"}\n' * bool(line) + line)
    with pytest.raises(InvalidInputError, match="Line 2" if line else "empty"):
        transcript.load(path)


def test_the_stand_in_can_only_quote() -> None:
    from langchain_core.messages import AIMessage

    model = OfflineQuotingModel()
    assert model.invoke([HumanMessage("Where was Rizal born?")]).text == "I can see nothing about that."
    seen = [HumanMessage("Rizal was born in Calamba"), AIMessage("I see")]
    assert model.invoke([*seen, HumanMessage("Where was Rizal born?")]).text == "“Rizal was born in Calamba”"


def test_the_bundled_questions_are_about_what_is_said_once_and_long_ago() -> None:
    said = transcript.load()
    for question in transcript.questions():
        places = [place for place, each in enumerate(said) if question.expect in str(each.message.text)]
        assert len(places) == 1
        assert places[0] < len(said) // 2
        assert said[places[0]].created_at == question.said_at
