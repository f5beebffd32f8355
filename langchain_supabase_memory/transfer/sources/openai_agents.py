"""Sessions of the OpenAI Agents SDK, by SQL: its own SQLite, or a database written by SQLAlchemy."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage, ToolMessage

from langchain_supabase_memory.transfer import ids
from langchain_supabase_memory.transfer.sources.chatml_sharegpt import time_of
from langchain_supabase_memory.transfer.sources.databases import rows
from langchain_supabase_memory.transfer.sources.thoughts import UNANSWERED, answer
from langchain_supabase_memory.transfer.values import LossCount, SourceMessage, SourceProblem, ThreadStart

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from langchain_supabase_memory.transfer.values import Event

_COLUMNS: Final = ("id", "session_id", "message_data", "created_at")
_NO_ID: Final = "__fake_id__"
"""What the SDK writes if a model gives its messages no id."""

_WORDS: Final = ("input_text", "output_text", "text", "refusal")


def openai_agents(address: str, *, table: str = "agent_messages") -> Iterator[Event]:
    """Read sessions of the OpenAI Agents SDK: `SQLiteSession` and `SQLAlchemySession`.

    A session is a conversation. Consecutive calls become one message. The model's thoughts become a reasoning block of
    the next message. Encrypted items and calls of hosted tools are counted and not stored.

    Args:
        address: The file of SQLite, or the address passed to the session.
        table: The table of its messages.
    """
    session: _Session | None = None
    for row_id, session_id, data, created_at in rows(address, table, _COLUMNS, ("session_id", "id")):
        place = f"{table}, row {row_id}"
        if session is None or session.name != str(session_id):
            if session is not None:
                yield from session.end(place)
            session = _Session(str(session_id))
            yield ThreadStart(session.name, place)
        try:
            item = json.loads(data)
            said_at = time_of(created_at)
            yield from session.add(item, f"{table} {row_id}", said_at, place)
        except Exception:  # whatever a row contains; the error's text may include it
            yield SourceProblem("The item cannot be read.", "Pass skip=True (--skip) to leave such an item out.", place)
    if session is not None:
        yield from session.end(place)


class _Session:
    """Converts one session, item by item."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._calls: list[dict[str, Any]] = []
        self._first: tuple[str, datetime | None, str] | None = None  # of the calls
        self._ids: set[str] = set()
        self._thoughts: list[str] = []  # the thoughts that wait for their answer

    def add(self, item: Mapping[str, Any], row: str, said_at: datetime | None, place: str) -> Iterator[Event]:
        kind = item.get("type", "message")
        name = ids.message_id(self.name, row)
        if kind == "function_call":
            self._first = self._first or (name, said_at, place)
            made = json.loads(item.get("arguments") or "{}")
            arguments = made if isinstance(made, dict) else {"input": made}
            self._calls.append({"name": item["name"], "args": arguments, "id": item["call_id"]})
            return
        yield from self.flush()
        if kind == "reasoning":
            thoughts = _thoughts(item)
            if not thoughts:
                yield LossCount("reasoning that is encrypted or empty", place)
            self._thoughts += thoughts
        elif kind == "function_call_output":
            held = item.get("output")
            text = held if isinstance(held, str) else _text(held)[0]
            yield SourceMessage(place, ToolMessage(text, tool_call_id=item["call_id"], id=name), said_at)
        elif kind == "message":
            text, missing = _text(item["content"])
            if missing:
                yield LossCount("images and files within messages", place, missing)
            if item["role"] == "assistant":
                yield SourceMessage(
                    place, answer(text, self._thought(), id=self._message_id(item.get("id"), name)), said_at
                )
                return
            yield from self.unanswered(place)
            yield SourceMessage(place, _message(item["role"], text, self._message_id(item.get("id"), name)), said_at)
        else:
            yield LossCount(
                f"items of the type {kind if isinstance(kind, str) and kind.isidentifier() else 'unknown'}", place
            )

    def _message_id(self, value: Any, row: str) -> str:
        """Return a message's own id if it is unique in the session, else its row's id."""
        if not isinstance(value, str) or not value or value == _NO_ID or value in self._ids:
            return row
        self._ids.add(value)
        return value

    def flush(self) -> Iterator[Event]:
        """Yield the consecutive calls as one message."""
        if self._first is not None:
            name, said_at, place = self._first
            yield SourceMessage(place, answer("", self._thought(), tool_calls=self._calls, id=name), said_at)
            self._calls, self._first = [], None

    def end(self, place: str) -> Iterator[Event]:
        """Yield what is still pending at the end of the session."""
        yield from self.flush()
        yield from self.unanswered(place)

    def unanswered(self, place: str) -> Iterator[Event]:
        """Record the thoughts that no answer follows."""
        if thoughts := self._thought():
            yield LossCount(UNANSWERED, place, len(thoughts))

    def _thought(self) -> list[str]:
        """Take the pending thoughts."""
        thoughts, self._thoughts = self._thoughts, []
        return thoughts


def _message(role: str, text: str, name: str) -> BaseMessage:
    return HumanMessage(text, id=name) if role == "user" else SystemMessage(text, id=name)


def _thoughts(item: Mapping[str, Any]) -> list[str]:
    """Return the text of a reasoning item: the full text if the model provides it, else its summary."""
    for name in ("content", "summary"):
        listed = item.get(name)
        parts = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
        words = [each["text"] for each in parts if isinstance(each.get("text"), str) and each["text"]]
        if words:
            return words
    return []


def _text(body: Any) -> tuple[str, int]:
    """Return the text of a content, and how many of its parts are not text."""
    if isinstance(body, str):
        return body, 0
    texts: list[str] = []
    missing = 0
    for part in body if isinstance(body, list) else []:
        words = part.get("text") or part.get("refusal") if part.get("type") in _WORDS else None
        if isinstance(words, str):
            texts.append(words)
        else:
            missing += 1
    return "\n\n".join(texts), missing
