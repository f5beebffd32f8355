"""Measure import and export, next to COPY of the same rows into and out of the same table."""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final

import psycopg

from benchmarks import fill
from benchmarks.harness import Table, verdict
from langchain_supabase_memory.transfer import export_conversations, import_conversations
from langchain_supabase_memory.transfer.sources import jsonl

if TYPE_CHECKING:
    from benchmarks.services import Lab, Site

IMPORT_BOUND: Final = 3.0
EXPORT_BOUND: Final = 2.0
_COLUMNS: Final = (
    "conversation_id, sequence, message_id, role, text, characters, tokens, created_at, metadata, images, payload"
)
_READ: Final = (
    f"select {_COLUMNS} from memory.conversation_messages where user_id = 'bench' and conversation_id = any (%s)"
)


@dataclass(frozen=True)
class _Shape:
    """Conversations of one size.

    Attributes:
        name: The prefix of their thread names.
        agent_id: Their agent.
        messages: The number of messages in each.
        copies: The number of conversations.
        bounds: The maximum ratios to COPY for an export and an import; `None` if only reported.
    """

    name: str
    agent_id: str
    messages: int
    copies: int
    bounds: tuple[float, float] | None


async def run(lab: Lab) -> list[Table]:
    site = lab.site("off")
    long, short, rounds = (5, 100, 3) if lab.quick else (20, 1000, 7)
    return [
        _table(site, _Shape("transfer-", "transfer", 1000, long, (EXPORT_BOUND, IMPORT_BOUND)), rounds),
        _table(site, _Shape("brief-", "brief", 15, short, None), rounds),
    ]


def _table(site: Site, shape: _Shape, rounds: int) -> Table:
    threads = fill.messages(site, shape.name, shape.messages, copies=shape.copies)
    with psycopg.connect(site.superuser, autocommit=True) as connection:  # so that an export only includes these
        connection.execute(
            "update memory.conversations set agent_id = %s where user_id = 'bench' and thread_id = any (%s)",
            [shape.agent_id, threads],
        )
    fill.vacuum(site)
    times: dict[str, list[float]] = {name: [] for name in ("COPY out", "export", "COPY in", "import")}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(rounds):
            for name, seconds in _round(site, shape, Path(folder), number).items():
                times[name].append(seconds * 1000)
    found = {name: median(values) for name, values in times.items()}
    out, into = found["export"] / found["COPY out"], found["import"] / found["COPY in"]
    rows: list[list[str | float]] = [
        ["COPY out, same rows", found["COPY out"], 1.0],
        ["export_conversations", found["export"], out],
        ["COPY in, same rows", found["COPY in"], 1.0],
        ["import_conversations", found["import"], into],
    ]
    notes = []
    if shape.bounds is not None:
        notes.append(verdict("export, ratio to COPY", out, shape.bounds[0]))
        notes.append(verdict("import, ratio to COPY", into, shape.bounds[1]))
    title = (
        f"Import and export of {shape.copies:,} conversations of {shape.messages:,} messages, direct, "
        "synchronous_commit=off"
    )
    return Table(title, ["", "ms", "x COPY"], rows, notes)


def _round(site: Site, shape: _Shape, folder: Path, number: int) -> dict[str, float]:
    """Return the seconds of one run of each."""
    owner = f"import-{shape.agent_id}-{number}"
    exporting, importing, path = site.direct(), site.direct(owner), folder / "all.jsonl"
    taken: dict[str, float] = {}

    def timed(name: str, function: Any) -> Any:
        began = time.perf_counter()
        result = function()
        taken[name] = time.perf_counter() - began
        return result

    with psycopg.connect(site.conn_string) as connection:
        found = connection.execute(
            "select array_agg(id) from memory.conversations where user_id = 'bench' and agent_id = %s", [shape.agent_id]
        ).fetchone()
        assert found is not None
        data = timed("COPY out", lambda: _copied_out(connection, folder / "rows", found[0]))
        timed("export", lambda: export_conversations(exporting, path, agent_id=shape.agent_id))
        copied = f"copy-{shape.agent_id}-{number}"
        connection.execute(
            "insert into memory.conversations (user_id, id, thread_id)"
            " select %s, id, thread_id from memory.conversations where user_id = 'bench' and agent_id = %s",
            [copied, shape.agent_id],
        )
        timed("COPY in", lambda: _copied_in(connection, copied, data))
    timed("import", lambda: import_conversations(importing, jsonl(path)))
    return taken


def _copied_out(connection: psycopg.Connection[Any], path: Path, conversations: list[Any]) -> bytes:
    with (
        path.open("wb") as file,
        connection.cursor().copy(f"copy ({_READ}) to stdout".encode(), [conversations]) as rows,
    ):
        for part in rows:
            file.write(part)
    return path.read_bytes()


def _copied_in(connection: psycopg.Connection[Any], owner: str, data: bytes) -> None:
    lines = b"".join(owner.encode() + b"\t" + line + b"\n" for line in data.split(b"\n") if line)
    into = f"copy memory.conversation_messages (user_id, {_COLUMNS}) from stdin"
    with connection.cursor().copy(into.encode()) as rows:
        rows.write(lines)
    connection.commit()
