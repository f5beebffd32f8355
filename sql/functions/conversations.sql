-- The verbs over conversations. Each is one round trip, runs with the caller's rights, and returns one document.
-- The owner is p_user_id, or the subject of the caller's token where none is given.

-- Deletes a range of messages, and returns the columns that the caller needs. Each row is looked up by its primary
-- key and the columns of the other indexes: without statistics the planner may use any index that begins with the
-- conversation, and read all of it.
create or replace function memory_private.delete_message_range(
  p_user_id text, p_conversation_id uuid, p_from bigint, p_to bigint
)
returns table (sequence bigint, message_id text, characters integer, tokens integer)
language plpgsql volatile security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
set enable_hashjoin = off set enable_mergejoin = off
as $function$
begin
  return query
  delete from memory.conversation_messages m
   using (
     select k.user_id, k.conversation_id, k.sequence, k.message_id, k.created_at from memory.conversation_messages k
     where k.user_id = p_user_id and k.conversation_id = p_conversation_id and k.sequence between p_from and p_to
     order by k.sequence
     offset 0) r
   -- Citus: taken_from
   where true
   -- Citus: end
     and m.user_id = r.user_id and m.conversation_id = r.conversation_id and m.sequence = r.sequence
     and m.message_id = r.message_id and m.created_at = r.created_at
  returning m.sequence, m.message_id, m.characters, m.tokens;
end
$function$;

-- Stores new messages from p_first on, and returns how many were new. Runs after the row lock, so that it sees what
-- an earlier try of the same batch committed. The conflict target names one index, so the cost of the check does not
-- depend on a plan. If some were stored before, the sequences would have gaps: the new ones are then stored once
-- more.
create or replace function memory_private.insert_messages(
  p_user_id text, p_conversation_id uuid, p_first bigint, p_messages json,
  p_count  integer, -- of the messages
  p_gone   text[],  -- the ids of those that are not brought back
  p_author text     -- who wrote them; null where no space owns the conversation
) returns integer
language plpgsql volatile security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
declare
  v_messages json := p_messages; -- those that are stored, each in its place
  v_new      text[];
  v_fresh    integer;
begin
  if p_gone <> '{}' then
    select json_agg(e.value order by e.place) into v_messages
      from json_array_elements(p_messages) with ordinality e (value, place)
     where e.value ->> 'id' <> all (p_gone);
  end if;
  loop
    -- Citus: insert_messages
    insert into memory.conversation_messages (
      user_id, conversation_id, sequence, message_id, role, text, characters, tokens, created_at, metadata,
      images, payload, author_id)
    select p_user_id, p_conversation_id, p_first - 1 + i.position, i.id, i.role, i.text,
           i.characters, i.tokens, coalesce(i.created_at, clock_timestamp()), i.metadata, i.images, i.payload,
           p_author
    from rows from (json_to_recordset(v_messages) as (
           id text, role text, text text, characters integer, tokens integer,
           created_at timestamptz, metadata jsonb, images jsonb, payload json)) with ordinality
         as i (id, role, text, characters, tokens, created_at, metadata, images, payload, position)
    on conflict (user_id, conversation_id, message_id) do nothing;
    get diagnostics v_fresh = row_count;
    -- Citus: end
    exit when v_fresh = p_count - cardinality(p_gone) or v_new is not null;
    v_new := array(
      select t.message_id
      from memory_private.delete_message_range(p_user_id, p_conversation_id, p_first, p_first + p_count) t);
    -- One that the call passes twice is stored once.
    select json_agg(t.value order by t.place) into v_messages
      from (select distinct on (e.value ->> 'id') e.value, e.place
            from json_array_elements(v_messages) with ordinality e (value, place)
            where e.value ->> 'id' = any (v_new)
            order by e.value ->> 'id', e.place) t;
  end loop;
  return v_fresh;
end
$function$;

-- Deletes superseded messages that are appended by hand and get a new sequence. Refuses those that somebody else wrote:
-- they may come back. Returns those that stay where they are: a member's state has them, and somebody else left them.
create or replace function memory_private.replace_superseded(
  p_user_id text, p_conversation_id uuid, p_ids text[], p_author text, p_branch json
) returns text[]
language plpgsql volatile security invoker set search_path = ''
as $function$
begin
  if p_branch is not null then
    return array(
      select s.message_id from memory.superseded_messages s
      where p_branch ->> 'author' is not null and s.user_id = p_user_id and s.conversation_id = p_conversation_id
        and s.message_id = any (p_ids));
  end if;
  if p_author is not null and exists (
    select from memory.superseded_messages s
    where s.user_id = p_user_id and s.conversation_id = p_conversation_id and s.message_id = any (p_ids)
      and s.author_id is distinct from p_author)
  then
    raise exception 'this call would replace what somebody else wrote'
      using errcode = 'PT403', hint = 'give the messages ids of their own';
  end if;
  delete from memory.superseded_messages s
   where s.user_id = p_user_id and s.conversation_id = p_conversation_id and s.message_id = any (p_ids);
  return '{}';
end
$function$;

-- Updates stored messages whose content has changed. Messages from p_first on were stored by this call.
create or replace function memory_private.update_messages(
  p_user_id text, p_conversation_id uuid, p_first bigint, p_messages json, p_replace boolean, p_branch json,
  p_author text, -- who edits; null: a server, or the owner of the conversation
  out sequences  bigint[], -- of each message; null: it is gone
  out updated    text[],
  out different  text[],   -- the ids of those that are there with other content, which stays
  out repeated   text[],   -- the ids of those that have another message's id
  out characters bigint,   -- what the conversation has beyond all of p_messages; negative: less
  out tokens     bigint,
  out edited     bigint    -- the first sequence of those that were updated
)
language plpgsql volatile security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
declare
  v_asked    bigint; -- the question before a message
  v_row      record;
  v_stored   record;
  v_is_again boolean;
  v_range    int8multirange;
  v_now      constant timestamptz := clock_timestamp(); -- since the append began, the lock may have been waited for
