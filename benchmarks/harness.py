"""Rounds in which all contestants take turns, and the tables of their medians."""

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
"""Rounds that are run first and not counted."""


@dataclass
class Table:
    """What is shown: numbers are milliseconds, ratios or rates, as the header says."""

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
    """The order of a round: each begins equally often, and each comes both before and after its neighbor."""
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
    """The median of each contestant, in milliseconds. Arguments as for `timed`."""
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
    """The times of each contestant, in milliseconds.

    Args:
        contestants: Each does the work once with what it is given; what it returns is awaited if it can be.
        supply: Makes what a contestant is given. It is not timed.
        rounds: How many rounds are counted.
        seconds: No further round is begun after so long.
        warm_up: How many rounds come first and are not counted.
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
    """What nineteen of twenty take at most."""
    return quantiles(times, n=20, method="inclusive")[-1]


def exponent(sizes: Sequence[int], medians: Sequence[float]) -> float:
    """How the time grows with the size: the slope of log(time) over log(size). 0 is not at all, 1 in proportion."""
    return linear_regression([math.log(size) for size in sizes], [math.log(value) for value in medians]).slope


def verdict(what: str, value: float, bound: float, *, at_least: bool = False) -> str:
    """One line: whether a target is met."""
    met = value >= bound if at_least else value <= bound
    return f"{'met   ' if met else 'MISSED'} {what}: {value:.2f} {'>=' if at_least else '<='} {bound}"
