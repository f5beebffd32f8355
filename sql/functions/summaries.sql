-- Summaries: what is to be summarized next, the commit, what covers what, and conversations found by them. No call holds a
-- lock while a model thinks.
-- How its queries are held to their indexes: sql/README.md.

-- Deletes the summaries made from a message that was changed or deleted: its segment, and everything built on it. If
-- the message was deleted, a person's edits of these go too.
create or replace function memory_private.invalidate_summaries(
  p_user_id text, p_conversation_id uuid, p_sequence bigint, p_forgotten text default null
) returns void
language plpgsql volatile security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
declare
  v_through bigint;
  v_last    record;
begin
  update memory.conversations c
     set revision = c.revision + 1
   where c.user_id = p_user_id and c.id = p_conversation_id
  returning c.summarized_through into v_through;
  -- Of a hierarchical summary everything above it; those are few, and read completely.
  for v_last in
    select t.level, t.number from memory.conversation_summaries t
    where t.user_id = p_user_id and t.conversation_id = p_conversation_id and t.level > 0
      and t.to_sequence >= p_sequence
    order by t.level, t.number
  loop
    delete from memory.conversation_summaries s
     where s.user_id = p_user_id and s.conversation_id = p_conversation_id and s.level = v_last.level
       and s.number = v_last.number;
  end loop;
  if v_through >= p_sequence then
    select s.number into v_last from memory.conversation_summaries s
     where s.user_id = p_user_id and s.conversation_id = p_conversation_id and s.level = 0
       and s.to_sequence < p_sequence
     order by s.number desc limit 1;
    delete from memory.conversation_summaries s
     where s.user_id = p_user_id and s.conversation_id = p_conversation_id and s.level = 0
       and s.number > coalesce(v_last.number, 0);
    perform memory_private.update_summary_position(p_user_id, p_conversation_id);
  end if;
  perform memory_private.invalidate_board(p_user_id, p_conversation_id, p_sequence, p_forgotten);
  update memory.control_changes h set before = null
   where h.user_id = p_user_id and h.conversation_id = p_conversation_id and h.to_sequence >= p_sequence;
end
$function$;

-- Returns the lowest sequence after which fewer than p_characters follow (null: any number), within a number of
-- messages and, if given, of bytes; at least the newest message. It reads at most four times as many rows as it
-- needs.
create or replace function memory_private.tail_start(
  p_user_id text, p_conversation_id uuid, p_after bigint, p_characters bigint, p_messages integer,
  p_bytes bigint default null, p_holes int8multirange default '{}'
) returns bigint
language plpgsql stable security invoker set search_path = ''
as $function$
declare
  v_rows integer := least(64, p_messages, greatest(8, p_characters / 256)); -- messages are seldom shorter
  v_tail record;
begin
  loop
    select count(*) as seen,
           count(*) filter (where t.is_inside) as inside,
           min(t.sequence) filter (where t.is_inside) as lowest,
           max(t.sequence) as newest
      into v_tail
      from (select m.sequence, (p_characters is null or sum(m.characters) over w - m.characters < p_characters)
                               and (p_bytes is null or sum(m.bytes) over w <= p_bytes) as is_inside
            from memory.conversation_messages m
            where m.user_id = p_user_id and m.conversation_id = p_conversation_id and m.sequence > p_after
              and not m.sequence <@ p_holes
            window w as (order by m.sequence desc)
            order by m.sequence desc limit v_rows) t;
    exit when v_tail.inside < v_tail.seen or v_tail.seen < v_rows or v_rows >= p_messages;
    v_rows := least(v_rows * 4, p_messages);
  end loop;
  return coalesce(v_tail.lowest, v_tail.newest);
end
$function$;

-- Returns whether more is not yet summarized than a policy allows: {"characters", "tokens", "messages"}, null: any number.
create or replace function memory_private.exceeds_policy(p_conversation memory.conversations, p_due json)
returns boolean
language sql immutable security invoker set search_path = ''
as $function$
  select coalesce(
           p_conversation.total_characters - p_conversation.summarized_characters > (p_due ->> 'characters')::bigint, false)
      or coalesce(p_conversation.total_tokens - p_conversation.summarized_tokens > (p_due ->> 'tokens')::bigint, false)
      or coalesce(
           p_conversation.next_sequence - 1 - p_conversation.summarized_through > (p_due ->> 'messages')::bigint, false)
$function$;

-- Returns the first message that stays verbatim when the rest is summarized; null: all of it stays. Complete turns stay
-- if at least half of the characters and four fifths of the messages that may stay do; else complete blocks. So the newest
-- block always stays, whatever its size: its calls may be waiting for results.
create or replace function memory_private.summary_cut(
  p_user_id text, p_conversation_id uuid, p_after bigint, p_keep_characters bigint, p_keep_messages integer,
  p_holes int8multirange default '{}'
) returns bigint
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
declare
  v_most   constant integer := coalesce(p_keep_messages, 2147483647);
  v_low    constant bigint := memory_private.tail_start( -- the oldest message that may stay
    p_user_id, p_conversation_id, p_after, p_keep_characters, v_most, null, p_holes);
  v_middle constant bigint := memory_private.tail_start( -- the oldest that stays if only half of that does
    p_user_id, p_conversation_id, p_after, p_keep_characters / 2, ceil(v_most * 0.8)::integer, null, p_holes);
  v_cut    bigint;
begin
  select m.sequence into v_cut from memory.conversation_messages m
   where m.user_id = p_user_id and m.conversation_id = p_conversation_id and m.sequence >= v_low
     and m.sequence <= v_middle and m.role = 'user' and not m.sequence <@ p_holes
   order by m.sequence limit 1;
  if v_cut is null then
    select m.sequence into v_cut from memory.conversation_messages m
     where m.user_id = p_user_id and m.conversation_id = p_conversation_id and m.sequence > p_after
       and m.sequence <= v_low and m.role <> 'tool' and not m.sequence <@ p_holes
     order by m.sequence desc limit 1;
  end if;
  return v_cut;
end
$function$;

-- Returns about how many characters stay verbatim: more of them after a poor summary.
create or replace function memory_private.kept_characters(
  p_quality float8, p_keep_characters bigint, p_min_quality float8, p_keep_when_poor bigint
) returns bigint
language sql immutable security invoker set search_path = ''
as $function$
  select case when p_quality < p_min_quality
              then coalesce(p_keep_characters + greatest(p_keep_when_poor - p_keep_characters, 0), p_keep_characters)
              else p_keep_characters end
$function$;

create function public.memory_pending(
  p_thread_id       text,
  p_user_id         text    default null,
  p_agent_id        text    default 'default',
  p_keep_characters bigint  default null, -- about so much stays verbatim, and no more than so many messages;
  p_keep_messages   integer default null, -- the newest block always does
  p_until           bigint  default null, -- instead: everything up to this sequence
  p_characters      bigint  default 24000, -- about as much is returned, but one whole block at least
  p_level           integer default 0,    -- 1: for a complete summary; it needs p_until
  p_min_quality     float8  default null, -- where the newest summary is poorer, p_keep_when_poor stays verbatim
  p_keep_when_poor  bigint  default null,
  p_due             json    default null, -- {"characters", "tokens", "messages"}: nothing unless one is exceeded
  p_least           bigint  default null  -- whatever may stay verbatim: up to this sequence at least
) returns json
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
declare
  v_user       text := memory_private.resolve_owner(p_user_id);
  v_labels constant jsonb := memory_private.person_labels(v_user); -- of people, in a space
  v_c          memory.conversations;
  v_characters bigint;
  v_through    bigint; -- where this level's summaries end
  v_cut        bigint;
  v_last       bigint; -- the last sequence to cover
  v_end        bigint; -- the last sequence of this piece
  v_next       bigint;
  v_previous   memory.conversation_summaries;
  v_rows       json;
  v_bytes      bigint := (memory_private.current_limits()).answer_bytes;
