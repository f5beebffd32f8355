-- Retention: what has expired, as reads hide it and writes remove it.

-- Returns what is kept of an owner's messages: what the call says; in a space its own setting, so that no caller deletes
-- or hides by it what others wrote.
create or replace function memory_private.effective_retention(p_user_id text, p_retention json) returns json
language plpgsql stable security invoker set search_path = ''
as $function$
begin
  if starts_with(p_user_id, 'space:') then
    return (select s.retention::json from memory.spaces s where s.user_id = p_user_id);
  end if;
  return p_retention;
end
$function$;

-- Says whether a conversation's summaries and its board are older than retention allows.
create or replace function memory_private.expired_derived(
  p_user_id text, p_conversation_id uuid, p_retention json, out summaries boolean, out board boolean
)
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
declare
  v_age timestamptz;
begin
  p_retention := memory_private.effective_retention(p_user_id, p_retention);
  v_age := clock_timestamp() - (p_retention ->> 'summary_age')::float8 * interval '1 second';
  select max(s.created_at) < v_age into summaries
    from ((select s.created_at from memory.conversation_summaries s
           where s.user_id = p_user_id and s.conversation_id = p_conversation_id and s.level = 0
           order by s.number desc limit 1)
          union all
          (select s.created_at from memory.conversation_summaries s
           where s.user_id = p_user_id and s.conversation_id = p_conversation_id and s.level > 0
           order by s.level desc, s.number desc limit 1)) s;
  select b.updated_at < v_age into board from memory.conversation_summary_boards b
   where b.user_id = p_user_id and b.conversation_id = p_conversation_id;
  summaries := coalesce(summaries, false);
  board := coalesce(board, false);
end
$function$;

-- Returns the sequences of messages older than a time. It looks at a thousand of them, or at a thousand of the newer
-- ones, so that neither a long history nor a long backlog is read; if both are longer, it reads the old ones.
create or replace function memory_private.sequences_older_than(
  p_user_id text, p_conversation_id uuid, p_age timestamptz
)
returns int8multirange
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
declare
  v_found record;
begin
  select range_agg(int8range(t.sequence, t.sequence, '[]')) as old, count(*) as count into v_found
    from (select m.sequence from memory.conversation_messages m
          where m.user_id = p_user_id and m.conversation_id = p_conversation_id and m.created_at < p_age
          order by m.created_at limit 1001) t;
  if v_found.count <= 1000 then
    return coalesce(v_found.old, '{}');
  end if;
  select '{(,)}'::int8multirange - range_agg(int8range(t.sequence, t.sequence, '[]')) as old, count(*) as count
    into v_found
    from (select m.sequence from memory.conversation_messages m
          where m.user_id = p_user_id and m.conversation_id = p_conversation_id and m.created_at >= p_age
          order by m.created_at limit 1001) t;
  if v_found.count <= 1000 then
    return coalesce(v_found.old, '{(,)}');
  end if;
  return (
    select range_agg(int8range(t.sequence, t.sequence, '[]'))
    from (select m.sequence from memory.conversation_messages m
          where m.user_id = p_user_id and m.conversation_id = p_conversation_id and m.created_at < p_age
          order by m.created_at) t);
end
$function$;

-- Returns the totals of ranges of messages, and the last sequence in them.
create or replace function memory_private.range_totals(
  p_user_id text, p_conversation_id uuid, p_ranges int8multirange,
  out messages bigint, out characters bigint, out tokens bigint, out last bigint
)
language sql stable security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
  select count(*), coalesce(sum(t.characters), 0), coalesce(sum(t.tokens), 0), max(t.sequence)
  from unnest(p_ranges) as r (range)
  cross join lateral (
    select m.sequence, m.characters, m.tokens from memory.conversation_messages m
    where m.user_id = p_user_id and m.conversation_id = p_conversation_id
      and m.sequence >= coalesce(lower(r.range), 0) and m.sequence < coalesce(upper(r.range), 9223372036854775807)
    order by m.sequence offset 0) t
$function$;

-- Returns between which times something of a private conversation is kept: a day, also ahead, because the clock may have
-- been set back since.
create or replace function memory_private.private_times(out oldest timestamptz, out newest timestamptz)
language sql volatile security invoker set search_path = ''
as $function$
  select clock_timestamp() - interval '1 day', clock_timestamp() + interval '1 day'
