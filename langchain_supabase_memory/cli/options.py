"""Options that commands share: the database, the models, the setup; and checks for conflicting options."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

import click
from click.core import ParameterSource

from langchain_supabase_memory.adapters.addresses import is_publishable
from langchain_supabase_memory.cli.formatting import spinner
from langchain_supabase_memory.errors import ConfigurationError, SupabaseMemoryError
from langchain_supabase_memory.language.messages.invisible import spell_out_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from langchain_supabase_memory.memory.memory import SupabaseMemory
    from langchain_supabase_memory.worker import Worker

P = ParamSpec("P")
T = TypeVar("T")

DATABASE_URL: Final = "SUPABASE_DB_URL"
"""The environment variable with the connection string."""

FOLDER: Final = "SUPABASE_MEMORY_FOLDER"
"""The environment variable with the folder of an embedded database."""

USER: Final = "SUPABASE_MEMORY_USER"
"""The environment variable with the user for whom commands act."""

_CONNECTIONS: Final = (("database_url",), ("embedded",), ("url", "key"))
"""The parameters that select a database, by kind of connection."""

_MEMORY_OPTIONS: Final = ("database_url", "embedded", "url", "key", "model", "embeddings")
"""The parameters that the `--app` application sets itself."""


def show_errors_as_text(function: Callable[P, T]) -> Callable[P, T]:
    """Show the package's own errors as text instead of a traceback. The group does this for each command."""

    @wraps(function)
    def run(*arguments: P.args, **keywords: P.kwargs) -> T:
        try:
            return function(*arguments, **keywords)
        except SupabaseMemoryError as error:
            raise click.ClickException(spell_out_lines(str(error))) from None

    return run


@dataclass(frozen=True, repr=False)  # it may hold a password
class Address:
    """The address of a database, from the command line and the environment.

    Attributes:
        database_url: A connection string.
        embedded: The folder of an embedded database.
        url: The project's URL.
        key: The project's key.
    """

    database_url: str | None = None
    embedded: str | None = None
    url: str | None = None
    key: str | None = None

    def open(self, *, needs_server: bool = True, **settings: Any) -> SupabaseMemory:
        """Open the memory at this address, without a request to it and without creating a database.

        The command line overrides the environment, in which a direct connection overrides the Data API.

        Args:
            needs_server: Whether the command reads all users' data, for which a publishable key is not enough.
            settings: Keywords of `SupabaseMemory`.

        Raises:
            UsageError: Two databases are given.
            ConfigurationError: No database is given, or the address is incomplete or wrong.
        """
        from langchain_supabase_memory.memory.memory import SupabaseMemory

        is_direct = self.database_url or self.embedded
        is_http = given_on_command_line("url", "key") or (not is_direct and (self.url or self.key))
        if not is_http:
            return SupabaseMemory.from_conn_string(self.conn_string(), **settings)
        _reject_two_databases()
        if not (self.url and self.key):
            missing, option = ("key", "--key sb_secret_…") if self.url else ("url", "--url https://….supabase.co")
            raise ConfigurationError(
                f"The project's {missing} is missing.",
                hint=f"Pass {option} or set SUPABASE_{missing.upper()}; or name a database directly, by "
                "--database-url.",
            )
        if needs_server and is_publishable(self.key):
            raise ConfigurationError(
                "This is the project's publishable key, which is public.",
                hint="Pass the secret key, --key sb_secret_…, from the project's API settings, or set SUPABASE_KEY.",
            )
        return SupabaseMemory.from_url(self.url, self.key, **settings)

    def conn_string(self, *, create: bool = False) -> str:
        """Get the connection string. An embedded server is started.

        Args:
            create: Whether to create a missing embedded database.

        Raises:
            UsageError: Two databases are given.
            ConfigurationError: No database is given, or the embedded server cannot be started.
        """
        _reject_two_databases()
        if self.embedded is not None and (not self.database_url or given_on_command_line("embedded")):
            from langchain_supabase_memory.adapters.transports.embedded import start

            with spinner("Starting the embedded Postgres …"):
                return start(self.embedded, create=create)
        if not self.database_url:
            choices = [f"--database-url postgresql://… (or set {DATABASE_URL})", f"--embedded FOLDER (or set {FOLDER})"]
            if "url" in click.get_current_context().params:
                choices.insert(1, "--url and --key of the Data API (or set SUPABASE_URL and SUPABASE_KEY)")
            raise ConfigurationError("No database is named.", hint=f"Pass {', or '.join(choices)}.")
        return self.database_url


