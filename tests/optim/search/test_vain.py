"""When nothing more is asked for; what runs make of it is in `tests/train/test_idle.py`."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from textgrad_engine.optim.search.vain import FEWEST_VAIN, MOST_REFUSED, MOST_VAIN, Vain


def until_over(vain: Vain, refused: Sequence[Sequence[str]] = ()) -> int:
    """How many more proposals of no use it takes."""
    for number in range(200):
        if vain.over:
            return number
        assert vain.in_words == ""
        vain.count("it broke a contract", refused=refused[number] if number < len(refused) else ())
    raise AssertionError


def test_it_says_what_the_last_one_came_to() -> None:
    """Once it is over, and nothing before."""
    vain = Vain()
    assert until_over(vain) == FEWEST_VAIN
    assert vain.in_words == (
        "the last 8 proposals in a row were of no use (the last one: it broke a contract), so no more were asked for"
    )


def test_proposals_of_one_round_are_asked_for_alike() -> None:
    """So it takes three rounds of them, and what is asked for already is looked at."""
    vain = Vain()
    for _ in range(2):
        for _ in range(FEWEST_VAIN):
            vain.count("nothing was proposed", more=True)
        vain.count("nothing was proposed")
        assert not vain.over
    vain.count("nothing was proposed", more=True)
    assert not vain.over
    vain.count("nothing was proposed")
    assert vain.over


def test_an_answer_that_was_lost_is_no_proposal_and_ends_its_round() -> None:
    """It counts for nothing, and the others of the round for what they are."""
    vain = Vain()
    for _ in range(2):
        vain.count(None)
    assert (vain.proposals, vain.rounds, vain.useful) == (0, 0, 0)
    vain.count("nothing was proposed", more=True)
    vain.count(None)
    assert (vain.proposals, vain.rounds, vain.useful) == (1, 1, 0)


@pytest.mark.parametrize(("rare", "more"), [(0, FEWEST_VAIN), (1, 10), (7, 33), (70, MOST_VAIN)])
def test_of_a_proposer_that_is_seldom_of_use_more_in_a_row_are_nothing_strange(rare: int, more: int) -> None:
    """One of use was among so many; within bounds."""
    vain = Vain()
    for _ in range(rare):
        vain.count("it broke a contract")
    vain.count("")
    assert (vain.proposals, vain.rounds, vain.earlier, vain.useful) == (0, 0, rare, 1)
    assert until_over(vain) == more


def test_of_texts_that_are_refused_each_other_one_counts_for_less() -> None:
    """Before anything could be tried; the same one again, and none, do not."""
    assert until_over(Vain(), [[f"text {number}"] for number in range(200)]) == MOST_REFUSED
    assert until_over(Vain(), [["", f"text {number}"] for number in range(200)]) == MOST_REFUSED
    assert until_over(Vain(), [["text"]] * 200) == FEWEST_VAIN + 1
    assert until_over(Vain(), [["", ""]] * 200) == FEWEST_VAIN
    tried = Vain()
    tried.count("it broke a contract", refused=["text"])
    tried.count("")
    assert tried.refused == []
    assert until_over(tried, [[f"text {number}"] for number in range(200)]) == 10
    assert tried.refused == []
