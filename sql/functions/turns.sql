-- Turns: a user's message and everything up to its final answer, derived from the messages.

drop view if exists memory.conversation_turns;
create view memory.conversation_turns with (security_invoker = true) as
-- Numbered by everything that one may ask for, so that only what is asked for is numbered.
select u.user_id, c.agent_id, c.thread_id, u.conversation_id,
       row_number() over (
         partition by u.user_id, c.agent_id, c.thread_id, u.conversation_id order by u.sequence) as turn_number,
       u.text as user_query, a.text as ai_response, u.created_at,
       u.sequence as from_sequence, a.sequence as to_sequence
from memory.conversation_messages u
join memory.conversations c on c.user_id = u.user_id and c.id = u.conversation_id
left join lateral (
  select n.sequence from memory.conversation_messages n
  where n.user_id = u.user_id and n.conversation_id = u.conversation_id and n.sequence > u.sequence and n.role = 'user'
  order by n.sequence limit 1) following on true
cross join lateral (
  select f.sequence, f.text from memory.conversation_messages f
  where f.user_id = u.user_id and f.conversation_id = u.conversation_id and f.sequence > u.sequence
    and f.sequence < coalesce(following.sequence, 9223372036854775807) and f.final
    and coalesce((
      select l.question from memory.conversation_messages l
      where l.user_id = u.user_id and l.conversation_id = u.conversation_id and l.sequence > u.sequence
        and l.sequence <= f.sequence and l.question is not null
      order by l.sequence desc limit 1), u.sequence) = u.sequence
  union all
  -- Answers that came after another question.
  select f.sequence, f.text
  from memory.conversation_messages l
  join memory.conversation_messages f
    on f.user_id = u.user_id and f.conversation_id = u.conversation_id and f.sequence >= l.sequence and f.final
      and f.sequence < coalesce((
        select n.sequence from memory.conversation_messages n
        where n.user_id = u.user_id and n.conversation_id = u.conversation_id and n.sequence > l.sequence
          and (n.role = 'user' or n.question is not null)
        order by n.sequence limit 1), 9223372036854775807)
  where l.user_id = u.user_id and l.conversation_id = u.conversation_id and l.question = u.sequence
    and l.sequence > following.sequence
  order by sequence desc limit 1) a
where u.role = 'user';
comment on view memory.conversation_turns is
  'Complete turns, numbered from 1 in each conversation among those that are kept.';

-- Subtracts expired messages that lie between others from the counts of what they were part of. Messages with given
-- times need not be in the order of their times.
create or replace function memory_private.subtract_expired_gaps(
  p_user_id text, p_conversation_id uuid, p_first bigint, p_sequences bigint[], p_characters integer[], p_tokens integer[]
) returns void
language plpgsql volatile security invoker set search_path = ''
as $function$
begin
  update memory.conversation_summaries s
     set covered_characters = s.covered_characters - g.characters,
         covered_tokens = s.covered_tokens - g.tokens
    from (select t.level, t.number, sum(h.characters) as characters, sum(h.tokens) as tokens
          from memory.conversation_summaries t
          join unnest(p_sequences, p_characters, p_tokens) as h (sequence, characters, tokens)
            on h.sequence > p_first and h.sequence between t.from_sequence and t.to_sequence
          where t.user_id = p_user_id and t.conversation_id = p_conversation_id
          group by t.level, t.number) g
   where s.user_id = p_user_id and s.conversation_id = p_conversation_id and s.level = g.level and s.number = g.number;
end
$function$;

-- Returns a conversation with the position where summarizing continues: after the newest segment, or after what is
-- gone from the beginning.
create or replace function memory_private.with_summary_position(
  p_conversation memory.conversations,
  p_first        bigint         default 0,    -- what has expired and is still there: all before this,
  p_holes        int8multirange default '{}', -- and this,
  p_summaries    boolean        default false, -- and the summaries
  p_is_changed   boolean        default false -- whether something before that has changed since it was last set
) returns memory.conversations
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
declare
  v_c       memory.conversations := p_conversation;
  v_through bigint;
  v_first   bigint;
  v_weight  record;
  v_sign    integer;
