"""What shows how a run goes on, where it runs."""

from __future__ import annotations

import io
import logging
import sys
from collections.abc import Callable
from contextvars import Context
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

import textgrad_engine as tg
from textgrad_engine import nn, optim
from textgrad_engine.report import progress
from textgrad_engine.report.bars import Bars
from textgrad_engine.report.progress import Lines, Progress
from textgrad_engine.testing import FunctionModel
from textgrad_engine.train.events import (
    RunStarted,
    StepEnded,
)

from .events import Notebook


def test_runs_that_share_it_are_counted_apart() -> None:
    """One that is begun in the midst of another neither ends that one's counts nor adds to them."""
    alone: list[str] = []
    shared: list[str] = []

    def fit(lines: Lines, inside: Callable[[], None]) -> None:
        class Inside:
            begun = False

            def on_event(self, event: Any) -> None:
                if isinstance(event, StepEnded) and not self.begun:
                    self.begun = True
                    Context().run(inside)  # as another thread would: its calls are not those of this run

        program = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="system prompt"))
        train, val = ([{"word": word, "target": word} for word in words] for words in ("abcd", "ef"))
        trainer = tg.Trainer(max_epochs=1, batch_size=2, callbacks=[Inside(), lines])
        optimizer = optim.TGD(program.parameters())
        optimizer.to_the_end = True
        with tg.use_models(forward=FunctionModel(lambda request: request.messages[-1].text)):
            trainer.fit(program, nn.ExactMatch(), optimizer, train, val)

    fit(Lines(alone.append), lambda: None)
    lines = Lines(shared.append)
    fit(lines, lambda: fit(lines, lambda: None))
    assert len(alone) == 3
    assert sorted(shared) == sorted(alone * 2)


def test_what_is_wrong_with_the_data_is_told_once_of_all_runs_that_share_it() -> None:
    """Ten folds of one file said ten times that its training examples validate."""
    shown = io.StringIO()
    bars, told = Bars(Console(file=shown, force_terminal=True, width=200)), list[str]()
    lines = Lines(told.append)
    for test in (1, 2):
        for listener in (bars, lines.for_run()):
            listener.on_event(RunStarted({"system": ""}, 3, 3, test, 1, ("they validate", f"{test} of 2 are in train")))
    expected = ["warning: they validate", "warning: 1 of 2 are in train", "warning: 2 of 2 are in train"]
    assert "\n".join(told).split("\n") == expected
    assert [line.strip() for line in shown.getvalue().split("\n") if "warning" in line] == expected


def test_what_is_wrong_with_the_data_stands_on_stderr_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python writes the log there where nobody has set it up, so each warning came twice; without it, it stays."""
    log = logging.getLogger("textgrad_engine.train.splits")
    monkeypatch.setattr(log, "propagate", False)  # pytest has set it up
    monkeypatch.setattr(log, "handlers", [])  # as commands have, that other tests ran
    program = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="system prompt"))
    rows = [{"id": f"{word}{n}", "word": word, "target": word} for n in range(2) for word in ("ant", "bee")]
    for callbacks in ([Progress()], [], [Lines(lambda line: None)]):
        trainer = tg.Trainer(max_epochs=1, callbacks=callbacks)
        with tg.use_models(forward=FunctionModel(lambda request: request.messages[-1].text)):
            trainer.fit(program, nn.ExactMatch(), optim.TGD(program.parameters()), rows[:2], rows[2:])
        assert capsys.readouterr().err.count("2 of 2 val examples are in train, too") == 1


def test_in_python_it_is_a_callback_that_prints(capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever takes a line will do."""
    program = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="system prompt"))
    train, val = ([{"word": word, "target": word}] for word in ("a", "b"))
    trainer = tg.Trainer(max_epochs=1, callbacks=[Lines(print)])
    optimizer = optim.TGD(program.parameters())
    optimizer.to_the_end = True
    with tg.use_models(forward=FunctionModel(lambda request: request.messages[-1].text)):
        trainer.fit(program, nn.ExactMatch(), optimizer, train, val)
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("step 0/1  seed prompt val 1.00 ")
    assert second.startswith("step 1/1  train 1.00  no change ")


