"""The public surface has the parameters that were promised, in that order and with these defaults."""

from __future__ import annotations

import inspect
from operator import attrgetter
from typing import Any

import pytest

import textgrad_engine as tg

PROMISED: dict[str, str] = {
    "Variable": "data, role='', requires_grad=False",
    "Variable.backward": "self, gradient=None, retain_graph=None, create_graph=False, inputs=None",
    "Variable.abackward": "self, gradient=None, retain_graph=None, create_graph=False, inputs=None",
    "backward": "variables, grad_variables=None, retain_graph=None, create_graph=False, inputs=None",
    "abackward": "variables, grad_variables=None, retain_graph=None, create_graph=False, inputs=None",
    "autograd.grad": ("outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, allow_unused=False"),
    "autograd.agrad": ("outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, allow_unused=False"),
    "autograd.GradientEdge": "node, output_nr",
    "autograd.gradcheck": "fn, inputs",
    "ops.split": "value, sep=None, maxsplit=-1",
    "ops.join": "values, sep=''",
    "ops.chat_completion": "model, messages, inputs=None",
    "ops.exact_match_evaluator": "prediction, target, reduction_fn=sum",
    "ops.deterministic_evaluator": ("prediction, target, eval_fn, eval_fn_purpose, success_fn=None, reduction_fn=sum"),
    "ops.lm_judge_evaluator": "model, messages, prediction, target=None, inputs=None",
    "nn.Metric": "fn, purpose",
    "nn.TextLoss": "instructions",
    "nn.Module.load_state_dict": "self, state, strict=True",
    "llm.OpenAIModel": "name, base_url=None, api_key=None, max_in_flight=None",
    "use_models": "forward=None, backward=None, optimizer=None, judge=None",
    "set_models": "forward=None, backward=None, optimizer=None, judge=None",
    "budget": "dollars=None, calls=None, tokens=None",
    "data.load": "path",
    "data.DataLoader": "dataset, batch_size=1, shuffle=False, sampler=None, drop_last=False, seed=None",
    "data.random_split": "dataset, fractions, seed",
    "optim.TGD": "params, model=None, constraints=(), momentum=0",
    "optim.Optimizer.step": "self, closure=None",
    "Trainer.fit": "self, program, loss, optimizer, train, val",
    "evaluate": "program, dataset, loss, concurrency=None",
    "compare": "before, after",
    "func.grad": "function, argnums=0, has_aux=False",
    "func.grad_and_value": "function, argnums=0, has_aux=False",
    "func.vmap": "function, in_dims=0, out_dims=0, randomness='error', chunk_size=None",
    "func.jvp": "function, primals, tangents",
    "func.pmap": "function, concurrency=None",
}
"""What may be given by place, and by these names; there may be more behind it."""

KEYWORDS: dict[str, dict[str, Any]] = {
    "nn.ChatCompletion": {"response_format": None},
    "nn.Judge": {"scale": (0, 1)},
    "optim.PatchSearch": {"lanes": 8},
    "Trainer": {"run_dir": None, "callbacks": ()},
}

TWINS = {
    "Variable.backward": "Variable.abackward",
    "autograd.backward": "autograd.abackward",
    "autograd.grad": "autograd.agrad",
    "autograd.gradcheck": "autograd.agradcheck",
    "func.vjp": "func.avjp",
    "nn.Module.__call__": "nn.Module.aforward",
    "optim.Optimizer.step": "optim.Optimizer.astep",
    "ops.reduce": "ops.areduce",
    "Trainer.fit": "Trainer.afit",
    "cross_validate": "across_validate",
    "evaluate": "aevaluate",
    "train.shrink": "train.ashrink",
}
"""What waits for answers, and what is awaited instead."""


@pytest.mark.parametrize("name", PROMISED)
def test_parameters_stand_in_the_promised_order(name: str) -> None:
    """Those that may be given by place come first."""
    given = list(inspect.signature(attrgetter(name)(tg)).parameters.values())
    wanted = PROMISED[name].split(", ")
    shown = [
        each.name
        if each.default is each.empty
        else f"{each.name}={'sum' if each.default is sum else repr(each.default)}"
        for each in given[: len(wanted)]
    ]
    assert shown == wanted
    assert all(each.kind is not each.KEYWORD_ONLY for each in given[: len(wanted)])


@pytest.mark.parametrize("name", KEYWORDS)
def test_keywords_have_the_promised_defaults(name: str) -> None:
    """Wherever they stand."""
    given = inspect.signature(attrgetter(name)(tg)).parameters
    assert {key: given[key].default for key in KEYWORDS[name]} == KEYWORDS[name]


@pytest.mark.parametrize(("blocking", "awaited"), TWINS.items())
def test_what_waits_has_a_twin_to_await(blocking: str, awaited: str) -> None:
    """For code that has an event loop of its own."""
    assert not inspect.iscoroutinefunction(attrgetter(blocking)(tg))
    assert inspect.iscoroutinefunction(attrgetter(awaited)(tg))
