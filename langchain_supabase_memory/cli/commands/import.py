# ruff: noqa: N999 - the module is named after its command
"""`supabase-memory import`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from langchain_supabase_memory.cli import transferring
from langchain_supabase_memory.cli.options import addressed

if TYPE_CHECKING:
    from langchain_supabase_memory.cli.options import Address

SOURCES: Final = (
    "jsonl", "chatgpt", "claude", "langgraph", "langchain-postgres", "langchain-sql", "openai-agents",
)  # fmt: skip
"""What conversations come from."""


@click.command("import")
@addressed
@transferring.as_user
@click.argument("source", type=click.Choice(SOURCES))
@click.argument("path")
@click.option("--user", "user_id", help="Whose the conversations are.")
@click.option("--agent", "agent_id", help="Their agent, where the source names none; by default 'default'.")
@click.option("--table", help="The table of a chat history, or of the messages of the OpenAI Agents SDK.")
@click.option("--channel", default="messages", show_default=True, help="Where a LangGraph state has its messages.")
@click.option("--thread", "threads", multiple=True, help="Only this thread of a LangGraph saver; may be repeated.")
@click.option("--encoding", help="What a file is written in, such as latin-1; by default as its first bytes say.")
@click.option("--skip", is_flag=True, help="Leave out what cannot be read, and say so at the end.")
@click.option("--dry-run", is_flag=True, help="Only read the source, and say what would be stored.")
def import_(
    address: Address,
    access_token: str | None,
    source: str,
    path: str,
    user_id: str | None,
    agent_id: str | None,
    table: str | None,
    channel: str,
    threads: tuple[str, ...],
    encoding: str | None,
    skip: bool,
    dry_run: bool,
) -> None:
    """Store conversations from elsewhere: a file, or the database of another library.

    PATH is a file (jsonl, chatgpt, claude), a connection string or a file of SQLite. Each message is stored once, in
    its order and with its time, so that a repeat changes nothing and one that was interrupted goes on.
    """
    from langchain_supabase_memory.transfer.import_conversations import import_conversations

    with (
        transferring.memory(address, access_token, user_id) as memory,
        transferring.opened(source, path, table=table, channel=channel, threads=threads, encoding=encoding) as events,
        transferring.progress("Importing") as told,
    ):
        receipt = import_conversations(
            memory, events, user_id=user_id, agent_id=agent_id, dry_run=dry_run, skip=skip, progress=told
        )
    for line in transferring.imported(receipt):
        click.echo(line)
