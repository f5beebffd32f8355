"""`supabase-memory inspect` as a user runs it: its address, whom it listens to, how it ends, and what it rejects."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.cli.commands import inspect
from langchain_supabase_memory.inspector import server
from tests.cli.running import PROGRAM, Terminal, refused, run, surroundings
from tests.inspector.visiting import Reader, memory_of

SECONDS = 60


@contextmanager
def inspecting(*arguments: str, **environment: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The command in a process of its own, and the address that it prints."""
    process = subprocess.Popen(
        [*PROGRAM, "inspect", *arguments],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env=surroundings(**environment),
    )  # fmt: skip
    try:
        assert process.stdout is not None
        found = re.fullmatch(r"The inspector is on (http://\S+)\n", process.stdout.readline())
        assert found is not None
        yield found[1], process
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def memory(conn_string: str, user_id: str) -> Iterator[SupabaseMemory]:
    with memory_of(conn_string, user_id) as made:
        made.conversation("t").add_turn("my secret kiln", "yes")
        yield made


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_it_opens_once_listens_here_alone_and_ends(memory: SupabaseMemory, conn_string: str, ending: int) -> None:
    named = str(memory.user_id)
    with inspecting("--database-url", conn_string, "--user", named, "--port", "0") as (address, process):
        url = httpx.URL(address)
        assert url.host == "127.0.0.1"
        assert url.port is not None
        with httpx.Client(follow_redirects=True) as http:
            page = http.get(address)
            assert "my secret kiln" in page.text
            assert page.url.query == b""
            with http.stream("GET", f"http://127.0.0.1:{url.port}/events?about=list") as events:
                assert next(events.iter_lines()) == "retry: 2000"
                process.send_signal(ending)
                said, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == (130 if ending == signal.SIGINT else -signal.SIGTERM)
    assert "secret" not in said
    assert "GET" not in said, "addresses are not logged"
    assert "Traceback" not in said
    assert "Cancel" not in said, "pages are let go first"


def test_nothing_listens_beyond_this_machine_unless_it_is_asked_for(memory: SupabaseMemory, conn_string: str) -> None:
    beside = "127.0.0.2"  # another address of this machine, as one of a network would be
    with (
        inspecting("--database-url", conn_string, "--port", "0") as (address, _),
        pytest.raises(ConnectionRefusedError),
    ):
        socket.create_connection((beside, httpx.URL(address).port or 0), timeout=SECONDS)
    with inspecting("--database-url", conn_string, "--port", "0", "--host", beside) as (address, _):
        assert httpx.URL(address).host == beside
        assert httpx.get(address).status_code == 303


def test_the_user_of_the_environment_narrows_it(memory: SupabaseMemory, conn_string: str) -> None:
    with (
        inspecting("--port", "0", SUPABASE_DB_URL=conn_string, SUPABASE_MEMORY_USER="nobody-here") as (address, _),
        httpx.Client(follow_redirects=True) as http,
    ):
        assert "my secret kiln" not in http.get(address).text


def test_as_a_user_and_with_a_name(memory: SupabaseMemory, conn_string: str) -> None:
    options = ("--as-user", str(memory.user_id), "--write", "--port", "0")
    with (
        inspecting("--database-url", conn_string, *options, SUPABASE_MEMORY_USER="nobody-here") as (address, _),
        httpx.Client(follow_redirects=True) as http,
    ):
        page = Reader(http.get(address).text)
        assert "One user’s data, under row level security" in page.text
        base = str(httpx.URL(address).copy_with(query=None)).rstrip("/")
        board = f"{base}/conversation/board?thread=t"
        form = {"csrf_token": Reader(http.get(board).text).csrf_token, "kind": "fact", "text": "A fact."}
        http.post(board.replace("board?", "board/add?"), data=form, headers={"origin": base})
    (item,) = memory.conversation("t").board.read().items
    assert item.author == memory.user_id


def test_who_listens_beyond_this_machine_is_warned(memory: SupabaseMemory, conn_string: str) -> None:
    for host, warned in (("0.0.0.0", True), ("127.0.0.1", False)):
        with inspecting("--database-url", conn_string, "--port", "0", "--host", host) as (address, process):
            assert httpx.URL(address).host == "127.0.0.1"
            assert httpx.get(address).status_code == 303
            process.terminate()
            assert process.stdout is not None
            said = process.stdout.read()
        assert "lets one browser in" in said
        assert ("over plain HTTP" in said) == warned
    assert [server.is_public_address(each) for each in ("127.0.0.2", "::1", "localhost", "::", "", "a.example")] == [
        False, False, False, True, True, True,
    ]  # fmt: skip


