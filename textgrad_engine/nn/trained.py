"""Who may call a program while a run trains it, and whose calls are noticed while it is evaluated.

NOTE [Threads of one's own]
    A run's budget, its stop, what it counts and writes down, its models and the texts that a search tries are context
    variables (`contextvars`). Tasks, `asyncio.to_thread`, `func.pmap` and this library's own threads inherit them; a
    plain `threading.Thread` or a `ThreadPoolExecutor` does not. A program that asks its parts in such a pool would
    spend without a limit, and every candidate of a search would be measured with the same old texts. So while a run
    trains a program, a call of it or of its parts from where the run is not known is refused. So is one in a process
    that was forked where it is known: what the child spends is no part of the parent's budget, and it may wait for ever
    for a lock that a thread of the parent held. In a child that was forked elsewhere no run trains the program.

    `evaluate` and `functional_call` change no text, and whoever serves a program may go on beside them. So calls from
    where they are not known are refused to nobody. But one of a part alone, not by way of the program, looks like such
    a pool, and the log says so, once for each program. A budget by itself knows no program, and sees none of it.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextvars import ContextVar
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakValueDictionary

from textgrad_engine.errors import DispatchError
from textgrad_engine.scoped import setting

if TYPE_CHECKING:
    from textgrad_engine.nn.module import Module

TRAINED: dict[int, tuple[object, ...]] = {}
"""The runs that train a module, by the module's id."""

WATCHED: dict[int, tuple[Watch, ...]] = {}
"""Who wants to know of calls of a module from elsewhere, by the module's id."""

_POOL = (
    "use func.pmap(part)(items) instead of a thread pool, or give the pool what {knower} knows: "
    "pool.submit(contextvars.copy_context().run, part, item)."
)

_T = TypeVar("_T")

_lock = threading.Lock()
_of_parent: set[object] = set()
"""Runs that train in the process that this one was forked from, and not here."""

_known: ContextVar[tuple[object, ...]] = ContextVar("textgrad_engine_known_runs", default=())
_told: WeakValueDictionary[int, Module] = WeakValueDictionary()  # by id, as a program need not be hashable
_log = logging.getLogger("textgrad_engine.nn.trained")


class Watch:
    """The calls of a program's parts that were made where nobody knows of what is done with the program.

    Attributes:
        program: the program; None when nobody watches any more, as a thread may know of this for long.
        strangers: how many there were, by the part's class.
    """

    def __init__(self, program: Module) -> None:
        self.program: Module | None = program
        self.strangers: Counter[str] = Counter()


@contextlib.contextmanager
def trained(program: Module) -> Iterator[None]:
    """Inside the block a program is trained: only who inherits this context may call it or its parts.

    Raises:
        DispatchError: a run of another thread or task trains it: each would score texts that the other one has written.
    """
    run = object()
    with _entered(TRAINED, program, run):  # first, so that of two that begin at once one sees the other
        runs = TRAINED[id(program)]
        before = tuple([each for each in runs[: runs.index(run)] if each not in _of_parent])
        if before and not _is_known(before):
            raise DispatchError(
                f"another run trains this {type(program).__name__} now; wait for its end, or train a copy: other = "
                "copy.deepcopy(program), with an optimizer of other.parameters()"
            )
        yield


@contextlib.contextmanager
def watched(program: Any, call: str) -> Iterator[None]:
    """Inside the block calls of a program's parts from where it is not known are noticed, and then told by the log.

    Args:
        program: whose; what is no Module has no parts.
        call: what is done with it, such as ``"evaluate"``.
    """
    refused = _is_known(TRAINED.get(id(program), ()))  # by a run, so that there is nothing to tell
    if refused or not hasattr(type(program), "_with_parameters") or _told.get(id(program)) is program:
        yield
        return
    watch = Watch(program)
    try:
        with _entered(WATCHED, program, watch):
            yield
    finally:
        watch.program = None
        if watch.strangers and _told.get(id(program)) is not program:
            _told[id(program)] = program
            parts = ", ".join(f"{name}: {count}" for name, count in sorted(watch.strangers.items()))
            _log.warning(
                "%s(%s): parts of the program were called in threads that do not belong to it (%s). If they are "
                "threads of the program's own pool, a budget, use_models, records, repeats and other texts do not "
                "reach these calls: in the program, %s",
                *(call, type(program).__name__, parts, _POOL.format(knower="its caller")),
            )


@contextlib.contextmanager
def _entered(table: dict[int, tuple[_T, ...]], program: Module, entry: _T) -> Iterator[None]:
    """Inside the block an entry stands in a table for the program and its parts, and is known."""
    modules = list(program.modules())
    with _lock:
        for module in modules:
            table[id(module)] = (*table.get(id(module), ()), entry)
    try:
        with setting(_known, (*_known.get(), entry)):
            yield
    finally:
        with _lock:
            for module in modules:
                left = tuple([each for each in table[id(module)] if each is not entry])
                if left:
                    table[id(module)] = left
                else:
                    del table[id(module)]


def _is_known(entries: tuple[object, ...]) -> bool:
    return any(entry in entries for entry in _known.get())


def check_known(module: Module, runs: tuple[object, ...]) -> None:
    """Refuse a call from where none of these runs is known.

    Raises:
        DispatchError: it is.
    """
    if _of_parent:
        if any(each in runs and each in _of_parent for each in _known.get()):
            raise DispatchError(
                f"{type(module).__name__} was called in a process that was forked in the run that trains it: the call "
                "would be outside of the run's budget, and may wait for ever for what a thread of the parent held. In "
                "the program, use func.pmap(part)(items) instead; a process pool is for work that asks no model."
            )
        runs = tuple([each for each in runs if each not in _of_parent])
    if runs and not _is_known(runs):
        raise DispatchError(
            f"{type(module).__name__} was called in a thread that knows nothing of the run that trains it: the call "
            "would be outside of the run's budget and records, and see none of the texts that are tried. In the "
            f"program, {_POOL.format(knower='the run')} Beside the run, call copy.deepcopy(program)."
        )


def notice(module: Module, watches: tuple[Watch, ...]) -> None:
    """Take note of a call from where none of those who watch is known."""
    if not watches or _is_known(watches):
        return
    # Somebody else uses the program as a whole: from here on its parts are called by it, and this is known.
    own = [each for each in watches if each.program is module] or [each for each in watches if _calls(each.program)]
    if own:
        with _lock:
            live = {each for entries in (*TRAINED.values(), *WATCHED.values()) for each in entries}
        _known.set((*[each for each in _known.get() if each in live], *own))
        return
    for watch in watches:
        watch.strangers[type(module).__name__] += 1


def _calls(program: Module | None) -> bool:
    """Whether this thread is in a call of the program, such as one that began before it was watched."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "__call__" and frame.f_locals.get("self") is program is not None:
            return True
        frame = frame.f_back
    return False


def _in_child() -> None:
    global _lock  # noqa: PLW0603  whoever holds it is not here
    _lock = threading.Lock()
    _of_parent.update([run for runs in TRAINED.values() for run in runs])


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_in_child)
