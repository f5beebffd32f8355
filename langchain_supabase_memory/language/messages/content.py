"""What a model reads of a message: its words, its tool calls, its media; and how much that is."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, field
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

from langchain_supabase_memory.language.messages import encoded_data
from langchain_supabase_memory.language.messages.rendering import (
    MEDIA_BLOCKS,
    Rendered,
    as_json,
    call_line,
    is_own_call,
    render,
)
from langchain_supabase_memory.language.tokens import MEDIA_TOKENS, MESSAGE_TOKENS, count_tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from langchain_supabase_memory.values import Role

LC_SOURCE: Final = "lc_source"
"""The key of `additional_kwargs` under which LangChain marks messages that nobody said, such as a summary."""

OURS: Final = "supabase_memory"
"""The value of `lc_source` on messages that this package puts into a prompt."""

STOPPED: Final = "[stopped]"
"""What stands behind a partial answer in a prompt."""

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
# What by itself is no content: providers refuse a message that holds nothing else.
_THOUGHTS: Final = frozenset({"text", "reasoning", "thinking", "redacted_thinking"})
LABELS: Final[dict[Role, str]] = {"user": "User", "assistant": "Assistant", "system": "System", "tool": "Tool"}
"""Who speaks, for a reader."""

HIDDEN: Final = "[…]"
"""What stands in the place of words that are not to be read."""


def role(message: BaseMessage) -> Role:
    """Who speaks, in four words."""
    known = _ROLES.get(type(message))
    if known is not None:
        return known
    if isinstance(message, ChatMessage):
        # A speaker of another name ("moderator") has no more authority than a user.
        return _CHAT_ROLES.get(message.role.lower(), "user")
    return next((role for kind, role in _ROLES.items() if isinstance(message, kind)), "user")


def source(message: BaseMessage) -> str | None:
    """What put a message there if nobody said it: the value of `lc_source`."""
    found = message.additional_kwargs.get(LC_SOURCE)
    return None if found is None else str(found)


def is_conversation(message: BaseMessage) -> bool:
    """Whether a message belongs to the conversation, and was not put there by a summarizer or by us."""
    marked = source(message)
    return marked is None or (marked != OURS and isinstance(message, (AIMessage, ToolMessage)))


def tool_calls(message: BaseMessage) -> list[Mapping[str, Any]]:
    """The calls of an AI message that providers want answered; the invalid ones are sent to them as well."""
    if not isinstance(message, AIMessage):
        return []
    return [*message.tool_calls, *message.invalid_tool_calls]


def calls_text(calls: Iterable[Mapping[str, Any]]) -> str:
    """What a model reads of tool calls: their names and arguments."""
    return "".join(f"{call.get('name')}{as_json(call.get('args'))}" for call in calls)


def blocks(content: Any) -> list[Mapping[str, Any]]:
    """The content blocks of a message that are no bare text."""
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def media(content: Any) -> list[Mapping[str, Any]]:
    """The images and files among the content blocks."""
    return [block for block in blocks(content) if _kind(block) in MEDIA_BLOCKS]


def words(message: BaseMessage) -> str:
    """What the model or a person could have read of it, without calls of the application's tools: see `rendering`."""
    return render(message).words


def hidden_characters(message: BaseMessage) -> str:
    """What is sent to a model beside words, calls and media: reasoning, signatures, what is encrypted."""
    return render(message).unsaid


def is_empty(message: BaseMessage) -> bool:
    """Whether there is nothing that a provider would accept as content."""
    if str(message.text).strip() or tool_calls(message) or media(message.content):
        return False
    return all(_kind(block) in _THOUGHTS for block in blocks(message.content))


@dataclass(frozen=True)
class ModelInput:
    """What a model reads of a message, rendered once for all who count it.

    Attributes:
        words: As `words` says.
        others: Its tool calls, and what else is sent as text.
        media: How many images and files.
    """

    words: str = field(repr=False)
    others: tuple[str, ...] = field(repr=False)
    media: int

    @property
    def characters(self) -> int:
        """Characters of words, tool calls and what else is sent; media have none."""
        return len(self.words) + sum(map(len, self.others))

    def tokens(self, count: Callable[[str], int] = count_tokens) -> int:
        """The approximate tokens of the same, and of the media.

        Args:
            count: Counts the tokens of a text.
        """
        texts = filter(None, (self.words, *self.others))
        return MESSAGE_TOKENS + sum(map(count, texts)) + MEDIA_TOKENS * self.media


def model_input(message: BaseMessage, rendered: Rendered | None = None) -> ModelInput:
    """What is counted of a message.

    Args:
        message: Any message.
        rendered: What `render` gives for it, where that is known.
    """
    whole = rendered or render(message)
    return ModelInput(whole.words, (calls_text(tool_calls(message)), whole.calls, whole.unsaid), whole.media)


def characters(message: BaseMessage) -> int:
    """The characters of what a model is sent of a message."""
    return model_input(message).characters


def tokens(message: BaseMessage, count: Callable[[str], int] = count_tokens) -> int:
    """The approximate tokens of what a model is sent of a message."""
    return model_input(message).tokens(count)


def display_text(message: BaseMessage) -> str:
    """A message as text for a reader: words, calls with their arguments, and what is no words by its name."""
    return "\n".join(filter(None, text_and_names(message)))


def text_and_names(message: BaseMessage) -> tuple[str, str]:
    """What `display_text` says, in two: the words with the calls, and the names of what is no words."""
    return _text_and_names(message, render(message))


