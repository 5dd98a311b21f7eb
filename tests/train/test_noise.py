"""Measured noise decides: what is a gain where answers are steady is none where they differ by themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from textgrad_engine import nn, optim, use_models
from textgrad_engine.llm import Request
from textgrad_engine.llm.cachekey import sample_number
from textgrad_engine.optim import Optimizer, proposers
from textgrad_engine.testing import FunctionModel, feedback_for
from textgrad_engine.train import Trainer, TrainResult, shrink

from .shouting import improving

WORDS = ("w0", "w1", "w2", "w3")
"""The program is right on the even ones, and with "Shout" on all."""


def rows(words: tuple[str, ...] = WORDS) -> list[dict[str, Any]]:
    return [{"id": word, "word": word, "target": word.upper()} for word in words]


def model_of(steady: bool) -> FunctionModel:
    def answer(request: Request) -> Any:
        if request.purpose != "forward":
            return improving(request, "Shout.", "Repeat.\nShout.")
        system, word = request.messages[0].text, request.messages[-1].text
        right = "Shout" in system or int(word[1:]) % 2 == 0
        if not steady and sample_number(b""):
            right = not right
        return word.upper() if right else word

    return FunctionModel(answer)


OPTIMIZERS: dict[str, Callable[[Any], Optimizer]] = {
    "TGD": optim.TGD,
    "PatchSearch": lambda params: optim.PatchSearch(params, lanes=1),
    "RandomSearch": lambda params: optim.RandomSearch(params, proposers.Rewrite(), proposals=1),
}


def fit(name: str, steady: bool) -> TrainResult:
    program = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="system prompt"))
    with use_models(forward=model_of(steady)):
        return Trainer(batch_size=4, max_steps=1).fit(
            program, nn.ExactMatch(), OPTIMIZERS[name](program.parameters()), rows(("w5", "w7")), rows()
        )


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("steady", [True, False])
def test_the_race_of_every_optimizer_knows_of_it(name: str, steady: bool) -> None:
    """The same two gains in four examples; where a second run of the same texts gives others, they prove nothing."""
    (step,) = fit(name, steady).steps
    assert step.race is not None
    assert (set(step.race.gained), step.race.lost) == ({"w1", "w3"}, ())
    assert step.kept is steady
    assert step.race.outcome == ("better" if steady else "no difference")


@pytest.mark.parametrize(("steady", "ended"), [(True, "finished"), (False, "noise")])
def test_shrinking_knows_of_it(steady: bool, ended: str) -> None:
    """A line that an answer hangs on stays. Where answers come and go, four examples show of none that it can go."""
    words = ("w0", "w2", "w4", "w1")
    program = nn.ChatCompletion("{word}", nn.Parameter("Repeat.\nShout.", role="system prompt"), model=model_of(steady))
    found = shrink(program, nn.ExactMatch(), rows(words), doubt=0.8, contracts=[optim.Requires(["Repeat"])])
    assert (found.after, found.ended) == ({"system": "Repeat.\nShout."}, ended)
    assert (found.tried > 0) is steady


def test_it_is_measured_once_a_run() -> None:
    """Before the first race, so a run in which nothing is proposed does not pay for it."""
    program = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="system prompt"))
    asked: list[str] = []

    def answer(request: Request) -> Any:
        if request.purpose == "backward":
            return feedback_for(request, "Say to shout.")
        if request.purpose == "optimizer":
            line = f"Do not whisper {len(asked)}."
            return {"edits": [{"op": "add", "line": 1, "text": line, "reason": "asked", "feedback": [1]}]}
        if sample_number(b""):
            asked.append(request.messages[-1].text)
        return request.messages[-1].text

    model = FunctionModel(answer)

    def races_on(train: list[dict[str, Any]]) -> int:
        with use_models(forward=model):
            result = Trainer(batch_size=1).fit(program, nn.ExactMatch(), optim.TGD(program.parameters()), train, rows())
        return sum(step.race is not None for step in result.steps)

    assert races_on(rows(("w5", "w7"))) == 2
    assert sorted(asked) == sorted(WORDS)
    asked.clear()
    assert races_on([{"id": "w5", "word": "w5", "target": "w5"}]) == 0
    assert asked == []
