"""Units: the lines of a text that only make sense together."""

from __future__ import annotations

import pytest

from textgrad_engine.optim.sentences import places_of
from textgrad_engine.optim.units import check_units, text_of, units_of


def test_a_blank_line_belongs_to_the_line_before_it() -> None:
    """It alone is not worth a test; a fence that nobody closes is a line like others."""
    assert units_of("\n\na\n\n \nb\n<x-0a1b2c3d>\nc") == [(1, 2), (3, 4, 5), (6,), (7,), (8,)]


def test_a_fenced_block_is_one_unit_whatever_is_in_it() -> None:
    """Also where a line of it is long."""
    block = "\n".join(["<examples-0a1b2c3d>", "Tickets go to the queue. " * 40, "</examples-0a1b2c3d>"])
    assert units_of(f"Sort.\n{block}\nEnd.") == [(1,), tuple(range(2, 44)), (44,)]


def test_each_sentence_of_a_long_line_is_one() -> None:
    """And what some of them make is a line again."""
    kinds = [f"Tickets of kind {n} go to queue {n}." for n in range(30)]
    text = " ".join(kinds)
    assert units_of(text) == [(n,) for n in range(1, 31)]
    assert text_of(places_of(text), {1, 30}) == f"{kinds[0]} {kinds[-1]}"


@pytest.mark.parametrize(
    ("units", "problem"), [([(1, 2), (2,)], "a line is in two units"), ([(4,)], "has lines 1 to 3"), ([(0,)], "line 0")]
)
def test_units_of_another_text_are_refused(units: list[tuple[int, ...]], problem: str) -> None:
    """By what is wrong with them."""
    with pytest.raises(ValueError, match=problem):
        check_units(units, 3)
