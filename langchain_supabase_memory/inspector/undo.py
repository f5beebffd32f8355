"""Changes that can be undone for a minute. What is needed for it lies in this process, and goes with the minute."""

from __future__ import annotations

import asyncio
import secrets
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.errors import InvalidInputError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable

    from langchain_supabase_memory.inspector.request_context import RequestContext

UNDO_SECONDS: Final = 60.0
"""How long a change can be undone."""

_MAX_CHANGES: Final = 1_000
"""The maximum number of changes that can be undone; the oldest go first."""


@dataclass(frozen=True)
class UndoableChange:
    """A change that can be undone.

    Attributes:
        viewer: The session and the person that made it, who alone may undo it.
        subject: The conversation or the user that it is about.
        text: What was done, without any of its words.
        action: The address of the form that undoes it.
        reverse: Undoes it, with the rights of the request that asks for it.
    """

    viewer: Hashable
    subject: Hashable
    text: str
    action: str
    reverse: Callable[[RequestContext], Awaitable[None]]


class UndoStore:
    """The changes of the last minute."""

    def __init__(self) -> None:
        self._changes: OrderedDict[str, UndoableChange] = OrderedDict()
        self._running: set[str] = set()

    def put(self, change: UndoableChange) -> str:
        """Keep a change for a minute.

        Returns:
            Its token, for the address of the page that offers to undo it.
        """
        token = secrets.token_urlsafe(16)
        self._changes[token] = change
        while len(self._changes) > _MAX_CHANGES:
            self._changes.popitem(last=False)
        asyncio.get_running_loop().call_later(UNDO_SECONDS, self._changes.pop, token, None)
        return token

    def find(self, viewer: Hashable, token: str) -> UndoableChange | None:
        """Return a viewer's change; `None` if there is none any more.

        Args:
            viewer: Who asks.
            token: The token.
        """
        change = self._changes.get(token)
        return change if change is not None and change.viewer == viewer else None

    async def undo(self, context: RequestContext, token: str, subject: Hashable) -> None:
        """Undo a viewer's change, once. What the database could not be reached for can be undone again.

        Args:
            context: The request that asks.
            token: The token.
            subject: The conversation or the user that the address names.

        Raises:
            InvalidInputError: There is none any more.
            SupabaseMemoryError: The change could not be undone.
        """
        change = self.find(context.viewer, token)
        if change is None or change.subject != subject or token in self._running:
            raise InvalidInputError(
                "This cannot be undone any more.", hint="A change can be undone once, for a minute. Change it by hand."
            )
        is_over = True
        self._running.add(token)
        try:
            await change.reverse(context)
        except UnavailableError:
            is_over = False
            raise
        finally:
            self._running.discard(token)
            if is_over:
                self._changes.pop(token, None)
