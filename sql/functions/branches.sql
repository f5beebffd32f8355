-- Branches: the newest state of a graph decides which of its messages are current. What it does not have is moved out,
-- and in again when the state returns to it. Only what a graph stored is moved: never what was appended by hand.

-- Returns the sequence of a message by its id. The query is held to the one index that has both.
create or replace function memory_private.sequence_of_message(p_user_id text, p_conversation_id uuid, p_message_id text)
returns bigint
language sql stable security invoker set search_path = ''
set enable_sort = off set jit = off
as $function$
  select t.sequence
  from (select m.sequence, m.message_id from memory.conversation_messages m
        where m.user_id = p_user_id and m.conversation_id = p_conversation_id and m.message_id >= p_message_id
        order by m.message_id limit 1) t
  where t.message_id = p_message_id
$function$;

-- Moves messages out of the conversation, or back in at their own sequences, which come in order. Counts are
-- updated, and what was made from them on is invalidated. The caller holds the conversation's row lock.
create or replace function memory_private.move_messages(
  p_user_id text, p_conversation_id uuid, p_sequences bigint[], p_is_back boolean
) returns void
language plpgsql volatile security invoker set search_path = ''
set plan_cache_mode = force_generic_plan
as $function$
declare
  v_first    constant bigint := p_sequences[1];
  v_last     constant bigint := p_sequences[cardinality(p_sequences)];
  v_ranges   constant int8multirange := (select range_agg(int8range(s, s, '[]')) from unnest(p_sequences) s);
  v_next     constant bigint := (
    select c.next_sequence from memory.conversations c where c.user_id = p_user_id and c.id = p_conversation_id);
  v_now      constant timestamptz := clock_timestamp();
  v_moved    record;
  v_sequence bigint;
begin
  perform memory_private.update_block_counts(p_user_id, p_conversation_id, v_ranges, -1, v_next);
  -- Two statements each: Citus would send the rows between parts of one statement to every node.
  if p_is_back then
    insert into memory.conversation_messages (
      user_id, conversation_id, sequence, message_id, role, text, characters, tokens, created_at, updated_at, metadata,
      images, payload, unreadable, parent, forked, question, author_id)
    select d.user_id, d.conversation_id, d.sequence, d.message_id, d.role, d.text, d.characters, d.tokens, d.created_at,
           d.updated_at, d.metadata, d.images, d.payload, d.unreadable, d.parent, d.forked, d.question, d.author_id
    from memory.superseded_messages d
    where d.user_id = p_user_id and d.conversation_id = p_conversation_id
      and d.sequence between v_first and v_last and d.sequence = any (p_sequences);
    with moved as (
      delete from memory.superseded_messages s
       where s.user_id = p_user_id and s.conversation_id = p_conversation_id
         and s.sequence between v_first and v_last and s.sequence = any (p_sequences)
      returning s.characters, s.tokens)
    select count(*) as count, sum(d.characters) as characters, sum(d.tokens) as tokens into v_moved from moved d;
  else
    insert into memory.superseded_messages (
      user_id, conversation_id, sequence, message_id, role, text, characters, tokens, created_at, updated_at, metadata,
      images, payload, unreadable, parent, forked, question, author_id)
    select d.user_id, d.conversation_id, d.sequence, d.message_id, d.role, d.text, d.characters, d.tokens, d.created_at,
           d.updated_at, d.metadata, d.images, d.payload, d.unreadable, d.parent, d.forked, d.question, d.author_id
    from memory.conversation_messages d
    where d.user_id = p_user_id and d.conversation_id = p_conversation_id
      and d.sequence between v_first and v_last and d.sequence = any (p_sequences);
    with moved as (
      delete from memory.conversation_messages m
       where m.user_id = p_user_id and m.conversation_id = p_conversation_id
         and m.sequence between v_first and v_last and m.sequence = any (p_sequences)
      returning m.characters, m.tokens)
    select -count(*) as count, -sum(d.characters) as characters, -sum(d.tokens) as tokens into v_moved from moved d;
  end if;
  perform memory_private.update_block_counts(p_user_id, p_conversation_id, v_ranges, 1, v_next);
  update memory.conversations c
     set message_count = c.message_count + v_moved.count,
         total_characters = c.total_characters + v_moved.characters,
         total_tokens = c.total_tokens + v_moved.tokens,
         has_superseded = c.has_superseded or not p_is_back,
         updated_at = v_now
   where c.user_id = p_user_id and c.id = p_conversation_id;
  for v_sequence in
    select distinct s from memory.conversation_board_items i, unnest(i.sequences) s
    where i.user_id = p_user_id and i.conversation_id = p_conversation_id and s = any (p_sequences)
  loop
    perform memory_private.delete_board_evidence(p_user_id, p_conversation_id, v_sequence, null);
  end loop;
  delete from memory.profile_evidence e
   where e.user_id = p_user_id and e.conversation_id = p_conversation_id and e.sequence = any (p_sequences);
  perform memory_private.invalidate_summaries(p_user_id, p_conversation_id, v_first);
  if p_is_back then
    perform memory_private.reindex_from(p_user_id, p_conversation_id, v_first);
  else
    perform memory_private.invalidate_chunks(p_user_id, p_conversation_id, v_first, v_last);
  end if;
