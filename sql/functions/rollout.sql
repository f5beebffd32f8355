-- Introducing the memory step by step: the stage of an agent, and the comparisons of the old and the new context.

-- Says whether a user is in a share. A user stays in it while the share stays the same or grows.
create or replace function memory_private.in_share(p_user_id text, p_share float8) returns boolean
language sql immutable security invoker set search_path = ''
as $function$
  select ('x' || substr(encode(sha256(convert_to(p_user_id, 'UTF8')), 'hex'), 1, 12))::bit(48)::bigint
         < p_share * 281474976710656
$function$;

create function public.memory_rollout(
  p_user_id  text default null, -- null: the subject of the caller's token, if there is one
  p_agent_id text default 'default'
) returns jsonb
language sql stable security invoker set search_path = ''
as $function$
  select jsonb_build_object(
           'version', r.version, 'stage', r.stage, 'share', r.share, 'rest', r.rest, 'set_at', r.set_at,
           'mine', case when u.id is null then null
                        when memory_private.in_share(u.id, r.share) then r.stage
                        else r.rest end)
    from memory.rollouts r, coalesce(p_user_id, auth.jwt() ->> 'sub') as u (id)
   where r.agent_id = p_agent_id
   order by r.version desc limit 1
$function$;
comment on function public.memory_rollout is
  'langchain-supabase-memory: Which context the users of an agent receive, and which one user does. A user stays on one
  side while the share grows.

p_user_id: the user; null: the subject of the caller''s token, if there is one.
p_agent_id: the agent.
Returns: object or null. Null if no stage was ever set.
- version: integer. Counts the decisions.
- stage: text. What the share of the users receives: off, parallel, 25, 15, 10, 5 or on.
- share: number. How many of the users, 0 to 1.
- rest: text. What the others receive.
- set_at: timestamp. When it was decided.
- mine: text or null. What this user receives; null if no user is known.
Errors: none.';

create function public.memory_worker_set_rollout(
  p_stage    text,
  p_by       text,
  p_agent_id text   default 'default',
  p_share    float8 default 1,
  p_rest     text   default 'off'
) returns jsonb
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_row memory.rollouts;
begin
  perform pg_advisory_xact_lock(hashtextextended('langchain-supabase-memory rollout ' || p_agent_id, 0));
  insert into memory.rollouts as r (agent_id, version, stage, share, rest, set_by)
  select p_agent_id, 1 + coalesce(max(o.version), 0), p_stage, p_share, p_rest, p_by
  from memory.rollouts o where o.agent_id = p_agent_id
  returning r.* into v_row;
  return to_jsonb(v_row);
end
$function$;
comment on function public.memory_worker_set_rollout is
  'langchain-supabase-memory: Set the stage of an agent, for all servers at once. Every decision is kept, and the
  newest holds.

p_stage: off (the last messages), parallel (both, compared), 25, 15, 10 or 5 (so many recent messages), or on.
p_by: who decides.
p_agent_id: the agent.
p_share: the share of the users that receive it, 0 to 1.
p_rest: the stage of the others.
Returns: object.
- agent_id: text. The agent.
- version: integer. Counts the decisions.
- stage: text. As given.
- share: number. As given.
- rest: text. As given.
- set_by: text. Who decided.
- set_at: timestamp. When that was.
Errors:
- 23514: a stage, the share or p_by is refused; the name of the constraint says which.';

create function public.memory_worker_rollouts(
  p_agent_id text    default 'default',
  p_limit    integer default 100
) returns jsonb -- the newest so many, oldest first
language sql stable security invoker set search_path = ''
as $function$
  select coalesce(jsonb_agg(to_jsonb(t) order by t.version), '[]')
  from (select r.* from memory.rollouts r where r.agent_id = p_agent_id order by r.version desc
        limit greatest(0, least(p_limit, 1000))) t
$function$;
comment on function public.memory_worker_rollouts is
  'langchain-supabase-memory: List who set the stage of an agent to what, and when: the newest so many, the oldest
  first.

p_agent_id: the agent.
p_limit: the most of one answer, at most 1000.
Returns: object[] as memory_worker_set_rollout. The decisions.
Errors: none.';

-- Returns the numbers of a comparison as columns.
create or replace function memory_private.comparison_columns(p_comparison jsonb)
returns table (
  stage text, old_messages integer, new_messages integer, old_tokens integer, new_tokens integer,
  old_characters integer, new_characters integer, old_ms float8, new_ms float8, shared integer, only_old integer,
  only_new integer, covered_by_summary integer, omitted integer, error text
)
language sql immutable security invoker set search_path = ''
as $function$
  select r.*
  from jsonb_to_record(p_comparison) as r (
    stage text, old_messages integer, new_messages integer, old_tokens integer, new_tokens integer,
    old_characters integer, new_characters integer, old_ms float8, new_ms float8, shared integer, only_old integer,
    only_new integer, covered_by_summary integer, omitted integer, error text)
