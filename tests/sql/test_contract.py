"""The contract of every public function in its comment: arguments, documents and errors match.

`tools/contract.py` defines the form of the comments and writes the pages from them; these tests use the real database.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from langchain_supabase_memory.adapters.transports.response_shapes import SHAPES
from langchain_supabase_memory.errors import DatabaseError, from_code
from langchain_supabase_memory.sql_arguments import TYPES
from tests.converse import Caller, converse
from tests.each_case import each_case
from tests.services.postgres import Cluster
from tools.contract import PREFIX, Contract, Field, FormError, every, parse

ROOT = Path(__file__).parents[2]
FUNCTIONS = every()
each_function = each_case("name", sorted(FUNCTIONS))

_CATALOG = """
select p.oid::regproc::text, p.pronamespace::regnamespace::text || '.' || p.proname, coalesce(p.proargnames, '{}'),
       p.proargtypes::regtype[]::text[], p.pronargdefaults, p.prorettype::regtype::text,
       coalesce(obj_description(p.oid, 'pg_proc'), ''), p.prosrc
from pg_proc p
where p.pronamespace = 'memory_private'::regnamespace
   or p.pronamespace = 'public'::regnamespace and starts_with(p.proname, 'memory_')
"""

_OF_TABLES = """
select f.refobjid::regproc::text, a.adrelid::regclass::text, array_agg(c.attname::text)
from pg_attrdef a
join pg_depend f on f.classid = 'pg_attrdef'::regclass and f.objid = a.oid and f.refclassid = 'pg_proc'::regclass
join pg_depend d on d.classid = 'pg_attrdef'::regclass and d.objid = a.oid and d.refclassid = 'pg_class'::regclass
join pg_attribute c on c.attrelid = a.adrelid and c.attnum = d.refobjsubid and c.attnum <> a.adnum
where f.refobjid::regproc::text like 'memory_private.%'
group by 1, 2
"""
"""Which of our functions a generated column calls, of which table, and the columns that it reads."""

_CHECKED = """
select distinct c.oid::regclass::text from pg_class c join pg_constraint k on k.conrelid = c.oid and k.contype = 'c'
where c.relnamespace::regnamespace::text like 'memory%'
"""


@dataclass(frozen=True)
class Found:
    """A function as the catalog has it."""

    names: list[str]
    types: list[str]
    defaults: int
    returns: str
    comment: str
    source: str


class Catalog:
    """What the catalog says of our functions.

    Args:
        connection: To a migrated database.
    """

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.functions: dict[str, Found] = {}
        for _, name, names, types, defaults, returns, comment, source in connection.execute(_CATALOG).fetchall():
            body = re.sub(r"--[^\n]*", "", source)
            # All of one name together: a call does not say which of them it means.
            before = self.functions[name].source if name in self.functions else ""
            self.functions[name] = Found(names[: len(types)], types, defaults, returns, comment, before + body)
        self.of_tables: list[tuple[str, str, list[str]]] = connection.execute(_OF_TABLES).fetchall()
        self.checked = {table for (table,) in connection.execute(_CHECKED).fetchall()}

    def public(self) -> dict[str, Found]:
        """The public functions, by their names without the schema."""
        named = {name.removeprefix("public."): each for name, each in self.functions.items()}
        return {name: each for name, each in named.items() if name.startswith("memory_") and "." not in name}

    def reached(self, name: str) -> set[str]:
        """A public function, all that it calls, and what the tables call where it writes their columns."""
        found: set[str] = set()
        ahead = {f"public.{name}"}
        while ahead:
            each = ahead.pop()
            found.add(each)
            ahead |= self.called(each) - found
        return found

    def called(self, name: str) -> set[str]:
        """What a function calls itself, and what the tables call where it writes their columns."""
        source = self.functions[name].source
        called = set(re.findall(r"\b((?:memory_private|public)\.\w+)\s*\(", source)) & self.functions.keys()
        for function, table, columns in self.of_tables:
            given = re.findall(rf"\binsert into {table}(?: as \w+)?\s*\(([^)]*)\)", source)
            changed = re.findall(rf"\bupdate {table}\b[^;]*", source)
            any_of = "|".join(columns)
            if re.search(rf"\b(?:{any_of})\b", "".join(given)) or re.search(
                rf"(?<!\.)\b(?:{any_of}) = ", "".join(changed)
            ):
                called.add(function)
        return called

    def codes(self, name: str, above: frozenset[str] = frozenset()) -> set[str]:
        """The SQLSTATEs that a function raises, and those of what it calls that it does not catch.

        What is above is not looked into.
        """
        source = self.functions[name].source
        below = self.called(name) - {name} - above
        found: set[str] = set().union(*(self.codes(each, above | {name}) for each in below))
        caught = {each[1]: each.start() for each in re.finditer(r"when sqlstate '(\w{5})'", source)}
        found -= caught.keys()
        for raised in re.finditer(r"raise exception\b[^;]*;", source):
            given = re.findall(r"errcode = '(\w{5})'", raised[0]) or ["P0001"]
            found |= {code for code in given if raised.start() > caught.get(code, -1)}  # what follows catches
        return found

    def writes_checked(self, name: str) -> bool:
        """Whether a check may refuse what a public function inserts or updates."""
        text = "".join(self.functions[each].source for each in self.reached(name))
        return bool(self.checked & set(re.findall(r"\b(?:insert into|update) (memory\w*\.\w+)", text)))


@pytest.fixture(scope="module")
def connection(cluster: Cluster) -> Iterator[psycopg.Connection[Any]]:
    address = cluster.conn_string(cluster.migrated_database(spaces=True))
    with psycopg.connect(address, autocommit=True) as connection:
        yield connection


@pytest.fixture(scope="module")
def catalog(connection: psycopg.Connection[Any]) -> Catalog:
    return Catalog(connection)


@pytest.fixture(scope="module")
def answers(connection: psycopg.Connection[Any]) -> dict[str, list[Any]]:
    """Every function's answers in a long conversation."""
    caller = Caller(connection, "maya")
    converse(caller)
    return caller.answers


