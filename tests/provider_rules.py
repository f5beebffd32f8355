"""The rules by which OpenAI, Anthropic and Gemini reject requests, as plain functions over the messages.

Each function returns the violations; an empty list means that the provider accepts the messages. The rules come from
the providers' error messages, and from how the integration packages (langchain-openai, langchain-anthropic,
langchain-google-genai) convert messages.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

MEDIA = {"image", "image_url", "input_image", "file", "audio", "video", "text-plain", "document", "media"}
LONGEST_CALL_ID = 40


def openai(messages: list[BaseMessage]) -> list[str]:
    """Return the violations for Chat Completions."""
    found = [f"{place}: a role that not every model knows: {message.type}" for place, message in _strange(messages)]
    for place, calls, results in _rounds(messages):
        ids = [call["id"] or "" for call in calls]
        given = [result.tool_call_id for result in results]
        # "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'."
        if set(ids) - set(given):
            found.append(f"{place}: calls without results: {sorted(set(ids) - set(given))}")
        # "messages with role 'tool' must be a response to a preceding message with 'tool_calls'."
        if set(given) - set(ids) or len(set(given)) < len(given):
            found.append(f"{place}: results without calls: {given} for {ids}")
        # "Invalid 'messages[0].tool_calls[0].id': string too long. Expected a string with maximum length 40."
        if any(not each or len(each) > LONGEST_CALL_ID for each in ids):
            found.append(f"{place}: call ids that are empty or too long: {ids}")
        # "Missing required parameter: 'messages[0].tool_calls[0].function.name'."
        if any(not call["name"] for call in calls):
            found.append(f"{place}: a call without a name")
    for place, message in enumerate(messages):
        # "Invalid value for 'content': expected a string, got null": only an assistant's calls may have none.
        if not isinstance(message, ToolMessage) and not _has_content(message) and not _calls(message):
            found.append(f"{place}: no content")
        # "Invalid type for 'messages[0].content[0]': expected an object, but got a string instead."
        if isinstance(message.content, list) and any(isinstance(part, str) for part in message.content):
            found.append(f"{place}: a bare text among the parts")
    return found


def anthropic(messages: list[BaseMessage]) -> list[str]:
    """Return the violations for the Messages API and langchain-anthropic."""
    found = [f"{place}: a role that not every model knows: {message.type}" for place, message in _strange(messages)]
    # "messages: at least one message is required"
    said = [message for message in messages if not isinstance(message, SystemMessage)]
    if not said:
        return [*found, "no message"]
    # "messages: first message must use the 'user' role"; tool results are the user's too, but lack a preceding call.
    if not isinstance(said[0], HumanMessage):
        found.append(f"begins with {said[0].type}")
    # "Received multiple non-consecutive system messages."
    if any(isinstance(message, SystemMessage) for message in messages[len(messages) - len(said) :]):
        found.append("a system message that is not at the beginning")
    used: list[Any] = []
    for place, calls, results in _rounds(messages):
        ids = [call["id"] or "" for call in calls]
        given = [result.tool_call_id for result in results]
        # "tool_use ids were found without tool_result blocks immediately after"; "Each tool_result block must have a
        # corresponding tool_use block in the previous message"; "each tool_use must have a single result".
        if sorted(given) != sorted(ids):
            found.append(f"{place}: calls {ids}, results {given}")
        used += ids
    # "`tool_use` ids must be unique", in the whole request.
    if len(set(used)) < len(used):
        found.append(f"repeated tool_use ids: {used}")
    for place, message in enumerate(messages):
        # A tool_use block in the content is sent even if `tool_calls` does not contain it.
        ids = [call["id"] for call in _calls(message)]
        stray = [block for block in _blocks(message) if block.get("type") == "tool_use" and block.get("id") not in ids]
        if stray:
            found.append(f"{place}: tool_use in the content without a call")
        # "text content blocks must be non-empty", "text content blocks must contain non-whitespace text".
        if any(not text.strip() for text in _texts(message)):
            found.append(f"{place}: an empty text")
        if not isinstance(message, ToolMessage) and not _has_content(message) and not _calls(message):
            found.append(f"{place}: no content")
    return found


def gemini(messages: list[BaseMessage]) -> list[str]:
    """Return the violations for generateContent and langchain-google-genai, including silent errors."""
    found = [f"{place}: a role that not every model knows: {message.type}" for place, message in _strange(messages)]
    said = [message for message in messages if not isinstance(message, SystemMessage)]
    # "contents is not specified"
    if not said:
        return [*found, "no contents"]
    # "Please ensure that the conversation begins with a user turn."
    if not isinstance(said[0], HumanMessage):
        found.append(f"begins with {said[0].type}")
    # "Please ensure that function call turn comes immediately after a user turn or after a function response turn."
    for place, (before, message) in enumerate(pairwise(said), 1):
        if _function_calls(message) and isinstance(before, AIMessage):
            found.append(f"{place}: a function call after the model's own turn")
    used: list[Any] = []
    for place, _, results in _rounds(messages):
        calls = _function_calls(messages[place]) if isinstance(messages[place], AIMessage) else []
        # "Please ensure that the number of function response parts is equal to the number of function call parts of
        # the function call turn."
        if len(results) != len(calls):
            found.append(f"{place}: {len(calls)} function calls, {len(results)} responses")
        used += [call["id"] for call in calls]
    # langchain-google-genai looks up a call's result by its id in the whole request and takes the first.
    if len(set(used)) < len(used):
        found.append(f"ids that name several calls: {used}")
    for place, message in enumerate(messages):
        # "Unable to submit request because it must include at least one parts field"; invalid calls are not sent.
        if not isinstance(message, ToolMessage) and not _has_content(message) and not _function_calls(message):
            found.append(f"{place}: no parts")
    return found


def _strange(messages: list[BaseMessage]) -> list[tuple[int, BaseMessage]]:
    known = {"human", "ai", "system", "tool"}
    return [(place, message) for place, message in enumerate(messages) if message.type not in known]


def _rounds(messages: list[BaseMessage]) -> list[tuple[int, list[Any], list[ToolMessage]]]:
    """Return place, calls and directly following tool messages of each message that has either."""
    rounds: list[tuple[int, list[Any], list[ToolMessage]]] = []
    for place, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            if place == 0:
                rounds.append((place, [], [message]))
            continue
        end = place + 1
        while end < len(messages) and isinstance(messages[end], ToolMessage):
            end += 1
        results = [each for each in messages[place + 1 : end] if isinstance(each, ToolMessage)]
        if _calls(message) or results:
            rounds.append((place, _calls(message), results))
    return rounds


def _calls(message: BaseMessage) -> list[Any]:
    return [*message.tool_calls, *message.invalid_tool_calls] if isinstance(message, AIMessage) else []


def _function_calls(message: BaseMessage) -> list[Any]:
    if not isinstance(message, AIMessage):
        return []
    # Without `tool_calls` the legacy call is sent.
    legacy = message.additional_kwargs.get("function_call")
    return [*message.tool_calls] or ([{**legacy, "id": "legacy"}] if legacy else [])


def _blocks(message: BaseMessage) -> list[dict[str, Any]]:
    content = message.content
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _texts(message: BaseMessage) -> list[str]:
    content = message.content
    if isinstance(content, str):
        is_left_out = content == "" and (isinstance(message, ToolMessage) or bool(_calls(message)))
        return [] if is_left_out else [content]
    texts = [part if isinstance(part, str) else part.get("text") for part in content if _is_text(part)]
    return [text if isinstance(text, str) else "" for text in texts]


def _is_text(part: Any) -> bool:
    return isinstance(part, str) or part.get("type") == "text"


def _has_content(message: BaseMessage) -> bool:
    return any(text.strip() for text in _texts(message)) or any(
        block.get("type") in MEDIA for block in _blocks(message)
    )
