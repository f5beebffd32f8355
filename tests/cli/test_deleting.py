"""Delete commands ask for confirmation, show counts, accept limits, and are atomic."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from langchain_core.messages import AIMessage, HumanMessage

from langchain_supabase_memory import ExtractiveSummarizer, SupabaseMemory
from tests.cli.running import Terminal, piped, refused, run

AGENTS = ("billing", "support")


@pytest.fixture
def caller(conn_string: str) -> tuple[str, str]:
    return "--database-url", conn_string


def filled(conn_string: str, user_id: str, turns: int = 3) -> None:
    """Two threads with each of two agents."""
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory:
        for agent_id in AGENTS:
            for thread_id in ("one", "my trip"):
                said = [each for number in range(turns) for each in (HumanMessage(f"q{number}"), AIMessage("a"))]
                memory.conversation(thread_id, agent_id=agent_id).append(said)


def left(conn_string: str, user_id: str) -> dict[tuple[str, str], int]:
    """How many messages each conversation of a user has."""
    with SupabaseMemory.from_conn_string(conn_string) as memory:
        rows = memory.for_user(user_id).work.status()
    return {(row.key.agent_id, row.key.thread_id): row.messages for row in rows}


def hold(connection: psycopg.Connection, user_id: str, place: int) -> None:
    """Lock one of a user's conversations, so that who deletes in their order waits there."""
    found = connection.execute(
        "select id from memory.conversations where user_id = %s order by user_id, id offset %s limit 1",
        [user_id, place],
    ).fetchone()
    assert found is not None
    connection.execute("select from memory.conversations where user_id = %s and id = %s for update", [user_id, *found])


@pytest.mark.parametrize("command", [["cleanup", "--max-turns", "1"], ["forget"]])
def test_without_a_terminal_nothing_is_deleted_unless_it_is_said(
    conn_string: str, user_id: str, caller: tuple[str, str], command: list[str]
) -> None:
    filled(conn_string, user_id)
    before = left(conn_string, user_id)
    done = piped(*command, *caller, "--user", user_id)
    assert (done.returncode, done.stdout) == (2, "")
    assert "There is no terminal to ask in, so nothing was deleted. Pass --yes" in " ".join(done.stderr.split())
    assert "yes cannot apply" in refused(*command, *caller, "--user", user_id, "--dry-run", "--yes")
    code, said = run(*command, *caller, "--user", user_id, "--dry-run")
    assert (code, "would be deleted, of the user " + user_id in said) == (0, True)
    assert left(conn_string, user_id) == before
    done = piped(*command, *caller, "--user", user_id, "--yes")
    assert (done.returncode, done.stderr) == (0, "")
    assert sum(left(conn_string, user_id).values()) == (8 if command[0] == "cleanup" else 0)


def test_cleanup_is_limited_and_counts_what_goes(conn_string: str, user_id: str, caller: tuple[str, str]) -> None:
    filled(conn_string, user_id)
    mine = (*caller, "--user", user_id, "--max-messages", "2")
    one = ("--agent", "billing", "--thread", "my trip")
    said = f"of the user {user_id}, with the agent billing, in the thread my trip."
    assert run("cleanup", *mine, *one, "--dry-run") == (0, f"4 messages of 1 conversation would be deleted, {said}\n")
    assert run("cleanup", *mine, *one, "--yes") == (0, f"4 messages of 1 conversation removed, {said}\n")
    assert run("cleanup", *mine, *one, "--yes") == (0, f"Nothing removed, {said}\n")
    assert run("cleanup", *mine, *one, "--dry-run") == (0, f"Nothing to delete, {said}\n")
    counts = {(agent, thread): 6 for agent in AGENTS for thread in ("one", "my trip")}
    assert left(conn_string, user_id) == counts | {("billing", "my trip"): 2}
    assert run("cleanup", *mine, "--agent", "support", "--yes")[1].startswith("8 messages of 2 conversations removed")
    assert run("cleanup", *mine, "--thread", "one", "--yes")[1].startswith("4 messages of 1 conversation removed")
    assert set(left(conn_string, user_id).values()) == {2}


