"""Code that blocks, awaited from an event loop of the user's."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import Any, TypeVar

from textgrad_engine.dispatch.calls import Scope

__all__ = ["aside"]

T = TypeVar("T")


async def aside(work: Callable[[], T]) -> T:
    """Run work that blocks in a thread of its own, with the context variables of now, and wait for what it returns.

    There are as many threads as such pieces of work, so none waits for another. When the wait is cancelled, so are the
    calls that the work has made, and its `current_scope` says so.

    Args:
        work: what is run.

    Raises:
        BaseException: whatever it raised.

    Example:
        >>> import asyncio
        >>> asyncio.run(aside(lambda: 42))
        42
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()
    scope = Scope()

    def tell(setter: Callable[[Any], None], outcome: Any) -> None:
        def there() -> None:
            if not done.done():
                setter(outcome)

        with contextlib.suppress(RuntimeError):  # that loop was closed: nobody waits there any more
            loop.call_soon_threadsafe(there)

    def run() -> None:
        try:
            with scope:
                value = work()
        except BaseException as error:
            tell(done.set_exception, error)
        else:
            tell(done.set_result, value)

    threading.Thread(target=copy_context().run, args=(run,), name="textgrad_engine_aside", daemon=True).start()
    try:
        return await done
    except asyncio.CancelledError:
        scope.cancel()
        raise