$function$;

-- Deletes private conversations that have not changed for a day: a few, by an index. It waits for nobody; what somebody
-- works on is left for the next time.
create or replace function memory_private.forget_private(
  p_user_id  text,                 -- null: everybody's that the caller may see
  p_limit    integer default 10,
  p_agent_id text    default null, -- null: with all agents
  p_thread_id text   default null, -- null: all threads
  out conversations integer,       -- how many went
  out filled integer,              -- how many of them had messages
  out messages bigint              -- how many messages they had
)
language plpgsql volatile security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
declare
  v_kept  constant record := memory_private.private_times();
  v_old   constant timestamptz := memory_private.hour_of(v_kept.oldest);
  v_ahead constant timestamptz := memory_private.hour_of(v_kept.newest);
  v_users text[];
  v_ids   uuid[];
  v_count bigint;
begin
  conversations := 0;
  filled := 0;
  messages := 0;
  if p_user_id is not null then
    select array_agg(t.user_id), array_agg(t.id) into v_users, v_ids
      from ((select c.user_id, c.id from memory.conversations c
             where c.user_id = p_user_id and c.private and c.updated_hour <= v_old and c.updated_at < v_kept.oldest
               and (p_agent_id is null or c.agent_id = p_agent_id) and (p_thread_id is null or c.thread_id = p_thread_id)
             order by c.updated_hour limit p_limit)
            union all
            (select c.user_id, c.id from memory.conversations c
             where c.user_id = p_user_id and c.private and c.updated_hour >= v_ahead and c.updated_at > v_kept.newest
               and (p_agent_id is null or c.agent_id = p_agent_id) and (p_thread_id is null or c.thread_id = p_thread_id)
             order by c.updated_hour limit p_limit)) t;
  else
    select array_agg(t.user_id), array_agg(t.id) into v_users, v_ids
      from ((select c.user_id, c.id from memory.conversations c
             where c.private and c.updated_hour <= v_old and c.updated_at < v_kept.oldest
               and (p_agent_id is null or c.agent_id = p_agent_id) and (p_thread_id is null or c.thread_id = p_thread_id)
             order by c.updated_hour, c.user_id, c.id limit p_limit)
            union all
            (select c.user_id, c.id from memory.conversations c
             where c.private and c.updated_hour >= v_ahead and c.updated_at > v_kept.newest
               and (p_agent_id is null or c.agent_id = p_agent_id) and (p_thread_id is null or c.thread_id = p_thread_id)
             order by c.updated_hour, c.user_id, c.id limit p_limit)) t;
  end if;
  for v_each in 1..coalesce(cardinality(v_ids), 0) loop
    select c.message_count into v_count from memory.conversations c
     where c.user_id = v_users[v_each] and c.id = v_ids[v_each] and c.private
       and (c.updated_at < v_kept.oldest or c.updated_at > v_kept.newest)
       for update skip locked;
    continue when not found;
    delete from memory.conversations c where c.user_id = v_users[v_each] and c.id = v_ids[v_each];
    conversations := conversations + 1;
    filled := filled + (v_count > 0)::integer;
    messages := messages + v_count;
  end loop;
end
$function$;

-- What retention does not keep of a conversation, and the conversation as it is without that. The arguments are {"turns",
-- "messages", "age", "summary_age"}, ages in seconds; the database's clock decides.
--
-- This is the only place that knows. Every read leaves out what it names, and writes nothing;
-- memory_private.delete_expired removes it: with an append that names the retention, and with memory_forget_expired. So a
-- read shows the same before that and after it.
create or replace function memory_private.find_expired(
  p_conversation memory.conversations, p_retention json,
  out conversation memory.conversations, -- as it is without it
  out messages     int8multirange,       -- the sequences: all before the first that is kept, and what lies between others
  out first        bigint,               -- the first that is kept
  out holes        int8multirange,       -- what lies between others
  out cut          bigint,               -- the first that turns and messages keep,
  out age          timestamptz,          -- and the age that is kept
  out summaries    boolean,              -- whether they have expired
  out board        boolean
)
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
declare
  v_kept     constant json := memory_private.effective_retention(p_conversation.user_id, p_retention);
  v_user     constant text := p_conversation.user_id;
  v_id       constant uuid := p_conversation.id;
  v_turns    constant integer := (v_kept ->> 'turns')::integer;
  v_messages constant integer := (v_kept ->> 'messages')::integer;
  v_beyond   constant bigint := p_conversation.message_count - v_messages;
  v_place    bigint;
  v_stored   record; -- the first and the last that are stored
  v_gone     record;
  v_times    record; -- of what is private
