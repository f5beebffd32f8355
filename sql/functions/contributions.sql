-- Contributions: quotes of members' own conversations on the board of a space, and what becomes of what somebody has shared
-- when they take it back, or leave for good.

-- Returns the part of a text that a quote says, as it stands there; null if it does not.
create or replace function memory_private.locate_quote(p_text text, p_quote text) returns text
language plpgsql immutable security invoker set search_path = ''
as $function$
declare
  v_wanted  constant text := memory_private.plain_letters(p_quote);
  v_text    constant text := left(p_text, 200000);
  v_letters text;
  v_places  integer[];
  v_at      integer;
begin
  if v_wanted = '' then
    return null;
  elsif strpos(p_text, p_quote) > 0 then
    return p_quote;
  elsif strpos(memory_private.plain_letters(v_text), v_wanted) = 0 then
    return null;
  end if;
  select string_agg(substr(l.plain, n, 1), '' order by l.place, n), array_agg(l.place order by l.place, n)
    into v_letters, v_places
    from (select e.place, memory_private.plain_letters(e.letter) as plain
          from regexp_split_to_table(v_text, '') with ordinality e (letter, place)) l
   cross join lateral generate_series(1, length(l.plain)) n;
  v_at := strpos(v_letters, v_wanted);
  if v_at = 0 then
    return null;
  end if;
  return substr(v_text, v_places[v_at], v_places[v_at + length(v_wanted) - 1] - v_places[v_at] + 1);
end
$function$;

-- Deletes an item that somebody contributed to a space, and its words from the rest of the board. What a model wrote may
-- say it in other words, so that is written again.
create or replace function memory_private.delete_contributed_item(
  p_space_id text, p_item_id uuid, p_user_id text, -- who contributed it: nobody else's item goes
  p_quote text default null
) returns void
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_c    memory.conversations;
  v_item memory.conversation_board_items;
  v_said text[];
  v_now  timestamptz;
begin
  select c.* into v_c from memory.conversations c
   where c.user_id = p_space_id and c.id = (
     select i.conversation_id from memory.conversation_board_items i
     where i.user_id = p_space_id and i.contributed_by = p_user_id and i.id = p_item_id)
     for no key update;
  select i.* into v_item from memory.conversation_board_items i
   where i.user_id = p_space_id and i.conversation_id = v_c.id and i.id = p_item_id and i.contributed_by = p_user_id
     for update;
  if v_item.id is null then
    return;
  end if;
  delete from memory.conversation_board_items i
   where i.user_id = p_space_id and i.conversation_id = v_c.id and i.id = v_item.id;
  v_said := memory_private.sentence_patterns(array[v_item.text, v_item.quote, p_quote]);
  v_now := clock_timestamp();
  if exists (
    select from memory.conversation_summary_boards b
    where b.user_id = p_space_id and b.conversation_id = v_c.id and concat(b.summary, b.context_notes, b.title) <> '')
  then
    perform memory_private.reset_board(v_c);
  else -- what is being written of it is refused
    update memory.conversations c set revision = c.revision + 1 where c.user_id = p_space_id and c.id = v_c.id;
  end if;
  update memory.conversation_summaries s
     set topics = array_remove(s.topics, v_item.text),
         key_facts = (select jsonb_agg(f order by n) from jsonb_array_elements(s.key_facts) with ordinality as e (f, n)
                      where f ->> 'text' <> v_item.text)
   where s.user_id = p_space_id and s.conversation_id = v_c.id and s.level > 0;
  perform memory_private.note_board_version(p_space_id, v_c.id, true);
  update memory.conversation_summary_boards b
     set edited_summary = nullif(memory_private.remove_phrases(b.edited_summary, v_said), ''),
         summary = memory_private.remove_phrases(b.summary, v_said), version = b.version + 1, updated_at = v_now
   where b.user_id = p_space_id and b.conversation_id = v_c.id;
  update memory.conversation_board_changes h
     set before = nullif(memory_private.remove_phrases(h.before, v_said), '')
   where h.user_id = p_space_id and h.conversation_id = v_c.id and h.item_id is null and h.before is not null;
  delete from memory.opt_out_undos u where u.user_id = p_space_id and u.conversation_id = v_c.id;
