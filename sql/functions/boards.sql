-- Boards: what is to be read into one next, the commit, what a person does with it, and what an edit takes back.
-- How its queries are held to their indexes: sql/README.md.

-- Two texts with one digest are the same item: case, spaces, quotation marks and punctuation at the end of a
-- sentence do not count. The characters are written as code points, because a class of letters depends on the
-- database's locale.
create or replace function memory_private.item_digest(p_text text) returns text
language sql immutable security invoker set search_path = ''
as $function$
  select md5(coalesce(nullif(btrim(regexp_replace(regexp_replace(
    lower(p_text), '["''\u2018-\u201f\u00ab\u00bb\u300c-\u300f]+', '', 'g'),
    '[.,;:!?\u2026\u3001\u3002\uff01\uff0c\uff1a\uff1b\uff1f]*([\s\u00a0\u3000]+|$)', ' ', 'g')), ''), p_text))
$function$;

-- Returns the states that an item of a kind may have. Where there are more than one, the item is open first and can
-- be closed.
create or replace function memory_private.item_states(p_kind text) returns text[]
language sql immutable security invoker set search_path = ''
as $function$
  select case p_kind {{item_states_by_kind}} else array['current'] end
$function$;

-- Says whether an item of a kind is a name. A name also stands in sentences about other things.
create or replace function memory_private.is_name_kind(p_kind text) returns boolean
language sql immutable security invoker set search_path = ''
as $function$
  select p_kind in ({{item_names}})
$function$;

-- Returns an item without its words, as its history keeps it.
create or replace function memory_private.wordless_item(p_item memory.conversation_board_items) returns jsonb
language sql immutable security invoker set search_path = ''
as $function$
  select jsonb_build_object(
    'type', p_item.type, 'state', p_item.state, 'importance', p_item.importance, 'sequences', p_item.sequences,
    'first_seen_at', p_item.first_seen_at, 'last_seen_at', p_item.last_seen_at, 'version', p_item.version,
    'superseded_by', p_item.superseded_by, 'superseded_at', p_item.superseded_at, 'pinned', p_item.pinned,
    'author', p_item.author, 'author_kind', p_item.author_kind, 'edited_by', p_item.edited_by,
    'editor_kind', p_item.editor_kind, 'edited_at', p_item.edited_at)
$function$;

-- Notes that a board gets its next version, before it does. The caller holds the conversation's row lock.
create or replace function memory_private.note_board_version(
  p_user_id text, p_conversation_id uuid,
  p_rewrites boolean -- whether the summary or the notes are written anew
) returns void
language plpgsql volatile security invoker set search_path = ''
as $function$
begin
  insert into memory.conversation_board_changes (
    user_id, conversation_id, version, place, action, changed_by, kept)
  select p_user_id, p_conversation_id, b.version + 1, 0, case when p_rewrites then 'revise' else 'change' end, 'memory',
         jsonb_build_object(
           'through_sequence', b.through_sequence, 'tokens', b.tokens, 'quality', b.quality, 'model', b.model,
           'language', b.language, 'updated_at', b.updated_at)
  from memory.conversation_summary_boards b
  where b.user_id = p_user_id and b.conversation_id = p_conversation_id;
end
$function$;

-- Undoes what the board took from a message that was changed or deleted. An item whose first evidence it is goes,
-- with its history. Other items lose it as evidence, and the state that it gave them. An edit keeps what a person
-- wrote. The caller holds the conversation's row lock.
create or replace function memory_private.delete_board_evidence(
  p_user_id text, p_conversation_id uuid, p_sequence bigint, p_forgotten text
) returns void
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_gone   uuid[];
  v_freed  uuid[];
  v_item   record;
  v_before text;
  v_change record;
  v_next   record;
begin
  v_gone := array(
    select i.id from memory.conversation_board_items i
    where i.user_id = p_user_id and i.conversation_id = p_conversation_id
      and (p_forgotten is null and i.sequences[1] = p_sequence and i.edited_at is null
           or i.message_ids[1] = p_forgotten));
  -- Items that they superseded are superseded by what supersedes them now. Without such an item they are current again,
  -- unless the same was added since.
  for v_step in 1..100 loop
    update memory.conversation_board_items i
       set superseded_by = o.superseded_by, superseded_at = o.superseded_at
      from memory.conversation_board_items o
     where i.user_id = p_user_id and i.conversation_id = p_conversation_id and i.superseded_by = any (v_gone)
       and o.user_id = i.user_id and o.conversation_id = i.conversation_id and o.id = i.superseded_by
       and o.superseded_at is not null;
    exit when not found;
  end loop;
  v_freed := array(
    select i.id from memory.conversation_board_items i
    where i.user_id = p_user_id and i.conversation_id = p_conversation_id and i.superseded_by = any (v_gone)
      and i.id <> all (v_gone)
    order by i.last_seen_at desc, i.id);
  delete from memory.conversation_board_items i
   where i.user_id = p_user_id and i.conversation_id = p_conversation_id and i.id = any (v_gone);
  for v_item in
    select i.id, i.kind, i.digest from unnest(v_freed) with ordinality as f (id, place)
    join memory.conversation_board_items i
      on i.user_id = p_user_id and i.conversation_id = p_conversation_id and i.id = f.id
    order by f.place
  loop
    update memory.conversation_board_items i
       set superseded_by = null, version = i.version + 1,
           superseded_at = case when exists (
             select from memory.conversation_board_items o
             where o.user_id = p_user_id and o.conversation_id = p_conversation_id and o.kind = v_item.kind
               and o.digest = v_item.digest and o.superseded_at is null) then i.superseded_at end
     where i.user_id = p_user_id and i.conversation_id = p_conversation_id and i.id = v_item.id;
  end loop;
  for v_item in
    select i.id, i.state, i.sequences, i.edited_at is not null as edited,
           coalesce(array_position(i.message_ids, p_forgotten), array_position(i.sequences, p_sequence)) as place
    from memory.conversation_board_items i
    where i.user_id = p_user_id and i.conversation_id = p_conversation_id
      and (p_sequence = any (i.sequences) and p_forgotten is null or p_forgotten = any (i.message_ids))
  loop
    -- Undo the state that this message gave. If a later message gave one, that state stays, and its state before
    -- becomes the one before this message.
    v_before := null;
    for v_change in
      select h.version, h.place, h.before from memory.conversation_board_changes h
      where h.user_id = p_user_id and h.conversation_id = p_conversation_id and h.item_id = v_item.id
        and h.sequence = v_item.sequences[v_item.place]
      order by h.version desc, h.place desc
    loop
      select h.version, h.place into v_next from memory.conversation_board_changes h
       where h.user_id = p_user_id and h.conversation_id = p_conversation_id and h.item_id = v_item.id
         and h.sequence is not null and (h.version, h.place) > (v_change.version, v_change.place)
       order by h.version, h.place limit 1;
      if found then
        update memory.conversation_board_changes h set before = v_change.before
         where h.user_id = p_user_id and h.conversation_id = p_conversation_id and h.version = v_next.version
           and h.place = v_next.place;
        update memory.conversation_board_changes h set kept = h.kept || jsonb_build_object('state', v_change.before)
         where h.user_id = p_user_id and h.conversation_id = p_conversation_id and h.item_id = v_item.id
           and (h.version, h.place) > (v_change.version, v_change.place)
           and (h.version, h.place) <= (v_next.version, v_next.place) and h.kept is not null;
      else
        v_before := v_change.before;
      end if;
      delete from memory.conversation_board_changes h
       where h.user_id = p_user_id and h.conversation_id = p_conversation_id and h.version = v_change.version
         and h.place = v_change.place;
    end loop;
    update memory.conversation_board_items i
       set state = case when v_item.edited then i.state else coalesce(v_before, i.state) end,
           quote = case when v_item.place > 1 then i.quote end,
           message_ids = i.message_ids[:v_item.place - 1] || i.message_ids[v_item.place + 1:],
           sequences = i.sequences[:v_item.place - 1] || i.sequences[v_item.place + 1:]
     where i.user_id = p_user_id and i.conversation_id = p_conversation_id and i.id = v_item.id;
  end loop;
  perform memory_private.note_contradictions(p_user_id, p_conversation_id);
