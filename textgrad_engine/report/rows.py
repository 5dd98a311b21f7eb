"""A row for each of several runs that go on at once, in one terminal, and their lines above."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from textgrad_engine.llm.response import Usage
from textgrad_engine.report.bars import live, log_above, used_in_words
from textgrad_engine.report.printing import styled
from textgrad_engine.report.tally import Tally, lines_of
from textgrad_engine.report.terminal import FINISHING, STOPPING, terminal_taken
from textgrad_engine.report.words import duration, plural
from textgrad_engine.train.events import (
    Callback,
    Event,
    PhaseStarted,
    RunEnded,
    RunFailed,
    RunStarted,
    Status,
    StepEnded,
)
from textgrad_engine.train.interrupt import telling

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.progress import TaskID


_ENDS: dict[Status, str] = {"finished": "done", "interrupted": "interrupted", "budget": "budget spent"}


class Rows:
    """The rows, and below them what all runs have used.

    Args:
        console: of stderr.
        told: what was said of the data already; it is added to.
    """

    def __init__(self, console: Console, told: set[str]) -> None:
        from rich.progress import BarColumn, Progress, TextColumn  # heavy, and wanted only in a terminal

        self.told = told
        self.notice = ""
        self.bars = Progress(
            TextColumn("{task.description:<12}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[shown]}"),
            console=console,
            auto_refresh=False,
        )
        self._tallies: list[Tally] = []
        self.live = live(console, self._renderable)

    def row(self) -> Row:
        """One more."""
        tally = Tally()
        self._tallies.append(tally)
        return Row(self, tally)

    def on_interrupt(self, asking: bool) -> None:
        """Show that Ctrl-C was heard; for `train.interrupt.telling`."""
        self.notice = STOPPING if asking else FINISHING

    def _renderable(self) -> RenderableType:
        from rich.console import Group
        from rich.text import Text

        return Group(self.bars, Text(self.status()))

    def status(self) -> str:
        """The line below the rows."""
        if self.notice:
            return self.notice
        tallies = list(self._tallies)
        used = sum((tally.usage for tally in tallies), Usage())
        return f"{used_in_words(used)}, {duration(max((tally.seconds for tally in tallies), default=0.0))} so far"


class Row:
    """The row of one run.

    Args:
        rows: where it stands.
        tally: of the run.
    """

    def __init__(self, rows: Rows, tally: Tally) -> None:
        self._rows, self._tally = rows, tally
        self._task: TaskID | None = None
        self._doing = ""

    def on_event(self, event: Event) -> None:
        """Show it."""
        tally, bars = self._tally, self._rows.bars
        tally.on_event(event)
        if isinstance(event, RunStarted):
            self._task = bars.add_task(event.part, total=tally.steps, shown="")
        if isinstance(event, PhaseStarted):
            self._doing = "test" if event.phase == "test" else "control" if event.phase == "control" else self._steps()
        elif isinstance(event, StepEnded):
            self._doing = self._steps()
        elif isinstance(event, RunEnded):
            self._doing = _ENDS[event.status]
        elif isinstance(event, RunFailed):
            self._doing = "failed"
        if lines := lines_of(event, tally, self._rows.told):
            style = "bold" if isinstance(event, StepEnded) and event.kept else ""
            for line in lines.split("\n"):
                self._rows.live.console.print(styled(line, style))
        if self._task is not None:
            best = "" if tally.best is None else f"  best {tally.best:.2f}"
            done = isinstance(event, RunEnded | RunFailed)
            total = max(tally.step, 1) if done else tally.steps
            shown = f"{self._doing:<10}{best}  {plural(tally.usage.calls, 'call')}"
            bars.update(self._task, total=total, completed=total if done else tally.step, shown=shown)

    def _steps(self) -> str:
        tally = self._tally
        return f"step {tally.step}" if tally.steps is None else f"step {tally.step}/{tally.steps}"


class Together:
    """The rows of all runs that go on at once; they are shown while one of these does."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open = 0
        self._rows: Rows | None = None
        self._stack = contextlib.ExitStack()

    @contextlib.contextmanager
    def row(self, console: Console, told: set[str]) -> Iterator[Callback | None]:
        """A row; None where something else moves in the terminal.

        Args:
            console: of stderr.
            told: as for `Rows`.
        """
        with self._lock:
            if self._rows is None and terminal_taken.acquire(blocking=False):
                self._rows = self._shown(console, told)
            rows = self._rows
            self._open += rows is not None
        if rows is None:
            yield None
            return
        try:
            yield rows.row()
        finally:
            with self._lock:
                self._open -= 1
                if not self._open:
                    self._rows = None
                    self._stack.close()

    def _shown(self, console: Console, told: set[str]) -> Rows:
        rows = Rows(console, told)
        self._stack.callback(console.show_cursor, True)  # also where Ctrl-C came while the rows were taken down
        self._stack.callback(terminal_taken.release)
        try:
            for each in (rows.live, log_above(console), telling(rows.on_interrupt)):
                self._stack.enter_context(each)
        except BaseException:
            self._stack.close()
            raise
        return rows
