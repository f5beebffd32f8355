"""The base class of the long-term memories: one user, sync and async, over a store that runs one step at a time."""

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
    """A long-term memory of one user whose operations are generators of steps, each one call of the store.

    Args:
        user_id: The user who owns the memories.
        name: A name that distinguishes this long-term memory from the user's others.

    Raises:
        InvalidInputError: The user id is not a usable string.
    """

    def __init__(self, user_id: str, name: str) -> None:
        check_id("user_id", user_id)
        self._user_id = user_id
        self._name = name

    @property
    def user_id(self) -> str:
        """The user who owns the memories."""
        return self._user_id

    @property
    def name(self) -> str:
        """The name that distinguishes this long-term memory from the user's others."""
        return self._name

    def remember(self, memories: Iterable[Memory]) -> Remembered:
        """Store each memory once; existing ones are unchanged.

        Args:
            memories: The memories to store.

        Returns:
            Which memories were new and which already existed.

        Raises:
            Exception: Any error of the store; memories stored before it remain, and the call is safe to repeat.
        """
        return effects.run(self._remembering(self._own(memories)))

    async def aremember(self, memories: Iterable[Memory]) -> Remembered:
        """The async twin of `remember`."""
        return await effects.arun(self._remembering(self._own(memories)))

    def recall(self, query: str, limit: int = 5, kinds: Collection[str] | None = None) -> list[Memory]:
        """Return the memories that best match a query, the best first.

        Args:
            query: The query text. If blank, a LangGraph store lists its memories in its own order, and a vector store
                refuses the query, because it only searches by meaning.
            limit: The maximum number of memories.
            kinds: Only memories of these kinds.

        Returns:
            Up to `limit` memories, each text once; all of them if the store returns fewer.

        Raises:
            InvalidInputError: An argument is not valid.
        """
        return effects.run(self._recalling(query, limit, kinds))

    async def arecall(self, query: str, limit: int = 5, kinds: Collection[str] | None = None) -> list[Memory]:
        """The async twin of `recall`."""
        return await effects.arun(self._recalling(query, limit, kinds))

    def forget(self, ids: Iterable[str]) -> None:
        """Delete memories, if they exist.

        Raises:
            InvalidInputError: An id is not a UUID.
        """
        effects.run(self._forgetting(ids))

    async def aforget(self, ids: Iterable[str]) -> None:
        """The async twin of `forget`."""
        await effects.arun(self._forgetting(ids))

    def _own(self, memories: Iterable[Memory]) -> dict[str, Memory]:
        """Assign memories to this user and index them by id; the last of each id wins."""
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