begin
  select c.* into v_c from memory.conversations c
   where c.user_id = v_user and c.agent_id = p_agent_id and c.thread_id = p_thread_id;
  if not found then
    return null;
  end if;
  -- After a failure the next piece is half as long: it may have been too long for the model.
  p_characters := least(p_characters, v_bytes);
  v_characters := greatest(p_characters >> greatest(least(v_c.summary_failures, 4), 0), least(p_characters, 1000));
  select s.* into v_previous from memory.conversation_summaries s
   where s.user_id = v_user and s.conversation_id = v_c.id and s.level = p_level
   order by s.number desc limit 1;
  v_through := case when p_level = 0 then v_c.summarized_through else coalesce(v_previous.to_sequence, -1) end;

  if v_c.opted_out_at is not null then
    v_last := -1;
  elsif p_due is not null and not memory_private.exceeds_policy(v_c, p_due) then
    v_last := -1;
  elsif p_until is not null then
    select m.sequence into v_last from memory.conversation_messages m
     where m.user_id = v_user and m.conversation_id = v_c.id and m.sequence <= p_until
     order by m.sequence desc limit 1;
  else
    v_cut := memory_private.summary_cut(
      v_user, v_c.id, v_through,
      memory_private.kept_characters(v_previous.quality, p_keep_characters, p_min_quality, p_keep_when_poor),
      p_keep_messages);
    v_last := v_cut - 1;
    if p_least >= v_cut then
      select m.sequence into v_last from memory.conversation_messages m
       where m.user_id = v_user and m.conversation_id = v_c.id and m.sequence <= p_least
       order by m.sequence desc limit 1;
      -- No segment ends between the results of one message.
      select m.sequence - 1 into v_cut from memory.conversation_messages m
       where m.user_id = v_user and m.conversation_id = v_c.id and m.sequence > v_last and m.role <> 'tool'
       order by m.sequence limit 1;
      v_last := coalesce(v_cut, v_last);
    end if;
  end if;

  -- The first uncovered message, and the last one of a piece that begins there.
  select min(t.sequence), max(t.sequence) filter (where t.place = 1
           or t.characters <= v_characters and t.size <= v_bytes)
    into v_next, v_end
    from (select m.sequence, row_number() over w as place, sum(m.characters) over w as characters,
                 sum(m.bytes) over w as size
          from memory.conversation_messages m
          where m.user_id = v_user and m.conversation_id = v_c.id and m.sequence > v_through
            and m.sequence <= v_last
          window w as (order by m.sequence)
          order by m.sequence limit 1000) t;

  if v_end < v_last then
    -- Cut before a user's message, else before a message that is no tool result; else take the complete block, which is
    -- longer than a piece, if it fits into one answer.
    select coalesce(max(t.sequence) filter (where t.role = 'user'), max(t.sequence)) into v_cut
      from (select m.sequence, m.role from memory.conversation_messages m
            where m.user_id = v_user and m.conversation_id = v_c.id
              and m.sequence > v_next and m.sequence <= v_end + 1
            order by m.sequence) t
     where t.role <> 'tool';
    if v_cut is null then
      select m.sequence into v_cut from memory.conversation_messages m
       where m.user_id = v_user and m.conversation_id = v_c.id and m.sequence > v_end and m.role <> 'tool'
       order by m.sequence limit 1;
    end if;
    select max(t.sequence) into v_end
      from (select m.sequence, m.bytes, sum(m.bytes) over (order by m.sequence) as size
            from memory.conversation_messages m
            where m.user_id = v_user and m.conversation_id = v_c.id and m.sequence >= v_next
              and m.sequence <= least(v_cut - 1, v_last)
            order by m.sequence limit 5000) t
     where t.size - t.bytes < v_bytes;
  end if;

  if v_end >= v_next then
    select json_agg(r order by r.sequence) into v_rows
    from (select m.sequence, m.message_id, m.payload, m.unreadable, v_labels ->> m.author_id as author_name
          from memory.conversation_messages m
          where m.user_id = v_user and m.conversation_id = v_c.id and m.sequence between v_next and v_end
          order by m.sequence) r;
  end if;
  return json_build_object(
    'conversation_id', v_c.id,
    'through_sequence', v_through,
    'revision', v_c.revision,
    'characters', v_characters,
    'previous', case when p_level = 0 and v_previous.number is not null then json_build_object(
      'number', v_previous.number, 'content', v_previous.content, 'to_sequence', v_previous.to_sequence,
      'covers', v_c.summarized_characters) end,
    'messages', coalesce(v_rows, '[]'),
    'more', coalesce(v_rows is not null and v_end < v_last, false),
    'waiting', coalesce(v_c.summary_retry_at > clock_timestamp(), false),
    'opted_out', v_c.opted_out_at is not null,
    'topics', memory_private.topics_for_writer(v_user, v_c.id)); -- that are not to be remembered
end
$function$;
comment on function public.memory_pending is
  'langchain-supabase-memory: Read the next messages to summarize, cut where a conversation may be cut, and what the
  summary goes on from. No lock is held while a model works: commit with memory_commit_summary, which refuses if the
  conversation has moved on.

p_thread_id: the thread of the conversation.
p_user_id: the owner; null: the subject of the caller''s token.
p_agent_id: the agent of the conversation.
p_keep_characters: about so many characters of the newest messages stay as they are; null: no limit by characters.
  The newest block of calls and results always stays.
p_keep_messages: no more than so many messages stay; null: no limit.
p_until: instead of both: everything up to this sequence; null: by what stays.
p_characters: about so many characters are returned, one whole block at least.
p_level: 0: for the rolling summary. 1: for a complete summary; it needs p_until.
p_min_quality: where the newest summary is poorer than this, p_keep_when_poor holds; null: it does not matter.
p_keep_when_poor: characters that stay then, if they are more; null: as p_keep_characters.
p_due: nothing is returned unless one of these is exceeded; null: whatever there is.
- characters: integer or null. Characters that are not yet summarized.
- tokens: integer or null. Tokens that are not yet summarized.
- messages: integer or null. Messages that are not yet summarized.
p_least: whatever may stay: up to this sequence at least; null: it does not matter.
Returns: object or null. Null if there is no such conversation.
- conversation_id: uuid. Pass it to memory_commit_summary.
- through_sequence: integer. Where the summaries of this level end; -1 if there is none. Pass it as p_through.
- revision: integer. Counts edits and deletions. Pass it as p_revision.
- characters: integer. How long this piece may be; shorter after failures.
- previous: object or null. The summary to go on from; null for the first, and at level 1.
- previous.number: integer. Its number.
- previous.content: text. Its words.
- previous.covers: integer. How many characters the messages have that it stands for.
- previous.to_sequence: integer. The last message that it covers.
- messages: object[]. The messages to summarize, in their order; empty if there is nothing to do.
- messages[].sequence: integer. The number of the message.
- messages[].message_id: text. Its id.
- messages[].payload: object. The whole message.
- messages[].unreadable: text or null. Why no message could be made of the payload, in a word.
- messages[].author_name: text or null. In a space: what its author is called there. Null elsewhere.
- more: boolean. Whether more pieces follow after this one.
- waiting: boolean. Whether the last try failed, and the next has to wait.
- opted_out: boolean. Whether nothing of it is to be remembered; then there are no messages.
- topics: text[] or null. Topics that the summary must not mention; null if there are none.
Errors:
- PT400: no p_user_id is given, and the caller''s token names nobody.';

