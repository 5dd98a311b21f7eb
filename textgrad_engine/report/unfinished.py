"""What is known of a run that has no result: it was killed, it ended with an error, or it still runs."""

from __future__ import annotations

from textgrad_engine.report.difference import origins_from_steps
from textgrad_engine.store.reader import Run
from textgrad_engine.train.result import TrainResult


def so_far(run: Run) -> TrainResult:
    """A run without a result as if it had been interrupted after its last step; how long it took is not known.

    Args:
        run: the run folder.

    Raises:
        RunError: the record of calls is damaged.
    """
    first = next((each.evaluation for each in run.evaluations if each.step == 0 and each.phase == "validate"), None)
    return TrainResult(
        status="interrupted",
        seed=run.seed,
        best=run.best,
        origins={name: origins_from_steps(name, seed, run.steps) for name, seed in run.seed.items()},
        seed_val=first,
        best_val=None,
        seed_test=None,
        best_test=None,
        comparison=None,
        compared_on=None,
        steps=run.steps,
        usage=run.usage_by_purpose(),
        seconds=0.0,
    )