end
$function$;

-- Does the same for the whole board: its summary begins again after the newest segment that lies before the message.
create or replace function memory_private.invalidate_board(
  p_user_id text, p_conversation_id uuid, p_sequence bigint, p_forgotten text
) returns void
language plpgsql volatile security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
declare
  v_through bigint;
  v_segment memory.conversation_summaries;
  v_now     constant timestamptz := clock_timestamp();
begin
  select b.through_sequence into v_through from memory.conversation_summary_boards b
   where b.user_id = p_user_id and b.conversation_id = p_conversation_id;
  if v_through is null then
    return;
  end if;
  perform memory_private.delete_board_evidence(p_user_id, p_conversation_id, p_sequence, p_forgotten);
  if p_forgotten is not null then
    -- It is unknown which messages a person's own summary, or the summaries before it, were made from.
    update memory.conversation_summary_boards b
       set edited_summary = null, edited_by = null, editor_kind = null, edited_at = null
     where b.user_id = p_user_id and b.conversation_id = p_conversation_id and b.edited_summary is not null;
    update memory.conversation_board_changes h
       set before = null
     where h.user_id = p_user_id and h.conversation_id = p_conversation_id and h.item_id is null
       and h.before is not null;
  end if;
  if v_through < p_sequence then
    return;
  end if;
  select s.* into v_segment from memory.conversation_summaries s
   where s.user_id = p_user_id and s.conversation_id = p_conversation_id and s.level = 0
     and s.to_sequence < p_sequence and s.to_sequence <= v_through
   order by s.number desc limit 1;
  perform memory_private.note_board_version(p_user_id, p_conversation_id, true);
  update memory.conversation_summary_boards b
     set summary = coalesce(v_segment.content, ''), context_notes = '', title = null, quality = null,
         tokens = coalesce(v_segment.tokens, 0), through_sequence = coalesce(v_segment.to_sequence, -1),
         version = b.version + 1, updated_at = v_now
   where b.user_id = p_user_id and b.conversation_id = p_conversation_id;
end
$function$;

-- Returns who said an item of a space: who contributed it, or who wrote its first message.
create or replace function memory_private.item_author_id(p_item memory.conversation_board_items) returns text
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_generic_plan
as $function$
begin
  return coalesce(p_item.contributed_by, (
    select m.author_id from memory.conversation_messages m
    where m.user_id = p_item.user_id and m.conversation_id = p_item.conversation_id
      and m.sequence = p_item.sequences[1]));
end
$function$;

-- Returns the items of a board as readers get them: pinned ones first, then those that were mentioned last.
create or replace function memory_private.board_items(
  p_user_id text, p_conversation_id uuid, p_history boolean, p_limit integer
) returns json
language plpgsql stable security invoker set search_path = ''
as $function$
declare
  v_labels constant jsonb := memory_private.person_labels(p_user_id); -- of people, in a space
begin
  return (
  select coalesce(json_agg(r), '[]')
  from (select i.id, i.kind, i.type, i.text, i.state, i.importance, i.quote, i.message_ids, i.sequences, i.first_seen_at,
               i.last_seen_at, i.version, i.superseded_by, i.superseded_at, i.pinned, i.author, i.author_kind,
               i.edited_by, i.editor_kind, i.edited_at, i.contributed_by, i.said_at,
               a.author_id, v_labels ->> a.author_id as author_name
        from memory.conversation_board_items i
        cross join lateral (
          select case when v_labels is not null then memory_private.item_author_id(i) end as author_id offset 0) a
        where i.user_id = p_user_id and i.conversation_id = p_conversation_id and i.deleted_at is null
          and (p_history or i.superseded_at is null)
        order by i.pinned desc, i.last_seen_at desc, i.importance desc, i.text, i.id
        limit p_limit) r);
end
$function$;

-- Returns the version that a board had at an instant, by the database's clock.
create or replace function memory_private.board_version_at(
  p_board memory.conversation_summary_boards, p_at timestamptz
) returns bigint
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
begin
  return coalesce((
    select h.version - 1 from memory.conversation_board_changes h
    where h.user_id = p_board.user_id and h.conversation_id = p_board.conversation_id and h.place = 0
      and h.changed_at > p_at
    order by h.changed_at, h.version
    limit 1), p_board.version);
end
$function$;

-- Returns the items that a board had at one of its versions, as they were then: an item's first change since has what
-- was there before. What a person has deleted since has no words any more, and is counted as gone.
create or replace function memory_private.board_items_at(
  p_user_id text, p_conversation_id uuid, p_version bigint, p_history boolean, p_limit integer,
  out items json, out listed bigint, out gone bigint
)
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set jit = off
as $function$
declare
  v_labels constant jsonb := memory_private.person_labels(p_user_id); -- of people, in a space
begin
  with found as materialized (
    select i as item, i.text, f.version is not null as is_changed, f.action, f.kept, w.before, w.version is not null as is_edited
    from memory.conversation_board_items i
    cross join lateral (
      select true as was_there from memory.conversation_board_changes h
      where h.user_id = p_user_id and h.conversation_id = p_conversation_id and h.item_id = i.id
        and h.version <= p_version
      limit 1) e
    left join lateral (
      select h.version, h.action, h.kept from memory.conversation_board_changes h
      where h.user_id = p_user_id and h.conversation_id = p_conversation_id and h.item_id = i.id
        and h.version > p_version
      order by h.version, h.place limit 1) f on true
    left join lateral (
      select h.version, h.before from memory.conversation_board_changes h
      where h.user_id = p_user_id and h.conversation_id = p_conversation_id and h.item_id = i.id
        and h.version > p_version and (h.kept ->> 'has_words')::boolean
      order by h.version, h.place limit 1) w on true
    where i.user_id = p_user_id and i.conversation_id = p_conversation_id),
  held as materialized (
    select jsonb_populate_record(t.item, coalesce(t.kept || (
             -- Evidence that is gone since is none any more.
             select jsonb_build_object(
                      'sequences', coalesce(jsonb_agg(e.sequence order by e.place), '[]'),
                      'message_ids', coalesce(jsonb_agg(e.id order by e.place), '[]'))
             from unnest((t.item).sequences, (t.item).message_ids) with ordinality e (sequence, id, place)
             where t.kept -> 'sequences' @> to_jsonb(e.sequence)), '{}')
             || jsonb_build_object('text', case when t.is_edited then t.before else t.text end, 'deleted_at', null)) as item,
           t.is_changed and (t.kept is null or t.is_edited and t.before is null) as is_gone
    from found t
    where case when not t.is_changed then (t.item).deleted_at is null
               when t.kept is null then t.action <> 'add' else true end)
  select coalesce((
           select json_agg(r)
           from (select (i.item).id, (i.item).kind, (i.item).type, (i.item).text, (i.item).state, (i.item).importance,
                        (i.item).quote, (i.item).message_ids, (i.item).sequences, (i.item).first_seen_at,
                        (i.item).last_seen_at, (i.item).version, (i.item).superseded_by, (i.item).superseded_at,
                        (i.item).pinned, (i.item).author, (i.item).author_kind, (i.item).edited_by,
                        (i.item).editor_kind, (i.item).edited_at, (i.item).contributed_by, (i.item).said_at,
                        a.author_id, v_labels ->> a.author_id as author_name
                 from held i
                 cross join lateral (
                   select case when v_labels is not null then memory_private.item_author_id(i.item) end as author_id
                   offset 0) a
                 where not i.is_gone and (p_history or (i.item).superseded_at is null)
                 order by (i.item).pinned desc, (i.item).last_seen_at desc, (i.item).importance desc, (i.item).text,
                          (i.item).id
                 limit p_limit) r), '[]'),
         count(*) filter (where not h.is_gone and (p_history or (h.item).superseded_at is null)),
         count(*) filter (where h.is_gone)
    into items, listed, gone
    from held h;
end
$function$;

-- Returns a board as it was at one of its versions, without its items: what has been written anew since is empty.
create or replace function memory_private.board_at(
  p_board memory.conversation_summary_boards, p_version bigint
) returns memory.conversation_summary_boards
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
declare
  v_next memory.conversation_board_changes;
