-- Due work: marked by a trigger, claimed under a lease, finished by comparing positions. For servers alone.

-- Says whether some steps did not fail.
create or replace function memory_private.has_remaining_steps(p_paused jsonb) returns boolean
language sql immutable security invoker set search_path = ''
as $function$
  select not p_paused ? 'all'
$function$;

-- Returns when the first failed step is tried again; infinity if all were given up, null if none failed.
create or replace function memory_private.first_retry_at(p_paused jsonb) returns timestamptz
language sql stable security invoker set search_path = ''
as $function$
  select min((d.value ->> 'until')::timestamptz) from jsonb_each(p_paused) d
$function$;

-- Returns the failed steps that are not tried yet.
create or replace function memory_private.backing_off_steps(p_paused jsonb) returns text[]
language sql volatile security invoker set search_path = ''
as $function$
  select array(select d.key from jsonb_each(p_paused) d
               where d.key <> 'all' and (d.value ->> 'until')::timestamptz > clock_timestamp() order by 1)
$function$;

-- Returns the longest run of failures, without the steps that are left out.
create or replace function memory_private.count_failures(p_paused jsonb, p_left_out text[] default '{}') returns integer
language sql immutable security invoker set search_path = ''
as $function$
  select coalesce(max((d.value ->> 'failures')::integer), 0) from jsonb_each(p_paused) d where d.key <> all (p_left_out)
$function$;

-- Returns the state of a conversation's work: idle, running, dead, waiting or due.
create or replace function memory_private.work_state(p_run_after timestamptz, p_lease_until timestamptz) returns text
language sql volatile security invoker set search_path = ''
as $function$
  select case when p_run_after is null then 'idle'
              when p_lease_until > clock_timestamp() then 'running'
              when p_run_after = 'infinity' then 'dead'
              when p_run_after > clock_timestamp() then 'waiting' else 'due' end
$function$;

-- Returns the priority that a change sets: only servers may raise it, not who is signed in.
create or replace function memory_private.allowed_priority(p_new smallint, p_old smallint) returns smallint
language plpgsql stable security invoker set search_path = ''
as $function$
begin
  return case when p_new > p_old and (auth.jwt() ->> 'role') = 'authenticated' then p_old else p_new end;
end
$function$;

-- Refuses a next sequence that is not beyond all messages, by whatever SQL: no message could be stored any more. An
-- append that returns sequences has deleted their messages before.
create or replace function memory_private.check_next_sequence(
  p_user_id text, p_conversation_id uuid, p_next bigint
) returns void
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
declare
  v_last bigint;
begin
  select m.sequence into v_last from memory.conversation_messages m
   where m.user_id = p_user_id and m.conversation_id = p_conversation_id
   order by m.sequence desc limit 1;
  if p_next <= coalesce(v_last, -1) then
    raise exception 'the next number of a conversation is taken'
      using errcode = '23514', constraint = 'conversations_counts_check';
  end if;
end
$function$;

-- Marks a conversation as due, in the transaction that stores, edits or deletes messages and under the row lock. So
-- every committed change is marked, and a worker that finishes under the same lock sees it. An existing row is not
-- written, unless the change cannot be seen from the position, or only failed steps would wait for it; fifty
-- messages are one piece of work. One trigger for all that an append changes, by the columns and without a condition:
-- each condition of a trigger is prepared anew for each statement, and each trigger before an update locks the row.
create or replace function memory_private.mark_work() returns trigger
language plpgsql security definer set search_path = ''
as $function$
declare
  v_is_stale boolean := new.has_stale and not old.has_stale;
  v_lease    uuid;
  v_sleeps   boolean; -- though not all of it failed
  v_now      timestamptz;
begin
  if new.next_sequence < old.next_sequence then
    perform memory_private.check_next_sequence(new.user_id, new.id, new.next_sequence);
  end if;
  if not (new.next_sequence > old.next_sequence or new.revision <> old.revision or v_is_stale
          or new.requested_at is distinct from old.requested_at)
  then
    return null;
  end if;
  if new.requested_at is distinct from old.requested_at then
    -- Somebody is waiting: it comes before other work of its owner with the same priority, even if it was given up.
    insert into memory_private.work as w (user_id, conversation_id, priority, run_after)
    values (new.user_id, new.id, memory_private.allowed_priority(new.priority, old.priority), '-infinity')
    on conflict (user_id, conversation_id) do update
      set priority = excluded.priority,
          run_after = case when w.lease_token is null then excluded.run_after else w.run_after end,
          attempts = case when w.dead_at is null then w.attempts else 0 end,
          since = case when w.run_after = 'infinity' then excluded.since else w.since end,
          paused = '{}', dead_at = null;
    perform pg_notify('memory_work', '');
    return null;
  end if;
  select w.lease_token,
         w.run_after > clock_timestamp() and w.lease_token is null and memory_private.has_remaining_steps(w.paused)
    into v_lease, v_sleeps
    from memory_private.work w where w.user_id = new.user_id and w.conversation_id = new.id;
  if not found then
    insert into memory_private.work (user_id, conversation_id, priority)
    values (new.user_id, new.id, memory_private.allowed_priority(new.priority, old.priority))
    on conflict (user_id, conversation_id) do nothing;
    perform pg_notify('memory_work', '');
  elsif v_is_stale and v_lease is not null then
    update memory_private.work w
       set is_moved = true
     where w.user_id = new.user_id and w.conversation_id = new.id and w.lease_token is not null;
  elsif v_sleeps then
    -- Some steps are backing off or were given up; the rest is due. If none failed, the clock was set back.
    v_now := clock_timestamp();
    update memory_private.work w
       set run_after = v_now, since = case when w.run_after = 'infinity' then v_now else w.since end
     where w.user_id = new.user_id and w.conversation_id = new.id and w.lease_token is null
       and w.run_after > v_now and memory_private.has_remaining_steps(w.paused);
    if found then
      perform pg_notify('memory_work', '');
    end if;
  end if;
  return null;
end
$function$;
create or replace trigger conversations_mark_work
  after update of next_sequence, revision, has_stale, requested_at on memory.conversations
  for each row
  execute function memory_private.mark_work();

-- Schedules an owner by what is due. It runs at commit, so that a transaction that waits for a conversation holds no
-- owner, and one owner's appends wait for each other only there. Workers never wait for an owner, and keep the lock
-- while they look for the next work; what is committed meanwhile is written here afterwards, so nothing is missed.
create or replace function memory_private.schedule_owner() returns trigger
language plpgsql security definer set search_path = ''
as $function$
begin
  insert into memory_private.owners as o (user_id, turn_at, due_at)
  values (new.user_id, greatest(new.run_after, clock_timestamp()), new.run_after)
  on conflict (user_id) do update
    set turn_at = least(o.turn_at, excluded.turn_at), due_at = least(o.due_at, excluded.due_at)
    where o.turn_at > excluded.turn_at or o.due_at > excluded.due_at; -- the row is locked in any case
  return null;
end
$function$;
create constraint trigger work_added after insert on memory_private.work
  deferrable initially deferred for each row
  when (new.run_after < 'infinity')
  execute function memory_private.schedule_owner();
