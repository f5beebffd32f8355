-- Turns: a user's message and everything up to its final answer, derived from the messages. And how long they are kept.

drop view if exists memory.conversation_turns;
create view memory.conversation_turns with (security_invoker = true) as
-- Numbered by everything that one may ask for, so that only what is asked for is numbered.
select u.user_id, c.agent_id, c.thread_id, u.conversation_id,
       row_number() over (
         partition by u.user_id, c.agent_id, c.thread_id, u.conversation_id order by u.sequence) as turn_number,
       u.text as user_query, a.text as ai_response, u.created_at,
       u.sequence as from_sequence, a.sequence as to_sequence
from memory.conversation_messages u
join memory.conversations c on c.user_id = u.user_id and c.id = u.conversation_id
left join lateral (
  select n.sequence from memory.conversation_messages n
  where n.user_id = u.user_id and n.conversation_id = u.conversation_id and n.sequence > u.sequence and n.role = 'user'
  order by n.sequence limit 1) following on true
cross join lateral (
  select f.sequence, f.text from memory.conversation_messages f
  where f.user_id = u.user_id and f.conversation_id = u.conversation_id and f.sequence > u.sequence
    and f.sequence < coalesce(following.sequence, 9223372036854775807) and f.final
  order by f.sequence desc limit 1) a
where u.role = 'user';
comment on view memory.conversation_turns is
  'Complete turns, numbered from 1 in each conversation among those that are kept.';

-- Remove what retention does not keep. The arguments are {"turns", "messages", "age", "summary_age"}, ages in seconds.
-- The database's clock decides. Returns how many messages went.
create or replace function memory_private.retain(p_user_id text, p_conversation_id uuid, p_retention json)
returns bigint
language plpgsql volatile security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
declare
  v_turns    integer := (p_retention ->> 'turns')::integer;
  v_messages integer := (p_retention ->> 'messages')::integer;
  v_age      timestamptz := clock_timestamp() - (p_retention ->> 'age')::float8 * interval '1 second';
  v_summary  timestamptz := clock_timestamp() - (p_retention ->> 'summary_age')::float8 * interval '1 second';
  v_cut      bigint; -- the first that stays
  v_place    bigint;
  v_first    bigint;
  v_expired  boolean;
  v_old      boolean;
  v_board    boolean;
  v_before   record;
  v_aged     record;
  v_results  record;
  v_aside    bigint; -- how many that were on no branch went
