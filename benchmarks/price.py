"""Measure what signals, topics, a profile and spaces cost an append, the index and a load: the same calls in a copy of
the database from which they were taken out, in interleaved rounds.

Times are of the processor, of the server's process and the client's together, which other load of the machine hardly
affects. A ratio is the median of the ratios of all rounds.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final, cast

import psycopg

from benchmarks import fill, work
from benchmarks.harness import WARM_UP, Table, rotated, verdict
from langchain_supabase_memory import MemoryConfig, SupabaseMemory
from langchain_supabase_memory.adapters.schema.migrate import migrate
from langchain_supabase_memory.adapters.transports.endpoint_info import EndpointInfo
from langchain_supabase_memory.adapters.transports.response_shapes import validate
from langchain_supabase_memory.effects import Call
from langchain_supabase_memory.operations import topics
from langchain_supabase_memory.operations.recall.indexing import index_messages
from langchain_supabase_memory.settings import DEFAULT_CHUNKS
from tests.verbs import OF_A_CONVERSATION, OF_A_DATABASE, Subject

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from benchmarks.services import Lab, Site
    from langchain_supabase_memory.adapters.transports.base import Transport
    from langchain_supabase_memory.memory.conversation import Conversation

INSIGHTS_TITLE: Final = "What signals, topics and usage cost"
PROFILE_TITLE: Final = "What a profile costs"
SPACES_TITLE: Final = "What spaces cost a signed-in user, x a database without"
BOUND: Final = 1.03
READ_BOUND: Final = 1.5
WRITE_BOUND: Final = 1.05
SPACES: Final = (0, 1, 10)
MESSAGES: Final = 100
CONVERSATIONS: Final = 60
_THREAD: Final = "price-0"
_AGAIN: Final = "again"
ITEMS: Final = 20
"""How many items a full profile holds."""

_WRITES: Final = ("append a turn", "store a question and load its pack", "index a turn", "commit a turn's chunks")
_READS: Final = (
    "read the last 20",
    "context pack",
    "recall",
    "turns, the last 10",
    "board",
    "conversations, a page of 50",
)

_TAKEN_OUT: Final = """
create or replace function memory_private.refused_purposes(p_user_id text) returns text[]
  language sql immutable set search_path = '' as $$ select '{signals,tone,topics}'::text[] $$;
drop trigger topic_stretches_lost on memory.topic_stretches;
drop trigger topic_stretches_counted on memory.topic_stretches;
drop trigger profile_evidence_lost on memory.profile_evidence;
drop trigger profile_evidence_contradicted on memory.profile_evidence;
drop index memory.conversations_signals_idx, memory.working_memory_chunks_signals_idx;
"""
"""Takes signals, topics and the profile out of an append and of the commit of chunks. Usage is in neither."""


_SIGN_IN: Final = b"select set_config('request.jwt.claims', %s, false), set_config('role', 'authenticated', false)"


@dataclass
class _Session:
    """Performs each call as one statement of one connection, so that its processor's time is known.

    Attributes:
        connection: In autocommit mode; who is signed in was set before.
    """

    connection: psycopg.Connection[Any]
    acts_as_user: bool = True
    identity_is_callback: bool = False
    endpoint: EndpointInfo = field(default_factory=lambda: EndpointInfo("postgres", None))

    def perform(self, call: Call) -> Any:
        arguments = [
            json.dumps(value, ensure_ascii=False) if isinstance(value, (list, dict)) else value
            for value in call.arguments.values()
        ]
        given = ", ".join(f"{name} => %s" for name in call.arguments)
        row = self.connection.execute(f"select public.{call.function}({given})".encode(), arguments).fetchone()
        assert row is not None
        return validate(call.function, row[0])

    async def aperform(self, call: Call) -> Any:
        return self.perform(call)

    def milliseconds(self) -> float:
        """Return how long this process and the connection's have used a processor."""
        clock = Path(f"/proc/{self.connection.info.backend_pid}/schedstat")
        return (time.process_time_ns() + int(clock.read_text().split()[0])) / 1e6


