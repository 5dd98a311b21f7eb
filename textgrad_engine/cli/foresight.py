"""What a test set can show, said before anything is paid for."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from textgrad_engine.cli.config import Config
from textgrad_engine.cli.settings import Budget
from textgrad_engine.cli.spending import too_small
from textgrad_engine.data import Dataset
from textgrad_engine.llm import tokens
from textgrad_engine.llm.model import Model
from textgrad_engine.llm.prices import price_of
from textgrad_engine.llm.response import Usage
from textgrad_engine.nn import Module
from textgrad_engine.report.words import plural
from textgrad_engine.slots import slots_of
from textgrad_engine.train.clusters import effective_number
from textgrad_engine.train.controls import CONTROLS
from textgrad_engine.train.power import minimum_detectable_effect
from textgrad_engine.train.scale import scale_of
from textgrad_engine.train.splits import clusters_of_equals

_CHANGED = 0.2
"""Of the answers, so many are taken to turn from right to wrong or back; more do where the difference is larger."""

_SPREAD = 0.3
"""Of other scores, the standard deviation of the differences that is taken, as a part of their scale."""


def foreseen(config: Config, program: Module, metric: Callable[..., Any], test: Dataset | None) -> str:
    """Which difference a test set will show, in a sentence; "" where the scale of the scores is not known.

    Args:
        config: says which examples belong together.
        program: whose inputs tell which examples are copies.
        metric: the score.
        test: the test examples, if any.
    """
    if test is None:
        return "Without a test set nothing can be proved: the validation score flatters the prompt that it chose."
    sizes, size = _units(config, program, test, "test example")
    least = _least(config, metric, sizes)
    if least is None:
        return ""
    if math.isinf(least):
        show = "shows" if len(test) == 1 else "show"
        return f"{size} {show} no difference reliably, however large; take more, or all with `train --folds 5`."
    more = " `train --folds 5` tests all examples, not these alone." if len(sizes) < _FEW else ""
    return f"{_shown(config, size, least)}{more}"


def foreseen_of_folds(config: Config, program: Module, metric: Callable[..., Any], examples: Dataset) -> str:
    """Which difference the verdict of a cross-validation will show, in sentences; "" where that is not known.

    Args:
        config: says which examples belong together.
        program: whose inputs tell which examples are copies.
        metric: the score.
        examples: of all folds.
    """
    sizes, size = _units(config, program, examples, "example")
    least = _least(config, metric, sizes)
    if least is None:
        return ""
    if math.isinf(least):
        return f"{size} together show no difference reliably, however large; take more examples."
    return (
        f"{_shown(config, f'{size} together', least)} That is about the mean of the folds' prompts; the final prompt "
        "is tested by none of them."
    )


def shared_with_controls(config: Config, controls: bool) -> str:
    """What controls leave the optimizer of a budget, in a sentence; "" where there are none, or nothing is limited.

    Args:
        config: has the limits.
        controls: whether controls are run.
    """
    if not controls or all(limit is None for _, limit in config.budget):
        return ""
    parts = len(CONTROLS) + 1
    return (
        f"The controls share the budget: of what validation and tests leave of it, the optimizer may use one part in "
        f"{parts}, and each of the {len(CONTROLS)} controls as many calls as it did."
    )


def early_end(config: Config, sets: Sequence[Sequence[Any]], models: Mapping[str, Model], *, cached: bool) -> str:
    """That the budget will not do for the seed prompt's scores, in a sentence; "" where it may.

    Each example takes a call, whose tokens are known as the config's own prompts are all that is sent; of a program of
    a user's own nobody knows how often it asks, and what.

    Args:
        config: has the limits and the prompts.
        sets: the examples that the seed prompt is scored on.
        models: by purpose.
        cached: whether answers may come from a cache, which are paid for already.
    """
    rows = [row for each in sets for row in each]
    if cached or not rows or config.program.user is None or all(limit is None for _, limit in config.budget):
        return ""
    system, slots = config.system_text() or "", slots_of(config.program.user)
    some = rows[:: 1 + len(rows) // _LOOKED_AT]
    texts = [value for row in some for name in slots if isinstance(value := row.get(name), str)]
    each = tokens.count(system) + sum(map(tokens.count, texts)) / len(some)
    used = Usage(calls=len(rows), input_tokens=int(len(rows) * each), output_tokens=len(rows))
    used = used.model_copy(update={"cached_tokens": used.input_tokens})  # the endpoint may have all of it
    dollars = price_of(models["forward"], used) if "forward" in models else None
    least = Budget.model_construct(dollars=dollars, calls=len(rows), tokens=used.total_tokens)
    return too_small(config.budget, least)


_LOOKED_AT = 200
"""So many examples tell how long all of them are."""


def _units(config: Config, program: Module, rows: Dataset, what: str) -> tuple[list[int], str]:
    """The sizes of what stands for itself, examples or clusters of them, and how many there are, in words."""
    field = config.data.clusters
    clusters = clusters_of_equals(program, rows) if field is None else [str(row[field]) for row in rows]
    sizes, size = [*Counter(clusters or range(len(rows))).values()], plural(len(rows), what)
    if clusters and field is None:
        size += f", of which {len(sizes)} are different ones,"
    elif clusters:
        differ = " of different sizes" if _alike(sizes) < len(sizes) else ""
        size += f" in {plural(len(sizes), 'cluster')}{differ}"
    return sizes, size


def _alike(sizes: Sequence[int]) -> int:
    """So many clusters of one size show as much."""
    return math.floor(effective_number(sizes) + 1e-9)


def _least(config: Config, metric: Callable[..., Any], sizes: Sequence[int]) -> float | None:
    """The least difference that is found; None where the scale of the scores is not known."""
    units = _alike(sizes)
    if config.is_right_or_wrong:
        return minimum_detectable_effect(units, discordance=_CHANGED)
    scale = scale_of(metric)
    if scale is None or not all(map(math.isfinite, scale)):
        return None
    width = scale[1] - scale[0]
    return minimum_detectable_effect(units, sd=_SPREAD * width, largest=width)


def _shown(config: Config, size: str, least: float) -> str:
    changed, spread = (
        "a fifth of the answers change",
        f"differences have a standard deviation of {_SPREAD} of the scale",
    )
    supposed = changed if config.is_right_or_wrong else spread
    return f"{size} show a true difference of {least:.2g} in 4 of 5 cases, if {supposed}; smaller ones less often."


_FEW = 100
"""With fewer test examples than this, all of them are worth the price of some more runs."""
