"""Threads of a LangGraph saver, by what every saver has: `list` and `get_tuple`."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

from langchain_core.messages import BaseMessage, convert_to_messages

from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.transfer import ids
from langchain_supabase_memory.transfer.sources.dialogues import time_of
from langchain_supabase_memory.transfer.values import Lost, Problem, Said, Thread

if TYPE_CHECKING:
    from collections.abc import Iterator

    from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple

    from langchain_supabase_memory.transfer.values import Event

_HINT: Final = "Give the saver the serializer that wrote it, or pass skip=True (--skip) to leave such a thread out."


def langgraph(saver: BaseCheckpointSaver[Any], *, channel: str = "messages") -> Iterator[Event]:
    """The threads of a LangGraph saver: the messages in the newest checkpoint of each.

    All messages of a thread have the time of that checkpoint: a saver keeps no other. The checkpoint's metadata is in
    `Thread.about`, for `owner`.

    Args:
        saver: The saver; `PostgresSaver`, `SqliteSaver` or any other that answers `list` and `get_tuple`.
        channel: Where the messages are in the state.
    """
    with closing(sqlite3.connect("", check_same_thread=False)) as seen:  # on disk, where they are many
        seen.execute("create table threads (number integer primary key, thread text unique)")
        _list(saver, seen)
        for number, thread in seen.execute("select number, thread from threads order by number"):
            place = f"thread {number}"
            try:
                found = saver.get_tuple({"configurable": {"thread_id": thread, "checkpoint_ns": ""}})
            except Exception:  # whatever a serializer raises; content may be in its words
                yield Problem("The newest checkpoint is of a type that cannot be read.", _HINT, place)
                continue
            if found is not None:
                yield from _thread(found, thread, channel, place)


def _list(saver: BaseCheckpointSaver[Any], seen: sqlite3.Connection) -> None:
    """Note the threads of a saver. Nothing is stored meanwhile: some savers hold a lock while they list."""
    try:
        for each in saver.list(None):
            named = each.config["configurable"]
            if not named.get("checkpoint_ns"):  # else of a graph within a graph
                seen.execute("insert or ignore into threads (thread) values (?)", [str(named["thread_id"])])
    except Exception as error:
        raise InvalidInputError(
            f"The saver's checkpoints cannot be listed ({type(error).__name__}): one may be of an unknown type.",
            hint="Give the saver the serializer that wrote them, and call its setup().",
        ) from None


def _thread(found: CheckpointTuple, thread: str, channel: str, place: str) -> Iterator[Event]:
    values = found.checkpoint.get("channel_values")
    held = values.get(channel) if isinstance(values, dict) else None
    if held is None:
        yield Lost(f"threads without {channel} in their state", place)
        return
    try:
        said_at = time_of(found.checkpoint.get("ts"))
        messages = _messages(held)
    except Exception:  # whatever a state holds
        yield Problem(f"The state's {channel} are no messages.", "Name the channel that holds them: channel=...", place)
        return
    yield Thread(thread, place, updated_at=said_at, about=dict(found.metadata or {}))
    for number, message in enumerate(messages):
        message.id = message.id or ids.message_id(thread, number)
        yield Said(f"{place}, message {number + 1}", message, said_at)


def _messages(held: Any) -> list[BaseMessage]:
    if not isinstance(held, list):
        raise TypeError
    return [each.model_copy() if isinstance(each, BaseMessage) else convert_to_messages([each])[0] for each in held]
