"""The outbox: failed writes, kept in order until the database is back. In process memory, and bounded."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from copy import copy
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory import fork
from langchain_supabase_memory.errors import OutboxError
from langchain_supabase_memory.humanize import pluralize

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Self

    from langchain_core.messages import BaseMessage

    from langchain_supabase_memory.values import ConversationKey

PendingMessages = tuple["BaseMessage", float]
"""A message, and when it should have been stored, in seconds of `monotonic`: the wall clock may be set meanwhile."""


_LONGEST_FOR_USER: Final = timedelta(days=1)
"""How long messages wait for a signed-in user to come back."""

_logger = logging.getLogger(__name__)


def due_times(batch: Sequence[tuple[BaseMessage, float | None]]) -> list[datetime | None]:
    """Return when each message of a batch should have been stored, by the wall clock as it is now.

    Args:
        batch: Messages of the outbox, and new ones with `None`.
    """
    begun = datetime.now(UTC) - timedelta(seconds=monotonic())
    return [None if since is None else begun + timedelta(seconds=since) for _, since in batch]


class _Waiting:
    """What waits in this process, by the signed-in user and the conversation, and its lock."""

    def __init__(self) -> None:
        fork.run_in_each_process(self._begin)

    def _begin(self) -> None:
        self.lock = threading.Lock()
        # The parent process delivers its own outbox.
        self.messages: OrderedDict[tuple[str | None, ConversationKey], OrderedDict[str, PendingMessages]] = (
            OrderedDict()
        )


class Outbox:
    """Messages that could not be stored, by conversation. Every method is thread-safe.

    Args:
        limit: The maximum number of messages, over all conversations and users.
        needs_owner: Whether to keep only messages that name their owner, because another user may be signed in
            later.
    """

    def __init__(self, limit: int, *, needs_owner: bool = False) -> None:
        self.limit = limit
        self.needs_owner = needs_owner
        self._user: str | None = None
        self._waiting = _Waiting()

    def of_user(self, user: str) -> Self:
        """Return the part of this outbox whose messages a user's token alone can store.

        Args:
            user: The subject of a token that the database has accepted; nobody else may see what waits.
        """
        part = copy(self)
        part._user = user
        part.needs_owner = False
        return part

    def __len__(self) -> int:
        """Return the number of messages of this part."""
        with self._waiting.lock:
            return sum(len(self._waiting.messages[self._user, key]) for key in self._keys())

    @property
    def total(self) -> int:
        """The number of messages of all users."""
        with self._waiting.lock:
            return self._count()

    def conversations(self) -> list[ConversationKey]:
        """Return the conversations with messages, the oldest first."""
        with self._waiting.lock:
            return self._keys()

    def pending(self, key: ConversationKey) -> list[PendingMessages]:
        """Return a conversation's messages, in order."""
        with self._waiting.lock:
            return list(self._waiting.messages.get(self._place(key), {}).values())

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
        now, place = monotonic(), self._place(key)
        with self._waiting.lock:
            self._drop_old(now)
            held = self._waiting.messages.get(place, OrderedDict())
            fresh = {str(message.id): (message, now) for message in messages if message.id not in held}
            if self._count() + len(fresh) > self.limit:
                raise OutboxError
            if fresh:
                self._waiting.messages.setdefault(place, held).update(fresh)

    def move_to(self, other: Outbox) -> None:
        """Move all messages of this part to another outbox, behind what waits there for the same conversation."""
        with self._waiting.lock:
            moved = [(key, self._waiting.messages.pop((self._user, key))) for key in self._keys()]
        with other._waiting.lock:
            for key, held in moved:
                place = other._place(key)
                other._waiting.messages.setdefault(place, OrderedDict()).update(held)

    def delivered(self, key: ConversationKey, messages: Sequence[BaseMessage]) -> None:
        """Remove messages that have been stored."""
        with self._waiting.lock:
            self._remove(self._place(key), [str(message.id) for message in messages])

    def forget(self, key: ConversationKey, message_id: str) -> None:
        """Remove one message, because it was forgotten."""
        with self._waiting.lock:
            for place in self._places(key):
                self._remove(place, [message_id])

    def drop(self, key: ConversationKey) -> None:
        """Remove all messages of a conversation, because it was forgotten."""
        with self._waiting.lock:
            for place in self._places(key):
                self._waiting.messages.pop(place, None)

    def drop_user(self, owner: str | None, agent_id: str | None) -> None:
        """Remove all messages of an owner, because they were forgotten.

        Args:
            owner: The owner; `None` means the user of this part.
            agent_id: Only those of conversations with this agent; `None` means all.
        """
        with self._waiting.lock:
            for user, key in list(self._waiting.messages):
                is_owners = (user, key.user_id) in ((self._user, owner), (owner or self._user, None))
                if is_owners and agent_id in (None, key.agent_id):
                    del self._waiting.messages[user, key]

    def _place(self, key: ConversationKey) -> tuple[str | None, ConversationKey]:
        is_named = self._user is not None and key.user_id == self._user
        return self._user, replace(key, user_id=None) if is_named else key

    def _places(self, key: ConversationKey) -> Iterator[tuple[str | None, ConversationKey]]:
        """The places of a conversation: private or not, with who names its owner and with its signed-in owner."""
        for private in (False, True):
            user, at = self._place(replace(key, private=private))
            yield user, at
            if user is None and at.user_id is not None:
                yield at.user_id, replace(at, user_id=None)

    def _keys(self) -> list[ConversationKey]:
        return [key for user, key in self._waiting.messages if user == self._user]

    def _count(self) -> int:
        return sum(map(len, self._waiting.messages.values()))

    def _remove(self, place: tuple[str | None, ConversationKey], message_ids: Sequence[str]) -> None:
        held = self._waiting.messages.get(place)
        if held is None:
            return
        for message_id in message_ids:
            held.pop(message_id, None)
        if not held:
            del self._waiting.messages[place]

    def _drop_old(self, now: float) -> None:
        """Drop what waits for a user who did not come back, so that it takes no place for good."""
        dropped = 0
        for (user, key), held in list(self._waiting.messages.items()):
            newest = max(time for _, time in held.values())
            if user is not None and newest < now - _LONGEST_FOR_USER.total_seconds():
                dropped += len(self._waiting.messages.pop((user, key)))
        if dropped:
            _logger.warning("%s dropped: no token of the user came for a day.", pluralize(dropped, "waiting message"))
