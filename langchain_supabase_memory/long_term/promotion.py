"""Promote important facts from conversations to long-term memory, and revoke them when their source is forgotten.

Each promotion is recorded in the memory's own database first, and confirmed afterwards. So an interrupted promotion is
repeated, a second one does nothing, and facts forgotten in the memory can be found in the long-term memory, even in
another database. The record only contains ids, no content.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Final

from langchain_supabase_memory.checks import wrong_type
from langchain_supabase_memory.effects import Flow, call
from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.language.chunks.kinds import KINDS
from langchain_supabase_memory.language.messages.sanitizer import clean
from langchain_supabase_memory.long_term.memories import Memory, Remembered, text_id
from langchain_supabase_memory.memory.require_memory import require_memory
from langchain_supabase_memory.operations.arguments import moment
from langchain_supabase_memory.values import Scope

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from langchain_supabase_memory.language.chunks.kinds import Kind
    from langchain_supabase_memory.long_term.memories import LongTerm
    from langchain_supabase_memory.memory.memory import SupabaseMemory
    from langchain_supabase_memory.values import Part

PAGE: Final = 100
"""How many facts are promoted or forgotten per step."""


@dataclass(frozen=True)
class Fact:
    """An important fact and its source.

    Attributes:
        memory: The memory to store.
        conversation_id: The conversation's UUID.
        source_id: The UUID of its source: a board item or a chunk.
        place: The cursor after it.
        edited_at: When its messages or the item itself were last edited; `None` if never.
        from_board: Whether its source is the board.
    """

    memory: Memory
    conversation_id: str
    source_id: str
    place: tuple[str, int, int]
    edited_at: str | None
    from_board: bool = False


@dataclass(frozen=True)
class Facts:
    """A page of facts.

    Attributes:
        user_id: The owner, as returned by the database.
        facts: The facts, ordered by conversation and position.
    """

    user_id: str
    facts: list[Fact]


@dataclass(frozen=True)
class Promoted:
    """The result of `promote`.

    Attributes:
        moved: The ids of the new memories.
        known: The ids of memories that already existed, under this id or with the same text.
    """

    moved: list[str] = field(default_factory=list)
    known: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Revoked:
    """The memories that were forgotten in long-term memory, or would be.

    Attributes:
        memories: The ids of the memories.
        dry_run: Whether nothing was actually forgotten.
    """

    memories: list[str] = field(default_factory=list)
    dry_run: bool = False


@dataclass(frozen=True)
class _Remember:
    long_term: LongTerm
    memories: Sequence[Memory] = field(repr=False)
    part: ClassVar[Part] = "long term"

    def perform(self, _: object) -> Remembered:
        return self.long_term.remember(self.memories)

    async def aperform(self, _: object) -> Remembered:
        """The async twin of `perform`."""
        return await self.long_term.aremember(self.memories)


@dataclass(frozen=True)
class _Forget:
    long_term: LongTerm
    ids: Sequence[str]
    part: ClassVar[Part] = "long term"

    def perform(self, _: object) -> None:
        self.long_term.forget(self.ids)

    async def aperform(self, _: object) -> None:
        """The async twin of `perform`."""
        await self.long_term.aforget(self.ids)


def important_facts(
    scope: Scope,
    min_importance: float,
    types: Collection[Kind] = ("fact", "answer"),
    *,
    since: datetime | None = None,
    target: str | None = None,
    after: Fact | None = None,
) -> Flow[Facts]:
    """Return a page of important facts; see `promote` for their sources.

    Args:
        scope: The scope: a thread, or all of a user's conversations.
        min_importance: The minimum importance, from 0 to 1.
        types: Only these kinds of chunks; `fact` includes board facts.
        since: Only facts from messages at or after this time, with a time zone.
        target: Only facts not yet promoted to the long-term memory with this name.
        after: The last fact of the previous page.

    Returns:
        Up to a page of facts; the last page is not full.

    Raises:
        InvalidInputError: An argument is not valid.
    """
    if isinstance(types, str) or not set(types) <= set(KINDS):
        raise InvalidInputError("types has an invalid type.", hint=f"Types are {', '.join(KINDS)}.")
    if isinstance(min_importance, bool) or not isinstance(min_importance, (int, float)) or not 0 <= min_importance <= 1:
        raise InvalidInputError("min_importance must be a number from 0 to 1.", hint="Pass min_importance=0.6.")
    conversation_id, place, part = (None, -1, 0) if after is None else after.place
    page = yield from call(
        "memory_important",
        {
            "p_min_importance": min_importance,
            "p_types": sorted(types),
            "p_since": moment("since", since),
            "p_target": target,
            "p_thread_id": scope.thread_id,
            "p_agent_id": scope.agent_id,
            "p_user_id": scope.user_id,
            "p_limit": PAGE,
            "p_after_conversation": conversation_id,
            "p_after_place": place,
            "p_after_part": part,
            "p_after_source": None if after is None else after.source_id,
        },
    )
    return Facts(page["user_id"], [_fact(row, page["user_id"]) for row in page["facts"]])


def promote(
    memory: SupabaseMemory,
    long_term: LongTerm,
    *,
    thread_id: str | None = None,
    agent_id: str | None = None,
    min_importance: float = 0.6,
    types: Collection[Kind] = ("fact", "answer"),
    since: datetime | None = None,
) -> Promoted:
    """Promote important facts from a user's conversations to their long-term memory; they also stay where they are.

    If a conversation has a board, its board facts are promoted: those that are valid, not deleted, and important enough
    or pinned by a person. Facts written by a person are promoted from any board. If it has no board, or `types`
    excludes facts, its chunks are promoted, which must be indexed (`index`, `index_due`).

    You can call it any number of times from any number of processes. A fact is not promoted again, even if it was
    forgotten in the long-term memory since, and the same text from two sources is one memory. A message is not promoted
    in two wordings: after a chunk, no board fact from the same message is promoted, and vice versa. A fact that
    replaces an earlier board fact (regenerated, or edited by a person) is promoted after `forget_source` has revoked
    the earlier one. It works page by page; the next call completes an interrupted one. When something is forgotten in
    the memory, call `forget_source`.

    Args:
        memory: The memory.
        long_term: The long-term memory, of the same user.
        thread_id: Only from this thread; by default from all of the user's threads.
        agent_id: Only from this agent. By default the memory's agent for a thread, else all agents.
        min_importance: The minimum importance, from 0 to 1.
        types: Only these kinds of chunks; `fact` includes board facts.
        since: Only facts from messages at or after this time, with a time zone.

    Returns:
        The new memories, and those that already existed.

    Raises:
        InvalidInputError: The long-term memory is another user's, or an argument is not valid.
        SupabaseMemoryError: The database refused the request or could not be reached.
        Exception: Any error of the long-term memory; facts promoted before it remain, and nothing is lost.
    """
    scope = _scope(memory, long_term, thread_id, agent_id)
    return memory._services.run(_promote_flow(scope, long_term, min_importance, types, since))


async def apromote(
    memory: SupabaseMemory,
    long_term: LongTerm,
    *,
    thread_id: str | None = None,
    agent_id: str | None = None,
    min_importance: float = 0.6,
    types: Collection[Kind] = ("fact", "answer"),
    since: datetime | None = None,
) -> Promoted:
    """The async twin of `promote`."""
    scope = _scope(memory, long_term, thread_id, agent_id)
    return await memory._services.arun(_promote_flow(scope, long_term, min_importance, types, since))


def forget_source(
    memory: SupabaseMemory,
    long_term: LongTerm,
    *,
    thread_id: str | None = None,
    message_ids: Iterable[str] | None = None,
    agent_id: str | None = None,
    dry_run: bool = False,
) -> Revoked:
    """Forget facts in long-term memory whose source was forgotten or edited after they were promoted.

    `memory.forget`, `forget_message` and `forget_user` do not reach a long-term memory: it may be another database,
    whose keys the memory does not have. So forget in the memory first, then call this for each long-term memory that
    facts were promoted to, under the same name. Also call it from a scheduled task, because it completes interrupted
    calls. It needs no ids: it finds facts whose source is gone, and those that a board no longer has because they were
    deleted, contradicted, edited or rewritten. Facts whose source only expired remain, which is the purpose of
    long-term memory; to forget them anyway, pass the messages or the thread. A fact with another source is promoted
    again from there by the next `promote`, and so are facts whose source you pass here but do not forget in the memory.

    Memories that you passed to `long_term.remember` yourself are not affected: forget them by the returned ids.

    Args:
        memory: The memory.
        long_term: The long-term memory, of the same user.
        thread_id: Also forget facts from this thread, or from its `message_ids` if those are set.
        message_ids: Also forget facts from these messages.
        agent_id: The thread's agent; the memory's by default.
        dry_run: Only return what would be forgotten.

    Returns:
        The forgotten memories.

    Raises:
        InvalidInputError: The long-term memory is another user's.
        SupabaseMemoryError: The database refused the request or could not be reached.
        Exception: Any error of the long-term memory; the next call continues.
    """
    scope = _scope(memory, long_term, thread_id, agent_id)
    return memory._services.run(_revoke_flow(scope, long_term, message_ids, dry_run))


async def aforget_source(
    memory: SupabaseMemory,
    long_term: LongTerm,
    *,
    thread_id: str | None = None,
    message_ids: Iterable[str] | None = None,
    agent_id: str | None = None,
    dry_run: bool = False,
) -> Revoked:
    """The async twin of `forget_source`."""
    scope = _scope(memory, long_term, thread_id, agent_id)
    return await memory._services.arun(_revoke_flow(scope, long_term, message_ids, dry_run))


def _promote_flow(
    scope: Scope, long_term: LongTerm, min_importance: float, types: Collection[Kind], since: datetime | None
) -> Flow[Promoted]:
    done = Promoted()
    after: Fact | None = None
    while True:
        page = yield from important_facts(scope, min_importance, types, since=since, target=long_term.name, after=after)
        _check_owner(page.user_id, long_term)
        if page.facts:
            yield from _move(page, long_term, done)
        if len(page.facts) < PAGE:
            return done
        after = page.facts[-1]


def _move(page: Facts, long_term: LongTerm, done: Promoted) -> Flow[None]:
    """Promote one page: record the facts, remember them, and confirm the record."""
    first: dict[str, str] = {}
    rows = []
    for fact in page.facts:
        words = text_id(page.user_id, fact.memory.text)
        id_ = first.setdefault(words, str(fact.memory.id))
        rows.append(
            {
                **_source(fact),
                "text_id": words,
                "memory_id": id_,
                "repeats": id_ != fact.memory.id,
                "message_ids": list(fact.memory.message_ids),
                "edited_at": fact.edited_at,
                "from_board": fact.from_board,
            }
        )
    arguments = {"p_target": long_term.name, "p_user_id": page.user_id}
    notes = {row["source_id"]: row for row in (yield from call("memory_promote", {**arguments, "p_facts": rows}))}
    new = [
        fact.memory
        for fact in page.facts
        if not notes[fact.source_id]["known"] and notes[fact.source_id]["memory_id"] == fact.memory.id
    ]
    receipt: Remembered = (yield _Remember(long_term, new)) if new else Remembered()
    sources = [_source(fact) for fact in page.facts]
    confirmed = yield from call("memory_promote", {**arguments, "p_facts": sources, "p_moved": True})
    there = {row["source_id"] for row in confirmed}
    moving = {str(memory.id) for memory in new}
    # Forgotten during the promotion: revoke these memories, and the records of facts with the same text.
    gone = sorted({str(each.memory.id) for each in page.facts if each.source_id not in there} & moving)
    if gone:
        yield _Forget(long_term, gone)
        yield from call("memory_withdrawn", {**arguments, "p_gone": gone, "p_limit": 0})
    done.moved.extend(id_ for id_ in receipt.stored if id_ not in gone)
    done.known.extend(
        notes[fact.source_id]["memory_id"]
        for fact in page.facts
        if fact.source_id in there and fact.memory.id not in receipt.stored
    )


def _revoke_flow(scope: Scope, long_term: LongTerm, message_ids: Iterable[str] | None, dry_run: bool) -> Flow[Revoked]:
    if isinstance(message_ids, str):
        raise InvalidInputError("message_ids must be a list of ids, not a string.", hint="Pass [id].")
    wanted = None if message_ids is None else [clean(str(each)) for each in message_ids]
    done = Revoked(dry_run=dry_run)
    page: list[str] = []
    while True:
        answer = yield from call(
            "memory_withdrawn",
            {
                "p_target": long_term.name,
                "p_user_id": scope.user_id,
                "p_thread_id": scope.thread_id,
                "p_agent_id": scope.agent_id,
                "p_message_ids": wanted,
                "p_gone": [] if dry_run else page,
                "p_after": page[-1] if page else None,
                "p_dry_run": dry_run,
                "p_limit": PAGE,
            },
        )
        _check_owner(answer["user_id"], long_term)
        page = answer["memories"]
        if not page:
            return done
        if not dry_run:
            yield _Forget(long_term, page)
        done.memories.extend(page)


def _scope(memory: SupabaseMemory, long_term: LongTerm, thread_id: str | None, agent_id: str | None) -> Scope:
    require_memory(memory)
    if not callable(getattr(long_term, "remember", None)):
        hint = "Pass StoreLongTerm(store, user_id) or VectorStoreLongTerm(vector_store, user_id)."
        raise wrong_type("long_term", "a long-term memory", long_term, hint)
    user_id = None
    if memory.user_id is None and not memory._services.transport.acts_as_user:
        user_id = long_term.user_id
    key = memory._services.key("any" if thread_id is None else thread_id, user_id, agent_id)
    if key.user_id is not None:
        _check_owner(key.user_id, long_term)
    return Scope(key.user_id, agent_id if thread_id is None else key.agent_id, thread_id)


def _check_owner(user_id: str, long_term: LongTerm) -> None:
    if user_id != long_term.user_id:
        raise InvalidInputError(
            "The conversations and the long-term memory belong to different users.",
            hint="Create the long-term memory with the id of the conversations' user.",
        )


def _source(fact: Fact) -> dict[str, Any]:
    return {"conversation_id": fact.conversation_id, "source_id": fact.source_id}


def _fact(row: Mapping[str, Any], user_id: str) -> Fact:
    metadata = {name: row[name] for name in ("role", "speaker", "agent_id") if row[name] is not None}
    memory = Memory(
        text=row["content"],
        kind=row["type"],
        importance=min(max(round(row["importance"], 4), 0), 1),
        said_at=datetime.fromisoformat(row["said_at"]),
        thread_id=row["thread_id"],
        message_ids=tuple(row["message_ids"]),
        quote=None if row["quote"] == row["content"] else row["quote"],
        metadata=metadata,
    )
    place = (row["conversation_id"], row["place"], row["part"])
    source = (row["conversation_id"], row["source_id"], place, row["edited_at"], row["from_board"])
    return Fact(memory.with_owner(user_id), *source)