# Comments and signatures


def test_no_function_is_longer_than_140_lines() -> None:
    for file in sorted((Path(__file__).parents[2] / "sql").rglob("*.sql")):
        for name, body in re.findall(
            r"function ([\w.]+)\([^$]*\$function\$\n(.*?)\$function\$", file.read_text(), re.DOTALL
        ):
            assert body.count("\n") <= 140, f"{name} in {file.name}: split it into helpers with one job each"


def test_the_files_define_what_the_catalog_has(catalog: Catalog) -> None:
    assert sorted(FUNCTIONS) == sorted(catalog.public()) == sorted(SHAPES)


SCALARS = {"text", "boolean", "integer", "bigint", "double precision"}


def test_scalar_arguments_have_the_types_of_the_catalog(catalog: Catalog) -> None:
    types: dict[str, set[str]] = {}
    for found in catalog.public().values():
        for name, sql_type in zip(found.names, found.types, strict=False):
            types.setdefault(name, set()).add("text" if sql_type == "uuid" else sql_type)
    for each in types.values():
        if each == {"integer", "bigint"}:
            each.remove("integer")
    one = {name: each.pop() for name, each in types.items() if len(each) == 1}
    assert {name: each for name, each in one.items() if each in SCALARS} == TYPES


@each_function
def test_the_comment_in_the_catalog_is_the_one_in_the_file(catalog: Catalog, name: str) -> None:
    assert parse(name, catalog.public()[name].comment) == FUNCTIONS[name].contract


