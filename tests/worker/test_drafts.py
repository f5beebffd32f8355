"""A model's answer is stored and not requested again, however many requests a message takes and workers are killed."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from langchain_supabase_memory import Retention, SummaryPolicy, SupabaseMemory
from langchain_supabase_memory.effects import Ask, Call, Flow, ask, call
from langchain_supabase_memory.operations import work
from langchain_supabase_memory.operations.work import Lease
from langchain_supabase_memory.settings import BoardPolicy
from langchain_supabase_memory.values import ConversationKey
from langchain_supabase_memory.worker import Worker, WorkerPolicy
from langchain_supabase_memory.worker.model_answer_cache import with_cached_answers
from tests import worker_process
from tests.memory_keywords import memory_keywords
from tests.services.data_api import DataApi, token
from tests.services.emptied import delete_from
from tests.services.postgres import Cluster, execute
from tests.worker_process import Plug, Setup, noted

PART: Final = 300
"""The characters of what was said in one question."""
LONG: Final = " ".join(f"Crate number {number} holds tea for Anna." for number in range(80))
POLICIES: Final[dict[str, Any]] = {
    "policy": SummaryPolicy(
        messages=1, keep_messages=1, input_characters=PART, max_characters=100, attempts=1, mode="background"
    ),
    "board_policy": BoardPolicy(update_frequency=1, input_characters=PART, attempts=1),
}
WORK: Final = WorkerPolicy(concurrency=1, lease_seconds=1.0, debounce_seconds=0.0, poll_seconds=0.1, grace_seconds=0.0)


@pytest.fixture
def empty(cluster: Cluster, own: str, own_address: str) -> str:
    delete_from(cluster, own, "memory.conversations")
    return own_address


@pytest.fixture(scope="module")
def url(cluster: Cluster, own_address: str) -> Iterator[str]:
    with DataApi(cluster, own_address.rpartition("/")[2]) as api:
        yield api.url


def drafts(own_address: str) -> int:
    return int(execute(own_address, "select count(*) from memory_private.drafts")[0][0])


# --- With real workers


@pytest.mark.parametrize(("kind", "count"), [("direct", 3), ("data_api", 6)])
async def test_who_goes_on_after_a_kill_repeats_one_question(
    empty: str, url: str, tmp_path: Path, kind: str, count: int
) -> None:
    """A message of many parts: the first worker is killed right after an answer, the next does the rest."""
    log = tmp_path / "log"
    caller = {"conn_string": empty} if kind == "direct" else {"url": url, "key": token("service_role")}
    setup = Setup(str(log), **caller, worker=WORK, embeds=False, drains=True, memory=POLICIES)  # type: ignore[arg-type]
    async with SupabaseMemory.from_conn_string(empty, user_id="u") as memory:
        await memory.conversation("t").aappend([HumanMessage(LONG), AIMessage("So it is.")])
        killed = worker_process.started(dataclasses.replace(setup, plug=Plug("model", "after", count)))
        await asyncio.to_thread(killed.join, 30)
        assert killed.exitcode == -9
        assert drafts(empty) == count - 1
        end = asyncio.get_running_loop().time() + 30
        while (await memory.work.aqueue()).depth and asyncio.get_running_loop().time() < end:
            other = worker_process.started(
                setup
            )  # until the lease of the killed one has run out there is nothing to do
            await asyncio.to_thread(other.join, 30)
            assert other.exitcode == 0
            await asyncio.sleep(0.2)
        (segment,) = await memory.conversation("t").summaries.alist()
        assert segment.to_sequence == 0
        board = await memory.conversation("t").board.aread()
        assert board.through_sequence == 1
    notes = noted(log)
    answers = {note["made"]: note for note in notes if note["event"] == "answered"}
    used = set()
    for text in (segment.content, board.summary):
        made = text.removeprefix("The chain is at ").removesuffix(".")
        while made:  # each was made from the one before, whoever asked for it
            used.add(answers[made]["call"])
            made = answers[made]["before"]
    assert len(used) > 10
    assert sum(note["event"] == "asked" for note in notes) - len(used) == 1
    assert drafts(empty) == 0


class Hanging:
    """A model's answers, as a function; one of them never comes."""

    def __init__(self, *, hangs_at: int) -> None:
        self.asked: list[str] = []
        self.is_there = asyncio.Event()
        self._hangs_at = hangs_at

    async def __call__(self, messages: list[BaseMessage]) -> str:
        self.asked.append(str(messages[-1].content))
        if len(self.asked) == self._hangs_at:
            self.is_there.set()
            await asyncio.Event().wait()
        return "The crates hold tea, for Anna. " * (1 if "too long" in str(messages[0].content) else 9)


