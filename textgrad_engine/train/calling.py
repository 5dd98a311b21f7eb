"""Calling a program and its loss, for many examples at once."""

from __future__ import annotations

import inspect
import logging
import math
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, NamedTuple, TypeVar

from textgrad_engine import dispatch
from textgrad_engine.autograd import Variable
from textgrad_engine.dispatch.endings import Ending, Met
from textgrad_engine.errors import UNANSWERED, ScoreError, Stopped, TextgradError
from textgrad_engine.func.pmap import in_threads
from textgrad_engine.llm.cachekey import sampling_apart
from textgrad_engine.llm.ended import meeting_endings
from textgrad_engine.llm.places import numbering_places
from textgrad_engine.llm.stop import check_stop
from textgrad_engine.nn.metric_functions import Score
from textgrad_engine.nn.side_by_side import side_by_side
from textgrad_engine.ops.score_parts import hearing_parts
from textgrad_engine.scoped import setting
from textgrad_engine.train.prediction import as_prediction
from textgrad_engine.train.scale import as_score
from textgrad_engine.train.waits import Look

T = TypeVar("T")
R = TypeVar("R")

_log = logging.getLogger("textgrad_engine.train.calling")


class Ran(NamedTuple):
    """A program on one example; all of it may be pending.

    Attributes:
        prediction: what the program says (see `as_prediction`).
        loss: its score.
        parts: what the score was made of, in order (`train.metrics_of`): of an `nn.Weighted` its losses, of an
            `nn.Rubric` its criteria; none of other losses.
        met: the spent budgets and stops around it that program and loss have met so far, also where they caught them.
    """

    prediction: Any
    loss: Any
    parts: tuple[Variable, ...] = ()
    met: Sequence[Ending] = ()

    def score(self) -> float:
        """The score, waited for; or what ended it, whatever program and loss have made of that.

        Where a program that catches errors makes do without an answer, what was not asked for because a budget around
        the example is spent, or the run is stopped, would be scored by what the program says instead, mostly as wrong.
        A budget or stop of the program's own is its own matter.

        Raises:
            BudgetExceeded: a call had no room in a budget around the example.
            Stopped: one was not sent any more.
        """
        try:
            found = as_score(self.loss)
        except Exception:
            if not self.met:
                raise
            found = math.nan
        if self.met:  # out of the handler: it may be its cause
            raise self.met[0].with_traceback(None)  # it may be raised for many examples, and would get longer each time
        if isinstance(self.met, Met):
            _tell_of_caught([*self.met.refusals, *self.met.awaited])
        return found


def run_on(name: str, program: Callable[..., Any], fields: Mapping[str, Any], score: Score, wanted: Any) -> Ran:
    """What a program says of one example, and its loss.

    A program that waits for an answer, to decide what to do next, meets it here when that is not to be had. It costs
    this example alone, as in a program that does not wait: the Variables raise the error where they are read.

    Where a program asks the same twice of one example (to vote on several answers), each time is a sample of its own,
    also where answers are kept on disk; not so at temperature 0.

    Args:
        name: the example's id. An error in the user's own code gets a note with it.
        program: the program.
        fields: those of the example's fields that it is called with.
        score: the loss.
        wanted: the example's target.
    """
    doing, met = "running the program", Met(lambda ending: False)
    if _waits_first.get():
        try:
            check_stop()
        except Stopped as error:  # what the program would look up, nobody would be asked about
            return not_to_be_had(error)
    try:
        with meeting_endings() as met:
            with sampling_apart(), numbering_places():
                prediction = as_prediction(program(**fields))
            doing = "computing the loss"
            loss, parts = scored_by_parts(score, prediction, wanted, fields)
        _tell_of_caught(met.refusals)
        return Ran(prediction, loss, parts, met)
    except Exception as error:
        if not met or met[0] is error:  # else the program may have made an error of its own of that
            if isinstance(error, UNANSWERED):
                return not_to_be_had(error)
            if not isinstance(error, TextgradError) or isinstance(error, ScoreError):
                error.add_note(f"while {doing} on example {name!r}")
            raise
    raise met[0].with_traceback(None)


_told = set[str]()
_OF_ONE_CALL = re.compile(r"\S*\d\S*")


