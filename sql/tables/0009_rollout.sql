-- Introducing the memory step by step: which stage an agent is at, and what the old and the new context came to.

-- Every decision stays: the newest of an agent holds. Users may read what holds, and not who decided it.
create table memory.rollouts (
  agent_id text        not null check (
    octet_length(agent_id) between 1 and 512 and agent_id !~ '[\u0001-\u001f\u007f-\u009f]'),
  version  bigint      not null,
  stage    text        not null check (stage in ('off', 'parallel', '25', '15', '10', '5', 'on')),
  share    float8      not null default 1 check (share between 0 and 1),
  rest     text        not null default 'off' check (rest in ('off', 'parallel', '25', '15', '10', '5', 'on')),
  set_by   text        not null check (set_by <> ''),
  set_at   timestamptz not null default clock_timestamp(),
  primary key (agent_id, version)
);

comment on table memory.rollouts is
  'Reference table. Which context the users of an agent receive: a share of them that of stage, the others that of rest.';

create table memory.context_comparisons (
  user_id            text        not null,
  conversation_id    uuid        not null,
  id                 uuid        not null default gen_random_uuid(),
  compared_at        timestamptz not null default clock_timestamp(),
  stage              text        not null check (octet_length(stage) <= 20),
  old_messages       integer     not null,
  new_messages       integer,
  old_tokens         integer     not null,
  new_tokens         integer,
  old_characters     integer     not null,
  new_characters     integer,
  old_ms             float8      not null check (old_ms >= 0 and old_ms < 1e12),
  new_ms             float8 check (new_ms >= 0 and new_ms < 1e12),
  shared             integer,
  only_old           integer,
  only_new           integer,
  covered_by_summary integer,
  omitted            integer,
  error              text check (octet_length(error) <= 1000),
  primary key (user_id, conversation_id, id),
  foreign key (user_id, conversation_id) references memory.conversations (user_id, id) on delete cascade,
  check (compared_at >= '0002-01-01 00:00+00' and compared_at < '9999-01-01 00:00+00')
);

create index context_comparisons_compared_at_idx
  on memory.context_comparisons (user_id, conversation_id, compared_at);

comment on table memory.context_comparisons is
  'The last messages beside the context pack, for one call of the model: numbers alone. Kept for 30 days.';
