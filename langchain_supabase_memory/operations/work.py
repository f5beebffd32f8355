"""The flows over due work: claim it under a lease, extend the lease, release it; list due, running and dead work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from langchain_supabase_memory.checks import as_list, as_uuid
from langchain_supabase_memory.effects import Flow, call
from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.operations.arguments import check_limit, conversation_ids
from langchain_supabase_memory.operations.pages import PAGE, key_of, keys
from langchain_supabase_memory.operations.rows import time_of, value_of
from langchain_supabase_memory.values import ConversationKey

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from langchain_supabase_memory.settings import BoardPolicy, SummaryPolicy

WorkState = Literal["idle", "due", "running", "waiting", "dead"]
"""The state of a conversation's work. `waiting`: after a failure; `dead`: given up after too many failures."""

Outcome = Literal["done", "again", "retry", "dead", "lost", "gone"]
"""The result of a piece of work. `again`: messages were added meanwhile; `lost`: the lease had expired; `gone`: the
conversation was forgotten."""


@dataclass(frozen=True)
class Lease:
    """A conversation that a worker has claimed.

    Attributes:
        key: The conversation.
        conversation_id: Its uuid, as a string.
        token: The lease's token.
        attempts: The number of this attempt, from 1.
        waited_seconds: How long it was due before it was claimed, in seconds.
        position: The conversation's position when it was claimed.
        requested: Whether a summary was requested now.
        drafts: Model answers left by an earlier attempt, by the digest of the prompt.
        left_out: The duties that wait after a failure, or were given up, and are not due now.
    """

    key: ConversationKey
    conversation_id: str
    token: str
    attempts: int
    waited_seconds: float
    position: tuple[Any, ...]
    requested: bool = False
    drafts: Mapping[str, str] = field(default_factory=dict, repr=False)  # repr=False: they hold content
    left_out: tuple[str, ...] = ()

    @property
    def ids(self) -> dict[str, Any]:
        """The lease as the SQL functions identify it."""
        return {"user_id": self.key.user_id, "conversation_id": self.conversation_id, "token": self.token}


@dataclass(frozen=True)
class Pause:
    """A failed duty that waits.

    Attributes:
        error: The reason, in one word.
        failures: The number of failures in a row.
        until: When it is retried; `None` if it was given up.
    """

    error: str
    failures: int
    until: datetime | None


@dataclass(frozen=True)
class ConversationStatus:
    """The state of a conversation's work.

    Attributes:
        key: The conversation.
        id: Its uuid, as a string.
        state: The state of its work.
        messages: How many messages are stored.
        next_sequence: The number of the next message.
        summarized_through: The last message that a summary covers; -1 if none.
        indexed_through: The last indexed message.
        board_through: The last message that the board covers.
        board_version: How often the board was changed.
        tokens_saved: How many fewer approximate tokens the newest summary has than the messages it covers.
        quality: The quality of the newest summary, from 0 to 1.
        due_since: Since when work is due.
        attempts: The number of attempts.
        error: Why the last attempt failed, in one word.
        paused: The duties that failed and wait, or were given up, by name; `all` if no other duty is left.
        worker: The worker that holds it.
        priority: Higher priorities are claimed first.
        archived_at: Since when it is archived.
        private: Whether it is private: never remembered, and deleted a day after its last message.
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
    private: bool
    updated_at: datetime
    paused: Mapping[str, Pause] = field(default_factory=dict)


@dataclass(frozen=True)
class Queue:
    """The work queue of all conversations, in numbers.

    At most 10,000 conversations with work are counted; if there are more, each count is a minimum.

    Attributes:
        depth: How many conversations have work, now or later.
        due: How many of them can be claimed now.
        leases: How many are claimed.
        waiting: How many wait after a failure.
        dead: How many have a duty that was given up.
        unreadable: How many of those were quarantined because their ids are not valid.
        unreadable_messages: How many messages are quarantined because they cannot be read; see
            `memory.work.unreadable()`.
        paused: For each duty, how many conversations it failed in and waits, or was given up.
        lag_seconds: How long the oldest work has been due, in seconds.
        next_seconds: When the next work can be claimed, in seconds from now; `None` if there is none.
        vector_bytes: The size of the vectors and their index, in bytes.
        has_more: Whether so many were counted that there may be more. `leases` and `dead` are exact also then, up to
            10,000; `lag_seconds` is that of those counted and of the owners whose turn is next.
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
    has_more: bool = False


