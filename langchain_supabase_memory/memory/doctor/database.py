"""Checks of the database: schema, pgvector, access rights, sizes, vacuum."""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory.humanize import duration
from langchain_supabase_memory.memory.doctor.finding import Finding, green, red, yellow

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_supabase_memory.memory.doctor.migration import NextMigration

_MIN_PGVECTOR: Final = (0, 7)
_HNSW_FIXED: Final = (0, 8, 4)
"""Before this version HNSW indexes have known bugs."""

_MAX_NAMED: Final = 5
_CUSTOM_GRANT: Final = re.compile(r'(?!(?:anon|authenticated|service_role|everybody) )("[^"]*"|\S+) may ')
"""A right of a role that is not one of Supabase's: it was granted on purpose."""

_REALTIME_TABLES: Final = {"memory.conversations", "memory.conversation_summary_boards"}

_MAX_DEAD_ROWS: Final = 10_000
_MAX_LAG_SECONDS: Final = 60.0


def schema(due: NextMigration) -> Finding:
    """Compare the database's schema with the schema of this release.

    Args:
        due: What is installed, and what this release installs.
    """
    installed, expected = due.installed, due.expected
    if dict(installed) | {"version": expected.version, "vector_moved_to": None, "spaces": False} == asdict(expected):
        switched = "on" if installed["spaces"] else "off"
        return green("schema", f"The schema matches this release, {expected.version}. Spaces are {switched}.")
    words = f"The schema is of release {installed['version']}, but this package is of release {expected.version}."
    if installed["version"] == expected.version:
        words = f"The schema is of release {expected.version}, but its tables or functions differ from that release."
    return red("schema", words, due.action())


def pgvector(
    row: Mapping[str, Any] | None, due: NextMigration, indexes: Sequence[str], broken: Sequence[str]
) -> Finding:
    """Check that pgvector is installed, where the functions expect it, and new enough.

    Args:
        row: Its version and schema; `None` if it is not installed.
        due: What is installed: the functions may look for it in another schema.
        indexes: The names of the vector indexes.
        broken: The names of the vector indexes whose build did not finish.
    """
    name = "pgvector"
    if row is None:
        return red(name, "pgvector is not installed in this database.", f"Create the extension vector. {due.action()}")
    where = f"pgvector {row['version']} is in the schema {row['schema']}"
    if due.installed.get("vector_moved_to") is not None:
        return red(name, f"{where}. It has moved since the last migration.", due.action())
    version = tuple(int(part) for part in re.findall(r"\d+", row["version"]))
    update = "Update pgvector on the server, then run: alter extension vector update"
    if version < _MIN_PGVECTOR:
        return red(name, f"{where}. This version is too old.", f"{update};")
    if broken:
        words = f"{where}. The build of the index {broken[0]} did not finish: writes maintain it, but no query uses it."
        return red(name, words, f"Run: drop index memory.{broken[0]}; then migrate with --vector-index again.")
    if indexes and version < _HNSW_FIXED:
        words = f"{where}. This database has an HNSW index, and HNSW has known bugs before 0.8.4."
        return yellow(name, words, f"{update}; reindex index memory.{indexes[0]};")
    return green(name, f"{where}.")


def access(added: Sequence[str], missing: Sequence[str], due: NextMigration) -> Finding:
    """Compare row level security, grants, policies and functions with the last migration.

    Args:
        added: What was added since the last migration.
        missing: What was removed since.
        due: What a migration does.
    """
    if not added and not missing:
        return green("access", "Row level security, grants and policies match this release.")
    changes = [f"missing: {each}" for each in missing] + [f"added: {each}" for each in added]
    more = f"; and {len(changes) - _MAX_NAMED} more" if len(changes) > _MAX_NAMED else ""
    words = f"Access rights differ from this release; {'; '.join(changes[:_MAX_NAMED])}{more}."
    if not missing and all(map(_CUSTOM_GRANT.match, added)):
        return yellow("access", words, "Ignore this if you granted these rights on purpose. Otherwise revoke them.")
    action = due.action("Run `supabase-memory migrate` as the role that set the database up, which restores them")
    return red("access", words, f"{action} Find out who changed them.")


def checkpoints(open_tables: Sequence[str]) -> Finding:
    """Check whether LangGraph's own tables lie open: they hold the whole state of every thread.

    Args:
        open_tables: Those that the Data API's users reach.
    """
    if not open_tables:
        return green("checkpoints", "No table of LangGraph's checkpoints is open to the Data API.")
    return red(
        "checkpoints",
        f"The Data API's users reach LangGraph's {_name_some(open_tables)}, which hold the state of all threads.",
        "Run `supabase-memory tidy`, which switches row level security on and revokes the grants.",
    )


