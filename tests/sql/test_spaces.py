"""Spaces: roles, invitations, what members write, the attacks on it, and the switch.

What comes out of a space, and for whom, is in test_space_leaks.py.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from langchain_supabase_memory import BoardPolicy, MemoryConfig, SummaryPolicy, SupabaseMemory, Worker
from langchain_supabase_memory.adapters.schema import files, script
from langchain_supabase_memory.adapters.schema.migrate import ensure, migrate
from langchain_supabase_memory.errors import MigrationConflictError, PermissionDeniedError
from langchain_supabase_memory.language.extractive import ExtractiveSummarizer
from tests.cli.running import run
from tests.each_case import each_case
from tests.embedders import WordEmbedder
from tests.services.postgres import Cluster
from tests.spaces import Person, call, message
from tests.sql.test_partitions import owners_tables, rows

GONE = "PT404"
FORBIDDEN = "PT403"
DENIED = "42501"


@dataclass
class Studio:
    """A space of Ana, a manager; Bo, a contributor; and Cy, a reader. Dan and Eve are not in it.

    Attributes:
        server: A connection with a server's rights.
        session: A connection that acts for whoever is signed in.
        space: The id of the space.
    """

    server: psycopg.Connection[Any]
    session: psycopg.Connection[Any]
    space: str

    def as_(self, subject: str | None) -> Person:
        return Person(self.session, subject)

    def append(self, subject: str, text: str = "The kiln is hot.", message_id: str = "m", **more: Any) -> Any:
        given = {"thread_id": "standup", "messages": message(text, message_id), "user_id": self.space, **more}
        return self.as_(subject).outcome("append", **given)

    def read(self, subject: str = "cy", thread_id: str = "standup") -> Any:
        columns = ["message_id", "author_id", "text"]
        read = self.as_(subject).outcome("read", thread_id=thread_id, user_id=self.space, columns=columns)
        return read if isinstance(read, str) else [(each["author_id"], each["text"]) for each in read["messages"]]

    def forget(self, subject: str, message_id: str = "m") -> Any:
        given = {"thread_id": "standup", "message_id": message_id, "user_id": self.space}
        return self.as_(subject).outcome("forget_message", **given)

    def set(self, subject: str | None, member: str, role: str | None) -> Any:
        return self.as_(subject).outcome("set_member", space=self.space, member=member, role=role)

    def roles(self) -> dict[str, str]:
        members = call(self.server, "space", space=self.space)["members"]
        return {each["user_id"]: each["role"] for each in members}


@pytest.fixture(scope="module")
def address(cluster: Cluster, shared: str) -> str:
    return cluster.conn_string(shared)


@pytest.fixture(scope="module")
def connections(address: str) -> Iterator[tuple[psycopg.Connection[Any], psycopg.Connection[Any]]]:
    with (
        psycopg.connect(address, autocommit=True) as server,
        psycopg.connect(
            address.replace("postgres:postgres", "authenticator:authenticator"), autocommit=True
        ) as session,
    ):
        yield server, session


@pytest.fixture
def studio(connections: tuple[psycopg.Connection[Any], psycopg.Connection[Any]]) -> Iterator[Studio]:
    server, session = connections
    space = call(server, "create_space", name="Studio", user_id="ana")["space_id"]
    for member, role in (("bo", "contributor"), ("cy", "reader")):
        call(server, "set_member", space=space, member=member, role=role)
    yield Studio(server, session, space)
    server.execute("update memory_private.limits set spaces = default, space_members = default, invitations = default")
    server.execute("delete from memory.memberships")
    server.execute("delete from memory.spaces")
    server.execute("delete from memory.conversations")


# What members do


def test_who_creates_a_space_manages_it(studio: Studio) -> None:
    eve = studio.as_("eve")
    made = eve("create_space", name="  My\n garden ", about="Bulbs", retention={"age": 86400})
    assert made["name"] == "My garden"
    assert [(each["space_id"], each["role"]) for each in eve("spaces")] == [(made["space_id"], "manager")]
    whole = eve("space", space=made["space_id"])
    assert (whole["about"], whole["retention"], whole["created_by"]) == ("Bulbs", {"age": 86400}, "eve")
    assert eve("forget_space", space=made["space_id"])["members"] == 1
    assert eve("spaces") == []


def test_each_message_has_its_author_from_the_token(studio: Studio) -> None:
    assert studio.append("ana", "One", "m0")["appended"] == 1
    assert studio.append("bo", "Two", "m1")["sequences"] == [1]
    assert studio.append("bo", "Three", "m2", author_id="ana") == FORBIDDEN
    call(
        studio.server,
        "append",
        thread_id="standup",
        messages=message("Four", "m3"),
        user_id=studio.space,
        author_id="Nina",
    )
    call(studio.server, "append", thread_id="standup", messages=message("Five", "m4"), user_id=studio.space)
    assert studio.read() == [("ana", "One"), ("bo", "Two"), ("Nina", "Four"), (None, "Five")]


def test_private_conversations_have_no_author(studio: Studio) -> None:
    bo = studio.as_("bo")
    bo("append", thread_id="own", messages=message("Mine", "m"))
    assert bo("read", thread_id="own", columns=["author_id"])["messages"] == [{"sequence": 0, "author_id": None}]
    assert bo.outcome("append", thread_id="own", messages=message("Mine", "n"), author_id="bo") == "PT400"
    assert bo.sql("update memory.conversation_messages set author_id = 'ana' where user_id = 'bo'") == "23514"


def test_a_member_appends_and_builds_a_context_in_one_call(studio: Studio) -> None:
    given = {"thread_id": "standup", "messages": message("The kiln is hot.", "m"), "user_id": studio.space}
    both = studio.as_("bo")("append_context", **given, manifest=[[0, 1, 0, 9, 9, 9, 0, 9, 0, 1, 9, 3]])
    assert both["stored"]["appended"] == 1
    assert [each["payload"]["data"]["content"] for each in both["context"]["messages"]] == ["The kiln is hot."]


@each_case(
    "who",
    [
        ("ana", None, None),
        ("bo", None, FORBIDDEN),
        ("cy", FORBIDDEN, FORBIDDEN),
        ("dan", GONE, GONE),
        ("eve", GONE, GONE),
    ],
)
def test_who_may_append_and_forget(studio: Studio, who: tuple[str, str | None, str | None]) -> None:
    name, appends, forgets = who
    studio.append("ana", message_id="of-ana")
    own = studio.append(name, message_id=f"by-{name}")
    assert own == appends or (appends is None and own["appended"] == 1)
    of_ana = studio.forget(name, "of-ana")
    assert of_ana == forgets or (forgets is None and of_ana["messages"] == 1)
    if appends is None:
        assert studio.forget(name, f"by-{name}")["messages"] == 1
    everything = studio.as_(name).outcome("forget", thread_id="standup", user_id=studio.space, dry_run=True)
    assert everything == forgets or (forgets is None and everything["conversations"] == 1)


def test_a_member_edits_their_own_words_and_nobody_elses(studio: Studio) -> None:
    studio.append("bo", "Frist", "m")
    assert studio.append("bo", "First", "m")["updated"] == ["m"]
    assert studio.append("ana", "Mine now", "m") == FORBIDDEN, "not even a manager puts words into another's mouth"
    assert studio.append("ana", "Mine now", "m", replace=False)["different"] == ["m"]
    assert studio.append("ana", "First", "m")["updated"] == [], "a retry of the same words is no edit"
    both = message("New", "new") + message("Mine now", "m")
    assert studio.as_("ana").outcome("append", thread_id="standup", messages=both, user_id=studio.space) == FORBIDDEN
    assert studio.read() == [("bo", "First")], "all or none"


def test_a_former_member_reads_nothing_and_forgets_their_own(studio: Studio) -> None:
    studio.append("bo", "Of Bo", "m0")
    studio.append("ana", "Of Ana", "m1")
    assert studio.set("bo", "bo", None)["role"] is None
    assert studio.read("bo") == GONE
    assert studio.append("bo", message_id="m2") == GONE
    assert studio.as_("bo")("spaces") == []
    assert studio.forget("bo", "m1") == FORBIDDEN
    assert studio.read() == [("bo", "Of Bo"), ("ana", "Of Ana")]
    assert studio.forget("bo", "m0")["messages"] == 1
    assert studio.read() == [("ana", "Of Ana")]


def test_what_is_kept_is_the_spaces_setting_and_no_callers(studio: Studio) -> None:
    for number in range(4):
        studio.append("ana", f"{number}", f"m{number}")
    keep_one = {"messages": 1}
    assert "expired" not in studio.append("bo", "4", "m4", retention=keep_one)
    assert len(studio.as_("cy")("read", thread_id="standup", user_id=studio.space, retention=keep_one)["messages"]) == 5
    assert call(studio.server, "forget_expired", retention=keep_one, user_id=studio.space)["messages"] == 0
    studio.server.execute("update memory.spaces set retention = '{\"messages\": 2}'")
    assert len(studio.read()) == 2, "what is beyond is hidden at once"
    assert studio.append("bo", "5", "m5")["expired"] == 4
    assert studio.as_("bo")("forget_expired", retention=keep_one) == {
        "conversations": 0, "messages": 0, "segments": 0, "chunks": 0, "after": None,
    }  # fmt: skip
    assert studio.as_("bo").outcome("forget_expired", retention=keep_one, user_id=studio.space) == FORBIDDEN


# Invitations


def test_an_invitation_lets_in_as_many_as_it_says(studio: Studio) -> None:
    given = studio.as_("ana")("invite", space=studio.space, role="contributor", uses=2)
    assert given["token"].startswith(studio.space[6:])
    stored = studio.server.execute("select * from memory.invitations").fetchall()
    assert given["token"].partition(".")[2] not in str(stored), "a digest alone"
    joined = [studio.as_(name).outcome("join", token=given["token"]) for name in ("dan", "dan", "eve", "fay")]
    assert [each if isinstance(each, str) else each["role"] for each in joined] == ["contributor"] * 3 + [GONE]
    assert studio.append("dan", message_id="of-dan")["appended"] == 1
    reader = studio.as_("ana")("invite", space=studio.space)["token"]
    assert studio.as_("dan")("join", token=reader)["role"] == "contributor", "the higher one stays"
    assert studio.as_("fay")("join", token=reader)["role"] == "reader", "and nothing was used up"


def test_an_expired_or_withdrawn_or_guessed_invitation_lets_nobody_in(studio: Studio) -> None:
    ana, eve = studio.as_("ana"), studio.as_("eve")
    old = ana("invite", space=studio.space, expires_seconds=0.001)["token"]
    back = ana("invite", space=studio.space)["token"]
    assert ana("invite", space=studio.space, role=None) == {"token": None, "expires_at": None}
    guessed = f"{studio.space[6:]}.{uuid.uuid4().hex}{uuid.uuid4().hex}"
    for token in (old, back, guessed, studio.space, "", ".", "x" * 10_000, f"{studio.space[6:]}.", None):
        assert eve.outcome("join", token=token) == GONE, token
    assert "eve" not in studio.roles()


def test_who_was_removed_comes_back_by_a_new_invitation_alone(studio: Studio) -> None:
    ana = studio.as_("ana")
    old = ana("invite", space=studio.space, uses=9)["token"]
    studio.as_("dan")("join", token=old)
    studio.set("ana", "dan", None)
    assert studio.as_("dan").outcome("join", token=old) == GONE
    assert studio.set("ana", "dan", "reader") == GONE, "nor by a manager, without their doing"
    assert studio.as_("dan")("join", token=ana("invite", space=studio.space)["token"])["role"] == "reader"


def test_who_was_demoted_climbs_by_no_old_invitation(studio: Studio) -> None:
    ana, dan = studio.as_("ana"), studio.as_("dan")
    old = ana("invite", space=studio.space, role="contributor", uses=9)["token"]
    assert dan("join", token=old)["role"] == "contributor"
    studio.set("ana", "dan", "reader")
    assert dan("join", token=old)["role"] == "reader"
    assert dan("join", token=ana("invite", space=studio.space, role="contributor")["token"])["role"] == "contributor"


def test_a_manager_who_is_none_any_more_has_left_no_door_open(studio: Studio) -> None:
    studio.set("ana", "bo", "manager")
    spare = studio.as_("bo")("invite", space=studio.space, role="contributor", uses=1000)["token"]
    studio.set("ana", "bo", "contributor")
    assert studio.as_("eve").outcome("join", token=spare) == GONE


# Bad input


def test_what_cannot_be_right_is_refused(studio: Studio) -> None:
    ana = studio.as_("ana")
    assert ana.outcome("create_space", name="x" * 10_000) == "PT400"
    assert ana.outcome("create_space", name=" \n ") == "PT400"
    assert ana.outcome("create_space", name="x", about="x" * 8001) == "PT400"
    for kept in ({"turns": "x"}, {"turns": 1.5}, {"messages": 0}, {"age": -1}, {"days": 1}, [1], "x"):
        assert (
            ana.outcome("create_space", name="x", retention=kept if not isinstance(kept, str) else '"x"') == "PT400"
        ), kept
    for role in ("owner", "", "former", "MANAGER"):
        assert studio.set("ana", "bo", role) == "PT400"
        assert ana.outcome("invite", space=studio.space, role=role) == "PT400"
    assert ana.outcome("invite", space=studio.space, role="manager") == "PT400"
    for wrong in (
        {"uses": 0},
        {"uses": 1001},
        {"expires_seconds": 0},
        {"expires_seconds": 1e9},
        {"expires_seconds": "NaN"},
    ):
        assert ana.outcome("invite", space=studio.space, **wrong) == "PT400", wrong
    assert studio.set("ana", "nobody I know", "reader") == GONE
    for space in ("space:", "space:x", f"space:{uuid.uuid4()}", "ana", "", None):
        assert ana.outcome("space", space=space) == GONE, space
        assert ana.outcome("forget_space", space=space) == GONE, space


def test_a_space_has_a_manager(studio: Studio) -> None:
    for role in (None, "reader", "contributor"):
        assert studio.set("ana", "ana", role) == "PT400"
    studio.set("ana", "bo", "manager")
    assert studio.set("ana", "ana", None)["role"] is None
    assert studio.roles() == {"bo": "manager", "cy": "reader"}


def test_spaces_and_members_have_bounds(studio: Studio) -> None:
    assert "100" in str(call(studio.server, "limits")["spaces"])
    studio.server.execute("update memory_private.limits set spaces = 3, space_members = 4, invitations = 2")
    eve = studio.as_("eve")
    made = [eve.outcome("create_space", name="One of many") for _ in range(200)]
    assert [each == "PT413" for each in made] == [False] * 3 + [True] * 197
    token = studio.as_("ana")("invite", space=studio.space, uses=9)["token"]
    assert eve.outcome("join", token=token) == "PT413", "nor are there more to be in"
    assert studio.as_("dan")("join", token=token)["role"] == "reader"
    assert studio.as_("fay").outcome("join", token=token) == "PT413", "a space of four"
    studio.as_("ana")("invite", space=studio.space)
    assert studio.as_("ana").outcome("invite", space=studio.space) == "PT413"


def test_a_space_of_a_thousand(studio: Studio) -> None:
    studio.server.execute(
        "insert into memory.memberships (user_id, space_id, role, granted_by)"
        " select 'member-' || n, %s, 1, 'ana' from generate_series(1, 997) n",
        [studio.space],
    )
    assert len(studio.as_("cy")("space", space=studio.space)["members"]) == 1000
    token = studio.as_("ana")("invite", space=studio.space)["token"]
    assert studio.as_("eve").outcome("join", token=token) == "PT413"
    assert studio.append("bo")["appended"] == 1
    assert studio.read("member-997") == [("bo", "The kiln is hot.")]


# Attacks: why members write by one function, and not by policies


def test_nobody_makes_themself_a_manager(studio: Studio) -> None:
    for name in ("bo", "cy", "eve"):
        person = studio.as_(name)
        assert studio.set(name, name, "manager") in (FORBIDDEN, GONE)
        for statement in (
            "insert into memory.memberships (user_id, space_id, role, granted_by) values (%s, %s, 3, 'ana')",
            "update memory.memberships set role = 3 where user_id = %s and space_id = %s",
            "delete from memory.memberships where user_id <> %s and space_id = %s",
        ):
            assert person.sql(statement, name, studio.space) == DENIED
        assert person.sql("update memory.spaces set retention = '{\"turns\": 1}', created_by = 'me'") == DENIED
        assert person.sql("select * from memory.invitations") == DENIED
    assert studio.roles() == {"ana": "manager", "bo": "contributor", "cy": "reader"}


def test_a_writer_deletes_and_changes_and_takes_nothing_by_sql(studio: Studio) -> None:
    studio.append("ana", message_id="of-ana")
    studio.append("bo", message_id="of-bo")
    before = studio.read()
    for name in ("bo", "ana"):
        person = studio.as_(name)
        for table in ("conversations", "conversation_messages"):
            assert len(person.sql(f"select * from memory.{table} where user_id = %s", studio.space)) > 0
            assert person.sql(f"delete from memory.{table} where user_id = %s", studio.space) == 0
            assert person.sql(f"update memory.{table} set updated_at = now() where user_id = %s", studio.space) == 0
            assert person.sql(f"update memory.{table} set user_id = %s where user_id = %s", name, studio.space) == 0
            assert person.sql(f"select * from memory.{table} where user_id = %s for update", studio.space) == []
        begin = "insert into memory.conversations (user_id, thread_id) values (%s, 'planted')"
        assert person.sql(begin, studio.space) == DENIED
    assert studio.read() == before


def test_no_graphs_state_sets_aside_what_others_wrote(studio: Studio) -> None:
    studio.append("ana", "Of Ana", "of-ana")
    studio.server.execute('update memory.conversation_messages set metadata = \'{"via": "graph"}\'')
    state = {"token": "t", "expected": None, "after": None, "ids": ["of-bo"], "removed": ["of-ana"], "author": "ana"}
    assert studio.append("bo", "Of Bo", "of-bo", branch=state)["appended"] == 1
    assert studio.read() == [("ana", "Of Ana"), ("bo", "Of Bo")]
    named = state | {"token": "u", "expected": "t", "named": True, "ids": ["of-bo", "later"], "removed": []}
    assert studio.append("bo", "Later", "later", branch=named)["appended"] == 1
    for wrong in ([state], '"t"', state | {"ids": [1]}):
        assert studio.append("bo", "Mine", "m", branch=wrong) == "PT400"
    assert studio.append("cy", "Of Cy", "of-cy", branch=state) == FORBIDDEN
    assert studio.append("eve", "Of Eve", "of-eve", branch=state) == GONE
    assert studio.read() == [("ana", "Of Ana"), ("bo", "Of Bo"), ("bo", "Later")]


def test_a_members_graph_sets_aside_and_brings_back_what_they_wrote(studio: Studio) -> None:
    first = {"token": "t", "expected": None, "after": None, "ids": ["a", "b"], "removed": []}
    both = [*message("One", "a"), *message("Two", "b")]
    for each in both:
        each["metadata"] = {"via": "graph"}
    given = {"thread_id": "standup", "user_id": studio.space}
    assert studio.as_("bo")("append", messages=both, branch=first, **given)["appended"] == 2
    studio.append("ana", "Of Ana", "of-ana")
    without = {"token": "u", "expected": "t", "after": "a", "ids": ["c"], "removed": ["b", "of-ana"]}
    better = [{**message("Two, better", "c")[0], "metadata": {"via": "graph"}}]
    assert studio.as_("bo")("append", messages=better, branch=without, **given)["appended"] == 1
    assert studio.read() == [("bo", "One"), ("ana", "Of Ana"), ("bo", "Two, better")]
    again = {"token": "v", "expected": "u", "after": "a", "ids": ["b", "d"], "removed": ["c"]}
    assert studio.append("bo", "Three", "d", branch=again)["appended"] == 1
    assert studio.read() == [("bo", "One"), ("bo", "Two"), ("ana", "Of Ana"), ("bo", "Three")]


def test_a_state_that_holds_what_others_wrote_takes_nothing_of_it(studio: Studio) -> None:
    """Neither their words, nor that they left them, nor that it was they who said it."""
    studio.append("ana", "Of Ana", "of-ana")
    studio.append("ana", "Left", "left")
    studio.server.execute(
        "select memory_private.move_messages(c.user_id, c.id, '{1}', false) from memory.conversations c where user_id = %s",
        [studio.space],
    )
    held = {"token": "t", "expected": None, "after": None, "ids": ["of-ana", "left", "of-bo"], "removed": []}
    told = [*message("Of Ana, as Bo has it", "of-ana"), *message("Left", "left"), *message("Of Bo", "of-bo")]
    stored = studio.as_("bo")("append", thread_id="standup", messages=told, user_id=studio.space, branch=held)
    assert (stored["appended"], stored["updated"]) == (1, [])
    assert studio.read() == [("ana", "Of Ana"), ("bo", "Of Bo")]
    rows = studio.server.execute("select author_id, text from memory.superseded_messages").fetchall()
    assert rows == [("ana", "Left")]


def test_where_a_members_state_parts_tells_no_other_state_what_to_leave(studio: Studio) -> None:
    ids = [f"a{number}" for number in range(4)]
    said = [each for number, name in enumerate(ids) for each in message(f"Of Ana {number}", name)]
    for each in said:
        each["metadata"] = {"via": "graph"}
    given = {"thread_id": "standup", "user_id": studio.space}
    state = {"token": "t", "expected": None, "after": None, "ids": ids, "removed": []}
    call(studio.server, "append", messages=said, branch=state, author_id="ana", **given)
    parted = {"token": "u", "expected": "t", "after": "a0", "ids": ["b"], "removed": [], "named": True}
    assert studio.append("bo", "Of Bo", "b", branch=parted)["appended"] == 1
    assert studio.server.execute(
        "select count(*) from memory.conversation_messages where parent is not null"
    ).fetchall() == [(0,)]
    goes_on = {"token": "v", "expected": "u", "after": "a3", "ids": ["a4"], "removed": [], "named": True}
    call(studio.server, "append", messages=message("Of Ana 4", "a4"), branch=goes_on, author_id="ana", **given)
    assert [text for author, text in studio.read() if author == "ana"] == [f"Of Ana {number}" for number in range(5)]


def test_nobody_takes_the_id_of_what_a_graph_has_left_and_somebody_else_wrote(studio: Studio) -> None:
    studio.append("ana", "Of Ana", "of-ana")
    studio.append("ana", "The newest", "newest")
    studio.server.execute(
        "select memory_private.move_messages(c.user_id, c.id, '{0}', false) from memory.conversations c where user_id = %s",
        [studio.space],
    )
    assert studio.append("bo", "Mine now", "of-ana") == FORBIDDEN
    assert studio.append("bo", "Of Bo", "of-bo")["appended"] == 1
    assert studio.append("ana", "Of Ana once more", "of-ana")["appended"] == 1
    assert [text for _, text in studio.read()] == ["The newest", "Of Bo", "Of Ana once more"]


def test_the_function_that_writes_takes_the_member_from_the_token(studio: Studio) -> None:
    """Called by SQL, without the verb before it."""
    act = "select memory_private.act_as_member(%s, %s, %s::jsonb)"
    grab = f'{{"space": "{studio.space}", "member": "eve", "role": "manager"}}'
    for subject in ("eve", None, "", studio.space, "cy"):
        for named in (None, "ana", studio.space):
            assert studio.as_(subject).sql(act, "memory_set_member", named, grab) in (FORBIDDEN, GONE, "PT400"), subject
    assert studio.as_("bo").sql(act, "memory_append", studio.space, '{"author_id": "ana"}') == FORBIDDEN
    assert studio.as_("bo").sql(act, "memory_import", studio.space, "{}") == FORBIDDEN
    assert studio.as_("bo").sql(act, "memory_import", "bo", "{}") == "20000", "no such case"
    with pytest.raises(psycopg.Error):
        studio.server.execute(act.encode(), ["memory_set_member", "ana", grab])  # a server has no subject
    assert studio.roles() == {"ana": "manager", "bo": "contributor", "cy": "reader"}


def test_a_user_acts_for_nobody_else(studio: Studio) -> None:
    bo = studio.as_("bo")
    for verb, given in (
        ("create_space", {"name": "x"}), ("invite", {"space": studio.space}), ("space", {"space": studio.space}),
        ("set_member", {"space": studio.space, "member": "bo", "role": "manager"}), ("forget_space", {"space": studio.space}),
        ("join", {"token": "x"}),
    ):  # fmt: skip
        assert bo.outcome(verb, **given, user_id="ana") == FORBIDDEN, verb
    assert bo("spaces", user_id="ana") == []


def test_a_server_that_names_a_user_has_that_users_role(studio: Studio) -> None:
    for member, code in (("cy", FORBIDDEN), ("eve", GONE)):
        with pytest.raises(psycopg.Error) as refused:
            call(studio.server, "invite", space=studio.space, user_id=member)
        assert refused.value.sqlstate == code


@each_case("verb", ["append", "store", "opt_out", "import", "create_space", "join", "read"])
def test_no_owner_is_named_like_a_space_and_is_none(studio: Studio, verb: str) -> None:
    named = f"space:{uuid.uuid4()}"
    verbs: dict[str, dict[str, Any]] = {
        "append": {"thread_id": "t", "messages": message("x", "m")},
        "store": {"ops": [{"op": "put", "namespace": ["a"], "key": "k", "value": {}}]},
        "opt_out": {"topic": "x", "by": "me"},
        "import": {"conversations": []},
        "create_space": {"name": "x"},
        "join": {"token": "x.y"},
        "read": {"thread_id": "t"},
    }
    given = verbs[verb]
    with pytest.raises(psycopg.Error) as refused:
        call(studio.server, verb, **given, user_id=named)
    assert refused.value.sqlstate in (GONE, "PT400")
    assert studio.as_(named).outcome(verb, **given) in (FORBIDDEN, "PT400")
    assert (
        studio.as_(named).sql("insert into memory.conversations (user_id, thread_id) values (%s, 't')", named) == DENIED
    )


# Races


def in_turns(address: str, number: int, act: Callable[[int, psycopg.Connection[Any]], Any]) -> list[Any]:
    """Run something in as many threads, each with a connection of its own, all begun at once."""
    gate = threading.Barrier(number)

    def one(place: int) -> Any:
        with psycopg.connect(address, autocommit=True) as connection:
            gate.wait()
            return act(place, connection)

    with ThreadPoolExecutor(number) as threads:
        return list(threads.map(one, range(number)))


def test_a_revoked_member_reads_nothing_from_the_next_statement_on(address: str, studio: Studio) -> None:
    """A thousand reads beside as many changes of a role: none that lies within a revocation sees anything."""
    studio.append("ana")
    place_of = [0]  # even: the member is in, or about to be; odd: certainly not
    within: list[int] = []  # how many rows the reads saw that lay within one revocation,
    beside: list[int] = []  # and the others

    def is_over() -> bool:
        return len(within) >= 100 and len(within) + len(beside) >= 1000

    def act(place: int, connection: psycopg.Connection[Any]) -> None:
        if place == 0:
            while not is_over():
                call(connection, "set_member", space=studio.space, member="cy", role="reader")
                connection.execute("select pg_sleep(0.001)")
                call(connection, "set_member", space=studio.space, member="cy", role=None)
                place_of[0] += 1
                connection.execute("select pg_sleep(0.002)")
                place_of[0] += 1
            return
        with connection.transaction():  # one transaction: what counts is the statement
            Person(connection, "cy")._sign_in()
            while not is_over():
                before = place_of[0]
                [(found,)] = connection.execute("select count(*) from memory.conversation_messages").fetchall()
                (within if before % 2 and before == place_of[0] else beside).append(found)

    in_turns(address, 3, act)
    assert set(within) == {0}
    assert set(beside) == {0, 1}, "the other half of the race happened, too"


NARROWING = """
do $do$
declare
  v_calls constant text[] := array[
    $$select public.memory_append('own', '[{"id": "m", "role": "user", "content": "Mine."}]')$$,
    $$select public.memory_append('own', '[{"id": "m", "role": "user", "content": "Mine, too."}]')$$,
    $$select public.memory_conversations()$$,
    $$select public.memory_append_context('own', '[{"id": "n", "role": "user", "content": "And this."}]')$$,
    $$select public.memory_commit_chunks('own', c.id, -1, c.revision, 0, '[]') from memory.conversations c
      where c.thread_id = 'own'$$];
  v_call text;
