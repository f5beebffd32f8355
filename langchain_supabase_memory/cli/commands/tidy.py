"""`supabase-memory tidy`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from langchain_supabase_memory.cli import confirmation
from langchain_supabase_memory.cli.formatting import spinner
from langchain_supabase_memory.cli.options import with_direct_database_options
from langchain_supabase_memory.humanize import pluralize

if TYPE_CHECKING:
    from langchain_supabase_memory.adapters.checkpoints.tidy import TidyReport
    from langchain_supabase_memory.cli.options import Address


@click.command()
@with_direct_database_options
@click.option("--schema", default="public", show_default=True, help="The schema of LangGraph's tables.")
@click.option(
    "--keep",
    type=click.IntRange(1, 2**31 - 1),
    default=1,
    show_default=True,
    help="Keep this many of the newest checkpoints of each thread's graph and subgraphs.",
)
@click.option(
    "--days",
    type=click.FloatRange(0, 366_000),
    default=7.0,
    show_default=True,
    help="Keep checkpoints that are younger.",
)
@click.option("--close/--leave-open", "closes", default=True, help="Close the tables to the Data API, the default.")
@click.option("--dry-run", is_flag=True, help="Only print what would be deleted and closed.")
@click.option("--yes", is_flag=True, help="Delete without asking.")
def tidy(address: Address, schema: str, keep: int, days: float, closes: bool, dry_run: bool, yes: bool) -> None:
    """Prune LangGraph's checkpoints, and close their tables to the Data API.

    A graph resumes at every checkpoint that is left. The command counts what would be deleted and asks first. A script
    has to pass --yes.
    """
    from langchain_supabase_memory.adapters.checkpoints.tidy import tidy as apply

    if not dry_run:
        confirmation.require_tty(yes)
    conn_string = address.conn_string()

    def run(*, only_counts: bool) -> TidyReport:
        with spinner("Counting …" if only_counts else "Deleting …") as update:

            def show(done: TidyReport) -> None:
                update(f"{done.threads:,} threads, {done.checkpoints:,} checkpoints so far")

            return apply(
                conn_string,
                schema=schema,
                newest=keep,
                days=days,
                closes=closes,
                dry_run=only_counts,
                report=show,
            )

    if not yes:
        planned = run(only_counts=True)
        if dry_run or not (planned.checkpoints or planned.blobs or planned.closed):
            click.echo(_text(planned, is_planned=True))
            return
        confirmation.confirm(f"{_text(planned, is_planned=True)} Do it?")
    elif dry_run:
        click.echo(_text(run(only_counts=True), is_planned=True))
        return
    click.echo(_text(run(only_counts=False), is_planned=False))


def _text(report: TidyReport, *, is_planned: bool) -> str:
    """Return what a report says, in lines for people."""
    rows = (
        f"{pluralize(report.checkpoints, 'checkpoint')}, {pluralize(report.writes, 'pending write')} and "
        f"{pluralize(report.blobs, 'value')} of {pluralize(report.threads, 'thread')}"
    )
    lines = [f"{rows} {'would go' if is_planned else 'deleted'}: {report.bytes / 1e6:,.1f} MB of content."]
    for table, before in (report.before or {}).items():
        after = (report.after or {}).get(table, before)
        sizes = f"{table}: {before.rows:,} rows, {before.bytes / 1e6:,.1f} MB"
        lines.append(sizes if is_planned else f"{sizes}; now {after.rows:,} rows, {after.bytes / 1e6:,.1f} MB")
    if report.closed:
        lines.append(f"{'To close' if is_planned else 'Closed'} to the Data API: {', '.join(report.closed)}.")
    if report.skipped:
        lines.append(f"{pluralize(report.skipped, 'thread')} of LangGraph.js with delta channels left as they are.")
    if not is_planned and report.bytes:
        lines.append("Postgres reuses the space. `vacuum full`, which locks a table, returns it to the system.")
    return "\n".join(lines)
