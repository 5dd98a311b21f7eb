"""The private thread, its event loop, and what it does next."""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
import types
import weakref
from collections import deque
from collections.abc import Callable, Generator
from contextvars import Context
from typing import Any, Protocol

POLLS, POLL_SECONDS, MOST_WORKERS = 4, 0.0005, 64

DONE: Any = object()
"""What `Step.begin` returns of work that has ended."""


class Step:
    """Work for the thread that may have to wait; see NOTE [First steps]."""

    __slots__ = ()

    def begin(self) -> Any:
        """Run to where it first waits: returns what it waits for there, and `DONE` when it has ended."""
        raise NotImplementedError

    def rest(self, waits_for: Any, task: asyncio.Task[None]) -> Generator[Any, None, None]:
        """The further steps of work that waits, as the rest of a task."""
        raise NotImplementedError


class Closing(Protocol):
    """What is to be closed before the loop that it belongs to ends, such as connections."""

    async def close(self) -> None:
        """Close it."""


class LoopThread:
    """The private thread and its loop.

    NOTE [Waking the loop]
        Waking a sleeping loop from another thread costs a system call and two thread switches, tens of microseconds,
        which a burst of calls would pay one by one. So after work the loop looks into its inbox `POLLS` more times,
        `POLL_SECONDS` apart, before it sleeps; while it does, posting only appends. Whoever is about to block on a
        value calls `nudge`, so nobody waits for the next look.

    NOTE [First steps]
        A task for each call costs as much as the rest of an answer that is there at once, and of a burst all calls
        would be under way before the first goes on. So a worker, which is a task, takes calls from the inbox and runs
        each to where it first waits; those of a model in this process, and all plain ones, never do. A call that waits
        keeps the task: it was its current task from the first step on, which timeouts and cancel scopes remember. Twice
        as many workers then go on with the inbox, for calls that wait come in bursts too.
    """

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.pid = os.getpid()
        self._inbox: deque[Step | Callable[[], None]] = deque()
        self._looking = False
        self._workers: set[asyncio.Task[None]] = set()  # those that have the inbox to empty
        self._width = 1
        self._idle_looks = 0
        self._thread = threading.Thread(target=self._run, name="textgrad_engine", daemon=True)
        self._thread.start()
        self.ident = self._thread.ident
        self.closing: weakref.WeakSet[Closing] = weakref.WeakSet()

    @property
    def alive(self) -> bool:
        """Whether it runs, and in this process."""
        return self.pid == os.getpid() and self._thread.is_alive()

    def post(self, work: Step | Callable[[], None]) -> None:
        """Have work begun, soon and in order."""
        self._inbox.append(work)
        if threading.get_ident() == self.ident:
            self._work()
        elif not self._looking:
            self._looking = True
            self.loop.call_soon_threadsafe(self._look)

    def nudge(self) -> None:
        """See to it that what was posted is begun now; called before a thread blocks."""
        if self._inbox and threading.get_ident() != self.ident:
            self.loop.call_soon_threadsafe(self._work)

    def _work(self) -> None:
        """Have the inbox emptied, unless somebody does."""
        for worker in self._workers:
            if not worker.done():  # one that is done and still here was cancelled, with all else, before it began
                return
        self._workers = {
            self.loop.create_task(self._worker(), context=Context()) for _ in range(min(self._width, len(self._inbox)))
        }

    async def _worker(self) -> None:
        await self._one_after_the_other()

    @types.coroutine
    def _one_after_the_other(self) -> Generator[Any, None, None]:
        """See NOTE [First steps]."""
        inbox, task = self._inbox, asyncio.current_task()
        assert task is not None
        step: Step | None = None
        waits_for: Any = DONE
        try:
            while inbox and not task.cancelling():
                for _ in range(len(inbox)):
                    work = inbox.popleft()
                    try:
                        if isinstance(work, Step):
                            step, waits_for = work, work.begin()
                        else:
                            work()
                    except BaseException as error:
                        self.loop.call_exception_handler({"message": f"{work!r} failed", "exception": error})
                    if waits_for is not DONE or task.cancelling():
                        break
                else:
                    yield  # so that what else the loop has to do comes between
                    continue
                break
        finally:
            self._workers.discard(task)
            self._width = 1 if waits_for is DONE else min(2 * self._width, MOST_WORKERS)
            if not self.loop.is_closed():
                self._work()
        if step is not None and waits_for is not DONE:
            yield from step.rest(waits_for, task)

    def _look(self) -> None:
        self._idle_looks = 0 if self._inbox else self._idle_looks + 1
        if self._idle_looks > POLLS:
            self._idle_looks = 0
            self._looking = False
            if not self._inbox:  # looked at after the flag, so that no post falls between
                return
            self._looking = True
        self.loop.call_later(POLL_SECONDS, self._look)
        self._work()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        while True:
            try:
                self.loop.run_forever()
            except (KeyboardInterrupt, SystemExit):  # asyncio lets a task's through; its waiter has it, others go on
                continue
            return

    def close(self) -> None:
        """Cancel what is under way, close what belongs to the loop, and end."""
        if not self.alive:
            return

        async def end() -> None:
            self._inbox.clear()  # what has not begun need not begin any more
            while tasks := asyncio.all_tasks() - {asyncio.current_task()}:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                self._inbox.clear()
            await asyncio.gather(*[each.close() for each in self.closing], return_exceptions=True)
            await self.loop.shutdown_asyncgens()
            self.loop.stop()

        self.loop.call_soon_threadsafe(lambda: self.loop.create_task(end()))
        self._thread.join(timeout=2.0)
        if not self._thread.is_alive():
            self.loop.close()


_current: LoopThread | None = None
_making = threading.Lock()


def loop_thread() -> LoopThread:
    """The thread of this process."""
    global _current  # noqa: PLW0603  one thread a process, made when first needed
    thread = _current
    if thread is None:
        with _making:
            if _current is None:
                _current = LoopThread()
            thread = _current
    return thread


def _forget() -> None:
    global _current, _making  # noqa: PLW0603  a forked child has neither the thread nor whoever held the lock
    _current = None
    _making = threading.Lock()


def _close() -> None:
    if _current is not None:
        _current.close()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_forget)
atexit.register(_close)


def in_loop_thread() -> bool:
    """Whether this code runs on the private event-loop thread."""
    return _current is not None and threading.get_ident() == _current.ident


def close_at_end(closing: Closing) -> None:
    """Have something closed when the event-loop thread ends, if it was made there and is still in use."""
    if _current is not None and in_loop_thread():
        _current.closing.add(closing)


def nudge() -> None:
    """Have what was submitted begun at once; for code that is about to wait for it by other means than reading."""
    if _current is not None:
        _current.nudge()


def call_soon(work: Callable[[], None]) -> None:
    """Run `work` on the event-loop thread, soon."""
    loop_thread().post(work)
