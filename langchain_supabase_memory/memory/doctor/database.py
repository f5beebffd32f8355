"""Checks of the database: schema, pgvector, access rights, sizes, vacuum."""

from __future__ import annotations

import re
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory.adapters.schema import script
from langchain_supabase_memory.effects import INLINE_LIMIT, Flow, offload
from langchain_supabase_memory.memory.doctor.finding import Finding, duration_text, green, red, yellow

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_MIGRATE: Final = "Run `supabase-memory migrate` with this release of langchain-supabase-memory."
_OLDEST: Final = (0, 7)
_SOUND: Final = (0, 8, 4)
"""Before this version HNSW indexes have known bugs."""

_SHOWN: Final = 5
_TO_OTHERS: Final = re.compile(r'(?!(?:anon|authenticated|service_role|everybody) )("[^"]*"|\S+) may ')
"""A right of a role that is not one of Supabase's: it was granted on purpose."""

_LIVE: Final = {"memory.conversations", "memory.conversation_summary_boards"}

_MANY_DEAD: Final = 10_000
_BEHIND_SECONDS: Final = 60.0


def schema(installed: Mapping[str, Any]) -> Flow[Finding]:
    """Compare the database's schema with that of this release.

    Args:
        installed: The answer of `memory_schema`.
    """
    make = partial(script.current, installed.get("vector_schema", script.VECTOR_SCHEMA))
    expected = yield from offload(make, INLINE_LIMIT)  # it reads every SQL file
    if dict(installed) | {"version": expected.version, "vector_moved_to": None} == asdict(expected):
        return green("schema", f"The schema is that of this release, {expected.version}.")
    words = f"The schema is of release {installed['version']}, and not of {expected.version} as this package."
    if installed["version"] == expected.version:
        words = f"The schema says that it is of release {expected.version}, and its tables or functions are of another."
    return red("schema", words, _MIGRATE)


def pgvector(
    row: Mapping[str, Any] | None, moved_to: str | None, indexes: Sequence[str], broken: Sequence[str]
) -> Finding:
    """Check where pgvector is installed, and whether its version is good.

    Args:
        row: Its version and schema; `None` if it is not installed.
        moved_to: The schema it is in, if the functions look for it in another.
        indexes: The names of the vector indexes.
        broken: The names of those that were not built completely.
    """
    name = "pgvector"
    if row is None:
        return red(name, "pgvector is not in this database.", f"Create the extension vector. {_MIGRATE}")
    where = f"pgvector {row['version']} lies in the schema {row['schema']}"
    if moved_to is not None:
        return red(name, f"{where}: it has moved since the last migration.", _MIGRATE)
    version = tuple(int(part) for part in re.findall(r"\d+", row["version"]))
    update = "Update pgvector on the server, then run: alter extension vector update"
    if version < _OLDEST:
        return red(name, f"{where}: it is too old.", f"{update};")
    if broken:
        words = f"{where}, and its index {broken[0]} was not built to its end: it is written, and never used."
        return red(name, words, f"Run: drop index memory.{broken[0]}; then migrate with --vector-index again.")
    if indexes and version < _SOUND:
        words = f"{where}: an HNSW index, which you have, has known faults below 0.8.4."
        return yellow(name, words, f"{update}; reindex index memory.{indexes[0]};")
    return green(name, f"{where}.")


def access(added: Sequence[str], missing: Sequence[str]) -> Finding:
    """Compare row level security, grants, policies and functions with those of the release.

    Args:
        added: What was added since the last migration.
        missing: What was removed since.
    """
    if not added and not missing:
        return green("access", "Row level security, grants and policies are as they were shipped.")
    changes = [f"no more: {each}" for each in missing] + [f"new: {each}" for each in added]
    more = f"; and {len(changes) - _SHOWN} more" if len(changes) > _SHOWN else ""
    words = f"Rights are not as they were shipped; {'; '.join(changes[:_SHOWN])}{more}."
    if not missing and all(map(_TO_OTHERS.match, added)):
        return yellow(
            "access", words, "Leave it if you gave these rights; else `supabase-memory migrate`, and revoke them."
        )
    action = "Run `supabase-memory migrate`, which sets them again; find out who changed them."
    return red("access", words, action)


