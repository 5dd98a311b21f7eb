"""Power: published sample sizes, exact counts, and simulated comparisons at the difference that should be found."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from textgrad_engine.train import Evaluation, compare
from textgrad_engine.train.distributions import normal_quantile
from textgrad_engine.train.statistics import (
    mcnemar,
    mcnemar_power,
    minimum_detectable_effect,
    needed_alike,
    needed_n,
    normal_cdf,
    paired_difference,
    verdict,
)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: minimum_detectable_effect(10), "either sd"),
        (lambda: minimum_detectable_effect(10, sd=1, discordance=0.1), "either sd"),
        (lambda: minimum_detectable_effect(0, sd=1), "n=0"),
        (lambda: minimum_detectable_effect(10, sd=0), "sd=0"),
        (lambda: minimum_detectable_effect(10, sd=math.inf), "sd=inf"),
        (lambda: minimum_detectable_effect(10, discordance=1.2), "discordance=1.2"),
        (lambda: minimum_detectable_effect(10, sd=1, power=0.01), "alpha < power"),
        (lambda: minimum_detectable_effect(10, sd=1, alpha=0), "alpha=0"),
        (lambda: minimum_detectable_effect(10, sd=1, largest=0), "largest=0, sd=1"),
        (lambda: minimum_detectable_effect(10, discordance=0.1, largest=1), "goes with sd"),
        (lambda: needed_n(2, sd=1, largest=1), "more than the largest one, largest=1"),
        (lambda: needed_n(0, sd=1), "a difference of 0"),
        (lambda: needed_n(math.nan, sd=1), "a difference of nan"),
        (lambda: needed_n(0.3, discordance=0.2), "more than the share"),
        (lambda: needed_n(1e-6, sd=1), "needs more than"),
        (lambda: needed_n(1e-6, discordance=0.5), "needs more than"),
        (lambda: needed_alike([0.1, -0.1]), "no gain to be found"),
        (lambda: needed_alike([0.1]), "sd=0"),
        (lambda: needed_alike([0.2, 0.2]), "sd=0"),
        (lambda: needed_alike([1e-9] * 99 + [1e-7], largest=1e9), "more than"),
        (lambda: mcnemar_power(10, 0.3, 0.2), "effect <= discordance"),
        (lambda: mcnemar_power(-1, 0.1, 0.2), "n=-1"),
    ],
)
def test_what_has_no_answer_is_refused(call: Callable[[], object], message: str) -> None:
    """No number is made up for a question that has none."""
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    ("effect", "power", "n"), [(0.2, 0.8, 199), (0.5, 0.8, 34), (0.8, 0.8, 15), (0.5, 0.9, 44), (0.2, 0.9, 265)]
)
def test_sample_sizes_of_the_paired_t_test_are_the_published_ones(effect: float, power: float, n: int) -> None:
    """Cohen's small, medium and large effects, two-sided at 5%, as tables and programs give them."""
    assert needed_n(effect, sd=1, power=power) == pytest.approx(n, abs=1)


def test_the_sample_size_of_miller_is_found() -> None:
    """arXiv:2411.00640: 3 points with a variance of 1/9 take 969 questions by the normal, 2 more by t."""
    assert needed_n(0.03, sd=1 / 3) == pytest.approx(969, abs=3)


def test_needed_n_and_detectable_effect_undo_each_other() -> None:
    """With the n that is needed the effect is seen, with one less it is not."""
    for sd, effect in ((1.0, 0.3), (0.5, 0.05), (0.4, 1.0)):
        n = needed_n(effect, sd=sd)
        assert minimum_detectable_effect(n, sd=sd) <= effect < minimum_detectable_effect(n - 1, sd=sd)
    for discordance, effect in ((0.2, 0.1), (0.3, 0.3), (0.6, 0.2)):
        n = needed_n(effect, discordance=discordance)
        assert mcnemar_power(n, effect, discordance) >= 0.8 > mcnemar_power(n - 1, effect, discordance)


