-- The functions are code: this package's own are dropped here and created anew below, in one transaction.
-- They are known by their comment, so that a function of yours that happens to be called memory_… is left alone.
do $replace$
declare
  v_function regprocedure;
begin
  for v_function in
    select p.oid::regprocedure from pg_catalog.pg_proc p
    where p.pronamespace = 'public'::regnamespace
      and starts_with(obj_description(p.oid, 'pg_proc'), 'langchain-supabase-memory:')
  loop
    execute format('drop function %s', v_function);
  end loop;
end
$replace$;
