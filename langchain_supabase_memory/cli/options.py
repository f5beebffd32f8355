"""What several commands share on the command line: where the database is, options that cannot apply, plain errors."""

from __future__ import annotations

from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

import click
from click.core import ParameterSource

from langchain_supabase_memory.adapters.addresses import is_publishable
from langchain_supabase_memory.cli.look import working
from langchain_supabase_memory.errors import ConfigurationError, SupabaseMemoryError
from langchain_supabase_memory.language.messages.invisible import spell_out_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from langchain_supabase_memory.memory.memory import SupabaseMemory
    from langchain_supabase_memory.worker import Worker

P = ParamSpec("P")
T = TypeVar("T")

DATABASE_URL: Final = "SUPABASE_DB_URL"
"""The environment variable that holds a connection string."""

_DOORS: Final = (("database_url",), ("embedded",), ("url", "key"))
"""The parameters that name a database, by the way to it."""


def plainly(function: Callable[P, T]) -> Callable[P, T]:
    """Show our own errors as one clear text, not as a traceback. The group does so for every command."""

    @wraps(function)
    def run(*arguments: P.args, **named: P.kwargs) -> T:
        try:
            return function(*arguments, **named)
        except SupabaseMemoryError as error:
            raise click.ClickException(spell_out_lines(str(error))) from None

    return run


@dataclass(frozen=True, repr=False)  # it may hold a password
class Address:
    """Where the database is, as the command line and the environment say.

    Attributes:
        database_url: A connection string.
        embedded: The folder of an embedded database.
        url: The url of a project.
        key: Its key.
    """

    database_url: str | None = None
    embedded: str | None = None
    url: str | None = None
    key: str | None = None

    def opened(self, *, needs_server: bool = True, **settings: Any) -> SupabaseMemory:
        """The memory there, without a call to it. It is a look: where there is no database none is made.

        What stands on the command line goes before the environment, and there the direct connection before the Data
        API.

        Args:
            needs_server: Whether everybody's conversations are concerned, for which a publishable key is not enough.
            settings: As for `SupabaseMemory`.

        Raises:
            UsageError: Two databases are named.
            ConfigurationError: None is, or half of one, or something is wrong with the address.
        """
        from langchain_supabase_memory.memory.memory import SupabaseMemory

        is_direct = self.database_url or typed("database_url", "embedded")
        over_http = typed("url", "key") or (not is_direct and (self.url or self.key))
        if not over_http:
            return SupabaseMemory.from_conn_string(self.conn_string(), **settings)
        _refuse_two()
        if not (self.url and self.key):
            missing, option = ("key", "--key sb_secret_…") if self.url else ("url", "--url https://….supabase.co")
            raise ConfigurationError(
                f"The project's {missing} is missing.",
                hint=f"Pass {option} or set SUPABASE_{missing.upper()}; or name a database directly, by "
                "--database-url.",
            )
        if needs_server and is_publishable(self.key):
            raise ConfigurationError(
                "The project's key is the publishable one, which is everybody's.",
                hint="Pass the secret key, --key sb_secret_…, from the project's API settings, or set SUPABASE_KEY.",
            )
        return SupabaseMemory.from_url(self.url, self.key, **settings)

    def conn_string(self, *, create: bool = False) -> str:
        """Its connection string; an embedded server is started.

        Args:
            create: Whether an embedded database is made where there is none.

        Raises:
            UsageError: Two databases are named.
            ConfigurationError: None is, or the embedded server cannot be started.
        """
        _refuse_two()
        if self.embedded is not None:
            from langchain_supabase_memory.adapters.transports.embedded import start

            with working("Starting the embedded Postgres …"):
                return start(self.embedded, create=create)
        if not self.database_url:
            ways = [f"--database-url postgresql://… (or set {DATABASE_URL})", "--embedded FOLDER"]
            if "url" in click.get_current_context().params:
                ways.insert(1, "--url and --key of the Data API (or set SUPABASE_URL and SUPABASE_KEY)")
            raise ConfigurationError("No database is named.", hint=f"Pass {', or '.join(ways)}.")
        return self.database_url


_DIRECTLY: Final = (
    click.option(
        "--database-url", envvar=DATABASE_URL, help=f"A Postgres connection string; by default ${DATABASE_URL}."
    ),
    click.option(
        "--embedded",
        metavar="FOLDER",
        type=click.Path(),
        help="The folder of an embedded database instead.",
    ),
)
_OVER_HTTP: Final = (
    click.option(
        "--url",
        envvar="SUPABASE_URL",
        help=f"The project's url, for the Data API; by default $SUPABASE_URL, unless ${DATABASE_URL} is set. "
        "What is typed goes before what is in the environment.",
    ),
    click.option("--key", envvar="SUPABASE_KEY", help="Its secret key; by default $SUPABASE_KEY."),
)


