"""Prunes LangGraph's tables of checkpoints, and revokes what Supabase's Data API may do with them.

Each thread is read in one statement and pruned in batches, each its own transaction: no lock is held for long, and a
stop between two batches leaves threads that resume. It needs a direct connection of the tables' owner.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory.adapters import addresses
from langchain_supabase_memory.adapters.checkpoints.retained import ROOT, Checkpoint, retained
from langchain_supabase_memory.checks import number
from langchain_supabase_memory.errors import (
    ConfigurationError,
    MissingDependencyError,
    NotFoundError,
    connection_failed,
    from_code,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from psycopg import Connection, Cursor

TABLES: Final = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")
"""The tables with rows of threads."""

LOCKED_TABLES: Final = (*TABLES, "checkpoint_migrations")
"""The tables that nobody reads through the Data API."""

PAGE: Final = 100
"""How many threads are listed at once."""

BATCH: Final = 500
"""How many checkpoints, or blobs, go in one transaction."""

ORPHAN_HOURS: Final = 24
"""How long a subgraph's call waits for the checkpoint from which it was called, before it counts as an orphan."""

_LOCK_TIMEOUT: Final = "set local lock_timeout = '3s'"
"""A table that is in use is not waited for, because every reader would queue behind the wait."""

_JS_THREAD: Final = "delta_writes_versioned"
"""LangGraph.js marks threads so, whose delta channels are stored in another way."""

_THREADS: Final = """
select t.thread_id from (
  (select distinct thread_id from $.checkpoints where thread_id > %(after)s order by thread_id limit %(page)s)
  union
  (select distinct thread_id from $.checkpoint_blobs where thread_id > %(after)s order by thread_id limit %(page)s)
) t order by t.thread_id limit %(page)s
"""

# A delta channel is known by its counter in the metadata, or by a snapshot: the marker `true` with a blob behind it.
_CHECKPOINTS: Final = """
select c.checkpoint_ns, c.checkpoint_id, c.parent_checkpoint_id, c.metadata -> 'parents' ->> '',
       (c.checkpoint ->> 'ts')::timestamptz, v.stored, v.absent,
       array(select jsonb_object_keys(case jsonb_typeof(c.metadata -> 'counters_since_delta_snapshot')
             when 'object' then c.metadata -> 'counters_since_delta_snapshot' else '{}' end)) || v.snapshots,
       coalesce((c.checkpoint ->> 'v')::int, 0) < 4 and exists (
         select from $.checkpoint_writes w where w.thread_id = c.thread_id and w.checkpoint_ns = c.checkpoint_ns
         and w.checkpoint_id = c.parent_checkpoint_id and w.channel = '__pregel_tasks'),
       c.metadata ? %(js)s
from $.checkpoints c
cross join lateral (
  select coalesce(array_agg(k.key) filter (where k.has_blob or k.value is not null), '{}') as stored,
         coalesce(array_agg(k.key) filter (where not k.has_blob and not k.has_key), '{}') as absent,
         coalesce(array_agg(k.key) filter (where k.has_blob and k.value = 'true'), '{}') as snapshots
  from (
    select e.key, c.checkpoint -> 'channel_values' ->> e.key as value,
           coalesce(c.checkpoint -> 'channel_values' ? e.key, false) as has_key,
           exists (select from $.checkpoint_blobs b where b.thread_id = c.thread_id
             and b.checkpoint_ns = c.checkpoint_ns and b.channel = e.key and b.version = e.value) as has_blob
    from jsonb_each_text(c.checkpoint -> 'channel_versions') e offset 0) k) v
where c.thread_id = %(thread)s
"""

_BLOBS: Final = """
select b.checkpoint_ns, b.channel, b.version, coalesce(pg_column_size(b.blob), 0) from $.checkpoint_blobs b
where b.thread_id = %(thread)s and (b.checkpoint_ns, b.channel, b.version) not in (
  select c.checkpoint_ns, e.key, e.value
  from $.checkpoints c cross join lateral jsonb_each_text(c.checkpoint -> 'channel_versions') e
  where c.thread_id = %(thread)s and (c.checkpoint_ns, c.checkpoint_id) not in (
    select d.ns, d.id from unnest(%(namespaces)s::text[], %(ids)s::text[]) as d (ns, id)))
"""

