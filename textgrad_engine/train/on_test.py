"""What a run finds on its test set, at the end: how the seed and the best texts score there, or why nobody knows."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from textgrad_engine.data import Subset
from textgrad_engine.errors import UNANSWERED, is_by_the_request
from textgrad_engine.llm.meters import meter
from textgrad_engine.llm.response import Usage
from textgrad_engine.train.comparison import score_changes
from textgrad_engine.train.evaluation import Evaluation

if TYPE_CHECKING:
    from textgrad_engine.train.run import Run

Rows = Sequence[dict[str, Any]]


@dataclass
class OnTest:
    """What is known of a run's texts on the test set.

    Attributes:
        rows: of its examples those that were run.
        seed: how the seed texts score on these.
        best: how the best texts do.
        usage: what the program's calls took, by "seed" and "best".
        why_not: why there is no score though there was room for one; "" where that is not so.
    """

    rows: Rows = ()
    seed: Evaluation | None = None
    best: Evaluation | None = None
    usage: dict[str, Usage] = field(default_factory=dict)
    why_not: str = ""


def some_of(run: Run, rows: Rows, count: int) -> Rows:
    """So many of the examples, drawn at random, in their order; more of them hold fewer."""
    if count == len(rows):
        return rows
    drawn = random.Random(run.trainer.seed).sample(range(len(rows)), len(rows) if run.nested else count)
    return Subset(rows, sorted(drawn[:count]))


def evaluate_test(run: Run, rows: Rows) -> None:
    """Score the best texts of a run on the test set, and the seed texts when they differ; `Run.on_test` has it then."""
    found = run.on_test
    found.rows = rows
    try:
        found.best, found.usage["best"] = _tested(run, rows)
        if run.best == run.seed:
            found.seed = found.best
            return
        run.load(run.seed)
        found.seed, found.usage["seed"] = _tested(run, rows)
        if not score_changes(found.seed, found.best):
            found.best = found.seed = None
            found.why_not = "the test set has no score, as none of its examples has an answer with both prompts"
    except UNANSWERED as error:  # of most answers, and a run that is resumed would ask for them in vain
        if not is_by_the_request(error):
            raise
        found.best = found.seed = None
        found.why_not = f"the test set has no score, as most answers to it are lost: {error}"


def _tested(run: Run, rows: Rows) -> tuple[Evaluation, Usage]:
    """The test scores of the texts of now, and what the program's calls took, also those that a cache spared."""
    with meter() as used:
        found = run.evaluate("test", rows, len(run.steps))
    spent, saved = (each.get("forward", Usage()) for each in (used.by_purpose, used.saved_by_purpose))
    return found, spent + saved