def realtime(row: Mapping[str, Any]) -> Finding:
    """Check what Supabase Realtime publishes.

    Args:
        row: The answer of `memory_worker_doctor`.
    """
    name, on = "live", "Run `supabase-memory migrate --realtime`."
    published, wal_level = row["published"], row["wal_level"]
    if not published:
        return green(name, "Realtime publishes nothing of the memory.")
    private = [each for each in published if each.startswith("memory_private.")]
    if private:
        words = f"Realtime publishes {private[0]}, which is for servers."
        return red(name, words, "Run `supabase-memory migrate --no-realtime`, then with --realtime.")
    if unidentified := row["unidentified"]:
        words = f"Nothing identifies the rows of memory.{unidentified[0]}, so that Postgres refuses to change them."
        return red(name, words, f"Run: alter table memory.{unidentified[0]} replica identity default;")
    if added := row["columns_added"]:
        return red(name, f"Realtime publishes {_name_some(added)}, and not just the columns that a page shows.", on)
    if lacking := row["columns_missing"]:
        return yellow(name, f"Realtime does not publish {_name_some(lacking)}, which a page shows.", on)
    missing, more = sorted(_LIVE - {*published}), sorted({*published} - _LIVE)
    if missing or more:
        words = f"Realtime publishes {', '.join(published)}, and not just conversations and boards."
        return yellow(name, words, f"{on} What you added yourself, leave: row level security holds for it.")
    if wal_level != "logical":
        words = f"Realtime is to publish conversations and boards, and the server's wal_level is only {wal_level}."
        return yellow(name, words, "Set wal_level = logical, as Supabase has it, and start the server again.")
    return green(name, "Realtime publishes conversations and boards, to their owners.")


def replica(lag_seconds: float | None) -> list[Finding]:
    """Check how far a replica is behind; returns nothing for a primary.

    Args:
        lag_seconds: The maximum lag in seconds; `None` if the server is not a replica.
    """
    if lag_seconds is None:
        return []
    if lag_seconds <= _BEHIND_SECONDS:
        return [green("replica", "The server is a read replica, and follows its primary.")]
    words = f"The server is a read replica, and up to {duration_text(lag_seconds)} behind its primary."
    action = (
        "Look at the replica's log and its disk; until it has caught up, read at the primary what was just written."
    )
    return [yellow("replica", words, action)]


def sizes(tables: Sequence[Mapping[str, Any]]) -> Finding:
    """Report the sizes of the tables.

    Args:
        tables: The tables, with `name`, `bytes` and `rows`.
    """
    rows = {each["name"]: each["rows"] for each in tables}
    counts = ", ".join(
        f"about {rows.get(f'memory.{table}', 0):,} {said}"
        for table, said in (
            ("conversations", "conversations"),
            ("conversation_messages", "messages"),
            ("working_memory_chunks", "chunks"),
        )
    )
    largest = max(tables, key=lambda each: each["bytes"])
    total = sum(each["bytes"] for each in tables)
    return green(
        "sizes", f"{_megabytes(total)}: {counts}. {largest['name']} is the largest, {_megabytes(largest['bytes'])}."
    )


def nodes() -> Finding:
    """Report that sizes are unknown because Citus distributes the tables: the coordinator has none of the rows."""
    return green(
        "sizes", "The rows are on the nodes of Citus, and not measured here; ask citus_total_relation_size of a table."
    )


def vacuum(is_on: bool, tables: Sequence[Mapping[str, Any]], *, is_distributed: bool = False) -> Finding:
    """Check whether dead rows are removed.

    Args:
        is_on: Whether autovacuum is on.
        tables: The tables, with `name`, `rows`, `dead_rows` and `is_vacuumed`.
        is_distributed: Whether Citus distributes the tables over several nodes, which are not asked.
    """
    name = "autovacuum"
    if not is_on:
        return red(name, "The server does not vacuum: tables only grow.", "Run: alter system set autovacuum = on, "
                   "and track_counts = on; select pg_reload_conf();")  # fmt: skip
    left = [each["name"] for each in tables if not each["is_vacuumed"]]
    if left:
        words = f"Autovacuum leaves {', '.join(left[:_SHOWN])} out, and they only grow."
        return red(name, words, f"Run: alter table {left[0]} reset (autovacuum_enabled);")
    behind = [each for each in tables if each["dead_rows"] > max(_MANY_DEAD, each["rows"])]
    if behind:
        worst = max(behind, key=lambda each: each["dead_rows"])
        words = f"Autovacuum does not keep up: {worst['name']} has about {worst['dead_rows']:,} dead rows."
        return yellow(name, words, f"Run: vacuum {worst['name']}; and look for transactions that never end.")
    if is_distributed:
        return green(
            name, "Autovacuum is on at the coordinator; the nodes of Citus, which hold the rows, were not asked."
        )
    return green(name, "Autovacuum is on, and keeps up.")


def _name_some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more}"


def _megabytes(count: int) -> str:
    return f"{count / 1_048_576:,.1f} MB"