end
$function$;

-- Takes an item back when what it quotes goes. It runs with the migrator's rights: who may delete the row alone decides,
-- and a row names none but its owner's items.
create or replace function memory_private.take_contribution_back() returns trigger
language plpgsql volatile security definer set search_path = ''
as $function$
begin
  -- The same words may stand in another message of theirs.
  if not exists (
    select from memory.contributions b
    where b.space_id = old.space_id and b.item_id = old.item_id and b.user_id = old.user_id)
  then
    perform memory_private.delete_contributed_item(old.space_id, old.item_id, old.user_id, old.quote);
  end if;
  return null;
end
$function$;
create or replace trigger contributions_taken_back after delete on memory.contributions
  for each row execute function memory_private.take_contribution_back();

-- Takes back what messages were edited away from while spaces were switched off.
do $do$
begin
  if memory_private.has_spaces() and exists (select from memory.contributions) then
    delete from memory.contributions b
     where exists (
       select from memory.conversation_messages m
       where m.user_id = b.user_id and m.conversation_id = b.conversation_id and m.message_id = b.message_id
         and strpos(memory_private.plain_letters(m.text), memory_private.plain_letters(b.quote)) = 0);
  end if;
end
$do$;

create function public.memory_contribute(
  p_thread_id  text,
  p_message_id text,
  p_quote      text,
  p_kind       text,
  p_space      text,
  p_user_id    text default null,
  p_agent_id   text default 'default'
) returns jsonb
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_user  text;
  v_c     memory.conversations;
  v_board memory.conversations;
  v_m     memory.conversation_messages;
  v_quote text;
  v_digest text;
  v_item  memory.conversation_board_items;
  v_state constant text := (memory_private.item_states(p_kind))[1];
  v_now   timestamptz;
