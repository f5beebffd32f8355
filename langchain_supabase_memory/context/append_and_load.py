"""Storing and reading in one round trip: what is new is appended, and the context read with it."""

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
}
"""What a reading says that an append does not say, too."""


def append_and_load(store: Flow[A], read: Flow[B]) -> Flow[tuple[A, B | None]]:
    """Two flows whose calls go to the database as one: an append, and the reading of the context behind it.

    Where that cannot be, because more than one append is needed or the database refuses the call, the first flow goes
    its own way: what is new is stored whatever becomes of the reading.

    Args:
        store: A fresh flow that appends.
        read: A fresh flow that reads the context of the same conversation, with the same retention.

    Returns:
        What the first returns; and what the second returns, or `None` if the context is still to be read.

    Raises:
        SupabaseMemoryError: What the first raises.
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
        except Exception:  # it is told where the context is read by itself
            return stored, None


def _current_call(read: Flow[Any]) -> Flow[Call | None]:
    """The call that reads, and at which the flow stands now; `None` if it came to its end or failed before."""
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
    """An append and a reading that go together.

    Attributes:
        asked: The call that reads; `None` if there is none any more.
        context: What was read behind the last append; `None` if that was not.
    """

    asked: Call | None
    context: Any = None

    def perform(self, step: Step[Any]) -> Flow[Any]:
        """A step of the flow that appends."""
        if self.asked is None or not isinstance(step, Call) or step.function != "memory_append":
            return (yield step)
        if self.context is not None:  # long states go page by page, and are read behind the last
            self.asked = self.context = None
            return (yield step)
        context = {name: self.asked.arguments[argument] for name, argument in _CONTEXT.items()}
        try:
            answer = yield Call("memory_append_context", {**step.arguments, "p_context": context}, self.asked.operation)
        except UnavailableError:
            raise
        except Exception:  # whatever it is: what only concerns the reading must not keep a message from being stored
            self.asked = None
            return (yield step)
        self.context = answer["context"]
        return answer["stored"]

    def answer(self, step: Step[Any]) -> Flow[Any]:
        """A step of the flow that reads."""
        return self.context if step is self.asked else (yield step)
