-- What becomes of a user's memory when the user is deleted where they sign in.

-- For a trigger of yours on auth.users, see docs/retention.md: in the same transaction all goes that memory holds for
-- the user, as memory_forget erases it, so that no user is deleted whose memory stays. It runs with the migrator's
-- rights, for Supabase Auth may do nothing here.
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
