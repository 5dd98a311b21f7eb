"""One call of `Trainer.fit`: its course, from the seed texts to the test set."""

from __future__ import annotations

import abc
import contextlib
import logging
import time

from textgrad_engine.errors import BudgetExceeded, CallCancelled, Stopped
from textgrad_engine.llm.context import counting_left_out
from textgrad_engine.llm.meters import Meter, meter
from textgrad_engine.llm.reserve import waiting
from textgrad_engine.llm.toolcalls import ToolRecord, observe_tools
from textgrad_engine.llm.usage import CallRecord, observe
from textgrad_engine.ops.tools import telling_anew
from textgrad_engine.train.concluding import result_of
from textgrad_engine.train.controlled import run_controls
from textgrad_engine.train.controls import CONTROLS, Controls
from textgrad_engine.train.ending import Ending
from textgrad_engine.train.events import (
    CallEnded,
    RunEnded,
    RunFailed,
    RunStarted,
    Status,
    TimeIsUp,
    ToolEnded,
    current_part,
    current_phase,
)
from textgrad_engine.train.hearing import hearing
from textgrad_engine.train.interrupt import stopping_on_interrupt
from textgrad_engine.train.known import current_proposal
from textgrad_engine.train.on_test import evaluate_test, some_of
from textgrad_engine.train.result import TrainResult
from textgrad_engine.train.run_state import RunState
from textgrad_engine.train.settings import NESTED, TO_THE_END, settings_of
from textgrad_engine.train.under_way import answers_kept, wait_for

_log = logging.getLogger(__name__)


