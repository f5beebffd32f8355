"""Which stretches of talk belong together: a graph of those that are most like each other, and its communities.

Everything here is a function of its input, whatever the order, so two workers find the same.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush, nsmallest
from itertools import pairwise
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

StretchKey: TypeAlias = "tuple[str, int]"
"""A conversation's id, and the first sequence of a stretch in it."""

NEIGHBORS: Final = 12
"""How many others each stretch is compared with: those that are most like it."""

MAX_TOPICS: Final = 200
"""How many topics an owner has at most."""

_COMMON: Final = 0.25
"""A word of more than this share of many stretches tells none from another."""
_FEW: Final = 100
"""Among so few every word counts."""
_SAME: Final = 0.999
_ROUNDS: Final = 50
_ABOVE_CHANCE: Final = 0.3
"""How far above what any two have in common a neighbor's likeness has to be, as a share of what is left to one."""
_BY_WORDS: Final = 0.1
"""How alike two stretches have to be by their words."""
_LARGE: Final = 0.25
"""A group by words of more than this share is divided if it can be."""
_SMALL: Final = 12
"""So few are never divided."""
_PART: Final = 3
"""How many stretches each of two parts has at least of what is divided."""
_STEP: Final = 0.05
"""How much more alike the members of a part have to be."""
_NEAREST: Final = 0.3
"""How alike they are where nothing is divided any more."""
_WORTH_A_CHANGE: Final = 0.02
"""How much better topics have to be that are found anew than those that go on, as a share."""
_JOINED: Final = 0.25
"""How many of the possible links between two communities make them one, as a share of the links within them."""


@dataclass(frozen=True)
class ClusteredStretch:
    """A stretch of talk, as it is compared.

    Attributes:
        key: Its conversation and its first sequence.
        topic_id: Its topic; `None` if it has none.
        terms: Its words, where words are compared.
        near: The stretches that are most like it, each with how much, from -1 to 1.
    """

    key: StretchKey
    topic_id: str | None
    terms: tuple[str, ...] = ()
    near: tuple[tuple[StretchKey, float], ...] = ()


@dataclass(frozen=True)
class Cluster:
    """Stretches that belong together.

    Attributes:
        topic_id: The topic that it goes on from; `None` for a new one.
        members: Its stretches.
    """

    topic_id: str | None
    members: tuple[StretchKey, ...]


def vector_threshold(alike: float) -> float:
    """Return how near a neighbor has to be.

    Embedding models differ in how alike two unrelated texts are, so it is measured and not fixed.

    Args:
        alike: How alike any two stretches are, from -1 to 1.
    """
    chance = min(max(alike, 0.0), 0.99)
    return chance + _ABOVE_CHANCE * (1 - chance)


def clusters(stretches: Sequence[ClusteredStretch], alike: float | None) -> list[Cluster]:
    """Find what belongs together, and which topic each goes on from.

    Args:
        stretches: The stretches.
        alike: How alike any two are by their vectors; `None` where words are compared.

    Returns:
        At most 200 clusters, the largest first. A stretch that is like no other is in one of its own, or in none.
    """
    ordered = sorted((each for each in stretches if each.terms or alike is not None), key=lambda each: each.key)
    near = [each.near for each in ordered] if alike is not None else _near_by_words(ordered)
    threshold = vector_threshold(alike) if alike is not None else _BY_WORDS
    chance = max(0.0, alike or 0.0)
    links = _links(ordered, near, threshold, chance)
    anew = _grouped([replace(each, topic_id=None) for each in ordered], links, by_words=alike is None)
    if alike is None:  # once more from there, so that the next finding has no reason to change it
        numbers = {at: f"{number}" for number, group in enumerate(anew) for at in group}
        anew = _grouped([replace(each, topic_id=numbers[at]) for at, each in enumerate(ordered)], links, by_words=True)
    groups = _grouped(ordered, links, by_words=alike is None)
    if _modularity(groups, links) < (1 - _WORTH_A_CHANGE) * _modularity(anew, links):
        groups = anew
    groups.sort(key=lambda group: (-len(group), group[0]))
    kept = groups[:MAX_TOPICS]
    names = _inherited([Counter(ordered[at].topic_id for at in group) for group in kept])
    return [Cluster(name, tuple(ordered[at].key for at in group)) for name, group in zip(names, kept, strict=True)]