_ROWS: Final = """
select count(*), coalesce(sum({size}), 0) from {table} r
where r.thread_id = %(thread)s and (r.checkpoint_ns, r.checkpoint_id) in (
  select d.ns, d.id from unnest(%(namespaces)s::text[], %(ids)s::text[]) as d (ns, id))
"""

_DELETE: Final = """
delete from {table} r using unnest(%(namespaces)s::text[], %(ids)s::text[]) as d (ns, id)
where r.thread_id = %(thread)s and r.checkpoint_ns = d.ns and r.checkpoint_id = d.id
"""

_DELETE_BLOBS: Final = """
delete from $.checkpoint_blobs b using unnest(%(namespaces)s::text[], %(channels)s::text[], %(versions)s::text[])
  as d (ns, channel, version)
where b.thread_id = %(thread)s and b.checkpoint_ns = d.ns and b.channel = d.channel and b.version = d.version
"""

_FORGET_PARENTS: Final = """
update $.checkpoints c set parent_checkpoint_id = null
where c.thread_id = %(thread)s and c.parent_checkpoint_id is not null and not exists (
  select from $.checkpoints p where p.thread_id = c.thread_id and p.checkpoint_ns = c.checkpoint_ns
  and p.checkpoint_id = c.parent_checkpoint_id)
"""


_FOUND: Final = """
select count(*), 0 from pg_class c join pg_namespace n on n.oid = c.relnamespace
where n.nspname = %(schema)s and c.relname = any(%(tables)s) and c.relkind in ('r', 'p')
"""

_SIZE: Final = "select count(*), pg_total_relation_size('$.{table}') from $.{table}"

_API_ROLES: Final = "select r.rolname from pg_roles r where r.rolname in ('anon', 'authenticated') order by 1"

_OPEN: Final = """
select o.relname, o.is_open, o.is_granted from (
  select c.relname, not c.relrowsecurity as is_open, exists (
    select from aclexplode(c.relacl) a left join pg_roles r on r.oid = a.grantee
    where a.grantee = 0 or r.rolname in ('anon', 'authenticated')) as is_granted
  from pg_class c join pg_namespace n on n.oid = c.relnamespace
  where n.nspname = %(schema)s and c.relname = any(%(tables)s) and c.relkind in ('r', 'p')) o
where o.is_open or o.is_granted order by o.relname
"""


@dataclass(frozen=True)
class TableSize:
    """A table's size.

    Attributes:
        rows: How many rows it has.
        bytes: Its size with its indexes, in bytes.
    """

    rows: int
    bytes: int


@dataclass
class TidyReport:
    """What was pruned, or would be.

    Attributes:
        threads: How many threads were read.
        skipped: How many threads LangGraph.js wrote with delta channels; they are left as they are.
        checkpoints: How many checkpoints went.
        writes: How many pending writes went with them.
        blobs: How many values of channels went, to which no checkpoint refers.
        bytes: What these rows held, in bytes.
        before: The sizes of the tables before, by name.
        after: The sizes afterwards; the same as before if nothing was to be changed.
        closed: The tables whose row level security was switched on, or whose grants were revoked.
    """

    threads: int = 0
    skipped: int = 0
    checkpoints: int = 0
    writes: int = 0
    blobs: int = 0
    bytes: int = 0
    before: dict[str, TableSize] | None = None
    after: dict[str, TableSize] | None = None
    closed: tuple[str, ...] = ()


