"""What is seen while a command runs; always on stderr."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from textgrad_engine.report.progress import showing
from textgrad_engine.report.rows import Together
from textgrad_engine.report.scoring import GOING_ON, OnScore, ScoreLines, score_bar, shows_lines
from textgrad_engine.report.terminal import complain
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
def score_bars_for(each: Sequence[tuple[str, int]], quiet: bool) -> Iterator[list[OnScore]]:
    """What several evaluations at once call when an example is done: one bar for all, or in a pipe lines by name.

    Args:
        each: what an evaluation is called, and how many scores there will be.
        quiet: show nothing.
    """
    if quiet:
        yield [lambda _: None] * len(each)
    elif shows_lines():
        lines = ScoreLines(complain)
        yield [lines.of(name, total) for name, total in each]
    else:
        with score_bar(sum(total for _, total in each)) as on_score:
            yield [on_score] * len(each)


@contextlib.contextmanager
def score_bar_for(total: int, quiet: bool, name: str = GOING_ON) -> Iterator[OnScore]:
    """What to call when an example of an evaluation is done; nothing is shown when it shall be quiet.

    Args:
        total: how many scores there will be.
        quiet: show nothing.
        name: what it is called.
    """
    with score_bars_for([(name, total)], quiet) as (on_score,):
        yield on_score
