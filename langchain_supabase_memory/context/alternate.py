"""Make roles alternate, for models whose chat template rejects anything else.

The templates of Mistral, Gemma and Llama 2 require at most one system message, then user and assistant in turn, the
user first. Tool calls and their results come between the two, and templates that support tools do not count them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from langchain_supabase_memory.context.summary_part import opening
from langchain_supabase_memory.language.messages import content

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

NO_ANSWER: Final = "…"
"""The assistant's text in place of a missing answer."""

_BETWEEN: Final = "\n\n"


def alternate_roles(messages: Iterable[BaseMessage], *, ends: bool = False) -> list[BaseMessage]:
    """Merge adjacent messages of one role, with a system message only at the front and a user's message first.

    Args:
        messages: The messages of a request, or those before the user's next message. They do not change.
        ends: Whether the user's next message follows, so that the assistant must speak last.

    Returns:
        The messages, as few as necessary; a message that is not merged is the same object.
    """
    front: list[BaseMessage] = []
    made: list[BaseMessage] = []
    for message in messages:
        role = content.role(message)
        if role == "system" and not made:
            front = [_merge([*front, message])]
            continue
        if role == "system":  # a later system message gets no more authority than the user
            message, role = HumanMessage(content.line(message), id=message.id), "user"
        before = content.role(made[-1]) if made else None
        if before is None and role != "user":
            made.append(opening())
        elif before == role == "user" or (before == role == "assistant" and not content.tool_calls(made[-1])):
            made[-1] = _merge([made[-1], message])
            continue
        elif role == "user" and before != "assistant" and before is not None:
            made.append(_no_answer())
        made.append(message)
    if ends and made and content.role(made[-1]) != "assistant":
        made.append(_no_answer())
    return [*front, *made]


def _no_answer() -> BaseMessage:
    return content.mark_as_ours(AIMessage(NO_ANSWER))


def _merge(messages: Sequence[BaseMessage]) -> BaseMessage:
    """Merge messages of one role, with the id of the last conversation message."""
    if len(messages) == 1:
        return messages[0]
    body = _body([each.content for each in messages])
    said = content.conversation_messages(messages)
    names = {each.name for each in messages}
    common: dict[str, Any] = {"content": body, "name": names.pop() if len(names) == 1 else None}
    last = said[-1] if said else messages[-1]
    kind = content.role(last)
    if kind == "assistant":
        answers = [each for each in messages if isinstance(each, AIMessage)]
        calls = {
            name: [call for each in answers for call in getattr(each, name)]
            for name in ("tool_calls", "invalid_tool_calls")
        }
        made: BaseMessage = AIMessage(**common, **calls, id=last.id)
    else:
        made = (SystemMessage if kind == "system" else HumanMessage)(**common, id=last.id)
    return made if said else content.mark_as_ours(made)


def _body(bodies: Sequence[Any]) -> Any:
    """Merge the contents of several messages: to a string if all are strings."""
    if all(isinstance(each, str) for each in bodies):
        return _BETWEEN.join(filter(None, bodies))
    blocks: list[Any] = []
    for each in bodies:
        blocks += [{"type": "text", "text": each}] if isinstance(each, str) and each else each or []
    return blocks
