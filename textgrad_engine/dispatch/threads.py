"""Threads for code that may wait for anything: used again, and never taken from a pool that may run out.

NOTE [Code that waits]
    The default executor of an event loop has a few threads, which look up host names, too. Code that waits there for a
    value whose way leads through another piece of such code, or through a look-up, waits for ever as soon as there are
    as many such pieces as threads. So work that must begin has a thread at once (`begin`), whatever the others do.

    Of work that comes by the thousand, such as metrics, only `MOST_AT_A_TIME` pieces run at a time (`begin_in_turn`),
    or the event loop would get no share of the processor. What a piece may wait for is exempt: a piece that was begun
    by another one has no turn to wait for, and a thread that blocks on a value (`giving_way`) holds no place.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from contextvars import ContextVar
from queue import Empty, SimpleQueue
from typing import Any, TypeAlias

from textgrad_engine.scoped import setting

MOST_AT_A_TIME = 64
"""So many pieces that take their turn run at a time."""

IDLE_SECONDS = 5.0
"""How long a thread without work waits for more before it ends."""

A_MOMENT = 1.0
"""Seconds in which work whose calls were given up comes to its end, unless it does something else."""

_Work: TypeAlias = Callable[[], None]


class _Threads:
    """As many threads as there is work; those that have none are given the next."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[SimpleQueue[_Work]] = []  # where each idle thread gets its next work from

    @property
    def idle(self) -> int:
        """How many threads wait for work."""
        return len(self._idle)

    def begin(self, work: _Work) -> None:
        with self._lock:
            box = self._idle.pop() if self._idle else None
        if box is not None:
            box.put(work)
        else:  # a daemon, so that work that hangs does not keep the interpreter
            threading.Thread(target=self._serve, args=(work,), name="textgrad_engine_aside", daemon=True).start()

    def _serve(self, work: _Work | None) -> None:
        box: SimpleQueue[_Work] = SimpleQueue()
        while work is not None:
            work()
            work = None  # what it holds may be large, and the next may be long in coming
            with self._lock:
                self._idle.append(box)
            work = self._next(box)

    def _next(self, box: SimpleQueue[_Work]) -> _Work | None:
        with contextlib.suppress(Empty):
            return box.get(timeout=IDLE_SECONDS)
        with self._lock:
            if box in self._idle:
                self._idle.remove(box)
                return None
        return box.get()  # who took the box puts work into it


class _Turns:
    """Places for work that takes its turn, first come first served."""

    def __init__(self, most: int = MOST_AT_A_TIME) -> None:
        self._lock = threading.Lock()
        self._free = most  # below 0 while work runs that did not wait for a place
        self._begun = 0  # and not ended: these, unlike places, are also pieces that wait for a value
        self._waiting: deque[_Work] = deque()

    def begin(self, work: _Work) -> None:
        exempt = _in_turn.get()
        with self._lock:
            if self._free <= 0 and not exempt:
                self._waiting.append(work)
                return
            self._free -= 1
            self._begun += 1
        self._start(work, wait=not exempt)

    def _start(self, work: _Work, *, wait: bool) -> None:
        """Have work done that has a place. If the system gives no thread, it waits until other work ends."""
        try:
            _threads.begin(lambda: self._run(work))
        except RuntimeError:
            with self._lock:
                self._free += 1
                self._begun -= 1
                if not wait or not self._begun:
                    raise
                self._waiting.appendleft(work)

    def _run(self, work: _Work | None) -> None:
        _here.turns = self
        try:
            while work is not None:
                work()
                work = None
                with self._lock:
                    self._free += 1
                    self._begun -= 1
                    work = self._next()
        finally:
            _here.turns = None

    def _next(self) -> _Work | None:
        """Of the work that waits for a place what waits longest, with a place; None if there is none."""
        if not self._waiting or self._free <= 0:
            return None
        self._free -= 1
        self._begun += 1
        return self._waiting.popleft()

    def take(self) -> None:
        """Have a place without waiting for it."""
        with self._lock:
            self._free -= 1

    def release(self) -> None:
        """Give a place back, to the work that waits longest if there is one."""
        with self._lock:
            self._free += 1
            work = self._next()
        if work is not None:
            self._start(work, wait=True)


def begin(work: _Work) -> None:
    """Have work done in a thread, at once. It must not raise."""
    _threads.begin(work)


def begin_in_turn(work: _Work) -> None:
    """Have work done in a thread as soon as it is its turn; see NOTE [Code that waits]. It must not raise.

    Work that is begun in the context of other such work, as captured by `inside_turn`, begins at once.
    """
    _turns.begin(work)


class Pool:
    """As `concurrent.futures.ThreadPoolExecutor`, but what hangs in it does not keep the interpreter at its end.

    Args:
        most: how many threads it has at most.

    Example:
        >>> pool = Pool(2)
        >>> [pool.submit(pow, 2, n).result() for n in range(3)]
        [1, 2, 4]
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._threads = 0
        self._waiting: deque[tuple[Future[Any], Callable[[], Any]]] = deque()

    def submit(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
        """Have a function called in a thread, as soon as one is free."""
        future: Future[Any] = Future()
        with self._lock:  # until a thread is there or refused: else another one may do the piece meanwhile, and end
            self._waiting.append((future, lambda: function(*args)))
            if self._threads < self._most:
                self._threads += 1
                try:
                    begin(self._serve)
                except RuntimeError:  # the system gives no more threads: those that there are do it
                    self._threads -= 1
                    if not self._threads:
                        self._waiting.pop()
                        raise
        return future

    def cancel(self) -> None:
        """Leave out what has not begun."""
        with self._lock:
            waiting, self._waiting = self._waiting, deque()
        for future, _ in waiting:
            future.cancel()

    def leave(self, futures: Iterable[Future[Any]]) -> None:
        """Leave out what has not begun, and wait a moment for the rest of these, whose calls were given up."""
        self.cancel()
        wait_for([each for each in futures if not each.cancelled()], A_MOMENT)

    def _serve(self) -> None:
        while (piece := self._next()) is not None:
            future, work = piece
            if not future.set_running_or_notify_cancel():
                continue
            try:
                result = work()
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(result)
                del result
            del piece, future, work  # else an error and its frame keep each other alive

    def _next(self) -> tuple[Future[Any], Callable[[], Any]] | None:
        with self._lock:
            if self._waiting:
                return self._waiting.popleft()
            self._threads -= 1
            return None


@contextlib.contextmanager
def inside_turn() -> Iterator[None]:
    """Inside the block, which is that of work in its turn, further work has no turn to wait for."""
    with setting(_in_turn, True):
        yield


@contextlib.contextmanager
def giving_way() -> Iterator[None]:
    """Around a wait for a value: inside the block other work has the place of this thread, if it holds one."""
    turns: _Turns | None = getattr(_here, "turns", None)
    if turns is None:
        yield
        return
    turns.release()
    try:
        yield
    finally:
        turns.take()


_here = threading.local()
_in_turn: ContextVar[bool] = ContextVar("textgrad_engine_in_turn", default=False)
_threads, _turns = _Threads(), _Turns()


def _forget() -> None:
    global _threads, _turns
    _threads, _turns = _Threads(), _Turns()
    _here.turns = None


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_forget)