begin
  conversation := p_conversation;
  messages := '{}';
  holes := '{}';
  first := 0;
  cut := 0;
  summaries := false;
  board := false;
  if v_id is null or v_kept is null and not p_conversation.private then
    return;
  end if;
  age := clock_timestamp() - (v_kept ->> 'age')::float8 * interval '1 second';
  if p_conversation.private then
    v_times := memory_private.private_times();
    age := greatest(age, v_times.oldest);
  end if;
  if v_turns is not null then
    -- A question is complete if the next question or final answer is an answer.
    select t.sequence into cut
    from (select e.sequence, row_number() over () as place
          from (select m.sequence, m.final, lag(m.final) over (order by m.sequence + 0 desc) as answered
                from memory.conversation_messages m
                where m.user_id = v_user and m.conversation_id = v_id and (m.role = 'user' or m.final)
                order by m.sequence + 0 desc) e
          where not e.final and e.answered
          limit v_turns) t
    where t.place = v_turns;
  end if;
  if v_beyond > 0 then
    -- Count from the nearer end.
    if v_beyond < v_messages then
      select m.sequence into v_place from memory.conversation_messages m
       where m.user_id = v_user and m.conversation_id = v_id
       order by m.sequence offset v_beyond limit 1;
    else
      select m.sequence into v_place from memory.conversation_messages m
       where m.user_id = v_user and m.conversation_id = v_id
       order by m.sequence desc offset v_messages - 1 limit 1;
    end if;
    -- No result stays without its call. The newest block stays complete: its calls may be running.
    cut := greatest(cut, coalesce(
      (select m.sequence from memory.conversation_messages m
       where m.user_id = v_user and m.conversation_id = v_id and m.sequence >= v_place and m.role <> 'tool'
       order by m.sequence limit 1),
      (select m.sequence from memory.conversation_messages m
       where m.user_id = v_user and m.conversation_id = v_id and m.sequence < v_place and m.role <> 'tool'
       order by m.sequence desc limit 1)));
  end if;
  cut := coalesce(cut, 0);
  if age is not null then
    messages := memory_private.sequences_older_than(v_user, v_id, age);
  end if;
  if p_conversation.private then
    messages := messages + coalesce((
      select range_agg(int8range(m.sequence, m.sequence, '[]')) from memory.conversation_messages m
      where m.user_id = v_user and m.conversation_id = v_id and m.created_at > v_times.newest),
      '{}');
  end if;
  select o.summaries, o.board into summaries, board from memory_private.expired_derived(v_user, v_id, v_kept) o;
  select m.sequence as first into v_stored from memory.conversation_messages m
   where m.user_id = v_user and m.conversation_id = v_id
   order by m.sequence limit 1;
  if messages = '{}' and coalesce(v_stored.first, cut) >= cut then
    if summaries then
      conversation := memory_private.with_summary_position(conversation, first, holes, summaries);
    end if;
    return;
  end if;

  -- Results at the beginning are deleted with their call.
  messages := messages + int8multirange(int8range(null, cut));
  select coalesce(upper(r), conversation.next_sequence) into v_place from unnest(messages) r where v_stored.first <@ r;
  select m.sequence into first from memory.conversation_messages m
   where m.user_id = v_user and m.conversation_id = v_id and m.sequence >= coalesce(v_place, v_stored.first)
     and m.role <> 'tool' and not m.sequence <@ messages
   order by m.sequence limit 1;
  first := coalesce(first, conversation.next_sequence);
  holes := messages * int8multirange(int8range(first, conversation.next_sequence));
  messages := holes + int8multirange(int8range(null, first));
  -- Without gaps the messages are counted by their sequences.
  select v_stored.first, m.sequence as last into v_stored from memory.conversation_messages m
   where m.user_id = v_user and m.conversation_id = v_id
   order by m.sequence desc limit 1;
  if conversation.message_count = v_stored.last - v_stored.first + 1 then
    select sum(upper(r) - lower(r))::bigint as messages, max(upper(r)) - 1 as last into v_gone
      from unnest(messages * int8multirange(int8range(v_stored.first, v_stored.last, '[]'))) r;
  else
    v_gone := memory_private.range_totals(v_user, v_id, messages);
  end if;
  conversation.message_count := conversation.message_count - v_gone.messages;
  conversation.expired_through := greatest(conversation.expired_through, v_gone.last);
  if holes <> '{}' then
    v_gone := memory_private.range_totals(v_user, v_id, holes);
    conversation.total_characters := conversation.total_characters - v_gone.characters;
    conversation.total_tokens := conversation.total_tokens - v_gone.tokens;
  end if;
  conversation := memory_private.with_summary_position(conversation, first, holes, summaries);
