"""A run that is over, played back: each request gets what it got then, and nobody is asked.

NOTE [What was never sent]
    A call that a budget had no room for is not on record, and a run may go on behind it, as controls do, which have a
    budget of their own. Played back, such a call finds no room either, as soon as those have asked that got it then. So
    what is not on record waits a moment for the others, before it is said to be missing. So does what is on record of
    a later phase alone: there it was asked once more, and there was room.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from textgrad_engine.dispatch import Moment
from textgrad_engine.errors import BudgetExceeded, ModelError, RequestRefused, RunError
from textgrad_engine.llm.answers import Answer, Answers, Equal, belongs, difference, distance, entry_of, may_answer
from textgrad_engine.llm.budget import Budgeted
from textgrad_engine.llm.charged import costs_nothing, mark, unknown_of, usage_of
from textgrad_engine.llm.model import Wrapper
from textgrad_engine.llm.request import Request
from textgrad_engine.llm.response import Completion
from textgrad_engine.llm.stop import check_stop
from textgrad_engine.llm.taped import Player
from textgrad_engine.llm.toolcalls import ToolCall, ToolRecord
from textgrad_engine.llm.tools_on_record import ToolOnRecord, ToolsOnRecord, answered_again, given_again
from textgrad_engine.llm.usage import Metered, call_under_way
from textgrad_engine.scoped import setting
from textgrad_engine.wording import with_article

_PATIENCE = 0.5
"""So many seconds what is not on record waits for others to take the room in a budget."""
_TURN = 0.02
"""The seconds after which it looks again."""


class Playback:
    """A `Player` that gives what calls of a run got, failures too, and has nobody asked.

    An answer goes to the request that it was an answer to, of the same model, the same example (`call_key`) and the
    same item of a `pmap` (`call_item`): the n-th equal request of a phase gets the n-th one. It is charged to the
    budgets as it was then.

    Args:
        every: the answers and failures; of equal requests, in the order in which they were asked.
        tools: what is on record of tools; one of which nothing is is run, as runs of before have none.
        phase: gives the number of the phase that code belongs to.
        refused: makes the error of a request that is not on record, given what it is, in words.

    Attributes:
        problem: what was asked first of that which is not on record, in words; "" for nothing.
    """

    def __init__(
        self,
        every: Sequence[Answer],
        tools: Sequence[ToolOnRecord] = (),
        *,
        phase: Callable[[], int],
        refused: Callable[[str], RunError],
    ) -> None:
        self._answers = Answers(every, lambda each: (*belongs(each), each.phase, each.counted_again))
        self.tools = ToolsOnRecord(tools)
        self.ids = self.tools.ids | {each.id for each in every if each.id}
        self._phase, self._refused = phase, refused
        self._last = max([each.phase for each in every], default=0)
        self.outer: Player | None = None
        self.problem = ""

    async def answer(self, model: Budgeted, request: Request) -> Completion:
        """What was recorded for a request.

        Raises:
            Stopped: the run was stopped.
            BudgetExceeded: the budgets have no room for the call, be it on record or not.
            RunError: it is not on record.
            ModelError: what the request failed with then.
        """
        check_stop()
        entry, phase = entry_of(model, request), self._phase()

        last = phase

        def rank(each: Answer) -> Any:
            if each.phase > last or not may_answer(each, entry):
                return None
            return each.phase != phase, *distance(each, entry), not each.counted_again, each.nth

        equal = self._answers.equal_to(entry)
        for last in (phase, self._last):
            while (taken := self._answers.take(equal, rank, entry["example"])) is not None:
                if isinstance(taken.outcome, BudgetExceeded):
                    await self._find_no_room_again(taken, model, request)
                if not taken.counted_again:
                    return await answered_again(taken, self._answers, self._answers.play, model, request)
                play = functools.partial(self._answers.play, taken, model, request)
                await count_again(taken, self._answers, model, request, play)
            if last == phase:
                await self._find_no_room(model, request)
        recorded = [each for each in self._answers.every if each.request is not None]
        self.problem = self.problem or unlike(entry, equal, recorded)
        raise self._refused(self.problem)

    async def tool(self, call: ToolCall) -> ToolRecord | None:
        """What a call of a tool gave then; None where that is not on record."""
        taken = self.tools.take(call, self._phase())
        if taken is None:
            return None
        return await given_again(call, taken, self.tools, self._answers, self._answers.play)

    async def _find_no_room_again(self, taken: Answer, model: Budgeted, request: Request) -> None:
        """Charge what a call used that had no room for a further attempt, and have the budgets of now say so once more.

        Raises:
            BudgetExceeded: they have none; or what was recorded, where they do.
        """
        try:
            await self._answers.play(taken, model, request)
        except BudgetExceeded as then:
            if costs_nothing(then):  # there is no room for that, either, and it waits again
                raise
            try:
                await self._find_no_room(model, request)
            except BudgetExceeded as now:
                raise mark(now, usage=usage_of(then), unknown=unknown_of(then), sent=True) from None
            raise then

    async def _find_no_room(self, model: Budgeted, request: Request) -> None:
        """Wait a moment for the budgets to have no room for a call; see NOTE [What was never sent].

        Raises:
            BudgetExceeded: they have none.
        """

        def refuse() -> Completion:
            raise mark(RequestRefused("it is not on record"), sent=False)

        moment = Moment(_PATIENCE)
        while not self.problem and not moment.over():
            with contextlib.suppress(RequestRefused):
                await model.play(request, refuse)
            await asyncio.sleep(_TURN)
            check_stop()


class _Failed(Wrapper):
    """A call that failed once more as it was recorded."""

    def __init__(self, inner: Budgeted, play: Callable[[], Awaitable[Completion]]) -> None:
        super().__init__(inner)
        self._play = play

    async def complete(self, request: Request) -> Completion:
        try:
            return await self._play()
        except ModelError as error:
            error.counted_again = True
            raise


async def count_again(
    failure: Answer, answers: Answers, model: Budgeted, request: Request, play: Callable[[], Awaitable[Completion]]
) -> None:
    """Count what a failed call used, or may have, in the sums, the budgets and the journal.

    Args:
        failure: what was taken of the answers.
        answers: where it waits again when there was no room for it.
        model: charges the budgets.
        request: what was asked.
        play: raises the failure.

    Raises:
        BudgetExceeded: the budgets have no room for it.
    """
    try:
        with setting(call_under_way, None):  # it is not made inside of the call that it is counted for
            await Metered(_Failed(model, play)).complete(request)
    except ModelError:
        if any(each is failure for each in answers.waiting()):  # there was no room for it
            raise


def unlike(entry: dict[str, Any], equal: Equal | None, first: Sequence[Answer]) -> str:
    """What was asked, and how it is other than what was recorded.

    Args:
        entry: what was asked (`answers.entry_of`).
        equal: what was recorded for equal requests; None for nothing.
        first: recorded answers with their requests, which may be near.
    """
    purpose = entry["request"]["purpose"]
    what = f"{with_article(purpose)} request for example {entry['example']!r}"
    if equal is None:
        near = [each for each in first if each.purpose == purpose]
        own = [each for each in near if each.example == entry["example"]]
        return f"{what}; {difference(own or near, entry['request'])}" if near else what
    if entry["model"] not in equal.models:
        return f"{what} is for {entry['model']!r}, and was recorded with {', '.join(map(repr, sorted(equal.models)))}"
    return f"{what} was recorded for other examples only, or less often"
