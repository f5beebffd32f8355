"""Work that no answer waits for, done by threads of this process: a few at once, one task for a conversation."""

from __future__ import annotations

import atexit
import logging
import threading
import time
from collections import OrderedDict
from contextvars import Context, copy_context
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from langchain_supabase_memory import fork
from langchain_supabase_memory.deadline import in_thread, start_thread

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_supabase_memory.values import ConversationKey

_Name: TypeAlias = "tuple[object, ConversationKey]"
_Task: TypeAlias = "tuple[Context, Callable[[], None]]"

_MAX_THREADS: Final = 2
"""How many tasks of a memory run at once, each with one connection."""

_MAX_WAITING: Final = 1_000
"""How many tasks wait at most; what finds no place stays due in the database."""

CLOSE_SECONDS: Final = 5.0
"""How long closing a memory waits for its tasks, in seconds."""

FLUSH_SECONDS: Final = 60.0
"""How long `flush` waits for the tasks of a memory, in seconds."""

_EXIT_SECONDS: Final = 2.0
"""How long the end of the process waits for tasks, in seconds."""

_logger = logging.getLogger(__name__)


class BackgroundTasks:
    """The tasks of a memory and of all its users in this process.

    A task only does what is due in the database. If the process ends, or the queue is full, the work is still due, and
    the next load, a worker or another process does it.
    """

    def __init__(self) -> None:
        fork.run_in_each_process(self._begin)

    def _begin(self) -> None:
        self._changed = threading.Condition()
        self._waiting: OrderedDict[_Name, _Task] = OrderedDict()
        self._running: set[_Name] = set()
        self._threads = 0

    def __len__(self) -> int:
        """Return how many tasks wait or run."""
        return len(self._waiting) + len(self._running)

    def start(self, identity: object, key: ConversationKey, task: Callable[[], None]) -> bool:
        """Run a task soon, with this context's variables.

        Args:
            identity: Who the task acts as.
            key: The conversation; while a task for it waits or runs, no other is added.
            task: A function that logs its failures.

        Returns:
            Whether one waits or runs; not if the queue is full.
        """
        name = identity, key
        with self._changed:
            if name in self._waiting or name in self._running:
                return True
            if len(self._waiting) >= _MAX_WAITING:
                return False
            self._waiting[name] = copy_context(), task
            if self._threads >= _MAX_THREADS:
                return True
            self._threads += 1
            _BUSY.add(self)
        start_thread(self._work)
        return True

    def is_busy(self, identity: object, key: ConversationKey) -> bool:
        """Return whether a task for a conversation waits or runs. Arguments as for `start`."""
        return (identity, key) in self._waiting or (identity, key) in self._running

    def join(self, seconds: float, identity: object = None) -> bool:
        """Wait until no task waits or runs.

        Args:
            seconds: The longest wait.
            identity: Only the tasks that act as this one; `None` for all.

        Returns:
            Whether none is left.
        """
        with self._changed:
            return self._changed.wait_for(lambda: not self._names(identity), seconds)

    async def ajoin(self, seconds: float, identity: object = None) -> bool:
        """The async twin of `join`: the wait has its own thread."""
        return not self._names(identity) or await in_thread(partial(self.join, seconds, identity))

    def drop(self, identity: object = None) -> None:
        """Drop the tasks that wait; their work stays due. Arguments as for `join`."""
        with self._changed:
            for name in self._names(identity):
                self._waiting.pop(name, None)
            self._changed.notify_all()

    def _names(self, identity: object) -> list[_Name]:
        return [name for name in (*self._waiting, *self._running) if identity is None or name[0] is identity]

    def _work(self) -> None:
        while True:
            with self._changed:
                if not self._waiting:
                    self._threads -= 1
                    if not self._threads:
                        _BUSY.discard(self)
                    return
                name, (context, task) = self._waiting.popitem(last=False)
                self._running.add(name)
            try:
                context.run(task)
            except BaseException as error:
                _logger.error("Work behind an answer failed (%s); it is still due", type(error).__name__)
            del context, task  # what they hold is freed at once
            with self._changed:
                self._running.discard(name)
                self._changed.notify_all()


_BUSY: Final[set[BackgroundTasks]] = set()
"""The ones that have a thread, for the end of the process."""


def _finish() -> None:
    until = time.monotonic() + _EXIT_SECONDS
    for each in list(_BUSY):
        each.join(max(0.0, until - time.monotonic()))


atexit.register(_finish)
fork.run_in_each_process(_BUSY.clear)
