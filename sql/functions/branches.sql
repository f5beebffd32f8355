-- Branches: the newest state of a graph decides which of its messages are current. What it does not have is moved out,
-- and in again when the state returns to it. Only what a graph stored is moved: never what was appended by hand.

-- The number of a message by its id: by the one index that has both, whatever the planner knows.
create or replace function memory_private.place(p_user_id text, p_conversation_id uuid, p_message_id text) returns bigint
language sql stable security invoker set search_path = ''
set enable_sort = off set jit = off
as $function$
  select t.sequence
  from (select m.sequence, m.message_id from memory.conversation_messages m
        where m.user_id = p_user_id and m.conversation_id = p_conversation_id and m.message_id >= p_message_id
        order by m.message_id limit 1) t
  where t.message_id = p_message_id
$function$;

-- Move messages out, or in again at their own numbers; the sequences in order. With them go the counts, and
-- what was made from there on. Called with the conversation's row locked.
create or replace function memory_private.move(
  p_user_id text, p_conversation_id uuid, p_sequences bigint[], p_is_back boolean
) returns void
language plpgsql volatile security invoker set search_path = ''
set plan_cache_mode = force_generic_plan
as $function$
declare
  v_first    constant bigint := p_sequences[1];
  v_last     constant bigint := p_sequences[cardinality(p_sequences)];
  v_ranges   constant int8multirange := (select range_agg(int8range(s, s, '[]')) from unnest(p_sequences) s);
  v_next     constant bigint := (
    select c.next_sequence from memory.conversations c where c.user_id = p_user_id and c.id = p_conversation_id);
  v_now      constant timestamptz := clock_timestamp();
  v_moved    record;
  v_sequence bigint;
begin
  perform memory_private.tally(p_user_id, p_conversation_id, v_ranges, -1, v_next);
  -- Two statements each: Citus sends what a statement takes out for the next one to every node.
  if p_is_back then
    insert into memory.conversation_messages (
      user_id, conversation_id, sequence, message_id, role, text, characters, tokens, created_at, updated_at, metadata,
      images, payload, unreadable)
    select d.user_id, d.conversation_id, d.sequence, d.message_id, d.role, d.text, d.characters, d.tokens, d.created_at,
           d.updated_at, d.metadata, d.images, d.payload, d.unreadable
    from memory.superseded_messages d
    where d.user_id = p_user_id and d.conversation_id = p_conversation_id
      and d.sequence between v_first and v_last and d.sequence = any (p_sequences);
    with moved as (
      delete from memory.superseded_messages s
       where s.user_id = p_user_id and s.conversation_id = p_conversation_id
         and s.sequence between v_first and v_last and s.sequence = any (p_sequences)
      returning s.characters, s.tokens)
    select count(*) as count, sum(d.characters) as characters, sum(d.tokens) as tokens into v_moved from moved d;
  else
    insert into memory.superseded_messages (
      user_id, conversation_id, sequence, message_id, role, text, characters, tokens, created_at, updated_at, metadata,
      images, payload, unreadable)
    select d.user_id, d.conversation_id, d.sequence, d.message_id, d.role, d.text, d.characters, d.tokens, d.created_at,
           d.updated_at, d.metadata, d.images, d.payload, d.unreadable
    from memory.conversation_messages d
    where d.user_id = p_user_id and d.conversation_id = p_conversation_id
      and d.sequence between v_first and v_last and d.sequence = any (p_sequences);
    with moved as (
      delete from memory.conversation_messages m
       where m.user_id = p_user_id and m.conversation_id = p_conversation_id
         and m.sequence between v_first and v_last and m.sequence = any (p_sequences)
      returning m.characters, m.tokens)
    select -count(*) as count, -sum(d.characters) as characters, -sum(d.tokens) as tokens into v_moved from moved d;
  end if;
  perform memory_private.tally(p_user_id, p_conversation_id, v_ranges, 1, v_next);
  update memory.conversations c
     set message_count = c.message_count + v_moved.count,
         total_characters = c.total_characters + v_moved.characters,
         total_tokens = c.total_tokens + v_moved.tokens,
         has_superseded = c.has_superseded or not p_is_back,
         updated_at = v_now
   where c.user_id = p_user_id and c.id = p_conversation_id;
  for v_sequence in
    select distinct s from memory.conversation_board_items i, unnest(i.sequences) s
    where i.user_id = p_user_id and i.conversation_id = p_conversation_id and s = any (p_sequences)
  loop
    perform memory_private.unboard_items(p_user_id, p_conversation_id, v_sequence, null);
  end loop;
  perform memory_private.uncover(p_user_id, p_conversation_id, v_first);
  if p_is_back then
    perform memory_private.unindex(p_user_id, p_conversation_id, v_first);
  else
    perform memory_private.unchunk(p_user_id, p_conversation_id, v_first, v_last);
  end if;
end
$function$;

