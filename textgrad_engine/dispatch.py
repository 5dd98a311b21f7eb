"""The one event-loop thread on which calls of models run, and the values that are still on their way.

`submit` hands over a coroutine function and the calls whose values it waits for; it returns a `Call` at once.
Everything that runs, runs on one private thread, so user code needs no loop of its own and may have one (a notebook, a
web handler).
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import functools
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Sequence
from contextvars import Context, ContextVar, copy_context
from types import FrameType, TracebackType
from typing import Any, NamedTuple, Self, TypeVar

from textgrad_engine.errors import CallCancelled, DispatchError

__all__ = [
    "Call",
    "Scope",
    "call_soon",
    "caller_line",
    "in_loop_thread",
    "joint",
    "nudge",
    "run",
    "submit",
    "times_waited",
]

T = TypeVar("T")
_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep

_lock = threading.Lock()
"""Guards the moment between "not done yet" and "call me back", for every call; held for a few instructions only."""


LOOK_UP_SECONDS = 1.0
"""How long a wait goes on without looking up: a Ctrl-C that comes just when it begins is noticed only then."""


class Call:
    """A value on its way: made by `submit`, finished on the event-loop thread.

    Attributes:
        done: whether a value or an error is there.
    """

    __slots__ = (
        "__weakref__", "_callbacks", "_context", "_error", "_label", "_scope", "_start", "_task", "_thread", "_trace",
        "_value", "_waiting", "_where", "done",
    )  # fmt: skip

    def __init__(self, start: Callable[[], Any], label: str | tuple[str, ...], where: Line | str) -> None:
        self._start: Callable[[], Any] | None = start
        self._callbacks: list[Callable[[Call], None]] | None = None
        self._context: Context | None = copy_context()
        self._thread = _loop_thread()
        self._scope = _scope.get()
        self._task: asyncio.Task[None] | None = None
        self._value: Any = None
        self._error: BaseException | None = None
        self._trace: TracebackType | None = None
        self._waiting = 0
        self.done = False
        self._label = label
        self._where = where

    @property
    def label(self) -> str:
        """What is computed, for messages."""
        return self._label if isinstance(self._label, str) else "{!r} ({})".format(*self._label)

    @property
    def where(self) -> str:
        """The line of user code that asked for it, as ``file:line``; "" when it is not known."""
        return str(self._where)

    @property
    def failed(self) -> bool:
        """Whether it is done and ended in an error."""
        return self._error is not None

    def on_done(self, callback: Callable[[Call], None]) -> None:
        """Call back with this call when it is done: on the event-loop thread, or here and now if it is done already."""
        with _lock:
            if not self.done:
                if self._callbacks is None:
                    self._callbacks = []
                self._callbacks.append(callback)
                return
        callback(self)

    def wait(self, timeout: float | None = None) -> bool:
        """Block until it is done or `timeout` seconds have passed; returns whether it is done.

        Raises:
            DispatchError: on the event-loop thread (waiting there would stop everything, this call too), or in a
                process that was forked while the call was under way.
        """
        if self.done:
            return True
        if in_loop_thread():
            raise DispatchError(
                f"{self.label} is not there yet, and this code runs on the event loop that computes it. "
                "Inside an `async def`, use `await variable` before reading its data."
            )
        if not self._thread.alive:
            raise self._lost()
        _waits.count = times_waited() + 1
        self._thread.nudge()
        event = threading.Event()
        self.on_done(lambda _: event.set())
        if timeout is not None:
            return event.wait(timeout)
        while not event.wait(LOOK_UP_SECONDS):
            pass
        return True

    def result(self) -> Any:
        """The value, waited for if need be.

        Raises:
            BaseException: whatever the call failed with.
        """
        if not self.done:
            self.wait()
        if self._error is not None:
            raise self._error.with_traceback(self._trace)
        return self._value

    def __await__(self) -> Generator[Any, None, Any]:
        if not self.done:
            if not self._thread.alive:
                raise self._lost()
            self._thread.nudge()
            loop = asyncio.get_running_loop()
            future: asyncio.Future[None] = loop.create_future()

            def wake() -> None:
                if not future.done():
                    future.set_result(None)

            def finished(_: Call) -> None:
                if in_loop_thread() and loop is self._thread.loop:
                    wake()
                else:
                    with contextlib.suppress(RuntimeError):  # that loop was closed: nobody waits there any more
                        loop.call_soon_threadsafe(wake)

            self.on_done(finished)
            yield from future
        return self.result()

    def _lost(self) -> DispatchError:
        return DispatchError(
            f"{self.label} was under way in another process when this one was forked, and is lost here. "
            "Read the data before forking, or make the call again in the child."
        )

    def _finish(self, value: Any, error: BaseException | None) -> None:
        with _lock:
            if self.done:
                return
            self._value, self._error = value, error
            self._trace = error.__traceback__ if error is not None else None
            self._start = self._context = self._task = None
            self.done = True
            callbacks, self._callbacks = self._callbacks, None
        if self._scope is not None:
            self._scope._calls.discard(self)
        raised: BaseException | None = None
        for callback in callbacks or ():
            try:
                callback(self)
            except BaseException as problem:  # everybody else is told first: a waiter that is not would wait for ever
                raised = raised or problem
        if raised is not None:
            raise raised

    def _fail(self, error: BaseException) -> None:
        note = f"while computing {self.label}" + (f", asked for at {self.where}" if self.where else "")
        if not any("while computing" in old for old in getattr(error, "__notes__", ())):
            error.add_note(note)
        self._finish(None, error)

    def _dependency_done(self, call: Call) -> None:
        error = call._error
        if error is not None:
            self._thread.post(lambda: self._finish(None, error))  # posted: a long chain would fail recursively
            return
        with _lock:
            self._waiting -= 1
            ready = self._waiting == 0
        if ready:
            self._thread.post(self._begin)

    def _begin(self) -> None:
        start, context = self._start, self._context
        if self.done or start is None or context is None:
            return
        if self._scope is not None:
            if self._scope.cancelled:
                self._fail(CallCancelled(f"{self.label} was cancelled before it began"))
                return
            self._scope._calls.add(self)
        try:
            work = context.run(start)
        except BaseException as error:  # the error is the call's result; it is raised where the value is read
            self._fail(error)
            return
        if asyncio.iscoroutine(work):
            self._start = work.close
            self._task = self._thread.loop.create_task(self._drive(work), context=context)
            self._task.add_done_callback(self._ended)
        else:
            self._finish(work, None)

    async def _drive(self, work: Coroutine[Any, Any, Any]) -> None:
        try:
            value = await work
        except asyncio.CancelledError:
            self._fail(CallCancelled(f"{self.label} was cancelled"))
        except BaseException as error:  # the error is the call's result; it is raised where the value is read
            self._fail(error)
        else:
            self._finish(value, None)

    def _ended(self, _: asyncio.Task[None]) -> None:
        if not self.done:  # a task that is cancelled before its first step never enters `_drive`
            if self._start is not None:
                self._start()  # closes what it would have run
            self._fail(CallCancelled(f"{self.label} was cancelled before it began"))


_waits = threading.local()


def times_waited() -> int:
    """How often this thread has waited for a value so far; a program during which it grows waits for answers."""
    count: int = getattr(_waits, "count", 0)
    return count


class Scope:
    """Calls made inside the ``with`` block, by this task or thread and what it starts, can be cancelled together."""

    def __init__(self) -> None:
        self.cancelled = False
        self._calls: set[Call] = set()
        self._tokens: list[Any] = []

    def __enter__(self) -> Self:
        self._tokens.append(_scope.set(self))
        return self

    def __exit__(self, *exc: object) -> None:
        _scope.reset(self._tokens.pop())

    def cancel(self) -> None:
        """Cancel what runs and refuse what has not begun; their values raise `CallCancelled` when read."""
        self.cancelled = True

        def cancel_running() -> None:
            for call in list(self._calls):
                if call._task is not None:
                    call._task.cancel()

        _loop_thread().post(cancel_running)


_scope: ContextVar[Scope | None] = ContextVar("textgrad_engine_scope", default=None)


POLLS, POLL_SECONDS = 4, 0.0005


class _LoopThread:
    """The private thread and its loop.

    NOTE [Waking the loop]
        Waking a sleeping loop from another thread costs a system call and two thread switches, tens of microseconds,
        which a burst of calls would pay one by one. So after work the loop looks into its inbox `POLLS` more times,
        `POLL_SECONDS` apart, before it sleeps; while it does, posting only appends. Whoever is about to block on a
        value calls `nudge`, so nobody waits for the next look.
    """

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.pid = os.getpid()
        self._inbox: deque[Callable[[], None]] = deque()
        self._looking = False
        self._soon = False
        self._idle_looks = 0
        self._thread = threading.Thread(target=self._run, name="textgrad_engine", daemon=True)
        self._thread.start()
        self.ident = self._thread.ident

    @property
    def alive(self) -> bool:
        return self.pid == os.getpid() and self._thread.is_alive()

    def post(self, work: Callable[[], None]) -> None:
        self._inbox.append(work)
        if threading.get_ident() == self.ident:
            if not self._soon:
                self._soon = True
                self.loop.call_soon(self._empty)
        elif not self._looking:
            self._looking = True
            self.loop.call_soon_threadsafe(self._look)

    def nudge(self) -> None:
        """See to it that what was posted is begun now; called before a thread blocks."""
        if self._inbox and threading.get_ident() != self.ident:
            self.loop.call_soon_threadsafe(self._empty)

    def _empty(self) -> None:
        self._soon = False
        inbox = self._inbox
        try:
            for _ in range(len(inbox)):
                inbox.popleft()()
        finally:
            if inbox and not self._soon:  # work posted more, or raised: asyncio reports it, the others go on
                self._soon = True
                self.loop.call_soon(self._empty)

    def _look(self) -> None:
        self._idle_looks = 0 if self._inbox else self._idle_looks + 1
        if self._idle_looks > POLLS:
            self._idle_looks = 0
            self._looking = False
            if not self._inbox:  # looked at after the flag, so that no post falls between
                return
            self._looking = True
        self.loop.call_later(POLL_SECONDS, self._look)
        self._empty()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    def close(self) -> None:
        if not self.alive:
            return

        async def end() -> None:
            self._inbox.clear()  # what has not begun need not begin any more
            while tasks := asyncio.all_tasks() - {asyncio.current_task()}:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                self._inbox.clear()
            await self.loop.shutdown_asyncgens()
            self.loop.stop()

        self.loop.call_soon_threadsafe(lambda: self.loop.create_task(end()))
        self._thread.join(timeout=2.0)
        if not self._thread.is_alive():
            self.loop.close()


_current: _LoopThread | None = None


def _loop_thread() -> _LoopThread:
    global _current  # noqa: PLW0603  one thread a process, made when first needed
    thread = _current
    if thread is None:
        with _lock:
            if _current is None:
                _current = _LoopThread()
            thread = _current
    return thread


def _forget() -> None:
    global _current, _lock  # noqa: PLW0603  a forked child has neither the thread nor whoever held the lock
    _current = None
    _lock = threading.Lock()


def _close() -> None:
    if _current is not None:
        _current.close()


os.register_at_fork(after_in_child=_forget)
atexit.register(_close)


def in_loop_thread() -> bool:
    """Whether this code runs on the private event-loop thread."""
    return _current is not None and threading.get_ident() == _current.ident


def nudge() -> None:
    """Have what was submitted begun at once; for code that is about to wait for it by other means than reading."""
    if _current is not None:
        _current.nudge()


def call_soon(work: Callable[[], None]) -> None:
    """Run `work` on the event-loop thread, soon."""
    _loop_thread().post(work)


def submit(
    start: Callable[[], Any],
    waits_for: Sequence[Call] = (),
    *,
    label: str | tuple[str, str] = "a value",
    where: Line | str = "",
) -> Call:
    """Have a value computed on the event-loop thread.

    Args:
        start: called there when everything it waits for is done, in a copy of the context of this moment; returns the
            value, or a coroutine for it.
        waits_for: calls that must be done first; if one fails, this one fails with the same error and never starts.
        label: what is computed, for messages; or its role and the Function's name, put together where one is wanted.
        where: the line of user code, for messages.
    """
    call = Call(start, label, where)
    if waits_for:
        call._waiting = len(waits_for)
        for other in waits_for:
            if not other.done and not other._thread.alive:
                call._fail(other._lost())
            other.on_done(call._dependency_done)
    else:
        call._thread.post(call._begin)
    return call


def joint(calls: Sequence[Call]) -> Call | None:
    """One call that is done when all of these are, and fails if one does; None when there is nothing to wait for."""
    left = [call for call in dict.fromkeys(calls) if not call.done or call.failed]
    if len(left) < 2:
        return left[0] if left else None
    return submit(lambda: None, left, label="several values")


def run(work: Callable[[], Coroutine[Any, Any, T]], *, label: str = "a value") -> T:
    """Run a coroutine function on the event-loop thread and wait for what it returns.

    Example:
        >>> async def answer() -> int:
        ...     return 42
        >>> run(answer)
        42
    """
    result: T = submit(work, label=label).result()
    return result


class Line(NamedTuple):
    """A line of code; its text is ``file:line``."""

    file: str
    number: int

    def __str__(self) -> str:
        return f"{self.file}:{self.number}"


def caller_line() -> Line | str:
    """The innermost line outside this package on the stack; "" when there is none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        ours = _OURS.get(file)
        if ours is None:
            ours = _OURS[file] = file.startswith(_PACKAGE)
        if not ours:
            return _line(file, frame.f_lineno)
        frame = frame.f_back
    return ""


@functools.lru_cache(maxsize=4096)
def _line(file: str, number: int) -> Line:
    return Line(file, number)  # one object for all calls of a loop


_OURS: dict[str, bool] = {}
"""Whether the code of a file belongs to this package."""
