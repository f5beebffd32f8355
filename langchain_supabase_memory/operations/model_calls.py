"""Model calls: ask a summarizer until it returns a usable answer; otherwise change nothing."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from langchain_core.messages import AIMessage

from langchain_supabase_memory.effects import Flow, ask, offload
from langchain_supabase_memory.errors import SupabaseMemoryError
from langchain_supabase_memory.language.messages import sanitizer
from langchain_supabase_memory.language.sentences import sentence_ends
from langchain_supabase_memory.language.tokens import count_tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from langchain_core.messages import BaseMessage

    from langchain_supabase_memory.effects import Material

T = TypeVar("T")

_CUT: Final = " […]"
_NOTHING: Final = frozenset({"", "null", "none", "undefined", "nan", "na"})
_MARKS: Final = re.compile(r"[\W_]+")
# How current models start a short refusal.
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
_CUT_OFF: Final = frozenset(
    {"length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded"}
)
_LONGEST_REFUSAL: Final = 300


class ModelAnswerError(Exception):
    """The summarizer returned no usable answer; the message is the reason, in one word."""


def ask_with_retries(
    prompt: Sequence[BaseMessage],
    read: Callable[[str], T | None],
    *,
    timeout_seconds: float,
    attempts: int,
    calls: list[int],
    material: Material | None = None,
    schema: Mapping[str, Any] | None = None,
) -> Flow[T]:
    """Ask until an answer is usable.

    Args:
        prompt: The messages to send.
        read: Parses the text of an answer; returns `None` if the text is not usable.
        timeout_seconds: How long to wait for each answer, in seconds.
        attempts: The maximum number of attempts.
        calls: A list whose only item is incremented with each attempt.
        material: The same input for a summarizer that is not a language model.
        schema: A JSON schema of the answer.

    Raises:
        ModelAnswerError: No answer was usable; the message is the reason, in one word.
        SupabaseMemoryError: There is no summarizer.
    """
    reason = ""
    for attempt in range(attempts):
        calls[0] += 1
        try:
            # A model or server that rejects a schema is asked again without one.
            answer = yield from ask(prompt, timeout_seconds, material, schema if attempt == 0 else None)
        except SupabaseMemoryError:
            raise
        except Exception as error:  # a model, a provider or a network may raise anything
            reason = type(error).__name__
            continue
        text = sanitizer.clean(str(answer.text)).strip()
        reason = _defect(answer, text) or ""
        if not reason:
            found = yield from offload(partial(read, text), len(text))
            if found is not None:
                return found
            reason = "malformed"
    raise ModelAnswerError(reason)


def is_nothing(text: str) -> bool:
    """Return whether a text is no real answer: blank, a word for nothing, or a refusal."""
    return _MARKS.sub("", text).lower() in _NOTHING or is_refusal(text.strip())


def is_refusal(text: str) -> bool:
    """Return whether a short text declines to answer."""
    return len(text) <= _LONGEST_REFUSAL and _REFUSAL.match(text) is not None


def _defect(answer: BaseMessage, text: str) -> str | None:
    """Return why an answer is not usable, in one word; `None` if it is usable."""
    if answer.additional_kwargs.get("refusal"):
        return "refused"
    if isinstance(answer.content, list) and any(
        isinstance(block, dict) and block.get("type") == "refusal" for block in answer.content
    ):
        return "refused"
    said = answer.response_metadata
    finish = {str(said.get(key)).lower() for key in ("finish_reason", "stop_reason", "stopReason")}
    if isinstance(details := said.get("incomplete_details"), dict):  # in the Responses API
        finish.add(str(details.get("reason")).lower())
    if finish & _REFUSED:
        return "refused"
    if finish & _CUT_OFF or said.get("status") == "incomplete":
        return "cut off"
    if isinstance(answer, AIMessage) and (answer.tool_calls or answer.invalid_tool_calls):
        return "called a tool"
    if _MARKS.sub("", text).lower() in _NOTHING:
        return "empty"
    if is_refusal(text):
        return "refused"
    return None


def shorten(text: str, characters: int) -> str:
    """Cut a text after the last sentence that fits, and mark the cut."""
    if len(text) <= characters:
        return text
    room = max(characters - len(_CUT), 0)
    # A cut in the first half would discard too much.
    cut = max([*sentence_ends(text, 0, room), text.rfind("\n", 0, room) + 1])
    cut = cut if cut > room // 2 else room
    return (text[:cut].rstrip() + _CUT)[:characters]


def shorten_to_tokens(text: str, tokens: int) -> str:
    """Cut a text after a sentence so that it has at most about this many tokens."""
    while text and (has := count_tokens(text)) > tokens:
        text = shorten(text, min(len(text) - 1, len(text) * tokens // has))
    return text
