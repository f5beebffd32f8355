"""The context pack and its coverage, with the memory's defaults."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_core.messages import BaseMessage, HumanMessage

from langchain_supabase_memory.adapters import summarizer as summarizers
from langchain_supabase_memory.checks import choice, require_type
from langchain_supabase_memory.context import load
from langchain_supabase_memory.context.coverage import report_coverage
from langchain_supabase_memory.context.pack import ContextPack
from langchain_supabase_memory.context.recall_part import RecallRequest
from langchain_supabase_memory.context.shared_part import NOTHING_SHARED, SharedRequest, shared_request
from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.language.messages import codec
from langchain_supabase_memory.memory.outbox_delivery import pending
from langchain_supabase_memory.memory.pending_manifests import build_manifest, sampled_manifest
from langchain_supabase_memory.operations.boards.perspective import EXAMPLE, Perspective
from langchain_supabase_memory.operations.recall.query import NO_FILTERS, Filters
from langchain_supabase_memory.settings import INHERITED, Inherited, check_settings
from langchain_supabase_memory.values import RECALL_SCOPES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_supabase_memory.adapters.summarizer import Summarizer, SummaryModel
    from langchain_supabase_memory.effects import Flow
    from langchain_supabase_memory.memory.services import Services
    from langchain_supabase_memory.operations.manifests.encoding import Lists
    from langchain_supabase_memory.settings import ContextBudget, Retention, SummaryPolicy
    from langchain_supabase_memory.values import ConversationKey, Coverage, RecallScope


def context(
    services: Services,
    key: ConversationKey,
    current: Sequence[BaseMessage] | BaseMessage | str | None = None,
    *,
    budget: ContextBudget | None = None,
    policy: SummaryPolicy | None = None,
    model: Summarizer | Inherited | None = INHERITED,
    retention: Retention | None = None,
    query: str | Sequence[str] | None = None,
    recall: RecallScope | Inherited | None = INHERITED,
    spaces: Sequence[str] = (),
    agents: Sequence[str] = (),
    perspective: Perspective | None = None,
    filters: Filters,
) -> Flow[ContextPack]:
    """Build the context pack for the next prompt within a budget: a summary, recent messages, recalled passages.

    One round trip, plus the embedding of the query. If the policies say `inline`, a summary is written first if one
    is due and there is a model, and messages that the pack would otherwise miss are indexed first.

    Args:
        services: The memory.
        key: The conversation.
        current: The user's message to answer (or the whole current turn). It is left out of the history, is never
            cut, and comes last in `ContextPack.prompt`. A message without an id gets one, on the object itself, so
            that it is recognized once it is stored.
        budget: The maximum size of the pack; the memory's by default.
        policy: The summary policy; the memory's by default.
        model: The summary model; the memory's by default. With `None` no summary is written.
        retention: The retention to apply; the memory's by default.
        query: What to recall, as for `recall`; the user's message by default. Recalled passages come in addition to
            the recent messages, within the budget's share `recalled`.
        recall: The conversations to recall from: this conversation, all with this agent, or all of this user;
            `None`: none. The memory's by default, or this conversation if a query is given.
        spaces: The ids of at most 10 spaces: the quotes on their boards come in addition, if the user is in them.
        agents: At most 10 other agents of the user: what the boards of the newest conversations with them hold
            comes in addition, and recall searches all conversations with them, too.
        perspective: What the agent watches: the order of the board's items. The usual order by default.
        filters: The filters of the recall.

    Raises:
        InvalidInputError: An argument is not a message, or not one of its choices.
        ConfigurationError: A setting is of another class than its name says.
        MigrationConflictError: The stored vectors come from another model, and a `query` was given.
        SupabaseMemoryError: The database refused or could not be reached.
    """
    summarizer = yield from summarizers.summarizer_of(model, services.model)
    turn = turn_of(current)
    made = load_context(
        services,
        key,
        turn,
        budget=budget,
        policy=policy,
        summarizer=summarizer,
        retention=retention,
        recalling=recall_request(services, turn, query, recall, filters),
        shared=shared_request(spaces, agents, filters.in_zone(services.config.time_zone).time_zone),
        perspective=perspective,
    )
    return (yield from summarizers.asking(made, None if summarizer is services.model else summarizer))


def coverage(services: Services, key: ConversationKey, *, budget: ContextBudget | None = None) -> Flow[Coverage]:
    """Report where every message is: verbatim in the next pack, in a segment, omitted and why, or forgotten.

    The pack recalls nothing: with recalled passages, fewer messages are verbatim and segments cover more. Only the
    messages' numbers are read, not their content; it is meant for people and tests, not for each turn.

    Args:
        services: The memory.
        key: The conversation.
        budget: The budget of the pack; the memory's by default.
    """
    check_settings(budget=budget)
    settings = services.settings
    return (
        yield from report_coverage(
            key,
            budget=budget or settings.budget,
            policy=services.config.policy,
            pending=pending(services, key),
            retention=settings.retention,
        )
    )


def load_context(
    memory: Services,
    key: ConversationKey,
    turn: Sequence[BaseMessage],
    *,
    budget: ContextBudget | None,
    policy: SummaryPolicy | None,
    summarizer: SummaryModel | None,
    retention: Retention | None,
    recalling: RecallRequest | None,
    shared: SharedRequest = NOTHING_SHARED,
    perspective: Perspective | None,
) -> Flow[ContextPack]:
    """Load the pack for a turn, with the memory's defaults."""
    check_settings(budget=budget, policy=policy)
    require_type("perspective", perspective, Perspective, EXAMPLE, optional=True)
    settings = memory.settings
    policy = policy or memory.config.policy
    pack = yield from load.load_context(
        key,
        budget=budget or settings.budget,
        policy=policy,
        current=turn,
        pending=pending(memory, key),
        summarizer=None if summarizer is None else summarizer.name,
        retention=retention or settings.retention,
        recalling=recalling,
        shared=shared,
        profile=memory.config.profile,
        perspective=perspective,
        prepared=memory.may_derive(key),
    )
    memory.causes.warn_if_unattended(pack, has_summarizer=summarizer is not None and policy.mode == "inline")
    return pack


