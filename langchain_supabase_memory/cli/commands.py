"""What can be typed. Each command is a few lines over the package's own functions."""

from __future__ import annotations

import os
import time
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from langchain_supabase_memory.adapters.schema import files, script
from langchain_supabase_memory.adapters.telemetry.logs import configure
from langchain_supabase_memory.cli.options import (
    conn_string,
    database_url_option,
    embedded_option,
    key_option,
    opened,
    plainly,
    url_option,
)
from langchain_supabase_memory.cli.unreadable import unreadable
from langchain_supabase_memory.cli.work import retry, status, worker
from langchain_supabase_memory.errors import MissingDependencyError

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings
    from langchain_core.language_models import BaseChatModel

    from langchain_supabase_memory.adapters.telemetry.logs import LogFormat
    from langchain_supabase_memory.adapters.writer import Summarizer

_vector_index = click.option(
    "--vector-index",
    type=int,
    metavar="WIDTH",
    help="With an index over vectors of this width, such as 1536, for owners of more than 10,000 chunks.",
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="langchain-supabase-memory")
@click.option(
    "--log-format",
    type=click.Choice(["plain", "json"]),
    envvar="SUPABASE_MEMORY_LOG_FORMAT",
    help="Log to the standard error stream: lines for people, which a worker writes by default, or one JSON object a "
    "line.",
)
def commands(log_format: LogFormat | None) -> None:
    """Memory for LangChain and LangGraph agents on Supabase."""
    if log_format is not None:
        configure(log_format)


commands.add_command(worker)
commands.add_command(status)
commands.add_command(retry)
commands.add_command(unreadable)


@commands.command()
@database_url_option
@embedded_option
@_vector_index
@plainly
def migrate(database_url: str | None, embedded: Path | None, vector_index: int | None) -> None:
    """Set a database up, or bring it to this release. Safe to repeat."""
    from langchain_supabase_memory.adapters.schema.migrate import migrate as apply

    installed = apply(conn_string(database_url, embedded), vector_index=vector_index)
    click.echo(f"The database is set up for release {installed.version}, with pgvector in {installed.vector_schema}.")


@commands.command()
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write migration files into this folder (supabase/migrations), for `supabase db push`.",
)
@click.option(
    "--vector-schema",
    default=script.VECTOR_SCHEMA,
    show_default=True,
    help="The schema that pgvector lies in. `migrate` finds it by itself.",
)
@_vector_index
@plainly
def sql(output: Path | None, vector_schema: str, vector_index: int | None) -> None:
    """Print everything the database needs, to be pasted into Supabase's SQL editor; or write migration files."""
    if output is None:
        click.echo(script.text(vector_schema, vector_index=vector_index))
        return
    written = files.write(output, vector_schema, vector_index=vector_index)
    for path in written:
        click.echo(path)
    click.echo(
        f"{len(written)} files written; apply them with: supabase db push" if written else "Nothing new to write."
    )


@commands.command()
@database_url_option
@embedded_option
@url_option
@key_option
@plainly
def check(database_url: str | None, embedded: Path | None, url: str | None, key: str | None) -> None:
    """Ask a database (or the Data API) whether it is set up for this release."""
    with opened(database_url, embedded, url, key) as memory:
        installed = memory.check()
    click.echo(f"Ready: release {installed.version}, with pgvector in {installed.vector_schema}.")


@commands.command()
@database_url_option
@embedded_option
@url_option
@key_option
@click.option("--max-age", type=float, help="The oldest that a message may be, in hours.")
@click.option("--max-turns", type=int, help="The most complete turns of a conversation.")
@click.option("--max-messages", type=int, help="The most messages of a conversation.")
@click.option("--every", type=float, help="Do it again after so many minutes, until it is stopped.")
@plainly
def cleanup(
    database_url: str | None,
    embedded: Path | None,
    url: str | None,
    key: str | None,
    max_age: float | None,
    max_turns: int | None,
    max_messages: int | None,
    every: float | None,
) -> None:
    """Remove what is not to be kept: chunks that have expired, messages too old, turns too many."""
    from langchain_supabase_memory.settings import Retention

    retention = None
    if not max_age is max_turns is max_messages is None:
        age = None if max_age is None else timedelta(hours=max_age)
        retention = Retention(max_turns=max_turns, max_age=age, max_messages=max_messages)
    with opened(database_url, embedded, url, key) as memory:
        while True:
            gone = memory.forget_expired(retention=retention)
            click.echo(
                f"{gone.messages} messages of {gone.conversations} conversations and {gone.chunks} chunks removed."
            )
            if every is None:
                return
            time.sleep(every * 60)


@commands.command()
@click.option(
    "--transcript",
    type=click.Path(path_type=Path, dir_okay=False),
    help='A conversation of yours: JSON lines of {"role", "content", "created_at"}.',
)
@click.option("--ask", multiple=True, help="A question to ask about it; may be given several times.")
@click.option(
    "--path",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(".demo/postgres"),
    show_default=True,
    help="The folder of the demo's database.",
)
@click.option(
    "--model", envvar="OPENAI_MODEL", default="gpt-5.5", show_default=True, help="With OPENAI_API_KEY: the model."
)
@plainly
def demo(transcript: Path | None, ask: tuple[str, ...], path: Path, model: str) -> None:
    """Watch an agent remember a long conversation; without OPENAI_API_KEY, with a stand-in that can only quote."""
    from rich.console import Console

    from langchain_supabase_memory.cli.demo.show import show

    chat, summarizer, embeddings = _models(model)
    questions = list(ask) or None
    show(Console(), path.absolute(), chat, summarizer, path=transcript, questions=questions, embeddings=embeddings)


def _models(name: str) -> tuple[BaseChatModel, Summarizer, Embeddings | None]:
    """The agent's model, the summary model and the embedder where there is a key; else the stand-ins and none."""
    if os.environ.get("OPENAI_API_KEY"):
        try:
            from langchain_openai import ChatOpenAI, OpenAIEmbeddings
        except ImportError:
            raise MissingDependencyError("A model of OpenAI", "openai") from None
        chat = ChatOpenAI(model=name)
        return chat, chat, OpenAIEmbeddings(model="text-embedding-3-small")
    from langchain_supabase_memory.cli.demo.model import OfflineQuotingModel
    from langchain_supabase_memory.language.extractive import ExtractiveSummarizer

    return OfflineQuotingModel(), ExtractiveSummarizer(), None
