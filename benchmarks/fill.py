"""Write conversations of any length and number by COPY, with every row and counter as an append leaves them.

python -m benchmarks.fill CONN_STRING --messages 1000000
python -m benchmarks.fill CONN_STRING --messages 2 --conversations 1000000 --users 10000 --due
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import psycopg

from benchmarks import work
from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.language.messages import codec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.embeddings import Embeddings

    from benchmarks.services import Site

MESSAGES_PER_SEGMENT: Final = 10
"""About the number of messages in a segment under the default policy, at 440 characters on average."""

KEPT: Final = 8
"""The minimum number of messages without a summary."""

_APART: Final = timedelta(minutes=6)
"""The time between two conversations: lists are read by the hour."""

_PERIOD: Final = 1000
"""The number of messages after which the texts repeat."""

_COPY_CONVERSATIONS: Final = b"""
copy memory.conversations (
  user_id, id, thread_id, next_sequence, message_count, total_characters, total_tokens, indexed_through, created_at,
  updated_at) from stdin
"""
MESSAGE_COLUMNS: Final = "user_id, conversation_id, sequence, message_id, role, text, characters, tokens, payload"
"""The columns that an append writes of each message; all others have defaults."""

_COPY_MESSAGES: Final = f"copy memory.conversation_messages ({MESSAGE_COLUMNS}) from stdin"
_BLOCKS: Final = b"""
select count(memory_private.update_block_counts(c.user_id, c.id, '{(,)}', 1, c.next_sequence))
from memory.conversations c
where starts_with(c.thread_id, %(name)s) and c.next_sequence >= 1024
"""
_DUE: Final = """
insert into memory_private.work (user_id, conversation_id)
select c.user_id, c.id from memory.conversations c where starts_with(c.thread_id, %(name)s);
insert into memory_private.owners (user_id, turn_at, due_at)
select distinct w.user_id, now(), now() from memory_private.work w on conflict do nothing
"""
_FLOOR: Final = """
insert into bench.floor
select m.user_id, m.conversation_id, m.sequence, m.message_id, m.role, m.text, m.characters, m.tokens,
       m.created_at, m.updated_at, m.metadata, m.images, m.payload, m.final
from memory.conversation_messages m join memory.conversations c on c.id = m.conversation_id
where c.user_id = 'bench' and m.user_id = 'bench' and starts_with(c.thread_id, %(name)s)
"""
_SUMMARIES: Final = """
insert into memory.conversation_summaries (
  user_id, conversation_id, number, from_sequence, to_sequence, message_ids, built_on, content, characters, tokens,
  covered_characters, covered_tokens, model)
select 'bench', c.id, m.number, m.last - %(every)s + 1, m.last,
       array(select 'm-' || n from generate_series(m.last - %(every)s + 1, m.last) n),
       nullif(m.number - 1, 0), %(summary)s, length(%(summary)s), length(%(summary)s) / 4, m.characters,
       m.tokens, 'bench'
from memory.conversations c,
     lateral (select o.sequence / %(every)s + 1 as number, max(o.sequence) as last, sum(o.tokens) as tokens,
                     sum(o.characters) as characters
              from memory.conversation_messages o
              where o.user_id = 'bench' and o.conversation_id = c.id
                and o.sequence < (c.next_sequence - %(kept)s) / %(every)s * %(every)s
              group by 1) m
where c.user_id = 'bench' and starts_with(c.thread_id, %(name)s)
"""
_COVERED: Final = """
update memory.conversations c
   set summarized_through = s.through, summarized_characters = s.characters, summarized_tokens = s.tokens
from (select conversation_id, max(to_sequence) as through, sum(covered_characters) as characters,
             sum(covered_tokens) as tokens
      from memory.conversation_summaries where user_id = 'bench' group by conversation_id) s
