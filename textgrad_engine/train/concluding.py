"""What is made of a run that is over: its `TrainResult`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from textgrad_engine.llm.meters import Meter
from textgrad_engine.train.comparison import compared
from textgrad_engine.train.doubtful import doubtful_among
from textgrad_engine.train.evaluation import Evaluation
from textgrad_engine.train.events import Status
from textgrad_engine.train.front import front_of
from textgrad_engine.train.guarded import standings
from textgrad_engine.train.result import TrainResult
from textgrad_engine.train.standing import Standing
from textgrad_engine.train.terms import terms_of

if TYPE_CHECKING:
    from textgrad_engine.train.run import Run


def result_of(run: Run, status: Status, used: Meter, seconds: float) -> TrainResult:
    """What a run found, as far as it came.

    Args:
        run: the run; it asks no model any more.
        status: how it ended.
        used: what it used.
        seconds: how long it took.
    """
    comparison, compared_on = None, None
    sets: list[tuple[Literal["test", "val"], Evaluation | None, Evaluation | None]] = [
        ("test", run.on_test.seed, run.on_test.best),
        ("val", run.seed_val, run.best_val),
    ]
    for name, seed, best in sets:
        if seed is not None and best is not None:
            candidates = run.tried(seed) if name == "val" else ()  # the test set chose nothing
            comparison = compared(seed, best, candidates=candidates)
            compared_on = None if comparison is None else name
            break
    tested = _on_test(run)
    result = TrainResult(
        status=status,
        seed=run.seed,
        best=run.best,
        origins=run.origins,
        seed_val=run.seed_val,
        best_val=run.best_val,
        seed_test=run.on_test.seed if run.on_test.best is not None else None,
        best_test=run.on_test.best if run.on_test.seed is not None else None,
        comparison=comparison,
        compared_on=compared_on,
        steps=tuple(run.steps),
        usage=used.by_purpose,
        seconds=seconds,
        openings=_openings(run),
        overlaps=run.overlaps,
        controls=run.controls,
        front=front_of(run.objective, run.objective.texts_of(run.seed)),
        shortage=run.shortage,
        untested=_untested(run, status),
        terms=terms_of(run.objective, run.seed_val, run.best_val, tested),
        floors=(*_on_val(run), *(tested or ())),
        idle=run.deadline.in_words or run.idle,
        test_usage=dict(run.on_test.usage) if run.on_test.best is not None and run.on_test.seed is not None else {},
        doubtful=doubtful_among(run.objective.answers(), run.objective.scale),
    )
    if status != "budget" or run.shortage or result.spent_its_part:
        return result
    return replace(result, unspent=run.ending.unspent(used.total))


def _on_val(run: Run) -> tuple[Standing, ...]:
    """How the texts stand to the floors on the validation set, by which guards refuse texts."""
    seed, best, guarded = run.seed_val, run.best_val, run.objective.guarded
    if guarded is None or seed is None or best is None or not len(seed) == len(best) == len(run.val):
        return ()
    return standings(guarded.floors, seed, best, "val")


def _on_test(run: Run) -> tuple[Standing, ...] | None:
    """How they stand to them on the test set, by which nothing was chosen; None where both were not run on it."""
    seed, best, guards = run.on_test.seed, run.on_test.best, run.trainer.guards
    if guards is None or seed is None or best is None:
        return None
    return standings(guards.floors_on(run.on_test.rows, best.scale, best.parts), seed, best, "test")


def _openings(run: Run) -> int:
    """How often the test set was opened, before the run was resumed too."""
    now = 0 if run.test is None else run.test.openings
    return now if run.earlier is None else now + run.earlier.openings


def _untested(run: Run, status: Status) -> str:
    """Why the budget left the test set, or a part of it, unrun, or why there is no score of it."""
    if run.on_test.why_not:
        return run.on_test.why_not
    if status == "interrupted" or run.test is None or run.seed_val is None:
        return ""
    why = f"{run.ending.shortage or 'other calls took a part of it'}; raise it, or test fewer examples"
    if run.on_test.seed is not None and run.on_test.best is not None:
        some, every = len(run.on_test.best), len(run.test)
        if run.on_test.cut:
            return (
                f"the budget was spent when {some} of {every} test examples had been run with "
                f"{'the' if run.best == run.seed else 'each'} prompt; raise it, or test fewer examples"
            )
        drawn = f"the budget had room for {some} of {every} test examples, drawn at random: {why}"
        return drawn if some < every else ""
    if run.test.openings:
        return "the budget was spent before both prompts were run on the test set; raise it, or test fewer examples"
    return f"the budget had no room for the test set: {why}"