@each_function
def test_each_argument_is_described_and_none_else(
    catalog: Catalog, connection: psycopg.Connection[Any], name: str
) -> None:
    found, function = catalog.public()[name], FUNCTIONS[name]
    assert [each.name for each in function.contract.arguments] == found.names
    assert [each.name for each in function.parameters] == found.names
    types = [each.type for each in function.parameters]
    query = "select t::regtype::text from unnest(%s::text[]) with ordinality as u (t, n) order by n"
    assert [named for (named,) in connection.execute(query, [types]).fetchall()] == found.types
    assert sum(each.default is not None for each in function.parameters) == found.defaults
    assert (function.returns, function.contract.returns != "") == (found.returns, True)


@each_function
def test_an_argument_that_may_be_null_by_default_says_what_null_means(name: str) -> None:
    described = {each.name: each.meaning for each in FUNCTIONS[name].contract.arguments}
    for each in FUNCTIONS[name].parameters:
        if each.default == "null" and not _PLACE_OF_A_PAGE.search(each.name):
            assert re.search(r"\bnull\b", described[each.name], re.IGNORECASE), each.name


_PLACE_OF_A_PAGE = re.compile("_after|before_id|_part$|_item_id$|_kind$|_tokens$|_text$")
"""What belongs to another argument, and is absent with it."""

_RECORD = re.compile(r"json_to_record(?:set)?\((p_\w+)\)\)?(?:\s+as)?(?:\s+\w+)?\s*\(([^()]*)\)")
_STORED_WHOLE = {("memory_describe_summary", "message_ids")}


@each_function
def test_each_key_of_a_documents_argument_is_read_and_none_else(catalog: Catalog, name: str) -> None:
    source = "".join(catalog.functions[each].source for each in catalog.reached(name))
    for argument in FUNCTIONS[name].contract.arguments:
        keys = {key.path for key in argument.fields}
        for key in keys:
            assert re.search(rf"\b{key}\b", source) or (name, key) in _STORED_WHOLE, f"{argument.name}: {key}"
        for read, columns in _RECORD.findall(catalog.public()[name].source):
            if read == argument.name:
                named = {each.split()[0].strip('"') for each in columns.split(",")}
                assert named <= keys, argument.name


# Errors


@each_function
def test_each_error_is_raised_and_each_that_is_raised_is_described(catalog: Catalog, name: str) -> None:
    described = FUNCTIONS[name].contract.errors.keys()
    raised = catalog.codes(f"public.{name}", _OF_SPACES)
    # What a table's check refuses has no statement that raises it; it is described where a caller can meet it.
    of_checks = {"23514"} & described if catalog.writes_checked(name) else set()
    of_spaces = {"PT403", "PT404", "PT409"} & described if catalog.reached(name) & _OF_SPACES else set()
    assert described == raised | of_checks | of_spaces


_OF_SPACES = frozenset({"memory_private.check_space", "memory_private.act_as_member"})
"""Any verb raises their errors where its owner is a space: they are described once, in docs/sql-functions.md."""


