"""What scores mean: the best one that there can be, how far it is from the worst, and whether anybody knows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


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