begin
  sequences := '{}';
  updated := '{}';
  different := '{}';
  repeated := '{}';
  characters := 0;
  tokens := 0;
  -- A single message answers the newest question.
  if p_branch is null and json_array_length(p_messages) = 1 then
    select case when t.role = 'user' then t.sequence end into v_asked
      from (select m.sequence, m.role from memory.conversation_messages m
            where m.user_id = p_user_id and m.conversation_id = p_conversation_id
            order by m.sequence desc limit 1) t;
  elsif p_branch ->> 'after' is not null then
    -- A query on a Citus node cannot call a function that reads tables.
    v_asked := memory_private.sequence_of_message(p_user_id, p_conversation_id, p_branch ->> 'after');
    select m.sequence into v_asked from memory.conversation_messages m
     where m.user_id = p_user_id and m.conversation_id = p_conversation_id and m.role = 'user' and m.sequence <= v_asked
     order by m.sequence desc limit 1;
  end if;
  for v_row in
    select * from json_to_recordset(p_messages) as (
      id text, role text, text text, characters integer, tokens integer, metadata jsonb, images jsonb, payload json)
  loop
    select t.* into v_stored
      from (select m.message_id, m.sequence, m.created_at, m.characters, m.tokens, m.text, m.payload, m.unreadable,
                   m.author_id
            from memory.conversation_messages m
            where m.user_id = p_user_id and m.conversation_id = p_conversation_id and m.message_id >= v_row.id
            order by m.message_id limit 1) t
     where t.message_id = v_row.id;
    v_is_again := coalesce(v_stored.sequence = any (sequences), false); -- its id was in this call before
    sequences := sequences || v_stored.sequence;
    if v_row.role = 'user' then
      v_asked := v_stored.sequence;
    end if;
    continue when v_stored.sequence >= p_first and not v_is_again;
    characters := characters - v_row.characters;
    tokens := tokens - v_row.tokens;
    continue when v_stored.sequence is null or v_stored.payload::jsonb is not distinct from v_row.payload::jsonb;
    -- A message with the id of one before the newest question is another message: some providers reuse ids.
    if v_stored.sequence < v_asked and v_row.role <> 'user' then
      repeated := repeated || v_row.id;
    end if;
    if not p_replace then
      different := different || v_row.id;
    end if;
    continue when not p_replace or v_row.id = any (repeated)
      or p_branch ->> 'author' is not null and v_stored.author_id is distinct from p_author; -- as their state has it
    if p_author is not null and v_stored.author_id is distinct from p_author then
      raise exception 'message % of this call would replace what somebody else wrote', cardinality(sequences)
        using errcode = 'PT403', hint = 'give it an id of its own, or pass p_replace => false';
    end if;
    v_range := int8multirange(int8range(v_stored.sequence, v_stored.sequence, '[]'));
    perform memory_private.update_block_counts(p_user_id, p_conversation_id, v_range, -1, p_first);
    if memory_private.has_spaces() then -- what it does not say any more is taken back from them
      delete from memory.contributions b
       where b.user_id = p_user_id and b.conversation_id = p_conversation_id and b.message_id = v_row.id
         and strpos(memory_private.plain_letters(v_row.text), memory_private.plain_letters(b.quote)) = 0;
    end if;
    perform memory_private.delete_profile_evidence(
      p_user_id, p_conversation_id, array[v_row.id], case when v_row.role = 'user' then v_row.text end);
    update memory.conversation_messages m
       set role = v_row.role, text = v_row.text, characters = v_row.characters, tokens = v_row.tokens,
           metadata = coalesce(v_row.metadata, m.metadata), images = v_row.images,
           payload = v_row.payload, unreadable = null, updated_at = v_now
     where m.user_id = p_user_id and m.conversation_id = p_conversation_id and m.sequence = v_stored.sequence
       and m.message_id = v_stored.message_id and m.created_at = v_stored.created_at;
    perform memory_private.update_block_counts(p_user_id, p_conversation_id, v_range, 1, p_first);
    characters := characters + v_row.characters - v_stored.characters;
    tokens := tokens + v_row.tokens - v_stored.tokens;
    edited := least(edited, v_stored.sequence);
    perform memory_private.invalidate_chunks(
      p_user_id, p_conversation_id, v_stored.sequence, v_stored.sequence, v_stored.text = v_row.text);
    if v_stored.unreadable is not null then
      perform memory_private.reindex_from(p_user_id, p_conversation_id, v_stored.sequence);
    end if;
    perform memory_private.invalidate_board(p_user_id, p_conversation_id, v_stored.sequence, null);
    updated := updated || v_row.id;
  end loop;
end
$function$;

-- Completes an append after its messages are stored: block counts, invalidated summaries, the manifest, the branch
-- and retention.
create or replace function memory_private.finish_append(
  p_user_id text, p_conversation_id uuid, p_first bigint,
  p_count     integer, -- of the messages that are new
  p_edited    bigint,  -- the first that was updated; null: none
  p_manifest  json,
  p_branch    json,
  p_place     jsonb,   -- of the branch
  p_retention json,
  p_private   boolean  -- whether the conversation is private
) returns bigint -- how many messages retention removed
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_next constant bigint := p_first + p_count;
  v_now  constant timestamptz := clock_timestamp();
begin
  if p_first >> 10 < v_next >> 10 then
    perform memory_private.update_block_counts(
      p_user_id, p_conversation_id, int8multirange(int8range(p_first >> 10 << 10, v_next)), 1, v_next);
  end if;
  if p_edited is not null then
    perform memory_private.invalidate_summaries(p_user_id, p_conversation_id, p_edited);
  end if;
  -- A repeated call stores nothing new, and its manifest exists.
  if p_manifest is not null and p_count > 0 then
    perform memory_private.insert_manifest(p_user_id, p_conversation_id, p_first, v_next - 1, p_manifest);
  end if;
  if p_branch is not null then
    perform memory_private.apply_branch(p_user_id, p_conversation_id, p_first, p_branch, p_place);
  end if;
  if p_private then -- no caller keeps a message longer by a time to come
    update memory.conversation_messages m set created_at = v_now
     where m.user_id = p_user_id and m.conversation_id = p_conversation_id and m.sequence >= p_first
       and m.created_at > v_now;
  elsif p_retention is null and not starts_with(p_user_id, 'space:') then
    return 0;
  end if;
  return memory_private.delete_expired(p_user_id, p_conversation_id, p_retention, true);
end
$function$;

-- Applies a branch of which no message is new.
create or replace function memory_private.apply_branch_alone(
  p_user_id text, p_agent_id text, p_thread_id text, p_branch json, p_place jsonb
) returns void
language plpgsql volatile security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
declare
  v_id    uuid;
  v_first bigint;
begin
  select c.id, c.next_sequence into v_id, v_first from memory.conversations c
   where c.user_id = p_user_id and c.agent_id = p_agent_id and c.thread_id = p_thread_id;
  perform memory_private.apply_branch(p_user_id, v_id, v_first, p_branch, p_place);
end
$function$;

-- Begins a conversation if it is not there, and deletes private ones of the owner whose day is over.
create or replace function memory_private.begin_conversation(
  p_user_id text, p_agent_id text, p_thread_id text, p_private boolean
) returns void
language plpgsql volatile security invoker set search_path = ''
set plan_cache_mode = force_generic_plan
as $function$
declare
  v_now constant timestamptz := clock_timestamp();
begin
  perform memory_private.forget_private(p_user_id);
  insert into memory.conversations (user_id, agent_id, thread_id, private, opted_out_at)
  values (p_user_id, p_agent_id, p_thread_id, coalesce(p_private, false), case when p_private then v_now end)
  on conflict (user_id, agent_id, thread_id) do nothing;
end
$function$;

