-- Topics: what an owner's stretches of talk are about, found without a model, and what people made of that.

create table memory.topics (
  user_id    text        not null check (
    octet_length(user_id) between 1 and 512 and user_id !~ '[\u0001-\u001f\u007f-\u009f]'),
  id         uuid        not null default gen_random_uuid(),
  words      text[]      not null default '{}' check (
    cardinality(words) <= 8 and memory_private.is_text_list(words) and octet_length(array_to_string(words, '')) <= 4000),
  terms      text[]      not null default '{}' check (
    cardinality(terms) <= 40 and memory_private.is_text_list(terms) and octet_length(array_to_string(terms, '')) <= 20000),
  weights    real[]      not null default '{}' check (
    cardinality(weights) = cardinality(terms) and array_position(weights, null) is null),
  name       text check (octet_length(name) between 1 and 800),
  named_by   text check (named_by <> '' and octet_length(named_by) <= 1000),
  hidden     boolean     not null default false,
  merged_into uuid check (merged_into <> id),
  model      text check (octet_length(model) between 1 and 512 and model !~ '[\u0001-\u001f\u007f-\u009f]'),
  centroid   {{vector_schema}}.halfvec, -- of length one
  stretches  bigint      not null default 0 check (stretches between 0 and 9007199254740991),
  first_at   timestamptz,
  last_at    timestamptz,
  primary key (user_id, id),
  check ((name is null) = (named_by is null)),
  check ((model is null) = (centroid is null)),
  check (first_at >= '0002-01-01 00:00+00' and last_at < '9999-01-01 00:00+00')
);
alter table memory.topics alter column centroid set storage main;

comment on table memory.topics is
  'What an owner''s conversations are about: words that stand in what was said, and what a person made of it.';
comment on column memory.topics.words is
  'The words of its label, the best first: each stands in three of ten of its stretches.';
comment on column memory.topics.terms is
  'Its words as they are compared, the weightiest first; weights: how much each counts, together of length one.';
comment on column memory.topics.name is
  'What a person calls it. It outlives what it was found from, and no clustering changes it.';
comment on column memory.topics.merged_into is
  'The topic that a person made it a part of. Its stretches stay its own, so a new clustering takes no merge back.';
comment on column memory.topics.centroid is
  'The mean of its stretches, by the embedding model of this name. Null: they are compared by words.';

-- Which topic each stretch of talk is of.
create table memory.topic_stretches (
  user_id         text    not null,
  conversation_id uuid    not null,
  stretch         bigint  not null check (stretch between -9007199254740991 and 9007199254740991),
  topic_id        uuid,
  due             boolean not null default true,
  strength        real check (strength between -2 and 2),
  at              timestamptz,
  messages        integer not null default 0 check (messages >= 0),
  words           text[]  not null default '{}' check (
    cardinality(words) <= 24 and memory_private.is_text_list(words) and octet_length(array_to_string(words, '')) <= 12000),
  terms           text[]  not null default '{}' check (
    cardinality(terms) = cardinality(words) and memory_private.is_text_list(terms)
    and octet_length(array_to_string(terms, '')) <= 12000),
  model           text check (octet_length(model) between 1 and 512 and model !~ '[\u0001-\u001f\u007f-\u009f]'),
  embedding       {{vector_schema}}.halfvec, -- of length one
  primary key (user_id, conversation_id, stretch),
  foreign key (user_id, conversation_id) references memory.conversations (user_id, id) on delete cascade,
  check ((model is null) = (embedding is null)),
  check (at >= '0002-01-01 00:00+00' and at < '9999-01-01 00:00+00')
);
alter table memory.topic_stretches alter column embedding set storage main;

create index topic_stretches_topic_idx on memory.topic_stretches (user_id, topic_id, strength desc nulls last);
create index topic_stretches_newest_idx on memory.topic_stretches (user_id, topic_id, at desc nulls last);
create index topic_stretches_at_idx on memory.topic_stretches (user_id, at);
create index topic_stretches_due_idx on memory.topic_stretches (user_id, conversation_id, stretch) where due;

comment on table memory.topic_stretches is
  'Stretches of talk, each in its topic, with the words and the mean vector that it is compared by.';
comment on column memory.topic_stretches.due is
  'Its chunks have changed since: a topic is to be found for it.';
comment on column memory.topic_stretches.topic_id is
  'Its topic. Null: none is found yet, or it is like nothing else.';
comment on column memory.topic_stretches.strength is
  'How near it is to the middle of its topic; the nearest is quoted.';
comment on column memory.topic_stretches.at is
  'When it began.';
comment on column memory.topic_stretches.words is
  'The words that occur most, as they were written; terms: the same as they are compared.';

-- The stretches that were indexed since. A row of its own, narrow and with one index: the commit of chunks writes it, and
-- an answer may wait for that.
create table memory.indexed_stretches (
  user_id         text   not null,
  conversation_id uuid   not null,
  stretch         bigint not null check (stretch between -9007199254740991 and 9007199254740991),
  primary key (user_id, conversation_id, stretch),
  foreign key (user_id, conversation_id) references memory.conversations (user_id, id) on delete cascade
);
comment on table memory.indexed_stretches is
  'Stretches of talk that were indexed since a topic was found for them, or before one was.';

-- When an owner's topics were last found anew, and what came since.
create table memory.topic_clusterings (
  user_id      text        not null check (
    octet_length(user_id) between 1 and 512 and user_id !~ '[\u0001-\u001f\u007f-\u009f]'),
  version      bigint      not null default 0 check (version between 0 and 9007199254740991),
  clustered_at timestamptz,
  stretches    bigint      not null default 0 check (stretches between 0 and 9007199254740991),
  added        bigint      not null default 0 check (added between 0 and 9007199254740991),
  threshold    real check (threshold between 0 and 1),
  due_at       timestamptz,
  primary key (user_id),
  check (least(clustered_at, due_at) >= '0002-01-01 00:00+00' and greatest(clustered_at, due_at) < '9999-01-01 00:00+00')
);
create index topic_clusterings_due_idx on memory.topic_clusterings (due_at) where due_at is not null;

comment on table memory.topic_clusterings is
  'When an owner''s topics were last found anew, from how many stretches, and how many came since.';
comment on column memory.topic_clusterings.threshold is
  'How near a stretch has to be to the middle of a topic, by this owner''s vectors.';
comment on column memory.topic_clusterings.due_at is
  'When they are to be found anew: a week after the last time, or at once when a fifth has been added. Null: nothing was.';
comment on index memory.topic_clusterings_due_idx is
  'Across owners. Whose topics are to be found anew.';
