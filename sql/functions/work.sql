-- Due work: marked by a trigger, claimed under a lease, finished by comparing positions. For servers alone.

-- In the transaction that stores, edits or forgets messages, and under the conversation's row lock: so nothing that is
-- committed is ever unmarked, and a worker that finishes (under the same lock) sees it. Where a row is there already
-- nothing is written, unless what happened cannot be seen from the position; fifty messages are one piece of work.
create or replace function memory_private.mark() returns trigger
language plpgsql security definer set search_path = ''
as $function$
begin
  if new.requested_at is distinct from old.requested_at then
    -- Somebody waits: before all others of its priority, even if it was given up.
    insert into memory_private.work as w (user_id, conversation_id, priority, run_after)
    values (new.user_id, new.id, new.priority, '-infinity')
    on conflict (user_id, conversation_id) do update
      set priority = excluded.priority,
          run_after = case when w.lease_token is null then excluded.run_after else w.run_after end,
          attempts = case when w.dead_at is null then w.attempts else 0 end,
          dead_at = null;
    perform pg_notify('memory_work', '');
    return null;
  end if;
  insert into memory_private.work (user_id, conversation_id, priority) values (new.user_id, new.id, new.priority)
  on conflict (user_id, conversation_id) do nothing;
  if found then
    perform pg_notify('memory_work', '');
  elsif new.has_stale and not old.has_stale then
    update memory_private.work w
       set is_moved = true
     where w.user_id = new.user_id and w.conversation_id = new.id and w.lease_token is not null;
  end if;
  return null;
end
$function$;
create or replace trigger conversations_mark after update on memory.conversations
  for each row
  when (new.next_sequence > old.next_sequence or new.revision <> old.revision or (new.has_stale and not old.has_stale)
        or new.requested_at is distinct from old.requested_at)
  execute function memory_private.mark();

-- What was drafted from a message that has changed or gone does not outlive it.
create or replace function memory_private.undraft() returns trigger
language plpgsql security definer set search_path = ''
as $function$
begin
  delete from memory_private.drafts d where d.user_id = new.user_id and d.conversation_id = new.id;
  return null;
end
$function$;
create or replace trigger conversations_undraft after update on memory.conversations
  for each row
  when (new.revision <> old.revision or new.expired_through > old.expired_through)
  execute function memory_private.undraft();

-- Nobody may push in before others: by whatever way, a signed-in user's conversations go behind at most.
create or replace function memory_private.hold_priority() returns trigger
language plpgsql security invoker set search_path = ''
as $function$
begin
  if (auth.jwt() ->> 'role') = 'authenticated' then
    new.priority := case when tg_op = 'INSERT' then 0 else least(new.priority, old.priority) end;
  end if;
  return new;
end
$function$;
create or replace trigger conversations_hold_priority before update of priority on memory.conversations
  for each row when (new.priority > old.priority)
  execute function memory_private.hold_priority();
create or replace trigger conversations_hold_new_priority before insert on memory.conversations
  for each row when (new.priority > 0)
  execute function memory_private.hold_priority();

create function public.memory_request(
  p_thread_id text,
  p_user_id   text    default null,
  p_agent_id  text    default 'default',
  p_priority  integer default null -- from now on; null: as it is
) returns jsonb
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_user text := memory_private.owner(p_user_id);
  v_at   timestamptz;
begin
  update memory.conversations c
     set requested_at = clock_timestamp(),
         priority = coalesce(p_priority::smallint, c.priority)
   where c.user_id = v_user and c.agent_id = p_agent_id and c.thread_id = p_thread_id
  returning c.requested_at into v_at;
  return jsonb_build_object('requested_at', v_at);
end
$function$;
comment on function public.memory_request is
  'langchain-supabase-memory: ask for a conversation to be summarised by a worker now.';