create constraint trigger work_hastened after update on memory_private.work
  deferrable initially deferred for each row
  when (new.run_after < old.run_after)
  execute function memory_private.schedule_owner();

-- Deletes an owner without work, and with it the last trace of the name.
create or replace function memory_private.delete_idle_owner() returns trigger
language plpgsql security definer set search_path = ''
as $function$
begin
  if exists (select from memory_private.owners o where o.user_id = old.user_id)
    and not exists (select from memory_private.work w where w.user_id = old.user_id)
  then
    perform 1 from memory_private.owners o where o.user_id = old.user_id for update;
    delete from memory_private.owners o
     where o.user_id = old.user_id and not exists (select from memory_private.work w where w.user_id = old.user_id);
  end if;
  return null;
end
$function$;
create constraint trigger work_gone after delete on memory_private.work
  deferrable initially deferred for each row
  execute function memory_private.delete_idle_owner();

-- Deletes drafts made from a message that was changed or deleted, or that an opt-out covers.
create or replace function memory_private.delete_stale_drafts() returns trigger
language plpgsql security definer set search_path = ''
set plan_cache_mode = force_custom_plan -- planned for one owner, it locks one partition
as $function$
begin
  delete from memory_private.drafts d where d.user_id = new.user_id and d.conversation_id = new.id;
  delete from memory.opt_out_undos u where u.user_id = new.user_id and u.conversation_id = new.id;
  return null;
end
$function$;
create or replace trigger conversations_stale_drafts
  after update of revision, expired_through on memory.conversations
  for each row
  when (new.revision <> old.revision or new.expired_through > old.expired_through)
  execute function memory_private.delete_stale_drafts();

-- Limits the priority that a signed-in user may set, by whatever SQL. After the update: a trigger before it would have
-- each append lock the row and compute its generated columns once more.
create or replace function memory_private.limit_priority() returns trigger
language plpgsql security invoker set search_path = ''
as $function$
begin
  if memory_private.allowed_priority(new.priority, old.priority) < new.priority then
    update memory.conversations c
       set priority = old.priority
     where c.user_id = new.user_id and c.id = new.id;
  end if;
  return null;
end
$function$;
create or replace trigger conversations_limit_priority after update of priority on memory.conversations
  for each row when (new.priority > old.priority)
  execute function memory_private.limit_priority();

-- The same for a new conversation.
create or replace function memory_private.limit_new_priority() returns trigger
language plpgsql security invoker set search_path = ''
as $function$
begin
  if (auth.jwt() ->> 'role') = 'authenticated' then
    new.priority := 0;
  end if;
  return new;
end
$function$;
create or replace trigger conversations_limit_new_priority before insert on memory.conversations
  for each row when (new.priority > 0)
  execute function memory_private.limit_new_priority();

create function public.memory_request(
  p_thread_id text,
  p_user_id   text    default null,
  p_agent_id  text    default 'default',
  p_priority  integer default null -- from now on; null: as it is
) returns jsonb
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_user text := memory_private.resolve_writer(p_user_id);
  v_now  timestamptz := clock_timestamp();
  v_at   timestamptz;
begin
  update memory.conversations c
     set requested_at = v_now,
         priority = coalesce(p_priority::smallint, c.priority)
   where c.user_id = v_user and c.agent_id = p_agent_id and c.thread_id = p_thread_id
  returning c.requested_at into v_at;
  return jsonb_build_object('requested_at', v_at);
end
$function$;
comment on function public.memory_request is
  'langchain-supabase-memory: Ask for a conversation to be summarized by a worker now, before others of its owner.

p_thread_id: the thread of the conversation.
p_user_id: the owner; null: the subject of the caller''s token.
p_agent_id: the agent of the conversation.
p_priority: of two conversations of one owner, the higher one comes first, from now on; null: as it is. Who is
  signed in can only lower it.
Returns: object.
- requested_at: timestamp or null. When it was asked for; null if there is no such conversation.
Errors:
- PT400: no p_user_id is given, and the caller''s token names nobody.';

-- Claims an owner's most urgent work that is ready and that nobody else is claiming, under a lease.
create or replace function memory_private.claim_next(
  p_user_id text, p_until timestamptz, p_worker text, p_lease_seconds float8
) returns uuid
language plpgsql volatile security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
declare
  v_priority integer := 32768;
  v_levels   integer := 0;
  v_id       uuid;
  v_lease    uuid := gen_random_uuid();
  v_leased   timestamptz;
begin
  -- Only ready work of each priority is read: work that is leased, waiting or dead is not, however much there is.
  loop
    select w.priority into v_priority from memory_private.work w
     where w.user_id = p_user_id and w.priority < v_priority
     order by w.priority desc limit 1;
    exit when not found;
    v_levels := v_levels + 1;
    if v_levels > 16 then -- nor is each of many: then the one that is due longest, whatever its priority
      select w.conversation_id into v_id from memory_private.work w
       where w.user_id = p_user_id and w.run_after <= p_until
       order by w.run_after limit 1
         for update skip locked;
      exit;
    end if;
    select w.conversation_id into v_id from memory_private.work w
     where w.user_id = p_user_id and w.priority = v_priority and w.run_after <= p_until
     order by w.run_after limit 1
       for update skip locked;
    exit when found;
  end loop;
  v_leased := clock_timestamp() + p_lease_seconds * interval '1 second';
  update memory_private.work w
     set lease_token = v_lease,
         lease_until = v_leased,
         run_after = v_leased,
         worker = p_worker,
         is_moved = false,
         attempts = w.attempts + 1
   where w.user_id = p_user_id and w.conversation_id = v_id;
  return v_id;
end
$function$;

-- Returns on whose account an owner's work is done: that of who created a space, else their own.
create or replace function memory_private.work_account(p_user_id text) returns text
language plpgsql stable security invoker set search_path = ''
as $function$
begin
  if starts_with(p_user_id, 'space:') then
    return coalesce((select s.created_by from memory.spaces s where s.user_id = p_user_id), p_user_id);
  end if;
  return p_user_id;
end
$function$;

-- Sets the turns of an account's owners behind a time, so that one person with many spaces has one turn in a round. Those
-- that another worker has locked are that worker's.
create or replace function memory_private.delay_account(p_account text, p_until timestamptz) returns void
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_owner text;
begin
  for v_owner in
    select p_account union all select s.user_id from memory.spaces s where s.created_by = p_account
  loop
    perform 1 from memory_private.owners o where o.user_id = v_owner and o.turn_at < p_until for update skip locked;
    if found then
      update memory_private.owners o set turn_at = p_until where o.user_id = v_owner and o.turn_at < p_until;
    end if;
  end loop;
end
$function$;

