-- Signals: what a user's words tell about how a conversation goes. Python finds them where chunks are made; a chunk has
-- them as bits, with the places of the words in its own content, so they go when it goes.

-- Returns what may not be made of a user's words as they are indexed: what they refuse. A space is no user, whose signals
-- and tone could be told.
create or replace function memory_private.refused_purposes(p_user_id text) returns text[]
language plpgsql stable security invoker set search_path = ''
as $function$
begin
  return case when starts_with(p_user_id, 'space:') then '{signals,tone}'::text[] end || array(
    select c.purpose from memory.consents c
    where c.user_id = p_user_id and c.purpose in ('signals', 'tone', 'topics') and not c.allowed);
end
$function$;

-- Returns the signals of what is left of a conversation's chunks. One look-up for each combination, however many there
-- are.
create or replace function memory_private.signals_left(p_user_id text, p_conversation_id uuid) returns smallint
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
begin
  return (
    select coalesce(bit_or(s.bits), 0)::smallint from generate_series(1, 255) as s (bits)
    where (select k.signals from memory.working_memory_chunks k
           where k.user_id = p_user_id and k.conversation_id = p_conversation_id and k.signals <> 0
             and k.signals between s.bits::smallint and s.bits::smallint
           order by k.signals, k.place limit 1) is not null);
end
$function$;

-- Says whether the last tool that was called for the newest message of a user failed.
create or replace function memory_private.last_tool_failed(
  p_user_id text, p_conversation_id uuid, p_through bigint
) returns boolean
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
begin
  return coalesce((
    select t.role = 'tool' and t.failed
    from (select m.sequence, m.role, m.payload #>> '{data,status}' = 'error' as failed
          from memory.conversation_messages m
          where m.user_id = p_user_id and m.conversation_id = p_conversation_id and m.sequence <= p_through
          order by m.sequence desc limit 4) t
    where t.role in ('user', 'tool')
    order by t.sequence desc limit 1), false);
end
$function$;

-- Clears the signals or the tone of all of a user's chunks. The caller holds the lock on the user's opt-outs, so that no
-- commit brings them back, and all of the user's conversations.
create or replace function memory_private.clear_speech(p_user_id text, p_purpose text) returns void
language plpgsql volatile security invoker set search_path = ''
set plan_cache_mode = force_generic_plan
as $function$
begin
  if p_purpose = 'signals' then
    update memory.working_memory_chunks k set signals = 0, quotes = null where k.user_id = p_user_id and k.signals <> 0;
    update memory.conversations c set signals = 0 where c.user_id = p_user_id and c.signals <> 0;
  elsif p_purpose = 'tone' then
    update memory.working_memory_chunks k set tone = null where k.user_id = p_user_id and k.tone is not null;
  end if;
end
$function$;

create function public.memory_signals(
  p_thread_id text,
  p_user_id   text    default null,
  p_agent_id  text    default 'default',
  p_signals   integer default 255, -- only these
  p_place     bigint  default -1,  -- after this place
  p_part      integer default 0,   -- and part
  p_limit     integer default 1000,
  p_retention json    default null,
  p_from_sequence bigint default null, -- only from this message on,
  p_to_sequence   bigint default null  -- and up to this one
) returns json -- {"signals", "more"}
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
declare
  v_user  text := memory_private.resolve_owner(p_user_id);
  v_limit integer := greatest(0, least(p_limit, 1000));
  v_c     memory.conversations;
  v_gone  record;
  v_first bigint; -- the places between which these messages are
  v_last  bigint;
