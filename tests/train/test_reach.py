"""A run says which of its texts no feedback can reach, when the first minibatch is there."""

from __future__ import annotations

import logging
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import nn, ops, optim
from textgrad_engine.testing import FunctionModel


def answers(request: tg.llm.Request) -> Any:
    if request.purpose == "forward":
        return "no"
    if request.purpose == "optimizer":
        return {"edits": []} if "Give at most" in request.messages[-1].text else {"text": "", "reason": ""}
    wanted = request.config.response_format
    assert wanted is not None
    cases = wanted.json_schema["properties"]
    return {case: dict.fromkeys(fields["properties"], "") for case, fields in cases.items()}


class Chain(nn.Module):
    """The second prompt is given what the first one says, as a text of Python's."""

    def __init__(self, joined: bool) -> None:
        super().__init__()
        self.joined = joined
        self.first = nn.ChatCompletion("{word}", system=nn.Parameter("One.", role="first prompt"))
        self.second = nn.ChatCompletion("{word}", system=nn.Parameter("Two.", role="second prompt"))

    def forward(self, word: str) -> tg.Variable:
        said = self.first(word=word)
        upper = said.data.upper()
        return self.second(word=ops.straight_through(upper, said) if self.joined else upper)


def told(program: nn.Module, make: Any, caplog: pytest.LogCaptureFixture) -> list[str]:
    rows = [{"word": word, "target": "yes"} for word in "abcdefgh"]
    with caplog.at_level(logging.WARNING, "textgrad_engine.train.reach"), tg.use_models(forward=FunctionModel(answers)):
        tg.Trainer(max_epochs=2, batch_size=2, max_steps=3).fit(program, nn.ExactMatch(), make, rows[:4], rows[4:])
    return [record.getMessage() for record in caplog.records if record.name == "textgrad_engine.train.reach"]


@pytest.mark.parametrize("optimizer", ["TGD", "PatchSearch"])
def test_a_text_that_no_feedback_gets_to_is_named_once(optimizer: str, caplog: pytest.LogCaptureFixture) -> None:
    """Its run would end without a change to it, and nobody would know why; the message has the repair."""
    program = Chain(joined=False)
    (message,) = told(program, getattr(optim, optimizer)(program.parameters()), caplog)
    assert "leads back to first.system: " in message
    assert "ops.straight_through(result, answer)" in message


def test_where_all_are_reached_nothing_is_said(caplog: pytest.LogCaptureFixture) -> None:
    """Also where the critic has nothing to say to one of them."""
    program = Chain(joined=True)
    assert told(program, optim.TGD(program.parameters()), caplog) == []


def test_what_is_not_trained_is_not_missed(caplog: pytest.LogCaptureFixture) -> None:
    """A text of which the optimizer knows nothing, and one that is written without feedback."""
    program = Chain(joined=False)
    assert told(program, optim.TGD(program.second.parameters()), caplog) == []
    groups = [{"params": program.second.parameters()}, {"params": program.first.parameters(), "use_feedback": False}]
    assert told(program, optim.TGD(groups), caplog) == []