end
$function$;

-- Identifies the owner of a graph's state without the name.
create or replace function memory_private.owner_digest(p_user_id text) returns text
language sql immutable security invoker set search_path = ''
as $function$
  select left(encode(sha256(convert_to(p_user_id, 'UTF8')), 'hex'), 32)
$function$;

-- Identifies this database. A copy has the same id.
create or replace function memory_private.database_id() returns text
language sql stable security invoker set search_path = ''
as $function$
  select l.database_id::text from memory_private.limits l
$function$;

-- Returns where the states of a graph fork: the sequences of messages whose state did not continue the newest one,
-- in order.
create or replace function memory_private.branch_forks(
  p_user_id text, p_conversation_id uuid, out sequences bigint[], out parents bigint[], out forked boolean[]
)
language sql stable security invoker set search_path = ''
set jit = off
as $function$
  select coalesce(array_agg(t.sequence order by t.sequence), '{}'), coalesce(array_agg(t.parent order by t.sequence), '{}'),
         coalesce(array_agg(t.forked order by t.sequence), '{}')
  from (
    select m.sequence, m.parent, coalesce(m.forked, false) as forked from memory.conversation_messages m
     where m.user_id = p_user_id and m.conversation_id = p_conversation_id and m.parent is not null
    union all
    select s.sequence, s.parent, false from memory.superseded_messages s -- it has been left already
     where s.user_id = p_user_id and s.conversation_id = p_conversation_id and s.parent is not null) t
$function$;

-- Returns the ranges that a run abandons which names its checkpoint: what follows the checkpoint, what replaced it,
-- and what it replaced. What came before the checkpoint stays, and so does what another run stored beside it.
create or replace function memory_private.abandoned_ranges(
  p_user_id text, p_conversation_id uuid, p_parent bigint -- the last message of the state, or what it begins in place of
) returns int8multirange
language plpgsql stable security invoker set search_path = ''
as $function$
declare
  v_forks   record := memory_private.branch_forks(p_user_id, p_conversation_id);
  v_count   constant integer := cardinality(v_forks.sequences);
  v_place   integer := v_count;
  v_at      bigint := p_parent;
  v_path    int8multirange := '{}';
  v_root    bigint := p_parent; -- what its first message begins
  v_parents bigint[] := array[p_parent]; -- what follows these is left
  v_left    int8multirange := '{}';
  v_run     int8range; -- from one parting to the next, each message follows the one before it
