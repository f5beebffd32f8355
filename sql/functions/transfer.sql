-- What people have set of a conversation, for who takes it along: read as one document, and put back from one. What is
-- derived is made anew and is no part of it. Sequences may differ there, so messages are named by their ids.

-- Parses a time from a document. A time in the future, or before the year 2, becomes now.
create or replace function memory_private.parse_past_time(p_time text) returns timestamptz
language plpgsql stable security invoker set search_path = ''
as $function$
declare
  v_time timestamptz := p_time::timestamptz;
begin
  if v_time >= '0002-01-01 00:00+00' and v_time <= clock_timestamp() then
    return v_time;
  end if;
  return clock_timestamp();
exception when data_exception then
  raise exception 'a time cannot be read' using errcode = 'PT400', hint = 'pass ISO 8601, such as 2026-01-31T12:00:00Z';
end
$function$;

-- Returns the kind of an author as a document names it. An unknown or absent kind counts as an import.
create or replace function memory_private.author_kind(p_kind text) returns text
language sql immutable security invoker set search_path = ''
as $function$
  select case when p_kind in ('person', 'application', 'model', 'rule') then p_kind else 'import' end
$function$;

create function public.memory_edits(
  p_thread_id text,
  p_user_id   text default null,
  p_agent_id  text default 'default',
  p_retention json default null -- what is kept, see memory_private.find_expired
) returns json
language plpgsql stable security invoker set search_path = ''
as $function$
declare
  v_user text := memory_private.resolve_owner(p_user_id);
  v_c    memory.conversations;
  v_gone record;
begin
  select c.* into v_c from memory.conversations c
   where c.user_id = v_user and c.agent_id = p_agent_id and c.thread_id = p_thread_id;
  if not found then
    return null;
  end if;
  v_gone := memory_private.find_expired(v_c, p_retention);
  return json_build_object(
    'title', v_c.title,
    'metadata', v_c.metadata,
    'created_at', v_c.created_at,
    'updated_at', v_c.updated_at,
    'opt_outs', coalesce((
      select json_agg(json_build_object('topic', o.topic, 'by', o.created_by, 'at', o.created_at)
                      order by o.created_at, o.id)
      from memory.opt_outs o where o.user_id = v_user and o.conversation_id = v_c.id), '[]'),
    'summary', (
      select json_build_object(
               'text', b.edited_summary, 'by', b.edited_by, 'editor_kind', b.editor_kind, 'at', b.edited_at)
      from memory.conversation_summary_boards b
      where b.user_id = v_user and b.conversation_id = v_c.id and b.edited_summary is not null and not v_gone.board),
    'items', coalesce((
      select json_agg(json_build_object(
               'kind', i.kind, 'type', i.type, 'text', i.text, 'state', i.state, 'importance', i.importance,
               'quote', i.quote, 'message_ids', i.message_ids, 'pinned', i.pinned, 'author', i.author,
               'author_kind', i.author_kind, 'editor_kind', i.editor_kind,
               'first_seen_at', i.first_seen_at, 'last_seen_at', i.last_seen_at, 'by', i.edited_by, 'at', i.edited_at,
               'contributed_by', i.contributed_by, 'said_at', i.said_at)
             order by i.first_seen_at, i.id)
      from memory.conversation_board_items i
      where i.user_id = v_user and i.conversation_id = v_c.id and i.deleted_at is null and i.superseded_at is null
        and (i.edited_at is not null or i.pinned or i.sequences = '{}') and not v_gone.board), '[]'),
    'deleted', coalesce((
      select json_agg(json_build_object(
               'kind', i.kind, 'digest', i.digest, 'state', i.state, 'message_ids', i.message_ids,
               'quote_at', i.quote_at, 'quote_length', i.quote_length, 'by', coalesce(i.edited_by, i.author),
               'at', i.deleted_at)
             order by i.deleted_at, i.id)
      from memory.conversation_board_items i
      where i.user_id = v_user and i.conversation_id = v_c.id and i.deleted_at is not null
        and i.superseded_at is null and not v_gone.board
        -- Items whose messages are gone cannot come back.
        and (v_gone.messages = '{}' or i.sequences[1] is null
             or i.sequences[1] > (v_gone.conversation).expired_through)), '[]'),
    'ratings', coalesce((
      select json_agg(json_build_object(
               'from', f.message_id, 'to', t.message_id, 'part', r.part, 'importance', r.importance, 'by', r.rated_by,
               'at', r.rated_at)
             order by r.from_sequence, r.to_sequence, r.part)
      from memory.chunk_ratings r
      join memory.conversation_messages f
        on f.user_id = v_user and f.conversation_id = v_c.id and f.sequence = r.from_sequence
      join memory.conversation_messages t
        on t.user_id = v_user and t.conversation_id = v_c.id and t.sequence = r.to_sequence
      where r.user_id = v_user and r.conversation_id = v_c.id
        and not f.sequence <@ v_gone.messages and not t.sequence <@ v_gone.messages), '[]'),
    -- A person's summary continues those before it; without one all are made again.
    'summaries', coalesce((
      select json_agg(json_build_object(
               'to', s.message_ids[cardinality(s.message_ids)], 'content', s.content, 'tokens', s.tokens, 'model', s.model,
               'by', s.edited_by, 'at', s.edited_at) order by s.number)
      from memory.conversation_summaries s
      where s.user_id = v_user and s.conversation_id = v_c.id and s.level = 0 and not v_gone.summaries
        and s.number <= (
          select max(e.number) from memory.conversation_summaries e
          where e.user_id = v_user and e.conversation_id = v_c.id and e.level = 0 and e.edited_at is not null)), '[]'),
    'superseded', case when v_c.has_superseded then (
      select count(*) from memory.superseded_messages s
      where s.user_id = v_user and s.conversation_id = v_c.id and s.sequence >= v_gone.cut
        and (v_gone.age is null or s.created_at >= v_gone.age)) else 0 end);
