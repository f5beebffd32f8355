"""What a check asks of a store, and how it is performed, sync or async: each check is written once, as a generator."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from langgraph.store.base import BaseStore


@dataclass(frozen=True)
class StoreCall:
    """A call of one of a store's methods.

    Attributes:
        name: The method's name, without the prefix of its async twin.
        arguments: Its arguments by position.
        named: Its arguments by name.
        may_fail: Whether the check receives the exception instead of failing.
    """

    name: str
    arguments: tuple[Any, ...]
    named: dict[str, Any] = field(default_factory=dict)
    may_fail: bool = False


@dataclass(frozen=True)
class Wait:
    """A pause, in which something expires.

    Attributes:
        seconds: How long.
    """

    seconds: float


Steps: TypeAlias = Generator[StoreCall | Wait, Any, None]
"""A running check: it yields calls and receives what they return."""

CheckFunction: TypeAlias = Callable[[], Steps]
"""A check. It makes no call of a store by itself."""

_REFUSED: Final = (ValueError, TypeError, NotImplementedError)


def call(name: str, *arguments: Any, **named: Any) -> StoreCall:
    """Return a call whose exception fails the check."""
    return StoreCall(name, arguments, named)


def refused(name: str, *arguments: Any, **named: Any) -> StoreCall:
    """Return a call that has to fail; the check receives its exception, or what it returned."""
    return StoreCall(name, arguments, named, may_fail=True)


def perform(steps: Steps, store: BaseStore) -> None:
    """Run a check with the sync methods of a store.

    Args:
        steps: The check.
        store: The store.

    Raises:
        AssertionError: The store does not meet it.
    """
    answer: Any = None
    while (step := _next(steps, answer)) is not None:
        if isinstance(step, Wait):
            time.sleep(step.seconds)
            answer = None
            continue
        try:
            answer = getattr(store, step.name)(*step.arguments, **step.named)
        except _REFUSED as error:
            if not step.may_fail:
                raise
            answer = error


async def aperform(steps: Steps, store: BaseStore) -> None:
    """Run a check with the async methods of a store. Arguments and errors as for `perform`."""
    answer: Any = None
    while (step := _next(steps, answer)) is not None:
        if isinstance(step, Wait):
            await asyncio.sleep(step.seconds)
            answer = None
            continue
        try:
            answer = await getattr(store, f"a{step.name}")(*step.arguments, **step.named)
        except _REFUSED as error:
            if not step.may_fail:
                raise
            answer = error


def _next(steps: Steps, answer: Any) -> StoreCall | Wait | None:
    try:
        return steps.send(answer)
    except StopIteration:
        return None


def expect(actual: Any, expected: Any, what: str) -> None:
    """Fail the check if something is not as expected.

    Args:
        actual: What a store returned.
        expected: What it has to be equal to.
        what: What it is, in words.

    Raises:
        AssertionError: They differ.
    """
    if actual != expected:
        raise AssertionError(f"{what}: {actual!r}, not {expected!r}")
