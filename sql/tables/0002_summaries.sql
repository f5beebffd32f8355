-- Summaries: which part of a conversation they cover, what they were made from, and what they are found by.

create table memory.conversation_summaries (
  user_id            text        not null,
  conversation_id    uuid        not null,
  level              integer     not null default 0 check (level between 0 and 100),
  number             integer     not null check (number between 1 and 1000000000),
  id                 uuid        not null default gen_random_uuid(),
  from_sequence      bigint      not null,
  to_sequence        bigint      not null,
  message_ids        text[]      not null check (memory_private.is_text_list(message_ids)),
  built_on           integer,
  parts              integer[] check (coalesce(array_ndims(parts), 1) = 1 and array_position(parts, null) is null),
  content            text        not null check (content <> '' and octet_length(content) <= 65536),
  characters         integer     not null check (characters = length(content)),
  tokens             integer     not null check (tokens between 1 and 4 * octet_length(content) + 100),
  covered_characters bigint      not null,
  covered_tokens     bigint      not null,
  model              text check (octet_length(model) <= 1000),
  clipped            boolean     not null default false,
  quality            real check (quality between 0 and 1),
  topics             text[] check (
    coalesce(array_ndims(topics), 1) = 1 and array_position(topics, null) is null and cardinality(topics) <= 1000
    and octet_length(array_to_string(topics, '')) <= 65536),
  key_facts          jsonb check (
    jsonb_typeof(key_facts) = 'array' and octet_length(key_facts::text) <= 262144
    and memory_private.is_shallow(key_facts::text)
    and jsonb_array_length(key_facts) = jsonb_array_length(jsonb_path_query_array(key_facts,
      'strict $[*] ? (@.text.type() == "string" && @.message_ids.type() == "array"
                      && !exists (@.message_ids[*] ? (@.type() != "string"))
                      && (!exists (@.quote) || @.quote.type() == "string" || @.quote.type() == "null"))'))),
  language           text check (octet_length(language) <= 63),
  lexemes            text[] check (
    coalesce(array_ndims(lexemes), 1) = 1 and array_position(lexemes, null) is null and cardinality(lexemes) <= 50000),
  edited_by          text check (octet_length(edited_by) <= 1000),
  edited_at          timestamptz,
  created_at         timestamptz not null default clock_timestamp(),
  primary key (user_id, conversation_id, level, number),
  check (from_sequence <= to_sequence),
  foreign key (user_id, conversation_id) references memory.conversations (user_id, id) on delete cascade,
  check (
    least(edited_at, created_at) >= '0002-01-01 00:00+00'
    and greatest(edited_at, created_at) < '9999-01-01 00:00+00'),
  check (
    least(from_sequence, to_sequence, covered_characters, covered_tokens) >= -9007199254740991
    and greatest(from_sequence, to_sequence, covered_characters, covered_tokens) <= 9007199254740991)
);

comment on table memory.conversation_summaries is
  'Segments: a summary of a range of messages and of the summary it was built on.';
comment on column memory.conversation_summaries.level is
  '0: a segment of the rolling summary. Above: of a complete summary, 1 of messages alone, 2 of summaries of level 1, …';
comment on column memory.conversation_summaries.parts is
  'The numbers of the summaries one level below that it was made from; null at levels 0 and 1.';
comment on column memory.conversation_summaries.quality is
  'How much of the names, numbers, dates and open questions of its source it holds, from 0 to 1.';
comment on column memory.conversation_summaries.message_ids is
  'The messages that the model was shown for this segment.';
comment on column memory.conversation_summaries.covered_characters is
  'Characters of the messages from from_sequence to to_sequence; covered_tokens: their tokens.';
comment on column memory.conversation_summaries.language is
  'The text search configuration by which its words were reduced.';
comment on column memory.conversation_summaries.lexemes is
  'Its words, as text search reduces them: what it is found by without an embedder.';

-- Vectors of the newest segment of a conversation, or of its hierarchical summary: these contain the older ones. Any
-- width and any number of models, so that one model can replace another while both are in use.
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
-- Stored in the row while it fits: a scan of many vectors must not fetch each from elsewhere.
alter table memory.summary_embeddings alter column embedding set storage main;

comment on table memory.summary_embeddings is
  'What a conversation''s newest summary means, by one model.';
