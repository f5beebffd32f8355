-- Lists: a user's conversations as an application's sidebar shows them, and what people set of one.

-- Returns a text as one line: each run of spaces, line breaks and control characters becomes one space. What is no run
-- of several, and no other than a plain space, is not matched: a search for each space of a text costs four times as much.
create or replace function memory_private.one_line(p_text text) returns text
language sql immutable security invoker set search_path = ''
as $function$
  select btrim(regexp_replace(
    p_text, '[\u0001-\u001f\u007f-\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]'
      '[ \u0001-\u001f\u007f-\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]*'
      '| [ \u0001-\u001f\u007f-\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+', ' ', 'g'))
$function$;

-- Returns the first words of a text as one line of at most p_characters; null if there are none. The cut is between
-- words, unless the last word is very long, and never between a character and one that combines with it.
create or replace function memory_private.first_words(p_text text, p_characters integer) returns text
language plpgsql immutable security invoker set search_path = ''
as $function$
declare
  v_line text := memory_private.one_line(left(p_text, 10 * p_characters));
  v_cut  text := left(v_line, p_characters - 1);
begin
  if length(v_line) <= p_characters and length(p_text) <= 10 * p_characters then
    return nullif(v_line, '');
  end if;
  if length(v_line) >= p_characters and substr(v_line, p_characters, 1) <> ' '
     and strpos(right(v_cut, p_characters / 2), ' ') > 0
  then
    v_cut := regexp_replace(v_cut, ' [^ ]*$', '');
  end if;
  return nullif(rtrim(v_cut, U&' \200D\FE0F,;:–—-'), '') || '…';
end
$function$;

-- Returns a conversation as a list shows it. The title is the person's, else the summarizer's, else the first words of
-- the first question. What has expired, and words that mention an opted-out topic, are left out.
create or replace function memory_private.conversation_json(
  p_conversation memory.conversations, p_retention json, p_has_topics boolean
) returns jsonb
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
declare
  v_gone   record := memory_private.find_expired(p_conversation, p_retention);
  v_c      memory.conversations := v_gone.conversation;
  v_topics text[] := case when p_has_topics then memory_private.opted_out_topics(v_c.user_id, v_c.id) else '{}' end;
  v_title  text := v_c.title;
  v_last   record;
  v_words  text;
begin
  if v_title is null and not v_gone.board then
    select b.title into v_title from memory.conversation_summary_boards b
     where b.user_id = v_c.user_id and b.conversation_id = v_c.id;
  end if;
  if v_title is null then
    -- Only the first few: a conversation may begin with many answers, or with images.
    select t.text into v_title
    from (select m.role, left(m.text, 1000) as text from memory.conversation_messages m
          where m.user_id = v_c.user_id and m.conversation_id = v_c.id and (m.role = 'user' or m.final)
            and m.sequence + 0 >= v_gone.first and not m.sequence <@ v_gone.holes
          order by m.sequence + 0 limit 5) t
    where t.role = 'user' and t.text <> '' limit 1;
    v_title := case when not memory_private.mentions(v_title, v_topics, v_c.language)
                    then memory_private.first_words(v_title, 60) end;
  end if;
  select m.created_at, m.role, left(m.text, 2000) as text into v_last from memory.conversation_messages m
   where m.user_id = v_c.user_id and m.conversation_id = v_c.id and (m.role = 'user' or m.final)
     and m.sequence + 0 >= v_gone.first and not m.sequence <@ v_gone.holes
   order by m.sequence + 0 desc limit 1;
  v_words := case when not memory_private.mentions(v_last.text, v_topics, v_c.language)
                  then memory_private.first_words(v_last.text, 200) end;
  return jsonb_build_object(
    'id', v_c.id, 'user_id', v_c.user_id, 'agent_id', v_c.agent_id, 'thread_id', v_c.thread_id,
    'title', v_title, 'metadata', coalesce(v_c.metadata, '{}'),
    'message_count', v_c.message_count,
    'last_message_at', v_last.created_at, 'last_message_role', v_last.role, 'last_message_text', v_words,
    'created_at', v_c.created_at, 'updated_at', v_c.updated_at,
    'archived_at', v_c.archived_at, 'opted_out_at', v_c.opted_out_at,
    'private', v_c.private, 'signals', v_c.signals);
