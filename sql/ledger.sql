-- The ledger of what this package has applied to this database. Always runs first; safe to repeat.

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

-- Tables of another release are refused: of a newer one, or from files that were edited after they were applied.
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
      using errcode = 'PT409', hint = 'use the unedited files of the release that set it up, or of a newer one; if '
        'there are none, run supabase-memory export with the package that set it up, and import the file into a new '
        'database';
  end if;
end
$release$;

-- The first table settles whether tables are partitioned by owner,
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

-- and whether Citus distributes them.
do $citus$
declare
  v_tables constant regclass := to_regclass('memory.conversations');
  v_asked  constant boolean  := {{citus}};
  v_found  boolean           := false;
begin
  if to_regclass('pg_catalog.pg_dist_partition') is not null then
    execute 'select exists (select from pg_catalog.pg_dist_partition p where p.logicalrelid = $1)' into v_found
      using v_tables;
  elsif v_asked then
    raise exception 'the extension citus is not in this database'
      using errcode = 'PT409', hint = 'on the coordinator and on each node, run: create extension citus; then add the nodes '
        'with: select citus_add_node(host, port)';
  end if;
  if v_tables is not null and v_found <> v_asked then
    raise exception 'the tables in this database are %, and cannot be made anything else',
      case when v_found then 'spread by Citus' else 'plain ones, on this server alone' end
      using errcode = 'PT409', hint = case
        when v_found then 'write the script with --citus'
        else 'leave --citus out; or set a new database up with it and move into it by supabase-memory export and import' end;
  end if;
  if v_asked then
    -- For this transaction: rows that triggers of this package write belong to the owner, and are on the same node.
    set local citus.enable_unsafe_triggers = on;
    set local citus.multi_shard_modify_mode = 'sequential';
  end if;
end
$citus$;

create table if not exists memory_private.installation (
  singleton     boolean primary key default true check (singleton),
  vector_schema text not null,
  access        text[] not null default '{}',
  spaces        boolean not null default false
);
comment on table memory_private.installation is
  'Reference table. Where pgvector lies, who may do what as it was shipped, and whether spaces are switched on.';

-- The schema of pgvector. The functions name it, so they are replaced when it has moved.
insert into memory_private.installation (vector_schema) values ('{{vector_schema_name}}')
on conflict (singleton) do update set vector_schema = excluded.vector_schema
  where installation.vector_schema <> excluded.vector_schema;
