"""What scores mean: the best one that there can be, whether anybody knows, and that nothing better can be shown."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from textgrad_engine.optim.search.objective import Objective


@dataclass(frozen=True)
class Marks:
    """What scores mean.

    Attributes:
        top: what does as well is right; infinite where nothing is known to be.
        scale: the distance between the best and the worst score.
        known: whether nothing can be better than `top`.
    """

    top: float
    scale: float
    known: bool


def marks_of(limits: tuple[float, float] | None, seen: Sequence[float]) -> Marks:
    """What scores mean by the limits that the loss names, else by those that were seen.

    Where all are between 0 and 1, these are taken for the limits. Elsewhere the best that was seen is taken for right,
    as such examples are the last to learn from, and something may be better all the same; scores that are all equal
    tell nothing, so none of them is.

    Args:
        limits: the worst and the best score that there can be; None where the loss does not say, infinite where there
            is none, for which what was seen stands in.
        seen: the scores that are known.

    Example:
        >>> marks_of((1.0, 5.0), [3.0, 3.0])
        Marks(top=5.0, scale=4.0, known=True)
        >>> marks_of(None, [6.0, 6.0]), marks_of(None, [6.0, 7.0])
        (Marks(top=inf, scale=1.0, known=False), Marks(top=7.0, scale=1.0, known=False))
        >>> marks_of((float("-inf"), 0.0), [-6.0, -4.0])
        Marks(top=0.0, scale=2.0, known=True)
    """
    if limits is not None and all(map(math.isfinite, limits)):
        return Marks(limits[1], limits[1] - limits[0], known=True)
    if limits is None and all(0 <= score <= 1 for score in seen):
        return Marks(1.0, 1.0, known=True)
    lowest, highest = min(seen, default=0.0), max(seen, default=0.0)
    scale = highest - lowest or 1.0
    if limits is not None and math.isfinite(limits[1]):
        return Marks(limits[1], scale, known=True)
    return Marks(math.inf if lowest == highest else highest, scale, known=False)


def nothing_to_show(objective: Objective, scores: Collection[float], beside: Collection[float] = ()) -> str:
    """Why no texts can be shown to be better than the best ones, in words; "" where some can.

    What is left then are feedback and proposals that are refused whatever they say. A shorter text that does as well
    could be kept, which `shrink` looks for without either. Where tokens or seconds count beside the score, texts can
    always be better.

    Args:
        objective: says what counts.
        scores: those of the best texts, of all validation examples that were answered.
        beside: other scores that were seen, which may be higher where the loss names no scale.

    Example:
        >>> from textgrad_engine import nn
        >>> from textgrad_engine.train import Objective
        >>> program = nn.ChatCompletion("{word}", nn.Parameter("Repeat.", role="system prompt"))
        >>> objective = Objective(program, nn.ExactMatch(), [{"word": "a", "target": "a"}])
        >>> print(nothing_to_show(objective, [1.0, 1.0]))
        all 2 validation examples have the best score, 1, so it ended; harder ones would tell more
        >>> nothing_to_show(objective, [0.5, 1.0])
        ''
    """
    marks = marks_of(objective.scale, [*scores, *beside])
    charged = objective.tokens_weight or objective.latency_weight
    if not scores or not marks.known or min(scores) < marks.top or charged:
        return ""
    which = "answered validation" if len(scores) < len(objective.val) else "validation"
    each = f"the only {which} example has" if len(scores) == 1 else f"all {len(scores)} {which} examples have"
    return f"{each} the best score, {marks.top:g}, so it ended; harder ones would tell more"