begin
  while v_at >= 0 loop
    while v_place > 0 and v_forks.sequences[v_place] > v_at loop
      v_place := v_place - 1;
    end loop;
    if v_place = 0 then
      v_path := v_path + int8multirange(int8range(0, v_at, '[]'));
      v_root := (select -1 - m.sequence from memory.conversation_messages m
                 where m.user_id = p_user_id and m.conversation_id = p_conversation_id
                   and m.metadata ->> 'via' = 'graph'
                 order by m.sequence limit 1);
      exit;
    end if;
    v_path := v_path + int8multirange(int8range(v_forks.sequences[v_place], v_at, '[]'));
    v_at := v_forks.parents[v_place];
    v_root := v_at;
    if v_forks.forked[v_place] then
      v_parents := v_parents || v_at;
    end if;
  end loop;
  for v_place in 0..v_count loop
    v_run := int8range(
      case when v_place = 0 then 0 else v_forks.sequences[v_place] end,
      case when v_place < v_count then v_forks.sequences[v_place + 1] end);
    if v_place > 0 and (
      v_forks.parents[v_place] = any (v_parents) or v_forks.parents[v_place] <@ v_left
      or v_forks.forked[v_place] and not v_forks.sequences[v_place] <@ v_path and (
        v_forks.parents[v_place] <@ v_path or v_forks.parents[v_place] = v_root))
    then
      v_left := v_left + int8multirange(v_run);
    else
      v_left := v_left + coalesce((
        select range_agg(v_run * int8range(case when p < 0 then -1 - p else p + 1 end, null)) from unnest(v_parents) p
        where p <@ v_run or p < 0 and v_place = 0 and -1 - p <@ v_run), '{}');
    end if;
  end loop;
  return v_left - v_path;
end
$function$;

-- Returns the messages of a graph that lie in the ranges which a run abandons.
create or replace function memory_private.abandoned_messages(
  p_conversation memory.conversations,
  p_parent bigint, -- the last message of the state; null: none of it is stored
  p_held   jsonb,  -- the ids of the state, as keys
  p_from   bigint  -- only from this sequence on
) returns bigint[]
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
declare
  v_left int8multirange;
begin
  if p_parent is not distinct from p_conversation.graph_through then
    return '{}';
  end if;
  -- A query on a Citus node cannot call a function that reads tables.
  v_left := memory_private.abandoned_ranges(
    p_conversation.user_id, p_conversation.id, coalesce(p_parent, -1 - p_conversation.branch_from));
  return array(
    select m.sequence from memory.conversation_messages m
    where m.user_id = p_conversation.user_id and m.conversation_id = p_conversation.id and m.sequence >= p_from
      and m.sequence <@ v_left and m.metadata ->> 'via' = 'graph' and not p_held ? m.message_id
    order by m.sequence);
end
$function$;

-- Returns those of some messages that somebody wrote.
create or replace function memory_private.written_by(
  p_user_id text, p_conversation_id uuid, p_sequences bigint[], p_author text
) returns bigint[]
language plpgsql stable security invoker set search_path = ''
as $function$
begin
  return array(
    select m.sequence from memory.conversation_messages m
    where m.user_id = p_user_id and m.conversation_id = p_conversation_id and m.sequence = any (p_sequences)
      and m.author_id = p_author
    order by m.sequence);
end
$function$;

-- Refuses what is no state of a graph: a key with a value of another type.
create or replace function memory_private.check_branch(p_branch json) returns void
language plpgsql stable security invoker set search_path = ''
as $function$
declare
  v_wrong record;