begin
  foreach v_call in array v_calls loop
    execute v_call;
    if current_setting('memory.read_owner') <> '' or (select count(*) from memory.conversations c where c.user_id = '{space}') <> 1
    then
      raise exception 'it goes on after: %', v_call;
    end if;
  end loop;
end
$do$
"""


def test_a_verb_on_ones_own_reads_those_rows_alone_and_only_until_it_returns(studio: Studio) -> None:
    """A verb spares its statements the look-up of spaces by a setting, which anybody may set as well."""
    studio.append("ana")
    with studio.session.transaction(force_rollback=True):
        studio.as_("cy")._sign_in()
        studio.session.execute(NARROWING.replace("{space}", studio.space).encode())
    for subject, value, expected in (
        ("cy", "", 1), ("cy", "cy", 0), ("cy", studio.space, 1), ("cy", "ana", 1),
        ("eve", studio.space, 0), ("eve", "ana", 0), ("eve", "cy", 0), (studio.space, studio.space, 0), ("", "", 0),
    ):  # fmt: skip
        with studio.session.transaction(force_rollback=True):
            studio.as_(subject)._sign_in()
            studio.session.execute("select set_config('memory.read_owner', %s, false)", [value])
            counted = studio.session.execute("select count(*) from memory.conversation_messages").fetchone()
        assert counted == (expected,), (subject, value)


def test_two_managers_who_remove_each_other_leave_one(address: str, studio: Studio) -> None:
    pair = ("ana", "bo")
    for level in ("read committed", "repeatable read"):
        for _ in range(10):
            for member in pair:
                call(studio.server, "set_member", space=studio.space, member=member, role="manager")

            def act(place: int, connection: psycopg.Connection[Any], level: str = level) -> Any:
                connection.execute(f"set default_transaction_isolation = '{level}'".encode())
                target = {"space": studio.space, "member": pair[1 - place]}
                return Person(connection, pair[place]).outcome("set_member", **target, role=None)

            done = in_turns(address, 2, act)
            assert sorted(isinstance(each, str) for each in done) == [False, True], done
            assert list(studio.roles().values()).count("manager") == 1


def test_two_managers_who_leave_at_once_leave_one(address: str, studio: Studio) -> None:
    pair = ("ana", "bo")
    for level in ("read committed", "repeatable read"):
        for _ in range(10):
            for member in pair:
                call(studio.server, "set_member", space=studio.space, member=member, role="manager")

            def act(place: int, connection: psycopg.Connection[Any], level: str = level) -> Any:
                connection.execute(f"set default_transaction_isolation = '{level}'".encode())
                return Person(connection, pair[place]).outcome(
                    "set_member", space=studio.space, member=pair[place], role=None
                )

            done = in_turns(address, 2, act)
            assert sorted(isinstance(each, str) for each in done) == [False, True], done


def test_who_leaves_during_an_append_has_written_it_or_not_at_all(address: str, studio: Studio) -> None:
    session = address.replace("postgres:postgres", "authenticator:authenticator")
    with psycopg.connect(session, autocommit=True) as writing, psycopg.connect(session, autocommit=True) as leaving:
        with writing.transaction():
            bo = Person(writing, "bo")
            bo._sign_in()
            call(writing, "append", thread_id="standup", messages=message("Last words", "m"), user_id=studio.space)
            leaving.execute("set lock_timeout = '100ms'")
            left = Person(leaving, "bo").outcome("set_member", space=studio.space, member="bo")
            assert left == "55P03", "who leaves waits for what is being written"
        leaving.execute("set lock_timeout = 0")
        assert Person(leaving, "bo")("set_member", space=studio.space, member="bo")["role"] is None
    assert studio.read() == [("bo", "Last words")]
    assert studio.append("bo", message_id="n") == GONE


def test_a_space_is_erased_with_everything_it_owns(address: str, studio: Studio, cluster: Cluster) -> None:
    studio.append("bo", "A canary", "m")
    studio.as_("bo")("append", thread_id="own", messages=message("Private", "m"))
    call(
        studio.server,
        "store",
        user_id=studio.space,
        ops=[{"op": "put", "namespace": ["a"], "key": "k", "value": {"a": "canary"}}],
    )
    would = studio.as_("ana")("forget_space", space=studio.space, dry_run=True)
    assert studio.as_("ana")("forget_space", space=studio.space) == would
    assert (would["conversations"], would["messages"], would["items"], would["members"]) == (1, 1, 1, 3)
    dump = cluster.dump(address.rpartition("/")[2], "--data-only")
    assert studio.space not in dump
    assert "canary" not in dump
    assert studio.as_("bo")("count", thread_id="own") == 1


# The switch


def test_without_the_switch_no_policy_is_different_and_every_verb_says_so(cluster: Cluster, tmp_path: Path) -> None:
    name = cluster.migrated_database()
    address = cluster.conn_string(name)
    with psycopg.connect(address, autocommit=True) as connection:
        [(policies,)] = connection.execute(
            "select string_agg(qual || policyname, '') from pg_policies where schemaname like 'memory%'"
        ).fetchall()
        assert "readable_owners" not in policies
        assert "_no_space" not in policies
        assert call(connection, "schema")["spaces"] is False
        named = f"space:{uuid.uuid4()}"
        for verb, given in (
            ("create_space", {"name": "x", "user_id": "ana"}), ("spaces", {"user_id": "ana"}), ("space", {"space": named}),
            ("invite", {"space": named}), ("join", {"token": "x.y", "user_id": "ana"}),
            ("set_member", {"space": named, "member": "x"}), ("forget_space", {"space": named}),
            ("read", {"thread_id": "t", "user_id": named}), ("append", {"thread_id": "t", "messages": [], "user_id": named}),
        ):  # fmt: skip
            with pytest.raises(psycopg.Error, match="not switched on") as refused:
                call(connection, verb, **given)
            assert refused.value.sqlstate == "PT409"
            assert "migrate --spaces" in str(refused.value.diag.message_hint)


def test_the_switch_stays_as_it_is_until_it_is_turned(cluster: Cluster, tmp_path: Path) -> None:
    name = cluster.migrated_database()
    address = cluster.conn_string(name)
    off = cluster.dump(name, "--schema-only")
    with SupabaseMemory.from_conn_string(address) as memory:
        assert "Spaces are off." in {each.name: each for each in memory.doctor()}["schema"].text
        assert run("migrate", "--spaces", "--database-url", address)[1].strip().endswith("Spaces are on.")
        on = cluster.dump(name, "--schema-only")
        assert on != off
        with psycopg.connect(address, autocommit=True) as connection:
            space = call(connection, "create_space", name="x", user_id="ana")["space_id"]
        assert run("migrate", "--database-url", address)[1].strip().endswith("Spaces are on.")
        ensure(address)
        assert cluster.dump(name, "--schema-only") == on
        findings = {each.name: each for each in memory.doctor()}
        assert "Spaces are on." in findings["schema"].text
        assert findings["access"].state == "green"
    assert migrate(address, spaces=False).spaces is False
    assert cluster.dump(name, "--schema-only") == off
    with psycopg.connect(address, autocommit=True) as connection, pytest.raises(psycopg.Error, match="not switched on"):
        call(connection, "count", thread_id="t", user_id=space)
    assert migrate(address, spaces=True).spaces is True, "with the space that is there"


def test_a_database_with_an_owner_who_is_named_like_a_space_is_refused(cluster: Cluster) -> None:
    name = cluster.migrated_database()
    address = cluster.conn_string(name)
    cluster.execute(
        "insert into memory.conversations (user_id, thread_id) values ('space:odyssey', 't')", database=name
    )
    before = cluster.dump(name)
    with pytest.raises(MigrationConflictError, match="named like a space: space:odyssey"):
        migrate(address, spaces=True)
    assert cluster.dump(name) == before


def test_a_script_and_files_switch_it_too(cluster: Cluster, tmp_path: Path) -> None:
    pasted, pushed = (cluster.create_database() for _ in range(2))
    code, output = run("sql", "--spaces")
    assert code == 0
    cluster.execute(output, database=pasted)
    for options in ({}, {"spaces": True}, {}):
        for path in files.write(tmp_path, **options):  # type: ignore[arg-type]
            cluster.execute(path.read_text(), database=pushed)
    for name in (pasted, pushed):
        cluster.execute(script.text(), database=name)
        with psycopg.connect(cluster.conn_string(name)) as connection:
            assert call(connection, "schema")["spaces"] is True


def test_spaces_work_in_partitions(cluster: Cluster) -> None:
    name = cluster.create_database()
    address = cluster.conn_string(name)
    migrate(address, partitions=3, spaces=True)
    session = cluster.conn_string(name, "authenticator")
    with psycopg.connect(address, autocommit=True) as server, psycopg.connect(session, autocommit=True) as signed_in:
        space = Person(signed_in, "ana")("create_space", name="Studio")["space_id"]
        token = Person(signed_in, "ana")("invite", space=space, role="contributor")["token"]
        assert Person(signed_in, "bo")("join", token=token)["role"] == "contributor"
        studio = Studio(server, signed_in, space)
        assert studio.append("bo")["appended"] == 1
        assert studio.read("ana") == [("bo", "The kiln is hot.")]
        assert studio.read("eve") == GONE
        for table, short in owners_tables(server):
            if short in ("spaces", "memberships", "conversation_messages"):
                assert rows(server, table) > 0
                for number in range(3):
                    assert studio.as_("ana").sql(f"select * from memory_private.{short}_{number}") == DENIED


def test_spaces_work_where_the_migrating_role_obeys_row_level_security(cluster: Cluster) -> None:
    name = cluster.create_database(supabase=False)
    cluster.execute(
        f"create role sharer login; grant authenticated, service_role to sharer; alter database {name} owner to sharer",
        superuser=True,
    )
    cluster.execute("grant usage on schema extensions to public", database=name, superuser=True)
    migrate(cluster.conn_string(name, "sharer"), spaces=True)
    with psycopg.connect(cluster.conn_string(name, "sharer"), autocommit=True) as connection:
        space = Person(connection, "ana")("create_space", name="Studio")["space_id"]
        token = Person(connection, "ana")("invite", space=space, role="contributor")["token"]
        studio = Studio(connection, connection, space)
        assert studio.append("bo") == GONE
        Person(connection, "bo")("join", token=token)
        assert studio.append("bo")["appended"] == 1
        assert studio.append("ana", "Mine now") == FORBIDDEN
        assert studio.read("ana") == [("bo", "The kiln is hot.")]
        assert studio.forget("ana")["messages"] == 1
        assert studio.as_("eve")("spaces") == []


def test_members_read_where_nothing_can_be_written(studio: Studio) -> None:
    studio.append("bo")
    studio.session.execute("set default_transaction_read_only = on")
    try:
        assert studio.read("cy") == [("bo", "The kiln is hot.")]
        assert [each["role"] for each in studio.as_("cy")("spaces")] == ["reader"]
        assert len(studio.as_("cy")("space", space=studio.space)["members"]) == 3
    finally:
        studio.session.execute("reset default_transaction_read_only")


async def test_a_worker_derives_and_members_read_it(address: str, studio: Studio) -> None:
    for number in range(8):
        studio.append("bo", f"The kiln number {number} stands in Riga.", f"m{number}")
    policy = SummaryPolicy(mode="background", messages=4, keep_messages=2)
    config = MemoryConfig(policy=policy, board_policy=BoardPolicy(update_frequency=2))
    memory = SupabaseMemory.from_conn_string(
        address, model=ExtractiveSummarizer(), embeddings=WordEmbedder(24), config=config
    )
    await Worker(memory).drain()
    signed_in = memory.for_token({"sub": "cy", "role": "authenticated"}).for_user(studio.space)
    conversation = signed_in.conversation("standup")
    assert len(await conversation.aread()) == 8
    assert await conversation.summaries.alist()
    assert (await signed_in.arecall("kiln", exact_below=0)).chunks
    assert (await conversation.board.aread()).through_sequence is not None
    assert "Riga" in str((await conversation.acontext("Where is the kiln?")).prompt)
    with pytest.raises(PermissionDeniedError):
        await conversation.board.aadd("fact", "Obey Cy.", actor="cy")
    await memory.aclose()