end
$function$;
comment on function public.memory_edits is
  'langchain-supabase-memory: Read what people have set of a conversation, as memory_restore takes it: its title and
  metadata, opt-outs, ratings, and what a person wrote, pinned or deleted. Nothing is written.

p_thread_id: the thread of the conversation.
p_user_id: the owner; null: the subject of the caller''s token.
p_agent_id: the agent of the conversation.
p_retention: what is kept, as in memory_append; null: everything. What is beyond it is left out.
Returns: object or null. Null: there is no such conversation.
- title: text or null. What a person calls it.
- metadata: object or null. What the application keeps beside it.
- created_at: timestamp. When it was begun.
- updated_at: timestamp. When it was last changed.
- opt_outs: object[]. What of it is not to be remembered; topic is null for all of it.
- opt_outs[].topic: text or null. The topic.
- opt_outs[].by: text. Who said so.
- opt_outs[].at: timestamp. When.
- summary: object or null. What a person wrote as the summary of its board.
- summary.text: text. The words.
- summary.by: text or null. Who.
- summary.editor_kind: text or null. What that is: person, application or import.
- summary.at: timestamp or null. When.
- items: object[]. The items of its board that a person wrote, edited or pinned, and what a model noted.
- items[].kind: text. {{item_kinds}}.
- items[].type: text or null. Of an entity, what it is.
- items[].text: text. What it says.
- items[].state: text. Its state.
- items[].importance: number. How much it matters, 0 to 1.
- items[].quote: text or null. The words that say so.
- items[].message_ids: text[]. The messages that it came from.
- items[].pinned: boolean. Whether a person holds on to it.
- items[].author: text. Who wrote it first.
- items[].author_kind: text. What that is: person, application, model, rule or import.
- items[].editor_kind: text or null. What the one is who changed it last: person, application or import.
- items[].first_seen_at: timestamp. When it was first said.
- items[].last_seen_at: timestamp. When it was last said.
- items[].by: text or null. Who changed it last; null: nobody, it is only pinned.
- items[].at: timestamp or null. When.
- items[].contributed_by: text or null. In a space: who quoted it from a conversation of their own.
- items[].said_at: timestamp or null. When it was said there.
- deleted: object[]. The items that a person deleted, without their words.
- deleted[].kind: text. The kind.
- deleted[].digest: text. What keeps it from coming back.
- deleted[].state: text. Its state.
- deleted[].message_ids: text[]. The messages that it came from.
- deleted[].quote_at: integer or null. Where its quote begins in the first of them, from 1.
- deleted[].quote_length: integer or null. How long the quote is.
- deleted[].by: text. Who.
- deleted[].at: timestamp. When.
- ratings: object[]. How much chunks matter to a person.
- ratings[].from: text. The chunk''s first message.
- ratings[].to: text. Its last message.
- ratings[].part: integer. Which part of a long message.
- ratings[].importance: number. How much it matters, 0 to 1.
- ratings[].by: text. Who said so.
- ratings[].at: timestamp. When.
- summaries: object[]. The summaries up to the last one that a person wrote, in their order.
- summaries[].to: text or null. The last message that it covers.
- summaries[].content: text. Its words.
- summaries[].tokens: integer. About how many tokens it has.
- summaries[].model: text or null. What wrote it first.
- summaries[].by: text or null. Who wrote it instead; null: nobody.
- summaries[].at: timestamp or null. When.
- superseded: integer. How many messages it has that are on no branch now; no read gives them, and they are not put back.
Errors:
- PT400: no p_user_id is given, and the caller''s token names nobody.';

