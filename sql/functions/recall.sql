-- Recall: what was said and fits a question, by meaning and by words, in one call.

-- Finds the chunks of one user that fit a question best, and those that fit each further question. p_conversations
-- is the scope.
create or replace function memory_private.recall(p_user_id text, p_conversations uuid[], p_ask json) returns json
language plpgsql stable security invoker set search_path = ''
as $function$
declare
  v_more  json := nullif(p_ask ->> 'more', '')::json;
  v_each  json;
  v_first json;
  v_found json[] := '{}';
begin
  perform memory_private.check_limits(p_ask);
  if json_array_length(v_more) > 15 then
    raise exception 'a recall has more than 16 questions' using errcode = 'PT400', hint = 'ask fewer at once';
  end if;
  v_first := memory_private.recall_one(p_user_id, p_conversations, p_ask, p_ask);
  for v_each in select e from json_array_elements(v_more) e loop
    v_found := v_found || memory_private.recall_one(p_user_id, p_conversations, p_ask, v_each);
  end loop;
  return case when cardinality(v_found) = 0 then v_first else json_build_object(
    'chunks', v_first -> 'chunks', 'repeats', v_first -> 'repeats', 'newer', v_first -> 'newer',
    'covered', v_first -> 'covered', 'searched', v_first -> 'searched', 'approximate', v_first -> 'approximate',
    'by_meaning', v_first -> 'by_meaning', 'more', array_to_json(v_found)) end;
end
$function$;

-- Returns the speakers of a scope that a question names, the names that it uses, and the speakers' own names where
-- these differ.
create or replace function memory_private.named_speakers(
  p_user_id text, p_conversations uuid[], p_languages text[], p_names text[],
  out speakers text[], out names text[], out meant text[]
)
language plpgsql stable security invoker set search_path = ''
as $function$
declare
  v_names constant text[] := array(select distinct lower(n) from unnest(p_names) n);
begin
  speakers := '{}';
  names := '{}';
  if v_names = '{}' then
    return;
  end if;
  select coalesce(array_agg(distinct s), '{}'), coalesce(array_agg(distinct n), '{}') into speakers, names
    from (select distinct s -- most speak in many conversations
          from (select c.speakers
                from memory.conversations c
                cross join lateral (select lower(array_to_string(c.speakers, ' ')) as line offset 0) l
                -- Of many conversations few have somebody of that name: the others' names are not taken apart.
                where c.user_id = p_user_id and c.id = any (p_conversations)
                  and exists (select from unnest(v_names) n where strpos(l.line, n) > 0) offset 0) c
          cross join lateral unnest(c.speakers) s) t
    join lateral unnest(v_names) n on n = any (string_to_array(lower(s), ' '));
  if not v_names <@ names then
    select speakers || coalesce(array_agg(distinct m.speaker), '{}'),
           names || coalesce(array_agg(distinct m.name), '{}'), array_agg(distinct m.word)
      into speakers, names, meant
      from memory_private.match_speakers(
        p_user_id, p_conversations, p_languages, array(select n from unnest(v_names) n where n <> all (names)),
        memory_private.some_speakers(p_user_id, p_conversations)) m;
  end if;
end
$function$;

-- Returns the same in a space. There the speakers are members' ids; what these are called now is asked for here, so that
-- a new name holds for all that was said. The names of what is meant are the words that their chunks are found by.
create or replace function memory_private.named_members(
  p_user_id text, p_conversations uuid[], p_languages text[], p_names text[], p_query text,
  out speakers text[], out names text[], out meant text[]
)
language plpgsql stable security invoker set search_path = ''
as $function$
declare
  v_labels constant jsonb := memory_private.person_labels(p_user_id);
  v_names  constant text[] := array(select distinct lower(n) from unnest(p_names) n);
  v_query  constant text[] := tsvector_to_array(to_tsvector('pg_catalog.simple', left(p_query, 10000)));
begin
  select coalesce(array_agg(distinct l.key) filter (where w.word = any (v_names)), '{}'),
         coalesce(array_agg(distinct w.word) filter (where w.word = any (v_names)), '{}'),
         coalesce(array_agg(distinct memory_private.author_word(l.key)), '{}')
    into speakers, names, meant
    from jsonb_each_text(v_labels) l
    -- Nobody has one word of "member 2" as a name.
    cross join lateral unnest(case when l.value ~ '^member [0-9]+$' then array[l.value]
                                   else string_to_array(lower(l.value), ' ') end) as w (word)
   where w.word = any (v_names)
      or string_to_array(w.word, ' ') <@ v_query and w.word !~ '^[0-9]+$' and exists ( -- no stop word
        select from unnest(p_languages) as a (name), memory_private.lexemes(a.name, w.word));
  if not v_names <@ names then
    select speakers || coalesce(array_agg(distinct l.key), '{}'),
           names || coalesce(array_agg(distinct m.name), '{}'),
           meant || coalesce(array_agg(distinct memory_private.author_word(l.key)), '{}')
      into speakers, names, meant
      from memory_private.match_speakers(
        p_user_id, p_conversations, p_languages, array(select n from unnest(v_names) n where n <> all (names)),
        array(select l.value from jsonb_each_text(v_labels) l limit 101)) m
      join jsonb_each_text(v_labels) l on l.value = m.speaker;
  end if;
end
$function$;

-- Returns the names of those who speak in a scope, or 101 and more of them.
create or replace function memory_private.some_speakers(p_user_id text, p_conversations uuid[]) returns text[]
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set jit = off
as $function$
declare
  v_all text[] := '{}';
  v_few text[];
begin
  for v_few in
    select distinct c.speakers from memory.conversations c -- most speak in many conversations
    where c.user_id = p_user_id and c.id = any (p_conversations) and c.speakers <> '{}'
  loop
    v_all := array(select unnest(v_all) union select unnest(v_few));
    exit when cardinality(v_all) > 100;
  end loop;
  return v_all;
end
$function$;

-- Sets how many neighbors the vector index looks for. A setting in the function's header would need a superuser.
-- Before pgvector 0.8 an index scan stops after its nearest, of all users: there it looks for more.
create or replace function memory_private.tune_vector_index(p_max_ranked integer) returns void
language plpgsql stable security invoker set search_path = ''
as $function$
begin
  if (select string_to_array(e.extversion, '.')::integer[] >= '{0,8}' from pg_catalog.pg_extension e
      where e.extname = 'vector') then
    perform set_config('hnsw.iterative_scan', 'relaxed_order', true),
            set_config('hnsw.ef_search', case when p_max_ranked <= 100 then '100' else '200' end, true);
  else
    perform set_config('hnsw.ef_search', '1000', true);
  end if;
end
$function$;

-- Chooses from ranked chunks, the best first, while there is room. A chunk that does not fit is passed over, and a
-- repeat does not count. p_ask has the limits, as in recall_one.
create or replace function memory_private.choose_chunks(
  p_user_id text, p_ranked record, p_ask record,
  out chosen     integer[], -- their ranks,
  out ids        uuid[],    -- and their ids
  out taken      uuid[],    -- what is returned,
  out taken_by   integer[], -- and together with which rank
  out is_full    boolean,   -- whether no more has room
  out has_passed boolean    -- whether something was passed over
)
language plpgsql stable security invoker set search_path = ''
as $function$
declare
  v_conversation constant uuid[] := p_ranked.conversations;
  v_place        constant bigint[] := p_ranked.places;
  v_part         constant integer[] := p_ranked.parts;
  v_id           constant uuid[] := p_ranked.ids;
  v_characters   constant integer[] := p_ranked.sizes;
  v_hash         constant bigint[] := p_ranked.hashes;
  v_seen         bigint[] := '{}';
  v_keys         uuid[];
  v_size         bigint;
  v_left         bigint := p_ask.characters;
  v_fit          integer := 0; -- so many are returned for which there is room
begin
  chosen := '{}';
  ids := '{}';
  taken := '{}';
  taken_by := '{}';
  has_passed := false;
  for v_rank in 1..coalesce(cardinality(v_place), 0) loop
    exit when (v_fit >= p_ask.max_chunks or v_left <= 0) and cardinality(chosen) >= p_ask.pool;
    continue when v_hash[v_rank] = any (v_seen);
    v_keys := array[v_id[v_rank]];
    v_size := v_characters[v_rank];
    if p_ask.has_context then
      select array_agg(t.id), sum(t.characters) into v_keys, v_size
        from memory_private.surrounding_chunks(
          p_user_id, v_conversation[v_rank], v_place[v_rank], v_part[v_rank], p_ask.neighbors, p_ask.whole,
          case when v_conversation[v_rank] = p_ask.conversation then p_ask.expired end) t
       where t.id <> all (taken);
      continue when v_keys is null;
    end if;
    if v_fit < p_ask.max_chunks and v_size <= v_left then
      v_fit := v_fit + 1;
      v_left := v_left - v_size;
      taken := taken || v_keys;
      taken_by := taken_by || array_fill(v_rank, array[cardinality(v_keys)]);
    else
      has_passed := has_passed or v_size > v_left;
      continue when cardinality(chosen) >= p_ask.pool;
    end if;
    chosen := chosen || v_rank;
    ids := ids || v_id[v_rank];
    v_seen := v_seen || v_hash[v_rank];
  end loop;
  is_full := (v_fit >= p_ask.max_chunks or v_left <= 0) and cardinality(chosen) >= p_ask.pool;
end
$function$;

