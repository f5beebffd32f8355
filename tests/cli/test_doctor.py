"""`doctor`: a table in a terminal, lines in a pipe, JSON for a program, and the status of a check."""

from __future__ import annotations

import json
from pathlib import Path

import psycopg
import pytest

from tests.cli.running import Terminal, piped, refused, run, succeeded, surroundings
from tests.services.postgres import Cluster


@pytest.fixture
def fresh(cluster: Cluster) -> str:
    """A database that a test may break."""
    return cluster.conn_string(cluster.migrated_database())


def break_it(conn_string: str) -> None:
    with psycopg.connect(conn_string) as connection:
        connection.execute("grant select on memory.opt_outs to anon")
        connection.execute('create role "ro\u202ele"')
        connection.execute('grant select on memory.opt_outs to "ro\u202ele"')


def test_the_exit_code_is_1_if_a_finding_is_red(cluster: Cluster, fresh: str) -> None:
    code, output = run("doctor", "--database-url", fresh)
    assert (code, {line.split("\t")[0] for line in output.splitlines()}) == (0, {"green"})
    break_it(fresh)
    code, output = run("doctor", "--database-url", fresh)
    lines = {line.split("\t")[1]: line.split("\t") for line in output.splitlines()}
    assert (code, lines["access"][0], lines["schema"]) == (1, "red", ["green", "schema", lines["schema"][2], ""])
    assert "anon may select memory.opt_outs" in lines["access"][2]
    assert "supabase-memory migrate" in lines["access"][3]
    assert "\u202e" not in output
    assert "\\u202e" in output
    database = fresh.rpartition("/")[2]
    cluster.execute('drop owned by "ro\u202ele"; drop role "ro\u202ele"', database=database, superuser=True)


def test_a_program_reads_json(fresh: str) -> None:
    output = succeeded("doctor", "--database-url", fresh, "--json")
    findings = json.loads(output)
    assert {"name": "dead work", "state": "green", "text": "No work was given up.", "next_action": None} in findings
    assert all(set(each) == {"name", "state", "text", "next_action"} for each in findings)
    assert piped("doctor", "--database-url", fresh + "_none", "--json").returncode == 1


@pytest.mark.parametrize("columns", [100, 40])
def test_in_a_terminal_the_next_action_stands_below(fresh: str, columns: int) -> None:
    with psycopg.connect(fresh) as connection:
        connection.execute("alter table memory.opt_outs disable row level security")
    with Terminal("doctor", "--database-url", fresh, columns=columns) as terminal:
        assert terminal.end() == 1
        assert "18 green, 1 red." in terminal.text
        assert "\x1b[1;31mred" in terminal.raw
        assert max(map(len, terminal.lines)) <= columns
        at = next(place for place, line in enumerate(terminal.lines) if line.startswith("red"))
        assert "access" in terminal.lines[at]
        assert any("→ Run" in line for line in terminal.lines[at + 1 :])


def test_an_application_brings_its_own_memory(fresh: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from datetime import timedelta\n"
        "from langchain_supabase_memory import Retention, SupabaseMemory, Worker\n"
        f"memory = SupabaseMemory.from_conn_string({fresh!r}, retention=Retention(max_turns=5), model=None)\n"
        "worker = Worker(memory)\n"
    )
    for name in ("memory", "worker"):
        ended = piped("doctor", "--app", f"mine:{name}", cwd=tmp_path, env=surroundings())
        states = {line.split("\t")[1]: line.split("\t")[0] for line in ended.stdout.splitlines()}
        assert ended.returncode == 0, ended.stderr
        assert (ended.returncode, states["summarizer"], states["retention"]) == (0, "yellow", "yellow"), ended.stderr
    assert "cannot apply" in refused("doctor", "--app", "mine:memory", "--database-url", fresh)
