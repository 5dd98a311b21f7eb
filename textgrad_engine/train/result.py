"""What a run of the Trainer found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from textgrad_engine.llm.response import Usage
from textgrad_engine.optim import Origin
from textgrad_engine.train.evaluator import Comparison, Evaluation
from textgrad_engine.train.events import Status, StepEnded

__all__ = ["TrainResult"]


@dataclass(frozen=True)
class TrainResult:
    """What a run of the Trainer found.

    Attributes:
        status: how it ended.
        seed: the trained texts by dotted name, before the run.
        best: the texts that were selected on the validation set; the program holds them after `fit`.
        origins: for each line of the best texts, the step, reason and feedback that wrote it; None for seed lines.
        seed_val: the seed texts on the validation set; None when the run ended before that.
        best_val: the best texts on the validation set. Selected on it, so it flatters them.
        seed_test: the seed texts on the test set; None without a test set, or when the run ended before it was opened.
        best_test: the best texts on the test set.
        comparison: best against seed; None when neither set was evaluated with both.
        compared_on: the set that `comparison` is about. On the validation set it flatters the best texts.
        steps: every step, in order.
        usage: what the run used, by the purpose of the calls.
        seconds: how long it took.
    """

    status: Status
    seed: dict[str, str]
    best: dict[str, str]
    origins: dict[str, list[Origin | None]]
    seed_val: Evaluation | None
    best_val: Evaluation | None
    seed_test: Evaluation | None
    best_test: Evaluation | None
    comparison: Comparison | None
    compared_on: Literal["test", "val"] | None
    steps: tuple[StepEnded, ...]
    usage: dict[str, Usage]
    seconds: float

    @property
    def total(self) -> Usage:
        """What the run used in all."""
        return sum(self.usage.values(), Usage())

    @property
    def candidates(self) -> int:
        """How many changed texts were validated; the more there were, the more the best of them is flattered."""
        return sum(step.val_mean is not None for step in self.steps)

    def __str__(self) -> str:
        parts = [f"{self.status} after {len(self.steps)} steps"]
        for name, seed, best in (("val", self.seed_val, self.best_val), ("test", self.seed_test, self.best_test)):
            if seed is not None and best is not None:
                parts.append(f"{name} {seed.mean:.3f} -> {best.mean:.3f}")
        if self.comparison is not None:
            parts.append(f"{self.comparison} ({self.compared_on})")
        return "; ".join(parts)
