"""What is known of a run that has no result: it was killed, it ended with an error, or it still runs."""

from __future__ import annotations

from textgrad_engine.llm.response import Usage
from textgrad_engine.report.difference import origins_from_steps
from textgrad_engine.store import Run
from textgrad_engine.train import TrainResult

__all__ = ["so_far"]


def so_far(run: Run) -> TrainResult:
    """A run without a result as if it had been interrupted after its last step; how long it took is not known.

    Args:
        run: the run folder.

    Raises:
        RunError: the record of calls is damaged.
    """
    first = next((each.evaluation for each in run.evaluations if each.step == 0 and each.phase == "validate"), None)
    used: dict[str, Usage] = {}
    run.usage()  # names the place where the record is damaged
    for entry in run.completions():
        purpose = str(entry.get("purpose"))
        used[purpose] = used.get(purpose, Usage()) + Usage(**entry.get("usage", {}))
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
        usage=dict(sorted(used.items())),
        seconds=0.0,
    )
