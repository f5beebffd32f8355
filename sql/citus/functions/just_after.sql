-- A microsecond later: what Citus changes with may not depend on settings, as a sum with an interval may.
create or replace function memory_private.just_after(p_time timestamptz) returns timestamptz
language sql immutable security invoker set search_path = ''
as $function$
  select p_time + interval '1 microsecond'
$function$;
