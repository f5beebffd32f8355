"""What the store does beyond the conformance suite, and beside LangGraph's own for whatever names and filters."""

from __future__ import annotations

import asyncio
import logging
import math
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, TypedDict

import psycopg
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.config import get_store
from langgraph.graph import END, START, StateGraph
from langgraph.store.base import (
    GetOp,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore
from langmem import create_manage_memory_tool, create_search_memory_tool

from langchain_supabase_memory import SupabaseMemory, SupabaseStore
from langchain_supabase_memory.adapters.embedder import EmbeddingModel
from langchain_supabase_memory.effects import Call, Embed
from langchain_supabase_memory.errors import (
    ConfigurationError,
    EmbeddingError,
    InvalidInputError,
    MigrationConflictError,
)
from langchain_supabase_memory.long_term import items
from langchain_supabase_memory.settings import NO_RETRY
from langchain_supabase_memory.testing.store_checks import DIMENSIONS as WIDTH
from langchain_supabase_memory.testing.store_checks import WordEmbeddings
from tests.chat_models import ScriptedModel, calls, says
from tests.conftest import Caller
from tests.counting import recorded_calls
from tests.services.postgres import execute


class Words(WordEmbeddings):
    """Remembers what it was asked; fails while it is `broken`."""

    def __init__(self, model: str = "words", width: int = WIDTH) -> None:
        super().__init__(width)
        self.model = model
        self.documents: list[str] = []
        self.queries: list[str] = []
        self.broken = False

    def embed_text(self, text: str) -> list[float]:
        if self.broken:
            raise RuntimeError(f"cannot embed {text}")
        return super().embed_text(text)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.documents += texts
        return super().embed_documents(texts)

    def embed_query(self, text: str) -> list[float]:
        self.queries.append(text)
        return super().embed_query(text)


def patient(words: Words) -> EmbeddingModel:
    """The embedder, without waiting between two tries."""
    return EmbeddingModel(words, attempts=1, wait_seconds=0)


def ours(caller: Caller, user_id: str, **given: Any) -> SupabaseStore:
    return SupabaseStore(caller.service.for_user(user_id), **given)


def keys(found: Sequence[Any]) -> list[str]:
    return [item.key for item in found]


def whole(found: Any) -> list[Any]:
    """What was found, in an order of its own."""
    return sorted((item.namespace, item.key, item.value["is"]) for item in found)


@pytest.fixture
def store(conn_string: str, user_id: str) -> Iterator[SupabaseStore]:
    """A store over a direct connection."""
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, retry=NO_RETRY) as memory:
        yield SupabaseStore(memory)


@pytest.fixture(scope="module")
def service(conn_string: str) -> Iterator[SupabaseMemory]:
    """A memory with a server's rights, for tests that need many users."""
    with SupabaseMemory.from_conn_string(conn_string) as memory:
        yield memory


# What LangGraph's store does, ours does


def test_a_comparison_with_what_has_no_order_matches_nothing(store: SupabaseStore) -> None:
    moment = datetime(2026, 5, 1, tzinfo=UTC)
    store.batch(
        [
            PutOp(("c",), "number", {"v": 5}),
            PutOp(("c",), "text", {"v": "2026-05"}),
            PutOp(("c",), "nan", {"v": math.nan}),
            PutOp(("c",), "time", {"v": moment}),
            PutOp(("c",), "none", {"v": None}),
            PutOp(("c",), "tuple", {"v": (1, 2)}),
            PutOp(("c",), "missing", {}),
        ]
    )

    def found(condition: Any) -> list[str]:
        return sorted(keys(store.search(("c",), filter={"v": condition})))

    assert found({"$gt": 4}) == found({"$gt": Decimal("4.5")}) == ["number"]
    assert found({"$lte": 10**30}) == ["number"]
    assert found({"$gt": "2026-04"}) == found({"$lt": "2026-06"}) == ["text"]
    assert found({"$gte": moment}) == found({"$lt": moment + timedelta(seconds=1)}) == ["time"]
    assert found({"$gt": moment}) == []
    assert found(moment) == ["time"]
    assert found([1, 2]) == found((1, {"$gt": 1})) == ["tuple"]
    unordered: list[Any] = [{"$gt": None}, {"$lt": True}, {"$gte": [1]}]
    for condition in unordered:
        with pytest.raises(InvalidInputError, match="no order.*Compare with a number"):
            found(condition)
    unknown: list[Any] = [{"$in": [1]}, {"$gt": 1, "x": 2}]
    for condition in unknown:
        with pytest.raises(InvalidInputError, match=r"unknown operator.*Use \$eq, \$ne"):
            found(condition)


def test_scores_are_those_of_langgraphs_store(store: SupabaseStore) -> None:
    words = Words()
    oracle = InMemoryStore(index={"dims": WIDTH, "embed": words})
    same = SupabaseStore(store._memory, index={"dims": WIDTH, "embed": words})
    for each in (oracle, same):
        for number in range(20):
            each.put(("s",), str(number), {"t": "word " * number + f"number {number}", "deep": {"x": [number]}})
    expected = oracle.search(("s",), query="word number 7", limit=20)
    found = same.search(("s",), query="word number 7", limit=20)
    scores = {item.key: item.score for item in expected}
    assert [scores[item.key] for item in found] == pytest.approx([item.score for item in found], abs=2e-3)
    assert len(found) == 20
    assert words.documents[:20] == words.documents[20:]  # the same texts are embedded


LABELS = st.text(
    st.one_of(st.sampled_from("ab*./'\"\\{}%_ \x01\x02\x03\x7f😀é"), st.characters(exclude_categories=["Cs"])),
    min_size=1,
    max_size=4,
).filter(lambda text: "\0" not in text)
PATHS = st.lists(LABELS, min_size=1, max_size=4).map(tuple)
FEW = st.lists(
    st.sampled_from(["a", "b", "a\x01", "a\x02", "*", "a.b", "é", "😀", "\x7f"]), min_size=1, max_size=3
).map(tuple)


