"""The export of Claude: `conversations.json`, in which each conversation is a list of messages with content blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from langchain_supabase_memory.language.messages.rendering import as_json
from langchain_supabase_memory.transfer import file_reader, ids
from langchain_supabase_memory.transfer.sources.chatml_sharegpt import time_of
from langchain_supabase_memory.transfer.sources.safe_iter import safe_iter
from langchain_supabase_memory.transfer.sources.thoughts import UNANSWERED
from langchain_supabase_memory.transfer.values import LossCount, SourceMessage, SourceProblem, ThreadStart

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from langchain_supabase_memory.transfer.values import Event

_HINT: Final = "Download the export again, or pass skip=True (--skip) to leave such a message out."
_REASONING: Final = {"thinking": "thinking", "reasoning": "reasoning"}


def claude(path: str | os.PathLike[str], *, encoding: str | None = None) -> Iterator[Event]:
    """Read an export of Claude: `conversations.json`, or the folder or archive with it, in one file or in several.

    The text of attachments is included in the message. Tool calls and results become separate messages. The model's
    thoughts become a reasoning block of the answer. If messages name their parent, it takes the branch that ends with
    the last message; messages on other branches are counted. Of images and other files the export only has the names.

    Args:
        path: The file, the folder, or the ZIP archive.
        encoding: The file's encoding; by default it is detected from the first bytes, or UTF-8.
    """
    for number, document in file_reader.conversations(path, encoding, "conversations.json"):
        place = f"conversation {number}"
        yield from safe_iter(_conversation(document, number, place), "The conversation cannot be read.", _HINT, place)


def _conversation(document: Any, number: int, place: str) -> Iterator[Event]:
    listed = document.get("chat_messages") if isinstance(document, dict) else None
    if not isinstance(listed, list):
        yield SourceProblem("The conversation has no list of messages.", _HINT, place)
        return
    began, changed = (time_of(document.get(name)) for name in ("created_at", "updated_at"))
    title = document.get("name")
    first = next((each.get("uuid") for each in listed if isinstance(each, dict)), None)
    thread = str(document.get("uuid") or ids.thread_id("claude", number if first is None else first))
    yield ThreadStart(
        thread, place, title=title if isinstance(title, str) else None, created_at=began, updated_at=changed
    )
    shown = _branch(listed)
    if len(shown) < len(listed):
        yield LossCount("messages of branches that were not shown last", place, len(listed) - len(shown))
    for position, message in enumerate(shown):
        where = f"{place}, message {position + 1}"
        made = _Message(message, thread, position, where).events()
        yield from safe_iter(made, "The message cannot be read.", _HINT, where)


def _branch(messages: list[Any]) -> list[Any]:
    """Return the messages from the first to the last one; all messages if they do not name their parents."""
    named = {each["uuid"]: each for each in messages if isinstance(each, dict) and isinstance(each.get("uuid"), str)}
    if len(named) < len(messages) or not any(_parent(each) in named for each in messages):
        return messages
    path: dict[str, Any] = {}
    name: Any = messages[-1]["uuid"]
    while name in named and name not in path:
        path[name] = named[name]
        name = _parent(named[name])
    return [*reversed(path.values())]


def _parent(message: Mapping[str, Any]) -> str | None:
    """Return a message's parent, if it names one."""
    given = message.get("parent_message_uuid")
    return given if isinstance(given, str) else None


