"""`status`: one line per conversation, readable at 80 columns, complete in a pipe, with errors below."""

from __future__ import annotations

import asyncio
import json
import re
import uuid

import pytest
from langchain_core.messages import HumanMessage
from rich.cells import cell_len

from langchain_supabase_memory import MemoryConfig, SummaryPolicy, SupabaseMemory, Worker, WorkerPolicy
from langchain_supabase_memory.cli import formatting
from langchain_supabase_memory.humanize import duration
from tests.cli.running import Terminal, piped, refused, run
from tests.each_case import each_case
from tests.services.postgres import Cluster

LONG = "thread-" + "0123456789abcdef" * 6
HEBREW = "שיחה ארוכה מאוד על התנור"
HIDDEN = "a\u202eb\u2028c\u200bd"
THREADS = [LONG, ":smile: [red]", HEBREW, HIDDEN, "會" * 60, "e\u0301" * 60, " two  blanks ", "-rf", "x" * 512]


@pytest.fixture(scope="module")
def conn_string(cluster: Cluster, own: str) -> str:
    """A database of this file's own: what others have left due would be done here."""
    return cluster.conn_string(own)


@pytest.fixture(scope="module")
def owner(conn_string: str) -> str:
    """A user with conversations of all kinds of names, two of which were given up."""

    def fails(_: object) -> str:
        raise RuntimeError("the secret canary")

    owner = str(uuid.uuid4())
    policy = SummaryPolicy(messages=4, keep_messages=1)
    with SupabaseMemory.from_conn_string(
        conn_string, user_id=owner, model=fails, config=MemoryConfig(policy=policy)
    ) as memory:
        for thread_id in THREADS:
            memory.conversation(thread_id).append([HumanMessage("Hello")])
        for thread_id in (LONG, HEBREW):
            memory.conversation(thread_id).append([HumanMessage(f"Hello {number}") for number in range(9)])
        worker = Worker(memory, policy=WorkerPolicy(max_attempts=1, duties=("index", "summarize")))
        asyncio.run(worker.drain())
        memory.conversation("-rf").append([HumanMessage("Hello")])
    return owner


def shown(conn_string: str, owner: str, columns: int, *more: str, **environment: str) -> list[str]:
    """The lines of the table and below, as they look in a terminal of so many columns."""
    caller = ("status", "--database-url", conn_string, "--user", owner)
    with Terminal(*caller, *more, columns=columns, environment=environment) as terminal:
        assert terminal.end() == 0, terminal.text
        lines = terminal.lines
    start = next(place for place, line in enumerate(lines) if re.search(r"\bthread +state\b", line))
    return lines[start:]


@each_case("columns", [80, 60, 40])
def test_each_conversation_is_a_line_that_fits(conn_string: str, owner: str, columns: int) -> None:
    lines = shown(conn_string, owner, columns)
    table = lines[: lines.index("")]
    assert len(table) == 1 + len(THREADS)
    assert max(map(cell_len, table)) <= columns
    state = table[0].index("state")
    for line in table[1:]:
        before = next(place for place in range(len(line)) if cell_len(line[:place]) == state)
        assert line[before:].split()[0] in formatting.STATE_STYLES, "everything stands below its heading"
    assert "agent" not in table[0], "the default of all says nothing"
    found = "\n".join(table)
    assert "thread-" in found if columns == 80 else "threa" in found
    assert formatting.ELLIPSIS in found
    assert re.search(r"a.*\\u200bd", found), "what is unseen is spelled, and its code is not cut"
    assert not {"\u202e", "\u2028", "\u200b"} & set(found)
    assert f"\u2068{HEBREW[:4]}" in found, "what runs from the right turns nothing around"


def test_errors_stand_below_each_with_its_conversation(conn_string: str, owner: str) -> None:
    lines = shown(conn_string, owner, 80)
    below = lines[lines.index("") + 1 :]
    failed = [(of, error) for of, error in zip(below[::2], below[1::2], strict=True)]
    assert sorted("thread-" in of for of, _ in failed) == [False, True]
    for of, error in failed:
        assert of.startswith(owner[:8])
        assert error == "  summarize: RuntimeError, given up after 1 failure"
    assert "canary" not in "".join(lines)
    table = "".join(lines[: lines.index("")])
    assert "RuntimeError" not in table


