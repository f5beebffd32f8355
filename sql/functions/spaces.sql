-- Spaces: memory that several people share, with roles. A space is an owner, so all other verbs work in it: members read
-- by the policies in access.sql, and write by one function here, which checks their role and calls the same verb.

-- Refuses a space that is not there, that the caller may not read, or that a member does not write into by this verb.
-- Null is a subject that is named like a space. docs/sql-functions.md tells of these errors once for all verbs.
create or replace function memory_private.check_space(p_space text, p_writes boolean default false) returns void
language plpgsql stable security invoker set search_path = ''
as $function$
begin
  if p_space is null then
    raise exception 'the subject of the token is named like a space'
      using errcode = 'PT403', hint = 'sign in as a user; a space is named by user_id';
  end if;
  if not memory_private.has_spaces() then
    raise exception 'spaces are not switched on in this database'
      using errcode = 'PT409', hint = 'run: supabase-memory migrate --spaces; no other user_id begins with "space:"';
  end if;
  if not exists (select from memory.spaces s where s.user_id = p_space) then
    raise exception 'there is no such space, or you are not in it'
      using errcode = 'PT404', hint = 'name one of the spaces that you are in';
  end if;
  if p_writes and not memory_private.is_server() then
    raise exception 'in a space only a server does this'
      using errcode = 'PT403', hint = 'members append and forget messages; call the rest with a server''s key';
  end if;
end
$function$;

-- Returns whose rows the caller reads by policy: their own, and those of the spaces that they are in. It runs with the
-- rights of the tables' owner, for the subject of the token and no argument; see sql/access.sql. A verb that makes many
-- statements on rows of one owner names them in memory.read_owner until it returns: where that is the caller, no spaces are
-- looked up. It only narrows: who sets it themself reads no more by it.
create or replace function memory_private.readable_owners() returns text[]
language plpgsql stable parallel safe security definer set search_path = ''
as $function$
declare
  v_user constant text := auth.jwt() ->> 'sub';
begin
  if coalesce(v_user, '') = '' or starts_with(v_user, 'space:') then
    return '{}';
  elsif current_setting('memory.read_owner', true) = v_user then
    return array[v_user];
  end if;
  return array(select m.space_id from memory.memberships m where m.user_id = v_user and m.role >= 1) || v_user;
end
$function$;

-- Returns the user who creates, joins or lists spaces.
create or replace function memory_private.resolve_person(p_user_id text) returns text
language plpgsql stable security invoker set search_path = ''
as $function$
begin
  if not memory_private.has_spaces() then
    perform memory_private.check_space('');
  elsif starts_with(p_user_id, 'space:') then
    raise exception 'a space is in no space' using errcode = 'PT400', hint = 'pass the user_id of a user';
  end if;
  return memory_private.resolve_owner(p_user_id);
end
$function$;

-- Waits until nobody changes who is in a space, or with p_change until nobody else writes there. It is held until the
-- transaction ends.
create or replace function memory_private.lock_space(p_space text, p_change boolean default false) returns void
language sql volatile security invoker set search_path = ''
as $function$
  select memory_private.lock_owner('space', p_space, p_change)
$function$;

-- Waits until nobody else changes in which spaces somebody is, and holds that until the transaction ends. Whoever needs a
-- space's lock as well takes that before.
create or replace function memory_private.lock_memberships(p_user_id text) returns void
language sql volatile security invoker set search_path = ''
as $function$
  select pg_advisory_xact_lock(hashtextextended('langchain-supabase-memory spaces of ' || p_user_id, 0))
$function$;

-- Returns what people are called in a space's prompts, by their ids; null of an owner that is no space.
create or replace function memory_private.person_labels(p_user_id text) returns jsonb
language plpgsql stable security invoker set search_path = ''
as $function$
begin
  if starts_with(p_user_id, 'space:') then
    return (select s.labels from memory.spaces s where s.user_id = p_user_id);
  end if;
  return null;
end
$function$;

-- Returns what who asks is called in a space: the subject of the token, or whom a server names; null elsewhere.
create or replace function memory_private.asker_label(p_user_id text, p_author_id text) returns text
language plpgsql stable security invoker set search_path = ''
as $function$
begin
  if starts_with(p_user_id, 'space:') then
    return memory_private.person_labels(p_user_id) ->> case
      when memory_private.is_server() then p_author_id else auth.jwt() ->> 'sub' end;
  end if;
  return null;
end
$function$;

-- Returns how a name looks: without case, accents, spaces and signs, as it is and with the Latin letters that letters of
-- other scripts look like. Two names look alike if they have one of the two in common.
create or replace function memory_private.name_looks(p_name text) returns text[]
language sql immutable security invoker set search_path = ''
as $function$
  select array(
    select distinct replace(memory_private.fold_text(f), ' ', '')
    from (select regexp_replace(normalize(p_name, NFKC), '[\u0483-\u0489\u17b4\u17b5\u180b-\u180f\u1ab0-\u1aff\u1dc0-\u1dff]', '', 'g') as name) n
    cross join lateral unnest(array[n.name, translate(n.name, '{{foreign_letters}}', '{{letters_like_them}}')]) f)
