"""`supabase-memory cleanup`."""

from __future__ import annotations

import math
import time
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

from langchain_supabase_memory.cli import asking
from langchain_supabase_memory.cli.look import working
from langchain_supabase_memory.cli.options import addressed, refuse

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_supabase_memory.cli.options import Address
    from langchain_supabase_memory.flow import Flow
    from langchain_supabase_memory.memory.memory import SupabaseMemory
    from langchain_supabase_memory.values import Receipt

_MOST: Final = 2**31 - 1
_LONGEST: Final = 24 * 366 * 1000  # hours


class _Hours(click.FloatRange):
    """A number of hours or minutes that is one."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail("That is no number.", param, ctx)
        return number


_TIME: Final = _Hours(min=0, max=_LONGEST, min_open=True)


@click.command()
@addressed
@click.option("--max-age", type=_TIME, metavar="HOURS", help="The oldest that a message may be, in hours.")
@click.option("--max-turns", type=click.IntRange(1, _MOST), help="The most complete turns of a conversation.")
@click.option("--max-messages", type=click.IntRange(1, _MOST), help="The most messages of a conversation.")
@click.option("--user", "user_id", help="Only this user's conversations.")
@click.option("--agent", "agent_id", help="Only conversations with this agent.")
@click.option("--thread", "thread_id", help="Only this thread.")
@click.option("--dry-run", is_flag=True, help="Only say what would go.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option(
    "--every", type=_TIME, metavar="MINUTES", help="With --yes: again after so many minutes, until it is stopped."
)
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
    """Remove what is not to be kept: chunks that have expired, messages too old, turns too many.

    Summaries go where a limit is given and their conversation's newest is older than 90 days.

    Before anything goes it says how much that is, and asks. A script has to pass --yes.
    """
    from langchain_supabase_memory.operations.conversations import forget_expired
    from langchain_supabase_memory.settings import Retention

    if dry_run:
        refuse(["every", "yes"], "--dry-run deletes nothing.")
    elif every is not None and not yes:
        raise click.UsageError("--every goes with --yes: it deletes when nobody is there to be asked.")
    else:
        asking.can_ask(yes)
    retention = None
    if not max_age is max_turns is max_messages is None:
        age = None if max_age is None else timedelta(hours=max_age)
        retention = Retention(max_turns=max_turns, max_age=age, max_messages=max_messages)
    whose = asking.whose(user_id, agent_id, thread_id)
    with address.opened() as memory:
        expire = partial(forget_expired, retention, user_id=user_id, agent_id=agent_id, thread_id=thread_id)
        if not yes:
            with working("Counting what would go …"):
                found = asking.counted(memory.run(expire(dry_run=True)), are_whole=False)
            if dry_run or not found:
                click.echo(f"{f'{found} would go' if found else 'Nothing is to be removed'}, {whose}.")
                return
            asking.ask(f"Remove {found}, {whose}?")
        while True:
            click.echo(f"{_removed(memory, expire)} removed, {whose}.")
            if every is None:
                return
            time.sleep(every * 60)


def _removed(memory: SupabaseMemory, expire: Callable[..., Flow[Receipt]]) -> str:
    """Remove it, and tell what went; also where Ctrl-C ends that, for what went before does not come back."""
    gone = "Nothing"
    try:
        with working("Removing …") as say:

            def report(receipt: Receipt) -> None:
                nonlocal gone
                gone = asking.counted(receipt, are_whole=False) or gone
                say(f"Removing … so far {gone}")

            memory.run(expire(report=report))
    except KeyboardInterrupt:
        click.echo(f"{gone} removed before that. The rest is as it was; the same command goes on from there.", err=True)
        raise
    return gone
