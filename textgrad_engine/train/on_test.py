"""What a run finds on its test set, at the end: how the seed and the best texts score there, or why nobody knows."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from textgrad_engine.data import Subset
from textgrad_engine.data.contents import contents_of
from textgrad_engine.errors import UNANSWERED, BudgetExceeded, is_by_the_request
from textgrad_engine.llm.meters import meter
from textgrad_engine.llm.response import Usage
from textgrad_engine.train.comparison import score_changes
from textgrad_engine.train.ending import FEWEST
from textgrad_engine.train.evaluation import Evaluation
from textgrad_engine.train.events import Evaluated

if TYPE_CHECKING:
    from textgrad_engine.train.evaluator import Attempt
    from textgrad_engine.train.run import Run

Rows = Sequence[dict[str, Any]]


@dataclass
class OnTest:
    """What is known of a run's texts on the test set.

    Attributes:
        rows: of its examples those that were run.
        seed: how the seed texts score on these.
        best: how the best texts do.
        cut: whether the budget was spent when these had been run.
        usage: what the program's calls took, by "seed" and "best".
        why_not: why there is no score though there was room for one; "" where that is not so.
    """

    rows: Rows = ()
    seed: Evaluation | None = None
    best: Evaluation | None = None
    usage: dict[str, Usage] = field(default_factory=dict)
    why_not: str = ""
    cut: bool = False


def some_of(run: Run, rows: Rows, count: int) -> Rows:
    """So many of the examples, drawn at random, in their order; more of them hold fewer."""
    if count == len(rows):
        return rows
    drawn = random.Random(run.trainer.seed).sample(range(len(rows)), len(rows) if run.nested else count)
    return Subset(rows, sorted(drawn[:count]))


def evaluate_test(run: Run, rows: Rows) -> None:
    """Score the best texts of a run on the test set, and the seed texts when they differ; `Run.on_test` has it then.

    Where the budget is spent before its end, it has what both were run on, if that is enough to tell something.

    Raises:
        BudgetExceeded: it was spent before its end.
    """
    found = run.on_test
    found.rows = rows
    try:
        best, ended = _tested(run, rows, "best")
        seed = best if run.best == run.seed else None
        if seed is None and ended is None:
            run.load(run.seed)
            seed, ended = _tested(run, rows, "seed")
    except UNANSWERED as error:  # of most answers, and a run that is resumed would ask for them in vain
        if not is_by_the_request(error):
            raise
        found.why_not = f"the test set has no score, as most answers to it are lost: {error}"
        return
    if ended is not None:
        if isinstance(ended, BudgetExceeded) and seed is not None and best is not None:
            _keep_of_both(found, seed, best)
        raise ended
    assert seed is not None
    assert best is not None
    if score_changes(seed, best):
        found.seed, found.best = seed, best
    else:
        found.why_not = "the test set has no score, as none of its examples has an answer with both prompts"


def _keep_of_both(found: OnTest, seed: Evaluation, best: Evaluation) -> None:
    """Of a test that the budget ended, keep what both texts were run on, if that is enough to tell something."""
    missing = {*seed.not_run, *best.not_run}
    places = [place for place, name in enumerate(best.ids) if name not in missing]
    if len(places) < FEWEST:
        return
    found.rows = Subset(found.rows, places)
    contents = contents_of(found.rows)
    seed, best = [
        replace(each.by([name in missing for name in each.ids])[False], contents=contents) for each in (seed, best)
    ]
    found.usage.clear()  # it is that of other examples, too
    if score_changes(seed, best):
        found.seed, found.best, found.cut = seed, best, True


def _tested(run: Run, rows: Rows, which: Literal["seed", "best"]) -> Attempt:
    """The test scores of the texts of now; what the program's calls took is noted, also what a cache spared."""
    with meter() as used:
        found = run.score_texts("test", rows, len(run.steps))
    if found.evaluation is not None and found.ended is None:
        run.emit(Evaluated(run.phases.last, "test", len(run.steps), found.evaluation))
    spent, saved = (each.get("forward", Usage()) for each in (used.by_purpose, used.saved_by_purpose))
    run.on_test.usage[which] = spent + saved
    return found