-- Returns the chosen chunks as JSON, each once: with itself if it was found, else with the best of those that it
-- surrounds. In a pool the best is not known yet, so there it comes with each.
create or replace function memory_private.chosen_chunks(
  p_user_id text, p_ranked record, p_chosen record, p_ask record
) returns json
language plpgsql stable security invoker set search_path = ''
as $function$
declare
  v_conversation constant uuid[] := p_ranked.conversations;
  v_place        constant bigint[] := p_ranked.places;
  v_part         constant integer[] := p_ranked.parts;
  v_score        constant float8[] := p_ranked.scores;
  v_similarity   constant float8[] := p_ranked.similarities;
  v_word         constant float8[] := p_ranked.worded;
  v_parts        constant real[] := p_ranked.parted;
  v_chosen       constant integer[] := p_chosen.chosen;
  v_ids          constant uuid[] := p_chosen.ids;
  v_taken        constant uuid[] := p_chosen.taken;
  v_by           constant integer[] := p_chosen.taken_by;
  v_found        json;
begin
  -- Citus: found_chunks
  with talks as materialized ( -- looked up once, not for each chunk
    select d.id, c.thread_id, c.agent_id,
           case when starts_with(p_user_id, 'space:') then memory_private.person_labels(p_user_id) end as labels
    from (select distinct v_conversation[r.rank] as id from unnest(v_chosen) as r (rank)) d
    cross join lateral (
      select c.thread_id, c.agent_id from memory.conversations c where c.user_id = p_user_id and c.id = d.id offset 0) c)
  select json_agg(json_build_object(
           'score', v_score[r.rank], 'similarity', v_similarity[r.rank], 'words', v_word[r.rank],
           'score_parts', json_strip_nulls(json_build_object(
             'words', nullif(v_parts[r.rank][1], 0), 'meaning', nullif(v_parts[r.rank][2], 0),
             'around', nullif(v_parts[r.rank][3], 0), 'speaker', nullif(v_parts[r.rank][4], 0),
             'date', nullif(v_parts[r.rank][5], 0), 'kind', nullif(v_parts[r.rank][6], 0),
             'question', nullif(v_parts[r.rank][7], 0), 'importance', nullif(v_parts[r.rank][8], 0),
             'recency', nullif(v_parts[r.rank][9], 0), 'beside', nullif(v_parts[r.rank][10], 0),
             'reply', nullif(v_parts[r.rank][11], 0))),
           'chunk', row_to_json(k), 'before', u.both[1], 'after', u.both[2]) order by r.position)
    into v_found
    from unnest(v_chosen) with ordinality as r (rank, position)
    join talks c on c.id = v_conversation[r.rank]
    cross join lateral ( -- as chunk_json has it; to call that for each takes longer than all the rest
      select k.id, c.thread_id, c.agent_id, k.place, k.part, k.from_sequence, k.to_sequence, k.message_ids, k.stretch,
             k.type, k.role, case when k.role = 'user' and c.labels is not null then c.labels ->> k.speaker
                                  else k.speaker end as speaker,
             k.said_at, k.content, k.importance, k.expires_at
      from memory.working_memory_chunks k
      where k.user_id = p_user_id and k.conversation_id = c.id
        and (k.place, k.part) >= (v_place[r.rank], v_part[r.rank])
        and (k.place, k.part) <= (v_place[r.rank], v_part[r.rank])
      order by k.place, k.part offset 0) k
    cross join lateral (
      select case when p_ask.has_context then (
        select array[json_agg(memory_private.chunk_json(n, c.thread_id, c.agent_id) order by n.place, n.part)
                       filter (where (n.place, n.part) < (k.place, k.part)),
                     json_agg(memory_private.chunk_json(n, c.thread_id, c.agent_id) order by n.place, n.part)
                       filter (where (n.place, n.part) > (k.place, k.part))]
        from memory_private.surrounding_chunks(
          p_user_id, c.id, k.place, k.part, p_ask.neighbors, p_ask.whole,
          case when c.id = p_ask.conversation then p_ask.expired end) n
        where p_ask.pool > 0 or n.id <> all (v_ids) and v_by[array_position(v_taken, n.id)] = r.rank) end as both
      offset 0) u;
  -- Citus: end
  return coalesce(v_found, '[]');
end
$function$;

-- Returns how often, first when and last when the words of each chunk were said, if more than once. Of candidates those
-- that were ranked count.
create or replace function memory_private.count_repeats(
  p_ids uuid[], p_query record, p_ranked record, p_ask record, p_candidates boolean
) returns json
language plpgsql stable security invoker set search_path = ''
as $function$
begin
  if (select count(distinct h) from unnest(p_ranked.hashes) h) = coalesce(cardinality(p_ranked.hashes), 0) then
    return '[]';
  end if;
  return (
    with said as materialized (
      select i.id, i.hash
      from unnest(p_ranked.ids, p_ranked.hashes) as i (id, hash)
      where i.id = any (p_ids) and i.hash in (select h from unnest(p_ranked.hashes) h group by h having count(*) > 1))
    select coalesce(json_agg(json_build_object(
             'chunk', r.id, 'count', r.count, 'first', r.first, 'last', r.last,
             'sequence', case when cardinality(p_query.conversations) = 1 then r.sequence end)), '[]')
    from (select s.id, count(*) as count, min(k.said_at) as first, max(k.said_at) as last,
                 min(k.from_sequence) as sequence
          from (
            select k.* from unnest(p_query.conversations) as c (id)
            cross join lateral (
              select k.* from memory.working_memory_chunks k
              where not p_candidates and k.user_id = p_query.user_id and k.conversation_id = c.id offset 0) k
            union all
            select k.* from unnest(p_ranked.conversations, p_ranked.places, p_ranked.parts) as r (id, place, part)
            cross join lateral (
              select k.* from memory.working_memory_chunks k
              where p_candidates and k.user_id = p_query.user_id and k.conversation_id = r.id
                and (k.place, k.part) >= (r.place, r.part) and (k.place, k.part) <= (r.place, r.part)
              order by k.place, k.part offset 0) k) k
          join said s on s.hash = k.words_hash
          where not k.stale and (k.expires_at is null or k.expires_at > statement_timestamp())
            and (p_query.since is null or k.said_at >= p_query.since)
            and (p_query.until is null or k.said_at < p_query.until)
            -- Those that a prompt shows anyway count, too.
            and (k.conversation_id <> p_ask.conversation
                 or not int8range(k.from_sequence, k.to_sequence, '[]') && p_ask.expired) is not false
          group by s.id) r);
end
$function$;

-- Returns what holds now in place of what a chunk says, if a board knows that it was superseded.
create or replace function memory_private.superseding_facts(p_user_id text, p_conversations uuid[], p_found json)
returns json
language plpgsql stable security invoker set search_path = ''
as $function$
declare
  v_facts jsonb := '[]';
  v_old   record;
  v_now   memory.conversation_board_items;
begin
  for v_old in
    with old as materialized (
      select c.agent_id, c.thread_id, i.*
      from unnest(p_conversations) as s (id)
      cross join lateral (
        select i.* from memory.conversation_board_items i
        where i.user_id = p_user_id and i.conversation_id = s.id and i.superseded_by is not null
          and i.deleted_at is null offset 0) i
      cross join lateral (
        select c.agent_id, c.thread_id from memory.conversations c
        where c.user_id = p_user_id and c.id = s.id offset 0) c)
    select f.id as chunk, o.conversation_id, o.text, o.digest, o.superseded_by, o.superseded_at
    from (select n.place, k.*
          from json_array_elements(p_found) with ordinality as n (e, place)
          cross join lateral json_to_record(n.e -> 'chunk') as k (
            id text, thread_id text, agent_id text, content text, from_sequence bigint, to_sequence bigint)
          where exists (select from old) offset 0) f
    join old o on o.agent_id = f.agent_id and o.thread_id = f.thread_id
      and (o.quote is null or strpos(f.content, o.quote) > 0)
      and exists (select from unnest(o.sequences) q where q between f.from_sequence and f.to_sequence)
    order by f.place, o.superseded_at, o.id
  loop
    -- What superseded it may have been superseded since.
    v_now.superseded_by := v_old.superseded_by;
    for v_step in 1..100 loop
      select i.* into v_now from memory.conversation_board_items i
       where i.user_id = p_user_id and i.conversation_id = v_old.conversation_id and i.id = v_now.superseded_by;
      exit when v_now.superseded_by is null;
    end loop;
    -- What was superseded may hold again.
    continue when v_now.id is null or v_now.deleted_at is not null or v_now.digest = v_old.digest;
    v_facts := v_facts || jsonb_build_object(
      'chunk', v_old.chunk, 'old', v_old.text, 'superseded_at', v_old.superseded_at, 'text', v_now.text,
      'sequence', (select max(q) from unnest(v_now.sequences) q));
  end loop;
  return v_facts::json;
end
$function$;

