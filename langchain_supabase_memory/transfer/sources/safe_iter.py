"""What a document of somebody else's may hold: anything. One that is not what it should be costs itself alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_supabase_memory.errors import SupabaseMemoryError
from langchain_supabase_memory.transfer.values import SourceProblem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from langchain_supabase_memory.transfer.values import Event


def safe_iter(events: Iterable[Event], why: str, hint: str, place: str) -> Iterator[Event]:
    """Events as they are read; where reading fails they end with a problem.

    Args:
        events: The events.
        why: What the problem says; an error's own words may hold content.
        hint: Its next action.
        place: Where it stands.
    """
    try:
        yield from events
    except SupabaseMemoryError:
        raise
    except Exception:  # whatever a document holds
        yield SourceProblem(why, hint, place)
