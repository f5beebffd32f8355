"""Summaries are found by meaning and by words, across a user's conversations, and never across users."""

from __future__ import annotations

import asyncio
import logging
import re
import zlib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from langchain_core.embeddings import Embeddings
from langchain_core.messages import BaseMessage, HumanMessage

from langchain_supabase_memory import Retention, SummaryPolicy, SupabaseMemory
from langchain_supabase_memory.adapters.embedder import EmbeddingModel
from langchain_supabase_memory.effects import Call
from langchain_supabase_memory.errors import (
    AccessError,
    ConfigurationError,
    EmbeddingError,
    InvalidInputError,
    MigrationConflictError,
)
from langchain_supabase_memory.settings import NO_RETRY
from langchain_supabase_memory.values import IndexResult, RecalledSummary
from tests.conftest import Caller
from tests.counting import RecordingTransport
from tests.memory_keywords import memory_keywords
from tests.owners import conversation_of
from tests.services.data_api import token

KILN = "Maya repaired the thermocouple of her kiln and fired porcelain at cone 6."
BOAT = "The sailing boat needs a new mast before the regatta in August."
TAXES = "Invoices for the tax office are due at the end of March."
POLICY = SummaryPolicy(keep_messages=1)

MEANINGS = (
    {"kiln", "thermocouple", "porcelain", "oven", "pottery", "fired", "ceramics"},
    {"boat", "mast", "regatta", "sailing", "ship", "voyage"},
    {"tax", "invoices", "money", "finance"},
)


