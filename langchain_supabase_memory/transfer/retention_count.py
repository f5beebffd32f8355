"""Counts how many messages of a conversation retention would remove at once, while they are read.

Only used for a dry run; for a real import `memory_private.find_expired` decides. Both follow the cases in
`tests/cases/retention.json`.
"""

from __future__ import annotations

from collections import deque
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory.language.messages.content import is_marked_answer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from langchain_supabase_memory.settings import Retention

_OLD: Final = 1
_TOOL: Final = 2


class RetentionCount:
    """Receives the messages of one conversation, in order.

    Args:
        retention: The retention; `None` retains everything.
    """

    def __init__(self, retention: Retention | None) -> None:
        self._retention = retention
        self._now = datetime.now(UTC)
        self._traits = bytearray()  # one entry per message
        self._question: int | None = None
        most = 0 if retention is None else retention.max_turns or 0
        self._turns: deque[int] = deque(maxlen=most)  # where the newest complete turns begin

    def add(self, row: Mapping[str, Any]) -> None:
        """Count a message."""
        if self._retention is None:
            return
        given = row.get("created_at")
        age = self._retention.max_age
        is_old = age is not None and given is not None and datetime.fromisoformat(given) < self._now - age
        if row.get("role") == "user":
            self._question = len(self._traits)
        elif self._question is not None and _is_final(row):
            self._turns.append(self._question)
            self._question = None
        self._traits.append(_OLD * is_old | _TOOL * (row.get("role") == "tool"))

    @property
    def expired(self) -> int:
        """The number of messages that retention would remove."""
        traits, cut = self._traits, self._cut()
        if not cut and not any(each & _OLD for each in traits):
            return 0
        # Leading tool results go with their call.
        first = next((at for at in range(cut, len(traits)) if not traits[at]), len(traits))
        return first + sum(each & _OLD for each in traits[first:])

    def _cut(self) -> int:
        """Return the first message that the limits on turns and messages retain."""
        if self._retention is None:
            return 0
        most, turns = self._retention.max_messages, self._retention.max_turns
        cut = self._turns[0] if turns is not None and len(self._turns) == turns else 0
        beyond = 0 if most is None else len(self._traits) - most
        if beyond <= 0:
            return cut
        # A tool result never stays without its call. The newest block always stays whole, because it may still be in
        # progress.
        blocks = [at for at, each in enumerate(self._traits) if not each & _TOOL]
        after = next((at for at in blocks if at >= beyond), None)
        before = next((at for at in reversed(blocks) if at < beyond), 0)
        return max(cut, before if after is None else after)


def _is_final(row: Mapping[str, Any]) -> bool:
    """Return whether a message is a final answer, as the database's column says."""
    payload = row.get("payload")
    data = payload.get("data") if isinstance(payload, dict) else None
    if not isinstance(data, dict) or not (row.get("text") or row.get("images")):
        return False
    if row.get("role") == "tool":
        return is_marked_answer(data.get("response_metadata"))
    return row.get("role") == "assistant" and not data.get("tool_calls")