end
$function$;

-- Records the ids of expired messages, so that a retry does not bring them back, and takes back what quotes them. The query includes the
-- conversation: without a table of the owner Citus would ask every node.
create or replace function memory_private.record_deleted_messages(
  p_user_id text, p_conversation_id uuid, p_message_ids text[]
) returns void
language plpgsql volatile security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
begin
  insert into memory.gone_messages (user_id, conversation_id, message_id, forgotten)
  select c.user_id, c.id, g.message_id, false
  from memory.conversations c cross join unnest(p_message_ids) as g (message_id)
  where c.user_id = p_user_id and c.id = p_conversation_id
  on conflict do nothing;
  delete from memory.contributions b
   where b.user_id = p_user_id and b.conversation_id = p_conversation_id and b.message_id = any (p_message_ids);
  perform memory_private.delete_profile_evidence(p_user_id, p_conversation_id, p_message_ids);
end
$function$;

-- Returns a retention under which only so many of the oldest messages have expired, if all of these have under the real
-- one; else null. So a long history goes in steps, each of which reads no more than it deletes.
create or replace function memory_private.step_retention(
  p_conversation memory.conversations, p_retention json, p_limit bigint
) returns json
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
declare
  v_left constant bigint := p_conversation.message_count - p_limit;
  v_age  constant timestamptz := clock_timestamp() - (p_retention ->> 'age')::float8 * interval '1 second';
  v_step constant json := json_build_object('messages', v_left);
begin
  if coalesce(v_left, 0) <= 0 or p_conversation.private or starts_with(p_conversation.user_id, 'space:') then
    return null;
  elsif v_left >= (p_retention ->> 'messages')::bigint then
    return v_step;
  elsif v_age is null or not coalesce((
    select m.created_at < v_age from memory.conversation_messages m
    where m.user_id = p_conversation.user_id and m.conversation_id = p_conversation.id
    order by m.sequence limit 1), false)
  then
    return null;
  end if;
  return (
    select case when bool_and(m.created_at < v_age) then v_step end
    from (select o.created_at from memory.conversation_messages o
          where o.user_id = p_conversation.user_id and o.conversation_id = p_conversation.id
            and o.sequence < (memory_private.find_expired(p_conversation, v_step)).first
          order by o.sequence offset 0) m);
end
$function$;

-- Deletes what has expired, and returns the number of messages. Of very many the oldest go first, in steps.
create or replace function memory_private.delete_expired(
  p_user_id text, p_conversation_id uuid, p_retention json,
  p_is_locked boolean default false, -- whether the caller holds the conversation's row
  p_limit bigint default 5000        -- about the most messages of one step; null: all
) returns bigint
language plpgsql volatile security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
declare
  v_c          memory.conversations;
  v_expired    record;
  v_step       json; -- what is kept for now
  v_range      int8range;
  v_rest       int8multirange; -- from the block on that goes on
  v_gone       record;
  v_messages   bigint := 0;
  v_last       bigint;
  v_noted      timestamptz;
  v_sequences  bigint[] := '{}'; -- of what lay between others
  v_characters integer[] := '{}';
  v_tokens     integer[] := '{}';
  v_aside      bigint; -- how many that were on no branch went
