"""Refusals to wait on the event-loop thread, which would wait for itself; each names what to await instead."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from textgrad_engine.dispatch.endings import note_met
from textgrad_engine.dispatch.thread import in_loop_thread
from textgrad_engine.errors import DispatchError
from textgrad_engine.tracebacks import hide

P = ParamSpec("P")
R = TypeVar("R")


class _Here(threading.local):
    """What the outermost call that may wait has for a twin, while it runs on this thread."""

    twin = ""


_here = _Here()


def waits(twin: str, *, always: str = "") -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a function that may wait for answers: where it must not, the error names what to await instead.

    Args:
        twin: that, as one writes it.
        always: what it waits for in any case, as the beginning of a sentence: it is refused before it begins, as what
            it sends could not be waited for; "" where it may have nothing to wait for.

    Example:
        >>> @waits("await agreet()")
        ... def greet():
        ...     return "hello"
        >>> greet()
        'hello'
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def waiting(*args: P.args, **kwargs: P.kwargs) -> R:
            outermost = in_loop_thread() and not _here.twin  # that is the one which somebody wrote
            if outermost:
                _here.twin = twin
            try:
                if outermost and always:
                    raise would_wait_for_itself(always, twin)
                return function(*args, **kwargs)
            except BaseException as error:
                note_met(error)
                hide(error, boundary=__name__)
                raise
            finally:
                if outermost:
                    _here.twin = ""

        return waiting

    return decorate


def would_wait_for_itself(problem: str, twin: str) -> DispatchError:
    """The error of code that is about to wait on the event-loop thread.

    Args:
        problem: what it would wait for, as the beginning of a sentence.
        twin: what to await instead, where it is not inside a function that `waits`.
    """
    return DispatchError(
        f"{problem}, and this code runs on the event loop that computes it. "
        f"Inside an `async def`, use `{_here.twin or twin}`."
    )
