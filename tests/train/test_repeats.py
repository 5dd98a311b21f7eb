"""Repeats: an example counts once, and the model's noise is told apart from the examples'."""

from __future__ import annotations

import math
import random
import statistics as reference

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textgrad_engine.train.statistics import Spread, item_means, mean_interval, variance_split


def test_what_cannot_be_taken_apart_is_refused() -> None:
    """No examples, an example without a sample, one sample each, broken scores."""
    with pytest.raises(ValueError, match="samples is empty"):
        item_means([])
    with pytest.raises(ValueError, match=r"samples\[1\] is empty"):
        item_means([[1], []])
    with pytest.raises(ValueError, match=r"samples\[0\]\[1\] is nan"):
        variance_split([[1, math.nan], [0, 1]])
    for rows in ([[1], [0], [1]], [[1, 0]]):
        with pytest.raises(ValueError, match="two examples, and two samples"):
            variance_split(rows)
    with pytest.raises(ValueError, match="at least one example"):
        Spread(0.1, 0.1).standard_error(0, 1)


@given(rows=st.lists(st.lists(st.floats(0, 1), min_size=2, max_size=4), min_size=2, max_size=8))
def test_the_parts_are_never_negative(rows: list[list[float]]) -> None:
    """Where samples vary more than examples, the part of the examples is 0."""
    between, within = variance_split(rows)
    assert between >= 0
    assert within >= 0


def test_the_parts_are_those_of_the_analysis_of_variance() -> None:
    """A balanced table, worked by the mean squares of the textbook."""
    rows = [[3.0, 5.0, 4.0], [9.0, 8.0, 10.0], [1.0, 2.0, 0.0], [6.0, 6.0, 9.0]]
    means = item_means(rows)
    inside = reference.mean(reference.variance(row) for row in rows)
    among = 3 * reference.variance(means)
    assert variance_split(rows) == pytest.approx(((among - inside) / 3, inside))


def test_the_parts_are_right_on_average() -> None:
    """Known variances 0.04 and 0.09, with two to four samples an example."""
    source = random.Random(1)
    found = []
    for _ in range(300):
        rows = []
        for _ in range(30):
            true = source.gauss(0.5, 0.2)
            rows.append([source.gauss(true, 0.3) for _ in range(source.randint(2, 4))])
        found.append(variance_split(rows))
    assert reference.mean(each.between for each in found) == pytest.approx(0.04, abs=0.003)
    assert reference.mean(each.within for each in found) == pytest.approx(0.09, abs=0.003)


def test_the_error_it_foretells_is_the_one_that_is_seen() -> None:
    """Over many evaluations of new examples the mean varies as much as said, with one sample and with four."""
    source = random.Random(2)
    for repeats in (1, 4):
        means = []
        for _ in range(1500):
            items = [source.gauss(0.5, 0.2) for _ in range(20)]
            means.append(reference.mean(source.gauss(true, 0.3) for true in items for _ in range(repeats)))
        assert reference.stdev(means) == pytest.approx(Spread(0.04, 0.09).standard_error(20, repeats), rel=0.07)


def test_the_interval_of_item_means_covers_the_truth() -> None:
    """Ten samples of each of 15 examples are 15 examples; taken for 150, the interval is far too narrow."""
    source = random.Random(3)
    trials = 500
    held, naive = 0, 0
    for _ in range(trials):
        rates = [source.betavariate(1, 1) for _ in range(15)]
        rows = [[float(source.random() < rate) for _ in range(10)] for rate in rates]
        low, high = mean_interval(item_means(rows))
        held += low <= 0.5 <= high
        low, high = mean_interval([score for row in rows for score in row])
        naive += low <= 0.5 <= high
    assert held / trials == pytest.approx(0.95, abs=0.025)
    assert naive / trials < 0.8
