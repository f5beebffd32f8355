"""Profiles for the inspector's tests: what users said, as a board's writer found it."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import psycopg
from langchain_core.messages import HumanMessage

from langchain_supabase_memory import SupabaseMemory

_ADD = b"""
select memory_private.add_profile_items(c, %s, 'model') from memory.conversations c where user_id = %s and thread_id = %s
"""


def learn(
    server: SupabaseMemory,
    conn_string: str,
    user_id: str,
    quote: str,
    value: str,
    *,
    thread: str = "t",
    at: datetime | None = None,
    **found: Any,
) -> None:
    """Have a user say something in a conversation, and have it found: by default a lasting preference."""
    conversation = server.for_user(user_id).conversation(thread)
    conversation.append([HumanMessage(quote)], created_at=None if at is None else [at])
    (message,) = conversation.read(last=1, columns=())
    row = {
        "kind": "preference",
        "subject": value,
        "value": value,
        "durable": True,
        "sequence": message.sequence,
        "quote": quote,
    }
    with psycopg.connect(conn_string, autocommit=True) as connection:
        added = connection.execute(_ADD, [json.dumps([row | found]), user_id, thread]).fetchone()
    assert added == (1,), quote


def fill(conn_string: str, user_id: str, count: int, state: str) -> None:
    """Give a user many items, each with a quote."""
    ended = "now()" if state == "superseded" else "null"
    with psycopg.connect(conn_string, autocommit=True) as connection:
        connection.execute(
            "with c as (insert into memory.conversations (user_id, thread_id) values (%(u)s, 'long-' || %(s)s) returning id),"
            " made as (insert into memory.profile_items (user_id, kind, subject, value, chain, digest, basis, state, author,"
            " author_kind, evidence, first_seen_at, last_seen_at, held_at, ended_at)"
            " select %(u)s, (array['fact', 'preference', 'instruction'])[1 + n %% 3], %(s)s || ' ' || n || repeat(' s', 100),"
            f" %(s)s || ' value ' || n || repeat(' v', 800), %(s)s || n, %(s)s || n, 'stated', %(s)s, 'model', 'model', 1,"
            f" now() - n * interval '1 hour', now() - (n / 7) * interval '1 hour', now() - interval '1 year', {ended}"
            " from generate_series(1, %(n)s) n returning id)"
            " insert into memory.profile_evidence (user_id, item_id, conversation_id, message_id, sequence, place, quote, said_at)"
            " select %(u)s, made.id, c.id, 'm', 0, 1, 'It is so.', now() from made, c".encode(),
            {"u": user_id, "s": state, "n": count},
        )
