"""What has happened so far in a run: steps, scores, calls, cost, and how long it will still take."""

from __future__ import annotations

import time
from collections.abc import Callable

from textgrad_engine.llm.charged import usage_of
from textgrad_engine.llm.money import money
from textgrad_engine.llm.response import Usage
from textgrad_engine.report.words import short
from textgrad_engine.train.events import CallEnded, Evaluated, Event, PhaseStarted, RunStarted, StepEnded, part_mark


class Tally:
    """Adds up the events of a run.

    Args:
        clock: the time in seconds, from any beginning.

    Attributes:
        steps: how many there will be at most; None where nobody knows, as in a search.
        step: how many are over.
        best: the best validation score so far; None before the first.
        usage: calls, tokens and dollars.
        validated: how often a whole prompt has been validated.
        tested: how many prompts have been tested.
        mark: what each line about the run begins with, among those of others; "" where no other goes on.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.mark = ""
        self._begin()

    def _begin(self) -> None:
        """Count from nothing: a Trainer may run more than once."""
        self.steps: int | None = 0
        self.step = self.validated = self.tested = 0
        self.best: float | None = None
        self.usage = Usage()
        self._began = self._clock()
        self._tests = 0
        self._val = 1
        self._kept = False
        self._validation = 0.0
        self._first_step: float | None = None
        self._last_step = self._phase = self._began

    def on_event(self, event: Event) -> None:
        """Count an event in."""
        now = self._clock()
        if isinstance(event, CallEnded):
            self._add(event)
        elif isinstance(event, RunStarted):
            self._begin()
            self.mark = part_mark.get()
            self.steps, self._tests, self._val = event.steps, event.test, max(1, event.val)
        elif isinstance(event, PhaseStarted):
            self._phase = now
            if event.step and self._first_step is None:
                self._first_step = now
        elif isinstance(event, Evaluated):
            if event.phase == "test":
                self.tested += 1
            else:
                self.validated += 1
                self._validation = now - self._phase
            if event.step == 0:
                self.best = event.evaluation.mean
        elif isinstance(event, StepEnded):
            self.step, self.best, self._last_step = event.step, event.best_val, now
            self._kept = self._kept or event.kept

    def _add(self, event: CallEnded) -> None:
        answer, failure = event.record.completion, event.record.error
        used = answer.usage if answer is not None else None if failure is None else usage_of(failure)
        if used is not None:
            self.usage += used

    @property
    def seconds(self) -> float:
        """Since the run began."""
        return self._clock() - self._began

    @property
    def left(self) -> float | None:
        """Seconds that it will still take, if all steps are taken; None where nobody knows."""
        if self._first_step is None or not self.step or self.steps is None:
            return None
        since = self._clock() - self._last_step
        steps = (self._last_step - self._first_step) / self.step * (self.steps - self.step)
        tests = self._validation / self._val * self._tests * (2 if self._kept else 1)
        return max(0.0, steps + tests - since)

    def spent(self) -> str:
        """Calls, tokens and cost in words."""
        used = self.usage
        spent = "cost ?" if used.dollars is None else money(used.dollars)  # a line has 80 columns
        if used.dollars is not None and used.dollars >= 100:
            spent = f"${used.dollars:,.0f}"
        return f"{short(used.calls)} calls  {short(used.total_tokens)} tok  {spent}"


def line_of(event: Event, tally: Tally) -> str:
    """What a log says of an event; "" for nothing.

    Args:
        event: what happened.
        tally: of the run so far, this event included.
    """
    if isinstance(event, RunStarted):
        return "\n".join(f"warning: {sentence}" for sentence in event.overlaps)
    if isinstance(event, StepEnded) and event.kind:
        kept = "kept" if event.kept else "    "
        made = f"{_step(event.step, tally)}  {event.kind:<10.10}  {_came_of(event):<7}  {kept}"
        return f"{made}  best {event.best_val:.2f}  {tally.spent()}"
    if isinstance(event, StepEnded):
        train = "   -" if event.train_mean is None else f"{event.train_mean:.2f}"
        dropped = any(change.problem for change in event.changes)
        lost = event.problems or event.unanswered
        val = "edit dropped " if dropped else "answers lost " if lost else "no change    "
        if event.val_mean is not None:
            val = f"val {event.val_mean:.2f} {'kept' if event.kept else '    '}"
        return f"{_step(event.step, tally)}  train {train}  {val}  best {event.best_val:.2f}  {tally.spent()}"
    if not isinstance(event, Evaluated):
        return ""
    if event.phase == "validate":
        if event.step or tally.validated > 1:  # a search that took no step ends with what it began with
            return ""
        return f"{_step(0, tally)}  {f'seed prompt val {event.evaluation.mean:.2f}':<38}{tally.spent()}"
    which = "best" if tally.tested == 1 else "seed"
    return f"{'test':<{len(_step(0, tally))}}  {f'{which} prompt {event.evaluation.mean:.2f}':<38}{tally.spent()}"


def lines_of(event: Event, tally: Tally, told: set[str]) -> str:
    """What there is to say, but of the data only what is new, as the runs of a cross-validation share most of it.

    Each of those is headed by which it is; where several go on at once, each line begins with it.
    """
    line = line_of(event, tally)
    if not isinstance(event, RunStarted):
        return f"{tally.mark}  {line}" if tally.mark and line else line
    new = [each for each in line.split("\n") if each and each not in told]
    told.update(new)
    return "\n".join([f"\n{event.part}", *new] if event.part and not tally.mark else new)


def _came_of(event: StepEnded) -> str:
    """What trying out a proposal of a search brought: on how many examples it did better, and on how many worse.

    Of a search of one's own its validation score, where it has one.
    """
    if event.race is not None:
        return f"+{len(event.race.gained)} -{len(event.race.lost)}"
    if event.val_mean is not None:
        return f"{event.val_mean:.2f}"
    return "dropped" if any(change.problem for change in event.changes) else "lost" if event.problems else "-"


def _step(step: int, tally: Tally) -> str:
    if tally.steps is None:
        return f"step {step:>3}"
    return f"step {step:>{len(str(tally.steps))}}/{tally.steps}"
