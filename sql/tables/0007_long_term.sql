-- Long-term memory: what of a profile was moved there, as ids without content. Rows are not deleted with the item, because
-- long-term memory may be in another database: they find there what does not hold here any more.
create table memory.promotions (
  user_id   text    not null check (
    octet_length(user_id) between 1 and 512 and user_id !~ '[\u0001-\u001f\u007f-\u009f]' and user_id !~ '^space:'),
  target    text    not null check (
    octet_length(target) between 1 and 512 and target !~ '[\u0001-\u001f\u007f-\u009f]'),
  memory_id uuid    not null,
  item_id   uuid    not null,
  evidence  uuid[]  not null check (cardinality(evidence) <= 1000),
  moved     boolean not null default false,
  primary key (user_id, target, memory_id)
);

create index promotions_item_idx on memory.promotions (user_id, target, item_id);

comment on column memory.promotions.target is
  'The long-term memory that it was moved to, by its name.';
comment on column memory.promotions.memory_id is
  'Under which it is stored there: made from the ids of the item and of its evidence.';
comment on column memory.promotions.item_id is
  'The item of the profile.';
comment on column memory.promotions.evidence is
  'The ids of the evidence whose words went with it. Where one is gone here, it goes there.';
comment on column memory.promotions.moved is
  'False from before the move until it is confirmed, and from when it has to go until it is gone.';