create function public.memory_claim(
  p_worker         text,
  p_limit          integer default 1,
  p_lease_seconds  float8  default 60,
  p_settle_seconds float8  default 1, -- not before so long after it became due, so that a burst is one piece
  p_user_id        text    default null
) returns jsonb
language plpgsql volatile security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off
as $function$
declare
  v_until    timestamptz := clock_timestamp() - p_settle_seconds * interval '1 second';
  v_limit    integer := least(p_limit, 1000);
  v_priority integer := 32768;
  v_ready    tid[] := '{}';
  v_rows     jsonb;
begin
  -- From each priority only what is ready: what is leased, waits or is dead is not looked at, however much it is.
  while cardinality(v_ready) < v_limit loop
    select w.priority into v_priority from memory_private.work w
     where w.dead_at is null and w.priority < v_priority
     order by w.priority desc limit 1;
    exit when not found;
    v_ready := v_ready || array(
      select w.ctid from memory_private.work w
      where w.dead_at is null and w.priority = v_priority and w.run_after <= v_until
        and (p_user_id is null or w.user_id = p_user_id)
      order by w.run_after
      limit v_limit - cardinality(v_ready)
        for update skip locked);
  end loop;
  with claimed as (
    update memory_private.work w
       set lease_token = gen_random_uuid(),
           lease_until = clock_timestamp() + p_lease_seconds * interval '1 second',
           run_after = clock_timestamp() + p_lease_seconds * interval '1 second',
           worker = p_worker,
           is_moved = false,
           attempts = w.attempts + 1
     where w.ctid = any (v_ready)
    returning w.*)
  select jsonb_agg(jsonb_build_object(
           'user_id', w.user_id, 'conversation_id', w.conversation_id, 'thread_id', c.thread_id,
           'agent_id', c.agent_id, 'token', w.lease_token, 'attempts', w.attempts, 'since', w.since,
           'waited', extract(epoch from clock_timestamp() - w.since),
           'position', jsonb_build_array(c.next_sequence, c.revision, c.requested_at, c.expired_through),
           'requested', c.requested_at is distinct from c.served_at,
           'drafts', (select jsonb_object_agg(d.digest, d.answer) from memory_private.drafts d
                      where d.user_id = w.user_id and d.conversation_id = w.conversation_id))
           order by w.priority desc, c.requested_at is distinct from c.served_at desc, w.since)
    into v_rows
    from claimed w
    cross join lateral (
      select * from memory.conversations c where c.user_id = w.user_id and c.id = w.conversation_id limit 1) c;
  return coalesce(v_rows, '[]');
end
$function$;
comment on function public.memory_claim is
  'langchain-supabase-memory: take conversations that are due, under a lease.';

create function public.memory_heartbeat(
  p_leases        json,  -- [{"user_id", "conversation_id", "token"}]
  p_lease_seconds float8 default 60
) returns jsonb -- the tokens of those that are still held
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_held jsonb;
begin
  with held as (
    update memory_private.work w
       set lease_until = clock_timestamp() + p_lease_seconds * interval '1 second',
           run_after = clock_timestamp() + p_lease_seconds * interval '1 second'
      from (select * from json_to_recordset(p_leases) as i (user_id text, conversation_id uuid, token uuid)
            order by 1, 2) i
     where w.user_id = i.user_id and w.conversation_id = i.conversation_id and w.lease_token = i.token
    returning w.lease_token)
  select jsonb_agg(h.lease_token) into v_held from held h;
  return coalesce(v_held, '[]');
end
$function$;
comment on function public.memory_heartbeat is
  'langchain-supabase-memory: keep leases; returns which are still held.';

create function public.memory_finish(
  p_user_id         text,
  p_conversation_id uuid,
  p_token           uuid,
  p_position        json,                  -- where the conversation stood when it was claimed
  p_error           text    default null,  -- a word, never content; null: all that was due is done
  p_served          boolean default false, -- whether a wish of then is fulfilled
  p_max_attempts    integer default 8,
  p_retry_seconds   float8  default 30
) returns jsonb
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_c    memory.conversations;
  v_w    memory_private.work;
  v_wish timestamptz := p_position ->> 2;
  v_dead boolean;
