"""The SQL files in the order they run, rendered. Pure: it reads package data and touches no database.

`sql/tables/NNNN_*.sql` are each applied once, and the ledger keeps their names and checksums: a database whose tables
are of another release is refused. Everything else is code and is replaced whole at every run. Rendered into them are
the schema that pgvector lies in, what this release consists of, the kinds of board items, the columns that Realtime
publishes, the parts of a prompt, into a vector index its width, and into the tables of owners their partitions, if
they have any.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory.adapters.schema import citus as distributed
from langchain_supabase_memory.adapters.schema.partitions import check, spread
from langchain_supabase_memory.errors import ConfigurationError
from langchain_supabase_memory.operations.boards.kinds import BOARD_KINDS, OPEN_FIRST
from langchain_supabase_memory.operations.columns import LIVE
from langchain_supabase_memory.operations.manifests import encoding

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from importlib.resources.abc import Traversable

VECTOR_SCHEMA: Final = "extensions"
"""Where pgvector is created if it is nowhere: where Supabase's dashboard puts it."""

_WIDEST_INDEX: Final = 4_000  # pgvector's limit for an index over `halfvec`


def _kinds() -> dict[str, str]:
    """What the functions and their comments say of the kinds of board items."""
    closable = [each for each in BOARD_KINDS.values() if each.can_close]
    plain = {each.states[0] for each in BOARD_KINDS.values() if not each.can_close}
    said = [f"of {_article(each.kind)} {each.kind} {_words(each.states, 'or')}" for each in closable]
    return {
        "item_kinds": _words(tuple(BOARD_KINDS), "or"),
        "item_states": "; ".join([*sorted(plain), *said]),
        "item_kinds_in_order": _literals(each.kind for each in OPEN_FIRST),
        "item_states_by_kind": " ".join(
            f"when '{each.kind}' then array[{_literals(each.states)}]" for each in closable
        ),
        "item_names": _literals(each.kind for each in BOARD_KINDS.values() if each.is_name),
    }


def _article(word: str) -> str:
    return "an" if word[0] in "aeiou" else "a"


def _words(words: Sequence[str], last: str) -> str:
    return f"{', '.join(words[:-1])} {last} {words[-1]}"


def _literals(values: Iterable[str]) -> str:
    return ", ".join(f"'{each}'" for each in values)


_LISTS: Final = {
    **_kinds(),
    "live_columns": _literals(LIVE),
    "manifest_entry_points": ", ".join(encoding.ENTRY_POINTS),
    "manifest_units": ", ".join(encoding.UNITS),
    "manifest_parts": ", ".join(encoding.PARTS),
    "manifest_reasons": ", ".join(encoding.REASONS),
    "manifest_scores": ", ".join(encoding.SCORES),
}
"""What is rendered into functions and their comments from the tables of kinds, columns and parts of a prompt."""


@dataclass(frozen=True)
class ScriptPart:
    """One piece of the script.

    Attributes:
        name: What it is called, such as `0001_conversations`.
        sql: The statements, ready to run by a role that need not be a superuser, without a transaction of their own.
        checksum: SHA-256, in hexadecimal: of what a table's file says, and of what runs where it is code, but for the
            number of the release.
    """

    name: str
    sql: str
    checksum: str


@dataclass(frozen=True)
class Installed:
    """What a database is set up with, as `memory_schema()` answers.

    Attributes:
        version: The release that set it up.
        tables: The names of the table files applied.
        code: The checksum of the functions and the access rules.
        vector_schema: The schema in which they look for pgvector.
        vector_moved_to: The schema in which it lies, if that is another by now.
    """

    version: str
    tables: list[str]
    code: str
    vector_schema: str
    vector_moved_to: str | None = None


