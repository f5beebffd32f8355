-- The ledger: what of this package has been applied to this database. Always run first; safe to repeat.

create schema if not exists memory;
create schema if not exists memory_private;
revoke all on schema memory, memory_private from public;

create table if not exists memory_private.migrations (
  name       text primary key,
  checksum   text not null,
  applied_at timestamptz not null default now()
);
comment on table memory_private.migrations is
  'Reference table. The files of tables that have been applied, each once.';

-- Tables of another release are left alone: of a newer one, or from files that were edited after they were applied.
do $release$
declare
  v_name    text;
  v_release text;
begin
  select m.name into v_name from memory_private.migrations m
  where m.checksum is distinct from '{{checksums}}'::jsonb ->> m.name
  order by m.name limit 1;
  if found then
    if to_regprocedure('public.memory_schema()') is not null then
      execute 'select public.memory_schema() ->> ''version''' into v_release;
    end if;
    raise exception 'the tables in this database are of release %, and % is not as in release {{version}}',
      coalesce(v_release, 'unknown'), v_name
      using errcode = 'PT409', hint = 'use the unedited files of the release that set it up, or of a newer one';
  end if;
end
$release$;

-- Whether owners are spread over partitions is settled with the first table.
do $partitions$
declare
  v_tables constant regclass := to_regclass('memory.conversations');
  v_found  constant integer  := (select nullif(count(*), 0) from pg_catalog.pg_inherits i where i.inhparent = v_tables);
  v_asked  constant integer  := {{partitions}};
begin
  if v_tables is null or v_found is not distinct from v_asked then
    return;
  end if;
  raise exception 'the tables in this database are %, and cannot be made anything else',
    coalesce('in ' || v_found || ' partitions', 'plain ones, without partitions')
    using errcode = 'PT409', hint = case
      when v_asked is null then format('write the script with --partitions %s', v_found)
      else format('leave --partitions out; or set a new database up with --partitions %s and move into it by '
                  'supabase-memory export and import', v_asked) end;
end
$partitions$;

create table if not exists memory_private.installation (
  singleton     boolean primary key default true check (singleton),
  vector_schema text not null,
  access        text[] not null default '{}'
);
comment on table memory_private.installation is
  'Reference table. Where pgvector lies, and who may do what as it was shipped.';

-- Where pgvector lies. The functions name it there, so they are written anew when it has moved.
insert into memory_private.installation (vector_schema) values ('{{vector_schema_name}}')
on conflict (singleton) do update set vector_schema = excluded.vector_schema
  where installation.vector_schema <> excluded.vector_schema;
