"""Code that blocks, awaited from an event loop."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import traceback
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from typing import Any, TypeVar

from textgrad_engine.dispatch.calls import note_wait
from textgrad_engine.dispatch.scope import Scope, check_cancelled
from textgrad_engine.dispatch.source_lines import begun_from, caller_line
from textgrad_engine.dispatch.thread import in_loop_thread
from textgrad_engine.dispatch.threads import begin, begin_in_turn, inside_turn
from textgrad_engine.tracebacks import PACKAGE, hide

T = TypeVar("T")


async def aside(work: Callable[[], T], *, in_turn: bool = False, stop: Callable[[Scope], object] | None = None) -> T:
    """Run work that blocks in a thread, with the context variables of now, and wait for what it returns.

    When the wait is cancelled, so are the calls that the work has made, and its `current_scope` says so. Nobody waits
    for the thread then, unless `stop` is given.

    Args:
        work: what is run.
        in_turn: for work that comes by the thousand: only so many pieces at a time (`dispatch.threads`), but for those
            that are begun by another one. Without it there are as many threads as pieces of work.
        stop: what is done instead when the wait is cancelled, with the scope of the work's calls. The wait goes on
            until the work has ended, and is over then. Cancelled once more it ends at once, and so do the calls.

    Raises:
        BaseException: whatever it raised.
        RuntimeError: it raised StopIteration, which cannot leave a coroutine.

    Example:
        >>> import asyncio
        >>> asyncio.run(aside(lambda: 42))
        42
    """
    loop = asyncio.get_running_loop()
    over: asyncio.Future[None] = loop.create_future()
    scope = Scope()
    values: list[T] = []
    errors: list[BaseException] = []

    def wake() -> None:
        if not over.done():
            over.set_result(None)

    def run() -> None:
        try:
            with scope, inside_turn() if in_turn else contextlib.nullcontext():
                check_cancelled("the work", "it never began")
                values.append(work())
        except BaseException as error:
            errors.append(_leaving_a_coroutine(error))
        with contextlib.suppress(RuntimeError):  # that loop was closed: nobody waits there any more
            loop.call_soon_threadsafe(wake)

    context = copy_context()
    if not in_loop_thread():  # that one has no user code on its stack
        context.run(begun_from.set, caller_line())
        note_wait(loop)
    (begin_in_turn if in_turn else begin)(lambda: context.run(run))
    try:
        await _over(over, scope, errors, stop)
        if errors:
            raise errors[0]
        return values[0]
    except BaseException as error:
        hide(error, boundary=PACKAGE)
        raise
    finally:
        errors.clear()  # else frame and traceback keep each other alive


async def _over(
    over: asyncio.Future[None],
    scope: Scope,
    errors: list[BaseException],
    stop: Callable[[Scope], object] | None,
) -> None:
    """Wait until work is over; see `aside`."""
    try:
        await asyncio.shield(over)
    except asyncio.CancelledError as cancelled:
        if stop is None:
            scope.cancel()
            raise
        stop(scope)
        try:
            await asyncio.shield(over)
        except asyncio.CancelledError:
            scope.cancel()
            raise
        for error in errors:
            hide(error, boundary=PACKAGE)
        raise cancelled from (errors[0] if errors else None)


async def called(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What a user's function gives, `async` or not; one that is not may be slow, and takes its turn in a thread.

    Example:
        >>> import asyncio
        >>> asyncio.run(called(pow, 2, exp=3))
        8
    """
    if inspect.iscoroutinefunction(function):
        result = await function(*args, **kwargs)
    else:
        result = await aside(functools.partial(function, *args, **kwargs), in_turn=True)
    return await result if inspect.isawaitable(result) else result  # of an object whose __call__ is async, a Variable


async def caught(work: Callable[..., Awaitable[Any]], *args: Any) -> Any:
    """What ``await work(*args)`` gives, or what it raises: also what would end the event loop if a task raised it.

    The work is made here, as a task that is given up before it begins would leave a coroutine that nobody awaits.
    """
    try:
        return await work(*args)
    except BaseException as error:
        return error


def _leaving_a_coroutine(error: BaseException) -> BaseException:
    """What is raised of an error outside of the thread."""
    if not isinstance(error, StopIteration):
        return error
    frames = traceback.extract_tb(error.__traceback__)
    where = f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    told = RuntimeError(
        f"StopIteration was raised{where}: next() found nothing; give next() a default, as in next(found, None)"
    )
    told.__cause__ = error
    return told
