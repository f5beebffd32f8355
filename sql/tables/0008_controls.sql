-- Controls of people: opt-outs, and the record of changes.

-- An opt-out of a conversation, or of a topic in one or in all conversations of a user.
create table memory.opt_outs (
  user_id         text        not null check (
    octet_length(user_id) between 1 and 512 and user_id !~ '[\u0001-\u001f\u007f-\u009f]'),
  id              uuid        not null default gen_random_uuid(),
  conversation_id uuid,
  topic           text check (octet_length(topic) <= 1000),
  folded          text check (octet_length(folded) <= 1500),
  created_by      text        not null check (created_by <> '' and octet_length(created_by) <= 1000),
  created_at      timestamptz not null default clock_timestamp(),
  primary key (user_id, id),
  check (conversation_id is not null or topic is not null),
  check ((topic is null) = (folded is null) and folded <> ''),
  foreign key (user_id, conversation_id) references memory.conversations (user_id, id) on delete cascade,
  check (created_at >= '0002-01-01 00:00+00' and created_at < '9999-01-01 00:00+00')
);

create unique index opt_outs_once_idx on memory.opt_outs (
  user_id, coalesce(conversation_id, '00000000-0000-0000-0000-000000000000'), coalesce(folded, ''));

comment on table memory.opt_outs is
  'What is not to be remembered, with who said so. Without a conversation: in all of the user''s.';
comment on column memory.opt_outs.folded is
  'The topic as texts are compared with it, see memory_private.fold_text.';

-- Every change by a person: who, when, what. Changes of boards are in conversation_board_changes.
create table memory.control_changes (
  user_id         text        not null check (
    octet_length(user_id) between 1 and 512 and user_id !~ '[\u0001-\u001f\u007f-\u009f]'),
  id              uuid        not null default gen_random_uuid(),
  conversation_id uuid,
  action          text        not null check (octet_length(action) <= 100),
  subject         text check (octet_length(subject) <= 1000),
  before          text check (octet_length(before) <= 65536),
  to_sequence     bigint,
  changed_by      text        not null check (changed_by <> '' and octet_length(changed_by) <= 1000),
  changed_at      timestamptz not null default clock_timestamp(),
  primary key (user_id, id),
  foreign key (user_id, conversation_id) references memory.conversations (user_id, id) on delete cascade,
  check (changed_at >= '0002-01-01 00:00+00' and changed_at < '9999-01-01 00:00+00')
);

create index control_changes_changed_at_idx on memory.control_changes (user_id, changed_at);
create index control_changes_conversation_idx on memory.control_changes (user_id, conversation_id);

-- What an opt-out deleted of a conversation, for a minute: until then opting in restores it.
create table memory.opt_out_undos (
  user_id         text        not null,
  opt_out_id      uuid        not null,
  conversation_id uuid        not null,
  rows            jsonb       not null,
  after           jsonb       not null,
  expires_at      timestamptz not null default clock_timestamp() + interval '1 minute',
  primary key (user_id, conversation_id, opt_out_id),
  foreign key (user_id, opt_out_id) references memory.opt_outs (user_id, id) on delete cascade,
  foreign key (user_id, conversation_id) references memory.conversations (user_id, id) on delete cascade,
  check (expires_at >= '0002-01-01 00:00+00' and expires_at < '9999-01-01 00:00+00')
);

comment on table memory.opt_out_undos is
  'What an opt-out took away, kept for a minute. It goes as soon as the conversation''s messages change.';
comment on column memory.opt_out_undos.rows is
  'The rows as they were, see memory_private.snapshot_derived.';
comment on column memory.opt_out_undos.after is
  'A digest of each of its parts as the opt-out left it: what has changed since is not overwritten.';

comment on column memory.control_changes.subject is
  'A topic, the id of a chunk, or the number of a summary.';
comment on column memory.control_changes.before is
  'What stood there before. The words of a summary go when a message that it was made from changes or goes.';
comment on column memory.control_changes.to_sequence is
  'The last message that a summary was made from.';
