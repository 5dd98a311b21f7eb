"""Examples that belong together, such as several questions about one document: they are fewer than they look.

Two questions about one text are often both easy or both hard, so a standard error that takes them as independent is too
small, in published evaluations by up to a factor of three (Miller, arXiv:2411.00640). Here whole clusters count.

Sources: Miller's clustered standard error, with the small-sample factor of Cameron and Miller, "A Practitioner's Guide
to Cluster-Robust Inference", Journal of Human Resources 50 (2015), and one degree of freedom less than the effective
number of clusters, with the sizes as weights (Kish, "Survey Sampling" (1965), section 8.2; of the idea Carter, Schnepel
and Steigerwald, Review of Economics and Statistics 99 (2017)), which for one size is their number; the sign-flip test
of cluster sums, Cameron, Gelbach and Miller, Review of Economics and Statistics 90 (2008); the bootstrap of clusters,
Efron and Tibshirani, "An Introduction to the Bootstrap" (1993), with the expanded percentiles of Hesterberg,
arXiv:1411.5279.
"""

from __future__ import annotations

import math
import random
from collections.abc import Hashable, Iterable, Sequence

from textgrad_engine.train.distributions import normal_cdf, t_quantile
from textgrad_engine.train.intervals import PairedDifference, mean_interval, paired_difference, t_test
from textgrad_engine.train.permutation import sign_flip
from textgrad_engine.train.pseudo import cut_off, known_limits, pseudo_differences, pseudo_scores
from textgrad_engine.train.scores import check_confidence, cluster_means, cluster_sums, finite_scores, same_length

_WIDEST = 1e6
"""Standard errors; an interval that is wider says nothing."""


def clustered_error(values: Iterable[float], clusters: Sequence[Hashable], largest: float | None = None) -> float:
    """The standard error of a mean when examples come in clusters.

    It is the root of ``sum over clusters of (sum of deviations from the mean)²``, times G / (G - 1) for G clusters,
    over n. With every example in a cluster of its own it is the usual s / sqrt(n).

    Args:
        values: one per example: scores, or differences of two programs' scores.
        clusters: which cluster each example belongs to.
        largest: for differences, the largest that there can be: clusters of `train.pseudo.pseudo_differences` are added
            then, as in `clustered_difference` between known limits.

    Raises:
        ValueError: there are fewer than two clusters, not as many clusters as values, or a value is not finite.

    Example:
        >>> round(clustered_error([1, 1, 0, 0], ["a", "a", "b", "b"]), 3)
        0.5
        >>> round(clustered_error([1, 1, 0, 0], ["a", "b", "c", "d"]), 3)
        0.289
    """
    means, sizes = cluster_means(finite_scores("values", values), clusters)
    if largest is not None:
        return _error(*_with(means, sizes, pseudo_differences(means, largest)))
    if len(means) < 2:
        raise ValueError("one cluster shows no spread between clusters; at least two are needed")
    return _error(means, sizes)


def clustered_t(values: Sequence[float], clusters: Sequence[Hashable], confidence: float = 0.95) -> PairedDifference:
    """The mean with its t-interval when examples come in clusters, of values that have no limits, such as seconds.

    Where a few values are much larger than the others, the mean of those that were seen is mostly too small, so the
    interval goes further to the side of the longer tail: to where that of Hall's transformation ends, which removes
    skewness (Journal of the Royal Statistical Society B 54 (1992)). It is infinite where no spread is seen; no p-value
    is worked out.

    Args:
        values: one per example; finite.
        clusters: which cluster each example belongs to.
        confidence: the share of such intervals that hold the true mean.

    Example:
        >>> [round(each, 2) for each in clustered_t([-0.1] * 38 + [1.9, 2.0], range(40))[:3]]
        [0.0, -0.14, 0.57]
    """
    means, sizes = cluster_means(values, clusters)
    found = _t_of_clusters(means, sizes, confidence)
    if math.isinf(found.low):
        return found
    parts = [(each - found.difference) * size for each, size in zip(means, sizes)]
    squares = math.fsum(part**2 for part in parts) / len(parts)
    skew = math.fsum(part**3 for part in parts) / len(parts) / squares**1.5 / math.sqrt(effective_number(sizes))
    width, error = interval_width(sizes, 1 - confidence), _error(means, sizes)
    low, high = (found.difference - error * _unskewed(end, skew / 3) for end in (width, -width))
    return found._replace(low=min(found.low, low), high=max(found.high, high))


