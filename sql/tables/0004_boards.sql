-- Boards: the current summary of a conversation, and its items, each with its evidence.

create table memory.conversation_summary_boards (
  user_id          text        not null,
  conversation_id  uuid        not null,
  summary          text        not null default '' check (octet_length(summary) <= 65536),
  context_notes    text        not null default '' check (octet_length(context_notes) <= 65536),
  title            text check (octet_length(title) <= 1000),
  edited_summary   text check (octet_length(edited_summary) <= 65536),
  edited_by        text check (octet_length(edited_by) <= 1000),
  editor_kind      text check (editor_kind in ('person', 'application', 'model', 'rule', 'import')),
  edited_at        timestamptz,
  language         text check (octet_length(language) <= 63),
  model            text check (octet_length(model) <= 1000),
  tokens           integer     not null default 0 check (tokens between 0 and 300000),
  quality          real check (quality between 0 and 1),
  through_sequence bigint      not null default -1,
  version          bigint      not null default 0,
  created_at       timestamptz not null default clock_timestamp(),
  updated_at       timestamptz not null default clock_timestamp(),
  primary key (user_id, conversation_id),
  foreign key (user_id, conversation_id) references memory.conversations (user_id, id) on delete cascade,
  check (
    least(edited_at, created_at, updated_at) >= '0002-01-01 00:00+00'
    and greatest(edited_at, created_at, updated_at) < '9999-01-01 00:00+00'),
  check (
    least(through_sequence, version) >= -9007199254740991
    and greatest(through_sequence, version) <= 9007199254740991)
);

comment on table memory.conversation_summary_boards is
  'One per conversation: what is known of it so far, up to through_sequence. Moved by compare-and-swap alone.';
comment on column memory.conversation_summary_boards.title is
  'The summarizer''s title of the conversation. The first title stays until its messages are forgotten.';
comment on column memory.conversation_summary_boards.edited_summary is
  'What a person wrote instead, or to it; no model changes that.';

create table memory.conversation_board_items (
  user_id         text        not null,
  conversation_id uuid        not null,
  id              uuid        not null default gen_random_uuid(),
  kind            text        not null check (kind in ('fact', 'entity', 'topic', 'action', 'question')),
  type            text check (octet_length(type) <= 1000),
  text            text        not null check (octet_length(text) <= 16384),
  digest          text        not null check (octet_length(digest) <= 64),
  state           text        not null check (state in ('current', 'open', 'done', 'cancelled', 'answered', 'dropped')),
  importance      real        not null default 0.7 check (importance between 0 and 1),
  quote           text check (octet_length(quote) <= 16384),
  message_ids     text[]      not null default '{}' check (
    cardinality(message_ids) <= 1000) check (memory_private.is_text_list(message_ids)),
  sequences       bigint[]    not null default '{}' check (
    coalesce(array_ndims(sequences), 1) = 1 and array_position(sequences, null) is null
    and cardinality(sequences) <= 1000 and 0 <= all (sequences) and 9007199254740991 >= all (sequences)),
  first_seen_at   timestamptz not null,
  last_seen_at    timestamptz not null,
  version         integer     not null default 1 check (version between 0 and 1000000000),
  superseded_by   uuid,
  superseded_at   timestamptz,
  pinned          boolean     not null default false,
  author          text        not null check (octet_length(author) <= 1000),
  author_kind     text        not null default 'model' check (author_kind in ('person', 'application', 'model', 'rule', 'import')),
  edited_by       text check (octet_length(edited_by) <= 1000),
  editor_kind     text check (editor_kind in ('person', 'application', 'model', 'rule', 'import')),
  edited_at       timestamptz,
  deleted_at      timestamptz,
  quote_at        integer,
  quote_length    integer,
  contributed_by  text        check (
    contributed_by is null or user_id ~ '^space:' and octet_length(contributed_by) between 1 and 512
    and contributed_by !~ '[\u0001-\u001f\u007f-\u009f]'),
  said_at         timestamptz,
  primary key (user_id, conversation_id, id),
  foreign key (user_id, conversation_id) references memory.conversations (user_id, id) on delete cascade,
  check (
    least(first_seen_at, last_seen_at, superseded_at, edited_at, deleted_at, said_at) >= '0002-01-01 00:00+00'
    and greatest(first_seen_at, last_seen_at, superseded_at, edited_at, deleted_at, said_at) < '9999-01-01 00:00+00')
);

