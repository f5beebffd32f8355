-- Drops this package's functions, which are created again below in the same transaction. In public they are recognized
-- by their comment, so that another function called memory_… is not touched. Those in memory_private are dropped only
-- if they come from other code, because a result may have another type: calls in progress are not interrupted without
-- need.
do $replace$
declare
  v_is_same  boolean := false;
  v_trigger  record;
  v_function regprocedure;
begin
  -- Lock in the order of calls, so that calls in progress finish first and nothing deadlocks.
  lock table memory.opt_outs, memory.conversations in access exclusive mode;
  if to_regprocedure('public.memory_schema()') is not null then
    execute 'select public.memory_schema() ->> ''code'' = ''{{code}}''' into v_is_same;
  end if;
  drop view if exists memory.insights; -- it asks a function that goes
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
  -- Functions that a table's definition calls belong to the table's file, and stay; so does what a policy asks until
  -- access.sql writes it anew. A function that a trigger of yours
  -- calls, such as one on auth.users, is replaced in place below.
  for v_function in
    select p.oid::regprocedure from pg_catalog.pg_proc p
    where p.pronamespace = 'memory_private'::regnamespace
      and not exists (
        select from pg_catalog.pg_depend d
        where d.refclassid = 'pg_catalog.pg_proc'::regclass and d.refobjid = p.oid and d.deptype in ('n', 'a')
          and d.classid in ('pg_catalog.pg_attrdef'::regclass, 'pg_catalog.pg_constraint'::regclass,
                            'pg_catalog.pg_class'::regclass, 'pg_catalog.pg_policy'::regclass))
      and not exists (select from pg_catalog.pg_trigger t where t.tgfoid = p.oid)
  loop
    execute format('drop function %s', v_function);
  end loop;
end
$replace$;
