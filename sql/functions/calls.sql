-- What every call begins with: whose it is, and how much it may bring.

-- Returns the owner that a call is about: the user or the space it names, or the subject of the caller's token. The
-- policies in access.sql compare with the same. Every verb that reads uses this function.
create or replace function memory_private.resolve_owner(p_user_id text) returns text
language plpgsql stable security invoker set search_path = ''
as $function$
declare
  v_user text := coalesce(p_user_id, auth.jwt() ->> 'sub');
begin
  if v_user is null or v_user = '' then
    raise exception 'no user id' using errcode = 'PT400', hint = 'pass user_id, or call with a user''s access token';
  end if;
  if starts_with(v_user, 'space:') then
    perform memory_private.check_space(p_user_id);
  end if;
  return v_user;
end
$function$;

-- Waits until nobody changes something of an owner, or with p_change until nobody else reads or changes it. It is held
-- until the transaction ends.
create or replace function memory_private.lock_owner(p_what text, p_owner text, p_change boolean) returns void
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_key constant bigint := hashtextextended('langchain-supabase-memory ' || p_what || ' ' || p_owner, 0);
begin
  if p_change then
    perform pg_advisory_xact_lock(v_key);
  else
    perform pg_advisory_xact_lock_shared(v_key);
  end if;
end
$function$;

-- The same for a verb that writes. What is derived in a space, and set for all of its members, a server alone writes.
create or replace function memory_private.resolve_writer(
  p_user_id   text,
  p_author_id text default null -- who wrote what is stored; only in a space somebody is named
) returns text
language plpgsql volatile security invoker set search_path = ''
as $function$
begin
  if starts_with(p_user_id, 'space:') then
    perform memory_private.lock_space(p_user_id), memory_private.check_space(p_user_id, true);
    -- A server may name somebody who is no member.
    if p_author_id is not null and not memory_private.person_labels(p_user_id) ? p_author_id then
      perform memory_private.label_person(p_user_id, p_author_id);
    end if;
    return p_user_id;
  elsif p_author_id is not null then
    raise exception 'only messages of a space have an author' using errcode = 'PT400', hint = 'leave p_author_id out';
  end if;
  return memory_private.resolve_owner(p_user_id);
end
$function$;

-- The same for a verb over all owners that the caller may see, where nobody is named. For who is signed in these are
-- their own rows: what a space owns is asked for by the space's id.
create or replace function memory_private.resolve_scope(p_user_id text) returns text
language plpgsql stable security invoker set search_path = ''
as $function$
begin
  if p_user_id is null and memory_private.has_spaces() and not memory_private.is_server() then
    return coalesce(auth.jwt() ->> 'sub', '');
  elsif starts_with(p_user_id, 'space:') then
    perform memory_private.check_space(p_user_id);
  end if;
  return p_user_id;
end
$function$;

-- Says whether the statement runs with a server's rights: row level security does not narrow what it sees.
create or replace function memory_private.is_server() returns boolean
language sql stable security invoker set search_path = ''
as $function$
  select r.rolsuper or r.rolbypassrls or pg_catalog.pg_has_role(r.oid, c.relowner, 'usage')
  from pg_catalog.pg_roles r, pg_catalog.pg_class c
  where r.rolname = current_user and c.oid = 'memory.conversations'::regclass
$function$;

-- Returns the limits of one call. They are checked in the database, because every signed-in user can call every
-- function.
create or replace function memory_private.current_limits() returns memory_private.limits
language sql stable security invoker set search_path = ''
as $function$
  select l.* from memory_private.limits l
$function$;

-- Returns whether a document is a list of texts and of nothing else.
create or replace function memory_private.is_text_list(p_list json) returns boolean
language sql immutable security invoker set search_path = ''
as $function$
  select case when json_typeof(p_list) = 'array'
    then not exists (select from json_array_elements(p_list) e where json_typeof(e) <> 'string') else false end
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
- spaces: integer. The most spaces that one user creates, and the most that one user is in.
- space_members: integer. The most members of one space.
- invitations: integer. The most open invitations of one space.
- profile_items: integer. The most items of one user''s profile, those that were superseded or deleted included.
Errors: none.';
