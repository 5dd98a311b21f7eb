"""Answers of a run that was cut, given where they are asked for again; the rest is asked of the models.

NOTE [What is played back]
    An answer goes to the request that it was an answer to, of the same model, the same example (`call_key`) and the
    same item of a `pmap` (`call_item`): the n-th equal request gets the n-th one, of the same phase of the run first.
    Where a cache tells samples of one request apart (`llm.repeat`), each is given again as that sample, and one that is
    missing is asked for as itself: else the cache would give one that is on record, and in a vote it would count twice.
    Of an item its own answer is given, whichever sample it is, as items are numbered by who is quicker.
    So is a failure that lies in the answer (`AnswerError`: cut off, filtered, malformed, after all attempts), as the
    way of the run depends on it. A failure of the endpoint or of the run's end is nobody's answer: what it had used, or
    may have, is counted again, in the sums, the budgets and the journal, by the first equal request, and that goes on
    to the next answer, or is asked anew.

    What tools gave is played back likewise (NOTE [Tools that are played back] in `llm.tools_on_record`). So is
    what a model said that asks others which are recorded, too: it is not run, and what it asked then is counted again
    with it.

    Played back, an answer costs neither a place in the queue nor one of the requests per minute. It is charged to the
    budgets as it was then, so that what depends on what is left of them comes out the same. What was paid for and has
    not been asked for again, or never will be, is kept from the calls that are asked of a model: the limits hold for
    all that the run pays, before and now.

NOTE [Paying twice]
    Where the program, a prompt or this library was changed, requests are other ones, and there are no answers to them.
    The first that a run does is to validate its seed texts. Where that asks for something that was not recorded
    although it had been done, or asks of an example something else than was recorded of it, the run is refused before
    it pays. A program may ask several things of an example at once, of which some were answered when the run was cut:
    where the validation had not been done, what is not on record waits a moment for the others.
    Critics and optimizers are asked later. As long as all was on record, the run goes the way that it went, whatever
    its budgets are now: so it is refused, too, where one of them is asked for something that was not recorded in a
    phase of which all is on record, and which has answers that would be of no use. Which other texts are looked at on
    which examples depends on what is left of budgets and time. What differs only there, or after something was asked,
    is asked anew, and the run says in the end how much that was. A tool that is run again, as it was under way when the
    run was cut, may ask for what it likes. So may an example of which something had failed that is asked or run anew:
    now there may be an answer, and the program goes on with that.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Container, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from textgrad_engine.dispatch import Moment
from textgrad_engine.errors import AnswerError, ModelError, RunError
from textgrad_engine.llm.account import as_amount
from textgrad_engine.llm.amounts import Amount
from textgrad_engine.llm.answers import Answer, Answers, Equal, belongs, distance, entry_of, may_answer
from textgrad_engine.llm.budget import Budgeted
from textgrad_engine.llm.cachekey import as_sample, sample_of
from textgrad_engine.llm.charged import costs_nothing, plus, unknown_of, usage_of
from textgrad_engine.llm.playback import count_again, unlike
from textgrad_engine.llm.request import Request
from textgrad_engine.llm.reserve import UNTESTED, LastTest, Part, Reserve, Waiting, decided
from textgrad_engine.llm.response import Completion
from textgrad_engine.llm.stop import check_stop
from textgrad_engine.llm.taped import Player, playing
from textgrad_engine.llm.toolcalls import ToolCall, ToolRecord
from textgrad_engine.llm.tools_on_record import ToolOnRecord, ToolsOnRecord, answered_again, given_again
from textgrad_engine.llm.usage import call_tool

_PATIENCE = 0.5
"""So many seconds what is not on record waits for what else is asked at once; see NOTE [Paying twice]."""
_TURN = 0.02
"""The seconds after which it looks again."""
_WHO = {"backward": "critic", "optimizer": "optimizer"}
"""Who is asked after the first validation, by the purpose of what is asked."""


class Resumption:
    """A `Player` that gives the answers that a run was cut with, and asks for what is not among them.

    Args:
        every: the answers and failures; of equal requests, in the order in which they were asked. Of failures, `sent`
            is False where they used nothing.
        tools: what is on record of tools; any other call of one is run.
        phase: gives the number of the phase that code belongs to.
        validated: whether the run had validated its seed texts, so that all that this asks for is on record; None lets
            it ask for anything.
        whole: the phases of which all is on record, as far as the run has come to the same ones so far.
        ends: what belongs to the end of the run, by number of the file and line.
        tested: the last test in the end of the run.

    Attributes:
        asked: how many calls were passed on to a model, or to a tool.
        problem: what the run asked for that should have been recorded, in words; "" for nothing.
    """

    def __init__(
        self,
        every: Sequence[Answer],
        tools: Sequence[ToolOnRecord] = (),
        *,
        phase: Callable[[], int],
        validated: bool | None = None,
        whole: Container[int] = (),
        ends: Mapping[tuple[int, int], Part] = MappingProxyType({}),
        tested: LastTest = UNTESTED,
    ) -> None:
        self._ends, self._tested = ends, tested
        self._answers = Answers(every, lambda each: (*belongs(each), each.phase, is_answer(each)))
        self.tools = ToolsOnRecord(tools)
        self.ids = self.tools.ids | {each.id for each in every if each.id and is_answer(each)}
        self._phase, self._validated, self._watching = phase, validated, validated is not None
        self._whole = whole
        self._lock = threading.Lock()
        self._reserve: Waiting | None = None
        self._others = Counter((each.example, each.purpose) for each in every if is_answer(each) and not each.tool)
        self._anew: set[str] = set()  # examples of which something that had failed is asked or run anew
        self._first: Moment | None = None  # in which all examples ask for the first time
        self._in_doubt = 0
        self.outer: Player | None = None
        self.asked = 0
        self.problem = ""
        self._asks = "validating the seed texts asks"

    @contextlib.contextmanager
    def answering(self) -> Iterator[None]:
        """Inside the block, it answers calls, and keeps what it holds from the budgets around the block."""
        with Waiting(self._tested) as self._reserve, playing(self):
            for each in self._answers.waiting():
                self._reserve.add(_amount_of(each), self._ends.get((each.source, each.line)))
            yield

    def validation_ended(self) -> None:
        """The seed texts are validated, and from now on anything may be asked.

        Raises:
            RunError: something else was asked, and the program went on without an answer.
        """
        if self.problem:
            raise self._refusal()
        self._watching = False

    @property
    def played(self) -> list[Answer]:
        """The answers that were asked for again."""
        waiting = {id(each) for each in self._answers.waiting()}
        return [each for each in self._answers.every if is_answer(each) and id(each) not in waiting]

    @property
    def sources(self) -> set[int]:
        """The numbers of the files that hold something which was not asked for again."""
        return {each.source for each in self.left} | {each.source for each in self.tools.left}

    @property
    def left(self) -> list[Answer]:
        """What was paid for and not asked for again, failures that used something included."""
        return [each for each in self._answers.waiting() if is_answer(each) or _charged(each)]

    async def answer(self, model: Budgeted, request: Request) -> Completion:
        """What was recorded for a request; else what the model says.

        Raises:
            Stopped: the run was stopped.
            BudgetExceeded: the budgets have no room for the call, be it recorded or not.
            RunError: the run has changed; see NOTE [Paying twice].
            ModelError: what the request failed with, now or then.
        """
        check_stop()
        entry, phase, known = entry_of(model, request), self._phase(), False

        equal = self._answers.equal_to(entry)
        if equal is not None and self._validated is None:  # a cassette; of a run, the endpoint is to be the same one
            entry["model"] = equal.recorded_as(entry["model"])
        bases, sample = sample_of(model, request) if equal is not None and equal.sampled else ([], None)

        def rank(each: Answer) -> Any:
            another = None not in (sample, each.sample) and each.sample != sample
            if not may_answer(each, entry) or (another and not each.item):
                return None
            return each.phase != phase, *distance(each, entry), another, is_answer(each), each.nth

        while (taken := self._answers.take(equal, rank, entry["example"])) is not None:
            known = True
            if is_answer(taken):
                if not taken.tool:
                    self._others[taken.example, taken.purpose] -= 1
                return await answered_again(taken, self._answers, self._play, model, request)
            if _charged(taken):
                play = functools.partial(self._play, taken, model, request)
                await count_again(taken, self._answers, model, request, play)
        if known:
            self._anew.add(entry["example"])
        else:
            await self._check(entry, equal)
        with self._lock:
            self.asked += 1
        ask = model.inner.complete if self.outer is None else functools.partial(self.outer.answer, model)
        if sample is not None:
            with as_sample(bases[0], sample):
                return await self._ask(ask, request, known=known)
        return await self._ask(ask, request, known=known)

    async def _ask(
        self, ask: Callable[[Request], Awaitable[Completion]], request: Request, *, known: bool
    ) -> Completion:
        if known and self._reserve is not None and self._reserve.ends_as_before:
            with Reserve(decided=True):
                return await ask(request)
        completion = await ask(request)
        if self._reserve is not None and not decided():
            self._reserve.moved = True
        return completion

    async def tool(self, call: ToolCall) -> ToolRecord | None:
        """What a call of a tool gave; None where that is not on record.

        Raises:
            BudgetExceeded: the budgets have no room for what models were asked inside of it.
        """
        taken = self.tools.take(call, self._phase())
        if taken is None:
            with self._lock:
                self.asked += 1
            return None if self.outer is None else await self.outer.tool(call)
        if taken.record.result.raised:
            self._anew.add(call.turn.example)
        return await given_again(call, taken, self.tools, self._answers, self._play)

    async def _play(self, taken: Answer, model: Budgeted, request: Request) -> Completion:
        """Give what was recorded; it is no longer kept from the budgets, but spent."""
        reserve = self._reserve
        if reserve is None:
            return await self._answers.play(taken, model, request)

        def given() -> None:
            reserve.add(_amount_of(taken), self._ends.get((taken.source, taken.line)), -1)

        with reserve.lifted(inside=taken.phase == self._phase()):
            return await self._answers.play(taken, model, request, given)

    async def _check(self, entry: dict[str, Any], equal: Equal | None) -> None:
        """Refuse what was not recorded though it should have been; see NOTE [Paying twice].

        Raises:
            RunError: that is so.
        """
        if not self._watching:
            self._check_later(entry, equal)
            return
        if call_tool.get() or entry["example"] in self._anew:
            return
        others = (entry["example"], entry["request"]["purpose"])
        if not self._validated:
            await self._wait_for(others)
        with self._lock:
            if (
                self._watching
                and not self.problem
                and self._answers.every
                and (self._validated or self._others[others])
            ):
                recorded = [each for each in self._answers.every if is_answer(each)]
                if recorded:
                    self.problem = unlike(entry, equal, [each for each in recorded if each.request is not None])
        if self.problem:
            raise self._refusal()

    def _check_later(self, entry: dict[str, Any], equal: Equal | None) -> None:
        """The same of critics and optimizers, when the seed texts are validated.

        Raises:
            RunError: one is asked for something else than was recorded, before anything else was asked.
        """
        of, purpose = self._phase(), entry["request"]["purpose"]
        with self._lock:
            as_before = not (self.problem or self.asked or self._anew or call_tool.get())
            if as_before and purpose in _WHO and of in self._whole:
                waiting = self._answers.waiting()
                left = [each for each in waiting if is_answer(each) and (each.phase, each.purpose) == (of, purpose)]
                if left:
                    self._asks = f"the {_WHO[purpose]} is asked"
                    self.problem = unlike(entry, equal, [each for each in left if each.request is not None])
        if self.problem:
            raise self._refusal()

    def _refusal(self) -> RunError:
        return RunError(
            f"{self._asks} for something else than was recorded, so what was paid for would be "
            f"paid for again: {self.problem}\nPut back what was changed since: the models, the program, the "
            "metric, the prompts, or the version of textgrad_engine; what the program looks up by itself, outside of "
            "tools=, must be the same as then"
        )

    async def _wait_for(self, others: tuple[str, str]) -> None:
        """Wait a moment: for the first requests of all examples, then for what else is on record of this one.

        Args:
            others: the example and the purpose of what was asked and is not on record.
        """
        if self._first is None:
            self._first = Moment(_PATIENCE)
        if self._others[others]:
            own = Moment(_PATIENCE)
            self._in_doubt += 1
            try:
                while self._others[others] and not self.problem and not own.over():
                    await asyncio.sleep(_TURN)
            finally:  # also where the program gives the call up meanwhile
                self._in_doubt -= 1
        else:
            while not self._first.over():
                await asyncio.sleep(_TURN)
        while self._in_doubt and not self._others[others] and not self.problem:
            await asyncio.sleep(_TURN)
        check_stop()


def is_answer(recorded: Answer) -> bool:
    """Whether what was recorded is an answer, or a failure that lies in one; see NOTE [What is played back]."""
    return isinstance(recorded.outcome, Completion | AnswerError)


def _charged(failure: Answer) -> bool:
    """Whether a failure used something, or may have."""
    outcome = failure.outcome
    return isinstance(outcome, ModelError) and (not costs_nothing(outcome) or outcome.sent is not False)


def _amount_of(recorded: Answer) -> Amount:
    """What an answer, or a failure, is known to have used, and may have."""
    outcome = recorded.outcome
    used = plus(outcome.usage if isinstance(outcome, Completion) else usage_of(outcome), unknown_of(outcome))
    return Amount() if used is None else as_amount(used)
