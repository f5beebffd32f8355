"""`supabase-memory conversations`."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Final, get_args

import click

from langchain_supabase_memory.cli import look
from langchain_supabase_memory.cli.options import addressed
from langchain_supabase_memory.values import ConversationState

if TYPE_CHECKING:
    from langchain_supabase_memory.cli.options import Address

_MOST: Final = 1000
"""The most conversations of a page."""


@click.command()
@addressed
@click.option("--user", "user_id", required=True, help="Whose.")
@click.option("--agent", "agent_id", help="Only conversations with this agent.")
@click.option("--state", type=click.Choice(get_args(ConversationState)), help="Only those in this state.")
@click.option(
    "--limit", type=click.IntRange(1, _MOST), default=20, show_default=True, help="The most conversations of a page."
)
@click.option("--after", help="The page after another: what that one says at its end.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def conversations(
    address: Address,
    user_id: str,
    agent_id: str | None,
    state: ConversationState | None,
    limit: int,
    after: str | None,
    as_json: bool,
) -> None:
    """List a user's conversations, the most recently changed first.

    In a pipe, a conversation is a line with tabs between.
    """
    from langchain_supabase_memory.cli import listing

    with address.opened() as memory, look.working("Asking the database …"):
        page = memory.conversations(user_id=user_id, agent_id=agent_id, state=state, limit=limit, after=after)
    if as_json:
        found = {"conversations": [asdict(each) for each in page], "after": page.after}
        click.echo(json.dumps(found, default=str))  # in ASCII, so that nothing in it is unseen
        return
    if look.is_terminal():
        listing.show(page, look.console())
    else:
        for line in listing.lines(page):
            click.echo(line)
    if not page:
        click.echo("There is no such conversation.", err=True)
    if page.after is not None:
        more = f"There are more than these {len(page)}: --after {page.after} shows them, --limit more at once."
        click.echo(more, err=True)