def addressed(command: Callable[..., T]) -> Callable[..., T]:
    """Give a command the options that name a database, by any way, and pass them to it as `address`."""

    @wraps(command)
    def run(
        *arguments: Any, database_url: str | None, embedded: str | None, url: str | None, key: str | None, **named: Any
    ) -> T:
        return command(*arguments, address=Address(database_url, embedded, url, key), **named)

    return _with(run, *_DIRECTLY, *_OVER_HTTP)


def addressed_directly(command: Callable[..., T]) -> Callable[..., T]:
    """The same without the Data API, over which nothing can be set up."""

    @wraps(command)
    def run(*arguments: Any, database_url: str | None, embedded: str | None, **named: Any) -> T:
        return command(*arguments, address=Address(database_url, embedded), **named)

    return _with(run, *_DIRECTLY)


@dataclass(frozen=True)
class Models:
    """What a memory is made with, as the command line says: an application's own, or models by name.

    Attributes:
        app: Where an application makes it, as `module:name`.
        model: A model of OpenAI that writes.
        embeddings: A model of OpenAI that embeds.
    """

    app: str | None = None
    model: str | None = None
    embeddings: str | None = None

    def from_app(self) -> Worker | SupabaseMemory | None:
        """What the application made, if one is named.

        Raises:
            UsageError: An option stands beside it that names a database, a model or an embedder.
            ConfigurationError: As for `from_app.from_app`.
        """
        from langchain_supabase_memory.cli.from_app import from_app

        if self.app is None:
            return None
        refuse(_OF_A_MEMORY, "With --app, the application brings its own database, model and embedder.")
        return from_app(self.app)

    def settings(self) -> dict[str, Any]:
        """The models as keywords of a memory.

        Raises:
            ConfigurationError: One is named, and there is no key.
            MissingDependencyError: The extra `openai` is not installed.
        """
        from langchain_supabase_memory.cli import models

        embedder = None if self.embeddings is None else models.embedder(self.embeddings)
        return {"model": models.writer(self.model), "embeddings": embedder}


_OF_A_MEMORY: Final = ("database_url", "embedded", "url", "key", "model", "embeddings")


def modeled(command: Callable[..., T]) -> Callable[..., T]:
    """Give a command the options that say what a memory is made with, and pass them to it as `models`."""

    @wraps(command)
    def run(*arguments: Any, app: str | None, model: str | None, embeddings: str | None, **named: Any) -> T:
        return command(*arguments, models=Models(app, model, embeddings), **named)

    return _with(
        run,
        click.option(
            "--app",
            help="Where your application makes it: module:name of a Worker, a SupabaseMemory, or a function without "
            "arguments that gives one. It brings its own database, model and embedder, and a Worker its own pace.",
        ),
        click.option(
            "--model",
            envvar="OPENAI_MODEL",
            help="A model of OpenAI that writes; by default gpt-5.5 with OPENAI_API_KEY, and without it quotes are "
            "selected.",
        ),
        click.option(
            "--embeddings",
            help="A model of OpenAI that embeds, such as text-embedding-3-small; without one, words do.",
        ),
    )


realtime_option: Final = click.option(
    "--realtime/--no-realtime",
    default=None,
    help="Let Supabase's Realtime publish that conversations and boards change, to their owners; or no more. By "
    "default that stays as it is.",
)

vector_index_option: Final = click.option(
    "--vector-index",
    type=int,
    metavar="WIDTH",
    help="With an index over vectors of this width, such as 1536, for owners of more than 10,000 chunks.",
)

partitions_option: Final = click.option(
    "--partitions",
    type=int,
    metavar="NUMBER",
    help="A new database's owners are spread over this many partitions of each table, 2 to 64.",
)

citus_option: Final = click.option(
    "--citus",
    is_flag=True,
    default=None,
    help="A new database's owners are spread over the nodes of its Citus cluster; for a superuser there.",
)


def typed(*names: str) -> list[str]:
    """Those of these parameters that stand on the command line; the others come from the environment or by default."""
    context = click.get_current_context()
    return [name for name in names if context.get_parameter_source(name) is ParameterSource.COMMANDLINE]


def refuse(names: Sequence[str], why: str) -> None:
    """Refuse options that would have no effect.

    Args:
        names: The parameters.
        why: Why they have none, as a sentence.

    Raises:
        UsageError: One of them stands on the command line.
    """
    given = typed(*names)
    if given:
        raise click.UsageError(f"{_options(given)} cannot apply. {why}", click.get_current_context())


def _with(command: Callable[..., T], *options: Callable[[Any], Any]) -> Callable[..., T]:
    """A command with options, in this order."""
    for option in reversed(options):
        command = option(command)
    return command


def _refuse_two() -> None:
    given = [names for door in _DOORS if (names := typed(*door))]
    if len(given) > 1:
        raise click.UsageError(f"{' and '.join(map(_options, given))} exclude each other.", click.get_current_context())


def _options(names: Sequence[str]) -> str:
    """Parameters as they are typed."""
    return ", ".join("--" + name.replace("_", "-") for name in names)