$function$;

-- Gives a person a label that nobody else has in a space, and returns it: a name of their choice, with a number where
-- somebody's looks like that; without one a number that was nobody's. Who has a label keeps it if no name is given.
create or replace function memory_private.label_person(p_space text, p_person text, p_name text default null) returns text
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_s      memory.spaces;
  v_label  text := p_name;
  v_number integer := 1;
begin
  select s.* into v_s from memory.spaces s where s.user_id = p_space for no key update;
  if p_name is null and v_s.labels ? p_person then
    return v_s.labels ->> p_person;
  elsif p_name is null then
    v_label := 'member ' || v_s.numbered + 1;
  else
    while exists (
      select from jsonb_each_text(v_s.labels) l
      where l.key <> p_person and memory_private.name_looks(l.value) && memory_private.name_looks(v_label))
    loop
      v_number := v_number + 1;
      v_label := p_name || ' ' || v_number;
    end loop;
  end if;
  update memory.spaces s
     set labels = s.labels || jsonb_build_object(p_person, v_label), numbered = s.numbered + (p_name is null)::integer
   where s.user_id = p_space;
  return v_label;
end
$function$;

-- Returns the roles in the order of their rights: the first is 1. What is no role of them, 0, has no name.
create or replace function memory_private.role_names() returns text[]
language sql immutable security invoker set search_path = ''
as $function$
  select '{reader,contributor,manager}'::text[]
$function$;

-- Returns the name of a role's number.
create or replace function memory_private.role_name(p_number integer) returns text
language sql immutable security invoker set search_path = ''
as $function$
  select (memory_private.role_names())[p_number]
$function$;

-- Returns the number of a role, in the order of rights; null for null.
create or replace function memory_private.role_number(p_role text) returns integer
language plpgsql immutable security invoker set search_path = ''
as $function$
declare
  v_number constant integer := array_position(memory_private.role_names(), p_role);
begin
  if v_number is null and p_role is not null then
    raise exception 'there is no such role' using errcode = 'PT400', hint = 'the roles are reader, contributor and manager';
  end if;
  return v_number;
end
$function$;

-- Returns the caller's role in a space, and refuses a lower one than needed. Who writes asks under the space's lock, so
-- that it holds until the transaction ends.
create or replace function memory_private.check_role(
  p_space  text,
  p_member text,    -- null: a server by itself, which may do everything; whoever calls for a user passes a name
  p_least  integer, -- 0: also a former member
  p_change boolean default false -- null: it is only read
) returns integer
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_role integer;
begin
  if p_change is not null then
    perform memory_private.lock_space(coalesce(p_space, ''), p_change);
  end if;
  perform memory_private.check_space(coalesce(p_space, ''));
  if p_member is null then
    return 3;
  end if;
  if p_change is not null and current_setting('transaction_isolation') <> 'read committed' then
    -- An older snapshot may show a role that was taken away since: a row that has changed is then an error.
    perform from memory.memberships m where m.user_id = p_member and m.space_id = p_space for share;
  end if;
  select m.role into v_role from memory.memberships m where m.user_id = p_member and m.space_id = p_space;
  if v_role is null or v_role = 0 and p_least > 0 then
    raise exception 'there is no such space, or you are not in it'
      using errcode = 'PT404', hint = 'name one of the spaces that you are in';
  end if;
  if v_role < p_least then
    raise exception 'only a % of the space may do this', memory_private.role_name(p_least)
      using errcode = 'PT403', hint = 'a manager of the space can change your role';
  end if;
  return v_role;
end
$function$;

-- Runs a verb with the rights of the tables' owner for who is signed in: the member is the subject of the token and no
-- argument, and each verb names the role that it needs. A call without a subject is refused, also of a server.
create or replace function memory_private.act_as_member(
  p_verb text, p_user_id text, p_arguments jsonb, p_messages json default null
) returns jsonb
language plpgsql volatile security definer set search_path = ''
as $function$
declare
  v_member constant text := auth.jwt() ->> 'sub';
  v_a      constant jsonb := p_arguments;
  v_inside constant text[] := '{memory_append,memory_forget,memory_forget_message}'; -- verbs of whom p_user_id is the space
  v_role   integer;
