"""What a run was set to, as far as it decides what is asked; for whoever goes on with it later."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from textgrad_engine.data.dataloader import DataLoader
    from textgrad_engine.optim.optimizer import Optimizer
    from textgrad_engine.train.trainer import Trainer

Setting = str | int | float | bool | None

_OF_TRAINER = (
    *("seed", "target", "feedback_batch_size", "feedback_images"),
    *("clusters", "tokens_weight", "latency_weight"),
)
_HOW_FAR = ("allowance", "proposals", "rounds", "sets")
"""Arguments of optimizers that say when to end: with more of these a run asks first what it asked before."""


def settings_of(trainer: Trainer, optimizer: Optimizer, loader: DataLoader[Any]) -> dict[str, Setting]:
    """The settings by name, those of the optimizer behind its class; only what is a text, a number or None.

    How far a run goes (epochs, steps, rounds, budgets, controls, a test set) is none of them, nor is concurrency.
    """
    found: dict[str, Any] = {"optimizer": type(optimizer).__name__, "batch_size": loader.batch_size}
    found |= {name: getattr(trainer, name) for name in _OF_TRAINER}
    own = [name for name in inspect.signature(type(optimizer)).parameters if name not in _HOW_FAR and name != "model"]
    found |= {f"{found['optimizer']}.{name}": getattr(optimizer, name) for name in own if hasattr(optimizer, name)}
    for number, group in enumerate(optimizer.param_groups):
        place = found["optimizer"] if len(optimizer.param_groups) == 1 else f"param_groups[{number}]"
        found |= {f"{place}.{name}": value for name, value in group.items()}
    return {name: value for name, value in found.items() if value is None or isinstance(value, str | int | float)}


def differing(now: Mapping[str, Setting], before: Mapping[str, Setting]) -> str:
    """The settings that both have and that differ, in words; "" where none do.

    Example:
        >>> differing({"seed": 1, "batch_size": 8}, {"seed": 0, "batch_size": 8, "patience": 2})
        'seed=1 instead of seed=0'
    """
    names = [name for name in before if name in now and now[name] != before[name]]
    return " and ".join(f"{name}={now[name]!r} instead of {name}={before[name]!r}" for name in names)