def test_cleanup_counts_summaries_that_are_too_old(conn_string: str, user_id: str, caller: tuple[str, str]) -> None:
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, model=ExtractiveSummarizer()) as memory:
        conversation = memory.conversation("t")
        conversation.append([HumanMessage(f"I have {number} kilns. " * 50) for number in range(30)])
        conversation.summaries.make()
        made = len(conversation.summaries.list())
        assert made
        old = "update memory.conversation_summaries set created_at = created_at - interval '91 days' where user_id = %s"
        with psycopg.connect(conn_string) as connection:
            connection.execute(old, [user_id])
        arguments = ("cleanup", *caller, "--user", user_id, "--max-messages", "1000")
        summaries = f"{made} {'summary' if made == 1 else 'summaries'}"
        assert run(*arguments, "--dry-run") == (0, f"{summaries} would be deleted, of the user {user_id}.\n")
        assert len(conversation.summaries.list()) == made
        assert run(*arguments, "--yes") == (0, f"{summaries} removed, of the user {user_id}.\n")
        assert conversation.summaries.list() == []


def test_cleanup_says_that_all_users_are_meant(conn_string: str, user_id: str, caller: tuple[str, str]) -> None:
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory:
        # So old that no other test's messages are.
        memory.conversation("t").append([HumanMessage("old")], created_at=datetime.now(UTC) - timedelta(days=40_000))
    with Terminal("cleanup", *caller, "--max-age", str(24 * 39_000)) as terminal:
        terminal.until(r"Delete 1 message of 1 conversation, of all users\? \[y/N\] ")
        terminal.type("\n")
        assert terminal.end() == 1
        assert "Error: Nothing was deleted." in terminal.text
    assert left(conn_string, user_id) == {("default", "t"): 1}
    with Terminal("cleanup", *caller, "--max-age", str(24 * 39_000)) as terminal:
        terminal.until(r"\[y/N\] ")
        terminal.type("YES\n")
        assert terminal.end() == 0
        assert "1 message of 1 conversation removed, of all users." in terminal.text
    assert left(conn_string, user_id) == {("default", "t"): 0}


def test_what_is_no_limit_is_refused() -> None:
    for option, values in {
        "--max-age": ("nan", "0", "-1", "1e400", "soon"),
        "--max-turns": ("0", "99999999999"),
        "--max-messages": ("-1", "1.5"),
        "--every": ("nan", "0"),
    }.items():
        for value in values:
            assert f"Invalid value for '{option}'" in refused("cleanup", "--database-url", "x", option, value, "--yes")


def test_a_service_has_to_be_told_that_it_may(caller: tuple[str, str], user_id: str) -> None:
    assert "--every goes with --yes" in refused("cleanup", *caller, "--every", "5")
    assert "--every cannot apply" in refused("cleanup", *caller, "--every", "5", "--dry-run")
    with Terminal("cleanup", *caller, "--user", user_id, "--every", "5", "--yes") as terminal:
        terminal.until("Nothing removed, of the user")
        terminal.type("\x03")
        assert terminal.end() == 130


@pytest.mark.parametrize(
    ("command", "keys", "status"),
    [
        (["cleanup", "--max-turns", "1"], "\x03", 130),
        (["cleanup", "--max-turns", "1"], "yess\nno\n", 1),
        (["forget", "--thread", "one"], "\x04", 1),
        (["forget", "--thread", "one"], "n\n", 1),
        (["forget"], "\x03", 130),
        (["forget"], "\n", 1),
    ],
)
def test_whatever_is_no_yes_deletes_nothing(
    conn_string: str, user_id: str, caller: tuple[str, str], command: list[str], keys: str, status: int
) -> None:
    filled(conn_string, user_id)
    before = left(conn_string, user_id)
    with Terminal(*command, *caller, "--user", user_id, columns=40) as terminal:
        terminal.until(r"\[y/N\] |to do so: ")
        terminal.until_it_reads()
        terminal.type(keys)
        assert terminal.end() == status
        assert "Traceback" not in terminal.text
    assert left(conn_string, user_id) == before


def test_one_conversation_is_forgotten(conn_string: str, user_id: str, caller: tuple[str, str]) -> None:
    filled(conn_string, user_id)
    mine = ("forget", *caller, "--user", user_id)
    with Terminal(*mine, "--thread", "my trip", "--agent", "billing") as terminal:
        question = (
            r"Delete 1 conversation and 6 messages, of the user \S+, with the agent billing, in the thread my trip,"
        )
        terminal.until(question.replace(" ", r"\s+"))
        terminal.type("y\n")
        assert terminal.end() == 0
    assert ("billing", "my trip") not in left(conn_string, user_id)
    assert len(left(conn_string, user_id)) == 3
    assert run(*mine, "--thread", "one", "--yes") == (
        0, f"2 conversations and 12 messages deleted, of the user {user_id}, in the thread one.\n",
    )  # fmt: skip
    assert run(*mine, "--agent", "billing", "--yes")[1].startswith("Nothing deleted")
    assert run(*mine, "--agent", "support", "--yes")[1].startswith("1 conversation and 6 messages deleted")
    assert left(conn_string, user_id) == {}


