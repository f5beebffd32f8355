-- What is switched on, kept from one migration to the next: spaces. Runs before the functions, which ask for it.
do $spaces$
declare
  v_asked constant boolean := {{spaces}}; -- null: as it is
  v_found text;
begin
  -- An owner who is named like a space, and is none, would be anybody's who gets into a space of that name.
  if v_asked and not (select i.spaces from memory_private.installation i) then
    select o.user_id into v_found
      from (select c.user_id from memory.conversations c
            union all select i.user_id from memory.store_items i
            union all select o.user_id from memory.opt_outs o
            union all select h.user_id from memory.control_changes h) o
     where o.user_id ~ '^space:' and not exists (select from memory.spaces s where s.user_id = o.user_id)
     limit 1;
    if found then
      raise exception 'a user of this database is named like a space: %', v_found
        using errcode = 'PT409', hint = 'forget or rename whoever''s user_id begins with "space:", then migrate again';
    end if;
  end if;
  update memory_private.installation i set spaces = v_asked where i.spaces <> v_asked;
  -- A constant, so that who asks for it reads no table.
  execute format(
    $sql$create or replace function memory_private.has_spaces() returns boolean
    language sql stable security invoker set search_path = '' as 'select %s'$sql$,
    (select i.spaces::text from memory_private.installation i));
end
$spaces$;
