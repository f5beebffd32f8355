"""Search of one user's memory: messages, items of boards and of the profile, and titles, each with its state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.inspector.gather import gather_all
from langchain_supabase_memory.inspector.rendering import render_page
from langchain_supabase_memory.inspector.request_context import RequestContext, find_info
from langchain_supabase_memory.inspector.screens.message_range import text_of
from langchain_supabase_memory.language.messages import content
from langchain_supabase_memory.operations.recall.exact_search import LONGEST, TEXTS, place

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from starlette.requests import Request
    from starlette.responses import Response

    from langchain_supabase_memory.memory.memory import SupabaseMemory
    from langchain_supabase_memory.operations.boards.board import Board, BoardItem
    from langchain_supabase_memory.operations.profile import ProfileItem
    from langchain_supabase_memory.operations.work import ConversationStatus
    from langchain_supabase_memory.values import ConversationInfo, FoundMessage

LIMIT: Final = 20
"""The number of messages on a page of results."""

MAX_CONVERSATIONS: Final = 100
"""How many of the newest conversations are searched by their titles."""

MAX_BOARDS: Final = 10
"""How many boards are searched: those of conversations with results, then the newest."""

_MAX_ITEMS: Final = 500
_BEFORE: Final = 120  # characters of a message before the words

_WORD_FOR_WORD: Final = ("verbatim", "word for word")
_SUMMARIZED: Final = ("segment", "summarized")
_PROFILE_STATES: Final[Mapping[str, tuple[str, str]]] = {
    "held": ("board", "in the profile"),
    "proposed": ("waiting", "in the profile, not used yet"),
    "superseded": ("superseded", "superseded"),
}


@dataclass(frozen=True)
class SearchMatch:
    """A result.

    Attributes:
        text: Its words, from a little before those that were searched for.
        link: The address of its place.
        state: The name of its mark.
        label: Its state in words.
        about: What it is, such as its conversation and who said it.
        at: When it was said; `None` for what has no time.
    """

    text: str
    link: str
    state: str
    label: str
    about: str = ""
    at: datetime | None = None


@dataclass(frozen=True)
class SearchMatches:
    """The results of a search.

    Attributes:
        messages: Messages, the newest conversations first.
        items: Items of boards and of the profile.
        titles: Conversations by their titles.
        boards: How many boards were searched.
        after: Where the messages go on; empty at their end.
    """

    messages: Sequence[SearchMatch] = ()
    items: Sequence[SearchMatch] = ()
    titles: Sequence[SearchMatch] = ()
    boards: int = 0
    after: str = ""


async def screen(request: Request) -> Response:
    """Render the search and its results."""
    context = RequestContext(request)
    query = context.query.get("q", "").strip()[:LONGEST]
    texts = list(dict.fromkeys(query.split()))[:TEXTS]
    needs_user = not context.has_one_owner
    results = await _search(context, texts) if texts and not needs_user else None
    return render_page(context, "search.html", tab="search", query=query, needs_user=needs_user, results=results)


async def _search(context: RequestContext, texts: Sequence[str]) -> SearchMatches:
    """Search in at most six reads, and one for each board and for each conversation beyond the newest."""
    memory = context.owned(context.reader)
    page, newest, profile = await gather_all(
        memory.afind(texts, limit=LIMIT, after=context.query.get("after") or None),
        memory.aconversations(limit=MAX_CONVERSATIONS),
        _profile(context, memory),
    )
    infos = {(each.agent_id, each.thread_id): each for each in newest}
    missing = dict.fromkeys((each.agent_id, each.thread_id) for each in page)
    missing = {key: None for key in missing if key not in infos}
    others = await gather_all(*(find_info(memory.conversation(thread, agent_id=agent)) for agent, thread in missing))
    infos.update(((each.agent_id, each.thread_id), each) for each in others if each is not None)
    ids = list(dict.fromkeys(infos[key].id for each in page if (key := (each.agent_id, each.thread_id)) in infos))
    statuses = await memory.work.astatus(ids=ids, limit=max(len(ids), 1)) if ids else []
    wanted = list(dict.fromkeys([*((each.agent_id, each.thread_id) for each in page), *infos]))[:MAX_BOARDS]
    boards = await gather_all(*(memory.conversation(thread, agent_id=agent).board.aread() for agent, thread in wanted))
    by_id = {each.id: each for each in statuses}
    items = [*_profile_matches(context, profile, texts), *_board_matches(context, wanted, boards, infos, texts)]
    return SearchMatches(
        messages=[_message(context, each, infos, by_id, texts) for each in page],
        items=items,
        titles=[*_titles(context, newest, texts)],
        boards=len(wanted),
        after=page.after or "",
    )


async def _profile(context: RequestContext, memory: SupabaseMemory) -> list[ProfileItem]:
    if context.space_id is not None:
        return []
    return await memory.profile.aread(states=("held", "proposed", "superseded"), limit=_MAX_ITEMS)


def _message(
    context: RequestContext,
    match: FoundMessage,
    infos: Mapping[tuple[str, str], ConversationInfo],
    statuses: Mapping[str, ConversationStatus],
    texts: Sequence[str],
) -> SearchMatch:
    stored, info = match.message, infos.get((match.agent_id, match.thread_id))
    status = None if info is None else statuses.get(info.id)
    state, label = _WORD_FOR_WORD
    if info is not None and info.private:
        state, label = "opted-out", "private"
    elif info is not None and info.opted_out_at is not None:
        state, label = "opted-out", "opted out"
    elif status is not None and stored.sequence <= status.summarized_through:
        state, label = _SUMMARIZED
    text = text_of(stored)
    begin = max(0, place(text, texts) - _BEFORE)
    title = match.thread_id if info is None else info.title or info.thread_id
    return SearchMatch(
        f"{'… ' if begin else ''}{text[begin:]}",
        _place(context, info, match.agent_id, match.thread_id, stored.sequence),
        state,
        label,
        f"{title}: {content.LABELS[stored.role or 'user']}, message {stored.sequence:,}",
        stored.created_at,
    )


def _place(context: RequestContext, info: ConversationInfo | None, agent: str, thread: str, sequence: int) -> str:
    user = context.user_id if info is None else info.user_id
    return f"{context.conversation_link('', user, agent, thread, at=sequence)}#m{sequence}"


def _titles(context: RequestContext, newest: Iterable[ConversationInfo], texts: Sequence[str]) -> Iterable[SearchMatch]:
    for info in newest:
        if _has_all(f"{info.title or ''} {info.thread_id}", texts):
            state = "opted-out" if info.opted_out_at else "archived" if info.archived_at else "active"
            label = "private" if info.private else state.replace("-", " ")
            link = context.conversation_link("", info.user_id, info.agent_id, info.thread_id)
            yield SearchMatch(info.title or info.thread_id, link, state, label, info.thread_id, info.last_message_at)


def _profile_matches(
    context: RequestContext, profile: Iterable[ProfileItem], texts: Sequence[str]
) -> Iterable[SearchMatch]:
    for item in profile:
        if _has_all(f"{item.subject} {item.value} {item.condition or ''}", texts):
            link = context.link("/profile/item", item=item.id, **context.member_query)
            state, label = _PROFILE_STATES[item.state]
            yield SearchMatch(f"{item.subject}: {item.value}", link, state, label, item.kind, item.last_seen_at)


def _board_matches(
    context: RequestContext,
    keys: Sequence[tuple[str, str]],
    boards: Sequence[Board],
    infos: Mapping[tuple[str, str], ConversationInfo],
    texts: Sequence[str],
) -> Iterable[SearchMatch]:
    for key, board in zip(keys, boards, strict=True):
        info = infos.get(key)
        for item in board.items:
            if info is not None and _has_all(item.text, texts):
                link = context.conversation_link(
                    "/board/item", info.user_id, info.agent_id, info.thread_id, item=item.id
                )
                state, label = _item_state(item)
                about = f"{item.kind} on the board of {info.title or info.thread_id}"
                yield SearchMatch(item.text, link, state, label, about, item.last_seen_at)


def _item_state(item: BoardItem) -> tuple[str, str]:
    if item.superseded_at is not None:
        return "superseded", "superseded"
    return "board", "on the board" if item.is_open else item.state


def _has_all(text: str, texts: Sequence[str]) -> bool:
    folded = text.casefold()
    return all(each.casefold() in folded for each in texts)