async def test_a_summary_that_came_out_too_long_is_only_shortened(empty: str) -> None:
    """The worker is stopped while the model shortens; the next asks for that alone."""
    first, second = Hanging(hangs_at=2), Hanging(hangs_at=0)
    said = [HumanMessage("The crates hold tea."), AIMessage("So it is.")]
    settings = {**POLICIES, "board_policy": BoardPolicy(update_frequency=100)}
    async with SupabaseMemory.from_conn_string(empty, user_id="u", model=first, **memory_keywords(settings)) as memory:
        await memory.conversation("t").aappend(said)
        worker = asyncio.create_task(Worker(memory, policy=WORK).run())
        await first.is_there.wait()
        assert drafts(empty) == 1
        worker.cancel()
        await asyncio.gather(worker, return_exceptions=True)
    async with SupabaseMemory.from_conn_string(empty, user_id="u", model=second, **memory_keywords(settings)) as memory:
        await Worker(memory, policy=WORK).drain()
        (segment,) = await memory.conversation("t").summaries.alist()
    assert segment.content == "The crates hold tea, for Anna."
    assert second.asked == first.asked[1:]
    assert drafts(empty) == 0


# --- What becomes of them


async def leased(memory: SupabaseMemory) -> Lease:
    (lease,) = await memory._services.arun(work.claim("w", limit=1, lease_seconds=60, debounce_seconds=0))
    return lease


CHANGES: Final = {
    "forget the message": lambda memory: memory.conversation("t").aforget_message("m1"),
    "forget the conversation": lambda memory: memory.conversation("t").aforget(),
    "edit the message": lambda memory: memory.conversation("t").aappend([HumanMessage("Other.", id="m1")]),
    "let it expire": lambda memory: memory.aforget_expired(retention=Retention(max_messages=1)),
    "opt out": lambda memory: memory.conversation("t").aopt_out(actor="u"),
    "opt out of a topic": lambda memory: memory.privacy.aopt_out(topic="tea", actor="u"),
}


@pytest.mark.parametrize("change", list(CHANGES))
async def test_a_draft_does_not_outlive_what_it_was_made_from(empty: str, change: str) -> None:
    """Neither one that is there, nor one whose answer comes later."""
    async with SupabaseMemory.from_conn_string(empty, user_id="u") as memory:
        said = [HumanMessage("The crates hold tea.", id="m1"), AIMessage("So it is.", id="m2")]
        await memory.conversation("t").aappend(said)
        lease = await leased(memory)
        assert await memory._services.arun(work.keep_draft(lease, "1", "The crates hold tea."))
        assert drafts(empty) == 1
        await CHANGES[change](memory)
        assert drafts(empty) == 0
        assert not await memory._services.arun(work.keep_draft(lease, "2", "The crates hold tea."))
        assert drafts(empty) == 0


