"""How many messages of a conversation retention would remove at once, counted as they pass by."""

from __future__ import annotations

from collections import deque
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from langchain_supabase_memory.settings import Retention


class RetentionCount:
    """The messages of one conversation, in order.

    Args:
        retention: What is kept; `None` means everything.
    """

    def __init__(self, retention: Retention | None) -> None:
        self._retention = retention
        self._now = datetime.now(UTC)
        self._count = 0
        self._old = 0
        self._question: int | None = None
        most = 0 if retention is None else retention.max_turns or 0
        self._turns: deque[int] = deque(maxlen=most)  # where the newest complete turns begin

    def add(self, row: Mapping[str, Any]) -> None:
        """Count a message."""
        if self._retention is None:
            return
        given = row.get("created_at")
        age = self._retention.max_age
        if age is not None and given is not None and datetime.fromisoformat(given) < self._now - age:
            self._old += 1
        if row.get("role") == "user":
            self._question = self._count
        elif row.get("role") == "assistant" and self._question is not None and _is_final(row):
            self._turns.append(self._question)
            self._question = None
        self._count += 1

    @property
    def expired(self) -> int:
        """How many go."""
        if self._retention is None:
            return 0
        beyond = 0 if self._retention.max_messages is None else self._count - self._retention.max_messages
        most = self._retention.max_turns
        before = self._turns[0] if most is not None and len(self._turns) == most else 0
        return max(0, beyond, before, self._old)


def _is_final(row: Mapping[str, Any]) -> bool:
    payload = row.get("payload")
    data = payload.get("data") if isinstance(payload, dict) else None
    calls = data.get("tool_calls") if isinstance(data, dict) else None
    return bool(row.get("text") or row.get("images")) and not calls