create function public.memory_commit_summary(
  p_thread_id       text,
  p_conversation_id uuid,   -- what it was computed from: a conversation, which may have been forgotten and begun anew,
  p_through         bigint, -- the position,
  p_revision        bigint, -- and the revision
  p_to              bigint,
  p_message_ids     json,
  p_content         text,
  p_tokens          integer,
  p_model           text    default null,
  p_clipped         boolean default false,
  p_user_id         text    default null,
  p_agent_id        text    default 'default',
  p_level           integer default 0,   -- 1: of a complete summary
  p_quality         float8  default null
) returns jsonb
language plpgsql volatile security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
declare
  v_user     text := memory_private.resolve_writer(p_user_id);
  v_c        memory.conversations;
  v_previous memory.conversation_summaries;
  v_covered  record;
  v_through  bigint;
  v_ids      text[] := array(select json_array_elements_text(p_message_ids));
  v_kept     text;
begin
  perform memory_private.check_limits(p_message_ids), memory_private.lock_opt_outs(v_user);
  select c.* into v_c from memory.conversations c
   where c.user_id = v_user and c.agent_id = p_agent_id and c.thread_id = p_thread_id and c.id = p_conversation_id
     for no key update;
  if not found or v_c.opted_out_at is not null then
    return jsonb_build_object('committed', false, 'through_sequence', -1);
  end if;
  -- The summarizer may not have left out opted-out topics: remove their sentences here.
  v_kept := coalesce(nullif(memory_private.remove_mentions(
    p_content, memory_private.opted_out_topics(v_user, v_c.id), v_c.language), ''), '…');
  if v_kept <> p_content then
    p_tokens := greatest(1, ceil(p_tokens * length(v_kept)::float8 / length(p_content))::integer);
    p_content := v_kept;
  end if;
  select s.* into v_previous from memory.conversation_summaries s
   where s.user_id = v_user and s.conversation_id = v_c.id and s.level = p_level
   order by s.number desc limit 1;
  v_through := case when p_level = 0 then v_c.summarized_through else coalesce(v_previous.to_sequence, -1) end;
  -- A retry of a commit whose answer was lost.
  if v_previous.to_sequence = p_to and v_previous.content = p_content and v_previous.message_ids = v_ids then
    return jsonb_build_object('committed', true, 'number', v_previous.number, 'through_sequence', p_to);
  end if;
  select array_agg(t.message_id order by t.sequence) as ids, max(t.sequence) as last,
         sum(t.characters) as characters, sum(t.tokens) as tokens
    into v_covered
    from (select m.sequence, m.message_id, m.characters, m.tokens from memory.conversation_messages m
          where m.user_id = v_user and m.conversation_id = v_c.id
            and m.sequence > v_through and m.sequence <= p_to
          order by m.sequence) t;
  -- Compare and swap: no other commit came first, and exactly the messages that the model was shown are covered.
  if v_through <> p_through or v_c.revision <> p_revision
     or v_covered.ids is distinct from v_ids or v_covered.last <> p_to
  then
    return jsonb_build_object('committed', false, 'through_sequence', v_through);
  end if;
  insert into memory.conversation_summaries (
    user_id, conversation_id, level, number, from_sequence, to_sequence, message_ids, built_on, content, characters,
    tokens, covered_characters, covered_tokens, model, clipped, quality, language, lexemes)
  select
    v_user, v_c.id, p_level, coalesce(v_previous.number, 0) + 1, p_through + 1, p_to, v_ids,
    case when p_level = 0 then v_previous.number end, p_content, length(p_content), p_tokens, v_covered.characters,
    v_covered.tokens, p_model, p_clipped, p_quality, l.name, memory_private.summary_lexemes(l.name, p_content)
  from coalesce(v_c.language, memory_private.detect_language(left(p_content, 8000)), 'simple') as l (name);
  update memory.conversations c
     set summarized_through = case when p_level = 0 then p_to else c.summarized_through end,
         summarized_characters = c.summarized_characters + case when p_level = 0 then v_covered.characters else 0 end,
         summarized_tokens = c.summarized_tokens + case when p_level = 0 then v_covered.tokens else 0 end,
         summary_failures = case when p_level = 0 then 0 else c.summary_failures end,
         summary_retry_at = case when p_level > 0 then c.summary_retry_at end,
         summary_error = case when p_level > 0 then c.summary_error end
   where c.user_id = v_user and c.id = v_c.id;
  return jsonb_build_object(
    'committed', true, 'number', coalesce(v_previous.number, 0) + 1, 'through_sequence', p_to);
end
$function$;
comment on function public.memory_commit_summary is
  'langchain-supabase-memory: Store a summary, if the conversation is still where memory_pending read it. The same
  commit once more is no error. Sentences that mention a topic which is not to be remembered are left out.

p_thread_id: the thread of the conversation.
p_conversation_id: from memory_pending: the thread may have been forgotten and begun anew.
p_through: through_sequence from memory_pending.
p_revision: revision from memory_pending.
p_to: the last message that the summary covers.
p_message_ids: the ids of all messages that it covers, in their order, a list of text.
p_content: the words of the summary, 1 to 65536 bytes.
p_tokens: about how many tokens it has.
p_model: who wrote it; null: nobody says.
p_clipped: whether it was cut because it was too long.
p_user_id: the owner; null: the subject of the caller''s token.
p_agent_id: the agent of the conversation.
p_level: the level that was passed to memory_pending.
p_quality: how much of its source it holds, 0 to 1; null: unknown.
Returns: object.
- committed: boolean. Whether it was stored. If not, read again: somebody else was first, a message has changed, or
  nothing is to be remembered.
- through_sequence: integer. Where the summaries of this level end now; -1 if there is no such conversation.
- number: integer. The number of the summary; only if it was stored.
Errors:
- PT400: no p_user_id is given, and the caller''s token names nobody.
- PT413: an argument is larger than call_bytes, or a list in it longer than call_items (see memory_limits).
- 23514: the words or a number of the summary are refused; the name of the constraint says which.';

create function public.memory_fail_summary(
  p_thread_id text,
  p_error     text, -- a word, never content
  p_user_id   text default null,
  p_agent_id  text default 'default'
) returns jsonb
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_user  text := memory_private.resolve_writer(p_user_id);
  v_c     memory.conversations;
  v_retry timestamptz;
begin
  select c.* into v_c from memory.conversations c
   where c.user_id = v_user and c.agent_id = p_agent_id and c.thread_id = p_thread_id
     for no key update;
  if found then
    v_retry := memory_private.backoff_until(v_c.summary_failures);
    update memory.conversations c
       set summary_failures = c.summary_failures + 1, summary_error = left(p_error, 200), summary_retry_at = v_retry
     where c.user_id = v_user and c.id = v_c.id;
  end if;
  return jsonb_build_object('retry_at', v_retry);
end
$function$;
comment on function public.memory_fail_summary is
  'langchain-supabase-memory: Note that a summary could not be written, so that the next try waits: about half a
  minute, then twice as long each time, up to an hour.

p_thread_id: the thread of the conversation.
p_error: why, in a word and without content; cut at 200 characters.
p_user_id: the owner; null: the subject of the caller''s token.
p_agent_id: the agent of the conversation.
Returns: object.
- retry_at: timestamp or null. When the next try may come; null if there is no such conversation.
Errors:
- PT400: no p_user_id is given, and the caller''s token names nobody.';