begin
  if p_version >= p_board.version then
    return p_board;
  end if;
  if exists (
    select from memory.conversation_board_changes h
    where h.user_id = p_board.user_id and h.conversation_id = p_board.conversation_id and h.version > p_version
      and h.place = 0 and h.action = 'revise')
  then
    p_board.summary := '';
    p_board.context_notes := '';
    p_board.title := null;
  end if;
  select h.* into v_next from memory.conversation_board_changes h
   where h.user_id = p_board.user_id and h.conversation_id = p_board.conversation_id and h.version > p_version
     and h.place = 0
   order by h.version limit 1;
  p_board := jsonb_populate_record(p_board, coalesce(v_next.kept, '{}') || jsonb_build_object('version', p_version));
  select h.* into v_next from memory.conversation_board_changes h
   where h.user_id = p_board.user_id and h.conversation_id = p_board.conversation_id and h.version > p_version
     and h.item_id is null and h.action = 'summary'
   order by h.version, h.place limit 1;
  if found then
    p_board := jsonb_populate_record(p_board, coalesce(
      v_next.kept, '{"edited_by": null, "editor_kind": null, "edited_at": null}')
      || jsonb_build_object('edited_summary', v_next.before));
  end if;
  return p_board;
end
$function$;

-- Returns the words of messages that are evidence of items which a person deleted.
create or replace function memory_private.deleted_item_words(p_user_id text, p_conversation_id uuid)
returns table (sequence bigint, words text)
language plpgsql stable security invoker set search_path = ''
as $function$
begin
  return query
  select m.sequence, substr(m.text, i.quote_at, i.quote_length)
  from memory.conversation_board_items i
  join memory.conversation_messages m
    on m.user_id = p_user_id and m.conversation_id = p_conversation_id and m.sequence = i.sequences[1]
  where i.user_id = p_user_id and i.conversation_id = p_conversation_id and i.deleted_at is not null and i.quote_at > 0;
end
$function$;

create function public.memory_pending_board(
  p_thread_id  text,
  p_user_id    text    default null,
  p_agent_id   text    default 'default',
  p_characters bigint  default 24000, -- about as much is returned, but one message at least
  p_messages   integer default 200,
  p_items      integer default 200
) returns json
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_generic_plan
as $function$
declare
  v_user text := memory_private.resolve_owner(p_user_id);
  v_labels constant jsonb := memory_private.person_labels(v_user); -- of people, in a space
  v_c    memory.conversations;
  v_b    memory.conversation_summary_boards;
  v_rows json;
  v_last bigint;
  v_opted_out boolean;
  v_bytes bigint := (memory_private.current_limits()).answer_bytes;
begin
  select c.* into v_c from memory.conversations c
   where c.user_id = v_user and c.agent_id = p_agent_id and c.thread_id = p_thread_id;
  if not found then
    return null;
  end if;
  v_opted_out := v_c.opted_out_at is not null;
  select b.* into v_b from memory.conversation_summary_boards b
   where b.user_id = v_user and b.conversation_id = v_c.id;
  select json_agg(r order by r.sequence), max(r.sequence) into v_rows, v_last
  from (select t.sequence, t.message_id, t.payload, t.created_at, t.unreadable, v_labels ->> t.author_id as author_name
        from (select m.sequence, m.message_id, m.payload, m.created_at, m.unreadable, m.author_id, m.characters, m.bytes,
                     sum(m.characters) over w as characters_through, sum(m.bytes) over w as size
              from memory.conversation_messages m
              where m.user_id = v_user and m.conversation_id = v_c.id
                and m.sequence > coalesce(v_b.through_sequence, -1) and not v_opted_out
              window w as (order by m.sequence)
              order by m.sequence limit greatest(1, least(coalesce(p_messages, 200), 1000))) t
        where t.characters_through - t.characters < p_characters and t.size - t.bytes < v_bytes) r;
  return json_build_object(
    'conversation_id', v_c.id,
    'revision', v_c.revision,
    'through_sequence', coalesce(v_b.through_sequence, -1),
    'version', coalesce(v_b.version, 0),
    'summary', coalesce(v_b.summary, ''),
    'context_notes', coalesce(v_b.context_notes, ''),
    'edited_summary', v_b.edited_summary,
    'items', memory_private.board_items(v_user, v_c.id, false, greatest(0, least(p_items, 1000))),
    'messages', coalesce(v_rows, '[]'),
    'hidden', (
      select json_agg(d) from memory_private.deleted_item_words(v_user, v_c.id) d
      where d.sequence > coalesce(v_b.through_sequence, -1)), -- what a person deleted from the board
    'behind', v_c.next_sequence - 1 - coalesce(v_b.through_sequence, -1),
    'behind_characters', (memory_private.sizes_from(
      v_user, v_c.id, coalesce(v_b.through_sequence, -1) + 1, v_c.next_sequence)).characters,
    'more', v_c.next_sequence - 1 > coalesce(v_last, v_b.through_sequence, -1) and not v_opted_out,
    'opted_out', v_opted_out,
    'topics', memory_private.topics_for_writer(v_user, v_c.id)); -- that are not to be remembered
end
$function$;
comment on function public.memory_pending_board is
  'langchain-supabase-memory: Read a board, and the next messages to read into it. Commit with memory_commit_board,
  which refuses if the conversation has moved on.

p_thread_id: the thread of the conversation.
p_user_id: the owner; null: the subject of the caller''s token.
p_agent_id: the agent of the conversation.
p_characters: about so many characters of messages are returned, one message at least.
p_messages: the most messages, at most 1000.
p_items: the most items of the board, at most 1000.
Returns: object or null. Null if there is no such conversation.
- conversation_id: uuid. Pass it to memory_commit_board.
- revision: integer. Counts edits and deletions. Pass it as p_revision.
- through_sequence: integer. The last message that was read into the board; -1 if none. Pass it as p_through.
- version: integer. Counts the changes of the board.
- summary: text. Its summary; empty at first.
- context_notes: text. What is to be borne in mind; empty at first.
- edited_summary: text or null. What a person wrote in the place of the summary.
- items: object[] as memory_board.items. What it lists.
- messages: object[]. The next messages, in their order.
- messages[].sequence: integer. The number of the message.
- messages[].message_id: text. Its id.
- messages[].payload: object. The whole message.
- messages[].created_at: timestamp. When it was said.
- messages[].unreadable: text or null. Why no message could be made of the payload, in a word.
- messages[].author_name: text or null. In a space: what its author is called there. Null elsewhere.
- hidden: object[] or null. Words that a person deleted from the board: leave them out of the summarizer''s input.
  Null if there are none.
- hidden[].sequence: integer. The message that has them.
- hidden[].words: text. The words.
- behind: integer. How many messages are not read into it yet.
- behind_characters: integer. How many characters these have.
- more: boolean. Whether more messages follow after these.
- opted_out: boolean. Whether nothing is to be remembered; then there are no messages.
- topics: text[] or null. Topics that the board must not mention; null if there are none.
Errors:
- PT400: no p_user_id is given, and the caller''s token names nobody.';

-- Adds what a summarizer found to a board. An exact repeat counts as seen again, a new item is added, and an item that
-- it contradicts is superseded. The caller holds the row locks of the conversation and the board.
create or replace function memory_private.add_board_items(
  p_conversation memory.conversations, p_version bigint, -- the board's version after this commit
  p_through bigint, p_to bigint, -- the messages that were read
  p_items json, p_topics text[], p_author text,
  out added integer, out changed integer,
  out place integer, -- of the last change
  out stands jsonb   -- for the id of a repeat, that of the item which was there
)
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_user    constant text := p_conversation.user_id;
  v_id      constant uuid := p_conversation.id;
  v_most    constant integer := (memory_private.current_limits()).board_items;
  v_held    integer; -- items that the board holds
  v_item    record;
  v_source  record;
  v_old     memory.conversation_board_items;
  v_item_id uuid;