begin
  -- The conversation first, as every append does: what is stored from here on is marked anew.
  select c.* into v_c from memory.conversations c
   where c.user_id = p_user_id and c.id = p_conversation_id
     for no key update;
  if not found then
    return '{"outcome": "gone"}';
  end if;
  select w.* into v_w from memory_private.work w
   where w.user_id = p_user_id and w.conversation_id = p_conversation_id and w.lease_token = p_token
     for update;
  if not found then
    return '{"outcome": "lost"}';
  end if;
  if p_error is not null and v_c.requested_at is not distinct from v_wish then
    v_dead := v_w.attempts >= p_max_attempts;
    update memory_private.work w
       set lease_token = null, lease_until = null, worker = null, error = left(p_error, 200),
           dead_at = case when v_dead then clock_timestamp() end,
           run_after = memory_private.retry_at(v_w.attempts - 1, p_retry_seconds)
     where w.user_id = p_user_id and w.conversation_id = p_conversation_id;
    return jsonb_build_object('outcome', case when v_dead then 'dead' else 'retry' end);
  end if;
  if p_error is null then
    delete from memory_private.drafts d where d.user_id = p_user_id and d.conversation_id = p_conversation_id;
  end if;
  if p_error is null and p_served and v_wish is not null then
    update memory.conversations c set served_at = v_wish where c.user_id = p_user_id and c.id = p_conversation_id;
  end if;
  if p_error is null and not v_w.is_moved and v_c.next_sequence = (p_position ->> 0)::bigint
    and v_c.revision = (p_position ->> 1)::bigint and v_c.requested_at is not distinct from v_wish
  then
    delete from memory_private.work w where w.user_id = p_user_id and w.conversation_id = p_conversation_id;
    return '{"outcome": "done"}';
  end if;
  -- It has moved on; who asked anew is not kept waiting by a failure of before.
  update memory_private.work w
     set lease_token = null, lease_until = null, worker = null, error = left(p_error, 200), attempts = 0,
         since = clock_timestamp(),
         run_after = case when v_c.requested_at is distinct from v_wish then '-infinity' else clock_timestamp() end
   where w.user_id = p_user_id and w.conversation_id = p_conversation_id;
  perform pg_notify('memory_work', '');
  return '{"outcome": "again"}';
end
$function$;
comment on function public.memory_finish is
  'langchain-supabase-memory: give a conversation back: done, again because it has moved on, to be retried, or dead.';

create function public.memory_keep_draft(
  p_user_id         text,
  p_conversation_id uuid,
  p_token           uuid,
  p_position        json, -- as it was claimed
  p_digest          text,
  p_answer          text
) returns jsonb -- whether it is kept: not if the lease has run out, a message has changed or gone since, or it mentions
-- a topic that is not to be remembered
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_c memory.conversations;
begin
  select c.* into v_c from memory.conversations c
   where c.user_id = p_user_id and c.id = p_conversation_id and c.revision = (p_position ->> 1)::bigint
     and c.expired_through = (p_position ->> 3)::bigint
     for share;
  if not found or memory_private.mentions(p_answer, memory_private.topics(p_user_id, p_conversation_id), v_c.language)
  then
    return '{"kept": false}';
  end if;
  insert into memory_private.drafts (user_id, conversation_id, digest, answer)
  select w.user_id, w.conversation_id, p_digest, p_answer from memory_private.work w
   where w.user_id = p_user_id and w.conversation_id = p_conversation_id and w.lease_token = p_token
  on conflict (user_id, conversation_id, digest) do update set answer = excluded.answer;
  return jsonb_build_object('kept', found);
end
$function$;
comment on function public.memory_keep_draft is
  'langchain-supabase-memory: keep an answer that nothing is stored from yet, for who goes on if this worker is killed.';

