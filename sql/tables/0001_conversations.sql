-- Conversations and their messages.

-- What names something has 1 to 512 bytes of UTF-8, so that three of them fit into a row of an index, and no control
-- characters; Python has the same rule in `models.check_id`. A count or a place is what every reader of JSON can hold, a
-- time what every calendar can. These rules are written out in each constraint: a function would be called for each row.

-- A list of texts, none of them missing. Part of the tables: it is never changed.
create function memory_private.is_list(p_value text[]) returns boolean
language sql immutable security invoker set search_path = ''
as $function$
  select coalesce(array_ndims(p_value), 1) = 1 and array_position(p_value, null) is null
     and octet_length(array_to_string(p_value, '')) <= 16777216
$function$;

-- Whether a document is nested so little that every reader can follow: at most 120 levels. One with few brackets cannot be
-- nested more. Part of the tables: it is never changed.
create function memory_private.is_flat(p_document text) returns boolean
language sql immutable security invoker set search_path = ''
as $function$
  select length(p_document) - length(translate(p_document, '[{', '')) <= 120
      or not jsonb_path_exists(p_document::jsonb, 'strict $.**{121}')
$function$;

-- The bytes of a message, if it is one: what cannot be read, is beyond every limit or lies about its size is refused
-- here, and so only where one of these columns is written. Part of the table: it is never changed.
create function memory_private.weighed(
  p_payload json, p_text text, p_metadata jsonb, p_images jsonb, p_characters integer, p_tokens integer
) returns integer
language plpgsql immutable security invoker set search_path = ''
as $function$
declare
  v_payload text := p_payload::text;
  v_bytes   bigint := octet_length(v_payload) + octet_length(p_text);
begin
  if p_metadata is not null then
    v_bytes := v_bytes + octet_length(p_metadata::text);
  end if;
  if p_images is not null then
    v_bytes := v_bytes + octet_length(p_images::text);
  end if;
  if v_bytes > 33554432 then
    raise exception 'a message has more than 32 MiB' using errcode = 'PT413', hint = 'leave media out, or send a link';
  end if;
  if json_typeof(p_payload -> 'type') is distinct from 'string' -- null for what is no object, too
     or json_typeof(p_payload -> 'data') is distinct from 'object'
     -- One with few brackets is not nested deeply.
     or length(v_payload) - length(translate(v_payload, '[{', '')) > 120 and not memory_private.is_flat(v_payload)
     or strpos(v_payload, '\u0000') > 0 and p_payload::jsonb is null -- a NUL cannot be cast
     or p_metadata is not null and (jsonb_typeof(p_metadata) <> 'object' or not memory_private.is_flat(p_metadata::text))
     or p_images is not null and (jsonb_typeof(p_images) <> 'array' or not memory_private.is_flat(p_images::text))
  then
    raise exception 'a message''s payload, metadata or images cannot be read'
      using errcode = '23514', constraint = 'conversation_messages_payload_check',
            hint = 'the payload is {"type": text, "data": object}, nested at most 120 levels';
  end if;
  if p_characters not between length(p_text) and 2 * v_bytes + 1000
     or p_tokens not between length(p_text) / 5 and 100 * v_bytes + 1000
  then
    raise exception 'a message''s characters or tokens cannot be right'
      using errcode = '23514', constraint = 'conversation_messages_size_check',
            hint = 'characters are at least those of its text, tokens a fifth of that, and neither is beyond the payload';
  end if;
  return v_bytes;
end
$function$;

-- One row per conversation; it is also the lock and the counter behind gap-free sequences.
create table memory.conversations (
  user_id       text        not null check (
    octet_length(user_id) between 1 and 512 and user_id !~ '[\u0001-\u001f\u007f-\u009f]'),
  id            uuid        not null default gen_random_uuid(),
  agent_id      text        not null default 'default' check (
    octet_length(agent_id) between 1 and 512 and agent_id !~ '[\u0001-\u001f\u007f-\u009f]'),
  thread_id     text        not null check (
    octet_length(thread_id) between 1 and 512 and thread_id !~ '[\u0001-\u001f\u007f-\u009f]'),
  next_sequence bigint      not null default 0,
  message_count bigint      not null default 0,
  created_at    timestamptz not null default clock_timestamp(),
  updated_at    timestamptz not null default clock_timestamp(),
  primary key (user_id, id),
  unique (user_id, agent_id, thread_id),
  check (
    least(created_at, updated_at) >= '0002-01-01 00:00+00'
    and greatest(created_at, updated_at) < '9999-01-01 00:00+00')
) with (fillfactor = 70); -- the counter is updated in place (HOT) at every append

comment on table memory.conversations is
  'One ordered exchange between a user and an agent, named by (user_id, agent_id, thread_id).';

create table memory.conversation_messages (
  user_id               text        not null,
  conversation_id       uuid        not null,
  sequence              bigint      not null check (sequence >= 0),
  message_id            text        not null check (
    octet_length(message_id) between 1 and 512 and message_id !~ '[\u0001-\u001f\u007f-\u009f]'),
  role                  text        not null check (role in ('user', 'assistant', 'system', 'tool')),
  text                  text        not null default '',
  characters            integer     not null,
  tokens                integer     not null,
  cumulative_characters bigint      not null,
  created_at            timestamptz not null default clock_timestamp(),
  updated_at            timestamptz,
  metadata              jsonb,
  images                jsonb,
  payload               json        not null, -- json, not jsonb: jsonb reorders keys, which breaks prompt caches
  bytes                 integer     not null generated always as (
    memory_private.weighed(payload, text, metadata, images, characters, tokens)) stored,
  unreadable            text check (octet_length(unreadable) <= 200),
  primary key (user_id, conversation_id, sequence),
  unique (user_id, conversation_id, message_id),
  foreign key (user_id, conversation_id) references memory.conversations (user_id, id) on delete cascade,
  check (
    least(created_at, updated_at) >= '0002-01-01 00:00+00'
    and greatest(created_at, updated_at) < '9999-01-01 00:00+00'),
  check (
    least(sequence, cumulative_characters) >= -9007199254740991
    and greatest(sequence, cumulative_characters) <= 9007199254740991)
);

create index conversation_messages_created_at_idx
  on memory.conversation_messages (user_id, conversation_id, created_at);

create index conversation_messages_unreadable_idx
  on memory.conversation_messages (user_id, conversation_id, sequence) where unreadable is not null;

comment on table memory.conversation_messages is
  'One LangChain message: the lossless payload, and beside it what is searched, counted and shown.';
comment on column memory.conversation_messages.cumulative_characters is
  'Characters of this message and all before it, so that the tail of any history is one short range.';
comment on column memory.conversation_messages.bytes is
  'What the payload and the columns beside it take: reads are bounded by it.';
comment on column memory.conversation_messages.unreadable is
  'Why no message could be made of the payload, in a word; null: it could, or nobody has tried. Cleared by a new payload.';
