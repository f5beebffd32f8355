"""The SQL files in the order they run, rendered. Pure: it reads package data and accesses no database.

Each file `sql/tables/NNNN_*.sql` is applied once, and the ledger stores its name and checksum: a database with tables
from another release is refused. All other files are code and are replaced completely at every run. The rendered values
are the schema of pgvector, the contents of this release, the kinds of board items, the columns that Realtime publishes,
the parts of a prompt, the width of a vector index, the partitions of the owners' tables, if any, and the switches.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory.adapters.schema import citus as distributed
from langchain_supabase_memory.adapters.schema.partitions import check, spread
from langchain_supabase_memory.errors import ConfigurationError
from langchain_supabase_memory.language.messages.redaction.confusables import ALIKE
from langchain_supabase_memory.operations.boards.kinds import BOARD_KINDS, OPEN_FIRST
from langchain_supabase_memory.operations.columns import LIVE
from langchain_supabase_memory.operations.manifests import encoding

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from importlib.resources.abc import Traversable

VECTOR_SCHEMA: Final = "extensions"
"""Where pgvector is created if it is not installed: the same schema as Supabase's dashboard uses."""

_PLACEHOLDER: Final = re.compile(r"\{\{(\w+)\}\}")

_WIDEST_INDEX: Final = 4_000  # pgvector's limit for an index over `halfvec`


def _kinds() -> dict[str, str]:
    """Return the kinds of board items as rendered into the functions and their comments."""
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
    "foreign_letters": "".join(map(chr, ALIKE)),
    "letters_like_them": "".join(map(chr, ALIKE.values())),
    "manifest_entry_points": ", ".join(encoding.ENTRY_POINTS),
    "manifest_units": ", ".join(encoding.UNITS),
    "manifest_parts": ", ".join(encoding.PARTS),
    "manifest_reasons": ", ".join(encoding.REASONS),
    "manifest_scores": ", ".join(encoding.SCORES),
    "manifest_recalls": ", ".join(encoding.RECALLS),
}
"""The lists of kinds, columns, letters and prompt parts that are rendered into functions and their comments."""


@dataclass(frozen=True)
class ScriptPart:
    """One part of the script.

    Attributes:
        name: Its name, such as `0001_conversations`.
        sql: The statements, ready to run by a role that need not be a superuser, without their own transaction.
        checksum: SHA-256, in hexadecimal: of a table file's text, or of the rendered code without the release number.
    """

    name: str
    sql: str
    checksum: str


@dataclass(frozen=True)
class Installed:
    """What is installed in a database, as `memory_schema()` returns it.

    Attributes:
        version: The release that installed it.
        tables: The names of the table files applied.
        checksums: Their checksums, in the same order.
        code: The checksum of the functions and the access rules.
        vector_schema: The schema in which they look for pgvector.
        vector_moved_to: The schema that contains pgvector, if it has moved since.
        spaces: Whether spaces are switched on.
    """

    version: str
    tables: list[str]
    checksums: list[str]
    code: str
    vector_schema: str
    vector_moved_to: str | None = None
    spaces: bool = False


def parts(
    vector_schema: str = VECTOR_SCHEMA,
    *,
    plain: bool = False,
    vector_index: int | None = None,
    realtime: bool | None = None,
    spaces: bool | None = None,
    partitions: int | None = None,
    citus: bool = False,
) -> list[ScriptPart]:
    """Return everything a database needs, in order. Running it again changes nothing.

    Args:
        vector_schema: The schema that contains pgvector. The script creates it there if it is not installed, and
            refuses to run if it is elsewhere.
        plain: Also create what plain Postgres lacks and Supabase has: three roles and the `auth` functions.
        vector_index: Also create an index over vectors of this width, 1 to 4,000 dimensions, for owners with more than
            ten thousand chunks.
        realtime: Whether Supabase's Realtime publishes changes of conversations and boards; `None` leaves that
            unchanged.
        spaces: Whether members of a space read what it owns; `None` leaves that unchanged.
        partitions: The number of partitions of the owners' tables, 2 to 64; `None` for plain tables. It must match the
            database: the script refuses to run if its tables differ.
        citus: Whether Citus distributes the owners' tables over its nodes; it must match the database, too.

    Returns:
        The parts; run them in one transaction.

    Raises:
        ConfigurationError: `vector_index` or `partitions` is out of range, the schema's name cannot be written into the
            functions, or `citus` is combined with `partitions` or `realtime`.
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
        "checksums": json.dumps(dict(zip(expected.tables, expected.checksums, strict=True))),
        "table_checksums": json.dumps(expected.checksums),
        "code": expected.code,
        "width": str(vector_index),
        "partitions": "null" if partitions is None else str(partitions),
        "citus": str(citus).lower(),
        "spaces": "null" if spaces is None else str(spaces).lower(),
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
    """Return the whole script as one text, for an SQL editor or a simple query. Arguments and errors as for `parts`."""
    ordered = parts(vector_schema, **options)
    return "\n".join(f"-- {part.name}\n{part.sql}" for part in ordered)


def current(vector_schema: str = VECTOR_SCHEMA) -> Installed:
    """Return what this release installs in a database whose pgvector is in this schema.

    Raises:
        ConfigurationError: The schema's name cannot be written into the functions.
    """
    code = _checksum(_render(_code(), _LISTS | {"vector_schema": _quoted(vector_schema)}))
    tables = _names("tables")
    checksums = [_checksum(_read(f"tables/{name}.sql")) for name in tables]
    return Installed(version("langchain-supabase-memory"), tables, checksums, code, vector_schema)


def with_lists(template: str) -> str:
    """Return SQL with the lists of this package filled in, such as in the comments of functions."""
    return _render(template, _LISTS)


def _quoted(schema: str) -> str:
    """Return a schema's name as an identifier that is safe in functions, strings and format templates alike.

    Raises:
        ConfigurationError: It has a character with a special meaning in one of these.
    """
    if not schema.isprintable() or set(schema) & set("\"'$%{}\\") or not 1 <= len(schema.encode()) <= 63:
        raise ConfigurationError(
            f"pgvector cannot be used in a schema that is called {schema!r}.",
            hint="Name one without quotes, $, %, braces and backslashes; ALTER EXTENSION vector SET SCHEMA moves it.",
        )
    return f'"{schema}"'


def _code(*others: str) -> str:
    """Return the functions and the access rules; files in the additional folders replace those with the same names."""
    functions = [_read(f"{folder}/{name}.sql") for folder in ("functions", *others) for name in _names(folder)]
    return "\n".join([_read("replace.sql"), _read("switches.sql"), *functions, _read("access.sql")])


def _distributed_code() -> str:
    """Return the functions and the access rules for Citus."""
    pieces = {name: _read(f"citus/pieces/{name}.sql") for name in _names("citus/pieces")}
    return distributed.rewritten(_code("citus/functions"), pieces)


def _once(part: ScriptPart, checksum: str) -> ScriptPart:
    """Wrap a table file so that it runs once, and record its name and checksum in the same transaction."""
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
    # In one pass: the functions are a megabyte, and there are twenty names.
    return _PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), template)


def _checksum(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()


@cache
def _root() -> Traversable:
    packaged = files("langchain_supabase_memory") / "sql"
    # An editable install runs from the checkout, where `sql/` is next to the package.
    return packaged if packaged.is_dir() else Path(__file__).parents[3] / "sql"


@cache
def _read(path: str) -> str:
    return (_root() / path).read_text(encoding="utf-8")


def _names(folder: str) -> list[str]:
    return sorted(file.name.removesuffix(".sql") for file in (_root() / folder).iterdir() if file.name.endswith(".sql"))
