"""Lost answers end a run when more rounds in a row were lost as a whole than chance loses, and not before."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import pytest

from textgrad_engine import nn, use_models
from textgrad_engine.errors import BadRequest, ModelError
from textgrad_engine.llm import CallableModel
from textgrad_engine.optim import TGD
from textgrad_engine.train import Trainer
from textgrad_engine.train.lost_rounds import LostRounds

LOST: dict[str, Any] = {"heard": False, "problems": ["filtered"]}
KEPT: dict[str, Any] = {"heard": True, "problems": []}
NEEDED_NONE: dict[str, Any] = {"heard": False, "problems": []}


def rounds() -> LostRounds:
    return LostRounds(TGD([nn.Parameter("Repeat.", role="system prompt")]))


def test_three_steps_end_a_run_in_which_nothing_was_answered() -> None:
    """The first problem of the last one is told; a step that needed no answer begins the count anew."""
    found = rounds()
    for number, step in enumerate([LOST, LOST, NEEDED_NONE, LOST, LOST], 1):
        found.check(**step, number=number)
    with pytest.raises(ModelError, match=r"3 steps in a row came to nothing, step 6 being the last; .*: filtered"):
        found.check(**LOST, number=6)


@pytest.mark.parametrize(
    ("heard", "changes", "lost"), [(True, (), True), (True, ("one",), False), (False, ("one",), True)]
)
def test_a_step_is_lost_with_what_it_goes_by_or_with_all_that_it_asks_for(
    heard: bool, changes: Any, lost: bool
) -> None:
    """Of an optimizer whose answers are filtered nothing comes; where one of several is, the others may be of use."""
    optimizer: Any = SimpleNamespace(changes=changes)
    found = LostRounds(optimizer)
    for number in (1, 2):
        found.check(heard, ["filtered"], number)
    if not lost:
        found.check(heard, ["filtered"], 3)
        found.end()
    else:
        with pytest.raises(ModelError, match="3 steps in a row came to nothing"):
            found.check(heard, ["filtered"], 3)


def test_an_app_that_is_asked_as_critic_is_told_how_another_one_is_named() -> None:
    """It answers as it always does: `set_models(forward=app)` makes it the model of all calls."""
    program = nn.ChatCompletion("{text}", system=nn.Parameter("Sort.", role="system prompt"))
    rows = [{"text": "a", "target": "b"}, {"text": "c", "target": "d"}]
    with use_models(forward=CallableModel(lambda messages: "billing")):
        with pytest.raises(ModelError, match=r"3 steps.*'<lambda>' \(backward\).*; use_models\(backward=\.\.\., optim"):
            Trainer(max_epochs=3).fit(program, nn.ExactMatch(), TGD(program.parameters()), rows, rows)
        result = Trainer(max_epochs=2).fit(program, nn.ExactMatch(), TGD(program.parameters()), rows, rows)
    assert "nothing was tried, as answers were missing in 2 of 2 steps (step 1: no feedback from" in str(result)
    assert "no change did better" not in str(result)


@pytest.mark.parametrize(("before", "most"), [("K", 6), ("KKKK", 4), ("K" * 30, 3), ("LKKKK", 6), ("LLKLK", 10)])
def test_later_on_it_takes_as_many_as_are_not_lost_by_chance(before: str, most: int) -> None:
    """A critic that answered always and is silent ends a run soon; one that often gives no answer, later."""
    found = rounds()
    for number, step in enumerate(before, 1):
        found.check(**(KEPT if step == "K" else LOST), number=number)
    for number in range(1, most):
        found.check(**LOST, number=len(before) + number)
    with pytest.raises(ModelError, match=f"{most} steps in a row came to nothing"):
        found.check(**LOST, number=len(before) + most)


@pytest.mark.parametrize("share", [0.05, 0.1, 0.3])
def test_a_critic_that_withholds_some_answers_ends_few_runs(share: float) -> None:
    """Of runs of 100 steps, each of which asks one question, three lost in a row would end 1%, 8% and 86%."""
    ended = 0
    for seed in range(200):
        rng, found = random.Random(seed), rounds()
        found.check(**KEPT, number=1)
        try:
            for number in range(2, 101):
                found.check(**(LOST if rng.random() < share else KEPT), number=number)
        except ModelError:
            ended += 1
    assert ended <= 10


@pytest.mark.parametrize(("before", "most"), [("", 3), ("K", 3), ("KKKK", 3), ("LKLK", 6), ("LLKLK", 7)])
def test_the_last_ones_of_a_run_that_is_over_end_it_sooner(before: str, most: int) -> None:
    """A search may have a few rounds only, and nothing asks for what was lost in a finished run."""
    found = rounds()
    for number, step in enumerate(before, 1):
        found.check(**(KEPT if step == "K" else LOST), number=number)
    for number in range(1, min(most, 3) if not before else most):
        found.end()
        found.check(**LOST, number=len(before) + number)
    found.end()
    with pytest.raises(ModelError, match=f"{most} steps in a row came to nothing"):
        (found.check(**LOST, number=len(before) + most), found.end())


def test_a_run_whose_last_step_was_answered_is_over() -> None:
    """Whatever was lost before it."""
    found = rounds()
    for number, step in enumerate([LOST, LOST, KEPT], 1):
        found.check(**step, number=number)
    found.end()


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
    for number in (9, 11, 13):
        found.check(**LOST, number=number, kind="patch", more=True)
        found.check(**NEEDED_NONE, number=number + 1, kind="ablation")
    found.check(**LOST, number=15, kind="patch", more=True)
    with pytest.raises(ModelError, match="4 rounds of steps"):
        found.check(**NEEDED_NONE, number=16, kind="ablation")


def test_a_step_without_feedback_that_nobody_lost_counts_for_nothing() -> None:
    """All of a minibatch was right."""
    found = rounds()
    for number in range(1, 9):
        found.check(**NEEDED_NONE, number=number)


def refused(setting: str, words: str) -> BadRequest:
    error = BadRequest(words, status=400)
    error.setting = setting
    return error


def test_a_step_that_is_lost_to_a_setting_ends_a_run_also_where_others_were_decided_about_meanwhile() -> None:
    """Of lanes side by side one may have heard before, and the refusal is older than its step's decision."""
    found, error = rounds(), refused("seed", "no seed")
    found.hear(error)
    found.check(**KEPT, number=1)
    with pytest.raises(BadRequest, match="no seed") as caught:
        found.check(heard=False, problems=["no feedback: BadRequest: no seed"], number=2, more=True)
    assert caught.value is not error


@pytest.mark.parametrize(
    "error", [refused("", "no seed"), refused("response_format", "no seed"), refused("seed", "no such seed")]
)
def test_what_another_request_may_be_answered_to_is_counted(error: BadRequest) -> None:
    """A filter, a form that only this request has, or a refusal that the step was not lost to."""
    found = rounds()
    found.hear(error)
    for number in (1, 2):
        found.check(heard=False, problems=["no feedback: BadRequest: no seed"], number=number)
    with pytest.raises(ModelError, match="3 steps in a row came to nothing"):
        found.check(heard=False, problems=["no feedback: BadRequest: no seed"], number=3)