-- The chunks of one user that fit a question best. p_question says what is asked, p_ask the rest:
--   query, vectors [{"names", "vector"}]                 what is asked, and its vectors, also without names in it
--   is_question                                          whether it asks something, or tells it
--   names, dates [{"year", "month", "day", "weekday", "first", "last"}], wants ["time", "number"],
--   order "first" or "last"                              the cues in it
--   model, zone                                          of the vectors; of who asks
--   since, until, types, min_importance, min_similarity      what is left out; before {"conversation", "sequence", "expired"}:
--   of one conversation what is from this sequence on, and what has expired, as ranges of sequences
--   limit, characters, neighbors, whole                 how much is returned
--   pool                                                so many of the best come in any case, with all that comes with each
--   fusion "score" or "rrf", weights, exact_below        how it is ranked
create or replace function memory_private.recall_one(
  p_user_id text, p_conversations uuid[], p_ask json, p_question json
) returns json
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set jit = off set enable_mergejoin = off set enable_nestloop = on
set enable_sort = on
as $function$
declare
  v_ask        record;
  v_asked      record;
  v_names      record; -- who is named
  v_vector     {{vector_schema}}.halfvec;
  v_width      integer;
  v_languages  text[];
  v_chunks     bigint;
  v_candidates boolean; -- whether only what comes near is compared
  v_indexed    boolean;
  v_query      record; -- what is ranked by; memory_private.rank_all has the names
  v_ranked     record; -- what is ranked, the best first
  v_chosen     record;
  v_is_cut     boolean;
  v_found      json;
begin
  select a.model, a.zone, a.since, a.until, a.types, a.min_importance, a.min_similarity, a.min_share, a.whole,
         a.weights, a.exact_below, coalesce(a.fusion, '') = 'rrf' as is_rrf,
         greatest(0, least(coalesce(a."limit", 1000), 1000)) as max_chunks,
         greatest(0, least(coalesce(a.characters, 2000000), 2000000)) as characters,
         greatest(0, least(coalesce(a.neighbors, 0), 20)) as neighbors,
         greatest(0, least(coalesce(a.pool, 0), 200)) as pool,
         coalesce(a.neighbors > 0 or a.whole, false) as has_context,
         (a.before ->> 'conversation')::uuid as conversation,
         (a.before ->> 'sequence')::bigint as sequence,
         coalesce((a.before ->> 'expired')::int8multirange, '{}') as expired
    into v_ask
    from json_to_record(p_ask) as a (
      model text, zone text, since timestamptz, until timestamptz, types text[], min_importance float8,
      min_similarity float8, min_share float8, "before" json, "limit" integer, characters bigint, pool integer,
      neighbors integer, whole boolean, fusion text, weights json, exact_below bigint);
  select q.* into v_asked from json_to_record(p_question) as q (
    query text, is_question boolean, vectors json, names text[], dates json, wants text[], "order" text);
  select coalesce(sum(c.chunk_count), 0), array_agg(distinct coalesce(c.language, 'simple')) into v_chunks, v_languages
    from memory.conversations c where c.user_id = p_user_id and c.id = any (p_conversations);

  -- Names of speakers say little about the subject of a question.
  if starts_with(p_user_id, 'space:') then
    v_names := memory_private.named_members(p_user_id, p_conversations, v_languages, v_asked.names, v_asked.query);
  else
    v_names := memory_private.named_speakers(p_user_id, p_conversations, v_languages, v_asked.names);
  end if;
  select (e ->> 'vector')::{{vector_schema}}.halfvec into v_vector
    from json_array_elements(coalesce(v_asked.vectors, '[]')) e
   where not exists (select from json_array_elements_text(e -> 'names') n where lower(n) <> all (v_names.names))
   order by json_array_length(e -> 'names') desc limit 1;
  if v_vector is not null then
    v_width := {{vector_schema}}.vector_dims(v_vector);
    perform memory_private.check_model(p_user_id, p_conversations, v_ask.model, v_width);
  end if;
  select p_user_id as user_id, p_conversations as conversations,
         array(
           select distinct w.lexeme
           from unnest(v_languages) as l (name),
                -- A speaker is found by the right name, whatever name the question uses.
                memory_private.lexemes(
                  l.name, concat_ws(' ', left(v_asked.query, 10000), array_to_string(v_names.meant, ' '))) w
           limit 200) as lexemes,
         -- Names of speakers are no subject that the words of a chunk could cover.
         array(select distinct w.lexeme from unnest(v_languages) as l (name),
                 memory_private.lexemes(l.name, array_to_string(v_names.names || v_names.meant, ' ')) w) as name_lexemes,
         coalesce(v_asked.is_question, true) as is_question, v_vector as vector, v_ask.model, v_chunks as chunks,
         v_ask.since, v_ask.until, v_ask.types,
         v_ask.min_importance, v_ask.conversation,
         nullif(v_ask.expired + case when v_ask.sequence is null then '{}' else
           int8multirange(int8range(v_ask.sequence, null)) end, '{}') as without,
         v_width as width, v_names.speakers, coalesce(v_asked.wants, '{}') as wants,
         coalesce(v_asked.dates, '[]') as dates, v_asked."order" as said_order, coalesce(v_ask.zone, 'UTC') as zone,
         coalesce(v_ask.weights, '{}') as weights, v_ask.min_similarity, v_ask.min_share,
         -- More than needed, because repeats are dropped; short messages have 40 characters.
         (greatest(least(v_ask.max_chunks * 2, v_ask.characters / 40), v_ask.pool * 2) + 50)::integer as max_ranked,
         -- Read all postings of the user if the scope is a good part of the user's conversations.
         cardinality(p_conversations) > 8 and (
           select count(*) from (
             select from memory.conversations c where c.user_id = p_user_id
             limit 4 * cardinality(p_conversations) + 1) c)
           <= 4 * cardinality(p_conversations) as reads_all,
         null::uuid[] as near_conversations, null::bigint[] as near_places, null::integer as max_near
    into v_query;

  -- In a small scope everything is compared. In a large one only candidates by meaning or words are, with their
  -- neighbors; by meaning through the index if there is one.
  v_candidates := v_chunks > coalesce(v_ask.exact_below, 2000) and (v_vector is not null or v_query.lexemes <> '{}');
  v_indexed := v_candidates and to_regclass(format('memory.chunk_embeddings_hnsw_%s', v_width)) is not null;
  if v_indexed then
    perform memory_private.tune_vector_index(v_query.max_ranked);
  end if;
  loop
    -- Join whole scopes by hashing, whatever size the planner expects; lateral look-ups stay as they are.
    perform set_config('enable_nestloop', 'off', true), set_config('enable_sort', 'on', true);
    -- The number of candidates by meaning, and of those by words.
    v_query.max_near := least(greatest(v_query.max_ranked, case when v_indexed then 50 else 100 end), 200);
    v_query.near_conversations := null;
    v_query.near_places := null;
    if v_candidates and v_vector is not null then
      execute memory_private.nearest_sql(v_indexed, v_width)
        into v_query.near_conversations, v_query.near_places
        using p_user_id, p_conversations, v_query.lexemes, v_vector, v_ask.model, v_chunks, v_ask.since, v_ask.until,
              v_ask.types, v_ask.min_importance, v_ask.conversation, v_query.without, v_query.max_near;
      if v_indexed and coalesce(cardinality(v_query.near_places), 0) < v_query.max_near then
        v_indexed := false; -- the index gave up, or there are no more: looked at one by one
        continue;
      end if;
    end if;
    execute format('select * from memory_private.%I($1)', concat_ws('_',
        case when v_ask.is_rrf then 'fuse' else 'rank' end, case when v_candidates then 'near' else 'all' end,
        case when v_vector is null then 'words' end))
      into v_ranked using v_query;
    v_is_cut := v_ranked.cut or v_query.near_places is not null
      and (cardinality(v_query.near_places) = v_query.max_near or v_chunks > 500);
    perform set_config('enable_nestloop', 'on', true), set_config('enable_sort', 'off', true);

    v_chosen := memory_private.choose_chunks(p_user_id, v_ranked, v_ask);
    exit when v_chosen.is_full;
    -- Repeats and filters must not leave fewer than there are: rank more, and finally everything.
    if cardinality(v_ranked.places) >= v_query.max_ranked and not (v_chosen.has_passed and v_chosen.chosen <> '{}') then
      v_query.max_ranked := v_query.max_ranked * 20;
    elsif v_candidates and v_is_cut and v_ask.min_share is null and not (v_chosen.has_passed and v_chosen.chosen <> '{}') then
      v_candidates := false;
      v_indexed := false;
    else
      exit;
    end if;
  end loop;
  v_found := memory_private.chosen_chunks(p_user_id, v_ranked, v_chosen, v_ask);
  return json_build_object(
    'chunks', v_found,
    'repeats', memory_private.count_repeats(v_chosen.ids, v_query, v_ranked, v_ask, v_candidates),
    'newer', memory_private.superseding_facts(p_user_id, p_conversations, v_found),
    'covered', v_ranked.covered,
    'searched', v_chunks,
    'approximate', v_candidates,
    'by_meaning', exists (select from unnest(v_ranked.similarities) s where s is not null));
end
$function$;

-- Returns the speakers that are meant by names (in lower case) which no speaker has: those whose name begins so,
-- such as Mel; or, if no chunk contains the word, those whose name of four letters or more is one edit away, or of
-- eight or more two.
create or replace function memory_private.match_speakers(
  p_user_id text, p_conversations uuid[], p_languages text[], p_names text[], p_speakers text[]
) returns table (name text, speaker text, word text)
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set jit = off
as $function$
#variable_conflict use_column
begin
  if cardinality(p_speakers) > 100 then -- among many, somebody's name is always near
    return;
  end if;
  return query
    select n.name, s.speaker, w.word
    from unnest(p_names) as n (name)
    cross join unnest(p_speakers) as s (speaker)
    cross join lateral unnest(string_to_array(lower(left(s.speaker, 200)), ' ')) as w (word)
    where length(n.name) between 3 and 40
      and (starts_with(w.word, n.name)
           or memory_private.remove_accents(w.word) = memory_private.remove_accents(n.name)
           or memory_private.within_edit_distance(n.name, w.word, case when length(w.word) < 4 then 0
                                                          when length(w.word) < 8 then 1 else 2 end)
              and not exists (
                -- Without the parts of compounds, and without a stem that the right name has, too.
                select from unnest(p_languages) as l (language)
                cross join lateral memory_private.text_search_config(l.language) c
                cross join lateral unnest(tsvector_to_array(to_tsvector(c, n.name))) as x (lexeme)
                join memory.chunk_postings p on p.user_id = p_user_id and p.lexeme = x.lexeme
                 and p.conversation_id = any (p_conversations)
                where x.lexeme <> all (tsvector_to_array(to_tsvector(c, w.word)))));