def realtime(row: Mapping[str, Any], due: NextMigration) -> Finding:
    """Check what Supabase Realtime publishes.

    Args:
        row: The answer of `memory_worker_doctor`.
        due: What a migration does.
    """
    name, migrate = "realtime", due.action("Run `supabase-memory migrate --realtime`")
    published, wal_level = row["published"], row["wal_level"]
    if not published:
        return green(name, "Realtime publishes no table of the memory.")
    private = [each for each in published if each.startswith("memory_private.")]
    if private:
        words = f"Realtime publishes {private[0]}, which only servers may read."
        action = due.action("Run `supabase-memory migrate --no-realtime`, then the same with --realtime")
        return red(name, words, action)
    if unidentified := row["unidentified"]:
        words = f"The table memory.{unidentified[0]} has no replica identity, so Postgres refuses to change its rows."
        return red(name, words, f"Run: alter table memory.{unidentified[0]} replica identity default;")
    if added := row["columns_added"]:
        return red(name, f"Realtime publishes columns that clients should not get: {_name_some(added)}.", migrate)
    if lacking := row["columns_missing"]:
        return yellow(name, f"Realtime does not publish {_name_some(lacking)}, which clients need.", migrate)
    missing, more = sorted(_REALTIME_TABLES - {*published}), sorted({*published} - _REALTIME_TABLES)
    if missing or more:
        words = f"Realtime should publish conversations and boards, but it publishes {', '.join(published)}."
        action = f"{migrate} Tables that you added on purpose can stay: row level security applies to them."
        return yellow(name, words, action)
    if wal_level != "logical":
        words = f"Realtime needs wal_level = logical, but the server has wal_level = {wal_level}."
        return yellow(name, words, "Set wal_level = logical, as on Supabase, and restart the server.")
    return green(name, "Realtime publishes conversations and boards to their owners.")


def replica(lag_seconds: float | None) -> list[Finding]:
    """Check how far a replica is behind; return no finding for a primary.

    Args:
        lag_seconds: The maximum lag in seconds; `None` if the server is not a replica.
    """
    if lag_seconds is None:
        return []
    if lag_seconds <= _MAX_LAG_SECONDS:
        return [green("replica", "The server is a read replica and keeps up with its primary.")]
    words = f"The server is a read replica and up to {duration(lag_seconds)} behind its primary."
    action = "Check the replica's log and disk. Until it has caught up, read recent writes from the primary."
    return [yellow("replica", words, action)]


def sizes(tables: Sequence[Mapping[str, Any]]) -> Finding:
    """Report the sizes of the tables.

    Args:
        tables: The tables, with `name`, `bytes` and `rows`.
    """
    rows = {each["name"]: each["rows"] for each in tables}
    counts = ", ".join(
        f"about {rows.get(f'memory.{table}', 0):,} {label}"
        for table, label in (
            ("conversations", "conversations"),
            ("conversation_messages", "messages"),
            ("working_memory_chunks", "chunks"),
        )
    )
    largest = max(tables, key=lambda each: each["bytes"])
    total = sum(each["bytes"] for each in tables)
    return green(
        "sizes",
        f"The tables take {_megabytes(total)}: {counts}. {largest['name']} is the largest, with "
        f"{_megabytes(largest['bytes'])}.",
    )


def nodes() -> Finding:
    """Report that sizes are unknown because Citus distributes the tables: the coordinator stores none of the rows."""
    return green(
        "sizes", "The rows are on the Citus nodes and not measured here. Use citus_total_relation_size for a table."
    )


def vacuum(is_on: bool, tables: Sequence[Mapping[str, Any]], *, is_distributed: bool = False) -> Finding:
    """Check whether dead rows are removed.

    Args:
        is_on: Whether autovacuum is on.
        tables: The tables, with `name`, `rows`, `dead_rows` and `is_vacuumed`.
        is_distributed: Whether Citus distributes the tables over several nodes, which are not checked.
    """
    name = "autovacuum"
    if not is_on:
        action = "Run: alter system set autovacuum = on, and track_counts = on; select pg_reload_conf();"
        return red(name, "Autovacuum is off on this server, so tables only grow.", action)
    left = [each["name"] for each in tables if not each["is_vacuumed"]]
    if left:
        words = f"Autovacuum is off for {_name_some(left)}, so dead rows stay."
        return red(name, words, f"Run: alter table {left[0]} reset (autovacuum_enabled);")
    behind = [each for each in tables if each["dead_rows"] > max(_MAX_DEAD_ROWS, each["rows"])]
    if behind:
        worst = max(behind, key=lambda each: each["dead_rows"])
        words = f"Autovacuum does not keep up: {worst['name']} has about {worst['dead_rows']:,} dead rows."
        return yellow(name, words, f"Run: vacuum {worst['name']}; and look for long-running transactions.")
    if is_distributed:
        return green(
            name, "Autovacuum is on at the coordinator. The Citus nodes, which have the rows, are not checked."
        )
    return green(name, "Autovacuum is on and keeps up.")


def _name_some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    return f"{', '.join(names[:_MAX_NAMED])}{more}"


def _megabytes(count: int) -> str:
    return f"{count / 1_048_576:,.1f} MB"
