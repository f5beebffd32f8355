"""Erasure: erased data is nowhere in the database, and the receipt lists exactly what was deleted."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

from langchain_supabase_memory import (
    ChunkPolicy,
    ContextBudget,
    MemoryConfig,
    Retention,
    SummaryPolicy,
    SupabaseMemory,
    SupabaseMemoryMiddleware,
    SupabaseStore,
)
from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.language.chunks.episodes import PlacedUnit
from langchain_supabase_memory.language.chunks.units import StoredText, units
from langchain_supabase_memory.language.extractive import ExtractiveSummarizer
from langchain_supabase_memory.memory.services import DefaultUser
from langchain_supabase_memory.operations.recall.indexing import _rows
from langchain_supabase_memory.values import Receipt
from tests.chat_models import says
from tests.conftest import Caller
from tests.owners import conversation_of
from tests.services.postgres import Cluster

POLICY = SummaryPolicy(keep_messages=2, input_characters=400, max_characters=400)
OTHERS = ("a neighbor's thread", "of another agent", "of another user")


def parrot(prompt: Sequence[BaseMessage]) -> str:
    """A summary that tells the secret wherever it sees it, as the worst of models would."""
    found = re.findall(r"canary\w{32}", " ".join(str(message.content) for message in prompt))
    return " ".join(["What was said.", *sorted(set(found))])


@pytest.fixture
def memory(cluster: Cluster, own: str, user_id: str) -> Iterator[SupabaseMemory]:
    memory = SupabaseMemory.from_conn_string(
        cluster.conn_string(own),
        user_id=DefaultUser(user_id),
        model=parrot,
        budget=ContextBudget(characters=1500),
        config=MemoryConfig(policy=POLICY),
    )
    with memory:
        yield memory


def conversation(canary: str) -> list[BaseMessage]:
    """Its canary is in a text, in a call's arguments, in a result, in an artifact and in an image's address."""
    call = {"name": "search", "args": {"for": {"secret": canary}}, "id": "call"}
    image = {"type": "image_url", "image_url": {"url": f"https://example.com/{canary}.png"}}
    messages: list[BaseMessage] = [
        HumanMessage("We begin without it."),
        AIMessage("Indeed."),
        HumanMessage(f"My secret is {canary}."),
        AIMessage("", tool_calls=[call], additional_kwargs={"note": canary}),
        ToolMessage(canary, tool_call_id="call", artifact={"raw": canary}),
        AIMessage(f"I know {canary}.", response_metadata={"echo": canary}),
        HumanMessage([{"type": "text", "text": "Look"}, image]),
        AIMessage("Nice."),
        *[HumanMessage("We talk on about tea and other things.") for _ in range(10)],
    ]
    for number, message in enumerate(messages):
        message.id = f"m{number}"
    return messages


WITH_IT = range(2, 7)
"""The messages in which the canary is."""


def fill(memory: SupabaseMemory, canary: str) -> None:
    memory.conversation("t").append(conversation(canary))
    assert memory.conversation("t").summaries.make().failed is None
    assert any(canary in each.content for each in memory.conversation("t").summaries.list())
    for number, (thread_id, agent_id, user_id) in enumerate(others(memory)):
        other = memory.for_user(user_id).conversation(thread_id, agent_id=agent_id)
        other.append([HumanMessage(OTHERS[number]) for _ in range(8)])
        other.summaries.make()


def others(memory: SupabaseMemory) -> list[tuple[str, str, str]]:
    user_id = str(memory.user_id)
    return [("s", "default", user_id), ("t", "other", user_id), ("t", "default", f"{user_id}-other")]


def left(memory: SupabaseMemory, *which: int) -> None:
    """Others' data are untouched."""
    for number, (thread_id, agent_id, user_id) in enumerate(others(memory)):
        other = memory.for_user(user_id).conversation(thread_id, agent_id=agent_id)
        said = [str(each.message and each.message.text) for each in other.read()]
        assert said == [OTHERS[number]] * 8 * (number in which)
        assert bool(other.summaries.list()) is (number in which)


def test_a_conversation_leaves_nothing(memory: SupabaseMemory, cluster: Cluster, own: str, canary: str) -> None:
    fill(memory, canary)
    before = cluster.dump(own)
    assert before.count(canary) >= 8
    talk = memory.conversation("t")
    segments = len(talk.summaries.list())
    dry = talk.forget(dry_run=True)
    assert dry == Receipt(1, 18, segments, dry_run=True)
    assert cluster.dump(own).count(canary) == before.count(canary)
    assert talk.forget() == Receipt(1, 18, segments)
    assert canary not in cluster.dump(own)
    left(memory, 0, 1, 2)
    assert talk.forget() == Receipt()
    assert talk.forget(dry_run=True) == Receipt(dry_run=True)


