-- Topics: which stretch of talk is of which, without a model and never before an answer; finding them anew; what a person
-- makes of them. What a topic's row holds is computed from its newest stretches by memory_private.describe_topic and nowhere
-- else, so that what was forgotten is gone from it at the end of the same transaction.
--
-- Locks are taken in this order: opt-outs, conversations, the profile, stretches. A deletion holds rows of stretches when
-- its trigger asks for the profile, at its end. Who has the profile without their conversations waits for no stretch: it
-- passes over those that are locked, which go or are due again.

drop view if exists memory.topic_days;
-- Stretches and messages by topic and day, in UTC; a topic that is a part of another counts as that one.
create view memory.topic_days with (security_invoker = true) as
select s.user_id, coalesce(t.merged_into, t.id) as topic_id, (s.at at time zone 'UTC')::date as day,
       count(*) as stretches, sum(s.messages) as messages
from memory.topic_stretches s
join memory.topics t on t.user_id = s.user_id and t.id = s.topic_id
where s.at is not null
group by 1, 2, 3;
comment on view memory.topic_days is
  'How many stretches of talk and messages each topic had on each day, in UTC.';

-- Returns words that say nothing of what is talked about, of languages whose dictionary here knows none, and of chats.
create or replace function memory_private.filler_words() returns text[]
language sql immutable security invoker set search_path = ''
as $function$
  select string_to_array(
    -- chats
    'also,anything,back,call,came,can''t,cannot,come,could,done,dont,else,even,ever,every,everything,first,get,gets,getting,'
    'give,goes,going,gone,good,got,great,hello,help,hey,hi,https,http,ill,im,ive,just,keep,know,last,let,lets,like,little,'
    'long,look,lot,made,make,many,may,maybe,might,much,must,need,never,new,next,nice,now,off,okay,old,one,only,people,please,'
    'put,really,right,said,same,say,see,seem,sent,set,should,since,something,soon,still,sure,take,tell,than,thank,thanks,'
    'thats,thing,things,think,thought,time,today,told,tomorrow,took,try,trying,two,use,used,using,want,wants,way,week,well,'
    'went,what,will,without,won,work,would,www,com,yes,yesterday,yet,you,youre,day,days,ask,asked,since,though,quite,'
    'another,around,away,actually,already,always,able,been,best,better,enough,find,found,start,started,show,less,more,'
    'absolutely,amazed,amazing,appreciate,awesome,bet,bit,bunch,bye,check,congrats,congratulations,cool,definitely,enjoy,'
    'enjoyed,enjoying,especially,exactly,excited,exciting,fantastic,feel,feeling,feels,felt,glad,gonna,gotta,grateful,guess,'
    'guys,ago,cheers,haha,happen,happened,happy,heard,hear,honestly,hope,hopefully,idea,important,incredible,inspire,inspired,inspiring,'
    'kinda,lately,later,lol,looking,looks,lots,love,loved,lovely,loving,mean,means,mine,nah,omg,plus,prob,probably,proud,remind,reminds,'
    'seems,share,sharing,someone,somewhere,sorry,sound,sounds,super,talk,talking,totally,true,truly,wait,wanna,whole,wish,'
    'wonderful,wondering,worry,wow,yay,yeah,yep,yup,'
    -- assistants
    'additional,additionally,addresses,appropriate,approach,assist,based,below,certainly,clear,consider,contains,correct,'
    'correctly,current,currently,detailed,easier,easily,effectively,ensure,ensures,ensuring,example,examples,expected,explain,'
    'explanation,feel,following,follows,free,function,further,handle,handles,handling,happens,helpful,helps,however,implement,'
    'implementation,implemented,implementing,improve,improved,improvements,improving,include,included,includes,including,key,'
    'necessary,option,options,overall,potential,proper,properly,provide,provided,provides,providing,question,questions,relevant,'
    'review,several,similar,simple,specific,specifically,step,steps,suggest,suggestion,suggestions,summary,support,understand,'
    'understanding,update,updated,various,works,working,'
    -- Tagalog
    'ako,aking,akin,alin,amin,aming,ang,ano,anong,araw,atin,ating,ayaw,ayon,ayos,ba,bago,bakit,bang,basta,bawat,bukas,dahil,'
    'daw,din,dito,diyan,doon,eh,gabi,ganito,ganoon,ganun,gawin,gusto,habang,hanggang,hindi,huwag,ikaw,ilan,inyo,isa,isang,'
    'ito,itong,iyan,iyo,iyon,iyong,kahit,kailan,kailangan,kanila,kanina,kanino,kanya,kanyang,kapag,kasi,kay,kaya,kayo,kaysa,'
    'kita,ko,kong,kung,lahat,lang,lamang,ma,maging,mag,magandang,may,mayroon,meron,mga,mo,mong,muna,na,nag,naman,namin,nang,'
    'nasa,nating,natin,nga,ngayon,ngunit,ni,nila,nilang,ninyo,nito,niya,niyang,niyo,nya,nyo,oo,opo,pa,paano,pag,pala,palagi,'
    'para,parang,pero,po,pwede,puwede,rin,saan,sabi,salamat,sana,saka,sa,sarili,si,sige,siguro,sila,sino,siya,siyang,sobrang,'
    'talaga,tapos,tayo,tila,tungkol,tulad,ulit,upang,wala,walang,yata,yan,yang,yun,yung,yon,yong,nako,naku,'
    -- Indonesian
    'ada,adalah,akan,aku,anda,apa,apakah,atau,bagaimana,bagi,bahwa,banyak,belum,berapa,bisa,boleh,buat,bukan,cara,dalam,dan,'
    'dapat,dari,dengan,dia,hanya,hari,harus,ingin,ini,itu,jadi,jangan,jika,juga,kalau,kami,kamu,kan,karena,kepada,kita,lagi,'
    'lebih,mana,mau,mereka,nya,oleh,pada,saja,sama,sangat,saya,sebagai,sedang,seperti,sudah,tapi,telah,terima,kasih,tidak,'
    'tolong,untuk,yang', ',')
$function$;

-- Returns the words of a text that may tell what it is about, each with the form it is compared by and how often it
-- occurs. Emoji are words; where no spaces stand between words, pairs of characters are.
create or replace function memory_private.topic_words(p_text text, p_language text)
returns table (term text, word text, count bigint)
language plpgsql stable security invoker set search_path = ''
as $function$
declare
  v_unspaced constant text := '[\u0e01-\u0e4e\u0e81-\u0ece\u1000-\u104f\u1780-\u17d3\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]';
  v_emoji   constant text := '[\u2190-\u2bff\U0001f000-\U0001faff]';
  v_fillers constant text[] := memory_private.filler_words();
  v_stemmer constant regdictionary := memory_private.stemmer(coalesce(p_language, 'simple'));
  -- Of a text in a language that is not known, stop words of all are left out.
  v_stops   constant regdictionary[] := case when coalesce(p_language, 'simple') = 'simple'
    then array(select memory_private.stemmer(l) from unnest('{english,german,spanish,french,italian,portuguese}'::text[]) l)
    else array[v_stemmer, memory_private.stemmer('english')] end;
begin
  return query
  select f.term, (array_agg(f.word order by f.count desc, f.word collate "C"))[1], sum(f.count)::bigint
  from (
    select w.word, w.count,
           case when w.word ~ v_unspaced or w.word ~ v_emoji then w.word
                else coalesce((ts_lexize(v_stemmer, w.word))[1], (ts_lexize(v_stops[cardinality(v_stops)], w.word))[1], w.word)
           end as term
    from (
      select p.word, count(*) as count
      from regexp_split_to_table(
        regexp_replace(memory_private.normalize_letters(p_text, false), '[''’](?:s|t|m|d|re|ve|ll)\M', '', 'g'),
        '[\u0001-\u002f\u003a-\u0040\u005b-\u0060\u007b-\u00bf\u2000-\u206f\u3000-\u3004\u3008-\u3030\ufe00-\ufe4f]+') t (token)
      cross join lateral (
        select t.token as word where t.token !~ v_unspaced and t.token !~ v_emoji
        union all
        select substr(t.token, i, 2) from generate_series(1, length(t.token) - 1) i where t.token ~ v_unspaced
        union all
        select e.parts[1] from regexp_matches(t.token, v_emoji, 'g') e (parts) where t.token !~ v_unspaced) p
      where octet_length(p.word) <= 100
      group by p.word) w
    where (w.word ~ v_unspaced and length(w.word) = 2 or w.word ~ v_emoji
           or length(w.word) >= 3 and w.word !~ '^[0-9]')
      and w.word <> all (v_fillers)
      and not exists (select from unnest(v_stops) s (dictionary) where ts_lexize(s.dictionary, w.word) = '{}')) f
  group by f.term;
