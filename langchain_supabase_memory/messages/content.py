"""What a model reads of a message: its words, its tool calls, its media; and how much that is."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from langchain_supabase_memory.tokens import MEDIA_TOKENS, MESSAGE_TOKENS, count_tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from langchain_supabase_memory.models import Role

LC_SOURCE: Final = "lc_source"
"""The key of `additional_kwargs` under which LangChain marks messages that nobody said, such as a summary."""

OURS: Final = "supabase_memory"
"""The value of `lc_source` on messages that this package puts into a prompt."""

IMAGE_BLOCKS: Final = frozenset({"image", "image_url", "input_image"})
MEDIA_BLOCKS: Final = IMAGE_BLOCKS | {
    "file", "input_file", "audio", "input_audio", "video", "text-plain", "media", "document"
}  # fmt: skip

_ROLES: Final[dict[type[BaseMessage], Role]] = {
    HumanMessage: "user",
    AIMessage: "assistant",
    SystemMessage: "system",
    ToolMessage: "tool",
    FunctionMessage: "tool",
}
_CHAT_ROLES: Final[dict[str, Role]] = {
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "tool",
}
# Blocks that repeat `tool_calls`, which is counted already.
_CALL_BLOCKS: Final = frozenset({"tool_use", "function_call", "tool_call", "tool_call_chunk", "invalid_tool_call"})
# What by itself is no content: providers refuse a message that holds nothing else.
_THOUGHTS: Final = frozenset({"text", "reasoning", "thinking", "redacted_thinking"})
_DEEPEST: Final = 32
LABELS: Final[dict[Role, str]] = {"user": "User", "assistant": "Assistant", "system": "System", "tool": "Tool"}
"""Who speaks, for a reader."""

HIDDEN: Final = "[…]"
"""What stands in the place of words that are not to be read."""

_LONGEST_NAME: Final = 64


def role(message: BaseMessage) -> Role:
    """Who speaks, in four words."""
    if isinstance(message, ChatMessage):
        # A speaker of another name ("moderator") has no more authority than a user.
        return _CHAT_ROLES.get(message.role.lower(), "user")
    return next((role for kind, role in _ROLES.items() if isinstance(message, kind)), "user")


def source(message: BaseMessage) -> str | None:
    """What put a message there if nobody said it: the value of `lc_source`."""
    found = message.additional_kwargs.get(LC_SOURCE)
    return None if found is None else str(found)


def was_said(message: BaseMessage) -> bool:
    """Whether a message belongs to the conversation, and was not put there by a summariser or by us."""
    marked = source(message)
    return marked is None or (marked != OURS and isinstance(message, (AIMessage, ToolMessage)))


def tool_calls(message: BaseMessage) -> list[Mapping[str, Any]]:
    """The calls of an AI message that providers want answered; the invalid ones are sent to them as well."""
    if not isinstance(message, AIMessage):
        return []
    return [*message.tool_calls, *message.invalid_tool_calls]


def calls_text(calls: Iterable[Mapping[str, Any]]) -> str:
    """What a model reads of tool calls: their names and arguments."""
    return "".join(f"{call.get('name')}{_json(call.get('args'))}" for call in calls)


def blocks(content: Any) -> list[Mapping[str, Any]]:
    """The content blocks of a message that are no bare text."""
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def media(content: Any) -> list[Mapping[str, Any]]:
    """The images and files among the content blocks."""
    return [block for block in blocks(content) if block.get("type") in MEDIA_BLOCKS]


def words(message: BaseMessage) -> str:
    """The plain text, with a text file's text."""
    text = str(message.text)
    if isinstance(message.content, str):
        return text
    files = [each for each in map(_file_text, media(message.content)) if each is not None]
    return "\n".join([text, *files] if text else files)


def unsaid(message: BaseMessage) -> str:
    """What is sent to a model beside words, calls and media: reasoning, signatures, results of a server's tools."""
    others = [
        block
        for block in blocks(message.content)
        if block.get("type") not in MEDIA_BLOCKS and block.get("type") not in _CALL_BLOCKS
    ]
    return "".join(leaf for block in others for leaf in _leaves(block))


