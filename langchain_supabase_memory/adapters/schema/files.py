"""Writes the script as migration files for `supabase db push`, which then owns their history."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.adapters.schema import script
from langchain_supabase_memory.errors import ConfigurationError

if TYPE_CHECKING:
    from pathlib import Path

_SETTLED: Final = re.compile(r"v_asked +constant integer +:= (null|\d+);")
"""Matches the number of partitions that the ledger's file requests."""


def write(
    folder: Path,
    vector_schema: str = script.VECTOR_SCHEMA,
    *,
    vector_index: int | None = None,
    realtime: bool | None = None,
    spaces: bool | None = None,
    partitions: int | None = None,
    now: datetime | None = None,
) -> list[Path]:
    """Write the parts that are new since the last run into a folder of Supabase migrations.

    Existing files are never changed. Tables and indexes are identified by name, all else by checksum, so a second run
    writes nothing. After an upgrade, or if pgvector has moved, only the changed parts are written.

    Args:
        folder: Usually `supabase/migrations`; created if it does not exist.
        vector_schema: The schema that contains pgvector.
        vector_index: Also write the index over chunk vectors of this width, 1 to 4,000 dimensions.
        realtime: As for `script.parts`.
        spaces: As for `script.parts`.
        partitions: As for `script.parts`; a later run without it uses the number in the existing files.
        now: The timestamp in the names of new files; the current time by default.

    Returns:
        The files written, in the order they are applied.

    Raises:
        ConfigurationError: As for `script.parts`; the existing files create another number of partitions; or the folder
            is not writable. Then nothing is written.
    """
    partitions = _existing_partitions(folder, partitions)
    # Each file is a separate migration, so the lock and the statements it protects are one file.
    lock, vector, ledger, *others = script.parts(
        vector_schema, vector_index=vector_index, realtime=realtime, spaces=spaces, partitions=partitions
    )
    wanted = [replace(vector, sql=lock.sql + vector.sql), replace(ledger, sql=lock.sql + ledger.sql), *others]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        present = [path.name for path in folder.glob("*.sql")]
        return _write_all(_new(folder, wanted, present, now or datetime.now(UTC)))
    except OSError as error:
        raise ConfigurationError(
            f"The folder {folder} cannot be written to: {error.strerror or type(error).__name__}.",
            hint="Name a folder that you may write to, such as supabase/migrations. Nothing was written.",
        ) from None


def _existing_partitions(folder: Path, partitions: int | None) -> int | None:
    """Return the number of partitions in the existing files; the requested number if there are none.

    Raises:
        ConfigurationError: Another number is requested.
    """
    ledgers = sorted(folder.glob("*_langchain_supabase_memory_ledger_*.sql"))
    try:
        found = _SETTLED.search(ledgers[-1].read_text(encoding="utf-8")) if ledgers else None
    except OSError as error:
        raise ConfigurationError(
            f"The file {ledgers[-1]} cannot be read: {error.strerror or type(error).__name__}.",
            hint="Let yourself read the migrations that are there. Nothing was written.",
        ) from None
    if found is None:
        return partitions
    settled = None if found[1] == "null" else int(found[1])
    if partitions is not None and partitions != settled:
        tables = "plain tables" if settled is None else f"tables in {settled} partitions"
        raise ConfigurationError(
            f"The migrations in {folder} make {tables}, and not in {partitions} partitions.",
            hint="Leave --partitions out; or write into another folder, for a new database. Nothing was written.",
        )
    return settled


def _new(folder: Path, parts: list[script.ScriptPart], present: list[str], first: datetime) -> dict[Path, str]:
    """Return the missing files and their contents."""
    # `db push` applies files in the order of their names and refuses one older than the newest applied file.
    stamps = [name.split("_", 1)[0] for name in present if name[:14].isdigit()]
    if stamps and max(stamps)[:14] >= first.strftime("%Y%m%d%H%M%S"):
        first = datetime.strptime(max(stamps)[:14], "%Y%m%d%H%M%S").replace(tzinfo=UTC) + timedelta(seconds=1)
    new: dict[Path, str] = {}
    for part in parts:
        suffix = f"_langchain_supabase_memory_{part.name}"
        if part.name in ("vector", "ledger", "functions_and_access"):
            suffix += f"_{part.checksum[:8]}"
        if not any(name.endswith(suffix + ".sql") for name in present):
            new[folder / f"{first + timedelta(seconds=len(new)):%Y%m%d%H%M%S}{suffix}.sql"] = part.sql
    return new


def _write_all(new: dict[Path, str]) -> list[Path]:
    """Write all of these files, or none: the next run would take half a file for a complete one."""
    made: list[Path] = []
    try:
        for path, text in new.items():
            made.append(path)
            path.write_text(text, encoding="utf-8")
    except BaseException:
        for path in made:
            with suppress(OSError):
                path.unlink(missing_ok=True)
        raise
    return made