begin
  -- Check without a lock first, because mostly nothing has expired; then again under the lock.
  for v_locked in p_is_locked::integer..1 loop
    select c.* into v_c from memory.conversations c where c.user_id = p_user_id and c.id = p_conversation_id;
    v_step := memory_private.step_retention(v_c, p_retention, p_limit);
    v_expired := memory_private.find_expired(v_c, coalesce(v_step, p_retention));
    if v_aside is null then
      v_aside := memory_private.expire_superseded(p_user_id, p_conversation_id, v_expired.age, v_expired.cut);
    end if;
    if v_expired.messages = '{}' and not v_expired.summaries and not v_expired.board then
      return v_aside;
    end if;
    exit when v_locked = 1;
    -- Lock in the order of an append: the conversation, then its messages.
    perform 1 from memory.conversations c where c.user_id = p_user_id and c.id = p_conversation_id for no key update;
  end loop;

  v_rest := int8multirange(int8range(v_expired.first >> 10 << 10, null));
  if v_expired.summaries then
    update memory.control_changes h set before = null
     where h.user_id = p_user_id and h.conversation_id = p_conversation_id and h.to_sequence is not null;
    delete from memory.conversation_summaries s
     where s.user_id = p_user_id and s.conversation_id = p_conversation_id;
  end if;
  if v_expired.board then
    delete from memory.conversation_board_items i
     where i.user_id = p_user_id and i.conversation_id = p_conversation_id;
    delete from memory.conversation_board_changes h
     where h.user_id = p_user_id and h.conversation_id = p_conversation_id;
    delete from memory.conversation_summary_boards b
     where b.user_id = p_user_id and b.conversation_id = p_conversation_id;
  end if;
  delete from memory.message_blocks b
   where b.user_id = p_user_id and b.conversation_id = p_conversation_id and b.block < v_expired.first >> 10;
  perform memory_private.update_block_counts(
    p_user_id, p_conversation_id, v_expired.messages * v_rest, -1, v_c.next_sequence);
  for v_range in select r from unnest(v_expired.messages) r loop
    delete from memory.context_manifests x
     where x.user_id = p_user_id and x.conversation_id = p_conversation_id
       and x.sequence >= coalesce(lower(v_range), 0) and x.sequence < coalesce(upper(v_range), 9223372036854775807);
    with gone as materialized (
      select * from memory_private.delete_message_range(
        p_user_id, p_conversation_id, coalesce(lower(v_range), 0), coalesce(upper(v_range) - 1, 9223372036854775807)))
    select count(*) as messages, max(gone.sequence) as last, array_agg(gone.sequence) as sequences,
           array_agg(gone.characters) as characters, array_agg(gone.tokens) as tokens, array_agg(gone.message_id) as ids
      into v_gone from gone;
    perform memory_private.record_deleted_messages(p_user_id, p_conversation_id, v_gone.ids);
    v_messages := v_messages + v_gone.messages;
    v_last := greatest(v_last, v_gone.last);
    if v_range && v_expired.holes then
      v_sequences := v_sequences || v_gone.sequences;
      v_characters := v_characters || v_gone.characters;
      v_tokens := v_tokens || v_gone.tokens;
    end if;
  end loop;
  if v_sequences <> '{}' then
    perform memory_private.subtract_expired_gaps(
      p_user_id, p_conversation_id, v_expired.first, v_sequences, v_characters, v_tokens);
  end if;
  perform memory_private.update_block_counts(
    p_user_id, p_conversation_id, v_expired.messages * v_rest, 1, v_c.next_sequence);
  -- Nobody retries after so long. Ids of forgotten messages stay. With the last step, as all are read.
  v_noted := clock_timestamp() - interval '30 days';
  delete from memory.gone_messages g
   where v_step is null and g.user_id = p_user_id and g.conversation_id = p_conversation_id
     and not g.forgotten and g.gone_at < v_noted
     -- A board may still refer to them.
     and not exists (
       select from memory.conversation_summary_boards b where b.user_id = p_user_id and b.conversation_id = p_conversation_id);
  update memory.conversations c
     set message_count = c.message_count - v_messages,
         total_characters = (v_expired.conversation).total_characters,
         total_tokens = (v_expired.conversation).total_tokens,
         summarized_through = (v_expired.conversation).summarized_through,
         summarized_characters = (v_expired.conversation).summarized_characters,
         summarized_tokens = (v_expired.conversation).summarized_tokens,
         has_gone = true,
         expired_through = greatest(c.expired_through, v_last),
         -- A summary under way was built on what is deleted.
         revision = c.revision + (v_expired.summaries or v_expired.board)::integer
   where c.user_id = p_user_id and c.id = p_conversation_id;
  -- A deletion by a person is no longer needed once the messages behind it have expired.
  delete from memory.conversation_board_items i
   using memory.conversations c
   where i.user_id = p_user_id and i.conversation_id = p_conversation_id and i.deleted_at is not null
     and c.user_id = i.user_id and c.id = i.conversation_id and i.sequences[1] <= c.expired_through;
  perform memory_private.invalidate_chunks(p_user_id, p_conversation_id, 0, v_last);
  return v_messages + v_aside;
