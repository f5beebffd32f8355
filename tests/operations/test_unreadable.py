"""One owner's unreadable rows and failing work never stop another's, and no kind of work blocks the others."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner
from langchain_core.messages import HumanMessage

from langchain_supabase_memory import SummaryPolicy, SupabaseMemory
from langchain_supabase_memory.adapters.transports.response_shapes import unreadable
from langchain_supabase_memory.cli.application import commands
from langchain_supabase_memory.errors import InvalidInputError, UnavailableError, from_status
from langchain_supabase_memory.operations import summaries, work
from langchain_supabase_memory.operations.recall import indexing
from langchain_supabase_memory.operations.work import Lease
from langchain_supabase_memory.settings import BoardPolicy, Retention
from langchain_supabase_memory.worker import Worker, WorkerPolicy
from tests.chat_models import ScriptedModel
from tests.embedders import WordEmbedder
from tests.memory_keywords import memory_keywords
from tests.services.emptied import delete_from
from tests.services.postgres import Cluster, execute

ANSWER = '{"summary": "What was said."}'
POISON = ("a\nb", "\x1b[2J", "x" * 600)
SETTINGS: dict[str, Any] = {
    "policy": SummaryPolicy(messages=4, keep_messages=1, attempts=1, mode="background", min_quality=None),
    "board_policy": BoardPolicy(update_frequency=5, attempts=1),
}
FAST = WorkerPolicy(poll_seconds=0.1, debounce_seconds=0.0, retry_seconds=60.0)


class UnheardOfError(Exception):
    """Of a kind that nobody here has heard of."""


@pytest.fixture(scope="module")
def address(cluster: Cluster, own: str) -> str:
    """The address of a database where nobody else's work is, and whose tables check no ids."""
    for (constraint,) in execute(
        cluster.conn_string(own),
        "select conname from pg_constraint where conrelid = 'memory.conversations'::regclass and contype = 'c'",
    ):
        cluster.execute(f"alter table memory.conversations drop constraint {constraint}", database=own)
    return cluster.conn_string(own)


@pytest.fixture
def empty(cluster: Cluster, own: str, address: str) -> str:
    delete_from(cluster, own, "memory.conversations", "memory_private.owners", "memory_private.chores")
    return address


@pytest.fixture
def memory(empty: str) -> Iterator[SupabaseMemory]:
    """A memory of a server, in a database that is empty."""
    with SupabaseMemory.from_conn_string(
        empty, model=ScriptedModel(script=lambda _: ANSWER), embeddings=WordEmbedder(), **memory_keywords(SETTINGS)
    ) as memory:
        yield memory


def say(memory: SupabaseMemory, user_id: str, thread_id: str = "t", messages: int = 6) -> None:
    said = [HumanMessage(f"message {number} of {thread_id}") for number in range(messages)]
    memory.for_user(user_id).conversation(thread_id).append(said)


def poison(memory: SupabaseMemory, address: str) -> list[str]:
    """Conversations whose ids Python refuses, before and after everybody else's; their uuids."""
    for number in range(len(POISON)):
        say(memory, f"poison {number}")
    for number, ids in enumerate(POISON):
        column = ("user_id", "agent_id", "thread_id")[number % 3]
        if column == "user_id":  # it is the key of all the others
            execute(
                address, "insert into memory.conversations (user_id, thread_id, next_sequence) values (%s, 't', 1)", ids
            )
            execute(
                address,
                "insert into memory_private.work (user_id, conversation_id)"
                " select user_id, id from memory.conversations where user_id = %s",
                ids,
            )
        else:
            change = f"update memory.conversations set {column} = %s where user_id = %s"
            execute(address, change, ids, f"poison {number}")
    return [str(row[0]) for row in execute(
        address, "select id from memory.conversations where user_id = any (%s) or agent_id = any (%s) or thread_id = any (%s)",
        list(POISON), list(POISON), list(POISON),
    )]  # fmt: skip


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(15):
        while not await asyncio.to_thread(holds):
            await asyncio.sleep(0.02)


def claimed(memory: SupabaseMemory, limit: int = 4) -> list[Lease]:
    return memory._services.run(work.claim("w", limit=limit, lease_seconds=60, debounce_seconds=0))


# --- Ids that cannot be used


def test_a_claim_sets_aside_what_it_cannot_name(
    memory: SupabaseMemory, empty: str, caplog: pytest.LogCaptureFixture
) -> None:
    uuids = poison(memory, empty)
    say(memory, "honest")
    leases: list[Lease] = []
    with caplog.at_level(logging.DEBUG):
        while found := claimed(memory, limit=1):
            leases += found
    assert "honest" in [lease.key.user_id for lease in leases]
    queue = memory.work.queue()
    assert (queue.unreadable, queue.dead, queue.leases) == (len(POISON), len(POISON), len(leases))
    reported = [record for record in caplog.records if hasattr(record, "memory_conversation_id")]
    assert sorted(record.memory_conversation_id for record in reported) == sorted(uuids), "each once"
    assert not any(ids in str(vars(record)) for ids in POISON for record in caplog.records)
    assert claimed(memory) == []


