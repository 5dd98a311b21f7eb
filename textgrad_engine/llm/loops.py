"""State that belongs to an event loop: clients, queues and timers must not wander from one loop to another."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


def is_running() -> bool:
    """Whether a loop runs in this thread, and would wait with whoever waits here."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class PerLoop(Generic[T]):
    """One value for each running event loop, made where it is first used.

    A model is usually used on the library's own loop only; somebody who calls it from a loop of theirs, or in a forked
    child (whose loop is a new one), gets fresh state instead of futures of a loop that is gone.

    Args:
        make: makes the value of a loop; called on that loop.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._all: dict[asyncio.AbstractEventLoop, T] = {}
        self._last: tuple[asyncio.AbstractEventLoop, T] | None = None

    def get(self) -> T:
        """The value of the running loop."""
        loop = asyncio.get_running_loop()
        last = self._last
        if last is not None and last[0] is loop:
            return last[1]
        with self._lock:
            for gone in [known for known in self._all if known.is_closed()]:
                del self._all[gone]
            if loop not in self._all:
                self._all[loop] = self._make()
            value = self._all[loop]
        self._last = (loop, value)
        return value

    def pop(self) -> T | None:
        """Forget the value of the running loop, and return it."""
        loop = asyncio.get_running_loop()
        with self._lock:
            self._last = None
            return self._all.pop(loop, None)

    def items(self) -> list[tuple[asyncio.AbstractEventLoop, T]]:
        """All loops that have a value, with it."""
        with self._lock:
            return list(self._all.items())
