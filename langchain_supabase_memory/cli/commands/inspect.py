"""`supabase-memory inspect`."""

from __future__ import annotations

import getpass
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from langchain_supabase_memory.cli import models
from langchain_supabase_memory.cli.from_app import from_app
from langchain_supabase_memory.cli.options import addressed, refuse, typed
from langchain_supabase_memory.errors import ConfigurationError

if TYPE_CHECKING:
    from langchain_supabase_memory.cli.options import Address
    from langchain_supabase_memory.memory.memory import SupabaseMemory

_OF_A_MEMORY = ("database_url", "embedded", "url", "key", "model", "embeddings", "access_token")


@click.command()
@click.option(
    "--app",
    help="Where your application makes it: module:name of a SupabaseMemory, a Worker, or a function without arguments "
    "that gives one. It brings its own database, model and embedder.",
)
@addressed
@click.option("--user", "user_id", help="Only this user's conversations, over the same connection.")
@click.option(
    "--as-user", metavar="ID", help="As this user sees it: under row level security, over a direct connection."
)
@click.option(
    "--access-token",
    envvar="SUPABASE_MEMORY_TOKEN",
    help="As the signed-in user with this token sees it: over the Data API, with the publishable key; by default "
    "$SUPABASE_MEMORY_TOKEN.",
)
@click.option("--write", is_flag=True, help="People may pin, edit, delete, regenerate, opt out and retry.")
@click.option("--by", metavar="NAME", help="Who is noted with a change; by default the user of this machine.")
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Where it listens: this machine alone. It speaks plain HTTP."
)
@click.option("--port", type=click.IntRange(0, 65535), default=8765, show_default=True, help="0 takes a free one.")
@click.option("--allow-host", multiple=True, metavar="NAME", help="A further name by which it may be asked for.")
@click.option("--model", help="A model of OpenAI that writes what is regenerated; by default as for `worker`.")
@click.option("--embeddings", help="A model of OpenAI that embeds, such as text-embedding-3-small, for recall.")
@click.option(
    "--browser/--no-browser",
    default=False,
    help="Open it in this machine's browser, whose command then shows the address and its token.",
)
def inspect(
    app: str | None,
    address: Address,
    user_id: str | None,
    as_user: str | None,
    access_token: str | None,
    write: bool,
    by: str | None,
    host: str,
    port: int,
    allow_host: tuple[str, ...],
    model: str | None,
    embeddings: str | None,
    browser: bool,
) -> None:
    """Open a page that shows what an agent knew, and why. It prints an address that lets one browser in, once.

    It shows everybody's conversations over a server's connection, one user's with --user, and with --as-user what that
    user may see. Nothing is changed without --write. Ctrl-C ends it.
    """
    from langchain_supabase_memory.inspector import server

    if app is not None:
        refuse(_OF_A_MEMORY, "With --app, the application brings its own database, model and embedder.")
    if user_id is not None and as_user is not None:
        raise click.UsageError("--user and --as-user exclude each other.", click.get_current_context())
    with ExitStack() as stack:
        memory = stack.enter_context(_memory(app, address, access_token, model, embeddings, user_id))
        if as_user is not None:
            memory = _as_user(memory, as_user)

        def opened(at: str) -> None:
            click.echo(f"The inspector is on {at}\nThe address lets one browser in, once. Ctrl-C ends it.")
            if server.is_public_address(host):
                click.echo(
                    "It listens beyond this machine, over plain HTTP: who is on the way reads along, the token too. "
                    "Put it behind TLS.",
                    err=True,
                )
            if browser:
                click.launch(at)

        named = by or as_user or _who_is_here()
        server.serve(memory, host=host, port=port, allowed_hosts=allow_host, write=write, actor=named, echo=opened)


def _who_is_here() -> str:
    """The user of this machine; in a container there may be none of that number."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "inspector"


def _memory(
    app: str | None,
    address: Address,
    access_token: str | None,
    model: str | None,
    embeddings: str | None,
    user_id: str | None,
) -> SupabaseMemory:
    """What is looked at."""
    from langchain_supabase_memory.memory.memory import SupabaseMemory

    if app is not None:
        made = from_app(app)
        memory = made if isinstance(made, SupabaseMemory) else made.memory
        if user_id is not None:
            memory.user_id = memory.scope_text(user_id)
        return memory
    settings: dict[str, Any] = {
        "user_id": user_id,
        "model": models.writer(model),
        "embeddings": None if embeddings is None else models.embedder(embeddings),
    }
    if access_token is None or not (address.url and address.key) or typed("database_url", "embedded"):
        return address.opened(**settings)
    return address.opened(needs_server=False, access_token=access_token, **settings)


def _as_user(memory: SupabaseMemory, user_id: str) -> SupabaseMemory:
    """The same under row level security.

    Raises:
        ConfigurationError: The door is the Data API, which wants a token.
    """
    from langchain_supabase_memory.adapters.transports.breaker import BreakingTransport

    inner = memory.transport.inner if isinstance(memory.transport, BreakingTransport) else memory.transport
    if not hasattr(inner, "alisten"):  # which a direct connection has
        raise ConfigurationError(
            "Over the Data API nobody can be acted as by name.",
            hint="Pass the user's token as --access-token with the publishable key, or name a --database-url.",
        )
    return memory.as_user({"sub": user_id, "role": "authenticated"})