create function public.memory_due(
  p_characters bigint  default null, -- due when so much is not yet summarized; null: does not matter
  p_tokens     bigint  default null,
  p_messages   bigint  default null,
  p_user_id    text    default null, -- null: everybody that the caller may see
  p_limit      integer default 100,
  p_after_user text    default null,
  p_after      uuid    default null
) returns jsonb
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_custom_plan -- so that one user's conversations, and each page, are a range of the primary key
as $function$
begin
  p_user_id := memory_private.resolve_scope(p_user_id);
  return coalesce((
    select jsonb_agg(to_jsonb(r) order by r.user_id, r.id)
    from (
      select c.user_id, c.id, c.agent_id, c.thread_id from memory.conversations c
      where (c.total_characters - c.summarized_characters > p_characters
             or c.total_tokens - c.summarized_tokens > p_tokens
             or c.next_sequence - 1 - c.summarized_through > p_messages)
        and c.opted_out_at is null and (c.summary_retry_at is null or c.summary_retry_at <= clock_timestamp())
        and (p_user_id is null or c.user_id = p_user_id)
        and (p_after is null or (c.user_id, c.id) > (p_after_user, p_after))
        and (p_user_id is null or p_after_user is distinct from p_user_id or c.id > p_after)
      order by c.user_id, c.id
      limit greatest(0, least(p_limit, 1000))) r), '[]');
end
$function$;
comment on function public.memory_due is
  'langchain-supabase-memory: List conversations of which enough is not yet summarized, by pages. One that failed
  lately or is not to be remembered is not among them.

p_characters: due when more characters than this are not yet summarized; null: they do not matter.
p_tokens: due when more tokens are not; null: they do not matter.
p_messages: due when more messages are not; null: they do not matter.
p_user_id: only this owner''s; null: everybody''s that the caller may see.
p_limit: the most of one answer, at most 1000.
p_after_user: the user_id at which the last page ended; null: from the beginning.
p_after: the id at which the last page ended; null: from the beginning.
Returns: object[].
- [].user_id: text. The owner.
- [].id: uuid. The conversation.
- [].agent_id: text. Its agent.
- [].thread_id: text. Its thread.
Errors: none.';

create function public.memory_summaries(
  p_thread_id text,
  p_user_id   text    default null,
  p_agent_id  text    default 'default',
  p_before    integer default null,
  p_limit     integer default 100,
  p_level     integer default 0, -- null: the highest that begins at the conversation's beginning
  p_retention json    default null
) returns json
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
declare
  v_user text := memory_private.resolve_owner(p_user_id);
  v_id   uuid;
  v_level integer := p_level;
begin
  select c.id into v_id from memory.conversations c
   where c.user_id = v_user and c.agent_id = p_agent_id and c.thread_id = p_thread_id;
  if (memory_private.expired_derived(v_user, v_id, p_retention)).summaries then
    return '[]';
  end if;
  if v_level is null then
    select s.level into v_level from memory.conversation_summaries s
     where s.user_id = v_user and s.conversation_id = v_id and s.level > 0
     order by s.level desc limit 1;
  end if;
  -- The first summary of a level reaches farther than that of the level below. It is complete, though others may stand
  -- beside it until their level is combined.
  return coalesce((
    select json_agg(r order by r.number)
    from (
      select s.number, s.id, s.from_sequence, s.to_sequence, s.message_ids, s.built_on, s.content, s.characters,
             s.tokens, s.model, s.clipped, s.created_at, s.level, s.parts, s.quality, s.topics, s.key_facts, s.edited_by,
             s.edited_at
      from memory.conversation_summaries s
      where s.user_id = v_user and s.conversation_id = v_id and s.level = v_level
        and s.number < case when p_level is null then 2 else coalesce(p_before, 2147483647) end
      order by s.number desc
      limit greatest(0, least(p_limit, 100))) r), '[]');
end
$function$;
comment on function public.memory_summaries is
  'langchain-supabase-memory: Read the summaries of a conversation: the newest so many, in their order, or the complete
  one.

p_thread_id: the thread of the conversation.
p_user_id: the owner; null: the subject of the caller''s token.
p_agent_id: the agent of the conversation.
p_before: only those with a lower number; null: from the newest.
p_limit: the most of one answer, at most 100.
p_level: 0: those of the rolling summary. 1 and up: that level of a complete summary. Null: the complete summary, as
  far up as it reaches.
p_retention: what is kept, as in memory_append; null: everything. What is beyond it is left out.
Returns: object[].
- [].number: integer. Its number within the level.
- [].id: uuid. Changes with its words.
- [].from_sequence: integer. The first message that it covers.
- [].to_sequence: integer. The last message that it covers.
- [].message_ids: text[]. The messages that its summarizer was shown.
- [].built_on: integer or null. The number of the summary that it goes on from.
- [].content: text. Its words.
- [].characters: integer. How many characters it has.
- [].tokens: integer. About how many tokens it has.
- [].model: text or null. Who wrote it.
- [].clipped: boolean. Whether it was cut because it was too long.
- [].created_at: timestamp. When it was stored.
- [].level: integer. 0: of the rolling summary; 1: of messages alone; 2: of summaries of level 1; and so on.
- [].parts: integer[] or null. The numbers of the summaries one level below that it was made from; null at levels 0
  and 1.
- [].quality: number or null. How much of its source it holds, 0 to 1.
- [].topics: text[] or null. Its topics, if they were described.
- [].key_facts: object[] or null. Its key facts, as memory_describe_summary took them.
- [].edited_by: text or null. The person who wrote it instead.
- [].edited_at: timestamp or null. When that was.
Errors:
- PT400: no p_user_id is given, and the caller''s token names nobody.';

-- Returns ranges of sequences as pairs of the first and the last.
create or replace function memory_private.range_pairs(p_ranges int8multirange) returns json
language sql immutable security invoker set search_path = ''
as $function$
  select coalesce(json_agg(json_build_array(lower(r), upper(r) - 1) order by r), '[]') from unnest(p_ranges) r
$function$;

create function public.memory_coverage(
  p_thread_id text,
  p_user_id   text default null,
  p_agent_id  text default 'default',
  p_retention json default null
) returns json
language plpgsql stable security invoker set search_path = ''
as $function$
declare
  v_user text := memory_private.resolve_owner(p_user_id);
  v_c    memory.conversations;
  v_gone record; -- what has expired
  v_last bigint; -- of what is on no branch now and has expired
begin
  select c.* into v_c from memory.conversations c
   where c.user_id = v_user and c.agent_id = p_agent_id and c.thread_id = p_thread_id;
  if not found then
    return null;
  end if;
  v_gone := memory_private.find_expired(v_c, p_retention);
  v_c := v_gone.conversation;
  select max(s.sequence) into v_last from memory.superseded_messages s
   where s.user_id = v_user and s.conversation_id = v_c.id and (s.created_at < v_gone.age or s.sequence < v_gone.cut);
  return json_build_object(
    'next_sequence', v_c.next_sequence,
    'through_sequence', v_c.summarized_through,
    'expired_through', greatest(v_c.expired_through, v_last),
    'unreadable', coalesce((
      select json_agg(m.sequence order by m.sequence) from memory.conversation_messages m
      where m.user_id = v_user and m.conversation_id = v_c.id and m.unreadable is not null
        and not m.sequence <@ v_gone.messages), '[]'),
    'stored', memory_private.range_pairs((
      select range_agg(int8range(m.sequence, m.sequence, '[]')) from memory.conversation_messages m
      where m.user_id = v_user and m.conversation_id = v_c.id) - v_gone.messages),
    -- Messages on no current branch.
    'superseded', memory_private.range_pairs((
      select range_agg(int8range(s.sequence, s.sequence, '[]')) from memory.superseded_messages s
      where s.user_id = v_user and s.conversation_id = v_c.id and s.sequence >= v_gone.cut
        and (v_gone.age is null or s.created_at >= v_gone.age))),
    'segments', coalesce((
      select json_agg(json_build_array(s.number, s.from_sequence, s.to_sequence, s.built_on) order by s.number)
      from memory.conversation_summaries s
      where s.user_id = v_user and s.conversation_id = v_c.id and s.level = 0 and not v_gone.summaries), '[]'),
    'levels', coalesce((
      select json_agg(json_build_array(s.level, s.number, s.from_sequence, s.to_sequence, s.parts)
                      order by s.level, s.number)
      from memory.conversation_summaries s
      where s.user_id = v_user and s.conversation_id = v_c.id and s.level > 0 and not v_gone.summaries), '[]'),
    -- Messages in a segment's range that its model was not shown. There should be none.
    'unshown', coalesce((
      select json_agg(m.sequence order by m.sequence)
      from memory.conversation_messages m
      join memory.conversation_summaries s
        on s.user_id = m.user_id and s.conversation_id = m.conversation_id
       and m.sequence between s.from_sequence and s.to_sequence
      where m.user_id = v_user and m.conversation_id = v_c.id and m.message_id <> all (s.message_ids)
        and not m.sequence <@ v_gone.messages and not v_gone.summaries), '[]'));