@dataclass(frozen=True)
class Models:
    """The models of a memory, from the command line.

    Attributes:
        app: The application with its own models, as `module:name`.
        model: An OpenAI model for summaries and boards.
        embeddings: An OpenAI embedding model.
    """

    app: str | None = None
    model: str | None = None
    embeddings: str | None = None

    def load_app(self, *others: str) -> Worker | SupabaseMemory | None:
        """Load the application, if one is given.

        Args:
            others: Parameters that an application excludes, in addition to those of the database and the models.

        Raises:
            UsageError: The command line has a parameter that cannot apply.
            ConfigurationError: The application cannot be loaded.
        """
        from langchain_supabase_memory.cli.load_app import load_app

        if self.app is None:
            return None
        reject_options(
            (*_MEMORY_OPTIONS, *others), "With --app, the application brings its own database, model and embedder."
        )
        return load_app(self.app)

    def settings(self) -> dict[str, Any]:
        """Load the models, as keyword arguments of a memory.

        Raises:
            ConfigurationError: A model is given without a key.
            MissingDependencyError: The extra `openai` is not installed.
        """
        from langchain_supabase_memory.cli import models

        return {"model": models.summarizer(self.model), "embeddings": models.embedder(self.embeddings)}


app_option: Final = click.option(
    "--app",
    metavar="MODULE:NAME",
    help="Your application's Worker or SupabaseMemory, or a function without arguments that returns one. It brings "
    "its own database and models.",
)

model_option: Final = click.option(
    "--model",
    envvar="OPENAI_MODEL",
    help="OpenAI model for summaries and boards; by default gpt-5.5, and without OPENAI_API_KEY extractive summaries.",
)

embeddings_option: Final = click.option(
    "--embeddings",
    metavar="MODEL",
    help="OpenAI embedding model for search by meaning, such as text-embedding-3-small; without one, keyword search.",
)

access_token_option: Final = click.option(
    "--access-token",
    envvar="SUPABASE_MEMORY_TOKEN",
    help="Access token of a signed-in user, with --url and the publishable --key: row level security applies. "
    "By default $SUPABASE_MEMORY_TOKEN.",
)


def user_option(meaning: str, *, required: bool = True) -> Callable[[Any], Any]:
    """Return the option `--user` of a command that acts for one user, who may also come from the environment.

    Args:
        meaning: Who the user is, for the help.
        required: Whether the command needs a user.
    """
    return click.option("--user", "user_id", required=required, envvar=USER, help=f"{meaning}; by default ${USER}.")


agent_option: Final = click.option("--agent", "agent_id", help="Agent; needed where several agents have this thread.")

json_option: Final = click.option("--json", "as_json", is_flag=True, help="Print JSON.")

realtime_option: Final = click.option(
    "--realtime/--no-realtime",
    default=None,
    help="Publish changes of conversations and boards to their owners through Supabase Realtime, or stop it. By "
    "default that stays as it is.",
)

spaces_option: Final = click.option(
    "--spaces/--no-spaces",
    default=None,
    help="Let people share spaces, or close all of them. By default that stays as it is: off in a new database.",
)

vector_index_option: Final = click.option(
    "--vector-index",
    type=int,
    metavar="WIDTH",
    help="Index vectors of this width, such as 1536, for owners of more than 10,000 chunks.",
)

partitions_option: Final = click.option(
    "--partitions",
    type=int,
    metavar="NUMBER",
    help="Spread a new database's owners over this many partitions of each table, 2 to 64.",
)

