"""What is seen while a run goes on: bars in a terminal, a cell of a notebook that changes, plain lines elsewhere."""

from __future__ import annotations

import contextlib
import html
import io
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from textgrad_engine.llm.money import cost
from textgrad_engine.report.printing import styled
from textgrad_engine.report.tally import Tally, line_of
from textgrad_engine.report.terminal import FINISHING, STOPPING, complain, moves_its_cursor
from textgrad_engine.report.words import count, duration, plural, short
from textgrad_engine.train.events import (
    Callback,
    CallEnded,
    Event,
    Phase,
    PhaseAdvanced,
    PhaseEnded,
    PhaseStarted,
    RunStarted,
    StepEnded,
)
from textgrad_engine.train.interrupt import telling

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.progress import TaskID

_SEARCHING: tuple[Phase, ...] = ("search", "score")
"""The phases of a search, which share a bar: proposals under way, and the step that decides about one."""

_SECONDS = 0.25
"""A cell of a notebook changes so often at most: each change is sent to the browser."""

_terminal_taken = threading.Lock()
"""Held while bars move: a terminal has room for those of one run."""


class Progress:
    """Shows how a run goes on: `Trainer(callbacks=[report.Progress()])`.

    In a terminal there is a bar for each phase, with calls, tokens, cost and the time left, and a line for each step
    above them. A notebook shows the same in a part of its cell that changes. Elsewhere, and for a second run at the
    same time in one terminal, there is a line for each step. All of it goes to stderr, but in a notebook. It shows one
    run after the other, as of `cross_validate`.

    `Lines` writes the lines alone, wherever they are wanted.

    Example:
        >>> from textgrad_engine import Trainer, optim, report, use_models
        >>> from textgrad_engine.testing import simulated_task
        >>> task = simulated_task(rules=4, seed=1, train=16, val=16)
        >>> program = task.program()
        >>> with use_models(forward=task.model):
        ...     result = Trainer(max_steps=1, callbacks=[report.Progress()]).fit(
        ...         program, task.loss, optim.TGD(program.parameters()), task.train, task.val
        ...     )
    """

    def __init__(self) -> None:
        self._told = set[str]()
        self._shown: Callback | None = None
        self._stack = contextlib.ExitStack()
        self._gone = False  # the terminal or pipe, which is no reason for a run to end

    def for_run(self) -> Progress:
        """One for a run by itself; see `train.events.Callback`."""
        made = Progress()
        made._told = self._told
        return made

    def on_event(self, event: Event) -> None:
        """Show what there is to be seen of an event."""
        if self._gone:
            return
        try:
            if self._shown is None:
                self._shown = self._stack.enter_context(showing(self._told))
            self._shown.on_event(event)
        except OSError:
            self._gone = True

    def on_end(self) -> None:
        """Leave what shall stay: the lines."""
        self._shown = None
        with contextlib.suppress(OSError):
            self._stack.close()


class Lines:
    """One plain line for each step, for whoever reads a log; several runs may have one and the same.

    Args:
        write: takes a line, without its line break.
        told: what was said of the data already; it is added to.
    """

    def __init__(self, write: Callable[[str], None], told: set[str] | None = None) -> None:
        self._write = write
        self._told = set[str]() if told is None else told
        self.tally = Tally()

    def for_run(self) -> Lines:
        """One with counts of its own; see `train.events.Callback`."""
        return Lines(self._write, self._told)

    def on_event(self, event: Event) -> None:
        """Write a line when there is something to say."""
        self.tally.on_event(event)
        if line := _line_of(event, self.tally, self._told):
            self._write(line)


