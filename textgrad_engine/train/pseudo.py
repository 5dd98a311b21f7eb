"""Pseudo-observations: what a few scores have not shown yet, where it is known how far scores can be apart.

That nothing fell among 20 examples does not mean that nothing ever does: falls that come once in 20 are missed one time
in three. Intervals of proportions allow for it by observations that are added before the usual formula is used: Agresti
and Coull, The American Statistician 52 (1998), two successes and two failures; Agresti and Min, Statistics in Medicine
24 (2005), and Bonett and Price, Journal of Educational and Behavioral Statistics 37 (2012), one pair of each of the two
kinds that differ. Here the same is done for scores between two known limits. For differences the observation that is
added has the size of those that were seen of its sign, begun with one of the largest size there is: where all changes
are of that size, as with scores of 0 and 1, it is theirs exactly, and where many smaller ones were seen, it costs
little. Those below a quarter of the largest, which is one step of a judge from 1 to 5, count less the smaller they are:
tiny falls do not tell that there are no large ones. A judge that is off by a hundredth of its scale shows falls in half
of the examples, and of 100 answers that break once in 100 none is broken one time in three; where all falls counted
alike, up to 37% of texts that are as good as others and break so were called better with 100 examples, and up to 58%
with 200. Where each counts by the square of its part of a quarter, up to 6% were. (The worst of 315 kinds of such
falls, 2,000 comparisons each. Weights that are the size itself gave up to 7%, and missed more of what a t-test finds.)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

Limits = tuple[float, float]

WHOLE = 0.25
"""A share of the largest difference there can be; from it on a difference tells as much of large ones as any other."""


def known_limits(limits: Limits | None, *rows: Sequence[float]) -> Limits | None:
    """The worst and the best score that there can be, checked; 0 and 1 where nobody says and there are no others.

    One of them that is infinite says nothing of how far scores can be apart, so nobody knows them then; where the other
    one leaves no room for 0 and 1, these are none either.

    Args:
        limits: the two, if known.
        rows: lists of scores.

    Raises:
        ValueError: a score is outside of the limits.
    """
    if limits is not None:
        if not all(limits[0] <= score <= limits[1] for row in rows for score in row):
            raise ValueError(f"a value is outside of the bounds {limits}")
        if all(map(math.isfinite, limits)):
            return limits
    lowest, highest = limits or (0.0, 1.0)
    return (0.0, 1.0) if lowest <= 0 and highest >= 1 and only_at((0.0, 1.0), *rows) else None


def cut_off(interval: tuple[float, float], limits: Limits | None) -> tuple[float, float]:
    """An interval without what is beyond the limits, if there are any; one that is infinite for want of spread stays.

    Example:
        >>> cut_off((-0.5, 2.0), (0.0, math.inf))
        (0.0, 2.0)
    """
    if limits is None or math.isinf(interval[0]):
        return interval
    return max(limits[0], interval[0]), min(limits[1], interval[1])


def only_at(limits: Limits, *rows: Iterable[float]) -> bool:
    """Whether all scores are at one of the limits, so that they are a proportion."""
    return all(score in limits for row in rows for score in row)


def pseudo_scores(limits: Limits) -> list[float]:
    """What is added to the scores of one program: two at each limit (Agresti and Coull)."""
    return [*limits, *limits]


def pseudo_differences(differences: Sequence[float], largest: float) -> list[float]:
    """What is added to the differences of two programs' scores: one fall and one rise.

    Its size is the root mean square of those of its sign that were seen and of one of the largest size. Those that are
    smaller than a quarter of that weigh less, by the square of their part of it.

    Args:
        differences: of each example, or of each cluster's means.
        largest: the largest difference that there can be.

    Example:
        >>> pseudo_differences([1.0, 1.0, 0.0, -1.0], largest=1.0)
        [-1.0, 1.0]
        >>> [round(each, 3) for each in pseudo_differences([0.5] * 8, largest=1.0)]
        [-1.0, 0.577]
        >>> [round(each, 3) for each in pseudo_differences([0.01] * 8, largest=1.0)]
        [-1.0, 0.994]
    """
    down, up = (added_share(*each) for each in weighed_sums(differences, largest))
    return [-down * largest, up * largest]


def weighed_sums(differences: Sequence[float], largest: float) -> list[tuple[float, float]]:
    """What falls and what rises come to: the sum of each one's `weight`, and of its `weighed` square.

    Args:
        differences: of each example, or of each cluster's means.
        largest: the largest difference there can be.
    """
    parts = ([max(sign * each / largest, 0.0) for each in differences] for sign in (-1, 1))
    return [(math.fsum(map(weight, part)), math.fsum(map(weighed, part))) for part in parts]


def weight(share: float) -> float:
    """What a difference of such a share of the largest one counts, from 0 to 1."""
    return min(1.0, (share / WHOLE) ** 2)


def weighed(share: float) -> float:
    """The square of a difference, times its weight."""
    return weight(share) * share * share


def added_share(weights: float, squares: float) -> float:
    """The size of what is added, as a share of the largest one.

    Args:
        weights: the sum of the `weight` of those that were seen.
        squares: the sum of their `weighed` squares.
    """
    return math.sqrt((1 + squares) / (1 + weights))
