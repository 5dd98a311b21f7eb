"""Programs with several outputs: their losses take one, or several, and what was said is kept as it stands."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest

import textgrad_engine as tg
from textgrad_engine import nn, ops, optim
from textgrad_engine.errors import ContentFiltered
from textgrad_engine.llm import Request
from textgrad_engine.testing import FunctionModel, feedback_for
from textgrad_engine.train import Objective, Trainer, evaluate
from textgrad_engine.train.prediction import as_prediction, said_in

WORDS = ("ant", "bee", "cat", "dog")
ROWS = [{"id": word, "word": word, "target": word.upper()} for word in WORDS]


@dataclass
class Record:
    """Outputs in fields."""

    answer: tg.Variable
    rationale: tg.Variable


class Named(NamedTuple):
    """Outputs in a named tuple."""

    answer: tg.Variable
    rationale: tg.Variable


class Reasoning(nn.Module):
    """Two calls; gives both answers."""

    def __init__(self, wrap: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self.think = nn.ChatCompletion("{word}", system=nn.Parameter("Think.", role="first prompt"))
        self.reply = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="second prompt"))
        self.wrap = wrap

    def forward(self, word: str) -> Any:
        return self.wrap(self.reply(word=word), self.think(word=word))


def answer(request: Request) -> Any:
    if request.purpose == "backward":
        return feedback_for(request, "Say to shout.")
    if request.purpose == "optimizer":
        return {"edits": [{"op": "add", "line": 1, "text": "Shout.", "reason": "asked for", "feedback": [1]}]}
    text = request.messages[-1].text
    if "Think" in request.messages[0].text:
        return f"about {text}"
    return text.upper() if "Shout" in request.messages[0].text else text


def exact(value: tg.Variable, target: str) -> tg.Variable:
    return nn.ExactMatch()(value, target)


FORMS: dict[str, tuple[Any, Any, Any]] = {
    "dict": (
        lambda a, r: {"answer": a, "rationale": r},
        lambda p, t: exact(p["answer"], t),
        lambda a, r: {"answer": a, "rationale": r},
    ),
    "tuple": (lambda a, r: (a, r), lambda p, t: exact(p[0], t), lambda a, r: (a, r)),
    "list": (lambda a, r: [a, r], lambda p, t: exact(p[0], t), lambda a, r: [a, r]),
    "named tuple": (Named, lambda p, t: exact(p.answer, t), lambda a, r: (a, r)),
    "dataclass": (Record, lambda p, t: exact(p.answer, t), lambda a, r: {"answer": a, "rationale": r}),
    "nested": (
        lambda a, r: {"steps": [Record(a, r)], "count": 1},
        lambda p, t: exact(p["steps"][0].answer, t),
        lambda a, r: {"steps": [{"answer": a, "rationale": r}], "count": 1},
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_they_are_handed_to_a_loss_of_ones_own(form: str) -> None:
    """And what each said is the prediction of the example, as JSON can write it."""
    wrap, loss, said = FORMS[form]
    program = Reasoning(wrap)
    program.reply.system.data = "Shout."
    with tg.use_models(forward=FunctionModel(answer)):
        found = evaluate(program, ROWS, loss)
    assert found.scores == (1.0,) * 4
    assert found.predictions[0] == said("ANT", "about ant")
    json.dumps(found.predictions)


class Taking(nn.Module):
    """A loss that is a module, and takes one output by name."""

    def forward(self, prediction: Any, target: str) -> tg.Variable:
        return exact(prediction["answer"], target)


@pytest.mark.parametrize("optimizer", [optim.TGD, optim.PatchSearch, optim.BootstrapDemos])
def test_such_programs_are_trained(optimizer: Any) -> None:
    """By optimizers that step, and by those that search; feedback goes to the output that the loss takes."""
    program = Reasoning(FORMS["dict"][0])
    model = FunctionModel(answer)
    with tg.use_models(forward=model):
        found = Trainer(max_steps=2).fit(program, Taking(), optimizer(program.parameters()), ROWS, ROWS[:3])
    assert found.status == "finished"
    if optimizer is not optim.BootstrapDemos:  # no example is solved, so it has none to show
        assert found.best_val is not None
        assert (found.best_val.mean, found.best["reply.system"]) == (1.0, "Repeat.\nShout.")
        assert found.best["think.system"] == "Think."


def test_demonstrations_show_them_as_json() -> None:
    """As any answer that is no text."""
    program = Reasoning(FORMS["dict"][0])
    with tg.use_models(forward=FunctionModel(answer)):
        (run,) = Objective(program, Taking(), ROWS).runs(("Think.", "Repeat."), [0])
    assert run is not None
    assert json.loads(run.whole.answer) == {"answer": "ant", "rationale": "about ant"}


def test_a_lost_output_costs_the_example() -> None:
    """The program was not answered, whichever of its outputs the loss takes."""

    def losing(request: Request) -> Any:
        if "Think" in request.messages[0].text and request.messages[-1].text == "bee":
            raise ContentFiltered("nothing")
        return answer(request)

    with tg.use_models(forward=FunctionModel(losing)):
        found = evaluate(Reasoning(FORMS["dict"][0]), ROWS, Taking())
    assert found.scores == (0.0, None, 0.0, 0.0)
    assert found.predictions[1] is None


LOSSES: dict[str, Any] = {
    "exact match": nn.ExactMatch(),
    "metric": nn.Metric(lambda said, wanted: 1.0, "something"),
    "judge": nn.Judge("Is it loud?"),
    "judge by messages": lambda p, t: ops.lm_judge_evaluator(None, [{"role": "user", "content": "{prediction}"}], p)[0],
    "text loss": lambda p, t: ops.text_loss(p, "Is it loud?"),
}


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(
    ("form", "named"),
    [
        ("dict", "a dict of answer, rationale"),
        ("tuple", "a tuple of 2"),
        ("dataclass", "a Record of answer, rationale"),
    ],
)
def test_losses_of_one_prediction_name_the_outputs(loss: str, form: str, named: str) -> None:
    """They say what to do, and the judge is not asked; the note has the example."""
    model = FunctionModel(answer)
    with (
        tg.use_models(forward=model),
        pytest.raises(TypeError, match=f"scores one Variable, got {named}; .*OnField") as e,
    ):
        evaluate(Reasoning(FORMS[form][0]), ROWS, LOSSES[loss])
    assert e.value.__notes__ == ["while computing the loss on example 'ant'"]
    assert all(request.purpose == "forward" for request in model.requests)


class Talk(nn.Module):
    """Gives a conversation, by a name or as it is."""

    def __init__(self, by_name: bool) -> None:
        super().__init__()
        self.by_name = by_name
        self.chat = nn.ChatCompletion("{messages}", system=nn.Parameter("Answer.", role="system prompt"))

    def forward(self, word: str) -> Any:
        talk = [{"role": "user", "content": word}]
        talk.append({"role": "assistant", "content": self.chat(messages=talk)})
        return {"answer": talk} if self.by_name else talk


@pytest.mark.parametrize("by_name", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_a_conversation_is_no_batch_of_its_messages(loss: str, by_name: bool) -> None:
    """Each message was scored by itself and the sum was the score, 2 of 1; who has joined it is heard by each turn."""
    scored = nn.OnField(LOSSES[loss], "answer") if by_name else LOSSES[loss]
    with tg.use_models(forward=FunctionModel(answer)):
        with pytest.raises(TypeError, match=r"scores one text, got a conversation of 2 messages") as caught:
            evaluate(Talk(by_name), ROWS, scored)
        talk = Talk(by_name=False)(word="ant")
        repair = re.search(r"ops\.join\(.*, \"\\n\"\)", str(caught.value))
        assert repair is not None
        joined = eval(repair[0], {"ops": ops, "messages": talk})
    assert joined.data == f"user: ant\nassistant: {talk[1]['content'].data}"


@pytest.mark.parametrize(
    ("value", "what"), [(None, "None"), (object(), "an object"), (Record, "a type"), (b"ant", "a bytes")]
)
def test_what_is_no_output_is_refused(value: Any, what: str) -> None:
    """In the words of a program, not in those of Variable."""
    with pytest.raises(TypeError, match=f"a program returns a Variable, or several in .*returned {what}"):
        as_prediction(value)


def test_a_program_that_is_an_async_def_is_told_how_to_write_it() -> None:
    """A plain one waits for nobody, and no coroutine is left behind that Python would warn of."""

    async def program(word: str) -> str:
        return word

    with pytest.raises(TypeError, match=r"this one a coroutine: write it as a plain def.* return asyncio\.run\("):
        evaluate(program, ROWS, nn.ExactMatch())
    assert evaluate(lambda word: asyncio.run(program(word)), ROWS, nn.ExactMatch()).scores == (0.0,) * len(ROWS)


@pytest.mark.parametrize("value", ["Rome", 3, 0.5, True, ["Rome", "Paris"], []])
def test_plain_values_are_one_variable(value: Any) -> None:
    """A list of texts is a batch."""
    prediction = as_prediction(value)
    assert isinstance(prediction, tg.Variable)
    assert said_in(prediction) == value
