"""`supabase-memory doctor`."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

import click

from langchain_supabase_memory.cli import formatting
from langchain_supabase_memory.cli.options import json_option, with_database_options, with_model_options
from langchain_supabase_memory.language.messages.invisible import spell_out

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_supabase_memory.cli.options import Address, Models
    from langchain_supabase_memory.memory.doctor.finding import Finding, State
    from langchain_supabase_memory.memory.memory import SupabaseMemory

_STYLES: Final[Mapping[State, str]] = {"green": "green", "yellow": "yellow", "red": "bold red"}


@click.command()
@with_database_options
@with_model_options
@json_option
def doctor(address: Address, models: Models, as_json: bool) -> None:
    """Check the setup and say how to fix what is wrong.

    Each finding is green (OK), yellow (it works, but needs attention) or red (it is broken). The exit code is 1 if one
    is red. In a pipe, each finding is a line with tabs between state, name, text and next action.
    """
    with ExitStack() as stack:
        memory = _memory(stack, address, models)
        with formatting.spinner("Checking the setup …"):
            findings = memory.doctor()
    if as_json:
        formatting.echo_json([asdict(each) for each in findings])
    elif formatting.is_terminal():
        _print_table(findings)
    else:
        for each in findings:
            click.echo("\t".join(map(spell_out, (each.state, each.name, each.text, each.next_action or ""))))
    if any(each.state == "red" for each in findings):
        click.get_current_context().exit(1)


def _memory(stack: ExitStack, address: Address, models: Models) -> SupabaseMemory:
    """Open the application's memory, or the memory of the options."""
    from langchain_supabase_memory.worker import Worker

    app = models.load_app()
    if app is None:
        return stack.enter_context(address.open(needs_server=False, **models.settings()))
    return stack.enter_context(app.memory if isinstance(app, Worker) else app)


def _print_table(findings: Sequence[Finding]) -> None:
    """Print each finding with its next action below, then the number of findings per state."""
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
    formatting.console().print(table)
    counts = Counter(each.state for each in findings)
    click.echo(", ".join(f"{counts[state]} {state}" for state in _STYLES if counts[state]) + ".")
