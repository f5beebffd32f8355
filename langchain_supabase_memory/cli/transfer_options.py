"""Code that import and export share: the memory, the source, the progress and the report."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager, nullcontext
from inspect import signature
from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory.cli.formatting import spinner
from langchain_supabase_memory.cli.options import USER, Address, given_on_command_line
from langchain_supabase_memory.errors import (
    ConfigurationError,
    InvalidInputError,
    MissingDependencyError,
    connection_failed,
)
from langchain_supabase_memory.humanize import pluralize

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from langchain_supabase_memory.memory.memory import SupabaseMemory
    from langchain_supabase_memory.transfer.values import ExportReceipt, ImportReceipt, Source


@contextmanager
def open_memory(address: Address, access_token: str | None, user_id: str | None) -> Iterator[SupabaseMemory]:
    """Open the memory of one user, with server permissions or as the user of a token.

    An explicit user and database override a token from the environment, and a token overrides a user from there.

    Raises:
        ConfigurationError: The user is missing, or a token is used without the Data API.
    """
    from langchain_supabase_memory.memory.config import MemoryConfig

    config = MemoryConfig(recall=None)
    is_named = user_id is not None and bool(address.database_url or address.embedded)
    if access_token is None or (is_named and not given_on_command_line("access_token")):
        if user_id is None:
            raise ConfigurationError(
                "No user is named.", hint=f"Pass --user or set {USER}; or --access-token of a signed-in user."
            )
        with address.open(model=None, config=config) as memory:
            yield memory.for_user(user_id)
        return
    if given_on_command_line("database_url", "embedded") or not (address.url and address.key):
        raise ConfigurationError(
            "A user's token is for the Data API.", hint="Pass --url and the publishable --key, and no database."
        )
    http_address = Address(url=address.url, key=address.key)
    with http_address.open(needs_server=False, model=None, config=config).for_token(access_token) as memory:
        yield memory._for(user_id if given_on_command_line("user_id") else None)


REFUSALS: Final = {
    "table": ("--table", "has no table"),
    "channel": ("--channel", "has no channels"),
    "threads": ("--thread", "is read as a whole"),
    "source_user": ("--source-user", "is one user's"),
    "node": ("--node", "has no nodes"),
    "labels": ("--label", "has no labels"),
    "encoding": ("--encoding", "has no encoding to choose"),
}
"""The options of sources, by the parameter that each sets: its name, and what is said of a source without it."""


@contextmanager
def open_source(source: str, path: str, **options: Any) -> Iterator[Source]:
    """Open a source by its name.

    Args:
        source: The name of a function of `transfer.sources`, whose parameters say which options it has.
        path: The file or the address that it reads; `-` for the standard input.
        options: The options by parameter; `None` for those that were not given.

    Raises:
        InvalidInputError: An option does not apply to the source.
    """
    from langchain_supabase_memory.transfer import sources
    from langchain_supabase_memory.transfer.file_reader import STANDARD_INPUT

    read = getattr(sources, source.replace("-", "_"))
    parameters = signature(read).parameters
    given = {name: value for name, value in options.items() if value is not None}
    for name in given:
        if name not in parameters:
            option, refusal = REFUSALS[name]
            raise InvalidInputError(f"The source {source} {refusal}.", hint=f"Leave {option} out.")
    if path == STANDARD_INPUT and "encoding" not in parameters:
        raise InvalidInputError(f"The source {source} is a database.", hint="Name its address or its SQLite file.")
    with _open_saver(path) if "saver" in parameters else nullcontext(path) as place:
        yield read(place, **given)


@contextmanager
def _open_saver(address: str) -> Iterator[Any]:
    """Open the LangGraph saver of a Postgres address or a SQLite file."""
    is_postgres = address.startswith(("postgres://", "postgresql://")) or "host=" in address
    package = f"langgraph-checkpoint-{'postgres' if is_postgres else 'sqlite'}"
    saver_class: Any
    try:
        if is_postgres:
            from langgraph.checkpoint.postgres import PostgresSaver as saver_class  # noqa: N813
        else:
            from langgraph.checkpoint.sqlite import SqliteSaver as saver_class  # noqa: N813
    except ImportError:
        raise MissingDependencyError("Reading this saver", package=package) from None
    if not is_postgres:
        from langchain_supabase_memory.transfer.sources.databases import sqlite_file

        with saver_class.from_conn_string(sqlite_file(address)) as saver:
            yield saver
        return
    from psycopg import Error

    with ExitStack() as stack:
        try:
            saver = stack.enter_context(saver_class.from_conn_string(address))
        except Error as error:
            raise connection_failed(str(error)) from None
        yield saver


@contextmanager
def progress(activity: str) -> Iterator[Callable[[ImportReceipt | ExportReceipt], None]]:
    """Show the progress in a terminal."""
    with spinner(f"{activity} …") as update:
        yield lambda receipt: update(f"{activity} … {counts(receipt)}")


def counts(receipt: ImportReceipt | ExportReceipt) -> str:
    """Format a receipt's numbers of messages and conversations."""
    return f"{pluralize(receipt.messages, 'message')} of {pluralize(receipt.conversations, 'conversation')}"


def import_report(receipt: ImportReceipt) -> Iterator[str]:
    """Yield the report of an import, line by line."""
    if receipt.dry_run:
        yield f"{counts(receipt)} would be imported."
    else:
        verb = "was" if receipt.known == 1 else "were"
        duplicates = f", {receipt.known:,} {verb} there already" if receipt.known else ""
        yield f"{counts(receipt)} read: {receipt.stored:,} stored{duplicates}."
    if receipt.items:
        yield f"{pluralize(receipt.items, 'item')} of a profile read."
    if receipt.restored:
        yield f"{pluralize(receipt.restored, 'setting')} of people put back."
    if receipt.refused:
        why = "because of an opt-out, or because their messages are not here or have a summary"
        yield f"{pluralize(receipt.refused, 'setting')} of people not put back, {why}."
    if receipt.expired:
        verb = "would expire" if receipt.dry_run else "expired"
        yield f"{pluralize(receipt.expired, 'message')} {verb} at once, because of the retention."
    for reason, (count, location) in receipt.lost.items():
        yield f"Not kept: {count:,} × {reason} (first: {location})"
    if receipt.stored:
        yield "A worker writes summaries, boards and chunks for it: supabase-memory worker"
