"""`supabase-memory insights`."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from langchain_supabase_memory.cli import formatting
from langchain_supabase_memory.cli.options import json_option, with_database_options
from langchain_supabase_memory.humanize import pluralize

if TYPE_CHECKING:
    from langchain_supabase_memory.cli.options import Address
    from langchain_supabase_memory.operations.advice import Advice
    from langchain_supabase_memory.operations.usage import Insights, UsageDay


@click.command()
@with_database_options
@click.option("--user", "user_id", help="Whose usage it is; by default numbers of users over all users.")
@click.option("--agent", "agent_id", help="Only conversations with this agent.")
@click.option("--days", type=click.IntRange(1, 366), default=30, show_default=True, help="How many days up to today.")
@json_option
def insights(address: Address, user_id: str | None, agent_id: str | None, days: int, as_json: bool) -> None:
    """Show what conversations came to by day, and which settings to change.

    With a user, it lists each day's numbers, and advice by the newest packs. Without one, it counts users over all
    users, with noise.

    \b
    Examples:
      supabase-memory insights --user maya --days 7
      supabase-memory insights --json
    """  # noqa: D301  # click reads the control character
    since = datetime.now(UTC).date() - timedelta(days=days - 1)
    with address.open() as memory:
        if user_id is None:
            _print_counts(memory.usage.insights(since=since, agent_id=agent_id), as_json)
            return
        owner = memory.for_user(user_id)
        _print_days(owner.usage.by_day(since=since, agent_id=agent_id), owner.advice(agent_id=agent_id), as_json)


def _print_days(days: list[UsageDay], advice: list[Advice], as_json: bool) -> None:
    if as_json:
        listed = [{**asdict(each), "day": str(each.day), "spared_tokens": each.spared_tokens} for each in days]
        formatting.echo_json({"days": listed, "advice": [asdict(each) for each in advice]})
        return
    for each in days:
        formatting.echo_line(
            f"{each.day}  {each.agent_id}: {pluralize(each.turns, 'turn')}, "
            f"{pluralize(each.pack_tokens, 'token')} sent, "
            f"{each.spared_tokens:,} spared, {each.recalls_empty:,} of {each.recalls:,} recalls empty"
        )
    for found in advice:
        formatting.echo_line(f"{found.rule}: {found.finding}")
        formatting.echo_line(f"  {found.setting}")
    if not days:
        click.echo("Nothing is counted in these days. A worker counts behind the answers.", err=True)


def _print_counts(counted: Insights, as_json: bool) -> None:
    if as_json:
        counts = [{**asdict(each), "day": str(each.day)} for each in counted.counts]
        formatting.echo_json({"k": counted.k, "least": counted.least, "error": counted.error, "counts": counts})
        return
    for each in counted.counts:
        line = f"{each.day}  {each.agent_id}: {each.what}, about {pluralize(each.users, 'user')}"
        formatting.echo_line(line)
    if not counted.counts:
        click.echo(f"No count has {counted.least:,.0f} users or more.", err=True)
