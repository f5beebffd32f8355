"""`supabase-memory cleanup`."""

from __future__ import annotations

import math
import time
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

from langchain_supabase_memory.cli import confirmation
from langchain_supabase_memory.cli.formatting import spinner
from langchain_supabase_memory.cli.options import reject_options, with_database_options

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_supabase_memory.cli.options import Address
    from langchain_supabase_memory.effects import Flow
    from langchain_supabase_memory.memory.memory import SupabaseMemory
    from langchain_supabase_memory.values import Receipt

_MAX_INTEGER: Final = 2**31 - 1
_MAX_HOURS: Final = 24 * 366 * 1000


class _Hours(click.FloatRange):
    """A number of hours or minutes that is not NaN."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail("This is not a number.", param, ctx)
        return number


_TIME: Final = _Hours(min=0, max=_MAX_HOURS, min_open=True)


@click.command()
@with_database_options
@click.option("--max-age", type=_TIME, metavar="HOURS", help="Delete messages that are older.")
@click.option("--max-turns", type=click.IntRange(1, _MAX_INTEGER), help="Keep this many turns of a conversation.")
@click.option("--max-messages", type=click.IntRange(1, _MAX_INTEGER), help="Keep this many messages of a conversation.")
@click.option("--user", "user_id", help="Only this user's conversations.")
@click.option("--agent", "agent_id", help="Only conversations with this agent.")
@click.option("--thread", "thread_id", help="Only this thread.")
@click.option("--dry-run", is_flag=True, help="Only print what would be deleted.")
@click.option("--yes", is_flag=True, help="Delete without asking.")
@click.option("--every", type=_TIME, metavar="MINUTES", help="With --yes: repeat after this time, until Ctrl-C.")
def cleanup(
    address: Address,
    max_age: float | None,
    max_turns: int | None,
    max_messages: int | None,
    user_id: str | None,
    agent_id: str | None,
    thread_id: str | None,
    dry_run: bool,
    yes: bool,
    every: float | None,
) -> None:
    """Delete expired chunks, and messages beyond a limit.

    With a limit, summaries also go if the newest summary of their conversation is older than 90 days.

    The command counts what would be deleted and asks first. A script has to pass --yes.
    """
    from langchain_supabase_memory.operations.conversations import forget_expired
    from langchain_supabase_memory.settings import Retention

    if dry_run:
        reject_options(["every", "yes"], "--dry-run deletes nothing.")
    elif every is not None and not yes:
        raise click.UsageError("--every goes with --yes, because it deletes without asking.")
    else:
        confirmation.require_tty(yes)
    retention = None
    if not max_age is max_turns is max_messages is None:
        age = None if max_age is None else timedelta(hours=max_age)
        retention = Retention(max_turns=max_turns, max_age=age, max_messages=max_messages)
    scope = confirmation.scope_text(user_id, agent_id, thread_id)
    with address.open() as memory:
        expire = partial(forget_expired, retention, user_id=user_id, agent_id=agent_id, thread_id=thread_id)
        if not yes:
            with spinner("Counting what would be deleted …"):
                counts = confirmation.receipt_text(memory._services.run(expire(dry_run=True)), with_conversations=False)
            if dry_run or not counts:
                click.echo(f"{f'{counts} would be deleted' if counts else 'Nothing to delete'}, {scope}.")
                return
            confirmation.confirm(f"Delete {counts}, {scope}?")
        while True:
            click.echo(f"{_remove(memory, expire)} removed, {scope}.")
            if every is None:
                return
            until = time.monotonic() + every * 60
            while (left := until - time.monotonic()) > 0:
                time.sleep(min(left, 1.0))  # Ctrl-C right before a sleep is noticed after it


def _remove(memory: SupabaseMemory, expire: Callable[..., Flow[Receipt]]) -> str:
    """Remove expired data.

    Returns:
        The removed counts as text. Ctrl-C prints them, because removed data is not restored.
    """
    removed = "Nothing"
    try:
        with spinner("Deleting …") as update:

            def report(receipt: Receipt) -> None:
                nonlocal removed
                removed = confirmation.receipt_text(receipt, with_conversations=False) or removed
                update(f"Deleting … {removed} so far")

            memory._services.run(expire(report=report))
    except KeyboardInterrupt:
        click.echo(
            f"{removed} removed before that. The rest is as it was; the same command goes on from there.", err=True
        )
        raise
    return removed
