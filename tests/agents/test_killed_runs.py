"""A process that is killed between what it stored and the checkpoint of it: who goes on makes it anew, once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver

from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.agents.run import checkpoints
from langchain_supabase_memory.effects import run
from langchain_supabase_memory.operations.branch import Lineage
from tests.chat_models import asks, config, says
from tests.operations.test_branches import Subject, texts
from tests.run_process import Setup, killed
from tests.services.savers import either, saver

MIDDLEWARE = ["middleware-sync", "middleware-async"]


def stored(memory: SupabaseMemory) -> list[str]:
    return texts([each.message for each in memory.conversation("t").read()])


@pytest.mark.parametrize("way", MIDDLEWARE)
@pytest.mark.parametrize("turns", [0, 1])
async def test_an_answer_without_its_checkpoint_is_replaced_by_the_one_of_the_resumed_run(
    conn_string: str, memory: SupabaseMemory, user_id: str, tmp_path: Path, way: str, turns: int
) -> None:
    setup = Setup(conn_string, user_id, way, "sqlite", str(tmp_path / "checkpoints"))
    before = ["first", "before"] * turns
    async with either("sqlite", setup.address, way.rpartition("-")[2]) as kept:
        chat = says(*["before"] * turns, "answer", "more")
        with saver("sqlite", setup.address) as reader:
            subject = Subject(memory, way, chat, saver=kept, reader=reader)
            await subject.talks(*["first"] * turns)
            killed(setup, "second", len(before) + 2)
            assert stored(memory) == [*before, "second", "lost"]
            await subject(None)
            assert texts(chat.shown[-1]) == [*before, "second"], "no prompt has what is made anew"
            assert stored(memory) == texts(subject.state) == [*before, "second", "answer"]
            superseded = memory.conversation("t").superseded.list()
            assert texts([each.message for each in superseded if each.message]) == ["lost"], "nothing is deleted"
            await subject("third")
            assert stored(memory) == texts(subject.state) == [*before, "second", "answer", "third", "more"]


@pytest.mark.parametrize("way", MIDDLEWARE)
async def test_what_tools_said_to_a_lost_answer_goes_with_it(
    conn_string: str, memory: SupabaseMemory, user_id: str, tmp_path: Path, way: str
) -> None:
    setup = Setup(conn_string, user_id, way, "sqlite", str(tmp_path / "checkpoints"))
    async with either("sqlite", setup.address, way.rpartition("-")[2]) as kept:
        chat = says("before", "answer")
        with saver("sqlite", setup.address) as reader:
            subject = Subject(memory, way, chat, saver=kept, reader=reader)
            await subject("first")
            killed(setup, "look up the kiln", 6)
            assert stored(memory)[2:] == ["look up the kiln", "lost", "meaning of lost", "lost"]
            await subject(None)
            assert texts(chat.shown[-1]) == ["first", "before", "look up the kiln"]
            assert stored(memory) == texts(subject.state) == ["first", "before", "look up the kiln", "answer"]


@pytest.mark.parametrize("way", [*MIDDLEWARE, "nodes-sync", "nodes-async"])
async def test_what_was_said_before_the_run_was_resumed_stays(
    conn_string: str, memory: SupabaseMemory, user_id: str, tmp_path: Path, way: str
) -> None:
    """People may have read an answer that its process could not save: the next question is no reason to take it away."""
    setup = Setup(conn_string, user_id, way, "sqlite", str(tmp_path / "checkpoints"))
    async with either("sqlite", setup.address, way.rpartition("-")[2]) as kept:
        subject = Subject(memory, way, says("before", "answer"), saver=kept)
        await subject("first")
        killed(setup, "second", 4)
        await subject("third")
        assert stored(memory) == ["first", "before", "second", "lost", "third", "answer"]


def test_a_checkpoint_that_is_being_written_is_none_that_was_lost() -> None:
    class Slow(InMemorySaver):
        """A saver that has a checkpoint a moment later."""

        looks = 0

        def get_tuple(self, config: Any) -> Any:
            self.looks += 1
            return None if self.looks < 3 or config["configurable"]["checkpoint_id"] != "2" else True

    lineage = Lineage(
        saver=Slow(), place={"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": "1"}, is_resumed=True
    )
    assert run(checkpoints.unwritten(lineage, {"0", "2"})) == set(), "what is older than the state may be pruned"
    assert run(checkpoints.unwritten(lineage, {"2", "3"})) == {"3"}


def test_what_is_resumed_takes_nothing_of_an_application(memory: SupabaseMemory) -> None:
    """What is stored by hand, or by a graph without checkpoints, has no checkpoint that could be missing."""

    class Down(InMemorySaver):
        """A saver that fails once, after the model was asked."""

        fails = True

        def put(self, config: Any, checkpoint: Any, *others: Any) -> Any:
            said = checkpoint["channel_values"].get("messages") or [None]
            if self.fails and isinstance(said[-1], AIMessage):
                self.fails = False
                raise OSError("disk full")
            return super().put(config, checkpoint, *others)

    subject = Subject(memory, "middleware-sync", says("answer"), saver=Down())
    with pytest.raises(OSError, match="disk full"):
        subject.graph.invoke(asks("question"), config(), durability="sync")
    memory.conversation("t").append([AIMessage("by hand")])
    Subject(memory, "middleware-sync", says("aside")).graph.invoke(asks("beside"), config())
    subject.graph.invoke(None, config())
    assert {"question", "by hand", "beside", "aside", "answer"} <= {*stored(memory)}
