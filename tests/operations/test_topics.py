"""Topics: what is found without a model, how it lives on, and what becomes of it when what was said goes."""

from __future__ import annotations

import itertools
import random
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from benchmarks.topic_corpus import PHRASES, Talk, adjusted_rand_index, talks
from langchain_supabase_memory import Retention, SupabaseMemory, Worker
from langchain_supabase_memory.errors import InvalidInputError, NotFoundError
from langchain_supabase_memory.operations import topics
from langchain_supabase_memory.types import Topic
from tests.conftest import Caller
from tests.embedders import WordEmbedder
from tests.services.postgres import Cluster
from tests.spaces import call

START = datetime(2026, 1, 1, tzinfo=UTC)
FEW = ("pottery", "database", "marathon")
BY = "ana"
TABLES = ("topics", "topic_stretches", "indexed_stretches", "topic_clusterings")
_numbers = itertools.count()


@dataclass
class Talker:
    """An owner whose conversations are about planted topics.

    Attributes:
        memory: Their memory.
        connection: A server's connection, with autocommit.
    """

    memory: SupabaseMemory
    connection: psycopg.Connection[Any]

    @property
    def user_id(self) -> str:
        assert self.memory.user_id is not None
        return self.memory.user_id

    def say(self, thread: str, *texts: str, at: datetime = START, index: bool = True) -> list[str]:
        """Say something in a conversation, and have it indexed. Returns the ids of the messages."""
        ids = [f"m{next(_numbers)}" for _ in texts]
        roles = itertools.cycle(("user", "assistant"))
        said = [
            {"id": name, "role": role, "content": text, "created_at": at.isoformat()}
            for name, role, text in zip(ids, roles, texts, strict=False)
        ]
        call(self.connection, "append", thread_id=thread, messages=said, user_id=self.user_id)
        if index:
            self.memory.conversation(thread).index()
        return ids

    def talk(self, found: list[Talk], at: datetime = START, prefix: str = "t") -> None:
        """Have a conversation about each."""
        for number, each in enumerate(found):
            self.say(f"{prefix}{number:04d}", *(text for _, text in each.messages), at=at)

    def rows(self, columns: str) -> list[tuple[Any, ...]]:
        """Return columns of the stretches, with their conversations."""
        asked = (
            f"select {columns} from memory.topic_stretches s join memory.conversations c"
            " on c.user_id = s.user_id and c.id = s.conversation_id where s.user_id = %s order by c.thread_id, s.stretch"
        )
        return self.connection.execute(asked.encode(), [self.user_id]).fetchall()

    def count(self, table: str) -> int:
        rows = self.connection.execute(
            f"select count(*) from memory.{table} where user_id = %s".encode(), [self.user_id]
        ).fetchall()
        return int(rows[0][0])

    def named(self, word: str) -> Topic:
        """Return the topic that has a word in its label."""
        (found,) = [each for each in self.memory.topics.read(hidden=True) if word in each.words]
        return found


class ContentEmbedder(WordEmbedder):
    """Stands in for a real embedder: it compares long words alone, and knows no meaning."""

    def embed_query(self, text: str) -> list[float]:
        return super().embed_query(" ".join(word.strip(".,?:;") for word in text.split() if len(word) > 5))