class Topics(Embeddings):
    """Texts about the same things are near each other, whatever their words. Fails while it is `broken`."""

    def __init__(self, model: str = "topics", width: int = 16) -> None:
        self.model = model
        self.width = width
        self.asked: list[str] = []
        self.broken = False
        self.during: Any = None

    def _vector(self, text: str) -> list[float]:
        if self.broken:
            raise RuntimeError(f"cannot embed {text}")
        self.asked.append(text)
        words = set(re.findall(r"\w+", text.lower()))
        vector = [0.05 + len(words & meant) for meant in MEANINGS]
        return [*vector, *((zlib.crc32(text.encode()) >> bit) % 2 * 0.01 for bit in range(self.width - len(vector)))]

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        if self.during is not None:
            during, self.during = self.during, None
            during()
        return [self._vector(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self._vector(text)


def patient(embeddings: Embeddings) -> EmbeddingModel:
    return EmbeddingModel(embeddings, attempts=1, wait_seconds=0)


def with_settings(memory: SupabaseMemory, embeddings: Embeddings | None = None, **settings: Any) -> SupabaseMemory:
    """The same caller with other settings."""
    model = None if embeddings is None else patient(embeddings)
    return SupabaseMemory(
        memory._services.transport, user_id=memory.user_id, embeddings=model, **memory_keywords(settings)
    )


async def add_summary_as(caller: Caller, memory: SupabaseMemory, summary: str, thread_id: str, **who: Any) -> None:
    """A conversation whose newest summary says this."""
    where = {"thread_id": thread_id, **who}
    await caller(conversation_of(memory, **where).append, [HumanMessage("word " * 20) for _ in range(3)])
    result = await caller(conversation_of(memory, **where).summaries.make, policy=POLICY, model=lambda _: summary)
    assert len(result.segments) == 1, result


async def add_three_summaries(caller: Caller, memory: SupabaseMemory, **who: Any) -> None:
    for thread_id, summary in (("kiln", KILN), ("boat", BOAT), ("taxes", TAXES)):
        await add_summary_as(caller, memory, summary, thread_id, **who)


def threads(found: Sequence[RecalledSummary]) -> list[str]:
    return [each.thread_id for each in found]


@pytest.fixture
def direct(conn_string: str, user_id: str) -> Iterator[SupabaseMemory]:
    with SupabaseMemory.from_conn_string(
        conn_string, user_id=user_id, embeddings=patient(Topics()), retry=NO_RETRY
    ) as memory:
        yield memory


def add_summary(memory: SupabaseMemory, summary: str, thread_id: str = "t", **who: Any) -> None:
    where = {"thread_id": thread_id, **who}
    conversation_of(memory, **where).append([HumanMessage("word " * 60) for _ in range(3)])
    result = conversation_of(memory, **where).summaries.make(policy=POLICY, model=lambda _: summary)
    assert len(result.segments) == 1, result


def vectors(sql: psycopg.Connection, user_id: str) -> list[tuple[str, int, str, int]]:
    return sql.execute(
        "select c.thread_id, e.number, e.model, e.dimensions from memory.summary_embeddings e"
        " join memory.conversations c on c.user_id = e.user_id and c.id = e.conversation_id"
        " where e.user_id = %s order by 1, 2, 3",
        [user_id],
    ).fetchall()


# Finding


async def test_a_conversation_is_found_by_what_its_summary_means(caller: Caller, user_id: str) -> None:
    topics = Topics()
    memory = with_settings(caller.service, topics)
    await add_three_summaries(caller, memory, user_id=user_id)
    for thread_id in ("kiln", "boat", "taxes"):
        assert await caller(memory.for_user(user_id).conversation(thread_id).summaries.index) == 1
        assert await caller(memory.for_user(user_id).conversation(thread_id).summaries.index) == 0
    assert topics.asked == [KILN, BOAT, TAXES]
    first, *rest = await caller(memory.for_user(user_id).recall_summaries, "a voyage by ship")
    assert (first.thread_id, first.agent_id, first.number, first.content) == ("boat", "default", 1, BOAT)
    assert (first.from_sequence, first.to_sequence) == (0, 1)
    assert first.similarity > 0.9 > max(each.similarity for each in rest)
    assert first.score == pytest.approx(0.5), "it has none of the words"
    assert first.score_parts == pytest.approx({"meaning": 0.5})
    for each in (first, *rest):
        assert sum(each.score_parts.values()) == pytest.approx(each.score)
    assert abs(datetime.now(UTC) - first.created_at) < timedelta(minutes=5)
    assert len(rest) == 2
    assert threads(await caller(memory.for_user(user_id).recall_summaries, "pottery oven", limit=1)) == ["kiln"]
    near = await caller(memory.for_user(user_id).recall_summaries, "an oven", min_similarity=0.9)
    assert threads(near) == ["kiln"]
    assert topics.asked[3:] == ["a voyage by ship", "pottery oven", "an oven"]


async def test_without_an_embedder_it_is_found_by_any_of_the_words(caller: Caller, user_id: str) -> None:
    await add_three_summaries(caller, caller.service, user_id=user_id)
    memory = with_settings(caller.service)
    found = await caller(memory.for_user(user_id).recall_summaries, "Which regattas, and which invoice?")
    assert sorted(threads(found)) == ["boat", "taxes"]
    assert {each.similarity for each in found} == {None}
    assert await caller(memory.for_user(user_id).recall_summaries, "zirconium") == []
    most = await caller(memory.for_user(user_id).recall_summaries, "regatta in August, invoices")
    assert threads(most) == ["boat", "taxes"]
    assert most[0].score == pytest.approx(0.5)
    assert most[0].score_parts == pytest.approx({"words": 0.5})
    assert threads(
        await caller(memory.for_user(user_id).recall_summaries, "regatta August invoices", min_similarity=0.9)
    ) == ["boat"]


async def test_one_call_beside_the_embedding(caller: Caller, user_id: str) -> None:
    await add_summary_as(caller, caller.service, KILN, "kiln", user_id=user_id)
    transport: Any = RecordingTransport(caller.service._services.transport)
    memory = SupabaseMemory(transport, user_id=user_id, embeddings=Topics())
    assert threads(await caller(memory.recall_summaries, "kiln")) == ["kiln"]
    assert transport.calls == ["memory_recall_summaries"]


def test_words_and_meaning_are_fused_half_and_half(direct: SupabaseMemory) -> None:
    add_summary(direct, KILN, "kiln")
    add_summary(direct, BOAT, "boat")
    direct.work.index_due()
    # The word is in one, the meaning in the other: neither wins alone, both together do.
    both = {each.thread_id: each for each in direct.recall_summaries("ship thermocouple voyage")}
    assert both["boat"].score == pytest.approx(0.5)
    assert both["kiln"].score == pytest.approx(0.5)
    best = direct.recall_summaries("sailing voyage")[0]
    assert best.thread_id == "boat"
    assert best.score == pytest.approx(1.0)


def test_only_the_newest_segment_of_a_conversation_is_searched(direct: SupabaseMemory, sql: psycopg.Connection) -> None:
    user_id = str(direct.user_id)
    add_summary(direct, KILN)
    assert direct.conversation("t").summaries.index() == 1
    add_summary(direct, BOAT)
    found = direct.recall_summaries("thermocouple boat")
    assert [(each.number, each.content) for each in found] == [(2, BOAT)]
    assert found[0].similarity is None, "not embedded yet: found by its words"
    assert direct.recall_summaries("thermocouple") == []
    assert direct.conversation("t").summaries.index() == 1
    assert vectors(sql, user_id) == [("t", 2, "topics", 16)], "the vector of what is in it now has gone"
    assert direct.recall_summaries("ship")[0].similarity is not None


def test_a_missing_vector_costs_the_meaning_and_not_the_conversation(direct: SupabaseMemory) -> None:
    add_summary(direct, KILN, "kiln")
    direct.work.index_due()
    add_summary(direct, BOAT, "boat")
    found = direct.recall_summaries("regatta")
    assert sorted(threads(found)) == ["boat", "kiln"]
    assert {each.thread_id: each.similarity is None for each in found} == {"kiln": False, "boat": True}
    assert threads(direct.recall_summaries("regatta", min_similarity=0.99)) == ["boat"]


def test_a_blank_question_lists_the_newest(direct: SupabaseMemory) -> None:
    for thread_id, summary in (("kiln", KILN), ("boat", BOAT), ("taxes", TAXES)):
        add_summary(direct, summary, thread_id)
    direct.work.index_due()
    assert threads(direct.recall_summaries("  ")) == ["taxes", "boat", "kiln"]
    assert threads(direct.recall_summaries("", limit=2)) == ["taxes", "boat"]


def test_of_one_agent(direct: SupabaseMemory) -> None:
    add_summary(direct, KILN, "t")
    add_summary(direct, KILN, "t", agent_id="other")
    direct.work.index_due()
    assert sorted(each.agent_id for each in direct.recall_summaries("kiln")) == ["default", "other"]
    assert [each.agent_id for each in direct.recall_summaries("kiln", agent_id="other")] == ["other"]


def test_the_words_are_reduced_in_the_summarys_own_language(direct: SupabaseMemory, sql: psycopg.Connection) -> None:
    plain = with_settings(direct)
    spanish = (
        "María ha comprado un horno nuevo para la cerámica y le ha contado a su hermana que las piezas de porcelana que"
        " había hecho para la exposición se rompieron, porque el termopar del horno estaba estropeado y nadie lo había"
        " revisado desde el invierno, por lo que ahora quiere repararlo cuanto antes."
    )
    add_summary(plain, spanish, "es")
    add_summary(plain, "玛雅修好了窑炉的热电偶", "zh")
    assert sql.execute(
        "select c.thread_id, s.language from memory.conversation_summaries s join memory.conversations c"
        " on c.user_id = s.user_id and c.id = s.conversation_id where s.user_id = %s order by 1",
        [plain.user_id],
    ).fetchall() == [("es", "spanish"), ("zh", "simple")]
    assert threads(plain.recall_summaries("exposiciones")) == ["es"], "one stem"
    assert threads(plain.recall_summaries("热电偶坏了吗")) == ["zh"], "pairs of characters"
    # Summaries of before there were words beside them are found all the same.
    sql.execute(
        "update memory.conversation_summaries set lexemes = null, language = null where user_id = %s", [plain.user_id]
    )
    assert threads(plain.recall_summaries("porcelana")) == ["es"]


@pytest.mark.parametrize(
    "text", ["nul\0 and \ud800 half", "🙂" * 5_000, "' or true --", "word " * 50_000, '\\ " {} ::x']
)
async def test_any_question_is_answered(caller: Caller, user_id: str, text: str) -> None:
    memory = with_settings(caller.service, Topics())
    await add_summary_as(caller, memory, KILN, "kiln", user_id=user_id)
    await caller(memory.for_user(user_id).conversation("kiln").summaries.index)
    assert threads(await caller(memory.for_user(user_id).recall_summaries, text)) == ["kiln"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"limit": 0},
        {"limit": 2000},
        {"limit": True},
        {"time_range": "year"},
        {"time_zone": "Mars"},
        {"min_similarity": 2},
    ],
)
def test_what_is_none_of_the_choices_is_refused(direct: SupabaseMemory, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        direct.recall_summaries("kiln", **wrong)
    with pytest.raises(InvalidInputError):
        direct.recall_summaries(7)  # type: ignore[arg-type]


# Age


def aged(sql: psycopg.Connection, user_id: str, thread_id: str, days: float) -> None:
    changed = sql.execute(
        "update memory.conversation_summaries s set created_at = now() - %s * interval '1 day'"
        " from memory.conversations c where c.user_id = s.user_id and c.id = s.conversation_id and s.user_id = %s"
        " and c.thread_id = %s",
        [days, user_id, thread_id],
    ).rowcount
    assert changed


def test_a_summary_is_found_for_ninety_days(direct: SupabaseMemory, sql: psycopg.Connection) -> None:
    user_id = str(direct.user_id)
    add_summary(direct, KILN, "kiln")
    direct.work.index_due()
    aged(sql, user_id, "kiln", 89.9)
    assert threads(direct.recall_summaries("kiln")) == ["kiln"]
    aged(sql, user_id, "kiln", 90.1)
    assert direct.recall_summaries("kiln") == []
    forever = with_settings(direct, Topics(), retention=Retention(max_summary_age=None))
    assert threads(forever.recall_summaries("kiln")) == ["kiln"]
    week = with_settings(direct, Topics(), retention=Retention(max_summary_age=timedelta(days=7)))
    aged(sql, user_id, "kiln", 6)
    assert threads(week.recall_summaries("kiln")) == ["kiln"]
    aged(sql, user_id, "kiln", 8)
    assert week.recall_summaries("kiln") == []
    # And with the next clean-up it is gone, with its vector.
    assert len(vectors(sql, user_id)) == 1
    week.forget_expired()
    assert forever.recall_summaries("kiln") == []
    assert vectors(sql, user_id) == []


def test_of_a_time(direct: SupabaseMemory, sql: psycopg.Connection) -> None:
    user_id = str(direct.user_id)
    for thread_id, days in (("now", 0), ("days", 5), ("weeks", 20), ("months", 60)):
        add_summary(direct, KILN, thread_id)
        aged(sql, user_id, thread_id, days)
    direct.work.index_due()

    def within(range_: Any) -> set[str]:
        return set(threads(direct.recall_summaries("kiln", time_range=range_)))

    assert within("week") == {"now", "days"}
    assert within("month") == {"now", "days", "weeks"}
    assert within("all") == {"now", "days", "weeks", "months"}
    now = datetime.now(UTC)
    assert within((now - timedelta(days=30), now - timedelta(days=10))) == {"weeks"}
    assert within((None, now - timedelta(days=10))) == {"weeks", "months"}


# Embedding


async def test_what_is_due_is_embedded_with_the_chunks(caller: Caller, user_id: str) -> None:
    topics = Topics()
    memory = SupabaseMemory(caller.service._services.transport, user_id=user_id, embeddings=patient(topics))
    await add_summary_as(caller, memory, KILN, "both")
    await add_summary_as(caller, memory, BOAT, "summary alone")
    await caller(memory.conversation("summary alone").index)
    asked = len(topics.asked)
    done = {key.thread_id: result for key, result in (await caller(memory.work.index_due)).items()}
    assert done == {
        "both": IndexResult(2, chunks=3, summaries=1),
        "summary alone": IndexResult(2, chunks=0, summaries=1),
    }
    assert len(topics.asked) == asked + 5
    assert await caller(memory.work.index_due) == {}
    assert len(topics.asked) == asked + 5
    assert all(each.similarity is not None for each in await caller(memory.recall_summaries, "boat"))


def test_more_summaries_than_a_page(direct: SupabaseMemory, sql: psycopg.Connection) -> None:
    user_id = str(direct.user_id)
    add_summary(direct, KILN, "t0")
    direct.work.index_due()
    # As many conversations as two pages and some, by SQL, because only their number matters.
    sql.execute(
        "with one as (select * from memory.conversations where user_id = %(user)s), made as ("
        " insert into memory.conversations (user_id, thread_id, next_sequence, summarized_through, indexed_through)"
        " select user_id, 't' || n, 1, 1, 0 from one, generate_series(1, 119) n returning user_id, id)"
        " insert into memory.conversation_summaries (user_id, conversation_id, number, from_sequence, to_sequence,"
        " message_ids, content, characters, tokens, covered_characters, covered_tokens)"
        " select user_id, id, 1, 0, 1, '{m}', 'about ' || id, length('about ' || id), 2, 9, 2 from made",
        {"user": user_id},
    )
    done = direct.work.index_due()
    assert sum(result.summaries for result in done.values()) == 119
    assert len(vectors(sql, user_id)) == 120
    assert len(direct.recall_summaries("kiln", limit=1000)) == 120


def test_without_an_embedder_nothing_is_embedded_and_that_is_said_to_who_asks_for_it(direct: SupabaseMemory) -> None:
    plain = with_settings(direct)
    add_summary(plain, KILN)
    assert all(result.summaries == 0 for result in plain.work.index_due().values())
    with pytest.raises(ConfigurationError, match="no embedder"):
        plain.conversation("t").summaries.index()


async def test_an_embedder_that_fails_changes_nothing(
    caller: Caller, user_id: str, sql: psycopg.Connection, caplog: pytest.LogCaptureFixture
) -> None:
    topics = Topics()
    memory = SupabaseMemory(caller.service._services.transport, user_id=user_id, embeddings=patient(topics))
    await add_summary_as(caller, memory, KILN, "t")
    await caller(memory.conversation("t").index)
    topics.broken = True
    with pytest.raises(EmbeddingError):
        await caller(memory.conversation("t").summaries.index)
    (result,) = (await caller(memory.work.index_due)).values()
    assert (result.failed, result.summaries) == ("The embedder failed (RuntimeError).", 0)
    assert vectors(sql, user_id) == []
    with caplog.at_level(logging.ERROR):
        assert threads(await caller(memory.recall_summaries, "the secret thermocouple")) == ["t"], "by its words"
    assert "keywords only" in caplog.text
    assert "thermocouple" not in caplog.text
    topics.broken = False
    (result,) = (await caller(memory.work.index_due)).values()
    assert (result.failed, result.summaries) == (None, 1)


async def test_a_vector_is_not_stored_for_what_has_changed_meanwhile(
    caller: Caller, user_id: str, conn_string: str, sql: psycopg.Connection
) -> None:
    topics = Topics()
    memory = SupabaseMemory(caller.service._services.transport, user_id=user_id, embeddings=patient(topics))
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as other:
        # The summary is taken back, because a message was forgotten.
        await add_summary_as(caller, memory, KILN, "t")
        first = other.conversation("t").read(columns=["message_id"])[0]

        def forget() -> None:
            other.conversation("t").forget_message(str(first.message_id))

        topics.during = forget
        assert await caller(memory.conversation("t").summaries.index) == 0
        # Another of the same number takes its place.
        await add_summary_as(caller, memory, KILN, "u")
        second = other.conversation("u").read(columns=["message_id"])[0]

        def replace() -> None:
            other.conversation("u").forget_message(str(second.message_id))
            add_summary(other, BOAT, "u")

        topics.during = replace
        assert await caller(memory.conversation("u").summaries.index) == 0
        assert [each.number for each in other.conversation("u").summaries.list()] == [1]
        # A newer one follows.
        await add_summary_as(caller, memory, KILN, "v")
        topics.during = lambda: add_summary(other, TAXES, "v")
        assert await caller(memory.conversation("v").summaries.index) == 0
        assert vectors(sql, user_id) == []
        # The whole conversation goes.
        await add_summary_as(caller, memory, KILN, "w")
        topics.during = lambda: other.conversation("w").forget()
        assert await caller(memory.conversation("w").summaries.index) == 0
    assert vectors(sql, user_id) == []
    assert await caller(memory.conversation("v").summaries.index) == 1
    assert vectors(sql, user_id) == [("v", 2, "topics", 16)]


def test_one_page_of_which_one_has_gone_keeps_the_others(direct: SupabaseMemory, sql: psycopg.Connection) -> None:
    topics = Topics()
    memory = with_settings(direct, topics)
    for thread_id in ("a", "b", "c"):
        add_summary(memory, KILN, thread_id)
    memory.work.index_due()
    sql.execute("delete from memory.summary_embeddings where user_id = %s", [direct.user_id])
    topics.during = lambda: direct.conversation("b").forget()
    done = {key.thread_id: result.summaries for key, result in memory.work.index_due().items()}
    assert done == {"a": 1, "b": 0, "c": 1}


async def test_two_at_once_embed_each_summary_once(conn_string: str, user_id: str, sql: psycopg.Connection) -> None:
    async with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, embeddings=patient(Topics())) as memory:
        for number in range(5):
            add_summary(memory, KILN, f"t{number}")
        await asyncio.gather(*(memory.work.aindex_due() for _ in range(4)))
    assert len(vectors(sql, user_id)) == 5


