"""The flows over due work: claim it under a lease, keep the lease, give it back; what is due, running and dead."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal

from langchain_supabase_memory.effects import Flow, call
from langchain_supabase_memory.operations.arguments import check_limit, conversation_ids
from langchain_supabase_memory.operations.pages import PAGE, key_of, keys
from langchain_supabase_memory.values import ConversationKey

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from langchain_supabase_memory.settings import BoardPolicy, SummaryPolicy

WorkState = Literal["idle", "due", "running", "waiting", "dead"]
"""How the work on a conversation stands. `waiting`: after a failure; `dead`: given up after too many."""

Outcome = Literal["done", "again", "retry", "dead", "lost", "gone"]
"""What became of a piece of work. `again`: more was said meanwhile; `lost`: the lease had run out; `gone`: it was
forgotten."""


@dataclass(frozen=True)
class Lease:
    """A conversation that a worker has taken.

    Attributes:
        key: Which one.
        conversation_id: Its uuid, as a string.
        token: What the lease is known by.
        attempts: The how-manyth try it is, from 1.
        waited_seconds: How long it was due before it was taken, in seconds.
        position: Where the conversation stood when it was taken.
        requested: Whether somebody asked for it to be summarized now.
        drafts: Answers of a model that an earlier try left, by the digest of the question.
        left_out: The duties that wait after a failure, or were given up, and are not due now.
    """

    key: ConversationKey
    conversation_id: str
    token: str
    attempts: int
    waited_seconds: float
    position: tuple[Any, ...]
    requested: bool = False
    drafts: Mapping[str, str] = field(default_factory=dict, repr=False)  # repr=False: they are content
    left_out: tuple[str, ...] = ()

    @property
    def ids(self) -> dict[str, Any]:
        """As the SQL functions know it."""
        return {"user_id": self.key.user_id, "conversation_id": self.conversation_id, "token": self.token}


@dataclass(frozen=True)
class Pause:
    """A duty that failed, and waits.

    Attributes:
        error: Why, in a word.
        failures: How often in a row.
        until: When it is tried again; `None` if it was given up.
    """

    error: str
    failures: int
    until: datetime | None


@dataclass(frozen=True)
class ConversationStatus:
    """How the work on a conversation stands.

    Attributes:
        key: Which conversation.
        id: Its uuid, as a string.
        state: What is going on.
        messages: How many messages are stored.
        next_sequence: The number that the next message will have.
        summarized_through: The last message that a summary covers; -1 if none.
        indexed_through: The last message that is indexed.
        board_through: The last message that the board has taken in.
        board_version: How often the board was changed.
        tokens_saved: How many approximate tokens fewer the newest summary has than what it covers.
        quality: Of the newest summary, from 0 to 1.
        due_since: Since when there is something to do.
        attempts: How often that was tried.
        error: Why the last try failed, in a word.
        paused: What failed and waits, or was given up, by the name of the duty; `all` if nothing is left to do beside.
        worker: Which worker is at it.
        priority: Higher goes first.
        archived_at: Since when it is archived.
        updated_at: When it last changed.
    """

    key: ConversationKey
    id: str
    state: WorkState
    messages: int
    next_sequence: int
    summarized_through: int
    indexed_through: int
    board_through: int
    board_version: int
    tokens_saved: int
    quality: float | None
    due_since: datetime | None
    attempts: int
    error: str | None
    worker: str | None
    priority: int
    archived_at: datetime | None
    updated_at: datetime
    paused: Mapping[str, Pause] = field(default_factory=dict)


@dataclass(frozen=True)
class Queue:
    """The work of all conversations.

    Attributes:
        depth: How many conversations there is something to do for, now or later.
        due: How many of them could be taken now.
        leases: How many are taken.
        waiting: How many wait after a failure.
        dead: Of how many something was given up.
        unreadable: How many of them were set aside because their ids cannot be used.
        unreadable_messages: How many messages are set aside because they cannot be read; see `memory.unreadable()`.
        paused: Of how many each duty failed, and waits or was given up.
        lag_seconds: How long the oldest has been due, in seconds.
        next_seconds: When the next can be taken, in seconds from now; `None` if there is none.
        vector_bytes: What the vectors and their index take, in bytes.
    """

    depth: int = 0
    due: int = 0
    leases: int = 0
    waiting: int = 0
    dead: int = 0
    unreadable: int = 0
    unreadable_messages: int = 0
    paused: Mapping[str, int] = field(default_factory=dict)
    lag_seconds: float = 0.0
    next_seconds: float | None = None
    vector_bytes: int = 0


UNREADABLE: Final = "unreadable"
"""Why a conversation was set aside whose ids cannot be used here."""

_MOST_CLAIMS: Final = 10
"""So often a claim is repeated at once that found only what cannot be used."""


def claim(
    worker: str,
    *,
    limit: int,
    lease_seconds: float,
    debounce_seconds: float,
    user_id: str | None = None,
    slots: int | None = None,
    limits: Mapping[str, int] | None = None,
) -> Flow[list[Lease]]:
    """Take conversations that are due; nobody else gets them as long as the lease holds.

    It goes round by owner, one conversation each; of one owner the most urgent comes first.

    Args:
        worker: Who takes them, for who looks at the queue.
        limit: The most.
        lease_seconds: How long they are held without a heartbeat, in seconds.
        debounce_seconds: How long a conversation must have been due, in seconds, so that a burst is one piece of work.
        user_id: Only this user's.
        slots: How many the worker has at once, of which one owner gets half while others wait; `None` for no bound.
        limits: How many of them it has now, by owner.
    """
    leases: list[Lease] = []
    for _ in range(_MOST_CLAIMS):
        rows = yield from call(
            "memory_worker_claim",
            {
                "p_worker": worker,
                "p_limit": limit,
                "p_lease_seconds": lease_seconds,
                "p_settle_seconds": debounce_seconds,
                "p_user_id": user_id,
                "p_slots": slots,
                "p_held": dict(limits or {}),
            },
        )
        for row in rows:
            key = key_of(row)
            if key is None:
                yield from _quarantined(row)
            else:
                leases.append(_lease(key, row))
        if leases or not rows:
            break
    return leases


def _lease(key: ConversationKey, row: Mapping[str, Any]) -> Lease:
    return Lease(
        key,
        row["conversation_id"],
        row["token"],
        row["attempts"],
        float(row["waited"]),
        tuple(row["position"]),
        row["requested"],
        row["drafts"] or {},
        tuple(row["paused"]),
    )


def _quarantined(row: Mapping[str, Any]) -> Flow[None]:
    """Give up at once what no worker could name."""
    arguments = {
        "p_user_id": row["user_id"],
        "p_conversation_id": row["conversation_id"],
        "p_token": row["token"],
        "p_position": row["position"],
        "p_error": UNREADABLE,
        "p_max_attempts": 0,
    }
    yield from call("memory_worker_finish", arguments)


def heartbeat(leases: Iterable[Lease], *, lease_seconds: float) -> Flow[set[str]]:
    """Hold leases for longer.

    Returns:
        The tokens of those that are still held; the others have run out, and somebody else may have them.
    """
    arguments = {"p_leases": [lease.ids for lease in leases], "p_lease_seconds": lease_seconds}
    return set((yield from call("memory_worker_heartbeat", arguments)))


def keep_draft(lease: Lease, digest: str, answer: str) -> Flow[bool]:
    """Keep an answer that nothing is stored from yet, for who goes on if this worker is killed.

    Args:
        lease: What it is for.
        digest: Of the question.
        answer: What the model said.

    Returns:
        Whether it is kept: not if the lease has run out, a message has changed or gone since, or it mentions a topic
        that is not to be remembered.
    """
    kept = yield from call(
        "memory_worker_keep_draft",
        {
            "p_user_id": lease.key.user_id,
            "p_conversation_id": lease.conversation_id,
            "p_token": lease.token,
            "p_position": list(lease.position),
            "p_digest": digest,
            "p_answer": answer,
        },
    )
    return bool(kept["kept"])


def finish(
    lease: Lease,
    *,
    error: str | None = None,
    failed: Mapping[str, str] | None = None,
    served: bool = False,
    max_attempts: int = 8,
    retry_seconds: float = 30.0,
) -> Flow[Outcome]:
    """Give a conversation back.

    Args:
        lease: What was taken.
        error: Why it failed, in a word and never with content; `None` if all that was due is done.
        failed: Which duties failed, and why, in a word each: they wait, and the others go on when there is something to
            do. `None` with an error means that all did.
        served: Whether a wish for a summary is fulfilled.
        max_attempts: After so many failures in a row a duty is given up.
        retry_seconds: The wait after the first failure, in seconds, with jitter; it doubles up to an hour.
    """
    answer = yield from call(
        "memory_worker_finish",
        {
            "p_user_id": lease.key.user_id,
            "p_conversation_id": lease.conversation_id,
            "p_token": lease.token,
            "p_position": list(lease.position),
            "p_error": error,
            "p_served": served,
            "p_max_attempts": max_attempts,
            "p_retry_seconds": retry_seconds,
            "p_failed": None if failed is None else dict(failed),
            "p_left_out": list(lease.left_out),
        },
    )
    outcome: Outcome = answer["outcome"]
    return outcome


def release(leases: Iterable[Lease]) -> Flow[int]:
    """Give conversations back unfinished, for another worker; it counts as no try.

    Returns:
        How many were still held.
    """
    answer = yield from call("memory_worker_release", {"p_leases": [lease.ids for lease in leases]})
    return int(answer["released"])


def retry(user_id: str | None, *, agent_id: str | None = None, thread_id: str | None = None) -> Flow[int]:
    """Try again what workers have given up; it needs a server's rights.

    Args:
        user_id: Only this user's; the memory's by default.
        agent_id: Only this agent's.
        thread_id: Only those of this thread.

    Returns:
        How many conversations.
    """
    arguments = {"p_user_id": user_id, "p_agent_id": agent_id, "p_thread_id": thread_id}
    answer = yield from call("memory_worker_revive", arguments)
    return int(answer["revived"])


def request(key: ConversationKey, *, priority: int | None = None) -> Flow[bool]:
    """Ask a worker to summarize the conversation now, whether it is due or not.

    Args:
        key: The conversation.
        priority: Its priority from now on, -32,768 to 32,767; `None` leaves it. A signed-in user may only lower
            it.

    Returns:
        Whether there is such a conversation.
    """
    answer = yield from call("memory_request", {**conversation_ids(key), "p_priority": priority})
    return answer["requested_at"] is not None


def status(
    user_id: str | None,
    *,
    agent_id: str | None = None,
    thread_id: str | None = None,
    state: WorkState | None = None,
    ids: Sequence[str] | None = None,
    limit: int | None = None,
    after: tuple[str, str] | None = None,
) -> Flow[list[ConversationStatus]]:
    """What is due, running, waiting and dead, and how far each conversation is covered.

    Args:
        user_id: Only this user's; the memory's by default.
        agent_id: Only this agent's.
        thread_id: Only those of this thread.
        state: Only those in this state.
        ids: Only the conversations with these ids, as lists give them.
        limit: The most; `None` means all.
        after: The owner and the id of a conversation: only those behind it.

    Returns:
        Their status, in the order of owners and ids. A conversation whose ids cannot be used is left out, and
        logged.
    """
    check_limit("limit", limit)
    found: list[ConversationStatus] = []
    last: Mapping[str, Any] = {} if after is None else dict(zip(("user_id", "id"), after, strict=True))
    wanted_ids = None if ids is None else list(ids)
    while limit is None or len(found) < limit:
        wanted = PAGE if limit is None else min(PAGE, limit - len(found))
        page = yield from call(
            "memory_status",
            {
                "p_user_id": user_id,
                "p_agent_id": agent_id,
                "p_thread_id": thread_id,
                "p_state": state,
                "p_limit": wanted,
                "p_after_user": last.get("user_id"),
                "p_after": last.get("id"),
                "p_ids": wanted_ids,
            },
        )
        found += [_status(key, row) for row in page if (key := key_of(row)) is not None]
        if len(page) < wanted:
            break
        last = page[-1]
    return found


def queue(*, user_id: str | None = None) -> Flow[Queue]:
    """The work of all conversations, in numbers; it needs a server's rights.

    Args:
        user_id: Only this user's; `None` means everybody's that the caller may see.
    """
    row = yield from call("memory_worker_queue", {} if user_id is None else {"p_user_id": user_id}, "gauge queue")
    return Queue(**row)


def status_of(key: ConversationKey) -> Flow[ConversationStatus | None]:
    """What of it is due, running, waiting or dead, and how far it is covered; `None` if there is no such one."""
    found = yield from status(key.user_id, agent_id=key.agent_id, thread_id=key.thread_id)
    return found[0] if found else None


def retry_one(key: ConversationKey) -> Flow[int]:
    """Try again what workers have given up here; it needs a server's rights.

    Returns:
        How many conversations: 1 or 0.
    """
    return (yield from retry(key.user_id, agent_id=key.agent_id, thread_id=key.thread_id))


def takes_turn(chore: str, every_seconds: float) -> Flow[bool]:
    """Whether the caller is who does something that is done from time to time; of several workers one is told so."""
    answer = yield from call("memory_worker_chore", {"p_name": chore, "p_every_seconds": every_seconds})
    mine: bool = answer["mine"]
    return mine


def reconcile(
    *,
    summary: SummaryPolicy | None = None,
    board: BoardPolicy | None = None,
    index: bool = True,
    vectors: bool = False,
    user_id: str | None = None,
) -> Flow[int]:
    """Mark every conversation that is behind and not marked: written by hand, from a dump, before a new policy.

    Args:
        summary: When summarizing is due, with every number given; `None` if that does not matter.
        board: When revising the board is due; `None` if that does not matter.
        index: Whether it matters that something is not indexed.
        vectors: Whether it matters that chunks lack a vector.
        user_id: Only this user's.

    Returns:
        How many were marked.
    """
    marked = 0
    after: Mapping[str, Any] = {}
    due = {
        "p_characters": None if summary is None else summary.characters,
        "p_tokens": None if summary is None else summary.tokens,
        "p_messages": None if summary is None else summary.messages,
        "p_board": None if board is None else board.update_frequency,
        "p_index": index,
        "p_vectors": vectors,
        "p_user_id": user_id,
    }
    while True:
        place = {"p_after_user": after.get("user"), "p_after": after.get("id")}
        answer = yield from call("memory_worker_rederive", {**due, "p_limit": PAGE, **place})
        marked += answer["marked"]
        after = answer["after"]
        if after is None:
            return marked


def idle(seconds: float, user_id: str | None = None) -> Flow[list[ConversationKey]]:
    """Conversations, or one user's, without a message for so many seconds that are not archived; for servers."""
    return (yield from keys("memory_worker_idle", {"p_seconds": seconds, "p_user_id": user_id}))


def archive(key: ConversationKey, next_sequence: int) -> Flow[bool]:
    """Mark a conversation as archived, unless something was said since; for servers."""
    answer = yield from call("memory_worker_archive", {**conversation_ids(key), "p_next_sequence": next_sequence})
    archived: bool = answer["archived"]
    return archived


def _status(key: ConversationKey, row: Mapping[str, Any]) -> ConversationStatus:
    same = ("state", "next_sequence", "summarized_through", "indexed_through", "board_through", "board_version")
    return ConversationStatus(
        key=key,
        id=row["id"],
        messages=row["message_count"],
        due_since=_time(row["since"]),
        attempts=row["attempts"] or 0,
        worker=row["worker"],
        archived_at=_time(row["archived_at"]),
        updated_at=datetime.fromisoformat(row["updated_at"]),
        paused={duty: _pause(each) for duty, each in (row["paused"] or {}).items()},
        **{name: row[name] for name in (*same, "tokens_saved", "quality", "error", "priority")},
    )


def _pause(row: Mapping[str, Any]) -> Pause:
    return Pause(row["error"], row["failures"], None if row["until"] == "infinity" else _time(row["until"]))


def _time(value: str | None) -> datetime | None:
    return None if value is None else datetime.fromisoformat(value)
