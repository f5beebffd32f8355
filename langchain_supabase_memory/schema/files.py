"""The script as migration files for `supabase db push`, which then owns their history."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from langchain_supabase_memory.schema import script

if TYPE_CHECKING:
    from pathlib import Path


def write(folder: Path, dimensions: int, *, vector_index: bool = False, now: datetime | None = None) -> list[Path]:
    """Write what is new since the last time into a folder of Supabase migrations.

    A file that is there is never touched. Tables are known by their name, the functions and access rules by their
    checksum, so a second run writes nothing, and after an upgrade only what the upgrade brought is written.

    Args:
        folder: Usually `supabase/migrations`; made if absent.
        dimensions: The embedding width, 1 to 16,000.
        vector_index: Also write the index over the vectors of chunks.
        now: The time the new files are named for; the present by default.

    Returns:
        The files written, in the order they are applied.

    Raises:
        ConfigurationError: `dimensions` is out of range.
    """
    # Each file is a migration of its own, so the lock and the ledger are one.
    lock, ledger, *others = script.parts(dimensions, vector_index=vector_index)
    wanted = [replace(ledger, sql=lock.sql + ledger.sql), *others]
    folder.mkdir(parents=True, exist_ok=True)
    present = [path.name for path in folder.glob("*.sql")]
    # `db push` applies files in the order of their names and refuses one older than the newest applied.
    stamps = [name.split("_", 1)[0] for name in present if name[:14].isdigit()]
    first = now or datetime.now(UTC)
    if stamps and max(stamps)[:14] >= first.strftime("%Y%m%d%H%M%S"):
        first = datetime.strptime(max(stamps)[:14], "%Y%m%d%H%M%S").replace(tzinfo=UTC) + timedelta(seconds=1)
    written: list[Path] = []
    for part in wanted:
        # A changed width must reach the database, whose ledger refuses it with a clear error.
        suffix = f"_langchain_supabase_memory_{part.name}"
        if part.name == "ledger":
            suffix += f"_{dimensions}"
        if part.name == "functions_and_access":
            suffix += f"_{part.checksum[:8]}"
        if any(name.endswith(suffix + ".sql") for name in present):
            continue
        stamp = first + timedelta(seconds=len(written))
        path = folder / f"{stamp:%Y%m%d%H%M%S}{suffix}.sql"
        path.write_text(part.sql, encoding="utf-8")
        written.append(path)
    return written
