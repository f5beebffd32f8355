"""Row security: owners, other users, anonymous clients and the server, over every transport and by SQL on the tables.

The probes are plain functions over a connection, so that the controls at the end can show that they detect violations.
"""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import jwt
import psycopg
import pytest
from langchain_core.messages import AIMessage, HumanMessage
from psycopg import sql

from langchain_supabase_memory import Retention, SummaryPolicy, SupabaseMemory
from langchain_supabase_memory.adapters.schema import script
from langchain_supabase_memory.adapters.schema.migrate import migrate
from langchain_supabase_memory.adapters.transports.postgres import PostgresTransport
from langchain_supabase_memory.effects import Call
from langchain_supabase_memory.errors import (
    AccessError,
    AuthenticationError,
    InvalidInputError,
    PermissionDeniedError,
    TokenExpiredError,
)
from langchain_supabase_memory.language.messages.codec import to_row
from langchain_supabase_memory.operations import summaries
from langchain_supabase_memory.operations.arguments import conversation_ids
from langchain_supabase_memory.operations.conversations import ALL_COLUMNS
from langchain_supabase_memory.values import Receipt
from tests.conftest import Caller
from tests.owners import conversation_of
from tests.services.data_api import SECRET, token, verified

pytestmark = pytest.mark.both_colors("rights are checked by each way in")

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tests.services.postgres import Cluster

FUNCTIONS: dict[str, dict[str, Any]] = {
    "context": {},
    "pending": {"p_until": 0},
    "commit_summary": {
        "p_conversation_id": "00000000-0000-0000-0000-000000000000",
        "p_through": -1,
        "p_revision": 0,
        "p_to": 0,
        "p_message_ids": ["m"],
        "p_content": "forged",
        "p_tokens": 2,
    },
    "fail_summary": {"p_error": "forged"},
    "summaries": {},
    "coverage": {},
    "turns": {"p_retention": {"turns": 1, "messages": 1, "age": 1e-9, "summary_age": 1e-9}},
}
"""The SQL functions about summaries, with all that one would have to guess; the flows over them need a model."""

VERBS = ("append", "read", "count", "conversations", *FUNCTIONS, "forget_message", "forget")
"""In an order in which an owner can call them one after the other."""

NOTHING: tuple[Any, ...] = (
    [], 0, Receipt(), None, {"committed": False, "through_sequence": -1}, {"retry_at": None},
    {"turns": [], "more": False}, {"messages": [], "more": False}, {"chunks": [], "more": False},
)  # fmt: skip
"""What the verbs answer to who has nothing."""

DATA_API = pytest.mark.parametrize("caller", ["data_api-sync", "data_api-async"], indirect=True)
DIRECT = pytest.mark.parametrize("caller", ["direct-sync", "direct-async"], indirect=True)


async def use(caller: Caller, memory: SupabaseMemory, verb: str, *, thread_id: str = "t", **who: Any) -> Any:
    """Call a verb with all that one would have to guess: the thread's name, and the id of its only message."""
    if verb == "conversations":
        owned = memory._for(who.pop("user_id", None))
        return (await caller(owned.conversations, **who)).conversations
    if verb in FUNCTIONS:
        return await perform(caller, memory, verb, thread_id, **who)
    conversation = conversation_of(memory, thread_id, **who)
    if verb == "append":
        return await caller(conversation.append, [HumanMessage("secret", id="m")])
    if verb == "forget_message":
        return await caller(conversation.forget_message, "m")
    return await caller(getattr(conversation, verb))


async def perform(caller: Caller, memory: SupabaseMemory, verb: str, thread_id: str = "t", **who: Any) -> Any:
    """Call a SQL function as the flows do; what is no part of the conversation's name is an argument of its own."""
    key = memory._services.key(thread_id, who.pop("user_id", None), who.pop("agent_id", None))
    call = Call(f"memory_{verb}", {**conversation_ids(key), **FUNCTIONS[verb], **who})
    return (
        await memory._services.transport.aperform(call)
        if caller.color == "async"
        else memory._services.transport.perform(call)
    )


async def due(caller: Caller, memory: SupabaseMemory, user_id: str | None = None) -> list[tuple[str, str]]:
    """Owner and thread of everything that is due, if anything at all is due, for who asks."""
    flow = summaries.is_summary_due(SummaryPolicy(messages=1, tokens=1), user_id=user_id)
    found = await memory._services.arun(flow) if caller.color == "async" else memory._services.run(flow)
    return [(str(key.user_id), key.thread_id) for key in found]


async def everything(caller: Caller, user_id: str) -> tuple[Any, Any, Any]:
    """All that the database holds of a user, as the server sees it."""
    listed = (await caller(caller.service.for_user(user_id).conversations)).conversations
    rows = [
        await caller(
            caller.service.for_user(user_id).conversation(each.thread_id, agent_id=each.agent_id).read,
            columns=ALL_COLUMNS,
        )
        for each in listed
    ]
    covered = [
        await perform(caller, caller.service, verb, each.thread_id, user_id=user_id, agent_id=each.agent_id)
        for each in listed
        for verb in ("context", "summaries", "coverage")
    ]
    return listed, rows, covered


def _settled(future: Future[Any]) -> Any:
    return future.exception() or future.result()


def acting_over_the_service(caller: Caller, access_token: str) -> SupabaseMemory:
    """A user over the very connections of the server, so that a leak would be a leak of the server's rights."""
    return caller.service.for_token(access_token if caller.kind == "data_api" else verified(access_token))


# The stories, over both transports


@pytest.mark.parametrize("named", [False, True], ids=["by the token", "and named"])
async def test_an_owner_does_everything_with_what_is_theirs(caller: Caller, user_id: str, named: bool) -> None:
    memory = caller.as_token(token(user_id=user_id))
    who = {"user_id": user_id} if named else {}
    appended = await use(caller, memory, "append", **who)
    assert (appended.sequences, appended.appended) == ([0], 1)
    assert [each.message.text for each in await use(caller, memory, "read", **who)] == ["secret"]
    assert await use(caller, memory, "count", **who) == 1
    listed = await use(caller, memory, "conversations", **who)
    assert [(each.user_id, each.thread_id, each.id) for each in listed] == [(user_id, "t", appended.conversation_id)]
    edited = await caller(conversation_of(memory, "t", **who).append, [HumanMessage("changed", id="m")])
    assert edited.updated == ["m"]
    assert await caller(caller.service.for_user(user_id).conversation("t").count) == 1
    assert await use(caller, memory, "forget_message", **who) == Receipt(messages=1)
    await caller(conversation_of(memory, "t", **who).append, [HumanMessage("another", id="n")])
    assert await use(caller, memory, "forget", **who) == Receipt(1, 1)
    assert await everything(caller, user_id) == ([], [], [])


