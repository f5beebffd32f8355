# ruff: noqa: N999 - the module is named after its command
"""`supabase-memory import`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from langchain_supabase_memory.cli import transfer_options
from langchain_supabase_memory.cli.options import access_token_option, user_option, with_database_options

if TYPE_CHECKING:
    from langchain_supabase_memory.cli.options import Address

SOURCES: Final = (
    "jsonl", "chatgpt", "claude", "langgraph", "langchain-postgres", "langchain-sql", "openai-agents",
    "mem0", "zep", "letta",
)  # fmt: skip
"""The functions of `transfer.sources`, named here so that help and completion need not import them."""


@click.command("import")
@with_database_options
@access_token_option
@click.argument("source", type=click.Choice(SOURCES))
@click.argument("path")
@user_option("Owner of the imported conversations", required=False)
@click.option("--agent", "agent_id", help="Agent of conversations that name none; by default 'default'.")
@click.option("--table", help="Table of a chat history, or of the messages of the OpenAI Agents SDK.")
@click.option("--channel", help="Channel of a LangGraph state with messages; by default 'messages'.")
@click.option("--thread", "threads", multiple=True, help="Only this thread of a LangGraph saver; may be repeated.")
@click.option("--source-user", help="User of mem0 whose memories are imported.")
@click.option("--node", help="Node of the user in a graph of Zep: only facts that begin there.")
@click.option("--label", "labels", multiple=True, help="Label of Letta's blocks about the user; by default 'human'.")
@click.option("--encoding", help="Encoding of a file, such as latin-1; by default detected from its first bytes.")
@click.option("--skip", is_flag=True, help="Skip what cannot be read, and report it at the end.")
@click.option("--dry-run", is_flag=True, help="Only read the source, and print what would be stored.")
def import_(
    address: Address,
    access_token: str | None,
    source: str,
    path: str,
    user_id: str | None,
    agent_id: str | None,
    table: str | None,
    channel: str | None,
    threads: tuple[str, ...],
    source_user: str | None,
    node: str | None,
    labels: tuple[str, ...],
    encoding: str | None,
    skip: bool,
    dry_run: bool,
) -> None:
    """Import conversations, or what is known of a user, from a file or another library's database.

    PATH is an exported file, `-` for the standard input, a connection string or a SQLite file. Each
    message is stored once, in its order and with its time: a repeated import changes nothing, and an
    interrupted one goes on.
    """
    from langchain_supabase_memory.transfer.import_conversations import import_conversations

    with (
        transfer_options.open_memory(address, access_token, user_id) as memory,
        transfer_options.open_source(
            source,
            path,
            table=table,
            channel=channel,
            threads=threads or None,
            source_user=source_user,
            node=node,
            labels=labels or None,
            encoding=encoding,
        ) as events,
        transfer_options.progress("Importing") as report,
    ):
        receipt = import_conversations(memory, events, agent_id=agent_id, dry_run=dry_run, skip=skip, progress=report)
    for line in transfer_options.import_report(receipt):
        click.echo(line)