create function public.memory_release(
  p_leases json -- [{"user_id", "conversation_id", "token"}]
) returns jsonb
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_released bigint;
begin
  update memory_private.work w
     set lease_token = null, lease_until = null, worker = null, attempts = greatest(w.attempts - 1, 0),
         run_after = clock_timestamp()
    from (select * from json_to_recordset(p_leases) as i (user_id text, conversation_id uuid, token uuid)
          order by 1, 2) i
   where w.user_id = i.user_id and w.conversation_id = i.conversation_id and w.lease_token = i.token;
  get diagnostics v_released = row_count;
  if v_released > 0 then
    perform pg_notify('memory_work', '');
  end if;
  return jsonb_build_object('released', v_released);
end
$function$;
comment on function public.memory_release is
  'langchain-supabase-memory: give leases back unfinished, for another worker.';

create function public.memory_revive(
  p_user_id   text default null, -- null: everybody's
  p_agent_id  text default null,
  p_thread_id text default null
) returns jsonb
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_revived bigint;
begin
  update memory_private.work w
     set dead_at = null, attempts = 0, run_after = clock_timestamp()
   where w.dead_at is not null and (p_user_id is null or w.user_id = p_user_id)
     and ((p_agent_id is null and p_thread_id is null) or exists (
       select from memory.conversations c
       where c.user_id = w.user_id and c.id = w.conversation_id and (p_agent_id is null or c.agent_id = p_agent_id)
         and (p_thread_id is null or c.thread_id = p_thread_id)));
  get diagnostics v_revived = row_count;
  if v_revived > 0 then
    perform pg_notify('memory_work', '');
  end if;
  return jsonb_build_object('revived', v_revived);
end
$function$;
comment on function public.memory_revive is
  'langchain-supabase-memory: try again what was given up.';

create function public.memory_chore(
  p_name          text,
  p_every_seconds float8
) returns jsonb -- whether the caller is to do it now
language plpgsql volatile security invoker set search_path = ''
as $function$
begin
  insert into memory_private.chores as c (name, run_after)
  values (p_name, clock_timestamp() + p_every_seconds * interval '1 second')
  on conflict (name) do update
    set run_after = excluded.run_after where c.run_after <= clock_timestamp();
  return jsonb_build_object('mine', found);
end
$function$;
comment on function public.memory_chore is
  'langchain-supabase-memory: of several workers, who does what is done from time to time.';

create function public.memory_rederive(
  p_characters bigint  default null, -- due when so much is not yet summarised; null: does not matter
  p_tokens     bigint  default null,
  p_messages   bigint  default null,
  p_board      bigint  default null, -- due when so many messages are not on the board
  p_index      boolean default true, -- due when something is not indexed
  p_limit      integer default 1000,
  p_after_user text    default null,
  p_after      uuid    default null
) returns jsonb
language plpgsql volatile security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off
as $function$
declare
  v_page  record;
  v_again bigint := 0;
