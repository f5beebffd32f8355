"""Append new messages and read the context in one round trip."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from langchain_supabase_memory.effects import Call, Flow, delegate
from langchain_supabase_memory.errors import UnavailableError

if TYPE_CHECKING:
    from langchain_supabase_memory.effects import Step

A = TypeVar("A")
B = TypeVar("B")

_CONTEXT: Final = {
    "characters": "p_characters",
    "messages": "p_messages",
    "recall": "p_recall",
    "recent": "p_recent",
    "board": "p_board",
    "branch_ids": "p_branch_ids",
    "due": "p_due",
    "shared": "p_shared",
    "profile": "p_profile",
}
"""The arguments of a read that an append does not have."""


def append_and_load(store: Flow[A], read: Flow[B]) -> Flow[tuple[A, B | None]]:
    """Run two flows with one database call: an append, and the read of the context after it.

    If that is not possible, because several appends are needed or the database rejects the call, the first flow
    runs alone: new messages are stored whatever happens to the read.

    Args:
        store: A fresh flow that appends.
        read: A fresh flow that reads the context of the same conversation, with the same retention.

    Returns:
        The result of the first flow; and that of the second, or `None` if the context must still be read.

    Raises:
        SupabaseMemoryError: An error of the first flow.
    """
    with closing(store), closing(read):
        both = _AppendAndLoad((yield from _current_call(read)))
        try:
            stored = yield from delegate(store, next(store), both.perform)
        except StopIteration as stop:
            return stop.value, None
        if both.asked is None or both.context is None:
            return stored, None
        try:
            return stored, (yield from delegate(read, both.asked, both.answer))
        except Exception:  # the separate read of the context will raise it again
            return stored, None


def _current_call(read: Flow[Any]) -> Flow[Call | None]:
    """Run a flow up to its read call and return that; `None` if the flow ended or failed before."""
    try:
        step = next(read)
        while not (isinstance(step, Call) and step.function == "memory_context"):
            try:
                answer = yield step
            except Exception as error:
                step = read.throw(error)
            else:
                step = read.send(answer)
    except Exception:
        return None
    return step


@dataclass
class _AppendAndLoad:
    """An append combined with a read.

    Attributes:
        asked: The read call; `None` once it is not needed.
        context: The context read after the last append; `None` if it was not read.
    """

    asked: Call | None
    context: Any = None

    def perform(self, step: Step[Any]) -> Flow[Any]:
        """Perform a step of the appending flow."""
        if self.asked is None or not isinstance(step, Call) or step.function != "memory_append":
            return (yield step)
        if self.context is not None:  # long states are appended by pages, and the read follows the last
            self.asked = self.context = None
            return (yield step)
        context = {name: self.asked.arguments[argument] for name, argument in _CONTEXT.items()}
        try:
            answer = yield Call("memory_append_context", {**step.arguments, "p_context": context}, self.asked.operation)
        except UnavailableError:
            raise
        except Exception:  # an error of the read must not prevent the append
            self.asked = None
            return (yield step)
        self.context = answer["context"]
        return answer["stored"]

    def answer(self, step: Step[Any]) -> Flow[Any]:
        """Answer a step of the reading flow."""
        return self.context if step is self.asked else (yield step)