# Another embedder


def test_another_embedder_finds_by_words_until_it_has_embedded(direct: SupabaseMemory, sql: psycopg.Connection) -> None:
    user_id = str(direct.user_id)
    add_summary(direct, KILN, "kiln")
    add_summary(direct, BOAT, "boat")
    direct.work.index_due()
    other = with_settings(direct, Topics("other", 24))
    found = other.recall_summaries("mast")
    assert [(each.thread_id, each.similarity) for each in found] == [("boat", None)]
    assert sorted(key.thread_id for key, result in other.work.index_due().items() if result.summaries) == [
        "boat",
        "kiln",
    ]
    assert all(each.similarity is not None for each in other.recall_summaries("mast"))
    assert [row[2:] for row in vectors(sql, user_id)] == [("other", 24), ("topics", 16)] * 2, "both are in use"
    assert direct.recall_summaries("ship")[0].similarity is not None
    # The next summary leaves nothing of the one before it, of either.
    add_summary(direct, TAXES, "kiln")
    direct.conversation("kiln").summaries.index()
    assert [row[:3] for row in vectors(sql, user_id) if row[0] == "kiln"] == [("kiln", 2, "topics")]


def test_the_same_name_with_another_width_is_refused(direct: SupabaseMemory) -> None:
    add_summary(direct, KILN)
    direct.work.index_due()
    wider = with_settings(direct, Topics("topics", 32))
    with pytest.raises(MigrationConflictError, match="16 dimensions|another") as caught:
        wider.recall_summaries("kiln")
    assert caught.value.code == "PT409"


