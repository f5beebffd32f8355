-- Summaries found by meaning across a user's conversations, and what moves from conversations to long-term memory.

alter table memory.conversation_summaries
  add column language text check (octet_length(language) <= 63),
  add column lexemes  text[] check (
    coalesce(array_ndims(lexemes), 1) = 1 and array_position(lexemes, null) is null and cardinality(lexemes) <= 50000);

comment on column memory.conversation_summaries.language is
  'The text search configuration by which its words were reduced.';
comment on column memory.conversation_summaries.lexemes is
  'Its words, as text search reduces them: what it is found by without an embedder.';

-- Of the newest segment of a conversation, or of its complete summary: the older ones are in it. Of any width and any number of models, so that one
-- model can take over from another while both are in use.
create table memory.summary_embeddings (
  user_id         text               not null,
  conversation_id uuid               not null,
  level           integer            not null default 0,
  number          integer            not null,
  model           text               not null check (
    octet_length(model) between 1 and 512 and model !~ '[\u0001-\u001f\u007f-\u009f]'),
  dimensions      integer            not null check (dimensions = {{vector_schema}}.vector_dims(embedding)),
  embedding       {{vector_schema}}.halfvec not null, -- of length one: an inner product is a cosine
  primary key (user_id, conversation_id, level, number, model),
  foreign key (user_id, conversation_id, level, number)
    references memory.conversation_summaries (user_id, conversation_id, level, number) on delete cascade
);
-- In the row itself as long as it fits: a scan of many vectors must not look each of them up elsewhere.
alter table memory.summary_embeddings alter column embedding set storage main;

comment on table memory.summary_embeddings is
  'What a conversation''s newest summary means, by one model.';

-- What was moved to long-term memory, and from where: ids, and nothing of their content. It does not go with the
-- conversation, for the long-term memory may be another database: by these rows what was forgotten here is found there.
create table memory.promotions (
  user_id         text    not null check (
    octet_length(user_id) between 1 and 512 and user_id !~ '[\u0001-\u001f\u007f-\u009f]'),
  target          text    not null check (
    octet_length(target) between 1 and 512 and target !~ '[\u0001-\u001f\u007f-\u009f]'),
  conversation_id uuid    not null,
  source_id       uuid    not null,
  text_id         uuid    not null,
  memory_id       uuid    not null,
  message_ids     text[]  not null check (memory_private.is_list(message_ids)),
  repeats         boolean not null default false,
  moved           boolean not null default false,
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