def _tell_of_caught(refusals: Sequence[Exception]) -> None:
    """Tell of errors that a program caught; each once, as it is so for all examples, whatever number each call has."""
    for error in map(str, refusals):
        if (alike := _OF_ONE_CALL.sub("", error)) in _told:
            continue
        _told.add(alike)
        _log.warning(
            "the program caught an error that no example will be without, and is scored by what it says instead: %s; "
            "let errors.AuthenticationFailed and errors.QuotaExhausted through, and the run ends with it",
            error,
        )


def scored_by_parts(
    score: Score, prediction: Any, wanted: Any, fields: Mapping[str, Any]
) -> tuple[Any, tuple[Variable, ...]]:
    """What a loss gives of a prediction, and what it made that of, as `Ran` has it."""
    with hearing_parts() as heard:
        loss = score(prediction, wanted, fields)
    return loss, tuple(heard[-1].values()) if heard else ()


def not_to_be_had(error: Exception) -> Ran:
    """What there is of an example whose program raised an error: prediction and loss raise it where they are read."""

    async def fail() -> tuple[Any, ...]:
        raise error

    (value,) = Variable._of_call(dispatch.submit(fail, label="an example"), ("",))
    return Ran(value, value)


def run_scored(
    program: Callable[..., Any],
    start: Callable[[int], tuple[R, Variable]],
    count: int,
    concurrency: int | None = None,
    on_score: Callable[[int], None] | None = None,
    room: threading.BoundedSemaphore | None = None,
) -> list[tuple[R, Variable]]:
    """Start every example, at most `concurrency` of them unfinished at a time.

    Args:
        program: what is run, of which it is remembered whether it waits.
        start: gets a position and gives what is wanted of that example, with its loss.
        count: how many examples there are.
        concurrency: an example holds its place until its loss is there; None for no limit.
        on_score: called with a position when that example's loss is there; on any thread, in any order. It must not
            raise.
        room: places for unfinished examples that are shared with others; None for places of its own.

    Raises:
        TypeError: a loss is no Variable.
    """
    if room is None and concurrency is not None:
        room = threading.BoundedSemaphore(concurrency)
    look = Look(program)

    def begin(position: int) -> tuple[R, Variable]:
        if room is not None:
            dispatch.place_taken(room)
            look.begin()
        try:
            result, loss = start(position)
            made: object = loss
            if inspect.iscoroutine(made):
                made.close()  # or Python warns that nobody awaited it
                raise ScoreError("a loss gives a Variable, and this one a coroutine, which nobody awaits: write `def`")
            if not isinstance(loss, Variable):
                raise ScoreError(
                    f"a loss gives a Variable, got {type(loss).__name__}; nn.Metric makes one of a plain function"
                )
        except BaseException:
            if room is not None:
                room.release()
            raise

        def finished(_: Any) -> None:
            if room is not None:
                room.release()
            if on_score is not None:
                on_score(position)

        if loss._call is None:
            finished(None)
        else:
            loss._call.on_done(finished)
        return result, loss

    return run_together(look, begin, range(count), concurrency)


def run_together(look: Look, function: Callable[[T], R], items: Sequence[T], concurrency: int | None = None) -> list[R]:
    """Call a function on each item so that the model calls inside overlap, with results in order.

    A program that only dispatches calls is run in this thread, item after item. Where it is known or noticed that it
    waits, the others are run in threads: NOTE [Programs that wait] in `train/waits.py`.
    """
    one_at_a_time = concurrency == 1 or len(items) == 1
    results: list[R] = []
    while len(results) < len(items) and (one_at_a_time or not look.waits):
        with setting(_waits_first, look.waits_first):
            results.append(look.at(function, items[len(results)]))
    if rest := items[len(results) :]:
        try:
            with side_by_side(), setting(_waits_first, look.waits_first):
                results.extend(in_threads(function, rest, concurrency, numbered=False))
        except Exception as error:
            if look.elsewhere and not isinstance(error, TextgradError):
                error.add_note(_IN_THREADS)
            raise
    return results


_waits_first: ContextVar[bool] = ContextVar("textgrad_engine_waits_first", default=False)
"""Whether a program runs here that waits for something else before it asks."""

_IN_THREADS = (
    "examples of this program are run in threads, as it waits for something before it asks a model; if an object may "
    "be used only in the thread that made it, such as a connection, make one for each thread (threading.local()); "
    "concurrency=1 runs one example after the other"
)