@settings(max_examples=40, deadline=None, database=None)
@example([("a", "b"), ("a\1b",), ("a\1",), ("a\2",), ("a\2\2", "b"), ("a",), ("ab",)], ("a",), ("b",), 1)
@example([("a\1", "b"), ("a", "\1", "b"), ("a", "\2b"), ("a\2\3",)], ("a\1",), ("b",), 2)
@given(st.lists(st.one_of(PATHS, FEW), min_size=1, max_size=8), FEW, FEW, st.integers(0, 3))
def test_namespaces_of_any_characters(
    service: SupabaseMemory,
    namespaces: list[tuple[str, ...]],
    prefix: tuple[str, ...],
    suffix: tuple[str, ...],
    depth: int,
) -> None:
    oracle = InMemoryStore()
    puts = [PutOp(namespace, namespace[-1], {"is": list(namespace)}) for namespace in namespaces]
    prefixes = [prefix, namespaces[0][:-1], namespaces[0], (*namespaces[0], "a"), namespaces[-1][:1]]
    asked: list[Op] = [
        ListNamespacesOp(limit=1000),
        ListNamespacesOp(max_depth=depth),
        ListNamespacesOp((MatchCondition("prefix", prefix),)),
        ListNamespacesOp((MatchCondition("suffix", suffix),), max_depth=2),
        ListNamespacesOp((MatchCondition("prefix", prefix), MatchCondition("suffix", suffix)), limit=3, offset=1),
        ListNamespacesOp((MatchCondition("prefix", ("*", *prefix)), MatchCondition("prefix", namespaces[0][:1]))),
        *(SearchOp(each, limit=100) for each in prefixes),
    ]
    oracle.batch(puts)
    store = SupabaseStore(service.for_user(f"namespaces-{next(_numbers)}"))
    store.batch(puts)
    found = store.batch(asked)
    expected = oracle.batch(asked)
    assert found[:6] == expected[:6]
    for mine, theirs in zip(found[6:], expected[6:], strict=True):
        assert whole(mine) == whole(theirs)


_numbers = iter(range(10**9))

SCALARS = st.one_of(
    st.none(), st.integers(2, 6), st.sampled_from([2.5, 3.0, -1e300, 2**70]), st.sampled_from(["", "x", "é'\\", "$x"])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=2), st.dictionaries(st.sampled_from(["a", "b", "0"]), inner, max_size=2)
    ),
    max_leaves=4,
)
# Powers of two, where it is large: of other floats beyond 2**53 the JSON text is a number next to their own.
NUMBERS = st.one_of(st.integers(-3, 3), st.floats(-3, 3), st.sampled_from([2**53, 2**54]))
COMPARISONS = st.dictionaries(
    st.sampled_from(["$gt", "$gte", "$lt", "$lte", "$eq", "$ne"]), NUMBERS, min_size=1, max_size=2
)
EQUALITIES = st.dictionaries(st.sampled_from(["$eq", "$ne"]), VALUES, min_size=1, max_size=2)
FILTERS = st.fixed_dictionaries(
    {},
    optional={
        "n": st.one_of(NUMBERS, COMPARISONS),
        "a": st.one_of(VALUES, EQUALITIES),
        "b": st.one_of(VALUES, EQUALITIES),
    },
)


def _exact(value: Any) -> Any:
    """As LangGraph's store compares numbers: as floats. Ours compares them exactly."""
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


@settings(max_examples=50, deadline=None, database=None)
@given(
    st.lists(
        st.fixed_dictionaries({"n": NUMBERS.map(_exact)}, optional={"a": VALUES, "b": VALUES}), min_size=1, max_size=6
    ),
    st.lists(FILTERS, min_size=1, max_size=4),
)
def test_any_filter_finds_what_langgraphs_finds(
    service: SupabaseMemory, values: list[dict[str, Any]], filters: list[dict[str, Any]]
) -> None:
    asked: list[Op] = [SearchOp(("f",), each, 100) for each in filters]
    puts: list[Op] = [PutOp(("f",), str(place), value) for place, value in enumerate(values)]
    oracle = InMemoryStore()
    oracle.batch(puts)
    store = SupabaseStore(service.for_user(f"filters-{next(_numbers)}"))
    store.batch(puts)
    found = store.batch(asked)
    for mine, theirs in zip(found, oracle.batch(asked), strict=True):
        assert sorted(keys(mine)) == sorted(keys(theirs))  # type: ignore[arg-type]


# What goes in comes out


@pytest.mark.parametrize("caller", ["data_api-sync", "direct-async"], indirect=True)
async def test_what_json_and_postgres_cannot_hold(caller: Caller, user_id: str) -> None:
    store = ours(caller, user_id)
    value: dict[str, Any] = {
        "zeta": 1, "alpha": 2,
        "float": [1.0, -0.0, 1e22, 5e-324, 1.7976931348623157e308, math.inf],
        "whole": [2**63, -(10**400)],
        "bytes": b"\x00\xff",
        "tuple": (1, (2,)),
        "time": datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC),
        "decimal": Decimal("1.10"),
        "keys": {1: "one", None: "none"},
        "$python": {"$python": "float", "value": "nan"},
        "text": "'\"\\ \x01\x1f\u2028 😀 <script> $1 %s {} 漢字",
    }  # fmt: skip
    await caller(store.put, ("v",), "k", value)
    found = (await caller(store.get, ("v",), "k")).value
    assert found == value
    assert list(found) == list(value)
    assert [type(each) for each in found["float"]] == [float] * 6
    assert math.copysign(1, found["float"][1]) == -1
    await caller(store.put, ("v",), "k", {"n": math.nan, "t": "a\0b\ud800c\udc00", "pair": "\ud83d\ude00", "d\0": "\0"})
    found = (await caller(store.get, ("v",), "k")).value
    assert math.isnan(found.pop("n"))
    assert found == {"t": "a\ufffdb\ufffdc\ufffd", "pair": "😀", "d\ufffd": "\ufffd"}
    assert keys(await caller(store.search, ("v",), query="a\0b")) == ["k"]
    with pytest.raises(InvalidInputError, match="too many digits.*as a string"):
        await caller(store.put, ("v",), "k", {"n": 10**5000})


