"""Count the cost of an operation instead of timing it: round trips, rows read and written, write-ahead log bytes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import psycopg
from langchain_core.messages import HumanMessage

from langchain_supabase_memory.adapters.transports.endpoint_info import EndpointInfo
from langchain_supabase_memory.adapters.transports.response_shapes import validate
from langchain_supabase_memory.effects import Call
from langchain_supabase_memory.language.messages.codec import to_row
from langchain_supabase_memory.memory.memory import SupabaseMemory

NEVER = "never analyzed"
OTHERS = "analyzed when only others were there"
"""The planner then assumes that every conversation is short, and that any index on its first columns will do."""

SHORT_ONES = """
with conversation as (
  insert into memory.conversations (user_id, thread_id)
  select 'user-' || u, 'thread-' || t from generate_series(1, 1000) u, generate_series(1, 5) t returning user_id, id)
insert into memory.conversation_messages (
  user_id, conversation_id, sequence, message_id, role, text, characters, tokens, payload)
select user_id, id, n, 'm' || n, 'user', '', 0, 0, '{"type": "human", "data": {}}' from conversation, generate_series(0, 3) n
"""
"""Five thousand short conversations of other users."""

TOUCHED = (
    "select coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0) from pg_stat_xact_user_tables"
    " where relname = any (%s)"
)

# For an index, the entries that scans returned; for a table, the rows that sequential scans returned.
_COUNTED = b"""
select coalesce(sum(pg_stat_get_xact_tuples_returned(c.oid)), 0)::bigint,
       coalesce(sum(pg_stat_get_xact_tuples_inserted(c.oid) + pg_stat_get_xact_tuples_updated(c.oid)
                    + pg_stat_get_xact_tuples_deleted(c.oid)), 0)::bigint
from pg_class c where c.relnamespace in ('memory'::regnamespace, 'memory_private'::regnamespace)
"""
_WRITTEN = b"select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint"


def most_touched(
    connection: psycopg.Connection,
    statement: str,
    arguments: list[Any] | Callable[[int], list[Any]],
    tables: tuple[str, ...] = ("conversation_messages", "conversation_summaries"),
) -> int:
    """Return the most rows that one of eight calls touches: after five the planner switches to a generic plan."""
    most = 0
    for number in range(8):
        with connection.transaction():
            before = connection.execute(TOUCHED, [list(tables)]).fetchone()
            given = arguments(number) if callable(arguments) else arguments
            connection.execute(statement.encode(), [str(each).replace("{n}", str(number)) for each in given])
            after = connection.execute(TOUCHED, [list(tables)]).fetchone()
        assert before
        assert after
        most = max(most, int(after[0] - before[0]))
    return most


def most_read(connection: psycopg.Connection, statement: str) -> int:
    """Return the most rows and index entries of all tables that one of eight calls reads."""
    most = 0
    for _ in range(8):
        with connection.transaction():
            before = connection.execute(_COUNTED).fetchone()
            connection.execute(statement.encode())
            after = connection.execute(_COUNTED).fetchone()
        assert before
        assert after
        most = max(most, int(after[0] - before[0]))
    return most


def messages(*ids: str) -> str:
    return json.dumps([to_row(HumanMessage("new", id=each)) for each in ids])


@dataclass(frozen=True)
class Cost:
    """The cost of a verb.

    Attributes:
        round_trips: The number of calls.
        read: The number of rows, or index entries, read.
        written: The number of rows inserted, updated and deleted.
        wal: The bytes of write-ahead log, including the commit.
    """

    round_trips: int = 0
    read: int = 0
    written: int = 0
    wal: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.round_trips + other.round_trips,
            self.read + other.read,
            self.written + other.written,
            self.wal + other.wal,
        )


class RecordingTransport:
    """Performs each call by another transport, and records which functions are called.

    Args:
        inner: The other transport.
    """

    def __init__(self, inner: Any) -> None:
        self.inner, self.calls = inner, list[str]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def perform(self, call: Call) -> Any:
        self.calls.append(call.function)
        return self.inner.perform(call)

    async def aperform(self, call: Call) -> Any:
        self.calls.append(call.function)
        return await self.inner.aperform(call)


def recorded_calls(memory: SupabaseMemory) -> list[str]:
    """Return the functions that a memory calls from now on."""
    transport: Any = RecordingTransport(memory._services.transport)
    memory._services.transport = transport
    return transport.calls  # type: ignore[no-any-return]


@dataclass
class CountingTransport:
    """Performs each call over one connection, in its own transaction, and counts its cost.

    Attributes:
        connection: In autocommit mode; nothing else may write to the server meanwhile.
        cost: The cost of all calls since the last `taken`.
    """

    connection: psycopg.Connection[Any]
    cost: Cost = field(default_factory=Cost)
    acts_as_user: bool = False
    identity_is_callback: bool = False
    endpoint: EndpointInfo = field(default_factory=lambda: EndpointInfo("postgres", None))

    def perform(self, call: Call) -> Any:
        arguments = [
            json.dumps(value, ensure_ascii=False) if isinstance(value, (list, dict)) else value
            for value in call.arguments.values()
        ]
        statement = f"select public.{call.function}({', '.join(f'{name} => %s' for name in call.arguments)})"
        (logged,) = self._row(_WRITTEN)
        with self.connection.transaction():
            read, written = self._row(_COUNTED)
            (document,) = self._row(statement.encode(), arguments)
            read_then, written_then = self._row(_COUNTED)
        (logged_then,) = self._row(_WRITTEN)
        self.cost += Cost(1, read_then - read, written_then - written, logged_then - logged)
        return validate(call.function, document)

    async def aperform(self, call: Call) -> Any:
        return self.perform(call)

    def for_token(self, identity: Any) -> CountingTransport:
        raise NotImplementedError

    def close(self) -> None:
        """Do nothing: the creator owns the connection."""

    async def aclose(self) -> None:
        """Do nothing: the creator owns the connection."""

    def taken(self) -> Cost:
        """Return the cost so far, and reset it."""
        cost, self.cost = self.cost, Cost()
        return cost

    def _row(self, statement: bytes, arguments: list[Any] | None = None) -> tuple[Any, ...]:
        row: tuple[Any, ...] | None = self.connection.execute(statement, arguments).fetchone()
        assert row is not None
        return row
