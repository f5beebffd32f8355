-- Removes the memory's tables from Supabase's Realtime. Other tables, and the publication, stay.
do $realtime$
declare
  v_table text;
begin
  perform memory_private.check_publication();
  for v_table in
    select format('%I.%I', n.nspname, c.relname)
    from pg_catalog.pg_publication p join pg_catalog.pg_publication_rel r on r.prpubid = p.oid
    join pg_catalog.pg_class c on c.oid = r.prrelid join pg_catalog.pg_namespace n on n.oid = c.relnamespace
    where p.pubname = 'supabase_realtime' and n.nspname in ('memory', 'memory_private')
  loop
    execute format('alter publication supabase_realtime drop table %s', v_table);
  end loop;
end
$realtime$;
