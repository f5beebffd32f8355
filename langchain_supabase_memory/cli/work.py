"""The commands around the worker: run one, see how the work stands, try again what was given up."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from contextlib import ExitStack
from dataclasses import asdict
from datetime import timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Any, get_args

import click

from langchain_supabase_memory.cli.options import (
    database_url_option,
    embedded_option,
    key_option,
    opened,
    plainly,
    url_option,
)
from langchain_supabase_memory.errors import ConfigurationError, MissingDependencyError
from langchain_supabase_memory.work import WorkState

if TYPE_CHECKING:
    from pathlib import Path

    from langchain_supabase_memory.memory import SupabaseMemory
    from langchain_supabase_memory.work import ConversationStatus
    from langchain_supabase_memory.worker import Worker


@click.command()
@click.option(
    "--app",
    help="Where your application makes it: module:name of a Worker, a SupabaseMemory, or a function that gives one.",
)
@database_url_option
@embedded_option
@url_option
@key_option
@click.option(
    "--model",
    envvar="OPENAI_MODEL",
    help="A model of OpenAI that writes; by default gpt-5.5 with OPENAI_API_KEY, and without it quotes are selected.",
)
@click.option(
    "--embeddings", help="A model of OpenAI that embeds, such as text-embedding-3-small; without one, words do."
)
@click.option("--concurrency", type=int, default=4, show_default=True, help="How many conversations at once.")
@click.option("--calls-per-minute", type=float, help="The most calls of the model a minute.")
@click.option("--archive-after", type=float, help="Archive conversations without a message for so many hours.")
@click.option("--metrics-port", type=int, help="Serve /metrics and /healthz on this port.")
@click.option(
    "--metrics-host", default="127.0.0.1", show_default=True, help="The address for that; 0.0.0.0 in a container."
)
@click.option("--drain", is_flag=True, help="Do what is due and end: for a scheduled task.")
@plainly
def worker(
    app: str | None,
    database_url: str | None,
    embedded: Path | None,
    url: str | None,
    key: str | None,
    model: str | None,
    embeddings: str | None,
    concurrency: int,
    calls_per_minute: float | None,
    archive_after: float | None,
    metrics_port: int | None,
    metrics_host: str,
    drain: bool,
) -> None:
    """Keep every conversation's index, summary and board up to date. Run as many as you like; SIGTERM ends one."""
    from langchain_supabase_memory.telemetry.server import MetricsServer
    from langchain_supabase_memory.worker import Worker, WorkerPolicy

    metrics = _metrics() if metrics_port is not None else None
    with ExitStack() as stack:
        made = None if app is None else _from_app(app)
        if not isinstance(made, Worker):
            if made is None:
                writer, embedder = _writer(model), _embedder(embeddings)
                settings = {"model": writer, "embeddings": embedder, "metrics": metrics}
                made = stack.enter_context(opened(database_url, embedded, url, key, **settings))
            policy = WorkerPolicy(
                concurrency=concurrency,
                model_calls_per_minute=calls_per_minute,
                archive_after=None if archive_after is None else timedelta(hours=archive_after),
            )
            made = Worker(made, policy=policy)
        if metrics_port is not None:
            server = MetricsServer(made.metrics, made.health, host=metrics_host, port=metrics_port)
            stack.enter_context(server)
            click.echo(f"Metrics on http://{metrics_host}:{server.port}/metrics", err=True)
        asyncio.run(_run(made, drain=drain))
    tally = made.tally
    ends = ", ".join(f"{count} {outcome}" for outcome, count in sorted(tally.outcomes.items()))
    click.echo(
        f"{tally.summaries} segments, {tally.boards} boards, {tally.chunks} chunks; {ends or 'nothing was due'}."
    )


