"""Run the program as a user does: in its own process, in a pipe or in a terminal of a given width."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from langchain_supabase_memory.cli.application import commands
from tests.cli.starter import Forked

NOWHERE = dict.fromkeys(
    [
        "SUPABASE_DB_URL",
        "SUPABASE_URL",
        "SUPABASE_KEY",
        *(f"SUPABASE_MEMORY_{name}" for name in ("FOLDER", "USER", "TOKEN")),
    ],
    "",
)
"""What the environment says of a database and of a user: nothing."""

PROGRAM = [sys.executable, "-P", "-c", "from langchain_supabase_memory.cli import main; main()"]
"""The program; its folder is none that Python looks into by itself."""

_CODES = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|\][^\x07]*\x07|[=>])")
_SECONDS = 60.0


def run(*arguments: str, environment: dict[str, str] | None = None) -> tuple[int, str]:
    """A command in this process: its status and what it says."""
    result = CliRunner().invoke(commands, arguments, env={**NOWHERE, **(environment or {})})
    return result.exit_code, result.output


def succeeded(*arguments: str, environment: dict[str, str] | None = None) -> str:
    """What a command says that succeeds."""
    code, output = run(*arguments, environment=environment)
    assert code == 0, output
    return output


def refused(*arguments: str, environment: dict[str, str] | None = None) -> str:
    """What the command line says to something that it does not do, in one line; it is no traceback."""
    code, output = run(*arguments, environment=environment)
    assert code in (1, 2), output
    assert "Traceback" not in output
    return " ".join(output.split())


def surroundings(**more: str) -> dict[str, str]:
    """The environment of this process without keys and addresses."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI", "SUPABASE"))}
    return {**kept, **more}


def piped(*arguments: str, **settings: Any) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own, without a terminal: a new one if it has settings or starts a server."""
    if not settings and "--embedded" not in arguments:
        return _forked(arguments)
    given = {"capture_output": True, "text": True, "check": False, "timeout": _SECONDS, "env": surroundings()}
    return subprocess.run([*PROGRAM, *arguments], stdin=subprocess.DEVNULL, **{**given, **settings})


def _forked(arguments: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    """A command in pipes, forked from the process that has imported the program."""
    with open(os.devnull) as nothing, tempfile.TemporaryFile() as errors:
        ours, theirs = os.pipe()
        with open(ours, "rb") as output:
            process = Forked(arguments, (nothing.fileno(), theirs, errors.fileno()), surroundings(), None)
            os.close(theirs)
            stdout = output.read().decode()
        code = process.wait(_SECONDS)
        errors.seek(0)
        return subprocess.CompletedProcess(arguments, code, stdout, errors.read().decode())


def _begin() -> None:
    """In the new process: its terminal, and Ctrl-C as a person's shell leaves it, which a job in the background ignores."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Terminal:
    """A command in a terminal: what it shows, what is typed, the signals of its keys.

    Args:
        arguments: The command.
        columns: How wide the terminal is.
        folder: Where it runs.
        environment: What its environment says beside.
    """

    def __init__(
        self, *arguments: str, columns: int = 80, folder: Path | None = None, environment: dict[str, str] | None = None
    ) -> None:
        self._ours, theirs = pty.openpty()
        self._said = b""
        self.resize(columns, signal_it=False)
        env = {**surroundings(), "TERM": "xterm-256color", **(environment or {})}
        for name in ("COLUMNS", "LINES"):
            if name not in (environment or {}):
                env.pop(name, None)
        # Its own session, with this as its terminal, so that Ctrl-C is a signal as it is for a person. What starts a
        # server, or sets Python up in another way, is a process from its beginning on.
        self.process: Forked | subprocess.Popen[bytes]
        if {"demo", "--embedded"} & {*arguments} or any(name.startswith(("PYTHON", "L")) for name in environment or {}):
            self.process = subprocess.Popen(
                [*PROGRAM, *arguments], stdin=theirs, stdout=theirs, stderr=theirs, env=env, cwd=folder,
                start_new_session=True, preexec_fn=_begin,
            )  # fmt: skip
        else:
            self.process = Forked(arguments, (theirs, theirs, theirs), env, folder)
        os.close(theirs)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._ours)

    @property
    def raw(self) -> str:
        """All that it was sent so far."""
        return self._said.decode(errors="replace")

    @property
    def text(self) -> str:
        """The same without the codes of colors and of the cursor."""
        return _CODES.sub("", self.raw)

    @property
    def lines(self) -> list[str]:
        """The lines of that."""
        return self.text.replace("\r\n", "\n").splitlines()

    def resize(self, columns: int, *, signal_it: bool = True) -> None:
        """Make it so wide."""
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        if signal_it:
            os.killpg(self.process.pid, signal.SIGWINCH)

    def type(self, keys: str) -> None:
        """Type; `\\x03` is Ctrl-C."""
        os.write(self._ours, keys.encode())

    def until_it_reads(self) -> None:
        """Wait until it sleeps, after a question: Ctrl-C before its call to read would be noticed after the answer."""
        end = time.monotonic() + _SECONDS
        while Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(") ")[2][0] != "S":
            assert time.monotonic() < end, self.text
            time.sleep(0.01)

    def until(self, pattern: str, *, after: int = 0) -> re.Match[str]:
        """Wait until it shows something, after so many characters."""
        end = time.monotonic() + _SECONDS
        while not (found := re.compile(pattern).search(self.text, after)):
            if time.monotonic() > end or not self._part():
                raise AssertionError(f"never shown: {pattern}\n{self.text}")
        return found

    def end(self) -> int:
        """Wait for its end, and give its status."""
        end = time.monotonic() + _SECONDS
        while self._part():
            if time.monotonic() > end:
                raise AssertionError(f"it does not end\n{self.text}")
        return self.process.wait(_SECONDS)

    def _part(self) -> bool:
        """Take some of what it shows; not if it has ended."""
        ready, _, _ = select.select([self._ours], [], [], 1.0)
        if not ready:
            return True
        try:
            part = os.read(self._ours, 65_536)
        except OSError:  # what Linux says at the end
            return False
        self._said += part
        return bool(part)
