"""A run says which of its texts no feedback can reach, when the first minibatch is there."""

from __future__ import annotations

import logging
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import nn, ops, optim
from textgrad_engine.errors import AutogradError, BadRequest
from textgrad_engine.testing import FunctionModel, feedback_for


def answers(request: tg.llm.Request) -> Any:
    if request.purpose == "forward":
        return "no"
    if request.purpose == "optimizer":
        return {"edits": []} if "Give at most" in request.messages[-1].text else {"text": "", "reason": ""}
    return feedback_for(request, "")


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
    with (
        caplog.at_level(logging.WARNING, "textgrad_engine.train.reach"),
        tg.use_models(forward=FunctionModel(answers)),
    ):
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


def test_where_only_other_texts_are_reached_a_run_says_so_and_once_more_at_its_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It may go on for nothing: what feedback gets to is not what the optimizer changes."""
    program = Beside()
    fit(program, optim.TGD(program.other.parameters()), answers)
    first, last = (each.getMessage() for each in caplog.records if each.name == "textgrad_engine.train.reach")
    assert "leads back to what is trained (other.system): they lead to other texts alone (first prompt)" in first
    assert "tool" not in first
    assert "none of the 4 losses of this run leads back to what is trained (other.system)" in last


def test_who_trains_a_judge_that_speaks_to_its_prediction_is_told_of_the_setting() -> None:
    """By itself a judge's instructions hear nothing, and the program looks as any that returns its Variable."""

    class Marks(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.judge = nn.Judge(nn.Parameter("Is it polite?", role="rubric"))

        def forward(self, word: str) -> tg.Variable:
            return self.judge(word)

    program = Marks()
    with pytest.raises(AutogradError, match=r"A judge's own instructions are trained only with eval_mode=False"):
        fit(program, optim.TGD(program.parameters()), lambda request: {"score": 0, "explanation": "no"})


def test_a_search_of_which_no_loss_leads_anywhere_is_refused() -> None:
    """In a search, what is not trained takes no feedback at all."""
    program = Beside()
    with pytest.raises(AutogradError, match="none of the losses of the 4 training examples requires grad"):
        fit(program, optim.PatchSearch(program.other.parameters()), answers)


@pytest.mark.parametrize("optimizer", ["TGD", "PatchSearch"])
def test_an_example_that_is_never_answered_keeps_no_run_going(optimizer: str, caplog: pytest.LogCaptureFixture) -> None:
    """The first minibatch tells; who has had no answer twice is not waited for, and one by chance is asked again."""
    asked: list[str] = []

    def answer(request: tg.llm.Request) -> str:
        asked.append(word := request.messages[-1].text)
        if word == "w3":
            raise BadRequest("filtered", status=400)
        return "no"

    class Cut(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.chat = nn.ChatCompletion("{word}", system=nn.Parameter("One.", role="first prompt"))

        def forward(self, word: str) -> tg.Variable:
            return tg.Variable(str(self.chat(word=word).data))

    program, rows = Cut(), [{"word": f"w{n}", "target": "yes"} for n in range(8)]
    search = getattr(optim, optimizer)(program.parameters())
    match = "of the 7 training examples that were answered requires grad"
    with tg.use_models(forward=FunctionModel(answer)), pytest.raises(AutogradError, match=match):
        tg.Trainer(max_epochs=9, batch_size=4).fit(
            program, nn.ExactMatch(), search, rows, [{"word": "v", "target": "y"}]
        )
    assert asked.count("w3") == 2
    assert "of 8 training examples requires grad" in caplog.text


def test_a_run_that_ends_before_all_examples_says_that_it_learned_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """Nobody knows then whether the others would have led to what is trained."""
    program, rows = Beside(), [{"word": word, "target": "yes"} for word in "abcdefgh"]
    with tg.use_models(forward=FunctionModel(answers)):
        trainer = tg.Trainer(max_steps=1, batch_size=2)
        trainer.fit(program, nn.ExactMatch(), optim.ParetoSearch(program.other.parameters()), rows, rows)
    _, said = (each.getMessage() for each in caplog.records if each.name == "textgrad_engine.train.reach")
    assert "that this run came to requires grad, so nothing was learned" in said


@pytest.mark.parametrize("make", [optim.TGD, optim.PatchSearch, optim.ParetoSearch, optim.BeamSearch])
def test_a_branch_of_a_program_without_other_texts_is_trained(make: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Where no loss of the first minibatches leads anywhere, that is told once, and the run goes on until one does."""

    class Rare(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rare = nn.ChatCompletion("{word}", system=nn.Parameter("Two.", role="rare prompt"))

        def forward(self, word: str) -> tg.Variable:
            return self.rare(word=word) if word == "h" else tg.Variable("no")

    def critic(request: tg.llm.Request) -> Any:
        if request.purpose == "backward":
            heard.append(request)
        return answers(request)

    heard: list[Any] = []
    program, rows = Rare(), [{"word": word, "target": "yes"} for word in "abcdefgh"]
    with tg.use_models(forward=FunctionModel(critic)):
        trainer = tg.Trainer(max_steps=12, batch_size=2)
        trainer.fit(program, nn.ExactMatch(), make(program.parameters()), rows, rows)
    assert heard
    said = [each.getMessage() for each in caplog.records if each.name == "textgrad_engine.train.reach"]
    assert [message[:29] for message in said] in ([], ["none of the losses of the fir"])


def test_a_branch_that_few_examples_take_is_trained(caplog: pytest.LogCaptureFixture) -> None:
    """The first minibatches do not take it, and the run goes on until one does."""

    class Rare(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.usual = nn.ChatCompletion("{word}", system=nn.Parameter("One.", role="usual prompt"))
            self.rare = nn.ChatCompletion("{word}", system=nn.Parameter("Two.", role="rare prompt"))

        def forward(self, word: str) -> tg.Variable:
            return (self.rare if word == "d" else self.usual)(word=word)

    def speaks(request: tg.llm.Request) -> Any:
        if request.purpose == "forward":
            return "yes" if "yes" in request.messages[0].text else "no"
        if request.purpose == "optimizer":
            return {"text": "Say yes.", "reason": ""}
        return feedback_for(request, "Say yes.")

    program, rows = Rare(), [{"word": word, "target": "yes"} for word in "abcd"]
    optimizer = optim.TGD(program.rare.parameters(), proposer=optim.proposers.Rewrite())
    with tg.use_models(forward=FunctionModel(speaks)):
        loader = tg.data.DataLoader(rows, batch_size=1)  # in order, the rare one last
        result = tg.Trainer(max_epochs=1).fit(program, nn.ExactMatch(), optimizer, loader, rows)
    assert [step.feedback for step in result.steps] == [0, 0, 0, 1]
    said = [each.getMessage() for each in caplog.records if each.name == "textgrad_engine.train.reach"]
    assert [message[:31] for message in said] == ["none of the first 1 losses lead"]


def test_of_a_prompt_inside_of_a_tool_it_says_what_to_do(caplog: pytest.LogCaptureFixture) -> None:
    """Whether others that are trained are reached or not: its tool gives text."""

    class Texts(Beside):
        def ask(self, word: str) -> str:  # type: ignore[override]
            """What the other says."""
            return str(self.other(word=word).data)

    program = Texts()
    with caplog.at_level(logging.WARNING):
        fit(program, optim.TGD(program.parameters()), calls_once)
    said = [record.getMessage() for record in caplog.records]
    (reach,) = (each for each in said if "leads back to other.system: " in each)
    assert "no feedback goes through a tool that gives text" in reach
    assert "return the Variable that was answered" in reach
    caplog.clear()
    fit(program, optim.TGD(program.other.parameters()), calls_once)
    assert "no feedback goes through a tool" in caplog.text


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
        return feedback_for(request, "Say yes.")

    program = Routed()
    with tg.use_models(forward=FunctionModel(speaks)):
        tg.backward([nn.ExactMatch()(program(word="a"), "yes")])
    assert all(parameter.grad for parameter in program.parameters())
