"""What to do where a migration is due: the migration, or what its refusal would ask for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory.adapters.schema import script
from langchain_supabase_memory.effects import INLINE_LIMIT, Flow, offload

if TYPE_CHECKING:
    from collections.abc import Mapping

    from langchain_supabase_memory.adapters.schema.script import Installed

_MIGRATE: Final = (
    "Run `supabase-memory migrate` with this release of langchain-supabase-memory, as the role that set the database up"
)


@dataclass(frozen=True)
class NextMigration:
    """What a database needs to be of this release.

    Attributes:
        installed: The answer of `memory_schema`.
        expected: What this release installs.
        is_replica: Whether the server is a read replica, which a migration cannot change.
    """

    installed: Mapping[str, Any]
    expected: Installed
    is_replica: bool = False

    def action(self, migrate: str = _MIGRATE) -> str:
        """Return the next action, as a sentence.

        Args:
            migrate: What to do if a migration is not refused, without a full stop.
        """
        version = self.installed["version"]
        if self._is_newer:
            return f"Install langchain-supabase-memory {version} or newer: this database is of that release."
        if self._is_foreign:
            return (
                "No migration of this release changes such tables: run `supabase-memory export` with the package that "
                "set the database up, and import the file into a new database."
            )
        return f"{migrate}{', on the primary' if self.is_replica else ''}."

    @property
    def _is_newer(self) -> bool:
        unknown = {*self.installed["tables"]} - {*self.expected.tables}
        return bool(unknown) or _numbers(self.installed["version"]) > _numbers(self.expected.version)

    @property
    def _is_foreign(self) -> bool:
        """Whether a file of tables was applied that this release has with other text."""
        ours = dict(zip(self.expected.tables, self.expected.checksums, strict=True))
        theirs = zip(self.installed["tables"], self.installed.get("checksums") or (), strict=False)
        return any(ours.get(name) != checksum for name, checksum in theirs)


def next_migration(installed: Mapping[str, Any], *, is_replica: bool = False) -> Flow[NextMigration]:
    """Compare what is installed with this release. Arguments as of `NextMigration`."""
    make = partial(script.current, installed.get("vector_schema", script.VECTOR_SCHEMA))
    expected = yield from offload(make, INLINE_LIMIT)  # it reads every SQL file
    return NextMigration(installed, expected, is_replica)


def _numbers(version: str) -> list[int]:
    """Return a release's numbers, by which two of them are compared."""
    return [int(part) for part in re.findall(r"\d+", version)[:3]]
