"""The command `supabase-memory`: its group, and where each command is.

A command's module is imported when it is called, so that `--help` and completion stay fast, whatever a command needs.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from importlib import import_module
from typing import TYPE_CHECKING, Final, NamedTuple

import click
from click.shell_completion import CompletionItem

from langchain_supabase_memory.adapters.telemetry.logs import configure
from langchain_supabase_memory.cli.options import plainly

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from langchain_supabase_memory.adapters.telemetry.logs import LogFormat

PROGRAM: Final = "supabase-memory"
"""What is typed."""


class UnreadError(Exception):
    """The pipe was closed that a command writes to."""


class Place(NamedTuple):
    """Where a command is, for who wants to know that it exists.

    Attributes:
        target: `module:attribute`, the module below `cli.commands`.
        help: What it does, in a line: the beginning of its docstring.
    """

    target: str
    help: str


_PLACES: Final = {
    "cleanup": Place(
        "cleanup:cleanup", "Remove what is not to be kept: chunks that have expired, messages too old, turns too many."
    ),
    "conversations": Place(
        "conversations:conversations", "List a user's conversations, the most recently changed first."
    ),
    "completion": Place("completion:completion", "Print what makes a shell complete this command: bash, zsh or fish."),
    "demo": Place(
        "demo:demo",
        "Watch an agent remember a long conversation; without OPENAI_API_KEY, with a stand-in that can only quote.",
    ),
    "doctor": Place(
        "doctor:doctor",
        "Look at everything that a memory needs, from the address to the workers, with what to do next.",
    ),
    "export": Place(
        "export:export",
        "Write a user's conversations to a file, or with `-` to the standard output; as Markdown to a folder.",
    ),
    "forget": Place(
        "forget:forget",
        "Delete a user's conversation, all of them with an agent, or everything that is stored of the user, for good.",
    ),
    "import": Place(
        "import:import_", "Store conversations from elsewhere: a file, or the database of another library."
    ),
    "inspect": Place(
        "inspect:inspect",
        "Open a page that shows what an agent knew, and why. It prints an address that lets one browser in, once.",
    ),
    "mcp": Place(
        "mcp:mcp",
        "Serve past conversations to a client of the Model Context Protocol, such as Claude, Cursor or VS Code.",
    ),
    "migrate": Place("migrate:migrate", "Set a database up, or bring it to this release."),
    "retry": Place("retry:retry", "Try again what workers have given up."),
    "search": Place("search:search", "Find what was said: what recall gives for these words, and where they stand."),
    "show": Place("show:show", "Read a conversation: who said what, and when, in the time zone of this machine."),
    "sql": Place(
        "sql:sql",
        "Print everything the database needs, to be pasted into Supabase's SQL editor; or write migration files.",
    ),
    "status": Place(
        "status:status", "See what is due, running, waiting and dead, and how far each conversation is covered."
    ),
    "unreadable": Place(
        "unreadable:unreadable",
        "List stored messages that cannot be read: where they are and why, without their content.",
    ),
    "worker": Place("worker:worker", "Keep every conversation's index, summary and board up to date."),
}


class LazyCommands(MutableMapping[str, click.Command]):
    """Commands by their names; one is imported when it is looked up.

    Args:
        places: Where each is.
    """

    def __init__(self, places: Mapping[str, Place]) -> None:
        self.places = dict(places)
        self._imported: dict[str, click.Command] = {}

    def __getitem__(self, name: str) -> click.Command:
        if name not in self._imported:
            module, _, attribute = self.places[name].target.partition(":")
            found = getattr(import_module(f"langchain_supabase_memory.cli.commands.{module}"), attribute)
            assert isinstance(found, click.Command)
            self._imported[name] = found
        return self._imported[name]

    def __setitem__(self, name: str, command: click.Command) -> None:
        self.places[name] = Place("", command.get_short_help_str())
        self._imported[name] = command

    def __delitem__(self, name: str) -> None:
        del self.places[name]
        self._imported.pop(name, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self.places)

    def __len__(self) -> int:
        return len(self.places)

    def __contains__(self, name: object) -> bool:
        return name in self.places


class LazyGroup(click.Group):
    """A group that lists and completes its commands without importing them."""

    commands: LazyCommands

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, self.commands.places[name].help) for name in self.list_commands(ctx)])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The commands that begin so, or the group's own options."""
        found = [
            CompletionItem(name, help=self.commands.places[name].help)
            for name in self.list_commands(ctx)
            if name.startswith(incomplete)
        ]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]

    @plainly
    def invoke(self, ctx: click.Context) -> object:
        """Run what is called; an error of ours is one clear text.

        Raises:
            UnreadError: Nobody reads on.
        """
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # for which click has an ending of its own
            raise UnreadError from None


@click.group(cls=LazyGroup, commands=LazyCommands(_PLACES), context_settings={"help_option_names": ["-h", "--help"]})
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
