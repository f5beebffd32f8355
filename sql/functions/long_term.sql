-- Summaries by meaning, and what is important enough for long-term memory.

-- What a summary is found by. Where no language is known, its words are reduced as English ones: what is reduced alike on
-- both sides still meets.
create or replace function memory_private.summary_words(p_language text, p_text text) returns text[]
language sql stable security invoker set search_path = ''
as $function$
  select array(
    select w.lexeme from memory_private.lexemes(case p_language when 'simple' then 'english' else p_language end, p_text) w)
$function$;

-- The summary that says most of a conversation: the complete one where it reaches as far as the newest segment.
drop view if exists memory.current_summaries;
create view memory.current_summaries with (security_invoker = true) as
select c.agent_id, c.thread_id, c.indexed_through, s.*
from memory.conversations c
cross join lateral (
  select t.* from (
    (select r.* from memory.conversation_summaries r
     where r.user_id = c.user_id and r.conversation_id = c.id and r.level = 0
     order by r.number desc limit 1)
    union all
    (select r.* from memory.conversation_summaries r
     where r.user_id = c.user_id and r.conversation_id = c.id and r.level > 0 and r.number = 1
     order by r.level desc limit 1)) t
  -- What a person wrote comes before what a model did.
  order by t.to_sequence desc, (t.edited_at is not null) desc, t.level desc limit 1) s;

create function public.memory_recall_summaries(
  p_query          text,
  p_vector         json        default null,
  p_model          text        default null,
  p_limit          integer     default 5,
  p_since          timestamptz default null,
  p_until          timestamptz default null,
  p_max_age        float8      default null, -- seconds
  p_min_similarity float8      default null,
  p_agent_id       text        default null, -- null: with all agents
  p_user_id        text        default null
) returns json
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_custom_plan set jit = off
as $function$
declare
  v_user   text := memory_private.owner(p_user_id);
  v_vector {{vector_schema}}.halfvec := p_vector::text::{{vector_schema}}.halfvec;
  v_width  integer := json_array_length(p_vector);
  v_since  timestamptz := greatest(p_since, clock_timestamp() - least(p_max_age, 1e10) * interval '1 second');
  v_stored integer;
  v_found  json;
  v_is_large boolean;
