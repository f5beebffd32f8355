"""The catalog: rules for every table and function of the schema, for security and distribution by owner.

A table begins its key with its owner, or is a reference table. Each check has a control that shows that it would fail.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import psycopg
import pytest

from langchain_supabase_memory.adapters.schema.migrate import migrate
from langchain_supabase_memory.adapters.transports.response_shapes import SHAPES
from tests.each_case import each_case

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.services.postgres import Cluster

_OURS = """
with ours as (
  select c.oid, c.oid::regclass::text as name, c.relnamespace::regnamespace::text as schema, c.relkind,
    c.relrowsecurity, c.relforcerowsecurity,
    starts_with(coalesce(obj_description(c.oid, 'pg_class'), ''), 'Reference table. ') as is_reference,
    (select a.attnum from pg_attribute a where a.attrelid = c.oid and a.attname = 'user_id') as owner
  from pg_class c where c.relnamespace::regnamespace::text in ('memory', 'memory_private')
), code as (
  select p.oid, p.oid::regprocedure::text as name, p.proname, p.pronamespace::regnamespace::text as schema, p.prosecdef,
    p.proconfig, p.prosqlbody, p.proowner, p.prorettype, p.prosrc,
    coalesce(p.proacl, acldefault('f', p.proowner)) as acl
  from pg_proc p
  where p.pronamespace::regnamespace::text in ('memory', 'memory_private')
     or (p.pronamespace = 'public'::regnamespace and starts_with(p.proname, 'memory_'))
)
"""
"""Our tables, with the column of their owner, and our functions."""

_ACCESS = """
select 'no row security on ' || name from ours where relkind in ('r', 'p') and not relrowsecurity
union all select 'row security not forced on ' || name from ours where relkind in ('r', 'p') and not relforcerowsecurity
union all select 'anon reaches ' || name from ours
  where relkind in ('r', 'p', 'v', 'm', 'f') and (has_any_column_privilege('anon', oid, 'select, insert, update')
     or has_table_privilege('anon', oid, 'select, insert, update, delete, truncate, references, trigger'))
union all select 'users truncate ' || name from ours
  where relkind in ('r', 'p') and has_table_privilege('authenticated', oid, 'truncate, references, trigger')
union all select 'users reach ' || name from ours
  where schema = 'memory_private' and relkind in ('r', 'p', 'v', 'm')
    and name not in ('memory_private.work', 'memory_private.limits')
    and (has_any_column_privilege('authenticated', oid, 'select, insert, update')
         or has_table_privilege('authenticated', oid, 'select, insert, update, delete'))
-- Users may see the work on conversations of their own, and the limits, and no more.
union all select 'users change ' || name from ours
  where name in ('memory_private.work', 'memory_private.limits')
    and (has_any_column_privilege('authenticated', oid, 'insert, update')
         or has_table_privilege('authenticated', oid, 'insert, update, delete'))
union all select 'anon uses schema ' || s from unnest(array['memory', 'memory_private']) s
  where has_schema_privilege('anon', s, 'usage, create')
union all select 'users create in schema ' || s from unnest(array['memory', 'memory_private']) s
  where has_schema_privilege('authenticated', s, 'create')
union all select 'a policy for everybody on ' || schemaname || '.' || tablename from pg_policies
  where schemaname in ('memory', 'memory_private') and roles && array['public', 'anon']::name[]
