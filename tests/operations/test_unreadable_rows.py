"""A user's writes to their own rows, by any means, never stop another user.

Every column of every table that a user may write is tried with wrong types, nulls, huge and deep values, over SQL and
over the Data API. Values that the tables reject do no harm; after values that they accept, everything still works.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import httpx
import psycopg
import pytest
from click.testing import CliRunner
from langchain_core.messages import AIMessage, HumanMessage
from psycopg import sql

from langchain_supabase_memory import MemoryConfig, SupabaseMemory, SupabaseStore, Worker
from langchain_supabase_memory.cli.application import commands
from langchain_supabase_memory.errors import SupabaseMemoryError
from langchain_supabase_memory.language.extractive import ExtractiveSummarizer
from langchain_supabase_memory.language.messages import content
from langchain_supabase_memory.settings import BoardPolicy, ContextBudget, SummaryPolicy
from tests.embedders import WordEmbedder
from tests.owners import conversation_of
from tests.services.data_api import DataApi, token
from tests.services.postgres import Cluster

POISONER, HONEST = "poisoner", "honest"


def nested(levels: int) -> str:
    return "[" * levels + "]" * levels


def human(content: Any, **more: Any) -> str:
    return json.dumps({"type": "human", "data": {"type": "human", "content": content, "id": "m0", **more}})


_DOCUMENTS: Final = (
    None, "null", "[]", "{}", '"x"', "1", '{"type": 1, "data": {}}', '{"type": "human", "data": []}',
    '{"type": "human", "data": {}}', '{"type": "future", "data": {"content": "said in future"}}', human(5),
    human([None, 1, {"type": 5}, {"type": "image"}]), human("x", additional_kwargs=[1]), human("a\\u0000b"),
    '{"type": "ai", "data": {"content": "", "tool_calls": [{"name": null}]}}',
    '{"type": "tool", "data": {"content": {"a": 1}, "tool_call_id": 7}}',
    human(nested(50)), f'{{"type": "human", "data": {{"content": {nested(90)}}}}}',
    f'{{"type": "human", "data": {{"content": {nested(200)}}}}}', nested(5000),
    human({"$python": "datetime", "value": "never"}), human("x" * 300_000),
)  # fmt: skip
VALUES: Final[dict[str, tuple[str | None, ...]]] = {
    "text": (None, "", "a\nb", "\x1b[2J", "x" * 600, "漢" * 400, "\u202e\u2028", "x" * 200_000, "nonsense", "'"),
    "uuid": (None, "00000000-0000-0000-0000-000000000000", "nonsense"),
    "_uuid": (None, "{}", "{NULL}", "{00000000-0000-0000-0000-000000000000}"),
    "int8": (None, "-1", "-5", "0", "7", "9007199254740993", "9223372036854775807", "x"),
    "int4": (None, "-1", "0", "2147483647", "1.5"),
    "int2": (None, "-1", "0", "32767"),
    "_float4": (None, "{}", "{NULL}", "{NaN}", "{-1,2}", "{{1},{2}}"),
    "float4": (None, "NaN", "Infinity", "-1", "0.5", "1e30"),
    "float8": (None, "NaN", "Infinity", "-Infinity", "-1", "1e300", "5"),
    "bool": (None, "true", "false", "perhaps"),
    "timestamptz": (None, "infinity", "-infinity", "0044-03-15 BC", "294276-01-01", "9998-12-31", "0002-01-01 12:00"),
    "json": _DOCUMENTS,
    "jsonb": _DOCUMENTS,
    "_text": (None, "{}", "{NULL}", "{{a},{b}}", '{""}', "{a,b,NULL}", "{" + ",".join(["x" * 50] * 5000) + "}"),
    "_int8": (None, "{}", "{NULL}", "{-1}", "{9223372036854775807}", "{{1},{2}}"),
    "_int4": (None, "{}", "{NULL}", "{-1}", "{{1},{2}}"),
    "_int4range": (
        None,
        "{}",
        "{NULL}",
        '{"[-1,0)"}',
        "{empty}",
        '{"(,)"}',
        '{"[1,1000000000)"}',
        '{{"[1,3)"},{"[5,7)"}}',
    ),
    "tsvector": (None, "", "word:1"),
    "halfvec": (None, "[1]", "[1,2,3]", "[NaN]"),
}


@dataclass
class Site:
    """A database of its own, with everything that the memory can hold of one user, and an honest one beside.

    Attributes:
        address: For the role that migrated it.
        server: A memory with a server's rights.
        api: The Data API over it, with the tables exposed.
    """

    address: str
    server: SupabaseMemory
    api: DataApi

    def use(self, user_id: str, *, writes: bool = True) -> None:
        """Do what an application does for a user; whatever they have written, nothing raises but our own errors.

        What holds the conversation together raises nothing at all.
        """
        mine: dict[str, Any] = {"thread_id": "t", "user_id": user_id}
        memory = self.server
        talk = conversation_of(memory, **mine)
        if writes:
            talk.append([HumanMessage("Once more, about the kiln."), AIMessage("Gladly.")])
            assert talk.read(last=5)
        assert talk.context("What of the kiln?", budget=ContextBudget(characters=3000)).prompt
        for verb in (talk.coverage, talk.turns.list, talk.board.read, talk.summaries.list, talk.chunks.list):
            verb()
        memory.for_user(user_id).conversations()
        store = SupabaseStore(memory.for_user(user_id))
        for ask in (
            lambda: talk.context("What of the kiln?", query="the kiln"),
            lambda: talk.recall("kiln"),
            lambda: memory.for_user(user_id).recall_summaries("kiln"),
            lambda: memory.for_user(user_id).privacy.changes(),
            lambda: memory.for_user(user_id).privacy.opt_outs(),
            lambda: memory.for_user(user_id).rollout.comparisons("t"),
            lambda: talk.manifests(),
            lambda: memory.for_user(user_id).rollout.report(),
            lambda: store.search(("notes",), query="kiln", filter={"n": {"$gt": 0}}),
            lambda: store.list_namespaces(),
            lambda: store.get(("notes",), "one"),
        ):
            if user_id == HONEST:
                ask()
            else:
                with suppress(SupabaseMemoryError):
                    ask()


DATA_API = pytest.mark.not_on_citus("goes through the Data API as a signed-in user")


@pytest.fixture(scope="module")
def site(cluster: Cluster) -> Iterator[Site]:
    name = cluster.migrated_database()
    address = cluster.conn_string(name)
    server = SupabaseMemory.from_conn_string(
        address,
        model=ExtractiveSummarizer(),
        embeddings=WordEmbedder(),
        config=MemoryConfig(
            policy=SummaryPolicy(messages=6, keep_messages=2), board_policy=BoardPolicy(update_frequency=2)
        ),
    )
    for user_id in (POISONER, HONEST):
        fill(server, address, user_id)
    api = DataApi(cluster, name, schemas="public,memory")
    with server:
        yield Site(address, server, api.start())
    api.stop()


def fill(memory: SupabaseMemory, address: str, user_id: str) -> None:
    """A row in every table of users."""
    mine: dict[str, Any] = {"thread_id": "t", "user_id": user_id}
    conversation = conversation_of(memory, **mine)
    for turn in range(8):
        asked = HumanMessage(f"My kiln number {turn} needs 3 shelves by May.", id=f"m{turn}")
        conversation.append([asked, AIMessage("Noted.", id=f"a{turn}")])
    conversation.summaries.make()
    conversation.summaries.complete()
    conversation.index()
    conversation.summaries.index()
    conversation.board.add("fact", "The kiln is red.", actor="ana")
    chunk = conversation.chunks.list()[0]
    memory.for_user(user_id).privacy.rate(chunk, actor="ana", importance=0.9)
    memory.for_user(user_id).privacy.opt_out(actor="ana", topic="glaze")
    conversation.forget_message("a7")
    SupabaseStore(memory.for_user(user_id)).put(("notes",), "one", {"text": "kiln", "n": 1})
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(
            "insert into memory.promotions (user_id, target, memory_id, item_id, evidence)"
            " select user_id, 'long', gen_random_uuid(), gen_random_uuid(), array[gen_random_uuid()]"
            " from memory.conversations where user_id = %s",
            [user_id],
        )
        connection.execute(
            "insert into memory.context_manifests (user_id, conversation_id, sequence, from_sequence, comparison)"
            " select user_id, id, 1, 1, %s from memory.conversations where user_id = %s",
            ['{"stage": "parallel", "old_messages": 1, "old_tokens": 1, "old_characters": 1, "old_ms": 1}', user_id],
        )
        connection.execute(
            "insert into memory.context_manifests (user_id, conversation_id, sequence, from_sequence, pack)"
            " select user_id, id, 3, 2, '[[0,0,0,1],[1,2,3,1,1,1,0,1,-1]]' from memory.conversations where user_id = %s",
            [user_id],
        )


_COLUMNS: Final = """
select c.relname, a.attname, t.typname from pg_attribute a
join pg_class c on c.oid = a.attrelid join pg_type t on t.oid = a.atttypid
where c.relnamespace = 'memory'::regnamespace and c.relkind = 'r' and a.attnum > 0 and not a.attisdropped
  and a.attgenerated = '' and has_table_privilege('authenticated', c.oid, 'update')
