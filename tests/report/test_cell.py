"""A part of a cell of a notebook."""

from __future__ import annotations

from textgrad_engine.report.cell import Cell
from textgrad_engine.train.events import (
    Evaluated,
    PhaseAdvanced,
    PhaseEnded,
    PhaseStarted,
    RunStarted,
)

from .events import HALF, STARTED, Clock, Notebook, called, step


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
    assert shown[-1].startswith("step 1 of 4, best 0.500, 1 call, 1.0k tokens, $0.00, ")
    cell.on_interrupt(True, "Ctrl-C")
    cell.on_event(step(1))
    assert notebook.text.split("\n")[1].startswith("step 1/4  train 0.50  val 0.75 kept ")
    assert "stopping: waiting for answers in flight" in notebook.text
    cell.end()
    lines, last = notebook.text.split("\n")[:-1], notebook.text.split("\n")[-1]
    assert [line[:8] for line in lines] == ["step 0/4", "step 1/4"]
    assert last.startswith("1 call, 1.0k tokens, $0.00 in ")


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
