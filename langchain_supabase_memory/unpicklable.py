"""What holds connections, and so belongs to its process: it is shared by its copies and cannot be pickled."""

from __future__ import annotations

from typing import Any, NoReturn, Self

from langchain_supabase_memory.errors import ConfigurationError


class Unpicklable:
    """A base class for what holds connections: a deep copy of it is itself, and pickle refuses it."""

    def __copy__(self) -> Self:
        """Another of the same, over the same connections."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Itself: its connections cannot be copied."""
        return self

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Refuse: connections and keys stay in the process that opened them."""
        raise ConfigurationError(
            f"{type(self).__name__} belongs to the process that made it, so it cannot be pickled.",
            hint="Pass the url or the connection string to the other process, and make the memory there.",
        )
