-- Chunks: what is to be indexed next, the commit, and what happens to them when a message changes or goes.
-- How its queries are held to their indexes: sql/README.md.

-- Returns the text search configuration of a name, or simple where this server does not have it.
create or replace function memory_private.text_search_config(p_language text) returns regconfig
language sql stable security invoker set search_path = ''
as $function$
  select coalesce((
    select c.oid::regconfig from pg_catalog.pg_ts_config c
    where c.cfgnamespace = 'pg_catalog'::regnamespace and c.cfgname = p_language), 'pg_catalog.simple'::regconfig)
$function$;

-- Returns the stemmer of a language, or the dictionary that leaves words as they are.
create or replace function memory_private.stemmer(p_language text) returns regdictionary
language sql stable security invoker set search_path = ''
as $function$
  select coalesce((
    select d.oid::regdictionary from pg_catalog.pg_ts_dict d
    where d.dictnamespace = 'pg_catalog'::regnamespace and d.dictname = p_language || '_stem'),
    'pg_catalog.simple'::regdictionary)
$function$;

-- Returns a text with one form of each letter: composed, in lower case, of normal width, without invisible characters,
-- and without the marks and variants that writers of Arabic, Persian, Hebrew and Hindi leave out or exchange.
create or replace function memory_private.unify_letters(p_text text) returns text
language plpgsql immutable security invoker set search_path = ''
as $function$
begin
  return replace(replace(translate(
    regexp_replace(
      -- NFKC only where it is needed: it takes punctuation apart, which changes how the words around it are read.
      memory_private.normalize_letters(
        case when p_text ~ '[\u3000\ufb00-\ufdff\ufe70-\ufefe\uff01-\uffef]' then normalize(p_text, NFKC)
             else p_text end, false),
      '[\u00ad\u034f\u0591-\u05bd\u05bf\u05c1\u05c2\u0610-\u061a\u061c\u0640\u064b-\u065f\u0670\u06d6-\u06dc\u06df'
      '-\u06e8\u06ea-\u06ed\u093c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]+', '', 'g'),
    U&'\0622\0623\0625\0671\0649\06cc\0629\0624\0626\06a9\0901',
    U&'\0627\0627\0627\0627\064a\064a\0647\0648\064a\0643\0902'),
    -- What NFKC makes of a Thai and a Lao vowel.
    U&'\0e4d\0e32', U&'\0e33'), U&'\0ecd\0eb2', U&'\0eb3');
end
$function$;

-- Returns a word, in lower case, without the accents of Latin and Greek letters.
create or replace function memory_private.remove_accents(p_word text) returns text
language sql immutable security invoker set search_path = ''
as $function$
  select normalize(regexp_replace(
    normalize(translate(replace(replace(p_word, 'æ', 'ae'), 'œ', 'oe'), 'øłđðħŧıё', 'olddhtiе'), NFD),
    '([a-zα-ω])[\u0300-\u036f]+', '\1', 'g'), NFC)
$function$;

-- Returns an Arabic word without its article, conjunctions and pronouns, once more without a preposition that may as
-- well be its first letter.
create or replace function memory_private.arabic_stems(p_word text) returns text[]
language plpgsql immutable security invoker set search_path = ''
as $function$
declare
  -- At least two letters stay behind the article, three behind anything else.
  v_bare  text := regexp_replace(regexp_replace(p_word, '^[وف](?=...)', ''), '^(?:[بك]?ال|لل)(?=..)', '');
  v_stems text[] := array[v_bare];
  v_one   text;
  v_stem  text;
begin
  if v_bare ~ '^[بكل]...' then
    v_stems := v_stems || substr(v_bare, 2);
  end if;
  for i in 1 .. cardinality(v_stems) loop
    v_one := regexp_replace(v_stems[i], '(?:ها|هم|هن|كم|نا|ه|ك|ي)$', '');
    v_one := case when length(v_one) < 2 then v_stems[i] else v_one end;
    -- Behind a pronoun the ending of the feminine is another letter.
    v_stem := regexp_replace(
      v_one, case when v_one = v_stems[i] then '(?:ات|ان|ون|ين)$' else '(?:ات|ان|ون|ين|ت)$' end, '');
    v_stems[i] := case when length(v_stem) < 3 then v_one else v_stem end;
  end loop;
  return v_stems;
end
$function$;

-- Returns the stems of a long word's beginnings and ends, where a word may end and another begin: a compound is found
-- by its parts.
create or replace function memory_private.compound_parts(p_stemmer regdictionary, p_word text) returns text[]
language sql stable security invoker set search_path = ''
as $function$
  select array(
    select s.stem
    from generate_series(4, length(p_word) - 4) as n (place)
    cross join lateral (select left(p_word, n.place) as head, substr(p_word, n.place + 1) as tail) h
    cross join lateral (values (h.head), (h.tail)) as p (part)
    cross join lateral unnest(ts_lexize(p_stemmer, p.part)) as s (stem)
    where h.head ~ '[aeiouyäöüåæø][^aeiouyäöüåæø]{0,3}$' and h.head !~ '[cq]$'
      and h.tail ~ ('^(?:sch[lmnrw]?|[bfgkp]l|[bdfgkptw]r|[gks]n|s[klmpt]r?|pfl?|qu|sv|[st]j|tv|[cdst]h|zw'
                    '|[bcdfghjklmnpqrstvwz])?[aeiouyäöüåæø]')
      and (h.tail !~ '^[aeiouyäöüåæø]' or h.head ~ '[dgknst]$' or h.head ~ '[^aeiouyäöüåæø]{2}$')
      and (h.tail !~ '^ch' or h.head !~ 's$'))
$function$;

-- Returns what else a word is found by, beside its lexeme: parts of it, or a simpler form.
create or replace function memory_private.word_forms(
  p_stemmer regdictionary, p_word text, p_has_compounds boolean
) returns text[]
language plpgsql stable security invoker set search_path = ''
as $function$
declare
  v_forms text[];
begin
  if p_word ~ '[\uac00-\ud7a3]' then -- one of two characters: lexemes has the others
    v_forms := case when p_word ~ '.[은는이가을를의에도만로와과]' then array[left(p_word, 1)] end;
  elsif p_word ~ '[\u0620-\u06d3]' then
    v_forms := memory_private.arabic_stems(p_word);
  elsif p_word ~ '[\u0904-\u097f]' then
    v_forms := ts_lexize('pg_catalog.hindi_stem', p_word);
  else
    if p_word ~ '[\u00df-\u024f\u0300-\u03ff\u1e00-\u1fffё]' and ts_lexize(p_stemmer, p_word) <> '{}' then
      v_forms := ts_lexize(p_stemmer, memory_private.remove_accents(p_word));
    end if;
    if p_has_compounds and length(p_word) between 8 and 40 and p_word ~ '^[a-zäöüßåæøéèëï]+$' then
      v_forms := v_forms || memory_private.compound_parts(p_stemmer, p_word);
    end if;
  end if;
  return array(select distinct f from unnest(v_forms) f where f <> p_word and f <> all (ts_lexize(p_stemmer, p_word)));
end
$function$;

-- Returns the lexemes of a text and how often each occurs: those of its language and, where these miss what a person
-- means, more. English has none but its own. Where no spaces stand between words (Chinese, Japanese, Thai, Lao, Khmer,
-- Burmese), pairs of characters are the lexemes, each character with its marks.
create or replace function memory_private.lexemes(p_language text, p_text text)
returns table (lexeme text, count integer)
language plpgsql stable security invoker set search_path = ''
as $function$
declare
  v_unspaced constant text := '[\u0e01-\u0e4e\u0e81-\u0ece\u1000-\u104f\u1780-\u17d3\u3005-\u3007\u3040-\u30ff'
                              '\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+';
  -- A character with its marks, and with the consonants below it.
  v_character constant text := '.(?:[\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u102b-\u1038'
                               '\u103a-\u103e\u17b4-\u17d1\u17d3]|[\u1039\u17d2].)*';
  v_chinese constant text := '[\u3005-\u3007\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]';
  v_korean  constant text := '[\uac00-\ud7a3]';
  v_formed  constant text := '[\u00df-\u024f\u0300-\u03ffё\u0620-\u06d3\u0904-\u097f\u1e00-\u1fff\uac00-\ud7a3]';
  -- In some locales a part of a word for Postgres.
  v_punctuation constant text := '[\u00a1-\u00a9\u00ab\u00ac\u00ae-\u00b4\u00b6-\u00b9\u00bb-\u00bf\u00d7\u00f7'
                                 '\u05be\u060c\u061b\u061f\u066a-\u066d\u06d4\u0964\u0965\u2010-\u2027\u2030'
                                 '-\u205e\u3000-\u3004\u3008-\u3030]+';
  v_config  constant regconfig := memory_private.text_search_config(p_language);
  v_joins   constant boolean := coalesce(p_language in ('german', 'dutch', 'danish', 'norwegian', 'swedish'), false);
  v_stemmer regdictionary;
  v_text    text;
  v_spaced  text;
