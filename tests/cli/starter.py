"""Fork the program for each run from a process that has imported it: an import takes 0.6 s of CPU time.

The starter does not know the tests. A keeper waits for each run, and sends its number, then its status.
"""

from __future__ import annotations

import fcntl
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import termios
import time
from functools import cache
from pathlib import Path
from typing import Any

import click


@cache
def _starter() -> socket.socket:
    """The starter of this process, which ends with it."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        subprocess.Popen(
            [sys.executable, "-P", __file__, str(theirs.fileno())], pass_fds=[theirs.fileno()], start_new_session=True
        ).returncode = 0  # nobody waits for it
    return ours


class Forked:
    """A run in a terminal or in pipes, with what a test uses of `subprocess.Popen`.

    Args:
        arguments: The command.
        streams: The descriptors of its input, output and errors; a terminal is all three.
        env: Its whole environment.
        cwd: Its folder.
    """

    def __init__(
        self, arguments: tuple[str, ...], streams: tuple[int, int, int], env: dict[str, str], cwd: Path | None
    ) -> None:
        request = {"arguments": arguments, "env": env, "cwd": str(cwd or Path.cwd())}
        self._told, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            socket.send_fds(_starter(), [json.dumps(request).encode()], [*streams, theirs.fileno()])
        self.pid = int(self._told.recv(100))
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Its status, if it has ended."""
        return self._status(0)

    def wait(self, timeout: float = 60) -> int:
        """Wait for its status."""
        if (status := self._status(timeout)) is None:
            raise subprocess.TimeoutExpired("a forked run", timeout)
        return status

    def send_signal(self, number: int) -> None:
        """Send it a signal."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it."""
        self.send_signal(signal.SIGKILL)

    def _status(self, seconds: float) -> int | None:
        if self.returncode is None and select.select([self._told], [], [], seconds)[0]:
            self.returncode = int(self._told.recv(100))
            self._told.close()
        return self.returncode


def _serve(requests: socket.socket) -> None:
    """Fork for each request; it returns in the process of a run alone."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        request, ends, _, _ = socket.recv_fds(requests, 1_000_000, 4)
        if not request:
            os._exit(0)
        if os.fork() == 0:
            requests.close()
            _keep(json.loads(request), *ends)
            return
        for each in ends:
            os.close(each)


def _keep(request: dict[str, Any], *ends: int) -> None:
    *streams, told = ends
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if (run := os.fork()) == 0:
        os.close(told)
        _begin(request, streams)
        return
    for each in streams:
        os.close(each)
    os.write(told, str(run).encode())
    os.write(told, str(os.waitstatus_to_exitcode(os.waitpid(run, 0)[1])).encode())
    os._exit(0)


def _begin(request: dict[str, Any], streams: list[int]) -> None:
    """What a new process of Python has: a session, a terminal if any, signals, a folder, an environment, streams."""
    os.setsid()
    for place, each in enumerate(streams):
        os.dup2(each, place)
    for each in streams:
        os.close(each)
    if os.isatty(0):
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    time.tzset()
    sys.argv = ["-c", *request["arguments"]]
    sys.stdin = open(0, encoding="utf-8", closefd=False)
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr  # type: ignore[misc]


if __name__ == "__main__":
    import langchain_supabase_memory.adapters.transports.postgres
    import langchain_supabase_memory.memory.memory  # noqa: F401
    from langchain_supabase_memory.cli.application import COMMANDS, commands

    for name in COMMANDS:
        if name not in ("demo", "inspect", "mcp"):  # which a forked run never is
            commands.get_command(click.Context(commands), name)
    gc.collect()
    gc.freeze()
    _serve(socket.socket(fileno=int(sys.argv[1])))
    from langchain_supabase_memory.cli import main

    main()
