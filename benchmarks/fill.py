"""Conversations of any length, written by the server in bulk: every row and every counter as an append leaves them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import psycopg

from benchmarks import work
from langchain_supabase_memory.language.messages import codec

if TYPE_CHECKING:
    from benchmarks.services import Site

MESSAGES_PER_SEGMENT: Final = 10
"""About what the default policy covers at once, with messages of 440 characters on average."""

KEPT: Final = 8
"""The fewest messages that no summary covers."""

_PERIOD: Final = 1000
"""After so many messages the texts begin anew."""

_MESSAGES: Final = """
with said as materialized (
  select place - 1 as place, row->>'role' as role, row->>'text' as text,
         (row->>'characters')::integer as characters, (row->>'tokens')::integer as tokens, row->>'payload' as payload,
         sum((row->>'characters')::integer) over (order by place) as characters_through,
         sum((row->>'tokens')::integer) over (order by place) as tokens_through,
         sum((row->>'characters')::integer) over () as characters_each,
         sum((row->>'tokens')::integer) over () as tokens_each
  from json_array_elements(%(rows)s::json) with ordinality as r (row, place)),
conversation as (
  insert into memory.conversations (user_id, thread_id, next_sequence, message_count, total_characters, total_tokens)
  select 'bench', %(name)s || copy, %(size)s, %(size)s,
         (%(size)s - 1) / %(period)s * characters_each + characters_through,
         (%(size)s - 1) / %(period)s * tokens_each + tokens_through
  from generate_series(0, %(copies)s - 1) copy, said where place = (%(size)s - 1) %% %(period)s
  returning id)
insert into memory.conversation_messages (
  user_id, conversation_id, sequence, message_id, role, text, characters, tokens, cumulative_characters, payload)
select 'bench', c.id, n, 'm-' || n, s.role, s.text, s.characters, s.tokens,
       n / %(period)s * s.characters_each + s.characters_through, replace(s.payload, '@id', 'm-' || n)::json
from conversation c, generate_series(0, %(size)s - 1) n, said s
where s.place = n %% %(period)s
order by c.id, n
"""
_FLOOR: Final = """
insert into bench.floor
select m.user_id, m.conversation_id, m.sequence, m.message_id, m.role, m.text, m.characters, m.tokens,
       m.cumulative_characters, m.created_at, m.updated_at, m.metadata, m.images, m.payload, m.final
from memory.conversation_messages m join memory.conversations c on c.id = m.conversation_id
where c.user_id = 'bench' and m.user_id = 'bench' and starts_with(c.thread_id, %(name)s)
"""
_SUMMARIES: Final = """
insert into memory.conversation_summaries (
  user_id, conversation_id, number, from_sequence, to_sequence, message_ids, built_on, content, characters, tokens,
  characters_through, tokens_through, model)
select 'bench', c.id, m.number, m.last - %(every)s + 1, m.last,
       array(select 'm-' || n from generate_series(m.last - %(every)s + 1, m.last) n),
       nullif(m.number - 1, 0), %(summary)s, length(%(summary)s), length(%(summary)s) / 4, m.characters_through,
       sum(m.tokens) over (partition by c.id order by m.number), 'bench'
from memory.conversations c,
     lateral (select o.sequence / %(every)s + 1 as number, max(o.sequence) as last, sum(o.tokens) as tokens,
                     max(o.cumulative_characters) as characters_through
              from memory.conversation_messages o
              where o.user_id = 'bench' and o.conversation_id = c.id
                and o.sequence < (c.next_sequence - %(kept)s) / %(every)s * %(every)s
              group by 1) m
where c.user_id = 'bench' and starts_with(c.thread_id, %(name)s)
"""
_COVERED: Final = """
update memory.conversations c
   set summarized_through = s.to_sequence, summarized_characters = s.characters_through,
       summarized_tokens = s.tokens_through
from (select distinct on (conversation_id) * from memory.conversation_summaries where user_id = 'bench'
      order by conversation_id, number desc) s
where c.user_id = 'bench' and c.id = s.conversation_id and starts_with(c.thread_id, %(name)s)
"""


def messages(site: Site, name: str, size: int, *, copies: int = 1, floor: bool = False) -> None:
    """Conversations `name0`, `name1` and so on, of so many messages each; on wish the same rows in the floor's table.

    Args:
        site: Where.
        name: What the names of the threads begin with; nothing else may begin so.
        size: How many messages.
        copies: How many conversations.
        floor: Whether `bench.floor` gets the rows too.
    """
    said = [message for _ in range(_PERIOD // 2) for message in work.messages()]
    for message in said:
        message.id = "@id"
    rows = [{**row, "payload": json.dumps(row["payload"], ensure_ascii=False)} for row in map(codec.to_row, said)]
    as_json = json.dumps(rows, ensure_ascii=False)
    values = {"name": name, "size": size, "copies": copies, "period": _PERIOD, "rows": as_json}
    _execute(site, [_MESSAGES, *([_FLOOR] if floor else [])], values)


def summaries(site: Site, name: str) -> None:
    """Segments over all but the newest messages of the conversations whose names begin so."""
    summary = " ".join(work.text() for _ in range(20))[:1500]
    values = {"name": name, "every": MESSAGES_PER_SEGMENT, "kept": KEPT, "summary": summary}
    _execute(site, [_SUMMARIES, _COVERED], values)


def vacuum(site: Site) -> None:
    """What autovacuum does within minutes, and what a checkpoint would do during the measurements."""
    site.cluster.execute("vacuum analyze", database=site.database, superuser=True)
    site.cluster.execute("checkpoint", superuser=True)


def _execute(site: Site, statements: list[str], values: dict[str, Any]) -> None:
    with psycopg.connect(site.cluster.conn_string(site.database, "supabase_admin"), autocommit=True) as connection:
        connection.execute("set session_replication_role = replica")  # no foreign key is looked up a million times
        for statement in statements:
            connection.execute(statement.encode(), values)
