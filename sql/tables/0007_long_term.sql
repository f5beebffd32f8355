-- Long-term memory: what was moved there and from where, as ids without content. Rows are not deleted with the
-- conversation, because long-term memory may be in another database: they find there what was forgotten here.
create table memory.promotions (
  user_id         text    not null check (
    octet_length(user_id) between 1 and 512 and user_id !~ '[\u0001-\u001f\u007f-\u009f]'),
  target          text    not null check (
    octet_length(target) between 1 and 512 and target !~ '[\u0001-\u001f\u007f-\u009f]'),
  conversation_id uuid    not null,
  source_id       uuid    not null,
  text_id         uuid    not null,
  memory_id       uuid    not null,
  message_ids     text[]  not null check (memory_private.is_text_list(message_ids)),
  repeats         boolean not null default false,
  moved           boolean not null default false,
  from_board      boolean not null default false,
  withdrawn       boolean not null default false,
  edited_at       timestamptz,
  primary key (user_id, target, conversation_id, source_id),
  check (edited_at >= '0002-01-01 00:00+00' and edited_at < '9999-01-01 00:00+00')
);

create index promotions_text_idx on memory.promotions (user_id, target, text_id);
create index promotions_memory_idx on memory.promotions (user_id, target, memory_id);

comment on column memory.promotions.target is
  'The long-term memory that it was moved to, by its name.';
comment on column memory.promotions.source_id is
  'The chunk that it was moved from.';
comment on column memory.promotions.text_id is
  'The same for the same words, so that a repeat is known.';
comment on column memory.promotions.repeats is
  'Its words had been moved from another place; the memory is that place''s.';
comment on column memory.promotions.edited_at is
  'When its messages had last been edited, when it was read; null if never.';
comment on column memory.promotions.moved is
  'False from before the move until it is confirmed.';
comment on column memory.promotions.from_board is
  'Whether source_id is an item of a board, and not a chunk.';
comment on column memory.promotions.withdrawn is
  'What it was moved from is not to be remembered any more.';
