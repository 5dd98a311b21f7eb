"""The entries of a batch as Variables of their own."""

from __future__ import annotations

from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import Variable, func, nn, ops
from textgrad_engine.errors import AutogradError
from textgrad_engine.llm import Request
from textgrad_engine.testing import FunctionModel, feedback_for

WORDS = ["one", "two", "three"]


def answer(request: Request) -> Any:
    word = request.messages[-1].text
    return feedback_for(request, "Shout.") if request.purpose == "backward" else word


def chat() -> tuple[nn.ChatCompletion, FunctionModel]:
    model = FunctionModel(answer)
    return nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="system prompt"), model=model), model


def test_the_entries_of_a_batch_are_heard_one_by_one() -> None:
    """What is said of one is said of its place in the batch; the loop, `unbind` and `reversed` give the same."""
    batch = Variable(WORDS, role="words", requires_grad=True)
    first, *_, last = batch + Variable("!")
    tg.backward([first, last], ["louder", "softer"])
    assert (first.data, last.data, last.role) == ("one!", "three!", "words")
    assert [item.data for item in batch.grad] == [["louder", "", "softer"]]
    assert [entry.data for entry in reversed(batch)] == [entry.data for entry in ops.unbind(batch)][::-1] == WORDS[::-1]


@pytest.mark.parametrize("way", ["vmap", "batch"])
def test_what_is_satisfied_among_entries_asks_nobody(way: str) -> None:
    """A batch of answers and a loop over their losses, as in PyTorch; each loss stands for its own."""
    program, model = chat()
    with tg.use_models(backward=model):
        answers = func.vmap(lambda word: program(word=word))(WORDS) if way == "vmap" else program(word=WORDS)
        losses = [nn.ExactMatch()(said, wanted) for said, wanted in zip(answers, ["ONE", "two", "THREE"], strict=True)]
        tg.backward(losses)
    assert [loss.data for loss in losses] == [0, 1, 0]
    assert [item.data for item in program.system.grad] == ["Shout.", "Shout."]
    assert sum(request.purpose == "backward" for request in model.requests) == 2


def test_a_batch_in_a_vmap_is_taken_apart() -> None:
    """For each example its own; an example itself is no batch, however many there are."""
    program, _ = chat()

    def longest(word: Variable) -> Any:
        _, second = program(word=[word, "!"])
        return second + word

    assert func.vmap(longest)(["a", "b"]).data == ["!a", "!b"]
    with pytest.raises(AutogradError, match="reads the data of a value inside"):
        func.vmap(lambda word: list(word))(["a", "b"])


def test_an_empty_batch_has_no_entries() -> None:
    """And a batch of one has one."""
    assert list(Variable([])) == []
    assert [entry.data for entry in Variable(["a"])] == ["a"]


@pytest.mark.parametrize("value", ["ab", 3, ["a"]])
def test_what_is_no_batch_is_refused(value: Any) -> None:
    """A text has pieces by `ops.split`, and a plain list is one."""
    with pytest.raises(TypeError, match="unbind: takes a batch apart"):
        ops.unbind(value)
    if not isinstance(value, list):
        with pytest.raises(TypeError, match="cannot be iterated over, as it is no batch"):
            list(Variable(value))


def test_a_list_in_a_json_answer_says_how_its_entries_are_had() -> None:
    """As the steps of a plan: its data is text, and pieces of that at commas would be no entries."""
    plan = Variable('{"steps": ["look, then ask", "answer"]}', role="plan", requires_grad=True)
    with pytest.raises(TypeError, match=r"of the JSON list in it \[it\[n\] for n in range\(2\)\] has the entries"):
        list(plan["steps"])
    steps = [plan["steps"][n] for n in range(2)]
    assert [step.data for step in steps] == ["look, then ask", "answer"]
    steps[1].backward("Say what.")
    assert "Say what." in plan.grad[0].data
    for other in ("{}", "[1", "no list"):
        with pytest.raises(TypeError, match=r"ops\.split for pieces that keep the graph$"):
            list(Variable(other))


def test_a_field_of_a_batch_says_how_to_read_it_of_each() -> None:
    """Which the loop then does."""
    batch = Variable(['{"a": "x"}', '{"a": "y"}'])
    with pytest.raises(TypeError, match=r"ops\.unbind\(answers\)"):
        batch["a"].data  # noqa: B018
    assert [entry["a"].data for entry in batch] == ["x", "y"]