def manifest_of(
    memory: Services,
    key: ConversationKey,
    pack: ContextPack,
    messages: Sequence[BaseMessage],
    idempotency_key: str | None,
) -> Lists | None:
    """Return a pack's manifest to store with the messages that answer it; `None` if none is stored.

    Raises:
        InvalidInputError: It is not a pack, or it belongs to another conversation.
    """
    if not isinstance(pack, ContextPack):
        hint = "Pass what context() returned for this conversation."
        raise InvalidInputError(f"pack must be a ContextPack, not {type(pack).__name__}.", hint=hint)
    if pack.key != key:
        raise InvalidInputError(
            "The pack is of another conversation.", hint="Pass what context() returned for this conversation."
        )
    codec.ensure_ids(messages, idempotency_key)
    policy = memory.config.manifests
    return sampled_manifest(policy, key, build_manifest(policy, pack, "api"), messages)


def turn_of(current: Sequence[BaseMessage] | BaseMessage | str | None) -> list[BaseMessage]:
    """Return the current turn as messages with ids.

    Raises:
        InvalidInputError: An argument is not a message.
    """
    if isinstance(current, str):
        current = [HumanMessage(current)]
    elif isinstance(current, BaseMessage):
        current = [current]
    turn = codec.as_messages([] if current is None else current, "current")
    codec.ensure_ids(turn)
    return turn


def recall_request(
    memory: Services,
    turn: Sequence[BaseMessage],
    query: str | Sequence[str] | None,
    scope: RecallScope | Inherited | None,
    filters: Filters,
) -> RecallRequest | None:
    """Return the recall request for a query, or else for the user's message."""
    if isinstance(scope, Inherited):  # who asks for something wants it recalled
        inherited = memory.config.recall
        scope = inherited if query is None else inherited or "conversation"
    else:
        choice("recall", scope, RECALL_SCOPES, optional=True, more="None", error=InvalidInputError)
    text = str(turn[0].text) if turn else None
    return recall_options(memory, text if query is None else query, scope, filters, strict=query is not None)


def recall_options(
    memory: Services,
    query: str | Sequence[str] | None,
    scope: RecallScope | None,
    filters: Filters = NO_FILTERS,
    *,
    strict: bool = True,
) -> RecallRequest | None:
    """Return the recall request with the memory's embedder and policy; `None` without a scope or text.

    Raises:
        InvalidInputError: The query is not a string, or an argument is not one of its choices.
    """
    if scope is None or query is None or (isinstance(query, str) and not query.strip()):
        return None
    zoned, config = filters.in_zone(memory.config.time_zone), memory.config
    return RecallRequest(query, scope, zoned, memory.capabilities, config.chunking, strict)
