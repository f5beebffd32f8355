"""The export of ChatGPT: `conversations.json`, in which each conversation is a tree of messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage, ToolMessage

from langchain_supabase_memory.transfer import file_reader, ids
from langchain_supabase_memory.transfer.sources.chatml_sharegpt import time_of
from langchain_supabase_memory.transfer.sources.safe_iter import safe_iter
from langchain_supabase_memory.transfer.sources.thoughts import RECAPS, UNANSWERED, answer, without_citations
from langchain_supabase_memory.transfer.values import LossCount, SourceMessage, SourceProblem, ThreadStart

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping

    from langchain_supabase_memory.transfer.values import Event

_HINT: Final = "Download the export again, or pass skip=True (--skip) to leave such a conversation out."
_SETTINGS: Final = ("user_editable_context", "model_editable_context")
"""Settings for all conversations, by the user and by ChatGPT: they are not messages of a conversation."""


def chatgpt(path: str | os.PathLike[str], *, encoding: str | None = None) -> Iterator[Event]:
    """Read an export of ChatGPT: `conversations.json`, or the folder or archive with it, in one file or in several.

    From each conversation's tree it takes the branch that was shown last, without hidden messages; messages on other
    branches are counted. The model's thoughts become a reasoning block of the answer, and citation marks are removed.
    Of images and files the export only has the names.

    Args:
        path: The file, the folder, or the ZIP archive.
        encoding: The file's encoding; by default it is detected from the first bytes, or UTF-8.
    """
    for number, document in file_reader.conversations(path, encoding, "conversations.json"):
        place = f"conversation {number}"
        yield from safe_iter(_conversation(document, place), "The conversation cannot be read.", _HINT, place)


def _conversation(document: Any, place: str) -> Iterator[Event]:
    mapping = document.get("mapping") if isinstance(document, dict) else None
    if not isinstance(mapping, dict):
        yield SourceProblem("The conversation has no mapping of messages.", _HINT, place)
        return
    began, changed = (time_of(document.get(name)) for name in ("create_time", "update_time"))
    title = document.get("title")
    given = document.get("conversation_id") or document.get("id")
    thread = str(given) if given else ids.thread_id("chatgpt", *sorted(mapping))
    yield ThreadStart(
        thread, place, title=title if isinstance(title, str) else None, created_at=began, updated_at=changed
    )
    yield from _Branch(mapping, document.get("current_node"), place).events()


class _Branch:
    """The branch of a conversation that was shown last."""

    def __init__(self, mapping: Mapping[str, Any], current: Any, place: str) -> None:
        self._mapping = mapping
        self._place = place
        self._call: str | None = None  # the call that waits for its result
        self._thoughts: list[str] = []  # the thoughts that wait for their answer
        self._nodes = self._path(current if isinstance(current, str) and current in mapping else self._newest())

    def events(self) -> Iterator[Event]:
        for number, name in enumerate(self._nodes):
            message = _message(self._mapping[name])
            if message is not None and _is_shown(message):
                where = f"{self._place}, message {number + 1}"
                yield from safe_iter(
                    self._message_event(name, message, where), "The message cannot be read.", _HINT, where
                )
        yield from self._unanswered_calls(self._place)
        taken = set(self._nodes)
        beside = sum(
            (message := _message(node)) is not None and _is_shown(message)
            for name, node in self._mapping.items()
            if name not in taken
        )
        if beside:
            yield LossCount("messages of branches that were not shown last", self._place, beside)

    def _path(self, name: str | None) -> list[str]:
        """Return the path from the root to a node; a cycle in the tree ends it."""
        path: dict[str, None] = {}
        while name is not None and name in self._mapping and name not in path:
            path[name] = None
            node = self._mapping[name]
            above = node.get("parent") if isinstance(node, dict) else None
            name = above if isinstance(above, str) else None
        return [*reversed(path)]

    def _newest(self) -> str | None:
        """Return the newest leaf, if the export does not say which one was shown."""
        leaves = {
            name: (_message(node) or {}).get("create_time") or 0
            for name, node in self._mapping.items()
            if isinstance(node, dict) and not node.get("children")
        }
        return max(leaves, key=lambda name: _number(leaves[name])) if leaves else next(iter(self._mapping), None)

    def _message_event(self, name: str, message: Mapping[str, Any], place: str) -> Iterator[Event]:
        body = message.get("content")
        if not isinstance(body, dict):
            yield SourceProblem("A message has no content.", _HINT, place)
            return
        said_at = time_of(message.get("create_time"))
        kind = body.get("content_type")
        if kind == "reasoning_recap":
            yield LossCount(RECAPS, place)
            return
        if kind in _SETTINGS:
            yield LossCount("settings that hold for all conversations", place)
            return
        if kind == "thoughts" or message.get("channel") == "analysis":
            self._thoughts += _thoughts(body)
            return
        text, missing = _text(body)
        beside = message.get("metadata")
        attached = beside.get("attachments") if isinstance(beside, dict) else None
        names = [str(each.get("name")) for each in attached or [] if isinstance(each, dict)]
        if names or missing:
            yield LossCount(
                "images and files, of which the export has the names alone", place, max(len(names), missing)
            )
        if not text and not names and not missing:
            if isinstance(kind, str) and kind not in _KNOWN:
                yield LossCount("messages of a kind that is not known", place)
            return
        if _role(message) == "user":
            yield from self._unanswered_calls(place)
        made = self._assistant_message(str(message.get("id") or name), message, text)
        if made is None:
            yield LossCount("messages of an unknown role", place)
            return
        yield SourceMessage(place, made, said_at, {"attachments": names} if names else None)

    def _unanswered_calls(self, place: str) -> Iterator[Event]:
        if self._thoughts:
            yield LossCount(UNANSWERED, place, len(self._thoughts))
            self._thoughts = []

    def _assistant_message(self, name: str, message: Mapping[str, Any], text: str) -> BaseMessage | None:
        author = message.get("author")
        role = _role(message)
        beside = message.get("metadata")
        model = beside.get("model_slug") if isinstance(beside, dict) else None
        about = {"model_name": model} if isinstance(model, str) else {}
        if role == "user":
            return HumanMessage(text, id=name)
        if role == "system":
            return SystemMessage(text, id=name)
        if role == "tool":
            called, self._call = self._call or name, None
            tool = author.get("name") if isinstance(author, dict) else None
            failed = message["content"].get("content_type") == "system_error"
            return ToolMessage(
                text,
                tool_call_id=called,
                name=tool if isinstance(tool, str) else None,
                status="error" if failed else "success",
                id=name,
            )
        if role != "assistant":
            return None
        thoughts, self._thoughts = self._thoughts, []
        recipient = message.get("recipient")
        if isinstance(recipient, str) and recipient not in ("all", ""):
            self._call = f"call_{name}"
            calls = [{"name": recipient, "args": {"input": text}, "id": self._call}]
            return answer("", thoughts, tool_calls=calls, response_metadata=about, id=name)
        return answer(without_citations(text), thoughts, response_metadata=about, id=name)


_KNOWN: Final = (
    "text",
    "multimodal_text",
    "code",
    "execution_output",
    "tether_quote",
    "tether_browsing_display",
    "system_error",
)


def _role(message: Mapping[str, Any]) -> Any:
    author = message.get("author")
    return author.get("role") if isinstance(author, dict) else None


def _message(node: Any) -> dict[str, Any] | None:
    message = node.get("message") if isinstance(node, dict) else None
    return message if isinstance(message, dict) else None


def _is_shown(message: Mapping[str, Any]) -> bool:
    beside = message.get("metadata")
    return not (isinstance(beside, dict) and beside.get("is_visually_hidden_from_conversation"))


def _text(body: Mapping[str, Any]) -> tuple[str, int]:
    """Return the text of a content, and how many images and files it contains."""
    parts: list[str] = []
    missing = 0
    for part in body["parts"] if isinstance(body.get("parts"), list) else []:
        if isinstance(part, str):
            parts.append(part)
        elif isinstance(part, dict) and isinstance(part.get("text"), str):  # such as a transcript of speech
            parts.append(part["text"])
        else:
            missing += 1
    parts += [body[name] for name in ("text", "result", "content") if isinstance(body.get(name), str)]
    return "\n\n".join(part for part in parts if part.strip()), missing


def _thoughts(body: Mapping[str, Any]) -> list[str]:
    """Return the model's thoughts, each with its heading."""
    listed = body.get("thoughts")
    if not isinstance(listed, list):
        text, _ = _text(body)
        return [without_citations(text)] if text else []
    words = (
        "\n\n".join(str(each[name]) for name in ("summary", "content") if each.get(name))
        for each in listed
        if isinstance(each, dict)
    )
    return [without_citations(each) for each in words if each.strip()]


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
