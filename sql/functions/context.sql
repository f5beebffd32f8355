-- The context for the next prompt: the summaries to choose from, the newest messages and the board, in one round trip.
-- How its queries are held to their indexes: sql/README.md.

-- Returns the summaries that a prompt may begin with, and the sequence after which its messages begin.
create or replace function memory_private.context_segments(
  p_conversation memory.conversations, -- as it is without what has expired
  p_holes int8multirange, -- what of it has expired and lies between others
  p_characters bigint, out segments json, out after bigint
)
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
declare
  v_user    constant text := p_conversation.user_id;
  v_id      constant uuid := p_conversation.id;
  v_segment record;
  v_number  integer;
  v_left    bigint := p_conversation.total_characters - p_conversation.summarized_characters; -- after a segment
begin
  after := -1;
  -- Begin at the oldest summary after which everything fits verbatim, and add the newer ones. The prompt begins at the
  -- end of a segment, so that its beginning stays the same over many turns.
  if p_conversation.summarized_through < 0 then
    return;
  end if;
  for v_segment in
    select s.number, s.from_sequence, s.to_sequence, s.characters, s.covered_characters
      from memory.conversation_summaries s
     where s.user_id = v_user and s.conversation_id = v_id and s.level = 0
     order by s.number desc limit 100
  loop
    exit when v_number is not null
          and v_left + v_segment.characters > p_characters;
    v_number := v_segment.number;
    after := v_segment.to_sequence;
    v_left := v_left + v_segment.covered_characters;
    if p_holes <> '{}' then
      v_left := v_left - (memory_private.range_totals(v_user, v_id, p_holes * int8multirange(
        int8range(v_segment.from_sequence, v_segment.to_sequence, '[]')))).characters;
    end if;
  end loop;
  select json_agg(r order by r.number) into segments
  from (select s.number, s.id, s.from_sequence, s.to_sequence, s.built_on, s.content, s.characters, s.tokens,
               s.model, s.clipped, s.quality, s.edited_by, s.edited_at, s.created_at
        from memory.conversation_summaries s
        where s.user_id = v_user and s.conversation_id = v_id and s.level = 0 and s.number >= v_number
        order by s.number) r;
  -- A history that fits completely needs no summary.
  if v_number = 1 and p_conversation.total_characters <= p_characters then
    after := -1;
  end if;
end
$function$;

-- Returns the current items of a board, at most p_limit of each kind, however many there are. Items that can be read
-- in the recent messages are left out, unless a person wrote or pinned them.
create or replace function memory_private.context_board(
  p_user_id text, p_conversation_id uuid,
  p_limit   integer, -- items of each kind
  p_recent  bigint,  -- the first message that is surely shown
  p_expired int8multirange -- the messages that have expired: what begins with one of them goes with it
) returns json
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
declare
  v_labels constant jsonb := memory_private.person_labels(p_user_id);
begin
  return (
  select json_build_object(
           'version', b.version,
           'edited_summary', b.edited_summary,
           'editor_kind', b.editor_kind,
           'context_notes', b.context_notes,
           'through_sequence', b.through_sequence,
           'items', coalesce((
             select json_agg(r)
             from unnest(array[{{item_kinds_in_order}}]) k
             cross join lateral (
               select i.id, i.kind, i.type, i.text, i.state, i.importance, i.quote, i.message_ids, i.sequences,
                      i.first_seen_at, i.last_seen_at, i.version, i.superseded_by, i.superseded_at, i.pinned, i.author,
                      i.author_kind, i.edited_by, i.editor_kind, i.edited_at, i.said_at,
                      a.author_id, v_labels ->> a.author_id as author_name
               from memory.conversation_board_items i
               cross join lateral (
                 select case when v_labels is not null then memory_private.item_author_id(i) end as author_id offset 0) a
               where i.user_id = p_user_id and i.conversation_id = p_conversation_id and i.kind = k
                 and i.superseded_at is null and i.deleted_at is null and i.state in ('current', 'open')
                 and (i.pinned or i.edited_at is not null or i.sequences = '{}'
                      or coalesce(not p_recent <= all (i.sequences), true))
                 and (i.edited_at is not null or coalesce(not i.sequences[1] <@ p_expired, true))
               order by i.pinned desc, i.last_seen_at desc, i.id
               limit least(p_limit, 200)) r), '[]'))
    from memory.conversation_summary_boards b
   where b.user_id = p_user_id and b.conversation_id = p_conversation_id);