def _grouped(
    stretches: Sequence[ClusteredStretch], links: Sequence[Mapping[int, float]], *, by_words: bool
) -> list[list[int]]:
    """Return which stretches belong together, beginning with their topics."""
    groups = _joined(_communities(links, _labels(stretches)), links)
    if not by_words:
        return groups
    most = max(_SMALL, _LARGE * len(stretches))
    return [part for group in groups for part in _divided(stretches, group, most, _BY_WORDS)]


def _divided(
    stretches: Sequence[ClusteredStretch], group: Sequence[int], largest: float, threshold: float
) -> list[list[int]]:
    """Return the parts of a group that is larger than any topic should be, or the group as it is.

    Much talk has words in common that are no topic: names, praise, terms of a trade. Within a group those that most of
    it has are left out, and the rest has to be more alike. What is of one topic stays together nevertheless.
    """
    if len(group) <= largest or threshold >= _NEAREST:
        return [list(group)]
    counts = Counter(term for at in group for term in set(stretches[at].terms))
    members = [
        replace(stretches[at], terms=tuple(each for each in stretches[at].terms if counts[each] <= len(group) / 2))
        for at in group
    ]
    nearer = threshold + _STEP
    links = _links(members, _near_by_words(members), nearer, 0.0)
    parts = [
        part
        for joined in _joined(_communities(links, _labels(members)), links)
        for part in _divided(members, joined, largest, nearer)
    ]
    if sum(len(part) >= _PART for part in parts) < 2:
        return [list(group)]
    return [[group[at] for at in part] for part in parts]


def _near_by_words(stretches: Sequence[ClusteredStretch]) -> list[tuple[tuple[StretchKey, float], ...]]:
    """Return the nearest of each by their words, of which rare ones count for more."""
    # Those with the same words are compared once, and each with the next of its like.
    alike: dict[frozenset[str], list[int]] = defaultdict(list)
    for at, each in enumerate(stretches):
        alike[frozenset(each.terms)].append(at)
    bags = list(alike)
    holders: dict[str, list[int]] = defaultdict(list)
    for number, bag in enumerate(bags):
        for term in sorted(bag):
            holders[term].append(number)
    weights = {term: math.log(1 + len(bags) / len(held)) ** 2 for term, held in holders.items()}
    most = max(_FEW, _COMMON * len(bags))
    lengths = [math.sqrt(sum(weights[term] for term in bag)) for bag in bags]
    found: list[tuple[tuple[StretchKey, float], ...]] = [()] * len(stretches)
    for number, bag in enumerate(bags):
        sums: dict[int, float] = defaultdict(float)
        for term in sorted(bag):
            if 1 < len(holders[term]) <= most:
                for other in holders[term]:
                    sums[other] += weights[term]
        sums.pop(number, None)
        likeness = ((-value / lengths[number] / lengths[other], other) for other, value in sums.items())
        ranked = nsmallest(NEIGHBORS, likeness)
        others = tuple((stretches[alike[bags[other]][0]].key, -value) for value, other in ranked)
        same = alike[bag]
        found[same[0]] = others
        for before, at in pairwise(same):
            found[at] = ((stretches[before].key, 1.0),)
    return found


def _links(
    stretches: Sequence[ClusteredStretch],
    near: Sequence[Iterable[tuple[StretchKey, float]]],
    threshold: float,
    chance: float,
) -> list[dict[int, float]]:
    """Return the links of each: those that are among the nearest of each other, and near enough.

    What is the same is linked in any case, since of many that are the same only some are among the nearest. What would
    be alone is linked with its nearest.
    """
    places = {each.key: at for at, each in enumerate(stretches)}
    ways = [{places[key]: value for key, value in each if key in places and value >= threshold} for each in near]
    links: list[dict[int, float]] = [{} for _ in ways]
    for at, way in enumerate(ways):
        for other, value in way.items():
            if value >= _SAME or at in ways[other]:
                links[at][other] = links[other][at] = value - chance
    for at, way in enumerate(ways):
        if way and not links[at]:
            other = max(way, key=lambda each: (way[each], -each))
            links[at][other] = links[other][at] = way[other] - chance
    return links