begin
  perform memory_private.check_limits(p_branch);
  if json_typeof(p_branch) <> 'object' then
    raise exception 'p_branch is no object' using errcode = 'PT400', hint = 'pass what a graph''s state holds, or leave it out';
  end if;
  select e.key, t.type into v_wrong
    from json_each(p_branch) e
    join (values ('ids', 'list of texts'), ('removed', 'list of texts'), ('resent', 'list of texts'),
                 ('named', 'boolean'), ('all', 'boolean'), ('waiting', 'integer'), ('token', 'text'), ('expected', 'text'), ('after', 'text'),
                 ('since', 'text'), ('run', 'text'), ('ended', 'text'), ('owner', 'text'), ('database', 'text'),
                 ('author', 'text')) as t (key, type) on t.key = e.key
   where (e.key = 'ids' or json_typeof(e.value) <> 'null') and not case t.type
     when 'list of texts' then memory_private.is_text_list(e.value)
     when 'boolean' then json_typeof(e.value) = 'boolean'
     when 'integer' then json_typeof(e.value) = 'number' and e.value::text ~ '^\d{1,9}$'
     else json_typeof(e.value) = 'string' end
   limit 1;
  if found then
    raise exception '% of p_branch is no %', v_wrong.key, v_wrong.type using errcode = 'PT400',
      hint = 'pass what a graph''s state holds, as the comment of memory_append says';
  end if;
end
$function$;

-- Before a graph's messages are stored: whether they can be, and what of the conversation the state takes away. What it
-- has again is moved in. The branch is {"token", "expected", "after", "ids", "resent", "named", "removed", "since",
-- "all", "waiting", "run", "ended", "owner", "database", "author"}:
--   token     names the state that is being stored; expected: the one that is thought to be here.
--   after     the id of the last message that is known to be the same; null: nothing is known.
--   ids       of all the state's messages after that, also of those that nobody said.
--   resent    those of the history that may have been sent again under new ids: nothing is stored if one of them is
--             unknown here, though there are messages. null: none.
--   named     the run names the checkpoint that it goes on from: what lies beyond that is left.
--   removed   the ids of what the state held and has no more; null: that is not known, so nothing is stored if it lacks
--             something, and what that is is answered.
--   since     with that, the id of the message after which a lack counts; null: the first that the state has.
--   all       with that, a lack counts from the beginning on.
--   waiting   how many of the messages waited to be stored, of whatever run.
--   run       the server's run, as the messages' metadata names it; null: no server runs it.
--   ended     the run that stored before and that is known to be no rolled back one.
--   owner, database   whose state it is, and of which database, as an append answered it before.
--   author    in a space, the member whose state it is: what others wrote is neither set aside nor brought back by it, and
--             no later state of others is read by where it parted. act_as_member() sets it.
-- Answers {"foreign": …}, {"moved": true}, {"lacking": […]} or {"unfamiliar": true} where nothing is to be stored; else what
-- apply_branch() needs.
create or replace function memory_private.prepare_branch(
  p_user_id text, p_agent_id text, p_thread_id text, p_branch json
)
returns jsonb
language plpgsql volatile security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
declare
  v_c       memory.conversations;
  v_back    bigint[];
  v_known   record;
  v_parent  bigint;
  v_low     bigint;
  v_lacking text[];
  v_run     text;
  v_gone    bigint[];
  v_author  constant text := p_branch ->> 'author';
  -- An object, because its keys are looked up without a scan.
  v_held    jsonb := (select coalesce(jsonb_object_agg(i, 1), '{}') from json_array_elements_text(p_branch -> 'ids') i);
