"""Recalled chunks on a timeline of the conversation: a picture for a notebook, a line for a terminal."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta, tzinfo
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.language.messages import content
from langchain_supabase_memory.operations.recall.ranges import zone

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from langchain_supabase_memory.values import Chunk

MAX_DRAWN: Final = 100
"""The maximum number of recalled chunks that are drawn, the best first; others get one mark per point of width."""

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BASE = 960, 236, 44, 20, 36, 176
_ACROSS: Final = _WIDTH - _LEFT - _RIGHT
# Two colors of the Okabe-Ito palette, safe for color blindness; marks also differ in shape and size.
_BLUE: Final = "#0072B2"
_VERMILION: Final = "#D55E00"
_MARKS: Final = 8
_STEPS: Final = (
    *(timedelta(minutes=each) for each in (1, 5, 15, 60, 180, 720)),
    *(timedelta(days=each) for each in (1, 2, 7, 14)),
)
_MONTHS: Final = (1, 2, 3, 6, *(12 * 2**power for power in range(12)))
_LEVELS: Final = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class ChunkTimeline:
    """Recalled chunks on a timeline of the conversation. A notebook shows it as a picture, `str` as a line.

    Attributes:
        chunks: All chunks that could be recalled.
        recalled: The recalled chunks.
        conversation: The reader's time zone.
    """

    chunks: Sequence[Chunk] = field(repr=False)
    recalled: Sequence[Chunk] = field(repr=False)
    conversation: tzinfo

    @property
    def svg(self) -> str:
        """The picture as an SVG document: a mark for each chunk, a stem as high as the score for each recalled one."""
        return "".join(self._drawn())

    def _repr_html_(self) -> str:
        return f'<figure style="margin:0;max-width:{_WIDTH}px">{self.svg}</figure>'

    def __str__(self) -> str:
        """Return a line for a terminal: a dot for each chunk, a bar as high as its score for each recalled one."""
        if not self._all:
            return self._caption()
        columns = [" "] * 54
        for chunk in self.chunks:
            columns[round(self._share(chunk) * 53)] = "·"
        for chunk, height in reversed(self._best()):
            columns[round(self._share(chunk) * 53)] = _LEVELS[round(height * (len(_LEVELS) - 1))]
        first, last = self._span
        return f"{self._caption()}\n{first:%Y-%m-%d} │{''.join(columns)}│ {last:%Y-%m-%d}"

    __repr__ = __str__

    @property
    def _all(self) -> list[Chunk]:
        return [*self.chunks, *self.recalled]

    @cached_property
    def _span(self) -> tuple[datetime, datetime]:
        times = [each.said_at for each in self._all]
        return min(times).astimezone(self.conversation), max(times).astimezone(self.conversation)

    def _share(self, chunk: Chunk) -> float:
        """Return a chunk's position on the timeline, from 0 to 1."""
        first, last = self._span
        return (chunk.said_at - first) / (last - first) if last > first else 0.5

    def _best(self) -> list[tuple[Chunk, float]]:
        """Return the best recalled chunks, the best first, with their scores relative to the best."""
        scored = sorted(((each, _score(each)) for each in self.recalled), key=lambda each: -each[1])[:MAX_DRAWN]
        top = max((score for _, score in scored), default=0.0)
        return [(chunk, score / top if top else 0.5) for chunk, score in scored]

    def _caption(self) -> str:
        drawn = f", the best {MAX_DRAWN} drawn" if len(self.recalled) > MAX_DRAWN else ""
        return f"{len(self.recalled):,} of {len(self.chunks):,} chunks recalled{drawn}"

    def _drawn(self) -> Iterator[str]:
        best, label = self._best(), self._caption()
        if self._all:
            label += ", said from {:%Y-%m-%d} to {:%Y-%m-%d}".format(*self._span)
        yield (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{label}" '
            f'width="100%" font-family="system-ui, sans-serif" font-size="13" fill="currentColor" '
            f'stroke="none"><text x="{_LEFT}" y="14" font-weight="600">{label}</text>'
            f'<text x="{_WIDTH - _RIGHT}" y="14" font-size="11" text-anchor="end" opacity="0.75">'
            "above the line: recalled, by score; below: all</text>"
        )
        yield from self._axes(_score(best[0][0]) if best else 0.0)
        marks = Counter(round(_LEFT + self._share(each) * _ACROSS) for each in self.chunks)
        if marks:
            most = max(marks.values())
            ticks = "".join(f"M{x} {_BASE + 4}v{4 + 12 * (n / most) ** 0.5:.0f}" for x, n in sorted(marks.items()))
            yield f'<path d="{ticks}" stroke="currentColor" stroke-width="1.5" stroke-opacity="0.45"/>'
        # Draw the worst first, so that the best are on top.
        for number, (chunk, height) in reversed(list(enumerate(best, 1))):
            yield from self._stem(chunk, height, number)
        yield "</svg>"

    def _axes(self, top: float) -> Iterator[str]:
        for share in (0.0, 0.5, 1.0) if top else (0.0,):
            y = _BASE - share * (_BASE - _TOP)
            value = f"{top * share:.2f}" if share else "0"
            yield (
                f'<path d="M{_LEFT} {y:g}h{_ACROSS}" stroke="currentColor" stroke-opacity="{0.15 if share else 0.6}"/>'
                f'<text x="{_LEFT - 6}" y="{y + 4:g}" font-size="11" text-anchor="end" opacity="0.75">{value}</text>'
            )
        for share, name in self._dates():
            x = _LEFT + share * _ACROSS
            yield (
                f'<path d="M{x:.1f} {_BASE + 24}v6" stroke="currentColor" stroke-opacity="0.6"/>'
                f'<text x="{x:.1f}" y="{_BASE + 46}" text-anchor="middle" opacity="0.85">{name}</text>'
            )

    def _dates(self) -> Iterator[tuple[float, str]]:
        """Yield the positions and labels of the dates and times."""
        if not self._all:
            return
        first, last = self._span
        known = ""
        for when, day, time in [each for each in _marks(first, last) if first <= each[0] <= last] or [_mark(first)]:
            share = (when - first) / (last - first) if last > first else 0.5
            yield share, " ".join(filter(None, [day if day != known or not time else "", time]))
            known = day

    def _stem(self, chunk: Chunk, height: float, number: int) -> Iterator[str]:
        x, y = _LEFT + self._share(chunk) * _ACROSS, _BASE - height * (_BASE - _TOP)
        color, width, radius = (_VERMILION, 2.5, 6) if number == 1 else (_BLUE, 1.5, 4)
        said = chunk.said_at.astimezone(self.conversation)
        score = "" if chunk.score is None else f", score {chunk.score:.2f}"
        title = (
            f"{number}: message {chunk.from_sequence}, {said:%Y-%m-%d %H:%M}{score}\n"
            f"{_plain(content.speaker(content.LABELS[chunk.role], chunk.speaker))}: {_plain(chunk.content)}"
        )
        yield (
            f'<g><title>{escape(title)}</title><path d="M{x:.1f} {_BASE}V{y:.1f}" stroke="{color}" '
            f'stroke-width="{width}"/><circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{color}" '
            f'stroke="white"/></g>'
        )
        if number == 1:
            side, anchor = (10, "start") if x < _WIDTH * 0.7 else (-10, "end")
            yield (
                f'<text x="{x + side:.1f}" y="{y + 5:.1f}" text-anchor="{anchor}" fill="{_VERMILION}" '
                f'font-weight="600">message {chunk.from_sequence}, {said.day} {said:%b}</text>'
            )


