-- What is important enough for long-term memory, and what has moved there.

create function public.memory_important(
  p_min_importance     float8,
  p_types              json        default null,
  p_since              timestamptz default null,
  p_target             text        default null, -- only what is not yet in this long-term memory
  p_thread_id          text        default null, -- null: all threads,
  p_agent_id           text        default null, -- with all agents
  p_user_id            text        default null,
  p_limit              integer     default 100,
  p_after_conversation uuid        default null,
  p_after_place        bigint      default -1,
  p_after_part         integer     default 0,
  p_after_source       uuid        default null
) returns json
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_custom_plan
as $function$
declare
  v_user    text := memory_private.resolve_owner(p_user_id);
  v_types   text[] := case when json_typeof(p_types) = 'array' then array(select json_array_elements_text(p_types)) end;
  v_facts   boolean := v_types is null or 'fact' = any (v_types);
  v_scope   uuid[];
  v_boarded uuid[];
  v_rows    json;
begin
  v_scope := array(
    select c.id from memory.conversations c
    where c.user_id = v_user and (p_agent_id is null or c.agent_id = p_agent_id)
      and (p_thread_id is null or c.thread_id = p_thread_id) and c.opted_out_at is null
      and (p_after_conversation is null or c.id >= p_after_conversation));
  -- If there is a board, read from it: its facts are shorter, and outdated ones are not among them.
  v_boarded := array(
    select b.conversation_id from memory.conversation_summary_boards b
    where b.user_id = v_user and b.conversation_id = any (v_scope) and b.through_sequence >= 0 and v_facts);
  select json_agg(r order by r.conversation_id, r.place, r.part, r.source_id) into v_rows
  from (
    select t.*, c.thread_id, c.agent_id
    from (
      select k.conversation_id, k.place, k.part, k.id as source_id, false as from_board, k.content, null as quote, k.type,
             k.role, k.speaker, k.importance, k.said_at, k.message_ids, (
               select max(m.updated_at) from memory.conversation_messages m
               where m.user_id = v_user and m.conversation_id = k.conversation_id and m.message_id = any (k.message_ids)
             ) as edited_at
      from memory.working_memory_chunks k
      where k.user_id = v_user and k.conversation_id = any (v_scope) and not k.stale
        and (k.expires_at is null or k.expires_at > statement_timestamp())
        and k.importance >= p_min_importance::real and (v_types is null or k.type = any (v_types))
        and (p_since is null or k.said_at >= p_since)
        -- Finish a move that was interrupted before there was a board.
        and (k.conversation_id <> all (v_boarded) or exists (
          select from memory.promotions p
          where p.user_id = v_user and p.target = p_target and p.conversation_id = k.conversation_id
            and p.source_id = k.id and not p.moved))
        and (p_target is null or not exists (
          select from memory.promotions p
          where p.user_id = v_user and p.target = p_target and p.conversation_id = k.conversation_id
            and (p.source_id = k.id and p.moved or p.from_board and p.message_ids && k.message_ids)))
      union all
      select i.conversation_id, coalesce(i.sequences[1], -1), -1, i.id, true, i.text, i.quote, i.kind, null, null,
             case when i.pinned then 1.0 else i.importance end, i.first_seen_at, i.message_ids, greatest(i.edited_at, (
               select max(m.updated_at) from memory.conversation_messages m
               where m.user_id = v_user and m.conversation_id = i.conversation_id and m.message_id = any (i.message_ids)))
      from memory.conversation_board_items i
      where v_facts and i.user_id = v_user and i.conversation_id = any (v_scope) and i.kind = 'fact'
        and i.superseded_at is null and i.deleted_at is null and i.state in ('current', 'open')
        and (i.pinned or i.importance >= p_min_importance::real) and (p_since is null or i.last_seen_at >= p_since)
        -- Only once from each message: not if a chunk of it was moved, nor if an item was moved that the board no
        -- longer has, until forget_source has taken that back.
        and (p_target is null or not exists (
          select from memory.promotions p
          where p.user_id = v_user and p.target = p_target and p.conversation_id = i.conversation_id
            and (p.source_id = i.id and p.moved
                 or p.source_id <> i.id and p.message_ids && i.message_ids and not (p.from_board and exists (
                   select from memory.conversation_board_items o
                   where o.user_id = v_user and o.conversation_id = p.conversation_id and o.id = p.source_id
                     and o.superseded_at is null and o.deleted_at is null)))))) t
    join memory.conversations c on c.user_id = v_user and c.id = t.conversation_id
    where p_after_conversation is null
       or (t.conversation_id, t.place, t.part, t.source_id)
          > (p_after_conversation, p_after_place, p_after_part,
             coalesce(p_after_source, 'ffffffff-ffff-ffff-ffff-ffffffffffff'))
    order by t.conversation_id, t.place, t.part, t.source_id
    limit greatest(0, least(p_limit, 100))) r;
  return json_build_object('user_id', v_user, 'facts', coalesce(v_rows, '[]'));
