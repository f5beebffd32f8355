"""A list of conversations for a model: by pages, the newest first, or those in which something was said that fits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.agents.tools.bounded import Passage, dated, fenced, fitted, noted
from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.operations import listing
from langchain_supabase_memory.operations.recall import search
from langchain_supabase_memory.operations.recall.question import Filters, questions
from langchain_supabase_memory.values import Scope

if TYPE_CHECKING:
    from langchain_supabase_memory.agents.tools.bound import Answer, Asked
    from langchain_supabase_memory.flow import Flow
    from langchain_supabase_memory.values import Chunk, ConversationInfo

_CANDIDATES: Final = 200
"""How many passages are recalled to find the conversations of a query."""

_WORDS: Final = 300
"""The most characters that are shown of a passage."""


def listed(asked: Asked, limit: int, after: str | None) -> Flow[Answer]:
    """A page of the conversations with the agent, the most recently changed first.

    Args:
        asked: The call.
        limit: The most of the page.
        after: Where the page before ended.
    """
    memory = asked.binding.memory
    page = yield from listing.conversations(
        memory.owner(), agent_id=memory.agent_id, limit=limit, after=after, retention=memory.settings.retention
    )
    if not page:
        return noted("There are no conversations." if after is None else "There are no more conversations."), []
    more = "" if page.after is None else f"There are more: go on with after={page.after}."
    shown = [_entry(asked, each) for each in page]
    fits = fitted(shown, asked.binding.characters, more)
    if fits.shown < len(page):
        more = f"{len(page) - fits.shown} more have no room: the same with limit={fits.shown} says where to go on."
    return fenced(fits.elements, more), [dict(each.source) for each in shown[: fits.shown]]


def fitting(asked: Asked, query: str, limit: int, after: str | None) -> Flow[Answer]:
    """The conversations in which something was said that fits, each with its best passage.

    Args:
        asked: The call.
        query: What to look for.
        limit: The most conversations.
        after: Nothing: what fits comes at once.

    Raises:
        InvalidInputError: `after` is given.
    """
    if after is not None:
        raise InvalidInputError("With a query there are no pages.", hint="Leave out after, or the query.")
    memory = asked.binding.memory
    scope = Scope(memory.owner(), memory.agent_id)
    result = yield from search.recall(
        scope, questions(query, Filters(limit=_CANDIDATES).in_zone(memory.settings.time_zone)), memory.means
    )
    best: dict[str, Chunk] = {}
    for chunk in result.chunks:
        best.setdefault(chunk.thread_id, chunk)
    if not best:
        return noted("Nothing that was said fits."), []
    shown = [_found(asked, each) for each in list(best.values())[:limit]]
    fits = fitted(shown, asked.binding.characters)
    return fenced(fits.elements), [dict(each.source) for each in shown[: fits.shown]]


def _entry(asked: Asked, info: ConversationInfo) -> Passage:
    attributes: dict[str, str | int] = {"id": info.thread_id, "messages": info.message_count}
    if info.last_message_at is not None:
        attributes["last"] = dated(info.last_message_at, asked.zone)
    if info.archived_at is not None:
        attributes["archived"] = "yes"
    lines = [info.title or "(nothing said yet)"]
    if info.last_message_role and info.last_message_text:
        lines.append(f"{info.last_message_role}: {info.last_message_text}")
    return Passage("conversation", "\n".join(lines), attributes, {"thread_id": info.thread_id})


def _found(asked: Asked, chunk: Chunk) -> Passage:
    attributes: dict[str, str | int] = {"id": chunk.thread_id, "said": dated(chunk.said_at, asked.zone)}
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
