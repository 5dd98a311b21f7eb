"""Tests that assume nothing about how scores are distributed, one candidate or many against the same baseline.

When two programs are equally good, the difference on an example is as likely to have the opposite sign. So all signs
are flipped at random, and a result counts as chance as often as flipped ones are at least as large (Fisher, "The Design
of Experiments" (1935), section 21). Of many candidates the best one looks good by luck alone; each resample therefore
flips the same examples for all of them and takes their maximum, which keeps the correlation that they have by sharing
examples and baseline: the step-down max-T of Westfall and Young, "Resampling-Based Multiple Testing" (1993), algorithm
4.1 in the form of Ge, Dudoit and Speed, Test 12 (2003). A p-value from random resamples counts the data as one of them,
so it is never 0: Phipson and Smyth, Statistical Applications in Genetics and Molecular Biology 9 (2010).
"""

from __future__ import annotations

import math
import operator
import random
from collections.abc import Hashable, Iterable, Mapping, Sequence

from textgrad_engine.train.scores import cluster_sums, finite_scores, same_length

_TIE = 1e-9  # statistics nearer than this are equal but for rounding


def sign_flip(differences: Iterable[float], *, resamples: int = 10_000, seed: int = 0) -> float:
    """The two-sided p-value of a mean difference being 0, by flipping signs.

    All signs are tried where that is no more work than the resamples; for differences of -1, 0 and 1 that is the
    exact McNemar test.

    Args:
        differences: one per example, or the sum of each cluster.
        resamples: how many times the signs are drawn.
        seed: equal seeds give equal values.

    Raises:
        ValueError: there are none, or one is not a finite number.

    Example:
        >>> sign_flip([1, 1, 1, 1, 1, 1, -1, 0])
        0.125
    """
    numbers = finite_scores("differences", differences)
    return max_t([0.0] * len(numbers), [numbers], resamples=resamples, seed=seed)[0]


def max_t(
    baseline: Iterable[float],
    candidates: Iterable[Iterable[float]],
    *,
    clusters: Sequence[Hashable] | None = None,
    resamples: int = 10_000,
    seed: int = 0,
) -> tuple[float, ...]:
    """The p-value of each candidate against the baseline, corrected for how many candidates were tried.

    If none of them differs from the baseline, the chance that any p-value comes to 0.05 or less is 5%, however many
    there are; and those that do differ do not weaken that promise for the others.

    Args:
        baseline: the score of each example by the program that all are compared with.
        candidates: for each candidate, its scores of the same examples in the same order.
        clusters: which cluster each example belongs to; the signs of a cluster are flipped together.
        resamples: how many times the signs are drawn; all are tried where that is no more work.
        seed: equal seeds give equal values.

    Returns:
        The adjusted two-sided p-value of each candidate, in their order.

    Raises:
        ValueError: a candidate has not as many scores as the baseline, or a score is not a finite number.

    Example:
        >>> baseline = [0.0] * 10 + [1.0] * 2
        >>> good, useless = [1.0] * 8 + [0.0] * 2 + [1.0] * 2, [0.0] * 11 + [1.0]
        >>> [round(p, 4) for p in max_t(baseline, [good, useless])]
        [0.0078, 1.0]
    """
    if resamples < 1:
        raise ValueError(f"signs must be drawn at least once, got resamples={resamples}")
    first = finite_scores("baseline", baseline)
    rows = []
    for index, candidate in enumerate(candidates):
        scores = finite_scores(f"candidates[{index}]", candidate)
        same_length(first, scores)
        differences = [new - old for old, new in zip(first, scores)]
        rows.append(differences if clusters is None else cluster_sums(differences, clusters)[0])
    # The sum of squares does not change with signs, so |sum| / root of it orders resamples as |t| does.
    observed = [_statistic(row) for row in rows]
    units = sorted(filter(None, map(_turned, zip(*rows))))
    rows = [[unit[index] for unit in units] for index in range(len(rows))]
    flips, exact = _flips(len(units), resamples, seed)
    order = sorted(range(len(rows)), key=lambda index: (observed[index], index))
    largest = [0.0] * len(flips)
    adjusted = [1.0] * len(rows)
    for index in order:  # from the weakest up, so that each is compared with the maximum of those below it and itself
        largest = list(map(max, largest, _flipped(rows[index], flips)))
        least = observed[index] - _TIE
        reached = sum(value >= least for value in largest)
        adjusted[index] = reached / len(flips) if exact else (1 + reached) / (1 + len(flips))
    for stronger, weaker in zip(order[:0:-1], order[-2::-1]):  # from the strongest down: none has less than a stronger
        adjusted[weaker] = max(adjusted[weaker], adjusted[stronger])
    return tuple(adjusted)


