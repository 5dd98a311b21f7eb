"""What is seen while a command runs; always on stderr."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from textgrad_engine.report.bars import log_above
from textgrad_engine.report.progress import showing
from textgrad_engine.report.terminal import terminal
from textgrad_engine.train.events import Callback
from textgrad_engine.train.interrupt import telling


@contextlib.contextmanager
def progress_for(quiet: bool, told: set[str] | None = None) -> Iterator[tuple[Callback, ...]]:
    """The callbacks that show how a run goes on: none when it shall be quiet.

    Args:
        quiet: show nothing.
        told: of runs that share their data, what was said of it already; it is added to.
    """
    if quiet:
        yield ()
        return
    with showing(told) as shown:
        yield (shown,)


@contextlib.contextmanager
def score_bar(total: int, quiet: bool) -> Iterator[Callable[[int], None]]:
    """A bar for one evaluation in a terminal; yields what to call when an example is done."""
    console = None if quiet else terminal()
    if console is None:
        yield lambda _: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    shown = "evaluate"

    def on_interrupt(asking: bool) -> None:
        nonlocal shown
        shown = "stopping" if asking else "finishing"

    columns = (TextColumn("{task.description}"), BarColumn(bar_width=36), MofNCompleteColumn(), TimeRemainingColumn())
    try:
        bar = Progress(*columns, console=console, transient=True)
        with bar as progress, log_above(console), telling(on_interrupt):
            task = progress.add_task(shown, total=total)
            yield lambda _: progress.update(task, advance=1, description=shown)
    finally:
        console.show_cursor(True)