begin
  if coalesce(v_member, '') <> p_user_id and not (starts_with(p_user_id, 'space:') and p_verb = any (v_inside))
    or v_member <> v_a ->> 'author_id'
  then
    raise exception 'only a server acts for another user'
      using errcode = 'PT403', hint = 'leave the user out: it is the subject of your token';
  end if;
  if coalesce(v_member, '') = '' then
    raise exception 'no user id' using errcode = 'PT400', hint = 'call with a user''s access token';
  end if;
  if starts_with(v_member, 'space:') then
    perform memory_private.check_space(null);
  end if;
  case p_verb
  when 'memory_append' then
    perform memory_private.check_role(p_user_id, v_member, 2);
    return public.memory_append(
      p_thread_id => v_a ->> 'thread_id', p_messages => p_messages, p_user_id => p_user_id,
      p_agent_id => v_a ->> 'agent_id', p_replace => (v_a ->> 'replace')::boolean,
      p_branch => (nullif(v_a -> 'branch', 'null') || jsonb_build_object('author', v_member))::json, -- see prepare_branch; of what is no object, || makes a list, which is refused
      p_manifest => nullif(v_a -> 'manifest', 'null')::json, p_author_id => v_member,
      p_private => (v_a ->> 'private')::boolean);
  when 'memory_forget' then
    perform memory_private.check_role(p_user_id, v_member, 3);
    return public.memory_forget(
      v_a ->> 'thread_id', p_user_id, v_a ->> 'agent_id', (v_a ->> 'dry_run')::boolean, (v_a ->> 'everything')::boolean);
  when 'memory_forget_message' then
    v_role := memory_private.check_role(p_user_id, v_member, 0);
    if v_role < 3 and not memory_private.wrote_message(
      p_user_id, v_a ->> 'agent_id', v_a ->> 'thread_id', v_a ->> 'message_id', v_member)
    then
      raise exception 'only who wrote a message, or a manager of the space, forgets it'
        using errcode = 'PT403', hint = 'ask a manager of the space';
    end if;
    return public.memory_forget_message(
      v_a ->> 'thread_id', v_a ->> 'message_id', p_user_id, v_a ->> 'agent_id', (v_a ->> 'dry_run')::boolean);
  when 'memory_create_space' then
    return public.memory_create_space(v_a ->> 'name', v_a ->> 'about', nullif(v_a -> 'retention', 'null')::json, v_member);
  when 'memory_update_space' then
    return public.memory_update_space(
      v_a ->> 'space', v_a ->> 'name', v_a ->> 'about', nullif(v_a -> 'retention', 'null')::json, v_member);
  when 'memory_space' then
    return public.memory_space(v_a ->> 'space', v_member);
  when 'memory_invite' then
    return public.memory_invite(
      v_a ->> 'space', v_a ->> 'role', (v_a ->> 'uses')::integer, (v_a ->> 'expires_seconds')::float8, v_member);
  when 'memory_join' then
    return public.memory_join(v_a ->> 'token', v_member);
  when 'memory_set_member' then
    return public.memory_set_member(
      v_a ->> 'space', coalesce(v_a ->> 'member', v_member), v_a ->> 'role', v_member);
  when 'memory_name_member' then
    return public.memory_name_member(v_a ->> 'space', v_a ->> 'name', coalesce(v_a ->> 'member', v_member), v_member);
  when 'memory_forget_space' then
    return public.memory_forget_space(v_a ->> 'space', (v_a ->> 'dry_run')::boolean, v_member);
  when 'memory_contribute' then
    return public.memory_contribute(
      v_a ->> 'thread_id', v_a ->> 'message_id', v_a ->> 'quote', v_a ->> 'kind', v_a ->> 'space', v_member,
      v_a ->> 'agent_id');
  when 'memory_withdraw' then
    return public.memory_withdraw(v_a ->> 'space', (v_a ->> 'item_id')::uuid, v_member);
  when 'memory_held' then
    return public.memory_held(v_member);
  when 'forget_shared' then
    return memory_private.forget_shared(v_member, (v_a ->> 'dry_run')::boolean);
  end case;
end
$function$;

-- Says whether a message, also one that a graph has left, was written by this member.
create or replace function memory_private.wrote_message(
  p_user_id text, p_agent_id text, p_thread_id text, p_message_id text, p_member text
) returns boolean
language sql stable security invoker set search_path = ''
as $function$
  select coalesce(bool_or(t.author_id = p_member), false)
  from memory.conversations c
  cross join lateral (
    select m.author_id from memory.conversation_messages m
    where m.user_id = c.user_id and m.conversation_id = c.id and m.message_id = p_message_id
    union all
    select s.author_id from memory.superseded_messages s
    where s.user_id = c.user_id and s.conversation_id = c.id and s.message_id = p_message_id
    offset 0) t
  where c.user_id = p_user_id and c.agent_id = p_agent_id and c.thread_id = p_thread_id
$function$;

-- Refuses a retention that no call could read.
create or replace function memory_private.check_retention(p_retention json) returns void
language plpgsql immutable security invoker set search_path = ''
as $function$
begin
  if not coalesce(case json_typeof(p_retention) when 'null' then true when 'object' then (
      select bool_and(case
        when e.value = 'null' then e.key in ('turns', 'messages', 'age', 'summary_age')
        when e.key in ('turns', 'messages') then e.value::text ~ '^[1-9][0-9]{0,8}$'
        when e.key in ('age', 'summary_age') then
          jsonb_typeof(e.value) = 'number' and e.value::text ~ '^[0-9]{1,10}(\.[0-9]{1,6})?$'
        else false end)
      from jsonb_each(p_retention::jsonb) e) else p_retention is null end, true)
  then
    raise exception 'what a space keeps cannot be read'
      using errcode = 'PT400', hint = 'pass turns, messages, age and summary_age in seconds, or null';
  end if;
end
$function$;