def tidy(
    conn_string: str,
    *,
    schema: str = "public",
    newest: int = 1,
    days: float = 7,
    closes: bool = True,
    dry_run: bool = False,
    report: Callable[[TidyReport], None] | None = None,
) -> TidyReport:
    """Prune LangGraph's checkpoints, and close their tables to the Data API.

    A graph resumes at every checkpoint that is left, with its pending writes. What a run saves meanwhile is not
    touched. A run that starts from an old checkpoint by its id must not begin while that one is pruned.

    Args:
        conn_string: A direct connection, or one through a pooler, of the role that owns the tables.
        schema: The schema of the tables.
        newest: How many of the newest checkpoints of each namespace of a thread are kept.
        days: Checkpoints younger than this many days are kept.
        closes: Whether row level security is switched on, and grants to `anon`, `authenticated` and everybody are
            revoked.
        dry_run: Whether to change nothing, and only report.
        report: Called after each thread with what was done so far.

    Returns:
        What went, with the sizes before and afterwards. Postgres reuses the space of deleted rows; `vacuum full`, which
        locks the table, gives it back to the system.

    Raises:
        ConfigurationError: An argument is out of range.
        MissingDependencyError: The extra `postgres` is not installed.
        NotFoundError: The schema has no such tables.
        SupabaseMemoryError: The database refused, or could not be reached.
    """
    try:
        import psycopg
    except ImportError:
        raise MissingDependencyError("Pruning checkpoints", "postgres") from None
    addresses.postgres(conn_string)
    number("newest", newest, integer=True, above=True, optional=False, example=1)
    number("days", days, above=False, optional=False, example=7)
    if not schema:
        raise ConfigurationError("schema is empty.", hint='Pass the schema of the tables, such as "public".')
    now = datetime.now(UTC)
    limits = {
        "newest": newest,
        "younger_than": now - timedelta(days=days),
        "orphans_from": now - timedelta(hours=ORPHAN_HOURS),
    }
    try:
        with psycopg.connect(
            conn_string, connect_timeout=10, prepare_threshold=None, autocommit=True, **addresses.ENCODING
        ) as connection:
            tables = _Tables(connection, schema)
            return _tidy(tables, limits, closes=closes, dry_run=dry_run, report=report or (lambda _: None))
    except psycopg.Error as error:
        raise (from_code(error.sqlstate) if error.sqlstate else connection_failed(str(error))) from None


class _Tables:
    """Executes statements on the tables of one schema: `$.` stands for it.

    Args:
        connection: A connection in autocommit mode.
        schema: The schema.
    """

    def __init__(self, connection: Connection[Any], schema: str) -> None:
        self.connection = connection
        self.schema = schema
        self._prefix = '"' + schema.replace('"', '""') + '".'

    def execute(self, statement: str, arguments: Mapping[str, Any] | None = None) -> Cursor[Any]:
        return self.connection.execute(statement.replace("$.", self._prefix).encode(), arguments)

    def row(self, statement: str, arguments: Mapping[str, Any] | None = None) -> tuple[int, int]:
        """Return the two numbers of a statement's only row."""
        first, second = self.execute(statement, arguments).fetchone() or (0, 0)
        return int(first), int(second)


def _tidy(
    tables: _Tables,
    limits: Mapping[str, Any],
    *,
    closes: bool,
    dry_run: bool,
    report: Callable[[TidyReport], None],
) -> TidyReport:
    named = {"schema": tables.schema, "tables": list(TABLES)}
    if tables.row(_FOUND, named)[0] < len(TABLES):
        raise NotFoundError(
            f"The schema {tables.schema} has no tables of LangGraph's checkpoints.",
            hint="PostgresSaver.setup() creates them. Name their schema with --schema.",
        )
    done = TidyReport(before=_sizes(tables))
    for thread in _threads(tables):
        done.threads += 1
        _prune(tables, thread, limits, dry_run, done)
        report(done)
    if closes:
        done.closed = _close(tables, dry_run)
    if not dry_run and (done.checkpoints or done.blobs):
        for table in TABLES:
            tables.execute(f"vacuum (analyze) $.{table}")
    done.after = done.before if dry_run else _sizes(tables)
    return done


def _sizes(tables: _Tables) -> dict[str, TableSize]:
    return {table: TableSize(*tables.row(_SIZE.replace("{table}", table))) for table in TABLES}


def _threads(tables: _Tables) -> Iterator[str]:
    after = ""
    while True:
        page = tables.execute(_THREADS, {"after": after, "page": PAGE}).fetchall()
        for (thread,) in page:
            yield thread
        if len(page) < PAGE:
            return
        after = page[-1][0]


