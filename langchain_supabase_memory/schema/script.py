"""The SQL files in the order they run, rendered. Pure: it reads package data and touches no database.

`sql/tables/NNNN_*.sql` are history: each is applied once, and the ledger keeps its name and checksum. Everything else
is code and is replaced whole at every run. The embedding width is the one value that is rendered into them.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from langchain_supabase_memory.errors import ConfigurationError

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

_WIDEST_VECTOR = 16_000  # pgvector's limit for the type `vector`
_WIDEST_INDEX = 4_000  # and for an index over `halfvec`


@dataclass(frozen=True)
class Part:
    """One piece of the script.

    Attributes:
        name: What it is called, such as `0001_conversations`.
        sql: The statements, ready to run by a role that need not be a superuser, without a transaction of their own.
        checksum: SHA-256 of what the file says, in hexadecimal.
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
        dimensions: The embedding width.
    """

    version: str
    tables: list[str]
    code: str
    dimensions: int


def parts(dimensions: int, *, plain: bool = False, vector_index: bool = False) -> list[Part]:
    """Everything a database needs, in order. Running it again changes nothing.

    Args:
        dimensions: The embedding width, 1 to 16,000.
        plain: Also make what Supabase has and another Postgres lacks: three roles and the `auth` functions.
        vector_index: Also make an index over the vectors, which serves owners of more than ten thousand chunks; up to
            4,000 dimensions.

    Returns:
        The parts; run them in one transaction.

    Raises:
        ConfigurationError: `dimensions` is out of range.
    """
    expected = current(dimensions)
    if vector_index and dimensions > _WIDEST_INDEX:
        raise ConfigurationError(
            f"A vector index has at most {_WIDEST_INDEX} dimensions, not {dimensions}.",
            hint="Leave the index out, or use an embedding model that gives shorter vectors.",
        )
    head = ["lock", *(["plain_postgres"] if plain else []), "ledger"]
    values = {
        "dimensions": str(dimensions),
        "version": expected.version,
        "tables": json.dumps(expected.tables),
        "code": expected.code,
    }
    ordered = [_part(name, _read(f"{name}.sql"), values) for name in head]
    ordered += [_once(_part(name, _read(f"tables/{name}.sql"), values)) for name in expected.tables]
    if vector_index:
        ordered.append(_part(f"vector_index_{dimensions}", _read("vector_index.sql"), values))
    ordered.append(code_part(dimensions))
    return ordered


def code_part(dimensions: int) -> Part:
    """The functions and the access rules as one part, whose checksum changes when any of them does."""
    expected = current(dimensions)
    values = {
        "dimensions": str(dimensions),
        "version": expected.version,
        "tables": json.dumps(expected.tables),
        "code": expected.code,
    }
    return Part("functions_and_access", _render("\n".join(_code()), values), expected.code)


def text(dimensions: int, *, plain: bool = False, vector_index: bool = False) -> str:
    """The whole script as one text, for an SQL editor or a simple query. Arguments and errors as for `parts`."""
    ordered = parts(dimensions, plain=plain, vector_index=vector_index)
    return "\n".join(f"-- {part.name}\n{part.sql}" for part in ordered)


def current(dimensions: int) -> Installed:
    """What this release sets a database up with.

    Args:
        dimensions: The embedding width, 1 to 16,000.

    Raises:
        ConfigurationError: `dimensions` is out of range.
    """
    if not 1 <= dimensions <= _WIDEST_VECTOR:
        raise ConfigurationError(
            f"An embedding has 1 to {_WIDEST_VECTOR} dimensions, not {dimensions}.",
            hint="Pass the width of your embedding model, such as 1536.",
        )
    return Installed(version("langchain-supabase-memory"), _names("tables"), _checksum("\n".join(_code())), dimensions)


def _code() -> list[str]:
    functions = [_read(f"functions/{name}.sql") for name in _names("functions")]
    return [_read("replace.sql"), *functions, _read("access.sql")]


def _part(name: str, template: str, values: dict[str, str]) -> Part:
    return Part(name, _render(template, values), _checksum(template))


def _once(part: Part) -> Part:
    """Wrap a table file, so that it runs once and is recorded by name and checksum in the same transaction."""
    sql = f"""do $migration$
declare
  v_checksum text;
begin
  select checksum into v_checksum from memory_private.migrations where name = '{part.name}';
  if not found then
    execute $body$
{part.sql}
$body$;
    insert into memory_private.migrations (name, checksum) values ('{part.name}', '{part.checksum}');
  elsif v_checksum <> '{part.checksum}' then
    raise exception 'migration {part.name} was changed after it was applied to this database'
      using errcode = 'PT409', hint = 'use the unedited files of the release that is installed';
  end if;
end
$migration$;
"""
    return Part(part.name, sql, part.checksum)


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
    return packaged if packaged.is_dir() else Path(__file__).parents[2] / "sql"


@cache
def _read(path: str) -> str:
    return (_root() / path).read_text(encoding="utf-8")


def _names(folder: str) -> list[str]:
    return sorted(file.name.removesuffix(".sql") for file in (_root() / folder).iterdir() if file.name.endswith(".sql"))
