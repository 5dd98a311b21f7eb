"""Names of the examples of a vmap: what is recorded of calls, and where feedback says it comes from."""

from __future__ import annotations

from typing import Any

import pytest

from textgrad_engine import Variable, func, nn, use_models
from textgrad_engine.errors import AutogradError
from textgrad_engine.llm.usage import CallRecord, observe
from textgrad_engine.testing import FunctionModel


def called(function: Any, *args: Any) -> list[str]:
    """The examples that calls were recorded for."""
    found: list[str] = []

    def on_call(record: CallRecord) -> None:
        found.append(record.key)

    with use_models(forward=FunctionModel(lambda request: "x")), observe(on_call):
        _ = function(*args).data
    return sorted(found)


CHAT = nn.ChatCompletion("{word}", system=nn.Parameter("Say it.", role="system prompt"))


def say(word: Any) -> Any:
    return CHAT(word=word)


def test_as_many_names_as_examples_are_wanted() -> None:
    """A name too few would give somebody's feedback to somebody else."""
    with pytest.raises(AutogradError, match=r"vmap\(say, in_dims=0\)\(<inputs>\): there are 1 names for 2 examples"):
        func.vmap(say, names=["a"])(["x", "y"])


def test_names_stand_in_the_place_of_numbers() -> None:
    """Also in chunks."""
    assert called(func.vmap(say), ["x", "y", "z"]) == ["[0]", "[1]", "[2]"]
    assert called(func.vmap(say, names=["a", "b", "c"]), ["x", "y", "z"]) == ["a", "b", "c"]
    assert called(func.vmap(say, names=["a", "b", "c"], chunk_size=2), ["x", "y", "z"]) == ["a", "b", "c"]


def test_an_empty_name_adds_nothing_to_the_batch_inside() -> None:
    """So a search runs many candidates on named examples, and each call is recorded as its example's."""
    inner = func.vmap(lambda candidate, word: CHAT(word=candidate + word), in_dims=(None, 0), names=["a", "b"])
    assert called(func.vmap(inner, in_dims=(0, None), names=["", ""]), ["x", "y"], ["1", "2"]) == ["a", "a", "b", "b"]
    assert called(func.vmap(inner, in_dims=(0, None)), ["x", "y"], ["1", "2"]) == ["a[0]", "a[1]", "b[0]", "b[1]"]


def test_numbers_of_a_batch_inside_stay_behind_the_name() -> None:
    """The parts of a named example are told apart."""
    inner = func.vmap(lambda word, part: CHAT(word=word + part), in_dims=(None, 0))
    assert called(func.vmap(inner, in_dims=(0, None), names=["a", "b"]), ["x", "y"], ["1", "2"]) == [
        "a[0]", "a[1]", "b[0]", "b[1]",
    ]  # fmt: skip


def test_feedback_comes_from_the_named_example() -> None:
    """A backward pass through a vmap knows the names, too."""
    prompt = nn.Parameter("Say it.", role="system prompt")
    chat = nn.ChatCompletion("{word}", system=prompt)

    def loss(word: Any, target: Any) -> Any:
        return nn.ExactMatch()(chat(word=word), target)

    def model(request: Any) -> Any:
        return {"case_1": {"system": "Shout."}} if request.purpose == "backward" else "x"

    with use_models(forward=FunctionModel(model)):
        func.vmap(loss, names=["a", "b"])(["x", "y"], ["X", "Y"]).backward()
        names = [item.source.example for item in prompt.grad if item.source is not None]
    assert names == ["a", "b"]
    assert isinstance(prompt.grad[0], Variable)
