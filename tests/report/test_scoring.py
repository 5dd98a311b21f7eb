"""What is seen of one evaluation while it goes on."""

from __future__ import annotations

import io
import sys
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

import textgrad_engine as tg
from textgrad_engine import nn, report
from textgrad_engine.report import scoring
from textgrad_engine.testing import FunctionModel

from .events import Clock, Notebook

ROWS = [{"word": word, "target": word} for word in "abc"]


def evaluated(repeats: int = 1) -> float:
    program = nn.ChatCompletion("{word}", model=FunctionModel(lambda request: request.messages[-1].text))
    with report.score_bar(len(ROWS) * repeats) as on_score:
        found = tg.evaluate(program, ROWS, nn.ExactMatch(), repeats=repeats, on_score=on_score)
    return found.mean


def test_a_pipe_gets_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """What reads it wants the result."""
    assert evaluated() == 1.0
    assert capsys.readouterr() == ("", "")


def test_a_terminal_has_a_bar_and_no_room_for_a_second_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """It counts the samples, and the cursor is there again behind it."""
    shown = io.StringIO()
    console = Console(file=shown, force_terminal=True, width=80, height=25, color_system=None)
    monkeypatch.setattr(scoring, "terminal", lambda: console)
    with report.score_bar(2) as outer:
        assert evaluated() == 1.0
        outer(0)
        outer(1)
    assert "2/2" in shown.getvalue()
    assert "/3" not in shown.getvalue()
    assert shown.getvalue().endswith("\x1b[?25h")
    evaluated(repeats=2)
    assert "6/6" in shown.getvalue()


def test_a_notebook_has_a_line_that_stays(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """By what IPython has for it, as for a run."""
    notebook = Notebook()

    def display(bundle: dict[str, str], **_: Any) -> Any:
        notebook(bundle)
        return SimpleNamespace(update=lambda bundle, raw: notebook.bundles.append(bundle))

    shell = SimpleNamespace(kernel=object())
    ipython = SimpleNamespace(get_ipython=lambda: shell, display=SimpleNamespace(display=display))
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    evaluated()
    assert notebook.text.startswith("evaluate 3/3, ")
    assert capsys.readouterr() == ("", "")


def test_the_line_says_how_long_it_will_take_four_times_a_second_at_most() -> None:
    """Each change goes to the browser; that Ctrl-C was heard is shown with the next one."""
    notebook, clock = Notebook(), Clock()
    line = scoring._Line(notebook, 100, clock)
    for position in range(50):
        clock.now += 0.1
        line.on_score(position)
    assert 15 <= len(notebook.bundles) <= 20
    line.on_interrupt(True, "Ctrl-C")
    clock.now += 1
    line.on_score(50)
    assert notebook.text == "stopping 51/100, about 5.8 s left"


def test_what_stays_of_the_line_tells_how_long_it_took() -> None:
    """Of one that an error or Ctrl-C ended, too, as nothing is left then; nor of more scores than were said."""
    for scores, shown in ((3, "evaluate 3/4, 3.0 s"), (8, "evaluate 8/4, 8.0 s")):
        notebook, clock = Notebook(), Clock()
        line = scoring._Line(notebook, 4, clock)
        for position in range(scores):
            clock.now += 1
            line.on_score(position)
            assert "-" not in notebook.text
        line.end()
        assert notebook.text == shown


def test_ctrl_c_is_heard_while_a_score_is_counted() -> None:
    """The handler runs on the thread that it interrupts, which would wait for itself."""
    notebook = Notebook()

    def display(bundle: dict[str, str]) -> Any:
        line.on_interrupt(True, "Ctrl-C")
        return notebook(bundle)

    line = scoring._Line(display, 2)
    line.on_score(0)
    line.end()
    assert notebook.text.startswith("stopping 1/2, ")


def told(*seconds: float, total: int = 0, name: str = "evaluate") -> list[str]:
    """The lines of scores that come so long after each other."""
    lines, clock = list[str](), Clock()
    on_score = scoring.ScoreLines(lines.append, clock).of(name, total or len(seconds))
    for position, later in enumerate(seconds):
        clock.now += later
        on_score(position)
    return lines


def test_lines_say_how_far_it_is_and_are_few() -> None:
    """Ten at most and one every ten seconds, or one a minute where a tenth takes longer than that."""
    assert told(*[0.1] * 50) == [], "it was over before anybody asked"
    minutes = told(*[1.5] * 400)
    assert minutes[0] == "evaluate 40/400, about 9 min 0 s left"
    assert minutes[-1] == "evaluate 400/400, 10 min 0 s"
    assert len(minutes) == 10
    quick = told(*[0.25] * 100)
    assert quick == [
        "evaluate 40/100, about 15 s left",
        "evaluate 80/100, about 5.0 s left",
        "evaluate 100/100, 25 s",
    ]
    assert len(told(*[5.0] * 24, total=1000)) == 2


def test_an_endpoint_that_hangs_is_told_of_with_the_next_answer() -> None:
    """As of one that is asked too much."""
    assert told(1.0, 90.0, 1.0, total=100) == ["evaluate 2/100, about 1 h 14 min left"]


def test_lines_of_evaluations_at_once_begin_with_their_names() -> None:
    """Each is counted by itself, and the end of each is told once the first line was written."""
    lines, clock = list[str](), Clock()
    shown = scoring.ScoreLines(lines.append, clock)
    slow, quick = shown.of("prompt in a.txt", 20), shown.of("prompt in\nb.txt\x1b[2J", 4)
    for position in range(20):
        clock.now += 1
        slow(position)
        if position in (1, 2, 3, 12):
            quick(position)
    assert lines == [
        "prompt in a.txt 10/20, about 10 s left",
        "prompt in b.txt\N{REPLACEMENT CHARACTER}[2J 4/4, 13 s",
        "prompt in a.txt 20/20, 20 s",
    ]


def test_a_reader_that_has_gone_ends_no_evaluation() -> None:
    """The result still comes; `OnScore` must not raise."""

    def write(line: str) -> None:
        raise BrokenPipeError(line)

    clock = Clock()
    on_score = scoring.ScoreLines(write, clock).of("evaluate", 20)
    for position in range(20):
        clock.now += 20
        on_score(position)


def test_lines_come_whole_from_several_threads() -> None:
    """Scores come on any; no two lines tell of one count."""
    lines, clock = list[str](), Clock()
    on_score = scoring.ScoreLines(lines.append, clock).of("evaluate", 400)

    def scores(_: int) -> None:
        for position in range(100):
            clock.now += 1
            on_score(position)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(scores, range(4)))
    assert 10 <= len(lines) == len(set(lines)) <= 11
    assert lines[-1].startswith("evaluate 400/400, ")
