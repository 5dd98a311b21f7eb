"""What a run was set to, as far as it decides what is asked; for whoever goes on with it later."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from textgrad_engine.data.dataloader import DataLoader
    from textgrad_engine.optim.optimizer import Optimizer
    from textgrad_engine.train.guards import Guards
    from textgrad_engine.train.trainer import Trainer

Setting = str | int | float | bool | None

TO_THE_END = "to_the_end"
"""Whether it went on where nothing better could be shown: `Optimizer.to_the_end`, or a run of before this was told."""

NESTED = "nested_tests"
"""Whether each part of the test set holds the smaller ones: so a larger budget pays for what it adds. In runs of before
most did, and some did not."""

_OF_TRAINER = (
    *("seed", "target", "notes", "critic", "feedback_batch_size", "feedback_images"),
    *("clusters", "tokens_weight", "latency_weight"),
)
_OURS = __name__.partition(".")[0] + "."
_HOW_FAR = ("allowance", "proposals", "rounds", "sets")
"""Arguments of optimizers that say when to end: with more of these a run asks first what it asked before."""


def settings_of(trainer: Trainer, optimizer: Optimizer, loader: DataLoader[Any]) -> dict[str, Setting]:
    """The settings by name, those of the optimizer behind its class; only what is a text, a number or None.

    How far a run goes (epochs, steps, rounds, budgets, controls, a test set) is none of them, nor is concurrency, nor a
    text that only an optimizer of one's own takes: it is written down, and may be a key.
    """
    kind = type(optimizer)
    found: dict[str, Any] = {"optimizer": kind.__name__, "batch_size": loader.batch_size}
    found |= {name: getattr(trainer, name) for name in _OF_TRAINER}
    found["guards"] = None if trainer.guards is None else _in_words(trainer.guards)
    ours = next(each for each in kind.__mro__ if each.__module__.startswith(_OURS))
    plain = {**found, **inspect.signature(ours).parameters}
    own = [name for name in inspect.signature(kind).parameters if name not in _HOW_FAR and name != "model"]
    groups = optimizer.param_groups
    told = [(kind.__name__, {name: vars(optimizer)[name] for name in own if name in vars(optimizer)})]
    told += [(kind.__name__ if len(groups) == 1 else f"param_groups[{n}]", group) for n, group in enumerate(groups)]
    for place, values in told:
        kept = {name: value for name, value in values.items() if name in plain or not isinstance(value, str)}
        found |= {f"{place}.{name}": value for name, value in kept.items()}
    return {name: value for name, value in found.items() if value is None or isinstance(value, str | int | float)}


def _in_words(guards: Guards) -> str:
    """Guards as a text, the same in whatever order they were named."""
    floors = [f"{column}={value!s}: {float(least):g}" for (column, value), least in guards.floors.items()]
    metrics = [f"{name}: {float(least):g}" for name, least in guards.metrics.items()]
    reruns = [str(guards.reruns)] if guards.reruns and guards.never_break else []  # of a run of before there were none
    passing = [] if guards.passing is None else [f"{float(guards.passing):g}"]
    named = {
        "never_break": list(guards.never_break),
        "reruns": reruns,
        "passing": passing,
        "floors": floors,
        "metrics": metrics,
    }
    return "; ".join(f"{kind} {', '.join(sorted(each))}" for kind, each in named.items() if each)


def differing(now: Mapping[str, Setting], before: Mapping[str, Setting]) -> str:
    """The settings that both have and that differ, in words; "" where none do.

    Example:
        >>> differing({"seed": 1, "batch_size": 8}, {"seed": 0, "batch_size": 8, "patience": 2})
        'seed=1 instead of seed=0'
    """
    names = [name for name in before if name in now and now[name] != before[name]]
    return " and ".join(f"{name}={now[name]!r} instead of {name}={before[name]!r}" for name in names)