class Bars:
    """A bar for each phase, a line for what it has cost and how long it will take, and a line for each step above.

    Args:
        console: of stderr.
        told: what was said of the data already; it is added to.
    """

    def __init__(self, console: Console, told: set[str] | None = None) -> None:
        from rich.live import Live  # heavy, and wanted only in a terminal
        from rich.progress import BarColumn, Progress, TextColumn

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
        self.live = Live(
            console=console,
            get_renderable=self._renderable,
            refresh_per_second=8,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def on_event(self, event: Event) -> None:
        """Move the bars."""
        self.tally.on_event(event)
        if isinstance(event, RunStarted):
            self._start(event)
        elif isinstance(event, PhaseStarted):
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
        elif isinstance(event, PhaseAdvanced):
            self._move(*_at(self._phases[event.number], event.done))
        elif isinstance(event, CallEnded) and event.phase in self._phases:
            phase, total = self._phases[event.phase]
            calls = self._calls[event.phase] = self._calls.get(event.phase, 0) + 1
            if phase in _SEARCHING:
                self._search()
            elif not total:  # how much backward has to do is not known beforehand
                self._bars.update(self._tasks[phase], shown=plural(calls, "call"))
        elif isinstance(event, PhaseEnded):
            phase, total = self._phases.pop(event.number)
            self._calls.pop(event.number, None)
            if phase in _SEARCHING:
                return  # another one begins at once, or something else does, which ends the bar
            self._bars.update(self._tasks[phase], total=total or 1, completed=total or 1)
            if total:
                self._bars.update(self._tasks[phase], shown=f"{total}/{total}")
        for line in filter(None, _line_of(event, self.tally, self._told).split("\n")):
            style = "bold" if isinstance(event, StepEnded) and event.kept else ""
            self.live.console.print(styled(line, style))  # not as it is: names of examples may be markup to rich

    def _start(self, event: RunStarted) -> None:
        totals: dict[Phase, int] = {"validate": event.val, "forward": 0, "backward": 0, "optimize": 1}
        if event.test:
            totals["test"] = event.test
        order: tuple[Phase, ...] = ("forward", "backward", "optimize", "validate", "test")
        for phase in order:
            if phase in totals:
                self._tasks[phase] = self._bars.add_task(phase, total=totals[phase] or 1, shown="")

    def on_interrupt(self, asking: bool) -> None:
        """Show that Ctrl-C was heard; for `train.interrupt.telling`."""
        self.notice = STOPPING if asking else FINISHING

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
        used = self.tally.usage
        return f"{count(used.calls)} calls, {short(used.total_tokens)} tokens, {cost(used.dollars)}"


class Cell:
    """A part of a notebook's cell that changes: the lines so far, and below them what `Bars` has.

    Args:
        display: shows a bundle of forms of one thing, and gives what replaces it by another one.
        told: what was said of the data already; it is added to.
        clock: the time in seconds, from any beginning.
    """

    def __init__(
        self,
        display: Callable[[dict[str, str]], Callable[[dict[str, str]], object]],
        told: set[str] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._lines = io.StringIO()
        self._bars = Bars(_plain_console(self._lines), told)
        self._display, self._clock = display, clock
        self._replace: Callable[[dict[str, str]], object] | None = None
        self._shown, self._next = "", clock()

    def on_event(self, event: Event) -> None:
        """Show it, unless something was shown a moment ago and nothing but counts has changed."""
        before = self._lines.tell()
        self._bars.on_event(event)
        if self._lines.tell() > before or self._clock() >= self._next:
            drawn = io.StringIO()
            _plain_console(drawn).print(self._bars.live.get_renderable())
            self._show(drawn.getvalue())

    def on_interrupt(self, asking: bool) -> None:
        """Show with the next event that an interruption was heard; for `train.interrupt.telling`."""
        self._bars.on_interrupt(asking)

    def end(self) -> None:
        """Show the lines, and what the run has cost, without bars."""
        self._show(f"{self._bars.used()} in {duration(self._bars.tally.seconds)}")

    def _show(self, below: str) -> None:
        lines = (self._lines.getvalue() + below).split("\n")
        self._next = self._clock() + _SECONDS
        if (text := "\n".join([line.rstrip() for line in lines]).rstrip()) == self._shown:
            return
        self._shown = text
        bundle = {"text/plain": text, "text/html": f'<pre style="line-height: normal">{html.escape(text)}</pre>'}
        if self._replace is None:
            self._replace = self._display(bundle)
        else:
            self._replace(bundle)


def _plain_console(file: io.StringIO) -> Console:
    from rich.console import Console  # heavy, and wanted only where something is shown

    # In a notebook it would show by itself what is printed, and give back an empty text.
    plain: dict[str, Any] = {"force_terminal": False, "force_jupyter": False, "legacy_windows": False}
    return Console(file=file, width=80, color_system=None, highlight=False, **plain)


@contextlib.contextmanager
def showing(told: set[str] | None = None) -> Iterator[Callback]:
    """What shows how a run goes on, where this process runs; `Progress` says what.

    Args:
        told: of runs that share their data, what was said of it already; it is added to.
    """
    if (display := _notebook()) is not None:
        cell = Cell(display, told)
        try:
            with telling(cell.on_interrupt):
                yield cell
        finally:
            cell.end()
    elif (console := terminal()) is None or not _terminal_taken.acquire(blocking=False):
        yield Lines(complain, told)
    else:
        try:
            bars = Bars(console, told)
            with bars.live, log_above(console), telling(bars.on_interrupt):
                yield bars
        finally:
            _terminal_taken.release()
            console.show_cursor(True)  # also where Ctrl-C came while the bars were taken down


def _notebook() -> Callable[[dict[str, str]], Callable[[dict[str, str]], object]] | None:
    """What shows something in the notebook whose kernel this process is; None where it is none."""
    found: Any = sys.modules.get("IPython")  # a kernel has imported it
    shell = None if found is None else found.get_ipython()
    if getattr(shell, "kernel", None) is None:  # IPython in a terminal has none
        return None

    def display(bundle: dict[str, str]) -> Callable[[dict[str, str]], object]:
        handle = found.display.display(bundle, raw=True, display_id=True)
        return lambda other: handle.update(other, raw=True)

    return display


def _line_of(event: Event, tally: Tally, told: set[str]) -> str:
    """What there is to say, but of the data only what is new: the runs of a cross-validation share most of it."""
    line = line_of(event, tally)
    if not isinstance(event, RunStarted):
        return line
    new = [each for each in line.split("\n") if each not in told]
    told.update(new)
    return "\n".join(new)


def _at(phase: tuple[Phase, int], done: int) -> tuple[Phase, int, int]:
    return phase[0], done, phase[1]


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


def terminal() -> Console | None:
    """The console of stderr, if that is a terminal that can move its cursor."""
    if not moves_its_cursor():
        return None
    from rich.console import Console  # heavy, and wanted only in a terminal

    return Console(stderr=True, highlight=False)
