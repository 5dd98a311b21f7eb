"""The Pareto frontier by examples: candidates that are best somewhere, and on how many examples each of them is.

This is the candidate selection of GEPA (arXiv 2507.19457, algorithm 2): sampling in proportion to these counts keeps
strategies alive that are best on a few examples only, where "take the best on average" would stay with one of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping


def frontier(scores: Mapping[int, Mapping[int, float]]) -> dict[int, int]:
    """On how many examples each candidate is best, after those that another one dominates are out.

    One candidate dominates another when it does as well on every example that both were run on, and better on one.

    Args:
        scores: for each candidate, by number, its scores by example; an example may be missing where it has none.

    Returns:
        The counts by number, in the order given; candidates that are best nowhere, or dominated, are not in it.

    Example:
        >>> frontier({0: {1: 0.2, 2: 0.9}, 1: {1: 0.5, 2: 0.1}, 2: {1: 0.5, 2: 0.3}})
        {0: 1, 2: 1}
    """
    best: dict[int, float] = {}
    for row in scores.values():
        for position, score in row.items():
            best[position] = max(score, best.get(position, score))
    held = Counter(n for n, row in scores.items() for position, score in row.items() if score == best[position])
    left = [number for number in scores if held[number]]
    # The weakest go first, so that of a chain of candidates the one at its end stays.
    for number in sorted(left, key=lambda n: sum(scores[n].values())):
        if any(_dominates(scores[other], scores[number]) for other in left if other != number):
            left.remove(number)
    return {number: held[number] for number in left}


def _dominates(one: Mapping[int, float], other: Mapping[int, float]) -> bool:
    better = False
    for position, score in other.items():
        own = one.get(position, score)
        if own < score:  # mostly one of the first: of two candidates hardly any are alike on thousands of examples
            return False
        better = better or own > score
    return better
