"""Rewrites the functions for a database that Citus distributes over several servers. Pure: text in, text out.

`sql/functions/*.sql` and `sql/access.sql` are the only source. Where Citus needs another form, it is created here: by
rules that apply to all of them, by a piece in `sql/citus/pieces/` that replaces the text between `-- Citus: <name>` and
`-- Citus: end`, or by a function in `sql/citus/functions/` that replaces the one with its name.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_RULES: Final = (
    # A policy on a distributed table must not contain a subquery. On a node no claim is set, so this one hides every
    # row.
    ("user_id = (select (select auth.jwt()) ->> 'sub')", "user_id = (auth.jwt() ->> 'sub')"),
    # The node depends on the owner's name, which a generic plan does not know.
    ("set plan_cache_mode = force_generic_plan", "set plan_cache_mode = force_custom_plan"),
    # Nobody receives a notification from a node, and transactions over several connections cannot send one: workers
    # poll.
    ("perform pg_notify('memory_work', '');", ""),
)

_TRIGGER: Final = re.compile(r"^create (?:or replace |constraint )?trigger .*?;$", re.MULTILINE | re.DOTALL)
"""Citus sends the whole statement batch to the nodes, which accept one statement each, so triggers run on their own."""

_PIECE: Final = re.compile(r"^ *-- Citus: (?!end$)(\w+)$\n.*?^ *-- Citus: end$\n", re.MULTILINE | re.DOTALL)


def rewritten(code: str, pieces: Mapping[str, str]) -> str:
    """Return functions and access rules in the form that Citus accepts.

    Args:
        code: The code for plain Postgres.
        pieces: The replacements for marked pieces, by name.

    Raises:
        ValueError: A rule or a piece no longer matches, so that something would be missing.
    """
    places = [found[1] for found in _PIECE.finditer(code)]
    if sorted(places) != sorted(pieces):
        raise ValueError(f"the places for pieces are {sorted(places)}, and the pieces {sorted(pieces)}")
    code = _PIECE.sub(lambda match: pieces[match[1]], code)
    for plain, distributed in _RULES:
        if plain not in code:
            raise ValueError(f"there is no {plain} to rewrite for Citus")
        code = code.replace(plain, distributed)
    return _TRIGGER.sub(lambda match: f"do $trigger$ begin execute $one$ {match[0]} $one$; end $trigger$;", code)
