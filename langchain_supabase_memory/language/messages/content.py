"""The content that a model receives of a message: its text, its tool calls and its media, with their size."""

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
"""The key of `additional_kwargs` that LangChain sets on messages outside the conversation, such as a summary."""

OURS: Final = "supabase_memory"
"""The value of `lc_source` on messages that this package puts into a prompt."""

RELAYED: Final = "supabase_memory_relayed"
"""The key of `additional_kwargs` on messages that a model passed on: only it says that the user wrote them."""

STOPPED: Final = "[stopped]"
"""The text that follows a partial answer in a prompt."""

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
# Blocks that alone are not content: providers reject a message that only has these.
_THOUGHTS: Final = frozenset({"text", "reasoning", "thinking", "redacted_thinking"})
_SCREEN_CALL: Final = "computer_call"
LABELS: Final[dict[Role, str]] = {"user": "User", "assistant": "Assistant", "system": "System", "tool": "Tool"}
"""The speakers' labels for display."""

HIDDEN: Final = "[…]"
"""The placeholder for hidden text."""


def role(message: BaseMessage) -> Role:
    """Return one of the four roles."""
    known = _ROLES.get(type(message))
    if known is not None:
        return known
    if isinstance(message, ChatMessage):
        # A speaker with another role name ("moderator") has no more authority than a user.
        return _CHAT_ROLES.get(message.role.lower(), "user")
    return next((role for kind, role in _ROLES.items() if isinstance(message, kind)), "user")


def source(message: BaseMessage) -> str | None:
    """Return the value of `lc_source`: what created a message that is not part of the conversation."""
    found = message.additional_kwargs.get(LC_SOURCE)
    return None if found is None else str(found)


def is_conversation(message: BaseMessage) -> bool:
    """Return whether a message belongs to the conversation, and was not inserted by a summarizer or this package."""
    marked = source(message)
    return marked is None or (marked != OURS and isinstance(message, (AIMessage, ToolMessage)))


def tool_calls(message: BaseMessage) -> list[Mapping[str, Any]]:
    """Return the calls of an AI message that providers want answered, including invalid ones, which are sent too."""
    if not isinstance(message, AIMessage):
        return []
    return [*message.tool_calls, *message.invalid_tool_calls]


def screen_calls(message: BaseMessage) -> list[str]:
    """Return the ids of an AI message's computer calls: they stand in its blocks alone, and want a screenshot each."""
    if not isinstance(message, AIMessage):
        return []
    found = [block for block in map(native, blocks(message.content)) if _kind(block) == _SCREEN_CALL]
    return [block["call_id"] for block in found if isinstance(block.get("call_id"), str)]


def is_screen(message: BaseMessage) -> bool:
    """Return whether a message is the screenshot that a computer call asked for."""
    if not isinstance(message, ToolMessage):
        return False
    kinds = [message.additional_kwargs.get("type"), *(native(block).get("type") for block in blocks(message.content))]
    return f"{_SCREEN_CALL}_output" in kinds


def calls_text(calls: Iterable[Mapping[str, Any]]) -> str:
    """Return the text of tool calls as a model receives it: names and arguments."""
    return "".join(f"{call.get('name')}{as_json(call.get('args'))}" for call in calls)


