"""Optimizers and searches of a user's own that are wrong are told of before anything is paid for."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from textgrad_engine import optim
from textgrad_engine.errors import ReturnError


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


@pytest.mark.parametrize("expected", [None, "good", float("nan")])
def test_what_a_search_expects_is_a_number(world: Any, rows: Any, expected: Any) -> None:
    """Each step tells it, and who shows it would fail instead."""
    here = world()
    decide = lambda self, objective: optim.Decision(self.steps + 1, "none")  # noqa: E731
    here.optimizer = searcher(expected=property(lambda self: expected), decide=decide)(here.program.parameters())
    with pytest.raises(ReturnError, match=r"Own\.expected is .*, and is to be the mean validation score"):
        here.fit(rows("ant", "bee"), rows("cat"), max_steps=2)
