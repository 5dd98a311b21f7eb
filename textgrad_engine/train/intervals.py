"""The interval of one mean score, and of the mean difference of two programs on the same examples.

What is measured is a mean over examples, and two programs are compared on the same examples, so differences are taken
example by example (Miller, "Adding Error Bars to Evals", arXiv:2411.00640). Scores of 0 and 1 get the methods made for
proportions, which hold where the usual one fails: few examples, or rates near 0 and 1. Other scores get Student's t,
with what makes these methods hold, wherever the worst and the best score are known (`train.pseudo`).

Sources: Wilson, JASA 22 (1927); McNemar, Psychometrika 12 (1947); Newcombe, Statistics in Medicine 17 (1998);
Fagerland, Lydersen and Laake, BMC Medical Research Methodology 13:91 (2013) and Statistics in Medicine 33 (2014);
Bonett and Price, Journal of Educational and Behavioral Statistics 37 (2012).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from textgrad_engine.train.distributions import incomplete_beta, normal_quantile, t_quantile, t_upper
from textgrad_engine.train.pseudo import cut_off, known_limits, only_at, pseudo_differences, pseudo_scores
from textgrad_engine.train.scores import check_confidence, finite_scores, same_length

Verdict = Literal["better", "worse", "not shown"]
"""What a comparison may claim."""


class PairedDifference(NamedTuple):
    """The mean of ``after - before`` over the examples.

    Attributes:
        difference: the mean difference; above 0 when `after` is better.
        low: lower end of its confidence interval.
        high: upper end.
        p_value: how probable a difference at least as large is when there is none (two-sided).
    """

    difference: float
    low: float
    high: float
    p_value: float

    def around(self, difference: float) -> PairedDifference:
        """The same with the difference that was seen.

        What is added to a few differences draws the centre to 0, but the interval still holds the difference itself.
        """
        return self._replace(difference=difference, low=min(self.low, difference), high=max(self.high, difference))

    def within(self, largest: float) -> PairedDifference:
        """The same without what no two scores can differ by."""
        return self._replace(low=max(self.low, -largest), high=min(self.high, largest))


def wilson_interval(successes: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """The interval of a proportion, by Wilson's score method (1927).

    Unlike ``p ± z * se`` it stays inside of 0 and 1 and has a width at 0 and n successes; Newcombe (1998) compares it
    with six others.

    Args:
        successes: how many of the trials succeeded.
        n: how many trials there were.
        confidence: the share of such intervals that hold the true value.

    Raises:
        ValueError: n is 0, `successes` is not between 0 and n, or `confidence` not between 0 and 1.

    Example:
        >>> low, high = wilson_interval(81, 263)
        >>> round(low, 4), round(high, 4)
        (0.2553, 0.3662)
    """
    check_confidence(confidence)
    if n < 1:
        raise ValueError(f"there is no interval without examples, got n={n}")
    if not 0 <= successes <= n:
        raise ValueError(f"successes must be between 0 and n={n}, got {successes}")
    z = normal_quantile(0.5 + confidence / 2)
    share = successes / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    # Exact at the ends, where rounding would leave 1e-17.
    return (0.0 if successes == 0 else centre - half), (1.0 if successes == n else centre + half)


def mean_interval(
    values: Iterable[float], confidence: float = 0.95, bounds: tuple[float, float] | None = None
) -> tuple[float, float]:
    """The confidence interval of a mean: Wilson's where all scores are at their limits, else Student's t.

    Between known limits two scores are added at each before the t-interval is taken (`train.pseudo`), and it is cut off
    there. Where the limits are not known, one value shows no spread, and values that are all equal show none either:
    their interval is infinite.

    Args:
        values: one score per example.
        confidence: the share of such intervals that hold the true mean.
        bounds: the least and the greatest possible score; None where nobody knows. Scores of 0 and 1 alone are a
            proportion then.

    Raises:
        ValueError: there are no values, or one is not a finite number or outside of the bounds.

    Example:
        >>> low, high = mean_interval([0.2, 0.4, 0.6, 0.9])
        >>> round(low, 3), round(high, 3)
        (0.05, 1.0)
        >>> low, high = mean_interval([5, 5, 5, 5, 4, 5], bounds=(1.0, 5.0))
        >>> round(low, 3), round(high, 3)
        (2.91, 5.0)
    """
    scores = finite_scores("values", values)
    limits = known_limits(bounds, scores)
    if limits is None:
        _, low, high, _ = t_test(scores, confidence)
        return cut_off((low, high), bounds)
    worst, best = limits
    if only_at(limits, scores):
        low, high = wilson_interval(sum(score == best for score in scores), len(scores), confidence)
        return worst + (best - worst) * low, worst + (best - worst) * high
    found = t_test([*scores, *pseudo_scores(limits)], confidence).around(math.fsum(scores) / len(scores))
    return cut_off((found.low, found.high), limits)


def paired_difference(
    before: Iterable[float],
    after: Iterable[float],
    confidence: float = 0.95,
    bounds: tuple[float, float] | None = None,
) -> PairedDifference:
    """How much better `after` is than `before`, on the same examples in the same order.

    Scores that are all at one of their two limits, such as 0 and 1: the p-value is McNemar's exact one, and the
    interval is Bonett and Price's adjusted one (2012), which Fagerland, Lydersen and Laake (2014) recommend: Wald's,
    after one imaginary example is added to each of the two kinds of changed ones. Other scores between known limits:
    the paired t-test after one difference is added for each direction (`train.pseudo`). Where the limits are not known:
    the paired t-test; differences that are all equal show no spread then, so their interval is infinite, and p is that
    of the sign test.

    Args:
        before: the score of each example by the first program.
        after: the score of each example by the second one.
        confidence: the share of such intervals that hold the true difference.
        bounds: the least and the greatest possible score, as for `mean_interval`.

    Raises:
        ValueError: there are no scores, more of the one than of the other, or one is not a finite number or outside of
            the bounds.

    Example:
        >>> result = paired_difference([0, 0, 0, 0, 1, 0, 0, 0, 1, 0], [1, 1, 1, 0, 1, 1, 1, 1, 1, 1])
        >>> result.difference, round(result.p_value, 4)
        (0.7, 0.0156)
        >>> round(result.low, 2), round(result.high, 2)
        (0.22, 0.95)
    """
    check_confidence(confidence)
    first, second = finite_scores("before", before), finite_scores("after", after)
    same_length(first, second)
    differences = [new - old for old, new in zip(first, second)]
    limits = known_limits(bounds, first, second)
    if limits is None:
        return t_test(differences, confidence)
    largest, n = limits[1] - limits[0], len(first)
    mean = math.fsum(differences) / n
    if not only_at(limits, first, second):
        added = pseudo_differences(differences, largest)
        return t_test([*differences, *added], confidence).around(mean).within(largest)
    gained, lost = sum(each > 0 for each in differences), sum(each < 0 for each in differences)
    up, down = (gained + 1) / (n + 2), (lost + 1) / (n + 2)
    half = normal_quantile(0.5 + confidence / 2) * math.sqrt((up + down - (up - down) ** 2) / (n + 2))
    low, high = largest * (up - down - half), largest * (up - down + half)
    return PairedDifference(mean, low, high, mcnemar(gained, lost)).around(mean).within(largest)


def mcnemar(b: int, c: int, mid_p: bool = False) -> float:
    """The exact McNemar test: the two-sided p-value of b changes one way and c the other.

    When nothing has changed, each of the ``b + c`` examples that differ is as likely to be of either kind.

    Args:
        b: examples that only the first program solves.
        c: examples that only the second one solves.
        mid_p: count the outcome itself by half. The exact test is cautious; this one is nearer to its level and may
            pass it by a little (Fagerland, Lydersen and Laake 2013).

    Raises:
        ValueError: a count is negative.

    Example:
        >>> round(mcnemar(1, 7), 4), round(mcnemar(1, 7, mid_p=True), 4)
        (0.0703, 0.0391)
    """
    if b < 0 or c < 0:
        raise ValueError(f"counts are at least 0, got b={b}, c={c}")
    n, k = b + c, min(b, c)
    if n == 0:
        return 1.0
    at_k = math.exp(math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) - n * math.log(2))
    if b == c:
        return 1.0 - at_k / 2 if mid_p else 1.0
    both = min(1.0, 2 * incomplete_beta(n - k, k + 1, 0.5))  # P(X <= k) of a binomial, as a beta integral
    return both - at_k if mid_p else both


def verdict(low: float, high: float, p_value: float, confidence: float = 0.95) -> Verdict:
    """What may be said: better or worse only when the interval leaves out 0 and the test agrees.

    Args:
        low: lower end of the interval of ``after - before``.
        high: upper end.
        p_value: of the same comparison.
        confidence: of the interval; the test must reach ``1 - confidence``.

    Raises:
        ValueError: an argument is not a number, the ends are in the wrong order, or p is no probability.

    Example:
        >>> verdict(0.02, 0.11, 0.004), verdict(-0.02, 0.11, 0.2), verdict(0.001, 0.11, 0.06)
        ('better', 'not shown', 'not shown')
    """
    check_confidence(confidence)
    if not low <= high or not 0 <= p_value <= 1:
        raise ValueError(f"expected low <= high and a p-value of 0 to 1, got {low}, {high}, p={p_value}")
    # With a tolerance: 1 - 0.95 is a little more than 0.05, 1 - 0.9 a little less than 0.1.
    if p_value > 1 - confidence + 1e-12:
        return "not shown"
    if low > 0:
        return "better"
    return "worse" if high < 0 else "not shown"


def t_test(values: Sequence[float], confidence: float = 0.95) -> PairedDifference:
    """The mean, its t-interval, and the p-value of the mean being 0.

    Values that are all equal show no spread: then the interval is infinite, and p is that of the sign test.

    Args:
        values: the differences; finite.
        confidence: the share of such intervals that hold the true mean.

    Example:
        >>> [round(each, 3) for each in t_test([1, 2, 3, 4, 5])]
        [3.0, 1.037, 4.963, 0.013]
    """
    check_confidence(confidence)
    n = len(values)
    mean = math.fsum(values) / n
    squares = math.fsum((value - mean) ** 2 for value in values)
    # Differences of decimal scores are equal but for rounding: 0.9 - 0.8 is not 0.3 - 0.2.
    if math.sqrt(squares / n) <= 1e-12 * max(1.0, *(abs(value) for value in values)):
        p_value = 1.0 if abs(mean) <= 1e-12 else 2.0 ** (1 - n)
        return PairedDifference(mean, -math.inf, math.inf, p_value)
    error = math.sqrt(squares / (n - 1) / n)
    half = t_quantile(0.5 + confidence / 2, n - 1) * error
    return PairedDifference(mean, mean - half, mean + half, min(1.0, 2 * t_upper(abs(mean) / error, n - 1)))