create function public.memory_create_space(
  p_name      text,
  p_about     text default '',
  p_retention json default null,
  p_user_id   text default null
) returns jsonb
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_space constant text := 'space:' || gen_random_uuid();
  v_name  constant text := memory_private.one_line(p_name);
  v_most  constant integer := (memory_private.current_limits()).spaces;
  v_user  text;
begin
  if not memory_private.is_server() then
    return memory_private.act_as_member('memory_create_space', p_user_id, jsonb_build_object(
      'name', left(p_name, 10000), 'about', p_about, 'retention', p_retention));
  end if;
  v_user := memory_private.resolve_person(p_user_id);
  if length(v_name) not between 1 and 200 or v_name is null or octet_length(p_about) > 8000 then
    raise exception 'a name has 1 to 200 characters, and what a space is about at most 8000 bytes'
      using errcode = 'PT400', hint = 'pass a shorter one';
  end if;
  perform memory_private.check_retention(p_retention),
    memory_private.lock_memberships(v_user);
  if greatest(
    (select count(*) from memory.spaces s where s.created_by = v_user),
    (select count(*) from memory.memberships m where m.user_id = v_user and m.role > 0)) >= v_most
  then
    raise exception 'a user creates, or is in, at most % spaces', v_most
      using errcode = 'PT413', hint = 'leave or forget one, or raise spaces in memory_private.limits';
  end if;
  insert into memory.spaces (user_id, name, about, retention, created_by)
  values (v_space, v_name, coalesce(p_about, ''), nullif(p_retention::jsonb, 'null'), v_user);
  insert into memory.memberships (user_id, space_id, role, granted_by) values (v_user, v_space, 3, v_user);
  perform memory_private.label_person(v_space, v_user);
  return jsonb_build_object('space_id', v_space, 'name', v_name);
end
$function$;
comment on function public.memory_create_space is
  'langchain-supabase-memory: Create a space: memory that several people share. Whoever creates it manages it. Its id is
  passed as p_user_id to the verbs that read in it, append to it and forget.

p_name: what it is called, 1 to 200 characters; for display alone.
p_about: what it is for, at most 8000 bytes.
p_retention: what is kept of its messages, as in memory_append, with the keys turns, messages, age and summary_age;
  null: everything. It holds for all calls in the space, in place of what they pass.
p_user_id: who creates it; null: the subject of the caller''s token. Only a server names another.
Returns: object.
- space_id: text. Names it in calls: "space:" and a uuid.
- name: text. What it is called.
Errors:
- PT400: the name, p_about or p_retention cannot be right; or no p_user_id is given, and the caller''s token names nobody.
- PT409: spaces are not switched on in this database.
- PT413: the user has created, or is in, as many spaces as memory_limits allows.
- PT403: p_user_id is somebody else, and the caller is no server.';

create function public.memory_update_space(
  p_space     text,
  p_name      text default null, -- null: as it is
  p_about     text default null,
  p_retention json default null,
  p_user_id   text default null
) returns jsonb
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_name constant text := memory_private.one_line(p_name);
begin
  if not memory_private.is_server() then
    return memory_private.act_as_member('memory_update_space', p_user_id, jsonb_build_object(
      'space', p_space, 'name', left(p_name, 10000), 'about', p_about, 'retention', p_retention));
  end if;
  perform memory_private.check_role(p_space, p_user_id, 3, true);
  if p_name is not null and (v_name is null or length(v_name) not between 1 and 200) or octet_length(p_about) > 8000 then
    raise exception 'a name has 1 to 200 characters, and what a space is about at most 8000 bytes'
      using errcode = 'PT400', hint = 'pass a shorter one';
  end if;
  perform memory_private.check_retention(p_retention);
  update memory.spaces s
     set name = coalesce(v_name, s.name), about = coalesce(p_about, s.about),
         retention = case when p_retention is null or json_typeof(p_retention) = 'null' then s.retention
                          else nullif(jsonb_strip_nulls(p_retention::jsonb), '{}') end
   where s.user_id = p_space;
  return (
    select jsonb_build_object('space_id', s.user_id, 'name', s.name, 'about', s.about, 'retention', s.retention)
    from memory.spaces s where s.user_id = p_space);
end
$function$;
comment on function public.memory_update_space is
  'langchain-supabase-memory: Change what a space is called, what it is for, and what is kept there, as one of its
  managers.

p_space: the id of the space.
p_name: what it is called, 1 to 200 characters; null: as before.
p_about: what it is for, at most 8000 bytes; null: as before.
p_retention: what is kept of its messages from now on, as in memory_create_space; null: as before. {}: everything.
p_user_id: the manager; null: the subject of the caller''s token, or a server by itself.
Returns: object.
- space_id: text. The space.
- name: text. What it is called.
- about: text. What it is for.
- retention: object or null. What is kept of its messages; null: everything.
Errors:
- PT400: the name, p_about or p_retention cannot be right; or the caller''s token names nobody.
- PT404: there is no such space, or the manager is not in it.
- PT409: spaces are not switched on in this database.
- PT403: p_user_id is no manager, or is somebody else and the caller is no server.';

