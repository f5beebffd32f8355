"""`supabase-memory mcp`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

import click

from langchain_supabase_memory.adapters.transports.event_loop import run
from langchain_supabase_memory.cli import models
from langchain_supabase_memory.cli.options import (
    DATABASE_URL,
    embeddings_option,
    given_on_command_line,
    reject_options,
    user_option,
    with_database_options,
)
from langchain_supabase_memory.errors import ConfigurationError, MissingDependencyError

if TYPE_CHECKING:
    from langchain_supabase_memory.cli.options import Address
    from langchain_supabase_memory.mcp.request_memory import ServerOptions
    from langchain_supabase_memory.memory.memory import SupabaseMemory

_STDIO_OPTIONS: Final = ("user_id", "token")
_HTTP_OPTIONS: Final = ("host", "port", "public_url", "issuer")


@click.command("mcp")
@with_database_options
@user_option("Owner of the conversations, over stdio", required=False)
@click.option(
    "--token",
    envvar="SUPABASE_MEMORY_TOKEN",
    help="Access token of the owner instead of --user, with --url and the publishable --key; by default "
    "$SUPABASE_MEMORY_TOKEN.",
)
@click.option("--agent", "agent_id", default="default", show_default=True, help="Agent of the conversations.")
@click.option("--thread", "thread_id", help="Conversation of calls without a conversation_id; by default the newest.")
@click.option("--write", is_flag=True, help="Add tools that store turns and notes.")
@click.option("--destructive", is_flag=True, help="Add a tool that deletes, after asking the user.")
@click.option("--spaces", is_flag=True, help="Add tools for the spaces that the user shares with others.")
@embeddings_option
@click.option("--time-zone", help="Time zone of the answers, such as Asia/Manila; by default UTC.")
@click.option("--http", is_flag=True, help="Serve over HTTP instead of stdio, to users who sign in with Supabase Auth.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on, over HTTP.")
@click.option("--port", type=click.IntRange(1, 65_535), default=8_000, show_default=True, help="Port, over HTTP.")
@click.option("--public-url", help="Public address over HTTP, such as https://memory.example.com/mcp.")
@click.option("--issuer", help="Issuer of the tokens, over HTTP; by default the project's url with /auth/v1.")
def mcp(
    address: Address,
    user_id: str | None,
    token: str | None,
    agent_id: str,
    thread_id: str | None,
    write: bool,
    destructive: bool,
    spaces: bool,
    embeddings: str | None,
    time_zone: str | None,
    http: bool,
    host: str,
    port: int,
    public_url: str | None,
    issuer: str | None,
) -> None:
    """Serve a user's conversations to an MCP client, such as Claude or Cursor.

    Over stdio, the client starts the command, which serves one user. Over HTTP, it serves each signed-in user their own
    conversations, by the project's url and publishable key. It only reads, unless --write or --destructive is given.
    """
    try:
        from langchain_supabase_memory.mcp import server as _  # noqa: F401  # is the SDK installed?
    except ImportError as error:
        if (error.name or "").split(".")[0] not in ("mcp", "mcp_types", "jwt"):
            raise
        raise MissingDependencyError("The MCP server", "mcp") from None
    from langchain_supabase_memory.mcp.request_memory import ServerOptions
    from langchain_supabase_memory.operations.recall.ranges import zone

    zone(time_zone)  # rejects an unknown time zone before anything is opened
    options = ServerOptions(
        conversation_id=thread_id, time_zone=time_zone, write=write, destructive=destructive, spaces=spaces
    )
    settings = _settings(agent_id, embeddings, write=write)
    if http:
        reject_options(_STDIO_OPTIONS, "Over HTTP each request belongs to its signed-in user.")
        reject_options(("database_url", "embedded"), "Over HTTP the server needs the Data API: --url and --key.")
        _serve_http(address, settings, options, host, port, public_url, issuer)
    else:
        reject_options(_HTTP_OPTIONS, "It goes with --http.")
        memory = _open_memory(address, user_id, token, settings)
        if sys.stdin.isatty():
            click.echo(
                "A client starts this command and writes to its input; by hand there is nothing to see.", err=True
            )
            click.echo("Ctrl-D ends it. How to set up a client is on the page docs/mcp.md.", err=True)
        from langchain_supabase_memory.mcp.stdio import serve

        run(serve(memory, options))


def _settings(agent_id: str, embeddings: str | None, *, write: bool) -> dict[str, Any]:
    """Return the settings of a memory without summaries (a worker writes those), which only indexes what it stores."""
    from langchain_supabase_memory.memory.config import MemoryConfig
    from langchain_supabase_memory.settings import ChunkPolicy

    config = MemoryConfig(chunking=ChunkPolicy(mode="inline" if write else "background"))
    return {"agent_id": agent_id, "embeddings": models.embedder(embeddings), "model": None, "config": config}


def _open_memory(address: Address, user_id: str | None, token: str | None, settings: dict[str, Any]) -> SupabaseMemory:
    """Open the memory of one user, under row level security if possible.

    Raises:
        ConfigurationError: The user is missing, or a token is used with a direct connection.
    """
    is_direct = bool(address.database_url or address.embedded) and not given_on_command_line("url", "key")
    if given_on_command_line("user_id"):
        token = token if given_on_command_line("token") else None
    if token and not given_on_command_line("user_id"):
        if is_direct:
            raise ConfigurationError(
                "A token goes with the Data API.",
                hint=f"Pass --url and the publishable --key; or --user instead of the token for ${DATABASE_URL}.",
            )
        return address.open(needs_server=False, **settings).for_token(token)
    if not user_id:
        raise ConfigurationError(
            "No user is given.",
            hint="Pass --user or set SUPABASE_MEMORY_USER; or the person's access token, SUPABASE_MEMORY_TOKEN.",
        )
    if is_direct:
        return address.open(**settings).for_token({"sub": user_id, "role": "authenticated"})
    return address.open(user_id=user_id, **settings)


def _serve_http(
    address: Address,
    settings: dict[str, Any],
    options: ServerOptions,
    host: str,
    port: int,
    public_url: str | None,
    issuer: str | None,
) -> None:
    from langchain_supabase_memory.mcp.http_app import AuthSite, own_address, publishable
    from langchain_supabase_memory.mcp.http_server import serve
    from langchain_supabase_memory.memory.memory import SupabaseMemory

    key = publishable(address.key)
    if not address.url:
        raise ConfigurationError("The project's url is missing.", hint="Pass --url or set SUPABASE_URL.")
    project = address.url.strip().rstrip("/")
    site = AuthSite(issuer=issuer or f"{project}/auth/v1", address=public_url or own_address(host, port))
    shared = SupabaseMemory.from_url(address.url, key, **settings)
    run(serve(shared, site, options, host, port))