begin
  select s.to_sequence into v_through from memory.conversation_summaries s
   where s.user_id = v_c.user_id and s.conversation_id = v_c.id and s.level = 0 and not p_summaries
   order by s.number desc limit 1;
  select m.sequence into v_first from memory.conversation_messages m
   where m.user_id = v_c.user_id and m.conversation_id = v_c.id and m.sequence >= p_first
   order by m.sequence limit 1;
  v_through := greatest(coalesce(v_through, -1), coalesce(v_first, v_c.next_sequence) - 1);
  if p_is_changed or v_through < v_c.summarized_through then
    v_weight := memory_private.sizes_from(v_c.user_id, v_c.id, v_through + 1, v_c.next_sequence);
    v_c.summarized_characters := v_c.total_characters - v_weight.characters;
    v_c.summarized_tokens := v_c.total_tokens - v_weight.tokens;
    p_holes := p_holes * int8multirange(int8range(v_through, null, '()'));
    v_sign := 1;
  else
    -- What lies between has expired.
    v_weight := memory_private.range_totals(
      v_c.user_id, v_c.id, int8multirange(int8range(v_c.summarized_through, v_through, '(]')));
    v_c.summarized_characters := v_c.summarized_characters + v_weight.characters;
    v_c.summarized_tokens := v_c.summarized_tokens + v_weight.tokens;
    p_holes := p_holes * int8multirange(int8range(null, v_through, '[]'));
    v_sign := -1;
  end if;
  if p_holes <> '{}' then
    v_weight := memory_private.range_totals(v_c.user_id, v_c.id, p_holes);
    v_c.summarized_characters := v_c.summarized_characters + v_sign * v_weight.characters;
    v_c.summarized_tokens := v_c.summarized_tokens + v_sign * v_weight.tokens;
  end if;
  v_c.summarized_through := v_through;
  return v_c;
end
$function$;

-- Stores the position where summarizing continues.
create or replace function memory_private.update_summary_position(p_user_id text, p_conversation_id uuid) returns void
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_c memory.conversations;
begin
  select c.* into v_c from memory.conversations c where c.user_id = p_user_id and c.id = p_conversation_id;
  v_c := memory_private.with_summary_position(v_c, p_is_changed => true);
  update memory.conversations c
     set summarized_through = v_c.summarized_through,
         summarized_characters = v_c.summarized_characters,
         summarized_tokens = v_c.summarized_tokens
   where c.user_id = p_user_id and c.id = p_conversation_id;
end
$function$;

-- Returns the newest 1,000 answers that came after another question, each with its own question and with the newest before
-- it. Blocks count turns without them: count_late_turns() gives the difference.
create or replace function memory_private.late_answers(
  p_user_id text, p_conversation_id uuid, out answers bigint[], out questions bigint[], out latest bigint[]
)
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
declare
  v_run   record;
  v_next  bigint;
  v_found bigint[];
begin
  answers := '{}';
  questions := '{}';
  latest := '{}';
  for v_run in
    select m.sequence, m.question, lag(m.sequence) over (order by m.sequence desc) as following
    from memory.conversation_messages m
    where m.user_id = p_user_id and m.conversation_id = p_conversation_id and m.question is not null
    order by m.sequence desc limit 1000
  loop
    v_next := (
      select m.sequence from memory.conversation_messages m
      where m.user_id = p_user_id and m.conversation_id = p_conversation_id and (m.role = 'user' or m.final)
        and m.sequence + 0 > v_run.sequence and m.role = 'user'
      order by m.sequence + 0 limit 1);
    v_found := array(
      select m.sequence from memory.conversation_messages m
      where m.user_id = p_user_id and m.conversation_id = p_conversation_id and (m.role = 'user' or m.final)
        and m.sequence + 0 >= v_run.sequence
        and m.sequence + 0 < least(v_next, v_run.following, 9223372036854775807) and m.final
      order by m.sequence + 0 desc limit 1000);
    answers := answers || v_found;
    questions := questions || array_fill(v_run.question, array[cardinality(v_found)]);
    latest := latest || (
      select m.sequence from memory.conversation_messages m
      where m.user_id = p_user_id and m.conversation_id = p_conversation_id and (m.role = 'user' or m.final)
        and m.sequence + 0 < v_run.sequence and m.role = 'user'
      order by m.sequence + 0 desc limit 1);
  end loop;
end
$function$;

-- Returns how many more turns there are than are counted by what stands next to a question, among the questions of a
-- range. A range of answers bounds what is counted, but no late answer.
create or replace function memory_private.count_late_turns(
  p_user_id text, p_conversation_id uuid, p_late record, p_from bigint, p_before bigint, p_answers_before bigint,
  p_holes int8multirange
) returns bigint
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
declare
  v_answers   constant bigint[] := p_late.answers;
  v_questions constant bigint[] := p_late.questions;
  v_latest    constant bigint[] := p_late.latest;
  v_asked     bigint;
  v_event     record;
  v_is_first  boolean;
  v_is_late   boolean;
  v_count     bigint := 0;