create function public.memory_spaces(p_user_id text default null) returns jsonb
language plpgsql stable security invoker set search_path = ''
as $function$
declare
  v_user text := memory_private.resolve_person(p_user_id);
begin
  return (
    select coalesce(jsonb_agg(jsonb_build_object(
      'space_id', s.user_id, 'name', s.name, 'about', s.about,
      'role', memory_private.role_name(m.role), 'since', m.granted_at) order by s.name, s.user_id), '[]')
    from memory.memberships m
    cross join lateral (
      select s.user_id, s.name, s.about from memory.spaces s where s.user_id = m.space_id offset 0) s
    where m.user_id = v_user and m.role > 0);
end
$function$;
comment on function public.memory_spaces is
  'langchain-supabase-memory: List the spaces that a user is in, by their names.

p_user_id: the user; null: the subject of the caller''s token.
Returns: object[].
- [].space_id: text. Names the space in calls.
- [].name: text. What it is called.
- [].about: text. What it is for.
- [].role: text. What the user is there: reader, contributor or manager.
- [].since: timestamp. Since when they are that.
Errors:
- PT400: no p_user_id is given, and the caller''s token names nobody.
- PT409: spaces are not switched on in this database.';

create function public.memory_space(p_space text, p_user_id text default null) returns jsonb
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_role integer;
begin
  if not memory_private.is_server() then
    return memory_private.act_as_member('memory_space', p_user_id, jsonb_build_object('space', p_space));
  end if;
  v_role := memory_private.check_role(p_space, p_user_id, 1, null);
  return (
    select jsonb_build_object(
      'space_id', s.user_id, 'name', s.name, 'about', s.about, 'retention', s.retention, 'created_by', s.created_by,
      'created_at', s.created_at,
      'role', case when p_user_id is not null then memory_private.role_name(v_role) end,
      'members', (
        select coalesce(jsonb_agg(jsonb_build_object(
          'user_id', m.user_id, 'name', s.labels ->> m.user_id, 'role', memory_private.role_name(m.role),
          'granted_by', m.granted_by, 'since', m.granted_at) order by m.role desc, m.user_id), '[]')
        from memory.memberships m where m.space_id = p_space and m.role > 0),
      'invitations', case when v_role = 3 then (
        select coalesce(jsonb_agg(jsonb_build_object(
          'role', memory_private.role_name(i.role), 'uses', i.uses, 'created_by', i.created_by,
          'expires_at', i.expires_at) order by i.expires_at), '[]')
        from memory.invitations i where i.user_id = p_space and i.expires_at > clock_timestamp()) end)
    from memory.spaces s where s.user_id = p_space);
end
$function$;
comment on function public.memory_space is
  'langchain-supabase-memory: Read what a space is, and who is in it.

p_space: the id of the space.
p_user_id: the member who asks; null: the subject of the caller''s token, or a server by itself.
Returns: object.
- space_id: text. Names the space in calls.
- name: text. What it is called.
- about: text. What it is for.
- retention: object or null. What is kept of its messages; null: everything.
- created_by: text. Who created it.
- created_at: timestamp. When that was.
- role: text or null. What the member who asks is there; null: a server asks by itself.
- members: object[]. Who is in it, managers first.
- members[].user_id: text. The member.
- members[].name: text. What prompts call them: what memory_name_member set, else "member" and a number.
- members[].role: text. reader, contributor or manager.
- members[].granted_by: text. Who gave them that role.
- members[].since: timestamp. When that was.
- invitations: object[] or null. Those that can still be used; null: the member who asks is no manager.
- invitations[].role: text. What it makes of who uses it.
- invitations[].uses: integer. How many people it still lets in.
- invitations[].created_by: text. Who invites.
- invitations[].expires_at: timestamp. Until when it can be used.
Errors:
- PT404: there is no such space, or the member who asks is not in it.
- PT409: spaces are not switched on in this database.
- PT403: p_user_id is somebody else, and the caller is no server.';

create function public.memory_invite(
  p_space           text,
  p_role            text    default 'reader', -- null: take all open invitations back
  p_uses            integer default 1,
  p_expires_seconds float8  default 604800,
  p_user_id         text    default null
) returns jsonb
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_role    constant integer := memory_private.role_number(p_role);
  v_most    constant integer := (memory_private.current_limits()).invitations;
  v_secret  text;
  v_now     timestamptz;
  v_expires timestamptz;