end
$function$;

-- Returns the hour of a time, as conversations.updated_hour has it.
create or replace function memory_private.hour_of(p_at timestamptz) returns timestamptz
language sql immutable security invoker set search_path = ''
as $function$
  select date_trunc('hour', p_at at time zone 'UTC') at time zone 'UTC'
$function$;

-- Encodes a position in a list of conversations for the caller: when the conversation changed, and its id.
create or replace function memory_private.encode_cursor(p_at timestamptz, p_id uuid) returns text
language sql stable security invoker set search_path = ''
as $function$
  select to_char(p_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') || '/' || p_id
$function$;

create function public.memory_conversations(
  p_user_id   text        default null,
  p_agent_id  text        default null, -- null: all agents
  p_thread_id text        default null, -- null: all threads
  p_state     text        default null, -- active or archived; null: both
  p_since     timestamptz default null, -- only those that changed at or after this time,
  p_until     timestamptz default null, -- and before this one
  p_limit     integer     default 50,
  p_after     text        default null, -- the page after this place, older ones; "after" of the page before
  p_before    text        default null, -- or the page before this place
  p_retention json        default null,
  p_signals   integer     default null -- only those with one of these signals; null: all
) returns jsonb -- {"conversations", "before", "after"}
language plpgsql stable security invoker set search_path = ''
set enable_sort = off set jit = off -- else all of an owner's conversations are read and sorted, where few are expected
as $function$
declare
  v_user   text := memory_private.resolve_owner(p_user_id);
  v_place  text := coalesce(p_after, p_before);
  v_limit  integer := greatest(1, least(p_limit, 1000));
  v_by     text; -- what comes before the time in the order
  v_at     timestamptz;
  v_id     uuid;
  v_row    memory.conversations;
  v_found  memory.conversations[] := '{}';
  v_more   boolean;
  v_topics boolean;
  v_page   jsonb;
  v_sql    text;
  v_times  constant record := memory_private.private_times(); -- what is private is listed so long
begin
  if p_signals not between 1 and 255 then
    raise exception 'there are no such signals' using errcode = 'PT400', hint = 'pass the sum of some of their bits';
  end if;
  if p_state not in ('active', 'archived') then
    raise exception 'there is no such state' using errcode = 'PT400', hint = 'pass active or archived';
  end if;
  if p_after is not null and p_before is not null then
    raise exception 'a page is after a place, or before one' using errcode = 'PT400', hint = 'pass one of the two';
  end if;
  if v_place is not null then
    begin
      v_at := split_part(v_place, '/', 1)::timestamptz;
      v_id := split_part(v_place, '/', 2)::uuid;
    exception when data_exception then
      raise exception 'the place of a page cannot be read'
        using errcode = 'PT400', hint = 'pass what a page gave as before or after, as it is';
    end;
  end if;
  v_user := set_config('memory.read_owner', v_user, true); -- see memory_private.readable_owners
  -- Read in the order of an index by hours, so that a page ends when it is full. What has few, a thread or an agent, is
  -- read whole: its own may be far back among all that the owner has.
  if p_thread_id is null and (p_agent_id is null or exists (
    select from memory.conversations c where c.user_id = v_user and c.agent_id = p_agent_id
    order by c.thread_id offset 200 limit 1))
  then
    v_by := 'c.updated_hour ' || case when p_before is null then 'desc, ' else 'asc, ' end;
  end if;
  v_sql := format($sql$
      select c.* from memory.conversations c
      where c.user_id = $1 and ($2 is null or c.agent_id = $2) and ($3 is null or c.thread_id = $3)
        and ($4 is null or (c.archived_at is not null) = ($4 = 'archived'))
        and ($5 is null or c.updated_at >= $5) and ($6 is null or c.updated_at < $6)
        and ($7 is null or (c.updated_at, c.id) %1$s ($7, $8))
        and ($10 is null or c.updated_hour >= $10) and ($11 is null or c.updated_hour <= $11)
        and (not c.private or c.updated_at between $12 and $13)
        and %4$s
      order by %3$sc.updated_at %2$s, c.id %2$s limit $9 $sql$,
    case when p_before is null then '<' else '>' end, case when p_before is null then 'desc' else 'asc' end, v_by,
    case when p_signals is null then '$14 is null' when v_by is null then 'c.signals & $14 <> 0'
         else 'c.signals = s.bits::smallint and c.signals <> 0' end);
  if p_signals is not null and v_by is not null then
    -- A page of each combination of signals, whichever of them there are: the rest is not read.
    v_sql := format($sql$
      select c.* from generate_series(1, 255) as s (bits) cross join lateral (%1$s offset 0) c
      where s.bits & $14 <> 0
      order by %3$sc.updated_at %2$s, c.id %2$s limit $9 $sql$,
      v_sql, case when p_before is null then 'desc' else 'asc' end, v_by);
  end if;
  for v_row in
    execute v_sql
    using /* 1 */ v_user, /* 2 */ p_agent_id, /* 3 */ p_thread_id, /* 4 */ p_state, /* 5 */ p_since, /* 6 */ p_until,
          /* 7, 8: the place */ v_at, v_id, /* 9 */ v_limit + 1,
          /* 10 */ memory_private.hour_of(greatest(p_since, case when p_before is not null then v_at end)),
          /* 11 */ memory_private.hour_of(least(p_until, case when p_before is null then v_at end)),
          /* 12 */ v_times.oldest, /* 13 */ v_times.newest, /* 14 */ p_signals
  loop
    v_found := v_found || v_row;
  end loop;
  v_more := cardinality(v_found) > v_limit;
  v_found := v_found[:v_limit];
  if p_before is not null then
    select array_agg(c order by c.updated_at desc, c.id desc) into v_found from unnest(v_found) c;
  end if;
  v_topics := exists (select from memory.opt_outs o where o.user_id = v_user and o.topic is not null);
  v_page := jsonb_build_object(
    'conversations', coalesce((
      select jsonb_agg(memory_private.conversation_json(c, p_retention, v_topics) order by c.updated_at desc, c.id desc)
      from unnest(v_found) c), '[]'),
    'before', case when p_after is not null or p_before is not null and v_more
                   then memory_private.encode_cursor(v_found[1].updated_at, v_found[1].id) end,
    'after', case when p_before is not null or v_more
                  then memory_private.encode_cursor(
                    v_found[cardinality(v_found)].updated_at, v_found[cardinality(v_found)].id) end);
  v_user := set_config('memory.read_owner', '', true);
  return v_page;
end
$function$;
comment on function public.memory_conversations is
  'langchain-supabase-memory: List a user''s conversations as a sidebar shows them, the most recently changed first, by
  pages in both directions. Nothing is written.

p_user_id: the owner; null: the subject of the caller''s token.
p_agent_id: only those with this agent; null: with all.
p_thread_id: only this thread, with whichever agent; null: all.
p_state: only these: active or archived; null: both.
p_since: only those that changed at this time or later; null: at any.
p_until: only those that changed before this time; null: at any.
p_limit: the most of one page, 1 to 1000.
p_after: after of another page, for the one that follows it (older ones); null: from the newest.
p_before: before of another page, for the one that precedes it; null: from the newest. Pass one of the two.
p_retention: what is kept, as in memory_append: what is beyond it is neither counted nor shown. Null: everything is.
p_signals: only those with one of these signals, the sum of their bits (see memory_signals); null: all.
Returns: object.
- conversations: object[]. The page, the most recently changed first.
- conversations[].id: uuid. The conversation.
- conversations[].user_id: text. Its owner.
- conversations[].agent_id: text. Its agent.
- conversations[].thread_id: text. Its thread.
- conversations[].title: text or null. What a person calls it; else the title of its board; else the first words of
  its first question. Null if there are none.
- conversations[].metadata: object. What the application keeps beside it; empty if nothing.
- conversations[].message_count: integer. How many messages it holds.
- conversations[].last_message_at: timestamp or null. When the last question or final answer was said; null if there
  is none.
- conversations[].last_message_role: text or null. user or assistant.
- conversations[].last_message_text: text or null. Its first words, in one line of at most 200 characters; null if
  it has none, or mentions a topic that is not to be remembered.
- conversations[].created_at: timestamp. When it was begun.
- conversations[].updated_at: timestamp. When it was last changed.
- conversations[].archived_at: timestamp or null. Since when it is archived.
- conversations[].opted_out_at: timestamp or null. Since when nothing of it is to be remembered.
- conversations[].private: boolean. Whether it is private: never remembered, and gone a day after its last message.
- conversations[].signals: integer. The signals of all of its chunks, as bits (see memory_signals).
- before: text or null. Pass it as p_before for the page with newer ones; null: there is none.
- after: text or null. Pass it as p_after for the page with older ones; null: there is none.
Errors:
- PT400: p_state is neither active nor archived, p_signals has no bit or others, p_after and p_before are both given, or one cannot be read; or no
  p_user_id is given, and the caller''s token names nobody.';

create function public.memory_update(
  p_thread_id text,
  p_title     text default null, -- null: keep it; blank: the summarizer's title again, or the first words
  p_metadata  json default null, -- null: as it is
  p_user_id   text default null,
  p_agent_id  text default 'default',
  p_retention json default null
) returns jsonb
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_user   text := memory_private.resolve_writer(p_user_id);
  v_title  text := memory_private.one_line(p_title);
  v_c      memory.conversations;
  v_topics text[];
begin
  if length(v_title) > 200 then
    raise exception 'a title has more than 200 characters' using errcode = 'PT400', hint = 'pass a shorter one';
  end if;
  perform memory_private.check_limits(p_metadata), memory_private.lock_opt_outs(v_user);
  select c.* into v_c from memory.conversations c
   where c.user_id = v_user and c.agent_id = p_agent_id and c.thread_id = p_thread_id
     for no key update;
  if not found then
    raise exception 'there is no such conversation' using errcode = 'PT404', hint = 'store a message first';
  end if;
  v_topics := memory_private.opted_out_topics(v_user, v_c.id);
  if memory_private.mentions(v_title, v_topics, v_c.language) then
    raise exception 'the title mentions a topic that is not to be remembered'
      using errcode = 'PT400', hint = 'leave that out, or opt in to the topic';
  end if;
  -- Without updated_at: a new title does not change the order of a list.
  if v_title is not null then
    update memory.conversations c set title = nullif(v_title, '') where c.user_id = v_user and c.id = v_c.id;
  end if;
  if p_metadata is not null then
    update memory.conversations c set metadata = p_metadata::jsonb where c.user_id = v_user and c.id = v_c.id;
  end if;
  select c.* into v_c from memory.conversations c where c.user_id = v_user and c.id = v_c.id;
  return memory_private.conversation_json(v_c, p_retention, cardinality(v_topics) > 0);
end
$function$;
comment on function public.memory_update is
  'langchain-supabase-memory: Set the title of a conversation, or what the application keeps beside it. The order of
  lists stays. Returns the conversation as it is listed.

p_thread_id: the thread of the conversation.
p_title: the title, at most 200 characters; empty: the board''s again, or the first words; null: as it is.
p_metadata: an object of at most 16 KiB, which takes the place of the one before; null: as it is.
p_user_id: the owner; null: the subject of the caller''s token.
p_agent_id: the agent of the conversation.
p_retention: what is kept, as in memory_append: what is beyond it is neither counted nor shown. Null: everything is.
Returns: object as memory_conversations.conversations. The conversation.
Errors:
- PT400: the title has more than 200 characters or mentions a topic that is not to be remembered, or the metadata is
  no object; or no p_user_id is given, and the caller''s token names nobody.
- PT404: there is no such conversation.
- PT413: the metadata has more than 16 KiB.';
