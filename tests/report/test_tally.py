"""The lines of a log, and what the numbers in them are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from textgrad_engine.llm import Usage
from textgrad_engine.report.progress import Lines
from textgrad_engine.report.tally import Tally, line_of
from textgrad_engine.train.events import (
    Evaluated,
    PhaseAdvanced,
    PhaseEnded,
    PhaseStarted,
    RunStarted,
)

from .events import HALF, STARTED, Clock, called, step, tried


@pytest.fixture
def log() -> tuple[list[str], Lines]:
    said: list[str] = []
    return said, Lines(said.append)


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


def test_each_run_of_a_cross_validation_is_headed_by_which_it_is(log: tuple[list[str], Lines]) -> None:
    """Five folds and the final run were six runs alike; what was said of the data stays said."""
    said, lines = log
    for part in ("fold 1 of 2", "fold 2 of 2"):
        lines.for_run().on_event(replace(STARTED, part=part, overlaps=("they validate",)))
    assert said == ["\nfold 1 of 2\nwarning: they validate", "\nfold 2 of 2"]
