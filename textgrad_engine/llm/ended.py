"""What a spent budget, or a stop, has ended, whatever code of a user's own has made of that."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Iterator, Sequence
from typing import TypeVar

from textgrad_engine.dispatch.endings import MET, Ending, Met, meeting
from textgrad_engine.errors import AuthenticationFailed, QuotaExhausted, Stopped
from textgrad_engine.llm.budget import budgets_around
from textgrad_engine.llm.stop import BY_OPERATION, note_if_direct, stops_around
from textgrad_engine.scoped import setting

T = TypeVar("T")


@contextlib.contextmanager
def meeting_endings() -> Iterator[Met]:
    """Inside the block the budgets and switches around it are noted where its code meets that they are spent or set.

    One that code in it has made for calls of its own is its own matter. The code is a user's, also where a tool of an
    operation runs it.
    """
    budgets, stops = budgets_around(), stops_around()

    def ends(error: Ending) -> bool:
        if isinstance(error, Stopped):
            return any(each.stopped(error) for each in stops)
        return any(each.refused(error) for each in budgets)

    with setting(BY_OPERATION, False), meeting(ends) as met:
        yield met


async def unless_ended(work: Awaitable[T]) -> T:
    """What a tool, or a user's own model or wrapper, gives in an example; or what ended it, whatever it made of that.

    What it says instead is no answer: on record, or in a cache, it would be given again where there is room for it. A
    refused key that it makes do without is noted for the blocks around, as theirs.

    Raises:
        BudgetExceeded: it met that a budget around the example was spent.
        Stopped: it met that the run was stopped.
    """
    around = MET.get()
    if not around:
        return await work
    met = Met(lambda error: any(each.ends(error) for each in around))
    try:  # the blocks around hear of it where what this raises is read, so that they know whose it is
        with setting(BY_OPERATION, False), setting(MET, (met,)):
            found = await work
    except Exception as error:
        _hand_on([each for each in (*met.refusals, *met.awaited) if each is not error], around)
        if not met or met[0] is error:
            raise
    else:
        _hand_on([*met.refusals, *met.awaited], around)
        if not met:
            return found
    note_if_direct(met[0])
    raise met[0]


def _hand_on(refusals: Sequence[AuthenticationFailed | QuotaExhausted], around: Sequence[Met]) -> None:
    for each in around:
        each.refusals.extend(refusals)