def is_empty(message: BaseMessage) -> bool:
    """Whether there is nothing that a provider would accept as content."""
    if words(message).strip() or tool_calls(message) or media(message.content):
        return False
    return all(block.get("type") in _THOUGHTS for block in blocks(message.content))


def characters(message: BaseMessage) -> int:
    """Characters of words, tool calls and what else is sent; media have none."""
    return len(words(message)) + len(calls_text(tool_calls(message))) + len(unsaid(message))


def tokens(message: BaseMessage, count: Callable[[str], int] = count_tokens) -> int:
    """The approximate tokens of the same, and of the media.

    Args:
        message: Any message.
        count: Counts the tokens of a text.
    """
    said = (words(message), calls_text(tool_calls(message)), unsaid(message))
    return MESSAGE_TOKENS + sum(count(text) for text in said if text) + MEDIA_TOKENS * len(_pictures(message))


def shown(message: BaseMessage) -> str:
    """A message as text for a reader: words, media by name, calls with their arguments."""
    parts = [words(message)] if words(message) else []
    parts += [f"[{_name(block.get('type'))}]" for block in _pictures(message)]
    parts += [f"[calls {_name(call.get('name'))}({_json(call.get('args'))})]" for call in tool_calls(message)]
    return "\n".join(parts)


def line(message: BaseMessage) -> str:
    """A message in a transcript, such as `User: Hello`.

    Only the first line begins at the margin, so nothing that was said can look like another speaker's line.
    """
    label = LABELS[role(message)]
    if isinstance(message, (ToolMessage, FunctionMessage)) and message.name:
        label = f"{label} {_name(message.name)}"
    return f"{label}: {indented(shown(message))}"


def indented(text: str) -> str:
    """The text with every line but the first set in by two spaces, whatever character breaks the line."""
    return "\n  ".join(text.splitlines())


def without(message: BaseMessage, texts: Collection[str]) -> BaseMessage:
    """The message with a mark in the place of some texts; the message itself where it holds none of them."""

    def cut(text: str) -> str:
        for each in texts:
            text = text.replace(each, HIDDEN)
        return text

    def cut_block(block: Any) -> Any:
        if isinstance(block, str):
            return cut(block)
        has_text = isinstance(block, dict) and isinstance(block.get("text"), str)
        return {**block, "text": cut(block["text"])} if has_text else block

    content = message.content
    made: Any = cut(content) if isinstance(content, str) else [cut_block(each) for each in content]
    return message if made == content else message.model_copy(update={"content": made})


def marked(message: BaseMessage) -> BaseMessage:
    """Mark a message of ours, on the object itself, so that it is never taken for something that was said."""
    message.additional_kwargs = {**message.additional_kwargs, LC_SOURCE: OURS}
    return message


def said(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Those of the messages that belong to the conversation."""
    return [message for message in messages if was_said(message)]


def _pictures(message: BaseMessage) -> list[Mapping[str, Any]]:
    """The media that are no text files."""
    return [block for block in media(message.content) if _file_text(block) is None]


def _file_text(block: Mapping[str, Any]) -> str | None:
    """The text of a text file; `None` for other media."""
    source = block.get("source")
    text = source.get("data") if isinstance(source, dict) and source.get("type") == "text" else block.get("text")
    return text if isinstance(text, str) else None


def _name(name: Any) -> str:
    return " ".join(str(name).split())[:_LONGEST_NAME]


def _json(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError):
        return type(value).__name__


def _leaves(value: Any, *, depth: int = 0) -> list[str]:
    """The texts in a block, but for its own text (which is counted) and its names."""
    if isinstance(value, str):
        return [value]
    if depth > _DEEPEST:
        return []
    if isinstance(value, dict):
        skipped = {"type", "id", "index", *(("text",) if depth == 0 and value.get("type") == "text" else ())}
        return [leaf for key, item in value.items() if key not in skipped for leaf in _leaves(item, depth=depth + 1)]
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in _leaves(item, depth=depth + 1)]
    return []
