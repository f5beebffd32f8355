"""An unknown attribute raises an error that names the right one, sync and async."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace

import pytest

from langchain_supabase_memory import ContextBudget, SupabaseMemory
from langchain_supabase_memory.errors import ConfigurationError
from tests.each_case import each_case

MEMORY = SupabaseMemory.from_conn_string("postgresql://u@127.0.0.1:1/x", user_id="maya")


@each_case(
    ("name", "use"),
    [
        ("append", '.conversation("...").append()'),
        ("messages", '.conversation("...").read(last=20)'),
        ("load", '.conversation("...").context(query)'),
        ("revise", '.conversation("...").board.revise()'),
        ("aread", '.conversation("...").aread()'),
        ("search", ".recall(query)"),
        ("astatus", ".work.astatus()"),
        ("opt_out", ".privacy.opt_out()"),
        ("as_user", ".for_user(user_id) or .for_token(token)"),
        ("key", '.conversation("...").thread_id'),
    ],
)
def test_a_memory_says_where_a_verb_is(name: str, use: str) -> None:
    with pytest.raises(AttributeError, match="'SupabaseMemory' object has no attribute") as missing:
        getattr(MEMORY, name)
    assert f"Use {use}" in str(missing.value)


@each_case(
    ("name", "use"),
    [
        ("messages", ".read(last=20)"),
        ("search", ".recall(query)"),
        ("load", ".context(query)"),
        ("add_messages", ".append(messages)"),
        ("pin", ".board.pin()"),
        ("arevise", ".board.arevise()"),
        ("reembed", ".chunks.reembed()"),
        ("summary", ".summaries.make()"),
        ("clear", ".forget()"),
    ],
)
def test_a_conversation_says_where_a_verb_is(name: str, use: str) -> None:
    with pytest.raises(AttributeError, match="'Conversation' object has no attribute") as missing:
        getattr(MEMORY.conversation("t"), name)
    assert f"Use {use}" in str(missing.value)


@each_case("name", ["nonsense", "_private", "__deepcopy_me__", ""])
def test_what_is_like_nothing_gets_no_hint(name: str) -> None:
    talk = MEMORY.conversation("t")
    for holder in (MEMORY, talk, MEMORY.work, talk.board, talk.chunks, talk.work, MEMORY.spaces):
        assert not hasattr(holder, name)
        with pytest.raises(AttributeError) as missing:
            getattr(holder, name)
        assert "Use" not in str(missing.value)


def test_no_error_of_python_names_a_private_class() -> None:
    for wrong in (
        lambda: MEMORY.conversation("t", user_id="maya"),  # type: ignore[call-arg]
        lambda: MEMORY.for_user(),  # type: ignore[call-arg]
        lambda: SupabaseMemory.from_url("u", "k", policy=None),  # type: ignore[call-arg]
    ):
        with pytest.raises(TypeError, match=r"^SupabaseMemory\.\w+\(\) "):
            wrong()


def test_a_budget_without_a_unit_is_refused_with_both() -> None:
    with pytest.raises(ConfigurationError, match=r"ContextBudget\(tokens=4000\) or ContextBudget\(characters=4000\)"):
        ContextBudget(4000)  # type: ignore[call-arg]
    assert replace(ContextBudget(tokens=10), tokens=20).tokens == copy.deepcopy(ContextBudget(tokens=20)).tokens
    assert pickle.loads(pickle.dumps(ContextBudget(tokens=20))) == ContextBudget(tokens=20)
