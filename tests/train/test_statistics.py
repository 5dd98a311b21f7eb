"""Intervals and tests: against published values, exact counts, and simulated data with a known truth."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textgrad_engine.train import statistics
from textgrad_engine.train.distributions import t_upper
from textgrad_engine.train.statistics import (
    incomplete_beta,
    mcnemar,
    mean_interval,
    normal_cdf,
    normal_quantile,
    paired_difference,
    t_cdf,
    t_quantile,
    verdict,
    wilson_interval,
)

NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: wilson_interval(0, 0), "no interval without examples, got n=0"),
        (lambda: wilson_interval(3, 2), "between 0 and n=2, got 3"),
        (lambda: wilson_interval(-1, 2), "got -1"),
        (lambda: wilson_interval(1, 2, 95), "confidence is between 0 and 1, such as 0.95, got 95"),
        (lambda: wilson_interval(1, 2, NAN), "confidence"),
        (lambda: mean_interval([]), "values is empty"),
        (lambda: mean_interval([0.5, NAN]), r"values\[1\] is nan, which is no score"),
        (lambda: mean_interval([0.5, None]), r"values\[1\] is None, as of an unanswered example; leave such out"),  # type: ignore[list-item]
        (lambda: mean_interval([INF, 0.5]), r"values\[0\] is inf"),
        (lambda: mean_interval([0.5, 1.5], bounds=(0, 1)), "outside of the bounds"),
        (lambda: mean_interval([0.5, 0.7], 1.0), "confidence"),
        (lambda: paired_difference([], []), "before is empty"),
        (lambda: paired_difference([1, 0], [1]), "got 2 before and 1 after"),
        (lambda: paired_difference([1.0], [NAN]), r"after\[0\] is nan"),
        (lambda: paired_difference([1, 0], [0, 0], 0), "confidence"),
        (lambda: mcnemar(-1, 2), "at least 0, got b=-1, c=2"),
        (lambda: verdict(0.2, 0.1, 0.01), "low <= high"),
        (lambda: verdict(NAN, 0.1, 0.01), "low <= high"),
        (lambda: verdict(0.0, 0.1, NAN), "p-value"),
        (lambda: verdict(0.0, 0.1, 0.01, 95), "confidence"),
        (lambda: normal_quantile(0), "above 0 and below 1, got 0"),
        (lambda: normal_quantile(NAN), "got nan"),
        (lambda: t_quantile(0.5, 0), "df=0"),
        (lambda: t_cdf(1, NAN), "df=nan"),
        (lambda: t_cdf(NAN, 3), "x is not a number"),
        (lambda: incomplete_beta(0, 1, 0.5), "a > 0"),
        (lambda: incomplete_beta(1, 1, 1.5), "x between 0 and 1"),
    ],
)
def test_what_has_no_answer_is_refused(call: Callable[[], object], message: str) -> None:
    """A missing or broken score never becomes a number in a report."""
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    ("p", "value"),
    [(0.9, 1.281552), (0.95, 1.644854), (0.975, 1.959964), (0.99, 2.326348), (0.995, 2.575829), (0.9995, 3.290527)],
)
def test_normal_quantiles_are_those_of_the_tables(p: float, value: float) -> None:
    """Published values to six digits, in both tails."""
    assert normal_quantile(p) == pytest.approx(value, abs=1e-6)
    assert normal_quantile(1 - p) == pytest.approx(-value, abs=1e-6)
    assert normal_cdf(value) == pytest.approx(p, abs=1e-6)


@pytest.mark.parametrize(
    ("df", "p", "value"),
    [
        (1, 0.975, 12.706205), (2, 0.975, 4.302653), (3, 0.975, 3.182446), (4, 0.95, 2.131847), (5, 0.975, 2.570582),
        (5, 0.995, 4.032143), (9, 0.995, 3.249836), (10, 0.9, 1.372184), (10, 0.975, 2.228139), (20, 0.95, 1.724718),
        (30, 0.975, 2.042272), (60, 0.995, 2.660283), (120, 0.975, 1.979930), (INF, 0.975, 1.959964),
    ],
)  # fmt: skip
def test_t_quantiles_are_those_of_the_tables(df: float, p: float, value: float) -> None:
    """Published values to six digits, in both tails."""
    assert t_quantile(p, df) == pytest.approx(value, abs=1e-6)
    assert t_quantile(1 - p, df) == pytest.approx(-value, abs=1e-6)
    assert t_cdf(value, df) == pytest.approx(p, abs=1e-6)


@given(x=st.floats(-50, 50))
def test_t_has_its_closed_forms(x: float) -> None:
    """With 1, 2 and 4 degrees of freedom the distribution can be written down."""
    assert t_cdf(x, 1) == pytest.approx(0.5 + math.atan(x) / math.pi, abs=1e-9)
    assert t_cdf(x, 2) == pytest.approx(0.5 + x / (2 * math.sqrt(2 + x * x)), abs=1e-9)
    u = x / math.sqrt(1 + x * x / 4)
    assert t_cdf(x, 4) == pytest.approx(0.5 + 3 / 8 * u * (1 - u * u / 12), abs=1e-9)


@given(p=st.floats(1e-6, 1 - 1e-6), df=st.floats(0.5, 1e6))
def test_quantiles_undo_distributions(p: float, df: float) -> None:
    """Over the whole range of p and degrees of freedom."""
    assert t_cdf(t_quantile(p, df), df) == pytest.approx(p, abs=1e-7)
    assert normal_cdf(normal_quantile(p)) == pytest.approx(p, abs=1e-12)


def test_the_far_tails_are_finite() -> None:
    """Extreme values neither overflow nor hang."""
    assert t_cdf(INF, 3) == 1
    assert t_cdf(-INF, 3) == 0
    assert t_cdf(1e200, 3) == 1
    assert normal_quantile(1e-300) == pytest.approx(-37.0471, abs=1e-4)
    assert t_quantile(0.5, 7) == normal_quantile(0.5) == 0


@pytest.mark.parametrize(
    ("x", "df", "share"), [(12, 700, 1.329525e-30), (40, 5000, 4.207425e-304), (9, 40, 1.840082e-11)]
)
def test_the_digits_of_a_small_tail_are_there(x: float, df: float, share: float) -> None:
    """Also where the square of x is below df: of thousands of examples a clear difference never has a p of 0."""
    assert t_upper(x, df) == pytest.approx(share, rel=1e-3)
    changes = [0.1 * (n % 10 < 2) for n in range(5000)]
    assert 0 < paired_difference([0.0] * 5000, changes, bounds=(0.0, 1.0)).p_value < 1e-100


@given(n=st.integers(1, 60), k=st.integers(0, 59), p=st.floats(0.01, 0.99))
def test_incomplete_beta_counts_a_binomial(n: int, k: int, p: float) -> None:
    """P(X <= k) of a binomial, added up term by term."""
    k %= n
    exact = math.fsum(math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k + 1))
    assert incomplete_beta(n - k, k + 1, 1 - p) == pytest.approx(exact, abs=1e-11)


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilson_gives_what_newcombe_published(successes: int, n: int, low: float, high: float) -> None:
    """The four examples of Newcombe (1998), table I."""
    assert wilson_interval(successes, n) == pytest.approx((low, high), abs=5e-5)
    mirrored = wilson_interval(n - successes, n)
    assert mirrored == pytest.approx((1 - high, 1 - low), abs=5e-5)


def test_wilson_ends_exactly_at_none_and_all() -> None:
    """No 1e-17 where 0 is meant, and still a width."""
    assert wilson_interval(0, 1)[0] == 0.0
    assert wilson_interval(3, 3)[1] == 1.0
    assert wilson_interval(3, 3)[0] < 0.5


def binomial(n: int, p: float) -> list[float]:
    return [math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]


@pytest.mark.parametrize("n", [10, 40, 100])
def test_wilson_covers_the_true_rate(n: int) -> None:
    """Exact coverage, over rates of 2% to 98%: 95% on average, never far below."""
    intervals = [wilson_interval(k, n) for k in range(n + 1)]
    coverage = []
    for percent in range(2, 99):
        p = percent / 100
        inside = [low <= p <= high for low, high in intervals]
        coverage.append(math.fsum(weight for weight, ok in zip(binomial(n, p), inside) if ok))
    assert sum(coverage) / len(coverage) == pytest.approx(0.95, abs=0.012)
    assert min(coverage) > 0.83


@pytest.mark.parametrize("n", [5, 30])
def test_the_mean_interval_covers_the_true_mean(n: int) -> None:
    """Normal scores of known mean: 95 of 100 intervals hold it."""
    source = random.Random(n)
    trials = 1200
    held = 0
    for _ in range(trials):
        low, high = mean_interval([source.gauss(0.6, 0.2) for _ in range(n)])
        held += low <= 0.6 <= high
    assert held / trials == pytest.approx(0.95, abs=0.02)


def test_one_score_shows_no_spread() -> None:
    """One example gives no certainty, and known bounds are not passed."""
    assert mean_interval([0.7]) == (-INF, INF)
    assert mean_interval([0.7], bounds=(0, 1)) == (0, 1)
    assert mean_interval([1]) == wilson_interval(1, 1)
    assert paired_difference([0.2], [0.9])[1:] == (-INF, INF, 1.0)


def test_equal_scores_between_unknown_limits_say_nothing_of_others() -> None:
    """However many there are: no width of zero, and so no verdict."""
    assert mean_interval([0.7] * 5) == mean_interval([0.7] * 60) == (-INF, INF)
    five = paired_difference([0.2, 0.5, 0.3, 0.1, 0.8], [0.3, 0.6, 0.4, 0.2, 0.9])
    assert five == (pytest.approx(0.1), -INF, INF, 0.0625)
    six = paired_difference([0.25] * 6, [0.5] * 6)
    assert six == (0.25, -INF, INF, 2**-5)
    assert verdict(*six[1:]) == "not shown"
    assert paired_difference([0.3] * 8, [0.3] * 8) == (0, -INF, INF, 1)


def test_scores_at_two_limits_are_a_proportion_on_any_scale() -> None:
    """Ten points or one point for a right answer: the same interval in other units, and McNemar's p-value."""
    before, after = [0.0] * 4 + [1.0] * 46, [1.0] * 50
    plain = paired_difference(before, after)
    scaled = paired_difference([10 * each for each in before], [10.0] * 50, bounds=(0, 10))
    assert scaled == pytest.approx((10 * plain.difference, 10 * plain.low, 10 * plain.high, plain.p_value))
    low, high = wilson_interval(46, 50)
    assert mean_interval([1 + 4 * each for each in before], bounds=(1, 5)) == pytest.approx((1 + 4 * low, 1 + 4 * high))


