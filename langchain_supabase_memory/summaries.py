"""The flows over summaries: make the next segments, do it for all conversations that are due, show them.

A segment is the summary of the one before it and of the messages since. Its range is read, the model is asked with no
connection held, and it is committed only if the conversation is still where it was computed from; so a failed, late or
overtaken answer changes nothing, and nothing is marked as covered that the model was not shown.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from langchain_core.messages import AIMessage

from langchain_supabase_memory import prompts
from langchain_supabase_memory.conversations import keys, named
from langchain_supabase_memory.errors import SupabaseMemoryError
from langchain_supabase_memory.flow import Flow, ask, call
from langchain_supabase_memory.messages import codec, sanitiser
from langchain_supabase_memory.models import ConversationKey, Segment, SummaryResult
from langchain_supabase_memory.tokens import count_tokens

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_core.messages import BaseMessage

    from langchain_supabase_memory.settings import SummaryPolicy

PAGE: Final = 100
"""The most conversations or segments that one call returns."""

_CUT: Final = " […]"
_NOTHING: Final = frozenset({"", "null", "none", "undefined", "nan", "na"})
_MARKS: Final = re.compile(r"[\W_]+")
# What current models say when they decline, at the beginning of a short answer.
_REFUSAL: Final = re.compile(
    r"((i['’]m|i am)( very| so)? sorry|sorry|i apologi[sz]e|my apologies|unfortunately)?[,.!\s]*(but )?"
    r"(as an ai( language)?( model| assistant)?, )?"
    r"i(['’]m| am)? (can['’]t|cannot|won['’]t|unable to|not able to)\b"
    r"[^.]{0,40}\b(help|assist|comply|summari[sz]e|provide|process|do that|fulfill?)\b",
    re.IGNORECASE,
)
_REFUSED: Final = frozenset(
    {"content_filter", "content_filtered", "safety", "refusal", "blocklist", "prohibited_content", "recitation"}
    | {"guardrail_intervened"}
)
_CUT_OFF: Final = frozenset({"length", "max_tokens", "model_length", "model_context_window_exceeded"})
_LONGEST_REFUSAL: Final = 300
_SENTENCE_END: Final = re.compile(r"[.!?。！？…]['\")\]”’]*\s|\n")


class _NoSummaryError(Exception):
    """The model gave none; the text is the reason, in a word."""


def summarise(
    key: ConversationKey,
    policy: SummaryPolicy,
    *,
    model: str | None = None,
    until: int | None = None,
    most_segments: int | None = None,
    patient: bool = True,
) -> Flow[SummaryResult]:
    """Summarise what is beyond what the policy keeps, in as many segments and model calls as it needs.

    Args:
        key: The conversation.
        policy: With every number given, as `SummaryPolicy.within` makes it.
        model: What is noted as the writer.
        until: Summarise everything up to this sequence instead, whatever the policy keeps.
        most_segments: Stop after so many.
        patient: Do nothing while an earlier failure asks to wait.

    Returns:
        What was done. A model that failed is no error: nothing is changed, and the next try comes later.

    Raises:
        SupabaseMemoryError: The database refused or could not be reached.
    """
    made: list[int] = []
    calls = [0]
    through = -1
    characters = policy.input_characters
    while True:
        pending = yield from call(
            "memory_pending",
            {
                **named(key),
                "p_keep_characters": policy.keep_characters,
                "p_keep_messages": policy.keep_messages,
                "p_until": until,
                "p_characters": characters,
            },
        )
        if pending is None:
            return SummaryResult(-1, made, calls[0])
        through = pending["through_sequence"]
        characters = pending["characters"]  # fewer than asked for after a failure, and then to the end
        rows = pending["messages"]
        if not rows:
            return SummaryResult(through, made, calls[0])
        if patient and pending["waiting"]:
            return SummaryResult(through, made, calls[0], waiting=True)
        try:
            content, clipped = yield from _written(pending["previous"], rows, characters, policy, calls)
        except _NoSummaryError as reason:
            yield from _failed(key, str(reason))
            return SummaryResult(through, made, calls[0], failed=str(reason))
        commit = yield from call(
            "memory_commit_summary",
            {
                **named(key),
                "p_conversation_id": pending["conversation_id"],
                "p_through": through,
                "p_revision": pending["revision"],
                "p_to": rows[-1]["sequence"],
                "p_message_ids": [row["message_id"] for row in rows],
                "p_content": content,
                "p_characters": len(content),
                "p_tokens": count_tokens(content),
                "p_model": model,
                "p_clipped": clipped,
            },
        )
        through = commit["through_sequence"]
        if not commit["committed"]:
            return SummaryResult(through, made, calls[0], overtaken=True)
        made.append(commit["number"])
        if not pending["more"] or len(made) == most_segments:
            return SummaryResult(through, made, calls[0])


def due(policy: SummaryPolicy, *, user_id: str | None = None) -> Flow[list[ConversationKey]]:
    """The conversations of which more is not yet summarised than the policy allows.

    Args:
        policy: With every number given.
        user_id: Only this user's; `None` means everybody's that the caller may see.

    Returns:
        Their keys; those that wait after a failure are not among them.
    """
    beyond = {"p_characters": policy.characters, "p_tokens": policy.tokens, "p_messages": policy.messages}
    return (yield from keys("memory_due", {**beyond, "p_user_id": user_id}))


def segments(key: ConversationKey, *, last: int | None = None) -> Flow[list[Segment]]:
    """The stored summaries of a conversation, in order.

    Args:
        key: The conversation.
        last: Only the newest so many; `None` means all.
    """
    found: list[Segment] = []
    while last is None or len(found) < last:
        wanted = PAGE if last is None else min(PAGE, last - len(found))
        before = found[0].number if found else None
        page = yield from call("memory_summaries", {**named(key), "p_before": before, "p_limit": wanted})
        found = [*map(segment, page), *found]
        if len(page) < wanted:
            break
    return found


def segment(row: Mapping[str, Any]) -> Segment:
    """A row of the summaries as a value."""
    fields = {name: row[name] for name in Segment.__dataclass_fields__ if name in row}
    return Segment(**{**fields, "created_at": datetime.fromisoformat(row["created_at"])})


def _written(
    previous: Mapping[str, Any] | None,
    rows: Sequence[Mapping[str, Any]],
    characters: int,
    policy: SummaryPolicy,
    calls: list[int],
) -> Flow[tuple[str, bool]]:
    """Ask for the summary, piece by piece where the range is longer than the model's input."""
    prompt = policy.prompt or prompts.summary_prompt
    longest = policy.max_characters or 2000
    summary = None if previous is None else str(previous["content"])
    clipped = False
    messages = [(row["sequence"], codec.from_payload(row["payload"])) for row in rows]
    for piece in prompts.transcript(messages, characters):
        summary = yield from _asked(prompt(summary, piece, longest), policy, calls)
        if len(summary) > longest:
            summary = yield from _asked(prompts.condense_prompt(summary, longest), policy, calls)
        if len(summary) > longest:
            summary, clipped = shortened(summary, longest), True
    assert summary is not None  # there is at least one piece
    return summary, clipped