create function public.memory_worker_claim(
  p_worker         text,
  p_limit          integer default 1,
  p_lease_seconds  float8  default 60,
  p_settle_seconds float8  default 1,    -- not before so long after it became due, so that a burst is one piece
  p_user_id        text    default null,
  p_slots          integer default null, -- how many the worker has at once, of which one owner gets half while others wait
  p_held           json    default '{}'  -- how many it has now: {user_id: count}
) returns jsonb
language plpgsql volatile security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
declare
  v_until  timestamptz := clock_timestamp() - p_settle_seconds * interval '1 second';
  v_by     timestamptz := clock_timestamp() + interval '1 second'; -- no turn is later of whom something is due
  v_limit  integer := least(p_limit, 1000);
  v_most   integer := case when p_slots is null then 32767 else greatest(p_slots / 2, 1) end;
  v_step   text := case when p_user_id is null then 'turns' else 'one' end;
  v_is_all boolean := false; -- whether nobody waits who has less than half of the slots
  v_last   timestamptz := '-infinity';
  v_round  text[];
  v_given  text[];
  v_full   text[] := '{}'; -- who has half of the slots
  v_locked text[] := '{}'; -- whose turn is written down here
  v_users  text[] := '{}'; -- what is taken
  v_ids    uuid[] := '{}';
  v_whose  text[] := '{}'; -- on whose account
  v_later  text[] := '{}'; -- whose account has had its turn
  v_held   jsonb;          -- how many each account has
  v_user   text;
  v_account text;
  v_id     uuid;
  v_due    timestamptz;
  v_turn   timestamptz;
  v_rows   jsonb;
begin
  v_held := (
    select jsonb_object_agg(t.account, t.count)
    from (select memory_private.work_account(h.key) as account, sum(h.value::integer) as count
          from json_each_text(p_held) h group by 1) t);
  while cardinality(v_users) < v_limit loop
    if v_step = 'turns' then
      -- The first round: one piece for each owner, in the order of their turns.
      -- Citus: claim_turns
      with found as materialized (
        select o.user_id, o.turn_at from memory_private.owners o
        where o.turn_at between v_last and v_by and o.due_at <= v_until and o.user_id <> all (v_locked)
          and coalesce((p_held ->> o.user_id)::integer, 0) < v_most
        order by o.turn_at limit v_limit - cardinality(v_users)
          for update skip locked)
      select coalesce(array_agg(f.user_id), '{}'), max(f.turn_at) into v_round, v_last from found f;
      -- Citus: end
      v_locked := v_locked || v_round;
      if cardinality(v_round) = 0 then
        v_step := 'others';
      end if;
    elsif v_step = 'others' then
      -- An owner whom another worker has locked is skipped and keeps the turn: that worker updates it.
      v_round := array(
        select o.user_id from memory_private.owners o
        where o.turn_at <= v_by and o.due_at <= v_until and o.user_id <> all (v_locked)
          and coalesce((p_held ->> o.user_id)::integer, 0) < v_most
        order by o.turn_at limit v_limit - cardinality(v_users));
      v_step := 'again';
    elsif v_step = 'one' then
      v_locked := array(select o.user_id from memory_private.owners o where o.user_id = p_user_id for update skip locked);
      v_round := array[p_user_id];
      v_step := 'again';
    elsif v_step = 'again' then
      v_round := v_users || v_later;
      v_step := 'rounds';
    elsif cardinality(v_given) > 0 then
      v_round := v_given;
    else
      exit when v_is_all;
      -- Nobody else is waiting: an owner with half of the slots may use the free ones.
      v_is_all := true;
      v_most := 32767;
      v_round := v_full || array(
        select h.key from json_each(p_held) h
        where h.key <> all (v_users || v_full) and (p_user_id is null or h.key = p_user_id));
      -- Citus: claim_rest
      v_locked := v_locked || array(
        select o.user_id from memory_private.owners o
        where o.user_id = any (v_round) and o.user_id <> all (v_locked)
          for update skip locked);
      -- Citus: end
    end if;
    v_given := '{}';
    foreach v_user in array v_round loop
      exit when cardinality(v_users) = v_limit;
      v_account := memory_private.work_account(v_user);
      if v_step in ('turns', 'again') and v_account = any (v_whose) then -- one piece for each account first
        v_later := v_later || v_user;
        continue;
      end if;
      if coalesce((v_held ->> v_account)::integer, 0) + cardinality(array_positions(v_whose, v_account)) >= v_most then
        v_full := v_full || v_user;
        continue;
      end if;
      v_id := memory_private.claim_next(v_user, v_until, p_worker, p_lease_seconds);
      if v_id is not null then
        v_users := v_users || v_user;
        v_ids := v_ids || v_id;
        v_given := v_given || v_user;
        v_whose := v_whose || v_account;
      end if;
    end loop;
  end loop;
  -- An owner who got work goes behind all others whose turn it is.
  v_by := clock_timestamp();
  foreach v_user in array v_locked loop
    select w.run_after into v_due from memory_private.work w where w.user_id = v_user order by w.run_after limit 1;
    if not found or v_due = 'infinity' then
      delete from memory_private.owners o where o.user_id = v_user;
    else
      v_turn := v_by + array_position(v_users, v_user) * interval '1 microsecond';
      update memory_private.owners o
         set due_at = v_due, turn_at = greatest(v_due, coalesce(v_turn, o.turn_at))
       where o.user_id = v_user;
    end if;
  end loop;
  if memory_private.has_spaces() then
    for v_account in select distinct w from unnest(v_whose) w loop
      perform memory_private.delay_account(v_account, v_by + cardinality(v_users) * interval '1 microsecond');
    end loop;
  end if;
  -- Citus: claim_answer
  select jsonb_agg(jsonb_build_object(
           'user_id', w.user_id, 'conversation_id', w.conversation_id, 'thread_id', c.thread_id,
           'agent_id', c.agent_id, 'token', w.lease_token, 'since', w.since,
           'attempts', w.attempts + memory_private.count_failures(w.paused, p.waits),
           'paused', p.waits,
           'waited', extract(epoch from clock_timestamp() - w.since),
           'position', jsonb_build_array(c.next_sequence, c.revision, c.requested_at, c.expired_through),
           'requested', c.requested_at is distinct from c.served_at,
           'drafts', (select jsonb_object_agg(d.digest, d.answer) from memory_private.drafts d
                      where d.user_id = w.user_id and d.conversation_id = w.conversation_id))
           order by t.place)
    into v_rows
    from unnest(v_users, v_ids) with ordinality as t (user_id, id, place)
    cross join lateral (
      select w.* from memory_private.work w where w.user_id = t.user_id and w.conversation_id = t.id limit 1) w
    cross join lateral (select memory_private.backing_off_steps(w.paused) as waits) p
    cross join lateral (
      select c.* from memory.conversations c where c.user_id = t.user_id and c.id = t.id limit 1) c;
  -- Citus: end
  return coalesce(v_rows, '[]');
end
$function$;
comment on function public.memory_worker_claim is
  'langchain-supabase-memory: Take conversations that are due, under a lease, round by owner. Nobody waits for anybody:
  what another worker takes is passed by.

p_worker: the name of the worker.
p_limit: the most, at most 1000.
p_lease_seconds: how long they are leased, in seconds.
p_settle_seconds: not before so many seconds after they became due, so that a burst is one piece.
p_user_id: only of this owner; null: of all.
p_slots: how many the worker has at once: while others wait, one owner gets half of them. Null: no limit.
p_held: how many the worker has now, by owner: {user_id: count}.
Returns: object[].
- [].user_id: text. The owner.
- [].conversation_id: uuid. The conversation.
- [].thread_id: text. Its thread.
- [].agent_id: text. Its agent.
- [].token: uuid. Names the lease.
- [].since: timestamp. Since when it is due.
- [].attempts: integer. How often in a row it was tried, this time included.
- [].paused: text[]. The duties to leave out now, because they failed: pass them on as p_left_out.
- [].waited: number. How many seconds it was due.
- [].position: json[]. Where the conversation stands: pass it on as it is.
- [].requested: boolean. Whether somebody asked for it to be done now.
- [].drafts: object or null. Answers that a worker before kept, by digest.
Errors: none.';

