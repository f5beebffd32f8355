"""Writes that failed, kept in order until the database is back. In this process's memory, and bounded."""

from __future__ import annotations

import threading
from collections import OrderedDict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from langchain_supabase_memory import fork
from langchain_supabase_memory.errors import OutboxError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import BaseMessage

    from langchain_supabase_memory.values import ConversationKey

PendingMessages = tuple["BaseMessage", datetime]
"""A message and when it should have been stored."""


class Outbox:
    """Messages that could not be stored, by conversation. Every method is safe to call from any thread.

    Args:
        limit: The most messages kept, over all conversations.
        needs_owner: Whether only what names its owner is kept, as another user may be signed in when it is stored.
    """

    def __init__(self, limit: int, *, needs_owner: bool = False) -> None:
        self.limit = limit
        self.needs_owner = needs_owner
        fork.run_in_each_process(self._begin)

    def _begin(self) -> None:
        self._lock = threading.Lock()
        # What waits in a parent process is stored by it.
        self._waiting: OrderedDict[ConversationKey, OrderedDict[str, PendingMessages]] = OrderedDict()

    def __len__(self) -> int:
        """How many messages wait."""
        with self._lock:
            return sum(map(len, self._waiting.values()))

    def conversations(self) -> list[ConversationKey]:
        """The conversations with messages that wait, the longest waiting first."""
        with self._lock:
            return list(self._waiting)

    def pending(self, key: ConversationKey) -> list[PendingMessages]:
        """What waits for a conversation, in order."""
        with self._lock:
            return list(self._waiting.get(key, {}).values())

    def keep(self, key: ConversationKey, messages: Sequence[BaseMessage]) -> None:
        """Keep messages (which have ids) behind those that wait already; all of them or none.

        Raises:
            OutboxError: They would be more than the limit, or nobody is named whose they are.
        """
        if self.needs_owner and key.user_id is None:
            raise OutboxError(
                "A write failed, and its messages cannot wait: nobody is named whose they are, and another user may be "
                "signed in when the database is back.",
                hint="Name the user of each run, as configurable user_id, or of each handle, as user_id.",
            )
        now = datetime.now(UTC)
        with self._lock:
            held = self._waiting.get(key, OrderedDict())
            fresh = {str(message.id): (message, now) for message in messages if message.id not in held}
            if sum(map(len, self._waiting.values())) + len(fresh) > self.limit:
                raise OutboxError
            self._waiting.setdefault(key, held).update(fresh)

    def delivered(self, key: ConversationKey, messages: Sequence[BaseMessage]) -> None:
        """Let go of messages that have been stored."""
        with self._lock:
            held = self._waiting.get(key)
            if held is None:
                return
            for message in messages:
                held.pop(str(message.id), None)
            if not held:
                del self._waiting[key]

    def forget(self, key: ConversationKey, message_id: str) -> None:
        """Let go of one message, because it was forgotten."""
        with self._lock:
            held = self._waiting.get(key)
            if held is not None:
                held.pop(message_id, None)
                if not held:
                    del self._waiting[key]

    def drop(self, key: ConversationKey) -> None:
        """Let go of everything for a conversation, because it was forgotten."""
        with self._lock:
            self._waiting.pop(key, None)