begin
  if not memory_private.is_server() then
    return memory_private.act_as_member('memory_invite', p_user_id, jsonb_build_object(
      'space', p_space, 'role', p_role, 'uses', p_uses, 'expires_seconds', p_expires_seconds));
  end if;
  perform memory_private.check_role(p_space, p_user_id, 3, true);
  if v_role = 3 or p_uses not between 1 and 1000 or p_uses is null or p_expires_seconds is null
     or not p_expires_seconds between 0.001 and 31536000
  then
    raise exception 'an invitation is for 1 to 1000 readers or contributors, and for at most a year'
      using errcode = 'PT400', hint = 'make somebody a manager who has joined';
  end if;
  v_now := clock_timestamp();
  delete from memory.invitations i
   where i.user_id = p_space and (p_role is null or i.expires_at <= v_now);
  if p_role is null then
    return '{"token": null, "expires_at": null}';
  end if;
  if (select count(*) from memory.invitations i where i.user_id = p_space) >= v_most then
    raise exception 'a space has at most % open invitations', v_most using errcode = 'PT413',
      hint = 'take them back with p_role => null, or raise invitations in memory_private.limits';
  end if;
  v_secret := replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', '');
  v_expires := v_now + p_expires_seconds * interval '1 second';
  insert into memory.invitations (user_id, digest, role, uses, created_by, expires_at)
  values (p_space, sha256(convert_to(v_secret, 'UTF8')), v_role, p_uses, coalesce(p_user_id, current_user), v_expires);
  return jsonb_build_object('token', substr(p_space, 7) || '.' || v_secret, 'expires_at', v_expires);
end
$function$;
comment on function public.memory_invite is
  'langchain-supabase-memory: Invite people into a space, as one of its managers. Whoever has the token joins by
  memory_join; it is shown once, and only a digest of it is stored.

p_space: the id of the space.
p_role: what it makes of who uses it, reader or contributor. Null: all open invitations are taken back, and none is made.
p_uses: how many people it lets in, 1 to 1000.
p_expires_seconds: how long it can be used, in seconds, at most a year.
p_user_id: the manager; null: the subject of the caller''s token, or a server by itself.
Returns: object.
- token: text or null. The invitation; null if all were taken back.
- expires_at: timestamp or null. Until when it can be used.
Errors:
- PT400: there is no such role, or p_uses or p_expires_seconds are out of range; or the caller''s token names nobody.
- PT404: there is no such space, or the manager is not in it.
- PT409: spaces are not switched on in this database.
- PT413: there are as many open invitations as memory_limits allows.
- PT403: p_user_id is no manager, or is somebody else and the caller is no server.';

create function public.memory_join(p_token text, p_user_id text default null) returns jsonb
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_space  constant text := 'space:' || split_part(p_token, '.', 1);
  v_limits constant memory_private.limits := memory_private.current_limits();
  v_user   text;
  v_found  memory.invitations;
  v_member memory.memberships;
  v_is_old boolean; -- whether a manager has set the member's role since it was made
begin
  if not memory_private.is_server() then
    return memory_private.act_as_member('memory_join', p_user_id, jsonb_build_object('token', left(p_token, 1000)));
  end if;
  v_user := memory_private.resolve_person(p_user_id);
  perform memory_private.lock_space(coalesce(v_space, ''), true),
    memory_private.lock_memberships(v_user);
  select i.* into v_found from memory.invitations i
   where i.user_id = v_space and i.digest = sha256(convert_to(split_part(p_token, '.', 2), 'UTF8'))
     and i.expires_at > clock_timestamp()
     for update;
  select m.* into v_member from memory.memberships m where m.user_id = v_user and m.space_id = v_space for update;
  v_is_old := coalesce(v_found.created_at <= v_member.granted_at, false);
  if v_found.role is null or v_member.role = 0 and v_is_old then
    raise exception 'there is no such invitation, or it has expired or is used up'
      using errcode = 'PT404', hint = 'ask a manager of the space for a new one';
  end if;
  if coalesce(v_member.role, 0) < v_found.role and not v_is_old then
    if coalesce(v_member.role, 0) = 0 and (
      (select count(*) from memory.memberships m where m.space_id = v_space and m.role > 0) >= v_limits.space_members
      or (select count(*) from memory.memberships m where m.user_id = v_user and m.role > 0) >= v_limits.spaces)
    then
      raise exception 'a space has at most % members, and a user is in at most % spaces', v_limits.space_members,
        v_limits.spaces using errcode = 'PT413', hint = 'raise space_members or spaces in memory_private.limits';
    end if;
    insert into memory.memberships (user_id, space_id, role, granted_by)
    values (v_user, v_space, v_found.role, v_found.created_by)
    on conflict (user_id, space_id) do update
      set role = excluded.role, granted_by = excluded.granted_by, granted_at = excluded.granted_at;
    perform memory_private.label_person(v_space, v_user);
    update memory.invitations i set uses = i.uses - 1
     where i.user_id = v_space and i.digest = v_found.digest and v_found.uses > 1;
    delete from memory.invitations i where i.user_id = v_space and i.digest = v_found.digest and v_found.uses = 1;
  end if;
  select m.* into v_member from memory.memberships m where m.user_id = v_user and m.space_id = v_space;
  return (
    select jsonb_build_object(
      'space_id', s.user_id, 'name', s.name, 'role', memory_private.role_name(v_member.role))
    from memory.spaces s where s.user_id = v_space);
end
$function$;
comment on function public.memory_join is
  'langchain-supabase-memory: Join a space by an invitation. Who is in it already keeps the higher of the two roles, and
  uses nothing up if that is their own. It gives nothing back that was taken away after it was made: who has left, or was
  removed, or has another role since, needs a newer one.