def _labels(stretches: Sequence[ClusteredStretch]) -> list[int]:
    """Return a label for each: that of the first stretch of its topic, or its own."""
    first: dict[str, int] = {}
    return [at if each.topic_id is None else first.setdefault(each.topic_id, at) for at, each in enumerate(stretches)]


def _modularity(groups: Sequence[Sequence[int]], links: Sequence[Mapping[int, float]]) -> float:
    """Return how much more linked the members of a group are than chance has it: Newman's modularity, at most 1."""
    strengths = [sum(linked.values()) for linked in links]
    total = sum(strengths)
    found = 0.0
    for group in groups:
        members = set(group)
        within = sum(value for at in group for other, value in links[at].items() if other in members)
        found += within / total - (sum(strengths[at] for at in group) / total) ** 2 if total else 0.0
    return found


def _communities(links: Sequence[Mapping[int, float]], labels: list[int]) -> list[list[int]]:
    """Propagate labels until none changes: each takes the label that weighs most among its neighbors."""
    for _ in range(_ROUNDS):
        changed = False
        for at, linked in enumerate(links):
            if not linked:
                continue
            weights: dict[int, float] = defaultdict(float)
            for other, value in sorted(linked.items()):
                weights[labels[other]] += value
            best = max(weights, key=lambda label: (round(weights[label], 6), label == labels[at], -label))
            changed = changed or best != labels[at]
            labels[at] = best
        if not changed:
            break
    groups: dict[int, list[int]] = defaultdict(list)
    for at, label in enumerate(labels):
        groups[label].append(at)
    return list(groups.values())


def _joined(groups: list[list[int]], links: Sequence[Mapping[int, float]]) -> list[list[int]]:
    """Join communities between which there are nearly as many links as within them, the most linked first."""
    joined = dict(enumerate(groups))
    of = {at: number for number, group in joined.items() for at in group}
    within = dict.fromkeys(joined, 0)
    between: dict[int, dict[int, int]] = {number: defaultdict(int) for number in joined}
    for at, linked in enumerate(links):
        for other in linked:
            if of[at] == of[other]:
                within[of[at]] += 1
            else:  # the other way is counted from the other
                between[of[at]][of[other]] += 2

    def candidate(one: int, two: int) -> tuple[float, int, int]:
        count = between[one][two]
        return -count / (min(within[one], within[two]) + count), min(one, two), max(one, two)

    waiting = [candidate(one, two) for one, counts in between.items() for two in counts if one < two]
    heapify(waiting)
    while waiting:
        best = heappop(waiting)
        share, one, two = best
        if -share < _JOINED:
            break
        # A candidate of before a join is there once more as it is now.
        if one not in joined or two not in joined or best != candidate(one, two):
            continue
        joined[one] = joined[one] + joined.pop(two)
        within[one] += within.pop(two) + between[one].pop(two)
        for other, count in between.pop(two).items():
            if other != one:
                del between[other][two]
                between[one][other] += count
                between[other][one] += count
        for other in between[one]:
            heappush(waiting, candidate(one, other))
    return [sorted(group) for group in joined.values()]


def _inherited(counts: Sequence[Counter[str | None]]) -> list[str | None]:
    """Return which topic each cluster goes on from: the one with which it shares most members, each topic once."""
    pairs = sorted(
        (-count, at, topic) for at, each in enumerate(counts) for topic, count in each.items() if topic is not None
    )
    names: list[str | None] = [None] * len(counts)
    used: set[str] = set()
    for _, at, topic in pairs:
        if names[at] is None and topic not in used:
            names[at] = topic
            used.add(topic)
    return names
