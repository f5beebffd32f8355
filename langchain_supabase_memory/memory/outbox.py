"""The outbox: failed writes, kept in order until the database is back. In process memory, and bounded."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from langchain_supabase_memory import fork
from langchain_supabase_memory.errors import OutboxError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import BaseMessage

    from langchain_supabase_memory.values import ConversationKey

PendingMessages = tuple["BaseMessage", datetime]
"""A message and the time when it should have been stored."""


class Outbox:
    """Messages that could not be stored, by conversation. Every method is thread-safe.

    Args:
        limit: The maximum number of messages, over all conversations.
        needs_owner: Whether to keep only messages that name their owner, because another user may be signed in
            later.
    """

    def __init__(self, limit: int, *, needs_owner: bool = False) -> None:
        self.limit = limit
        self.needs_owner = needs_owner
        fork.run_in_each_process(self._begin)

    def _begin(self) -> None:
        self._lock = threading.Lock()
        # The parent process delivers its own outbox.
        self._waiting: OrderedDict[ConversationKey, OrderedDict[str, PendingMessages]] = OrderedDict()

    def __len__(self) -> int:
        """Return the number of messages."""
        with self._lock:
            return sum(map(len, self._waiting.values()))

    def conversations(self) -> list[ConversationKey]:
        """Return the conversations with messages, the oldest first."""
        with self._lock:
            return list(self._waiting)

    def pending(self, key: ConversationKey) -> list[PendingMessages]:
        """Return a conversation's messages, in order."""
        with self._lock:
            return list(self._waiting.get(key, {}).values())

    def keep(self, key: ConversationKey, messages: Sequence[BaseMessage]) -> None:
        """Add messages (which have ids) after those that are already there; all of them or none.

        Raises:
            OutboxError: They would exceed the limit, or have no owner.
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
        """Remove messages that have been stored."""
        with self._lock:
            held = self._waiting.get(key)
            if held is None:
                return
            for message in messages:
                held.pop(str(message.id), None)
            if not held:
                del self._waiting[key]

    def forget(self, key: ConversationKey, message_id: str) -> None:
        """Remove one message, because it was forgotten."""
        with self._lock:
            for each in (replace(key, private=private) for private in (False, True)):
                held = self._waiting.get(each)
                if held is not None:
                    held.pop(message_id, None)
                    if not held:
                        del self._waiting[each]

    def drop(self, key: ConversationKey) -> None:
        """Remove all messages of a conversation, because it was forgotten."""
        with self._lock:
            for private in (False, True):
                self._waiting.pop(replace(key, private=private), None)
