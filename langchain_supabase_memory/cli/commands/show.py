"""`supabase-memory show`."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import click

from langchain_supabase_memory.cli.options import addressed, refuse, typed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from langchain_supabase_memory.cli.options import Address
    from langchain_supabase_memory.cli.reading import Window
    from langchain_supabase_memory.memory.conversation import Conversation
    from langchain_supabase_memory.values import ConversationInfo, StoredMessage

_TURNS: Final = 10
_MOST: Final = 200
"""The most messages where nobody says how many."""

_BESIDE: Final = 5
"""How many messages stand before and after one that is asked for."""


@click.command()
@click.argument("thread")
@addressed
@click.option("--user", "user_id", required=True, help="The owner of the conversation.")
@click.option("--agent", "agent_id", help="The agent; needed where several have a conversation of this name.")
@click.option(
    "--last",
    type=click.IntRange(min=0),
    default=_TURNS,
    show_default=True,
    help=f"The newest so many turns. Where nobody says how many, no more than {_MOST} messages.",
)
@click.option("--all", "is_all", is_flag=True, help="Every turn.")
@click.option(
    "--around",
    type=click.IntRange(min=0),
    metavar="NUMBER",
    help=f"The message of this number, and {_BESIDE} before and after it.",
)
@click.option("--tools", is_flag=True, help="With what tools were asked and what they answered.")
@click.option("--board", "with_board", is_flag=True, help="With the board: summary, facts, action items, questions.")
@click.option("--json", "as_json", is_flag=True, help="As JSON, with everything that tools were asked and answered.")
def show(
    thread: str,
    address: Address,
    user_id: str,
    agent_id: str | None,
    last: int,
    is_all: bool,
    around: int | None,
    tools: bool,
    with_board: bool,
    as_json: bool,
) -> None:
    """Read a conversation: who said what, and when, in the time zone of this machine."""
    from langchain_supabase_memory.cli import reading

    if is_all:
        refuse(["last", "around"], "--all shows every turn.")
    if around is not None:
        refuse(["last"], "--around shows what stands beside one message.")
    if as_json:
        refuse(["tools"], "As JSON, everything of tools is there.")
    with address.opened() as memory:
        conversation, info = reading.found(memory, thread, user_id, agent_id)
        if is_all:
            window = reading.whole(conversation)
        elif around is not None:
            window = reading.around(conversation, around, _BESIDE)
        else:
            window = reading.newest(conversation, last, None if typed("last") else _MOST)
        if as_json:
            _as_json(conversation, info, window, with_board)
        else:
            _as_text(conversation, info, window, tools, with_board, 0 if around is not None else last)


def _as_text(
    conversation: Conversation, info: ConversationInfo, window: Window, tools: bool, with_board: bool, last: int
) -> None:
    from langchain_supabase_memory.cli.look import console, number
    from langchain_supabase_memory.cli.spoken import is_tools, spoken
    from langchain_supabase_memory.cli.transcript import Transcript

    transcript = Transcript(console())
    transcript.heading(info)
    if with_board:
        transcript.board(conversation.board.read())
    if window.is_cut:
        transcript.note(f"There are earlier messages: {f'--last {2 * last} or ' if last else ''}--all shows them.")
    hidden = 0
    for message in _messages(conversation, window):
        if is_tools(message) and not tools:
            hidden += 1
        else:
            transcript.message(spoken(message, tools=tools))
    if hidden:
        transcript.note(f"{number(hidden, 'answer of a tool', 'answers of tools')} left out; --tools shows them.")
    if window.goes_on:
        transcript.note("There are later messages: leave --around out to see the newest.")


def _as_json(conversation: Conversation, info: ConversationInfo, window: Window, with_board: bool) -> None:
    """One document, written as it is read. It is in ASCII, so that nothing in it is unseen."""
    from langchain_supabase_memory.cli.spoken import document

    head: dict[str, Any] = {"conversation": asdict(info)}
    if with_board:
        head["board"] = asdict(conversation.board.read())
    click.echo(json.dumps({**head, "earlier": window.is_cut, "later": window.goes_on}, default=str)[:-1], nl=False)
    click.echo(', "messages": [', nl=False)
    for place, message in enumerate(_messages(conversation, window)):
        click.echo((", " if place else "") + json.dumps(document(message), default=str), nl=False)
    click.echo("]}")


def _messages(conversation: Conversation, window: Window) -> Iterator[StoredMessage]:
    from langchain_supabase_memory.cli.reading import pages
    from langchain_supabase_memory.cli.spoken import COLUMNS

    for page in pages(conversation, window, COLUMNS):
        yield from page
