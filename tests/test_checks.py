"""A set has another order in each process: no request, and no result, may depend on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import data, func, llm, nn, ops, optim, train
from textgrad_engine.testing import ScriptedModel

TEXTS = [f"word_{number}" for number in range(9)]


def value(text: str = "a") -> tg.Variable:
    return tg.Variable(text, role="answer", requires_grad=True)


def prompts() -> set[nn.Parameter]:
    return {nn.Parameter("Sort."), nn.Parameter("Be kind.")}


def first(number: int) -> str:
    """Does one thing."""
    return str(number)


def second(number: int) -> str:
    """Does another."""
    return str(number)


def look_up(names: Any) -> dict[str, Any]:
    properties = {name: {"type": "string"} for name in names}
    told = {"name": "look_up", "parameters": {"type": "object", "properties": properties}}
    return {"type": "function", "function": told}


def asked(**settings: Any) -> llm.GenerateConfig:
    model = ScriptedModel(["yes"])
    _ = ops.chat_completion(model, [{"role": "user", "content": "Well?"}], **settings).data
    return model.requests[0].config


@pytest.mark.parametrize(
    "given",
    [
        lambda: optim.TGD(prompts()),
        lambda: optim.TGD([{"params": prompts()}]),
        lambda: optim.TGD([nn.Parameter("Sort.")], constraints={optim.NotEmpty(), "Be kind."}),
        lambda: optim.TGD([nn.Parameter("Sort.")], transforms={optim.transforms.dedupe(), optim.transforms.cap(3)}),
        lambda: tg.backward({value() + "!", value() + "?"}, ["shorter", "shorter"]),  # type: ignore[arg-type]
        lambda: tg.autograd.grad({value() + "!"}, [value()], ["shorter"]),  # type: ignore[arg-type]
        lambda: tg.autograd.grad(value() + "!", {value(), value()}, "shorter"),  # type: ignore[arg-type]
        lambda: tg.autograd.register_multi_grad_hook({value(), value()}, print),  # type: ignore[arg-type]
        lambda: ops.join({value(), value()}),  # type: ignore[arg-type]
        lambda: ops.join({"a", "b"}),  # type: ignore[arg-type]
        lambda: ops.sum({value(), value()}),  # type: ignore[arg-type]
        lambda: ops.reduce({value(), value()}),  # type: ignore[arg-type]
        lambda: nn.ModuleList({nn.ExactMatch(), nn.ExactMatch()}),
        lambda: nn.Sequential().extend({nn.ExactMatch()}),
        lambda: nn.ParameterList(prompts()),
        lambda: nn.ChatCompletion("{text}", tools={first, second}),
        lambda: asked(tools={first, second}),
        lambda: data.random_split([{"text": "a"}] * 9, {2, 3, 4}, seed=0),  # type: ignore[arg-type]
        lambda: func.stack_module_state({nn.Sequential(), nn.Sequential()}),  # type: ignore[arg-type]
        lambda: ScriptedModel({"yes", "no"}),
    ],
)
def test_a_set_is_refused_where_the_order_counts(given: Callable[[], Any]) -> None:
    """As `torch.optim` refuses one: prompts, steps and gradients would change from run to run, and nothing say so."""
    with pytest.raises(TypeError, match="a set has no order that two runs share; give a list"):
        given()


@pytest.mark.parametrize(
    "kept",
    [
        lambda texts: optim.Requires(texts).phrases,
        lambda texts: optim.Forbids(texts).phrases,
        lambda texts: optim.FrozenLines(texts).lines,
        lambda texts: optim.TGD([nn.Parameter("Sort.")], constraints=texts).param_groups[0]["constraints"],
        lambda texts: optim.TGD([nn.Parameter("Sort.")], examples=texts).param_groups[0]["examples"],
        lambda texts: train.Guards(never_break=texts).never_break,
        lambda texts: asked(stop=texts).stop,
        lambda texts: tuple(nn.Tool(look_up(texts), arguments=texts).arguments),
    ],
)
def test_texts_of_a_set_come_in_one_order(kept: Callable[[Any], Any]) -> None:
    """Where no order is meant, a set may be; what is asked has to be the same on `resume` and for a cache."""
    assert kept(set(TEXTS)) == kept(frozenset(TEXTS)) == tuple(TEXTS)
    assert kept(TEXTS[::-1]) == tuple(TEXTS[::-1])
    assert kept(dict.fromkeys(TEXTS[::-1]).keys()) == tuple(TEXTS[::-1])


def test_what_has_an_order_is_taken() -> None:
    """Keys of a dict, for one, and what is made only when it is asked for."""
    named = {"a": nn.Parameter("Sort."), "b": nn.Parameter("Be kind.")}
    assert optim.TGD(dict.fromkeys(named.values()).keys()).variables() == [*named.values()]
    assert ops.join(map(str, range(3)), " ").data == "0 1 2"  # type: ignore[arg-type]