begin
  if not memory_private.is_server() then
    return memory_private.act_as_member('memory_contribute', p_user_id, jsonb_build_object(
      'thread_id', p_thread_id, 'message_id', p_message_id, 'quote', left(p_quote, 10000), 'kind', p_kind, 'space', p_space,
      'agent_id', p_agent_id));
  end if;
  v_user := memory_private.resolve_person(p_user_id);
  perform memory_private.check_role(p_space, v_user, 2), memory_private.lock_opt_outs(v_user),
          memory_private.lock_opt_outs(p_space);
  -- With this row's lock the message is not changed, forgotten or opted out meanwhile.
  select c.* into v_c from memory.conversations c
   where c.user_id = v_user and c.agent_id = p_agent_id and c.thread_id = p_thread_id
     for no key update;
  select m.* into v_m from memory.conversation_messages m
   where m.user_id = v_user and m.conversation_id = v_c.id and m.message_id = p_message_id;
  if v_m.message_id is null then
    raise exception 'there is no such message' using errcode = 'PT404', hint = 'name a message of a conversation of yours';
  end if;
  v_quote := memory_private.locate_quote(v_m.text, btrim(p_quote, E' \n\t\r'));
  if v_quote is null or length(v_quote) > 500 then
    raise exception 'the message does not say that, or it is longer than 500 characters'
      using errcode = 'PT400', hint = 'quote a part of the message, word for word';
  end if;
  insert into memory.conversations (user_id, agent_id, thread_id) values (p_space, 'default', 'board')
  on conflict (user_id, agent_id, thread_id) do nothing;
  select c.* into v_board from memory.conversations c
   where c.user_id = p_space and c.agent_id = 'default' and c.thread_id = 'board'
     for no key update;
  if v_c.opted_out_at is not null or v_board.opted_out_at is not null
    or memory_private.mentions(v_quote, memory_private.opted_out_topics(v_user, v_c.id), v_c.language)
    or memory_private.mentions(v_quote, memory_private.opted_out_topics(p_space, v_board.id), v_board.language)
  then
    raise exception 'it is not to be remembered' using errcode = 'PT400',
      hint = 'leave it out, or opt in to the conversation or the topic';
  end if;
  insert into memory.conversation_summary_boards (user_id, conversation_id) values (p_space, v_board.id)
  on conflict (user_id, conversation_id) do nothing;
  -- Each member has items of their own, also where two say the same.
  v_digest := md5(memory_private.item_digest(v_quote) || ' by ' || v_user);
  select i.* into v_item from memory.conversation_board_items i
   where i.user_id = p_space and i.conversation_id = v_board.id and i.kind = p_kind and i.digest = v_digest
     and i.superseded_at is null;
  if v_item.deleted_at is not null then
    raise exception 'this item was deleted from the board' using errcode = 'PT400', hint = 'ask a manager of the space';
  end if;
  if v_item.id is null and (
    select count(*) from memory.conversation_board_items i where i.user_id = p_space and i.conversation_id = v_board.id)
    >= (memory_private.current_limits()).board_items
  then
    raise exception 'the board is full' using errcode = 'PT413',
      hint = 'withdraw what is not needed, or raise board_items in memory_private.limits';
  end if;
  v_now := clock_timestamp();
  if v_item.id is null then
    insert into memory.conversation_board_items (
      user_id, conversation_id, kind, text, digest, state, quote, first_seen_at, last_seen_at, author, author_kind,
      edited_by, editor_kind, edited_at, contributed_by, said_at)
    values (
      p_space, v_board.id, p_kind, v_quote, v_digest, v_state, v_quote, v_now, v_now, v_user, 'person', v_user, 'person',
      v_now, v_user, v_m.created_at)
    returning * into v_item;
    perform memory_private.note_board_version(p_space, v_board.id, false);
    update memory.conversation_summary_boards b set version = b.version + 1, updated_at = v_now
     where b.user_id = p_space and b.conversation_id = v_board.id;
    insert into memory.conversation_board_changes (
      user_id, conversation_id, version, place, item_id, action, changed_by)
    select p_space, v_board.id, b.version, 1, v_item.id, 'add', v_user from memory.conversation_summary_boards b
     where b.user_id = p_space and b.conversation_id = v_board.id;
  end if;
  insert into memory.contributions (user_id, conversation_id, message_id, space_id, item_id, quote)
  values (v_user, v_c.id, p_message_id, p_space, v_item.id, v_quote)
  on conflict do nothing;
  return jsonb_build_object(
    'space_id', p_space, 'item_id', v_item.id, 'quote', v_quote, 'said_at', v_m.created_at,
    'is_new', v_item.first_seen_at = v_now);
end
$function$;
comment on function public.memory_contribute is
  'langchain-supabase-memory: Copy a quote from one of your own conversations onto the board of a space. It is checked
  against the message as it is stored; nothing else of it moves, and only you can follow it back. The board is that of the
  space''s conversation with the thread "board". The item goes when the message is forgotten or does not say it any more.

p_thread_id: the thread of your conversation.
p_message_id: the id of the message.
p_quote: what it says, at most 500 characters. Spaces, case and the shape of quotation marks may differ.
p_kind: {{item_kinds}}.
p_space: the id of the space.
p_user_id: who contributes, the owner of the conversation; null: the subject of the caller''s token. Only a server names
  another.
p_agent_id: the agent of the conversation.
Returns: object.
- space_id: text. The space.
- item_id: uuid. The item on its board.
- quote: text. Its words, as they stand in the message.
- said_at: timestamp. When that was said.
- is_new: boolean. Whether it was not there before.
Errors:
- PT400: the message does not say that, it is too long or not to be remembered, or the item was deleted from the board; or
  no p_user_id is given, and the caller''s token names nobody.