begin
  -- Nothing to unify, to take apart or to add.
  if not v_joins and (octet_length(p_text) = length(p_text) or p_text !~
    '[\u00ad\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u1fff\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2c00-\ud7ff\uf900-\uffef'
    '\U00020000-\U0003ffff]')
  then
    return query
      select left(t.lexeme, 100), sum(cardinality(t.positions))::integer
      from unnest(to_tsvector(v_config, p_text)) t
      group by 1;
    return;
  end if;
  v_stemmer := memory_private.stemmer(p_language);
  v_text := memory_private.unify_letters(p_text);
  v_spaced := regexp_replace(v_text, v_unspaced || '|' || v_punctuation, ' ', 'g');
  return query
    select left(l.lexeme, 100), sum(l.count)::integer
    from (select t.lexeme, cardinality(t.positions) as count from unnest(to_tsvector(v_config, v_spaced)) t
          union all
          -- One call for each word takes most of the time, so words without forms, and Korean ones, have none.
          select f.form, cardinality(t.positions)
          from unnest(to_tsvector('pg_catalog.simple', v_spaced)) t
          cross join lateral unnest(memory_private.word_forms(v_stemmer, t.lexeme, v_joins)) as f (form)
          where (v_joins or t.lexeme ~ v_formed) and (t.lexeme !~ v_korean or length(t.lexeme) <= 2)
          union all
          -- Particles hang on a Korean word: each pair of its characters is a form, once.
          select substr(t.lexeme, i, 2), cardinality(t.positions)
          from unnest(to_tsvector('pg_catalog.simple', case when v_spaced ~ v_korean then v_spaced end)) t
          cross join lateral generate_series(1, length(t.lexeme) - 1) i
          where t.lexeme ~ v_korean and length(t.lexeme) > 2 and strpos(t.lexeme, substr(t.lexeme, i, 2)) = i
          union all
          -- Split once: with multi-byte characters, substr counts from the start of the text each time. A Chinese
          -- character alone among kana is a word.
          select unnest(array[
                   c.letter || c.next,
                   case when c.place = 1 and c.next is null
                          or c.letter ~ v_chinese and coalesce(c.last, '') !~ v_chinese
                             and coalesce(c.next, '') !~ v_chinese then c.letter end]), 1
          from (select s.letter, lag(s.letter) over r as last, lead(s.letter) over r as next, s.place
                from regexp_matches(v_text, v_unspaced, 'g') with ordinality as m (run, number),
                     unnest(string_to_array(ltrim(regexp_replace(m.run[1], v_character, ' \&', 'g')), ' '))
                       with ordinality as s (letter, place)
                window r as (partition by m.number order by s.place)) c) l
    where l.lexeme is not null
    group by 1;
end
$function$;

-- Returns the word by which what a member of a space says is found, whatever they are called.
create or replace function memory_private.author_word(p_author_id text) returns text
language sql immutable security invoker set search_path = ''
as $function$
  select 'author' || left(encode(sha256(convert_to(p_author_id, 'UTF8')), 'hex'), 32)
$function$;

-- Returns the text that a chunk is found by: its words, the speaker and the month.
create or replace function memory_private.chunk_search_text(
  p_user_id text, p_role text, p_content text, p_speaker text, p_said_at timestamptz
) returns text
language sql stable security invoker set search_path = ''
as $function$
  select concat_ws(
    ' ', p_content,
    case when p_role = 'user' and starts_with(p_user_id, 'space:') then memory_private.author_word(p_speaker)
         else p_speaker end,
    to_char(p_said_at at time zone 'UTC', 'FMMonth YYYY'))
$function$;

-- Returns the text search configuration with the most stop words in a text. Null: the text is too short to know.
-- Simple: no language has a fifth of its words as stop words.
create or replace function memory_private.detect_language(p_text text) returns text
language plpgsql stable security invoker set search_path = ''
as $function$
declare
  v_lexemes text[];
  v_counts  integer[];
  v_words   integer;
  v_best    text;
