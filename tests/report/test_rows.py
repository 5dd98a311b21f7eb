"""Several runs at once in one terminal: a row for each, and their lines above."""

from __future__ import annotations

import functools
import io
import re
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from textgrad_engine.dispatch import threads
from textgrad_engine.llm import Stop
from textgrad_engine.report import progress, rows
from textgrad_engine.report.progress import Lines, Progress
from textgrad_engine.report.rows import Rows, Together
from textgrad_engine.report.terminal import stopping, terminal_taken
from textgrad_engine.scoped import setting
from textgrad_engine.train.events import Evaluated, Event, PhaseStarted, RunEnded, RunFailed, RunStarted, part_mark
from textgrad_engine.train.interrupt import at_once, stopping_on_interrupt

from ..pressing import press_ctrl_c
from .events import HALF, called, step, tried


def started(part: str, steps: int | None = 4, *warnings: str) -> RunStarted:
    return RunStarted({"system": "a"}, train=64, val=10, test=20, steps=steps, overlaps=warnings, part=part)


def ended(status: Any) -> RunEnded:
    result: Any = SimpleNamespace(status=status)
    return RunEnded(status, result)


def shown(made: Rows) -> list[str]:
    console = Console(file=io.StringIO(), width=80, color_system=None)
    with console.capture() as capture:
        console.print(made.live.get_renderable())
    return [" ".join(re.sub("[━╸╺]", " ", line).split()) for line in capture.get().splitlines()]


def tell(row: Any, mark: str, *events: Event) -> None:
    with setting(part_mark, mark):
        for event in events:
            row.on_event(event)


def test_each_run_has_a_row_with_its_steps_its_best_score_and_its_calls() -> None:
    """Below them stands what all of them have used."""
    console = Console(file=io.StringIO(), width=80, force_terminal=True)
    made = Rows(console, set())
    first, second, last = made.row(), made.row(), made.row()
    tell(first, "1/2", started("fold 1 of 2"), PhaseStarted(1, "validate", 0, 10), called(1))
    tell(first, "1/2", Evaluated(1, "validate", 0, HALF), PhaseStarted(2, "forward", 1, 32), step(1), called(2))
    tell(second, "2/2", started("fold 2 of 2"), PhaseStarted(1, "test", 4, 20), called(1), ended("budget"))
    tell(last, "all", started("all examples", None), tried(3, "patch"))
    *shown_rows, status = shown(made)
    assert shown_rows == [
        "fold 1 of 2 step 1/4 best 0.75 2 calls",
        "fold 2 of 2 budget spent 1 call",
        "all examples step 3 best 0.75 0 calls",
    ]
    assert status.startswith("3 calls, 3.0k tokens, $0.00, 0.0 s so far")
    made.on_interrupt(True, "SIGTERM")
    assert (
        shown(made)[-1]
        == stopping(True, "SIGTERM")
        == ("stopping: waiting for answers in flight; SIGTERM again gives them up")
    )
    made.on_interrupt(False, "Ctrl-C")
    assert shown(made)[-1] == "finishing: no more calls are sent; Ctrl-C again ends at once"


@pytest.mark.parametrize(
    ("end", "said"),
    [(ended("finished"), "done"), (ended("interrupted"), "interrupted"), (RunFailed("KeyError: gone"), "failed")],
)
def test_a_row_says_how_its_run_ended(end: Event, said: str) -> None:
    """Others may go on for a long time."""
    made = Rows(Console(file=io.StringIO(), width=80), set())
    tell(made.row(), "1/2", started("fold 1 of 2"), step(2), end)
    assert shown(made)[0] == f"fold 1 of 2 {said} best 0.75 0 calls"


def test_lines_of_runs_that_go_on_at_once_begin_with_the_fold() -> None:
    """They come in any order; what is wrong with the data is said once, of all."""
    told, written = set[str](), list[str]()
    first, second = Lines(written.append, told), Lines(written.append, told)
    tell(first, "1/2", started("fold 1 of 2", 4, "they validate"))
    tell(second, "2/2", started("fold 2 of 2", 4, "they validate"))
    tell(second, "2/2", step(1))
    tell(first, "1/2", step(1, None))
    tell(first, "", started("fold 1 of 2"), step(1))
    assert [line.split("  ")[0] for line in written] == [
        "warning: they validate",
        "2/2",
        "1/2",
        "\nfold 1 of 2",
        "step 1/4",
    ]
    assert written[1].startswith("2/2  step 1/4  train 0.50  val 0.75 kept")


