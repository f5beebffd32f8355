-- Turns and their retention.

alter table memory.conversations
  add column expired_through bigint  not null default -1,
  add column has_gone        boolean not null default false;

comment on column memory.conversations.expired_through is
  'Messages that are gone up to here have expired; those after it were forgotten. -1 if none has.';

-- A turn is complete when it has a final answer: one that says something and calls nothing.
alter table memory.conversation_messages
  add column final boolean not null generated always as (
    role = 'assistant' and (text <> '' or images is not null)
    and case when json_typeof(payload #> '{data,tool_calls}') = 'array'
             then json_array_length(payload #> '{data,tool_calls}') = 0 else true end
  ) stored;

-- Questions and final answers: the newest turns, and how many there are, without what lies between.
create index conversation_messages_turns_idx
  on memory.conversation_messages (user_id, conversation_id, (sequence + 0)) -- + 0: an order that no other index has
  where role = 'user' or final;

-- The ids of messages that have expired or were forgotten: a retry, or a graph that still holds them, does not bring
-- them back. Nothing of their content.
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