begin
  select array_agg(t.lexeme), array_agg(cardinality(t.positions)), sum(cardinality(t.positions))
    into v_lexemes, v_counts, v_words
    from unnest(to_tsvector('simple', p_text)) t;
  if coalesce(v_words, 0) < 40 then
    return null;
  end if;
  -- Each different word is looked up once, and only in dictionaries that have stop words.
  select l.name into v_best
  from (select c.cfgname::text as name,
               (select coalesce(sum(w.count), 0) from unnest(v_lexemes, v_counts) as w (lexeme, count)
                where ts_lexize(
                  case when octet_length(w.lexeme) = char_length(w.lexeme) then a.mapdict else o.mapdict end, w.lexeme)
                  = '{}') as stops
        from pg_catalog.pg_ts_config c
        -- Some languages read words of ASCII letters by another dictionary.
        join pg_catalog.pg_ts_config_map a on a.mapcfg = c.oid and a.maptokentype = 1 and a.mapseqno = 1
        join pg_catalog.pg_ts_config_map o on o.mapcfg = c.oid and o.maptokentype = 2 and o.mapseqno = 1
        where c.cfgnamespace = 'pg_catalog'::regnamespace
          and exists (select from pg_catalog.pg_ts_dict d
                      where d.oid in (a.mapdict, o.mapdict) and d.dictinitoption ilike '%stopwords%')
        union all
        -- Postgres stems Indonesian, but knows none of its stop words.
        select 'indonesian', coalesce(sum(w.count), 0)
        from unnest(v_lexemes, v_counts) as w (lexeme, count)
        where w.lexeme = any ('{ada,adalah,akan,aku,apa,atau,bagaimana,belum,berapa,bisa,boleh,dalam,dan,dari,dengan,di,
          dia,hanya,harus,ini,itu,jika,juga,kalau,kami,kamu,karena,ke,kita,lebih,mana,mereka,oleh,pada,sangat,saya,
          seperti,sudah,tidak,untuk,yang}')) l
  where l.stops > v_words * 0.2
  order by l.stops desc, l.name
  limit 1;
  return coalesce(v_best, 'simple');
end
$function$;

-- Inserts the postings of chunks, given as lists of equal length, and returns the number of rows. Chunks at the end
-- fill the newest row of a lexeme first; a place between others goes into the row around it. The caller holds the
-- conversation's row lock.
create or replace function memory_private.insert_postings(
  p_user_id text, p_conversation_id uuid, p_lexemes text[], p_places bigint[], p_parts integer[], p_counts integer[]
) returns bigint
language plpgsql volatile security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
declare
  v_rows bigint;
begin
  insert into memory.chunk_postings as l (user_id, lexeme, conversation_id, first, postings)
  select p_user_id, t.lexeme, p_conversation_id, t.first,
         array_agg(((t.place - t.first) << 45) | (t.part::bigint << 15) | t.count order by t.place, t.part)
  from (select s.*, case when s.slot = 0 and s.open is not null then s.open else min(s.place) over (
                           partition by s.lexeme, s.span, s.open, s.slot) end as first
        from (select n.*, r.first as open, n.place >> 17 as span,
                     case when n.place <= r.last then 0 else (coalesce(r.size, 0) + count(*) over (
                       partition by n.lexeme, n.place >> 17, r.first order by n.place
                       range between unbounded preceding and 1 preceding)) / 16 end as slot
              from unnest(p_lexemes, p_places, p_parts, p_counts) as n (lexeme, place, part, count)
              left join lateral (
                select l.first, cardinality(l.postings) as size,
                       l.first + (l.postings[cardinality(l.postings)] >> 45) as last
                from memory.chunk_postings l
                where l.user_id = p_user_id and l.lexeme = n.lexeme and l.conversation_id = p_conversation_id
                  and l.first between (n.place >> 17) << 17 and n.place
                order by l.first desc limit 1) r on true) s) t
  group by t.lexeme, t.first
  on conflict (user_id, lexeme, conversation_id, first) do update
    set postings = array(select p from unnest(l.postings || excluded.postings) p order by p);
  get diagnostics v_rows = row_count;
  return v_rows;
end
$function$;

-- Deletes the postings of places from one row, and the row if it is empty then. Returns how many were deleted.
create or replace function memory_private.delete_postings(
  p_user_id text, p_lexeme text, p_conversation_id uuid, p_first bigint, p_places bigint[]
) returns bigint
language plpgsql volatile security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
declare
  v_size integer;
  v_left bigint[];
begin
  -- A row comparison can only use the primary key. With two equations a planner without statistics may use another
  -- index.
  select cardinality(l.postings), array(select p from unnest(l.postings) p where p_first + (p >> 45) <> all (p_places))
    into v_size, v_left
    from memory.chunk_postings l
   where l.user_id = p_user_id
     and (l.lexeme, l.conversation_id, l.first) >= (p_lexeme, p_conversation_id, p_first)
     and (l.lexeme, l.conversation_id, l.first) <= (p_lexeme, p_conversation_id, p_first);
  if v_left = '{}' then
    delete from memory.chunk_postings l
     where l.user_id = p_user_id
       and (l.lexeme, l.conversation_id, l.first) >= (p_lexeme, p_conversation_id, p_first)
       and (l.lexeme, l.conversation_id, l.first) <= (p_lexeme, p_conversation_id, p_first);
  elsif cardinality(v_left) < v_size then
    update memory.chunk_postings l set postings = v_left
     where l.user_id = p_user_id
       and (l.lexeme, l.conversation_id, l.first) >= (p_lexeme, p_conversation_id, p_first)
       and (l.lexeme, l.conversation_id, l.first) <= (p_lexeme, p_conversation_id, p_first);
  end if;
  return coalesce(v_size - cardinality(v_left), 0);
end
$function$;

-- Deletes the chunks of places with their postings. Postings have no index by chunk, so the lexemes of the text are
-- looked up. If a dictionary was changed since, the lexemes differ, and all postings are searched.
create or replace function memory_private.delete_chunks(p_user_id text, p_conversation_id uuid, p_places bigint[])
returns bigint
language plpgsql volatile security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
declare
  v_places   bigint[] := array(select distinct p from unnest(p_places) p);
  v_ranges   constant int8multirange := (select range_agg(int8range(p, p, '[]')) from unnest(p_places) p);
  v_language text;
  v_place    bigint;
  v_words    bigint := 0; -- that were not found
  v_gone     bigint := 0;
  v_speakers text[]; -- who said what goes
  v_signals  smallint := 0; -- of what goes
  v_left     smallint;
  v_stretches bigint[];
  v_left_stretches bigint[]; -- of which a chunk stays
  v_chunk    memory.working_memory_chunks;
  v_row      record;
begin
  -- First, because what a transaction deletes is still in the way of its scans.
  v_left_stretches := array(
    select s.stretch
    from (select distinct k.stretch from unnest(v_places) as p (place)
          cross join lateral (
            select k.stretch from memory.working_memory_chunks k
            where k.user_id = p_user_id and k.conversation_id = p_conversation_id and k.place between p.place and p.place
            order by k.place offset 0) k) s
    where exists (
      select from (
        select k.place, k.stretch, k.stale from memory.working_memory_chunks k
        where k.user_id = p_user_id and k.conversation_id = p_conversation_id and k.to_sequence >= s.stretch
        order by k.to_sequence limit 200) k
      where k.stretch = s.stretch and not k.stale and not k.place <@ v_ranges));
  select coalesce(c.language, 'simple') into v_language from memory.conversations c
   where c.user_id = p_user_id and c.id = p_conversation_id;
  for v_row in
    select w.lexeme, r.first, array_agg(k.place) as places
    from unnest(v_places) as p (place)
    cross join lateral (
      select k.place, k.role, k.content, k.speaker, k.said_at from memory.working_memory_chunks k
      where k.user_id = p_user_id and k.conversation_id = p_conversation_id and k.place between p.place and p.place
      order by k.place offset 0) k
    cross join lateral memory_private.lexemes(
      v_language, memory_private.chunk_search_text(p_user_id, k.role, k.content, k.speaker, k.said_at)) w
    cross join lateral (
      select l.first from memory.chunk_postings l
      where l.user_id = p_user_id and l.lexeme = w.lexeme and l.conversation_id = p_conversation_id
        and l.first between (k.place >> 17) << 17 and k.place
      order by l.first desc limit 1) r
    group by w.lexeme, r.first
  loop
    v_words := v_words - memory_private.delete_postings(
      p_user_id, v_row.lexeme, p_conversation_id, v_row.first, v_row.places);
  end loop;
  -- One row at a time, each looked up as in delete_message_range.
  foreach v_place in array v_places loop
    for v_chunk in
      select k.* from memory.working_memory_chunks k
      where k.user_id = p_user_id and k.conversation_id = p_conversation_id and k.place between v_place and v_place
      order by k.place
    loop
      delete from memory.working_memory_chunks k
       where k.user_id = p_user_id and k.conversation_id = p_conversation_id and k.place = v_place
         and k.part = v_chunk.part and k.to_sequence = v_chunk.to_sequence;
      v_words := v_words + v_chunk.terms;
      v_gone := v_gone + (not v_chunk.stale)::integer;
      v_speakers := v_speakers || v_chunk.speaker;
      v_signals := v_signals | v_chunk.signals;
      v_stretches := v_stretches || v_chunk.stretch;
    end loop;
    delete from memory.chunk_embeddings e
     where e.user_id = p_user_id and e.conversation_id = p_conversation_id and e.place = v_place;
  end loop;
  if v_words > 0 then
    for v_row in
      select l.lexeme, l.first from memory.chunk_postings l
      where l.user_id = p_user_id and l.conversation_id = p_conversation_id
        and exists (select from unnest(l.postings) p where l.first + (p >> 45) = any (v_places))
    loop
      perform memory_private.delete_postings(p_user_id, v_row.lexeme, p_conversation_id, v_row.first, v_places);
    end loop;
  end if;
  if v_signals <> 0 then
    v_left := memory_private.signals_left(p_user_id, p_conversation_id);
  end if;
  update memory.conversations c
     set chunk_count = c.chunk_count - v_gone,
         signals = coalesce(v_left, c.signals),
         -- A speaker without chunks is removed.
         speakers = case when c.speakers && v_speakers then array(
           select s from unnest(c.speakers) s
           where s <> all (array_remove(v_speakers, null)) or (
             select k.place from memory.working_memory_chunks k
             where k.user_id = p_user_id and k.conversation_id = p_conversation_id and k.speaker = s
               and left(k.speaker, 100) between left(s, 100) and left(s, 100)
             order by left(k.speaker, 100) limit 1) is not null) else c.speakers end,
         has_stale = c.has_stale and exists (
           select from memory.working_memory_chunks k
           where k.user_id = p_user_id and k.conversation_id = p_conversation_id and k.stale)
   where c.user_id = p_user_id and c.id = p_conversation_id and (v_gone > 0 or c.has_stale);
  perform memory_private.delete_topic_stretches(p_user_id, p_conversation_id, v_stretches, v_left_stretches);
  return v_gone;
end
$function$;

-- Deletes the ratings of the chunks of places. Called before the chunks are deleted.
create or replace function memory_private.delete_ratings(p_user_id text, p_conversation_id uuid, p_places bigint[])
returns void
language plpgsql volatile security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
begin
  delete from memory.chunk_ratings r
   using unnest(p_places) as p (place)
   cross join lateral (
     select k.from_sequence, k.to_sequence from memory.working_memory_chunks k
     where k.user_id = p_user_id and k.conversation_id = p_conversation_id and k.place between p.place and p.place
     order by k.place limit 1) k
   where r.user_id = p_user_id and r.conversation_id = p_conversation_id and r.from_sequence = k.from_sequence
     and r.to_sequence = k.to_sequence;
end
$function$;

-- Deletes chunks that have expired.
create or replace function memory_private.expire_chunks(p_user_id text, p_conversation_id uuid) returns bigint
language plpgsql volatile security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
declare
  v_first timestamptz;
  v_gone  bigint[];
begin
  select k.expires_at into v_first from memory.working_memory_chunks k
   where k.user_id = p_user_id and k.conversation_id = p_conversation_id and k.expires_at is not null
   order by k.expires_at limit 1;
  if v_first is null or v_first > clock_timestamp() then
    return 0;
  end if;
  perform 1 from memory.conversations c where c.user_id = p_user_id and c.id = p_conversation_id for no key update;
  v_gone := array(
    select k.place from memory.working_memory_chunks k
    where k.user_id = p_user_id and k.conversation_id = p_conversation_id and k.expires_at <= clock_timestamp()
    order by k.expires_at limit 5000);
  perform memory_private.delete_ratings(p_user_id, p_conversation_id, v_gone);
  return memory_private.delete_chunks(p_user_id, p_conversation_id, v_gone);
end
$function$;

-- Invalidates chunks of messages that were changed or deleted. A chunk without messages is deleted; the others are
-- emptied and indexed again. Their ratings are deleted, unless the words are the same. The caller holds the
-- conversation's row lock.
create or replace function memory_private.invalidate_chunks(
  p_user_id text, p_conversation_id uuid, p_from bigint, p_to bigint, p_same_words boolean default false
) returns bigint
language plpgsql volatile security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
declare
  v_last    bigint;
  v_gone    bigint[];
  v_stale   bigint[];
  v_place   bigint;
  v_mark    memory.working_memory_chunks;
  v_marks   memory.working_memory_chunks[] := '{}';
  v_dropped bigint := 0;
begin
  if not exists (select from memory.conversations c
                 where c.user_id = p_user_id and c.id = p_conversation_id and c.chunk_count > 0) then
    return 0;
  end if;
  -- Chunks after the first one that ends at or after the range's end do not overlap the range.
  v_last := coalesce((
    select k.to_sequence from memory.working_memory_chunks k
    where k.user_id = p_user_id and k.conversation_id = p_conversation_id and k.to_sequence >= p_to
    order by k.to_sequence limit 1), p_to);
  select array_agg(distinct t.place) filter (where t.left_over is null),
         array_agg(distinct t.place) filter (where t.left_over is not null)
    into v_gone, v_stale
    from (select k.place,
                 (select m.sequence from memory.conversation_messages m
                  where m.user_id = p_user_id and m.conversation_id = p_conversation_id
                    and m.sequence between k.from_sequence and k.to_sequence
                  order by m.sequence limit 1) as left_over
          from memory.working_memory_chunks k
          where k.user_id = p_user_id and k.conversation_id = p_conversation_id
            and k.to_sequence >= p_from and k.to_sequence <= v_last and k.from_sequence <= p_to
          order by k.to_sequence) t;
  if not p_same_words then
    perform memory_private.delete_ratings(p_user_id, p_conversation_id, v_stale || v_gone);
  end if;
  if v_stale is not null then
    -- One empty row stays to mark the place.
    foreach v_place in array v_stale loop
      select k.* into v_mark from memory.working_memory_chunks k
       where k.user_id = p_user_id and k.conversation_id = p_conversation_id and k.place between v_place and v_place
       order by k.place, k.part limit 1;
      v_marks := v_marks || v_mark;
    end loop;
    v_dropped := memory_private.delete_chunks(p_user_id, p_conversation_id, v_stale);
    insert into memory.working_memory_chunks (
      user_id, conversation_id, place, part, id, from_sequence, to_sequence, message_ids, stretch, type, role, said_at,
      content, characters, tokens, lexemes, terms, importance, stale, expires_at)
    select k.user_id, k.conversation_id, k.place, 1, k.id, k.from_sequence, k.to_sequence, '{}', k.stretch, 'dialogue',
           k.role, k.said_at, '', 0, 0, 0, 0, 0, true, k.expires_at
    from unnest(v_marks) k;
    update memory.conversations c
       set has_stale = true
     where c.user_id = p_user_id and c.id = p_conversation_id;
  end if;
  if v_gone is not null then
    v_dropped := v_dropped + memory_private.delete_chunks(p_user_id, p_conversation_id, v_gone);
  end if;
  return v_dropped;
end
$function$;

-- Starts indexing again at a message that was missing or unreadable before, because no chunk marks its place.
create or replace function memory_private.reindex_from(p_user_id text, p_conversation_id uuid, p_sequence bigint)
returns void
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_chunks record;
begin
  select least(p_sequence, min(k.from_sequence)) as first, array_agg(distinct k.place) as places into v_chunks
    from memory.working_memory_chunks k
   where k.user_id = p_user_id and k.conversation_id = p_conversation_id and k.to_sequence >= p_sequence;
  if v_chunks.places is not null then
    perform memory_private.delete_chunks(p_user_id, p_conversation_id, v_chunks.places);
  end if;
  update memory.conversations c
     set indexed_through = v_chunks.first - 1
   where c.user_id = p_user_id and c.id = p_conversation_id and c.indexed_through >= v_chunks.first;
end
$function$;

create function public.memory_pending_chunks(
  p_thread_id  text,
  p_user_id    text    default null,
  p_agent_id   text    default 'default',
  p_model      text    default null, -- of the embedder; null: there is none
  p_messages   integer default 64,   -- the most messages that are returned,
  p_characters bigint  default 48000 -- and about the most characters, but one message at least
) returns json
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
declare
  v_user text := memory_private.resolve_owner(p_user_id);
  v_c    memory.conversations;
  v_last bigint;
  v_rows json;
  v_unit record; -- the newest that is indexed,
  v_newest record; -- and the newest twenty
  v_refused text[] := memory_private.refused_purposes(v_user);
  v_topics text[]; -- that are not to be remembered
  v_bytes  bigint := (memory_private.current_limits()).answer_bytes;
  v_most   integer := greatest(1, least(coalesce(p_messages, 64), 1000));
  v_stale  json;
begin
  select c.* into v_c from memory.conversations c
   where c.user_id = v_user and c.agent_id = p_agent_id and c.thread_id = p_thread_id;
  if not found then
    return null;
  end if;
  -- The conversation is opted out: only its messages stay.
  if v_c.opted_out_at is not null then
    return json_build_object(
      'conversation_id', v_c.id, 'through_sequence', v_c.indexed_through, 'revision', v_c.revision, 'messages', '[]'::json,
      'more', false, 'waiting', false, 'before', null, 'failures', 0, 'unembedded_from', null, 'stale', null,
      'speech', null, 'opted_out', true);
  end if;
  v_topics := memory_private.opted_out_topics(v_user, v_c.id);
  -- Checked before anything is embedded.
  if p_model is not null then
    perform memory_private.check_model(v_user, array[v_c.id], p_model, null);
  end if;
  select json_agg(r order by r.sequence), max(r.sequence) into v_rows, v_last
  from (select t.sequence, t.message_id, t.payload, t.created_at, t.updated_at, t.unreadable, t.author_id,
               v_topics <> '{}' and memory_private.mentions(
                 concat_ws(' ', t.text, t.payload #>> '{data,tool_calls}'), v_topics, v_c.language) as hidden
        from (select m.sequence, m.message_id, m.payload, m.created_at, m.updated_at, m.unreadable, m.text, m.characters,
                     m.author_id, m.bytes, sum(m.characters) over w as characters_through, sum(m.bytes) over w as size
              from memory.conversation_messages m
              where m.user_id = v_user and m.conversation_id = v_c.id and m.sequence > v_c.indexed_through
              window w as (order by m.sequence)
              order by m.sequence limit v_most) t
        where t.characters_through - t.characters < p_characters and t.size - t.bytes < v_bytes) r;
  if v_c.has_stale then
    select json_agg(r order by r.place) into v_stale
    from (select k.place, k.stretch, k.from_sequence, k.to_sequence, (
                   select json_agg(n order by n.sequence)
                   from (select m.sequence, m.message_id, m.payload, m.created_at, m.updated_at, m.unreadable, m.author_id,
                                v_topics <> '{}' and memory_private.mentions(
                                  concat_ws(' ', m.text, m.payload #>> '{data,tool_calls}'), v_topics,
                                  v_c.language) as hidden
                         from (select m.*, sum(m.bytes) over (order by m.sequence) - m.bytes as before
                               from memory.conversation_messages m
                               where m.user_id = v_user and m.conversation_id = v_c.id
                                 and m.sequence between k.from_sequence and k.to_sequence
                               order by m.sequence limit v_most) m
                         where m.before < v_bytes) n) as messages
          from (select s.*, sum(s.bytes) over (order by s.place) - s.bytes as before
                from (select k.place, k.stretch, k.from_sequence, k.to_sequence, coalesce((
                               select sum(m.bytes) from memory.conversation_messages m
                               where m.user_id = v_user and m.conversation_id = v_c.id
                                 and m.sequence between k.from_sequence and k.to_sequence), 0) as bytes
                      from memory.working_memory_chunks k
                      where k.user_id = v_user and k.conversation_id = v_c.id and k.stale
                      order by k.place limit v_most) s) k
          where k.before < v_bytes) r;
  end if;
  select k.* into v_unit from memory.working_memory_chunks k
   where k.user_id = v_user and k.conversation_id = v_c.id and k.part = 1
   order by k.place desc, k.part desc limit 1;
  select json_agg(r.cohesion order by r.place) as cohesion,
         json_agg(json_build_object('place', r.place, 'content', left(r.content, 2000), 'speaker', r.speaker)
                  order by r.place) filter (where r.role = 'user' and r.type = 'question') as asked,
         max(r.place) filter (where r.type = 'action') as action, max(r.place) filter (where r.role = 'user') as spoken
    into v_newest
    from (select k.place, k.cohesion, k.role, k.type, k.speaker, k.content from memory.working_memory_chunks k
          where k.user_id = v_user and k.conversation_id = v_c.id and k.part = 1
          order by k.place desc, k.part desc limit 20) r;
  return json_build_object(
    'conversation_id', v_c.id,
    'through_sequence', v_c.indexed_through,
    'revision', v_c.revision,
    'messages', coalesce(v_rows, '[]'),
    'more', v_c.next_sequence - 1 > coalesce(v_last, v_c.indexed_through),
    'waiting', coalesce(v_c.index_retry_at > clock_timestamp(), false),
    -- The last units before these: they give the next place and stretch, and show how much topics change here.
    'before', case when v_unit.place is not null then json_build_object(
      'place', v_unit.place, 'stretch', v_unit.stretch, 'type', v_unit.type,
      'is_group', v_unit.from_sequence < v_unit.to_sequence,
      'ended_at', coalesce((
        select m.created_at from memory.conversation_messages m
        where m.user_id = v_user and m.conversation_id = v_c.id
          and m.sequence between v_unit.to_sequence and v_unit.to_sequence
        order by m.sequence limit 1), v_unit.said_at),
      'is_question', (
        select k.type = 'question' from memory.working_memory_chunks k
        where k.user_id = v_user and k.conversation_id = v_c.id order by k.place desc, k.part desc limit 1),
      'same', (
        select json_build_array(count(distinct k.place), sum(k.tokens))
        from (select k.place, k.tokens, k.stretch from memory.working_memory_chunks k
              where k.user_id = v_user and k.conversation_id = v_c.id and k.to_sequence >= v_unit.stretch
              order by k.to_sequence) k
        where k.stretch = v_unit.stretch),
      'cohesion', v_newest.cohesion,
      'near', (
        select json_agg(json_build_object('place', r.place, 'content', r.content, 'embedding', (
                 select e.embedding::text from memory.chunk_embeddings e
                 where e.user_id = v_user and e.conversation_id = v_c.id and e.place = r.place and e.part = 1
                   and e.model = p_model)) order by r.place)
        from (select k.place, k.content from memory.working_memory_chunks k
              where k.user_id = v_user and k.conversation_id = v_c.id and k.part = 1
              order by k.place desc, k.part desc limit 2) r)) end,
    'failures', v_c.index_failures,
    'unembedded_from', v_c.unembedded_from,
    'stale', v_stale,
    'speech', case when not v_refused @> '{signals,tone}' then json_build_object(
      'signals', 'signals' <> all (v_refused), 'tone', 'tone' <> all (v_refused), 'asked', coalesce(v_newest.asked, '[]'),
      'tool_failed', case when v_newest.action > v_newest.spoken
                       then memory_private.last_tool_failed(v_user, v_c.id, v_c.indexed_through) else false end) end);
end
$function$;

-- Returns how long chunks are for ranking, and how much of each counts for those at most two places away. A message of
-- many words says less of what stands beside it, word for word: it counts like one of 30 lexemes.
create or replace function memory_private.search_lengths(p_places bigint[], p_parts integer[], p_lexemes bigint[])
returns table (place bigint, part integer, share real, length real)
language sql immutable security invoker set search_path = ''
as $function$
  select c.place, c.part, c.share::real,
         (c.lexemes * (1 - 0.5 * c.share) + sum(c.lexemes * c.share) over next * 0.25
          + sum(c.lexemes * c.share) over near * 0.25)::real
  from (select c.*, least(1, 30::float8 / greatest(sum(c.lexemes) over (partition by c.place), 1)) as share
        from unnest(p_places, p_parts, p_lexemes) as c (place, part, lexemes)) c
  window near as (order by c.place range between 2 preceding and 2 following),
         next as (order by c.place range between 1 preceding and 1 following)
$function$;

-- Returns the same for new chunks, and what they change: the length of those stored at most two places away.
create or replace function memory_private.changed_lengths(
  p_user_id text, p_conversation_id uuid, p_places bigint[], p_parts integer[], p_lexemes bigint[]
) returns table (place bigint, part integer, share real, length real, is_stored boolean)
language sql stable security invoker set search_path = ''
as $function$
  with stored as materialized ( -- with their own neighbors, two places further
    select k.place, k.part, k.lexemes, n.changes
    from (select p.place + d.distance as place, bool_or(abs(d.distance) <= 2) as changes
          from (select distinct p.place from unnest(p_places) as p (place)) p
          cross join generate_series(-4, 4) as d (distance)
          group by p.place + d.distance) n
    cross join lateral (
      select k.place, k.part, k.lexemes from memory.working_memory_chunks k
      where k.user_id = p_user_id and k.conversation_id = p_conversation_id and k.place between n.place and n.place
      order by k.place, k.part offset 0) k),
  given as materialized (
    select array_agg(a.place) as places, array_agg(a.part) as parts, array_agg(a.lexemes) as lexemes
    from (select p.* from unnest(p_places, p_parts, p_lexemes) as p (place, part, lexemes)
          union all select s.place, s.part, s.lexemes from stored s) a)
  select l.*, s.place is not null
  from given g
  cross join lateral memory_private.search_lengths(g.places, g.parts, g.lexemes) l
  left join stored s on s.place = l.place and s.part = l.part
  where s.changes is not false
$function$;

comment on function public.memory_pending_chunks is
  'langchain-supabase-memory: Read the next messages to index, those to index anew, and what they go on from. Commit
  with memory_commit_chunks, which refuses if the conversation has moved on.

p_thread_id: the thread of the conversation.
p_user_id: the owner; null: the subject of the caller''s token.
p_agent_id: the agent of the conversation.
p_model: the name of the embedding model; null: there is none.
p_messages: the most messages, at most 1000.
p_characters: about so many characters of messages, one message at least.
Returns: object or null. Null if there is no such conversation.
- conversation_id: uuid. Pass it to memory_commit_chunks.
- through_sequence: integer. The last sequence that is indexed; -1 if none. Pass it as p_through.
- revision: integer. Counts edits and deletions. Pass it as p_revision.
- messages: object[]. The next messages, in their order.
- messages[].sequence: integer. The number of the message.
- messages[].message_id: text. Its id.
- messages[].payload: object. The whole message.
- messages[].created_at: timestamp. When it was said.
- messages[].updated_at: timestamp or null. When it was last replaced.
- messages[].unreadable: text or null. Why no message could be made of the payload, in a word.
- messages[].author_id: text or null. In a space: who wrote it. Null elsewhere.
- messages[].hidden: boolean. Whether it mentions a topic that is not to be remembered: show it to no embedder.
- more: boolean. Whether more messages follow after these.
- waiting: boolean. Whether the embedder failed, and the next try has to wait.
- before: object or null. What was indexed last; null if nothing was.
- before.place: integer. Its place: the next unit comes after it.
- before.stretch: integer. The first sequence of the stretch of talk that it belongs to.
- before.type: text. Its type.
- before.is_group: boolean. Whether it is a call with its results.
- before.ended_at: timestamp. When it was said.
- before.is_question: boolean. Whether its last part is a question.
- before.same: json[]. How many units and how many tokens its stretch has.
- before.cohesion: (number or null)[]. How near each of the newest units was to the one before it, 0 to 1.
- before.near: object[]. The two newest units, in their order.
- before.near[].place: integer. Its place.
- before.near[].content: text. Its words.
- before.near[].embedding: text or null. Its vector of p_model, as pgvector writes one.
- failures: integer. How often in a row the embedder failed.
- unembedded_from: integer or null. The place from which on chunks may lack a vector; null: none does.
- stale: object[] or null. Places to index anew, because a message was edited or forgotten; null if there are none.
- stale[].place: integer. The place.
- stale[].stretch: integer. The first sequence of its stretch.
- stale[].from_sequence: integer. The first message there.
- stale[].to_sequence: integer. The last message there.
- stale[].messages: object[] as memory_pending_chunks.messages. What is left of the messages.
- speech: object or null. What the user''s next words are compared with; null if signals and tone are refused, or a space owns it.
- speech.signals: boolean. Whether the user lets signals be told.
- speech.tone: boolean. Whether the user lets the tone be rated.
- speech.tool_failed: boolean. Whether the last tool of the newest turn that is indexed failed.
- speech.asked: object[]. The user''s questions among the newest twenty units, in their order.
- speech.asked[].place: integer. The place of the unit.
- speech.asked[].content: text. The question, at most 2000 characters.
- speech.asked[].speaker: text or null. The name of who asked.
- opted_out: boolean. Only if nothing of it is to be remembered, and then true: there is nothing to index.
Errors:
- PT400: no p_user_id is given, and the caller''s token names nobody.
- PT409: the stored vectors are of another model.';

-- Returns the language of a conversation's lexemes. It is settled once there is enough text; then the chunks before
-- are indexed again. The caller holds the conversation's row lock.
create or replace function memory_private.settle_language(
  p_conversation memory.conversations,
  p_chunks       json, -- that come now
  p_language     text  -- known; null: found out
) returns text
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_user     constant text := p_conversation.user_id;
  v_id       constant uuid := p_conversation.id;
  v_language text;
  v_known    text;
  v_words    record;
begin
  if p_language is not null and not exists (
    select from pg_catalog.pg_ts_config t
    where t.cfgnamespace = 'pg_catalog'::regnamespace and t.cfgname = p_language)
  then
    raise exception 'there is no text search configuration of this name'
      using errcode = 'PT400', hint = 'pass one that select cfgname from pg_ts_config lists, such as english';
  end if;
  if p_conversation.language = coalesce(p_language, p_conversation.language) then
    return p_conversation.language;
  end if;
  v_language := p_language;
  if v_language is null then
    select string_agg(t.content, ' ') into v_known
    from (select k.content from memory.working_memory_chunks k
          where k.user_id = v_user and k.conversation_id = v_id
          order by k.place, k.part limit 40) t;
    v_language := coalesce(
      memory_private.detect_language(left(
        concat_ws(' ', v_known, (select string_agg(e ->> 'content', ' ') from json_array_elements(p_chunks) e)),
        8000)),
      case when p_conversation.chunk_count > 40 then 'simple' end);
  end if;
  if v_language is not null then
    delete from memory.chunk_postings l where l.user_id = v_user and l.conversation_id = v_id;
    with words as materialized (
      select k.place, k.part, w.lexeme, least(w.count, 32767) as count
      from memory.working_memory_chunks k,
           memory_private.lexemes(
             v_language, memory_private.chunk_search_text(v_user, k.role, k.content, k.speaker, k.said_at)) w
      where k.user_id = v_user and k.conversation_id = v_id and not k.stale),
    numbers as materialized (
      select w.place, w.part, sum(w.count)::bigint as lexemes, count(*) as terms from words w group by w.place, w.part),
    counted as (
      update memory.working_memory_chunks k
         set lexemes = n.lexemes, terms = n.terms, neighbor_share = l.share, search_length = l.length
        from numbers n
        join (select l.*
              from (select array_agg(n.place) as places, array_agg(n.part) as parts, array_agg(n.lexemes) as lexemes
                    from numbers n) a
              cross join lateral memory_private.search_lengths(a.places, a.parts, a.lexemes) l) l
          on l.place = n.place and l.part = n.part
       where k.user_id = v_user and k.conversation_id = v_id and k.place = n.place and k.part = n.part)
    select array_agg(w.lexeme) as lexemes, array_agg(w.place) as places, array_agg(w.part) as parts,
           array_agg(w.count) as counts
      into v_words from words w;
    perform memory_private.insert_postings(
      v_user, v_id, v_words.lexemes, v_words.places, v_words.parts, v_words.counts);
    update memory.conversations c
       set language = v_language
     where c.user_id = v_user and c.id = v_id;
  end if;
  return coalesce(v_language, p_conversation.language, 'simple');
end
$function$;

-- Returns chunks without the places that have one that mentions an opted-out topic or is hidden.
create or replace function memory_private.without_topics(
  p_chunks json, p_topics text[], p_language text, out chunks json, out is_withheld boolean
)
language plpgsql stable security invoker set search_path = ''
as $function$
begin
  select coalesce(json_agg(e.value order by e.position) filter (where not g.hidden), '[]'),
         coalesce(bool_or(g.hidden), false)
    into chunks, is_withheld
  from json_array_elements(p_chunks) with ordinality as e (value, position)
  join (select (i.value ->> 'place')::bigint as place,
               bool_or(coalesce((i.value ->> 'hidden')::boolean, false))
               or memory_private.mentions(
                 string_agg(i.value ->> 'content', ' ' order by (i.value ->> 'part')::integer), p_topics, p_language) as hidden
        from json_array_elements(p_chunks) as i (value) group by 1) g on g.place = (e.value ->> 'place')::bigint;
end
$function$;

create function public.memory_commit_chunks(
  p_thread_id       text,
  p_conversation_id uuid,   -- what they were computed from: a conversation, which may have been forgotten and begun anew,
  p_through         bigint, -- the position,
  p_revision        bigint, -- and the revision
  p_to              bigint,
  p_chunks          json,
  p_stale           json    default '[]', -- places whose chunks these replace
  p_model           text    default null,
  p_max_age         float8  default null, -- seconds
  p_language        text    default null, -- known; null: found out
  p_user_id         text    default null,
  p_agent_id        text    default 'default'
) returns jsonb
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_user     text := memory_private.resolve_writer(p_user_id);
  v_c        memory.conversations;
  v_stale    bigint[] := array(select json_array_elements_text(p_stale)::bigint);
  v_expires  timestamptz := clock_timestamp() + case when p_max_age <= 1e10 then p_max_age end * interval '1 second';
  v_language text;
  v_made     record;
  v_beside   record; -- a chunk whose length these change
  v_topics   text[];
  v_withheld boolean := false;
  v_refused  text[]; -- what may not be made of the user's words
begin
  perform memory_private.check_limits(p_chunks), memory_private.check_limits(p_stale),
          memory_private.lock_opt_outs(v_user);
  select c.* into v_c from memory.conversations c
   where c.user_id = v_user and c.agent_id = p_agent_id and c.thread_id = p_thread_id and c.id = p_conversation_id
     for no key update;
  if not found or v_c.opted_out_at is not null then
    return jsonb_build_object('committed', false, 'through_sequence', -1, 'chunks', 0);
  end if;
  -- A retry of a commit whose answer was lost.
  if v_c.indexed_through = p_to and p_to > p_through and v_c.revision = p_revision then
    return jsonb_build_object('committed', true, 'through_sequence', p_to, 'chunks', json_array_length(p_chunks));
  end if;
  -- Compare and swap: no other commit came first, and no message has changed since.
  if v_c.indexed_through <> p_through or v_c.revision <> p_revision then
    return jsonb_build_object('committed', false, 'through_sequence', v_c.indexed_through, 'chunks', 0);
  end if;
  -- No message has expired since it was read: that does not change the revision, and its chunk must not come back.
  if exists (
    select from json_to_recordset(p_chunks) as i (from_sequence bigint, to_sequence bigint, message_ids json)
    where i.from_sequence <= v_c.expired_through
      and json_array_length(i.message_ids) > (
        select count(*) from memory.conversation_messages m
        where m.user_id = v_user and m.conversation_id = v_c.id
          and m.sequence between i.from_sequence and i.to_sequence
          and m.message_id in (select json_array_elements_text(i.message_ids))))
  then
    return jsonb_build_object('committed', false, 'through_sequence', v_c.indexed_through, 'chunks', 0);
  end if;
  v_user := set_config('memory.read_owner', v_user, true); -- see memory_private.readable_owners
  -- A place with a chunk that mentions an opted-out topic is left out.
  v_topics := memory_private.opted_out_topics(v_user, v_c.id);
  if v_topics <> '{}' then
    select w.chunks, w.is_withheld into p_chunks, v_withheld
      from memory_private.without_topics(p_chunks, v_topics, v_c.language) w;
  end if;
  if p_model is not null and json_array_length(p_chunks) > 0 then
    perform memory_private.check_model(v_user, array[v_c.id], p_model, json_array_length(p_chunks #> '{0,embedding}'));
  end if;
  v_refused := memory_private.refused_purposes(v_user);
  v_language := memory_private.settle_language(v_c, p_chunks, p_language);
  if v_stale <> '{}' then
    perform memory_private.delete_chunks(v_user, v_c.id, v_stale);
  end if;
  -- Citus: stored_chunks
  with given as materialized (
    select i.*
    from json_to_recordset(p_chunks) as i (
      place bigint, part integer, id uuid, from_sequence bigint, to_sequence bigint, message_ids text[],
      stretch bigint, type text, role text, speaker text, said_at timestamptz, content text, tokens integer, importance real, cohesion real, has_time boolean, has_number boolean,
      told int4range[], signals smallint, quotes int4range[], tone smallint, embedding json)),
  words as materialized (
    select g.place, g.part, w.lexeme, least(w.count, 32767) as count
    from given g, memory_private.lexemes(
      v_language, memory_private.chunk_search_text(v_user, g.role, g.content, g.speaker, g.said_at)) w),
  numbers as materialized (
    select g.place, g.part, coalesce(sum(w.count), 0)::bigint as lexemes, count(w.count) as terms
    from given g left join words w on w.place = g.place and w.part = g.part group by g.place, g.part),
  lengths as materialized (
    select l.*
    from (select array_agg(n.place) as places, array_agg(n.part) as parts, array_agg(n.lexemes) as lexemes
          from numbers n) a
    cross join lateral memory_private.changed_lengths(v_user, v_c.id, a.places, a.parts, a.lexemes) l),
  made as (
    insert into memory.working_memory_chunks (
      user_id, conversation_id, place, part, id, from_sequence, to_sequence, message_ids, stretch, type, role, speaker,
      said_at, content, characters, tokens, lexemes, terms, neighbor_share, search_length, importance, cohesion,
      has_time, has_number, told, signals, quotes, tone, expires_at)
    select v_user, v_c.id, g.place, g.part, g.id, g.from_sequence, g.to_sequence, g.message_ids, g.stretch, g.type,
           g.role, g.speaker, g.said_at, g.content, length(g.content), g.tokens, n.lexemes, n.terms, l.share, l.length,
           coalesce(r.importance, g.importance), g.cohesion, g.has_time, g.has_number, coalesce(g.told, '{}'),
           case when 'signals' = any (v_refused) then 0 else coalesce(g.signals, 0) end,
           case when 'signals' <> all (v_refused) then g.quotes end,
           case when 'tone' <> all (v_refused) then g.tone end, v_expires
    from given g
    join numbers n on n.place = g.place and n.part = g.part
    join lengths l on l.place = g.place and l.part = g.part
    -- A person's rating of a place overrides the computed importance, however often it is indexed.
    left join memory.chunk_ratings r on r.user_id = v_user and r.conversation_id = v_c.id
     and r.from_sequence = g.from_sequence and r.to_sequence = g.to_sequence and r.part = g.part
    returning stretch, speaker, signals),
  embedded as (
    insert into memory.chunk_embeddings (user_id, conversation_id, place, part, model, dimensions, embedding)
    select v_user, v_c.id, g.place, g.part, p_model, json_array_length(g.embedding),
           g.embedding::text::{{vector_schema}}.halfvec
    from given g where g.embedding is not null)
  select count(*) as chunks, array_agg(distinct made.stretch) as stretches, min(made.stretch) as first,
         coalesce(bit_or(made.signals), 0)::smallint as signals,
         array_agg(distinct made.speaker) filter (where made.speaker is not null) as speakers,
         (select min(g.place) from given g where g.embedding is null) as unembedded,
         (select array_agg(w.lexeme) from words w) as lexemes, (select array_agg(w.place) from words w) as places,
         (select array_agg(w.part) from words w) as parts, (select array_agg(w.count) from words w) as counts,
         (select json_agg(l) from lengths l where l.is_stored) as beside
    into v_made from made;
  -- Citus: end
  for v_beside in select l.* from json_to_recordset(v_made.beside) as l (place bigint, part integer, length real) loop
    update memory.working_memory_chunks k set search_length = v_beside.length
     where k.user_id = v_user and k.conversation_id = v_c.id
       and (k.place, k.part) >= (v_beside.place, v_beside.part) and (k.place, k.part) <= (v_beside.place, v_beside.part);
  end loop;
  perform memory_private.insert_postings(v_user, v_c.id, v_made.lexemes, v_made.places, v_made.parts, v_made.counts);
  if 'topics' <> all (v_refused) then
    insert into memory.indexed_stretches (user_id, conversation_id, stretch)
    select v_user, v_c.id, s from unnest(v_made.stretches) s
    on conflict (user_id, conversation_id, stretch) do nothing;
  end if;
  -- Chunks of one stretch expire together.
  update memory.working_memory_chunks k
     set expires_at = v_expires
   where k.user_id = v_user and k.conversation_id = v_c.id and k.expires_at is distinct from v_expires
     and k.to_sequence >= v_made.first and k.stretch = any (v_made.stretches);
  update memory.conversations c
     set indexed_through = greatest(p_to, c.indexed_through),
         chunk_count = c.chunk_count + v_made.chunks,
         signals = c.signals | v_made.signals,
         withheld = c.withheld or v_withheld,
         has_stale = c.has_stale and exists (
           select from memory.working_memory_chunks k
           where k.user_id = v_user and k.conversation_id = v_c.id and k.stale),
         speakers = case when v_made.speakers <@ c.speakers or v_made.speakers is null then c.speakers else array(
           select s from (select unnest(c.speakers) union select unnest(v_made.speakers)) as t (s) order by s limit 50) end,
         unembedded_from = least(c.unembedded_from, v_made.unembedded),
         index_failures = case when p_model is null then c.index_failures else 0 end,
         index_retry_at = case when p_model is null then c.index_retry_at end,
         index_error = case when p_model is null then c.index_error end
   where c.user_id = v_user and c.id = v_c.id;
  v_user := set_config('memory.read_owner', '', true);
  return jsonb_build_object('committed', true, 'through_sequence', p_to, 'chunks', v_made.chunks);
end
$function$;
comment on function public.memory_commit_chunks is
  'langchain-supabase-memory: Store chunks, if the conversation is still where memory_pending_chunks read it. The same
  commit once more is no error. A place that mentions a topic which is not to be remembered is left out.

p_thread_id: the thread of the conversation.
p_conversation_id: from memory_pending_chunks: the thread may have been forgotten and begun anew.
p_through: through_sequence from memory_pending_chunks.
p_revision: revision from memory_pending_chunks.
p_to: the last message that is indexed now.
p_chunks: the chunks, a list of objects.
- place: integer. Counts the units of the conversation; where a long pause lies between two, three on.
- part: integer. From 1; more than one where a long message is split.
- id: uuid. Its id.
- from_sequence: integer. The first message that it has words of.
- to_sequence: integer. The last one.
- message_ids: text[]. The ids of these messages.
- stretch: integer. The first sequence of the stretch of talk that it belongs to.
- type: text. dialogue, action, fact, question or answer.
- role: text. user, assistant, system or tool.
- speaker: text or null. The name of who speaks; in a space, of a user''s words, author_id from memory_pending_chunks.
- said_at: timestamp. When it was said.
- content: text. Its words, at most 131072 bytes.
- tokens: integer. About how many tokens it has.
- importance: number. How much it matters, 0 to 1.
- cohesion: number or null. How near it is to what was said just before it.
- has_time: boolean. Whether it names a time.
- has_number: boolean. Whether it names a number.
- told: text[] or null. The days that it tells of, as ranges by how far they are from the day on which it was said:
  [-1,0) is yesterday. At most 8.
- signals: integer or null. What a user''s words tell, as bits (see memory_signals); of a user alone.
- quotes: text[] or null. Where in the content the words are that tell them, as ranges from 0, one for each bit.
- tone: integer or null. The tone of a user''s words, -100 to 100.
- embedding: number[] or null. Its vector, of length one; null: words find it.
- hidden: boolean or null. Whether it is to be left out because of a topic.
p_stale: places whose chunks these replace, a list of integers.
p_model: the name of the embedding model; null: there is none.
p_max_age: how long the chunks are found, in seconds; null: as long as their messages.
p_language: a text search configuration, such as english; null: it is found out.
p_user_id: the owner; null: the subject of the caller''s token.
p_agent_id: the agent of the conversation.
Returns: object.
- committed: boolean. Whether they were stored. If not, read again.
- through_sequence: integer. The last sequence that is indexed now; -1 if there is no such conversation.
- chunks: integer. How many were stored.
Errors:
- PT400: there is no text search configuration of this name; or no p_user_id is given, and the caller''s token names
  nobody.
- PT409: the stored vectors are of another model, or of another width.
- PT413: an argument is larger than call_bytes, or a list in it longer than call_items (see memory_limits).
- 23514: a value of a chunk is refused; the name of the constraint says which.';

-- Refuses vectors of another model or another width than the stored ones: they cannot be compared.
create or replace function memory_private.check_model(
  p_user_id text, p_conversations uuid[], p_model text, p_dimensions integer
) returns void
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
declare
  v_found record;
begin
  select e.dimensions into v_found from unnest(p_conversations) as s (id)
   cross join lateral (
     select e.dimensions from memory.chunk_embeddings e
     where e.user_id = p_user_id and e.conversation_id = s.id and e.model = p_model
     order by e.place limit 1) e
   limit 1;
  if found then
    if v_found.dimensions <> p_dimensions then
      raise exception 'the stored vectors of this model have % dimensions, not %', v_found.dimensions, p_dimensions
        using errcode = 'PT409', hint = 'name the embedding model otherwise, then call reembed()';
    end if;
    return;
  end if;
  select e.model, e.dimensions into v_found from unnest(p_conversations) as s (id)
   cross join lateral (
     select e.model, e.dimensions from memory.chunk_embeddings e
     where e.user_id = p_user_id and e.conversation_id = s.id
     order by e.place limit 1) e
   limit 1;
  if found then
    raise exception 'the stored vectors are of the embedding model "%" (% dimensions), not of "%"',
      v_found.model, v_found.dimensions, p_model
      using errcode = 'PT409', hint = 'use the embedder they were made with, or call reembed() with this one';
  end if;
end
$function$;

create function public.memory_fail_index(
  p_thread_id text,
  p_error     text, -- a word, never content
  p_user_id   text default null,
  p_agent_id  text default 'default'
) returns jsonb
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_user  text := memory_private.resolve_writer(p_user_id);
  v_c     memory.conversations;
  v_retry timestamptz;
begin
  select c.* into v_c from memory.conversations c
   where c.user_id = v_user and c.agent_id = p_agent_id and c.thread_id = p_thread_id
     for no key update;
  if found then
    v_retry := memory_private.backoff_until(v_c.index_failures);
    update memory.conversations c
       set index_failures = c.index_failures + 1, index_error = left(p_error, 200), index_retry_at = v_retry
     where c.user_id = v_user and c.id = v_c.id;
  end if;
  return jsonb_build_object('retry_at', v_retry);
end
$function$;
comment on function public.memory_fail_index is
  'langchain-supabase-memory: Note that the embedder failed, so that the next try waits: about half a minute, then
  twice as long each time, up to an hour. Words are found all the same.

p_thread_id: the thread of the conversation.
p_error: why, in a word and without content; cut at 200 characters.
p_user_id: the owner; null: the subject of the caller''s token.
p_agent_id: the agent of the conversation.
Returns: object.
- retry_at: timestamp or null. When the next try may come; null if there is no such conversation.
Errors:
- PT400: no p_user_id is given, and the caller''s token names nobody.';

create function public.memory_index_due(
  p_messages   bigint  default 0, -- due when more than so many are not indexed yet
  p_user_id    text    default null, -- null: everybody that the caller may see
  p_limit      integer default 100,
  p_after_user text    default null,
  p_after      uuid    default null,
  p_vectors    boolean default false -- or where chunks lack a vector, and no failure asks for patience
) returns jsonb
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_custom_plan -- as in memory_due
as $function$
begin
  p_user_id := memory_private.resolve_scope(p_user_id);
  return coalesce((
    select jsonb_agg(to_jsonb(r) order by r.user_id, r.id)
    from (
      select c.user_id, c.id, c.agent_id, c.thread_id from memory.conversations c
      where (c.next_sequence - 1 - c.indexed_through > p_messages or c.has_stale
             or p_vectors and c.unembedded_from is not null
                and (c.index_retry_at is null or c.index_retry_at <= clock_timestamp()))
        and c.opted_out_at is null and (p_user_id is null or c.user_id = p_user_id)
        and (p_after is null or (c.user_id, c.id) > (p_after_user, p_after))
        and (p_user_id is null or p_after_user is distinct from p_user_id or c.id > p_after)
      order by c.user_id, c.id
      limit greatest(0, least(p_limit, 1000))) r), '[]');
end
$function$;
comment on function public.memory_index_due is
  'langchain-supabase-memory: List conversations of which something is not indexed yet, by pages.

p_messages: due when more messages than this are not indexed.
p_user_id: only this owner''s; null: everybody''s that the caller may see.
p_limit: the most of one answer, at most 1000.
p_after_user: the user_id at which the last page ended; null: from the beginning.
p_after: the id at which the last page ended; null: from the beginning.
p_vectors: also those of which chunks lack a vector, and the embedder may be asked again.
Returns: object[].
- [].user_id: text. The owner.
- [].id: uuid. The conversation.
- [].agent_id: text. Its agent.
- [].thread_id: text. Its thread.
Errors: none.';

create function public.memory_chunks(
  p_thread_id     text,
  p_user_id       text    default null,
  p_agent_id      text    default 'default',
  p_place         bigint  default -1, -- after this place
  p_part          integer default 0,  -- and part
  p_limit         integer default 1000,
  p_lacking       text    default null -- only those without a vector of this model
) returns json -- {"chunks", "more"}
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
declare
  v_user  text := memory_private.resolve_owner(p_user_id);
  v_id    uuid;
  v_limit integer := greatest(0, least(p_limit, 1000));
  v_bytes bigint := (memory_private.current_limits()).answer_bytes;
begin
  select c.id into v_id from memory.conversations c
   where c.user_id = v_user and c.agent_id = p_agent_id and c.thread_id = p_thread_id;
  -- A page ends at its maximum of rows or bytes.
  return (
    select json_build_object(
             'chunks', coalesce(json_agg(to_json(t.shown) order by t.place, t.part)
                                filter (where t.number <= v_limit and t.before < v_bytes), '[]'),
             'more', coalesce(bool_or(t.number > v_limit or t.before >= v_bytes), false))
    from (
      select k.place, k.part, (
               select r from (
                 select k.place, k.part, k.id, k.conversation_id, k.from_sequence, k.to_sequence, k.message_ids,
                        k.stretch, k.type, k.role, memory_private.chunk_speaker(k) as speaker, k.said_at, k.content,
                        k.importance, k.expires_at,
                        k.signals, k.tone, p_thread_id as thread_id, p_agent_id as agent_id) r) as shown,
             row_number() over w as number,
             sum(octet_length(k.content)) over w - octet_length(k.content) as before
      from memory.working_memory_chunks k
      where k.user_id = v_user and k.conversation_id = v_id and (k.place, k.part) > (p_place, p_part) and not k.stale
        and (k.expires_at is null or k.expires_at > clock_timestamp())
        and (p_lacking is null or not exists (
          select from memory.chunk_embeddings e
          where e.user_id = v_user and e.conversation_id = v_id and e.place = k.place
            and e.part = k.part and e.model = p_lacking))
      window w as (order by k.place, k.part)
      order by k.place, k.part
      limit v_limit + 1) t);
end
$function$;
comment on function public.memory_chunks is
  'langchain-supabase-memory: List the chunks of a conversation that are not expired, in their order, by pages.

p_thread_id: the thread of the conversation.
p_user_id: the owner; null: the subject of the caller''s token.
p_agent_id: the agent of the conversation.
p_place: the place at which the last page ended; -1: from the beginning.
p_part: the part at which the last page ended.
p_limit: the most of one answer, at most 1000.
p_lacking: only those without a vector of this model; null: all.
Returns: object.
- chunks: object[]. The chunks.
- chunks[].place: integer. Its place: counts the units of the conversation.
- chunks[].part: integer. Its part, from 1.
- chunks[].id: uuid. Its id.
- chunks[].conversation_id: uuid. The conversation.
- chunks[].from_sequence: integer. The first message that it has words of.
- chunks[].to_sequence: integer. The last one.
- chunks[].message_ids: text[]. The ids of these messages.
- chunks[].stretch: integer. The first sequence of the stretch of talk that it belongs to.
- chunks[].type: text. dialogue, action, fact, question or answer.
- chunks[].role: text. user, assistant, system or tool.
- chunks[].speaker: text or null. The name of who speaks.
- chunks[].said_at: timestamp. When it was said.
- chunks[].content: text. Its words.
- chunks[].importance: number. How much it matters, 0 to 1.
- chunks[].expires_at: timestamp or null. When it ceases to be found; null: with its messages.
- chunks[].signals: integer. What a user''s words tell in it, as bits (see memory_signals).
- chunks[].tone: integer or null. The tone of a user''s words, -100 to 100; null: not rated.
- chunks[].thread_id: text. The thread.
- chunks[].agent_id: text. Its agent.
- more: boolean. Whether there are more. A page ends at p_limit, or at about answer_bytes.
Errors:
- PT400: no p_user_id is given, and the caller''s token names nobody.';

create function public.memory_reembed(
  p_thread_id  text,
  p_model      text,
  p_embeddings json,                   -- [{"id", "place", "part", "embedding"}]
  p_drop       boolean default false,  -- when no chunk lacks one of this model: remove those of all others
  p_place      bigint  default null,   -- up to this place
  p_part       integer default null,   -- and part every chunk has one now, or is not to get one
  p_user_id    text    default null,
  p_agent_id   text    default 'default'
) returns jsonb
language plpgsql volatile security invoker set search_path = ''
set plan_cache_mode = force_custom_plan
as $function$
declare
  v_user text := memory_private.resolve_writer(p_user_id);
  v_id   uuid;
  v_made bigint;
  v_gone bigint := 0;
  v_all  boolean := false;
begin
  perform memory_private.check_limits(p_embeddings);
  select c.id into v_id from memory.conversations c
   where c.user_id = v_user and c.agent_id = p_agent_id and c.thread_id = p_thread_id
     for no key update;
  if exists (
    select from memory.chunk_embeddings e
    where e.user_id = v_user and e.conversation_id = v_id and e.model = p_model
      and e.dimensions <> json_array_length(p_embeddings #> '{0,embedding}'))
  then
    raise exception 'the stored vectors of this model have another number of dimensions'
      using errcode = 'PT409', hint = 'name the embedding model otherwise, then call reembed()';
  end if;
  -- Only for chunks that have not changed since they were embedded.
  insert into memory.chunk_embeddings (user_id, conversation_id, place, part, model, dimensions, embedding)
  select v_user, v_id, i.place, i.part, p_model, json_array_length(i.embedding),
         i.embedding::text::{{vector_schema}}.halfvec
  from json_to_recordset(p_embeddings) as i (id uuid, place bigint, part integer, embedding json)
  join memory.working_memory_chunks k
    on k.user_id = v_user and k.conversation_id = v_id and k.place = i.place and k.part = i.part and k.id = i.id
   and not k.stale
  on conflict (user_id, conversation_id, place, part, model) do update
    set dimensions = excluded.dimensions, embedding = excluded.embedding;
  get diagnostics v_made = row_count;
  if p_drop then
    v_all := not exists (
      select from memory.working_memory_chunks k
      where k.user_id = v_user and k.conversation_id = v_id and not k.stale
        and (k.expires_at is null or k.expires_at > clock_timestamp())
        and not exists (
          select from memory.chunk_embeddings e
          where e.user_id = v_user and e.conversation_id = v_id and e.place = k.place and e.part = k.part
            and e.model = p_model));
  end if;
  if v_all then
    delete from memory.chunk_embeddings e
     where e.user_id = v_user and e.conversation_id = v_id and e.model <> p_model;
    get diagnostics v_gone = row_count;
  end if;
  if p_place is not null then
    update memory.conversations c
       set unembedded_from = (
             select k.place from memory.working_memory_chunks k
             where k.user_id = v_user and k.conversation_id = v_id and (k.place, k.part) > (p_place, p_part) and not k.stale
               and not exists (
                 select from memory.chunk_embeddings e
                 where e.user_id = v_user and e.conversation_id = v_id and e.place = k.place and e.part = k.part
                   and e.model = p_model)
             order by k.place, k.part limit 1),
           index_failures = 0, index_retry_at = null, index_error = null
     where c.user_id = v_user and c.id = v_id;
  end if;
  return jsonb_build_object('embedded', v_made, 'dropped', v_gone, 'complete', v_all);
end
$function$;
comment on function public.memory_reembed is
  'langchain-supabase-memory: Store vectors of another embedding model beside those that are there. A chunk that has
  changed since it was listed gets none.

p_thread_id: the thread of the conversation.
p_model: the name of the embedding model.
p_embeddings: vectors of what memory_chunks listed with p_lacking, a list of objects.
- id: uuid. As listed.
- place: integer. As listed.
- part: integer. As listed.
- embedding: number[]. The vector, of length one.
p_drop: once no chunk lacks a vector of this model, remove those of all others.
p_place: up to this place, and p_part, every chunk has a vector now or is to get none; null: nothing is noted.
p_part: the part that belongs to p_place.
p_user_id: the owner; null: the subject of the caller''s token.
p_agent_id: the agent of the conversation.
Returns: object.
- embedded: integer. How many vectors were stored.
- dropped: integer. How many of other models were removed.
- complete: boolean. With p_drop: whether no chunk lacks a vector of this model.
Errors:
- PT400: no p_user_id is given, and the caller''s token names nobody.
- PT409: the stored vectors of this model have another number of dimensions.
- PT413: an argument is larger than call_bytes, or a list in it longer than call_items (see memory_limits).';

create function public.memory_rate_chunk(
  p_chunk_id   uuid,
  p_importance float8,
  p_by         text,
  p_thread_id  text default null, -- null: in whichever conversation of the user it is
  p_user_id    text default null,
  p_agent_id   text default 'default'
) returns jsonb
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_user    text := memory_private.resolve_writer(p_user_id);
  v_id      uuid;
  v_chunk   record;
  v_version integer;
begin
  select k.conversation_id into v_id from memory.working_memory_chunks k
    join memory.conversations c on c.user_id = k.user_id and c.id = k.conversation_id
   where k.user_id = v_user and k.id = p_chunk_id
     and (p_thread_id is null or c.thread_id = p_thread_id and c.agent_id = p_agent_id);
  -- Checked again under the lock that commits of chunks take.
  perform 1 from memory.conversations c where c.user_id = v_user and c.id = v_id for no key update;
  select coalesce(r.importance, k.importance) as importance, k.from_sequence, k.to_sequence, k.part into v_chunk
    from memory.working_memory_chunks k
    left join memory.chunk_ratings r
      on r.user_id = k.user_id and r.conversation_id = k.conversation_id and r.from_sequence = k.from_sequence
     and r.to_sequence = k.to_sequence and r.part = k.part
   where k.user_id = v_user and k.conversation_id = v_id and k.id = p_chunk_id
   limit 1;
  if not found then
    raise exception 'there is no such chunk' using errcode = 'PT404', hint = 'recall it, or list the chunks, again';
  end if;
  insert into memory.chunk_ratings as r (
    user_id, conversation_id, from_sequence, to_sequence, part, importance, rated_by)
  values (v_user, v_id, v_chunk.from_sequence, v_chunk.to_sequence, v_chunk.part, p_importance, p_by)
  on conflict (user_id, conversation_id, from_sequence, to_sequence, part) do update
    set importance = excluded.importance, rated_by = excluded.rated_by, rated_at = excluded.rated_at,
        version = r.version + 1
  returning r.version into v_version;
  update memory.working_memory_chunks k set importance = p_importance
   where k.user_id = v_user and k.conversation_id = v_id and k.id = p_chunk_id and not k.stale;
  insert into memory.control_changes (user_id, conversation_id, action, subject, before, changed_by)
  values (v_user, v_id, 'rate', p_chunk_id::text, v_chunk.importance::text, p_by);
  return jsonb_build_object('importance', p_importance::real, 'version', v_version);
end
$function$;
comment on function public.memory_rate_chunk is
  'langchain-supabase-memory: Say how much a chunk matters. It holds when the same place is indexed anew, and is noted
  with who and when.

p_chunk_id: the chunk.
p_importance: how much it matters, 0 to 1.
p_by: who says so.
p_thread_id: the thread of its conversation; null: whichever of the user''s it is.
p_user_id: the owner; null: the subject of the caller''s token.
p_agent_id: the agent of its conversation; without meaning if p_thread_id is null.
Returns: object.
- importance: number. What was stored.
- version: integer. Counts what people said of this chunk.
Errors:
- PT400: no p_user_id is given, and the caller''s token names nobody.
- PT404: there is no such chunk.
- 23514: p_importance is not from 0 to 1, or p_by is empty or too long.';
