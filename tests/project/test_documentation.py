"""The README and the pages in `docs/` are correct: Python runs and prints its stated output, and files are valid."""

from __future__ import annotations

import ast
import asyncio
import configparser
import importlib.abc
import importlib.machinery
import importlib.util
import json
import re
import shlex
import subprocess
import sys
import tomllib
import types
from collections.abc import Callable, Iterator
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner
from langchain_core.messages import HumanMessage

import langchain_supabase_memory
from langchain_supabase_memory import SupabaseMemory, errors
from langchain_supabase_memory.adapters.schema.migrate import migrate
from langchain_supabase_memory.cli.application import commands
from langchain_supabase_memory.errors import ConfigurationError
from langchain_supabase_memory.worker.policy import DEFAULT_WORK
from tests.each_case import each_case
from tests.services.emptied import EmptiedDatabase
from tests.services.postgres import Cluster
from tests.services.sessions import Sessions
from tools import first_agent, notebook_pages, pages, site

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
README = ROOT / "README.md"
LONGEST_PAGE = 200
"""In lines."""
WIDEST_BLOCK = 80
"""In columns: a page of the site shows no more without scrolling."""
README_LINES, README_WORDS = 120, 700
"""More is not read."""

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_FRONT_MATTER = re.compile(r"\A---\n.*?^---\n+", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Page:
    """A page of Markdown: the README, or one under `docs/`."""

    path: Path
    text: str

    @property
    def name(self) -> str:
        return self.path.relative_to(ROOT).as_posix()

    @property
    def body(self) -> str:
        """All but the front matter."""
        return _FRONT_MATTER.sub("", self.text)

    @property
    def prose(self) -> str:
        """All but the blocks."""
        return _FENCE.sub("", self.body)

    @property
    def headings(self) -> list[str]:
        return re.findall(r"^#+ (.*)$", self.prose, re.MULTILINE)

    @property
    def links(self) -> list[str]:
        """What it links to in this repository: a path, an anchor, or both."""
        return re.findall(r"\]\(((?!https?:)[^)]+)\)", self.prose)

    @property
    def python(self) -> list[str]:
        """The blocks that are run from top to bottom; the first makes the memory. Files of an application are not."""
        return [text for text in self.fenced("python") if not text.startswith("# myapp/")]

    def fenced(self, language: str) -> list[str]:
        """The blocks of a language, in their order."""
        return [text for found, text in _FENCE.findall(self.text) if found == language]


def _page(path: Path) -> Page:
    return Page(path, path.read_text())


AT_THE_ROOT = [README, *(ROOT / name for name in ("AGENTS.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"))]
IN_DOCS = [path for path in sorted(DOCS.rglob("*.md")) if not path.is_relative_to(site.NOTEBOOKS)]
PAGES = {page.name: page for page in map(_page, [*AT_THE_ROOT, *IN_DOCS])}
RUN = [page for page in PAGES.values() if page.python]
SPACES = "docs/spaces.md"
"""The page that needs spaces to be switched on first, as it says."""


def _name(page: Page) -> str:
    return page.name


def fenced(language: str) -> list[str]:
    """The blocks of a language on all pages, in their order."""
    return [text for page in PAGES.values() for text in page.fenced(language)]


FILES = [text for text in fenced("python") if text.startswith("# myapp/")]
each_page = each_case("page", PAGES.values(), ids=PAGES)

BESIDE = [ROOT / "CHANGELOG.md", ROOT / "sql" / "README.md", *sorted((ROOT / "examples").rglob("README.md"))]
LINKING = {page.name: page for page in [*PAGES.values(), *map(_page, BESIDE)]}
"""The pages, and what is read beside them."""
each_that_links = each_case("page", LINKING.values(), ids=LINKING)


class Reader:
    """Who runs blocks one after another, as they stand."""

    def __init__(self, capsys: pytest.CaptureFixture[str], address: str = "") -> None:
        self._capsys = capsys
        self.address = address
        self.names: dict[str, Any] = {}

    def run(self, block: str) -> None:
        """Run a block. Lines that begin with `# >` are what it prints."""
        self._capsys.readouterr()
        exec(compile(block, "a block", "exec"), self.names)
        said = [line.removeprefix("# >").strip() for line in block.splitlines() if line.startswith("# >")]
        if said:
            assert self._capsys.readouterr().out.splitlines() == said

    def close(self) -> None:
        for each in self.names.values():
            if isinstance(each, SupabaseMemory):
                each.close()


@pytest.fixture
def reader(
    fresh: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Reader]:
    """A newcomer to any page, in an empty folder, whose embedded database is `fresh`, or what is set as its address."""
    monkeypatch.chdir(tmp_path)

    def embedded(path: str, **settings: Any) -> SupabaseMemory:
        return SupabaseMemory.from_conn_string(newcomer.address, **settings)

    monkeypatch.setattr(SupabaseMemory, "embedded", embedded)
    monkeypatch.setenv("OPENAI_API_KEY", "none: nothing is asked")
    newcomer = Reader(capsys, fresh)
    yield newcomer
    newcomer.close()


@pytest.fixture(scope="module")
def with_spaces(cluster: Cluster, kept_sessions: Sessions) -> Iterator[EmptiedDatabase]:
    """A database in which spaces are switched on."""
    with closing(EmptiedDatabase(cluster, kept_sessions, spaces=True)) as database:
        yield database


def _runs(page: Page) -> list[list[str]]:
    """Each block after the first of its page; of a page with one block, that."""
    first, *others = page.python
    return [[first, block] for block in others] or [[first]]


@pytest.mark.parametrize(
    ("page", "blocks"),
    [
        pytest.param(page, blocks, id=f"{page.name}-{place}")
        for page in RUN
        for place, blocks in enumerate(_runs(page), 1)
    ],
)
def test_a_block_needs_no_other_than_the_first_of_its_page(
    reader: Reader, cluster: Cluster, with_spaces: EmptiedDatabase, page: Page, blocks: list[str]
) -> None:
    if page.name == SPACES:
        reader.address = cluster.conn_string(with_spaces.name())
    for block in blocks:
        reader.run(block)


@pytest.mark.postgres
@pytest.mark.slow
def test_all_pages_run_from_top_to_bottom_in_one_folder_with_the_embedded_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "none: nothing is asked")
    for page in RUN:
        if page.name == SPACES:
            switched = CliRunner().invoke(commands, ["migrate", "--embedded", "memory", "--spaces"])
            assert switched.exit_code == 0, switched.output
        with closing(Reader(capsys)) as reader:
            for block in page.python:
                reader.run(block)
            memory = reader.names.get("memory")
            if memory is None:
                assert page.name == "docs/store-conformance.md", "every other page is about a memory"
                continue
            # The topics of noor are those of their page alone; maya has talked on all the others.
            assert memory.user_id == ("noor" if page.name == "docs/topics.md" else "maya")
            # What a page prints of the profile is what that page put there; some pages end with an address of nobody.
            with suppress(ConfigurationError):
                for item in memory.profile.read():
                    memory.profile.delete(item)
    assert (tmp_path / "memory").is_dir()