@pytest.mark.parametrize("named", [False, True], ids=["by the token", "and named"])
async def test_an_owner_summarizes_what_is_theirs(caller: Caller, user_id: str, named: bool) -> None:
    memory = caller.as_token(token(user_id=user_id))
    who = {"user_id": user_id} if named else {}
    appended = await use(caller, memory, "append", **who)
    assert await due(caller, memory, who.get("user_id")) == [(user_id, "t")]
    pending = await use(caller, memory, "pending", **who)
    assert (pending["conversation_id"], [row["message_id"] for row in pending["messages"]]) == (
        appended.conversation_id,
        ["m"],
    )
    assert (await use(caller, memory, "fail_summary", **who))["retry_at"] is not None
    assert await due(caller, memory, who.get("user_id")) == []
    commit = await use(caller, memory, "commit_summary", **who, p_conversation_id=appended.conversation_id)
    assert commit == {"committed": True, "number": 1, "through_sequence": 0}
    assert [each["content"] for each in await use(caller, memory, "summaries", **who)] == ["forged"]
    assert (await use(caller, memory, "context", **who))["segments"][0]["content"] == "forged"
    assert (await use(caller, memory, "coverage", **who))["segments"] == [[1, 0, 0, None]]
    # What was summarized is taken back when it changes, by the owner's own rights.
    await caller(conversation_of(memory, "t", **who).append, [HumanMessage("changed", id="m")])
    assert await use(caller, memory, "summaries", **who) == []


async def test_a_stranger_who_guesses_every_id_right_reaches_nothing(caller: Caller, user_id: str) -> None:
    await use(caller, caller.as_token(token(user_id=user_id)), "append")
    await use(caller, caller.as_token(token(user_id=user_id)), "append", agent_id="other")
    ids = {each.agent_id: each.id for each in await caller(caller.service.for_user(user_id).conversations)}
    commit = {"user_id": user_id, "agent_id": "other", "p_conversation_id": ids["other"]}
    assert (await use(caller, caller.service, "commit_summary", **commit))["committed"]
    before = await everything(caller, user_id)
    assert len(before[0]) == 2
    stranger = caller.as_token(token(user_id=f"{user_id}-stranger"))
    assert await due(caller, stranger) == await due(caller, stranger, user_id) == []
    for agent_id in ("default", "other"):
        who = {"user_id": user_id, "agent_id": agent_id}
        assert await use(caller, stranger, "read", **who) == []
        assert await use(caller, stranger, "count", **who) == 0
        assert await use(caller, stranger, "conversations", **who) == []
        assert await use(caller, stranger, "forget_message", **who) == Receipt()
        assert await use(caller, stranger, "forget", **who) == Receipt()
        for verb in ("context", "pending", "coverage"):
            assert await use(caller, stranger, verb, **who) is None
        assert await use(caller, stranger, "summaries", **who) == []
        assert await use(caller, stranger, "fail_summary", **who) == {"retry_at": None}
        commit = {**who, "p_conversation_id": ids[agent_id]}
        assert await use(caller, stranger, "commit_summary", **commit) == {"committed": False, "through_sequence": -1}
        with pytest.raises(PermissionDeniedError) as caught:
            await use(caller, stranger, "append", **who)
        assert caught.value.code == "42501"
        with pytest.raises(PermissionDeniedError):
            await caller(conversation_of(stranger, "t", **who).append, [HumanMessage("forged", id="new")])
        with pytest.raises(PermissionDeniedError):
            await caller(
                conversation_of(stranger, "a thread of the owner's to be", **who).append, [HumanMessage("forged")]
            )
    assert await everything(caller, user_id) == before
    assert await everything(caller, f"{user_id}-stranger") == ([], [], [])


async def test_the_same_thread_name_of_two_users_is_two_conversations(caller: Caller, user_id: str) -> None:
    names = [f"{user_id}-a", f"{user_id}-b"]
    memories = [caller.as_token(token(user_id=name)) for name in names]
    for name, memory in zip(names, memories, strict=True):
        # The same message id, too: an id belongs to a conversation.
        await caller(memory.conversation("t").append, [HumanMessage(f"of {name}", id="m")])
    for name, memory in zip(names, memories, strict=True):
        assert [each.message.text for each in await caller(memory.conversation("t").read)] == [f"of {name}"]
    assert await use(caller, memories[0], "forget") == Receipt(1, 1)
    assert await use(caller, memories[1], "count") == 1


async def test_a_memory_for_a_user_ignores_the_servers_own_default_user(caller: Caller, user_id: str) -> None:
    server = SupabaseMemory(caller.service._services.transport, user_id=f"{user_id}-servers")
    await use(caller, server, "append")
    access_token = token(user_id=user_id)
    memory = server.for_token(access_token if caller.kind == "data_api" else verified(access_token))
    assert await use(caller, memory, "read") == []
    await use(caller, memory, "append")
    assert [each.user_id for each in await use(caller, memory, "conversations")] == [user_id]


@pytest.mark.parametrize("subject", [False, True], ids=["without a subject", "with a subject"])
async def test_the_anonymous_role_is_refused_everything(caller: Caller, user_id: str, subject: bool) -> None:
    await use(caller, caller.service, "append", user_id=user_id)
    before = await everything(caller, user_id)
    anonymous = caller.as_token(token("anon", user_id if subject else None))
    for verb in VERBS:
        with pytest.raises(PermissionDeniedError) as caught:
            await use(caller, anonymous, verb, user_id=user_id)
        assert caught.value.code == "42501"
        with pytest.raises(PermissionDeniedError):
            await use(caller, anonymous, verb)  # with nobody named
    findings = {each.name: each for each in await caller(anonymous.doctor)}
    assert (findings["key"].state, set(findings)) == ("red", {"address", "transport", "key", "summarizer", "embedder"})
    with pytest.raises(PermissionDeniedError):
        await due(caller, anonymous, user_id)
    assert await everything(caller, user_id) == before


