"""Which candidates are the best, by few scores: the budget is kept to, and the best is found."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textgrad_engine.optim.search.bandit import successive_rejects, ucb

METHODS: list[Callable[..., list[int]]] = [successive_rejects, ucb]


class Arms:
    """Candidates with known scores; counts what is bought."""

    def __init__(self, table: dict[int, list[float]]) -> None:
        self.table = table
        self.bought: Counter[tuple[int, int]] = Counter()

    def run(self, arms: list[int], positions: list[int]) -> None:
        self.bought.update((arm, position) for arm in arms for position in positions)

    def mean(self, arm: int, positions: list[int]) -> float:
        assert all((arm, position) in self.bought for position in positions)
        return sum(self.table[arm][position] for position in positions) / len(positions)

    def choose(self, method: Any, keep: int, budget: int) -> list[int]:
        size = len(next(iter(self.table.values())))
        chosen: list[int] = method(list(self.table), keep, budget, range(size), self.run, self.mean)
        return chosen


@pytest.mark.parametrize("method", METHODS)
def test_nothing_is_bought_twice_and_scores_are_read_where_they_were_bought(method: Any) -> None:
    """What is read without being bought would be somebody else's score."""
    rng = random.Random(1)
    arms = Arms({arm: [float(rng.random() < 0.1 * arm) for _ in range(30)] for arm in range(9)})
    assert len(arms.choose(method, 3, 120)) == 3
    assert set(arms.bought.values()) == {1}


@pytest.mark.parametrize("method", METHODS)
def test_the_best_of_many_is_found(method: Any) -> None:
    """In 90 of 100 draws the best of sixteen candidates is among the four that stay."""
    found = 0
    for seed in range(100):
        rng = random.Random(seed)
        rates = [0.3] * 12 + [0.5] * 3 + [0.8]
        arms = Arms({arm: [float(rng.random() < rate) for _ in range(96)] for arm, rate in enumerate(rates)})
        found += 15 in arms.choose(method, 4, 16 * 16)
    assert found >= 90


@pytest.mark.parametrize("method", METHODS)
def test_of_equals_those_named_first_stay(method: Any) -> None:
    """The texts of now are not given up for others that do no better."""
    arms = Arms({arm: [0.5] * 10 for arm in range(6)})
    assert arms.choose(method, 2, 30) == [0, 1]


@pytest.mark.parametrize("method", METHODS)
def test_when_all_stay_they_are_still_ranked(method: Any) -> None:
    """A beam that is not full yet has a first, too."""
    arms = Arms({0: [0.0] * 4, 1: [1.0] * 4})
    assert arms.choose(method, 2, 8) == [1, 0]


@given(st.integers(2, 40), st.integers(1, 6), st.integers(1, 20), st.integers(1, 60))
def test_successive_rejects_keep_to_the_budget(count: int, keep: int, each: int, size: int) -> None:
    """It buys about what it is given; each candidate gets one example, however little that is."""
    keep = min(keep, count)
    arms = Arms({arm: [float(arm)] * size for arm in range(count)})
    chosen = arms.choose(successive_rejects, keep, each * count)
    assert chosen == list(range(count - 1, count - 1 - keep, -1))
    assert len(arms.bought) <= each * count + count


@given(st.integers(2, 20), st.integers(1, 6), st.integers(1, 20), st.integers(1, 60))
def test_ucb_keeps_to_the_budget(count: int, keep: int, each: int, size: int) -> None:
    """It may pass it by one batch."""
    keep = min(keep, count)
    arms = Arms({arm: [float(arm)] * size for arm in range(count)})
    arms.choose(ucb, keep, each * count)
    assert len(arms.bought) < each * count + 4 * keep


def test_ucb_looks_at_those_further_that_were_run_on_less() -> None:
    """Of two that are nearly as good the one that was run on more waits: its mean is the surer one."""
    worth, order = {0: 0.9, 1: 0.85, 2: 0.1}, list[int]()

    def run(arms: list[int], positions: list[int]) -> None:
        order.extend(arms)

    assert ucb([0, 1, 2], 1, 20, range(40), run, lambda arm, positions: worth[arm]) == [0]
    assert order == [0, 1, 2, 0, 1]
