"""Promote what a user's profile holds to long-term memory, and forget there what it does not hold any more.

Each promotion is recorded in the memory's own database first, and confirmed afterwards. So an interrupted promotion is
repeated, a second one does nothing, and what the profile does not hold any more is found in the long-term memory, even
in another database. The record only contains ids, no content.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final

from langchain_supabase_memory.checks import wrong_type
from langchain_supabase_memory.effects import Flow, call
from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.long_term.memories import Memory, Remembered, fold_text
from langchain_supabase_memory.memory.require_memory import require_memory
from langchain_supabase_memory.operations import profile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_supabase_memory.long_term.memories import LongTerm
    from langchain_supabase_memory.memory.memory import SupabaseMemory
    from langchain_supabase_memory.operations.profile import ProfileItem
    from langchain_supabase_memory.values import Part

PAGE: Final = 100
"""How many items are promoted, or memories forgotten, per step."""


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


def promote(memory: SupabaseMemory, long_term: LongTerm, *, agent_id: str | None = None) -> Remembered:
    """Promote what a user's profile holds to their long-term memory; it also stays in the profile.

    Each held item of `memory.profile` becomes one memory, with the messages that say so: its kind, subject and value as
    its text, its newest quote, and the thread of that. What is proposed is not promoted.

    You can call it any number of times from any number of processes. An item is not promoted again, even if it was
    forgotten in the long-term memory since: to forget it for good, delete it in the profile. It works page by page; the
    next call completes an interrupted one. What the profile does not hold any more stays there until `forget_source`.

    Args:
        memory: The memory.
        long_term: The long-term memory, of the same user.
        agent_id: Only what holds with this agent, and with all; by default with any.

    Returns:
        The ids of the new memories, and of those that existed there already.

    Raises:
        InvalidInputError: The long-term memory is another user's, or the memory is a space's: it has no profile.
        SupabaseMemoryError: The database refused the request or could not be reached.
        Exception: Any error of the long-term memory; items promoted before it remain, and nothing is lost.
    """
    user_id = _user(memory, long_term)
    return memory._services.run(_promote_flow(user_id, long_term, agent_id))


async def apromote(memory: SupabaseMemory, long_term: LongTerm, *, agent_id: str | None = None) -> Remembered:
    """The async twin of `promote`."""
    user_id = _user(memory, long_term)
    return await memory._services.arun(_promote_flow(user_id, long_term, agent_id))


def forget_source(memory: SupabaseMemory, long_term: LongTerm, *, dry_run: bool = False) -> list[str]:
    """Forget in long-term memory what the user's profile does not hold any more.

    Nothing that changes the profile reaches a long-term memory: it may be another database, whose keys the memory does
    not have. So call this after `memory.forget`, `forget_message` and `forget_user`, after an item was corrected or
    deleted, and after a user refused a profile, for each long-term memory that items were promoted to, under the same
    name. Also call it from a scheduled task, because it completes interrupted calls. It finds items that were
    superseded or deleted, and those of whose messages one was forgotten, edited, or has expired. What other messages
    still say is promoted again by the next `promote`, without the words that are gone.

    Memories that you passed to `long_term.remember` yourself are not affected: forget them by the returned ids.

    Args:
        memory: The memory.
        long_term: The long-term memory, of the same user.
        dry_run: Only return what would be forgotten.

    Returns:
        The ids of the forgotten memories.

    Raises:
        InvalidInputError: The long-term memory is another user's, or the memory is a space's: it has no profile.
        SupabaseMemoryError: The database refused the request or could not be reached.
        Exception: Any error of the long-term memory; the next call continues.
    """
    user_id = _user(memory, long_term)
    return memory._services.run(_forget_flow(user_id, long_term, dry_run))


async def aforget_source(memory: SupabaseMemory, long_term: LongTerm, *, dry_run: bool = False) -> list[str]:
    """The async twin of `forget_source`."""
    user_id = _user(memory, long_term)
    return await memory._services.arun(_forget_flow(user_id, long_term, dry_run))


def _promote_flow(user_id: str | None, long_term: LongTerm, agent_id: str | None) -> Flow[Remembered]:
    if user_id is None:  # the subject of a token, which only the database knows
        yield from _withdrawn(user_id, long_term, dry_run=True, limit=0)
    done = Remembered()
    held = yield from profile.read(user_id, agent_id=agent_id, states=("held",), limit=None)
    for start in range(0, len(held), PAGE):
        yield from _move(user_id, held[start : start + PAGE], long_term, done)
    return done


def _move(user_id: str | None, page: Sequence[ProfileItem], long_term: LongTerm, done: Remembered) -> Flow[None]:
    """Promote one page: record the items, remember them, and confirm the record."""
    arguments = {"p_target": long_term.name, "p_user_id": user_id}
    rows = yield from call("memory_promote", {**arguments, "p_items": [_recorded(item) for item in page]})
    if not rows:
        return
    items = {item.id: item for item in page}
    ids = [row["memory_id"] for row in rows]
    receipt: Remembered = yield _Remember(long_term, [_memory(items[row["item_id"]], row["memory_id"]) for row in rows])
    moved = [{"memory_id": id_} for id_ in ids]
    confirmed = yield from call("memory_promote", {**arguments, "p_items": moved, "p_moved": True})
    stays = {row["memory_id"] for row in confirmed}
    gone = [id_ for id_ in ids if id_ not in stays]
    if gone:  # the profile does not hold it any more
        yield _Forget(long_term, gone)
        yield from _withdrawn(user_id, long_term, forgotten=gone, limit=0)
    done.stored.extend(id_ for id_ in receipt.stored if id_ in stays)
    done.known.extend(id_ for id_ in receipt.known if id_ in stays)


def _forget_flow(user_id: str | None, long_term: LongTerm, dry_run: bool) -> Flow[list[str]]:
    done: list[str] = []
    page: list[str] = []
    while True:
        gone: list[str] = [] if dry_run else page
        page = yield from _withdrawn(
            user_id, long_term, forgotten=gone, after=done[-1] if done else None, dry_run=dry_run
        )
        if not page:
            return done
        if not dry_run:
            yield _Forget(long_term, page)
        done.extend(page)


def _withdrawn(
    user_id: str | None,
    long_term: LongTerm,
    *,
    forgotten: Sequence[str] = (),
    after: str | None = None,
    dry_run: bool = False,
    limit: int = PAGE,
) -> Flow[list[str]]:
    """Return memories that have to go, after it was noted which ones are gone."""
    answer = yield from call(
        "memory_withdrawn",
        {
            "p_target": long_term.name,
            "p_user_id": user_id,
            "p_gone": list(forgotten),
            "p_after": after,
            "p_limit": limit,
            "p_dry_run": dry_run,
        },
    )
    _check_owner(answer["user_id"], long_term)
    memories: list[str] = answer["memories"]
    return memories


def _user(memory: SupabaseMemory, long_term: LongTerm) -> str | None:
    """Return whose profile it is; `None` means the access token's subject."""
    require_memory(memory)
    if not callable(getattr(long_term, "remember", None)):
        hint = "Pass StoreLongTerm(store, user_id) or VectorStoreLongTerm(vector_store, user_id)."
        raise wrong_type("long_term", "a long-term memory", long_term, hint)
    is_any = memory.user_id is None and not memory._services.transport.acts_as_user
    user_id = memory._services.owner(long_term.user_id if is_any else None)
    if user_id is not None:
        _check_owner(user_id, long_term)
    return user_id


