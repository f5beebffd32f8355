"""Rewrites a table's file for a partitioned database. Pure: text in, text out.

`sql/tables/*.sql` are the only source: each table whose first column is its owner is partitioned by it, all others stay
as they are. Partitions are in `memory_private`, which only the tables' owner can access.
"""

from __future__ import annotations

import re
from typing import Final

from langchain_supabase_memory.errors import ConfigurationError

_MAX_PARTITIONS: Final = 64
"""The maximum: that many partitions, with their indexes, fit into the default locks of one transaction."""

_OWNED: Final = re.compile(
    r"^create table (?P<table>\w+\.(?P<name>\w+)) \((?P<columns>\n  user_id .*?)\n\)(?P<options> with \([^)]*\))?;",
    re.MULTILINE | re.DOTALL,
)


def check(count: int) -> None:
    """Check the number of partitions.

    Raises:
        ConfigurationError: It is not 2 to 64.
    """
    if not 2 <= count <= _MAX_PARTITIONS:
        raise ConfigurationError(
            f"There are 2 to {_MAX_PARTITIONS} partitions, not {count}.",
            hint="Pass a number such as 16; without --partitions the tables are plain.",
        )


def spread(table_file: str, count: int) -> str:
    """Return a table's file with the owners' tables partitioned, including their indexes and constraints."""

    def spread_one(match: re.Match[str]) -> str:
        # A partitioned table has no storage of its own, so the options apply to its partitions.
        return f"""create table {match["table"]} ({match["columns"]}
) partition by hash (user_id);
do $partitions$
begin
  for v_number in 0..{count - 1} loop
    execute format(
      'create table memory_private.{match["name"]}_%1$s partition of {match["table"]} '
      'for values with (modulus {count}, remainder %1$s){match["options"] or ""}', v_number);
  end loop;
end
$partitions$;"""

    return _OWNED.sub(spread_one, table_file)