end
$function$;

-- Says whether two words are at most p_edits edits apart. An edit inserts, deletes or replaces a letter, or swaps
-- two neighbors.
create or replace function memory_private.within_edit_distance(p_one text, p_two text, p_edits integer) returns boolean
language plpgsql immutable security invoker set search_path = ''
as $function$
declare
  v_same integer := 0;
begin
  if p_one = p_two then
    return true;
  end if;
  if p_edits <= 0 or abs(length(p_one) - length(p_two)) > p_edits then
    return false;
  end if;
  while substr(p_one, v_same + 1, 1) = substr(p_two, v_same + 1, 1) loop
    v_same := v_same + 1;
  end loop;
  p_one := substr(p_one, v_same + 1);
  p_two := substr(p_two, v_same + 1);
  return memory_private.within_edit_distance(substr(p_one, 2), substr(p_two, 2), p_edits - 1)
    or memory_private.within_edit_distance(substr(p_one, 2), p_two, p_edits - 1)
    or memory_private.within_edit_distance(p_one, substr(p_two, 2), p_edits - 1)
    or left(p_one, 2) = reverse(left(p_two, 2))
       and memory_private.within_edit_distance(substr(p_one, 3), substr(p_two, 3), p_edits - 1);
end
$function$;

-- Returns a chunk with its neighbors, or with its whole stretch.
create or replace function memory_private.surrounding_chunks(
  p_user_id text, p_conversation_id uuid, p_place bigint, p_part integer, p_reach integer, p_whole boolean,
  p_expired int8multirange default null -- sequences
) returns setof memory.working_memory_chunks
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
declare
  v_stretch bigint;
begin
  if p_whole then
    select k.stretch into v_stretch from memory.working_memory_chunks k
     where k.user_id = p_user_id and k.conversation_id = p_conversation_id and k.place >= p_place
     order by k.place limit 1;
  end if;
  return query
    select k.* from memory.working_memory_chunks k
    where k.user_id = p_user_id and k.conversation_id = p_conversation_id
      and k.place between p_place - case when p_whole then 1000 else p_reach end
                      and p_place + case when p_whole then 1000 else p_reach end
      and (k.place = p_place and k.part = p_part
           or not k.stale and (k.expires_at is null or k.expires_at > statement_timestamp())
              and (p_reach > 0 and abs(k.place - p_place) <= p_reach or k.stretch = v_stretch)
              and (p_expired is null or not int8range(k.from_sequence, k.to_sequence, '[]') && p_expired))
    order by k.place, k.part;
end
$function$;

-- Returns the name of who speaks in a chunk: in a space what the member is called there now.
create or replace function memory_private.chunk_speaker(p_chunk memory.working_memory_chunks) returns text
language plpgsql stable security invoker set search_path = ''
as $function$
begin
  if p_chunk.role = 'user' and starts_with(p_chunk.user_id, 'space:') then
    return memory_private.person_labels(p_chunk.user_id) ->> p_chunk.speaker;
  end if;
  return p_chunk.speaker;
end
$function$;

-- Returns a chunk as JSON.
create or replace function memory_private.chunk_json(
  p_chunk memory.working_memory_chunks, p_thread_id text, p_agent_id text
)
returns json
language sql stable security invoker set search_path = ''
as $function$
  select json_build_object(
    'id', p_chunk.id, 'thread_id', p_thread_id, 'agent_id', p_agent_id,
    'place', p_chunk.place, 'part', p_chunk.part, 'from_sequence', p_chunk.from_sequence,
    'to_sequence', p_chunk.to_sequence, 'message_ids', p_chunk.message_ids, 'stretch', p_chunk.stretch,
    'type', p_chunk.type, 'role', p_chunk.role, 'speaker', memory_private.chunk_speaker(p_chunk), 'said_at', p_chunk.said_at,
    'content', p_chunk.content, 'importance', p_chunk.importance, 'expires_at', p_chunk.expires_at)
$function$;

-- Returns the condition on the chunks k that a question's filters make; the arguments are the names of the filters
-- in the statement.
create or replace function memory_private.chunk_filter_sql(
  p_since text, p_until text, p_types text, p_min_importance text, p_conversation text, p_without text
) returns text
language sql immutable security invoker set search_path = ''
as $function$
  select format($sql$ not k.stale and (k.expires_at is null or k.expires_at > statement_timestamp())
    and (%1$s is null or k.said_at >= %1$s) and (%2$s is null or k.said_at < %2$s)
    and (%3$s is null or k.type = any (%3$s)) and (%4$s is null or k.importance >= %4$s)
    and (%6$s is null or k.conversation_id <> %5$s
         or not int8range(k.from_sequence, k.to_sequence, '[]') && %6$s) $sql$,
    p_since, p_until, p_types, p_min_importance, p_conversation, p_without)
$function$;

-- Returns the same for the functions that rank.
create or replace function memory_private.query_filter_sql() returns text
language sql immutable security invoker set search_path = ''
as $function$
  select memory_private.chunk_filter_sql(
    'v_since', 'v_until', 'v_types', 'v_min_importance', 'v_conversation', 'v_without')
$function$;

