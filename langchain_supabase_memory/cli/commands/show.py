"""`supabase-memory show`."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import click

from langchain_supabase_memory.cli.options import (
    agent_option,
    given_on_command_line,
    json_option,
    reject_options,
    user_option,
    with_database_options,
)
from langchain_supabase_memory.humanize import pluralize

if TYPE_CHECKING:
    from collections.abc import Iterator

    from langchain_supabase_memory.cli.message_pages import Window
    from langchain_supabase_memory.cli.options import Address
    from langchain_supabase_memory.memory.conversation import Conversation
    from langchain_supabase_memory.values import ConversationInfo, FoundSignal, StoredMessage

_DEFAULT_TURNS: Final = 10
_MAX_MESSAGES: Final = 200
"""The maximum number of messages without --last."""

_CONTEXT: Final = 5
"""The maximum number of messages before and after the one of --around."""


@click.command()
@click.argument("thread")
@with_database_options
@user_option("Owner of the conversation")
@agent_option
@click.option(
    "--last",
    type=click.IntRange(min=0),
    default=_DEFAULT_TURNS,
    show_default=True,
    help=f"Show this many of the newest turns; by default at most {_MAX_MESSAGES} messages.",
)
@click.option("--all", "is_all", is_flag=True, help="Show every turn.")
@click.option(
    "--around",
    type=click.IntRange(min=0),
    metavar="NUMBER",
    help=f"Show the message with this number, and {_CONTEXT} before and after it.",
)
@click.option("--tools", is_flag=True, help="Show the arguments and the results of tool calls.")
@click.option("--signals", "with_signals", is_flag=True, help="Show what the user's words tell, with the words.")
@json_option
def show(
    thread: str,
    address: Address,
    user_id: str,
    agent_id: str | None,
    last: int,
    is_all: bool,
    around: int | None,
    tools: bool,
    with_signals: bool,
    as_json: bool,
) -> None:
    """Print the messages of a conversation.

    Times are in the time zone of this machine. JSON includes tool calls.
    """
    from langchain_supabase_memory.cli import message_pages

    if is_all:
        reject_options(["last", "around"], "--all shows every turn.")
    if around is not None:
        reject_options(["last"], "--around shows the messages around one message.")
    if as_json:
        reject_options(["tools"], "JSON output always includes tool calls.")
    with address.open() as memory:
        conversation, info = message_pages.find_conversation(memory, thread, user_id, agent_id)
        if is_all:
            window = message_pages.all_messages(conversation)
        elif around is not None:
            window = message_pages.around(conversation, around, _CONTEXT)
        else:
            limit = None if given_on_command_line("last") else _MAX_MESSAGES
            window = message_pages.newest(conversation, last, limit)
        signals = conversation.turns.signals() if with_signals else []
        if as_json:
            _print_json(conversation, info, window, signals if with_signals else None)
        else:
            _print_text(conversation, info, window, tools, 0 if around is not None else last, signals)


def _print_text(
    conversation: Conversation,
    info: ConversationInfo,
    window: Window,
    tools: bool,
    last: int,
    signals: list[FoundSignal],
) -> None:
    from langchain_supabase_memory.cli.formatting import console
    from langchain_supabase_memory.cli.message_view import is_tool_result, message_view
    from langchain_supabase_memory.cli.transcript import Transcript

    transcript = Transcript(console())
    transcript.heading(info)
    if window.has_earlier:
        transcript.note(f"There are earlier messages: {f'--last {2 * last} or ' if last else ''}--all shows them.")
    told: dict[int, list[FoundSignal]] = {}
    for each in signals:
        told.setdefault(each.sequence, []).append(each)
    hidden = 0
    for message in _messages(conversation, window):
        if is_tool_result(message) and not tools:
            hidden += 1
        else:
            transcript.message(message_view(message, tools=tools, signals=told.get(message.sequence, ())))
    if hidden:
        transcript.note(f"{pluralize(hidden, 'answer of a tool', 'answers of tools')} left out; --tools shows them.")
    if window.has_later:
        transcript.note("There are later messages: leave --around out to see the newest.")


def _print_json(
    conversation: Conversation,
    info: ConversationInfo,
    window: Window,
    signals: list[FoundSignal] | None,
) -> None:
    """Print one JSON document while messages are read. ASCII escapes invisible characters."""
    from langchain_supabase_memory.cli.conversation_list import document
    from langchain_supabase_memory.cli.message_view import message_document

    head: dict[str, Any] = {"conversation": document(info)}
    if signals is not None:
        head["signals"] = [{**asdict(each), "signal": each.signal.label} for each in signals]
    head |= {"earlier": window.has_earlier, "later": window.has_later}
    click.echo(json.dumps(head, default=str)[:-1], nl=False)
    click.echo(', "messages": [', nl=False)
    for index, message in enumerate(_messages(conversation, window)):
        click.echo((", " if index else "") + json.dumps(message_document(message), default=str), nl=False)
    click.echo("]}")


def _messages(conversation: Conversation, window: Window) -> Iterator[StoredMessage]:
    from langchain_supabase_memory.cli.message_pages import pages
    from langchain_supabase_memory.cli.message_view import COLUMNS

    for page in pages(conversation, window, COLUMNS):
        yield from page
