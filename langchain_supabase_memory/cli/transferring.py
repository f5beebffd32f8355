"""What import and export share on the command line: whose memory, which source, what is shown meanwhile and after."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from langchain_supabase_memory.cli import look
from langchain_supabase_memory.cli.options import Address, typed
from langchain_supabase_memory.errors import (
    ConfigurationError,
    InvalidInputError,
    MissingDependencyError,
    connection_failed,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from langchain_supabase_memory.memory.memory import SupabaseMemory
    from langchain_supabase_memory.transfer.values import ExportReceipt, ImportReceipt, Source

F = TypeVar("F", bound="Callable[..., Any]")


def as_user(command: F) -> F:
    """Give a command the option by which a user acts for themself."""
    option = click.option(
        "--access-token",
        envvar="SUPABASE_MEMORY_TOKEN",
        help="A signed-in user's own token, with --url and the publishable --key: row level security decides; by "
        "default $SUPABASE_MEMORY_TOKEN.",
    )
    return option(command)


def memory(address: Address, access_token: str | None, user_id: str | None) -> SupabaseMemory:
    """The memory, as a server or as the bearer of a token.

    A user that is named beside a database goes before a token that merely stands in the environment.

    Raises:
        ConfigurationError: Nobody is named, or a token goes to no Data API.
    """
    is_named = user_id is not None and bool(address.database_url or address.embedded)
    if access_token is None or (is_named and not typed("access_token")):
        if user_id is None:
            raise ConfigurationError("No user is named.", hint="Pass --user, or --access-token of a signed-in user.")
        return address.opened(model=None, recall=None)
    if typed("database_url", "embedded") or not (address.url and address.key):
        raise ConfigurationError(
            "A user's token is for the Data API.", hint="Pass --url and the publishable --key, and no database."
        )
    over_http = Address(url=address.url, key=address.key)
    return over_http.opened(needs_server=False, access_token=access_token, model=None, recall=None)


@contextmanager
def opened(
    source: str, path: str, *, table: str | None, channel: str, threads: tuple[str, ...], encoding: str | None
) -> Iterator[Source]:
    """A source by its name.

    Raises:
        InvalidInputError: An option is not one of this source's.
    """
    from langchain_supabase_memory.transfer import sources

    if table is not None and source not in ("langchain-postgres", "langchain-sql", "openai-agents"):
        raise InvalidInputError(f"The source {source} has no table.", hint="Leave --table out.")
    if threads and source != "langgraph":
        raise InvalidInputError(f"The source {source} is read as a whole.", hint="Leave --thread out.")
    named = {} if table is None else {"table": table}
    if source == "langgraph":
        with _saver(path) as saver:
            yield sources.langgraph(saver, channel=channel, threads=threads or None)
    elif source in ("jsonl", "chatgpt", "claude"):
        yield getattr(sources, source)(path, encoding=encoding)
    else:
        yield getattr(sources, source.replace("-", "_"))(path, **named)


@contextmanager
def _saver(address: str) -> Iterator[Any]:
    """The saver of an address: Postgres, or a file of SQLite."""
    is_postgres = address.startswith(("postgres://", "postgresql://")) or "host=" in address
    package = f"langgraph-checkpoint-{'postgres' if is_postgres else 'sqlite'}"
    made: Any
    try:
        if is_postgres:
            from langgraph.checkpoint.postgres import PostgresSaver as made  # noqa: N813
        else:
            from langgraph.checkpoint.sqlite import SqliteSaver as made  # noqa: N813
    except ImportError:
        raise MissingDependencyError("Reading this saver", package=package) from None
    if not is_postgres:
        from langchain_supabase_memory.transfer.sources.databases import sqlite_file

        with made.from_conn_string(sqlite_file(address)) as saver:
            yield saver
        return
    from psycopg import Error

    with ExitStack() as stack:
        try:
            saver = stack.enter_context(made.from_conn_string(address))
        except Error as error:
            raise connection_failed(str(error)) from None
        yield saver


@contextmanager
def progress(doing: str) -> Iterator[Callable[[ImportReceipt | ExportReceipt], None]]:
    """Show in a terminal how far it is."""
    with look.working(f"{doing} …") as say:

        def told(receipt: ImportReceipt | ExportReceipt) -> None:
            counted = look.number(receipt.conversations, "conversation")
            say(f"{doing} … {look.number(receipt.messages, 'message')} of {counted}")

        yield told


def imported(receipt: ImportReceipt) -> Iterator[str]:
    """What an import did, in lines."""
    counted = f"{look.number(receipt.messages, 'message')} of {look.number(receipt.conversations, 'conversation')}"
    if receipt.dry_run:
        yield f"{counted} would be imported."
    else:
        known = f", {receipt.known:,} were there already" if receipt.known else ""
        yield f"{counted} read: {receipt.stored:,} stored{known}."
    if receipt.restored:
        yield f"{look.number(receipt.restored, 'setting')} of people put back."
    if receipt.refused:
        yield f"{look.number(receipt.refused, 'setting')} of people not put back, because of an opt-out."
    if receipt.expired:
        gone = "would go" if receipt.dry_run else "went"
        yield f"{look.number(receipt.expired, 'message')} {gone} at once, because of the retention."
    for what, (count, place) in receipt.lost.items():
        yield f"Not kept: {count:,} × {what} (first: {place})"
    if receipt.stored:
        yield "A worker makes summaries, boards and chunks of it: supabase-memory worker"