begin
  if p_branch ->> 'owner' <> memory_private.owner_digest(p_user_id) then
    return '{"foreign": "owner"}';
  elsif p_branch ->> 'database' <> memory_private.database_id() then
    return '{"foreign": "database"}';
  end if;
  select c.* into v_c from memory.conversations c
   where c.user_id = p_user_id and c.agent_id = p_agent_id and c.thread_id = p_thread_id
     and (not c.private or clock_timestamp() - c.updated_at between - interval '1 day' and interval '1 day') -- else it is gone
     for no key update;
  if v_c.id is null then
    return '{}';
  end if;
  -- If the conversation was forgotten and no state was stored since, none is brought back. The same token twice is a
  -- retry.
  if p_branch ->> 'after' is not null and v_c.branch_token is not null
     and v_c.branch_token is distinct from p_branch ->> 'expected'
     and v_c.branch_token is distinct from p_branch ->> 'token'
  then
    return '{"moved": true}';
  end if;
  if v_c.has_superseded then
    select array_agg(t.sequence) into v_back
      from (select s.sequence from json_array_elements_text(p_branch -> 'ids') as i (id)
            join memory.superseded_messages s
              on s.user_id = p_user_id and s.conversation_id = v_c.id and s.message_id = i.id
            where v_author is null or s.author_id = v_author) t;
    if v_back is not null then
      perform memory_private.move_messages(p_user_id, v_c.id, array(select unnest(v_back) order by 1), true);
    end if;
  end if;
  select min(t.place) as first, max(t.place) as last into v_known
    from (select memory_private.sequence_of_message(p_user_id, v_c.id, i.id) as place
          from json_array_elements_text(p_branch -> 'ids') as i (id)) t;
  if p_branch ->> 'after' is not null then
    v_low := memory_private.sequence_of_message(p_user_id, v_c.id, p_branch ->> 'after');
    v_parent := greatest(v_known.last, v_low);
  else
    v_parent := v_known.last;
  end if;
  if json_typeof(p_branch -> 'resent') = 'array' and v_c.message_count > 0 and exists (
    select from json_array_elements_text(p_branch -> 'resent') as r (id)
     where memory_private.sequence_of_message(p_user_id, v_c.id, r.id) is null
       and not (v_c.has_gone and exists (
         select from memory.gone_messages g
          where g.user_id = p_user_id and g.conversation_id = v_c.id and g.message_id = r.id)))
  then
    return '{"unfamiliar": true}';
  end if;

  -- A server may have rolled back the run that stored last, if it reached no answer. No checkpoint tells.
  if p_branch ->> 'run' is not null and v_c.graph_through > coalesce(v_low, -1) then
    select m.metadata ->> 'run' into v_run from memory.conversation_messages m
     where m.user_id = p_user_id and m.conversation_id = v_c.id and m.sequence = v_c.graph_through
       and m.metadata ->> 'run' <> p_branch ->> 'run' and m.metadata ->> 'run' is distinct from p_branch ->> 'ended'
       and not v_held ? m.message_id;
    if v_run is not null then
      v_lacking := (
        select array_agg(t.message_id) filter (where not v_held ? t.message_id) from (
          select m.message_id, m.final from memory.conversation_messages m
          where m.user_id = p_user_id and m.conversation_id = v_c.id and m.metadata ->> 'run' = v_run
            and (v_author is null or m.author_id = v_author)
          order by m.sequence desc limit 1000) t
        having not bool_or(t.final));
      if v_lacking is not null then
        return jsonb_build_object('unfinished', v_run, 'lacking', to_jsonb(v_lacking));
      end if;
    end if;
  end if;

  if json_typeof(p_branch -> 'removed') = 'array' then
    if json_array_length(p_branch -> 'removed') > 0 then
      v_gone := array(
        select m.sequence
        from json_array_elements_text(p_branch -> 'removed') i (id)
        join memory.conversation_messages m
          on m.user_id = p_user_id and m.conversation_id = v_c.id and m.message_id = i.id
        where m.metadata ->> 'via' = 'graph' and not v_held ? m.message_id);
    end if;
  else
    -- Messages missing from the beginning of a state were trimmed. If the state has no stored message, all of them
    -- were.
    v_low := greatest(v_low, case
      when (p_branch ->> 'all')::boolean then -1
      when p_branch ->> 'since' is null then coalesce(v_low, v_known.first, v_c.next_sequence)
      else coalesce(
        memory_private.sequence_of_message(p_user_id, v_c.id, p_branch ->> 'since'), v_c.next_sequence) end);
    v_lacking := array(
      select m.message_id from memory.conversation_messages m
      where m.user_id = p_user_id and m.conversation_id = v_c.id and m.sequence > v_low
        and m.metadata ->> 'via' = 'graph' and not v_held ? m.message_id
        and (v_author is null or m.author_id = v_author)
      order by m.sequence desc limit 10000);
    if v_lacking <> '{}' then
      return jsonb_build_object('lacking', to_jsonb(v_lacking));
    end if;
  end if;
  if (p_branch ->> 'named')::boolean then
    v_gone := v_gone || memory_private.abandoned_messages(v_c, v_parent, v_held, 0);
  end if;
  if v_author is not null then
    v_gone := memory_private.written_by(p_user_id, v_c.id, v_gone, v_author);
  end if;
  return jsonb_build_object(
    'parent', v_parent,
    'gone', to_jsonb(array(select distinct s from unnest(v_gone) s order by 1)),
    'begins', case when v_parent is not null or (p_branch ->> 'named')::boolean
                   then least(v_c.branch_from, v_known.first) end);