begin
  -- Looked at without a lock, because mostly nothing is to be done; then once more under it, because others write.
  for v_locked in 0..1 loop
    v_cut := 0;
    if v_turns is not null then
      -- A question is complete if the next question or final answer is an answer.
      select t.sequence into v_cut
      from (select e.sequence, row_number() over () as place
            from (select m.sequence, m.final, lag(m.final) over (order by m.sequence + 0 desc) as answered
                  from memory.conversation_messages m
                  where m.user_id = p_user_id and m.conversation_id = p_conversation_id and (m.role = 'user' or m.final)
                  order by m.sequence + 0 desc) e
            where not e.final and e.answered
            limit v_turns) t
      where t.place = v_turns;
    end if;
    if v_messages is not null then
      select greatest(c.message_count - v_messages, 0) into v_place from memory.conversations c
       where c.user_id = p_user_id and c.id = p_conversation_id;
      select m.sequence into v_place from memory.conversation_messages m
       where v_place > 0 and m.user_id = p_user_id and m.conversation_id = p_conversation_id
       order by m.sequence offset v_place limit 1;
      -- No result stays without its call. The newest block always stays whole: it may still be at work.
      v_cut := greatest(v_cut, coalesce(
        (select m.sequence from memory.conversation_messages m
         where m.user_id = p_user_id and m.conversation_id = p_conversation_id
           and m.sequence >= v_place and m.role <> 'tool'
         order by m.sequence limit 1),
        (select m.sequence from memory.conversation_messages m
         where m.user_id = p_user_id and m.conversation_id = p_conversation_id
           and m.sequence < v_place and m.role <> 'tool'
         order by m.sequence desc limit 1)));
    end if;
    v_cut := coalesce(v_cut, 0);
    if v_age is not null then
      select m.created_at < v_age into v_expired from memory.conversation_messages m
       where m.user_id = p_user_id and m.conversation_id = p_conversation_id
       order by m.created_at limit 1;
    end if;
    select max(s.created_at) < v_summary into v_old
      from ((select s.created_at from memory.conversation_summaries s
             where s.user_id = p_user_id and s.conversation_id = p_conversation_id and s.level = 0
             order by s.number desc limit 1)
            union all
            (select s.created_at from memory.conversation_summaries s
             where s.user_id = p_user_id and s.conversation_id = p_conversation_id and s.level > 0
             order by s.level desc, s.number desc limit 1)) s;
    select b.updated_at < v_summary into v_board from memory.conversation_summary_boards b
     where b.user_id = p_user_id and b.conversation_id = p_conversation_id;
    select m.sequence into v_first from memory.conversation_messages m
     where m.user_id = p_user_id and m.conversation_id = p_conversation_id
     order by m.sequence limit 1;
    if v_locked = 0 then
      v_aside := memory_private.expire_superseded(p_user_id, p_conversation_id, v_age, v_cut);
    end if;
    if v_expired is not true and v_old is not true and v_board is not true and coalesce(v_first, v_cut) >= v_cut then
      return v_aside;
    end if;
    exit when v_locked = 1;
    -- In the order that an append takes them: the conversation, then its messages.
    perform 1 from memory.conversations c where c.user_id = p_user_id and c.id = p_conversation_id for no key update;
  end loop;

  if v_old then
    update memory.control_changes h set before = null
     where h.user_id = p_user_id and h.conversation_id = p_conversation_id and h.to_sequence is not null;
    delete from memory.conversation_summaries s
     where s.user_id = p_user_id and s.conversation_id = p_conversation_id;
  end if;
  if v_board then
    delete from memory.conversation_board_items i
     where i.user_id = p_user_id and i.conversation_id = p_conversation_id;
    delete from memory.conversation_board_changes h
     where h.user_id = p_user_id and h.conversation_id = p_conversation_id;
    delete from memory.conversation_summary_boards b
     where b.user_id = p_user_id and b.conversation_id = p_conversation_id;
  end if;
  with gone as (
    delete from memory.conversation_messages m
     where m.ctid = any (array(
       select t.ctid from memory.conversation_messages t
       where t.user_id = p_user_id and t.conversation_id = p_conversation_id and t.sequence < v_cut
       order by t.sequence))
    returning m.sequence, m.message_id),
  noted as (
    insert into memory.gone_messages (user_id, conversation_id, message_id, forgotten)
    select p_user_id, p_conversation_id, gone.message_id, false from gone on conflict do nothing)
  select count(*) as messages, max(gone.sequence) as last into v_before from gone;
  with gone as (
    delete from memory.conversation_messages m
     where m.ctid = any (array(
       select t.ctid from memory.conversation_messages t
       where t.user_id = p_user_id and t.conversation_id = p_conversation_id and t.created_at < v_age
       order by t.created_at))
    returning m.sequence, m.message_id, m.characters, m.tokens),
  noted as (
    insert into memory.gone_messages (user_id, conversation_id, message_id, forgotten)
    select p_user_id, p_conversation_id, gone.message_id, false from gone on conflict do nothing)
  select count(*) as messages, max(gone.sequence) as last, array_agg(gone.sequence) as sequences,
         array_agg(gone.characters) as characters, array_agg(gone.tokens) as tokens
    into v_aged from gone;
  select m.sequence into v_first from memory.conversation_messages m
   where m.user_id = p_user_id and m.conversation_id = p_conversation_id
   order by m.sequence limit 1;
  if v_aged.last > v_first then
    perform memory_private.close_holes(
      p_user_id, p_conversation_id, v_first, v_aged.sequences, v_aged.characters, v_aged.tokens);
  end if;
  -- Results at the beginning whose call has just gone go with it.
  with gone as (
    delete from memory.conversation_messages m
     where m.ctid = any (array(
       select t.ctid from memory.conversation_messages t
       where t.user_id = p_user_id and t.conversation_id = p_conversation_id
         and v_before.messages + v_aged.messages > 0
         and t.sequence < coalesce(
           (select k.sequence from memory.conversation_messages k
            where k.user_id = p_user_id and k.conversation_id = p_conversation_id and k.role <> 'tool'
            order by k.sequence limit 1), 9223372036854775807)
       order by t.sequence))
    returning m.sequence, m.message_id),
  noted as (
    insert into memory.gone_messages (user_id, conversation_id, message_id, forgotten)
    select p_user_id, p_conversation_id, gone.message_id, false from gone on conflict do nothing)
  select count(*) as messages, max(gone.sequence) as last into v_results from gone;
  -- Nobody retries for so long; what was forgotten stays noted.
  delete from memory.gone_messages g
   where g.user_id = p_user_id and g.conversation_id = p_conversation_id
     and not g.forgotten and g.gone_at < clock_timestamp() - interval '30 days'
     -- A board may still tell of them.
     and not exists (
       select from memory.conversation_summary_boards b where b.user_id = p_user_id and b.conversation_id = p_conversation_id);
  update memory.conversations c
     set message_count = c.message_count - v_before.messages - v_aged.messages - v_results.messages,
         has_gone = true,
         expired_through = greatest(c.expired_through, v_before.last, v_aged.last, v_results.last),
         -- A summary under way was built on those that went.
         revision = c.revision + (v_old is true or v_board is true)::integer
   where c.user_id = p_user_id and c.id = p_conversation_id;
  -- What a person deleted from the board is not said any more, so nothing has to keep it from coming back.
  delete from memory.conversation_board_items i
   using memory.conversations c
   where i.user_id = p_user_id and i.conversation_id = p_conversation_id and i.deleted_at is not null
     and c.user_id = i.user_id and c.id = i.conversation_id and i.sequences[1] <= c.expired_through;
  perform memory_private.reposition(p_user_id, p_conversation_id);
  perform memory_private.unchunk(
    p_user_id, p_conversation_id, 0, greatest(v_before.last, v_aged.last, v_results.last));
  return v_before.messages + v_aged.messages + v_results.messages + v_aside;