# Whose they are


async def test_nobody_finds_another_users_summaries(caller: Caller, user_id: str, sql: psycopg.Connection) -> None:
    stranger = f"{user_id}-stranger"
    memory = with_settings(caller.service, Topics())
    await add_summary_as(caller, memory, KILN, "kiln", user_id=user_id)
    await add_summary_as(caller, memory, BOAT, "boat", user_id=stranger)
    (result,) = [
        r for k, r in (await caller(memory.for_user(stranger).work.index_due)).items() if k.user_id == stranger
    ]
    assert result.summaries == 1
    assert vectors(sql, user_id) == [], "only theirs was embedded"
    bearer = SupabaseMemory(caller.as_token(token(user_id=stranger))._services.transport, embeddings=patient(Topics()))
    for asking in (memory.for_user(stranger), bearer, bearer.for_user(stranger)):
        assert threads(await caller(asking.recall_summaries, "thermocouple kiln boat")) == ["boat"]
    # Naming somebody else is no way, with every id guessed right.
    assert await caller(bearer.for_user(user_id).recall_summaries, "thermocouple kiln") == []
    assert await caller(bearer.for_user(user_id).conversation("kiln").summaries.index) == 0
    assert set(await caller(bearer.work.index_due)) <= {bearer._services.key("boat", stranger)}
    segment = (await caller(memory.for_user(user_id).conversation("kiln").summaries.list))[0]
    row = sql.execute("select id from memory.conversations where user_id = %s", [user_id]).fetchone()
    assert row is not None
    ids = {"user_id": user_id, "conversation_id": str(row[0]), "number": 1, "id": segment.id, "embedding": [1.0] * 16}
    forged = Call("memory_embed_summaries", {"p_model": "topics", "p_vectors": [ids]})
    transport = bearer._services.transport
    assert (await transport.aperform(forged) if caller.color == "async" else transport.perform(forged)) == []
    assert vectors(sql, user_id) == []
    # Who may, does: the call itself is right.
    own = caller.as_token(token(user_id=user_id))._services.transport
    assert len(await own.aperform(forged) if caller.color == "async" else own.perform(forged)) == 1
    assert vectors(sql, user_id) == [("kiln", 1, "topics", 16)]


