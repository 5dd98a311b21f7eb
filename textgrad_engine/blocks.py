"""Blocks that say so where nobody enters them: ``tg.budget(dollars=2)`` on a line by itself limits nothing."""

from __future__ import annotations

import contextlib
import functools
import inspect
import logging
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Generic, ParamSpec, TypeVar

from textgrad_engine.kinds import is_coroutine_function
from textgrad_engine.tracebacks import hide

P = ParamSpec("P")
T = TypeVar("T")

_log = logging.getLogger("textgrad_engine.blocks")


class Block(contextlib.ContextDecorator, Generic[T]):
    """What a function that `block` decorates gives: a context manager, also a decorator, that is entered once.

    Args:
        make: makes the context manager that does the work.
        name: of the function.
    """

    def __init__(self, make: Callable[[], AbstractContextManager[T]], name: str) -> None:
        self._used = True  # one that cannot be made has said why
        self._make, self._name, self._inner = make, name, make()
        self._used = self._entered = False

    def __enter__(self) -> T:
        if self._entered:
            raise RuntimeError(
                f"this {self._name}(...) was entered before, and is for one block: write `with {self._name}(...):` "
                "again, or a function that gives a new one"
            )
        self._used = self._entered = True
        try:
            return self._inner.__enter__()
        except BaseException as error:
            hide(error, boundary=__name__)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        try:
            return self._inner.__exit__(kind, error, trace)
        except ValueError as problem:
            if problem is error or "different Context" not in str(problem):  # in the words of `ContextVar.reset`
                raise
            raise RuntimeError(
                f"{self._name}(...) was left in another context than it was entered in, so not all that ran between "
                "was inside of it: if a framework runs the halves of a generator in different threads, as FastAPI does "
                "with a dependency, make that an `async def`, or open the block where the calls are made"
            ) from error

    def __call__(self, func: Any) -> Any:
        """Decorate a function: each call of it is a block, of an ``async def`` until it has ended.

        Raises:
            TypeError: it has a ``yield``, or gives a context manager as `contextlib.contextmanager` makes one; when it
                is called, it gave a coroutine though it is no ``async def``.
        """
        self._used = True
        plain = func.func if isinstance(func, functools.partial) else func
        inside_of_it = f"write `with {self._name}(...):` inside of it, around what it asks"
        if inspect.isgeneratorfunction(func) or inspect.isasyncgenfunction(func):
            raise TypeError(
                f"{self._name}(...) decorates a function, and {plain.__name__}() has a `yield`, so that a call of it "
                f"runs nothing yet: {inside_of_it}"
            )
        if getattr(plain, "__code__", None) in _OPENING:
            raise TypeError(
                f"{self._name}(...) decorates a function, and {plain.__name__}() gives a context manager, whose block "
                f"runs only after the call has ended: write `with {self._name}(...):` inside of it, around its `yield`"
            )
        if not is_coroutine_function(func):
            return self._over(func, inside_of_it)

        @functools.wraps(func)
        async def inside(*args: Any, **kwargs: Any) -> Any:
            with self._recreate_cm():
                return await func(*args, **kwargs)

        return inside

    def _over(self, func: Any, instead: str) -> Any:
        """What is no ``async def``, decorated."""

        @functools.wraps(func)
        def inside(*args: Any, **kwargs: Any) -> Any:
            given = None  # where the block takes an error
            with self._recreate_cm():
                given = func(*args, **kwargs)
            if inspect.iscoroutine(given):
                given.close()
                name = getattr(func, "__name__", type(func).__name__)
                raise TypeError(
                    f"{self._name}(...) decorates {name}(), and {name}() gave a coroutine, which runs only after the "
                    f"call has ended: decorate the `async def` itself, or {instead}"
                )
            return given

        return inside

    def _recreate_cm(self) -> Block[T]:  # for each call of what it decorates
        return Block(self._make, self._name)

    def __repr__(self) -> str:
        return f"<{self._name}(...){'' if self._used else f', of no effect before `with {self._name}(...):`'}>"

    def __del__(self) -> None:
        if not self._used and not sys.is_finalizing():
            _log.warning(
                "%s(...) had no effect, as no block was entered: write `with %s(...):`", self._name, self._name
            )


@contextlib.contextmanager
def _opened() -> Iterator[None]:
    yield


@contextlib.asynccontextmanager
async def _awaited() -> AsyncIterator[None]:
    yield


def block(function: Callable[P, AbstractContextManager[T]]) -> Callable[P, Block[T]]:
    """Decorate a function that gives a context manager: one that is dropped without having been entered is told of.

    For blocks whose absence costs: without a budget a run spends what it likes, without a cache it pays twice.

    Example:
        >>> @block
        ... @contextlib.contextmanager
        ... def limit(most):
        ...     yield most
        >>> with limit(3) as most:
        ...     most
        3
        >>> limit(3)
        <limit(...), of no effect before `with limit(...):`>
    """

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> Block[T]:
        try:
            return Block(lambda: function(*args, **kwargs), function.__name__)
        except BaseException as error:
            hide(error, boundary=__name__)
            raise

    return call


_OPENING = {each.__code__ for each in (_opened, _awaited, block(_opened))}
"""Of what gives a context manager: each decorator gives all that it decorates the same code."""