@given(n=st.integers(1, 25), effect=st.floats(0, 1), rest=st.floats(0.01, 1))
@settings(max_examples=40, deadline=None)
def test_the_exact_power_is_the_count_of_all_outcomes(n: int, effect: float, rest: float) -> None:
    """Every number of gains and losses, each with its multinomial chance."""
    discordance = effect + (1 - effect) * rest
    gain, loss = (discordance + effect) / 2, (discordance - effect) / 2
    total = 0.0
    for gained in range(n + 1):
        for lost in range(n + 1 - gained):
            if gained > lost and mcnemar(gained, lost) <= 0.05 + 1e-12:
                ways = math.comb(n, gained) * math.comb(n - gained, lost)
                total += ways * gain**gained * loss**lost * max(0.0, 1 - discordance) ** (n - gained - lost)
    assert mcnemar_power(n, effect, discordance) == pytest.approx(total, abs=1e-9)


def test_beyond_the_exact_sum_the_power_goes_on_without_a_jump() -> None:
    """At 500 changed examples the approximation takes over; it is off by less than a point."""
    for n, effect, discordance in ((2500, 0.025, 0.2), (1000, 0.06, 0.5), (10_000, 0.006, 0.05)):
        exact, beyond = mcnemar_power(n, effect, discordance), mcnemar_power(n + 1, effect, discordance)
        assert exact == pytest.approx(beyond, abs=0.01)


def test_six_examples_are_the_fewest_that_show_anything() -> None:
    """Five that all change for the better have p = 0.0625."""
    assert minimum_detectable_effect(5, discordance=0.5) == math.inf
    assert minimum_detectable_effect(8, discordance=0.1) < 1
    assert minimum_detectable_effect(1, sd=0.5) == math.inf
    assert minimum_detectable_effect(5, sd=0.5) == math.inf
    assert minimum_detectable_effect(5, sd=0.5, alpha=0.1) < math.inf
    assert needed_n(5.0, sd=0.1) == 6


def test_six_differences_are_found_where_all_are_of_one_sign() -> None:
    """The sign flips of six come to 1 in 32 at the least; where that is likely enough, so is the verdict."""
    effect = minimum_detectable_effect(6, sd=0.1)
    assert normal_cdf(effect / 0.1) ** 6 == pytest.approx(0.8)
    assert minimum_detectable_effect(200, sd=0.1) == pytest.approx(0.0199, abs=1e-4)


def test_between_limits_no_more_than_these_can_be_seen() -> None:
    """And with many examples what is added makes no difference any more."""
    assert minimum_detectable_effect(6, sd=0.6, largest=1.0) == math.inf
    free, limited = (minimum_detectable_effect(2000, sd=0.2, largest=largest) for largest in (None, 1.0))
    assert free <= limited < 1.01 * free
    assert minimum_detectable_effect(40, sd=2.0, largest=4.0) == pytest.approx(
        4 * minimum_detectable_effect(40, sd=0.5, largest=1.0), abs=1e-3
    )
    n = needed_n(0.2, sd=0.3, largest=1.0)
    seen = [minimum_detectable_effect(each, sd=0.3, largest=1.0) for each in (n, n - 1)]
    assert seen[0] <= 0.2 < seen[1]
    assert n > needed_n(0.2, sd=0.3)


@pytest.mark.parametrize(
    ("n", "sd", "largest"),
    [(6, 0.1, None), (8, 0.1, None), (12, 0.1, None), (6, 0.1, 1.0), (8, 0.25, 1.0), (10, 0.25, 1.0), (50, 0.25, 1.0)],
)
def test_a_comparison_finds_what_it_says_it_would(n: int, sd: float, largest: float | None) -> None:
    """Graded scores, with and without known limits, through all that a verdict needs: 80 times in 100."""
    effect = minimum_detectable_effect(n, sd=sd, largest=largest)
    source = random.Random(3)
    names = tuple(str(each) for each in range(n))
    trials = 250
    found = 0
    for trial in range(trials):
        changes = [source.gauss(effect, sd) for _ in range(n)]
        before = [max(0.0, -change) for change in changes]
        after = [max(0.0, change) for change in changes]
        if largest is None:
            before, after = [score + 10 for score in before], [score + 10 for score in after]
        else:
            after = [min(largest, score) for score in after]
        both = (Evaluation(names, tuple(scores), names, {}) for scores in (before, after))
        found += compare(*both, seed=trial).verdict == "better"
    assert found / trials == pytest.approx(0.8, abs=0.06)


