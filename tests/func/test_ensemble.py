from __future__ import annotations

from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import func, nn
from textgrad_engine.errors import AutogradError


class Greeter(nn.Module):
    """Has a parameter and a buffer."""

    def __init__(self, words: str) -> None:
        super().__init__()
        self.greeting = nn.Parameter(words, role="greeting")
        self.register_buffer("end", tg.Variable("!"))

    def forward(self, name: Any) -> tg.Variable:
        return self.greeting + ", " + name + self.end


class Other(Greeter):
    """Of another class."""


def test_modules_of_different_kinds_are_refused() -> None:
    """One forward runs them all; the error says which of them is another one."""
    with pytest.raises(AutogradError, match="there is no module"):
        func.stack_module_state([])
    with pytest.raises(TypeError, match=r"(?s)a sequence of Module objects, .*\[1\] of it is 'b'"):
        func.stack_module_state([Greeter("a"), "b"])
    with pytest.raises(AutogradError, match="module 1 is an Other, and the first a Greeter"):
        func.stack_module_state([Greeter("a"), Other("b")])
    more = Greeter("b")
    more.second = nn.Parameter("c")
    with pytest.raises(
        AutogradError, match=r"module 1 has the parameters \['greeting', 'second'\], and the first \['gr"
    ):
        func.stack_module_state([Greeter("a"), more])


def test_an_ensemble_runs_as_its_modules_do_and_each_hears_its_own() -> None:
    """Parameters, buffers and texts are batches; feedback goes to the modules' own parameters."""
    greeters = [Greeter("Hello"), Greeter("Hi")]
    greeters[1].end.data = "?"
    state = func.stack_module_state(greeters)

    def call(parameters: Any, buffers: Any, name: Any) -> tg.Variable:
        result: tg.Variable = func.functional_call(greeters[0], (parameters, buffers), name)
        return result

    said = func.vmap(call, in_dims=(0, 0, None))(*state, "Ann")
    assert said.data == ["Hello, Ann!", "Hi, Ann?"]
    said.backward(["too stiff", ""])
    assert [[item.data for item in each.greeting.grad] for each in greeters] == [["too stiff"], []]
