-- Manifests: what stood in a prompt, in numbers. They come with the answer's append and cost it nothing if they are
-- none; where words have changed or gone since, the reader is told.

-- Deletes those of the oldest p_most manifests of a conversation that are too old.
create or replace function memory_private.expire_manifests(
  p_user_id text, p_conversation_id uuid, p_most integer
) returns void
language plpgsql volatile security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
declare
  v_now constant timestamptz := clock_timestamp();
begin
  -- Mostly the oldest is one of the first to go: where it stays, an append looks no further.
  if (
    select k.expires_at >= v_now from memory.context_manifests k
    where k.user_id = p_user_id and k.conversation_id = p_conversation_id
    order by k.sequence, k.id
    limit 1)
  then
    return;
  end if;
  delete from memory.context_manifests x
   using (
     select k.user_id, k.conversation_id, k.sequence, k.id from memory.context_manifests k
     where k.user_id = p_user_id and k.conversation_id = p_conversation_id
     order by k.sequence, k.id
     limit p_most offset 0) r
   -- Citus finds the node by the owner and the conversation.
   where x.user_id = p_user_id and x.conversation_id = p_conversation_id
     and x.user_id = r.user_id and x.conversation_id = r.conversation_id and x.sequence = r.sequence and x.id = r.id
     and x.expires_at < v_now;
end
$function$;

-- Deletes an owner's manifests that are too old, the oldest first, and returns how many. Where none is, it reads nothing.
create or replace function memory_private.expire_owner_manifests(
  p_user_id   text,
  p_agent_id  text,   -- null: with all agents
  p_thread_id text,   -- null: of all threads
  p_limit     bigint
) returns bigint
language plpgsql volatile security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set enable_hashjoin = off set enable_mergejoin = off
set jit = off
as $function$
declare
  v_now  constant timestamptz := clock_timestamp();
  v_gone bigint;
begin
  with due as materialized (
    select k.conversation_id, k.sequence, k.id from memory.context_manifests k
    where k.user_id = p_user_id and k.expires_at < v_now
      and (p_agent_id is null and p_thread_id is null or exists (
        select from memory.conversations c
        where c.user_id = p_user_id and c.id = k.conversation_id
          and (p_agent_id is null or c.agent_id = p_agent_id) and (p_thread_id is null or c.thread_id = p_thread_id)))
    order by k.expires_at limit p_limit)
  delete from memory.context_manifests x
   using (select d.conversation_id, d.sequence, d.id from due d order by d.conversation_id, d.sequence, d.id offset 0) d
   where x.user_id = p_user_id and x.conversation_id = d.conversation_id and x.sequence = d.sequence and x.id = d.id;
  get diagnostics v_gone = row_count;
  return v_gone;
end
$function$;

-- Stores the manifest that came with messages. An invalid one is ignored without an error, so that no answer is lost
-- for it.
create or replace function memory_private.insert_manifest(
  p_user_id text, p_conversation_id uuid, p_first bigint, p_last bigint, p_pack json
) returns void
language plpgsql volatile security invoker set search_path = ''
set plan_cache_mode = force_generic_plan
as $function$
declare
  v_now constant timestamptz := clock_timestamp();
  v_age float8; -- in seconds; 0: as long as its messages; negative: nothing is said of it
begin
  if memory_private.is_valid_manifest(p_pack, null, p_first, p_last, v_now, null) then
    v_age := p_pack #>> '{0,7}';
    insert into memory.context_manifests (user_id, conversation_id, sequence, from_sequence, made_at, expires_at, pack)
    values (
      p_user_id, p_conversation_id, p_last, p_first, v_now,
      case when v_age = 0 then null
           when v_age > 0 then v_now + least(v_age, 3153600000) * interval '1 second'
           else v_now + interval '2592000 seconds' end,
      p_pack);
  end if;
  -- A few at a time, so that manifests do not grow without a cleanup.
  if p_first >> 6 < p_last + 1 >> 6 then
    perform memory_private.expire_manifests(p_user_id, p_conversation_id, 100);
  end if;
end
$function$;

-- Deletes the manifests of the turn of a message, up to the next question.
create or replace function memory_private.delete_turn_manifests(
  p_user_id text, p_conversation_id uuid, p_sequence bigint
) returns void
language plpgsql volatile security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
begin
  delete from memory.context_manifests x
   where x.user_id = p_user_id and x.conversation_id = p_conversation_id and x.sequence >= p_sequence
     and x.sequence < coalesce((
       select m.sequence + 0 from memory.conversation_messages m
       where m.user_id = p_user_id and m.conversation_id = p_conversation_id and (m.role = 'user' or m.final)
         and m.sequence + 0 > p_sequence and m.role = 'user'
       order by m.sequence + 0 limit 1), 9223372036854775807);
