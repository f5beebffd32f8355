"""What a LangGraph store does, one check for each promise of `BaseStore`."""

from __future__ import annotations

import math
import re
import zlib
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from langchain_core.embeddings import Embeddings
from langgraph.store.base import GetOp, ListNamespacesOp, PutOp, SearchItem, SearchOp

from langchain_supabase_memory.testing.store_steps import CheckFunction, Steps, Wait, call, expect, refused

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DIMENSIONS: Final = 96


class WordEmbeddings(Embeddings):
    """An embedder without a model: texts that share words are near each other.

    Args:
        dimensions: The length of a vector.
    """

    def __init__(self, dimensions: int = DIMENSIONS) -> None:
        self.dimensions = dimensions

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed texts."""
        return [self.embed_text(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """Embed a question."""
        return self.embed_text(text)

    def embed_text(self, text: str) -> list[float]:
        """Return how often each word's place occurs."""
        vector = [0.01] * self.dimensions
        for word in re.findall(r"\w+", text.lower()):
            vector[zlib.crc32(word.encode()) % self.dimensions] += 1.0
        return vector


def _keys(items: Sequence[Any]) -> list[str]:
    return [item.key for item in items]


def _puts_and_gets() -> Steps:
    value = {"z": 1, "a": [1, {"x": None}], "é": "ü"}
    expect((yield call("get", ("a", "b"), "k")), None, "an item that was not put")
    expect((yield call("put", ("a", "b"), "k", value)), None, "what put returns")
    before = datetime.now(UTC) - timedelta(minutes=5)  # the server's clock may be another
    item = yield call("get", ("a", "b"), "k")
    expect((item.namespace, item.key), (("a", "b"), "k"), "whose item it is")
    expect(item.value, value, "the value")
    expect(before < item.created_at <= item.updated_at, True, "its times are aware, recent and in order")
    for namespace in (("a",), ("a", "b", "c"), ("b", "a")):
        expect((yield call("get", namespace, "k")), None, f"the item in {namespace}")


def _replaces() -> Steps:
    yield call("put", ("a",), "k", {"old": 1, "same": 1})
    first = yield call("get", ("a",), "k")
    yield call("put", ("a",), "k", {"same": 2})
    second = yield call("get", ("a",), "k")
    expect(second.value, {"same": 2}, "a value that was replaced")
    expect(second.updated_at >= first.updated_at, True, "it was updated later")


def _keeps_created_at() -> Steps:
    yield call("put", ("a",), "k", {"n": 1})
    first = yield call("get", ("a",), "k")
    yield Wait(0.01)
    yield call("put", ("a",), "k", {"n": 2})
    second = yield call("get", ("a",), "k")
    expect(second.created_at, first.created_at, "when an item that was replaced was created")


def _deletes() -> Steps:
    yield call("put", ("a",), "k", {"n": 1})
    yield call("put", ("a",), "stays", {"n": 1})
    for _ in range(2):  # the second time there is none
        expect((yield call("delete", ("a",), "k")), None, "what delete returns")
    expect((yield call("get", ("a",), "k")), None, "an item that was deleted")
    expect(_keys((yield call("search", ("a",)))), ["stays"], "what is left")
    yield call("delete", ("a",), "stays")
    expect((yield call("list_namespaces")), [], "namespaces without items")


def _keeps_order_of_fields() -> Steps:
    yield call("put", ("a",), "k", {"z": 1, "a": 2, "m": {"y": 1, "b": 2}})
    value = (yield call("get", ("a",), "k")).value
    expect([*value, *value["m"]], ["z", "a", "m", "y", "b"], "the order of a value's fields")