@each_function
def test_each_error_has_a_class(name: str) -> None:
    for code in FUNCTIONS[name].contract.errors:
        assert type(from_code(code)) is not DatabaseError, code


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("append", {"thread_id": "t", "messages": [{"role": "user", "contents": "Hello"}]}, "PT400"),
    ("append", {"thread_id": "t", "messages": [{"role": "user", "content": "Hello", "characters": 1}]}, "23514"),
    ("commit_board", {"thread_id": "t", "conversation_id": str(uuid.UUID(int=0)), "through": -1, "revision": 0, "to": 0,
                      "message_ids": ["m"] * 10_001, "summary": "", "context_notes": ""}, "PT413"),
    ("compare", {"thread_id": "t", "comparison": {"stage": "on", "old_messages": 1, "old_tokens": 1, "old_characters": 1,
                                                  "old_ms": -1}}, "23514"),
    ("edit_board", {"thread_id": "nowhere", "action": "pin", "by": "maya"}, "PT404"),
    ("edit_board", {"thread_id": "t", "action": "pin", "by": "maya"}, "PT400"),
    ("edit_summary", {"thread_id": "nowhere", "action": "delete", "by": "maya"}, "PT404"),
    ("edit_summary", {"thread_id": "t", "action": "shorten", "by": "maya"}, "PT400"),
    ("forget", {}, "PT400"),
    ("opt_in", {"by": "maya"}, "PT400"),
    ("opt_out", {"by": "", "topic": "taxes"}, "23514"),
    ("opt_out", {"by": "maya", "topic": "x" * 1001}, "PT413"),
    ("promote", {"target": "store", "items": [], "user_id": "space:x"}, "PT400"),
    ("rate_chunk", {"chunk_id": str(uuid.UUID(int=0)), "importance": 1, "by": "maya"}, "PT404"),
    ("read", {"thread_id": "t", "user_id": ""}, "PT400"),
    ("store", {"ops": [{"op": "put", "namespace": [""], "key": "k", "value": {}}]}, "23514"),
    ("store", {"ops": [{"op": "search", "prefix": [], "filter": {"all": [["$like", 1]]}}]}, "PT400"),
    ("worker_set_rollout", {"stage": "half", "by": "ops"}, "23514"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "arguments", "code"), REFUSED, ids=[f"{name}-{code}" for name, _, code in REFUSED])
def test_a_refused_call_raises_an_error_that_is_described(
    connection: psycopg.Connection[Any], user_id: str, name: str, arguments: dict[str, Any], code: str
) -> None:
    with connection.transaction(force_rollback=True):
        connection.execute("insert into memory.conversations (user_id, thread_id) values (%s, 't')", [user_id])
        with pytest.raises(psycopg.Error) as refused:
            Caller(connection, user_id)(name, **arguments)
    assert refused.value.sqlstate == code
    assert code in FUNCTIONS[f"memory_{name}"].contract.errors


# Documents


class Walker:
    """Compares documents with what a contract says of them.

    Args:
        contract: The function's.
    """

    def __init__(self, contract: Contract) -> None:
        self._contract = contract
        self.seen: set[str] = set()
        self.faults: set[str] = set()

    def walk(self, document: Any) -> None:
        """Note what of a document is not as it is described."""
        self._fits(self._contract.returns, document, "", self._contract, "")

    def unseen(self) -> set[str]:
        """The keys that no document had."""
        return {key.path for key in self._contract.keys} - self.seen

    def _fits(self, type_: str, value: Any, path: str, contract: Contract, place: str) -> None:
        """Compare a value at a path of the document; `place` is where its type's keys are described, and in which contract."""
        inner = type_.removesuffix(" or null")
        if value is None:
            if inner == type_ and inner != "json":
                self.faults.add(f"null: {path}")
            return
        inner, _, reference = inner.partition(" as ")
        if reference:
            contract = FUNCTIONS[reference.partition(".")[0]].contract
            place = _described_at(contract, reference)
        if inner.endswith("[]"):
            if not isinstance(value, list):
                self.faults.add(f"no list: {path}")
                return
            for each in value:
                self._fits(inner[:-2].strip("()"), each, f"{path}[]", contract, place if reference else f"{place}[]")
        elif inner == "json" and isinstance(value, list):
            for each in value:
                self._fits("json", each, f"{path}[]", contract, f"{place}[]")
        elif inner == "object" or (inner == "json" and isinstance(value, dict)):
            self._keys(value, path, contract, place)
        elif not _is(inner, value):
            self.faults.add(f"no {inner}: {path}")

    def _keys(self, value: Any, path: str, contract: Contract, place: str) -> None:
        if not isinstance(value, dict):
            self.faults.add(f"no object: {path}")
            return
        described = _children(contract, place)
        if not described:
            return  # it is not looked into
        for key, each in value.items():
            here = f"{path}.{key}".lstrip(".")
            if key not in described:
                self.faults.add(f"not described: {here}")
                continue
            self.seen.add(here)
            self._fits(described[key].type, each, here, contract, described[key].path)


