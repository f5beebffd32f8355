-- What becomes of a user's memory when the user is deleted where they sign in.

-- Erases everything that memory holds for a user, as memory_forget does, in the same transaction. It is for a
-- trigger of yours on auth.users, see docs/retention.md, so that no user is deleted whose memory stays. It runs with
-- the migrator's rights, because Supabase Auth has none here.
create or replace function memory_private.forget_deleted_user() returns trigger
language plpgsql volatile security definer set search_path = ''
as $function$
begin
  if old.id is not null then -- nobody named would be who calls
    perform public.memory_forget(p_user_id => old.id::text, p_everything => true);
  end if;
  return null;
end
$function$;
