"""Which metrics a loss is made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from textgrad_engine.nn.scores import Weighted
from textgrad_engine.train.metric_scores import MetricScores


def parts_of(loss: Callable[..., Any]) -> tuple[MetricScores, ...]:
    """The metrics that a loss is made of, without scores; none of a loss that is one.

    Example:
        >>> from textgrad_engine.nn import ExactMatch
        >>> [part.name for part in parts_of(Weighted({"right": ExactMatch()}))], parts_of(ExactMatch())
        (['right'], ())
    """
    if not isinstance(loss, Weighted):
        return ()
    return tuple(MetricScores(name, (), loss.scales[name], weight) for name, weight in loss.weights.items())