def _described_at(contract: Contract, reference: str) -> str:
    """Where the keys are described of what a reference names; of a list those of its elements."""
    path = reference.partition(".")[2]
    type_ = next((key.type for key in contract.keys if key.path == path), contract.returns)
    return path + "[]" * type_.partition(" as ")[0].count("[]")


def _children(contract: Contract, place: str) -> dict[str, Field]:
    """The keys that are described right below a place."""
    start = f"{place}." if place else ""
    below = {key.path.removeprefix(start): key for key in contract.keys if key.path.startswith(start)}
    return {name: key for name, key in below.items() if re.fullmatch(r"\w+", name)}


def _is(type_: str, value: Any) -> bool:
    """Whether a value is of a type that is no list and no object."""
    match type_:
        case "json":
            return True
        case "boolean" | "integer":
            return type(value) is {"boolean": bool, "integer": int}[type_]
        case "number":
            return type(value) in (int, float)
        case "uuid":
            return isinstance(value, str) and _UUID.fullmatch(value) is not None
        case "timestamp":
            return isinstance(value, str) and _TIMESTAMP.fullmatch(value) is not None
    return isinstance(value, str)


_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIMESTAMP = re.compile(r"infinity|-infinity|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?[+-]\d\d:\d\d")


@each_function
def test_the_documents_are_as_they_are_described(answers: dict[str, list[Any]], name: str) -> None:
    walker = Walker(FUNCTIONS[name].contract)
    assert answers[name], "the conversation calls every function"
    for document in answers[name]:
        walker.walk(document)
    assert walker.faults == set()
    assert walker.unseen() == set(), "no answer has them"


@each_function
def test_the_shape_that_is_checked_is_the_one_that_is_described(name: str) -> None:
    contract, shape = FUNCTIONS[name].contract, SHAPES[name]
    kind = contract.returns.removesuffix(" or null").partition(" as ")[0]
    assert shape.kind is (list if kind.endswith("[]") else {"object": dict, "integer": int}[kind])
    assert shape.or_null == contract.returns.endswith(" or null")
    reference = contract.returns.removesuffix(" or null").partition(" as ")[2]
    if reference:
        contract = FUNCTIONS[reference.partition(".")[0]].contract
    assert shape.keys <= _children(contract, _described_at(contract, reference) if reference else "").keys()


# That faults are noticed

FORM = f"""{PREFIX}Do something
  with it.

p_a: what it is.
- x: integer. A key.
Returns: object or null.
- a: text[]. A key.
- b: (integer or null)[]. A list.
- c: object[]. A list.
- c[].d: uuid or null. A key.
Errors:
- PT404: there is none."""


def test_a_comment_is_read() -> None:
    contract = parse("f", FORM)
    assert contract.summary == "Do something with it."
    assert [(each.name, [key.path for key in each.fields]) for each in contract.arguments] == [("p_a", ["x"])]
    assert (contract.returns, [key.path for key in contract.keys]) == ("object or null", ["a", "b", "c", "c[].d"])
    assert contract.errors == {"PT404": "there is none."}


@each_case(
    ("right", "wrong"),
    [
        (PREFIX, ""),
        ("with it.", "with it"),
        ("p_a: what it is.", "p_a what it is."),
        ("p_a: what it is.", "p_a: what it is"),
        ("- x: integer.", "- x: integral."),
        ("- a: text[].", "- c: text[]."),
        ("Returns: object or null.\n", ""),
        ("Returns: object or null.", "Returns: maybe."),
        ("\nErrors:\n- PT404: there is none.", ""),
        ("\n- PT404: there is none.", ""),
        ("- PT404:", "- 404:"),
        ("- PT404: there is none.", "- PT404: there is none.\n- PT404: there is none."),
        ("Errors:\n", "Errors: none.\n"),
    ],
)
def test_a_comment_that_is_out_of_form_is_refused(right: str, wrong: str) -> None:
    with pytest.raises(FormError):
        parse("f", FORM.replace(right, wrong))


