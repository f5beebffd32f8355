"""`supabase-memory users`."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

import click

from langchain_supabase_memory.cli import formatting
from langchain_supabase_memory.cli.options import json_option, with_database_options
from langchain_supabase_memory.language.messages.invisible import spell_out

if TYPE_CHECKING:
    from langchain_supabase_memory.cli.options import Address
    from langchain_supabase_memory.memory.memory import SupabaseMemory
    from langchain_supabase_memory.operations.users import UserPage, UserSummary

_MAX_LIMIT: Final = 10_000
"""The maximum number of users of one list."""

_PAGE: Final = 100
"""The maximum number of users of one call."""


@click.command()
@with_database_options
@click.argument("part", required=False)
@click.option(
    "--limit", type=click.IntRange(1, _MAX_LIMIT), default=100, show_default=True, help="Maximum number of users."
)
@click.option("--after", metavar="USER", help="Continue after this user: the value that a list prints at its end.")
@json_option
def users(address: Address, part: str | None, limit: int, after: str | None, as_json: bool) -> None:
    """List the users who have conversations, by their ids.

    With PART, only users whose ids contain it, in upper or lower case. Conversations and tokens are those of the ten
    newest conversations; a plus sign says that the user has more. Dead is the number of conversations whose work was
    given up. The list needs a server's connection. In a pipe, each user is a line with tabs between the columns.

    \b
    Examples:
      supabase-memory users
      supabase-memory users @example.com --json
    """  # noqa: D301  # click reads the control character
    from langchain_supabase_memory.cli import user_list

    with address.open() as memory, formatting.spinner("Querying the database …"):
        page = _read(memory, part, limit, after)
    if as_json:
        formatting.echo_json(asdict(page))
        return
    if not formatting.is_terminal():
        for line in user_list.plain_lines(page.users):
            click.echo(line)
    elif page.users:
        user_list.print_list(page.users, formatting.console())
    if not page.users:
        nobody = f"No user's id contains {formatting.format_id(part)}." if part else "There are no conversations yet."
        click.echo(nobody, err=True)
    if page.after is not None:
        click.echo(f"There may be more: --after {shlex.quote(spell_out(page.after))} continues the list.", err=True)


def _read(memory: SupabaseMemory, part: str | None, limit: int, after: str | None) -> UserPage:
    """Read pages until there are enough users."""
    from langchain_supabase_memory.operations.users import UserPage

    rows: list[UserSummary] = []
    while True:
        page = memory.work.users(contains=part, limit=min(_PAGE, limit - len(rows)), after=after)
        rows += page.users
        after = page.after
        if after is None or len(rows) == limit:
            return UserPage(rows, after)
