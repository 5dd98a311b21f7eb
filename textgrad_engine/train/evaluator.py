"""Scores of a program on a dataset, and what two evaluations say about each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from textgrad_engine.autograd import Variable, example, no_grad
from textgrad_engine.data import ids_of
from textgrad_engine.errors import (
    AnswerError,
    BadRequest,
    ConnectionFailed,
    DataError,
    DeadlineExceeded,
    RateLimited,
    ServerFailed,
)
from textgrad_engine.train.calling import fields_named_by, run_scored, target_for
from textgrad_engine.train.statistics import Verdict, mean_interval, paired_difference, verdict

__all__ = ["Comparison", "Evaluation", "compare", "evaluate"]

UNANSWERED = (AnswerError, BadRequest, ConnectionFailed, DeadlineExceeded, RateLimited, ServerFailed)
"""What leaves one example without a score, after all retries, without ending the whole evaluation."""

MOST_UNANSWERED = 0.5
"""When a larger share than this went unanswered, nothing can be said, and the first error is raised."""


@dataclass(frozen=True)
class Evaluation:
    """The scores of one program on one dataset.

    Attributes:
        ids: the examples, in dataset order.
        scores: their scores, in the same order (higher is better); None where no answer was to be had.
        predictions: what the program said, in the same order; None where no answer was to be had.
        failures: for each example without an answer, the error in words.
    """

    ids: tuple[str, ...]
    scores: tuple[float | None, ...]
    predictions: tuple[Any, ...]
    failures: dict[str, str]

    @property
    def answered(self) -> tuple[float, ...]:
        """The scores that there are."""
        return tuple(score for score in self.scores if score is not None)

    @property
    def mean(self) -> float:
        """The mean of the scores that there are."""
        return sum(self.answered) / len(self.answered)

    @property
    def interval(self) -> tuple[float, float]:
        """The 95% interval of the mean: Wilson's for scores of 0 and 1, else Student's."""
        return mean_interval(self.answered)

    def __len__(self) -> int:
        return len(self.ids)

    def __str__(self) -> str:
        low, high = self.interval
        lost = f", {len(self.failures)} unanswered" if self.failures else ""
        return f"{self.mean:.3f} [{low:.3f}, {high:.3f}] on {len(self.answered)} examples{lost}"


@dataclass(frozen=True)
class Comparison:
    """What two evaluations on the same examples say about each other.

    Attributes:
        difference: the mean difference, after minus before.
        interval: its 95% interval.
        p_value: how probable a difference at least as large is when there is none (two-sided).
        verdict: ``"better"``, ``"worse"`` or ``"not shown"``.
        n: how many examples both have a score for.
    """

    difference: float
    interval: tuple[float, float]
    p_value: float
    verdict: Verdict
    n: int

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.verdict}: {self.difference:+.3f} [{low:+.3f}, {high:+.3f}], p = {self.p_value:.2g}, n = {self.n}"


def evaluate(
    program: Callable[..., Any],
    dataset: Sequence[dict[str, Any]],
    loss: Callable[..., Variable],
    concurrency: int | None = None,
    *,
    target: str = "target",
    on_score: Callable[[int], None] | None = None,
) -> Evaluation:
    """Run a program on every example, all at once, and score its predictions; nothing is recorded for backward.

    Args:
        program: called with those of an example's fields that its `forward` names.
        dataset: the examples.
        loss: called with the prediction and the example's target; its data must be a number (higher is better).
        concurrency: at most so many examples at once; None leaves it to the models' own limits.
        target: the name of the target's field.
        on_score: called with a position when that example's score is there; on any thread, in any order.
            It must not raise.

    Returns:
        The scores, in dataset order.

    Raises:
        DataError: the dataset is empty, or an example lacks a field.
        TypeError: the loss is no number (a TextLoss, for instance).
        ModelError: the key is wrong, the budget is spent, the run was stopped, or more than half went unanswered.

    Example:
        >>> from textgrad_engine import nn
        >>> from textgrad_engine.testing import ScriptedModel
        >>> program = nn.ChatCompletion("{question}", model=ScriptedModel(["4", "5"]))
        >>> rows = [{"question": "2 + 2?", "target": "4"}, {"question": "3 + 3?", "target": "6"}]
        >>> evaluate(program, rows, nn.ExactMatch()).scores
        (1.0, 0.0)
    """
    if len(dataset) == 0:
        raise DataError("there is nothing to evaluate on: the dataset is empty")
    names = ids_of(dataset)
    pick, target_of = fields_named_by(program), target_for(loss, target)
    given = [(pick(row, name), target_of(row, name)) for row, name in zip(dataset, names)]  # before anything is paid

    def start(position: int) -> tuple[Variable, Variable]:
        fields, wanted = given[position]
        with example(names[position]), no_grad():
            prediction = _variable(program(**fields))
            return prediction, loss(prediction, wanted)

    return _collect(names, run_scored(start, len(dataset), concurrency, on_score))


def _collect(names: tuple[str, ...], results: list[tuple[Variable, Variable]]) -> Evaluation:
    scores: list[float | None] = []
    predictions: list[Any] = []
    failures: dict[str, str] = {}
    first: Exception | None = None
    for name, (prediction, score) in zip(names, results):
        try:
            scores.append(as_score(score))
            predictions.append(prediction.data)
        except UNANSWERED as error:
            first = first or error
            scores.append(None)
            predictions.append(None)
            failures[name] = f"{type(error).__name__}: {error}"
    if first is not None and len(failures) > MOST_UNANSWERED * len(names):
        first.add_note(f"{len(failures)} of {len(names)} examples went unanswered; this is the first error")
        raise first
    return Evaluation(names, tuple(scores), tuple(predictions), failures)


def as_score(loss: Variable) -> float:
    """The number that a loss gave.

    Raises:
        TypeError: it gave text.
    """
    data = loss.data
    if isinstance(data, int | float):
        return float(data)
    raise TypeError(
        f"a score must be a number, and this loss gave {type(data).__name__}. A TextLoss only gives words: "
        "score with nn.ExactMatch, nn.Metric or nn.Judge."
    )


def _variable(value: Any) -> Variable:
    return value if isinstance(value, Variable) else Variable(value, role="prediction")


def compare(before: Evaluation, after: Evaluation) -> Comparison:
    """What may be said about two evaluations of the same examples: a paired difference, its interval, a verdict.

    Examples that either has no score for are left out of both.

    Raises:
        ValueError: they are of different examples, or share no scored one.

    Example:
        >>> def scored(*scores):
        ...     return Evaluation(tuple(str(n) for n in range(len(scores))), scores, scores, {})
        >>> compare(scored(*[0.0] * 9, 1.0), scored(*[1.0] * 10)).verdict
        'better'
    """
    if before.ids != after.ids:
        raise ValueError(
            "two evaluations are compared on the same examples in the same order; these differ in their ids"
        )
    pairs = [(b, a) for b, a in zip(before.scores, after.scores) if b is not None and a is not None]
    if not pairs:
        raise ValueError("no example has a score in both evaluations, so nothing can be compared")
    found = paired_difference([b for b, _ in pairs], [a for _, a in pairs])
    said = verdict(found.low, found.high, found.p_value)
    return Comparison(found.difference, (found.low, found.high), found.p_value, said, len(pairs))