def _check_owner(user_id: str, long_term: LongTerm) -> None:
    if user_id != long_term.user_id:
        raise InvalidInputError(
            "The profile and the long-term memory belong to different users.",
            hint="Create the long-term memory with the id of the profile's user.",
        )


def _recorded(item: ProfileItem) -> dict[str, Any]:
    """Return an item as it is recorded, with the messages whose words move."""
    evidence = [
        {"thread_id": each.thread_id, "agent_id": each.agent_id, "message_id": each.message_id, "quote": each.quote}
        for each in item.evidence
    ]
    return {"item_id": item.id, "evidence": evidence}


def _memory(item: ProfileItem, memory_id: str) -> Memory:
    newest = item.evidence[-1] if item.evidence else None
    metadata = {"subject": item.subject, "value": item.value, "polarity": item.polarity}
    more = {"condition": item.condition, "agent_id": item.agent_id}
    return Memory(
        text=_sentence(item),
        kind=item.kind,
        said_at=item.held_at if newest is None else newest.at,
        thread_id=None if newest is None else newest.thread_id,
        message_ids=tuple(each.message_id for each in item.evidence),
        quote=None if newest is None else newest.quote,
        metadata={**metadata, **{name: value for name, value in more.items() if value is not None}},
        id=memory_id,
    )


def _sentence(item: ProfileItem) -> str:
    """Render an item, such as `Preference (drinks, at night): not coffee`, or `Fact: Maya has a kiln.`."""
    subject = None if fold_text(item.subject) == fold_text(item.value) else item.subject
    agent = None if item.agent_id is None else f"with {item.agent_id}"
    about = ", ".join(each for each in (subject, item.condition, agent) if each is not None)
    no = "not " if item.polarity < 0 else ""
    return f"{item.kind.capitalize()}{f' ({about})' if about else ''}: {no}{item.value}"
