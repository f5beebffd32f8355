"""Threads of a LangGraph checkpointer, by methods that all of them have: `list` and `get_tuple`."""

from __future__ import annotations

import copy
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

from langchain_core.messages import BaseMessage, convert_to_messages

from langchain_supabase_memory.transfer import ids
from langchain_supabase_memory.transfer.sources.chatml_sharegpt import time_of
from langchain_supabase_memory.transfer.values import LossCount, SourceMessage, SourceProblem, ThreadStart

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
    from langgraph.checkpoint.serde.base import SerializerProtocol

    from langchain_supabase_memory.transfer.values import Event

_PAGE: Final = 50
"""The number of checkpoints listed at once; each comes with its whole state."""

_ORDERED: Final = frozenset({"langgraph.checkpoint.postgres.PostgresSaver", "langgraph.checkpoint.sqlite.SqliteSaver"})
"""Checkpointers that list all threads ordered by checkpoint id, which allows paging."""

_HINT: Final = "Give the saver the serializer that wrote it, or pass skip=True (--skip) to leave such a thread out."


def langgraph(
    saver: BaseCheckpointSaver[Any], *, channel: str = "messages", threads: Iterable[str] | None = None
) -> Iterator[Event]:
    """Read the threads of a LangGraph checkpointer: the messages in the newest checkpoint of each.

    All messages of a thread get that checkpoint's time, because a checkpointer stores no other. The checkpoint's
    metadata is in `ThreadStart.about`, for `owner`.

    Args:
        saver: The checkpointer: `PostgresSaver`, `SqliteSaver` or any other with `list` and `get_tuple`.
        channel: The state's channel that contains the messages.
        threads: Only these threads, in this order; the checkpointer is then not listed.
    """
    with closing(sqlite3.connect("", check_same_thread=False)) as seen:  # spills to disk if there are many
        seen.execute("create table threads (number integer primary key, thread text unique)")
        problem = None
        if threads is None:
            problem = _list(saver, seen)
        else:
            _note(seen, threads)
        for number, thread in seen.execute("select number, thread from threads order by number"):
            place = f"thread {number}"
            try:
                found = saver.get_tuple({"configurable": {"thread_id": thread, "checkpoint_ns": ""}})
            except Exception:  # whatever a serializer raises; its text may contain content
                yield SourceProblem("The newest checkpoint is of a type that cannot be read.", _HINT, place)
                continue
            if found is not None:
                yield from _thread(found, thread, channel, place)
            elif threads is not None:
                yield SourceProblem("There is no such thread.", "Name a thread of the saver.", place)
    if problem is not None:
        yield problem


def _note(connection: sqlite3.Connection, threads: Iterable[str]) -> None:
    """Record threads, each once."""
    connection.executemany("insert or ignore into threads (thread) values (?)", ([str(each)] for each in threads))


def _list(saver: BaseCheckpointSaver[Any], connection: sqlite3.Connection) -> SourceProblem | None:
    """Record the threads of a checkpointer. Nothing is stored meanwhile: some hold a lock while they list.

    Returns:
        The problem to report at the end, if the list could not be read completely.
    """
    try:
        _note(connection, _thread_ids(saver))
    except Exception as error:
        return SourceProblem(
            f"The saver's checkpoints cannot be listed further ({type(error).__name__}).",
            "Call the saver's setup(), and give it the serializer that wrote them; or name the threads: threads=[...] "
            "(--thread).",
            "the list of threads",
        )
    return None


def _thread_ids(saver: BaseCheckpointSaver[Any]) -> Iterator[str]:
    """Yield the threads of a checkpointer's checkpoints, with duplicates; subgraphs' threads are left out."""
    # The checkpoints' contents are not needed, so an unreadable one is no reason to stop.
    listing = copy.copy(saver)
    listing.serde = _Lenient(saver.serde)
    is_ordered = any(f"{each.__module__}.{each.__qualname__}" in _ORDERED for each in type(saver).__mro__)
    size: int | None = _PAGE if is_ordered else None
    before: Any = None
    while True:
        found: list[str] = []
        for each in listing.list(None, before=before, limit=size):
            named = each.config["configurable"]
            found.append(str(named["checkpoint_id"]))
            if not named.get("checkpoint_ns"):
                yield str(named["thread_id"])
        if size is None or len(found) < size:
            return
        # Copies of a thread share ids, so the last id is listed again, to lose none at the page's edge.
        above = [name for name in found if name != found[-1]]
        if above:
            before, size = {"configurable": {"checkpoint_id": above[-1]}}, _PAGE
        else:
            size *= 2


class _Lenient:
    """A serializer that returns an empty checkpoint instead of failing."""

    def __init__(self, serde: SerializerProtocol) -> None:
        self._serde = serde

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        return self._serde.dumps_typed(obj)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        try:
            return self._serde.loads_typed(data)
        except Exception:  # whatever a serializer raises
            return {"channel_versions": {}, "channel_values": {}}


def _thread(checkpoint: CheckpointTuple, thread: str, channel: str, place: str) -> Iterator[Event]:
    values = checkpoint.checkpoint.get("channel_values")
    held = values.get(channel) if isinstance(values, dict) else None
    if held is None:
        yield LossCount(f"threads without {channel} in their state", place)
        return
    try:
        said_at = time_of(checkpoint.checkpoint.get("ts"))
        messages = _messages(held)
    except Exception:  # whatever a state contains
        yield SourceProblem(
            f"The state's {channel} are no messages.", "Name the channel that holds them: channel=...", place
        )
        return
    yield ThreadStart(thread, place, updated_at=said_at, about=dict(checkpoint.metadata or {}))
    if len(messages) > 1 and said_at is not None:
        yield LossCount("times of messages: a saver keeps that of a thread's newest checkpoint alone", place)
    for number, message in enumerate(messages):
        message.id = message.id or ids.message_id(thread, number)
        yield SourceMessage(f"{place}, message {number + 1}", message, said_at)


def _messages(channel: Any) -> list[BaseMessage]:
    if not isinstance(channel, list):
        raise TypeError
    return [each.model_copy() if isinstance(each, BaseMessage) else convert_to_messages([each])[0] for each in channel]
