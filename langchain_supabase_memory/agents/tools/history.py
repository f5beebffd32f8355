"""Tools that search earlier messages, read a conversation's summary, and recall items by kind."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal

from pydantic import BaseModel, Field

from langchain_supabase_memory.agents.tools import board_recall, exact_search
from langchain_supabase_memory.agents.tools.binding import Answer, Binding, Bindings, ToolCall, tool
from langchain_supabase_memory.agents.tools.output_limit import (
    Passage,
    date_of,
    fit_passages,
    note,
    sequence_range,
    wrap,
)
from langchain_supabase_memory.checks import choice
from langchain_supabase_memory.language.messages import content
from langchain_supabase_memory.language.messages.invisible import spell_out
from langchain_supabase_memory.operations import summaries
from langchain_supabase_memory.operations.boards.kinds import ContextType  # noqa: TC001  # pydantic reads it
from langchain_supabase_memory.operations.conversations import count, read
from langchain_supabase_memory.operations.recall import render, search
from langchain_supabase_memory.operations.recall.exact_search import ExactQuery
from langchain_supabase_memory.operations.recall.query import LIMIT, MAX_QUESTIONS, Filters, check_questions

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Unpack

    from langchain_core.tools import BaseTool

    from langchain_supabase_memory.effects import Flow
    from langchain_supabase_memory.memory.memory import SupabaseMemory
    from langchain_supabase_memory.operations.recall.exact_search import Order
    from langchain_supabase_memory.operations.recall.ranges import TimeRange
    from langchain_supabase_memory.values import Chunk, ConversationKey, RecallScope, Scope

_SPARE: Final = 10
"""How many extra results to request, because those already visible to the model are dropped."""

_WHERE: Final[dict[RecallScope, str]] = {
    "conversation": "this conversation",
    "agent": "all conversations with this user",
    "user": "all conversations of this user, with any agent",
}
_UNINDEXED: Final = "Not everything that was said lately could be searched."
_CONVERSATION: Final = Field(
    default=None, max_length=512, description="Another conversation of the same user; by default this one."
)


class _SearchArguments(BaseModel):
    query: str = Field(description="What to look for, in words or as a question.")
    time_range: Literal["today", "week", "month", "all"] = Field(
        default="all", description="Only what was said today, or in the last 7 or 30 days."
    )
    limit: int = Field(default=5, ge=1, le=20, description="The most passages.")
    more: list[str] = Field(
        default=[],
        max_length=MAX_QUESTIONS - 1,
        description="Further things to look for in the same search, each in words or as a question.",
    )
    exact: Literal["newest", "oldest"] | None = Field(
        default=None,
        description="Instead find messages that hold the query letter by letter, such as a phrase, a number, a file "
        "name or an id: the newest or the oldest first.",
    )
    after: str | None = Field(default=None, max_length=200, description="Where an exact search goes on, as it said.")


class _SummaryArguments(BaseModel):
    conversation_id: str | None = _CONVERSATION


class _RecallArguments(BaseModel):
    context_type: ContextType = Field(
        description="What to recall: things to do, questions (open ones first), facts, or who and what was named."
    )
    conversation_id: str | None = _CONVERSATION


def search_conversation_history_tool(
    memory: SupabaseMemory, *, scope: RecallScope = "conversation", **bound: Unpack[Bindings]
) -> BaseTool:
    """Create a tool that searches earlier messages.

    Args:
        memory: The memory that stores the conversations.
        scope: The scope to search: this `conversation`, all of the user's with this `agent`, or all of the `user`'s.
        bound: `thread_id`, `agent_id`, `characters`, `time_zone` and `on_error`; see `tools.binding.Binding`.

    Returns:
        The tool `search_conversation_history(query, time_range="all", limit=5, more=[], exact=None, after=None)`, sync
        and async.

    Raises:
        ConfigurationError: `scope` is not one of the choices.
    """
    choice("scope", scope, _WHERE)
    description = (
        f"Search what was said earlier in {_WHERE[scope]}, by meaning and by words. The passages come the best first, "
        "each with who said it, when, and the numbers of its messages."
    )

    def answer(
        call: ToolCall,
        query: str,
        time_range: TimeRange = "all",
        limit: int = 5,
        more: Sequence[str] = (),
        exact: Order | None = None,
        after: str | None = None,
    ) -> Flow[Answer]:
        if exact is None:
            return search_history(call, scope, [query, *more], Filters(time_range=time_range, limit=limit))
        return exact_search.find_exact(
            call, scope, ExactQuery(texts=query, order=exact, limit=limit), time_range, after
        )

    return tool("search_conversation_history", description, _SearchArguments, Binding.of(memory, bound), answer)


def get_conversation_summary_tool(memory: SupabaseMemory, **bound: Unpack[Bindings]) -> BaseTool:
    """Create a tool that reads the newest summary of a conversation.

    Args:
        memory: The memory that stores the conversation.
        bound: `thread_id`, `agent_id`, `characters`, `time_zone` and `on_error`; see `tools.binding.Binding`.

    Returns:
        The tool `get_conversation_summary(conversation_id=None)`, sync and async.
    """
    description = "Read the summary of what was said earlier in a conversation, and which messages it stands for."
    return tool("get_conversation_summary", description, _SummaryArguments, Binding.of(memory, bound), get_summary)


def recall_context_tool(memory: SupabaseMemory, **bound: Unpack[Bindings]) -> BaseTool:
    """Create a tool that recalls the action items, questions, facts or entities of a conversation.

    Args:
        memory: The memory that stores the conversation.
        bound: `thread_id`, `agent_id`, `characters`, `time_zone` and `on_error`; see `tools.binding.Binding`.

    Returns:
        The tool `recall_context(context_type, conversation_id=None)`, sync and async.
    """
    description = (
        "Recall what matters of a conversation by its kind: action items, questions (those without an answer first), "
        "facts, or the people and things that were named. The most important comes first."
    )
    return tool("recall_context", description, _RecallArguments, Binding.of(memory, bound), recall_context)


def search_history(call: ToolCall, reach: RecallScope, queries: Sequence[str], filters: Filters) -> Flow[Answer]:
    """Run a search and format its answer.

    Args:
        call: The call.
        reach: The scope to search.
        queries: The queries, each as keywords or as a question.
        filters: The filters, and the maximum number of passages.
    """
    scope = call.scope(reach)
    complete = True
    if reach == "conversation":
        complete = yield from call.indexed(call.key())
    limit = filters.limit or LIMIT
    spare = _SPARE if call.present else 0
    within = replace(filters, limit=limit + spare, time_zone=call.zone)
    result = yield from search.recall_chunks(
        scope, check_questions(queries, within), call.binding.memory._services.capabilities
    )
    chunks = [chunk for chunk in result.chunks if not call.can_see(chunk)][:limit]
    notes = ["" if complete else _UNINDEXED, "Only words could be compared, not meaning." if result.failed else ""]
    if not chunks:
        return note(" ".join(["Nothing that was said fits.", *filter(None, notes)])), []
    passages = [_passage(chunk, call, scope) for chunk in chunks]
    return fit(passages, call.binding.characters, notes)


def _passage(chunk: Chunk, call: ToolCall, scope: Scope) -> Passage:
    attributes: dict[str, str | int] = {
        "messages": sequence_range(chunk.from_sequence, chunk.to_sequence),
        "by": content.speaker(chunk.role, chunk.speaker),
        "at": date_of(chunk.said_at, call.zone),
    }
    attributes |= call.location(scope, chunk.thread_id, chunk.agent_id)
    if notes := render.notes(chunk, call.zone):
        attributes["note"] = "; ".join(notes)
    source = {
        "thread_id": chunk.thread_id,
        "agent_id": chunk.agent_id,
        "from_sequence": chunk.from_sequence,
        "to_sequence": chunk.to_sequence,
        "message_ids": chunk.message_ids,
        "score": chunk.score,
        "score_parts": dict(chunk.score_parts),
    }
    return Passage("passage", chunk.content, attributes, source)


def get_summary(call: ToolCall, conversation_id: str | None = None) -> Flow[Answer]:
    """Return the newest summary of a conversation, and which messages it covers.

    Args:
        call: The call.
        conversation_id: Another conversation of the same owner and agent.
    """
    passages, remark = yield from read_summary(call, call.key(conversation_id))
    return fit(passages, call.binding.characters, [remark]) if passages else (note(remark), [])


def read_summary(call: ToolCall, key: ConversationKey) -> Flow[tuple[list[Passage], str]]:
    """Return the newest summary of a conversation, or none, and what there is to say of it."""
    retention = call.binding.memory._services.settings.retention
    newest = yield from read(key, last=1, columns=["created_at"], retention=retention)
    segments = yield from summaries.list_segments(key, last=1, retention=retention)
    if not newest:
        return [], f"Nothing was said in this conversation. {_conversation_phrase(call, key)}".rstrip()
    last = newest[0].sequence
    if not segments:
        messages = yield from count(key, retention=retention)
        where = f"{_count_phrase(messages)}; the newest is number {last}. {_conversation_phrase(call, key)}".rstrip()
        return [], f"There is no summary yet. {where}"
    segment = segments[0]
    attributes: dict[str, str | int] = {
        "messages": sequence_range(0, segment.to_sequence),
        "made_at": date_of(segment.created_at, call.zone),
    }
    attributes |= call.conversation_attributes(key)
    source = {"thread_id": key.thread_id, "from_sequence": 0, "to_sequence": segment.to_sequence}
    newer = last - segment.to_sequence
    newer_note = f"Newer messages are not in it: {sequence_range(segment.to_sequence + 1, last)}." if newer > 0 else ""
    return [Passage("summary", segment.content, attributes, source)], newer_note


def recall_context(call: ToolCall, context_type: ContextType, conversation_id: str | None = None) -> Flow[Answer]:
    """Return a conversation's items of one kind, the most important first.

    Args:
        call: The call.
        context_type: The kind.
        conversation_id: Another conversation of the same owner and agent.
    """
    key = call.key(conversation_id)
    complete = yield from call.indexed(key)
    found = yield from board_recall.recall_derived(key, context_type, call.zone, is_visible=call.can_see)
    notes = ["" if complete else _UNINDEXED, found.note]
    if not found.passages:
        return note(
            " ".join(["There is nothing of this kind.", *filter(None, [*notes, _conversation_phrase(call, key)])])
        ), []
    passages = [
        replace(each, attributes={**each.attributes, **call.conversation_attributes(key)}) for each in found.passages
    ]
    return fit(passages, call.binding.characters, notes)


def _count_phrase(messages: int) -> str:
    return "There is 1 message" if messages == 1 else f"There are {messages:,} messages"


def _conversation_phrase(call: ToolCall, key: ConversationKey) -> str:
    """Return a sentence that names the conversation, if the answer must name it."""
    return f"The conversation is {spell_out(key.thread_id)!r}." if call.names else ""


def fit(passages: Sequence[Passage], characters: int, notes: Sequence[str] = ()) -> Answer:
    """Format passages as an answer within a number of characters, with notes and the number of omitted passages."""
    fits = fit_passages(passages, characters, *notes)
    left = len(passages) - fits.shown_count
    counted = f"{left} more {'is' if left == 1 else 'are'} left out, for there is no room." if left else ""
    return wrap(fits.elements, *notes, counted), [dict(each.source) for each in passages[: fits.shown_count]]
