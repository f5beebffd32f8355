-- The functions are code: this package's own are created anew below, in one transaction. In public they are known by their
-- comment, so that a function of yours that happens to be called memory_… is left alone, and dropped first;
-- memory_private is the package's. There they are dropped first only where they are of other code, for a result may have
-- another type now: what applications are calling meanwhile is not taken from them without need.
do $replace$
declare
  v_is_same  boolean := false;
  v_trigger  record;
  v_function regprocedure;
begin
  -- In the order in which calls take them, so that those under way end first and nobody waits in a circle.
  lock table memory.opt_outs, memory.conversations in access exclusive mode;
  if to_regprocedure('public.memory_schema()') is not null then
    execute 'select public.memory_schema() ->> ''code'' = ''{{code}}''' into v_is_same;
  end if;
  for v_function in
    select p.oid::regprocedure from pg_catalog.pg_proc p
    where p.pronamespace = 'public'::regnamespace
      and starts_with(obj_description(p.oid, 'pg_proc'), 'langchain-supabase-memory:')
  loop
    execute format('drop function %s', v_function);
  end loop;
  for v_trigger in
    select t.tgname, t.tgrelid::regclass as relation
    from pg_catalog.pg_trigger t
    join pg_catalog.pg_proc p on p.oid = t.tgfoid
    join pg_catalog.pg_class c on c.oid = t.tgrelid
    where not t.tgisinternal and t.tgparentid = 0 and p.pronamespace = 'memory_private'::regnamespace
      and c.relnamespace in ('memory'::regnamespace, 'memory_private'::regnamespace)
  loop
    execute format('drop trigger %I on %s', v_trigger.tgname, v_trigger.relation);
  end loop;
  if v_is_same then
    return;
  end if;
  -- What a table's own definition calls belongs to the table's file, and stays. So does what a trigger of yours calls,
  -- such as one on auth.users: its function is replaced where it stands, below.
  for v_function in
    select p.oid::regprocedure from pg_catalog.pg_proc p
    where p.pronamespace = 'memory_private'::regnamespace
      and not exists (
        select from pg_catalog.pg_depend d
        where d.refclassid = 'pg_catalog.pg_proc'::regclass and d.refobjid = p.oid and d.deptype in ('n', 'a')
          and d.classid in ('pg_catalog.pg_attrdef'::regclass, 'pg_catalog.pg_constraint'::regclass,
                            'pg_catalog.pg_class'::regclass))
      and not exists (select from pg_catalog.pg_trigger t where t.tgfoid = p.oid)
  loop
    execute format('drop function %s', v_function);
  end loop;
end
$replace$;
