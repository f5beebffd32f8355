"""A picture of how prompts grow over the turns, with and without the memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.context.report import ContextReport

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from langchain_supabase_memory.context.pack import ContextPack

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BASE = 720, 260, 64, 150, 34, 220
_ACROSS: Final = _WIDTH - _LEFT - _RIGHT
# Two colors of the Okabe-Ito palette, safe for color blindness, also on black; the lines also differ in dashes.
_ALL: Final = "#D55E00"
_SENT: Final = "#0072B2"
_MAX_POINTS: Final = 300
_LINES: Final = 4


@dataclass(frozen=True)
class PromptGrowth:
    """The growth of prompts over the turns. A notebook shows it as a picture, `str` as a line.

    Attributes:
        packed: The tokens of each turn's pack.
        full: The tokens of the whole history at that turn, which is what sending all of it would have cost.
    """

    packed: tuple[int, ...]
    full: tuple[int, ...]

    @property
    def svg(self) -> str:
        """The picture as an SVG document."""
        return "".join(self._drawn())

    def _repr_html_(self) -> str:
        return f'<figure style="margin:0;max-width:{_WIDTH}px">{self.svg}</figure>'

    def __str__(self) -> str:
        """Return the picture's message as one line."""
        if not self.packed:
            return "No turns yet."
        saved = 1 - sum(self.packed) / sum(self.full) if sum(self.full) else 0.0
        return (
            f"{len(self.packed):,} turns: {sum(self.packed):,} tokens sent, {sum(self.full):,} without the memory "
            f"({saved:.0%} saved); the last prompt {self.packed[-1]:,} instead of {self.full[-1]:,}"
        )

    __repr__ = __str__

    def _drawn(self) -> Iterator[str]:
        yield (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{self}" '
            'width="100%" font-family="system-ui, sans-serif" font-size="13" fill="currentColor" stroke="none">'
            f'<text x="{_LEFT}" y="16" font-weight="600">Tokens of each turn\'s prompt</text>'
        )
        if self.packed:
            top = _round(max(*self.packed, *self.full, 1))
            yield from self._axes(top)
            yield from self._line(self.full, top, _ALL, "everything", ' stroke-dasharray="6 4"')
            yield from self._line(self.packed, top, _SENT, "with the memory", "")
        yield "</svg>"

    def _axes(self, top: int) -> Iterator[str]:
        for place in range(_LINES + 1):
            y = _BASE - place * (_BASE - _TOP) / _LINES
            yield (
                f'<path d="M{_LEFT} {y:g}h{_ACROSS}" stroke="currentColor" stroke-opacity="{0.15 if place else 0.6}"/>'
                f'<text x="{_LEFT - 6}" y="{y + 4:g}" font-size="11" text-anchor="end" opacity="0.75">'
                f"{top * place // _LINES:,}</text>"
            )
        yield (
            f'<text x="{_LEFT}" y="{_BASE + 18}" font-size="11" opacity="0.75">turn 1</text>'
            f'<text x="{_LEFT + _ACROSS}" y="{_BASE + 18}" font-size="11" text-anchor="end" opacity="0.75">'
            f"turn {len(self.packed):,}</text>"
        )

    def _line(self, tokens: Sequence[int], top: int, color: str, name: str, dashes: str) -> Iterator[str]:
        points = [
            (_LEFT + _percent_saved(place, len(tokens)) * _ACROSS, _BASE - tokens[place] / top * (_BASE - _TOP))
            for place in _sample_points(len(tokens))
        ]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        x, y = points[-1]
        yield (
            f'<path d="M{path}" fill="none" stroke="{color}" stroke-width="2.5"{dashes}/>'
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{color}"/>'
            f'<text x="{x + 10:.1f}" y="{y - 2:.1f}" font-weight="600">{tokens[-1]:,}</text>'
            f'<text x="{x + 10:.1f}" y="{y + 12:.1f}" font-size="11">{name}</text>'
        )


def prompt_growth(packs: Iterable[ContextPack | ContextReport]) -> PromptGrowth:
    """Draw how prompts grow over the turns, with and without the memory.

    Args:
        packs: The pack of each turn, or its report, in order.

    Returns:
        The picture; it contains only numbers, no text of messages.
    """
    reports = [each if isinstance(each, ContextReport) else each.report() for each in packs]
    return PromptGrowth(tuple(each.tokens for each in reports), tuple(each.full_tokens for each in reports))


def _sample_points(count: int) -> list[int]:
    """Return the turns to draw: all, or as many as a picture can show, including the last."""
    every = -(-count // _MAX_POINTS)
    return [*range(0, count - 1, every), count - 1]


def _percent_saved(place: int, count: int) -> float:
    return place / (count - 1) if count > 1 else 1.0


def _round(maximum: int) -> int:
    """Return the end of the axis: a round number above the maximum that four lines divide."""
    size = 4
    while size * 10 < maximum:
        size *= 10
    return next(size * factor for factor in (1, 2, 3, 5, 10) if size * factor >= maximum)
