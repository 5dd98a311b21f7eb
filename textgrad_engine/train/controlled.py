"""The controls of a run: searches without feedback at no more calls, and what they selected on the test set."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from textgrad_engine.train.comparison import compared
from textgrad_engine.train.controls import Control
from textgrad_engine.train.evaluation import Evaluation
from textgrad_engine.train.unguided import proposers_of, search_without_feedback

if TYPE_CHECKING:
    from textgrad_engine.train.run import Run


def run_controls(run: Run) -> None:
    """Search without feedback, at no more calls and within a share of the budget; then score that on the test set.

    That is opened once for all of them. The optimizer's own result is known by then, so an end of the budget or Ctrl-C
    leaves that as it is, and `Run.controls` at what was found so far.

    Args:
        run: a run that is trained and tested; its `controls` hold what its optimizer used.
    """
    assert run.seed_val is not None
    assert run.controls is not None
    given = {id(variable) for variable in run.optimizer.variables()}
    own = [parameter for parameter in run.trained.values() if id(parameter) in given]
    most = replace(run.ending.share, calls=run.controls.calls)
    for name, proposer in proposers_of(run.trainer.seed).items():
        run.load(run.seed)
        objective = run.new_objective(own)  # a new one, so that nothing that others paid for is used
        found = search_without_feedback(
            objective,
            proposer,
            run.optimizer,
            run.seed_val,
            most=most,
            seed=run.trainer.seed,
            to_the_end=run.to_the_end,
            phase=lambda: run.phases.phase("control", len(run.steps), 0),
        )
        best = run.seed | dict(zip(objective.names, found.texts))
        made = Control(name, best, found.val, None, None, None, found.tried, found.kept, found.usage, found.problem)
        run.controls = replace(run.controls, each=(*run.controls.each, _beside(run, made)))
    if run.ending.no_controls:  # a cache, or a search that ends early, left them room all the same
        run.controls = replace(run.controls, problem="")
    if run.on_test.best is not None:
        tested = _tested(run, run.controls.each)
        each = [replace(made, test=tested.get(_key(made.best))) for made in run.controls.each]
        run.controls = replace(run.controls, each=tuple(_beside(run, made) for made in each))


def _tested(run: Run, each: tuple[Control, ...]) -> dict[frozenset[tuple[str, str]], Evaluation]:
    """What all texts score on the test examples that the run was tested on; of texts that were scored before, that."""
    assert run.test is not None
    assert run.on_test.best is not None
    known = ((run.seed, run.on_test.seed), (run.best, run.on_test.best))
    tested = {_key(texts): found for texts, found in known if found is not None}
    if all(_key(made.best) in tested for made in each):
        return tested
    run.test.open()
    rows = run.on_test.rows
    for made in each:
        if _key(made.best) in tested:
            continue
        run.load(made.best)
        found, ended = run.score_texts("control", rows, len(run.steps))
        if ended is not None:
            raise ended
        assert found is not None
        tested[_key(made.best)] = found
    return tested


def _key(texts: dict[str, str]) -> frozenset[tuple[str, str]]:
    return frozenset(texts.items())


def _beside(run: Run, made: Control) -> Control:
    """The control with the comparison of the optimizer's best texts against its own."""
    sets: list[tuple[Literal["test", "val"], Evaluation | None, Evaluation | None]] = [
        ("test", made.test, run.on_test.best),
        ("val", made.val, run.best_val),
    ]
    for name, own, best in sets:
        if own is not None and best is not None and (found := compared(own, best)) is not None:
            return replace(made, comparison=found, compared_on=name)
    return made