async def test_the_server_sees_everyone_but_must_say_whom(caller: Caller, user_id: str) -> None:
    names = [f"{user_id}-a", f"{user_id}-b"]
    for name in names:
        await use(caller, caller.as_token(token(user_id=name)), "append")
    for name in names:
        assert await use(caller, caller.service, "count", user_id=name) == 1
        assert [each.user_id for each in await use(caller, caller.service, "conversations", user_id=name)] == [name]
        assert await due(caller, caller.service, name) == [(name, "t")]
    # Only what is due is asked of everybody at once, for a worker that knows no names.
    assert {(name, "t") for name in names} <= set(await due(caller, caller.service))
    for verb in VERBS:
        with pytest.raises(InvalidInputError, match="No user is named"):
            await use(caller, caller.service, verb)


async def test_a_signed_in_token_without_a_subject_is_nobody(caller: Caller, user_id: str) -> None:
    await use(caller, caller.service, "append", user_id=user_id)
    before = await everything(caller, user_id)
    if caller.kind == "direct":
        with pytest.raises(AuthenticationError, match="name no user"):
            caller.as_token(token())
        return
    nobody = caller.as_token(token())
    for verb in VERBS:
        with pytest.raises(InvalidInputError, match=r"No user"):
            await use(caller, nobody, verb)
        if verb == "append":
            with pytest.raises(PermissionDeniedError):
                await use(caller, nobody, verb, user_id=user_id)
        else:
            assert await use(caller, nobody, verb, user_id=user_id) in NOTHING
    assert await due(caller, nobody) == await due(caller, nobody, user_id) == []
    assert await everything(caller, user_id) == before


async def test_an_empty_subject_owns_nothing(caller: Caller) -> None:
    with pytest.raises((InvalidInputError, AccessError)):
        await use(caller, caller.as_token(token(user_id="")), "append")


@DIRECT
@pytest.mark.parametrize("role", ["postgres", "supabase_admin", "authenticator", "", None, "Authenticated"])
async def test_claims_are_no_way_to_a_stronger_role(caller: Caller, role: str | None) -> None:
    with pytest.raises(AuthenticationError, match="role"):
        caller.service.for_token({"sub": "u", "role": role})


@DATA_API
@pytest.mark.parametrize("role", ["postgres", "supabase_admin", "authenticator"])
async def test_a_signed_token_is_no_way_to_a_stronger_role(caller: Caller, user_id: str, role: str) -> None:
    await use(caller, caller.service, "append", user_id=user_id)
    for verb in VERBS:
        # As `authenticator` PostgREST stays what it is, which may do nothing either.
        with pytest.raises(AccessError):
            await use(caller, caller.as_token(token(role, user_id)), verb, user_id=user_id)
    assert await use(caller, caller.service, "count", user_id=user_id) == 1


def _tampered(user_id: str) -> str:
    """A token of somebody else with the owner's subject put in, under the old signature."""
    head, _, signature = token(user_id="somebody").split(".")
    return ".".join([head, token(user_id=user_id).split(".")[1], signature])


@DATA_API
@pytest.mark.parametrize("kind", ["forged", "tampered", "cut", "unsigned", "garbage", "spaces", "empty"])
async def test_a_token_that_was_not_signed_here_is_refused(caller: Caller, user_id: str, kind: str) -> None:
    await use(caller, caller.service, "append", user_id=user_id)
    genuine = token(user_id=user_id)
    claims = verified(genuine)
    bad = {
        "forged": jwt.encode(claims, "another-secret-that-is-also-long-enough-for-hs256", "HS256"),
        "tampered": _tampered(user_id),
        "cut": genuine[:-5],
        "unsigned": jwt.encode(claims, "", "none"),
        "garbage": "garbage",
        "spaces": "three words here",
        "empty": "",
    }[kind]
    for verb in VERBS:
        with pytest.raises(AuthenticationError) as caught:
            await use(caller, caller.as_token(bad), verb)
        assert not isinstance(caught.value, TokenExpiredError)
        assert kind == "empty" or bad not in str(caught.value)
    assert await use(caller, caller.service, "count", user_id=user_id) == 1


@DATA_API
async def test_an_expired_token_is_refused_and_says_so(caller: Caller, user_id: str) -> None:
    await use(caller, caller.as_token(token(user_id=user_id)), "append")
    expired = caller.as_token(token(user_id=user_id, expires_in=-3600))
    for verb in VERBS:
        with pytest.raises(TokenExpiredError):
            await use(caller, expired, verb)
    forged = jwt.encode({**verified(token(user_id=user_id)), "exp": 1}, SECRET + "x", "HS256")
    with pytest.raises(AuthenticationError):
        await use(caller, caller.as_token(forged), "read")
    assert await use(caller, caller.service, "count", user_id=user_id) == 1


# A memory is shared, a token never


async def test_forty_calls_at_once_over_one_memory_keep_their_users_apart(caller: Caller, user_id: str) -> None:
    names = [f"{user_id}-{number}" for number in range(8)]
    memories = {name: acting_over_the_service(caller, token(user_id=name)) for name in names}

    async def gathered(calls: list[tuple[Any, ...]]) -> list[Any]:
        if caller.color == "async":
            return list(await asyncio.gather(*(caller(*call) for call in calls), return_exceptions=True))
        with ThreadPoolExecutor(len(calls)) as threads:
            futures = [threads.submit(*call) for call in calls]
            return [await asyncio.to_thread(_settled, future) for future in futures]

    written = await gathered(
        [
            (memories[name].conversation("t").append, [HumanMessage(f"{n} of {name}")])
            for n in range(5)
            for name in names
        ]
    )
    assert [result.appended for result in written] == [1] * 40
    calls: list[tuple[Any, ...]] = []
    for name, other in zip(names, names[1:] + names[:1], strict=True):
        calls += [
            (memories[name].conversation("t").read,),
            (memories[name].for_user(other).conversation("t").read,),
            (memories[name].conversations,),
            (memories[name].for_user(other).conversation("t").append, [HumanMessage("forged")]),
            (caller.service.for_user(name).conversation("t").count,),
        ]
    answers = iter(await gathered(calls))
    for name in names:
        own, foreign, listed, forged, counted = (next(answers) for _ in range(5))
        assert sorted(each.message.text for each in own) == [f"{n} of {name}" for n in range(5)]
        assert foreign == []
        assert [each.user_id for each in listed] == [name]
        assert isinstance(forged, PermissionDeniedError)
        assert counted == 5
    # The memory that lent its connections is still the server: it sees everyone, and must say whom.
    for name in names:
        assert await use(caller, caller.service, "count", user_id=name) == 5
    with pytest.raises(InvalidInputError, match="No user is named"):
        await use(caller, caller.service, "read")


