"""Which of many candidates are the best, by few scores of each: best-arm identification.

`successive_rejects` is that of Audibert and Bubeck (COLT 2010), stopped when as many are left as are wanted; `ucb` is
the upper confidence bound rule (Auer et al. 2002) in batches. Both are what ProTeGi (arXiv 2305.03495) selects its beam
by. Here all candidates are run on the same examples in the same order, so that what decides is a paired comparison.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

Run: TypeAlias = Callable[[list[int], list[int]], None]
"""Runs candidates (by number) on examples (by position)."""

Mean: TypeAlias = Callable[[int, list[int]], float]
"""The mean score of a candidate over examples that it was run on."""

EXPLORATION = 1.0
"""The weight of the confidence bound, as in the paper's experiments."""

BATCH = 4
"""So many examples are run at a pull of `ucb`; one at a time would wait for each answer."""


def successive_rejects(
    arms: Sequence[int], keep: int, budget: int, order: Sequence[int], run: Run, mean: Mean
) -> list[int]:
    """Reject the worst, one after the other, on more and more examples, until `keep` are left.

    Args:
        arms: the candidates, those first that are to stay among equals.
        keep: how many are wanted.
        budget: about so many scores are bought in all; at least one of each candidate.
        order: the examples, in the order of running them.
        run: runs candidates on examples.
        mean: gives their scores.

    Returns:
        Those that are left, the best first.

    Example:
        >>> bought = []
        >>> worth = {0: 0.1, 1: 0.9, 2: 0.5}
        >>> run = lambda arms, examples: bought.extend((arm, n) for arm in arms for n in examples)
        >>> successive_rejects([0, 1, 2], 1, 12, range(8), run, lambda arm, examples: worth[arm])
        [1]
        >>> len(bought)
        11
    """
    left, seen = list(arms), 0
    phases = len(left) - keep
    unit = budget / (1 + sum(1 / size for size in range(keep + 2, len(left) + 1)))
    ranks = {arm: place for place, arm in enumerate(arms)}

    def ranked() -> list[int]:
        return sorted(left, key=lambda arm: (-mean(arm, list(order[:seen])), ranks[arm]))

    for _ in range(phases):
        size = min(len(order), max(1, int(unit / len(left))))
        if size > seen:
            run(list(left), list(order[seen:size]))
            seen = size
        left.remove(ranked()[-1])
    if not phases and not seen:  # nobody has to go: a look at each still tells which is the best
        seen = min(len(order), max(1, budget // max(1, len(left))))
        run(list(left), list(order[:seen]))
    return ranked()


def ucb(
    arms: Sequence[int], keep: int, budget: int, order: Sequence[int], run: Run, mean: Mean, scale: float = 1.0
) -> list[int]:
    """Run those candidates further whose scores may still turn out highest, in batches, until the budget is spent.

    Args:
        arms: the candidates, those first that are to stay among equals.
        keep: how many are wanted; so many are run at a time.
        budget: so many scores are bought in all.
        order: the examples, in the order of running them.
        run: runs candidates on examples.
        mean: gives their scores.
        scale: the distance between the best and the worst score.

    Returns:
        The `keep` with the highest means, the best first.

    Example:
        >>> worth = {0: 0.1, 1: 0.9, 2: 0.5}
        >>> ucb([0, 1, 2], 1, 24, range(8), lambda arms, examples: None, lambda arm, examples: worth[arm])
        [1]
    """
    counts = dict.fromkeys(arms, 0)
    ranks = {arm: place for place, arm in enumerate(arms)}

    def so_far(arm: int) -> float:
        return mean(arm, list(order[: counts[arm]])) if counts[arm] else float("-inf")

    def bound(arm: int) -> float:
        if not counts[arm]:
            return float("inf")
        return so_far(arm) + scale * EXPLORATION * math.sqrt(math.log(sum(counts.values())) / counts[arm])

    while sum(counts.values()) < budget and (open_arms := [arm for arm in arms if counts[arm] < len(order)]):
        chosen = sorted(open_arms, key=lambda arm: (-bound(arm), ranks[arm]))[:keep]
        groups: dict[int, list[int]] = {}
        for arm in chosen:  # those that stand at the same place are run together, on the same examples
            groups.setdefault(counts[arm], []).append(arm)
        for start, group in groups.items():
            run(group, list(order[start : start + BATCH]))
            for arm in group:
                counts[arm] = min(start + BATCH, len(order))
    return sorted(arms, key=lambda arm: (-so_far(arm), ranks[arm]))[:keep]