create function public.memory_worker_heartbeat(
  p_leases        json,  -- [{"user_id", "conversation_id", "token"}]
  p_lease_seconds float8 default 60
) returns jsonb -- the tokens of those that are still held
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_lease record;
  v_held  jsonb := '[]';
  v_until timestamptz;
begin
  -- Locked in one order, here and wherever leases are released, so that two workers never deadlock.
  for v_lease in
    select i.* from json_to_recordset(p_leases) as i (user_id text, conversation_id uuid, token uuid) order by 1, 2
  loop
    v_until := clock_timestamp() + p_lease_seconds * interval '1 second';
    update memory_private.work w
       set lease_until = v_until, run_after = v_until
     where w.user_id = v_lease.user_id and w.conversation_id = v_lease.conversation_id and w.lease_token = v_lease.token;
    if found then
      v_held := v_held || to_jsonb(v_lease.token);
    end if;
  end loop;
  return v_held;
end
$function$;
comment on function public.memory_worker_heartbeat is
  'langchain-supabase-memory: Keep leases: each begins anew.

p_leases: the leases, a list of objects.
- user_id: text. As claimed.
- conversation_id: uuid. As claimed.
- token: uuid. As claimed.
p_lease_seconds: how long they are leased from now on, in seconds.
Returns: uuid[]. The tokens of those that are still held; the work of the others is another worker''s.
Errors: none.';

create function public.memory_worker_finish(
  p_user_id         text,
  p_conversation_id uuid,
  p_token           uuid,
  p_position        json,                  -- where the conversation stood when it was claimed
  p_error           text    default null,  -- a word, never content; null: all that was due is done
  p_served          boolean default false, -- whether a wish of then is fulfilled
  p_max_attempts    integer default 8,
  p_retry_seconds   float8  default 30,
  p_failed          json    default null,  -- which duties failed: {duty: word}; null with an error: all
  p_left_out        json    default '[]'   -- which were not tried, as claimed
) returns jsonb
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_c        memory.conversations;
  v_w        memory_private.work;
  v_wish     timestamptz := p_position ->> 2;
  v_left_out text[] := array(select json_array_elements_text(p_left_out));
  v_failed   jsonb := case when p_error is null then '{}'
                           else coalesce(nullif(p_failed::jsonb, 'null'), jsonb_build_object('all', p_error)) end;
  v_paused   jsonb;
  v_until    timestamptz;
  v_now      timestamptz;
  v_is_moved boolean;
begin
  -- Lock the conversation first, as an append does: what is stored afterwards marks it again.
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
  v_is_moved := v_w.is_moved or v_c.next_sequence <> (p_position ->> 0)::bigint
                or v_c.revision <> (p_position ->> 1)::bigint;
  if p_error is null and cardinality(v_left_out) = 0 then
    delete from memory_private.drafts d where d.user_id = p_user_id and d.conversation_id = p_conversation_id;
    if p_served and v_wish is not null then
      update memory.conversations c set served_at = v_wish where c.user_id = p_user_id and c.id = p_conversation_id;
    end if;
    if not v_is_moved and v_c.requested_at is not distinct from v_wish then
      delete from memory_private.work w where w.user_id = p_user_id and w.conversation_id = p_conversation_id;
      return '{"outcome": "done"}';
    end if;
  end if;
  if v_c.requested_at is distinct from v_wish or (v_failed = '{}' and cardinality(v_left_out) = 0) then
    -- It has changed; a new request does not wait for an earlier failure.
    v_now := clock_timestamp();
    update memory_private.work w
       set lease_token = null, lease_until = null, worker = null, error = left(p_error, 200), attempts = 0,
           since = v_now, paused = '{}', dead_at = null,
           run_after = case when v_c.requested_at is distinct from v_wish then '-infinity' else v_now end
     where w.user_id = p_user_id and w.conversation_id = p_conversation_id;
    perform pg_notify('memory_work', '');
    return '{"outcome": "again"}';
  end if;
  -- Steps that were left out keep waiting. Failed steps wait longer, or are given up; the rest continues without them.
  with failures as (
    select f.key, f.value, v_w.attempts + case
             when f.key = 'all' then memory_private.count_failures(v_w.paused, v_left_out)
             else coalesce((coalesce(v_w.paused -> f.key, v_w.paused -> 'all') ->> 'failures')::integer, 0) end as count
    from jsonb_each_text(v_failed) f),
  waits as materialized ( -- what failed equally often is tried again together
    select n.count, case when n.count >= p_max_attempts then 'infinity'
                    else memory_private.backoff_until(n.count - 1, p_retry_seconds) end as until
    from (select distinct f.count from failures f) n)
  select coalesce((select jsonb_object_agg(d.key, d.value) from jsonb_each(v_w.paused) d where d.key = any (v_left_out)), '{}')
         || coalesce((
           select jsonb_object_agg(f.key, jsonb_build_object(
             'failures', f.count, 'error', left(f.value, 200), 'until', t.until))
           from failures f join waits t on t.count = f.count), '{}')
    into v_paused;
  v_now := clock_timestamp();
  v_until := coalesce(memory_private.first_retry_at(v_paused), v_now); -- null: it was revived meanwhile
  if v_is_moved and not v_paused ? 'all' then
    v_until := v_now;
    perform pg_notify('memory_work', '');
  end if;
  update memory_private.work w
     set lease_token = null, lease_until = null, worker = null, error = coalesce(left(p_error, 200), w.error), attempts = 0,
         paused = v_paused, run_after = v_until,
         dead_at = case when v_paused @? '$.* ? (@.until == "infinity")' then coalesce(w.dead_at, v_now) end
   where w.user_id = p_user_id and w.conversation_id = p_conversation_id;
  return jsonb_build_object('outcome', case
    when exists (select from jsonb_each(v_paused) d where v_failed ? d.key and d.value ->> 'until' = 'infinity') then 'dead'
    when v_failed <> '{}' then 'retry'
    when v_is_moved then 'again' else 'done' end);
end
$function$;
comment on function public.memory_worker_finish is
  'langchain-supabase-memory: Give a conversation back: done, or failed. Positions are compared, so that nothing which
  was said meanwhile is missed.

p_user_id: as claimed.
p_conversation_id: as claimed.
p_token: as claimed.
p_position: as claimed.
p_error: why it failed, in a word and without content; null: all that was due is done.
p_served: whether a wish for it, as claimed, is fulfilled.
p_max_attempts: after so many failures in a row it is given up.
p_retry_seconds: how long the second try waits, in seconds; then twice as long each time, up to an hour.
p_failed: which duties failed, {duty: word}; null with p_error: all.
p_left_out: which duties were not tried, a list of text, as paused was claimed.
Returns: object.
- outcome: text. done; again (it has moved on, and is due again); retry (tried again later); dead (given up); lost
  (the lease is another''s); gone (the conversation was forgotten).
