-- The profile of a person: what holds for them, with the words that say so. Private to them: a space has none.

-- One value over one stretch of time. What holds is decided by memory_private.settle_profile alone.
create table memory.profile_items (
  user_id       text        not null check (
    octet_length(user_id) between 1 and 512 and user_id !~ '[\u0001-\u001f\u007f-\u009f]' and user_id !~ '^space:'),
  id            uuid        not null default gen_random_uuid(),
  agent_id      text check (octet_length(agent_id) between 1 and 512 and agent_id !~ '[\u0001-\u001f\u007f-\u009f]'),
  kind          text        not null check (kind in ('fact', 'preference', 'instruction', 'trait', 'constraint')),
  subject       text        not null check (octet_length(subject) <= 1000),
  value         text        not null check (octet_length(value) <= 4000),
  polarity      smallint    not null default 0 check (polarity between -1 and 1),
  condition     text check (octet_length(condition) <= 1000),
  chain         text        not null check (octet_length(chain) <= 64),
  digest        text        not null check (octet_length(digest) <= 64),
  basis         text        not null check (basis in ('stated', 'corrected', 'repeated', 'inferred', 'person')),
  state         text        not null default 'proposed' check (state in ('proposed', 'held', 'superseded', 'deleted')),
  pinned        boolean     not null default false,
  author        text        not null check (author <> '' and octet_length(author) <= 1000),
  author_kind   text        not null check (author_kind in ('person', 'application', 'model', 'rule', 'import')),
  evidence      integer     not null default 0 check (evidence between 0 and 1000),
  first_seen_at timestamptz not null,
  last_seen_at  timestamptz not null,
  held_at       timestamptz,
  noted_at      timestamptz,
  ended_at      timestamptz,
  superseded_by uuid,
  suggested_at  timestamptz,
  confirmed_at  timestamptz,
  confirmed_by  text check (confirmed_by <> '' and octet_length(confirmed_by) <= 1000),
  deleted_at    timestamptz,
  primary key (user_id, id),
  check ((confirmed_at is null) = (confirmed_by is null)),
  check ((state = 'deleted') = (deleted_at is not null)),
  check (state = 'deleted' or value <> '' and subject <> '' and condition is distinct from ''),
  check (
    least(first_seen_at, last_seen_at, held_at, ended_at, suggested_at, confirmed_at, deleted_at) >= '0002-01-01 00:00+00'
    and greatest(first_seen_at, last_seen_at, held_at, ended_at, suggested_at, confirmed_at, deleted_at) < '9999-01-01 00:00+00')
);

create unique index profile_items_once_idx on memory.profile_items (user_id, chain, digest)
  where state in ('proposed', 'held');
create index profile_items_chain_idx on memory.profile_items (user_id, chain);
create index profile_items_digest_idx on memory.profile_items (user_id, digest);

comment on table memory.profile_items is
  'What is known of a person: preferences, instructions, constraints, traits and facts, one row for each value and the time over which it holds.';
comment on column memory.profile_items.agent_id is
  'The agent with which it holds. Null: with all.';
comment on column memory.profile_items.chain is
  'A digest of what it is about: agent, kind, subject and condition. Of one chain one value holds at a time.';
comment on column memory.profile_items.digest is
  'A digest of what it says. It outlives the words of an item that a person deleted, which no conversation brings back. Empty: that a person has remembered again.';
comment on column memory.profile_items.basis is
  'Why it holds: a person wrote or confirmed it, the user corrected it, stated that it lasts, or said it in two conversations. inferred: none of these.';
comment on column memory.profile_items.noted_at is
  'Since when it has been known here that it holds, by the database''s clock. Null: it does not.';
comment on column memory.profile_items.suggested_at is
  'When a model or an import put it forward, without words of the person. By itself it is proposed, and waits for them.';
comment on column memory.profile_items.evidence is
  'How many messages say so, as it was settled. Where fewer are left, it is settled at the end of the transaction.';

-- The messages that say so. Where one goes, what holds is settled anew.
create table memory.profile_evidence (
  user_id         text        not null check (user_id !~ '^space:'),
  id              uuid        not null default gen_random_uuid(),
  item_id         uuid        not null,
  conversation_id uuid        not null,
  message_id      text        not null check (octet_length(message_id) <= 512),
  sequence        bigint      not null check (sequence between 0 and 9007199254740991),
  place           integer     not null check (place >= 0),
  quote           text        not null check (octet_length(quote) <= 16384),
  durable         boolean     not null default false,
  corrects        boolean     not null default false,
  relayed         boolean     not null default false,
  said_at         timestamptz not null,
  contradicted_at timestamptz,
  primary key (user_id, item_id, conversation_id, message_id),
  foreign key (user_id, item_id) references memory.profile_items (user_id, id) on delete cascade,
  foreign key (user_id, conversation_id) references memory.conversations (user_id, id) on delete cascade,
  check (
    least(said_at, contradicted_at) >= '0002-01-01 00:00+00' and greatest(said_at, contradicted_at) < '9999-01-01 00:00+00')
);

create index profile_evidence_message_idx on memory.profile_evidence (user_id, conversation_id, message_id);

comment on table memory.profile_evidence is
  'Which messages of a person say what is in their profile.';
comment on column memory.profile_evidence.id is
  'Drawn by chance; stays with the words where they become evidence of another stretch of time.';
comment on column memory.profile_evidence.place is
  'Where in the message the quote begins, from 1; 0: unknown.';
comment on column memory.profile_evidence.durable is
  'Whether they say that it lasts.';
comment on column memory.profile_evidence.corrects is
  'Whether they correct what was thought before.';

comment on column memory.profile_evidence.contradicted_at is
  'When the user said what superseded these words on their conversation''s board. Then they hold no more.';
comment on column memory.profile_evidence.relayed is
  'Whether a model passed the message on as the person''s. Then it proposes, and holds nothing.';

-- What a person allows to be derived, by purpose. Without a row nothing is refused.
create table memory.consents (
  user_id    text        not null check (
    octet_length(user_id) between 1 and 512 and user_id !~ '[\u0001-\u001f\u007f-\u009f]' and user_id !~ '^space:'),
  purpose    text        not null check (purpose in ('profile', 'topics', 'signals', 'tone', 'analytics')),
  allowed    boolean     not null,
  changed_by text        not null check (changed_by <> '' and octet_length(changed_by) <= 1000),
  changed_at timestamptz not null default clock_timestamp(),
  primary key (user_id, purpose),
  check (changed_at >= '0002-01-01 00:00+00' and changed_at < '9999-01-01 00:00+00')
);

comment on table memory.consents is
  'What a person allows or refuses to have derived from their conversations, and who said so.';