end
$function$;

-- Returns the messages whose words a manifest refers to: those that were shown or pointed at, and those of recalled
-- chunks.
create or replace function memory_private.manifest_sequences(p_pack json) returns int8multirange
language sql immutable security invoker set search_path = ''
as $function$
  select coalesce(range_agg(int8range(t.first, least(t.last, t.first + 9999), '[]')), '{}')
  from (
    select case when e ->> 0 = '3' then (e ->> 1)::bigint when e ->> 1 in ('2', '5', '6') then (e ->> 6)::bigint end as first,
           case when e ->> 0 = '3' then (e ->> 2)::bigint when e ->> 1 in ('2', '5', '6') then (e ->> 7)::bigint end as last
    from json_array_elements(p_pack) e
    where e ->> 0 in ('1', '3')
    union all
    select (e ->> i)::bigint, (e ->> i)::bigint + (e ->> i + 1)::bigint
    from json_array_elements(p_pack) e cross join lateral generate_series(1, json_array_length(e) - 3, 3) i
    where e ->> 0 = '14') t
  where t.first >= 0 and t.last >= t.first
$function$;

-- Returns the board items that a manifest refers to, by the prefixes of their ids.
create or replace function memory_private.manifest_items(p_pack json) returns bigint[]
language sql immutable security invoker set search_path = ''
as $function$
  select array(
    select i.id::bigint
    from json_array_elements(p_pack) e cross join lateral json_array_elements_text(e) with ordinality i (id, place)
    where e ->> 0 = '2' and i.place > 1
    order by i.place)
$function$;

-- Returns when each of some board items, given by prefixes of their ids, was last edited; -infinity: never. Items
-- that were deleted are left out.
create or replace function memory_private.item_edit_times(p_user_id text, p_conversation_id uuid, p_items bigint[])
returns jsonb
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
begin
  return (
    select coalesce(jsonb_object_agg(b.id, i.edited_at), '{}')
    from (select distinct n as id, lpad(to_hex(n), 8, '0') as digits from unnest(p_items) n) b
    cross join lateral (
      select coalesce(k.edited_at, '-infinity') as edited_at from memory.conversation_board_items k
      where k.user_id = p_user_id and k.conversation_id = p_conversation_id
        and k.id >= (b.digits || '-0000-0000-0000-000000000000')::uuid
        and k.id <= (b.digits || '-ffff-ffff-ffff-ffffffffffff')::uuid and k.deleted_at is null
      order by k.id limit 1) i);
end
$function$;

create function public.memory_manifests(
  p_thread_id text,
  p_user_id   text    default null,
  p_agent_id  text    default 'default',
  p_from      bigint  default null,
  p_to        bigint  default null,
  p_limit     integer default 20,
  p_after     text    default null,
  p_retention json    default null
) returns json
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
declare
  v_user   text := memory_private.resolve_owner(p_user_id);
  v_limit  integer := greatest(1, least(p_limit, 200));
  v_c      memory.conversations;
  v_gone   record; -- what has expired
  v_at     bigint := 9223372036854775807;
  v_id     uuid := 'ffffffff-ffff-ffff-ffff-ffffffffffff';
  v_row    memory.context_manifests;
  v_found  memory.context_manifests[] := '{}';
  v_more   boolean;
  v_named  int8multirange;
  v_stored record;
  v_items  jsonb;