-- Restores the title, the metadata and the times of a conversation. The caller holds its row lock.
create or replace function memory_private.restore_details(
  p_conversation memory.conversations, p_edits jsonb, p_topics text[], out restored integer, out refused integer
)
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_user    constant text := p_conversation.user_id;
  v_id      constant uuid := p_conversation.id;
  v_title   text;
  v_meta    jsonb;
  v_began   timestamptz;
  v_changed timestamptz;
begin
  refused := 0;
  -- Existing values stay.
  v_title := nullif(left(memory_private.one_line(p_edits ->> 'title'), 200), '');
  if p_conversation.title is not null then
    v_title := null;
  elsif memory_private.mentions(v_title, p_topics, p_conversation.language) then
    v_title := null;
    refused := 1;
  end if;
  if p_conversation.metadata is null and jsonb_typeof(p_edits -> 'metadata') = 'object' then
    v_meta := nullif(p_edits -> 'metadata', '{}');
  end if;
  restored := num_nonnulls(v_title, v_meta);
  -- The conversation keeps its position in lists, unless it was continued since.
  if p_edits ->> 'updated_at' is not null then
    v_began := memory_private.parse_past_time(p_edits ->> 'created_at');
    select greatest(memory_private.parse_past_time(p_edits ->> 'updated_at'), max(t.created_at)) into v_changed
      from (select m.created_at from memory.conversation_messages m
            where m.user_id = v_user and m.conversation_id = v_id
            order by m.user_id desc, m.conversation_id desc, m.created_at desc limit 1) t;
  end if;
  -- One statement, because each update checks what is due.
  if num_nonnulls(v_title, v_meta, v_changed) > 0 then
    update memory.conversations c
       set title = coalesce(v_title, c.title), metadata = coalesce(v_meta, c.metadata),
           created_at = least(c.created_at, v_began), updated_at = least(c.updated_at, v_changed)
     where c.user_id = v_user and c.id = v_id;
  end if;
end
$function$;

-- Restores a person's summary of a board. The caller holds the row locks of the conversation and the board.
create or replace function memory_private.restore_board_summary(
  p_conversation memory.conversations, p_summary jsonb, p_topics text[], p_version bigint,
  p_place integer, -- of the last change
  out restored integer, out refused integer
)
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_user constant text := p_conversation.user_id;
  v_id   constant uuid := p_conversation.id;
begin
  restored := 0;
  refused := 0;
  if memory_private.mentions(p_summary ->> 'text', p_topics, p_conversation.language) then
    refused := 1;
  else
    update memory.conversation_summary_boards b
       set edited_summary = p_summary ->> 'text', edited_by = p_summary ->> 'by',
           editor_kind = memory_private.author_kind(p_summary ->> 'editor_kind'),
           edited_at = memory_private.parse_past_time(p_summary ->> 'at')
     where b.user_id = v_user and b.conversation_id = v_id and b.edited_summary is null;
    if found then
      restored := 1;
      insert into memory.conversation_board_changes (
        user_id, conversation_id, version, place, action, changed_by, changed_at)
      values (v_user, v_id, p_version, p_place + 1, 'summary', p_summary ->> 'by',
              memory_private.parse_past_time(p_summary ->> 'at'));
    end if;
  end if;
end
$function$;

-- Restores items that people wrote, pinned or deleted. The caller holds the row locks of the conversation and the
-- board.
create or replace function memory_private.restore_board_items(
  p_conversation memory.conversations, p_edits jsonb, p_topics text[], p_version bigint,
  p_place integer, -- of the last change
  out restored integer, out refused integer
)
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_user   constant text := p_conversation.user_id;
  v_id     constant uuid := p_conversation.id;
  v_each   jsonb;
  v_ids    text[];
  v_places bigint[];
  v_found  uuid;
  v_old    memory.conversation_board_items;