end
$function$;

-- Returns the sequence of the question that a message belongs to: the newest up to it, but where a run goes on that was
-- asked before that.
create or replace function memory_private.question_at(p_user_id text, p_conversation_id uuid, p_sequence bigint)
returns bigint
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
declare
  v_asked bigint := (
    select m.sequence from memory.conversation_messages m
    where m.user_id = p_user_id and m.conversation_id = p_conversation_id and (m.role = 'user' or m.final)
      and m.sequence + 0 <= p_sequence and m.role = 'user'
    order by m.sequence + 0 desc limit 1);
begin
  return coalesce((
    select t.question
    from (select m.sequence, m.question from memory.conversation_messages m
          where m.user_id = p_user_id and m.conversation_id = p_conversation_id and m.question is not null
            and m.sequence <= p_sequence
          order by m.sequence desc limit 1) t
    where t.sequence > v_asked), v_asked);
end
$function$;

-- Completes an append of a graph: moves out the messages that its state no longer has, and records where it forked
-- from the newest state.
create or replace function memory_private.apply_branch(
  p_user_id text, p_conversation_id uuid, p_first bigint, p_branch json, p_place jsonb
) returns void
language plpgsql volatile security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
set enable_hashjoin = off set enable_mergejoin = off
as $function$
declare
  v_c        record;
  v_parent   constant bigint := (p_place ->> 'parent')::bigint;
  v_is_own   constant boolean := p_branch ->> 'author' is null; -- in a space it is not recorded where states part
  v_mine     bigint := p_first; -- the first of the state's own messages
  v_first    record;
  v_question bigint;
  v_gone     bigint[] := array(select s::bigint from jsonb_array_elements_text(p_place -> 'gone') s);
  v_held     jsonb;
begin
  -- Messages that waited to be stored come first. They may be another run's, or messages that this run abandons.
  if (p_branch ->> 'waiting')::integer > 0 then
    v_held := (select coalesce(jsonb_object_agg(i, 1), '{}') from json_array_elements_text(p_branch -> 'ids') i);
    v_mine := (
      select min(m.sequence) from memory.conversation_messages m
      where m.user_id = p_user_id and m.conversation_id = p_conversation_id and m.sequence >= p_first
        and v_held ? m.message_id);
    if (p_branch ->> 'named')::boolean then
      v_gone := v_gone || array(
        select m.sequence from memory.conversation_messages m
        where m.user_id = p_user_id and m.conversation_id = p_conversation_id and m.sequence >= p_first
          and not v_held ? m.message_id
        order by m.sequence);
    end if;
  end if;
  if v_gone <> '{}' then
    perform memory_private.move_messages(p_user_id, p_conversation_id, v_gone, false);
  end if;
  update memory.conversations c
     set branch_token = p_branch ->> 'token',
         branch_from = coalesce((p_place ->> 'begins')::bigint, p_first),
         graph_through = case when c.next_sequence > p_first then c.next_sequence - 1 else c.graph_through end
   where c.user_id = p_user_id and c.id = p_conversation_id
  returning c.graph_through, c.branch_from,
            (select o.graph_through from memory.conversations o where o.user_id = p_user_id and o.id = c.id) as newest
       into v_c;
  if v_c.graph_through > v_c.newest and (v_mine > p_first or v_c.newest is distinct from coalesce(v_parent, -1)) then
    select k.sequence, k.message_id, k.created_at, k.role into v_first from memory.conversation_messages k
     where k.user_id = p_user_id and k.conversation_id = p_conversation_id and k.sequence >= v_mine
     order by k.sequence limit 1;
    if v_first.role <> 'user' and v_parent >= 0 then
      v_question := nullif(
        memory_private.question_at(p_user_id, p_conversation_id, v_parent),
        memory_private.question_at(p_user_id, p_conversation_id, v_first.sequence - 1));
    end if;
    -- By the whole key: without statistics the planner may use any index that begins with the conversation.
    update memory.conversation_messages m
       set parent = case when v_is_own then coalesce(v_parent, -1 - v_c.branch_from) end,
           forked = case when v_is_own then (p_branch ->> 'named')::boolean end,
           question = v_question
     where m.user_id = p_user_id and m.conversation_id = p_conversation_id and m.sequence = v_first.sequence
       and m.message_id = v_first.message_id and m.created_at = v_first.created_at
       and (v_is_own or v_question is not null);
  end if;
