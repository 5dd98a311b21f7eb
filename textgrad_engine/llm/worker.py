"""A thread that does one piece of work after the other, and that may be ended from anywhere."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, TypeVar

R = TypeVar("R")

_PATIENCE = 5.0
"""Seconds that the end of the interpreter waits for work that is still to be done."""


class Closed(RuntimeError):
    """Work was given to a worker that takes no more; it was not done."""


class Worker:
    """Does work on a thread of its own, in order.

    Note [ended by the garbage collector]. `close` takes no lock, for it may be called by a finalizer: in the middle of
    any code, on a thread that holds any lock. `ThreadPoolExecutor.submit` holds one for all executors together while
    it starts a thread, and a collection on that new thread that submits to another executor waits for ever. A
    `SimpleQueue` is made for this: its `put` may interrupt itself.

    Args:
        name: of the thread.
        at_last: the work that `close` leaves to be done behind all other.

    Attributes:
        pid: the process that the thread belongs to; a forked child has none.
    """

    def __init__(self, name: str, at_last: Callable[[], object]) -> None:
        self.pid = os.getpid()
        self._closed = False
        self._at_last = at_last
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        # A daemon, so that one that hangs does not keep the interpreter; `_end` waits for the others.
        self._thread = threading.Thread(target=_serve, args=(self._jobs,), name=name, daemon=True)
        self._thread.start()
        _workers.add(self)

    async def run(self, work: Callable[..., R], *args: Any) -> R:
        """Do some work and wait for it on the running loop.

        Raises:
            Closed: the worker is closed.
        """
        return await asyncio.wrap_future(self._put(work, args))

    def run_here(self, work: Callable[..., R]) -> R:
        """Do some work and block until it is done.

        Raises:
            Closed: the worker is closed.
        """
        return self._put(work, ()).result()

    def post(self, work: Callable[..., object], *args: Any) -> None:
        """Do some work by and by; nobody hears how it ends, and after `close` it is not done."""
        with contextlib.suppress(Closed):
            self._put(work, args)

    def close(self) -> None:
        """Take no more work; what is to be done at last is done behind the rest. Does not wait."""
        if not self._closed and self.pid == os.getpid():
            self._closed = True
            self._jobs.put((Future(), self._at_last, ()))
            self._jobs.put(None)

    def join(self, seconds: float | None = None) -> None:
        """Wait until the thread has ended after `close`, but no longer than that."""
        self._thread.join(seconds)

    def _put(self, work: Callable[..., R], args: tuple[Any, ...]) -> Future[R]:
        future: Future[R] = Future()
        if not self._closed:
            self._jobs.put((future, work, args))
        if self._closed and future.cancel():  # also when it was closed just now, and this may lie behind the end
            raise Closed("this is closed; open it anew")
        return future


_Job = tuple[Future[Any], Callable[..., Any], tuple[Any, ...]]


def _serve(jobs: SimpleQueue[_Job | None]) -> None:
    while (job := jobs.get()) is not None:
        future, work, args = job
        if future.set_running_or_notify_cancel():
            try:
                result = work(*args)
            except BaseException as error:  # it is that of who waits for the work
                future.set_exception(error)
            else:
                future.set_result(result)
                del result
        del job, future, work, args  # else the last work keeps what it used alive until there is more


def _end() -> None:
    for worker in list(_workers):
        if worker.pid == os.getpid():
            worker.close()
            worker.join(_PATIENCE)


_workers: weakref.WeakSet[Worker] = weakref.WeakSet()
atexit.register(_end)
