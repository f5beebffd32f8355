-- What one call may bring and take away. The operator's to change, within what a server can bear. What is within the
-- lower bounds of message_bytes and call_items is not checked: memory_private.check_limits and memory_append know them.
--   update memory_private.limits set message_bytes = 8388608;
create table memory_private.limits (
  only_row       boolean primary key default true check (only_row),
  database_id    uuid    not null default gen_random_uuid(),
  message_bytes  integer not null default 4194304  check (message_bytes between 16384 and 33554432),
  call_bytes     integer not null default 16777216 check (call_bytes between 65536 and 67108864),
  call_items     integer not null default 10000    check (call_items between 10 and 100000),
  answer_bytes   integer not null default 8388608  check (answer_bytes between 65536 and 67108864),
  store_bytes    integer not null default 1048576  check (store_bytes between 1024 and 8388608),
  store_calls    integer not null default 1000     check (store_calls between 1 and 10000),
  store_searches integer not null default 100      check (store_searches between 1 and 1000),
  opt_outs       integer not null default 1000     check (opt_outs between 1 and 10000),
  board_items    integer not null default 5000     check (board_items between 1 and 50000),
  spaces         integer not null default 100      check (spaces between 1 and 10000),
  space_members  integer not null default 1000     check (space_members between 1 and 100000),
  invitations    integer not null default 100      check (invitations between 1 and 10000),
  profile_items  integer not null default 10000    check (profile_items between 1 and 100000)
);
insert into memory_private.limits default values;

comment on table memory_private.limits is
  'Reference table. What one call may bring and take away: one row, for all users.';
comment on column memory_private.limits.database_id is
  'What tells this database from every other. A copy has the same.';
comment on column memory_private.limits.message_bytes is 'Of one message, with all that is stored beside its payload.';
comment on column memory_private.limits.call_bytes is 'Of all that one call passes.';
comment on column memory_private.limits.call_items is 'How many messages, ids, chunks or vectors one call passes.';
comment on column memory_private.limits.answer_bytes is 'About so much one call reads; one message or item at least.';
comment on column memory_private.limits.store_bytes is 'Of the value of one item of the store.';
comment on column memory_private.limits.store_calls is 'How many operations of the store one call passes.';
comment on column memory_private.limits.store_searches is 'How many of them search or list namespaces.';
comment on column memory_private.limits.opt_outs is 'How many topics and conversations of one user are not to be remembered.';
comment on column memory_private.limits.board_items is 'How many items one board holds, what was superseded or deleted among them.';
comment on column memory_private.limits.spaces is 'How many spaces one user creates, and how many one user is in.';
comment on column memory_private.limits.space_members is 'How many members one space has.';
comment on column memory_private.limits.invitations is 'How many open invitations one space has.';
comment on column memory_private.limits.profile_items is 'How many items the profile of one user holds, what was superseded or deleted among them.';