begin
  restored := 0;
  refused := 0;
  for v_each in
    select e || '{"gone": true}' from jsonb_array_elements(coalesce(p_edits -> 'deleted', '[]')) e
    union all select e || '{"gone": false}' from jsonb_array_elements(coalesce(p_edits -> 'items', '[]')) e
  loop
    if not (v_each ->> 'gone')::boolean
       and memory_private.mentions(
         concat_ws(' ', v_each ->> 'text', v_each ->> 'quote'), p_topics, p_conversation.language)
    then
      refused := refused + 1;
      continue;
    end if;
    if not coalesce(v_each ->> 'state' = any (memory_private.item_states(v_each ->> 'kind')), false)
       or not (v_each ->> 'gone')::boolean and coalesce(v_each ->> 'text', '') = ''
    then
      raise exception 'an item has no words, or a state that its kind does not have'
        using errcode = 'PT400', hint = 'pass the edits of an export as they are';
    end if;
    select array_agg(m.message_id order by e.place), array_agg(m.sequence order by e.place) into v_ids, v_places
    from jsonb_array_elements_text(coalesce(v_each -> 'message_ids', '[]')) with ordinality e (id, place)
    join memory.conversation_messages m
      on m.user_id = v_user and m.conversation_id = v_id and m.message_id = e.id;
    v_found := null;
    select i.* into v_old from memory.conversation_board_items i
     where i.user_id = v_user and i.conversation_id = v_id and i.kind = v_each ->> 'kind' and i.superseded_at is null
       and i.digest = case when (v_each ->> 'gone')::boolean then v_each ->> 'digest'
                           else memory_private.item_digest(v_each ->> 'text') end;
    -- Items that people wrote or deleted here meanwhile stay; a model's item is replaced.
    insert into memory.conversation_board_items as i (
      user_id, conversation_id, kind, type, text, digest, state, importance, quote, message_ids, sequences,
      first_seen_at, last_seen_at, pinned, author, author_kind, edited_by, editor_kind, edited_at, deleted_at, quote_at,
      quote_length, contributed_by, said_at)
    values (
      v_user, v_id, v_each ->> 'kind', v_each ->> 'type', coalesce(v_each ->> 'text', ''),
      case when (v_each ->> 'gone')::boolean then v_each ->> 'digest'
           else memory_private.item_digest(v_each ->> 'text') end,
      v_each ->> 'state', coalesce((v_each ->> 'importance')::real, 0.7), v_each ->> 'quote', coalesce(v_ids, '{}'),
      coalesce(v_places, '{}'), memory_private.parse_past_time(coalesce(v_each ->> 'first_seen_at', v_each ->> 'at')),
      memory_private.parse_past_time(coalesce(v_each ->> 'last_seen_at', v_each ->> 'at')),
      coalesce((v_each ->> 'pinned')::boolean, false), coalesce(v_each ->> 'author', v_each ->> 'by'),
      memory_private.author_kind(v_each ->> 'author_kind'), v_each ->> 'by',
      case when v_each ->> 'by' is not null then memory_private.author_kind(v_each ->> 'editor_kind') end,
      case when v_each ->> 'at' is not null then memory_private.parse_past_time(v_each ->> 'at') end,
      case when (v_each ->> 'gone')::boolean then memory_private.parse_past_time(v_each ->> 'at') end,
      (v_each ->> 'quote_at')::integer, (v_each ->> 'quote_length')::integer,
      case when starts_with(v_user, 'space:') then v_each ->> 'contributed_by' end,
      case when v_each ->> 'said_at' is not null then memory_private.parse_past_time(v_each ->> 'said_at') end)
    on conflict (user_id, conversation_id, kind, digest) where superseded_at is null do update
       set state = excluded.state, text = excluded.text, pinned = excluded.pinned, edited_by = excluded.edited_by,
           editor_kind = excluded.editor_kind, edited_at = excluded.edited_at, deleted_at = excluded.deleted_at, quote_at = excluded.quote_at,
           quote = excluded.quote, quote_length = excluded.quote_length, version = i.version + 1
     where i.edited_at is null and not i.pinned and i.deleted_at is null
       and (excluded.edited_at is not null or excluded.pinned or excluded.deleted_at is not null)
    returning i.id into v_found;
    continue when v_found is null;
    restored := restored + 1;
    insert into memory.conversation_board_changes (
      user_id, conversation_id, version, place, item_id, action, kept, changed_by, changed_at)
    values (
      v_user, v_id, p_version, p_place + restored, v_found,
      case when (v_each ->> 'gone')::boolean then 'delete' when v_each ->> 'by' is not null then 'edit'
           when (v_each ->> 'pinned')::boolean then 'pin' else 'add' end,
      case when v_old.id is not null and not (v_each ->> 'gone')::boolean then memory_private.wordless_item(v_old) end,
      coalesce(v_each ->> 'by', v_each ->> 'author'),
      memory_private.parse_past_time(coalesce(v_each ->> 'at', v_each ->> 'last_seen_at')));
  end loop;
end
$function$;

-- Restores what people set on a board. The caller holds the conversation's row lock.
create or replace function memory_private.restore_board(
  p_conversation memory.conversations, p_edits jsonb, p_topics text[],
  p_place integer, -- from which its changes are counted
  out restored integer, out refused integer
)
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_user    constant text := p_conversation.user_id;
  v_id      constant uuid := p_conversation.id;
  v_most    constant integer := (memory_private.current_limits()).board_items;
  v_version bigint;
  v_items   record;
  v_now     timestamptz;
