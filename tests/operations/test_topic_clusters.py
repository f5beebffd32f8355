"""Clusters of stretches: what is found does not hang on chance, and what was found before goes on."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from benchmarks.topic_corpus import adjusted_rand_index, talks
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
