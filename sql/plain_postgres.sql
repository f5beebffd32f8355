-- Creates what the schema needs from Supabase, on a Postgres without it. What exists is not changed.
do $plain$
declare
  v_role text;
begin
  foreach v_role in array array['anon', 'authenticated', 'service_role'] loop
    if not exists (select from pg_catalog.pg_roles where rolname = v_role) then
      begin
        execute format('create role %I nologin noinherit%s', v_role,
                       case when v_role = 'service_role' then ' bypassrls' end);
      exception
        when duplicate_object or unique_violation then null; -- another database of this server was quicker
        when insufficient_privilege then
          raise exception 'role % does not exist, and this user may not create it', v_role
            using errcode = '42501', hint = 'run the migration once as a superuser';
      end;
    end if;
    -- Lets a direct connection act as a user. It needs the right to grant; without that, only this is missing.
    if not pg_has_role(current_user, v_role, 'MEMBER') then
      begin
        execute format('grant %I to current_user', v_role);
      exception
        when insufficient_privilege then
          raise warning 'connections of % cannot act as %: grant the role to it', current_user, v_role;
      end;
    end if;
  end loop;

  -- As on Supabase: the policies in access.sql and memory_private.resolve_owner() call it. To act as a user, set the
  -- claims of one transaction.
  if to_regnamespace('auth') is null then
    create schema auth;
    grant usage on schema auth to anon, authenticated, service_role;
  end if;
  if to_regprocedure('auth.jwt()') is null then
    create function auth.jwt() returns jsonb language sql stable set search_path = '' as
      $jwt$ select nullif(current_setting('request.jwt.claims', true), '')::jsonb $jwt$;
  end if;
  if to_regprocedure('auth.uid()') is null then
    create function auth.uid() returns uuid language sql stable set search_path = '' as
      $uid$ select (nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'sub')::uuid $uid$;
  end if;
  if to_regprocedure('auth.role()') is null then
    create function auth.role() returns text language sql stable set search_path = '' as
      $role$ select nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'role' $role$;
  end if;
end
$plain$;