def _asked(prompt: Sequence[BaseMessage], policy: SummaryPolicy, calls: list[int]) -> Flow[str]:
    reason = ""
    for _ in range(policy.attempts):
        calls[0] += 1
        try:
            answer = yield from ask(prompt, policy.timeout_seconds)
        except SupabaseMemoryError:
            raise
        except Exception as error:  # whatever a model, a provider or a network raises
            reason = type(error).__name__
            continue
        text = sanitiser.clean(str(answer.text)).strip()
        reason = _defect(answer, text) or ""
        if not reason:
            return text
    raise _NoSummaryError(reason)


def _defect(answer: BaseMessage, text: str) -> str | None:
    """Why an answer is no summary, in a word; `None` if it is one."""
    if answer.additional_kwargs.get("refusal"):
        return "refused"
    if isinstance(answer.content, list) and any(
        isinstance(block, dict) and block.get("type") == "refusal" for block in answer.content
    ):
        return "refused"
    said = answer.response_metadata
    finish = {str(said.get(key)).lower() for key in ("finish_reason", "stop_reason", "stopReason")}
    if finish & _REFUSED:
        return "refused"
    if finish & _CUT_OFF or said.get("status") == "incomplete":
        return "cut off"
    if isinstance(answer, AIMessage) and (answer.tool_calls or answer.invalid_tool_calls):
        return "called a tool"
    if _MARKS.sub("", text).lower() in _NOTHING:
        return "empty"
    if len(text) <= _LONGEST_REFUSAL and _REFUSAL.match(text):
        return "refused"
    return None


def shortened(text: str, characters: int) -> str:
    """A text cut after the last sentence that fits, with a mark that it was cut."""
    if len(text) <= characters:
        return text
    room = max(characters - len(_CUT), 0)
    ends = [found.end() for found in _SENTENCE_END.finditer(text, 0, room)]
    # A sentence end in the first half would throw too much away.
    cut = ends[-1] if ends and ends[-1] > room // 2 else room
    return (text[:cut].rstrip() + _CUT)[:characters]


def _failed(key: ConversationKey, reason: str) -> Flow[None]:
    try:
        yield from call("memory_fail_summary", {**named(key), "p_error": reason})
    except SupabaseMemoryError:
        return  # the note is only for patience; that the summary failed is said to the caller
