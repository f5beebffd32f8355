"""Count the round trips of an agent's turn, and the bytes of a message in the tables; nothing is timed."""

from __future__ import annotations

import random
from itertools import cycle
from typing import TYPE_CHECKING, Any, Final

import psycopg
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage

from benchmarks import corpus
from benchmarks.harness import Table, verdict
from langchain_supabase_memory import SupabaseMemory, SupabaseMemoryMiddleware
from langchain_supabase_memory.adapters.schema.migrate import migrate
from tests.chat_models import ScriptedModel

if TYPE_CHECKING:
    from benchmarks.services import Lab, Site

TRIPS_TITLE: Final = "Round trips per agent turn, nothing due"
BYTES_TITLE: Final = "Storage per message, with all indexes"
BYTES_BOUND: Final = 2.6

_NARROW: Final = (
    b"create table public.floor_of_bytes ("
    b"conversation text, through bigint, role text, text text, primary key (conversation, through))"
)
_SIZES: Final = """
select c.relname, pg_table_size(c.oid), pg_indexes_size(c.oid) from pg_class c
where c.relkind = 'r' and c.relnamespace in ('memory'::regnamespace, 'memory_private'::regnamespace)
"""


async def run(lab: Lab) -> list[Table]:
    site = lab.site("off")
    return [await _round_trips(lab, site), await _bytes(lab, site)]


async def _round_trips(lab: Lab, site: Site) -> Table:
    """Count the calls before the model is called, and from its answer to the agent's answer."""
    rows: list[list[str | float]] = []
    notes = []
    for door, memory in (("direct", site.direct()), ("Data API", site.data_api())):
        calls: list[str] = []
        asked: list[int] = []
        aperform = memory._services.transport.aperform

        async def counted(call: Any, aperform: Any = aperform, calls: list[str] = calls) -> Any:
            calls.append(call.function)
            return await aperform(call)

        memory._services.transport.aperform = counted  # type: ignore[method-assign]

        def answer(_: Any, asked: list[int] = asked, calls: list[str] = calls) -> str:
            asked.append(len(calls))
            return "Noted."

        agent: Any = create_agent(ScriptedModel(script=answer), [], middleware=[SupabaseMemoryMiddleware(memory)])
        trips: list[tuple[list[str], list[str]]] = []
        for what in ("glaze", "porcelain", "stoneware", "slip"):  # no reference to an earlier turn
            calls.clear()
            asked.clear()
            settings = {"configurable": {"thread_id": f"trips-{door}"}}
            await agent.ainvoke({"messages": [HumanMessage(f"What is {what} made of?")]}, settings)
            trips.append((calls[: asked[0]], calls[asked[0] :]))
        await memory.aclose()
        for when, place in (("before", 0), ("after", 1)):
            most = max((each[place] for each in trips[1:]), key=len)
            rows.append([f"this package, {door}, {when} the answer", str(len(most)), ", ".join(most)])
            notes.append(verdict(f"{door}, {when} the answer", len(most), 1))
    return Table(TRIPS_TITLE, ["", "round trips", "calls"], rows, [*notes, "the maximum of three turns"])


async def _bytes(lab: Lab, site: Site) -> Table:
    """Store and index a conversation with the memory, and store the same in the narrowest table."""
    number = 1000 if lab.quick else 4000
    database = site.cluster.create_database()
    conn_string = site.cluster.conn_string(database)
    migrate(conn_string)
    said = _said(number)
    empty = _sizes(conn_string)
    async with SupabaseMemory.from_conn_string(conn_string, user_id="bench", model=None) as memory:
        conversation = memory.conversation("bytes")
        for first in range(0, number, 2):  # a few at a time, so that pages of tables and indexes fill as in production
            await conversation.aappend(said[first : first + 2])
        await conversation.aindex()
    with psycopg.connect(conn_string, autocommit=True) as connection:
        connection.execute(_NARROW)
        for place, message in enumerate(said):
            connection.execute(
                "insert into public.floor_of_bytes values ('bytes', %s, %s, %s)", [place, message.type, message.text]
            )
        row = connection.execute("select pg_total_relation_size('public.floor_of_bytes')").fetchone()
    assert row is not None
    grown = {
        name: tuple(now - before for now, before in zip(sizes, empty[name], strict=True))
        for name, sizes in _sizes(conn_string).items()
    }
    text = sum(len(message.text) for message in said)
    rows: list[list[str | float]] = [
        [name, heap / number, index / number, (heap + index) / number]
        for name, (heap, index) in sorted(grown.items(), key=lambda each: -sum(each[1]))
        if (heap + index) / number >= 20
    ]
    tables, indexes = (sum(each[place] for each in grown.values()) for place in (0, 1))
    total = tables + indexes
    rows.append(["this package in total", tables / number, indexes / number, total / number])
    rows.append(["floor: role and text", "", "", row[0] / number])
    notes = [
        verdict("kB per message, indexed, without vectors", total / number / 1000, BYTES_BOUND),
        f"{number:,} messages of {text / number:.0f} characters on average; their words follow Zipf's law",
    ]
    return Table(BYTES_TITLE, ["bytes per message", "table", "indexes", "both"], rows, notes)


def _said(number: int) -> list[Any]:
    """Return messages of one to twenty words, most of them rare."""
    chance = random.Random(7)
    weights = [1 / (rank + 20) for rank in range(30_000)]
    words = cycle([corpus.word(each) for each in chance.choices(range(len(weights)), weights, k=50_021)])
    texts = [" ".join(next(words) for _ in range(chance.randint(2, 22))) for _ in range(number)]
    return [(AIMessage if place % 2 else HumanMessage)(text) for place, text in enumerate(texts)]


def _sizes(conn_string: str) -> dict[str, tuple[int, int]]:
    with psycopg.connect(conn_string) as connection:
        return {name: (table, indexes) for name, table, indexes in connection.execute(_SIZES.encode())}
