"""Important facts move from conversations to long-term memory, and go from it when they are forgotten there.

What moves is written down in the memory's own database first, and confirmed afterwards. So a move that broke off is
made again, a second one finds nothing to do, and what was forgotten in the memory is found in the long-term memory even
if that is another database. What is written down are ids: nothing of the content.
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
"""How many facts are moved, or forgotten, in one step."""


@dataclass(frozen=True)
class Fact:
    """Something important that was said, and where it stands.

    Attributes:
        memory: What is to be remembered.
        conversation_id: The conversation's uuid.
        source_id: The uuid of what it was read from: an item of the board, or a chunk.
        place: Where the reading goes on after it.
        edited_at: When its messages, or the item itself, had last been edited; `None` if never.
        from_board: Whether it was read from the board.
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
        user_id: Whose they are, by the database's word.
        facts: In the order of conversations and of what was said there.
    """

    user_id: str
    facts: list[Fact]


@dataclass(frozen=True)
class Promoted:
    """What was moved to long-term memory.

    Attributes:
        moved: The ids of the memories that are new there.
        known: The ids of those that were there already, under this id or with the same words.
    """

    moved: list[str] = field(default_factory=list)
    known: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Revoked:
    """What was forgotten in long-term memory, or would be.

    Attributes:
        memories: The ids of the memories.
        dry_run: Whether nothing was really forgotten.
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
    """What was said and is important enough to stay, a page of it; from where, see `promote`.

    Args:
        scope: Where to look: a thread, or everything of a user.
        min_importance: The least importance, from 0 to 1.
        types: Only these kinds of chunks; `fact` means the facts of boards, too.
        since: Only what was said at or after this time, with a time zone.
        target: Only what has not been moved to the long-term memory of this name.
        after: The last fact of the page before.

    Returns:
        Up to a page of facts; the last page is not full.

    Raises:
        InvalidInputError: Something is none of its choices.
    """
    if isinstance(types, str) or not set(types) <= set(KINDS):
        raise InvalidInputError("types has something that is no type.", hint=f"Types are {', '.join(KINDS)}.")
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
    """Move what is important from a user's conversations to their long-term memory; it stays in both.

    From a conversation whose board was written, the board's facts move: those that hold, are not deleted, and are
    important enough; what a person pinned always is. A fact that a person wrote moves from any board. From a
    conversation without a board, or if `types` asks for no facts, chunks move; they have to be indexed (`index`,
    `index_due`).

    Call it as often as you like, from as many processes as you like: what was moved is not moved again, even if it was
    forgotten there since, and the same words from two places are one memory. Nor does anything come twice in other
    words: where a chunk was moved, no fact of a board from the same message follows it, nor the other way round; and a
    fact that takes the place of one that the board no longer has (regenerated, edited by a person) follows after
    `forget_source` has taken that one back. It works page by page; one that breaks off is made up for by the next call.
    When something is forgotten in the memory, call `forget_source`.

    Args:
        memory: The memory.
        long_term: The long-term memory, of the same user.
        thread_id: Only from this thread; by default from all of the user's.
        agent_id: Only from this agent. In a thread the memory's by default, else from all.
        min_importance: The least importance, from 0 to 1.
        types: Only these kinds of chunks; `fact` means the facts of boards, too.
        since: Only what was said at or after this time, with a time zone.

    Returns:
        What was moved, and what was known.

    Raises:
        InvalidInputError: The long-term memory is another user's, or an argument is none of its choices.
        SupabaseMemoryError: The database refused or could not be reached.
        Exception: Whatever the long-term memory raises; what was moved before stays, and nothing is lost.
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
    """Forget in long-term memory what was forgotten, or edited, in the memory after it was moved.

    `memory.forget`, `forget_message` and `forget_user` do not reach a long-term memory: it may be another database, and
    the memory does not hold its keys. So forget in the memory first, then call this for each long-term memory that
    facts were moved to, under its name; from a scheduled task, too, for it makes up for calls that broke off. Nothing
    needs to be named: what has gone is known, and so is what a board no longer says, because it was deleted,
    contradicted, edited or written anew. What only expired stays, for that is what long-term memory is for; to forget
    it all the same, name the messages or the thread. A fact that was also said elsewhere moves again from there
    at the next `promote`, and so does what you name here and do not forget in the memory.

    What you gave to `long_term.remember` yourself is not looked at: forget it by the ids that it returned.

    Args:
        memory: The memory.
        long_term: The long-term memory, of the same user.
        thread_id: Also what comes from this thread, or of it from `message_ids`.
        message_ids: Also what comes from these messages.
        agent_id: The agent of the thread; the memory's by default.
        dry_run: Only say what would go.

    Returns:
        What was forgotten.

    Raises:
        InvalidInputError: The long-term memory is another user's.
        SupabaseMemoryError: The database refused or could not be reached.
        Exception: Whatever the long-term memory raises; the next call goes on.
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
    """Move one page: note it, remember it, confirm it."""
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
    # Forgotten while it was on its way: it goes again, and so does the note of those who said the same.
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
        raise InvalidInputError("message_ids must be a list of ids, not one text.", hint="Pass [id].")
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
            "The conversations are one user's and the long-term memory is another's.",
            hint="Make the long-term memory with the id of the user whose conversations they are.",
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
