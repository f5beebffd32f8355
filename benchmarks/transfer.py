"""Import and export, next to COPY of the same rows into and out of the same table."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final

import psycopg

from benchmarks import fill
from benchmarks.harness import Table, verdict
from langchain_supabase_memory import export_conversations, import_conversations
from langchain_supabase_memory.transfer.sources import jsonl

if TYPE_CHECKING:
    from benchmarks.services import Lab, Site

IMPORT_BOUND: Final = 3.0
EXPORT_BOUND: Final = 2.0
_MESSAGES: Final = 1000
_COLUMNS: Final = (
    "conversation_id, sequence, message_id, role, text, characters, tokens, created_at, metadata, images, payload"
)
_READ: Final = f"select {_COLUMNS} from memory.conversation_messages where user_id = 'bench'"


async def run(lab: Lab) -> list[Table]:
    site = lab.site("off")
    copies, rounds = (5, 3) if lab.quick else (20, 7)
    fill.messages(site, "transfer-", _MESSAGES, copies=copies)
    fill.vacuum(site)
    times: dict[str, list[float]] = {name: [] for name in ("COPY out", "export", "COPY in", "import")}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(rounds):
            for name, seconds in _round(site, Path(folder), number).items():
                times[name].append(seconds * 1000)
    found = {name: median(values) for name, values in times.items()}
    out, into = found["export"] / found["COPY out"], found["import"] / found["COPY in"]
    rows: list[list[str | float]] = [
        ["COPY out, same rows", found["COPY out"], 1.0],
        ["export_conversations", found["export"], out],
        ["COPY in, same rows", found["COPY in"], 1.0],
        ["import_conversations", found["import"], into],
    ]
    notes = [
        verdict("export, ratio to COPY", out, EXPORT_BOUND),
        verdict("import, ratio to COPY", into, IMPORT_BOUND),
    ]
    title = f"Import and export of {copies * _MESSAGES:,} messages, direct, synchronous_commit=off"
    return [Table(title, ["", "ms", "x COPY"], rows, notes)]


def _round(site: Site, folder: Path, number: int) -> dict[str, float]:
    """The seconds of each, once."""
    memory, path = site.direct(), folder / "all.jsonl"
    taken: dict[str, float] = {}

    def timed(name: str, function: Any) -> Any:
        began = time.perf_counter()
        result = function()
        taken[name] = time.perf_counter() - began
        return result

    with psycopg.connect(site.conn_string) as connection:
        data = timed("COPY out", lambda: _copied_out(connection, folder / "rows"))
        timed("export", lambda: export_conversations(memory, path, user_id="bench"))
        owner = f"copy-{number}"
        connection.execute(
            "insert into memory.conversations (user_id, id, thread_id)"
            " select %s, id, thread_id from memory.conversations where user_id = 'bench'",
            [owner],
        )
        timed("COPY in", lambda: _copied_in(connection, owner, data))
    timed("import", lambda: import_conversations(memory, jsonl(path), user_id=f"import-{number}"))
    return taken


def _copied_out(connection: psycopg.Connection[Any], path: Path) -> bytes:
    with path.open("wb") as file, connection.cursor().copy(f"copy ({_READ}) to stdout".encode()) as rows:
        for part in rows:
            file.write(part)
    return path.read_bytes()


def _copied_in(connection: psycopg.Connection[Any], owner: str, data: bytes) -> None:
    lines = b"".join(owner.encode() + b"\t" + line + b"\n" for line in data.split(b"\n") if line)
    into = f"copy memory.conversation_messages (user_id, {_COLUMNS}) from stdin"
    with connection.cursor().copy(into.encode()) as rows:
        rows.write(lines)
    connection.commit()
