"""Select pieces within a budget: the largest total weight of distinct terms for their characters.

The value of a selection is the sum, over all terms, of the term's weight times the best quality of a selected piece
that contains it. A term counts once, however often it occurs, and a better piece only adds the difference. So the value
is monotone and submodular, and a greedy selection has a proven bound. Pieces are taken by gain per character. As
Khuller, Moss and Naor do for coverage and Lin and Bilmes do for summaries, the result is compared with the best single
piece; as Yaroslavtsev, Zhou and Avdiukhin do, it is also compared with every prefix of the greedy selection followed by
the best piece that still fits. This gives at least half of the best possible value for any pieces, and at least
1 - 1/e of it for pieces of equal length. The full 1 - 1/e for every input would require trying all triples first.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_NOTHING: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Candidate:
    """A piece that can be selected.

    Attributes:
        terms: Its terms, each with its weight times the piece's quality.
        cost: Its characters, which count toward the budget.
    """

    terms: Mapping[str, float]
    cost: int


def choose(pieces: Sequence[Candidate], budget: int) -> list[int]:
    """Select the pieces with the highest total value within a budget.

    Args:
        pieces: The candidates.
        budget: The maximum number of characters of all selected pieces.

    Returns:
        The indexes of the selected pieces, in order. The result is deterministic; of equal pieces the later one is
        taken, since the latest statement is the current one.
    """
    taken, totals = _greedy(pieces, budget)
    best, chosen = totals[-1], taken
    most = [sum(piece.terms.values()) for piece in pieces]
    start: dict[str, float] = {}
    spent = 0
    for size in range(len(taken) + 1):
        for place, piece in enumerate(pieces):
            # No piece gains more than the sum of its terms, so few need to be evaluated.
            if piece.cost > budget - spent or totals[size] + most[place] <= best + _NOTHING:
                continue
            total = totals[size] + _gain(piece, start)
            if total > best + _NOTHING:
                best, chosen = total, [*taken[:size], place]
        if size < len(taken):
            _take(pieces[taken[size]], start)
            spent += pieces[taken[size]].cost
    if chosen is not taken:
        chosen, _ = _greedy(pieces, budget, chosen)
    return sorted(chosen)


def _greedy(pieces: Sequence[Candidate], budget: int, begun: Sequence[int] = ()) -> tuple[list[int], list[float]]:
    """Return the greedy selection in the order of selection, and its value after each step.

    Gains only shrink, so a piece with an up-to-date gain at the head of the queue is the best one (Minoux).
    """
    held: dict[str, float] = {}
    for place in begun:
        _take(pieces[place], held)
    room = budget - sum(pieces[place].cost for place in begun)
    taken = list(begun)
    totals = [sum(held.values())]
    queue = [
        (-_gain(piece, held) / max(piece.cost, 1), -place, len(taken))
        for place, piece in enumerate(pieces)
        if piece.cost <= room and place not in begun
    ]
    heapify(queue)
    while queue:
        _, negative, seen = heappop(queue)
        piece = pieces[-negative]
        if piece.cost > room:
            continue
        gain = _gain(piece, held)
        if gain <= 0:
            continue
        if seen == len(taken) or not queue or -gain / max(piece.cost, 1) <= queue[0][0]:
            _take(piece, held)
            taken.append(-negative)
            totals.append(totals[-1] + gain)
            room -= piece.cost
        else:
            heappush(queue, (-gain / max(piece.cost, 1), negative, len(taken)))
    return taken, totals


def _gain(piece: Candidate, covered: Mapping[str, float]) -> float:
    """Return the value that a piece adds."""
    gain = 0.0
    for term, value in piece.terms.items():
        known = covered.get(term, 0.0)
        if value > known:
            gain += value - known
    return gain


def _take(piece: Candidate, covered: dict[str, float]) -> None:
    """Add a piece to the covered terms."""
    for term, value in piece.terms.items():
        if value > covered.get(term, 0.0):
            covered[term] = value