end
$function$;

-- Refuses what names no boards to read beside that of a conversation.
create or replace function memory_private.check_shared(p_shared json) returns void
language plpgsql immutable security invoker set search_path = ''
as $function$
declare
  v_is_right boolean := json_typeof(p_shared) = 'object' and coalesce(p_shared ->> 'items', '1') ~ '^\d{1,9}$';
  v_ids      json;
begin
  for v_ids in select p_shared -> n from unnest('{spaces,agents}'::text[]) n loop
    v_is_right := v_is_right and (v_ids is null or case when json_typeof(v_ids) = 'array' then
      json_array_length(v_ids) <= 10 and memory_private.is_text_list(v_ids) end) is true;
  end loop;
  if not v_is_right then
    raise exception 'p_shared does not name at most 10 spaces and 10 agents, or how many items' using errcode = 'PT400',
      hint = 'pass {"spaces": ["space:…"], "agents": ["bookkeeper"], "items": 20}, and leave out what is not asked for';
  end if;
end
$function$;

-- Returns what boards beside that of the conversation hold now: of spaces that the user is in, and of the user's newest
-- conversation with each of other agents.
create or replace function memory_private.context_shared(
  p_user_id text, p_conversation_id uuid, p_retention json,
  p_shared json -- {"spaces": text[], "agents": text[], "items": integer}
) returns json
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
declare
  v_items  integer; -- of each kind
  v_source record;
  v_read   boolean;
  v_few    text[]; -- threads with an agent, where those are few
  v_c      memory.conversations;
  v_gone   record; -- what of that has expired
  v_all    json[] := '{}';
begin
  perform memory_private.check_shared(p_shared);
  v_items := greatest(1, least((p_shared ->> 'items')::integer, 200));
  for v_source in
    select t.kind, t.id, t.place
    from (select 'space' as kind, e.id, e.place
          from json_array_elements_text(p_shared -> 'spaces') with ordinality e (id, place)
          union all
          select 'agent', e.id, e.place
          from json_array_elements_text(p_shared -> 'agents') with ordinality e (id, place)) t
    order by t.kind = 'agent', t.place
  loop
    v_c := null;
    v_read := v_source.kind = 'agent' or (memory_private.has_spaces() and (v_source.id = p_user_id or exists (
      select from memory.memberships m
      where m.user_id = p_user_id and m.space_id = v_source.id and m.role >= 1)));
    if v_source.kind = 'agent' then
      -- Few are read by themselves: along the user's newest, all of theirs would be.
      v_few := array(
        select n.thread_id from memory.conversations n where n.user_id = p_user_id and n.agent_id = v_source.id
        order by n.agent_id, n.thread_id limit 201);
      select c.* into v_c
        from (select n.* from unnest(v_few) t (thread_id)
              cross join lateral (
                select n.* from memory.conversations n
                where cardinality(v_few) < 201 and n.user_id = p_user_id and n.agent_id = v_source.id
                  and n.thread_id = t.thread_id and n.id is distinct from p_conversation_id
                offset 0) n
              union all
              (select n.* from memory.conversations n
               where cardinality(v_few) = 201 and n.user_id = p_user_id and n.agent_id = v_source.id
                 and n.id is distinct from p_conversation_id
               order by n.updated_hour desc, n.updated_at desc limit 21)) c
       where exists (
         select from memory.conversation_summary_boards b where b.user_id = c.user_id and b.conversation_id = c.id)
         -- In a space, quotes are what its members contributed, and no agent's.
         and not (starts_with(c.user_id, 'space:') and c.agent_id = 'default' and c.thread_id = 'board')
       order by c.updated_at desc limit 1;
    elsif v_read then
      select c.* into v_c from memory.conversations c
       where c.user_id = v_source.id and c.agent_id = 'default' and c.thread_id = 'board'
         and c.id is distinct from p_conversation_id; -- whose board it is already
    end if;
    v_gone := memory_private.find_expired(v_c, p_retention);
    v_all := v_all || json_build_object(
      'kind', v_source.kind,
      'id', v_source.id,
      'name', case when v_source.kind = 'space' and v_read then (
        select s.name from memory.spaces s where s.user_id = v_source.id) end,
      'is_refused', not v_read,
      'items', case when v_c.id is not null and v_c.opted_out_at is null
                     and not v_gone.board
        then memory_private.context_board(v_c.user_id, v_c.id, v_items, null, v_gone.messages) -> 'items' end);
  end loop;
  return array_to_json(v_all);
