"""Deleting a user in Auth erases their data in the same transaction, by a trigger on `auth.users`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import psycopg
import pytest

from langchain_supabase_memory.adapters.schema.migrate import migrate
from tests.each_case import each_case

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.services.postgres import Cluster

PAGE = Path(__file__).parents[2] / "docs" / "retention.md"

TURN = '[{"role": "user", "content": "Tea?"}, {"role": "assistant", "content": "Yes."}]'
KEPT = "memory.promotions"
"""What was moved to another database is found there by it; nothing of what was said."""

ROWS = """
memory.gone_messages (user_id, conversation_id, message_id, forgotten) select user_id, id, 'g', true from c;
memory.message_blocks (user_id, conversation_id, block, characters, tokens, turns) select user_id, id, 0, 8, 10, 1 from c;
memory.superseded_messages (
  user_id, conversation_id, sequence, message_id, role, text, characters, tokens, created_at, payload)
  select user_id, id, 7, 's', 'user', 'Tea', 3, 5, now(), '{"type": "human", "data": {}}' from c;
memory.conversation_summaries (
  user_id, conversation_id, number, from_sequence, to_sequence, message_ids, content, characters, tokens,
  covered_characters, covered_tokens)
  select user_id, id, 1, 0, 1, '{q,a}', 'Tea.', 4, 2, 8, 10 from c;
memory.summary_embeddings (user_id, conversation_id, number, model, dimensions, embedding)
  select user_id, id, 1, 'm', 2, '[1,0]' from c;
memory.working_memory_chunks (
  user_id, conversation_id, place, part, id, from_sequence, to_sequence, message_ids, stretch, type, role, said_at,
  content, characters, tokens, lexemes, terms, importance)
  select user_id, id, 0, 1, id, 0, 0, '{q}', 0, 'question', 'user', now(), 'Tea?', 4, 2, 1, 1, 0.5 from c;
memory.chunk_postings (user_id, lexeme, conversation_id, first, postings)
  select user_id, 'tea', id, 0, '{32769}' from c;
memory.chunk_embeddings (user_id, conversation_id, place, part, model, dimensions, embedding)
  select user_id, id, 0, 1, 'm', 2, '[1,0]' from c;
memory.chunk_ratings (user_id, conversation_id, from_sequence, to_sequence, part, importance, rated_by)
  select user_id, id, 0, 0, 1, 1, 'them' from c;
memory.conversation_summary_boards (user_id, conversation_id, summary) select user_id, id, 'Tea.' from c;
memory.conversation_board_items (
  user_id, conversation_id, kind, text, digest, state, first_seen_at, last_seen_at, author)
  select user_id, id, 'fact', 'Tea.', 'd', 'current', now(), now(), 'them' from c;
memory.conversation_board_changes (user_id, conversation_id, version, place, action, changed_by)
  select user_id, id, 1, 0, 'add', 'them' from c;
memory.store_items (user_id, key, namespace, value) select user_id, 'k', '{facts}', '{"likes": "tea"}' from c;
memory.store_vectors (user_id, path, key, model, dimensions, number, field, embedding)
  select i.user_id, i.path, i.key, 'm', 2, 1, 'likes', '[1,0]' from memory.store_items i join c using (user_id);
memory.opt_outs (user_id, topic, folded, created_by) select user_id, 'tea', 'tea', 'them' from c;
memory.opt_out_undos (user_id, opt_out_id, conversation_id, rows, after)
  select o.user_id, o.id, c.id, '{}', '{}' from memory.opt_outs o join c using (user_id);
memory.control_changes (user_id, action, changed_by) select user_id, 'opt_out', 'them' from c;
memory.context_manifests (user_id, conversation_id, sequence, from_sequence, pack)
  select user_id, id, 1, 0, '[[0]]' from c;
memory.promotions (user_id, target, memory_id, item_id, evidence) select user_id, 'elsewhere', id, id, '{}' from c;
memory.profile_items (
  user_id, id, kind, subject, value, chain, digest, basis, state, author, author_kind, evidence, first_seen_at, last_seen_at)
  select user_id, id, 'preference', 'drink', 'tea', 'c', 'd', 'inferred', 'proposed', 'them', 'model', 1, now(), now() from c;
memory.profile_evidence (user_id, item_id, conversation_id, message_id, sequence, place, quote, said_at)
  select user_id, id, id, 'q', 0, 1, 'Tea', now() from c;