UNREADABLE: Final = "unreadable"
"""The error of a conversation that was quarantined because its ids are not valid here."""

_MAX_CLAIMS: Final = 10
"""How often a claim that returned only invalid conversations is repeated at once."""


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
    """Claim due conversations; no other worker gets them while the lease holds.

    Owners take turns with one conversation each; an owner's most urgent conversation comes first.

    Args:
        worker: The name of the worker, shown in the queue.
        limit: The maximum number of conversations.
        lease_seconds: How long the lease lasts without a heartbeat, in seconds.
        debounce_seconds: How long a conversation must have been due, in seconds, so that a burst becomes one piece
            of work.
        user_id: Only this user's conversations.
        slots: How many conversations the worker handles at once; one owner gets at most half of them while others
            wait. `None` means no bound.
        limits: How many conversations it holds now, by owner.
    """
    leases: list[Lease] = []
    for _ in range(_MAX_CLAIMS):
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
    lists = {"position": tuple(row["position"]), "left_out": tuple(row["paused"])}
    return value_of(Lease, row, key=key, waited_seconds=float(row["waited"]), drafts=row["drafts"] or {}, **lists)


def _quarantined(row: Mapping[str, Any]) -> Flow[None]:
    """Give up at once on a conversation whose ids are not valid."""
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
    """Extend leases.

    Returns:
        The tokens of the leases that are still held; the others have expired, and another worker may have them.
    """
    arguments = {"p_leases": [lease.ids for lease in leases], "p_lease_seconds": lease_seconds}
    return set((yield from call("memory_worker_heartbeat", arguments)))


def keep_draft(lease: Lease, digest: str, answer: str) -> Flow[bool]:
    """Store a model answer that is not used yet, for the next worker if this one is killed.

    Args:
        lease: The lease.
        digest: The digest of the prompt.
        answer: The model's answer.

    Returns:
        Whether it was stored. It is not stored if the lease has expired, a message has changed or gone since, or
        the answer mentions an opted-out topic.
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
    """Release a conversation with the result of its work.

    Args:
        lease: The lease.
        error: The reason of the failure, in one word and without content; `None` if all due work is done.
        failed: The duties that failed, with the reason in one word each: they wait, and the others run when they
            are due. `None` with an error means that all failed.
        served: Whether a requested summary was written.
        max_attempts: A duty is given up after this many failures in a row.
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
    """Release conversations unfinished, for another worker; this does not count as an attempt.

    Returns:
        How many leases were still held.
    """
    answer = yield from call("memory_worker_release", {"p_leases": [lease.ids for lease in leases]})
    return int(answer["released"])


def retry(user_id: str | None, *, agent_id: str | None = None, thread_id: str | None = None) -> Flow[int]:
    """Retry work that workers have given up; requires a server's rights.

    Args:
        user_id: Only this user's conversations; by default the memory's user.
        agent_id: Only conversations with this agent.
        thread_id: Only this thread.

    Returns:
        The number of conversations.
    """
    arguments = {"p_user_id": user_id, "p_agent_id": agent_id, "p_thread_id": thread_id}
    answer = yield from call("memory_worker_revive", arguments)
    return int(answer["revived"])


