"""Which pieces to keep within a budget: the most weight of distinct terms for the characters they take.

What a choice is worth is, over all terms, the term's weight times the best quality of a chosen piece that holds it. So
a term counts once, however often it is said, and saying it again in a better piece adds the difference only: the worth
is monotone and submodular, and a greedy choice is provably not far from the best one. Pieces are taken by gain per
character; as Khuller, Moss and Naor do for coverage and Lin and Bilmes for summaries, the result is compared with the
best single piece, and, as Yaroslavtsev, Zhou and Avdiukhin do, with every beginning of the greedy choice followed by
the best piece that still fits. That gives at least half of the best possible worth, whatever the pieces, and at least
1 - 1/e of it where they are of one length; the full 1 - 1/e for every input would take trying all triples first.
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
    """What can be chosen.

    Attributes:
        terms: What it is about, each with its weight times the piece's quality.
        cost: What it takes of the budget, in characters.
    """

    terms: Mapping[str, float]
    cost: int


def choose(pieces: Sequence[Candidate], budget: int) -> list[int]:
    """Choose the pieces that are worth most together within a budget.

    Args:
        pieces: What can be chosen.
        budget: The most characters of all chosen pieces.

    Returns:
        The places of the chosen ones, in order. The same for the same input; of equals the later is taken, since what
        was said last is what holds.
    """
    taken, totals = _greedy(pieces, budget)
    best, chosen = totals[-1], taken
    most = [sum(piece.terms.values()) for piece in pieces]
    start: dict[str, float] = {}
    spent = 0
    for size in range(len(taken) + 1):
        for place, piece in enumerate(pieces):
            # No piece gains more than all its terms, so few are looked at.
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
    """The greedy choice, in the order of choosing, and its worth after each step.

    Gains only shrink, so a piece whose gain is up to date and heads the queue is the best (Minoux).
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
    """What a piece adds."""
    gain = 0.0
    for term, value in piece.terms.items():
        known = covered.get(term, 0.0)
        if value > known:
            gain += value - known
    return gain


def _take(piece: Candidate, covered: dict[str, float]) -> None:
    """Count a piece in."""
    for term, value in piece.terms.items():
        if value > covered.get(term, 0.0):
            covered[term] = value
