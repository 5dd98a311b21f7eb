"""Waits of a thread that a Ctrl-C ends, on every system.

NOTE [Looking up]
    Python handles a signal between two instructions of the main thread. On Windows no signal ends a wait for a lock, so
    one without an end keeps Ctrl-C waiting for as long; elsewhere it keeps one that comes just when it begins. So
    whatever the main thread may wait for longer than a moment is waited for in pieces of `LOOK_UP_SECONDS`.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable
from concurrent.futures import CancelledError, Future
from typing import Any, TypeVar

__all__ = ["LOOK_UP_SECONDS", "place_taken", "result_of", "settled"]

T = TypeVar("T")

LOOK_UP_SECONDS = 1.0
"""How long a wait goes on without looking up."""


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