async def test_nobody_and_the_anonymous_are_refused(caller: Caller, user_id: str) -> None:
    await add_summary_as(caller, caller.service, KILN, "kiln", user_id=user_id)
    anonymous = caller.as_token(token("anon", user_id)).for_user(user_id)
    for verb, arguments in ((anonymous.recall_summaries, ["kiln"]), (anonymous.work.index_due, [])):
        with pytest.raises(AccessError):
            await caller(verb, *arguments)
    with pytest.raises(InvalidInputError, match="No user is named"):
        await caller(with_settings(caller.service).recall_summaries, "kiln")
    with pytest.raises((InvalidInputError, AccessError), match=r"No user id|name no user"):
        await caller(caller.as_token(token()).recall_summaries, "kiln")


@pytest.mark.parametrize(
    ("statement", "outcome"),
    [
        ("select * from memory.summary_embeddings where user_id = %(owner)s", "0 rows"),
        ("update memory.summary_embeddings set user_id = %(me)s where user_id = %(owner)s", "0 rows"),
        ("delete from memory.summary_embeddings where user_id = %(owner)s", "0 rows"),
        (
            "insert into memory.summary_embeddings values (%(owner)s, %(conversation)s, 0, 1, 'forged', 1, '[1]')",
            "42501",
        ),
        ("insert into memory.summary_embeddings values (%(me)s, %(conversation)s, 0, 1, 'forged', 1, '[1]')", "23503"),
    ],
)
def test_a_stranger_reaches_no_vector_by_sql(
    direct: SupabaseMemory, sql: psycopg.Connection, statement: str, outcome: str
) -> None:
    add_summary(direct, KILN)
    direct.work.index_due()
    row = sql.execute("select id from memory.conversations where user_id = %s", [direct.user_id]).fetchone()
    assert row is not None
    named = {"owner": direct.user_id, "me": "stranger", "conversation": row[0]}
    with sql.transaction(force_rollback=True):
        sql.execute("set local search_path = extensions; set local role authenticated")
        sql.execute("select set_config('request.jwt.claims', '{\"sub\": \"stranger\"}', true)")
        if outcome.endswith("rows"):
            assert f"{sql.execute(statement.encode(), named).rowcount} rows" == outcome
        else:
            with pytest.raises(psycopg.Error) as caught, sql.transaction():
                sql.execute(statement.encode(), named)
            assert caught.value.sqlstate == outcome
    assert len(vectors(sql, str(direct.user_id))) == 1