begin
  -- Conversations that moved on and are not marked: by hand, from a dump, under a trigger that was off. What is being
  -- forgotten is passed by, so that nobody waits for anybody here.
  with page as materialized (
    select c.user_id, c.id,
           c.opted_out_at is null and (
           (p_index and (c.next_sequence - 1 > c.indexed_through or c.has_stale))
           or c.next_sequence - 1 - coalesce(b.through_sequence, -1) >= p_board
           or c.total_characters - c.summarised_characters > p_characters
           or c.total_tokens - c.summarised_tokens > p_tokens
           or c.next_sequence - 1 - c.summarised_through > p_messages
           or c.requested_at is distinct from c.served_at) as is_behind
    from memory.conversations c
    left join lateral (
      select b.through_sequence from memory.conversation_summary_boards b
      where b.user_id = c.user_id and b.conversation_id = c.id limit 1) b on true
    where (c.user_id, c.id) > (coalesce(p_after_user, ''), coalesce(p_after, '00000000-0000-0000-0000-000000000000'))
    order by c.user_id, c.id limit least(p_limit, 1000)),
  behind as materialized (
    select c.user_id, c.id, c.priority
    from page p
    cross join lateral (
      select c.* from memory.conversations c where c.user_id = p.user_id and c.id = p.id for key share skip locked) c
    left join lateral (
      select true as is_marked from memory_private.work w
      where w.user_id = p.user_id and w.conversation_id = p.id limit 1) w on true
    where p.is_behind and w.is_marked is null),
  marked as (
    insert into memory_private.work (user_id, conversation_id, priority)
    select b.user_id, b.id, b.priority from behind b
    on conflict (user_id, conversation_id) do nothing
    returning 1)
  select (select count(*) from marked) as marked, count(*) as seen,
         (array_agg(p.user_id order by p.user_id desc, p.id desc))[1] as last_user,
         (array_agg(p.id order by p.user_id desc, p.id desc))[1] as last
    into v_page from page p;
  -- What was given up is tried once more in an hour in which something was said.
  if p_after_user is null then
    update memory_private.work w
       set dead_at = null, attempts = greatest(w.attempts - 1, 0), run_after = clock_timestamp()
     where w.ctid = any (array(
       select d.ctid from memory_private.work d
       cross join lateral (
         select c.updated_at from memory.conversations c where c.user_id = d.user_id and c.id = d.conversation_id limit 1) c
       where d.dead_at < clock_timestamp() - interval '1 hour' and c.updated_at > d.dead_at
       limit 1000 for update of d skip locked));
    get diagnostics v_again = row_count;
  end if;
  if v_page.marked + v_again > 0 then
    perform pg_notify('memory_work', '');
  end if;
  return jsonb_build_object('marked', v_page.marked + v_again, 'after', case when v_page.seen = least(p_limit, 1000) then
    jsonb_build_object('user', v_page.last_user, 'id', v_page.last) end);
end
$function$;
comment on function public.memory_rederive is
  'langchain-supabase-memory: mark what is behind and not marked, by pages.';

create function public.memory_idle(
  p_seconds float8,          -- without a message for so long
  p_limit   integer default 100,
  p_after_user text default null,
  p_after      uuid default null
) returns jsonb
language plpgsql stable security invoker set search_path = ''
as $function$
declare
  v_rows jsonb;
begin
  execute format(
    'select jsonb_agg(to_jsonb(r) order by r.user_id, r.id) from ('
    ' select c.user_id, c.id, c.agent_id, c.thread_id from memory.conversations c'
    ' where c.archived_at is null and c.next_sequence > 0'
    '   and c.updated_at < clock_timestamp() - $1 * interval ''1 second''%s'
    ' order by c.user_id, c.id limit $2) r',
    case when p_after is not null then ' and (c.user_id, c.id) > ($3, $4)' end)
  into v_rows using p_seconds, least(p_limit, 1000), p_after_user, p_after;
  return coalesce(v_rows, '[]');
end
$function$;
comment on function public.memory_idle is
  'langchain-supabase-memory: conversations without a message for so long that are not archived.';

create function public.memory_archive(
  p_thread_id     text,
  p_next_sequence bigint, -- if nothing was said since
  p_user_id       text    default null,
  p_agent_id      text    default 'default'
) returns jsonb
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_user text := memory_private.owner(p_user_id);
begin
  update memory.conversations c
     set archived_at = clock_timestamp()
   where c.user_id = v_user and c.agent_id = p_agent_id and c.thread_id = p_thread_id
     and c.next_sequence = p_next_sequence;
  return jsonb_build_object('archived', found);
end
$function$;
comment on function public.memory_archive is
  'langchain-supabase-memory: mark a conversation as archived, unless it has moved on.';

create function public.memory_status(
  p_user_id   text    default null, -- null: everybody whom the caller may see
  p_agent_id  text    default null,
  p_thread_id text    default null,
  p_state     text    default null, -- only these: due, running, waiting, dead, idle
  p_limit     integer default 100,
  p_after_user text   default null,
  p_after      uuid   default null
) returns jsonb
language plpgsql stable security invoker set search_path = ''
as $function$
declare
  v_rows jsonb;