p_token: what memory_invite gave.
p_user_id: who joins; null: the subject of the caller''s token. Only a server names another.
Returns: object.
- space_id: text. Names the space in calls.
- name: text. What it is called.
- role: text. What the user is there now: reader, contributor or manager.
Errors:
- PT400: no p_user_id is given, and the caller''s token names nobody.
- PT404: there is no such invitation, or it has expired or is used up.
- PT409: spaces are not switched on in this database.
- PT413: the space has as many members, or the user is in as many spaces, as memory_limits allows.
- PT403: p_user_id is somebody else, and the caller is no server.';

create function public.memory_set_member(
  p_space   text,
  p_member  text default null, -- null: who asks
  p_role    text default null, -- null: no more a member
  p_user_id text default null
) returns jsonb
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_role   constant integer := coalesce(memory_private.role_number(p_role), 0);
  v_limits constant memory_private.limits := memory_private.current_limits();
  v_is     integer;
begin
  if not memory_private.is_server() then
    return memory_private.act_as_member('memory_set_member', p_user_id, jsonb_build_object(
      'space', p_space, 'member', p_member, 'role', p_role));
  end if;
  perform memory_private.check_role(p_space, p_user_id, case when p_role is null and p_member = p_user_id then 1 else 3 end, true);
  if p_user_id is null and v_role > 0 then -- only a server adds members
    perform memory_private.lock_memberships(p_member);
  end if;
  -- An older snapshot that does not show what another manager has done since is an error here.
  perform from memory.memberships m where m.space_id = p_space and m.role = 3 for update;
  select m.role into v_is from memory.memberships m where m.user_id = p_member and m.space_id = p_space for update;
  if coalesce(v_is, 0) = 0 and p_user_id is not null then
    raise exception 'there is no such member' using errcode = 'PT404', hint = 'invite them: people join by themselves';
  end if;
  if v_is = 3 and v_role < 3 and not exists (
    select from memory.memberships m where m.space_id = p_space and m.role = 3 and m.user_id <> p_member)
  then
    raise exception 'a space has a manager' using errcode = 'PT400',
      hint = 'make somebody else a manager first, or forget the space';
  end if;
  if coalesce(v_is, 0) = 0 and v_role > 0 and (
    (select count(*) from memory.memberships m where m.space_id = p_space and m.role > 0) >= v_limits.space_members
    or (select count(*) from memory.memberships m where m.user_id = p_member and m.role > 0) >= v_limits.spaces)
  then
    raise exception 'a space has at most % members, and a user is in at most % spaces', v_limits.space_members,
      v_limits.spaces using errcode = 'PT413', hint = 'raise space_members or spaces in memory_private.limits';
  end if;
  if v_is is not null or v_role > 0 then
    insert into memory.memberships (user_id, space_id, role, granted_by)
    values (p_member, p_space, v_role, coalesce(p_user_id, current_user))
    on conflict (user_id, space_id) do update
      set role = excluded.role, granted_by = excluded.granted_by, granted_at = excluded.granted_at
      where memberships.role <> excluded.role;
    perform memory_private.label_person(p_space, p_member);
  end if;
  -- Who does not manage it any more has no invitation of theirs left to come back by.
  delete from memory.invitations i where i.user_id = p_space and i.created_by = p_member and v_role < 3;
  return jsonb_build_object('space_id', p_space, 'user_id', p_member, 'role', p_role);
end
$function$;
comment on function public.memory_set_member is
  'langchain-supabase-memory: Change what a member of a space may do, as one of its managers; or leave it, as anybody. It
  holds from the next statement on. What a former member wrote stays, and they may still forget it. Nobody is put into a
  space without their doing: people join by memory_join. Only a server adds members.

p_space: the id of the space.
p_member: the member; null: who asks.
p_role: reader, contributor or manager. Null: no more a member.
p_user_id: the manager, or the member who leaves; null: the subject of the caller''s token, or a server by itself.
Returns: object.
- space_id: text. The space.
- user_id: text. The member.
- role: text or null. What they are now; null: no more a member.
Errors:
- PT400: there is no such role, or the space would have no manager; or the caller''s token names nobody.
- PT404: there is no such space or member, or the manager is not in it.
- PT409: spaces are not switched on in this database.
- PT413: the space has as many members, or the user is in as many spaces, as memory_limits allows.
- PT403: p_user_id is no manager, or is somebody else and the caller is no server.';