$function$;

create function public.memory_compare(
  p_thread_id  text,
  p_comparison json,                    -- the numbers, by the names of the columns
  p_only_old   json    default '[]',    -- ids of messages that the old context alone has
  p_through    bigint  default -1,      -- the last message that the summary in the new context covers
  p_user_id    text    default null,
  p_agent_id   text    default 'default'
) returns jsonb
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_user text := memory_private.resolve_writer(p_user_id);
  v_id   uuid;
  v_last bigint;
  v_new  jsonb;
  v_row  record;
begin
  perform memory_private.check_limits(p_comparison), memory_private.check_limits(p_only_old);
  select c.id, c.next_sequence - 1 into v_id, v_last from memory.conversations c
   where c.user_id = v_user and c.agent_id = p_agent_id and c.thread_id = p_thread_id;
  if v_id is null then
    return jsonb_build_object('recorded', false, 'covered_by_summary', null);
  end if;
  select jsonb_strip_nulls(to_jsonb(r)) - 'covered_by_summary' into v_new
    from memory_private.comparison_columns(p_comparison::jsonb) r;
  if v_new ? 'error' then
    v_new := v_new || jsonb_build_object(
      'error', coalesce(substring(v_new ->> 'error' from '^[A-Za-z_][A-Za-z0-9_]{0,99}'), 'unknown'));
  end if;
  if v_new ? 'new_messages' then
    v_new := v_new || jsonb_build_object('covered_by_summary', (
      select count(*) from memory.conversation_messages m
      where m.user_id = v_user and m.conversation_id = v_id and m.sequence <= p_through
        and m.message_id = any (array(select json_array_elements_text(p_only_old)))));
  end if;
  perform memory_private.expire_manifests(v_user, v_id, 100);
  -- Kept as long as somebody needs them to decide.
  insert into memory.context_manifests as x (
    user_id, conversation_id, sequence, from_sequence, expires_at, comparison)
  values (v_user, v_id, v_last, v_last, clock_timestamp() + interval '30 days', v_new)
  returning x.made_at into v_row;
  return jsonb_build_object(
    'recorded', true, 'covered_by_summary', v_new -> 'covered_by_summary', 'compared_at', v_row.made_at);
end
$function$;
comment on function public.memory_compare is
  'langchain-supabase-memory: Record what the old and the new context of one call came to, in numbers. They are kept
  for 30 days.

p_thread_id: the thread of the conversation.
p_comparison: the numbers, an object.
- stage: text. The stage that held.
- old_messages: integer. Messages of the old context.
- new_messages: integer or null. Messages of the new one; null if it failed.
- old_tokens: integer. Tokens of the old context.
- new_tokens: integer or null. Tokens of the new one.
- old_characters: integer. Characters of the old context.
- new_characters: integer or null. Characters of the new one.
- old_ms: number. How long the old one took, in milliseconds.
- new_ms: number or null. How long the new one took, in milliseconds.
- shared: integer or null. Messages that both have.
- only_old: integer or null. Messages that only the old one has.
- only_new: integer or null. Messages that only the new one has.
- omitted: integer or null. Messages that the new one left out and no summary covers.
- error: text or null. Why the new one failed, in a word: letters, digits and _, at most 100; what follows is left out.
p_only_old: the ids of the messages that only the old one has, a list of text.
p_through: the last message that the summary in the new one covers; -1: it has none.
p_user_id: the owner; null: the subject of the caller''s token.
p_agent_id: the agent of the conversation.
Returns: object.
- recorded: boolean. False if there is no such conversation.
- covered_by_summary: integer or null. How many of p_only_old the summary covers.
- compared_at: timestamp. When it was recorded; only if it was.
Errors:
- PT400: no p_user_id is given, and the caller''s token names nobody.
- PT413: an argument is larger than call_bytes, or a list in it longer than call_items (see memory_limits).
- 23514: a number is refused; the name of the constraint says which.';

create function public.memory_comparisons(
  p_thread_id text,
  p_user_id   text    default null,
  p_agent_id  text    default 'default',
  p_limit     integer default 100
) returns jsonb -- the newest so many, oldest first
language plpgsql stable security invoker set search_path = ''
as $function$
declare
  v_user text := memory_private.resolve_owner(p_user_id);
begin
  return (
    select coalesce(jsonb_agg(to_jsonb(t) - 'id' order by t.compared_at, t.id), '[]')
    from (select x.id, c.user_id, c.agent_id, c.thread_id, x.made_at as compared_at, k.*
          from memory.conversations c
          join memory.context_manifests x on x.user_id = c.user_id and x.conversation_id = c.id
          cross join lateral memory_private.comparison_columns(x.comparison) k
          where c.user_id = v_user and c.agent_id = p_agent_id and c.thread_id = p_thread_id
            and x.comparison is not null and coalesce(x.expires_at > clock_timestamp(), true)
          order by x.sequence desc, x.made_at desc, x.id desc limit greatest(0, least(p_limit, 1000))) t);