end
$function$;

-- What is too old may lie between messages that are not, if its time was given: then the sums are made right again, as
-- for a message that is forgotten.
create or replace function memory_private.close_holes(
  p_user_id text, p_conversation_id uuid, p_first bigint, p_sequences bigint[], p_characters integer[], p_tokens integer[]
) returns void
language plpgsql volatile security invoker set search_path = ''
as $function$
begin
  update memory.conversation_messages m
     set cumulative_characters = m.cumulative_characters - (
       select sum(g.characters) from unnest(p_sequences, p_characters) as g (sequence, characters)
       where g.sequence > p_first and g.sequence < m.sequence)
   where m.user_id = p_user_id and m.conversation_id = p_conversation_id
     and m.sequence > (select min(g) from unnest(p_sequences) g where g > p_first);
  update memory.conversation_summaries s
     set characters_through = s.characters_through - g.characters,
         tokens_through = s.tokens_through - g.tokens
    from (select t.level, t.number, sum(h.characters) as characters, sum(h.tokens) as tokens
          from memory.conversation_summaries t
          join unnest(p_sequences, p_characters, p_tokens) as h (sequence, characters, tokens)
            on h.sequence > p_first and h.sequence <= t.to_sequence
          where t.user_id = p_user_id and t.conversation_id = p_conversation_id
          group by t.level, t.number) g
   where s.user_id = p_user_id and s.conversation_id = p_conversation_id and s.level = g.level and s.number = g.number;
  update memory.conversations c
     set total_characters = c.total_characters - g.characters,
         total_tokens = c.total_tokens - g.tokens
    from (select sum(h.characters) as characters, sum(h.tokens) as tokens
          from unnest(p_sequences, p_characters, p_tokens) as h (sequence, characters, tokens)
          where h.sequence > p_first) g
   where c.user_id = p_user_id and c.id = p_conversation_id;