begin
  added := 0;
  changed := 0;
  place := 0;
  stands := '{}';
  select count(*) into v_held from memory.conversation_board_items i
   where i.user_id = v_user and i.conversation_id = v_id;
  for v_item in
    select i.*, i.position from rows from (json_to_recordset(p_items) as (
      id uuid, kind text, type text, text text, state text, importance real, quote text, sequence bigint,
      replaces uuid)) with ordinality
      as i (id, kind, type, text, state, importance, quote, sequence, replaces, position)
    order by i.position
  loop
    select m.message_id, m.sequence, m.created_at into v_source from memory.conversation_messages m
     where m.user_id = v_user and m.conversation_id = v_id and m.sequence = v_item.sequence
       and m.sequence > p_through and m.sequence <= p_to;
    continue when not found; -- without a source nothing is believed
    continue when memory_private.mentions(concat_ws(' ', v_item.text, v_item.quote), p_topics, p_conversation.language);
    select i.* into v_old from memory.conversation_board_items i
     where i.user_id = v_user and i.conversation_id = v_id and i.kind = v_item.kind
       and i.digest = memory_private.item_digest(v_item.text) and i.superseded_at is null;
    if found then
      -- An exact repeat counts as seen again. What a person deleted stays deleted.
      update memory.conversation_board_items i
         set last_seen_at = greatest(i.last_seen_at, v_source.created_at),
             first_seen_at = least(i.first_seen_at, v_source.created_at),
             message_ids = case when v_source.message_id = any (i.message_ids) or i.deleted_at is not null
                                then i.message_ids else (i.message_ids || v_source.message_id)[:20] end,
             sequences = case when v_source.sequence = any (i.sequences) or i.deleted_at is not null
                              then i.sequences else (i.sequences || v_source.sequence)[:20] end
       where i.user_id = v_user and i.conversation_id = v_id and i.id = v_old.id;
      v_item_id := v_old.id;
      stands := stands || jsonb_build_object(coalesce(v_item.id, v_item_id), v_item_id);
      if v_old.deleted_at is null and not v_source.sequence = any (v_old.sequences) then
        place := place + 1;
        insert into memory.conversation_board_changes (
          user_id, conversation_id, version, place, item_id, action, changed_by, kept)
        values (v_user, v_id, p_version, place, v_old.id, 'repeat', p_author, memory_private.wordless_item(v_old));
      end if;
      -- A task that is mentioned again may be done by now, or open again.
      if cardinality(memory_private.item_states(v_old.kind)) > 1 and v_item.state <> v_old.state and v_old.deleted_at is null
         and not v_old.pinned and v_source.sequence > all (v_old.sequences)
         and v_source.created_at >= coalesce(v_old.edited_at, '-infinity')
      then
        update memory.conversation_board_items i
           set state = v_item.state, version = i.version + 1
         where i.user_id = v_user and i.conversation_id = v_id and i.id = v_old.id;
        changed := changed + 1;
        place := place + 1;
        insert into memory.conversation_board_changes (
          user_id, conversation_id, version, place, item_id, action, before, sequence, changed_by, kept)
        values (v_user, v_id, p_version, place, v_old.id, v_item.state, v_old.state, v_source.sequence, p_author,
                memory_private.wordless_item(v_old));
      end if;
    else
      -- A full board accepts repeats and changes, but no new items.
      continue when v_held + added >= v_most;
      insert into memory.conversation_board_items (
        user_id, conversation_id, id, kind, type, text, digest, state, importance, quote, message_ids, sequences,
        first_seen_at, last_seen_at, author, author_kind)
      values (
        v_user, v_id, coalesce(v_item.id, gen_random_uuid()), v_item.kind, v_item.type, v_item.text,
        memory_private.item_digest(v_item.text), v_item.state,
        coalesce(v_item.importance, 0.7), v_item.quote, array[v_source.message_id], array[v_source.sequence],
        v_source.created_at, v_source.created_at, p_author, case when p_author = 'extractive' then 'rule' else 'model' end)
      returning id into v_item_id;
      added := added + 1;
      place := place + 1;
      insert into memory.conversation_board_changes (
        user_id, conversation_id, version, place, item_id, action, changed_by)
      values (v_user, v_id, p_version, place, v_item_id, 'add', p_author);
    end if;
    -- A contradicted item is kept with both dates. One that a person pinned, or wrote after this message, is not
    -- superseded.
    select i.* into v_old from memory.conversation_board_items i
     where i.user_id = v_user and i.conversation_id = v_id and i.id <> v_item_id
       and i.id = coalesce((stands ->> v_item.replaces::text)::uuid, v_item.replaces)
       and i.kind = v_item.kind and i.superseded_at is null and i.deleted_at is null and not i.pinned
       and v_source.created_at >= coalesce(i.edited_at, '-infinity');
    if found then
      update memory.conversation_board_items i
         set superseded_by = v_item_id, superseded_at = v_source.created_at, version = i.version + 1
       where i.user_id = v_user and i.conversation_id = v_id and i.id = v_old.id;
      changed := changed + 1;
      place := place + 1;
      insert into memory.conversation_board_changes (
        user_id, conversation_id, version, place, item_id, action, changed_by, kept)
      values (v_user, v_id, p_version, place, v_old.id, 'supersede', p_author, memory_private.wordless_item(v_old));
    end if;
  end loop;
end
$function$;

-- Sets the state of items that messages report as done. The caller holds the row locks of the conversation and the
-- board.
create or replace function memory_private.close_board_items(
  p_conversation memory.conversations, p_version bigint, p_through bigint, p_to bigint, p_closed json, p_author text,
  p_stands jsonb, -- for the id of a repeat, that of the item which was there
  p_place integer -- of the last change
) returns integer -- how many changed
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_user    constant text := p_conversation.user_id;
  v_id      constant uuid := p_conversation.id;
  v_item    record;
  v_source  record;
  v_old     memory.conversation_board_items;
  v_changed integer := 0;
begin
  for v_item in select * from json_to_recordset(p_closed) as (id uuid, state text, sequence bigint)
  loop
    select m.message_id, m.sequence, m.created_at into v_source from memory.conversation_messages m
     where m.user_id = v_user and m.conversation_id = v_id and m.sequence = v_item.sequence
       and m.sequence > p_through and m.sequence <= p_to;
    continue when not found;
    select i.* into v_old from memory.conversation_board_items i
     where i.user_id = v_user and i.conversation_id = v_id
       and i.id = coalesce((p_stands ->> v_item.id::text)::uuid, v_item.id) and i.deleted_at is null
       and i.state <> v_item.state and i.superseded_at is null and not i.pinned
       and v_source.created_at >= coalesce(i.edited_at, '-infinity');
    continue when not found;
    -- Checked here and not in the query: a Citus node does not have the function.
    continue when not coalesce(
      cardinality(memory_private.item_states(v_old.kind)) > 1
      and v_item.state = any (memory_private.item_states(v_old.kind)), false);
    update memory.conversation_board_items i
       set state = v_item.state, last_seen_at = greatest(i.last_seen_at, v_source.created_at),
           message_ids = case when v_source.message_id = any (i.message_ids)
                              then i.message_ids else i.message_ids || v_source.message_id end,
           sequences = case when v_source.sequence = any (i.sequences)
                            then i.sequences else i.sequences || v_source.sequence end,
           version = i.version + 1
     where i.user_id = v_user and i.conversation_id = v_id and i.id = v_old.id;
    v_changed := v_changed + 1;
    insert into memory.conversation_board_changes (
      user_id, conversation_id, version, place, item_id, action, before, sequence, changed_by, kept)
    values (
      v_user, v_id, p_version, p_place + v_changed, v_old.id, v_item.state, v_old.state, v_source.sequence, p_author,
      memory_private.wordless_item(v_old));
  end loop;
  return v_changed;
end
$function$;

