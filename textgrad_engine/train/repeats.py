"""Several answers to each example: what one example scores, and how much of the noise is the model's own.

At a temperature above 0 a program gives another answer each time. Further samples of one example are no further
examples: they make that example's score more certain, and nothing else. So each example counts once, with the mean of
its samples, and the variance is taken apart into that between examples and that within them (Miller, arXiv:2411.00640,
by the law of total variance; the estimators are those of the one-way random-effects analysis of unweighted
means, Searle, Casella and McCulloch, "Variance Components" (1992), chapter 3).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from textgrad_engine.train.scores import finite_scores


class Spread(NamedTuple):
    """Where the variance of scores comes from.

    Attributes:
        between: the variance of the examples' true scores: some are harder than others.
        within: the variance of one example's score from sample to sample.
    """

    between: float
    within: float

    def standard_error(self, items: int, repeats: int) -> float:
        """The standard error of the mean score with so many examples, each sampled so often.

        It tells what to pay for: more repeats only make the second part smaller, more examples make both smaller.

        Args:
            items: how many examples.
            repeats: how many samples of each.

        Raises:
            ValueError: one of them is less than 1.

        Example:
            >>> spread = Spread(between=0.08, within=0.16)
            >>> round(spread.standard_error(100, 1), 3), round(spread.standard_error(100, 4), 3)
            (0.049, 0.035)
        """
        if items < 1 or repeats < 1:
            raise ValueError(f"there is at least one example and one sample of it, got {items} and {repeats}")
        return math.sqrt((self.between + self.within / repeats) / items)


def item_means(samples: Iterable[Iterable[float]]) -> list[float]:
    """The score of each example: the mean of its samples.

    Args:
        samples: for each example, the scores of its samples; not all need have as many.

    Raises:
        ValueError: there are no examples, one has no sample, or a score is not a finite number.

    Example:
        >>> item_means([[1, 1, 0, 1], [0, 0], [1]])
        [0.75, 0.0, 1.0]
    """
    rows = _checked(samples)
    return [math.fsum(row) / len(row) for row in rows]


def variance_split(samples: Iterable[Iterable[float]]) -> Spread:
    """Take the variance of scores apart: between examples, and within them.

    Args:
        samples: for each example, the scores of its samples.

    Raises:
        ValueError: there are fewer than two examples, or none has two samples, or a score is not a finite number.

    Example:
        >>> spread = variance_split([[1, 0], [1, 1], [0, 0], [0, 1]])
        >>> round(spread.between, 3), spread.within
        (0.042, 0.25)
    """
    rows = _checked(samples)
    spare = sum(len(row) - 1 for row in rows)
    if len(rows) < 2 or not spare:
        raise ValueError("the variance can be taken apart with two examples, and two samples of one of them, at least")
    means = [math.fsum(row) / len(row) for row in rows]
    within = math.fsum((value - mean) ** 2 for row, mean in zip(rows, means) for value in row) / spare
    whole = math.fsum(means) / len(means)
    of_means = math.fsum((mean - whole) ** 2 for mean in means) / (len(means) - 1)
    # The means vary by their samples, too; what is left may come out below 0 by chance.
    share = math.fsum(1 / len(row) for row in rows) / len(rows)
    return Spread(max(0.0, of_means - within * share), within)


def _checked(samples: Iterable[Iterable[float]]) -> Sequence[list[float]]:
    rows = [finite_scores(f"samples[{index}]", row) for index, row in enumerate(samples)]
    if not rows:
        raise ValueError("samples is empty: there are no examples")
    return rows