begin
  for v_asked in
    select m.sequence
    from (select distinct s from unnest(v_questions || v_latest) s where s >= p_from and s < p_before order by s) t
    join memory.conversation_messages m
      on m.user_id = p_user_id and m.conversation_id = p_conversation_id and m.sequence = t.s and m.role = 'user'
    where not m.sequence <@ p_holes
  loop
    v_is_first := true;
    v_is_late := exists (
      select from unnest(v_answers, v_questions) a (answer, question)
      where a.question = v_asked and not a.answer <@ p_holes);
    v_count := v_count + v_is_late::integer;
    for v_event in
      select m.sequence, m.final from memory.conversation_messages m
      where m.user_id = p_user_id and m.conversation_id = p_conversation_id and (m.role = 'user' or m.final)
        and m.sequence + 0 > v_asked and m.sequence + 0 < p_answers_before and not m.sequence <@ p_holes
      order by m.sequence + 0
    loop
      v_count := v_count - (v_is_first and v_event.final)::integer;
      v_is_first := false;
      exit when not v_event.final;
      if v_event.sequence <> all (v_answers) then
        v_count := v_count + (not v_is_late)::integer;
        exit;
      end if;
    end loop;
  end loop;
  return v_count;
end
$function$;

create function public.memory_turns(
  p_thread_id text,
  p_user_id   text        default null,
  p_agent_id  text        default 'default',
  p_last      integer     default null, -- the newest so many
  p_skip      integer     default 0,    -- without the newest so many of them
  p_before    bigint      default null, -- only those that begin before this sequence
  p_number    integer     default null, -- instead: the one with this number
  p_since     timestamptz default null,
  p_until     timestamptz default null,
  p_retention json        default null
) returns json -- {"turns", "more"}
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
declare
  v_user   text := memory_private.resolve_owner(p_user_id);
  v_labels constant jsonb := memory_private.person_labels(v_user);
  v_before bigint := coalesce(p_before, 9223372036854775807);
  v_skip   bigint := p_skip;
  v_limit  integer := case when p_number is null then greatest(0, least(p_last, 1000)) else 1 end;
  v_bytes  bigint := (memory_private.current_limits()).answer_bytes;
  v_c      memory.conversations;
  v_gone   record;
  v_late   record;
  v_out    bigint; -- how many have expired
  v_total  bigint;
  v_found  json;
