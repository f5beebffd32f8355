-- Conversations and their messages.

-- One row per conversation; it is also the lock and the counter behind gap-free sequences.
create table memory.conversations (
  user_id       text        not null check (user_id <> ''),
  id            uuid        not null default gen_random_uuid(),
  agent_id      text        not null default 'default' check (agent_id <> ''),
  thread_id     text        not null check (thread_id <> ''),
  next_sequence bigint      not null default 0,
  message_count bigint      not null default 0,
  created_at    timestamptz not null default clock_timestamp(),
  updated_at    timestamptz not null default clock_timestamp(),
  primary key (user_id, id),
  unique (user_id, agent_id, thread_id)
) with (fillfactor = 70); -- the counter is updated in place (HOT) at every append

comment on table memory.conversations is
  'One ordered exchange between a user and an agent, named by (user_id, agent_id, thread_id).';

create table memory.conversation_messages (
  user_id               text        not null,
  conversation_id       uuid        not null,
  sequence              bigint      not null,
  message_id            text        not null check (message_id <> ''),
  role                  text        not null check (role in ('user', 'assistant', 'system', 'tool')),
  text                  text        not null default '',
  characters            integer     not null check (characters >= 0),
  tokens                integer     not null check (tokens >= 0),
  cumulative_characters bigint      not null,
  created_at            timestamptz not null default clock_timestamp(),
  updated_at            timestamptz,
  metadata              jsonb,
  images                jsonb,
  payload               json        not null, -- json, not jsonb: jsonb reorders keys, which breaks prompt caches
  primary key (user_id, conversation_id, sequence),
  unique (user_id, conversation_id, message_id),
  foreign key (user_id, conversation_id) references memory.conversations (user_id, id) on delete cascade
);

create index conversation_messages_created_at_idx
  on memory.conversation_messages (user_id, conversation_id, created_at);

comment on table memory.conversation_messages is
  'One LangChain message: the lossless payload, and beside it what is searched, counted and shown.';
comment on column memory.conversation_messages.cumulative_characters is
  'Characters of this message and all before it, so that the tail of any history is one short range.';