end
$function$;

-- Where summarizing goes on: after the newest segment, or after what is gone from the conversation's beginning.
create or replace function memory_private.reposition(p_user_id text, p_conversation_id uuid) returns void
language plpgsql volatile security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
declare
  v_segment record;
  v_first   record;
begin
  select s.to_sequence, s.characters_through, s.tokens_through into v_segment from memory.conversation_summaries s
   where s.user_id = p_user_id and s.conversation_id = p_conversation_id and s.level = 0
   order by s.number desc limit 1;
  select m.sequence, m.cumulative_characters - m.characters as characters into v_first
    from memory.conversation_messages m
   where m.user_id = p_user_id and m.conversation_id = p_conversation_id
   order by m.sequence limit 1;
  update memory.conversations c
     set summarized_through = greatest(
           coalesce(v_segment.to_sequence, -1), coalesce(v_first.sequence, c.next_sequence) - 1),
         summarized_characters = greatest(
           coalesce(v_segment.characters_through, 0), coalesce(v_first.characters, c.total_characters)),
         summarized_tokens = case
           when coalesce(v_first.sequence, c.next_sequence) - 1 <= coalesce(v_segment.to_sequence, -1)
           then least(coalesce(v_segment.tokens_through, 0), c.total_tokens)
           -- Expired tokens are not counted one by one: what is left is estimated by its share of the characters.
           else c.total_tokens - ceil(
             c.total_tokens * (c.total_characters - coalesce(v_first.characters, c.total_characters))
             / greatest(c.total_characters, 1)::numeric)::bigint
         end
   where c.user_id = p_user_id and c.id = p_conversation_id;
end
$function$;

create function public.memory_turns(
  p_thread_id text,
  p_user_id   text        default null,
  p_agent_id  text        default 'default',
  p_last      integer     default null, -- the newest so many
  p_skip      integer     default 0,    -- without the newest so many of them
  p_before    bigint      default null, -- only those that begin before this sequence
  p_number    integer     default null, -- instead: the one with this number
  p_since     timestamptz default null,
  p_until     timestamptz default null,
  p_retention json        default null
) returns json -- {"turns", "more"}
language plpgsql volatile security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
declare
  v_user   text := memory_private.owner(p_user_id);
  v_before bigint := coalesce(p_before, 9223372036854775807);
  v_limit  integer := case when p_number is null then greatest(0, least(p_last, 1000)) else 1 end;
  v_bytes  bigint := (memory_private.allowed()).answer_bytes;
  v_id     uuid;
  v_total  bigint;
  v_found  json;
begin
  select c.id into v_id from memory.conversations c
   where c.user_id = v_user and c.agent_id = p_agent_id and c.thread_id = p_thread_id;
  if not found then
    return '{"turns": [], "more": false}';
  end if;
  if p_retention is not null then
    perform memory_private.retain(v_user, v_id, p_retention);
  end if;
  -- A question is complete if the next question or final answer is an answer.
  select count(*) into v_total
    from (select m.final, lead(m.final) over (order by m.sequence + 0) as answered from memory.conversation_messages m
          where m.user_id = v_user and m.conversation_id = v_id and (m.role = 'user' or m.final)
            and m.sequence + 0 < v_before) t
   where not t.final and t.answered;
  if p_number not between 1 and v_total then
    return '{"turns": [], "more": false}';
  end if;
  -- A page ends where it is long or large enough.
  select json_build_object(
           'turns', coalesce(json_agg((
             select r from (select x.turn_number, x.user_query, x.ai_response, x.created_at, x.from_sequence,
                                   x.to_sequence) r) order by x.turn_number)
             filter (where x.number <= v_limit and x.before < v_bytes), '[]'),
           'more', coalesce(bool_or(x.number > v_limit or x.before >= v_bytes), false))
    into v_found
  from (
    select y.*, row_number() over w as number,
           sum(octet_length(y.user_query) + octet_length(y.ai_response)) over w
             - octet_length(y.user_query) - octet_length(y.ai_response) as before
    from (
    select v_total + 1 - t.place as turn_number, t.user_query, t.ai_response, t.created_at, t.from_sequence,
           t.to_sequence
    from (
      select u.sequence as from_sequence, a.sequence as to_sequence, u.text as user_query, a.text as ai_response,
             u.created_at, row_number() over () as place
      from (select m.sequence + 0 as sequence, m.text, m.created_at,
                   lag(m.sequence) over (order by m.sequence + 0 desc) as following
            from memory.conversation_messages m
            where m.user_id = v_user and m.conversation_id = v_id and m.role = 'user' and m.sequence + 0 < v_before
            order by m.sequence + 0 desc) u
      cross join lateral (
        select f.sequence, f.text from memory.conversation_messages f
        where f.user_id = v_user and f.conversation_id = v_id and f.sequence + 0 > u.sequence
          and f.sequence + 0 < coalesce(u.following, v_before) and f.final
        order by f.sequence + 0 desc limit 1) a
      order by u.sequence desc) t
    where t.created_at >= coalesce(p_since, '-infinity') and t.created_at < coalesce(p_until, 'infinity')
    offset p_skip + coalesce(v_total - p_number, 0)
    limit v_limit + 1) y
    window w as (rows unbounded preceding)) x; -- in the order in which they are read
  return v_found;
