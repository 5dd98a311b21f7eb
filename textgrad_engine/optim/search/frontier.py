"""The Pareto frontier: candidates that are best somewhere, and in how many places each of them is.

This is the candidate selection of GEPA (arXiv 2507.19457, algorithm 2): sampling in proportion to these counts keeps
strategies alive that are best on a few examples only, where "take the best on average" would stay with one of them.
A place is an example, as in the paper, or one of those that GEPA's implementation has besides (`Places`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from typing import Literal, TypeAlias, TypeVar

from textgrad_engine.optim.search.population import Population

Places: TypeAlias = Literal["instance", "objective", "hybrid", "cartesian"]
"""Where a candidate may be the best: on an example; by the mean of a metric; in either; on an example by a metric.

The names are those of ``frontier_type`` in GEPA's implementation.
"""

Place = TypeVar("Place", bound=Hashable)


def row_of(population: Population, number: int, places: Places) -> dict[Hashable, float]:
    """What a candidate has in each of the places, for `frontier`; scores count less what they cost.

    An example is told by its position, a metric by its name.

    Args:
        population: has the candidate; and what each metric gave, unless places are examples.
        number: of the candidate.
        places: which there are.
    """
    row: dict[Hashable, float] = {}
    if places in ("instance", "hybrid"):
        row |= population.worth(number).items()
    if places in ("objective", "hybrid"):
        row |= zip(population.metrics, population.means_by_metric(number))
    if places == "cartesian":
        for position, parts in population.worth_by_metric(number).items():
            row |= {(position, name): part for name, part in zip(population.metrics, parts)}
    return row


def frontier(scores: Mapping[int, Mapping[Place, float]]) -> dict[int, int]:
    """In how many places each candidate is best, after those that another one dominates are out.

    One candidate dominates another when it does as well in every place where both have a score, and better in one.

    Args:
        scores: for each candidate, by number, its scores by example or other place; one may be missing.

    Returns:
        The counts by number, in the order given; candidates that are best nowhere, or dominated, are not in it.

    Example:
        >>> frontier({0: {1: 0.2, 2: 0.9}, 1: {1: 0.5, 2: 0.1}, 2: {1: 0.5, 2: 0.3}})
        {0: 1, 2: 1}
    """
    best: dict[Place, float] = {}
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


def _dominates(one: Mapping[Place, float], other: Mapping[Place, float]) -> bool:
    better = False
    for position, score in other.items():
        own = one.get(position, score)
        if own < score:  # mostly one of the first: of two candidates hardly any are alike on thousands of examples
            return False
        better = better or own > score
    return better
