"""The command `insights`: a user's days, and counts over all users."""

from __future__ import annotations

import json

from langchain_core.messages import AIMessage, HumanMessage

from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.operations.advice import FEWEST
from tests.cli.running import succeeded


def test_days_and_counts(conn_string: str, user_id: str) -> None:
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, model=None) as memory:
        memory.conversation("t").append("The kiln cracked.")
        memory.usage.update()
    given = ("insights", "--database-url", conn_string)
    output = succeeded(*given, "--user", user_id)
    assert "default: 1 turn, 0 tokens sent" in output
    output = succeeded(*given, "--user", user_id, "--json")
    assert json.loads(output)["days"][0]["messages"] == 1
    succeeded(*given)
    output = succeeded(*given, "--json")
    assert json.loads(output)["k"] == 5
    output = succeeded(*given, "--user", "nobody here")
    assert "Nothing is counted" in output


def test_advice_has_its_setting_on_a_line_of_its_own(conn_string: str, user_id: str) -> None:
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, model=None) as memory:
        for number in range(FEWEST):
            talk = memory.conversation("few" if number < 5 else "many")
            asked = HumanMessage(f"Question {number}")
            talk.append([asked, AIMessage("I do not know.")], pack=talk.context(asked, recall="agent"))
        memory.usage.update()
    output = succeeded("insights", "--database-url", conn_string, "--user", user_id)
    assert [line for line in output.splitlines() if line.startswith("  ")] == ["  config=MemoryConfig(recall='user')"]
    assert "\\u" not in output
