"""Bars and plots as numbers, which a template writes into SVG attributes, so that no inline styles are needed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_MAX_PIECES: Final = 400
"""The maximum number of pieces in a bar; pieces thinner than a pixel are merged with their neighbors."""


@dataclass(frozen=True)
class BarSegment:
    """A part of a bar, in percent of its width.

    Attributes:
        state: The name of its color.
        x: Where it begins.
        width: Its width.
        title: Its title.
        link: Its link; empty for none.
    """

    state: str
    x: float
    width: float
    title: str
    link: str = ""


def bar(parts: Iterable[tuple[str, float, str, str]], total: float = 0) -> list[BarSegment]:
    """Return a bar of adjacent parts.

    Args:
        parts: Each one's state, size, title and link; parts of size zero are left out.
        total: The value of the whole width; by default the sum of all sizes.
    """
    sized = [part for part in parts if part[1] > 0]
    scale = max(total, sum(size for _, size, _, _ in sized)) or 1
    segments: list[BarSegment] = []
    at = 0.0
    thinnest = 100 / _MAX_PIECES
    for state, size, title, link in sized:
        width = 100 * size / scale
        if segments and len(sized) > _MAX_PIECES and width < thinnest and segments[-1].width < thinnest:
            last = segments[-1]
            segments[-1] = BarSegment(last.state, last.x, last.width + width, last.title, last.link)
        else:
            segments.append(BarSegment(state, at, width, title, link))
        at += width
    return segments


@dataclass(frozen=True)
class Plot:
    """Lines in a box of 1000 by 200, with the origin at the bottom left.

    Attributes:
        lines: The points of each line, in SVG notation.
        maximum: The value at the top.
        levels: The position of each grid line, from the top, and its value.
    """

    lines: list[str]
    maximum: float
    levels: list[tuple[float, float]]


def plot(lines: Sequence[Sequence[tuple[float, float]]]) -> Plot:
    """Return a plot of lines with one scale.

    Args:
        lines: The points of each line; x goes from 0 to 1.
    """
    largest = max([value for line in lines for _, value in line], default=0) or 1
    top = _round(largest)
    drawn = [" ".join([f"{1000 * x:.1f},{200 - 200 * y / top:.1f}" for x, y in line]) for line in lines]
    return Plot(drawn, top, [(200 - 200 * step / 4, top * step / 4) for step in range(5)])


def sparkline(counts: Sequence[float]) -> str:
    """Return the points of a line with its own scale, at equal distances, in SVG notation and a box of 1000 by 200."""
    top = _round(max(counts, default=0) or 1)
    drawn = zip(_places(len(counts)), counts, strict=True)
    return " ".join([f"{place},{200 - 200 * count / top:.1f}" for place, count in drawn])


@cache
def _places(count: int) -> list[str]:
    """Return so many places from left to right: the pages have few widths, and many lines."""
    return [f"{1000 * place / max(count - 1, 1):.1f}" for place in range(count)]


def percent(value: float) -> str:
    """Format a share of the width for an attribute."""
    return f"{value:.3f}%"


def _round(maximum: float) -> float:
    """Return the next round number above a maximum."""
    size = float("1" + "0" * (len(str(int(maximum))) - 1))
    return next(size * step for step in (1, 2, 4, 5, 8, 10) if size * step >= maximum)