end
$function$;

-- Returns the conversations of a page of which something may have expired, and all owners of the page: too many, but misses
-- none, since memory_private.find_expired decides. Where one owner's retention sets no limit, only chunks and what is
-- private can expire: these are found by their indexes, and a page is as many of them as its limit.
create or replace function memory_private.expiring_page(
  p_user_id text, p_agent_id text, p_thread_id text, p_after_user text, p_after uuid, p_limit integer, p_retention json,
  out users text[], out ids uuid[], out owners text[], out last_user text, out last uuid, out is_full boolean
)
language plpgsql stable security invoker set search_path = ''
set enable_sort = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
as $function$
declare
  v_now   constant timestamptz := clock_timestamp();
  v_age   constant timestamptz := v_now - (p_retention ->> 'age')::float8 * interval '1 second';
  v_old   constant timestamptz := v_now - (p_retention ->> 'summary_age')::float8 * interval '1 second';
  -- Of a turn two messages are kept at least.
  v_count constant bigint := least(2 * (p_retention ->> 'turns')::bigint, (p_retention ->> 'messages')::bigint);
begin
  if p_user_id is not null and v_age is null and v_old is null and v_count is null then
    select array_agg(p_user_id), array_agg(f.id order by f.id) into users, ids
      from (select c.id
            from (select k.conversation_id
                  from (select o.conversation_id from memory.working_memory_chunks o
                        where o.user_id = p_user_id and o.expires_at is not null
                          and (o.expires_at at time zone 'UTC') <= (v_now at time zone 'UTC')
                        order by (o.expires_at at time zone 'UTC') offset 0) k
                  union
                  select o.id
                  from (select c.id from memory.conversations c
                        where c.user_id = p_user_id and c.private order by c.updated_hour offset 0) o) d (id)
            cross join lateral (
              select c.id, c.agent_id, c.thread_id from memory.conversations c
              where c.user_id = p_user_id and c.id = d.id offset 0) c
            where (p_agent_id is null or c.agent_id = p_agent_id) and (p_thread_id is null or c.thread_id = p_thread_id)
              and (p_after is null or (p_user_id, c.id) > (p_after_user, p_after))
            order by c.id limit p_limit) f;
    owners := array[p_user_id];
    last_user := p_user_id;
    last := ids[cardinality(ids)];
    is_full := coalesce(cardinality(ids), 0) = p_limit;
    return;
  end if;
  -- Planned for each call, so that one user's conversations, and each page, are a range of the primary key.
  execute $sql$
    select array_agg(p.user_id order by p.user_id, p.id), array_agg(p.id order by p.user_id, p.id),
           array_agg(distinct p.user_id)
    from (select c.user_id, c.id from memory.conversations c
          where ($1 is null or c.user_id = $1) and ($2 is null or c.agent_id = $2) and ($3 is null or c.thread_id = $3)
            and ($5 is null or (c.user_id, c.id) > ($4, $5)) and ($1 is null or $4 is distinct from $1 or c.id > $5)
          order by c.user_id, c.id limit $6) p $sql$
    into users, ids, owners
    using p_user_id, p_agent_id, p_thread_id, p_after_user, p_after, p_limit;
  is_full := coalesce(cardinality(ids), 0) = p_limit;
  last_user := users[cardinality(users)];
  last := ids[cardinality(ids)];
  -- Citus: expiring_page
  select array_agg(c.user_id order by c.user_id, c.id), array_agg(c.id order by c.user_id, c.id) into users, ids
    from unnest(users, ids) as p (user_id, id)
   cross join lateral (
     select o.user_id, o.id, o.message_count, o.private, o.has_superseded from memory.conversations o
     where o.user_id = p.user_id and o.id = p.id offset 0) c
   where c.private or starts_with(c.user_id, 'space:') or c.message_count > v_count
      or c.has_superseded and (v_age is not null or v_count is not null)
      or v_age is not null and (
        select true from memory.conversation_messages m
        where m.user_id = c.user_id and m.conversation_id = c.id and m.created_at < v_age order by m.created_at limit 1)
      or (
        select true from memory.working_memory_chunks k
        where k.user_id = c.user_id and k.conversation_id = c.id and k.expires_at <= v_now order by k.expires_at limit 1)
      or v_old is not null and (
        select d.summaries or d.board from memory_private.expired_derived(c.user_id, c.id, p_retention) d);
  -- Citus: end
