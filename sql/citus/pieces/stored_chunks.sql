  -- One statement for each table, joined with the conversation, so that each goes to the owner's node; rows shared
  -- between statements would be sent to every node.
  with given as (
    select i.place, i.part, i.stretch, i.role, i.speaker, i.said_at, i.content, i.embedding is null as lacks,
           case when 'signals' <> all (v_refused) then i.signals end as signals
    from json_to_recordset(p_chunks) as i (
      place bigint, part integer, stretch bigint, role text, speaker text, said_at timestamptz, content text, signals smallint,
      embedding json)),
  words as (
    select g.place, g.part, w.lexeme, least(w.count, 32767) as count
    from given g, memory_private.lexemes(
      v_language, memory_private.chunk_search_text(v_user, g.role, g.content, g.speaker, g.said_at)) w)
  select count(*) as chunks, array_agg(distinct g.stretch) as stretches, min(g.stretch) as first,
         coalesce(bit_or(g.signals), 0)::smallint as signals,
         array_agg(distinct g.speaker) filter (where g.speaker is not null) as speakers,
         min(g.place) filter (where g.lacks) as unembedded, count(*) filter (where not g.lacks) as embedded,
         (select array_agg(w.lexeme) from words w) as lexemes, (select array_agg(w.place) from words w) as places,
         (select array_agg(w.part) from words w) as parts, (select array_agg(w.count) from words w) as counts,
         null::json as beside
    into v_made from given g;
  declare
    v_lengths record;
  begin
    select array_agg(l.place) as places, array_agg(l.part) as parts, array_agg(l.share) as shares,
           array_agg(l.length) as lengths, json_agg(l) filter (where l.is_stored) as beside
      into v_lengths
      from (select array_agg(g.place) as places, array_agg(g.part) as parts, array_agg(coalesce(n.lexemes, 0)) as lexemes
            from json_to_recordset(p_chunks) as g (place bigint, part integer)
            left join (select w.place, w.part, sum(w.count)::bigint as lexemes
                       from unnest(v_made.places, v_made.parts, v_made.counts) as w (place, part, count)
                       group by w.place, w.part) n on n.place = g.place and n.part = g.part) a
      cross join lateral memory_private.changed_lengths(v_user, v_c.id, a.places, a.parts, a.lexemes) l;
    v_made.beside := v_lengths.beside;
    insert into memory.working_memory_chunks (
      user_id, conversation_id, place, part, id, from_sequence, to_sequence, message_ids, stretch, type, role, speaker,
      said_at, content, characters, tokens, lexemes, terms, neighbor_share, search_length, importance, cohesion, has_time,
      has_number, told, signals, quotes, tone, expires_at)
    select c.user_id, c.id, g.place, g.part, g.id, g.from_sequence, g.to_sequence, g.message_ids, g.stretch, g.type,
           g.role, g.speaker, g.said_at, g.content, length(g.content), g.tokens, coalesce(n.lexemes, 0),
           coalesce(n.terms, 0), l.share, l.length, coalesce(r.importance, g.importance), g.cohesion, g.has_time, g.has_number,
           coalesce(g.told, '{}'), case when 'signals' = any (v_refused) then 0 else coalesce(g.signals, 0) end,
           case when 'signals' <> all (v_refused) then g.quotes end, case when 'tone' <> all (v_refused) then g.tone end, v_expires
    from memory.conversations c
    cross join json_to_recordset(p_chunks) as g (
      place bigint, part integer, id uuid, from_sequence bigint, to_sequence bigint, message_ids text[],
      stretch bigint, type text, role text, speaker text, said_at timestamptz, content text, tokens integer, importance real, cohesion real, has_time boolean, has_number boolean,
      told int4range[], signals smallint, quotes int4range[], tone smallint)
    left join memory.chunk_ratings r on r.user_id = c.user_id and r.conversation_id = c.id
     and r.from_sequence = g.from_sequence and r.to_sequence = g.to_sequence and r.part = g.part
    left join (select w.place, w.part, sum(w.count) as lexemes, count(*) as terms
               from unnest(v_made.places, v_made.parts, v_made.counts) as w (place, part, count)
               group by w.place, w.part) n on n.place = g.place and n.part = g.part
    join unnest(v_lengths.places, v_lengths.parts, v_lengths.shares, v_lengths.lengths) as l (place, part, share, length)
      on l.place = g.place and l.part = g.part
    where c.user_id = v_user and c.id = v_c.id;
  end;
  if v_made.embedded > 0 then
    insert into memory.chunk_embeddings (user_id, conversation_id, place, part, model, dimensions, embedding)
    select c.user_id, c.id, g.place, g.part, p_model, json_array_length(g.embedding),
           g.embedding::text::{{vector_schema}}.halfvec
    from memory.conversations c
    cross join json_to_recordset(p_chunks) as g (place bigint, part integer, embedding json)
    where c.user_id = v_user and c.id = v_c.id and g.embedding is not null;
  end if;
