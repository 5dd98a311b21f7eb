"""Programs of every form are trained alike: by optimizers that step, and by those that search."""

from __future__ import annotations

from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import nn, ops, optim
from textgrad_engine.testing import SimulatedTask, simulated_task
from textgrad_engine.train import Trainer, TrainResult


@pytest.fixture(scope="module")
def task() -> SimulatedTask:
    return simulated_task(rules=5, train=24, val=24, test=12, seed=3)


class Named(nn.Module):
    """A program that reads its prompt by name."""

    def __init__(self, prompt: str) -> None:
        super().__init__()
        self.prompt = nn.Parameter(prompt, role="system prompt")

    def told(self) -> Any:
        return self.prompt

    def forward(self, parcel: Any) -> tg.Variable:
        messages = [{"role": "system", "content": self.told()}, {"role": "user", "content": "{parcel}"}]
        return ops.chat_completion(None, messages, {"parcel": parcel})


class Walking(Named):
    """The same, by walking over its parameters."""

    def told(self) -> Any:
        return ops.join(list(self.parameters()))


def fit(task: SimulatedTask, program: nn.Module, optimizer: str, rename: str = "parcel") -> TrainResult:
    made = getattr(optim, optimizer)(program.parameters())
    splits = [
        [{rename if key == "parcel" else key: value for key, value in row.items()} for row in rows]
        for rows in (task.train, task.val, task.test)
    ]
    with tg.use_models(forward=task.model), tg.budget(calls=400):
        return Trainer(max_epochs=2).fit(program, task.loss, made, *splits)


@pytest.mark.parametrize("optimizer", ["TGD", "PatchSearch"])
def test_a_program_that_walks_over_its_parameters_is_trained_as_one_that_names_them(
    task: SimulatedTask, optimizer: str
) -> None:
    """What is tried out reaches its requests; a search that changed nothing would find nothing."""
    named, walking = (fit(task, kind(task.seed_prompt), optimizer) for kind in (Named, Walking))
    assert walking.best == named.best
    assert walking.best != {"prompt": task.seed_prompt}


@pytest.mark.parametrize("field", ["module", "self", "overrides"])
def test_a_field_of_any_name_is_trained_on(task: SimulatedTask, field: str) -> None:
    """The names of the library's own arguments are no names among the fields of the data."""
    program = nn.ChatCompletion(f"{{{field}}}", system=nn.Parameter(task.seed_prompt, role="system prompt"))
    result = fit(task, program, "PatchSearch", rename=field)
    assert result.best == fit(task, task.program(), "PatchSearch").best