- PT404: there is no such message of this user, or no such space, or the user is not in it.
- PT409: spaces are not switched on in this database.
- PT413: the board holds as many items as it may (board_items, see memory_limits).
- 23514: a kind is refused; the name of the constraint says which.
- PT403: the user is a reader of the space, or p_user_id is somebody else and the caller is no server.';

create function public.memory_withdraw(p_space text, p_item_id uuid, p_user_id text default null) returns jsonb
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_role integer;
  v_by   text;
begin
  if not memory_private.is_server() then
    return memory_private.act_as_member('memory_withdraw', p_user_id, jsonb_build_object(
      'space', p_space, 'item_id', p_item_id));
  end if;
  v_role := memory_private.check_role(p_space, p_user_id, 0);
  select i.contributed_by into v_by
    from memory.conversations c
    join memory.conversation_board_items i on i.user_id = c.user_id and i.conversation_id = c.id
   where c.user_id = p_space and c.agent_id = 'default' and c.thread_id = 'board' and i.user_id = p_space
     and i.id = p_item_id;
  if v_by is null or v_role = 0 and v_by <> p_user_id then
    raise exception 'nobody has contributed such an item' using errcode = 'PT404', hint = 'read the board again';
  end if;
  if v_role < 3 and v_by <> p_user_id then
    raise exception 'only who contributed an item, or a manager of the space, withdraws it'
      using errcode = 'PT403', hint = 'ask a manager of the space';
  end if;
  delete from memory.contributions b where b.space_id = p_space and b.item_id = p_item_id;
  perform memory_private.delete_contributed_item(p_space, p_item_id, v_by);
  return jsonb_build_object('space_id', p_space, 'item_id', p_item_id);
end
$function$;
comment on function public.memory_withdraw is
  'langchain-supabase-memory: Take an item back that was contributed to a space, as who contributed it or as a manager. It
  goes with its history, and what a model has written on that board is written again. Who has left may still do so.

p_space: the id of the space.
p_item_id: the item.
p_user_id: who withdraws it; null: the subject of the caller''s token, or a server by itself.
Returns: object.
- space_id: text. The space.
- item_id: uuid. The item that went.
Errors:
- PT404: there is no such space or item, or who asks is not in it.
- PT409: spaces are not switched on in this database.
- PT403: somebody else contributed it, or p_user_id is somebody else and the caller is no server.';

-- Takes the id of a user who is deleted off what they edited and decided in spaces. What others said there stays.
create or replace function memory_private.forget_editor(p_user_id text, p_spaces text[]) returns void
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_nobody constant text := 'deleted user';
  v_column text[];
begin
  foreach v_column slice 1 in array array[
    ['conversation_summaries', 'edited_by'], ['conversation_summary_boards', 'edited_by'],
    ['conversation_board_items', 'author'], ['conversation_board_items', 'edited_by'],
    ['conversation_board_changes', 'changed_by'], ['chunk_ratings', 'rated_by'], ['opt_outs', 'created_by'],
    ['control_changes', 'changed_by'], ['topics', 'named_by']]
  loop
    execute format(
      'update memory.%1$I t set %2$I = $1 where t.user_id = any ($2) and t.%2$I = $3', v_column[1], v_column[2])
      using v_nobody, p_spaces, p_user_id;
  end loop;
  update memory.conversation_board_changes h
     set kept = h.kept
       || case when h.kept ->> 'author' = p_user_id then jsonb_build_object('author', v_nobody) else '{}' end
       || case when h.kept ->> 'edited_by' = p_user_id then jsonb_build_object('edited_by', v_nobody) else '{}' end
   where h.user_id = any (p_spaces) and p_user_id in (h.kept ->> 'author', h.kept ->> 'edited_by');
  -- To restore what an opt-out took would bring the id back.
  delete from memory.opt_out_undos u
   where u.user_id = any (p_spaces) and strpos(u.rows::text, to_jsonb(p_user_id)::text) > 0;
