"""`supabase-memory doctor`."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import ExitStack
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

import click

from langchain_supabase_memory.cli import look
from langchain_supabase_memory.cli.options import addressed, modeled
from langchain_supabase_memory.language.messages.invisible import spell_out

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_supabase_memory.cli.options import Address, Models
    from langchain_supabase_memory.memory.doctor.finding import Finding, State
    from langchain_supabase_memory.memory.memory import SupabaseMemory

_STYLES: Final[Mapping[State, str]] = {"green": "green", "yellow": "yellow", "red": "bold red"}


@click.command()
@addressed
@modeled
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def doctor(address: Address, models: Models, as_json: bool) -> None:
    """Look at everything that a memory needs, from the address to the workers, with what to do next.

    Each line is green, yellow (it works, and something is to be known) or red (something is broken). The status is 1 if
    a line is red. In a pipe a line has tabs between state, name, words and the next action.
    """
    with ExitStack() as stack:
        memory = _memory(stack, address, models)
        with look.working("Looking at everything …"):
            findings = memory.doctor()
    if as_json:
        click.echo(json.dumps([asdict(each) for each in findings]))  # in ASCII, so that nothing in it is unseen
    elif look.is_terminal():
        _show(findings)
    else:
        for each in findings:
            click.echo("\t".join(map(spell_out, (each.state, each.name, each.text, each.next_action or ""))))
    if any(each.state == "red" for each in findings):
        click.get_current_context().exit(1)


def _memory(stack: ExitStack, address: Address, models: Models) -> SupabaseMemory:
    """The memory to look at: the application's, or one by the options."""
    from langchain_supabase_memory.worker import Worker

    made = models.from_app()
    if made is None:
        return stack.enter_context(address.opened(needs_server=False, **models.settings()))
    return stack.enter_context(made.memory if isinstance(made, Worker) else made)


def _show(findings: Sequence[Finding]) -> None:
    """A line for each finding, with the next action below, and how many there are of each state."""
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    for _ in range(2):
        table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for each in findings:
        table.add_row(Text(each.state, _STYLES[each.state]), each.name, spell_out(each.text))
        if each.next_action is not None:
            table.add_row("", "", f"→ {spell_out(each.next_action)}")
    look.console().print(table)
    counts = Counter(each.state for each in findings)
    click.echo(", ".join(f"{counts[state]} {state}" for state in _STYLES if counts[state]) + ".")
