"""Clusters of stretches: what is found does not hang on chance, and what was found before goes on."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pytest

from benchmarks.topic_corpus import PHRASES, Talk, adjusted_rand_index, talks
from langchain_supabase_memory.operations import topic_clusters
from langchain_supabase_memory.operations.topic_clusters import Cluster, ClusteredStretch, clusters

pytestmark = pytest.mark.pure

PLANTED = talks()


def _stretches(seed: int) -> list[ClusteredStretch]:
    """Return the corpus with conversations' ids as chance has them, which decides in which order they are looked at."""
    ids = list(range(len(PLANTED)))
    random.Random(seed).shuffle(ids)
    return [
        ClusteredStretch((f"{name:04d}", 0), None, tuple({word.strip(".,?!").lower()[:6] for word in _words(number)}))
        for number, name in enumerate(ids)
    ]


def _words(number: int) -> list[str]:
    return [word for _, text in PLANTED[number].messages for word in text.split() if len(word) > 5]


def _long_words(talk: Talk) -> list[str]:
    words = (word.strip(".,?!").lower() for _, text in talk.messages for word in text.split())
    return list(dict.fromkeys(word[:6] for word in words if len(word) > 5))


def _named(found: list[Cluster]) -> dict[str, str]:
    """Return the topic of each stretch by its conversation, with new names for new topics."""
    return {key: each.topic_id or f"new{number}" for number, each in enumerate(found) for key, _ in each.members}


@pytest.mark.parametrize("seed", range(6))
def test_topics_live_on_when_a_tenth_of_the_talk_goes_whatever_the_ids_are(seed: int) -> None:
    stretches = _stretches(seed)
    topics = _named(clusters(stretches, None))
    planted = {each.key[0]: talk.topic for each, talk in zip(stretches, PLANTED, strict=True)}
    assert adjusted_rand_index([topics[name] for name in planted if name in topics], list(planted.values())) >= 0.5
    draw = random.Random(seed)
    rest = [replace(each, topic_id=topics[each.key[0]]) for each in stretches if draw.random() > 0.1]
    assert len(rest) < 0.95 * len(stretches)
    before = set(topics.values())
    assert len(before & {each.topic_id for each in clusters(rest, None)}) >= 0.95 * len(before)


def test_topics_that_do_not_fit_are_found_anew() -> None:
    stretches = [replace(each, topic_id="all") for each in _stretches(0)]
    found = clusters(stretches, None)
    assert len(found) >= 20
    assert [each.topic_id for each in found].count("all") == 1


@pytest.mark.parametrize("seed", range(4))
def test_words_that_all_talk_has_make_no_topic_of_everything(seed: int) -> None:
    """In real chats half of the words of each episode are names, praise and pleasantries: all of it was one topic."""
    draw = random.Random(seed)
    planted = talks(10, seed, tuple(PHRASES)[:6])
    pleasantries = [f"nice{number}" for number in range(14)]
    stretches = [
        ClusteredStretch((f"{number:04d}", 0), None, (*draw.sample(pleasantries, 9), *_long_words(talk)[:7]))
        for number, talk in enumerate(planted)
    ]
    found = clusters(stretches, None)
    topics = _named(found)
    assert max(len(each.members) for each in found) <= 15
    assert adjusted_rand_index([topics[each.key[0]] for each in stretches], [talk.topic for talk in planted]) >= 0.7
    again = clusters([replace(each, topic_id=topics[each.key[0]]) for each in stretches], None)
    assert _named(again) == topics, "a second finding has no reason to change it"


@pytest.mark.parametrize("each", [40, 100])
def test_talk_of_one_topic_stays_one(each: int) -> None:
    stretches = [
        ClusteredStretch((f"{number:04d}", 0), None, tuple(_long_words(talk)))
        for number, talk in enumerate(talks(each, topics=("kidney care",)))
    ]
    assert len(clusters(stretches, None)) <= 2


def _joined_one_by_one(groups: list[list[int]], links: Sequence[Mapping[int, float]]) -> list[list[int]]:
    """What joining means: count all links anew, join the two that are most linked, and begin again."""
    while True:
        counts: dict[tuple[int, int], int] = {}
        for at, linked in enumerate(links):
            for other in linked:
                one, two = sorted(next(n for n, group in enumerate(groups) if each in group) for each in (at, other))
                counts[one, two] = counts.get((one, two), 0) + 1
        shares = {
            (one, two): count / (min(counts.get((one, one), 0), counts.get((two, two), 0)) + count)
            for (one, two), count in counts.items()
            if one != two
        }
        one, two = min(shares, key=lambda pair: (-shares[pair], pair), default=(0, 0))
        if one == two or shares[one, two] < topic_clusters._JOINED:
            return [sorted(group) for group in groups]
        groups[one] += groups.pop(two)


class _Read(dict[int, float]):
    """Links that count how often they are read."""

    times = 0

    def __iter__(self) -> Iterator[int]:
        _Read.times += 1
        return super().__iter__()


def test_communities_are_joined_in_order_and_their_links_are_read_once() -> None:
    """Reading all links for each join took a minute for 2,000 stretches of few words."""
    draw = random.Random(3)
    for _ in range(300):
        size = draw.randint(1, 24)
        links: list[_Read] = [_Read() for _ in range(size)]
        for _ in range(draw.randint(0, 3 * size)):
            one, two = draw.randrange(size), draw.randrange(size)
            links[one][two] = links[two][one] = 1.0
        places = draw.sample(range(size), size)
        groups = [places[at : at + 2] for at in range(0, size, 2)]
        expected = _joined_one_by_one([list(group) for group in groups], links)
        _Read.times = 0
        assert topic_clusters._joined(groups, links) == expected
        assert _Read.times == size
