-- Chunks, the working memory: small units of what was said, found by meaning and by words.

create table memory.working_memory_chunks (
  user_id         text        not null,
  conversation_id uuid        not null,
  place           bigint      not null,
  part            integer     not null check (part between 1 and 1000000000),
  id              uuid        not null,
  from_sequence   bigint      not null,
  to_sequence     bigint      not null,
  message_ids     text[]      not null check (memory_private.is_text_list(message_ids)),
  stretch         bigint      not null,
  type            text        not null check (type in ('dialogue', 'action', 'fact', 'question', 'answer')),
  role            text        not null check (role in ('user', 'assistant', 'system', 'tool')),
  speaker         text check (octet_length(speaker) <= 16384),
  said_at         timestamptz not null,
  content         text        not null check (octet_length(content) <= 131072),
  characters      integer     not null check (characters = length(content)),
  tokens          integer     not null check (tokens between 0 and 4 * octet_length(content) + 100),
  lexemes         integer     not null,
  terms           integer     not null,
  neighbor_share  real        not null default 1 check (neighbor_share between 0 and 1),
  search_length   real        not null default 0 check (search_length >= 0),
  importance      real        not null check (importance between 0 and 1),
  cohesion        real check (cohesion between -2 and 2),
  has_time        boolean     not null default false,
  has_number      boolean     not null default false,
  told            int4range[] not null default '{}' check (
    cardinality(told) <= 8 and int4multirange(variadic told) <@ '{[-1000000,1000000)}'::int4multirange),
  stale           boolean     not null default false,
  words_hash      bigint      not null generated always as (hashtextextended(lower(btrim(content)), 0)) stored,
  signals         smallint    not null default 0 check (signals between 0 and 255),
  quotes          int4range[] check (cardinality(quotes) <= 8),
  tone            smallint    check (tone between -100 and 100),
  expires_at      timestamptz,
  created_at      timestamptz not null default clock_timestamp(),
  primary key (user_id, conversation_id, place, part),
  check (from_sequence <= to_sequence),
  constraint working_memory_chunks_speech_check check (role = 'user' or signals = 0 and tone is null),
  constraint working_memory_chunks_each_quote_check check (
    cardinality(coalesce(quotes, '{}')) = bit_count(signals::integer::bit(8)) and array_position(quotes, null) is null),
  foreign key (user_id, conversation_id) references memory.conversations (user_id, id) on delete cascade,
  check (
    least(said_at, expires_at, created_at) >= '0002-01-01 00:00+00'
    and greatest(said_at, expires_at, created_at) < '9999-01-01 00:00+00'),
  check (
    least(place, from_sequence, to_sequence, stretch) >= -9007199254740991
    and greatest(place, from_sequence, to_sequence, stretch) <= 9007199254740991)
);

create index working_memory_chunks_sequence_idx
  on memory.working_memory_chunks (user_id, conversation_id, to_sequence);
create index working_memory_chunks_expires_at_idx
  on memory.working_memory_chunks (user_id, conversation_id, expires_at) where expires_at is not null;
-- For all conversations of an owner, in an order that serves no query of one conversation.
create index working_memory_chunks_owner_expiry_idx
  on memory.working_memory_chunks (user_id, (expires_at at time zone 'UTC'), conversation_id) where expires_at is not null;
create index working_memory_chunks_stale_idx
  on memory.working_memory_chunks (user_id, conversation_id, place) where stale;
-- The beginning of a name, because an index row has a maximum size.
create index working_memory_chunks_speaker_idx
  on memory.working_memory_chunks (user_id, conversation_id, left(speaker, 100)) where speaker is not null;

-- By which signals, so that each is found where there are few of it among many others.
create index working_memory_chunks_signals_idx
  on memory.working_memory_chunks (user_id, conversation_id, signals, place, part) where signals <> 0;

comment on table memory.working_memory_chunks is
  'A message, a part of a long one, or a tool''s call with its results: what recall ranks and returns.';
comment on column memory.working_memory_chunks.place is
  'Counts the units of a conversation; where a long pause lies between two, three on. Neighbors are at most two apart.';
comment on column memory.working_memory_chunks.speaker is
  'The name of who speaks; of a user''s words in a space the id of the member, who may get another name.';
comment on column memory.working_memory_chunks.stretch is
  'The first sequence of the stretch of talk that it belongs to; what belongs together expires together.';
comment on column memory.working_memory_chunks.lexemes is
  'How many words it has for text search; terms: how many different ones, each a posting.';