where c.user_id = 'bench' and c.id = s.conversation_id and starts_with(c.thread_id, %(name)s)
"""


@dataclass(frozen=True)
class Filling:
    """The conversations to write.

    Attributes:
        name: The prefix of the thread names, before their numbers; no other thread may start with it.
        messages: The number of messages in each conversation.
        conversations: The total number of conversations.
        user: Their owner.
        users: The number of users that share them; several are named `bench-0`, `bench-1` and so on.
        unindexed: The number of the newest messages of each that are not indexed yet; by default 0.
        due: Whether each has due work.
    """

    name: str = "filled-"
    messages: int = 1000
    conversations: int = 1
    user: str = "bench"
    users: int = 1
    unindexed: int | None = None
    due: bool = False

    def owner(self, number: int) -> str:
        """Return the owner of a conversation."""
        return self.user if self.users == 1 else f"{self.user}-{number % self.users}"


def fill(conn_string: str, filling: Filling) -> None:
    """Write conversations by COPY.

    Args:
        conn_string: A migrated database, as a role that may disable triggers for a session.
        filling: The conversations to write.
    """
    texts, now = _Texts(), datetime.now(UTC)
    ids = [uuid4() for _ in range(filling.conversations)]
    indexed = -1 if filling.unindexed is None else filling.messages - filling.unindexed - 1
    with psycopg.connect(conn_string) as connection, connection.cursor() as cursor:
        cursor.execute("set session_replication_role = replica")  # skips a million foreign key checks
        with cursor.copy(_COPY_CONVERSATIONS) as copy:
            characters, tokens = texts.through(filling.messages)
            for number, id_ in enumerate(ids):
                at = now - (filling.conversations - 1 - number) * _APART
                copy.write(
                    f"{filling.owner(number)}\t{id_}\t{filling.name}{number}\t{filling.messages}\t{filling.messages}"
                    f"\t{characters}\t{tokens}\t{indexed}\t{at}\t{at}\n"
                )
        with cursor.copy(_COPY_MESSAGES.encode()) as copy:
            for number, id_ in enumerate(ids):
                start = f"{filling.owner(number)}\t{id_}\t"
                for first in range(0, filling.messages, _PERIOD):
                    last = min(first + _PERIOD, filling.messages)
                    copy.write("".join(texts.row(start, place) for place in range(first, last)))
        cursor.execute(_BLOCKS, {"name": filling.name})
        if filling.due:
            for statement in _DUE.split(";"):
                cursor.execute(statement.encode(), {"name": filling.name} if "%(name)s" in statement else None)


class _Texts:
    """Repeating texts: every column of a message except its position."""

    def __init__(self) -> None:
        said = [message for _ in range(_PERIOD // 2) for message in work.messages()]
        for message in said:
            message.id = "@id"
        rows = [codec.to_row(message) for message in said]
        payloads = [
            _escaped(json.dumps(row["payload"], ensure_ascii=False, separators=(",", ":"))).split("@id") for row in rows
        ]
        self._parts = [
            (f"{row['role']}\t{_escaped(row['text'])}\t{row['characters']}\t{row['tokens']}\t", payload)
            for row, payload in zip(rows, payloads, strict=True)
        ]
        self._characters = [0, *accumulate(row["characters"] for row in rows)]
        self._tokens = [0, *accumulate(row["tokens"] for row in rows)]

    def row(self, start: str, place: int) -> str:
        said, payload = self._parts[place % _PERIOD]
        id_ = f"m-{place}"
        return f"{start}{place}\t{id_}\t{said}{id_.join(payload)}\n"

    def through(self, messages: int) -> tuple[int, int]:
        """Return the characters and tokens of the first `messages` messages."""
        periods, rest = divmod(messages, _PERIOD)
        return (
            periods * self._characters[-1] + self._characters[rest],
            periods * self._tokens[-1] + self._tokens[rest],
        )


def _escaped(text: str) -> str:
    """Escape text for COPY."""
    return text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")


def messages(site: Site, name: str, size: int, *, copies: int = 1, floor: bool = False) -> list[str]:
    """Write conversations `name0`, `name1` and so on of the user `bench`.

    Args:
        site: The project.
        name: The prefix of the thread names; no other thread may start with it.
        size: The number of messages in each.
        copies: The number of conversations.
        floor: Whether `bench.floor` gets the same rows.

    Returns:
        Their threads.
    """
    fill(site.superuser, Filling(name, size, copies))
    if floor:
        _execute(site, [_FLOOR], {"name": name})
    return [f"{name}{copy}" for copy in range(copies)]


@dataclass(frozen=True)
class Crowd:
    """Many owners, each with ten conversations of ten messages of about 80 characters, one of which is due.

    Attributes:
        messages: The total number of messages, a multiple of a thousand.
        words: The number of messages, those of the first owners, that have a text index.
        vectors: The number of these that also have vectors.
        name: The prefix of each owner's threads, before their numbers.
    """

    messages: int
    words: int = 0
    vectors: int = 0
    name: str = "talk-"

    @property
    def owners(self) -> int:
        """The number of owners: `owner-0`, `owner-1` and so on."""
        return self.messages // EACH**2


EACH: Final = 10
"""The messages of a conversation of a crowd, the conversations of an owner, and the owners with original texts."""


def crowd(conn_string: str, wanted: Crowd, embedder: Embeddings) -> None:
    """Write a crowd with SQL that generates the rows on the server, at about 40 microseconds a message.

    The messages of the first ten owners are indexed like any conversation; all others repeat the same hundred messages
    and get copies of the resulting rows.

    Args:
        conn_string: A migrated, empty database, as a role that may disable triggers for a session.
        wanted: The crowd.
        embedder: Creates the vectors.
    """
    with psycopg.connect(conn_string, autocommit=True) as connection:
        connection.execute("set session_replication_role = replica")
        connection.execute("set synchronous_commit = off")
        connection.execute(_SAID)
        with connection.cursor() as cursor, cursor.copy(b"copy said from stdin") as copy:
            copy.write("".join(_short(place) for place in range(EACH**3)))
        values = {"name": wanted.name, "first": 0, "users": EACH, "words": 0, "vectors": 0}
        for statement in (_CROWD, _CROWD_SAYS):
            connection.execute(statement.encode(), values)
        with SupabaseMemory.from_conn_string(conn_string, embeddings=embedder, model=None) as memory:
            for number in range(EACH**2):
                memory.for_user(f"owner-{number // EACH}").conversation(f"{wanted.name}{number % EACH}").index()
        values["first"], values["users"] = EACH, wanted.owners - EACH
        values["words"], values["vectors"] = wanted.words // EACH**2 - EACH, wanted.vectors // EACH**2 - EACH
        connection.execute(b"truncate memory_private.work, memory_private.owners cascade")
        for statement in (_CROWD, _CROWD_SAYS, *(_copied(connection, *each) for each in _COPIED), *_DUE_OF_CROWD):
            connection.execute(statement.encode(), values)


# All owners' first conversations, then their second ones and so on: rows of one owner are never adjacent.
_OF_CROWD: Final = """
generate_series(0, %(users)s::bigint * {each} - 1) i
cross join lateral (select %(first)s + i %% %(users)s as u, i / %(users)s as c) n
cross join lateral (select 'owner-' || n.u as user_id, md5(n.u || '-' || n.c)::uuid as id) o
"""
_SAID: Final = b"""
create temporary table said (
  place integer primary key, role text, text text, characters integer, tokens integer, head text, tail text)