end
$function$;
comment on function public.memory_important is
  'langchain-supabase-memory: List what was said and is important enough for a long-term memory, by pages: facts of
  boards, and chunks of conversations that have no board.

p_min_importance: what matters at least so much, 0 to 1. What a person pinned always does.
p_types: only these types, a list of text: dialogue, action, fact, question, answer; null: all.
p_since: only what was said at this time or later; null: at any.
p_target: only what has not moved to this long-term memory; null: all.
p_thread_id: only of this thread; null: of all.
p_agent_id: only with this agent; null: with all.
p_user_id: the owner; null: the subject of the caller''s token.
p_limit: the most of one answer, at most 100.
p_after_conversation: the conversation_id at which the last page ended; null: from the beginning.
p_after_place: the place at which it ended.
p_after_part: the part at which it ended.
p_after_source: the source_id at which it ended.
Returns: object.
- user_id: text. The owner.
- facts: object[]. What is important.
- facts[].conversation_id: uuid. The conversation.
- facts[].place: integer. The chunk''s place; of an item of a board its first message.
- facts[].part: integer. The chunk''s part; -1 for an item of a board.
- facts[].source_id: uuid. The chunk, or the item.
- facts[].from_board: boolean. Whether it is an item of a board.
- facts[].content: text. Its words.
- facts[].quote: text or null. What was said, word for word; of a chunk null.
- facts[].type: text. Its type.
- facts[].role: text or null. Who said it: user, assistant, system or tool; of an item of a board null.
- facts[].speaker: text or null. The name of who said it.
- facts[].importance: number. How much it matters, 0 to 1.
- facts[].said_at: timestamp. When it was said.
- facts[].message_ids: text[]. The messages that it is from.
- facts[].edited_at: timestamp or null. When it, or one of them, was last edited.
- facts[].thread_id: text. The thread.
- facts[].agent_id: text. Its agent.
Errors:
- PT400: no p_user_id is given, and the caller''s token names nobody.';

create function public.memory_promote(
  p_target  text,
  p_facts   json, -- [{"conversation_id", "source_id", "text_id", "memory_id", "repeats", "message_ids", "edited_at",
                  --   "from_board"}]
  p_moved   boolean default false, -- before the move, and once more after it
  p_user_id text    default null
) returns json -- where each of them is, or is to be: [{"source_id", "memory_id", "known"}]
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_user text := memory_private.resolve_writer(p_user_id);
  v_rows json;