begin
  select c.* into v_c from memory.conversations c
   where c.user_id = v_user and c.agent_id = p_agent_id and c.thread_id = p_thread_id;
  if not found then
    return '{"turns": [], "more": false}';
  end if;
  v_gone := memory_private.find_expired(v_c, p_retention);
  v_late := memory_private.late_answers(v_user, v_c.id);
  if v_gone.holes = '{}' then
    v_out := memory_private.count_turns_before(v_user, v_c.id, v_gone.first, v_c.next_sequence, true);
    v_total := memory_private.count_turns_before(v_user, v_c.id, v_before, v_c.next_sequence) - v_out;
    if v_late.answers <> '{}' then
      v_total := v_total + memory_private.count_late_turns(
        v_user, v_c.id, v_late, 0, v_before, v_before, '{}') - memory_private.count_late_turns(
        v_user, v_c.id, v_late, 0, v_gone.first, 9223372036854775807, '{}');
    end if;
  else
    -- A question is complete if the next question or final answer is an answer.
    select count(*) into v_total
      from (select m.final, lead(m.final) over (order by m.sequence + 0) as answered from memory.conversation_messages m
            where m.user_id = v_user and m.conversation_id = v_c.id and (m.role = 'user' or m.final)
              and m.sequence + 0 >= v_gone.first and m.sequence + 0 < v_before
              and not m.sequence <@ v_gone.holes) t
     where not t.final and t.answered;
    v_total := v_total + memory_private.count_late_turns(
      v_user, v_c.id, v_late, v_gone.first, v_before, v_before, v_gone.holes);
  end if;
  if p_number is not null then
    v_skip := v_skip + v_total - p_number;
  end if;
  if v_total < 1 or p_number not between 1 and v_total then
    return '{"turns": [], "more": false}';
  end if;
  -- Skipped turns are skipped by number, not one by one.
  if v_skip > 0 and v_gone.holes = '{}' and v_late.answers = '{}' and p_since is null and p_until is null then
    if v_skip >= v_total then
      return '{"turns": [], "more": false}';
    end if;
    v_total := v_total - v_skip;
    v_before := memory_private.question_of_turn(v_user, v_c.id, v_out + v_total + 1, v_c.next_sequence);
    v_skip := 0;
  end if;
  -- A page ends at its maximum of rows or bytes.
  select json_build_object(
           'turns', coalesce(json_agg((
             select r from (select x.turn_number, x.user_query, x.ai_response, x.user_images, x.ai_images,
                                   x.created_at, x.from_sequence, x.to_sequence, x.author_name) r) order by x.turn_number)
             filter (where x.number <= v_limit and x.before < v_bytes), '[]'),
           'more', coalesce(bool_or(x.number > v_limit or x.before >= v_bytes), false))
    into v_found
  from (
    select y.*, row_number() over w as number,
           sum(y.bytes) over w - y.bytes as before
    from (
    select v_total + 1 - t.place as turn_number, t.user_query, t.ai_response, t.user_images, t.ai_images,
           octet_length(t.user_query) + octet_length(t.ai_response) + coalesce(octet_length(t.user_images::text), 0)
             + coalesce(octet_length(t.ai_images::text), 0) as bytes,
           t.created_at, t.from_sequence, t.to_sequence, v_labels ->> t.author_id as author_name
    from (
      select u.sequence as from_sequence, a.sequence as to_sequence, u.text as user_query, a.text as ai_response,
             u.images as user_images, a.images as ai_images, u.created_at, u.author_id, row_number() over () as place
      from (select m.sequence + 0 as sequence, m.text, m.images, m.created_at, m.author_id,
                   lag(m.sequence) over (order by m.sequence + 0 desc) as following
            from memory.conversation_messages m
            where m.user_id = v_user and m.conversation_id = v_c.id and m.role = 'user'
              and m.sequence + 0 >= v_gone.first and m.sequence + 0 < v_before and not m.sequence <@ v_gone.holes
            order by m.sequence + 0 desc) u
      cross join lateral (
        select max(l.answer) as late from unnest(v_late.answers, v_late.questions) l (answer, question)
        where l.question = u.sequence and not l.answer <@ v_gone.holes) t
      cross join lateral (
        select f.sequence, f.text, f.images from memory.conversation_messages f
        where f.user_id = v_user and f.conversation_id = v_c.id and f.sequence + 0 > u.sequence
          and f.sequence + 0 < coalesce(t.late + 1, u.following, v_before) and f.final
          and not f.sequence <@ v_gone.holes and (t.late is not null or f.sequence <> all (v_late.answers))
        order by f.sequence + 0 desc limit 1) a
      order by u.sequence desc) t
    where t.created_at >= coalesce(p_since, '-infinity') and t.created_at < coalesce(p_until, 'infinity')
    offset v_skip
    limit v_limit + 1) y
    window w as (rows unbounded preceding)) x; -- in the order in which they are read
  return v_found;
end
$function$;
comment on function public.memory_turns is
  'langchain-supabase-memory: Read complete turns: a question of the user and the final answer to it. They are numbered
  from 1 among those that are kept.

p_thread_id: the thread of the conversation.
p_user_id: the owner; null: the subject of the caller''s token.
p_agent_id: the agent of the conversation.
p_last: the newest so many, at most 1000; null: 1000.
p_skip: leave out the newest so many.
p_before: only turns that begin before this sequence; null: all.
p_number: instead of the newest, the turn with this number; null: the newest.
p_since: only turns whose question is of this time or later; null: of any.
p_until: only turns whose question is from before this time; null: of any.
p_retention: what is kept, as in memory_append; null: everything. What is beyond it is left out.
Returns: object.
- turns: object[]. In their order.
- turns[].turn_number: integer. The number of the turn.
- turns[].user_query: text. The words of the question.
- turns[].ai_response: text. The words of the final answer.
- turns[].user_images: json[] or null. The images of the question.
- turns[].ai_images: json[] or null. The images of the answer.
- turns[].created_at: timestamp. When the question was said.
- turns[].from_sequence: integer. The number of the question''s message.
- turns[].to_sequence: integer. The number of the answer''s message.
- turns[].author_name: text or null. In a space: what who asked is called there. Null elsewhere.
- more: boolean. Whether there are older ones that fit. A page ends at p_last, or at about answer_bytes.
Errors:
- PT400: no p_user_id is given, and the caller''s token names nobody.';
