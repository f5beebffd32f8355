"""Logical decoding: the changes of a publication, as the plug-in `pgoutput` sends them."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psycopg


@dataclass(frozen=True)
class Change:
    """One change of a row.

    Attributes:
        table: Schema and name.
        kind: `insert`, `update` or `delete`.
        row: The published columns, as text; for a deleted row, its identity columns.
    """

    table: str
    kind: str
    row: dict[str, str | None] = field(repr=False)


_KINDS = {"I": "insert", "U": "update", "D": "delete"}


class Slot:
    """A replication slot on a publication; each change is returned once.

    Args:
        connection: In autocommit mode, of a role that may replicate.
        name: The slot's name.
        publication: The publication.
    """

    def __init__(self, connection: psycopg.Connection, name: str, publication: str = "supabase_realtime") -> None:
        self._connection, self._name, self._publication = connection, name, publication
        self._tables: dict[int, tuple[str, list[str]]] = {}
        connection.execute("select pg_create_logical_replication_slot(%s, 'pgoutput')", [name])

    def changes(self) -> list[Change]:
        """Return the changes since the last call."""
        rows = self._connection.execute(
            "select data from pg_logical_slot_get_binary_changes(%s, null, null, 'proto_version', '1',"
            " 'publication_names', %s)",
            [self._name, self._publication],
        ).fetchall()
        return [change for (data,) in rows if (change := self._change(bytes(data))) is not None]

    def drop(self) -> None:
        """Drop the slot."""
        self._connection.execute("select pg_drop_replication_slot(%s)", [self._name])

    def _change(self, data: bytes) -> Change | None:
        kind, rest = chr(data[0]), data[1:]
        if kind == "R":
            self._tables[struct.unpack("!I", rest[:4])[0]] = _relation(rest[4:])
        if kind not in _KINDS:
            return None
        table, columns = self._tables[struct.unpack("!I", rest[:4])[0]]
        tuples = _tuples(rest[4:])
        values = tuples.get("N") or tuples.get("K") or tuples["O"]
        named = dict(zip(columns, values, strict=True))
        return Change(table, _KINDS[kind], {name: value for name, value in named.items() if value is not None})


def _relation(data: bytes) -> tuple[str, list[str]]:
    """Parse a table, and the names of its published columns."""
    schema, name, rest = data.split(b"\0", 2)
    (count,) = struct.unpack("!H", rest[1:3])
    columns, at = [], 3
    for _ in range(count):
        end = rest.index(b"\0", at + 1)
        columns.append(rest[at + 1 : end].decode())
        at = end + 9
    return f"{schema.decode()}.{name.decode()}", columns


def _tuples(data: bytes) -> dict[str, list[str | None]]:
    """Parse the rows in a change: the old row or its identity, and the new row."""
    found: dict[str, list[str | None]] = {}
    at = 0
    while at < len(data):
        which = chr(data[at])
        (count,) = struct.unpack("!H", data[at + 1 : at + 3])
        at += 3
        values: list[str | None] = []
        for _ in range(count):
            kind, at = chr(data[at]), at + 1
            if kind != "t":  # null, or unchanged and stored out of line
                values.append(None)
                continue
            (size,) = struct.unpack("!I", data[at : at + 4])
            values.append(data[at + 4 : at + 4 + size].decode())
            at += 4 + size
        found[which] = values
    return found