begin
  perform memory_private.check_limits(p_facts);
  if p_moved then
    -- Citus: held_promotions
    -- Citus: end
    with moved as (
      update memory.promotions p
         set moved = true
        from json_to_recordset(p_facts) as i (conversation_id uuid, source_id uuid)
       where p.user_id = v_user and p.target = p_target
         and p.conversation_id = i.conversation_id and p.source_id = i.source_id
      returning p.source_id, p.memory_id)
    select json_agg(json_build_object('source_id', m.source_id, 'memory_id', m.memory_id)) into v_rows from moved m;
    return coalesce(v_rows, '[]');
  end if;
  -- Recorded before the move, so that what is moved can be found whatever happens. The same words, moved before from
  -- another place, are known.
  -- Citus: noted_promotions
  with given as (
    select i.*, k.memory_id as known
    from json_to_recordset(p_facts) as i (
           conversation_id uuid, source_id uuid, text_id uuid, memory_id uuid, repeats boolean, message_ids json,
           edited_at timestamptz, from_board boolean)
    left join lateral (
      select p.memory_id from memory.promotions p
      where p.user_id = v_user and p.target = p_target and p.text_id = i.text_id and p.moved
      order by p.memory_id limit 1) k on true),
  noted as (
    insert into memory.promotions as p (
      user_id, target, conversation_id, source_id, text_id, memory_id, message_ids, edited_at, repeats, from_board,
      withdrawn)
    select v_user, p_target, g.conversation_id, g.source_id, g.text_id, coalesce(g.known, g.memory_id),
           array(select json_array_elements_text(g.message_ids)), g.edited_at, g.known is not null or g.repeats,
           coalesce(g.from_board, false),
           -- It may have been opted out since it was read.
           exists (select from memory.opt_outs o where o.user_id = v_user)
           and not exists (
             select from memory.working_memory_chunks k
             where k.user_id = v_user and k.conversation_id = g.conversation_id and k.id = g.source_id)
           and not exists (
             select from memory.conversation_board_items i
             where i.user_id = v_user and i.conversation_id = g.conversation_id and i.id = g.source_id)
    from given g
    order by g.conversation_id, g.source_id
    on conflict (user_id, target, conversation_id, source_id) do update
      set edited_at = excluded.edited_at, memory_id = excluded.memory_id, repeats = excluded.repeats,
          withdrawn = excluded.withdrawn
    returning p.source_id, p.memory_id)
  select json_agg(json_build_object('source_id', n.source_id, 'memory_id', n.memory_id, 'known', g.known is not null))
    into v_rows from noted n join given g on g.source_id = n.source_id;
  -- Citus: end
  return coalesce(v_rows, '[]');
end
$function$;
comment on function public.memory_promote is
  'langchain-supabase-memory: Note what is being moved to a long-term memory, before it is stored there, and that it
  was, after that. So whatever happens in between, it can be found and taken back.

p_target: the name of the long-term memory, 1 to 512 bytes.
p_facts: what moves, a list of objects. With p_moved only the first two keys count.
- conversation_id: uuid. From memory_important.
- source_id: uuid. From memory_important.
- text_id: uuid. The same for the same words, so that a repeat is known.
- memory_id: uuid. Under which it is to be stored there.
- repeats: boolean. Whether the caller knows that its words moved before.
- message_ids: text[]. From memory_important.
- edited_at: timestamp or null. From memory_important.
- from_board: boolean or null. From memory_important.
p_moved: false before the move, true after it.
p_user_id: the owner; null: the subject of the caller''s token.
Returns: object[].
- [].source_id: uuid. What moves.
- [].memory_id: uuid. Where it is, or is to be, stored.
- [].known: boolean. Only before the move: whether the same words are there already, under memory_id.
Errors:
- PT400: no p_user_id is given, and the caller''s token names nobody.
- PT413: an argument is larger than call_bytes, or a list in it longer than call_items (see memory_limits).
- 23514: p_target or a value of a fact is refused; the name of the constraint says which.';

