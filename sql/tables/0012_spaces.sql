-- Spaces: memory that several people share. A space is an owner: what it holds is in the other tables, under its user_id.

-- A space owns its own row.
create table memory.spaces (
  user_id    text        primary key check (
    user_id ~ '^space:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$'),
  name       text        not null check (length(name) between 1 and 200 and octet_length(name) <= 1000),
  about      text        not null default '' check (octet_length(about) <= 8000),
  retention  jsonb       check (jsonb_typeof(retention) = 'object' and octet_length(retention::text) <= 1000),
  labels     jsonb       not null default '{}' check (jsonb_typeof(labels) = 'object'),
  numbered   integer     not null default 0 check (numbered >= 0),
  created_by text        not null check (
    octet_length(created_by) between 1 and 512 and created_by !~ '[\u0001-\u001f\u007f-\u009f]'),
  created_at timestamptz not null default clock_timestamp(),
  check (created_at >= '0002-01-01 00:00+00' and created_at < '9999-01-01 00:00+00')
);

create index spaces_created_by_idx on memory.spaces (created_by);
comment on index memory.spaces_created_by_idx is
  'Across owners. How many spaces somebody has created.';

comment on table memory.spaces is
  'Spaces, which people share. Each owns its rows in all other tables, as a user owns theirs.';
comment on column memory.spaces.name is
  'For display alone: names are not unique. Calls name a space by its user_id.';
comment on column memory.spaces.retention is
  'What is kept of its messages, as in memory_append; it holds in place of what a call says. Null: everything.';

comment on column memory.spaces.labels is
  'What people are called in its prompts, by their ids, each differently: a name, or "member" and a number.';
comment on column memory.spaces.numbered is
  'How many numbers it has given as labels: none is given twice.';

-- Roles are rows and not claims, so that a revocation holds from the next statement on. Owned by the member: the
-- policies look the caller's own up.
create table memory.memberships (
  user_id    text        not null check (
    octet_length(user_id) between 1 and 512 and user_id !~ '[\u0001-\u001f\u007f-\u009f]' and user_id !~ '^space:'),
  space_id   text        not null check (space_id ~ '^space:' and octet_length(space_id) <= 512),
  role       smallint    not null check (role between 0 and 3),
  granted_by text        not null check (
    octet_length(granted_by) between 1 and 512 and granted_by !~ '[\u0001-\u001f\u007f-\u009f]'),
  granted_at timestamptz not null default clock_timestamp(),
  primary key (user_id, space_id),
  check (granted_at >= '0002-01-01 00:00+00' and granted_at < '9999-01-01 00:00+00')
);

create index memberships_space_idx on memory.memberships (space_id, role);
comment on index memory.memberships_space_idx is
  'Across owners. Who is in a space, and who manages it.';

comment on table memory.memberships is
  'Who may do what in which space.';
comment on column memory.memberships.role is
  '3 manager, 2 contributor, 1 reader; 0 former: reaches nothing, and may still forget what they wrote.';
comment on column memory.memberships.granted_at is
  'Since when they have this role. Only an invitation that was made later gives them a higher one, or lets them in again.';

-- Open invitations. The token is shown once; only a digest of it is stored.
create table memory.invitations (
  user_id    text        not null,
  digest     bytea       not null check (octet_length(digest) = 32),
  role       smallint    not null check (role between 1 and 2),
  uses       integer     not null check (uses between 1 and 1000),
  created_by text        not null check (
    octet_length(created_by) between 1 and 512 and created_by !~ '[\u0001-\u001f\u007f-\u009f]'),
  created_at timestamptz not null default clock_timestamp(),
  expires_at timestamptz not null,
  primary key (user_id, digest),
  foreign key (user_id) references memory.spaces (user_id) on delete cascade,
  check (
    least(created_at, expires_at) >= '0002-01-01 00:00+00'
    and greatest(created_at, expires_at) < '9999-01-01 00:00+00')
);

comment on table memory.invitations is
  'Invitations into a space that can still be used.';
comment on column memory.invitations.digest is
  'SHA-256 of the token''s secret, which has 244 random bits.';
comment on column memory.invitations.uses is
  'How many people it still lets in.';

-- What was contributed from members' own conversations to boards of spaces. Owned by who contributed: they alone follow it
-- back. Whoever deletes a row, a person or a rule, takes the item back, see sql/functions/contributions.sql.
create table memory.contributions (
  user_id         text        not null check (user_id !~ '^space:'),
  conversation_id uuid        not null,
  message_id      text        not null check (octet_length(message_id) <= 512),
  space_id        text        not null check (space_id ~ '^space:' and octet_length(space_id) <= 512),
  item_id         uuid        not null,
  quote           text        not null check (octet_length(quote) <= 16384),
  contributed_at  timestamptz not null default clock_timestamp(),
  primary key (user_id, conversation_id, message_id, space_id, item_id),
  foreign key (user_id, conversation_id) references memory.conversations (user_id, id) on delete cascade,
  check (contributed_at >= '0002-01-01 00:00+00' and contributed_at < '9999-01-01 00:00+00')
);

create index contributions_item_idx on memory.contributions (space_id, item_id);
comment on index memory.contributions_item_idx is
  'Across owners. Where an item of a space was contributed from.';

comment on table memory.contributions is
  'Which message each contributed item of a space quotes. By it the item goes when the message does.';
comment on column memory.contributions.quote is
  'The words as they stood in the message.';
