-- The ledger: what of this package has been applied to this database. Always run first; safe to repeat.

create schema if not exists memory;
create schema if not exists memory_private;
revoke all on schema memory, memory_private from public;

create table if not exists memory_private.migrations (
  name       text primary key,
  checksum   text not null,
  applied_at timestamptz not null default now()
);

create table if not exists memory_private.installation (
  singleton     boolean primary key default true check (singleton),
  vector_schema text not null
);

-- Where pgvector lies. The functions name it there, so they are written anew when it has moved.
insert into memory_private.installation (vector_schema) values ('{{vector_schema_name}}')
on conflict (singleton) do update set vector_schema = excluded.vector_schema
  where installation.vector_schema <> excluded.vector_schema;