create function public.memory_name_member(
  p_space   text,
  p_name    text,
  p_member  text default null, -- null: who asks
  p_user_id text default null
) returns jsonb
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_name constant text := memory_private.one_line(p_name);
begin
  if not memory_private.is_server() then
    return memory_private.act_as_member('memory_name_member', p_user_id, jsonb_build_object(
      'space', p_space, 'name', left(p_name, 1000), 'member', p_member));
  end if;
  p_member := coalesce(p_member, p_user_id);
  perform memory_private.check_role(p_space, p_user_id, case when p_member = p_user_id then 1 else 3 end, true);
  -- Names stand in prompts: none looks like a mark of ours, like a role, or like another's number.
  if v_name is null or length(v_name) not between 1 and 40 or octet_length(v_name) > 160
     or v_name ~ '[]["`<>(){}:;=\\/|*#~^$%&!?,\u00a0-\u00bf\u00d7\u00f7\u034f\u037e\u0387\u0589\u05be\u0600-\u060f\u061b-\u061f]'
     or v_name ~ '[\u066a-\u066d\u06d4\u0964\u0965\u115f\u1160\u180e\u2000-\u2018\u201a-\u206f\u20a0-\u2bff\u3000-\u303f\u3164]'
     or v_name ~ '[\ue000-\uf8ff\ufe00-\ufe0f\ufe30-\ufe6f\ufeff-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65\uffa0]'
     or v_name ~ '[\U00010000-\U0001ffff\U000e0000-\U0010ffff]'
     or memory_private.fold_text(v_name) = ''
     or v_name ~ '[\u0660-\u0669\u06f0-\u06f9\u07c0-\u07c9\u0966-\u096f\u09e6-\u09ef\u0a66-\u0a6f\u0ae6-\u0aef\u0b66-\u0b6f]'
     or v_name ~ '[\u0be6-\u0bef\u0c66-\u0c6f\u0ce6-\u0cef\u0d66-\u0d6f\u0e50-\u0e59\u0ed0-\u0ed9\u0f20-\u0f29\u1040-\u1049]'
     or v_name ~ '[\u17e0-\u17e9\u1810-\u1819]'
     or exists (
       select from unnest(memory_private.name_looks(v_name)) n
       where translate(n, '0123456789', '') ~ '^(member|user|human|person|assistant|ai|agent|system|developer|tool)$')
  then
    raise exception 'a member''s name has 1 to 40 letters, digits, spaces and signs of names, and names no role'
      using errcode = 'PT400', hint = 'pass a first name, for example';
  end if;
  if not exists (select from memory.memberships m where m.user_id = p_member and m.space_id = p_space and m.role > 0) then
    raise exception 'there is no such member' using errcode = 'PT404', hint = 'look at who is in the space';
  end if;
  return jsonb_build_object(
    'space_id', p_space, 'user_id', p_member, 'name', memory_private.label_person(p_space, p_member, v_name));
end
$function$;
comment on function public.memory_name_member is
  'langchain-supabase-memory: Say what prompts call a member of a space, as that member or as one of its managers. It
  holds for all that they wrote. No two people there have names that look the same: the second gets a number.

p_space: the id of the space.
p_name: the name, 1 to 40 letters, digits, spaces and signs of names.
p_member: the member; null: who asks.
p_user_id: the manager, or the member; null: the subject of the caller''s token, or a server by itself.
Returns: object.
- space_id: text. The space.
- user_id: text. The member.
- name: text. What they are called now.
Errors:
- PT400: that is no name, or it is that of a role; or the caller''s token names nobody.
- PT404: there is no such space or member, or who asks is not in it.
- PT409: spaces are not switched on in this database.
- PT403: p_member is somebody else and p_user_id is no manager, or p_user_id is somebody else and the caller is no
  server.';

create function public.memory_forget_space(p_space text, p_dry_run boolean default false, p_user_id text default null)
returns jsonb
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_receipt jsonb;
begin
  if not memory_private.is_server() then
    return memory_private.act_as_member('memory_forget_space', p_user_id, jsonb_build_object(
      'space', p_space, 'dry_run', p_dry_run));
  end if;
  perform memory_private.check_role(p_space, p_user_id, 3, not p_dry_run);
  v_receipt := public.memory_forget(p_user_id => p_space, p_everything => true, p_dry_run => p_dry_run) - 'profile'
    || jsonb_build_object(
      'members', (select count(*) from memory.memberships m where m.space_id = p_space and m.role > 0),
      'invitations', (select count(*) from memory.invitations i where i.user_id = p_space));
  if not p_dry_run then
    delete from memory.memberships m where m.space_id = p_space;
    delete from memory.spaces s where s.user_id = p_space;
  end if;
  return v_receipt;
end
$function$;
comment on function public.memory_forget_space is
  'langchain-supabase-memory: Erase a space, as one of its managers: everything that it owns, its members and its
  invitations. What its members hold for themselves stays.

p_space: the id of the space.
p_dry_run: only say what would go.
p_user_id: the manager; null: the subject of the caller''s token, or a server by itself.
Returns: object.
- conversations: integer. How many conversations went.
- messages: integer. How many messages.
- segments: integer. How many summaries.
- chunks: integer. How many chunks.
- items: integer. How many items of the store.
- contributions: integer. How many quotes members had contributed.
- authored: integer. Always 0.
- memberships: integer. Always 0.
- spaces: integer. Always 0.
- members: integer. How many members it had.
- invitations: integer. How many open invitations.
Errors:
- PT400: the caller''s token names nobody.
- PT404: there is no such space, or the manager is not in it.
- PT409: spaces are not switched on in this database.
- PT403: p_user_id is no manager, or is somebody else and the caller is no server.';
