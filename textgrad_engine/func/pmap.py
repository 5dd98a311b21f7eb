"""`pmap`: any Python function once per item, in threads, results in order.

NOTE [Items behind one that fails]
    Which items are run depends on the first one (in order) that fails, and never on who was quicker; so a run asks the
    same at any order of answers, and asks it again when it is resumed. How far ahead items may begin is told by how
    many have come to a result in unbroken order: with n threads n items without any, three more for each result, up to
    4n - 3 ahead. What may begin is run to its end, also when an item before it has failed. A function that always fails
    is thus run n times, and with one thread nothing behind a failure is. Items that begin only n ahead would wait for a
    slow one 1.5 to 3.5 times as long (lognormal latencies, sigma 0.6 and 1); 4n ahead it is 1.1 to 1.5.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from contextvars import ContextVar, copy_context
from typing import TypeVar

from textgrad_engine import dispatch
from textgrad_engine.checks import at_least, check
from textgrad_engine.dispatch.threads import Pool
from textgrad_engine.func.levels import check_function, kind_of
from textgrad_engine.keywords import names_told
from textgrad_engine.kinds import is_coroutine_function
from textgrad_engine.llm.usage import call_item

T = TypeVar("T")
R = TypeVar("R")

DEFAULT_CONCURRENCY = 64
"""Threads at once when nobody says otherwise; they wait for models, so there may be more of them than cores."""

Place = tuple[tuple[int, int], ...]
"""A place in the order of a program: the number of the step and that of the item for each `pmap` around it, then its
own step with 0."""

_AROUND: ContextVar[Place] = ContextVar("textgrad_engine_pmap", default=())
_STEPS = itertools.count()


def next_place() -> Place:
    """A place behind all that this thread asked for, within its item of each `pmap`; places are compared as tuples."""
    return (*_AROUND.get(), (next(_STEPS), 0))


@names_told
def pmap(function: Callable[[T], R], concurrency: int | None = None) -> Callable[[Iterable[T]], list[R]]:
    """Turn a function of one item into a function of many, which runs them concurrently.

    For programs that read a value to decide what to do next. Each item has a thread, so one that waits for its model
    does not hold up the others. Context variables (models, budgets, grad mode) are those of the caller.

    Args:
        function: called once for each item.
        concurrency: at most so many at once.

    Returns:
        A function from an iterable to the list of results, in order. If calls raise, the exception of the first item
        (in order) that raised is raised, with a note which item it was, when those are done that may begin before it
        is: up to `concurrency` at the first item, with one thread none. What is behind these is left out.

    Raises:
        TypeError: the function is none or an `async def`, or concurrency is no whole number; or (from the new function)
            it gave a coroutine, or there are several sequences, one text, or a dict.
        CallCancelled: (from the new function) nobody waits for it any more, as for a cancelled `apmap`.
        DispatchError: (from the new function) inside of an `async def forward`, where `apmap` is awaited instead.
        ValueError: concurrency is below 1.

    Example:
        >>> pmap(str.upper)(["a", "b"])
        ['A', 'B']
    """
    check_function("pmap", function)
    check(pmap, {"concurrency": concurrency}, at_least(1, "concurrency"))
    if is_coroutine_function(function):
        raise TypeError(
            "func.pmap runs a plain function in threads, got an `async def`. In a loop of your own use "
            "`await asyncio.gather(*map(f, items))`; of a module give the module itself, not its aforward."
        )

    def one(item: T) -> R:
        result = function(item)
        if inspect.iscoroutine(result):  # of a function that only calls an `async def`, or a module that has one
            raise TypeError(f"func.pmap: the function gave {kind_of(result)}")
        return result

    @dispatch.waits("await func.apmap(f)(items)")
    def mapped(items: Iterable[T], *more: object) -> list[R]:
        if more:
            raise TypeError(
                f"func.pmap(f) takes one sequence of items, got {1 + len(more)}; zip them: func.pmap(lambda pair: "
                "f(*pair))(zip(first, second))"
            )
        _check_items(items)
        return in_threads(one, items, concurrency)

    return mapped


def _check_items(items: object) -> None:
    """Check that a sequence of items is what its parts are items of, as a model is asked about each.

    Raises:
        TypeError: it is one text, or a dict.
    """
    if isinstance(items, str | bytes):
        got, are = (f"the text {items!r:.40}", "its letters") if isinstance(items, str) else ("bytes", "numbers")
        repair = f"write [{items!r:.40}]" if isinstance(items, str) and len(items) < 38 else "write [items]"
    elif isinstance(items, Mapping):
        got, are = "a dict", "its keys"
        repair = "write [items] for one item, list(items) for the keys, items.items() for pairs"
    else:
        return
    raise TypeError(f"func.pmap(f) takes a sequence of items, got {got}, of which the items are {are}; {repair}")


def in_threads(
    function: Callable[[T], R], items: Iterable[T], concurrency: int | None, *, numbered: bool = True
) -> list[R]:
    """What `pmap` does.

    Args:
        function: called once for each item.
        items: the items.
        concurrency: at most so many at once.
        numbered: whether the calls of an item are known by its number (`call_item`); not where the number depends on
            how quick the items before it were.
    """
    todo = list(items)
    if not todo:
        return []
    if dispatch.in_loop_thread():
        raise dispatch.would_wait_for_itself("threads are to be waited for", "await func.apmap(f)(items)")
    threads = min(concurrency or DEFAULT_CONCURRENCY, len(todo))
    *around, (step, _) = next_place()
    line = dispatch.caller_line()
    inside = call_item.get()

    def run(number: int, item: T) -> R:
        dispatch.check_cancelled("this pmap", "items that had not begun are left out")
        _AROUND.set((*around, (step, number)))  # in the item's own context
        if numbered:
            call_item.set((*inside, number))
        dispatch.begun_from.set(line)
        return function(item)

    pool = Pool(threads)
    futures: list[Future[R]] = []
    results: list[R] = []

    def wait_for_next() -> None:
        try:
            results.append(dispatch.result_of(futures[len(results)]))
        except Exception as error:
            if numbered:
                error.add_note(f"while running items[{len(results)}] of {len(todo)} in func.pmap")
            raise

    try:
        for number, item in enumerate(todo):
            while number - len(results) >= min(threads + 3 * len(results), 4 * threads - 3):
                wait_for_next()
            futures.append(pool.submit(copy_context().run, run, number, item))
        while len(results) < len(todo):
            wait_for_next()
    except BaseException as error:
        if dispatch.gives_up(error):
            pool.leave(futures)
            raise
        if not isinstance(error, Exception):
            pool.cancel()
        dispatch.settled(futures)  # which another Ctrl-C ends, so nothing waits behind it
        raise
    return results