def test_a_user_leaves_nothing(memory: SupabaseMemory, cluster: Cluster, own: str, canary: str) -> None:
    fill(memory, canary)
    memory.conversation("one more", agent_id="other").append(conversation(canary), metadata={"seen": canary})
    segments = sum(
        len(memory.conversation(each.thread_id, agent_id=each.agent_id).summaries.list())
        for each in memory.conversations()
    )
    before = cluster.dump(own)
    assert memory.forget_user(dry_run=True) == Receipt(4, 18 + 18 + 16, segments, dry_run=True)
    assert cluster.dump(own).count(canary) == before.count(canary)
    assert memory.forget_user() == Receipt(4, 18 + 18 + 16, segments)
    after = cluster.dump(own)
    assert canary not in after
    assert f"{memory.user_id}\t" not in after, "not even a row with their name"
    left(memory, 2)
    assert memory.forget_user() == Receipt()
    memory.for_user(f"{memory.user_id}-other").forget_user()
    left(memory)


def test_messages_leave_nothing_and_the_others_stay(
    memory: SupabaseMemory, cluster: Cluster, own: str, canary: str
) -> None:
    fill(memory, canary)
    talk = memory.conversation("t")
    segments = talk.summaries.list()
    for number in WITH_IT:
        reach = sum(each.to_sequence >= number for each in talk.summaries.list())
        assert talk.forget_message(f"m{number}", dry_run=True) == Receipt(0, 1, reach, dry_run=True)
        assert talk.forget_message(f"m{number}") == Receipt(0, 1, reach)
        assert talk.forget_message(f"m{number}") == Receipt()
    left(memory, 0, 1, 2)
    assert talk.count() == 13
    for each in talk.summaries.list():
        assert each in segments, "what was not made from it stays"
        assert each.to_sequence < WITH_IT[0]
    remaining = [each.message_id for each in talk.read(columns=["message_id"])]
    assert remaining == ["m0", "m1", *[f"m{number}" for number in range(7, 18)]]
    assert canary not in cluster.dump(own)
    # What is left is summarized anew, and it does not come back.
    assert talk.summaries.make().failed is None
    assert talk.coverage().gaps == []
    assert canary not in cluster.dump(own)


def test_a_dry_run_of_one_message_changes_nothing(
    memory: SupabaseMemory, cluster: Cluster, own: str, canary: str
) -> None:
    fill(memory, canary)
    before = cluster.dump(own)
    receipt = memory.conversation("t").forget_message("m3", dry_run=True)
    assert receipt.messages == 1
    assert receipt.segments >= 1
    after = cluster.dump(own)
    assert sorted(line for line in after.splitlines() if "restrict" not in line) == sorted(
        line for line in before.splitlines() if "restrict" not in line
    )


def test_a_message_that_expired_is_forgotten_in_what_was_made_from_it(
    memory: SupabaseMemory, cluster: Cluster, own: str, canary: str
) -> None:
    fill(memory, canary)
    talk = memory.conversation("t")
    memory.forget_expired(retention=Retention(max_messages=8))
    assert talk.read(columns=["message_id"])[0].message_id == "m10"
    assert canary in cluster.dump(own), "its summary has an age of its own"
    reach = sum(each.to_sequence >= 2 for each in talk.summaries.list())
    dry = talk.forget_message("m2", dry_run=True)
    assert dry == Receipt(0, 0, dry.segments, dry_run=True)
    assert dry.segments >= reach
    receipt = talk.forget_message("m2")
    assert receipt == Receipt(0, 0, dry.segments)
    assert canary not in cluster.dump(own)
    coverage = talk.coverage()
    assert (coverage.gaps, coverage.overlaps) == ([], [])
    assert talk.summaries.make().failed is None
    assert talk.summaries.list()[0].from_sequence == 10


def test_what_expired_leaves_nothing_where_summaries_do_not_live_longer(
    memory: SupabaseMemory, cluster: Cluster, own: str, user_id: str, canary: str
) -> None:
    fill(memory, canary)
    moment = timedelta(microseconds=1)
    receipt = memory.for_user(user_id).forget_expired(retention=Retention(max_age=moment, max_summary_age=moment))
    assert (receipt.conversations, receipt.messages) == (3, 18 + 16)
    assert canary not in cluster.dump(own)
    left(memory, 2)
    assert memory.conversation("t").coverage().complete


