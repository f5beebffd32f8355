"""What a memory's defaults make of a request for a context pack."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from langchain_core.messages import BaseMessage, HumanMessage

from langchain_supabase_memory.context.load import context
from langchain_supabase_memory.context.pack import ContextPack
from langchain_supabase_memory.context.recalled import Recalling
from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.language.messages import codec
from langchain_supabase_memory.memory.delivery import waiting
from langchain_supabase_memory.memory.packs import noted, recorded
from langchain_supabase_memory.operations.recall.question import NO_FILTERS, Filters
from langchain_supabase_memory.settings import Inherited, checked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_supabase_memory.adapters.writer import SummaryModel
    from langchain_supabase_memory.flow import Flow
    from langchain_supabase_memory.memory.core import Core
    from langchain_supabase_memory.operations.manifests.codes import Lists
    from langchain_supabase_memory.settings import ContextBudget, Retention, SummaryPolicy
    from langchain_supabase_memory.values import ConversationKey, RecallScope


def packed(
    memory: Core,
    key: ConversationKey,
    turn: Sequence[BaseMessage],
    *,
    budget: ContextBudget | None,
    policy: SummaryPolicy | None,
    writer: SummaryModel | None,
    retention: Retention | None,
    recalling: Recalling | None,
) -> Flow[ContextPack]:
    """The pack for a turn; what is not said is the memory's."""
    checked(budget=budget, policy=policy)
    settings = memory.settings
    policy = policy or settings.policy
    pack = yield from context(
        key,
        budget=budget or settings.budget,
        policy=policy,
        current=turn,
        waiting=waiting(memory, key),
        model=None if writer is None else writer.name,
        retention=retention or settings.retention,
        recalling=recalling,
    )
    memory.causes.look_at(pack, has_writer=writer is not None and policy.mode == "inline")
    return pack


def manifest_of(
    memory: Core,
    key: ConversationKey,
    pack: ContextPack | None,
    messages: Sequence[BaseMessage],
    idempotency_key: str | None,
) -> Lists | None:
    """What stood in a pack, as it is stored with the messages that answer it; `None` without a pack.

    Raises:
        InvalidInputError: The pack is none, or of another conversation.
    """
    if pack is None:
        return None
    if not isinstance(pack, ContextPack):
        hint = "Pass what context() returned for this conversation."
        raise InvalidInputError(f"pack must be a ContextPack, not {type(pack).__name__}.", hint=hint)
    if pack.key != key:
        raise InvalidInputError(
            "The pack is of another conversation.", hint="Pass what context() returned for this conversation."
        )
    codec.ensure_ids(messages, idempotency_key)
    policy = memory.settings.manifests
    return recorded(policy, key, noted(policy, pack, "api"), messages)


def turn_of(current: Sequence[BaseMessage] | BaseMessage | str | None) -> list[BaseMessage]:
    """The turn under way as messages with ids.

    Raises:
        InvalidInputError: Something passed is no message.
    """
    if isinstance(current, str):
        current = [HumanMessage(current)]
    elif isinstance(current, BaseMessage):
        current = [current]
    turn = codec.checked(current or [])
    codec.ensure_ids(turn)
    return turn


def recalling_for(
    memory: Core,
    turn: Sequence[BaseMessage],
    query: str | Sequence[str] | None,
    scope: RecallScope | Inherited | None,
    filters: Filters,
) -> Recalling | None:
    """What a pack recalls for a query, or else for the user's message."""
    if isinstance(scope, Inherited):  # who asks for something wants it recalled
        inherited = memory.settings.recall
        scope = inherited if query is None else inherited or "conversation"
    text = str(turn[0].text) if turn else None
    made = recalling(memory, text if query is None else query, scope, filters)
    return None if made is None else replace(made, strict=query is not None)


def recalling(
    memory: Core, query: str | Sequence[str] | None, scope: RecallScope | None, filters: Filters = NO_FILTERS
) -> Recalling | None:
    """What a pack recalls for a query, with a memory's embedder and policy; `None` for no scope or no words.

    Raises:
        InvalidInputError: The query is no text, or an argument is none of its choices.
    """
    if scope is None or query is None or (isinstance(query, str) and not query.strip()):
        return None
    made = Recalling(query, scope, filters.in_zone(memory.settings.time_zone), memory.means, memory.settings.chunking)
    made.questions(memory.settings.budget)  # refuses what is no question
    return made
