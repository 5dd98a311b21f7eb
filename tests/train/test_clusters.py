"""Clusters: standard errors, intervals and tests that take whole clusters for what counts."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textgrad_engine.train.statistics import (
    bootstrap_interval,
    clustered_difference,
    clustered_error,
    clustered_interval,
    mean_interval,
    paired_difference,
    sign_flip,
    verdict,
    wilson_interval,
)

INF, NAN = math.inf, math.nan

Draw = tuple[list[float], list[int]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: clustered_error([], []), "values is empty"),
        (lambda: clustered_error([1, 0], ["a"]), "got 2 values and 1 clusters"),
        (lambda: clustered_error([1, 0], ["a", "a"]), "one cluster shows no spread"),
        (lambda: clustered_error([1, NAN], ["a", "b"]), r"values\[1\] is nan"),
        (lambda: clustered_interval([1, 0], ["a", "b"], 95), "confidence"),
        (lambda: clustered_interval([1, 1], ["a", "b"], 95), "confidence"),
        (lambda: clustered_difference([1, 0], [1], ["a", "b"]), "got 2 before and 1 after"),
        (lambda: bootstrap_interval([1, 0], ["a", "a"]), "one cluster shows no spread"),
        (lambda: bootstrap_interval([1, 0], resamples=0), "resamples=0"),
        (lambda: bootstrap_interval([1, 0], confidence=1), "confidence"),
    ],
)
def test_what_has_no_answer_is_refused(call: Callable[[], object], message: str) -> None:
    """A broken list never becomes a standard error."""
    with pytest.raises(ValueError, match=message):
        call()


@given(values=st.lists(st.floats(-5, 5), min_size=2, max_size=30))
def test_clusters_of_one_are_no_clusters(values: list[float]) -> None:
    """With every example by itself the error is s / sqrt(n)."""
    n, mean = len(values), sum(values) / len(values)
    usual = math.sqrt(sum((value - mean) ** 2 for value in values) / (n - 1) / n)
    assert clustered_error(values, range(n)) == pytest.approx(usual, abs=1e-12)


def test_the_error_is_millers_formula_term_by_term() -> None:
    """arXiv:2411.00640: the usual variance plus the covariance of every pair inside of a cluster."""
    values, clusters = [0.9, 0.7, 0.1, 0.4, 0.3, 0.8], ["a", "a", "b", "b", "b", "c"]
    n, mean = len(values), sum(values) / len(values)
    squares = sum((value - mean) ** 2 for value in values)
    pairs = sum(
        (values[i] - mean) * (values[j] - mean)
        for i in range(n)
        for j in range(n)
        if i != j and clusters[i] == clusters[j]
    )
    assert clustered_error(values, clusters) == pytest.approx(math.sqrt((squares + pairs) * 3 / 2) / n)


def test_copies_of_an_example_are_no_further_examples() -> None:
    """Each example five times, told so: the interval is that of the examples, not a narrower one."""
    source = random.Random(1)
    values = [source.random() for _ in range(12)]
    copies = [value for value in values for _ in range(5)]
    clusters = [n // 5 for n in range(60)]
    assert clustered_interval(copies, clusters) == pytest.approx(mean_interval(values))
    naive = mean_interval(copies)
    assert naive[1] - naive[0] < 0.5 * (mean_interval(values)[1] - mean_interval(values)[0])


def test_without_spread_clusters_are_the_examples() -> None:
    """All right, all wrong, or all alike: as many examples as there are clusters."""
    assert clustered_interval([1] * 40, [n % 8 for n in range(40)]) == wilson_interval(8, 8)
    assert clustered_interval([0] * 40, [n % 8 for n in range(40)]) == wilson_interval(0, 8)
    assert clustered_interval([0.5] * 10, [n % 5 for n in range(10)]) == (-INF, INF)
    assert clustered_interval([0.2, 0.9], ["a", "a"]) == (-INF, INF)
    assert clustered_difference([0, 0, 0], [1, 0, 1], ["a"] * 3)[1:] == (-1.0, 1.0, 1.0)
    assert clustered_difference([0, 0, 0], [1, 0, 3], ["a"] * 3)[1:] == (-INF, INF, 1.0)


@pytest.mark.parametrize(("before", "after"), [(0.0, 0.0), (1.0, 1.0), (0.0, 1.0), (1.0, 0.0)])
def test_where_all_examples_change_alike_the_interval_is_not_a_point(before: float, after: float) -> None:
    """Nine mails in which nothing changed are no proof that nothing ever does; single examples say the same."""
    names = [f"mail {n // 10}" for n in range(90)]
    found = clustered_difference([before] * 90, [after] * 90, names)
    alone = paired_difference([before] * 90, [after] * 90)
    assert (found.low, found.high) == paired_difference([before] * 9, [after] * 9)[1:3]
    assert found.high - found.low > alone.high - alone.low > 0
    assert found.difference == after - before


@pytest.mark.parametrize("score", [0.0, 1.0])
def test_clusters_of_several_sizes_without_spread_are_no_point(score: float) -> None:
    """Between known limits clusters that were not seen are added: nothing changed, and something may."""
    names = [0] * 4 + [1] * 7 + [2] * 2 + [3] * 7
    found = clustered_difference([score] * 20, [score] * 20, names)
    assert found.low == -found.high < -0.2
    low, high = clustered_interval([score] * 20, names)
    assert (low, high) == ((pytest.approx(0), high) if score == 0 else (low, pytest.approx(1)))
    assert 0.4 < high - low < 1
    free = clustered_difference([3.0] * 20, [3.0] * 20, names)
    assert (free.low, free.high) == (-INF, INF)


def test_the_order_of_clusters_and_the_unit_of_scores_change_nothing() -> None:
    """A scale of ten gives ten times the interval, and limits that rounding passes are kept."""
    source = random.Random(4)
    before, after = ([source.choice([0.0, 0.5, 1.0]) for _ in range(30)] for _ in range(2))
    names = [source.randint(0, 7) for _ in range(30)]
    found = clustered_difference(before, after, names, bounds=(0, 1))
    other = clustered_difference(before[::-1], after[::-1], names[::-1], bounds=(0, 1))
    assert found == pytest.approx(other)
    tens = clustered_difference([10 * each for each in before], [10 * each for each in after], names, bounds=(0, 10))
    assert tens[:3] == pytest.approx([10 * each for each in found[:3]])
    assert clustered_interval([0.9] * 9, [n // 3 for n in range(9)], bounds=(0.1, 0.9))[1] == pytest.approx(0.9)


def test_five_clusters_claim_nothing() -> None:
    """However many examples are in them: five signs come out alike one time in sixteen."""
    clusters = [n // 50 for n in range(250)]
    found = clustered_difference([0] * 250, [1] * 250, clusters)
    assert found.p_value == 0.0625
    assert verdict(*found[1:]) == "not shown"
    six = clustered_difference([0] * 300, [1] * 300, [n // 50 for n in range(300)])
    assert verdict(*six[1:]) == "better"


def draw(source: random.Random, groups: int, size: Callable[[], int], shared: float) -> Draw:
    """Values of mean 0 in clusters that have something in common."""
    values: list[float] = []
    clusters: list[int] = []
    for cluster in range(groups):
        common = source.gauss(0, shared)
        for _ in range(size()):
            values.append(common + source.gauss(0, 0.3))
            clusters.append(cluster)
    return values, clusters


@pytest.mark.parametrize(("groups", "least", "most"), [(8, 4, 4), (25, 1, 7)])
def test_clustered_intervals_cover_the_truth_where_others_do_not(groups: int, least: int, most: int) -> None:
    """By t and by bootstrap 95 of 100 hold the true mean; taking the examples for independent, far fewer do."""
    source = random.Random(groups)
    trials = 250
    held, drawn, naive = 0, 0, 0
    for trial in range(trials):
        values, clusters = draw(source, groups, lambda: source.randint(least, most), 0.4)
        low, high = clustered_interval(values, clusters)
        held += low <= 0 <= high
        low, high = bootstrap_interval(values, clusters, resamples=600, seed=trial)
        drawn += low <= 0 <= high
        low, high = mean_interval(values)
        naive += low <= 0 <= high
    assert held / trials == pytest.approx(0.95, abs=0.03)
    assert drawn / trials == pytest.approx(0.95, abs=0.03)
    assert naive / trials < 0.85


@pytest.mark.parametrize("bounds", [(0.0, 1.0), None])
def test_one_cluster_that_is_larger_than_all_others_does_not_narrow_the_interval(
    bounds: tuple[float, float] | None,
) -> None:
    """A document with 30 questions beside 20 with one: what it comes to is seen once, and is three fifths of the mean.

    With a degree of freedom for each document 3 of 4 intervals held the mean.
    """
    source = random.Random(20)
    names = [0] * 30 + list(range(1, 21))
    trials, held, paired = 200, 0, 0
    for trial in range(trials):
        first, second = ([each[name] for name in names] for each in (_documents(source, bounds) for _ in range(2)))
        low, high = clustered_interval(first, names, bounds=bounds)
        held += low <= 0.5 <= high
        found = clustered_difference(first, second, names, bounds=bounds, seed=trial)
        paired += found.low <= 0 <= found.high
    assert held / trials > 0.93
    assert paired / trials > 0.93


def _documents(source: random.Random, bounds: tuple[float, float] | None) -> list[float]:
    """What the questions of each of 21 documents score, 0.5 in the mean."""
    return [float(source.random() < 0.5) if bounds else 0.5 + source.gauss(0, 1) for _ in range(21)]


@pytest.mark.parametrize(("groups", "least", "most"), [(6, 5, 5), (10, 1, 9)])
def test_false_wins_in_clusters_are_rare(groups: int, least: int, most: int) -> None:
    """Two equal programs whose differences go together within a cluster: a claim at most 5 times in 100."""
    source = random.Random(groups + 100)
    trials = 500
    shown = 0
    for trial in range(trials):
        values, clusters = draw(source, groups, lambda: source.randint(least, most), 0.4)
        found = clustered_difference([0] * len(values), values, clusters, seed=trial)
        shown += verdict(*found[1:]) != "not shown"
    assert shown / trials <= 0.055


def test_the_difference_in_clusters_is_that_of_the_pairs() -> None:
    """Clusters change how sure it is, not what it is; the p-value is that of the sums of clusters."""
    source = random.Random(2)
    before, after = [source.random() for _ in range(30)], [source.random() for _ in range(30)]
    clusters = [n % 7 for n in range(30)]
    found = clustered_difference(before, after, clusters)
    assert found.difference == pytest.approx(paired_difference(before, after).difference)
    sums = [sum(after[n] - before[n] for n in range(30) if n % 7 == cluster) for cluster in range(7)]
    assert found.p_value == pytest.approx(sign_flip(sums))


@pytest.mark.parametrize("n", [20, 60])
def test_the_bootstrap_covers_the_mean_of_skewed_scores(n: int) -> None:
    """Exponential values, mean 1."""
    source = random.Random(n)
    trials = 200
    held = 0
    for trial in range(trials):
        low, high = bootstrap_interval([source.expovariate(1) for _ in range(n)], resamples=600, seed=trial)
        held += low <= 1 <= high
    assert held / trials > 0.9


def test_the_bootstrap_depends_on_its_seed_alone() -> None:
    """The same interval every time, and nearly the same for another seed; like t for well-behaved scores."""
    source = random.Random(3)
    values = [source.gauss(0.5, 0.1) for _ in range(40)]
    once, again = bootstrap_interval(values, seed=7), bootstrap_interval(values, seed=7)
    assert once == again != bootstrap_interval(values, seed=8)
    assert once == pytest.approx(mean_interval(values), abs=0.01)


def test_clusters_of_one_size_and_of_many_are_drawn_alike() -> None:
    """The two ways to add up a resample agree, when one cluster gets a value that changes nothing but its size."""
    equal = bootstrap_interval([1, 0, 1, 1, 0, 1, 1, 0], [0, 0, 1, 1, 2, 2, 3, 3], resamples=200, seed=5)
    means = bootstrap_interval([0.5, 1.0, 0.5, 0.5], resamples=200, seed=5)
    assert equal == pytest.approx(means)
    mixed = bootstrap_interval([1, 0, 1, 1, 1, 0, 1, 0, 1, 0], [0, 0, 1, 1, 2, 2, 3, 3, 3, 3], resamples=200, seed=5)
    assert mixed == pytest.approx(means, abs=0.05)
