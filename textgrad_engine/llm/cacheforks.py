"""The files of caches while their process forks.

NOTE [Forks]
    SQLite keeps in the process which locks it holds in a file, and a forked child has that from its parent, but not the
    locks. A child of one that was writing just then waits for ever; else it takes its parent's locks for its own, so
    that the parent, when it closes the file, takes itself for the last one, and removes the log that the child writes
    answers to (sqlite.org/howtocorrupt.html, 2.6). So no file is open while a process forks: who forks waits for what
    is under way, and each process opens the file anew.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from typing import Protocol

_PATIENCE = 10.0
"""Seconds that a fork waits at most for what is read and written."""


class Resting(Protocol):
    """A file that can be closed until it is used again.

    Attributes:
        busy: is held by who uses it.
    """

    busy: threading.RLock

    def rest(self) -> None:
        """Close it until it is used again."""
        ...


FILES: weakref.WeakSet[Resting] = weakref.WeakSet()
"""Those that are in use."""

_opening = threading.RLock()
_held: list[list[threading.RLock]] = []


def opening() -> threading.RLock:
    """What is held by who opens a file, until it is one of `FILES`."""
    return _opening


def _rest() -> None:
    end = time.monotonic() + _PATIENCE
    held: list[threading.RLock] = []
    _held.append(held)
    if _opening.acquire(timeout=_PATIENCE):
        held.append(_opening)
    for file in list(FILES):
        if file.busy.acquire(timeout=max(0.0, end - time.monotonic())):
            held.append(file.busy)
            file.rest()


def _go_on() -> None:
    for lock in _held.pop():
        lock.release()


def _go_on_in_child() -> None:
    global _opening  # noqa: PLW0603  whoever holds it is not here
    _held.clear()
    _opening = threading.RLock()
    for file in list(FILES):
        file.busy = threading.RLock()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(before=_rest, after_in_parent=_go_on, after_in_child=_go_on_in_child)
