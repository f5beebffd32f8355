"""Fork safety: after a fork the child starts fresh, and touches nothing of its parent's.

A child inherits a copy of everything, including the file descriptors of open connections: what it sends over one, or
how it closes one, reaches the parent's session. It also inherits locks that a thread of the parent holds, but no
threads.
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
    """Call a method now, and again in each child process, right after the fork and before any other code runs there.

    Args:
        begin: A bound method that resets its object to the unused state, or a module function. It must not block or
            take a lock that existed before. The method's object is not kept alive.
    """
    begin()
    if isinstance(begin, MethodType):
        _METHODS.add(WeakMethod(begin, _METHODS.discard))
    else:
        _FUNCTIONS.append(begin)


def sever(descriptor: int) -> None:
    """In a child, replace a connection of the parent with one that is closed at its other end.

    The parent's session sees nothing of it, and code that still writes to the descriptor or closes it does no harm.

    Args:
        descriptor: The file descriptor of the connection's socket.
    """
    dead, other = socket.socketpair()
    other.close()
    with suppress(OSError):
        os.dup2(dead.fileno(), descriptor, inheritable=False)
    dead.close()


def leave_to_parent(inherited: object) -> None:
    """In a child, never free an object of the parent, even at process exit, because freeing it has side effects.

    Args:
        inherited: An object that stops threads, closes connections or takes locks when it is freed.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(inherited))


class Lock:
    """A lock that is free in a child process. Arguments as for `threading.Lock`; it may wrap a reentrant lock."""

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
        raise failed[0]  # Python writes it to standard error and continues


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_in_child)
