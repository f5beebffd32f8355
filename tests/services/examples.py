"""Start an example of `examples/` as a user does: a copy of its folder, its own process, an address."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx

EXAMPLES = Path(__file__).parents[2] / "examples"
_ACCOUNTS = ("SUPABASE", "OPENAI", "LANGSMITH", "LANGCHAIN", "LANGGRAPH")


def copied(name: str, folder: Path) -> Path:
    """Copy an example to a folder where it may write."""
    return Path(shutil.copytree(EXAMPLES / name, folder / name, ignore=shutil.ignore_patterns(".*", "__pycache__")))


@contextmanager
def started(
    command: list[str], folder: Path, ready: str, variables: Mapping[str, str], *, port: int
) -> Iterator[tuple[str, Path]]:
    """Start a server, and yield its address and log file once it is ready.

    Args:
        command: The command that starts it.
        folder: Its working directory.
        ready: A path that it answers when it is ready.
        variables: Environment variables, in addition to the current ones without any account.
        port: Its port.
    """
    url, log = f"http://127.0.0.1:{port}", folder / "said.log"
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_ACCOUNTS)}
    with (
        log.open("wb") as out,
        subprocess.Popen(command, cwd=folder, stdout=out, stderr=out, env={**kept, **variables}) as process,
    ):
        try:
            _wait(process, f"{url}{ready}", log)
            yield url, log
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


def _wait(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    for _ in range(600):
        if process.poll() is not None:
            raise RuntimeError(f"It ended at once:\n{log.read_text()[-5000:]}")
        try:
            if httpx.get(url, timeout=5).status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.1)
    raise RuntimeError(f"It did not answer within a minute:\n{log.read_text()[-5000:]}")