def test_what_a_proportion_is_is_decided_by_the_limits() -> None:
    """Ones and noughts of a scale to ten are its low end, and say that little better may come."""
    assert mean_interval([1.0] * 20, bounds=(0, 10))[1] > 2
    assert paired_difference([1.0] * 20, [1.0] * 20, bounds=(0, 10)).high > 1
    assert mean_interval([1.0] * 20) == wilson_interval(20, 20)
    with pytest.raises(ValueError, match="outside of the bounds"):
        paired_difference([0.5], [2.0], bounds=(0, 1))


def test_values_of_zero_and_one_are_a_proportion() -> None:
    """Ints, floats and booleans alike."""
    assert mean_interval([1, 0.0, True, 1]) == wilson_interval(3, 4)
    assert mean_interval(iter([False, False])) == wilson_interval(0, 2)


def test_the_t_interval_is_the_textbooks() -> None:
    """Mean ± t * s / sqrt(n), worked by hand for 1..5: 3 ± 2.776445 * 0.707107."""
    assert mean_interval([1, 2, 3, 4, 5]) == pytest.approx((1.036757, 4.963243), abs=1e-6)
    paired = paired_difference([0] * 5, [1, 2, 3, 4, 5])
    assert paired == pytest.approx((3, 1.036757, 4.963243, 0.013236), abs=1e-6)