-- Says why an append was refused: the conversation is gone, or it is there and not private.
create or replace function memory_private.refuse_append(p_conversation_id uuid) returns void
language plpgsql volatile security invoker set search_path = ''
as $function$
begin
  if p_conversation_id is null then
    raise exception 'the conversation was deleted while it was written to' using errcode = '40001';
  end if;
  raise exception 'this conversation was begun as one that is not private' using errcode = 'PT409',
    hint = 'begin a new thread, or forget this one first';
end
$function$;

create function public.memory_append(
  p_thread_id text,
  p_messages  json,
  p_user_id   text default null,
  p_agent_id  text default 'default',
  p_replace   boolean default true, -- whether a message that is there with other content is replaced
  p_retention json    default null, -- what is kept, see memory_private.delete_expired
  p_branch    json    default null, -- what a graph's state holds, as a graph's middleware passes it
  p_manifest  json    default null, -- what stood in the prompt that these messages answer, in numbers
  p_author_id text    default null, -- who wrote them, in a space
  p_private   boolean default false -- whether a conversation that this begins is private
) returns jsonb
language plpgsql volatile security invoker set search_path = ''
-- How its queries are held to their indexes: sql/README.md.
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
declare
  v_user       text;
  v_count      integer;
  v_ids        text[];
  v_is_whole   boolean;
  v_id         uuid;
  v_first      bigint;
  v_characters bigint;
  v_tokens     bigint;
  v_fresh      integer;
  v_sequences  bigint[] := '{}';
  v_now        constant timestamptz := clock_timestamp();
  v_stored     record;
  v_has_gone   boolean;
  v_gone       text[] := '{}';
  v_aside      boolean;
  v_manifest   json; -- none where nothing of the conversation is to be remembered
  v_expired    bigint := 0; -- how many messages retention removed
  v_place      jsonb; -- of the branch
  v_private    boolean; -- whether the conversation is
  v_whose      jsonb := '{}'; -- what a graph's state keeps, to tell later whose it is
begin
  if starts_with(p_user_id, 'space:') and not memory_private.is_server() then
    return memory_private.act_as_member('memory_append', p_user_id, jsonb_build_object(
      'thread_id', p_thread_id, 'agent_id', p_agent_id, 'replace', p_replace, 'branch', p_branch, 'manifest', p_manifest,
      'author_id', p_author_id, 'private', p_private), p_messages);
  end if;
  v_user := memory_private.resolve_writer(p_user_id, p_author_id);
  if p_branch is not null then
    perform memory_private.check_branch(p_branch);
    v_place := memory_private.prepare_branch(v_user, p_agent_id, p_thread_id, p_branch);
    if json_typeof(p_branch -> 'database') = 'null' then
      v_whose := jsonb_build_object(
        'owner', memory_private.owner_digest(v_user), 'database', memory_private.database_id());
    end if;
    if v_place ?| '{foreign,moved,lacking,unfamiliar}' then
      return v_place || '{"conversation_id": null, "sequences": null, "appended": 0, "updated": []}';
    end if;
  end if;
  if json_typeof(p_messages) is distinct from 'array' then
    raise exception 'messages are a list' using errcode = 'PT400', hint = 'pass [{"role": "user", "content": "Hello"}]';
  end if;
  v_count := json_array_length(p_messages);
  if v_count = 0 then
    if p_branch is not null then
      perform memory_private.apply_branch_alone(v_user, p_agent_id, p_thread_id, p_branch, v_place);
    end if;
    return jsonb_build_object(
      'conversation_id', null, 'sequences', '[]'::jsonb, 'message_ids', '[]'::jsonb, 'appended', 0, 'updated', '[]'::jsonb)
      || v_whose;
  end if;
  if v_count > 10 or octet_length(p_messages::text) > 16384 then -- no limit is lower
    perform memory_private.check_limits(p_messages, true);
  end if;

  -- Python sends complete messages; for other clients the rest is filled in.
  for v_try in 1..2 loop
    begin
      select sum(i.characters), sum(i.tokens), array_agg(i.id),
             bool_and(num_nulls(i.id, i.text, i.characters, i.tokens, i.payload) = 0
                      and coalesce(i.role in ('user', 'assistant', 'system', 'tool'), false))
        into v_characters, v_tokens, v_ids, v_is_whole
        from json_to_recordset(p_messages)
             as i (id text, role text, text text, characters integer, tokens integer, payload text); -- not parsed once more
    exception when data_exception then
      v_is_whole := false;
    end;
    exit when v_is_whole;
    p_messages := memory_private.normalize_messages(p_messages);
    perform memory_private.check_limits(p_messages, true);
  end loop;

  v_user := set_config('memory.read_owner', v_user, true); -- see memory_private.readable_owners
  -- One statement takes the row lock and the sequences of the batch. The first append creates the row.
  for v_try in 1..2 loop
    update memory.conversations c
       set next_sequence = c.next_sequence + v_count,
           message_count = c.message_count + v_count,
           total_characters = c.total_characters + v_characters,
           total_tokens = c.total_tokens + v_tokens,
           archived_at = null,
           updated_at = v_now,
           updated_before = c.updated_at
     where c.user_id = v_user and c.agent_id = p_agent_id and c.thread_id = p_thread_id
       and (not c.private or c.updated_at between v_now - interval '1 day' and v_now + interval '1 day') -- else it is gone
    returning c.id, c.next_sequence - v_count, c.has_gone, c.has_superseded,
              case when c.opted_out_at is null then p_manifest end, c.private
      into v_id, v_first, v_has_gone, v_aside, v_manifest, v_private;
    exit when found;
    perform memory_private.begin_conversation(v_user, p_agent_id, p_thread_id, p_private);
  end loop;
  if v_id is null or p_private and not v_private then
    perform memory_private.refuse_append(v_id);
  end if;
  -- A retry, also one that waited for the lock, does not bring back messages that were forgotten or have expired.
  if v_has_gone then
    v_gone := array(
      select g.message_id from memory.gone_messages g
      where g.user_id = v_user and g.conversation_id = v_id and g.message_id = any (v_ids));
  end if;
  if v_aside then
    v_gone := v_gone || memory_private.replace_superseded(v_user, v_id, v_ids, p_author_id, p_branch);
  end if;

  v_fresh := memory_private.insert_messages(v_user, v_id, v_first, p_messages, v_count, v_gone, p_author_id);
  if v_fresh = v_count then
    if num_nonnulls(v_manifest, p_branch, p_retention) > 0 or v_first >> 10 < v_first + v_count >> 10
       or v_private or starts_with(v_user, 'space:') then -- whose own retention holds
      v_expired := memory_private.finish_append(
        v_user, v_id, v_first, v_count, null, v_manifest, p_branch, v_place, p_retention, v_private);
    end if;
    for v_each in v_first .. v_first + v_count - 1 loop -- cheaper than a query
      v_sequences := array_append(v_sequences, v_each);
    end loop;
    v_user := set_config('memory.read_owner', '', true);
    return jsonb_build_object(
      'conversation_id', v_id, 'sequences', to_jsonb(v_sequences), 'message_ids', to_jsonb(v_ids),
      'appended', v_count, 'updated', '[]'::jsonb) || v_whose
      || case when v_expired = 0 then '{}' else jsonb_build_object('expired', v_expired) end;
  end if;

  v_stored := memory_private.update_messages(v_user, v_id, v_first, p_messages, p_replace, p_branch, p_author_id);
  -- Return the unused sequences, and correct the counts to what was stored.
  update memory.conversations c
     set next_sequence = v_first + v_fresh,
         message_count = c.message_count - v_count + v_fresh,
         total_characters = c.total_characters + v_stored.characters,
         total_tokens = c.total_tokens + v_stored.tokens,
         updated_at = case when v_fresh = 0 and v_stored.updated = '{}' then c.updated_before else c.updated_at end
   where c.user_id = v_user and c.id = v_id;
  v_expired := memory_private.finish_append(
    v_user, v_id, v_first, v_fresh, v_stored.edited, v_manifest, p_branch, v_place, p_retention, v_private);
  v_user := set_config('memory.read_owner', '', true);
  return jsonb_build_object(
    'conversation_id', v_id, 'sequences', to_jsonb(v_stored.sequences), 'message_ids', to_jsonb(v_ids),
    'appended', v_fresh, 'updated', to_jsonb(v_stored.updated)) || v_whose
    || case when v_expired = 0 then '{}' else jsonb_build_object('expired', v_expired) end
    || case when p_replace then '{}' else jsonb_build_object('different', v_stored.different) end
    || case when v_stored.repeated = '{}' then '{}' else jsonb_build_object('repeated', v_stored.repeated) end;