async def test_a_worker_goes_on_beside_what_it_cannot_name(memory: SupabaseMemory, empty: str) -> None:
    poison(memory, empty)
    say(memory, "honest")
    async with Worker(memory, policy=FAST) as worker:
        await until(lambda: execute(empty, "select 1 from memory_private.work where error is null") == [])
        assert worker.health()[0]
    assert memory.for_user("honest").conversation("t").board.read().summary == "What was said."


def test_lists_leave_it_out(memory: SupabaseMemory, empty: str) -> None:
    poison(memory, empty)
    say(memory, "honest")
    execute(empty, "update memory.conversations set updated_at = now() - interval '1 day'")
    honest = memory._services.key("t", "honest")
    assert honest in [each.key for each in memory.work.status()]
    assert honest in memory._services.run(work.idle(60))
    assert memory.work.summarize_due()[honest].segments == [1]
    assert memory.work.index_due()[honest].chunks > 0
    assert memory.forget_expired(retention=Retention(max_messages=3)).messages >= 3


def test_the_command_line_shows_how_many(memory: SupabaseMemory, empty: str) -> None:
    poison(memory, empty)
    while claimed(memory):
        pass
    shown = CliRunner().invoke(commands, ["status", "--database-url", empty])
    assert shown.exit_code == 0, shown.output
    assert f"{len(POISON)} set aside" in shown.output
    assert not any(ids in shown.output for ids in POISON)


# --- What cannot be read