begin
  if p_after is not null then
    begin
      v_at := split_part(p_after, '/', 1)::bigint;
      v_id := split_part(p_after, '/', 2)::uuid;
    exception when data_exception then
      raise exception 'the place of a page cannot be read'
        using errcode = 'PT400', hint = 'pass what a page gave as after, as it is';
    end;
  end if;
  select c.* into v_c from memory.conversations c
   where c.user_id = v_user and c.agent_id = p_agent_id and c.thread_id = p_thread_id;
  if not found then
    return json_build_object('manifests', '[]'::json, 'after', null);
  end if;
  v_gone := memory_private.find_expired(v_c, p_retention);
  for v_row in
    select x.* from memory.context_manifests x
    where x.user_id = v_user and x.conversation_id = v_c.id and x.pack is not null
      and x.sequence >= coalesce(p_from, 0) and x.sequence <= coalesce(p_to, 9223372036854775807)
      and (x.sequence, x.id) < (v_at, v_id)
      and coalesce(x.expires_at > clock_timestamp(), true) and not x.sequence <@ v_gone.messages
    order by x.sequence desc, x.id desc
    limit v_limit + 1
  loop
    v_found := v_found || v_row;
  end loop;
  v_more := cardinality(v_found) > v_limit;
  v_found := v_found[:v_limit];

  -- Each message once, however many manifests of the page refer to it.
  select range_agg(r) into v_named
    from unnest(v_found) x cross join lateral unnest(memory_private.manifest_sequences(x.pack)) r;
  select range_agg(int8range(m.sequence, m.sequence, '[]')) as sequences,
         array_agg(m.sequence) filter (where m.updated_at is not null) as edited,
         array_agg(m.updated_at) filter (where m.updated_at is not null) as edited_at
    into v_stored
    from unnest(v_named) r
    cross join lateral (
      select k.sequence, k.updated_at from memory.conversation_messages k
      where k.user_id = v_user and k.conversation_id = v_c.id and k.sequence >= lower(r) and k.sequence < upper(r)
        and not k.sequence <@ v_gone.messages
      order by k.sequence
      offset 0) m;
  v_items := memory_private.item_edit_times(
    v_user, v_c.id, array(
      select i from unnest(v_found) x cross join lateral unnest(memory_private.manifest_items(x.pack)) i));
  return json_build_object(
    'manifests', coalesce((
      select json_agg(json_build_object(
               'id', x.id,
               'from_sequence', x.from_sequence,
               'to_sequence', x.sequence,
               'made_at', x.made_at,
               'expires_at', x.expires_at,
               'pack', x.pack,
               'gone', memory_private.range_pairs(
                 memory_private.manifest_sequences(x.pack) - coalesce(v_stored.sequences, '{}')),
               'changed', memory_private.range_pairs(coalesce((
                 select range_agg(int8range(e.sequence, e.sequence, '[]'))
                 from unnest(v_stored.edited, v_stored.edited_at) e (sequence, at)
                 where e.at > x.made_at and e.sequence <@ memory_private.manifest_sequences(x.pack)), '{}')),
               'changed_items', to_json(array(
                 select i from unnest(memory_private.manifest_items(x.pack)) i
                 where coalesce((v_items ->> i::text)::timestamptz > x.made_at, true))),
               'resummarized', exists (
                 select from json_array_elements(x.pack) e
                 where e ->> 0 = '1' and e ->> 1 = '0' and e ->> 8 is not null and not exists (
                   select from memory.conversation_summaries s
                   where s.user_id = v_user and s.conversation_id = v_c.id and s.level = 0
                     and s.number = least((e ->> 8)::bigint, 2147483647)
                     and greatest(s.created_at, s.edited_at) <= x.made_at)))
             order by x.sequence desc, x.id desc)
      from unnest(v_found) x), '[]'),
    'after', case when v_more then v_found[v_limit].sequence || '/' || v_found[v_limit].id end);
end
$function$;
comment on function public.memory_manifests is
  'langchain-supabase-memory: List what stood in the prompts of a conversation, the newest first: for each answer that
  came with a manifest what was shown, how much, and why; never a word. It also says what of that has changed or gone
  since.

