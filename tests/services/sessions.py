"""Pool sessions of the tests' server beyond the life of the memory that opened them.

A new session reads the catalog and parses each function: 40 milliseconds of CPU time before the answer to its first
call, in thousands of tests. So a process keeps sessions of the shared database. Each is reset to the state of a new
one, except its catalog caches; sessions in use are closed as usual.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from typing import Any, Final

import psycopg
import pytest
from psycopg import generators, pq
from psycopg.conninfo import conninfo_to_dict

from langchain_supabase_memory.adapters.transports import postgres

_MOST: Final = 8
"""The maximum number of idle sessions per address."""

_RESET: Final = (
    b"close all; set session authorization default; reset all; deallocate all; unlisten *;"
    b" select pg_advisory_unlock_all(); discard temp; discard sequences"
)
"""The steps of `discard all`, except for plans."""


class _Sessions:
    """The idle sessions of this process.

    Args:
        port: The server's port.
        database: The database whose sessions are kept.
    """

    def __init__(self, port: int, database: str) -> None:
        self._place = (str(port), database)
        self._idle: defaultdict[str, list[pq.abc.PGconn]] = defaultdict(list)
        self._nowhere = pq.PGconn.connect(b"host=/nowhere")
        """The closed connection that replaces one whose session was taken over."""

    def connected(self, cls: Any, conninfo: str) -> Generator[Any, Any, Any]:
        """Connect like psycopg's own generator; the connection stores its address if its session may be kept."""
        parts = conninfo_to_dict(conninfo)
        is_kept = (str(parts.get("port")), parts.get("dbname")) == self._place
        session = self._idle_one(conninfo) if is_kept else None
        connection = cls(session or (yield from generators.connect(conninfo)))
        connection.kept_as = conninfo if is_kept else None
        return connection

    def keeps(self, connection: Any) -> bool:
        """Take over the session of a connection, unless it is in use, was cancelled, or is of another database."""
        session, address = connection.pgconn, getattr(connection, "kept_as", None)
        if address is None or len(self._idle[address]) >= _MOST or not _is_idle(session):
            return False
        with suppress(psycopg.Error):
            if session.exec_(_RESET).status == pq.ExecStatus.COMMAND_OK:
                session.notice_handler = session.notify_handler = None
                connection.pgconn = self._nowhere
                self._idle[address].append(session)
                return True
        return False

    def close(self) -> None:
        for idle in self._idle.values():
            while idle:
                idle.pop().finish()

    def _idle_one(self, conninfo: str) -> pq.abc.PGconn | None:
        while self._idle[conninfo]:
            with suppress(IndexError, psycopg.Error):  # another thread took it, or the server closed it
                session = self._idle[conninfo].pop()
                if session.exec_(b"").status == pq.ExecStatus.EMPTY_QUERY:
                    return session
                session.finish()
        return None


def _is_idle(session: pq.abc.PGconn) -> bool:
    return session.transaction_status == pq.TransactionStatus.IDLE and not session.pipeline_status


@contextmanager
def kept(port: int, database: str) -> Iterator[None]:
    """Keep the sessions that memories of this process open to a database.

    Args:
        port: The server's port.
        database: The database that all tests share.
    """
    sessions = _Sessions(port, database)

    def close(connection: Any) -> None:
        if connection.closed or not sessions.keeps(connection):
            psycopg.Connection.close(connection)

    async def aclose(connection: Any) -> None:
        if connection.closed or not sessions.keeps(connection):
            await psycopg.AsyncConnection.close(connection)

    with pytest.MonkeyPatch.context() as patch:
        for cls, closer in ((postgres._Connection, close), (postgres._AsyncConnection, aclose)):
            patch.setattr(cls, "_connect_gen", classmethod(sessions.connected), raising=False)
            patch.setattr(cls, "close", closer, raising=False)
            patch.setattr(cls, "cancel_safe", _noting(cls.cancel_safe), raising=False)
        yield
    sessions.close()


def _noting(cancel: Any) -> Any:
    """Wrap a cancel function so that the session is not kept, since the cancel may reach the server later."""

    @wraps(cancel)
    def noting(connection: Any, *arguments: Any, **named: Any) -> Any:
        connection.kept_as = None
        return cancel(connection, *arguments, **named)

    return noting
