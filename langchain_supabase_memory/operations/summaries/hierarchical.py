"""The complete summary of any conversation: summarize ranges of messages, then those summaries, up to one.

Each level covers every message of the level below, in order and once. Finished summaries are reused: when a
conversation continues, only its last branch is written again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory.effects import Flow, Material, TranscriptLine, call
from langchain_supabase_memory.language import prompts
from langchain_supabase_memory.language.quality import is_scored
from langchain_supabase_memory.language.tokens import count_tokens
from langchain_supabase_memory.operations.arguments import conversation_ids
from langchain_supabase_memory.operations.model_calls import ModelAnswerError
from langchain_supabase_memory.operations.summaries.rolling import (
    LONGEST,
    commit_summary,
    lines_that_fit,
    list_segments,
    write_summary,
)
from langchain_supabase_memory.operations.unreadable import numbered_messages
from langchain_supabase_memory.values import ConversationKey, SummaryResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_supabase_memory.settings import SummaryPolicy
    from langchain_supabase_memory.values import Segment

_END: Final = 2**62
_FEWEST: Final = 2
_MAX_MERGED: Final = 8
"""How many summaries are merged into one."""


def summarize_levels(key: ConversationKey, policy: SummaryPolicy, *, model: str | None = None) -> Flow[SummaryResult]:
    """Bring the complete summary up to the newest message.

    Args:
        key: The conversation.
        policy: The summary policy, with every number set; its thresholds and what it keeps are ignored here.
        model: The name that is recorded as the author.

    Returns:
        The result; `segments` are the new ones of the first level. If the model fails, nothing is raised: finished
        parts stay, and the next call continues from there.

    Raises:
        SupabaseMemoryError: The database refused or could not be reached.
    """
    made: list[int] = []
    tokens: list[int] = []
    calls = [0]
    through = -1
    while True:
        pending = yield from call(
            "memory_pending",
            {**conversation_ids(key), "p_until": _END, "p_characters": policy.input_characters, "p_level": 1},
        )
        if pending is None:
            return SummaryResult(-1)
        through = pending["through_sequence"]
        if pending.get("opted_out"):
            return SummaryResult(through, opted_out=True)
        rows = pending["messages"]
        if not rows:
            break
        said = yield from numbered_messages(key, rows)
        try:
            content, clipped = yield from write_summary(
                None, said, pending["characters"], policy, calls, pending.get("topics") or ()
            )
        except ModelAnswerError as reason:
            return SummaryResult(through, made, calls[0], failed=str(reason), tokens=tokens)
        score = yield from is_scored(prompts.lines(said), content)
        arguments = commit_summary(key, pending, content, clipped, score, model, 1)
        commit = yield from call("memory_commit_summary", arguments, "write summary")
        through = commit["through_sequence"]
        if not commit["committed"]:
            return SummaryResult(through, made, calls[0], conflict=True, tokens=tokens)
        made.append(commit["number"])
        tokens.append(count_tokens(content))
        if not pending["more"]:
            break
    level = 1
    parts = yield from list_segments(key, level=level)
    while len(parts) > 1:
        try:
            is_done = yield from _level(key, pending, parts, level + 1, policy, calls, tokens, model)
        except ModelAnswerError as reason:
            return SummaryResult(through, made, calls[0], failed=str(reason), tokens=tokens)
        if not is_done:
            return SummaryResult(through, made, calls[0], conflict=True, tokens=tokens)
        level += 1
        parts = yield from list_segments(key, level=level)
    return SummaryResult(through, made, calls[0], tokens=tokens)


def newest(key: ConversationKey) -> Flow[Segment | None]:
    """Return the current complete summary; `None` if there is none."""
    top = yield from list_segments(key, last=1, level=None)
    return top[0] if top else None


def _level(
    key: ConversationKey,
    pending: Any,
    parts: Sequence[Segment],
    level: int,
    policy: SummaryPolicy,
    calls: list[int],
    tokens: list[int],
    model: str | None,
) -> Flow[bool]:
    """Bring one level up to the one below; return false if another process changed it meanwhile."""
    longest = policy.max_characters or LONGEST
    size = min(max(policy.input_characters // longest, _FEWEST), _MAX_MERGED)
    groups = [parts[start : start + size] for start in range(0, len(parts), size)]
    there = yield from list_segments(key, level=level)
    known = {tuple(each.parts or ()) for each in there}
    is_same = True
    for group in groups:
        is_same = is_same and tuple(each.number for each in group) in known
        if is_same:
            continue
        if len(group) == 1:
            content, clipped = group[0].content, group[0].clipped  # nothing to put together
        else:
            texts = [each.content for each in group]
            material = Material("condense", "\n".join(texts), (), longest)
            content, clipped = yield from lines_that_fit(prompts.merge_prompt(texts, longest), material, policy, calls)
            tokens.append(count_tokens(content))
        source = [TranscriptLine(each.number, "user", None, each.content) for each in group]
        commit = yield from call(
            "memory_commit_parent",
            {
                **conversation_ids(key),
                "p_conversation_id": pending["conversation_id"],
                "p_revision": pending["revision"],
                "p_level": level,
                "p_parts": [each.id for each in group],
                "p_content": content,
                "p_tokens": count_tokens(content),
                "p_model": model,
                "p_clipped": clipped,
                "p_quality": (yield from is_scored(source, content)),
            },
            "write summary",
        )
        if not commit["committed"]:
            return False
    return True