def test_in_a_terminal_with_fewer_lines_the_last_one_is_seen_all_the_same() -> None:
    """It says what all cost, and that Ctrl-C was heard; of more runs than lines, those are shown that go on."""
    made = Rows(Console(file=io.StringIO(), width=80, height=6), set())
    for number in range(1, 9):
        tell(made.row(), f"{number}/8", started(f"fold {number} of 8"), *([ended("finished")] if number < 3 else []))
    made.on_interrupt(True, "Ctrl-C")
    assert [line.removesuffix(" 0 calls") for line in shown(made)] == [
        "fold 3 of 8",
        "fold 4 of 8",
        "fold 5 of 8",
        "fold 6 of 8",
        "and 4 more runs",
        stopping(True, "Ctrl-C"),
    ]


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """What a terminal shows."""
    file = io.StringIO()
    made = Console(file=file, width=80, force_terminal=True)
    monkeypatch.setattr(progress, "terminal", lambda: made)
    return file


def test_rows_are_there_while_one_of_the_runs_goes_on(screen: io.StringIO) -> None:
    """`Progress` makes them for runs that go on at once, and bars for one by itself."""
    shared = Progress()
    first, second = shared.for_run(), shared.for_run()
    tell(first, "1/2", started("fold 1 of 2"))
    tell(second, "2/2", started("fold 2 of 2"), step(1))
    assert terminal_taken.locked()
    first.on_end()
    assert terminal_taken.locked()
    second.on_end()
    assert not terminal_taken.locked()
    drawn = screen.getvalue()
    assert "fold 1 of 2" in drawn
    assert "fold 2 of 2" in drawn
    assert "2/2  step 1/4" in drawn
    alone = shared.for_run()
    tell(alone, "", started("all examples"))
    assert "all examples" in screen.getvalue()[len(drawn) :]
    alone.on_end()
    assert not terminal_taken.locked()


def test_rows_of_runs_that_are_left_behind_are_taken_down(screen: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C twice, while code of the runs does something else: the cursor stayed hidden, as nobody ended the rows."""
    monkeypatch.setattr(threads, "A_MOMENT", 0.0)
    shared, both, go_on, stops = Progress(), threading.Barrier(3), threading.Event(), list[Stop]()

    def run(place: int) -> None:
        own = shared.for_run()
        tell(own, f"{place}/2", started(f"fold {place} of 2"))
        with stopping_on_interrupt() as stop:
            stops.append(stop)
            both.wait(60)
            go_on.wait(60)
        own.on_end()
        both.wait(60)

    def presses() -> None:
        both.wait(60)
        press_ctrl_c()
        heard = threading.Event()
        stops[0].listen(heard.set)
        if not stops[0].is_set:  # two that come at once are heard as one
            assert heard.wait(60)
        press_ctrl_c()

    threading.Thread(target=presses).start()
    with pytest.raises(KeyboardInterrupt):
        at_once([functools.partial(run, place) for place in (1, 2)], 2)
    drawn, taken = screen.getvalue(), terminal_taken.locked()
    go_on.set()
    both.wait(60)
    assert not taken
    assert drawn.rindex("\x1b[?25h") > drawn.rindex("\x1b[?25l")
    assert drawn.endswith("\x1b[1A\x1b[2K\x1b[?25h")
    assert screen.getvalue() == drawn
    assert not terminal_taken.locked()


def test_where_bars_of_another_run_move_there_are_lines(
    screen: io.StringIO, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two things that move would write over each other."""
    with terminal_taken:
        row = Progress().for_run()
        tell(row, "1/2", started("fold 1 of 2"), step(1))
        row.on_end()
    assert "1/2  step 1/4" in capsys.readouterr().err
    assert screen.getvalue() == ""


def test_a_terminal_that_is_gone_leaves_nothing_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else no later run of the process would show bars."""

    class Gone(Rows):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            self.live = GoneLive()  # type: ignore[assignment]

    class GoneLive:
        def __enter__(self) -> None:
            raise OSError("no such device")

        def __exit__(self, *error: object) -> None:
            raise AssertionError

    monkeypatch.setattr(rows, "Rows", Gone)
    with pytest.raises(OSError, match="no such device"), Together().row(Console(file=io.StringIO()), set()):
        raise AssertionError
    assert not terminal_taken.locked()