def test_mcnemar_gives_what_is_published() -> None:
    """Fagerland, Lydersen and Laake (2013): 1 and 7 changes give 0.070, mid-p 0.039."""
    assert mcnemar(1, 7) == pytest.approx(0.0703125, abs=1e-12)
    assert mcnemar(1, 7, mid_p=True) == pytest.approx(0.0390625, abs=1e-12)
    assert mcnemar(0, 0) == mcnemar(0, 0, mid_p=True) == mcnemar(4, 4) == 1
    assert mcnemar(4, 4, mid_p=True) == pytest.approx(1 - math.comb(8, 4) / 2**9)


@given(b=st.integers(0, 300), c=st.integers(0, 300))
def test_mcnemar_is_the_binomial_count(b: int, c: int) -> None:
    """Against whole-number arithmetic, and the same in both directions."""
    n = b + c
    exact = min(1.0, 2 * sum(math.comb(n, k) for k in range(min(b, c) + 1)) / 2**n)
    assert mcnemar(b, c) == pytest.approx(exact, rel=1e-9, abs=1e-15)
    assert mcnemar(b, c) == mcnemar(c, b)
    assert mcnemar(b, c, mid_p=True) <= mcnemar(b, c)


def test_mcnemar_of_many_examples_is_quick_and_normal() -> None:
    """A hundred thousand changes need no sum over each of them."""
    z = (52000 - 50000 - 1) / math.sqrt(102000)
    assert mcnemar(50000, 52000) == pytest.approx(2 * normal_cdf(-z), rel=1e-3)