end
$function$;

create function public.memory_reinstate(
  p_thread_id   text,
  p_message_ids json,
  p_user_id     text default null,
  p_agent_id    text default 'default'
) returns jsonb
language plpgsql volatile security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
declare
  v_user text := memory_private.resolve_writer(p_user_id);
  v_id   uuid;
  v_back bigint[];
begin
  perform memory_private.check_limits(p_message_ids);
  select c.id into v_id from memory.conversations c
   where c.user_id = v_user and c.agent_id = p_agent_id and c.thread_id = p_thread_id
     for no key update;
  v_back := array(
    select s.sequence from memory.superseded_messages s
    where s.user_id = v_user and s.conversation_id = v_id
      and s.message_id in (select i from json_array_elements_text(p_message_ids) i)
    order by s.sequence);
  if v_back <> '{}' then
    perform memory_private.move_messages(v_user, v_id, v_back, true);
    -- A reinstated message stays, whatever a graph's state has.
    update memory.conversation_messages m
       set metadata = nullif(m.metadata - 'via', '{}')
     where m.user_id = v_user and m.conversation_id = v_id and m.sequence = any (v_back);
  end if;
  return to_jsonb(v_back);
end
$function$;
comment on function public.memory_reinstate is
  'langchain-supabase-memory: Bring messages back that a graph has left. They stand at their own numbers again, and no
  state of a graph takes them away any more.

p_thread_id: the thread of the conversation.
p_message_ids: the ids of the messages, a list. Those that are not superseded are passed over.
p_user_id: the owner; null: the subject of the caller''s token.
p_agent_id: the agent of the conversation.
Returns: integer[]. The sequences of those that are back.
Errors:
- PT400: no p_user_id is given, and the caller''s token names nobody.
- PT413: p_message_ids is larger than call_bytes, or longer than call_items (see memory_limits).
- 23514: a message cannot be right, as in memory_append.';

-- Deletes superseded messages that are too old, like those beside them. Nothing brings them back.
create or replace function memory_private.expire_superseded(
  p_user_id text, p_conversation_id uuid, p_age timestamptz, p_cut bigint
) returns bigint
language plpgsql volatile security invoker set search_path = ''
set plan_cache_mode = force_generic_plan
as $function$
declare
  v_gone record;
begin
  with gone as (
    delete from memory.superseded_messages s
     where s.user_id = p_user_id and s.conversation_id = p_conversation_id
       and (s.created_at < p_age or s.sequence < p_cut)
    returning s.sequence, s.message_id)
  select count(*) as count, max(gone.sequence) as last, array_agg(gone.message_id) as ids into v_gone from gone;
  if v_gone.count > 0 then
    perform memory_private.record_deleted_messages(p_user_id, p_conversation_id, v_gone.ids);
    update memory.conversations c
       set has_gone = true, expired_through = greatest(c.expired_through, v_gone.last)
     where c.user_id = p_user_id and c.id = p_conversation_id;
  end if;
  return v_gone.count;
end
$function$;
