"""What each of several metrics gave, of which a score is made (`nn.Weighted`), or each criterion (`nn.Rubric`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from textgrad_engine.attributes import attributes_told


@attributes_told
@dataclass(frozen=True)
class MetricScores:
    """One of the metrics, or of the criteria, that a score is made of.

    Attributes:
        name: the metric's, as `nn.Weighted` has it, or the criterion; of what an answer must not do, with "not:".
        scores: what it gave each example, on its own scale, in dataset order, with repeats the means of the samples;
            None where there is no answer.
        scale: its lowest and its highest score.
        weight: how it is weighed; only how weights compare counts. Of a criterion its points.
        is_criterion: whether it is a criterion, by which the score is 1 where an answer does well, and else 0.
    """

    name: str
    scores: tuple[float | None, ...]
    scale: tuple[float, float]
    weight: float
    is_criterion: bool = False

    @property
    def called(self) -> str:
        """What it is called, on one line: a criterion may be a page (`standing.in_a_sentence`)."""
        return f"the {'criterion' if self.is_criterion else 'metric'} {' '.join(self.name.split())!r}"

    @property
    def n(self) -> int:
        """How many examples have a score."""
        return sum(score is not None for score in self.scores)

    @property
    def mean(self) -> float | None:
        """The mean of the scores that there are; None where there are none."""
        known = [score for score in self.scores if score is not None]
        return math.fsum(known) / len(known) if known else None


def parts_of_scales(metrics: Sequence[MetricScores], scores: Sequence[float]) -> tuple[float, ...]:
    """What metrics gave an example, each as its part of its scale, as the score is made of it.

    Example:
        >>> metrics = [MetricScores("right", (), (0, 1), 1.0), MetricScores("polite", (), (1, 5), 1.0)]
        >>> parts_of_scales(metrics, (1.0, 2.0))
        (1.0, 0.25)
    """
    ends = [metric.scale for metric in metrics]
    return tuple([(score - low) / (high - low) for score, (low, high) in zip(scores, ends)])


def filled(parts: Sequence[MetricScores], rows: Sequence[Sequence[tuple[float, ...]]]) -> tuple[MetricScores, ...]:
    """The metrics with their scores.

    Args:
        parts: the metrics.
        rows: for each example, for each of its samples that was answered, what each metric gave.

    Example:
        >>> filled([MetricScores("right", (), (0, 1), 1.0)], [[(1.0,), (0.0,)], []])[0].scores
        (0.5, None)
    """

    def mean(row: Sequence[tuple[float, ...]], number: int) -> float | None:
        return math.fsum(each[number] for each in row) / len(row) if row else None

    return tuple(replace(part, scores=tuple(mean(row, at) for row in rows)) for at, part in enumerate(parts))
