"""Optimize LLM prompts from feedback in words, with PyTorch's shape.

`Variable`s hold text with a role, `Function`s call a model in forward and give feedback in backward, optimizers rewrite
the parameters that want a gradient. Start with the README, or with ``textgrad-engine train examples/tickets``.
"""

from __future__ import annotations

import importlib
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
    from textgrad_engine.train import Comparison, Evaluation, Trainer, TrainResult, aevaluate, compare, evaluate

__all__ = [
    "Comparison",
    "Evaluation",
    "Function",
    "TrainResult",
    "Trainer",
    "Variable",
    "abackward",
    "aevaluate",
    "autograd",
    "backward",
    "budget",
    "compare",
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
    "train": ("Comparison", "Evaluation", "TrainResult", "Trainer", "aevaluate", "compare", "evaluate"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
_ELSEWHERE = {
    "BlackboxLLM": "nn.ChatCompletion",
    "Component": "nn.Module",
    "DataLoader": "data.DataLoader",
    "Evaluate": "evaluate",
    "GEPA": "optim.ParetoSearch",
    "Generator": "nn.ChatCompletion",
    "Module": "nn.Module",
    "Optimizer": "optim.Optimizer",
    "Parameter": "nn.Parameter",
    "Predict": "nn.ChatCompletion",
    "TGD": "optim.TGD",
    "TGDOptimizer": "optim.TGD",
    "Tensor": "Variable",
    "TextLoss": "nn.TextLoss",
    "TextualGradientDescent": "optim.TGD",
    "configure": "set_models",
    "get_engine": "llm.resolve",
    "grad": "autograd.grad",
    "set_backward_engine": "set_models",
    "sum": "ops.sum",
    "tensor": "Variable",
    "vmap": "func.vmap",
}
"""What other libraries have at the top, and its name here; docs/porting.md has more."""


def __getattr__(name: str) -> Any:
    """Load each part when it is first named, so that the import itself costs next to nothing."""
    if name in _MODULES:
        value = importlib.import_module(f"textgrad_engine.{name}")
    elif name in _HOME_OF:
        if name == "Trainer":
            importlib.import_module("textgrad_engine.store")  # registers how a run folder is written
        value = getattr(importlib.import_module(f"textgrad_engine.{_HOME_OF[name]}"), name)
    else:
        hint = f"; it is {_ELSEWHERE[name]} (docs/porting.md)" if name in _ELSEWHERE else ""
        raise AttributeError(f"module 'textgrad_engine' has no attribute {name!r}{hint}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