def parts(
    vector_schema: str = VECTOR_SCHEMA,
    *,
    plain: bool = False,
    vector_index: int | None = None,
    realtime: bool | None = None,
    partitions: int | None = None,
    citus: bool = False,
) -> list[ScriptPart]:
    """Everything a database needs, in order. Running it again changes nothing.

    Args:
        vector_schema: The schema that pgvector lies in. The script creates it there if it is nowhere, and refuses to
            run if it is elsewhere.
        plain: Also make what Supabase has and another Postgres lacks: three roles and the `auth` functions.
        vector_index: Also make an index over the vectors of this width, 1 to 4,000 dimensions, which serves owners of
            more than ten thousand chunks.
        realtime: Whether Supabase's Realtime publishes that conversations and boards change; `None` leaves that as it
            is.
        partitions: Into how many partitions, 2 to 64, the tables of owners are spread; `None` for plain tables. As the
            database was made: the script refuses to run where its tables are otherwise.
        citus: Whether Citus spreads the tables of owners over its nodes; as the database was made, too.

    Returns:
        The parts; run them in one transaction.

    Raises:
        ConfigurationError: `vector_index` or `partitions` is out of range, the schema's name cannot be written into
            the functions, or `citus` comes with `partitions` or `realtime`.
    """
    if partitions is not None:
        check(partitions)
    if citus and (partitions is not None or realtime):
        raise ConfigurationError(
            "On Citus there are no partitions of this package's, and Realtime publishes nothing.",
            hint="Leave --partitions and --realtime out: Citus spreads the tables of owners by itself.",
        )
    expected = current(vector_schema)
    values = _LISTS | {
        "vector_schema": _quoted(vector_schema),
        "vector_schema_name": vector_schema,
        "version": expected.version,
        "tables": json.dumps(expected.tables),
        "checksums": json.dumps({name: _checksum(_read(f"tables/{name}.sql")) for name in expected.tables}),
        "code": expected.code,
        "width": str(vector_index),
        "partitions": "null" if partitions is None else str(partitions),
        "citus": str(citus).lower(),
    }

    def part(name: str, template: str) -> ScriptPart:
        return ScriptPart(name, _render(template, values), _checksum(_render(template, values | {"version": ""})))

    head = ["lock", *(["plain_postgres"] if plain else []), "vector", "ledger"]
    ordered = [part(name, _read(f"{name}.sql")) for name in head]
    for name in expected.tables:
        table = _read(f"tables/{name}.sql")
        made = table if partitions is None else spread(table, partitions)
        ordered.append(_once(part(name, made), _checksum(table)))
    if vector_index is not None:
        if not 1 <= vector_index <= _WIDEST_INDEX:
            raise ConfigurationError(
                f"A vector index has 1 to {_WIDEST_INDEX} dimensions, not {vector_index}.",
                hint="Pass the width of your embedding model, such as 1536; for a wider one leave the index out.",
            )
        ordered.append(part(f"vector_index_{vector_index}", _read("vector_index.sql")))
    ordered.append(part("functions_and_access", _distributed_code() if citus else _code()))
    if realtime is not None:
        name = "realtime" if realtime else "no_realtime"
        ordered.append(part(name, _read(f"{name}.sql")))
    return [*ordered, part("distribute", _read("citus/distribute.sql"))] if citus else ordered


def text(vector_schema: str = VECTOR_SCHEMA, **options: Any) -> str:
    """The whole script as one text, for an SQL editor or a simple query. Arguments and errors as for `parts`."""
    ordered = parts(vector_schema, **options)
    return "\n".join(f"-- {part.name}\n{part.sql}" for part in ordered)


def current(vector_schema: str = VECTOR_SCHEMA) -> Installed:
    """What this release sets a database up with, where pgvector lies in this schema.

    Raises:
        ConfigurationError: The schema's name cannot be written into the functions.
    """
    code = _checksum(_render(_code(), _LISTS | {"vector_schema": _quoted(vector_schema)}))
    return Installed(version("langchain-supabase-memory"), _names("tables"), code, vector_schema)


def with_lists(template: str) -> str:
    """SQL with what stands in tables of this package in its places, such as the comments of functions."""
    return _render(template, _LISTS)


def _quoted(schema: str) -> str:
    """A schema's name as an identifier that stands in functions, in texts and in formats alike.

    Raises:
        ConfigurationError: It has a character that means something in one of these.
    """
    if not schema.isprintable() or set(schema) & set("\"'$%{}\\") or not 1 <= len(schema.encode()) <= 63:
        raise ConfigurationError(
            f"pgvector cannot be used in a schema that is called {schema!r}.",
            hint="Name one without quotes, $, %, braces and backslashes; ALTER EXTENSION vector SET SCHEMA moves it.",
        )
    return f'"{schema}"'


def _code(*others: str) -> str:
    """The functions and the access rules, with those of further folders in the place of the same ones."""
    functions = [_read(f"{folder}/{name}.sql") for folder in ("functions", *others) for name in _names(folder)]
    return "\n".join([_read("replace.sql"), *functions, _read("access.sql")])


def _distributed_code() -> str:
    """The same for Citus."""
    pieces = {name: _read(f"citus/pieces/{name}.sql") for name in _names("citus/pieces")}
    return distributed.rewritten(_code("citus/functions"), pieces)


def _once(part: ScriptPart, checksum: str) -> ScriptPart:
    """Wrap a table file, so that it runs once and is recorded by name and checksum in the same transaction."""
    sql = f"""do $migration$
begin
  if not exists (select from memory_private.migrations where name = '{part.name}') then
    execute $body$
{part.sql}
$body$;
    insert into memory_private.migrations (name, checksum) values ('{part.name}', '{checksum}');
  end if;
end
$migration$;
"""
    return ScriptPart(part.name, sql, checksum)


def _render(template: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        template = template.replace("{{" + name + "}}", value)
    return template


def _checksum(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()


@cache
def _root() -> Traversable:
    packaged = files("langchain_supabase_memory") / "sql"
    # An editable install runs from the checkout, where `sql/` lies beside the package.
    return packaged if packaged.is_dir() else Path(__file__).parents[3] / "sql"


@cache
def _read(path: str) -> str:
    return (_root() / path).read_text(encoding="utf-8")


def _names(folder: str) -> list[str]:
    return sorted(file.name.removesuffix(".sql") for file in (_root() / folder).iterdir() if file.name.endswith(".sql"))
