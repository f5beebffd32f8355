"""From messages to chunks in the database: exactly once, even with concurrent changes."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from langchain_supabase_memory import ChunkPolicy, Retention, SupabaseMemory
from langchain_supabase_memory.adapters.embedder import EmbeddingModel
from langchain_supabase_memory.effects import Call
from langchain_supabase_memory.errors import EmbeddingError, InvalidInputError, MigrationConflictError
from langchain_supabase_memory.operations.recall import indexing
from langchain_supabase_memory.values import Chunk, IndexResult, Receipt
from tests.conftest import Caller
from tests.embedders import ScriptedEmbedder, WordEmbedder

START = datetime(2026, 3, 2, 9, tzinfo=UTC)
_threads = count()


@pytest.fixture
def memory(conn_string: str, user_id: str) -> Iterator[SupabaseMemory]:
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, embeddings=WordEmbedder()) as memory:
        yield memory


def as_it_is(memory: SupabaseMemory, embeddings: Any) -> SupabaseMemory:
    """The same memory with another embedder, or none."""
    other = SupabaseMemory(memory._services.transport, user_id=memory.user_id)
    other._services.embeddings = None if embeddings is None else EmbeddingModel(embeddings, attempts=1)
    return other


def human(text: str, name: str) -> HumanMessage:
    return HumanMessage(text, id=name)


def numbered(texts: list[str]) -> list[BaseMessage]:
    return [(AIMessage if n % 2 else HumanMessage)(text, id=f"m{n}") for n, text in enumerate(texts)]


def placed(chunks: list[Chunk]) -> list[tuple[Any, ...]]:
    return [
        (each.place, each.part, each.episode, each.type, each.message_ids, each.content, each.importance)
        for each in chunks
    ]


def orphans(sql: psycopg.Connection, user_id: str) -> list[tuple[Any, ...]]:
    """Words and vectors without a chunk, and chunks whose number of words is wrong."""
    return sql.execute(
        """
        with words as (
          select l.user_id, l.conversation_id, l.lexeme, l.first + (p >> 45) as place, (p >> 15) & 1073741823 as part
          from memory.chunk_postings l left join unnest(l.postings) p on true where l.user_id = %(user)s)
        select 'lexeme', l.place, l.lexeme from words l where not exists (
          select from memory.working_memory_chunks k where k.user_id = %(user)s and k.user_id = l.user_id
          and k.conversation_id = l.conversation_id and k.place = l.place and k.part = l.part)
        union all
        select 'vector', l.place, l.model from memory.chunk_embeddings l where l.user_id = %(user)s and not exists (
          select from memory.working_memory_chunks k where k.user_id = %(user)s and k.user_id = l.user_id
          and k.conversation_id = l.conversation_id and k.place = l.place and k.part = l.part)
        union all
        select 'terms', k.place, k.content from memory.working_memory_chunks k where k.user_id = %(user)s
          and k.terms <> (select count(*) from words l where k.user_id = %(user)s and k.user_id = l.user_id
          and k.conversation_id = l.conversation_id and k.place = l.place and k.part = l.part)
        union all
        select 'count', c.chunk_count, c.thread_id from memory.conversations c where c.user_id = %(user)s
          and c.chunk_count <> (select count(*) from memory.working_memory_chunks k
          where k.user_id = c.user_id and k.conversation_id = c.id and not k.stale)""",
        {"user": user_id},
    ).fetchall()


# --- Once each


async def test_through_every_door(caller: Caller, user_id: str) -> None:
    memory = SupabaseMemory(caller.service._services.transport, user_id=user_id, embeddings=WordEmbedder(384))
    messages = numbered(["When is the meeting with Ana?", "On 5 May at nine.", "Thanks, that is noted down."])
    conversation = memory.conversation("t")
    await caller(conversation.append, messages, created_at=START)
    assert await caller(conversation.index) == IndexResult(2, 3)
    assert await caller(conversation.index) == IndexResult(2, 0)
    chunks = await caller(conversation.chunks.list)
    assert [each.type for each in chunks] == ["question", "answer", "dialogue"]
    assert [each.message_ids for each in chunks] == [["m0"], ["m1"], ["m2"]]
    assert all(each.expires_at is None for each in chunks)
    assert {each.said_at for each in chunks} == {START}
    found = await caller(conversation.recall, "the meeting with Ana")
    assert found.chunks[0].message_ids == ["m0"]
    assert (found.by_meaning, found.approximate, found.searched) == (True, False, 3)
    assert await caller(memory.work.index_due) == {}
    await caller(conversation.append, [human("And one more.", "m3")])
    assert list((await caller(memory.work.index_due)).values()) == [IndexResult(3, 1)]


WORD = st.sampled_from(
    ["kiln", "glaze", "cat", "Ana", "when", "done", "ok", "plane", "ticket", "5 May", "three", "?", "😀", "我们", "."]
)
TEXT = st.lists(WORD, min_size=1, max_size=8).map(" ".join)
PAUSE = st.sampled_from([timedelta(seconds=20), timedelta(minutes=5), timedelta(hours=7)])


@st.composite
def conversations(draw: st.DrawFn) -> list[tuple[BaseMessage, timedelta]]:
    """Questions, answers, calls with results, some of them late or missing, with pauses between."""
    made: list[tuple[BaseMessage, timedelta]] = []
    for number in range(draw(st.integers(1, 14))):
        kind = draw(st.sampled_from(["user", "user", "assistant", "assistant", "calls", "system", "long"]))
        pause = draw(PAUSE)
        if kind == "calls":
            wanted = draw(st.integers(1, 3))
            calls = [{"name": "find", "args": {"n": n}, "id": f"c{number}-{n}"} for n in range(wanted)]
            made.append((AIMessage("", tool_calls=calls, id=f"m{number}"), pause))
            for n in range(draw(st.integers(0, wanted))):
                made.append((ToolMessage(draw(TEXT), tool_call_id=f"c{number}-{n}", id=f"r{number}-{n}"), draw(PAUSE)))
        else:
            text = draw(TEXT) if kind != "long" else ". ".join(draw(st.lists(TEXT, min_size=5, max_size=9)))
            of = {"user": HumanMessage, "long": HumanMessage, "assistant": AIMessage, "system": SystemMessage}[kind]
            made.append((of(text, id=f"m{number}"), pause))
    return [*made, (HumanMessage("That was the last word.", id="last"), timedelta(0))]


@pytest.mark.parametrize("embeddings", [None, WordEmbedder()], ids=["words", "vectors"])
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(said=conversations(), steps=st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_chunks_are_the_same_however_messages_came_in(
    memory: SupabaseMemory, embeddings: Any, said: list[tuple[BaseMessage, timedelta]], steps: list[int]
) -> None:
    memory = as_it_is(memory, embeddings)
    policy = ChunkPolicy(max_tokens=16, max_episode_tokens=60)
    whole, bit_by_bit = f"whole-{next(_threads)}", f"bit-{next(_threads)}"
    times = [START + sum((pause for _, pause in said[: n + 1]), timedelta()) for n in range(len(said))]
    messages = [message for message, _ in said]
    memory.conversation(whole).append(messages, created_at=times)
    memory.conversation(whole).index(chunking=policy)
    done = 0
    for number in range(len(said)):
        step = steps[number % len(steps)]
        memory.conversation(bit_by_bit).append(messages[done : done + step], created_at=times[done : done + step])
        memory.conversation(bit_by_bit).index(chunking=policy)
        done += step
    chunks = memory.conversation(whole).chunks.list()
    assert placed(chunks) == placed(memory.conversation(bit_by_bit).chunks.list())
    assert len({each.id for each in chunks}) == len(chunks)
    covered = [name for each in chunks for name in each.message_ids if each.part == 1]
    assert len(covered) == len(set(covered))
    assert set(covered) == {message.id for message in messages if not isinstance(message, SystemMessage)}


def test_a_segment_of_many_short_units_has_its_ceiling_however_they_came_in(memory: SupabaseMemory) -> None:
    texts = ["ok"] * 60
    policy = ChunkPolicy(max_episode_tokens=40)
    memory.conversation("whole").append(numbered(texts), created_at=START)
    memory.conversation("whole").index(chunking=policy)
    for message in numbered(texts):
        memory.conversation("bit").append([message], created_at=START)
        memory.conversation("bit").index(chunking=policy)
    chunks = memory.conversation("whole").chunks.list()
    assert len({each.episode for each in chunks}) > 1
    assert placed(chunks) == placed(memory.conversation("bit").chunks.list())


def test_two_indexers_at_once_make_each_chunk_once(
    memory: SupabaseMemory, sql: psycopg.Connection, user_id: str
) -> None:
    conversation = memory.conversation("t")
    conversation.append(numbered([f"message number {n}" for n in range(90)]))
    barrier = threading.Barrier(4)

    def index() -> IndexResult:
        barrier.wait()
        return conversation.index(chunking=ChunkPolicy(batch=16))

    with ThreadPoolExecutor(4) as threads:
        results = [each.result() for each in [threads.submit(index) for _ in range(4)]]
    assert any(not each.conflict for each in results) or conversation.index().failed is None
    conversation.index()
    assert [each.place for each in conversation.chunks.list()] == list(range(90))
    assert orphans(sql, user_id) == []


# --- What changes


def test_an_edited_last_message_and_a_new_one(memory: SupabaseMemory, sql: psycopg.Connection, user_id: str) -> None:
    """Both are indexed in one commit; the new one stands behind the edited one."""
    conversation = memory.conversation("t")
    conversation.append(numbered(["the first kiln", "the second glaze"]))
    conversation.index()
    conversation.append([AIMessage("the zebra instead", id="m1"), human("a new one", "m2")])
    assert [each.content for each in conversation.chunks.list()] == ["the first kiln"]
    assert conversation.recall("glaze").chunks[0].content == "the first kiln"
    assert conversation.index() == IndexResult(2, 2)
    chunks = conversation.chunks.list()
    assert [(each.place, each.content) for each in chunks] == [
        (0, "the first kiln"),
        (1, "the zebra instead"),
        (2, "a new one"),
    ]
    assert orphans(sql, user_id) == []
    assert conversation.index().chunks == 0


def test_a_forgotten_message_leaves_no_word_behind(
    memory: SupabaseMemory, sql: psycopg.Connection, user_id: str
) -> None:
    calls = [{"name": "find", "args": {"what": "zebra"}, "id": "c"}]
    batch = [
        human("please find", "m0"),
        AIMessage("", tool_calls=calls, id="m1"),
        ToolMessage("a canary-4711 of mine", tool_call_id="c", id="m2"),
        human("thanks", "m3"),
    ]
    conversation = memory.conversation("t")
    conversation.append(batch)
    conversation.index()
    assert [each.message_ids for each in conversation.chunks.list()] == [["m0"], ["m1", "m2"], ["m3"]]
    dry = conversation.forget_message("m2", dry_run=True)
    assert dry == Receipt(0, 1, 0, dry_run=True, chunks=1)
    assert conversation.forget_message("m2") == Receipt(0, 1, 0, chunks=1)
    assert [each.message_ids for each in conversation.chunks.list()] == [["m0"], ["m3"]]
    left = sql.execute(
        "select lexeme from memory.chunk_postings where user_id = %s and lexeme like any (array['%%canary%%', '%%4711%%'])",
        [user_id],
    ).fetchall()
    assert left == []
    conversation.index()
    chunks = conversation.chunks.list()
    assert [each.message_ids for each in chunks] == [["m0"], ["m1"], ["m3"]]
    assert "canary" not in chunks[1].content
    conversation.forget_message("m1")
    assert memory.work.index_due() == {}
    assert [each.message_ids for each in conversation.chunks.list()] == [["m0"], ["m3"]]
    assert orphans(sql, user_id) == []


def test_words_of_another_reduction_go_as_well(memory: SupabaseMemory, sql: psycopg.Connection, user_id: str) -> None:
    """A newer server may reduce a text otherwise than the one that indexed it."""
    memory.conversation("t").append([human("glazes and kilns", "m0"), human("others", "m1")])
    memory.conversation("t").index()
    sql.execute("update memory.chunk_postings set lexeme = 'older-' || lexeme where user_id = %s", [user_id])
    memory.conversation("t").forget_message("m0")
    assert orphans(sql, user_id) == []


@pytest.mark.parametrize("how", ["forgotten", "edited", "expired", "begun anew"])
def test_what_changes_while_the_embedder_works_is_not_committed(
    memory: SupabaseMemory, sql: psycopg.Connection, user_id: str, how: str
) -> None:
    old = [human(f"canary {n}", f"m{n}") for n in range(4)]
    conversation = memory.conversation("t")
    conversation.append(old, created_at=START)
    plain = WordEmbedder()

    def meanwhile(texts: list[str]) -> list[list[float]]:
        if how == "forgotten":
            conversation.forget_message("m1")
        elif how == "edited":
            conversation.append([human("another", "m1")])
        elif how == "expired":
            memory.forget_expired(retention=Retention(max_messages=2))
        else:
            conversation.forget()
            conversation.append([human(f"new {n}", f"n{n}") for n in range(4)])
        return plain.embed_documents(texts)

    result = as_it_is(memory, ScriptedEmbedder(meanwhile, "words")).conversation("t").index()
    assert (result.conflict, result.chunks) == (True, 0)
    conversation.index()
    left = {"forgotten": [0, 2, 3], "edited": [0, 2, 3], "expired": [2, 3], "begun anew": []}[how]
    said = [each.content for each in conversation.chunks.list()]
    assert [each for each in said if "canary" in each] == [f"canary {n}" for n in left]
    assert orphans(sql, user_id) == []


def test_killed_between_embedding_and_commit(memory: SupabaseMemory) -> None:
    memory.conversation("t").append(numbered(["one thing", "another thing"]))
    flow = indexing.index_messages(
        memory._services.key("t"), memory._services.config.chunking, embedder=memory._services.embedder_name
    )
    step = next(flow)
    while isinstance(step, Call) and step.function != "memory_commit_chunks":
        step = flow.send(memory._services.transport.perform(step))
    flow.close()  # the vectors are made, nothing is stored
    assert memory.conversation("t").chunks.list() == []
    assert memory.conversation("t").index() == IndexResult(1, 2)


def test_a_commit_whose_answer_was_lost_is_repeated_without_harm(
    memory: SupabaseMemory, sql: psycopg.Connection, user_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation = memory.conversation("t")
    conversation.append(numbered(["one thing", "another thing"]))
    perform = memory._services.transport.perform

    def twice(step: Any) -> Any:
        answer = perform(step)
        return perform(step) if step.function == "memory_commit_chunks" else answer

    monkeypatch.setattr(memory._services.transport, "perform", twice)
    assert conversation.index() == IndexResult(1, 2)
    conversation.append([human("edited", "m0")])
    assert conversation.index() == IndexResult(1, 1)
    assert [each.content for each in conversation.chunks.list()] == ["edited", "another thing"]
    assert orphans(sql, user_id) == []


# --- Tool calls


def test_a_call_waits_for_its_results_but_not_for_ever(memory: SupabaseMemory) -> None:
    calls = [{"name": "find", "args": {}, "id": f"c{n}"} for n in range(2)]
    conversation = memory.conversation("t")
    conversation.append([human("find it", "m0"), AIMessage("", tool_calls=calls, id="m1")])
    assert conversation.index().through_sequence == 0
    conversation.append([ToolMessage("first", tool_call_id="c0", id="r0")])
    assert conversation.index().through_sequence == 0
    conversation.append([human("never mind", "m2")])
    assert conversation.index().through_sequence == 3
    assert [each.message_ids for each in conversation.chunks.list()] == [["m0"], ["m1", "r0"], ["m2"]]
    conversation.append([ToolMessage("late", tool_call_id="c1", id="r1"), human("go on", "m3")])
    conversation.index()
    assert [each.message_ids for each in conversation.chunks.list()][3:] == [["r1"], ["m3"]]


def test_five_hundred_results_do_not_block(memory: SupabaseMemory) -> None:
    calls = [{"name": "find", "args": {}, "id": f"c{n}"} for n in range(500)]
    results = [ToolMessage(f"result {n}", tool_call_id=f"c{n}", id=f"r{n}") for n in range(500)]
    memory.conversation("t").append([AIMessage("", tool_calls=calls, id="call"), *results, human("thanks", "last")])
    assert memory.conversation("t").index().through_sequence == 501
    chunks = memory.conversation("t").chunks.list()
    assert {name for each in chunks for name in each.message_ids} == {"call", "last", *(f"r{n}" for n in range(500))}
    assert {each.type for each in chunks[:-1]} == {"action"}


# --- Strange texts


STRANGE = {
    "nothing": "",
    "space": " \n\t ",
    "emoji": "😀😀👩‍👩‍👧",
    "nul": "\x00",
    "zero width": "\u200b\u200d",
    "surrogate": "half \ud800 one",
    "rtl": "مرحبا بالعالم، متى الاجتماع؟",
    "cjk": "我们明天去北京。你有三张票吗？",
    "word": "x" * 100_000,
    "megabyte": "A sentence of words. " * 50_000,
    "sql": "'; drop table memory.conversations; -- %s {0} \\ $1 [[:alpha:]]",
}


@pytest.mark.slow
@pytest.mark.parametrize("embeddings", [None, WordEmbedder()], ids=["words", "vectors"])
def test_strange_texts(memory: SupabaseMemory, sql: psycopg.Connection, user_id: str, embeddings: Any) -> None:
    memory = as_it_is(memory, embeddings)
    conversation = memory.conversation("t")
    conversation.append([human(text, name) for name, text in STRANGE.items()])
    conversation.append([human("the end", "end")])
    assert conversation.index().through_sequence == len(STRANGE)
    chunks = conversation.chunks.list()
    assert {name for each in chunks for name in each.message_ids} >= STRANGE.keys() - {"nothing", "space"} | {"end"}
    assert all(each.content.strip() for each in chunks)
    assert orphans(sql, user_id) == []
    for query in STRANGE.values():
        conversation.recall(query)
    words = as_it_is(memory, None)
    assert words.conversation("t").recall("北京").chunks[0].message_ids == ["cjk"]
    assert words.conversation("t").recall("متى الاجتماع").chunks[0].message_ids == ["rtl"]
    for name in STRANGE:
        conversation.forget_message(name)
    assert orphans(sql, user_id) == []


# --- The language


SAID = {
    "english": "I think that we should have gone there when it was not so late and they were all at home with the kids",
    "spanish": "Yo creo que no estaba en la casa cuando ellos fueron a la tienda y no había nadie con los niños",
    "german": "Ich glaube nicht dass wir das so machen können weil er und sie nicht mit uns in der Stadt sind",
    "simple": "Kumusta naman kayong lahat diyan, kumain nga pala kami kahapon kina lola kasama mga pinsan, masarap talaga",
}


@pytest.mark.parametrize("language", list(SAID))
def test_the_language_is_found_out_and_what_was_indexed_is_reduced_anew(
    memory: SupabaseMemory, sql: psycopg.Connection, user_id: str, language: str
) -> None:
    memory = as_it_is(memory, None)
    conversation = memory.conversation("t")
    words = SAID[language].split()
    conversation.append([human(" ".join(words[:6]), "m0")])
    conversation.index()
    found = "select language from memory.conversations where user_id = %s"
    assert sql.execute(found, [user_id]).fetchone() == (None,)
    conversation.append([human(SAID[language], f"m{n}") for n in range(1, 4)])
    conversation.index()
    assert sql.execute(found, [user_id]).fetchone() == (language,)
    assert orphans(sql, user_id) == []
    for number in range(4):
        conversation.forget_message(f"m{number}")
    assert sql.execute("select count(*) from memory.chunk_postings where user_id = %s", [user_id]).fetchone() == (0,)


def test_a_language_that_is_named_is_used_from_then_on(
    memory: SupabaseMemory, sql: psycopg.Connection, user_id: str
) -> None:
    conversation = memory.conversation("t")
    conversation.append([human("Die Häuser der Städte", "m0")])
    conversation.index(chunking=ChunkPolicy(language="german"))
    assert as_it_is(memory, None).conversation("t").recall("Haus").chunks
    conversation.append([human("More houses", "m1")])
    conversation.index(chunking=ChunkPolicy(language="english"))
    assert as_it_is(memory, None).conversation("t").recall("house").chunks[0].message_ids == ["m1"]
    assert orphans(sql, user_id) == []
    conversation.append([human("One more", "m2")])
    with pytest.raises(InvalidInputError):
        conversation.index(chunking=ChunkPolicy(language="klingon"))


# --- Embedders


def unembedded(sql: psycopg.Connection, user_id: str) -> list[str]:
    """What chunks without a vector say."""
    rows = sql.execute(
        "select k.content from memory.working_memory_chunks k where k.user_id = %(u)s and not exists (select"
        " from memory.chunk_embeddings e where e.user_id = k.user_id and e.conversation_id = k.conversation_id"
        " and e.place = k.place and e.part = k.part) order by k.place, k.part",
        {"u": user_id},
    )
    return [row[0] for row in rows]


def test_a_failing_embedder_costs_the_vectors_alone(
    memory: SupabaseMemory, sql: psycopg.Connection, user_id: str, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(texts: list[str]) -> Any:
        error = RuntimeError(f"quota exceeded for {texts}")
        error.status_code = 429  # type: ignore[attr-defined]
        raise error

    caplog.set_level(logging.DEBUG)
    broken = as_it_is(memory, ScriptedEmbedder(fails, "words"))
    conversation = memory.conversation("t")
    conversation.append(numbered(["a secret canary", "another"]))
    result = broken.conversation("t").index()
    assert result == IndexResult(1, 2, failed="The embedder failed (RuntimeError). [429]")
    assert [each.content for each in broken.conversation("t").recall("canary").chunks][:1] == ["a secret canary"]
    [cause] = broken.health().causes
    assert (cause.part, cause.error, cause.code) == ("embedder", "EmbeddingError", "429")
    assert memory.work.status()[0].error == "The embedder failed (RuntimeError). [429]"
    warned = [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]
    assert len(warned) == 1, warned
    assert "RuntimeError" in warned[0]
    assert "[429]" in warned[0]
    assert "canary" not in caplog.text
    assert broken.work.index_due() == {}, "it is asked again later"
    conversation.append([human("a third word", "m2")])
    waiting = indexing.index_messages(
        broken._services.key("t"), broken._services.config.chunking, embedder=broken._services.embedder_name
    )
    assert broken._services.run(waiting) == IndexResult(2, 1, backing_off=True), "words are indexed meanwhile"
    assert unembedded(sql, user_id) == ["a secret canary", "another", "a third word"]
    # Whoever comes next with an embedder that works.
    assert conversation.index() == IndexResult(2, 0, embedded=3)
    assert unembedded(sql, user_id) == []
    assert memory.work.status()[0].error is None
    assert conversation.index() == IndexResult(2)


def test_an_embedder_that_works_again_is_well(memory: SupabaseMemory) -> None:
    def flaky(texts: list[str]) -> Any:
        if not working:
            raise ConnectionError
        return WordEmbedder().embed_documents(texts)

    working = False
    other = as_it_is(memory, ScriptedEmbedder(flaky, "words"))
    for place in range(3):
        other.conversation("t").append([human(f"message {place}", f"m{place}")])
        other.conversation("t").index()
    assert [each.times for each in other.health().causes] == [3]
    working = True
    assert other.conversation("t").index() == IndexResult(2, 0, embedded=3)
    assert other.health().causes == ()


async def test_whoever_has_an_embedder_fills_in_what_a_process_without_one_indexed(
    caller: Caller, sql: psycopg.Connection, user_id: str
) -> None:
    plain = SupabaseMemory(caller.service._services.transport, user_id=user_id)
    await caller(plain.conversation("t").append, numbered(["the kiln shows E-47", "that is the thermocouple"]))
    assert await caller(plain.conversation("t").index) == IndexResult(1, 2)
    assert await caller(plain.work.index_due) == {}, "without an embedder nothing is lacking"
    embedding = SupabaseMemory(caller.service._services.transport, user_id=user_id, embeddings=WordEmbedder())
    assert list((await caller(embedding.work.index_due)).values()) == [IndexResult(1, 0, embedded=2)]
    assert await caller(embedding.work.index_due) == {}
    assert unembedded(sql, user_id) == []
    assert (await caller(embedding.conversation("t").recall, "kiln")).by_meaning


def test_vectors_are_filled_in_by_pages(memory: SupabaseMemory, sql: psycopg.Connection, user_id: str) -> None:
    memory.conversation("t").append(numbered([f"message {n}" for n in range(250)]))
    as_it_is(memory, None).conversation("t").index()
    counting = ScriptedEmbedder(lambda texts: WordEmbedder().embed_documents(texts), "words")
    other = as_it_is(memory, counting)
    first = other._services.run(
        indexing.index_messages(other._services.key("t"), ChunkPolicy(), embedder="words", max_batches=1)
    )
    assert first == IndexResult(249, 0, embedded=100)
    assert other.conversation("t").index() == IndexResult(249, 0, embedded=150)
    assert unembedded(sql, user_id) == []
    texts = [text for call in counting.calls for text in call]
    assert len(texts) == len(set(texts)) == 250, "no text is embedded twice"


def test_what_is_edited_or_forgotten_meanwhile_gets_no_old_vector(
    memory: SupabaseMemory, sql: psycopg.Connection, user_id: str
) -> None:
    conversation = memory.conversation("t")
    said = [HumanMessage("one", id="m0"), AIMessage("two", id="m1"), AIMessage("three", id="m2")]
    conversation.append(said)
    as_it_is(memory, None).conversation("t").index()

    def meanwhile(texts: list[str]) -> list[list[float]]:
        if "two" in texts:
            conversation.append([AIMessage("changed", id="m1")])
            conversation.forget_message("m2")
        return WordEmbedder().embed_documents(texts)

    other = as_it_is(memory, ScriptedEmbedder(meanwhile, "words"))
    assert other.conversation("t").index().embedded == 1
    conversation.index()
    assert orphans(sql, user_id) == []
    assert unembedded(sql, user_id) == []
    assert [each.content for each in conversation.chunks.list()] == ["one", "changed"]


def test_what_an_embedder_always_refuses_holds_nothing_up(
    memory: SupabaseMemory, sql: psycopg.Connection, user_id: str
) -> None:
    def refuses(texts: list[str]) -> Any:
        if any("poison" in text for text in texts):
            raise ValueError("content filter")
        return WordEmbedder().embed_documents(texts)

    picky = as_it_is(memory, ScriptedEmbedder(refuses, "words"))
    texts = [*(f"the good pear {n}" for n in range(9)), "the poison apple", *(f"the late pear {n}" for n in range(9))]
    memory.conversation("t").append(numbered(texts))
    results = [picky.conversation("t").index() for _ in range(7)]
    assert [each.chunks for each in results] == [19, 0, 0, 0, 0, 0, 0], "words are there at once"
    assert [each.embedded for each in results] == [0, 0, 0, 0, 0, 18, 0]
    assert [each.failed is None for each in results] == [False, False, False, False, False, True, True]
    assert unembedded(sql, user_id) == ["the poison apple"]
    assert picky.conversation("t").recall("poison").chunks[0].message_ids == ["m9"]
    memory.conversation("t").append([human("the new pear", "new")])
    assert picky.conversation("t").index() == IndexResult(19, 1)
    assert memory.conversation("t").chunks.reembed() == 1


def test_another_model_or_width_is_a_clear_error_at_the_first_use(memory: SupabaseMemory) -> None:
    conversation = memory.conversation("t")
    conversation.append(numbered(["one", "two"]))
    conversation.index()
    conversation.append([human("three", "m2")])
    for embeddings in (WordEmbedder(24, "another"), WordEmbedder(12)):
        other = as_it_is(memory, embeddings)
        with pytest.raises(MigrationConflictError):
            other.conversation("t").index()
        with pytest.raises(MigrationConflictError):
            other.conversation("t").recall("one")
    assert as_it_is(memory, None).conversation("t").index().chunks == 1
    with pytest.raises(MigrationConflictError):
        as_it_is(memory, WordEmbedder(12)).conversation("t").chunks.reembed()
    assert conversation.chunks.reembed() == 1


def test_moving_to_another_model_while_both_are_in_use(memory: SupabaseMemory, sql: psycopg.Connection) -> None:
    texts = [f"{word} number {n}" for n, word in enumerate(["kiln", "glaze", "cat", "plane"] * 60)]
    conversation = memory.conversation("t")
    conversation.append(numbered(texts))
    conversation.index()
    moved: list[int] = []

    def slowly(given: list[str]) -> list[list[float]]:
        moved.append(len(given))
        if len(moved) == 2:  # the old one goes on meanwhile
            conversation.append([human("said meanwhile", "late")])
            conversation.index()
            assert conversation.recall("cat").by_meaning
        if len(moved) == 3:
            raise TimeoutError
        return WordEmbedder(36).embed_documents(given)

    other = as_it_is(memory, ScriptedEmbedder(slowly, "new"))
    with pytest.raises(EmbeddingError):
        other.conversation("t").chunks.reembed(drop=True)
    assert conversation.recall("cat").by_meaning
    assert other.conversation("t").recall("cat").by_meaning
    assert other.conversation("t").chunks.reembed(drop=True) == 241 - sum(moved[:2])
    models = sql.execute(
        "select distinct e.model, e.dimensions, count(*) over () from memory.chunk_embeddings e where e.user_id = %s",
        [memory.user_id],
    ).fetchall()
    assert models == [("new", 36, 241)]
    with pytest.raises(MigrationConflictError):
        conversation.recall("cat")


def test_old_vectors_stay_until_every_chunk_has_a_new_one(memory: SupabaseMemory) -> None:
    conversation = memory.conversation("t")
    conversation.append(numbered(["one", "two"]))
    conversation.index()
    done: list[str] = []

    def meanwhile(texts: list[str]) -> list[list[float]]:
        if not done:
            done.append("once")
            conversation.append([human("three", "m2")])
            conversation.index()
        return WordEmbedder(36).embed_documents(texts)

    other = as_it_is(memory, ScriptedEmbedder(meanwhile, "new"))
    assert other.conversation("t").chunks.reembed(drop=True) == 3
    assert other.conversation("t").recall("three").chunks[0].similarity is not None


def test_old_vectors_that_others_go_on_making_end_a_reembedding(memory: SupabaseMemory) -> None:
    conversation = memory.conversation("t")
    conversation.append(numbered(["one", "two"]))
    conversation.index()
    calls = 0

    def meanwhile(texts: list[str]) -> list[list[float]]:
        nonlocal calls
        calls += 1
        conversation.append([human(f"kiln {calls}", f"late{calls}")])
        conversation.index()
        return WordEmbedder(36).embed_documents(texts)

    other = as_it_is(memory, ScriptedEmbedder(meanwhile, "new"))
    with pytest.raises(MigrationConflictError, match="another embedder during 10 passes; nothing was removed"):
        other.conversation("t").chunks.reembed(drop=True)
    assert calls == 10
    assert conversation.recall("kiln").by_meaning


# --- Expiry


def test_expired_chunks_are_deleted(memory: SupabaseMemory, sql: psycopg.Connection, user_id: str) -> None:
    moment = ChunkPolicy(max_age=timedelta(microseconds=1))
    conversation = memory.conversation("t")
    conversation.append(numbered(["old canary", "old as well"]))
    memory.conversation("other").append([human("stays", "m0")])
    conversation.index(chunking=moment)
    memory.conversation("other").index()
    assert conversation.chunks.list() == []
    assert memory.recall("canary").chunks[0].content == "stays"
    assert memory.forget_expired() == Receipt(chunks=2)
    assert memory.forget_expired() == Receipt()
    rows = sql.execute(
        "select (select count(*) from memory.working_memory_chunks k where k.user_id = %(u)s),"
        " (select count(*) from memory.chunk_postings k where k.user_id = %(u)s and k.lexeme like 'canar%%'),"
        " (select count(*) from memory.chunk_embeddings k where k.user_id = %(u)s)",
        {"u": user_id},
    ).fetchone()
    assert rows == (1, 0, 1)
    assert conversation.index().chunks == 0, "what has expired is not indexed once more"
    assert conversation.count() == 2
    conversation.append([human("anew", "m2")])
    assert conversation.index() == IndexResult(2, 1)
    assert memory.forget_expired(retention=Retention(max_messages=1)) == Receipt(1, 2)
    assert orphans(sql, user_id) == []


def test_an_edited_chunk_that_expires_asks_for_nothing(memory: SupabaseMemory) -> None:
    memory.conversation("t").append(numbered(["one", "two"]))
    memory.conversation("t").index(chunking=ChunkPolicy(max_age=timedelta(microseconds=1)))
    memory.conversation("t").append([human("edited", "m0")])
    assert memory.forget_expired() == Receipt(chunks=1)
    assert memory.work.index_due() == {}


def test_what_belongs_together_expires_together(memory: SupabaseMemory) -> None:
    conversation = memory.conversation("t")
    conversation.append([human("the first kiln", "m0")])
    week = ChunkPolicy(max_age=timedelta(days=7))
    conversation.index(chunking=week)
    first = conversation.chunks.list()[0].expires_at
    conversation.append([human("the second kiln", "m1")])
    conversation.index(chunking=week)
    expiries = {each.expires_at for each in conversation.chunks.list()}
    assert len(expiries) == 1
    assert expiries.pop() > first  # type: ignore[operator]


def test_no_embedding_is_asked_for_twice(memory: SupabaseMemory) -> None:
    embedder = WordEmbedder()
    other = as_it_is(memory, embedder)
    memory.conversation("t").append(numbered([f"message {n}" for n in range(70)]))
    other.conversation("t").index()
    other.conversation("t").index()
    assert sorted(text for call in embedder.calls for text in call) == sorted(f"message {n}" for n in range(70))


def test_a_chunk_lives_as_long_as_its_message_unless_it_is_said_otherwise(memory: SupabaseMemory) -> None:
    week = ChunkPolicy(max_age=timedelta(days=7))
    for thread_id, chunking in (("default", None), ("week", week)):
        memory.conversation(thread_id).append([HumanMessage("The kiln shows E-47")], created_at=START)
        memory.conversation(thread_id).index(chunking=chunking)
    [chunk] = memory.conversation("default").chunks.list()
    assert chunk.expires_at is None
    [shorter] = memory.conversation("week").chunks.list()
    assert shorter.expires_at is not None
    assert abs(shorter.expires_at - datetime.now(UTC) - timedelta(days=7)) < timedelta(minutes=5)
    gone = memory.forget_expired(retention=Retention(max_age=timedelta(days=100)))
    assert (gone.messages, gone.chunks) == (2, 2), "and no longer"