@DATA_API
async def test_a_memory_that_lent_its_client_to_a_user_is_still_anonymous(caller: Caller, user_id: str) -> None:
    lender: SupabaseMemory = caller.as_token.__self__  # type: ignore[attr-defined]
    await use(caller, caller.as_token(token(user_id=user_id)), "append")
    with pytest.raises(PermissionDeniedError):
        await use(caller, lender, "read", user_id=user_id)


@pytest.mark.parametrize("color", ["sync", "async"])
async def test_a_pooled_connection_keeps_neither_role_nor_claims(cluster: Cluster, place: Place, color: str) -> None:
    with psycopg.connect(place.migrator, autocommit=True) as connection:
        connection.execute(
            "create or replace function public.test_whoami() returns json language sql as $$"
            " select json_build_object('pid', pg_backend_pid(), 'role', current_user, 'set', current_setting('role'),"
            " 'claims', coalesce(current_setting('request.jwt.claims', true), '')) $$;"
            " grant execute on function public.test_whoami() to authenticated, anon"
        )
    transport = PostgresTransport(place.migrator, pool_size=1)
    server = SupabaseMemory(transport)
    caller = Caller("direct", color, server, lambda access_token: server.for_token(verified(access_token)))

    async def whoami(memory: SupabaseMemory) -> dict[str, Any]:
        perform = memory._services.transport.aperform if color == "async" else None
        call = Call("test_whoami")
        answer: dict[str, Any] = await perform(call) if perform else memory._services.transport.perform(call)
        return answer

    try:
        before = await whoami(server)
        assert (before["set"], before["claims"]) == ("none", "")
        user = caller.as_token(token(user_id="u"))
        during = await whoami(user)
        assert (during["role"], json.loads(during["claims"])["sub"]) == ("authenticated", "u")
        assert during["pid"] == before["pid"]
        assert await whoami(server) == before
        # Nor after a call that failed half way, nor after one that was refused at once.
        with pytest.raises(PermissionDeniedError):
            await use(caller, user, "append", user_id=OWNER)
        assert await whoami(server) == before
        with pytest.raises(PermissionDeniedError):
            await use(caller, caller.as_token(token("anon", "u")), "read")
        assert await whoami(server) == before
    finally:
        await server.aclose()
        with psycopg.connect(place.migrator, autocommit=True) as connection:
            connection.execute("drop function public.test_whoami()")


# By SQL, on the tables themselves

OWNER, STRANGER, SECRET_TEXT = "owner", "stranger", "what-only-the-owner-may-see"
_CLAIMS = "select set_config('request.jwt.claims', %s, true), set_config('role', %s, true)"


@dataclass(frozen=True)
class Place:
    """A database of this file's own, in which the owner has one conversation with one message and its summary.

    Attributes:
        migrator: The address for the role that migrated it, which may change everything.
        session: The address for the role whose sessions act for users.
        conversation_id: The owner's conversation.
    """

    migrator: str
    session: str
    conversation_id: str


@pytest.fixture(scope="module", params=["supabase", "supabase with legacy grants and spaces", "plain postgres"])
def place(request: pytest.FixtureRequest, cluster: Cluster) -> Place:
    plain = request.param == "plain postgres"
    name = cluster.create_database(supabase=not plain, legacy_grants="legacy" in request.param)
    migrator = cluster.conn_string(name, "supabase_admin" if plain else "postgres")
    migrate(migrator, spaces="spaces" in request.param)
    with SupabaseMemory.from_conn_string(migrator) as memory:
        appended = memory.for_user(OWNER).conversation("t").append([HumanMessage(SECRET_TEXT, id="m")])
        assert appended.conversation_id is not None
        of_the_owner = {"p_user_id": OWNER, "p_thread_id": "t", "p_conversation_id": appended.conversation_id}
        told = {**FUNCTIONS["commit_summary"], **of_the_owner, "p_content": SECRET_TEXT}
        assert memory._services.transport.perform(Call("memory_commit_summary", told))["committed"]
        memory.for_user(OWNER).conversation("t").board.add("fact", SECRET_TEXT, actor="owner")
        memory.for_user(OWNER).conversation("t").board.edit_summary(SECRET_TEXT, actor="owner")
    return Place(migrator, migrator if plain else cluster.conn_string(name, "authenticator"), appended.conversation_id)


@contextmanager
def acting(connection: psycopg.Connection, role: str, subject: str | None) -> Iterator[None]:
    """What is done inside is done as PostgREST does it for the bearer of a token, and undone."""
    claims = {"role": role} if subject is None else {"role": role, "sub": subject}
    with connection.transaction(force_rollback=True):
        connection.execute(_CLAIMS, [json.dumps(claims), role])
        yield


def outcome(connection: psycopg.Connection, statement: bytes | sql.Composed, parameters: dict[str, str]) -> str:
    """The SQLSTATE if a statement is refused, otherwise how many rows it touched."""
    try:
        with connection.transaction():
            return f"{connection.execute(statement, parameters).rowcount} rows"
    except psycopg.Error as error:
        return str(error.sqlstate)


