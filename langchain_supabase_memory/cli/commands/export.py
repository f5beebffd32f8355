"""`supabase-memory export`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Literal

import click

from langchain_supabase_memory.cli import look, transferring
from langchain_supabase_memory.cli.options import addressed

if TYPE_CHECKING:
    from langchain_supabase_memory.cli.options import Address


@click.command()
@addressed
@transferring.as_user
@click.argument("target", type=click.Path())
@click.option("--user", "user_id", help="Whose conversations.")
@click.option("--agent", "agent_id", help="Only conversations with this agent.")
@click.option("--thread", "thread_id", help="Only this conversation.")
@click.option(
    "--format",
    "as_format",
    type=click.Choice(["jsonl", "markdown"]),
    default="jsonl",
    show_default=True,
    help="JSON in lines, which `import jsonl` reads; or Markdown, a file for each conversation in a folder.",
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
    """Write a user's conversations to a file, or with `-` to the standard output; as Markdown to a folder.

    With --access-token a user takes along all that is theirs, and nothing else.
    """
    from langchain_supabase_memory.transfer.export_conversations import export_conversations

    with (
        transferring.memory(address, access_token, user_id) as memory,
        transferring.progress("Exporting") as told,
    ):
        receipt = export_conversations(
            memory,
            sys.stdout.buffer if target == "-" else target,
            format=as_format,
            user_id=user_id,
            agent_id=agent_id,
            thread_id=thread_id,
            progress=told,
        )
    counted = f"{look.number(receipt.messages, 'message')} of {look.number(receipt.conversations, 'conversation')}"
    click.echo(f"{counted} exported, {receipt.bytes:,} bytes.", err=target == "-")
    if receipt.superseded:
        left = look.number(receipt.superseded, "message")
        click.echo(f"{left} more that a graph has left: marked as superseded.", err=target == "-")
