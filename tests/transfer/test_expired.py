"""The number of messages that retention removes: a dry-run import counts as the database does."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from langchain_supabase_memory import Retention
from langchain_supabase_memory.language.messages.codec import to_row
from langchain_supabase_memory.language.messages.content import as_answer
from langchain_supabase_memory.transfer.retention_count import RetentionCount
from tests.cases import cases

MESSAGES = {
    "user": HumanMessage("How hot is it?"),
    "answer": AIMessage("It is hot."),
    "call": AIMessage("", tool_calls=[{"name": "heat", "args": {}, "id": "c"}]),
    "tool": ToolMessage("900", tool_call_id="c"),
    "direct": as_answer(ToolMessage("900", tool_call_id="c")),
}
DAY = 86_400


def rows(kinds: list[str]) -> list[dict[str, Any]]:
    """Messages of some kinds, each an hour old or, if it says so, two days."""
    made = []
    for number, each in enumerate(kinds):
        kind, _, is_old = each.partition(" ")
        said = datetime.now(UTC) - (timedelta(days=2) if is_old else timedelta(hours=1)) + timedelta(seconds=number)
        row = to_row(MESSAGES[kind].model_copy(update={"id": f"m{number}"}))
        made.append({**row, "created_at": said.isoformat()})
    return made


def test_python_counts_what_the_table_says() -> None:
    for case in cases("retention"):
        limits = case["retention"]
        age = timedelta(days=limits["age"]) if "age" in limits else None
        retention = Retention(max_turns=limits.get("turns"), max_messages=limits.get("messages"), max_age=age)
        counted = RetentionCount(retention)
        for row in rows(case["messages"]):
            counted.add(row)
        assert counted.expired == case["expired"], case["case"]


def test_the_database_removes_what_the_table_says(conn_string: str, user_id: str) -> None:
    with psycopg.connect(conn_string, autocommit=True) as connection:
        for number, case in enumerate(cases("retention")):
            limits = {**case["retention"]}
            if "age" in limits:
                limits["age"] *= DAY
            stored = [f"thread-{number}", json.dumps(rows(case["messages"])), user_id, json.dumps(limits)]
            row = connection.execute("select public.memory_append(%s, %s, %s, p_retention => %s)", stored).fetchone()
            assert row is not None
            left = connection.execute("select public.memory_count(%s, %s)", [stored[0], user_id]).fetchone()
            assert row[0].get("expired", 0) == case["expired"], case["case"]
            assert left == (len(case["messages"]) - case["expired"],), case["case"]