end
$function$;
comment on function public.memory_coverage is
  'langchain-supabase-memory: Say where each message of a conversation is: stored, covered by which summary, expired,
  superseded. Ranges are pairs of the first and the last sequence.

p_thread_id: the thread of the conversation.
p_user_id: the owner; null: the subject of the caller''s token.
p_agent_id: the agent of the conversation.
p_retention: what is kept, as in memory_append; null: everything. What is beyond it is left out.
Returns: object or null. Null if there is no such conversation.
- next_sequence: integer. The sequence that the next message gets.
- through_sequence: integer. The last sequence that a summary covers; -1 if none.
- expired_through: integer. What is gone up to here has expired; after it, it was forgotten. -1 if nothing has.
- unreadable: integer[]. The sequences of messages that cannot be read.
- stored: json[]. The ranges that are stored.
- superseded: json[]. The ranges that a graph''s state has left.
- segments: json[]. Of each summary of the rolling one: number, first, last, and the number that it goes on from or
  null.
- levels: json[]. Of each part of a complete summary: level, number, first, last, and the numbers of its parts or
  null.
- unshown: integer[]. Sequences within a summary''s range that its summarizer was not shown; there should be none.
Errors:
- PT400: no p_user_id is given, and the caller''s token names nobody.';

create function public.memory_commit_parent(
  p_thread_id       text,
  p_conversation_id uuid,
  p_revision        bigint,
  p_level           integer, -- 2 or more
  p_parts           json,    -- the ids of the summaries one level below, in order
  p_content         text,
  p_tokens          integer,
  p_model           text    default null,
  p_clipped         boolean default false,
  p_quality         float8  default null,
  p_user_id         text    default null,
  p_agent_id        text    default 'default'
) returns jsonb
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_user  text := memory_private.resolve_writer(p_user_id);
  v_c     memory.conversations;
  v_ids   uuid[] := array(select json_array_elements_text(p_parts)::uuid);
  v_parts record;
  v_kept  text;
begin
  perform memory_private.check_limits(p_parts), memory_private.lock_opt_outs(v_user);
  select c.* into v_c from memory.conversations c
   where c.user_id = v_user and c.agent_id = p_agent_id and c.thread_id = p_thread_id and c.id = p_conversation_id
     for no key update;
  if not found or v_c.revision <> p_revision or v_c.opted_out_at is not null then
    return jsonb_build_object('committed', false);
  end if;
  v_kept := coalesce(nullif(memory_private.remove_mentions(
    p_content, memory_private.opted_out_topics(v_user, v_c.id), v_c.language), ''), '…');
  if v_kept <> p_content then
    p_tokens := greatest(1, ceil(p_tokens * length(v_kept)::float8 / length(p_content))::integer);
    p_content := v_kept;
  end if;
  select array_agg(s.id order by s.number) as ids, array_agg(s.number order by s.number) as numbers,
         min(s.from_sequence) as first, max(s.to_sequence) as last, sum(s.covered_characters) as characters,
         sum(s.covered_tokens) as tokens, max(s.number) - min(s.number) + 1 = count(*) as is_whole
    into v_parts
    from memory.conversation_summaries s
   where s.user_id = v_user and s.conversation_id = v_c.id and s.level = p_level - 1 and s.id = any (v_ids);
  -- Compare and swap: all parts still exist, next to each other.
  if v_parts.ids is distinct from v_ids or not v_parts.is_whole then
    return jsonb_build_object('committed', false);
  end if;
  -- A group that has grown is written again, and so is what was made from it.
  delete from memory.conversation_summaries s
   where s.user_id = v_user and s.conversation_id = v_c.id and s.level >= p_level and s.to_sequence >= v_parts.first;
  insert into memory.conversation_summaries (
    user_id, conversation_id, level, number, from_sequence, to_sequence, message_ids, parts, content, characters, tokens,
    covered_characters, covered_tokens, model, clipped, quality, language, lexemes)
  select
    v_user, v_c.id, p_level, coalesce((
      select s.number from memory.conversation_summaries s
      where s.user_id = v_user and s.conversation_id = v_c.id and s.level = p_level
      order by s.number desc limit 1), 0) + 1,
    v_parts.first, v_parts.last, array(
      select u.id from memory.conversation_summaries s, unnest(s.message_ids) with ordinality as u (id, place)
      where s.user_id = v_user and s.conversation_id = v_c.id and s.level = p_level - 1 and s.id = any (v_ids)
      order by s.number, u.place),
    v_parts.numbers, p_content, length(p_content), p_tokens, v_parts.characters, v_parts.tokens, p_model, p_clipped,
    p_quality, l.name, memory_private.summary_lexemes(l.name, p_content)
  from coalesce(v_c.language, memory_private.detect_language(left(p_content, 8000)), 'simple') as l (name);
  return jsonb_build_object('committed', true, 'through_sequence', v_parts.last);
end
$function$;
comment on function public.memory_commit_parent is
  'langchain-supabase-memory: Store a summary of summaries, if these are all still there, side by side. Higher levels
  that it belongs to are taken back.

p_thread_id: the thread of the conversation.
p_conversation_id: the conversation, as in memory_pending.
p_revision: revision when the parts were read.
p_level: the level of the new summary, 2 or more.
p_parts: the ids of the summaries one level below, in their order, a list of uuid.
p_content: the words of the summary, 1 to 65536 bytes.
p_tokens: about how many tokens it has.
p_model: who wrote it; null: nobody says.
p_clipped: whether it was cut because it was too long.
p_quality: how much of its source it holds, 0 to 1; null: unknown.
p_user_id: the owner; null: the subject of the caller''s token.
p_agent_id: the agent of the conversation.
Returns: object.
- committed: boolean. Whether it was stored.
- through_sequence: integer. The last message that it covers; only if it was stored.
Errors:
- PT400: no p_user_id is given, and the caller''s token names nobody.
- PT413: an argument is larger than call_bytes, or a list in it longer than call_items (see memory_limits).
- 23514: the words or a number of the summary are refused; the name of the constraint says which.';

create function public.memory_describe_summary(
  p_thread_id text,
  p_id        uuid,  -- of a summary that is still there
  p_topics    json,
  p_key_facts json,  -- [{"text", "quote", "message_ids"}]
  p_revision  bigint, -- of the conversation, when they were read
  p_user_id   text default null,
  p_agent_id  text default 'default'
) returns jsonb
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_user   text := memory_private.resolve_writer(p_user_id);
  v_c      memory.conversations;
  v_topics text[];
