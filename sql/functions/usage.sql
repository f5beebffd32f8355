-- Usage: conversations are counted behind the answer, each message, pack, chunk, segment and revision once; what a user
-- reads of it, and what is given out over all users.

-- Returns a count that every reader of JSON can hold.
create or replace function memory_private.bounded_count(p_count numeric) returns bigint
language sql immutable security invoker set search_path = ''
as $function$
  select least(greatest(coalesce(p_count, 0), 0), 9007199254740991)::bigint
$function$;

-- Returns the numbers of one pack, as its manifest has them: what is -1 there counts as none.
create or replace function memory_private.pack_usage(
  p_pack json, out pack_tokens bigint, out whole_tokens bigint, out is_wider boolean, out input_tokens bigint,
  out output_tokens bigint, out cached_tokens bigint, out has_call boolean, out has_recall boolean, out passages bigint,
  out has_board boolean, out has_failed boolean
)
language plpgsql immutable security invoker set search_path = ''
as $function$
declare
  c_most constant bigint := 1000000000000; -- an invalid number of one pack does not end the counting
  v_list json;
  v_all  boolean := true; -- whether it shows the whole conversation, in which nothing is left to be found
begin
  pack_tokens := 0; input_tokens := 0; output_tokens := 0; cached_tokens := 0; passages := 0;
  has_call := false; has_board := false;
  whole_tokens := greatest(0, least(c_most, coalesce((p_pack #>> '{0,11}')::bigint, 0)));
  has_recall := coalesce((p_pack #>> '{0,14}')::bigint, 0) > 0;
  has_failed := (coalesce((p_pack #>> '{0,6}')::bigint, 0) & 7) > 0;
  for v_list in select l from json_array_elements(p_pack) l loop
    case v_list ->> 0
      when '1' then
        pack_tokens := least(c_most, pack_tokens + greatest(0, least(c_most, coalesce((v_list ->> 5)::bigint, 0))));
        has_board := has_board or v_list ->> 1 = '3';
        v_all := v_all and v_list ->> 1 <> '0' and (v_list ->> 1 <> '2' or v_list ->> 2 = '3');
      when '5' then v_all := false;
      when '3', '4' then passages := passages + 1;
      when '14' then passages := passages + (json_array_length(v_list) - 1) / 3;
      when '6' then
        has_call := true;
        input_tokens := greatest(0, least(c_most, coalesce((v_list ->> 1)::bigint, 0)));
        output_tokens := greatest(0, least(c_most, coalesce((v_list ->> 2)::bigint, 0)));
        cached_tokens := greatest(0, least(input_tokens, coalesce((v_list ->> 4)::bigint, 0)));
      else null;
    end case;
  end loop;
  has_recall := passages > 0 or has_recall and not (v_all and p_pack #>> '{0,14}' = '1');
  is_wider := whole_tokens > 0 and pack_tokens > whole_tokens;
end
$function$;

-- Returns the places that a pack showed: passages of its conversation by message and part, a segment by number and 0.
create or replace function memory_private.pack_reads(p_pack json)
returns table (from_sequence bigint, part integer)
language sql immutable security invoker set search_path = ''
as $function$
  select t.first, t.part::integer
  from (
    select (e ->> 1)::bigint as first, (e ->> 3)::bigint as part from json_array_elements(p_pack) e where e ->> 0 = '3'
    union
    select (e ->> i)::bigint, (e ->> i + 2)::bigint
    from json_array_elements(p_pack) e cross join lateral generate_series(1, json_array_length(e) - 3, 3) i
    where e ->> 0 = '14'
    union
    select (e ->> 8)::bigint, 0 from json_array_elements(p_pack) e where e ->> 0 = '1' and e ->> 1 = '0') t
  where t.first between 0 and 9007199254740991 and t.part between 0 and 1000000000
$function$;

-- Deletes all numbers of an owner.
create or replace function memory_private.delete_usage(p_user_id text) returns void
language plpgsql volatile security invoker set search_path = ''
as $function$
begin
  delete from memory.usage_days d where d.user_id = p_user_id;
  delete from memory.usage_cursors u where u.user_id = p_user_id;
  delete from memory.reads r where r.user_id = p_user_id;
end
$function$;

-- Returns what one step counts of conversations, in their order: of each from where to where, until there are as many
-- messages, chunks or segments as the limit; more: something is left for the next one. The caller holds the conversations
-- and the owner's usage.
create or replace function memory_private.usage_steps(
  p_user_id text, p_ids uuid[], p_limit integer, out steps jsonb, out more boolean
)
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
declare
  v_c      record;
  v_steps  jsonb[] := '{}';
  v_left   bigint := p_limit; -- messages
  v_chunks bigint := p_limit;
  v_segments bigint := p_limit;
  v_last   bigint; -- the last message of this step; null: the rest is counted
  v_chunk  bigint;
  v_number bigint; -- the last segment of this step
  v_count  bigint;
begin
  more := false;
  for v_c in
    select c.id, c.agent_id, c.next_sequence - 1 as last, c.indexed_through, coalesce(u.segments, 0) as segments,
           u.board_version,
           -- What a fork took back is counted, and what stands there now is counted as well: both were sent.
           least(coalesce(u.through_sequence, -1), c.next_sequence - 1) as after,
           -- Chunks that are made anew of the same messages are not counted again.
           least(coalesce(u.indexed_through, -1), c.next_sequence - 1) as indexed_after,
           coalesce((
             select s.number from memory.conversation_summaries s
             where s.user_id = p_user_id and s.conversation_id = c.id and s.level = 0
             order by s.number desc limit 1), 0) as number,
           (select b.version from memory.conversation_summary_boards b
            where b.user_id = p_user_id and b.conversation_id between c.id and c.id
            order by b.conversation_id limit 1) as version
    from unnest(p_ids) i
    cross join lateral (
      select o.id, o.agent_id, o.next_sequence, o.indexed_through from memory.conversations o
      where o.user_id = p_user_id and o.id between i and i and o.opted_out_at is null
      order by o.id limit 1) c
    left join lateral (
      select o.through_sequence, o.indexed_through, o.segments, o.board_version from memory.usage_cursors o
      where o.user_id = p_user_id and o.conversation_id between c.id and c.id
      order by o.conversation_id limit 1) u on true
  loop
    if least(v_left, v_chunks, v_segments) <= 0 then
      more := true;
      exit;
    end if;
    v_last := null; v_chunk := null;
    if v_c.last - v_c.after > v_left then
      select max(m.sequence), count(*) into v_last, v_count
        from (select o.sequence from memory.conversation_messages o
              where o.user_id = p_user_id and o.conversation_id = v_c.id and o.sequence > v_c.after
                and o.sequence <= v_c.last
              order by o.sequence limit v_left) m;
      v_last := case when v_count = v_left and v_last < v_c.last then v_last end;
      v_left := v_left - v_count;
    else
      v_left := v_left - (v_c.last - v_c.after);
    end if;
    if v_c.indexed_through > v_c.indexed_after then
      select max(k.to_sequence), count(*) into v_chunk, v_count
        from (select o.to_sequence from memory.working_memory_chunks o
              where o.user_id = p_user_id and o.conversation_id = v_c.id and o.to_sequence > v_c.indexed_after
                and o.to_sequence <= v_c.indexed_through
              order by o.to_sequence limit v_chunks) k;
      v_chunk := case when v_count = v_chunks and v_chunk < v_c.indexed_through then v_chunk end;
      v_chunks := v_chunks - v_count;
    end if;
    v_number := greatest(v_c.segments, least(v_c.number, v_c.segments + v_segments));
    v_segments := v_segments - (v_number - v_c.segments);
    more := more or v_last is not null or v_chunk is not null or v_number < v_c.number;
    v_steps := v_steps || jsonb_build_object(
      'id', v_c.id, 'agent_id', v_c.agent_id, 'after', v_c.after, 'through', coalesce(v_last, v_c.last),
      'indexed_after', v_c.indexed_after,
      'indexed_through', greatest(v_c.indexed_after, coalesce(v_chunk, v_c.indexed_through)),
      'segments_after', v_c.segments, 'segments', v_number,
      'board_after', coalesce(v_c.board_version, 0), 'board', greatest(v_c.board_version, v_c.version, 0));
  end loop;
  steps := to_jsonb(v_steps);
end
$function$;

-- Adds what steps of conversations count to the days of their owner. The caller holds the owner's usage.
create or replace function memory_private.add_usage(p_user_id text, p_steps jsonb) returns void
language sql volatile security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
  insert into memory.usage_days as d (
    user_id, agent_id, day, turns, messages, characters, packs, pack_tokens, whole_tokens, wider, calls, input_tokens,
    cached_tokens, output_tokens, recalls, recalls_empty, passages, boards_shown, failures, summaries, boards)
  select p_user_id, t.agent_id, t.day, sum(t.turns), sum(t.messages), memory_private.bounded_count(sum(t.characters)),
         count(t.pack), memory_private.bounded_count(sum(p.pack_tokens)), memory_private.bounded_count(sum(p.whole_tokens)),
         count(*) filter (where p.is_wider), count(*) filter (where p.has_call),
         memory_private.bounded_count(sum(p.input_tokens)), memory_private.bounded_count(sum(p.cached_tokens)),
         memory_private.bounded_count(sum(p.output_tokens)), count(*) filter (where p.has_recall),
         count(*) filter (where p.has_recall and p.passages = 0), memory_private.bounded_count(sum(p.passages)),
         count(*) filter (where p.has_board), count(*) filter (where p.has_failed), sum(t.summaries),
         memory_private.bounded_count(sum(t.boards))
  from (
    select s.agent_id, (m.created_at at time zone 'UTC')::date as day, case when m.role = 'user' then 1 else 0 end as turns,
           1 as messages, m.characters, null::json as pack, 0 as summaries, 0::bigint as boards
    from jsonb_to_recordset(p_steps) as s (id uuid, agent_id text, after bigint, through bigint)
    cross join lateral (
      select o.created_at, o.role, o.characters from memory.conversation_messages o
      where o.user_id = p_user_id and o.conversation_id = s.id and o.sequence > s.after and o.sequence <= s.through
      order by o.sequence offset 0) m
    union all
    select s.agent_id, (x.made_at at time zone 'UTC')::date, 0, 0, 0, x.pack, 0, 0
    from jsonb_to_recordset(p_steps) as s (id uuid, agent_id text, after bigint, through bigint)
    cross join lateral (
      select o.made_at, o.pack from memory.context_manifests o
      where o.user_id = p_user_id and o.conversation_id = s.id and o.sequence > s.after and o.sequence <= s.through
      order by o.sequence offset 0) x
    where x.pack is not null
    union all
    select s.agent_id, (x.created_at at time zone 'UTC')::date, 0, 0, 0, null, 1, 0
    from jsonb_to_recordset(p_steps) as s (id uuid, agent_id text, segments_after bigint, segments bigint)
    cross join lateral (
      select o.created_at from memory.conversation_summaries o
      where o.user_id = p_user_id and o.conversation_id = s.id and o.level = 0
        and o.number > least(s.segments_after, 2147483647)::integer and o.number <= least(s.segments, 2147483647)::integer
      order by o.number offset 0) x
    union all
    select s.agent_id, (b.updated_at at time zone 'UTC')::date, 0, 0, 0, null, 0, s.board - s.board_after
    from jsonb_to_recordset(p_steps) as s (id uuid, agent_id text, board_after bigint, board bigint)
    cross join lateral (
      select o.updated_at from memory.conversation_summary_boards o
      where o.user_id = p_user_id and o.conversation_id between s.id and s.id
      order by o.conversation_id limit 1) b
    where s.board > s.board_after) t
  left join lateral memory_private.pack_usage(t.pack) p on t.pack is not null
  group by t.agent_id, t.day
  on conflict (user_id, agent_id, day) do update set
    turns = d.turns + excluded.turns, messages = d.messages + excluded.messages,
    characters = memory_private.bounded_count(d.characters + excluded.characters), packs = d.packs + excluded.packs,
    pack_tokens = memory_private.bounded_count(d.pack_tokens + excluded.pack_tokens),
    whole_tokens = memory_private.bounded_count(d.whole_tokens + excluded.whole_tokens),
    wider = d.wider + excluded.wider, calls = d.calls + excluded.calls,
    input_tokens = memory_private.bounded_count(d.input_tokens + excluded.input_tokens),
    cached_tokens = memory_private.bounded_count(d.cached_tokens + excluded.cached_tokens),
    output_tokens = memory_private.bounded_count(d.output_tokens + excluded.output_tokens),
    recalls = d.recalls + excluded.recalls, recalls_empty = d.recalls_empty + excluded.recalls_empty,
    passages = d.passages + excluded.passages, boards_shown = d.boards_shown + excluded.boards_shown,
    failures = d.failures + excluded.failures, summaries = d.summaries + excluded.summaries,
    boards = memory_private.bounded_count(d.boards + excluded.boards)
$function$;

-- Adds the chunks of steps to the days: how many, with vectors, signals and tone.
create or replace function memory_private.add_chunk_usage(p_user_id text, p_steps jsonb) returns void
language sql volatile security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
  insert into memory.usage_days as d (user_id, agent_id, day, chunks, embeds, signals, tone_sum, tone_count)
  select p_user_id, s.agent_id, (k.said_at at time zone 'UTC')::date, count(*),
         count(e.has), array[
           sum(k.signals & 1), sum(k.signals >> 1 & 1), sum(k.signals >> 2 & 1), sum(k.signals >> 3 & 1),
           sum(k.signals >> 4 & 1), sum(k.signals >> 5 & 1), sum(k.signals >> 6 & 1), sum(k.signals >> 7 & 1)],
         coalesce(sum(k.tone), 0), count(k.tone)
  from jsonb_to_recordset(p_steps) as s (id uuid, agent_id text, indexed_after bigint, indexed_through bigint)
  cross join lateral (
    select o.said_at, o.signals, o.tone, o.place, o.part from memory.working_memory_chunks o
    where o.user_id = p_user_id and o.conversation_id = s.id
      and o.to_sequence > s.indexed_after and o.to_sequence <= s.indexed_through
    order by o.to_sequence offset 0) k
  left join lateral (
    select 1 as has from memory.chunk_embeddings o
    where o.user_id = p_user_id and o.conversation_id = s.id and o.place between k.place and k.place and o.part = k.part
    order by o.place limit 1) e on true
  group by 2, 3
  on conflict (user_id, agent_id, day) do update set
    chunks = d.chunks + excluded.chunks, embeds = d.embeds + excluded.embeds,
    signals = array(
      select s.was + s.new from unnest(d.signals, excluded.signals) with ordinality as s (was, new, bit) order by s.bit),
    tone_sum = d.tone_sum + excluded.tone_sum, tone_count = d.tone_count + excluded.tone_count
$function$;

-- Adds what the packs of steps showed to the places.
create or replace function memory_private.add_reads(p_user_id text, p_steps jsonb) returns void
language sql volatile security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
  insert into memory.reads as r (user_id, conversation_id, from_sequence, part, shown, last_at)
  select p_user_id, s.id, p.from_sequence, p.part, count(*), max(x.made_at)
  from jsonb_to_recordset(p_steps) as s (id uuid, after bigint, through bigint)
  cross join lateral (
    select o.made_at, o.pack from memory.context_manifests o
    where o.user_id = p_user_id and o.conversation_id = s.id and o.sequence > s.after and o.sequence <= s.through
    order by o.sequence offset 0) x
  cross join lateral memory_private.pack_reads(x.pack) p
  where x.pack is not null
  group by s.id, p.from_sequence, p.part
  on conflict (user_id, conversation_id, from_sequence, part) do update set
    shown = memory_private.bounded_count(r.shown + excluded.shown), last_at = greatest(r.last_at, excluded.last_at)
$function$;

create function public.memory_worker_count_usage(
  p_conversations json,
  p_user_id       text    default null,
  p_limit         integer default 5000
) returns jsonb
language plpgsql volatile security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
declare
  v_user constant text := memory_private.resolve_owner(p_user_id);
  v_ids  constant uuid[] := array(
    select distinct i::uuid from json_array_elements_text(p_conversations) i order by 1);
  v_step record;
begin
  -- No consent changes meanwhile, and no conversation is forgotten.
  perform memory_private.lock_opt_outs(v_user);
  if starts_with(v_user, 'space:') or memory_private.refuses(v_user, 'analytics') then
    return '{"counted": 0, "more": false}';
  end if;
  perform c.id
     from unnest(v_ids) with ordinality i (id, place)
    cross join lateral (
      select o.id from memory.conversations o
      where o.user_id = v_user and o.id between i.id and i.id
      order by o.id limit 1 for key share) c;
  -- Two processes add to the same days.
  perform memory_private.lock_owner('usage', v_user, true);
  v_step := memory_private.usage_steps(v_user, v_ids, greatest(1, least(p_limit, 20000)));
  perform memory_private.add_usage(v_user, v_step.steps), memory_private.add_chunk_usage(v_user, v_step.steps),
          memory_private.add_reads(v_user, v_step.steps);
  insert into memory.usage_cursors as u (
    user_id, conversation_id, through_sequence, indexed_through, segments, board_version)
  select v_user, s.id, s.through, s.indexed_through, s.segments, s.board
  from jsonb_to_recordset(v_step.steps) as s (
    id uuid, through bigint, indexed_through bigint, segments bigint, board bigint)
  on conflict (user_id, conversation_id) do update set
    through_sequence = excluded.through_sequence, indexed_through = excluded.indexed_through,
    segments = excluded.segments, board_version = excluded.board_version;
  return jsonb_build_object(
    'counted', (select coalesce(sum(s.through - s.after), 0)
                from jsonb_to_recordset(v_step.steps) as s (after bigint, through bigint)),
    'more', v_step.more);
end
$function$;
comment on function public.memory_worker_count_usage is
  'langchain-supabase-memory: Count what conversations of one owner came to since they were counted last, and add it to their
  days. Nothing is counted twice, however often it is called. It needs a server''s rights.

p_conversations: the ids of the conversations, a list, as memory_worker_usage gives them.
p_user_id: the owner; null: the subject of the caller''s token.
p_limit: the most messages, chunks and segments of one step, each over all these conversations, at most 20000.
Returns: object.
- counted: integer. How many sequences were passed; 0 if there is no such conversation, it is opted out, or its owner refuses
  analytics.
- more: boolean. Whether there is more to count: call again.
Errors:
- PT400: no p_user_id is given, and the caller''s token names nobody.';

create function public.memory_worker_usage(
  p_limit      integer default 200,
  p_after_hour timestamptz default null,
  p_after_user text    default null,
  p_after      uuid    default null,
  p_seconds    float8  default null,
  p_user_id    text    default null -- only this owner's; null: everybody's
) returns jsonb
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_custom_plan set enable_sort = off set jit = off
as $function$
declare
  c_few   constant integer := 5000;
  v_limit constant integer := greatest(1, least(p_limit, 1000));
  v_since constant timestamptz := memory_private.hour_of(coalesce(
    clock_timestamp() - p_seconds * interval '1 second', case when p_user_id is null then (
    -- A clock that was set back leaves a time ahead; what is a day old is looked at again.
    select least(c.done_at, clock_timestamp()) - interval '1 day' from memory_private.chores c
    where c.name = 'usage_counted') end, '-infinity'));
  v_last  record;
begin
  with page as materialized (
    select c.updated_hour, c.user_id, c.id, c.agent_id, c.thread_id, c.next_sequence, c.indexed_through, c.opted_out_at
    from memory.conversations c
    where p_user_id is null and c.archived_at is null and c.updated_hour >= v_since
      and (p_after is null or (c.updated_hour, c.user_id, c.id) > (p_after_hour, p_after_user, p_after))
    order by c.updated_hour, c.user_id, c.id limit v_limit),
  recent as materialized (
    select c.updated_hour, c.user_id, c.id, c.agent_id, c.thread_id, c.next_sequence, c.indexed_through, c.opted_out_at
    from memory.conversations c
    where p_user_id is not null and v_since > '-infinity' and c.user_id = p_user_id
      and c.updated_hour >= v_since
    order by c.updated_hour limit c_few + 1),
  own as materialized (
    (select r.* from recent r
     where (select count(*) from recent) <= c_few and (p_after is null or r.id > p_after)
     order by r.id limit v_limit)
    union all
    -- Where many changed, each page of them would be looked for among all of these.
    (select c.updated_hour, c.user_id, c.id, c.agent_id, c.thread_id, c.next_sequence, c.indexed_through, c.opted_out_at
     from memory.conversations c
     where p_user_id is not null and (v_since = '-infinity' or (select count(*) from recent) > c_few)
       and c.user_id = p_user_id and (p_after is null or c.id > p_after) and c.updated_hour >= v_since
     order by c.user_id, c.id limit v_limit)),
  both_pages as materialized (select * from page union all select * from own),
  due as (
    select b.* from both_pages b
    left join lateral (
      select o.* from memory.usage_cursors o
      where o.user_id = b.user_id and o.conversation_id between b.id and b.id
      order by o.user_id, o.conversation_id limit 1) u on true
    left join lateral (
      select true as refused from memory.consents s
      where s.user_id = b.user_id and s.purpose = 'analytics' and not s.allowed offset 0) s on true
    where b.opted_out_at is null and s.refused is null and not starts_with(b.user_id, 'space:')
      and (u.user_id is null or u.through_sequence <> b.next_sequence - 1 or u.indexed_through < b.indexed_through
           or (select s.number from memory.conversation_summaries s
               where s.user_id = b.user_id and s.conversation_id = b.id and s.level = 0
               order by s.number desc limit 1) > u.segments
           or (select d.version from memory.conversation_summary_boards d
               where d.user_id = b.user_id and d.conversation_id = b.id) > u.board_version))
  select (select coalesce(jsonb_agg(jsonb_build_object(
                    'user_id', d.user_id, 'id', d.id, 'agent_id', d.agent_id, 'thread_id', d.thread_id)
                    order by d.user_id, d.id), '[]') from due d) as rows,
         (select count(*) from both_pages) as count,
         (select jsonb_build_object('hour', b.updated_hour, 'user', b.user_id, 'id', b.id) from both_pages b
          order by case when p_user_id is null then b.updated_hour end desc nulls last, b.user_id desc, b.id desc
          limit 1) as place
    into v_last;
  return jsonb_build_object('conversations', v_last.rows, 'after', case when v_last.count = v_limit then v_last.place end);
end
$function$;
comment on function public.memory_worker_usage is
  'langchain-supabase-memory: List the conversations with something that is not counted yet, by pages, of those that changed
  since a day before all were counted last.

p_limit: the most conversations that one call looks at, at most 1000.
p_after_hour: hour of after from the last page; null: from the beginning.
p_after_user: user of after from the last page; null: from the beginning.
p_after: id of after from the last page; null: from the beginning.
p_seconds: only those that changed in the last so many seconds, and in the hour in which these begin; null: since a day before
  the chore usage_counted, of one owner ever.
p_user_id: only this owner''s; null: everybody''s that are not archived.
Returns: object.
- conversations: object[]. For memory_worker_count_usage, by owner.
- conversations[].user_id: text. The owner.
- conversations[].id: uuid. Its id.
- conversations[].agent_id: text. Its agent.
- conversations[].thread_id: text. Its thread.
- after: object or null. Where the next page goes on; null: there is none.
- after.hour: timestamp. Pass it as p_after_hour.
- after.user: text. Pass it as p_after_user.
- after.id: uuid. Pass it as p_after.
Errors: none.';

drop view if exists memory.usage_by_day;
create view memory.usage_by_day with (security_invoker = true) as
select d.user_id, d.agent_id, d.day, d.turns, d.messages, d.characters, d.packs, d.pack_tokens, d.whole_tokens,
       greatest(d.whole_tokens - d.pack_tokens, 0) as spared_tokens, d.wider, d.calls, d.input_tokens, d.cached_tokens,
       d.output_tokens, d.recalls, d.recalls_empty, d.passages, d.boards_shown, d.failures, d.summaries, d.boards, d.chunks,
       d.embeds, d.signals[1] as corrections, d.signals[2] as asked_again, d.signals[3] as thanks,
       d.signals[4] as complaints, d.signals[5] as confusion, d.signals[6] as giving_up, d.signals[7] as asks_for_person,
       d.signals[8] as tools_failed, d.tone_sum, d.tone_count
from memory.usage_days d;
comment on view memory.usage_by_day is
  'What each user''s conversations with an agent came to on each day, in UTC, for a dashboard: a column for each number.';

create function public.memory_usage(
  p_from     date default null, -- null: 30 days before p_to
  p_to       date default null, -- null: today, in UTC
  p_agent_id text default null,
  p_user_id  text default null
) returns json
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
declare
  v_user constant text := memory_private.resolve_profile_owner(p_user_id);
  v_to   constant date := coalesce(p_to, (clock_timestamp() at time zone 'UTC')::date);
begin
  return coalesce((
    select json_agg(to_jsonb(d) - 'user_id' order by d.day, d.agent_id)
    from (select d.* from memory.usage_days d
          where d.user_id = v_user and d.day between coalesce(p_from, v_to - 29) and v_to
            and (p_agent_id is null or d.agent_id = p_agent_id)
          order by d.day desc, d.agent_id limit 10000) d), '[]');
end
$function$;
comment on function public.memory_usage is
  'langchain-supabase-memory: List what a user''s conversations came to on each day, in UTC, in numbers alone. A day without
  anything has no row. The view memory.usage_by_day shows the same.

p_from: the first day; null: 30 days with p_to.
p_to: the last day; null: today.
p_agent_id: only with this agent; null: each agent has a row of its own.
p_user_id: the user; null: the subject of the caller''s token.
Returns: object[].
- [].agent_id: text. The agent.
- [].day: text. The day, such as 2026-11-27.
- [].turns: integer. Messages of the user.
- [].messages: integer. All messages.
- [].characters: integer. Their characters.
- [].packs: integer. Prompts that came with a manifest.
- [].pack_tokens: integer. The tokens of these prompts, as they were estimated.
- [].whole_tokens: integer. What the whole history would have been in their place.
- [].wider: integer. Of how many prompts the whole history was smaller.
- [].calls: integer. Of how many prompts the model said how many tokens it used.
- [].input_tokens: integer. What these models read.
- [].cached_tokens: integer. What of that came from a cache.
- [].output_tokens: integer. What they wrote.
- [].recalls: integer. In how many prompts recall searched.
- [].recalls_empty: integer. In how many of these it found nothing.
- [].passages: integer. How many passages prompts showed.
- [].boards_shown: integer. How many prompts showed the board.
- [].failures: integer. For how many prompts the summary, recall or the reranker failed.
- [].summaries: integer. How many segments were written.
- [].boards: integer. How often boards were revised.
- [].chunks: integer. How many chunks were indexed.
- [].embeds: integer. How many of these have a vector.
- [].signals: integer[]. How many chunks have each signal, in the order of their bits.
- [].tone_sum: integer. The sum of their tone.
- [].tone_count: integer. How many have a tone.
Errors:
- PT400: p_user_id names a space; or none is given, and the caller''s token names nobody.';

-- Returns noise of a cell: Laplace's, drawn from the secret, the cell and its count. Asked again, a cell has the same; where
-- one user comes or goes, another.
create or replace function memory_private.insight_noise(p_secret text, p_cell text, p_count bigint, p_scale float8)
returns float8
language plpgsql immutable security invoker set search_path = ''
as $function$
declare
  v_drawn float8 := (('x' || left(encode(sha256(convert_to(
    p_secret || ':' || p_count || ':' || p_cell, 'UTF8')), 'hex'), 13))::bit(52)::bigint + 0.5) / 4503599627370496.0 - 0.5;
begin
  return -p_scale * sign(v_drawn) * ln(1 - 2 * abs(v_drawn));
end
$function$;

create function public.memory_worker_insights(
  p_from     date    default null, -- null: 30 days
  p_to       date    default null, -- null: yesterday
  p_agent_id text    default null,
  p_k        integer default null  -- only more than the database's own
) returns json
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_custom_plan
as $function$
declare
  v_rule  memory_private.insight_rules;
  v_today constant date := (clock_timestamp() at time zone 'UTC')::date;
  v_to    constant date := least(coalesce(p_to, v_today - 1), v_today - 1);
  v_from  constant date := greatest(coalesce(p_from, v_to - 29), v_to - 366);
  v_scale float8;
  v_least float8;
begin
  select r.* into v_rule from memory_private.insight_rules r;
  v_scale := 16 * v_rule.k;
  -- Noise alone seldom takes a cell over this, so that one user more or less does not make it appear.
  v_least := greatest(v_rule.k, p_k) + 5 * v_scale;
  return json_build_object(
    'k', v_rule.k, 'least', v_least, 'error', round(v_scale * ln(20)), 'from', v_from, 'to', v_to,
    'cells', coalesce((
      select json_agg(json_build_object('agent_id', f.agent_id, 'day', f.day, 'what', f.what, 'users', round(f.noisy))
                      order by f.day, f.agent_id, f.what)
      from (select c.agent_id, c.day, c.what, c.users + memory_private.insight_noise(
                     v_rule.secret, c.agent_id || ':' || c.day || ':' || c.what, c.users, v_scale) as noisy
            -- Counted before it is spread over cells, so that a row is read once however many cells it is in.
            from (select g.agent_id, g.day, w.what, w.users
                  from (select d.agent_id, d.day, count(*) filter (where d.turns > 0) as talked,
                               count(*) filter (where d.recalls_empty > 0) as empty_recall,
                               array[count(*) filter (where d.signals[1] > 0), count(*) filter (where d.signals[2] > 0),
                                     count(*) filter (where d.signals[3] > 0), count(*) filter (where d.signals[4] > 0),
                                     count(*) filter (where d.signals[5] > 0), count(*) filter (where d.signals[6] > 0),
                                     count(*) filter (where d.signals[7] > 0), count(*) filter (where d.signals[8] > 0)
                                    ] as signals
                        from memory.usage_days d
                        where d.day between v_from and v_to and (p_agent_id is null or d.agent_id = p_agent_id)
                        group by d.agent_id, d.day) g
                  cross join lateral unnest(
                    array['talked', 'empty_recall', 'correction', 'asked_again', 'thanks', 'complaint', 'confusion',
                          'giving_up', 'asks_for_person', 'tool_failed'],
                    array[g.talked, g.empty_recall] || g.signals) as w (what, users)
                  where w.users >= v_rule.k) c) f
      where f.noisy >= v_least), '[]'));
end
$function$;
comment on function public.memory_worker_insights is
  'langchain-supabase-memory: Count over all users, by agent and whole day, how many of them talked, had each signal, or had a
  recall that found nothing. Only numbers of users, with noise, so that nobody can tell by them whether somebody is among
  them; no totals. Who refuses analytics is in none. Today is not in it.

p_from: the first day, at most a year before p_to; null: 30 days.
p_to: the last day, at most yesterday, in UTC; null: yesterday.
p_agent_id: only of this agent; null: of each.
p_k: leaves out more cells than the database''s own k does; less than that, or null, has no effect.
Returns: object.
- k: integer. How many users have to share a cell at least, set when the database was migrated.
- least: number. A cell with less, after noise, is left out.
- error: integer. In 19 of 20 cells the noise is smaller than this.
- from: text. The first day.
- to: text. The last day.
- cells: object[]. The counts.
- cells[].agent_id: text. The agent.
- cells[].day: text. The day.
- cells[].what: text. talked; correction, asked_again, thanks, complaint, confusion, giving_up, asks_for_person or
  tool_failed; or empty_recall.
- cells[].users: integer. About how many users.
Errors: none.';

create view memory.insights with (security_invoker = true) as
select c.agent_id, c.day, c.what, c.users
from json_to_recordset(public.memory_worker_insights(
  (clock_timestamp() at time zone 'UTC')::date - 90) -> 'cells') as c (agent_id text, day date, what text, users bigint);
comment on view memory.insights is
  'How many users talked, or had a signal, by agent and day, over the last 90 days: as memory_worker_insights gives it.';

create function public.memory_recent_packs(
  p_limit    integer default 200,
  p_agent_id text    default null,
  p_user_id  text    default null
) returns json
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_custom_plan
as $function$
declare
  v_user  constant text := memory_private.resolve_profile_owner(p_user_id);
  v_limit constant integer := greatest(0, least(p_limit, 500));
begin
  return coalesce((
    select json_agg(json_build_object(
             'agent_id', t.agent_id, 'thread_id', t.thread_id, 'sequence', t.sequence, 'made_at', t.made_at, 'pack', t.pack)
             order by t.made_at desc, t.id)
    from (select c.agent_id, c.thread_id, x.sequence, x.made_at, x.pack, x.id
          from (select c.id, c.agent_id, c.thread_id from memory.conversations c
                where c.user_id = v_user and (p_agent_id is null or c.agent_id = p_agent_id) and c.opted_out_at is null
                order by c.updated_hour desc limit v_limit) c
          cross join lateral (
            select k.sequence, k.made_at, k.pack, k.id from memory.context_manifests k
            where k.user_id = v_user and k.conversation_id = c.id and k.pack is not null
              and coalesce(k.expires_at > clock_timestamp(), true)
            order by k.sequence desc limit v_limit) x
          order by x.made_at desc, x.id limit v_limit) t), '[]');
end
$function$;
comment on function public.memory_recent_packs is
  'langchain-supabase-memory: List the newest manifests of a user, over conversations, for advice: numbers alone.

p_limit: the most manifests, at most 500; of as many of the newest conversations.
p_agent_id: only with this agent; null: with all.
p_user_id: the user; null: the subject of the caller''s token.
Returns: object[]. The newest first.
- [].agent_id: text. The agent.
- [].thread_id: text. The thread.
- [].sequence: integer. The last message that was stored with it.
- [].made_at: timestamp. When it was stored.
- [].pack: json. As memory_manifests has it.
Errors:
- PT400: p_user_id names a space; or none is given, and the caller''s token names nobody.';

create function public.memory_unread(
  p_days     integer default 30,
  p_agent_id text    default null,
  p_user_id  text    default null
) returns json
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_custom_plan
as $function$
declare
  v_user  constant text := memory_private.resolve_profile_owner(p_user_id);
  v_until constant timestamptz := clock_timestamp() - greatest(0, least(p_days, 36500)) * interval '1 day';
begin
  return (
    with talks as materialized (
      select c.id from memory.conversations c
      where c.user_id = v_user and (p_agent_id is null or c.agent_id = p_agent_id)
      order by c.updated_hour desc limit 200)
    select json_build_object('chunks', k.chunks, 'chunks_unread', k.unread, 'bytes_unread', k.bytes, 'segments', s.segments,
                             'segments_unread', s.unread)
    from (select count(*) as chunks, count(*) filter (where not r.has) as unread,
                 coalesce(sum(octet_length(k.content)) filter (where not r.has), 0) as bytes
          from talks t
          cross join lateral (
            select k.from_sequence, k.part, k.content from memory.working_memory_chunks k
            where k.user_id = v_user and k.conversation_id = t.id and k.created_at <= v_until
            order by k.place limit 500) k
          cross join lateral (
            select exists (
              select from memory.reads r
              where r.user_id = v_user and r.conversation_id = t.id and r.from_sequence = k.from_sequence
                and r.part = k.part) as has) r) k
    cross join (
      select count(*) as segments, count(*) filter (where not r.has) as unread
      from talks t
      cross join lateral (
        select s.number from memory.conversation_summaries s
        where s.user_id = v_user and s.conversation_id = t.id and s.level = 0 and s.created_at <= v_until
        order by s.number limit 500) s
      cross join lateral (
        select exists (
          select from memory.reads r
          where r.user_id = v_user and r.conversation_id = t.id and r.from_sequence >= s.number and r.part = 0) as has) r) s);
end
$function$;
comment on function public.memory_unread is
  'langchain-supabase-memory: Say how much of what is older than some days no prompt has ever shown, in the 200 newest
  conversations, of the first 500 chunks and segments of each.

p_days: only what was stored so many days ago or longer.
p_agent_id: only with this agent; null: with all.
p_user_id: the user; null: the subject of the caller''s token.
Returns: object.
- chunks: integer. How many chunks were looked at.
- chunks_unread: integer. How many of them no prompt has shown.
- bytes_unread: integer. The bytes of their words.
- segments: integer. How many segments were looked at.
- segments_unread: integer. How many of them no prompt has shown, nor a later one that was built on them.
Errors:
- PT400: p_user_id names a space; or none is given, and the caller''s token names nobody.';