BAD_NAMES: list[Any] = ["a\0", "\ud800", ""]


@pytest.mark.parametrize("name", BAD_NAMES, ids=["nul", "surrogate", "empty"])
def test_a_label_that_cannot_be_stored_is_refused(store: SupabaseStore, name: str) -> None:
    for attempt in (
        lambda: store.put(("a", name), "k", {}),
        lambda: store.get((name,), "k"),
        lambda: store.delete((name,), "k"),
        lambda: store.search((name, "b")),
        lambda: store.list_namespaces(prefix=(name,)),
        lambda: store.list_namespaces(suffix=("*", name)),
        lambda: store.batch([PutOp(("ok",), "k", {}), PutOp((name,), "k", {})]),
    ):
        with pytest.raises(InvalidInputError, match="label") as caught:
            attempt()
        assert not name or name not in str(caught.value)
    assert store.search(()) == []


def _nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"a": value}
    return value


REFUSED: dict[str, tuple[Callable[[SupabaseStore], Any], str]] = {
    "no namespace": (lambda s: s.put((), "k", {}), "namespace is empty.*at least one label"),
    "a text as namespace": (lambda s: s.put("ab", "k", {}), r'tuple of labels.*\("memories",\)'),  # type: ignore[arg-type]
    "a number as label": (lambda s: s.search((1,)), "must be a string, not int"),  # type: ignore[arg-type]
    "a key with nul": (lambda s: s.put(("a",), "k\0", {}), "A key contains NUL"),
    "a long key": (lambda s: s.put(("a",), "ключ" * 300, {}), "more than 1600 bytes.*into the value"),
    "a label that is long when it is escaped": (lambda s: s.put(("\1\2" * 410,), "", {}), "more than 1600 bytes"),
    "a list as value": (lambda s: s.put(("a",), "k", [1]), 'dictionary, not list.*{"content"'),  # type: ignore[arg-type]
    "a ttl of nothing": (lambda s: s.put(("a",), "k", {}, ttl=0), "ttl must be above 0, in minutes"),
    "a ttl below": (lambda s: s.put(("a",), "k", {}, ttl=-1), "ttl must be above 0"),
    "a ttl that is no number": (lambda s: s.put(("a",), "k", {}, ttl=math.nan), "ttl must be above 0"),
    "a ttl without end": (lambda s: s.put(("a",), "k", {}, ttl=math.inf), "ttl=None for an item that stays"),
    "a wrong index": (lambda s: s.put(("a",), "k", {}, index=True), "False or a list of paths"),  # type: ignore[arg-type]
    "a limit below 0": (lambda s: s.search(("a",), limit=-1), "limit must be a whole number"),
    "a huge limit": (lambda s: s.search(("a",), limit=1001), "limit is above 1000.*offset=1000"),
    "a huge listing": (lambda s: s.list_namespaces(limit=5000), "limit is above 1000"),
    "an offset below 0": (lambda s: s.search(("a",), offset=-1), "offset must be"),
    "a depth below 0": (lambda s: s.list_namespaces(max_depth=-1), "max_depth must be"),
    "a filter that is none": (lambda s: s.search((), filter=[1]), "filter must be a dictionary"),  # type: ignore[arg-type]
    "a filter's key": (lambda s: s.search((), filter={"a": {1: 2}}), "key must be a string"),
    "a filter of too many": (
        lambda s: s.search((), filter={str(n): n for n in range(1001)}),
        "more than 1000 conditions",
    ),
    "a filter that nests too deeply": (lambda s: s.search((), filter=_nested(2000)), "more than 1000 conditions"),
    "a query that is none": (lambda s: s.search((), query=["x"]), "query must be a string"),  # type: ignore[arg-type]
    "an operation that is none": (lambda s: s.batch(["get"]), "cannot perform a str"),  # type: ignore[list-item]
    "a match that is none": (
        lambda s: s.batch([ListNamespacesOp((MatchCondition("infix", ("a",)),))]),  # type: ignore[arg-type]
        "prefix or suffix",
    ),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_be_done_says_so(store: SupabaseStore, case: tuple[Callable[[SupabaseStore], Any], str]) -> None:
    attempt, message = case
    with pytest.raises(InvalidInputError, match=message):
        attempt(store)


@pytest.mark.parametrize("caller", ["data_api-async", "direct-sync"], indirect=True)
async def test_a_huge_value_and_the_longest_name(caller: Caller, user_id: str) -> None:
    huge = {
        "text": "кёрамика word" * 25_000,
        "list": list(range(5_000)),
        "unique": " ".join(map(str, range(50_000))),
    }
    namespace = ("\1\2" * 100, "ñ" * 100, *("l" * 20 for _ in range(40)))
    store = ours(caller, user_id + "u" * (512 - len(user_id)), index={"embed": Words("m" * 200)})
    await caller(store.put, namespace, "k" * 100, huge)
    found = await caller(
        store.batch, [GetOp(namespace, "k" * 100), SearchOp(namespace, {"list": huge["list"]}, 1, 0, "word")]
    )
    assert found[0].value == huge
    assert keys(found[1]) == ["k" * 100]


def test_a_thousand_operations_are_one_round_trip(store: SupabaseStore, monkeypatch: pytest.MonkeyPatch) -> None:
    performed: list[Call] = []
    perform = store._memory._services.transport.perform

    def count(call: Call) -> Any:
        performed.append(call)
        return perform(call)

    monkeypatch.setattr(store._memory._services.transport, "perform", count)
    indexed = SupabaseStore(store._memory, index={"embed": Words(), "dims": WIDTH})
    puts: list[Op] = [PutOp(("many", str(n % 7)), str(n), {"n": n}) for n in range(1000)]
    indexed.batch(puts)
    mix: list[Op] = [
        SearchOp(("many",), query="a"), SearchOp(("many",), {"n": {"$lt": 5}}), GetOp(("many", "1"), "1"),
        ListNamespacesOp(), PutOp(("many", "1"), "1", None), PutOp(("new",), "k", {"x": 1}, ttl=5), GetOp(("x",), "y"),
    ]  # fmt: skip
    indexed.batch(mix)
    assert [call.function for call in performed] == ["memory_store"] * 2
    assert len(indexed.search(("many",), limit=1000)) == 999


async def test_every_verb_is_one_round_trip_through_every_door(caller: Caller, user_id: str) -> None:
    performed = recorded_calls(caller.service)
    store = ours(caller, user_id, index={"embed": Words()})
    await caller(store.put, ("a",), "k", {"x": "kiln"}, ttl=10)
    await caller(store.get, ("a",), "k")
    await caller(store.search, ("a",), query="kiln")
    await caller(store.list_namespaces)
    await caller(store.delete, ("a",), "k")
    assert performed == ["memory_store"] * 5


# Words


async def test_without_an_embedder_words_rank(caller: Caller, user_id: str) -> None:
    store = ours(caller, user_id)
    puts: dict[str, dict[str, Any]] = {
        "kiln": {"text": "The kiln shows error E-47 again"},
        "glaze": {"text": "The glaze recipe", "more": {"steps": ["sieve twice", "rest the kilns"]}},
        "cat": {"text": "The cat and the dog", "kiln": 1},
        "cjk": {"text": "窯の温度は高い"},
    }
    await caller(store.batch, [PutOp(("w",), key, value) for key, value in puts.items()])

    async def found(query: str, **more: Any) -> list[tuple[str, bool]]:
        return [(item.key, item.score is not None) for item in await caller(store.search, ("w",), query=query, **more)]

    assert (await found("What did the kiln show? E-47"))[:2] == [("kiln", True), ("glaze", True)]
    assert (await found("sieving?"))[0] == ("glaze", True)
    assert (await found("温度"))[0] == ("cjk", True)
    # What has none of the words comes last, the newest first, without a score; so nothing is missing.
    everything = await found("kilns")
    assert sorted(everything[:2]) == [("glaze", True), ("kiln", True)]
    assert sorted(everything[2:]) == [("cat", False), ("cjk", False)]
    assert [scored for _, scored in await found("zebra")] == [False] * 4
    assert [scored for _, scored in await found("?!")] == [False] * 4
    assert [scored for _, scored in await found("   ")] == [False] * 4
    # Words that are in every sentence count only where there are no others.
    assert [key for key, scored in await found("the dog") if scored] == ["cat"]
    assert {key for key, scored in await found("the") if scored} == {"kiln", "glaze", "cat"}
    assert (await found("kiln", filter={"kiln": 1})) == [("cat", False)]
    assert len(await found("kiln", limit=1, offset=1)) == 1
    for attack in ("' | '", "a & b", "!kiln", "kiln:*", "\\", "'''", "\\'", "a\\", "(((", "<->", "%s $1 {}"):
        assert len(await found(attack)) == 4


def test_a_rare_word_counts_for_more(store: SupabaseStore) -> None:
    for number in range(9):
        store.put(("w",), f"common-{number}", {"text": "kiln temperature log"})
    store.put(("w",), "rare", {"text": "kiln zircon"})
    found = store.search(("w",), query="temperature zircon")
    assert found[0].key == "rare"
    assert found[0].score is not None
    assert found[1].score is not None
    assert 1 > found[0].score > found[1].score > 0
    assert store.search(("w",), query="zircon kiln", limit=1)[0].score == pytest.approx(1)


def test_what_is_not_replaced_is_not_found_by_what_it_was(store: SupabaseStore) -> None:
    store.put(("w",), "k", {"text": "kiln"})
    store.put(("w",), "k", {"text": "cat"})
    assert store.search(("w",), query="kiln")[0].score is None
    assert store.search(("w",), query="cat")[0].score is not None


def test_without_a_query_the_newest_come_first(store: SupabaseStore) -> None:
    for key in ("a", "b", "c"):
        store.put(("n",), key, {})
    store.put(("n",), "a", {"again": True})
    assert keys(store.search(("n",))) == ["a", "c", "b"]


# Time to live


def expire(conn_string: str, user_id: str, key: str = "k", *, by: str = "-1 second") -> None:
    """Set when an item expires, by the database's clock."""
    statement = "update memory.store_items set expires_at = now() + %s::interval where user_id = %s and key = %s"
    execute(conn_string, statement, by, user_id, key)


def left(conn_string: str, user_id: str, key: str = "k") -> float | None:
    """How many minutes an item has left."""
    statement = (
        "select extract(epoch from expires_at - clock_timestamp()) / 60 from memory.store_items"
        " where user_id = %s and key = %s"
    )
    (row,) = execute(conn_string, statement, user_id, key)
    return None if row[0] is None else float(row[0])


async def test_what_has_expired_is_not_there_and_goes(caller: Caller, user_id: str, conn_string: str) -> None:
    store = ours(caller, user_id)
    await caller(store.put, ("t",), "k", {"text": "kiln"}, ttl=60)
    await caller(store.put, ("t", "deeper"), "l", {"text": "kiln"}, ttl=60)
    await caller(store.put, ("t",), "stays", {"text": "kiln"})
    assert left(conn_string, user_id) == pytest.approx(60, abs=1)
    assert left(conn_string, user_id, "stays") is None
    for key in ("k", "l"):
        expire(conn_string, user_id, key)
    assert await caller(store.get, ("t",), "k") is None
    assert keys(await caller(store.search, ("t",))) == ["stays"]
    assert keys(await caller(store.search, ("t",), query="kiln")) == ["stays"]
    assert await caller(store.list_namespaces) == [("t",)]
    assert (left(conn_string, user_id) or 0) < 0  # nothing brings it back
    assert await caller(store.sweep) == 2
    assert await caller(store.sweep) == 0
    assert execute(conn_string, "select key from memory.store_items where user_id = %s", user_id) == [("stays",)]


def test_what_is_put_again_after_it_expired_is_new(store: SupabaseStore, user_id: str, conn_string: str) -> None:
    store.put(("t",), "k", {"n": 1}, ttl=60)
    first = store.get(("t",), "k")
    store.put(("t",), "k", {"n": 2}, ttl=60)
    second = store.get(("t",), "k")
    expire(conn_string, user_id)
    store.put(("t",), "k", {"n": 3})
    third = store.get(("t",), "k")
    assert first
    assert second
    assert third
    assert first.created_at == second.created_at < second.updated_at < third.created_at
    assert left(conn_string, user_id) is None


def test_who_writes_takes_away_what_has_expired(store: SupabaseStore, user_id: str, conn_string: str) -> None:
    store.put(("t",), "k", {}, ttl=60)
    expire(conn_string, user_id)
    store.search(())
    assert len(execute(conn_string, "select 1 from memory.store_items where user_id = %s", user_id)) == 1
    store.put(("t",), "other", {})
    assert execute(conn_string, "select key from memory.store_items where user_id = %s", user_id) == [("other",)]


@pytest.mark.parametrize("read", ["get", "search", "find"])
def test_what_is_read_lives_on(store: SupabaseStore, user_id: str, conn_string: str, read: str) -> None:
    def look(store: SupabaseStore, **more: Any) -> Any:
        if read == "get":
            return store.get(("t",), "k", **more)
        return store.search(("t",), query="kiln" if read == "find" else None, limit=1, **more)

    store.put(("t",), "elsewhere", {"text": "none"}, ttl=60)
    store.put(("t",), "k", {"text": "kiln"}, ttl=60)
    still = SupabaseStore(store._memory, ttl={"refresh_on_read": False})
    for key in ("k", "elsewhere"):
        expire(conn_string, user_id, key, by="10 minutes")
    for kept, more in ((store, {"refresh_ttl": False}), (still, {})):
        assert look(kept, **more)
        assert left(conn_string, user_id) == pytest.approx(10, abs=1)
    assert look(still, refresh_ttl=True)
    assert left(conn_string, user_id) == pytest.approx(60, abs=1)
    expire(conn_string, user_id, by="10 minutes")
    before = store.get(("t",), "k", refresh_ttl=False)
    assert look(store)
    assert left(conn_string, user_id) == pytest.approx(60, abs=1)
    assert left(conn_string, user_id, "elsewhere") == pytest.approx(10, abs=1)  # it was not returned
    assert store.get(("t",), "k") == before  # reading is no change


def test_a_read_waits_for_nobody_who_writes(store: SupabaseStore, user_id: str, conn_string: str) -> None:
    store.put(("t",), "k", {"text": "kiln"}, ttl=60)
    with psycopg.connect(conn_string) as writing:
        writing.execute("update memory.store_items set value = '{}' where user_id = %s", [user_id])
        found = run_within(5, lambda: (store.get(("t",), "k"), store.search(("t",))))
        writing.rollback()
    assert found[0].value == {"text": "kiln"}


def run_within(seconds: float, function: Callable[[], Any]) -> Any:
    """What a function returns, if it returns in time."""
    answers: list[Any] = []
    thread = threading.Thread(target=lambda: answers.append(function()), daemon=True)
    thread.start()
    thread.join(seconds)
    assert answers, "it waited"
    return answers[0]


def test_how_long_an_item_lives_by_default(store: SupabaseStore, user_id: str, conn_string: str) -> None:
    brief = SupabaseStore(store._memory, ttl={"default_ttl": 5})
    brief.put(("t",), "k", {})
    assert left(conn_string, user_id) == pytest.approx(5, abs=1)
    brief.put(("t",), "k", {}, ttl=None)
    assert left(conn_string, user_id) is None
    brief.put(("t",), "k", {}, ttl=0.5)
    assert left(conn_string, user_id) == pytest.approx(0.5, abs=0.2)


def test_the_sweeper_sweeps_until_it_is_stopped(store: SupabaseStore, user_id: str, conn_string: str) -> None:
    store.put(("t",), "k", {}, ttl=60)
    expire(conn_string, user_id)
    sweeper = store.start_ttl_sweeper(0.001)
    assert store.start_ttl_sweeper() is sweeper

    def gone() -> bool:
        return not execute(conn_string, "select 1 from memory.store_items where user_id = %s", user_id)

    for _ in range(100):
        if gone():
            break
        threading.Event().wait(0.05)
    assert gone()
    store.stop_ttl_sweeper()
    assert sweeper.cancelled()
    names = [thread for thread in threading.enumerate() if thread.name == "supabase-memory-sweeper"]
    for thread in names:
        thread.join(5)
        assert not thread.is_alive()


async def test_a_server_sweeps_for_everybody_by_pages(conn_string: str, user_id: str) -> None:
    users = [f"{user_id}-{letter}" for letter in "abc"]
    with SupabaseMemory.from_conn_string(conn_string) as memory:
        for user in users:
            SupabaseStore(memory.for_user(user)).batch([PutOp(("t",), str(n), {}, ttl=1) for n in range(900)])
            SupabaseStore(memory.for_user(user)).put(("t",), "stays", {}, ttl=1)
        execute(
            conn_string,
            "update memory.store_items set expires_at = now() where user_id = any (%s) and key <> 'stays'",
            users,
        )
        assert SupabaseStore(memory.for_user(users[0])).sweep() == 900
        assert SupabaseStore(memory).sweep() >= 1800
    rows = execute(conn_string, "select key from memory.store_items where user_id = any (%s)", users)
    assert rows == [("stays",)] * 3


# Models that embed


async def test_another_model_is_an_error_until_the_items_are_embedded_again(
    caller: Caller, user_id: str, conn_string: str
) -> None:
    old, new = Words("old", 32), Words("new", 48)
    before, after = (ours(caller, user_id, index={"embed": words, "fields": ["text"]}) for words in (old, new))
    await caller(before.put, ("m", "x"), "kiln", {"text": "the kiln"})
    await caller(before.put, ("m", "y"), "cat", {"text": "a cat"})
    await caller(before.put, ("m", "x"), "never", {"text": "the kiln"}, index=False)
    await caller(before.put, ("m", "x"), "title", {"title": "zircon"}, index=["title"])
    await caller(before.put, ("m", "x"), "no text", {"number": 1})
    for prefix in ((), ("m",), ("m", "x")):
        with pytest.raises(MigrationConflictError, match=r"another model.*reindex\(\)") as caught:
            await caller(after.search, prefix, query="kiln")
        assert caught.value.code == "PT409"
    assert len(await caller(after.search, ("m",))) == 5  # without a question nothing is compared
    assert len(await caller(after.search, ("nothing",), query="kiln")) == 0
    assert await caller(after.reindex) == 3
    assert await caller(after.reindex) == 0
    assert sorted(new.documents) == ["a cat", "dimensions", "dimensions", "the kiln", "zircon"]
    for store in (before, after):  # both models stay in use
        found = await caller(store.search, ("m",), query="the kiln")
        assert (found[0].key, found[0].score) == ("kiln", pytest.approx(1, abs=0.01))
        assert (await caller(store.search, ("m",), query="zircon", limit=1))[0].key == "title"
        assert sum(item.score is None for item in found) == 2
    await caller(after.put, ("m", "y"), "cat", {"text": "a dog"})
    models = execute(
        conn_string,
        "select distinct model, dimensions from memory.store_vectors where user_id = %s and key = 'cat'",
        user_id,
    )
    assert models == [("new", 48)]


def test_vectors_of_two_models_of_one_width_are_never_compared(store: SupabaseStore) -> None:
    one, other = (SupabaseStore(store._memory, index={"embed": Words(name)}) for name in ("one", "other"))
    one.put(("m",), "by one", {"text": "kiln"})
    other.put(("m",), "by other", {"text": "cat"})
    found = other.search(("m",), query="kiln")
    assert [(item.key, item.score is None) for item in found] == [("by other", False), ("by one", True)]


def test_what_is_stored_is_embedded_as_documents_and_what_is_asked_as_questions(store: SupabaseStore) -> None:
    words = Words()
    indexed = SupabaseStore(store._memory, index={"embed": words, "fields": ["text"]})
    put = [PutOp(("m",), "k", {"text": text}) for text in ("overwritten", "kept", "kept too")][::-1]
    ops: list[Op] = [*put, PutOp(("m",), "l", {"text": "overwritten"}, index=False), PutOp(("m",), "k", None)]
    indexed.batch([*ops, PutOp(("m",), "k", {"text": "kept"}), PutOp(("m",), "o", {"text": "kept"})])
    assert words.documents == ["kept"]
    indexed.batch([SearchOp(("m",), query="what?"), SearchOp(("m",), query="what?"), SearchOp(("m",))])
    assert words.queries == ["what?"]
    assert words.documents == ["kept"]


def test_what_is_put_without_an_embedder_keeps_no_vector_of_what_it_was(store: SupabaseStore) -> None:
    indexed = SupabaseStore(store._memory, index={"embed": Words()})
    indexed.put(("m",), "k", {"text": "kiln"})
    store.put(("m",), "k", {"text": "cat"})
    assert indexed.search(("m",), query="kiln")[0].score is None
    assert indexed.reindex() == 1
    assert indexed.search(("m",), query="kiln")[0].score == pytest.approx(0, abs=0.5)


def test_the_same_model_of_another_width_is_another_model(store: SupabaseStore) -> None:
    narrow, wide = (SupabaseStore(store._memory, index={"embed": Words("same", width)}) for width in (32, 64))
    narrow.put(("m",), "k", {"text": "kiln"})
    with pytest.raises(MigrationConflictError, match="another model"):
        wide.search(("m",), query="kiln")
    assert wide.reindex() == 1
    assert wide.search(("m",), query="kiln")[0].score is not None


def test_what_is_not_yet_embedded_again_comes_after_what_is_and_by_its_words(store: SupabaseStore) -> None:
    indexed = SupabaseStore(store._memory, index={"embed": Words()})
    store.put(("m",), "words", {"text": "the kiln"})
    store.put(("m",), "neither", {"text": "nothing"})
    indexed.put(("m",), "far", {"text": "a cat"})
    assert keys(indexed.search(("m",), query="kiln")) == ["far", "words", "neither"]
    assert indexed.reindex() == 2
    assert keys(indexed.search(("m",), query="the kiln", limit=1)) == ["words"]


@pytest.mark.parametrize("caller", ["data_api-sync", "direct-async"], indirect=True)
async def test_an_embedder_that_fails_loses_nothing(
    caller: Caller, user_id: str, caplog: pytest.LogCaptureFixture
) -> None:
    words = Words()
    store = ours(caller, user_id, index={"embed": patient(words)})
    await caller(store.put, ("e",), "before", {"text": "a cat"})
    words.broken = True
    with caplog.at_level(logging.DEBUG):
        await caller(store.put, ("e",), "secret kiln", {"text": "the secret kiln"})
        assert (await caller(store.get, ("e",), "secret kiln")).value == {"text": "the secret kiln"}
        found = await caller(store.search, ("e",), query="secret kiln")
        assert [(item.key, item.score is None) for item in found] == [("secret kiln", False), ("before", True)]
        with pytest.raises(EmbeddingError) as caught:
            await caller(store.reindex)
    ours_logged = [record.getMessage() for record in caplog.records if record.name.startswith("langchain_supabase")]
    assert any("reindex()" in each for each in ours_logged)
    assert any("keyword" in each for each in ours_logged)
    assert "kiln" not in " ".join([*ours_logged, str(caught.value), repr(caught.value)])
    words.broken = False
    assert await caller(store.reindex) == 1
    found = await caller(store.search, ("e",), query="the secret kiln")
    assert [item.score is None for item in found] == [False, False]


def test_embedding_again_goes_by_pages_and_goes_on_where_it_was_stopped(
    store: SupabaseStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(items, "REINDEX_PAGE", 4)
    store.batch([PutOp(("p", str(n % 2)), f"{n:02}", {"text": f"number {n}"}) for n in range(10)])
    store.batch([PutOp(("p", "0"), f"blank-{n}", {"text": " "}, index=["text"]) for n in range(5)])
    words = Words()
    model = EmbeddingModel(words, attempts=1, batch=1)
    index: Any = {"embed": model, "fields": ["text"]}
    indexed = SupabaseStore(store._memory, index=index)
    vector = words.embed_text

    def failing(text: str) -> list[float]:
        if len(words.documents) > 8:
            raise RuntimeError
        return vector(text)

    monkeypatch.setattr(words, "embed_text", failing)
    with pytest.raises(EmbeddingError):
        indexed.reindex()
    monkeypatch.setattr(words, "embed_text", vector)
    done = sum(item.score is not None for item in indexed.search(("p",), query="zzz", limit=20))
    assert 0 < done < 10
    assert indexed.reindex() == 10 - done
    assert sum(item.score is not None for item in indexed.search(("p",), query="zzz", limit=20)) == 10


def test_what_is_put_while_it_is_embedded_again_keeps_its_own_vectors(store: SupabaseStore, user_id: str) -> None:
    store.put(("p",), "k", {"text": "old"})
    store.put(("p",), "gone", {"text": "old"})
    perform = store._memory._services.transport.perform
    flow = items.reindex(user_id, items.Index("words", ("text",)))
    step = next(flow)
    assert isinstance(step, Embed)
    step = flow.send([Words().embed_query("dimensions")])
    assert isinstance(step, Call)
    step = flow.send(perform(step))
    assert isinstance(step, Embed)
    assert step.texts == ["old", "old"]
    indexed = SupabaseStore(store._memory, index={"embed": Words(), "fields": ["text"]})
    indexed.put(("p",), "k", {"text": "new words"})
    store.delete(("p",), "gone")
    step = flow.send(Words().embed_documents(["old", "old"]))
    assert isinstance(step, Call)
    with pytest.raises(StopIteration) as stopped:
        flow.send(perform(step))
    assert stopped.value.value == 0
    (found,) = indexed.search(("p",), query="new words")
    assert found.score == pytest.approx(1, abs=0.01)


async def test_every_kind_of_embedder(store: SupabaseStore) -> None:
    words = Words()

    async def alone(texts: Sequence[str]) -> list[list[float]]:
        return words.embed_documents(list(texts))

    for embed in (words, patient(words), words.embed_documents, alone):
        each: Any = {"embed": embed, "dims": WIDTH}
        indexed = SupabaseStore(store._memory, index=each)
        namespace = (str(embed),)
        await indexed.aput(namespace, "k", {"text": "kiln"})
        (found,) = await indexed.asearch(namespace, query="kiln")
        assert found.score is not None
    memory = SupabaseMemory(store._memory._services.transport, user_id=store._memory.user_id, embeddings=words)
    (found,) = SupabaseStore(memory).search((str(words),), query="kiln")
    assert found.score is not None


def test_a_wrong_index_says_so(store: SupabaseStore) -> None:
    memory = store._memory
    for index, message in (
        ({"fields": ["text"]}, "no embedder.*embeddings="),
        ({"embed": 5}, "must be an embedder or its name"),
        ({"embed": Words(), "fields": "text"}, r"list of paths.*\[\"content\"\]"),
    ):
        with pytest.raises(ConfigurationError, match=message):
            SupabaseStore(memory, index=index)
    with pytest.raises(ConfigurationError, match=r"more than 200 bytes.*name="):
        SupabaseStore(memory, index={"embed": Words("m" * 201)})
    narrow = SupabaseStore(memory, index={"embed": Words(), "dims": 3})
    with pytest.raises(ConfigurationError, match=f"{WIDTH} dimensions, but the index has 3"):
        narrow.put(("a",), "k", {"x": "kiln"})
    assert store.search(()) == []
    with pytest.raises(ConfigurationError, match="no embedder"):
        store.reindex()


def test_a_value_is_read_as_it_was_meant(store: SupabaseStore) -> None:
    words = Words()
    indexed = SupabaseStore(store._memory, index={"embed": words, "fields": ["a", "b[*]", "c.d", "$"]})
    value = {"a": datetime(2026, 1, 2, tzinfo=UTC), "b": ("x", " ", "y"), "c": {"d": 1.5}}
    indexed.put(("r",), "k", value)
    assert words.documents[:4] == ["2026-01-02 00:00:00+00:00", "x", "y", "1.5"]
    assert "$python" not in words.documents[4]
    found = indexed.get(("r",), "k")
    assert found
    assert found.value == value


# Two at once


def test_two_writers_of_one_item_leave_one_of_them_whole(store: SupabaseStore, user_id: str, conn_string: str) -> None:
    indexed = SupabaseStore(store._memory, index={"embed": Words(), "fields": ["text", "more[*]"]})

    def write(name: str) -> None:
        for number in range(15):
            value = {"text": f"{name} {number}", "more": [name] * (2 if name == "ann" else 5)}
            indexed.batch([PutOp(("c",), "same", value), PutOp(("c",), name, value)])

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(write, ("ann", "bob", "cy")))  # raises what one of them raised
    item = indexed.get(("c",), "same")
    assert item
    (number,) = execute(
        conn_string, "select count(*) from memory.store_vectors where user_id = %s and key = 'same'", user_id
    )[0]
    assert number == 1 + len(item.value["more"])
    assert indexed.search(("c",), query=item.value["text"], limit=1)[0].score == pytest.approx(1, abs=0.01)


def test_writers_in_opposite_orders_do_not_stand_in_each_others_way(store: SupabaseStore) -> None:
    puts: list[Op] = [
        PutOp(("c", str(n)), "k", {"n": n} if n % 3 else None, ttl=1 if n % 3 else None) for n in range(30)
    ]

    def write(ops: list[Op]) -> None:
        for _ in range(20):
            store.batch(ops)
            store.search(("c",), limit=30)

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(write, (puts, puts[::-1], puts[10:] + puts[:10])))  # raises after a deadlock; retries are off
    assert len(store.search(("c",), limit=100)) == 20


