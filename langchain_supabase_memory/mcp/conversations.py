"""Conversations for a model: pages, the newest first, those that match a query, and what one was about."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.agents.tools import history
from langchain_supabase_memory.agents.tools.board_recall import recall_derived
from langchain_supabase_memory.agents.tools.output_limit import Passage, date_of, fit_passages, note, wrap
from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.operations import listing
from langchain_supabase_memory.operations.recall import search
from langchain_supabase_memory.operations.recall.query import Filters, check_questions
from langchain_supabase_memory.values import Scope

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_supabase_memory.agents.tools.binding import Answer, ToolCall
    from langchain_supabase_memory.effects import Flow
    from langchain_supabase_memory.operations.boards.kinds import ContextType
    from langchain_supabase_memory.values import Chunk, ConversationInfo

_CANDIDATES: Final = 200
"""The number of passages recalled to find the conversations of a query."""

_WORDS: Final = 300
"""The maximum number of characters shown of a passage."""


_OPEN: Final[Sequence[ContextType]] = ("action_items", "questions")


def list_page(call: ToolCall, limit: int, after: str | None) -> Flow[Answer]:
    """Return a page of the conversations with the agent, the most recently changed first.

    Args:
        call: The call.
        limit: The maximum number on the page.
        after: Where the previous page ended.
    """
    memory = call.binding.memory
    page = yield from listing.conversations(
        memory._services.owner(),
        agent_id=memory.agent_id,
        limit=limit,
        after=after,
        retention=memory._services.settings.retention,
    )
    if not page:
        return note("There are no conversations." if after is None else "There are no more conversations."), []
    more = "" if page.after is None else f"There are more: continue with after={page.after}."
    shown = [_entry(call, each) for each in page]
    fits = fit_passages(shown, call.binding.characters, more)
    if fits.shown_count < len(page):
        count = fits.shown_count
        more = f"{len(page) - count} more do not fit: repeat with limit={count} to continue after them."
    return wrap(fits.elements, more), [dict(each.source) for each in shown[: fits.shown_count]]


def find_fitting(call: ToolCall, query: str, limit: int, after: str | None) -> Flow[Answer]:
    """Return the conversations that match a query, each with its best passage.

    Args:
        call: The call.
        query: The query.
        limit: The maximum number of conversations.
        after: Must be `None`: all matches are returned at once.

    Raises:
        InvalidInputError: `after` is set.
    """
    if after is not None:
        raise InvalidInputError("With a query there are no pages.", hint="Leave out after, or the query.")
    memory = call.binding.memory
    scope = Scope(memory._services.owner(), memory.agent_id)
    result = yield from search.recall_chunks(
        scope,
        check_questions(query, Filters(limit=_CANDIDATES).in_zone(memory._services.config.time_zone)),
        memory._services.capabilities,
    )
    best: dict[str, Chunk] = {}
    for chunk in result.chunks:
        best.setdefault(chunk.thread_id, chunk)
    if not best:
        return note("No conversation matches."), []
    shown = [_passage(call, each) for each in list(best.values())[:limit]]
    fits = fit_passages(shown, call.binding.characters)
    return wrap(fits.elements), [dict(each.source) for each in shown[: fits.shown_count]]


def get_overview(call: ToolCall) -> Flow[Answer]:
    """Return the newest summary of a conversation, what is left to do in it, and what was never answered.

    Args:
        call: The call, which names the conversation.
    """
    key = call.key()
    passages, remark = yield from history.read_summary(call, key)
    for kind in _OPEN:
        listed = yield from recall_derived(key, kind, call.zone)
        named = call.conversation_attributes(key)
        passages += [
            replace(each, attributes={**each.attributes, **named})
            for each in listed.passages
            if each.attributes.get("state") == "open"
        ]
    return history.fit(passages, call.binding.characters, [remark]) if passages else (note(remark), [])


def _entry(call: ToolCall, info: ConversationInfo) -> Passage:
    attributes: dict[str, str | int] = {"id": info.thread_id, "messages": info.message_count}
    if info.last_message_at is not None:
        attributes["last"] = date_of(info.last_message_at, call.zone)
    if info.archived_at is not None:
        attributes["archived"] = "yes"
    lines = [info.title or ("(untitled)" if info.message_count else "(no messages yet)")]
    if info.last_message_role and info.last_message_text:
        lines.append(f"{info.last_message_role}: {info.last_message_text}")
    return Passage("conversation", "\n".join(lines), attributes, {"thread_id": info.thread_id})


def _passage(call: ToolCall, chunk: Chunk) -> Passage:
    attributes: dict[str, str | int] = {"id": chunk.thread_id, "said": date_of(chunk.said_at, call.zone)}
    words = chunk.content if len(chunk.content) <= _WORDS else f"{chunk.content[:_WORDS]} …"
    source = {
        "thread_id": chunk.thread_id,
        "from_sequence": chunk.from_sequence,
        "to_sequence": chunk.to_sequence,
        "message_ids": chunk.message_ids,
        "score": chunk.score,
        "score_parts": dict(chunk.score_parts),
    }
    return Passage("conversation", words, attributes, source)
