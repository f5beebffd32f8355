"""Every operation is a flow: written once, a generator that yields what it needs and receives the answer.

The surface to the outside is tiny: call a SQL function. Two small drivers, one sync and one async, run any flow, so
there is no second copy of the logic, no hidden event loop and no thread between them. A flow is tested by stepping
it by hand: `next(flow)` gives the first `Call`, `flow.send(answer)` the next.

Only `call` yields; everything above it uses `yield from` and stays typed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from langchain_supabase_memory.errors import SchemaMissingError, SchemaOutdatedError

T = TypeVar("T")


@dataclass(frozen=True)
class Call:
    """One call of a SQL function of the schema `public`.

    Attributes:
        function: Its name.
        arguments: Its named arguments. Lists and dictionaries travel as JSON, everything else as itself.
    """

    function: str
    arguments: Mapping[str, Any] = field(default_factory=dict, repr=False)  # repr=False: arguments hold content


Flow = Generator[Call, Any, T]
"""What an operation is: it yields calls, and returns a `T`."""


def call(function: str, arguments: Mapping[str, Any]) -> Flow[Any]:
    """The innermost verb: one call, and its decoded document.

    Args:
        function: The SQL function's name.
        arguments: Its named arguments.

    Returns:
        The function's answer, as Python values.

    Raises:
        SchemaMissingError: Nothing of ours is in the database.
        SchemaOutdatedError: The database is set up, but by a release that lacks this function.
    """
    try:
        return (yield Call(function, arguments))
    except SchemaMissingError as missing:
        installed = yield Call("memory_schema")  # raises SchemaMissingError itself where there is none
        raise SchemaOutdatedError(
            f"The memory's schema in this database is of release {installed['version']} and has no {function} as "
            "this release calls it.",
            code=missing.code,
        ) from None


def run(flow: Flow[T], perform: Callable[[Call], Any]) -> T:
    """Drive a flow with a function that performs one call.

    Args:
        flow: A fresh flow.
        perform: Performs a call, and returns its answer or raises.

    Returns:
        What the flow returns.
    """
    try:
        step = next(flow)
        while True:
            try:
                answer = perform(step)
            except Exception as error:
                step = flow.throw(error)
            else:
                step = flow.send(answer)
    except StopIteration as stop:
        result: T = stop.value
        return result
    finally:
        flow.close()


async def arun(flow: Flow[T], perform: Callable[[Call], Awaitable[Any]]) -> T:
    """Drive a flow with a coroutine function that performs one call: the async twin of `run`."""
    try:
        step = next(flow)
        while True:
            try:
                answer = await perform(step)
            except Exception as error:
                step = flow.throw(error)
            else:
                step = flow.send(answer)
    except StopIteration as stop:
        result: T = stop.value
        return result
    finally:
        flow.close()