begin
  perform memory_private.check_limits(p_topics), memory_private.check_limits(p_key_facts),
          memory_private.lock_opt_outs(v_user);
  select c.* into v_c from memory.conversations c
   where c.user_id = v_user and c.agent_id = p_agent_id and c.thread_id = p_thread_id
     for no key update;
  v_topics := memory_private.opted_out_topics(v_user, v_c.id);
  update memory.conversation_summaries s
     set topics = array(select t from json_array_elements_text(p_topics) t
                        where not memory_private.mentions(t, v_topics, v_c.language)),
         key_facts = (select coalesce(jsonb_agg(f), '[]') from jsonb_array_elements(p_key_facts::jsonb) f
                      where not memory_private.mentions(
                        concat_ws(' ', f ->> 'text', f ->> 'quote'), v_topics, v_c.language))
   where s.user_id = v_user and s.conversation_id = v_c.id and s.id = p_id and v_c.revision = p_revision;
  return jsonb_build_object('described', found);
end
$function$;
comment on function public.memory_describe_summary is
  'langchain-supabase-memory: Store the topics and key facts of a complete summary. What mentions a topic that is not
  to be remembered is left out.

p_thread_id: the thread of the conversation.
p_id: the id of the summary.
p_topics: its topics, a list of text.
p_key_facts: its key facts, a list of objects.
- text: text. The fact.
- quote: text or null. What was said, word for word.
- message_ids: text[]. The messages that say so.
p_revision: revision of the conversation when they were read.
p_user_id: the owner; null: the subject of the caller''s token.
p_agent_id: the agent of the conversation.
Returns: object.
- described: boolean. Whether they were stored; not if the summary has gone or a message has changed since.
Errors:
- PT400: no p_user_id is given, and the caller''s token names nobody.
- PT413: an argument is larger than call_bytes, or a list in it longer than call_items (see memory_limits).';

-- Returns the lexemes that a summary is found by. Without a known language English is used: what is reduced alike on
-- both sides still matches.
create or replace function memory_private.summary_lexemes(p_language text, p_text text) returns text[]
language sql stable security invoker set search_path = ''
as $function$
  select array(
    select w.lexeme from memory_private.lexemes(case p_language when 'simple' then 'english' else p_language end, p_text) w)
$function$;

-- The summary that says most of a conversation: the complete one where it reaches as far as the newest segment.
drop view if exists memory.current_summaries;
-- Citus: current_summaries
create view memory.current_summaries with (security_invoker = true) as
-- The owner and the conversation are those of its row: what is asked for of one is then a range of that table's key.
select c.agent_id, c.thread_id, c.indexed_through, c.user_id, c.id as conversation_id, s.level, s.number, s.id,
       s.from_sequence, s.to_sequence, s.message_ids, s.built_on, s.parts, s.content, s.characters, s.tokens,
       s.covered_characters, s.covered_tokens, s.model, s.clipped, s.quality, s.topics, s.key_facts, s.language, s.lexemes,
       s.edited_by, s.edited_at, s.created_at
from memory.conversations c
cross join lateral (
  select t.* from (
    (select r.* from memory.conversation_summaries r
     where r.user_id = c.user_id and r.conversation_id = c.id and r.level = 0
     order by r.number desc limit 1)
    union all
    (select r.* from memory.conversation_summaries r
     where r.user_id = c.user_id and r.conversation_id = c.id and r.level > 0 and r.number = 1
     order by r.level desc limit 1)) t
  -- A person's version comes before a model's.
  order by t.to_sequence desc, (t.edited_at is not null) desc, t.level desc limit 1) s;
-- Citus: end

create function public.memory_recall_summaries(
  p_query          text,
  p_vector         json        default null,
  p_model          text        default null,
  p_limit          integer     default 5,
  p_since          timestamptz default null,
  p_until          timestamptz default null,
  p_max_age        float8      default null, -- seconds
  p_min_similarity float8      default null,
  p_agent_id       text        default null, -- null: with all agents
  p_user_id        text        default null
) returns json
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_custom_plan set jit = off
as $function$
declare
  v_user   text := memory_private.resolve_owner(p_user_id);
  v_vector {{vector_schema}}.halfvec := p_vector::text::{{vector_schema}}.halfvec;
  v_width  integer := json_array_length(p_vector);
  v_since  timestamptz := greatest(p_since, clock_timestamp() - least(p_max_age, 1e10) * interval '1 second');
  v_stored integer;
  v_found  json;
  v_is_large boolean;
  v_bytes  bigint := (memory_private.current_limits()).answer_bytes;