@pytest.mark.postgres
@pytest.mark.slow
def test_the_first_agent_prints_what_its_page_says(tmp_path: Path) -> None:
    page = PAGES["docs/first-agent.md"]
    for text in page.python:
        (tmp_path / text.splitlines()[0].removeprefix("# ")).write_text(text)
    said = []
    for line in re.findall(r"^python (\w+\.py.*)$", page.text, re.MULTILINE):
        command = [sys.executable, *shlex.split(line)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        said += done.stdout.splitlines()
    assert said == first_agent.answers(page.text)
    assert "“My kiln shows E-47”" in said
    told = [line for text in page.python for line in text.splitlines() if line.startswith("# >")]
    assert not told, "what a block prints stands below the command that runs it"


def test_the_tutorial_is_a_script_up_to_its_last_answer() -> None:
    script = first_agent.script(PAGES["docs/first-agent.md"].text)
    assert script.index("pip install") < script.index("cat > agent.py") < script.rindex("python agent.py")
    assert script.index("cat > look.py") < script.index("python look.py")
    assert "openai" not in script
    assert not subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True, check=True).stderr


def test_the_lifespan_keeps_the_boards(reader: Reader) -> None:
    for block in PAGES["docs/worker.md"].python:
        reader.run(block)
    memory, lifespan = reader.names["memory"], reader.names["lifespan"]

    async def serve() -> None:
        async with lifespan(object()):  # as Starlette enters it
            for _ in range(300):
                if not (await memory.work.aqueue()).depth:
                    return
                await asyncio.sleep(0.1)
            pytest.fail("The worker left something undone.")

    asyncio.run(serve())
    assert memory.conversation("studio").board.read().through_sequence == 1


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
    found.read_string(re.sub(r"\\\n\s*", "", text))
    return found


