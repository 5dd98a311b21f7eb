"""A dataset that has a length and positions, and no end of its own, is gone over by its length everywhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from textgrad_engine import nn, optim, use_models
from textgrad_engine.data import DataLoader, Dataset, check_splits, ids_of, random_split
from textgrad_engine.llm import Request
from textgrad_engine.optim.contracts import NoCopying
from textgrad_engine.testing import FunctionModel, feedback_for
from textgrad_engine.train import Guards, Objective, Trainer, evaluate, shrink
from textgrad_engine.train.estimate import estimate


class Made:
    """Examples that are made when they are asked for, as of a `torch.utils.data.Dataset`."""

    def __init__(self, first: int) -> None:
        self.first = first

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> dict[str, Any]:
        assert 0 <= index < 4, "nobody promised that there is anything"
        number = self.first + index
        return {"word": f"word {number}", "target": f"WORD {number}", "page": number % 2}


def answer(request: Request) -> Any:
    if request.purpose == "backward":
        return feedback_for(request, "Say to shout.")
    if request.purpose == "optimizer":
        return {"edits": [{"op": "add", "line": 1, "text": "Shout.", "reason": "asked for", "feedback": [1]}]}
    text = request.messages[-1].text
    return text.upper() if "Shout" in request.messages[0].text else text


def program() -> nn.ChatCompletion:
    return nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.\nShout.", role="system prompt"))


def fitted(optimizer: Callable[..., Any], train: Any) -> float:
    made = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="system prompt"))
    trainer = Trainer(clusters="page", guards=Guards(floors={("page", 1): 0.0}), max_steps=4)
    found = trainer.fit(made, nn.ExactMatch(), optimizer(made.parameters()), train, Made(10), Made(20))
    assert found.best_test is not None
    return found.best_test.mean


@pytest.mark.parametrize(
    "work",
    [
        lambda: evaluate(program(), Made(0), nn.ExactMatch(), clusters="page").mean,
        lambda: fitted(optim.TGD, Made(0)),
        lambda: fitted(optim.TGD, DataLoader(Made(0), batch_size=2)),
        lambda: fitted(optim.PatchSearch, Made(0)),
        lambda: Objective(program(), nn.ExactMatch(), Made(0)).scores(("Shout.",), [3])[0],
        lambda: shrink(program(), nn.ExactMatch(), Made(0)).after_val.mean,
    ],
    ids=["evaluate", "fit", "fit a loader", "search", "objective", "shrink"],
)
def test_it_can_be_evaluated_and_trained_on(work: Callable[[], float]) -> None:
    """Reading behind its end would go on for ever, or raise what it likes."""
    with use_models(forward=FunctionModel(answer)):
        assert work() == 1.0


@pytest.mark.parametrize("optimizer", [optim.TGD, optim.PatchSearch])
def test_the_calls_of_a_run_on_it_are_estimated(optimizer: Any) -> None:
    """The rehearsal takes the first ones."""
    made = program()
    found = estimate(Trainer(), made, nn.ExactMatch(), optimizer(made.parameters()), Made(0), Made(10))
    assert found.calls["forward"].low >= 4


def test_it_can_be_split_compared_and_named() -> None:
    """The functions of `data`, and what reads examples beside the Trainer."""
    assert ids_of(Made(0)) == ("0", "1", "2", "3")
    first, second = random_split(Made(0), [0.5, 0.5], seed=0)
    assert sorted(row["word"] for row in (*first, *second)) == [f"word {n}" for n in range(4)]
    assert check_splits(Made(0), Made(10), fields=["target"]) == []
    assert len(check_splits(Made(0), Made(0))) == 4
    assert len(Dataset(Made(0))) == 4  # type: ignore[arg-type]
    NoCopying(Made(0))  # type: ignore[arg-type]