def _batches() -> Steps:
    yield call("put", ("a",), "old", {"n": 1})
    yield call("put", ("a",), "gone", {"n": 2})
    found = yield call(
        "batch",
        [
            PutOp(("a",), "old", {"n": 10}),
            GetOp(("a",), "old"),
            PutOp(("a",), "gone", None),
            SearchOp(("a",)),
            PutOp(("b",), "new", {"n": 3}),
            ListNamespacesOp(),
            GetOp(("b",), "new"),
        ],
    )
    expect([found[place] for place in (0, 2, 4, 6)], [None] * 4, "what writes answer, and a read of what was written")
    expect(found[1].value, {"n": 1}, "a read sees what was there before the batch")
    expect(sorted(_keys(found[3])), ["gone", "old"], "a search sees what was there before the batch")
    expect(found[5], [("a",)], "a listing sees what was there before the batch")
    expect((yield call("get", ("a",), "old")).value, {"n": 10}, "what the batch replaced")
    expect((yield call("get", ("a",), "gone")), None, "what the batch deleted")
    expect((yield call("batch", [])), [], "an empty batch")


def _writes_the_last_of_a_batch() -> Steps:
    yield call(
        "batch",
        [
            PutOp(("b",), "twice", {"n": 3}),
            PutOp(("b",), "twice", {"n": 4}),
            PutOp(("c",), "put and deleted", {"n": 5}),
            PutOp(("c",), "put and deleted", None),
            PutOp(("d",), "deleted and put", None),
            PutOp(("d",), "deleted and put", {"n": 6}),
        ],
    )
    found = yield call("search", ())
    stored = sorted((item.key, item.value["n"]) for item in found)
    expect(stored, [("deleted and put", 6), ("twice", 4)], "of several writes of one item the last holds")


_NAMESPACES: Final[list[tuple[str, ...]]] = [
    ("docs", "ann", "v1"), ("docs", "v1"), ("users", "ann", "facts"), ("users", "ann", "plans", "2026"),
    ("users", "annex"), ("users", "bob", "facts"),
]  # fmt: skip
_FACTS: Final[list[tuple[str, ...]]] = [("users", "ann", "facts"), ("users", "bob", "facts")]
_LISTED: Final[Mapping[str, Sequence[tuple[dict[str, Any], list[tuple[str, ...]]]]]] = {
    "namespaces are listed in order, by pages": [
        ({}, _NAMESPACES),
        ({"limit": 2, "offset": 1}, _NAMESPACES[1:3]),
        ({"limit": 0}, []),
        ({"offset": 6}, []),
    ],
    "namespaces are listed by prefix and suffix": [
        ({"prefix": ("users",)}, _NAMESPACES[2:]),
        ({"prefix": ("users", "ann")}, _NAMESPACES[2:4]),
        ({"suffix": ("facts",)}, _FACTS),
        ({"prefix": ("users",), "suffix": ("facts",)}, _FACTS),
        ({"prefix": ("users", "ann", "plans", "2026", "deeper")}, []),
    ],
    "an asterisk stands for any label": [
        ({"prefix": ("*", "ann")}, [_NAMESPACES[0], *_NAMESPACES[2:4]]),
        ({"prefix": ("users", "*", "facts")}, _FACTS),
        ({"suffix": ("ann", "*")}, [_NAMESPACES[0], _NAMESPACES[2]]),
        ({"suffix": ("*", "v1")}, _NAMESPACES[:2]),
    ],
    "namespaces are cut at a depth, each once": [
        ({"max_depth": 1}, [("docs",), ("users",)]),
        ({"max_depth": 2}, [("docs", "ann"), ("docs", "v1"), ("users", "ann"), ("users", "annex"), ("users", "bob")]),
        ({"max_depth": 2, "prefix": ("users",), "limit": 2}, [("users", "ann"), ("users", "annex")]),
    ],
}


def _lists(cases: Sequence[tuple[dict[str, Any], list[tuple[str, ...]]]]) -> CheckFunction:
    def check() -> Steps:
        yield call("batch", [PutOp(namespace, "k", {}) for namespace in reversed(_NAMESPACES)])
        for named, expected in cases:
            expect((yield call("list_namespaces", **named)), expected, f"namespaces by {named}")

    return check


