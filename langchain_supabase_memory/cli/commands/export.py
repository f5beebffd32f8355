"""`supabase-memory export`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Literal

import click

from langchain_supabase_memory.cli import transfer_options
from langchain_supabase_memory.cli.options import access_token_option, user_option, with_database_options
from langchain_supabase_memory.humanize import pluralize

if TYPE_CHECKING:
    from langchain_supabase_memory.cli.options import Address


@click.command()
@with_database_options
@access_token_option
@click.argument("target", type=click.Path())
@user_option("Owner of the conversations", required=False)
@click.option("--agent", "agent_id", help="Only conversations with this agent.")
@click.option("--thread", "thread_id", help="Only this thread.")
@click.option(
    "--format",
    "as_format",
    type=click.Choice(["jsonl", "markdown"]),
    default="jsonl",
    show_default=True,
    help="JSON lines, which `import jsonl` reads; or Markdown, one file per conversation.",
)
def export(
    address: Address,
    access_token: str | None,
    target: str,
    user_id: str | None,
    agent_id: str | None,
    thread_id: str | None,
    as_format: Literal["jsonl", "markdown"],
) -> None:
    """Export a user's conversations to a file or a folder.

    TARGET is a file, `-` for the standard output, or a folder for Markdown. With --access-token, a user exports all of
    their own data and nothing else.
    """
    from langchain_supabase_memory.transfer.export_conversations import export_conversations

    with (
        transfer_options.open_memory(address, access_token, user_id) as memory,
        transfer_options.progress("Exporting") as report,
    ):
        receipt = export_conversations(
            memory,
            sys.stdout.buffer if target == "-" else target,
            format=as_format,
            agent_id=agent_id,
            thread_id=thread_id,
            progress=report,
        )
    is_piped = target == "-"
    click.echo(f"{transfer_options.counts(receipt)} exported, {receipt.bytes:,} bytes.", err=is_piped)
    if receipt.superseded:
        superseded = pluralize(receipt.superseded, "message")
        click.echo(f"{superseded} more that a graph has left: marked as superseded.", err=is_piped)
