"""The kinds of board items: every list of them is complete, in Python, in SQL and on the pages."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import get_args

import psycopg
import pytest

from langchain_supabase_memory import ExtractiveSummarizer, SupabaseMemory
from langchain_supabase_memory.agents.slash_commands import board_text
from langchain_supabase_memory.agents.tools.board_recall import list_board
from langchain_supabase_memory.effects import Material, TranscriptLine, call
from langchain_supabase_memory.language.extractive.board import RULES
from langchain_supabase_memory.language.extractive.entities import TYPES
from langchain_supabase_memory.operations.boards.kinds import (
    BOARD_KINDS,
    CLOSING,
    OPEN_FIRST,
    SENTENCES_FIRST,
    BoardItemKind,
    ContextType,
    ItemLists,
)
from langchain_supabase_memory.operations.recall.ranges import zone

ROOT = Path(__file__).parents[2]
PLURALS = [each.plural for each in BOARD_KINDS.values()]
PACKAGE = ROOT / "langchain_supabase_memory"
LISTS = {
    "operations/boards/kinds.py": "the table",
    "language/extractive/board.py": "the rules for each kind",
    "agents/tools/board_recall.py": "the rules for what is newer than the board, for a few",
    "cli/demo/show.py": "other words than the headings, for a few",
}
"""Where three kinds or more are listed, and why."""


def test_the_names_that_are_typed_are_those_of_the_table() -> None:
    assert get_args(BoardItemKind) == tuple(BOARD_KINDS)
    assert {*get_args(ContextType)} == {each.context_type for each in BOARD_KINDS.values()} - {None}
    assert BOARD_KINDS["entity"].types == TYPES, "what the rules tell apart"
    assert all(bool(each.tag) == bool(each.context_type) for each in BOARD_KINDS.values())
    properties = {name for name, value in vars(ItemLists).items() if isinstance(value, property)}
    assert properties == {*PLURALS}, "a board has a property for each kind"
    for names in ("plural", "heading", "label", "description"):
        assert len({getattr(each, names) for each in BOARD_KINDS.values()}) == len(BOARD_KINDS), names


def test_the_prompt_reads_and_a_person_reads_all_of_them() -> None:
    assert {each.kind for each in OPEN_FIRST} == {each.kind for each in SENTENCES_FIRST} == {*BOARD_KINDS}
    assert [each.can_close for each in OPEN_FIRST] == sorted([each.can_close for each in OPEN_FIRST], reverse=True)
    assert {*CLOSING} == {state for each in BOARD_KINDS.values() for state in each.states[1:]}


SAID: dict[BoardItemKind, tuple[list[str], str]] = {
    "fact": (["I fire porcelain at cone 6."], "User: I fire porcelain at cone 6."),
    "entity": (["My name is Maya Cruz."], "Maya Cruz"),
    "topic": (["The glaze is too thin.", "The glaze ran again.", "What of the glaze?"], "glaze"),
    "action": (["I must call Ana by Friday."], "User: I must call Ana by Friday."),
    "question": (["Which shop in Cebu has it?"], "User: Which shop in Cebu has it?"),
}
"""What a user says, a message a day, and the item that a rule makes of it."""


def test_the_writer_without_a_model_has_a_rule_for_each() -> None:
    assert [*RULES] == PLURALS, "a kind without a rule in language/extractive/board.py, or in another order"
    assert [*SAID] == [*BOARD_KINDS], "a rule without an example here"


@pytest.mark.parametrize("kind", list(BOARD_KINDS))
def test_the_rule_for_a_kind_finds_one(kind: BoardItemKind) -> None:
    said, item = SAID[kind]
    lines = [TranscriptLine(at, "user", None, text, f"2026-05-0{at + 1}T12:00:00Z") for at, text in enumerate(said)]
    answer = json.loads(ExtractiveSummarizer().write(Material("board", None, lines, 500, [])))
    assert item in [each["text"] for each in answer[BOARD_KINDS[kind].plural]]


def test_no_other_module_lists_them() -> None:
    """A list of kinds that stands anywhere else is forgotten when one is added."""
    found = set()
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.Tuple, ast.List, ast.Set, ast.Dict)):
                parts = [*node.keys, *node.values] if isinstance(node, ast.Dict) else node.elts
                words = {each.value for each in parts if isinstance(each, ast.Constant)}
                of_chunks = "dialogue" in words  # whose kinds have names in common with these
                if not of_chunks and any(len(words & {*names}) > 2 for names in (BOARD_KINDS, PLURALS)):
                    found.add(path.relative_to(PACKAGE).as_posix())
    assert found == {*LISTS}


def test_the_page_names_them() -> None:
    text = (ROOT / "docs" / "boards.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| `board\.(\w+)` \| (.*?) \|", text, re.MULTILINE)
    assert [(kind, plural) for kind, plural, _ in rows] == [(each.kind, each.plural) for each in BOARD_KINDS.values()]
    assert [re.findall(r"`(\w+)`", states) for *_, states in rows] == [[*each.states] for each in BOARD_KINDS.values()]


def test_the_database_takes_these_kinds_and_states_and_no_others(conn_string: str) -> None:
    with psycopg.connect(conn_string) as connection:
        checks: dict[str, str] = dict(
            connection.execute(
                "select a.attname, pg_get_constraintdef(c.oid) from pg_constraint c"
                " join pg_attribute a on a.attrelid = c.conrelid and array[a.attnum] = c.conkey"
                " where c.conrelid = 'memory.conversation_board_items'::regclass and c.contype = 'c'"
                " and a.attname in ('kind', 'state')"
            ).fetchall()
        )
        taken = {name: {*re.findall(r"'(\w+)'", check)} for name, check in checks.items()}
        assert taken["kind"] == {*BOARD_KINDS}, "see sql/tables/0004_boards.sql"
        assert taken["state"] == {state for each in BOARD_KINDS.values() for state in each.states}
        for each in BOARD_KINDS.values():
            ask = "select memory_private.item_states(%(kind)s), memory_private.is_name_kind(%(kind)s)"
            assert connection.execute(ask, {"kind": each.kind}).fetchone() == ([*each.states], each.is_name)


@pytest.mark.parametrize("kind", list(BOARD_KINDS))
def test_an_item_of_each_kind_is_wherever_a_board_is_shown(conn_string: str, user_id: str, kind: BoardItemKind) -> None:
    of, words = BOARD_KINDS[kind], "The red kiln in Riga"
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, model=None) as memory:
        conversation = memory.conversation("t")
        conversation.board.add(kind, words, actor="ana", begin=True)
        closed = [conversation.board.add(kind, f"It is {state}", actor="ana", state=state) for state in of.states[1:]]
        board = conversation.board.read()
        assert [each.text for each in getattr(board, of.plural)] == [words]
        assert {each.id for each in board.of_kind(kind, open_only=False)} > {*closed}
        assert f">{of.heading}<" in board._repr_html_()
        assert (f"{of.heading}:\n- {words}" in board_text(board)) is of.can_close
        pack = conversation.context(query="kiln")
        assert [(each.kind, each.text) for each in pack.board.items] == [(kind, words)], "see memory_context"
        assert f"- {of.label}: {words}" in pack.text()
        if of.context_type is not None:
            found = list_board(board, of.context_type, conversation._key, zone(None))
            assert next((each.tag, each.text) for each in found) == (of.tag, words)
        # Back into another conversation, with its state.
        edits = memory._services.run(call("memory_edits", {"p_thread_id": "t", "p_user_id": user_id}))
        other = {"p_edits": edits, "p_thread_id": "other", "p_user_id": user_id}
        assert memory._services.run(call("memory_restore", other))["refused"] == 0
        states = sorted(each.state for each in memory.conversation("other").board.read().items)
        assert states == sorted(of.states)