create function public.memory_commit_board(
  p_thread_id       text,
  p_conversation_id uuid,   -- what it was computed from: a conversation, which may have been forgotten and begun anew,
  p_through         bigint, -- the position,
  p_revision        bigint, -- and the revision
  p_to              bigint,
  p_message_ids     json,   -- of all messages in between
  p_summary         text,
  p_context_notes   text,
  p_items           json    default '[]', -- [{"id", "kind", "type", "text", "state", "quote", "sequence", "replaces"}]
  p_closed          json    default '[]', -- [{"id", "state", "sequence"}]
  p_author          text    default 'model',
  p_tokens          integer default 0,
  p_quality         float8  default null,
  p_user_id         text    default null,
  p_agent_id        text    default 'default',
  p_title           text    default null, -- of the conversation; one that it has stays
  p_profile         json    default null  -- what the messages say of the user
) returns jsonb
language plpgsql volatile security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
declare
  v_user    text := memory_private.resolve_writer(p_user_id);
  v_c       memory.conversations;
  v_b       memory.conversation_summary_boards;
  v_ids     text[] := array(select json_array_elements_text(p_message_ids));
  v_stored  text[];
  v_new     record;
  v_changed integer;
  v_topics  text[];
  v_said    text[];
  v_now     timestamptz;
begin
  perform memory_private.check_limits(p_items), memory_private.check_limits(p_closed),
          memory_private.check_limits(p_message_ids), memory_private.check_limits(p_profile),
          memory_private.lock_opt_outs(v_user);
  select c.* into v_c from memory.conversations c
   where c.user_id = v_user and c.agent_id = p_agent_id and c.thread_id = p_thread_id and c.id = p_conversation_id
     for no key update;
  if not found or v_c.opted_out_at is not null then
    return jsonb_build_object('committed', false, 'through_sequence', -1);
  end if;
  -- The summarizer may not have left out opted-out topics: remove them here.
  v_topics := memory_private.opted_out_topics(v_user, v_c.id);
  -- The same for what a person deleted, perhaps while the summarizer was at work.
  v_said := memory_private.sentence_patterns(array(
    select d.words from memory_private.deleted_item_words(v_user, v_c.id) d));
  p_summary := memory_private.remove_phrases(memory_private.remove_mentions(p_summary, v_topics, v_c.language), v_said);
  p_context_notes := memory_private.remove_phrases(
    memory_private.remove_mentions(p_context_notes, v_topics, v_c.language), v_said);
  p_title := memory_private.remove_phrases(
    memory_private.remove_mentions(memory_private.first_words(p_title, 80), v_topics, v_c.language), v_said);
  insert into memory.conversation_summary_boards (user_id, conversation_id) values (v_user, v_c.id)
  on conflict (user_id, conversation_id) do nothing;
  select b.* into v_b from memory.conversation_summary_boards b
   where b.user_id = v_user and b.conversation_id = v_c.id
     for no key update;
  -- A retry of a commit whose answer was lost.
  if v_b.through_sequence = p_to and p_to > p_through and v_b.summary = p_summary and v_c.revision = p_revision then
    return jsonb_build_object(
      'committed', true, 'through_sequence', p_to, 'version', v_b.version, 'added', 0, 'changed', 0);
  end if;
  select array_agg(t.message_id order by t.sequence) into v_stored
    from (select m.sequence, m.message_id from memory.conversation_messages m
          where m.user_id = v_user and m.conversation_id = v_c.id and m.sequence > p_through and m.sequence <= p_to
          order by m.sequence) t;
  -- Compare and swap: no other commit came first, and exactly these messages lie in between.
  if v_b.through_sequence <> p_through or v_c.revision <> p_revision or v_stored is distinct from v_ids then
    return jsonb_build_object('committed', false, 'through_sequence', v_b.through_sequence);
  end if;

  v_new := memory_private.add_board_items(v_c, v_b.version + 1, p_through, p_to, p_items, v_topics, p_author);
  v_changed := v_new.changed + memory_private.close_board_items(
    v_c, v_b.version + 1, p_through, p_to, p_closed, p_author, v_new.stands, v_new.place);
  if p_profile is not null then
    perform memory_private.add_profile_items(v_c, p_profile, p_author);
  end if;
  perform memory_private.note_contradictions(v_user, v_c.id);
  perform memory_private.note_board_version(
    v_user, v_c.id, (v_b.summary, v_b.context_notes, v_b.title)
      is distinct from (p_summary, p_context_notes, coalesce(v_b.title, nullif(p_title, ''))));
  v_now := clock_timestamp();
  update memory.conversation_summary_boards b
     set summary = p_summary, context_notes = p_context_notes, title = coalesce(b.title, nullif(p_title, '')),
         through_sequence = p_to, version = b.version + 1,
         model = p_author, tokens = p_tokens, quality = p_quality, language = v_c.language,
         updated_at = v_now
   where b.user_id = v_user and b.conversation_id = v_c.id;
  return jsonb_build_object(
    'committed', true, 'through_sequence', p_to, 'version', v_b.version + 1, 'added', v_new.added,
    'changed', v_changed);
end
$function$;
comment on function public.memory_commit_board is
  'langchain-supabase-memory: Revise a board, if the conversation is still where memory_pending_board read it. The same
  commit once more is no error. An item without a message as its source is left out, and so is what mentions a topic
  that is not to be remembered or what a person deleted.

p_thread_id: the thread of the conversation.
p_conversation_id: from memory_pending_board: the thread may have been forgotten and begun anew.
p_through: through_sequence from memory_pending_board.
p_revision: revision from memory_pending_board.
p_to: the last message that was read.
p_message_ids: the ids of all messages that were read, in their order, a list of text.
p_summary: the new summary, at most 65536 bytes.
p_context_notes: what is to be borne in mind, at most 65536 bytes.
p_items: what is new, a list of objects. One that the board has already is noted as seen again.
- id: uuid or null. Its id; null: one is drawn.
- kind: text. {{item_kinds}}.
- type: text or null. What kind of entity or fact it is.
- text: text. Its words.
- state: text. {{item_states}}.
- importance: number or null. How much it matters, 0 to 1; null: 0.7.
- quote: text or null. What was said, word for word.
- sequence: integer. The message that says so, one of those that were read.
- replaces: uuid or null. The item that it contradicts.
p_closed: items whose state has changed, a list of objects.
- id: uuid. The item.
- state: text. Its new state.
- sequence: integer. The message that says so.
p_author: who wrote it.
p_tokens: about how many tokens the summary has.
p_quality: how much of its source it holds, 0 to 1; null: unknown.
p_user_id: the owner; null: the subject of the caller''s token.
p_agent_id: the agent of the conversation.
p_title: what to call the conversation, at most 80 characters; null: nothing. One that the board has stays.
p_profile: what the user said of themself, a list of objects; null: nothing. One whose quote does not stand in a message
  of the user''s own, that is of no kind or too long, or that is not to be remembered, is left out by itself.
- kind: text. fact, preference, instruction, trait or constraint.
- subject: text or null. What it is about; another value of the same takes over; null: what it says.
- value: text. What it says.
- polarity: integer or null. 1: they want or like it; -1: they do not; 0 or null: neither.
- condition: text or null. When it holds; null: always.
- durable: boolean or null. Whether they say that it lasts.
- corrects: boolean or null. Whether they correct what was thought before.
- sequence: integer. The message that says so.
- quote: text. The words, at most 500 characters.
Returns: object.
- committed: boolean. Whether it was stored. If not, read again.
- through_sequence: integer. The last message that is read into the board now; -1 if there is no such conversation.
- version: integer. The new version; only if it was stored.
- added: integer. How many items are new; only if it was stored.
- changed: integer. How many items changed; only if it was stored.
Errors:
- PT400: no p_user_id is given, and the caller''s token names nobody.
- PT413: an argument is larger than call_bytes, or a list in it longer than call_items (see memory_limits).
- 23514: a kind, a state, a text or a number is refused; the name of the constraint says which.';

create function public.memory_board(
  p_thread_id text,
  p_user_id   text    default null,
  p_agent_id  text    default 'default',
  p_history   boolean default false, -- also what was superseded, and all changes
  p_limit     integer default 500,
  p_retention json    default null,
  p_at        timestamptz default null, -- as it was at this instant,
  p_version   bigint  default null      -- or at this version; null: as it is
) returns json
language plpgsql stable security invoker set search_path = ''
as $function$
declare
  v_user text := memory_private.resolve_owner(p_user_id);
  v_c    memory.conversations;
  v_b    memory.conversation_summary_boards;
  v_id   uuid; -- null: the board has expired
  v_items record;
  v_is_past boolean := false;
  v_is_rewritten boolean := false;
