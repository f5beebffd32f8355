-- Who owns what a verb touches: the user named, or the subject of the caller's token. One rule for every verb.

create or replace function memory_private.owner(p_user_id text) returns text
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
