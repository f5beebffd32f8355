"""Packs that were read when what stands before a call of the model was stored, until the call comes."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from operator import is_
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory import fork

if TYPE_CHECKING:
    from langchain_supabase_memory.agents.run.graph_state import GraphState
    from langchain_supabase_memory.context.pack import ContextPack
    from langchain_supabase_memory.values import ConversationKey

_SECONDS: Final = 2.0
"""How long a pack is kept: a run that was interrupted before its model reads anew what may be forgotten meanwhile."""

_MOST: Final = 1_000
"""How many packs are kept."""


@dataclass(frozen=True)
class _Pack:
    key: ConversationKey
    run: GraphState = field(repr=False)
    pack: ContextPack = field(repr=False)
    until: float


class PackCache:
    """Packs by the token of what was stored with them. Every method is safe to call from any thread."""

    def __init__(self) -> None:
        fork.run_in_each_process(self._begin)

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._held: OrderedDict[str, _Pack] = OrderedDict()
        self._passages: OrderedDict[tuple[ConversationKey, str], tuple[str, ...]] = OrderedDict()

    def put(self, token: str, key: ConversationKey, run: GraphState, pack: ContextPack) -> None:
        """Keep a pack.

        Args:
            token: What names the stored state.
            key: The conversation.
            run: The state's messages, which the pack is for.
            pack: The pack.
        """
        now = time.monotonic()
        with self._lock:
            self._held[token] = _Pack(key, run, pack, now + _SECONDS)
            while self._held and (len(self._held) > _MOST or next(iter(self._held.values())).until < now):
                self._held.popitem(last=False)

    def put_passages(self, key: ConversationKey, run: GraphState, pack: ContextPack) -> None:
        """Note which passages a prompt shows, so that the further prompts of its turn show the same.

        Args:
            key: The conversation.
            run: The messages of the call.
            pack: The pack of its prompt.
        """
        if (question := _question(run)) is None:
            return
        with self._lock:
            self._passages[key, question] = tuple(chunk.id for chunk in pack.recalled)
            self._passages.move_to_end((key, question))
            while len(self._passages) > _MOST:
                self._passages.popitem(last=False)

    def passages(self, key: ConversationKey, run: GraphState) -> tuple[str, ...] | None:
        """The passages that the turn's earlier prompts showed; `None` for its first one, or in another process.

        Args:
            key: The conversation.
            run: The messages of the call.
        """
        if len(run.current) < 2 or (question := _question(run)) is None:
            return None
        with self._lock:
            return self._passages.get((key, question))

    def pop(self, key: ConversationKey, run: GraphState) -> ContextPack | None:
        """The pack for a call of the model, once; `None` if none was kept for just these messages.

        Args:
            key: The conversation.
            run: The messages of the call, and the state behind them.
        """
        record = None if run.origin is None else run.origin.record
        if record is None:
            return None
        with self._lock:
            held = self._held.pop(record.token, None)
        if held is None or held.key != key or held.until < time.monotonic():
            return None
        return held.pack if same(held.run, run) else None


def _question(run: GraphState) -> str | None:
    """The id of the user's message that the call is about."""
    return run.current[0].id if run.current else None


def same(run: GraphState, other: GraphState) -> bool:
    """Whether two runs have the same messages, object for object."""
    messages, others = run.messages, other.messages
    return len(messages) == len(others) and all(map(is_, messages, others))
