"""`supabase-memory unreadable`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from langchain_supabase_memory.cli.formatting import echo_json, isolate_bidi, spinner
from langchain_supabase_memory.cli.options import json_option, with_database_options

if TYPE_CHECKING:
    from langchain_supabase_memory.cli.options import Address


@click.command()
@with_database_options
@click.option("--user", "user_id", help="Only this user's messages.")
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, help="Maximum number of messages.")
@json_option
def unreadable(address: Address, user_id: str | None, limit: int, as_json: bool) -> None:
    """List stored messages that cannot be read, without their content.

    Prompts omit them until you repair their payload or delete them.
    """
    with address.open() as memory, spinner("Querying the database …"):
        rows = memory._for(user_id).work.unreadable(limit=limit + 1)
    rows, has_more = rows[:limit], len(rows) > limit
    if as_json:
        echo_json({"messages": [asdict(row) for row in rows], "more": has_more})
        return
    for row in rows:
        user, agent, thread = (isolate_bidi(repr(each)) for each in (row.user_id, row.agent_id, row.thread_id))
        click.echo(f"message {row.sequence} of user {user}, agent {agent}, thread {thread}: {row.reason}")
    if has_more:
        click.echo(f"There are more than these {limit}. --limit shows more; --user narrows it.")
    if not rows:
        click.echo("No unreadable messages are known.")
