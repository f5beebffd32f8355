"""The list of conversations: one user's with titles, the most recent first, and numbers; or every user's with ids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, get_args

from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.inspector.gather import gather_all
from langchain_supabase_memory.inspector.rendering import etag, number, render_page
from langchain_supabase_memory.inspector.request_context import RequestContext, find_info, is_uuid
from langchain_supabase_memory.inspector.screens import users
from langchain_supabase_memory.inspector.screens.usage_lines import COSTS, DAYS, UsageRow, usage_rows
from langchain_supabase_memory.inspector.svg_charts import BarSegment, bar
from langchain_supabase_memory.operations.work import ConversationStatus, WorkState
from langchain_supabase_memory.values import ConversationInfo, ConversationState, Signal, is_id

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

PAGE: Final = 25
"""The number of conversations on a page."""

OPTED_OUT: Final = "opted-out"
WORK_STATES: Final[tuple[WorkState, ...]] = get_args(WorkState)
LIFE_STATES: Final[tuple[ConversationState, ...]] = get_args(ConversationState)
SIGNALS: Final = tuple(each.label for each in Signal)
STATES: Final = (*WORK_STATES, *LIFE_STATES, OPTED_OUT)


@dataclass(frozen=True)
class Row:
    """A conversation in the list.

    Attributes:
        status: The status of its work.
        info: Its title and last message; `None` if every user's conversations are listed.
        opted_out: Whether it is opted out of memory.
    """

    status: ConversationStatus
    info: ConversationInfo | None
    opted_out: bool = False

    @property
    def cover(self) -> list[BarSegment]:
        """The bar of its messages: summarized, or not yet."""
        covered = min(self.status.summarized_through + 1, self.status.next_sequence)
        rest = self.status.next_sequence - covered
        parts = (("segment", covered, "summarized"), ("verbatim", rest, "not summarized"))
        return bar((state, size, f"{number(size)} {what}", "") for state, size, what in parts)


@dataclass(frozen=True)
class ConversationList:
    """A page of the list.

    Attributes:
        rows: The conversations.
        before: The address argument of the previous page; empty without one.
        after: The address argument of the next page; empty without one.
        etag: The version of the data.
    """

    rows: list[Row]
    before: str = ""
    after: str = ""

    @property
    def etag(self) -> str:
        """The version of the data, so that the page is notified of a change."""
        return etag([(row.status, row.info and (row.info.title, row.info.signals), row.opted_out) for row in self.rows])


async def list_conversations(context: RequestContext) -> ConversationList:
    """Load the page that an address requests; each in one or two reads of no more rows than it shows.

    Raises:
        InvalidInputError: The address names an unknown state, or an invalid id.
    """
    signal = context.query.get("signal") or None
    state, user, agent = context.query.get("state") or None, context.user_id, context.query.get("agent") or None
    if state not in (None, *STATES):
        raise InvalidInputError("There is no such state.", hint=f"States are {', '.join(STATES)}.")
    if signal is not None and signal not in SIGNALS:
        raise InvalidInputError("There is no such signal.", hint=f"Signals are {', '.join(SIGNALS)}.")
    if not all(value is None or is_id(value) for value in (user, agent)):
        raise InvalidInputError("This is not a valid id.", hint="An id has 1 to 512 bytes and no control characters.")
    is_one_user = context.has_one_owner
    if not is_one_user and state not in (None, *WORK_STATES):
        raise InvalidInputError("Across all users, the list has work states only.", hint="Filter by user as well.")
    if signal is not None and (not is_one_user or state not in (None, *LIFE_STATES)):
        raise InvalidInputError("Signals are of one user's conversations, in no state of work.", hint="Filter by user.")
    if state == OPTED_OUT and is_one_user:
        return await _opted_out(context, agent)
    if is_one_user and state not in WORK_STATES:
        life = next((each for each in LIFE_STATES if each == state), None)
        return await _one_user(context, agent, life, signal)
    return await _by_work(context, agent, next((each for each in WORK_STATES if each == state), None))


async def _one_user(
    context: RequestContext, agent: str | None, state: ConversationState | None, signal: str | None
) -> ConversationList:
    """Load a user's conversations, the most recently changed first, with their work status."""
    before, after = context.query.get("before") or None, context.query.get("after") or None
    page = await context.owned(context.reader).aconversations(
        agent_id=agent,
        state=state,
        signals=None if signal is None else [signal],
        limit=PAGE,
        before=before,
        after=None if before else after,
    )
    ids = [info.id for info in page]
    found = await context.owned(context.reader).work.astatus(ids=ids, limit=PAGE) if ids else []
    statuses = {each.id: each for each in found}
    # A conversation that was forgotten between the two reads is only in the first.
    rows = [_row(statuses[info.id], info) for info in page if info.id in statuses]
    return ConversationList(rows, page.before or "", page.after or "")


