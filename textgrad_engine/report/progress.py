"""What is seen while a run goes on: bars in a terminal, a cell of a notebook that changes, plain lines elsewhere."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from textgrad_engine.report.bars import Bars, log_above
from textgrad_engine.report.cell import Cell, notebook
from textgrad_engine.report.rows import Together
from textgrad_engine.report.tally import Tally, lines_of
from textgrad_engine.report.terminal import complain, cursor_back, terminal, terminal_taken
from textgrad_engine.train.events import Callback, Event, part_mark
from textgrad_engine.train.interrupt import telling


class Progress:
    """Shows the progress of a run: `Trainer(callbacks=[report.Progress()])`.

    In a terminal there is a bar for each phase, with calls, tokens, cost and the time left, and a line for each step
    above them. A notebook shows the same in its cell, and updates it. Elsewhere, and for a second concurrent run in one
    terminal, there is a line for each step. All of it goes to stderr, except in a notebook. The runs of
    `cross_validate` are headed by the fold. Where several of them go on at once (`n_jobs`), a terminal has a bar for
    each, and each line begins with its fold.

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

    shows_overlaps = True
    """As `train.events.Callback` says."""

    def __init__(self) -> None:
        self._told = set[str]()
        self._together = Together()
        self._shown: Callback | None = None
        self._stack = contextlib.ExitStack()
        self._gone = False  # the terminal or pipe, which is no reason for a run to end

    def for_run(self) -> Progress:
        """One for a run by itself; see `train.events.Callback`."""
        made = Progress()
        made._told, made._together = self._told, self._together
        return made

    def on_event(self, event: Event) -> None:
        """Show what there is to be seen of an event."""
        if self._gone:
            return
        try:
            if self._shown is None:
                self._shown = self._stack.enter_context(showing(self._told, self._together))
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
        if line := lines_of(event, self.tally, self._told):
            self._write(line)


@contextlib.contextmanager
def showing(told: set[str] | None = None, together: Together | None = None) -> Iterator[Callback]:
    """What shows how a run goes on, where this process runs; `Progress` says what.

    Args:
        told: of runs that share their data, what was said of it already; it is added to.
        together: where runs that go on at once have a row each.
    """
    told = set() if told is None else told
    if (display := notebook()) is not None:
        cell = Cell(display, told)
        try:
            with telling(cell.on_interrupt):
                yield cell
        finally:
            cell.end()
    elif (console := terminal()) is not None and together is not None and part_mark.get():
        with together.row(console, told) as row:
            yield Lines(complain, told) if row is None else row
    elif console is None or not terminal_taken.acquire(blocking=False):
        yield Lines(complain, told)
    else:
        with cursor_back(console):
            try:
                bars = Bars(console, told)
                with bars.live, log_above(console), telling(bars.on_interrupt):
                    yield bars
            finally:
                terminal_taken.release()