begin
  select c.* into v_c from memory.conversations c
   where c.user_id = v_user and c.agent_id = p_agent_id and c.thread_id = p_thread_id;
  if not found then
    return json_build_object('signals', '[]'::json, 'more', false);
  end if;
  v_gone := memory_private.find_expired(v_c, p_retention);
  if p_from_sequence is not null then
    select k.place into v_first from memory.working_memory_chunks k
     where k.user_id = v_user and k.conversation_id = v_c.id and k.to_sequence >= p_from_sequence
     order by k.to_sequence limit 1;
  end if;
  if p_to_sequence is not null then
    select k.place into v_last from memory.working_memory_chunks k
     where k.user_id = v_user and k.conversation_id = v_c.id and k.to_sequence > p_to_sequence
     order by k.to_sequence limit 1;
  end if;
  -- A page of each combination of signals, so that the chunks without any are not read.
  return (
    select json_build_object(
             'signals', coalesce(json_agg(json_build_object(
               'place', t.place, 'part', t.part, 'signals', t.signals & p_signals, 'quotes', t.quotes,
               'sequence', t.from_sequence, 'message_id', t.message_ids[1], 'said_at', t.said_at,
               'speaker', t.speaker) order by t.place, t.part) filter (where t.number <= v_limit), '[]'),
             'more', coalesce(bool_or(t.number > v_limit), false))
    from (select k.*, row_number() over (order by k.place, k.part) as number
          from generate_series(1, 255) as s (bits)
          cross join lateral (
            select k.place, k.part, k.signals, k.from_sequence, k.message_ids, k.said_at, k.speaker, array(
                     select substr(k.content, lower(q.range) + 1, upper(q.range) - lower(q.range))
                     from unnest(k.quotes) with ordinality as q (range, number)
                     join (select b.bit, row_number() over (order by b.bit) as number
                           from generate_series(0, 7) as b (bit) where k.signals & (1 << b.bit) <> 0) n using (number)
                     where p_signals & (1 << n.bit) <> 0
                     order by q.number) as quotes
            from memory.working_memory_chunks k
            where k.user_id = v_user and k.conversation_id = v_c.id and k.signals <> 0
              and k.signals between s.bits::smallint and s.bits::smallint
              and (k.place, k.part) > (greatest(p_place, v_first - 1), case when v_first > p_place then 1000000000 else p_part end)
              and (v_last is null or k.place < v_last)
              and (p_from_sequence is null or k.from_sequence >= p_from_sequence)
              and (p_to_sequence is null or k.from_sequence <= p_to_sequence)
              and k.from_sequence >= v_gone.first and not k.from_sequence <@ v_gone.holes
              and (k.expires_at is null or k.expires_at > clock_timestamp())
            order by k.signals, k.place, k.part limit v_limit + 1 offset 0) k
          where s.bits & p_signals <> 0
          order by k.place, k.part limit v_limit + 1) t);
end
$function$;
comment on function public.memory_signals is
  'langchain-supabase-memory: List the signals of a conversation with the words that tell them, in their order. The bits
  are 1 a correction, 2 asked again, 4 thanks, 8 a complaint, 16 confusion, 32 giving up, 64 asks for a person, 128 a tool
  failed right before.

p_thread_id: the thread of the conversation.
p_user_id: the owner; null: the subject of the caller''s token.
p_agent_id: the agent of the conversation.
p_signals: only these, the sum of their bits.
p_place: the place at which the last page ended; -1: from the beginning.
p_part: the part at which it ended.
p_limit: the most messages of one page, at most 1000.
p_retention: what is kept, as in memory_append: what is beyond it is not shown. Null: everything is.
p_from_sequence: only those of this message and later ones; null: from the first.
p_to_sequence: only those of this message and earlier ones; null: to the last.
Returns: object.
- signals: object[]. The messages that have some.
- signals[].place: integer. The place of the chunk.
- signals[].part: integer. Its part.
- signals[].signals: integer. Its signals, as bits.
- signals[].quotes: text[]. The words that tell each of them, in the order of the bits.
- signals[].sequence: integer. The sequence of the message.
- signals[].message_id: text. Its id.
- signals[].said_at: timestamp. When it was said.
- signals[].speaker: text or null. The name of who said it, if the message has one.
- more: boolean. Whether more follow.
Errors:
- PT400: no p_user_id is given, and the caller''s token names nobody.';