begin
  select c.* into v_c from memory.conversations c
   where c.user_id = v_user and c.agent_id = p_agent_id and c.thread_id = p_thread_id;
  if not found then
    return null;
  end if;
  v_id := case when not (memory_private.expired_derived(v_user, v_c.id, p_retention)).board then v_c.id end;
  select b.* into v_b from memory.conversation_summary_boards b
   where b.user_id = v_user and b.conversation_id = v_id;
  if v_b.version is not null and (p_at is not null or p_version is not null) then
    p_version := least(coalesce(p_version, memory_private.board_version_at(v_b, p_at)), v_b.version);
    v_is_past := p_version < v_b.version;
  end if;
  if p_version <= 0 then
    v_id := null; -- there was none yet
    v_b := null;
  elsif v_is_past then
    v_items := memory_private.board_items_at(v_user, v_id, p_version, p_history, greatest(0, least(p_limit, 1000)));
    v_is_rewritten := exists (
      select from memory.conversation_board_changes h
      where h.user_id = v_user and h.conversation_id = v_id and h.version > p_version and h.place = 0
        and h.action = 'revise');
    v_b := memory_private.board_at(v_b, p_version);
  end if;
  if v_id is null or not v_is_past then
    select memory_private.board_items(v_user, v_id, p_history, greatest(0, least(p_limit, 1000))) as items,
           count(*) as listed, 0::bigint as gone
      into v_items from memory.conversation_board_items i
     where i.user_id = v_user and i.conversation_id = v_id and i.deleted_at is null
       and (p_history or i.superseded_at is null);
  end if;
  return json_build_object(
    'conversation_id', v_c.id,
    'revision', v_c.revision,
    'next_sequence', v_c.next_sequence,
    'title', v_b.title,
    'summary', coalesce(v_b.summary, ''),
    'context_notes', coalesce(v_b.context_notes, ''),
    'edited_summary', v_b.edited_summary,
    'edited_by', v_b.edited_by,
    'editor_kind', v_b.editor_kind,
    'edited_at', v_b.edited_at,
    'language', coalesce(v_b.language, v_c.language),
    'model', v_b.model,
    'tokens', coalesce(v_b.tokens, 0),
    'quality', v_b.quality,
    'through_sequence', coalesce(v_b.through_sequence, -1),
    'version', coalesce(v_b.version, 0),
    'updated_at', v_b.updated_at,
    'items', v_items.items,
    'unlisted', greatest(0, v_items.listed - least(p_limit, 1000)),
    'gone', v_items.gone,
    'rewritten', v_is_rewritten,
    'changes', case when p_history then coalesce((
      select json_agg(r order by r.version desc, r.place desc)
      from (select h.version, h.place, h.item_id, h.action, h.before, h.changed_by, h.changed_at
            from memory.conversation_board_changes h
            where h.user_id = v_user and h.conversation_id = v_id and h.place > 0 and h.action <> 'repeat'
              and (not v_is_past or h.version <= p_version)
            order by h.version desc, h.place desc limit greatest(0, least(p_limit, 500))) r), '[]') end);
end
$function$;
comment on function public.memory_board is
  'langchain-supabase-memory: Read the board of a conversation, with its items and, on wish, its history; as it is, or
  as it was. What was added later is not there then, and what was superseded, closed or edited later stands as it did.
  What has been deleted since stays deleted.

p_thread_id: the thread of the conversation.
p_user_id: the owner; null: the subject of the caller''s token.
p_agent_id: the agent of the conversation.
p_history: also items that were superseded, and all changes.
p_limit: the most items, at most 1000, and the most changes, at most 500.
p_retention: what is kept, as in memory_append; null: everything. A board that is beyond it is shown as empty.
p_at: as it was at this instant, by the database''s clock; null: as it is.
p_version: as it was at this version, whatever p_at says; null: by p_at.
Returns: object or null. Null if there is no such conversation.
- conversation_id: uuid. The conversation.
- revision: integer. Counts edits and deletions of messages, those of today.
- next_sequence: integer. The sequence that the next message gets.
- title: text or null. What its summarizer calls the conversation.
- summary: text. The summary; empty if none was written.
- context_notes: text. What is to be borne in mind.
- edited_summary: text or null. What a person wrote in the place of the summary.
- edited_by: text or null. Who did.
- editor_kind: text or null. What that is: person, application or import.
- edited_at: timestamp or null. When that was.
- language: text or null. The text search configuration of the conversation''s words.
- model: text or null. Who wrote the summary.
- tokens: integer. About how many tokens the summary has.
- quality: number or null. How much of its source the summary holds, 0 to 1.
- through_sequence: integer. The last message that was read into it; -1 if none.
- version: integer. Counts its changes.
- updated_at: timestamp or null. When it last changed; null if there is none.
- items: object[]. What it lists: pinned items first, then what was said last.
- items[].id: uuid. The item.
- items[].kind: text. {{item_kinds}}.
- items[].type: text or null. What kind of entity or fact it is.
- items[].text: text. Its words.
- items[].state: text. {{item_states}}.
- items[].importance: number. How much it matters, 0 to 1.
- items[].quote: text or null. What the first of its messages says, word for word.
- items[].message_ids: text[]. The ids of the messages that it was read from.
- items[].sequences: integer[]. Their numbers.
- items[].first_seen_at: timestamp. When it was first said.
- items[].last_seen_at: timestamp. When it was last said.
- items[].version: integer. Counts its changes.
- items[].superseded_by: uuid or null. The item that contradicts it.
- items[].superseded_at: timestamp or null. When that was said.
- items[].pinned: boolean. Whether a person pinned it.
- items[].author: text. Who wrote it first.
- items[].author_kind: text. What that is: person, application, model, rule or import.
- items[].edited_by: text or null. Who changed it last: a person or the application.
- items[].editor_kind: text or null. What that is: person, application or import.
- items[].edited_at: timestamp or null. When that was.
- items[].contributed_by: text or null. In a space: who quoted it from a conversation of their own.
- items[].said_at: timestamp or null. When it was said there.
- items[].author_id: text or null. In a space: who said it, as far as it comes from messages or was contributed.
- items[].author_name: text or null. What they are called there.
- unlisted: integer. How many items there are beyond p_limit.
- gone: integer. How many items it had then that a person has deleted since; 0 without p_at and p_version.
- rewritten: boolean. Whether its summary, notes and title have been written anew since, so that they are empty.
- changes: object[] or null. The newest first; null without p_history.
- changes[].version: integer. The version that it made.
- changes[].place: integer. Its place among the changes of that version.
- changes[].item_id: uuid or null. The item; null for the summary.
- changes[].action: text. add, supersede, edit, pin, unpin, delete, summary, regenerate, or a new state.
- changes[].before: text or null. What stood there before.
- changes[].changed_by: text. Who did it.
- changes[].changed_at: timestamp. When that was.
Errors:
- PT400: no p_user_id is given, and the caller''s token names nobody.';

-- Adds an item that a person, the application or a model wrote. The caller holds the board's row lock.
create or replace function memory_private.add_board_item(
  p_user_id text, p_conversation_id uuid, p_by text, p_author_kind text, p_kind text, p_type text, p_text text,
  p_state text, p_now timestamptz, out item_id uuid, out is_new boolean
)
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_old      memory.conversation_board_items;
  v_is_model constant boolean := p_author_kind = 'model';
begin
  is_new := true;
  -- A deleted item may be written again; an existing one is not added twice.
  select i.* into v_old from memory.conversation_board_items i
   where i.user_id = p_user_id and i.conversation_id = p_conversation_id and i.kind = p_kind
     and i.digest = memory_private.item_digest(p_text) and i.superseded_at is null;
  if found and v_old.deleted_at is null then
    item_id := v_old.id;
    is_new := false;
    return;
  end if;
  if found and v_is_model then
    raise exception 'this item was deleted from the board' using errcode = 'PT400',
      hint = 'leave it out: only a person or the application may write it again';
  end if;
  if found then
    update memory.conversation_board_items i
       set deleted_at = null, quote_at = null, quote_length = null, text = p_text, type = p_type, state = p_state,
           edited_by = p_by, author = p_by, author_kind = p_author_kind, editor_kind = p_author_kind, edited_at = p_now,
           last_seen_at = p_now, version = i.version + 1
     where i.user_id = p_user_id and i.conversation_id = p_conversation_id and i.id = v_old.id;
    item_id := v_old.id;
  else
    insert into memory.conversation_board_items (
      user_id, conversation_id, kind, type, text, digest, state, first_seen_at, last_seen_at, author,
      author_kind, edited_by, editor_kind, edited_at)
    values (
      p_user_id, p_conversation_id, p_kind, p_type, p_text, memory_private.item_digest(p_text), p_state, p_now, p_now,
      p_by, p_author_kind, case when not v_is_model then p_by end, case when not v_is_model then p_author_kind end,
      case when not v_is_model then p_now end)
    returning id into item_id;
  end if;
