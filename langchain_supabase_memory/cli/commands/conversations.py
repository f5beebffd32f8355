"""`supabase-memory conversations`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, get_args

import click

from langchain_supabase_memory.cli import formatting
from langchain_supabase_memory.cli.options import json_option, user_option, with_database_options
from langchain_supabase_memory.values import ConversationState, Signal

if TYPE_CHECKING:
    from langchain_supabase_memory.cli.options import Address

_MAX_LIMIT: Final = 1000
"""The maximum number of conversations per page."""


@click.command()
@with_database_options
@user_option("Owner of the conversations")
@click.option("--agent", "agent_id", help="Only conversations with this agent.")
@click.option("--state", type=click.Choice(get_args(ConversationState)), help="Only conversations in this state.")
@click.option(
    "--signal",
    "signals",
    multiple=True,
    type=click.Choice([each.label for each in Signal]),
    help="Only conversations with this signal; of several, with one of them.",
)
@click.option(
    "--limit",
    type=click.IntRange(1, _MAX_LIMIT),
    default=20,
    show_default=True,
    help="Maximum number of conversations on a page.",
)
@click.option("--after", help="Show the page after this one: the value that a page prints at its end.")
@json_option
def conversations(
    address: Address,
    user_id: str,
    agent_id: str | None,
    state: ConversationState | None,
    signals: tuple[str, ...],
    limit: int,
    after: str | None,
    as_json: bool,
) -> None:
    """List a user's conversations, most recently changed first.

    In a pipe, each conversation is a line with tabs between the columns.
    """
    from langchain_supabase_memory.cli import conversation_list

    with address.open() as memory, formatting.spinner("Querying the database …"):
        page = memory.for_user(user_id).conversations(
            agent_id=agent_id, state=state, signals=signals or None, limit=limit, after=after
        )
    if as_json:
        formatting.echo_json(
            {"conversations": [conversation_list.document(each) for each in page], "after": page.after}
        )
        return
    if formatting.is_terminal():
        conversation_list.print_list(page, formatting.console())
    else:
        for line in conversation_list.plain_lines(page):
            click.echo(line)
    if not page:
        is_filtered = agent_id or state or signals or after
        what = "no such conversation" if is_filtered else "no conversations"
        click.echo(f"The user {formatting.format_id(user_id)} has {what}.", err=True)
    if page.after is not None:
        hint = f"There are more than these {len(page)}: --after {page.after} shows them, --limit more at once."
        click.echo(hint, err=True)
