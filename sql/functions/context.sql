-- The context for the next prompt: the summaries to choose from, the newest messages and the board, in one round trip.
-- How its queries are held to their indexes: sql/README.md.

create function public.memory_context(
  p_thread_id  text,
  p_user_id    text    default null,
  p_agent_id   text    default 'default',
  p_characters bigint  default 12000, -- the newest messages up to so much, and the one that goes beyond
  p_messages   integer default 1000,  -- and no more than so many
  p_retention  json    default null,
  p_recall     json    default null,  -- what to recall, see memory_private.recall, and its scope
  p_recent     bigint  default 0,     -- characters of the newest messages that are shown anyway and not recalled
  p_board      integer default 0      -- up to so many items of each kind that the board has; 0: no board
) returns json -- json, not jsonb, so that the payload keeps its key order
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
declare
  v_user     text := memory_private.owner(p_user_id);
  v_c        memory.conversations;
  v_gone     record; -- what has expired
  v_segment  record;
  v_number   integer;
  v_after    bigint := -1;
  v_low      bigint;
  v_block    bigint;
  v_unread   bigint;
  v_window   record;
  v_segments json;
  v_rows     json;
  v_asked    json;
  v_recalled json;
  v_board    json;
  v_work     text;
  v_unattended boolean;
  v_bytes    bigint := (memory_private.allowed()).answer_bytes;
  v_messages integer := greatest(1, least(p_messages, 1000));
