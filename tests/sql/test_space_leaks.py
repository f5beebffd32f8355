"""What comes out of a space, and for whom: seven principals, every table, every verb, over both doors.

The controls at the end break one rule each, and show that the probes notice it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import psycopg
import pytest

from langchain_supabase_memory.adapters.transports.response_shapes import SHAPES
from tests.converse import Caller, converse
from tests.each_case import each_case
from tests.services.data_api import DataApi, token
from tests.services.postgres import Cluster
from tests.spaces import Person, call, message

MEMBERS = {"manager": "ana", "contributor": "bo", "reader": "cy"}
OUTSIDERS = {"another space's manager": "dan", "stranger": "eve", "nobody": None, "forged subject": "the space"}
PRINCIPALS = {**MEMBERS, **OUTSIDERS}

TABLES = (
    "conversations", "conversation_messages", "message_blocks", "gone_messages", "superseded_messages",
    "conversation_summaries", "summary_embeddings", "working_memory_chunks", "chunk_postings", "chunk_embeddings",
    "chunk_ratings", "conversation_summary_boards", "conversation_board_items", "conversation_board_changes", "store_items",
    "store_vectors", "opt_outs", "opt_out_undos", "control_changes", "context_manifests", "spaces", "topics",
    "topic_stretches", "indexed_stretches", "topic_clusterings",
)  # fmt: skip
"""What a space owns, and its members read."""

PRIVATE = ("promotions", "memberships", "contributions", "invitations")
"""What nobody reads by the membership of a space."""

AT = {"thread_id": "studio"}
BY = {"by": "mallory"}
COMMIT = {"conversation_id": "{conversation}", "through": -1, "revision": 0, "to": 0, "message_ids": ["m1"]}
READS: dict[str, dict[str, Any]] = {
    "read": AT, "find": {"texts": ["e-47"]}, "count": AT, "conversations": {}, "unreadable": {}, "turns": AT,
    "context": {**AT, "recall": {"query": "thermocouple"}, "board": 10}, "manifests": AT, "prompt": {**AT, "messages": [[0, 9]]}, "due": {}, "pending": AT,
    "summaries": AT, "coverage": AT, "unembedded_summaries": {"model": "x"}, "recall_summaries": {"query": "kiln", "vector": [1.0, 0.0, 0.0], "model": "words"},
    "index_due": {}, "pending_chunks": AT, "recall": {"ask": {"query": "thermocouple"}}, "chunks": AT, "signals": AT, "pending_board": AT,
    "board": AT, "store": {"ops": [{"op": "search", "prefix": [], "limit": 9}, {"op": "list", "limit": 9}]},
    "opt_outs": {}, "control_changes": {}, "edits": AT, "export": {"conversations": [AT]}, "status": {}, "rollout": {},
    "comparisons": AT, "comparison_report": {}, "topics": {"hidden": True}, "topic_days": {}, "topic_stretches": {},
}  # fmt: skip
"""Verbs by which members read, each with all that one would have to guess."""

BY_A_SERVER: dict[str, dict[str, Any]] = {
    "reinstate": {**AT, "message_ids": ["b2"]}, "update": {**AT, "title": "Mine"}, "forget_expired": {"retention": {"messages": 1}},
    "set_aside": {**AT, "rows": [{"sequence": 1, "reason": "x"}]},
    "commit_summary": {**AT, **COMMIT, "content": "Obey.", "tokens": 2},
    "commit_parent": {**AT, "conversation_id": "{conversation}", "revision": 0, "level": 1, "parts": [], "content": "Obey.", "tokens": 2},
    "describe_summary": {**AT, "id": "{conversation}", "topics": [], "key_facts": [], "revision": 0},
    "fail_summary": {**AT, "error": "x"}, "edit_summary": {**AT, **BY, "action": "delete", "number": 1},
    "commit_chunks": {**AT, "conversation_id": "{conversation}", "through": -1, "revision": 0, "to": 0, "chunks": []},
    "fail_index": {**AT, "error": "x"}, "reembed": {**AT, "model": "x", "embeddings": []},
    "rate_chunk": {**AT, **BY, "chunk_id": "{conversation}", "importance": 1},
    "commit_board": {**AT, **COMMIT, "summary": "Obey.", "context_notes": "", "tokens": 2},
    "edit_board": {**AT, **BY, "action": "add", "kind": "fact", "text": "Obey.", "state": "current"},
    "store_sweep": {}, "store_reindex": {"model": "x", "dimensions": 3},
    "assign_topics": AT, "commit_topics": {"version": 0, "clusters": []},
    "edit_topic": {**BY, "topic_id": "{conversation}", "action": "rename", "name": "Mine"}, "forget_topic": {**BY, "topic_id": "{conversation}"},
    "opt_out": {**BY, "topic": "kiln"}, "opt_in": {**BY, "topic": "kiln"},
    "restore": {**AT, "edits": {}}, "import": {"conversations": []}, "request": AT,
    "compare": {**AT, "comparison": {"stage": "on", "old_messages": 1, "old_tokens": 1, "old_characters": 1, "old_ms": 1}},
}  # fmt: skip
"""Verbs that write, and that no member may call in a space."""

BY_ROLE: dict[str, dict[str, Any]] = {
    "append": {**AT, "messages": []}, "append_context": {**AT, "messages": []}, "forget": AT,
    "forget_message": {**AT, "message_id": "m1"},
}  # fmt: skip
"""Verbs by which members write; test_spaces.py has what each role may."""

ABOUT: dict[str, dict[str, Any]] = {
    "space": {}, "update_space": {"name": "Mine"}, "invite": {}, "set_member": {"member": "ana"}, "name_member": {"name": "Mine", "member": "ana"}, "forget_space": {},
    "create_space": {"name": "Mine"}, "spaces": {}, "join": {"token": "{guess}"}, "held": {},
    "contribute": {"thread_id": "quoted", "message_id": "q0", "quote": "We fire at nine.", "kind": "fact"},
    "withdraw": {"item_id": "{item}"},
}  # fmt: skip
"""Verbs about spaces."""

OF_A_PERSON: dict[str, dict[str, Any]] = {
    "profile": {}, "consents": {}, "consent": {"purpose": "tone", "allowed": True, "by": "ana"},
    "edit_profile": {"action": "remember", "item": {"kind": "fact", "value": "Mine."}},
    "usage": {}, "recent_packs": {}, "unread": {},
    "promote": {"target": "store", "items": []}, "withdrawn": {"target": "store"},
}  # fmt: skip
"""Verbs about what a space does not have."""

OF_NOBODY = {"schema", "limits", "embed_summaries"}
"""Verbs that are about no owner."""

WORDS = ("thermocouple", "E-47", "kiln")
"""What every conversation of the space is about."""


@dataclass(frozen=True)
class Place:
    """A database with spaces.

    Attributes:
        name: Its name.
        migrator: The address for the role that migrated it.
        session: The address for the role whose sessions act for users.
        space: The id of the space.
        conversation: The id of its longest conversation.
        item: The id of an item of its board that its contributor has contributed.
    """

    name: str
    migrator: str
    session: str
    space: str
    conversation: str
    item: str

    def arguments(self, verb: str) -> dict[str, Any]:
        """All that one would have to guess to call a verb on the space."""
        given = {**READS, **BY_A_SERVER, **BY_ROLE, **ABOUT, **OF_A_PERSON}[verb]
        guess = f"{self.space[6:]}.{'0' * 64}"
        text = json.dumps(given).replace("{conversation}", self.conversation).replace("{guess}", guess)
        text = text.replace("{item}", self.item)
        found: dict[str, Any] = json.loads(text)
        if verb in (
            "space",
            "update_space",
            "invite",
            "set_member",
            "name_member",
            "forget_space",
            "contribute",
            "withdraw",
        ):
            return found | {"space": self.space}
        return found if verb in ABOUT or verb == "rollout" else found | {"user_id": self.space}

    def subject(self, principal: str) -> str | None:
        return self.space if principal == "forged subject" else PRINCIPALS[principal]


class _FullError(Exception):
    """The space holds one of everything."""


class _Filling(Caller):
    """Calls for the space, until what follows would be about the profile of a person, or about spaces themselves."""

    def __call__(self, name: str, /, **arguments: Any) -> Any:
        if name == "profile":
            raise _FullError
        return super().__call__(name, **arguments)


@pytest.fixture(scope="module")
def place(cluster: Cluster, shared: str) -> Place:
    address = cluster.conn_string(shared)
    with psycopg.connect(address, autocommit=True) as connection:
        space = call(connection, "create_space", name="Studio", user_id="ana")["space_id"]
        call(connection, "create_space", name="Another", user_id="dan")
        for role in ("contributor", "reader"):
            call(connection, "set_member", space=space, member=MEMBERS[role], role=role)
        call(connection, "invite", space=space)
        with pytest.raises(_FullError):
            converse(_Filling(connection, space))
        long = [{"role": "user", "content": f"kiln {number}", "id": f"n{number}"} for number in range(1030)]
        call(connection, "append", thread_id="long", messages=long, user_id=space, author_id="ana")
        call(connection, "forget_message", thread_id="long", message_id="n1029", user_id=space)
        quoted = {"thread_id": "quoted", "user_id": "bo"}
        call(connection, "append", messages=message("We fire at nine.", "q0"), **quoted)
        given = {"message_id": "q0", "quote": "We fire at nine.", "kind": "fact", "space": space}
        item = call(connection, "contribute", **quoted, **given)["item_id"]
        # What the verbs have taken back, or keep for a minute.
        connection.execute(
            "insert into memory.chunk_ratings (user_id, conversation_id, from_sequence, to_sequence, part, importance, rated_by)"
            " select user_id, id, 0, 0, 7, 1, 'ana' from memory.conversations where user_id = %s limit 1",
            [space],
        )
        connection.execute(
            "insert into memory.summary_embeddings (user_id, conversation_id, level, number, model, dimensions, embedding)"
            " select user_id, conversation_id, level, number, 'words', 3, '[1,0,0]'"
            " from memory.conversation_summaries where user_id = %s limit 1",
            [space],
        )
        connection.execute("insert into memory.topics (user_id, words) values (%s, '{kiln}')", [space])
        connection.execute(
            "insert into memory.topic_stretches (user_id, conversation_id, stretch)"
            " select user_id, id, 0 from memory.conversations where user_id = %s on conflict do nothing",
            [space],
        )
        connection.execute(
            "insert into memory.indexed_stretches (user_id, conversation_id, stretch)"
            " select user_id, id, 0 from memory.conversations where user_id = %s on conflict do nothing",
            [space],
        )
        connection.execute("insert into memory.topic_clusterings (user_id) values (%s) on conflict do nothing", [space])
        connection.execute(
            "insert into memory.opt_outs (user_id, topic, folded, created_by) values (%s, 'x', 'x', 'ana')", [space]
        )
        connection.execute(
            "insert into memory.opt_out_undos (user_id, opt_out_id, conversation_id, rows, after)"
            " select o.user_id, o.id, c.id, '{}', '{}' from memory.opt_outs o join memory.conversations c using (user_id)"
            " where o.user_id = %s limit 1",
            [space],
        )
        [(conversation,)] = connection.execute(
            "select id::text from memory.conversations where user_id = %s and thread_id = 'studio'", [space]
        ).fetchall()
    return Place(shared, address, cluster.conn_string(shared, "authenticator"), space, conversation, item)


@pytest.fixture(scope="module")
def session(place: Place) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(place.session, autocommit=True) as connection:
        yield connection


@pytest.fixture(scope="module")
def api(cluster: Cluster, place: Place) -> Iterator[httpx.Client]:
    with DataApi(cluster, place.name) as served, httpx.Client(base_url=served.url, timeout=30) as client:
        yield client


@pytest.fixture
def breakable(place: Place) -> Iterator[psycopg.Connection[Any]]:
    """A connection of the migrator; what a test breaks over it is taken back."""
    with psycopg.connect(place.migrator) as connection:
        yield connection
        connection.rollback()


def rows_of_the_space(person: Person, space: str) -> dict[str, int]:
    """How many rows of the space somebody reads, by table."""
    counts = " union all ".join(
        f"select '{table}', count(*) from memory.{table} where"
        f" {'space_id' if table in ('memberships', 'contributions') else 'user_id'} = %s"
        for table in (*TABLES, *PRIVATE[:3])
    )
    found: dict[str, int] = dict(person.sql(counts, *[space] * (len(TABLES) + 3)))
    found["invitations"] = 0 if person.sql("select * from memory.invitations") == "42501" else 1
    found["work"] = person.sql("select count(*) from memory_private.work where user_id = %s", space)[0][0]
    return found


def state(place: Place) -> dict[str, str]:
    """A digest of everything that the space owns, of its members and its invitations."""
    digests = " union all ".join(
        f"select '{table}', md5(coalesce(string_agg(t::text, '' order by t::text), '')) from memory.{table} t"
        for table in (*TABLES, *PRIVATE)
    )
    with psycopg.connect(place.migrator) as connection:
        return dict(connection.execute(digests.encode()).fetchall())


def is_leak(answer: Any, place: Place) -> bool:
    text = json.dumps(answer, default=str)
    return any(each in text for each in (place.space, place.conversation, *WORDS))


def test_every_verb_is_tried() -> None:
    tried = [*READS, *BY_A_SERVER, *BY_ROLE, *ABOUT, *OF_A_PERSON, *OF_NOBODY]
    assert sorted(tried) == sorted(name[7:] for name in SHAPES if not name.startswith("memory_worker_"))


@each_case("principal", list(PRINCIPALS))
def test_members_read_what_the_space_owns_and_others_nothing(
    place: Place, session: psycopg.Connection[Any], principal: str
) -> None:
    found = rows_of_the_space(Person(session, place.subject(principal), keeps=False), place.space)
    own = principal in MEMBERS
    read = {table for table, count in found.items() if count} - {"contributions"}
    assert read == ({*TABLES, "work", "memberships"} if own else set())
    assert found["memberships"] == int(own), "one's own"
    assert found["contributions"] == int(principal == "contributor"), "one's own, and not a manager's"


@each_case("principal", list(PRINCIPALS))
@pytest.mark.parametrize("door", ["direct", "Data API"])
def test_no_verb_lets_out_what_is_not_theirs(
    place: Place, session: psycopg.Connection[Any], api: httpx.Client, door: str, principal: str
) -> None:
    before = state(place)
    subject = place.subject(principal)
    person = Person(session, subject, keeps=False)
    bearer = {"Authorization": f"Bearer {token(user_id=subject)}"}
    own = principal in MEMBERS
    for verb in [*READS, *BY_A_SERVER, *OF_A_PERSON, *([] if own else [*BY_ROLE, *ABOUT])]:
        arguments = place.arguments(verb)
        if door == "direct":
            answer = person.outcome(verb, **arguments)
        else:
            given = {f"p_{name}": value for name, value in arguments.items()}
            response = api.post(f"/rpc/memory_{verb}", json=given, headers=bearer)
            answer = response.json() if response.status_code == 200 else response.json()["code"]
        if verb in OF_A_PERSON:
            assert answer == "PT400", (verb, answer)
        elif own and verb in READS:
            assert not isinstance(answer, str), (verb, answer)
        elif own:
            assert answer == "PT403", (verb, answer)
        elif verb == "create_space":
            assert (
                "space_id" in answer
                if principal in ("stranger", "another space's manager")
                else answer in ("PT400", "PT403", "42501")
            )
        else:
            assert not is_leak(answer, place), (verb, answer)
            assert verb in ("rollout", "spaces", "held") or answer in ("42501", "PT400", "PT403", "PT404"), (
                verb,
                answer,
            )
    if door == "Data API" and not own:  # what they created of their own
        with psycopg.connect(place.migrator) as connection:
            connection.execute("delete from memory.spaces where name = 'Mine'")
            connection.execute(
                "delete from memory.memberships m where not exists (select from memory.spaces s where s.user_id = m.space_id)"
            )
    assert state(place) == before


@each_case("principal", list(PRINCIPALS))
def test_who_names_nobody_is_told_of_themselves(place: Place, session: psycopg.Connection[Any], principal: str) -> None:
    person = Person(session, place.subject(principal), keeps=False)
    for verb in READS:
        arguments = {name: value for name, value in place.arguments(verb).items() if name != "user_id"}
        assert not is_leak(person.outcome(verb, **arguments), place), verb


def test_members_share_a_space_over_the_data_api(place: Place, api: httpx.Client) -> None:
    def rpc(subject: str, verb: str, **arguments: Any) -> Any:
        given = {f"p_{name}": value for name, value in arguments.items()}
        bearer = {"Authorization": f"Bearer {token(user_id=subject)}"}
        response = api.post(f"/rpc/memory_{verb}", json=given, headers=bearer)
        return response.json() if response.status_code == 200 else response.status_code

    space = rpc("gil", "create_space", name="Shared")["space_id"]
    invitation = rpc("gil", "invite", space=space, role="contributor")["token"]
    assert rpc("hana", "join", token=invitation)["role"] == "contributor"
    said = {"thread_id": "t", "messages": message("Over HTTP", "m"), "user_id": space}
    assert rpc("hana", "append", **said)["appended"] == 1
    read = {"thread_id": "t", "user_id": space, "columns": ["text", "author_id"]}
    expected = {"sequence": 0, "text": "Over HTTP", "author_id": "hana"}
    assert rpc("gil", "read", **read)["messages"] == [expected]
    assert rpc("eve", "read", **read) == 404
    assert rpc("gil", "update", thread_id="t", title="Mine", user_id=space) == 403
    assert rpc("gil", "set_member", space=space, member="hana")["role"] is None
    assert rpc("hana", "read", **read) == 404
    assert rpc("hana", "forget_message", thread_id="t", message_id="m", user_id=space)["messages"] == 1
    assert rpc("gil", "forget_space", space=space)["members"] == 1


# Controls: the probes above have teeth


@contextmanager
def acting(connection: psycopg.Connection[Any], subject: str) -> Iterator[Person]:
    yield Person(connection, subject, keeps=False)


def test_without_the_restrictive_policy_a_forged_subject_reads_it_all(
    breakable: psycopg.Connection[Any], place: Place
) -> None:
    for table in TABLES:
        breakable.execute(f"drop policy {table}_no_space on memory.{table}".encode())
    breakable.execute("drop policy work_no_space on memory_private.work")
    forged = Person(breakable, place.space, keeps=False)
    assert not any(rows_of_the_space(forged, place.space).values()), "reads refuse it once more"
    everything = "delete from memory.conversations"
    assert forged.sql(everything) > 2, "writes compare with the subject alone"
    breakable.execute(
        "create or replace function memory_private.readable_owners() returns text[] language sql stable security definer"
        " set search_path = '' as $$ select array[auth.jwt() ->> 'sub'] $$"
    )
    found = rows_of_the_space(Person(breakable, place.space, keeps=False), place.space)
    assert {table for table, count in found.items() if count} == {*TABLES, "work"}
    assert is_leak(Person(breakable, place.space, keeps=False)("read", **place.arguments("read")), place)


def test_with_the_restrictive_policy_a_forged_subject_deletes_nothing(
    breakable: psycopg.Connection[Any], place: Place
) -> None:
    assert Person(breakable, place.space, keeps=False).sql("delete from memory.conversations") == 0


def test_whose_rows_are_readable_is_the_callers_alone(session: psycopg.Connection[Any], place: Place) -> None:
    """The function behind the policies, called by itself."""
    for principal in PRINCIPALS:
        found = Person(session, place.subject(principal), keeps=False).sql("select memory_private.readable_owners()")
        if isinstance(found, str):
            assert found == "42501", principal
            continue
        subject = place.subject(principal)
        assert (place.space in found[0][0]) == (principal in MEMBERS), principal
        assert set(found[0][0]) <= {subject} | {each for each in found[0][0] if each.startswith("space:")}
        if principal == "forged subject" or not subject:
            assert found[0][0] == []


def test_without_row_level_security_a_stranger_reads_it_all(breakable: psycopg.Connection[Any], place: Place) -> None:
    for table in TABLES:
        breakable.execute(f"alter table memory.{table} disable row level security".encode())
    stranger = Person(breakable, "eve", keeps=False)
    found = rows_of_the_space(stranger, place.space)
    assert {table for table, count in found.items() if count} == {*TABLES}
    leaking = {verb for verb in READS if is_leak(stranger.outcome(verb, **place.arguments(verb)), place)}
    assert leaking >= {"read", "find", "conversations", "context", "summaries", "recall", "chunks", "board", "export"}


def test_with_the_readers_policy_on_writes_a_reader_deletes_everything(
    breakable: psycopg.Connection[Any], place: Place
) -> None:
    """Why reads alone widen."""
    reader, everything = Person(breakable, "cy", keeps=False), "delete from memory.conversations where user_id = %s"
    assert reader.sql(everything, place.space) == 0
    [(readers,)] = breakable.execute(
        "select qual from pg_policies where policyname = 'conversations_select'"
    ).fetchall()
    breakable.execute(
        f"create policy all_of_it on memory.conversations for delete to authenticated using ({readers})".encode()
    )
    assert reader.sql(everything, place.space) > 2
