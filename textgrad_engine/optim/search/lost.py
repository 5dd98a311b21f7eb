"""Answers that are lost with new texts: a failure of the network hits both, what comes of the texts hits one."""

from __future__ import annotations

import math
from collections.abc import Sequence

LEVEL = 0.05
"""As rarely as this, so many more answers are lost with the second of two texts by chance, or more."""


def lost_more(before: Sequence[float], after: Sequence[float]) -> int:
    """On how many examples answers are lost with the second of two texts, where these are more than by chance; else 0.

    An answer that was not to be had is no wrong one: it is left out of both. But texts that make answers run into their
    length limit, or come out empty, lose those of one side. Of the examples that lose more with one text than with the
    other, half lose more with the second one by chance (the sign test, one-sided; with one answer to each example it is
    the exact test of McNemar 1947). Samples of one example are often lost together, so they count as one.

    Args:
        before: for each example, or each cluster of examples, how much of its answers is lost with the first texts: 0
            or 1, or a share of them.
        after: the same with the second ones.

    Example:
        >>> lost_more([0] * 9, [1] * 5 + [0] * 4), lost_more([1, *[0] * 8], [0, *[1] * 4, *[0] * 4])
        (5, 0)
    """
    lost = sum(new > old for old, new in zip(before, after))
    found = sum(new < old for old, new in zip(before, after))
    count = lost + found
    chance = sum(math.comb(count, more) for more in range(lost, count + 1)) / 2**count
    return lost if chance <= LEVEL else 0
