"""Bars of a run in a terminal, and the log above them."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from textgrad_engine.llm.money import cost
from textgrad_engine.llm.response import Usage
from textgrad_engine.report.printing import styled
from textgrad_engine.report.tally import Tally, lines_of
from textgrad_engine.report.terminal import stopping
from textgrad_engine.report.words import duration, plural, short
from textgrad_engine.train.events import (
    CallEnded,
    Event,
    Phase,
    PhaseAdvanced,
    PhaseEnded,
    PhaseStarted,
    RunStarted,
    StepEnded,
)

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live
    from rich.progress import TaskID

_SEARCHING: tuple[Phase, ...] = ("search", "score")
"""The phases of a search, which share a bar: proposals under way, and the step that decides about one."""


class Bars:
    """A bar for each phase, a line for what it has cost and how long it will take, and a line for each step above.

    Args:
        console: of stderr.
        told: what was said of the data already; it is added to.
    """

    def __init__(self, console: Console, told: set[str] | None = None) -> None:
        from rich.progress import BarColumn, Progress, TextColumn  # heavy, and wanted only in a terminal

        self.tally = Tally()
        self._told = set[str]() if told is None else told
        self.notice = ""
        self._bars = Progress(
            TextColumn("{task.description:<9}"),
            BarColumn(bar_width=36),
            TextColumn("{task.fields[shown]}", justify="right"),
            console=console,
            auto_refresh=False,
        )
        self._tasks: dict[Phase, TaskID] = {}
        self._phases: dict[int, tuple[Phase, int]] = {}
        self._calls: dict[int, int] = {}
        self.live = live(console, self._renderable)

    def on_event(self, event: Event) -> None:
        """Move the bars."""
        self.tally.on_event(event)
        if isinstance(event, RunStarted):
            self._start(event)
        elif isinstance(event, PhaseStarted):
            self._begin(event)
        elif isinstance(event, PhaseAdvanced):
            phase, total = self._phases[event.number]
            self._move(phase, event.done, total)
        elif isinstance(event, CallEnded) and event.phase in self._phases:
            self._count(event.phase)
        elif isinstance(event, PhaseEnded):
            self._end(event)
        if lines := lines_of(event, self.tally, self._told):
            style = "bold" if isinstance(event, StepEnded) and event.kept else ""
            for line in lines.split("\n"):
                self.live.console.print(styled(line, style))  # not as it is: names of examples may be markup to rich

    def _start(self, event: RunStarted) -> None:
        totals: dict[Phase, int] = {"validate": event.val, "forward": 0, "backward": 0, "optimize": 1}
        if event.test:
            totals["test"] = event.test
        order: tuple[Phase, ...] = ("forward", "backward", "optimize", "validate", "test")
        for phase in order:
            if phase in totals:
                self._tasks[phase] = self._bars.add_task(phase, total=totals[phase] or 1, shown="")

    def _begin(self, event: PhaseStarted) -> None:
        self._phases[event.number] = (event.phase, event.total)
        if event.phase in _SEARCHING:
            self._search()
            return
        if event.phase == "forward":
            for phase in ("backward", "optimize", "validate"):
                self._clear(phase)
        elif "search" in self._tasks and not self._open:
            self._bars.update(self._tasks["search"], total=1, completed=1)
        self._move(event.phase, 0, event.total)

    def _count(self, number: int) -> None:
        """One more call of a phase has ended."""
        phase, total = self._phases[number]
        calls = self._calls[number] = self._calls.get(number, 0) + 1
        if phase in _SEARCHING:
            self._search()
        elif not total:  # how much backward has to do is not known beforehand
            self._bars.update(self._tasks[phase], shown=plural(calls, "call"))

    def _end(self, event: PhaseEnded) -> None:
        phase, total = self._phases.pop(event.number)
        self._calls.pop(event.number, None)
        if phase in _SEARCHING:
            return  # another one begins at once, or something else does, which ends the bar
        self._bars.update(self._tasks[phase], total=total or 1, completed=total or 1)
        if total:
            self._bars.update(self._tasks[phase], shown=f"{total}/{total}")

    def on_interrupt(self, asking: bool, by: str) -> None:
        """Show that Ctrl-C was heard, or another signal; for `train.interrupt.telling`."""
        self.notice = stopping(asking, by)

    def _clear(self, phase: Phase) -> None:
        self._bars.update(self._tasks[phase], completed=0, total=1, shown="")

    def _move(self, phase: Phase, done: int, total: int) -> None:
        shown = f"{done}/{total}" if total else ""
        if phase not in self._tasks:  # not every run has it
            self._tasks[phase] = self._bars.add_task(phase, total=total or None, shown=shown)
        self._bars.update(self._tasks[phase], completed=done, total=total or None, shown=shown)

    @property
    def _open(self) -> list[Phase]:
        """The phases of a search that go on."""
        return [phase for phase, _ in self._phases.values() if phase in _SEARCHING]

    def _search(self) -> None:
        """Show how many proposals are under way, and the calls that they have made; what a step costs nobody knows."""
        if "search" not in self._tasks:  # the bars of an optimizer that goes step by step are not wanted
            for task in self._tasks.values():
                self._bars.remove_task(task)
            order: tuple[Phase, ...] = ("search", "validate", *(("test",) if "test" in self._tasks else ()))
            self._tasks = {phase: self._bars.add_task(phase, total=1, shown="") for phase in order}
        lanes = self._open.count("search")
        calls = sum(made for number, made in self._calls.items() if self._phases[number][0] in _SEARCHING)
        shown = f"{lanes} under way, {plural(calls, 'call')}" if lanes else plural(calls, "call")
        self._bars.update(self._tasks["search"], total=None, shown=shown)

    def _renderable(self) -> RenderableType:
        from rich.console import Group
        from rich.text import Text

        return Group(self._bars, Text(self.status()))

    def status(self) -> str:
        """The line below the bars."""
        if self.notice:
            return self.notice
        if not self._tasks:
            return "checking the data"
        tally = self.tally
        steps = f"step {tally.step + 1}"
        if tally.steps is not None:
            steps = f"step {min(tally.step + 1, tally.steps)} of {tally.steps}"
        testing = tally.tested or any(phase == "test" for phase, _ in self._phases.values())
        parts = ["testing" if testing else steps]
        if tally.best is not None:
            parts.append(f"best {tally.best:.3f}")
        parts.append(self.used())
        left = tally.left
        parts.append(f"{duration(tally.seconds)} so far" if left is None else f"about {duration(left)} left")
        return ", ".join(parts)

    def used(self) -> str:
        """Calls, tokens and cost so far."""
        return used_in_words(self.tally.usage)


def live(console: Console, renderable: Callable[[], RenderableType]) -> Live:
    """What changes in a terminal while lines come above it, and is gone at the end."""
    from rich.live import Live  # heavy, and wanted only in a terminal

    return Live(
        console=console,
        get_renderable=renderable,
        refresh_per_second=8,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )


def used_in_words(used: Usage) -> str:
    """Calls, tokens and cost."""
    return f"{plural(used.calls, 'call')}, {short(used.total_tokens)} tokens, {cost(used.dollars)}"


class _Above(logging.Handler):
    """Prints what the log says above the bars, which it would be written into else."""

    def __init__(self, console: Console) -> None:
        super().__init__(logging.WARNING)
        self._console = console

    def emit(self, record: logging.LogRecord) -> None:
        try:
            for line in self.format(record).split("\n"):
                self._console.print(styled(line))
        except OSError:  # the terminal is gone, which is no reason for a call to fail
            pass
        except Exception:  # nor is a record that cannot be put into words, such as one of a user's program
            self.handleError(record)


@contextlib.contextmanager
def log_above(console: Console) -> Iterator[None]:
    """Keep the log out of the bars, where nobody has set it up: Python then writes warnings to stderr as they come."""
    before, logging.lastResort = logging.lastResort, _Above(console)
    try:
        yield
    finally:
        logging.lastResort = before