end
$function$;

-- Returns what is held of a user, with this agent or all: instructions and constraints first, then what was said last.
create or replace function memory_private.context_profile(
  p_user_id text, p_agent_id text, p_limit integer
) returns json
language plpgsql stable security invoker set search_path = ''
as $function$
begin
  return (
  select json_agg(r)
  from (select i.id, i.kind, i.subject, i.value, i.polarity, i.condition, (
                 select b.value from memory.profile_items b
                 where b.user_id = p_user_id and b.chain = i.chain and b.superseded_by = i.id and b.held_at is not null
                   and b.state = 'superseded'
                 order by b.ended_at desc, b.id limit 1) as before,
               case when i.basis <> 'person' then i.noted_at end as noted_at
        from memory.profile_items i
        where i.user_id = p_user_id and i.state = 'held' and (i.agent_id is null or i.agent_id = p_agent_id)
        order by i.pinned desc, array_position('{instruction,constraint,preference,trait}', i.kind), i.last_seen_at desc, i.id
        limit least(p_limit, 100)) r);
end
$function$;

-- Returns the messages from a sequence on that a graph's run abandons, given the ids of its state.
create or replace function memory_private.superseded_by_state(
  p_conversation memory.conversations, p_ids json, p_from bigint
) returns json
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
declare
  v_held   jsonb;
  v_parent bigint;
  v_left   bigint[];
begin
  perform memory_private.check_limits(p_ids);
  if not memory_private.is_text_list(p_ids) then
    raise exception 'p_branch_ids is no list of texts' using errcode = 'PT400',
      hint = 'pass the ids of the state''s messages, or leave it out';
  end if;
  v_held := (select coalesce(jsonb_object_agg(i, 1), '{}') from json_array_elements_text(p_ids) i);
  select max(memory_private.sequence_of_message(p_conversation.user_id, p_conversation.id, i)) into v_parent
    from json_array_elements_text(p_ids) i;
  v_left := memory_private.abandoned_messages(p_conversation, v_parent, v_held, p_from);
  if starts_with(p_conversation.user_id, 'space:') and not memory_private.is_server() then -- as in prepare_branch
    v_left := memory_private.written_by(p_conversation.user_id, p_conversation.id, v_left, auth.jwt() ->> 'sub');
  end if;
  return array_to_json(v_left);
end
$function$;

-- Returns whether a summary is due: more is not summarized than a policy allows, and not all of that is to stay verbatim.
-- {"characters", "tokens", "messages"}: due beyond one of these; {"keep_characters", "keep_messages", "min_quality",
-- "keep_when_poor"}: what stays, as in memory_pending.
create or replace function memory_private.is_summary_due(
  p_conversation memory.conversations, -- as it is without what has expired
  p_first bigint, -- the first message that is kept
  p_holes int8multirange, p_due json
) returns boolean
language plpgsql stable security invoker set search_path = ''
as $function$
declare
  v_user  constant text := p_conversation.user_id;
  v_id    constant uuid := p_conversation.id;
  v_after constant bigint := greatest(p_conversation.summarized_through, p_first - 1);
  v_keep  bigint := (p_due ->> 'keep_characters')::bigint;
  v_cut   bigint; -- the first message that stays
begin
  if p_conversation.opted_out_at is not null or p_conversation.summary_retry_at > clock_timestamp()
     or not memory_private.exceeds_policy(p_conversation, p_due)
  then
    return false;
  end if;
  if p_conversation.summarized_through >= 0 then
    v_keep := memory_private.kept_characters(
      (select s.quality from memory.conversation_summaries s
       where s.user_id = v_user and s.conversation_id = v_id and s.level = 0 order by s.number desc limit 1),
      v_keep, (p_due ->> 'min_quality')::float8, (p_due ->> 'keep_when_poor')::bigint);
  end if;
  v_cut := memory_private.summary_cut(v_user, v_id, v_after, v_keep, (p_due ->> 'keep_messages')::integer, p_holes);
  return exists (
    select from memory.conversation_messages m
    where m.user_id = v_user and m.conversation_id = v_id and m.sequence > v_after and m.sequence < v_cut
      and not m.sequence <@ p_holes);
