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
    assert "Score and metrics against length and time, of prompts run on the whole validation set" in " ".join(
        shown.split()
    )
    lines = [line.split() for line in shown.splitlines()]
    assert ["tokens", "validation", "right", "kind", "time"] in lines
    assert ["1", "1,030", "0.900", "0.950", "4.500", "1.50", "s", "best", "prompt"] in lines
    assert ["2", "20", "0.800", "0.500"] in lines
    assert ["3", "9", "0.400", "seed", "prompt"] in lines
    assert "`show --front N` prints one of them, `eval --front N` scores it" in shown


def test_of_a_result_without_a_folder_it_is_told_what_reads_folders(result: TrainResult) -> None:
    """In a notebook `show` is no name of anything, and there is nothing for it to read."""
    known = replace(result, front=(FrontPoint(result.best, 1030, 0.9), FrontPoint(result.seed, 9, 0.4)))
    told = "`show` and `eval` are commands that read the folder of a run, which Trainer(run_dir=...) writes."
    assert told in " ".join(render(known).split())
    assert "Trainer(run_dir" not in render(known, title="runs/tickets-1")
    assert "Trainer(run_dir" not in render(replace(result, front=(), doubtful=()))


def test_a_single_text_is_nothing_to_choose_from(result: TrainResult) -> None:
    """The scores say all that there is."""
    assert front_within(replace(result, front=(FrontPoint(result.best, 30, 0.9),))) is None
    assert "against length" not in render(result)


def test_the_front_says_on_which_examples_where_the_seed_prompt_left_some_out(result: TrainResult) -> None:
    """Its scores are of those that the seed prompt answered, so the best prompt's is not that of the table above."""
    points = (FrontPoint(result.best, 30, 0.9), FrontPoint(result.seed, 9, 0.4))
    assert result.seed_val is not None
    scores = (None, *result.seed_val.scores[1:])
    found = front_within(replace(result, front=points, seed_val=replace(result.seed_val, scores=scores)))
    assert found is not None
    assert found.title == "Score against length, on the 19 validation examples that the seed prompt answered"
    whole = front_within(replace(result, front=points))
    assert whole is not None
    assert whole.title == "Score against length, of prompts run on the whole validation set"


def test_milliseconds_are_told_apart(result: TrainResult) -> None:
    """A small model nearby answers in some; two decimals of a second would be 0.00 s for each text."""
    points = tuple(FrontPoint({"system": text}, len(text), 0.5, took) for text, took in (("a", 0.0041), ("bb", 0.0035)))
    found = front_within(replace(result, front=points))
    assert found is not None
    assert [row[-1] for row in found.rows] == ["0.0041 s", "0.0035 s"]
    slower = front_within(replace(result, front=(points[0], replace(points[1], latency=1.5))))
    assert slower is not None
    assert [row[-1] for row in slower.rows] == ["0.00 s", "1.50 s"]
