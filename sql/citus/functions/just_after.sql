-- Returns a time one microsecond later. Citus updates with immutable expressions only; a sum with an interval depends
-- on settings.
create or replace function memory_private.next_microsecond(p_time timestamptz) returns timestamptz
language sql immutable security invoker set search_path = ''
as $function$
  select p_time + interval '1 microsecond'
$function$;
