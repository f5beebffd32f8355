-- Branches: what a graph's state does not have any more, because it was forked, or a message removed or made anew.

alter table memory.conversations
  add column branch_token   text check (octet_length(branch_token) <= 100),
  add column branch_from    bigint check (branch_from >= 0),
  add column has_superseded boolean not null default false;

comment on column memory.conversations.branch_token is
  'Names what a graph last stored here; drawn at random each time, so that it tells nothing of what was said.';
comment on column memory.conversations.branch_from is
  'The first sequence of what the graph''s state has held; what came before it no state can take away.';

-- The rows of conversation_messages that are on no branch now. They keep their numbers, and come back with their branch.
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
    memory_private.weighed(payload, text, metadata, images, characters, tokens)) stored,
  unreadable      text check (octet_length(unreadable) <= 200),
  superseded_at   timestamptz not null default clock_timestamp(),
  primary key (user_id, conversation_id, sequence),
  unique (user_id, conversation_id, message_id),
  foreign key (user_id, conversation_id) references memory.conversations (user_id, id) on delete cascade,
  check (
    least(created_at, updated_at, superseded_at) >= '0002-01-01 00:00+00'
    and greatest(created_at, updated_at, superseded_at) < '9999-01-01 00:00+00'),
  check (sequence >= -9007199254740991 and sequence <= 9007199254740991)
);

comment on table memory.superseded_messages is
  'Messages that a graph''s state had once and has no more: no prompt, summary or search has them.';