end
$function$;
comment on function public.memory_turns is
  'langchain-supabase-memory: complete turns of a conversation, numbered from 1 among those that are kept.';

create function public.memory_forget_expired(
  p_retention  json    default null, -- null: only chunks that have expired
  p_user_id    text    default null, -- null: everybody that the caller may see
  p_limit      integer default 100,
  p_after_user text    default null,
  p_after      uuid    default null
) returns jsonb
language plpgsql volatile security invoker set search_path = ''
set enable_sort = off set jit = off
as $function$
declare
  v_c             record;
  v_conversations bigint := 0;
  v_messages      bigint := 0;
  v_chunks        bigint := 0;
  v_gone          bigint;
  v_had           bigint;
  v_left          bigint;
  v_seen          integer := 0;
  v_after         jsonb;
begin
  -- Built here, so that one user's conversations, and each page, are a range of the primary key.
  for v_c in execute format(
    'select c.user_id, c.id from memory.conversations c where true%s%s order by c.user_id, c.id limit $4',
    case when p_user_id is not null then ' and c.user_id = $1' end,
    case when p_after is not null then ' and (c.user_id, c.id) > ($2, $3)' end)
    using p_user_id, p_after_user, p_after, greatest(1, least(p_limit, 1000))
  loop
    begin
      select c.chunk_count into v_had from memory.conversations c where c.user_id = v_c.user_id and c.id = v_c.id;
      perform memory_private.expire_chunks(v_c.user_id, v_c.id);
      perform memory_private.expire_comparisons(v_c.user_id, v_c.id);
      v_gone := case when p_retention is null then 0
                     else memory_private.retain(v_c.user_id, v_c.id, p_retention) end;
      select c.chunk_count into v_left from memory.conversations c where c.user_id = v_c.user_id and c.id = v_c.id;
      v_chunks := v_chunks + coalesce(v_had - v_left, 0); -- null: it was forgotten meanwhile
      v_conversations := v_conversations + (v_gone > 0)::integer;
      v_messages := v_messages + v_gone;
    exception when data_exception or integrity_constraint_violation or program_limit_exceeded then
      -- What an owner has written into their own rows keeps nobody else's.
      raise warning 'conversation % could not be cleaned up', v_c.id using errcode = sqlstate;
    end;
    v_seen := v_seen + 1;
    v_after := jsonb_build_object('user', v_c.user_id, 'id', v_c.id);
  end loop;
  return jsonb_build_object(
    'conversations', v_conversations, 'messages', v_messages, 'chunks', v_chunks,
    'after', case when v_seen = greatest(1, least(p_limit, 1000)) then v_after end);
end
$function$;
comment on function public.memory_forget_expired is
  'langchain-supabase-memory: remove what retention does not keep, over many conversations.';