end
$function$;
comment on function public.memory_append is
  'langchain-supabase-memory: Append messages to a conversation, in order and all or none; the first append begins the
  conversation. Sequences have no gaps. A message whose id is there already is not stored twice, so that a retry is
  safe; one that was forgotten or has expired is not brought back.

p_thread_id: the thread of the conversation.
p_messages: the messages, a list of objects. An empty list stores nothing.
- role: text or null. user, assistant, system or tool; null: as type says.
- content: json or null. What it says: a text, or a list of texts and blocks. Not beside data or payload.
- name: text or null. Who speaks.
- tool_calls: object[] or null. The calls of an assistant, as LangChain or OpenAI has them.
- tool_call_id: text or null. Of a tool: the call that it answers. Needed there.
- status: text or null. Of a tool: success or error; null: success.
- artifact: json or null. Of a tool: what is kept beside its content.
- usage_metadata: object or null. Of an assistant: as LangChain has it.
- response_metadata: object or null. The same.
- additional_kwargs: object or null. The same.
- type: text or null. In place of role: human, ai, system or tool.
- data: object or null. With type: the message as LangChain''s toDict() gives it.
- id: text or null. Names the message within the conversation, 1 to 512 bytes; null: one is drawn.
- text: text or null. What is searched and shown as its words; null: taken from the content.
- characters: integer or null. How many characters it counts in a budget; at least those of its text; null: counted.
- tokens: integer or null. About how many tokens it has; at least a fifth of the characters of its text; null:
  estimated.
- created_at: timestamp or null. When it was said; null: now.
- metadata: object or null. What is kept beside it. Of a message that is replaced, null keeps what is there.
- images: json[] or null. Its media, as references; null: taken from the content.
- payload: object or null. The whole message, {"type": text, "data": object}; it comes back as it was, in its order of
  keys; null: made of what is said here.
p_user_id: the owner; null: the subject of the caller''s token.
p_agent_id: the agent of the conversation.
p_replace: whether a message that is there with another payload is replaced. What was made from the old one is taken
  back.
p_retention: what is kept. What is beyond it is removed with this append. Null: nothing is removed. In a space its own
  setting holds in place of what is passed, here and in every verb.
- turns: integer or null. So many complete turns.
- messages: integer or null. So many messages.
- age: number or null. Messages that are no older, in seconds.
- summary_age: number or null. Summaries and a board whose newest change is no older, in seconds.
p_branch: what a graph''s state holds, where the messages come from one; what the state takes away is set aside. Null:
  they come from none.
- token: text. Names the state.
- expected: text or null. The token of the state that is thought to be stored here.
- after: text or null. The id of the last message that is known to be stored; null: of none it is known.
- ids: text[]. The ids of the state''s messages after that, also of those that are not stored.
- resent: text[] or null. Those of ids that belong to a history which may have been sent again under new ids: nothing is
  stored where one of them is unknown here, though there are messages. Null: none.
- named: boolean. Whether the run names the checkpoint that it goes on from: what lies beyond that is left.
- removed: text[] or null. The ids of messages that the state held and has no more. Null: that is not known.
- since: text or null. Without removed, the id of the message after which a lack counts; null: the first of the state.
- all: boolean. Whether a lack counts from the beginning of the conversation on.
- waiting: integer. How many of the first messages are not the state''s, but waited to be stored.
- run: text or null. The run of LangGraph''s server, which the metadata of its messages names as run.
- ended: text or null. The run that stored before, where it was answered as unfinished and looked at.
- owner: text or null. Whose state it is, as it was answered before; null: nobody knows.
- database: text or null. The database, as it was answered before. Null: it is answered; absent: it is this one.
- author: text or null. In a space, the member whose state it is, who is the subject of the token of who is signed in: only
  what they wrote is set aside, brought back or replaced. Null: all of it is.
p_manifest: what stood in the prompt that the messages answer, as pack of memory_manifests: lists of whole numbers, at
  most 1024 bytes. It is stored with the messages if one of them is new. What is none is left out, and nothing is refused
  for it. Null: nobody says.
p_author_id: in a space, who wrote the messages. Only a server says so: of who is signed in it is the subject of the
  token, who replaces only what they wrote themselves. Null elsewhere.
p_private: whether a conversation that these messages begin is private: nothing is derived from it, and it is gone a day
  after its last message. Each of its messages is shown for a day. One that is private stays so without it.
Returns: object.
- conversation_id: uuid or null. The conversation; null if nothing was passed or stored.
- sequences: (integer or null)[] or null. The number of each message in the order in which they were passed; null
  for one that was forgotten or has expired. Null as a whole if the branch is elsewhere and nothing was stored.
- message_ids: text[]. The id of each message in the order in which they were passed. Not where nothing is stored
  because of the branch.
- appended: integer. How many are new.
- updated: text[]. The ids of those that were replaced.
- expired: integer. Only where p_retention, or that it is private, removed some: how many messages.
- different: text[]. Only without p_replace, and where some were there already: the ids of those that are there with
  another payload, which stays.
- repeated: text[]. Only where there are some: the ids of those that have another message''s id, which was said before a
  later question. They are not stored: give them ids of their own, and pass them again.
