"""The command `supabase-memory` and the registry of its subcommands.

A subcommand's module is imported when it is called, so that `--help` and completion stay fast.
"""

from __future__ import annotations

from collections import UserDict
from importlib import import_module
from keyword import iskeyword
from typing import TYPE_CHECKING, Final, NamedTuple

import click
from click.shell_completion import CompletionItem

from langchain_supabase_memory.adapters.telemetry.logs import configure
from langchain_supabase_memory.cli.options import show_errors_as_text

if TYPE_CHECKING:
    from langchain_supabase_memory.adapters.telemetry.logs import LogFormat

PROGRAM: Final = "supabase-memory"
"""The name of the program."""


class OutputClosedError(Exception):
    """The command's output pipe was closed."""


class CommandSpec(NamedTuple):
    """A subcommand, described without importing its module.

    Attributes:
        name: Its name, which is also the name of its module in `cli.commands` and of its function there.
        help: Its one-line help: the first line of its docstring.
        anchor: Its section in `docs/command-line.md`.
    """

    name: str
    help: str
    anchor: str

    def load(self) -> click.Command:
        """Import the command."""
        module = import_module(f"langchain_supabase_memory.cli.commands.{self.name}")
        command = getattr(module, f"{self.name}_" if iskeyword(self.name) else self.name)
        assert isinstance(command, click.Command)
        return command


COMMANDS: Final = {
    spec.name: spec
    for spec in (
        CommandSpec(
            "board",
            "Print the board of a conversation: its summary, and its items with their evidence.",
            "read-conversations",
        ),
        CommandSpec("cleanup", "Delete expired chunks, and messages beyond a limit.", "delete-data"),
        CommandSpec("completion", "Print the completion script for bash, zsh or fish.", "more-commands"),
        CommandSpec("context", "Print what the next prompt would have, part by part, and why.", "read-conversations"),
        CommandSpec("conversations", "List a user's conversations, most recently changed first.", "read-conversations"),
        CommandSpec("demo", "Watch an agent remember a long conversation.", "more-commands"),
        CommandSpec("doctor", "Check the setup and say how to fix what is wrong.", "check-the-setup"),
        CommandSpec("export", "Export a user's conversations to a file or a folder.", "import-and-export"),
        CommandSpec("forget", "Delete conversations, or everything that is stored of a user.", "delete-data"),
        CommandSpec(
            "import",
            "Import conversations, or what is known of a user, from a file or another library's database.",
            "import-and-export",
        ),
        CommandSpec("insights", "Show what conversations came to by day, and which settings to change.", "topics"),
        CommandSpec("inspect", "Open the inspector, a page that shows what an agent knew and why.", "more-commands"),
        CommandSpec("mcp", "Serve a user's conversations to an MCP client, such as Claude or Cursor.", "more-commands"),
        CommandSpec("migrate", "Set up a database, or upgrade it to this release.", "set-up-a-database"),
        CommandSpec("profile", "Show what is remembered about a user, and change it.", "profile"),
        CommandSpec("retry", "Retry the work that workers have given up.", "run-workers"),
        CommandSpec("search", "Search a user's conversations, by recall and by exact words.", "read-conversations"),
        CommandSpec("show", "Print the messages of a conversation.", "read-conversations"),
        CommandSpec("spaces", "Create spaces that people share, invite into them, and set roles.", "spaces"),
        CommandSpec("sql", "Print the SQL that sets up a database, or write migration files.", "set-up-a-database"),
        CommandSpec("status", "Show the work queue, and how far each conversation is processed.", "run-workers"),
        CommandSpec("tidy", "Prune LangGraph's checkpoints, and close their tables to the Data API.", "delete-data"),
        CommandSpec("topics", "Show what a user's conversations are about, and change it.", "topics"),
        CommandSpec("unreadable", "List stored messages that cannot be read, without their content.", "run-workers"),
        CommandSpec("users", "List the users who have conversations, by their ids.", "run-workers"),
        CommandSpec("why", "Explain why an answer did not know something.", "read-conversations"),
        CommandSpec("worker", "Run a worker, which keeps indexes, summaries and boards up to date.", "run-workers"),
    )
}
"""The subcommands by name."""


GROUPS: Final = {
    "Begin": ("set-up-a-database", "check-the-setup"),
    "Read and change": ("read-conversations", "profile", "topics"),
    "Share": ("spaces",),
    "Move and delete": ("import-and-export", "delete-data"),
    "Operate": ("run-workers",),
    "More": ("more-commands",),
}
"""The groups of the list of commands, each with its sections of `docs/command-line.md`."""

EXAMPLES: Final = (
    ("supabase-memory migrate --embedded ./memory", "set up a database in a folder"),
    ("supabase-memory search kiln --user maya", "find what was said"),
    ("supabase-memory inspect --user maya", "see what an agent knew, and why"),
    ("supabase-memory worker", "keep summaries and boards up to date"),
)
"""Examples for the help: a command, and what it does."""


class LazyCommands(UserDict[str, "click.Command | CommandSpec"]):
    """Commands by name. A lookup imports the command."""

    def __getitem__(self, name: str) -> click.Command:
        """Import and return a command."""
        entry = self.data[name]
        if isinstance(entry, CommandSpec):
            entry = self.data[name] = entry.load()
        return entry


class LazyGroup(click.Group):
    """A group that lists and completes its commands without importing them."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands by group, and examples."""
        names = self.list_commands(ctx)
        for group, anchors in GROUPS.items():
            with formatter.section(group):
                formatter.write_dl([(name, COMMANDS[name].help) for name in names if COMMANDS[name].anchor in anchors])
        with formatter.section("Examples"):
            formatter.write_dl(EXAMPLES)
        formatter.write_paragraph()
        formatter.write_text(
            "Set SUPABASE_MEMORY_FOLDER instead of --embedded, and SUPABASE_MEMORY_USER instead of --user of a command "
            "that acts for one user."
        )

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete command names and the group's own options."""
        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        items = [CompletionItem(name, help=COMMANDS[name].help) for name in names]
        return [*items, *click.Command.shell_complete(self, ctx, incomplete)]

    @show_errors_as_text
    def invoke(self, ctx: click.Context) -> object:
        """Run a command. The package's own errors are shown as text.

        Raises:
            OutputClosedError: The command's output pipe was closed.
        """
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # click would exit with its own status
            raise OutputClosedError from None


@click.group(cls=LazyGroup, commands=LazyCommands(COMMANDS), context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="langchain-supabase-memory")
@click.option(
    "--log-format",
    type=click.Choice(["plain", "json"]),
    envvar="SUPABASE_MEMORY_LOG_FORMAT",
    help="Format of the log on the standard error stream: text (a worker's default), or one JSON object per line.",
)
def commands(log_format: LogFormat | None) -> None:
    """Memory for LangChain and LangGraph agents on Supabase."""
    if log_format is not None:
        configure(log_format)