Errors: none.';

create function public.memory_worker_keep_draft(
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
  if not found or memory_private.mentions(
       p_answer, memory_private.opted_out_topics(p_user_id, p_conversation_id), v_c.language)
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
comment on function public.memory_worker_keep_draft is
  'langchain-supabase-memory: Keep an answer that nothing is stored from yet, for who goes on if this worker is killed.

p_user_id: as claimed.
p_conversation_id: as claimed.
p_token: as claimed.
p_position: as claimed.
p_digest: of the question and the name of the model.
p_answer: what the model said.
Returns: object.
- kept: boolean. Not if the lease has run out, a message has changed or gone since, or it mentions a topic that is
  not to be remembered.
Errors: none.';

create function public.memory_worker_release(
  p_leases json -- [{"user_id", "conversation_id", "token"}]
) returns jsonb
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_lease    record;
  v_released bigint := 0;
  v_now      timestamptz;
begin
  for v_lease in
    select i.* from json_to_recordset(p_leases) as i (user_id text, conversation_id uuid, token uuid) order by 1, 2
  loop
    v_now := clock_timestamp();
    update memory_private.work w
       set lease_token = null, lease_until = null, worker = null, attempts = greatest(w.attempts - 1, 0),
           run_after = v_now
     where w.user_id = v_lease.user_id and w.conversation_id = v_lease.conversation_id and w.lease_token = v_lease.token;
    v_released := v_released + found::integer;
  end loop;
  if v_released > 0 then
    perform pg_notify('memory_work', '');
  end if;
  return jsonb_build_object('released', v_released);
end
$function$;
comment on function public.memory_worker_release is
  'langchain-supabase-memory: Give leases back unfinished, for another worker. They do not count as tries.

p_leases: the leases, a list of objects.
- user_id: text. As claimed.
- conversation_id: uuid. As claimed.
- token: uuid. As claimed.
Returns: object.
- released: integer. How many were still held.
Errors: none.';

create function public.memory_worker_revive(
  p_user_id   text default null, -- null: everybody's
  p_agent_id  text default null,
  p_thread_id text default null
) returns jsonb
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_w       record;
  v_revived bigint := 0;
  v_now     timestamptz := clock_timestamp();
begin
  for v_w in
    select w.user_id, w.conversation_id from memory_private.work w
    where w.dead_at is not null and (p_user_id is null or w.user_id = p_user_id)
      and ((p_agent_id is null and p_thread_id is null) or exists (
        select from memory.conversations c
        where c.user_id = w.user_id and c.id = w.conversation_id and (p_agent_id is null or c.agent_id = p_agent_id)
          and (p_thread_id is null or c.thread_id = p_thread_id)))
    order by 1, 2
  loop
    update memory_private.work w
       set dead_at = null, attempts = 0, paused = '{}', since = v_now,
           run_after = case when w.lease_token is null then v_now else w.run_after end
     where w.user_id = v_w.user_id and w.conversation_id = v_w.conversation_id and w.dead_at is not null;
    v_revived := v_revived + found::integer;
  end loop;
  if v_revived > 0 then
    perform pg_notify('memory_work', '');
  end if;
  return jsonb_build_object('revived', v_revived);
end
$function$;
comment on function public.memory_worker_revive is
  'langchain-supabase-memory: Try again what was given up.

p_user_id: only of this owner; null: of all.
p_agent_id: only with this agent; null: with all.
p_thread_id: only of this thread; null: of all.
Returns: object.
- revived: integer. How many conversations are due again.
Errors: none.';

create function public.memory_worker_chore(
  p_name          text,
  p_every_seconds float8
) returns jsonb -- whether the caller is to do it now
language plpgsql volatile security invoker set search_path = ''
as $function$
begin
  insert into memory_private.chores as c (name, run_after)
  values (p_name, clock_timestamp() + p_every_seconds * interval '1 second')
  on conflict (name) do update
    set run_after = excluded.run_after, done_at = excluded.done_at
    where c.run_after <= clock_timestamp() or c.done_at > clock_timestamp(); -- the clock was set back
  return jsonb_build_object('mine', found);
end
$function$;
comment on function public.memory_worker_chore is
  'langchain-supabase-memory: Agree among several workers who does what is done from time to time.

p_name: what is to be done.
p_every_seconds: how often, in seconds.
Returns: object.
- mine: boolean. Whether the caller is to do it now.
Errors: none.';

create function public.memory_worker_rederive(
  p_characters bigint  default null, -- due when so much is not yet summarized; null: does not matter
  p_tokens     bigint  default null,
  p_messages   bigint  default null,
  p_board      bigint  default null, -- due when so many messages are not on the board
  p_index      boolean default true, -- due when something is not indexed
  p_vectors    boolean default false, -- due when a chunk lacks its vector
  p_limit      integer default 1000,
  p_after_user text    default null,
  p_after      uuid    default null,
  p_user_id    text    default null -- only this owner's; null: everybody's
) returns jsonb
language plpgsql volatile security invoker set search_path = ''
set plan_cache_mode = force_custom_plan set enable_sort = off set jit = off -- as in memory_due
as $function$
declare
  v_page  record;
  v_w     record;
  v_again bigint := 0;
  v_now   timestamptz := clock_timestamp();
begin
  -- First, on its own page, work that was given up: it is tried again once an hour if messages were stored.
  if p_after_user is null then
    delete from memory.opt_out_undos u
     where u.expires_at <= v_now and (p_user_id is null or u.user_id = p_user_id);
    for v_w in
      select d.user_id, d.conversation_id from memory_private.work d
      cross join lateral (
        select c.updated_at from memory.conversations c
        where (p_user_id is null or c.user_id = p_user_id) and c.user_id = d.user_id and c.id = d.conversation_id limit 1) c
      where d.dead_at < clock_timestamp() - interval '1 hour' and d.lease_token is null and c.updated_at > d.dead_at
        and (p_user_id is null or d.user_id = p_user_id)
      order by 1, 2 limit 1000
    loop
      update memory_private.work w
         set dead_at = null, since = v_now, run_after = v_now,
             paused = (select jsonb_object_agg(d.key, case when d.value ->> 'until' = 'infinity' then d.value || jsonb_build_object(
                         'failures', greatest((d.value ->> 'failures')::integer - 1, 0), 'until', v_now)
                       else d.value end) from jsonb_each(w.paused) d)
       where w.user_id = v_w.user_id and w.conversation_id = v_w.conversation_id and w.dead_at is not null
         and w.lease_token is null;
      v_again := v_again + found::integer;
    end loop;
    if v_again > 0 then
      perform pg_notify('memory_work', '');
    end if;
    return jsonb_build_object('marked', v_again, 'after', jsonb_build_object(
      'user', '', 'id', '00000000-0000-0000-0000-000000000000'));
  end if;
  -- Find conversations that changed but are not marked, and owners without a turn: changed by hand, restored from a
  -- dump, or while a trigger was off. Locked ones are skipped, so that nobody waits here.
  -- Citus: rederive_page
  with page as materialized (
    select c.user_id, c.id,
           c.opted_out_at is null and (
           (p_index and (c.next_sequence - 1 > c.indexed_through or c.has_stale))
           or (p_vectors and c.unembedded_from is not null)
           or c.next_sequence - 1 - coalesce(b.through_sequence, -1) >= p_board
           or c.total_characters - c.summarized_characters > p_characters
           or c.total_tokens - c.summarized_tokens > p_tokens
           or c.next_sequence - 1 - c.summarized_through > p_messages
           or c.requested_at is distinct from c.served_at) as is_behind
    from memory.conversations c
    left join lateral (
      select b.through_sequence from memory.conversation_summary_boards b
      where b.user_id = c.user_id and b.conversation_id = c.id limit 1) b on true
    where (c.user_id, c.id) > (p_after_user, p_after) and (p_user_id is null or c.user_id = p_user_id)
      and (p_user_id is null or p_after_user <> p_user_id or c.id > p_after) -- where its page begins
    order by c.user_id, c.id limit least(p_limit, 1000)),
  behind as materialized (
    select c.user_id, c.id, c.priority
    from page p
    cross join lateral (
      select c.* from memory.conversations c where c.user_id = p.user_id and c.id = p.id for key share skip locked) c
    left join lateral (
      select true as is_marked from memory_private.work w
      where w.user_id = p.user_id and w.conversation_id between p.id and p.id order by w.conversation_id limit 1) w on true
    where p.is_behind and w.is_marked is null),
  turns as (
    insert into memory_private.owners (user_id, turn_at, due_at)
    select t.user_id, clock_timestamp(), min(t.run_after)
    from (select p.user_id, w.run_after from page p
          cross join lateral (
            select w.run_after from memory_private.work w
            where w.user_id = p.user_id and w.conversation_id between p.id and p.id and w.run_after < 'infinity'
            order by w.conversation_id limit 1) w
          left join lateral (select true as is_there from memory_private.owners o where o.user_id = p.user_id limit 1) o on true
          where o.is_there is null) t
    group by t.user_id order by t.user_id
    on conflict (user_id) do nothing),
  marked as (
    insert into memory_private.work (user_id, conversation_id, priority)
    select b.user_id, b.id, b.priority from behind b
    on conflict (user_id, conversation_id) do nothing
    returning 1)
  select (select count(*) from marked) as marked, count(*) as seen,
         (array_agg(p.user_id order by p.user_id desc, p.id desc))[1] as last_user,
         (array_agg(p.id order by p.user_id desc, p.id desc))[1] as last
    into v_page from page p;
  -- Citus: end
  if v_page.marked > 0 then
    perform pg_notify('memory_work', '');
  end if;
  return jsonb_build_object('marked', v_page.marked, 'after', case when v_page.seen = least(p_limit, 1000) then
    jsonb_build_object('user', v_page.last_user, 'id', v_page.last) end);
end
$function$;
comment on function public.memory_worker_rederive is
  'langchain-supabase-memory: Mark conversations that are behind and not marked, by pages: after a restore, or what was
  written with triggers off. The first page tries again what was given up and has moved on since.

p_characters: behind when more characters than this are not summarized; null: they do not matter.
p_tokens: behind when more tokens are not; null: they do not matter.
p_messages: behind when more messages are not; null: they do not matter.
p_board: behind when so many messages are not on the board; null: they do not matter.
p_index: behind when something is not indexed.
p_vectors: behind when a chunk lacks its vector.
p_limit: the most conversations of one page, at most 1000.
p_after_user: user of after from the last page; null: the first page.
p_after: id of after from the last page.
p_user_id: only this owner''s; null: everybody''s.
Returns: object.
- marked: integer. How many are due now that were not.
- after: object or null. Where the next page goes on; null: there is none.
- after.user: text. Pass it as p_after_user.
- after.id: uuid. Pass it as p_after.
Errors: none.';

create function public.memory_worker_idle(
  p_seconds    float8,          -- without a message for so long
  p_limit      integer     default 100,
  p_after_hour timestamptz default null,
  p_after_user text        default null,
  p_after      uuid        default null,
  p_user_id    text        default null -- only this owner's; null: everybody's
) returns jsonb
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_custom_plan set enable_sort = off set jit = off -- else all that are idle are sorted
as $function$
declare
  v_before timestamptz := clock_timestamp() - p_seconds * interval '1 second';
  v_hour   timestamptz := memory_private.hour_of(v_before);
begin
  return coalesce((
    select jsonb_agg(to_jsonb(r) order by r.updated_hour, r.user_id, r.id)
    from (
      select c.user_id, c.id, c.agent_id, c.thread_id, c.updated_hour from memory.conversations c
      where (p_user_id is null or c.user_id = p_user_id) and c.archived_at is null and c.next_sequence > 0
        and c.updated_at < v_before and c.updated_hour <= v_hour
        and (p_after is null or (c.updated_hour, c.user_id, c.id) > (p_after_hour, p_after_user, p_after))
      order by c.updated_hour, c.user_id, c.id
      limit least(p_limit, 1000)) r), '[]');
end
$function$;
comment on function public.memory_worker_idle is
  'langchain-supabase-memory: List conversations without a message for so long that are not archived, the longest idle
  first, by pages.

p_seconds: how long, in seconds.
p_limit: the most of one answer, at most 1000.
p_after_hour: the updated_hour at which the last page ended; null: from the beginning.
p_after_user: the user_id at which the last page ended; null: from the beginning.
p_after: the id at which the last page ended; null: from the beginning.
p_user_id: only this owner''s; null: everybody''s.
Returns: object[].
- [].user_id: text. The owner.
- [].id: uuid. The conversation.
- [].agent_id: text. Its agent.
- [].thread_id: text. Its thread.
- [].updated_hour: timestamp. The hour in which it last changed.
Errors: none.';

create function public.memory_worker_archive(
  p_thread_id     text,
  p_next_sequence bigint, -- if nothing was said since
  p_user_id       text    default null,
  p_agent_id      text    default 'default'
) returns jsonb
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_user text := memory_private.resolve_writer(p_user_id);
  v_now  timestamptz := clock_timestamp();
begin
  update memory.conversations c
     set archived_at = v_now
   where c.user_id = v_user and c.agent_id = p_agent_id and c.thread_id = p_thread_id
     and c.next_sequence = p_next_sequence;
  return jsonb_build_object('archived', found);
end
$function$;
comment on function public.memory_worker_archive is
  'langchain-supabase-memory: Mark a conversation as archived, unless something was said since. The next message brings
  it back.

p_thread_id: the thread of the conversation.
p_next_sequence: next_sequence as it was when it was found to be idle.
p_user_id: the owner; null: the subject of the caller''s token.
p_agent_id: the agent of the conversation.
Returns: object.
- archived: boolean. Whether it was marked.
Errors:
- PT400: no p_user_id is given, and the caller''s token names nobody.';

create function public.memory_status(
  p_user_id   text    default null, -- null: everybody whom the caller may see
  p_agent_id  text    default null,
  p_thread_id text    default null,
  p_state     text    default null, -- only these: due, running, waiting, dead, idle
  p_limit     integer default 100,
  p_after_user text   default null,
  p_after      uuid   default null,
  p_ids        json   default null  -- only these conversations, by their ids
) returns jsonb
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_custom_plan -- as in memory_due; what is in work, little beside all that is stored, is found from there
set enable_partitionwise_join = on -- else all that is due in any of them is joined before a page is taken
as $function$
declare
  v_ids    uuid[]; -- null: all
  v_is_own boolean; -- whether the page begins within the one owner's
begin
  p_user_id := memory_private.resolve_scope(p_user_id);
  v_is_own := coalesce(p_after_user = p_user_id, false);
  perform memory_private.check_limits(p_ids);
  if p_ids is not null then
    v_ids := array(select i::uuid from json_array_elements_text(p_ids) i);
  end if;
  return coalesce((
    select jsonb_agg(to_jsonb(r) order by r.user_id, r.id)
    from (
      select c.user_id, c.id, w.since, w.worker, w.lease_until, w.run_after, w.paused,
             w.attempts + memory_private.count_failures(w.paused) as attempts,
             memory_private.work_state(w.run_after, w.lease_until) as state, c.agent_id, c.thread_id, c.next_sequence,
             c.message_count, c.summarized_through, c.indexed_through, c.total_tokens, c.updated_at, c.archived_at,
             c.private, c.priority, coalesce(b.through_sequence, -1) as board_through, coalesce(b.version, 0) as board_version,
             w.error as work_error, coalesce(w.error, c.summary_error, c.index_error) as error,
             greatest(c.summarized_tokens - coalesce(g.tokens, 0), 0) as tokens_saved, g.quality
      from memory.conversations c
      -- Where a page begins is said of each table: a merge would read all before it.
      left join memory_private.work w on w.user_id = c.user_id and w.conversation_id = c.id
        and (p_after is null or not v_is_own or w.conversation_id > p_after)
        and (p_after is null or v_is_own or (w.user_id, w.conversation_id) > (p_after_user, p_after))
      left join memory.conversation_summary_boards b on b.user_id = c.user_id and b.conversation_id = c.id
        and (p_after is null or not v_is_own or b.conversation_id > p_after)
        and (p_after is null or v_is_own or (b.user_id, b.conversation_id) > (p_after_user, p_after))
      -- Citus: newest_segment
      left join lateral (
        select g.tokens, g.quality from memory.conversation_summaries g
        where g.user_id = c.user_id and g.conversation_id = c.id and g.level = 0
        order by g.number desc limit 1) g on true
      -- Citus: end
      -- Not in a lateral subquery: Citus sends none without a table to the nodes.
      -- Taken for one of 200, those of a state would all be read and sorted: what is coalesced is taken for every other.
      where (p_state is null or p_state = 'idle'
             or coalesce(memory_private.work_state(w.run_after, w.lease_until) = p_state, false))
        and (p_state is distinct from 'idle' or w.user_id is null)
        and (p_state is null or p_state = 'idle' or w.user_id is not null)
        and (p_state is distinct from 'dead' or w.dead_at is not null) -- by an index of its own,
        and (p_state is distinct from 'running' or w.lease_token is not null) -- and so is this
        and (p_user_id is null or c.user_id = p_user_id) and (p_agent_id is null or c.agent_id = p_agent_id)
        and (p_thread_id is null or c.thread_id = p_thread_id)
        and (v_ids is null or c.id = any (v_ids))
        -- Beside one owner, a comparison of rows would be read from that owner's first conversation on.
        and (p_after is null or not v_is_own or c.id > p_after)
        and (p_after is null or v_is_own or (c.user_id, c.id) > (p_after_user, p_after))
      order by c.user_id, c.id
      limit least(p_limit, 1000)) r), '[]');
end
$function$;
comment on function public.memory_status is
  'langchain-supabase-memory: Say what is due, running, waiting and dead, and how far each conversation is covered, by
  pages.

p_user_id: only this owner''s; null: everybody''s that the caller may see.
p_agent_id: only with this agent; null: with all.
p_thread_id: only of this thread; null: of all.
p_state: only these: due, running, waiting, dead or idle; null: all.
p_limit: the most of one answer, at most 1000.
p_after_user: the user_id at which the last page ended; null: from the beginning.
p_after: the id at which the last page ended; null: from the beginning.
p_ids: text[]: only the conversations with these ids; null: all.
Returns: object[].
- [].user_id: text. The owner.
- [].id: uuid. The conversation.
- [].since: timestamp or null. Since when it is due; null if it is idle.
- [].worker: text or null. Who is at it.
- [].lease_until: timestamp or null. Until when.
- [].run_after: timestamp or null. Not before this time; infinity if it was given up, -infinity if somebody asked
  for it now.
- [].paused: object or null. What failed, by the name of the duty, or all: {"failures", "error", "until"}.
- [].attempts: integer or null. How often in a row it was tried.
- [].state: text. due, running, waiting, dead or idle.
- [].agent_id: text. Its agent.
- [].thread_id: text. Its thread.
- [].next_sequence: integer. The sequence that the next message gets.
- [].message_count: integer. How many messages it holds.
- [].summarized_through: integer. The last sequence that a summary covers; -1 if none.
- [].indexed_through: integer. The last sequence that is indexed; -1 if none.
- [].total_tokens: integer. About the tokens of all messages.
- [].updated_at: timestamp. When it was last changed.
- [].archived_at: timestamp or null. Since when it is archived.
- [].private: boolean. Whether it is private.
- [].priority: integer. Its priority among those of its owner.
- [].board_through: integer. The last message that is read into the board; -1 if none.
- [].board_version: integer. The version of the board; 0 if there is none.
- [].work_error: text or null. Why a worker failed, in a word.
- [].error: text or null. The same, or why a summary or the embedder failed.
- [].tokens_saved: integer. About the tokens that the summary stands for, less its own.
- [].quality: number or null. The quality of the newest summary, 0 to 1.
Errors:
- PT413: p_ids are more than one call may pass.';

create function public.memory_worker_queue(
  p_user_id text default null -- only this owner's; null: everybody's
) returns jsonb
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_custom_plan set enable_sort = off set jit = off -- as in memory_due
as $function$
declare
  v_most  constant bigint := 10000; -- more are not counted: a dashboard asks every few seconds
  v_now   constant timestamptz := clock_timestamp();
  v_bytes bigint;
  v_rest  record; -- what is found by indexes of its own
  v_queue jsonb;
begin
  select sum(pg_catalog.pg_relation_size(t.oid::regclass) + coalesce((
           select sum(pg_catalog.pg_relation_size(i.indexrelid)) from pg_catalog.pg_index i
           join pg_catalog.pg_class r on r.oid = i.indexrelid
           join pg_catalog.pg_am a on a.oid = r.relam
           where i.indrelid = t.oid and a.amname = 'hnsw'), 0))
    into v_bytes
    from memory_private.storage_relations('memory.chunk_embeddings') t (oid);
  select (select count(*) from (
           select from memory.conversation_messages m
           where m.unreadable is not null and (p_user_id is null or m.user_id = p_user_id)
           order by m.user_id, m.conversation_id, m.sequence limit v_most) m) as unreadable,
         (select count(*) from (
           select from memory_private.work w
           where w.dead_at is not null and (p_user_id is null or w.user_id = p_user_id)
           order by w.dead_at limit v_most) w) as dead,
         (select count(*) from (
           select from memory_private.work w
           where w.lease_token is not null and w.lease_until > v_now and (p_user_id is null or w.user_id = p_user_id)
           order by w.lease_until limit v_most) w) as leases,
         case when p_user_id is null then memory_private.longest_wait() else 0 end as wait
    into v_rest;
  with found as materialized (
    select w.* from memory_private.work w where p_user_id is null or w.user_id = p_user_id limit v_most),
  failed as (
    select k.duty, count(*) from found w cross join lateral jsonb_object_keys(w.paused) k (duty)
    where w.paused <> '{}' group by k.duty)
  select jsonb_build_object(
           'depth', count(*) filter (where w.run_after < 'infinity'),
           'due', count(*) filter (where w.run_after <= v_now),
           'leases', v_rest.leases,
           'waiting', count(*) filter (where w.lease_token is null and w.run_after > v_now and w.run_after < 'infinity'),
           'dead', v_rest.dead,
           'unreadable', count(*) filter (where w.error = 'unreadable'),
           'unreadable_messages', v_rest.unreadable,
           'paused', coalesce((select jsonb_object_agg(f.duty, f.count) from failed f), '{}'),
           'lag_seconds', greatest(v_rest.wait, extract(epoch from v_now - min(w.since) filter (where w.run_after < 'infinity'))),
           'next_seconds', case when v_rest.wait > 0 then 0
             when count(*) filter (where w.run_after < 'infinity') > 0
             then greatest(0, extract(epoch from greatest(min(w.run_after), 'epoch') - v_now)) end,
           'vector_bytes', v_bytes,
           'has_more', count(*) = v_most)
    into v_queue from found w;
  return v_queue;
end
$function$;
comment on function public.memory_worker_queue is
  'langchain-supabase-memory: Say how much is due, how long it has waited, and how many leases and dead there are. At
  most 10,000 conversations are looked at: with has_more the counts say that there are at least so many.

p_user_id: only this owner''s; null: everybody''s.
Returns: object.
- depth: integer. How many conversations a worker has to look at.
- due: integer. How many of them now.
- leases: integer. How many a worker is at, of all.
- waiting: integer. How many wait for a later time.
- dead: integer. How many were given up, in whole or in part, of all; at most 10,000.
- unreadable: integer. How many failed last because of messages that cannot be read.
- unreadable_messages: integer. How many messages cannot be read; at most 10,000.
- paused: object. How many conversations a duty waits in, by the name of the duty.
- lag_seconds: number. How long the oldest has been due, in seconds: of those looked at, and of the hundred owners whose
  turn is next.
- next_seconds: number or null. In how many seconds the next is due; null: nothing is.
- vector_bytes: integer. The bytes of the vectors of chunks and of their index, of all owners.
- has_more: boolean. Whether so many were looked at that there may be more.
Errors: none.';

-- Returns when to try again: after 15 to 30 seconds by default, doubled with each failure, up to an hour. Jitter
-- keeps retries apart.
create or replace function memory_private.backoff_until(p_failures integer, p_seconds float8 default 30)
returns timestamptz
language sql volatile security invoker set search_path = ''
as $function$
  select clock_timestamp() + least(p_seconds * 2 ^ least(p_failures, 20), 3600) * (0.5 + random() / 2) * interval '1 second'
$function$;

create function public.memory_worker_users(
  p_prefix text    default null, -- only ids that begin so; null: all
  p_limit  integer default 25,
  p_after  text    default null, -- the user to go on from
  p_contains text  default null  -- only ids that contain it, in whatever case; null: all
) returns jsonb
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
declare
  c_steps  constant integer := 500; -- users and spaces that one call looks at
  c_misses constant integer := 50;  -- so many others in a row end a prefix: an order of the language mixes capitals
  c_newest constant integer := 10;  -- conversations of a user that are read
  v_prefix constant text := coalesce(p_prefix, '');
  v_part   constant text := lower(coalesce(p_contains, ''));
  v_limit  constant integer := greatest(1, least(coalesce(p_limit, 25), 100));
  v_at     text := p_after;
  v_user   text;
  v_users  jsonb[] := '{}';
  v_dead   jsonb; -- how many conversations of a user have work that was given up
  v_newest record;
  v_misses integer := 0;
  v_after  text;
begin
  select coalesce(jsonb_object_agg(t.user_id, t.count), '{}') into v_dead
    from (select d.user_id, count(*) as count
          from (select w.user_id from memory_private.work w where w.dead_at is not null order by w.dead_at limit 10000) d
          group by d.user_id) t;
  -- From one owner to the next by the primary key, however many conversations each has.
  for v_step in 1 .. c_steps loop
    if v_at is null then
      select c.user_id into v_user from memory.conversations c
       where c.user_id >= v_prefix order by c.user_id limit 1;
    else
      select c.user_id into v_user from memory.conversations c
       where c.user_id > v_at and c.user_id >= v_prefix order by c.user_id limit 1;
    end if;
    exit when v_user is null;
    if cardinality(v_users) = v_limit or v_step = c_steps then
      v_after := v_at;
      exit;
    end if;
    v_at := v_user;
    if starts_with(v_user, 'space:') then
      v_at := greatest(v_user, 'space;'); -- behind all spaces, where they stand together
    elsif starts_with(v_user, v_prefix) then
      v_misses := 0;
      continue when strpos(lower(v_user), v_part) = 0;
      select count(*) as count, max(t.updated_at) as last_at,
             coalesce(sum(t.total_tokens) filter (where t.place <= c_newest), 0) as tokens
        into v_newest
        from (select c.updated_at, c.total_tokens, row_number() over () as place
              from (select k.updated_at, k.total_tokens from memory.conversations k
                    where k.user_id = v_user
                    order by k.user_id desc, k.updated_hour desc, k.agent_id desc limit c_newest + 1) c) t;
      v_users := v_users || jsonb_build_object(
        'user_id', v_user, 'conversations', least(v_newest.count, c_newest), 'has_more', v_newest.count > c_newest,
        'tokens', v_newest.tokens, 'last_at', v_newest.last_at, 'dead', coalesce((v_dead ->> v_user)::bigint, 0));
    else
      v_misses := v_misses + 1;
      exit when v_misses > c_misses;
    end if;
  end loop;
  return jsonb_build_object('users', to_jsonb(v_users), 'after', v_after);
end
$function$;
comment on function public.memory_worker_users is
  'langchain-supabase-memory: List the users who have conversations, by their ids, with what an operator looks for
  first. Spaces are left out. One call looks at 500 owners at most, and at the ten newest conversations of each user.

p_prefix: only users whose ids begin with it; null: all.
p_limit: the most users of one page, 1 to 100.
p_after: after of the page before; null: the first page.
p_contains: only users whose ids contain it, in whatever case; null: all. A page may then be empty and have an after.
Returns: object.
- users: object[]. The page, in the order of their ids.
- users[].user_id: text. The user.
- users[].conversations: integer. How many conversations they have, up to 10.
- users[].has_more: boolean. Whether they have more than these.
- users[].tokens: integer. The tokens of the messages of these conversations.
- users[].last_at: timestamp. When one of these changed last.
- users[].dead: integer. How many of the user''s conversations have work that was given up, of the first 10,000 of all.
- after: text or null. Where the next page begins; null: there is none.
Errors: none.';