async def test_many_calls_at_once_in_one_loop(conn_string: str, user_id: str) -> None:
    memory = SupabaseMemory.from_conn_string(conn_string, user_id=user_id)
    store = SupabaseStore(memory, index={"embed": Words()})
    await asyncio.gather(*(store.aput(("g", str(n % 4)), str(n), {"text": f"number {n}"}) for n in range(40)))
    found = await asyncio.gather(*(store.aget(("g", str(n % 4)), str(n)) for n in range(40)))
    assert [item and item.value["text"] for item in found] == [f"number {n}" for n in range(40)]
    await memory.aclose()


# In a graph


class State(TypedDict, total=False):
    said: str
    known: list[str]


@pytest.mark.parametrize("color", ["sync", "async"])
async def test_nodes_reach_it_as_the_graphs_store(store: SupabaseStore, color: str) -> None:
    def remember(state: State) -> State:
        graphs = get_store()
        graphs.put(("facts", "maya@studio.org"), state["said"], {"text": state["said"]})
        return {"known": keys(graphs.search(("facts", "maya@studio.org"), query="kiln"))}

    async def aremember(state: State) -> State:
        graphs = get_store()
        await graphs.aput(("facts", "maya@studio.org"), state["said"], {"text": state["said"]})
        return {"known": keys(await graphs.asearch(("facts", "maya@studio.org"), query="kiln"))}

    builder = StateGraph(State)
    builder.add_node("remember", remember if color == "sync" else aremember)
    builder.add_edge(START, "remember")
    builder.add_edge("remember", END)
    graph = builder.compile(store=store)
    for said, known in (("my kiln broke", ["my kiln broke"]), ("my cat sleeps", ["my kiln broke", "my cat sleeps"])):
        given: State = {"said": said}
        state = graph.invoke(given) if color == "sync" else await graph.ainvoke(given)
        assert state["known"] == known