begin
  perform memory_private.admit(p_vector);
  -- Vectors of two widths say nothing about one another. Those of another model are no error: until the summaries are
  -- embedded by this one, they are found by their words.
  select e.dimensions into v_stored from memory.summary_embeddings e
   where e.user_id = v_user and e.model = p_model and e.dimensions <> v_width limit 1;
  if found then
    raise exception 'the stored vectors of this model have % dimensions, not %', v_stored, v_width
      using errcode = 'PT409', hint = 'name the embedding model otherwise, then call index_due()';
  end if;
  with newest as materialized (
    select s.conversation_id as id, s.thread_id, s.agent_id, s.level, s.number, s.from_sequence, s.to_sequence, s.content,
           s.created_at, coalesce(s.language, 'simple') as language,
           coalesce(s.lexemes, memory_private.summary_words('simple', s.content)) as lexemes
    from memory.current_summaries s
    where s.user_id = v_user and (p_agent_id is null or s.agent_id = p_agent_id)
      and (v_since is null or s.created_at >= v_since) and (p_until is null or s.created_at < p_until)),
  -- Each summary is asked with the question's words as its own language reduces them.
  asked as materialized (
    select l.language, (memory_private.summary_words(l.language, left(p_query, 10000)))[:200] as lexemes
    from (select distinct n.language from newest n) l),
  hits as materialized (
    select n.id, h.lexeme
    from newest n
    join asked a on a.language = n.language
    cross join lateral (select unnest(a.lexemes) as lexeme intersect select unnest(n.lexemes)) h
    where n.lexemes && a.lexemes),
  spread as materialized (
    select h.lexeme, ln(1 + (t.total - count(*) + 0.5) / (count(*) + 0.5))::float8 as rarity
    from hits h cross join (select count(*) as total from newest) t
    group by h.lexeme, t.total),
  worded as materialized (
    select h.id, sum(s.rarity) as words from hits h join spread s on s.lexeme = h.lexeme group by h.id),
  matched as (
    select n.*, coalesce(w.words, 0) as words, -(e.embedding operator({{vector_schema}}.<#>) v_vector) as similarity
    from newest n
    left join worded w on w.id = n.id
    left join memory.summary_embeddings e
      on v_vector is not null and e.user_id = v_user and e.conversation_id = n.id and e.level = n.level
     and e.number = n.number
     and e.model = p_model and e.dimensions = v_width),
  -- Each part is brought to 0..1. Where all vectors are equally near, that is as near as it gets.
  parts as (
    select m.*, coalesce(m.words / nullif(max(m.words) over (), 0), 0) as words_1,
           case when m.similarity is null then 0
                else coalesce((m.similarity - min(m.similarity) over ())
                              / nullif(max(m.similarity) over () - min(m.similarity) over (), 0), 1) end as meaning_1
    from matched m),
  scored as (
    select p.*, 0.5 * p.words_1 + 0.5 * p.meaning_1 as score
    from parts p
    where (p.similarity is not null or p.words > 0
           or v_vector is null and not exists (select from asked a where a.lexemes <> '{}'))
      and (p_min_similarity is null or coalesce(p.similarity, p.words_1) >= p_min_similarity)
    order by score desc, p.created_at desc, p.id
    limit greatest(0, least(p_limit, 1000)))
  select json_agg(json_build_object(
           'thread_id', s.thread_id, 'agent_id', s.agent_id, 'number', s.number, 'from_sequence', s.from_sequence,
           'to_sequence', s.to_sequence, 'content', s.content, 'created_at', s.created_at, 'score', s.score,
           'similarity', s.similarity) order by s.score desc, s.created_at desc, s.id)
           filter (where not t.is_large), bool_or(t.is_large)
    into v_found, v_is_large
    from scored s
    cross join (select sum(octet_length(o.content)) > 2 * (memory_private.allowed()).answer_bytes as is_large
                from scored o) t;
  if v_is_large then
    raise exception 'the summaries that were found are too large together' using errcode = 'PT413',
      hint = 'pass a lower limit, or raise answer_bytes in memory_private.limits';
  end if;
  return coalesce(v_found, '[]');
end
$function$;
comment on function public.memory_recall_summaries is
  'langchain-supabase-memory: the conversations whose summaries fit a question, by meaning and by words.';

create function public.memory_unembedded_summaries(
  p_model      text,
  p_user_id    text    default null, -- null: everybody that the caller may see
  p_agent_id   text    default null,
  p_thread_id  text    default null, -- null: every conversation
  p_limit      integer default 50,
  p_after_user text    default null,
  p_after      uuid    default null
) returns json
language plpgsql stable security invoker set search_path = ''
as $function$
declare
  v_rows json;
begin
  -- Built here, so that one user's conversations, and each page, are a range of the primary key.
  execute
    'select json_agg(r order by r.user_id, r.conversation_id) from ('
    ' select s.user_id, s.conversation_id, s.agent_id, s.thread_id, s.indexed_through, s.level, s.number, s.id, s.content'
    ' from memory.current_summaries s'
    ' where not exists (select from memory.summary_embeddings e where e.user_id = s.user_id'
    '                   and e.conversation_id = s.conversation_id and e.level = s.level and e.number = s.number'
    '                   and e.model = $1)'
    || case when p_user_id is not null then ' and s.user_id = $2' else '' end
    || case when p_agent_id is not null then ' and s.agent_id = $3' else '' end
    || case when p_thread_id is not null then ' and s.thread_id = $4' else '' end
    || case when p_after is not null then ' and (s.user_id, s.conversation_id) > ($6, $7)' else '' end ||
    ' order by s.user_id, s.conversation_id limit $5) r'
    into v_rows using p_model, p_user_id, p_agent_id, p_thread_id, greatest(0, least(p_limit, 100)), p_after_user, p_after;
  return coalesce(v_rows, '[]');
end
$function$;
comment on function public.memory_unembedded_summaries is
  'langchain-supabase-memory: newest summaries that have no vector of a model yet.';

create function public.memory_embed_summaries(
  p_model   text,
  p_vectors json -- [{"user_id", "conversation_id", "number", "id", "embedding"}]
) returns jsonb
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_made jsonb;
begin
  perform memory_private.admit(p_vectors);
  -- Only for summaries that are still what was embedded; locked, so that they stay until the vector is there.
  with given as (
    select i.*
    from json_to_recordset(p_vectors) as i (
      user_id text, conversation_id uuid, level integer, number integer, id uuid, embedding json)
    order by i.user_id, i.conversation_id),
  there as (
    select s.user_id, s.conversation_id, s.level, s.number, g.embedding
    from given g
    join memory.conversation_summaries s
      on s.user_id = g.user_id and s.conversation_id = g.conversation_id and s.level = coalesce(g.level, 0)
     and s.number = g.number and s.id = g.id
    where s.id = (select n.id from memory.current_summaries n
                  where n.user_id = s.user_id and n.conversation_id = s.conversation_id)
    order by s.user_id, s.conversation_id
      for key share of s),
  made as (
    insert into memory.summary_embeddings (user_id, conversation_id, level, number, model, dimensions, embedding)
    select t.user_id, t.conversation_id, t.level, t.number, p_model, json_array_length(t.embedding),
           t.embedding::text::{{vector_schema}}.halfvec
    from there t
    on conflict (user_id, conversation_id, level, number, model) do update
      set dimensions = excluded.dimensions, embedding = excluded.embedding
    returning user_id, conversation_id, level, number),
  -- The summaries before them are in them.
  gone as (
    delete from memory.summary_embeddings e
     using made m
     where e.user_id = m.user_id and e.conversation_id = m.conversation_id and (e.level, e.number) <> (m.level, m.number))
  select jsonb_agg(jsonb_build_array(m.user_id, m.conversation_id)) into v_made from made m;
  return coalesce(v_made, '[]');
end
$function$;
comment on function public.memory_embed_summaries is
  'langchain-supabase-memory: store vectors of summaries that are still the newest; returns of which.';

create function public.memory_important(
  p_min_importance     float8,
  p_types              json        default null,
  p_since              timestamptz default null,
  p_target             text        default null, -- only what is not yet in this long-term memory
  p_thread_id          text        default null, -- null: all threads,
  p_agent_id           text        default null, -- with all agents
  p_user_id            text        default null,
  p_limit              integer     default 100,
  p_after_conversation uuid        default null,
  p_after_place        bigint      default -1,
  p_after_part         integer     default 0,
  p_after_source       uuid        default null
) returns json
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_custom_plan
as $function$
declare
  v_user    text := memory_private.owner(p_user_id);
  v_types   text[] := case when json_typeof(p_types) = 'array' then array(select json_array_elements_text(p_types)) end;
  v_facts   boolean := v_types is null or 'fact' = any (v_types);
  v_scope   uuid[];
  v_boarded uuid[];
  v_rows    json;
begin
  v_scope := array(
    select c.id from memory.conversations c
    where c.user_id = v_user and (p_agent_id is null or c.agent_id = p_agent_id)
      and (p_thread_id is null or c.thread_id = p_thread_id) and c.opted_out_at is null
      and (p_after_conversation is null or c.id >= p_after_conversation));
  -- What a board was written for is read from there: its facts say the same in fewer words, and what no longer holds is
  -- not among them.
  v_boarded := array(
    select b.conversation_id from memory.conversation_summary_boards b
    where b.user_id = v_user and b.conversation_id = any (v_scope) and b.through_sequence >= 0 and v_facts);
  select json_agg(r order by r.conversation_id, r.place, r.part, r.source_id) into v_rows
  from (
    select t.*, c.thread_id, c.agent_id
    from (
      select k.conversation_id, k.place, k.part, k.id as source_id, false as from_board, k.content, null as quote, k.type,
             k.role, k.speaker, k.importance, k.said_at, k.message_ids, (
               select max(m.updated_at) from memory.conversation_messages m
               where m.user_id = v_user and m.conversation_id = k.conversation_id and m.message_id = any (k.message_ids)
             ) as edited_at
      from memory.working_memory_chunks k
      where k.user_id = v_user and k.conversation_id = any (v_scope) and not k.stale
        and (k.expires_at is null or k.expires_at > statement_timestamp())
        and k.importance >= p_min_importance::real and (v_types is null or k.type = any (v_types))
        and (p_since is null or k.said_at >= p_since)
        -- A move that broke off before there was a board comes to its end.
        and (k.conversation_id <> all (v_boarded) or exists (
          select from memory.promotions p
          where p.user_id = v_user and p.target = p_target and p.conversation_id = k.conversation_id
            and p.source_id = k.id and not p.moved))
        and (p_target is null or not exists (
          select from memory.promotions p
          where p.user_id = v_user and p.target = p_target and p.conversation_id = k.conversation_id
            and (p.source_id = k.id and p.moved or p.from_board and p.message_ids && k.message_ids)))
      union all
      select i.conversation_id, coalesce(i.sequences[1], -1), -1, i.id, true, i.text, i.quote, i.kind, null, null,
             case when i.pinned then 1.0 else i.importance end, i.first_seen_at, i.message_ids, greatest(i.edited_at, (
               select max(m.updated_at) from memory.conversation_messages m
               where m.user_id = v_user and m.conversation_id = i.conversation_id and m.message_id = any (i.message_ids)))
      from memory.conversation_board_items i
      where v_facts and i.user_id = v_user and i.conversation_id = any (v_scope) and i.kind = 'fact'
        and i.superseded_at is null and i.deleted_at is null and i.state in ('current', 'open')
        and (i.pinned or i.importance >= p_min_importance::real) and (p_since is null or i.last_seen_at >= p_since)
        -- Once from each message: not beside a chunk of it, nor beside an item that the board no longer has, until
        -- forget_source has taken that back.
        and (p_target is null or not exists (
          select from memory.promotions p
          where p.user_id = v_user and p.target = p_target and p.conversation_id = i.conversation_id
            and (p.source_id = i.id and p.moved
                 or p.source_id <> i.id and p.message_ids && i.message_ids and not (p.from_board and exists (
                   select from memory.conversation_board_items o
                   where o.user_id = v_user and o.conversation_id = p.conversation_id and o.id = p.source_id
                     and o.superseded_at is null and o.deleted_at is null)))))) t
    join memory.conversations c on c.user_id = v_user and c.id = t.conversation_id
    where p_after_conversation is null
       or (t.conversation_id, t.place, t.part, t.source_id)
          > (p_after_conversation, p_after_place, p_after_part,
             coalesce(p_after_source, 'ffffffff-ffff-ffff-ffff-ffffffffffff'))
    order by t.conversation_id, t.place, t.part, t.source_id
    limit greatest(0, least(p_limit, 100))) r;
  return json_build_object('user_id', v_user, 'facts', coalesce(v_rows, '[]'));
end
$function$;
comment on function public.memory_important is
  'langchain-supabase-memory: what was said and is important enough to stay, by pages.';

create function public.memory_promote(
  p_target  text,
  p_facts   json, -- [{"conversation_id", "source_id", "text_id", "memory_id", "repeats", "message_ids", "edited_at",
                  --   "from_board"}]
  p_moved   boolean default false, -- before the move, and once more after it
  p_user_id text    default null
) returns json -- where each of them is, or is to be: [{"source_id", "memory_id", "known"}]
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_user text := memory_private.owner(p_user_id);
  v_rows json;
begin
  perform memory_private.admit(p_facts);
  if p_moved then
    with moved as (
      update memory.promotions p
         set moved = true
        from json_to_recordset(p_facts) as i (conversation_id uuid, source_id uuid)
       where p.user_id = v_user and p.target = p_target
         and p.conversation_id = i.conversation_id and p.source_id = i.source_id
      returning p.source_id, p.memory_id)
    select json_agg(json_build_object('source_id', m.source_id, 'memory_id', m.memory_id)) into v_rows from moved m;
    return coalesce(v_rows, '[]');
  end if;
  -- Written down before the move: what is moved can be found again, whatever happens in between. The same words, moved
  -- before from another place, are known.
  with given as (
    select i.*, k.memory_id as known
    from json_to_recordset(p_facts) as i (
           conversation_id uuid, source_id uuid, text_id uuid, memory_id uuid, repeats boolean, message_ids json,
           edited_at timestamptz, from_board boolean)
    left join lateral (
      select p.memory_id from memory.promotions p
      where p.user_id = v_user and p.target = p_target and p.text_id = i.text_id and p.moved
      order by p.memory_id limit 1) k on true),
  noted as (
    insert into memory.promotions as p (
      user_id, target, conversation_id, source_id, text_id, memory_id, message_ids, edited_at, repeats, from_board,
      withdrawn)
    select v_user, p_target, g.conversation_id, g.source_id, g.text_id, coalesce(g.known, g.memory_id),
           array(select json_array_elements_text(g.message_ids)), g.edited_at, g.known is not null or g.repeats,
           coalesce(g.from_board, false),
           -- Since it was read, it may have become something that is not to be remembered.
           exists (select from memory.opt_outs o where o.user_id = v_user)
           and not exists (
             select from memory.working_memory_chunks k
             where k.user_id = v_user and k.conversation_id = g.conversation_id and k.id = g.source_id)
           and not exists (
             select from memory.conversation_board_items i
             where i.user_id = v_user and i.conversation_id = g.conversation_id and i.id = g.source_id)
    from given g
    order by g.conversation_id, g.source_id
    on conflict (user_id, target, conversation_id, source_id) do update
      set edited_at = excluded.edited_at, memory_id = excluded.memory_id, repeats = excluded.repeats,
          withdrawn = excluded.withdrawn
    returning p.source_id, p.memory_id)
  select json_agg(json_build_object('source_id', n.source_id, 'memory_id', n.memory_id, 'known', g.known is not null))
    into v_rows from noted n join given g on g.source_id = n.source_id;
  return coalesce(v_rows, '[]');
end
$function$;
comment on function public.memory_promote is
  'langchain-supabase-memory: note what is being moved to long-term memory, and that it was.';

create function public.memory_withdrawn(
  p_target      text,
  p_user_id     text    default null,
  p_thread_id   text    default null, -- also what is from this thread,
  p_agent_id    text    default null, -- with this agent,
  p_message_ids json    default null, -- or, of it, from these messages
  p_gone        json    default '[]', -- memories that are gone from the long-term memory
  p_after       uuid    default null,
  p_limit       integer default 100,
  p_dry_run     boolean default false
) returns json -- memories that have to go, the next so many
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_user text := memory_private.owner(p_user_id);
  v_ids  text[] := case when json_typeof(p_message_ids) = 'array'
                        then array(select json_array_elements_text(p_message_ids)) end;
  v_rows json;
begin
  perform memory_private.admit(p_message_ids), memory_private.admit(p_gone);
  delete from memory.promotions p
   where p.user_id = v_user and p.target = p_target
     and p.memory_id = any (array(select json_array_elements_text(p_gone)::uuid));
  with gone as materialized (
    select p.conversation_id, p.source_id, p.memory_id, p.repeats
    from memory.promotions p
    left join memory.conversations c on c.user_id = v_user and c.id = p.conversation_id
    where p.user_id = v_user and p.target = p_target and (p_after is null or p.memory_id > p_after)
      and (c.id is null or c.opted_out_at is not null or p.withdrawn
           or exists (
             select from memory.gone_messages g
             where g.user_id = v_user and g.conversation_id = p.conversation_id and g.message_id = any (p.message_ids)
               and g.forgotten)
           or exists (
             select from memory.conversation_messages m
             where m.user_id = v_user and m.conversation_id = p.conversation_id and m.message_id = any (p.message_ids)
               and m.updated_at > coalesce(p.edited_at, '-infinity'))
           -- The board no longer has it: deleted, contradicted, taken back with its source; or it reads otherwise now.
           or p.from_board and not exists (
             select from memory.conversation_board_items i
             where i.user_id = v_user and i.conversation_id = p.conversation_id and i.id = p.source_id
               and i.superseded_at is null and i.deleted_at is null
               and coalesce(i.edited_at, '-infinity') <= coalesce(p.edited_at, '-infinity'))
           or (p_thread_id is not null or v_ids is not null)
              and (p_thread_id is null or c.thread_id = p_thread_id)
              and (p_thread_id is null or p_agent_id is null or c.agent_id = p_agent_id)
              and (v_ids is null or p.message_ids && v_ids))),
  -- Who only said it once more goes from the record, and the memory stays.
  dropped as (
    delete from memory.promotions p
     using gone g
     where not p_dry_run and g.repeats and p.user_id = v_user and p.target = p_target
       and p.conversation_id = g.conversation_id and p.source_id = g.source_id)
  select json_agg(r.memory_id order by r.memory_id) into v_rows
  from (select distinct g.memory_id from gone g where not g.repeats
        order by g.memory_id limit greatest(0, least(p_limit, 1000))) r;
  return json_build_object('user_id', v_user, 'memories', coalesce(v_rows, '[]'));
end
$function$;
comment on function public.memory_withdrawn is
  'langchain-supabase-memory: what is in long-term memory and was forgotten where it came from.';