ERASES: list[Callable[[SupabaseMemory], object]] = [
    lambda memory: memory.conversation("t").forget(),
    lambda memory: memory.forget_user(),
    lambda memory: [memory.conversation("t").forget_message(f"m{number}") for number in WITH_IT],
    lambda memory: memory.forget_expired(retention=Retention(max_age=timedelta(microseconds=1))),
]


@pytest.mark.parametrize("erase", ERASES, ids=["conversation", "user", "messages", "retention"])
def test_what_is_on_no_branch_leaves_nothing_either(
    memory: SupabaseMemory, cluster: Cluster, own: str, canary: str, erase: Callable[[SupabaseMemory], object]
) -> None:
    said = conversation(canary)
    middleware = SupabaseMemoryMiddleware(memory)
    graph: Any = create_agent(says("fine"), middleware=[middleware], checkpointer=InMemorySaver())
    settings: Any = {"configurable": {"thread_id": "t"}}
    graph.invoke({"messages": said}, settings)
    talk = memory.conversation("t")
    talk.summaries.make()
    talk.index()
    assert any(canary in each.content for each in talk.summaries.list())
    removed: list[BaseMessage] = [RemoveMessage(id=f"m{number}") for number in WITH_IT]
    graph.update_state(settings, {"messages": removed})
    graph.invoke({"messages": [HumanMessage("Go on.")]}, settings)
    held = cluster.dump(own)
    assert held.count(canary) >= 5, "it is kept"
    assert canary not in str(talk.summaries.list())
    assert [each.state for each in talk.coverage().ranges].count("superseded") == 1
    erase(memory)
    assert canary not in cluster.dump(own)


def speakers(cluster: Cluster, own: str, user_id: str) -> list[str]:
    with psycopg.connect(cluster.conn_string(own)) as connection:
        rows = connection.execute("select unnest(speakers) from memory.conversations where user_id = %s", [user_id])
        return [row[0] for row in rows.fetchall()]


def said_by(name: str) -> list[BaseMessage]:
    return [
        HumanMessage("The kettle is on.", id="a", name="Ana"),
        HumanMessage("My knee hurts when it rains.", id="z", name=name),
        HumanMessage("Then stay in, and drink tea.", id="b", name="Ana"),
    ]


def forget_it(memory: SupabaseMemory) -> None:
    memory.conversation("t").forget_message("z")


def edit_it(memory: SupabaseMemory) -> None:
    memory.conversation("t").append([HumanMessage("My knee hurts when it rains.", id="z", name="Ben")])


def drop_its_topic(memory: SupabaseMemory) -> None:
    memory.privacy.opt_out(topic="knee", actor="ana")


@pytest.mark.parametrize(
    ("takes", "left"),
    [(forget_it, ["Ana"]), (edit_it, ["Ana", "Ben"]), (drop_its_topic, ["Ana"])],
    ids=["forgotten", "edited", "topic"],
)
def test_a_speaker_of_whom_nothing_is_left_is_known_no_more(
    memory: SupabaseMemory,
    cluster: Cluster,
    own: str,
    canary: str,
    takes: Callable[[SupabaseMemory], None],
    left: list[str],
) -> None:
    name = f"Zorba{canary}" + "x" * 3000
    memory.conversation("t").append(said_by(name))
    memory.conversation("other").append([HumanMessage("I am somebody else's Zorba.", name="Zorba")])
    memory.conversation("t").index()
    memory.conversation("other").index()
    assert sorted(speakers(cluster, own, str(memory.user_id))) == ["Ana", "Zorba", name]
    takes(memory)
    assert sorted(speakers(cluster, own, str(memory.user_id))) == ["Ana", "Zorba"], "at once"
    memory.conversation("t").index()
    assert sorted(speakers(cluster, own, str(memory.user_id))) == sorted([*left, "Zorba"])
    if takes is not drop_its_topic:
        assert canary not in cluster.dump(own)


def test_a_speaker_of_whom_something_is_left_stays_known(memory: SupabaseMemory, cluster: Cluster, own: str) -> None:
    talk = memory.conversation("t")
    talk.append(said_by("Zorba"))
    talk.index()
    talk.forget_message("a")
    assert speakers(cluster, own, str(memory.user_id)) == ["Ana", "Zorba"]
    talk.forget_message("b")
    assert speakers(cluster, own, str(memory.user_id)) == ["Zorba"]


