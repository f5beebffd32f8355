"""`supabase-memory worker`."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from contextlib import ExitStack, nullcontext, suppress
from datetime import timedelta
from itertools import count
from typing import TYPE_CHECKING

import click

from langchain_supabase_memory.adapters.telemetry.logs import PACKAGE, configure
from langchain_supabase_memory.cli import formatting
from langchain_supabase_memory.cli.options import reject_options, with_database_options, with_model_options
from langchain_supabase_memory.cli.status_line import status_line
from langchain_supabase_memory.errors import SupabaseMemoryError
from langchain_supabase_memory.humanize import duration, pluralize
from langchain_supabase_memory.operations import work

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from langchain_supabase_memory.cli.options import Address, Models
    from langchain_supabase_memory.worker import Worker

_WORKER_OPTIONS = ("concurrency", "calls_per_minute", "archive_after", "user")

_QUERY_SECONDS = 2.0
"""The time between two queries of the queue, in seconds."""

_DRAW_SECONDS = 0.5
"""The time between two drawings of the line, in seconds."""


@click.command()
@with_database_options
@with_model_options
@click.option("--concurrency", type=int, default=4, show_default=True, help="Conversations to process at once.")
@click.option("--calls-per-minute", type=float, help="Maximum number of model calls per minute.")
@click.option("--archive-after", type=float, metavar="HOURS", help="Archive conversations that are idle for this long.")
@click.option("--user", help="Only process this user's jobs.")
@click.option(
    "--profile",
    is_flag=True,
    help="Gather users' profiles, as MemoryConfig(profile=True) does; --app has its own setting.",
)
@click.option("--metrics-port", type=int, help="Serve /metrics and /healthz on this port.")
@click.option(
    "--metrics-host", default="127.0.0.1", show_default=True, help="Address for --metrics-port; 0.0.0.0 in a container."
)
@click.option("--drain", is_flag=True, help="Process what is due, and exit: for a scheduled task.")
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True),
    help="With --drain: start no new job after this time. A running job then has 30 more seconds, or the grace_seconds "
    "of the application's Worker.",
)
def worker(
    address: Address,
    models: Models,
    concurrency: int,
    calls_per_minute: float | None,
    archive_after: float | None,
    user: str | None,
    profile: bool,
    metrics_port: int | None,
    metrics_host: str,
    drain: bool,
    seconds: float | None,
) -> None:
    """Run a worker, which keeps indexes, summaries and boards up to date.

    Run as many as you like. In a terminal, one line shows what is done and due, the lag (how long the oldest job is
    due) and the model calls; warnings appear above it. Elsewhere, each job is a line of the log. Ctrl-C and SIGTERM let
    running jobs finish; a second Ctrl-C exits at once.

    With --app, an option that names a database or a model is refused; if the application gives a Worker, so is one of
    --concurrency, --calls-per-minute, --archive-after and --user. Their environment variables are ignored.
    """
    from langchain_supabase_memory.adapters.telemetry.metrics import NO_METRICS, Metrics
    from langchain_supabase_memory.adapters.telemetry.server import MetricsServer
    from langchain_supabase_memory.adapters.transports.event_loop import run
    from langchain_supabase_memory.memory.config import MemoryConfig
    from langchain_supabase_memory.worker import Worker, WorkerPolicy

    if not drain:
        reject_options(["seconds"], "It goes with --drain.")
    with ExitStack() as stack:
        target = models.load_app("profile")
        is_animated = formatting.can_animate()
        if not logging.getLogger(PACKAGE).hasHandlers():  # neither --log-format nor the application sets a handler
            configure("plain", logging.WARNING if is_animated else logging.INFO)
        if isinstance(target, Worker):
            reject_options(_WORKER_OPTIONS, "The application's Worker has its own policy.")
        else:
            if target is None:
                target = stack.enter_context(address.open(**models.settings(), config=MemoryConfig(profile=profile)))
            policy = WorkerPolicy(
                concurrency=concurrency,
                model_calls_per_minute=calls_per_minute,
                archive_after=None if archive_after is None else timedelta(hours=archive_after),
            )
            target = Worker(target._for(user), policy=policy)
        if metrics_port is not None:
            if target.metrics is NO_METRICS:
                target.memory._services.metrics = Metrics()
            server = MetricsServer(target.metrics, target.health, host=metrics_host, port=metrics_port)
            stack.enter_context(server)
            click.echo(f"Metrics on http://{metrics_host}:{server.port}/metrics", err=True)
        try:
            run(_run(target, drain=drain, seconds=seconds, is_animated=is_animated))
        except asyncio.CancelledError:
            raise KeyboardInterrupt from None
    tally = target.stats
    outcomes = ", ".join(f"{count} {outcome}" for outcome, count in sorted(tally.outcomes.items()))
    made = ((tally.summaries, "segment"), (tally.boards, "board"), (tally.chunks, "chunk"))
    counts = ", ".join(pluralize(count, noun) for count, noun in made)
    click.echo(f"{counts}; {outcomes or 'nothing was due'}.")


async def _run(worker: Worker, *, drain: bool, seconds: float | None, is_animated: bool) -> None:
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    interrupts = count(1)

    def on_interrupt() -> None:
        if next(interrupts) > 1:
            task.cancel()
            return
        worker.stop()
        # Use the current stderr, which the status line has replaced; click would write to the original terminal.
        click.echo("Stopping after the running jobs finish. Press Ctrl-C again to exit at once.", file=sys.stderr)

    with suppress(NotImplementedError):  # on Windows
        loop.add_signal_handler(signal.SIGTERM, worker.stop)
        loop.add_signal_handler(signal.SIGINT, on_interrupt)
    async with worker.memory:
        with status_line() if is_animated else nullcontext() as draw:
            report = None if draw is None else asyncio.create_task(_report(worker, draw))
            try:
                if drain:
                    await worker.drain(seconds)
                else:
                    await worker.run()
            finally:
                if report is not None:
                    report.cancel()
                    await asyncio.wait([report])


async def _report(worker: Worker, draw: Callable[[Sequence[str]], None]) -> None:
    """Show the status of the work on one line."""
    queue_parts = ["asking the database"]

    async def query() -> None:
        while True:
            try:
                queue = await worker.memory._services.arun(work.queue(user_id=worker.user_id))
                more = "+" if queue.has_more else ""
                queue_parts[:] = [f"{queue.depth}{more} due", f"lag {duration(queue.lag_seconds)}"]
            except SupabaseMemoryError:
                queue_parts[:] = ["the database is away"]
            await asyncio.sleep(_QUERY_SECONDS)

    async def redraw() -> None:
        while True:
            tally = worker.stats
            failed = tally.outcomes.get("retry", 0) + tally.outcomes.get("dead", 0)
            outcomes = [f"{tally.pieces - failed} done", *([f"{failed} failed"] if failed else [])]
            draw([*outcomes, *queue_parts, f"{tally.model_calls} calls"])
            await asyncio.sleep(_DRAW_SECONDS)

    await asyncio.gather(query(), redraw())
