"""The script as migration files for `supabase db push`, which then owns their history."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from langchain_supabase_memory.adapters.schema import script

if TYPE_CHECKING:
    from pathlib import Path


def write(
    folder: Path,
    vector_schema: str = script.VECTOR_SCHEMA,
    *,
    vector_index: int | None = None,
    now: datetime | None = None,
) -> list[Path]:
    """Write what is new since the last time into a folder of Supabase migrations.

    A file that is there is never touched. Tables and indexes are known by their name, all else by its checksum, so a
    second run writes nothing, and after an upgrade, or where pgvector has moved, only what that brought is written.

    Args:
        folder: Usually `supabase/migrations`; made if absent.
        vector_schema: The schema that pgvector lies in.
        vector_index: Also write the index over the vectors of chunks of this width, 1 to 4,000 dimensions.
        now: The time the new files are named for; the present by default.

    Returns:
        The files written, in the order they are applied.

    Raises:
        ConfigurationError: As for `script.parts`.
    """
    # Each file is a migration of its own, so the lock and what it is for are one.
    lock, vector, ledger, *others = script.parts(vector_schema, vector_index=vector_index)
    wanted = [replace(vector, sql=lock.sql + vector.sql), replace(ledger, sql=lock.sql + ledger.sql), *others]
    folder.mkdir(parents=True, exist_ok=True)
    present = [path.name for path in folder.glob("*.sql")]
    # `db push` applies files in the order of their names and refuses one older than the newest applied.
    stamps = [name.split("_", 1)[0] for name in present if name[:14].isdigit()]
    first = now or datetime.now(UTC)
    if stamps and max(stamps)[:14] >= first.strftime("%Y%m%d%H%M%S"):
        first = datetime.strptime(max(stamps)[:14], "%Y%m%d%H%M%S").replace(tzinfo=UTC) + timedelta(seconds=1)
    written: list[Path] = []
    for part in wanted:
        suffix = f"_langchain_supabase_memory_{part.name}"
        if part.name in ("vector", "ledger", "functions_and_access"):
            suffix += f"_{part.checksum[:8]}"
        if any(name.endswith(suffix + ".sql") for name in present):
            continue
        stamp = first + timedelta(seconds=len(written))
        path = folder / f"{stamp:%Y%m%d%H%M%S}{suffix}.sql"
        path.write_text(part.sql, encoding="utf-8")
        written.append(path)
    return written
