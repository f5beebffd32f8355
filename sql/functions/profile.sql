-- The profile of a person: what they said holds for them, with the words that say so; what a person does with it; consent.
-- Items and evidence are facts, written by whoever comes; what holds is computed from them by memory_private.settle_profile
-- and nowhere else, so the order in which messages are read does not matter.

-- Locks a user's profile until the end of the transaction. Taken after the locks of conversations, and nothing after it.
create or replace function memory_private.lock_profile(p_user_id text) returns void
language plpgsql volatile security invoker set search_path = ''
as $function$
begin
  perform pg_advisory_xact_lock(hashtextextended('langchain-supabase-memory profile ' || p_user_id, 0));
end
$function$;

-- Returns the user whose profile a call is about. A space has none.
create or replace function memory_private.resolve_profile_owner(p_user_id text) returns text
language plpgsql stable security invoker set search_path = ''
as $function$
begin
  if starts_with(coalesce(p_user_id, auth.jwt() ->> 'sub'), 'space:') then
    raise exception 'a space has no profile' using errcode = 'PT400', hint = 'pass the user_id of a user';
  end if;
  return memory_private.resolve_owner(p_user_id);
end
$function$;

-- Returns a text of a profile as it is compared.
create or replace function memory_private.fold_profile_text(p_text text) returns text
language sql immutable security invoker set search_path = ''
as $function$
  select coalesce(nullif(memory_private.fold_text(p_text), ''), btrim(p_text), '')
$function$;

-- Returns the digest of what an item is about: of one chain one value holds at a time.
create or replace function memory_private.profile_chain(p_agent_id text, p_kind text, p_subject text, p_condition text)
returns text
language sql immutable security invoker set search_path = ''
as $function$
  select md5(jsonb_build_array(
    p_agent_id, p_kind, memory_private.fold_profile_text(p_subject), memory_private.fold_profile_text(p_condition))::text)
$function$;

-- Returns the digest of what an item says. Its kind and agent do not count, so that what was deleted does not come back
-- under another.
create or replace function memory_private.profile_digest(
  p_subject text, p_condition text, p_value text, p_polarity integer
) returns text
language sql immutable security invoker set search_path = ''
as $function$
  select md5(jsonb_build_array(
    memory_private.fold_profile_text(p_subject), memory_private.fold_profile_text(p_condition),
    memory_private.fold_profile_text(p_value), p_polarity)::text)
$function$;

-- Returns the names of how much an item counts for, in the order of authority.
create or replace function memory_private.profile_bases() returns text[]
language sql immutable security invoker set search_path = ''
as $function$
  select '{inferred,repeated,stated,corrected,person}'::text[]
$function$;

-- Says whether a value takes over from the one that holds: it is held by itself, and its authority is not below. What the user
-- says of themself later also takes over from what they corrected, and a correction from what a person wrote.
create or replace function memory_private.takes_over(p_rank integer, p_current integer) returns boolean
language sql immutable security invoker set search_path = ''
as $function$
  select p_rank > 0 and (p_current is null or p_rank >= p_current or p_rank in (2, 3) and p_current = p_rank + 1)
$function$;

-- Returns when words of the user ceased to hold by their conversation's board: what it read in them is superseded there by
-- what the user said later. Null: they do not. Words that say several things are left, for the board does not tell which.
create or replace function memory_private.contradicted_at(p_evidence memory.profile_evidence) returns timestamptz
language plpgsql stable security invoker set search_path = ''
as $function$
declare
  v_e     constant memory.profile_evidence := p_evidence;
  v_quote constant text := memory_private.plain_letters(v_e.quote);
  v_found record;
begin
  -- A condition may not call a function that reads tables: nodes of Citus refuse it.
  for v_found in
    select b.superseded_at, m.message
    from (
      select i.superseded_at, i.superseded_by, memory_private.plain_letters(i.quote) as quote
      from memory.conversation_board_items i
      where i.user_id = v_e.user_id and i.conversation_id = v_e.conversation_id and i.superseded_by is not null
        and i.superseded_at is not null and i.deleted_at is null and v_e.message_id = any (i.message_ids)
      offset 0) b
    cross join lateral (
      select o.message_ids from memory.conversation_board_items o
      where o.user_id = v_e.user_id and o.conversation_id = v_e.conversation_id and o.id = b.superseded_by
      offset 0) o
    cross join lateral (
      select m as message from memory.conversation_messages m
      where m.user_id = v_e.user_id and m.conversation_id = v_e.conversation_id and m.message_id = o.message_ids[1]
      offset 0) m
    where (strpos(b.quote, v_quote) > 0 or strpos(v_quote, b.quote) > 0)
      and not memory_private.is_relayed_message(m.message)
      and not exists (
        select from memory.profile_evidence x
        join memory.profile_items i on i.user_id = x.user_id and i.id = x.item_id
        where x.user_id = v_e.user_id and x.conversation_id = v_e.conversation_id and x.message_id = v_e.message_id
          and i.state <> 'deleted' and i.chain <> (
            select o.chain from memory.profile_items o where o.user_id = v_e.user_id and o.id = v_e.item_id)
          and strpos(b.quote, memory_private.plain_letters(x.quote)) > 0)
    order by b.superseded_at
  loop
    if memory_private.is_own_message(v_found.message) then
      return v_found.superseded_at;
    end if;
  end loop;
  return null;
end
$function$;

-- Returns all that was said and done about one chain, in the order in which it was: evidence (with what it counts for by
-- itself), its end by a board, what a model or an import suggested, what a person wrote or confirmed, and what they deleted
-- (from when it held, and its end).
create or replace function memory_private.profile_events(p_user_id text, p_chain text)
returns table (
  digest text, at timestamptz, rank integer, item_id uuid, conversation_id uuid, message_id text, is_relayed boolean,
  is_end boolean)
language plpgsql stable security invoker set search_path = ''
as $function$
begin
  return query
  select t.digest, t.at, t.rank, t.item_id, t.conversation_id, t.message_id, t.is_relayed, t.is_end
  from (
    select i.digest, e.said_at as at,
           case when e.relayed then 0 when e.corrects then 3 when e.durable then 2 else 0 end as rank, i.id as item_id,
           e.conversation_id, e.message_id, e.relayed as is_relayed, false as is_end, e.sequence, e.place
    from memory.profile_items i
    join memory.profile_evidence e on e.user_id = p_user_id and e.item_id = i.id
    where i.user_id = p_user_id and i.chain = p_chain and i.state <> 'deleted'
    union all
    select i.digest, e.contradicted_at, 0, i.id, null, null, false, true, 0, 0
    from memory.profile_items i
    join memory.profile_evidence e on e.user_id = p_user_id and e.item_id = i.id
    where i.user_id = p_user_id and i.chain = p_chain and i.state <> 'deleted' and e.contradicted_at is not null
    union all
    select i.digest, i.suggested_at, 0, i.id, null, null, false, false, 0, 0
    from memory.profile_items i
    where i.user_id = p_user_id and i.chain = p_chain and i.state <> 'deleted' and i.suggested_at is not null
    union all
    select i.digest, i.confirmed_at, 4, i.id, null, null, false, false, 0, 0
    from memory.profile_items i
    where i.user_id = p_user_id and i.chain = p_chain and i.state <> 'deleted' and i.confirmed_at is not null
    union all
    select i.id::text, i.held_at, array_position(memory_private.profile_bases(), i.basis) - 1, i.id, null, null, false, false,
           0, 0
    from memory.profile_items i
    where i.user_id = p_user_id and i.chain = p_chain and i.state = 'deleted' and i.held_at is not null
    union all
    select i.id::text, i.deleted_at, 0, i.id, null, null, false, true, 0, 0
    from memory.profile_items i
    where i.user_id = p_user_id and i.chain = p_chain and i.state = 'deleted' and i.held_at is not null) t
  order by t.at, t.is_end, t.conversation_id nulls last, t.sequence, t.place, t.digest, t.item_id;
end
$function$;

-- Computes when which value of a chain held. Each span is one value over one stretch of time; parallel lists describe them.
-- A value takes over as takes_over says; then what was open beside it is settled. What says less is proposed beside it.
create or replace function memory_private.profile_spans(
  p_user_id text, p_chain text,
  out digests text[], out ranks integer[], out firsts timestamptz[], out lasts timestamptz[], out helds timestamptz[],
  out endeds timestamptz[], out nexts integer[], out suggested timestamptz[], out confirmed timestamptz[],
  out counts integer[],
  out items uuid[], out conversations uuid[], out messages text[], out places integer[] -- of the evidence: in which span
)
language plpgsql stable security invoker set search_path = ''
as $function$
declare
  v_e       record;
  v_open    jsonb := '{}'; -- of each value that is held or proposed, its span
  v_from    uuid[] := '{}'; -- the first conversation of each span
  v_current integer;
  v_k       integer;
  v_other   integer;
  v_rank    integer;