begin
  perform memory_private.admit(p_recall);
  select c.* into v_c from memory.conversations c
   where c.user_id = v_user and c.agent_id = p_agent_id and c.thread_id = p_thread_id;
  if not found then
    if coalesce(p_recall ->> 'scope', 'conversation') = 'conversation' then
      return null;
    end if;
    return json_build_object('recalled', memory_private.recall(
      v_user, memory_private.scope(v_user, p_agent_id, null, p_recall ->> 'scope'), p_recall));
  end if;
  v_gone := memory_private.expired(v_c, p_retention);
  v_c := v_gone.conversation;

  -- The oldest summary after which everything still fits verbatim, and the newer ones: the prompt begins where a
  -- segment ends, so that it stays the same from turn to turn until it has to move.
  if v_c.summarized_through >= 0 and not v_gone.summaries then
    for v_segment in
      select s.number, s.to_sequence, s.characters, s.characters_through - case when v_gone.holes <> '{}' then
               memory_private.missing(v_user, v_c.id, v_gone.holes, s.to_sequence) else 0 end as characters_through
        from memory.conversation_summaries s
       where s.user_id = v_user and s.conversation_id = v_c.id and s.level = 0
       order by s.number desc limit 100
    loop
      exit when v_number is not null
            and v_c.total_characters - v_segment.characters_through + v_segment.characters > p_characters;
      v_number := v_segment.number;
      v_after := v_segment.to_sequence;
    end loop;
    select json_agg(r order by r.number) into v_segments
    from (select s.number, s.id, s.from_sequence, s.to_sequence, s.built_on, s.content, s.characters, s.tokens,
                 s.characters_through - case when v_gone.holes <> '{}' then
                   memory_private.missing(v_user, v_c.id, v_gone.holes, s.to_sequence) else 0 end as characters_through,
                 s.tokens_through, s.model, s.clipped, s.quality, s.created_at
          from memory.conversation_summaries s
          where s.user_id = v_user and s.conversation_id = v_c.id and s.level = 0 and s.number >= v_number
          order by s.number) r;
    -- A history that fits whole needs no summary.
    if v_number = 1 and v_c.total_characters <= p_characters then
      v_after := -1;
    end if;
  end if;
  v_after := greatest(v_after, v_gone.first - 1);

  v_low := memory_private.tail(v_user, v_c.id, v_after, p_characters, v_messages, v_bytes, v_gone.holes);
  select bool_and(t.role = 'tool') as tools_only, bool_or(t.role = 'user') as asked into v_window
    from (select m.role from memory.conversation_messages m
          where m.user_id = v_user and m.conversation_id = v_c.id and m.sequence >= v_low
            and not m.sequence <@ v_gone.holes
          order by m.sequence) t;
  -- The newest block is cut by nothing but the bytes that one answer may have.
  if v_window.tools_only then
    select m.sequence into v_block from memory.conversation_messages m
     where m.user_id = v_user and m.conversation_id = v_c.id and m.sequence > v_after and m.sequence < v_low
       and m.role <> 'tool' and not m.sequence <@ v_gone.holes
     order by m.sequence desc limit 1;
    v_low := greatest(coalesce(v_block, v_low), memory_private.tail(
      v_user, v_c.id, v_after, null, 5000, 2 * v_bytes, v_gone.holes));
  end if;
  select json_agg(r order by r.sequence) into v_rows
  from (select m.sequence, m.payload, m.metadata ->> 'via' as via, m.unreadable
        from memory.conversation_messages m
        where m.user_id = v_user and m.conversation_id = v_c.id and m.sequence >= v_low
          and not m.sequence <@ v_gone.holes
        order by m.sequence) r;
  -- In a long run of tools the question lies further back; a conversation in which nobody asked is not read whole.
  if not v_window.asked then
    select json_build_object('sequence', t.sequence, 'payload', t.payload) into v_asked
    from (select m.sequence, m.role, m.payload from memory.conversation_messages m
          where m.user_id = v_user and m.conversation_id = v_c.id and m.sequence >= v_gone.first and m.sequence < v_low
            and not m.sequence <@ v_gone.holes
          order by m.sequence desc limit 2000) t
    where t.role = 'user'
    order by t.sequence desc limit 1;
  end if;
  select m.sequence into v_unread from memory.conversation_messages m
   where m.user_id = v_user and m.conversation_id = v_c.id and m.sequence > v_after and m.sequence < v_low
     and not m.sequence <@ v_gone.holes
   order by m.sequence limit 1;

  -- Not what is shown anyway; nothing where all of it is.
  if p_recall is not null and (
    v_c.total_characters > p_characters / 2 or coalesce(p_recall ->> 'scope', 'conversation') <> 'conversation')
  then
    v_recalled := memory_private.recall(
      v_user, memory_private.scope(v_user, p_agent_id, v_c.id, p_recall ->> 'scope'),
      (p_recall::jsonb || jsonb_build_object('before', jsonb_build_object(
        'conversation', v_c.id,
        'expired', v_gone.messages::text,
        -- Of the message in which that begins, however long it is, not all is shown.
        'sequence', memory_private.tail(
          v_user, v_c.id, v_gone.first - 1, p_recent, v_messages, null, v_gone.holes) + 1)))::json);
  end if;

  -- What holds now, of each kind so much: however much a board has, no more of it is read.
  if p_board > 0 then
    select json_build_object(
             'version', b.version,
             'edited_summary', b.edited_summary,
             'context_notes', b.context_notes,
             'through_sequence', b.through_sequence,
             'items', coalesce((
               select json_agg(r)
               from unnest(array['action', 'question', 'fact', 'entity', 'topic']) k
               cross join lateral (
                 select i.id, i.kind, i.type, i.text, i.state, i.importance, i.quote, i.message_ids, i.sequences,
                        i.first_seen_at, i.last_seen_at, i.version, i.superseded_by, i.superseded_at, i.pinned, i.author,
                        i.edited_by, i.edited_at
                 from memory.conversation_board_items i
                 where i.user_id = v_user and i.conversation_id = v_c.id and i.kind = k and i.superseded_at is null
                   and i.deleted_at is null and i.state in ('current', 'open')
                 order by i.pinned desc, i.last_seen_at desc, i.id
                 limit least(p_board, 200)) r), '[]'))
      into v_board
      from memory.conversation_summary_boards b
     where b.user_id = v_user and b.conversation_id = v_c.id and not v_gone.board;
  end if;
  select memory_private.state(w.run_after, w.lease_until),
         w.since < clock_timestamp() - interval '1 hour' and w.attempts = 0 and w.paused = '{}'
    into v_work, v_unattended
    from memory_private.work w
   where w.user_id = v_user and w.conversation_id = v_c.id;

  return json_build_object(
    'conversation_id', v_c.id,
    'next_sequence', v_c.next_sequence,
    'message_count', v_c.message_count,
    'total_characters', v_c.total_characters,
    'total_tokens', v_c.total_tokens,
    'through_sequence', v_c.summarized_through,
    'summarized_characters', v_c.summarized_characters,
    'summarized_tokens', v_c.summarized_tokens,
    'summary_waiting', coalesce(v_c.summary_retry_at > clock_timestamp(), false),
    'summary_error', v_c.summary_error,
    'segments', coalesce(v_segments, '[]'),
    'messages', coalesce(v_rows, '[]'),
    'unread_from', v_unread, -- the first message after the oldest of the segments that was not read
    'asked', v_asked,
    'recalled', v_recalled,
    'board', v_board,
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
  'langchain-supabase-memory: the summaries, the newest messages and the board for the next prompt.';