end
$function$;

-- Returns what a stretch of talk is compared by: its words, and the mean of its vectors of a model. Of what tools
-- answered nothing counts. Without a message there is nothing left of it. The caller holds the conversation's row lock.
create or replace function memory_private.stretch_features(
  p_user_id text, p_conversation_id uuid, p_stretch bigint, p_model text, p_language text,
  out began_at timestamptz, out messages integer, out words text[], out terms text[],
  out embedding {{vector_schema}}.halfvec
)
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
declare
  v_text   text;
  v_places bigint[];
  v_parts  integer[];
  v_names  text[]; -- of who speaks or is spoken to
begin
  select min(k.said_at), count(distinct k.place), string_agg(left(k.content, 4000), ' ' order by k.to_sequence, k.part),
         array_agg(k.place), array_agg(k.part),
         regexp_split_to_array(memory_private.normalize_letters(string_agg(distinct k.speaker, ' '), false), '\s+')
    into began_at, messages, v_text, v_places, v_parts, v_names
    from (select k.place, k.part, k.stretch, k.stale, k.role, k.speaker, k.said_at, k.to_sequence, k.content, k.expires_at
          from memory.working_memory_chunks k
          where k.user_id = p_user_id and k.conversation_id = p_conversation_id and k.to_sequence >= p_stretch
          order by k.to_sequence limit 200) k
   where k.stretch = p_stretch and not k.stale and k.role in ('user', 'assistant')
     and (k.expires_at is null or k.expires_at > clock_timestamp());
  if p_model is not null then
    select {{vector_schema}}.l2_normalize({{vector_schema}}.avg(e.embedding)) into embedding
      from unnest(v_places, v_parts) as p (place, part)
     cross join lateral (
       select e.embedding from memory.chunk_embeddings e
       where e.user_id = p_user_id and e.conversation_id = p_conversation_id and e.place between p.place and p.place
         and e.part = p.part and e.model = p_model
       order by e.place limit 1) e;
  end if;
  -- "Hey Maya", "Well done, Maya!"
  v_names := v_names || array(
    select memory_private.normalize_letters(coalesce(n.found[1], n.found[2]), false)
    from regexp_matches(
      left(v_text, 20000),
      ', ([[:upper:]][[:lower:]]+)[!?]|\m(?:[Hh]ey|[Hh]i|[Hh]ello|[Tt]hanks),? ([[:upper:]][[:lower:]]+)\M', 'g') n (found));
  -- Words around code tell more than code; where there is nothing else, it is taken.
  foreach v_text in array array[regexp_replace(v_text, '```.*?(?:```|$)', ' ', 'g'), v_text] loop
    select coalesce(array_agg(w.word order by w.count desc, w.term), '{}'),
           coalesce(array_agg(w.term order by w.count desc, w.term), '{}')
      into words, terms
      from (select w.term, w.word, w.count from memory_private.topic_words(left(v_text, 20000), p_language) w
            where w.word <> all (coalesce(v_names, '{}'))
            order by w.count desc, w.term collate "C" limit 24) w;
    exit when terms <> '{}';
  end loop;
end
$function$;