@pytest.fixture
def server(cluster: Cluster, own: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(cluster.conn_string(own), autocommit=True) as connection:
        yield connection


@pytest.fixture
def talker(cluster: Cluster, own: str, server: psycopg.Connection[Any], user_id: str) -> Iterator[Talker]:
    """An owner without an embedder: words are compared."""
    with SupabaseMemory.from_conn_string(cluster.conn_string(own), user_id=user_id, model=None) as memory:
        yield Talker(memory, server)


@pytest.fixture
def embedding(cluster: Cluster, own: str, server: psycopg.Connection[Any], user_id: str) -> Iterator[Talker]:
    """An owner with an embedder."""
    with SupabaseMemory.from_conn_string(
        cluster.conn_string(own), user_id=f"{user_id}-v", model=None, embeddings=ContentEmbedder(96)
    ) as memory:
        yield Talker(memory, server)


def test_planted_topics_are_found_by_words_and_live_on_when_a_tenth_is_forgotten(talker: Talker) -> None:
    planted = talks(20)
    assert (len(planted), len(PHRASES)) == (480, 24)
    talker.talk(planted)
    assert talker.memory.topics.update() == topics.TopicUpdate(480, 1)
    found = [(planted[int(thread[1:])].topic, topic) for thread, topic in talker.rows("c.thread_id, s.topic_id::text")]
    assert len(found) == 480
    assert adjusted_rand_index([topic for _, topic in found], [name for name, _ in found]) >= 0.5
    listed = talker.memory.topics.read(quotes=3, limit=500)
    words = {topic: set[str]() for topic in {topic for _, topic in found}}
    for topic, held in talker.rows("s.topic_id::text, s.words"):
        words[topic] |= set(held)
    for each in listed:
        assert each.words
        members = [held for topic, held in talker.rows("s.topic_id::text, s.words") if topic == each.id][:200]
        assert set(each.words) <= words[each.id], "each word was said"
        assert all(quote.text and quote.sequence >= 0 for quote in each.quotes)
        assert len(members) == each.episodes
    kept = listed[0]
    talker.memory.topics.rename(kept, "Mine", actor=BY)

    draw = random.Random(41)
    message_ids = talker.connection.execute(
        "select c.thread_id, m.message_id from memory.conversation_messages m join memory.conversations c"
        " on c.user_id = m.user_id and c.id = m.conversation_id where m.user_id = %s order by c.thread_id, m.sequence",
        [talker.user_id],
    ).fetchall()
    before = {each.id for each in listed if each.episodes >= 2}
    for thread, message_id in draw.sample(message_ids, len(message_ids) // 10):
        talker.memory.conversation(thread).forget_message(message_id)
        talker.memory.conversation(thread).index()
    talker.memory.topics.update()
    assert talker.memory.topics.recluster()
    after = {each.id for each in talker.memory.topics.read(limit=500)}
    assert len(before & after) >= 0.95 * len(before)
    (mine,) = [each for each in talker.memory.topics.read() if each.name]
    assert (mine.id, mine.name, mine.named_by, mine.label) == (kept.id, "Mine", BY, "Mine")


def test_topics_are_found_by_vectors_too(embedding: Talker) -> None:
    planted = talks(12, topics=FEW)
    embedding.talk(planted)
    embedding.memory.topics.update()
    embedding.memory.topics.recluster()
    rows = embedding.rows("c.thread_id, s.topic_id::text, s.model, s.embedding is not null")
    found = [(planted[int(thread[1:])].topic, topic) for thread, topic, _, _ in rows]
    assert {(model, has) for _, _, model, has in rows} == {("words", True)}
    # The stand-in has no meaning: it only shows that vectors take this way. The benchmark has a real embedder.
    assert adjusted_rand_index([topic for _, topic in found], [name for name, _ in found]) > 0.2


def test_a_topic_that_begins_on_day_60_appears_at_once_with_its_days(talker: Talker) -> None:
    for day in range(60):
        (one,) = talks(1, seed=day, topics=("pottery",))
        talker.say(f"d{day}", *(text for _, text in one.messages), at=START + timedelta(days=day))
    talker.memory.topics.update()
    before = {each.id for each in talker.memory.topics.read()}
    begins = START + timedelta(days=60)
    for number, each in enumerate(talks(3, topics=("tax" + "es",))):
        talker.say(f"new{number}", *(text for _, text in each.messages), at=begins)
    talker.memory.topics.update()
    new = [each for each in talker.memory.topics.read(since=begins) if each.id not in before]
    assert new
    assert all(each.first_at == begins for each in new)
    assert sum(each.episodes for each in new) == 3
    told = talker.memory.topics.days(since=START)
    assert {each.day for each in told if each.topic_id in {one.id for one in new}} == {begins.date()}
    assert sum(each.episodes for each in told) == 63
    assert talker.memory.topics.days(since=begins + timedelta(days=1)) == []
    viewed = talker.connection.execute(
        "select sum(stretches), sum(messages) from memory.topic_days where user_id = %s", [talker.user_id]
    ).fetchall()
    assert viewed == [(63, sum(each.messages for each in told))]


def test_what_a_person_made_of_topics_stays(talker: Talker) -> None:
    talker.talk(talks(10, topics=FEW))
    talker.memory.topics.update()
    talker.memory.topics.recluster()
    first, second, third = talker.memory.topics.read()[:3]
    handle = talker.memory.topics
    handle.rename(first, "Clay", actor=BY)
    handle.hide(third, actor=BY)
    assert handle.merge(second, first, actor=BY) == first.id
    for _ in range(2):
        assert handle.recluster()
        listed = {each.id: each for each in handle.read()}
        assert third.id not in listed
        assert second.id not in listed
        assert (listed[first.id].label, listed[first.id].parts) == ("Clay", (second.id,))
        assert listed[first.id].episodes == first.episodes + second.episodes
    assert third.id in {each.id for each in handle.read(hidden=True)}
    found = handle.get(second)
    assert found is not None
    assert (found.id, len(found.quotes)) == (first.id, 5)
    assert handle.merge(second, None, actor=BY) == second.id
    assert {first.id, second.id} <= {each.id for each in handle.read()}
    handle.hide(third, hidden=False, actor=BY)
    handle.rename(first, None, actor=BY)
    assert {each.id: each.label for each in handle.read()}[first.id] == ", ".join(first.words[:3])
    assert third.id in {each.id for each in handle.read()}
    with pytest.raises(InvalidInputError):
        handle.merge(first, first, actor=BY)
    with pytest.raises(InvalidInputError):
        handle.rename(first, " ", actor=BY)
    with pytest.raises(NotFoundError):
        handle.hide("00000000-0000-4000-8000-000000000000", actor=BY)
    assert {each.action for each in talker.memory.privacy.changes()} == {"edit_topic"}


def test_a_forgotten_topic_goes_with_its_words_and_members(talker: Talker, cluster: Cluster, own: str) -> None:
    talker.say("a", "The quilombozq kettle leaks at the seam.", "Then solder the kettle seam.")
    talker.say("b", "My quilombozq kettle whistles all night.", "Lift the whistle off the kettle.")
    talker.say("c", "Which hydration suits rye dough in winter?", "Eighty percent hydration for rye dough.")
    talker.memory.topics.update()
    topic = talker.named("quilombozq")
    other = talker.named("dough")
    would = talker.memory.topics.forget(topic, words=["quilombozq"], actor=BY, dry_run=True)
    assert (would.words, would.episodes) == (("quilombozq",), 2)
    assert talker.memory.privacy.opt_outs() == []
    with pytest.raises(InvalidInputError):
        talker.memory.topics.forget(topic, words=["dough"], actor=BY)
    done = talker.memory.topics.forget(topic, words=["quilombozq"], actor=BY)
    assert done.episodes == 2
    assert [each.topic for each in talker.memory.privacy.opt_outs()] == ["quilombozq"]
    assert [each.id for each in talker.memory.topics.read()] == [other.id]
    assert talker.memory.conversation("a").chunks.list() == []
    assert len(talker.memory.conversation("a").read()) == 2, "the messages stay"
    talker.say("d", "The quilombozq again.")
    talker.memory.topics.update()
    assert [each.id for each in talker.memory.topics.read()] == [other.id]
    tables = [f"--table=memory.{each}" for each in TABLES]
    assert "quilombozq" not in cluster.dump(own, *tables)


GONE = ("message", "conversation", "edit", "opt_out", "opt_out_topic", "consent", "everything", "expire")


@pytest.mark.parametrize("event", GONE)
def test_what_goes_is_in_no_topic(talker: Talker, cluster: Cluster, own: str, canary: str, event: str) -> None:
    ids = talker.say("a", f"The {canary} kettle leaks at the seam.", "Then solder it.")
    talker.say("b", "Which hydration suits rye dough in winter?", "Eighty percent hydration for rye dough.")
    talker.memory.topics.update()
    topic = talker.named(canary)
    talker.memory.topics.rename(talker.named("dough"), "Bread", actor=BY)
    conversation = talker.memory.conversation("a")
    match event:
        case "message":
            conversation.forget_message(ids[0])
        case "conversation":
            conversation.forget()
        case "edit":
            said = [{"id": ids[0], "role": "user", "content": "Never mind."}]
            call(talker.connection, "append", thread_id="a", messages=said, replace=True, user_id=talker.user_id)
        case "opt_out":
            conversation.opt_out(actor=BY)
        case "opt_out_topic":
            talker.memory.privacy.opt_out(canary, actor=BY)
        case "consent":
            talker.memory.privacy.consent("topics", False, actor=BY)
            assert [talker.count(each) for each in TABLES] == [0, 0, 0, 0]
            talker.say("c", "Which hydration suits rye dough in winter?")
            talker.memory.topics.update()
            assert talker.memory.topics.read() == []
        case "everything":
            talker.memory.forget_user()
            assert [talker.count(each) for each in TABLES] == [0, 0, 0, 0]
        case "expire":
            talker.connection.execute(
                "update memory.working_memory_chunks k set expires_at = now() - interval '1 second' from memory.conversations"
                " c where c.user_id = k.user_id and c.id = k.conversation_id and k.user_id = %s and c.thread_id = 'a'",
                [talker.user_id],
            )
            talker.memory.forget_expired()
    tables = [f"--table=memory.{each}" for each in TABLES]
    assert canary not in cluster.dump(own, *tables)
    conversation.index()
    talker.memory.topics.update()
    talker.memory.topics.recluster()
    assert canary not in cluster.dump(own, *tables)
    assert canary not in {word for each in talker.memory.topics.read(hidden=True) for word in each.words}
    if event not in ("consent", "everything"):
        assert [each.label for each in talker.memory.topics.read() if each.name] == ["Bread"]
    if event == "consent":
        talker.memory.privacy.consent("topics", True, actor=BY)
        talker.memory.topics.update()
        assert talker.named("dough").name is None
        assert topic.label


def test_a_name_that_mentions_what_is_opted_out_goes(talker: Talker) -> None:
    talker.say("a", "The kettle leaks at the seam.", "Then solder the seam.")
    talker.memory.topics.update()
    topic = talker.named("kettle")
    talker.memory.topics.rename(topic, "Aunt Philomena's kettle", actor=BY)
    talker.memory.privacy.opt_out("Philomena", actor=BY)
    assert talker.named("kettle").name is None
    with pytest.raises(InvalidInputError):
        talker.memory.topics.rename(topic, "Philomena", actor=BY)


def test_a_private_or_opted_out_conversation_has_no_topic(talker: Talker) -> None:
    talker.memory.conversation("p", private=True).append("The kettle leaks at the seam.")
    talker.memory.conversation("o").opt_out(actor=BY)
    talker.say("o", "The kettle leaks at the seam.")
    talker.memory.conversation("p").index()
    talker.memory.topics.update()
    assert [talker.count(each) for each in TABLES[:3]] == [0, 0, 0]


STRANGE = {
    "all alike": ["The kettle leaks at the seam."] * 40,
    "one word": ["Kettle"] * 30,
    "emoji alone": ["🙂🙂", "🙂", "🎉🎉🎉", "🎉"] * 8,
    "nothing to tell": ["ok", "yes", "...", "123", "the the the"] * 6,
    "no spaces": ["今日は京都の寺院を訪れました", "京都の寺院はとても美しい"] * 12,
}


@pytest.mark.parametrize("name", STRANGE)
def test_strange_talk_breaks_nothing(talker: Talker, name: str) -> None:
    for number, text in enumerate(STRANGE[name]):
        talker.say(f"s{number}", text)
    talker.memory.topics.update()
    before = {each.id for each in talker.memory.topics.read()}
    talker.memory.topics.recluster()
    found = talker.memory.topics.read()
    assert {each.id for each in found} <= before
    assert len(found) <= 3
    expected = 0 if name == "nothing to tell" else len(STRANGE[name])
    assert sum(each.episodes for each in found) == expected
    assert all(each.label for each in found)


def test_a_label_has_no_names_of_speakers_no_pleasantries_and_no_code(talker: Talker) -> None:
    code = "```python\nconst kilnTimer = await fetchTimer(kilnId)\nreturn kilnTimer\n```"
    for number in range(4):
        talker.say(
            f"p{number}",
            "Hey Philomena! Awesome, I absolutely love the glaze. Feeling so excited, Philomena.",
            f"Certainly, Ambrose! Let's ensure the glaze is fired step by step. For example:\n{code}\nHope that helps.",
        )
    talker.memory.topics.update()
    (topic,) = talker.memory.topics.read()
    assert set(topic.words) == {"glaze", "fired"}


def test_talk_of_nothing_but_code_has_a_topic_too(talker: Talker) -> None:
    for number in range(3):
        talker.say(f"k{number}", "```\nselect vacuum from maintenance\n```")
    talker.memory.topics.update()
    assert {"vacuum", "maintenance"} <= set(talker.memory.topics.read()[0].words)


def test_an_index_only_notes_which_episodes_are_due(talker: Talker) -> None:
    def counts() -> tuple[int, int]:
        return talker.count("indexed_stretches"), talker.count("topic_stretches")

    talker.say("a", "Which kiln fires a stoneware bowl?", "A kiln of cone six.")
    assert counts() == (1, 0)
    talker.say("a", "And which kiln fires a porcelain bowl?", "A kiln of cone ten.")
    assert counts() == (1, 0), "the same episode is noted once"
    assert talker.memory.topics.update().episodes == 1
    assert counts() == (0, 1)
    talker.say("a", "Does that kiln fire a raku bowl?")
    assert counts() == (1, 1)
    page = call(talker.connection, "worker_topics", user_id=talker.user_id)
    assert [each["thread_id"] for each in page["conversations"]] == ["a"]
    assert talker.memory.topics.update().episodes == 1
    assert counts() == (0, 1)
    assert call(talker.connection, "worker_topics", user_id=talker.user_id)["conversations"] == []


def test_many_due_episodes_are_found_by_pages(talker: Talker) -> None:
    for number in range(5):
        talker.say(f"b{number}", "Which kiln fires a stoneware bowl?", "A kiln of cone six.")
    talker.connection.execute(
        "insert into memory.indexed_stretches (user_id, conversation_id, stretch) select i.user_id, i.conversation_id, n"
        " from memory.indexed_stretches i, generate_series(1000, 1006) n where i.user_id = %s",
        [talker.user_id],
    )
    found: list[str] = []
    after: dict[str, Any] = {}
    while True:
        page = call(
            talker.connection, "worker_topics", limit=3, user_id=talker.user_id,
            after_user=after.get("user"), after=after.get("id"),
        )  # fmt: skip
        found += [each["thread_id"] for each in page["conversations"]]
        if page["after"] is None:
            break
        after = page["after"]
    assert sorted(found) == [f"b{number}" for number in range(5)]
    looked = call(talker.connection, "assign_topics", thread_id="b0", limit=3, user_id=talker.user_id)
    assert looked == {"assigned": 3, "more": True}
    assert talker.memory.topics.update().episodes == 5 + 4 * 8
    assert talker.count("indexed_stretches") == 0
    assert talker.count("topic_stretches") == 5, "a note of chunks that went is gone"


def test_an_owner_has_at_most_200_topics(talker: Talker) -> None:
    for number in range(230):
        talker.say(f"w{number}", f"glorp{number:03d}ix zeta{number:03d}um")
    talker.memory.topics.update()
    assert talker.count("topics") <= 200
    assert talker.memory.topics.recluster()
    assert talker.count("topics") <= 200


def test_a_chore_that_is_killed_or_comes_second_changes_nothing(talker: Talker) -> None:
    talker.talk(talks(10, topics=FEW))
    talker.memory.topics.update()
    before = talker.rows("s.topic_id, s.strength")
    flow = topics.recluster(talker.user_id, embedder=None)
    step: Any = next(flow)  # killed here: nothing has been stored
    page = talker.connection.execute(
        "select public.memory_topic_stretches(p_user_id => %s)", [talker.user_id]
    ).fetchall()
    assert step.function == "memory_topic_stretches"
    flow.close()
    assert talker.rows("s.topic_id, s.strength") == before
    assert talker.memory.topics.recluster()
    groups = talker.rows("s.topic_id")
    late = call(talker.connection, "commit_topics", version=page[0][0]["version"], clusters=[], user_id=talker.user_id)
    assert late == {"committed": False, "topics": 0}
    assert talker.memory.topics.recluster()
    assert talker.rows("s.topic_id") == groups, "a repeat finds the same"


def test_an_owner_whose_topics_cannot_be_found_stops_nobody_else() -> None:
    flow = topics.update(None)
    step: Any = next(flow)
    flow.send({"conversations": [], "after": None, "owners": []})
    step = flow.send({"conversations": [], "after": None, "owners": ["first", "second"]})
    assert step.arguments["p_user_id"] == "first"
    step = flow.throw(InvalidInputError("unreadable", hint="none"))
    assert (step.function, step.arguments["p_user_id"]) == ("memory_topic_stretches", "second")


@pytest.mark.parametrize("name", [5, b"kiln", ["kiln"], "", " ", "x" * 201])
def test_a_name_is_a_text(name: Any) -> None:
    with pytest.raises(InvalidInputError):
        next(topics.rename("u", "00000000-0000-0000-0000-000000000001", name, actor=BY))


def test_what_is_not_kept_is_not_quoted(talker: Talker, cluster: Cluster, own: str) -> None:
    talker.say("a", "The kettle leaks at the seam.", "Solder it.", "The kettle leaks at the lid.", "Solder it, too.")
    talker.memory.topics.update()
    first = talker.memory.topics.read()[0].quotes[0]
    for kept, expected in (
        (Retention(max_turns=1), "The kettle leaks at the lid."),
        (Retention(max_age=timedelta(days=1)), None),
    ):
        with SupabaseMemory.from_conn_string(
            cluster.conn_string(own), user_id=talker.user_id, model=None, retention=kept
        ) as memory:
            (topic,) = memory.topics.read()
            assert [each.text for each in topic.quotes] == [expected] * (expected is not None)
            got = memory.topics.get(topic)
            assert got is not None
            assert got.quotes == topic.quotes
            assert topic.words == got.words == ()  # its only episode is partly beyond
    assert first.text.startswith("The kettle leaks")


def test_no_word_is_listed_that_only_stands_in_what_is_not_kept(talker: Talker, cluster: Cluster, own: str) -> None:
    now = datetime.now(UTC)
    talker.say("old", "The kettle leaks at the seam and the spout.", at=now - timedelta(days=40))
    talker.say("new", "The kettle leaks at the lid.", at=now)
    talker.memory.topics.update()
    (topic,) = talker.memory.topics.read()
    assert {"kettle", "leaks", "seam", "spout", "lid"} <= {*topic.words}
    month = Retention(max_age=timedelta(days=30))
    conn_string = cluster.conn_string(own)
    with SupabaseMemory.from_conn_string(conn_string, user_id=talker.user_id, model=None, retention=month) as memory:
        (kept,) = memory.topics.read()
        assert {*kept.words} == {*topic.words} - {"seam", "spout"}
        assert kept.words == tuple(word for word in topic.words if word in kept.words)
        assert (kept.id, kept.episodes) == (topic.id, 2)
    # The same of chunks that have expired and are not swept yet.
    talker.connection.execute(
        "update memory.working_memory_chunks k set expires_at = now() - interval '1 second' where k.user_id = %s"
        " and k.conversation_id = (select id from memory.conversations c where c.user_id = %s and c.thread_id = 'old')",
        [talker.user_id, talker.user_id],
    )
    (swept,) = talker.memory.topics.read()
    assert swept.words == kept.words
    talker.connection.execute(
        "update memory.working_memory_chunks k set expires_at = now() - interval '1 second' where k.user_id = %s",
        [talker.user_id],
    )
    assert talker.memory.topics.read()[0].words == ()


def test_an_owner_who_is_erased_in_the_middle_of_the_chore_stays_erased(talker: Talker) -> None:
    talker.talk(talks(10, topics=FEW))
    talker.memory.topics.update()
    page = call(talker.connection, "topic_stretches", user_id=talker.user_id)
    members = [[row[0], row[1]] for row in page["stretches"]]
    talker.memory.forget_user()
    late = call(
        talker.connection,
        "commit_topics",
        version=page["version"],
        clusters=[{"topic_id": None, "members": members}],
        user_id=talker.user_id,
    )
    assert late == {"committed": False, "topics": 0}
    assert [talker.count(each) for each in TABLES[:3]] == [0, 0, 0]
    assert not talker.memory.topics.recluster()


def test_a_clock_that_was_set_back_stops_no_finding(talker: Talker) -> None:
    talker.talk(talks(3, topics=FEW))
    talker.memory.topics.update()
    due = "update memory.topic_clusterings set due_at = now() + interval '1 year', clustered_at = now() + %s where user_id = %s"
    talker.connection.execute(due, [timedelta(days=360), talker.user_id])
    assert talker.memory.topics.update().owners == 1
    assert talker.memory.topics.update().owners == 0


def test_topics_are_found_anew_after_a_fifth_more_or_a_week(talker: Talker) -> None:
    def state() -> tuple[Any, ...]:
        (found,) = talker.connection.execute(
            "select stretches, added, due_at - clustered_at from memory.topic_clusterings where user_id = %s",
            [talker.user_id],
        ).fetchall()
        return tuple(found)

    talker.talk(talks(10, topics=FEW))
    assert talker.memory.topics.update().owners == 1
    assert state() == (30, 0, None)
    talker.say("late", "The kiln again.")
    assert talker.memory.topics.update().owners == 0
    stretches, added, until = state()
    assert (stretches, added) == (30, 1)
    assert timedelta(days=6) < until < timedelta(days=8)
    talker.connection.execute(
        "update memory.topic_clusterings set due_at = due_at - interval '8 days' where user_id = %s", [talker.user_id]
    )
    assert talker.memory.topics.update().owners == 1


def test_another_embedder_takes_over(embedding: Talker, cluster: Cluster, own: str) -> None:
    embedding.talk(talks(6, topics=FEW))
    embedding.memory.topics.update()
    embedding.memory.topics.recluster()
    before = {each.id for each in embedding.memory.topics.read()}
    with SupabaseMemory.from_conn_string(
        cluster.conn_string(own), user_id=embedding.user_id, model=None, embeddings=ContentEmbedder(64, "others")
    ) as other:
        for number in range(18):
            other.conversation(f"t{number:04d}").chunks.reembed(drop=True)
        other.topics.recluster()
        assert other.topics.update().episodes == 18
        assert {row[0] for row in embedding.rows("s.model")} == {"others"}
        assert {each.id for each in other.topics.read()} == before
        assert other.topics.recluster()
        assert {each.id for each in other.topics.read()} & before


async def test_a_worker_finds_topics_behind_the_index(talker: Talker) -> None:
    for number, each in enumerate(talks(10, topics=FEW)):
        talker.say(f"t{number}", *(text for _, text in each.messages), index=False)
    await Worker(talker.memory).drain()
    assert sum(each.episodes for each in talker.memory.topics.read()) == 30
    assert not any(due for (due,) in talker.rows("s.due"))


def test_erasure_and_assignment_at_once_leave_nothing(talker: Talker, cluster: Cluster, own: str) -> None:
    """Two connections: one assigns while the other forgets the user, again and again."""
    failures: list[BaseException] = []

    def assign() -> None:
        try:
            with psycopg.connect(cluster.conn_string(own), autocommit=True) as connection:
                for _ in range(30):
                    call(connection, "assign_topics", thread_id="t0000", user_id=talker.user_id)
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=assign)
    thread.start()
    for number in range(6):
        talker.talk(talks(2, seed=number, topics=FEW))
        talker.memory.forget_user()
    thread.join()
    assert failures == []
    talker.memory.forget_user()
    assert [talker.count(each) for each in TABLES] == [0, 0, 0, 0]


async def test_each_door_has_the_same_topics(caller: Caller, user_id: str) -> None:
    memory = caller.service.for_user(user_id)
    for number, each in enumerate(talks(3, topics=FEW)):
        conversation = memory.conversation(f"t{number}")
        await caller(conversation.append, [text for _, text in each.messages])
        await caller(conversation.index)
    await caller(memory.topics.update)
    found = await caller(memory.topics.read, quotes=2)
    assert Counter(isinstance(each, Topic) for each in found)[True] == len(found) > 0
    await caller(memory.topics.rename, found[0], "Mine", actor=BY)
    got = await caller(memory.topics.get, found[0])
    assert got.label == "Mine"
    assert (await caller(memory.topics.days, since=START))[0].episodes >= 1
    assert await caller(memory.topics.recluster)
