"""Whether operations record a graph: per task and per thread, captured when a call is dispatched."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextvars import ContextVar
from typing import Any, TypeVar, overload

from textgrad_engine.checks import check
from textgrad_engine.wording import told

F = TypeVar("F", bound=Callable[..., Any])

GRAD_ENABLED: ContextVar[bool] = ContextVar("textgrad_engine_grad_enabled", default=True)


_ENTERED: ContextVar[tuple[tuple[_Mode, bool], ...]] = ContextVar("textgrad_engine_grad_modes", default=())
"""The modes whose blocks are open here, each with what was before."""


def is_grad_enabled() -> bool:
    """Whether operations on variables that require grad are recorded here and now.

    Example:
        >>> with no_grad():
        ...     is_grad_enabled()
        False
    """
    return GRAD_ENABLED.get()


class _Mode:
    """A grad mode as a context manager and as a decorator of functions, of coroutines and generators too.

    One object may be entered again, also inside itself and by several threads and tasks at a time, as a module may keep
    one: what was before is noted for each of them (`_ENTERED`).
    """

    def __init__(self, mode: bool) -> None:
        self._mode = mode

    def __enter__(self) -> None:
        self._enter(GRAD_ENABLED.get())

    def _enter(self, before: bool) -> None:
        _ENTERED.set((*_ENTERED.get(), (self, before)))
        GRAD_ENABLED.set(self._mode)

    def __exit__(self, *exc: object) -> None:
        entered = _ENTERED.get()
        for place in reversed(range(len(entered))):  # the last one nearly always: generators may end in any order
            mode, before = entered[place]
            if mode is self:
                _ENTERED.set(entered[:place] + entered[place + 1 :])
                GRAD_ENABLED.set(before)
                return

    def __call__(self, function: F) -> F:
        given: Any = function
        if isinstance(given, type) or not callable(given):  # of a class only the making would be in the mode
            of_class = isinstance(given, type)
            repair = "its forward, say" if of_class else "a block is `with no_grad():`, without arguments"
            raise TypeError(f"a grad mode decorates a function or a method, got {told(given)}; {repair}")
        mode = self._mode
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def asynchronous(*args: Any, **kwargs: Any) -> Any:
                with _Mode(mode):
                    return await function(*args, **kwargs)

            return asynchronous  # type: ignore[return-value]

        if inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def generator(*args: Any, **kwargs: Any) -> Any:
                return _each_step_in(mode, function(*args, **kwargs))

            return generator  # type: ignore[return-value]

        if inspect.isasyncgenfunction(function):

            @functools.wraps(function)
            def async_generator(*args: Any, **kwargs: Any) -> Any:
                return _each_async_step_in(mode, function(*args, **kwargs))

            return async_generator  # type: ignore[return-value]

        @functools.wraps(function)
        def plain(*args: Any, **kwargs: Any) -> Any:
            with _Mode(mode):
                return function(*args, **kwargs)

        return plain  # type: ignore[return-value]


def _each_step_in(mode: bool, source: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """The generator, with the mode in its own code only and not in the code that it yields to."""
    step: Callable[[Any], Any] = source.send
    sent: Any = None
    while True:
        try:
            with _Mode(mode):
                item = step(sent)
        except StopIteration as end:
            return end.value
        try:
            sent = yield item
            step = source.send
        except GeneratorExit:
            with _Mode(mode):
                source.close()
            raise
        except BaseException as error:
            sent, step = error, source.throw


async def _each_async_step_in(mode: bool, source: AsyncGenerator[Any, Any]) -> AsyncGenerator[Any, Any]:
    """As `_each_step_in`."""
    step: Callable[[Any], Awaitable[Any]] = _unknown_to_the_loop(source)
    sent: Any = None
    while True:
        try:
            with _Mode(mode):
                item = await step(sent)
        except StopAsyncIteration:
            return
        try:
            sent = yield item
            step = source.asend
        except GeneratorExit:
            with _Mode(mode):
                await source.aclose()
            raise
        except BaseException as error:
            sent, step = error, source.athrow


def _unknown_to_the_loop(source: AsyncGenerator[Any, Any]) -> Callable[[Any], Awaitable[Any]]:
    """The first `asend`. The loop would close a generator that it knows by itself, in the mode that holds there."""

    def first(sent: Any) -> Awaitable[Any]:
        hooks = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(None, None)
        try:
            return source.asend(sent)
        finally:
            sys.set_asyncgen_hooks(*hooks)

    return first


@overload
def no_grad() -> _Mode: ...
@overload
def no_grad(function: F) -> F: ...
def no_grad(function: Any = None) -> Any:
    """Record nothing: a context manager, and a decorator with or without parentheses.

    Example:
        >>> from textgrad_engine import Variable
        >>> p = Variable("Be brief.", requires_grad=True)
        >>> with no_grad():
        ...     (p + " Thanks.").requires_grad
        False
    """
    return _Mode(False) if function is None else _Mode(False)(function)


@overload
def enable_grad() -> _Mode: ...
@overload
def enable_grad(function: F) -> F: ...
def enable_grad(function: Any = None) -> Any:
    """Record again, inside `no_grad`: a context manager, and a decorator with or without parentheses.

    Example:
        >>> from textgrad_engine import Variable
        >>> p = Variable("Be brief.", requires_grad=True)
        >>> with no_grad(), enable_grad():
        ...     (p + " Thanks.").requires_grad
        True
    """
    return _Mode(True) if function is None else _Mode(True)(function)


class set_grad_enabled(_Mode):  # noqa: N801  PyTorch's name
    """Set the grad mode from here on, or for a ``with`` block, or as a decorator.

    Args:
        mode: whether to record.

    Example:
        >>> with set_grad_enabled(False):
        ...     is_grad_enabled()
        False
    """

    def __init__(self, mode: bool) -> None:
        given: object = mode
        if type(given) is not bool:
            check(set_grad_enabled.__init__, {"mode": mode})
        super().__init__(mode)
        self._outer = GRAD_ENABLED.get()
        GRAD_ENABLED.set(mode)

    def __enter__(self) -> None:
        self._enter(self._outer)

    def __call__(self, function: F) -> F:
        """Decorate a function; the mode holds inside it."""
        GRAD_ENABLED.set(self._outer)  # made as a decorator: the mode holds inside the function only
        return super().__call__(function)
