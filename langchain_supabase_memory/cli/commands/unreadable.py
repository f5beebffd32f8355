"""`supabase-memory unreadable`."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from langchain_supabase_memory.cli import look
from langchain_supabase_memory.cli.options import addressed

if TYPE_CHECKING:
    from langchain_supabase_memory.cli.options import Address


@click.command()
@addressed
@click.option("--user", "user_id", help="Only this user's messages.")
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, help="The most messages.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def unreadable(address: Address, user_id: str | None, limit: int, as_json: bool) -> None:
    """List stored messages that cannot be read: where they are and why, without their content.

    Each is left out of packs until its payload is written anew, or the message is forgotten.
    """
    with address.opened() as memory, look.working("Asking the database …"):
        rows = memory.work.unreadable(user_id=user_id, limit=limit + 1)
    rows, is_cut = rows[:limit], len(rows) > limit
    if as_json:
        # In ASCII, so that nothing in it is unseen.
        click.echo(json.dumps({"messages": [asdict(row) for row in rows], "more": is_cut}))
        return
    for row in rows:
        user, agent, thread = (look.isolated(repr(each)) for each in (row.user_id, row.agent_id, row.thread_id))
        where = f"user {user}, agent {agent}, thread {thread}"
        click.echo(f"message {row.sequence} of {where}: {row.reason}")
    if is_cut:
        click.echo(f"There are more than these {limit}. --limit shows more; --user narrows it.")
    if not rows:
        click.echo("Every message that somebody tried to read can be read.")