begin
  perform memory_private.check_limits(p_vector);
  -- Vectors of two widths cannot be compared. Those of another model are no error: until the summaries are embedded by
  -- this one, they are found by words.
  select e.dimensions into v_stored from memory.summary_embeddings e
   where e.user_id = v_user and e.model = p_model and e.dimensions <> v_width limit 1;
  if found then
    raise exception 'the stored vectors of this model have % dimensions, not %', v_stored, v_width
      using errcode = 'PT409', hint = 'name the embedding model otherwise, then call index_due()';
  end if;
  with newest as materialized (
    select s.conversation_id as id, s.thread_id, s.agent_id, s.level, s.number, s.from_sequence, s.to_sequence, s.content,
           s.created_at, coalesce(s.language, 'simple') as language,
           coalesce(s.lexemes, memory_private.summary_lexemes('simple', s.content)) as lexemes
    from memory.current_summaries s
    where s.user_id = v_user and (p_agent_id is null or s.agent_id = p_agent_id)
      and (v_since is null or s.created_at >= v_since) and (p_until is null or s.created_at < p_until)),
  -- Each summary is compared with the question's lexemes in its own language.
  asked as materialized (
    select l.language, (memory_private.summary_lexemes(l.language, left(p_query, 10000)))[:200] as lexemes
    from (select distinct n.language from newest n) l),
  hits as materialized (
    select n.id, h.lexeme
    from newest n
    join asked a on a.language = n.language
    cross join lateral (select unnest(a.lexemes) as lexeme intersect select unnest(n.lexemes)) h
    where n.lexemes && a.lexemes),
  spread as materialized (
    select h.lexeme, ln(1 + (t.total - count(*) + 0.5) / (count(*) + 0.5))::float8 as rarity
    from hits h cross join (select count(*) as total from newest) t
    group by h.lexeme, t.total),
  worded as materialized (
    select h.id, sum(s.rarity) as words from hits h join spread s on s.lexeme = h.lexeme group by h.id),
  matched as (
    select n.*, coalesce(w.words, 0) as words, -(e.embedding operator({{vector_schema}}.<#>) v_vector) as similarity
    from newest n
    left join worded w on w.id = n.id
    left join memory.summary_embeddings e
      on v_vector is not null and e.user_id = v_user and e.conversation_id = n.id and e.level = n.level
     and e.number = n.number
     and e.model = p_model and e.dimensions = v_width),
  -- Each part is scaled to 0..1. If all vectors are equally near, each gets the maximum.
  parts as (
    select m.*, coalesce(m.words / nullif(max(m.words) over (), 0), 0) as words_1,
           case when m.similarity is null then 0
                else coalesce((m.similarity - min(m.similarity) over ())
                              / nullif(max(m.similarity) over () - min(m.similarity) over (), 0), 1) end as meaning_1
    from matched m),
  scored as (
    select p.*, 0.5 * p.words_1 + 0.5 * p.meaning_1 as score
    from parts p
    where (p.similarity is not null or p.words > 0
           or v_vector is null and not exists (select from asked a where a.lexemes <> '{}'))
      and (p_min_similarity is null or coalesce(p.similarity, p.words_1) >= p_min_similarity)
    order by score desc, p.created_at desc, p.id
    limit greatest(0, least(p_limit, 1000)))
  select json_agg(json_build_object(
           'thread_id', s.thread_id, 'agent_id', s.agent_id, 'number', s.number, 'from_sequence', s.from_sequence,
           'to_sequence', s.to_sequence, 'content', s.content, 'created_at', s.created_at, 'score', s.score,
           'similarity', s.similarity, 'score_parts', json_strip_nulls(json_build_object(
             'words', nullif(0.5 * s.words_1, 0), 'meaning', nullif(0.5 * s.meaning_1, 0)))) order by s.score desc, s.created_at desc, s.id)
           filter (where not t.is_large), bool_or(t.is_large)
    into v_found, v_is_large
    from scored s
    cross join (select sum(octet_length(o.content)) > 2 * v_bytes as is_large
                from scored o) t;
  if v_is_large then
    raise exception 'the summaries that were found are too large together' using errcode = 'PT413',
      hint = 'pass a lower limit, or raise answer_bytes in memory_private.limits';
  end if;
  return coalesce(v_found, '[]');
end
$function$;
comment on function public.memory_recall_summaries is
  'langchain-supabase-memory: Find conversations whose summaries fit a question, by meaning and by words; the best
  first.

p_query: the question; its first 10000 characters count. Empty: the newest.
p_vector: its vector, of length one, a list of numbers; null: by words alone.
p_model: the name of the embedding model; null: by words alone.
p_limit: the most of one answer, at most 1000.
p_since: only summaries that were stored at this time or later; null: at any.
p_until: only summaries that were stored before this time; null: at any.
p_max_age: only summaries that are no older, in seconds; null: of any age.
p_min_similarity: only where the cosine is at least this; without a vector, where words fit so much in relation to
  the best. Null: whatever there is.
p_agent_id: only with this agent; null: with all.
p_user_id: the owner; null: the subject of the caller''s token.
Returns: object[].
- [].thread_id: text. The thread.
- [].agent_id: text. Its agent.
- [].number: integer. The number of the summary.
- [].from_sequence: integer. The first message that it covers.
- [].to_sequence: integer. The last message that it covers.
- [].content: text. Its words.
- [].created_at: timestamp. When it was stored.
- [].score: number. How well it fits, 0 to 1 among those that were found.
- [].similarity: number or null. The cosine; null without a vector.
- [].score_parts: object. What each part adds to the score: words, meaning; those that add nothing are left out.
Errors:
- PT400: no p_user_id is given, and the caller''s token names nobody.
- PT409: the stored vectors of this model have another number of dimensions.
- PT413: p_vector is longer or larger than one call may pass, or the summaries that were found are too large
  together (see memory_limits).';

create function public.memory_unembedded_summaries(
  p_model      text,
  p_user_id    text    default null, -- null: everybody that the caller may see
  p_agent_id   text    default null,
  p_thread_id  text    default null, -- null: every conversation
  p_limit      integer default 50,
  p_after_user text    default null,
  p_after      uuid    default null
) returns json
language plpgsql stable security invoker set search_path = ''
set enable_sort = off set jit = off -- else all conversations are read and sorted for each page
as $function$
declare
  v_limit constant integer := greatest(0, least(p_limit, 100));
  v_user  text; -- the last conversation that is looked at; null: all that are left are
  v_last  uuid;
  v_found record;
begin
  p_user_id := memory_private.resolve_scope(p_user_id);
  if p_thread_id is null then
    execute
      'select c.user_id, c.id from memory.conversations c where true'
      || case when p_user_id is not null then ' and c.user_id = $1' else '' end
      || case when p_after is not null then ' and (c.user_id, c.id) > ($2, $3)' else '' end
      || case when p_after_user = p_user_id then ' and c.id > $3' else '' end ||
      ' order by c.user_id, c.id offset 999 limit 1'
      into v_user, v_last using p_user_id, p_after_user, p_after;
  end if;
  -- Built here, so that one user's conversations, and each page, are a range of the primary key.
  execute
    'select json_agg(r order by r.user_id, r.conversation_id) as rows, count(*) as number,'
    '       (array_agg(r.user_id order by r.user_id desc, r.conversation_id desc))[1] as user_id,'
    '       (array_agg(r.conversation_id order by r.user_id desc, r.conversation_id desc))[1] as id from ('
    ' select s.user_id, s.conversation_id, s.agent_id, s.thread_id, s.indexed_through, s.level, s.number, s.id, s.content'
    ' from memory.current_summaries s'
    ' where not exists (select from memory.summary_embeddings e where e.user_id = s.user_id'
    '                   and e.conversation_id = s.conversation_id and e.level = s.level and e.number = s.number'
    '                   and e.model = $1)'
    || case when p_user_id is not null then ' and s.user_id = $2' else '' end
    || case when p_agent_id is not null then ' and s.agent_id = $3' else '' end
    || case when p_thread_id is not null then ' and s.thread_id = $4' else '' end
    || case when p_after is not null then ' and (s.user_id, s.conversation_id) > ($6, $7)' else '' end
    || case when p_after_user = p_user_id then ' and s.conversation_id > $7' else '' end
    || case when v_last is not null then ' and (s.user_id, s.conversation_id) <= ($8, $9)' else '' end ||
    ' order by s.user_id, s.conversation_id limit $5) r'
    into v_found
    using p_model, p_user_id, p_agent_id, p_thread_id, v_limit, p_after_user, p_after, v_user, v_last;
  return json_build_object('summaries', coalesce(v_found.rows, '[]'), 'after', case
    when v_found.number = v_limit and v_limit > 0 then json_build_object('user', v_found.user_id, 'id', v_found.id)
    when v_last is not null then json_build_object('user', v_user, 'id', v_last) end);
end
$function$;
comment on function public.memory_unembedded_summaries is
  'langchain-supabase-memory: List the summaries that stand for a conversation and have no vector of a model yet, by
  pages. A page looks at no more than 1,000 conversations, and may be empty though others follow.

p_model: the name of the embedding model.
p_user_id: only this owner''s; null: everybody''s that the caller may see.
p_agent_id: only with this agent; null: with all.
p_thread_id: only of this thread; null: of all.
p_limit: the most of one answer, at most 100.
p_after_user: user of after from the last page; null: from the beginning.
p_after: id of after from the last page; null: from the beginning.
Returns: object.
- summaries: object[]. The page.
- summaries[].user_id: text. The owner.
- summaries[].conversation_id: uuid. The conversation.
- summaries[].agent_id: text. Its agent.
- summaries[].thread_id: text. Its thread.
- summaries[].indexed_through: integer. The last sequence that is indexed; -1 if none.
- summaries[].level: integer. The level of the summary.
- summaries[].number: integer. Its number.
- summaries[].id: uuid. Its id: pass it on, so that no vector is stored for other words.
- summaries[].content: text. What is to be embedded.
- after: object or null. Where the next page goes on; null: there is none.
- after.user: text. Pass it as p_after_user.
- after.id: uuid. Pass it as p_after.
Errors: none.';

create function public.memory_embed_summaries(
  p_model   text,
  p_vectors json -- [{"user_id", "conversation_id", "number", "id", "embedding"}]
) returns jsonb
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_made jsonb;
begin
  perform memory_private.check_limits(p_vectors);
  -- Only for summaries that have not changed since they were embedded; locked until the vector is stored.
  with given as (
    select i.*
    from json_to_recordset(p_vectors) as i (
      user_id text, conversation_id uuid, level integer, number integer, id uuid, embedding json)
    order by i.user_id, i.conversation_id),
  there as (
    select s.user_id, s.conversation_id, s.level, s.number, g.embedding
    from given g
    join memory.conversation_summaries s
      on s.user_id = g.user_id and s.conversation_id = g.conversation_id and s.level = coalesce(g.level, 0)
     and s.number = g.number and s.id = g.id
    where s.id = (select n.id from memory.current_summaries n
                  where n.user_id = s.user_id and n.conversation_id = s.conversation_id)
    order by s.user_id, s.conversation_id
      for key share of s),
  made as (
    insert into memory.summary_embeddings (user_id, conversation_id, level, number, model, dimensions, embedding)
    select t.user_id, t.conversation_id, t.level, t.number, p_model, json_array_length(t.embedding),
           t.embedding::text::{{vector_schema}}.halfvec
    from there t
    on conflict (user_id, conversation_id, level, number, model) do update
      set dimensions = excluded.dimensions, embedding = excluded.embedding
    returning user_id, conversation_id, level, number),
  -- They contain the summaries before them.
  gone as (
    delete from memory.summary_embeddings e
     using made m
     where e.user_id = m.user_id and e.conversation_id = m.conversation_id and (e.level, e.number) <> (m.level, m.number))
  select jsonb_agg(jsonb_build_array(m.user_id, m.conversation_id)) into v_made from made m;
  return coalesce(v_made, '[]');
end
$function$;
comment on function public.memory_embed_summaries is
  'langchain-supabase-memory: Store vectors of summaries that still stand for their conversation. Vectors of the
  summaries before them go.

p_model: the name of the embedding model.
p_vectors: what memory_unembedded_summaries listed, with vectors; a list of objects.
- user_id: text. As listed.
- conversation_id: uuid. As listed.
- level: integer or null. As listed; null: 0.
- number: integer. As listed.
- id: uuid. As listed.
- embedding: number[]. The vector, of length one.
Returns: json[]. Of each vector that was stored, user_id and conversation_id.
Errors:
- PT413: an argument is larger than call_bytes, or a list in it longer than call_items (see memory_limits).';

create function public.memory_edit_summary(
  p_thread_id      text,
  p_action         text, -- edit, delete or regenerate
  p_by             text,
  p_number         integer default null,
  p_text           text    default null,
  p_tokens         integer default null,
  p_include_edited boolean default false, -- regenerate what a person wrote as well
  p_user_id        text    default null,
  p_agent_id       text    default 'default'
) returns jsonb
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_user   text := memory_private.resolve_writer(p_user_id);
  v_c      memory.conversations;
  v_s      memory.conversation_summaries;
  v_keep   integer; -- the last segment that stays
  v_gone   bigint;
  v_from   bigint;
  v_topics text[];
  v_new    uuid; -- id
  v_now    timestamptz;
  v_words  text[];
begin
  if octet_length(p_text) > 65536 then
    raise exception 'a summary has more than 65536 bytes' using errcode = 'PT413', hint = 'write it shorter';
  end if;
  perform memory_private.lock_opt_outs(v_user);
  select c.* into v_c from memory.conversations c
   where c.user_id = v_user and c.agent_id = p_agent_id and c.thread_id = p_thread_id
     for no key update;
  if not found then
    raise exception 'there is no such conversation' using errcode = 'PT404', hint = 'store a message first';
  end if;
  if p_action in ('edit', 'delete') then
    select s.* into v_s from memory.conversation_summaries s
     where s.user_id = v_user and s.conversation_id = v_c.id and s.level = 0 and s.number = p_number;
    if not found then
      raise exception 'there is no such summary' using errcode = 'PT404', hint = 'read the summaries again';
    end if;
  end if;
  case p_action
  when 'edit' then
    v_topics := memory_private.opted_out_topics(v_user, v_c.id);
    if memory_private.mentions(p_text, v_topics, v_c.language) then
      raise exception 'it mentions a topic that is not to be remembered'
        using errcode = 'PT400', hint = 'leave that out, or opt in to the topic';
    end if;
    v_keep := p_number;
    v_from := v_s.from_sequence;
    -- Its vector belongs to other words; one on its way is refused by the id.
    delete from memory.summary_embeddings e
     where e.user_id = v_user and e.conversation_id = v_c.id and e.level = 0 and e.number = p_number;
    v_new := gen_random_uuid();
    v_now := clock_timestamp();
    v_words := memory_private.summary_lexemes(v_s.language, p_text);
    update memory.conversation_summaries s
       set content = p_text, characters = length(p_text), tokens = p_tokens, clipped = false, quality = null,
           id = v_new, lexemes = v_words, edited_by = p_by, edited_at = v_now
     where s.user_id = v_user and s.conversation_id = v_c.id and s.level = 0 and s.number = p_number;
  when 'delete' then
    v_keep := p_number - 1;
    v_from := v_s.from_sequence;
    -- Deleted words are not kept in the record.
    update memory.control_changes h set before = null
     where h.user_id = v_user and h.conversation_id = v_c.id and h.to_sequence >= v_s.to_sequence;
  when 'regenerate' then
    -- A summary of expired messages cannot be written again, and stays.
    select coalesce(max(s.number), 0) into v_keep from memory.conversation_summaries s
     where s.user_id = v_user and s.conversation_id = v_c.id and s.level = 0
       and (s.edited_at is not null and not p_include_edited or s.from_sequence <= v_c.expired_through);
    select s.to_sequence + 1 into v_from from memory.conversation_summaries s
     where s.user_id = v_user and s.conversation_id = v_c.id and s.level = 0 and s.number = v_keep;
    v_from := greatest(coalesce(v_from, 0), v_c.expired_through + 1);
  else
    raise exception 'unknown action' using errcode = 'PT400';
  end case;
  delete from memory.conversation_summaries s
   where s.user_id = v_user and s.conversation_id = v_c.id and s.level = 0 and s.number > v_keep;
  get diagnostics v_gone = row_count;
  delete from memory.conversation_summaries s
   where s.user_id = v_user and s.conversation_id = v_c.id and s.level > 0 and s.to_sequence >= v_from
     and (p_action <> 'regenerate' or s.from_sequence > v_c.expired_through);
  update memory.conversations c
     set revision = c.revision + 1, summary_failures = 0, summary_retry_at = null, summary_error = null
   where c.user_id = v_user and c.id = v_c.id;
  perform memory_private.update_summary_position(v_user, v_c.id);
  insert into memory.control_changes (user_id, conversation_id, action, subject, before, to_sequence, changed_by)
  values (v_user, v_c.id, p_action || '_summary', p_number::text,
          case when p_action = 'edit' then v_s.content end, v_s.to_sequence, p_by);
  return jsonb_build_object('taken_back', v_gone);
end
$function$;
comment on function public.memory_edit_summary is
  'langchain-supabase-memory: What a person does with the summaries of a conversation: edit one, delete one and those
  after it, or have them written anew. It is noted with who and when.

p_thread_id: the thread of the conversation.
p_action: edit, delete or regenerate.
p_by: who does it.
p_number: the number of the summary, for edit and delete; null for regenerate.
p_text: the new words, for edit, 1 to 65536 bytes.
p_tokens: about how many tokens they have, for edit.
p_include_edited: for regenerate: also what a person wrote.
p_user_id: the owner; null: the subject of the caller''s token.
p_agent_id: the agent of the conversation.
Returns: object.
- taken_back: integer. How many summaries were taken back; they are written anew.
Errors:
- PT400: p_action is none of these; the text mentions a topic that is not to be remembered; or no p_user_id is
  given, and the caller''s token names nobody.
- PT404: there is no such conversation, or no such summary.
- PT413: the text has more than 65536 bytes.
- 23514: the text or its tokens are refused; the name of the constraint says which.';