end
$function$;

-- Returns the newest messages of a conversation that a context has, and the user's newest message if it lies before
-- them.
create or replace function memory_private.context_messages(
  p_conversation memory.conversations, -- as it is without what has expired
  p_first bigint, -- the first message that is kept
  p_holes int8multirange,
  p_after bigint, -- the message after which the context begins
  p_characters bigint, p_messages integer,
  out low bigint, -- the first of them
  out messages json, out asked json
)
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
declare
  v_user   constant text := p_conversation.user_id;
  v_id     constant uuid := p_conversation.id;
  v_bytes  constant bigint := (select l.answer_bytes from memory_private.limits l);
  v_labels constant jsonb := memory_private.person_labels(v_user);
  v_block  bigint;
  v_window record;
begin
  low := memory_private.tail_start(v_user, v_id, p_after, p_characters, p_messages, v_bytes, p_holes);
  for v_try in 1..2 loop
    select json_agg((select x from (select t.sequence, t.payload, t.via, t.unreadable, t.author_name) x) order by t.sequence) as rows,
           bool_and(t.role = 'tool') as tools_only, bool_or(t.role = 'user') as asked
      into v_window
      from (select m.sequence, m.payload, m.metadata ->> 'via' as via, m.unreadable, m.role,
                   v_labels ->> m.author_id as author_name
            from memory.conversation_messages m
            where m.user_id = v_user and m.conversation_id = v_id and m.sequence >= low
              and not m.sequence <@ p_holes
            order by m.sequence) t;
    exit when v_try = 2 or not coalesce(v_window.tools_only, false);
    -- Only the maximum bytes of an answer may cut the newest block.
    select m.sequence into v_block from memory.conversation_messages m
     where m.user_id = v_user and m.conversation_id = v_id and m.sequence > p_after and m.sequence < low
       and m.role <> 'tool' and not m.sequence <@ p_holes
     order by m.sequence desc limit 1;
    low := greatest(coalesce(v_block, low), memory_private.tail_start(
      v_user, v_id, p_after, null, 5000, 2 * v_bytes, p_holes));
  end loop;
  messages := v_window.rows;
  -- In a long run of tools the question lies further back. The scan is limited, because there may be no question.
  if not v_window.asked then
    select json_build_object('sequence', t.sequence, 'payload', t.payload, 'author_name', v_labels ->> t.author_id) into asked
    from (select m.sequence, m.role, m.payload, m.author_id from memory.conversation_messages m
          where m.user_id = v_user and m.conversation_id = v_id and m.sequence >= p_first and m.sequence < low
            and not m.sequence <@ p_holes
          order by m.sequence desc limit 2000) t
    where t.role = 'user'
    order by t.sequence desc limit 1;
  end if;
end
$function$;

create function public.memory_context(
  p_thread_id  text,
  p_user_id    text    default null,
  p_agent_id   text    default 'default',
  p_characters bigint  default 12000, -- the newest messages up to so much, and the one that goes beyond
  p_messages   integer default 1000,  -- and no more than so many
  p_retention  json    default null,
  p_recall     json    default null,  -- what to recall, see memory_private.recall, and its scope
  p_recent     bigint  default 0,     -- characters of the newest messages that are shown anyway and said nowhere else
  p_board      integer default 0,     -- up to so many items of each kind that the board has; 0: no board
  p_branch_ids json    default null,  -- the ids of a graph's state whose run names the checkpoint that it goes on from
  p_due        json    default null,  -- when something is to be summarized, and what stays: see memory_private.is_summary_due
  p_shared     json    default null,  -- boards beside that of the conversation, see memory_private.context_shared
  p_profile    integer default 0,     -- up to so many items of the user's profile; 0: none
  p_author_id  text    default null   -- who asks, in a space
) returns json -- json, not jsonb, so that the payload keeps its key order
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
declare
  v_user     text := memory_private.resolve_owner(p_user_id);
  v_c        memory.conversations;
  v_gone     record; -- what has expired
  v_expired  bigint; -- the last message of that, removed or not
  v_after    bigint;
  v_low      bigint;
  v_unread   bigint;
  v_messages json;
  v_segments json;
  v_asked    json;
  v_recent   bigint; -- the first message that is surely shown
  v_scope    uuid[];
  v_recalled json;
  v_board    json;
  v_shared   json;
  v_profile  json;
  v_asker    constant text := memory_private.asker_label(v_user, p_author_id);
  v_superseded json;
  v_work     text;
  v_unattended boolean;
  v_most     constant integer := greatest(1, least(p_messages, 1000));