def chunk_timeline(
    chunks: Sequence[Chunk], recalled: Sequence[Chunk] = (), *, time_zone: str | tzinfo | None = None
) -> ChunkTimeline:
    """Draw recalled chunks on a timeline of the conversation.

    Args:
        chunks: All chunks that could be recalled: a conversation's `chunks.list()`.
        recalled: The recalled chunks: `memory.recall(...).chunks`, or a pack's `recalled`.
        time_zone: The reader's time zone; UTC by default.

    Returns:
        The picture. All text of messages in it is escaped.

    Raises:
        InvalidInputError: There is no such time zone.
    """
    return ChunkTimeline(chunks, recalled, zone(time_zone))


def _marks(first: datetime, last: datetime) -> Iterator[tuple[datetime, str, str]]:
    """Yield round times on the timeline, each with its day and time, or its day, or its year and month."""
    step = next((each for each in _STEPS if (last - first) / each <= _MARKS), None)
    if step is None:
        whole = (last.year - first.year) * 12 + last.month - first.month
        every = next(each for each in _MONTHS if whole / each <= _MARKS)
        for month in range(0, whole + 12, every):
            year = first.year + month // 12
            if year <= last.year:
                when = datetime(year, month % 12 + 1, 1, tzinfo=first.tzinfo)
                yield when, f"{year}" if every >= 12 else f"{when:%b} {year}", ""
        return
    # Steps start at midnight, or on a Monday, in wall-clock time, so a change to daylight saving time moves no day.
    start = first.replace(hour=0, minute=0, second=0, microsecond=0)
    if step >= timedelta(days=7) and start.toordinal() > 7:
        start -= timedelta(days=start.weekday())
    for number in range(int((last - start) / step) + 1):
        when, day, time = _mark(start + step * number)
        yield when, day, time if step < timedelta(days=1) else ""


def _mark(when: datetime) -> tuple[datetime, str, str]:
    return when, f"{when.day} {when:%b}", f"{when:%H:%M}"


def _score(chunk: Chunk) -> float:
    return max(chunk.score or 0.0, 0.0)


def _plain(text: str, max_characters: int = 120) -> str:
    """Return the beginning of a text on one line, without unprintable characters."""
    line = " ".join("".join(each if each.isprintable() else " " for each in text[: max_characters * 4]).split())
    return line if len(line) <= max_characters else f"{line[: max_characters - 1]}…"
