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

create table if not exists memory_private.installation (
  singleton     boolean primary key default true check (singleton),
  vector_schema text not null
);
comment on table memory_private.installation is
  'Reference table. Where pgvector lies.';

-- Where pgvector lies. The functions name it there, so they are written anew when it has moved.
insert into memory_private.installation (vector_schema) values ('{{vector_schema_name}}')
on conflict (singleton) do update set vector_schema = excluded.vector_schema
  where installation.vector_schema <> excluded.vector_schema;