begin
  if greatest(octet_length(p_recall::text), octet_length(p_due::text), octet_length(p_shared::text)) > 16384 then
    perform memory_private.check_limits(p_recall), memory_private.check_limits(p_due), -- no limit is lower
            memory_private.check_limits(p_shared);
  end if;
  select c.* into v_c from memory.conversations c
   where c.user_id = v_user and c.agent_id = p_agent_id and c.thread_id = p_thread_id;
  if p_shared is not null then
    v_shared := memory_private.context_shared(v_user, v_c.id, p_retention, p_shared);
  end if;
  if p_profile > 0 then
    v_profile := memory_private.context_profile(v_user, p_agent_id, p_profile);
  end if;
  v_scope := case when p_recall is not null then memory_private.recall_scope(
    v_user, p_agent_id, v_c.id, p_recall ->> 'scope', p_shared -> 'agents') end;
  if v_c.id is null then
    if v_shared is null and v_profile is null and v_asker is null and coalesce(p_recall ->> 'scope', 'conversation') = 'conversation' then
      return null;
    end if;
    return json_build_object(
      'shared', v_shared,
      'profile', v_profile,
      'asked_by', v_asker,
      'recalled', case when p_recall is not null then memory_private.recall_kept(v_user, null, v_scope, p_recall, p_retention) end);
  end if;
  v_gone := memory_private.find_expired(v_c, p_retention);
  v_expired := greatest(v_c.expired_through, upper(v_gone.messages) - 1);
  v_c := v_gone.conversation;

  if not v_gone.summaries then
    select s.segments, s.after into v_segments, v_after
      from memory_private.context_segments(v_c, v_gone.holes, p_characters) s;
  end if;
  v_after := greatest(v_after, v_gone.first - 1);

  select w.low, w.messages, w.asked into v_low, v_messages, v_asked
    from memory_private.context_messages(v_c, v_gone.first, v_gone.holes, v_after, p_characters, v_most) w;
  if p_branch_ids is not null then
    v_superseded := memory_private.superseded_by_state(v_c, p_branch_ids, v_low);
  end if;
  select m.sequence into v_unread from memory.conversation_messages m
   where m.user_id = v_user and m.conversation_id = v_c.id and m.sequence > v_after and m.sequence < v_low
     and not m.sequence <@ v_gone.holes
   order by m.sequence limit 1;

  -- Do not recall what is shown anyway. If everything is shown, recall nothing.
  if p_recall is not null and (
    v_c.total_characters > p_characters / 2 or v_scope <> array[v_c.id]
    or coalesce(p_recall ->> 'scope', 'conversation') <> 'conversation')
  then
    -- The message at the boundary may be long and shown only in part.
    v_recent := memory_private.tail_start(
      v_user, v_c.id, v_gone.first - 1, p_recent, v_most, null, v_gone.holes) + 1;
    v_recalled := memory_private.recall_kept(
      v_user, v_c.id, v_scope, (p_recall::jsonb || jsonb_build_object('before', jsonb_build_object(
        'conversation', v_c.id,
        'expired', v_gone.messages::text,
        'sequence', v_recent)))::json, p_retention);
  end if;

  if p_board > 0 and not v_gone.board then
    v_board := memory_private.context_board(v_user, v_c.id, p_board, v_recent, v_gone.messages);
  end if;
  select memory_private.work_state(w.run_after, w.lease_until),
         w.since < clock_timestamp() - interval '1 hour' and w.attempts = 0 and w.paused = '{}'
    into v_work, v_unattended
    from memory_private.work w
   where w.user_id = v_user and w.conversation_id = v_c.id;

  return json_build_object(
    'conversation_id', v_c.id,
    'created_at', v_c.created_at,
    'next_sequence', v_c.next_sequence,
    'message_count', v_c.message_count,
    'total_characters', v_c.total_characters,
    'total_tokens', v_c.total_tokens,
    'through_sequence', v_c.summarized_through,
    'summarized_characters', v_c.summarized_characters,
    'summarized_tokens', v_c.summarized_tokens,
    'summary_waiting', coalesce(v_c.summary_retry_at > clock_timestamp(), false),
    'due', p_due is not null and memory_private.is_summary_due(v_c, v_gone.first, v_gone.holes, p_due),
    'revision', v_c.revision,
    'first_sequence', case when (p_retention is not null or v_c.private) and v_expired >= 0 then (
      select m.sequence from memory.conversation_messages m
      where m.user_id = v_user and m.conversation_id = v_c.id and m.sequence >= v_gone.first
        and not m.sequence <@ v_gone.holes order by m.sequence limit 1) end,
    'expired_through', v_expired,
    'summary_error', v_c.summary_error,
    'segments', coalesce(v_segments, '[]'),
    'messages', coalesce(v_messages, '[]'),
    'unread_from', v_unread, -- the first message after the oldest of the segments that was not read
    'asked', v_asked,
    'asked_by', v_asker,
    'recalled', v_recalled,
    'board', v_board,
    'shared', v_shared,
    'profile', v_profile,
    'superseded', v_superseded,
    'branch_from', v_c.branch_from,
    'branch_token', v_c.branch_token,
    'work', v_work, -- how a worker stands to it, as in memory_status; null: it has nothing to do there
    'indexed_through', v_c.indexed_through,
    'has_stale', v_c.has_stale,
    'expired', v_gone.messages <> '{}' or v_gone.summaries or v_gone.board, -- whether something waits to be removed
    'opted_out', v_c.opted_out_at is not null,
    'unembedded', v_c.unembedded_from is not null and coalesce(v_c.index_retry_at <= clock_timestamp(), true),
    'unattended', coalesce(v_unattended, false)); -- whether it has been due for an hour, and nobody has taken it up
