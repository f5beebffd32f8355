"""`supabase-memory import` and `export`: every source, every option, and a user with their own token."""

from __future__ import annotations

import gzip
import json
import re
import sqlite3
import uuid
from collections.abc import Callable
from contextlib import closing
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner, Result
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver

from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.cli.application import commands
from langchain_supabase_memory.cli.transfer_options import REFUSALS
from langchain_supabase_memory.transfer import sources
from tests.services.data_api import DataApi, token
from tests.services.postgres import Cluster
from tests.services.project import PUBLISHABLE, Project
from tests.transfer.documents import CHATGPT, CLAUDE
from tools import site

ROOT = Path(__file__).parents[2]
COMMAND = import_module("langchain_supabase_memory.cli.commands.import")
Run = Callable[..., Result]


@pytest.fixture
def run(conn_string: str, user_id: str) -> Run:
    """Runs a command for the user, with the database in the environment."""

    def run(*arguments: object, **environment: str) -> Result:
        runner = CliRunner(env={"SUPABASE_DB_URL": conn_string, **environment})
        return runner.invoke(commands, [*map(str, arguments), "--user", user_id])

    return run


def said(memory: SupabaseMemory, thread_id: str) -> list[str]:
    return [each.message.text for each in memory.conversation(thread_id).read()]


def test_the_commands(conn_string: str, data_api: DataApi, user_id: str, tmp_path: Path) -> None:
    runner = CliRunner(env={"SUPABASE_DB_URL": conn_string})
    path = tmp_path / "lines.jsonl"
    message = {"role": "user", "content": "Hello", "created_at": 1740830400}
    path.write_text(json.dumps({"thread_id": "t", "messages": [message]}) + "\nno JSON\n")
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
    assert "What stands before it is stored (1 message);" in failed.output
    again = runner.invoke(commands, [*source, "--skip"])
    assert again.output.startswith("1 message of 1 conversation read: 0 stored, 1 was there already.\n")

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


def test_exports_of_chat_products(memory: SupabaseMemory, run: Run, tmp_path: Path) -> None:
    for source, document, thread, first in (
        ("chatgpt", CHATGPT, "chat-1", "My kiln shows E-47."), ("claude", CLAUDE, "claude-2", "One"),
    ):  # fmt: skip
        path = tmp_path / f"{source}.json"
        path.write_text(json.dumps(document), encoding="utf-16-le")
        assert "stored" in run("import", source, path, "--encoding", "utf-16-le", "--agent", "default").output
        assert said(memory, thread)[0] == first
    assert "no such encoding" in run("import", "claude", path, "--encoding", "nonsense").output


def test_a_summary_whose_messages_are_not_there_is_not_put_down_to_an_opt_out(run: Run, tmp_path: Path) -> None:
    lines: list[dict[str, Any]] = [
        {"kind": "conversation", "agent_id": "default", "thread_id": "t"},
        {"kind": "edits", "edits": {"summaries": [{"to": "nowhere", "content": "Tea.", "tokens": 1, "by": "maya"}]}},
    ]
    path = tmp_path / "some.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert "1 setting of people not put back" in (output := run("import", "jsonl", path).output)
    assert "their messages are not here" in output


@pytest.mark.parametrize("source", ["jsonl", "chatgpt"])
def test_a_compressed_file_is_named_as_such(run: Run, tmp_path: Path, source: str) -> None:
    path = tmp_path / "some.gz"
    path.write_bytes(gzip.compress(json.dumps(CHATGPT).encode()))
    assert "The file is compressed by gzip. Unpack it" in run("import", source, path).output


def test_each_source_is_in_every_list_of_sources() -> None:
    named = [name.replace("-", "_") for name in COMMAND.SOURCES]
    page = (ROOT / "docs" / "import-and-export.md").read_text()
    assert {*named} == {*sources.__all__}, "the command has each source"
    assert re.findall(r"^\| `sources\.(\w+)\(", page, re.MULTILINE) == named, (
        "the page has a row for each, in this order"
    )
    _, _, reference = site.API["long-term"]
    listed = [name.rpartition(".")[2] for name in reference.split() if name.startswith("transfer.sources.")]
    assert sorted(listed) == sorted(named), "the reference has each source"


@pytest.mark.parametrize("source", COMMAND.SOURCES)
def test_a_source_refuses_the_options_of_others(run: Run, tmp_path: Path, source: str) -> None:
    _, *taken = signature(getattr(sources, source.replace("-", "_"))).parameters
    assert {*taken} <= {*REFUSALS}, "each parameter of a source is an option of the command"
    for option, refusal in (REFUSALS[name] for name in REFUSALS if name not in taken):
        said = run("import", source, tmp_path / "nothing", option, "x").output
        assert f"The source {source} {refusal}." in said
        assert f"Leave {option} out." in said
    if "encoding" in taken:
        assert "is stored" not in run("import", source, tmp_path / "nothing").output, "nothing stands before it"
    else:
        assert f"The source {source} is a database." in run("import", source, "-").output