"""
_CROWD: Final = f"""
insert into memory.conversations (
  user_id, id, thread_id, next_sequence, message_count, total_characters, total_tokens, indexed_through, chunk_count,
  unembedded_from, speakers, signals, language)
select o.user_id, o.id, %(name)s || n.c, {EACH}, {EACH}, s.characters, s.tokens,
       case when p.is_found then t.indexed_through else -1 end, case when p.is_found then t.chunk_count else 0 end,
       case when p.is_found and i %% %(users)s >= %(vectors)s then 0 end,
       case when p.is_found then t.speakers else '{{}}' end, case when p.is_found then t.signals else 0 end,
       case when p.is_found then t.language end
from {_OF_CROWD.format(each=EACH)}
cross join lateral (select i %% %(users)s < %(words)s as is_found) p
join (select place / {EACH} as pattern, sum(characters) as characters, sum(tokens) as tokens from said group by 1) s
  on s.pattern = n.u %% {EACH} * {EACH} + n.c
left join memory.conversations t
  on %(first)s > 0 and t.user_id = 'owner-' || n.u %% {EACH} and t.thread_id = %(name)s || n.c
"""
_CROWD_SAYS: Final = f"""
insert into memory.conversation_messages ({MESSAGE_COLUMNS})
select o.user_id, o.id, m.sequence, 'm-' || m.sequence, s.role, s.text, s.characters, s.tokens,
       (s.head || 'm-' || m.sequence || s.tail)::json
from {_OF_CROWD.format(each=EACH)}
cross join generate_series(0, {EACH - 1}) m (sequence)
join said s on s.place = (n.u %% {EACH} * {EACH} + n.c) * {EACH} + m.sequence
"""
_COPIED: Final = (
    ("memory.working_memory_chunks", "words"),
    ("memory.chunk_postings", "words"),
    ("memory.chunk_embeddings", "vectors"),
)
_DUE_OF_CROWD: Final = (
    """insert into memory_private.work (user_id, conversation_id)
       select c.user_id, c.id from memory.conversations c where c.thread_id = %(name)s || 0""",
    """insert into memory_private.owners (user_id, turn_at, due_at)
       select w.user_id, now(), now() from memory_private.work w""",
)


def _copied(connection: psycopg.Connection[Any], table: str, part: str) -> str:
    """Return a statement that copies the rows of the original messages to each owner of this part of a crowd."""
    columns = _columns(connection, table)
    made = {"user_id": "o.user_id", "conversation_id": "o.id", "id": "gen_random_uuid()"}
    source = _OF_CROWD.format(each=EACH).replace("%(users)s", f"greatest(%({part})s, 0)")
    pattern = f"n.u %% {EACH}"
    return f"""