def leaks(
    connection: psycopg.Connection, place: Place, role: str, subject: str | None, only: str | None = None
) -> set[str]:
    """Every table, view and function of the database through which the owner's data come out; `only` asks one."""
    names = connection.execute(
        "select n.nspname, c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace"
        " where n.nspname in ('public', 'memory', 'memory_private') and c.relkind in ('r', 'v', 'm', 'p', 'f')"
    ).fetchall()
    queries = [
        (f"{schema}.{name}", sql.SQL("select r::text from {} r").format(sql.Identifier(schema, name)))
        for schema, name in names
    ]
    known = {
        "p_user_id": OWNER,
        "p_thread_id": "t",
        "p_agent_id": "default",
        "p_message_id": "m",
        "p_tokens": "-1",
        "p_retention": "{}",
    }
    within = {
        **known,
        "p_conversation_id": place.conversation_id,
        "p_sequence": "0",
        "p_after": "-1",
        "p_characters": "10",
        "p_messages": "10",
    }
    functions = connection.execute(
        "select n.nspname, p.proname, coalesce(p.proargnames[:p.pronargs - p.pronargdefaults], '{}'),"
        " p.pronargs - p.pronargdefaults, coalesce(p.proargnames[:p.pronargs], '{}')"
        " from pg_proc p join pg_namespace n on n.oid = p.pronamespace"
        " where n.nspname in ('public', 'memory', 'memory_private') and p.prokind = 'f'"
        " and p.prorettype not in ('trigger'::regtype, 'event_trigger'::regtype)"
    ).fetchall()
    for schema, name, required, number, arguments in functions:
        values = within if schema == "memory_private" else known
        if len(required) == number and set(required) <= set(values):
            given = [
                sql.SQL("{} => {}").format(sql.Identifier(argument), sql.Literal(values[argument]))
                for argument in arguments
                if argument in values
            ]
            call = sql.SQL("{}({})").format(sql.Identifier(schema, name), sql.SQL(", ").join(given))
            queries.append((f"{schema}.{name}()", sql.SQL("select r::text from {} r").format(call)))
    found = set()
    with acting(connection, role, subject):
        for name, query in queries:
            if only not in (None, name):
                continue
            try:
                with connection.transaction(force_rollback=True):
                    answer = str(connection.execute(query).fetchall())
            except psycopg.Error as error:
                # Not theirs to ask, or nothing that they see, or spaces are off.
                if error.sqlstate not in ("42501", "PT403", "PT404", "PT409"):
                    raise
                continue
            if any(each in answer for each in (SECRET_TEXT, place.conversation_id)):
                found.add(name)
    return found


