"""The question before something is deleted. It is asked in a terminal alone; elsewhere `--yes` has to say so."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from langchain_supabase_memory.cli.look import number, shown_id
from langchain_supabase_memory.language.messages.invisible import spell_out

if TYPE_CHECKING:
    from langchain_supabase_memory.values import Receipt


def can_ask(is_agreed: bool) -> None:
    """Refuse to go on where nobody can be asked and nobody has agreed.

    Args:
        is_agreed: Whether `--yes` was typed.

    Raises:
        UsageError: There is no terminal.
    """
    if not is_agreed and not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise click.UsageError(
            "There is no terminal to ask in, so nothing was deleted. Pass --yes to delete without a question, or "
            "--dry-run to see what would go."
        )


def ask(question: str) -> None:
    """Ask whether to go on.

    Args:
        question: What is about to happen.

    Raises:
        ClickException: The answer is not yes.
    """
    if _answer(f"{question} [y/N] ").lower() not in ("y", "yes"):
        raise click.ClickException("Nothing was deleted.")


def ask_for(question: str, name: str) -> None:
    """Ask for a name to be typed, where a letter alone would be too little.

    Args:
        question: What is about to happen.
        name: What has to be typed; what of it is unseen may be typed as it is spelled.

    Raises:
        ClickException: Something else was typed.
    """
    if _answer(f"{question} ") not in (name.strip(), spell_out(name).strip()):
        raise click.ClickException("That is another name. Nothing was deleted.")


def _answer(prompt: str) -> str:
    """What somebody types, without blanks at its ends.

    Raises:
        Abort: The input has ended.
    """
    # Not `click.prompt`, which writes a blank to the standard output, where an answer for a program may go.
    click.echo(prompt, nl=False, err=True)
    answer = sys.stdin.readline()
    if not answer:
        click.echo(err=True)
        raise click.Abort from EOFError()
    return answer.strip()


def counted(receipt: Receipt, *, are_whole: bool) -> str:
    """What a receipt counts, in words; empty if there is nothing.

    Args:
        receipt: The receipt.
        are_whole: Whether the conversations go, and not only some of their messages.
    """
    conversations = number(receipt.conversations, "conversation")
    parts = {
        conversations: receipt.conversations if are_whole else 0,
        number(receipt.messages, "message") + ("" if are_whole else f" of {conversations}"): receipt.messages,
        number(receipt.segments, "summary", "summaries"): receipt.segments,
        number(receipt.chunks, "chunk"): receipt.chunks,
        number(receipt.items, "item of the store", "items of the store"): receipt.items,
    }
    said = [part for part, count in parts.items() if count]
    return f"{', '.join(said[:-1])} and {said[-1]}" if len(said) > 1 else "".join(said)


def whose(user_id: str | None, agent_id: str | None, thread_id: str | None) -> str:
    """What a deletion is limited to, in words."""
    owner = "of all users" if user_id is None else f"of the user {shown_id(user_id)}"
    agent = "" if agent_id is None else f", with the agent {shown_id(agent_id)}"
    thread = "" if thread_id is None else f", in the thread {shown_id(thread_id)}"
    return f"{owner}{agent}{thread}"
