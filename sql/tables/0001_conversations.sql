-- Conversations and their messages: the current ones, the ids of deleted ones, and those that a fork has superseded.

-- A name has 1 to 512 bytes of UTF-8, so that three of them fit into an index row, and no control characters; Python
-- has the same rule in `models.check_id`. Every reader of JSON can hold a count or a place, and every calendar a time.
-- The rules are written out in each constraint: a function would be called for each row.

-- Says whether a list of texts contains no null. Part of the tables: it is never changed.
create function memory_private.is_text_list(p_value text[]) returns boolean
language sql immutable security invoker set search_path = ''
as $function$
  select coalesce(array_ndims(p_value), 1) = 1 and array_position(p_value, null) is null
     and octet_length(array_to_string(p_value, '')) <= 16777216
$function$;

-- Says whether a document is nested at most 120 levels deep, so that every reader can parse it. One with few brackets
-- cannot be deeper. Part of the tables: it is never changed.
create function memory_private.is_shallow(p_document text) returns boolean
language sql immutable security invoker set search_path = ''
as $function$
  select length(p_document) - length(translate(p_document, '[{', '')) <= 120
      or not jsonb_path_exists(p_document::jsonb, 'strict $.**{121}')
$function$;

-- Returns the bytes of a message, and refuses one that cannot be read, exceeds every limit, or has a false size. As a
-- generated column it runs only when one of its columns is written. Part of the table: it is never changed.
create function memory_private.checked_message_bytes(
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
     or length(v_payload) - length(translate(v_payload, '[{', '')) > 120 and not memory_private.is_shallow(v_payload)
     or strpos(v_payload, '\u0000') > 0 and p_payload::jsonb is null -- a NUL cannot be cast
     or p_metadata is not null
        and (jsonb_typeof(p_metadata) <> 'object' or not memory_private.is_shallow(p_metadata::text))
     or p_images is not null and (jsonb_typeof(p_images) <> 'array' or not memory_private.is_shallow(p_images::text))
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

-- Returns the bytes of an application's metadata of a conversation, and refuses what is no object or too large for
-- every append to carry. Part of the table: it is never changed.
create function memory_private.checked_metadata_bytes(p_metadata jsonb) returns integer
language plpgsql immutable security invoker set search_path = ''
as $function$
declare
  v_bytes integer := octet_length(p_metadata::text);
begin
  if v_bytes > 16384 then
    raise exception 'the metadata of a conversation has more than 16 KiB'
      using errcode = 'PT413', hint = 'keep less there, or in a table of your own';
  end if;
  if jsonb_typeof(p_metadata) <> 'object' or not memory_private.is_shallow(p_metadata::text) then
    raise exception 'the metadata of a conversation is no object'
      using errcode = 'PT400', hint = 'pass an object, nested at most 120 levels';
  end if;
  return v_bytes;
end
$function$;

-- One row per conversation. It is also the lock and the counter behind sequences without gaps.
create table memory.conversations (
  user_id               text        not null check (
    octet_length(user_id) between 1 and 512 and user_id !~ '[\u0001-\u001f\u007f-\u009f]'),
  id                    uuid        not null default gen_random_uuid(),
  agent_id              text        not null default 'default' check (
    octet_length(agent_id) between 1 and 512 and agent_id !~ '[\u0001-\u001f\u007f-\u009f]'),
  thread_id             text        not null check (
    octet_length(thread_id) between 1 and 512 and thread_id !~ '[\u0001-\u001f\u007f-\u009f]'),
  created_at            timestamptz not null default clock_timestamp(),
  updated_at            timestamptz not null default clock_timestamp(),
  updated_before        timestamptz,

  -- Totals of the history: what is due, what a budget leaves out, and what all of it would cost are read from one row.
  next_sequence         bigint      not null default 0,
  message_count         bigint      not null default 0,
  total_characters      bigint      not null default 0,
  total_tokens          bigint      not null default 0,
  revision              bigint      not null default 0,
  expired_through       bigint      not null default -1,
  has_gone              boolean     not null default false,
  branch_token          text check (octet_length(branch_token) <= 100),
  branch_from           bigint check (branch_from >= 0),
  graph_through         bigint      not null default -1,
  has_superseded        boolean     not null default false,

  -- How far it is summarized.
  summarized_through    bigint      not null default -1,
  summarized_characters bigint      not null default 0,
  summarized_tokens     bigint      not null default 0,
  summary_failures      integer     not null default 0,
  summary_retry_at      timestamptz,
  summary_error         text check (octet_length(summary_error) <= 1000),

  -- How far it is indexed.
  indexed_through       bigint      not null default -1,
  chunk_count           bigint      not null default 0,
  has_stale             boolean     not null default false,
  signals               smallint    not null default 0 check (signals between 0 and 255),
  unembedded_from       bigint,
  speakers              text[]      not null default '{}' check (
    cardinality(speakers) <= 50 and coalesce(array_ndims(speakers), 1) = 1 and array_position(speakers, null) is null),
  language              text check (octet_length(language) <= 63),
  index_failures        integer     not null default 0,
  index_retry_at        timestamptz,
  index_error           text check (octet_length(index_error) <= 1000),

  -- Set by people and workers.
  priority              smallint    not null default 0,
  requested_at          timestamptz,
  served_at             timestamptz,
  archived_at           timestamptz check (
    archived_at >= '0002-01-01 00:00+00' and archived_at < '9999-01-01 00:00+00'),
  opted_out_at          timestamptz check (
    opted_out_at >= '0002-01-01 00:00+00' and opted_out_at < '9999-01-01 00:00+00'),
  private               boolean     not null default false,
  withheld              boolean     not null default false,
  title                 text check (octet_length(title) <= 1000),
  metadata              jsonb,
  metadata_bytes        integer     generated always as (memory_private.checked_metadata_bytes(metadata)) stored,
  -- As memory_private.hour_of, which would be called at every append.
  updated_hour          timestamptz not null generated always as (
    date_trunc('hour', updated_at at time zone 'UTC') at time zone 'UTC') stored,

  primary key (user_id, id),
  unique (user_id, agent_id, thread_id),
  constraint conversations_private_check check (not private or opted_out_at is not null),
  check (
    least(created_at, updated_at, updated_before) >= '0002-01-01 00:00+00'
    and greatest(created_at, updated_at, updated_before) < '9999-01-01 00:00+00'),
  -- Counts are numbers that every reader of JSON can hold, and that can be added up.
  constraint conversations_counts_check check (
    greatest(
      next_sequence, message_count, total_characters, total_tokens, revision, summarized_through, summarized_characters,
      summarized_tokens, expired_through, indexed_through, chunk_count, branch_from, graph_through, unembedded_from)
      <= 9007199254740991
    and least(
      next_sequence, message_count, total_characters, total_tokens, revision, summarized_through, summarized_characters,
      summarized_tokens, expired_through, indexed_through, chunk_count, branch_from, graph_through, unembedded_from)
      >= -9007199254740991
    and greatest(summary_failures, index_failures) <= 1000000000)
) with (fillfactor = 70); -- the counter is updated in place (HOT) at every append

-- By the hour of the last change and not by its time, so that appends stay in place but for the first of an hour.
create index conversations_newest_idx on memory.conversations (user_id, updated_hour, agent_id);
create index conversations_open_idx on memory.conversations (updated_hour, user_id, id) where archived_at is null;
comment on index memory.conversations_open_idx is
  'Across owners. The conversations that changed least recently and are not archived, for workers.';

-- By the hour, too, for each combination of signals: a list by signals reads those that have them alone.
create index conversations_signals_idx on memory.conversations (user_id, signals, updated_hour, agent_id)
  where signals <> 0;

-- By the hour, too: private conversations that are a day old, of an owner and of all.
create index conversations_private_idx on memory.conversations (user_id, updated_hour) where private;
create index conversations_private_oldest_idx on memory.conversations (updated_hour, user_id, id) where private;
comment on index memory.conversations_private_oldest_idx is
  'Across owners. The private conversations that changed least recently, for what removes them.';

comment on table memory.conversations is
  'One ordered exchange between a user and an agent, named by (user_id, agent_id, thread_id).';
comment on column memory.conversations.updated_before is
  'The updated_at before the newest append, which takes it back where all it passed was stored before.';
comment on column memory.conversations.revision is
  'Counts edits and deletions of stored messages: what was computed before one of them is not committed after it.';
comment on column memory.conversations.expired_through is
  'Messages that are gone up to here have expired; those after it were forgotten. -1 if none has.';
comment on column memory.conversations.branch_token is
  'Names what a graph last stored here; drawn at random each time, so that it tells nothing of what was said.';
comment on column memory.conversations.branch_from is
  'The first sequence of what the graph''s state has held; what came before it no state can take away.';
comment on column memory.conversations.graph_through is
  'The last sequence that a graph stored; -1 if none has.';
comment on column memory.conversations.summarized_through is
  'The last sequence that a summary covers; -1 if none. Moved by compare-and-swap alone.';
comment on column memory.conversations.indexed_through is
  'The last sequence that is indexed; -1 if none. Moved by compare-and-swap alone.';
comment on column memory.conversations.signals is
  'The signals of all of its chunks, as bits.';
comment on column memory.conversations.unembedded_from is
  'From this place on a chunk may lack its vector, because there was no embedder or it failed; null: none does.';
comment on column memory.conversations.language is
  'The text search configuration of its chunks; null as long as too little was said to know.';
comment on column memory.conversations.index_error is
  'Why the embedder failed at the last try, in a word, never content; what was said is found by its words all the same.';
comment on column memory.conversations.priority is
  'Of two conversations of one owner that are due, a worker takes the one of the higher priority.';
comment on column memory.conversations.requested_at is
  'When somebody last asked for it to be summarized now; served_at: of which such wish that was done.';
comment on column memory.conversations.archived_at is
  'Since when it is archived: idle, and completely summarized. The next message brings it back.';
comment on column memory.conversations.opted_out_at is
  'Since when nothing is derived from it: its messages stay, and that is all.';
comment on column memory.conversations.private is
  'Set with its row and never later: opted out for good, and gone a day after its last message.';
comment on column memory.conversations.title is
  'What a person calls it; null: the title of its board, or the first words of its first question.';
comment on column memory.conversations.updated_hour is
  'The hour of updated_at, by which lists are read in order.';
comment on column memory.conversations.metadata_bytes is
  'What the metadata takes; checked where it is written, and not with every append.';
comment on column memory.conversations.withheld is
  'Something of it is not indexed because of a topic; taken up again when that is allowed.';

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
  created_at            timestamptz not null default clock_timestamp(),
  updated_at            timestamptz,
  metadata              jsonb,
  images                jsonb,
  payload               json        not null, -- json, not jsonb: jsonb reorders keys, which breaks prompt caches
  bytes                 integer     not null generated always as (
    memory_private.checked_message_bytes(payload, text, metadata, images, characters, tokens)) stored,
  -- A turn is complete when it has a final answer: one that says something and calls nothing, or a tool's, if the run
  -- ended with it.
  final                 boolean     not null generated always as (
    (text <> '' or images is not null)
    and case when role = 'tool'
             then coalesce(payload #>> '{data,response_metadata,supabase_memory,final}' = 'true', false)
             when role <> 'assistant' then false
             when json_typeof(payload #> '{data,tool_calls}') = 'array'
             then json_array_length(payload #> '{data,tool_calls}') = 0 else true end) stored,
  unreadable            text check (octet_length(unreadable) <= 200),
  parent                bigint check (parent < sequence and parent >= -9007199254740991),
  forked                boolean,
  question              bigint check (question >= 0 and question < sequence),
  author_id             text        check (
    author_id is null or user_id ~ '^space:' and octet_length(author_id) between 1 and 512
    and author_id !~ '[\u0001-\u001f\u007f-\u009f]'),
  primary key (user_id, conversation_id, sequence),
  unique (user_id, conversation_id, message_id),
  foreign key (user_id, conversation_id) references memory.conversations (user_id, id) on delete cascade,
  check (
    least(created_at, updated_at) >= '0002-01-01 00:00+00'
    and greatest(created_at, updated_at) < '9999-01-01 00:00+00'),
  check (sequence <= 9007199254740991)
);

create index conversation_messages_created_at_idx
  on memory.conversation_messages (user_id, conversation_id, created_at);

-- Questions and final answers: finds the newest turns and counts them, without the messages between.
create index conversation_messages_turns_idx
  on memory.conversation_messages (user_id, conversation_id, (sequence + 0)) -- + 0: an order that no other index has
  where role = 'user' or final;

create index conversation_messages_author_idx on memory.conversation_messages (author_id) where author_id is not null;
comment on index memory.conversation_messages_author_idx is
  'Across owners. What somebody wrote in spaces.';

create index conversation_messages_unreadable_idx
  on memory.conversation_messages (user_id, conversation_id, sequence) where unreadable is not null;

-- Where the states of a graph fork: few messages, and none in a conversation with one run at a time.
create index conversation_messages_parent_idx
  on memory.conversation_messages (user_id, conversation_id, sequence) where parent is not null;

-- Answers that came after another question: none in a conversation with one run at a time.
create index conversation_messages_question_idx
  on memory.conversation_messages (user_id, conversation_id, sequence) where question is not null;

comment on table memory.conversation_messages is
  'One LangChain message: the lossless payload, and beside it what is searched, counted and shown.';
comment on column memory.conversation_messages.bytes is
  'What the payload and the columns beside it take: reads are bounded by it.';
comment on column memory.conversation_messages.parent is
  'The sequence of the message before it in the graph''s state that stored it; null: the newest that a graph had stored.
  Negative: it begins a state; -1 less the first sequence of the states that begin with it or in its place.';
comment on column memory.conversation_messages.forked is
  'With parent: whether the run named the checkpoint that it goes on from, so that it takes the place of what follows it.';
comment on column memory.conversation_messages.question is
  'Where another question was asked meanwhile: the sequence of the one that this message and what follows it belong to.
  Null: the newest question before it, or what the message before it belongs to.';
comment on column memory.conversation_messages.author_id is
  'In a space: who wrote it, as their token says, or as a server does. Null elsewhere.';
comment on column memory.conversation_messages.unreadable is
  'Why no message could be made of the payload, in a word; null: it could, or nobody has tried. Cleared by a new payload.';

-- Totals of characters, tokens and turns for each full block of 1,024 sequences, so that old rows need not be read. The
-- append that fills a block writes its row; each later change subtracts what was there and adds what is.
create table memory.message_blocks (
  user_id         text        not null,
  conversation_id uuid        not null,
  block           bigint      not null,
  characters      bigint      not null,
  tokens          bigint      not null,
  turns           bigint      not null,
  primary key (user_id, conversation_id, block),
  foreign key (user_id, conversation_id) references memory.conversations (user_id, id) on delete cascade,
  check (
    least(block, characters, tokens, turns) >= -9007199254740991
    and greatest(block, characters, tokens, turns) <= 9007199254740991)
);

comment on table memory.message_blocks is
  'What 1,024 sequences of a conversation hold, from 1,024 times the block on. The newest, which may grow, has none.';
comment on column memory.message_blocks.turns is
  'How many complete turns have their first answer here.';

-- The ids of messages that have expired or were forgotten, so that a retry, or a graph that still has them, does not
-- bring them back. No content.
create table memory.gone_messages (
  user_id         text        not null,
  conversation_id uuid        not null,
  message_id      text        not null check (
    octet_length(message_id) between 1 and 512 and message_id !~ '[\u0001-\u001f\u007f-\u009f]'),
  forgotten       boolean     not null,
  gone_at         timestamptz not null default clock_timestamp(),
  primary key (user_id, conversation_id, message_id),
  foreign key (user_id, conversation_id) references memory.conversations (user_id, id) on delete cascade,
  check (gone_at >= '0002-01-01 00:00+00' and gone_at < '9999-01-01 00:00+00')
);

-- Messages on no current branch, because a graph was forked or a message was removed or replaced. They keep their
-- sequences, and come back with their branch.
create table memory.superseded_messages (
  user_id         text        not null,
  conversation_id uuid        not null,
  sequence        bigint      not null check (sequence >= 0),
  message_id      text        not null check (
    octet_length(message_id) between 1 and 512 and message_id !~ '[\u0001-\u001f\u007f-\u009f]'),
  role            text        not null check (role in ('user', 'assistant', 'system', 'tool')),
  text            text        not null,
  characters      integer     not null,
  tokens          integer     not null,
  created_at      timestamptz not null,
  updated_at      timestamptz,
  metadata        jsonb,
  images          jsonb,
  payload         json        not null,
  bytes           integer     not null generated always as (
    memory_private.checked_message_bytes(payload, text, metadata, images, characters, tokens)) stored,
  unreadable      text check (octet_length(unreadable) <= 200),
  parent          bigint,
  forked          boolean,
  question        bigint,
  author_id       text        check (
    author_id is null or user_id ~ '^space:' and octet_length(author_id) between 1 and 512
    and author_id !~ '[\u0001-\u001f\u007f-\u009f]'),
  superseded_at   timestamptz not null default clock_timestamp(),
  primary key (user_id, conversation_id, sequence),
  unique (user_id, conversation_id, message_id),
  foreign key (user_id, conversation_id) references memory.conversations (user_id, id) on delete cascade,
  check (
    least(created_at, updated_at, superseded_at) >= '0002-01-01 00:00+00'
    and greatest(created_at, updated_at, superseded_at) < '9999-01-01 00:00+00'),
  check (sequence >= -9007199254740991 and sequence <= 9007199254740991)
);

create index superseded_messages_author_idx on memory.superseded_messages (author_id) where author_id is not null;
comment on index memory.superseded_messages_author_idx is
  'Across owners. What somebody wrote in spaces.';

comment on table memory.superseded_messages is
  'Messages that a graph''s state had once and has no more: no prompt, summary or search has them.';