end
$function$;
comment on function public.memory_context is
  'langchain-supabase-memory: Read what the next prompt is made of in one call: summaries, the newest messages, the
  board and what was recalled. The caller fits it to a budget.

p_thread_id: the thread of the conversation.
p_user_id: the owner; null: the subject of the caller''s token.
p_agent_id: the agent of the conversation.
p_characters: the newest messages up to so many characters, and the one that goes beyond.
p_messages: no more than so many messages, at most 1000.
p_retention: what is kept, as in memory_append; null: everything. What is beyond it is left out.
p_recall: what to recall, as p_ask in memory_recall; null: nothing is recalled.
- scope: text. Where to look: conversation, agent (all conversations with this agent) or user (all of the user).
p_recent: characters of the newest messages that the prompt shows anyway: they are not recalled. Where something is,
  items of the board that can be read in them are left out, too.
p_board: up to so many items of each kind of the board, at most 200; 0: no board.
p_branch_ids: where a run of a graph names the checkpoint that it goes on from, the ids of its state''s messages, a list of
  text; null: there is no such run.
p_due: when a summary is due, as p_due of memory_pending has it (characters, tokens, messages), and what stays as it is
  then, as its arguments have it (keep_characters, keep_messages, min_quality, keep_when_poor); null: none is due.
p_shared: boards beside that of the conversation; null: none. Each key may be absent.
- spaces: text[]. The ids of at most 10 spaces: the boards of quotes that their members contributed.
- agents: text[]. At most 10 agents: the boards of the user''s newest conversations with them. What p_recall asks
  is looked for in all conversations with them, too.
- items: integer. Up to so many items of each kind, at most 200.
p_profile: up to so many items of the user''s profile, at most 100: what is held with this agent or with all. 0: none.
p_author_id: in a space, who asks; null: nobody is named. Only a server says so: of who is signed in it is the subject of
  the token.
Returns: object or null. Null if there is no such conversation; with a p_recall of a wider scope, a p_shared, a
  p_profile or somebody known who asks, an object that has only recalled, shared, profile and asked_by.
- conversation_id: uuid. The conversation.
- created_at: timestamp. When it began.
- next_sequence: integer. The sequence that the next message gets.
- message_count: integer. How many messages are kept.
- total_characters: integer. The characters of all of them.
- total_tokens: integer. About the tokens of all of them.
- through_sequence: integer. The last sequence that a summary covers; -1 if none.
- summarized_characters: integer. The characters up to there.
- summarized_tokens: integer. About the tokens up to there.
- summary_waiting: boolean. Whether summarizing failed, and the next try has to wait.
- due: boolean. Whether a summary is due by p_due.
- revision: integer. Counts edits and deletions.
- first_sequence: integer or null. The first message that p_retention keeps; null without p_retention, if none has expired,
  or if it keeps none.
