"""Lost answers end a run when three rounds in a row were lost as a whole, and not before."""

from __future__ import annotations

from typing import Any

import pytest

from textgrad_engine import nn
from textgrad_engine.errors import ModelError
from textgrad_engine.optim import TGD
from textgrad_engine.train.lost_rounds import LostRounds

LOST: dict[str, Any] = {"heard": False, "problems": ["filtered"]}
KEPT: dict[str, Any] = {"heard": True, "problems": []}


def rounds() -> LostRounds:
    return LostRounds(TGD([nn.Parameter("Repeat.", role="system prompt")]))


def test_a_step_that_came_to_something_begins_the_count_anew() -> None:
    """Two lost ones before it are forgotten; three behind it end the run, with the first problem of the last."""
    found = rounds()
    for number, step in enumerate([LOST, LOST, KEPT, LOST, LOST], 1):
        found.check(**step, number=number)
    with pytest.raises(ModelError, match=r"3 steps in a row came to nothing, step 6 being the last; .*: filtered"):
        found.check(**LOST, number=6)


def test_steps_that_were_proposed_together_are_one_round() -> None:
    """Many lost at the same time say no more than one does."""
    found = rounds()
    for number in range(1, 9):
        found.check(**LOST, number=number, kind="patch", more=number % 4 != 0)
    found.check(**LOST, number=9, kind="patch", more=True)
    with pytest.raises(ModelError, match=r"3 rounds of steps in a row came to nothing, step 10"):
        found.check(**LOST, number=10, kind="patch")


def test_a_round_is_lost_where_all_of_one_kind_are() -> None:
    """What another kind of step did meanwhile needs no answer of the one that is silent."""
    found = rounds()
    for number in (1, 3, 5, 7):
        found.check(**LOST, number=number, kind="patch", more=True)
        found.check(**KEPT, number=number + 1, kind="patch")
    for number in (9, 11):
        found.check(**LOST, number=number, kind="patch", more=True)
        found.check(**KEPT, number=number + 1, kind="ablation")
    found.check(**LOST, number=13, kind="patch", more=True)
    with pytest.raises(ModelError, match="3 rounds of steps"):
        found.check(**KEPT, number=14, kind="ablation")


def test_a_step_without_feedback_that_nobody_lost_counts_for_nothing() -> None:
    """All of a minibatch was right."""
    found = rounds()
    for number in range(1, 9):
        found.check(heard=False, problems=[], number=number)
