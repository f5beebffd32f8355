"""The tools that read. No argument can choose another user's conversations."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Final, Literal, get_args

from pydantic import Field

from langchain_supabase_memory.agents.tools import history, insights, messages, profile, turns
from langchain_supabase_memory.agents.tools.output_limit import Passage, note, wrap
from langchain_supabase_memory.language.chunks.kinds import Kind
from langchain_supabase_memory.mcp import conversations
from langchain_supabase_memory.mcp.answers import ToolReply, reply
from langchain_supabase_memory.mcp.request_memory import current_request
from langchain_supabase_memory.mcp.run_tools import conversation, run, run_for_conversation
from langchain_supabase_memory.mcp.spaces import within_space
from langchain_supabase_memory.operations.recall.query import Filters
from langchain_supabase_memory.settings import ContextBudget
from langchain_supabase_memory.values import RecallScope  # noqa: TC001  # the SDK reads it

LARGEST: Final = 2**31 - 1
TOKENS: Final = 2_000
"""The default size of a context, in tokens."""

MAX_TOKENS: Final = 20_000

ConversationId = Annotated[
    str | None,
    Field(min_length=1, max_length=512, description="Its id, from a list or search; by default the newest."),
]
Space = Annotated[
    str | None,
    Field(max_length=512, description="A space, from list_spaces; by default the person's own conversations."),
]
Limit = Annotated[int, Field(ge=1, le=20, description="Maximum number of results.")]


async def search_conversation_history(
    query: Annotated[str, Field(max_length=10_000, description="What to look for: words or a question.")],
    scope: Annotated[
        RecallScope | None,
        Field(description="One conversation, all with this assistant, or by default all of the person's."),
    ] = None,
    time_range: Annotated[
        Literal["today", "week", "month", "all"],
        Field(description="Only messages of today, or of the last 7 or 30 days."),
    ] = "all",
    types: Annotated[
        list[Kind] | None, Field(max_length=len(get_args(Kind)), description="Only these kinds of passages.")
    ] = None,
    limit: Limit = 5,
    conversation_id: ConversationId = None,
    space_id: Space = None,
) -> ToolReply:
    """Search earlier conversations by meaning and by words.

    Use it when the person refers to something you cannot see ("as we said", "my kiln"). Each passage says which
    conversation and messages it comes from, who said it, and when.
    """
    if not query.strip():
        return reply(note("The query is empty. Say what to look for, in words or as a question."))
    reach: RecallScope = scope or ("user" if conversation_id is None else "conversation")
    filters = Filters(limit=limit, time_range=time_range, types=types or None)
    found = partial(history.search_history, reach=reach, queries=[query], filters=filters)
    async with within_space(space_id):
        return await (run_for_conversation(conversation_id, found) if reach == "conversation" else run(found))


async def get_conversation_summary(conversation_id: ConversationId = None, space_id: Space = None) -> ToolReply:
    """Read what a conversation was about, what is left to do, and which questions are still open.

    Use it for "where did we leave off?" and "what is left to do?".
    """
    async with within_space(space_id):
        return await run_for_conversation(conversation_id, conversations.get_overview)


async def get_profile(
    skip: Annotated[int, Field(ge=0, le=LARGEST, description="How many to skip, as the previous page says.")] = 0,
) -> ToolReply:
    """Read what is remembered about the person, and where and when they said it.

    Use it for "what do you know about me?", and before an answer that depends on who is asking.
    """
    return await run(partial(profile.read_profile, skip=skip))


async def get_insights(
    days: Annotated[int, Field(ge=1, le=366, description="How many days, up to today.")] = 30,
) -> ToolReply:
    """Count what the person talked about (topics), how it went (corrections, thanks) and what it came to.

    Use it for "what do I talk about most", "how was this month".
    """
    return await run(partial(insights.read_insights, days=days))


async def read_messages(
    first: Annotated[int, Field(ge=0, le=LARGEST, description="The number of the first message.")],
    last: Annotated[int, Field(ge=0, le=LARGEST, description="The number of the last message.")],
    conversation_id: ConversationId = None,
    skip: Annotated[int, Field(ge=0, le=LARGEST, description="Characters of the first message to skip.")] = 0,
    space_id: Space = None,
) -> ToolReply:
    """Read messages word for word, by number, such as those behind a passage or a summary (messages="4-9").

    Use it when the exact words matter. A long range comes in pages; each page says how to continue.
    """
    async with within_space(space_id):
        return await run_for_conversation(
            conversation_id, partial(messages.read_originals, first=first, last=last, skip=skip)
        )


async def get_turn(
    n: Annotated[int, Field(ge=-LARGEST, le=LARGEST, description="1 for the first turn, -1 for the newest.")],
    conversation_id: ConversationId = None,
    space_id: Space = None,
) -> ToolReply:
    """Read one turn: a question and its answer. Use it for "the first thing I asked" or "your last answer"."""
    async with within_space(space_id):
        return await run_for_conversation(conversation_id, partial(turns.read_turn, n=n))


async def list_conversations(
    query: Annotated[str | None, Field(max_length=10_000, description="Only conversations about this.")] = None,
    limit: Limit = 10,
    after: Annotated[
        str | None, Field(max_length=2_000, description="To continue: the value that the previous page gave.")
    ] = None,
    space_id: Space = None,
) -> ToolReply:
    """List the person's conversations, newest first, each with its id, title and last message.

    Use it to find the conversation_id for other tools.
    """
    async with within_space(space_id):
        if query is not None:
            return await run(partial(conversations.find_fitting, query=query, limit=limit, after=after))
        return await run(partial(conversations.list_page, limit=limit, after=after))


async def get_context(
    question: Annotated[str, Field(max_length=10_000, description="The question to answer.")],
    conversation_id: ConversationId = None,
    tokens: Annotated[int, Field(ge=200, le=MAX_TOKENS, description="Maximum number of tokens.")] = TOKENS,
    space_id: Space = None,
) -> ToolReply:
    """Get what you need for an answer in one call: summary, open points, relevant passages, newest messages.

    Use it first when the person continues an earlier conversation. For a single detail, search instead.
    """
    async with within_space(space_id):
        return reply(*await context(question, conversation_id, tokens))


async def context(question: str, conversation_id: str | None, tokens: int) -> tuple[str, list[dict[str, object]]]:
    """Return a context pack as a fenced text, and its sources. Nothing is summarized for it, because that would write.

    Args:
        question: The question to answer.
        conversation_id: The conversation, if one is named; otherwise other conversations are recalled, too.
        tokens: The maximum number of tokens.
    """
    named = conversation_id or current_request().options.conversation_id
    handle = await conversation(named)
    pack = await handle.acontext(
        query=question,
        budget=ContextBudget(tokens=tokens),
        model=None,
        recall="user" if named is None else "conversation",
    )
    words = pack.text() or "This conversation has no messages."
    thread_id = handle._key.thread_id
    shown = Passage("context", words, {"conversation_id": thread_id})
    return wrap([shown.element()]), [{"thread_id": thread_id}]