@dataclass(frozen=True)
class _Owner:
    """An owner.

    Attributes:
        session: What calls are performed over.
        memory: Theirs.
    """

    session: _Session
    memory: SupabaseMemory


@dataclass(frozen=True)
class _Contestant:
    """A call that is timed, after what is not.

    Attributes:
        session: What it is performed over.
        prepare: Makes what the call needs.
        do: The call.
    """

    session: _Session
    prepare: Callable[[int], Any]
    do: Callable[[Any], object]


def _contestant(owner: _Owner, verb: str) -> _Contestant:
    """Return a verb of the owner's first conversation."""
    memory = owner.memory
    conversation = memory.conversation(_THREAD)
    of = partial(_Contestant, owner.session)
    if verb == "index a turn":
        return of(partial(_unindexed, conversation, 1), lambda _: conversation.index())
    if verb == "index ten turns":
        return of(partial(_unindexed, conversation, 10), lambda _: conversation.index())
    if verb == "commit a turn's chunks":
        return of(partial(_uncommitted, memory), lambda call: call.perform(memory._services))
    if verb in OF_A_DATABASE:
        return of(lambda n: n, partial(OF_A_DATABASE[verb], memory))
    return of(lambda n: n, partial(OF_A_CONVERSATION[verb], Subject(memory, _THREAD, MESSAGES)))


def _unindexed(conversation: Conversation, turns: int, number: int) -> None:
    """Store turns, after topics were found for those before, so that the next index marks their stretch as due."""
    conversation._services.run(topics.assign(conversation._key, embedder=None))
    conversation.append([work.short(place) for place in range(2 * number, 2 * (number + turns))])


def _uncommitted(memory: SupabaseMemory, number: int) -> Call:
    """Store a turn, and return the call that commits its chunks."""
    conversation = memory.conversation(_THREAD)
    _unindexed(conversation, 1, number)
    flow = index_messages(conversation._key, chunking=DEFAULT_CHUNKS, embedder=None)
    step: Any = next(flow)
    while not (isinstance(step, Call) and step.function == "memory_commit_chunks"):
        step = flow.send(step.perform(memory._services))
    flow.close()
    return step


async def run(lab: Lab) -> list[Table]:
    return [_insights(lab), _profile(lab), _spaces(lab)]


def _insights(lab: Lab) -> Table:
    """Compare verbs in a database as it is with one from which signals, topics and the profile were taken out."""
    sites = {"without": lab.another("off"), "with": lab.another("off")}
    sites["without"].execute(_TAKEN_OUT)
    owners = {name: _owner(site, "bench") for name, site in sites.items()}
    owners[_AGAIN] = _owner(sites["without"], _AGAIN)
    for owner in owners.values():
        _begin(owner.memory)
    for site in sites.values():
        fill.vacuum(site)
    rows: list[list[str | float]] = []
    notes: list[str] = []
    for verb in ("append a turn", "context pack", "index a turn", "index ten turns", "commit a turn's chunks"):
        medians, ratios = _paired(lab, {name: _contestant(each, verb) for name, each in owners.items()})
        rows.append([verb, medians["without"], medians["with"], ratios["with"], ratios[_AGAIN]])
        notes.append(verdict(f"{verb}, ratio to a database without", ratios["with"], BOUND))
    notes += [
        "again: another owner of the database without; what differs from 1 is noise",
        "before each index topics were found for what was indexed before, so that each marks a stretch",
    ]
    return Table(INSIGHTS_TITLE, ["", "without, ms", "with, ms", "x without", "x without, again"], rows, notes)


