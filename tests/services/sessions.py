"""Pool sessions of the tests' server beyond the life of the memory, or of the test, that opened them.

A new session reads the catalog and parses each function: 40 milliseconds of CPU time before the answer to its first
call, in thousands of tests. So a process keeps sessions of the shared database, and of others whose tests ask for it.
Each is reset to the state of a new one, except its catalog caches; sessions in use are closed as usual.
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

_MOST: Final = 8
"""The maximum number of idle sessions per address."""

_RESET: Final = (
    b"close all; set session authorization default; reset all; deallocate all; unlisten *;"
    b" select pg_advisory_unlock_all(); discard temp; discard sequences"
)
"""The steps of `discard all`, except for plans."""


class Sessions:
    """The idle sessions of this process."""

    def __init__(self) -> None:
        self._places: set[tuple[str, str]] = set()
        self._idle: defaultdict[str, list[pq.abc.PGconn]] = defaultdict(list)
        self._nowhere = pq.PGconn.connect(b"host=/nowhere")
        """The closed connection that replaces one whose session was taken over."""

    def connected(self, cls: Any, conninfo: str) -> Generator[Any, Any, Any]:
        """Connect like psycopg's own generator; the connection stores its address if its session may be kept."""
        is_kept = _place(conninfo) in self._places
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
                while session.notifies():
                    pass
                session.notice_handler = session.notify_handler = None
                connection.pgconn = self._nowhere
                self._idle[address].append(session)
                return True
        return False

    @contextmanager
    def of(self, port: int, database: str) -> Iterator[None]:
        """Keep the sessions of a database until the block ends.

        Args:
            port: The server's port.
            database: The database.
        """
        place = (str(port), database)
        self._places.add(place)
        try:
            yield
        finally:
            self._places.discard(place)
            self._close(place)

    def _close(self, place: tuple[str, str]) -> None:
        for conninfo, idle in self._idle.items():
            if _place(conninfo) == place:
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


def _place(conninfo: str) -> tuple[str, str]:
    """Return the port and the database of an address."""
    parts = conninfo_to_dict(conninfo)
    return str(parts.get("port")), str(parts.get("dbname"))


@contextmanager
def pooled() -> Iterator[Sessions]:
    """Pool the sessions that this process opens to the databases that are passed to `of`."""
    sessions = Sessions()
    close_now, aclose_now = psycopg.Connection.close, psycopg.AsyncConnection.close

    def close(connection: Any) -> None:
        if connection.closed or not sessions.keeps(connection):
            close_now(connection)

    async def aclose(connection: Any) -> None:
        if connection.closed or not sessions.keeps(connection):
            await aclose_now(connection)

    with pytest.MonkeyPatch.context() as patch:
        for cls, closer in ((psycopg.Connection, close), (psycopg.AsyncConnection, aclose)):
            patch.setattr(cls, "_connect_gen", classmethod(sessions.connected))
            patch.setattr(cls, "close", closer)
            for cancel in ("cancel", "cancel_safe"):
                patch.setattr(cls, cancel, _noting(getattr(cls, cancel)))
        yield sessions


def _noting(cancel: Any) -> Any:
    """Wrap a cancel function so that the session is not kept, since the cancel may reach the server later."""

    @wraps(cancel)
    def noting(connection: Any, *arguments: Any, **named: Any) -> Any:
        connection.kept_as = None
        return cancel(connection, *arguments, **named)

    return noting
