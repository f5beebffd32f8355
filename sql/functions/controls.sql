-- People in control: what is not to be remembered, and who changed what.

-- A text as it is compared with a topic: one case, no accents, no punctuation, one form of each letter. Where lower() of
-- this database knows ASCII alone, a collation that knows more takes its place.
do $do$
declare
  v_collation text;
begin
  select quote_ident(c.collname) into v_collation
  from pg_catalog.pg_collation c
  where c.collnamespace = 'pg_catalog'::regnamespace and c.collname in ('pg_c_utf8', 'und-x-icu', 'C.utf8')
    and c.collencoding in (-1, pg_char_to_encoding('UTF8'))
  order by array_position(array['pg_c_utf8', 'und-x-icu', 'C.utf8'], c.collname::text) limit 1;
  execute format($make$
    create or replace function memory_private.fold_text(p_text text) returns text
    language sql immutable security invoker set search_path = ''
    as %L $make$, format($body$
  select btrim(regexp_replace(
    normalize(
      translate(replace(lower(regexp_replace(
        normalize(p_text, NFKD), '[\u0300-\u036f\u00ad\u200b-\u200f\u2060\ufeff]+', '', 'g')%s),
        'ß', 'ss'), 'ς', 'σ'), NFC),
    '[\u0001-\u002f\u003a-\u0040\u005b-\u0060\u007b-\u00bf\u2000-\u206f\u3000-\u3004\u3008-\u3030\ufe30-\ufe4f]+',
    ' ', 'g'))
$body$, coalesce(' collate pg_catalog.' || v_collation, '')));
  -- Normalizes a text for an exact search: one form for each letter, and lower case unless case matters. Accents,
  -- spaces and punctuation stay.
  execute format($make$
    create or replace function memory_private.normalize_letters(p_text text, p_case boolean) returns text
    language sql immutable security invoker set search_path = ''
    as %L $make$, format($body$
  select case when p_case then normalize(p_text, NFC)
              else replace(replace(replace(lower(normalize(p_text, NFC)%s), 'ß', 'ss'), 'ς', 'σ'), U&'i\0307', 'i') end
$body$, coalesce(' collate pg_catalog.' || v_collation, '')));
end
$do$;

