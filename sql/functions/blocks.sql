-- Blocks: how much lies far back in a conversation, and how many turns, without reading it. memory.message_blocks has what
-- each full run of 1,024 sequences holds; of what lies between, and of the newest run, the rows are counted.
-- How its queries are held to their indexes: sql/README.md.

-- Counts the turns whose first answer lies in a range of sequences. The first answer is one right after a question,
-- among questions and final answers.
create or replace function memory_private.count_turns_in_range(
  p_user_id text, p_conversation_id uuid, p_from bigint, p_before bigint
)
returns bigint
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
begin
  return (
  select count(*)
  from (select m.final, lag(m.final) over (order by m.sequence + 0) as answered
        from memory.conversation_messages m
        where m.user_id = p_user_id and m.conversation_id = p_conversation_id and (m.role = 'user' or m.final)
          and m.sequence + 0 < p_before
          -- With the one before it.
          and m.sequence + 0 >= coalesce((
            select e.sequence + 0 from memory.conversation_messages e
            where e.user_id = p_user_id and e.conversation_id = p_conversation_id and (e.role = 'user' or e.final)
              and e.sequence + 0 < p_from
            order by e.sequence + 0 desc limit 1), p_from)) t
  where t.final and not t.answered);
end
$function$;

-- Adds ranges of messages to the counts of their blocks, or subtracts them: -1 before they change, 1 after that. The
-- next question or answer is counted along, because it may get or lose its question. The caller holds the
-- conversation's row lock.
create or replace function memory_private.update_block_counts(
  p_user_id text, p_conversation_id uuid, p_ranges int8multirange,
  p_sign integer, -- -1 before, 1 after
  p_next bigint   -- the conversation's next sequence: what is not full by that has no row
) returns void
language plpgsql volatile security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
declare
  v_full   constant int8multirange := int8multirange(int8range(0, p_next >> 10 << 10));
  v_ranges int8multirange := p_ranges * v_full;
  v_range  int8range;
  v_event  bigint;
  v_part   record;
  v_weight record;
begin
  for v_range in select r from unnest(v_ranges) r loop
    select m.sequence into v_event from memory.conversation_messages m
     where m.user_id = p_user_id and m.conversation_id = p_conversation_id and (m.role = 'user' or m.final)
       and m.sequence + 0 >= upper(v_range)
     order by m.sequence + 0 limit 1;
    if found then
      v_ranges := v_ranges + int8multirange(int8range(v_event, v_event, '[]')) * v_full;
    end if;
  end loop;
  for v_part in
    select t.block, v_ranges * int8multirange(int8range(t.block << 10, t.block + 1 << 10)) as ranges
    from (select distinct generate_series(lower(r) >> 10, upper(r) - 1 >> 10) as block from unnest(v_ranges) r) t
  loop
    v_weight := memory_private.range_totals(p_user_id, p_conversation_id, v_part.ranges);
    insert into memory.message_blocks as b (user_id, conversation_id, block, characters, tokens, turns)
    select p_user_id, p_conversation_id, v_part.block, p_sign * v_weight.characters, p_sign * v_weight.tokens,
           p_sign * sum(memory_private.count_turns_in_range(p_user_id, p_conversation_id, lower(r), upper(r)))
    from unnest(v_part.ranges) r
    on conflict (user_id, conversation_id, block) do update
       set characters = b.characters + excluded.characters, tokens = b.tokens + excluded.tokens,
           turns = b.turns + excluded.turns;
  end loop;
end
$function$;

-- Returns the characters and tokens that are stored from a sequence on.
create or replace function memory_private.sizes_from(
  p_user_id text, p_conversation_id uuid, p_from bigint,
  p_next bigint, -- the conversation's next sequence
  out characters bigint, out tokens bigint
)
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
declare
  v_block  constant bigint := p_from + 1023 >> 10; -- the first that is all of it after that
  v_open   constant bigint := p_next >> 10;
  v_weight record;
begin
  if v_block >= v_open then
    v_weight := memory_private.range_totals(p_user_id, p_conversation_id, int8multirange(int8range(p_from, null)));
    characters := v_weight.characters;
    tokens := v_weight.tokens;
    return;
  end if;
  v_weight := memory_private.range_totals(
    p_user_id, p_conversation_id,
    int8multirange(int8range(p_from, v_block << 10), int8range(v_open << 10, null)));
  select coalesce(sum(b.characters), 0) + v_weight.characters, coalesce(sum(b.tokens), 0) + v_weight.tokens
    into characters, tokens
    from memory.message_blocks b
   where b.user_id = p_user_id and b.conversation_id = p_conversation_id and b.block >= v_block and b.block < v_open;
end
$function$;

-- Counts the turns whose first answer lies before a sequence.
create or replace function memory_private.count_turns_before(
  p_user_id text, p_conversation_id uuid, p_before bigint,
  p_next    bigint, -- the conversation's next sequence
  p_cut     boolean default false -- also one that has only its question before that
) returns bigint
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
declare
  v_before bigint := least(p_before, p_next);
  v_block  bigint;
  v_turns  bigint;
begin
  if p_cut then
    select t.sequence + 1 into v_before
      from (select m.sequence + 0 as sequence, m.final from memory.conversation_messages m
            where m.user_id = p_user_id and m.conversation_id = p_conversation_id and (m.role = 'user' or m.final)
              and m.sequence + 0 >= p_before
            order by m.sequence + 0 limit 1) t
     where t.final;
    v_before := coalesce(v_before, least(p_before, p_next));
  end if;
  if v_before <= 0 then
    return 0;
  end if;
  v_block := v_before >> 10;
  select coalesce(sum(b.turns), 0) into v_turns from memory.message_blocks b
   where b.user_id = p_user_id and b.conversation_id = p_conversation_id and b.block < v_block;
  return v_turns + memory_private.count_turns_in_range(p_user_id, p_conversation_id, v_block << 10, v_before);
end
$function$;

-- Returns the sequence of a turn's question. Turns are counted from 1 over everything that is stored.
create or replace function memory_private.question_of_turn(
  p_user_id text, p_conversation_id uuid, p_turn bigint,
  p_next bigint -- the conversation's next sequence
) returns bigint
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
declare
  v_block record;
begin
  select t.block, t.through - t.turns as turns into v_block
    from (select b.block, b.turns, sum(b.turns) over (order by b.block) as through from memory.message_blocks b
          where b.user_id = p_user_id and b.conversation_id = p_conversation_id
          order by b.block) t
   where t.through >= p_turn
   limit 1;
  if not found then
    select p_next >> 10 as block, coalesce(sum(b.turns), 0) as turns into v_block from memory.message_blocks b
     where b.user_id = p_user_id and b.conversation_id = p_conversation_id;
  end if;
  return (
    select t.asked
    from (select m.final, lag(m.final) over w as answered, lag(m.sequence) over w as asked
          from memory.conversation_messages m
          where m.user_id = p_user_id and m.conversation_id = p_conversation_id and (m.role = 'user' or m.final)
            and m.sequence + 0 < v_block.block + 1 << 10
            and m.sequence + 0 >= coalesce((
              select e.sequence + 0 from memory.conversation_messages e
              where e.user_id = p_user_id and e.conversation_id = p_conversation_id and (e.role = 'user' or e.final)
                and e.sequence + 0 < v_block.block << 10
              order by e.sequence + 0 desc limit 1), v_block.block << 10)
          window w as (order by m.sequence + 0)) t
    where t.final and not t.answered
    offset p_turn - v_block.turns - 1 limit 1);
end
$function$;