end
$function$;

create function public.memory_forget_expired(
  p_retention  json    default null, -- null: only chunks that have expired
  p_user_id    text    default null, -- null: everybody that the caller may see
  p_limit      integer default 100,
  p_after_user text    default null,
  p_after      uuid    default null,
  p_thread_id  text    default null, -- null: all threads
  p_agent_id   text    default null, -- null: all agents
  p_dry_run    boolean default false -- do it, count, and take it back
) returns jsonb
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_c             record;
  v_conversations bigint := 0;
  v_messages      bigint := 0;
  v_segments      bigint := 0;
  v_chunks        bigint := 0;
  v_gone          bigint;
  v_old           bigint; -- summaries that have expired
  v_had           bigint;
  v_left          bigint;
  v_kept          json;
  v_page          record;
  v_manifests     bigint := 0;
  v_after         jsonb;
  v_most          constant integer := greatest(1, least(p_limit, 1000));
  v_private       record;
  v_is_full       boolean := false; -- whether more may be left
  v_more          boolean; -- whether more of one is left
  c_step          constant bigint := 5000; -- messages of one call
  c_most          constant integer := 100; -- conversations of which one call deletes
  v_seen          integer := 0;
  v_before        jsonb := jsonb_build_object( -- where the conversation that is looked at begins
    'user', coalesce(p_after_user, ''), 'id', coalesce(p_after, '00000000-0000-0000-0000-000000000000'));
