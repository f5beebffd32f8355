-- The store: items of long-term memory, by namespace and key, as LangGraph's BaseStore has them.

-- Returns a namespace as one text, each label ended by chr(1): a prefix is then one range of an index, in the order of
-- the labels. chr(1) and chr(2) within a label are escaped. Text and not the array, because operators of arrays are not
-- leakproof and use no index under row level security. Part of the table: it is never changed.
create function memory_private.store_path(p_namespace text[]) returns text
language sql immutable security invoker set search_path = ''
as $function$
  select coalesce(string_agg(
           replace(replace(l.label, chr(2), chr(2) || chr(3)), chr(1), chr(2) || chr(2)) || chr(1), '' order by l.position),
         '')
  from unnest(p_namespace) with ordinality as l (label, position)
$function$;

create table memory.store_items (
  user_id      text             not null check (
    octet_length(user_id) between 1 and 512 and user_id !~ '[\u0001-\u001f\u007f-\u009f]'),
  path         text collate "C" not null generated always as (memory_private.store_path(namespace)) stored,
  key          text collate "C" not null,
  namespace    text[]           not null
    check (array_ndims(namespace) = 1 and array_position(namespace, null) is null and '' <> all (namespace)),
  value        json             not null check ( -- json, not jsonb: what comes back is what was put, in its order
    json_typeof(value) = 'object' and octet_length(value::text) <= 8388608 and value::jsonb is not null
    and memory_private.is_shallow(value::text)),
  words        tsvector         not null default '',
  index_fields text[] check (
    coalesce(array_ndims(index_fields), 1) = 1 and array_position(index_fields, null) is null
    and octet_length(array_to_string(index_fields, '')) <= 65536),
  ttl_minutes  double precision check (ttl_minutes > 0 and ttl_minutes <= 1e9),
  expires_at   timestamptz,
  created_at   timestamptz      not null default clock_timestamp(),
  updated_at   timestamptz      not null default clock_timestamp(),
  primary key (user_id, path, key),
  check ((ttl_minutes is null) = (expires_at is null)),
  check (octet_length(path) + octet_length(key) <= 2000),
  check (
    least(expires_at, created_at, updated_at) >= '0002-01-01 00:00+00'
    and greatest(expires_at, created_at, updated_at) < '9999-01-01 00:00+00')
);

create index store_items_expires_at_idx on memory.store_items (user_id, expires_at) where expires_at is not null;

comment on table memory.store_items is
  'One item of long-term memory, named by (user_id, namespace, key).';
comment on column memory.store_items.words is
  'The words of the value''s first 100,000 characters, as text search reduces them.';
comment on column memory.store_items.index_fields is
  'Which fields of the value are to be found by meaning: null for the store''s own choice, none for never.';

-- Vectors of items. Any width and any number of models, so that one model can replace another while both are in use.
create table memory.store_vectors (
  user_id    text               not null,
  path       text collate "C"   not null,
  key        text collate "C"   not null,
  model      text               not null check (model <> '' and octet_length(model) <= 512),
  dimensions integer            not null check (dimensions = {{vector_schema}}.vector_dims(embedding)),
  number     integer            not null check (number > 0),
  field      text               not null check (octet_length(field) <= 4096),
  embedding  {{vector_schema}}.halfvec not null, -- of length one: an inner product is a cosine
  primary key (user_id, path, key, model, dimensions, number),
  foreign key (user_id, path, key) references memory.store_items (user_id, path, key) on delete cascade
);
-- Stored in the row while it fits: a scan of many vectors must not fetch each from elsewhere.
alter table memory.store_vectors alter column embedding set storage main;

comment on table memory.store_vectors is
  'What an item''s fields mean, by one model: the item is found by the one that is nearest.';
