"""The command `topics`: what it lists, what it changes, and what it asks before."""

from __future__ import annotations

import json
from typing import Any

import pytest

from langchain_supabase_memory import SupabaseMemory
from tests.cli.running import refused, succeeded


@pytest.fixture
def given(conn_string: str, user_id: str) -> tuple[str, ...]:
    return ("--database-url", conn_string, "--user", user_id)


def ok(*arguments: str) -> str:
    return succeeded("topics", *arguments).strip()


def listed(given: tuple[str, ...], *more: str) -> dict[str, Any]:
    return {each["label"]: each for each in json.loads(ok(*given, *more, "--json"))["topics"]}


def test_a_topic_from_its_beginning_to_its_end(given: tuple[str, ...], conn_string: str, user_id: str) -> None:
    assert "No topic is found" in ok(*given)
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, model=None) as memory:
        for number, text in enumerate(["The kiln cracked.", "The rye dough is sticky.", "Our mortgage was refused."]):
            memory.conversation(f"t{number}").append(text)
            memory.conversation(f"t{number}").index()
        memory.topics.update()
    found = listed(given)
    (kiln,) = [each for each in found.values() if "kiln" in each["words"]]
    (rye,) = [each for each in found.values() if "rye" in each["words"]]
    assert f"{kiln['id'][:8]}  " in ok(*given)
    assert "1 episode, 2" in ok(*given)
    ok("rename", kiln["id"], "Pottery \u202e", *given)
    assert "Pottery" in ok(*given)
    assert "\u202e" not in ok(*given), "nothing that was written controls a terminal"
    ok("rename", kiln["id"], *given)
    assert "words now" in ok("rename", kiln["id"], *given)
    assert "hidden now" in ok("hide", rye["id"], *given)
    assert len(listed(given)) == 2
    assert len(listed(given, "--hidden")) == 3
    assert "shown now" in ok("hide", rye["id"], "--show", *given)
    assert "1 topic merged." in ok("merge", rye["id"], kiln["id"], *given)
    assert len(listed(given)) == 2
    assert listed(given, "--since", "2999-01-01") == {}
    assert "1 word opted out" in ok("forget", kiln["id"], "--word", "kiln", "--yes", *given)
    assert len(listed(given)) == 1
    assert "There is no such topic" in refused("topics", "rename", kiln["id"], "X", *given)