def request(key: ConversationKey, *, priority: int | None = None) -> Flow[bool]:
    """Ask a worker to summarize the conversation now, whether it is due or not.

    Args:
        key: The conversation.
        priority: The new priority, -32,768 to 32,767; `None` leaves it. A signed-in user may only lower
            it.

    Returns:
        Whether the conversation exists.
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
    """List due, running, waiting and dead work, and how far each conversation is covered.

    Args:
        user_id: Only this user's conversations; by default the memory's user.
        agent_id: Only conversations with this agent.
        thread_id: Only this thread.
        state: Only conversations in this state.
        ids: Only the conversations with these ids.
        limit: The maximum number to return; `None` means all.
        after: The owner and id of a conversation: only conversations after it.

    Returns:
        The statuses, ordered by owner and id. A conversation with ids that are not valid is left out and logged.

    Raises:
        InvalidInputError: `state` is unknown, `ids` or `after` are no ids, or `limit` is negative.
    """
    if state is not None and state not in get_args(WorkState):
        raise InvalidInputError("Unknown state.", hint=f"States are {', '.join(get_args(WorkState))}.")
    check_limit("limit", limit)
    found: list[ConversationStatus] = []
    last: Mapping[str, Any] = {} if after is None else _place(after)
    wanted_ids = None
    if ids is not None:
        hint = "Pass ids=[status.id], of what status() returned."
        wanted_ids = [as_uuid("Each of ids", each) for each in as_list("ids", ids, "a list of ids", hint)]
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


def _place(after: tuple[str, str]) -> dict[str, str]:
    pair = as_list("after", after, "a pair of texts", "Pass after=(status.key.user_id, status.id).")
    if len(pair) != 2 or not isinstance(pair[0], str):
        raise InvalidInputError(
            "after must be the owner and the id of a conversation.",
            hint="Pass after=(status.key.user_id, status.id).",
        )
    return {"user_id": pair[0], "id": as_uuid("The second of after", pair[1])}


def queue(*, user_id: str | None = None) -> Flow[Queue]:
    """Return the work queue of all conversations, in numbers; requires a server's rights.

    Args:
        user_id: Only this user's work; `None` means all users that the caller may access.
    """
    row = yield from call("memory_worker_queue", {} if user_id is None else {"p_user_id": user_id}, "gauge queue")
    return Queue(**row)


def status_of(key: ConversationKey) -> Flow[ConversationStatus | None]:
    """Return the state of the conversation's work and how far it is covered; `None` if it does not exist."""
    found = yield from status(key.user_id, agent_id=key.agent_id, thread_id=key.thread_id)
    return found[0] if found else None


def retry_one(key: ConversationKey) -> Flow[int]:
    """Retry this conversation's work that workers have given up; requires a server's rights.

    Returns:
        The number of conversations: 1 or 0.
    """
    return (yield from retry(key.user_id, agent_id=key.agent_id, thread_id=key.thread_id))


def takes_turn(chore: str, every_seconds: float) -> Flow[bool]:
    """Return whether the caller should run a periodic chore now; only one of several workers is told to."""
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
    """Mark every unmarked conversation that is behind: edited by hand, restored, or under a new policy.

    Args:
        summary: When summarizing is due, with every number set; `None` ignores summaries.
        board: When revising the board is due; `None` ignores boards.
        index: Whether unindexed messages count.
        vectors: Whether chunks without a vector count.
        user_id: Only this user's conversations.

    Returns:
        How many conversations were marked.
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
    """Return unarchived conversations, optionally of one user, without a message for `seconds`; for servers."""
    place = {"p_after_hour": "updated_hour", "p_after_user": "user_id", "p_after": "id"}
    return (yield from keys("memory_worker_idle", {"p_seconds": seconds, "p_user_id": user_id}, place))


def archive(key: ConversationKey, next_sequence: int) -> Flow[bool]:
    """Archive a conversation, unless a message was added since; for servers."""
    answer = yield from call("memory_worker_archive", {**conversation_ids(key), "p_next_sequence": next_sequence})
    archived: bool = answer["archived"]
    return archived


def _status(key: ConversationKey, row: Mapping[str, Any]) -> ConversationStatus:
    return value_of(
        ConversationStatus,
        row,
        key=key,
        messages=row["message_count"],
        due_since=time_of(row["since"]),
        attempts=row["attempts"] or 0,
        paused={duty: _pause(each) for duty, each in (row["paused"] or {}).items()},
    )


def _pause(row: Mapping[str, Any]) -> Pause:
    return Pause(row["error"], row["failures"], None if row["until"] == "infinity" else time_of(row["until"]))
