"""The first view of each screen reads the same number of rows with many conversations as with few."""

from __future__ import annotations

import httpx
import psycopg
import pytest
from langchain_core.messages import AIMessage, HumanMessage

from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.inspector import application, screen_list
from tests.counting import CountingTransport
from tests.inspector.visiting import ADDRESS, asked_of
from tests.services.postgres import Cluster

SCREENS = {screen.name: (screen.path, asked_of(screen, "long")) for screen in screen_list.SCREENS if screen.label}
SCREENS["recall"][1]["thread"] = "long"
SCREENS["spaces"][1]["user"] = SCREENS["profile"][1]["user"] = SCREENS["topics"][1]["user"] = "u"
SCREENS["insights"][1].update(user="u", advice="1")
FEW, MANY = 100, 5_000
USERS = 25 * 11
"""What the list of users reads beside: of each user on a page, the newest conversations up to eleven."""

# Conversations of others, each with messages that are due. A user's own list reads that user's conversations: an index
# by what was changed last would cost each append its heap-only update.
_MORE = b"""
with conversation as (
  insert into memory.conversations (user_id, thread_id)
  select 'user-' || t %% 70, 'short-' || t from generate_series(%s::int, %s::int) t
  returning user_id, id)
insert into memory.conversation_messages (
  user_id, conversation_id, sequence, message_id, role, text, characters, tokens, payload)
select user_id, id, n, 'm' || n, 'user', '', 0, 0, '{"type": "human", "data": {}}' from conversation, generate_series(0, 3) n
"""


@pytest.fixture(scope="module")
def conn_string(cluster: Cluster) -> str:
    address = cluster.conn_string(cluster.migrated_database(spaces=True))
    with SupabaseMemory.from_conn_string(address, user_id="u") as memory:
        memory.spaces.create("Studio")
        long = memory.conversation("long")
        for turn in range(60):
            asked = HumanMessage(f"Which kiln is number {turn}?", id=f"q{turn}")
            pack = long.context(asked)
            long.append([asked, AIMessage(f"The blue one, number {turn}.", id=f"a{turn}")], pack=pack)
        long.summaries.make()
        long.index()
        memory.topics.update()
        long.board.revise()
    return address


async def _read(conn_string: str, user_id: str | None) -> dict[str, int]:
    """The rows and entries of indexes that each screen reads."""
    found = {}
    with psycopg.connect(conn_string, autocommit=True) as connection:
        connection.execute("analyze")
        transport = CountingTransport(connection)
        app = application(SupabaseMemory(transport, user_id=user_id))
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=ADDRESS) as http:
            for name, (path, asked) in SCREENS.items():
                given = {**asked, **({} if user_id else {"user": "u"})} if "thread" in asked else asked
                await http.get(path, params=given)
                transport.taken()
                answer = await http.get(path, params=given)
                assert answer.status_code == 200, (name, answer.text[-500:])
                found[name] = transport.taken().read
    return found


async def test_no_screen_reads_more_where_there_are_more_conversations(conn_string: str) -> None:
    def fill(first: int, last: int) -> None:
        with psycopg.connect(conn_string, autocommit=True) as connection:
            connection.execute(_MORE, [first, last])

    fill(1, FEW)
    few = {whose: await _read(conn_string, whose) for whose in ("u", None)}
    fill(FEW + 1, MANY)
    many = {whose: await _read(conn_string, whose) for whose in ("u", None)}
    assert all(reads > 0 for of in few.values() for reads in of.values())
    dearer = {
        (whose, name): (few[whose][name], reads)
        for whose, of in many.items()
        for name, reads in of.items()
        if reads > 1.1 * few[whose][name] + (USERS if (whose, name) == (None, "conversations") else 20)
    }
    assert dearer == {}