@pytest.mark.parametrize("age", ["chunks", "messages"])
def test_nor_is_one_whose_words_expired(
    memory: SupabaseMemory, cluster: Cluster, own: str, canary: str, age: str
) -> None:
    moment = timedelta(microseconds=1)
    memory.conversation("t").append(said_by(canary))
    memory.conversation("t").index(chunking=ChunkPolicy(max_age=moment if age == "chunks" else None))
    memory.forget_expired(retention=Retention(max_age=moment) if age == "messages" else Retention())
    assert speakers(cluster, own, str(memory.user_id)) == []
    memory.conversation("t").forget_message("z")
    assert canary not in cluster.dump(own)


def test_a_summary_under_way_does_not_bring_it_back(
    memory: SupabaseMemory, cluster: Cluster, own: str, canary: str
) -> None:
    talk = memory.conversation("t")
    talk.append(conversation(canary))

    def forgetting(prompt: Sequence[BaseMessage]) -> str:
        for number in WITH_IT:
            talk.forget_message(f"m{number}")
        return parrot(prompt)

    talk.summaries.make(model=forgetting)
    assert canary not in cluster.dump(own)

    def erasing(prompt: Sequence[BaseMessage]) -> str:
        talk.forget()
        talk.append([HumanMessage("anew", id=f"m{n}") for n in range(18)])
        return parrot(prompt)

    talk.append(conversation(canary))
    talk.summaries.make(model=erasing)
    assert canary not in cluster.dump(own)
    assert talk.count() == 18


async def test_receipts_through_every_door(caller: Caller, user_id: str) -> None:
    where = {"thread_id": "t", "user_id": user_id}
    batch = [HumanMessage("x" * 90, id=f"m{number}") for number in range(12)]
    talk = conversation_of(caller.service, **where)
    await caller(talk.append, batch)
    policy = SummaryPolicy(keep_messages=2, input_characters=400)
    await caller(talk.summaries.make, policy=policy, model=lambda _: "What was said.")
    segments = await caller(talk.summaries.list)
    inside = sum(each.to_sequence >= 5 for each in segments)
    assert 0 < inside < len(segments)
    for dry_run in (True, False):
        forget = await caller(talk.forget_message, "m5", dry_run=dry_run)
        assert forget == Receipt(0, 1, inside, dry_run)
    for dry_run in (True, False):
        assert await caller(talk.forget, dry_run=dry_run) == Receipt(1, 11, len(segments) - inside, dry_run)
    await caller(talk.append, batch[:3])
    for dry_run in (True, False):
        assert await caller(caller.service.for_user(user_id).forget_user, dry_run=dry_run) == Receipt(1, 3, 0, dry_run)
    assert not await caller(caller.service.for_user(user_id).conversations)


async def test_what_waits_is_dropped_with_what_is_forgotten(caller: Caller, user_id: str) -> None:
    memory = SupabaseMemory(caller.service._services.transport, user_id=DefaultUser(user_id))
    for forget in (memory.conversation("t").forget, memory.forget_user):
        memory._services.outbox.keep(memory._services.key("t"), [HumanMessage("waiting", id="w")])
        memory._services.outbox.keep(memory._services.key("t", f"{user_id}-other"), [HumanMessage("waiting", id="w")])
        await caller(forget, dry_run=True)
        assert len(memory._services.outbox) == 2
        await caller(forget)
        assert memory._services.outbox.conversations() == [memory._services.key("t", f"{user_id}-other")]


async def test_a_users_end_takes_the_store_with_it_and_nobody_elses(caller: Caller, user_id: str) -> None:
    mine = SupabaseStore(caller.service.for_user(user_id))
    others = SupabaseStore(caller.service.for_user(user_id + "-other"))
    for store in (mine, others):
        await store.aput(("facts",), "kiln", {"text": "It shows E-47"})
    assert (await caller(caller.service.for_user(user_id).forget_user, dry_run=True)).items == 1
    assert await mine.aget(("facts",), "kiln") is not None
    assert (await caller(caller.service.for_user(user_id).forget_user)).items == 1
    assert await mine.aget(("facts",), "kiln") is None
    assert await others.aget(("facts",), "kiln") is not None


# Nothing that stays lets anybody guess back what was said.


