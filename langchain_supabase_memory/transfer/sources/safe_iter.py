"""Contains failures of reading untrusted documents: a malformed one only costs itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_supabase_memory.errors import SupabaseMemoryError
from langchain_supabase_memory.transfer.values import SourceProblem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from langchain_supabase_memory.transfer.values import Event


class UnreadableTimeError(ValueError):
    """A document names a time that is none."""


def safe_iter(events: Iterable[Event], why: str, hint: str, place: str) -> Iterator[Event]:
    """Yield events as they are read; if reading fails, yield a problem and stop.

    Args:
        events: The events.
        why: The problem's text, because the error's own text may include content.
        hint: The problem's hint.
        place: The location in the source.
    """
    try:
        yield from events
    except SupabaseMemoryError:
        raise
    except UnreadableTimeError:
        yield SourceProblem("A time cannot be read.", hint, place)
    except Exception:  # whatever a document contains
        yield SourceProblem(why, hint, place)
