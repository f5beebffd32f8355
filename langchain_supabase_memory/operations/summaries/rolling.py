"""The rolling summary: a chain of segments, each a summary of the previous segment and the messages since.

The flow reads a range, asks the model without holding a connection, and commits only if the conversation has not
changed since. So a failed, late or conflicting answer changes nothing, and only messages that the model has read
count as covered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory.effects import Flow, Material, call
from langchain_supabase_memory.errors import SupabaseMemoryError
from langchain_supabase_memory.language import prompts
from langchain_supabase_memory.language.messages import content
from langchain_supabase_memory.language.tokens import count_tokens
from langchain_supabase_memory.operations.arguments import check_limit, conversation_ids, retention_argument
from langchain_supabase_memory.operations.model_calls import ModelAnswerError, ask_with_retries, shorten
from langchain_supabase_memory.operations.pages import keys
from langchain_supabase_memory.operations.rows import value_of
from langchain_supabase_memory.operations.unreadable import numbered_messages
from langchain_supabase_memory.values import ConversationKey, Segment, SummaryResult

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_core.messages import BaseMessage

    from langchain_supabase_memory.settings import Retention, SummaryPolicy

PAGE: Final = 100
"""The maximum number of conversations or segments that one call returns."""

_SHORTEST: Final = 200
"""The characters that a summary may always have; shorter ones carry no information."""

LONGEST: Final = 2000
"""The maximum number of characters of a summary if the policy sets none."""


def summarize(
    key: ConversationKey,
    policy: SummaryPolicy,
    *,
    summarizer: str | None = None,
    until: int | None = None,
    at_least_through: int | None = None,
    max_segments: int | None = None,
    respect_backoff: bool = True,
    if_due: bool = False,
) -> Flow[SummaryResult]:
    """Summarize the messages beyond those that the policy keeps, in as many segments and model calls as needed.

    Args:
        key: The conversation.
        policy: The summary policy, with every number set, as `SummaryPolicy.for_budget` returns it.
        summarizer: The name that is recorded as the author.
        until: Summarize everything up to this sequence instead, whatever the policy keeps.
        at_least_through: Summarize at least up to this sequence, whatever the policy keeps.
        max_segments: The maximum number of segments.
        respect_backoff: Do nothing during the backoff after a failure.
        if_due: Do nothing unless one of the policy's thresholds is exceeded.

    Returns:
        The result. If the model fails, nothing is changed and nothing is raised; the next attempt comes later.

    Raises:
        SupabaseMemoryError: The database refused or could not be reached.
    """
    from langchain_supabase_memory.language.quality import is_scored  # it reads texts, which no answer waits for

    made: list[int] = []
    calls = [0]
    tokens: list[int] = []
    worst: float | None = None
    through = -1
    characters = policy.input_characters
    while True:
        pending = yield from call(
            "memory_pending",
            {
                **conversation_ids(key),
                "p_keep_characters": policy.keep_characters,
                "p_keep_messages": policy.keep_messages,
                "p_until": until,
                "p_least": at_least_through,
                "p_characters": characters,
                "p_min_quality": policy.min_quality,
                "p_keep_when_poor": policy.keep_when_poor,
                "p_due": _thresholds(policy) if if_due and not made else None,
            },
        )
        if pending is None:
            return SummaryResult(-1, made, calls[0])
        through = pending["through_sequence"]
        characters = pending["characters"]  # fewer than requested after a failure, for the rest of this flow
        rows = pending["messages"]
        if not rows:
            return SummaryResult(
                through, made, calls[0], tokens=tokens, quality=worst, opted_out=pending.get("opted_out", False)
            )
        if respect_backoff and pending["waiting"]:
            return SummaryResult(through, made, calls[0], tokens=tokens, quality=worst, backing_off=True)
        said = yield from numbered_messages(key, rows)
        try:
            content, clipped = yield from write_summary(
                pending["previous"], said, characters, policy, calls, pending.get("topics") or ()
            )
        except ModelAnswerError as reason:
            yield from _failed(key, str(reason))
            return SummaryResult(through, made, calls[0], tokens=tokens, quality=worst, failed=str(reason))
        score = yield from is_scored(prompts.lines(said), content, before=(pending["previous"] or {}).get("content"))
        arguments = commit_summary(key, pending, content, clipped, score, summarizer)
        commit = yield from call("memory_commit_summary", arguments, "write summary")
        through = commit["through_sequence"]
        if not commit["committed"]:
            return SummaryResult(through, made, calls[0], conflict=True, tokens=tokens, quality=worst)
        made.append(commit["number"])
        tokens.append(count_tokens(content))
        worst = score if worst is None else min(worst, score)
        if not pending["more"] or len(made) == max_segments:
            return SummaryResult(through, made, calls[0], tokens=tokens, quality=worst)


def is_summary_due(policy: SummaryPolicy, *, user_id: str | None = None) -> Flow[list[ConversationKey]]:
    """Return the conversations with more unsummarized messages than the policy allows.

    Args:
        policy: The summary policy, with every number set.
        user_id: Only this user's conversations; `None` means all users that the caller may access.

    Returns:
        Their keys; conversations in backoff after a failure are left out.
    """
    beyond = {f"p_{name}": threshold for name, threshold in _thresholds(policy).items()}
    return (yield from keys("memory_due", {**beyond, "p_user_id": user_id}))


def list_segments(
    key: ConversationKey, *, last: int | None = None, level: int | None = 0, retention: Retention | None = None
) -> Flow[list[Segment]]:
    """List the segments of the rolling summary, in order.

    Args:
        key: The conversation.
        last: Only this many of the newest segments; `None` means all.
        level: 0 for the segments of the rolling summary; from 1 on, that level of the complete one; `None` for its
            highest, which is the complete summary itself.
        retention: The retention; summaries beyond its `max_summary_age` are not returned.

    Raises:
        InvalidInputError: `last` is negative.
    """
    check_limit("last", last)
    found: list[Segment] = []
    while last is None or len(found) < last:
        wanted = PAGE if last is None else min(PAGE, last - len(found))
        before = found[0].number if found else None
        bounds = {"p_before": before, "p_limit": wanted, "p_level": level}
        kept = {"p_retention": retention_argument(retention)}
        page = yield from call("memory_summaries", {**conversation_ids(key), **bounds, **kept})
        found = [*map(read_segment, page), *found]
        if len(page) < wanted:
            break
    return found


def read_segment(row: Mapping[str, Any]) -> Segment:
    """Return a row of the summaries as a value."""
    return value_of(Segment, row)


def write_summary(
    previous: Mapping[str, Any] | None,
    messages: Sequence[tuple[int, BaseMessage]],
    characters: int,
    policy: SummaryPolicy,
    calls: list[int],
    topics: Sequence[str] = (),
) -> Flow[tuple[str, bool]]:
    """Ask for the summary, in several pieces if the range is longer than the model's input.

    Returns:
        The summary, and whether it had to be truncated.

    Raises:
        ModelAnswerError: No answer was usable.
    """
    prompt = policy.prompt or prompts.summary_prompt
    covers = 0 if previous is None else previous["covers"]
    covers += sum(content.characters(message) for _, message in messages)
    # A text that is not clearly shorter than what it replaces is no summary.
    longest = min(policy.max_characters or LONGEST, max(covers // 2, _SHORTEST))
    summary = None if previous is None else str(previous["content"])
    clipped = False
    for piece in prompts.pieces(messages, characters):
        material = Material("summary", summary, piece.lines, longest)
        asked = prompts.avoid_topics_prompt(prompt(summary, piece.text, longest), topics)
        summary, clipped = yield from lines_that_fit(asked, material, policy, calls)
    assert summary is not None  # there is at least one piece
    return summary, clipped


def lines_that_fit(
    prompt: Sequence[BaseMessage], material: Material, policy: SummaryPolicy, calls: list[int]
) -> Flow[tuple[str, bool]]:
    """Ask for a text within a maximum length: if it is too long, ask once for a shorter one, then truncate it.

    Returns:
        The text, and whether it had to be truncated.
    """
    longest = material.characters
    text = yield from _ask(prompt, material, policy, calls)
    if len(text) > longest:
        again = Material("condense", text, (), longest)
        text = yield from _ask(prompts.condense_prompt(text, longest), again, policy, calls)
    return (shorten(text, longest), True) if len(text) > longest else (text, False)


def _ask(prompt: Sequence[BaseMessage], material: Material, policy: SummaryPolicy, calls: list[int]) -> Flow[str]:
    return (
        yield from ask_with_retries(
            prompt,
            lambda text: text,
            timeout_seconds=policy.timeout_seconds,
            attempts=policy.attempts,
            calls=calls,
            material=material,
        )
    )


def commit_summary(
    key: ConversationKey,
    pending: Mapping[str, Any],
    content: str,
    clipped: bool,
    score: float,
    model: str | None,
    level: int = 0,
) -> dict[str, Any]:
    """Return the arguments that commit a summary of the pending messages."""
    rows = pending["messages"]
    return {
        **conversation_ids(key),
        "p_conversation_id": pending["conversation_id"],
        "p_through": pending["through_sequence"],
        "p_revision": pending["revision"],
        "p_to": rows[-1]["sequence"],
        "p_message_ids": [row["message_id"] for row in rows],
        "p_content": content,
        "p_tokens": count_tokens(content),
        "p_model": model,
        "p_clipped": clipped,
        "p_level": level,
        "p_quality": score,
    }


def due_argument(policy: SummaryPolicy) -> dict[str, float | None]:
    """Return when a summary is due, and what stays verbatim then, for `memory_context`."""
    names = ("keep_characters", "keep_messages", "min_quality", "keep_when_poor")
    return {**_thresholds(policy), **{name: getattr(policy, name) for name in names}}


def _thresholds(policy: SummaryPolicy) -> dict[str, int | None]:
    return {"characters": policy.characters, "tokens": policy.tokens, "messages": policy.messages}


def _failed(key: ConversationKey, reason: str) -> Flow[None]:
    try:
        yield from call("memory_fail_summary", {**conversation_ids(key), "p_error": reason})
    except SupabaseMemoryError:
        return  # the record only drives the backoff; the caller gets the failure anyway