def _profile(lab: Lab) -> Table:
    """Compare a memory without a profile with the same where it is switched on: empty, and full."""
    site = lab.another("off")
    owners = {name: _owner(site, name, profile=name != "off") for name in ("off", "empty", "full")}
    owners[_AGAIN] = _owner(site, _AGAIN)
    for owner in owners.values():
        _begin(owner.memory)
    for number in range(ITEMS):
        owners["full"].memory.profile.remember(
            f"answers in style {number}", kind="preference", subject=f"style {number}"
        )
    fill.vacuum(site)
    rows: list[list[str | float]] = []
    notes: list[str] = []
    for verb in ("append a turn", "context pack"):
        medians, ratios = _paired(lab, {name: _contestant(each, verb) for name, each in owners.items()})
        rows.append(
            [verb, medians["off"], medians["empty"], medians["full"], ratios["empty"], ratios["full"], ratios[_AGAIN]]
        )
        notes += [
            verdict(f"{verb}, with {name} profile, ratio to off", ratios[each], BOUND)
            for each, name in (("empty", "an empty"), ("full", "a full"))
        ]
    columns = ["", "off, ms", "empty, ms", "full, ms", "x off, empty", "x off, full", "x off, again"]
    return Table(PROFILE_TITLE, columns, rows, [*notes, f"full: {ITEMS} items, all of which stand in the prompt"])


def _spaces(lab: Lab) -> Table:
    """Compare a database with spaces, for users who are in none, one and ten, with one without."""
    plain, shared = lab.another("off"), lab.another("off")
    migrate(shared.conn_string, spaces=True)
    owners = {"without": _owner(plain, "user-0", signed_in=True), _AGAIN: _owner(plain, _AGAIN, signed_in=True)}
    for name in ("user-0", _AGAIN):
        _begin(plain.direct(name))
    for number in SPACES:
        server = shared.direct(f"user-{number}")
        for place in range(number):
            server.spaces.create(f"team {place}")
        _begin(server)
        owners[f"in {number}"] = _owner(shared, f"user-{number}", signed_in=True)
    for site in (plain, shared):
        fill.vacuum(site)
    rows: list[list[str | float]] = []
    notes: list[str] = []
    for verb in (*_WRITES, *_READS):
        medians, ratios = _paired(lab, {name: _contestant(each, verb) for name, each in owners.items()})
        some = [ratios[f"in {number}"] for number in SPACES]
        rows.append([verb, medians["without"], *some, ratios[_AGAIN]])
        bound = WRITE_BOUND if verb in _WRITES else READ_BOUND
        notes.append(verdict(f"{verb}, the most of 0, 1 and 10 spaces", max(some), bound))
    columns = ["", "without, ms", *[f"x, in {number}" for number in SPACES], "x without, again"]
    return Table(SPACES_TITLE, columns, rows, notes)


def _owner(site: Site, user_id: str, *, signed_in: bool = False, profile: bool = False) -> _Owner:
    """Return an owner over a connection of its own, with a server's rights or signed in."""
    connection = site.stack.enter_context(psycopg.connect(site.conn_string, autocommit=True))
    if signed_in:
        claims = json.dumps({"role": "authenticated", "sub": user_id})
        connection.execute(_SIGN_IN, [claims])
    session = _Session(connection)
    config = MemoryConfig(profile=profile)
    return _Owner(session, SupabaseMemory(cast("Transport", session), user_id=user_id, model=None, config=config))


def _begin(memory: SupabaseMemory) -> None:
    """Store an owner's conversations, the first of them indexed."""
    for number in range(CONVERSATIONS):
        said = [work.short(place) for place in range(2 if number else MESSAGES)]
        memory.conversation(f"price-{number}").append(said)
    memory.conversation(_THREAD).index()


def _paired(lab: Lab, contestants: Mapping[str, _Contestant]) -> tuple[dict[str, float], dict[str, float]]:
    """Return each contestant's median in milliseconds, and the median of its ratios to the first in the same round."""
    times: dict[str, list[float]] = {name: [] for name in contestants}
    rounds, seconds = (40, 3) if lab.quick else (600, 30)
    end = time.perf_counter() + seconds
    for number in range(-WARM_UP, rounds):
        if number > 2 and time.perf_counter() > end:
            break
        for name in rotated(list(contestants), number + WARM_UP):
            one = contestants[name]
            ready = one.prepare(number + WARM_UP)
            begun = one.session.milliseconds()
            one.do(ready)
            if number >= 0:
                times[name].append(one.session.milliseconds() - begun)
    floor = next(iter(times.values()))
    ratios = {
        name: median(value / least for value, least in zip(values, floor, strict=True))
        for name, values in times.items()
    }
    return {name: median(values) for name, values in times.items()}, ratios