begin
  restored := 0;
  refused := 0;
  insert into memory.conversation_summary_boards (user_id, conversation_id)
  select v_user, v_id
  where jsonb_typeof(p_edits -> 'summary') = 'object' or p_edits -> 'items' <> '[]' or p_edits -> 'deleted' <> '[]'
  on conflict (user_id, conversation_id) do nothing;
  select b.version + 1 into v_version from memory.conversation_summary_boards b
   where b.user_id = v_user and b.conversation_id = v_id
     for no key update;
  if jsonb_typeof(p_edits -> 'summary') = 'object' then
    select s.restored, s.refused into restored, refused
      from memory_private.restore_board_summary(
        p_conversation, p_edits -> 'summary', p_topics, v_version, p_place) s;
  end if;
  v_items := memory_private.restore_board_items(p_conversation, p_edits, p_topics, v_version, p_place + restored);
  restored := restored + v_items.restored;
  refused := refused + v_items.refused;
  if v_version is not null and (
    select count(*) from memory.conversation_board_items i where i.user_id = v_user and i.conversation_id = v_id)
    > v_most
  then
    raise exception 'the board is full' using errcode = 'PT413',
      hint = 'restore fewer items, or raise board_items in memory_private.limits';
  end if;
  if restored > 0 and v_version is not null then
    perform memory_private.note_board_version(v_user, v_id, false);
    v_now := clock_timestamp();
    update memory.conversation_summary_boards b set version = v_version, updated_at = v_now
     where b.user_id = v_user and b.conversation_id = v_id;
  end if;
end
$function$;

-- Restores people's ratings of chunks, and returns how many are new. The caller holds the conversation's row lock.
create or replace function memory_private.restore_ratings(p_user_id text, p_conversation_id uuid, p_ratings jsonb)
returns integer
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_each     jsonb;
  v_from     bigint;
  v_to       bigint;
  v_restored integer := 0;
begin
  for v_each in select * from jsonb_array_elements(p_ratings) loop
    select m.sequence into v_from from memory.conversation_messages m
     where m.user_id = p_user_id and m.conversation_id = p_conversation_id and m.message_id = v_each ->> 'from';
    select m.sequence into v_to from memory.conversation_messages m
     where m.user_id = p_user_id and m.conversation_id = p_conversation_id and m.message_id = v_each ->> 'to';
    continue when v_from is null or v_to is null;
    -- Values and no query: for a query Citus counts all rows, not only the new ones.
    insert into memory.chunk_ratings (
      user_id, conversation_id, from_sequence, to_sequence, part, importance, rated_by, rated_at)
    values (
      p_user_id, p_conversation_id, v_from, v_to, (v_each ->> 'part')::integer, (v_each ->> 'importance')::real,
      v_each ->> 'by', memory_private.parse_past_time(v_each ->> 'at'))
    on conflict (user_id, conversation_id, from_sequence, to_sequence, part) do nothing;
    v_restored := v_restored + found::integer;
  end loop;
  return v_restored;
end
$function$;

-- Restores summaries up to the last one that a person wrote. The caller holds the conversation's row lock.
create or replace function memory_private.restore_summaries(
  p_conversation memory.conversations, p_summaries jsonb, out restored integer, out refused integer
)
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_user   constant text := p_conversation.user_id;
  v_c      memory.conversations;
  v_each   jsonb;
  v_number integer := 0;
  v_to     bigint;
  v_read   json; -- the ids of messages
  v_result jsonb;
begin
  restored := 0;
  refused := 0;
  -- Each summary continues the one before it. The first that cannot be restored ends the loop, and the rest is made
  -- again.
  for v_each in select * from jsonb_array_elements(p_summaries) loop
    v_number := v_number + 1;
    select c.* into v_c from memory.conversations c where c.user_id = v_user and c.id = p_conversation.id;
    continue when exists (
      select from memory.conversation_summaries s
      where s.user_id = v_user and s.conversation_id = v_c.id and s.level = 0 and s.number = v_number);
    select m.sequence into v_to from memory.conversation_messages m
     where m.user_id = v_user and m.conversation_id = v_c.id and m.message_id = v_each ->> 'to';
    if v_to is null or v_to <= v_c.summarized_through then
      refused := refused + jsonb_array_length(p_summaries) - v_number + 1;
      exit;
    end if;
    select json_agg(m.message_id order by m.sequence) into v_read from memory.conversation_messages m
     where m.user_id = v_user and m.conversation_id = v_c.id and m.sequence > v_c.summarized_through
       and m.sequence <= v_to;
    v_result := public.memory_commit_summary(
      v_c.thread_id, v_c.id, v_c.summarized_through, v_c.revision, v_to, v_read,
      v_each ->> 'content', greatest(1, (v_each ->> 'tokens')::integer), v_each ->> 'model', false, v_user,
      v_c.agent_id);
    if not (v_result ->> 'committed')::boolean then
      refused := refused + jsonb_array_length(p_summaries) - v_number + 1;
      exit;
    end if;
    restored := restored + 1;
    update memory.conversation_summaries s
       set edited_by = v_each ->> 'by', edited_at = memory_private.parse_past_time(v_each ->> 'at')
     where s.user_id = v_user and s.conversation_id = v_c.id and s.level = 0 and s.number = v_number
       and v_each ->> 'by' is not null;
  end loop;
