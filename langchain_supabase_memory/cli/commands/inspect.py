"""`supabase-memory inspect`."""

from __future__ import annotations

import getpass
from contextlib import ExitStack
from typing import TYPE_CHECKING

import click

from langchain_supabase_memory.cli.options import (
    Models,
    access_token_option,
    app_option,
    embeddings_option,
    given_on_command_line,
    user_option,
    with_database_options,
)
from langchain_supabase_memory.errors import ConfigurationError

if TYPE_CHECKING:
    from langchain_supabase_memory.cli.options import Address
    from langchain_supabase_memory.memory.memory import SupabaseMemory


@click.command()
@app_option
@with_database_options
@user_option("Show only this user's conversations, over the same connection", required=False)
@click.option(
    "--as-user", metavar="ID", help="Show what this user may see: row level security, over a direct connection."
)
@access_token_option
@click.option("--write", is_flag=True, help="Allow to pin, edit, delete, regenerate, opt out and retry.")
@click.option("--by", metavar="NAME", help="Name in the log of changes; by default the user of this machine.")
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Address to listen on, over plain HTTP: this machine only."
)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8765, show_default=True, help="Port; 0 takes a free one."
)
@click.option("--allow-host", multiple=True, metavar="NAME", help="Accept requests for this host too; may be repeated.")
@click.option("--model", help="OpenAI model that regenerates summaries and boards; by default as for `worker`.")
@embeddings_option
@click.option(
    "--browser/--no-browser",
    default=False,
    help="Open the page in this machine's browser; the browser's command line then shows the token.",
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
    """Open the inspector, a page that shows what an agent knew and why.

    The command prints an address that lets one browser in, once. A server's connection shows all users' conversations,
    --user shows one user's, and --as-user shows what that user may see. Nothing can be changed without --write. Ctrl-C
    ends it.
    """
    from langchain_supabase_memory.inspector import server
    from langchain_supabase_memory.memory.memory import SupabaseMemory

    models = Models(app, model, embeddings)
    with ExitStack() as stack:
        application = models.load_app("access_token")
        if as_user is not None:
            if given_on_command_line("user_id"):
                raise click.UsageError("--user and --as-user exclude each other.", click.get_current_context())
            user_id = None  # that of the environment
        if application is None:
            memory = _open_memory(address, access_token, models, user_id)
        else:
            memory = application if isinstance(application, SupabaseMemory) else application.memory
            if user_id is not None:
                memory = memory.for_user(user_id)
        stack.enter_context(memory)
        if as_user is not None:
            memory = _as_user(memory, as_user)

        def announce(url: str) -> None:
            click.echo(f"The inspector is on {url}\nThe address lets one browser in, once. Ctrl-C ends it.")
            if server.is_public_address(host):
                click.echo(
                    "It listens beyond this machine, over plain HTTP: others on the network can read everything, the "
                    "token included. Put it behind TLS.",
                    err=True,
                )
            if browser:
                click.launch(url)

        actor = by or as_user or _local_user()
        server.serve(memory, host=host, port=port, allowed_hosts=allow_host, write=write, actor=actor, echo=announce)


def _local_user() -> str:
    """Return the user of this machine; a container may have none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "inspector"


def _open_memory(address: Address, access_token: str | None, models: Models, user_id: str | None) -> SupabaseMemory:
    """Open the memory of an address, with server permissions or as the user of a token."""
    if access_token is None or not (address.url and address.key) or given_on_command_line("database_url", "embedded"):
        return address.open(user_id=user_id, **models.settings())
    named = user_id if given_on_command_line("user_id") else None
    return address.open(needs_server=False, user_id=named, **models.settings()).for_token(access_token)


def _as_user(memory: SupabaseMemory, user_id: str) -> SupabaseMemory:
    """Return the memory under row level security, as one user.

    Raises:
        ConfigurationError: The connection is the Data API, which needs a token.
    """
    from langchain_supabase_memory.adapters.transports.breaker import BreakingTransport

    inner = (
        memory._services.transport.inner
        if isinstance(memory._services.transport, BreakingTransport)
        else memory._services.transport
    )
    if not hasattr(inner, "alisten"):  # only a direct connection has it
        raise ConfigurationError(
            "The Data API cannot act as a user by id.",
            hint="Pass the user's token as --access-token with the publishable key, or pass --database-url.",
        )
    return memory.for_token({"sub": user_id, "role": "authenticated"})
