"""Memories of mem0, Zep and Letta: what is read of their documented forms, and the errors for hostile files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.transfer import aimport_conversations, file_reader, import_conversations
from langchain_supabase_memory.transfer.sources import foreign_memories, letta, mem0, zep
from langchain_supabase_memory.transfer.sources.foreign_memories import ForeignMemory, kind_of, parts
from langchain_supabase_memory.transfer.sources.letta import ELSEWHERE as NO_PERSON
from langchain_supabase_memory.transfer.sources.letta import read_letta
from langchain_supabase_memory.transfer.sources.mem0 import EXPIRED, read_mem0
from langchain_supabase_memory.transfer.sources.zep import ELSEWHERE, ENDED, read_zep
from langchain_supabase_memory.transfer.values import Event, LossCount, SourceProblem
from tests.each_case import each_case
from tests.transfer.documents import lines, written

SECRET: Final = "peanuts"
"""What stands in bad files and may stand in no error."""

MEM0: Final[dict[str, Any]] = {
    "id": "3c90c3cc-0d44-4b50-8888-8dd25736052a",
    "memory": "Prefers morning meetings",
    "user_id": "arjun",
    "agent_id": None,
    "app_id": None,
    "run_id": None,
    "hash": "f00",
    "metadata": {"type": "preference"},
    "categories": ["work"],
    "created_at": "2025-11-07T05:31:56Z",
    "updated_at": "2025-11-08T05:31:56.123-08:00",
}
ZEP: Final[dict[str, Any]] = {
    "uuid": "e-1",
    "name": "LIVES_IN",
    "fact": "Kendra lives in Lisbon.",
    "source_node_uuid": "n-kendra",
    "target_node_uuid": "n-lisbon",
    "created_at": "2025-11-07T05:31:56Z",
    "valid_at": "2024-02-01T00:00:00Z",
    "invalid_at": None,
    "expired_at": None,
    "episodes": ["p-1"],
    "attributes": {},
}
LETTA: Final[dict[str, Any]] = {
    "agents": [{"id": "agent-0", "name": "sam", "block_ids": ["block-0", "block-1"], "messages": []}],
    "groups": [],
    "blocks": [
        {
            "id": "block-0",
            "label": "human",
            "value": "Name: Sarah\n\n- She is allergic to nuts. She works nights.\n---\n",
            "limit": 5000,
            "description": "Stores key details about the person",
            "metadata": {},
        },
        {"id": "block-1", "label": "persona", "value": "I am Sam.", "limit": 5000, "metadata": {}},
    ],
    "files": [],
    "sources": [],
    "tools": [],
    "mcp_servers": [],
    "metadata": {},
    "created_at": "2025-07-01T12:00:00+00:00",
}


@pytest.mark.parametrize("form", ["list", "results", "lines", "pages"])
def test_memories_of_mem0_have_their_times_and_kinds(tmp_path: Path, form: str) -> None:
    second = MEM0 | {"id": "2", "memory": "Lives in Lisbon", "metadata": None, "categories": None}
    path = {
        "list": lambda: written(tmp_path, [MEM0, second]),
        "results": lambda: written(tmp_path, {"count": 2, "next": None, "previous": None, "results": [MEM0, second]}),
        "lines": lambda: lines(tmp_path, MEM0, second),
        "pages": lambda: lines(tmp_path, {"results": [MEM0]}, {"results": [second]}),
    }[form]()
    first, other = read_mem0(path)
    assert isinstance(first, ForeignMemory)
    assert isinstance(other, ForeignMemory)
    assert (first.text, first.kind, first.user_id, first.source_id) == (
        "Prefers morning meetings", "preference", "arjun", MEM0["id"],
    )  # fmt: skip
    assert first.created_at == datetime(2025, 11, 7, 5, 31, 56, tzinfo=UTC)
    assert first.valid_at == datetime(2025, 11, 8, 13, 31, 56, 123000, tzinfo=UTC)
    assert (other.text, other.kind) == ("Lives in Lisbon", "fact")
    assert SECRET not in repr(first)
    assert "morning" not in repr(first)


def test_of_several_users_only_the_one_that_is_named_comes(tmp_path: Path) -> None:
    path = written(tmp_path, [MEM0, MEM0 | {"user_id": "dev", "memory": SECRET}, MEM0 | {"user_id": None}])
    found = list(read_mem0(path, source_user="arjun"))
    assert [type(each) for each in found] == [ForeignMemory, LossCount, LossCount]
    assert [each.kind for each in found[1:] if isinstance(each, LossCount)] == [
        foreign_memories.OTHERS, foreign_memories.NOBODYS,
    ]  # fmt: skip
    _, problem, _ = read_mem0(path)
    assert isinstance(problem, SourceProblem)
    assert (problem.place, "several users" in problem.why, SECRET in problem.why) == ("memory 2", True, False)


def test_a_memory_of_mem0_that_has_expired_is_counted(tmp_path: Path) -> None:
    past, future = (f"{datetime.now(UTC) + timedelta(days=days):%Y-%m-%d}" for days in (-2, 2))
    found = list(read_mem0(written(tmp_path, [MEM0 | {"expiration_date": past}, MEM0 | {"expiration_date": future}])))
    assert found[0] == LossCount(EXPIRED, "memory 1")
    assert isinstance(found[1], ForeignMemory)


@pytest.mark.parametrize("form", ["list", "edges", "lines"])
def test_facts_of_zep_that_hold_come_and_others_are_counted(tmp_path: Path, form: str) -> None:
    edges = [
        ZEP,
        ZEP | {"fact": SECRET, "invalid_at": "2025-01-01T00:00:00Z"},
        ZEP | {"fact": SECRET, "expired_at": "2025-01-01T00:00:00Z"},
        ZEP | {"uuid": "e-2", "name": "LOVES", "fact": "Kendra is fond of Puma shoes.", "invalid_at": "2999-01-01"},
        ZEP | {"uuid": "e-3", "source_node_uuid": "n-ana", "fact": "Ana is vegan."},
    ]
    path = {
        "list": lambda: written(tmp_path, edges),
        "edges": lambda: written(tmp_path, {"edges": edges, "nodes": []}),
        "lines": lambda: lines(tmp_path, *edges),
    }[form]()
    found = list(read_zep(path, node="n-kendra"))
    memories = [each for each in found if isinstance(each, ForeignMemory)]
    assert [(each.text, each.kind, each.source_id) for each in memories] == [
        ("Kendra lives in Lisbon.", "fact", "e-1"), ("Kendra is fond of Puma shoes.", "preference", "e-2"),
    ]  # fmt: skip
    assert memories[0].valid_at == datetime(2024, 2, 1, tzinfo=UTC)
    assert memories[1].invalid_at == datetime(2999, 1, 1, tzinfo=UTC)
    lost = [each.kind for each in found if isinstance(each, LossCount)]
    assert lost == [ENDED, ENDED, ELSEWHERE]
    assert len([each for each in read_zep(path) if isinstance(each, ForeignMemory)]) == 3


def test_facts_of_several_graphs_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path, [ZEP | {"graph_uuid": "g-1"}, ZEP | {"graph_uuid": "g-2", "fact": SECRET}])
    _, problem = read_zep(path)
    assert isinstance(problem, SourceProblem)
    assert problem.place == "edge 2"


@pytest.mark.parametrize("form", ["agent file", "first agent files", "state", "list"])
def test_lines_of_lettas_blocks_about_the_person_come(tmp_path: Path, form: str) -> None:
    blocks: Any = LETTA["blocks"]
    document: Any = {
        "agent file": LETTA,
        "first agent files": {"agent_type": "memgpt_agent", "core_memory": blocks, "created_at": LETTA["created_at"]},
        "state": {"id": "agent-0", "memory": {"blocks": blocks}, "created_at": LETTA["created_at"]},
        "list": blocks,
    }[form]
    path = written(tmp_path, document, "sam.af")
    *memories, other = read_letta(path)
    assert [(each.text, each.kind) for each in memories if isinstance(each, ForeignMemory)] == [
        ("Name: Sarah", "fact"), ("- She is allergic to nuts. She works nights.", "constraint"),
    ]  # fmt: skip
    assert other == LossCount(NO_PERSON, "block 2")
    (at,) = {each.created_at for each in memories if isinstance(each, ForeignMemory)}
    assert at is not None
    assert (at == datetime(2025, 7, 1, 12, tzinfo=UTC)) is (form != "list")
    assert list(read_letta(path)) == [*memories, other]
    assert [type(each) for each in read_letta(path, labels=["persona"])] == [LossCount, ForeignMemory]


HOSTILE: Final[list[tuple[str, Any]]] = [
    ("no object", SECRET),
    ("null", None),
    ("a list", [SECRET]),
    ("no text", MEM0 | {"memory": {"text": SECRET}}),
    ("nothing", {"user_id": "arjun", "note": SECRET}),
    ("a number", MEM0 | {"memory": 7}),
    ("NUL", MEM0 | {"memory": f"{SECRET}\0"}),
    ("a user that is no text", MEM0 | {"user_id": [SECRET]}),
    ("no time", MEM0 | {"created_at": SECRET}),
    ("a time that is a number", MEM0 | {"created_at": 1e30}),
    ("a time out of range", MEM0 | {"created_at": "9999-12-31T23:59:59-23:00"}),
]


@each_case(("what", "record"), HOSTILE)
def test_a_record_that_cannot_be_read_is_named_by_its_place_and_not_its_content(
    tmp_path_factory: pytest.TempPathFactory, what: str, record: Any
) -> None:
    folder = tmp_path_factory.mktemp("hostile")
    for path, place in ((written(folder, [MEM0, record, MEM0]), "memory 2"), (lines(folder, MEM0, record), "line 2")):
        _first, problem, *_rest = read_mem0(path)
        assert isinstance(problem, SourceProblem)
        assert problem.place == place
        assert SECRET not in problem.why + problem.hint


@each_case(("what", "change"), [(name, each) for name, each in HOSTILE if not isinstance(each, dict)])
def test_edges_and_blocks_of_wrong_types_are_named_too(
    tmp_path_factory: pytest.TempPathFactory, what: str, change: Any
) -> None:
    folder = tmp_path_factory.mktemp("hostile")
    for problem in (next(read_zep(written(folder, [change]))), next(read_letta(written(folder, [change])))):
        assert isinstance(problem, SourceProblem)
        assert SECRET not in problem.why
    for record in ({"fact": 7}, ZEP | {"fact": "\0"}, ZEP | {"valid_at": SECRET}, ZEP | {"name": 7}):
        assert isinstance(next(read_zep(written(folder, [record]))), SourceProblem)
    for block in ({"value": SECRET}, {"label": 7, "value": SECRET}, {"label": "human", "value": ["\0"]}):
        assert isinstance(next(read_letta(written(folder, [block]))), SourceProblem)


@each_case(
    ("what", "content"),
    [
        ("no JSON", b"{peanuts"),
        ("half", b'[{"memory": "peanuts"'),
        ("deep", b"[" * 100_000),
        ("empty", b""),
        ("a number", b"7"),
        ("an object without a list", b'{"peanuts": []}'),
        ("a list that is none", b'{"results": 7, "edges": 7, "blocks": 7, "memory": 7}'),
        ("another encoding", b'["\xff\xfepeanuts"]'),
    ],
)
def test_a_file_that_cannot_be_read_is_refused(
    tmp_path_factory: pytest.TempPathFactory, what: str, content: bytes
) -> None:
    path = tmp_path_factory.mktemp("hostile") / "export.json"
    path.write_bytes(content)
    for read in (read_mem0, read_zep, read_letta):
        with pytest.raises(InvalidInputError) as refused:
            list(read(path))
        assert SECRET not in str(refused.value)


def test_a_line_that_is_no_json_is_named(tmp_path: Path) -> None:
    path = tmp_path / "export.jsonl"
    path.write_text(json.dumps(MEM0) + "\n{peanuts\n" + "[" * 100_000 + "\n" + json.dumps(MEM0) + "\n")
    found = list(read_mem0(path))
    assert [each.place for each in found] == ["line 1", "line 2", "line 3", "line 4"]
    assert [type(each) for each in found] == [ForeignMemory, SourceProblem, SourceProblem, ForeignMemory]


def test_a_document_that_is_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_reader, "LONGEST", 1000)
    with pytest.raises(InvalidInputError, match=r"one record a line"):
        list(read_mem0(written(tmp_path, [MEM0] * 10)))
    with pytest.raises(InvalidInputError, match="line 2"):
        list(read_mem0(lines(tmp_path, MEM0, MEM0 | {"memory": "x" * 1000})))


def test_a_long_text_is_divided_between_sentences_and_lines() -> None:
    short = "Maya fires at cone six. " * 30
    found, lost = parts(short + "\n" + "x" * 501 + "\n \n--\nLast line")
    assert (lost, found[-1]) == (1, "Last line")
    assert all(0 < len(each) <= 500 for each in found)
    assert " ".join(found[:-1]) == short.strip()
    wide, lost = parts("窯は" * 250)
    assert (wide, lost) == ([], 1)
    assert parts("x" * 3_000_000) == ([], 1)


@each_case(
    ("text", "label", "kind"),
    [
        ("Prefers tea", "", "preference"),
        ("User likes hiking", "", "preference"),
        ("Is allergic to nuts", "", "constraint"),
        ("Always answer in Spanish", "", "instruction"),
        ("Do not use emoji", "", "instruction"),
        ("Lives in Lisbon", "", "fact"),
        ("Tea", "user_preferences", "preference"),
        ("Tea", "LIKES", "preference"),
        ("Mahilig sa kape", "", "fact"),
    ],
)
def test_a_kind_is_told_by_a_label_or_by_words(text: str, label: str, kind: str) -> None:
    assert kind_of(text, label) == kind


async def test_what_other_libraries_know_becomes_the_users_profile_once(memory: SupabaseMemory, tmp_path: Path) -> None:
    sources: dict[str, Callable[[], Iterator[Event]]] = {
        "mem0": lambda: mem0(written(tmp_path, {"results": [MEM0]}, "mem0.json")),
        "zep": lambda: zep(written(tmp_path, [ZEP, ZEP | {"expired_at": "2025-01-01T00:00:00Z"}], "zep.json")),
        "letta": lambda: letta(written(tmp_path, LETTA, "sam.af")),
    }
    for number, source in enumerate(sources.values()):
        would = import_conversations(memory, source(), dry_run=True)
        first = import_conversations(memory, source()) if number % 2 else await aimport_conversations(memory, source())
        again = import_conversations(memory, source())
        assert would.items == first.items == first.restored > 0
        assert (would.restored, again.restored, again.refused, first.messages) == (0, 0, 0, 0)
    items = {item.value: item for item in memory.profile.read(limit=None)}
    assert {(each.value, each.kind, each.author, each.author_kind) for each in items.values()} == {
        ("Prefers morning meetings", "preference", "mem0", "import"),
        ("Kendra lives in Lisbon.", "fact", "zep", "import"),
        ("Name: Sarah", "fact", "letta", "import"),
        ("- She is allergic to nuts. She works nights.", "constraint", "letta", "import"),
    }
    # Another's export is not this person's confirmation.
    assert {(each.state, each.confirmed_at) for each in items.values()} == {("proposed", None)}
    assert items["Kendra lives in Lisbon."].suggested_at == datetime(2024, 2, 1, tzinfo=UTC)
    memory.profile.confirm(items["Kendra lives in Lisbon."])
    assert import_conversations(memory, sources["zep"]()).restored == 0
    (held,) = memory.profile.read(states=["held"])
    assert (held.value, held.author_kind, held.basis) == ("Kendra lives in Lisbon.", "import", "person")
    # What a person deletes does not come back, and what they refuse is not stored.
    memory.profile.delete(items["Name: Sarah"])
    memory.privacy.opt_out(topic="meetings", actor="maya")
    assert import_conversations(memory, sources["letta"]()).refused == 1
    assert import_conversations(memory, sources["mem0"]()).refused == 1
    assert len(memory.profile.read(limit=None)) == 2
    memory.privacy.consent("profile", allowed=False, actor="maya")
    assert import_conversations(memory, sources["zep"]()).refused == 1
    assert memory.profile.read(limit=None) == []


def test_many_memories_are_stored_and_the_first_problem_ends_the_import(memory: SupabaseMemory, tmp_path: Path) -> None:
    records: list[Any] = [MEM0 | {"memory": f"Likes glaze {number}", "id": str(number)} for number in range(450)]
    path = lines(tmp_path, *records, {"memory": 7}, MEM0 | {"memory": "Likes the last glaze"})
    with pytest.raises(InvalidInputError, match="line 451"):
        import_conversations(memory, mem0(path))
    assert len(memory.profile.read(limit=None)) == 450
    receipt = import_conversations(memory, mem0(path), skip=True)
    assert (receipt.items, receipt.restored) == (451, 1)
    assert list(receipt.lost.values()) == [(1, "line 451")]
