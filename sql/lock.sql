-- A time limit of the role or the database is meant for calls: as pg_dump's scripts do, a migration takes as long as it takes.
set local statement_timeout = 0;
set local idle_in_transaction_session_timeout = 0;
select set_config('transaction_timeout', '0', true) from pg_catalog.pg_settings where name = 'transaction_timeout';

-- Functions are read with the setting of whoever calls them, so every call would fail.
do $lock$
begin
  if current_setting('standard_conforming_strings') = 'off' then
    raise exception 'standard_conforming_strings is off for this role or database' using errcode = 'PT409',
      hint = format('run: alter database %I set standard_conforming_strings = on; and the same for a role that has it off',
                    current_database());
  end if;
end
$lock$;

-- Of two migrations at once the second waits here until the first has committed.
select pg_advisory_xact_lock(hashtextextended('langchain-supabase-memory', 0));