@pytest.mark.parametrize("name", ["{} of Cebu", "{}\u202e\u200b", "שלום {}"])
def test_a_whole_user_is_named_before_it_goes(
    conn_string: str, user_id: str, caller: tuple[str, str], name: str
) -> None:
    name = name.format(user_id)
    shown = name.replace("\u202e\u200b", r"\u202e\u200b")
    with SupabaseMemory.from_conn_string(conn_string, user_id=name) as memory:
        memory.conversation("t").append([HumanMessage("hello")])
        memory.privacy.opt_out("divorce", actor="Maya")
        with Terminal("forget", *caller, "--user", name, columns=200) as terminal:
            terminal.until("Type the user's id, .*, to do so: ")
            assert shown in terminal.text
            terminal.type("yes\n")
            assert terminal.end() == 1
            assert "The name does not match. Nothing was deleted." in terminal.text
        assert memory.conversation("t").count() == 1
        with Terminal("forget", *caller, "--user", name, columns=200) as terminal:
            terminal.until("to do so: ")
            terminal.type(f"{shown}\n")
            assert terminal.end() == 0
            assert "1 conversation and 1 message deleted" in terminal.text
        assert memory.privacy.opt_outs() == []
        assert memory.conversation("t").work.status() is None


def test_of_a_user_whose_conversations_are_gone_the_rest_goes_too(
    conn_string: str, user_id: str, caller: tuple[str, str]
) -> None:
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory:
        memory.privacy.opt_out("divorce", actor="Maya")
        with Terminal("forget", *caller, "--user", user_id) as terminal:
            terminal.until("to do so: ")
            terminal.type(f"{user_id}\n")
            assert terminal.end() == 0
        assert memory.privacy.opt_outs() == []
    with Terminal("forget", *caller, "--user", user_id) as terminal:
        assert terminal.end() == 0
        assert f"Nothing is stored of the user {user_id}." in terminal.text


def test_ids_that_are_none_are_refused(caller: tuple[str, str], user_id: str) -> None:
    for option in ("--thread", "--agent", "--user"):
        for value in ("", "a\nb", "x" * 513):
            rest = () if option == "--user" else ("--user", user_id)
            assert f"{option[2:]}_id" in refused("forget", *caller, *rest, option, value, "--yes")
            assert f"{option[2:]}_id" in refused("cleanup", *caller, option, value, "--max-turns", "1", "--yes")


def test_ctrl_c_in_the_middle_of_a_cleanup_leaves_each_conversation_whole(
    conn_string: str, user_id: str, caller: tuple[str, str]
) -> None:
    """The first hundred are removed; one of the others is held by somebody, so that it waits there."""
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory:
        for number in range(150):
            memory.conversation(f"{number}").append([HumanMessage("q"), AIMessage("a"), HumanMessage("r")])
    with psycopg.connect(conn_string) as other:
        hold(other, user_id, 120)
        with Terminal("cleanup", *caller, "--user", user_id, "--max-messages", "1", "--yes") as terminal:
            terminal.until("Deleting … 200 messages of 100 conversations so far")
            terminal.type("\x03")
            assert terminal.end() == 130
            said = " ".join(terminal.text.split())
        assert "200 messages of 100 conversations removed before that. The rest is as it was" in said
        assert "Traceback" not in said
        counts = sorted(left(conn_string, user_id).values())
        assert counts == [1] * 100 + [3] * 50
    code, said = run("cleanup", *caller, "--user", user_id, "--max-messages", "1", "--yes")
    assert (code, "100 messages of 50 conversations removed" in said) == (0, True)


def test_ctrl_c_in_the_middle_of_forgetting_leaves_a_user_whole(
    conn_string: str, user_id: str, caller: tuple[str, str]
) -> None:
    filled(conn_string, user_id)
    waits = (
        "select true from pg_stat_activity where wait_event_type = 'Lock' and query ~ 'memory_forget' and datname = %s"
    )
    with psycopg.connect(conn_string, autocommit=True) as watch, psycopg.connect(conn_string) as other:
        hold(other, user_id, 2)
        with Terminal("forget", *caller, "--user", user_id, "--yes") as terminal:
            while not watch.execute(waits, [watch.info.dbname]).fetchone():
                assert terminal.process.poll() is None, terminal.text
            terminal.type("\x03")
            assert terminal.end() == 130
            said = " ".join(terminal.text.split())
            assert "Nothing deleted for certain." in said
            assert "Traceback" not in said
    assert set(left(conn_string, user_id).values()) == {6}
    assert len(left(conn_string, user_id)) == 4