def _pages() -> Steps:
    puts = [PutOp(("a", str(number % 3)), f"k{number}", {"n": number}) for number in range(12)]
    yield call("batch", [*puts, PutOp(("ab",), "other", {"n": 0}), PutOp(("b",), "other", {"n": 0})])
    expect(len((yield call("search", ("a",)))), 10, "how many items a search gives by default")
    pages = []
    for offset in (0, 5, 10, 15):
        pages.append((yield call("search", ("a",), limit=5, offset=offset)))
    expect([len(page) for page in pages], [5, 5, 2, 0], "the lengths of pages of five")
    together = {item.key for page in pages for item in page}
    expect(together, {f"k{number}" for number in range(12)}, "what the pages hold together")
    expect((yield call("search", ("a",), limit=0)), [], "a page of none")


def _searches_below() -> Steps:
    for namespace in (("a", "1"), ("a", "2"), ("ab",), ("b",)):
        yield call("put", namespace, "-".join(namespace), {"n": 0})
    for prefix, expected in (
        (("a",), ["a-1", "a-2"]),
        (("a", "1"), ["a-1"]),
        (("a", "1", "x"), []),
        ((), ["a-1", "a-2", "ab", "b"]),
    ):
        expect(sorted(_keys((yield call("search", prefix)))), expected, f"what is below {prefix}")
    (item,) = yield call("search", ("b",))
    expect(isinstance(item, SearchItem), True, "what is found is a SearchItem")
    expect((item.namespace, item.value, item.score), (("b",), {"n": 0}, None), "what was found without a query")


_PEOPLE: Final[Mapping[str, dict[str, Any]]] = {
    "ann": {"age": 41, "city": "Oslo", "tags": ["a", "b"], "at": {"home": True, "floor": {"number": 3}}},
    "bob": {"age": 17.5, "city": None, "tags": [], "at": {"home": False}},
    "cy": {"age": -3, "tags": ["a"], "at": {}, "odd": "x'\"\\%s{}$1"},
    "dee": {"age": 41.0, "city": "oslo", "tags": [["a"], {"x": 1}], "at": "home"},
}
_FILTERS: Final[Mapping[str, Sequence[tuple[dict[str, Any], str]]]] = {
    "a filter compares for equality": [
        ({"city": "Oslo"}, "ann"),
        ({"age": {"$eq": 41}}, "ann dee"),
        ({"city": "Oslo", "age": 41}, "ann"),
        ({"at": "home"}, "dee"),
        ({"odd": "x'\"\\%s{}$1"}, "cy"),
        ({"x' or true or '": 1}, ""),
        ({"": 1}, ""),
    ],
    "41 equals 41.0": [({"age": 41}, "ann dee")],
    "a filter compares numbers": [
        ({"age": {"$gt": 17.5}}, "ann dee"),
        ({"age": {"$gte": 17.5}}, "ann bob dee"),
        ({"age": {"$lt": 17.5}}, "cy"),
        ({"age": {"$lte": 17.5}}, "bob cy"),
        ({"age": {"$gt": 9}}, "ann bob dee"),
    ],
    "a filter has several conditions of one field": [({"age": {"$gt": -4, "$lt": 20}}, "bob cy")],
    "every number is below infinity": [({"age": {"$lt": math.inf}}, "ann bob cy dee")],
    "$ne finds what differs": [({"age": {"$ne": 41}}, "bob cy")],
    "a missing field differs": [({"city": {"$ne": "Oslo"}}, "bob cy dee")],
    "a missing field is None": [({"city": None}, "bob cy"), ({"nothing": None}, "ann bob cy dee")],
    "a filter compares lists": [({"tags": ["a"]}, "cy"), ({"tags": []}, "bob"), ({"tags": {"$eq": ["a"]}}, "cy")],
    "a tuple equals a list": [({"tags": ("a", "b")}, "ann")],
    "a filter reaches into fields": [({"at": {"home": True}}, "ann"), ({"at": {"home": {"$ne": True}}}, "bob cy")],
    "a filter reaches into lists": [({"tags": [["a"], {}]}, "dee"), ({"tags": [["a"], {"x": {"$gte": 1}}]}, "dee")],
    "a comparison with a missing field finds nothing": [({"at": {"floor": {"number": {"$gt": 2}}}}, "ann")],
    "an empty filter of a field finds every object": [({"at": {}}, "ann bob cy")],
    "$eq compares whole objects": [({"at": {"$eq": {"home": False}}}, "bob")],
}


