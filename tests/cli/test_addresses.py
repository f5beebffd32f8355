"""An invalid address is reported in plain words with the next action, and inspecting it creates nothing."""

from __future__ import annotations

import shlex
from pathlib import Path

import click
import jwt
import pytest

from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.adapters.addresses import is_publishable
from langchain_supabase_memory.adapters.schema import files
from langchain_supabase_memory.cli.application import commands
from langchain_supabase_memory.errors import ConfigurationError
from tests.cli.running import Terminal, piped, refused, run
from tests.services.postgres import Cluster

SECRET = "s3cr3tcanary"
HOST = "127.0.0.1:1"

CONN_STRINGS = {
    "nonsense": "does not begin with postgresql://. It looks like postgresql://user:password@host:5432/postgres.",
    SECRET: "does not begin with postgresql://",
    f"mysql://u:{SECRET}@{HOST}/db": "does not begin with postgresql://",
    "https://abc.supabase.co": "is a url of the web. Use SupabaseMemory.from_url(url, key), or --url",
    f"postgresql+psycopg://u:{SECRET}@{HOST}/db": "is one of SQLAlchemy. Begin it with postgresql://",
    " ": "is empty. Pass 'postgresql://",
    "postgresql://": "names no host, and nothing listens on this machine. Name the host",
    f"postgresql://u:{SECRET}@/db": "names no host, and nothing listens on this machine. Name the host",
    f"postgresql://u:{SECRET}@127.0.0.1:99999/db": "The port in the connection string is no number from 1 to 65535",
    f"postgresql://u:{SECRET}@127.0.0.1:port/db": "The port in the connection string is no number from 1 to 65535",
    f"postgresql://u:{SECRET}/db": "The port in the connection string is no number",
    f"postgresql://u:{SECRET}@[::1/db": "names no usable host",
    f"postgresql://u:se@{SECRET}@{HOST}/db": "The password in the connection string has signs that are not encoded",
    f"postgresql://u:{SECRET} x@{HOST}/db": "cannot be parsed. It looks like",
    f"postgresql://u:{SECRET}@{HOST}/db?{SECRET}=1": "has a parameter that Postgres does not know",
    f"postgresql://u:{SECRET}@{HOST}/db?sslmode={SECRET}": "has a parameter with a value that Postgres does not take",
    f"postgresql://u:{SECRET}@no-such-host.invalid/db": "There is no host of this name. Check the project ref",
    f"postgresql://u:{SECRET}@{HOST}/db": "nothing listens at this host and port. Check both",
    f"host=127.0.0.1 port=1 password={SECRET}": "nothing listens at this host and port. Check both",
}