memory.consents (user_id, purpose, allowed, changed_by) select user_id, 'tone', false, 'them' from c;
memory.topics (user_id, id, words) select user_id, id, '{tea}' from c;
memory.topic_stretches (user_id, conversation_id, stretch, topic_id, words, terms) select user_id, id, 0, id, '{tea}', '{tea}' from c;
memory.indexed_stretches (user_id, conversation_id, stretch) select user_id, id, 0 from c;
memory.topic_clusterings (user_id) select user_id from c;
memory.usage_days (user_id, agent_id, day) select user_id, 'default', '2026-11-27' from c;
memory.usage_cursors (user_id, conversation_id) select user_id, id from c;
memory.reads (user_id, conversation_id, from_sequence, part, last_at) select user_id, id, 0, 1, now() from c;
memory_private.work (user_id, conversation_id) select user_id, id from c on conflict do nothing;
memory_private.drafts (user_id, conversation_id, digest, answer) select user_id, id, 'd', 'Tea.' from c
"""
"""A row of each table that no append makes; c is the user's conversation."""


def forgetting() -> str:
    """The trigger, as the page gives it."""
    (found,) = re.findall(r"^```sql\n(create trigger .*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    return str(found)


@pytest.fixture(scope="module")
def own(cluster: Cluster) -> str:
    """A database of this file's own, in which `postgres` has put the trigger on the table of Supabase Auth."""
    name = cluster.migrated_database()
    cluster.execute(forgetting(), database=name)
    return name


@pytest.fixture
def auth(cluster: Cluster, own: str) -> Iterator[psycopg.Connection]:
    """Supabase Auth, which owns its table and may do nothing in the schemas of the memory."""
    with psycopg.connect(cluster.conn_string(own, "supabase_auth_admin"), autocommit=True) as connection:
        yield connection


@pytest.fixture
def server(cluster: Cluster, own: str) -> Iterator[psycopg.Connection]:
    """Who sees every row."""
    with psycopg.connect(cluster.conn_string(own, "supabase_admin"), autocommit=True) as connection:
        yield connection


def signed_up(server: psycopg.Connection) -> str:
    """A new user, with a row in every table."""
    user_id = str(uuid4())
    server.execute("insert into auth.users (id, email) values (%s, 'them@example.com')", [user_id])
    server.execute("select public.memory_append('t', %s, %s)", [TURN, user_id])
    for row in ROWS.split(";"):
        mine = f"with c as (select * from memory.conversations where user_id = '{user_id}')"
        server.execute(f"{mine} insert into {row}".encode())
    return user_id


def row_counts(server: psycopg.Connection, user_id: str) -> dict[str, int]:
    """Return the number of rows of a user in each table, apart from those about spaces: test_contributions.py has them."""
    tables = server.execute(
        "select format('%I.%I', n.nspname, c.relname) from pg_class c join pg_namespace n on n.oid = c.relnamespace"
        " join pg_attribute a on a.attrelid = c.oid and a.attname = 'user_id'"
        " where c.relkind in ('r', 'p') and n.nspname in ('memory', 'memory_private')"
        " and c.relname not in ('spaces', 'memberships', 'invitations', 'contributions')"
    ).fetchall()
    counts = {}
    for (table,) in tables:
        found = server.execute(f"select count(*) from {table} where user_id = %s".encode(), [user_id]).fetchone()
        counts[table] = found[0] if found else 0
    return counts


def delete(auth: psycopg.Connection, *user_ids: str) -> None:
    auth.execute("delete from auth.users where id = any (%s::uuid[])", [list(user_ids)])


def test_who_is_deleted_is_in_no_table_and_nobody_else_is_touched(
    auth: psycopg.Connection, server: psycopg.Connection
) -> None:
    one, other = signed_up(server), signed_up(server)
    before = row_counts(server, other)
    assert min(row_counts(server, one).values()) > 0, "a row in every table"
    delete(auth, one)
    assert {table for table, rows in row_counts(server, one).items() if rows} == {KEPT}
    assert row_counts(server, other) == before


def test_several_are_deleted_at_once(auth: psycopg.Connection, server: psycopg.Connection) -> None:
    several = [signed_up(server) for _ in range(3)]
    stays = signed_up(server)
    delete(auth, *several)
    assert [sum(row_counts(server, each).values()) for each in several] == [1, 1, 1]
    assert min(row_counts(server, stays).values()) > 0


def test_who_is_not_deleted_after_all_is_remembered(auth: psycopg.Connection, server: psycopg.Connection) -> None:
    user_id = signed_up(server)
    before = row_counts(server, user_id)
    with auth.transaction(force_rollback=True):
        delete(auth, user_id)
    assert row_counts(server, user_id) == before
    auth.execute("update auth.users set deleted_at = now() where id = %s", [user_id])
    assert row_counts(server, user_id) == before, "a soft deletion keeps the user"


def test_who_has_no_memory_is_deleted_too(auth: psycopg.Connection, server: psycopg.Connection) -> None:
    user_id = str(uuid4())
    server.execute("insert into auth.users (id) values (%s)", [user_id])
    delete(auth, user_id)
    found = server.execute("select count(*) from auth.users where id = %s", [user_id]).fetchone()
    assert found == (0,)


def test_a_large_history_goes_whole(auth: psycopg.Connection, server: psycopg.Connection) -> None:
    user_id = signed_up(server)
    for thread in range(20):
        server.execute(
            "select public.memory_append(%s, (select json_agg(json_build_object('role', 'user', 'content', 'tea ' || n))"
            " from generate_series(1, 1000) n), %s)",
            [f"long-{thread}", user_id],
        )
    assert row_counts(server, user_id)["memory.conversation_messages"] == 20_002
    delete(auth, user_id)
    assert {table for table, rows in row_counts(server, user_id).items() if rows} == {KEPT}


def test_supabase_auth_may_do_nothing_else_here(auth: psycopg.Connection, server: psycopg.Connection) -> None:
    user_id = signed_up(server)
    for statement in (
        "select * from memory.conversations",
        "delete from memory.conversations",
        "select public.memory_forget(p_user_id => %s, p_everything => true)",
        "create trigger t after delete on auth.users execute function memory_private.forget_deleted_user()",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            auth.execute(statement.encode(), [user_id] if "%s" in statement else None)
    assert min(row_counts(server, user_id).values()) > 0


def test_nobody_named_is_not_who_deletes(server: psycopg.Connection, own: str) -> None:
    """A trigger on a table whose id may be null forgets nobody, and not the caller."""
    user_id = signed_up(server)
    before = row_counts(server, user_id)
    server.execute("create table public.members (id uuid); insert into public.members values (null)")
    server.execute(
        "create trigger forget after delete on public.members for each row"
        " execute function memory_private.forget_deleted_user()"
    )
    try:
        with server.transaction():
            server.execute("select set_config('request.jwt.claims', %s, true)", [f'{{"sub": "{user_id}"}}'])
            server.execute("delete from public.members")
        assert row_counts(server, user_id) == before
    finally:
        server.execute("drop table public.members")


CHANGED = """
create or replace function public.memory_schema() returns jsonb language sql as 'select ''{"code": "older"}''::jsonb'
"""


@each_case("code", ["the same", "another"])
def test_the_trigger_outlives_an_upgrade(cluster: Cluster, code: str) -> None:
    name = cluster.migrated_database()
    cluster.execute(forgetting(), database=name)
    with (
        psycopg.connect(cluster.conn_string(name, "supabase_admin"), autocommit=True) as server,
        psycopg.connect(cluster.conn_string(name, "supabase_auth_admin"), autocommit=True) as auth,
    ):
        if code == "another":
            server.execute(CHANGED)
            # What an older release did there is not what is done after the upgrade.
            server.execute(
                "create or replace function memory_private.forget_deleted_user() returns trigger language plpgsql"
                " security definer set search_path = '' as 'begin return null; end'"
            )
        migrate(cluster.conn_string(name))
        user_id = signed_up(server)
        delete(auth, user_id)
        assert {table for table, rows in row_counts(server, user_id).items() if rows} == {KEPT}


def test_without_the_trigger_nobody_is_forgotten(cluster: Cluster) -> None:
    """And whom no trigger calls is replaced as every other function."""
    name = cluster.migrated_database()
    cluster.execute(forgetting(), database=name)
    cluster.execute("drop trigger forget_deleted_user on auth.users", database=name, superuser=True)
    cluster.execute(CHANGED, database=name, superuser=True)
    migrate(cluster.conn_string(name))
    with psycopg.connect(cluster.conn_string(name, "supabase_admin"), autocommit=True) as server:
        user_id = signed_up(server)
        delete(server, user_id)
        assert min(row_counts(server, user_id).values()) > 0
