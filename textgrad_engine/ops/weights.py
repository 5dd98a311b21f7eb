"""For how much each of several weighted values counts."""

from __future__ import annotations

import math
from collections.abc import Sequence


def comparable(weights: Sequence[float]) -> list[float]:
    """The weights, the largest of them up to 1, so that no sum of them is too large."""
    _, exponent = math.frexp(max(weights))
    return [math.ldexp(weight, -exponent) for weight in weights]


def shares_of(weights: Sequence[float]) -> list[float]:
    """For how much of the mean each value counts.

    Example:
        >>> shares_of([3, 1])
        [0.75, 0.25]
    """
    found = comparable(weights)
    total = math.fsum(found)
    return [weight / total for weight in found]
