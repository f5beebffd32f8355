"""Callers of SQL functions in spaces: a server, and people who are signed in."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.types.json import Json

_CLAIMS = "select set_config('request.jwt.claims', %s, true), set_config('role', %s, true)"


@dataclass(frozen=True)
class Person:
    """Who is signed in over a direct connection, as the Data API does it.

    Attributes:
        connection: Of a role that may act as `authenticated`, with autocommit.
        subject: The subject of the token; `None` for a token without one.
        keeps: Whether what is done stays; otherwise each call is taken back.
    """

    connection: psycopg.Connection[Any]
    subject: str | None
    keeps: bool = True

    def __call__(self, name: str, /, **arguments: Any) -> Any:
        """Call `memory_<name>` with `p_<argument>` for each argument.

        Raises:
            psycopg.Error: The call is refused.
        """
        with self.connection.transaction(force_rollback=not self.keeps):
            self._sign_in()
            return call(self.connection, name, **arguments)

    def outcome(self, name: str, /, **arguments: Any) -> Any:
        """Return the answer of a call, or the SQLSTATE if it is refused."""
        try:
            return self(name, **arguments)
        except psycopg.Error as error:
            return error.sqlstate

    def sql(self, statement: str, *parameters: Any) -> Any:
        """Run a statement on the tables, and return its rows, how many it touched, or the SQLSTATE."""
        try:
            with self.connection.transaction(force_rollback=not self.keeps):
                self._sign_in()
                cursor = self.connection.execute(statement.encode(), parameters or None)
                return cursor.fetchall() if cursor.description else cursor.rowcount
        except psycopg.Error as error:
            return error.sqlstate

    def _sign_in(self) -> None:
        claims = {"role": "authenticated"} | ({} if self.subject is None else {"sub": self.subject})
        self.connection.execute(_CLAIMS, [json.dumps(claims), "authenticated"])


def call(connection: psycopg.Connection[Any], name: str, /, **arguments: Any) -> Any:
    """Call `memory_<name>` with `p_<argument>` for each argument, with the rights of the connection."""
    passed = [Json(value) if isinstance(value, (dict, list)) else value for value in arguments.values()]
    given = ", ".join(f"p_{each} => %s" for each in arguments)
    return connection.execute(f"select public.memory_{name}({given})".encode(), passed).fetchall()[0][0]


def message(text: str, message_id: str, role: str = "user") -> list[dict[str, Any]]:
    """Return one message as `memory_append` takes it."""
    return [{"role": role, "content": text, "id": message_id}]
