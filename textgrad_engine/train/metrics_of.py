"""What the score of a loss is made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from textgrad_engine.nn import Rubric
from textgrad_engine.nn.scores import OnPart, Weighted
from textgrad_engine.ops.criteria import criteria_of
from textgrad_engine.train.metric_scores import MetricScores


def parts_of(loss: Callable[..., Any]) -> tuple[MetricScores, ...]:
    """The metrics that a loss is made of, or the criteria that are the same for all examples, without scores.

    There are none of a loss that is one.

    Example:
        >>> from textgrad_engine.nn import ExactMatch
        >>> [part.name for part in parts_of(Weighted({"right": ExactMatch()}))], parts_of(ExactMatch())
        (['right'], ())
        >>> [part.name for part in parts_of(Rubric(["It is polite.", {"criterion": "It lies.", "points": -2}]))]
        ['It is polite.', 'not: It lies.']
    """
    while isinstance(loss, OnPart):
        loss = loss.loss
    if isinstance(loss, Rubric) and loss.criteria is not None:
        criteria = criteria_of(loss.criteria)
        return tuple(MetricScores(each.name, (), (0, 1), each.points, is_criterion=True) for each in criteria)
    if isinstance(loss, Weighted):
        return tuple(MetricScores(name, (), loss.scales[name], weight) for name, weight in loss.weights.items())
    return ()