- owner: text. Only with a p_branch whose database is null: whose state it is, as a digest.
- database: text. With owner: which database this is.
- foreign: text. Only with p_branch: owner or database, where the state is another''s. Nothing is stored.
- lacking: text[]. Only with p_branch: the ids of messages that a graph stored and the state lacks, the newest first.
  Nothing is stored: pass those that the state held once as removed.
- unfinished: text. Only with p_branch, beside lacking: the run of a server that stored these and came to no answer.
- moved: boolean. Only with p_branch, and only true: another state was stored since, and nothing is stored now.
- unfamiliar: boolean. Only with p_branch and resent, and only true: a message of the history is unknown here, and
  nothing is stored.
Errors:
- PT400: no p_user_id is given, and the caller''s token names nobody; p_messages is no list; a message has an unknown
  key, a value of another type, or says too little: the text names its position and the key; or p_branch has a value of
  another type: the text names its key.
- PT404: there is no such space, or the caller is not in it.
- PT409: p_private is passed, and the conversation was begun without it; or p_user_id names a space, and spaces are not
  switched on in this database.
- PT413: p_messages or p_branch is larger than call_bytes, the list longer than call_items, or a message larger than
  message_bytes (see memory_limits).
- 23514: the id, payload, metadata or images of a message cannot be read, or its characters or tokens cannot be
  right; the name of the constraint says which.
- PT403: the caller may not write there, or would replace what another member wrote.
- 40001: the conversation was forgotten at the same time. Call again.';

create function public.memory_read(
  p_thread_id text,
  p_user_id   text        default null,
  p_agent_id  text        default 'default',
  p_last      integer     default null,
  p_since     timestamptz default null,
  p_until     timestamptz default null,
  p_from      bigint      default null,
  p_to        bigint      default null,
  p_limit     integer     default 1000,
  p_columns   json        default '["payload"]',
  p_retention json        default null,
  p_display   boolean     default false, -- only what a chat page shows: no tool's call or result, no system message
  p_superseded boolean    default false  -- what a graph has left, in place of what stands
) returns json -- {"messages", "more"}: json, not jsonb, so that the payload keeps its key order on the way out as well
language plpgsql stable security invoker set search_path = ''
set enable_sort = off set jit = off
as $function$
declare
  v_user    text := memory_private.resolve_owner(p_user_id);
  v_c       memory.conversations;
  v_gone    record; -- what has expired
  v_limit   integer := greatest(0, least(coalesce(p_last, p_limit), 1000));
  v_columns text[];
  v_found   json;
