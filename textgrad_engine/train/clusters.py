"""Examples that belong together, such as several questions about one document: they are fewer than they look.

Two questions about one text are often both easy or both hard, so a standard error that takes them as independent is too
small, in published evaluations by up to a factor of three (Miller, arXiv:2411.00640). Here whole clusters count.

Sources: Miller's clustered standard error, with the small-sample factor and the degrees of freedom of Cameron and
Miller, "A Practitioner's Guide to Cluster-Robust Inference", Journal of Human Resources 50 (2015); the sign-flip test
of cluster sums, Cameron, Gelbach and Miller, Review of Economics and Statistics 90 (2008); the bootstrap of clusters,
Efron and Tibshirani, "An Introduction to the Bootstrap" (1993), with the expanded percentiles of Hesterberg,
arXiv:1411.5279.
"""

from __future__ import annotations

import math
import random
from collections.abc import Hashable, Iterable, Sequence

from textgrad_engine.train.distributions import normal_cdf, t_quantile
from textgrad_engine.train.intervals import PairedDifference, paired_difference, t_test, wilson_interval
from textgrad_engine.train.permutation import sign_flip
from textgrad_engine.train.scores import check_confidence, cluster_sums, finite_scores, same_length

__all__ = ["bootstrap_interval", "clustered_difference", "clustered_error", "clustered_interval"]


def clustered_error(values: Iterable[float], clusters: Sequence[Hashable]) -> float:
    """The standard error of a mean when examples come in clusters.

    It is the root of ``sum over clusters of (sum of deviations from the mean)²``, times G / (G - 1) for G clusters,
    over n. With every example in a cluster of its own it is the usual s / sqrt(n).

    Args:
        values: one per example: scores, or differences of two programs' scores.
        clusters: which cluster each example belongs to.

    Raises:
        ValueError: there are fewer than two clusters, not as many clusters as values, or a value is not finite.

    Example:
        >>> round(clustered_error([1, 1, 0, 0], ["a", "a", "b", "b"]), 3)
        0.5
        >>> round(clustered_error([1, 1, 0, 0], ["a", "b", "c", "d"]), 3)
        0.289
    """
    numbers = finite_scores("values", values)
    sums, sizes = cluster_sums(numbers, clusters)
    if len(sums) < 2:
        raise ValueError("one cluster shows no spread between clusters; at least two are needed")
    return _error(sums, sizes)


def clustered_interval(
    values: Iterable[float], clusters: Sequence[Hashable], confidence: float = 0.95
) -> tuple[float, float]:
    """The confidence interval of a mean when examples come in clusters: Student's t with the clustered error.

    Degrees of freedom are one less than there are clusters. With few clusters of very different sizes it is too
    narrow (Cameron and Miller 2015, section VI). Where every cluster has the same mean, the clusters are taken as the
    examples: by Wilson's interval if all scores are 0 or all are 1, else as in `mean_interval`.

    Args:
        values: one score per example.
        clusters: which cluster each example belongs to.
        confidence: the share of such intervals that hold the true mean.

    Raises:
        ValueError: as `clustered_error`, but one cluster gives an infinite interval.

    Example:
        >>> low, high = clustered_interval([0.9, 0.8, 0.2, 0.3, 0.6, 0.7], [1, 1, 2, 2, 3, 3])
        >>> round(low, 2), round(high, 2)
        (-0.18, 1.34)
    """
    numbers = finite_scores("values", values)
    sums, sizes = cluster_sums(numbers, clusters)
    if set(numbers) in ({0.0}, {1.0}):
        check_confidence(confidence)
        return wilson_interval(len(sums) if numbers[0] else 0, len(sums), confidence)
    found = _t_of_clusters(sums, sizes, confidence)
    return found.low, found.high


def clustered_difference(
    before: Iterable[float],
    after: Iterable[float],
    clusters: Sequence[Hashable],
    confidence: float = 0.95,
    *,
    seed: int = 0,
) -> PairedDifference:
    """How much better `after` is than `before`, on the same examples, which come in clusters.

    The interval is that of `clustered_interval` for the differences. The p-value is of the sign-flip test: when there
    is no difference, each cluster's sum of differences is as likely to have the opposite sign. It needs no formula for
    the error, and holds with few clusters, too (with fewer than 6, it never comes below 0.05). Where scores are 0 or 1
    and all examples change alike, or none does, the interval is that of `paired_difference` with the clusters as the
    examples.

    Args:
        before: the score of each example by the first program.
        after: the score of each example by the second one.
        clusters: which cluster each example belongs to.
        confidence: the share of such intervals that hold the true difference.
        seed: of the test, where there are too many clusters to try all signs.

    Raises:
        ValueError: the three are not of the same length, or a score is not a finite number.

    Example:
        >>> before, after = [0, 0, 0, 1] * 8, [1, 1, 0, 1] * 8
        >>> found = clustered_difference(before, after, [n // 4 for n in range(32)])
        >>> found.difference, round(found.p_value, 4)
        (0.5, 0.0078)
    """
    first, second = finite_scores("before", before), finite_scores("after", after)
    same_length(first, second)
    differences = [new - old for old, new in zip(first, second)]
    sums, sizes = cluster_sums(differences, clusters)
    found = _t_of_clusters(sums, sizes, confidence)
    if found.low == found.high and len(set(differences)) == 1 and {*first, *second} <= {0.0, 1.0}:
        # That none of nine clusters changes does not mean that none ever does: they are taken as the examples.
        old, new = [first[0]] * len(sums), [second[0]] * len(sums)
        found = paired_difference(old, new, confidence)
    return found._replace(p_value=sign_flip(sums, seed=seed))


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


def _error(sums: Sequence[float], sizes: Sequence[int]) -> float:
    n, groups = sum(sizes), len(sums)
    mean = math.fsum(sums) / n
    squares = math.fsum((total - mean * size) ** 2 for total, size in zip(sums, sizes))
    return math.sqrt(squares * groups / (groups - 1)) / n


def _t_of_clusters(sums: Sequence[float], sizes: Sequence[int], confidence: float) -> PairedDifference:
    """The mean with its t-interval; the p-value is of the sign test when no spread is seen, and 1 otherwise."""
    means = [total / size for total, size in zip(sums, sizes)]
    if max(means) - min(means) <= 1e-12 * max(1.0, *map(abs, means)):
        return t_test(means, confidence)
    check_confidence(confidence)
    mean = math.fsum(sums) / sum(sizes)
    half = t_quantile(0.5 + confidence / 2, len(sums) - 1) * _error(sums, sizes)
    return PairedDifference(mean, mean - half, mean + half, 1.0)


def _percentile(ordered: Sequence[float], share: float) -> float:
    position = share * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)