# Erasure


def test_what_is_forgotten_takes_its_vectors_along(direct: SupabaseMemory, sql: psycopg.Connection) -> None:
    user_id = str(direct.user_id)
    for thread_id in ("a", "b", "c"):
        add_summary(direct, KILN, thread_id)
    direct.work.index_due()
    assert len(vectors(sql, user_id)) == 3
    direct.conversation("a").forget()
    assert sorted(threads(direct.recall_summaries("kiln"))) == ["b", "c"]
    first = direct.conversation("b").read(columns=["message_id"])[0]
    direct.conversation("b").forget_message(str(first.message_id))
    assert threads(direct.recall_summaries("kiln")) == ["c"]
    assert [row[0] for row in vectors(sql, user_id)] == ["c"]
    direct.forget_user()
    assert direct.recall_summaries("kiln") == []
    assert sql.execute("select count(*) from memory.summary_embeddings where user_id = %s", [user_id]).fetchone() == (
        0,
    )


def test_an_edit_takes_the_summary_and_the_one_before_is_embedded_again(
    direct: SupabaseMemory, sql: psycopg.Connection
) -> None:
    add_summary(direct, KILN)
    add_summary(direct, BOAT)
    direct.work.index_due()
    assert vectors(sql, str(direct.user_id)) == [("t", 2, "topics", 16)]
    conversation = direct.conversation("t")
    newest = conversation.summaries.list()[-1]
    stored = conversation.read(from_sequence=newest.to_sequence, last=1, columns=["message_id"])[0]
    at = next(
        each.message_id for each in conversation.read(columns=["message_id"]) if each.sequence == newest.to_sequence
    )
    assert stored.message_id
    edited: BaseMessage = HumanMessage("edited", id=at)
    conversation.append([edited])
    assert [each.number for each in conversation.summaries.list()] == [1]
    assert threads(direct.recall_summaries("thermocouple")) == ["t"]
    direct.work.index_due()
    assert vectors(sql, str(direct.user_id)) == [("t", 1, "topics", 16)]
