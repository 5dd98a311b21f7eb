from __future__ import annotations

from typing import Any

import pytest

from textgrad_engine import Trainer, Variable, nn, ops, use_models
from textgrad_engine.llm import Request
from textgrad_engine.optim import TGD
from textgrad_engine.testing import FunctionModel


class Talk(nn.Module):
    """A program with a long history before its question."""

    def __init__(self) -> None:
        super().__init__()
        self.system = nn.Parameter("Answer.", role="system prompt")

    def forward(self, word: str) -> Variable:
        history = [{"role": "user", "content": f"{n} " + "word " * 300} for n in range(4)]
        system = {"role": "system", "content": self.system}
        return ops.chat_completion(None, [system, *history, {"role": "user", "content": word}])


def answer(request: Request) -> Any:
    if request.purpose == "backward":
        return {"case_1": {"system": "Say yes."}}
    if request.purpose == "optimizer":
        return {"edits": [{"op": "add", "line": 1, "text": "Say yes.", "reason": "asked for", "feedback": [1]}]}
    return "yes" if "Say yes." in request.messages[0].text else "no"


def test_a_step_says_how_much_the_critic_was_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    """A result that rests on part of what happened must say so; the log not of each of its many requests."""
    model = FunctionModel(answer)
    model.context = 2000  # type: ignore[attr-defined]
    rows = [{"word": word, "target": "yes"} for word in ("one", "two", "three", "four")]
    program = Talk()
    optimizer = TGD(program.parameters())
    optimizer.to_the_end = True
    with use_models(forward=model):
        result = Trainer(1, batch_size=3).fit(program, nn.ExactMatch(), optimizer, rows, rows)
    # About 375 tokens each: one of the four has room beside the rest of a request, for each of three examples.
    assert [(step.left_out, step.kept) for step in result.steps] == [(9, True), (0, False)]
    assert sum("3 messages left out, for which" in record.getMessage() for record in caplog.records) == 2