def _commands() -> list[str]:
    """Each command of ours in a block for a shell, also within `$(…)` and before a pipe."""
    blocks = [text for page in LINKING.values() for shell in ("bash", "fish") for text in page.fenced(shell)]
    lines = [line for text in blocks for line in text.replace("\\\n", " ").splitlines()]
    return [found for line in lines for found in re.findall(r"(?:^|\$\()(supabase-memory [^|)]+)", line)]


@each_that_links
def test_what_is_for_a_shell_is_valid(page: Page) -> None:
    for text in page.fenced("bash"):
        done = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True, check=False)
        assert not done.stderr, text


def test_python_beside_the_pages_is_valid() -> None:
    blocks = [text for page in LINKING.values() for text in page.fenced("python") if page.name not in PAGES]
    assert blocks
    for text in blocks:
        compile(text, "a block", "exec")


def test_every_command_is_one_of_the_command_line() -> None:
    lines = _commands()
    assert {parsed(line)["command"] for line in lines} >= {"migrate", "sql", "worker", "status", "retry"}


@each_page
def test_every_command_in_a_sentence_is_one_of_the_command_line(page: Page) -> None:
    for line in re.findall(r"`(supabase-memory [a-z][^`]*)`", page.prose):
        assert parsed(line)["command"]


def test_no_command_shows_a_secret() -> None:
    for line in _commands():
        assert not re.search(r"--key|--database-url", line), line


