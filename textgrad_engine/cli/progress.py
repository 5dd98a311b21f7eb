"""What is seen while a run goes on: bars in a terminal, plain lines elsewhere; always on stderr."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from types import FrameType
from typing import Any

from textgrad_engine.llm.response import Usage
from textgrad_engine.llm.usage import usage_of
from textgrad_engine.report.words import count, duration, money, plural, score, short
from textgrad_engine.train.events import (
    CallEnded,
    Callback,
    Evaluated,
    Event,
    PhaseAdvanced,
    PhaseEnded,
    PhaseStarted,
    RunEnded,
    RunStarted,
    StepEnded,
)

__all__ = ["Lines", "Tally", "progress_for"]


class Tally:
    """Adds up what has happened so far.

    Attributes:
        steps: how many there will be at most.
        step: how many are over.
        best: the best validation score so far; None before the first.
        usage: calls, tokens and dollars.
        seconds: since the run began.
    """

    def __init__(self) -> None:
        self.steps = self.step = self.tests = 0
        self.best: float | None = None
        self.usage = Usage()
        self.changed = False
        self._began = self._first_step = time.monotonic()
        self._validation = 0.0
        self._val = 1
        self._phase_began = self._began
        self._testing = False

    def on_event(self, event: Event) -> None:
        """Count an event in."""
        if isinstance(event, CallEnded):
            self._add(event)
        elif isinstance(event, RunStarted):
            self.steps, self.tests, self._val = event.steps, event.test, max(1, event.val)
            self._began = self._first_step = time.monotonic()
        elif isinstance(event, PhaseStarted):
            self._phase_began = time.monotonic()
            self._testing = self._testing or event.phase == "test"
        elif isinstance(event, Evaluated) and event.phase == "validate":
            self._validation = time.monotonic() - self._phase_began
            if event.step == 0:
                self.best = event.evaluation.mean
                self._first_step = time.monotonic()
        elif isinstance(event, StepEnded):
            self.step, self.best = event.step, event.best_val
            self.changed = self.changed or event.kept

    def _add(self, event: CallEnded) -> None:
        answer, failure = event.record.completion, event.record.error
        used = answer.usage if answer is not None else None if failure is None else usage_of(failure)
        if used is not None:
            self.usage += used

    @property
    def seconds(self) -> float:
        """Since the run began."""
        return time.monotonic() - self._began

    @property
    def left(self) -> float | None:
        """Seconds that it will still take, as far as anybody can tell after a step; None before."""
        if not self.step or self._testing:
            return None
        now = time.monotonic()
        a_step = (now - self._first_step) / (self.step + 0.5)
        testing = self._validation / self._val * self.tests * (2 if self.changed else 1)
        return max(0.0, a_step * (self.steps - self.step - 0.5)) + testing

    def spent(self) -> str:
        """Calls, tokens and cost in words."""
        used = self.usage
        return f"calls {count(used.calls)}  tokens {short(used.total_tokens)}  {money(used.dollars)}"


class Lines:
    """One plain line for each step, for whoever reads a log.

    Args:
        write: what takes a line, without its line break.
    """

    def __init__(self, write: Any) -> None:
        self._write = write
        self.tally = Tally()

    def on_event(self, event: Event) -> None:
        """Write a line when there is something to say."""
        self.tally.on_event(event)
        line = step_line(event, self.tally)
        if line:
            self._write(line)


def step_line(event: Event, tally: Tally) -> str:
    """What a log says of an event; "" for nothing."""
    if isinstance(event, Evaluated) and event.phase == "validate" and event.step == 0:
        return f"{_at(0, tally)}  seed prompt  val {score(event.evaluation.mean)}  {tally.spent()}"
    if isinstance(event, StepEnded):
        train = "  -  " if event.train_mean is None else score(event.train_mean)
        if event.val_mean is None:
            val = "no change           " if not any(c.problem for c in event.changes) else "proposal dropped    "
        else:
            val = f"val {score(event.val_mean)} ({'kept' if event.kept else 'not kept'})".ljust(20)
        return f"{_at(event.step, tally)}  train {train}  {val} best {score(event.best_val)}  {tally.spent()}"
    if isinstance(event, PhaseStarted) and event.phase == "test":
        return f"{'test':<{len(_at(0, tally))}}  {plural(event.total, 'example')}"
    return ""


def _at(step: int, tally: Tally) -> str:
    return f"step {step:>{len(str(tally.steps))}}/{tally.steps}"


@contextlib.contextmanager
def progress_for(quiet: bool) -> Iterator[tuple[Callback, ...]]:
    """The callbacks that show how a run goes on: none when it shall be quiet, bars in a terminal, else lines."""
    if quiet:
        yield ()
        return
    yield (Lines(lambda line: print(line, file=sys.stderr, flush=True)),)
