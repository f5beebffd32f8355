"""Run rounds in which all contestants take turns, and build the tables of their medians."""

from __future__ import annotations

import inspect
import math
import time
from dataclasses import dataclass, field
from statistics import linear_regression, median, quantiles
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

T = TypeVar("T")
WARM_UP = 5
"""The number of initial rounds that do not count."""


@dataclass
class Table:
    """A results table: numbers are milliseconds, ratios or rates, as the header says."""

    title: str
    columns: list[str]
    rows: list[list[str | float]]
    notes: list[str] = field(default_factory=list)

    def text(self) -> str:
        cells = [self.columns, *[[_cell(value) for value in row] for row in self.rows]]
        widths = [max(len(row[column]) for row in cells) for column in range(len(self.columns))]
        lines = ["  ".join(_padded(row, widths)).rstrip() for row in cells]
        return "\n".join([f"## {self.title}", lines[0], "-" * len(lines[0]), *lines[1:], *self.notes])


def _cell(value: str | float) -> str:
    if isinstance(value, str):
        return value
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2f}"


def _padded(row: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    for column, (cell, width) in enumerate(zip(row, widths, strict=True)):
        yield cell.rjust(width) if column else cell.ljust(width)


def rotated(names: Sequence[str], number: int) -> list[str]:
    """Return the order of a round: each name starts equally often, and comes both before and after its neighbor."""
    turn = number % len(names)
    order = [*names[turn:], *names[:turn]]
    return order[::-1] if number // len(names) % 2 else order


async def interleaved(
    contestants: Mapping[str, Callable[[T], object]],
    supply: Callable[[], T],
    *,
    rounds: int,
    seconds: float,
    warm_up: int = WARM_UP,
) -> dict[str, float]:
    """Return the median of each contestant, in milliseconds. The arguments are those of `timed`."""
    times = await timed(contestants, supply, rounds=rounds, seconds=seconds, warm_up=warm_up)
    return {name: median(values) for name, values in times.items()}


async def timed(
    contestants: Mapping[str, Callable[[T], object]],
    supply: Callable[[], T],
    *,
    rounds: int,
    seconds: float,
    warm_up: int = WARM_UP,
) -> dict[str, list[float]]:
    """Return the times of each contestant, in milliseconds.

    Args:
        contestants: Functions that do the work once with the supplied value; an awaitable result is awaited.
        supply: Creates the supplied value. It is not timed.
        rounds: The number of rounds that count.
        seconds: The time after which no further round starts.
        warm_up: The number of initial rounds that do not count.
    """
    times: dict[str, list[float]] = {name: [] for name in contestants}
    end = time.perf_counter() + seconds
    for number in range(-warm_up, rounds):
        if number > 2 and time.perf_counter() > end:
            break
        for name in rotated(list(contestants), number + warm_up):
            given = supply()
            begun = time.perf_counter()
            result = contestants[name](given)
            if inspect.isawaitable(result):
                await result
            if number >= 0:
                times[name].append((time.perf_counter() - begun) * 1000)
    return times


def p95(times: Sequence[float]) -> float:
    """Return the 95th percentile."""
    return quantiles(times, n=20, method="inclusive")[-1]


def exponent(sizes: Sequence[int], medians: Sequence[float]) -> float:
    """Return the growth exponent: the slope of log(time) over log(size). 0 is constant, 1 is linear."""
    return linear_regression([math.log(size) for size in sizes], [math.log(value) for value in medians]).slope


def verdict(what: str, value: float, bound: float, *, at_least: bool = False) -> str:
    """Return one line that says whether a target is met."""
    met = value >= bound if at_least else value <= bound
    return f"{'met   ' if met else 'MISSED'} {what}: {value:.2f} {'>=' if at_least else '<='} {bound}"
