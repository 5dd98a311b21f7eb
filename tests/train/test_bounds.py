"""Bounds: what missing scores could change, and never less than that."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textgrad_engine.train.statistics import item_bounds, worst_case_difference, worst_case_mean

ROWS = st.lists(st.lists(st.none() | st.floats(0, 1), min_size=1, max_size=3), min_size=1, max_size=8)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: item_bounds([[1.0], []]), r"samples\[1\] is empty"),
        (lambda: item_bounds([[1.5]]), r"samples\[0\] has a score outside"),
        (lambda: item_bounds([[None, 0.5]], (1, 5)), "outside of the scale"),
        (lambda: worst_case_mean([]), "no mean without examples"),
        (lambda: worst_case_difference([(0, 1)], []), "got 1 before and 0 after"),
    ],
)
def test_what_has_no_bounds_is_refused(call: Callable[[], object], message: str) -> None:
    """A score outside of its scale would make bounds that do not hold."""
    with pytest.raises(ValueError, match=message):
        call()


def test_without_missing_scores_the_bounds_are_the_mean() -> None:
    """Nothing to be unsure of."""
    assert worst_case_mean(item_bounds([[1.0], [0.0], [0.5]])) == (0.5, 0.5)


def test_a_missing_score_is_taken_for_the_worst_and_the_best_of_its_scale() -> None:
    """A judge's scale from 1 to 5."""
    assert worst_case_mean(item_bounds([[5.0], [None], [3.0], [None]], (1, 5))) == (2.5, 4.5)


@given(before=ROWS, after=ROWS, seed=st.integers(0, 99))
def test_the_truth_is_inside_whatever_is_filled_in(
    before: list[list[float | None]], after: list[list[float | None]], seed: int
) -> None:
    """Any scores for the missing ones give a mean and a difference within the bounds."""
    source = random.Random(seed)
    size = min(len(before), len(after))
    first, second = before[:size], after[:size]

    def filled(rows: list[list[float | None]]) -> list[float]:
        known = [[source.choice([0, 1, source.random()]) if each is None else each for each in row] for row in rows]
        return [sum(row) / len(row) for row in known]

    old, new = filled(first), filled(second)
    low, high = worst_case_mean(item_bounds(first))
    assert low - 1e-9 <= sum(old) / size <= high + 1e-9
    low, high = worst_case_difference(item_bounds(first), item_bounds(second))
    assert low - 1e-9 <= (sum(new) - sum(old)) / size <= high + 1e-9
