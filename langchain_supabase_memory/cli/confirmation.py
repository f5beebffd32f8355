"""Questions before a deletion. Only a terminal can answer them; a script passes `--yes`."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from typing import TYPE_CHECKING

import click

from langchain_supabase_memory.cli.formatting import format_id
from langchain_supabase_memory.humanize import pluralize
from langchain_supabase_memory.language.messages.invisible import spell_out

if TYPE_CHECKING:
    from langchain_supabase_memory.values import Receipt


def require_tty(is_agreed: bool) -> None:
    """Refuse to continue without a terminal for the question, unless the user agreed on the command line.

    Args:
        is_agreed: Whether the user passed `--yes`.

    Raises:
        UsageError: There is no terminal.
    """
    if not is_agreed and not (sys.stdin.isatty() and sys.stderr.isatty()):
        command = click.get_current_context().command
        can_only_count = any(each.name == "dry_run" for each in command.params)
        raise click.UsageError(
            "There is no terminal to ask in, so nothing was deleted. Pass --yes to delete without asking"
            f"{', or --dry-run to see what would be deleted' if can_only_count else ''}."
        )


def confirm(question: str) -> None:
    """Ask a yes-or-no question on the standard error stream.

    Args:
        question: What is about to happen.

    Raises:
        ClickException: The answer is no.
        Abort: The input has ended.
    """
    with redirect_stdout(sys.stderr):  # older releases of click write part of the question to the standard output
        is_yes = click.confirm(question, default=False, prompt_suffix=" ", err=True)
    if not is_yes:
        raise click.ClickException("Nothing was deleted.")


def confirm_by_name(question: str, name: str) -> None:
    """Ask the user to type a name, where yes or no is not enough.

    Args:
        question: What is about to happen.
        name: The name to type. Invisible characters may be typed as their codes.

    Raises:
        ClickException: The user typed something else.
        Abort: The input has ended.
    """
    with redirect_stdout(sys.stderr):
        answer: str = click.prompt(question, default="", show_default=False, prompt_suffix=" ", err=True)
    if answer.strip() not in (name.strip(), spell_out(name).strip()):
        raise click.ClickException("The name does not match. Nothing was deleted.")


def receipt_text(receipt: Receipt, *, with_conversations: bool) -> str:
    """Format the counts of a receipt.

    Args:
        receipt: The receipt.
        with_conversations: Whether whole conversations are deleted, not only some of their messages.

    Returns:
        The counts in words; empty if all are zero.
    """
    conversations = pluralize(receipt.conversations, "conversation")
    counts = {
        conversations: receipt.conversations if with_conversations else 0,
        pluralize(receipt.messages, "message")
        + ("" if with_conversations else f" of {conversations}"): receipt.messages,
        pluralize(receipt.segments, "summary", "summaries"): receipt.segments,
        pluralize(receipt.chunks, "chunk"): receipt.chunks,
        pluralize(receipt.items, "item of the store", "items of the store"): receipt.items,
        pluralize(receipt.members, "member"): receipt.members,
        pluralize(receipt.authored, "message in spaces", "messages in spaces"): receipt.authored,
        pluralize(receipt.contributions, "quote in spaces", "quotes in spaces"): receipt.contributions,
        pluralize(receipt.spaces, "space"): receipt.spaces,
        pluralize(receipt.profile, "item of the profile", "items of the profile"): receipt.profile,
    }
    texts = [text for text, count in counts.items() if count]
    return " and ".join(filter(None, (", ".join(texts[:-1]), *texts[-1:])))


def scope_text(user_id: str | None, agent_id: str | None, thread_id: str | None) -> str:
    """Describe the scope of a deletion."""
    owner = "of all users" if user_id is None else f"of the user {format_id(user_id)}"
    agent = "" if agent_id is None else f", with the agent {format_id(agent_id)}"
    thread = "" if thread_id is None else f", in the thread {format_id(thread_id)}"
    return f"{owner}{agent}{thread}"