def test_tables_of_other_libraries(memory: SupabaseMemory, run: Run, cluster: Cluster, tmp_path: Path) -> None:
    from langchain_community.chat_message_histories import SQLChatMessageHistory  # a second of the processor
    from langchain_postgres import PostgresChatMessageHistory  # a second of the processor

    address, session = cluster.conn_string(cluster.migrated_database()), str(uuid.uuid4())
    with psycopg.connect(address) as connection:
        PostgresChatMessageHistory.create_tables(connection, "talk")
        history = PostgresChatMessageHistory("talk", session, sync_connection=connection)
        history.add_messages([HumanMessage("From Postgres")])
    sqlite = f"sqlite:///{tmp_path / 'chat.db'}"
    community = SQLChatMessageHistory("community", connection=sqlite, table_name="talk")
    community.add_messages([HumanMessage("From SQLite")])
    community.engine.dispose()
    for source, at, thread, text in (
        ("langchain-postgres", address, session, "From Postgres"), ("langchain-sql", sqlite, "community", "From SQLite"),
    ):  # fmt: skip
        assert "could not be read" in run("import", source, at).output  # it has no table of the usual name
        assert "1 stored" in run("import", source, at, "--table", "talk").output
        assert said(memory, thread) == [text]
    assert "There is no such file of SQLite" in run("import", "langchain-sql", tmp_path / "typo.db").output


async def test_sessions_of_the_openai_agents_sdk(memory: SupabaseMemory, run: Run, tmp_path: Path) -> None:
    from agents import SQLiteSession

    session = SQLiteSession("agents", str(tmp_path / "agents.db"), messages_table="talk")
    await session.add_items([{"role": "user", "content": "Hello"}])
    session.close()
    assert "1 stored" in run("import", "openai-agents", tmp_path / "agents.db", "--table", "talk").output
    assert said(memory, "agents") == ["Hello"]


def test_savers(memory: SupabaseMemory, run: Run, cluster: Cluster, tmp_path: Path) -> None:
    postgres = cluster.conn_string(cluster.migrated_database())
    for maker, address, name in (
        (SqliteSaver, str(tmp_path / "threads.db"), "light"), (PostgresSaver, postgres, "heavy"),
    ):  # fmt: skip
        saver: Any
        with maker.from_conn_string(address) as saver:
            saver.setup()
            for number in range(3):
                state: Any = {**empty_checkpoint(), "channel_versions": {"talk": 1}}
                state["channel_values"] = {"talk": [("user", f"Question {number}")]}
                config = {"configurable": {"thread_id": f"{name}-{number}", "checkpoint_ns": ""}}
                saver.put(config, state, {}, {"talk": 1})
        assert "3 × threads without messages" in run("import", "langgraph", address).output
        some = ["--thread", f"{name}-0", "--thread", f"{name}-2"]
        assert "2 stored" in run("import", "langgraph", address, "--channel", "talk", *some).output
        assert [said(memory, f"{name}-{number}") for number in range(3)] == [["Question 0"], [], ["Question 2"]]


def test_what_is_no_saver_is_named_and_nothing_is_made(run: Run, tmp_path: Path) -> None:
    typo = tmp_path / "typo.db"
    for address in (typo, f"sqlite:///{typo}"):
        found = run("import", "langgraph", address)
        assert (found.exit_code, "There is no such file of SQLite" in found.output) == (1, True)
    assert not typo.exists()
    away = run("import", "langgraph", "postgresql://maya:peanuts@127.0.0.1:1/x")
    assert away.exit_code == 1
    assert "Error: Postgres could not be reached" in away.output
    assert "peanuts" not in away.output
    with closing(sqlite3.connect(typo)) as raw:
        raw.execute("create table checkpoints (x int)")
        raw.commit()
    other = run("import", "langgraph", typo)
    assert (other.exit_code, "cannot be listed further" in other.output) == (1, True)


def test_a_user_takes_along_what_is_theirs_with_their_own_token(
    memory: SupabaseMemory, cluster: Cluster, database: str, user_id: str, conn_string: str, tmp_path: Path
) -> None:
    other = f"{user_id}-other"
    many = SupabaseMemory(memory._services.transport)
    for owner in (user_id, other):
        many.for_user(owner).conversation("studio").append(
            [HumanMessage(f"Of {owner}.", id="m"), AIMessage("Yes", id="n")]
        )
    with Project(cluster, database) as project:
        address = {"SUPABASE_URL": project.url, "SUPABASE_KEY": PUBLISHABLE}
        bearer = CliRunner(env={**address, "SUPABASE_MEMORY_TOKEN": project.token(user_id)})
        path = tmp_path / "mine.jsonl"
        found = bearer.invoke(commands, ["export", str(path)])
        assert "2 messages of 1 conversation exported" in found.output
        assert f"Of {user_id}." in path.read_text()
        assert other not in path.read_text()
        brought = ["import", "jsonl", str(path), "--access-token", project.token(f"{user_id}-third")]
        assert "2 stored" in bearer.invoke(commands, brought).output
        assert many.for_user(f"{user_id}-third").conversation("studio").count() == 2
        stranger = bearer.invoke(commands, ["export", "-", "--user", other])
        assert "0 messages of 0 conversations" in stranger.output

        # The token of the Supabase CLI is none of a user's, and a user that is named beside a database is no bearer.
        server = CliRunner(env={"SUPABASE_DB_URL": conn_string, "SUPABASE_ACCESS_TOKEN": "sbp_of-the-supabase-cli"})
        assert f"Of {other}." in server.invoke(commands, ["export", "-", "--user", other]).stdout
        both = CliRunner(env={"SUPABASE_DB_URL": conn_string, "SUPABASE_MEMORY_TOKEN": project.token(user_id)})
        assert f"Of {other}." in both.invoke(commands, ["export", "-", "--user", other]).stdout
