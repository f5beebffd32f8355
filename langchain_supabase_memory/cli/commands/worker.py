"""`supabase-memory worker`."""

from __future__ import annotations

import asyncio
import logging
import signal
from contextlib import ExitStack, nullcontext, suppress
from datetime import timedelta
from itertools import count
from typing import TYPE_CHECKING

import click

from langchain_supabase_memory.adapters.telemetry.logs import PACKAGE, configure
from langchain_supabase_memory.cli import look
from langchain_supabase_memory.cli.living import Living
from langchain_supabase_memory.cli.options import addressed, modeled, refuse
from langchain_supabase_memory.errors import SupabaseMemoryError
from langchain_supabase_memory.operations import work

if TYPE_CHECKING:
    from langchain_supabase_memory.cli.options import Address, Models
    from langchain_supabase_memory.worker import Worker

_OF_A_WORKER = ("concurrency", "calls_per_minute", "archive_after", "user")

_LOOK_SECONDS = 2.0
"""How often the queue is looked at for a person, in seconds."""

_DRAW_SECONDS = 0.5
"""How often that is drawn, in seconds."""


@click.command()
@addressed
@modeled
@click.option("--concurrency", type=int, default=4, show_default=True, help="How many conversations at once.")
@click.option("--calls-per-minute", type=float, help="The most calls of the model a minute.")
@click.option("--archive-after", type=float, help="Archive conversations without a message for so many hours.")
@click.option("--user", help="Work for this user alone.")
@click.option("--metrics-port", type=int, help="Serve /metrics and /healthz on this port.")
@click.option(
    "--metrics-host", default="127.0.0.1", show_default=True, help="The address for that; 0.0.0.0 in a container."
)
@click.option("--drain", is_flag=True, help="Do what is due and end: for a scheduled task.")
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True),
    help="With --drain: begin nothing more after so many seconds. What has begun then has 30 more to come to its end, "
    "or the grace_seconds of the application's Worker.",
)
def worker(
    address: Address,
    models: Models,
    concurrency: int,
    calls_per_minute: float | None,
    archive_after: float | None,
    user: str | None,
    metrics_port: int | None,
    metrics_host: str,
    drain: bool,
    seconds: float | None,
) -> None:
    """Keep every conversation's index, summary and board up to date. Run as many as you like; SIGTERM ends one.

    In a terminal one line says what is done and due, the lag (for how long the oldest has been due) and the calls of
    the model; warnings appear above it. Elsewhere each piece of work is a line of the log. Ctrl-C ends it as SIGTERM
    does, and a second one at once.

    With --app, an option that names a database, a model or an embedder is refused, and so is one of --concurrency,
    --calls-per-minute, --archive-after and --user if the application gives a Worker. Of them what the environment says
    is ignored.
    """
    from langchain_supabase_memory.adapters.telemetry.metrics import NO_METRICS, Metrics
    from langchain_supabase_memory.adapters.telemetry.server import MetricsServer
    from langchain_supabase_memory.adapters.transports.event_loop import run
    from langchain_supabase_memory.worker import Worker, WorkerPolicy

    if not drain:
        refuse(["seconds"], "It goes with --drain.")
    with ExitStack() as stack:
        made = models.from_app()
        lives = look.moves()
        if not logging.getLogger(PACKAGE).hasHandlers():  # neither --log-format nor the application says how
            configure("plain", logging.WARNING if lives else logging.INFO)
        if isinstance(made, Worker):
            refuse(_OF_A_WORKER, "The application gives a Worker, which has a policy of its own.")
        else:
            if made is None:
                made = stack.enter_context(address.opened(**models.settings()))
            policy = WorkerPolicy(
                concurrency=concurrency,
                model_calls_per_minute=calls_per_minute,
                archive_after=None if archive_after is None else timedelta(hours=archive_after),
            )
            made = Worker(made, policy=policy, user_id=user)
        if metrics_port is not None:
            if made.metrics is NO_METRICS:
                made.memory.metrics = Metrics()
            server = MetricsServer(made.metrics, made.health, host=metrics_host, port=metrics_port)
            stack.enter_context(server)
            click.echo(f"Metrics on http://{metrics_host}:{server.port}/metrics", err=True)
        try:
            run(_run(made, drain=drain, seconds=seconds, lives=lives))
        except asyncio.CancelledError:
            raise KeyboardInterrupt from None
    tally = made.stats
    ends = ", ".join(f"{count} {outcome}" for outcome, count in sorted(tally.outcomes.items()))
    click.echo(
        f"{tally.summaries} segments, {tally.boards} boards, {tally.chunks} chunks; {ends or 'nothing was due'}."
    )


async def _run(worker: Worker, *, drain: bool, seconds: float | None, lives: bool) -> None:
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    asked = count(1)

    def interrupted() -> None:
        if next(asked) > 1:
            task.cancel()
            return
        worker.stop()
        click.echo("Ending: what has begun comes to its end first. Ctrl-C again ends at once.", err=True)

    with suppress(NotImplementedError):  # on Windows
        loop.add_signal_handler(signal.SIGTERM, worker.stop)
        loop.add_signal_handler(signal.SIGINT, interrupted)
    async with worker.memory:
        with Living() if lives else nullcontext() as line:
            telling = None if line is None else asyncio.create_task(_tell(worker, line))
            try:
                if drain:
                    await worker.drain(seconds)
                else:
                    await worker.run()
            finally:
                if telling is not None:
                    telling.cancel()
                    await asyncio.wait([telling])


async def _tell(worker: Worker, line: Living) -> None:
    """Say on one line how the work stands."""
    stands = ["asking the database"]

    async def ask() -> None:
        while True:
            try:
                queue = await worker.memory.arun(work.queue(user_id=worker.user_id))
                stands[:] = [f"{queue.depth} due", f"lag {look.duration(queue.lag_seconds)}"]
            except SupabaseMemoryError:
                stands[:] = ["the database is away"]
            await asyncio.sleep(_LOOK_SECONDS)

    async def draw() -> None:
        while True:
            tally = worker.stats
            failed = tally.outcomes.get("retry", 0) + tally.outcomes.get("dead", 0)
            ends = [f"{tally.pieces - failed} done", *([f"{failed} failed"] if failed else [])]
            line.show([*ends, *stands, f"{tally.model_calls} calls"])
            await asyncio.sleep(_DRAW_SECONDS)

    await asyncio.gather(ask(), draw())
