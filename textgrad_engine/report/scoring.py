"""What is seen while an evaluation goes on: a bar in a terminal, a notebook's line that changes, lines in a log."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeAlias

from textgrad_engine.report.bars import log_above
from textgrad_engine.report.cell import Display, Part, notebook
from textgrad_engine.report.printing import styled
from textgrad_engine.report.terminal import cursor_back, terminal, terminal_taken
from textgrad_engine.report.words import duration
from textgrad_engine.train.interrupt import telling

if TYPE_CHECKING:
    from rich.console import Console

OnScore: TypeAlias = Callable[[int], None]
"""Called when a sample of an example has its score."""


@contextlib.contextmanager
def score_bar(total: int) -> Iterator[OnScore]:
    """Show the progress of an evaluation inside the block: how many examples have their score, and the time left.

    In a terminal it is a bar on stderr, which disappears when the block ends; in a notebook a line of its cell, which
    stays. In a pipe, and next to other bars, nothing is shown. For a Trainer's run use `Progress`, which shows more.

    Args:
        total: how many scores there will be: the number of examples, times ``repeats``.

    Yields:
        A function to pass to an evaluation as ``on_score``.

    Example:
        >>> from textgrad_engine import evaluate, nn, report
        >>> from textgrad_engine.testing import ScriptedModel
        >>> program = nn.ChatCompletion("{question}", model=ScriptedModel(["4", "5"]))
        >>> rows = [{"question": "2 + 2?", "target": "4"}, {"question": "3 + 3?", "target": "6"}]
        >>> with report.score_bar(len(rows)) as on_score:
        ...     evaluate(program, rows, nn.ExactMatch(), on_score=on_score).mean
        0.5
    """
    if (display := notebook()) is not None:
        line = _Line(display, total)
        try:
            with telling(line.on_interrupt):
                yield line.on_score
        finally:
            line.end()
    elif (console := terminal()) is None or not terminal_taken.acquire(blocking=False):
        yield lambda _: None
    else:
        with cursor_back(console):
            try:
                with _bar(console, total) as on_score:
                    yield on_score
            finally:
                terminal_taken.release()


def shows_lines() -> bool:
    """Whether nothing here can show a bar: neither a terminal nor a notebook."""
    return notebook() is None and terminal() is None


@contextlib.contextmanager
def _bar(console: Console, total: int) -> Iterator[OnScore]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    shown = GOING_ON

    def on_interrupt(asking: bool, by: str) -> None:
        nonlocal shown
        shown = _said(asking)

    columns = (TextColumn("{task.description}"), BarColumn(bar_width=36), MofNCompleteColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=console, transient=True)
    with bar as progress, log_above(console), telling(on_interrupt):
        task = progress.add_task(shown, total=total)
        yield lambda _: progress.update(task, advance=1, description=shown)


class ScoreLines:
    """Lines for whoever reads a log: how far each of several evaluations is, and the time left.

    Of each there are about ten at most, and none in the first ten seconds. Where a tenth of it takes longer than a
    minute, a line comes with the next score after each minute.

    Args:
        write: takes a line, without its line break. One that fails, as nobody reads it, is not called again.
        clock: the time in seconds, from any beginning.
    """

    def __init__(self, write: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._write, self._clock = write, clock
        self._lock = threading.Lock()
        self._begun = False

    def of(self, name: str, total: int) -> OnScore:
        """What an evaluation calls that begins now.

        Args:
            name: what its lines begin with.
            total: how many scores there will be.
        """
        began = last = self._clock()
        done = tenth = 0
        name = styled(" ".join(name.split())).plain

        def on_score(_: int) -> None:
            nonlocal last, done, tenth
            with self._lock:
                done += 1
                now = self._clock()
                since = now - last
                next_one = since >= _APART and done * 10 // total > tenth
                due = next_one or since >= _LONGEST or (done == total and self._begun)
                if due and done <= total:  # a search goes on scoring
                    last, tenth = now, done * 10 // total
                    self._say(f"{name} {done}/{total}, {_when(now - began, done, total - done)}")

        return on_score

    def _say(self, line: str) -> None:
        self._begun = True
        try:
            self._write(line)
        except OSError:  # the reader has gone, which is no reason for an evaluation to end
            self._write = _unread


def _unread(_: str) -> None:
    """Take a line that nobody reads."""


class _Line:
    """A line of a notebook's cell.

    Args:
        display: what shows it.
        total: how many scores there will be.
        clock: the time in seconds, from any beginning.
    """

    def __init__(self, display: Display, total: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._part, self._total, self._clock = Part(display, clock), total, clock
        self._lock = threading.Lock()
        self._did, self._done, self._began = GOING_ON, 0, clock()

    def on_score(self, _: int) -> None:
        """Count another one, and show it unless the line was changed a moment ago."""
        with self._lock:
            self._done += 1
            if self._part.late:
                self._show()

    def on_interrupt(self, asking: bool, by: str) -> None:
        """Say with the next score that an interruption was heard, as whom it interrupts may hold the lock."""
        self._did = _said(asking)

    def end(self) -> None:
        """Show what there is."""
        with self._lock:
            self._show(ended=True)

    def _show(self, *, ended: bool = False) -> None:
        taken, left = self._clock() - self._began, self._total - self._done
        when = _when(taken, self._done, 0 if ended else left)
        self._part.show(f"{self._did} {self._done}/{self._total}, {when}")


GOING_ON = "evaluate"

_APART = 10.0
"""Seconds between two lines at least."""

_LONGEST = 60.0
"""Seconds without a line at most, where there are scores: some CI takes a job for dead that says nothing for ten
minutes."""


def _when(taken: float, done: int, left: int) -> str:
    """The time left, or where nothing is or nobody knows, the time taken."""
    return f"about {duration(taken / done * left)} left" if left > 0 and done else duration(taken)


def _said(asking: bool) -> str:
    return "stopping" if asking else "finishing"
