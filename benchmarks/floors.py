"""The minimum cost of the same work: tables and statements without any of the memory's guarantees.

- The narrow floor: two columns of text, keyed by the conversation and the running sum of its characters, so that the
  end of a conversation is one range. The client knows where the conversation ends. It has a single writer, so each of
  the two contestants that use it has a copy.
- Lock the counter and insert: gapless numbers, unique ids, and the whole message next to its text. It is measured once
  with only these columns, and once with tables like the memory's, with their checks and indexes, but without foreign
  keys and triggers.
- The careful application: messages as JSON, one batch insert and a limited select through the Data API.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import psycopg

from benchmarks.fill import MESSAGE_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.services import Site

TABLES: Final = """
create table bench.narrow (
  conversation        text,
  characters_through  bigint,
  role                text,
  text                text,
  primary key (conversation, characters_through));
create table bench.counters (
  conversation text primary key,
  next         bigint not null default 0
) with (fillfactor = 70);
create table bench.counted (
  conversation text,
  sequence     bigint,
  message_id   text,
  role         text,
  text         text,
  payload      json,
  primary key (conversation, sequence),
  unique (conversation, message_id));
create function bench.lock_and_insert(p_conversation text, p_messages json) returns bigint language plpgsql as $$
declare
  v_count integer := json_array_length(p_messages);
  v_first bigint;
begin
  update bench.counters c set next = c.next + v_count where c.conversation = p_conversation
  returning c.next - v_count into v_first;
  insert into bench.counted
  select p_conversation, v_first - 1 + r.position, r.id, r.role, r.text, r.payload
  from rows from (json_to_recordset(p_messages) as (id text, role text, text text, payload json))
       with ordinality as r (id, role, text, payload, position);
  return v_first;
end
$$;
create table bench.like_conversations (like memory.conversations including all);
create table bench.like_messages (like memory.conversation_messages including all);
create function bench.lock_and_insert_alike(p_conversation text, p_messages json) returns bigint language plpgsql as $$
declare
  v_count integer := json_array_length(p_messages);
  v_id    uuid;
  v_first bigint;
begin
  update bench.like_conversations c
     set next_sequence = c.next_sequence + v_count, message_count = c.message_count + v_count
   where c.user_id = 'bench' and c.agent_id = 'default' and c.thread_id = p_conversation
  returning c.id, c.next_sequence - v_count into v_id, v_first;
  insert into bench.like_messages ({columns})
  select 'bench', v_id, v_first - 1 + r.position, r.id, r.role, r.text, r.characters, r.tokens, r.payload
  from rows from (json_to_recordset(p_messages) as (
         id text, role text, text text, characters integer, tokens integer, payload json))
       with ordinality as r (id, role, text, characters, tokens, payload, position);
  return v_first;
end
$$;
create table public.bench_careful (
  id           bigint generated always as identity primary key,
  conversation text not null,
  message      json not null,
  created_at   timestamptz not null default now());
create index on public.bench_careful (conversation, id);
revoke all on public.bench_careful from public, anon, authenticated;
grant select, insert on public.bench_careful to service_role;
""".replace("{columns}", MESSAGE_COLUMNS)

_FILLS: Final = (
    """
    insert into bench.narrow
    select copy || c.thread_id, sum(m.characters) over (partition by copy, c.id order by m.sequence), m.role, m.text
    from (values (''), ('lc ')) copies (copy), memory.conversations c
    join memory.conversation_messages m on m.user_id = c.user_id and m.conversation_id = c.id
    where c.user_id = 'bench' and c.thread_id = any (%(threads)s)
    order by copy, c.id, m.sequence
    """,
    """
    insert into bench.counters
    select thread_id, next_sequence from memory.conversations where user_id = 'bench' and thread_id = any (%(threads)s)
    """,
    """
    insert into bench.counted
    select c.thread_id, m.sequence, m.message_id, m.role, m.text, m.payload
    from memory.conversations c
    join memory.conversation_messages m on m.user_id = c.user_id and m.conversation_id = c.id
    where c.user_id = 'bench' and c.thread_id = any (%(threads)s)
    order by c.id, m.sequence
    """,
    """
    insert into bench.like_conversations (user_id, id, thread_id, next_sequence, message_count)
    select user_id, id, thread_id, next_sequence, message_count from memory.conversations
    where user_id = 'bench' and thread_id = any (%(threads)s)
    """,
    f"""
    insert into bench.like_messages ({MESSAGE_COLUMNS})
    select {MESSAGE_COLUMNS} from memory.conversation_messages
    where user_id = 'bench'
      and conversation_id in (
        select id from memory.conversations where user_id = 'bench' and thread_id = any (%(threads)s))
    order by conversation_id, sequence
    """,
    """
    insert into public.bench_careful (conversation, message)
    select c.thread_id, m.payload
    from memory.conversations c
    join memory.conversation_messages m on m.user_id = c.user_id and m.conversation_id = c.id
    where c.user_id = 'bench' and c.thread_id = any (%(threads)s)
    order by c.id, m.sequence
    """,
)


def fill(site: Site, threads: Sequence[str]) -> None:
    """Copy these threads of the user `bench` from the memory's tables to the floors' tables."""
    with psycopg.connect(site.superuser, autocommit=True) as connection:
        for statement in _FILLS:
            connection.execute(statement.encode(), {"threads": list(threads)})