RIGHT = {"a": ["x"], "b": [1, None], "c": [{"d": None}]}


@each_case(
    ("document", "faults", "unseen"),
    [
        (RIGHT, set(), set()),
        (None, set(), {"a", "b", "c", "c[].d"}),
        ({**RIGHT, "e": 1}, {"not described: e"}, set()),
        ({**RIGHT, "a": None}, {"null: a"}, set()),
        ({**RIGHT, "a": ["x", 1]}, {"no text: a[]"}, set()),
        ({**RIGHT, "b": [True]}, {"no integer: b[]"}, set()),
        ({**RIGHT, "c": [{"e": 1}]}, {"not described: c[].e"}, {"c[].d"}),
        ({**RIGHT, "c": {}}, {"no list: c"}, {"c[].d"}),
        ({**RIGHT, "c": [1]}, {"no object: c[]"}, {"c[].d"}),
        ({"a": []}, set(), {"b", "c", "c[].d"}),
    ],
)
def test_a_document_that_is_otherwise_is_noticed(document: Any, faults: set[str], unseen: set[str]) -> None:
    walker = Walker(parse("f", FORM))
    walker.walk(document)
    assert (walker.faults, walker.unseen()) == (faults, unseen)


def test_a_document_that_is_described_elsewhere_is_looked_into() -> None:
    walker = Walker(FUNCTIONS["memory_worker_rollouts"].contract)
    walker.walk([{"agent_id": "a", "other": 1, "version": "1"}])
    assert walker.faults == {"not described: [].other", "no integer: [].version"}
    walker = Walker(FUNCTIONS["memory_context"].contract)
    walker.walk({"board": {"items": [{"id": "x", "other": 1}]}, "recalled": {"chunks": [{"chunk": {"other": 1}}]}})
    assert "not described: board.items[].other" in walker.faults
    assert "not described: recalled.chunks[].chunk.other" in walker.faults


# The pages


def test_the_example_in_sql_runs(connection: psycopg.Connection[Any]) -> None:
    (example,) = re.findall(r"```sql\n(.*?)```", (ROOT / "docs" / "sql-functions.md").read_text(), re.DOTALL)
    assert connection.execute(example.encode()).fetchall() == [({"messages": [], "more": False},)]


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """What the tool reads and writes, in a folder of its own."""
    for each in ("tools", "sql", "docs"):
        shutil.copytree(ROOT / each, tmp_path / each, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def _run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(folder / "tools" / "contract.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_pages_are_what_the_comments_say(copied: Path) -> None:
    assert _run(copied, "--check").stderr == ""
    file = copied / "sql" / "functions" / "turns.sql"
    file.write_text(file.read_text().replace("Read complete turns:", "Read full turns:"))
    (copied / "docs" / "sql" / "older.md").write_text("# Older\n")
    found = _run(copied, "--check")
    assert found.returncode == 1
    assert re.findall(r"[\w/-]+\.md", found.stderr) == ["sql-functions.md", "sql/older.md", "sql/reading.md"]
    assert _run(copied).returncode == 0
    assert _run(copied, "--check").returncode == 0
    assert "Read full turns:" in (copied / "docs" / "sql" / "reading.md").read_text()
    assert not (copied / "docs" / "sql" / "older.md").exists()


def test_a_function_without_a_page_is_named(copied: Path) -> None:
    file = copied / "sql" / "functions" / "turns.sql"
    file.write_text(file.read_text().replace("public.memory_turns", "public.memory_rounds"))
    found = _run(copied, "--check")
    assert found.returncode == 1
    assert "memory_rounds" in found.stderr