@click.command()
@database_url_option
@embedded_option
@url_option
@key_option
@click.option("--user", "user_id", help="Only this user's conversations.")
@click.option("--thread", "thread_id", help="Only this thread.")
@click.option("--state", type=click.Choice(get_args(WorkState)), help="Only those in this state.")
@click.option("--limit", type=int, default=50, show_default=True, help="The most conversations.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@plainly
def status(
    database_url: str | None,
    embedded: Path | None,
    url: str | None,
    key: str | None,
    user_id: str | None,
    thread_id: str | None,
    state: WorkState | None,
    limit: int,
    as_json: bool,
) -> None:
    """See what is due, running, waiting and dead, and how far each conversation is covered."""
    with opened(database_url, embedded, url, key) as memory:
        queue = memory.queue()
        rows = memory.status(user_id=user_id, thread_id=thread_id, state=state, limit=limit)
    if as_json:
        found = {"queue": asdict(queue), "conversations": [asdict(row) for row in rows]}
        click.echo(json.dumps(found, default=str, ensure_ascii=False))
        return
    lag = f", the oldest for {queue.lag_seconds:.0f} s" if queue.depth else ""
    click.echo(f"{queue.depth} due{lag}; {queue.leases} running, {queue.waiting} waiting, {queue.dead} dead.")
    if rows:
        _table(rows)


@click.command()
@database_url_option
@embedded_option
@url_option
@key_option
@click.option("--user", "user_id", help="Only this user's conversations.")
@click.option("--thread", "thread_id", help="Only this thread.")
@plainly
def retry(
    database_url: str | None,
    embedded: Path | None,
    url: str | None,
    key: str | None,
    user_id: str | None,
    thread_id: str | None,
) -> None:
    """Try again what workers have given up."""
    with opened(database_url, embedded, url, key) as memory:
        click.echo(f"{memory.revive(user_id=user_id, thread_id=thread_id)} conversations are due again.")


async def _run(worker: Worker, *, drain: bool) -> None:
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        try:
            loop.add_signal_handler(name, worker.stop)
        except NotImplementedError:  # on Windows
            break
    try:
        if drain:
            await worker.drain()
        else:
            await worker.run()
    finally:
        await worker.memory.aclose()


def _table(rows: list[ConversationStatus]) -> None:
    from rich.console import Console
    from rich.table import Table

    headings = ("user", "agent", "thread", "state", "said", "summary", "index", "board", "tokens saved", "error")
    table = Table(*headings, box=None, pad_edge=False)
    for row in rows:
        covered = (row.summarised_through, row.indexed_through, row.board_through)
        shown = ["–" if through < 0 else f"to {through}" for through in covered]
        ids = (row.key.user_id or "", row.key.agent_id, row.key.thread_id)
        table.add_row(*ids, row.state, str(row.messages), *shown, f"{row.tokens_saved:,}", row.error or "")
    Console().print(table)


def _from_app(name: str) -> Worker | SupabaseMemory:
    """What an application has made.

    Raises:
        ConfigurationError: There is no such thing, or it is something else.
    """
    from langchain_supabase_memory.memory import SupabaseMemory
    from langchain_supabase_memory.worker import Worker

    module, _, attribute = name.partition(":")
    try:
        found: Any = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigurationError(
            f"The application was not found ({type(error).__name__}).",
            hint="Pass --app module:name, and run it where Python finds the module (PYTHONPATH).",
        ) from None
    if not isinstance(found, (Worker, SupabaseMemory)) and callable(found):
        found = found()
    if not isinstance(found, (Worker, SupabaseMemory)):
        raise ConfigurationError(
            f"The application gives a {type(found).__name__}.", hint="It has to give a Worker or a SupabaseMemory."
        )
    return found


def _writer(model: str | None) -> Any:
    """The model that writes; without a key, one that selects quotes."""
    if model is None and not os.environ.get("OPENAI_API_KEY"):
        from langchain_supabase_memory.extractive import ExtractiveSummariser

        return ExtractiveSummariser()
    try:
        from langchain_openai import ChatOpenAI
    except ImportError:
        raise MissingDependencyError("A model of OpenAI", "openai") from None
    return ChatOpenAI(model=model or "gpt-5.5")


def _embedder(name: str | None) -> Any:
    if name is None:
        return None
    try:
        from langchain_openai import OpenAIEmbeddings
    except ImportError:
        raise MissingDependencyError("An embedder of OpenAI", "openai") from None
    return OpenAIEmbeddings(model=name)


def _metrics() -> Any:
    from langchain_supabase_memory.telemetry.metrics import Metrics

    return Metrics()
