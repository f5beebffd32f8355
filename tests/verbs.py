"""The verbs of a conversation in typical use: the gate counts them, and the benchmarks measure their growth."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final
from uuid import uuid4

from langchain_core.messages import AIMessage, HumanMessage

from langchain_supabase_memory import Retention, SupabaseMemory
from langchain_supabase_memory.effects import Call
from langchain_supabase_memory.language.messages.codec import to_row
from langchain_supabase_memory.operations import conversations as conversations_flows

WORDS: Final = "The kiln in Porto fires the blue glaze at twelve hundred degrees, and Ana opens it on Thursday. " * 4
"""The message text: 384 characters."""

MANIFEST: Final = [
    [0, 1, 0, 12_000, 11_930, 140, 0, 2_592_000, 3, 281, 182_731, 45_000],
    [1, 2, 4, 12, 5000, 1250, 118, 139, -1],
    [1, 4, 7, 1, 2900, 700, -1, -1, -1],
    *([3, 10 * place, 10 * place, 1, 44, 21, 0, 5, 3, 0, 12, 5, 2] for place in range(8)),
]
"""A manifest of typical size."""

AGES: Final = Retention(max_age=timedelta(days=3650))
"""A limit that nothing reaches."""


@dataclass(frozen=True)
class Subject:
    """A conversation to use the verbs on.

    Attributes:
        memory: The owner's memory.
        thread: Its thread.
        size: The number of its messages; their ids are `m-0`, `m-1` and so on, and even ones are questions.
    """

    memory: SupabaseMemory
    thread: str
    size: int

    def append(self, n: int) -> object:
        return self._handle.append([HumanMessage(f"{n} {WORDS}"), AIMessage(f"{n} {WORDS}")])

    def append_with_manifest(self, n: int) -> object:
        said = [HumanMessage(f"{n} {WORDS}"), AIMessage(f"{n} {WORDS}")]
        key = self.memory._services.key(self.thread)
        return self.memory._services.run(conversations_flows.append(key, said, manifest=MANIFEST))

    def manifests_last_20(self, n: int) -> object:
        return self._handle.manifests()

    def append_with_limits(self, n: int) -> object:
        said = [HumanMessage(f"{n} {WORDS}"), AIMessage(f"{n} {WORDS}")]
        return self._handle.append(said, retention=AGES)

    def store_and_load(self, n: int) -> object:
        asked = to_row(HumanMessage(f"{n} {WORDS}", id=str(uuid4())))
        arguments = {"p_thread_id": self.thread, "p_user_id": self.memory.user_id, "p_messages": [asked]}
        return self.memory._services.transport.perform(Call("memory_append_context", arguments))

    def edit(self, n: int) -> object:
        # Longer than the previous text, so that everything that depends on its length must be updated.
        place = self.size // 2 // 2 * 2 + 2 * n
        return self._handle.append([HumanMessage(f"{n} {WORDS} {WORDS} {WORDS}", id=f"m-{place}")])

    def forget_message(self, n: int) -> object:
        return self._handle.forget_message(f"m-{self.size // 4 + n}")

    def context(self, n: int) -> object:
        return self._handle.context()

    def read_last_20(self, n: int) -> object:
        return self._handle.read(last=20)

    def turns_last_10(self, n: int) -> object:
        return self._handle.turns.list(last=10)

    def turn(self, n: int) -> object:
        return self._handle.turns.get(self.size // 4)

    def resolve(self, n: int) -> object:
        return self._handle.resolve("What was the second one?")

    def count(self, n: int) -> object:
        return self._handle.count()

    def recall(self, n: int) -> object:
        return self._handle.recall("When does Ana open the kiln in Porto?")

    def find(self, n: int) -> object:
        return self._handle.find(f"{self.size // 2} the kiln", around=1)

    def board(self, n: int) -> object:
        return self._handle.board.read()

    def status(self, n: int) -> object:
        return self._handle.work.status()

    @property
    def _handle(self) -> Any:
        return self.memory.conversation(self.thread)


Verb = Callable[[Subject, int], object]

OF_A_CONVERSATION: Final[Mapping[str, Verb]] = {
    "context pack": Subject.context,
    "read the last 20": Subject.read_last_20,
    "turns, the last 10": Subject.turns_last_10,
    "turn by its number": Subject.turn,
    "resolve": Subject.resolve,
    "count": Subject.count,
    "recall": Subject.recall,
    "find": Subject.find,
    "board": Subject.board,
    "status": Subject.status,
    "append a turn": Subject.append,
    "append a turn with its manifest": Subject.append_with_manifest,
    "manifests, the last 20": Subject.manifests_last_20,
    "append with a maximum age": Subject.append_with_limits,
    "store a question and load its pack": Subject.store_and_load,
    "edit a message": Subject.edit,
    "forget a message": Subject.forget_message,
}


def conversations(memory: SupabaseMemory, n: int) -> object:
    return memory.conversations(limit=50)


def claim(memory: SupabaseMemory, n: int) -> object:
    arguments = {"p_worker": f"worker-{n}", "p_limit": 4, "p_settle_seconds": 0.0}
    return memory._services.transport.perform(Call("memory_worker_claim", arguments))


def due(memory: SupabaseMemory, n: int) -> object:
    return memory.work.status(state="due", limit=50)


def expired(memory: SupabaseMemory, n: int) -> object:
    return memory.forget_expired(retention=AGES)


OF_A_DATABASE: Final[Mapping[str, Callable[[SupabaseMemory, int], object]]] = {
    "conversations, a page of 50": conversations,
    "claim 4 conversations": claim,
    "due work, a page of 50": due,
    "retention of a user": expired,
}