def _unskewed(t: float, skew: float) -> float:
    """The quantile of a skewed mean, in standard errors, for that of one that is not: Hall's cubic, inverted.

    Args:
        t: the quantile.
        skew: a third of the skewness, over the root of the number of values.
    """
    if abs(skew) < 1e-9:
        return t
    return (math.cbrt(1 + 3 * skew * (t - skew / 2)) - 1) / skew


def clustered_interval(
    values: Iterable[float],
    clusters: Sequence[Hashable],
    confidence: float = 0.95,
    bounds: tuple[float, float] | None = None,
) -> tuple[float, float]:
    """The confidence interval of a mean when examples come in clusters: Student's t with the clustered error.

    Degrees of freedom are one less than there are clusters, and less where a few are much larger than the others: of 20
    documents with one question and one with 30 there are 1.7 of them, as what the large one comes to is seen once.
    Where two or three clusters are most of the examples, it is too narrow all the same (Cameron and Miller 2015,
    section VI). Clusters of one size are examples whose scores are their means, and get the interval of
    `mean_interval`. Between known limits, clusters of several sizes are added as scores are there, of the mean size.

    Args:
        values: one score per example.
        clusters: which cluster each example belongs to.
        confidence: the share of such intervals that hold the true mean.
        bounds: the least and the greatest possible score, as for `mean_interval`.

    Raises:
        ValueError: as `clustered_error`, but one cluster gives an infinite interval where the limits are not known; or
            a value is outside of the bounds.

    Example:
        >>> low, high = clustered_interval([0.9, 0.8, 0.2, 0.3, 0.6, 0.7], [1, 1, 2, 2, 3, 3])
        >>> round(low, 2), round(high, 2)
        (-0.18, 1.34)
    """
    numbers = finite_scores("values", values)
    limits = known_limits(bounds, numbers)
    means, sizes = cluster_means(numbers, clusters)
    if limits is None:
        return cut_off(_t_of_clusters(means, sizes, confidence)[1:3], bounds)
    if len(set(sizes)) == 1:
        return mean_interval(_cut(means, limits), confidence, limits)
    found = _t_of_clusters(*_with(means, sizes, pseudo_scores(limits)), confidence)
    found = found.around(math.fsum(numbers) / len(numbers))
    return max(limits[0], found.low), min(limits[1], found.high)


def clustered_difference(
    before: Iterable[float],
    after: Iterable[float],
    clusters: Sequence[Hashable],
    confidence: float = 0.95,
    bounds: tuple[float, float] | None = None,
    *,
    seed: int = 0,
) -> PairedDifference:
    """How much better `after` is than `before`, on the same examples, which come in clusters.

    The interval is that of `clustered_interval` for the differences: clusters of one size get what `paired_difference`
    gives for their means, and between known limits, two of the mean size are added to clusters of several sizes. The
    p-value is of the sign-flip test: when there is no difference, each cluster's sum of differences is as likely to
    have the opposite sign. It needs no formula for the error, and holds with few clusters, too (with fewer than 6, it
    never comes below 0.05).

    Args:
        before: the score of each example by the first program.
        after: the score of each example by the second one.
        clusters: which cluster each example belongs to.
        confidence: the share of such intervals that hold the true difference.
        bounds: the least and the greatest possible score, as for `mean_interval`.
        seed: of the test, where there are too many clusters to try all signs.

    Raises:
        ValueError: the three are not of the same length, or a score is not a finite number or outside of the bounds.

    Example:
        >>> before, after = [0, 0, 0, 1] * 8, [1, 1, 0, 1] * 8
        >>> found = clustered_difference(before, after, [n // 4 for n in range(32)])
        >>> found.difference, round(found.p_value, 4)
        (0.5, 0.0078)
    """
    first, second = finite_scores("before", before), finite_scores("after", after)
    same_length(first, second)
    limits = known_limits(bounds, first, second)
    differences = [new - old for old, new in zip(first, second)]
    means, sizes = cluster_means(differences, clusters)
    p_value = sign_flip([mean * size for mean, size in zip(means, sizes)], seed=seed)
    if limits is None:
        return _t_of_clusters(means, sizes, confidence)._replace(p_value=p_value)
    if len(set(sizes)) == 1:
        old, new = (_cut(cluster_means(each, clusters)[0], limits) for each in (first, second))
        return paired_difference(old, new, confidence, limits)._replace(p_value=p_value)
    largest = limits[1] - limits[0]
    found = _t_of_clusters(*_with(means, sizes, pseudo_differences(means, largest)), confidence)
    return found.around(math.fsum(differences) / len(differences)).within(largest)._replace(p_value=p_value)


