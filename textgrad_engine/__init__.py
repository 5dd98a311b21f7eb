"""Optimize LLM prompts from feedback in words, with PyTorch's shape.

`Variable`s hold text with a role, `Function`s call a model in forward and give feedback in backward, optimizers rewrite
the parameters that want a gradient. Start with the README, or with ``textgrad-engine train examples/tickets``.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from textgrad_engine import autograd, data, errors, func, llm, nn, ops, optim, store, testing, train
    from textgrad_engine.autograd import (
        Function,
        Variable,
        abackward,
        backward,
        enable_grad,
        is_grad_enabled,
        no_grad,
        set_grad_enabled,
    )
    from textgrad_engine.llm import set_models, use_models
    from textgrad_engine.llm.budget import budget
    from textgrad_engine.train import (
        Comparison,
        CrossValidation,
        Evaluation,
        Trainer,
        TrainResult,
        across_validate,
        aevaluate,
        compare,
        cross_validate,
        evaluate,
    )

__all__ = [
    "Comparison",
    "CrossValidation",
    "Evaluation",
    "Function",
    "TrainResult",
    "Trainer",
    "Variable",
    "abackward",
    "across_validate",
    "aevaluate",
    "autograd",
    "backward",
    "budget",
    "compare",
    "cross_validate",
    "data",
    "enable_grad",
    "errors",
    "evaluate",
    "func",
    "is_grad_enabled",
    "llm",
    "nn",
    "no_grad",
    "ops",
    "optim",
    "set_grad_enabled",
    "set_models",
    "store",
    "testing",
    "train",
    "use_models",
]

__version__ = "0.1.0"

_MODULES = frozenset({"autograd", "data", "errors", "func", "llm", "nn", "ops", "optim", "store", "testing", "train"})
_HOMES = {
    "autograd": (
        "Function",
        "Variable",
        "abackward",
        "backward",
        "enable_grad",
        "is_grad_enabled",
        "no_grad",
        "set_grad_enabled",
    ),
    "llm": ("budget", "set_models", "use_models"),
    "train": (
        "Comparison",
        "CrossValidation",
        "Evaluation",
        "TrainResult",
        "Trainer",
        "across_validate",
        "aevaluate",
        "compare",
        "cross_validate",
        "evaluate",
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
_ELSEWHERE = {
    "AdalComponent": "Trainer",
    "Adam": "optim.TGD",
    "Assert": "ops.straight_through",
    "BestOfN": "ops.straight_through",
    "BlackboxLLM": "nn.ChatCompletion",
    "BootstrapFewShot": "optim.BootstrapDemos",
    "BootstrapFewShotWithRandomSearch": "optim.BootstrapDemos",
    "BootstrapOptimizer": "optim.BootstrapDemos",
    "COPRO": "optim.OPRO",
    "ChainOfThought": "nn.ChatCompletion",
    "Component": "nn.Module",
    "EvalFnToTextLoss": "nn.Metric",
    "Evaluate": "evaluate",
    "FormattedLLMCall": "nn.ChatCompletion",
    "GEPA": "optim.ParetoSearch",
    "Generator": "nn.ChatCompletion",
    "GradComponent": "Function",
    "ImageQALoss": "nn.TextLoss",
    "LLMAsTextLoss": "nn.TextLoss",
    "LLMCall": "nn.ChatCompletion",
    "LM": "set_models",
    "MIPROv2": "optim.PatchSearch",
    "MultiFieldEvaluation": "nn.TextLoss",
    "MultimodalLLMCall": "nn.ChatCompletion",
    "OptoPrime": "optim.TGD",
    "Parallel": "func.pmap",
    "Predict": "nn.ChatCompletion",
    "ReAct": "nn.ChatCompletion",
    "Refine": "ops.straight_through",
    "Retrieve": "ops.straight_through",
    "SGD": "optim.TGD",
    "Signature": "nn.ChatCompletion",
    "StringBasedFunction": "Function",
    "Suggest": "ops.straight_through",
    "TGDOptimizer": "optim.TGD",
    "Tensor": "Variable",
    "TextualGradientDescent": "optim.TGD",
    "bundle": "ops.straight_through",
    "configure": "set_models",
    "context": "use_models",
    "get_engine": "llm.resolve",
    "grad": "autograd.grad",
    "node": "nn.Parameter",
    "optimize_anything": "nn.Metric",
    "set_backward_engine": "set_models",
    "set_backward_model_client": "set_models",
    "tensor": "Variable",
}
"""What other libraries call it, or have at the top where two of ours have the name; docs/porting.md has more."""
_PARTS = ("nn", "optim", "data", "func", "ops", "llm", "autograd", "train", "testing", "store")
"""Where a name that is not at the top may be, and the order in which that is looked up."""


def __getattr__(name: str) -> Any:
    """Load each part when it is first named, so that the import itself costs next to nothing."""
    if name in _MODULES:
        value = importlib.import_module(f"textgrad_engine.{name}")
    elif name in _HOME_OF:
        value = getattr(importlib.import_module(f"textgrad_engine.{_HOME_OF[name]}"), name)
    else:
        here = _home(name)
        # `from textgrad_engine import NAME` asks by way of importlib, and says nothing of what an AttributeError says.
        if here and sys._getframe(1).f_globals.get("__name__") == "importlib._bootstrap":
            part, _, inner = here.rpartition(".")
            line = f"from {'.'.join(filter(None, (__name__, part)))} import {inner}"
            raise ImportError(f"there is no {name!r} in {__name__!r}; it is {here}: {line}", name=__name__)
        hint = f"; it is {here}{' (docs/porting.md)' if name in _ELSEWHERE else ''}" if here else ""
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")
    globals()[name] = value
    return value


def _home(name: str) -> str:
    """Where what somebody looks for at the top is, such as ``"nn.TextLoss"``; "" for what is nowhere."""
    if name in _ELSEWHERE:
        return _ELSEWHERE[name]
    if name.startswith("_") or not name.isidentifier():
        return ""
    if importlib.util.find_spec(f"{__name__}.{name}") is not None:  # a module, not yet loaded
        return ""
    parts = (part for part in _PARTS if name in importlib.import_module(f"{__name__}.{part}").__all__)
    return next((f"{part}.{name}" for part in parts), "")


def __dir__() -> list[str]:
    return sorted(__all__)
