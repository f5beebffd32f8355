"""`supabase-memory board`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from langchain_supabase_memory.cli.options import agent_option, json_option, user_option, with_database_options

if TYPE_CHECKING:
    from langchain_supabase_memory.cli.options import Address


@click.command()
@click.argument("thread")
@with_database_options
@user_option("Owner of the conversation")
@agent_option
@click.option(
    "--history", "with_history", is_flag=True, help="Show what changed on it, by whom and when, and closed items."
)
@json_option
def board(thread: str, address: Address, user_id: str, agent_id: str | None, with_history: bool, as_json: bool) -> None:
    """Print the board of a conversation: its summary, and its items with their evidence.

    Each item has its id, the messages that it comes from, and the words there that say so.

    \b
    Examples:
      supabase-memory board studio --user maya
      supabase-memory board studio --user maya --history
    """  # noqa: D301  # click reads the control character
    from langchain_supabase_memory.cli import board_view, conversation_list, message_pages
    from langchain_supabase_memory.cli.formatting import console, echo_json
    from langchain_supabase_memory.cli.transcript import Transcript

    with address.open() as memory:
        conversation, info = message_pages.find_conversation(memory, thread, user_id, agent_id)
        found = conversation.board.read(history=with_history)
    if as_json:
        echo_json({"conversation": conversation_list.document(info), "board": asdict(found)})
        return
    Transcript(console()).heading(info)
    view = board_view.BoardView(console())
    view.print_board(found, with_closed=with_history)
    if with_history:
        view.print_history(found)
