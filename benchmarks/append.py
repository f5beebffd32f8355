"""Storing a turn of two messages, through both doors, in both colors, with and without waiting for the disk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from benchmarks import work
from benchmarks.harness import Table, interleaved, verdict

if TYPE_CHECKING:
    from benchmarks.services import Lab

DIRECT_BOUND: Final = 1.5
DATA_API_BOUND: Final = 1.3


async def direct(lab: Lab) -> list[Table]:
    return [await _direct(lab, commit) for commit in ("off", "on")]


async def data_api(lab: Lab) -> list[Table]:
    return [await _data_api(lab, commit) for commit in ("off", "on")]


async def _direct(lab: Lab, commit: str) -> Table:
    site = lab.site(commit)
    memory, pool, async_pool = site.direct(), site.pool(), await site.async_pool()

    def execute(statement: bytes, values: list[Any]) -> None:
        with pool.connection() as connection:
            connection.execute(statement, values)

    async def aexecute(statement: bytes, values: list[Any]) -> None:
        async with async_pool.connection() as connection:
            await connection.execute(statement, values)

    try:
        medians = await interleaved(
            {
                "sync floor": lambda turn: execute(work.FLOOR_INSERT, turn.floor_values),
                "sync sql": lambda turn: execute(work.SQL_APPEND, ["sync-sql", "bench", turn.rows_json]),
                "sync ours": lambda turn: memory.conversation("sync").append(turn.messages),
                "async floor": lambda turn: aexecute(work.FLOOR_INSERT, turn.floor_values),
                "async sql": lambda turn: aexecute(work.SQL_APPEND, ["async-sql", "bench", turn.rows_json]),
                "async ours": lambda turn: memory.conversation("async").aappend(turn.messages),
            },
            work.ready,
            rounds=60 if lab.quick else 600,
            seconds=8 if lab.quick else 60,
        )
    finally:
        await async_pool.close()
        await memory.aclose()
    return _table(
        f"Append of two messages, direct, synchronous_commit={commit}",
        medians,
        {
            "floor": "floor: one INSERT of two rows",
            "sql": "memory_append, JSON ready",
            "ours": "memory.append",
        },
        DIRECT_BOUND,
    )


async def _data_api(lab: Lab, commit: str) -> Table:
    site = lab.site(commit)
    memory, client, async_client = site.data_api(), site.client(), site.async_client()

    def sql(turn: work.Ready, thread_id: str) -> dict[str, Any]:
        return {"p_thread_id": thread_id, "p_user_id": "bench", "p_agent_id": "default", "p_messages": turn.rows}

    try:
        medians = await interleaved(
            {
                "sync floor": lambda turn: client.rpc("bench_insert", {"rows": turn.floor_rows}).execute(),
                "sync sql": lambda turn: client.rpc("memory_append", sql(turn, "rest-sync-sql")).execute(),
                "sync ours": lambda turn: memory.conversation("rest-sync").append(turn.messages),
                "async floor": lambda turn: async_client.rpc("bench_insert", {"rows": turn.floor_rows}).execute(),
                "async sql": lambda turn: async_client.rpc("memory_append", sql(turn, "rest-async-sql")).execute(),
                "async ours": lambda turn: memory.conversation("rest-async").aappend(turn.messages),
            },
            work.ready,
            rounds=40 if lab.quick else 500,
            seconds=8 if lab.quick else 60,
        )
    finally:
        await async_client.aclose()
        await memory.aclose()
    return _table(
        f"Append of two messages, Data API, synchronous_commit={commit}",
        medians,
        {"floor": "floor: one bare RPC that inserts", "sql": "memory_append, rows ready", "ours": "memory.append"},
        DATA_API_BOUND,
    )


def _table(title: str, medians: dict[str, float], names: dict[str, str], bound: float) -> Table:
    rows: list[list[str | float]] = []
    for kind, name in names.items():
        sync, asynchronous = medians[f"sync {kind}"], medians[f"async {kind}"]
        rows.append([name, sync, sync / medians["sync floor"], asynchronous, asynchronous / medians["async floor"]])
    notes = [verdict(color, medians[f"{color} ours"] / medians[f"{color} floor"], bound) for color in ("sync", "async")]
    return Table(title, ["", "sync ms", "x floor", "async ms", "x floor"], rows, notes)
