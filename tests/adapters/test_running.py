"""The event loop for code without one; all async code of the package runs on it."""

from __future__ import annotations

import ast
import asyncio
import sys
from pathlib import Path

import pytest

from langchain_supabase_memory.adapters.transports.event_loop import run

PACKAGE = Path(__file__).parents[2] / "langchain_supabase_memory"


async def loop() -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()


class Proactor(asyncio.SelectorEventLoop):
    """Stands for what Windows has by default."""


def test_windows_gets_a_loop_that_watches_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    class Policy(asyncio.DefaultEventLoopPolicy):
        def new_event_loop(self) -> asyncio.AbstractEventLoop:
            return Proactor()

    before = asyncio.get_event_loop_policy()
    asyncio.set_event_loop_policy(Policy())
    try:
        assert type(run(loop())) is Proactor, "elsewhere the application's own choice holds"
        monkeypatch.setattr(sys, "platform", "win32")
        assert type(run(loop())) is asyncio.SelectorEventLoop
    finally:
        asyncio.set_event_loop_policy(before)


def test_what_it_raises_is_raised() -> None:
    async def fail() -> None:
        raise LookupError

    with pytest.raises(LookupError):
        run(fail())


def calls(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    return {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}


def test_no_command_or_server_runs_on_another_loop() -> None:
    for room in ("cli", "inspector", "mcp", "worker"):
        for path in (PACKAGE / room).rglob("*.py"):
            assert not calls(path) & {"asyncio.run", "asyncio.Runner", "server.run"}, path


def test_nothing_asks_for_a_signal_that_windows_lacks() -> None:
    for path in PACKAGE.rglob("*.py"):
        assert not {"signal.SIGKILL", "signal.SIGHUP", "signal.SIGQUIT"} & names(path), path


def names(path: Path) -> set[str]:
    return {ast.unparse(node) for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Attribute)}