end
$function$;

-- Changes the words, the state or the type of an item. The caller holds the row locks of the board and the item.
create or replace function memory_private.edit_board_item(
  p_old memory.conversation_board_items, p_by text, p_author_kind text, p_type text, p_text text, p_state text,
  p_now timestamptz
) returns void
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_user     constant text := p_old.user_id;
  v_id       constant uuid := p_old.conversation_id;
  v_is_model constant boolean := p_author_kind = 'model';
begin
  if p_text is not null and exists (
    select from memory.conversation_board_items i
    where i.user_id = v_user and i.conversation_id = v_id and i.kind = p_old.kind and i.id <> p_old.id
      and i.digest = memory_private.item_digest(p_text) and i.superseded_at is null and i.deleted_at is null
      and p_old.superseded_at is null)
  then
    raise exception 'the board has this item already' using errcode = 'PT400', hint = 'delete one of the two';
  end if;
  -- A deleted row keeps the digest of the old wording, so that a regeneration does not add it again.
  if p_text is not null and p_old.superseded_at is null
     and memory_private.item_digest(p_text) <> p_old.digest
  then
    -- Writing a deleted item again overrides the deletion.
    delete from memory.conversation_board_items i
     where i.user_id = v_user and i.conversation_id = v_id and i.kind = p_old.kind and i.id <> p_old.id
       and i.digest = memory_private.item_digest(p_text) and i.superseded_at is null;
    update memory.conversation_board_items i set digest = memory_private.item_digest(p_text)
     where i.user_id = v_user and i.conversation_id = v_id and i.id = p_old.id;
    insert into memory.conversation_board_items (
      user_id, conversation_id, kind, text, digest, state, sequences, message_ids, first_seen_at, last_seen_at, author,
      author_kind, deleted_at)
    values (
      v_user, v_id, p_old.kind, '', p_old.digest, p_old.state, p_old.sequences, p_old.message_ids,
      p_old.first_seen_at, p_old.last_seen_at, p_by, p_author_kind, p_now)
    on conflict (user_id, conversation_id, kind, digest) where superseded_at is null do nothing;
  end if;
  update memory.conversation_board_items i
     set text = coalesce(p_text, i.text), state = coalesce(p_state, i.state), type = coalesce(p_type, i.type),
         author = case when v_is_model then p_by else i.author end,
         author_kind = case when v_is_model then 'model' else i.author_kind end,
         edited_by = case when not v_is_model then p_by end,
         editor_kind = case when not v_is_model then p_author_kind end,
         edited_at = case when not v_is_model then p_now end, version = i.version + 1
   where i.user_id = v_user and i.conversation_id = v_id and i.id = p_old.id;
end
$function$;

-- Deletes an item. Its row stays without words, so that no summarizer adds it again. The caller holds the row locks of
-- the board and the item.
create or replace function memory_private.delete_board_item(
  p_old memory.conversation_board_items, p_by text, p_author_kind text, p_now timestamptz
) returns void
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_user constant text := p_old.user_id;
  v_id   constant uuid := p_old.conversation_id;
  v_said text[];
begin
  -- Delete the words of the item, of its history, and of the hierarchical summaries' facts and topics; and the
  -- sentences of the board's summary that say the same. A name stands in sentences about other things too. The title
  -- may paraphrase it.
  update memory.conversation_summary_boards b set title = null
   where b.user_id = v_user and b.conversation_id = v_id;
  if not memory_private.is_name_kind(p_old.kind) then
    v_said := memory_private.sentence_patterns(array[p_old.text, p_old.quote]);
    update memory.conversation_summary_boards b
       set (summary, context_notes, tokens) = (
         select t.summary, t.notes, ceil(b.tokens * length(t.summary)::float8 / greatest(length(b.summary), 1))
         from (select memory_private.remove_phrases(b.summary, v_said) as summary,
                      memory_private.remove_phrases(b.context_notes, v_said) as notes) t)
     where b.user_id = v_user and b.conversation_id = v_id;
  end if;
  update memory.conversation_summaries s
     set topics = array_remove(s.topics, p_old.text),
         key_facts = (select jsonb_agg(f order by n) from jsonb_array_elements(s.key_facts) with ordinality as e (f, n)
                      where f ->> 'text' <> p_old.text)
   where s.user_id = v_user and s.conversation_id = v_id and s.level > 0
     and (p_old.text = any (s.topics) or s.key_facts @> jsonb_build_array(jsonb_build_object('text', p_old.text)));
  update memory.conversation_board_items i
     set text = '', quote = null, type = null,
         quote_length = length(p_old.quote),
         quote_at = case when not memory_private.is_name_kind(p_old.kind) then (
           select strpos(m.text, p_old.quote) from memory.conversation_messages m
           where m.user_id = v_user and m.conversation_id = v_id and m.sequence = p_old.sequences[1]) end,
         deleted_at = p_now, edited_by = p_by, editor_kind = p_author_kind, pinned = false,
         -- Keep it current, so that the same item is not added again; a superseded item does not prevent that.
         superseded_at = case when exists (
           select from memory.conversation_board_items o
           where o.user_id = v_user and o.conversation_id = v_id and o.kind = p_old.kind and o.digest = i.digest
             and o.superseded_at is null) then i.superseded_at end,
         edited_at = p_now, version = i.version + 1
   where i.user_id = v_user and i.conversation_id = v_id and i.id = p_old.id;
  update memory.conversation_board_changes h
     set before = null, kept = null
   where h.user_id = v_user and h.conversation_id = v_id and h.item_id = p_old.id;
end
$function$;

-- Deletes what a model wrote on a board, so that it is written again. The caller holds the row locks of the
-- conversation and the board.
create or replace function memory_private.reset_board(p_conversation memory.conversations) returns void
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_user    constant text := p_conversation.user_id;
  v_id      constant uuid := p_conversation.id;
  v_segment memory.conversation_summaries;
begin
  -- Delete what a model wrote, and keep what a person wrote, edited, pinned or deleted. Items read from expired
  -- messages stay, with the first summary that covers these: they cannot be written again.
  delete from memory.conversation_board_items i
   where i.user_id = v_user and i.conversation_id = v_id and i.edited_at is null and not i.pinned
     and i.deleted_at is null and i.sequences[1] > p_conversation.expired_through;
  update memory.conversation_board_items i
     set superseded_by = null, superseded_at = null
   where i.user_id = v_user and i.conversation_id = v_id and i.superseded_at is not null
     and not exists (
       select from memory.conversation_board_items o
       where o.user_id = v_user and o.conversation_id = v_id and o.id = i.superseded_by)
     and i.id = (
       select o.id from memory.conversation_board_items o
       where o.user_id = v_user and o.conversation_id = v_id and o.kind = i.kind
         and o.digest = i.digest
       order by o.superseded_at desc, o.id limit 1); -- null first: what holds already
  select s.* into v_segment from memory.conversation_summaries s
   where s.user_id = v_user and s.conversation_id = v_id and s.level = 0 and p_conversation.expired_through >= 0
     and s.to_sequence >= p_conversation.expired_through
   order by s.number limit 1;
  update memory.conversation_summary_boards b
     set summary = coalesce(v_segment.content, ''), context_notes = '', title = null, quality = null,
         tokens = coalesce(v_segment.tokens, 0), through_sequence = coalesce(v_segment.to_sequence, -1)
   where b.user_id = v_user and b.conversation_id = v_id;
  -- Make a commit that is under way fail, even if the board is at the same position again.
  update memory.conversations c set revision = c.revision + 1 where c.user_id = v_user and c.id = v_id;
