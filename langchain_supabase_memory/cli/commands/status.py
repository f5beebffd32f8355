"""`supabase-memory status`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, get_args

import click

from langchain_supabase_memory.cli import formatting
from langchain_supabase_memory.cli.options import json_option, with_database_options
from langchain_supabase_memory.humanize import duration, pluralize
from langchain_supabase_memory.operations.work import WorkState

if TYPE_CHECKING:
    from langchain_supabase_memory.cli.options import Address
    from langchain_supabase_memory.operations.work import Queue

_MAX_WIDTH = 10_000
"""The width of `--wide`, which is more than three ids can take."""


@click.command()
@with_database_options
@click.option("--user", "user_id", help="Only this user's conversations.")
@click.option("--thread", "thread_id", help="Only this thread.")
@click.option("--state", type=click.Choice(get_args(WorkState)), help="Only conversations in this state.")
@click.option(
    "--limit", type=click.IntRange(min=1), default=50, show_default=True, help="Maximum number of conversations."
)
@click.option("--wide", is_flag=True, help="Show full ids and all columns, however narrow the terminal is.")
@json_option
def status(
    address: Address,
    user_id: str | None,
    thread_id: str | None,
    state: WorkState | None,
    limit: int,
    wide: bool,
    as_json: bool,
) -> None:
    """Show the work queue, and how far each conversation is processed.

    The columns summary, index and board show the share of the messages that is summarized, can be recalled, and is on
    the board. In a pipe, each conversation is a line with tabs between the columns, and its errors are the last one.
    """
    from langchain_supabase_memory.cli import status_table

    with address.open() as memory, formatting.spinner("Querying the database …"):
        queue = memory.work.queue()
        rows = memory._for(user_id).work.status(thread_id=thread_id, state=state, limit=limit + 1)
    rows, has_more = rows[:limit], len(rows) > limit
    if as_json:
        document = {"queue": asdict(queue), "conversations": [asdict(row) for row in rows], "more": has_more}
        formatting.echo_json(document)
        return
    narrowed = user_id is not None or thread_id is not None
    for line in _queue_lines(queue):
        click.echo(f"All conversations: {line}" if narrowed else line)
    if not rows and (narrowed or state is not None):
        click.echo("There is no such conversation.", err=True)
    if not formatting.is_terminal():
        for line in status_table.plain_lines(rows):
            click.echo(line)
    elif rows:
        status_table.print_table(rows, formatting.console(soft_wrap=wide, width=_MAX_WIDTH if wide else None))
    if has_more:
        click.echo(f"There are more than these {limit}. --limit shows more; --user, --thread and --state narrow it.")


def _queue_lines(queue: Queue) -> list[str]:
    """Format the work queue of all conversations."""
    lag = f", the oldest for {duration(queue.lag_seconds)}" if queue.depth else ""
    unreadable = f", {queue.unreadable} set aside with unusable ids" if queue.unreadable else ""
    more = "+" if queue.has_more else ""
    counts = f"{queue.leases} running, {queue.waiting}{more} waiting, {queue.dead} dead{unreadable}"
    lines = [f"{queue.depth}{more} due{lag}; {counts}."]
    if queue.unreadable_messages:
        unread = pluralize(queue.unreadable_messages, "message")
        lines.append(f"{unread} cannot be read; `supabase-memory unreadable` lists them.")
    return lines
