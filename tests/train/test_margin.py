"""How low a mean may be: published bounds, laws, and simulated losses that few examples show."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from textgrad_engine.train.statistics import incomplete_beta, lowest_mean, needed_for_margin, shown_margin


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: lowest_mean([], -1), "values is empty"),
        (lambda: lowest_mean([0, -2], -1), "lowest value is to be -1, and one is -2"),
        (lambda: lowest_mean([0, 0], -1, ["a"]), "2 values and 1 clusters"),
        (lambda: lowest_mean([0], -1, error=5), "error is between 0 and 1"),
        (lambda: lowest_mean([0], -1, resamples=0), "resamples=0"),
        (lambda: shown_margin(0, sd=1), "n=0"),
        (lambda: shown_margin(5, sd=-1), "sd=-1"),
        (lambda: shown_margin(5, sd=1, error=0), "error is between 0 and 1"),
        (lambda: needed_for_margin(0, sd=1), "a margin is above 0"),
        (lambda: needed_for_margin(1e-9, sd=1), "more than 1000000000000000 examples"),
    ],
)
def test_what_has_no_answer_is_refused(call: Callable[[], object], message: str) -> None:
    """A broken list never becomes a bound."""
    with pytest.raises(ValueError, match=message):
        call()


@given(n=st.integers(1, 80), data=st.data())
@settings(max_examples=50)
def test_of_two_values_it_is_clopper_and_pearsons(n: int, data: st.DataObject) -> None:
    """Law: so many losses or fewer come with a chance of 5% where the true rate is the bound."""
    lost = data.draw(st.integers(0, n - 1))
    bound = -lowest_mean([-1.0] * lost + [0.0] * (n - lost), -1.0)
    assert 1 - incomplete_beta(lost + 1, n - lost, bound) == pytest.approx(0.05, abs=0.02)


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=20), st.randoms(use_true_random=False))
def test_it_is_a_mean_and_knows_no_order(values: list[float], chance: random.Random) -> None:
    """Law: clusters of one are no clusters."""
    bound = lowest_mean(values, -1.0, resamples=100)
    other = chance.sample(values, len(values))
    assert -1 <= bound <= max(values)
    assert lowest_mean(other, -1.0, range(len(other)), resamples=100) == bound


def test_the_bound_is_the_draw_of_its_rank() -> None:
    """Of two draws, the lower one with an error of a half, and the higher one with an error of nearly 1."""
    values = [0.0, 0.5, 1.0]
    low, high = (lowest_mean(values, -1.0, error=error, resamples=2) for error in (0.5, 0.99))
    assert low < high


def test_examples_that_lose_together_count_once() -> None:
    """Of six documents of eight questions, that none lost says what six examples say; of unlike sizes too."""
    eights = [n // 8 for n in range(48)]
    assert lowest_mean([0.0] * 48, -1.0, eights) == lowest_mean([0.0] * 6, -1.0)
    unlike = [0] * 20 + [1] * 20 + [2, 3, 4, 5, 6, 7, 8, 9]
    assert lowest_mean([0.0] * 48, -1.0, unlike) < lowest_mean([0.0] * 48, -1.0) - 0.1


@pytest.mark.parametrize(
    ("n", "rate", "size", "noise"),
    [(30, 0.1, 1.0, 0.0), (30, 0.1, 1.0, 0.05), (60, 0.05, 1.0, 0.05), (60, 0.2, 0.5, 0.1)],
)
def test_it_is_above_the_true_mean_as_often_as_is_said(n: int, rate: float, size: float, noise: float) -> None:
    """Also of losses that few examples show, where a t-interval is wrong in up to 14 of 100 (n=96) or 44 (n=16)."""
    chance = random.Random(n)

    def wrong() -> bool:
        losses = (-size * (chance.random() < rate) + chance.gauss(0, noise) for _ in range(n))
        return lowest_mean([max(-1.0, each) for each in losses], -1.0, resamples=300) > -rate * size

    assert sum(wrong() for _ in range(60)) <= 8  # of 60 at 5%, more come in 4 of 1,000 such tests


@pytest.mark.parametrize(("n", "large"), [(40, 10), (30, 5)])
def test_it_holds_where_large_clusters_lose_more(n: int, large: int) -> None:
    """Few of them are seen, and mostly none that loses; one more of the mean size is wrong in 12 and 15 of 100."""
    chance = random.Random(n)
    often, rate = 4 / n, 0.4
    mean = -often * rate * large / (1 + often * (large - 1))

    def wrong() -> bool:
        clusters = [(large, -float(chance.random() < rate)) if chance.random() < often else (1, 0.0) for _ in range(n)]
        names = [name for name, (size, _) in enumerate(clusters) for _ in range(size)]
        return lowest_mean([clusters[name][1] for name in names], -1.0, names, resamples=200) > mean

    assert sum(wrong() for _ in range(100)) <= 10  # of 100 at 5%, more come in 1 of 100 such tests


def test_an_error_that_is_rarer_than_the_draws_has_more_of_them() -> None:
    """A bound that the smallest of 10 draws gives is wrong more often than once in 1,000."""
    rare = -lowest_mean([0.0] * 20, -1.0, error=0.001, resamples=10)
    assert rare == pytest.approx(1 - 0.001 ** (1 / 20), abs=0.12)


@pytest.mark.parametrize(("n", "noise"), [(40, 0.1), (80, 0.15)])
def test_what_can_be_shown_is_shown_4_times_in_5(n: int, noise: float) -> None:
    """Of differences that are noise alone."""
    chance, margin = random.Random(n), shown_margin(n, sd=noise)
    shown = sum(
        lowest_mean([max(-1.0, chance.gauss(0, noise)) for _ in range(n)], -1.0, resamples=300) > -margin
        for _ in range(50)
    )
    assert 32 <= shown <= 47  # of 50 at 80%, fewer or more come in 4 of 1,000 such tests


@given(n=st.integers(2, 500), sd=st.floats(0, 1), error=st.floats(0.001, 0.3))
def test_more_examples_show_more_and_noise_less(n: int, sd: float, error: float) -> None:
    """Law: and as many as are needed are enough."""
    margin = shown_margin(n, sd=sd, error=error)
    assert shown_margin(n + 1, sd=sd, error=error) < margin <= shown_margin(n, sd=sd + 0.1, error=error)
    assert needed_for_margin(margin, sd=sd, error=error) <= n