begin
  digests := '{}'; ranks := '{}'; firsts := '{}'; lasts := '{}'; helds := '{}'; endeds := '{}'; nexts := '{}';
  suggested := '{}'; confirmed := '{}'; counts := '{}'; items := '{}'; conversations := '{}'; messages := '{}'; places := '{}';
  for v_e in select * from memory_private.profile_events(p_user_id, p_chain) loop
    v_k := (v_open ->> v_e.digest)::integer;
    if v_e.is_end then -- a person deleted it, or the user contradicted it: nothing holds from then on
      if v_k = v_current and v_e.digest = v_e.item_id::text or v_k is not null and v_e.digest <> v_e.item_id::text and ranks[v_k] < 4
      then
        endeds[v_k] := v_e.at;
        v_open := v_open - v_e.digest;
        v_current := nullif(v_current, v_k);
      end if;
      continue;
    end if;
    if v_k is null then
      v_k := cardinality(digests) + 1;
      digests := array_append(digests, v_e.digest);
      ranks := array_append(ranks, 0);
      firsts := array_append(firsts, v_e.at);
      lasts := array_append(lasts, v_e.at);
      helds := array_append(helds, null);
      endeds := array_append(endeds, null);
      nexts := array_append(nexts, null);
      suggested := array_append(suggested, null);
      confirmed := array_append(confirmed, null);
      counts := array_append(counts, 0);
      v_from := array_append(v_from, null);
      v_open := v_open || jsonb_build_object(v_e.digest, v_k);
    end if;
    lasts[v_k] := v_e.at;
    v_rank := v_e.rank;
    if v_e.conversation_id is not null then
      if not v_e.is_relayed then
        v_from[v_k] := coalesce(v_from[v_k], v_e.conversation_id);
        v_rank := greatest(v_rank, (v_from[v_k] <> v_e.conversation_id)::integer); -- repeated
      end if;
      counts[v_k] := counts[v_k] + 1;
      items := array_append(items, v_e.item_id);
      conversations := array_append(conversations, v_e.conversation_id);
      messages := array_append(messages, v_e.message_id);
      places := array_append(places, v_k);
    elsif v_e.digest <> v_e.item_id::text and v_rank = 4 then
      confirmed[v_k] := coalesce(confirmed[v_k], v_e.at);
    elsif v_e.digest <> v_e.item_id::text then
      suggested[v_k] := coalesce(suggested[v_k], v_e.at);
    end if;
    ranks[v_k] := greatest(ranks[v_k], v_rank);
    if v_k is distinct from v_current and memory_private.takes_over(ranks[v_k], ranks[v_current]) then
      for v_other in select o.value::integer from jsonb_each(v_open - v_e.digest) o loop
        endeds[v_other] := v_e.at;
        nexts[v_other] := v_k;
      end loop;
      v_open := jsonb_build_object(v_e.digest, v_k);
      helds[v_k] := v_e.at;
      v_current := v_k;
    end if;
  end loop;
end
$function$;

-- Writes what holds of a chain: the one place that decides it. A row stands for a span; the newest row of a value for its
-- newest span, so that what a person pinned keeps its id. A value that nothing says any more goes. The caller holds the
-- profile's lock.
create or replace function memory_private.settle_profile(p_user_id text, p_chain text) returns void
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_now     constant timestamptz := clock_timestamp();
  v_s       record;
  v_ids     uuid[]; -- the row of each span
  v_missing integer[];
  v_bys     text[]; -- who confirmed it
  v_ended   boolean;
begin
  v_s := memory_private.profile_spans(p_user_id, p_chain);
  select coalesce(array_agg(coalesce(r.id, gen_random_uuid()) order by s.place), '{}'),
         array_agg(s.place order by s.place) filter (where r.id is null),
         array_agg((select i.confirmed_by from memory.profile_items i
                    where i.user_id = p_user_id and i.chain = p_chain and i.digest = s.digest
                      and i.confirmed_at = v_s.confirmed[s.place] limit 1) order by s.place)
    into v_ids, v_missing, v_bys
    from (select k.place, k.digest, row_number() over (partition by k.digest order by k.place desc) as number
          from unnest(v_s.digests) with ordinality as k (digest, place)) s
    left join (
      select e.id, e.digest,
             row_number() over (partition by e.digest order by e.ended_at desc nulls first, e.first_seen_at desc, e.id) as number
      from (select i.id, i.ended_at, i.first_seen_at, case when i.state = 'deleted' then i.id::text else i.digest end as digest
            from memory.profile_items i
            where i.user_id = p_user_id and i.chain = p_chain) e) r on r.digest = s.digest and r.number = s.number;
  insert into memory.profile_items (
    user_id, id, agent_id, kind, subject, value, polarity, condition, chain, digest, basis, state, author, author_kind,
    first_seen_at, last_seen_at)
  select p_user_id, v_ids[m.place], i.agent_id, i.kind, i.subject, i.value, i.polarity, i.condition, p_chain, i.digest,
         'inferred', 'superseded', i.author, i.author_kind, i.first_seen_at, i.last_seen_at
  from unnest(v_missing) as m (place)
  cross join lateral (
    select o.* from memory.profile_items o
    where o.user_id = p_user_id and o.chain = p_chain and o.digest = v_s.digests[m.place] and o.state <> 'deleted'
    order by o.id limit 1) i;
  update memory.profile_evidence e
     set item_id = u.to_id
    from (select t.item_id, t.conversation_id, t.message_id, v_ids[t.place] as to_id
          from unnest(v_s.items, v_s.conversations, v_s.messages, v_s.places)
               as t (item_id, conversation_id, message_id, place)) u
   where e.user_id = p_user_id and e.item_id = u.item_id and e.conversation_id = u.conversation_id
     and e.message_id = u.message_id and e.item_id <> u.to_id;
  delete from memory.profile_items i
   where i.user_id = p_user_id and i.chain = p_chain and i.state <> 'deleted' and i.id <> all (v_ids);
  -- Those that ended come first, so that a value is never open twice.
  foreach v_ended in array array[true, false] loop
    update memory.profile_items i
       set basis = t.basis, state = t.state, first_seen_at = t.first, last_seen_at = t.last, held_at = t.held,
           ended_at = t.ended, superseded_by = t.next, suggested_at = t.suggested, confirmed_at = t.confirmed,
           confirmed_by = t.confirmed_by,
           evidence = t.count, noted_at = case when t.state = 'held' then coalesce(i.noted_at, v_now) end
      from (
        select v_ids[s.place] as id, (memory_private.profile_bases())[s.rank + 1] as basis, s.first, s.last, s.held, s.ended,
               v_ids[s.next] as next, s.suggested, s.confirmed, v_bys[s.place] as confirmed_by, s.count,
               case when s.ended is not null then 'superseded' when s.held is null then 'proposed' else 'held' end as state
        from unnest(
               v_s.ranks, v_s.firsts, v_s.lasts, v_s.helds, v_s.endeds, v_s.nexts, v_s.suggested, v_s.confirmed, v_s.counts)
             with ordinality as s (rank, first, last, held, ended, next, suggested, confirmed, count, place)) t
     where i.user_id = p_user_id and i.chain = p_chain and i.id = t.id and i.state <> 'deleted'
       and (t.ended is not null) = v_ended
       and (i.basis, i.state, i.first_seen_at, i.last_seen_at, i.held_at, i.ended_at, i.superseded_by, i.suggested_at,
            i.confirmed_at, i.evidence)
         is distinct from (t.basis, t.state, t.first, t.last, t.held, t.ended, t.next, t.suggested, t.confirmed, t.count);
  end loop;
  update memory.profile_items i
     set ended_at = t.ended, superseded_by = t.next
    from (select s.id, s.ended, v_ids[s.next] as next from unnest(v_ids, v_s.endeds, v_s.nexts) as s (id, ended, next)) t
   where i.user_id = p_user_id and i.chain = p_chain and i.id = t.id and i.state = 'deleted'
     and (i.ended_at, i.superseded_by) is distinct from (t.ended, t.next);
  -- Of what does not hold the newest are kept, so that somebody who says the opposite every day fills no profile.
  delete from memory.profile_items i
   where i.user_id = p_user_id and i.id in (
     select o.id from memory.profile_items o
     where o.user_id = p_user_id and o.chain = p_chain and o.state in ('proposed', 'superseded') and not o.pinned
     order by o.last_seen_at desc, o.id offset 200);
end
$function$;