-- Returns the statement that finds the nearest vectors in a large scope. Here and below each conversation is one
-- look-up: Postgres 15 and 16 turn `conversation_id = any ($2)` into a filter, which reads all chunks of the user.
create or replace function memory_private.nearest_sql(p_indexed boolean, p_width integer) returns text
language sql immutable security invoker set search_path = ''
as $function$
  select $sql$
  select array_agg(n.conversation_id), array_agg(n.place)
  from ($sql$
    -- An index scan skips filtered chunks as it reads.
    || case when p_indexed then format($sql$
    select e.conversation_id, e.place
    from memory.chunk_embeddings e
    cross join lateral (
      select from memory.working_memory_chunks k
      where k.user_id = e.user_id and k.conversation_id = e.conversation_id
        and (k.place, k.part) >= (e.place, e.part) and (k.place, k.part) <= (e.place, e.part)
        and %1$s order by k.place, k.part offset 0) k
    where e.user_id = $1 and e.conversation_id = any ($2) and e.model = $5 and e.dimensions = %2$s
    order by e.embedding::{{vector_schema}}.halfvec(%2$s) operator({{vector_schema}}.<#>) $4::{{vector_schema}}.halfvec(%2$s)
    limit $13$sql$,
      memory_private.chunk_filter_sql('$7', '$8', '$9', '$10', '$11', '$12'), p_width)
     else format($sql$
    select h.conversation_id, h.place
    from (select s.id as conversation_id, e.place
          from unnest($2) as s (id)
          cross join lateral (
            -- As in words_sql, a message comes once.
            select e.place, min(e.distance) as distance
            from (select e.place, e.embedding operator({{vector_schema}}.<#>) $4 as distance
                  from memory.chunk_embeddings e
                  where e.user_id = $1 and e.conversation_id = s.id and e.model = $5 and e.dimensions = %2$s offset 0) e
            group by e.place offset 0) e
          order by e.distance
          -- Without a filter nearly all pass, and a heap is faster than a full sort.
          limit case when $7 is null and $8 is null and $9 is null and $10 is null and $12 is null then 500 end) h
    cross join lateral (
      select from memory.working_memory_chunks k
      where k.user_id = $1 and k.conversation_id = h.conversation_id and k.place between h.place and h.place
        and %1$s order by k.place limit 1) k
    limit $13$sql$,
      memory_private.chunk_filter_sql('$7', '$8', '$9', '$10', '$11', '$12'), p_width) end
  || $sql$) n$sql$
$function$;

-- Returns the columns of a chunk k that are ranked by. Those that most steps read stand first: a row is read up to the
-- last column that is used.
create or replace function memory_private.traits_sql() returns text
language sql immutable security invoker set search_path = ''
as $function$
  select $sql$
    k.conversation_id, k.place, k.part, k.neighbor_share as share, k.search_length, k.said_at, k.speaker,
    k.role = 'assistant' as is_assistant, k.type = 'question' as is_question, k.type = 'answer' as is_answer,
    k.characters <= 40 as is_short, ($sql$ || memory_private.query_filter_sql() || $sql$) as wanted,
    k.speaker = any (v_speakers) as is_named,
    k.has_time and 'time' = any (v_wants) or k.has_number and 'number' = any (v_wants) as has_kind,
    k.importance, k.id, k.characters, k.words_hash,
    -- Days that are named count more than words: those are said on other days, too.
    case when exists (select from dates) then (
      select coalesce(max(case when d.is_days then 1.5 else 1 end), 0)
      from dates d
      cross join lateral (select (k.said_at at time zone v_zone)::date as day offset 0) n
      cross join lateral (
        select n.day, 1 as days
        union all
        select n.day + g.day, w.days
        from unnest(k.told) o
        cross join lateral (select upper(o) - lower(o) as days) w
        cross join lateral generate_series(
          lower(o), upper(o) - 1, case when w.days <= 7 then 1 else w.days - 1 end) as g (day)) t
      -- A span of at most a week can refer to a day, one of at most a month to a month. Longer spans are too vague.
      where t.days <= case when d.weekday is not null then 1 when d.day is not null then 7
                           when d.month is not null or d.first is not null or d.last is not null then 31 else 366 end
        and (d.year is null or d.year = extract(year from t.day))
        and (d.month is null or d.month = extract(month from t.day))
        and (d.day is null or d.day = extract(day from t.day))
        and (d.weekday is null or d.weekday = extract(isodow from t.day))
        and (d.first is null or t.day >= d.first) and (d.last is null or t.day <= d.last)) else 0 end as day_weight$sql$
$function$;

-- Returns the statement of the pool that is ranked: the whole scope, or the chunks at most two places from a
-- candidate. A line that begins with @ is for some questions only, as in ranking_sql. What lies around a vector is
-- found out before it meets its chunk, while a row is short.
create or replace function memory_private.pool_sql(p_candidates boolean) returns text
language sql immutable security invoker set search_path = ''
as $function$
  select case when not p_candidates then $sql$
    select k.*
           @meaning , e.similarity, e.around, e.opening
    from unnest(v_conversations) as s (id)
    cross join lateral (
      select $sql$ || memory_private.traits_sql() || $sql$ from memory.working_memory_chunks k
      where k.user_id = v_user_id and k.conversation_id = s.id offset 0) k
    @meaning left join (
    @meaning   select e.*
    @meaning   from unnest(v_conversations) as s (id)
    @meaning   cross join lateral (
    @meaning     select e.*, avg(e.similarity) over (order by e.place range between 2 preceding and 2 following) as around,
    @meaning            first_value(e.similarity) over (partition by e.place order by e.part) as opening
    @meaning     from (
    @meaning       select e.conversation_id, e.place, e.part,
    @meaning              -(e.embedding operator({{vector_schema}}.<#>) v_vector) as similarity
    @meaning       from memory.chunk_embeddings e
    @meaning       where e.user_id = v_user_id and e.conversation_id = s.id and e.model = v_model
    @meaning         and e.dimensions = v_width
    @meaning       offset 0) e
    @meaning     offset 0) e) e
    @meaning   on e.conversation_id = k.conversation_id and e.place = k.place and e.part = k.part
    $sql$
  else $sql$
    select k.*
    from (select i.conversation_id, min(i.place) - 2 as first, max(i.place) + 2 as last
          from (select d.conversation_id, d.place,
                       sum(d.apart) over (partition by d.conversation_id order by d.place) as island
                from (select n.conversation_id, n.place,
                             case when n.place - lag(n.place) over (partition by n.conversation_id order by n.place) <= 5
                                  then 0 else 1 end as apart
                      from (select * from wordy union all select * from dayed
                            union all select * from unnest(v_near_conversations, v_near_places))
                           as n (conversation_id, place)) d) i
          group by i.conversation_id, i.island) n
    cross join lateral (
      select $sql$ || memory_private.traits_sql() || $sql$
             @meaning , e.similarity, e.around, e.opening
      from memory.working_memory_chunks k
      @meaning left join (
      @meaning   select e.*, avg(e.similarity) over (order by e.place range between 2 preceding and 2 following) as around,
      @meaning          first_value(e.similarity) over (partition by e.place order by e.part) as opening
      @meaning   from (
      @meaning     select e.place, e.part, -(e.embedding operator({{vector_schema}}.<#>) v_vector) as similarity
      @meaning     from memory.chunk_embeddings e
      @meaning     where e.user_id = v_user_id and e.conversation_id = n.conversation_id
      @meaning       and e.place between n.first and n.last and e.model = v_model and e.dimensions = v_width
      @meaning     order by e.place offset 0) e
      @meaning   offset 0) e on e.place = k.place and e.part = k.part
      where k.user_id = v_user_id and k.conversation_id = n.conversation_id and k.place between n.first and n.last
      order by k.place offset 0) k$sql$
  end
$function$;

-- Returns the first part of the ranking: the posting lists of the question's lexemes and, with candidates, the
-- chunks that have the rarest of them.
create or replace function memory_private.words_sql(p_candidates boolean) returns text
language sql immutable security invoker set search_path = ''
as $function$
  select $sql$
  -- The posting lists of the question's lexemes. In a small scope they are looked up for each conversation, in a large
  -- one read at once.
  lists as materialized (
    select l.*
    from unnest(v_conversations) as s (id)
    cross join unnest(v_lexemes) as w (lexeme)
    cross join lateral (
      select l.conversation_id, l.lexeme, l.first, l.postings from memory.chunk_postings l
      where l.user_id = v_user_id
        -- A row comparison can only use the primary key.
        and (l.lexeme, l.conversation_id, l.first) >= (w.lexeme, s.id, -9007199254740991)
        and (l.lexeme, l.conversation_id, l.first) <= (w.lexeme, s.id, 9007199254740991)
      offset 0) l
    where not v_reads_all
    union all
    select l.*
    from unnest(v_lexemes) as w (lexeme)
    cross join lateral (
      select l.conversation_id, l.lexeme, l.first, l.postings from memory.chunk_postings l
      where l.user_id = v_user_id and l.lexeme = w.lexeme offset 0) l
    where v_reads_all and l.conversation_id in (select unnest(v_conversations))),
  $sql$ || case when p_candidates then $sql$
  -- Rare words are the most specific: a chunk with frequent ones only is no candidate if there are enough others.
  rare as materialized (
    select r.*, r.before < 200 or r.before + r.count <= 1000 as used,
           ln(1 + (v_chunks - least(r.count, v_chunks) + 0.5)::float8 / (least(r.count, v_chunks) + 0.5)::float8) as idf
    from (select l.lexeme, l.count, sum(l.count) over (order by l.count, l.lexeme) - l.count as before
          from (select l.lexeme, sum(cardinality(l.postings))::bigint as count from lists l group by l.lexeme) l) r),
  wordy as materialized (
    select h.conversation_id, h.place
    from (select b.conversation_id, b.place
          from (select l.conversation_id, l.first + (p >> 45) as place,
                       -- In float8: the logarithm of a numeric takes as long as all the rest.
                       sum(r.idf * (p & 32767) / ((p & 32767) + 0.9::float8)) as fit
                from lists l
                join rare r on r.lexeme = l.lexeme and r.used
                cross join lateral unnest(l.postings) p
                group by 1, 2, (p >> 15) & 1073741823) b
          -- A message comes once, by its best part: a long one must not take the place of all others.
          group by b.conversation_id, b.place
          order by max(b.fit) desc, b.place desc
          -- As in nearest_sql.
          limit case when v_since is null and v_until is null and v_types is null and v_min_importance is null
                      and v_without is null then 500 end) h
    cross join lateral ( -- something to return, that it is or that it lies near
      select from memory.working_memory_chunks k
      where k.user_id = v_user_id and k.conversation_id = h.conversation_id
        and k.place between h.place - 2 and h.place + 2
        and $sql$ || memory_private.query_filter_sql() || $sql$ order by k.place limit 1) k
    limit v_max_near),
  -- What was said on days that are named, or first, or last, whatever its words.
  dayed as materialized (
    select k.conversation_id, k.place
    from unnest(v_conversations) as s (id)
    cross join (
      select greatest(coalesce(d.first, o.day), '0001-01-01') as first, least(coalesce(d.last, o.day), '9998-12-31') as last
      from dates d
      cross join lateral (
        select case when d.year between 1 and 9998 and d.month between 1 and 12 and d.day between 1 and 31
                 then make_date(d.year, d.month, 1) + (d.day - 1) end as day) o
      where d.is_days and (d.first is not null or d.last is not null or o.day is not null) offset 0) d
    cross join lateral (
      select m.sequence from memory.conversation_messages m
      where m.user_id = v_user_id and m.conversation_id = s.id
        and m.created_at >= d.first::timestamp at time zone v_zone
        and m.created_at < (d.last + 1)::timestamp at time zone v_zone
      order by m.created_at desc limit v_max_near) m
    cross join lateral (
      select k.conversation_id, k.place from memory.working_memory_chunks k
      where k.user_id = v_user_id and k.conversation_id = s.id and k.to_sequence >= m.sequence
        and $sql$ || memory_private.query_filter_sql() || $sql$ order by k.to_sequence limit 1) k
    union
    (select k.conversation_id, k.place
     from unnest(v_conversations) as s (id)
     cross join lateral (
       select k.conversation_id, k.place, k.said_at from memory.working_memory_chunks k
       where v_said_order = 'first' and k.user_id = v_user_id and k.conversation_id = s.id
         and $sql$ || memory_private.query_filter_sql() || $sql$ order by k.place limit 20) k
     order by k.said_at limit v_max_near)
    union
    (select k.conversation_id, k.place
     from unnest(v_conversations) as s (id)
     cross join lateral (
       select k.conversation_id, k.place, k.said_at from memory.working_memory_chunks k
       where v_said_order = 'last' and k.user_id = v_user_id and k.conversation_id = s.id
         and $sql$ || memory_private.query_filter_sql() || $sql$ order by k.place desc limit 20) k
     order by k.said_at desc limit v_max_near)
    limit v_max_near),
  $sql$ else '' end
$function$;

-- Returns the second part of the ranking: the pool, and how well the words of each chunk fit.
create or replace function memory_private.bm25_sql(p_candidates boolean) returns text
language sql immutable security invoker set search_path = ''
as $function$
  select $sql$
  pool as materialized ($sql$ || memory_private.pool_sql(p_candidates) || $sql$),
  postings as materialized (
    select l.conversation_id, l.first + (p >> 45) as place, ((p >> 15) & 1073741823)::integer as part, l.lexeme,
           (p & 32767)::integer as count
    from lists l
    cross join lateral unnest(l.postings) p),
  hits as materialized (
    select h.*, p.share
    from postings h
    join pool p on p.conversation_id = h.conversation_id and p.place = h.place and p.part = h.part),
  -- A chunk has its own words and, at a half and a quarter, those of its neighbors, summed up by message first: a long one
  -- has a thousand parts. Each step is materialized, so that the next is a join on equality.
  reached as materialized (
    select m.conversation_id, m.place + o.distance as place, m.lexeme,
           sum(m.count * case when o.distance in (-1, 0, 1) then 0.5 else 0.25 end) as count
    from (select h.conversation_id, h.place, h.lexeme, sum(h.count * h.share) as count
          from hits h group by h.conversation_id, h.place, h.lexeme) m
    cross join (values (-2), (-1), (0), (1), (2)) as o (distance)
    group by m.conversation_id, m.place + o.distance, m.lexeme),
  terms as materialized (
    select p.conversation_id, p.place, p.part, r.lexeme, p.search_length as length,
           r.count + coalesce(h.count, 0) * (1 - 0.5 * p.share) as count
    from pool p
    join reached r on r.conversation_id = p.conversation_id and r.place = p.place
    left join hits h on h.conversation_id = p.conversation_id and h.place = p.place and h.part = p.part
      and h.lexeme = r.lexeme),
  -- The number of chunks in or near which a word occurs: counted, or, for candidates, estimated as if it were spread at
  -- random.
  spread as materialized (
    select s.lexeme,
           ln(1 + (v_chunks - least(s.count, v_chunks) + 0.5)::float8 / (least(s.count, v_chunks) + 0.5)::float8) as idf
    from ($sql$ || case when p_candidates
      then 'select r.lexeme, v_chunks * (1 - power(1 - least(r.count, v_chunks)::float8 / greatest(v_chunks, 1), 5))'
        || ' as count from rare r'
      else 'select t.lexeme, count(*) as count from terms t group by t.lexeme' end || $sql$) s),
  -- How much of what is asked for, by the rarity of its words, the chunk that has most of it has. A statement has words
  -- of its own story: where no chunk has more than a few of them, the best by words says nothing, and meaning decides.
  -- Without vectors words are all there is.
  worth as materialized (
    select w.lexeme, ln(1 + (v_chunks - least(w.count, v_chunks) + 0.5)::float8
                            / (least(w.count, v_chunks) + 0.5)::float8) as idf
    from (select a.lexeme, coalesce(l.count, 0) as count
          from unnest(v_lexemes) as a (lexeme)
          left join (select l.lexeme, sum(cardinality(l.postings))::bigint as count from lists l group by l.lexeme) l
            on l.lexeme = a.lexeme
          where a.lexeme <> all (v_name_lexemes)) w),
  covered as materialized (
    select case when v_vector is null then 1 else greatest(0, least(1, (c.share - w.floor) / w.step)) end as share,
           -- Where all talk is of one subject, its words are not rare: then their number says what fits.
           greatest(c.share, c.by_number * 0.6) as of_question
    from (select coalesce(max(h.idf), 0) / nullif(max(w.idf), 0) as share,
                 coalesce(max(h.number), 0)::float8 / nullif(max(w.number), 0) as by_number
          from (select sum(w.idf) as idf, count(*) as number from worth w) w
          left join (select sum(w.idf) as idf, count(*) as number from postings h join worth w on w.lexeme = h.lexeme
                     group by h.conversation_id, h.place, h.part) h on true) c,
         (select case when v_is_question then 0.1 else 0.2 end as floor,
                 case when v_is_question then 0.1 else 0.3 end as step) w),
  -- What traits are scaled by, from one look at the pool.
  span as materialized (
    select greatest(avg(p.search_length), 1) as length, array_agg(p.said_at order by p.said_at) as moments
           @meaning , min(p.similarity) as similarity_1, max(p.similarity) as similarity_2,
           @meaning   min(p.around) as around_1, max(p.around) as around_2
    from pool p),
  -- Okapi BM25 with k1 = 0.9, b = 0.4 (Robertson and Zaragoza 2009, The Probabilistic Relevance Framework).
  -- Materialized: without statistics the planner would compute it again for each chunk.
  worded as materialized (
    select t.conversation_id, t.place, t.part,
           sum(s.idf * t.count * 1.9 / (t.count + 0.9 * (0.6 + 0.4 * t.length / n.length))) as words
    from terms t
    join spread s on s.lexeme = t.lexeme
    cross join span n
    group by t.conversation_id, t.place, t.part),
  $sql$
$function$;

-- Returns the third part of the ranking: what each trait of a chunk adds to its score.
create or replace function memory_private.score_sql() returns text
language sql immutable security invoker set search_path = ''
as $function$
  select $sql$
  -- Where messages are long, one says nothing of the next, and much of what a part of it is about stands in its opening.
  talk as materialized (
    select p.conversation_id, greatest(0, least(1, 3 - avg(p.share) / 0.3)) as apart
    from pool p where p.part = 1 group by p.conversation_id),
  speakers as materialized (
    select p.conversation_id, p.speaker, avg(p.share) as share
    from pool p where p.part = 1 and p.speaker is not null group by p.conversation_id, p.speaker),
  -- Here and below offset 0 has each value computed once.
  parts as (
    select p.*, coalesce(w.words, 0) as words,
           coalesce(w.words / nullif((select max(w.words) from worded w), 0), 0) as words_1,
           @meaning coalesce((p.similarity - n.similarity_1) / nullif(n.similarity_2 - n.similarity_1, 0), 0) as meaning_1,
           @meaning coalesce((p.around - n.around_1) / nullif(n.around_2 - n.around_1, 0), 0) as around_1,
           @meaning coalesce((p.opening - n.similarity_1) / nullif(n.similarity_2 - n.similarity_1, 0), 0) as opening_1,
           @words null::float8 as similarity, 0 as meaning_1, 0 as around_1, 0 as opening_1,
           @rrf w.words_rank,
           coalesce(t.apart, 1) as apart,
           -- The share of all others that were said before.
           width_bucket(p.said_at - interval '1 microsecond', n.moments)
             / greatest(cardinality(n.moments) - 1, 1)::float8 as recency,
           -- What an assistant says is long, and seldom what is asked for. A name may be a person's, but not if all that
           -- this name says is long.
           p.is_assistant and (p.speaker is null or s.share < 0.5) as is_reply
    from (select p.*
                 @rrf @meaning , rank() over (order by p.similarity desc nulls last) as meaning_rank
                 @rrf @meaning , rank() over (order by p.around desc nulls last) as around_rank
                 @rrf @words , 0 as meaning_rank, 0 as around_rank
          from pool p) p
    left join (select w.*
                      @rrf , rank() over (order by w.words::real desc) as words_rank
               from worded w) w on w.conversation_id = p.conversation_id and w.place = p.place and w.part = p.part
    left join talk t on t.conversation_id = p.conversation_id
    left join speakers s on s.conversation_id = p.conversation_id and s.speaker = p.speaker
    cross join span n
    where p.wanted offset 0),
  -- What each part adds to the score.
  weighed as (
    select p.conversation_id, p.place, p.part, p.is_question, p.is_answer, p.is_short, p.words, p.said_at, p.similarity,
           p.id, p.characters, p.words_hash,
           @score s.words * v.share * p.words_1 as words_2,
           @score s.meaning * p.meaning_1 as meaning_2,
           @score s.around * ((1 - p.apart) * p.around_1 + p.apart * p.opening_1) as around_2,
           -- Reciprocal ranks with k = 10 (Cormack et al. 2009 have 60; far fewer are ranked here).
           @rrf case when p.words > 0 then 10 * (s.words * v.share / (10 + p.words_rank)) else 0 end as words_2,
           @rrf case when p.similarity is not null then 10 * (s.meaning / (10 + p.meaning_rank)) else 0 end as meaning_2,
           @rrf case when p.similarity is not null then 10 * (s.around / (10 + p.around_rank)) else 0 end as around_2,
           case when p.is_named then s.speaker else 0 end as speaker_2,
           s.date * (p.day_weight
                     + case v_said_order when 'first' then 1 - p.recency when 'last' then p.recency else 0 end) as date_2,
           case when p.has_kind then s.kind else 0 end as kind_2,
           case when p.is_question then s.question else 0 end as question_2,
           s.importance * p.importance as importance_2,
           s.recency * p.recency as recency_2,
           case when p.is_reply then s.reply * (1 + 3 * p.apart) / 4 else 0 end as reply_2
    from parts p
    cross join settings s
    cross join covered v
    -- What was said on a day that is named is asked for, whatever its words.
    where (p.similarity is not null or p.words > 0 or v_vector is null and cardinality(v_lexemes) = 0
           or p.day_weight > 0 or v_said_order is not null)
      and (v_min_similarity is null or coalesce(p.similarity, p.words_1) >= v_min_similarity)
    offset 0),
  alone as materialized (
    select w.*, w.words_2 + w.meaning_2 + w.around_2 + w.speaker_2 + w.date_2 + w.kind_2 + w.question_2
                + w.importance_2 + w.recency_2 + w.reply_2 as own
    from weighed w),
  -- A short answer says little without its question, and a question without its answer. Each comes with the other if the
  -- question has more of the requested words. The speaker and the date do not count here.
  pairs as (
    select p.*
    from (select distinct on (a.conversation_id, a.place)
                 a.conversation_id, a.place, a.part, a.own, a.words, q.part as asked_part,
                 q.own as asked_own, q.words as asked_words, q.is_question
          from alone a
          join alone q on q.conversation_id = a.conversation_id and q.place = a.place - 1
          where a.is_answer and a.is_short and a.part = 1
          order by a.conversation_id, a.place, q.part desc) p
    where p.is_question and p.asked_words > p.words),
  paired as (
    select p.conversation_id, o.place, o.part, o.own
    from pairs p
    cross join lateral (values (p.place, p.part, p.asked_own), (p.place - 1, p.asked_part, p.own)) as o (place, part, own)),
  scored as not materialized (
    select a.*, o.own as other, b.beside_2, a.own + b.beside_2 as score
    from alone a
    left join paired o on o.conversation_id = a.conversation_id and o.place = a.place and o.part = a.part
    cross join settings s
    cross join lateral (select s.beside * greatest(coalesce(o.own, a.own) - a.own, 0) as beside_2) b),
  -- The best part of each message that has several.
  firsts as (
    select s.conversation_id, s.place, max(array[s.score, s.own, -s.part]) as best
    from scored s
    where (s.conversation_id, s.place) in (select m.conversation_id, m.place from alone m where m.part > 1)
    group by s.conversation_id, s.place)
  $sql$
$function$;

-- Returns the statement that ranks a pool of chunks. A score is a weighted sum of parts, each scaled to 0..1 within
-- the pool, or of reciprocal ranks. Variables have the names of v_query in recall_one. Lines are left out that begin
-- with @meaning where the question has no vector, with @words where it has one, with @rrf or @score where the other
-- fuses.
create or replace function memory_private.ranking_sql(p_candidates boolean, p_by_meaning boolean, p_is_rrf boolean)
returns text
language sql immutable security invoker set search_path = ''
as $function$
  select regexp_replace(regexp_replace($sql$
  with settings as materialized (
    select coalesce((v_weights ->> 'words')::float8, 0.5) as words,
           coalesce((v_weights ->> 'meaning')::float8, 0.3) as meaning,
           coalesce((v_weights ->> 'around')::float8, 0.4) as around,
           coalesce((v_weights ->> 'speaker')::float8, 0.3) as speaker,
           coalesce((v_weights ->> 'date')::float8, 0.4) as date,
           coalesce((v_weights ->> 'kind')::float8, 0.2) as kind,
           coalesce((v_weights ->> 'question')::float8, -0.1) as question,
           coalesce((v_weights ->> 'importance')::float8, 0.05) as importance,
           coalesce((v_weights ->> 'recency')::float8, 0.02) as recency,
           coalesce((v_weights ->> 'beside')::float8, 1) as beside,
           coalesce((v_weights ->> 'reply')::float8, -0.4) as reply),
  dates as materialized (
    select d.*, d.day is not null or d.first is not null or d.last is not null as is_days
    from json_to_recordset(v_dates) as d (
      year integer, month integer, day integer, weekday integer, first date, last date)),
  $sql$ || memory_private.words_sql(p_candidates) || memory_private.bm25_sql(p_candidates)
    || memory_private.score_sql() || $sql$
  select array_agg(b.conversation_id), array_agg(b.place), array_agg(b.part), array_agg(b.id), array_agg(b.characters),
         array_agg(b.hash), array_agg(b.score), array_agg(b.similarity), array_agg(b.words),
         array_agg(array[b.words_2, b.meaning_2, b.around_2, b.speaker_2, b.date_2, b.kind_2, b.question_2,
                         b.importance_2, b.recency_2, b.beside_2, b.reply_2]::real[]),
         -- whether there may be more candidates
         $sql$ || case when p_candidates
           then '(select count(*) from wordy) = v_max_near or (select sum(r.count) from rare r) > 500'
           else 'false' end || $sql$,
         (select v.of_question from covered v)
  from (select r.*,
               -- The same words are no repeat if they answer another question.
               case when r.is_answer and r.other is not null then hashtextextended(r.id::text, 0)
                    else r.words_hash end as hash
        from scored r
        left join firsts f on f.conversation_id = r.conversation_id and f.place = r.place
        where v_min_share is null or r.score >= (select max(s.score) from scored s) * v_min_share
        -- A message first has its best part ranked; its other parts follow when each message had its turn, so that one
        -- long answer does not fill what is recalled.
        order by f.best is not null and f.best <> array[r.score, r.own, -r.part],
                 r.score desc, r.own desc, r.said_at desc, r.place desc, r.part
        limit v_max_ranked) b
  $sql$,
    format('^[^\n]*@(%s|%s) [^\n]*$', case when p_by_meaning then 'words' else 'meaning' end,
           case when p_is_rrf then 'score' else 'rrf' end), '', 'gn'),
    '@(meaning|words|rrf|score) ', '', 'g')
$function$;

-- The functions that rank: planned once per connection, for to plan it takes longer than to look through a conversation.
-- Each takes a record with these fields.
do $do$
declare
  v_fields constant text[] := array[
    'user_id text', 'conversations uuid[]', 'lexemes text[]', 'name_lexemes text[]', 'is_question boolean',
    'vector {{vector_schema}}.halfvec', 'model text',
    'chunks bigint', 'since timestamptz', 'until timestamptz', 'types text[]', 'min_importance float8',
    'conversation uuid', 'without int8multirange', 'width integer', 'speakers text[]', 'wants text[]', 'dates json',
    'said_order text', 'zone text', 'weights json', 'min_similarity float8', 'min_share float8', 'max_ranked integer',
    'reads_all boolean',
    'near_conversations uuid[]', 'near_places bigint[]', 'max_near integer'];
  v_each record;
begin
  for v_each in
    select concat_ws('_', case when r.is_rrf then 'fuse' else 'rank' end, case when c.candidates then 'near' else 'all' end,
                     case when not m.by_meaning then 'words' end) as name, c.candidates, m.by_meaning, r.is_rrf
    from (values (false), (true)) as c (candidates), (values (false), (true)) as m (by_meaning),
         (values (false), (true)) as r (is_rrf)
  loop
    execute format($make$
      create or replace function memory_private.%I(p_query record) returns table (
        conversations uuid[], places bigint[], parts integer[], ids uuid[], sizes integer[], hashes bigint[],
        scores float8[], similarities float8[], worded float8[], parted real[],
        cut boolean, covered float8)
      language plpgsql stable security invoker set search_path = ''
      set plan_cache_mode = force_generic_plan set jit = off set enable_mergejoin = off set enable_nestloop = off
      set enable_sort = on
      as %L $make$, v_each.name,
      '#variable_conflict use_column' || chr(10) || 'declare' || chr(10) || (
        select string_agg(
          format('v_%s constant %s := p_query.%1$s;', split_part(f, ' ', 1), substr(f, strpos(f, ' ') + 1)), chr(10))
        from unnest(v_fields) f)
        || chr(10) || 'begin return query ' || memory_private.ranking_sql(v_each.candidates, v_each.by_meaning, v_each.is_rrf) || '; end');
  end loop;
end
$do$;

-- Returns the conversations to search: one, all with one agent, or all of a user.
create or replace function memory_private.recall_scope(
  p_user_id text, p_agent_id text, p_conversation_id uuid, p_scope text,
  p_agents json -- other agents whose conversations belong to it; null: none
) returns uuid[]
language plpgsql stable security invoker set search_path = ''
as $function$
declare
  v_agents text[];
begin
  if coalesce(p_scope, 'conversation') = 'conversation' and p_agents is null then
    return array_remove(array[p_conversation_id], null);
  end if;
  v_agents := array(select json_array_elements_text(p_agents));
  return array(
    select c.id from memory.conversations c
    where c.user_id = p_user_id and c.chunk_count > 0
      and (p_scope = 'user' or c.agent_id = any (v_agents) or (p_scope = 'agent' and c.agent_id = p_agent_id)
           or c.id = p_conversation_id));
end
$function$;

-- Returns an answer of recall without what has expired in its conversations.
create or replace function memory_private.without_expired(
  p_answer jsonb,
  p_firsts jsonb -- the first message that is kept, by agent and thread as a JSON text; absent: all of them are
) returns jsonb
language plpgsql immutable security invoker set search_path = ''
as $function$
declare
  v_near   text;
  v_kept   jsonb := '[]';
  v_gone   text[] := '{}'; -- the ids of chunks
  v_answer jsonb := p_answer;
  v_each   jsonb;
begin
  for v_each in select e from jsonb_array_elements(p_answer -> 'chunks') e loop
    if (v_each #>> '{chunk,from_sequence}')::bigint < (
      p_firsts ->> jsonb_build_array(v_each #> '{chunk,agent_id}', v_each #> '{chunk,thread_id}')::text)::bigint
    then
      v_gone := v_gone || (v_each #>> '{chunk,id}');
      continue;
    end if;
    foreach v_near in array '{before,after}'::text[] loop
      if jsonb_typeof(v_each -> v_near) = 'array' then
        v_each := jsonb_set(v_each, array[v_near], coalesce((
          select jsonb_agg(c order by n)
          from jsonb_array_elements(v_each -> v_near) with ordinality t (c, n)
          where not coalesce((c ->> 'from_sequence')::bigint < (
            p_firsts ->> jsonb_build_array(c -> 'agent_id', c -> 'thread_id')::text)::bigint, false)), 'null'));
      end if;
    end loop;
    v_kept := v_kept || jsonb_build_array(v_each);
  end loop;
  v_answer := jsonb_set(v_answer, '{chunks}', v_kept);
  foreach v_near in array '{repeats,newer}'::text[] loop
    v_answer := jsonb_set(v_answer, array[v_near], coalesce((
      select jsonb_agg(e order by n) from jsonb_array_elements(p_answer -> v_near) with ordinality t (e, n)
      where e ->> 'chunk' <> all (v_gone)), '[]'), false);
  end loop;
  return v_answer;
end
$function$;

-- Recalls without what retention hides, also in conversations beside the caller's own, whose part the question names.
create or replace function memory_private.recall_kept(
  p_user_id text, p_conversation_id uuid, p_scope uuid[], p_ask json, p_retention json
) returns json
language plpgsql stable security invoker set search_path = ''
as $function$
declare
  v_kept   constant json := memory_private.effective_retention(p_user_id, p_retention);
  v_age    constant interval := (v_kept ->> 'age')::float8 * interval '1 second';
  v_found  json;
  v_c      memory.conversations;
  v_each   record;
  v_firsts jsonb := '{}';
begin
  if v_age is not null and p_scope is distinct from array[p_conversation_id] then
    p_ask := (p_ask::jsonb || jsonb_build_object('since', greatest(
      (p_ask ->> 'since')::timestamptz, clock_timestamp() - v_age)))::json;
  end if;
  v_found := memory_private.recall(p_user_id, p_scope, p_ask);
  if p_scope is not distinct from array[p_conversation_id] or num_nonnulls(v_kept ->> 'turns', v_kept ->> 'messages') = 0 then
    return v_found;
  end if;
  for v_each in
    select distinct e #>> '{chunk,agent_id}' as agent_id, e #>> '{chunk,thread_id}' as thread_id
    from (select v_found as answer
          union all
          select m from json_array_elements(case when json_typeof(v_found -> 'more') = 'array' then v_found -> 'more' end) m) a
    cross join lateral json_array_elements(a.answer -> 'chunks') e
  loop
    select c.* into v_c from memory.conversations c
     where c.user_id = p_user_id and c.agent_id = v_each.agent_id and c.thread_id = v_each.thread_id
       and c.id is distinct from p_conversation_id;
    v_firsts := v_firsts || jsonb_build_object(
      jsonb_build_array(v_each.agent_id, v_each.thread_id)::text,
      nullif((memory_private.find_expired(v_c, p_retention)).first, 0));
  end loop;
  v_firsts := jsonb_strip_nulls(v_firsts);
  if v_firsts = '{}' then
    return v_found;
  end if;
  return memory_private.without_expired(v_found::jsonb, v_firsts)
    || case when json_typeof(v_found -> 'more') = 'array' then jsonb_build_object('more', (
         select jsonb_agg(memory_private.without_expired(m, v_firsts) order by n)
         from jsonb_array_elements(v_found::jsonb -> 'more') with ordinality t (m, n))) else '{}' end;
end
$function$;

create function public.memory_recall(
  p_ask       json,              -- see memory_private.recall
  p_thread_id text default null, -- null: all threads,
  p_agent_id  text default null, -- with all agents,
  p_user_id   text default null  -- of one user
) returns json
language plpgsql stable security invoker set search_path = ''
as $function$
declare
  v_user  text := memory_private.resolve_owner(p_user_id);
  v_scope uuid[];
begin
  v_scope := array(
    select c.id from memory.conversations c
    where c.user_id = v_user and (p_agent_id is null or c.agent_id = p_agent_id)
      and (p_thread_id is null or c.thread_id = p_thread_id) and c.chunk_count > 0);
  return memory_private.recall(v_user, v_scope, p_ask);
end
$function$;
comment on function public.memory_recall is
  'langchain-supabase-memory: Find what was said and fits a question, by meaning and by words; the best first.

p_ask: what is asked, an object. Each key may be absent.
- query: text or null. The question; its first 10000 characters count. Empty: what the filters leave, the newest
  first.
- is_question: boolean or null. Whether the text asks something. Of a statement words count as far as one chunk has a
  good share of them, if there are vectors. Null: true.
- more: object[] or null. At most 15 further questions, each with query, is_question, vectors, names, dates, wants and
  order; all else is shared. Each has an answer of its own in more.
- vectors: object[] or null. Vectors of the question, {"names": text[], "vector": number[]}, of length one: of the
  question as it is (no names), and without names in it.
- model: text or null. The name of the embedding model; needed with vectors.
- names: text[] or null. Names in the question: if one speaks in the conversation, what that person said counts
  more.
- dates: object[] or null. Dates in the question, {"year", "month", "day", "weekday"}, each an integer or null;
  Monday is 1. A span of days has "first" and "last", each a date or null.
- order: text or null. Whether the question asks for what was said first or last.
- zone: text or null. The time zone of who asks; null: UTC.
- wants: text[] or null. What the answer should have: time, number.
- since: timestamp or null. Only what was said at this time or later.
- until: timestamp or null. Only what was said before this time.
- types: text[] or null. Only chunks of these types: dialogue, action, fact, question, answer.
- min_importance: number or null. Only chunks that matter at least so much, 0 to 1.
- min_similarity: number or null. Only chunks whose cosine is at least this; without a vector, whose words fit so
  much in relation to the best.
- min_share: number or null. Only chunks whose score is at least this share of the best one''s.
- before: object or null. Leaves out of one conversation what is shown anyway: {"conversation": uuid, "sequence":
  integer, "expired": ranges of sequences such as {[0,4)}}.
- limit: integer or null. The most chunks, at most 1000; null: 1000.
- characters: integer or null. The most characters of all that is returned; null: 2000000.
- pool: integer or null. So many of the best come whatever limit and characters say, at most 200, each with all that
  comes with it: for who ranks them anew; null: 0.
- neighbors: integer or null. So many units before and after each chunk come with it, at most 20.
- whole: boolean or null. Whether the whole stretch of talk of each chunk comes with it.
- fusion: text or null. How words and meaning become one ranking: score, or rrf (by reciprocal ranks). Null: score.
- weights: object or null. What each part of the score counts: words, meaning, around, speaker, date, kind,
  question, importance, recency, beside, reply.
- exact_below: integer or null. Scopes of more chunks than this are not compared one by one; null: 2000.
p_thread_id: only in this thread; null: in all.
p_agent_id: only with this agent; null: with all.
p_user_id: the owner; null: the subject of the caller''s token.
Returns: object.
- chunks: object[]. What was found, the best first.
- chunks[].score: number. How well it fits; comparable within this answer.
- chunks[].similarity: number or null. The cosine; null without a vector.
- chunks[].words: number. How well its words fit.
- chunks[].score_parts: object. What each part adds to the score: words, meaning, around, speaker, date, kind,
  question, importance, recency, beside, reply; those that add nothing are left out.
- chunks[].chunk: object. The chunk.
- chunks[].chunk.id: uuid. Its id.
- chunks[].chunk.thread_id: text. Its thread.
- chunks[].chunk.agent_id: text. Its agent.
- chunks[].chunk.place: integer. Counts the units of the conversation.
- chunks[].chunk.part: integer. Its part, from 1.
- chunks[].chunk.from_sequence: integer. The first message that it has words of.
- chunks[].chunk.to_sequence: integer. The last one.
- chunks[].chunk.message_ids: text[]. The ids of these messages.
- chunks[].chunk.stretch: integer. The first sequence of the stretch of talk that it belongs to.
- chunks[].chunk.type: text. dialogue, action, fact, question or answer.
- chunks[].chunk.role: text. user, assistant, system or tool.
- chunks[].chunk.speaker: text or null. The name of who speaks.
- chunks[].chunk.said_at: timestamp. When it was said.
- chunks[].chunk.content: text. Its words.
- chunks[].chunk.importance: number. How much it matters, 0 to 1.
- chunks[].chunk.expires_at: timestamp or null. When it ceases to be found; null: with its messages.
- chunks[].before: object[] as memory_recall.chunks[].chunk or null. What comes with it and was said before it; null
  if nothing does.
- chunks[].after: object[] as memory_recall.chunks[].chunk or null. What comes with it and was said after it; null
  if nothing does.
- repeats: object[]. The chunks whose words were said more than once.
- repeats[].chunk: uuid. The chunk''s id.
- repeats[].count: integer. How often its words were said in the scope; among candidates, of those.
- repeats[].first: timestamp. When they were said first.
- repeats[].last: timestamp. When they were said last.
- repeats[].sequence: integer or null. The first message that said them; null in a scope of several conversations.
- newer: object[]. What a board knows to have superseded what a chunk says.
- newer[].chunk: uuid. The chunk''s id.
- newer[].old: text. The item that no longer holds.
- newer[].superseded_at: timestamp. When that was said.
- newer[].text: text. The item that holds now.
- newer[].sequence: integer or null. Its newest message.
- covered: number or null. The share of the question''s words, by their rarity or six tenths of it by their number, that
  the chunk with most of them has; null without words.
- searched: integer. How many chunks were looked through.
- approximate: boolean. Whether only what came near by words or meaning was compared.
- by_meaning: boolean. Whether vectors had a part in it.
- more: object[] as memory_recall or null. The answers to the further questions of p_ask, in their order; absent without
  any.
Errors:
- PT400: no p_user_id is given, and the caller''s token names nobody; or there are more than 15 further questions.
- PT409: the stored vectors are of another model, or of another width.
- PT413: p_ask is larger than call_bytes (see memory_limits).';
