-- Live: what Supabase's Realtime publishes of the memory, if it is asked to.

-- Returns what Supabase's Realtime publishes if it is asked to: tables of the schema memory with the columns that a
-- page shows.
create or replace function memory_private.realtime_tables() returns table (name text, columns text[])
language sql immutable security invoker set search_path = ''
as $function$
  values
    ('conversations', array[{{live_columns}}]),
    ('conversation_summary_boards', array[
      'user_id', 'conversation_id', 'summary', 'context_notes', 'title', 'edited_summary', 'edited_by', 'edited_at',
      'language', 'quality', 'through_sequence', 'version', 'created_at', 'updated_at'])
$function$;

-- Returns the columns of a table of the schema memory that are published now; null: none.
create or replace function memory_private.published_columns(p_table text) returns text[]
language sql stable security invoker set search_path = ''
as $function$
  select t.attnames::text[] from pg_catalog.pg_publication_tables t
  where t.pubname = 'supabase_realtime' and t.schemaname = 'memory' and t.tablename = p_table
$function$;

-- Refuses a publication of whole schemas: no table and no column can be excluded from it.
create or replace function memory_private.check_publication() returns void
language plpgsql stable security invoker set search_path = ''
as $function$
declare
  v_schema text;
begin
  if (select p.puballtables from pg_catalog.pg_publication p where p.pubname = 'supabase_realtime') then
    raise exception 'the publication supabase_realtime is for all tables, the queue and its errors among them'
      using errcode = 'PT409', hint = 'drop it and create it anew for the tables that you want: '
        'create publication supabase_realtime';
  end if;
  select n.nspname into v_schema
  from pg_catalog.pg_publication p join pg_catalog.pg_publication_namespace s on s.pnpubid = p.oid
  join pg_catalog.pg_namespace n on n.oid = s.pnnspid
  where p.pubname = 'supabase_realtime' and n.nspname in ('memory', 'memory_private')
  order by n.nspname desc limit 1;
  if found then
    raise exception 'the publication supabase_realtime is for all tables in the schema %, with every column', v_schema
      using errcode = 'PT409', hint = format(
        'run: alter publication supabase_realtime drop tables in schema %I; then this again', v_schema);
  end if;
end
$function$;
