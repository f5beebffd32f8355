"""The setup of a Supabase user, with the real Supabase CLI: write migration files, `db push` them, run its advisors."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from langchain_core.messages import HumanMessage

from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.adapters.schema import files, script
from langchain_supabase_memory.adapters.schema.migrate import migrate
from langchain_supabase_memory.errors import InvalidInputError, PermissionDeniedError
from tests.examining import installed
from tests.services.data_api import binary
from tests.services.postgres import Cluster

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.data_api, pytest.mark.slow]

_copies = count()


@dataclass(frozen=True)
class Project:
    """A folder with `supabase/` in it, and the database it is pushed to.

    Attributes:
        folder: The project's folder; the CLI's home as well, so that nothing of the machine's reaches a test.
        conn_string: The database, for `postgres`, who is no superuser.
        cluster: The server of the database.
        database: The name of the database.
    """

    folder: Path
    conn_string: str
    cluster: Cluster
    database: str

    @property
    def migrations(self) -> Path:
        return self.folder / "supabase" / "migrations"

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [binary("@supabase/cli-*/bin/supabase"), "--agent", "no", *arguments],
            cwd=self.folder,
            env={"PATH": os.environ["PATH"], "HOME": str(self.folder), "SUPABASE_TELEMETRY_DISABLED": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    @property
    def _remote(self) -> str:
        return f"--remote={self.conn_string}?sslmode=disable"

    def push(self) -> str:
        """What `supabase db push` says; it must succeed."""
        result = self.run("db", "push", self._remote, "--yes")
        assert result.returncode == 0, f"{result.stdout}\n{result.stderr}"
        return result.stdout + result.stderr

    def advise(self) -> tuple[bool, list[dict[str, Any]]]:
        """Whether the CLI's advisors are content, and their findings from WARN upwards."""
        flags = ("--type", "all", "--level", "info", "--fail-on", "warn")
        result = self.run("db", "advisors", self._remote, *flags)
        try:
            found = json.loads(result.stdout) if result.stdout.lstrip().startswith("[") else []
        except ValueError:
            pytest.fail(f"the advisors answered: {result.stdout}\n{result.stderr}")
        content = result.returncode == 0
        # An exit status alone could as well be a failed connection.
        assert content or "fail-on is set to warn" in result.stderr, f"{result.stdout}\n{result.stderr}"
        return content, [finding for finding in found if finding["level"] != "INFO"]

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.conn_string) as connection:
            return connection.execute(query.encode()).fetchall()


CASES = {
    "default": ("cluster", False),
    "default, legacy grants": ("cluster", True),
    "postgres 16": ("older_cluster", False),
    "postgres 16, legacy grants": ("older_cluster", True),
}


def begun(request: pytest.FixtureRequest, folder: Path) -> Project:
    """A project that nothing was pushed to."""
    name, legacy_grants = CASES[request.param]
    cluster: Cluster = request.getfixturevalue(name)
    database = cluster.create_database(legacy_grants=legacy_grants)
    (folder / "supabase").mkdir()
    (folder / "supabase" / "config.toml").write_text('project_id = "memory"\n')
    project = Project(folder, cluster.conn_string(database), cluster, database)
    assert project.rows("select rolsuper from pg_roles where rolname = current_user") == [(False,)]
    return project


@pytest.fixture(params=CASES)
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Project:
    return begun(request, tmp_path)


