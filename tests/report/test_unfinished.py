"""What there is of a run that has no result."""

from __future__ import annotations

from typing import Any

from textgrad_engine.report.unfinished import so_far
from textgrad_engine.train import TrainResult
from textgrad_engine.train.events import Evaluated


def test_who_asked_for_the_lines_so_far_is_known_from_the_steps(run_of: Any, result: TrainResult) -> None:
    """There is no result.json that would name them."""
    found = so_far(run_of(None, seed=result.seed, best=result.best, steps=result.steps))
    reasons = [None if each is None else each.reason for each in found.origins["system"]]
    assert reasons[-1] == "nobody knew"
    assert reasons[1] is None


def test_the_seed_score_is_that_of_the_seed_texts(run_of: Any, result: TrainResult) -> None:
    """Whatever was validated in later steps."""
    assert result.seed_val is not None
    assert result.best_val is not None
    scores = tuple(
        Evaluated(number, "validate", number - 1, each)
        for number, each in enumerate((result.seed_val, result.best_val), 1)
    )
    assert so_far(run_of(None, seed=result.seed, best=result.best, evaluations=scores)).seed_val == result.seed_val
    assert so_far(run_of(None, seed=result.seed, best=result.best, evaluations=scores[1:])).seed_val is None
