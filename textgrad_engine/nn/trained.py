"""Who may call a program while a run trains it.

NOTE [Threads of one's own]
    A run's budget, its stop, what it counts and writes down, its models and the texts that a search tries are context
    variables (`contextvars`). Tasks, `asyncio.to_thread`, `func.pmap` and this library's own threads inherit them; a
    plain `threading.Thread` or a `ThreadPoolExecutor` does not. A program that asks its parts in such a pool would
    spend without a limit, and every candidate of a search would be measured with the same old texts. So while a run
    trains a program, a call of it or of its parts from where the run is not known is refused.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING

from textgrad_engine.errors import DispatchError

if TYPE_CHECKING:
    from textgrad_engine.nn.module import Module

__all__ = ["TRAINED", "check_known", "trained"]

TRAINED: dict[int, tuple[object, ...]] = {}
"""The runs that train a module, by the module's id."""

_lock = threading.Lock()
_known: ContextVar[tuple[object, ...]] = ContextVar("textgrad_engine_known_runs", default=())


@contextlib.contextmanager
def trained(program: Module) -> Iterator[None]:
    """Inside the block a program is trained: only who inherits this context may call it or its parts."""
    run, modules = object(), list(program.modules())
    with _lock:
        for module in modules:
            TRAINED[id(module)] = (*TRAINED.get(id(module), ()), run)
    token = _known.set((*_known.get(), run))
    try:
        yield
    finally:
        _known.reset(token)
        with _lock:
            for module in modules:
                left = tuple([each for each in TRAINED[id(module)] if each is not run])
                if left:
                    TRAINED[id(module)] = left
                else:
                    del TRAINED[id(module)]


def check_known(module: Module, runs: tuple[object, ...]) -> None:
    """Refuse a call from where none of these runs is known.

    Raises:
        DispatchError: it is.
    """
    if runs and not any(run in runs for run in _known.get()):
        raise DispatchError(
            f"{type(module).__name__} was called in a thread that knows nothing of the run that trains it: the call "
            "would be outside of the run's budget and records, and see none of the texts that are tried. In the "
            "program, use func.pmap(part)(items) instead of a thread pool, or give the pool what the run knows: "
            "pool.submit(contextvars.copy_context().run, part, item). Beside the run, call copy.deepcopy(program)."
        )