class Run(RunState, abc.ABC):
    """One call of `fit`: what is the same for every optimizer. `StepRun` and `SearchRun` say how texts are changed."""

    def run(self) -> TrainResult:
        """Train until the end, Ctrl-C, or a spent budget; what was found then is worked out and told in any case.

        It is called in a block of `finishing_on_interrupt`, which is left when the callbacks have been told of the end.
        """
        began = time.monotonic()
        try:
            status, used = self.ask()
            result = result_of(self, status, used, time.monotonic() - began)
            if self.earlier is not None:
                result = self.earlier.confirmed(result)
            self.emit(RunEnded(result.status, result))
        except Exception as error:
            # Whoever is told may be what failed, and what went wrong first is what is raised.
            with contextlib.suppress(Exception):
                self.emit(RunFailed.of(error))
            raise
        return result

    def ask(self) -> tuple[Status, Meter]:
        """All of the run that asks models. Returns how it ended and what was used."""
        status: Status = "finished"
        with contextlib.ExitStack() as stack:
            used = stack.enter_context(meter())
            stack.enter_context(observe(self.on_call))
            stack.enter_context(observe_tools(self.on_tool))
            stack.enter_context(telling_anew())
            stack.enter_context(counting_left_out())
            if self.earlier is not None:
                stack.enter_context(self.earlier.answering())
            stack.enter_context(hearing(self.trainer, self.loader.dataset))
            stop = stack.enter_context(stopping_on_interrupt())
            stack.enter_context(answers_kept(stop, used))
            self.emit(self.started())
            self.deadline.begin()
            try:
                status = self.test_and_compare(self.train_until_spent(used), used)
            except (Stopped, CallCancelled):
                if not stop.is_set:
                    raise
                status = "interrupted"
            except BudgetExceeded as error:
                status = "budget"
                self.shortage = str(error) if error.too_small and not used.total.calls else ""
            finally:
                self.load(self.best)
                self.optimizer.zero_grad()
            wait_for(used)
            for each in waiting():
                self.ending.unasked.add(each.kept)
        if status == "finished" and self.refused - self.phases.dropped:  # what nobody read, or a program does without
            status = "budget"
        if status != "finished":
            self.count_in()
        return status, used

    def test_and_compare(self, status: Status, used: Meter) -> Status:
        """Run the test set, as far as the budget has room for it, and then the controls, if some are wanted.

        Args:
            status: how training ended.
            used: what was used for it.

        Returns:
            How the run has ended by then.
        """
        no_step = "" if self.steps or status != "budget" else self.ending.no_step
        if no_step:
            _log.warning("%s", no_step)
        searched = Controls(
            type(self.optimizer).__name__,
            used.total.calls + used.cached,
            used.total,
            problem=self.ending.no_controls or no_step,
        )
        if self.test is not None:
            self.test.end_training()
            drawn = self.ending.drawn(None if self.best == self.seed else size_of(self.best))
            if drawn:
                evaluate_test(self, some_of(self, self.test.open(), drawn))
            else:
                status = "budget"
        if self.trainer.controls:
            self.controls = searched
            if status == "finished" or self.ending.controls:
                run_controls(self)
        return status

    def train_until_spent(self, used: Meter) -> Status:
        """Train to the end, or until what is left of the budget is kept for the end of the run.

        Raises:
            BudgetExceeded: it does not allow to score the seed texts.
        """
        status: Status = "finished"
        tests, controls = 0 if self.test is None else len(self.test), len(CONTROLS) if self.trainer.controls else 0
        self.ending = Ending(size_of(self.seed), len(self.seed), tests, controls)
        with self.ending:
            try:
                self.train(used)
                self.lost_rounds.end()
            except BudgetExceeded as error:
                if self.seed_val is None:
                    raise
                status = "budget"
                if error.enough and any(not each.moved for each in waiting()):
                    enough = f"raise it to {error.enough} or more"
                    if self.ending.shortage:  # a larger one keeps more for the test
                        enough = f"raise it well beyond {error.enough}, as a larger part of the test set is run then"
                    _log.warning(
                        "the budget had no room for more than was on record, as what a search finds has to be tested, "
                        "too; %s",
                        enough,
                    )
        wait_for(used)
        self.objective.reach.tell_at_the_end()
        for each in waiting():
            each.come_to(self.best)
        self.ending.decided = not any(each.moved for each in waiting())
        self.ending.keep_for(size_of(self.best), 0)  # the test goes before the rest of the validation set
        with self.ending:
            try:
                self.complete()
            except BudgetExceeded:  # the races have decided; the test set tells what the texts are worth
                if not (self.ending.tests or self.ending.controls):
                    raise
                status = "budget"
                self.count_in()  # controls are compared with what is known of them
        self.load(self.best)
        return status

    def enough(self, since_kept: int) -> bool:
        """Whether no further step is to be begun: by the trainer's limits, or as a callback wants it.

        Args:
            since_kept: so many steps in a row were not kept.
        """
        most, patience = self.trainer.max_steps, self.trainer.patience
        return (
            self.audience.wants_to_stop
            or (most is not None and len(self.steps) >= most)
            or (patience is not None and since_kept >= patience)
            or self.time_is_up()
        )

    def time_is_up(self) -> bool:
        """Whether a further step would have the end of the run come too late; it is told once.

        Where no further step is to come in any case, it is not for its time.
        """
        most = self.most_steps()
        if most is not None and len(self.steps) >= most:
            return False
        tests = 0 if self.test is None else 2 * len(self.test)
        to_come = tests + self.objective.missing(self.objective.texts_of(self.best))
        told = bool(self.deadline.in_words)
        over = self.deadline.is_over(len(self.steps), to_come)
        if over and not told:
            self.emit(TimeIsUp(len(self.steps), self.trainer.max_minutes))
        return over

    def validate_seed(self, used: Meter) -> None:
        """Score the seed texts; from now on what the end of the run takes is kept back from the budget."""
        self.seed_val = self.best_val = self.evaluated(self.objective.texts_of(self.seed), 0)
        self.ending.learn(used.total + used.saved, len(self.seed_val))
        self.deadline.learn(len(self.seed_val), used)
        if self.ending.no_controls:  # who wanted them can raise the budget before it is spent
            _log.warning("%s", self.ending.no_controls)
        self.keep_for_the_end()

    def keep_for_the_end(self) -> None:
        """Keep back what the end of the run takes with the best texts of now."""
        self.ending.keep_for(size_of(self.best), self.objective.missing(self.objective.texts_of(self.best)))

    def complete(self) -> None:
        """Score the best texts on all of the validation set, if they were not."""
        texts = self.objective.texts_of(self.best)
        if self.objective.missing(texts):
            self.best_val = self.evaluated(texts, len(self.steps))

    def count_in(self) -> None:
        """Score the best texts by all that was answered, also where not all of the validation set was come to."""
        known = self.objective.known(self.objective.texts_of(self.best))
        if known is not None and self.best_val is not None and len(known.answered) > len(self.best_val.answered):
            self.best_val = known

    def started(self) -> RunStarted:
        """The first event."""
        tests = 0 if self.test is None else len(self.test)
        return RunStarted(
            dict(self.seed),
            *(len(self.loader.dataset), len(self.val), tests, self.most_steps(), self.overlaps),
            settings_of(self.trainer, self.optimizer, self.loader) | {TO_THE_END: self.to_the_end, NESTED: self.nested},
            current_part.get(),
        )

    @property
    @abc.abstractmethod
    def idle(self) -> str:
        """Why the optimizer was asked for nothing more, in words; "" where it was not ended by that."""

    @abc.abstractmethod
    def most_steps(self) -> int | None:
        """How many optimizer steps there will be at most; None where that is not known."""

    @abc.abstractmethod
    def train(self, used: Meter) -> None:
        """Change the texts, and keep what does better on the validation set; begins with `validate_seed`."""

    def on_call(self, record: CallRecord) -> None:
        """Pass on that a call has ended; runs in that call's own context."""
        error, phase = record.error, current_phase.get()
        if isinstance(error, BudgetExceeded) and any(each.refused(error) for each in self.budgets):
            self.refused.add(current_proposal())
        self.lost_rounds.hear(error)
        self.emit(CallEnded(phase, record))

    def on_tool(self, record: ToolRecord) -> None:
        """Pass on that a call of a tool has ended; runs in that call's own context."""
        self.emit(ToolEnded(current_phase.get(), record))


def size_of(texts: dict[str, str]) -> int:
    """How long texts are, in bytes."""
    return sum(len(text.encode("utf-8", "surrogatepass")) for text in texts.values())