p_thread_id: the thread of the conversation.
p_user_id: the owner; null: the subject of the caller''s token.
p_agent_id: the agent of the conversation.
p_from: only of answers from this sequence on; null: from the first.
p_to: only of answers up to this sequence; null: to the last.
p_limit: the most of one page, 1 to 200.
p_after: after of the page before; null: the first page.
p_retention: what is kept, as in memory_append; null: everything. What is beyond it is left out, and counts as gone.
Returns: object.
- manifests: object[]. The page; empty if there is no such conversation.
- manifests[].id: uuid. The manifest.
- manifests[].from_sequence: integer. The first message that was stored with it.
- manifests[].to_sequence: integer. The last one, mostly the answer.
- manifests[].made_at: timestamp. When it was stored.
- manifests[].expires_at: timestamp or null. When it goes by itself; null: with its messages.
- manifests[].pack: json. Lists of whole numbers; -1 is none. The first is [0, entry point, unit, budget, used,
  sequence of the question, flags, age in seconds, board items left out, messages, characters and tokens of the whole
  history, minutes by which the reader''s time zone is ahead of UTC, 0 if the prompt says that older messages are
  omitted or the number of messages that it says are shown, where recall searched]; of an age 0 is as long as the messages, -1 is 30 days.
  Then [1, part, reason, messages, characters, tokens, first, last, number] for each part; [2, items of the board, by
  the first eight digits of their ids]; [3, first, last, part, hundredths of the score''s parts] for each passage of
  this conversation, [4, first eight digits of its id, hundredths] for one of another; [5, first, last, reason] for
  what was left out; [6, tokens of the model: in, out, together, read from a cache]; [7, 0 for a space or 1 for an
  agent, its place among those, 1 if it was refused, items left out, items] for each board of those; [8, items of the
  profile, by the first eight digits of their ids]. What a past prompt is rebuilt from: [9, version of the board,
  characters that a person''s summary is cut to, 1 if its notes are shown or 2 if they come right behind what is
  pinned]; [10, part, messages that were stored later, first, last, …] where a part does not show just its range; [11,
  message or -2 and down for those that were stored later or -1 for a turn that was pointed at, characters that it is
  cut to, media left out]; [12, first, last, part, how often, day of the first and the last time, from 1970] of a
  passage that was said more than once; [13, first eight digits of its id, place, part, the same three] of one of
  another conversation; [14, first, how many further messages, part, …] in the place of all lists 3 of a pack that is
  cut; [15, tokens of the agent''s own system prompt, number of tools, their tokens]. What has a name is its place, from 0, in one of these: entry points ({{manifest_entry_points}}); units
  ({{manifest_units}}); parts ({{manifest_parts}}); reasons ({{manifest_reasons}}); a score''s parts
  ({{manifest_scores}}); where recall searched ({{manifest_recalls}}). Flags are the sum of 1 (the summary failed), 2 (recall failed), 4 (the reranker failed), 8
  (opted out), 16 (cut to 1024 bytes) and 32 (the board has more items).
- manifests[].gone: json. First and last of each range of messages that it names and that are not there any more.
- manifests[].changed: json. The same of those that were edited since.
- manifests[].changed_items: integer[]. The items of the board that it names, by the first eight digits of their ids as
  it has them, that were edited or deleted since, or are gone.
- manifests[].resummarized: boolean. Whether the summary that it names was written anew since, or is gone.
- after: text or null. Where the next page begins; null: there is none.
Errors:
- PT400: no p_user_id is given, and the caller''s token names nobody; or p_after is no place.';

