"""The queue and the workers: due, running, waiting and dead work."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.inspector.gather import gather_all
from langchain_supabase_memory.inspector.rendering import etag, number, render_page
from langchain_supabase_memory.inspector.request_context import RequestContext
from langchain_supabase_memory.inspector.screens.causes import by_cause

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request
    from starlette.responses import Response

    from langchain_supabase_memory.operations.work import ConversationStatus, Queue, WorkState

MAX_PER_STATE: Final = 20
"""The maximum number of conversations shown for each state."""

MAX_RUNNING: Final = 500
"""The maximum number of running conversations whose workers are counted."""

_STATES: Final[tuple[WorkState, ...]] = ("running", "due", "waiting", "dead")


@dataclass(frozen=True)
class QueueState:
    """The state of the queue.

    Attributes:
        queue: The queue in numbers; `None` if only a user's own work is visible.
        rows: The first conversations of each state.
        more: The states that have more conversations than shown.
        workers: The number of running conversations of each worker.
        running: The total number of running conversations.
        etag: The version of the data.
    """

    queue: Queue | None
    rows: Mapping[WorkState, list[ConversationStatus]]
    more: frozenset[WorkState]
    workers: Mapping[str, int]
    running: int
    etag: str

    @property
    def plus(self) -> str:
        """Return what follows a count that is a minimum."""
        return "+" if self.queue is not None and self.queue.has_more else ""

    def size(self, state: WorkState) -> str:
        """Return how many conversations are in a state, as far as it is known."""
        if self.queue is not None:
            counted = {"due": self.queue.due, "waiting": self.queue.waiting}
            if state in counted:
                return number(counted[state]) + self.plus
            return number(self.queue.dead if state == "dead" else self.queue.leases)
        return f"more than {MAX_PER_STATE}" if state in self.more else number(len(self.rows[state]))


async def load_queue(context: RequestContext) -> QueueState:
    """Load the queue of every user, of the memory's user, or of the signed-in user."""
    memory = context.owned(context.reader)
    limits = {state: MAX_RUNNING if state == "running" else MAX_PER_STATE + 1 for state in _STATES}
    reads = [memory.work.astatus(state=state, limit=limit) for state, limit in limits.items()]
    found = dict(zip(_STATES, await gather_all(*reads), strict=True))
    queue = None if context.has_one_owner else await memory.work.aqueue()
    rows = {state: each[:MAX_PER_STATE] for state, each in found.items()}
    more = frozenset(state for state, each in found.items() if len(each) > MAX_PER_STATE)
    workers = Counter(status.worker for status in found["running"] if status.worker is not None)
    counts = None if queue is None else (queue.depth, queue.due, queue.leases, queue.waiting, queue.dead)
    known = [(s.id, s.state, s.attempts, s.worker, s.error) for each in rows.values() for s in each]
    version = etag(known, counts, sorted(workers.items()))
    return QueueState(queue, rows, more, workers, len(found["running"]), version)


async def screen(request: Request) -> Response:
    """Render the queue."""
    context = RequestContext(request)
    now = await load_queue(context)
    return render_page(
        context,
        "queue.html",
        tab="queue",
        etag=now.etag,
        about="queue",
        now=now,
        causes=by_cause(now.rows["dead"]),
        max_per_state=MAX_PER_STATE,
        max_running=MAX_RUNNING,
    )