def _filters(cases: Sequence[tuple[dict[str, Any], str]]) -> CheckFunction:
    def check() -> Steps:
        yield call("batch", [PutOp(("p",), name, value) for name, value in _PEOPLE.items()])
        for given, expected in cases:
            found = yield call("search", ("p",), filter=given)
            expect(sorted(_keys(found)), expected.split(), f"what has {given}")

    return check


def _keeps_any_characters() -> Steps:
    text = "'\"\\ \x01\x1f\u2028 😀 <script> $1 %s {} 漢字 e\u0301"
    for label in ("é", "漢字", "😀", "a b", "a'b", 'a"b', "a\\b", "%s", "a/b", "{x}"):
        yield call("put", (label, label), label, {text: [text], "label": label})
        item = yield call("get", (label, label), label)
        expect(item is not None and item.value, {text: [text], "label": label}, f"the item in {label!r}")
        expect(_keys((yield call("search", (label,)))), [label], f"what is below {label!r}")
        expect((yield call("list_namespaces", prefix=(label,))), [(label, label)], f"the namespaces below {label!r}")


def _keeps_numbers() -> Steps:
    numbers = [0, -1, 2**53 + 1, 1.5, -0.5, 1e300, 5e-324, True, False, None]
    yield call("put", ("a",), "k", {"numbers": numbers})
    found = (yield call("get", ("a",), "k")).value["numbers"]
    expect(found, numbers, "numbers")
    expect([type(each) for each in found], [type(each) for each in numbers], "the types of numbers")


def _keeps_large_values() -> Steps:
    value = {"text": "кёрамика word" * 10_000, "list": list(range(5_000))}
    yield call("put", ("a", *("l" * 20 for _ in range(20))), "k" * 100, value)
    (item,) = yield call("search", ("a",))
    expect(item.value == value, True, "a value of a few hundred kilobytes is whole")


def _refuses_namespaces() -> Steps:
    for namespace in ((), ("",), ("a", "")):
        answer = yield refused("put", namespace, "k", {})
        expect(isinstance(answer, ValueError), True, f"an item in {namespace} is refused with a ValueError")
    expect((yield call("search", ())), [], "what is stored after that")


def _is_separate() -> Steps:
    value = {"list": [1]}
    yield call("put", ("a",), "k", value)
    value["list"].append(2)
    first = yield call("get", ("a",), "k")
    expect(first.value, {"list": [1]}, "the value, after the caller changed theirs")
    first.value["list"].append(3)
    expect((yield call("get", ("a",), "k")).value, {"list": [1]}, "the value, after the caller changed what they got")


def _ranks_by_meaning() -> Steps:
    values: dict[str, dict[str, Any]] = {
        "kiln": {"text": "the kiln shows an error"},
        "cat": {"text": "a cat sleeps"},
        "many": {"text": "nothing here", "notes": ["red glaze", "the kiln cools slowly"]},
    }
    yield call("batch", [PutOp(("d",), key, value) for key, value in values.items()])
    found = yield call("search", ("d",), query="the kiln shows")
    expect(_keys(found), ["kiln", "many", "cat"], "the order by meaning")
    scores = [item.score for item in found]
    expect(None not in scores and sorted(scores, reverse=True) == scores, True, "scores, the highest first")
    expect(_keys((yield call("search", ("d",), query="red glaze", limit=1))), ["many"], "each text of a list counts")
    filtered = yield call("search", ("d",), query="the kiln", filter={"text": "a cat sleeps"})
    expect(_keys(filtered), ["cat"], "what a filter leaves")
    yield call("put", ("d",), "cat", {"text": "a dog barks"})
    expect(
        _keys((yield call("search", ("d",), query="a dog barks", limit=1))), ["cat"], "what was replaced, by its text"
    )
    yield call("delete", ("d",), "cat")
    expect("cat" in _keys((yield call("search", ("d",), query="a dog barks"))), False, "what was deleted is found")