def _prune(tables: _Tables, thread: str, limits: Mapping[str, Any], dry_run: bool, done: TidyReport) -> None:
    rows = tables.execute(_CHECKPOINTS, {"thread": thread, "js": _JS_THREAD}).fetchall()
    if any(row[-1] for row in rows):
        done.skipped += 1
        return
    checkpoints = _parse(rows)
    kept = retained(checkpoints, **limits)
    removed = [each for each in checkpoints if (each.namespace, each.id) not in kept]
    # Subgraphs first, so that a stop leaves no call without the checkpoint from which it was called.
    removed.sort(key=lambda each: (each.namespace == ROOT, each.id))
    named = {"namespaces": [each.namespace for each in removed], "ids": [each.id for each in removed]}
    blobs = tables.execute(_BLOBS, {"thread": thread, **named}).fetchall()
    for start in range(0, len(removed), BATCH):
        part = {name: listed[start : start + BATCH] for name, listed in named.items()}
        _remove_checkpoints(tables, {"thread": thread, **part}, dry_run, done)
    for start in range(0, len(blobs), BATCH):
        _remove_blobs(tables, thread, blobs[start : start + BATCH], dry_run, done)
    if removed and not dry_run:
        tables.execute(_FORGET_PARENTS, {"thread": thread})


def _parse(rows: Sequence[Sequence[Any]]) -> list[Checkpoint]:
    delta = {(row[0], channel) for row in rows for channel in row[7]}
    return [
        Checkpoint(
            namespace,
            name,
            parent,
            root,
            saved_at,
            frozenset(stored),
            frozenset(channel for channel in absent if (namespace, channel) in delta),
            reads_parent,
        )
        for namespace, name, parent, root, saved_at, stored, absent, _, reads_parent, _ in rows
    ]


def _remove_checkpoints(tables: _Tables, arguments: Mapping[str, Any], dry_run: bool, done: TidyReport) -> None:
    with tables.connection.transaction():
        writes, writes_size = tables.row(_counted("checkpoint_writes", "pg_column_size(r.blob)"), arguments)
        sizes = "pg_column_size(r.checkpoint) + pg_column_size(r.metadata)"
        checkpoints, size = tables.row(_counted("checkpoints", sizes), arguments)
        done.writes += writes
        done.checkpoints += checkpoints
        done.bytes += size + writes_size
        if not dry_run:
            tables.execute(_DELETE.replace("{table}", "checkpoint_writes"), arguments)
            tables.execute(_DELETE.replace("{table}", "checkpoints"), arguments)


def _counted(table: str, size: str) -> str:
    return _ROWS.replace("{table}", table).replace("{size}", size)


def _remove_blobs(
    tables: _Tables, thread: str, blobs: Sequence[Sequence[Any]], dry_run: bool, done: TidyReport
) -> None:
    namespaces, channels, versions, sizes = zip(*blobs, strict=True)
    done.blobs += len(sizes)
    done.bytes += sum(sizes)
    if not dry_run:
        part = {"namespaces": [*namespaces], "channels": [*channels], "versions": [*versions]}
        tables.execute(_DELETE_BLOBS, {"thread": thread, **part})


def _close(tables: _Tables, dry_run: bool) -> tuple[str, ...]:
    """Switch row level security on, and revoke grants; return the tables for which that was needed."""
    grantees = ", ".join(["public", *(name for (name,) in tables.execute(_API_ROLES))])
    closed = []
    named = {"schema": tables.schema, "tables": list(LOCKED_TABLES)}
    for table, is_open, is_granted in tables.execute(_OPEN, named).fetchall():
        closed.append(f"{tables.schema}.{table}")
        if dry_run:
            continue
        with tables.connection.transaction():
            tables.execute(_LOCK_TIMEOUT)
            if is_open:
                tables.execute(f"alter table $.{table} enable row level security")
            if is_granted:
                tables.execute(f"revoke all on table $.{table} from {grantees}")
    return tuple(closed)