-- An item exists once. One that a person deleted stays by its digest, so that it is not added again.
create unique index conversation_board_items_digest_idx
  on memory.conversation_board_items (user_id, conversation_id, kind, digest) where superseded_at is null;

-- Current items of each kind in the order in which a pack reads them: pinned ones first, then the newest.
create index conversation_board_items_current_idx
  on memory.conversation_board_items (user_id, conversation_id, kind, pinned desc, last_seen_at desc, id)
  where superseded_at is null and deleted_at is null and state in ('current', 'open');

-- Recall looks for what no longer holds, of which there is mostly nothing.
create index conversation_board_items_superseded_idx
  on memory.conversation_board_items (user_id, conversation_id) where superseded_by is not null;

create index conversation_board_items_contributed_idx
  on memory.conversation_board_items (contributed_by) where contributed_by is not null;
comment on index memory.conversation_board_items_contributed_idx is
  'Across owners. What somebody has contributed to spaces.';

comment on table memory.conversation_board_items is
  'What a board lists. quote is a part of the source that message_ids names first.';
comment on column memory.conversation_board_items.superseded_at is
  'When something else was said that contradicts it; superseded_by says what.';
comment on column memory.conversation_board_items.deleted_at is
  'When a person deleted it: its text is gone, and its digest keeps it from coming back.';
comment on column memory.conversation_board_items.author_kind is
  'What author is: a person, the application, a model, a rule that selects quotes, or an import that does not say.';
comment on column memory.conversation_board_items.contributed_by is
  'In a space: who quoted it from a conversation of their own; said_at is when it was said there.';
comment on column memory.conversation_board_items.edited_at is
  'When a person or the application last changed it; no summarizer changes it since. What a model notes leaves it null.';
comment on column memory.conversation_board_items.quote_at is
  'Where in its source, from 1, and how long the quote of a deleted item was: the summarizer of boards no longer gets it.';

-- Every change of a board: who, when, what. The words before a change are deleted with the item.
create table memory.conversation_board_changes (
  user_id         text        not null,
  conversation_id uuid        not null,
  version         bigint      not null,
  place           integer     not null,
  item_id         uuid,
  action          text        not null check (octet_length(action) <= 100),
  before          text check (octet_length(before) <= 65536),
  sequence        bigint,
  changed_by      text        not null check (octet_length(changed_by) <= 1000),
  changed_at      timestamptz not null default clock_timestamp(),
  kept            jsonb       check (octet_length(kept::text) <= 65536),
  primary key (user_id, conversation_id, version, place),
  foreign key (user_id, conversation_id) references memory.conversations (user_id, id) on delete cascade,
  foreign key (user_id, conversation_id, item_id)
    references memory.conversation_board_items (user_id, conversation_id, id) on delete cascade,
  check (changed_at >= '0002-01-01 00:00+00' and changed_at < '9999-01-01 00:00+00'),
  check (least(version, sequence) >= -9007199254740991 and greatest(version, sequence) <= 9007199254740991)
);

create index conversation_board_changes_item_idx
  on memory.conversation_board_changes (user_id, conversation_id, item_id, version, place);

create index conversation_board_changes_version_idx
  on memory.conversation_board_changes (user_id, conversation_id, changed_at, version) where place = 0;

comment on column memory.conversation_board_changes.sequence is
  'The message that says so, where a model changed a state.';
comment on column memory.conversation_board_changes.kept is
  'What was there before, without words, so that the board can be read as it was; null where nothing was, and once a
  person deleted the item.';
comment on table memory.conversation_board_changes is
  'The history of a board: version counts its changes, place those of one version. Place 0 is the version itself, by the
  database''s clock: its action is revise where the summary or the notes were written anew, else change.';
