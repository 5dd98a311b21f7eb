"""What ended the calls of a block, as the code in it met that where it read a value, whatever it made of it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

from textgrad_engine.errors import BudgetExceeded, Stopped
from textgrad_engine.scoped import setting

_met: ContextVar[list[BudgetExceeded | Stopped] | None] = ContextVar("textgrad_engine_endings_met", default=None)


@contextlib.contextmanager
def meeting() -> Iterator[list[BudgetExceeded | Stopped]]:
    """Inside the block, and in what is dispatched there, spent budgets and stops are noted where a value is read.

    Yields:
        Those so far, in order; what is under way behind the block goes on to add to them.
    """
    found: list[BudgetExceeded | Stopped] = []
    with setting(_met, found):
        yield found


def note_met(error: BaseException) -> None:
    """Note a failure that is raised where a value is read."""
    if isinstance(error, BudgetExceeded | Stopped) and (found := _met.get()) is not None:
        found.append(error)
