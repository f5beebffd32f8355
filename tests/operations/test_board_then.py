"""A board as it was: at each version's instant it equals what was read then."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from langchain_core.messages import AIMessage, HumanMessage

from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.language.extractive import ExtractiveSummarizer
from langchain_supabase_memory.types import Board
from tests.conftest import Caller


@pytest.fixture
def memory(conn_string: str, user_id: str) -> Iterator[SupabaseMemory]:
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, model=ExtractiveSummarizer()) as memory:
        yield memory


def database_time(sql: psycopg.Connection) -> datetime:
    """The database's clock."""
    row = sql.execute("select clock_timestamp()").fetchone()
    assert row is not None
    time: datetime = row[0]
    return time


def as_then(board: Board) -> dict[str, Any]:
    """What a reading of the past has to give again."""
    names = ("edited_summary", "edited_by", "editor_kind", "edited_at", "through_sequence", "version", "updated_at",
             "tokens", "model", "language")  # fmt: skip
    return {"items": board.items, **{name: getattr(board, name) for name in names}}


def item(board: Board, words: str) -> str:
    """The id of the item with some words."""
    return next(each.id for each in board.items if words in each.text)


STEPS: list[Callable[[Any], Any]] = [
    lambda told: told.append([HumanMessage("My name is Maya Cruz. I fire at cone 6."), AIMessage("Good.")]),
    lambda told: told.board.revise(),
    lambda told: told.board.add("action", "Order a thermocouple", actor="maya"),
    lambda told: told.append([HumanMessage("Please remind me to order clay by Friday."), AIMessage("It is noted.")]),
    lambda told: told.board.revise(),
    lambda told: told.board.edit(item(told.board.read(), "thermocouple"), text="Order two thermocouples", actor="maya"),
    lambda told: told.board.edit_summary("Maya owns a kiln.", actor="maya"),
    lambda told: told.append([HumanMessage("I fire at cone 6."), AIMessage("Yes."), HumanMessage("I ordered clay.")]),
    lambda told: told.board.revise(),
    lambda told: told.board.pin(item(told.board.read(), "clay"), actor="maya"),
    lambda told: told.board.edit(item(told.board.read(), "two"), state="done", actor="maya"),
    lambda told: told.board.edit(item(told.board.read(), "two"), text="Order three", actor="api", author_kind="application"),
    lambda told: told.board.edit_summary("Maya owns two kilns.", actor="ana"),
    lambda told: told.append([HumanMessage("I left Acme. I work at Kiln & Co."), AIMessage("Noted.")]),
    lambda told: told.board.revise(),
    lambda told: told.append([HumanMessage("The deadline is March 20."), AIMessage("Noted.")]),
    lambda told: told.board.revise(),
    lambda told: told.append([HumanMessage("The deadline is March 22 now."), AIMessage("Noted.")]),
    lambda told: told.board.revise(),
    lambda told: told.board.pin(item(told.board.read(), "clay"), actor="maya", pinned=False),
    lambda told: told.board.edit_summary("", actor="ana"),
]  # fmt: skip


@pytest.mark.parametrize("history", [False, True])
def test_a_board_at_each_instant_is_what_was_read_then(
    memory: SupabaseMemory, sql: psycopg.Connection, history: bool
) -> None:
    told = memory.conversation("studio")
    taken = [(database_time(sql) - timedelta(days=1), Board("studio"))]
    for step in STEPS:
        step(told)
        taken.append((database_time(sql), told.board.read(history=history)))
    assert {each.state for _, board in taken for each in board.items} >= {"current", "open"}
    assert any(each.superseded_at for each in told.board.read(history=True).items)
    assert any(len(each.sequences) > 1 for _, board in taken for each in board.items)
    for instant, then in taken:
        found = told.board.read(at=instant, history=history)
        assert as_then(found) == as_then(then), instant
        assert found.gone == 0
        assert found.changes == then.changes
        if not found.rewritten:
            assert (found.summary, found.context_notes) == (then.summary, then.context_notes)
    assert told.board.read(at=database_time(sql)) == told.board.read()
    assert not told.board.read(at=datetime(1990, 1, 1, tzinfo=UTC)).items


async def test_what_a_person_deleted_since_stays_deleted_by_both_doors(
    caller: Caller, user_id: str, sql: psycopg.Connection
) -> None:
    told = caller.service.for_user(user_id).conversation("t")
    await caller(told.append, ["Hello"])
    secret = await caller(told.board.add, "fact", "The code is 1234.", actor="ana")
    await caller(told.board.edit, secret, text="The code is 5678.", actor="ana")
    await caller(told.board.add, "fact", "The kiln is blue.", actor="ana")
    before = database_time(sql)
    await caller(told.board.delete, secret, actor="ana")
    found = await caller(told.board.read, at=before)
    assert [each.text for each in found.items] == ["The kiln is blue."]
    assert found.gone == 1
    assert (await caller(told.board.read)).gone == 0
    with pytest.raises(InvalidInputError, match="at must be a datetime with a time zone"):
        await caller(told.board.read, at=datetime(2026, 1, 1))


def test_what_was_read_from_a_forgotten_message_is_as_if_it_was_never_said(
    memory: SupabaseMemory, sql: psycopg.Connection
) -> None:
    told = memory.conversation("t")
    told.append([HumanMessage("Please remind me to order clay by Friday.", id="asked"), AIMessage("It is noted.")])
    told.board.revise()
    told.append([HumanMessage("I ordered clay.", id="done"), AIMessage("Good.")])
    told.board.revise()
    (task,) = told.board.read().items
    told.board.pin(task, actor="ana")
    before = database_time(sql)
    told.forget_message("done")
    (then,) = told.board.read(at=before).items
    assert (then.state, then.sequences, then.pinned) == ("open", [0], True)
    told.forget_message("asked")
    assert not told.board.read(at=before).items
