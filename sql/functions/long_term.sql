-- What of a profile has moved to a long-term memory elsewhere, and what has to go from there.

-- Returns the ids of what says an item of a profile; null where it does not hold.
create or replace function memory_private.held_evidence(p_user_id text, p_item_id uuid) returns uuid[]
language plpgsql stable security invoker set search_path = ''
as $function$
begin
  if not exists (
    select from memory.profile_items i where i.user_id = p_user_id and i.id = p_item_id and i.state = 'held')
  then
    return null;
  end if;
  return array(
    select e.id from memory.profile_evidence e
    where e.user_id = p_user_id and e.item_id = p_item_id
    order by 1);
end
$function$;

-- Says whether another memory stands for the same item there.
create or replace function memory_private.is_promoted(
  p_user_id text, p_target text, p_item_id uuid, p_held uuid[], p_except uuid default null
) returns boolean
language plpgsql stable security invoker set search_path = ''
as $function$
begin
  return exists (
    select from memory.promotions p
    where p.user_id = p_user_id and p.target = p_target and p.item_id = p_item_id and p.moved and p.evidence <@ p_held
      and p.memory_id is distinct from p_except);
end
$function$;

create function public.memory_promote(
  p_target  text,
  p_items   json, -- [{"item_id", "evidence": [{"thread_id", "agent_id", "message_id", "quote"}]}], or [{"memory_id"}]
  p_moved   boolean default false, -- before the move, and once more after it
  p_user_id text    default null
) returns json -- what is to move, or stays: [{"item_id", "memory_id"}]
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_user     constant text := memory_private.resolve_profile_owner(p_user_id);
  v_each     record;
  v_held     uuid[];
  v_evidence uuid[];
  v_memory   uuid;
  v_rows     json[] := '{}';
begin
  perform memory_private.check_limits(p_items), memory_private.lock_profile(v_user);
  if p_moved then
    for v_each in
      select p.item_id, p.memory_id, p.evidence
      from (select distinct i.memory_id from json_to_recordset(p_items) as i (memory_id uuid)) i
      cross join lateral (
        select o.* from memory.promotions o
        where o.user_id = v_user and o.target = p_target and o.memory_id = i.memory_id offset 0) p
    loop
      v_held := memory_private.held_evidence(v_user, v_each.item_id);
      continue when (v_each.evidence <@ v_held) is not true
        or memory_private.is_promoted(v_user, p_target, v_each.item_id, v_held, v_each.memory_id);
      update memory.promotions p set moved = true
       where p.user_id = v_user and p.target = p_target and p.memory_id = v_each.memory_id;
      v_rows := v_rows || json_build_object('item_id', v_each.item_id, 'memory_id', v_each.memory_id);
    end loop;
    return array_to_json(v_rows);
  end if;
  -- Recorded before the move, so that what is moved can be found whatever happens.
  for v_each in
    select i.item_id, i.evidence from json_to_recordset(p_items) as i (item_id uuid, evidence json)
  loop
    v_held := memory_private.held_evidence(v_user, v_each.item_id);
    continue when v_held is null or memory_private.is_promoted(v_user, p_target, v_each.item_id, v_held);
    v_evidence := array(
      select e.id
      from json_to_recordset(v_each.evidence) as g (thread_id text, agent_id text, message_id text, quote text)
      cross join lateral (
        select o.id from memory.conversations o
        where o.user_id = v_user and o.agent_id = g.agent_id and o.thread_id = g.thread_id offset 0) c
      cross join lateral (
        select o.id from memory.profile_evidence o
        where o.user_id = v_user and o.item_id = v_each.item_id and o.conversation_id = c.id
          and o.message_id = g.message_id and o.quote = g.quote offset 0) e
      order by 1);
    -- It has changed since it was read: the next call moves it.
    continue when not v_evidence <@ v_held or cardinality(v_evidence) < json_array_length(v_each.evidence);
    v_memory := md5(concat_ws(' ', v_each.item_id, array_to_string(v_evidence, ' ')))::uuid;
    insert into memory.promotions (user_id, target, memory_id, item_id, evidence)
    values (v_user, p_target, v_memory, v_each.item_id, v_evidence)
    on conflict do nothing;
    v_rows := v_rows || json_build_object('item_id', v_each.item_id, 'memory_id', v_memory);
  end loop;
  return array_to_json(v_rows);