async def _by_work(context: RequestContext, agent: str | None, state: WorkState | None) -> ConversationList:
    """Load the conversations in a work state, or every user's, ordered by owner and id."""
    place = context.query.get("after", "").rpartition(" ")
    after = (place[0], place[2]) if place[0] and is_uuid(place[2]) else None
    found = await context.owned(context.reader).work.astatus(agent_id=agent, state=state, limit=PAGE + 1, after=after)
    page = found[:PAGE]
    if context.has_one_owner:
        rows = list(map(_row, page, await _infos(context, page)))
    else:
        opted_out = await _opt_outs(context, page)
        rows = [
            Row(each, None, (each.key.user_id, each.key.agent_id, each.key.thread_id) in opted_out) for each in page
        ]
    last = page[-1] if len(found) > PAGE else None
    further = f"{last.key.user_id} {last.id}" if last is not None else ""
    return ConversationList(rows, after=further)


async def _opted_out(context: RequestContext, agent: str | None) -> ConversationList:
    """Load a user's opted-out conversations, ordered by when they were opted out."""
    outs = await context.owned(context.reader).privacy.aopt_outs(agent_id=agent)
    named = [out for out in outs if out.topic is None and out.thread_id is not None]
    begin = context.number("after") or 0
    wanted = [context.owned(context.reader).conversation(str(out.thread_id), agent_id=out.agent_id) for out in named]
    statuses = await gather_all(*(each.work.astatus() for each in wanted[begin : begin + PAGE]))
    there = [status for status in statuses if status is not None]
    infos = await _infos(context, there)
    further = str(begin + PAGE) if len(named) > begin + PAGE else ""
    return ConversationList(list(map(_row, there, infos)), after=further)


def _row(status: ConversationStatus, info: ConversationInfo | None) -> Row:
    return Row(status, info, info is not None and info.opted_out_at is not None)


async def _opt_outs(
    context: RequestContext, statuses: list[ConversationStatus]
) -> set[tuple[str | None, str | None, str | None]]:
    """Return which conversations are opted out: one read for each owner on the page."""
    owners = list(dict.fromkeys(status.key.user_id for status in statuses))
    found = await gather_all(*(context.reader._for(owner).privacy.aopt_outs() for owner in owners))
    return {
        (owner, out.agent_id, out.thread_id)
        for owner, outs in zip(owners, found, strict=True)
        for out in outs
        if out.topic is None
    }


async def _infos(context: RequestContext, statuses: list[ConversationStatus]) -> list[ConversationInfo | None]:
    keys = [status.key for status in statuses]
    memory = context.owned(context.reader)
    handles = [memory._for(k.user_id).conversation(k.thread_id, agent_id=k.agent_id) for k in keys]
    return list(await gather_all(*map(find_info, handles)))


async def screen(request: Request) -> Response:
    """Render the list; or the users, as the start of everybody's data."""
    context = RequestContext(request)
    if users.is_start(context):
        return await users.respond(context)
    page, usage = await gather_all(list_conversations(context), _usage(context))
    state = context.query.get("state", "")
    paged = state not in WORK_STATES and context.has_one_owner
    # New conversations only appear on the first page.
    is_first = not (context.query.get("after") or context.query.get("before"))
    return render_page(
        context,
        "conversations.html",
        tab="conversations",
        etag=page.etag,
        about="list" if is_first else "",
        page=page,
        state=state,
        signal=context.query.get("signal", ""),
        signals=SIGNALS
        if context.has_one_owner and not context.space and state not in (*WORK_STATES, OPTED_OUT)
        else (),
        states=STATES if context.has_one_owner else WORK_STATES,
        has_order=paged,
        usage=usage,
        days=DAYS,
    )


async def _usage(context: RequestContext) -> list[UsageRow]:
    """Return the numbers of the home screen of one user that are not all zero; none on other pages of the list."""
    is_home = not any(context.query.get(name) for name in ("agent", "state", "signal", "after", "before"))
    if not is_home or not context.has_one_owner or context.space_id is not None:
        return []
    return [row for row in await usage_rows(context.owned(context.reader), COSTS) if row.total]