-- Returns the chunks that a prompt showed, each by its messages and part in this conversation, or by the first eight
-- digits of its id, its place and its part in another of the owner's newest thousand.
create or replace function memory_private.prompt_passages(
  p_user_id text, p_conversation_id uuid, p_passages json
) returns json
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set jit = off
as $function$
begin
  return (
    select coalesce(json_agg(json_build_object('number', t.number - 1, 'chunk', t.shown) order by t.number), '[]')
    from (
      select e.number, (
        select r from (
          select k.place, k.part, k.id, k.conversation_id, k.from_sequence, k.to_sequence, k.message_ids, k.stretch,
                 k.type, k.role, memory_private.chunk_speaker(k) as speaker, k.said_at, k.content, k.importance, k.expires_at, c.thread_id, c.agent_id) r) as shown
      from (select n.number, n.e, n.e -> 0 as first, (n.e ->> 1)::bigint as second, (n.e ->> 2)::integer as part
            from json_array_elements(p_passages) with ordinality n (e, number) limit 200 offset 0) e
      cross join lateral (
        select k.* from memory.working_memory_chunks k
        where json_typeof(e.first) = 'number' and k.user_id = p_user_id and k.conversation_id = p_conversation_id
          and k.to_sequence = e.second and k.from_sequence = (e.first #>> '{}')::bigint and k.part = e.part
        union all
        select k.*
        from (select c.id from memory.conversations c
              where json_typeof(e.first) = 'string' and c.user_id = p_user_id and c.id <> p_conversation_id
              order by c.user_id desc, c.updated_hour desc, c.agent_id desc limit 1000) c
        cross join lateral (
          select k.* from memory.working_memory_chunks k
          where k.user_id = p_user_id and k.conversation_id = c.id and k.place = e.second and k.part = e.part
          offset 0) k
        where left(k.id::text, 8) = e.first #>> '{}'
        limit 1) k
      cross join lateral (
        select c.thread_id, c.agent_id from memory.conversations c
        where c.user_id = p_user_id and c.id = k.conversation_id offset 0) c
      where not k.stale and (k.expires_at is null or k.expires_at > clock_timestamp())) t);
end
$function$;

create function public.memory_prompt(
  p_thread_id text,
  p_user_id   text        default null,
  p_agent_id  text        default 'default',
  p_messages  json        default '[]', -- the first and the last of each range
  p_segment   integer     default null,
  p_at        timestamptz default null, -- when the board was read,
  p_version   bigint      default null, -- and its version then; both null: no board
  p_passages  json        default '[]',
  p_turn      bigint      default null, -- the first message of a turn that was pointed at
  p_retention json        default null
) returns json
language plpgsql stable security invoker set search_path = ''
as $function$
declare
  v_user text := memory_private.resolve_owner(p_user_id);
  v_c    memory.conversations;
  v_gone int8multirange;
begin
  perform memory_private.check_limits(p_messages), memory_private.check_limits(p_passages);
  select c.* into v_c from memory.conversations c
   where c.user_id = v_user and c.agent_id = p_agent_id and c.thread_id = p_thread_id;
  if not found then
    return null;
  end if;
  v_gone := (memory_private.find_expired(v_c, p_retention)).messages;
  if v_c.expired_through >= 0 then
    v_gone := v_gone + int8multirange(int8range(0, v_c.expired_through, '[]'));
  end if;
  return json_build_object(
    'messages', coalesce((
      select json_agg(public.memory_read(
               p_thread_id, v_user, p_agent_id, p_from => (e ->> 0)::bigint, p_to => (e ->> 1)::bigint,
               p_columns => '["payload", "updated_at", "author_name"]', p_retention => p_retention) order by n)
      from json_array_elements(p_messages) with ordinality r (e, n)), '[]'),
    'superseded', case when v_c.has_superseded then coalesce((
      select json_agg(public.memory_read(
               p_thread_id, v_user, p_agent_id, p_from => (e ->> 0)::bigint, p_to => (e ->> 1)::bigint,
               p_columns => '["payload", "updated_at", "author_name"]', p_retention => p_retention, p_superseded => true) order by n)
      from json_array_elements(p_messages) with ordinality r (e, n)), '[]') end,
    'expired', memory_private.range_pairs(v_gone),
    'segment', case when p_segment is not null then
      public.memory_summaries(p_thread_id, v_user, p_agent_id, p_segment + 1, 1, 0, p_retention) -> 0 end,
    'board', case when p_at is not null or p_version is not null then
      public.memory_board(p_thread_id, v_user, p_agent_id, true, 1000, p_retention, p_at, p_version) end,
    'passages', memory_private.prompt_passages(v_user, v_c.id, p_passages),
    'turn', case when p_turn is not null then
      public.memory_turns(
        p_thread_id, v_user, p_agent_id, p_last => 1, p_before => p_turn + 1, p_retention => p_retention)
        -> 'turns' -> 0 end);
end
$function$;
comment on function public.memory_prompt is
  'langchain-supabase-memory: Read what a past prompt was made of, as its manifest names it, in one call. Nothing of
  others is read, and nothing that is gone comes back.

p_thread_id: the thread of the conversation.
p_user_id: the owner; null: the subject of the caller''s token.
p_agent_id: the agent of the conversation.
p_messages: ranges of messages, each as its first and last sequence.
p_segment: the number of a summary; null: none.
p_at: when the board was read; null: by p_version.
p_version: the version of the board that was read, which comes before p_at; both null: no board.
p_passages: chunks: of this conversation as [first message, last message, part]; of another one of the owner''s newest
  1000 as [first eight digits of its id, place, part]. At most 200.
p_turn: the first message of a turn; null: none.
p_retention: what is kept, as in memory_append; null: everything. What is beyond it is left out.
Returns: object or null. Null if there is no such conversation.
- messages: object[] as memory_read. A page for each range; one with more goes on with memory_read.
- superseded: object[] as memory_read or null. The same of messages that a graph has left; null if it has left none.
- expired: json. First and last of each range of messages that have expired.
- segment: json. The newest summary up to that number, as memory_summaries has it; null if there is none.
- board: object as memory_board or null. The board as it was, with what was superseded.
- passages: object[]. The chunks that are there.
- passages[].number: integer. The place in p_passages, from 0.
- passages[].chunk: object as memory_chunks.chunks. The chunk.
- turn: object as memory_turns.turns or null. The turn that begins there, or the one before.
Errors:
- PT400: no p_user_id is given, and the caller''s token names nobody.
- PT413: an argument is larger than call_bytes, or a list in it longer than call_items (see memory_limits).';