comment on column memory.working_memory_chunks.neighbor_share is
  'How much of its message''s words counts for the messages beside it: all of 30 lexemes, less of a longer one.';
comment on column memory.working_memory_chunks.search_length is
  'Its length for ranking, in lexemes: its own and, at a half and a quarter, those of the messages beside it.';
comment on column memory.working_memory_chunks.words_hash is
  'Equal where the same words were said, whatever their case.';
comment on column memory.working_memory_chunks.cohesion is
  'How near it is to what was said just before it, from 0 to 1; null where nothing was.';
comment on column memory.working_memory_chunks.told is
  'The days that it tells of, by how far they are from the day on which it was said: [-1,0) is yesterday.';
comment on column memory.working_memory_chunks.signals is
  'What the user''s words tell, as bits: 1 a correction, 2 asked again, 4 thanks, 8 a complaint, 16 confusion, 32 giving
  up, 64 asks for a person, 128 a tool failed right before. 0 for who is no user.';
comment on column memory.working_memory_chunks.quotes is
  'Where in the content the words are that tell them, from 0, one for each bit in their order.';
comment on column memory.working_memory_chunks.tone is
  'The tone of the user''s words as the application''s own function rates it, from -100 to 100; null: not rated.';
comment on column memory.working_memory_chunks.stale is
  'One of its messages was edited or forgotten: the text is gone, and the unit is to be indexed anew.';

-- Posting lists of the chunks' lexemes. A row has about sixteen chunks of a lexeme in a conversation; then a new row
-- begins, so that no long list is rewritten. A posting lies in the row with the highest first place not above its own,
-- within the same 131,072 places. It is one number: the places after the first in its upper bits, 30 bits of the part,
-- 15 of the count; so those of a row are in order.
create table memory.chunk_postings (
  user_id         text             not null,
  lexeme          text collate "C" not null check (octet_length(lexeme) <= 1000),
  conversation_id uuid             not null,
  first           bigint           not null check (first between -9007199254740991 and 9007199254740991),
  postings        bigint[]         not null check (array_ndims(postings) = 1 and array_position(postings, null) is null),
  primary key (user_id, lexeme, conversation_id, first),
  foreign key (user_id, conversation_id) references memory.conversations (user_id, id) on delete cascade
) with (fillfactor = 85); -- lists grow in place (HOT)
-- Deletes the postings of a conversation with it. Equal entries share their key, so it is small.
create index chunk_postings_conversation_idx on memory.chunk_postings (user_id, conversation_id);

-- Any width and any number of models, so that one model can replace another while both are in use.
create table memory.chunk_embeddings (
  user_id         text               not null,
  conversation_id uuid               not null,
  place           bigint             not null,
  part            integer            not null,
  model           text               not null check (
    octet_length(model) between 1 and 512 and model !~ '[\u0001-\u001f\u007f-\u009f]'),
  dimensions      integer            not null check (dimensions = {{vector_schema}}.vector_dims(embedding)),
  embedding       {{vector_schema}}.halfvec not null, -- of length one: an inner product is a cosine
  primary key (user_id, conversation_id, place, part, model),
  -- Not to the chunk: without statistics the planner reads the whole conversation to check that for each vector.
  foreign key (user_id, conversation_id) references memory.conversations (user_id, id) on delete cascade,
  check (place >= -9007199254740991 and place <= 9007199254740991)
);
-- Stored in the row while it fits: a scan of many vectors must not fetch each from elsewhere.
alter table memory.chunk_embeddings alter column embedding set storage main;

-- People's ratings of chunks, by place, so that they survive another indexing. No content. A rating is deleted with the
-- chunk, and when the words of its messages change.
create table memory.chunk_ratings (
  user_id         text        not null,
  conversation_id uuid        not null,
  from_sequence   bigint      not null,
  to_sequence     bigint      not null,
  part            integer     not null,
  importance      real        not null check (importance between 0 and 1),
  version         integer     not null default 1 check (version between 0 and 1000000000),
  rated_by        text        not null check (rated_by <> '' and octet_length(rated_by) <= 1000),
  rated_at        timestamptz not null default clock_timestamp(),
  primary key (user_id, conversation_id, from_sequence, to_sequence, part),
  foreign key (user_id, conversation_id) references memory.conversations (user_id, id) on delete cascade,
  check (rated_at >= '0002-01-01 00:00+00' and rated_at < '9999-01-01 00:00+00')
);
