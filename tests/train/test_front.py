"""The front of score against tokens: what may stand on it."""

from __future__ import annotations

from typing import Any

from textgrad_engine import nn, use_models
from textgrad_engine.llm import Request
from textgrad_engine.testing import FunctionModel
from textgrad_engine.train import Guards, Objective, shrink
from textgrad_engine.train.front import front_of

ROWS = [{"id": f"w{number}", "word": f"w{number}", "target": f"W{number}"} for number in range(12)]
GUARDS = Guards(never_break=("w0",))
SEED, KEEPS, BREAKS = "FIRST", "Say FIRST, and HALF of the others.", "Say ALL others."


def answer(request: Request) -> Any:
    text, word = request.messages[0].text, request.messages[-1].text
    number = int(word[1:])
    right = "FIRST" in text if number == 0 else "ALL" in text or ("HALF" in text and number % 2)
    return word.upper() if right else word


def program(text: str) -> nn.ChatCompletion:
    return nn.ChatCompletion("{word}", system=nn.Parameter(text, role="system prompt"))


def test_texts_that_guards_refuse_are_not_on_it() -> None:
    """Who takes a text from the front takes one that may be used; nothing is run to find out."""
    fronts = []
    for guards in (None, GUARDS):
        objective = Objective(program(SEED), nn.ExactMatch(), ROWS, guards=guards)
        model = FunctionModel(answer)
        with use_models(forward=model):
            objective.matrix([(SEED,), (KEEPS,), (BREAKS,)], range(len(ROWS)))
            asked = len(model.requests)
            fronts.append([point.texts["system"] for point in front_of(objective, (SEED,))])
        assert len(model.requests) == asked
    assert fronts == [[BREAKS, SEED], [KEEPS, SEED]]


def test_shorter_texts_that_guards_refuse_are_not_on_it() -> None:
    """They were raced and refused, so nobody is told what they would save."""
    fronts = []
    for guards in (None, GUARDS):
        with use_models(forward=FunctionModel(answer)):
            result = shrink(program("Say FIRST.\nSay ALL."), nn.ExactMatch(), ROWS, guards=guards, doubt=0.99)
        fronts.append([point.texts["system"] for point in result.front])
    assert "Say ALL." in fronts[0]
    assert "Say ALL." not in fronts[1]
