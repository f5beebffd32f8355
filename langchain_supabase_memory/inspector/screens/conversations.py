"""The conversations: of one user with their titles, the last said first; of everybody by their ids alone."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, get_args

from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.inspector.drawing import Piece, bar
from langchain_supabase_memory.inspector.rendering import number, shown, stamp
from langchain_supabase_memory.inspector.visit import Visit, is_uuid
from langchain_supabase_memory.operations.work import ConversationStatus, WorkState
from langchain_supabase_memory.values import ConversationInfo, ConversationState, is_id

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

PAGE: Final = 25
"""The conversations of a page."""

OPTED_OUT: Final = "opted-out"
WORK_STATES: Final[tuple[WorkState, ...]] = get_args(WorkState)
LIFE_STATES: Final[tuple[ConversationState, ...]] = get_args(ConversationState)
STATES: Final = (*WORK_STATES, *LIFE_STATES, OPTED_OUT)


@dataclass(frozen=True)
class Row:
    """A conversation in the list.

    Attributes:
        status: How the work on it stands.
        info: What it is called and what was said last; `None` where everybody's are listed.
        opted_out: Whether nothing of it is to be remembered.
    """

    status: ConversationStatus
    info: ConversationInfo | None
    opted_out: bool = False

    @property
    def cover(self) -> list[Piece]:
        """Where its messages are, for a bar: summarized, or not yet."""
        covered = min(self.status.summarized_through + 1, self.status.next_sequence)
        rest = self.status.next_sequence - covered
        parts = (("segment", covered, "in the summary"), ("verbatim", rest, "not summarized"))
        return bar((state, size, f"{number(size)} {what}", "") for state, size, what in parts)


@dataclass(frozen=True)
class Listed:
    """A page of the list.

    Attributes:
        rows: The conversations.
        before: What the address of the page before it says; empty without one.
        after: The same of the page after it.
        seen: How all that stands.
    """

    rows: list[Row]
    before: str = ""
    after: str = ""

    @property
    def seen(self) -> str:
        """How it stands, so that the page is told of a change."""
        return stamp([(row.status, row.info and row.info.title, row.opted_out) for row in self.rows])


async def listed(visit: Visit) -> Listed:
    """The page that an address asks for; each in one or two reads of no more rows than it shows.

    Raises:
        InvalidInputError: The address names no state, or what can be no id.
    """
    state, user, agent = visit.asked.get("state") or None, visit.user_id, visit.asked.get("agent") or None
    if state not in (None, *STATES):
        raise InvalidInputError("There is no such state.", hint=f"States are {', '.join(STATES)}.")
    if not all(value is None or is_id(value) for value in (user, agent)):
        raise InvalidInputError("That can be no id.", hint="An id has 1 to 512 bytes and no control characters.")
    is_of_one = not visit.of_everybody or user is not None
    if not is_of_one and state not in (None, *WORK_STATES):
        raise InvalidInputError("Of everybody's only the states of work are known.", hint="Choose a user as well.")
    if state == OPTED_OUT and is_of_one:
        return await _opted_out(visit, user, agent)
    if is_of_one and state not in WORK_STATES:
        return await _of_one(visit, user, agent, next((each for each in LIFE_STATES if each == state), None))
    return await _by_work(visit, user, agent, next((each for each in WORK_STATES if each == state), None), is_of_one)


async def _of_one(visit: Visit, user: str | None, agent: str | None, state: ConversationState | None) -> Listed:
    """A user's, the last changed first, with how the work on each stands."""
    before, after = visit.asked.get("before") or None, visit.asked.get("after") or None
    page = await visit.reader.aconversations(
        user_id=user, agent_id=agent, state=state, limit=PAGE, before=before, after=None if before else after
    )
    ids = [info.id for info in page]
    found = await visit.reader.work.astatus(user_id=user, ids=ids, limit=PAGE) if ids else []
    statuses = {each.id: each for each in found}
    # One that was forgotten between the two reads is in the first alone.
    rows = [_row(statuses[info.id], info) for info in page if info.id in statuses]
    return Listed(rows, page.before or "", page.after or "")


async def _by_work(
    visit: Visit, user: str | None, agent: str | None, state: WorkState | None, is_of_one: bool
) -> Listed:
    """Those of a state of work, or everybody's, in the order of owners and ids."""
    place = visit.asked.get("after", "").rpartition(" ")
    after = (place[0], place[2]) if place[0] and is_uuid(place[2]) else None
    found = await visit.reader.work.astatus(user_id=user, agent_id=agent, state=state, limit=PAGE + 1, after=after)
    page = found[:PAGE]
    if is_of_one:
        rows = list(map(_row, page, await _infos(visit, page)))
    else:
        outs = await _outs(visit, page)
        rows = [Row(each, None, (each.key.user_id, each.key.agent_id, each.key.thread_id) in outs) for each in page]
    last = page[-1] if len(found) > PAGE else None
    further = f"{last.key.user_id} {last.id}" if last is not None else ""
    return Listed(rows, after=further)


async def _opted_out(visit: Visit, user: str | None, agent: str | None) -> Listed:
    """A user's conversations that are not remembered, in the order in which that was said."""
    outs = await visit.reader.aopt_outs(user_id=user, agent_id=agent)
    named = [out for out in outs if out.topic is None and out.thread_id is not None]
    begin = visit.number("after") or 0
    wanted = [visit.reader.conversation(str(out.thread_id), user_id=user, agent_id=out.agent_id) for out in named]
    statuses = await asyncio.gather(*(each.astatus() for each in wanted[begin : begin + PAGE]))
    there = [status for status in statuses if status is not None]
    infos = await _infos(visit, there)
    further = str(begin + PAGE) if len(named) > begin + PAGE else ""
    return Listed(list(map(_row, there, infos)), after=further)


def _row(status: ConversationStatus, info: ConversationInfo | None) -> Row:
    return Row(status, info, info is not None and info.opted_out_at is not None)


async def _outs(visit: Visit, statuses: list[ConversationStatus]) -> set[tuple[str | None, str | None, str | None]]:
    """Which conversations of these owners are not remembered: a read for each owner of a page."""
    owners = list(dict.fromkeys(status.key.user_id for status in statuses))
    found = await asyncio.gather(*(visit.reader.aopt_outs(user_id=owner) for owner in owners))
    return {
        (owner, out.agent_id, out.thread_id)
        for owner, outs in zip(owners, found, strict=True)
        for out in outs
        if out.topic is None
    }


async def _infos(visit: Visit, statuses: list[ConversationStatus]) -> list[ConversationInfo | None]:
    keys = [status.key for status in statuses]
    handles = [visit.reader.conversation(k.thread_id, user_id=k.user_id, agent_id=k.agent_id) for k in keys]
    return list(await asyncio.gather(*(each.ainfo() for each in handles)))


async def screen(request: Request) -> Response:
    """The list."""
    visit = Visit(request)
    page = await listed(visit)
    state = visit.asked.get("state", "")
    paged = state not in WORK_STATES and (visit.user_id is not None or not visit.of_everybody)
    # What has come meanwhile stands on the first page alone.
    is_first = not (visit.asked.get("after") or visit.asked.get("before"))
    return shown(
        visit,
        "conversations.html",
        tab="conversations",
        seen=page.seen,
        about="list" if is_first else "",
        page=page,
        state=state,
        states=STATES if visit.user_id is not None or not visit.of_everybody else WORK_STATES,
        has_order=paged,
    )
