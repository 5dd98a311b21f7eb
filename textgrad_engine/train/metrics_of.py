"""What the score of a loss is made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from textgrad_engine.errors import DataError
from textgrad_engine.nn import Rubric
from textgrad_engine.nn.loss import takes_criteria
from textgrad_engine.nn.scores import OnField, OnMatch, Weighted
from textgrad_engine.ops.criteria import criteria_of
from textgrad_engine.train.metric_scores import MetricScores


def criteria_checked(
    loss: Callable[..., Any], target_of: Callable[[dict[str, Any], str], Any], field: str
) -> Callable[[dict[str, Any], str], Any]:
    """`target_of`, which refuses a target that is to be criteria and is none, before anything is paid for.

    Of a loss on a field of an answer a target may hold them further in, so these are looked at in the call.

    Args:
        loss: a Module or any callable.
        target_of: gives the target of an example with an id, or a dict of several by field.
        field: the name of the field, where it is one.

    Returns:
        The same; it raises DataError, too.
    """
    several = isinstance(loss, Weighted) and loss.targets is not None
    losses = [(loss, field)]
    if isinstance(loss, Weighted) and loss.targets is not None:
        losses = [(loss.by_name[name], at) for name, at in loss.targets.items()]
    places = [at for each, at in losses if takes_criteria(_without_part(each))]
    if not places:
        return target_of

    def checked(example: dict[str, Any], name: str) -> Any:
        found = target_of(example, name)
        for at in places:
            wanted = found[at] if several else found
            of_batch = isinstance(wanted, list) and wanted and all(isinstance(each, list) for each in wanted)
            try:
                for each in wanted if of_batch else [wanted]:
                    criteria_of(each)
            except (TypeError, ValueError) as error:
                raise DataError(
                    f"example {name!r} has no criteria in the field {at!r}: {error}; the same for all "
                    "examples are nn.Rubric([...])"
                ) from None
        return found

    return checked


def _without_part(loss: Callable[..., Any]) -> Callable[..., Any]:
    while isinstance(loss, OnMatch):
        loss = loss.loss
    return loss


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
    while isinstance(loss, OnField | OnMatch):
        loss = loss.loss
    if isinstance(loss, Rubric) and loss.criteria is not None:
        criteria = criteria_of(loss.criteria)
        return tuple(MetricScores(each.name, (), (0, 1), each.points, is_criterion=True) for each in criteria)
    if isinstance(loss, Weighted):
        return tuple(MetricScores(name, (), loss.scales[name], weight) for name, weight in loss.weights.items())
    return ()
