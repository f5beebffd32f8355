"""Every block of the README does what it says: Python runs, what it prints is printed, what is to be copied is valid."""

from __future__ import annotations

import asyncio
import configparser
import json
import re
import shlex
import sys
import tomllib
import types
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner

from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.cli.commands import commands
from langchain_supabase_memory.extractive import ExtractiveSummarizer
from langchain_supabase_memory.schema.migrate import migrate
from langchain_supabase_memory.worker.policy import DEFAULT_WORK
from tests.services.postgres import Cluster

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()

_FENCES = [
    (found[1], found[2], max(each.start() for each in re.finditer("^#+ ", README[: found.start()], re.MULTILINE)))
    for found in re.finditer(r"^```(\w*)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
]


def fenced(language: str) -> list[str]:
    """The blocks of a language, in their order."""
    return [text for found, text, _ in _FENCES if found == language]


def _heading(start: int) -> str:
    return re.sub(r"\W+", "-", README[start:].lstrip("# ").split("\n")[0].lower())


PYTHON = fenced("python")
FIRST, NAMES = PYTHON[:2]
FILES = [text for text in PYTHON if text.startswith("# myapp/")]
OTHERS = [
    pytest.param(text, id=f"{_heading(start)}-{place}")
    for place, (language, text, start) in enumerate(_FENCES)
    if language == "python" and text not in (FIRST, NAMES, *FILES)
]


@pytest.fixture(scope="module")
def migrated(cluster: Cluster) -> str:
    name = cluster.create_database()
    migrate(cluster.conn_string(name))
    return name


_copies = count()


@pytest.fixture
def fresh(cluster: Cluster, migrated: str) -> Iterator[str]:
    """The address of a migrated database that nobody has used."""
    name = f"readme_{next(_copies)}_{migrated}"
    cluster.execute(f"create database {name} template {migrated} owner postgres", superuser=True)
    yield cluster.conn_string(name)
    cluster.execute(f"drop database {name} with (force)", superuser=True)


class Reader:
    """Who runs blocks one after another, as they stand; the embedded database is `fresh`."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.names: dict[str, Any] = {}

    def run(self, block: str) -> None:
        """Run a block. Lines that begin with `# >` are what it prints."""
        self._capsys.readouterr()
        exec(compile(block, "README.md", "exec"), self.names)
        said = [line.removeprefix("# >").strip() for line in block.splitlines() if line.startswith("# >")]
        if said:
            assert self._capsys.readouterr().out.splitlines() == said


@pytest.fixture
def reader(fresh: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Reader]:
    """Who has run the quick start, and the block of names."""

    def embedded(path: str, **settings: Any) -> SupabaseMemory:
        return SupabaseMemory.from_conn_string(fresh, **{"model": ExtractiveSummarizer(), **settings})

    monkeypatch.setattr(SupabaseMemory, "embedded", embedded)
    reader = Reader(capsys)
    reader.run(FIRST)
    reader.run(NAMES)
    memory = reader.names["memory"]
    yield reader
    memory.close()


@pytest.mark.parametrize("block", OTHERS)
def test_a_block_runs_after_the_first_two_and_prints_what_it_says(reader: Reader, block: str) -> None:
    reader.run(block)


def test_all_blocks_run_in_order_with_the_embedded_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in PYTHON:
        if block not in FILES:
            exec(compile(block, "README.md", "exec"), names)
    assert (tmp_path / "memory").is_dir()
    assert names["memory"].user_id == "maya"
    names["memory"].close()


def test_the_lifespan_keeps_the_boards(reader: Reader) -> None:
    (block,) = (text for text in PYTHON if "async def lifespan" in text)
    reader.run(block)
    memory, lifespan = reader.names["memory"], reader.names["lifespan"]

    async def serve() -> None:
        async with lifespan(object()):  # as Starlette enters it
            for _ in range(300):
                if not (await memory.aqueue()).depth:
                    return
                await asyncio.sleep(0.1)
            pytest.fail("The worker left something undone.")

    asyncio.run(serve())
    assert memory.board(thread_id="studio").through_sequence == 1


# What is copied for production


def parsed(line: str) -> dict[str, Any]:
    """The options of a command line of ours, as the command itself parses them."""
    program, *arguments = shlex.split(line, comments=True)
    assert Path(program).name == "supabase-memory"
    place = next(place for place, argument in enumerate(arguments) if argument in commands.commands)
    name, rest = arguments[place], arguments[place + 1 :]
    with (
        commands.make_context("supabase-memory", arguments[: place + 1]) as group,
        commands.commands[name].make_context(name, rest, parent=group) as context,
    ):
        return {"command": name, **group.params, **context.params}


def unit() -> configparser.ConfigParser:
    (text,) = fenced("ini")
    found = configparser.ConfigParser(interpolation=None, delimiters=("=",), strict=True)
    found.optionxform = str  # type: ignore[assignment,method-assign]
    found.read_string(text)
    return found


def test_every_command_is_one_of_the_command_line() -> None:
    lines = [line for text in fenced("bash") for line in text.splitlines() if line.startswith("supabase-memory")]
    assert {parsed(line)["command"] for line in lines} >= {"migrate", "sql", "worker", "status", "retry"}


def test_no_command_shows_a_secret() -> None:
    for text in fenced("bash"):
        for line in text.splitlines():
            assert not re.search(r"^supabase-memory.*(--key|--database-url)", line), line


def test_the_unit_starts_workers_and_ends_them_gently() -> None:
    sections = unit()
    assert sections.sections() == ["Unit", "Service", "Install"]
    assert sections["Unit"]["StartLimitIntervalSec"] == "0"
    assert sections["Unit"]["After"] == sections["Unit"]["Wants"] == "network-online.target"
    service = sections["Service"]
    assert (service["Restart"], service["KillSignal"]) == ("always", "SIGTERM")
    assert float(service["TimeoutStopSec"]) > DEFAULT_WORK.grace_seconds + 5
    for instance in ("1", "2"):
        options = parsed(service["ExecStart"].replace("%i", instance))
        assert options["command"] == "worker"
        assert options["app"] == "myapp.memory:worker"
        assert options["metrics_port"] == 9460 + int(instance)
    helped = CliRunner().invoke(commands, ["worker", "--help"]).output + CliRunner().invoke(commands, ["--help"]).output
    for option in re.findall(r"--[a-z-]+", service["ExecStart"]):
        assert option in helped, option


def test_the_container_runs_what_the_unit_runs() -> None:
    (text,) = fenced("dockerfile")
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    (command,) = (json.loads(line.removeprefix("CMD ")) for line in lines if line.startswith("CMD "))
    (probe,) = (json.loads(line.split(" CMD ")[1]) for line in lines if line.startswith("HEALTHCHECK "))
    run = shlex.split(unit()["Service"]["ExecStart"].replace("%i", "4"))
    assert [Path(run[0]).name, *run[1:]] == command[: len(run)]
    options = parsed(shlex.join(command))
    assert options["metrics_host"] == "0.0.0.0"
    assert f":{options['metrics_port']}/healthz" in probe[-1]
    compile(probe[-1], "HEALTHCHECK", "exec")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named = re.search(r"langchain-supabase-memory\[([\w,]+)\]", text)
    assert named is not None
    assert set(named[1].split(",")) <= set(extras)
    known = {"FROM", "RUN", "WORKDIR", "COPY", "USER", "STOPSIGNAL", "HEALTHCHECK", "CMD"}
    assert {line.split()[0] for line in lines} == known


@pytest.fixture
def myapp(tmp_path: Path, fresh: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The application of the README, as files."""
    for text in FILES:
        path = tmp_path / text.splitlines()[0].removeprefix("# ")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("SUPABASE_DB_URL", fresh)
    for name in ("myapp", "myapp.memory", "myapp.api"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


def test_the_command_finds_the_application(myapp: Path, fresh: str) -> None:
    with SupabaseMemory.from_conn_string(fresh, user_id="maya") as memory:
        memory.add_turn("My kiln shows E-47", "That is the thermocouple.", thread_id="studio")
    (line,) = (line for line in fenced("bash")[-1:] for line in line.splitlines() if "--drain" in line)
    given = shlex.split(line, comments=True)[1:]
    done = CliRunner().invoke(commands, [*given, "--app", "myapp.memory:worker", "--metrics-port", "0"])
    assert done.exit_code == 0, done.output
    assert "1 done" in done.output


class RefusedError(Exception):
    """FastAPI's `HTTPException`."""

    def __init__(self, status_code: int) -> None:
        self.status_code = status_code


class FastAPI:
    """As much of it as the endpoint uses."""

    def __init__(self) -> None:
        self.routes: dict[str, Callable[..., Any]] = {}

    def post(self, path: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        def add(function: Callable[..., Any]) -> Callable[..., Any]:
            self.routes[path] = function
            return function

        return add


CRON = """
create schema cron; create schema net; create schema vault;
create table cron.job (name text, schedule text, command text);
create function cron.schedule(job_name text, schedule text, command text) returns bigint language plpgsql as $f$
begin insert into cron.job values (job_name, schedule, command); execute command; return 1; end $f$;
create function cron.unschedule(job_name text) returns boolean language sql as
  $f$ delete from cron.job where name = job_name returning true $f$;
create table net.sent (url text, headers jsonb, timeout_milliseconds integer);
create table net._http_response (id bigint, status_code integer, timed_out boolean, error_msg text, created timestamptz);
create function net.http_post(url text, body jsonb default '{}', params jsonb default '{}',
  headers jsonb default '{"Content-Type": "application/json"}', timeout_milliseconds integer default 2000)
returns bigint language sql as $f$ insert into net.sent values (url, headers, timeout_milliseconds) returning 1::bigint $f$;
create table vault.decrypted_secrets (name text, decrypted_secret text);
create function vault.create_secret(new_secret text, new_name text default null, new_description text default '')
returns uuid language sql as
  $f$ insert into vault.decrypted_secrets values (new_name, new_secret) returning gen_random_uuid() $f$;
"""
"""What Supabase's extensions have, with the same signatures: jobs run once at once, requests are only written down."""


def test_what_cron_sends_is_what_the_endpoint_takes(myapp: Path, fresh: str, monkeypatch: pytest.MonkeyPatch) -> None:
    begin, end = ([*re.findall(r"(?:\$\$.*?\$\$|--[^\n]*|[^;$])+;", text, re.DOTALL)] for text in fenced("sql"))
    with psycopg.connect(fresh, autocommit=True) as connection:
        connection.execute(CRON.encode())
        for statement in begin:
            if "create extension" in statement:
                with pytest.raises(psycopg.errors.FeatureNotSupported):  # it is well written, and not installed here
                    connection.execute(statement.encode())
                continue
            last = connection.execute(statement.encode())
        secret = last.fetchone()
        jobs = connection.execute("select name, schedule from cron.job").fetchall()
        assert jobs == [("memory", "* * * * *")]
        for statement in end:
            connection.execute(statement.encode())
        assert connection.execute("select count(*) from cron.job").fetchone() == (0,)
        sent = connection.execute("select url, headers, timeout_milliseconds from net.sent").fetchone()
    assert sent is not None
    assert secret is not None
    assert len(secret[0]) == 72
    url, headers, timeout = sent

    module = types.ModuleType("fastapi")
    module.__dict__.update(FastAPI=FastAPI, HTTPException=RefusedError, Request=object)
    monkeypatch.setitem(sys.modules, "fastapi", module)
    monkeypatch.setenv("MEMORY_DRAIN_SECRET", secret[0])
    api, made = import_module("myapp.api"), import_module("myapp.memory")
    path = "/" + url.split("/", 3)[3]
    endpoint = api.app.routes[path]
    made.memory.add_turn("My kiln shows E-47", "That is the thermocouple.", thread_id="studio", user_id="maya")
    request = types.SimpleNamespace(headers={name.lower(): value for name, value in headers.items()})
    assert asyncio.run(endpoint(request)) == {"pieces": 1}
    for wrong in ({}, {"authorization": "Bearer "}, {"authorization": "Bearer é"}):
        with pytest.raises(RefusedError) as refused:
            asyncio.run(endpoint(types.SimpleNamespace(headers=wrong)))
        assert refused.value.status_code == 401
    seconds = re.search(r"drain\(seconds=(\d+)\)", "".join(FILES))
    assert seconds is not None
    assert (float(seconds[1]) + DEFAULT_WORK.grace_seconds + 5) * 1000 < timeout
    made.memory.close()


# What is said about the code


def test_every_table_is_named() -> None:
    said = README.split("## What is stored where")[1].split("\n## ")[0]
    for file in (ROOT / "sql" / "tables").glob("*.sql"):
        for table in re.findall(r"^create table (?:if not exists )?(\w+\.\w+)", file.read_text(), re.MULTILINE):
            assert f"`{table}`" in said, table


def test_the_environment_variables_are_named() -> None:
    every = [commands, *commands.commands.values()]
    for name in {option.envvar for each in every for option in each.params if option.envvar}:
        assert f"`{name}`" in README, name


def test_every_file_that_is_linked_exists() -> None:
    for link in re.findall(r"\]\(((?!https?:)[^)#]+)[^)]*\)", README):
        assert (ROOT / link).exists(), link


def test_every_heading_that_is_linked_exists() -> None:
    headings = {
        re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
        for heading in re.findall(r"^#+ (.*)$", README, re.MULTILINE)
    }
    for link in re.findall(r"\]\(#([^)]+)\)", README):
        assert link in headings, link


def test_the_tree_of_rooms_is_the_one_that_is_checked() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    layers = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    drawn = README.split("## Architecture")[1].split("```")[1]
    for layer in layers:
        for room in layer.split(" | "):
            assert re.search(rf"\b{room.split('.')[1]}\b", drawn), room


def test_lines_are_no_longer_than_a_screen() -> None:
    for line in README.splitlines():
        assert len(line) <= 120 or line.startswith("|"), line
