"""Summarize now, with the memory's summarizer or one given in the call."""

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
    """Summarize now the messages beyond those that the policy keeps verbatim, whether due or not.

    Args:
        services: The memory.
        key: The conversation.
        policy: The summary policy; the memory's by default.
        model: The model; the memory's by default.

    Returns:
        The result. If the model fails, nothing is changed and nothing is raised.

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

    The board is revised first, because topics and key facts come from it. Finished summaries are reused: when a
    conversation continues, only the last branch is written again.

    Args:
        services: The memory.
        key: The conversation.
        policy: The maximum length of a summary and the input of one model call; the memory's by default.
        model: The model; the memory's by default.

    Returns:
        The summary. If the model fails, nothing is raised: finished parts stay, and the next call continues.

    Raises:
        ConfigurationError: There is no model.
        SupabaseMemoryError: The database refused or could not be reached.
    """
    config = services.config
    summarizer = yield from _summarizer(services, model)
    name = summarizer.name
    revised = revise_board(
        key, config.board_policy, summarizer=name, time_zone=config.time_zone, profile=config.profile
    )
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
    """Summarize every conversation with more unsummarized messages than the policy allows.

    Call it from a scheduled task if the policy's mode is `background`. Any number of processes may call it at once:
    one of them wins each segment, and the others change nothing.

    Args:
        services: The memory.
        user_id: Only this user's conversations; by default the memory's user.
        policy: The summary policy; the memory's by default.
        model: The model; the memory's by default.

    Returns:
        The result for each conversation that was due.

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