def test_a_script_finds_in_the_status_what_it_looks_for(fresh: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUPABASE_DB_URL", fresh)
    with SupabaseMemory.from_conn_string(fresh, user_id="maya") as memory:
        memory.conversation("studio").add_turn("My kiln shows E-47", "That is the thermocouple.")
    (script,) = (text for text in PAGES["docs/shell.md"].fenced("bash") if "jq" in text)
    ((listed, path),) = re.findall(r"jq -r '\.(\w+)\[\]\.([\w.]+)'", script)
    (found,) = json.loads(CliRunner().invoke(commands, ["status", "--json"]).stdout)[listed]
    for name in path.split("."):
        found = found[name]
    assert found == "studio"
    (fields,) = re.findall(r"cut -f ([\d,]+)", script)
    *_, line = CliRunner().invoke(commands, ["status"]).stdout.splitlines()
    assert [line.split("\t")[int(field) - 1] for field in fields.split(",")] == ["studio", "due", ""]


@pytest.mark.data_api  # node comes with it
@pytest.mark.parametrize(
    "page", [page for page in LINKING.values() if page.fenced("js") or page.fenced("ts")], ids=_name
)
def test_what_is_for_a_browser_is_valid(page: Page, tmp_path: Path) -> None:
    for text in [*page.fenced("js"), *page.fenced("ts")]:
        (tmp_path / "block.mjs").write_text(text)
        subprocess.run(["node", "--check", str(tmp_path / "block.mjs")], check=True)


def test_a_replica_is_asked_for_its_lag(fresh: str) -> None:
    (text,) = PAGES["docs/replicas.md"].fenced("sql")
    with psycopg.connect(fresh) as connection:
        assert connection.execute(text.encode()).fetchone() == (None,), "a primary replays nothing"


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
    """The application of these pages, as files."""
    for text in FILES:
        path = tmp_path / text.splitlines()[0].removeprefix("# ")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("SUPABASE_DB_URL", fresh)
    for name in [name for name in sys.modules if name.split(".")[0] == "myapp"]:
        monkeypatch.delitem(sys.modules, name)
    return tmp_path


def test_the_command_finds_the_application(myapp: Path, fresh: str) -> None:
    with SupabaseMemory.from_conn_string(fresh, user_id="maya") as memory:
        memory.conversation("studio").add_turn("My kiln shows E-47", "That is the thermocouple.")
    (line,) = (line for text in fenced("bash") for line in text.splitlines() if "--drain" in line)
    given = shlex.split(line, comments=True)[1:]
    done = CliRunner().invoke(commands, [*given, "--app", "myapp.memory:worker", "--metrics-port", "0"])
    assert done.exit_code == 0, done.output
    assert "1 done" in done.output


class _NotInstalled(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Stands for packages that are not installed here: any name of theirs is a class that takes anything."""

    def __init__(self, packages: set[str]) -> None:
        self.packages = packages

    def find_spec(
        self, fullname: str, path: object = None, target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        is_one = fullname.split(".")[0] in self.packages
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True) if is_one else None

    def exec_module(self, module: types.ModuleType) -> None:
        module.__dict__["__getattr__"] = lambda name: type(name, (), {"__init__": lambda self, *given, **named: None})


@pytest.mark.usefixtures("fastapi")
@pytest.mark.parametrize("text", FILES, ids=lambda text: text.splitlines()[0])
def test_a_file_of_an_application_can_be_imported(text: str, myapp: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none: nothing is asked")
    named = {name.split(".")[0] for name in re.findall(r"^(?:from|import) ([\w.]+)", text, re.MULTILINE)}
    for line in re.findall(r"^# pip install ([\w -]+)", text, re.MULTILINE):
        named |= {name.replace("-", "_") for name in line.split()}
    lacking = {name for name in named - {"myapp"} if name not in sys.modules and importlib.util.find_spec(name) is None}
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, _NotInstalled(lacking)])
    before = {*sys.modules}
    module = text.splitlines()[0].removeprefix("# ").removesuffix(".py").replace("/", ".")
    made = import_module(module)
    assert made.__file__ == str(myapp / (module.replace(".", "/") + ".py"))
    for name in {*sys.modules} - before:
        if name.split(".")[0] in {"myapp", *lacking}:
            del sys.modules[name]
    for name in ("memory", "sessions"):
        if isinstance(found := getattr(made, name, None), SupabaseMemory):
            found.close()


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


def statements(sql: str) -> list[str]:
    return re.findall(r"(?:\$\$.*?\$\$|--[^\n]*|[^;$])+;", sql, re.DOTALL)


@dataclass(frozen=True)
class Sent:
    """What the scheduled job sends, and the secret that is to be copied."""

    path: str
    headers: dict[str, str]
    timeout_milliseconds: int
    secret: str


def begin(connection: psycopg.Connection[Any], sql: str) -> str:
    """Run what begins the schedule; the secret that its last statement shows."""
    *before, last = statements(sql)
    for statement in before:
        is_extension = "create extension" in statement  # it is well written, and not installed here
        with pytest.raises(psycopg.errors.FeatureNotSupported) if is_extension else nullcontext():
            connection.execute(statement.encode())
    shown = connection.execute(last.encode()).fetchone()
    assert shown is not None
    return str(shown[0])


def scheduled(conn_string: str) -> Sent:
    """What the page's SQL makes the database send; the schedule is begun and ended."""
    first, last = PAGES["docs/workers-in-production.md"].fenced("sql")
    with psycopg.connect(conn_string, autocommit=True) as connection:
        connection.execute(CRON.encode())
        secret = begin(connection, first)
        jobs = connection.execute("select name, schedule from cron.job").fetchall()
        assert jobs == [("memory", "* * * * *")]
        for statement in statements(last):
            connection.execute(statement.encode())
        assert connection.execute("select count(*) from cron.job").fetchone() == (0,)
        sent = connection.execute("select url, headers, timeout_milliseconds from net.sent").fetchone()
    assert sent is not None
    return Sent("/" + sent[0].split("/", 3)[3], sent[1], sent[2], secret)


@pytest.fixture
def fastapi(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("fastapi")
    module.__dict__.update(FastAPI=FastAPI, HTTPException=RefusedError, Request=object)
    monkeypatch.setitem(sys.modules, "fastapi", module)


@pytest.mark.usefixtures("myapp", "fastapi")
def test_what_cron_sends_is_what_the_endpoint_takes(fresh: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = scheduled(fresh)
    assert len(sent.secret) == 72
    monkeypatch.setenv("MEMORY_DRAIN_SECRET", sent.secret)
    api, made = import_module("myapp.api"), import_module("myapp.memory")
    endpoint = api.app.routes[sent.path]
    made.memory.for_user("maya").conversation("studio").add_turn("My kiln shows E-47", "That is the thermocouple.")
    request = types.SimpleNamespace(headers={name.lower(): value for name, value in sent.headers.items()})
    assert asyncio.run(endpoint(request)) == {"pieces": 1}
    for wrong in ({}, {"authorization": "Bearer "}, {"authorization": "Bearer é"}):
        with pytest.raises(RefusedError) as refused:
            asyncio.run(endpoint(types.SimpleNamespace(headers=wrong)))
        assert refused.value.status_code == 401
    (seconds,) = re.findall(r"drain\(seconds=(\d+)\)", "".join(FILES))
    assert (float(seconds) + DEFAULT_WORK.grace_seconds + 5) * 1000 < sent.timeout_milliseconds
    made.memory.close()


def test_an_operator_changes_the_limits(cluster: Cluster, fresh: str) -> None:
    (text,) = PAGES["docs/limits.md"].fenced("sql")
    with psycopg.connect(fresh, autocommit=True) as connection:
        for statement in statements(text):
            connection.execute(statement.encode())
        (limits,) = connection.execute("select public.memory_limits()").fetchone() or ()
    for name, value in re.findall(r"(\w+) = (\d+)", text):
        assert limits[name] == int(value)


def test_an_operator_sees_who_is_in_a_space_and_what_they_shared(fresh: str) -> None:
    page = PAGES["docs/spaces-operators.md"]
    # Line breaks aside, the policies are those of the schema.
    shipped = " ".join((ROOT / "sql" / "access.sql").read_text().split())
    reads, restricts = (" ".join(text.split()) for text in page.fenced("text"))
    assert (
        f"v_reads constant text := case when not memory_private.has_spaces() then v_is_own else $${reads}$$" in shipped
    )
    assert f"v_no_space constant text := $${restricts}$$" in shipped
    migrate(fresh, spaces=True)
    with SupabaseMemory.from_conn_string(fresh) as server:
        space_id = server.for_user("maya").spaces.create("Studio").space_id
        space = server.for_user("maya").space(space_id)
        server.for_user("ben").spaces.join(space.invite("contributor", uses=2).token)
        server.for_user("ben").space(space_id).memory.conversation("plan").add_turn("We fire on Friday.", "Noted.")
        diary = server.for_user("ben").conversation("diary")
        diary.append([HumanMessage("I am tired. Glaze 12 runs.", id="m1")])
        diary.contribute("m1", quote="Glaze 12 runs.", to=space_id)
    (text,) = page.fenced("sql")
    audits = [audit.encode() for audit in re.sub(r"space:[0-9a-f-]{36}", space_id, text).split(";") if audit.strip()]
    with psycopg.connect(fresh) as connection:
        members, spaces, quotes, written, invitations = (connection.execute(audit).fetchall() for audit in audits)
    assert [row[:3] for row in members] == [("maya", "manager", "maya"), ("ben", "contributor", "maya")]
    assert spaces == [(space_id, "Studio", "contributor")]
    assert [(row[0], *row[2:5]) for row in quotes] == [(space_id, "Glaze 12 runs.", "diary", "m1")]
    assert [row[:2] for row in written] == [(space_id, 2)]
    assert [(row[0], row[2], row[3]) for row in invitations] == [(space_id, 1, "maya")]


def _made(page: Page) -> list[str]:
    return [line.split()[1] for text in page.fenced("bash") for line in text.splitlines() if line.startswith("make ")]


def test_every_extra_is_explained() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    table = PAGES["docs/getting-started.md"].text.split("| extra |")[1].split("\n\n")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == sorted(
        extras, key=lambda extra: (extra == "all", table.find(f"| `{extra}` |"))
    )


def test_every_extra_and_target_that_is_named_exists() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for page in PAGES.values():
        for named in re.findall(r"langchain-supabase-memory\[([\w,]+)\]", page.text):
            assert set(named.split(",")) <= set(extras), page.name
        for target in [*re.findall(r"`make ([a-z-]+)", page.prose), *_made(page)]:
            assert target in targets, page.name


# What is said about the code


def test_every_table_is_named() -> None:
    for file in (ROOT / "sql" / "tables").glob("*.sql"):
        for table in re.findall(r"^create table (?:if not exists )?(\w+\.\w+)", file.read_text(), re.MULTILINE):
            assert f"`{table}`" in PAGES["docs/tables.md"].text, table


def test_the_environment_variables_are_named() -> None:
    said = "".join(page.text for page in PAGES.values())
    every = [commands, *commands.commands.values()]
    for name in {option.envvar for each in every for option in each.params if option.envvar}:
        assert f"`{name}`" in said, name


def test_the_tree_of_rooms_is_the_one_that_is_checked() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    layers = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    drawn = PAGES["ARCHITECTURE.md"].text.split("## The rooms")[1].split("```")[1]
    for layer in layers:
        for room in layer.split(" | "):
            assert re.search(rf"\b{room}\b", drawn), room


# The pages themselves


def anchor(heading: str) -> str:
    """What GitHub makes of a heading."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


@each_that_links
def test_every_file_that_is_linked_exists(page: Page) -> None:
    for link in page.links:
        assert (page.path.parent / link.split("#")[0]).exists(), link


@each_that_links
def test_every_heading_that_is_linked_exists(page: Page) -> None:
    for path, _, heading in (link.partition("#") for link in page.links):
        if heading:
            target = (page.path.parent / path).resolve() if path else page.path
            assert heading in map(anchor, _page(target).headings), f"{path}#{heading}"


def test_every_page_is_listed() -> None:
    of_sql = {name for name in PAGES if name.startswith("docs/sql/")}
    at_the_root = {name for name in PAGES if "/" not in name} - {"README.md"}
    assert at_the_root | {"docs/index.md"} <= set(PAGES["README.md"].links)
    listed = {f"docs/{link.split('#')[0]}" for link in PAGES["docs/pages.md"].links}
    assert listed == set(PAGES) - {"README.md", "docs/index.md", "docs/pages.md"} - at_the_root - of_sql
    assert "pages.md" in PAGES["docs/index.md"].links
    assert of_sql <= {f"docs/{link}" for link in PAGES["docs/sql-functions.md"].links}


# The site


def _leaves(nav: list[Any]) -> Iterator[str]:
    for entry in nav:
        for target in entry.values():
            yield from [target] if isinstance(target, str) else _leaves(target)


def test_the_site_goes_through_the_pages_in_the_order_of_their_list() -> None:
    targets = _leaves(tomllib.loads((ROOT / "zensical.toml").read_text())["project"]["nav"])
    shown = [target.replace(".html#", ".md#") for target in targets]
    notebooks = [page for page in shown if page.startswith("notebooks/")]
    assert notebooks == [f"notebooks/{path.stem}.md" for path in sorted((ROOT / "notebooks").glob("*.ipynb"))]
    of_sql = [page for page in shown if page.startswith("sql/")]
    assert [page for page in shown if page not in {*of_sql, *notebooks}] == [
        "index.md",
        *PAGES["docs/pages.md"].links,
        "pages.md",
    ]
    assert sorted(of_sql) == [f"sql/{path.name}" for path in sorted((DOCS / "sql").glob("*.md"))]


@each_page
def test_no_page_of_the_site_leads_out_of_it(page: Page) -> None:
    if page.path.is_relative_to(DOCS):
        for path in filter(None, (link.split("#")[0] for link in page.links)):
            assert (page.path.parent / path).resolve().is_relative_to(DOCS), path


def test_the_site_names_the_release() -> None:
    release = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    shown = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]["copyright"]
    assert shown == f"langchain-supabase-memory {release}, MIT license"


def test_notebooks_become_pages_with_their_output() -> None:
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        text = notebook_pages.page(json.loads(path.read_text()), path.name)
        assert re.match(rf"# Notebook: .+\n\nThis is `notebooks/{path.name}`", text)
        assert "```text\n" in text
        for shown in re.findall(r'<div class="notebook-output">(.*?)\n</div>', text, re.DOTALL):
            assert "\n\n" not in shown, "a blank line would end the HTML"


def test_the_search_shows_guides_before_the_reference(tmp_path: Path) -> None:
    items = [{"location": "setup.html", "title": "Setup"}, {"location": "api/memory.html#x", "title": "setup"}]
    (tmp_path / "search.json").write_text(json.dumps({"items": items}))
    for _ in range(2):  # a second time changes nothing
        site.guides_first(tmp_path)
        named = json.loads((tmp_path / "search.json").read_text())["items"]
        assert [item["title"] for item in named] == ["Setup", "API reference: setup"]


def _imported() -> set[str]:
    """What the pages import from this package; of a module, what they use of it."""
    found: set[str] = set()
    for page in PAGES.values():
        for text in page.fenced("python"):
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.ImportFrom) and str(node.module).startswith("langchain_supabase_memory"):
                    found |= {alias.name for alias in node.names}
            found |= set(re.findall(r"\bsources\.(\w+)", text))
    return found - {"sources"}


def test_every_public_name_has_one_entry_in_the_reference() -> None:
    marks = [mark for page in PAGES.values() for mark in re.findall(r"^::: (\S+)$", page.text, re.MULTILINE)]
    assert len(marks) == len(set(marks))
    shown = {mark.rpartition(".")[2]: mark for mark in marks}
    assert "`__version__`" in PAGES["docs/api/memory.md"].text
    raised = {name for name, each in vars(errors).items() if isinstance(each, type) and issubclass(each, Exception)}
    beyond = {each.rpartition(".")[2] for _, _, names in site.API.values() for each in names.split() if "." in each}
    public = {*langchain_supabase_memory.__all__, *raised, *beyond} - {"__version__"}
    twins = {name for name in public if name[:1] == "a" and name[1:] in public}
    assert shown.keys() == public - twins
    for twin in twins:
        assert any(f", `{twin}` |" in page.text for page in PAGES.values()), twin
    assert public >= _imported()
    for name in set(langchain_supabase_memory.__all__) & shown.keys():
        assert getattr(import_module(shown[name].rpartition(".")[0]), name) is getattr(langchain_supabase_memory, name)


def test_what_is_written_from_other_files_is_up_to_date() -> None:
    for name, text in {**site.api(), "llms.txt": site.llms(PAGES["docs/pages.md"].text)}.items():
        assert (DOCS / name).read_text() == text, f"{name}: run python tools/site.py"


def test_the_built_site_has_the_markdown_that_llms_txt_leads_to(tmp_path: Path) -> None:
    (tmp_path / "llms.txt").write_text((DOCS / "llms.txt").read_text())
    site.beside(tmp_path)
    copies = {path.relative_to(tmp_path) for path in tmp_path.rglob("*.md")}
    assert copies == {page.path.relative_to(DOCS) for page in PAGES.values() if page.path.is_relative_to(DOCS)}
    assert "| `SupabaseMemory` |" in (tmp_path / "api" / "memory.md").read_text()
    assert ":::" not in (tmp_path / "api" / "memory.md").read_text()
    (tmp_path / "llms.txt").write_text("[A page](nowhere.md)")
    with pytest.raises(SystemExit, match="nowhere.md"):
        site.beside(tmp_path)


def test_what_the_pages_are_is_counted() -> None:
    counted = pages.counts()
    assert counted["README.md, lines"] == len(PAGES["README.md"].text.splitlines())
    assert counted["pages of the site"] == len([name for name in PAGES if name.startswith("docs/")])
    assert counted["blocks of Python that run"] == sum(len(page.python) for page in RUN)
    assert counted["links that are broken"] == 0
    assert {f"{name}: " for name in counted} <= set(re.findall(r"^[^:\n]+: ", pages.told(), re.MULTILINE))


@each_page
def test_a_page_has_one_title_and_then_says_what_it_is_for(page: Page) -> None:
    assert re.match(r"# .+\n\n[A-Z*]", page.body)
    assert len(re.findall(r"^# ", page.prose, re.MULTILINE)) == 1


@each_page
def test_a_page_is_short(page: Page) -> None:
    assert len(page.text.splitlines()) <= LONGEST_PAGE


@each_page
def test_blocks_are_shown_without_scrolling(page: Page) -> None:
    if page.path == README or page.path.is_relative_to(DOCS):
        for _, text in _FENCE.findall(page.text):
            for line in text.splitlines():
                assert len(line) <= WIDEST_BLOCK or re.search(r"\S{60}", line), line


def test_the_readme_is_read_in_four_minutes() -> None:
    text = PAGES["README.md"].text
    assert len(text.splitlines()) <= README_LINES
    assert len(text.split()) <= README_WORDS


def test_the_first_program_of_the_readme_is_ten_lines_of_the_public_package() -> None:
    first = PAGES["README.md"].python[0]
    imported = re.findall(r"^(?:from|import) (\S+)", first, re.MULTILINE)
    assert imported == ["langchain_supabase_memory"]
    assert len([line for line in first.splitlines() if line and not line.startswith("#")]) <= 10
    assert "# > " in first


def test_the_readme_names_the_command_that_ci_tests_with() -> None:
    commands = {
        command for text in PAGES["README.md"].fenced("bash") for command in re.findall(r"^make \w+", text, re.M)
    }
    assert commands == {"make demo", "make test"}
    assert commands & {*(ROOT / ".ci" / "run").read_text().splitlines()} == {"make test"}


@each_page
def test_lines_are_no_longer_than_a_screen(page: Page) -> None:
    for line in page.text.splitlines():
        assert len(line) <= 120 or line.startswith("|"), line


def test_the_words_of_the_glossary_are_explained_once() -> None:
    words = re.findall(r"^\| ([^|]+) \|", PAGES["docs/glossary.md"].text, re.MULTILINE)
    explained = sorted(word for word in words if word not in {"word", "---"})
    assert 0 < len(explained) < 60, "a reader learns no more"
    assert not [word for word, following in pairwise(explained) if word == following]
