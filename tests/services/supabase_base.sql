-- Make a plain Postgres look like a hosted Supabase database, as far as this package uses it. For tests; idempotent;
-- run as the superuser. The details come from Supabase's own init scripts.
do $$
declare
  r text;
begin
  foreach r in array array['anon', 'authenticated', 'service_role', 'authenticator', 'supabase_auth_admin'] loop
    if not exists (select from pg_roles where rolname = r) then
      execute format('create role %I', r);
    end if;
  end loop;
end
$$;
alter role anon nologin noinherit;
alter role authenticated nologin noinherit;
alter role service_role nologin noinherit bypassrls;
alter role authenticator login noinherit password 'authenticator';
alter role supabase_auth_admin login noinherit createrole;
grant anon, authenticated, service_role to authenticator;
grant anon, authenticated, service_role to postgres;
alter role anon set statement_timeout = '3s';
alter role authenticated set statement_timeout = '8s';
alter role authenticator set statement_timeout = '8s';

create schema if not exists extensions;
grant usage on schema extensions to anon, authenticated, service_role, postgres;
grant usage on schema public to anon, authenticated, service_role;
grant all on schema public to postgres;
create schema if not exists auth;
grant usage on schema auth to anon, authenticated, service_role, postgres;

-- Supabase Auth owns its users; postgres may create triggers on them.
grant all on schema auth to supabase_auth_admin;
create table if not exists auth.users (id uuid primary key, email text, deleted_at timestamptz);
alter table auth.users owner to supabase_auth_admin;
alter table auth.users enable row level security;
grant select, insert, update, delete, references, trigger on auth.users to postgres;

create or replace function auth.uid() returns uuid language sql stable as $$
  select coalesce(nullif(current_setting('request.jwt.claim.sub', true), ''),
                  (nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'sub'))::uuid
$$;
create or replace function auth.role() returns text language sql stable as $$
  select coalesce(nullif(current_setting('request.jwt.claim.role', true), ''),
                  (nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'role'))
$$;
create or replace function auth.jwt() returns jsonb language sql stable as $$
  select coalesce(nullif(current_setting('request.jwt.claim', true), ''),
                  nullif(current_setting('request.jwt.claims', true), ''))::jsonb
$$;
grant execute on all functions in schema auth to anon, authenticated, service_role, postgres;

-- The linter of the Supabase CLI reads the exposed schemas from here.
do $$
begin
  execute format('alter database %I set pgrst.db_schemas = %L', current_database(), 'public,graphql_public');
end
$$;
