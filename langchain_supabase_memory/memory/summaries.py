"""Summaries that are made now, by the memory's summarizer or by one that a call names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_supabase_memory.adapters import summarizer as summarizers
from langchain_supabase_memory.operations import pages, summaries
from langchain_supabase_memory.operations.boards.revise import revise_board
from langchain_supabase_memory.operations.summaries import complete
from langchain_supabase_memory.settings import INHERITED
from langchain_supabase_memory.values import SummaryResult

if TYPE_CHECKING:
    from langchain_supabase_memory.adapters.summarizer import Summarizer, SummaryModel
    from langchain_supabase_memory.effects import Flow
    from langchain_supabase_memory.memory.services import Services
    from langchain_supabase_memory.operations.summaries.complete import CompleteSummary
    from langchain_supabase_memory.settings import SummaryPolicy
    from langchain_supabase_memory.values import ConversationKey


def summarize(
    services: Services, key: ConversationKey, *, policy: SummaryPolicy | None = None, model: Summarizer | None = None
) -> Flow[SummaryResult]:
    """Summarize now what is beyond what the policy keeps verbatim, whether it is due or not.

    Args:
        services: The memory.
        key: The conversation.
        policy: How; the memory's by default.
        model: The model; the memory's by default.

    Returns:
        What was done. A model that failed is no error: nothing is changed.

    Raises:
        ConfigurationError: There is no model.
        SupabaseMemoryError: The database refused or could not be reached.
    """
    summarizer = yield from _summarizer(services, model)
    within = services.summary_policy(policy)
    made = summaries.summarize(key, within, summarizer=summarizer.name, respect_backoff=False)
    return (yield from summarizers.asking(made, summarizer))


def complete_summary(
    services: Services, key: ConversationKey, *, policy: SummaryPolicy | None = None, model: Summarizer | None = None
) -> Flow[CompleteSummary]:
    """Summarize the whole conversation, of any length, level by level, with its vector, topics and key facts.

    The board is revised first: topics and key facts are its own. What was made before is used again, so that of a
    conversation that went on only the last branch is written anew.

    Args:
        services: The memory.
        key: The conversation.
        policy: How long a summary may be, how much one call of the model reads; the memory's by default.
        model: The model; the memory's by default.

    Returns:
        The summary. A model that failed is no error: what was made stays, and the next call goes on.

    Raises:
        ConfigurationError: There is no model.
        SupabaseMemoryError: The database refused or could not be reached.
    """
    config = services.config
    summarizer = yield from _summarizer(services, model)
    name = summarizer.name
    revised = revise_board(key, config.board_policy, summarizer=name, time_zone=config.time_zone)
    yield from summarizers.asking(revised, summarizer)
    made = complete.complete_summary(
        key, services.summary_policy(policy), summarizer=name, embedder=services.embedder_name
    )
    return (yield from summarizers.asking(made, summarizer))


def summarize_due(
    services: Services,
    user_id: str | None,
    *,
    policy: SummaryPolicy | None = None,
    model: Summarizer | None = None,
) -> Flow[dict[ConversationKey, SummaryResult]]:
    """Summarize every conversation of which more is not yet summarized than the policy allows.

    Call it from a scheduled task where the policy's mode is `background`. Any number of processes may do so at
    once: one of them wins each segment, the others change nothing.

    Args:
        services: The memory.
        user_id: Only this user's conversations; the memory's by default.
        policy: When and how; the memory's by default.
        model: The model; the memory's by default.

    Returns:
        What was done for each conversation that was due.

    Raises:
        ConfigurationError: There is no model.
        SupabaseMemoryError: The database refused or could not be reached.
    """
    summarizer = yield from _summarizer(services, model)
    within = services.summary_policy(policy)
    done = {}
    for key in (yield from summaries.is_summary_due(within, user_id=user_id)):
        made = summarizers.asking(summaries.summarize(key, within, summarizer=summarizer.name), summarizer)
        done[key] = yield from pages.isolate_failure(key, made, lambda word: SummaryResult(-1, failed=word))
    return done


def _summarizer(services: Services, model: Summarizer | None) -> Flow[SummaryModel]:
    chosen = yield from summarizers.summarizer_of(INHERITED if model is None else model, services.model)
    return summarizers.require_summarizer(chosen)