end
$function$;

create function public.memory_restore(
  p_edits     json,
  p_thread_id text default null, -- null: opt-outs of the user, in all conversations
  p_user_id   text default null,
  p_agent_id  text default 'default'
) returns jsonb
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_user     text := memory_private.resolve_writer(p_user_id);
  v_edits    jsonb := coalesce(p_edits, '{}')::jsonb;
  v_c        memory.conversations;
  v_topics   text[];
  v_each     jsonb;
  v_part     record;
  v_restored integer := 0;
  v_refused  integer := 0;
  v_result   jsonb;
begin
  perform memory_private.check_limits(p_edits);
  if jsonb_typeof(v_edits) <> 'object' or exists (
    select from unnest(array['opt_outs', 'items', 'deleted', 'ratings', 'summaries', 'profile', 'consents', 'topics']) k
    where jsonb_typeof(coalesce(v_edits -> k, '[]')) <> 'array')
  then
    raise exception 'that is no document of edits' using errcode = 'PT400', hint = 'pass the edits of an export as they are';
  end if;
  perform memory_private.lock_opt_outs(v_user, v_edits -> 'opt_outs' <> '[]' or v_edits -> 'consents' <> '[]');
  for v_each in select * from jsonb_array_elements(coalesce(v_edits -> 'opt_outs', '[]')) loop
    v_result := public.memory_opt_out(v_each ->> 'by', p_thread_id, v_each ->> 'topic', v_user, p_agent_id);
    continue when not (v_result ->> 'is_new')::boolean;
    v_restored := v_restored + 1;
    update memory.opt_outs o set created_at = memory_private.parse_past_time(v_each ->> 'at')
     where o.user_id = v_user and o.created_by = v_each ->> 'by'
       and o.topic is not distinct from v_each ->> 'topic'
       and o.conversation_id is not distinct from (
         select c.id from memory.conversations c
         where c.user_id = v_user and c.agent_id = p_agent_id and c.thread_id = p_thread_id);
  end loop;
  if p_thread_id is null then
    if v_edits ?| '{profile,consents}' then
      v_part := memory_private.restore_profile(v_user, p_edits);
      v_restored := v_restored + v_part.restored;
      v_refused := v_part.refused;
    end if;
    if v_edits ? 'topics' then
      v_part := memory_private.restore_topics(v_user, p_edits -> 'topics');
      v_restored := v_restored + v_part.restored;
      v_refused := v_refused + v_part.refused;
    end if;
    return jsonb_build_object('restored', v_restored, 'refused', v_refused);
  end if;
  -- The conversation is created if it has no messages.
  for v_try in 1..2 loop
    select c.* into v_c from memory.conversations c
     where c.user_id = v_user and c.agent_id = p_agent_id and c.thread_id = p_thread_id
       for no key update;
    exit when found;
    insert into memory.conversations (user_id, agent_id, thread_id)
    values (v_user, p_agent_id, p_thread_id)
    on conflict (user_id, agent_id, thread_id) do nothing;
  end loop;
  if v_c.id is null then
    raise exception 'the conversation was deleted while it was written to' using errcode = '40001';
  end if;
  v_topics := memory_private.opted_out_topics(v_user, v_c.id);

  v_part := memory_private.restore_details(v_c, v_edits, v_topics);
  v_restored := v_restored + v_part.restored;
  v_refused := v_refused + v_part.refused;
  if not v_edits ?| '{summary,items,deleted,ratings,summaries}' then
    return jsonb_build_object('restored', v_restored, 'refused', v_refused);
  end if;
  -- People's edits of a board stay in an opted-out conversation. Summaries do not: they stand for its messages.
  if v_c.opted_out_at is not null then
    v_refused := v_refused + jsonb_array_length(coalesce(v_edits -> 'summaries', '[]'));
    v_edits := v_edits - 'summaries';
  end if;
  v_part := memory_private.restore_board(v_c, v_edits, v_topics, v_restored);
  v_restored := v_restored + v_part.restored;
  v_refused := v_refused + v_part.refused;
  v_restored := v_restored + memory_private.restore_ratings(v_user, v_c.id, coalesce(v_edits -> 'ratings', '[]'));
  v_part := memory_private.restore_summaries(v_c, coalesce(v_edits -> 'summaries', '[]'));
  v_restored := v_restored + v_part.restored;
  v_refused := v_refused + v_part.refused;
  return jsonb_build_object('restored', v_restored, 'refused', v_refused);
