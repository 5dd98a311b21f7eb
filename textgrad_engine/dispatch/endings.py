"""What ended the calls of a block, as the code in it met that, whatever it made of it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import TypeAlias

from textgrad_engine.errors import BudgetExceeded, Stopped
from textgrad_engine.scoped import setting

Met: TypeAlias = list[BudgetExceeded | Stopped]

_met: ContextVar[tuple[Met, ...]] = ContextVar("textgrad_engine_endings_met", default=())


@contextlib.contextmanager
def meeting() -> Iterator[Met]:
    """Inside the block, and in what is dispatched there, spent budgets and stops are noted where its code meets them.

    What is met inside of a block in it, as in an evaluation that a program makes, is noted for both.

    Yields:
        Those so far, in order; what is under way behind the block goes on to add to them.
    """
    found: Met = []
    with setting(_met, (*_met.get(), found)):
        yield found


def note_met(error: BaseException) -> None:
    """Note a failure that is raised where a value is read, or where a model is awaited without an operation."""
    if isinstance(error, BudgetExceeded | Stopped):
        for found in _met.get():
            found.append(error)
