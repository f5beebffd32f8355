"""Compare stored sums with a count of the rows."""

from __future__ import annotations

from typing import Any

import psycopg

_CONVERSATIONS = b"""
select c.thread_id from memory.conversations c cross join lateral (
  select count(*) as messages, coalesce(sum(m.characters), 0) as characters, coalesce(sum(m.tokens), 0) as tokens,
         coalesce(sum(m.characters) filter (where m.sequence > c.summarized_through), 0) as open_characters,
         coalesce(sum(m.tokens) filter (where m.sequence > c.summarized_through), 0) as open_tokens,
         count(*) filter (where m.sequence >= c.next_sequence) as beyond
  from memory.conversation_messages m where m.user_id = c.user_id and m.conversation_id = c.id) t
where c.user_id = %(user)s and (
  c.message_count <> t.messages or t.beyond > 0
  -- What has expired from the beginning is still among the totals.
  or c.total_characters < t.characters or c.total_tokens < t.tokens
  or c.total_characters - c.summarized_characters <> t.open_characters
  or c.total_tokens - c.summarized_tokens <> t.open_tokens
  or least(c.summarized_characters, c.summarized_tokens) < 0)
"""

_SUMMARIES = b"""
select s.level, s.number, s.covered_characters, t.characters, s.covered_tokens, t.tokens
from memory.conversation_summaries s join memory.conversations c on c.user_id = s.user_id and c.id = s.conversation_id
cross join lateral (
  select coalesce(sum(m.characters), 0) as characters, coalesce(sum(m.tokens), 0) as tokens
  from memory.conversation_messages m
  where m.user_id = s.user_id and m.conversation_id = s.conversation_id
    and m.sequence between s.from_sequence and s.to_sequence) t
where s.user_id = %(user)s
  -- Of those that end after the first message which is kept; what has expired from the beginning still counts.
  and s.from_sequence >= (select min(m.sequence) from memory.conversation_messages m
                          where m.user_id = s.user_id and m.conversation_id = s.conversation_id)
  and (s.covered_characters, s.covered_tokens) is distinct from (t.characters, t.tokens)
"""

_BLOCKS = b"""
with events as (
  select m.user_id, m.conversation_id, m.sequence, m.final,
         lag(m.final) over (partition by m.user_id, m.conversation_id order by m.sequence) as answered
  from memory.conversation_messages m where m.user_id = %(user)s and (m.role = 'user' or m.final)),
counted as (
  select m.user_id, m.conversation_id, m.sequence / 1024 as block, sum(m.characters) as characters,
         sum(m.tokens) as tokens, count(*) filter (where e.final and not e.answered) as turns
  from memory.conversation_messages m
  join memory.conversations c on c.user_id = m.user_id and c.id = m.conversation_id
  left join events e on e.user_id = m.user_id and e.conversation_id = m.conversation_id and e.sequence = m.sequence
  where m.user_id = %(user)s and m.sequence / 1024 < c.next_sequence / 1024
  group by 1, 2, 3)
select k.*, b.* from counted k
full join (select * from memory.message_blocks where user_id = %(user)s) b
  on b.user_id = k.user_id and b.conversation_id = k.conversation_id and b.block = k.block
where (coalesce(k.characters, 0), coalesce(k.tokens, 0), coalesce(k.turns, 0))
  <> (coalesce(b.characters, 0), coalesce(b.tokens, 0), coalesce(b.turns, 0))
"""


def assert_counted(connection: psycopg.Connection[Any], user_id: str) -> None:
    """Assert that a conversation's counters, its segments' coverage and its blocks match its rows."""
    with connection.transaction():
        # Without statistics the planner expects a single row, and would compare each two.
        connection.execute("set local enable_nestloop = off")
        for statement in (_CONVERSATIONS, _SUMMARIES, _BLOCKS):
            wrong = connection.execute(statement, {"user": user_id}).fetchall()
            assert not wrong, wrong
        connection.execute("set local enable_nestloop = on")
