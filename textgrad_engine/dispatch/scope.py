"""The calls that are made inside of a block, cancelled or waited for together."""

from __future__ import annotations

import logging
import math
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Self

from textgrad_engine.dispatch.thread import loop_thread
from textgrad_engine.errors import CallCancelled

if TYPE_CHECKING:
    from textgrad_engine.dispatch.calls import Call

_PATIENCE = 30.0
"""Seconds after which it is told what `through_with` waits for."""

_log = logging.getLogger("textgrad_engine.dispatch")


class Scope:
    """Calls made inside the ``with`` block, by this task or thread and what it starts, are cancelled or waited for.

    A block inside another one belongs to it: what cancels the outer one cancels its calls, too, and what waits for the
    outer one waits for them.

    Args:
        background: the ones around it do not wait for its calls, and know nothing of their failures.

    Attributes:
        failures: the kinds of errors that calls ended with so far.
    """

    def __init__(self, *, background: bool = False) -> None:
        self.failures: set[type[BaseException]] = set()
        self._background = background
        self._cancelled = False
        self._outer: Scope | None = None
        self._calls: set[Call] = set()
        self._awaited: set[Call] = set()
        self._tokens: list[Any] = []

    @property
    def cancelled(self) -> bool:
        """Whether it was cancelled, or one that it is in."""
        return self._cancelled or (self._outer is not None and self._outer.cancelled)

    @property
    def busy(self) -> bool:
        """Whether one of its calls is not done: it runs, waits for others, or has not begun."""
        return bool(self._calls)

    def __enter__(self) -> Self:
        if not self._tokens:
            self._outer = SCOPE.get()
        self._tokens.append(SCOPE.set(self))
        return self

    def __exit__(self, *exc: object) -> None:
        SCOPE.reset(self._tokens.pop())

    def cancel(self) -> None:
        """Cancel what runs and refuse what has not begun; their values raise `CallCancelled` when read."""
        self._cancelled = True

        def cancel_running() -> None:
            for call in list(self._calls):
                if call._task is not None:
                    call._task.cancel()

        loop_thread().post(cancel_running)

    def wait(self, timeout: float = math.inf) -> list[Call]:
        """Block until all calls are done that were made so far, and those that they make; whoever reads them or not.

        Calls in the background are not waited for.

        Args:
            timeout: give up after so many seconds in which none of them was done.

        Returns:
            Those that are not done then.

        Raises:
            DispatchError: on the event-loop thread, which computes them.
        """
        while calls := list(self._awaited):
            for call in calls:
                if not call.wait(None if timeout == math.inf else timeout) and set(calls) <= self._awaited:
                    return [each for each in calls if not each.done]
        return []

    def remember(self, call: Call, *, awaited: bool = True) -> None:
        """A call was made inside; `awaited` unless it is in the background."""
        self._calls.add(call)
        if awaited:
            self._awaited.add(call)
        if self._outer is not None:
            self._outer.remember(call, awaited=awaited and not self._background)

    def forget(self, call: Call) -> None:
        """It is done."""
        if call._error is not None and call in self._awaited:
            self.failures.add(type(call._error))
        self._calls.discard(call)
        self._awaited.discard(call)
        if self._outer is not None:
            self._outer.forget(call)


def current_scope() -> Scope | None:
    """The innermost `Scope` around this code."""
    return SCOPE.get()


def check_cancelled(work: str, left: str) -> None:
    """Called before work writes what it came to, so that work which nobody waits for any more writes nothing.

    Args:
        work: what it is, for the message.
        left: how it leaves things behind.

    Raises:
        CallCancelled: a `Scope` around this code was cancelled.
    """
    scope = SCOPE.get()
    if scope is not None and scope.cancelled:
        raise CallCancelled(f"{work} was cancelled before it was through; {left}")


def gives_up(error: BaseException | None) -> bool:
    """Whether an error, such as a second Ctrl-C, is on its way, and the calls around this code were given up with it.

    What else work in threads does nothing can end, so it is not waited for then.
    """
    scope = SCOPE.get()
    return error is not None and not isinstance(error, Exception) and scope is not None and scope.cancelled


def through_with(calls: Scope, who: str) -> None:
    """Wait for the calls of a scope after what they were made for is there, and not for ever without a word.

    Args:
        calls: the scope; its calls in the background are not waited for.
        who: has made them, for the log.
    """
    if late := calls.wait(_PATIENCE):
        _log.warning(
            "%s has what it needs, and waits for what was asked for and is read by nobody: %s%s%s; Ctrl-C ends it",
            who,
            late[0].label,
            f", asked for at {late[0].where}" if late[0].where else "",
            f", and {len(late) - 1} more" if len(late) > 1 else "",
        )
        calls.wait()


SCOPE: ContextVar[Scope | None] = ContextVar("textgrad_engine_scope", default=None)
"""The innermost one around the code that runs."""
