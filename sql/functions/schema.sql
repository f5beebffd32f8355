-- What is installed, so that a client can tell an older schema from a missing one, and whether pgvector has moved away
-- from where the functions name it. Constants but for that: it reads no table of anybody's.

create function public.memory_schema() returns jsonb
language sql stable security invoker set search_path = ''
as $function$
  select jsonb_build_object(
    'version', '{{version}}', 'tables', '{{tables}}'::jsonb, 'checksums', '{{table_checksums}}'::jsonb,
    'code', '{{code}}',
    'vector_schema', '{{vector_schema_name}}', 'spaces', memory_private.has_spaces(),
    'vector_moved_to', (
      select n.nspname from pg_catalog.pg_extension e join pg_catalog.pg_namespace n on n.oid = e.extnamespace
      where e.extname = 'vector' and n.nspname <> '{{vector_schema_name}}'))
$function$;
comment on function public.memory_schema is
  'langchain-supabase-memory: Which release set this database up.

Returns: object.
- version: text. The release of the package.
- tables: text[]. The names of the table files that were applied.
- checksums: text[]. Their checksums, in the same order.
- code: text. A checksum of the functions and the access rules.
- vector_schema: text. The schema in which the functions look for pgvector.
- vector_moved_to: text or null. The schema in which pgvector lies, if that is another by now; then run the
  migration again.
- spaces: boolean. Whether spaces are switched on, by supabase-memory migrate --spaces.
Errors: none.';
