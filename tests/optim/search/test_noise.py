"""The noise of scores: measured by running a few examples twice, the same way for all who race."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from textgrad_engine import nn
from textgrad_engine.errors import BudgetExceeded, ContentFiltered
from textgrad_engine.llm import Request
from textgrad_engine.llm.budget import budget
from textgrad_engine.llm.cachekey import sample_number
from textgrad_engine.optim.search.noise import MEASURED, noise_of
from textgrad_engine.testing import FunctionModel
from textgrad_engine.train import Objective

SEED = ("Repeat.",)


def task(count: int, unsteady: Sequence[int] = (), lost: Sequence[int] = ()) -> tuple[FunctionModel, Objective]:
    """Words to repeat: in a second sample, some are repeated wrongly and some not at all."""

    def answer(request: Request) -> Any:
        word = request.messages[-1].text
        again = bool(sample_number(b""))
        if again and int(word[1:]) in lost:
            raise ContentFiltered("lost")
        return "?" if again and int(word[1:]) in unsteady else word

    model = FunctionModel(answer)
    program = nn.ChatCompletion("{word}", system=nn.Parameter(SEED[0], role="system prompt"), model=model)
    rows = [{"id": f"w{n}", "word": f"w{n}", "target": f"w{n}"} for n in range(count)]
    return model, Objective(program, nn.ExactMatch(), rows)


def measured(count: int, **how: Any) -> float:
    _, objective = task(count, **how)
    return noise_of(objective, SEED, dict.fromkeys(range(count), 1.0))


def test_a_spent_budget_is_not_passed_over() -> None:
    """It ends the run, as anywhere else."""
    _, objective = task(4)
    with budget(calls=2), pytest.raises(BudgetExceeded):
        noise_of(objective, SEED, dict.fromkeys(range(4), 1.0))


def test_answers_that_are_lost_tell_nothing() -> None:
    """Of the others the noise is known; where most are lost, or nothing was known before, it is taken for none."""
    assert measured(4, unsteady=(1,), lost=(2, 3)) == pytest.approx(0.5 / 2)
    assert measured(4, unsteady=(1,), lost=(0, 2, 3)) == 0.0
    _, objective = task(4)
    assert noise_of(objective, SEED, {}) == 0.0


def test_half_the_mean_square_of_the_differences() -> None:
    """Two runs differ by the variance of both; a steady model has none."""
    assert measured(8) == 0.0
    assert measured(8, unsteady=(3,)) == pytest.approx(1 / 8 / 2)
    assert measured(8, unsteady=range(8)) == pytest.approx(0.5)


def test_it_costs_a_few_calls_once() -> None:
    """So many examples, drawn by the seed from all that are known; the first run of them is not paid for again."""
    model, objective = task(40)
    known = dict(enumerate(objective.scores(SEED, range(40))))
    scores = {n: score for n, score in known.items() if score is not None}
    drawn = []
    for seed in (0, 0, 1):
        noise_of(objective, SEED, scores, seed)
        drawn.append([request.messages[-1].text for request in model.requests[40:]])
        del model.requests[40:]
    assert len(set(drawn[0])) == MEASURED
    assert max(int(word[1:]) for word in drawn[0]) >= 10  # not the first ones of a set that may be sorted
    assert drawn[1] == []  # the objective knows them
    assert set(drawn[2]) - set(drawn[0])
