"""Stopping: what has been sent may finish, nothing more is sent."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterator
from contextvars import ContextVar, Token
from types import TracebackType
from typing import Any, Self, TypeVar

from textgrad_engine.dispatch import note_met
from textgrad_engine.errors import BudgetExceeded, Stopped

T = TypeVar("T")


class Stop:
    """A switch that ends a run: calls not sent yet fail with `Stopped`, calls in flight finish.

    It applies to every call dispatched inside its ``with`` block, inner switches included. `set` may be called from any
    thread and from a signal handler; that is why there is no lock here, only single operations on a dict.

    Example:
        >>> with Stop() as stop:
        ...     stop.set()
        >>> stop.is_set
        True
    """

    def __init__(self) -> None:
        self._set = False
        self._listeners: dict[object, Callable[[], object]] = {}
        self._tokens: list[Token[tuple[Stop, ...]]] = []

    @property
    def is_set(self) -> bool:
        """Whether `set` was called."""
        return self._set

    def stopped(self, error: Stopped) -> bool:
        """Whether it was this switch that a call was not sent for, and none inside."""
        return error.stopped_by == id(self)

    def set(self) -> None:
        """Stop; calling it again changes nothing."""
        self._set = True
        for wake in list(self._listeners.values()):
            wake()

    def listen(self, wake: Callable[[], object]) -> object:
        """Have `wake` called when `set` is; returns a handle for `unlisten`."""
        handle = object()
        self._listeners[handle] = wake
        return handle

    def unlisten(self, handle: object) -> None:
        """Undo `listen`."""
        self._listeners.pop(handle, None)

    def __enter__(self) -> Self:
        self._tokens.append(_stops.set((*_stops.get(), self)))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _stops.reset(self._tokens.pop())


@contextlib.contextmanager
def stopped_by_errors() -> Iterator[Stop]:
    """Inside the block there is a switch, and where the block raises it is set.

    What was still to be sent then, as at Ctrl-C in a notebook, whose process goes on, would be read by nobody.

    Example:
        >>> try:
        ...     with stopped_by_errors() as stop:
        ...         raise KeyboardInterrupt
        ... except KeyboardInterrupt:
        ...     stop.is_set
        True
    """
    with Stop() as stop:
        try:
            yield stop
        except BaseException:
            stop.set()
            raise


def stops_around() -> tuple[Stop, ...]:
    """The switches that hold for the calls made here, the outermost first."""
    return _stops.get()


def check_stop() -> None:
    """Raise where a call is about to be sent and a switch around it was set.

    Raises:
        Stopped: one of the enclosing `Stop` switches is set.
    """
    for stop in _stops.get():
        if stop.is_set:
            error = _stopped_by(stop)
            note_if_direct(error)
            raise error


def note_if_direct(error: BudgetExceeded | Stopped) -> None:
    """Note a call that is not sent where code of the user's own awaits it, and no operation.

    Those of operations are noted where their values are read (`dispatch.endings`), as a program may need none of them.
    """
    if not BY_OPERATION.get():
        note_met(error)


@contextlib.contextmanager
def failing_on_stop(future: asyncio.Future[Any]) -> Iterator[None]:
    """Inside the block, `future` fails with `Stopped` as soon as an enclosing switch is set."""
    stops = _stops.get()
    if not stops:
        yield
        return
    loop = future.get_loop()

    def fail() -> None:
        if not future.done():
            future.set_exception(_stopped_by(next(stop for stop in stops if stop.is_set)))

    def wake() -> None:
        with contextlib.suppress(RuntimeError):  # the loop closed meanwhile, and the waiter with it
            loop.call_soon_threadsafe(fail)

    handles = [(stop, stop.listen(wake)) for stop in stops]
    try:
        if any(stop.is_set for stop in stops):  # after listening, so that no `set` falls between
            fail()
        yield
    except Stopped as error:
        note_if_direct(error)
        raise
    finally:
        for stop, handle in handles:
            stop.unlisten(handle)


async def unless_stopped(work: Coroutine[Any, Any, T]) -> T:
    """Await a coroutine that may be given up when an enclosing switch is set, e.g. a sleep.

    Raises:
        Stopped: a switch was set before the coroutine was done; it is cancelled.
    """
    if not _stops.get():
        return await work
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    task = asyncio.ensure_future(work)
    both: set[asyncio.Future[Any]] = {task, future}
    try:
        with failing_on_stop(future):
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            future.result()
        raise AssertionError("either the work or the switch ends the wait")
    finally:
        if future.done() and not future.cancelled():
            future.exception()  # looked at, so that asyncio does not report it as lost
        future.cancel()
        if not task.done():
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


def _stopped_by(stop: Stop) -> Stopped:
    error = Stopped(
        "what asked for this was stopped, by Ctrl-C or an error, so the request was not sent; what was in flight could "
        "finish"
    )
    error.sent, error.stopped_by = False, id(stop)
    return error


_stops: ContextVar[tuple[Stop, ...]] = ContextVar("textgrad_engine_stops", default=())

BY_OPERATION: ContextVar[bool] = ContextVar("textgrad_engine_by_operation", default=False)
"""Whether it is an operation that awaits a model here, and not code of the user's own."""
