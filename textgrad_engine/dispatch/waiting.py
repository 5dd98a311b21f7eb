"""Waits of a thread that a Ctrl-C ends, on every system.

NOTE [Looking up]
    Python handles a signal between two instructions of the main thread. On Windows no signal ends a wait for a lock, so
    one without an end keeps Ctrl-C waiting for as long; elsewhere it keeps one that comes just when it begins. So
    whatever the main thread may wait for longer than a moment is waited for in pieces of `LOOK_UP_SECONDS`.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterable
from concurrent.futures import CancelledError, Future
from typing import Any, TypeVar

T = TypeVar("T")

LOOK_UP_SECONDS = 1.0
"""How long a wait goes on without looking up."""
_BETWEEN_LOOKS = 0.05
"""So many seconds at most count of what passes between two looks of a `Moment`."""


class Moment:
    """How long one looks again and again for what somebody else may be about to do.

    It counts what passes between two looks, up to 0.05 s: where more passed, the machine had other things to do or was
    asleep, and the others had no chance either. It may be shared by several who look; none of them may look from two
    threads at once.

    Args:
        seconds: its length. One of 0 is over at the first look.

    Example:
        >>> moment = Moment(0.1)
        >>> moment.over()
        False
        >>> while not moment.over():
        ...     time.sleep(0.01)
    """

    def __init__(self, seconds: float) -> None:
        self._left, self._looked = seconds, time.monotonic()

    def over(self) -> bool:
        """Whether it is over by now; to be asked at each look."""
        now = time.monotonic()
        self._left -= min(now - self._looked, _BETWEEN_LOOKS)
        self._looked = now
        return self._left <= 0


def settled(futures: Iterable[Future[Any]]) -> None:
    """Wait until these are done, however they end; see NOTE [Looking up].

    Example:
        >>> future = Future()
        >>> future.set_exception(ValueError("no"))
        >>> settled([future])
    """
    for future in futures:
        while not future.done():
            with contextlib.suppress(TimeoutError, CancelledError):
                future.exception(LOOK_UP_SECONDS)


def result_of(future: Future[T]) -> T:
    """What a future came to, waited for as NOTE [Looking up] says.

    Raises:
        BaseException: what it failed with.

    Example:
        >>> future = Future()
        >>> future.set_result(42)
        >>> result_of(future)
        42
    """
    settled([future])
    return future.result()


def place_taken(places: threading.Semaphore) -> None:
    """Take one of the places, waited for as NOTE [Looking up] says.

    Example:
        >>> places = threading.Semaphore(1)
        >>> place_taken(places)
        >>> places.acquire(blocking=False)
        False
    """
    while not places.acquire(timeout=LOOK_UP_SECONDS):
        pass
