"""A pass can go on when single backward rules fail, if somebody says so."""

from __future__ import annotations

from typing import Any

import pytest

from textgrad_engine.autograd import Function, Node, Variable, backward
from textgrad_engine.autograd.forgiving import forgiving
from textgrad_engine.errors import EmptyResponse


class Picky(Function):
    """Feedback that says so makes its rule fail."""

    @staticmethod
    def forward(text: Variable) -> Variable:
        return Variable(text.data)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        pass

    @staticmethod
    async def backward(ctx: Any, grad_out: Variable) -> Any:
        if "fail" in grad_out.data:
            raise EmptyResponse(grad_out.data)
        return Variable(grad_out.data)


def test_without_forgiveness_one_failed_rule_fails_the_pass() -> None:
    """Nothing is written when anything fails."""
    prompt = Variable("p", requires_grad=True)
    with pytest.raises(EmptyResponse):
        backward([Picky.apply(prompt), Picky.apply(prompt)], ["fail", "fine"])
    assert prompt.grad == []


def test_a_forgiven_rule_says_nothing_and_the_others_are_heard() -> None:
    """One lost answer of the critic costs one piece of feedback, not all of them."""
    prompt = Variable("p", requires_grad=True)
    seen: list[tuple[str, str]] = []

    def forgive(node: Node, error: BaseException) -> bool:
        seen.append((node.name(), str(error)))
        return True

    with forgiving(forgive):
        backward([Picky.apply(prompt) for _ in range(4)], ["one", "fail a", "three", "fail b"])
    assert [item.data for item in prompt.grad] == ["one", "three"]
    assert sorted(seen) == [("PickyBackward", "fail a"), ("PickyBackward", "fail b")]


def test_who_forgives_may_refuse() -> None:
    """Only what the handler knows is passed over."""
    prompt = Variable("p", requires_grad=True)
    with forgiving(lambda node, error: False), pytest.raises(EmptyResponse):
        backward(Picky.apply(prompt), "fail")
    assert prompt.grad == []


def test_a_gradient_for_what_is_no_variable_is_an_error() -> None:
    """A rule that mixes up its arguments is told, instead of its feedback being dropped."""

    class Mixed(Picky):
        @staticmethod
        def forward(text: Variable, times: int) -> Variable:
            return Variable(text.data * times)

        @staticmethod
        def backward(ctx: Any, grad_out: Variable) -> Any:
            return None, grad_out

    with pytest.raises(RuntimeError, match="gradient for argument 1, which is no Variable"):
        Mixed.apply(Variable("a", requires_grad=True), 2).backward("x")
