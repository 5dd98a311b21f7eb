"""What is seen while a command runs; always on stderr."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from textgrad_engine.report.progress import showing
from textgrad_engine.report.rows import Together
from textgrad_engine.report.scoring import OnScore, score_bar
from textgrad_engine.train.events import Callback


@contextlib.contextmanager
def progress_for(
    quiet: bool, told: set[str] | None = None, together: Together | None = None
) -> Iterator[tuple[Callback, ...]]:
    """The callbacks that show how a run goes on: none when it shall be quiet.

    Args:
        quiet: show nothing.
        told: of runs that share their data, what was said of it already; it is added to.
        together: where runs that go on at once have a row each.
    """
    if quiet:
        yield ()
        return
    with showing(told, together) as shown:
        yield (shown,)


@contextlib.contextmanager
def score_bar_for(total: int, quiet: bool) -> Iterator[OnScore]:
    """What to call when an example of an evaluation is done, for a bar; nothing is shown when it shall be quiet."""
    if quiet:
        yield lambda _: None
        return
    with score_bar(total) as on_score:
        yield on_score
