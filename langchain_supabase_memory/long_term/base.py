"""What every long-term memory of ours is: of one user, in both colors, over a store that does one step at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from langchain_supabase_memory import effects
from langchain_supabase_memory.unpicklable import Unpicklable
from langchain_supabase_memory.values import check_id

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from langchain_supabase_memory.effects import Effects
    from langchain_supabase_memory.long_term.memories import Memory, Remembered


class SingleUserLongTerm(Unpicklable, ABC):
    """A long-term memory whose operations are generators of steps, each of which is one call of a store.

    Args:
        user_id: Whose memories.
        name: What tells this long-term memory from another one of the same user.

    Raises:
        InvalidInputError: The user id is not a usable string.
    """

    def __init__(self, user_id: str, name: str) -> None:
        check_id("user_id", user_id)
        self._user_id = user_id
        self._name = name

    @property
    def user_id(self) -> str:
        """Whose memories they are."""
        return self._user_id

    @property
    def name(self) -> str:
        """What tells this long-term memory from another one of the same user."""
        return self._name

    def remember(self, memories: Iterable[Memory]) -> Remembered:
        """Store memories, once each; one that is there already stays as it is.

        Args:
            memories: What to remember.

        Returns:
            Which were new and which were known.

        Raises:
            Exception: Whatever the store raises; what was stored before stays, and the call is safe to repeat.
        """
        return effects.run(self._remembering(self._own(memories)))

    async def aremember(self, memories: Iterable[Memory]) -> Remembered:
        """The async twin of `remember`."""
        return await effects.arun(self._remembering(self._own(memories)))

    def recall(self, query: str, limit: int = 5, kinds: Collection[str] | None = None) -> list[Memory]:
        """The memories that fit a question best, the best first.

        Args:
            query: What is asked, in words. Blank, it lists what a LangGraph store has, in its own order; a vector store
                finds by meaning and refuses it.
            limit: The most memories.
            kinds: Only those of these kinds.

        Returns:
            Up to `limit` memories, each text once; no fewer than there are, as far as the store says.

        Raises:
            InvalidInputError: Something is none of its choices.
        """
        return effects.run(self._recalling(query, limit, kinds))

    async def arecall(self, query: str, limit: int = 5, kinds: Collection[str] | None = None) -> list[Memory]:
        """The async twin of `recall`."""
        return await effects.arun(self._recalling(query, limit, kinds))

    def forget(self, ids: Iterable[str]) -> None:
        """Delete memories, if they are there.

        Raises:
            InvalidInputError: An id is no uuid.
        """
        effects.run(self._forgetting(ids))

    async def aforget(self, ids: Iterable[str]) -> None:
        """The async twin of `forget`."""
        await effects.arun(self._forgetting(ids))

    def _own(self, memories: Iterable[Memory]) -> dict[str, Memory]:
        """Memories as this user's, by their ids, the last of each."""
        return {str(each.id): each for each in (memory.with_owner(self._user_id) for memory in memories)}

    @abstractmethod
    def _remembering(self, memories: dict[str, Memory]) -> Effects[Remembered]:
        """The steps of `remember`."""

    @abstractmethod
    def _recalling(self, query: str, limit: int, kinds: Collection[str] | None) -> Effects[list[Memory]]:
        """The steps of `recall`."""

    @abstractmethod
    def _forgetting(self, ids: Iterable[str]) -> Effects[None]:
        """The steps of `forget`."""
