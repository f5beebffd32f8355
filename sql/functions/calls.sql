-- What every call begins with: whose it is, and how much it may bring.

-- Returns the owner that a call is about: the user it names, or the subject of the caller's token. The policies in
-- access.sql compare with the same. Every verb uses this function.
create or replace function memory_private.resolve_owner(p_user_id text) returns text
language plpgsql stable security invoker set search_path = ''
as $function$
declare
  v_user text := coalesce(p_user_id, auth.jwt() ->> 'sub');
begin
  if v_user is null or v_user = '' then
    raise exception 'no user id' using errcode = 'PT400', hint = 'pass user_id, or call with a user''s access token';
  end if;
  return v_user;
end
$function$;

-- Returns the limits of one call. They are checked in the database, because every signed-in user can call every
-- function.
create or replace function memory_private.current_limits() returns memory_private.limits
language sql stable security invoker set search_path = ''
as $function$
  select l.* from memory_private.limits l
$function$;

-- Refuses a document that is larger, or a list that is longer, than one call may pass. With p_messages each message
-- is checked too.
create or replace function memory_private.check_limits(p_document json, p_messages boolean default false) returns void
language plpgsql stable security invoker set search_path = ''
as $function$
declare
  v_limits memory_private.limits;
  v_bytes  integer := octet_length(p_document::text);
begin
  if v_bytes <= 16384
    and (case when json_typeof(p_document) = 'array' then json_array_length(p_document) <= 10 else true end)
  then
    return; -- no limit is lower, so none is looked up
  end if;
  select l.* into v_limits from memory_private.limits l;
  if v_bytes > v_limits.call_bytes then
    raise exception 'a call passes more than % bytes', v_limits.call_bytes
      using errcode = 'PT413', hint = 'pass less at once, or raise call_bytes in memory_private.limits';
  end if;
  if json_typeof(p_document) = 'array' and json_array_length(p_document) > v_limits.call_items then
    raise exception 'a call passes more than % items', v_limits.call_items
      using errcode = 'PT413', hint = 'pass fewer at once, or raise call_items in memory_private.limits';
  end if;
  if p_messages and v_bytes > v_limits.message_bytes and exists (
    select from json_array_elements(p_document) e (value) where octet_length(e.value::text) > v_limits.message_bytes)
  then
    raise exception 'a message has more than % bytes', v_limits.message_bytes
      using errcode = 'PT413', hint = 'leave media out, or raise message_bytes in memory_private.limits';
  end if;
end
$function$;

create function public.memory_limits() returns jsonb
language sql stable security invoker set search_path = ''
as $function$
  select to_jsonb(l) - 'only_row' - 'database_id' from memory_private.limits l
$function$;
comment on function public.memory_limits is
  'langchain-supabase-memory: What one call may bring and take away in this database. The operator changes it by SQL.

Returns: object.
- message_bytes: integer. The most bytes of one message, with all that is stored beside its payload.
- call_bytes: integer. The most bytes of one JSON argument.
- call_items: integer. The most elements of one JSON argument that is a list.
- answer_bytes: integer. About so many bytes one call reads; one message or item at least.
- store_bytes: integer. The most bytes of the value of one item of the store.
- store_calls: integer. The most operations in one call of memory_store.
- store_searches: integer. The most of them that search or list.
- opt_outs: integer. The most opt-outs of one user.
- board_items: integer. The most items of one board, those that were superseded or deleted included.
Errors: none.';
