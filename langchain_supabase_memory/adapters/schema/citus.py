"""The functions for a database whose owners Citus spreads over several servers. Pure: it rewrites text.

`sql/functions/*.sql` and `sql/access.sql` are the one source. Where Citus needs another form, it is made here: by rules
that hold for all of them, by a piece in `sql/citus/pieces/` in the place of what stands between `-- Citus: <name>` and
`-- Citus: end`, or by a function in `sql/citus/functions/` that takes the place of the one of its name.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_RULES: Final = (
    # No policy on a distributed table may have a subquery. On a node no claim is set, so nobody sees a row by this one.
    ("user_id = (select (select auth.jwt()) ->> 'sub')", "user_id = (auth.jwt() ->> 'sub')"),
    # The node is chosen by the owner's name, which a plan for all owners does not know.
    ("set plan_cache_mode = force_generic_plan", "set plan_cache_mode = force_custom_plan"),
    # What a node notifies nobody hears, and no transaction over several connections may: workers look by the clock.
    ("perform pg_notify('memory_work', '');", ""),
)

_TRIGGER: Final = re.compile(r"^create (?:or replace |constraint )?trigger .*?;$", re.MULTILINE | re.DOTALL)
"""Citus sends the whole text that it stands in to the nodes, which take one statement: so it is executed by itself."""

_PIECE: Final = re.compile(r"^ *-- Citus: (?!end$)(\w+)$\n.*?^ *-- Citus: end$\n", re.MULTILINE | re.DOTALL)


def rewritten(code: str, pieces: Mapping[str, str]) -> str:
    """Functions and access as Citus takes them.

    Args:
        code: What a plain Postgres takes.
        pieces: What takes the place of marked pieces, by their names.

    Raises:
        ValueError: A rule or a piece finds no place any more, so that something would be missing.
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
