"""Numbers as people read them: no sign of what is rounding, and no figure that rounding has made too long."""

from __future__ import annotations

import pytest

from textgrad_engine.report import words
from textgrad_engine.train import Evaluation, compare


def test_a_difference_of_nothing_has_no_minus() -> None:
    """Where one example gains what another loses, decimal scores add up to -1e-17."""
    before, after = (Evaluation(("a", "b", "c"), scores, (), {}) for scores in ((0.8, 0.2, 0.5), (0.9, 0.1, 0.5)))
    found = compare(before, after)
    assert -1e-9 < found.difference < 0
    assert words.score(found.difference, signed=True) == "+0.000"
    assert str(found).startswith("not shown: +0.000 [-")
    assert words.score(-0.0004, signed=True) == "-0.000"  # that is less


@pytest.mark.parametrize(
    ("value", "told"),
    [(999, "999"), (99_949, "99.9k"), (99_950, "100k"), (999_499, "999k"), (999_500, "1.0M"), (99_950_000, "100M")],
)
def test_a_count_has_three_digits_where_it_is_rounded_up(value: int, told: str) -> None:
    """Neither "100.0k" nor "1000k"."""
    assert words.short(value) == told
