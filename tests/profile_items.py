"""Items of a user's profile, written as the writer of a board writes them."""

from __future__ import annotations

import json
from typing import Any

import psycopg

_SEQUENCE = """
select m.sequence from memory.conversation_messages m
join memory.conversations c on c.user_id = m.user_id and c.id = m.conversation_id
where m.user_id = %s and c.agent_id = 'default' and c.thread_id = %s and m.message_id = %s
"""
_ADD = """
select memory_private.add_profile_items(c, %s, 'model') from memory.conversations c
where c.user_id = %s and c.agent_id = 'default' and c.thread_id = %s
"""


def add_item(
    sql: psycopg.Connection[Any],
    user_id: str,
    message_id: str,
    value: str,
    *,
    thread_id: str = "t",
    subject: str | None = None,
    **more: Any,
) -> None:
    """Add what a message says, durable unless `durable=False`; the value must stand in it, word for word."""
    place = sql.execute(_SEQUENCE, [user_id, thread_id, message_id]).fetchone()
    assert place is not None
    item = {"kind": "fact", "subject": subject or value, "value": value, "durable": True, "quote": value, **more}
    added = sql.execute(_ADD, [json.dumps([{**item, "sequence": place[0]}]), user_id, thread_id]).fetchone()
    assert added == (1,)