async def test_a_users_conversations_with_one_agent_go_alone(caller: Caller, user_id: str) -> None:
    memory = caller.service
    for agent_id in ("billing", "support"):
        for thread_id in ("one", "two"):
            await caller(
                memory.for_user(user_id).conversation(thread_id, agent_id=agent_id).append, [HumanMessage("Hi")]
            )
    await caller(memory.for_user(user_id).privacy.opt_out, "divorce", actor="Maya")
    tried = await caller(memory.for_user(user_id).forget_user, agent_id="billing", dry_run=True)
    assert tried == Receipt(2, 2, dry_run=True)
    assert await caller(memory.for_user(user_id).forget_user, agent_id="billing") == Receipt(2, 2)
    left = await caller(memory.for_user(user_id).conversations)
    assert [each.agent_id for each in left] == ["support", "support"]
    assert len(await caller(memory.for_user(user_id).privacy.opt_outs)) == 1, "what is the user's own stays"
    assert await caller(memory.for_user(user_id).forget_user) == Receipt(2, 2)
    assert await caller(memory.for_user(user_id).privacy.opt_outs) == []
    with pytest.raises(InvalidInputError, match="agent_id"):
        await caller(memory.for_user(user_id).forget_user, agent_id="")


def test_an_id_of_a_chunk_comes_from_its_place_and_tells_nothing_of_its_words(memory: SupabaseMemory) -> None:
    found = []
    for pin in ("4711", "0815"):
        said = HumanMessage(f"My PIN is {pin}, keep it.", id="pin")
        talk = memory.conversation("t")
        made = talk.append([said])
        talk.index()
        [chunk] = talk.chunks.list()
        found.append((chunk.id, made.conversation_id))
        talk.forget()
    assert len({chunk for chunk, _ in found}) == 2, "another conversation is another place"
    conversation = str(uuid4())
    pieces = [
        units([StoredText(3, "pin", HumanMessage(text), datetime.now(UTC))], max_tokens=99)[0]
        for text in ("A kiln.", "B.")
    ]
    ids = [next(_rows(made, PlacedUnit(0, 0, None), conversation, {3: []}, {}, {}))["id"] for made in pieces]
    assert ids[0] == ids[1], "the same place in one conversation has the same id, whatever is said there"


@pytest.mark.parametrize("how", ["forget", "edit", "expire", "expire the chunk", "topic"])
def test_what_people_said_of_a_chunk_goes_with_it(memory: SupabaseMemory, cluster: Cluster, own: str, how: str) -> None:
    talk = memory.conversation("t")
    talk.append([HumanMessage("My PIN is 4711.", id="pin"), HumanMessage("Else.", id="else")])
    talk.index()
    memory.privacy.rate(talk.chunks.list()[0], importance=0.9, actor="ana")
    if how == "forget":
        talk.forget_message("pin")
    elif how == "edit":
        talk.append([HumanMessage("My PIN is another.", id="pin")])
    elif how == "expire":
        memory.forget_expired(retention=Retention(max_messages=1))
    elif how == "topic":
        memory.privacy.opt_out(actor="ana", topic="PIN")
    else:
        with psycopg.connect(cluster.conn_string(own), autocommit=True) as connection:
            connection.execute(
                "update memory.working_memory_chunks set expires_at = now() where user_id = %s", [memory.user_id]
            )
        memory.forget_expired()
    with psycopg.connect(cluster.conn_string(own)) as connection:
        rows = connection.execute("select * from memory.chunk_ratings where user_id = %s", [memory.user_id]).fetchall()
    assert rows == []


def test_a_topic_that_may_be_remembered_again_is_named_no_longer(
    memory: SupabaseMemory, cluster: Cluster, own: str, canary: str
) -> None:
    talk = memory.conversation("t")
    for place in (memory.privacy, talk):
        talk.append([HumanMessage("Hello")])
        place.opt_out(f"the {canary}", actor="ana")
        assert canary in cluster.dump(own)
        place.opt_in(f"The {canary}!", actor="ana")
        assert canary not in cluster.dump(own)
    assert [each.action for each in memory.privacy.changes()][:2] == ["opt_in", "opt_out"], "who did it stays"


def test_what_a_person_deleted_and_has_expired_leaves_no_digest(
    memory: SupabaseMemory, cluster: Cluster, own: str
) -> None:
    memory = SupabaseMemory(memory._services.transport, user_id=memory.user_id, model=ExtractiveSummarizer())
    conversation = memory.conversation("t")
    conversation.append([HumanMessage("My kiln needs 3 shelves by May.", id="a"), AIMessage("Noted.", id="b")])
    conversation.board.revise()
    for item in conversation.board.read().items:
        conversation.board.delete(item.id, actor="ana")
    conversation.add_turn("Else?", "Nothing.")
    count = "select count(*) from memory.conversation_board_items where user_id = %s and deleted_at is not null"
    with psycopg.connect(cluster.conn_string(own), autocommit=True) as connection:
        assert connection.execute(count, [memory.user_id]).fetchone() != (0,)
        memory.forget_expired(retention=Retention(max_turns=1))
        assert connection.execute(count, [memory.user_id]).fetchone() == (0,)
