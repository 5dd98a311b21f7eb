"""Progress: lines for a log, bars for a terminal, and what the numbers in them are."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable
from contextvars import Context
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

import textgrad_engine as tg
from textgrad_engine import nn, optim
from textgrad_engine.llm import Completion, Message, Request, Usage
from textgrad_engine.llm.usage import CallRecord
from textgrad_engine.optim.search.racing import RaceRecord
from textgrad_engine.report import progress
from textgrad_engine.report.bars import Bars
from textgrad_engine.report.cell import Cell
from textgrad_engine.report.progress import Lines, Progress
from textgrad_engine.report.tally import Tally, line_of
from textgrad_engine.testing import FunctionModel
from textgrad_engine.train import Evaluation
from textgrad_engine.train.events import (
    CallEnded,
    Evaluated,
    ParameterChange,
    PhaseAdvanced,
    PhaseEnded,
    PhaseStarted,
    RunStarted,
    StepEnded,
)

STARTED = RunStarted({"system": "a"}, train=64, val=10, test=20, steps=4)
HALF = Evaluation(("a", "b"), (1.0, 0.0), ("x", "y"), {})


def called(phase: int, dollars: float | None = 0.0) -> CallEnded:
    request = Request(messages=(Message(role="user", content="hello"),))
    usage = Usage(input_tokens=900, output_tokens=100, calls=1, dollars=dollars)
    return CallEnded(phase, CallRecord("forward", "m", request, Completion(text="x", usage=usage), None, 0.0, "a"))


def step(number: int, val: float | None = 0.75, *, kept: bool = True, problem: str = "") -> StepEnded:
    change = ParameterChange("system", "a", "b", problem=problem)
    return StepEnded(number, 1, ("a",), 0.5, 0, 3, (change,), val, kept, 0.75)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def log() -> tuple[list[str], Lines]:
    said: list[str] = []
    return said, Lines(said.append)


def test_a_log_gets_one_line_for_each_step(log: tuple[list[str], Lines]) -> None:
    """Which step, which scores, whether it was kept, and what it has cost."""
    said, lines = log
    for event in (
        STARTED, PhaseStarted(1, "validate", 0, 10), called(1), PhaseAdvanced(1, 1), PhaseEnded(1),
        Evaluated(1, "validate", 0, HALF), step(1), step(2, 0.5, kept=False), step(3, None, kept=False),
        step(4, None, kept=False, problem="too long"),
        replace(step(4, None, kept=False), problems=("no feedback: too late",)),
        Evaluated(9, "test", 4, HALF), Evaluated(10, "test", 4, HALF),
    ):  # fmt: skip
        lines.on_event(event)
    assert [line.split("  1 calls")[0].rstrip() for line in said] == [
        "step 0/4  seed prompt val 0.50",
        "step 1/4  train 0.50  val 0.75 kept  best 0.75",
        "step 2/4  train 0.50  val 0.50       best 0.75",
        "step 3/4  train 0.50  no change      best 0.75",
        "step 4/4  train 0.50  edit dropped   best 0.75",
        "step 4/4  train 0.50  answers lost   best 0.75",
        "test      best prompt 0.50",
        "test      seed prompt 0.50",
    ]
    assert all(line.endswith("1 calls  1.0k tok  $0.00") for line in said)


def tried(number: int, kind: str, *, kept: bool = False, race: bool = True, problem: str = "") -> StepEnded:
    found = RaceRecord("better", ("a", "b", "c"), (0.0, 0.0, 1.0), (1.0, 1.0, 0.0), 0.9, 0.3) if race else None
    change = ParameterChange("system", "a", "b", problem=problem)
    return StepEnded(number, 0, ("a",), 0.5, 0, 3, (change,), None, kept, 0.75, kind=kind, race=found)


def test_a_log_of_a_search_says_what_was_tried_and_what_came_of_it(log: tuple[list[str], Lines]) -> None:
    """The kind of proposal, on how many examples it did better and worse, and whether it is kept."""
    said, lines = log
    for event in (
        RunStarted({"system": "a"}, train=64, val=10, test=20, steps=None), PhaseStarted(1, "score", 0, 0),
        PhaseEnded(1), Evaluated(2, "validate", 0, HALF), tried(1, "patch", kept=True), tried(2, "paraphrase"),
        tried(3, "ablation", race=False), tried(4, "mutation", race=False, problem="too long"),
        Evaluated(9, "test", 4, HALF),
    ):  # fmt: skip
        lines.on_event(event)
    assert [line.split("  0 calls")[0].rstrip() for line in said] == [
        "step   0  seed prompt val 0.50",
        "step   1  patch       +2 -1    kept  best 0.75",
        "step   2  paraphrase  +2 -1          best 0.75",
        "step   3  ablation    -              best 0.75",
        "step   4  mutation    dropped        best 0.75",
        "test      best prompt 0.50",
    ]
    assert len({line.index("  0 calls") for line in said}) == 1


def test_a_search_that_took_no_step_tells_of_its_seed_prompt_once(log: tuple[list[str], Lines]) -> None:
    """It ends with what it began with, and validates that again without asking anybody; so does each of two runs."""
    said, lines = log
    for _ in range(2):
        for event in (
            RunStarted({"system": "a"}, train=64, val=10, test=0, steps=None),
            Evaluated(1, "validate", 0, HALF), Evaluated(2, "validate", 0, HALF),
        ):  # fmt: skip
            lines.on_event(event)
    assert len(said) == 2


def test_an_unknown_price_is_said_to_be_unknown(log: tuple[list[str], Lines]) -> None:
    """Never $0.00 for what nobody knows."""
    said, lines = log
    for event in (STARTED, called(1, None), called(1, 1.0), Evaluated(1, "validate", 0, HALF)):
        lines.on_event(event)
    assert said[0].endswith("cost ?")


def test_lines_fit_80_columns() -> None:
    """Also in a long and dear run."""
    tally = Tally()
    tally.on_event(RunStarted({}, 9000, 900, 900, steps=288))
    tally.usage = Usage(input_tokens=123_456_789, calls=123_456, dollars=123.45)
    assert len(line_of(step(100), tally)) <= 80
    tally.usage = Usage(input_tokens=123_456_789, calls=123_456, dollars=None)
    assert len(line_of(step(100), tally)) <= 80


def test_time_left_is_steps_and_tests() -> None:
    """Ten seconds a step, three steps to go, two tests of twenty examples at half a second each."""
    clock = Clock()
    tally = Tally(clock)
    assert tally.left is None
    for at, event in (
        (0, STARTED), (0, PhaseStarted(1, "validate", 0, 10)), (5, Evaluated(1, "validate", 0, HALF)),
        (5, PhaseStarted(2, "forward", 1, 32)), (10, PhaseStarted(3, "validate", 1, 10)),
        (15, Evaluated(3, "validate", 1, HALF)), (15, step(1)),
    ):  # fmt: skip
        clock.now = at
        tally.on_event(event)
    assert tally.left == pytest.approx(3 * 10 + 2 * 20 * 0.5)
    clock.now = 19
    assert tally.left == pytest.approx(46)
    clock.now = 1000
    assert tally.left == 0


def test_a_second_run_is_counted_from_nothing(log: tuple[list[str], Lines]) -> None:
    """As in a notebook, where the cell with `fit` is run again with the same Trainer."""
    said, lines = log
    for _ in range(2):
        seed = (PhaseStarted(1, "validate", 0, 10), called(1), PhaseEnded(1), Evaluated(1, "validate", 0, HALF))
        for event in (STARTED, *seed, step(1), *[Evaluated(9, "test", 1, HALF)] * 2):
            lines.on_event(event)
    assert said[: len(said) // 2] == said[len(said) // 2 :]
    assert "best prompt" in said[-2]
    assert "1 calls" in said[0]


def test_the_status_says_what_is_done_before_the_first_step_and_after_the_last() -> None:
    """Before the first event splits are compared, which takes seconds where they are large."""
    bars = Bars(Console(file=io.StringIO(), force_terminal=True, width=80))
    assert bars.status() == "checking the data"
    bars.on_event(STARTED)
    assert bars.status().startswith("step 1 of 4, ")
    for event in (PhaseStarted(1, "validate", 0, 10), PhaseEnded(1), Evaluated(1, "validate", 0, HALF)):
        bars.on_event(event)
    bars.on_event(PhaseStarted(2, "test", 4, 20))
    assert bars.status().startswith("testing, best 0.500, ")
    bars.on_event(PhaseEnded(2))
    bars.on_event(Evaluated(2, "test", 4, HALF))
    assert bars.status().startswith("testing, best 0.500, ")


def test_bars_show_every_phase_and_the_status() -> None:
    """One bar for each phase with done/total; below it calls, tokens, cost, best score and time left."""
    console = Console(file=io.StringIO(), force_terminal=True, width=80, height=25, color_system=None)
    bars = Bars(console)
    for event in (
        STARTED, PhaseStarted(1, "validate", 0, 10), called(1), PhaseEnded(1), Evaluated(1, "validate", 0, HALF),
        PhaseStarted(2, "forward", 1, 32), PhaseAdvanced(2, 7), called(2), PhaseEnded(2),
        PhaseStarted(3, "backward", 1, 0), called(3), called(3),
    ):  # fmt: skip
        bars.on_event(event)
    with console.capture() as capture:
        console.print(bars.live.get_renderable())
    lines = [
        " ".join(line.replace("━", "").replace("╸", "").replace("╺", "").split()) for line in capture.get().splitlines()
    ]
    assert lines == [
        "forward 32/32",
        "backward 2 calls",
        "optimize",
        "validate",
        "test",
        "step 1 of 4, best 0.500, 4 calls, 4.0k tokens, $0.00, 0.0 s so far",
    ]
    bars.on_event(PhaseEnded(3))
    for asking, beginning in ((True, "stopping: answers that are under way are waited for"), (False, "finishing: ")):
        bars.on_interrupt(asking)
        assert bars.status().startswith(beginning)
        assert len(bars.status()) <= 80


def test_names_of_examples_are_neither_markup_nor_commands() -> None:
    """A run ended at an id that reads like the end of a style, and a terminal obeyed another."""
    shown = io.StringIO()
    bars = Bars(Console(file=shown, force_terminal=True, width=200))
    overlaps = ("1 val example is in train: '[/INST] 3[a]'", "another: \x1b[2J\u202e")
    bars.on_event(RunStarted({"system": "a"}, train=2, val=1, test=0, steps=1, overlaps=overlaps))
    assert "warning: 1 val example is in train: '[/INST] 3[a]'" in shown.getvalue()
    assert "\x1b[2J" not in shown.getvalue()
    assert "\u202e" not in shown.getvalue()


def test_one_bar_shows_a_search() -> None:
    """How many proposals are under way, and what they have asked; many of them overlap."""
    console = Console(file=io.StringIO(), force_terminal=True, width=80, height=25, color_system=None)
    bars = Bars(console)

    def shown() -> list[str]:
        with console.capture() as capture:
            console.print(bars.live.get_renderable())
        return [" ".join(re.sub("[━╸╺]", "", line).split()) for line in capture.get().splitlines()]

    for event in (
        RunStarted({"system": "a"}, train=64, val=10, test=20, steps=None), PhaseStarted(1, "score", 0, 0),
        PhaseEnded(1), PhaseStarted(2, "validate", 0, 10), called(2), PhaseEnded(2),
        Evaluated(2, "validate", 0, HALF), PhaseStarted(3, "score", 1, 0), called(3), PhaseStarted(4, "search", 1, 0),
        PhaseStarted(5, "search", 2, 0), called(5), called(4), called(5),
    ):  # fmt: skip
        bars.on_event(event)
    assert shown() == [
        "search 2 under way, 4 calls",
        "validate 10/10",
        "test",
        "step 1, best 0.500, 5 calls, 5.0k tokens, $0.00, 0.0 s so far",
    ]
    for event in (PhaseEnded(4), tried(1, "patch"), PhaseEnded(3), PhaseStarted(6, "score", 2, 0), called(6)):
        bars.on_event(event)
    assert shown()[0] == "search 1 under way, 3 calls"
    assert shown()[-1].startswith("step 2, best 0.750, ")
    for event in (PhaseEnded(5), PhaseEnded(6), PhaseStarted(7, "validate", 2, 10), PhaseAdvanced(7, 3)):
        bars.on_event(event)
    assert shown()[1] == "validate 3/10"
    assert bars.tally.left is None


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


class Notebook:
    """What a cell shows: one part of it, and how often that was changed."""

    def __init__(self) -> None:
        self.bundles: list[dict[str, str]] = []

    def __call__(self, bundle: dict[str, str]) -> Callable[[dict[str, str]], object]:
        assert not self.bundles
        self.bundles.append(bundle)
        return self.bundles.append

    @property
    def text(self) -> str:
        return self.bundles[-1]["text/plain"]


def test_a_cell_shows_lines_and_bars_and_keeps_the_lines() -> None:
    """What there is in a terminal; at the end what it has cost stands in the place of the bars."""
    notebook, clock = Notebook(), Clock()
    cell = Cell(notebook, clock=clock)
    for event in (
        STARTED, PhaseStarted(1, "validate", 0, 10), called(1), PhaseEnded(1), Evaluated(1, "validate", 0, HALF),
        PhaseStarted(2, "forward", 1, 32),
    ):  # fmt: skip
        clock.now += 1
        cell.on_event(event)
    shown = notebook.text.split("\n")
    assert shown[0].startswith("step 0/4  seed prompt val 0.50 ")
    assert [line.split()[0] for line in shown[1:-1]] == ["forward", "backward", "optimize", "validate", "test"]
    assert shown[-1].startswith("step 1 of 4, best 0.500, 1 calls, 1.0k tokens, $0.00, ")
    cell.on_interrupt(True)
    cell.on_event(step(1))
    assert notebook.text.split("\n")[1].startswith("step 1/4  train 0.50  val 0.75 kept ")
    assert "stopping: answers that are under way" in notebook.text
    cell.end()
    lines, last = notebook.text.split("\n")[:-1], notebook.text.split("\n")[-1]
    assert [line[:8] for line in lines] == ["step 0/4", "step 1/4"]
    assert last.startswith("1 calls, 1.0k tokens, $0.00 in ")


def test_a_cell_changes_four_times_a_second_at_most_but_for_lines() -> None:
    """Each change goes to the browser, and a run has thousands of calls."""
    notebook, clock = Notebook(), Clock()
    cell = Cell(notebook, clock=clock)
    cell.on_event(STARTED)
    cell.on_event(PhaseStarted(1, "validate", 0, 100))
    before = len(notebook.bundles)
    for done in range(100):
        clock.now += 0.01
        cell.on_event(PhaseAdvanced(1, done + 1))
    assert 3 <= len(notebook.bundles) - before <= 4
    before = len(notebook.bundles)
    cell.on_event(PhaseEnded(1))
    cell.on_event(Evaluated(1, "validate", 0, HALF))  # what is said of a step is shown at once
    assert len(notebook.bundles) - before == 1
    assert "seed prompt val 0.50" in notebook.text


def test_a_cell_shows_no_markup_of_others() -> None:
    """Names of examples stand in it, which a browser would obey."""
    notebook = Notebook()
    overlaps = ("1 val example is in train: '<img src=x onerror=alert(1)> [bold]'",)
    Cell(notebook).on_event(RunStarted({"system": "a"}, train=2, val=1, test=0, steps=1, overlaps=overlaps))
    assert "<img src=x onerror=alert(1)> [bold]" in notebook.text
    assert "<img" not in notebook.bundles[-1]["text/html"]


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
    assert not progress._terminal_taken.locked()
