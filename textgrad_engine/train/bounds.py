"""How far a score could be off because some examples have none.

An example without an answer is no wrong answer, so it is left out of the mean; but those that are left out may be the
hard ones. Without any assumption about them the mean lies between what it would be if all had scored lowest and if all
had scored highest: Manski, American Economic Review 80 (1990); Horowitz and Manski, JASA 95 (2000).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from textgrad_engine.train.scores import same_length

Bounds = tuple[float, float]


def item_bounds(samples: Sequence[Sequence[float | None]], scale: tuple[float, float] = (0.0, 1.0)) -> list[Bounds]:
    """The least and the greatest mean score that each example could have.

    Args:
        samples: for each example, the scores of its samples; None for those that are missing.
        scale: the lowest and the highest possible score; infinite where there is none.

    Raises:
        ValueError: an example has no sample, or a score is outside of the scale.

    Example:
        >>> item_bounds([[1.0], [None], [1.0, 0.0, None, None]])
        [(1.0, 1.0), (0.0, 1.0), (0.25, 0.75)]
    """
    lowest, highest = scale
    found = []
    for index, row in enumerate(samples):
        if not row:
            raise ValueError(f"samples[{index}] is empty: write None for a score that is missing")
        known = [score for score in row if score is not None]
        if not all(lowest <= score <= highest for score in known):
            raise ValueError(f"samples[{index}] has a score outside of the scale {scale}")
        total, missing = math.fsum(known), len(row) - len(known)
        low, high = (total + missing * lowest, total + missing * highest) if missing else (total, total)
        found.append((low / len(row), high / len(row)))
    return found


def worst_case_mean(items: Sequence[Bounds]) -> Bounds:
    """The least and the greatest mean that a set could have.

    Args:
        items: of each example, by `item_bounds`.

    Raises:
        ValueError: there are no examples.

    Example:
        >>> worst_case_mean(item_bounds([[1.0], [1.0], [0.0], [None]]))
        (0.5, 0.75)
    """
    if not items:
        raise ValueError("there is no mean without examples")
    return math.fsum(low for low, _ in items) / len(items), math.fsum(high for _, high in items) / len(items)


def worst_case_difference(before: Sequence[Bounds], after: Sequence[Bounds]) -> Bounds:
    """The least and the greatest mean difference, after minus before, that a comparison could have.

    What is missing counts against the side that it would help: at the lower end, `before` scores highest and `after`
    lowest where they have no score.

    Args:
        before: of each example by the first program, by `item_bounds`.
        after: of each example by the second one.

    Raises:
        ValueError: there are no examples, or more of the one than of the other.

    Example:
        >>> before, after = item_bounds([[0.0], [None], [1.0], [0.0]]), item_bounds([[1.0], [1.0], [None], [0.0]])
        >>> worst_case_difference(before, after)
        (0.0, 0.5)
    """
    same_length(before, after)
    return worst_case_mean([(new[0] - old[1], new[1] - old[0]) for old, new in zip(before, after)])