end
$function$;

-- Erases what a user who is deleted shared: what they wrote in spaces, what they contributed, and their being in spaces.
-- Where they were the last manager, the oldest contributor manages; without one the space goes.
create or replace function memory_private.forget_shared(p_user_id text, p_dry_run boolean) returns jsonb
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_now     constant timestamptz := clock_timestamp();
  v_receipt jsonb;
  v_empty   text[]; -- spaces that nobody is left to manage
  v_spaces  text[]; -- where something says what they are called
  v_space   text;
  v_row     record;
begin
  while not p_dry_run loop
    v_spaces := array(select m.space_id from memory.memberships m where m.user_id = p_user_id order by m.space_id);
    perform memory_private.lock_space(s, true) from unnest(v_spaces) s;
    perform memory_private.lock_memberships(p_user_id);
    -- While it waited for these spaces, somebody may have let the user into another one.
    exit when not exists (
      select from memory.memberships m where m.user_id = p_user_id and m.space_id <> all (v_spaces));
  end loop;
  v_empty := array(
    select m.space_id from memory.memberships m
    where m.user_id = p_user_id and m.role = 3 and not exists (
      select from memory.memberships o where o.space_id = m.space_id and o.user_id <> p_user_id and o.role > 1)
    order by m.space_id);
  v_receipt := jsonb_build_object(
    'authored',
      (select count(*) from memory.conversation_messages m where m.author_id = p_user_id)
      + (select count(*) from memory.superseded_messages s where s.author_id = p_user_id),
    'contributions', (select count(*) from memory.contributions b where b.user_id = p_user_id),
    'memberships', (select count(*) from memory.memberships m where m.user_id = p_user_id and m.role > 0),
    'spaces', cardinality(v_empty));
  if p_dry_run then
    return v_receipt;
  end if;
  foreach v_space in array v_empty loop
    perform public.memory_forget_space(v_space);
  end loop;
  for v_space in
    select m.space_id from memory.memberships m
    where m.user_id = p_user_id and m.role = 3 and not exists (
      select from memory.memberships o where o.space_id = m.space_id and o.user_id <> p_user_id and o.role = 3)
  loop
    update memory.memberships m set role = 3, granted_by = m.user_id, granted_at = v_now
     where m.space_id = v_space and m.user_id = (
       select o.user_id from memory.memberships o
       where o.space_id = v_space and o.user_id <> p_user_id and o.role = 2
       order by o.granted_at, o.user_id limit 1);
  end loop;
  v_spaces := array(
    select m.space_id from memory.memberships m where m.user_id = p_user_id
    union select m.user_id from memory.conversation_messages m where m.author_id = p_user_id
    union select s.user_id from memory.superseded_messages s where s.author_id = p_user_id);
  for v_row in
    select c.user_id, c.agent_id, c.thread_id, t.message_id
    from (select m.user_id, m.conversation_id, m.sequence, m.message_id from memory.conversation_messages m
          where m.author_id = p_user_id
          union all
          select s.user_id, s.conversation_id, s.sequence, s.message_id from memory.superseded_messages s
          where s.author_id = p_user_id) t
    join memory.conversations c on c.user_id = t.user_id and c.id = t.conversation_id
    order by c.user_id, c.id, t.sequence desc
  loop
    perform public.memory_forget_message(v_row.thread_id, v_row.message_id, v_row.user_id, v_row.agent_id);
  end loop;
  update memory.spaces s set labels = s.labels - p_user_id
   where s.user_id = any (v_spaces);
  delete from memory.contributions b where b.user_id = p_user_id;
  for v_row in -- what an import brought
    select i.user_id, i.id from memory.conversation_board_items i where i.contributed_by = p_user_id
    order by i.user_id, i.id
  loop
    perform memory_private.delete_contributed_item(v_row.user_id, v_row.id, p_user_id);
  end loop;
  perform memory_private.forget_editor(p_user_id, v_spaces);
  -- What they granted and created stands from now on in the name of who has it.
  delete from memory.invitations i
   using memory.memberships m
   where m.user_id = p_user_id and i.user_id = m.space_id and i.created_by = p_user_id;
  update memory.memberships o set granted_by = o.user_id
    from memory.memberships m
   where m.user_id = p_user_id and o.space_id = m.space_id and o.granted_by = p_user_id;
  update memory.spaces s set created_by = m.user_id
    from memory.memberships m
   where s.created_by = p_user_id and m.space_id = s.user_id and m.role = 3 and m.user_id <> p_user_id;
  delete from memory.memberships m where m.user_id = p_user_id;
  return v_receipt;
