"""A base class for objects that hold connections: copies share them, and pickling fails."""

from __future__ import annotations

from typing import Any, NoReturn, Self

from langchain_supabase_memory.errors import ConfigurationError


class Unpicklable:
    """Base class for objects that hold connections: a deep copy is the object itself, and pickle is refused."""

    def __copy__(self) -> Self:
        """Return another object over the same connections."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return the object itself, because its connections cannot be copied."""
        return self

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Refuse to pickle: connections and keys stay in the process that opened them."""
        raise ConfigurationError(
            f"{type(self).__name__} belongs to the process that created it, so it cannot be pickled.",
            hint="Pass the url or the connection string to the other process, and create the memory there.",
        )
