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
from textgrad_engine.report.terminal import cursor_back, stopping, terminal_taken
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
from textgrad_engine.train.interrupt import telling, when_left

if TYPE_CHECKING:
    from rich.console import Console, RenderableType


_ENDS: dict[Status, str] = {"finished": "done", "interrupted": "interrupted", "budget": "budget spent"}


class Rows:
    """The rows, and below them what all runs have used.

    Args:
        console: of stderr.
        told: what was said of the data already; it is added to.

    Attributes:
        notice: what the line below them says in place of that; "" for nothing.
        open: of how many of them the runs go on.
    """

    def __init__(self, console: Console, told: set[str]) -> None:
        self._console = console
        self.told = told
        self.notice = ""
        self.open = 0
        self._rows: list[Row] = []
        self.live = live(console, self._renderable)

    def row(self) -> Row:
        """One more."""
        made = Row(self)
        self._rows.append(made)
        return made

    def on_interrupt(self, asking: bool, by: str) -> None:
        """Show that Ctrl-C was heard, or another signal; for `train.interrupt.telling`."""
        self.notice = stopping(asking, by)

    def _renderable(self) -> RenderableType:
        from rich.console import Group  # heavy, and wanted only in a terminal
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        table = Table.grid(padding=(0, 1))
        shown, more = self._fitting()
        for row in shown:
            table.add_row(Text(row.part), ProgressBar(row.total, row.done, width=24), Text(row.shown()))
        left_out = [Text(f"and {plural(more, 'more run')}")] if more else []
        return Group(table, *left_out, Text(self.status()))

    def _fitting(self) -> tuple[list[Row], int]:
        """The rows for which there are lines, of runs that go on before others, and how many there are besides."""
        rows = sorted([row for row in self._rows if row.part], key=lambda row: row.tally.mark)  # begun in any order
        room = self._console.height - 1
        if len(rows) <= room:
            return rows, 0
        first = sorted(rows, key=lambda row: row.over)[: max(1, room - 1)]
        return [row for row in rows if row in first], len(rows) - len(first)

    def status(self) -> str:
        """The line below the rows."""
        if self.notice:
            return self.notice
        rows = list(self._rows)
        used = sum((row.tally.usage for row in rows), Usage())
        return f"{used_in_words(used)}, {duration(max((row.tally.seconds for row in rows), default=0.0))} so far"


class Row:
    """The row of one run.

    Args:
        rows: where it stands.

    Attributes:
        tally: of the run.
        part: which run it is, in words; "" until it begins.
        total: how many steps there will be; None where nobody knows, as in a search.
        done: how many are over.
        over: whether the run is.
    """

    def __init__(self, rows: Rows) -> None:
        self._rows, self.tally = rows, Tally()
        self.part, self._doing = "", ""
        self.total: int | None = None
        self.done, self.over = 0, False

    def on_event(self, event: Event) -> None:
        """Show it."""
        tally = self.tally
        tally.on_event(event)
        if isinstance(event, RunStarted):
            self.part, self.total, self.done, self.over = event.part, tally.steps, 0, False
        elif isinstance(event, PhaseStarted):
            self._doing = event.phase if event.phase in ("test", "control") else self._steps()
        elif isinstance(event, StepEnded):
            self._doing, self.done = self._steps(), tally.step
        elif isinstance(event, RunEnded | RunFailed):
            self._doing = _ENDS[event.status] if isinstance(event, RunEnded) else "failed"
            self.total, self.done, self.over = 1, 1, True
        if lines := lines_of(event, tally, self._rows.told):
            style = "bold" if isinstance(event, StepEnded) and event.kept else ""
            for line in lines.split("\n"):
                self._rows.live.console.print(styled(line, style))

    def shown(self) -> str:
        """What stands behind its bar."""
        best = "" if self.tally.best is None else f"  best {self.tally.best:.2f}"
        return f"{self._doing:<10}{best}  {plural(self.tally.usage.calls, 'call')}"

    def _steps(self) -> str:
        tally = self.tally
        return f"step {tally.step}" if tally.steps is None else f"step {tally.step}/{tally.steps}"


class Together:
    """The rows of all runs that go on at once; they are shown while one of these does."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
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
            if rows is not None:
                rows.open += 1
        if rows is None:
            yield None
            return
        try:
            yield rows.row()
        finally:
            with self._lock:
                rows.open -= 1
                if not rows.open and self._rows is rows:
                    self._take_down()

    def leave(self) -> None:
        """Take them down, though their runs have not ended."""
        with self._lock:
            self._take_down()

    def _take_down(self) -> None:
        self._rows = None
        self._stack.close()

    def _shown(self, console: Console, told: set[str]) -> Rows:
        rows = Rows(console, told)
        self._stack.enter_context(cursor_back(console))
        self._stack.callback(terminal_taken.release)
        try:
            for each in (when_left(self.leave), rows.live, log_above(console), telling(rows.on_interrupt)):
                self._stack.enter_context(each)
        except BaseException:
            self._stack.close()
            raise
        return rows
