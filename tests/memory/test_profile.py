"""The profile by the package's handles, for a server that names its users, and for users with tokens by both doors."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from langchain_supabase_memory import PERSONAL_DATA, SupabaseMemory
from langchain_supabase_memory.effects import Call
from langchain_supabase_memory.errors import ConfigurationError, InvalidInputError, NotFoundError
from langchain_supabase_memory.transfer import export_conversations, import_conversations
from langchain_supabase_memory.transfer.sources import jsonl
from tests.services.data_api import DataApi, token, verified

if TYPE_CHECKING:
    from tests.services.postgres import Cluster

_numbers = count()
Of = Callable[[str], SupabaseMemory]


@pytest.fixture(scope="module")
def api(cluster: Cluster, own: str) -> Iterator[DataApi]:
    with DataApi(cluster, own) as api:
        yield api


@pytest.fixture(params=["server", "claims", "token"])
def of(request: pytest.FixtureRequest, cluster: Cluster, own: str) -> Iterator[Of]:
    """Returns a user's memory, by each door."""
    with SupabaseMemory.from_conn_string(cluster.conn_string(own)) as server:
        if request.param == "server":
            yield server.for_user
        elif request.param == "claims":
            yield lambda user: server.for_token(verified(token("authenticated", user)))
        else:
            api: DataApi = request.getfixturevalue("api")
            with SupabaseMemory.from_url(api.url, token("anon"), rest_path="") as anonymous:
                yield lambda user: anonymous.for_token(token("authenticated", user))


@pytest.fixture
def ana() -> str:
    return f"ana-{next(_numbers)}"


def learn(memory: SupabaseMemory, text: str, *items: dict[str, Any], thread: str = "t") -> None:
    """Say something, and commit what a writer found in it with the board."""
    memory.conversation(thread).append([HumanMessage(text), AIMessage("Noted.")])
    ids = {"p_thread_id": thread, "p_user_id": memory.user_id, "p_agent_id": "default"}
    perform = memory._services.transport.perform
    pending: Any = perform(Call("memory_pending_board", ids))
    said = {"sequence": pending["messages"][0]["sequence"], "kind": "preference", "subject": "drink", "durable": True}
    read = {
        "p_conversation_id": pending["conversation_id"],
        "p_through": pending["through_sequence"],
        "p_revision": pending["revision"],
        "p_to": pending["messages"][-1]["sequence"],
        "p_message_ids": [each["message_id"] for each in pending["messages"]],
        "p_summary": "",
        "p_context_notes": "",
        "p_profile": [{**said, **each} for each in items],
    }
    answer: Any = perform(Call("memory_commit_board", {**ids, **read}))
    assert answer["committed"]


def test_a_person_remembers_corrects_and_deletes(of: Of, ana: str) -> None:
    profile = of(ana).profile
    before = datetime.now(UTC)
    tea = profile.remember("Drinks tea.", kind="preference", subject="drink", polarity=1)
    assert profile.remember("drinks TEA", kind="preference", subject="Drink", polarity=1) == tea
    (held,) = profile.read()
    assert (held.id, held.state, held.basis, held.polarity, held.author_kind) == (tea, "held", "person", 1, "person")
    assert held.confirmed_by == ana
    assert "tea" not in repr(held)
    milk = profile.correct(held, "Drinks milk.", actor="ben")
    assert [(each.value, each.confirmed_by) for each in profile.read()] == [("Drinks milk.", "ben")]
    assert [each.value for each in profile.history(milk)] == ["Drinks tea.", "Drinks milk."]
    assert [each.value for each in profile.history(held)] == ["Drinks tea.", "Drinks milk."]
    assert profile.read(at=before - timedelta(seconds=9)) == []
    assert held.held_at is not None
    assert [each.value for each in profile.read(at=held.held_at)] == ["Drinks tea."]
    allergy = profile.remember("Allergic to nuts.", kind="constraint")
    assert [each.id for each in profile.read()] == [allergy, milk]
    profile.pin(milk)
    assert [each.id for each in profile.read()] == [milk, allergy]
    profile.pin(milk, pinned=False)
    assert [each.id for each in profile.read(limit=1)] == [allergy]
    profile.delete(allergy)
    assert [each.id for each in profile.read()] == [milk]
    with pytest.raises(NotFoundError):
        profile.confirm(allergy)


def test_what_messages_say_is_shown_with_its_quote(of: Of, ana: str) -> None:
    memory = of(ana)
    learn(memory, "From now on I drink tea.", {"value": "tea", "quote": "I drink tea"})
    learn(memory, "Today some milk.", {"value": "milk", "quote": "some milk", "durable": False}, thread="u")
    held, proposed = sorted(memory.profile.read(), key=lambda each: each.state)
    assert (held.value, held.state, proposed.state) == ("tea", "held", "proposed")
    (evidence,) = held.evidence
    assert (evidence.thread_id, evidence.quote, evidence.at) == ("t", "I drink tea", held.held_at)
    assert [each.value for each in memory.profile.read(states=["held"])] == ["tea"]
    memory.profile.confirm(proposed)
    assert [each.value for each in memory.profile.read()] == ["milk"]
    assert memory.conversation("t").forget(dry_run=True).profile == 1
    assert memory.conversation("t").forget_message(evidence.message_id).profile == 1
    assert [each.value for each in memory.profile.history(proposed)] == ["milk"]
    assert memory.forget_user().profile == 1
    assert memory.profile.read(states=["held", "proposed", "superseded"]) == []


def test_another_user_reaches_nothing(of: Of, ana: str) -> None:
    item = of(ana).profile.remember("Drinks tea.")
    eve = of(f"eve-{ana}").profile
    assert eve.read() == eve.history(item) == []
    for act in (eve.confirm, eve.delete, eve.pin, lambda each: eve.correct(each, "poison")):
        with pytest.raises(NotFoundError):
            act(item)
    assert [each.value for each in of(ana).profile.read()] == ["Drinks tea."]


