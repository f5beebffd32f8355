"""Long-term memory: in any store, for one user, without duplicates; what a profile holds moves there, and goes."""

from __future__ import annotations

import asyncio
import inspect
import json
import math
import re
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.messages import HumanMessage
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from langgraph.store.base import BaseStore, Item, Op, Result, SearchItem, SearchOp
from langgraph.store.memory import InMemoryStore

from langchain_supabase_memory import Retention, SupabaseMemory, SupabaseStore
from langchain_supabase_memory.effects import Call
from langchain_supabase_memory.errors import (
    AccessError,
    ConfigurationError,
    InvalidInputError,
    PermissionDeniedError,
    UnavailableError,
)
from langchain_supabase_memory.long_term import (
    LongTerm,
    Memory,
    Remembered,
    StoreLongTerm,
    VectorStoreLongTerm,
    aforget_source,
    apromote,
    forget_source,
    promote,
    promotion,
)
from langchain_supabase_memory.long_term.memories import derived_id
from langchain_supabase_memory.long_term.store_backend import _label
from langchain_supabase_memory.settings import NO_RETRY
from langchain_supabase_memory.types import ProfileItem
from tests.conftest import Caller
from tests.each_case import each_case
from tests.profile_items import add_item
from tests.services.data_api import token

WHEN = datetime(2026, 11, 20, 9, 30, tzinfo=UTC)


