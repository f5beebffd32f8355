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
  singleton  boolean primary key default true check (singleton),
  dimensions integer not null check (dimensions between 1 and 16000)
);

-- The embedding width is chosen once: a column of one width cannot hold vectors of another.
do $ledger$
declare
  v_recorded integer;
begin
  insert into memory_private.installation (dimensions) values ({{dimensions}}) on conflict do nothing;
  select dimensions into v_recorded from memory_private.installation;
  if v_recorded <> {{dimensions}} then
    raise exception 'this database was set up for embeddings of % dimensions, not {{dimensions}}', v_recorded
      using errcode = 'PT409',
            hint = format('run the migration again with --dimensions %s, or use another database', v_recorded);
  end if;
end
$ledger$;