def fit_shown(*callbacks: Any) -> tg.Trainer:
    program = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="system prompt"))
    train, val = ([{"word": word, "target": word}] for word in ("a", "b"))
    optimizer = optim.TGD(program.parameters())
    optimizer.to_the_end = True
    trainer = tg.Trainer(max_epochs=1, callbacks=callbacks)
    with tg.use_models(forward=FunctionModel(lambda request: request.messages[-1].text)):
        trainer.fit(program, nn.ExactMatch(), optimizer, train, val)
    return trainer


def test_progress_is_lines_on_stderr_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    """The line of the README; it may be given to several trainers."""
    shown = Progress()
    fit_shown(shown)
    fit_shown(shown)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert [line[:8] for line in captured.err.splitlines()] == ["step 0/1", "step 1/1"] * 2


def test_progress_is_bars_in_a_terminal_and_lines_for_a_second_run_meanwhile(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two that move the cursor would write over each other."""
    shown = io.StringIO()
    console = Console(file=shown, force_terminal=True, width=80, height=25, color_system=None)
    monkeypatch.setattr(progress, "terminal", lambda: console)

    class Inside:
        begun = False

        def on_event(self, event: Any) -> None:
            if isinstance(event, StepEnded) and not self.begun:
                self.begun = True
                Context().run(fit_shown, Progress())

    fit_shown(Progress(), Inside())
    assert "step 0/1  seed prompt" in shown.getvalue()
    assert shown.getvalue().count("step 0/1") == 1
    assert [line[:8] for line in capsys.readouterr().err.splitlines()] == ["step 0/1", "step 1/1"]
    fit_shown(Progress())  # it has let go of the terminal
    assert shown.getvalue().count("step 0/1  seed prompt") == 2
    assert shown.getvalue().endswith("\x1b[?25h")  # the cursor is there again


def test_progress_is_a_part_of_the_cell_in_a_notebook(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By what IPython has for it: a kernel shows nothing of the cursor."""
    notebook = Notebook()

    class Handle:
        def update(self, bundle: dict[str, str], *, raw: bool) -> None:
            assert raw
            notebook.bundles.append(bundle)

    def display(bundle: dict[str, str], *, raw: bool, display_id: bool) -> Handle:
        assert raw
        assert display_id
        notebook(bundle)
        return Handle()

    ipython = SimpleNamespace(
        get_ipython=lambda: SimpleNamespace(kernel=object()), display=SimpleNamespace(display=display)
    )
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    fit_shown(Progress())
    assert [line[:8] for line in notebook.text.split("\n")][:2] == ["step 0/1", "step 1/1"]
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(ipython, "get_ipython", lambda: SimpleNamespace(kernel=None))  # IPython in a terminal, or none
    fit_shown(Progress())
    assert "step 0/1" in capsys.readouterr().err


def test_a_pipe_that_is_gone_ends_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is paid for goes on when nobody reads what is shown of it."""

    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stderr", Gone())
    fit_shown(Progress())


def test_progress_ends_with_a_run_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal would have no cursor, and its bars would move on."""
    shown = io.StringIO()
    console = Console(file=shown, force_terminal=True, width=80, height=25, color_system=None)
    monkeypatch.setattr(progress, "terminal", lambda: console)

    class Fails:
        def on_event(self, event: Any) -> None:
            if isinstance(event, StepEnded):
                raise RuntimeError("of a callback")

    with pytest.raises(RuntimeError, match="of a callback"):
        fit_shown(Progress(), Fails())
    assert shown.getvalue().endswith("\x1b[?25h")
    assert not progress.terminal_taken.locked()
