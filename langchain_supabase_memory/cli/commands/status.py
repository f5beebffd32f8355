"""`supabase-memory status`."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, get_args

import click

from langchain_supabase_memory.cli import look
from langchain_supabase_memory.cli.options import addressed
from langchain_supabase_memory.operations.work import WorkState

if TYPE_CHECKING:
    from langchain_supabase_memory.cli.options import Address
    from langchain_supabase_memory.operations.work import Queue


@click.command()
@addressed
@click.option("--user", "user_id", help="Only this user's conversations.")
@click.option("--thread", "thread_id", help="Only this thread.")
@click.option("--state", type=click.Choice(get_args(WorkState)), help="Only those in this state.")
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, help="The most conversations.")
@click.option("--wide", is_flag=True, help="Ids as a whole, however wide the terminal is. In a pipe they are whole.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def status(
    address: Address,
    user_id: str | None,
    thread_id: str | None,
    state: WorkState | None,
    limit: int,
    wide: bool,
    as_json: bool,
) -> None:
    """See what is due, running, waiting and dead, and how far each conversation is covered.

    Of the messages of a conversation, so many percent are in its summary, can be recalled, and are taken in by its
    board. In a pipe, a conversation is a line with tabs between, its errors at the end.
    """
    from langchain_supabase_memory.cli import table

    with address.opened() as memory, look.working("Asking the database …"):
        queue = memory.work.queue()
        rows = memory.work.status(user_id=user_id, thread_id=thread_id, state=state, limit=limit + 1)
    rows, is_cut = rows[:limit], len(rows) > limit
    if as_json:
        found = {"queue": asdict(queue), "conversations": [asdict(row) for row in rows], "more": is_cut}
        click.echo(json.dumps(found, default=str))  # in ASCII, so that nothing in it is unseen
        return
    for line in _said(queue):
        click.echo(line)
    if not look.is_terminal():
        for line in table.lines(rows):
            click.echo(line)
    elif rows:
        table.show(rows, look.console(), wide=wide)
    if is_cut:
        click.echo(f"There are more than these {limit}. --limit shows more; --user, --thread and --state narrow it.")


def _said(queue: Queue) -> list[str]:
    """The work of all conversations, in words."""
    lag = f", the oldest for {look.duration(queue.lag_seconds)}" if queue.depth else ""
    aside = f", {queue.unreadable} set aside with unusable ids" if queue.unreadable else ""
    said = [f"{queue.depth} due{lag}; {queue.leases} running, {queue.waiting} waiting, {queue.dead} dead{aside}."]
    if queue.unreadable_messages:
        said.append(f"{queue.unreadable_messages} messages cannot be read; `supabase-memory unreadable` lists them.")
    return said
