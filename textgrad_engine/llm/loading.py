"""Heavy packages, loaded by the first call that needs one, and forks, which wait until they are there.

The event-loop thread loads them, for up to a second; a child that was forked meanwhile would have half a module, and
every call of its own would fail.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator

PATIENCE = 10.0
"""Seconds that a fork waits at most, e.g. where what is loaded waits for the thread that forks."""

_under_way = threading.RLock()
_held: list[bool] = []


@contextlib.contextmanager
def loading() -> Iterator[None]:
    """Inside the block, packages are loaded, and no other thread forks the process."""
    with _under_way:
        yield


def _wait() -> None:
    _held.append(_under_way.acquire(timeout=PATIENCE))


def _go_on() -> None:
    if _held.pop():
        _under_way.release()


def _go_on_in_child() -> None:
    global _under_way  # noqa: PLW0603  whoever holds it is not here
    _held.clear()
    _under_way = threading.RLock()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(before=_wait, after_in_parent=_go_on, after_in_child=_go_on_in_child)