@pytest.mark.parametrize("command", ["doctor", "migrate"])
def test_what_is_wrong_with_a_connection_string_is_said(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PGHOST", "PGPORT", "PGSERVICE"):
        monkeypatch.delenv(name, raising=False)
    for conn_string, expected in CONN_STRINGS.items():
        said = refused(command, "--database-url", conn_string)
        assert expected in said, conn_string
        assert SECRET not in said


def test_what_the_server_does_not_let_in_is_said(cluster: Cluster) -> None:
    for conn_string, words in {
        cluster.conn_string("no_such_database"): "There is no such database on this server. Check the last part",
        cluster.conn_string("postgres", "nobody_of_this_name"): "did not accept the user or the password. Check both",
    }.items():
        for command in ("doctor", "status", "migrate"):
            assert words in refused(command, "--database-url", conn_string)


URLS = {
    "abc.supabase.co": "must begin with https://. Pass 'https://<project ref>.supabase.co'",
    "ftp://abc.supabase.co": "must begin with https://",
    SECRET: "must begin with https://",
    f"postgres://u:{SECRET}@h/db": "is a connection string of Postgres. Use SupabaseMemory.from_conn_string",
    "https://": "names no host",
    "https:///rest": "names no host",
    "https://[::1": "names no host",
    "https://h:99999": "The port in the project's url is no number from 1 to 65535. Leave the port out",
    "https://h:port": "The port in the project's url is no number",
    "http://h:5432": "names port 5432, where Postgres listens",
    "https://a b": "has a space, or a sign that is not seen",
    "https://abc.supabase\u200b.co": "has a space, or a sign that is not seen",
    f"https://u:{SECRET}@abc.supabase.co": "has a user or a password in it",
    "https://abc.supabase.co/rest/v1/": "ends with /rest/v1, which is added to it. Pass the url without /rest/v1",
    "https://abc.supabase.co/auth/v1": "ends with /auth/v1, where one of its services is. Pass the url without",
    "https://abc.supabase.co/dashboard": "has something behind the host",
    "https://abc.supabase.co?x=1": "has something behind the host",
    "https://supabase.com/dashboard/project/abc": "is a page of Supabase's dashboard",
    "https://no-such-host.invalid": "There is no host of this name",
    f"http://{HOST}": "The Data API could not be reached",
}


def test_what_is_wrong_with_a_url_is_said() -> None:
    for url, expected in URLS.items():
        said = refused("doctor", "--url", url, "--key", "sb_secret_x")
        assert expected in said, url
        assert SECRET not in said


def test_a_key_that_is_none_and_one_that_is_everybodys() -> None:
    caller = ("status", "--url", f"http://{HOST}", "--key")
    assert "no key but a text with spaces" in refused(*caller, f"{SECRET} x")
    assert "The url and the key are swapped" in refused(*caller, "https://abc.supabase.co")
    older = jwt.encode({"role": "anon", "iss": "supabase"}, SECRET * 3, "HS256")
    for key in ("sb_publishable_x", older):
        said = refused(*caller, key)
        assert "publishable key, which is public. Pass the secret key, --key sb_secret_…" in said
        assert key not in said
        assert "could not be reached" in refused("doctor", *caller[1:], key), "which asks for nobody's conversations"
    server = jwt.encode({"role": "service_role"}, SECRET * 3, "HS256")
    for key in ("sb_secret_x", server, "a.b.c", f"a.{'é'}.c", "x.bnVsbA.y"):
        assert not is_publishable(key)
    assert "could not be reached" in refused(*caller, server)


ADDRESSED = sorted(
    name for name in commands.commands if any(option.name == "embedded" for option in commands.commands[name].params)
)
LOOKS = [name for name in ADDRESSED if name != "migrate"]


def test_a_look_creates_nothing(tmp_path: Path) -> None:
    assert {"cleanup", "doctor", "forget", "retry", "search", "show", "status", "unreadable", "worker"} <= set(LOOKS)
    (tmp_path / "empty one").mkdir()
    (tmp_path / "file").touch()
    before = sorted(tmp_path.rglob("*"))
    for command in LOOKS:
        arguments = _needed(command)
        for name, words in (("typo", "There is no folder"), ("empty one", "There is no database in")):
            path = str(tmp_path / name)
            said = refused(command, *arguments, "--embedded", path)
            assert f"{words} {path}. Check the path. To make a database there, run: supabase-memory migrate" in said
            assert shlex.quote(path) in said
        assert f"{tmp_path / 'file'} is a file" in refused(command, *arguments, "--embedded", str(tmp_path / "file"))
        assert "has no name" in refused(command, *arguments, "--embedded", "")
    assert sorted(tmp_path.rglob("*")) == before


def _needed(command: str) -> list[str]:
    """What a command cannot do without, and what keeps one that deletes from asking."""
    made: list[str] = []
    for param in commands.commands[command].params:
        if param.required:
            value = param.type.choices[0] if isinstance(param.type, click.Choice) else "x"
            value = "1" if param.name == "answer" else value
            made += [param.opts[0], value] if param.param_type_name == "option" else [value]
        elif param.name == "dry_run":
            made.append(param.opts[0])
        elif "--user" in param.opts:
            made += ["--user", "x"]
    return made


@pytest.mark.postgres
@pytest.mark.slow
def test_migrate_makes_a_database_where_there_is_none_and_a_look_finds_it(tmp_path: Path) -> None:
    folder = str(tmp_path / "new" / "folder")
    assert run("migrate", "--embedded", folder)[0] == 0
    assert run("doctor", "--embedded", folder)[0] == 0
    assert run("status", "--embedded", folder)[0] == 0
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["folder"]
    assert run("migrate", "--embedded", str(tmp_path / "a new one"))[0] == 0


@pytest.mark.postgres
@pytest.mark.slow
def test_migrate_touches_no_folder_that_holds_something_else(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine.txt").write_text("mine")
    owner = (tmp_path / "notes").stat().st_uid
    assert "holds something else, and no database" in refused("migrate", "--embedded", str(tmp_path / "notes"))
    assert [path.name for path in (tmp_path / "notes").iterdir()] == ["mine.txt"]
    assert (tmp_path / "notes").stat().st_uid == owner
    assert [path.name for path in tmp_path.iterdir()] == ["notes"]
    beneath = tmp_path / "notes" / "mine.txt" / "postgres"
    assert "cannot be used: " in refused("migrate", "--embedded", str(beneath))
    with pytest.raises(ConfigurationError, match="cannot be used"), SupabaseMemory.embedded(beneath) as memory:
        memory.for_user("u").conversation("t").count()


@pytest.mark.parametrize("version", ["16", "nonsense"])
def test_a_database_of_another_postgres_is_said_and_left_alone(tmp_path: Path, version: str) -> None:
    (tmp_path / "PG_VERSION").write_text(version)
    said = refused("status", "--embedded", str(tmp_path))
    assert ("of another release of Postgres" if version == "16" else "could not be started") in said
    assert [path.name for path in tmp_path.iterdir()] == ["PG_VERSION"]


@pytest.mark.postgres
def test_ctrl_c_while_a_database_is_made_leaves_none(tmp_path: Path) -> None:
    with Terminal("migrate", "--embedded", str(tmp_path / "postgres")) as terminal:
        terminal.until("Starting the embedded Postgres")
        while not list(tmp_path.glob(".postgres-*/base")):  # it is being made
            assert terminal.process.poll() is None, terminal.text
        terminal.type("\x03")
        assert terminal.end() == 130
        assert "Traceback" not in terminal.text
        assert terminal.lines[-1].endswith("Stopped by Ctrl-C.")
    assert list(tmp_path.iterdir()) == []
    assert piped("migrate", "--embedded", str(tmp_path / "postgres")).returncode == 0


def test_where_files_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "below", Path("/proc/none/of/these")):
        said = refused("sql", "--output", str(path))
        assert "is a file" in said or f"The folder {path} cannot be written to: " in said
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_file_that_is_not_whole_is_not_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[Path] = []
    whole = Path.write_text

    def until_ctrl_c(self: Path, text: str, encoding: str) -> int:
        if len(done) == 3:
            whole(self, text[:100], encoding=encoding)
            raise KeyboardInterrupt
        done.append(self)
        return whole(self, text, encoding=encoding)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Path, "write_text", until_ctrl_c)
        files.write(tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert len(files.write(tmp_path)) > 3
    assert files.write(tmp_path) == []
