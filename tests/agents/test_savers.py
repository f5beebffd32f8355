"""Savers shared by processes: with concurrent runs and lost states, the memory behaves as with an in-memory saver."""

from __future__ import annotations

import io
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.messages import RemoveMessage

from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.transfer import export_conversations
from tests.chat_models import config
from tests.operations.test_branches import Story, Subject, texts
from tests.run_process import Setup, overlapping
from tests.services.savers import either, saver

if TYPE_CHECKING:
    from tests.services.postgres import Cluster

WAYS = [f"{way}-{color}" for way in ("middleware", "nodes", "load", "functional") for color in ("sync", "async")]

KINDS = ["sqlite", "postgres"]


@pytest.fixture
def address(request: pytest.FixtureRequest, cluster: Cluster, tmp_path: Path) -> str:
    """Where the checkpoints of a test are."""
    if request.node.callspec.params["kind"] == "postgres":
        return cluster.conn_string(cluster.create_database(supabase=False, vector_schema=None))
    return str(tmp_path / "threads.db")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["none", *KINDS])
@pytest.mark.parametrize("way", WAYS)
async def test_runs_of_two_processes_take_nothing_from_each_other(
    memory: SupabaseMemory, conn_string: str, user_id: str, address: str, way: str, kind: str
) -> None:
    """2, 6 and 20 runs at once."""
    asked = [[[f"question {at}.{runs}.{n}" for n in range(runs)] for runs in (1, 3, 10)] for at in range(2)]
    questions = [text for rounds in asked for texts in rounds for text in texts]
    expected = [each for text in ("first", *questions, "last") for each in (text, f"re {text}")]
    async with either(kind, address, way.rpartition("-")[2]) as made:
        subject = Subject(memory, way, saver=made)
        await subject("first")
        held = overlapping(Setup(conn_string, user_id, way, kind, address), asked)
        await subject("last")
        assert len(held) == len(questions)
        assert {each for state in held for each in state} <= set(expected)
        stored = texts([each.message for each in memory.conversation("t").read()])
        assert sorted(stored) == sorted(expected)
        for text in questions:
            assert stored.index(text) < stored.index(f"re {text}")
        small = [[text for rounds in asked for text in rounds[place]] for place in range(2)]
        for meeting in small if way.startswith(("middleware", "nodes")) else []:  # they did overlap
            assert max(map(stored.index, meeting)) < min(stored.index(f"re {text}") for text in meeting)
        assert sorted(texts(memory.conversation("t").context().messages)) == sorted(expected)
        assert {each.state for each in memory.conversation("t").coverage().ranges} == {"verbatim"}
        assert exported(memory) == stored
        await subject("and on")
        assert set(expected) <= set(texts(subject.chat.shown[-1]))


def exported(memory: SupabaseMemory) -> list[str]:
    target = io.BytesIO()
    export_conversations(memory, target)
    lines = map(json.loads, target.getvalue().splitlines())
    return [line["text"].strip() for line in lines if line["kind"] == "message"]


# --- What a caller names: checkpoints, removals, edits

STATES = [way for way in WAYS if not way.startswith("functional")]


@pytest.fixture
async def subject(memory: SupabaseMemory, address: str, way: str, kind: str) -> AsyncIterator[Subject]:
    async with either(kind, address, way.rpartition("-")[2]) as made:
        with saver(kind, address) as reader:
            yield Subject(memory, way, saver=made, reader=reader)


@pytest.mark.parametrize("kept", [0, 2])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", WAYS)
async def test_a_fork_leaves_what_lies_beyond_its_checkpoint(subject: Subject, way: str, kind: str, kept: int) -> None:
    await subject.talks("one", "two")
    there, first = subject.read.get_state(config()).config, subject.state
    await subject("other", subject.checkpoint(kept))
    assert texts(subject.state) == [*texts(first[:kept]), "other", "re other"]
    subject.agrees(sequences=6)
    await subject("on")
    subject.agrees(sequences=8)
    await subject("back", there)
    assert texts(subject.state) == [*texts(first), "back", "re back"]
    subject.agrees(sequences=10)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", STATES)
async def test_a_removal_and_an_edit_are_taken_over(subject: Subject, way: str, kind: str) -> None:
    await subject.talks("one", "two", "three")
    subject.update(*[RemoveMessage(id=str(each.id)) for each in subject.state[2:4]])
    await subject("four")
    subject.agrees(sequences=8)
    subject.update(subject.state[-1].model_copy(update={"content": "edited"}))
    await subject("five")
    assert "edited" in texts(subject.state)
    subject.agrees(sequences=10)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", STATES)
async def test_another_process_sees_what_was_removed(
    subject: Subject, conn_string: str, user_id: str, address: str, way: str, kind: str
) -> None:
    await subject.talks("one", "two")
    subject.update(RemoveMessage(id=str(subject.state[-1].id)))
    overlapping(Setup(conn_string, user_id, way, kind, address), [[["three"]]])
    state = ["one", "re one", "two", "three", "re three"]
    assert texts(subject.state) == state
    stored = [each.message for each in subject.memory.conversation("t").read()]
    assert texts(stored) == state


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", ["middleware-sync", "middleware-async", "nodes-async", "load-sync"])
async def test_they_agree_whatever_happens(
    subject: Subject, memory: SupabaseMemory, way: str, kind: str, fuzz: int
) -> None:
    def wiped() -> dict[str, Any]:
        subject.reader.delete_thread("t")
        return {"saver": subject.saver, "reader": subject.reader}

    for seed in range(2 * fuzz):
        memory.conversation("t").forget()
        story = Story(memory, way, seed, wiped)
        for _ in range(10):
            await story.step()