order by c.relname, a.attnum
"""


def columns(site: Site) -> list[tuple[str, str, str]]:
    """Every column that a user may write: table, name, type."""
    with psycopg.connect(site.address) as connection:
        return connection.execute(_COLUMNS).fetchall()


def tried(connection: psycopg.Connection, table: str, column: str, kind: str, value: str | None) -> bool:
    """Whether the poisoner, signed in, may write a value into the newest of their rows."""
    statement = sql.SQL(
        "update memory.{table} set {column} = {value}::{kind} where ctid = ("
        " select ctid from memory.{table} where user_id = {user} order by ctid desc limit 1)"
    ).format(
        table=sql.Identifier(table), column=sql.Identifier(column), value=sql.Literal(value),
        kind=sql.Identifier(kind) if kind != "halfvec" else sql.SQL("extensions.halfvec"), user=sql.Literal(POISONER),
    )  # fmt: skip
    claims = json.dumps({"role": "authenticated", "sub": POISONER})
    try:
        with connection.transaction():
            connection.execute(
                "select set_config('request.jwt.claims', %s, true), set_config('role', 'authenticated', true)", [claims]
            )
            connection.execute(statement)
    except psycopg.Error:
        return False
    return True


async def goes_on(site: Site, worker: Worker) -> None:
    """What looks at everybody's rows."""
    site.server.work.status()
    site.server.work.unreadable()
    site.server.work.summarize_due()
    site.server.work.index_due()
    site.server.forget_expired()
    assert not (await worker.drain()).outcomes.get("error")