@pytest.fixture(scope="module", params=CASES)
def first_push(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project that the files were pushed to, to be copied."""
    project = begun(request, tmp_path_factory.mktemp("pushed"))
    written = files.write(project.migrations)
    said = project.push()
    for path in written:
        assert path.name in said
    return project


@pytest.fixture
def pushed(first_push: Project, tmp_path: Path) -> Project:
    """A copy of its own of a project that the files were pushed to."""
    shutil.copytree(first_push.folder / "supabase", tmp_path / "supabase")
    cluster = first_push.cluster
    name = f"{first_push.database}_{next(_copies)}"
    cluster.execute(f"create database {name} template {first_push.database} owner postgres", superuser=True)
    return Project(tmp_path, cluster.conn_string(name), cluster, name)


NEWEST = pytest.mark.parametrize("project", ["default"], indirect=True)

# Everything that the files set up, as the catalog has it: a second way there must lead to the same place.
_STATE = {
    "migrations": "select name, checksum, applied_at from memory_private.migrations order by name",
    "installation": "select vector_schema from memory_private.installation",
    "tables": (
        "select oid::regclass::text, relrowsecurity, relforcerowsecurity, relacl::text from pg_class"
        " where relnamespace::regnamespace::text in ('memory', 'memory_private') and relkind = 'r' order by 1"
    ),
    "columns": (
        "select table_schema, table_name, column_name, data_type, is_nullable, column_default"
        " from information_schema.columns where table_schema in ('memory', 'memory_private') order by 1, 2, 3"
    ),
    "constraints": (
        "select conrelid::regclass::text, conname, pg_get_constraintdef(oid) from pg_constraint"
        " where connamespace::regnamespace::text in ('memory', 'memory_private') order by 1, 2"
    ),
    "indexes": "select indexdef from pg_indexes where schemaname in ('memory', 'memory_private') order by 1",
    "policies": (
        "select schemaname, tablename, policyname, permissive, roles::text, cmd, qual, with_check from pg_policies"
        " order by 1, 2, 3"
    ),
    "functions": (
        "select pg_get_functiondef(oid), (select array_agg(a::text order by a::text) from unnest(proacl) a)"
        " from pg_proc where pronamespace::regnamespace::text = 'memory_private'"
        " or (pronamespace = 'public'::regnamespace and starts_with(proname, 'memory_')) order by 1"
    ),
    "schemas": "select nspname, nspacl::text from pg_namespace where nspname like 'memory%' or nspname = 'auth'",
}


def state(project: Project) -> dict[str, list[tuple[Any, ...]]]:
    return {name: project.rows(query) for name, query in _STATE.items()}


def works(project: Project) -> None:
    """Check that the memory works, for the server and for a signed-in user."""
    with SupabaseMemory.from_conn_string(project.conn_string) as memory:
        assert installed(memory) == script.current()
        memory.for_user("u").conversation("t").append([HumanMessage("hello")])
        assert [str(each.message.text) for each in memory.for_user("u").conversation("t").read()] == ["hello"]
        user = memory.for_token({"sub": "u", "role": "authenticated"})
        user.conversation("t").append([HumanMessage("again")])
        assert user.conversation("t").count() == 2
        stranger = memory.for_token({"sub": "stranger", "role": "authenticated"})
        assert stranger.for_user("u").conversation("t").read() == []
        with pytest.raises(PermissionDeniedError):
            memory.for_token({"sub": "u", "role": "anon"}).conversation("t").read()
        with pytest.raises(InvalidInputError, match="No user is named"):
            memory.conversation("t").read()


def test_files_are_pushed_once_and_the_memory_works(pushed: Project) -> None:
    written = list(pushed.migrations.iterdir())
    assert pushed.rows("select count(*) from supabase_migrations.schema_migrations") == [(len(written),)]
    works(pushed)
    before = state(pushed)
    assert len(before["migrations"]) == len(script.current().tables)
    assert "up to date" in pushed.push()
    assert files.write(pushed.migrations) == []
    assert state(pushed) == before


def test_migrate_after_a_push_changes_nothing(pushed: Project) -> None:
    before = state(pushed)
    assert migrate(pushed.conn_string) == script.current()
    assert state(pushed) == before
    works(pushed)


def test_a_push_after_migrate_changes_nothing(project: Project) -> None:
    migrate(project.conn_string)
    before = state(project)
    written = files.write(project.migrations)
    assert written[-1].name in project.push()
    assert state(project) == before
    works(project)


@NEWEST
def test_the_files_come_after_the_users_own_migrations(project: Project) -> None:
    project.migrations.mkdir()
    own = project.migrations / "20990101000000_users_own.sql"
    own.write_text(
        "create table memory_notes (id bigint primary key);\nalter table memory_notes enable row level security;\n"
    )
    project.push()
    written = files.write(project.migrations)
    assert min(path.name for path in written) > own.name
    assert written[0].name in project.push()
    works(project)
    assert project.rows("select count(*) from public.memory_notes") == [(0,)]


@pytest.mark.parametrize("first_push", ["default"], indirect=True)
def test_a_push_for_another_place_of_pgvector_is_refused_and_changes_nothing(pushed: Project) -> None:
    before = state(pushed)
    files.write(pushed.migrations, "public")
    result = pushed.run("db", "push", f"--remote={pushed.conn_string}?sslmode=disable", "--yes")
    assert result.returncode != 0
    assert "write this with --vector-schema extensions" in result.stdout + result.stderr
    assert state(pushed) == before
    works(pushed)


def test_the_advisors_find_nothing_from_warn_upwards(pushed: Project) -> None:
    works(pushed)
    content, findings = pushed.advise()
    assert findings == [], json.dumps(findings, indent=2)
    assert content


_BAD_OBJECTS = {
    "rls_disabled_in_public": (
        "create table public.bad_table (id int primary key); grant all on public.bad_table to anon"
    ),
    "security_definer_view": (
        "create view public.bad_view as select * from memory.conversation_messages;"
        " grant select on public.bad_view to anon, authenticated"
    ),
    "function_search_path_mutable": "alter function public.memory_count reset search_path",
    "auth_rls_initplan": (
        "alter policy conversations_select on memory.conversations using (user_id = (auth.jwt() ->> 'sub'))"
    ),
    "multiple_permissive_policies": (
        "create policy one_more on memory.conversations for select to authenticated using (false)"
    ),
}


def test_the_advisors_bite(project: Project) -> None:
    migrate(project.conn_string)
    for statement in _BAD_OBJECTS.values():
        project.cluster.execute(statement, database=project.database)
    content, findings = project.advise()
    assert {finding["name"] for finding in findings} >= set(_BAD_OBJECTS)
    assert not content
