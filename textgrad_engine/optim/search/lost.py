"""Answers that are lost with new texts: a failure of the network hits both, what comes of the texts hits one."""

from __future__ import annotations

import math
from collections.abc import Sequence

__all__ = ["lost_more"]

LEVEL = 0.05
"""As rarely as this, so many more answers are lost with the second of two texts by chance, or more."""


def lost_more(before: Sequence[float | None], after: Sequence[float | None]) -> int:
    """How many answers are lost with the second of two texts, where these are more than chance loses; else 0.

    An answer that was not to be had is no wrong one: it is left out of both. But texts that make answers run into their
    length limit, or come out empty, lose those of one side. Of the examples that only one of the two has an answer for,
    the second one loses half by chance (the exact test of McNemar 1947, one-sided).

    Args:
        before: the scores with the first texts, None where no answer was to be had.
        after: those with the second ones, of the same examples.

    Example:
        >>> lost_more([1.0] * 9, [None] * 5 + [1.0] * 4), lost_more([None, *[1.0] * 8], [1.0, *[None] * 4, *[1.0] * 4])
        (5, 0)
    """
    lost = sum(old is not None and new is None for old, new in zip(before, after))
    found = sum(old is None and new is not None for old, new in zip(before, after))
    count = lost + found
    chance = sum(math.comb(count, more) for more in range(lost, count + 1)) / 2**count
    return lost if chance <= LEVEL else 0
