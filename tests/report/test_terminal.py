"""What is said at stderr, and whether a terminal is there that can move its cursor."""

from __future__ import annotations

import atexit
import io
import os
import sys
from collections.abc import Callable

import pytest
import rich.console

from textgrad_engine.report.terminal import complain, cursor_back, moves_its_cursor, terminal


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_what_is_complained_of_reaches_the_terminal_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    """A message quotes what stands in data, answers and names of folders."""
    complain("error: the columns are \x1b[2Jid\u202e,\tqueue\r\n  and \x9b31m\ud800\n")
    assert capsys.readouterr().err == "error: the columns are \ufffd[2Jid\ufffd,\tqueue \n  and \ufffd31m\ufffd\n"


def test_on_windows_a_terminal_needs_no_term(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bars are for people there, too; elsewhere a terminal without TERM is a dumb one."""
    monkeypatch.setattr(sys, "stderr", Terminal())
    for name in ("TERM", "JPY_PARENT_PID"):
        monkeypatch.delenv(name, raising=False)
    assert not moves_its_cursor()
    with monkeypatch.context() as windows:
        windows.setattr(os, "name", "nt")
        assert moves_its_cursor()
        windows.setenv("TERM", "dumb")
        assert not moves_its_cursor()


def test_a_cell_of_a_notebook_has_no_cursor(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would show hundreds of bars below each other."""
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, Terminal())
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-color")
    monkeypatch.delenv("JPY_PARENT_PID", raising=False)
    assert moves_its_cursor()
    monkeypatch.setenv("JPY_PARENT_PID", "42")
    assert not moves_its_cursor()


def test_a_console_that_shows_escape_codes_gets_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """As that of Windows does where nobody has told it otherwise."""
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, Terminal())
    for name in ("NO_COLOR", "FORCE_COLOR", "JPY_PARENT_PID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert moves_its_cursor()
    monkeypatch.setattr(rich.console, "detect_legacy_windows", lambda: True)
    assert not moves_its_cursor()


def test_a_file_or_a_pipe_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the environment says of one; where there is a terminal, bars stand at stderr."""
    monkeypatch.setenv("TERM", "xterm")
    for name in ("NO_COLOR", "FORCE_COLOR", "JPY_PARENT_PID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert not moves_its_cursor()
    assert terminal() is None
    monkeypatch.setattr(sys, "stderr", Terminal())
    console = terminal()
    assert console is not None
    console.print("3 of 4 [1/2]")
    assert sys.stderr.getvalue() == "3 of 4 [1/2]\n"  # type: ignore[attr-defined]


def test_the_cursor_is_back_at_the_end_whatever_was_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C twice in `asyncio.run(trainer.afit(...))` leaves the thread behind whose bars have hidden it."""
    at_end: list[Callable[[], None]] = []
    monkeypatch.setattr(atexit, "register", at_end.append)
    monkeypatch.setattr(atexit, "unregister", at_end.remove)
    screen = io.StringIO()
    block = cursor_back(rich.console.Console(file=screen, force_terminal=True))
    block.__enter__()
    (show,) = at_end
    show()
    assert screen.getvalue() == "\x1b[?25h"
    block.__exit__(None, None, None)
    assert screen.getvalue() == "\x1b[?25h" * 2
    assert not at_end
