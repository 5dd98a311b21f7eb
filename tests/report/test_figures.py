"""Small pictures: what is drawn where, also for values that no axis can hold."""

from __future__ import annotations

import math
import re

from hypothesis import example, given
from hypothesis import strategies as st

from textgrad_engine.report.figures import Axis, axis_row, gains, interval_row, scatter, stairs

NUMBERS = st.floats(allow_nan=False, allow_infinity=True, width=32)


@example([], 5e-324)
@given(st.lists(NUMBERS, max_size=5), st.floats(-1e6, 1e6))
def test_everything_is_drawn_inside(values: list[float], value: float) -> None:
    """Infinite ends, equal values, none at all."""
    axis = Axis.around([*values, value])
    assert axis.low <= value <= axis.high
    assert 1 <= len(axis.ticks) <= 12
    for each in (*values, value):
        assert 0 <= axis.at(each) <= 100
    drawn = interval_row(axis, value, (-math.inf, math.inf), "best", mark=0.0).text
    assert "nan" not in drawn
    assert "inf" not in drawn


def test_limits_are_the_ends_where_nothing_is_beyond() -> None:
    """Scores from 0 to 1 are shown between 0 and 1, so that two reports look alike."""
    assert (Axis.around([0.4, 0.6], limits=(0.0, 1.0)).low, Axis.around([0.4], limits=(0.0, 1.0)).high) == (0.0, 1.0)
    assert Axis.around([0.4, 1.6], limits=(0.0, 1.0)).high > 1.6
    assert Axis.around([-0.6, 0.4], limits=(0.0, 1.0)).low < -0.6


def test_an_axis_names_round_numbers() -> None:
    """Without the noise of binary fractions."""
    axis = Axis.around([-0.1, 0.62])
    assert axis.ticks == (0.0, 0.2, 0.4, 0.6)
    assert re.findall(r">([^<]+)</text>", axis_row(axis).text) == ["0", "0.2", "0.4", "0.6"]


def test_the_bar_of_a_race_is_whole() -> None:
    """Better, worse and alike together are all examples; of no example there is no bar."""
    widths = [float(width) for width in re.findall(r'width="([\d.]+)%" height="8"', gains(6, 1, 17).text)]
    assert sum(widths[-3:]) == 100
    assert "rect" not in gains(0, 0, 0).text


def test_steps_go_up_where_the_value_does() -> None:
    """A line along, a line up, a dot for what was kept."""
    drawn = stairs([0.4, 0.4, 0.8], [True, False, True], "scores").text
    assert drawn.count("<circle") == 2
    assert 'aria-label="scores"' in drawn
    assert "<circle" in stairs([0.5], [True], "x").text


def test_dots_have_their_place() -> None:
    """More tokens are further right, a higher score further up."""
    drawn = scatter([(100, 0.4, "seed"), (200, 0.9, "best")], "front").text
    (left, low), (right, high) = [
        (float(x), float(y)) for x, y in re.findall(r'<circle cx="([\d.]+)%" cy="([\d.]+)"', drawn)
    ]
    assert left < right
    assert high < low