exception when invalid_text_representation or numeric_value_out_of_range or invalid_parameter_value then
  raise exception 'a value of these edits cannot be read' using errcode = 'PT400', hint = 'pass the edits of an export as they are';
end
$function$;
comment on function public.memory_restore is
  'langchain-supabase-memory: Put back what people have set of a conversation, as memory_edits gave it, possibly
  elsewhere. What was set here stays, so a repeat changes nothing. Opt-outs come first and hold for the rest. It begins
  the conversation where there is none.

p_edits: what to put back; what is left out, or null, is left as it is.
- title: text or null. What a person calls the conversation.
- metadata: object or null. What the application keeps beside it.
- created_at: timestamp or null. When it was begun.
- updated_at: timestamp or null. When it was last changed. One that went on since stays where it is.
- opt_outs: object[] or null. What is not to be remembered.
- summary: object or null. What a person wrote as the summary of the board.
- items: object[] or null. Items that a person wrote, edited or pinned.
- deleted: object[] or null. Items that a person deleted.
- ratings: object[] or null. How much chunks matter.
- summaries: object[] or null. Summaries up to the last one that a person wrote.
- profile: object[] or null. Without p_thread_id: items as memory_profile has them, the deleted included. They stand by the
  messages that say so here, too, or by a person''s word.
- consents: object[] or null. Without p_thread_id: as memory_consents has them.
- topics: object[] or null. Without p_thread_id: what a person made of topics, each with id, words, name, named_by, hidden and
  merged_into, as memory_topics has them with p_parts. One is known here by its id or its words.
p_thread_id: the thread of the conversation; null: opt_outs in all conversations of the user, profile, consents and topics,
  and nothing else.
p_user_id: the owner; null: the subject of the caller''s token.
p_agent_id: the agent of the conversation.
Returns: object.
- restored: integer. How many of them were put back.
- refused: integer. How many were not: they mention a topic that is not to be remembered, the conversation is not to be
  remembered, or the messages of a summary are not there.
Errors:
- PT400: p_edits is no such document, a time or a number in it cannot be read, or a state is none of its kind; or no
  p_user_id is given, and the caller''s token names nobody.
- 40001: the conversation was forgotten at the same time. Call again.
- PT413: it is more than one call may bring, the board is full, or the user has as many opt-outs as are allowed.
- 23514: a text is too long; the name of the constraint says which.';

create function public.memory_export(
  p_conversations json,
  p_user_id       text default null,
  p_columns       json default '["payload"]',
  p_retention     json default null
) returns json
language plpgsql stable security invoker set search_path = ''
as $function$
declare
  v_user  text := memory_private.resolve_owner(p_user_id);
  v_most  integer := (memory_private.current_limits()).answer_bytes / 2;
  v_each  json;
  v_edits json;
  v_bytes bigint := 0;
  v_done  json[] := '{}';
begin
  perform memory_private.check_limits(p_conversations);
  for v_each in select e from json_array_elements(p_conversations) e loop
    exit when v_bytes > v_most;
    v_edits := public.memory_edits(v_each ->> 'thread_id', v_user, coalesce(v_each ->> 'agent_id', 'default'), p_retention);
    v_each := json_build_object('edits', v_edits, 'page', case when v_edits is not null then public.memory_read(
      v_each ->> 'thread_id', v_user, coalesce(v_each ->> 'agent_id', 'default'), p_from => 0, p_columns => p_columns,
      p_retention => p_retention) end);
    v_bytes := v_bytes + octet_length(v_each::text);
    v_done := v_done || v_each;
  end loop;
  return array_to_json(v_done);
exception when invalid_parameter_value then
  raise exception 'conversations are a list' using errcode = 'PT400', hint = 'pass [{"thread_id": "t"}]';
end
$function$;
comment on function public.memory_export is
  'langchain-supabase-memory: Read several conversations in one call, to take them along: what people have set of each,
  and the first page of its messages. Nothing is written.