begin
  -- Built here, so that one user's conversations, and each page, are a range of the primary key. What is in work is
  -- found from there: it may be little beside all that is stored.
  execute format(
    'select jsonb_agg(to_jsonb(r) order by r.user_id, r.id) from ('
    ' select s.*, c.agent_id, c.thread_id, c.next_sequence, c.message_count, c.summarised_through, c.indexed_through,'
    '        c.total_tokens, c.updated_at, c.archived_at, c.priority,'
    '        coalesce(b.through_sequence, -1) as board_through, coalesce(b.version, 0) as board_version,'
    '        coalesce(s.work_error, c.summary_error, c.index_error) as error,'
    '        greatest(c.summarised_tokens - coalesce(g.tokens, 0), 0) as tokens_saved, g.quality'
    ' from (select k.user_id, k.id, w.since, w.attempts, w.worker, w.lease_until, w.run_after, w.error as work_error,'
    '              case when w.user_id is null then ''idle'' when w.dead_at is not null then ''dead'''
    '                   when w.lease_until > clock_timestamp() then ''running'''
    '                   when w.run_after > clock_timestamp() then ''waiting'' else ''due'' end as state'
    '       from %s) s'
    ' join memory.conversations c on c.user_id = s.user_id and c.id = s.id'
    ' left join memory.conversation_summary_boards b on b.user_id = s.user_id and b.conversation_id = s.id'
    ' left join lateral ('
    '   select g.tokens, g.quality from memory.conversation_summaries g'
    '   where g.user_id = s.user_id and g.conversation_id = s.id and g.level = 0'
    '   order by g.number desc limit 1) g on true'
    ' where ($1 is null or s.state = $1)%s%s%s%s'
    ' order by s.user_id, s.id limit $2) r',
    case when p_state in ('due', 'running', 'waiting', 'dead')
         then 'memory_private.work w cross join lateral (select w.user_id, w.conversation_id as id) k'
         else 'memory.conversations k left join memory_private.work w on w.user_id = k.user_id and w.conversation_id = k.id'
    end,
    case when p_user_id is not null then ' and s.user_id = $3' end,
    case when p_agent_id is not null then ' and c.agent_id = $4' end,
    case when p_thread_id is not null then ' and c.thread_id = $5' end,
    case when p_after is not null then ' and (s.user_id, s.id) > ($6, $7)' end)
  into v_rows using p_state, least(p_limit, 1000), p_user_id, p_agent_id, p_thread_id, p_after_user, p_after;
  return coalesce(v_rows, '[]');
end
$function$;
comment on function public.memory_status is
  'langchain-supabase-memory: what is due, running, waiting and dead, and how far each conversation is covered.';

create function public.memory_queue() returns jsonb
language sql stable security invoker set search_path = ''
as $function$
  select jsonb_build_object(
    'depth', count(*) filter (where w.dead_at is null),
    'due', count(*) filter (where w.dead_at is null and w.run_after <= clock_timestamp()),
    'leases', count(*) filter (where w.lease_until > clock_timestamp()),
    'waiting', count(*) filter (where w.dead_at is null and w.lease_token is null and w.run_after > clock_timestamp()),
    'dead', count(*) filter (where w.dead_at is not null),
    'lag_seconds', coalesce(extract(epoch from clock_timestamp() - min(w.since) filter (where w.dead_at is null)), 0),
    'next_seconds', case when count(*) > count(w.dead_at) then greatest(0, extract(epoch from
      greatest(min(w.run_after) filter (where w.dead_at is null), 'epoch') - clock_timestamp())) end,
    'vector_bytes', coalesce((select sum(pg_catalog.pg_relation_size(i.indexrelid)) from pg_catalog.pg_index i
                              join pg_catalog.pg_class r on r.oid = i.indexrelid
                              join pg_catalog.pg_am a on a.oid = r.relam
                              where i.indrelid = 'memory.chunk_embeddings'::regclass and a.amname = 'hnsw'), 0)
                    + pg_catalog.pg_relation_size('memory.chunk_embeddings'::regclass))
  from memory_private.work w
$function$;
comment on function public.memory_queue is
  'langchain-supabase-memory: how much is due, how long it has waited, how many leases and dead there are.';