def test_a_user_without_a_name_may_look(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(_: int) -> None:
        raise KeyError("getpwuid(): uid not found: 54321")

    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", nobody)
    assert inspect._local_user() == "inspector"
    monkeypatch.setenv("USER", "maya")
    assert inspect._local_user() == "maya"


def test_the_users_token_comes_from_a_variable_of_this_package(memory: SupabaseMemory, conn_string: str) -> None:
    """SUPABASE_ACCESS_TOKEN is that of the platform's own command, and manages projects."""
    over_http = ("inspect", "--url", "https://abc.supabase.co", "--key", "sb_publishable_x")
    assert "publishable" in refused(*over_http, environment={"SUPABASE_ACCESS_TOKEN": "sbp_of_the_platform"})
    assert "token" in refused(*over_http, environment={"SUPABASE_MEMORY_TOKEN": "no token"})


# The demo


@pytest.mark.slow
def test_the_demo_opens_the_page_in_a_browser(tmp_path: Path) -> None:
    said = tmp_path / "said.jsonl"
    lines = [{"role": "user", "content": "My cat is called Miso."}, {"role": "assistant", "content": "Noted."}]
    said.write_text("\n".join(json.dumps(line) for line in lines))
    opened = tmp_path / "opened"
    browser = tmp_path / "bin" / "xdg-open"
    browser.parent.mkdir()
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > {opened}.new && mv {opened}.new {opened}\n')
    browser.chmod(0o755)
    arguments = ("--transcript", str(said), "--ask", "What is my cat called?", "--path", str(tmp_path / "postgres"))
    path = {"PATH": f"{browser.parent}:{os.environ['PATH']}"}
    with Terminal("demo", *arguments, "--inspect", columns=200, environment=path) as terminal:
        address = terminal.until(r"The inspector is on (http://\S+)")[1]
        terminal.until("Ctrl-C ends it")
        page = httpx.get(address, follow_redirects=True)
        assert "My cat is called Miso." in page.text
        terminal.type("\x03")
        assert terminal.end() == 130
    assert opened.read_text() == address


def test_a_demo_that_cannot_open_the_page_says_so_before_it_begins(tmp_path: Path) -> None:
    program = (
        "import sys; sys.modules['jinja2'] = None\n"
        "from langchain_supabase_memory.cli import main\n"
        f"sys.argv = ['supabase-memory', 'demo', '--inspect', '--path', {str(tmp_path / 'postgres')!r}]\nmain()"
    )
    made = subprocess.run([PROGRAM[0], "-c", program], capture_output=True, text=True, check=False)
    assert made.returncode == 1
    assert "pip install 'langchain-supabase-memory[inspector]'" in made.stderr
    assert not (tmp_path / "postgres").exists()


def test_what_cannot_be_served_says_what_to_do(conn_string: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert "--port 0" in refused("inspect", "--database-url", conn_string, "--port", port)
    assert "--host 127.0.0.1" in refused("inspect", "--database-url", conn_string, "--host", "192.0.2.1", "--port", "0")
    assert "exclude each other" in refused("inspect", "--database-url", conn_string, "--user", "a", "--as-user", "b")
    assert "cannot apply" in refused("inspect", "--app", "x:y", "--database-url", conn_string)
    over_http = ("--url", "https://abc.supabase.co", "--key", "sb_secret_x", "--as-user", "a")
    assert "--access-token" in refused("inspect", *over_http)
    assert "No database is named" in refused("inspect")
    code, output = run("inspect", "--help")
    assert code == 0
    assert "--write" in output


# The browser of the tests


@pytest.mark.parametrize(
    ("user", "apt", "named"), [(0, 0, ""), (0, 100, ""), (1000, 0, ""), (0, 0, "no-such-chromium")]
)
def test_what_installs_a_browser_says_what_it_cannot_do(tmp_path: Path, user: int, apt: int, named: str) -> None:
    """With programs of the same names before those of this machine: nothing is installed."""
    for name, does in (("id", f"echo {user}"), ("apt-get", f"echo apt-get $1; exit {apt}")):
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\n{does}\n")
        program.chmod(0o755)
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "CHROMIUM": named}
    script = Path(__file__).parents[2] / "tools/chromium.sh"
    made = subprocess.run(["sh", str(script)], env=env, capture_output=True, text=True, check=False)
    is_installed = (user, apt, named) == (0, 0, "")
    assert (made.returncode, "apt-get install" in made.stdout) == (int(not is_installed), is_installed)
    assert ("apt-get install chromium" in made.stderr) == (not is_installed and not named)
    assert (f"CHROMIUM names {named}" in made.stderr) == bool(named)


def test_an_extra_that_is_missing_is_named(conn_string: str) -> None:
    program = "import sys; sys.modules['jinja2'] = None\nimport langchain_supabase_memory.inspector"
    made = subprocess.run([PROGRAM[0], "-c", program], capture_output=True, text=True, check=False)
    assert "pip install 'langchain-supabase-memory[inspector]'" in made.stderr