def blocks(content: Any) -> list[Mapping[str, Any]]:
    """Return the content blocks of a message that are not bare text."""
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def native(block: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the provider's own block that a `non_standard` one holds; other blocks as they are."""
    value = block.get("value") if block.get("type") == "non_standard" else None
    return value if isinstance(value, dict) else block


def media(content: Any) -> list[Mapping[str, Any]]:
    """Return the images and files among the content blocks."""
    return [block for block in blocks(content) if _kind(block) in MEDIA_BLOCKS]


def words(message: BaseMessage) -> str:
    """Return the text of a message for a model or a person, without the application's tool calls: see `rendering`."""
    return render(message).words


def hidden_characters(message: BaseMessage) -> str:
    """Return what a model is sent besides text, calls and media: reasoning, signatures, encrypted content."""
    return render(message).unsaid


def is_empty(message: BaseMessage) -> bool:
    """Return whether a message has nothing that a provider accepts as content."""
    if str(message.text).strip() or tool_calls(message) or media(message.content):
        return False
    return all(_kind(block) in _THOUGHTS for block in blocks(message.content))


@dataclass(frozen=True)
class ModelInput:
    """The content that a model receives of a message, rendered once for all counters.

    Attributes:
        words: The result of `words`.
        others: Its tool calls, and other content that is sent as text.
        media: The number of images and files.
    """

    words: str = field(repr=False)
    others: tuple[str, ...] = field(repr=False)
    media: int

    @property
    def characters(self) -> int:
        """The characters of the text, the tool calls and other content; media have none."""
        return len(self.words) + sum(map(len, self.others))

    def tokens(self, count: Callable[[str], int] = count_tokens) -> int:
        """Return the approximate tokens of the content, including media.

        Args:
            count: Counts the tokens of a text.
        """
        texts = filter(None, (self.words, *self.others))
        return MESSAGE_TOKENS + sum(map(count, texts)) + MEDIA_TOKENS * self.media


def model_input(message: BaseMessage, rendered: Rendered | None = None) -> ModelInput:
    """Return the content of a message that is counted.

    Args:
        message: Any message.
        rendered: The result of `render` for it, if known.
    """
    whole = rendered or render(message)
    return ModelInput(whole.words, (calls_text(tool_calls(message)), whole.calls, whole.unsaid), whole.media)


def characters(message: BaseMessage) -> int:
    """Return the number of characters that a model is sent of a message."""
    return model_input(message).characters


def tokens(message: BaseMessage, count: Callable[[str], int] = count_tokens) -> int:
    """Return the approximate number of tokens that a model is sent of a message."""
    return model_input(message).tokens(count)


def display_text(message: BaseMessage) -> str:
    """Return a message as text for a reader: its text, its calls with arguments, and the names of other content."""
    return "\n".join(filter(None, text_and_names(message)))


def text_and_names(message: BaseMessage) -> tuple[str, str]:
    """Return the two parts of `display_text`: the text with the calls, and the names of other content."""
    return _text_and_names(message, render(message))


def _text_and_names(message: BaseMessage, rendered: Rendered) -> tuple[str, str]:
    calls = map(call_line, tool_calls(message))
    return "\n".join(filter(None, [rendered.words, *calls, rendered.calls])), rendered.named


def prose_text(message: BaseMessage) -> tuple[str, str]:
    """Return `text_and_names` for rules, models and embedders: data is named, and very long texts lose their middle."""
    words, named = text_and_names(message)
    return encoded_data.prose(words), encoded_data.shorten_middle(named)


def plain_name(name: object) -> str:
    """Return a name on one line with only letters, digits and the signs of names; empty if nothing is left.

    Args:
        name: The name of a person or thing, from a message or a tool.
    """
    if not name:
        return ""
    kept = (each if _is_of_a_name(each) else " " for each in str(name)[: 4 * _LONGEST_NAME])
    return " ".join("".join(kept).split())[:_LONGEST_NAME].strip(" .'’@+-_")


def speaker(role: str, name: object = None) -> str:
    """Return the speaker's label. The role always comes first, since anyone can be named like an assistant or a tool.

    Args:
        role: `user`, `assistant`, `system` or `tool`, or one of their labels.
        name: The name in the message, which is untrusted.

    Returns:
        The role, and the name in parentheses, such as `User (Maya)`.
    """
    known = plain_name(name)
    return f"{role} ({known})" if known and known.casefold() != role.casefold() else role


_LONGEST_NAME: Final = 40


def _is_of_a_name(letter: str) -> bool:
    return letter.isalnum() or letter in " .'’@+-_" or unicodedata.category(letter) in ("Mn", "Mc")


def line(message: BaseMessage) -> str:
    """Return a message as part of a transcript, such as `User: Hello`.

    Only the first line starts at the margin, so message text cannot imitate another speaker's line.
    """
    return f"{_label(message)}: {indented(display_text(message))}"


def _label(message: BaseMessage) -> str:
    label = LABELS[role(message)]
    if isinstance(message, (ToolMessage, FunctionMessage)) and message.name:
        label = f"{label} {plain_name(message.name)}".rstrip()
    return label


def indented(text: str) -> str:
    """Return the text with every line but the first indented by two spaces, whatever character breaks the line."""
    return text if text.isprintable() else "\n  ".join(text.splitlines())  # printable text has one line


MEDIA_CHARACTERS: Final = 1_000
"""The characters that one image or file among the blocks counts as."""


def weight(message: BaseMessage, rendered: Rendered | None = None) -> int:
    """Return the characters of a message in a transcript: its `line`, a line break, its `unsaid` content and its media.

    Args:
        message: Any message.
        rendered: The result of `render` for it, if known.
    """
    whole = rendered or render(message)
    text = "\n".join(filter(None, _text_and_names(message, whole)))
    media = 0 if isinstance(message.content, str) else MEDIA_CHARACTERS * whole.media
    return len(_label(message)) + len(": ") + len(indented(text)) + 1 + len(whole.unsaid) + media


def without(message: BaseMessage, texts: Collection[str]) -> BaseMessage:
    """Replace some texts in a message with a mark; return the message itself if it contains none of them."""
    made = said = words(message)
    for each in texts:
        made = made.replace(each, HIDDEN)
    if made == said:
        return message
    # One text replaces all blocks that contained text; blocks without text stay.
    bare = message.model_copy(update={"additional_kwargs": {}, "response_metadata": {}})
    others = [block for block in blocks(message.content) if not words(bare.model_copy(update={"content": [block]}))]
    return bare.model_copy(update={"content": [{"type": "text", "text": made}, *others]})


def without_calls(message: AIMessage, ids: Collection[str | None]) -> AIMessage:
    """Remove some calls from a message, wherever they are stored; return the message itself if it has none of them."""
    kept = [call for call in message.tool_calls if call["id"] not in ids]
    if len(kept) == len(message.tool_calls):
        return message
    body: Any = message.content
    if isinstance(body, list):
        body = [block for block in body if not any(each in ids for each in _call_ids(block))]
    return message.model_copy(update={"content": body, "tool_calls": kept})


def mark_as_ours(message: BaseMessage) -> BaseMessage:
    """Mark a message on the object itself as inserted by this package, so that it is never taken for conversation."""
    message.additional_kwargs = {**message.additional_kwargs, LC_SOURCE: OURS}
    return message


def mark_as_relayed(message: BaseMessage) -> BaseMessage:
    """Mark a message as passed on by a model, so that nothing in it holds of the user without their confirmation."""
    return message.model_copy(update={"additional_kwargs": {**message.additional_kwargs, RELAYED: True}})


def partial(text: str, name: str) -> AIMessage:
    """Create a partial answer: the text that a model had written when it was stopped.

    Args:
        text: The text.
        name: The id.
    """
    return AIMessage(text, id=name, response_metadata={OURS: {"partial": True}})


def is_partial(message: BaseMessage) -> bool:
    """Return whether a message is a partial answer."""
    return _has_mark(message.response_metadata, "partial")


def as_answer(message: ToolMessage) -> ToolMessage:
    """Mark a tool's message as a final answer: the run ended with it, and no model said anything behind it."""
    return message.model_copy(update={"response_metadata": {**message.response_metadata, OURS: {"final": True}}})


def is_marked_answer(response_metadata: object) -> bool:
    """Return whether the metadata of a tool's message mark it as a final answer."""
    return _has_mark(response_metadata, "final")


def _has_mark(response_metadata: object, mark: str) -> bool:
    marks = response_metadata.get(OURS) if isinstance(response_metadata, dict) else None
    return isinstance(marks, dict) and marks.get(mark) is True


def in_prompt(message: BaseMessage) -> BaseMessage:
    """Return a message as it appears in a prompt: a partial answer says that it was stopped."""
    if not is_partial(message):
        return message
    return message.model_copy(update={"content": f"{message.text.rstrip()} {STOPPED}"})


def conversation_messages(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return the messages that belong to the conversation."""
    return [message for message in messages if is_conversation(message)]


def _kind(block: Mapping[str, Any]) -> str:
    kind = block.get("type")
    return kind if isinstance(kind, str) else ""


def _call_ids(block: Any) -> list[str]:
    """Return the ids of a block that is a call."""
    if not is_own_call(block):
        return []
    return [each for each in (block.get("call_id"), block.get("id")) if isinstance(each, str)]