def bootstrap_interval(
    values: Iterable[float],
    clusters: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
    *,
    resamples: int = 5000,
    seed: int = 0,
) -> tuple[float, float]:
    """The percentile bootstrap interval of a mean: clusters are drawn again with replacement, each as a whole.

    It follows the skew of the data, which a t-interval does not. The plain percentiles are too narrow by a factor of
    about sqrt((G - 1) / G) and by the difference between normal and t; Hesterberg's expanded percentiles, used here,
    make up for both.

    Args:
        values: one per example; for a comparison, the differences of two programs' scores.
        clusters: which cluster each example belongs to; None when each stands for itself.
        confidence: the share of such intervals that hold the true mean.
        resamples: how many samples are drawn.
        seed: equal seeds give equal intervals.

    Raises:
        ValueError: there are fewer than two clusters, not as many clusters as values, or a value is not finite.

    Example:
        >>> low, high = bootstrap_interval([0, 0, 1, 1, 1, 0, 1, 1, 0, 1], seed=1)
        >>> round(low, 1), round(high, 1)
        (0.2, 0.9)
    """
    check_confidence(confidence)
    if resamples < 1:
        raise ValueError(f"at least one sample must be drawn, got resamples={resamples}")
    numbers = finite_scores("values", values)
    sums, sizes = cluster_sums(numbers, range(len(numbers)) if clusters is None else clusters)
    count = len(sums)
    if count < 2:
        raise ValueError("one cluster shows no spread between clusters; at least two are needed")
    source = random.Random(seed)
    if len(set(sizes)) == 1:
        means = [sum(source.choices(sums, k=count)) / (count * sizes[0]) for _ in range(resamples)]
    else:  # a sum and a size in one complex number, so that they are drawn and added together
        pairs = [complex(total, size) for total, size in zip(sums, sizes)]
        drawn = (sum(source.choices(pairs, k=count)) for _ in range(resamples))
        means = [both.real / both.imag for both in drawn]
    means.sort()
    tail = normal_cdf(-math.sqrt(count / (count - 1)) * t_quantile(0.5 + confidence / 2, count - 1))
    return _percentile(means, tail), _percentile(means, 1 - tail)


def effective_number(sizes: Sequence[float]) -> float:
    """So many clusters of one size tell as much of a mean, where those of a cluster score alike.

    Args:
        sizes: of the clusters.

    Example:
        >>> effective_number([5] * 21), round(effective_number([30, *[1] * 20]), 2)
        (21.0, 2.72)
    """
    return math.fsum(sizes) ** 2 / math.fsum(size * size for size in sizes)


def interval_width(sizes: Sequence[float], alpha: float) -> float:
    """Half of the interval of a mean in standard errors; infinite where one cluster is as good as all there is.

    Args:
        sizes: of the clusters.
        alpha: the share of such intervals that miss the mean.

    Example:
        >>> round(interval_width([5] * 21, 0.05), 2), round(interval_width([30, *[1] * 20], 0.05), 2)
        (2.09, 5.06)
    """
    width = t_quantile(1 - alpha / 2, effective_number(sizes) - 1)
    return width if width < _WIDEST else math.inf


def _error(means: Sequence[float], sizes: Sequence[float]) -> float:
    n, groups = math.fsum(sizes), len(means)
    mean = math.fsum(each * size for each, size in zip(means, sizes)) / n
    squares = math.fsum((size * (each - mean)) ** 2 for each, size in zip(means, sizes))
    return math.sqrt(squares * groups / (groups - 1)) / n


def _cut(means: list[float], limits: tuple[float, float]) -> list[float]:
    """The means without what rounding puts beyond the limits."""
    return [min(max(mean, limits[0]), limits[1]) for mean in means]


def _with(means: list[float], sizes: list[int], added: list[float]) -> tuple[list[float], list[float]]:
    """The clusters with further ones of the mean size."""
    return means + added, [*sizes, *[sum(sizes) / len(sizes)] * len(added)]


def _t_of_clusters(means: Sequence[float], sizes: Sequence[float], confidence: float) -> PairedDifference:
    """As `clustered_t`, of the means of the clusters and their sizes."""
    if max(means) - min(means) <= 1e-12 * max(1.0, *map(abs, means)):
        return t_test(means, confidence)
    check_confidence(confidence)
    mean = math.fsum(each * size for each, size in zip(means, sizes)) / math.fsum(sizes)
    half = interval_width(sizes, 1 - confidence) * _error(means, sizes)
    return PairedDifference(mean, mean - half, mean + half, 1.0)


def _percentile(ordered: Sequence[float], share: float) -> float:
    position = share * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)
