"""Programs that wait while they run: their examples are run in threads.

NOTE [Programs that wait]
    One thread runs a program that only dispatches calls on all examples, as all its calls are under way at once then.
    A program that waits would hold up the other examples, so these are run in threads. Two things tell that it waits:

    - It waits for an answer to decide what comes next (`dispatch.times_waited`). The first example shows it.
    - It waits for something else before it asks: a retriever, a database. Three examples in a row show it, if each
      takes 25 ms and more in which this process computes nothing. The first one does not count, as it loads and
      connects. Of 2,800 examples of a program that never waits, beside ten busy processes for each core, 43 looked like
      that, and no two of them in a row.

    What is known of a program holds while it lives, so later evaluations do not run a first example by itself, for
    which all others would wait: a search over a program that waits once took half as long again.

    A program that runs an event loop of its own and keeps it stays in its thread: a loop runs once at a time, and other
    threads have none. Whether it does is looked at in the third of these examples.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import sys
import time
import weakref
from collections.abc import Callable
from types import FrameType, MethodType
from typing import Any, TypeVar

from textgrad_engine import dispatch

T = TypeVar("T")
R = TypeVar("R")

IDLE_SECONDS = 0.025
"""An example that takes as long, with nothing computed meanwhile, may have waited."""

IN_A_ROW = 3
"""So many examples that may have waited show that a program does."""

_known: dict[int, tuple[weakref.ref[object], bool]] = {}
"""By the id of a program whether what it waits for is something else than answers. Programs may have no hash, or
compare arrays, so they are no keys."""


class Look:
    """Looks at the examples that a program is run on one after the other, for whether it waits.

    Args:
        program: what is run on them; what was known of it is known.

    Attributes:
        waits: whether it does.
        elsewhere: whether what it waits for is something else than answers.
        waits_first: whether it is, or two examples in a row looked like that, though they are run in this thread.
    """

    def __init__(self, program: Callable[..., Any]) -> None:
        self._program = program.__self__ if isinstance(program, MethodType) else program  # each look-up makes another
        known = _known_of(self._program)
        self.waits, self.elsewhere = known is not None, known is True
        self.waits_first = self.elsewhere
        self._looked_at = self._slow = 0  # of examples, and how many of the last ones may have waited
        self._waited, self._began, self._computed = 0, 0.0, 0.0

    def begin(self) -> None:
        """The program begins now: what was waited for before, such as a place, is not its own wait."""
        if not self.waits:
            self._waited = dispatch.times_waited()
            if self._slow:
                self._computed = time.process_time()
            self._began = time.monotonic()

    def at(self, function: Callable[[T], R], item: T) -> R:
        """Run an example and look at it, unless all is known."""
        if self.waits:
            return function(item)
        self.begin()
        loops: list[asyncio.AbstractEventLoop] = []
        last = self._slow == IN_A_ROW - 1 and sys.getprofile() is None
        note = functools.partial(_note_loop, loops)
        if last:
            sys.setprofile(note)
        try:
            result = function(item)
        finally:
            if last and sys.getprofile() is note:  # else the program has set one of its own
                sys.setprofile(None)
        self._looked_at += 1
        if dispatch.times_waited() > self._waited:
            self._found(elsewhere=False)
        elif self._may_have_waited():
            self._slow += 1
            self.waits_first = self.waits_first or self._slow > 1
            if last and all(loop.is_closed() for loop in loops):
                self._found(elsewhere=True)
            elif self._slow == IN_A_ROW:
                self._slow = 0
        else:
            self._slow = 0
        return result

    def _may_have_waited(self) -> bool:
        took = time.monotonic() - self._began
        if took < IDLE_SECONDS or self._looked_at == 1:
            return False
        return not self._slow or took - (time.process_time() - self._computed) >= IDLE_SECONDS

    def _found(self, *, elsewhere: bool) -> None:
        self.waits, self.elsewhere = True, elsewhere
        place = id(self._program)
        with contextlib.suppress(TypeError):  # it cannot be referred to weakly
            _known[place] = weakref.ref(self._program, functools.partial(_forget, _known, place)), elsewhere


def _known_of(program: object) -> bool | None:
    known = _known.get(id(program))
    return known[1] if known is not None and known[0]() is program else None


def _forget(known: dict[int, tuple[weakref.ref[object], bool]], place: int, gone: weakref.ref[object]) -> None:
    if place in known and known[place][0] is gone:  # else another one is there by now
        del known[place]


def _note_loop(loops: list[asyncio.AbstractEventLoop], frame: FrameType, event: str, found: Any) -> None:
    """Note the event loops that are run, as a function for `sys.setprofile`."""
    loop: object = None
    if event == "call" and frame.f_code.co_name in _RUNS:  # of asyncio, or as nest_asyncio has them
        loop = frame.f_locals.get("self")
    elif event == "c_call" and getattr(found, "__name__", "") in _RUNS:  # as uvloop's
        loop = getattr(found, "__self__", None)
    if isinstance(loop, asyncio.AbstractEventLoop):
        loops.append(loop)


_RUNS = ("run_forever", "run_until_complete")