@DATA_API
@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_whatever_a_user_writes_by_sql_everything_goes_on(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)
    worker = Worker(site.server)
    taken: dict[str, list[str]] = {}
    with psycopg.connect(site.address, autocommit=True) as connection:
        last = None
        for table, column, kind in columns(site):
            accepted = [value for value in VALUES[kind] if tried(connection, table, column, kind, value)]
            taken[f"{table}.{column}"] = [repr(value)[:40] for value in accepted]
            if accepted:
                await goes_on(site, worker)
                site.use(POISONER)
            if table != last:
                site.use(HONEST)
                last = table
    site.use(HONEST)
    assert len(taken) > 180


@DATA_API
def test_the_data_api_refuses_the_same(site: Site) -> None:
    """Values as JSON; afterwards everything goes on."""
    headers = {
        "Authorization": f"Bearer {token(user_id=POISONER)}",
        "Content-Profile": "memory",
        "Prefer": "return=minimal",
    }
    statuses: dict[int, int] = {}
    with httpx.Client(base_url=site.api.url, headers=headers, timeout=30) as client:
        for table, column, kind in columns(site):
            for value in VALUES[kind][::2]:
                body: Any = value
                if kind in ("json", "jsonb") and value is not None and len(value) < 4000:
                    with suppress(ValueError, RecursionError):
                        body = json.loads(value)
                answer = client.patch(f"/{table}", params={"user_id": f"eq.{POISONER}"}, json={column: body})
                statuses[answer.status_code] = statuses.get(answer.status_code, 0) + 1
                assert answer.status_code < 500 or "54001" in answer.text, (table, column, answer.text[:200])
    assert statuses[204] > 200
    assert statuses[400] > 200
    site.use(HONEST)
    site.use(POISONER, writes=False)  # what numbers them is theirs, and may be spoilt


UNGUARD: Final = """
do $$
declare
  v_each record;
begin
  for v_each in select conname, conrelid::regclass as relation from pg_constraint
                where contype = 'c' and connamespace = 'memory'::regnamespace
  loop
    execute format('alter table %s drop constraint %I', v_each.relation, v_each.conname);
  end loop;
end $$
"""
WEIGHED: Final = """
create or replace function memory_private.checked_message_bytes(
  p_payload json, p_text text, p_metadata jsonb, p_images jsonb, p_characters integer, p_tokens integer
) returns integer language sql immutable set search_path = '' as 'select 100';
"""


@pytest.fixture(scope="module")
def without_guards(cluster: Cluster, own: str) -> str:
    """The address of a database without the tables' guards, as if something got through."""
    address = cluster.conn_string(own)
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(UNGUARD)
        connection.execute(WEIGHED)  # a transaction of its own, as Citus wants it
    return address


@pytest.fixture
def unguarded(without_guards: str) -> Iterator[tuple[SupabaseMemory, str]]:
    """A memory of that database, with a talk of a user and of another and nothing else, and its address."""
    address = without_guards
    with psycopg.connect(address, autocommit=True) as connection:
        for table in ("memory.conversations", "memory_private.owners", "memory_private.chores"):
            connection.execute(f"delete from {table}".encode())
    with SupabaseMemory.from_conn_string(
        address, model=ExtractiveSummarizer(), config=MemoryConfig(policy=SummaryPolicy(messages=6, keep_messages=2))
    ) as memory:
        for user_id in (POISONER, HONEST):
            for turn in range(10):
                said = [HumanMessage(f"My kiln number {turn}.", id=f"m{turn}"), AIMessage("Noted.", id=f"a{turn}")]
                memory.for_user(user_id).conversation("t").append(said)
        yield memory, address