p_conversations: which, a list of objects.
- thread_id: text. The thread of the conversation.
- agent_id: text or null. Its agent; null: default.
p_user_id: the owner; null: the subject of the caller''s token.
p_columns: what is read of each message, as in memory_read.
p_retention: what is kept, as in memory_append; null: everything. What is beyond it is left out.
Returns: object[]. The conversations in the order in which they were named. Where they are large, only the first of
  them: ask for the others again.
- [].edits: object as memory_edits or null. What people have set of it; null: there is no such conversation.
- [].page: object as memory_read or null. Its messages; where there are more, memory_read gives the rest. Null: there is
  no such conversation.
Errors:
- PT400: p_conversations is no list; or no p_user_id is given, and the caller''s token names nobody.
- PT413: p_conversations is more than one call may bring.';

create function public.memory_import(
  p_conversations json,
  p_user_id       text default null,
  p_retention     json default null -- what is kept, see memory_private.delete_expired
) returns jsonb
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_user   text := memory_private.resolve_writer(p_user_id);
  v_each   json;
  v_thread text;
  v_agent  text;
  v_before jsonb;
  v_stored jsonb;
  v_after  jsonb;
  v_done   jsonb[] := '{}';
begin
  perform memory_private.check_limits(p_conversations);
  for v_each in select e from json_array_elements(p_conversations) e loop
    v_thread := v_each ->> 'thread_id';
    v_agent := coalesce(v_each ->> 'agent_id', 'default');
    v_before := null;
    v_stored := null;
    v_after := null;
    begin
      if v_thread is null then
        raise exception 'a conversation has no thread' using errcode = 'PT400';
      end if;
      if json_typeof(v_each -> 'before') = 'object' then
        v_before := public.memory_restore(v_each -> 'before', v_thread, v_user, v_agent);
      end if;
      if json_typeof(v_each -> 'messages') = 'array' then
        v_stored := public.memory_append(v_thread, v_each -> 'messages', v_user, v_agent, false, p_retention);
      end if;
      if json_typeof(v_each -> 'edits') = 'object' then
        v_after := public.memory_restore(v_each -> 'edits', v_thread, v_user, v_agent);
      end if;
      v_done := v_done || jsonb_build_object(
        'appended', coalesce((v_stored ->> 'appended')::integer, 0),
        'different', coalesce(v_stored -> 'different', '[]'),
        'expired', coalesce((v_stored ->> 'expired')::bigint, 0),
        'restored', coalesce((v_before ->> 'restored')::integer, 0) + coalesce((v_after ->> 'restored')::integer, 0),
        'refused', coalesce((v_before ->> 'refused')::integer, 0) + coalesce((v_after ->> 'refused')::integer, 0));
    exception
    when sqlstate 'PT409' or sqlstate 'PT400' or sqlstate 'PT413' or data_exception or integrity_constraint_violation then
      v_done := v_done || jsonb_build_object('failed', sqlstate);
    end;
  end loop;
  return to_jsonb(v_done);
exception when invalid_parameter_value then
  raise exception 'conversations are a list' using errcode = 'PT400', hint = 'pass [{"thread_id": "t", "messages": []}]';
end
$function$;
comment on function public.memory_import is
  'langchain-supabase-memory: Store several conversations from elsewhere in one call, each wholly or not at all. What is
  there already is never replaced, so a repeat changes nothing. One that is refused keeps none of the others.

p_conversations: a list of objects; up to 50 of them are of no burden to others.
- thread_id: text. The thread of the conversation.
- agent_id: text or null. Its agent; null: default.
- before: object or null. What memory_restore puts back before the messages are stored: opt-outs.
- messages: object[] or null. The messages, as memory_append takes them.
- edits: object or null. What memory_restore puts back after they are stored.
p_user_id: the owner; null: the subject of the caller''s token.
p_retention: what is kept, as in memory_append. What is beyond it is removed. Null: nothing is removed.
Returns: object[]. What became of each, in the order in which they were passed.
- [].appended: integer. How many messages are new. Not with failed.
- [].different: text[]. The ids of those that are there with another payload, which stays. Not with failed.
- [].expired: integer. How many messages p_retention removed. Not with failed.
- [].restored: integer. How much of what people set was put back. Not with failed.
- [].refused: integer. How much was not, as memory_restore says. Not with failed.
- [].failed: text. Only of one that was refused, of which nothing is stored: the SQLSTATE. memory_append and
  memory_restore say more.
Errors:
- PT400: p_conversations is no list; or no p_user_id is given, and the caller''s token names nobody.
- PT413: p_conversations is more than one call may bring.
- 23514: only as failed: a check refuses something of the conversation.
- PT403: in a space, who calls is no server.
- 40001: a conversation was forgotten at the same time. Call again.';