citus_option: Final = click.option(
    "--citus",
    is_flag=True,
    default=None,
    help="Spread a new database's owners over the nodes of its Citus cluster; needs a superuser.",
)

_DIRECT_OPTIONS: Final = (
    click.option(
        "--database-url", envvar=DATABASE_URL, help=f"Postgres connection string; by default ${DATABASE_URL}."
    ),
    click.option(
        "--embedded",
        metavar="FOLDER",
        type=click.Path(),
        envvar=FOLDER,
        help=f"Folder of an embedded database; by default ${FOLDER}, unless ${DATABASE_URL} is set.",
    ),
)
_HTTP_OPTIONS: Final = (
    click.option(
        "--url",
        envvar="SUPABASE_URL",
        help=f"Project url, for the Data API; by default $SUPABASE_URL, unless ${DATABASE_URL} is set. Options "
        "override environment variables.",
    ),
    click.option("--key", envvar="SUPABASE_KEY", help="Secret key of the project; by default $SUPABASE_KEY."),
)


def with_database_options(command: Callable[..., T]) -> Callable[..., T]:
    """Add the options that select a database. The command gets them as `address`."""
    return _grouped(command, "address", Address, *_DIRECT_OPTIONS, *_HTTP_OPTIONS)


def with_direct_database_options(command: Callable[..., T]) -> Callable[..., T]:
    """Add the database options except the Data API's, which cannot set up a database."""
    return _grouped(command, "address", Address, *_DIRECT_OPTIONS)


def with_model_options(command: Callable[..., T]) -> Callable[..., T]:
    """Add the options that select an application or models. The command gets them as `models`."""
    return _grouped(command, "models", Models, app_option, model_option, embeddings_option)


def _grouped(
    command: Callable[..., T], parameter: str, group: type[Address | Models], *options: Callable[[Any], Any]
) -> Callable[..., T]:
    """Add options that the command gets as one value.

    Args:
        command: The command.
        parameter: The command's parameter for the value.
        group: The class of the value.
        options: The options.
    """
    names = [each.name for each in fields(group)]

    @wraps(command)
    def run(*arguments: Any, **keywords: Any) -> T:
        values = {name: keywords.pop(name) for name in names if name in keywords}
        return command(*arguments, **{parameter: group(**values)}, **keywords)

    for option in reversed(options):
        run = option(run)
    return run


def given_on_command_line(*names: str) -> list[str]:
    """Return which of these parameters come from the command line, not from the environment or a default."""
    context = click.get_current_context()
    return [name for name in names if context.get_parameter_source(name) is ParameterSource.COMMANDLINE]


def reject_options(names: Sequence[str], reason: str) -> None:
    """Refuse options that would have no effect.

    Args:
        names: The parameters.
        reason: Why they would have no effect, as a sentence.

    Raises:
        UsageError: The command line has one of them.
    """
    rejected = given_on_command_line(*names)
    if rejected:
        raise click.UsageError(f"{_option_names(rejected)} cannot apply. {reason}", click.get_current_context())


def reject_options_before_command(group: click.Context) -> None:
    """Refuse options of a group that stand before its command, on which they would have no effect.

    Raises:
        UsageError: The command line has one.
    """
    if given_on_command_line(*group.params):
        command = f"{group.command.name} {group.invoked_subcommand}"
        raise click.UsageError(f"Options come after the command: {command} …", group)


def _reject_two_databases() -> None:
    databases = [rejected for names in _CONNECTIONS if (rejected := given_on_command_line(*names))]
    if len(databases) > 1:
        names = " and ".join(map(_option_names, databases))
        raise click.UsageError(f"{names} exclude each other.", click.get_current_context())


def _option_names(names: Sequence[str]) -> str:
    """Format parameters of the running command as its options are typed: `user_id` is `--user`."""
    typed = {each.name: each.opts for each in click.get_current_context().command.params}
    return ", ".join(next(option for option in typed[name] if option.startswith("--")) for name in names)
