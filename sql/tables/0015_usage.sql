-- Usage: what was said, sent and found on each day, in numbers alone, and which places prompts have shown.

create table memory.usage_days (
  user_id       text     not null check (
    octet_length(user_id) between 1 and 512 and user_id !~ '[\u0001-\u001f\u007f-\u009f]' and user_id !~ '^space:'),
  agent_id      text     not null check (
    octet_length(agent_id) between 1 and 512 and agent_id !~ '[\u0001-\u001f\u007f-\u009f]'),
  day           date     not null check (day >= '0002-01-01' and day < '9999-01-01'),
  turns         bigint   not null default 0,
  messages      bigint   not null default 0,
  characters    bigint   not null default 0,
  packs         bigint   not null default 0,
  pack_tokens   bigint   not null default 0,
  whole_tokens  bigint   not null default 0,
  wider         bigint   not null default 0,
  calls         bigint   not null default 0,
  input_tokens  bigint   not null default 0,
  cached_tokens bigint   not null default 0,
  output_tokens bigint   not null default 0,
  recalls       bigint   not null default 0,
  recalls_empty bigint   not null default 0,
  passages      bigint   not null default 0,
  boards_shown  bigint   not null default 0,
  failures      bigint   not null default 0,
  summaries     bigint   not null default 0,
  boards        bigint   not null default 0,
  chunks        bigint   not null default 0,
  embeds        bigint   not null default 0,
  signals       bigint[] not null default '{0,0,0,0,0,0,0,0}' check (
    cardinality(signals) = 8 and array_ndims(signals) = 1 and array_position(signals, null) is null),
  tone_sum      bigint   not null default 0,
  tone_count    bigint   not null default 0,
  primary key (user_id, agent_id, day),
  constraint usage_days_counts_check check (
    least(
      turns, messages, characters, packs, pack_tokens, whole_tokens, wider, calls, input_tokens, cached_tokens, output_tokens,
      recalls, recalls_empty, passages, boards_shown, failures, summaries, boards, chunks, embeds, tone_count) >= 0
    and greatest(
      turns, messages, characters, packs, pack_tokens, whole_tokens, wider, calls, input_tokens, cached_tokens, output_tokens,
      recalls, recalls_empty, passages, boards_shown, failures, summaries, boards, chunks, embeds, tone_count)
      <= 9007199254740991)
);
create index usage_days_day_idx on memory.usage_days (day, agent_id, user_id);

comment on table memory.usage_days is
  'What each user''s conversations with an agent came to on each day, in UTC: numbers alone, which outlive messages that are forgotten.';
comment on column memory.usage_days.turns is
  'Messages of the user. packs: prompts with a manifest; pack_tokens: theirs; whole_tokens: of the whole history in their place.';
comment on column memory.usage_days.wider is
  'Packs that were larger than the whole history. calls: those of which the model said its tokens.';
comment on column memory.usage_days.summaries is
  'Segments that were written. boards: revisions of boards; boards_shown: packs that showed one.';
comment on column memory.usage_days.failures is
  'Packs of which the summary, recall or the reranker failed.';
comment on column memory.usage_days.signals is
  'Of each signal, by its bit, how many chunks have it.';
comment on index memory.usage_days_day_idx is
  'Across owners. What is counted over all users, by whole days.';

-- How far each conversation is counted, so that nothing is counted twice.
create table memory.usage_cursors (
  user_id          text   not null,
  conversation_id  uuid   not null,
  through_sequence bigint not null default -1 check (through_sequence between -1 and 9007199254740991),
  indexed_through  bigint not null default -1 check (indexed_through between -1 and 9007199254740991),
  segments         bigint not null default 0 check (segments between 0 and 9007199254740991),
  board_version    bigint not null default 0 check (board_version between 0 and 9007199254740991),
  primary key (user_id, conversation_id),
  foreign key (user_id, conversation_id) references memory.conversations (user_id, id) on delete cascade
);
comment on table memory.usage_cursors is
  'How far each conversation is counted in usage_days: messages, chunks, segments and revisions of the board.';

-- What prompts have shown, by place: nothing of its content.
create table memory.reads (
  user_id         text        not null,
  conversation_id uuid        not null,
  from_sequence   bigint      not null check (from_sequence between 0 and 9007199254740991),
  part            integer     not null check (part between 0 and 1000000000),
  shown           bigint      not null default 1 check (shown between 1 and 9007199254740991),
  last_at         timestamptz not null check (last_at >= '0002-01-01 00:00+00' and last_at < '9999-01-01 00:00+00'),
  primary key (user_id, conversation_id, from_sequence, part),
  foreign key (user_id, conversation_id) references memory.conversations (user_id, id) on delete cascade
);
comment on table memory.reads is
  'Which passages and segments prompts have shown, how often and when last. What has no row was never shown.';
comment on column memory.reads.from_sequence is
  'The first message of the passage; of a segment its number.';
comment on column memory.reads.part is
  'The part of the passage, from 1; 0: it is a segment.';

-- By what rule counts over users are given out. Set by the migration; no call changes it.
create table memory_private.insight_rules (
  id     boolean  primary key default true check (id),
  k      smallint not null default 5 check (k between 5 and 1000),
  secret text     not null default gen_random_uuid()::text || gen_random_uuid()::text check (length(secret) >= 32)
);
insert into memory_private.insight_rules default values;
comment on table memory_private.insight_rules is
  'Reference table. How many users have to share a count before it is given out, and what its noise is drawn from.';
