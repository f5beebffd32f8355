"""Handles a model's thoughts, for every source: they become a reasoning block of the answer, never its text."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from langchain_core.messages import AIMessage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

UNANSWERED: Final = "thoughts that no answer follows"
RECAPS: Final = "notes of how long a model thought"

_TAGGED: Final = re.compile(r"\s*<(think|thinking|thought|reasoning)>(.*?)</\1>\s*", re.DOTALL | re.IGNORECASE)
_KEYS: Final = ("reasoning_content", "reasoning", "thinking")

# ChatGPT writes its citations between private use characters, and older ones as 【12†source】.
_MARK: Final = re.compile("[ \t]?\ue200([^\ue200\ue201]*)\ue201|[ \t]?【[0-9:]+†[^】\n]{0,200}】")
_STRAY: Final = re.compile("[\ue200-\ue206]")


def answer(text: str, thoughts: Sequence[str] = (), **fields: Any) -> AIMessage:
    """Return an answer with its thoughts as blocks before its text.

    Args:
        text: Its text; a leading part that is tagged as a thought becomes one.
        thoughts: The model's thoughts.
        fields: The other fields of the message.
    """
    tagged = _TAGGED.match(text)
    if tagged is not None:
        thoughts, text = [*thoughts, tagged[2].strip()], text[tagged.end() :]
    blocks: list[str | dict[str, Any]] = [{"type": "reasoning", "reasoning": each} for each in thoughts if each]
    if not blocks:
        return AIMessage(text, **fields)
    return AIMessage([*blocks, {"type": "text", "text": text}] if text else blocks, **fields)


def reasoning_field(message: Mapping[str, Any]) -> list[str]:
    """Return the thoughts in a separate field of a message, as in OpenAI's chat completions."""
    return [message[key] for key in _KEYS if isinstance(message.get(key), str)][:1]


def without_citations(text: str) -> str:
    """Remove citation marks from a text; a mark that stands for words is replaced with them."""
    return _STRAY.sub("", _MARK.sub(_words, text)) if "\ue200" in text or "†" in text else text


def _words(mark: re.Match[str]) -> str:
    kind, _, held = (mark[1] or "").partition("\ue202")
    words = ""
    if kind == "url":
        words = held.partition("\ue202")[0]
    elif kind == "entity":
        try:
            words = str(json.loads(held.partition("\ue202")[0])[1])
        except (ValueError, LookupError, TypeError, RecursionError):
            words = ""
    blank = mark[0][0] if mark[0][0] in " \t" else ""
    return blank + words if words else ""