@pytest.mark.parametrize(
    "changes",
    [
        [0.1] * 3 + [0.0] * 7,  # a few gain a little, and nobody saw a fall
        [0.1] * 5 + [-0.1] + [0.0] * 4,
        [0.5] * 2 + [0.05, -0.05] * 6,
        [1.0] * 3 + [-1.0] + [0.0] * 6,  # right or wrong
    ],
)
def test_so_many_examples_that_change_alike_show_their_gain(changes: list[float]) -> None:
    """4 times in 5, or somewhat more; a fifth of them shows it seldom."""
    source = random.Random(5)
    needed = needed_alike(changes, largest=1.0)

    def found(n: int) -> float:
        names = tuple(str(each) for each in range(n))
        trials = 120
        better = 0
        for trial in range(trials):
            drawn = source.choices(changes, k=n)
            rows = ([max(0.0, sign * change) for change in drawn] for sign in (-1, 1))
            both = (Evaluation(names, tuple(row), names, {}) for row in rows)
            better += compare(*both, seed=trial).verdict == "better"
        return better / trials

    assert 0.7 <= found(needed) <= 0.95
    assert found(needed // 5) < 0.3


def test_without_limits_examples_that_change_alike_are_normal_ones() -> None:
    """There nothing is known of falls that nobody saw; with many examples they make no difference."""
    changes = [0.3, 0.1, 0.0, 0.0, -0.1]
    sd = math.sqrt(sum((each - 0.06) ** 2 for each in changes) / 4)
    assert needed_alike(changes) == needed_n(0.06, sd=sd) < needed_alike(changes, largest=1.0)
    close = [each / 20 + 0.5 * (-1) ** n for n, each in enumerate(changes * 8)]
    assert needed_alike(close, largest=1.0) == pytest.approx(needed_alike(close), rel=0.05)


@pytest.mark.parametrize(("gain", "sd"), [(0.2, 0.3), (0.1, 0.2), (0.05, 0.08), (0.1, 0.1)])
def test_normal_differences_take_as_many_examples_by_their_spread_as_one_by_one(gain: float, sd: float) -> None:
    """What is allowed for between limits, by sizes of falls and rises, is the same by formula and by sum."""
    changes = [gain + sd * normal_quantile((n + 0.5) / 400) for n in range(400)]
    needed = needed_n(statistics.fmean(changes), sd=statistics.stdev(changes), largest=1.0)
    assert needed_alike(changes, largest=1.0) == pytest.approx(needed, abs=1)


@given(n=st.integers(8, 120), discordance=st.floats(0.01, 0.6))
@settings(max_examples=20, deadline=None)
def test_what_can_be_seen_shrinks_with_examples_and_grows_with_noise(n: int, discordance: float) -> None:
    """Monotone in both, and with a stricter level."""
    seen = minimum_detectable_effect(n, discordance=discordance)
    assert minimum_detectable_effect(4 * n, discordance=discordance) < seen + 1e-3
    assert seen <= minimum_detectable_effect(n, discordance=discordance + 0.3) + 1e-3
    assert seen <= minimum_detectable_effect(n, discordance=discordance, alpha=0.01) + 1e-3


def test_the_power_at_the_detectable_effect_is_the_nominal_one() -> None:
    """Normal differences: the verdict is "better" 80 times in 100."""
    source = random.Random(1)
    trials = 600
    for n in (12, 50):
        effect = minimum_detectable_effect(n, sd=0.3)
        found = 0
        for _ in range(trials):
            after = [source.gauss(effect, 0.3) for _ in range(n)]
            found += verdict(*paired_difference([0.0] * n, after)[1:]) == "better"
        assert found / trials == pytest.approx(0.8, abs=0.04)


@pytest.mark.parametrize(("n", "discordance"), [(60, 0.2), (25, 0.5), (40, 0.05)])
def test_the_power_at_the_detectable_effect_is_the_nominal_one_for_zero_and_one(n: int, discordance: float) -> None:
    """Scores of 0 and 1: the verdict is "better" 80 times in 100, also where nearly every change is a gain."""
    effect = minimum_detectable_effect(n, discordance=discordance)
    changed = max(discordance, effect)
    source = random.Random(n)
    trials = 600
    found = 0
    for _ in range(trials):
        kinds = source.choices(["gain", "loss", "same"], [changed + effect, changed - effect, 2 - 2 * changed], k=n)
        result = paired_difference([kind == "loss" for kind in kinds], [kind == "gain" for kind in kinds])
        found += verdict(*result[1:]) == "better"
    assert found / trials == pytest.approx(0.8, abs=0.045)
