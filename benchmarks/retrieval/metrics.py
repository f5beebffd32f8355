"""Measure how much of a question's evidence a ranking returns, by units and by characters.

- `r@k`: the share of the evidence in the first k units. A unit is one result of a retriever; large ones score better.
- `r@Bc`: the share in a pack of B characters.
- `full@...`: whether it contains all the evidence.
- `mrr`: one over the rank of the first unit with evidence.
- `any@k`, `all@k`: whether one of the first k sessions has evidence, and whether they have all of it. Sessions rank by
  their best unit.
- `session@k`: whether one of the first k units is of a session with evidence: fewer sessions than in `any@k`.
- `ndcg@10`: the discounted gain of the evidence in the first 10 units, of the most that is possible.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from benchmarks.retrieval.data import Conversation, Question, Turn

Unit = tuple[str, ...]
"""The ids of the turns that are returned together."""

UNITS: Final = (5, 10, 20)
SESSIONS: Final = (5, 10)
CHARACTERS: Final = (2_000, 4_000, 8_000)
DEPTH: Final = 200
"""The maximum number of units in a ranking: no pack holds more."""
_HEADER: Final = 16
"""The characters of a session's date in a pack."""
_SAMPLES: Final = 2_000


def columns() -> list[str]:
    """Return the names of the measures, in order."""
    sizes = [*map(str, UNITS), *(f"{size}c" for size in CHARACTERS)]
    of_sessions = [f"{kind}@{size}" for kind in ("any", "all", "session") for size in SESSIONS]
    return [*(f"r@{size}" for size in sizes), *(f"full@{size}" for size in sizes), "mrr", *of_sessions, "ndcg@10"]


def cost(turn: Turn) -> int:
    """Return the characters of a turn in a pack: a line with the speaker."""
    return len(turn.speaker) + len(": ") + len(turn.text) + len("\n")


@dataclass
class Packer:
    """Fills packs from rankings of one conversation."""

    conversation: Conversation

    def __post_init__(self) -> None:
        self._costs = {turn.id: cost(turn) for turn in self.conversation.turns}
        self._sessions = {turn.id: turn.session for turn in self.conversation.turns}

    def pack(self, units: Iterable[Unit], characters: int, taken: Iterable[str] = ()) -> set[str]:
        """Return the turns that fit, the best units first.

        A turn counts once, and so does the header of a session. A unit that no longer fits is skipped.

        Args:
            units: The ranked units, the best first.
            characters: The room in characters.
            taken: Turns that are already in the pack and counted.
        """
        inside = set(taken)
        sessions = {self._sessions[turn] for turn in inside}
        for unit in units:
            fresh = [turn for turn in unit if turn not in inside]
            headers = {self._sessions[turn] for turn in fresh} - sessions
            price = sum(self._costs[turn] for turn in fresh) + _HEADER * len(headers)
            if price <= characters:
                characters -= price
                inside.update(fresh)
                sessions |= headers
        return inside

    def sessions(self, *units: Iterable[str]) -> set[int]:
        """Return the sessions of turns."""
        return {self._sessions[turn] for unit in units for turn in unit}

    def ranked_sessions(self, units: Iterable[Unit]) -> list[int]:
        """Return the sessions by the rank of their best unit."""
        return list(dict.fromkeys(self._sessions[turn] for unit in units for turn in unit))

    def recent(self, characters: int) -> tuple[set[str], int]:
        """Return the newest turns that fit, without gaps, and the remaining room."""
        inside: set[str] = set()
        sessions: set[int] = set()
        for turn in reversed(self.conversation.turns):
            price = self._costs[turn.id] + _HEADER * (turn.session not in sessions)
            if price > characters:
                break
            characters -= price
            inside.add(turn.id)
            sessions.add(turn.session)
        return inside, characters


def measured(packer: Packer, question: Question, units: Sequence[Unit]) -> list[float]:
    """Return the measures of one ranking for one question, in the order of `columns`."""
    wanted = question.evidence
    found = [{turn for unit in units[:most] for turn in unit} for most in UNITS]
    found += [packer.pack(units, characters) for characters in CHARACTERS]
    shares = [len(wanted & inside) / len(wanted) for inside in found]
    first = next((rank for rank, unit in enumerate(units, 1) if wanted.intersection(unit)), None)
    sessions = packer.sessions(wanted)
    ranked = packer.ranked_sessions(units)
    of_sessions = [float(bool(sessions.intersection(ranked[:most]))) for most in SESSIONS]
    of_sessions += [float(sessions.issubset(ranked[:most])) for most in SESSIONS]
    of_sessions += [float(bool(sessions & packer.sessions(*units[:most]))) for most in SESSIONS]
    full = (float(share == 1) for share in shares)
    return [*shares, *full, 0.0 if first is None else 1 / first, *of_sessions, _discounted_gain(wanted, units[:10])]


def _discounted_gain(wanted: frozenset[str], units: Sequence[Unit]) -> float:
    """Return the normalized discounted cumulative gain (Järvelin and Kekäläinen 2002); each turn counts once."""
    found: set[str] = set()
    gain = 0.0
    for rank, unit in enumerate(units, 1):
        fresh = wanted.intersection(unit) - found
        found |= fresh
        gain += len(fresh) / np.log2(rank + 1)
    most = sum(1 / np.log2(rank + 1) for rank in range(1, min(len(wanted), len(units)) + 1))
    return min(1.0, float(gain / most)) if most else 0.0


def summary(values: NDArray[np.float64]) -> list[dict[str, float]]:
    """Return each column's mean and 95 % interval in percent, by bootstrap over questions."""
    draws = np.random.default_rng(0).integers(0, len(values), (_SAMPLES, len(values)))
    # Counts and one matrix product sample all columns at once.
    counts = np.stack([np.bincount(draw, minlength=len(values)) for draw in draws])
    low, high = np.percentile(counts @ values / len(values), [2.5, 97.5], axis=0)
    rows = zip(values.mean(axis=0), low, high, strict=True)
    return [
        {name: round(100 * float(value), 2) for name, value in zip(("mean", "low", "high"), row, strict=True)}
        for row in rows
    ]


def gain(before: NDArray[np.float64], after: NDArray[np.float64]) -> dict[str, float]:
    """Return the mean gain of the same questions and its 95 % interval, in points, by bootstrap over questions."""
    return summary((after - before)[:, None])[0]


def by_category(values: NDArray[np.float64], categories: Sequence[str], apart: str) -> dict[str, Any]:
    """Return the summary over all questions except one category, and of each category alone."""
    kinds = np.array(categories)
    groups = {"all": kinds != apart, **{name: kinds == name for name in sorted(set(categories))}}
    return {
        name: {
            "questions": int(inside.sum()),
            **dict(zip(columns(), summary(values[inside]), strict=True)),
        }
        for name, inside in groups.items()
        if inside.any()
    }
