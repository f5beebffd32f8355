-- Working memory: small units of what was said, found by meaning and by words.

alter table memory.conversations
  add column indexed_through bigint  not null default -1,
  add column chunk_count     bigint  not null default 0,
  add column has_stale       boolean not null default false,
  add column speakers        text[]  not null default '{}' check (
    cardinality(speakers) <= 50 and coalesce(array_ndims(speakers), 1) = 1 and array_position(speakers, null) is null),
  add column language        text check (octet_length(language) <= 63),
  add column index_failures  integer not null default 0,
  add column index_retry_at  timestamptz,
  add column index_error     text check (octet_length(index_error) <= 1000),
  add column unembedded_from bigint;

comment on column memory.conversations.unembedded_from is
  'From this place on a chunk may lack its vector, because there was no embedder or it failed; null: none does.';
comment on column memory.conversations.index_error is
  'Why the embedder failed at the last try, in a word, never content; what was said is found by its words all the same.';
comment on column memory.conversations.indexed_through is
  'The last sequence that is indexed; -1 if none. Moved by compare-and-swap alone.';
comment on column memory.conversations.language is
  'The text search configuration of its chunks; null as long as too little was said to know.';

create table memory.working_memory_chunks (
  user_id         text        not null,
  conversation_id uuid        not null,
  place           bigint      not null,
  part            integer     not null check (part between 1 and 1000000000),
  id              uuid        not null,
  from_sequence   bigint      not null,
  to_sequence     bigint      not null,
  message_ids     text[]      not null check (memory_private.is_list(message_ids)),
  segment         bigint      not null,
  type            text        not null check (type in ('dialogue', 'action', 'fact', 'question', 'answer')),
  role            text        not null check (role in ('user', 'assistant', 'system', 'tool')),
  speaker         text check (octet_length(speaker) <= 16384),
  said_at         timestamptz not null,
  content         text        not null check (octet_length(content) <= 131072),
  characters      integer     not null check (characters = length(content)),
  tokens          integer     not null check (tokens between 0 and 4 * octet_length(content) + 100),
  lexemes         integer     not null,
  terms           integer     not null,
  importance      real        not null check (importance between 0 and 1),
  cohesion        real check (cohesion between -2 and 2),
  has_time        boolean     not null default false,
  has_number      boolean     not null default false,
  stale           boolean     not null default false,
  expires_at      timestamptz,
  created_at      timestamptz not null default clock_timestamp(),
  primary key (user_id, conversation_id, place, part),
  check (from_sequence <= to_sequence),
  foreign key (user_id, conversation_id) references memory.conversations (user_id, id) on delete cascade,
  check (
    least(said_at, expires_at, created_at) >= '0002-01-01 00:00+00'
    and greatest(said_at, expires_at, created_at) < '9999-01-01 00:00+00'),
  check (
    least(place, from_sequence, to_sequence, segment) >= -9007199254740991
    and greatest(place, from_sequence, to_sequence, segment) <= 9007199254740991)
);

create index working_memory_chunks_sequence_idx
  on memory.working_memory_chunks (user_id, conversation_id, to_sequence);
create index working_memory_chunks_expires_at_idx
  on memory.working_memory_chunks (user_id, conversation_id, expires_at) where expires_at is not null;
create index working_memory_chunks_stale_idx
  on memory.working_memory_chunks (user_id, conversation_id, place) where stale;
-- Of a name its beginning, for a row of an index has an end.
create index working_memory_chunks_speaker_idx
  on memory.working_memory_chunks (user_id, conversation_id, left(speaker, 100)) where speaker is not null;

comment on table memory.working_memory_chunks is
  'A message, a part of a long one, or a tool''s call with its results: what recall ranks and returns.';
comment on column memory.working_memory_chunks.place is
  'Counts the units of a conversation; where a long pause lies between two, three on. Neighbors are at most two apart.';
comment on column memory.working_memory_chunks.segment is
  'The first sequence of the stretch of talk that it belongs to; what belongs together expires together.';
comment on column memory.working_memory_chunks.lexemes is
  'How many words it has for text search; terms: how many different ones, each a row of chunk_lexemes.';
comment on column memory.working_memory_chunks.cohesion is
  'How near it is to what was said just before it, from 0 to 1; null where nothing was.';
comment on column memory.working_memory_chunks.stale is
  'One of its messages was edited or forgotten: the text is gone, and the unit is to be indexed anew.';

-- The words of each chunk, as text search reduces them; how often each occurs.
create table memory.chunk_lexemes (
  user_id         text     not null,
  conversation_id uuid     not null,
  lexeme          text     not null check (octet_length(lexeme) <= 1000),
  place           bigint   not null,
  part            integer  not null,
  count           smallint not null check (count > 0),
  primary key (user_id, conversation_id, lexeme, place, part),
  foreign key (user_id, conversation_id) references memory.conversations (user_id, id) on delete cascade,
  check (place >= -9007199254740991 and place <= 9007199254740991)
);

-- Of any width and any number of models, so that one model can take over from another while both are in use.
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
  -- Not the chunk's row: to check that for each vector, a planner without statistics reads the whole conversation.
  foreign key (user_id, conversation_id) references memory.conversations (user_id, id) on delete cascade,
  check (place >= -9007199254740991 and place <= 9007199254740991)
);
-- In the row itself as long as it fits: a scan of many vectors must not look each of them up elsewhere.
alter table memory.chunk_embeddings alter column embedding set storage main;
