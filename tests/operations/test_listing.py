"""Lists for an application: a sidebar's titles and pages, a chat page's messages and turns, over every transport."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from langchain_supabase_memory import SECRETS, Retention, SupabaseMemory
from langchain_supabase_memory.errors import InvalidInputError, NotFoundError, SupabaseMemoryError, TooLargeError
from langchain_supabase_memory.operations.boards.kinds import BOARD_KINDS
from langchain_supabase_memory.types import ConversationInfo, ConversationPage
from tests.chat_models import ScriptedModel
from tests.conftest import Caller
from tests.services.data_api import token

TITLE = "Moving the studio to Cebu"


def answering(title: object = TITLE) -> Any:
    """A writer that answers with a title of the board."""
    document = {"title": title, "summary": "The user moves a studio.", "closed": []}
    lists: dict[str, list[Any]] = {each.plural: [] for each in BOARD_KINDS.values()}
    return ScriptedModel(script=lambda _: json.dumps({**document, **lists}))


@pytest.fixture
def memory(conn_string: str, user_id: str) -> Iterator[SupabaseMemory]:
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, model=answering()) as memory:
        yield memory


async def titles(caller: Caller, user_id: str, **narrowed: Any) -> list[str | None]:
    return [each.title for each in await caller(caller.service.for_user(user_id).conversations, **narrowed)]


async def test_a_conversation_is_listed_with_its_first_question_and_its_last_words(
    caller: Caller, user_id: str
) -> None:
    talk = caller.service.for_user(user_id).conversation("t")
    with pytest.raises(NotFoundError, match="There is no such conversation"):
        await caller(talk.info)
    said_at = datetime(2026, 5, 1, 12, tzinfo=UTC)
    call = {"name": "search", "args": {}, "id": "c"}
    messages = [
        SystemMessage("You are helpful."),
        HumanMessage("How do I move\n\n\ta studio,  please? 🎹"),
        AIMessage("Let me look.", tool_calls=[call]),
        ToolMessage("found", tool_call_id="c"),
        AIMessage("Rent a van. " * 100),
    ]
    await caller(talk.append, messages, created_at=[said_at + timedelta(minutes=n) for n in range(5)])
    (listed,) = await caller(caller.service.for_user(user_id).conversations)
    assert listed == await caller(talk.info)
    assert listed.title == "How do I move a studio, please? 🎹"
    assert (listed.last_message_role, listed.last_message_at) == ("assistant", said_at + timedelta(minutes=4))
    assert listed.last_message_text is not None
    assert listed.last_message_text.startswith("Rent a van. Rent")
    assert listed.last_message_text.endswith("Rent a…")
    assert len(listed.last_message_text) <= 200
    assert (listed.metadata, listed.archived_at, listed.opted_out_at, listed.message_count) == ({}, None, None, 5)
    assert "studio" not in repr(listed), "an exception that shows it tells no content"


@pytest.mark.parametrize(
    ("said", "title"),
    [
        ("a" * 10_000, "a" * 59 + "…"),
        ("word " * 2_000, " ".join(["word"] * 12) + "…"),
        ("👩‍👩‍👧 " * 100, None),
        ("שלום, מה שלומך היום?", "שלום, מה שלומך היום?"),
        ("one\x07two\u2028three", "one two three"),
        ("\n \t", None),
    ],
)
async def test_a_title_of_first_words_is_one_line_and_short(
    caller: Caller, user_id: str, said: str, title: str | None
) -> None:
    talk = caller.service.for_user(user_id).conversation("t")
    await caller(talk.append, [HumanMessage(said)])
    listed = await caller(talk.info)
    shown = listed.title
    if title is None and said.strip():
        assert shown is not None
        assert shown.endswith("👧…")
        assert len(shown) <= 60
    else:
        assert shown == title


async def test_a_set_title_and_metadata_stand_until_they_are_taken_back(caller: Caller, user_id: str) -> None:
    talk = caller.service.for_user(user_id).conversation("t")
    await caller(talk.append, [HumanMessage("First words"), AIMessage("Yes.")])
    other = caller.service.for_user(user_id).conversation("later")
    await caller(other.append, [HumanMessage("Later")])
    info = await caller(talk.update, title="  My\n trip \u202eto Rome ", metadata={"color": "blue", "tags": ["a", 1]})
    assert info == await caller(talk.info)
    assert info.title == "My trip \u202eto Rome"
    assert info.metadata == {"color": "blue", "tags": ["a", 1]}
    assert await titles(caller, user_id) == ["Later", info.title], "the order of the list stays"
    assert (await caller(talk.update, metadata={})).metadata == {}
    assert (await caller(talk.update, title="")).title == "First words"
    await caller(talk.append, [HumanMessage("More")])
    await caller(talk.update, title="Kept")
    await caller(talk.append, [HumanMessage("Even more")])
    assert (await caller(talk.info)).title == "Kept"


async def test_what_cannot_be_set_is_refused_and_nothing_changes(caller: Caller, user_id: str) -> None:
    talk = caller.service.for_user(user_id).conversation("t")
    with pytest.raises(NotFoundError):
        await caller(talk.update, title="None yet")
    await caller(talk.append, [HumanMessage("Hi")])
    before = await caller(talk.update, title="Before", metadata={"a": 1})
    for wrong in (
        {},
        {"title": 5},
        {"title": "x" * 201},
        {"title": "x" * 10_000},
        {"metadata": "text"},
        {"metadata": ["a"]},
    ):
        with pytest.raises(InvalidInputError) as refused:
            await caller(talk.update, **wrong)
        assert "xxx" not in str(refused.value)
    with pytest.raises(TooLargeError):
        await caller(talk.update, title="Not half", metadata={"a": "x" * 20_000})
    assert await caller(talk.info) == before


def test_what_a_client_sends_past_python_is_refused_too(memory: SupabaseMemory, sql: psycopg.Connection) -> None:
    memory.conversation("t").append([HumanMessage("Hi")])
    for arguments, code in {
        "p_title => repeat('x', 10000)": "PT400",
        "p_metadata => '[1]'": "PT400",
        "p_metadata => '\"a\"'": "PT400",
        "p_metadata => json_build_object('a', repeat('x', 20000))": "PT413",
        "p_metadata => (repeat('{\"a\":', 200) || '1' || repeat('}', 200))::json": "PT400",
        'p_metadata => \'{"a": "\\u0000"}\'': "22P05",
    }.items():
        with pytest.raises(psycopg.Error) as refused, sql.transaction():
            sql.execute(f"select public.memory_update('t', {arguments}, p_user_id => %s)", [memory.user_id])
        assert refused.value.sqlstate == code, arguments
    for arguments in ("p_state => 'gone'", "p_after => 'x'", "p_after => '2026-01-01/x'", "p_before => ''"):
        with pytest.raises(psycopg.Error) as refused, sql.transaction():
            sql.execute(f"select public.memory_conversations(%s, {arguments})", [memory.user_id])
        assert refused.value.sqlstate == "PT400", arguments


async def test_pages_lead_both_ways_and_lose_nothing(caller: Caller, user_id: str, conn_string: str) -> None:
    for number in range(7):
        await caller(caller.service.for_user(user_id).conversation(f"t{number}").append, [HumanMessage("Hi")])
    with psycopg.connect(conn_string, autocommit=True) as connection:  # as one import leaves them: all at one time
        connection.execute("update memory.conversations set updated_at = '2026-05-01' where user_id = %s", [user_id])

    async def page(**place: Any) -> ConversationPage:
        found: ConversationPage = await caller(caller.service.for_user(user_id).conversations, limit=3, **place)
        return found

    first = await page()
    second = await page(after=first.after)
    third = await page(after=second.after)
    every = await caller(caller.service.for_user(user_id).conversations)
    assert [*first, *second, *third] == list(every)
    assert (len(first), len(second), len(third)) == (3, 3, 1)
    assert (first.before, third.after, every.before, every.after) == (None, None, None, None)
    assert third[0] == third[-1]
    assert third[:2] == [third[0]]
    back = await page(before=third.before)
    assert list(back) == list(second)
    front = await page(before=back.before)
    assert list(front) == list(first)
    assert front.before is None
    assert list(await page(after=back.after)) == list(third)
    for place in ({"after": third.before, "before": third.before}, {"after": "x"}, {"before": 5}):
        with pytest.raises(InvalidInputError):
            await page(**place)
    for limit in (0, 1001, True, "3"):
        with pytest.raises(InvalidInputError):
            await caller(caller.service.for_user(user_id).conversations, limit=limit)


async def test_a_list_is_narrowed_by_agent_state_and_time(caller: Caller, user_id: str, conn_string: str) -> None:
    for thread_id, agent_id in (("old", "billing"), ("new", "billing"), ("new", "support")):
        talk = caller.service.for_user(user_id).conversation(thread_id, agent_id=agent_id)
        await caller(talk.append, [HumanMessage(f"{thread_id} {agent_id}")])
    with psycopg.connect(conn_string, autocommit=True) as connection:
        connection.execute(
            "update memory.conversations set archived_at = now(), updated_at = '2026-05-01'"
            " where user_id = %s and thread_id = 'old'",
            [user_id],
        )
    noon = datetime(2026, 5, 1, 12, tzinfo=UTC)
    assert await titles(caller, user_id) == ["new support", "new billing", "old billing"]
    assert await titles(caller, user_id, agent_id="billing") == ["new billing", "old billing"]
    assert await titles(caller, user_id, state="archived") == ["old billing"]
    assert await titles(caller, user_id, state="active", agent_id="support") == ["new support"]
    assert await titles(caller, user_id, until=noon) == ["old billing"]
    assert await titles(caller, user_id, since=noon) == ["new support", "new billing"]
    for wrong in ({"state": "gone"}, {"since": datetime(2026, 5, 1)}, {"agent_id": ""}):
        with pytest.raises(InvalidInputError):
            await titles(caller, user_id, **wrong)


def test_the_writers_title_is_the_first_and_goes_with_its_words(
    memory: SupabaseMemory, conn_string: str, user_id: str
) -> None:
    talk = memory.conversation("t")
    talk.append([HumanMessage("I move my studio to Cebu in May."), AIMessage("Noted."), HumanMessage("Bye")])
    assert title(talk.info()) == "I move my studio to Cebu in May."
    talk.board.revise()
    assert talk.board.read().title == title(talk.info()) == TITLE
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, model=answering(' "**Another.**"\n')) as later:
        talk = later.conversation("t")
        talk.append([HumanMessage("And more")])
        talk.board.revise()
        assert title(talk.info()) == TITLE, "a title does not change with every turn"
        first = talk.read(first=1, columns=["message_id"])[0]
        talk.forget_message(str(first.message_id))
        assert talk.board.read().title is None
        assert title(talk.info()) == "Bye"
        talk.board.revise()
        assert title(talk.info()) == "Another"
        fact = talk.board.add("fact", "Maya moves in May", actor="Maya")
        talk.board.delete(fact, actor="Maya")
        assert talk.board.read().title is None
        talk.board.regenerate(actor="Maya")
        assert title(talk.info()) == "Another"
        talk.update(title="Mine")
        assert (title(talk.info()), talk.board.read().title) == ("Mine", "Another")
        talk.opt_out(actor="Maya")
        assert title(talk.info()) == "Mine", "what a person set stays"
        assert title(talk.update(title=" ")) == "Bye", "and what was derived is gone"


@pytest.mark.parametrize("words", [None, 5, "", "   ", ["a"], "x" * 100_000])
def test_a_writer_that_names_no_title_costs_nothing(conn_string: str, user_id: str, words: object) -> None:
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, model=answering(words)) as memory:
        talk = memory.conversation("t")
        talk.append([HumanMessage("Hello there"), AIMessage("Hi.")])
        assert talk.board.revise().failed is None
        shown = title(talk.info())
        assert shown is not None
        if words == "x" * 100_000:
            assert shown == "x" * 79 + "…"
        else:
            assert shown == "Hello there"


async def test_titles_and_words_hold_no_secret(conn_string: str, user_id: str) -> None:
    key = "sk-proj-" + "a1B2" * 12
    model = answering(f"The key {key}")
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, model=model, redactor=SECRETS) as memory:
        talk = memory.conversation("t")
        talk.append([HumanMessage(f"My key is {key}"), AIMessage(f"You said {key}")])
        assert key not in repr(vars_of(talk.info()))
        assert key not in str(talk.update(title=f"About {key}", metadata={"key": key}).title)
        assert key not in repr(vars_of(talk.info()))


def test_what_is_not_to_be_remembered_is_in_no_title(memory: SupabaseMemory) -> None:
    talk = memory.conversation("t")
    talk.append([HumanMessage("My studio in Cebu"), AIMessage("A studio, yes.")])
    talk.board.revise()
    other = memory.conversation("other")
    other.append([HumanMessage("Hello"), AIMessage("Hi.")])
    other.update(title="The Studio")
    memory.privacy.opt_out("studio", actor="Maya")
    for each in (talk, other):
        info = each.info()
        assert "studio" not in repr(vars_of(info)).lower()
    assert title(other.info()) == "Hello"
    with pytest.raises(InvalidInputError, match="not to be remembered"):
        other.update(title="Studios")
    memory.privacy.opt_in("studio", actor="Maya")
    assert (title(talk.info()), title(other.info())) == (TITLE, "The Studio"), "it is undone within a minute"


def test_what_has_expired_is_in_no_title(conn_string: str, user_id: str) -> None:
    kept = Retention(max_messages=2, max_summary_age=timedelta(microseconds=1))
    with (
        SupabaseMemory.from_conn_string(conn_string, user_id=user_id, model=answering()) as writing,
        SupabaseMemory.from_conn_string(conn_string, user_id=user_id, retention=kept) as memory,
    ):
        writing.conversation("t").append([HumanMessage("one"), AIMessage("two"), HumanMessage("three"), AIMessage("4")])
        writing.conversation("t").board.revise()
        assert title(writing.conversation("t").info()) == TITLE
        (listed,) = memory.conversations()
        assert (listed.title, listed.message_count, listed.last_message_text) == ("three", 2, "4")
        memory.forget_expired()
        assert title(writing.conversation("t").info()) == "three"


async def test_a_chat_page_is_read_both_ways_without_what_tools_did(caller: Caller, user_id: str) -> None:
    talk = caller.service.for_user(user_id).conversation("t")
    picture = {"type": "image_url", "image_url": {"url": "https://example.com/cat.png"}}
    inline = {"type": "image", "base64": "aGVsbG8=" * 100, "mime_type": "image/png"}
    call = {"name": "search", "args": {"secret": 1}, "id": "c"}
    said: list[BaseMessage] = [
        SystemMessage("Rules"),
        HumanMessage([{"type": "text", "text": "What is this?"}, picture]),
        AIMessage("", tool_calls=[call]),
        ToolMessage("plumbing", tool_call_id="c"),
        AIMessage("A cat."),
        HumanMessage([inline]),
        AIMessage("A dog."),
    ]
    await caller(talk.append, said)
    shown = await caller(talk.read, display=True)
    assert [(each.sequence, each.role, each.text) for each in shown] == [
        (1, "user", "What is this?"),
        (4, "assistant", "A cat."),
        (5, "user", ""),
        (6, "assistant", "A dog."),
    ]
    assert [len(each.images or []) for each in shown] == [1, 0, 1, 0]
    assert shown[0].images[0]["url"] == "https://example.com/cat.png"
    assert "aGVsbG8=" not in repr(shown)
    assert all(each.payload is None and each.created_at is not None and each.message_id for each in shown)

    async def sequences(**bounds: Any) -> list[int]:
        return [each.sequence for each in await caller(talk.read, display=True, **bounds)]

    assert await sequences(last=2) == [5, 6]
    assert await sequences(last=2, to_sequence=4) == [1, 4]
    assert await sequences(last=2, to_sequence=0) == []
    assert await sequences(last=2, to_sequence=-1) == []
    assert await sequences(first=3) == [1, 4, 5]
    assert await sequences(first=3, from_sequence=5) == [5, 6]
    assert await sequences(first=0) == []
    for wrong in ({"first": 1, "last": 1}, {"to_sequence": -2}, {"first": -1}):
        with pytest.raises(InvalidInputError):
            await sequences(**wrong)

    newest, oldest = (await caller(talk.turns.list, last=1)), (await caller(talk.turns.list, last=1, before=5))
    assert [(turn.user_query, turn.ai_response) for turn in [*oldest, *newest]] == [
        ("What is this?", "A cat."),
        ("", "A dog."),
    ]
    assert oldest[0].user_images[0]["url"] == "https://example.com/cat.png"
    assert (newest[0].user_images[0]["mime_type"], newest[0].ai_images) == ("image/png", [])
    assert await caller(talk.turns.list, before=1) == []


async def test_nobody_lists_or_names_what_is_not_theirs(caller: Caller, user_id: str) -> None:
    talk = caller.service.for_user(user_id).conversation("t")
    await caller(talk.append, [HumanMessage("Mine")])
    stranger = caller.as_token(token("authenticated", "somebody else"))
    owner = caller.as_token(token("authenticated", user_id))
    assert [each.title for each in await caller(owner.conversations)] == ["Mine"]
    assert (await caller(owner.conversation("t").update, title="Ours")).title == "Ours"
    assert not await caller(stranger.conversations)
    with pytest.raises(NotFoundError):
        await caller(stranger.conversation("t").info)
    with pytest.raises(NotFoundError):
        await caller(stranger.conversation("t").update, title="Stolen")
    for other in (stranger.for_user(user_id).conversation("t"),):
        with pytest.raises(SupabaseMemoryError):
            await caller(other.update, title="Stolen")
    assert (await caller(talk.info)).title == "Ours"


def test_two_at_once_set_both(memory: SupabaseMemory) -> None:
    talk = memory.conversation("t")
    talk.append([HumanMessage("Hi")])

    def change(number: int) -> None:
        if number % 3 == 0:
            talk.update(title=f"Title {number}")
        elif number % 3 == 1:
            talk.update(metadata={"number": number})
        else:
            talk.append([HumanMessage(f"{number}")])

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(change, range(60)))
    info = talk.info()
    assert (info.message_count, str(info.title).startswith("Title "), "number" in info.metadata) == (21, True, True)


def vars_of(info: ConversationInfo | None) -> dict[str, Any]:
    assert info is not None
    return vars(info)


def title(info: ConversationInfo | None) -> str | None:
    assert info is not None
    return info.title
