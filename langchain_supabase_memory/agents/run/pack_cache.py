"""Packs that were read together with storing, for the model call that follows."""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import is_
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.agents.run.expiring_cache import ExpiringCache

if TYPE_CHECKING:
    from langchain_supabase_memory.agents.run.graph_state import GraphState
    from langchain_supabase_memory.context.pack import ContextPack
    from langchain_supabase_memory.values import ConversationKey

_SECONDS: Final = 2.0
"""How long a pack is kept: a run that was interrupted before its model reads anew what may be forgotten meanwhile."""


@dataclass(frozen=True)
class _Pack:
    key: ConversationKey
    run: GraphState = field(repr=False)
    pack: ContextPack = field(repr=False)


class PackCache:
    """Packs by the token of what was stored with them. Every method is safe to call from any thread."""

    def __init__(self) -> None:
        self._packs: ExpiringCache[str, _Pack] = ExpiringCache(_SECONDS)

    def put(self, token: str, key: ConversationKey, run: GraphState, pack: ContextPack) -> None:
        """Keep a pack.

        Args:
            token: The name of the stored state.
            key: The conversation.
            run: The state's messages, which the pack is for.
            pack: The pack.
        """
        self._packs.set(token, _Pack(key, run, pack))

    def pop(self, key: ConversationKey, run: GraphState) -> ContextPack | None:
        """Return the pack for a model call, once; `None` if none was kept for exactly these messages.

        Args:
            key: The conversation.
            run: The messages of the call, and the state behind them.
        """
        record = None if run.origin is None else run.origin.record
        held = None if record is None else self._packs.pop(record.token)
        return held.pack if held is not None and held.key == key and same(held.run, run) else None


def same(run: GraphState, other: GraphState) -> bool:
    """Return whether two runs have the same message objects."""
    messages, others = run.messages, other.messages
    return len(messages) == len(others) and all(map(is_, messages, others))