ATTEMPTS = {
    "look at conversations": "select * from memory.conversations where user_id = %(owner)s",
    "look at messages": "select * from memory.conversation_messages where user_id = %(owner)s",
    "lock messages": "select * from memory.conversation_messages where user_id = %(owner)s for update",
    "begin a conversation for the owner": (
        "insert into memory.conversations (user_id, thread_id) values (%(owner)s, 'new')"
    ),
    "take the owner's conversation over": (
        "insert into memory.conversations (user_id, id, thread_id) values (%(owner)s, %(conversation)s, 'mine')"
        " on conflict (user_id, id) do update set thread_id = 'mine'"
    ),
    "write in the owner's name": (
        "insert into memory.conversation_messages (user_id, conversation_id, sequence, message_id, role, characters,"
        " tokens, payload) values (%(owner)s, %(conversation)s, 7, 'x', 'user', 0, 0,"
        ' \'{"type": "human", "data": {}}\')'
    ),
    "write into the owner's conversation": (
        "insert into memory.conversation_messages (user_id, conversation_id, sequence, message_id, role, characters,"
        " tokens, payload) values (%(me)s, %(conversation)s, 7, 'x', 'user', 0, 0,"
        ' \'{"type": "human", "data": {}}\')'
    ),
    "change a conversation": "update memory.conversations set thread_id = 'gone' where id = %(conversation)s",
    "change a message": "update memory.conversation_messages set text = 'gone' where message_id = 'm'",
    "take a message": "update memory.conversation_messages set user_id = %(me)s where message_id = 'm'",
    "delete a conversation": "delete from memory.conversations where id = %(conversation)s",
    "delete a message": "delete from memory.conversation_messages where message_id = 'm'",
    "look at summaries": "select * from memory.conversation_summaries where user_id = %(owner)s",
    "write a summary in the owner's name": (
        "insert into memory.conversation_summaries (user_id, conversation_id, number, from_sequence, to_sequence,"
        " message_ids, content, characters, tokens, covered_characters, covered_tokens)"
        " values (%(owner)s, %(conversation)s, 7, 0, 0, '{m}', 'forged', 6, 2, 6, 2)"
    ),
    "write a summary into the owner's conversation": (
        "insert into memory.conversation_summaries (user_id, conversation_id, number, from_sequence, to_sequence,"
        " message_ids, content, characters, tokens, covered_characters, covered_tokens)"
        " values (%(me)s, %(conversation)s, 7, 0, 0, '{m}', 'forged', 6, 2, 6, 2)"
    ),
    "change a summary": (
        "update memory.conversation_summaries set content = 'forged', characters = 6 where user_id = %(owner)s"
    ),
    "take a summary": "update memory.conversation_summaries set user_id = %(me)s where user_id = %(owner)s",
    "delete a summary": "delete from memory.conversation_summaries where user_id = %(owner)s",
    "commit a summary": (
        "select where (public.memory_commit_summary('t', %(conversation)s, -1, 0, 0, '[\"m\"]', 'forged', 2,"
        " p_user_id => %(owner)s) ->> 'committed')::boolean"
    ),
    "note a failure": "select where public.memory_fail_summary('t', 'forged', %(owner)s) ->> 'retry_at' is not null",
    "look at boards": "select * from memory.conversation_summary_boards where user_id = %(owner)s",
    "look at a board's items": "select * from memory.conversation_board_items where user_id = %(owner)s",
    "look at a board's history": "select * from memory.conversation_board_changes where user_id = %(owner)s",
    "change a board": "update memory.conversation_summary_boards set summary = 'forged'",
    "change a board's items": "update memory.conversation_board_items set text = 'forged'",
    "take a board's items": "update memory.conversation_board_items set user_id = %(me)s where user_id = %(owner)s",
    "delete a board's history": "delete from memory.conversation_board_changes where user_id = %(owner)s",
    "write an item in the owner's name": (
        "insert into memory.conversation_board_items (user_id, conversation_id, kind, text, digest, state,"
        " first_seen_at, last_seen_at, author)"
        " values (%(owner)s, %(conversation)s, 'fact', 'forged', 'x', 'current', now(), now(), 'me')"
    ),
    "write an item on the owner's board": (
        "insert into memory.conversation_board_items (user_id, conversation_id, kind, text, digest, state,"
        " first_seen_at, last_seen_at, author)"
        " values (%(me)s, %(conversation)s, 'fact', 'forged', 'x', 'current', now(), now(), 'me')"
    ),
    "revise a board": (
        "select where (public.memory_commit_board('t', %(conversation)s, -1, 0, 0, '[\"m\"]', 'forged', '',"
        " p_user_id => %(owner)s) ->> 'committed')::boolean"
    ),
    "read a board": "select where public.memory_board('t', %(owner)s) is not null",
    "read what a board is made from": "select where public.memory_pending_board('t', %(owner)s) is not null",
    "edit a board": "select public.memory_edit_board('t', 'regenerate', 'me', p_user_id => %(owner)s)",
    "name a conversation": "select public.memory_update('t', 'forged', '{}', %(owner)s)",
    "describe a summary": (
        "select where (public.memory_describe_summary('t', %(conversation)s, '[]', '[]', 0, %(owner)s)"
        " ->> 'described')::boolean"
    ),
    "take back what a board has": "select where memory_private.invalidate_board(%(owner)s, %(conversation)s, 0, 'm') is null",
    "take back what its items have": (
        "select where memory_private.delete_board_evidence(%(owner)s, %(conversation)s, 0, 'm') is null"
    ),
    "take back what is covered": "select where memory_private.invalidate_summaries(%(owner)s, %(conversation)s, 0) is null",
    "let messages expire": (
        "select where public.memory_forget_expired('{\"age\": 0.000001}', %(owner)s) ->> 'messages' <> '0'"
    ),
    "let everybody's messages expire": (
        "select where public.memory_forget_expired('{\"age\": 0.000001}') ->> 'messages' <> '0'"
    ),
    "keep less": "select where memory_private.delete_expired(%(owner)s, %(conversation)s, '{\"age\": 0.000001}') > 0",
    "look at turns": "select * from memory.conversation_turns where user_id = %(owner)s",
    "change turns": "update memory.conversation_turns set user_query = 'forged'",
    "empty the tables": "truncate memory.conversations cascade",
    "look at the queue": "select * from memory_private.work where user_id = %(owner)s",
    "look at the status": "select where public.memory_status(%(owner)s) <> '[]'",
    "look at everybody's status": "select where public.memory_status(p_state => 'due') <> '[]'",
    "ask for a summary": "select where public.memory_request('t', %(owner)s) ->> 'requested_at' is not null",
    "archive": "select where (public.memory_worker_archive('t', 1, %(owner)s) ->> 'archived')::boolean",
    "write into the queue": "insert into memory_private.work (user_id, conversation_id) values (%(me)s, %(conversation)s)",
    "take from the queue": "update memory_private.work set worker = 'me' where user_id = %(owner)s",
    "empty the queue": "delete from memory_private.work where user_id = %(owner)s",
    "look at the chores": "select * from memory_private.chores",
    "do a chore": "select public.memory_worker_chore('forged', 1)",
    "claim": "select where public.memory_worker_claim('me', p_settle_seconds => 0) <> '[]'",
    "revive": "select public.memory_worker_revive(%(owner)s)",
    "look for who is idle": "select where public.memory_worker_idle(-1e6) <> '[]'",
    "look for who is behind": "select public.memory_worker_rederive()",
    "count the queue": "select public.memory_worker_queue()",
    "list the users": "select public.memory_worker_users()",
    "examine the database": "select public.memory_worker_doctor()",
    "mark": "select memory_private.mark_work()",
    "look into the ledger": "select * from memory_private.migrations",
    "look at the installation": "select * from memory_private.installation",
    "rewrite the ledger": "delete from memory_private.migrations where name <> ''",
}

FOR_A_STRANGER = {
    **dict.fromkeys(ATTEMPTS, "0 rows"),
    "begin a conversation for the owner": "42501",
    "take the owner's conversation over": "42501",
    "write in the owner's name": "42501",
    "write into the owner's conversation": "23503",
    "write a summary in the owner's name": "42501",
    "write a summary into the owner's conversation": "23503",
    "write an item in the owner's name": "42501",
    "write an item on the owner's board": "23503",
    "edit a board": "PT404",
    "name a conversation": "PT404",
    "change turns": "55000",
    "empty the tables": "42501",
    **dict.fromkeys(
        (
            "write into the queue",
            "take from the queue",
            "empty the queue",
            "look at the chores",
            "do a chore",
            "claim",
            "archive",
            "revive",
            "look for who is idle",
            "look for who is behind",
            "count the queue",
            "list the users",
            "examine the database",
            "mark",
        ),
        "42501",
    ),
    "look into the ledger": "42501",
    "look at the installation": "42501",
    "rewrite the ledger": "42501",
}
FOR_NOBODY = {
    **FOR_A_STRANGER,
    "write into the owner's conversation": "42501",
    "write a summary into the owner's conversation": "42501",
    "write an item on the owner's board": "42501",
}
FOR_ANON = dict.fromkeys(ATTEMPTS, "42501")


def attempts(
    connection: psycopg.Connection, place: Place, role: str, subject: str | None, names: Iterable[str] = ATTEMPTS
) -> dict[str, str]:
    """What comes of everything one could try against the owner's rows, or of the attempts named."""
    parameters = {"owner": OWNER, "me": STRANGER, "conversation": place.conversation_id}
    results = {}
    for name in names:
        with acting(connection, role, subject):
            results[name] = outcome(connection, ATTEMPTS[name].encode(), parameters)
    return results


