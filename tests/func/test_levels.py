"""What all transforms share: what they make is known by the function that it was made of."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import pytest

from textgrad_engine import func, nn, ops
from textgrad_engine.errors import AutogradError


def loss(draft: Any, target: str = "hello") -> Any:
    """How near a draft is."""
    return ops.exact_match_evaluator(draft, target)[0]


MADE = [
    func.grad,
    func.grad_and_value,
    func.vmap,
    func.jacrev,
    func.jacfwd,
    func.hessian,
    func.agrad,
    func.agrad_and_value,
    func.avmap,
    func.ajacrev,
    func.ahessian,
]


@pytest.mark.parametrize("transform", MADE, ids=lambda each: each.__name__)
def test_a_function_keeps_its_name_documentation_and_arguments(transform: Callable[..., Any]) -> None:
    """As in `torch.func`: `help` of a decorated loss is about the loss."""
    made = transform(loss)
    assert (made.__name__, made.__doc__, made.__module__) == ("loss", "How near a draft is.", __name__)
    assert list(inspect.signature(made).parameters) == ["draft", "target"]


def test_what_has_no_name_is_transformed_all_the_same() -> None:
    """A partial, or a module, of which nothing else is taken over."""
    assert func.grad(functools.partial(loss, target="hi"))("hi").data == ""
    made = func.vmap(nn.Sequential())
    assert made(["a", "b"]).data == ["a", "b"]
    assert not hasattr(made, "_modules")


@pytest.mark.parametrize(
    ("call", "quoted"),
    [
        (lambda: func.vmap(func.grad(loss))("a"), "vmap(grad(loss), in_dims=0)(<inputs>): argument 0"),
        (lambda: func.grad(func.vmap(loss, (0, None)), 3)(["a"], "b"), "grad(vmap(loss, in_dims=(0, None)))(<inputs>)"),
        (lambda: func.grad(func.grad(loss), 2)("a"), "grad(grad(loss))(<inputs>): argnums"),
        (lambda: func.grad_and_value(loss, 2)("a"), "grad_and_value(loss)(<inputs>): argnums"),
        (lambda: func.jacfwd(func.jacrev(loss), 2)("a"), "jacfwd(jacrev(loss))(<inputs>): argnums"),
        (lambda: func.vmap(functools.partial(func.vmap(loss), target="b"))("a"), "vmap(vmap(loss, in_dims=0), in_dims"),
    ],
)
def test_a_message_quotes_the_whole_call(call: Callable[[], Any], quoted: str) -> None:
    """Of two transforms each by its name: with `vmap(transformed, …)` nobody knew which one was meant."""
    with pytest.raises(AutogradError) as caught:
        call()
    assert str(caught.value).startswith(quoted)