class Words(Embeddings):
    """Texts that share words are near each other; fails while it is `broken`."""

    def __init__(self) -> None:
        self.broken = False
        self.documents = 0

    def _vector(self, text: str) -> list[float]:
        if self.broken:
            raise ConnectionError("away")
        vector = [0.01] * 64
        for word in re.findall(r"\w+", text.lower()):
            vector[zlib.crc32(word.encode()) % 64] += 1.0
        return vector

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.documents += len(texts)
        return [self._vector(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self._vector(text)


class Careless(VectorStore):
    """A vector store that ignores filters, has sync methods only, and cannot say what it holds."""

    def __init__(self) -> None:
        self.inner = InMemoryVectorStore(Words())
        self.threads: set[int] = set()
        self.searched: list[int] = []
        self.seconds = 0.0

    def add_documents(self, documents: list[Document], **kwargs: Any) -> list[str]:
        self._noted()
        return self.inner.add_documents(documents, **kwargs)

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        self._noted()
        self.searched.append(k)
        return self.inner.similarity_search(query, k)

    def delete(self, ids: list[str] | None = None, **kwargs: Any) -> None:
        self._noted()
        assert ids, "an empty list would mean everything in some stores"
        self.inner.delete(ids)

    @classmethod
    def from_texts(cls, *args: Any, **kwargs: Any) -> Careless:
        raise AssertionError

    def _noted(self) -> None:
        self.threads.add(threading.get_ident())
        time.sleep(self.seconds)


class Leaky(InMemoryStore):
    """A store that takes a prefix as the beginning of a text, and a dot or an underscore for what it likes."""

    def batch(self, ops: Any) -> list[Result]:
        results = []
        for op in ops:
            if not isinstance(op, SearchOp):
                results += super().batch([op])
                continue
            begins = re.escape(".".join(op.namespace_prefix)).replace("_", ".")
            items = [
                SearchItem(item.namespace, item.key, item.value, item.created_at, item.updated_at)
                for space, rows in sorted(self._data.items())
                if re.match(begins, ".".join(space))
                for item in rows.values()
            ]
            results.append(items[op.offset : op.offset + op.limit])
        return results

    async def abatch(self, ops: Any) -> list[Result]:
        return self.batch(ops)


def in_memory(embed: bool = True) -> InMemoryStore:
    return InMemoryStore(index={"dims": 64, "embed": Words()} if embed else None)


Maker = Callable[[str], LongTerm]
"""Makes the long-term memory of a user; all that one maker makes share a store."""

KINDS = ["store", "store without vectors", "leaky store", "vectors", "careless vectors"]


def maker(kind: str) -> Maker:
    if "vectors" in kind and "store" not in kind:
        vector_store = Careless() if "careless" in kind else InMemoryVectorStore(Words())
        return lambda user_id: VectorStoreLongTerm(vector_store, user_id)
    store = Leaky() if "leaky" in kind else in_memory("without" not in kind)
    return lambda user_id: StoreLongTerm(store, user_id)


@pytest.fixture(params=[f"{kind}-{color}" for kind in KINDS for color in ("sync", "async")])
def made(request: pytest.FixtureRequest) -> tuple[Maker, str]:
    kind, color = request.param.split("-")
    return maker(kind), color


async def use(color: str, verb: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    if color == "sync":
        return verb(*arguments, **named)
    return await getattr(verb.__self__, "a" + verb.__name__)(*arguments, **named)  # type: ignore[attr-defined]


def texts(found: Sequence[Memory]) -> list[str]:
    return [memory.text for memory in found]


FULL = Memory(
    "Maya fires porcelain at cone 6 🙂",
    kind="preference",
    importance=0.9,
    said_at=WHEN,
    thread_id="studio",
    message_ids=("m1", "m2"),
    quote="I always go to cone 6",
    metadata={"speaker": "Maya", "nested": {"list": [1, 2.5, None]}, "when": WHEN},
)


# What every long-term memory does


async def test_what_is_remembered_is_recalled_whole_and_once(made: tuple[Maker, str]) -> None:
    make, color = made
    memory = make("maya")
    first = await use(color, memory.remember, [FULL, Memory("The kiln is an old Rohde")])
    assert len(first.stored) == 2
    assert first.known == []
    again = await use(color, memory.remember, [FULL, FULL, Memory("Ana is her sister")])
    if again.known:  # a store that can say what it has
        assert (again.known, len(again.stored)) == (first.stored[:1], 1)
    found = await use(color, memory.recall, "porcelain cone", 10)
    assert len(found) == 3
    (recalled,) = [each for each in found if each.id == first.stored[0]]
    assert recalled == FULL.with_owner("maya")
    assert recalled.metadata == FULL.metadata
    assert found[0] == recalled or found[0].score is None


async def test_two_users_share_nothing(made: tuple[Maker, str]) -> None:
    make, color = made
    # Names that a store may take for one another.
    names = ["a", "ab", "a.b", "a_b", "a-b", "A", "a%", "a*", "a b", "long_term", "é", "e\u0301", "a=2Eb", "a/b"]
    ids = {}
    for name in names:
        receipt = await use(color, make(name).remember, [Memory("the code is 7"), Memory(f"of {name}")])
        ids[name] = receipt.stored
    assert len({id_ for given in ids.values() for id_ in given}) == 2 * len(names)
    for name in names:
        found = await use(color, make(name).recall, "the code", 2)
        assert sorted(texts(found)) == sorted(["the code is 7", f"of {name}"])
    # Nor does anybody forget what is another's, with its id guessed right.
    for name in names[1:]:
        await use(color, make("a").forget, ids[name])
    for name in names:
        assert len(await use(color, make(name).recall, "code", 5)) == 2
    await use(color, make("a").forget, ids["a"])
    assert await use(color, make("a").recall, "code", 5) == []
    assert len(await use(color, make("ab").recall, "code", 5)) == 2


async def test_no_fewer_come_back_than_there_are(made: tuple[Maker, str]) -> None:
    make, color = made
    await use(color, make("stranger").remember, [Memory(f"code {n}", kind="event") for n in range(150)])
    await use(color, make("maya").remember, [Memory(f"code {n}", kind=("fact", "event")[n % 2]) for n in range(30)])
    await use(color, make("zoe").remember, [Memory(f"code {n}") for n in range(150)])
    maya = make("maya")
    for limit in (1, 5, 30, 100):
        assert len(await use(color, maya.recall, "code", limit)) == min(limit, 30)
        assert len(await use(color, maya.recall, "code", limit, ["event"])) == min(limit, 15)
        assert len(await use(color, maya.recall, "code", limit, ["event", "fact"])) == min(limit, 30)
    assert await use(color, maya.recall, "code", 5, ["preference"]) == []
    assert await use(color, maya.recall, "code", 5, []) == []
    assert {each.kind for each in await use(color, maya.recall, "code", 20, ["fact"])} == {"fact"}


async def test_the_same_text_from_two_places_is_shown_once(made: tuple[Maker, str]) -> None:
    make, color = made
    memory = make("maya")
    places = [
        Memory(text, message_ids=(f"m{n}",)) for n, text in enumerate(["Ana lives in Cebu", "ana  lives in CEBU"])
    ]
    receipt = await use(color, memory.remember, [*places, Memory("Ana has a boat")])
    assert len(set(receipt.stored)) == 3
    assert len(await use(color, memory.recall, "Ana", 2)) == 2
    assert len(await use(color, memory.recall, "Ana", 5)) == 2


async def test_what_is_forgotten_is_gone_and_forgetting_again_is_no_error(made: tuple[Maker, str]) -> None:
    make, color = made
    memory = make("maya")
    receipt = await use(color, memory.remember, [Memory(f"fact {n}") for n in range(130)])
    await use(color, memory.forget, receipt.stored[:120])
    await use(color, memory.forget, [*receipt.stored[:121], receipt.stored[120]])
    await use(color, memory.forget, [])
    left = await use(color, memory.recall, "fact", 200)
    assert sorted(str(each.id) for each in left) == sorted(receipt.stored[121:])
    for wrong in (["not an id"], receipt.stored[0]):
        with pytest.raises(InvalidInputError):
            await use(color, memory.forget, wrong)


@pytest.mark.parametrize(
    "text", ["nul\0 and \ud800 half", "🙂" * 3_000, "long " * 20_000, '{"a": "$python"}', "玛雅修好了窑炉"]
)
async def test_any_text_is_remembered(made: tuple[Maker, str], text: str) -> None:
    make, color = made
    memory = make("maya")
    given = Memory(
        text, thread_id="t\0", message_ids=("m\ud800",), quote=text, metadata={"\0": text, "$python": [text]}
    )
    receipt = await use(color, memory.remember, [given])
    (found,) = await use(color, memory.recall, text[:200], 5)
    assert found.text == text.replace("\0", "\ufffd").replace("\ud800", "\ufffd")
    assert found.metadata == {"\ufffd": found.text, "$python": [found.text]}
    assert (found.id, found.quote, found.thread_id) == (receipt.stored[0], found.text, "t\ufffd")
    assert found.message_ids == ("m\ufffd",)


@each_case(
    "wrong",
    [
        lambda: Memory(" "),
        lambda: Memory(7),  # type: ignore[arg-type]
        lambda: Memory("a", kind=""),
        lambda: Memory("a", importance=1.5),
        lambda: Memory("a", importance=math.nan),
        lambda: Memory("a", importance=True),
        lambda: Memory("a", said_at=datetime(2026, 1, 1)),
        lambda: Memory("a", message_ids="m1"),  # type: ignore[arg-type]
        lambda: Memory("a", metadata=[]),  # type: ignore[arg-type]
        lambda: Memory("a", id="none"),
        lambda: StoreLongTerm(InMemoryStore(), ""),
        lambda: StoreLongTerm(InMemoryStore(), "a\nb"),
        lambda: StoreLongTerm(InMemoryStore(), "a", agent_id=""),
        lambda: StoreLongTerm(InMemoryStore(), "a", namespace=()),
        lambda: StoreLongTerm(InMemoryStore(), "a", namespace="long_term"),
        lambda: VectorStoreLongTerm(InMemoryVectorStore(Words()), ""),
        lambda: VectorStoreLongTerm(InMemoryStore(), "a"),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_be_remembered_is_refused(wrong: Callable[[], object]) -> None:
    with pytest.raises((InvalidInputError, ConfigurationError)):
        wrong()


async def test_a_question_that_is_none_is_refused(made: tuple[Maker, str]) -> None:
    make, color = made
    await use(color, make("maya").remember, [Memory("a")])
    for arguments in ((7,), ("a", 0), ("a", True), ("a", 2000), ("a", 5, "fact"), ("a", 5, [""])):
        with pytest.raises(InvalidInputError):
            await use(color, make("maya").recall, *arguments)


def test_each_verb_has_its_async_twin_with_the_same_arguments() -> None:
    for kind in (StoreLongTerm, VectorStoreLongTerm, LongTerm):
        for name in ("remember", "recall", "forget"):
            twins = [inspect.signature(getattr(kind, each)) for each in (name, "a" + name)]
            assert twins[0] == twins[1]
    assert inspect.signature(promote) == inspect.signature(apromote)
    assert inspect.signature(forget_source) == inspect.signature(aforget_source)
    long_terms: list[LongTerm] = [maker(kind)("maya") for kind in KINDS]
    assert {each.name for each in long_terms} == {
        "store:long_term",
        "vectors:InMemoryVectorStore",
        "vectors:Careless",
    }


def test_an_id_is_the_users_and_of_text_and_place() -> None:
    one = Memory("a", thread_id="t", message_ids=("m",))
    ids = {
        one.with_owner("maya").id,
        one.with_owner("zoe").id,
        Memory("b", thread_id="t", message_ids=("m",)).with_owner("maya").id,
        Memory("a", thread_id="u", message_ids=("m",)).with_owner("maya").id,
        Memory("a", thread_id="t", message_ids=("n",)).with_owner("maya").id,
        Memory("a", thread_id="t").with_owner("maya").id,
    }
    assert len(ids) == 6
    assert (
        one.with_owner("maya").id == Memory("a", "event", 0.1, WHEN, "t", ("m",), "q", {"x": 1}).with_owner("maya").id
    )
    assert one.with_owner("maya").with_owner("zoe") == one.with_owner("maya"), "who has an id keeps it"


def test_no_two_names_make_one_label() -> None:
    names = [
        "a",
        "a.b",
        "a=2Eb",
        "a_b",
        "a=5Fb",
        "é",
        "e\u0301",
        "maya@example.com",
        "*",
        "%",
        "=",
        "==",
        "ß",
        "ss",
        "a:b",
    ]
    labels = [_label(name) for name in names]
    assert len(set(labels)) == len(names)
    assert not [label for label in labels if set(label) & set("._%* /\\")]
    assert _label("maya@example.com") == "maya@example=2Ecom"


def test_nothing_of_the_content_is_shown() -> None:
    assert "porcelain" not in repr(FULL)
    assert "cone" not in repr(FULL)
    store = StoreLongTerm(in_memory(), "maya")
    vector = VectorStoreLongTerm(InMemoryVectorStore(Words()), "maya")
    assert repr(vector) == "VectorStoreLongTerm(InMemoryVectorStore, name='vectors:InMemoryVectorStore')"
    assert "StoreLongTerm(" in repr(store)


# Each caller


def test_agents_and_namespaces_are_apart() -> None:
    store = in_memory()
    shared, coach, other = (
        StoreLongTerm(store, "maya"),
        StoreLongTerm(store, "maya", agent_id="coach"),
        StoreLongTerm(store, "maya", namespace=("app", "memories")),
    )
    for each in (shared, coach, other):
        each.remember([Memory(f"code of {each.name}")])
    assert texts(shared.recall("code", 5)) == ["code of store:long_term"]
    assert texts(coach.recall("code", 5)) == ["code of store:long_term/coach"]
    assert texts(other.recall("code", 5)) == ["code of store:app/memories"]
    assert sorted(store.list_namespaces()) == [
        ("app", "memories", "maya"),
        ("long_term", "maya"),
        ("long_term", "maya", "coach"),
    ]


def test_only_the_text_is_embedded_and_what_others_put_there_is_passed_over() -> None:
    words = Words()
    store = InMemoryStore(index={"dims": 64, "embed": words})
    memory = StoreLongTerm(store, "maya")
    memory.remember([FULL])
    assert words.documents == 1
    store.put(("long_term", "maya"), str(uuid4()), {"text": "code"})
    store.put(("long_term", "maya"), str(uuid4()), {**FULL.to_json(), "user_id": "zoe", "text": "porcelain"})
    store.put(("long_term", "maya"), str(uuid4()), {"user_id": "maya", "text": 7, "kind": "fact", "importance": "no"})
    assert texts(memory.recall("porcelain code", 5)) == [FULL.text]


def test_the_nearest_come_first_over_several_kinds() -> None:
    memory = StoreLongTerm(in_memory(), "maya")
    memory.remember(
        [
            Memory("kiln thermocouple repair", kind="fact"),
            Memory("boat mast", kind="fact"),
            Memory("kiln thermocouple", kind="event"),
            Memory("tax", kind="preference"),
        ]
    )
    found = memory.recall("kiln thermocouple", 3, ["event", "fact"])
    assert texts(found) == ["kiln thermocouple", "kiln thermocouple repair", "boat mast"]
    scores = [float(each.score or 0) for each in found]
    assert scores == sorted(scores, reverse=True)


async def test_our_own_store_through_every_door(caller: Caller, user_id: str) -> None:
    bearers = {
        name: SupabaseMemory(caller.as_token(token(user_id=name))._services.transport, embeddings=Words())
        for name in (user_id, f"{user_id}.b")
    }
    for name, memory in bearers.items():
        mine = StoreLongTerm(SupabaseStore(memory), name)
        receipt = await caller(mine.remember, [FULL, Memory(f"of {name}", kind="event")])
        assert await caller(mine.remember, [FULL]) == Remembered([], receipt.stored[:1])
        found = await caller(mine.recall, "porcelain at cone 6", 5)
        assert texts(found) == [FULL.text, f"of {name}"]
        assert found[0] == FULL.with_owner(name)
        assert found[0].score is not None
        assert texts(await caller(mine.recall, "", 5, ["event"])) == [f"of {name}"]
    # Somebody who poses as another reaches nothing: the rows are the bearer's own, by row level security.
    posing = StoreLongTerm(SupabaseStore(bearers[f"{user_id}.b"]), user_id)
    assert await caller(posing.recall, "porcelain", 5) == []
    forged = StoreLongTerm(SupabaseStore(bearers[f"{user_id}.b"].for_user(user_id)), user_id)
    assert await caller(forged.recall, "porcelain", 5) == []
    with pytest.raises(PermissionDeniedError):
        await caller(forged.remember, [Memory("forged")])
    await caller(forged.forget, [str(FULL.with_owner(user_id).id)])
    mine = StoreLongTerm(SupabaseStore(bearers[user_id]), user_id)
    assert len(await caller(mine.recall, "porcelain", 5)) == 2
    await caller(mine.forget, [str(FULL.with_owner(user_id).id)])
    assert texts(await caller(mine.recall, "porcelain", 5)) == [f"of {user_id}"]
    anonymous = StoreLongTerm(SupabaseStore(caller.as_token(token("anon", user_id)).for_user(user_id)), user_id)
    with pytest.raises(AccessError):
        await caller(anonymous.recall, "porcelain")


async def test_a_memory_stays_where_items_of_the_store_expire(conn_string: str, user_id: str) -> None:
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory:
        store = SupabaseStore(memory, ttl={"default_ttl": 1e-6})
        mine = StoreLongTerm(store, user_id)
        mine.remember([FULL])
        store.put(("else",), "k", {"text": "short"})
        assert store.search(("else",)) == []
        assert texts(mine.recall("porcelain")) == [FULL.text]


def test_a_stores_failure_is_passed_on_and_the_next_call_makes_up_for_it() -> None:
    words = Words()
    memory = StoreLongTerm(InMemoryStore(index={"dims": 64, "embed": words}), "maya")
    words.broken = True
    with pytest.raises(ConnectionError):
        memory.remember([FULL])
    words.broken = False
    assert len(memory.remember([FULL]).stored) == 1
    assert len(memory.remember([FULL]).known) == 1


async def test_a_store_with_sync_methods_alone_does_not_block_the_loop() -> None:
    careless = Careless()
    memory = VectorStoreLongTerm(careless, "maya")
    careless.seconds = 0.2
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0.01)

    ticking = asyncio.create_task(tick())
    receipt = await memory.aremember([FULL])
    assert texts(await memory.arecall("porcelain")) == [FULL.text]
    await memory.aforget(receipt.stored)
    ticking.cancel()
    assert ticks > 20
    assert threading.get_ident() not in careless.threads


async def test_a_store_with_async_texts_is_used_as_it_wants() -> None:
    class Texts(Careless):
        async def aadd_texts(self, texts: Any, metadatas: Any = None, *, ids: Any = None, **kwargs: Any) -> list[str]:
            pairs = zip(texts, metadatas, strict=True)
            self.inner.add_documents([Document(page_content=t, metadata=m) for t, m in pairs], ids=ids)
            return list(ids)

    store = Texts()
    await VectorStoreLongTerm(store, "maya").aremember([FULL])
    assert store.threads == set()
    assert list(store.inner.store) == [derived_id("maya", str(FULL.with_owner("maya").id))]


def test_a_store_that_ignores_the_filter_is_asked_for_more(caplog: pytest.LogCaptureFixture) -> None:
    careless = Careless()
    VectorStoreLongTerm(careless, "zoe").remember([Memory(f"code {n}") for n in range(100)])
    maya = VectorStoreLongTerm(careless, "maya")
    maya.remember([Memory("code of mine")])
    assert texts(maya.recall("code", 2)) == ["code of mine"]
    assert careless.searched == [2, 8, 32, 128]
    assert caplog.text == ""


def test_the_filter_is_the_stores_own() -> None:
    asked: list[Any] = []

    class Asked(Careless):
        def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
            asked.append(kwargs["filter"])
            return super().similarity_search(query, k)

    VectorStoreLongTerm(Asked(), "maya").recall("code")
    VectorStoreLongTerm(Asked(), "maya", filter=lambda user_id: ["must", user_id]).recall("code")
    assert asked == [{"user_id": "maya"}, ["must", "maya"]]
    inner = InMemoryVectorStore(Words())
    VectorStoreLongTerm(inner, "maya").remember([Memory("code")])
    assert texts(VectorStoreLongTerm(inner, "maya", filter=lambda _: None).recall("code")) == ["code"]
    assert VectorStoreLongTerm(inner, "zoe", filter=lambda _: None).recall("code") == []


def test_metadata_are_flat_and_without_nulls() -> None:
    store = InMemoryVectorStore(Words())
    memory = VectorStoreLongTerm(store, "maya")
    memory.remember([FULL, Memory("bare")])
    for row in store.store.values():
        assert all(isinstance(value, (str, float, int)) for value in row["metadata"].values())
        assert row["metadata"]["user_id"] == "maya"
    (bare,) = [row["metadata"] for row in store.store.values() if row["text"] == "bare"]
    assert set(bare) == {"user_id", "memory_id", "kind", "importance", "message_ids", "metadata"}
    for wrong in ({"message_ids": "["}, {"metadata": "7"}, {"importance": 9}, {"memory_id": "none"}):
        store.add_documents([Document("porcelain", metadata={**bare, **wrong})])
    assert sorted(texts(memory.recall("porcelain", 9))) == ["Maya fires porcelain at cone 6 🙂", "bare"]


# What a profile holds moves


@pytest.fixture
def direct(conn_string: str, user_id: str) -> Iterator[SupabaseMemory]:
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, retry=NO_RETRY) as memory:
        yield memory


@dataclass
class Telling:
    """What a user says of themself, and the writer of the board reads.

    Attributes:
        memory: A memory of the user.
        sql: A connection beside it.
    """

    memory: SupabaseMemory
    sql: psycopg.Connection

    def __call__(self, *values: str, thread_id: str = "t", prefix: str = "m", **more: Any) -> list[str]:
        """Store messages that each say one thing; return their ids."""
        ids = [f"{prefix}{number}" for number in range(len(values))]
        batch = [HumanMessage(f"From now on: {value}", id=id_) for value, id_ in zip(values, ids, strict=True)]
        self.memory.conversation(thread_id).append(batch)
        for value, id_ in zip(values, ids, strict=True):
            add_item(self.sql, str(self.memory.user_id), id_, value, thread_id=thread_id, **more)
        return ids

    def ledger(self) -> list[tuple[Any, ...]]:
        """Return what is recorded as moved or moving."""
        return self.sql.execute(
            "select moved, cardinality(evidence) from memory.promotions where user_id = %s order by 1, 2",
            [self.memory.user_id],
        ).fetchall()


@pytest.fixture
def tell(direct: SupabaseMemory, sql: psycopg.Connection) -> Telling:
    return Telling(direct, sql)


class Recording(StoreLongTerm):
    """Remembers what it was asked, and may fail or do something else before or after it."""

    def __init__(self, user_id: str, store: BaseStore | None = None, name: str | None = None) -> None:
        super().__init__(store or in_memory(), user_id, name=name)
        self.forgotten: list[str] = []
        self.before: Callable[[], None] = lambda: None
        self.after: Callable[[], None] = lambda: None
        self.after_forgetting: Callable[[], None] = lambda: None

    def remember(self, memories: Any) -> Remembered:
        self.before()
        done = super().remember(list(memories))
        self.after()
        return done

    async def aremember(self, memories: Any) -> Remembered:
        return self.remember(memories)

    def forget(self, ids: Any) -> None:
        listed = list(ids)
        self.forgotten += listed
        super().forget(listed)
        self.after_forgetting()

    async def aforget(self, ids: Any) -> None:
        self.forget(ids)

    def all(self) -> list[str]:
        return sorted(each.text.removeprefix("Fact: ") for each in self.recall("", 1000))


def crash() -> None:
    raise ConnectionError("away")


async def moved(caller: Caller, *arguments: Any, **named: Any) -> Remembered:
    return promote(*arguments, **named) if caller.color == "sync" else await apromote(*arguments, **named)


async def gone(caller: Caller, *arguments: Any, **named: Any) -> list[str]:
    return forget_source(*arguments, **named) if caller.color == "sync" else await aforget_source(*arguments, **named)


FACTS = ["Ana lives in Cebu", "I am a potter", "the code is 7"]


async def test_what_is_held_moves_once_through_every_door(caller: Caller, user_id: str, tell: Telling) -> None:
    memory = SupabaseMemory(caller.service._services.transport, user_id=user_id, embeddings=Words())
    long_term = StoreLongTerm(SupabaseStore(memory), user_id)
    assert await moved(caller, memory, long_term) == Remembered()
    conversation = memory.conversation("t")
    await caller(conversation.append, [HumanMessage("I live in Cebu. I may go.", id="m0")], created_at=WHEN)
    add_item(tell.sql, user_id, "m0", "I live in Cebu", subject="home", kind="trait", condition="in May", polarity=-1)
    add_item(tell.sql, user_id, "m0", "I may go", durable=False)
    item_id = await caller(memory.profile.remember, "Has a kiln.", subject="tools", agent_id="coach")
    done = await moved(caller, memory, long_term)
    assert (len(done.stored), done.known) == (2, []), "what is proposed does not move"
    assert await moved(caller, memory, long_term) == Remembered()
    found = {each.kind: each for each in await caller(long_term.recall, "Cebu kiln", 10)}
    home, kiln = found["trait"], found["fact"]
    assert home == Memory(
        "Trait (home, in May): not I live in Cebu",
        "trait",
        said_at=WHEN,
        thread_id="t",
        message_ids=("m0",),
        quote="I live in Cebu",
        metadata={"subject": "home", "value": "I live in Cebu", "polarity": -1, "condition": "in May"},
        id=home.id,
    )
    (item,) = [each for each in await caller(memory.profile.read) if each.id == item_id]
    assert kiln == Memory(
        "Fact (tools, with coach): Has a kiln.",
        said_at=item.held_at,
        metadata={"subject": "tools", "value": "Has a kiln.", "polarity": 0, "agent_id": "coach"},
        id=kiln.id,
    )
    # Forgetting in the memory reaches it.
    await caller(conversation.forget_message, "m0")
    assert await gone(caller, memory, long_term, dry_run=True) == [home.id]
    assert len(await caller(long_term.recall, "Cebu", 10)) == 2
    assert await gone(caller, memory, long_term) == [home.id]
    assert await gone(caller, memory, long_term) == []
    assert texts(await caller(long_term.recall, "Cebu", 10)) == [kiln.text]
    await caller(memory.forget_user)
    assert await gone(caller, memory, long_term) == [kiln.id]
    assert await caller(long_term.recall, "kiln", 10) == []
    assert tell.ledger() == []


@each_case(
    ("item", "sentence"),
    [
        ({"kind": "fact", "text": "Has a kiln."}, "Fact: Has a kiln."),
        ({"kind": "instruction", "subject": "name", "text": "May"}, "Instruction (name): May"),
        ({"kind": "preference", "subject": "Coffee", "text": "coffee", "polarity": -1}, "Preference: not coffee"),
        ({"kind": "constraint", "text": "Be brief.", "condition": "by phone"}, "Constraint (by phone): Be brief."),
        ({"kind": "trait", "subject": "mood", "text": "calm", "condition": "at home"}, "Trait (mood, at home): calm"),
    ],
)
def test_an_item_is_a_sentence(direct: SupabaseMemory, item: dict[str, Any], sentence: str) -> None:
    direct.forget_user()
    direct.profile.remember(**item)
    long_term = Recording(str(direct.user_id), store=in_memory())
    promote(direct, long_term)
    assert texts(long_term.recall("", 10)) == [sentence]


def test_of_one_agent_or_all(direct: SupabaseMemory, user_id: str) -> None:
    for agent_id in (None, "coach", "cook"):
        direct.profile.remember("Be brief.", agent_id=agent_id)
    long_term = Recording(user_id)
    promote(direct, long_term, agent_id="coach")
    assert long_term.all() == ["Be brief.", "Fact (with coach): Be brief."]
    promote(direct, long_term)
    assert long_term.all() == ["Be brief.", "Fact (with coach): Be brief.", "Fact (with cook): Be brief."]


def test_two_items_that_read_alike_are_two_memories(direct: SupabaseMemory, user_id: str) -> None:
    first = direct.profile.remember("Be brief.", subject="by phone")
    direct.profile.remember("Be brief.", condition="by phone")
    long_term = Recording(user_id)
    assert len(set(promote(direct, long_term).stored)) == 2
    direct.profile.delete(first)
    assert len(forget_source(direct, long_term)) == 1
    assert [each.metadata.get("condition") for each in long_term.recall("", 10)] == ["by phone"]


def test_more_than_a_page(direct: SupabaseMemory, user_id: str, tell: Telling) -> None:
    for number in range(260):
        direct.profile.remember(f"number {number} is here")
    calls: list[int] = []

    class Counting(Recording):
        def remember(self, memories: Any) -> Remembered:
            listed = list(memories)
            calls.append(len(listed))
            return super().remember(listed)

    long_term = Counting(user_id)
    done = promote(direct, long_term)
    assert len(set(done.stored)) == 260
    assert calls == [100, 100, 60]
    assert len(long_term.all()) == 260
    assert promote(direct, long_term) == Remembered()
    assert len(calls) == 3
    direct.privacy.consent("profile", False, actor="maya")
    assert len(set(forget_source(direct, long_term))) == 260
    assert sorted(long_term.forgotten) == sorted(done.stored), "each once"
    assert long_term.all() == []
    assert tell.ledger() == []


def test_what_is_said_again_stays_one_memory(direct: SupabaseMemory, user_id: str, tell: Telling) -> None:
    tell("Ana lives in Cebu")
    long_term = Recording(user_id)
    done = promote(direct, long_term)
    tell("ana lives in cebu", thread_id="b", prefix="n")
    assert promote(direct, long_term) == Remembered()
    assert forget_source(direct, long_term) == []
    # The words of a message that is gone go, and what another says stands for it.
    direct.conversation("t").forget()
    assert forget_source(direct, long_term) == done.stored
    assert long_term.all() == []
    (anew,) = promote(direct, long_term).stored
    (recalled,) = long_term.recall("Ana")
    assert (recalled.id, recalled.thread_id, recalled.message_ids) == (anew, "b", ("n0",))
    assert anew not in done.stored
    assert tell.ledger() == [(True, 1)]


def test_messages_of_one_id_in_two_threads_are_told_apart(direct: SupabaseMemory, user_id: str, tell: Telling) -> None:
    tell("Ana lives in Cebu", thread_id="a")
    tell("Ana lives in Cebu", thread_id="b")
    long_term = Recording(user_id)
    done = promote(direct, long_term)
    (memory,) = long_term.recall("Ana")
    assert (memory.thread_id, memory.message_ids) == ("b", ("m0", "m0"))
    direct.conversation("b").forget_message("m0")
    assert forget_source(direct, long_term) == done.stored
    promote(direct, long_term)
    (memory,) = long_term.recall("Ana")
    assert (memory.thread_id, memory.message_ids) == ("a", ("m0",))


def test_what_was_forgotten_there_does_not_come_back(direct: SupabaseMemory, user_id: str, tell: Telling) -> None:
    tell(*FACTS)
    long_term = Recording(user_id)
    done = promote(direct, long_term)
    long_term.forget(done.stored)
    tell("it is cold", prefix="n")
    assert len(promote(direct, long_term).stored) == 1
    assert long_term.all() == ["it is cold"]


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_move_that_breaks_off_is_made_up_for(caller: Caller, user_id: str, tell: Telling, moment: str) -> None:
    memory = SupabaseMemory(caller.service._services.transport, user_id=user_id)
    tell(*FACTS)
    long_term = Recording(user_id)
    setattr(long_term, moment, crash)
    with pytest.raises(ConnectionError):
        await moved(caller, memory, long_term)
    assert len(long_term.all()) == (3 if moment == "after" else 0)
    assert [row[0] for row in tell.ledger()] == [False] * 3, "written down before it moved"
    setattr(long_term, moment, lambda: None)
    done = await moved(caller, memory, long_term)
    assert (len(done.stored), len(done.known)) == ((3, 0) if moment == "before" else (0, 3))
    assert long_term.all() == FACTS
    assert [row[0] for row in tell.ledger()] == [True] * 3
    assert await moved(caller, memory, long_term) == Remembered()


def test_what_is_forgotten_after_a_crash_is_found_all_the_same(
    direct: SupabaseMemory, user_id: str, tell: Telling
) -> None:
    tell(*FACTS)
    long_term = Recording(user_id)
    long_term.after = crash
    with pytest.raises(ConnectionError):
        promote(direct, long_term)
    assert long_term.all() == FACTS
    direct.conversation("t").forget()
    assert len(forget_source(direct, long_term)) == 3
    assert long_term.all() == []
    assert tell.ledger() == []


def test_what_a_crash_left_goes_where_more_was_said_since(direct: SupabaseMemory, user_id: str, tell: Telling) -> None:
    tell("Ana lives in Cebu")
    long_term = Recording(user_id)
    long_term.after = crash
    with pytest.raises(ConnectionError):
        promote(direct, long_term)
    long_term.after = lambda: None
    tell("Ana lives in Cebu", prefix="n")
    (anew,) = promote(direct, long_term).stored
    assert len(forget_source(direct, long_term)) == 1
    assert [each.id for each in long_term.recall("", 10)] == [anew]
    assert tell.ledger() == [(True, 2)]


def test_what_is_forgotten_while_it_moves_is_gone(direct: SupabaseMemory, user_id: str, tell: Telling) -> None:
    ids = tell("Ana lives in Cebu", "the code is 7")
    long_term = Recording(user_id)

    def forget() -> None:
        long_term.before = lambda: None
        direct.conversation("t").forget_message(ids[0])
        forget_source(direct, long_term)

    long_term.before = forget
    assert len(promote(direct, long_term).stored) == 1
    assert long_term.all() == ["the code is 7"]
    assert tell.ledger() == [(True, 1)]


def test_words_that_are_forgotten_while_two_move_them_are_gone(
    direct: SupabaseMemory, user_id: str, tell: Telling
) -> None:
    """The one read them before, the other what was left; what the first stores late does not stay."""
    ids = tell("ANA lives in Cebu", "Ana lives in Cebu")
    long_term = Recording(user_id)

    def overtake() -> None:
        long_term.before = lambda: None
        direct.conversation("t").forget_message(ids[1])
        forget_source(direct, long_term)
        assert len(promote(direct, long_term).stored) == 1

    long_term.before = overtake
    assert promote(direct, long_term) == Remembered()
    (memory,) = long_term.recall("", 10)
    assert (memory.quote, memory.message_ids) == ("ANA lives in Cebu", ("m0",))
    assert tell.ledger() == [(True, 1)]


def test_two_who_move_what_was_said_again_meanwhile_store_it_once(
    direct: SupabaseMemory, user_id: str, tell: Telling
) -> None:
    tell("Ana lives in Cebu")
    long_term = Recording(user_id)

    def overtake() -> None:
        long_term.before = lambda: None
        tell("Ana lives in Cebu", prefix="n")
        assert len(promote(direct, long_term).stored) == 1

    long_term.before = overtake
    assert promote(direct, long_term) == Remembered()
    assert len(list(long_term._store.search(long_term._namespace, limit=10))) == 1
    assert tell.ledger() == [(True, 2)]
    assert forget_source(direct, long_term) == []


async def test_two_who_move_at_once_move_each_item_once(conn_string: str, user_id: str, tell: Telling) -> None:
    async with SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory:
        tell(*[f"number {n} is here" for n in range(150)])
        long_term = StoreLongTerm(SupabaseStore(memory), user_id)
        await asyncio.gather(*(apromote(memory, long_term) for _ in range(4)))
        assert len(await long_term.arecall("", 1000)) == 150
        assert await aforget_source(memory, long_term) == []
    assert [row[0] for row in tell.ledger()] == [True] * 150


def test_each_long_term_memory_has_its_own_record(direct: SupabaseMemory, user_id: str, tell: Telling) -> None:
    tell(*FACTS)
    one, other = Recording(user_id, name="one"), Recording(user_id, name="other")
    assert len(promote(direct, one).stored) == 3
    assert len(promote(direct, other).stored) == 3
    direct.conversation("t").forget()
    assert len(forget_source(direct, one)) == 3
    assert (len(one.all()), len(other.all())) == (0, 3)
    assert len(forget_source(direct, other)) == 3


def test_into_a_vector_store_that_cannot_say_what_it_has(direct: SupabaseMemory, user_id: str, tell: Telling) -> None:
    tell(*FACTS)
    careless = Careless()
    long_term = VectorStoreLongTerm(careless, user_id)
    assert len(promote(direct, long_term).stored) == 3
    assert promote(direct, long_term) == Remembered()
    assert len(careless.inner.store) == 3
    direct.forget_user()
    assert len(forget_source(direct, long_term)) == 3
    assert careless.inner.store == {}


# What the profile does not hold any more


async def _supersede(caller: Caller, memory: SupabaseMemory, tell: Telling) -> None:
    await caller(memory.conversation("t").append, [HumanMessage("Now it is Manila.", id="n")])
    add_item(tell.sql, str(memory.user_id), "n", "Manila", subject="home")


async def _said(memory: SupabaseMemory) -> ProfileItem:
    (item,) = [each for each in await memory.profile.aread() if each.value == "Cebu"]
    return item


async def _correct(caller: Caller, memory: SupabaseMemory, tell: Telling) -> None:
    await caller(memory.profile.correct, await _said(memory), "Manila", actor="maya")


async def _delete(caller: Caller, memory: SupabaseMemory, tell: Telling) -> None:
    await caller(memory.profile.delete, await _said(memory), actor="maya")


async def _forget(caller: Caller, memory: SupabaseMemory, tell: Telling) -> None:
    await caller(memory.conversation("t").forget_message, "m0")


async def _edit(caller: Caller, memory: SupabaseMemory, tell: Telling) -> None:
    await caller(memory.conversation("t").append, [HumanMessage("From now on: Davao", id="m0")])


async def _expire(caller: Caller, memory: SupabaseMemory, tell: Telling) -> None:
    await caller(memory.conversation("t").append, [HumanMessage("And then?", id="n")])
    await caller(memory.forget_expired, retention=Retention(max_messages=1))


async def _opt_out(caller: Caller, memory: SupabaseMemory, tell: Telling) -> None:
    await caller(memory.conversation("t").opt_out, actor="maya")


async def _opt_out_topic(caller: Caller, memory: SupabaseMemory, tell: Telling) -> None:
    await caller(memory.privacy.opt_out, topic="Cebu", actor="maya")


async def _refuse(caller: Caller, memory: SupabaseMemory, tell: Telling) -> None:
    await caller(memory.privacy.consent, "profile", False, actor="maya")


async def _forget_user(caller: Caller, memory: SupabaseMemory, tell: Telling) -> None:
    await caller(memory.forget_user)


@pytest.mark.parametrize(
    ("change", "left"),
    [
        pytest.param(_supersede, ["(home): Manila", "a kiln"], id="superseded"),
        pytest.param(_correct, ["(home): Manila", "a kiln"], id="corrected"),
        pytest.param(_delete, ["a kiln"], id="deleted"),
        pytest.param(_forget, ["a kiln"], id="forgotten"),
        pytest.param(_edit, ["a kiln"], id="edited"),
        pytest.param(_expire, ["a kiln"], id="expired"),
        pytest.param(_opt_out, ["a kiln"], id="opted out"),
        pytest.param(_opt_out_topic, ["a kiln"], id="a topic"),
        pytest.param(_refuse, [], id="refused"),
        pytest.param(_forget_user, [], id="everything"),
    ],
)
@pytest.mark.parametrize("breaks", [False, True], ids=["", "after a crash"])
async def test_what_the_profile_does_not_hold_goes_once(
    caller: Caller, user_id: str, tell: Telling, change: Any, left: list[str], breaks: bool
) -> None:
    memory = SupabaseMemory(caller.service._services.transport, user_id=user_id)
    tell("Cebu", subject="home")
    memory.profile.remember("a kiln")
    long_term = Recording(user_id)
    assert len((await moved(caller, memory, long_term)).stored) == 2
    ids = {each.text: str(each.id) for each in long_term.recall("", 10)}
    assert await gone(caller, memory, long_term) == [], "nothing has gone yet"
    await change(caller, memory, tell)
    going = sorted(ids[text] for text in ids if "Cebu" in text or not left)
    assert sorted(await gone(caller, memory, long_term, dry_run=True)) == going
    if breaks:  # it is gone there, and that is not written down
        long_term.after_forgetting = crash
        with pytest.raises(ConnectionError):
            await gone(caller, memory, long_term)
        long_term.after_forgetting = lambda: None
    assert sorted(await gone(caller, memory, long_term)) == going
    assert await gone(caller, memory, long_term) == []
    await moved(caller, memory, long_term)
    assert long_term.all() == sorted(each if each == "a kiln" else f"Fact {each}" for each in left)
    assert sorted(long_term.forgotten) == sorted(going * (2 if breaks else 1))
    assert len(tell.ledger()) == len(left)


def test_what_a_person_confirmed_stays_without_the_words_that_are_gone(
    direct: SupabaseMemory, user_id: str, tell: Telling
) -> None:
    tell("Ana lives in Cebu")
    (item,) = direct.profile.read()
    direct.profile.confirm(item)
    long_term = Recording(user_id)
    promote(direct, long_term)
    direct.conversation("t").forget()
    assert len(forget_source(direct, long_term)) == 1
    promote(direct, long_term)
    (memory,) = long_term.recall("", 10)
    assert (memory.quote, memory.thread_id, memory.message_ids) == (None, None, ())


def test_what_holds_again_after_a_crash_is_there_again(direct: SupabaseMemory, user_id: str, tell: Telling) -> None:
    """It had gone there, and that was not written down."""
    item = direct.profile.remember("Cebu", subject="home")
    long_term = Recording(user_id)
    (first,) = promote(direct, long_term).stored
    other = direct.profile.correct(item, "Manila")
    long_term.after_forgetting = crash
    with pytest.raises(ConnectionError):
        forget_source(direct, long_term)
    long_term.after_forgetting = lambda: None
    direct.profile.delete(other)
    direct.profile.remember("Cebu", subject="home")
    promote(direct, long_term)
    forget_source(direct, long_term)
    promote(direct, long_term)
    assert texts(long_term.recall("", 10)) == ["Fact (home): Cebu"]
    assert tell.ledger() == [(True, 0)]
    assert first in long_term.forgotten


def test_an_edit_that_says_the_same_takes_nothing_back(direct: SupabaseMemory, user_id: str, tell: Telling) -> None:
    ids = tell(*FACTS)
    long_term = Recording(user_id)
    promote(direct, long_term)
    direct.conversation("t").append([HumanMessage(f"As I said: {FACTS[0]}", id=ids[0])])
    assert forget_source(direct, long_term) == []
    assert long_term.all() == FACTS


# Whose they are


async def test_one_users_profile_never_reaches_anothers_long_term_memory(
    caller: Caller, user_id: str, conn_string: str, sql: psycopg.Connection, tell: Telling
) -> None:
    stranger = f"{user_id}-stranger"
    tell(*FACTS)
    with SupabaseMemory.from_conn_string(conn_string, user_id=stranger) as server:
        Telling(server, sql)("zoe is 9")
    mine, theirs = Recording(user_id), Recording(stranger)
    bearer = caller.as_token(token(user_id=stranger))
    for verb in (moved, gone):
        # Named and consistent: row level security has the last word.
        assert await verb(caller, bearer.for_user(user_id), mine) in (Remembered(), [])
        for memory in (bearer, caller.service.for_user(stranger)):
            with pytest.raises(InvalidInputError, match="different users"):
                await verb(caller, memory, mine)
    assert mine.all() == []
    assert tell.ledger() == []
    assert len((await moved(caller, bearer, theirs)).stored) == 1
    assert len((await moved(caller, caller.service, mine)).stored) == 3, (
        "a server's memory takes the long-term memory's user"
    )
    assert (mine.all(), theirs.all()) == (FACTS, ["zoe is 9"])
    # What a stranger says of the record changes nothing in it.
    before = tell.ledger()
    row = sql.execute(
        "select memory_id, item_id from memory.promotions where user_id = %s limit 1", [user_id]
    ).fetchone()
    assert row is not None
    forged = {"p_target": mine.name, "p_user_id": user_id}
    perform = bearer._services.transport.aperform if caller.color == "async" else None
    for call in (
        Call("memory_promote", {**forged, "p_items": [{"item_id": str(row[1]), "evidence": []}]}),
        Call("memory_promote", {**forged, "p_items": [{"memory_id": str(row[0])}], "p_moved": True}),
        Call("memory_withdrawn", {**forged, "p_gone": [str(row[0])]}),
    ):
        answer = await perform(call) if perform else bearer._services.transport.perform(call)
        assert answer in ([], {"user_id": user_id, "memories": []})
    assert tell.ledger() == before
    anonymous = caller.as_token(token("anon", user_id))
    for verb in (moved, gone):
        with pytest.raises(AccessError):
            await verb(caller, anonymous.for_user(user_id), mine)


def test_a_space_has_no_profile_that_could_move(conn_string: str, user_id: str) -> None:
    space = f"space:{uuid4()}"
    with SupabaseMemory.from_conn_string(conn_string) as server:
        for verb in (promote, forget_source):
            with pytest.raises(InvalidInputError, match="no profile"):
                verb(server, Recording(space))


def test_nothing_of_the_content_is_in_the_record(direct: SupabaseMemory, user_id: str, tell: Telling) -> None:
    tell("the secret word is zircon")
    promote(direct, Recording(user_id))
    (row,) = tell.sql.execute("select to_jsonb(p) from memory.promotions p where user_id = %s", [user_id]).fetchall()
    assert "zircon" not in json.dumps(row[0])


def test_a_store_that_gives_the_same_page_for_every_offset_is_not_asked_for_ever() -> None:
    searches: list[SearchOp] = []

    class Unpaged(InMemoryStore):
        def batch(self, ops: Any) -> list[Result]:
            listed = [op._replace(offset=0) if isinstance(op, SearchOp) else op for op in ops]
            searches.extend(op for op in listed if isinstance(op, SearchOp))
            assert len(searches) < 10
            return super().batch(listed)

    store = Unpaged()
    for number in range(100):  # another user's, in the same namespace
        store.put(("long_term", "maya"), str(number), {"text": "kiln", "kind": "fact", "user_id": "ben"})
    assert StoreLongTerm(store, "maya").recall("kiln", limit=5) == []
    assert len(searches) == 2


async def test_a_store_is_asked_in_batches() -> None:
    sizes: list[int] = []

    class Asked(InMemoryStore):
        def batch(self, ops: Any) -> list[Result]:
            listed: list[Op] = list(ops)
            sizes.append(len(listed))
            return super().batch(listed)

    memory = StoreLongTerm(Asked(), "maya")
    memory.remember(Memory(f"fact {n}") for n in range(250))
    assert sizes == [100, 100, 100, 100, 50, 50]
    item = memory._store.get(("long_term", "maya"), str(Memory("fact 3").with_owner("maya").id))
    assert isinstance(item, Item)
    assert item.value["user_id"] == "maya"


async def test_a_move_that_fails_is_a_cause_of_health(user_id: str) -> None:
    """Nothing listens at the address."""
    target = StoreLongTerm(InMemoryStore(), user_id)

    def away() -> SupabaseMemory:
        url = "postgresql://postgres@127.0.0.1:1/postgres"
        return SupabaseMemory.from_conn_string(url, user_id=user_id, model=None, retry=NO_RETRY)

    for verb in (promote, forget_source, apromote, aforget_source):
        async with away() as memory:
            with pytest.raises(UnavailableError):
                made = verb(memory, target)
                await made if inspect.isawaitable(made) else None
            assert [(each.part, each.error) for each in memory.health().causes] == [("database", "UnavailableError")]


async def test_a_long_term_memory_that_fails_is_a_cause_of_health_until_it_answers(
    caller: Caller, user_id: str, tell: Telling, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = SupabaseMemory(caller.service._services.transport, user_id=user_id)
    tell(*FACTS)

    def away() -> None:
        raise ConnectionError("It was about Cebu.")

    def causes() -> list[tuple[str, str, str, int]]:
        return [(each.part, each.error, each.reason, each.times) for each in memory.health().causes]

    long_term = Recording(user_id)
    long_term.before = away
    for times in (1, 2):
        with pytest.raises(ConnectionError):
            await moved(caller, memory, long_term)
        assert causes() == [("long term", "ConnectionError", "ConnectionError.", times)]
    long_term.before = lambda: None
    await moved(caller, memory, long_term)
    assert causes() == []

    await caller(memory.conversation("t").forget)
    with monkeypatch.context() as patch:
        patch.setattr(long_term, "forget", lambda _: away())
        with pytest.raises(ConnectionError):
            await gone(caller, memory, long_term)
    assert causes() == [("long term", "ConnectionError", "ConnectionError.", 1)]
    assert len(await gone(caller, memory, long_term)) == 3
    assert causes() == []
    told = [record.getMessage() for record in caplog.records if record.name.endswith("health")]
    assert [line.split()[:4] for line in told] == [["The", "long-term", "memory", "failed:"]] * 2
    assert "Cebu" not in caplog.text


def test_steps_are_performed_by_their_drivers_alone() -> None:
    """So that `health` knows of each that fails: nobody beside it hands a call to its transport."""
    package = Path(promotion.__file__).parents[1]
    calls = re.compile(r"transport\.a?perform\(|\bdoor\.a?perform\(")
    found = [str(path.relative_to(package)) for path in package.rglob("*.py") if calls.search(path.read_text())]
    assert found == ["effects.py"]