@pytest.mark.parametrize("color", ["sync", "async"])
async def test_langmems_tools_work_on_it_in_an_agent(store: SupabaseStore, color: str) -> None:
    namespace = ("memories", "{langgraph_user_id}")
    tools = [create_manage_memory_tool(namespace), create_search_memory_tool(namespace)]
    indexed = SupabaseStore(store._memory, index={"embed": Words(), "fields": ["content"]})
    config: Any = {"configurable": {"langgraph_user_id": "maya"}}

    async def ask(*answers: AIMessage | str) -> list[Any]:
        agent = create_agent(says(*answers), tools, store=indexed)
        given: Any = {"messages": [HumanMessage("go on")]}
        state = agent.invoke(given, config) if color == "sync" else await agent.ainvoke(given, config)
        return [each for each in state["messages"] if isinstance(each, ToolMessage)]

    (created,) = await ask(calls("manage_memory", content="Maya fires at cone 6", action="create"), "done")
    key = re.fullmatch("created memory (.*)", str(created.content))
    assert key
    await ask(calls("manage_memory", content="Maya has a cat", action="create"), "done")
    (found,) = await ask(calls("search_memory", query="at which cone does Maya fire", limit=1), "done")
    assert "cone 6" in str(found.content)
    assert "cat" not in str(found.content)
    await ask(calls("manage_memory", content="Maya fires at cone 10", action="update", id=key[1]), "done")
    item = indexed.get(("memories", "maya"), key[1])
    assert item
    assert item.value == {"content": "Maya fires at cone 10"}
    await ask(calls("manage_memory", action="delete", id=key[1]), "done")
    assert [each.value for each in indexed.search(("memories", "maya"))] == [{"content": "Maya has a cat"}]


def test_the_agents_model_is_given_nothing_of_the_store(store: SupabaseStore) -> None:
    model = ScriptedModel(script=lambda _: "hello")
    store.put(("a",), "k", {"text": "secret"})
    create_agent(model, store=store).invoke({"messages": [HumanMessage("hi")]})
    assert "secret" not in str(model.shown)
