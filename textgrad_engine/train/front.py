"""The front of score against tokens: what a shorter prompt would cost in score, of all that a run has validated."""

from __future__ import annotations

from dataclasses import dataclass

from textgrad_engine.optim.search.objective import tokens_of
from textgrad_engine.optim.shrink import Point, pareto
from textgrad_engine.train.objective import Objective

__all__ = ["FrontPoint", "front_of"]


@dataclass(frozen=True)
class FrontPoint:
    """Texts that no others of the run beat by fewer tokens or a higher score without losing in the other.

    Attributes:
        texts: by dotted name.
        tokens: how many tokens they have together.
        score: their mean score on the validation set.
    """

    texts: dict[str, str]
    tokens: int
    score: float


def front_of(objective: Objective) -> tuple[FrontPoint, ...]:
    """The front of all texts that were run on the whole validation set and always had an answer, longest first.

    Texts whose race was decided before that are not on it, as nobody knows their mean.

    Args:
        objective: the one that ran them.
    """
    validated = objective.validated()
    points = [Point(str(number), tokens_of(texts), score) for number, (texts, score) in enumerate(validated)]
    found = []
    for point in pareto(points):
        texts, score = validated[int(point.text)]
        found.append(FrontPoint(dict(zip(objective.names, texts)), point.tokens, score))
    return tuple(found)
