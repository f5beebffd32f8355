"""The commands around the worker: run one, see how the work stands, try again what was given up."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import os
import signal
import sys
from contextlib import ExitStack
from dataclasses import asdict
from datetime import timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Any, get_args

import click

from langchain_supabase_memory.adapters.telemetry.logs import PACKAGE, configure
from langchain_supabase_memory.cli.options import (
    database_url_option,
    embedded_option,
    key_option,
    opened,
    plainly,
    refuse,
    url_option,
)
from langchain_supabase_memory.errors import ConfigurationError, MissingDependencyError, SupabaseMemoryError
from langchain_supabase_memory.language.messages.invisible import spelled
from langchain_supabase_memory.operations.work import WorkState

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from langchain_supabase_memory.memory.memory import SupabaseMemory
    from langchain_supabase_memory.operations.work import ConversationStatus
    from langchain_supabase_memory.worker import Worker

_ANY_WIDTH = 1_000_000
"""Of a line that goes into a file or a pipe, in columns."""

_FEWEST_COLUMNS = 80
"""What a table needs. A terminal that has less breaks the lines itself; rich would leave columns out."""

_OF_A_MEMORY = ("database_url", "embedded", "url", "key", "model", "embeddings")
_OF_A_POLICY = ("concurrency", "calls_per_minute", "archive_after")


@click.command()
@click.option(
    "--app",
    help="Where your application makes it: module:name of a Worker, a SupabaseMemory, or a function without arguments "
    "that gives one. It brings its own database, model and embedder, and a Worker its own pace.",
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
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True),
    help="With --drain: begin nothing more after so many seconds. What has begun then has 30 more to come to its end, "
    "or the grace_seconds of the application's Worker.",
)
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
    seconds: float | None,
) -> None:
    """Keep every conversation's index, summary and board up to date. Run as many as you like; SIGTERM ends one.

    With --app, an option that names a database, a model or an embedder is refused, and so is one of --concurrency,
    --calls-per-minute and --archive-after if the application gives a Worker. Of them what the environment says is
    ignored.
    """
    from langchain_supabase_memory.adapters.telemetry.metrics import NO_METRICS, Metrics
    from langchain_supabase_memory.adapters.telemetry.server import MetricsServer
    from langchain_supabase_memory.worker import Worker, WorkerPolicy

    if not drain:
        refuse(["seconds"], "It goes with --drain.")
    if app is not None:
        refuse(_OF_A_MEMORY, "With --app, the application brings its own database, model and embedder.")
    with ExitStack() as stack:
        made = None if app is None else _from_app(app)
        if not logging.getLogger(PACKAGE).hasHandlers():  # neither --log-format nor the application says how
            configure("plain")
        if isinstance(made, Worker):
            refuse(_OF_A_POLICY, "The application gives a Worker, which has a policy of its own.")
        else:
            if made is None:
                writer, embedder = _writer(model), _embedder(embeddings)
                settings = {"model": writer, "embeddings": embedder}
                made = stack.enter_context(opened(database_url, embedded, url, key, **settings))
            policy = WorkerPolicy(
                concurrency=concurrency,
                model_calls_per_minute=calls_per_minute,
                archive_after=None if archive_after is None else timedelta(hours=archive_after),
            )
            made = Worker(made, policy=policy)
        if metrics_port is not None:
            if made.metrics is NO_METRICS:
                made.memory.metrics = Metrics()
            server = MetricsServer(made.metrics, made.health, host=metrics_host, port=metrics_port)
            stack.enter_context(server)
            click.echo(f"Metrics on http://{metrics_host}:{server.port}/metrics", err=True)
        asyncio.run(_run(made, drain=drain, seconds=seconds))
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
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, help="The most conversations.")
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
        queue = memory.work.queue()
        rows = memory.work.status(user_id=user_id, thread_id=thread_id, state=state, limit=limit + 1)
    rows, is_cut = rows[:limit], len(rows) > limit
    if as_json:
        found = {"queue": asdict(queue), "conversations": [asdict(row) for row in rows], "more": is_cut}
        click.echo(json.dumps(found, default=str))  # in ASCII, so that nothing in it is unseen
        return
    lag = f", the oldest for {queue.lag_seconds:.0f} s" if queue.depth else ""
    aside = f", {queue.unreadable} set aside with unusable ids" if queue.unreadable else ""
    click.echo(f"{queue.depth} due{lag}; {queue.leases} running, {queue.waiting} waiting, {queue.dead} dead{aside}.")
    if queue.unreadable_messages:
        click.echo(f"{queue.unreadable_messages} messages cannot be read; `supabase-memory unreadable` lists them.")
    if rows:
        _table(rows)
    if is_cut:
        click.echo(f"There are more than these {limit}. --limit shows more; --user, --thread and --state narrow it.")


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
        click.echo(f"{memory.work.retry(user_id=user_id, thread_id=thread_id)} conversations are due again.")


async def _run(worker: Worker, *, drain: bool, seconds: float | None) -> None:
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        try:
            loop.add_signal_handler(name, worker.stop)
        except NotImplementedError:  # on Windows
            break
    try:
        if drain:
            await worker.drain(seconds)
        else:
            await worker.run()
    finally:
        await worker.memory.aclose()


def _table(rows: list[ConversationStatus]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for heading in ("user", "agent", "thread", "state", "said", "summary", "index", "board", "tokens saved", "error"):
        # What is cut could not be passed to --user or --thread, so that folds; numbers and words of ours are short.
        table.add_column(heading, overflow="fold", no_wrap=heading in ("state", "said", "summary", "index", "board"))
    for row in rows:
        covered = (row.summarized_through, row.indexed_through, row.board_through)
        shown = ["–" if through < 0 else f"to {through}" for through in covered]
        ids = map(spelled, (row.key.user_id or "", row.key.agent_id, row.key.thread_id))
        failed = [
            f"{duty}: {each.error}{'' if each.until else ' (given up)'}"
            for duty, each in row.paused.items()
            if duty != "all"
        ]
        error = spelled("; ".join(failed) or row.error or "")
        table.add_row(*ids, row.state, str(row.messages), *shown, f"{row.tokens_saved:,}", error)
    width = max(Console().width, _FEWEST_COLUMNS) if sys.stdout.isatty() else _ANY_WIDTH
    Console(width=width, markup=False, emoji=False, highlight=False).print(table)


def _from_app(name: str) -> Worker | SupabaseMemory:
    """What an application has made.

    Raises:
        ConfigurationError: There is no such thing, or it is something else.
    """
    from langchain_supabase_memory.memory.memory import SupabaseMemory
    from langchain_supabase_memory.worker import Worker

    found = _imported(name)
    if not isinstance(found, (Worker, SupabaseMemory)) and callable(found):
        needed = _arguments(found)
        if needed:
            raise ConfigurationError(
                f"The function {name} needs arguments ({', '.join(needed)}).",
                hint="Nobody can pass them here: name a function without, or what it gives.",
            )
        found = found()
    if not isinstance(found, (Worker, SupabaseMemory)):
        raise ConfigurationError(
            f"The application gives a {type(found).__name__}.", hint="It has to give a Worker or a SupabaseMemory."
        )
    return found


def _imported(name: str) -> Any:
    """What is called so in a module, which is looked for in the working directory first.

    Raises:
        ConfigurationError: There is no such thing, or it needs what is not there.
    """
    module, _, attribute = name.partition(":")
    if not module or module.startswith(".") or not attribute:
        raise ConfigurationError(
            f"--app {name} is no module:name.", hint="Pass a module and a name in it, such as myapp.memory:worker."
        )
    if sys.path[:1] != [os.getcwd()]:
        sys.path.insert(0, os.getcwd())
    try:
        loaded = import_module(module)
    except SupabaseMemoryError:
        raise
    except ImportError as error:
        if error.name is None:  # the application's own words
            raise
        if isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}."):
            raise ConfigurationError(
                f"The application's module {module} was not found.",
                hint="Run it in the folder that holds it, or name that folder in PYTHONPATH.",
            ) from None
        lacks = "is not installed" if isinstance(error, ModuleNotFoundError) else "lacks what is imported from it"
        raise ConfigurationError(
            f"The application needs the module {error.name}, which {lacks}.",
            hint="Install what the application needs where this command runs.",
        ) from None
    try:
        return getattr(loaded, attribute)
    except AttributeError:
        raise ConfigurationError(
            f"{attribute} was not found in the application's module {module}.", hint="Pass --app module:name."
        ) from None


def _arguments(function: Callable[..., Any]) -> list[str]:
    """The arguments that a function cannot do without."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # of some that are written in C nobody knows
        return []
    optional = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [each.name for each in parameters if each.default is each.empty and each.kind not in optional]


def _writer(model: str | None) -> Any:
    """The model that writes; without a key, one that selects quotes."""
    if model is None and not os.environ.get("OPENAI_API_KEY"):
        from langchain_supabase_memory.language.extractive import ExtractiveSummarizer

        return ExtractiveSummarizer()
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
