-- Exact search: the messages that hold some texts, letter by letter.

-- Says whether a message contains every one of some texts, in its words or in the names and arguments of its calls.
-- Calls and results of the memory's own tools do not count: a search would find itself.
create or replace function memory_private.contains_texts(
  p_role    text,
  p_text    text,
  p_payload json,    -- of one that may call something; null: it does not
  p_texts   text[],  -- as memory_private.normalize_letters gives them
  p_case    boolean
) returns boolean
language plpgsql immutable security invoker set search_path = ''
as $function$
declare
  v_letters text;
  v_calls   jsonb := '[]';
begin
  if p_role = 'tool' and ltrim(p_text, E' \t\r\n') like '<conversation\_memory>%' then
    return false;
  end if;
  if json_typeof(p_payload #> '{data,tool_calls}') = 'array' then
    v_calls := p_payload #> '{data,tool_calls}';
  end if;
  v_letters := memory_private.normalize_letters(p_text || coalesce((
    select string_agg(e'\n' || (v #>> '{}'), '')
    from jsonb_array_elements(v_calls) c (call)
    cross join lateral jsonb_path_query(jsonb_build_array(c.call -> 'name', c.call -> 'args'), 'strict $.**') v
    where jsonb_typeof(v) in ('string', 'number')
      and c.call ->> 'name' is distinct from 'search_conversation_history'), ''), p_case);
  return not exists (select from unnest(p_texts) t where strpos(v_letters, t) = 0);
end
$function$;

create function public.memory_find(
  p_texts     json,                     -- a message holds each of them
  p_thread_id text        default null, -- null: all threads,
  p_agent_id  text        default null, -- with all agents,
  p_user_id   text        default null, -- of one user
  p_order     text        default 'newest',
  p_case      boolean     default false,
  p_since     timestamptz default null,
  p_until     timestamptz default null,
  p_around    integer     default 0,
  p_limit     integer     default 20,
  p_after     text        default null,
  p_retention json        default null
) returns json -- {"found", "read", "after"}: json, not jsonb, so that payloads keep the order of their keys
language plpgsql stable security invoker set search_path = ''
-- How its queries are held to their indexes: sql/README.md.
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
declare
  c_most   constant integer := 2000; -- messages that one call looks at; a conversation counts as ten
  v_user   text := memory_private.resolve_owner(p_user_id);
  v_labels constant jsonb := memory_private.person_labels(v_user); -- of people, in a space
  v_newest constant boolean := p_order is not distinct from 'newest';
  v_limit  constant integer := greatest(1, least(coalesce(p_limit, 20), 100));
  v_around constant integer := greatest(0, least(coalesce(p_around, 0), 10));
  v_bytes  bigint := (memory_private.current_limits()).answer_bytes; -- what is left of them
  v_texts  text[];
  v_at     timestamptz; -- the place to go on from: a conversation,
  v_id     uuid;
  v_place  bigint;      -- and the last message of it that was looked at
  v_c      memory.conversations;
  v_gone   record;      -- what has expired
  v_from   bigint;
  v_to     bigint;
  v_row    record;
  v_each   json;
  v_found  json[] := '{}';
  v_read   integer := 0;
  v_after  text;
begin
  if p_order is null or p_order not in ('newest', 'oldest') then
    raise exception 'there is no such order' using errcode = 'PT400', hint = 'pass newest or oldest';
  end if;
  begin
    v_texts := array(select t from json_array_elements_text(p_texts) t);
  exception when data_exception then
    v_texts := '{}'; -- no list, or one with a NUL, which no message holds
  end;
  if cardinality(v_texts) not between 1 and 10 or p_texts is null
     or exists (select from unnest(v_texts) t where t is null or btrim(t, E' \t\r\n') = '' or length(t) > 1000)
  then
    raise exception 'what is looked for is a list of 1 to 10 texts, each of 1 to 1000 characters'
      using errcode = 'PT400', hint = 'pass ["E-47"], for example';
  end if;
  v_texts := array(select memory_private.normalize_letters(t, p_case) from unnest(v_texts) t);
  if p_after is not null then
    begin
      v_at := split_part(p_after, '/', 1)::timestamptz;
      v_id := split_part(p_after, '/', 2)::uuid;
      v_place := split_part(p_after, '/', 3)::bigint;
    exception when data_exception then
      raise exception 'the place to go on from cannot be read'
        using errcode = 'PT400', hint = 'pass what an answer gave as after, as it is';
    end;
  end if;

  -- In the order of creation, which does not change between pages: no conversation is skipped or repeated.
  for v_c in
    select c.* from memory.conversations c
     where c.user_id = v_user and (p_agent_id is null or c.agent_id = p_agent_id)
       and (p_thread_id is null or c.thread_id = p_thread_id)
       and (v_at is null or case when v_newest then (c.created_at, c.id) <= (v_at, v_id)
                                 else (c.created_at, c.id) >= (v_at, v_id) end)
     order by case when v_newest then c.created_at end desc, case when v_newest then c.id end desc, c.created_at, c.id
  loop
    if v_read >= c_most or v_bytes <= 0 then
      return json_build_object('found', to_json(v_found), 'read', v_read, 'after', v_after);
    end if;
    v_read := v_read + 10;
    v_gone := memory_private.find_expired(v_c, p_retention);
    v_from := v_gone.first;
    v_to := v_c.next_sequence;
    if v_c.id = v_id and v_newest then
      v_to := least(v_to, v_place - 1);
    elsif v_c.id = v_id then
      v_from := greatest(v_from, v_place + 1);
    end if;
    -- One statement for each direction, so that a range is read in index order and only as far as needed.
    for v_row in execute format($sql$
      select t.sequence, t.bytes,
             t.before < $5 and t.created_at >= $6 and t.created_at < $7 and not t.sequence <@ $8
             and memory_private.contains_texts(
               t.role, t.text, case when t.role = 'assistant' and not t.final then t.payload end, $9, $10)
               as fits
      from (select m.sequence, m.role, m.final, m.text, m.payload, m.created_at, m.bytes,
                   sum(m.bytes) over (order by m.sequence %1$s) - m.bytes as before
            from memory.conversation_messages m
            where m.user_id = $1 and m.conversation_id = $2 and m.sequence between $3 and $4
            order by m.sequence %1$s limit $11) t
      $sql$, case when v_newest then 'desc' else 'asc' end)
      using /* 1, 2 */ v_user, v_c.id, /* 3, 4 */ v_from, v_to, /* 5 */ v_bytes,
            /* 6, 7 */ coalesce(p_since, '-infinity'), coalesce(p_until, 'infinity'), /* 8 */ v_gone.holes,
            /* 9, 10 */ v_texts, p_case, /* 11 */ greatest(1, c_most - v_read)
    loop
      v_read := v_read + 1;
      v_bytes := v_bytes - v_row.bytes;
      v_after := memory_private.encode_cursor(v_c.created_at, v_c.id) || '/' || v_row.sequence;
      if v_row.fits then
        select json_build_object(
                 'thread_id', v_c.thread_id, 'agent_id', v_c.agent_id,
                 'before', coalesce(json_agg(t.shown order by t.sequence) filter (where t.sequence < v_row.sequence), '[]'),
                 'message', (json_agg(t.shown) filter (where t.sequence = v_row.sequence)) -> 0,
                 'after', coalesce(json_agg(t.shown order by t.sequence) filter (where t.sequence > v_row.sequence), '[]'))
          into v_each
          from (select m.sequence, (select to_json(r) from (
                         select m.sequence, m.message_id, m.role, m.text, m.created_at, m.payload,
                                v_labels ->> m.author_id as author_name) r) as shown
                from ((select b.* from memory.conversation_messages b
                       where b.user_id = v_user and b.conversation_id = v_c.id
                         and b.sequence between v_gone.first and v_row.sequence - 1 and not b.sequence <@ v_gone.holes
                       order by b.sequence desc limit v_around)
                      union all
                      (select a.* from memory.conversation_messages a
                       where a.user_id = v_user and a.conversation_id = v_c.id
                         and a.sequence >= v_row.sequence and not a.sequence <@ v_gone.holes
                       order by a.sequence limit v_around + 1)) m) t;
        v_found := v_found || v_each;
        v_bytes := v_bytes - octet_length(v_each::text) + v_row.bytes;
      end if;
      if cardinality(v_found) >= v_limit or v_read >= c_most or v_bytes <= 0 then
        return json_build_object('found', to_json(v_found), 'read', v_read, 'after', v_after);
      end if;
    end loop;
  end loop;
  return json_build_object('found', to_json(v_found), 'read', v_read, 'after', null);
end
$function$;
comment on function public.memory_find is
  'langchain-supabase-memory: Find the messages that hold some texts, letter by letter: in their words, or in the names
  and arguments of what they call. Conversations come in the order in which they were begun, their messages in the
  order of their sequences. One call looks at 2000 messages at most, where each conversation counts as ten, and at
  about answer_bytes (see memory_limits); after says where to go on. What the memory itself gave to a tool, and what
  search_conversation_history was asked, is passed over. Nothing is written.

p_texts: what is looked for, a list of 1 to 10 texts of 1 to 1000 characters; a message holds each of them. Blanks and
  signs stand for themselves.
p_thread_id: only in this thread; null: in all.
p_agent_id: only with this agent; null: with all.
p_user_id: the owner; null: the subject of the caller''s token.
p_order: newest or oldest: from which end of time one looks.
p_case: whether capitals matter. If not, ß is ss, and the dot of a capital İ says nothing.
p_since: only messages of this time or later; null: of any.
p_until: only messages before this time; null: of any.
p_around: so many messages before and after each come with it, at most 10.
p_limit: the most messages that are found in one call, 1 to 100.
p_after: after of the call before, for what follows; null: from the end that p_order names.
p_retention: what is kept, as in memory_append; null: everything. What is beyond it is left out.
Returns: object.
- found: object[]. What was found, in the order that p_order names.
- found[].thread_id: text. The thread of its conversation.
- found[].agent_id: text. The agent.
- found[].message: object. The message that holds the texts.
- found[].message.sequence: integer. Its number in the conversation.
- found[].message.message_id: text. Its id.
- found[].message.role: text. user, assistant, system or tool.
- found[].message.text: text. Its words.
- found[].message.created_at: timestamp. When it was said.
- found[].message.payload: object. The whole message, as it was stored.
- found[].message.author_name: text or null. In a space: what its author is called there. Null elsewhere.
- found[].before: object[] as memory_find.found[].message. Those before it, in order.
- found[].after: object[] as memory_find.found[].message. Those after it, in order.
- read: integer. How much was looked at: messages, and ten for each conversation.
- after: text or null. Pass it as p_after to go on; null: everything was looked at.
Errors:
- PT400: p_texts is no such list, p_order is none of the two, or p_after cannot be read; or no p_user_id is given, and
  the caller''s token names nobody.';