@pytest.mark.parametrize(
    ("role", "subject"),
    [("authenticated", STRANGER), ("authenticated", None), ("authenticated", ""), ("anon", None), ("anon", OWNER)],
    ids=["stranger", "nobody", "empty subject", "anon", "anon with the owner's subject"],
)
def test_nothing_in_the_database_lets_the_owners_rows_out(place: Place, role: str, subject: str | None) -> None:
    with psycopg.connect(place.session) as connection:
        assert leaks(connection, place, role, subject) == set()


@pytest.mark.parametrize(("role", "subject"), [("authenticated", OWNER), ("service_role", None)])
def test_the_probe_finds_the_owners_rows_for_who_may_see_them(place: Place, role: str, subject: str | None) -> None:
    with psycopg.connect(place.session) as connection:
        assert leaks(connection, place, role, subject) >= {
            "memory.conversations",
            "memory.conversation_messages",
            "memory.conversation_summaries",
            "memory.conversation_summary_boards",
            "memory.conversation_board_items",
            "memory.current_summaries",
            "public.memory_board()",
            "public.memory_pending_board()",
            "public.memory_read()",
            "public.memory_conversations()",
            "public.memory_context()",
            "public.memory_pending()",
            "public.memory_summaries()",
            "public.memory_due()",
        }


@pytest.mark.parametrize(
    ("role", "subject", "expected"),
    [
        ("authenticated", STRANGER, FOR_A_STRANGER),
        ("authenticated", None, FOR_NOBODY),
        ("anon", None, FOR_ANON),
        ("anon", OWNER, FOR_ANON),
    ],
    ids=["stranger", "nobody", "anon", "anon with the owner's subject"],
)
def test_every_attempt_on_the_owners_rows_fails(
    place: Place, role: str, subject: str | None, expected: dict[str, str]
) -> None:
    with psycopg.connect(place.session) as connection:
        assert attempts(connection, place, role, subject) == expected


@pytest.mark.parametrize(
    "table",
    ["conversations", "conversation_messages", "conversation_summaries", "conversation_board_items"],
)
def test_an_owner_cannot_give_a_row_away(place: Place, table: str) -> None:
    give = sql.SQL("update memory.{} set user_id = %(me)s where user_id = %(owner)s").format(sql.Identifier(table))
    with psycopg.connect(place.session) as connection, acting(connection, "authenticated", OWNER):
        assert outcome(connection, give, {"me": STRANGER, "owner": OWNER}) == "42501"


def test_an_owner_changes_their_own_rows_by_sql(place: Place) -> None:
    change = b"update memory.conversations set updated_at = now() where user_id = %(owner)s"
    with psycopg.connect(place.session) as connection, acting(connection, "authenticated", OWNER):
        assert outcome(connection, change, {"owner": OWNER}) == "1 rows"


def test_a_stranger_may_use_the_same_uuid_and_gains_nothing(place: Place) -> None:
    begin = b"insert into memory.conversations (user_id, id, thread_id) values (%(me)s, %(id)s, 't')"
    end = b"delete from memory.conversations where id = %(id)s"
    with psycopg.connect(place.session) as connection, acting(connection, "authenticated", STRANGER):
        names = {"me": STRANGER, "id": place.conversation_id}
        assert outcome(connection, begin, names) == "1 rows"
        assert outcome(connection, end, names) == "1 rows"  # the stranger's own, and no cascade beyond it
        connection.execute("select set_config('request.jwt.claims', %s, true)", [json.dumps({"sub": OWNER})])
        assert connection.execute("select text from memory.conversation_messages").fetchall() == [(SECRET_TEXT,)]
        assert connection.execute("select content from memory.conversation_summaries").fetchall() == [(SECRET_TEXT,)]


def test_migrating_again_opens_nothing(place: Place) -> None:
    migrate(place.migrator)
    with psycopg.connect(place.migrator) as connection:
        assert leaks(connection, place, "authenticated", STRANGER) == set()
        assert leaks(connection, place, "anon", None) == set()


# Controls: the probes above have teeth


@pytest.fixture
def breakable(place: Place) -> Iterator[psycopg.Connection]:
    """A connection of the migrator; what a test breaks over it is rolled back."""
    with psycopg.connect(place.migrator) as connection:
        yield connection
        connection.rollback()


@pytest.mark.parametrize(
    ("mistake", "way"),
    [
        (
            "create view public.all_messages as select * from memory.conversation_messages;"
            " grant select on public.all_messages to authenticated",
            "public.all_messages",
        ),
        (
            "create materialized view memory.cached as select * from memory.conversation_messages;"
            " grant select on memory.cached to authenticated",
            "memory.cached",
        ),
        (
            "create function public.all_of(p_user_id text) returns setof memory.conversation_messages language sql"
            " security definer set search_path = '' as"
            " $$ select * from memory.conversation_messages where user_id = p_user_id $$",
            "public.all_of()",
        ),
        ("alter function public.memory_read security definer", "public.memory_read()"),
        ("alter function public.memory_context security definer", "public.memory_context()"),
        ("alter function public.memory_pending security definer", "public.memory_pending()"),
        ("alter function public.memory_summaries security definer", "public.memory_summaries()"),
        ("alter function public.memory_due security definer", "public.memory_due()"),
        ("alter table memory.conversation_summaries disable row level security", "memory.conversation_summaries"),
        ("alter table memory.conversations disable row level security", "memory.conversations"),
        (
            "drop policy conversation_messages_select on memory.conversation_messages;"
            " create policy conversation_messages_select on memory.conversation_messages for select using (true)",
            "memory.conversation_messages",
        ),
        (
            "create policy one_more on memory.conversations for select to authenticated using (user_id <> '')",
            "memory.conversations",
        ),
        ("create table public.copy as select * from memory.conversations; grant all on public.copy to authenticated",
         "public.copy"),
    ],
    ids=["view", "materialized view", "definer", "read as definer", "context as definer", "pending as definer",
         "summaries as definer", "due as definer", "summaries without rls", "no rls", "open policy", "more policy",
         "copy"],
)  # fmt: skip
def test_the_probe_notices_a_way_out(breakable: psycopg.Connection, place: Place, mistake: str, way: str) -> None:
    assert leaks(breakable, place, "authenticated", STRANGER, only=way) == set()
    breakable.execute(mistake.encode())
    assert leaks(breakable, place, "authenticated", STRANGER, only=way) == {way}