def _turned(unit: Sequence[float]) -> tuple[float, ...]:
    """A unit with the sign that makes its first difference a rise; empty where there is none.

    Signs are drawn for units by their places. So units are put in one order, whatever that of the examples is, and
    whichever of two programs is the baseline: else equal data have p-values that differ by the luck of the draw.
    """
    first = next(filter(None, unit), 0.0)
    return tuple([-each for each in unit] if first < 0 else unit) if first else ()


def _flips(units: int, resamples: int, seed: int) -> tuple[list[int], bool]:
    """Which units are flipped in each resample, one bit each; and whether these are all there are."""
    if units < 63 and 2 ** max(0, units - 1) <= resamples:
        return list(range(2 ** max(0, units - 1))), True  # the other half mirrors these
    source = random.Random(seed)
    return [source.getrandbits(units) for _ in range(resamples)], False


def _statistic(row: Sequence[float]) -> float:
    scale = math.sqrt(math.fsum(value * value for value in row))
    return abs(math.fsum(row)) / scale if scale else 0.0


def _flipped(row: Sequence[float], flips: Sequence[int]) -> list[float]:
    """The statistic of a row in each resample, with the signs of some units flipped."""
    scale = math.sqrt(math.fsum(value * value for value in row))
    if not scale:
        return [0.0] * len(flips)
    sizes: dict[float, int] = {}
    for unit, value in enumerate(row):
        if value:
            sizes[abs(value)] = sizes.get(abs(value), 0) | 1 << unit
    few = len(sizes) <= 2 + len(row) // 48  # from there on counting is slower, measured with 100 to 2,000 examples
    totals = _by_size(row, sizes, flips) if few else _by_eights(row, flips)
    return [abs(total) / scale for total in totals]


def _by_size(row: Sequence[float], sizes: Mapping[float, int], flips: Sequence[int]) -> list[float]:
    """The sum of each resample, where differences have few sizes: units of one size are counted, as bits."""
    negative = sum(1 << unit for unit, value in enumerate(row) if value < 0)
    turned = [signs ^ negative for signs in flips]  # the units that count below 0
    totals = [math.fsum(map(abs, row))] * len(flips)
    for size, units in sizes.items():
        twice = 2 * size
        totals = [total - twice * (signs & units).bit_count() for total, signs in zip(totals, turned)]
    return totals


def _by_eights(row: Sequence[float], flips: Sequence[int]) -> list[float]:
    """The sum of each resample, from sums of eight units for each of the 256 ways to flip them.

    Eight units after the other, as one table stays in the processor's cache, and those of 5,000 units do not: of so
    many it is four times as fast. Where all of eight are 0, as of a candidate that was raced on few examples, there is
    nothing to look up.
    """
    width = -(-len(row) // 8)
    packed = b"".join([signs.to_bytes(width, "little") for signs in flips])
    totals = [0.0] * len(flips)
    for place in range(width):
        eight = row[8 * place : 8 * place + 8]
        if any(eight):
            table = [0.0]
            for value in eight:
                table = [total + value for total in table] + [total - value for total in table]
            totals = list(map(operator.add, totals, map(table.__getitem__, packed[place::width])))
    return totals
