-- The verbs over the store's items, and what they are made of.

-- Returns the text search vector of a value: its texts and numbers, not its keys. A text search vector has a maximum
-- size, so only the first 100,000 characters count.
create or replace function memory_private.store_words(p_value jsonb) returns tsvector
language sql stable security invoker set search_path = ''
as $function$
  select coalesce(array_to_tsvector(array(
           select l.lexeme from memory_private.lexemes('english', t.text) l
           union select l.lexeme from memory_private.lexemes('simple', t.text) l)), '')
  from (select left(string_agg(v #>> '{}', ' '), 100000) as text
        from jsonb_path_query(p_value, 'strict $.** ? (@.type() == "string" || @.type() == "number")') v) t
$function$;

-- Returns the lexemes of a query, at most the hundred longest. English stop words count only if there are no others.
create or replace function memory_private.store_lexemes(p_query text) returns text[]
language sql stable security invoker set search_path = ''
as $function$
  select (coalesce(array_agg(l.lexeme order by length(l.lexeme) desc) filter (where l.told),
                   array_agg(l.lexeme order by length(l.lexeme) desc)))[:100]
  from (select distinct on (l.lexeme) l.lexeme, numnode(plainto_tsquery('english', l.lexeme)) > 0 as told
        from (select * from memory_private.lexemes('english', left(p_query, 10000))
              union all select * from memory_private.lexemes('simple', left(p_query, 10000))) l
        order by l.lexeme) l
$function$;

-- Returns the number that a stored value is or stands for; null if it is none.
create or replace function memory_private.store_number(p_value jsonb) returns numeric
language sql immutable security invoker set search_path = ''
as $function$
  select nullif(case
    when jsonb_typeof(p_value) = 'number' then p_value::numeric
    -- A value that is no number compares with nothing.
    when p_value ->> '$python' in ('float', 'decimal', 'int')
         and p_value ->> 'value' ~ '^[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d{1,3})?$'
      then (p_value ->> 'value')::numeric
    when p_value ->> '$python' in ('float', 'decimal') and lower(p_value ->> 'value') in ('inf', 'infinity')
      then 'Infinity'
    when p_value ->> '$python' in ('float', 'decimal') and lower(p_value ->> 'value') in ('-inf', '-infinity')
      then '-Infinity'
  end, 'NaN')
$function$;

-- Returns the time that a stored value stands for; null if it is none. Without a time zone the session's is used.
create or replace function memory_private.store_time(p_value jsonb) returns timestamptz
language plpgsql stable security invoker set search_path = ''
as $function$
begin
  return case when p_value ->> '$python' in ('datetime', 'date') then (p_value ->> 'value')::timestamptz end;
exception
  when data_exception then return null; -- whatever somebody has put there
end
$function$;

-- Returns a list, whether it was stored as a list or as a tuple.
create or replace function memory_private.store_list(p_value jsonb) returns jsonb
language sql immutable security invoker set search_path = ''
as $function$
  select case when jsonb_typeof(t.list) = 'array' then t.list end
  from (select case when p_value ->> '$python' = 'tuple' then p_value -> 'value' else p_value end as list) t
$function$;

-- A filter as a condition of SQL on the expression p_value. Built once per search, so that a row costs no interpreter.
-- A node is {"fields": {key: node}}, {"items": [node]}, {"list": values} or {"all": [[operator, operand]]}. What is not there
-- is null.
create or replace function memory_private.store_condition(p_node jsonb, p_value text) returns text
language plpgsql stable strict security invoker set search_path = ''
as $function$
declare
  v_parts text[] := '{}';
  v_list  text;
  v_each  record;
begin
  if p_node ? 'fields' then
    v_parts := array[format('jsonb_typeof(%s) = ''object''', p_value)];
    for v_each in select * from jsonb_each(p_node -> 'fields') loop
      v_parts := v_parts || memory_private.store_condition(v_each.value, format('(%s -> %L::text)', p_value, v_each.key));
    end loop;
  elsif p_node ? 'list' then
    v_parts := array[format('memory_private.store_list(%s) = %L::jsonb', p_value, p_node -> 'list')];
  elsif p_node ? 'items' then
    v_list := format('memory_private.store_list(%s)', p_value);
    v_parts := array[format('jsonb_array_length(%s) = %s', v_list, jsonb_array_length(p_node -> 'items'))];
    for v_each in select * from jsonb_array_elements(p_node -> 'items') with ordinality as t (value, place) loop
      v_parts := v_parts || memory_private.store_condition(v_each.value, format('(%s -> %s)', v_list, v_each.place - 1));
    end loop;
  else
    for v_each in
      select t.value ->> 0 as operator, t.value -> 1 as operand,
             memory_private.store_number(t.value -> 1) as number, memory_private.store_time(t.value -> 1) as time
      from jsonb_array_elements(p_node -> 'all') as t (value)
    loop
      if v_each.operator not in ('$eq', '$ne', '$gt', '$gte', '$lt', '$lte') then
        raise exception 'a filter has an unknown operator'
          using errcode = 'PT400', hint = 'use $eq, $ne, $gt, $gte, $lt or $lte';
      elsif v_each.operator not in ('$eq', '$ne') and v_each.number is null and v_each.time is null
            and jsonb_typeof(v_each.operand) <> 'string' then
        raise exception 'a filter compares with what has no order'
          using errcode = 'PT400', hint = 'compare with a number, a text or a time';
      end if;
      v_parts := v_parts || case
        when v_each.operator in ('$eq', '$ne') then
          format('coalesce(%s, ''null'') %s %L::jsonb', p_value,
                 case v_each.operator when '$eq' then '=' else '<>' end, v_each.operand)
        else format(
          case
            when v_each.number is not null then 'memory_private.store_number(%s) %s %L::numeric'
            when v_each.time is not null then 'memory_private.store_time(%s) %s %L::timestamptz'
            else 'case when jsonb_typeof(%1$s) = ''string'' then (%1$s #>> ''{}'') collate "C" %2$s %3$L end'
          end,
          p_value,
          case v_each.operator when '$gt' then '>' when '$gte' then '>=' when '$lt' then '<' when '$lte' then '<=' end,
          coalesce(v_each.number::text, v_each.time::text, v_each.operand #>> '{}'))
      end;
    end loop;
  end if;
  return array_to_string(v_parts, ' and ');
end
$function$;

-- Extends the time to live of items that were read. An item that another transaction is changing is skipped: a read
-- does not wait.
create or replace function memory_private.store_refresh(
  p_user_id text, p_paths text[], p_keys text[], p_now timestamptz
) returns void
language plpgsql volatile security invoker set search_path = ''
as $function$
begin
  if current_setting('transaction_read_only') = 'on' then -- a replica: what is read there lives no longer for it
    return;
  end if;
  update memory.store_items i
     set expires_at = t.expires_at
    from (select l.path, l.key, p_now + l.ttl_minutes * interval '1 minute' as expires_at from memory.store_items l
          join unnest(p_paths, p_keys) as r (path, key) on l.path = r.path collate "C" and l.key = r.key collate "C"
          where l.user_id = p_user_id
          for no key update of l skip locked) t
   where i.user_id = p_user_id and i.path = t.path and i.key = t.key;
end
$function$;

create or replace function memory_private.store_get(p_user_id text, p_op json, p_now timestamptz) returns json
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_path text := memory_private.store_path(array(select json_array_elements_text(p_op -> 'namespace')));
  v_item record;
begin
  select i.ttl_minutes, json_build_object(
           'namespace', i.namespace, 'key', i.key, 'value', i.value,
           'created_at', i.created_at, 'updated_at', i.updated_at) as shown
    into v_item
    from memory.store_items i
   where i.user_id = p_user_id and i.path = v_path and i.key = p_op ->> 'key'
     and (i.expires_at is null or i.expires_at > p_now);
  if v_item.ttl_minutes is not null and (p_op ->> 'refresh')::boolean then
    perform memory_private.store_refresh(p_user_id, array[v_path], array[p_op ->> 'key'], p_now);
  end if;
  return v_item.shown;
end
$function$;

-- Searches items. Without a query the newest come first. With a query those with vectors come first, the nearest
-- first; then those that share lexemes with it, by number and rarity; then the rest, the newest first. So a search
-- never returns fewer items than there are.
create or replace function memory_private.store_search(p_user_id text, p_op json, p_now timestamptz) returns json
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_from       text := memory_private.store_path(array(select json_array_elements_text(p_op -> 'prefix')));
  -- The first text after all that begin with v_from, which ends with chr(1); everything, if there is no prefix.
  v_to         text := case when v_from = '' then null else left(v_from, -1) || chr(2) end;
  v_until      text := case when v_from = '' then '' else ' and v.path < $3' end;
  v_model      text := p_op ->> 'model';
  v_dimensions integer := json_array_length(p_op -> 'vector');
  v_lexemes    text[] := memory_private.store_lexemes(p_op ->> 'query');
  v_condition  text := memory_private.store_condition((p_op -> 'filter')::jsonb, 'j.value');
  v_is_other   boolean;
  v_found      record;
  v_bytes      bigint := (memory_private.current_limits()).answer_bytes;
begin
  -- Built here, so that the prefix is planned as a range, and values are parsed only for a filter.
  if v_dimensions is not null then
    execute
      'select exists (select from memory.store_vectors v where v.user_id = $1 and v.path >= $2' || v_until || ')'
      '   and not exists (select from memory.store_vectors v where v.user_id = $1 and v.path >= $2' || v_until ||
      '                   and v.model = $4 and v.dimensions = $5)'
      into v_is_other using p_user_id, v_from, v_to, v_model, v_dimensions;
    if v_is_other then
      raise exception 'the items under this namespace were embedded by another model'
        using errcode = 'PT409', hint = 'call reindex() or areindex() of the store once, then search again';
    end if;
  end if;
  execute
    'with asked as materialized ('
    '  select l.place, ('''''''' || replace(replace(l.lexeme, ''\'', ''\\''), '''''''', '''''''''''') || '''''''')::tsquery as query'
    '  from unnest($5) with ordinality as l (lexeme, place)'
    '), candidates as materialized ('
    -- One look-up of vectors and one of words for each item: no plan can do more.
    '  select i.path, i.key, i.updated_at, n.score as near, '
    || case when v_lexemes is null then 'null::bigint[]' else
      'case when n.score is null then array(select a.place from asked a where w.words @@ a.query) end' end ||
    '    as hits'
    '  from memory.store_items i'
    || case when v_condition is null then '' else
      ' cross join lateral (select i.value::jsonb as value offset 0) j' end
    || case when v_lexemes is null then '' else
      ' cross join lateral (select strip(i.words) as words offset 0) w' end ||
    '  cross join lateral ('
    || case when v_dimensions is null then 'select null::float8 as score' else
      'select max(least(-(v.embedding operator({{vector_schema}}.<#>) $8), 1)) as score from memory.store_vectors v'
      ' where v.user_id = $1 and v.path = i.path and v.key = i.key and v.model = $6 and v.dimensions = $7' end ||
    '  ) n'
    '  where i.user_id = $1 and i.path >= $2 and (i.expires_at is null or i.expires_at > $4)'
    || case when v_from = '' then '' else ' and i.path < $3' end
    || coalesce(' and ' || v_condition, '') ||
    '), weights as materialized ('
    '  select a.place, ln(1 + (select count(*) from candidates) / (0.5 + count(h.place)))::float8 as weight'
    '  from asked a left join (select unnest(c.hits) as place from candidates c) h on h.place = a.place'
    '  group by a.place'
    '), ranked as ('
    '  select t.path, t.key, ' || case when v_dimensions is null then 't.told' else 't.near' end || ' as score,'
    '         row_number() over (order by t.near desc nulls last, t.told desc nulls last, t.updated_at desc,'
    '                                     t.path, t.key) as place'
    '  from (select c.*, case when c.hits <> ''{}'' then'
    '               (select sum(w.weight) filter (where w.place = any (c.hits)) / sum(w.weight) from weights w) end as told'
    '        from candidates c) t'
    '  order by place limit $9 offset $10'
    '), shown as materialized ('
    '  select i.namespace, i.path, i.key, i.value, i.created_at, i.updated_at, i.ttl_minutes, r.score, r.place'
    '  from ranked r join memory.store_items i on i.user_id = $1 and i.path = r.path and i.key = r.key'
    '), weighed as materialized (select sum(octet_length(s.value::text)) > $11 as is_large from shown s'
    ') select json_agg(json_build_object('
    '    ''namespace'', s.namespace, ''key'', s.key, ''value'', s.value,'
    '    ''created_at'', s.created_at, ''updated_at'', s.updated_at, ''score'', s.score) order by s.place)'
    '    filter (where not (select w.is_large from weighed w)) as items,'
    '  array_agg(s.path) filter (where s.ttl_minutes is not null) as paths,'
    '  array_agg(s.key) filter (where s.ttl_minutes is not null) as keys,'
    '  (select w.is_large from weighed w) as is_large'
    ' from shown s'
    into v_found
    using p_user_id, v_from, v_to, p_now, v_lexemes, v_model, v_dimensions, (p_op ->> 'vector')::{{vector_schema}}.halfvec,
          greatest(0, least((p_op ->> 'limit')::integer, 1000)), greatest(0, (p_op ->> 'offset')::bigint), v_bytes;
  if v_found.is_large then
    raise exception 'the items that were found have more than % bytes together', v_bytes using errcode = 'PT413',
      hint = 'pass a lower limit and go on by offset, or raise answer_bytes in memory_private.limits';
  end if;
  if v_found.paths is not null and (p_op ->> 'refresh')::boolean then
    perform memory_private.store_refresh(p_user_id, v_found.paths, v_found.keys, p_now);
  end if;
  return coalesce(v_found.items, '[]');
end
$function$;

create or replace function memory_private.store_namespaces(p_user_id text, p_op json, p_now timestamptz) returns json
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_condition text := '';
  v_known     text[] := '{}';
  v_from      text;
  v_each      record;
  v_found     json;
begin
  for v_each in
    select m.value ->> 'type' as type, l.label, l.place,
           (m.value ->> 'type' = 'prefix'
            and bool_and(l.label <> '*') over (partition by m.place order by l.place)) as known,
           m.place as condition, count(*) over (partition by m.place) as depth
    from json_array_elements(p_op -> 'conditions') with ordinality as m (value, place)
    cross join lateral json_array_elements_text(m.value -> 'path') with ordinality as l (label, place)
    order by m.place, l.place
  loop
    if v_each.place = 1 then
      v_condition := v_condition || format(' and cardinality(i.namespace) >= %s', v_each.depth);
    end if;
    if v_each.label <> '*' then
      v_condition := v_condition || format(
        ' and i.namespace[%s] = %L',
        case v_each.type when 'prefix' then v_each.place::text
          else format('cardinality(i.namespace) - %s', v_each.depth - v_each.place) end,
        v_each.label);
    end if;
    -- The labels before the first wildcard of the first prefix condition are a range.
    if v_each.known and cardinality(v_known) = v_each.place - 1 then
      v_known := v_known || v_each.label;
    end if;
  end loop;
  v_from := memory_private.store_path(v_known);
  execute
    'select json_agg(t.namespace order by t.path) from ('
    '  select distinct on (t.path) t.namespace, t.path from ('
    '    select i.namespace[:$5] as namespace, memory_private.store_path(i.namespace[:$5]) collate "C" as path from ('
    '      select distinct on (i.path) i.namespace from memory.store_items i'
    '      where i.user_id = $1 and i.path >= $2 and (i.expires_at is null or i.expires_at > $4)'
    || case when v_from = '' then '' else ' and i.path < $3' end || v_condition ||
    '      order by i.path) i) t'
    '  order by t.path limit $6 offset $7) t'
    into v_found
    using p_user_id, v_from, left(v_from, -1) || chr(2), p_now, coalesce((p_op ->> 'depth')::integer, 2147483647),
          greatest(0, least((p_op ->> 'limit')::integer, 1000)), greatest(0, (p_op ->> 'offset')::bigint);
  return coalesce(v_found, '[]');
end
$function$;

-- Replaces the vectors of an item: those of an older value would find words that are gone.
create or replace function memory_private.store_embed(
  p_user_id text, p_path text, p_key text, p_model text, p_vectors json
) returns void
language sql volatile security invoker set search_path = ''
as $function$
  insert into memory.store_vectors (user_id, path, key, model, dimensions, number, field, embedding)
  select p_user_id, p_path, p_key, p_model, json_array_length(v.value -> 'vector'), v.place, v.value ->> 'field',
         (v.value ->> 'vector')::{{vector_schema}}.halfvec
  from json_array_elements(p_vectors) with ordinality as v (value, place)
$function$;

create or replace function memory_private.store_put(p_user_id text, p_op json, p_now timestamptz) returns void
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_namespace text[] := array(select json_array_elements_text(p_op -> 'namespace'));
  v_path      text := memory_private.store_path(v_namespace);
  v_key       text := p_op ->> 'key';
  v_ttl       double precision := (p_op ->> 'ttl')::double precision;
  v_fields    text[] := case when json_typeof(p_op -> 'index') = 'array' then array(
    select json_array_elements_text(p_op -> 'index')) end;
begin
  if p_op ->> 'op' = 'delete' then
    delete from memory.store_items i where i.user_id = p_user_id and i.path = v_path and i.key = v_key;
    return;
  end if;
  insert into memory.store_items as i (
    user_id, namespace, key, value, words, index_fields, ttl_minutes, expires_at, created_at, updated_at)
  values (
    p_user_id, v_namespace, v_key, p_op -> 'value', memory_private.store_words((p_op -> 'value')::jsonb), v_fields,
    v_ttl, p_now + v_ttl * interval '1 minute', p_now, p_now)
  on conflict (user_id, path, key) do update
    set value = excluded.value, words = excluded.words, index_fields = excluded.index_fields,
        ttl_minutes = excluded.ttl_minutes, expires_at = excluded.expires_at,
        created_at = case when i.expires_at <= p_now then excluded.created_at else i.created_at end,
        -- Always a new value: it tells a vector of an older value from one of this.
        -- Citus: store_changed
        updated_at = greatest(excluded.updated_at, i.updated_at + interval '1 microsecond');
        -- Citus: end
  delete from memory.store_vectors v where v.user_id = p_user_id and v.path = v_path and v.key = v_key;
  if json_typeof(p_op -> 'vectors') = 'array' then
    perform memory_private.store_embed(p_user_id, v_path, v_key, p_op ->> 'model', p_op -> 'vectors');
  end if;
end
$function$;

create function public.memory_store(
  p_ops     json, -- what to do, one object each: get, search, list, put, delete
  p_user_id text default null
) returns json -- the answers, in the same order
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_user    text := memory_private.resolve_owner(p_user_id);
  v_now     timestamptz := clock_timestamp();
  v_answers json[] := array_fill(null::json, array[json_array_length(p_ops)]);
  v_op      record;
  v_written boolean := false;
  v_limits  memory_private.limits := memory_private.current_limits();
  v_bytes   bigint := 0;
begin
  perform memory_private.check_limits(p_ops);
  if json_array_length(p_ops) > v_limits.store_calls
     or (select count(*) from json_array_elements(p_ops) o (value) where o.value ->> 'op' in ('search', 'list'))
        > v_limits.store_searches
  then
    raise exception 'a call passes more than % operations, or more than % searches', v_limits.store_calls,
      v_limits.store_searches using errcode = 'PT413',
      hint = 'pass fewer at once, or raise store_calls and store_searches in memory_private.limits';
  end if;
  -- Reads see the state before the writes of the same call.
  for v_op in
    select o.value, o.place, o.value ->> 'op' as op from json_array_elements(p_ops) with ordinality as o (value, place)
    order by o.place
  loop
    v_answers[v_op.place] := case v_op.op
      when 'get' then memory_private.store_get(v_user, v_op.value, v_now)
      when 'search' then memory_private.store_search(v_user, v_op.value, v_now)
      when 'list' then memory_private.store_namespaces(v_user, v_op.value, v_now)
    end;
    v_bytes := v_bytes + coalesce(octet_length(v_answers[v_op.place]::text), 0);
    if v_bytes > 2 * v_limits.answer_bytes then
      raise exception 'the items have more than % bytes together', 2 * v_limits.answer_bytes using errcode = 'PT413',
        hint = 'read fewer at once, or raise answer_bytes in memory_private.limits';
    end if;
    if v_op.op = 'put' and octet_length((v_op.value -> 'value')::text) > v_limits.store_bytes then
      raise exception 'a value has more than % bytes', v_limits.store_bytes using errcode = 'PT413',
        hint = 'store less in one item, or raise store_bytes in memory_private.limits';
    end if;
    if v_op.op in ('put', 'delete') and starts_with(v_user, 'space:') then
      perform memory_private.resolve_writer(v_user);
    end if;
    v_written := v_written or v_op.op = 'put';
  end loop;
  -- In one order, so that two writers of the same items wait and do not deadlock.
  for v_op in
    select o.value from json_array_elements(p_ops) with ordinality as o (value, place)
    where o.value ->> 'op' in ('put', 'delete')
    order by memory_private.store_path(array(select json_array_elements_text(o.value -> 'namespace'))) collate "C",
             (o.value ->> 'key') collate "C", o.place
  loop
    perform memory_private.store_put(v_user, v_op.value, v_now);
  end loop;
  -- A write also deletes some expired items.
  if v_written then
    perform public.memory_store_sweep(v_user, null, 100);
  end if;
  return array_to_json(v_answers);
end
$function$;
comment on function public.memory_store is
  'langchain-supabase-memory: Get, search, list, put and delete items of long-term memory, any number in one call. An
  item is an object under a namespace (labels, outermost first) and a key. What is read is as it was before what is
  written in the same call.

p_ops: what to do, a list of objects. Which keys count depends on op.
- op: text. get, search, list, put or delete.
- namespace: text[]. For get, put and delete: where the item is.
- key: text. For get, put and delete: its name there.
- value: object. For put: what is stored.
- index: text[] or null. For put: the fields to find it by, noted for a reindex; an empty list: none.
- ttl: number or null. For put: the minutes it lives; null: for ever.
- model: text or null. For put with vectors and search with a vector: the name of the embedding model.
- vectors: object[] or null. For put: what it is found by, {"field": text, "vector": number[]}, of length one.
- refresh: boolean or null. For get and search: whether what is read lives on for its full time; not where nothing can
  be written, as on a replica.
- prefix: text[]. For search: the labels that the namespace begins with; empty: all.
- query: text or null. For search: the question; null: the newest first.
- vector: number[] or null. For search: its vector, of length one.
- filter: object or null. For search: {"fields": {key: node}}, {"items": [node]}, {"list": values} or {"all":
  [[operator, operand]]}; operators are $eq, $ne, $gt, $gte, $lt, $lte.
- limit: integer or null. For search and list: the most, at most 1000; null: 1000.
- offset: integer or null. For search and list: how many are passed over; null: none.
- conditions: object[] or null. For list: {"type": "prefix" or "suffix", "path": text[]}; * stands for any label.
- depth: integer or null. For list: labels beyond so many are cut off.
p_user_id: the owner; null: the subject of the caller''s token.
Returns: json[]. The answers in the order of p_ops: to get an item or null, to search a list of items, to list a
  list of namespaces, to put and delete null.
- [].namespace: text[]. Of an item that get gives: its namespace.
- [].key: text. Its key.
- [].value: object. Its value.
- [].created_at: timestamp. When it was first put.
- [].updated_at: timestamp. When it was last put.
- [][].namespace: text[]. Of an item that search gives: its namespace.
- [][].key: text. Its key.
- [][].value: object. Its value.
- [][].created_at: timestamp. When it was first put.
- [][].updated_at: timestamp. When it was last put.
- [][].score: number or null. How well it fits; null without a question.
Errors:
- PT400: a filter has an unknown operator, or compares with what has no order; or no p_user_id is given, and the
  caller''s token names nobody.
- PT409: the items under the prefix were embedded by another model.
- PT413: more operations, searches or bytes than memory_limits allows, in p_ops, in one value or in what was found.
- 23514: a namespace, key, value or time to live is refused; the name of the constraint says which.';

create function public.memory_store_sweep(
  p_user_id text    default null, -- null: everybody that the caller may see
  p_after   text    default null, -- the user at whom the last page ended
  p_limit   integer default 1000
) returns jsonb
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_item  record;
  v_items bigint := 0;
begin
  p_user_id := memory_private.resolve_scope(p_user_id);
  if starts_with(p_user_id, 'space:') then
    perform memory_private.lock_space(p_user_id), memory_private.check_space(p_user_id, true);
  end if;
  -- Planned for each call, so that one user's items, and each page, are a range of the index.
  for v_item in execute $sql$
    select e.user_id, e.path, e.key from memory.store_items e
    where e.expires_at <= clock_timestamp() and ($1 is null or e.user_id = $1) and ($2 is null or e.user_id >= $2)
    order by e.user_id, e.expires_at limit $3
    -- Citus: swept_items
      for update skip locked
    -- Citus: end
    $sql$
    using /* 1 */ p_user_id, /* 2 */ p_after, /* 3 */ least(p_limit, 1000)
  loop
    delete from memory.store_items i where i.user_id = v_item.user_id and i.path = v_item.path and i.key = v_item.key;
    v_items := v_items + 1;
  end loop;
  return jsonb_build_object('items', v_items, 'after', case when v_items = least(p_limit, 1000) then v_item.user_id end);
end
$function$;
comment on function public.memory_store_sweep is
  'langchain-supabase-memory: Delete the store''s items that have expired, by pages. They are not shown before that
  either.

p_user_id: only this owner''s; null: everybody''s that the caller may see.
p_after: the owner at whom the last page ended; null: from the beginning.
p_limit: the most of one call, at most 1000.
Returns: object.
- items: integer. How many went.
- after: text or null. Pass it as p_after for the next page; null: there is none.
Errors: none.';

create function public.memory_store_reindex(
  p_model      text,
  p_dimensions integer,
  p_items      json    default '[]', -- the vectors of an earlier page
  p_after      json    default null, -- the item at which the last page ended
  p_limit      integer default 100,
  p_user_id    text    default null  -- null: everybody that the caller may see
) returns json -- the next items without a vector of this model
language plpgsql volatile security invoker set search_path = ''
set plan_cache_mode = force_custom_plan -- so that one user's items, and each page, are a range of the index
as $function$
declare
  v_item    record;
  v_page    record;
  v_indexed bigint := 0;
  v_limit   constant integer := greatest(0, least(p_limit, 1000));
  v_bytes   constant bigint := (memory_private.current_limits()).answer_bytes;
begin
  p_user_id := memory_private.resolve_scope(p_user_id);
  if starts_with(p_user_id, 'space:') then
    perform memory_private.lock_space(p_user_id), memory_private.check_space(p_user_id, true);
  end if;
  perform memory_private.check_limits(p_items);
  for v_item in
    select t.* from json_to_recordset(p_items) as t (
      user_id text, namespace json, key text, updated_at timestamptz, vectors json)
    order by t.user_id collate "C", memory_private.store_path(array(select json_array_elements_text(t.namespace))) collate "C",
             t.key collate "C"
  loop
    -- Another value that was put meanwhile has its own vectors.
    perform 1 from memory.store_items i
      where i.user_id = v_item.user_id
        and i.path = memory_private.store_path(array(select json_array_elements_text(v_item.namespace)))
        and i.key = v_item.key and i.updated_at = v_item.updated_at
        for no key update;
    continue when not found;
    delete from memory.store_vectors v
     where v.user_id = v_item.user_id
       and v.path = memory_private.store_path(array(select json_array_elements_text(v_item.namespace)))
       and v.key = v_item.key and v.model = p_model and v.dimensions = p_dimensions;
    perform memory_private.store_embed(
      v_item.user_id, memory_private.store_path(array(select json_array_elements_text(v_item.namespace))),
      v_item.key, p_model, v_item.vectors);
    v_indexed := v_indexed + 1;
  end loop;

  -- A page reads a thousand items, and ends at the first p_limit of them that lack a vector.
  -- Citus: reindexed_page
  with seen as materialized (
    select i.user_id, i.path, i.key, row_number() over () as place, octet_length(i.value::text) as bytes,
           i.index_fields is distinct from '{}' and (i.expires_at is null or i.expires_at > clock_timestamp())
           and not exists (
             select from memory.store_vectors v
             where (p_user_id is null or v.user_id = p_user_id) and v.user_id = i.user_id and v.path = i.path
               and v.key = i.key and v.model = p_model
               and v.dimensions = p_dimensions) as lacks
    from (select i.* from memory.store_items i
          where (p_user_id is null or i.user_id = p_user_id)
            and (p_after is null
                 or (i.user_id, i.path, i.key) > (p_after ->> 'user_id', p_after ->> 'path', p_after ->> 'key'))
            -- Beside one owner, a comparison of all three would be read from that owner's first item on.
            and (p_after is null or p_user_id is null or p_after ->> 'user_id' is distinct from p_user_id
                 or (i.path, i.key) > (p_after ->> 'path', p_after ->> 'key'))
          order by i.user_id, i.path, i.key limit 1000) i),
  page as materialized (
    select p.* from (select s.*, sum(s.bytes) over (order by s.place) - s.bytes as before
                     from seen s where s.lacks order by s.place limit v_limit) p
    where p.before < v_bytes)
  select (select json_agg(json_build_object(
                   'user_id', i.user_id, 'namespace', i.namespace, 'key', i.key, 'value', i.value,
                   'index', i.index_fields, 'updated_at', i.updated_at) order by p.place)
          from page p
          cross join lateral (
            select i.* from memory.store_items i
            where (p_user_id is null or i.user_id = p_user_id) and i.user_id = p.user_id and i.path = p.path
              and i.key = p.key limit 1) i) as items,
         (select json_build_object('user_id', s.user_id, 'path', s.path, 'key', s.key) from seen s
          where s.place = case when (select count(*) from page) = v_limit
                                 or (select count(*) from page) < (select count(*) from seen where lacks)
                               then (select max(place) from page)
                               when (select count(*) from seen) = 1000 then 1000 end) as after
    into v_page;
  -- Citus: end
  return json_build_object('items', coalesce(v_page.items, '[]'), 'after', v_page.after, 'indexed', v_indexed);
end
$function$;
comment on function public.memory_store_reindex is
  'langchain-supabase-memory: Store vectors for the store''s items, and read the next items that have none of a model.
  Call it until after is null, and once more to commit the last vectors.

p_model: the name of the embedding model.
p_dimensions: the width of its vectors.
p_items: vectors of an earlier page, a list of objects. One whose value was put anew since gets none.
- user_id: text. As listed.
- namespace: text[]. As listed.
- key: text. As listed.
- updated_at: timestamp. As listed.
- vectors: object[]. {"field": text, "vector": number[]}, of length one.
p_after: where the last page ended, as it was returned; null: from the beginning.
- user_id: text. As returned.
- path: text. As returned.
- key: text. As returned.
p_limit: the most items of one answer, at most 1000; 0: only commit.
p_user_id: only this owner''s; null: everybody''s that the caller may see.
Returns: object.
- items: object[]. The next items without a vector.
- items[].user_id: text. The owner.
- items[].namespace: text[]. Its namespace.
- items[].key: text. Its key.
- items[].value: object. Its value.
- items[].index: text[] or null. The fields to find it by; null: the store''s own choice.
- items[].updated_at: timestamp. When it was last put.
- after: object or null. Pass it as p_after for the next page; null: there is none.
- after.user_id: text. The owner of the last item that was looked at.
- after.path: text. Its namespace, as it is sorted.
- after.key: text. Its key.
- indexed: integer. To how many items of p_items vectors were stored.
Errors:
- PT413: an argument is larger than call_bytes, or a list in it longer than call_items (see memory_limits).
- 23514: a vector has not p_dimensions, or p_model is refused; the name of the constraint says which.';