begin
  select c.* into v_c from memory.conversations c
   where c.user_id = v_user and c.agent_id = p_agent_id and c.thread_id = p_thread_id;
  if not found then
    return '{"messages": [], "more": false}';
  end if;
  v_gone := memory_private.find_expired(v_c, p_retention);
  v_columns := array(
    select quote_ident(c) from json_array_elements_text(p_columns) c
    where c in ('message_id', 'role', 'text', 'characters', 'tokens', 'created_at', 'updated_at', 'metadata', 'images',
                'payload', 'unreadable', 'author_id', 'author_name', 'parent'));

  -- Built here, so that only the requested columns are read and each kind of range gets its own plan. Only a window of
  -- times is sorted by sequence. A page ends at its maximum of rows or bytes.
  if p_since is not null or p_until is not null then
    perform set_config('enable_sort', 'on', true);
  end if;
  execute format($sql$
    select json_build_object(
             'messages', coalesce(json_agg((select r from (select t.sequence %1$s) r) order by t.sequence)
                                  filter (where t.place <= %9$s and t.before < %10$s), '[]'),
             'more', coalesce(bool_or(t.place > %9$s or t.before >= %10$s), false))
    from (select m.sequence %2$s, row_number() over w as place, sum(%3$s) over w - %3$s as before
          from memory.%12$I m
          where m.user_id = $1 and m.conversation_id = $2 and m.sequence between %7$s and %8$s %4$s %5$s %11$s
          window w as (order by m.sequence %6$s) order by m.sequence %6$s limit %9$s + 1) t
    $sql$,
    /* 1 columns  */ (select string_agg(', t.' || c, '') from unnest(v_columns) c),
    /* 2 the same */ (select string_agg(case c when 'author_name' then ', $6 ->> m.author_id as author_name' else ', m.' || c end, '')
                      from unnest(v_columns) c),
    /* 3 bytes    */ case when v_columns && array['payload', 'text', 'metadata', 'images'] then 'm.bytes' else '0' end,
    /* 4 window   */ case when p_since is not null or p_until is not null
                          then 'and m.created_at >= $3 and m.created_at < $4' end,
    /* 5 expired  */ case when v_gone.holes <> '{}' then 'and not m.sequence <@ $5' end,
    /* 6 order    */ case when p_last is null then 'asc' else 'desc' end,
    /* 7 from     */ greatest(p_from, v_gone.first),
    /* 8 to       */ coalesce(p_to, 9223372036854775807),
    /* 9 limit    */ v_limit,
    /* 10 size    */ (memory_private.current_limits()).answer_bytes,
    /* 11 display */ case when p_display then
      'and m.role in (''user'', ''assistant'') and (m.text <> '''' or m.images is not null)' end,
    /* 12 table   */ case when p_superseded then 'superseded_messages' else 'conversation_messages' end)
  into v_found
  using v_user, v_c.id, coalesce(p_since, '-infinity'), coalesce(p_until, 'infinity'), v_gone.holes,
    memory_private.person_labels(v_user);
  return v_found;
end
$function$;
comment on function public.memory_read is
  'langchain-supabase-memory: Read messages of a conversation, in order: the newest, a window of time, a range of
  sequences, or a page. Nothing is written.

p_thread_id: the thread of the conversation.
p_user_id: the owner; null: the subject of the caller''s token.
p_agent_id: the agent of the conversation.
p_last: the newest so many, at most 1000; null: from the beginning.
p_since: only messages of this time or later; null: of any.
p_until: only messages before this time; null: of any.
p_from: only messages from this sequence on; null: from the first.
p_to: only messages up to this sequence; null: to the last.
p_limit: the most messages of one answer if p_last is null, at most 1000.
p_columns: what is read of each message, beside its sequence: any of message_id, role, text, characters, tokens,
  created_at, updated_at, metadata, images, payload, unreadable, author_id, author_name and parent. Other names are
  passed over.
p_retention: what is kept, as in memory_append; null: everything. What is beyond it is left out.
p_display: only what a chat page shows: what the user and the assistant said, without calls, results and system
  messages.
p_superseded: the messages that a graph has left, in place of those that stand.
Returns: object.
- messages: object[]. The messages in the order of their sequences; empty if there is no such conversation. Each has
  the keys that p_columns names.
- messages[].sequence: integer. Its number in the conversation, from 0.
- messages[].message_id: text. Its id.
- messages[].role: text. user, assistant, system or tool.
- messages[].text: text. Its words.
- messages[].characters: integer. How many characters it counts in a budget.
- messages[].tokens: integer. About how many tokens it has.
- messages[].created_at: timestamp. When it was said.
- messages[].updated_at: timestamp or null. When it was last replaced.
- messages[].metadata: object or null. What was stored beside it.
- messages[].images: json[] or null. Its images.
- messages[].payload: object. The whole message, as it was stored.
- messages[].unreadable: text or null. Why no message could be made of the payload, in a word.
- messages[].author_id: text or null. In a space: who wrote it. Null elsewhere.
- messages[].author_name: text or null. In a space: what its author is called there. Null elsewhere.
- messages[].parent: integer or null. Where a branch of a graph begins: the message that it follows, or -1 and down where
  it begins in place of message 0 and up. Null of any other message.
- more: boolean. Whether there are more. A page ends at p_limit, or at about answer_bytes: go on after its last
  sequence, with p_last before its first.
Errors:
- PT400: no p_user_id is given, and the caller''s token names nobody.';

create function public.memory_count(
  p_thread_id text,
  p_user_id   text default null,
  p_agent_id  text default 'default',
  p_retention json default null
) returns bigint
language plpgsql stable security invoker set search_path = ''
as $function$
declare
  v_user text := memory_private.resolve_owner(p_user_id);
  v_c    memory.conversations;
begin
  select c.* into v_c from memory.conversations c
   where c.user_id = v_user and c.agent_id = p_agent_id and c.thread_id = p_thread_id;
  if not found then
    return 0;
  end if;
  return ((memory_private.find_expired(v_c, p_retention)).conversation).message_count;
end
$function$;
comment on function public.memory_count is
  'langchain-supabase-memory: How many messages a conversation holds.

p_thread_id: the thread of the conversation.
p_user_id: the owner; null: the subject of the caller''s token.
p_agent_id: the agent of the conversation.
p_retention: what is kept, as in memory_append; null: everything. What is beyond it is left out.
Returns: integer. 0 if there is no such conversation.
Errors:
- PT400: no p_user_id is given, and the caller''s token names nobody.';

create function public.memory_forget(
  p_thread_id  text    default null,
  p_user_id    text    default null,
  p_agent_id   text    default null, -- null: 'default' with a thread, all agents with everything
  p_dry_run    boolean default false,
  p_everything boolean default false -- all threads of the user, with this agent or with all
) returns jsonb
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_user    text;
  v_agent   text := coalesce(p_agent_id, case when not p_everything then 'default' end);
  v_is_all  boolean := p_everything and p_agent_id is null;
  v_receipt jsonb;
  v_shared  jsonb := '{"authored": 0, "memberships": 0, "spaces": 0}';
  v_given   bigint; -- contributions
  v_profile bigint; -- items that nothing else says
begin
  if starts_with(p_user_id, 'space:') and not memory_private.is_server() then
    return memory_private.act_as_member('memory_forget', p_user_id, jsonb_build_object(
      'thread_id', p_thread_id, 'agent_id', p_agent_id, 'dry_run', p_dry_run, 'everything', p_everything));
  end if;
  v_user := memory_private.resolve_writer(p_user_id);
  if p_thread_id is null <> p_everything then
    raise exception 'a thread, or everything' using errcode = 'PT400';
  end if;
  -- Spaces come first, as their locks do.
  if v_is_all and memory_private.has_spaces() and not starts_with(v_user, 'space:') then
    if memory_private.is_server() then
      v_shared := memory_private.forget_shared(v_user, p_dry_run);
    else
      v_shared := memory_private.act_as_member('forget_shared', v_user, jsonb_build_object('dry_run', p_dry_run));
    end if;
  end if;
  if not p_dry_run then
    -- Lock in the order that memory_forget_expired uses. Counts that an append changes meanwhile are seen.
    perform 1 from memory.conversations c
     where c.user_id = v_user and (v_agent is null or c.agent_id = v_agent)
       and (p_thread_id is null or c.thread_id = p_thread_id)
     order by c.user_id, c.id
       for update;
  end if;
  select jsonb_build_object(
           'conversations', count(*),
           'messages', coalesce(sum(c.message_count + (
             select count(*) from memory.superseded_messages s
             where s.user_id = v_user and s.conversation_id = c.id)), 0),
           'segments', coalesce(sum((
             select count(*) from memory.conversation_summaries s
             where s.user_id = v_user and s.conversation_id = c.id)), 0),
           'chunks', coalesce(sum(c.chunk_count), 0),
           'items', case when v_is_all
                         then (select count(*) from memory.store_items i where i.user_id = v_user) else 0 end)
    into v_receipt from memory.conversations c
   where c.user_id = v_user and (v_agent is null or c.agent_id = v_agent)
     and (p_thread_id is null or c.thread_id = p_thread_id);
  -- What was contributed from there, or in a space to it.
  select count(*) into v_given
    from memory.conversations c
   cross join lateral (
     select from memory.contributions b where b.user_id = c.user_id and b.conversation_id = c.id offset 0) b
   where c.user_id = v_user and (v_agent is null or c.agent_id = v_agent)
     and (p_thread_id is null or c.thread_id = p_thread_id);
  if starts_with(v_user, 'space:') and coalesce(v_agent, 'default') = 'default' and coalesce(p_thread_id, 'board') = 'board' then
    select count(*) into v_given from memory.contributions b where b.space_id = v_user;
    if not p_dry_run then
      delete from memory.contributions b where b.space_id = v_user;
    end if;
  end if;
  v_profile := memory_private.forget_profile(v_user, v_agent, p_thread_id, p_dry_run);
  v_receipt := v_receipt || jsonb_build_object('contributions', v_given, 'profile', v_profile) || v_shared;
  if not p_dry_run then
    delete from memory.contributions b
     using memory.conversations c
     where b.user_id = v_user and c.user_id = v_user and b.conversation_id = c.id
       and (v_agent is null or c.agent_id = v_agent) and (p_thread_id is null or c.thread_id = p_thread_id);
    if v_is_all then
      perform memory_private.lock_profile(v_user), memory_private.delete_topics(v_user);
    end if;
    -- Everything derived is deleted with the conversation's row.
    delete from memory.conversations c
     where c.user_id = v_user and (v_agent is null or c.agent_id = v_agent)
       and (p_thread_id is null or c.thread_id = p_thread_id);
    if v_is_all then
      perform memory_private.delete_usage(v_user);
    end if;
    -- Long-term memory belongs to the user,
    delete from memory.store_items i where v_is_all and i.user_id = v_user;
    -- and so do opt-outs.
    delete from memory.opt_outs o where v_is_all and o.user_id = v_user;
    delete from memory.control_changes h where v_is_all and h.user_id = v_user;
  end if;
  return v_receipt;
end
$function$;
comment on function public.memory_forget is
  'langchain-supabase-memory: Delete a conversation, or all of a user, with everything that was made from it. What was
  moved to a long-term memory elsewhere is named by memory_withdrawn afterwards.

p_thread_id: the thread of the conversation; null with p_everything.
p_user_id: the owner; null: the subject of the caller''s token.
p_agent_id: the agent; null: ''default'' with a thread, all agents with p_everything.
p_dry_run: only say what would go.
p_everything: all conversations of the user with this agent. With all agents also the items of the store, the
  opt-outs, the record of changes, and what the user shared: their messages and quotes in spaces, and being in these.
Returns: object.
- conversations: integer. How many conversations went.
- messages: integer. How many messages.
- segments: integer. How many summaries.
- chunks: integer. How many chunks.
- items: integer. How many items of the store.
- contributions: integer. How many quotes went from the boards of spaces with what they quote.
- profile: integer. How many items of the user''s profile went, as nothing else says so; with p_everything all of them.
- authored: integer. How many messages the user wrote in spaces, with p_everything; with each goes what was made from it.
- memberships: integer. In how many spaces the user was.
- spaces: integer. How many spaces went that nobody is left to manage. Elsewhere a contributor manages on.
Errors:
- PT400: both a thread and p_everything are given, or neither; or no p_user_id is given, and the caller''s token
  names nobody.
- PT404: there is no such space, or the caller is not in it.
- PT409: p_user_id names a space, and spaces are not switched on in this database.
- PT403: in a space, the caller does not manage it.';

create function public.memory_forget_message(
  p_thread_id  text,
  p_message_id text,
  p_user_id    text    default null,
  p_agent_id   text    default 'default',
  p_dry_run    boolean default false
) returns jsonb
language plpgsql volatile security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
declare
  v_user     text;
  v_id       uuid;
  v_next     bigint;
  v_row      record;
  v_place    int8multirange;
  v_now      timestamptz;
  v_from     bigint;
  v_segments bigint;
  v_end      bigint;
  v_chunks   bigint;
  v_aside    boolean; -- whether it is on no branch now
  v_given    bigint;
  v_profile  bigint; -- items that nothing else says
begin
  if starts_with(p_user_id, 'space:') and not memory_private.is_server() then
    return memory_private.act_as_member('memory_forget_message', p_user_id, jsonb_build_object(
      'thread_id', p_thread_id, 'message_id', p_message_id, 'agent_id', p_agent_id, 'dry_run', p_dry_run));
  end if;
  v_user := memory_private.resolve_writer(p_user_id);
  if p_dry_run then -- also where nothing can be locked, as on a replica
    select c.id, c.next_sequence into v_id, v_next from memory.conversations c
     where c.user_id = v_user and c.agent_id = p_agent_id and c.thread_id = p_thread_id;
  else
    select c.id, c.next_sequence into v_id, v_next from memory.conversations c
     where c.user_id = v_user and c.agent_id = p_agent_id and c.thread_id = p_thread_id
       for no key update;
  end if;
  select count(*) into v_given from memory.contributions b
   where b.user_id = v_user and b.conversation_id = v_id and b.message_id = p_message_id;
  if v_given > 0 and not p_dry_run then
    delete from memory.contributions b
     where b.user_id = v_user and b.conversation_id = v_id and b.message_id = p_message_id;
  end if;
  v_profile := memory_private.delete_profile_evidence(v_user, v_id, array[p_message_id], null, p_dry_run);
  select t.sequence, t.characters, t.tokens into v_row
    from (select m.message_id, m.sequence, m.characters, m.tokens from memory.conversation_messages m
          where m.user_id = v_user and m.conversation_id = v_id and m.message_id >= p_message_id
          order by m.message_id limit 1) t
   where t.message_id = p_message_id;
  v_aside := v_row.sequence is null;
  if v_aside then
    select s.sequence, 0 as characters, 0 as tokens into v_row from memory.superseded_messages s
     where s.user_id = v_user and s.conversation_id = v_id and s.message_id = p_message_id;
    v_aside := v_row.sequence is not null;
  end if;
  if v_row.sequence is null then
    -- It may have expired and still be in summaries made from it,
    select s.from_sequence into v_from from memory.conversation_summaries s
     where s.user_id = v_user and s.conversation_id = v_id and p_message_id = any (s.message_ids)
     order by s.level, s.number limit 1;
    -- or on the board,
    select least(v_from, min(i.sequences[array_position(i.message_ids, p_message_id)])) into v_from
      from memory.conversation_board_items i
     where i.user_id = v_user and i.conversation_id = v_id and p_message_id = any (i.message_ids);
    -- or in the board's summary, of which only the range is known.
    if v_from is null and exists (
      select from memory.gone_messages g
      where g.user_id = v_user and g.conversation_id = v_id and g.message_id = p_message_id and not g.forgotten)
      and not p_dry_run
    then
      perform memory_private.invalidate_board(v_user, v_id, 0, p_message_id);
      update memory.conversations c set revision = c.revision + 1 where c.user_id = v_user and c.id = v_id;
      update memory.gone_messages g set forgotten = true
       where g.user_id = v_user and g.conversation_id = v_id and g.message_id = p_message_id;
    end if;
  end if;
  if coalesce(v_row.sequence, v_from) is null then
    return jsonb_build_object('conversations', 0, 'messages', 0, 'segments', 0, 'chunks', 0, 'contributions', v_given, 'profile', v_profile);
  end if;
  select coalesce(max(t.number), 0) into v_segments
    from (select s.number from memory.conversation_summaries s
          where s.user_id = v_user and s.conversation_id = v_id and s.level = 0 order by s.number desc limit 1) t;
  select v_segments - coalesce(max(t.number), 0) into v_segments
    from (select s.number from memory.conversation_summaries s
          where s.user_id = v_user and s.conversation_id = v_id and s.level = 0
            and s.to_sequence < coalesce(v_row.sequence, v_from)
          order by s.number desc limit 1) t;
  select v_segments + count(*) into v_segments from memory.conversation_summaries s
   where s.user_id = v_user and s.conversation_id = v_id and s.level > 0
     and s.to_sequence >= coalesce(v_row.sequence, v_from);
  select k.to_sequence into v_end from memory.working_memory_chunks k
   where k.user_id = v_user and k.conversation_id = v_id and k.to_sequence >= v_row.sequence
   order by k.to_sequence limit 1;
  select count(*) into v_chunks
    from (select k.from_sequence, k.stale from memory.working_memory_chunks k
          where k.user_id = v_user and k.conversation_id = v_id and k.to_sequence between v_row.sequence and v_end
          order by k.to_sequence) t
   where t.from_sequence <= v_row.sequence and not t.stale;
  if v_row.sequence is null and not p_dry_run then
    perform memory_private.invalidate_summaries(v_user, v_id, v_from, p_message_id);
  elsif not p_dry_run then
    v_place := int8multirange(int8range(v_row.sequence, v_row.sequence, '[]'));
    perform memory_private.update_block_counts(v_user, v_id, v_place, -1, v_next);
    perform memory_private.delete_message_range(v_user, v_id, v_row.sequence, v_row.sequence);
    perform memory_private.update_block_counts(v_user, v_id, v_place, 1, v_next);
    delete from memory.superseded_messages s
     where v_aside and s.user_id = v_user and s.conversation_id = v_id and s.sequence = v_row.sequence;
    v_now := clock_timestamp();
    -- Its sequence is not reused: references to ranges keep their meaning.
    update memory.conversations c
       set message_count = c.message_count - (not v_aside)::integer,
           has_gone = true,
           total_characters = c.total_characters - v_row.characters,
           total_tokens = c.total_tokens - v_row.tokens,
           updated_at = v_now
     where c.user_id = v_user and c.id = v_id;
    perform memory_private.invalidate_summaries(v_user, v_id, v_row.sequence, p_message_id);
    perform memory_private.invalidate_chunks(v_user, v_id, v_row.sequence, v_row.sequence);
    perform memory_private.delete_turn_manifests(v_user, v_id, v_row.sequence);
  end if;
  if not p_dry_run then
    insert into memory.gone_messages (user_id, conversation_id, message_id, forgotten)
    values (v_user, v_id, p_message_id, true)
    on conflict (user_id, conversation_id, message_id) do update set forgotten = true;
  end if;
  return jsonb_build_object(
    'conversations', 0, 'messages', (v_row.sequence is not null)::integer, 'segments', v_segments, 'chunks', v_chunks,
    'contributions', v_given, 'profile', v_profile);
end
$function$;
comment on function public.memory_forget_message is
  'langchain-supabase-memory: Delete one message, and take back what was made from it. The sequences of the others
  stay. The id is remembered, so that no retry brings the message back. One that has expired goes from the summaries
  and the board that tell of it.

p_thread_id: the thread of the conversation.
p_message_id: the id of the message.
p_user_id: the owner; null: the subject of the caller''s token.
p_agent_id: the agent of the conversation.
p_dry_run: only say what would go.
Returns: object. All are 0 if there is no such message.
- conversations: integer. Always 0.
- messages: integer. 1 if the message was stored.
- segments: integer. How many summaries were made from it, or built on one that was.
- chunks: integer. How many chunks had words of it.
- contributions: integer. How many quotes of it went from the boards of spaces.
- profile: integer. How many items of the user''s profile went, as no other message says so.
Errors:
- PT400: no p_user_id is given, and the caller''s token names nobody.
- PT404: there is no such space, or the caller is not in it.
- PT409: p_user_id names a space, and spaces are not switched on in this database.
- PT403: in a space, the caller neither wrote the message nor manages the space.';

create function public.memory_set_aside(
  p_thread_id text,
  p_rows      json, -- [{"sequence", "reason"}]: a word, never content
  p_user_id   text default null,
  p_agent_id  text default 'default'
) returns jsonb -- the sequences of those that were not known as unreadable
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_user text := memory_private.resolve_writer(p_user_id);
  v_id   uuid;
  v_new  jsonb;
begin
  perform memory_private.check_limits(p_rows);
  select c.id into v_id from memory.conversations c
   where c.user_id = v_user and c.agent_id = p_agent_id and c.thread_id = p_thread_id
     for no key update;
  with aside as (
    update memory.conversation_messages m
       set unreadable = left(i.reason, 100)
      from json_to_recordset(p_rows) as i (sequence bigint, reason text)
     where m.user_id = v_user and m.conversation_id = v_id and m.sequence = i.sequence and m.unreadable is null
    returning m.sequence)
  select jsonb_agg(a.sequence order by a.sequence) into v_new from aside a;
  return coalesce(v_new, '[]');
end
$function$;
comment on function public.memory_set_aside is
  'langchain-supabase-memory: Note messages of which a client can make nothing, so that they are passed over. A new
  payload, by memory_append, takes the note away.

p_thread_id: the thread of the conversation.
p_rows: the messages, a list of objects.
- sequence: integer. The number of the message.
- reason: text. Why, in a word and without content; cut at 100 characters.
p_user_id: the owner; null: the subject of the caller''s token.
p_agent_id: the agent of the conversation.
Returns: integer[]. The sequences of those that had not been noted before.
Errors:
- PT400: no p_user_id is given, and the caller''s token names nobody.
- PT413: an argument is larger than call_bytes, or a list in it longer than call_items (see memory_limits).';

create function public.memory_unreadable(
  p_user_id   text    default null, -- null: everybody that the caller may see
  p_limit     integer default 1000,
  p_after     json    default null  -- the row at which the last page ended
) returns jsonb
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_custom_plan -- so that one user's messages, and each page, are a range of the index
as $function$
begin
  p_user_id := memory_private.resolve_scope(p_user_id);
  return coalesce((
    select jsonb_agg(to_jsonb(r) order by r.user_id, r.conversation_id, r.sequence)
    from (
      select m.user_id, m.conversation_id, c.agent_id, c.thread_id, m.sequence, m.message_id, m.unreadable as reason
      from memory.conversation_messages m
      join memory.conversations c on c.user_id = m.user_id and c.id = m.conversation_id
      where m.unreadable is not null and (p_user_id is null or m.user_id = p_user_id)
        and (p_after is null or (m.user_id, m.conversation_id, m.sequence)
             > (p_after ->> 'user_id', (p_after ->> 'conversation_id')::uuid, (p_after ->> 'sequence')::bigint))
      order by m.user_id, m.conversation_id, m.sequence
      limit greatest(0, least(p_limit, 1000))) r), '[]');
end
$function$;
comment on function public.memory_unreadable is
  'langchain-supabase-memory: List the messages that were set aside because nothing could be made of them, by pages.

p_user_id: only this owner''s; null: everybody''s that the caller may see.
p_limit: the most of one answer, at most 1000.
p_after: the row at which the last page ended; null: from the beginning.
- user_id: text. As in the row.
- conversation_id: uuid. As in the row.
- sequence: integer. As in the row.
Returns: object[].
- [].user_id: text. The owner.
- [].conversation_id: uuid. The conversation.
- [].agent_id: text. Its agent.
- [].thread_id: text. Its thread.
- [].sequence: integer. The number of the message.
- [].message_id: text. The id of the message.
- [].reason: text. Why, in a word.
Errors: none.';

-- Makes a repaired message readable again, and invalidates what was made without it, as after an edit.
create or replace function memory_private.invalidate_repaired_message() returns trigger
language plpgsql volatile security invoker set search_path = ''
as $function$
begin
  update memory.conversation_messages m set unreadable = null
   where m.user_id = new.user_id and m.conversation_id = new.conversation_id and m.sequence = new.sequence;
  perform memory_private.reindex_from(new.user_id, new.conversation_id, new.sequence);
  perform memory_private.invalidate_summaries(new.user_id, new.conversation_id, new.sequence);
  return null;
end
$function$;
create or replace trigger conversation_messages_repaired after update of payload on memory.conversation_messages
  for each row
  when (old.unreadable is not null and new.unreadable is not null and old.payload::text <> new.payload::text)
  execute function memory_private.invalidate_repaired_message();