- expired_through: integer. The last message that has expired, removed or not; -1 if none has.
- summary_error: text or null. Why it failed, in a word.
- segments: object[]. The newest summaries, in their order: each goes on from the one before it.
- segments[].number: integer. Its number.
- segments[].id: uuid. Changes with its words.
- segments[].from_sequence: integer. The first message that it covers.
- segments[].to_sequence: integer. The last message that it covers.
- segments[].built_on: integer or null. The number of the summary that it goes on from.
- segments[].content: text. Its words.
- segments[].characters: integer. How many characters it has.
- segments[].tokens: integer. About how many tokens it has.
- segments[].model: text or null. Who wrote it.
- segments[].clipped: boolean. Whether it was cut because it was too long.
- segments[].quality: number or null. How much of its source it holds, 0 to 1.
- segments[].edited_by: text or null. The person who wrote it instead.
- segments[].edited_at: timestamp or null. When that was.
- segments[].created_at: timestamp. When it was stored.
- messages: object[]. The newest messages, in their order.
- messages[].sequence: integer. The number of the message.
- messages[].payload: object. The whole message.
- messages[].via: text or null. graph if a graph''s state brought it.
- messages[].unreadable: text or null. Why no message could be made of the payload, in a word.
- messages[].author_name: text or null. In a space: what its author is called there. Null elsewhere.
- unread_from: integer or null. The first message after the oldest of these summaries that is not among the
  messages; null if there is none.
- asked: object or null. The user''s newest message, if it is older than all of messages; null if it is among them.
- asked.sequence: integer. The number of that message.
- asked.payload: object. The whole message.
- asked.author_name: text or null. In a space: what its author is called there. Null elsewhere.
- asked_by: text or null. In a space: what who asks is called there. Null elsewhere.
- recalled: object as memory_recall or null. What was recalled; null if nothing was asked, or all of the
  conversation is shown anyway.
- board: object or null. The board, if it was asked for and there is one.
- board.version: integer. Counts its changes.
- board.edited_summary: text or null. What a person wrote in the place of its summary.
- board.editor_kind: text or null. What the one is who wrote that: person, application or import.
- board.context_notes: text. What is to be borne in mind.
- board.through_sequence: integer. The last message that was read into it; -1 if none.
- board.items: object[] as memory_board.items. What holds now, by kind.
- shared: object[] or null. What was asked for by p_shared: spaces, then agents; null if nothing was.
- shared[].kind: text. space or agent.
- shared[].id: text. The id of the space, or the agent.
- shared[].name: text or null. What the space is called.
- shared[].is_refused: boolean. Whether it is a space that the owner of the conversation is not in.
- shared[].items: object[] as memory_board.items or null. What holds now, by kind; null if there is no such board.
- profile: object[] or null. What is held of the user; null if it was not asked for.
- profile[].id: uuid. The item.
- profile[].kind: text. What it is: instruction, constraint, preference, trait or fact.
- profile[].subject: text. What it is about.
- profile[].value: text. What it is.
- profile[].polarity: integer. -1: rejected, 1: wanted, 0: neither.
- profile[].condition: text or null. When it holds; null: always.
- profile[].before: text or null. What was held before it.
- profile[].noted_at: timestamp or null. Since when it has been held; null: a person wrote or confirmed it.
- superseded: integer[] or null. Those of messages that the run leaves, as the next append of its state will; null without
  p_branch_ids.
- branch_from: integer or null. The first sequence of what a graph''s state has held.
- branch_token: text or null. The token of the state that was stored last.
- work: text or null. How a worker stands to it: due, running, waiting or dead; null: it has nothing to do there.
- indexed_through: integer. The last sequence that is indexed; -1 if none.
- has_stale: boolean. Whether something is to be indexed anew.
- expired: boolean. Whether something is beyond p_retention and waits to be removed.
- opted_out: boolean. Whether nothing of it is to be remembered.
- unembedded: boolean. Whether chunks lack a vector, and the embedder may be asked again.
- unattended: boolean. Whether it has been due for an hour, and no worker has taken it up.
Errors:
- PT400: no p_user_id is given, and the caller''s token names nobody; p_shared is not as described; or p_branch_ids
  is no list of texts.
