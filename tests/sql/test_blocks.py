"""Blocks match a count of the rows after any operation on a conversation, and they number the turns."""

from __future__ import annotations

import json
import random
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from langchain_supabase_memory import Retention, SupabaseMemory
from langchain_supabase_memory.language.messages.codec import to_row
from tests.recount import assert_counted

BLOCK = 1024


class Story:
    """A conversation of some blocks to which anything may happen."""

    def __init__(self, connection: psycopg.Connection[Any], user_id: str, seed: int) -> None:
        self.connection, self.user_id = connection, user_id
        self.random = random.Random(seed)
        self.count = 0
        self.token: str | None = None

    def message(self, id_: str | None = None) -> BaseMessage:
        words = "word " * self.random.randrange(5)
        made: list[BaseMessage] = [
            *[HumanMessage(words)] * 4, *[AIMessage(words)] * 4, SystemMessage(words), ToolMessage(words, tool_call_id="c"),
            AIMessage(words, tool_calls=[{"name": "look", "args": {}, "id": "c"}]),
        ]  # fmt: skip
        message = self.random.choice(made)
        if id_ is None:
            id_, self.count = f"m{self.count}", self.count + 1
        return message.model_copy(update={"id": id_})

    def rows(self, *messages: BaseMessage, **columns: Any) -> list[dict[str, Any]]:
        return [{**to_row(message), **columns} for message in messages]

    def store(self, rows: list[dict[str, Any]], branch: dict[str, Any] | None = None) -> None:
        self.connection.execute(
            "select public.memory_append('t', %s, %s, p_branch => %s)",
            [json.dumps(rows), self.user_id, branch and json.dumps(branch)],
        )

    def begin(self) -> None:
        # Through the first block's end, and nearly to that of the third.
        for _ in range(4):
            self.store(self.rows(*(self.message() for _ in range(760))))
        self.store(self.rows(*(self.message() for _ in range(3 * BLOCK - 4 * 760 - 10))))

    def append(self) -> None:
        said = [datetime.now(UTC) - timedelta(days=2)] if self.random.random() < 0.3 else []
        columns = {"created_at": said[0].isoformat()} if said else {}
        self.store(self.rows(*(self.message() for _ in range(self.random.randrange(1, 12))), **columns))

    def retry(self) -> None:
        """Some that are there, some with other words or of another role, some new ones, some forgotten ones."""
        messages = [self.message(self.random.choice(self.ids())) for _ in range(self.random.randrange(1, 4))]
        self.store(self.rows(*messages, *(self.message() for _ in range(self.random.randrange(3)))))

    def forget(self) -> None:
        # Near the ends of blocks, where a turn may lie in two.
        sequence = self.random.choice([0, 1, 2]) * BLOCK + self.random.randrange(-3, 3)
        found = self.connection.execute(
            "select message_id from memory.conversation_messages where user_id = %s and sequence >= %s"
            " order by sequence limit 1", [self.user_id, sequence],
        ).fetchone()  # fmt: skip
        if found:
            self.connection.execute("select public.memory_forget_message('t', %s, %s)", [found[0], self.user_id])

    def fork(self) -> None:
        """A graph that has some of what it stored, and says something else from there on."""
        token = uuid4().hex
        messages = [self.message() for _ in range(self.random.randrange(1, 6))]
        kept = self.ids("where metadata ->> 'via' = 'graph'")
        kept = kept[: self.random.randrange(len(kept) + 1)]
        self.store(
            self.rows(*messages, metadata={"via": "graph"}),
            {
                "token": token, "expected": self.token, "after": None, "ids": [*kept, *(each.id for each in messages)],
                "whole": True, "begun": True, "tail": False, "strict": False,
            },
        )  # fmt: skip
        self.token = token

    def overlap(self) -> None:
        """A run that began some messages ago, and goes on from what was there then."""
        token, messages = uuid4().hex, [self.message() for _ in range(self.random.randrange(1, 4))]
        known = self.ids("where metadata ->> 'via' = 'graph'")
        known = known[: len(known) - self.random.randrange(min(6, len(known) + 1))]
        branch = {
            "token": token, "expected": self.token, "after": None, "removed": [],
            "ids": [*known, *(each.id for each in messages)],
        }  # fmt: skip
        self.store(self.rows(*messages, metadata={"via": "graph"}), branch)
        self.token = token

    def overlaps(self) -> None:
        for _ in range(self.random.randrange(1, 8)):
            self.overlap()

    def expire(self) -> None:
        have = len(self.ids())
        retention = self.random.choice(
            [{"age": 86400.0}, {"messages": have - self.random.randrange(200)}, {"turns": have // 5}]
        )
        self.connection.execute("select public.memory_forget_expired(%s, %s)", [json.dumps(retention), self.user_id])

    def ids(self, where: str = "") -> list[str]:
        statement = f"select message_id from (select * from memory.conversation_messages where user_id = %s) m {where}"
        return [id_ for (id_,) in self.connection.execute(statement.encode() + b" order by sequence", [self.user_id])]

    def step(self) -> None:
        self.random.choice([self.append, self.overlaps, self.retry, self.retry, self.forget, self.fork, self.expire])()


def numbered(connection: psycopg.Connection[Any], user_id: str) -> list[tuple[int, int, int]]:
    """The turns as the view numbers them from all rows."""
    return connection.execute(
        "select turn_number, from_sequence, to_sequence from memory.conversation_turns where user_id = %s order by 1",
        [user_id],
    ).fetchall()


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 3, 4))])
def test_blocks_are_what_a_count_gives_whatever_happens(conn_string: str, user_id: str, seed: int) -> None:
    with (
        psycopg.connect(conn_string, autocommit=True) as connection,
        SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory,
    ):
        story = Story(connection, user_id, seed)
        story.begin()
        assert_counted(connection, user_id)
        blocks = connection.execute("select count(*) from memory.message_blocks where user_id = %s", [user_id])
        assert blocks.fetchone() == (2,), "the third is not full"
        conversation = memory.conversation("t")
        late = 0
        for number, step in enumerate([*[story.overlaps] * 5, *[story.step] * 15]):
            step()
            assert_counted(connection, user_id)
            if number % 2:  # what is numbered wrong stays so
                continue
            turns = numbered(connection, user_id)
            late += sum(turn[2] > following[1] for turn, following in pairwise(turns))
            found = conversation.turns.list(last=7)
            assert [(each.number, each.from_sequence, each.to_sequence) for each in found] == turns[-7:]
            for place in {1, len(turns), *(story.random.randrange(1, len(turns) + 1) for _ in range(5))}:
                for asked in (place, place - len(turns) - 1):
                    turn = conversation.turns.get(asked)
                    assert turn is not None
                    assert (turn.number, turn.from_sequence, turn.to_sequence) == turns[place - 1]
            assert conversation.turns.get(len(turns) + 1) is conversation.turns.get(-len(turns) - 1) is None
            middle = turns[len(turns) // 2][1]
            found = conversation.turns.list(last=3, before=middle)
            before = [turn for turn in turns if turn[1] < middle]
            assert [(each.number, each.from_sequence) for each in found] == [turn[:2] for turn in before[-3:]]
            # What has expired and is not removed yet is neither counted nor numbered.
            kept = SupabaseMemory(
                memory._services.transport,
                user_id=user_id,
                retention=Retention(max_messages=story.random.choice([10, 1100, 2000])),
            ).conversation("t")
            listed = kept.turns.list()
            assert [each.number for each in listed] == list(range(1, len(listed) + 1))
            assert kept.turns.get(-1) == (listed[-1] if listed else None)
            assert kept.turns.get(2) == (listed[1] if len(listed) > 1 else None)
        assert late, "an answer came after another question"


def test_a_conversation_that_loses_all_has_no_blocks(conn_string: str, user_id: str) -> None:
    with psycopg.connect(conn_string, autocommit=True) as connection:
        story = Story(connection, user_id, 0)
        story.begin()
        connection.execute(
            "update memory.conversation_messages set created_at = now() - interval '2 days' where user_id = %s",
            [user_id],
        )
        connection.execute("""select public.memory_forget_expired('{"age": 3600}', %s)""", [user_id])
        assert_counted(connection, user_id)
        assert connection.execute("select * from memory.message_blocks where user_id = %s", [user_id]).fetchall() == []


def test_blocks_are_right_when_many_write_at_once(conn_string: str, user_id: str) -> None:
    def write(writer: int) -> None:
        with psycopg.connect(conn_string, autocommit=True) as connection:
            story = Story(connection, user_id, writer)
            for number in range(40):
                said = [HumanMessage("x" * n, id=f"{writer}-{number}-{n}") for n in range(7)]
                answers = [AIMessage("y" * (n + 1), id=f"{writer}-{number}-{n}a") for n in range(7)]
                story.store(story.rows(*(each for pair in zip(said, answers, strict=True) for each in pair)))
                if number % 3 == 0:
                    story.store(story.rows(HumanMessage("changed", id=f"{writer}-{number // 2}-3")))
                if number % 5 == 0:
                    connection.execute(
                        "select public.memory_forget_message('t', %s, %s)", [f"{writer}-{number // 2}-4a", user_id]
                    )

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(write, range(4)))
    with psycopg.connect(conn_string) as connection:
        assert_counted(connection, user_id)
        counted = connection.execute(
            "select count(*), sum(turns) > 700 from memory.message_blocks where user_id = %s", [user_id]
        )
        assert counted.fetchone() == (2, True)