-- Before a graph's messages are stored: whether the store is where the state begins to differ, and from which sequence
-- on the state decides. What the state has again is moved in. The branch is {"token", "expected", "after", "ids", "whole",
-- "begun", "tail", "strict"}:
--   token     names the state that is being stored; expected: the one that is thought to be here.
--   after     the id of the last message that is known to be the same; null: nothing is known.
--   ids       of all the state's messages after that, also of those that nobody said.
--   whole     the state is kept between runs, and nothing was trimmed from it: what it has not any more was removed.
--   begun     with that, the state is a continuation even if it has nothing of what is stored.
--   tail      the state holds a selection: only what comes after all of it was left.
--   strict    nothing is stored if none of its messages is known here, though there are some.
-- Answers {"moved": true} or {"unfamiliar": true} where nothing is to be stored; else what followed() needs.
create or replace function memory_private.follow(p_user_id text, p_agent_id text, p_thread_id text, p_branch json)
returns jsonb
language plpgsql volatile security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
declare
  v_c     memory.conversations;
  v_back  bigint[];
  v_known record;
  v_from  bigint;
begin
  select c.* into v_c from memory.conversations c
   where c.user_id = p_user_id and c.agent_id = p_agent_id and c.thread_id = p_thread_id
     for no key update;
  if v_c.id is null then
    return '{}';
  end if;
  -- Where no state was stored since the conversation was forgotten, none is brought back. The same token twice is a retry.
  if p_branch ->> 'after' is not null and v_c.branch_token is not null
     and v_c.branch_token is distinct from p_branch ->> 'expected'
     and v_c.branch_token is distinct from p_branch ->> 'token'
  then
    return '{"moved": true}';
  end if;
  if v_c.has_superseded then
    select array_agg(t.sequence) into v_back
      from (select s.sequence from json_array_elements_text(p_branch -> 'ids') as i (id)
            join memory.superseded_messages s
              on s.user_id = p_user_id and s.conversation_id = v_c.id and s.message_id = i.id) t;
    if v_back is not null then
      perform memory_private.move(p_user_id, v_c.id, array(select unnest(v_back) order by 1), true);
    end if;
  end if;
  select min(t.place) as first, max(t.place) as last into v_known
    from (select memory_private.place(p_user_id, v_c.id, i.id) as place
          from json_array_elements_text(p_branch -> 'ids') as i (id)) t;
  if p_branch ->> 'after' is not null then
    v_from := coalesce(memory_private.place(p_user_id, v_c.id, p_branch ->> 'after') + 1, v_known.first);
  elsif v_known.first is not null then
    v_from := case when (p_branch ->> 'tail')::boolean then v_known.last + 1
                   when (p_branch ->> 'whole')::boolean then least(v_c.branch_from, v_known.first)
                   else v_known.first end;
  elsif (p_branch ->> 'begun')::boolean then
    v_from := v_c.branch_from;
  elsif (p_branch ->> 'strict')::boolean and v_c.message_count > 0 then
    return '{"unfamiliar": true}';
  end if;
  return jsonb_build_object(
    'from', v_from,
    'begins', case when p_branch ->> 'after' is not null or v_known.first is not null or v_from is not null
                   then least(v_c.branch_from, v_known.first) end);
end
$function$;

-- After a graph's messages are stored: what its state does not have is moved out.
create or replace function memory_private.followed(
  p_user_id text, p_conversation_id uuid, p_first bigint, p_branch json, p_place jsonb
) returns void
language plpgsql volatile security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
declare
  -- An object, for its keys are found without looking at all of them.
  v_held jsonb := (select coalesce(jsonb_object_agg(i, 1), '{}') from json_array_elements_text(p_branch -> 'ids') i);
  v_gone bigint[];
begin
  if p_place ->> 'from' is not null then
    v_gone := array(
      select m.sequence from memory.conversation_messages m
      where m.user_id = p_user_id and m.conversation_id = p_conversation_id
        and m.sequence >= (p_place ->> 'from')::bigint
        and m.metadata ->> 'via' = 'graph' and not v_held ? m.message_id
      order by m.sequence);
    if v_gone <> '{}' then
      perform memory_private.move(p_user_id, p_conversation_id, v_gone, false);
    end if;
  end if;
  update memory.conversations c
     set branch_token = p_branch ->> 'token',
         branch_from = coalesce((p_place ->> 'begins')::bigint, p_first)
   where c.user_id = p_user_id and c.id = p_conversation_id;
end
$function$;

-- Remove what is superseded and too old, as the messages beside it. Nothing brings it back.
create or replace function memory_private.expire_superseded(
  p_user_id text, p_conversation_id uuid, p_age timestamptz, p_cut bigint
) returns bigint
language plpgsql volatile security invoker set search_path = ''
set plan_cache_mode = force_generic_plan
as $function$
declare
  v_gone record;
begin
  with gone as (
    delete from memory.superseded_messages s
     where s.user_id = p_user_id and s.conversation_id = p_conversation_id
       and (s.created_at < p_age or s.sequence < p_cut)
    returning s.sequence, s.message_id)
  select count(*) as count, max(gone.sequence) as last, array_agg(gone.message_id) as ids into v_gone from gone;
  if v_gone.count > 0 then
    perform memory_private.note_gone(p_user_id, p_conversation_id, v_gone.ids);
    update memory.conversations c
       set has_gone = true, expired_through = greatest(c.expired_through, v_gone.last)
     where c.user_id = p_user_id and c.id = p_conversation_id;
  end if;
  return v_gone.count;
end
$function$;