@pytest.mark.parametrize("n", [4, 12, 40, 150])
def test_no_test_finds_a_difference_too_often(n: int) -> None:
    """Exact size: with nothing changed, p <= 0.05 comes at most 5 times in 100, for mid-p hardly more."""
    chances = binomial(n, 0.5)
    assert math.fsum(chances[b] for b in range(n + 1) if mcnemar(b, n - b) <= 0.05) <= 0.05
    assert math.fsum(chances[b] for b in range(n + 1) if mcnemar(b, n - b, mid_p=True) <= 0.05) <= 0.055


def test_the_paired_interval_of_proportions_is_bonett_and_prices() -> None:
    """Worked by hand for 1 and 7 changes among 21: (8 - 2)/23 ± 1.959964 * 0.126273."""
    before = [1] + [0] * 7 + [1] * 13
    after = [0] + [1] * 7 + [1] * 13
    assert paired_difference(before, after) == pytest.approx((6 / 21, 0.013380, 0.508359, 0.0703125), abs=1e-6)


@pytest.mark.parametrize(("n", "gain", "loss"), [(20, 0.1, 0.1), (60, 0.3, 0.05), (60, 0.02, 0.02), (200, 0.5, 0.1)])
def test_the_paired_interval_of_proportions_covers_the_truth(n: int, gain: float, loss: float) -> None:
    """Binary scores with known rates of change: the true difference is inside at least about 95 times in 100."""
    source = random.Random(n)
    trials = 600
    held = 0
    for _ in range(trials):
        kinds = source.choices(["gain", "loss", "same"], [gain, loss, 1 - gain - loss], k=n)
        result = paired_difference([kind == "loss" for kind in kinds], [kind == "gain" for kind in kinds])
        held += result.low <= gain - loss <= result.high
        assert -1 <= result.low <= result.difference <= result.high <= 1
    assert held / trials > 0.93


def test_false_wins_are_rare() -> None:
    """Two equal programs: "better" or "worse" is said at most 5 times in 100, binary scores or not."""
    source = random.Random(4)
    trials = 500
    for draw in (lambda: float(source.random() < 0.6), lambda: source.betavariate(2, 3)):
        shown = 0
        for _ in range(trials):
            result = paired_difference([draw() for _ in range(40)], [draw() for _ in range(40)])
            shown += verdict(*result[1:]) != "not shown"
        assert shown / trials < 0.07


@given(scores=st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=20), binary=st.booleans())
def test_exchanging_the_programs_exchanges_the_verdict(scores: list[tuple[float, float]], binary: bool) -> None:
    """The comparison has no favourite, and the difference is inside of its interval."""
    before = [float(round(a) if binary else a) for a, _ in scores]
    after = [float(round(b) if binary else b) for _, b in scores]
    there, back = paired_difference(before, after), paired_difference(after, before)
    assert back.difference == pytest.approx(-there.difference)
    assert (back.low, back.high) == pytest.approx((-there.high, -there.low))
    assert back.p_value == pytest.approx(there.p_value)
    assert there.low <= there.difference <= there.high
    assert 0 <= there.p_value <= 1


@given(n=st.integers(2, 30), seed=st.integers(0, 1000))
def test_more_confidence_is_a_wider_interval(n: int, seed: int) -> None:
    """90% lies inside of 99%."""
    source = random.Random(seed)
    values = [source.random() for _ in range(n)]
    narrow, wide = mean_interval(values, 0.9), mean_interval(values, 0.99)
    assert wide[0] < narrow[0] < sum(values) / n < narrow[1] < wide[1]


@pytest.mark.parametrize(
    ("low", "high", "p_value", "confidence", "said"),
    [
        (0.01, 0.2, 0.03, 0.95, "better"),
        (-0.2, -0.01, 0.03, 0.95, "worse"),
        (-0.1, 0.2, 0.03, 0.95, "not shown"),
        (0.0, 0.2, 0.05, 0.95, "not shown"),
        (0.01, 0.2, 0.05, 0.95, "better"),
        (0.01, 0.2, 0.1, 0.9, "better"),
        (0.01, 0.2, 0.051, 0.95, "not shown"),
        (-INF, INF, 1.0, 0.95, "not shown"),
    ],
)
def test_a_claim_needs_both_interval_and_test(
    low: float, high: float, p_value: float, confidence: float, said: str
) -> None:
    """Where interval and test disagree, nothing is claimed."""
    assert verdict(low, high, p_value, confidence) == said


def test_public_names_are_sorted_and_there() -> None:
    """`__all__` is the surface."""
    assert statistics.__all__ == sorted(statistics.__all__)
    assert all(hasattr(statistics, name) for name in statistics.__all__)
