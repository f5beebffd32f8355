"""Say in a space's prompts which member wrote a message: `[said by Ana]` in the line above their words.

The author is who the database says wrote it. What a message says of its author by itself (`name`, or such a line in its
text) is no evidence: the name is left out, and the line is quoted. Outside of spaces nothing here is used.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any, Final

from langchain_core.messages import ChatMessage, HumanMessage

from langchain_supabase_memory.language.messages import content, fence

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_core.messages import BaseMessage

AUTHOR: Final = "supabase_memory_author"
"""The key of `additional_kwargs` for what `attributed` has changed in a message."""

_LABEL: Final = re.compile(r"\[said by [^\[\]\n]{1,60}\]\n")
_SEPARATORS: Final = r"[^\w\[\]>\uff3b\u3010\u27e6]{0,8}"
_CLAIM: Final = rf"[\[\uff3b\u3010\u27e6]{_SEPARATORS}said{_SEPARATORS}by\b"
_CLAIMED: Final = re.compile(rf"(?i)(?<!> )(?=(?:> )*{_CLAIM})")
_QUOTED: Final = re.compile(rf"(?i)(?<!> )> (?=(?:> )*{_CLAIM})")


def plain_label(label: str) -> str:
    """Return the label of a member for one line; one with other signs than those of names gets a digest instead.

    Args:
        label: What the database calls them, which is a member's own words.
    """
    known = content.plain_name(label)
    if known == label:
        return known
    # Two labels that differ in other signs alone are two members.
    return f"{known[:33]} {hashlib.sha256(label.encode(errors='replace')).hexdigest()[:6]}".strip()


def named(message: BaseMessage, label: str | None) -> BaseMessage:
    """Return a member's message with their label as its name, for transcripts; others keep theirs.

    Args:
        message: A message of a space.
        label: What the database calls its author; `None` if it knows none.
    """
    known = None if label is None else plain_label(label)
    if content.role(message) != "user" or message.name == known:
        return message
    return message.model_copy(update={"name": known})


def attributed(message: BaseMessage, label: str | None) -> BaseMessage:
    """Return a member's message with the line that names them, as it stands in a prompt; others stay as they are.

    Args:
        message: A message of a space.
        label: What the database calls its author; `None` if it knows none.
    """
    if content.role(message) != "user" or not content.is_conversation(message) or content.is_empty(message):
        return message
    if isinstance(message, ChatMessage):
        is_known = message.role.lower() in {"user", "human"}
        said = message.content if is_known else f"{message.role}: {content.display_text(message)}"
        message = HumanMessage(said, id=message.id)
    front = "" if label is None else f"[said by {plain_label(label)}]\n"
    body = _each_text(message.content, lambda text: _CLAIMED.sub("> ", text))
    if not front and body == message.content and message.name is None:
        return message
    if front:
        body = front + body if isinstance(body, str) else [{"type": "text", "text": front}, *body]
    marks = {**message.additional_kwargs, AUTHOR: {"length": len(front), "name": message.name}}
    return message.model_copy(update={"content": body, "name": None, "additional_kwargs": marks})


def own_words(message: BaseMessage) -> BaseMessage:
    """Return a message as it was before `attributed` and `fence.with_prefix`, if it has their marks."""
    message = fence.without_prefix(message)
    mark = message.additional_kwargs.get(AUTHOR)
    if mark is None:
        return message
    marks = {name: value for name, value in message.additional_kwargs.items() if name != AUTHOR}
    if not isinstance(mark, dict) or not isinstance(message, HumanMessage):
        return message.model_copy(update={"additional_kwargs": marks})
    body = _each_text(_without_label(message.content, mark.get("length")), lambda text: _QUOTED.sub("", text))
    name = mark.get("name")
    known = name if isinstance(name, str) else None
    return message.model_copy(update={"content": body, "name": known, "additional_kwargs": marks})


def _each_text(body: Any, change: Callable[[str], str]) -> Any:
    """Return a message's content with its texts changed."""
    if isinstance(body, str):
        return change(body)
    return [
        change(block)
        if isinstance(block, str)
        else {**block, "text": change(block["text"])}
        if isinstance(block, dict) and isinstance(block.get("text"), str)
        else block
        for block in body
    ]


def _without_label(body: Any, length: object) -> Any:
    """Return a content without the label at its front, also where a text has become blocks since."""
    if type(length) is not int or length <= 0:
        return body
    if isinstance(body, str):
        return body[length:] if _LABEL.fullmatch(body[:length]) else body
    first: Any = body[0] if body else None
    text = first.get("text") if isinstance(first, dict) else None
    if not isinstance(text, str) or not _LABEL.fullmatch(text[:length]):
        return body
    rest = [{**first, "text": text[length:]}] if text[length:] else []
    return [*rest, *body[1:]]