def test_consent(of: Of, ana: str) -> None:
    memory = of(ana)
    memory.profile.remember("Drinks tea.")
    assert memory.privacy.consents() == []
    assert memory.privacy.consent("profile", False, actor="ana")
    assert not memory.privacy.consent("profile", False, actor="ana")
    assert memory.profile.read() == []
    (consent,) = memory.privacy.consents()
    assert (consent.purpose, consent.allowed, consent.actor) == ("profile", False, "ana")
    with pytest.raises(InvalidInputError, match="allow"):
        memory.profile.remember("Drinks tea.")
    assert memory.privacy.consent("profile", True, actor="ana")
    memory.privacy.opt_out(topic="tea", actor="ana")
    with pytest.raises(InvalidInputError, match="topic"):
        memory.profile.remember("Drinks tea.")


def test_the_async_twins(of: Of, ana: str) -> None:
    profile = of(ana).profile

    async def act() -> None:
        tea = await profile.aremember("Drinks tea.", kind="preference", subject="drink")
        await profile.apin(tea)
        assert await profile.aconfirm(tea) == tea
        milk = await profile.acorrect(tea, "Drinks milk.")
        assert [each.id for each in await profile.ahistory(tea)] == [tea, milk]
        assert [(each.id, each.pinned) for each in await profile.aread()] == [(milk, True)]
        await profile.adelete(milk)

    asyncio.run(act())


def test_misuse_is_told_plainly(of: Of, ana: str) -> None:
    profile: Any = of(ana).profile
    for act, error in (
        (lambda: profile.remember(""), InvalidInputError),
        (lambda: profile.remember("x" * 501), InvalidInputError),
        (lambda: profile.remember("x", subject=" "), InvalidInputError),
        (lambda: profile.remember("x", kind="secret"), ConfigurationError),
        (lambda: profile.remember("x", author_kind="rule"), ConfigurationError),
        (lambda: profile.remember("x", polarity=2), InvalidInputError),
        (lambda: profile.remember("x", actor=" "), InvalidInputError),
        (lambda: profile.correct("00000000-0000-4000-8000-000000000000", 7), InvalidInputError),
        (lambda: profile.read(at=datetime(2026, 1, 1)), InvalidInputError),
        (lambda: profile.read(states="held"), InvalidInputError),
        (lambda: profile.read(states=["deleted"]), InvalidInputError),
        (lambda: profile.read(limit=-1), InvalidInputError),
        (lambda: of(ana).privacy.consent("war", True, actor="ana"), ConfigurationError),  # type: ignore[arg-type]
        (lambda: of(ana).privacy.consent("tone", 1, actor="ana"), InvalidInputError),  # type: ignore[arg-type]
    ):
        with pytest.raises(error):
            act()


def test_what_a_person_writes_is_redacted(cluster: Cluster, own: str, ana: str) -> None:
    address = cluster.conn_string(own)
    with SupabaseMemory.from_conn_string(address, user_id=ana, redactor=PERSONAL_DATA) as memory:
        memory.profile.remember("Write to ana@example.com.")
        (held,) = memory.profile.read()
        assert "ana@example.com" not in held.value


def test_it_moves_with_an_export(of: Of, ana: str, tmp_path: Path) -> None:
    memory = of(ana)
    learn(memory, "From now on I drink tea.", {"value": "tea", "quote": "I drink tea"})
    learn(memory, "From now on milk.", {"value": "milk", "quote": "From now on milk"}, thread="u")
    learn(
        memory, "Maybe cake.", {"value": "cake", "subject": "food", "quote": "Maybe cake", "durable": False}, thread="v"
    )
    memory.profile.pin(next(each for each in memory.profile.read() if each.value == "milk"))
    nuts = memory.profile.remember("Allergic to nuts.", kind="constraint", subject="nuts")
    memory.profile.correct(nuts, "Allergic to peanuts.", actor="ben")
    memory.profile.delete(memory.profile.remember("Hates snow."))
    memory.privacy.consent("tone", False, actor="ana")
    export_conversations(memory, tmp_path / "all.jsonl")
    export_conversations(memory, tmp_path / "part.jsonl", thread_id="u")
    assert '"kind":"profile"' in (tmp_path / "all.jsonl").read_text().replace(" ", "")
    assert "peanuts" not in (tmp_path / "part.jsonl").read_text()

    moved = of(f"{ana}-moved")
    receipt = import_conversations(moved, jsonl(tmp_path / "all.jsonl"))
    assert (receipt.restored, receipt.refused, receipt.lost) == (7, 0, {})

    def told(of_whom: SupabaseMemory) -> Any:
        states: Any = ["held", "proposed", "superseded"]
        found = of_whom.profile.read(states=states)
        return sorted(
            (replace(each, id="", superseded_by=None) for each in found), key=lambda each: (each.value, each.state)
        )

    assert told(moved) == told(memory)
    assert [each.purpose for each in moved.privacy.consents()] == ["tone"]
    again = import_conversations(moved, jsonl(tmp_path / "all.jsonl"))
    assert (again.restored, again.refused) == (0, 0)
    assert told(moved) == told(memory)
    learn(
        moved, "I hate snow.", {"kind": "fact", "subject": "Hates snow.", "value": "Hates snow.", "quote": "hate snow"}
    )
    assert told(moved) == told(memory), "what was deleted comes back there neither"
    dry = import_conversations(of(f"{ana}-dry"), jsonl(tmp_path / "all.jsonl"), dry_run=True)
    assert dry.restored == 0