def test_wide_shows_ids_as_a_whole(conn_string: str, owner: str) -> None:
    with Terminal("status", "--database-url", conn_string, "--user", owner, "--wide", columns=40) as terminal:
        assert terminal.end() == 0
        for whole in (LONG, HEBREW, "會" * 60, "e\u0301" * 60, '" two  blanks "', "x" * 512, r"a\u202eb\u2028c\u200bd"):
            assert whole in terminal.text
        assert formatting.ELLIPSIS not in terminal.text.split("Querying the database …")[-1]


def test_states_have_colors_in_a_terminal_and_nowhere_else(conn_string: str, owner: str) -> None:
    caller = ("status", "--database-url", conn_string, "--user", owner)

    def raw(**environment: str) -> str:
        with Terminal(*caller, environment=environment) as terminal:
            assert terminal.end() == 0
            return terminal.raw.split(" running, ")[1]

    assert re.search(r"\x1b\[1;31mdead *\x1b\[0m", raw())
    assert "\x1b" not in raw(NO_COLOR="1")
    assert "\x1b" not in piped(*caller).stdout
    assert "\x1b" not in raw(TERM="dumb")


def test_in_a_pipe_lines_and_ids_are_whole(conn_string: str, owner: str) -> None:
    done = piped("status", "--database-url", conn_string, "--user", owner, env={"COLUMNS": "20"})
    assert (done.returncode, done.stderr) == (0, "")
    _, heading, *lines = done.stdout.splitlines()
    names = heading.split("\t")
    assert names == ["user", "agent", "thread", "state", "messages", "summary", "index", "board", "saved", "error"]
    rows = {row["thread"]: row for row in (dict(zip(names, line.split("\t"), strict=True)) for line in lines)}
    assert rows.keys() == {*THREADS, r"a\u202eb\u2028c\u200bd"} - {HIDDEN}
    assert {row["user"] for row in rows.values()} == {owner}
    assert rows[LONG]["error"] == "summarize: RuntimeError, given up after 1 failure"
    assert (rows[LONG]["messages"], rows[LONG]["index"], rows[LONG]["summary"]) == ("10", "100%", "–")
    assert (rows["-rf"]["messages"], rows["-rf"]["index"], rows["-rf"]["state"]) == ("2", "50%", "due")


def test_a_cut_is_said(conn_string: str, owner: str) -> None:
    caller, mine = ("status", "--database-url", conn_string), ("--user", owner)
    assert "more than" not in run(*caller, *mine)[1]
    output = run(*caller, *mine, "--limit", "1")[1]
    assert "There are more than these 1. --limit shows more; --user, --thread and --state narrow it." in output
    assert output.count(owner) == 1
    for limit, more in ((1, True), (len(THREADS), False)):
        found = json.loads(run(*caller, *mine, "--limit", str(limit), "--json")[1])
        assert (len(found["conversations"]), found["more"]) == (limit, more)
    threads = {each["key"]["thread_id"] for each in found["conversations"]}
    assert threads == set(THREADS), "in JSON ids are as they are"
    assert "--limit" in refused(*caller, "--limit", "0")


def test_nobodys_status_is_no_table(conn_string: str) -> None:
    queue, nobody = run("status", "--database-url", conn_string, "--user", "nobody at all")[1].splitlines()
    assert queue.startswith("All conversations: ")
    assert nobody == "There is no such conversation."


def test_a_long_id_loses_its_middle_and_no_letter() -> None:
    for text, columns, expected in (
        ("short", 5, "short"),
        ("abcdefghij", 7, "abc…hij"),
        ("abcdefghij", 6, "abc…ij"),
        ("abcdefghij", 1, "…"),
        ("會話會話會話", 8, "會話…話"),
        ("e\u0301" * 9, 5, "e\u0301e\u0301…e\u0301e\u0301"),
        ("", 5, ""),
    ):
        assert formatting.shorten_middle(text, columns) == expected
        assert cell_len(expected) <= columns
    for columns in range(1, 30):
        cut = formatting.format_id("\u202e" * 9, columns)
        assert re.fullmatch(r"(\\u202e)*…?(\\u202e)*", cut), "the code of an invisible character is not cut"
        assert cell_len(cut) <= columns


def test_a_duration_has_the_unit_of_a_person() -> None:
    durations = {0: "0 s", 119: "119 s", 120: "2 min", 7200: "2 h", 1e6: "11 days"}
    assert {seconds: duration(seconds) for seconds in durations} == durations