end
$function$;

create function public.memory_edit_board(
  p_thread_id text,
  p_action    text, -- add, edit, pin, unpin, delete, summary or regenerate
  p_by        text, -- who
  p_item_id   uuid    default null,
  p_kind      text    default null,
  p_type      text    default null,
  p_text      text    default null,
  p_state     text    default null,
  p_user_id   text    default null,
  p_agent_id  text    default 'default',
  p_author_kind text  default 'person', -- or application or model
  p_begin     boolean default false
) returns json
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_user    text := memory_private.resolve_writer(p_user_id);
  v_id      uuid;
  v_old     memory.conversation_board_items;
  v_b       memory.conversation_summary_boards;
  v_item    uuid := p_item_id;
  v_is_new  boolean;
  v_before  text;
  v_kept    jsonb;
  v_c       memory.conversations;
  v_most    integer := (memory_private.current_limits()).board_items;
  v_is_model constant boolean := p_author_kind = 'model';
  v_now     timestamptz;
begin
  if coalesce(p_author_kind not in ('person', 'application', 'model'), true) then
    raise exception 'there is no such kind of author' using errcode = 'PT400', hint = 'it is person, application or model';
  end if;
  if v_is_model and p_action not in ('add', 'edit') then
    raise exception 'a model adds and edits items, and nothing else' using errcode = 'PT400',
      hint = 'leave it to a person or to the application';
  end if;
  perform memory_private.lock_opt_outs(v_user);
  for v_try in 1..2 loop
    select c.* into v_c from memory.conversations c
     where c.user_id = v_user and c.agent_id = p_agent_id and c.thread_id = p_thread_id
       for no key update;
    exit when found or not coalesce(p_begin and p_action = 'add', false);
    insert into memory.conversations (user_id, agent_id, thread_id) values (v_user, p_agent_id, p_thread_id)
    on conflict (user_id, agent_id, thread_id) do nothing;
  end loop;
  if v_c.id is null then
    raise exception 'there is no such conversation' using errcode = 'PT404', hint = 'store a message first';
  end if;
  v_id := v_c.id;
  if p_action = 'add' and (
    select count(*) from memory.conversation_board_items i where i.user_id = v_user and i.conversation_id = v_id)
    >= v_most
  then
    raise exception 'the board is full' using errcode = 'PT413',
      hint = 'forget what is not needed, or raise board_items in memory_private.limits';
  end if;
  if p_text <> '' and v_c.opted_out_at is not null then
    raise exception 'this conversation is not to be remembered' using errcode = 'PT400', hint = 'opt in to it first';
  end if;
  if memory_private.mentions(p_text, memory_private.opted_out_topics(v_user, v_id), v_c.language) then
    raise exception 'it mentions a topic that is not to be remembered'
      using errcode = 'PT400', hint = 'leave that out, or opt in to the topic';
  end if;
  insert into memory.conversation_summary_boards (user_id, conversation_id) values (v_user, v_id)
  on conflict (user_id, conversation_id) do nothing;
  select b.* into v_b from memory.conversation_summary_boards b
   where b.user_id = v_user and b.conversation_id = v_id
     for no key update;
  v_now := clock_timestamp();
  if p_item_id is not null then
    select i.* into v_old from memory.conversation_board_items i
     where i.user_id = v_user and i.conversation_id = v_id and i.id = p_item_id and i.deleted_at is null
       for no key update;
    if not found then
      raise exception 'there is no such item' using errcode = 'PT404', hint = 'read the board again';
    end if;
    if v_is_model and (v_old.edited_at is not null or v_old.pinned) then
      raise exception 'a person or the application wrote or pinned this item' using errcode = 'PT400',
        hint = 'leave it as it is: no model changes it';
    end if;
  elsif p_action in ('edit', 'pin', 'unpin', 'delete') then
    raise exception 'no item is named' using errcode = 'PT400', hint = 'pass its id';
  end if;
  if p_state is not null and not coalesce(p_state = any (memory_private.item_states(coalesce(v_old.kind, p_kind))), true)
  then
    raise exception 'an item of this kind has no such state' using errcode = 'PT400', hint = 'see BoardItem.state';
  end if;

  case p_action
  when 'add' then
    select n.item_id, n.is_new into v_item, v_is_new
      from memory_private.add_board_item(v_user, v_id, p_by, p_author_kind, p_kind, p_type, p_text, p_state, v_now) n;
    if not v_is_new then
      return json_build_object('item_id', v_item, 'version', v_b.version, 'is_new', false);
    end if;
  when 'edit' then
    v_before := case when p_text is not null then v_old.text else v_old.state end;
    v_kept := memory_private.wordless_item(v_old) || jsonb_build_object('has_words', p_text is not null);
    perform memory_private.edit_board_item(v_old, p_by, p_author_kind, p_type, p_text, p_state, v_now);
  when 'pin', 'unpin' then
    v_kept := memory_private.wordless_item(v_old);
    update memory.conversation_board_items i
       set pinned = p_action = 'pin', version = i.version + 1
     where i.user_id = v_user and i.conversation_id = v_id and i.id = v_old.id;
  when 'delete' then
    perform memory_private.delete_board_item(v_old, p_by, p_author_kind, v_now);
  when 'summary' then
    v_before := v_b.edited_summary;
    v_kept := case when v_b.edited_summary is not null then jsonb_build_object(
      'edited_by', v_b.edited_by, 'editor_kind', v_b.editor_kind, 'edited_at', v_b.edited_at) end;
    update memory.conversation_summary_boards b
       set edited_summary = nullif(p_text, ''), edited_by = p_by, editor_kind = p_author_kind, edited_at = v_now
     where b.user_id = v_user and b.conversation_id = v_id;
  when 'regenerate' then
    perform memory_private.reset_board(v_c);
  else
    raise exception 'unknown action' using errcode = 'PT400';
  end case;
  perform memory_private.note_board_version(v_user, v_id, p_action in ('delete', 'regenerate'));
  update memory.conversation_summary_boards b
     set version = b.version + 1, updated_at = v_now
   where b.user_id = v_user and b.conversation_id = v_id;
  insert into memory.conversation_board_changes (
    user_id, conversation_id, version, place, item_id, action, before, changed_by, kept)
  values (v_user, v_id, v_b.version + 1, 1, v_item, p_action, v_before, p_by, v_kept);
  return json_build_object('item_id', v_item, 'version', v_b.version + 1, 'is_new', p_action = 'add');
end
$function$;
comment on function public.memory_edit_board is
  'langchain-supabase-memory: What a person does with a board. It is noted with who and when; what a person wrote,
  pinned or deleted, no summarizer changes. What a model noted, a summarizer may change.

p_thread_id: the thread of the conversation.
p_action: add, edit, pin, unpin, delete, summary (write one instead) or regenerate (write anew what no person
  touched).
p_by: who does it.
p_item_id: the item, for edit, pin, unpin and delete; else null.
p_kind: for add: {{item_kinds}}.
p_type: for add and edit: what kind of entity or fact it is; null: none, or as it is.
p_text: for add and edit the words of the item, for summary those of the summary (empty takes a person''s away);
  null: as it is.
p_state: for add and edit: {{item_states}}.
  Null with edit: as it is.
p_user_id: the owner; null: the subject of the caller''s token.
p_agent_id: the agent of the conversation.
p_author_kind: what p_by is: person, application or model. A model adds items, and edits those that nobody else wrote,
  changed or pinned.
p_begin: whether add begins a conversation that is not there.
Returns: object.
- item_id: uuid or null. The item; null for the summary.
- version: integer. The board''s version now.
- is_new: boolean. Whether an item was added; false if the board had it already.
Errors:
- PT400: p_action is none of these, an item has to be named, its kind has no such state, the board has the same item
  already, a model may not do that, the text mentions a topic or the conversation is one that is not to be remembered; or no p_user_id is
  given, and the caller''s token names nobody.
- PT404: there is no such conversation, or no such item.
- PT413: the board holds as many items as it may (board_items, see memory_limits).
- 23514: a kind or a text is refused; the name of the constraint says which.';
