"""What ended the calls of a block, as the code in it met that, whatever it made of it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import TypeAlias

from textgrad_engine.errors import AuthenticationFailed, BudgetExceeded, QuotaExhausted, Stopped
from textgrad_engine.scoped import setting

Ending: TypeAlias = BudgetExceeded | Stopped


class Met(list[Ending]):
    """The endings that were met so far, in order.

    Args:
        ends: whether an ending is the block's matter, and not one of its code's own.

    Attributes:
        refusals: the keys that were refused and quotas that are spent, likewise: these end a run, unless its program
            catches them.
        awaited: those of models that code of the block awaits without an operation, caught or not: it makes do without
            an answer where it comes to its end all the same.
    """

    def __init__(self, ends: Callable[[Ending], bool]) -> None:
        super().__init__()
        self.ends = ends
        self.refusals: list[AuthenticationFailed | QuotaExhausted] = []
        self.awaited: list[AuthenticationFailed | QuotaExhausted] = []


MET: ContextVar[tuple[Met, ...]] = ContextVar("textgrad_engine_endings_met", default=())
"""What was met in each of the blocks around, the outermost first."""


@contextlib.contextmanager
def meeting(ends: Callable[[Ending], bool]) -> Iterator[Met]:
    """Inside the block, and in what is dispatched there, spent budgets and stops are noted where its code meets them.

    What is met inside of a block in it, as in an evaluation that a program makes, is noted for both.

    Args:
        ends: whether an ending is the block's matter.

    Yields:
        Those so far, in order; what is under way behind the block goes on to add to them.
    """
    found = Met(ends)
    with setting(MET, (*MET.get(), found)):
        yield found


def note_refused(error: BaseException) -> None:
    """Note a key that was refused, or a quota that is spent, where a model is awaited without an operation."""
    if isinstance(error, AuthenticationFailed | QuotaExhausted):
        for found in MET.get():
            found.awaited.append(error)


def note_met(error: BaseException) -> None:
    """Note a failure that is raised where a value is read, or where a model is awaited without an operation."""
    if isinstance(error, BudgetExceeded | Stopped):
        for found in MET.get():
            if found.ends(error):
                found.append(error)
    elif isinstance(error, AuthenticationFailed | QuotaExhausted):
        for found in MET.get():
            found.refusals.append(error)