insert into {table} ({", ".join(columns)})
select {", ".join(made.get(each, f"t.{each}") for each in columns)}
from {source}
join {table} t
  on t.user_id = 'owner-' || {pattern} and t.conversation_id = md5({pattern} || '-' || n.c)::uuid"""


def _columns(connection: psycopg.Connection[Any], table: str) -> list[str]:
    """Return the columns that a row is written with."""
    rows = connection.execute(
        "select attname from pg_attribute where attrelid = %s::regclass and attnum > 0 and attgenerated = ''"
        " and not attisdropped order by attnum",
        [table],
    )
    return [name for (name,) in rows]


def _short(place: int) -> str:
    """Return a row of a crowd's message for COPY."""
    message = work.short(place)
    message.id = "@id"
    row = codec.to_row(message)
    head, tail = _escaped(json.dumps(row["payload"], ensure_ascii=False, separators=(",", ":"))).split("@id")
    return f"{place}\t{row['role']}\t{_escaped(row['text'])}\t{row['characters']}\t{row['tokens']}\t{head}\t{tail}\n"


def summaries(site: Site, name: str) -> None:
    """Write segments over all but the newest messages of the conversations with this name prefix."""
    summary = " ".join(work.text() for _ in range(20))[:1500]
    values = {"name": name, "every": MESSAGES_PER_SEGMENT, "kept": KEPT, "summary": summary}
    _execute(site, [_SUMMARIES, _COVERED], values)


def copies(conn_string: str, source: str, owners: Sequence[str]) -> None:
    """Give other owners what one owner has, with its index and summaries; nothing of it may be due.

    Args:
        conn_string: A migrated database, as a role that may disable triggers for a session.
        source: The owner to copy from.
        owners: The others; each one's thread has the owner's name.
    """
    with psycopg.connect(conn_string, autocommit=True) as connection:
        connection.execute("set session_replication_role = replica")
        for (table,) in connection.execute(_OF_CONVERSATIONS).fetchall():
            columns = _columns(connection, table)
            made = {"user_id": "o.name", "conversation_id": "md5(o.name || t.conversation_id)::uuid"}
            if table == "memory.conversations":
                made |= {"id": "md5(o.name || t.id)::uuid", "thread_id": "o.name"}
            statement = f"""
insert into {table} ({", ".join(columns)})
select {", ".join(made.get(each, f"t.{each}") for each in columns)}
from {table} t cross join unnest(%s::text[]) o (name) where t.user_id = %s"""
            connection.execute(statement.encode(), [list(owners), source])


_OF_CONVERSATIONS: Final = b"""
select c.oid::regclass::text from pg_class c
where c.relkind in ('r', 'p') and not c.relispartition
  and c.relnamespace in ('memory'::regnamespace, 'memory_private'::regnamespace)
  and (c.oid = 'memory.conversations'::regclass or exists (
    select from pg_attribute a where a.attrelid = c.oid and a.attname = 'conversation_id' and a.attnotnull))
"""


def vacuum(site: Site) -> None:
    """Do the work of autovacuum, and of a checkpoint that would otherwise run during the measurements."""
    site.execute("vacuum analyze")
    site.cluster.execute("checkpoint", superuser=True)


def _execute(site: Site, statements: list[str], values: dict[str, Any]) -> None:
    with psycopg.connect(site.superuser, autocommit=True) as connection:
        connection.execute("set session_replication_role = replica")
        for statement in statements:
            connection.execute(statement.encode(), values)


def main() -> None:
    default = Filling()
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fill", description="Fill a migrated database by COPY.")
    parser.add_argument("conn_string", help="connection string of a role that may disable triggers for a session")
    parser.add_argument("--name", default=default.name, help="prefix of the thread ids")
    parser.add_argument("--messages", type=int, default=default.messages, help="messages per conversation")
    parser.add_argument(
        "--conversations", type=int, default=default.conversations, help="total number of conversations"
    )
    parser.add_argument(
        "--user", default=default.user, help="owner of the conversations; with --users the prefix of the owners"
    )
    parser.add_argument(
        "--users", type=int, default=default.users, help="number of owners that share the conversations"
    )
    parser.add_argument("--unindexed", type=int, metavar="N", help="mark all but the newest N messages as indexed")
    parser.add_argument("--due", action="store_true", help="mark every conversation as due")
    given = vars(parser.parse_args())
    conn_string = given.pop("conn_string")
    begun = time.perf_counter()
    fill(conn_string, Filling(**given))
    seconds = time.perf_counter() - begun
    print(f"{given['conversations']:,} conversations of {given['messages']:,} messages in {seconds:.0f} s")


if __name__ == "__main__":
    main()
