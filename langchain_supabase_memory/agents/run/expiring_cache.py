"""A cache of limited size whose values expire; each process begins with an empty one."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from typing import Generic, TypeVar

from langchain_supabase_memory import fork

K = TypeVar("K")
V = TypeVar("V")


class ExpiringCache(Generic[K, V]):
    """Keeps the newest values for some time. Every method is safe to call from any thread.

    Args:
        seconds: How long a value is kept after it was set, in seconds.
        max_items: The most values.
    """

    def __init__(self, seconds: float, max_items: int = 1_000) -> None:
        self._seconds = seconds
        self._max_items = max_items
        fork.run_in_each_process(self._begin)

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._items: OrderedDict[K, tuple[float, V]] = OrderedDict()

    def set(self, key: K, value: V) -> None:
        """Keep a value."""
        now = time.monotonic()
        with self._lock:
            self._items[key] = now + self._seconds, value
            self._items.move_to_end(key)
            while self._items and (len(self._items) > self._max_items or next(iter(self._items.values()))[0] < now):
                self._items.popitem(last=False)

    def get(self, key: K) -> V | None:
        """Return a value; `None` if there is none, or it has expired."""
        with self._lock:
            until, value = self._items.get(key, (0.0, None))
        return value if until >= time.monotonic() else None

    def pop(self, key: K) -> V | None:
        """Remove a value and return it, to one caller only; `None` as for `get`."""
        with self._lock:
            until, value = self._items.pop(key, (0.0, None))
        return value if until >= time.monotonic() else None
