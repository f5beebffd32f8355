"""Sessions of the tests' server that outlive the memory that opened them.

A new session reads the catalog and parses each function anew: 40 milliseconds of the processor before its first call is
answered, which thousands of tests would pay. So a process keeps sessions of the database that its tests share. Each is
reset to what a new one is, but for what it has read of the catalog; what is not idle is closed as always.
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
"""How many sessions of one address are kept idle."""

_RESET: Final = (
    b"close all; set session authorization default; reset all; deallocate all; unlisten *;"
    b" select pg_advisory_unlock_all(); discard temp; discard sequences"
)
"""What `discard all` does, but for the plans."""


class _Sessions:
    """The idle ones of this process.

    Args:
        port: Of the server.
        database: Whose sessions are kept.
    """

    def __init__(self, port: int, database: str) -> None:
        self._place = (str(port), database)
        self._idle: defaultdict[str, list[pq.abc.PGconn]] = defaultdict(list)
        self._nowhere = pq.PGconn.connect(b"host=/nowhere")
        """Where a connection leads whose session was taken over: it is closed."""

    def connected(self, cls: Any, conninfo: str) -> Generator[Any, Any, Any]:
        """Connect, as psycopg's own generator does; the connection knows its address if its session may be kept."""
        parts = conninfo_to_dict(conninfo)
        is_kept = (str(parts.get("port")), parts.get("dbname")) == self._place
        session = self._idle_one(conninfo) if is_kept else None
        connection = cls(session or (yield from generators.connect(conninfo)))
        connection.kept_as = conninfo if is_kept else None
        return connection

    def keeps(self, connection: Any) -> bool:
        """Take over the session of a connection; not if it is in use, was cancelled, or is of another database."""
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
            with suppress(IndexError, psycopg.Error):  # another thread took it, or the server ended it
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
        port: Of the server.
        database: The one that all tests share.
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
    """The same, for a connection whose session is not kept: the server may hear of it only later."""

    @wraps(cancel)
    def noting(connection: Any, *arguments: Any, **named: Any) -> Any:
        connection.kept_as = None
        return cancel(connection, *arguments, **named)

    return noting
