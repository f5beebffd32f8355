-- Due work: the conversations that a worker has to process. Work is state and not a log: one row per conversation,
-- written in the transaction that makes it due. It can be derived again, so losing it loses nothing.

create table memory_private.work (
  user_id         text        not null,
  conversation_id uuid        not null,
  since           timestamptz not null default clock_timestamp(),
  run_after       timestamptz not null default clock_timestamp(),
  priority        smallint    not null default 0,
  attempts        integer     not null default 0,
  error           text,
  worker          text,
  lease_token     uuid,
  lease_until     timestamptz,
  is_moved        boolean     not null default false,
  paused          jsonb       not null default '{}',
  dead_at         timestamptz,
  primary key (user_id, conversation_id),
  foreign key (user_id, conversation_id) references memory.conversations (user_id, id) on delete cascade
) with (fillfactor = 70); -- a lease is updated in place

-- An owner's most urgent and earliest work: nothing is searched among the work of all owners.
create index work_ready_idx on memory_private.work (user_id, priority desc, run_after);
create index work_next_idx on memory_private.work (user_id, run_after);
create index work_dead_idx on memory_private.work (dead_at) where dead_at is not null;
comment on index memory_private.work_dead_idx is
  'Across owners. The oldest of all that were given up, for operators: a few rows of a table that is short.';
create index work_leased_idx on memory_private.work (lease_until) where lease_token is not null;
comment on index memory_private.work_leased_idx is
  'Across owners. What workers are at, for operators: as many rows as workers have in hand, however much waits.';

comment on table memory_private.work is
  'Conversations that a worker has to look at; each is there once, however many messages were stored.';
comment on column memory_private.work.run_after is
  'Not before this time: the end of a lease, or of the wait after a failure; infinity if all that is left was given up.';
comment on column memory_private.work.is_moved is
  'Whether, while it was leased, something happened that the position does not show: a chunk became stale.';
comment on column memory_private.work.paused is
  'What failed, by the name of the duty, or all: {"failures", "error", "until"}; until infinity if it was given up.';
comment on column memory_private.work.dead_at is
  'Since when nobody tries some of it any more, because it failed too often.';

-- The turns of owners. Workers serve owners in turn, so that nobody waits because another has much work or asks for
-- much.
create table memory_private.owners (
  user_id text        primary key,
  turn_at timestamptz not null, -- the place in the round: when something became due, or when it was last their turn
  due_at  timestamptz not null  -- when their earliest work can be taken: never later than that, but perhaps earlier
) with (fillfactor = 70);

create index owners_turn_idx on memory_private.owners (turn_at, due_at);
comment on index memory_private.owners_turn_idx is
  'Across owners. Whose turn is next, for workers: one row for each who has something due.';

comment on table memory_private.owners is
  'Owners of work that is not given up. Written when a transaction commits, and by who takes work.';

-- Answers of a model that were followed by another question before anything was stored: a long message is summarized in
-- parts, and a summary that is too long is asked for again. A worker that is killed in between repeats one question,
-- not all.
create table memory_private.drafts (
  user_id         text        not null,
  conversation_id uuid        not null,
  digest          text        not null,
  answer          text        not null,
  made_at         timestamptz not null default clock_timestamp(),
  primary key (user_id, conversation_id, digest),
  foreign key (user_id, conversation_id) references memory_private.work (user_id, conversation_id) on delete cascade
);

comment on table memory_private.drafts is
  'Answers of a model that are not stored as anything yet. They go when the work is done, and when a message goes.';
comment on column memory_private.drafts.digest is 'Of the question, and of the model''s name.';

-- One of several workers runs it: the one that advances run_after.
create table memory_private.chores (
  name      text        primary key,
  run_after timestamptz not null,
  done_at   timestamptz not null default clock_timestamp()
);

comment on table memory_private.chores is
  'Reference table. What is done from time to time for all conversations, when it was begun last, and when it is next.';
