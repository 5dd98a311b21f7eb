"""Calls of tools that are on record, and are given again where a run or a cassette is played back.

NOTE [Tools that are played back]
    What a tool gave is recorded as an answer of a model is, and given again where the same call comes again. The tool
    is not run: it may give something else by now (a clock, a search engine), and it may have done what must not be
    done twice (a mail). A call is known by the turn that made it: the model, the conversation so far, the answer that
    holds the call, and its place among the calls of that answer. Of equal ones, the n-th gets what the n-th gave, of
    the same example, of no other item of a `pmap` (`places.same_item`) and of no other place (NOTE [The place of a
    conversation] in `llm.places`).

    A tool may ask models for something of its own. Those calls are on record with the id of the tool's call, which no
    other call of a run has, be it an equal one (`id_of`). When what it gave is given again, they are counted again with
    it: in the sums, the budgets and the journal. So are the tools inside of it.

    A tool through which an error of this library came (a model that it asked gave no finished answer) is on record as
    that, and is run again: what it asked is answered from there, so what failed for good fails again, and what an
    endpoint refused then is asked anew. Nothing is recorded of a tool that was under way when the run ended (a budget
    was spent) or the process was killed: nobody knows how far it had come. Those are run again, too. A cache keeps
    nothing of tools: who asks a clock twice wants two times.

    A tool may give a Variable that feedback goes through, such as the answer of a part of the program that is trained.
    Then its text is not enough for a backward pass: where one may come, it is run again, as the program around it is.
    What it asked is on record and is answered from there, and so are the tools that were called inside of it.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from textgrad_engine.errors import ModelError
from textgrad_engine.llm.answers import Answer, Answers
from textgrad_engine.llm.attachments import texts_of, with_attachments
from textgrad_engine.llm.budget import Budgeted
from textgrad_engine.llm.places import Place, same_item, same_place
from textgrad_engine.llm.request import Request
from textgrad_engine.llm.response import Completion
from textgrad_engine.llm.toolcalls import ToolCall, ToolRecord, inside, tell_of
from textgrad_engine.llm.usage import Metered, call_item, call_key, call_place, call_tool, call_under_way
from textgrad_engine.scoped import setting
from textgrad_engine.signed import resigned

Play = Callable[[Answer, Budgeted, Request], Awaitable[Completion]]
"""Gives a recorded answer again, and charges the budgets for it."""


@dataclass(frozen=True)
class ToolOnRecord:
    """A call of a tool that was written down.

    Attributes:
        record: what was written.
        nth: where it comes among all, in the order in which they began.
        phase: the number of the phase of a run that it belongs to.
        source: the number of its file, where there are several.
        read: gives the bytes of an image by the name that the record has for them.
    """

    record: ToolRecord
    nth: int
    phase: int = 0
    source: int = 0
    read: Callable[[str], bytes] | None = None

    def given(self) -> ToolRecord:
        """What is on record, with the bytes of images: these are read when they are wanted, as there may be many.

        Raises:
            RunError: their file is gone.
        """
        result, read = self.record.result, self.read
        if read is None or not result.content:
            return self.record
        content = tuple([with_attachments(part, read) for part in result.content])
        return replace(self.record, result=replace(result, content=content))


class ToolsOnRecord:
    """Recorded calls of tools; each is given once.

    Args:
        every: all of them.

    Attributes:
        ids: of all of them.
    """

    def __init__(self, every: Sequence[ToolOnRecord] = ()) -> None:
        self._lock = threading.Lock()
        self._given: set[int] = set()
        self._every = every
        self.ids = frozenset([each.record.id for each in every])
        self._by_name: dict[tuple[str, str | None], list[ToolOnRecord]] = {}  # and example; None for those of all
        self._inside: dict[str, list[ToolOnRecord]] = {}
        for each in every:
            for name in each.record.also:
                self._by_name.setdefault((name, each.record.key), []).append(each)
                self._by_name.setdefault((name, None), []).append(each)
            if each.record.tool:
                self._inside.setdefault(each.record.tool, []).append(each)

    def take(self, call: ToolCall, phase: int = 0, *, elsewhere: bool = False) -> ToolOnRecord | None:
        """What is on record of a call; None where there is nothing, or nothing more.

        Args:
            call: the call.
            phase: the number of the phase that it belongs to now.
            elsewhere: where there is nothing left of the example and the place, take what another one got.
        """
        item, place, inside_of = call_item.get(), call_place.get(), call_tool.get()
        example = call.turn.example

        def rank(each: ToolOnRecord) -> Any:
            record = each.record
            other = record.item != item, record.place != place, record.tool != inside_of
            # What was given where nothing is recorded has no graph, and what has one would be run where none is needed.
            return (each.phase != phase, *other, record.result.through != call.recorded, each.nth)

        def is_enough(each: ToolOnRecord) -> bool:
            """Not what was given in another phase without a graph, where a pass may need one: it loses the feedback."""
            result = each.record.result
            return result.through or result.raised or not call.recorded or each.phase == phase

        with self._lock:
            waiting = self._waiting(call, example, item, place)
            found = [each for each in waiting if is_enough(each) and (elsewhere or each.record.tool == inside_of)]
            if not found and elsewhere:
                part = place[:2]
                found = self._waiting(call, example, item, part) or self._waiting(call, None, item, part)
            if not found:
                return None
            taken = min(found, key=rank)
            self._given.add(id(taken))
            return taken

    def _waiting(self, call: ToolCall, example: str | None, item: tuple[int, ...], place: Place) -> list[ToolOnRecord]:
        equal = {id(each): each for name in call.also for each in self._by_name.get((name, example), ())}
        inside_of = call_tool.get()
        return [
            each
            for number, each in equal.items()
            if number not in self._given
            and (each.record.tool == inside_of or each.record.tool not in self.ids)  # else it is given with that call
            and same_item(each.record.item, item)
            and same_place(each.record.place, place)
        ]

    def take_inside(self, outer: ToolOnRecord) -> list[ToolOnRecord]:
        """Those that were made inside of a tool, and are not given yet."""
        with self._lock:
            found = [
                each
                for each in self._inside.get(outer.record.id, ())
                if id(each) not in self._given and each.phase == outer.phase
            ]
            self._given.update(map(id, found))
            return found

    def put_back(self, taken: Iterable[ToolOnRecord]) -> None:
        """Have calls wait again: there was no room in a budget for what was asked inside of them."""
        with self._lock:
            self._given.difference_update(map(id, taken))

    @property
    def left(self) -> list[ToolOnRecord]:
        """Those that have not been given yet."""
        with self._lock:
            return [each for each in self._every if id(each) not in self._given]


class _OnRecord:
    """Stands where a model would stand that a tool had asked."""

    def __init__(self, name: str, answered: Callable[[Request], Awaitable[Completion]]) -> None:
        self.name = name
        self._answered = answered

    async def complete(self, request: Request) -> Completion:
        """What it had answered."""
        return await self._answered(request)


def is_run_again(call: ToolCall, record: ToolRecord) -> bool:
    """Whether a call that is on record is run all the same, as feedback goes through it, or an error came of it."""
    return record.result.raised or (call.recorded and record.result.through)


async def given_again(
    call: ToolCall, taken: ToolOnRecord, tools: ToolsOnRecord, answers: Answers, play: Play
) -> ToolRecord:
    """What is on record of a call; what was asked inside of it is counted again, if it does not ask that itself.

    Args:
        call: the call.
        taken: what is on record of it.
        tools: what is on record of tools.
        answers: the answers on record.
        play: gives one of them again.

    Raises:
        BudgetExceeded: the budgets have no room for it.
        RunError: the file of an image is gone.
    """
    if not is_run_again(call, taken.record):
        try:
            await _count_inside(taken, tools, answers, play)
        except BaseException:
            tools.put_back([taken])
            raise
    record, seen = taken.given(), texts_of(call.turn.asked)
    said: dict[str, Any] = {"text": record.result.text, "content": record.result.content}
    whole = resigned(said, seen)
    return record if whole is said else replace(record, result=replace(record.result, **whole))


async def _count_inside(taken: ToolOnRecord, tools: ToolsOnRecord, answers: Answers, play: Play) -> None:
    """Count once more what was asked inside of a tool whose result is given again, and tell of the tools inside.

    Where that fails, as a budget has no room for it, what was not counted waits again.
    """
    with inside(taken.record.id):
        await _count_all(answers.take_inside(taken.record.id, taken.phase), answers, play)
        inner = tools.take_inside(taken)
        for at, each in enumerate(inner):
            try:
                await _count_inside(each, tools, answers, play)
            except BaseException:
                tools.put_back(inner[at:])
                raise
            tell_of(each.record)


async def answered_again(answer: Answer, answers: Answers, play: Play, model: Budgeted, request: Request) -> Completion:
    """Give what is on record of a call; what its model asked others is counted again with it, as it is not run.

    Args:
        answer: what is on record of it.
        answers: the answers on record.
        play: gives one of them again.
        model: charges the budgets.
        request: what was asked.

    Raises:
        BudgetExceeded: the budgets have no room for it.
        ModelError: what it failed with.
    """
    own = call_under_way.get()
    if answer.id and own is not None:
        own.id = answer.id
        try:
            with inside(answer.id):
                await _count_all(answers.take_inside(answer.id, answer.phase), answers, play)
        except BaseException:
            answers.put_back(answer)
            raise
    return await play(answer, model, request)


async def _count_all(taken: list[Answer], answers: Answers, play: Play) -> None:
    for at, each in enumerate(taken):
        try:
            await _count(each, answers, play)
        except BaseException:
            for rest in reversed(taken[at + 1 :]):  # it itself waits again already
                answers.put_back(rest)
            raise


async def _count(answer: Answer, answers: Answers, play: Play) -> None:
    async def answered(request: Request) -> Completion:
        try:
            return await answered_again(answer, answers, play, charging, request)
        except ModelError as error:
            error.counted_again = answer.counted_again
            raise

    stub = _OnRecord(answer.model, answered)
    charging = Budgeted(stub)
    request = Request.model_validate({"purpose": answer.purpose, **(answer.request or {})})
    try:
        with setting(call_key, answer.example), setting(call_item, answer.item), setting(call_place, answer.place):
            await Metered(stub).complete(request)
    except ModelError:
        if any(each is answer for each in answers.waiting()):  # there was no room for it
            raise
