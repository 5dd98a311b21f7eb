"""Lanes: pieces of work that go on at the same time and are settled in the order in which they were begun."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from typing import Generic, TypeVar

from textgrad_engine import dispatch
from textgrad_engine.dispatch.threads import Pool

T = TypeVar("T")


class Lanes(Generic[T]):
    """So many lanes, or `ahead` times as many, each with one piece of work; pieces beyond these wait until one is done.

    The order of `take` is that of `put`, whichever piece is ready first: so what is decided from the results does not
    depend on the order in which models answer. A piece runs in a thread, as a program under search is plain Python that
    may wait for its model; the model calls themselves all run on the one event loop.

    Args:
        count: how many lanes.
        ahead: so many times as many pieces may go on at a time; a whole number from 1.

    Raises:
        ValueError: `count` is less than 1.

    Example:
        >>> lanes = Lanes(2)
        >>> lanes.put(lambda: "a")
        >>> lanes.put(lambda: "b")
        >>> lanes.take(), lanes.take(), lanes.under_way
        ('a', 'b', 0)
        >>> lanes.close()
    """

    def __init__(self, count: int, *, ahead: int = 1) -> None:
        if count < 1:
            raise ValueError(f"there must be at least 1 lane, got {count}")
        self.count, self.most = count, count * ahead
        self._pool: Pool | None = None
        self._begun: deque[tuple[Future[T], int]] = deque()

    @property
    def under_way(self) -> int:
        """How many pieces have been put and not taken."""
        return len(self._begun)

    @property
    def oldest(self) -> int:
        """The number of the piece that is taken next; 0 where there is none."""
        return self._begun[0][1] if self._begun else 0

    def put(self, work: Callable[[], T], number: int = 0) -> None:
        """Begin a piece of work, with the context variables of now, and the number of its proposal, if it has one.

        It is done when all the calls are that it made, also those that nobody reads: what comes after may use up the
        budget, and would decide by chance which of these are on record.
        """
        if self._pool is None:
            self._pool = Pool(self.most)
        context = copy_context()
        context.run(dispatch.begun_from.set, dispatch.caller_line())
        self._begun.append((self._pool.submit(context.run, _whole, work, number), number))

    def take(self) -> T:
        """The result of the oldest piece; waits for it.

        Raises:
            Whatever it raised.
        """
        future, _ = self._begun[0]
        dispatch.settled([future])  # Ctrl-C meanwhile leaves it the oldest
        self._begun.popleft()
        return future.result()

    def give_back(self, result: T, number: int = 0) -> None:
        """Have `take` give a result once more that it gave last, and that came to nothing."""
        future: Future[T] = Future()
        future.set_result(result)
        self._begun.appendleft((future, number))

    def close(self) -> None:
        """Wait for what is under way and drop it.

        All of it is run to its end, also what no thread has taken up yet: what is paid for must not depend on a race of
        threads. But where a Ctrl-C that gives up its calls is on its way, what else it does is not waited for.
        """
        if self._pool is not None:
            futures = [future for future, _ in self._begun]
            if dispatch.gives_up(sys.exception()):
                self._pool.leave(futures)
            else:
                dispatch.settled(futures)
            self._pool = None
        self._begun.clear()


def _whole(work: Callable[[], T], number: int) -> T:
    with dispatch.Scope() as calls:
        result = work()
    dispatch.through_with(calls, f"proposal {number}" if number else "a search")
    return result