begin
  p_user_id := memory_private.resolve_scope(p_user_id);
  if starts_with(p_user_id, 'space:') then
    perform memory_private.lock_space(p_user_id), memory_private.check_space(p_user_id, true);
  end if;
  -- In a space its own setting holds.
  p_retention := case when p_user_id is null then p_retention
                      else memory_private.effective_retention(p_user_id, p_retention) end;
  v_page := memory_private.expiring_page(
    p_user_id, p_agent_id, p_thread_id, p_after_user, p_after, v_most, p_retention);
  for v_c in select o as user_id from unnest(v_page.owners) o order by o loop
    exit when p_dry_run or v_manifests >= c_step;
    v_manifests := v_manifests + memory_private.expire_owner_manifests(
      v_c.user_id, p_agent_id, p_thread_id, c_step - v_manifests);
  end loop;
  if v_manifests >= c_step then -- more of them, and all else, with the next call
    return jsonb_build_object('conversations', 0, 'messages', 0, 'segments', 0, 'chunks', 0, 'after', v_before);
  end if;
  for v_c in
    select c.user_id, c.id, c.private
    from unnest(v_page.users, v_page.ids) with ordinality as p (user_id, id, place)
    cross join lateral (
      select o.user_id, o.id, o.private from memory.conversations o
      where o.user_id = p.user_id and o.id = p.id offset 0) c
    order by p.place
  loop
    begin
      select c.chunk_count into v_had from memory.conversations c where c.user_id = v_c.user_id and c.id = v_c.id;
      v_gone := memory_private.expire_chunks(v_c.user_id, v_c.id);
      v_more := v_gone > 0 and exists (
        select from memory.working_memory_chunks k
        where k.user_id = v_c.user_id and k.conversation_id = v_c.id and k.expires_at <= clock_timestamp());
      v_gone := 0;
      v_old := 0;
      v_kept := memory_private.effective_retention(v_c.user_id, p_retention);
      if v_kept is not null or v_c.private then
        if (memory_private.expired_derived(v_c.user_id, v_c.id, v_kept)).summaries then
          select count(*) into v_old from memory.conversation_summaries s
           where s.user_id = v_c.user_id and s.conversation_id = v_c.id;
        end if;
        v_gone := memory_private.delete_expired(
          v_c.user_id, v_c.id, v_kept, p_limit => case when not p_dry_run then c_step end);
        v_more := v_more or v_gone >= c_step and coalesce((
          select (memory_private.find_expired(
                   c, coalesce(memory_private.step_retention(c, v_kept, c_step), v_kept))).messages <> '{}'
          from memory.conversations c where c.user_id = v_c.user_id and c.id = v_c.id), false);
      end if;
      select c.chunk_count into v_left from memory.conversations c where c.user_id = v_c.user_id and c.id = v_c.id;
      v_chunks := v_chunks + coalesce(v_had - v_left, 0); -- null: it was forgotten meanwhile
      v_conversations := v_conversations + (v_gone > 0 and not v_more)::integer; -- with its last step
      v_messages := v_messages + v_gone;
      v_segments := v_segments + v_old;
      v_is_full := v_more and not p_dry_run;
      if p_dry_run then
        raise exception 'only counted' using errcode = 'PTDRY';
      end if;
    exception
    when sqlstate 'PTDRY' then null; -- what this conversation lost is there again, and the counts stay
    when data_exception or integrity_constraint_violation or program_limit_exceeded then
      -- What one owner wrote into their own rows must not stop the cleanup of others.
      raise warning 'conversation % could not be cleaned up', v_c.id using errcode = sqlstate;
    end;
    -- What is left of a long one goes with the next call, and so do the next ones.
    v_seen := v_seen + 1;
    if not v_is_full then
      v_before := jsonb_build_object('user', v_c.user_id, 'id', v_c.id);
    end if;
    if v_is_full or not p_dry_run and (v_messages >= c_step or v_seen >= c_most) then
      v_is_full := true;
      v_after := v_before;
      exit;
    end if;
  end loop;
  if not v_is_full and v_page.is_full then
    v_after := jsonb_build_object('user', v_page.last_user, 'id', v_page.last);
  end if;
  -- Last, because it waits for nobody: two cleanups would wait for each other.
  if not p_dry_run then
    v_private := memory_private.forget_private(p_user_id, v_most, p_agent_id, p_thread_id);
    v_conversations := v_conversations + v_private.filled;
    v_messages := v_messages + v_private.messages;
    v_is_full := v_is_full or v_private.conversations >= v_most;
  end if;
  return jsonb_build_object(
    'conversations', v_conversations, 'messages', v_messages, 'segments', v_segments, 'chunks', v_chunks,
    'after', case when v_is_full then coalesce(v_after, v_before) else v_after end);
end
$function$;
comment on function public.memory_forget_expired is
  'langchain-supabase-memory: Remove what retention does not keep, chunks that have expired, and private conversations
  that are a day old, over many conversations by pages. A conversation that cannot be cleaned up is passed over with a warning.

p_retention: what is kept, as in memory_append; null: only chunks that have expired go, and private conversations that
  are a day old. In a space its own setting holds.
p_user_id: only this owner''s; null: everybody''s for a server, one''s own for who is signed in.
p_limit: the most conversations that one call looks at, 1 to 1000; it also ends with about 5000 messages, 5000
  manifests, or 100 conversations of which something may have expired.
p_after_user: user of after from the last page; null: from the beginning.
p_after: id of after from the last page; null: from the beginning.
p_thread_id: only of this thread; null: of all.
p_agent_id: only with this agent; null: with all.
p_dry_run: only say what would go.
Returns: object.
- conversations: integer. How many conversations lost messages.
- messages: integer. How many messages went.
- segments: integer. How many summaries went: those of conversations whose newest was too old.
- chunks: integer. How many chunks went.
- after: object or null. Where the next page goes on; null: there is none.
- after.user: text. Pass it as p_after_user.
- after.id: uuid. Pass it as p_after.
Errors: none.';
