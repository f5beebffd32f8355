-- What Supabase's Realtime publishes of the memory: that conversations and boards change, with the columns that a page
-- shows. Neither work nor errors, nor any message. The primary keys identify rows, so that of one that is deleted only
-- owner and id come out.
do $realtime$
declare
  v_table text;
  v_columns text;
begin
  if (select p.puballtables from pg_catalog.pg_publication p where p.pubname = 'supabase_realtime') then
    raise exception 'the publication supabase_realtime is for all tables, the queue and its errors among them'
      using errcode = 'PT409', hint = 'drop it and create it anew for the tables that you want: '
        'create publication supabase_realtime';
  end if;
  if exists (select from pg_catalog.pg_inherits i where i.inhparent = 'memory.conversations'::regclass) then
    raise exception 'Realtime does not follow tables that are in partitions, and those of this database are'
      using errcode = 'PT409', hint = 'leave --realtime out, and ask for what has changed instead; or set a database up '
        'without --partitions';
  end if;
  if not exists (select from pg_catalog.pg_publication p where p.pubname = 'supabase_realtime') then
    create publication supabase_realtime;
  end if;
  for v_table, v_columns in values
    ('conversations',
     'user_id, id, agent_id, thread_id, title, metadata, created_at, updated_at, archived_at, opted_out_at, next_sequence,
      message_count, summarized_through, indexed_through, requested_at, served_at'),
    ('conversation_summary_boards',
     'user_id, conversation_id, summary, context_notes, title, edited_summary, edited_by, edited_at, language, quality,
      through_sequence, version, created_at, updated_at')
  loop
    if not exists (select from pg_catalog.pg_publication_tables t
                   where t.pubname = 'supabase_realtime' and t.schemaname = 'memory' and t.tablename = v_table) then
      execute format('alter publication supabase_realtime add table memory.%I (%s)', v_table, v_columns);
    end if;
  end loop;
end
$realtime$;
