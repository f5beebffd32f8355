"""A database that tests of a file use one after another, each without the rows of those before.

To empty it costs a few milliseconds of CPU time. A copy of a template costs 60, and each of its sessions up to 100,
since nothing is planned there yet.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final

import psycopg

from tests.services.postgres import Cluster
from tests.services.sessions import Sessions

_TABLES: Final = """
select c.oid::regclass::text from pg_class c
where c.relnamespace in ('memory'::regnamespace, 'memory_private'::regnamespace) and c.relkind = 'r' order by 1
"""

# Whatever a test may leave behind beside rows: relations, functions, policies, and rights.
_CATALOG: Final = """
select md5(concat(
  (select string_agg(concat_ws(' ', c.oid, c.relacl, c.relrowsecurity, c.relforcerowsecurity, c.relreplident, c.reloptions), ',' order by c.oid)
   from pg_class c where c.relpersistence <> 't' and not starts_with(c.relname, 'pg_toast')),
  (select string_agg(concat_ws(' ', p.oid, p.proacl, p.proconfig, p.prosecdef, md5(p.prosrc)), ',' order by p.oid) from pg_proc p),
  (select string_agg(concat_ws(' ', p.oid, p.polroles, p.polqual, p.polwithcheck), ',' order by p.oid) from pg_policy p),
  (select string_agg(concat_ws(' ', t.oid, t.tgenabled), ',' order by t.oid) from pg_trigger t),
  (select string_agg(concat_ws(' ', a.attrelid, a.attname, a.attacl), ',' order by a.attrelid, a.attnum) from pg_attribute a
   where a.attacl is not null),
  (select string_agg(concat_ws(' ', c.oid, c.conrelid), ',' order by c.oid) from pg_constraint c),
  (select string_agg(concat_ws(' ', n.oid, n.nspacl), ',' order by n.oid) from pg_namespace n where n.nspname !~ '^pg_'),
  (select string_agg(concat_ws(' ', e.oid, e.extnamespace), ',' order by e.oid) from pg_extension e),
  (select string_agg(concat_ws(' ', i.indexrelid, i.indisvalid), ',' order by i.indexrelid) from pg_index i),
  (select string_agg(concat_ws(' ', s.setrole, s.setconfig), ',' order by s.setrole) from pg_db_role_setting s
   where s.setdatabase = (select d.oid from pg_database d where d.datname = current_database())),
  (select string_agg(p.oid::text, ',' order by p.oid) from pg_publication p)))
"""


_REFERRING: Final = """
with recursive referring as (
  select unnest(%s::text[]::regclass[])::oid as oid
  union select f.conrelid from pg_constraint f join referring r on f.confrelid = r.oid where f.contype = 'f')
select oid::regclass::text from referring
"""


def delete_from(cluster: Cluster, database: str, *tables: str) -> None:
    """Delete the rows of tables, and of those that refer to them.

    `truncate ... cascade` costs 40 ms of CPU time, since each table and index gets a new file, and the plans of each
    kept session.
    """
    with psycopg.connect(cluster.conn_string(database, "supabase_admin"), autocommit=True) as connection:
        _delete(connection, [row[0] for row in connection.execute(_REFERRING, [[*tables]])])


def _delete(connection: psycopg.Connection[Any], tables: list[str]) -> None:
    # Without triggers and foreign keys, which would delete one after another.
    connection.execute("set session_replication_role = replica")
    connection.execute("; ".join(f"delete from {table}" for table in tables).encode())


class EmptiedDatabase:
    """A migrated database whose rows are deleted before each use; it is replaced if anything else has changed.

    Args:
        cluster: The server.
        kept_sessions: Where its sessions are kept.
        spaces: Whether spaces are switched on.
    """

    def __init__(self, cluster: Cluster, kept_sessions: Sessions, *, spaces: bool = False) -> None:
        self._cluster, self._kept_sessions, self._spaces = cluster, kept_sessions, spaces
        self._open = ExitStack()
        self._name: str | None = None
        self._filled: list[str] = []
        self._empty: list[str] = []
        self._state: list[Any] = []

    def name(self) -> str:
        """Return its name, without rows but those that the migration wrote."""
        if self._name is not None:
            with self._connection(self._name) as connection:
                if self._state_now(connection) == self._state:
                    _delete(connection, self._empty)
                    return self._name
        return self._replaced()

    def close(self) -> None:
        """Close its idle sessions."""
        self._open.close()

    def _replaced(self) -> str:
        self.close()
        self._name = self._cluster.migrated_database(spaces=self._spaces)
        self._open.enter_context(self._kept_sessions.of(self._cluster.port, self._name))
        with self._connection(self._name) as connection:
            tables = [row[0] for row in connection.execute(_TABLES)]
            self._filled = [each for each in tables if _has_rows(connection, each)]
            self._empty = [each for each in tables if each not in self._filled]
            self._state = self._state_now(connection)
        return self._name

    @contextmanager
    def _connection(self, name: str) -> Iterator[psycopg.Connection[Any]]:
        with psycopg.connect(self._cluster.conn_string(name, "supabase_admin"), autocommit=True) as connection:
            yield connection

    def _state_now(self, connection: psycopg.Connection[Any]) -> list[Any]:
        rows = [
            connection.execute(f"select t::text from {each} t order by 1".encode()).fetchall() for each in self._filled
        ]
        return [connection.execute(_CATALOG).fetchall(), *rows]


def _has_rows(connection: psycopg.Connection[Any], table: str) -> bool:
    return connection.execute(f"select from {table} limit 1".encode()).fetchone() is not None
