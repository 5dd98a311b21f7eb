"""Whether a mean is lower by less than a margin: what so few values can show, rare losses that nobody saw included.

A t-interval knows only what was seen. Of 30 examples none shows a loss that 1 in 20 has, one time in five, and it says
then that nothing is lost. Here the worst value that there can be is taken to have been seen once more than it was, and
the values are weighed at random (Gaffke's bound, of which the Bayesian bootstrap is the half without that value). Of
values of two sizes it is Clopper and Pearson's bound. No case is known in which it holds less often than it says. The
worst cluster is taken to be as large as the largest: with one of the mean size, bounds of simulated clusters of which
the large ones lose more were wrong in up to 15 of 100.

Sources: Gaffke, "Three test statistics for a nonparametric one-sided hypothesis on the mean of a nonnegative variable",
Mathematical Methods of Statistics 14 (2005); Learned-Miller and Thomas, arXiv:1905.06208; Phan, Thomas and
Learned-Miller, arXiv:2106.03163.
"""

from __future__ import annotations

import bisect
import itertools
import math
import operator
import random
from collections.abc import Hashable, Iterable, Sequence

from textgrad_engine.train.distributions import normal_quantile
from textgrad_engine.train.scores import cluster_means, finite_scores

_MOST = 10**15
"""Examples; who would need more will not collect them."""


def lowest_mean(
    values: Iterable[float],
    lowest: float,
    clusters: Sequence[Hashable] | None = None,
    error: float = 0.05,
    *,
    resamples: int = 2000,
    seed: int = 0,
) -> float:
    """What the mean is at least, but for an error.

    Args:
        values: one per example; for a comparison, the differences of two programs' scores.
        lowest: the lowest value that there can be.
        clusters: which cluster each example belongs to; None when each stands for itself.
        error: the share of such bounds that are above the true mean, at most.
        resamples: how many times weights are drawn, or as often as an error needs that is less than one of these.
        seed: equal seeds give equal bounds.

    Raises:
        ValueError: there are no values, or not as many as clusters; a value is not finite or below the lowest; or a
            number is out of range.

    Example:
        >>> round(lowest_mean([0.0] * 59, lowest=-1.0), 2), round(lowest_mean([0.0] * 20, lowest=-1.0), 2)
        (-0.05, -0.14)
    """
    _check_error(error)
    if resamples < 1:
        raise ValueError(f"at least one draw is needed, got resamples={resamples}")
    numbers = finite_scores("values", values)
    if (least := min(numbers)) < lowest:
        raise ValueError(f"the lowest value is to be {lowest}, and one is {least}")
    means, sizes = cluster_means(numbers, range(len(numbers)) if clusters is None else clusters)
    means, weights = [*means, lowest], [*sizes, max(sizes)]
    source, resamples = random.Random(seed), max(resamples, math.ceil(1 / error))
    if len(set(weights)) == 1:  # weights of equal values are drawn together
        means = sorted(means)
        shapes = {value: len([*group]) for value, group in itertools.groupby(means)}
        drawn = [_weighed([*shapes], [*shapes.values()], source) for _ in range(resamples)]
    else:
        drawn = [_weighed(means, [1] * len(means), source, weights) for _ in range(resamples)]
    return sorted(drawn)[int(error * (resamples + 1)) - 1]


def shown_margin(n: int, *, sd: float, largest: float = 1.0, error: float = 0.05, power: float = 0.8) -> float:
    """By how much less than 0 `lowest_mean` is at most, with the wanted power, of differences whose true mean is 0.

    That no loss was seen leaves room for ``-log(error) / (n + 1)`` of the largest one; what changes by itself comes
    on top, at right angles but for the mean of the former.

    Args:
        n: how many examples, or clusters.
        sd: the standard deviation of the differences; 0 where none changes.
        largest: the largest loss that there can be.
        error: as for `lowest_mean`.
        power: the chance to come so near to 0.

    Raises:
        ValueError: an argument is out of range.

    Example:
        >>> round(shown_margin(59, sd=0.0), 3), round(shown_margin(96, sd=0.1), 3)
        (0.05, 0.045)
    """
    _check_error(error)
    if n < 1 or sd < 0 or largest <= 0 or not 0 < power < 1:
        raise ValueError(
            f"expected n >= 1, sd >= 0, largest > 0 and power between 0 and 1, got n={n}, sd={sd}, largest={largest}, "
            f"power={power}"
        )
    unseen, spread = largest / (n + 1), sd / math.sqrt(n)
    rare = max(0.0, -math.log(error) - 1) * unseen
    return unseen + math.hypot(rare, normal_quantile(1 - error) * spread) + normal_quantile(power) * spread


def needed_for_margin(
    margin: float, *, sd: float, largest: float = 1.0, error: float = 0.05, power: float = 0.8
) -> int:
    """How many examples, or clusters, it takes for `shown_margin` to be no more than a margin.

    Raises:
        ValueError: a number is out of range, or it would take more than 10^15.

    Example:
        >>> needed_for_margin(0.05, sd=0.1), needed_for_margin(0.05, sd=0.3)
        (86, 270)
    """
    if not margin > 0:
        raise ValueError(f"a margin is above 0, got {margin}")

    def enough(n: int) -> bool:
        return shown_margin(n, sd=sd, largest=largest, error=error, power=power) <= margin

    if (n := bisect.bisect_left(range(1, _MOST + 1), True, key=enough)) == _MOST:
        raise ValueError(f"a margin of {margin} with sd={sd} needs more than {_MOST} examples")
    return n + 1


def _weighed(
    values: Sequence[float], shapes: Sequence[int], source: random.Random, sizes: Sequence[float] | None = None
) -> float:
    """The mean of some values with weights drawn from a Dirichlet distribution, times their sizes."""
    draw, log = source.random, math.log  # `source.expovariate(1.0)` is the same, in three times the time
    weights = [-log(1.0 - draw()) if each == 1 else source.gammavariate(each, 1.0) for each in shapes]
    if sizes is not None:
        weights = [weight * size for weight, size in zip(weights, sizes)]
    return math.fsum(map(operator.mul, weights, values)) / math.fsum(weights)


def _check_error(error: float) -> None:
    if not 0 < error < 1:
        raise ValueError(f"an error is between 0 and 1, such as 0.05, got {error}")