create function public.memory_withdrawn(
  p_target      text,
  p_user_id     text    default null,
  p_thread_id   text    default null, -- also what is from this thread,
  p_agent_id    text    default null, -- with this agent,
  p_message_ids json    default null, -- or, of it, from these messages
  p_gone        json    default '[]', -- memories that are gone from the long-term memory
  p_after       uuid    default null,
  p_limit       integer default 100,
  p_dry_run     boolean default false
) returns json -- memories that have to go, the next so many
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_user text := memory_private.resolve_writer(p_user_id);
  v_ids  text[] := case when json_typeof(p_message_ids) = 'array'
                        then array(select json_array_elements_text(p_message_ids)) end;
  v_rows json;
begin
  perform memory_private.check_limits(p_message_ids), memory_private.check_limits(p_gone);
  delete from memory.promotions p
   where p.user_id = v_user and p.target = p_target
     and p.memory_id = any (array(select json_array_elements_text(p_gone)::uuid));
  with gone as materialized (
    select p.conversation_id, p.source_id, p.memory_id, p.repeats
    from memory.promotions p
    left join memory.conversations c on c.user_id = v_user and c.id = p.conversation_id
    where p.user_id = v_user and p.target = p_target and (p_after is null or p.memory_id > p_after)
      and (c.id is null or c.opted_out_at is not null or p.withdrawn
           or exists (
             select from memory.gone_messages g
             where g.user_id = v_user and g.conversation_id = p.conversation_id and g.message_id = any (p.message_ids)
               and g.forgotten)
           or exists (
             select from memory.conversation_messages m
             where m.user_id = v_user and m.conversation_id = p.conversation_id and m.message_id = any (p.message_ids)
               and m.updated_at > coalesce(p.edited_at, '-infinity'))
           -- The board no longer has it: it was deleted, contradicted, taken back with its source, or changed.
           or p.from_board and not exists (
             select from memory.conversation_board_items i
             where i.user_id = v_user and i.conversation_id = p.conversation_id and i.id = p.source_id
               and i.superseded_at is null and i.deleted_at is null
               and coalesce(i.edited_at, '-infinity') <= coalesce(p.edited_at, '-infinity'))
           or (p_thread_id is not null or v_ids is not null)
              and (p_thread_id is null or c.thread_id = p_thread_id)
              and (p_thread_id is null or p_agent_id is null or c.agent_id = p_agent_id)
              and (v_ids is null or p.message_ids && v_ids))),
  -- A source that only repeated it is deleted from the record, and the memory stays.
  dropped as (
    delete from memory.promotions p
     using gone g
     where not p_dry_run and g.repeats and p.user_id = v_user and p.target = p_target
       and p.conversation_id = g.conversation_id and p.source_id = g.source_id)
  select json_agg(r.memory_id order by r.memory_id) into v_rows
  from (select distinct g.memory_id from gone g where not g.repeats
        order by g.memory_id limit greatest(0, least(p_limit, 1000))) r;
  return json_build_object('user_id', v_user, 'memories', coalesce(v_rows, '[]'));
end
$function$;
comment on function public.memory_withdrawn is
  'langchain-supabase-memory: List memories that have to go from a long-term memory, because what they were made from
  was forgotten, edited or is not to be remembered. Nothing is deleted there by this call: do that, and pass what
  has gone.

p_target: the name of the long-term memory.
p_user_id: the owner; null: the subject of the caller''s token.
p_thread_id: also all that is from this thread; null: no more than has to go.
p_agent_id: with p_thread_id: with this agent; null: with all.
p_message_ids: also all that is from these messages, a list of text; with p_thread_id only of that thread. Null: no
  more.
p_gone: memories that are deleted there by now, a list of uuid: they are noted no longer.
p_after: the memory at which the last page ended; null: from the beginning.
p_limit: the most of one answer, at most 1000.
p_dry_run: leave the record as it is, but for p_gone.
Returns: object.
- user_id: text. The owner.
- memories: uuid[]. The memories that have to go, the next so many.
Errors:
- PT400: no p_user_id is given, and the caller''s token names nobody.
- PT413: an argument is larger than call_bytes, or a list in it longer than call_items (see memory_limits).';