-- The subject of the token is asked for once in a statement: by a select of its own, with the arrow inside.
union all select 'asked for each row: ' || policyname from pg_policies, unnest(array[qual, with_check]) c (condition)
  where schemaname in ('memory', 'memory_private') and replace(replace(c.condition,
      '( SELECT (( SELECT auth.jwt() AS jwt) ->> ''sub''::text))', ''),
      '( SELECT (COALESCE((( SELECT auth.jwt() AS jwt) ->> ''sub''::text), ''''::text) !~ ''^space:''::text))', '')
    ~ 'auth\\.'
union all select coalesce(g.grantee::regrole::text, 'everybody') || ' calls ' || name
  from code, lateral (select nullif(e.grantee, 0) as grantee from aclexplode(acl) e) g
  where g.grantee is null
     or g.grantee not in (proowner, 'authenticated'::regrole::oid, 'service_role'::regrole::oid)
union all select 'anon calls ' || name from code where has_function_privilege('anon', oid, 'execute')
-- What only servers may call is named so, and nothing else is.
union all select 'users call ' || name from code
  where starts_with(proname, 'memory_worker_') and has_function_privilege('authenticated', oid, 'execute')
union all select 'users cannot call ' || name from code
  where schema = 'public' and not starts_with(proname, 'memory_worker_')
    and not has_function_privilege('authenticated', oid, 'execute')
union all select 'servers cannot call ' || name from code
  where schema = 'public' and not has_function_privilege('service_role', oid, 'execute')
union all select 'definer ' || name from code
  where prosecdef and not (schema = 'memory_private' and prorettype = 'trigger'::regtype)
    and proname not in ('act_as_member', 'readable_owners')
union all select g.role || ' calls definer ' || name
  from code, unnest(array['anon', 'authenticated', 'service_role']) g (role)
  where prosecdef and has_function_privilege(g.role, oid, 'execute')
    -- The one by which members write into a space; tests/sql/test_spaces.py attacks it.
    and not (name in ('memory_private.act_as_member(text,text,jsonb,json)', 'memory_private.readable_owners()')
             and g.role <> 'anon')
union all select 'search path of ' || name from code
  -- Also where the body was parsed when it was made: Supabase's advisor warns of it all the same.
  where not coalesce(proconfig @> array['search_path=""'], false)
-- By its comment a migration knows which functions in public are this package's; test_contract.py reads the rest.
union all select 'no comment on ' || name from code
  where schema = 'public' and coalesce(obj_description(oid, 'pg_proc'), '') !~ '^langchain-supabase-memory: [A-Z]'
"""
"""Who may do what."""

_OWNERS = """
select 'the key of ' || name || ' does not begin with its owner' from ours
  where relkind in ('r', 'p') and not is_reference and not exists (
    select from pg_index i where i.indrelid = oid and i.indisprimary and i.indkey[0] = owner)
union all select name || ' is a reference table with an owner' from ours where is_reference and owner is not null
union all select indexrelid::regclass::text || ' is unique among all owners'
  from pg_index i join ours on ours.oid = i.indrelid
  where i.indisunique and not is_reference and i.indkey[0] is distinct from owner
-- What serves no owner looks into every partition: it says so. A vector index has one column.
union all select indexrelid::regclass::text || ' does not begin with the owner' from pg_index i
  join ours on ours.oid = i.indrelid join pg_class x on x.oid = i.indexrelid join pg_am m on m.oid = x.relam
  where not is_reference and i.indkey[0] is distinct from owner and m.amname <> 'hnsw' and not x.relispartition
    and not starts_with(coalesce(obj_description(i.indexrelid, 'pg_class'), ''), 'Across owners. ')
union all select 'ctid in ' || name from ours where relkind in ('v', 'm') and pg_get_viewdef(oid) ~ '\\mctid\\M'
-- Where one table of owners is in partitions, all are, in as many: one owner's rows have one number.
union all select name || ' is not in the partitions of the others' from ours
  where relkind in ('r', 'p') and not is_reference
    and not exists (select from pg_inherits i where i.inhrelid = oid)
    and (select count(*) from pg_inherits i where i.inhparent = oid)
        <> (select count(*) from pg_inherits i where i.inhparent = to_regclass('memory.conversations'))
union all select k.conname || ' refers to a row of any owner'
  from pg_constraint k join ours o on o.oid = k.conrelid left join ours t on t.oid = k.confrelid
  where k.contype = 'f' and (k.conkey[1] is distinct from o.owner or k.confkey[1] is distinct from t.owner)
union all select 'a sequence: ' || name from ours where relkind = 'S'
union all select 'an identity: ' || name || '.' || a.attname from ours join pg_attribute a on a.attrelid = ours.oid
  where a.attidentity <> ''
"""
"""What would stand in the way of partitions by owner, or of a database that is spread over many servers."""

_SOURCES = _OURS + "select name, pg_get_functiondef(oid), prorettype = 'trigger'::regtype from code"


def faults(connection: psycopg.Connection) -> set[str]:
    """What the catalog says that it should not."""
    found = {name for (name,) in connection.execute(_OURS + _ACCESS + "union all" + _OWNERS).fetchall()}
    for name, source, is_trigger in connection.execute(_SOURCES).fetchall():
        body = re.sub(r"--[^\n]*", "", source)
        if re.search(r"\bctid\b", body):
            found.add(f"ctid in {name}")
        if is_trigger and any(map(_is_of_any_owner, body.split(";"))):
            found.add(f"the trigger function {name} does not say whose rows")
    return found


def _is_of_any_owner(statement: str) -> bool:
    """Whether a statement of a trigger names something of ours without the owner of the row that has changed."""
    inside = statement.rpartition("$function$")[2]
    return bool(re.search(r"\bmemory(_private)?\.", inside)) and not re.search(r"\b(new|old)\.user_id\b", inside)


@pytest.fixture(scope="module")
def migrated(cluster: Cluster) -> str:
    return cluster.conn_string(cluster.migrated_database())


@pytest.fixture
def breakable(migrated: str) -> Iterator[psycopg.Connection]:
    """A connection of the migrator; what a test breaks over it is rolled back."""
    with psycopg.connect(migrated) as connection:
        yield connection
        connection.rollback()


@each_case("place", ["supabase", "supabase with legacy grants", "plain postgres", "partitions", "spaces"])
def test_the_catalog_holds_no_fault(cluster: Cluster, place: str) -> None:
    plain = place == "plain postgres"
    name = cluster.create_database(supabase=not plain, legacy_grants="legacy" in place)
    migrator = cluster.conn_string(name, "supabase_admin" if plain else "postgres")
    for _ in range(2):
        migrate(migrator, partitions=3 if place == "partitions" else None, spaces=place == "spaces" or None)
        with psycopg.connect(migrator) as connection:
            assert faults(connection) == set()
            asked = connection.execute(_OURS + "select (select count(*) from ours), (select count(*) from code)")
            assert [number > 20 for number in asked.fetchone() or ()] == [True, True], "about the right schemas"


def test_migrating_again_closes_what_was_opened_since(cluster: Cluster) -> None:
    name = cluster.create_database(legacy_grants=True)
    migrate(cluster.conn_string(name))
    with psycopg.connect(cluster.conn_string(name)) as connection:
        for statement in OPENED:
            connection.execute(statement.encode())
        assert faults(connection)
        connection.commit()
        migrate(cluster.conn_string(name))
        assert faults(connection) == set()


OPENED = [
    "alter table memory.conversations disable row level security",
    "alter table memory.conversation_messages no force row level security",
    "alter table memory.conversation_summaries disable row level security",
    "create policy everyone on memory.conversation_summaries to authenticated using (true)",
    "alter table memory_private.migrations disable row level security",
    "create policy everyone on memory.conversations using (true)",
    "grant usage on schema memory, memory_private to public",
    "grant all on all tables in schema memory, memory_private to anon, authenticated",
    "grant execute on all functions in schema public to anon",
    "alter function public.memory_read security definer",
    "alter function public.memory_count reset search_path",
    "alter function public.memory_context security definer",
    "grant execute on all functions in schema memory_private to anon",
]


@pytest.mark.parametrize(
    ("mistake", "fault"),
    [
        ("alter table memory.conversations disable row level security", "no row security on memory.conversations"),
        (
            "alter table memory.conversations no force row level security",
            "row security not forced on memory.conversations",
        ),
        ("create table memory.new (id int)", "no row security on memory.new"),
        ("grant select on memory.conversations to anon", "anon reaches memory.conversations"),
        ("grant select (user_id) on memory.conversations to anon", "anon reaches memory.conversations"),
        ("grant trigger on memory.conversations to public", "anon reaches memory.conversations"),
        ("grant truncate on memory.conversations to authenticated", "users truncate memory.conversations"),
        ("grant select on memory_private.migrations to authenticated", "users reach memory_private.migrations"),
        ("grant select on memory_private.chores to authenticated", "users reach memory_private.chores"),
        ("grant update on memory_private.work to authenticated", "users change memory_private.work"),
        ("grant insert (worker) on memory_private.work to authenticated", "users change memory_private.work"),
        (
            "alter table memory_private.work no force row level security",
            "row security not forced on memory_private.work",
        ),
        (
            "grant execute on function memory_private.mark_work to authenticated",
            "authenticated calls definer memory_private.mark_work()",
        ),
        ("grant usage on schema memory to public", "anon uses schema memory"),
        ("grant create on schema memory to authenticated", "users create in schema memory"),
        (
            "create function memory_private.f() returns int language sql set search_path = '' as 'select 1'",
            "anon calls memory_private.f()",
        ),
        ("grant execute on function public.memory_schema to public", "anon calls memory_schema()"),
        ("alter function public.memory_schema security definer", "definer memory_schema()"),
        ("alter function public.memory_schema reset all", "search path of memory_schema()"),
        ("alter function public.memory_schema set search_path = public", "search path of memory_schema()"),
        ("create policy open on memory.conversations using (true)", "a policy for everybody on memory.conversations"),
        (
            "create policy slow on memory.conversations for select to authenticated"
            " using (user_id = (select auth.jwt()) ->> 'sub')",
            "asked for each row: slow",
        ),
        (
            "create policy slow on memory.conversations for insert to authenticated"
            " with check (user_id = auth.jwt() ->> 'sub')",
            "asked for each row: slow",
        ),
        ("grant update on memory_private.limits to authenticated", "users change memory_private.limits"),
        (
            "grant execute on function public.memory_worker_claim to authenticated",
            "users call memory_worker_claim(text,integer,double precision,double precision,text,integer,json)",
        ),
        ("revoke execute on function public.memory_limits from authenticated", "users cannot call memory_limits()"),
        ("revoke execute on function public.memory_limits from service_role", "servers cannot call memory_limits()"),
        ("grant execute on function public.memory_limits to pg_monitor", "pg_monitor calls memory_limits()"),
        ("grant execute on function public.memory_limits to public", "everybody calls memory_limits()"),
        ("comment on function public.memory_limits is null", "no comment on memory_limits()"),
        (
            "create table memory.new (id int primary key, user_id text)",
            "the key of memory.new does not begin with its owner",
        ),
        ("create table memory.new (user_id text)", "the key of memory.new does not begin with its owner"),
        (
            "create table memory.new (user_id text primary key); comment on table memory.new is 'Reference table. New.'",
            "memory.new is a reference table with an owner",
        ),
        ("create unique index new on memory.conversations (id)", "memory.new is unique among all owners"),
        (
            "create unique index on memory.conversations (id); alter table memory.conversations add unique (id);"
            " alter table memory.chunk_postings add constraint strays foreign key (conversation_id)"
            " references memory.conversations (id)",
            "strays refers to a row of any owner",
        ),
        (
            "alter table memory.conversations add unique (user_id, thread_id, agent_id);"
            " alter table memory.promotions add name text, add constraint strays foreign key (target, user_id, name)"
            " references memory.conversations (user_id, thread_id, agent_id)",
            "strays refers to a row of any owner",
        ),
        ("create index new on memory.conversations (updated_at)", "memory.new does not begin with the owner"),
        (
            "create index new on memory.conversations (lower(user_id), updated_at)",
            "memory.new does not begin with the owner",
        ),
        (
            "comment on index memory_private.owners_turn_idx is null",
            "memory_private.owners_turn_idx does not begin with the owner",
        ),
        ("create view memory.new as select ctid from memory.conversations", "ctid in memory.new"),
        (
            "create table memory.new (user_id text primary key) partition by hash (user_id);"
            " create table memory.new_0 partition of memory.new for values with (modulus 1, remainder 0)",
            "memory.new is not in the partitions of the others",
        ),
        ("create sequence memory.s", "a sequence: memory.s"),
        (
            "alter table memory.conversations add number int generated always as identity",
            "an identity: memory.conversations.number",
        ),
        (
            "create function memory_private.f() returns tid language sql set search_path = ''"
            " as 'select c.ctid from memory.conversations c'",
            "ctid in memory_private.f()",
        ),
        (
            "create function memory_private.f() returns trigger language plpgsql set search_path = '' as"
            " $function$ begin update memory_private.owners o set due_at = now(); return null; end $function$",
            "the trigger function memory_private.f() does not say whose rows",
        ),
    ],
)
def test_the_catalogs_questions_notice_a_fault(breakable: psycopg.Connection, mistake: str, fault: str) -> None:
    breakable.execute(mistake.encode())
    assert fault in faults(breakable)


def test_what_forbids_sorts_forbids_to_compile_them(migrated: str) -> None:
    """A sort that cannot be avoided then costs more than any limit from which on Postgres compiles a statement."""
    with psycopg.connect(migrated) as connection:
        rows = connection.execute(
            "select p.oid::regprocedure::text, coalesce('jit=off' = any (p.proconfig), false) from pg_proc p"
            " where p.pronamespace in ('public'::regnamespace, 'memory_private'::regnamespace)"
            "   and ('enable_sort=off' = any (p.proconfig) or p.prosrc like '%enable_sort%')"
        ).fetchall()
    assert len(rows) > 30
    assert [name for name, is_off in rows if not is_off] == []


def test_every_function_has_a_shape_and_nothing_else_has(migrated: str) -> None:
    with psycopg.connect(migrated) as connection:
        found = connection.execute(
            "select proname, prorettype::regtype::text, proretset from pg_proc"
            " where pronamespace = 'public'::regnamespace and starts_with(proname, 'memory_')"
        ).fetchall()
    kinds = {name: kind for name, kind, _ in found}
    assert sorted(kinds) == sorted(SHAPES)
    assert not [name for name, _, is_set in found if is_set], "one document each"
    for name, kind in kinds.items():
        assert kind in (("bigint", "integer") if SHAPES[name].kind is int else ("json", "jsonb")), name
