"""Which commands show what of their progress."""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest
from rich.console import Console

from textgrad_engine.cli.progress import progress_for, score_bar_for
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
