"""What a test set can show, said before anything is paid for."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from textgrad_engine.cli.config import Config
from textgrad_engine.data import Dataset
from textgrad_engine.nn import Module
from textgrad_engine.report.words import plural
from textgrad_engine.train.evaluator import scale_of
from textgrad_engine.train.splits import clusters_of_equals
from textgrad_engine.train.statistics import minimum_detectable_effect

__all__ = ["foreseen"]

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
        return "Without a test set nothing will be shown: the validation score flatters what was chosen by it."
    field = config.data.clusters
    clusters = set(clusters_of_equals(program, test)) if field is None else {str(row[field]) for row in test}
    units, size = len(clusters) or len(test), plural(len(test), "test example")
    if clusters:
        size += f", of which {units} are different ones," if field is None else f" in {plural(units, 'cluster')}"
    if config.metric.kind == "exact_match":
        least = minimum_detectable_effect(units, discordance=_CHANGED)
    else:
        scale = scale_of(metric)
        if scale is None or not all(map(math.isfinite, scale)):
            return ""
        width = scale[1] - scale[0]
        least = minimum_detectable_effect(units, sd=_SPREAD * width, largest=width)
    if math.isinf(least):
        return f"{size} show no difference reliably, however large; take more, or all with `train --folds 5`."
    supposed = ", where a fifth of the answers change" if config.metric.kind == "exact_match" else ""
    more = " `train --folds 5` tests all examples, not these alone." if units < _FEW else ""
    return f"{size} show a true difference of {least:.2g} 4 times in 5{supposed}, and smaller ones less often.{more}"


_FEW = 100
"""With fewer test examples than this, all of them are worth the price of some more runs."""