end
$function$;
comment on function public.memory_promote is
  'langchain-supabase-memory: Note which items of a profile are being moved to a long-term memory, before they are stored
  there, and that they were, after that. So whatever happens in between, they can be found and taken back.

p_target: the name of the long-term memory, 1 to 512 bytes.
p_items: what moves, a list of objects: before the move items as memory_profile returned them, after it memories.
- item_id: uuid or null. Before the move: the item.
- evidence: object[] or null. Before the move: the messages that say so, with the four keys below.
- thread_id: text. In evidence: as it was answered.
- agent_id: text. The same.
- message_id: text. The same.
- quote: text. The same.
- memory_id: uuid or null. After the move: the memory.
p_moved: false before the move, true after it.
p_user_id: the user; null: the subject of the caller''s token.
Returns: object[]. Before the move what is to be stored: not what is there, nor what does not hold any more. After it what
  stays: what is missing has to be deleted there, and passed to memory_withdrawn.
- [].item_id: uuid. The item.
- [].memory_id: uuid. Under which it is, or is to be, stored.
Errors:
- PT400: p_user_id names a space, which has no profile; or none is given, and the caller''s token names nobody.
- PT413: an argument is larger than call_bytes, or a list in it longer than call_items (see memory_limits).
- 23514: p_target is refused; the name of the constraint says so.';

create function public.memory_withdrawn(
  p_target  text,
  p_user_id text    default null,
  p_gone    json    default '[]', -- memories that are gone from the long-term memory
  p_after   uuid    default null,
  p_limit   integer default 100,
  p_dry_run boolean default false
) returns json -- memories that have to go, the next so many
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_user constant text := memory_private.resolve_profile_owner(p_user_id);
  v_ids  uuid[];
begin
  perform memory_private.check_limits(p_gone), memory_private.lock_profile(v_user);
  -- Not what has moved there again since.
  delete from memory.promotions p
   where p.user_id = v_user and p.target = p_target and not p.moved
     and p.memory_id = any (array(select json_array_elements_text(p_gone)::uuid));
  v_ids := array(
    select p.memory_id
    from memory.promotions p
    cross join lateral (select memory_private.held_evidence(v_user, p.item_id) as evidence offset 0) h
    cross join lateral (
      select memory_private.is_promoted(v_user, p_target, p.item_id, h.evidence) as is_there offset 0) o
    where p.user_id = v_user and p.target = p_target and (p_after is null or p.memory_id > p_after)
      and ((p.evidence <@ h.evidence) is not true or not p.moved and o.is_there)
    order by p.memory_id
    limit greatest(0, least(p_limit, 1000)));
  if not p_dry_run then -- what holds again before they are gone is moved again
    update memory.promotions p set moved = false
     where p.user_id = v_user and p.target = p_target and p.memory_id = any (v_ids) and p.moved;
  end if;
  return json_build_object('user_id', v_user, 'memories', v_ids);
end
$function$;
comment on function public.memory_withdrawn is
  'langchain-supabase-memory: List memories that have to go from a long-term memory, because the profile does not hold them
  any more, or a message is gone that says so. Nothing is deleted there by this call: do that, and pass what has gone.

p_target: the name of the long-term memory.
p_user_id: the user; null: the subject of the caller''s token.
p_gone: memories that were listed and are deleted there by now, a list of uuid: they are noted no longer.
p_after: the memory at which the last page ended; null: from the beginning.
p_limit: the most of one answer, at most 1000.
p_dry_run: leave the record as it is, but for p_gone.
Returns: object.
- user_id: text. The user.
- memories: uuid[]. The memories that have to go, the next so many.
Errors:
- PT400: p_user_id names a space, which has no profile; or none is given, and the caller''s token names nobody.
- PT413: an argument is larger than call_bytes, or a list in it longer than call_items (see memory_limits).';