def _embeds_chosen_fields() -> Steps:
    yield call("put", ("d",), "kiln", {"text": "the kiln shows an error"})
    yield call("put", ("d",), "title", {"title": "the kiln shows", "text": "unrelated"}, index=["title"])
    found = yield call("search", ("d",), query="the kiln shows", limit=2)
    expect(_keys(found), ["title", "kiln"], "the order by the fields that each item names")
    expect(abs(found[0].score - 1) < 0.01, True, "the score of the same text is 1")


def _finds_unindexed_items() -> Steps:
    yield call("put", ("d",), "cat", {"text": "a cat sleeps"})
    yield call("put", ("d",), "never", {"text": "kiln kiln kiln"}, index=False)
    yield call("put", ("d",), "other field", {"title": "the kiln"})
    found = yield call("search", ("d",), query="kiln")
    expect(_keys(found)[:1], ["cat"], "what is indexed comes first")
    expect(sorted(_keys(found)[1:]), ["never", "other field"], "what is not indexed follows")
    expect([item.score is None for item in found], [False, True, True], "only what is indexed has a score")
    pages = []
    for offset in range(3):
        pages += _keys((yield call("search", ("d",), query="kiln", limit=1, offset=offset)))
    expect(sorted(pages), ["cat", "never", "other field"], "pages of one hold every item once")


_BRIEF: Final = 0.01
"""A time to live, in minutes."""


def _expires() -> Steps:
    yield call("put", ("t",), "brief", {"text": "kiln"}, ttl=_BRIEF)
    yield call("put", ("t",), "long", {"text": "kiln"}, ttl=60)
    yield call("put", ("t",), "for good", {"text": "kiln"}, ttl=None)
    item = yield call("get", ("t",), "brief", refresh_ttl=False)
    expect(item is not None, True, "it is there before it expires")
    yield Wait(_BRIEF * 60 + 0.5)
    expect((yield call("get", ("t",), "brief", refresh_ttl=False)), None, "an item that has expired")
    expect(sorted(_keys((yield call("search", ("t",))))), ["for good", "long"], "what has not expired")


def _lives_on_when_read() -> Steps:
    yield call("put", ("t",), "read", {"text": "kiln"}, ttl=_BRIEF * 2)
    for _ in range(3):
        yield Wait(_BRIEF * 60)
        item = yield call("get", ("t",), "read", refresh_ttl=True)
        expect(item is not None, True, "an item that is read before it expires")


def _refuses_ttl() -> Steps:
    answer = yield refused("put", ("t",), "k", {}, ttl=1)
    expect(isinstance(answer, NotImplementedError), True, "a time to live is refused with a NotImplementedError")


ITEMS: Final[Mapping[str, CheckFunction]] = {
    "an item is put and got": _puts_and_gets,
    "an item is replaced as a whole": _replaces,
    "a replaced item keeps when it was created": _keeps_created_at,
    "an item is deleted": _deletes,
    "a value's fields keep their order": _keeps_order_of_fields,
    "a value is a copy": _is_separate,
    "a batch reads what was before it": _batches,
    "a batch writes the last of several": _writes_the_last_of_a_batch,
    **{name: _lists(cases) for name, cases in _LISTED.items()},
    "a search goes by pages": _pages,
    "a search finds what is below": _searches_below,
    **{name: _filters(cases) for name, cases in _FILTERS.items()},
    "names and values have any characters": _keeps_any_characters,
    "numbers keep value and type": _keeps_numbers,
    "large values are whole": _keeps_large_values,
    "a namespace without labels is refused": _refuses_namespaces,
}
"""Checks of a store without an index."""

MEANING: Final[Mapping[str, CheckFunction]] = {
    "a query ranks by meaning": _ranks_by_meaning,
    "an item names the fields to embed": _embeds_chosen_fields,
    "what is not indexed is found last": _finds_unindexed_items,
}
"""Checks of a store whose index has the fields `text` and `notes[*]`."""

EXPIRY: Final[Mapping[str, CheckFunction]] = {
    "what has expired is not returned": _expires,
    "what is read lives on": _lives_on_when_read,
}
"""Checks of a store that supports a time to live; they take three seconds."""

NO_EXPIRY: Final[Mapping[str, CheckFunction]] = {"a time to live is refused": _refuses_ttl}
"""Checks of a store that does not."""