def test_a_view_that_asks_as_its_reader_is_no_way_out(breakable: psycopg.Connection, place: Place) -> None:
    breakable.execute(
        "create view public.own_messages with (security_invoker = true) as"
        " select * from memory.conversation_messages; grant select on public.own_messages to authenticated"
    )
    assert leaks(breakable, place, "authenticated", STRANGER) == set()
    assert "public.own_messages" in leaks(breakable, place, "authenticated", OWNER)


def test_the_view_of_turns_is_no_way_out(breakable: psycopg.Connection, place: Place) -> None:
    rows = json.dumps([to_row(HumanMessage(SECRET_TEXT, id="q")), to_row(AIMessage(SECRET_TEXT, id="a"))])
    breakable.execute("select public.memory_append('turned', %s, %s)", [rows, OWNER])
    assert leaks(breakable, place, "authenticated", STRANGER) == set()
    assert leaks(breakable, place, "anon", OWNER) == set()
    assert "memory.conversation_turns" in leaks(breakable, place, "authenticated", OWNER)
    breakable.execute("alter view memory.conversation_turns reset (security_invoker)")
    assert "memory.conversation_turns" in leaks(breakable, place, "authenticated", STRANGER)


async def test_an_owner_lets_expire_what_is_theirs_alone(caller: Caller, user_id: str) -> None:
    names = [f"{user_id}-a", f"{user_id}-b"]
    for name in names:
        await caller(caller.service.for_user(name).conversation("t").add_turn, "q", "a")
    moment = Retention(max_age=timedelta(microseconds=1))
    stranger = caller.as_token(token(user_id=f"{user_id}-stranger"))
    owner = caller.as_token(token(user_id=names[0]))
    for asking in (stranger.for_user(names[0]), stranger):
        assert await caller(asking.forget_expired, retention=moment) == Receipt()
    theirs = stranger.for_user(names[0]).conversation("t")
    for verb in (theirs.turns.list, theirs.read):
        assert await caller(verb, retention=moment) == []
    with pytest.raises(PermissionDeniedError):
        await caller(theirs.append, [HumanMessage("x")], retention=moment)
    assert [await caller(caller.service.for_user(name).conversation("t").count) for name in names] == [2, 2]
    assert await caller(owner.for_user(names[1]).forget_expired, retention=moment) == Receipt()
    assert await caller(owner.forget_expired, retention=moment) == Receipt(1, 2)
    assert [await caller(caller.service.for_user(name).conversation("t").count) for name in names] == [0, 2]
    anonymous = caller.as_token(token("anon", names[1]))
    with pytest.raises(PermissionDeniedError):
        await caller(anonymous.for_user(names[1]).forget_expired, retention=moment)
    with pytest.raises(PermissionDeniedError):
        await caller(anonymous.for_user(names[1]).conversation("t").turns.list, retention=moment)
    assert await caller(caller.service.for_user(names[1]).conversation("t").count) == 2


@pytest.mark.parametrize(
    ("mistake", "attempt", "comes_through"),
    [
        ("alter function public.memory_forget_expired security definer", "let messages expire", "1 rows"),
        ("alter function public.memory_forget_expired security definer", "let everybody's messages expire", "1 rows"),
        ("alter table memory.conversation_messages disable row level security", "look at messages", "1 rows"),
        ("alter table memory.conversation_messages disable row level security", "delete a message", "1 rows"),
        ("alter table memory.conversation_messages disable row level security", "write in the owner's name", "1 rows"),
        ("create policy open on memory.conversations using (true)", "delete a conversation", "1 rows"),
        ("create policy open on memory.conversations using (true)", "change a conversation", "1 rows"),
        (
            "create policy open on memory.conversations using (true)",
            "take the owner's conversation over",
            "1 rows",
        ),
        (
            "create policy open on memory.conversations for insert with check (true)",
            "begin a conversation for the owner",
            "1 rows",
        ),
        (
            "alter table memory.conversation_messages drop constraint"
            " conversation_messages_user_id_conversation_id_fkey;"
            " alter table memory.conversations add unique (id);"
            " alter table memory.conversation_messages add foreign key (conversation_id)"
            " references memory.conversations (id)",
            "write into the owner's conversation",
            "1 rows",
        ),
        ("alter table memory.conversation_summaries disable row level security", "look at summaries", "1 rows"),
        ("alter table memory.conversation_summaries disable row level security", "change a summary", "1 rows"),
        ("alter table memory.conversation_summaries disable row level security", "delete a summary", "1 rows"),
        (
            "alter table memory.conversation_summaries disable row level security",
            "write a summary in the owner's name",
            "1 rows",
        ),
        (
            "alter table memory.conversation_summaries drop constraint"
            " conversation_summaries_user_id_conversation_id_fkey",
            "write a summary into the owner's conversation",
            "1 rows",
        ),
        (
            "alter function public.memory_commit_summary security definer; delete from memory.conversation_summaries;"
            " update memory.conversations set summarized_through = -1",
            "commit a summary",
            "1 rows",
        ),
        ("alter function public.memory_fail_summary security definer", "note a failure", "1 rows"),
        (
            "grant truncate on all tables in schema memory, memory_private to authenticated",
            "empty the tables",
            "-1 rows",
        ),
        ("alter table memory_private.work disable row level security", "look at the queue", "1 rows"),
        ("alter function public.memory_status security definer", "look at the status", "1 rows"),
        ("alter function public.memory_status security definer", "look at everybody's status", "1 rows"),
        (
            "alter function public.memory_worker_claim security definer;"
            " grant execute on function public.memory_worker_claim to authenticated",
            "claim",
            "1 rows",
        ),
        (
            "grant select on memory_private.migrations to authenticated;"
            " alter table memory_private.migrations disable row level security",
            "look into the ledger",
            f"{len(script.current().tables)} rows",
        ),
    ],
)
def test_the_attempts_notice_what_comes_through(
    breakable: psycopg.Connection, place: Place, mistake: str, attempt: str, comes_through: str
) -> None:
    breakable.execute(mistake.encode())
    results = attempts(breakable, place, "authenticated", STRANGER, [attempt])
    assert results[attempt] == comes_through != FOR_A_STRANGER[attempt]