-- Settles what lost evidence, at the end of the transaction: whatever deleted it, a verb, a rule or the conversation's end,
-- and after all locks of conversations. It runs with the migrator's rights, as the role may have changed by then; it
-- reads and writes nothing but the profile of who owned the evidence.
create or replace function memory_private.settle_lost_evidence() returns trigger
language plpgsql volatile security definer set search_path = ''
as $function$
declare
  v_chain text;
  v_had   integer;
begin
  select i.chain, i.evidence into v_chain, v_had from memory.profile_items i
   where i.user_id = old.user_id and i.id = old.item_id and i.state <> 'deleted';
  -- It has gone, or its chain was settled since.
  if v_had > (select count(*) from memory.profile_evidence e where e.user_id = old.user_id and e.item_id = old.item_id) then
    perform memory_private.lock_profile(old.user_id);
    perform memory_private.settle_profile(old.user_id, v_chain);
  end if;
  return null;
end
$function$;
create constraint trigger profile_evidence_lost after delete on memory.profile_evidence
  deferrable initially deferred for each row
  execute function memory_private.settle_lost_evidence();

-- Notes which words of a conversation its board holds for contradicted, and which no more. The caller holds the conversation's
-- row lock; what holds is settled at the end of the transaction, as above.
create or replace function memory_private.note_contradictions(p_user_id text, p_conversation_id uuid) returns void
language plpgsql volatile security invoker set search_path = ''
set plan_cache_mode = force_custom_plan -- planned for one owner, it locks one partition
as $function$
begin
  update memory.profile_evidence e
     set contradicted_at = t.at
    from (
      select x.item_id, x.message_id, memory_private.contradicted_at(x) as at
      from memory.profile_evidence x
      where x.user_id = p_user_id and x.conversation_id = p_conversation_id and (
        x.contradicted_at is not null
        or exists (
          select from memory.conversation_board_items i
          where i.user_id = p_user_id and i.conversation_id = p_conversation_id and i.superseded_by is not null
            and x.message_id = any (i.message_ids)))) t
   where e.user_id = p_user_id and e.conversation_id = p_conversation_id and e.item_id = t.item_id
     and e.message_id = t.message_id and e.contradicted_at is distinct from t.at;
end
$function$;

create or replace function memory_private.settle_contradicted() returns trigger
language plpgsql volatile security definer set search_path = ''
as $function$
declare
  v_chain text;
begin
  select i.chain into v_chain from memory.profile_items i
   where i.user_id = new.user_id and i.id = new.item_id and i.state <> 'deleted';
  if found then
    perform memory_private.lock_profile(new.user_id);
    perform memory_private.settle_profile(new.user_id, v_chain);
  end if;
  return null;
end
$function$;
create constraint trigger profile_evidence_contradicted after update on memory.profile_evidence
  deferrable initially deferred for each row when (old.contradicted_at is distinct from new.contradicted_at)
  execute function memory_private.settle_contradicted();

-- Says whether a user refuses a purpose.
create or replace function memory_private.refuses(p_user_id text, p_purpose text) returns boolean
language plpgsql stable security invoker set search_path = ''
as $function$
begin
  return exists (
    select from memory.consents c where c.user_id = p_user_id and c.purpose = p_purpose and not c.allowed);
end
$function$;

-- Returns the open or newest row of a value, a new one where there is none; null where the profile is full. The caller
-- holds the profile's lock and settles the chain.
create or replace function memory_private.profile_row(
  p_user_id text, p_item jsonb, p_chain text, p_digest text, p_author text, p_author_kind text, p_at timestamptz
) returns uuid
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_id uuid;
begin
  select i.id into v_id from memory.profile_items i
   where i.user_id = p_user_id and i.chain = p_chain and i.digest = p_digest and i.state <> 'deleted'
   order by i.ended_at desc nulls first, i.first_seen_at desc, i.id limit 1;
  if found then
    return v_id;
  end if;
  if (select count(*) from memory.profile_items i where i.user_id = p_user_id)
     >= (memory_private.current_limits()).profile_items
  then
    return null;
  end if;
  insert into memory.profile_items (
    user_id, agent_id, kind, subject, value, polarity, condition, chain, digest, basis, author, author_kind,
    first_seen_at, last_seen_at)
  values (
    p_user_id, p_item ->> 'agent_id', p_item ->> 'kind', btrim(p_item ->> 'subject'), btrim(p_item ->> 'value'),
    coalesce((p_item ->> 'polarity')::smallint, 0), nullif(btrim(p_item ->> 'condition'), ''), p_chain, p_digest, 'inferred',
    p_author, p_author_kind, p_at, p_at)
  returning id into v_id;
  return v_id;
end
$function$;

-- Notes that a message says an item. One that has twenty messages already keeps them, and the first and the last of all.
create or replace function memory_private.add_profile_evidence(
  p_user_id text, p_chain text, p_digest text, p_item_id uuid, p_evidence memory.profile_evidence
) returns void
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_e     constant memory.profile_evidence := p_evidence;
  v_known record;
begin
  -- Said twice in one message: the later place counts.
  update memory.profile_evidence e
     set durable = e.durable or v_e.durable, corrects = e.corrects or v_e.corrects, place = greatest(e.place, v_e.place),
         said_at = v_e.said_at, quote = case when v_e.place > e.place then v_e.quote else e.quote end
    from memory.profile_items i
   where i.user_id = p_user_id and i.chain = p_chain and i.digest = p_digest and e.user_id = p_user_id and e.item_id = i.id
     and e.conversation_id = v_e.conversation_id and e.message_id = v_e.message_id;
  if found then
    return;
  end if;
  select count(*) as count, min(e.said_at) as first, max(e.said_at) as last into v_known
    from memory.profile_evidence e where e.user_id = p_user_id and e.item_id = p_item_id;
  if v_known.count >= 20 then
    if v_e.said_at between v_known.first and v_known.last and not v_e.durable and not v_e.corrects then
      return;
    end if;
    delete from memory.profile_evidence e
     where e.user_id = p_user_id and e.item_id = p_item_id and (e.conversation_id, e.message_id) = (
       select o.conversation_id, o.message_id from memory.profile_evidence o
       where o.user_id = p_user_id and o.item_id = p_item_id and o.said_at > v_known.first
       order by o.durable or o.corrects, o.said_at desc limit 1);
  end if;
  insert into memory.profile_evidence (
    user_id, item_id, conversation_id, message_id, sequence, place, quote, durable, corrects, relayed, said_at,
    contradicted_at)
  values (
    p_user_id, p_item_id, v_e.conversation_id, v_e.message_id, v_e.sequence, v_e.place, v_e.quote, v_e.durable, v_e.corrects,
    v_e.relayed, v_e.said_at, v_e.contradicted_at);
end
$function$;

-- Returns an item as it may be stored: its texts trimmed, or null where one is missing, too long or none of its kind.
create or replace function memory_private.checked_profile_item(p_item json) returns jsonb
language plpgsql immutable security invoker set search_path = ''
as $function$
declare
  v_item     constant jsonb := p_item;
  v_polarity integer := 0;
begin
  if v_item ->> 'polarity' is not null then
    v_polarity := case when v_item ->> 'polarity' in ('-1', '0', '1') then (v_item ->> 'polarity')::integer end;
  end if;
  return (
    select to_jsonb(t)
    from (select v_item ->> 'agent_id' as agent_id, v_item ->> 'kind' as kind, v_polarity as polarity,
                 coalesce(nullif(btrim(v_item ->> 'subject'), ''), btrim(v_item ->> 'value')) as subject,
                 btrim(v_item ->> 'value') as value, nullif(btrim(v_item ->> 'condition'), '') as condition) t
    where t.kind in ('fact', 'preference', 'instruction', 'trait', 'constraint') and t.polarity is not null
      and t.value <> '' and octet_length(t.value) <= 2000 and octet_length(t.subject) <= 1000
      and (t.condition is null or octet_length(t.condition) <= 1000)
      and (t.agent_id is null or octet_length(t.agent_id) between 1 and 512 and t.agent_id !~ '[\u0001-\u001f\u007f-\u009f]'));
end
$function$;

