-- Finds pgvector, or creates it. Types and operators are named with its schema, because the functions' search path is
-- empty.
do $vector$
declare
  v_found text := (
    select quote_ident(n.nspname) from pg_catalog.pg_extension e join pg_catalog.pg_namespace n on n.oid = e.extnamespace
    where e.extname = 'vector');
  v_role  text;
begin
  if v_found is null then
    begin
      if to_regnamespace('{{vector_schema}}') is null then
        create schema {{vector_schema}};
        grant usage on schema {{vector_schema}} to anon, authenticated, service_role;
      end if;
      create extension vector with schema {{vector_schema}};
    exception
      when insufficient_privilege then
        raise exception 'pgvector is not in this database, and this user may not create it'
          using errcode = '42501', hint = 'run in this database once, as a superuser: create extension vector';
      when feature_not_supported or undefined_file then
        raise exception 'this server does not have pgvector'
          using errcode = '0A000', hint = 'install pgvector 0.7 or newer on the server, then migrate again';
    end;
  elsif to_regnamespace(v_found) is distinct from to_regnamespace('{{vector_schema}}') then
    raise exception 'pgvector lies in the schema %, not in {{vector_schema}}: write this with --vector-schema %', v_found,
      v_found
      using errcode = 'PT409', hint = format(
        'run: supabase-memory sql --vector-schema %s (first delete those of its files that were not applied)', v_found);
  end if;
  -- If somebody else created the schema, callers need usage on it as well.
  foreach v_role in array array[current_user, 'authenticated', 'service_role'] loop
    if not has_schema_privilege(v_role, to_regnamespace('{{vector_schema}}'), 'usage') then
      begin
        execute format('grant usage on schema {{vector_schema}} to %I', v_role);
      exception
        when insufficient_privilege then null;
      end;
    end if;
    if not has_schema_privilege(v_role, to_regnamespace('{{vector_schema}}'), 'usage') then
      raise exception 'the role % may not use the schema {{vector_schema}}, where pgvector lies', v_role
        using errcode = '42501', hint = 'run as its owner: grant usage on schema {{vector_schema}} to public';
    end if;
  end loop;
  if to_regtype('{{vector_schema}}.halfvec') is null then
    raise exception 'pgvector is older than 0.7 in this database'
      using errcode = '0A000', hint = 'install a newer one on the server, then run as the extension''s owner: '
        'alter extension vector update';
  end if;
end
$vector$;
