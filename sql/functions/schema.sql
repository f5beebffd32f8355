-- What is installed, so that a client can tell an older schema from a missing one. Constants: it reads no table.

create function public.memory_schema() returns jsonb
language sql stable security invoker set search_path = ''
as $function$
  select '{"version": "{{version}}", "tables": {{tables}}, "code": "{{code}}", "dimensions": {{dimensions}}}'::jsonb
$function$;
comment on function public.memory_schema is
  'langchain-supabase-memory: the version of the schema in this database.';
