"""The search for what one example needs: how many runs it takes, and how often slips deceive it."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textgrad_engine.optim.search.threshold import SURE, Threshold


def searched(search: Threshold, needed: int, slip: float = 0.0, rng: random.Random | None = None) -> int:
    """Run a search to its end; gives the number of runs."""
    runs = 0
    while (parts := search.next()) is not None:
        right = parts >= needed and (rng is None or rng.random() >= slip)
        search.add(parts, right)
        runs += 1
    return runs


@given(st.integers(1, 200), st.data())
def test_what_is_needed_is_found_where_nothing_slips(parts: int, data: st.DataObject) -> None:
    """Law: any part, and in some two runs more than halving takes."""
    needed = data.draw(st.integers(1, parts))
    search = Threshold(parts, slip=0.005)
    assert searched(search, needed) <= parts.bit_length() + 4
    assert search.found == needed


@pytest.mark.parametrize("parts", [5, 20, 150])
@pytest.mark.parametrize("slip", [0.02, 0.1, 0.2])
def test_slips_deceive_it_as_rarely_as_is_stated(parts: int, slip: float) -> None:
    """What it says is right with the probability that it asks for, also that nothing is missing."""
    rng = random.Random(0)
    said = right = 0
    for _ in range(200):
        # As probable as the search believes after one wrong answer: nothing is needed, or any of the parts.
        needed = 0 if rng.random() < slip / (slip + 0.95) else rng.randint(1, parts)
        search = Threshold(parts, slip)
        searched(search, needed, slip, rng)
        said += search.found is not None
        right += search.found == needed
    assert said > 190
    assert right / said > SURE


def test_it_gives_up_where_answers_are_not_to_be_understood() -> None:
    """Wrong with all but everything, and wrong again: after `most` runs nothing is said."""
    search = Threshold(20, slip=0.4, most=3)
    assert searched(search, needed=0, slip=0.5, rng=random.Random(1)) == 3
    assert search.found is None


def test_a_run_costs_by_the_number_of_parts() -> None:
    """Not by its square: of a prompt of thousands of lines each of hundreds of runs would take a tenth of a second."""

    class Counted(float):
        added = 0

        def __mul__(self, other: float) -> Counted:
            return Counted(float(self) * other)

        def __radd__(self, other: float) -> float:
            Counted.added += 1
            return float(self) + other

    search = Threshold(100, slip=0.02)
    search._weights = [Counted(weight) for weight in search._weights]
    search.add(50, right=True)
    assert 0 < Counted.added <= 101
