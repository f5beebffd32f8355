"""A real streaming replica of a cluster: `pg_basebackup` and hot standby, which the packaged servers include."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psycopg

from tests.services.postgres import Cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

_SECONDS = 60.0


@dataclass
class Replica(Cluster):
    """A running replica, which follows its primary until `lag` is called.

    Attributes:
        primary: Its primary.
    """

    primary: Cluster | None = None

    def start(self) -> Replica:
        assert self.primary is not None
        self.own_folder()
        self._run(
            str(self.bin / "pg_basebackup"), "-R", "-X", "stream", "-c", "fast", "-D", str(self.folder / "data"),
            "-h", "127.0.0.1", "-p", str(self.primary.port), "-U", "supabase_admin",
        )  # fmt: skip
        self.restart(first=True)
        return self

    def follow(self) -> None:
        """Wait until it has replayed everything from the primary."""
        assert self.primary is not None
        self._ask("select case when pg_is_wal_replay_paused() then pg_wal_replay_resume() end")
        [(position,)] = _rows(self.primary, "select pg_current_wal_insert_lsn()::text")
        end = time.monotonic() + _SECONDS
        while self._ask(f"select pg_last_wal_replay_lsn() >= '{position}'") != [(True,)]:
            assert time.monotonic() < end, "the replica does not follow"
            time.sleep(0.02)

    def lag(self) -> None:
        """Pause the replay."""
        self._ask("select pg_wal_replay_pause()")
        end = time.monotonic() + _SECONDS
        while self._ask("select pg_get_wal_replay_pause_state()") != [("paused",)]:
            assert time.monotonic() < end, "the replica does not pause"
            time.sleep(0.02)

    def _ask(self, query: str) -> list[Any]:
        return _rows(self, query)


def _rows(cluster: Cluster, query: str) -> list[Any]:
    with psycopg.connect(cluster.conn_string(user="supabase_admin"), autocommit=True) as connection:
        return connection.execute(query.encode()).fetchall()


@contextmanager
def replica_of(cluster: Cluster) -> Iterator[Replica]:
    """Start a replica of all present and future databases of a cluster."""
    replica = Replica(bin=cluster.bin, primary=cluster)
    try:
        yield replica.start()
    finally:
        replica.stop()