-- Says whether a message is the owner's own words: of a user, and in a conversation of several named people of the only one
-- who has no name.
create or replace function memory_private.is_own_message(p_message memory.conversation_messages) returns boolean
language plpgsql stable security invoker set search_path = ''
as $function$
declare
  v_name constant text := nullif(p_message.payload #>> '{data,name}', '');
begin
  return p_message.role = 'user' and p_message.unreadable is null and (
    v_name is null or not exists (
      select from memory.conversation_messages m
      where m.user_id = p_message.user_id and m.conversation_id = p_message.conversation_id and m.role = 'user'
        and m.payload #>> '{data,name}' is distinct from v_name));
end
$function$;

-- Says whether a model passed a message on as the user's, so that nobody but the model says that they wrote it.
create or replace function memory_private.is_relayed_message(p_message memory.conversation_messages) returns boolean
language sql immutable security invoker set search_path = ''
as $function$
  select coalesce(p_message.payload #>> '{data,additional_kwargs,supabase_memory_relayed}', 'false') <> 'false'
$function$;

-- Adds what a writer found in messages of the user to their profile. Each is checked by itself, and what is refused is left
-- out: its quote must stand in a message of the user's own, and none of it may be what is not to be remembered, or what
-- a person deleted. The caller holds the conversation's row lock.
create or replace function memory_private.add_profile_items(
  p_conversation memory.conversations,
  p_items  json, -- [{"kind", "subject", "value", "polarity", "condition", "durable", "corrects", "sequence", "quote"}]
  p_author text
) returns integer -- how many were taken
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_user   constant text := p_conversation.user_id;
  v_topics text[];
  v_given  record;
  v_m      memory.conversation_messages;
  v_item   jsonb;
  v_e      memory.profile_evidence;
  v_chain  text;
  v_digest text;
  v_id     uuid;
  v_chains text[] := '{}';
  v_taken  integer := 0;
begin
  if json_typeof(p_items) is distinct from 'array' or json_array_length(p_items) = 0 or starts_with(v_user, 'space:')
    or p_conversation.opted_out_at is not null
  then
    return 0;
  end if;
  perform memory_private.lock_profile(v_user);
  if memory_private.refuses(v_user, 'profile') then
    return 0;
  end if;
  v_topics := memory_private.opted_out_topics(v_user, p_conversation.id);
  for v_given in
    select e.value as item, i.* from json_array_elements(p_items) with ordinality as e (value, position)
    cross join lateral json_to_record(e.value) as i (durable boolean, corrects boolean, sequence bigint, quote text)
    order by e.position
  loop
    v_item := memory_private.checked_profile_item(v_given.item);
    continue when v_item is null;
    select m.* into v_m from memory.conversation_messages m
     where m.user_id = v_user and m.conversation_id = p_conversation.id and m.sequence = v_given.sequence;
    continue when not found or not memory_private.is_own_message(v_m);
    v_e.quote := memory_private.locate_quote(v_m.text, btrim(v_given.quote, E' \n\t\r'));
    continue when v_e.quote is null or length(v_e.quote) > 500;
    continue when memory_private.mentions(
      concat_ws(' ', v_item ->> 'subject', v_item ->> 'value', v_item ->> 'condition', v_e.quote), v_topics,
      p_conversation.language);
    v_item := v_item || '{"agent_id": null}';
    v_chain := memory_private.profile_chain(null, v_item ->> 'kind', v_item ->> 'subject', v_item ->> 'condition');
    v_digest := memory_private.profile_digest(
      v_item ->> 'subject', v_item ->> 'condition', v_item ->> 'value', (v_item ->> 'polarity')::integer);
    continue when exists ( -- a person deleted it
      select from memory.profile_items i where i.user_id = v_user and i.digest = v_digest and i.state = 'deleted');
    v_id := memory_private.profile_row(
      v_user, v_item, v_chain, v_digest, p_author, case when p_author = 'extractive' then 'rule' else 'model' end,
      least(v_m.created_at, clock_timestamp()));
    continue when v_id is null; -- a full profile takes no more
    v_e.conversation_id := p_conversation.id;
    v_e.message_id := v_m.message_id;
    v_e.sequence := v_m.sequence;
    v_e.place := strpos(v_m.text, v_e.quote);
    v_e.durable := coalesce(v_given.durable, false);
    v_e.corrects := coalesce(v_given.corrects, false);
    v_e.relayed := memory_private.is_relayed_message(v_m);
    v_e.said_at := least(v_m.created_at, clock_timestamp()); -- a clock may have been ahead
    perform memory_private.add_profile_evidence(v_user, v_chain, v_digest, v_id, v_e);
    v_chains := v_chains || v_chain;
    v_taken := v_taken + 1;
  end loop;
  for v_chain in select distinct c from unnest(v_chains) c loop
    perform memory_private.settle_profile(v_user, v_chain);
  end loop;
  return v_taken;
end
$function$;

-- Deletes what messages say of a user's profile; what nothing says any more goes at the end of the transaction. The caller
-- holds the conversation's row lock. Returns how many items go with it.
create or replace function memory_private.delete_profile_evidence(
  p_user_id text, p_conversation_id uuid,
  p_message_ids text[] default null, -- null: all of the conversation's
  p_text        text   default null, -- what the message says now: what it still says stays
  p_dry_run     boolean default false
) returns bigint
language plpgsql volatile security invoker set search_path = ''
set plan_cache_mode = force_custom_plan -- planned for one owner, it locks one partition
as $function$
declare
  v_gone bigint;
begin
  if p_dry_run is not false or p_text is null then
    select count(*) into v_gone
      from (select e.item_id, count(*) as count from memory.profile_evidence e
            where e.user_id = p_user_id and e.conversation_id = p_conversation_id
              and (p_message_ids is null or e.message_id = any (p_message_ids))
            group by e.item_id offset 0) t
     cross join lateral (
       select from memory.profile_items i
       where i.user_id = p_user_id and i.id = t.item_id and coalesce(i.confirmed_at, i.suggested_at) is null
         and i.evidence <= t.count offset 0) i;
  end if;
  if not p_dry_run then
    delete from memory.profile_evidence e
     where e.user_id = p_user_id and e.conversation_id = p_conversation_id
       and (p_message_ids is null or e.message_id = any (p_message_ids))
       and (p_text is null
            or strpos(memory_private.plain_letters(p_text), memory_private.plain_letters(e.quote)) = 0);
  end if;
  return v_gone;
end
$function$;

-- Deletes what forgotten conversations say of a user's profile, and with all conversations the profile itself and what they
-- consented to. Returns how many items go. The caller holds the conversations' row locks.
create or replace function memory_private.forget_profile(
  p_user_id text, p_agent_id text, p_thread_id text, p_dry_run boolean
) returns bigint
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_gone bigint;
  v_id   uuid;
begin
  if starts_with(p_user_id, 'space:') then
    return 0;
  elsif p_thread_id is null and p_agent_id is null then
    select count(*) into v_gone from memory.profile_items i where i.user_id = p_user_id and i.state <> 'deleted';
    if not p_dry_run then
      perform memory_private.lock_profile(p_user_id);
      delete from memory.profile_items i where i.user_id = p_user_id;
      delete from memory.consents c where c.user_id = p_user_id;
    end if;
    return v_gone;
  end if;
  select count(*) into v_gone
    from (select e.item_id, count(*) as count from memory.profile_evidence e
          join memory.conversations c on c.user_id = p_user_id and c.id = e.conversation_id
          where e.user_id = p_user_id and (p_agent_id is null or c.agent_id = p_agent_id)
            and (p_thread_id is null or c.thread_id = p_thread_id)
          group by e.item_id offset 0) t
   cross join lateral (
     select from memory.profile_items i
     where i.user_id = p_user_id and i.id = t.item_id and coalesce(i.confirmed_at, i.suggested_at) is null
         and i.evidence <= t.count offset 0) i;
  for v_id in
    select c.id from memory.conversations c
    where c.user_id = p_user_id and (p_agent_id is null or c.agent_id = p_agent_id)
      and (p_thread_id is null or c.thread_id = p_thread_id) and not p_dry_run
  loop
    perform memory_private.delete_profile_evidence(p_user_id, v_id);
  end loop;
  return v_gone;
end
$function$;

-- Deletes what mentions a topic: in one conversation what its messages say of it, else whatever the profile says of it, also
-- what a person wrote.
create or replace function memory_private.delete_profile_mentions(
  p_user_id text, p_conversation_id uuid, p_topic text
) returns void
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_row record;
begin
  for v_row in
    select e.item_id, e.message_id, e.conversation_id,
           concat_ws(' ', i.subject, i.value, i.condition, e.quote) as words
    from memory.profile_evidence e
    join memory.profile_items i on i.user_id = p_user_id and i.id = e.item_id
    where e.user_id = p_user_id and (p_conversation_id is null or e.conversation_id = p_conversation_id)
  loop
    if memory_private.mentions(v_row.words, array[p_topic]) then
      delete from memory.profile_evidence e
       where e.user_id = p_user_id and e.item_id = v_row.item_id and e.conversation_id = v_row.conversation_id
         and e.message_id = v_row.message_id;
    end if;
  end loop;
  for v_row in
    select i.id, i.chain, concat_ws(' ', i.subject, i.value, i.condition) as words from memory.profile_items i
    where i.user_id = p_user_id and p_conversation_id is null and i.state <> 'deleted'
    order by i.chain
  loop
    if memory_private.mentions(v_row.words, array[p_topic]) then
      perform memory_private.lock_profile(p_user_id);
      delete from memory.profile_items i where i.user_id = p_user_id and i.id = v_row.id;
      perform memory_private.settle_profile(p_user_id, v_row.chain);
    end if;
  end loop;
end
$function$;

-- Returns items as readers get them, each with its evidence.
create or replace function memory_private.profile_json(p_item memory.profile_items, p_at timestamptz default null)
returns json
language plpgsql stable security invoker set search_path = ''
as $function$
begin
  return json_build_object(
    'id', p_item.id, 'agent_id', p_item.agent_id, 'kind', p_item.kind, 'subject', p_item.subject, 'value', p_item.value,
    'polarity', p_item.polarity, 'condition', p_item.condition, 'basis', p_item.basis, 'state', p_item.state,
    'pinned', p_item.pinned, 'author', p_item.author, 'author_kind', p_item.author_kind,
    'first_seen_at', p_item.first_seen_at, 'last_seen_at', p_item.last_seen_at, 'held_at', p_item.held_at,
    'ended_at', p_item.ended_at, 'superseded_by', p_item.superseded_by, 'suggested_at', p_item.suggested_at,
    'confirmed_at', p_item.confirmed_at, 'confirmed_by', p_item.confirmed_by, 'deleted_at', p_item.deleted_at,
    'chain', case when p_item.state = 'deleted' then p_item.chain end,
    'digest', case when p_item.state = 'deleted' then p_item.digest end, 'evidence', coalesce((
      select json_agg(json_build_object(
               'thread_id', c.thread_id, 'agent_id', c.agent_id, 'message_id', e.message_id, 'sequence', e.sequence,
               'quote', e.quote, 'durable', e.durable, 'corrects', e.corrects, 'at', e.said_at,
               'contradicted_at', e.contradicted_at)
             order by e.said_at, e.conversation_id, e.sequence)
      from memory.profile_evidence e
      join memory.conversations c on c.user_id = p_item.user_id and c.id = e.conversation_id
      where e.user_id = p_item.user_id and e.item_id = p_item.id and (p_at is null or e.said_at <= p_at)), '[]'));
end
$function$;

create function public.memory_profile(
  p_user_id  text        default null,
  p_at       timestamptz default null,
  p_agent_id text        default null, -- null: with all agents
  p_states   json        default null, -- null: held and proposed
  p_limit    integer     default 200,
  p_after    json        default null, -- after of the last page
  p_item_id  uuid        default null
) returns json
language plpgsql stable security invoker set search_path = ''
as $function$
declare
  v_user   constant text := memory_private.resolve_profile_owner(p_user_id);
  v_most   constant integer := greatest(1, least(coalesce(p_limit, 200), 500));
  v_states constant text[] := case when json_typeof(p_states) = 'array' then array(select json_array_elements_text(p_states))
    when p_item_id is null then '{held,proposed}' else '{held,proposed,superseded}' end;
  v_kinds  constant text[] := '{instruction,constraint,preference,trait,fact}';
  v_bytes  constant integer := (memory_private.current_limits()).answer_bytes;
  v_chain  text;
  v_after  record;
  v_i      memory.profile_items;
  v_size   bigint := 0;
  v_row    json;
  v_rows   json[] := '{}';
  v_more   boolean := false;
begin
  select not t.pinned as unpinned, array_position(v_kinds, t.kind) as place, t.last_seen_at, t.id into v_after
    from json_to_record(p_after) as t (pinned boolean, kind text, last_seen_at timestamptz, id uuid);
  select i.chain into v_chain from memory.profile_items i where i.user_id = v_user and i.id = p_item_id;
  for v_i in
    select i.* from memory.profile_items i
    cross join lateral (
      select not i.pinned as unpinned, array_position(v_kinds, i.kind) as place offset 0) k
    where i.user_id = v_user and (p_item_id is null or i.chain = v_chain)
      and (p_agent_id is null or i.agent_id is null or i.agent_id = p_agent_id)
      and (p_at is null and i.state = any (v_states) or i.state <> 'deleted' and i.held_at <= p_at and (i.ended_at is null or i.ended_at > p_at))
      and (v_after.id is null or (k.unpinned, k.place) > (v_after.unpinned, v_after.place)
           or (k.unpinned, k.place) = (v_after.unpinned, v_after.place)
              and (i.last_seen_at < v_after.last_seen_at or i.last_seen_at = v_after.last_seen_at and i.id > v_after.id))
    order by k.unpinned, k.place, i.last_seen_at desc, i.id
    limit v_most + 1
  loop
    v_more := cardinality(v_rows) = v_most or v_size > v_bytes;
    exit when v_more;
    v_row := memory_private.profile_json(v_i, p_at);
    v_size := v_size + octet_length(v_row::text);
    v_rows := array_append(v_rows, v_row);
  end loop;
  v_row := v_rows[cardinality(v_rows)];
  return json_build_object('items', array_to_json(v_rows), 'after', case when v_more then json_build_object(
    'pinned', v_row -> 'pinned', 'kind', v_row -> 'kind', 'last_seen_at', v_row -> 'last_seen_at', 'id', v_row -> 'id') end);
end
$function$;
comment on function public.memory_profile is
  'langchain-supabase-memory: Read what is known of a user, with the words that say so: instructions and constraints first,
  then preferences, traits and facts; pinned items before all. Nothing is written.

p_user_id: the user; null: the subject of the caller''s token.
p_at: what held at this time, by when things were said; null: now.
p_agent_id: what holds with this agent, and with all; null: with any.
p_states: which states, a list of text: held, proposed, superseded, deleted; null: held and proposed. With p_at it counts
  for nothing.
p_limit: the most items of one answer, at most 500.
p_after: after of the last page; null: from the beginning.
- pinned: boolean. As it was answered.
- kind: text. As it was answered.
- last_seen_at: timestamp. As it was answered.
- id: uuid. As it was answered.
p_item_id: the history of this item: whatever is or was known of the same, the superseded included; null: all items.
Returns: object.
- items: object[]. The items.
- items[].id: uuid. The item.
- items[].agent_id: text or null. The agent with which it holds; null: with all.
- items[].kind: text. fact, preference, instruction, trait or constraint.
- items[].subject: text. What it is about; empty if it was deleted.
- items[].value: text. What it says of that; empty if it was deleted.
- items[].polarity: integer. 1: they want or like it; -1: they do not; 0: neither.
- items[].condition: text or null. When it holds; null: always.
- items[].basis: text. Why it holds: person, corrected, stated, repeated; inferred, if it does not.
- items[].state: text. proposed, held, superseded or deleted.
- items[].pinned: boolean. Whether a person pinned it.
- items[].author: text. Who wrote it first.
- items[].author_kind: text. What that is: person, application, model, rule or import.
- items[].first_seen_at: timestamp. When it was first said.
- items[].last_seen_at: timestamp. When it was last said.
- items[].held_at: timestamp or null. Since when it holds; null: it never did.
- items[].ended_at: timestamp or null. Until when; null: it is not over.
- items[].superseded_by: uuid or null. What holds in its place.
- items[].suggested_at: timestamp or null. When a model or an import put it forward, without words of the user.
- items[].confirmed_at: timestamp or null. When a person wrote or confirmed it.
- items[].confirmed_by: text or null. Who.
- items[].deleted_at: timestamp or null. When a person deleted it.
- items[].chain: text or null. Of a deleted item: a digest of what it was about.
- items[].digest: text or null. Of a deleted item: what keeps it from coming back; empty if it was remembered again.
- items[].evidence: object[]. The messages that say so, at most 20, in the order in which they were said.
- items[].evidence[].thread_id: text. The thread of the conversation.
- items[].evidence[].agent_id: text. Its agent.
- items[].evidence[].message_id: text. The id of the message.
- items[].evidence[].sequence: integer. Its number.
- items[].evidence[].quote: text. The words, as they stand in it.
- items[].evidence[].durable: boolean. Whether they say that it lasts.
- items[].evidence[].corrects: boolean. Whether they correct what was thought before.
- items[].evidence[].at: timestamp. When it was said.
- items[].evidence[].contradicted_at: timestamp or null. When the user said what its conversation''s board holds for the
  opposite; null: they did not.
- after: object or null. Where the next page goes on; null: there is none.
- after.pinned: boolean. Pass it on in p_after.
- after.kind: text. The same.
- after.last_seen_at: timestamp. The same.
- after.id: uuid. The same.
Errors:
- PT400: p_user_id names a space, which has no profile; or none is given, and the caller''s token names nobody.';

-- Returns the open row of a value, a new one where none is open, and what it was. The caller holds the profile's lock and
-- settles the chain.
create or replace function memory_private.open_profile_row(
  p_user_id text, p_item jsonb, p_chain text, p_digest text, p_author text, p_author_kind text, p_at timestamptz
) returns memory.profile_items
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_id  constant uuid := memory_private.profile_row(p_user_id, p_item, p_chain, p_digest, p_author, p_author_kind, p_at);
  v_row memory.profile_items;
begin
  if v_id is null then
    raise exception 'the profile is full' using errcode = 'PT413',
      hint = 'delete what is not needed, or raise profile_items in memory_private.limits';
  end if;
  select i.* into v_row from memory.profile_items i where i.user_id = p_user_id and i.id = v_id;
  if v_row.state = 'superseded' then -- it comes again, as another row: the history stays
    insert into memory.profile_items (
      user_id, agent_id, kind, subject, value, polarity, condition, chain, digest, basis, author, author_kind, first_seen_at,
      last_seen_at)
    values (
      p_user_id, v_row.agent_id, v_row.kind, v_row.subject, v_row.value, v_row.polarity, v_row.condition, p_chain, p_digest,
      'inferred', p_author, p_author_kind, p_at, p_at)
    returning * into v_row;
  end if;
  return v_row;
end
$function$;

-- Returns the time of what is done to a chain now: after all that there is, also where the clock was set back since.
create or replace function memory_private.profile_clock(p_user_id text, p_chain text) returns timestamptz
language plpgsql volatile security invoker set search_path = ''
as $function$
begin
  return greatest(clock_timestamp(), (
    select max(greatest(i.last_seen_at, i.confirmed_at, i.deleted_at)) + interval '1 microsecond'
    from memory.profile_items i where i.user_id = p_user_id and i.chain = p_chain));
end
$function$;

-- Writes what a model says of a user without words of theirs: proposed, until a person confirms it. What holds stays, and
-- what a person deleted does not come back. Of what models suggested 100 items wait at most, so that they fill no profile.
-- The caller holds the profile's lock.
create or replace function memory_private.suggest_profile_item(
  p_user_id text, p_item jsonb, p_by text, out item_id uuid, out is_new boolean
)
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_chain  constant text := memory_private.profile_chain(
    p_item ->> 'agent_id', p_item ->> 'kind', p_item ->> 'subject', p_item ->> 'condition');
  v_digest constant text := memory_private.profile_digest(
    p_item ->> 'subject', p_item ->> 'condition', p_item ->> 'value', (p_item ->> 'polarity')::integer);
begin
  if exists (select from memory.profile_items i where i.user_id = p_user_id and i.digest = v_digest and i.state = 'deleted') then
    raise exception 'the user deleted it' using errcode = 'PT400', hint = 'do not suggest it again';
  end if;
  select i.id into item_id from memory.profile_items i
   where i.user_id = p_user_id and i.chain = v_chain and i.digest = v_digest and i.state in ('proposed', 'held');
  is_new := not found;
  if not is_new then
    return;
  end if;
  if (select count(*) from memory.profile_items i
      where i.user_id = p_user_id and i.state = 'proposed' and i.author_kind = 'model' and i.suggested_at is not null) >= 100
  then
    raise exception 'too many suggestions wait for the user' using errcode = 'PT413',
      hint = 'confirm or delete what is proposed';
  end if;
  select r.id into item_id from memory_private.open_profile_row(
    p_user_id, p_item, v_chain, v_digest, p_by, 'model', memory_private.profile_clock(p_user_id, v_chain)) r;
  update memory.profile_items i set suggested_at = i.first_seen_at where i.user_id = p_user_id and i.id = item_id;
  perform memory_private.settle_profile(p_user_id, v_chain);
end
$function$;

-- Writes what a person says of themself, from now on; returns the item. The caller holds the profile's lock.
create or replace function memory_private.assert_profile_item(
  p_user_id text, p_item jsonb, p_by text, p_author_kind text, out item_id uuid, out is_new boolean
)
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_chain  constant text := memory_private.profile_chain(
    p_item ->> 'agent_id', p_item ->> 'kind', p_item ->> 'subject', p_item ->> 'condition');
  v_now    constant timestamptz := memory_private.profile_clock(p_user_id, v_chain);
  v_digest constant text := memory_private.profile_digest(
    p_item ->> 'subject', p_item ->> 'condition', p_item ->> 'value', (p_item ->> 'polarity')::integer);
  v_row    memory.profile_items;
begin
  -- What a person deleted they may write again: then a conversation may, too.
  update memory.profile_items i set digest = '' where i.user_id = p_user_id and i.digest = v_digest and i.state = 'deleted';
  v_row := memory_private.open_profile_row(p_user_id, p_item, v_chain, v_digest, p_by, p_author_kind, v_now);
  item_id := v_row.id;
  is_new := v_row.first_seen_at = v_now;
  if v_row.state = 'held' and v_row.basis = 'person' then
    return; -- said again
  end if;
  update memory.profile_items i set confirmed_at = v_now, confirmed_by = p_by
   where i.user_id = p_user_id and i.id = item_id;
  perform memory_private.settle_profile(p_user_id, v_chain);
end
$function$;

-- Deletes an item: its words and quotes go, also from its history. What it says keeps its digest, so that no conversation
-- brings it back, and its time, so that what it superseded does not hold again. The caller holds the profile's lock.
create or replace function memory_private.delete_profile_item(p_old memory.profile_items) returns void
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_now constant timestamptz := clock_timestamp();
begin
  delete from memory.profile_evidence e
   using memory.profile_items i
   where i.user_id = p_old.user_id and i.chain = p_old.chain and i.digest = p_old.digest and i.state <> 'deleted'
     and e.user_id = p_old.user_id and e.item_id = i.id;
  update memory.profile_items i
     set subject = '', value = '', condition = null, polarity = 0, state = 'deleted', deleted_at = v_now, pinned = false,
         evidence = 0, suggested_at = null, confirmed_at = null, confirmed_by = null
   where i.user_id = p_old.user_id and i.chain = p_old.chain and i.digest = p_old.digest and i.state <> 'deleted';
  perform memory_private.settle_profile(p_old.user_id, p_old.chain);
end
$function$;

create function public.memory_edit_profile(
  p_action      text, -- remember, confirm, correct, delete, pin or unpin
  p_id          uuid default null,
  p_item        json default null,
  p_by          text default null, -- who; null: the user
  p_user_id     text default null,
  p_author_kind text default 'person' -- or application, or model
) returns jsonb
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_user constant text := memory_private.resolve_profile_owner(p_user_id);
  v_old  memory.profile_items;
  v_item jsonb;
  v_done record;
begin
  perform memory_private.check_limits(p_item);
  if coalesce(p_action not in ('remember', 'confirm', 'correct', 'delete', 'pin', 'unpin'), true)
    or coalesce(p_author_kind not in ('person', 'application', 'model'), true)
    or p_author_kind = 'model' and p_action <> 'remember'
  then
    raise exception 'there is no such action, or no such kind of author' using errcode = 'PT400',
      hint = 'it is remember, confirm, correct, delete, pin or unpin, by a person or an application; a model only suggests, by remember';
  end if;
  p_by := coalesce(p_by, v_user);
  if octet_length(p_by) not between 1 and 1000 then
    raise exception 'nobody is named' using errcode = 'PT400', hint = 'pass who does it as p_by, at most 1000 bytes';
  end if;
  perform memory_private.lock_opt_outs(v_user), memory_private.lock_profile(v_user);
  if p_action <> 'remember' then
    select i.* into v_old from memory.profile_items i
     where i.user_id = v_user and i.id = p_id and i.state <> 'deleted';
    if not found then
      raise exception 'there is no such item' using errcode = 'PT404', hint = 'read the profile again';
    end if;
    v_item := to_jsonb(v_old);
  end if;
  if p_action in ('remember', 'correct') then
    v_item := memory_private.checked_profile_item((coalesce(v_item, '{}')
      || jsonb_strip_nulls(coalesce(p_item::jsonb, '{}'))
      || case when p_action = 'correct' then jsonb_build_object(
           'agent_id', v_old.agent_id, 'kind', v_old.kind, 'subject', v_old.subject, 'condition', v_old.condition)
         else '{}' end)::json);
    if v_item is null or p_action = 'correct' and p_item::jsonb ->> 'value' is null then
      raise exception 'it says nothing, is too long, or is of no kind that there is' using errcode = 'PT400',
        hint = 'pass a kind (fact, preference, instruction, trait or constraint) and a value of at most 2000 bytes';
    end if;
  end if;
  if p_action in ('remember', 'correct', 'confirm') then
    if memory_private.refuses(v_user, 'profile') then
      raise exception 'the user does not allow a profile' using errcode = 'PT400', hint = 'ask for their consent first';
    end if;
    if memory_private.mentions(
      concat_ws(' ', v_item ->> 'subject', v_item ->> 'value', v_item ->> 'condition'),
      memory_private.opted_out_topics(v_user, null))
    then
      raise exception 'it mentions a topic that is not to be remembered'
        using errcode = 'PT400', hint = 'leave that out, or opt in to the topic';
    end if;
    if p_author_kind = 'model' then
      v_done := memory_private.suggest_profile_item(v_user, v_item, p_by);
    else
      v_done := memory_private.assert_profile_item(v_user, v_item, p_by, p_author_kind);
    end if;
  elsif p_action = 'delete' then
    perform memory_private.delete_profile_item(v_old);
  else
    update memory.profile_items i set pinned = p_action = 'pin' where i.user_id = v_user and i.id = v_old.id;
  end if;
  if p_action not in ('remember', 'correct', 'confirm') then
    return jsonb_build_object('item_id', v_old.id, 'is_new', false);
  end if;
  if p_action = 'correct' and v_old.pinned and v_done.item_id <> v_old.id then -- what a person holds on to is what holds
    update memory.profile_items i set pinned = i.id = v_done.item_id
     where i.user_id = v_user and i.id in (v_old.id, v_done.item_id);
  end if;
  return jsonb_build_object('item_id', v_done.item_id, 'is_new', v_done.is_new);
end
$function$;
comment on function public.memory_edit_profile is
  'langchain-supabase-memory: What a person does with their profile. It is noted who did it and when, and counts for more
  than what conversations say; only the user''s own correction in their words takes over from it. What a model remembers is
  proposed, and holds once a person confirms it.

p_action: remember (an item without a conversation), confirm (what is proposed, or held before, holds), correct (another
  value, from now on), delete (its words go, and no conversation brings it back), pin or unpin.
p_id: the item; null with remember.
p_item: with remember the item, with correct its new value; else null.
- kind: text or null. fact, preference, instruction, trait or constraint. Needed with remember.
- subject: text or null. What it is about, at most 1000 bytes; null: what it says, so that nothing is superseded.
- value: text. What it says, at most 2000 bytes.
- polarity: integer or null. 1: they want or like it; -1: they do not; 0 or null: neither, or as it was.
- condition: text or null. When it holds; null: always.
- agent_id: text or null. The agent with which it holds; null: with all.
p_by: who does it, 1 to 1000 bytes; null: the user.
p_user_id: the user; null: the subject of the caller''s token.
p_author_kind: what p_by is: person, application or model. A model may only remember.
Returns: object.
- item_id: uuid. The item: with correct the new one.
- is_new: boolean. Whether there is an item that was not there before.
Errors:
- PT400: there is no such action, the item says nothing, is too long or of no kind, it mentions a topic that is not to be
  remembered, the user does not allow a profile, a model suggests what the user deleted, p_user_id names a space, or nobody is named and the caller''s token names
  nobody.
- PT404: there is no such item.
- PT413: the profile holds as many items as it may (profile_items, see memory_limits), 100 suggestions of models wait for
  the user already, or p_item is larger than call_bytes.';

-- Restores one item of a profile, as memory_profile gave it. Evidence counts if the same message says so here, too. Returns
-- whether something was put back; null where it is refused. The caller holds the profile's lock, and settles the chain.
create or replace function memory_private.restore_profile_item(
  p_user_id text, p_item json, p_topics text[], out chain text, out restored boolean
)
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_given  constant jsonb := p_item;
  v_item   constant jsonb := memory_private.checked_profile_item(p_item);
  v_author constant text := coalesce(nullif(left(v_given ->> 'author', 200), ''), 'import');
  v_kind   constant text := memory_private.author_kind(v_given ->> 'author_kind');
  v_first  constant timestamptz := memory_private.parse_past_time(v_given ->> 'first_seen_at');
  v_at     constant timestamptz := case when v_given ->> 'confirmed_at' is not null
    then memory_private.parse_past_time(v_given ->> 'confirmed_at') end;
  v_put_at constant timestamptz := case when v_given ->> 'suggested_at' is not null
    then memory_private.parse_past_time(v_given ->> 'suggested_at') end;
  v_digest text;
  v_row    memory.profile_items;
  v_e      memory.profile_evidence;
  v_m      memory.conversation_messages;
  v_each   record;
  v_id     uuid;
begin
  restored := null;
  if v_item is null
    or memory_private.mentions(concat_ws(' ', v_item ->> 'subject', v_item ->> 'value', v_item ->> 'condition'), p_topics)
  then
    return;
  end if;
  chain := memory_private.profile_chain(
    v_item ->> 'agent_id', v_item ->> 'kind', v_item ->> 'subject', v_item ->> 'condition');
  v_digest := memory_private.profile_digest(
    v_item ->> 'subject', v_item ->> 'condition', v_item ->> 'value', (v_item ->> 'polarity')::integer);
  if exists (select from memory.profile_items i where i.user_id = p_user_id and i.digest = v_digest and i.state = 'deleted') then
    return; -- a person deleted it here
  end if;
  restored := not exists (
    select from memory.profile_items i
    where i.user_id = p_user_id and i.chain = restore_profile_item.chain and i.digest = v_digest);
  v_id := memory_private.profile_row(p_user_id, v_item, chain, v_digest, v_author, v_kind, v_first);
  if v_id is null then
    raise exception 'the profile is full' using errcode = 'PT413', hint = 'raise profile_items in memory_private.limits';
  end if;
  if coalesce(v_at, v_put_at) is not null and not exists (
    select from memory.profile_items i
    where i.user_id = p_user_id and i.chain = restore_profile_item.chain and i.digest = v_digest
      and i.confirmed_at is not distinct from coalesce(v_at, i.confirmed_at)
      and i.suggested_at is not distinct from coalesce(v_put_at, i.suggested_at))
  then
    select i.* into v_row from memory.profile_items i where i.user_id = p_user_id and i.id = v_id;
    if v_row.confirmed_at <> v_at or v_row.suggested_at <> v_put_at then -- it came again later: another stretch of time
      v_row.id := gen_random_uuid();
      v_row.state := 'superseded';
      v_row.pinned := false;
      v_row.evidence := 0;
      v_row.suggested_at := null;
      v_row.confirmed_at := null;
      v_row.confirmed_by := null;
      insert into memory.profile_items select v_row.*;
    end if;
    update memory.profile_items i
       set suggested_at = coalesce(v_put_at, i.suggested_at), confirmed_at = coalesce(v_at, i.confirmed_at),
           confirmed_by = case when v_at is null then i.confirmed_by else
             coalesce(nullif(left(v_given ->> 'confirmed_by', 200), ''), 'import') end
     where i.user_id = p_user_id and i.id = v_row.id;
    restored := true;
  end if;
  update memory.profile_items i set pinned = true
   where i.user_id = p_user_id and i.id = v_id and v_given -> 'pinned' = 'true' and v_given ->> 'state' <> 'superseded';
  for v_each in
    select * from json_to_recordset(p_item -> 'evidence') as e (
      thread_id text, agent_id text, message_id text, quote text, durable boolean, corrects boolean, contradicted_at text)
  loop
    select c.id into v_e.conversation_id from memory.conversations c
     where c.user_id = p_user_id and c.agent_id = v_each.agent_id and c.thread_id = v_each.thread_id and c.opted_out_at is null;
    continue when not found;
    select m.* into v_m from memory.conversation_messages m
     where m.user_id = p_user_id and m.conversation_id = v_e.conversation_id and m.message_id = v_each.message_id;
    continue when not found or not memory_private.is_own_message(v_m);
    v_e.quote := memory_private.locate_quote(v_m.text, btrim(v_each.quote, E' \n\t\r'));
    continue when v_e.quote is null or length(v_e.quote) > 500 or memory_private.mentions(v_e.quote, p_topics);
    v_e.message_id := v_m.message_id;
    v_e.sequence := v_m.sequence;
    v_e.place := strpos(v_m.text, v_e.quote);
    v_e.durable := coalesce(v_each.durable, false);
    v_e.corrects := coalesce(v_each.corrects, false);
    v_e.relayed := memory_private.is_relayed_message(v_m);
    v_e.said_at := least(v_m.created_at, clock_timestamp());
    v_e.contradicted_at := case when v_each.contradicted_at is not null
      then memory_private.parse_past_time(v_each.contradicted_at) end;
    perform memory_private.add_profile_evidence(p_user_id, chain, v_digest, v_id, v_e);
  end loop;
  -- Without a message, a person, a model or an import nothing says so.
  if not exists (
    select from memory.profile_items i
    where i.user_id = p_user_id and i.chain = restore_profile_item.chain and i.digest = v_digest and (
      coalesce(i.confirmed_at, i.suggested_at) is not null
      or exists (select from memory.profile_evidence e where e.user_id = p_user_id and e.item_id = i.id)))
  then
    restored := null;
  end if;
end
$function$;

-- Deletes what was derived for a purpose that a user refuses. Returns how many items and topics went. The caller holds the
-- lock on opt-outs, all of the user's conversations, and the profile's lock.
create or replace function memory_private.delete_refused(
  p_user_id text, p_purpose text, out profile bigint, out topics bigint
)
language plpgsql volatile security invoker set search_path = ''
as $function$
begin
  profile := 0;
  topics := 0;
  if p_purpose = 'profile' then
    -- What a person deleted has no words, and still does not come back if they allow it again.
    delete from memory.profile_items i where i.user_id = p_user_id and i.state <> 'deleted';
    get diagnostics profile = row_count;
  elsif p_purpose = 'topics' then
    topics := memory_private.delete_topics(p_user_id);
  elsif p_purpose = 'analytics' then
    perform memory_private.delete_usage(p_user_id);
  else
    perform memory_private.clear_speech(p_user_id, p_purpose);
  end if;
end
$function$;

-- Restores a profile, and what its user allows, as a document has them. What was set here stays, unless it is refused now.
create or replace function memory_private.restore_profile(
  p_user_id text, p_edits json, out restored integer, out refused integer
)
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_topics constant text[] := memory_private.opted_out_topics(p_user_id, null);
  v_each   json;
  v_done   record;
  v_chains text[] := '{}';
  v_chain  text;
  v_count  integer;
  v_purposes text[] := '{}'; -- that are refused now
begin
  restored := 0;
  refused := 0;
  for v_each in select e from json_array_elements(coalesce(p_edits -> 'consents', '[]')) e loop
    insert into memory.consents (user_id, purpose, allowed, changed_by, changed_at)
    values (p_user_id, v_each ->> 'purpose', (v_each ->> 'allowed')::boolean, v_each ->> 'by',
            memory_private.parse_past_time(v_each ->> 'at'))
    on conflict (user_id, purpose) do nothing;
    get diagnostics v_count = row_count;
    restored := restored + v_count;
    if v_count > 0 and not (v_each ->> 'allowed')::boolean then
      v_purposes := v_purposes || (v_each ->> 'purpose');
    end if;
  end loop;
  -- With these locks no message is changed or forgotten meanwhile.
  perform from memory.conversations c
   where c.user_id = p_user_id and (v_purposes <> '{}' or (c.agent_id, c.thread_id) in (
     select e ->> 'agent_id', e ->> 'thread_id'
     from json_array_elements(coalesce(p_edits -> 'profile', '[]')) i
     cross join lateral json_array_elements(coalesce(i -> 'evidence', '[]')) e))
   order by c.user_id, c.id
     for no key update;
  perform memory_private.lock_profile(p_user_id);
  perform memory_private.delete_refused(p_user_id, p) from unnest(v_purposes) p;
  if memory_private.refuses(p_user_id, 'profile') then
    refused := json_array_length(coalesce(p_edits -> 'profile', '[]'));
    return;
  end if;
  for v_each in
    select e from json_array_elements(coalesce(p_edits -> 'profile', '[]')) e order by e ->> 'state' = 'deleted' desc
  loop
    if v_each ->> 'state' = 'deleted' then
      insert into memory.profile_items (
        user_id, kind, subject, value, chain, digest, basis, state, author, author_kind, first_seen_at, last_seen_at, held_at,
        deleted_at)
      select p_user_id, v_each ->> 'kind', '', '', v_each ->> 'chain', v_each ->> 'digest', v_each ->> 'basis', 'deleted',
             coalesce(nullif(left(v_each ->> 'author', 200), ''), 'import'),
             memory_private.author_kind(v_each ->> 'author_kind'), memory_private.parse_past_time(v_each ->> 'first_seen_at'),
             memory_private.parse_past_time(v_each ->> 'last_seen_at'),
             case when v_each ->> 'held_at' is not null then memory_private.parse_past_time(v_each ->> 'held_at') end,
             memory_private.parse_past_time(v_each ->> 'deleted_at')
       where not exists (
         select from memory.profile_items i
         where i.user_id = p_user_id and i.chain = v_each ->> 'chain' and i.digest = v_each ->> 'digest');
      get diagnostics v_count = row_count;
      restored := restored + v_count;
      v_chains := v_chains || (v_each ->> 'chain');
    else
      v_done := memory_private.restore_profile_item(p_user_id, v_each, v_topics);
      restored := restored + coalesce(v_done.restored, false)::integer;
      refused := refused + (v_done.restored is null)::integer;
      v_chains := v_chains || v_done.chain;
    end if;
  end loop;
  for v_chain in select distinct c from unnest(v_chains) c where c is not null loop
    perform memory_private.settle_profile(p_user_id, v_chain);
  end loop;
end
$function$;

create function public.memory_consent(
  p_purpose text,
  p_allowed boolean,
  p_by      text,
  p_user_id text default null
) returns jsonb
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_user constant text := memory_private.resolve_profile_owner(p_user_id);
  v_was  boolean;
  v_gone bigint := 0;
  v_topics bigint := 0;
  v_now  timestamptz;
begin
  if p_allowed is null then
    raise exception 'allowed or not' using errcode = 'PT400', hint = 'pass p_allowed => true or false';
  end if;
  -- No commit under way has read otherwise. Conversations come before the profile, as where messages are forgotten.
  perform memory_private.lock_opt_outs(v_user, true);
  if not p_allowed then
    perform from memory.conversations c where c.user_id = v_user order by c.user_id, c.id for no key update;
  end if;
  perform memory_private.lock_profile(v_user);
  v_now := clock_timestamp();
  select c.allowed into v_was from memory.consents c where c.user_id = v_user and c.purpose = p_purpose;
  insert into memory.consents (user_id, purpose, allowed, changed_by, changed_at)
  values (v_user, p_purpose, p_allowed, p_by, v_now)
  on conflict (user_id, purpose) do update
    set allowed = excluded.allowed, changed_by = excluded.changed_by, changed_at = excluded.changed_at;
  if not p_allowed then
    select d.profile, d.topics into v_gone, v_topics from memory_private.delete_refused(v_user, p_purpose) d;
  elsif p_purpose = 'topics' and not v_was then
    perform memory_private.mark_all_stretches(v_user);
  end if;
  return jsonb_build_object('changed', v_was is distinct from p_allowed, 'profile', v_gone, 'topics', v_topics);
end
$function$;
comment on function public.memory_consent is
  'langchain-supabase-memory: Set what a user allows to be derived from their conversations, by purpose. What they refuse is
  derived no more, and what there is goes: of analytics all usage by day.

p_purpose: profile, topics, signals, tone or analytics.
p_allowed: whether they allow it.
p_by: who says so, 1 to 1000 bytes.
p_user_id: the user; null: the subject of the caller''s token.
Returns: object.
- changed: boolean. Whether it was not so before.
- profile: integer. How many items of the profile went.
- topics: integer. How many topics went. Allowed again, they are found anew, without names.
Errors:
- PT400: p_allowed is null, p_user_id names a space, or none is given and the caller''s token names nobody.
- 23514: p_purpose or p_by is refused; the name of the constraint says which.';

create function public.memory_consents(p_user_id text default null) returns json
language plpgsql stable security invoker set search_path = ''
as $function$
declare
  v_user constant text := memory_private.resolve_profile_owner(p_user_id);
begin
  return coalesce((
    select json_agg(json_build_object(
             'purpose', c.purpose, 'allowed', c.allowed, 'by', c.changed_by, 'at', c.changed_at) order by c.purpose)
    from memory.consents c where c.user_id = v_user), '[]');
end
$function$;
comment on function public.memory_consents is
  'langchain-supabase-memory: List what a user allows or refuses to have derived. A purpose that is not listed was never
  asked about.

p_user_id: the user; null: the subject of the caller''s token.
Returns: object[].
- [].purpose: text. profile, topics, signals, tone or analytics.
- [].allowed: boolean. Whether they allow it.
- [].by: text. Who said so.
- [].at: timestamp. When that was.
Errors:
- PT400: p_user_id names a space; or none is given, and the caller''s token names nobody.';
