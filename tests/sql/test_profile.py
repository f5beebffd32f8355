"""The profile in SQL: what holds when, what is refused, what becomes of it when what was said goes."""

from __future__ import annotations

import itertools
import json
import random
import threading
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import psycopg
import pytest

from tests.each_case import each_case
from tests.services.postgres import Cluster
from tests.spaces import Person, call

START = datetime(2026, 1, 1, tzinfo=UTC)
CANARY = "quilombozq"
_numbers = itertools.count()

_ADD = """
select memory_private.add_profile_items(c, %s, 'model') from memory.conversations c
where c.user_id = %s and c.agent_id = 'default' and c.thread_id = %s
"""


@dataclass
class Owner:
    """A user whose profile is read from their messages.

    Attributes:
        connection: A server's connection, with autocommit.
        user_id: Who they are.
    """

    connection: psycopg.Connection[Any]
    user_id: str

    def __call__(self, name: str, /, **arguments: Any) -> Any:
        return call(self.connection, name, user_id=self.user_id, **arguments)

    def say(self, text: str, thread: str = "t", at: datetime | None = None, **more: Any) -> int:
        """Append a message, and return its sequence."""
        message = {"id": f"m{next(_numbers)}", "role": "user", "content": text, **more}
        if at is not None:
            message["created_at"] = at.isoformat()
        (sequence,) = self("append", thread_id=thread, messages=[message])["sequences"]
        return int(sequence)

    def add(self, *items: dict[str, Any], thread: str = "t", connection: psycopg.Connection[Any] | None = None) -> int:
        """Add what a writer found in a conversation, and return how many items were taken."""
        asked = (connection or self.connection).execute(_ADD, [json.dumps(items), self.user_id, thread])
        return int(asked.fetchall()[0][0])

    def learn(self, value: str, thread: str = "t", at: datetime | None = None, **more: Any) -> str:
        """Say something and have it read. Returns the id of the message."""
        message_id = f"said-{next(_numbers)}"
        sequence = self.say(f"From now on {value}.", thread, at, id=message_id)
        self.add(item(value, sequence, **more), thread=thread)
        return message_id

    def items(self, **asked: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self("profile", **asked)["items"]
        return found

    def values(self, *states: str, at: datetime | None = None) -> list[str]:
        asked = {"at": at.isoformat()} if at else {"states": list(states or ("held",))}
        return sorted(each["value"] for each in self.items(**asked))

    def edit(self, action: str, **more: Any) -> Any:
        return self("edit_profile", action=action, by="ana", **more)

    def one(self, value: str, *states: str) -> dict[str, Any]:
        (found,) = [each for each in self.items(states=[*states] or None) if each["value"] == value]
        return found


def item(value: str, sequence: int, **more: Any) -> dict[str, Any]:
    """What a writer found: by default a lasting preference in one matter."""
    given = {"kind": "preference", "subject": "drink", "value": value, "durable": True, "sequence": sequence}
    return {**given, "quote": f"From now on {value}", **more}


@pytest.fixture(scope="module")
def name(shared: str) -> str:
    return shared


@pytest.fixture(scope="module")
def server(cluster: Cluster, name: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(cluster.conn_string(name), autocommit=True) as connection:
        yield connection


@pytest.fixture
def owner(server: psycopg.Connection[Any]) -> Owner:
    return Owner(server, f"owner-{next(_numbers)}")


def refused(act: Callable[[], Any]) -> str | None:
    try:
        act()
    except psycopg.Error as error:
        return error.sqlstate
    return None


# What holds when


def test_200_chains_hold_what_was_said_last_whatever_order_they_are_read_in(
    server: psycopg.Connection[Any],
) -> None:
    draw = random.Random(39)
    for number in range(200):
        owner = Owner(server, f"chain-{number}")
        values = [f"{place} {number}" for place in ("alpha", "bravo", "carol")]
        days = sorted(draw.sample(range(1, 300), 3))
        times = [START + timedelta(days=day, minutes=draw.randrange(600)) for day in days]
        threads = [draw.choice(["t", "u"]) for _ in values]
        # Imports come out of order, and are read in any order.
        order = draw.sample(range(3), 3)
        places = {which: owner.say(f"From now on {values[which]}.", threads[which], times[which]) for which in order}
        for which in draw.sample(range(3), 3):
            assert owner.add(item(values[which], places[which]), thread=threads[which]) == 1
        assert owner.values() == [values[2]], number
        for which, at in enumerate(times):
            assert owner.values(at=at - timedelta(seconds=1)) == values[which - 1 : which], (number, which)
            assert owner.values(at=at) == [values[which]], (number, which)
        told = owner.items(item_id=owner.one(values[2])["id"])
        dates = sorted((each["held_at"], each["ended_at"] or "") for each in told)
        assert [held for held, _ in dates][1:] == [ended for _, ended in dates][:-1]
        assert all(each["superseded_by"] for each in told if each["state"] == "superseded")


def test_any_order_of_reading_comes_to_the_same(server: psycopg.Connection[Any]) -> None:
    draw = random.Random(7)
    for number in range(25):
        said = [
            (draw.choice("abc"), draw.choice("tuv"), START + timedelta(days=draw.randrange(40)), draw.random())
            for _ in range(7)
        ]
        told = set()
        for attempt in range(4):
            owner = Owner(server, f"order-{number}-{attempt}")
            found = []
            for place, (value, thread, at, how) in enumerate(said):
                sequence = owner.say(f"From now on {value}.", thread, at + timedelta(seconds=place))
                found.append((thread, item(value, sequence, durable=how < 0.4, corrects=how > 0.85)))
            for thread, each in draw.sample(found, len(found)):
                owner.add(each, thread=thread)
            keys = ("value", "state", "basis", "held_at", "ended_at", "first_seen_at", "last_seen_at")
            states = ["held", "proposed", "superseded"]
            told.add(json.dumps(sorted([str(each[key]) for key in keys] for each in owner.items(states=states))))
        assert len(told) == 1, number


def test_before_the_first_message_nothing_holds(owner: Owner) -> None:
    owner.learn("tea", at=START)
    assert owner.values(at=START - timedelta(seconds=1)) == []
    assert owner.values(at=START) == ["tea"]


def test_what_is_said_once_is_proposed_and_in_two_conversations_held(owner: Owner) -> None:
    owner.learn("tea", at=START, durable=False)
    assert (owner.values(), owner.values("proposed")) == ([], ["tea"])
    assert owner.values(at=START + timedelta(days=1)) == []
    owner.learn("tea", at=START + timedelta(days=2), durable=False)
    assert owner.values() == [], "twice in one conversation"
    owner.learn("tea", "u", START + timedelta(days=3), durable=False)
    held = owner.one("tea")
    assert (held["state"], held["basis"], len(held["evidence"])) == ("held", "repeated", 3)
    assert owner.values(at=START + timedelta(days=2, hours=1)) == []
    assert owner.values(at=START + timedelta(days=3)) == ["tea"]


AUTHORITY = [
    # What holds, what comes, and whether it takes over.
    ("repeated", "stated", True),
    ("repeated", "corrected", True),
    ("repeated", "inferred", False),
    ("stated", "stated", True),
    ("stated", "repeated", False),
    ("stated", "corrected", True),
    ("corrected", "stated", True),
    ("corrected", "corrected", True),
    ("person", "stated", False),
    ("person", "corrected", True),
    ("person", "person", True),
    ("corrected", "person", True),
]


@each_case("case", AUTHORITY)
def test_the_order_of_authority(server: psycopg.Connection[Any], case: tuple[str, str, bool]) -> None:
    owner = Owner(server, f"owner-{next(_numbers)}")
    for which, basis in enumerate(case[:2]):
        value = ("tea", "milk")[which]
        if basis == "person":
            made = {"kind": "preference", "subject": "drink", "value": value}
            owner.edit("remember", item=made)
            continue
        # What a person writes is of today: what takes over from it is said after.
        day = datetime.now(UTC) + timedelta(hours=which) if case[0] == "person" else START + timedelta(days=which)
        how = {"durable": basis == "stated", "corrects": basis == "corrected"}
        owner.learn(value, f"t{which}", day, **how)
        if basis == "repeated":
            owner.learn(value, f"u{which}", day + timedelta(minutes=1), **how)
    assert owner.values() == [("tea", "milk")[case[2]]]
    if not case[2]:
        assert owner.values("proposed") == ["milk"]


def test_the_opposite_every_day(owner: Owner) -> None:
    for day in range(210):
        owner.learn("tea", at=START + timedelta(days=day), polarity=(-1) ** day)
    held = owner.one("tea", "held")
    assert held["polarity"] == -1
    assert datetime.fromisoformat(held["held_at"]) == START + timedelta(days=209)
    (row,) = owner.connection.execute(
        "select count(*) from memory.profile_items where user_id = %s", [owner.user_id]
    ).fetchall()
    assert row[0] == 201, "the oldest values are let go"
    (then,) = owner.items(at=(START + timedelta(days=200, hours=1)).isoformat())
    assert then["polarity"] == 1


def test_other_kinds_conditions_and_agents_are_other_matters(owner: Owner) -> None:
    owner.learn("tea")
    owner.learn("milk", condition="when ill")
    owner.learn("water", kind="instruction")
    owner.edit("remember", item={"kind": "preference", "subject": "drink", "value": "cola", "agent_id": "bot"})
    assert owner.values() == ["cola", "milk", "tea", "water"]
    assert sorted(each["value"] for each in owner.items(agent_id="other")) == ["milk", "tea", "water"]
    assert owner.items()[0]["value"] == "water", "instructions come first"
    owner.edit("pin", id=owner.one("tea")["id"])
    assert owner.items()[0]["value"] == "tea", "and what is pinned before them"


def test_a_clock_that_is_wrong_decides_nothing_for_good(owner: Owner) -> None:
    owner.learn("tea", at=START + timedelta(days=10_000))
    assert owner.values() == ["tea"]
    owner.edit("remember", item={"kind": "preference", "subject": "drink", "value": "milk"})
    assert owner.values() == ["milk"]
    # It was set back since: what a person does comes after all that there is.
    owner.connection.execute(
        "update memory.profile_items set last_seen_at = now() + interval '1 day', confirmed_at = now() + interval '1 day'"
        " where user_id = %s and value = 'milk'",
        [owner.user_id],
    )
    owner.edit("remember", item={"kind": "preference", "subject": "drink", "value": "cola"})
    assert owner.values() == ["cola"]
    owner.learn("water", at=START, corrects=True)
    assert owner.values() == ["cola"], "it was said before"


# What is refused


@each_case(
    "given",
    [
        {"quote": "From now on wine"},
        {"quote": ""},
        {"quote": None},
        {"sequence": 99},
        {"sequence": 1},
        {"sequence": 2},
        {"kind": "secret"},
        {"value": " "},
        {"value": "x" * 2001},
        {"polarity": 2},
        {"polarity": "x"},
        {"subject": "s" * 1001},
        {"condition": "c" * 1001},
    ],
)
def test_an_item_without_own_words_is_refused_alone(server: psycopg.Connection[Any], given: dict[str, Any]) -> None:
    owner = Owner(server, f"owner-{next(_numbers)}")
    owner.say("From now on tea. From now on milk.")
    owner.say("From now on tea", role="assistant")
    owner.say("From now on tea", role="tool", tool_call_id="c")
    assert owner.add({**item("tea", 0), **given}, item("milk", 0, subject="food")) == 1
    assert owner.values() == ["milk"]


def test_another_speaker_says_nothing_of_the_owner(owner: Owner) -> None:
    owner.say("From now on tea.", name="Ben")
    owner.say("From now on milk.")
    assert owner.add(item("tea", 0), item("milk", 1)) == 1
    assert owner.values() == ["milk"]


def test_a_quote_is_stored_as_it_stands(owner: Owner) -> None:
    owner.say("Well: From now  on «Tea».")
    assert owner.add(item("tea", 0, quote='from NOW on "tea"')) == 1
    (evidence,) = owner.one("tea")["evidence"]
    assert evidence["quote"] == "From now  on «Tea»"


def test_a_space_has_no_profile(owner: Owner) -> None:
    space = call(owner.connection, "create_space", name="Studio", user_id=owner.user_id)["space_id"]
    verbs: list[tuple[str, dict[str, Any]]] = [
        ("profile", {}),
        ("consents", {}),
        ("consent", {"purpose": "profile", "allowed": True, "by": "x"}),
        ("edit_profile", {"action": "remember", "item": {"kind": "fact", "value": "tea"}}),
    ]
    for name, arguments in verbs:
        assert refused(partial(call, owner.connection, name, user_id=space, **arguments)) == "PT400"
    shared = Owner(owner.connection, space)
    shared.say("From now on tea.", "plan")
    assert shared.add(item("tea", 0), thread="plan") == 0


@each_case(
    "given",
    [
        ({"action": "remember"}, "PT400"),
        ({"action": "remember", "item": {"kind": "fact"}}, "PT400"),
        ({"action": "remember", "item": {"kind": "secret", "value": "x"}}, "PT400"),
        ({"action": "remember", "item": {"kind": "fact", "value": "x" * 2001}}, "PT400"),
        ({"action": "remember", "item": {"kind": "fact", "value": "x"}, "by": ""}, "PT400"),
        ({"action": "remember", "item": {"kind": "fact", "value": "x"}, "author_kind": "rule"}, "PT400"),
        ({"action": "burn"}, "PT400"),
        ({"action": None}, "PT400"),
        ({"action": "delete"}, "PT404"),
        ({"action": "confirm", "id": "00000000-0000-4000-8000-000000000000"}, "PT404"),
    ],
)
def test_edits_that_are_refused(owner: Owner, given: tuple[dict[str, Any], str]) -> None:
    assert refused(lambda: owner("edit_profile", **given[0])) == given[1]


def test_a_full_profile_takes_no_more(owner: Owner) -> None:
    owner.connection.execute(
        "insert into memory.profile_items (user_id, kind, subject, value, chain, digest, basis, state, author, author_kind,"
        " first_seen_at, last_seen_at, held_at, confirmed_at, confirmed_by)"
        " select %s, 'fact', 'number ' || n, n, md5('chain ' || n), md5(n::text), 'person', 'held', 'a', 'person', now(),"
        " now(), now(), now(), 'a' from generate_series(1, 10000) n",
        [owner.user_id],
    )
    assert refused(lambda: owner.edit("remember", item={"kind": "fact", "value": "tea"})) == "PT413"
    owner.say("From now on tea.")
    assert owner.add(item("tea", 0)) == 0
    seen, after = set(), None
    while True:
        page = owner("profile", limit=500, after=after)
        seen |= {each["id"] for each in page["items"]}
        after = page["after"]
        if after is None:
            break
    assert len(seen) == 10_000
    owner.edit("delete", id=page["items"][-1]["id"])
    assert owner("forget", everything=True)["profile"] == 9_999


# What a person does


def test_a_person_confirms_corrects_and_looks_back(owner: Owner) -> None:
    owner.learn("tea", at=START, durable=False)
    owner.edit("confirm", id=owner.one("tea")["id"])
    held = owner.one("tea")
    assert (held["state"], held["basis"], held["confirmed_by"]) == ("held", "person", "ana")
    owner.edit("pin", id=held["id"])
    made = owner.edit("correct", id=held["id"], item={"value": "milk"})
    assert made["is_new"]
    assert owner.values() == ["milk"]
    assert owner.one("milk")["pinned"]
    past = owner.one("tea", "superseded")
    assert (past["superseded_by"], past["ended_at"]) == (made["item_id"], owner.one("milk")["held_at"])
    again = owner.edit("confirm", id=past["id"])
    assert owner.one("tea")["id"] == again["item_id"] != past["id"]
    assert [each["state"] for each in owner.items(item_id=past["id"])].count("superseded") == 2
    assert not owner.edit("confirm", id=again["item_id"])["is_new"]


@pytest.mark.parametrize("is_read_first", [True, False])
def test_what_a_board_supersedes_holds_no_more(owner: Owner, is_read_first: bool) -> None:
    """Both dates are those of the messages, in whichever order board and profile are read."""
    found = {"subject": "job", "kind": "fact"}
    owner.say("From now on nurse.", at=START)
    owner.say("I left the ward.", at=START + timedelta(days=2), id="left")
    owner.say("So you train medics now.", at=START + timedelta(days=3), role="assistant")
    if is_read_first:
        owner.add(item("nurse", 0, **found))
    fact = {"kind": "fact", "state": "current"}
    old = {**fact, "id": str(uuid.uuid4()), "text": "They are a nurse.", "quote": "From now on nurse.", "sequence": 0}
    told = {**fact, "text": "They train medics.", "quote": "So you train medics now.", "sequence": 2}
    own = {**fact, "text": "They left the ward.", "quote": "I left the ward.", "sequence": 1, "replaces": old["id"]}
    revise(owner, [old, {**told, "replaces": old["id"]}])
    if is_read_first:
        assert owner.values() == ["nurse"], "an assistant's word ends nothing"
    owner.connection.execute(
        "update memory.conversation_board_items set superseded_at = null, superseded_by = null where user_id = %s",
        [owner.user_id],
    )
    revise(owner, [own])
    if not is_read_first:
        owner.add(item("nurse", 0, **found))
        revise(owner, [])
    assert owner.values("held", "proposed") == []
    ended = owner.one("nurse", "superseded")
    times = [None if ended[name] is None else datetime.fromisoformat(ended[name]) for name in ("held_at", "ended_at")]
    assert times == [START, START + timedelta(days=2)]
    assert ended["superseded_by"] is None
    assert owner.values(at=START + timedelta(days=1)) == ["nurse"]
    assert owner.values(at=START + timedelta(days=2)) == []
    # It moves so, and without the words that contradict it, it holds again.
    exported = owner("profile", states=["superseded"])["items"]
    assert exported[0]["evidence"][0]["contradicted_at"] == ended["ended_at"]
    owner.connection.execute(
        "select memory_private.delete_board_evidence(c.user_id, c.id, null, 'left') "
        "from memory.conversations c where c.user_id = %s",
        [owner.user_id],
    )
    assert owner.values() == ["nurse"]


def test_no_board_ends_what_a_person_confirmed_or_what_is_said_again(owner: Owner) -> None:
    owner.learn("nurse", at=START, subject="job")
    owner.learn("tea", at=START, subject="drink")
    owner.say("I left the ward, and tea.", at=START + timedelta(days=2))
    fact = {"kind": "fact", "state": "current"}
    for number, word in enumerate(("nurse", "tea")):
        quote = f"From now on {word}."
        old = {**fact, "id": str(uuid.uuid4()), "text": word, "quote": quote, "sequence": number}
        new = {**fact, "text": f"no {word}", "quote": "I left the ward, and tea.", "sequence": 2, "replaces": old["id"]}
        revise(owner, [old, new])
    assert owner.values() == []
    owner.edit("confirm", id=owner.one("nurse", "superseded")["id"])
    owner.learn("tea", "u", at=START + timedelta(days=3), subject="drink")
    revise(owner, [])
    assert owner.values() == ["nurse", "tea"]


def test_the_doctor_counts_what_holds_and_finds_what_is_not_settled(server: psycopg.Connection[Any]) -> None:
    def sampled() -> dict[str, int]:
        (found,) = server.execute("select memory_private.sample_profile()").fetchall()[0]
        return dict(found)

    server.execute("truncate memory.profile_items cascade")  # so small a table is sampled whole
    assert sampled() == {"items": 0, "held": 0, "proposed": 0, "suggested": 0, "unsettled": 0}
    owner = Owner(server, "doctor")
    owner.learn("tea")
    owner.learn("clay", subject="hobby", durable=False)
    owner.edit("remember", item={"kind": "fact", "value": "cola"}, author_kind="model")
    assert sampled() == {"items": 3, "held": 1, "proposed": 2, "suggested": 1, "unsettled": 0}
    server.execute("alter table memory.profile_evidence disable trigger user")
    server.execute("delete from memory.profile_evidence where user_id = 'doctor'")
    server.execute("alter table memory.profile_evidence enable trigger user")
    assert sampled()["unsettled"] == 2
    server.execute("delete from memory.profile_items where user_id = 'doctor'")


def revise(owner: Owner, items: list[dict[str, Any]]) -> None:
    """Commit items to a conversation's board, read from all of its messages."""
    with owner.connection.transaction():
        owner.connection.execute(
            "select memory_private.add_board_items(c, %s, -1, 1000, %s, '{}', 'model'), "
            "memory_private.note_contradictions(c.user_id, c.id) "
            "from memory.conversations c where c.user_id = %s and c.thread_id = 't'",
            [1000 + next(_numbers), json.dumps(items), owner.user_id],
        )


def test_what_a_model_suggests_waits_for_the_person(owner: Owner) -> None:
    given = {"kind": "preference", "subject": "drink"}
    first = owner.edit("remember", item={**given, "value": "cola"}, author_kind="model")
    assert first["is_new"]
    assert owner.values() == []
    assert owner.one("cola")["state"] == "proposed"
    # A settle of the same matter keeps it, also when evidence comes and goes.
    message = owner.learn("tea", "c", durable=False)
    assert owner.values("proposed") == ["cola", "tea"]
    forget_message(owner, message)
    assert owner.values("proposed") == ["cola"]
    assert owner.edit("remember", item={**given, "value": "cola"}, author_kind="model") == {**first, "is_new": False}
    for action in ("confirm", "correct", "delete", "pin"):
        assert refused(lambda: owner.edit(action, id=first["item_id"], author_kind="model")) == "PT400"  # noqa: B023
    owner.edit("confirm", id=first["item_id"])
    assert owner.values() == ["cola"]
    assert owner.one("cola")["suggested_at"] < owner.one("cola")["confirmed_at"]
    # What holds stays, whatever a model says; what the person says settles what was suggested.
    owner.edit("remember", item={**given, "value": "milk"}, author_kind="model")
    assert (owner.values(), owner.values("proposed")) == (["cola"], ["milk"])
    owner.edit("remember", item={**given, "value": "water"})
    assert (owner.values(), owner.values("proposed")) == (["water"], [])
    again = owner.edit("remember", item={**given, "value": "milk"}, author_kind="model")
    assert again["is_new"]
    assert (owner.values(), owner.values("proposed")) == (["water"], ["milk"])
    owner.edit("delete", id=again["item_id"])
    assert refused(lambda: owner.edit("remember", item={**given, "value": "milk"}, author_kind="model")) == "PT400"
    assert owner.values("held", "proposed") == ["water"]


def test_a_suggestion_moves_as_one(owner: Owner, server: psycopg.Connection[Any]) -> None:
    owner.edit("remember", item={"kind": "fact", "value": "suggested"}, author_kind="model")
    owner.edit("remember", item={"kind": "fact", "value": "confirmed"}, author_kind="model")
    owner.edit("confirm", id=owner.one("confirmed")["id"])
    exported = owner("profile", states=["held", "proposed", "superseded", "deleted"])["items"]
    other = Owner(server, f"{owner.user_id}-moved")
    for _ in range(2):
        other("restore", edits={"profile": exported})
        assert (other.values(), other.values("proposed")) == (["confirmed"], ["suggested"])
    for name in ("suggested_at", "confirmed_at", "confirmed_by", "author_kind", "held_at"):
        for value in ("suggested", "confirmed"):
            assert other.one(value)[name] == owner.one(value)[name], (name, value)


def test_what_was_deleted_comes_back_from_no_conversation(owner: Owner) -> None:
    owner.learn("tea", at=START)
    owner.learn("milk", at=START + timedelta(days=1))
    owner.edit("delete", id=owner.one("milk")["id"])
    assert owner.values() == [], "nor does what it had superseded hold again"
    for number in range(1000):
        kind = ("preference", "fact")[number % 2]
        owner.learn(" Milk" if number % 3 else "milk!", f"t{number % 5}", kind=kind, corrects=True)
    assert owner.values("held", "proposed", "superseded") == ["tea"]
    owner.learn("cola")
    assert owner.values() == ["cola"]
    owner.edit("remember", item={"kind": "preference", "subject": "drink", "value": "milk"})
    assert owner.values() == ["milk"]
    owner.learn("milk", "u")
    assert len(owner.one("milk")["evidence"]) == 1


def test_somebody_edits_while_a_worker_writes(owner: Owner, cluster: Cluster, name: str) -> None:
    places = [owner.say(f"From now on tea {number}.", f"t{number % 3}") for number in range(60)]
    errors: list[BaseException] = []

    def work() -> None:
        try:
            with psycopg.connect(cluster.conn_string(name), autocommit=True) as mine:
                for number, sequence in enumerate(places):
                    owner.add(item(f"tea {number}", sequence), thread=f"t{number % 3}", connection=mine)
        except BaseException as error:
            errors.append(error)

    with psycopg.connect(cluster.conn_string(name), autocommit=True) as other:
        person = Owner(other, owner.user_id)
        worker = threading.Thread(target=work)
        worker.start()
        for number in range(60):
            made = person.edit("remember", item={"kind": "preference", "subject": "drink", "value": f"mine {number}"})
            if number % 3 == 0:
                person.edit("delete", id=made["item_id"])
        person.edit("remember", item={"kind": "preference", "subject": "drink", "value": "mine"})
        worker.join()
    assert not errors
    assert owner.values() == ["mine"]
    (count,) = owner.connection.execute(
        "select count(*) from memory.profile_items where user_id = %s and state = 'held'", [owner.user_id]
    ).fetchall()
    assert count[0] == 1


# Consent, opt-outs and erasure


def test_consent(owner: Owner) -> None:
    owner.learn("tea")
    assert owner("consent", purpose="profile", allowed=False, by="ana") == {"changed": True, "profile": 1, "topics": 0}
    assert owner.values("held", "proposed", "superseded") == []
    owner.learn("milk")
    assert owner.values() == []
    remember = {"item": {"kind": "fact", "value": "tea"}}
    assert refused(lambda: owner.edit("remember", **remember)) == "PT400"
    assert owner("consent", purpose="profile", allowed=True, by="ana")["changed"]
    assert not owner("consent", purpose="tone", allowed=False, by="ben")["profile"]
    assert [(each["purpose"], each["allowed"], each["by"]) for each in owner("consents")] == [
        ("profile", True, "ana"),
        ("tone", False, "ben"),
    ]
    owner.learn("milk")
    assert owner.values() == ["milk"]
    assert refused(lambda: owner("consent", purpose="war", allowed=True, by="ana")) == "23514"
    assert refused(lambda: owner("consent", purpose="tone", allowed=None, by="ana")) == "PT400"


def forget_message(owner: Owner, message_id: str) -> Any:
    assert owner("forget_message", thread_id="c", message_id=message_id, dry_run=True)["profile"] == 1
    assert owner("forget_message", thread_id="c", message_id=message_id)["profile"] == 1
    return None


def edit_message(owner: Owner, message_id: str) -> Any:
    return owner("append", thread_id="c", messages=[{"id": message_id, "role": "user", "content": "Never mind."}])


def redact_message(owner: Owner, message_id: str) -> Any:
    said = {"id": message_id, "role": "user", "content": "From now on [REDACTED]."}
    return owner("append", thread_id="c", messages=[said])


def delete_conversation_row(owner: Owner, _: str) -> Any:
    owner.connection.execute("delete from memory.conversations where user_id = %s and thread_id = 'c'", [owner.user_id])


def forget_conversation(owner: Owner, _: str) -> Any:
    assert owner("forget", thread_id="c", dry_run=True)["profile"] == 1
    assert owner("forget", thread_id="c")["profile"] == 1


def expire(owner: Owner, _: str) -> Any:
    return owner("forget_expired", retention={"age": 1}, thread_id="c")


def expire_by_append(owner: Owner, _: str) -> Any:
    later = {"id": "later", "role": "user", "content": "Hello"}
    return owner("append", thread_id="c", messages=[later], retention={"messages": 1})


def opt_out_conversation(owner: Owner, _: str) -> Any:
    owner("opt_out", thread_id="c", by="ana")
    owner.connection.execute("delete from memory.opt_out_undos where user_id = %s", [owner.user_id])
    owner.connection.execute(
        "delete from memory.conversation_messages where user_id = %s and text ~ %s", [owner.user_id, CANARY]
    )


def opt_out_topic(owner: Owner, _: str) -> Any:
    owner("opt_out", topic=CANARY, by="ana")
    owner("opt_in", topic=CANARY, by="ana")
    owner.connection.execute(
        "delete from memory.conversation_messages where user_id = %s and text ~ %s", [owner.user_id, CANARY]
    )


def refuse(owner: Owner, message_id: str) -> Any:
    owner("consent", purpose="profile", allowed=False, by="ana")
    return owner("forget_message", thread_id="c", message_id=message_id)


def delete(owner: Owner, message_id: str) -> Any:
    owner.edit("delete", id=owner.one(CANARY)["id"])
    return owner("forget_message", thread_id="c", message_id=message_id)


def forget_everything(owner: Owner, _: str) -> Any:
    assert owner("forget", everything=True)["profile"] >= 1


EVENTS = [
    forget_message, edit_message, redact_message, delete_conversation_row, forget_conversation, expire, expire_by_append,
    opt_out_conversation, opt_out_topic, refuse, delete, forget_everything,
]  # fmt: skip


@pytest.mark.parametrize("event", EVENTS, ids=[each.__name__ for each in EVENTS])
def test_after_each_event_no_word_is_left(
    owner: Owner, cluster: Cluster, name: str, event: Callable[[Owner, str], Any]
) -> None:
    owner.learn("tea", "keep", START)
    message_id = owner.learn(CANARY, "c", START + timedelta(days=1))
    owner.learn("milk", "keep", START + timedelta(days=2), durable=False)
    assert owner.values() == [CANARY]
    assert CANARY in cluster.dump(name)
    event(owner, message_id)
    assert CANARY not in cluster.dump(name)
    held = owner.values()
    assert held == ([] if event in (refuse, delete, forget_everything) else ["tea"]), "what it superseded holds again"


def test_what_other_messages_say_stays(owner: Owner) -> None:
    first = owner.learn("tea", "a", START)
    owner.learn("tea", "b", START + timedelta(days=1), durable=False)
    owner.learn("tea", "c", START + timedelta(days=2), durable=False)
    assert owner("forget_message", thread_id="a", message_id=first)["profile"] == 0
    held = owner.one("tea")
    assert (held["state"], held["basis"]) == ("held", "repeated")
    assert owner("forget", thread_id="c")["profile"] == 0
    assert owner.one("tea")["state"] == "proposed"
    owner.edit("confirm", id=owner.one("tea")["id"])
    assert owner("forget", thread_id="b")["profile"] == 0
    assert owner.values() == ["tea"], "a person confirmed it"
    owner("opt_out", topic="tea", by="ana")
    assert owner.values("held", "proposed", "superseded") == []
    refusal = refused(lambda: owner.edit("remember", item={"kind": "fact", "value": "tea"}))
    assert refusal == "PT400"
    owner.learn("tea", "d")
    assert owner.values("held", "proposed") == []


def test_a_value_that_comes_again_has_two_stretches(owner: Owner) -> None:
    owner.learn("tea", "a", START)
    owner.learn("tea", "b", START + timedelta(days=4))
    owner.edit("pin", id=owner.one("tea")["id"])
    pinned = owner.one("tea")["id"]
    middle = owner.learn("milk", "c", START + timedelta(days=2))
    assert [owner.values(at=START + timedelta(days=day)) for day in (1, 3, 5)] == [["tea"], ["milk"], ["tea"]]
    assert owner.one("tea")["id"] == pinned, "what holds keeps its id"
    owner("forget_message", thread_id="c", message_id=middle)
    assert owner.values(at=START + timedelta(days=3)) == ["tea"]
    (only,) = owner.items(item_id=pinned)
    assert (only["id"], len(only["evidence"]), only["pinned"]) == (pinned, 2, True)


def test_an_item_keeps_twenty_messages_the_first_and_the_last_among_them(owner: Owner) -> None:
    for day in range(30):
        owner.learn("tea", f"t{day % 2}", START + timedelta(days=day), durable=day == 3)
    said = [datetime.fromisoformat(each["at"]) for each in owner.one("tea")["evidence"]]
    assert (len(said), said[0], said[-1]) == (20, START, START + timedelta(days=29))


# Whose it is


def test_others_reach_nothing(owner: Owner, cluster: Cluster, name: str) -> None:
    owner.learn("tea")
    mine = owner.one("tea")["id"]
    owner("consent", purpose="tone", allowed=False, by="ana")
    with psycopg.connect(cluster.conn_string(name, "authenticator"), autocommit=True) as session:
        eve, self_ = Person(session, "eve"), Person(session, owner.user_id)
        assert len(self_("profile")["items"]) == 1
        assert eve("profile")["items"] == eve("profile", user_id=owner.user_id)["items"] == []
        assert eve("profile", user_id=owner.user_id, item_id=mine)["items"] == []
        assert eve("consents", user_id=owner.user_id) == []
        for action in ("confirm", "delete", "pin"):
            assert eve.outcome("edit_profile", action=action, id=mine, user_id=owner.user_id) == "PT404"
            assert eve.outcome("edit_profile", action=action, id=mine) == "PT404"
        made = {"kind": "fact", "value": "forged"}
        assert eve.outcome("edit_profile", action="remember", item=made, user_id=owner.user_id) == "42501"
        denied = eve.outcome("consent", purpose="profile", allowed=False, by="eve", user_id=owner.user_id)
        assert denied == "42501"
        for table in ("profile_items", "profile_evidence", "consents"):
            assert eve.sql(f"select * from memory.{table}") == []
            assert eve.sql(f"delete from memory.{table}") == 0
            assert eve.sql(f"update memory.{table} set user_id = 'eve'") == 0
        nobody = Person(session, None)
        assert nobody.outcome("profile") == "PT400"
        assert self_("forget", thread_id="t")["profile"] == 1
    assert owner.values("held", "proposed", "superseded") == []


def test_a_member_of_a_space_reads_no_profile_of_another(owner: Owner, cluster: Cluster, name: str) -> None:
    owner.learn("tea")
    space = call(owner.connection, "create_space", name="Studio", user_id=owner.user_id)["space_id"]
    call(owner.connection, "set_member", space=space, member="bo", role="manager")
    with psycopg.connect(cluster.conn_string(name, "authenticator"), autocommit=True) as session:
        assert Person(session, "bo").sql("select * from memory.profile_items") == []