-- Returns a text without what a quote may differ in: spaces, case, accents as they are written, invisible characters and
-- the shape of quotation marks and dashes.
create or replace function memory_private.plain_letters(p_text text) returns text
language sql immutable security invoker set search_path = ''
as $function$
  select translate(
    regexp_replace(
      normalize(memory_private.normalize_letters(p_text, false), NFKD),
      '[\s\u0001-\u001f\u007f-\u00a0\u00ad\u061c\u200b-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff]+', '', 'g'),
    '’‘‚‛“”„‟«»‹›「」『』"‐‑‒–—―−', '''''''''''''''''''''''''''''''''''-------')
$function$;

-- Says whether a text mentions one of some folded topics. Words are compared as lexemes in the text's language, in
-- English, and as they are. Emoji, and languages without spaces or without a dictionary here (Chinese, Japanese,
-- Korean, Thai, …), are compared by characters.
create or replace function memory_private.mentions(p_text text, p_topics text[], p_language text default null)
returns boolean
language plpgsql stable security invoker set search_path = ''
as $function$
declare
  v_text   text;
  v_tight  text;
  v_topic  text;
  v_config text;
  v_words  text[];
  v_vector tsvector;
begin
  if p_text is null or cardinality(p_topics) = 0 then
    return false;
  end if;
  v_text := memory_private.fold_text(left(p_text, 200000));
  v_tight := replace(v_text, ' ', '');
  foreach v_topic in array p_topics loop
    if v_topic ~ ('[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u2190-\u2bff\u3005-\u3007\u3040-\u30ff'
                  '\u3130-\u318f\u3400-\u9fff\uac00-\ud7ff\uf900-\ufaff\U00010000-\U0010ffff]')
    then
      if strpos(v_tight, replace(v_topic, ' ', '')) > 0 then
        return true;
      end if;
    else
      v_words := v_words || v_topic;
    end if;
  end loop;
  if v_words is null then
    return false;
  end if;
  for v_config in select distinct l from unnest(array['simple', 'english', coalesce(p_language, 'english')]) l loop
    v_vector := to_tsvector(memory_private.text_search_config(v_config), v_text);
    foreach v_topic in array v_words loop
      if v_vector @@ phraseto_tsquery(memory_private.text_search_config(v_config), v_topic) then
        return true;
      end if;
    end loop;
  end loop;
  return false;
end
$function$;

-- Splits a text into sentences, each with the separator after it.
create or replace function memory_private.split_sentences(p_text text) returns text[]
language sql immutable security invoker set search_path = ''
as $function$
  select string_to_array(regexp_replace(
    translate(p_text, chr(31), ' '), '([.!?…]+["''”’)»\]]*\s+|[。！？]+[」』”’]*\s*|\n+)', '\1' || chr(31), 'g'), chr(31))
$function$;

-- Removes the sentences that mention a topic.
create or replace function memory_private.remove_mentions(p_text text, p_topics text[], p_language text default null)
returns text
language plpgsql stable security invoker set search_path = ''
as $function$
declare
  v_part text;
  v_kept text[] := '{}';
  v_left text;
  v_last integer;
begin
  if not memory_private.mentions(p_text, p_topics, p_language) then
    return p_text;
  end if;
  foreach v_part in array memory_private.split_sentences(p_text) loop
    continue when memory_private.mentions(v_part, p_topics, p_language);
    v_last := cardinality(v_kept);
    -- Nor a mention across the boundary of two sentences.
    if v_last > 0 and memory_private.mentions(v_kept[v_last] || v_part, p_topics, p_language) then
      v_kept := v_kept[:v_last - 1];
    else
      v_kept := v_kept || v_part;
    end if;
  end loop;
  v_left := btrim(array_to_string(v_kept, ''), E' \n\t\r');
  return case when memory_private.mentions(v_left, p_topics, p_language) then '' else v_left end;
end
$function$;

-- Removes the sentences that contain one of some folded phrases, word for word.
create or replace function memory_private.remove_phrases(p_text text, p_said text[]) returns text
language sql stable security invoker set search_path = ''
as $function$
  select case when cardinality(p_said) = 0 then p_text else (
    select btrim(coalesce(string_agg(e.part, '' order by e.place), ''), E' \n\t\r')
    from unnest(memory_private.split_sentences(p_text)) with ordinality as e (part, place)
    cross join lateral (select ' ' || memory_private.fold_text(e.part) || ' ' as folded offset 0) f
    where not exists (select from unnest(p_said) s where strpos(f.folded, ' ' || s || ' ') > 0)) end
$function$;

-- Returns the folded sentences of phrases that are long enough to be specific: one or two words are not.
create or replace function memory_private.sentence_patterns(p_phrases text[]) returns text[]
language sql stable security invoker set search_path = ''
as $function$
  select array(
    select f.folded from unnest(p_phrases) e (phrase)
    cross join lateral unnest(memory_private.split_sentences(e.phrase)) s (part)
    cross join lateral (select memory_private.fold_text(s.part) as folded offset 0) f
    where f.folded ~ ' .* ' or length(f.folded) > 8 and f.folded ~ '[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7ff]')
$function$;

-- Returns the folded topics that a conversation is opted out of.
create or replace function memory_private.opted_out_topics(p_user_id text, p_conversation_id uuid) returns text[]
language plpgsql stable security invoker set search_path = ''
as $function$
begin
  return array(
    select distinct o.folded from memory.opt_outs o
    where o.user_id = p_user_id and o.topic is not null
      and (o.conversation_id is null or o.conversation_id = p_conversation_id)
    order by 1);
end
$function$;

-- Returns the same topics as they were written, for a summarizer; null if there is none.
create or replace function memory_private.topics_for_writer(p_user_id text, p_conversation_id uuid) returns json
language plpgsql stable security invoker set search_path = ''
as $function$
begin
  return (
    select json_agg(distinct o.topic) from memory.opt_outs o
    where o.user_id = p_user_id and o.topic is not null
      and (o.conversation_id is null or o.conversation_id = p_conversation_id));
end
$function$;

-- Locks a user's opt-outs until the end of the transaction, shared, or exclusively to change them. A commit is
-- checked against all of them, also in a new conversation. Taken before the conversation's row lock, never after it.
create or replace function memory_private.lock_opt_outs(p_user_id text, p_change boolean default false) returns void
language sql volatile security invoker set search_path = ''
as $function$
  select memory_private.lock_owner('opt-outs', p_user_id, p_change)
$function$;

-- Deletes everything derived from a conversation. What a person or the application wrote, pinned, rated or deleted
-- on the board stays, without its evidence. The caller holds the row lock.
create or replace function memory_private.delete_derived(p_user_id text, p_conversation_id uuid) returns void
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_now constant timestamptz := clock_timestamp();
begin
  delete from memory.chunk_postings l where l.user_id = p_user_id and l.conversation_id = p_conversation_id;
  delete from memory.chunk_embeddings e where e.user_id = p_user_id and e.conversation_id = p_conversation_id;
  delete from memory.working_memory_chunks k where k.user_id = p_user_id and k.conversation_id = p_conversation_id;
  delete from memory.topic_stretches s where s.user_id = p_user_id and s.conversation_id = p_conversation_id;
  delete from memory.indexed_stretches i where i.user_id = p_user_id and i.conversation_id = p_conversation_id;
  delete from memory.reads r where r.user_id = p_user_id and r.conversation_id = p_conversation_id;
  delete from memory.conversation_summaries s where s.user_id = p_user_id and s.conversation_id = p_conversation_id;
  delete from memory.conversation_board_items i
   where i.user_id = p_user_id and i.conversation_id = p_conversation_id
     and i.edited_at is null and not i.pinned and i.deleted_at is null;
  delete from memory.conversation_board_changes h
   where h.user_id = p_user_id and h.conversation_id = p_conversation_id
     and (h.sequence is not null or h.item_id is null and h.action <> 'summary' and h.place > 0);
  update memory.conversation_board_changes h set before = null
   where h.user_id = p_user_id and h.conversation_id = p_conversation_id and h.item_id is not null
     and h.before is not null;
  update memory.conversation_board_items i
     set quote = null,
         superseded_by = case when o.id is not null then i.superseded_by end,
         superseded_at = case when o.id is not null or exists (
           select from memory.conversation_board_items e
           where e.user_id = p_user_id and e.conversation_id = p_conversation_id and e.kind = i.kind
             and e.digest = i.digest and e.id <> i.id
             and (e.superseded_at is null or (e.superseded_at, e.id) > (i.superseded_at, i.id)))
           then i.superseded_at end
    from memory.conversation_board_items s
    left join memory.conversation_board_items o
      on o.user_id = p_user_id and o.conversation_id = p_conversation_id and o.id = s.superseded_by
   where i.user_id = p_user_id and i.conversation_id = p_conversation_id
     and s.user_id = p_user_id and s.conversation_id = p_conversation_id and s.id = i.id;
  delete from memory.conversation_summary_boards b
   where b.user_id = p_user_id and b.conversation_id = p_conversation_id and b.edited_summary is null
     and not exists (
       select from memory.conversation_board_items i
       where i.user_id = p_user_id and i.conversation_id = p_conversation_id);
  -- The next board begins with version 1 again.
  delete from memory.conversation_board_changes h
   where h.user_id = p_user_id and h.conversation_id = p_conversation_id
     and not exists (
       select from memory.conversation_summary_boards b
       where b.user_id = p_user_id and b.conversation_id = p_conversation_id);
  perform memory_private.note_board_version(p_user_id, p_conversation_id, true);
  update memory.conversation_summary_boards b
     set summary = '', context_notes = '', title = null, language = null, model = null, tokens = 0, quality = null,
         through_sequence = -1, version = b.version + 1, updated_at = v_now
   where b.user_id = p_user_id and b.conversation_id = p_conversation_id;
  delete from memory.context_manifests x where x.user_id = p_user_id and x.conversation_id = p_conversation_id;
  update memory.control_changes h set before = null
   where h.user_id = p_user_id and h.conversation_id = p_conversation_id and h.before is not null;
  update memory.conversations c
     set revision = c.revision + 1, indexed_through = -1, chunk_count = 0, has_stale = false, signals = 0, speakers = '{}',
         language = null, withheld = false, index_failures = 0, index_retry_at = null, index_error = null,
         unembedded_from = null,
         summary_failures = 0, summary_retry_at = null, summary_error = null
   where c.user_id = p_user_id and c.id = p_conversation_id;
  perform memory_private.update_summary_position(p_user_id, p_conversation_id);
end
$function$;

-- Deletes what was derived from a conversation and mentions a topic, and makes commits that are under way fail. The
-- caller holds the row lock.
create or replace function memory_private.delete_topic_mentions(p_user_id text, p_conversation_id uuid, p_topic text)
returns void
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_c       memory.conversations;
  v_topics  constant text[] := array[p_topic];
  v_places  bigint[];
  v_barrier integer; -- the last segment that cannot be written anew, because messages are gone or a person wrote it
  v_first   bigint;
  v_s       memory.conversation_summaries;
  v_content text;
  v_now     constant timestamptz := clock_timestamp();
begin
  update memory.conversations c set revision = c.revision + 1
   where c.user_id = p_user_id and c.id = p_conversation_id
  returning c.* into v_c;
  v_places := array(
    select k.place from memory.working_memory_chunks k
    where k.user_id = p_user_id and k.conversation_id = p_conversation_id and not k.stale
    group by k.place
    having memory_private.mentions(string_agg(k.content, ' ' order by k.part), v_topics, v_c.language));
  if v_places <> '{}' then
    perform memory_private.delete_ratings(p_user_id, p_conversation_id, v_places);
    perform memory_private.delete_chunks(p_user_id, p_conversation_id, v_places);
    update memory.conversations c set withheld = true where c.user_id = p_user_id and c.id = p_conversation_id;
  end if;

  select coalesce(max(s.number), 0) into v_barrier from memory.conversation_summaries s
   where s.user_id = p_user_id and s.conversation_id = p_conversation_id and s.level = 0
     and (s.edited_at is not null or s.from_sequence <= v_c.expired_through);
  select min(s.from_sequence) into v_first from memory.conversation_summaries s
   where s.user_id = p_user_id and s.conversation_id = p_conversation_id
     and (s.level = 0 and s.number > v_barrier or s.level > 0 and s.from_sequence > v_c.expired_through)
     and memory_private.mentions(
       concat_ws(' ', s.content, array_to_string(s.topics, ' '), s.key_facts::text), v_topics, v_c.language);
  if v_first is not null then
    delete from memory.conversation_summaries s
     where s.user_id = p_user_id and s.conversation_id = p_conversation_id and s.level > 0
       and s.to_sequence >= v_first and s.from_sequence > v_c.expired_through;
    -- Delete only as much of the rolling summary as can be written again.
    select greatest(v_first, max(s.to_sequence) + 1) into v_first from memory.conversation_summaries s
     where s.user_id = p_user_id and s.conversation_id = p_conversation_id and s.level = 0 and s.number = v_barrier;
    perform memory_private.invalidate_summaries(p_user_id, p_conversation_id, v_first);
  end if;
  -- Remove the sentences from the others. Their vectors still mean the same, so they are deleted, and one on its way is
  -- refused.
  for v_s in
    select r.* from memory.conversation_summaries r
    where r.user_id = p_user_id and r.conversation_id = p_conversation_id
      and memory_private.mentions(
        concat_ws(' ', r.content, array_to_string(r.topics, ' '), r.key_facts::text), v_topics, v_c.language)
  loop
    v_content := coalesce(nullif(memory_private.remove_mentions(v_s.content, v_topics, v_c.language), ''), '…');
    v_s.tokens := greatest(1, ceil(v_s.tokens * length(v_content)::float8 / v_s.characters)::integer);
    v_s.id := gen_random_uuid();
    v_s.lexemes := memory_private.summary_lexemes(v_s.language, v_content);
    v_s.topics := case when v_s.topics is not null then array(
      select u from unnest(v_s.topics) u where not memory_private.mentions(u, v_topics, v_s.language)) end;
    v_s.key_facts := (select jsonb_agg(f) from jsonb_array_elements(v_s.key_facts) f
                      where not memory_private.mentions(f::text, v_topics, v_s.language));
    update memory.conversation_summaries s
       set content = v_content, characters = length(v_content), tokens = v_s.tokens, id = v_s.id,
           lexemes = v_s.lexemes, topics = v_s.topics, key_facts = v_s.key_facts
     where s.user_id = p_user_id and s.conversation_id = p_conversation_id
       and s.level = v_s.level and s.number = v_s.number;
    delete from memory.summary_embeddings e
     where e.user_id = p_user_id and e.conversation_id = p_conversation_id
       and e.level = v_s.level and e.number = v_s.number;
  end loop;

  delete from memory.contributions b
   where b.user_id = p_user_id and b.conversation_id = p_conversation_id
     and (select memory_private.mentions(b.quote, v_topics, v_c.language));
  delete from memory.conversation_board_items i
   where i.user_id = p_user_id and i.conversation_id = p_conversation_id
     and (select memory_private.mentions(concat_ws(' ', i.text, i.quote), v_topics, v_c.language));
  update memory.conversation_board_items i
     set superseded_by = null
   where i.user_id = p_user_id and i.conversation_id = p_conversation_id and i.superseded_by is not null
     and not exists (
       select from memory.conversation_board_items o
       where o.user_id = p_user_id and o.conversation_id = p_conversation_id and o.id = i.superseded_by);
  update memory.conversation_board_changes h set before = null
   where h.user_id = p_user_id and h.conversation_id = p_conversation_id
     and (select memory_private.mentions(h.before, v_topics, v_c.language));
  update memory.control_changes h set before = null
   where h.user_id = p_user_id and h.conversation_id = p_conversation_id
     and (select memory_private.mentions(h.before, v_topics, v_c.language));
  perform memory_private.note_board_version(p_user_id, p_conversation_id, true);
  update memory.conversation_summary_boards b
     set summary = (select memory_private.remove_mentions(b.summary, v_topics, v_c.language)),
         context_notes = (select memory_private.remove_mentions(b.context_notes, v_topics, v_c.language)),
         edited_summary = (select nullif(memory_private.remove_mentions(b.edited_summary, v_topics, v_c.language), '')),
         title = (select nullif(memory_private.remove_mentions(b.title, v_topics, v_c.language), '')),
         version = b.version + 1, updated_at = v_now
   where b.user_id = p_user_id and b.conversation_id = p_conversation_id;
  update memory.conversations c set title = null
   where c.user_id = p_user_id and c.id = p_conversation_id
     and (select memory_private.mentions(c.title, v_topics, v_c.language));
end
$function$;

-- Returns what an opt-out deletes of a conversation and only a model or a person could make again: everything
-- derived but chunks.
create or replace function memory_private.snapshot_derived(p_user_id text, p_conversation_id uuid) returns jsonb
language plpgsql stable security invoker set search_path = ''
as $function$
begin
  return jsonb_build_object(
    'summaries', (
      select coalesce(jsonb_agg(to_jsonb(s) order by s.level, s.number), '[]') from memory.conversation_summaries s
      where s.user_id = p_user_id and s.conversation_id = p_conversation_id),
    'board', jsonb_build_object(
      'boards', (
        select coalesce(jsonb_agg(to_jsonb(b)), '[]') from memory.conversation_summary_boards b
        where b.user_id = p_user_id and b.conversation_id = p_conversation_id),
      'items', (
        select coalesce(jsonb_agg(to_jsonb(i) order by i.id), '[]') from memory.conversation_board_items i
        where i.user_id = p_user_id and i.conversation_id = p_conversation_id),
      'changes', (
        select coalesce(jsonb_agg(to_jsonb(h) order by h.version, h.place), '[]') from memory.conversation_board_changes h
        where h.user_id = p_user_id and h.conversation_id = p_conversation_id)),
    'others', jsonb_build_object(
      'ratings', (
        select coalesce(jsonb_agg(to_jsonb(r) order by r.from_sequence, r.to_sequence, r.part), '[]') from memory.chunk_ratings r
        where r.user_id = p_user_id and r.conversation_id = p_conversation_id),
      'controls', (
        select coalesce(jsonb_agg(to_jsonb(h) order by h.id), '[]') from memory.control_changes h
        where h.user_id = p_user_id and h.conversation_id = p_conversation_id and h.before is not null),
      'manifests', (
        select coalesce(jsonb_agg(to_jsonb(x) order by x.sequence, x.id), '[]') from memory.context_manifests x
        where x.user_id = p_user_id and x.conversation_id = p_conversation_id),
      'title', (
        select c.title from memory.conversations c where c.user_id = p_user_id and c.id = p_conversation_id)));
end
$function$;

-- Saves for one minute what an opt-out deleted from a conversation, at most 64 MiB of each.
create or replace function memory_private.save_undo(
  p_user_id text, p_opt_out_id uuid, p_conversation_id uuid, p_before jsonb
) returns void
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_after jsonb := memory_private.snapshot_derived(p_user_id, p_conversation_id);
begin
  if v_after <> p_before and octet_length(p_before::text) <= 67108864 then
    insert into memory.opt_out_undos (user_id, opt_out_id, conversation_id, rows, after)
    values (p_user_id, p_opt_out_id, p_conversation_id, p_before, jsonb_build_object(
      'summaries', md5(v_after ->> 'summaries'), 'board', md5(v_after ->> 'board')));
  end if;
end
$function$;

-- Restores what an opt-out deleted less than a minute ago. What has changed since stays, and gets back what it
-- lacks.
create or replace function memory_private.undo_opt_out(p_user_id text, p_opt_out_id uuid) returns void
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_undo  memory.opt_out_undos;
  v_found jsonb;
  v_row   record;
  v_board jsonb;
  v_rest  jsonb;
begin
  for v_undo in
    select u.* from memory.opt_out_undos u
    where u.user_id = p_user_id and u.opt_out_id = p_opt_out_id and u.expires_at > clock_timestamp()
    order by u.conversation_id
  loop
    perform 1 from memory.conversations c
     where c.user_id = p_user_id and c.id = v_undo.conversation_id for no key update;
    v_found := memory_private.snapshot_derived(p_user_id, v_undo.conversation_id);
    v_board := v_undo.rows -> 'board';
    v_rest := v_undo.rows -> 'others';
    if v_undo.after ->> 'summaries' = md5(v_found ->> 'summaries') then
      delete from memory.conversation_summaries s
       where s.user_id = p_user_id and s.conversation_id = v_undo.conversation_id;
      insert into memory.conversation_summaries
      select * from jsonb_populate_recordset(null::memory.conversation_summaries, v_undo.rows -> 'summaries');
    end if;
    if v_undo.after ->> 'board' = md5(v_found ->> 'board') then
      delete from memory.conversation_board_changes h
       where h.user_id = p_user_id and h.conversation_id = v_undo.conversation_id;
      delete from memory.conversation_board_items i
       where i.user_id = p_user_id and i.conversation_id = v_undo.conversation_id;
      delete from memory.conversation_summary_boards b
       where b.user_id = p_user_id and b.conversation_id = v_undo.conversation_id;
    end if;
    insert into memory.conversation_summary_boards
    select * from jsonb_populate_recordset(null::memory.conversation_summary_boards, v_board -> 'boards')
    on conflict do nothing;
    -- Never reuse a version that somebody has seen.
    update memory.conversation_summary_boards b
       set version = 1 + greatest(b.version, (v_found #>> '{board,boards,0,version}')::bigint)
     where b.user_id = p_user_id and b.conversation_id = v_undo.conversation_id;
    insert into memory.conversation_board_items
    select * from jsonb_populate_recordset(null::memory.conversation_board_items, v_board -> 'items')
    on conflict do nothing;
    insert into memory.conversation_board_changes
    select * from jsonb_populate_recordset(null::memory.conversation_board_changes, v_board -> 'changes') h
    where h.item_id is null or exists (
      select from memory.conversation_board_items i
      where i.user_id = p_user_id and i.conversation_id = v_undo.conversation_id and i.id = h.item_id)
    on conflict do nothing;
    insert into memory.conversation_board_changes (
      user_id, conversation_id, version, place, action, changed_by)
    select p_user_id, v_undo.conversation_id, b.version, 0, 'revise', 'memory'
    from memory.conversation_summary_boards b
    where b.user_id = p_user_id and b.conversation_id = v_undo.conversation_id
    on conflict do nothing;
    insert into memory.chunk_ratings
    select * from jsonb_populate_recordset(null::memory.chunk_ratings, v_rest -> 'ratings')
    on conflict do nothing;
    -- Restore the numbers in the form that the check measures: jsonb has added spaces between them.
    insert into memory.context_manifests
    select w.user_id, w.conversation_id, w.sequence, w.id, w.from_sequence, w.made_at, w.expires_at,
           replace(w.pack::text, ' ', '')::json, w.comparison
    from jsonb_populate_recordset(null::memory.context_manifests, v_rest -> 'manifests') w
    on conflict do nothing;
    for v_row in select * from jsonb_populate_recordset(null::memory.control_changes, v_rest -> 'controls') loop
      update memory.control_changes h set before = v_row.before where h.user_id = p_user_id and h.id = v_row.id;
    end loop;
    update memory.conversations c set title = coalesce(c.title, v_rest ->> 'title'), revision = c.revision + 1
     where c.user_id = p_user_id and c.id = v_undo.conversation_id;
    perform memory_private.update_summary_position(p_user_id, v_undo.conversation_id);
  end loop;
end
$function$;

create function public.memory_opt_out(
  p_by        text,                -- who
  p_thread_id text default null,   -- null: in all conversations of the user; then with a topic
  p_topic     text default null,   -- null: all of the conversation
  p_user_id   text default null,
  p_agent_id  text default 'default'
) returns jsonb
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_user   text := memory_private.resolve_writer(p_user_id);
  v_topic  text := memory_private.fold_text(p_topic);
  v_id     uuid;
  v_found  uuid;
  v_opt_out uuid;
  v_before jsonb;
  v_number integer := 0;
  v_most   integer := (memory_private.current_limits()).opt_outs;
  v_now    timestamptz;
  v_private boolean;
begin
  if octet_length(p_topic) > 1000 then
    raise exception 'a topic has more than 1000 bytes' using errcode = 'PT413', hint = 'name it in a word or a few';
  end if;
  if p_thread_id is null and p_topic is null or v_topic = '' then
    raise exception 'a conversation or a topic' using errcode = 'PT400', hint = 'name a thread, or a topic of letters';
  end if;
  perform memory_private.lock_opt_outs(v_user, true);
  v_now := clock_timestamp();
  delete from memory.opt_out_undos u where u.user_id = v_user and u.expires_at <= v_now;
  if p_thread_id is not null then
    -- Also before the first message.
    insert into memory.conversations (user_id, agent_id, thread_id) values (v_user, p_agent_id, p_thread_id)
    on conflict (user_id, agent_id, thread_id) do nothing;
    select c.id, c.private into v_id, v_private from memory.conversations c
     where c.user_id = v_user and c.agent_id = p_agent_id and c.thread_id = p_thread_id
       for no key update;
    if v_private and p_topic is null then
      return jsonb_build_object('is_new', false, 'conversations', 0);
    end if;
  end if;
  if (select count(*) from memory.opt_outs o where o.user_id = v_user) >= v_most then
    raise exception 'too many topics and conversations are not to be remembered' using errcode = 'PT413',
      hint = 'opt in to some of them, or raise opt_outs in memory_private.limits';
  end if;
  insert into memory.opt_outs (user_id, conversation_id, topic, folded, created_by)
  values (v_user, v_id, p_topic, v_topic, p_by)
  on conflict do nothing
  returning id into v_opt_out;
  if v_opt_out is null then
    return jsonb_build_object('is_new', false, 'conversations', 0);
  end if;
  if p_topic is null then
    v_before := memory_private.snapshot_derived(v_user, v_id);
    perform memory_private.delete_derived(v_user, v_id);
    delete from memory.contributions b where b.user_id = v_user and b.conversation_id = v_id;
    perform memory_private.delete_profile_evidence(v_user, v_id);
    v_now := clock_timestamp();
    update memory.conversations c set opted_out_at = v_now where c.user_id = v_user and c.id = v_id;
    perform memory_private.save_undo(v_user, v_opt_out, v_id, v_before);
    v_number := 1;
  else
    for v_found in
      select c.id from memory.conversations c
      where c.user_id = v_user and (v_id is null or c.id = v_id)
      order by c.user_id, c.id
        for no key update
    loop
      v_before := memory_private.snapshot_derived(v_user, v_found);
      perform memory_private.delete_topic_mentions(v_user, v_found, v_topic);
      perform memory_private.save_undo(v_user, v_opt_out, v_found, v_before);
      v_number := v_number + 1;
    end loop;
    perform memory_private.delete_profile_mentions(v_user, v_id, v_topic);
    if v_id is null then
      perform memory_private.delete_topic_names(v_user, v_topic);
    end if;
  end if;
  insert into memory.control_changes (user_id, conversation_id, action, subject, changed_by)
  values (v_user, v_id, 'opt_out', p_topic, p_by);
  return jsonb_build_object('is_new', true, 'conversations', v_number);
end
$function$;
comment on function public.memory_opt_out is
  'langchain-supabase-memory: Remember nothing of a conversation, or of a topic. What was derived goes at once; the
  messages stay, and so does what a person wrote, pinned, rated or deleted on its board. Quotes of it go from the boards of
  spaces, and do not come back. It is noted with who and when.
  For a minute memory_opt_in undoes it; what that needs is kept apart so long, and shown to nobody.

p_by: who says so, 1 to 1000 bytes.
p_thread_id: the thread; null: a topic in all conversations of the user. One that does not exist is begun.
p_topic: a word or a few, at most 1000 bytes; null: all of the conversation.
p_user_id: the owner; null: the subject of the caller''s token.
p_agent_id: the agent of the conversation.
Returns: object.
- is_new: boolean. Whether it was not so before.
- conversations: integer. How many conversations were looked through.
Errors:
- PT400: neither a thread nor a topic is given, or the topic has no letters; or no p_user_id is given, and the
  caller''s token names nobody.
- PT413: the topic has more than 1000 bytes, or the user has as many opt-outs as are allowed (opt_outs, see
  memory_limits).
- 23514: p_by or the thread is refused; the name of the constraint says which.';

create function public.memory_opt_in(
  p_by        text,
  p_thread_id text default null,
  p_topic     text default null,
  p_user_id   text default null,
  p_agent_id  text default 'default'
) returns jsonb
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_user  text := memory_private.resolve_writer(p_user_id);
  v_topic text := memory_private.fold_text(p_topic);
  v_id    uuid;
  v_each  uuid;
  v_places bigint[];
  v_opt_out uuid;
  v_private boolean;
begin
  if p_thread_id is null and p_topic is null then
    raise exception 'a conversation or a topic' using errcode = 'PT400', hint = 'name a thread, or a topic';
  end if;
  perform memory_private.lock_opt_outs(v_user, true);
  if p_thread_id is not null then
    select c.id, c.private and p_topic is null into v_id, v_private from memory.conversations c
     where c.user_id = v_user and c.agent_id = p_agent_id and c.thread_id = p_thread_id
       for no key update;
    if not found then
      return '{"removed": false}';
    end if;
    if v_private then
      raise exception 'a private conversation is never remembered' using errcode = 'PT409',
        hint = 'say it again in a thread that is not private';
    end if;
  end if;
  select o.id into v_opt_out from memory.opt_outs o
   where o.user_id = v_user and o.conversation_id is not distinct from v_id and o.folded is not distinct from v_topic;
  if not found then
    return '{"removed": false}';
  end if;
  perform memory_private.undo_opt_out(v_user, v_opt_out);
  delete from memory.opt_outs o where o.user_id = v_user and o.id = v_opt_out;
  if p_topic is null then
    -- Due again from the beginning.
    update memory.conversations c set opted_out_at = null, revision = c.revision + 1
     where c.user_id = v_user and c.id = v_id;
  else
    -- Places that were left out have no mark, so such a conversation is indexed again.
    for v_each in
      select c.id from memory.conversations c
      where c.user_id = v_user and (v_id is null or c.id = v_id) and c.withheld
      order by c.user_id, c.id
        for no key update
    loop
      v_places := array(
        select distinct k.place from memory.working_memory_chunks k
        where k.user_id = v_user and k.conversation_id = v_each);
      perform memory_private.delete_chunks(v_user, v_each, v_places);
      update memory.conversations c
         set withheld = false, indexed_through = -1, revision = c.revision + 1
       where c.user_id = v_user and c.id = v_each;
    end loop;
  end if;
  -- Delete the topic's name from the record once it may be remembered again.
  update memory.control_changes h set subject = null
   where h.user_id = v_user and h.conversation_id is not distinct from v_id and h.action = 'opt_out'
     and memory_private.fold_text(h.subject) = v_topic;
  insert into memory.control_changes (user_id, conversation_id, action, changed_by)
  values (v_user, v_id, 'opt_in', p_by);
  return '{"removed": true}';
end
$function$;
comment on function public.memory_opt_in is
  'langchain-supabase-memory: Remember a conversation, or a topic, again. Within a minute of the opt-out, everything
  is put back as it was, and chunks are due; afterwards what was left out is due again, from the messages that are kept.

p_by: who says so, 1 to 1000 bytes.
p_thread_id: the thread, as in memory_opt_out; null: a topic in all conversations.
p_topic: the topic, as in memory_opt_out; null: all of the conversation.
p_user_id: the owner; null: the subject of the caller''s token.
p_agent_id: the agent of the conversation.
Returns: object.
- removed: boolean. Whether there was such an opt-out.
Errors:
- PT400: neither a thread nor a topic is given; or no p_user_id is given, and the caller''s token names nobody.
- PT409: the conversation is private: it is never remembered.
- 23514: p_by is refused; the name of the constraint says which.';

create function public.memory_opt_outs(
  p_user_id   text default null,
  p_agent_id  text default null, -- null: with all agents
  p_thread_id text default null  -- null: of all conversations, and those for all
) returns json
language plpgsql stable security invoker set search_path = ''
as $function$
declare
  v_user text := memory_private.resolve_owner(p_user_id);
begin
  return coalesce((
    select json_agg(json_build_object(
             'thread_id', c.thread_id, 'agent_id', c.agent_id, 'topic', o.topic, 'by', o.created_by, 'at', o.created_at)
           order by o.created_at, o.id)
    from memory.opt_outs o
    left join memory.conversations c on c.user_id = o.user_id and c.id = o.conversation_id
    where o.user_id = v_user
      and (o.conversation_id is null
           or (p_agent_id is null or c.agent_id = p_agent_id) and (p_thread_id is null or c.thread_id = p_thread_id))),
    '[]');
end
$function$;
comment on function public.memory_opt_outs is
  'langchain-supabase-memory: List what is not to be remembered, and who said so, the oldest first.

p_user_id: the owner; null: the subject of the caller''s token.
p_agent_id: only with this agent, and what holds for all; null: with all.
p_thread_id: only of this thread, and what holds for all; null: of all.
Returns: object[].
- [].thread_id: text or null. The thread; null: all conversations.
- [].agent_id: text or null. Its agent; null: all conversations.
- [].topic: text or null. The topic; null: all of the conversation.
- [].by: text. Who said so.
- [].at: timestamp. When that was.
Errors:
- PT400: no p_user_id is given, and the caller''s token names nobody.';

create function public.memory_control_changes(
  p_user_id   text    default null,
  p_agent_id  text    default null,
  p_thread_id text    default null, -- null: of all conversations, and those for all
  p_limit     integer default 100
) returns json
language plpgsql stable security invoker set search_path = ''
as $function$
declare
  v_user text := memory_private.resolve_owner(p_user_id);
begin
  return coalesce((
    select json_agg(r order by r.changed_at desc, r.id)
    from (select h.id, c.thread_id, c.agent_id, h.action, h.subject, h.before, h.changed_by, h.changed_at
          from memory.control_changes h
          left join memory.conversations c on c.user_id = h.user_id and c.id = h.conversation_id
          where h.user_id = v_user and (p_agent_id is null or c.agent_id = p_agent_id)
            and (p_thread_id is null or c.thread_id = p_thread_id)
          order by h.changed_at desc, h.id limit greatest(0, least(p_limit, 500))) r), '[]');
end
$function$;
comment on function public.memory_control_changes is
  'langchain-supabase-memory: List who changed what of opt-outs, ratings and summaries, the newest first.

p_user_id: the owner; null: the subject of the caller''s token.
p_agent_id: only with this agent; null: with all.
p_thread_id: only of this thread; null: of all, and those that hold for all.
p_limit: the most of one answer, at most 500.
Returns: object[].
- [].id: uuid. The change.
- [].thread_id: text or null. The thread; null: all conversations.
- [].agent_id: text or null. Its agent; null: all conversations.
- [].action: text. opt_out, opt_in, rate, edit_summary, delete_summary, regenerate_summary or edit_topic.
- [].subject: text or null. The topic, the id of the chunk or of a topic that was found, or the number of the summary.
- [].before: text or null. What stood there before, unless it was to go.
- [].changed_by: text. Who did it.
- [].changed_at: timestamp. When that was.
Errors:
- PT400: no p_user_id is given, and the caller''s token names nobody.';
