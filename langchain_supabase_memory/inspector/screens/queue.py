"""The queue and the workers: what is due, running, waiting and dead."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.inspector.rendering import shown, stamp
from langchain_supabase_memory.inspector.visit import Visit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request
    from starlette.responses import Response

    from langchain_supabase_memory.operations.work import ConversationStatus, Queue, WorkState

MOST: Final = 20
"""The most conversations of each state."""

_STATES: Final[tuple[WorkState, ...]] = ("running", "due", "waiting", "dead")


@dataclass(frozen=True)
class Standing:
    """How the work stands.

    Attributes:
        queue: It in numbers; `None` where only a user's own may be seen.
        rows: The first conversations of each state.
        workers: Who is at how many of those shown.
        seen: How that stands.
    """

    queue: Queue | None
    rows: Mapping[WorkState, list[ConversationStatus]]
    workers: Mapping[str, int]
    seen: str


async def standing(visit: Visit) -> Standing:
    """How the work stands of everybody, of the memory's user, or of who is signed in."""
    memory, user = visit.reader, visit.user_id
    is_servers = visit.of_everybody and user is None
    asked = [memory.work.astatus(user_id=user, state=state, limit=MOST) for state in _STATES]
    found = await asyncio.gather(*asked)
    queue = await memory.work.aqueue() if is_servers else None
    rows = dict(zip(_STATES, found, strict=True))
    workers = Counter(status.worker for status in rows["running"] if status.worker is not None)
    counts = None if queue is None else (queue.depth, queue.due, queue.leases, queue.waiting, queue.dead)
    known = [(s.id, s.state, s.attempts, s.worker, s.error) for each in found for s in each]
    return Standing(queue, rows, workers, stamp(known, counts))


async def screen(request: Request) -> Response:
    """The queue."""
    visit = Visit(request)
    now = await standing(visit)
    return shown(visit, "queue.html", tab="queue", seen=now.seen, about="queue", now=now, most=MOST)
