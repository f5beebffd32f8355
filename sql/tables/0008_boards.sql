-- Boards: the living summary of a conversation, and its items, each with its evidence.

create table memory.conversation_summary_boards (
  user_id          text        not null,
  conversation_id  uuid        not null,
  summary          text        not null default '',
  context_notes    text        not null default '',
  edited_summary   text,
  edited_by        text,
  edited_at        timestamptz,
  language         text,
  model            text,
  tokens           integer     not null default 0,
  quality          real,
  through_sequence bigint      not null default -1,
  version          bigint      not null default 0,
  created_at       timestamptz not null default clock_timestamp(),
  updated_at       timestamptz not null default clock_timestamp(),
  primary key (user_id, conversation_id),
  foreign key (user_id, conversation_id) references memory.conversations (user_id, id) on delete cascade
);

comment on table memory.conversation_summary_boards is
  'One per conversation: what is known of it so far, up to through_sequence. Moved by compare-and-swap alone.';
comment on column memory.conversation_summary_boards.edited_summary is
  'What a person wrote instead, or to it; no model changes that.';

create table memory.conversation_board_items (
  user_id         text        not null,
  conversation_id uuid        not null,
  id              uuid        not null default gen_random_uuid(),
  kind            text        not null check (kind in ('fact', 'entity', 'topic', 'action', 'question')),
  type            text,
  text            text        not null,
  digest          text        not null,
  state           text        not null,
  importance      real        not null default 0.7 check (importance between 0 and 1),
  quote           text,
  message_ids     text[]      not null default '{}',
  sequences       bigint[]    not null default '{}',
  first_seen_at   timestamptz not null,
  last_seen_at    timestamptz not null,
  version         integer     not null default 1,
  superseded_by   uuid,
  superseded_at   timestamptz,
  pinned          boolean     not null default false,
  author          text        not null,
  edited_by       text,
  edited_at       timestamptz,
  deleted_at      timestamptz,
  quote_at        integer,
  quote_length    integer,
  primary key (user_id, conversation_id, id),
  foreign key (user_id, conversation_id) references memory.conversations (user_id, id) on delete cascade
);

-- The same is there once; what a person deleted stays noted by its digest, so that it does not come back.
create unique index conversation_board_items_digest_idx
  on memory.conversation_board_items (user_id, conversation_id, kind, digest) where superseded_at is null;

-- What holds of each kind, in the order in which a pack reads it: pinned ones first, then what was said last.
create index conversation_board_items_current_idx
  on memory.conversation_board_items (user_id, conversation_id, kind, pinned desc, last_seen_at desc, id)
  where superseded_at is null and deleted_at is null and state in ('current', 'open');

comment on table memory.conversation_board_items is
  'What a board lists. quote is a part of the source that message_ids names first.';
comment on column memory.conversation_board_items.superseded_at is
  'When something else was said that contradicts it; superseded_by says what.';
comment on column memory.conversation_board_items.deleted_at is
  'When a person deleted it: its text is gone, and its digest keeps it from coming back.';
comment on column memory.conversation_board_items.quote_at is
  'Where in its source, from 1, and how long the quote of a deleted item was: no writer of boards is shown that any more.';

-- Every change of a board: who, when, what. The words before a change go with the item.
create table memory.conversation_board_changes (
  user_id         text        not null,
  conversation_id uuid        not null,
  version         bigint      not null,
  place           integer     not null,
  item_id         uuid,
  action          text        not null,
  before          text,
  sequence        bigint,
  changed_by      text        not null,
  changed_at      timestamptz not null default clock_timestamp(),
  primary key (user_id, conversation_id, version, place),
  foreign key (user_id, conversation_id) references memory.conversations (user_id, id) on delete cascade,
  foreign key (user_id, conversation_id, item_id)
    references memory.conversation_board_items (user_id, conversation_id, id) on delete cascade
);

create index conversation_board_changes_item_idx
  on memory.conversation_board_changes (user_id, conversation_id, item_id);

comment on column memory.conversation_board_changes.sequence is
  'The message that says so, where a model changed a state.';
comment on table memory.conversation_board_changes is
  'The history of a board: version counts its changes, place those of one version.';

-- Facts of a board move to long-term memory too; what is no longer on it is found by this, while a chunk may expire.
alter table memory.promotions add column from_board boolean not null default false;

comment on column memory.promotions.from_board is
  'Whether source_id is an item of a board, and not a chunk.';