ODD: Final = [value for value in _DOCUMENTS if value is not None and "\\u0000" not in value]


@pytest.mark.not_on_citus("mends a row by an update of a payload, whose trigger on the node lacks the other tables")
@pytest.mark.parametrize("payload", ODD, ids=range(len(ODD)))
async def test_a_row_that_cannot_be_read_is_set_aside_and_given_back(
    unguarded: tuple[SupabaseMemory, str], payload: str, caplog: pytest.LogCaptureFixture
) -> None:
    memory, address = unguarded
    mine: dict[str, Any] = {"thread_id": "t", "user_id": POISONER}
    change = "update memory.conversation_messages set payload = %s where user_id = %s and message_id = 'm3'"
    with psycopg.connect(address, autocommit=True) as connection:
        row = connection.execute(
            "select payload::text from memory.conversation_messages where message_id = 'm3'"
        ).fetchone()
        connection.execute(change, [payload, POISONER])
        caplog.set_level(logging.WARNING)
        conversation = conversation_of(memory, **mine)
        try:
            found = conversation.read()
        except SupabaseMemoryError:
            assert payload == nested(5000), "that alone no reader of JSON can take; it is the user's own page"
            found = []
        aside = [each for each in found if each.unreadable is not None]
        conversation.read(from_sequence=10)
        pack = (
            conversation.context(policy=SummaryPolicy(mode="background"), budget=ContextBudget(characters=30_000))
            if found
            else None
        )
        await Worker(memory).drain()
        assert memory.for_user(HONEST).conversation("t").coverage().ranges[-1].to_sequence == 19
        assert memory.for_user(HONEST).conversation("t").summaries.list(), "another's work is done"
        if not found:
            return
        assert len(found) == 20
        listed = memory.for_user(POISONER).work.unreadable()
        said = [record for record in caplog.records if "cannot be read" in record.getMessage()]
        assert [each.sequence for each in listed] == [each.sequence for each in aside]
        assert len(said) == len(listed), "once, whoever reads it"
        assert memory.work.queue().unreadable_messages == len(listed)
        assert not listed or "message 6 of user 'poisoner', agent 'default', thread 't'" in said[0].getMessage()
        if listed and str(getattr(aside[0].message, "content", "")) == content.HIDDEN:
            assert pack is not None
            assert (6, 6, "it cannot be read") in pack.omitted
            assert conversation.coverage().range_of(6).reason == "it cannot be read"
            assert conversation.summaries.list(), "the rest is summarized"
        caplog.clear()
        conversation.read()
        assert not caplog.records
        # Mended, by SQL: it is shown, summarized and indexed like any other.
        assert row is not None
        connection.execute(change, [row[0], POISONER])
        assert memory.work.unreadable() == []
        assert conversation.read()[6].unreadable is None
        await Worker(memory).drain()
        assert conversation.coverage().range_of(6).reason != "it cannot be read"
        conversation.index()
        assert not listed or any("kiln number 3" in each.content for each in conversation.chunks.list())


def test_the_command_lists_what_cannot_be_read(unguarded: tuple[SupabaseMemory, str]) -> None:
    memory, address = unguarded
    run = CliRunner()
    assert "No unreadable messages" in run.invoke(commands, ["unreadable", "--database-url", address]).output
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("update memory.conversation_messages set payload = '[]' where message_id in ('m3', 'a3')")
    for user_id in (POISONER, HONEST):
        memory.for_user(user_id).conversation("t").read()
    shown = run.invoke(commands, ["unreadable", "--database-url", address, "--user", POISONER]).output
    assert shown.splitlines() == [
        f"message {number} of user 'poisoner', agent 'default', thread 't': TypeError" for number in (6, 7)
    ]
    listed = json.loads(
        run.invoke(commands, ["unreadable", "--database-url", address, "--json", "--limit", "3"]).output
    )
    assert (len(listed["messages"]), listed["more"]) == (3, True)
    assert "4 messages cannot be read" in run.invoke(commands, ["status", "--database-url", address]).output
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("update memory.conversations set thread_id = %s where thread_id = 't'", ["t\u202e"])
    for form in ([], ["--json"]):
        shown = run.invoke(commands, ["unreadable", "--database-url", address, *form]).output
        assert shown.isascii(), "nothing in it is unseen"
        assert "\\u202e" in shown