@pytest.mark.parametrize(
    "error", [TypeError("a secret"), KeyError("a secret"), RecursionError("a secret"), unreadable()]
)
def test_a_conversation_that_cannot_be_done_stops_no_list(
    memory: SupabaseMemory, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """As when an owner has written rows of an unknown shape."""
    for user in ("a", "b", "c"):
        say(memory, user)
    index, summarize = indexing.index_messages, summaries.summarize

    def failing(flow: Any) -> Any:
        def chosen(key: Any, *arguments: Any, **named: Any) -> Any:
            if key.user_id == "b":
                raise error
            return (yield from flow(key, *arguments, **named))

        return chosen

    monkeypatch.setattr(indexing, "index_messages", failing(index))
    monkeypatch.setattr(summaries, "summarize", failing(summarize))
    failed = {"a": None, "b": type(error).__name__, "c": None}
    done = memory.work.summarize_due()
    assert {key.user_id: each.failed for key, each in done.items()} == failed
    found = memory.work.index_due()
    assert {key.user_id: each.failed for key, each in found.items()} == failed


@pytest.mark.parametrize("error", [UnavailableError(), UnavailableError(code="40001"), from_status(429)])
def test_a_database_that_is_away_is_still_said(
    memory: SupabaseMemory, monkeypatch: pytest.MonkeyPatch, error: UnavailableError
) -> None:
    say(memory, "a")

    def away(*_: Any, **__: Any) -> Any:
        raise error
        yield

    monkeypatch.setattr(indexing, "index_messages", away)
    with pytest.raises(UnavailableError):
        memory.work.index_due()


@pytest.mark.not_on_citus("makes a trigger, which Citus refuses")
def test_rows_of_one_owner_that_postgres_refuses_to_expire_stop_no_clean_up(memory: SupabaseMemory, empty: str) -> None:
    for user in ("a", "b", "c"):
        say(memory, user)
    execute(empty, "create function public.refuse() returns trigger language plpgsql as"
                   " $$ begin raise exception 'no' using errcode = '22000'; end $$")  # fmt: skip
    execute(empty, "create trigger refuse before delete on memory.conversation_messages for each row"
                   " when (old.user_id = 'b') execute function public.refuse()")  # fmt: skip
    try:
        gone = memory.forget_expired(retention=Retention(max_messages=2))
    finally:
        execute(empty, "drop function public.refuse cascade")
    assert (gone.conversations, gone.messages) == (2, 8)


# --- Duties


async def test_a_board_that_always_fails_does_not_hold_back_the_index(
    memory: SupabaseMemory, empty: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise KeyError("a secret")
        yield

    monkeypatch.setattr("langchain_supabase_memory.worker.job.revise_board", broken)
    say(memory, "u")
    worker = Worker(memory, policy=WorkerPolicy(retry_seconds=60.0, max_attempts=2, debounce_seconds=0))
    assert (await worker.drain()).outcomes == {"retry": 1}
    (status,) = memory.work.status()
    assert (status.state, {duty: each.error for duty, each in status.paused.items()}) == (
        "waiting",
        {"board": "KeyError"},
    )
    assert status.paused["board"].until is not None
    for number in range(3):
        say(memory, "u", messages=6)
        await worker.drain()
        (status,) = memory.work.status()
        assert (status.indexed_through, status.summarized_through) == (6 * number + 11, 6 * number + 10)
        assert (status.state, status.paused["board"].failures) == ("waiting", 1), "it was not tried"
    until_now = (
        "update memory_private.work set run_after = now(), paused = jsonb_set(paused, '{board,until}', to_jsonb(now()))"
    )
    execute(empty, until_now)
    await worker.drain()
    (status,) = memory.work.status()
    assert (status.state, status.paused["board"].until, status.error) == ("dead", None, "KeyError")
    assert worker.stats.outcomes == {"retry": 1, "done": 3, "dead": 1}
    assert memory.work.queue().paused == {"board": 1}
    assert (memory.work.queue().dead, memory.work.queue().depth) == (1, 0)

    say(memory, "u", messages=6)
    await worker.drain()
    (status,) = memory.work.status()
    assert (status.indexed_through, status.state) == (29, "dead"), "what is dead stays so, and the rest lives"
    monkeypatch.undo()
    assert memory.work.retry() == 1
    await worker.drain()
    (status,) = memory.work.status()
    assert (status.state, status.board_through) == ("idle", 29)


@pytest.mark.parametrize("error", [TypeError, KeyError, RecursionError, UnheardOfError])
async def test_whatever_a_conversation_raises_is_a_failure_of_that_piece(
    memory: SupabaseMemory, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    index = indexing.index_messages

    def chosen(key: Any, *arguments: Any, **named: Any) -> Any:
        if key.user_id == "b":
            raise error("a secret")
        return (yield from index(key, *arguments, **named))

    monkeypatch.setattr(indexing, "index_messages", chosen)
    for user in ("a", "b", "c"):
        say(memory, user)
    worker = Worker(memory, policy=WorkerPolicy(debounce_seconds=0))
    assert (await worker.drain()).outcomes == {"done": 2, "retry": 1}
    (status,) = memory.for_user("b").work.status()
    assert {duty: each.error for duty, each in status.paused.items()} == {"index": error.__name__}
    assert (status.state, status.attempts, status.summarized_through, status.board_through) == ("waiting", 1, 4, 5)


def test_a_duty_that_fails_waits_and_the_others_do_not(memory: SupabaseMemory) -> None:
    say(memory, "u")
    (lease,) = claimed(memory)
    assert memory._services.run(work.finish(lease, error="E", failed={"board": "E"})) == "retry"
    assert claimed(memory) == [], "nothing else is due"
    say(memory, "u")
    (lease,) = claimed(memory)
    assert (lease.left_out, lease.attempts) == (("board",), 1)
    say(memory, "u")
    assert memory._services.run(work.finish(lease)) == "again"
    (lease,) = claimed(memory)
    assert memory._services.run(work.finish(lease, error="F", failed={"index": "F"})) == "retry"
    (status,) = memory.work.status()
    assert {duty: (each.error, each.failures) for duty, each in status.paused.items()} == {
        "board": ("E", 1),
        "index": ("F", 1),
    }
    assert memory.for_user("u").conversation("t").summaries.request()
    (lease,) = claimed(memory)
    assert lease.left_out == (), "who asks is not kept waiting"
    assert memory._services.run(work.finish(lease, served=True)) == "done"
    assert memory.work.queue().depth == 0


def test_a_wish_is_not_served_by_what_left_the_summary_out(memory: SupabaseMemory) -> None:
    say(memory, "u")
    memory.for_user("u").conversation("t").summaries.request()
    (lease,) = claimed(memory)
    memory._services.run(work.finish(lease, error="E", failed={"summarize": "E"}))
    say(memory, "u")
    (lease,) = claimed(memory)
    assert (lease.left_out, lease.requested) == (("summarize",), True)
    memory._services.run(work.finish(lease, served=True))
    (status,) = memory.work.status()
    assert status.paused["summarize"].error == "E"


# --- Whom it is about


def test_an_empty_id_never_means_everybody(memory: SupabaseMemory) -> None:
    say(memory, "u")
    with pytest.raises(InvalidInputError):
        memory.for_user("")
    with pytest.raises(InvalidInputError):
        SupabaseMemory.from_conn_string("postgresql://u@127.0.0.1:1/x", user_id="")


def test_a_retry_is_by_default_for_the_memorys_user(memory: SupabaseMemory, empty: str) -> None:
    for user in ("a", "b"):
        say(memory, user)
    for lease in claimed(memory):
        memory._services.run(work.finish(lease, error="E", max_attempts=1))
    with SupabaseMemory.from_conn_string(empty, user_id="a") as mine:
        assert mine.work.retry() == 1
        assert [each.key.user_id for each in mine.work.status(state="due")] == ["a"]
        assert [each.key.user_id for each in memory.work.status(state="dead")] == ["b"]
    assert asyncio.run(memory.work.aretry()) == 1


def test_nobody_is_no_owner_in_sql_either(empty: str) -> None:
    with pytest.raises(psycopg.Error, match="no user id"):
        execute(empty, "select public.memory_count('t', '')")


def test_a_clean_up_beside_poison_goes_on(memory: SupabaseMemory, empty: str) -> None:
    poison(memory, empty)
    say(memory, "honest")
    assert memory.forget_expired(retention=Retention(max_age=timedelta(days=1))).messages == 0