def _text_and_names(message: BaseMessage, rendered: Rendered) -> tuple[str, str]:
    calls = map(call_line, tool_calls(message))
    return "\n".join(filter(None, [rendered.words, *calls, rendered.calls])), rendered.named


def prose_text(message: BaseMessage) -> tuple[str, str]:
    """What `spoken` says, for rules, models and embedders: data is named, and of a very long text the middle."""
    words, named = text_and_names(message)
    return encoded_data.prose(words), encoded_data.shorten_middle(named)


def plain_name(name: object) -> str:
    """A name on one line, of letters, digits and the signs that names have; empty if nothing of it is left.

    Args:
        name: What a message, or a tool, says that somebody or something is called.
    """
    kept = (each if _is_of_a_name(each) else " " for each in str(name or "")[: 4 * _LONGEST_NAME])
    return " ".join("".join(kept).split())[:_LONGEST_NAME].strip(" .'’@+-_")


def speaker(role: str, name: object = None) -> str:
    """Who speaks: always the role first, for a person can be called like an assistant, a tool or a part of the prompt.

    Args:
        role: `user`, `assistant`, `system` or `tool`, or one of the labels of these.
        name: The name that the message carries, which anybody may have written.

    Returns:
        The role, and the name in brackets, such as `User (Maya)`.
    """
    known = plain_name(name)
    return f"{role} ({known})" if known and known.casefold() != role.casefold() else role


_LONGEST_NAME: Final = 40


def _is_of_a_name(letter: str) -> bool:
    return letter.isalnum() or letter in " .'’@+-_" or unicodedata.category(letter) in ("Mn", "Mc")


def line(message: BaseMessage) -> str:
    """A message in a transcript, such as `User: Hello`.

    Only the first line begins at the margin, so nothing that was said can look like another speaker's line.
    """
    return f"{_label(message)}: {indented(display_text(message))}"


def _label(message: BaseMessage) -> str:
    label = LABELS[role(message)]
    if isinstance(message, (ToolMessage, FunctionMessage)) and message.name:
        label = f"{label} {plain_name(message.name)}".rstrip()
    return label


def indented(text: str) -> str:
    """The text with every line but the first set in by two spaces, whatever character breaks the line."""
    return "\n  ".join(text.splitlines())


MEDIA_CHARACTERS: Final = 1_000
"""The characters that one image or file among the blocks weighs."""


def weight(message: BaseMessage, rendered: Rendered | None = None) -> int:
    """The characters of a message in a transcript: its `line`, the break after it, what is `unsaid`, and its media.

    Args:
        message: Any message.
        rendered: What `render` gives for it, where that is known.
    """
    whole = rendered or render(message)
    text = "\n".join(filter(None, _text_and_names(message, whole)))
    shown = text if text.isprintable() else indented(text)  # what is printable is one line
    media = 0 if isinstance(message.content, str) else MEDIA_CHARACTERS * whole.media
    return len(_label(message)) + len(": ") + len(shown) + 1 + len(whole.unsaid) + media


def without(message: BaseMessage, texts: Collection[str]) -> BaseMessage:
    """The message with a mark in the place of some texts; the message itself where its words hold none of them."""
    made = said = words(message)
    for each in texts:
        made = made.replace(each, HIDDEN)
    if made == said:
        return message
    # One text in the place of whatever they stood in; what has no words stays.
    bare = message.model_copy(update={"additional_kwargs": {}, "response_metadata": {}})
    others = [block for block in blocks(message.content) if not words(bare.model_copy(update={"content": [block]}))]
    return bare.model_copy(update={"content": [{"type": "text", "text": made}, *others]})


def without_calls(message: AIMessage, ids: Collection[str | None]) -> AIMessage:
    """The message without some of its calls, wherever they stand; the message itself where it has none of them."""
    kept = [call for call in message.tool_calls if call["id"] not in ids]
    if len(kept) == len(message.tool_calls):
        return message
    body: Any = message.content
    if isinstance(body, list):
        body = [block for block in body if not any(each in ids for each in _call_ids(block))]
    return message.model_copy(update={"content": body, "tool_calls": kept})


def mark_as_ours(message: BaseMessage) -> BaseMessage:
    """Mark a message of ours, on the object itself, so that it is never taken for something that was said."""
    message.additional_kwargs = {**message.additional_kwargs, LC_SOURCE: OURS}
    return message


def partial(text: str, name: str) -> AIMessage:
    """A partial answer: what a model had said when it was stopped.

    Args:
        text: Its words.
        name: Its id.
    """
    return AIMessage(text, id=name, response_metadata={OURS: {"partial": True}})


def is_partial(message: BaseMessage) -> bool:
    """Whether a message is a partial answer."""
    marks = message.response_metadata.get(OURS)
    return isinstance(marks, dict) and marks.get("partial") is True


def in_prompt(message: BaseMessage) -> BaseMessage:
    """A message as it stands in a prompt: a partial answer says that it was stopped."""
    if not is_partial(message):
        return message
    return message.model_copy(update={"content": f"{message.text.rstrip()} {STOPPED}"})


def conversation_messages(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Those of the messages that belong to the conversation."""
    return [message for message in messages if is_conversation(message)]


def _kind(block: Mapping[str, Any]) -> str:
    kind = block.get("type")
    return kind if isinstance(kind, str) else ""


def _call_ids(block: Any) -> list[str]:
    """The ids of the call that a block is."""
    if not is_own_call(block):
        return []
    return [each for each in (block.get("call_id"), block.get("id")) if isinstance(each, str)]