end
$function$;
comment on function public.memory_comparisons is
  'langchain-supabase-memory: List the comparisons of the old and the new context in a conversation: the newest so
  many, the oldest first.

p_thread_id: the thread of the conversation.
p_user_id: the owner; null: the subject of the caller''s token.
p_agent_id: the agent of the conversation.
p_limit: the most of one answer, at most 1000.
Returns: object[].
- [].user_id: text. The owner.
- [].agent_id: text. The agent.
- [].thread_id: text. The thread.
- [].compared_at: timestamp. When it was recorded.
- [].stage: text. As given to memory_compare, like all that follows.
- [].old_messages: integer. Messages of the old context.
- [].new_messages: integer or null. Messages of the new one.
- [].old_tokens: integer. Tokens of the old one.
- [].new_tokens: integer or null. Tokens of the new one.
- [].old_characters: integer. Characters of the old one.
- [].new_characters: integer or null. Characters of the new one.
- [].old_ms: number. How long the old one took, in milliseconds.
- [].new_ms: number or null. How long the new one took, in milliseconds.
- [].shared: integer or null. Messages that both have.
- [].only_old: integer or null. Messages that only the old one has.
- [].only_new: integer or null. Messages that only the new one has.
- [].covered_by_summary: integer or null. How many of those that only the old one has the summary covers.
- [].omitted: integer or null. Messages that the new one left out and no summary covers.
- [].error: text or null. Why the new one failed, in a word.
Errors:
- PT400: no p_user_id is given, and the caller''s token names nobody.';

create function public.memory_comparison_report(
  p_user_id  text        default null, -- null: everybody that the caller may see
  p_agent_id text        default null, -- null: all agents
  p_since    timestamptz default null
) returns jsonb
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_custom_plan
as $function$
begin
  p_user_id := memory_private.resolve_scope(p_user_id);
  return (
  select coalesce(jsonb_agg(to_jsonb(r)), '[]')
  from (
    select k.stage, count(*) as comparisons, count(k.error) as failures,
           percentile_cont(array[0.5, 0.95]) within group (order by k.old_tokens) as old_tokens,
           percentile_cont(array[0.5, 0.95]) within group (order by k.new_tokens) as new_tokens,
           percentile_cont(array[0.5, 0.95]) within group (order by k.old_ms) as old_ms,
           percentile_cont(array[0.5, 0.95]) within group (order by k.new_ms) as new_ms,
           coalesce(sum(k.old_tokens) filter (where k.new_tokens is not null), 0) as all_old_tokens,
           coalesce(sum(k.new_tokens), 0) as all_new_tokens,
           coalesce(sum(k.shared), 0) as shared,
           coalesce(sum(k.only_old), 0) as only_old,
           coalesce(sum(k.only_new), 0) as only_new,
           coalesce(sum(k.covered_by_summary), 0) as covered_by_summary,
           coalesce(sum(k.omitted), 0) as omitted
    from memory.context_manifests x
    cross join lateral memory_private.comparison_columns(x.comparison) k
    where x.comparison is not null and coalesce(x.expires_at > clock_timestamp(), true)
      and (p_user_id is null or x.user_id = p_user_id) and (p_since is null or x.made_at >= p_since)
      and (p_agent_id is null or exists (
        select from memory.conversations c
        where c.user_id = x.user_id and c.id = x.conversation_id and c.agent_id = p_agent_id))
    group by k.stage) r);
end
$function$;
comment on function public.memory_comparison_report is
  'langchain-supabase-memory: Sum up the comparisons of the old and the new context, by stage.

p_user_id: only this owner''s; null: everybody''s that the caller may see.
p_agent_id: only with this agent; null: with all.
p_since: only from this time on; null: all that are kept.
Returns: object[].
- [].stage: text. The stage.
- [].comparisons: integer. How many there are.
- [].failures: integer. In how many of them the new context failed.
- [].old_tokens: number[]. Tokens of the old context: the median and the 95th percentile.
- [].new_tokens: number[] or null. The same of the new one; null if it always failed.
- [].old_ms: number[]. Milliseconds that the old one took: the median and the 95th percentile.
- [].new_ms: number[] or null. The same of the new one.
- [].all_old_tokens: integer. Tokens of all old contexts whose new one did not fail.
- [].all_new_tokens: integer. Tokens of all new contexts.
- [].shared: integer. Messages that both had, added up.
- [].only_old: integer. Messages that only the old ones had, added up.
- [].only_new: integer. Messages that only the new ones had, added up.
- [].covered_by_summary: integer. How many of those that only the old ones had the summaries covered.
- [].omitted: integer. Messages that the new ones left out and no summary covered, added up.
Errors: none.';
