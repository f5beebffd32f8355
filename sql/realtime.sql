-- Publishes changes of conversations and boards to Supabase's Realtime, with the columns that a page shows
-- (memory_private.realtime_tables): neither work, errors nor messages. Rows are identified by primary keys, so only the
-- owner and the id of a deleted row are published.
do $realtime$
declare
  v_live record;
begin
  perform memory_private.check_publication();
  if exists (select from pg_catalog.pg_inherits i where i.inhparent = 'memory.conversations'::regclass) then
    raise exception 'Realtime does not follow tables that are in partitions, and those of this database are'
      using errcode = 'PT409', hint = 'leave --realtime out, and ask for what has changed instead; or set a database up '
        'without --partitions';
  end if;
  if not exists (select from pg_catalog.pg_publication p where p.pubname = 'supabase_realtime') then
    create publication supabase_realtime;
  end if;
  for v_live in
    select l.*, memory_private.published_columns(l.name) as published from memory_private.realtime_tables() l
  loop
    continue when v_live.published @> v_live.columns and v_live.published <@ v_live.columns;
    if v_live.published is not null then -- with other columns
      execute format('alter publication supabase_realtime drop table memory.%I', v_live.name);
    end if;
    execute format('alter publication supabase_realtime add table memory.%I (%s)', v_live.name,
                   (select string_agg(quote_ident(c), ', ') from unnest(v_live.columns) c));
  end loop;
end
$realtime$;
