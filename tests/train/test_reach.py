"""A run says which of its texts no feedback can reach, when the first minibatch is there."""

from __future__ import annotations

import logging
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import nn, ops, optim
from textgrad_engine.errors import AutogradError
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


class Beside(nn.Module):
    """A prompt that answers, and one that is asked inside of a tool or not at all."""

    def __init__(self) -> None:
        super().__init__()
        self.other = nn.ChatCompletion("{word}", system=nn.Parameter("Two.", role="second prompt"))
        self.first = nn.ChatCompletion("{word}", system=nn.Parameter("One.", role="first prompt"), tools=[self.ask])

    def ask(self, word: str) -> tg.Variable:
        """What the other says."""
        return self.other(word=word)

    def forward(self, word: str) -> tg.Variable:
        return self.first(word=word)


def calls_once(request: tg.llm.Request) -> Any:
    first = request.purpose == "forward" and request.messages[0].text == "One."
    if not first or request.messages[-1].role == "tool":
        return answers(request)
    called = ({"id": "1", "type": "function", "function": {"name": "ask", "arguments": '{"word": "a"}'}},)
    return tg.llm.Completion(text="", finish_reason="tool_calls", tool_calls=called, usage=tg.llm.Usage(calls=1))


def fit(program: nn.Module, optimizer: Any, model: Any) -> Any:
    rows = [{"word": word, "target": "yes"} for word in "abcdefgh"]
    with tg.use_models(forward=FunctionModel(model)):
        return tg.Trainer(max_steps=2, batch_size=2).fit(program, nn.ExactMatch(), optimizer, rows[:4], rows[4:])


@pytest.mark.parametrize("optimizer", ["TGD", "PatchSearch"])
def test_where_only_other_texts_are_reached_a_run_is_refused(optimizer: str) -> None:
    """It would go on for nothing: what feedback gets to is not what the optimizer changes."""
    program = Beside()
    with pytest.raises(
        AutogradError, match=r"none of the \d losses of this minibatch (leads back|requires grad)"
    ) as caught:
        fit(program, getattr(optim, optimizer)(program.other.parameters()), answers)
    if optimizer == "TGD":
        assert "leads back to what is trained (other.system): they lead to other texts alone (first prompt)" in str(
            caught.value
        )
        assert "tool" not in str(caught.value)


def test_of_a_prompt_inside_of_a_tool_it_says_what_to_do(caplog: pytest.LogCaptureFixture) -> None:
    """In the log where others are reached, in the error where none is."""
    program = Beside()
    with caplog.at_level(logging.WARNING):
        fit(program, optim.TGD(program.parameters()), calls_once)
    said = [record.getMessage() for record in caplog.records]
    (reach,) = (each for each in said if "leads back to other.system: " in each)
    assert "no feedback goes through a tool" in reach
    assert "ops.straight_through(answer, choice)" in reach
    with pytest.raises(AutogradError, match="no feedback goes through a tool"):
        fit(program, optim.TGD(program.other.parameters()), calls_once)


def test_what_is_said_to_do_brings_feedback_to_both() -> None:
    """The model names the part, and that part is asked in `forward`."""

    class Routed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.router = nn.ChatCompletion("{word}", system=nn.Parameter("Route.", role="router"))
            self.agents = nn.ModuleDict(
                {"no": nn.ChatCompletion("{word}", system=nn.Parameter("No.", role="agent")), "yes": nn.ModuleList()}
            )

        def forward(self, word: str) -> tg.Variable:
            choice = self.router(word=word)
            return ops.straight_through(self.agents[choice.data](word=word), choice)

    def speaks(request: tg.llm.Request) -> Any:
        if request.purpose != "backward":
            return answers(request)
        cases = request.config.response_format.json_schema["properties"]  # type: ignore[union-attr]
        return {case: dict.fromkeys(fields["properties"], "Say yes.") for case, fields in cases.items()}

    program = Routed()
    with tg.use_models(forward=FunctionModel(speaks)):
        tg.backward([nn.ExactMatch()(program(word="a"), "yes")])
    assert all(parameter.grad for parameter in program.parameters())
