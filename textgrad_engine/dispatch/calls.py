"""Values on their way."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import math
import os
import threading
import types
from collections.abc import Callable, Coroutine, Generator, Sequence
from contextvars import Context, copy_context
from types import CoroutineType, TracebackType
from typing import Any, TypeVar

from textgrad_engine.dispatch.refusing import would_wait_for_itself
from textgrad_engine.dispatch.scope import SCOPE
from textgrad_engine.dispatch.source_lines import Line
from textgrad_engine.dispatch.thread import DONE, Step, in_loop_thread, loop_thread
from textgrad_engine.dispatch.threads import giving_way
from textgrad_engine.dispatch.waiting import LOOK_UP_SECONDS
from textgrad_engine.errors import CallCancelled, DispatchError

T = TypeVar("T")

_lock = threading.Lock()
"""Guards the moment between "not done yet" and "call me back", for every call; held for a few instructions only."""


def _forget() -> None:
    global _lock  # noqa: PLW0603  in a forked child whoever held it is not there
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_forget)


_TWIN = "await variable`, or where a module reads it `await module.aforward(...)"
"""What is awaited instead of reading a value."""


class Call(Step):
    """A value on its way: made by `submit`, finished on the event-loop thread.

    Attributes:
        done: whether a value or an error is there.
    """

    __slots__ = (
        "__weakref__", "_ahead", "_callbacks", "_context", "_error", "_label", "_scope", "_start", "_task", "_thread",
        "_trace", "_value", "_where", "_work", "done",
    )  # fmt: skip

    def __init__(self, start: Callable[[], Any], label: str | tuple[str, ...], where: Line | str) -> None:
        self._start: Callable[[], Any] | None = start
        self._callbacks: Callable[[Call], None] | list[Callable[[Call], None]] | None = None  # mostly one
        self._context: Context | None = copy_context()
        self._thread = loop_thread()
        self._scope = SCOPE.get()
        self._task: asyncio.Task[None] | None = None
        self._work: Coroutine[Any, Any, Any] | None = None
        self._value: Any = None
        self._error: BaseException | None = None
        self._trace: TracebackType | None = None
        self._ahead: list[Call] | None = None  # those that it still waits for, the first of them last
        self.done = False
        self._label = label
        self._where = where
        if self._scope is not None:
            self._scope.remember(self)

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
                known = self._callbacks
                if known is None:
                    self._callbacks = callback
                elif isinstance(known, list):
                    known.append(callback)
                else:
                    self._callbacks = [known, callback]
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
            raise would_wait_for_itself(f"{self.label} is not there yet", _TWIN)
        if not self._thread.alive:
            raise self._lost()
        note_wait()
        self._thread.nudge()
        event = threading.Event()
        self.on_done(lambda _: event.set())
        with giving_way():
            left = math.inf if timeout is None else timeout
            while not event.wait(min(left, LOOK_UP_SECONDS)):
                left -= LOOK_UP_SECONDS
                if left <= 0:
                    return False
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
            if loop is not self._thread.loop:
                note_wait(loop)
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
            self._start = self._context = self._task = self._work = self._ahead = None
            self.done = True
            callbacks, self._callbacks = self._callbacks, None
        if self._scope is not None:
            self._scope.forget(self)
        raised: BaseException | None = None
        if callbacks is None:
            return
        for callback in callbacks if isinstance(callbacks, list) else (callbacks,):
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

    def _begin_behind(self, call: Call) -> None:
        """Wait for a call that is ahead of this one, and then for the others, one after the other; then be begun.

        They are done at the same time however they are waited for. So of several that fail it is the first in order
        whose error this one has, and not the quickest.
        """
        while call.done:
            error = call._error
            if error is not None:
                self._thread.post(functools.partial(self._finish, None, error))  # a long chain would fail recursively
                return
            ahead = self._ahead
            if not ahead:
                self._thread.post(self)
                return
            call = ahead.pop()
        if call._thread.alive:
            call.on_done(self._begin_behind)
        else:
            self._fail(call._lost())

    def begin(self) -> Any:
        """See `Step.begin`."""
        start, context = self._start, self._context
        if self.done or start is None or context is None:
            return DONE
        if self._scope is not None and self._scope.cancelled:
            self._fail(CallCancelled(f"{self.label} was cancelled before it began"))
            return DONE
        return context.run(self._first_step, start)

    def _first_step(self, start: Callable[[], Any]) -> Any:
        try:
            work = start()
        except BaseException as error:  # the error is the call's result; it is raised where the value is read
            self._fail(error)
            return DONE
        if type(work) is not CoroutineType and not asyncio.iscoroutine(work):
            self._finish(work, None)
            return DONE
        self._work = work
        return self._step(work.send, None)

    def _step(self, resume: Callable[[Any], Any], given: BaseException | None) -> Any:
        try:
            return resume(given)
        except StopIteration as end:
            value = end.value
        except asyncio.CancelledError:
            self._fail(CallCancelled(f"{self.label} was cancelled"))
            return DONE
        except BaseException as error:  # the error is the call's result; it is raised where the value is read
            self._fail(error)
            return DONE
        self._finish(value, None)
        return DONE

    @types.coroutine
    def rest(self, waits_for: Any, task: asyncio.Task[None]) -> Generator[Any, None, None]:
        """See `Step.rest`."""
        context, work = self._context, self._work
        assert context is not None
        assert work is not None
        self._task = task
        while waits_for is not DONE:
            thrown: BaseException | None = None
            try:
                yield waits_for
            except GeneratorExit as error:  # this is closed, or what it waited for failed with one
                work.close()
                self._fail(error)
                raise
            except BaseException as error:
                thrown = error
            if thrown is None:
                waits_for = context.run(self._step, work.send, None)
            else:
                waits_for = context.run(self._step, work.throw, thrown)


_waits = threading.local()


def note_wait(loop: asyncio.AbstractEventLoop | None = None) -> None:
    """This thread waits for a value.

    Args:
        loop: of the user's own, which runs in this thread and waits; None where the thread does.
    """
    if loop is None:
        _waits.count = times_waited() + 1
    else:
        _waits.loop = loop


def times_waited() -> int:
    """How often this thread has waited for a value; a program that makes it grow waits, and may be run in threads.

    A loop of its own that waited is counted when it has been closed, as by `asyncio.run`. One that a program keeps
    runs once at a time, and may be what others of its objects belong to.
    """
    count: int = getattr(_waits, "count", 0)
    loop: asyncio.AbstractEventLoop | None = getattr(_waits, "loop", None)
    if loop is not None and loop.is_closed():
        _waits.loop = None
        _waits.count = count = count + 1
    return count


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
        waits_for: calls that must be done first; if some fail, this one never starts and fails with the error of the
            first of them in this order.
        label: what is computed, for messages; or its role and the Function's name, put together where one is wanted.
        where: the line of user code, for messages.
    """
    call = Call(start, label, where)
    if waits_for:
        if len(waits_for) > 1:
            call._ahead = list(waits_for[:0:-1])
        call._begin_behind(waits_for[0])
    else:
        call._thread.post(call)
    return call


def joint(calls: Sequence[Call]) -> Call | None:
    """One call that is done when all of these are, and fails as in `submit`; None when there is nothing to wait for."""
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
