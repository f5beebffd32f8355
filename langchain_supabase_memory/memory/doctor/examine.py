"""The doctor's round: everybody is asked once, and each line is judged by its own module."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from langchain_supabase_memory.adapters.transports.door import signing_keys
from langchain_supabase_memory.errors import SupabaseMemoryError
from langchain_supabase_memory.flow import LITTLE, Flow, compute
from langchain_supabase_memory.memory.doctor import database, door, models, work
from langchain_supabase_memory.operations import doctor

if TYPE_CHECKING:
    from collections.abc import Mapping

    from langchain_supabase_memory.memory.core import Core
    from langchain_supabase_memory.memory.doctor.finding import Finding


def examine(memory: Core) -> Flow[list[Finding]]:
    """How a memory stands. Nothing is raised for what is found: it is a finding.

    Args:
        memory: The memory.
    """
    transport = memory.transport
    of_user = transport.acts_as_user
    sent = datetime.now(UTC)
    try:
        found = yield from (doctor.installed() if of_user else doctor.examined(memory.embedder_name))
    except SupabaseMemoryError as error:
        return [*door.failed(transport.door, error), *(yield from _own(memory, {}))]
    received = datetime.now(UTC)
    here = transport.door
    is_distributed = bool(found.get("distributed"))
    findings = [door.address(here), door.kind(here, is_distributed=is_distributed)]
    if of_user:
        findings += [door.of_a_user(), (yield from database.schema(found))]
        return [*findings, *(yield from _signed(memory)), *(yield from _own(memory, {}))]
    findings += [
        door.role(found["role"], sees_all=found["sees_all"]),
        door.clock(_time(found["now"]), sent, received),
        *database.replica(found["replay_lag_seconds"]),
        (yield from database.schema(found["installed"])),
        database.pgvector(
            found["vector"], found["installed"].get("vector_moved_to"), found["indexes"], found["broken_indexes"]
        ),
        database.access(found["added"], found["missing"]),
        *(yield from _signed(memory)),
        *(yield from _own(memory, found)),
    ]
    if memory.embedder_name is not None:
        findings.append(models.vectors(memory.embedder_name, found["vectors"]))
    return [*findings, *_of_work(memory, found),
        database.live(found), database.nodes() if is_distributed else database.sizes(found["tables"]),
            database.vacuum(found["autovacuum"], found["tables"], is_distributed=is_distributed)]  # fmt: skip


def _own(memory: Core, found: Mapping[str, Any]) -> Flow[list[Finding]]:
    """What the memory has of its own, whatever the database says."""
    widths = (found.get("vectors") or {}).get("widths", [])
    embedder = yield from models.embedder(memory, widths, found.get("indexes", []))
    return [models.writer(memory), embedder]


def _signed(memory: Core) -> Flow[list[Finding]]:
    """How tokens are signed, where there is a project to ask."""
    url = memory.transport.door.keys_url
    if url is None:
        return []
    return [door.tokens((yield from compute(partial(signing_keys, url), LITTLE)))]


def _of_work(memory: Core, found: Mapping[str, Any]) -> list[Finding]:
    now, wait = _time(found["now"]), found["wait_seconds"]
    seen, expired = (_time(at) if (at := found[name]) else None for name in ("heartbeat_at", "expired_at"))
    return [
        work.worker(now, seen, wait),
        work.lag(wait, has_run=seen is not None),
        work.dead(found["dead"]),
        work.retention(memory.settings.retention, now, expired),
    ]


def _time(value: str) -> datetime:
    return datetime.fromisoformat(value)
