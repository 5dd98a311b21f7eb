"""Optimize LLM prompts from feedback in words, with PyTorch's shape.

`Variable`s hold text with a role, `Function`s call a model in forward and give feedback in backward, optimizers rewrite
the parameters that want a gradient. Start with the README, or with ``textgrad-engine train examples/tickets``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from textgrad_engine.lazily import lacking

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


def __getattr__(name: str) -> Any:
    """Load each part when it is first named, so that the import itself costs next to nothing."""
    if name in _MODULES:
        value = importlib.import_module(f"textgrad_engine.{name}")
    elif name in _HOME_OF:
        value = getattr(importlib.import_module(f"textgrad_engine.{_HOME_OF[name]}"), name)
    else:
        raise lacking(__name__, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