- PT409: the chunks that p_recall searches have vectors of another model, or of another width.
- PT413: p_recall is larger than call_bytes (see memory_limits).';

create function public.memory_append_context(
  p_thread_id text,
  p_messages  json,
  p_context   json    default '{}',
  p_user_id   text    default null,
  p_agent_id  text    default 'default',
  p_replace   boolean default true,
  p_retention json    default null,
  p_branch    json    default null,
  p_manifest  json    default null,
  p_author_id text    default null,
  p_private   boolean default false
) returns json
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_stored  jsonb;
  v_context json;
  v_owner   text; -- see memory_private.readable_owners
begin
  perform memory_private.check_limits(p_context);
  v_stored := public.memory_append(
    p_thread_id, p_messages, p_user_id, p_agent_id, p_replace, p_retention, p_branch, p_manifest, p_author_id,
    p_private);
  if v_stored -> 'sequences' <> 'null' then
    if coalesce(json_typeof(p_context -> 'shared'), 'null') = 'null' then -- else boards of spaces are read, too
      v_owner := set_config('memory.read_owner', coalesce(p_user_id, memory_private.resolve_owner(null)), true);
    end if;
    v_context := public.memory_context(
      p_thread_id, p_user_id, p_agent_id,
      coalesce((p_context ->> 'characters')::bigint, 12000),
      coalesce((p_context ->> 'messages')::integer, 1000),
      p_retention,
      case when json_typeof(p_context -> 'recall') <> 'null' then p_context -> 'recall' end,
      coalesce((p_context ->> 'recent')::bigint, 0),
      coalesce((p_context ->> 'board')::integer, 0),
      case when json_typeof(p_context -> 'branch_ids') <> 'null' then p_context -> 'branch_ids' end,
      case when json_typeof(p_context -> 'due') <> 'null' then p_context -> 'due' end,
      case when json_typeof(p_context -> 'shared') <> 'null' then p_context -> 'shared' end,
      coalesce((p_context ->> 'profile')::integer, 0), p_author_id);
    v_owner := set_config('memory.read_owner', '', true);
  end if;
  return json_build_object('stored', v_stored, 'context', v_context);
end
$function$;
comment on function public.memory_append_context is
  'langchain-supabase-memory: Append messages, and read what the next prompt is made of, in one call: as memory_append
  and memory_context do it, one after the other.

p_thread_id: the thread of the conversation.
p_messages: the messages, as in memory_append.
p_context: what is read, as memory_context takes it.
- characters: integer or null. Its p_characters; null: 12000.
- messages: integer or null. Its p_messages; null: 1000.
- recall: object or null. Its p_recall.
- recent: integer or null. Its p_recent; null: 0.
- board: integer or null. Its p_board; null: 0.
- branch_ids: text[] or null. Its p_branch_ids.
- due: object or null. Its p_due.
- shared: object or null. Its p_shared.
- profile: integer or null. Its p_profile; null: 0.
p_user_id: the owner; null: the subject of the caller''s token.
p_agent_id: the agent of the conversation.
p_replace: whether a message that is there with another payload is replaced, as in memory_append.
p_retention: what is kept, as in memory_append; null: all of it. What is beyond it is removed.
p_branch: what a graph''s state holds, as in memory_append; null: nothing of a graph.
p_manifest: what stood in the prompt that the messages answer, as in memory_append; null: nobody says.
p_author_id: who wrote the messages, as in memory_append; null outside of spaces.
p_private: whether a conversation that they begin is private, as in memory_append.
Returns: object.
- stored: object as memory_append. What was stored.
- context: object as memory_context or null. The context, with what was stored; null if nothing was stored because the
  branch is elsewhere, or if there is no such conversation.
Errors:
- PT400: no p_user_id is given, and the caller''s token names nobody; a message is none or p_branch is not as
  described, as in memory_append; or branch_ids or shared is not as in memory_context. Nothing is stored.
- PT409: the chunks that are searched have vectors of another model, or of another width. Nothing is stored.
- PT413: an argument is too large, as in memory_append. Nothing is stored.
- 23514: a message cannot be right, as in memory_append. Nothing is stored.
- PT403: in a space, as in memory_append. Nothing is stored.
- 40001: the conversation was forgotten at the same time. Call again.';