async def test_more_being_said_changes_nothing(empty: str) -> None:
    async with SupabaseMemory.from_conn_string(empty, user_id="u") as memory:
        await memory.conversation("t").aappend([HumanMessage("One.")])
        lease = await leased(memory)
        assert lease.drafts == {}
        await memory.conversation("t").aappend([HumanMessage("Two.")])
        assert await memory._services.arun(work.keep_draft(lease, "d", "answer \U0001f600"))
        await memory._services.arun(work.release([lease]))
        again = await leased(memory)
        assert again.drafts == {"d": "answer \U0001f600"}
        assert "answer" not in repr(again)
        assert not await memory._services.arun(work.keep_draft(lease, "e", "from a lease that is another's now"))
        assert await memory._services.arun(work.finish(again)) == "done"
        assert drafts(empty) == 0


async def test_a_topic_that_is_not_to_be_remembered_is_not_drafted(empty: str) -> None:
    async with SupabaseMemory.from_conn_string(empty, user_id="u") as memory:
        await memory.privacy.aopt_out(topic="divorce", actor="u")
        await memory.conversation("t").aappend([HumanMessage("My divorce is final.")])
        lease = await leased(memory)
        assert not await memory._services.arun(work.keep_draft(lease, "1", "They are divorced."))
        assert await memory._services.arun(work.keep_draft(lease, "2", "They speak."))
        assert drafts(empty) == 1


# --- The flow alone

LEASE: Final = Lease(ConversationKey("t", "u"), "c", "token", 1, 0.0, (1, 0, None, -1))


def questions(*texts: str) -> Flow[list[str]]:
    """Asks these, and stores what was answered last."""
    answers = []
    for text in texts:
        answers.append(str((yield from ask([HumanMessage(text)], 1.0)).content))
    yield from call("memory_commit_summary", {})
    return answers


def driven(lease: Lease, *texts: str) -> tuple[list[str], list[str], dict[str, str]]:
    """What was answered, what was asked, and what was kept."""
    flow = with_cached_answers(questions(*texts), lease, "model")
    asked: list[str] = []
    kept: dict[str, str] = {}
    step = next(flow)
    while True:
        answer: Any = {}
        if isinstance(step, Ask):
            asked.append(str(step.prompt[-1].content))
            answer = AIMessage(f"answer {len(asked)}")
        elif isinstance(step, Call) and step.function == "memory_worker_keep_draft":
            kept[step.arguments["p_digest"]] = step.arguments["p_answer"]
            answer = {"kept": True}
        try:
            step = flow.send(answer)
        except StopIteration as stop:
            return stop.value, asked, kept


def test_only_what_another_question_follows_is_kept() -> None:
    answers, asked, kept = driven(LEASE, "a", "b", "c")
    assert (answers, asked) == (["answer 1", "answer 2", "answer 3"], ["a", "b", "c"])
    assert list(kept.values()) == ["answer 1", "answer 2"]
    again = dataclasses.replace(LEASE, drafts=kept)
    assert driven(again, "a", "b", "c") == (["answer 1", "answer 2", "answer 1"], ["c"], {})


def test_an_answer_that_was_of_no_use_is_not_kept() -> None:
    answers, asked, kept = driven(LEASE, "a", "a", "b")
    assert (answers, asked) == (["answer 1", "answer 2", "answer 3"], ["a", "a", "b"])
    assert list(kept.values()) == ["answer 2"]


def test_nor_is_a_draft_that_was_of_no_use_given_twice() -> None:
    _, _, kept = driven(LEASE, "a", "b")
    answers, asked, better = driven(dataclasses.replace(LEASE, drafts=kept), "a", "a", "b")
    assert asked == ["a", "b"]
    assert answers == ["answer 1", "answer 1", "answer 2"]
    assert list(better) == list(kept)


def test_another_models_answers_are_not_taken() -> None:
    _, _, kept = driven(LEASE, "a", "b")
    flow = with_cached_answers(questions("a", "b"), dataclasses.replace(LEASE, drafts=kept), "another")
    assert isinstance(next(flow), Ask)


def test_what_the_model_raises_reaches_who_asked() -> None:
    flow = with_cached_answers(questions("a", "b"), LEASE, "model")
    next(flow)
    with pytest.raises(TimeoutError):
        flow.throw(TimeoutError())
