"""A part of a notebook's cell that shows how a run goes on."""

from __future__ import annotations

import html
import io
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from textgrad_engine.report.bars import Bars
from textgrad_engine.report.words import duration
from textgrad_engine.train.events import Event

if TYPE_CHECKING:
    from rich.console import Console

_SECONDS = 0.25
"""A cell of a notebook changes so often at most: each change is sent to the browser."""

Bundle: TypeAlias = dict[str, str]
"""One thing in several forms, by their MIME types."""
Display: TypeAlias = Callable[[Bundle], Callable[[Bundle], object]]
"""Shows something, and gives what puts something else in its place."""


class Part:
    """A part of a notebook's cell in which one text takes the place of another.

    Args:
        display: what shows it, such as what `notebook` gives.
        clock: the time in seconds, from any beginning.
    """

    def __init__(self, display: Display, clock: Callable[[], float]) -> None:
        self._display, self._clock = display, clock
        self._replace: Callable[[Bundle], object] | None = None
        self._shown, self._next = "", clock()

    @property
    def late(self) -> bool:
        """Whether the last change is not of a moment ago."""
        return self._clock() >= self._next

    def show(self, text: str) -> None:
        """Show a text, if it is another one than before."""
        self._next = self._clock() + _SECONDS
        if text == self._shown:
            return
        self._shown = text
        bundle = {"text/plain": text, "text/html": f'<pre style="line-height: normal">{html.escape(text)}</pre>'}
        if self._replace is None:
            self._replace = self._display(bundle)
        else:
            self._replace(bundle)


class Cell:
    """A part of a notebook's cell that changes: the lines so far, and below them what `Bars` has.

    Args:
        display: what shows it, such as what `notebook` gives.
        told: what was said of the data already; it is added to.
        clock: the time in seconds, from any beginning.
    """

    def __init__(
        self,
        display: Display,
        told: set[str] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._lines = io.StringIO()
        self._bars = Bars(_plain_console(self._lines), told)
        self._part = Part(display, clock)

    def on_event(self, event: Event) -> None:
        """Show it, unless something was shown a moment ago and nothing but counts has changed."""
        before = self._lines.tell()
        self._bars.on_event(event)
        if self._lines.tell() > before or self._part.late:
            drawn = io.StringIO()
            _plain_console(drawn).print(self._bars.live.get_renderable())
            self._show(drawn.getvalue())

    def on_interrupt(self, asking: bool, by: str) -> None:
        """Show with the next event that an interruption was heard; for `train.interrupt.telling`."""
        self._bars.on_interrupt(asking, by)

    def end(self) -> None:
        """Show the lines, and what the run has cost, without bars."""
        self._show(f"{self._bars.used()} in {duration(self._bars.tally.seconds)}")

    def _show(self, below: str) -> None:
        lines = (self._lines.getvalue() + below).split("\n")
        self._part.show("\n".join([line.rstrip() for line in lines]).strip("\n"))


def notebook() -> Display | None:
    """What shows something in the notebook whose kernel this process is; None where it is none."""
    found: Any = sys.modules.get("IPython")  # a kernel has imported it
    shell = None if found is None else found.get_ipython()
    if getattr(shell, "kernel", None) is None:  # IPython in a terminal has none
        return None

    def display(bundle: Bundle) -> Callable[[Bundle], object]:
        handle = found.display.display(bundle, raw=True, display_id=True)
        return lambda other: handle.update(other, raw=True)

    return display


def _plain_console(file: io.StringIO) -> Console:
    from rich.console import Console  # heavy, and wanted only where something is shown

    # In a notebook it would show by itself what is printed, and give back an empty text.
    plain: dict[str, Any] = {"force_terminal": False, "force_jupyter": False, "legacy_windows": False}
    return Console(file=file, width=80, color_system=None, highlight=False, **plain)