-- Returns the topic that a stretch is nearest to, and how near: by vectors, and where a topic has none of the model by
-- words. Null: none is near enough. p_always: the nearest of all, however far.
create or replace function memory_private.nearest_topic(
  p_user_id text, p_terms text[], p_model text, p_embedding {{vector_schema}}.halfvec, p_threshold real,
  p_except uuid default null, p_always boolean default false, out topic_id uuid, out strength real
)
language plpgsql stable security invoker set search_path = ''
as $function$
begin
  if p_embedding is not null then
    select t.id, t.near into topic_id, strength
      from (select t.id, case when {{vector_schema}}.vector_dims(t.centroid) = {{vector_schema}}.vector_dims(p_embedding)
                              then -(t.centroid operator({{vector_schema}}.<#>) p_embedding) end as near
            from memory.topics t
            where t.user_id = p_user_id and t.model = p_model and t.id is distinct from p_except) t
     where p_always or t.near >= p_threshold
     order by t.near desc nulls last, t.id limit 1;
  end if;
  if topic_id is null and p_terms <> '{}' then
    select t.id, t.near into topic_id, strength
      from (select t.id, sum(w.weight) / sqrt(cardinality(p_terms)) as near
            from memory.topics t cross join lateral unnest(t.terms, t.weights) as w (term, weight)
            where t.user_id = p_user_id and (p_embedding is null or t.model is distinct from p_model)
              and t.id is distinct from p_except and w.term = any (p_terms)
            group by t.id) t
     where p_always or t.near >= 0.2
     order by t.near desc, t.id limit 1;
  end if;
end
$function$;

-- Returns the newest stretches of a topic, 200 at most: what its row is computed from.
create or replace function memory_private.newest_topic_stretches(p_user_id text, p_topic_id uuid)
returns setof memory.topic_stretches
language sql stable security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
  select s.* from memory.topic_stretches s
  where s.user_id = p_user_id and s.topic_id = p_topic_id
  order by s.at desc nulls last limit 200
$function$;

-- Adds to how many stretches topics have; one of null is none. The caller holds the profile's lock.
create or replace function memory_private.count_topic_stretches(
  p_user_id text, p_topics uuid[], p_changes bigint[]
) returns void
language sql volatile security invoker set search_path = ''
as $function$
  update memory.topics t set stretches = greatest(0, t.stretches + n.change)
    from (select u.id, sum(u.change) as change from unnest(p_topics, p_changes) as u (id, change) group by u.id) n
   where t.user_id = p_user_id and t.id = n.id and n.change <> 0
$function$;

-- Computes what a topic's row holds from its newest stretches: when, the middle and the words. Words are ranked by how
-- many of these have them and how few other topics do. One without stretches goes, unless a person named, hid or merged
-- it. The caller holds the profile's lock.
create or replace function memory_private.describe_topic(p_user_id text, p_topic_id uuid) returns void
language plpgsql volatile security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set enable_nestloop = off set jit = off
as $function$
declare
  v_found record;
begin
  with members as materialized (
    select m.at, m.model, m.embedding, m.terms, m.words
    from memory_private.newest_topic_stretches(p_user_id, p_topic_id) m),
  newest as materialized (
    select count(*) as members, max(m.at) as last_at,
           (select o.model from members o where o.model is not null order by o.at desc limit 1) as model
    from members m),
  -- Of most words only how many have them is asked, and of few how they are written.
  counted as materialized (
    select w.term, count(*) as members, avg(w.place::float8) as place
    from members m cross join lateral unnest(m.terms) with ordinality as w (term, place)
    group by w.term),
  known as (
    select w.term, count(*) as topics
    from (select o.term
          from (select t.terms from memory.topics t
                where t.user_id = p_user_id and t.id <> p_topic_id order by t.id offset 0) t
          cross join lateral unnest(t.terms) as o (term) offset 0) w
    join counted c using (term)
    group by w.term),
  ranked as materialized (
    select c.term, c.place, c.members / n.members::float8 as share,
           c.members / n.members::float8 * ln(1 + n.topics / (1 + coalesce(k.topics, 0))::float8) as score
    from counted c left join known k using (term)
    cross join (select o.members, (
                  select count(*) + 1 from (select from memory.topics t where t.user_id = p_user_id order by t.id offset 0) t
                ) as topics
                from newest o) n
    order by score desc, c.place, c.term collate "C" limit 40),
  written as (
    select r.term, mode() within group (order by w.word collate "C") as word
    from (select u.term, u.word from members m cross join lateral unnest(m.terms, m.words) as u (term, word) offset 0) w
    join (select o.term from ranked o where o.share >= 0.3 order by o.score desc, o.place, o.term collate "C" limit 8) r
      using (term)
    group by r.term)
  select n.*, w.*,
         (select {{vector_schema}}.l2_normalize({{vector_schema}}.avg(m.embedding)) from members m where m.model = n.model)
           as centroid
    into v_found
    from newest n
   cross join (
     select coalesce(array_agg(r.term order by r.score desc, r.place, r.term collate "C"), '{}') as terms,
            coalesce(array_agg((r.score / l.length)::real order by r.score desc, r.place, r.term collate "C"), '{}') as weights,
            coalesce(array_agg(o.word order by r.score desc, r.place, r.term collate "C")
                     filter (where o.word is not null), '{}') as words
     from ranked r left join written o using (term)
     cross join (select sqrt(sum(q.score ^ 2)) as length from ranked q) l) w;
  if v_found.members = 0 then
    delete from memory.topics t
     where t.user_id = p_user_id and t.id = p_topic_id and t.name is null and not t.hidden and t.merged_into is null
       and not exists (select from memory.topics o where o.user_id = p_user_id and o.merged_into = p_topic_id);
  end if;
  update memory.topics t
     set stretches = case when v_found.members = 0 then 0 else greatest(t.stretches, 1) end,
         first_at = (select s.at from memory.topic_stretches s
                     where s.user_id = p_user_id and s.topic_id = p_topic_id and s.at is not null
                     order by s.at nulls first limit 1),
         last_at = v_found.last_at, words = v_found.words, terms = v_found.terms, weights = v_found.weights,
         model = case when v_found.centroid is not null then v_found.model end, centroid = v_found.centroid
   where t.user_id = p_user_id and t.id = p_topic_id;
end
$function$;

-- Counts the stretches that a topic lost in this transaction, in a setting of it.
create or replace function memory_private.note_lost_stretch() returns trigger
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_lost constant jsonb :=
    coalesce(nullif(current_setting('langchain_supabase_memory.lost_stretches', true), ''), '{}')::jsonb;
  v_key  constant text := concat_ws(' ', old.topic_id, old.user_id);
begin
  perform set_config('langchain_supabase_memory.lost_stretches', jsonb_set(
    v_lost, array[v_key], to_jsonb(coalesce((v_lost ->> v_key)::bigint, 0) + 1))::text, true);
  return null;
end
$function$;
-- Its name sorts before the next one's: of a row both run in this order.
create trigger topic_stretches_counted after delete on memory.topic_stretches
  for each row when (old.topic_id is not null) execute function memory_private.note_lost_stretch();

-- Describes a topic anew that lost stretches, at the end of the transaction: whatever deleted them, a verb, a rule or
-- the conversation's end, and after all locks of conversations. It runs with the migrator's rights, as the role may have
-- changed by then; it reads and writes nothing but topics of who owned the stretch. A topic of many lost stretches is
-- looked at once.
create or replace function memory_private.describe_lost_topic() returns trigger
language plpgsql volatile security definer set search_path = ''
as $function$
declare
  v_text constant text := coalesce(current_setting('langchain_supabase_memory.lost_stretches', true), '');
  v_key  constant text := concat_ws(' ', old.topic_id, old.user_id);
  v_lost bigint;
begin
  if position(old.topic_id::text in v_text) = 0 then
    return null;
  end if;
  v_lost := v_text::jsonb ->> v_key;
  if v_lost is not null then
    perform memory_private.lock_profile(old.user_id),
            memory_private.count_topic_stretches(old.user_id, array[old.topic_id], array[-v_lost]),
            memory_private.describe_topic(old.user_id, old.topic_id),
            set_config('langchain_supabase_memory.lost_stretches', (v_text::jsonb - v_key)::text, true);
  end if;
  return null;
end
$function$;
create constraint trigger topic_stretches_lost after delete on memory.topic_stretches
  deferrable initially deferred for each row when (old.topic_id is not null)
  execute function memory_private.describe_lost_topic();

-- Makes stretches due that were indexed since, the first ones of a conversation. The caller holds its row lock.
create or replace function memory_private.mark_indexed_stretches(
  p_user_id text, p_conversation_id uuid, p_limit integer
) returns void
language plpgsql volatile security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
begin
  with indexed as (
    delete from memory.indexed_stretches i
     where i.user_id = p_user_id and i.conversation_id = p_conversation_id and i.stretch = any (array(
       select o.stretch from memory.indexed_stretches o
       where o.user_id = p_user_id and o.conversation_id = p_conversation_id order by o.stretch limit p_limit))
    returning i.stretch)
  insert into memory.topic_stretches as s (user_id, conversation_id, stretch)
  select p_user_id, p_conversation_id, i.stretch from indexed i
  on conflict (user_id, conversation_id, stretch) do update set due = true where not s.due;
end
$function$;

-- Marks the newest stretches of a user who allows topics again.
create or replace function memory_private.mark_all_stretches(p_user_id text) returns void
language plpgsql volatile security invoker set search_path = ''
as $function$
begin
  insert into memory.topic_stretches (user_id, conversation_id, stretch)
  select p_user_id, k.conversation_id, k.stretch
  from memory.working_memory_chunks k
  where k.user_id = p_user_id and not k.stale
  group by k.conversation_id, k.stretch
  order by max(k.said_at) desc limit 10000
  on conflict (user_id, conversation_id, stretch) do nothing;
end
$function$;

-- Takes stretches whose chunks went out of their topics. For those of which a chunk is left a topic is found again. The
-- caller holds the conversation's row lock.
create or replace function memory_private.delete_topic_stretches(
  p_user_id text, p_conversation_id uuid, p_stretches bigint[], p_left bigint[]
) returns void
language plpgsql volatile security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
declare
  v_stretch bigint;
  v_again   bigint[] := '{}';
begin
  for v_stretch in select distinct s from unnest(p_stretches) s loop
    delete from memory.topic_stretches s
     where s.user_id = p_user_id and s.conversation_id = p_conversation_id and s.stretch = v_stretch;
    if found then
      v_again := v_again || v_stretch;
    end if;
  end loop;
  insert into memory.topic_stretches (user_id, conversation_id, stretch)
  select p_user_id, p_conversation_id, s.stretch
  from unnest(v_again) as s (stretch) join unnest(p_left) as l (stretch) using (stretch)
  on conflict (user_id, conversation_id, stretch) do nothing;
end
$function$;

-- Deletes all topics of an owner. Returns how many there were. The caller holds the profile's lock.
create or replace function memory_private.delete_topics(p_user_id text) returns bigint
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_gone bigint;
begin
  delete from memory.topics t where t.user_id = p_user_id;
  get diagnostics v_gone = row_count;
  delete from memory.topic_stretches s where s.user_id = p_user_id;
  delete from memory.indexed_stretches i where i.user_id = p_user_id;
  delete from memory.topic_clusterings g where g.user_id = p_user_id;
  return v_gone;
end
$function$;

-- Deletes the names of topics that mention what is not to be remembered. Their words go with the stretches. The caller
-- holds all of the owner's conversations.
create or replace function memory_private.delete_topic_names(p_user_id text, p_topic text) returns void
language plpgsql volatile security invoker set search_path = ''
as $function$
begin
  perform memory_private.lock_profile(p_user_id);
  update memory.topics t set name = null, named_by = null
   where t.user_id = p_user_id and t.name is not null and memory_private.mentions(t.name, array[p_topic]);
end
$function$;

-- Keeps an owner's topics within 200: the smallest that no person named, hid or merged becomes a part of the nearest. The
-- caller holds the profile's lock.
create or replace function memory_private.merge_smallest_topics(p_user_id text) returns void
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_topic  memory.topics;
  v_near   record;
  v_moved  bigint;
  v_grown  uuid[] := '{}';
begin
  while (select count(*) from memory.topics t where t.user_id = p_user_id) > 200 loop
    select t.* into v_topic from memory.topics t
     where t.user_id = p_user_id and t.name is null and not t.hidden and t.merged_into is null
       and not exists (select from memory.topics o where o.user_id = p_user_id and o.merged_into = t.id)
     order by t.stretches, t.last_at, t.id limit 1;
    exit when not found;
    v_near := memory_private.nearest_topic(
      p_user_id, v_topic.terms, v_topic.model, v_topic.centroid, 0, v_topic.id, true);
    update memory.topic_stretches s set topic_id = v_near.topic_id
      from (select o.conversation_id, o.stretch from memory.topic_stretches o
            where o.user_id = p_user_id and o.topic_id = v_topic.id
              for update skip locked) o
     where s.user_id = p_user_id and s.conversation_id = o.conversation_id and s.stretch = o.stretch;
    get diagnostics v_moved = row_count;
    delete from memory.topics t where t.user_id = p_user_id and t.id = v_topic.id;
    perform memory_private.count_topic_stretches(p_user_id, array[v_near.topic_id], array[v_moved]);
    v_grown := array_remove(array_remove(v_grown, v_topic.id), v_near.topic_id) || v_near.topic_id;
  end loop;
  perform memory_private.describe_topic(p_user_id, g) from unnest(v_grown) g where g is not null;
end
$function$;

create function public.memory_assign_topics(
  p_thread_id text,
  p_model     text    default null, -- of the embedder; null: words are compared
  p_limit     integer default 50,
  p_user_id   text    default null,
  p_agent_id  text    default 'default'
) returns jsonb
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_user  text := memory_private.resolve_writer(p_user_id);
  v_c     memory.conversations;
  v_most  constant integer := greatest(1, least(p_limit, 200));
  v_s     memory.topic_stretches;
  v_f     record; -- its features
  v_near  record;
  v_new   bigint := 0;
  v_done  bigint := 0;
  v_left  uuid[] := '{}'; -- topics that lost one
  v_near_enough real;
begin
  select c.* into v_c from memory.conversations c
   where c.user_id = v_user and c.agent_id = p_agent_id and c.thread_id = p_thread_id
     for no key update;
  if not found then
    return '{"assigned": 0, "more": false}';
  end if;
  perform memory_private.lock_profile(v_user);
  if v_c.opted_out_at is not null or memory_private.refuses(v_user, 'topics') then
    delete from memory.topic_stretches s where s.user_id = v_user and s.conversation_id = v_c.id;
    delete from memory.indexed_stretches i where i.user_id = v_user and i.conversation_id = v_c.id;
    return '{"assigned": 0, "more": false}';
  end if;
  perform memory_private.mark_indexed_stretches(v_user, v_c.id, v_most);
  v_near_enough := coalesce((select g.threshold from memory.topic_clusterings g where g.user_id = v_user), 0.45);
  for v_s in
    select s.* from memory.topic_stretches s
    where s.user_id = v_user and s.conversation_id = v_c.id and s.due
    order by s.stretch limit v_most
  loop
    v_done := v_done + 1;
    v_f := memory_private.stretch_features(v_user, v_c.id, v_s.stretch, p_model, v_c.language);
    if v_f.messages = 0 then
      delete from memory.topic_stretches s
       where s.user_id = v_user and s.conversation_id = v_c.id and s.stretch = v_s.stretch;
      continue;
    end if;
    v_near := memory_private.nearest_topic(v_user, v_f.terms, p_model, v_f.embedding, v_near_enough);
    -- It stays where it is while it is compared for the first time by this model.
    if v_near.topic_id is null and v_s.topic_id is not null and v_s.model is distinct from p_model then
      v_near.topic_id := v_s.topic_id;
    end if;
    if v_near.topic_id is null and (v_f.terms <> '{}' or v_f.embedding is not null) then
      insert into memory.topics (user_id) values (v_user) returning id, 1::real into v_near.topic_id, v_near.strength;
    end if;
    v_new := v_new + (v_s.topic_id is null)::integer;
    if v_s.topic_id is distinct from v_near.topic_id then
      perform memory_private.count_topic_stretches(v_user, array[v_s.topic_id, v_near.topic_id], array[-1, 1]);
      v_left := v_left || v_s.topic_id;
    end if;
    update memory.topic_stretches s
       set topic_id = v_near.topic_id, due = false, strength = v_near.strength, at = v_f.began_at,
           messages = v_f.messages, words = v_f.words, terms = v_f.terms,
           model = case when v_f.embedding is not null then p_model end, embedding = v_f.embedding
     where s.user_id = v_user and s.conversation_id = v_c.id and s.stretch = v_s.stretch;
    if v_near.topic_id is not null then
      perform memory_private.describe_topic(v_user, v_near.topic_id); -- the next may be near it
    end if;
  end loop;
  perform memory_private.describe_topic(v_user, t.id) from (select distinct l as id from unnest(v_left) l where l is not null) t;
  if v_done > 0 then
    perform memory_private.merge_smallest_topics(v_user), memory_private.count_new_stretches(v_user, v_new);
  end if;
  return jsonb_build_object('assigned', v_done, 'more', v_done = v_most);
end
$function$;
comment on function public.memory_assign_topics is
  'langchain-supabase-memory: Find a topic for the stretches of a conversation that were indexed since: the nearest, or a
  new one. Call it behind memory_commit_chunks, and not before an answer. A user who refuses the purpose topics has none.

p_thread_id: the thread of the conversation.
p_model: the name of the embedding model; null: there is none, and words are compared.
p_limit: the most stretches of one call, at most 200.
p_user_id: the owner; null: the subject of the caller''s token.
p_agent_id: the agent of the conversation.
Returns: object.
- assigned: integer. How many stretches were looked at.
- more: boolean. Whether there are more.
Errors:
- PT400: no p_user_id is given, and the caller''s token names nobody.';

-- Counts stretches that came, and says when topics are to be found anew: at once when a fifth came since the last time, and
-- twenty at least; else after a week. The caller holds the profile's lock.
create or replace function memory_private.count_new_stretches(p_user_id text, p_count bigint) returns void
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_now constant timestamptz := clock_timestamp();
begin
  insert into memory.topic_clusterings (user_id) values (p_user_id) on conflict (user_id) do nothing;
  update memory.topic_clusterings g
     set added = g.added + p_count,
         due_at = case when g.added + p_count >= greatest(20, g.stretches / 5) then least(g.due_at, v_now)
                       when g.added + p_count = 0 then g.due_at
                       else coalesce(g.due_at, v_now + interval '7 days') end
   where g.user_id = p_user_id;
end
$function$;

create function public.memory_topic_stretches(
  p_model              text        default null,
  p_since              timestamptz default null, -- from the first page
  p_after_conversation uuid        default null,
  p_after_stretch      bigint      default null,
  p_limit              integer     default 200,
  p_user_id            text        default null
) returns jsonb
language plpgsql stable security invoker set search_path = ''
as $function$
declare
  v_user  text := memory_private.resolve_owner(p_user_id);
  v_most  constant integer := 2000;
  v_limit constant integer := greatest(1, least(p_limit, 500));
  v_state record;
  v_alike real;
  v_rows  jsonb;
begin
  select g.version, g.due_at into v_state from memory.topic_clusterings g where g.user_id = v_user;
  if not found then
    return '{"version": null, "since": null, "alike": null, "stretches": [], "more": false}';
  end if;
  if p_since is null then
    select min(s.at) into p_since
      from (select s.at from memory.topic_stretches s
            where s.user_id = v_user and s.at is not null order by s.at desc limit v_most) s;
    if p_model is not null then
      -- How alike any two are: the square of the length of their mean.
      select -(m.mean operator({{vector_schema}}.<#>) m.mean) into v_alike
        from (select {{vector_schema}}.avg(s.embedding) as mean
              from (select s.embedding from memory.topic_stretches s
                    where s.user_id = v_user and s.at >= p_since and s.model = p_model
                    order by s.at desc limit v_most) s) m;
    end if;
  end if;
  with recent as materialized (
    select s.conversation_id, s.stretch, s.topic_id, s.terms, s.embedding from memory.topic_stretches s
    where s.user_id = v_user and s.at >= p_since and s.model is not distinct from p_model
    order by s.at desc, s.conversation_id, s.stretch limit v_most),
  page as (
    select r.* from recent r
    where p_after_conversation is null or (r.conversation_id, r.stretch) > (p_after_conversation, p_after_stretch)
    order by r.conversation_id, r.stretch limit v_limit)
  select jsonb_agg(jsonb_build_array(
           p.conversation_id, p.stretch, p.topic_id,
           case when p_model is null then to_jsonb(p.terms) else '[]' end,
           coalesce(n.near, '[]')) order by p.conversation_id, p.stretch)
    into v_rows
    from page p
   cross join lateral (
     select jsonb_agg(jsonb_build_array(o.conversation_id, o.stretch, round(o.near::numeric, 4))) as near
     from (select o.conversation_id, o.stretch, -(o.embedding operator({{vector_schema}}.<#>) p.embedding) as near
           from recent o
           where p_model is not null and (o.conversation_id, o.stretch) <> (p.conversation_id, p.stretch)
             and {{vector_schema}}.vector_dims(o.embedding) = {{vector_schema}}.vector_dims(p.embedding)
           order by o.embedding operator({{vector_schema}}.<#>) p.embedding, o.conversation_id, o.stretch limit 12) o) n;
  return jsonb_build_object(
    'version', v_state.version, 'since', p_since, 'alike', v_alike, 'stretches', coalesce(v_rows, '[]'),
    'more', coalesce(jsonb_array_length(v_rows), 0) = v_limit);
end
$function$;
comment on function public.memory_topic_stretches is
  'langchain-supabase-memory: Read the newest stretches of an owner, at most 2,000, each with those it is most like, to
  find the topics anew. Commit with memory_commit_topics. Nothing of what was said is in it but words, and these only
  without an embedder.

p_model: the name of the embedding model; null: there is none.
p_since: since of the first page; null: the first page.
p_after_conversation: conversation of the last row of the page before; null: from the beginning.
p_after_stretch: its stretch.
p_limit: the most of one answer, at most 500.
p_user_id: the owner; null: the subject of the caller''s token.
Returns: object.
- version: integer or null. Pass it to memory_commit_topics; null: the owner has no topics.
- since: timestamp or null. Pass it for the next page.
- alike: number or null. On the first page with p_model: how alike any two of them are, -1 to 1.
- stretches: json[]. Each a list: conversation, stretch, its topic or null, its words (without p_model), and up to 12 that
  it is most like, the nearest first, each as conversation, stretch and cosine.
- more: boolean. Whether there may be more.
Errors:
- PT400: no p_user_id is given, and the caller''s token names nobody.';

create function public.memory_commit_topics(
  p_version  bigint,
  p_clusters json,
  p_model    text  default null,
  p_since    timestamptz default null,
  p_threshold float8 default null,
  p_user_id  text  default null
) returns jsonb
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_user text := memory_private.resolve_writer(p_user_id);
  v_now  timestamptz;
  v_ids  uuid[]; -- of each cluster
  v_members record;
begin
  perform memory_private.check_limits(p_clusters);
  if json_array_length(p_clusters) > 200 then
    raise exception 'an owner has at most 200 topics' using errcode = 'PT413', hint = 'pass the largest';
  end if;
  perform memory_private.lock_profile(v_user);
  v_now := clock_timestamp();
  perform from memory.topic_clusterings g where g.user_id = v_user and g.version = p_version;
  if not found or memory_private.refuses(v_user, 'topics') then
    return '{"committed": false, "topics": 0}';
  end if;
  -- A topic that has gone since is a new one.
  select array_agg(coalesce(t.id, gen_random_uuid()) order by c.place) into v_ids
    from json_array_elements(p_clusters) with ordinality as c (value, place)
    left join memory.topics t on t.user_id = v_user and t.id = (c.value ->> 'topic_id')::uuid;
  insert into memory.topics (user_id, id) select v_user, i from unnest(v_ids) i on conflict (user_id, id) do nothing;
  select array_agg(v_ids[c.place]) as topics, array_agg((m.value ->> 0)::uuid) as conversations,
         array_agg((m.value ->> 1)::bigint) as stretches
    into v_members
    from json_array_elements(p_clusters) with ordinality as c (value, place)
   cross join lateral json_array_elements(c.value -> 'members') as m (value);
  perform memory_private.describe_topics(v_user, memory_private.move_stretches(
    v_user, v_members.topics, v_members.conversations, v_members.stretches));
  perform memory_private.merge_smallest_topics(v_user);
  -- What was compared by another model is looked at again.
  update memory.topic_stretches s set due = true
    from (select o.conversation_id, o.stretch from memory.topic_stretches o
          where o.user_id = v_user and p_model is not null and o.at >= p_since and o.model is distinct from p_model
            and not o.due
            for update skip locked) o
   where s.user_id = v_user and s.conversation_id = o.conversation_id and s.stretch = o.stretch;
  update memory.topic_clusterings g
     set version = g.version + 1, clustered_at = v_now, added = 0, due_at = null,
         stretches = (select coalesce(sum(t.stretches), 0) from memory.topics t where t.user_id = v_user),
         threshold = case when p_threshold between 0 and 1 then p_threshold else g.threshold end
   where g.user_id = v_user;
  return jsonb_build_object(
    'committed', true, 'topics', (select count(*) from memory.topics t where t.user_id = v_user));
exception when invalid_text_representation or numeric_value_out_of_range or invalid_parameter_value then
  raise exception 'p_clusters cannot be read'
    using errcode = 'PT400', hint = 'pass a list of objects with topic_id and members, each a list of conversation and stretch';
end
$function$;
comment on function public.memory_commit_topics is
  'langchain-supabase-memory: Store topics that were found anew, unless that was done since. A topic keeps its id, and with
  it its name and what a person made of it; the words of its label and its middle are computed here.

p_version: version from memory_topic_stretches.
p_clusters: the topics, at most 200 objects.
- topic_id: uuid or null. The topic that it goes on from; null: a new one.
- members: json[]. Its stretches, each a list of conversation and stretch.
p_model: the name of the embedding model; null: there is none.
p_since: since from memory_topic_stretches. Stretches after it that were compared by another model are due again; null:
  none is.
p_threshold: how near a stretch has to be to the middle of a topic from now on, 0 to 1; null: as before.
p_user_id: the owner; null: the subject of the caller''s token.
Returns: object.
- committed: boolean. Whether they were stored. If not, somebody else was faster, or the owner has gone.
- topics: integer. How many topics there are.
Errors:
- PT400: p_clusters is no such list; or no p_user_id is given, and the caller''s token names nobody.
- PT413: there are more than 200, or p_clusters is larger than call_bytes.';

-- Moves stretches to their topics. Others of a topic that has none of these follow to where most of its own went: the
-- smallest such topics, with 10,000 stretches at most, so that the work is bounded; a larger one stays. Returns the topics
-- that have or had one of these. The caller holds the profile's lock.
create or replace function memory_private.move_stretches(
  p_user_id text, p_topics uuid[], p_conversations uuid[], p_stretches bigint[]
) returns uuid[]
language plpgsql volatile security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_hashjoin = off set enable_mergejoin = off set jit = off
as $function$
declare
  v_here record;
  v_gone record; -- topics that are no more, each with where its stretches go
  v_more record;
  v_done record;
begin
  select array_agg(s.topic_id) as was, array_agg(m.topic_id) as topics, array_agg(m.conversation_id) as conversations,
         array_agg(m.stretch) as stretches
    into v_here
    from unnest(p_topics, p_conversations, p_stretches) as m (topic_id, conversation_id, stretch)
   cross join lateral (
     select s.topic_id from memory.topic_stretches s
     where s.user_id = p_user_id and s.conversation_id = m.conversation_id and s.stretch = m.stretch offset 0) s;
  select array_agg(g.was) as was, array_agg(g.topic_id) as topics into v_gone
    from (select f.was, f.topic_id, sum(t.stretches) over (order by t.stretches, t.id) as total
          from (select distinct on (h.was) h.was, h.topic_id
                from unnest(v_here.was, v_here.topics) as h (was, topic_id)
                where h.was is not null and h.was <> all (p_topics)
                group by h.was, h.topic_id
                order by h.was, count(*) desc, h.topic_id) f
          cross join lateral (
            select t.id, t.stretches from memory.topics t where t.user_id = p_user_id and t.id = f.was offset 0) t) g
   where g.total <= 10000;
  select array_agg(g.topic_id) as topics, array_agg(s.conversation_id) as conversations, array_agg(s.stretch) as stretches
    into v_more
    from unnest(v_gone.was, v_gone.topics) as g (was, topic_id)
   cross join lateral (
     select s.conversation_id, s.stretch from memory.topic_stretches s
     where s.user_id = p_user_id and s.topic_id = g.was limit 10000) s;
  with targets as materialized (
    select distinct on (n.conversation_id, n.stretch) n.topic_id, n.conversation_id, n.stretch
    from (select u.*, 1 as place from unnest(v_here.topics, v_here.conversations, v_here.stretches)
                                        as u (topic_id, conversation_id, stretch)
          union all
          select u.*, 2 from unnest(v_more.topics, v_more.conversations, v_more.stretches) as u) n
    order by n.conversation_id, n.stretch, n.place),
  held as materialized (
    select s.conversation_id, s.stretch, s.topic_id as was, n.topic_id
    from targets n
    join memory.topic_stretches s
      on s.user_id = p_user_id and s.conversation_id = n.conversation_id and s.stretch = n.stretch
    where s.topic_id is distinct from n.topic_id
      for update of s skip locked),
  moved as (
    update memory.topic_stretches s set topic_id = h.topic_id from held h
     where s.user_id = p_user_id and s.conversation_id = h.conversation_id and s.stretch = h.stretch
    returning h.was, h.topic_id)
  select array_agg(c.id) as topics, array_agg(c.change) as changes into v_done
    from (select m.was as id, -1::bigint as change from moved m union all select m.topic_id, 1 from moved m) c;
  perform memory_private.count_topic_stretches(p_user_id, v_done.topics, v_done.changes);
  return array(select distinct t from unnest(v_here.was || v_here.topics || v_done.topics) t where t is not null);
end
$function$;

-- Describes topics of an owner, and how near each of their newest stretches is. The caller holds the profile's lock.
create or replace function memory_private.describe_topics(p_user_id text, p_topics uuid[]) returns void
language plpgsql volatile security invoker set search_path = ''
as $function$
begin
  -- Which words are in which topic, before each is told from the others by them.
  update memory.topics t set terms = n.terms, weights = array_fill(0::real, array[cardinality(n.terms)])
    from (select c.topic_id, (array_agg(c.term order by c.count desc, c.term collate "C"))[:40] as terms
          from (select s.topic_id, w.term, count(*) as count
                from unnest(p_topics) as i (id)
                cross join lateral memory_private.newest_topic_stretches(p_user_id, i.id) s
                cross join lateral unnest(s.terms) as w (term)
                group by s.topic_id, w.term) c
          group by c.topic_id) n
   where t.user_id = p_user_id and t.id = n.topic_id;
  perform memory_private.describe_topic(p_user_id, t.id)
    from (select t.id from memory.topics t where t.user_id = p_user_id and t.id = any (p_topics) order by t.id offset 0) t;
  perform memory_private.rate_stretches(p_user_id, p_topics);
end
$function$;

-- Computes how near the newest stretches of topics are to the middle. The caller holds the profile's lock.
create or replace function memory_private.rate_stretches(p_user_id text, p_topics uuid[]) returns void
language plpgsql volatile security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_hashjoin = off set enable_mergejoin = off set jit = off
as $function$
begin
  with rated as materialized (
    select s.conversation_id, s.stretch, n.near
    from unnest(p_topics) as i (id)
    join memory.topics t on t.user_id = p_user_id and t.id = i.id
    cross join lateral memory_private.newest_topic_stretches(p_user_id, t.id) s
    cross join lateral (
      select case when s.model = t.model and {{vector_schema}}.vector_dims(s.embedding) = {{vector_schema}}.vector_dims(t.centroid)
                  then -(t.centroid operator({{vector_schema}}.<#>) s.embedding)
                  else (select sum(w.weight) / sqrt(greatest(1, cardinality(s.terms)))
                        from unnest(t.terms, t.weights) as w (term, weight) where w.term = any (s.terms)) end::real as near) n
    where s.strength is null or n.near is null or abs(s.strength - n.near) > 0.005),
  held as materialized (
    select s.conversation_id, s.stretch, r.near
    from rated r
    join memory.topic_stretches s
      on s.user_id = p_user_id and s.conversation_id = r.conversation_id and s.stretch = r.stretch
    where s.strength is distinct from r.near
      for update of s skip locked)
  update memory.topic_stretches s set strength = h.near from held h
   where s.user_id = p_user_id and s.conversation_id = h.conversation_id and s.stretch = h.stretch;
end
$function$;

create function public.memory_worker_topics(
  p_limit      integer default 100,
  p_after_user text    default null,
  p_after      uuid    default null,
  p_user_id    text    default null -- only this owner's; null: everybody's
) returns jsonb
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_custom_plan
as $function$
declare
  v_now  constant timestamptz := clock_timestamp();
  v_most constant integer := greatest(1, least(p_limit, 1000));
  v_due  record;
begin
  -- The first rows of both tables, so that none is passed over.
  with due as materialized (
    select d.user_id, d.conversation_id
    from ((select s.user_id, s.conversation_id from memory.topic_stretches s
           where s.due and (p_user_id is null or s.user_id = p_user_id)
             and (p_after is null or (s.user_id, s.conversation_id) > (p_after_user, p_after))
             and (p_user_id is null or p_after_user is distinct from p_user_id or s.conversation_id > p_after)
           order by s.user_id, s.conversation_id limit v_most)
          union all
          (select i.user_id, i.conversation_id from memory.indexed_stretches i
           where (p_user_id is null or i.user_id = p_user_id)
             and (p_after is null or (i.user_id, i.conversation_id) > (p_after_user, p_after))
             and (p_user_id is null or p_after_user is distinct from p_user_id or i.conversation_id > p_after)
           order by i.user_id, i.conversation_id limit v_most)) d
    order by d.user_id, d.conversation_id limit v_most)
  select (select jsonb_agg(jsonb_build_object('user_id', c.user_id, 'agent_id', c.agent_id, 'thread_id', c.thread_id)
                           order by c.user_id, c.id)
          from (select distinct d.user_id, d.conversation_id from due d) d
          join memory.conversations c on c.user_id = d.user_id and c.id = d.conversation_id) as conversations,
         (select jsonb_build_object('user', d.user_id, 'id', d.conversation_id) from due d
          order by d.user_id desc, d.conversation_id desc limit 1) as after
    into v_due;
  return jsonb_build_object(
    'conversations', coalesce(v_due.conversations, '[]'),
    'after', v_due.after,
    -- Also one that a clock put far ahead, which was set back since.
    'owners', case when p_after is null then coalesce((
      select jsonb_agg(g.user_id order by g.due_at, g.user_id)
      from (select g.user_id, g.due_at from memory.topic_clusterings g
            where (g.due_at <= v_now or g.due_at > v_now + interval '8 days')
              and (p_user_id is null or g.user_id = p_user_id)
            order by g.due_at, g.user_id limit v_most) g), '[]') else '[]' end);
end
$function$;
comment on function public.memory_worker_topics is
  'langchain-supabase-memory: List the conversations with stretches that have no topic yet, by pages, and the owners whose
  topics are to be found anew.

p_limit: the most of one answer, at most 1000.
p_after_user: user of after from the last page; null: from the beginning.
p_after: id of after from the last page; null: from the beginning.
p_user_id: only this owner''s; null: everybody''s.
Returns: object.
- conversations: object[]. For memory_assign_topics.
- conversations[].user_id: text. The owner.
- conversations[].agent_id: text. Its agent.
- conversations[].thread_id: text. Its thread.
- after: object or null. Where the next page goes on; null: there is none.
- after.user: text. Pass it as p_after_user.
- after.id: uuid. Pass it as p_after.
- owners: text[]. Only on the first page: whose topics are to be found anew, those that wait longest first.
Errors: none.';

create function public.memory_topics(
  p_since    timestamptz default null,
  p_hidden   boolean default false, -- also those that a person hid
  p_quotes   integer default 1,
  p_limit    integer default 200,
  p_topic_id uuid    default null,
  p_user_id  text    default null,
  p_retention json   default null,
  p_parts    boolean default false -- each part of another for itself
) returns json
language plpgsql stable security invoker set search_path = ''
as $function$
declare
  v_user   constant text := memory_private.resolve_owner(p_user_id);
  v_quotes constant integer := greatest(0, least(p_quotes, 20));
  -- Whether something of what is stored may be beyond what is kept.
  v_expires constant boolean := memory_private.effective_retention(v_user, p_retention) is not null or exists (
    select from memory.working_memory_chunks k where k.user_id = v_user and k.expires_at is not null);
begin
  return coalesce((
    with parts as materialized (
      select case when p_parts then t.id else coalesce(t.merged_into, t.id) end as root, t.id, t.stretches, t.first_at,
             t.last_at
      from memory.topics t where t.user_id = v_user),
    counted as materialized (
      select p.root, sum(coalesce(n.stretches, p.stretches)) as stretches, min(p.first_at) as first_at,
             max(p.last_at) as last_at, array_agg(p.id) as ids
      from parts p
      left join lateral (
        select count(*) as stretches from memory.topic_stretches s
        where p_since is not null and s.user_id = v_user and s.topic_id = p.id and s.at >= p_since) n on p_since is not null
      group by p.root)
    select json_agg(json_build_object(
             'id', r.id, 'words', case when v_expires then memory_private.kept_topic_words(v_user, r.id, r.words, p_retention)
                                       else r.words end,
             'name', r.name, 'named_by', r.named_by, 'hidden', r.hidden, 'merged_into', r.merged_into,
             'parts', array_remove(r.ids, r.id), 'stretches', r.stretches, 'first_at', r.first_at, 'last_at', r.last_at,
             'quotes', coalesce(q.quotes, '[]')) order by r.stretches desc, r.last_at desc nulls last, r.id)
    from (select t.id, t.words, t.name, t.named_by, t.hidden, t.merged_into, n.ids, n.stretches, n.first_at, n.last_at
          from counted n join memory.topics t on t.user_id = v_user and t.id = n.root
          where (p_hidden or not t.hidden) and (p_topic_id is null or p_topic_id = any (n.ids))
            and (p_since is null or n.last_at >= p_since)
          order by n.stretches desc, n.last_at desc nulls last, t.id
          limit greatest(0, least(p_limit, 500))) r
    left join lateral (
      select json_agg(json_build_object(
               'thread_id', c.thread_id, 'agent_id', c.agent_id, 'message_id', k.message_ids[1], 'sequence', k.from_sequence,
               'text', left(k.content, 300), 'said_at', k.said_at) order by s.strength desc nulls last, s.at) as quotes
      from (select s.* from unnest(r.ids) as p (id)
            cross join lateral (
              select s.conversation_id, s.stretch, s.strength, s.at from memory.topic_stretches s
              where s.user_id = v_user and s.topic_id = p.id
              order by s.strength desc nulls last limit v_quotes) s
            order by s.strength desc nulls last, s.at limit v_quotes) s
      join memory.conversations c on c.user_id = v_user and c.id = s.conversation_id
      cross join lateral memory_private.central_chunk(c, s.stretch, p_retention) k
      where k.content is not null) q on v_quotes > 0), '[]');
end
$function$;
comment on function public.memory_topics is
  'langchain-supabase-memory: List what an owner''s conversations are about, the topics with the most stretches of talk first,
  each with the words of its label and with what was said that is nearest to its middle.

p_since: only what was talked about since; the counts are since then; null: ever.
p_hidden: also topics that a person hid.
p_quotes: the most quotes of each, at most 20.
p_limit: the most topics, at most 500.
p_topic_id: only this one, or the one that it was merged into; null: all.
p_user_id: the owner; null: the subject of the caller''s token.
p_retention: what is kept, as in memory_append: what is beyond it is not quoted, and a word is left out that only stands
  in stretches with something beyond it. Null: everything is kept. Counts are those of what is stored.
p_parts: each topic that a person merged into another for itself, and not as a part.
Returns: object[].
- [].id: uuid. The topic. It stays the same when topics are found anew.
- [].words: text[]. Up to 8 words, the best first. Each stands in three of ten of its stretches at least.
- [].merged_into: uuid or null. With p_parts: the topic that it is a part of; null: of none.
- [].name: text or null. What a person calls it.
- [].named_by: text or null. Who.
- [].hidden: boolean. Whether a person hid it.
- [].parts: text[]. The ids of topics that a person merged into it.
- [].stretches: integer. How many stretches of talk are about it.
- [].first_at: timestamp or null. When it first came up.
- [].last_at: timestamp or null. When it came up last; null: nothing is left but what a person made of it.
- [].quotes: object[]. What was said about it.
- [].quotes[].thread_id: text. The thread.
- [].quotes[].agent_id: text. Its agent.
- [].quotes[].message_id: text or null. The message.
- [].quotes[].sequence: integer. Its number.
- [].quotes[].text: text. Its words, at most 300 characters.
- [].quotes[].said_at: timestamp. When it was said.
Errors:
- PT400: no p_user_id is given, and the caller''s token names nobody.';

-- Returns those of a topic's words that stand in a stretch of which everything is kept, of its fifty newest.
create or replace function memory_private.kept_topic_words(
  p_user_id text, p_topic_id uuid, p_words text[], p_retention json
) returns text[]
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
declare
  v_kept text[] := '{}';
  v_s    record;
begin
  for v_s in
    select m.words, m.stretch, m.conversation_id, (g.gone).messages as gone
    from (select s.conversation_id, s.stretch, s.words from memory.topic_stretches s
          where s.user_id = p_user_id and s.topic_id = p_topic_id
          order by s.at desc nulls last limit 50) m
    cross join lateral (
      select memory_private.find_expired(c, p_retention) as gone from memory.conversations c
      where c.user_id = p_user_id and c.id between m.conversation_id and m.conversation_id order by c.id limit 1) g
  loop
    exit when p_words <@ v_kept;
    continue when v_s.words <@ v_kept or v_s.gone && int8range(v_s.stretch, (
      select n.stretch from memory.topic_stretches n
      where n.user_id = p_user_id and n.conversation_id = v_s.conversation_id and n.stretch > v_s.stretch
      order by n.stretch limit 1));
    -- Chunks of one stretch expire together.
    continue when exists (
      select from (
        select k.stretch, k.expires_at from memory.working_memory_chunks k
        where k.user_id = p_user_id and k.conversation_id = v_s.conversation_id and k.to_sequence >= v_s.stretch
        order by k.to_sequence limit 1) k
      where k.expires_at <= clock_timestamp());
    v_kept := v_kept || v_s.words;
  end loop;
  return array(select w from unnest(p_words) with ordinality as u (w, place) where w = any (v_kept) order by place);
end
$function$;

-- Returns the chunk of a stretch that is quoted: what the user said that matters most, of what is kept.
create or replace function memory_private.central_chunk(
  p_conversation memory.conversations, p_stretch bigint, p_retention json
) returns memory.working_memory_chunks
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
declare
  v_gone  constant record := memory_private.find_expired(p_conversation, p_retention);
  v_chunk memory.working_memory_chunks;
begin
  select t.* into v_chunk
    from (select k.* from memory.working_memory_chunks k
          where k.user_id = p_conversation.user_id and k.conversation_id = p_conversation.id and k.to_sequence >= p_stretch
          order by k.to_sequence limit 200) t
   where t.stretch = p_stretch and not t.stale and t.role in ('user', 'assistant')
     and t.from_sequence >= v_gone.first and not t.from_sequence <@ v_gone.holes
     and (t.expires_at is null or t.expires_at > clock_timestamp())
   order by t.role = 'user' desc, t.importance desc, t.place, t.part limit 1;
  return v_chunk;
end
$function$;

create function public.memory_topic_days(
  p_since    timestamptz default null,
  p_topic_id uuid    default null,
  p_hidden   boolean default false,
  p_user_id  text    default null
) returns json
language plpgsql stable security invoker set search_path = ''
as $function$
declare
  v_user constant text := memory_private.resolve_owner(p_user_id);
begin
  return coalesce((
    select json_agg(json_build_object('topic_id', d.root, 'day', d.day, 'stretches', d.stretches, 'messages', d.messages)
                    order by d.root, d.day)
    from (select r.id as root, s.day, sum(s.stretches) as stretches, sum(s.messages) as messages
          from (select s.topic_id, (s.at at time zone 'UTC')::date as day, count(*) as stretches, sum(s.messages) as messages
                from memory.topic_stretches s
                where s.user_id = v_user and s.at >= coalesce(p_since, clock_timestamp() - interval '90 days')
                group by 1, 2) s
          cross join lateral (
            select coalesce(t.merged_into, t.id) as root from memory.topics t
            where t.user_id = v_user and t.id = s.topic_id offset 0) t
          cross join lateral (
            select r.id, r.hidden from memory.topics r where r.user_id = v_user and r.id = t.root offset 0) r
          where (p_hidden or not r.hidden) and (p_topic_id is null or r.id = p_topic_id)
          group by 1, 2) d), '[]');
end
$function$;
comment on function public.memory_topic_days is
  'langchain-supabase-memory: Count by topic and day, in UTC, how much was talked about it. A day without anything has no row.
  The view memory.topic_days shows the same.

p_since: since when; null: the last 90 days.
p_topic_id: only this topic; null: all.
p_hidden: also topics that a person hid.
p_user_id: the owner; null: the subject of the caller''s token.
Returns: object[].
- [].topic_id: uuid. The topic.
- [].day: text. The day, such as 2026-11-27.
- [].stretches: integer. How many stretches of talk began.
- [].messages: integer. About how many messages of the user and the assistant they have.
Errors:
- PT400: no p_user_id is given, and the caller''s token names nobody.';

-- Returns a topic of an owner, and refuses one that there is not.
create or replace function memory_private.find_topic(p_user_id text, p_topic_id uuid) returns memory.topics
language plpgsql stable security invoker set search_path = ''
as $function$
declare
  v_topic memory.topics;
begin
  select t.* into v_topic from memory.topics t where t.user_id = p_user_id and t.id = p_topic_id;
  if not found then
    raise exception 'there is no such topic' using errcode = 'PT404', hint = 'list the topics again';
  end if;
  return v_topic;
end
$function$;

create function public.memory_edit_topic(
  p_topic_id uuid,
  p_action   text, -- rename, merge, hide or show
  p_by       text,
  p_name     text default null,
  p_into     uuid default null,
  p_user_id  text default null
) returns jsonb
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_user constant text := memory_private.resolve_writer(p_user_id);
  v_name constant text := nullif(memory_private.one_line(p_name), '');
  v_old  memory.topics;
  v_into memory.topics;
begin
  if coalesce(p_action not in ('rename', 'merge', 'hide', 'show'), true) then
    raise exception 'there is no such action' using errcode = 'PT400', hint = 'it is rename, merge, hide or show';
  end if;
  perform memory_private.lock_opt_outs(v_user), memory_private.lock_profile(v_user);
  v_old := memory_private.find_topic(v_user, p_topic_id);
  if p_action = 'rename' then
    if memory_private.mentions(v_name, memory_private.opted_out_topics(v_user, null)) then
      raise exception 'the name mentions a topic that is not to be remembered'
        using errcode = 'PT400', hint = 'leave that out, or opt in to the topic';
    end if;
    update memory.topics t set name = v_name, named_by = case when v_name is not null then p_by end
     where t.user_id = v_user and t.id = p_topic_id;
  elsif p_action = 'merge' then
    if p_into is not null then
      v_into := memory_private.find_topic(v_user, p_into);
      p_into := coalesce(v_into.merged_into, p_into);
      if p_into = p_topic_id then
        raise exception 'a topic is no part of itself' using errcode = 'PT400', hint = 'name another topic as p_into';
      end if;
    end if;
    -- What was merged into it goes along; of what is taken out again nothing else changes.
    update memory.topics t set merged_into = p_into
     where t.user_id = v_user and (t.id = p_topic_id or p_into is not null and t.merged_into = p_topic_id);
  else
    update memory.topics t set hidden = p_action = 'hide' where t.user_id = v_user and t.id = p_topic_id;
  end if;
  insert into memory.control_changes (user_id, action, subject, changed_by)
  values (v_user, 'edit_topic', p_topic_id::text, p_by);
  -- Without stretches and without a person's mark it is no more.
  perform memory_private.describe_topic(v_user, t.id) from memory.topics t
   where t.user_id = v_user and t.id in (p_topic_id, v_old.merged_into) and t.stretches = 0;
  return jsonb_build_object('topic_id', coalesce(p_into, p_topic_id));
end
$function$;
comment on function public.memory_edit_topic is
  'langchain-supabase-memory: What a person does with a topic: give it a name, make it a part of another, hide it. No new
  clustering changes that. It is noted who did it and when.

p_topic_id: the topic.
p_action: rename, merge, hide or show.
p_by: who does it, 1 to 1000 bytes.
p_name: with rename the name, at most 800 bytes; null: it is called by its words again.
p_into: with merge the topic that it becomes a part of; null: it is one of its own again.
p_user_id: the owner; null: the subject of the caller''s token.
Returns: object.
- topic_id: uuid. The topic, or the one that it is a part of now.
Errors:
- PT400: there is no such action, the name mentions a topic that is not to be remembered, or a topic is merged into itself;
  or no p_user_id is given, and the caller''s token names nobody.
- PT404: there is no such topic.
- 23514: p_name or p_by is refused; the name of the constraint says which.';

create function public.memory_forget_topic(
  p_topic_id uuid,
  p_by       text,
  p_words    json    default null, -- null: the first three of its label
  p_user_id  text    default null,
  p_dry_run  boolean default false
) returns jsonb
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_user     constant text := memory_private.resolve_writer(p_user_id);
  v_topic    memory.topics;
  v_ids      uuid[];
  v_words    text[];
  v_word     text;
  v_members  record;
  v_places   bigint[];
  v_chunks   bigint := 0;
  v_c        record;
begin
  if json_typeof(p_words) not in ('array', 'null') then
    raise exception 'p_words is no list' using errcode = 'PT400', hint = 'pass some of the topic''s words';
  end if;
  perform memory_private.check_limits(p_words);
  perform memory_private.lock_opt_outs(v_user, not p_dry_run);
  v_topic := memory_private.find_topic(v_user, p_topic_id);
  v_words := case when json_typeof(p_words) = 'array' then array(select w from json_array_elements_text(p_words) w)
                  else v_topic.words[:3] end;
  if not v_words <@ v_topic.words then
    raise exception 'a topic is forgotten by its own words'
      using errcode = 'PT400', hint = 'pass some of its words; other words have an opt-out of their own';
  end if;
  v_ids := array(
    select t.id from memory.topics t where t.user_id = v_user and (t.id = p_topic_id or t.merged_into = p_topic_id));
  if not p_dry_run then
    perform from memory.conversations c where c.user_id = v_user order by c.user_id, c.id for no key update;
  end if;
  -- Before the opt-outs, which take stretches out of their topic.
  select array_agg(s.conversation_id) as conversations, array_agg(s.stretch) as stretches into v_members
    from memory.topic_stretches s where s.user_id = v_user and s.topic_id = any (v_ids);
  if not p_dry_run then
    foreach v_word in array v_words loop
      perform public.memory_opt_out(p_by, null, v_word, v_user);
    end loop;
  end if;
  for v_c in
    select m.conversation_id, array_agg(m.stretch) as stretches
    from unnest(v_members.conversations, v_members.stretches) as m (conversation_id, stretch)
    group by m.conversation_id order by m.conversation_id
  loop
    v_places := array(
      select distinct k.place from memory.working_memory_chunks k
      where k.user_id = v_user and k.conversation_id = v_c.conversation_id and k.stretch = any (v_c.stretches));
    if p_dry_run then
      v_chunks := v_chunks + cardinality(v_places);
    elsif v_places <> '{}' then
      perform memory_private.delete_ratings(v_user, v_c.conversation_id, v_places);
      v_chunks := v_chunks + memory_private.delete_chunks(v_user, v_c.conversation_id, v_places);
      -- Opting in again indexes them again.
      update memory.conversations c set withheld = true, revision = c.revision + 1
       where c.user_id = v_user and c.id = v_c.conversation_id;
    end if;
  end loop;
  if not p_dry_run then
    perform memory_private.lock_profile(v_user);
    delete from memory.topic_stretches s where s.user_id = v_user and s.topic_id = any (v_ids);
    delete from memory.topics t where t.user_id = v_user and t.id = any (v_ids);
  end if;
  return jsonb_build_object(
    'words', to_jsonb(v_words), 'stretches', coalesce(cardinality(v_members.stretches), 0), 'chunks', v_chunks);
end
$function$;
comment on function public.memory_forget_topic is
  'langchain-supabase-memory: Remember nothing more of a topic: its owner is opted out of its words in all conversations, as
  memory_opt_out does it, and the chunks of its stretches go, also those without these words. The messages stay. With it go
  the topics that were merged into it.

p_topic_id: the topic.
p_by: who says so, 1 to 1000 bytes.
p_words: text[]: which of its words to opt out of, may be none; null: the first three.
p_user_id: the owner; null: the subject of the caller''s token.
p_dry_run: only say what would go.
Returns: object.
- words: text[]. The words that are not to be remembered.
- stretches: integer. How many stretches of talk were about it.
- chunks: integer. How many chunks of them went; those that the words took are not counted.
Errors:
- PT400: p_words is no list, or has a word that is not one of the topic''s; or no p_user_id is given, and the caller''s token names nobody.
- PT404: there is no such topic.
- PT413: the user has as many opt-outs as are allowed (opt_outs, see memory_limits).
- 23514: p_by is refused; the name of the constraint says which.';

-- Restores what people made of topics, as an export has it. A topic is known again by its id or its words. Returns how
-- many were put back; what was set here stays.
create or replace function memory_private.restore_topics(p_user_id text, p_topics json, out restored integer, out refused integer)
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_out   constant text[] := memory_private.opted_out_topics(p_user_id, null);
  v_known constant text := '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$';
  v_each  record;
  v_words text[];
  v_here  memory.topics;
  v_ids   jsonb := '{}'; -- what each is here, by its id there
begin
  restored := 0;
  refused := 0;
  perform memory_private.lock_profile(p_user_id);
  for v_each in
    select t.*, case when t.id ~ v_known then t.id::uuid end as uuid,
           case when t.merged_into ~ v_known then t.merged_into::uuid end as into_uuid
    from json_to_recordset(p_topics) as t (
      id text, name text, named_by text, hidden boolean, words text[], merged_into text)
    order by t.merged_into is not null
  loop
    v_words := coalesce(v_each.words[:8], '{}');
    v_here := null;
    select t.* into v_here from memory.topics t
     where t.user_id = p_user_id and (t.id = v_each.uuid or t.words = v_words and v_words <> '{}')
     order by t.id is not distinct from v_each.uuid desc, t.id limit 1;
    if memory_private.refuses(p_user_id, 'topics') or memory_private.mentions(v_each.name, v_out)
      or memory_private.mentions(array_to_string(v_words, ' '), v_out)
      or v_here.id is null and (
        v_words = '{}' and v_each.uuid is null
        or (select count(*) from memory.topics t where t.user_id = p_user_id) >= 200)
    then
      refused := refused + 1;
      continue;
    end if;
    if v_here.id is null then
      insert into memory.topics (user_id, id, words, terms, weights)
      select p_user_id, coalesce(v_each.uuid, gen_random_uuid()), v_words,
             coalesce(array_agg(coalesce((ts_lexize('pg_catalog.english_stem', w))[1], w)), '{}'),
             array_fill((1 / sqrt(greatest(1, cardinality(v_words))))::real, array[cardinality(v_words)])
      from unnest(v_words) w
      returning * into v_here;
      restored := restored + 1;
    elsif v_here.name is null and not v_here.hidden and v_here.merged_into is null then
      restored := restored + coalesce(v_each.name <> '' or v_each.hidden or v_each.merged_into is not null, false)::integer;
    end if;
    v_ids := v_ids || jsonb_build_object(coalesce(v_each.id, ''), v_here.id);
    continue when v_here.name is not null or v_here.hidden or v_here.merged_into is not null; -- what was set here stays
    update memory.topics t
       set name = nullif(v_each.name, ''), hidden = coalesce(v_each.hidden, false),
           named_by = case when v_each.name <> '' then coalesce(nullif(left(v_each.named_by, 200), ''), 'import') end,
           merged_into = nullif(coalesce(
             (v_ids ->> v_each.merged_into)::uuid,
             (select o.id from memory.topics o where o.user_id = p_user_id and o.id = v_each.into_uuid)), v_here.id)
     where t.user_id = p_user_id and t.id = v_here.id;
  end loop;
end
$function$;
