"""Which commands show what of their progress."""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest
from rich.console import Console

from textgrad_engine.cli import progress as cli_progress
from textgrad_engine.cli.progress import progress_for, score_bar_for, score_bars_for
from textgrad_engine.report import progress, scoring
from textgrad_engine.report.progress import Lines


def test_a_pipe_gets_lines_and_quiet_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """Bars need a terminal."""
    with progress_for(False) as callbacks:
        assert [type(each) for each in callbacks] == [Lines]
    with progress_for(True) as callbacks:
        assert callbacks == ()


@pytest.mark.parametrize("bars", [lambda: progress_for(quiet=False), lambda: score_bar_for(3, quiet=False)])
def test_what_the_log_says_stands_above_the_bars(
    monkeypatch: pytest.MonkeyPatch, bars: Callable[[], AbstractContextManager[object]]
) -> None:
    """A warning was written into the middle of the status line, and was cut there."""
    shown = io.StringIO()
    console = Console(file=shown, force_terminal=True, width=80, height=25, color_system=None)
    for module in (progress, scoring):
        monkeypatch.setattr(module, "terminal", lambda: console)
    unread = logging.getLogger("nobody has set this up")
    monkeypatch.setattr(unread, "propagate", False)  # pytest has handlers of its own on the root
    usual = logging.lastResort
    with bars():
        unread.warning("%s is slow:\nsecond [bold]line", "the endpoint")
        monkeypatch.setattr(logging, "raiseExceptions", False)  # which would print what is wrong with the next one
        unread.warning("%d retries", "some")  # of a library of the user's: no reason for the run to end
    lines = [re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", line).strip() for line in re.split("[\r\n]", shown.getvalue())]
    assert {"the endpoint is slow:", "second [bold]line"} <= set(lines)
    assert logging.lastResort is usual


def test_evaluations_tell_a_pipe_how_far_they_are(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On stderr, by name where there are several at once; quiet ones, and those in a terminal, tell nothing there."""
    now = 0.0
    monkeypatch.setattr(cli_progress, "ScoreLines", lambda write: scoring.ScoreLines(write, lambda: now))

    def shown(quiet: bool) -> tuple[str, str]:
        nonlocal now
        with (
            score_bars_for([("prompt in a.txt", 2), ("prompt in b.txt", 4)], quiet) as (one, other),
            score_bar_for(1, quiet) as alone,
        ):
            for on_score in (one, other, alone, other):
                now += 6
                on_score(0)
        return capsys.readouterr()

    told = "prompt in b.txt 1/4, about 36 s left\nevaluate 1/1, 18 s\nprompt in b.txt 2/4, about 24 s left\n"
    assert shown(quiet=False) == ("", told)
    assert shown(quiet=True) == ("", "")
    bars = io.StringIO()
    console = Console(file=bars, force_terminal=True, width=80, height=25, color_system=None)
    monkeypatch.setattr(scoring, "terminal", lambda: console)
    assert shown(quiet=False) == ("", "")
    assert "3/6" in bars.getvalue()
