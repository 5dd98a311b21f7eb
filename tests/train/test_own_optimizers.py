"""Optimizers and searches of a user's own that are wrong are told of before anything is paid for."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from typing import Any

import pytest

from textgrad_engine import nn, optim, use_models
from textgrad_engine.errors import ReturnError
from textgrad_engine.train import Trainer
from textgrad_engine.train.estimate import estimate


def adds(self: Any, closure: Any = None) -> None:
    for variable in self.variables():
        variable.data += "\nSay it."


def own(base: type = optim.Optimizer, /, **parts: Any) -> Callable[[Any], Any]:
    """What makes an optimizer of a class with these parts."""
    made = {"step": adds, **parts} if base is optim.Optimizer else parts
    kind = type("Own", (base,), {name: part for name, part in made.items() if part is not None})
    return lambda params: kind(params, {})


def searcher(**parts: Any) -> Callable[[Any], Any]:
    usual = {"expected": 0.5, "texts": lambda self: ("Repeat.",), "decide": lambda self, objective: None}
    return own(optim.Searcher, **usual | parts)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (own(step=None), "Own needs a `step` that changes its parameters; write `def step(self, closure=None)`"),
        (
            own(step=lambda self, closure: None),
            "Own.step takes (closure), and is called with (); write `def step(self, c",
        ),
        (
            own(step=lambda self: None, candidates=2),
            "Own.step takes (), and is called with (objective); write `def step",
        ),
        (own(candidates="2"), "Own.candidates must be a whole number, got '2'"),
        (
            own(state_dict=lambda self: None),
            "Own.state_dict() gave None, by which a step that is not kept could not be",
        ),
        (
            own(state_dict=lambda self: {"seen": 1}),
            "Own.state_dict() gave a state without 'steps' and 'param_groups', by which a step that is not kept could",
        ),
        (own(load_state_dict=lambda self: None), "Own.load_state_dict takes (), and is called with (state)"),
        (
            searcher(expected=lambda self: 0.5),
            "fit: Own.expected is a method; put `@property` above it, as it is read, and not called",
        ),
    ],
)
def test_an_optimizer_that_could_not_take_or_undo_a_step_is_refused_before_anything_is_paid_for(
    world: Any, rows: Any, make: Callable[[Any], Any], says: str
) -> None:
    """The first validation, and a minibatch with its feedback, were paid for before Python said something of it."""
    here = world()
    here.optimizer = make(here.program.parameters())
    with pytest.raises(TypeError, match=re.escape(says)):
        here.fit(rows("ant", "bee"), rows("cat"))
    assert here.model.requests == []


def test_a_step_with_a_yield_is_refused_when_its_class_is_made() -> None:
    """It changed nothing, and a run went on without it."""
    with pytest.raises(
        TypeError, match=r"Lazy\.step has a `yield`, so a call of it would give a generator, and change"
    ):

        class Lazy(optim.Optimizer):
            def step(self, closure: Any = None) -> Any:
                yield closure


class Remembers(optim.Optimizer):
    """What it remembers is changed in place, as lists are."""

    def __init__(self, params: Any) -> None:
        super().__init__(params, {})
        self.tried: list[str] = []
        self.last: deque[list[str]] = deque([[]], maxlen=2)
        self.began_with: list[tuple[list[str], list[list[str]]]] = []

    def step(self, closure: Any = None) -> None:
        self.began_with.append((list(self.tried), [list(each) for each in self.last]))
        for variable in self.variables():
            self.tried.append(variable.data)
            self.last[-1].append(variable.data)
            self.state[variable]["steps"] = self.state[variable].get("steps", 0) + 1
            variable.data += "\nSay it."

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "tried": self.tried, "last": self.last}

    def load_state_dict(self, state: Any) -> None:
        super().load_state_dict(state)
        self.tried, self.last = state["tried"], state["last"]


def test_what_a_state_holds_is_taken_back_with_a_step_also_where_it_is_changed_in_place(world: Any, rows: Any) -> None:
    """The state is what the optimizer knew before the step, not what its lists have become since."""
    here = world()
    here.optimizer = Remembers(here.program.parameters())
    result = here.fit(rows("ant", "bee", "cat", "dog"), rows("eel", "fox"))
    assert [step.kept for step in result.steps] == [False, False]
    assert here.optimizer.began_with == [([], [[]]), ([], [[]])]


def test_an_estimate_knows_optimizers_that_remember_something_of_each_parameter(world: Any, rows: Any) -> None:
    """`state[parameter]` is an empty dict there, too, and the optimizer is as it was afterwards."""
    here = world()
    optimizer = Remembers(here.program.parameters())
    told = estimate(Trainer(max_steps=2), here.program, nn.ExactMatch(), optimizer, rows("ant", "bee"), rows("cat"))
    assert told.calls["forward"].high > 0
    assert (optimizer.tried, list(optimizer.last)) == ([], [[]])


@pytest.mark.parametrize("expected", [None, "good", float("nan")])
def test_what_a_search_expects_is_a_number(world: Any, rows: Any, expected: Any) -> None:
    """Each step tells it, and who shows it would fail instead."""
    here = world()
    decide = lambda self, objective: optim.Decision(self.steps + 1, "none")  # noqa: E731
    here.optimizer = searcher(expected=property(lambda self: expected), decide=decide)(here.program.parameters())
    with pytest.raises(ReturnError, match=r"Own\.expected is .*, and is to be the mean validation score"):
        here.fit(rows("ant", "bee"), rows("cat"), max_steps=2)


def test_a_setting_that_ends_a_step_is_told_of_as_it_was_set(world: Any, rows: Any) -> None:
    """And not as one of the state that the optimizer is set back to."""
    here = world("SHOUT")
    here.optimizer.register_step_pre_hook(lambda optimizer, *_: optimizer.param_groups[0].update(max_edits=0))
    with pytest.raises(ValueError, match=r"^param_groups\[0\]: max_edits must be at least 1, got 0"):
        here.fit(rows("ant", "bee"), rows("cat"))
    with use_models(forward=here.model):
        assert here.program.system.data == "Repeat the word."
