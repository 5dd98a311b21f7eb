"""The front of a run in words."""

from __future__ import annotations

from dataclasses import replace

from textgrad_engine.report import render
from textgrad_engine.report.front import front_within
from textgrad_engine.train import FrontPoint, TrainResult


def test_texts_are_numbered_and_each_metric_has_a_column(result: TrainResult) -> None:
    """As `show --front N` counts them; what a folder of before does not say stays empty."""
    points = (
        FrontPoint(result.best, 1030, 0.9, 1.5, {"right": 0.95, "kind": 4.5}),
        FrontPoint({"system": "x"}, 20, 0.8, None, {"right": 0.5}),
        FrontPoint(result.seed, 9, 0.4),
    )
    shown = render(replace(result, front=points))
    assert "Score and metrics against length and time, of what was run on the whole validation set" in " ".join(
        shown.split()
    )
    lines = [line.split() for line in shown.splitlines()]
    assert ["tokens", "validation", "right", "kind", "time"] in lines
    assert ["1", "1,030", "0.900", "0.950", "4.500", "1.50", "s", "best", "prompt"] in lines
    assert ["2", "20", "0.800", "0.500"] in lines
    assert ["3", "9", "0.400", "seed", "prompt"] in lines
    assert "--front N with `show` prints one of them" in shown


def test_a_single_text_is_nothing_to_choose_from(result: TrainResult) -> None:
    """The scores say all that there is."""
    assert front_within(replace(result, front=(FrontPoint(result.best, 30, 0.9),))) is None
    assert "against length" not in render(result)