end
$function$;

create function public.memory_held(p_user_id text default null) returns jsonb
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_user text;
begin
  if not memory_private.is_server() then
    return memory_private.act_as_member('memory_held', p_user_id, '{}');
  end if;
  v_user := memory_private.resolve_person(p_user_id);
  return jsonb_build_object(
    'memberships', (
      select coalesce(jsonb_agg(jsonb_build_object(
        'space_id', m.space_id, 'role', memory_private.role_name(m.role), 'since', m.granted_at)
        order by m.space_id), '[]')
      from memory.memberships m where m.user_id = v_user),
    'contributions', (
      select coalesce(jsonb_agg(to_jsonb(r) order by r.contributed_at desc, r.item_id), '[]')
      from (
        select b.space_id, b.item_id, c.agent_id, c.thread_id, b.message_id, b.quote, b.contributed_at
        from memory.contributions b
        join memory.conversations c on c.user_id = v_user and c.id = b.conversation_id
        where b.user_id = v_user
        order by b.contributed_at desc, b.item_id limit 1000) r),
    'authored', (
      select coalesce(jsonb_agg(to_jsonb(r) order by r.space_id), '[]')
      from (
        select t.user_id as space_id, sum(t.messages) as messages, sum(t.items) as items
        from (select m.user_id, 1 as messages, 0 as items from memory.conversation_messages m where m.author_id = v_user
              union all
              select s.user_id, 1, 0 from memory.superseded_messages s where s.author_id = v_user
              union all
              select i.user_id, 0, 1 from memory.conversation_board_items i where i.contributed_by = v_user) t
        group by t.user_id) r));
end
$function$;
comment on function public.memory_held is
  'langchain-supabase-memory: Tell a user what spaces hold of them: where they are or were, what they contributed, and how
  much they wrote. What is theirs alone they read by the other verbs, and count by memory_forget with p_dry_run.

p_user_id: the user; null: the subject of the caller''s token. Only a server names another.
Returns: object.
- memberships: object[]. The spaces that they are in, or were.
- memberships[].space_id: text. The space.
- memberships[].role: text or null. What they are there; null: they have left, and what they wrote stays theirs to forget.
- memberships[].since: timestamp. Since when.
- contributions: object[]. The newest 1000 quotes of their conversations on boards of spaces, the newest first.
- contributions[].space_id: text. The space.
- contributions[].item_id: uuid. The item on its board; pass it to memory_withdraw.
- contributions[].agent_id: text. The agent of the conversation that it was quoted from.
- contributions[].thread_id: text. Its thread.
- contributions[].message_id: text. The id of the message.
- contributions[].quote: text. The words.
- contributions[].contributed_at: timestamp. When that was.
- authored: object[]. What stands in spaces in their name.
- authored[].space_id: text. The space.
- authored[].messages: integer. How many messages.
- authored[].items: integer. How many items of its board.
Errors:
- PT400: no p_user_id is given, and the caller''s token names nobody.
- PT409: spaces are not switched on in this database.
- PT403: p_user_id is somebody else, and the caller is no server.';