class _Message:
    """One message of the export: becomes one of ours, or several if it used tools."""

    def __init__(self, message: Any, thread: str, position: int, place: str) -> None:
        self._message: Mapping[str, Any] = message if isinstance(message, dict) else {}
        self._name = str(self._message.get("uuid") or ids.message_id(thread, position))
        self._place = place
        self._made = 0

    def events(self) -> Iterator[Event]:
        said_at = time_of(self._message.get("created_at"))
        sender = self._message.get("sender")
        if sender not in ("human", "assistant"):
            yield SourceProblem("A message is neither of a human nor of an assistant.", _HINT, self._place)
            return
        files = [each for each in self._message.get("files") or [] if isinstance(each, dict)]
        names = [str(each["file_name"]) for each in files if each.get("file_name")]
        if files:
            yield LossCount("images and files, of which the export has the names alone", self._place, len(files))
        beside = {"attachments": names} if names else None
        blocks = self._message.get("content")
        listed = [each for each in blocks if isinstance(each, dict)] if isinstance(blocks, list) else []
        if not listed and isinstance(self._message.get("text"), str):
            listed = [{"type": "text", "text": self._message["text"]}]
        if sender == "human":
            yield from self._human(listed, said_at, beside)
        else:
            yield from self._assistant(listed, said_at, beside)

    def _human(
        self, blocks: list[dict[str, Any]], said_at: datetime | None, extra: Mapping[str, Any] | None
    ) -> Iterator[Event]:
        texts = [each["text"] for each in blocks if isinstance(each.get("text"), str) and each["text"]]
        parts: list[str | dict[str, Any]] = [{"type": "text", "text": text} for text in texts]
        for each in self._message.get("attachments") or []:
            held = each.get("extracted_content") if isinstance(each, dict) else None
            if isinstance(held, str) and held:
                parts.append({"type": "text", "text": f"{each.get('file_name') or 'attachment'}:\n{held}"})
            else:
                yield LossCount("attachments without their text", self._place)
        body = texts[0] if len(parts) == 1 and texts else parts
        if parts or extra:
            yield SourceMessage(self._place, HumanMessage(body, id=self._id()), said_at, extra)

    def _assistant(
        self, blocks: list[dict[str, Any]], said_at: datetime | None, extra: Mapping[str, Any] | None
    ) -> Iterator[Event]:
        parts: list[str | dict[str, Any]] = []
        calls: list[dict[str, Any]] = []
        open_call: str | None = None
        for block in blocks:
            kind = block.get("type")
            if kind == "text" and isinstance(block.get("text"), str):
                if calls:
                    yield self._ai(parts, calls, said_at, extra)
                    parts, calls = [], []
                parts.append({"type": "text", "text": block["text"]})
            elif isinstance(kind, str) and kind in _REASONING:
                if thought := str(block.get(_REASONING[kind]) or ""):
                    parts.append({"type": "reasoning", "reasoning": thought})
            elif kind == "tool_use":
                open_call = str(block.get("id") or f"call_{self._name}-{len(calls)}-{self._made}")
                given = block.get("input")
                arguments = given if isinstance(given, dict) else {"input": given}
                calls.append({"name": str(block.get("name") or "tool"), "args": arguments, "id": open_call})
            elif kind == "tool_result":
                if calls:
                    yield self._ai(parts, calls, said_at, extra)
                    parts, calls = [], []
                named = str(block.get("tool_use_id") or open_call or f"call_{self._name}")
                yield SourceMessage(self._place, self._result(block, named), said_at)
            else:
                yield LossCount("blocks of a kind that is not known", self._place)
        if calls or any(isinstance(each, dict) and each["type"] == "text" for each in parts):
            yield self._ai(parts, calls, said_at, extra)
        elif parts:
            yield LossCount(UNANSWERED, self._place, len(parts))

    def _ai(
        self,
        parts: list[str | dict[str, Any]],
        calls: list[dict[str, Any]],
        said_at: datetime | None,
        extra: Mapping[str, Any] | None,
    ) -> SourceMessage:
        only = parts[0] if len(parts) == 1 else None
        text = only["text"] if isinstance(only, dict) and only["type"] == "text" else None
        body = "" if not parts else text if isinstance(text, str) else parts
        return SourceMessage(self._place, AIMessage(body, tool_calls=calls, id=self._id()), said_at, extra)

    def _result(self, block: Mapping[str, Any], call: str) -> ToolMessage:
        held = block.get("content")
        listed = held if isinstance(held, list) else [held]
        texts = [
            each["text"] if isinstance(each, dict) and isinstance(each.get("text"), str)
            else each if isinstance(each, str) else as_json(each)
            for each in listed
            if each is not None
        ]  # fmt: skip
        name = block.get("name")
        return ToolMessage(
            "\n\n".join(texts),
            tool_call_id=call,
            name=name if isinstance(name, str) else None,
            status="error" if block.get("is_error") else "success",
            id=self._id(),
        )

    def _id(self) -> str:
        """Return the message's own id for the first message that it becomes."""
        self._made += 1
        return self._name if self._made == 1 else f"{self._name}-{self._made}"
