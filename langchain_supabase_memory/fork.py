"""What a process holds is its own: after a fork the child begins anew, and touches nothing of its parent's.

A child inherits a copy of everything, the numbers of open connections included: what it sends over one of them, or how
it closes one, reaches the parent's session. It also inherits locks that a thread of the parent holds, and no thread.
"""

from __future__ import annotations

import ctypes
import os
import socket
import threading
from contextlib import suppress
from types import MethodType
from typing import TYPE_CHECKING, Final
from weakref import WeakMethod

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

_METHODS: Final[set[WeakMethod[Callable[[], None]]]] = set()
_FUNCTIONS: Final[list[Callable[[], None]]] = []


def run_in_each_process(begin: Callable[[], None]) -> None:
    """Call a method now, and again in each child process, right after the fork and before anything else runs there.

    Args:
        begin: A bound method that sets what its object holds to what an unused one holds, or a function of a module. It
            may neither block nor take a lock that existed before. The object of a method is not kept alive.
    """
    begin()
    if isinstance(begin, MethodType):
        _METHODS.add(WeakMethod(begin, _METHODS.discard))
    else:
        _FUNCTIONS.append(begin)


def sever(descriptor: int) -> None:
    """In a child, replace a connection of the parent by one that is closed at its other end.

    The parent's session sees nothing of it, and whatever still writes to the number or closes it does no harm.

    Args:
        descriptor: The number of the connection's socket.
    """
    dead, other = socket.socketpair()
    other.close()
    with suppress(OSError):
        os.dup2(dead.fileno(), descriptor, inheritable=False)
    dead.close()


def leave_to_parent(inherited: object) -> None:
    """In a child, never free an object of the parent, not at the end of the process either: freeing it would act.

    Args:
        inherited: An object that stops threads, closes connections or takes locks when it is freed.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(inherited))


class Lock:
    """A lock that nobody holds in a child process. Arguments as for `threading.Lock`; it may be taken again inside."""

    def __init__(self) -> None:
        run_in_each_process(self._begin)

    def _begin(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()


def _in_child() -> None:
    failed: list[Exception] = []
    for begin in [*_FUNCTIONS, *(method() for method in list(_METHODS))]:
        try:
            if begin is not None:
                begin()
        except Exception as error:
            failed.append(error)
    if failed:
        raise failed[0]  # Python writes it to the standard error, and goes on


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_in_child)
