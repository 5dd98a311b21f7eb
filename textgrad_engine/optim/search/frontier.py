"""The Pareto frontier: candidates that are best somewhere, and in how many places each of them is.

This is the candidate selection of GEPA (arXiv 2507.19457, algorithm 2): sampling in proportion to these counts keeps
strategies alive that are best on a few examples only, where "take the best on average" would stay with one of them.
A place is an example, as in the paper, or one of those that GEPA's implementation has besides (`Places`).
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Hashable, Mapping
from typing import Any, Literal, TypeAlias, TypeVar

from textgrad_engine.optim.search.population import Population

Places: TypeAlias = Literal["instance", "objective", "hybrid", "cartesian"]
"""Where a candidate may be the best: on an example; by the mean of a metric; in either; on an example by a metric.

The names are those of ``frontier_type`` in GEPA's implementation.
"""

Place = TypeVar("Place", bound=Hashable)


def row_of(population: Population, number: int, places: Places) -> dict[Hashable, float]:
    """What a candidate has in each of the places, for a `Frontier`; scores count less what they cost.

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


class Frontier:
    """In how many places each candidate is best, after those that another one dominates are out.

    One candidate dominates another when it does as well in every place where both have a score, and better in one.
    Candidates come one by one: each is looked at once, and compared with those that are best somewhere by then. One
    that is best nowhere any more does not come back.

    Example:
        >>> found = Frontier()
        >>> for number, row in enumerate(({1: 0.2, 2: 0.9}, {1: 0.5, 2: 0.1}, {1: 0.5, 2: 0.3})):
        ...     found.add(number, row)
        >>> found.counts()
        {0: 1, 2: 1}
    """

    def __init__(self) -> None:
        self._best: dict[Hashable, float] = {}
        self._at: dict[Hashable, list[int]] = {}  # who is best there
        self._held: Counter[int] = Counter()
        self._rows: dict[int, Mapping[Any, float]] = {}  # of those that may be on it, in the order of coming
        self._sums: dict[int, float] = {}
        self._above: dict[int, set[int]] = {}  # who dominates each of those that were compared
        self._counts: dict[int, int] | None = {}

    def add(self, number: int, row: Mapping[Any, float]) -> None:
        """Take another candidate in.

        Args:
            number: of the candidate.
            row: its scores by example or other place; one may be missing.
        """
        for place, score in row.items():
            best = self._best.get(place)
            if best is None or score > best:
                self._best[place] = score
                for each in self._at.get(place, ()):
                    self._held[each] -= 1
                self._at[place] = []
            if score == self._best[place]:
                self._at[place].append(number)
                self._held[number] += 1
        self._rows[number] = row
        self._counts = None

    def counts(self) -> dict[int, int]:
        """The counts by number, in the order of coming; who is best nowhere, or dominated, is not in it."""
        if self._counts is None:
            for number in [each for each in self._rows if not self._held[each]]:
                for known in (self._rows, self._sums, self._above):
                    known.pop(number, None)
            for number in self._rows:
                if number not in self._above:
                    self._compare(number)
            left = dict.fromkeys(self._rows)
            # The weakest go first, so that of a chain of candidates the one at its end stays.
            for number in sorted(left, key=self._sums.__getitem__):
                if any(other in left for other in self._above[number]):
                    del left[number]
            self._counts = {number: self._held[number] for number in left}
        return dict(self._counts)

    def _compare(self, number: int) -> None:
        row = self._rows[number]
        self._sums[number] = sum(row.values())
        above = set()
        for other, others in self._above.items():
            if _dominates(self._rows[other], row):
                above.add(other)
            elif _dominates(row, self._rows[other]):
                others.add(number)
        self._above[number] = above


class PopulationFrontier:
    """The frontier of a population that grows; who was there before is not looked at again."""

    def __init__(self) -> None:
        self._places: Places = "instance"
        self._worths: list[Mapping[int, float]] = []  # of the candidates that are in it
        self._frontier = Frontier()

    def counts(self, population: Population, places: Places) -> dict[int, int]:
        """See `Frontier.counts`.

        Args:
            population: has the candidates.
            places: where one may be the best.
        """
        now = [population.worth(number) for number in range(len(population.candidates))]
        same = places == self._places and len(now) >= len(self._worths)
        if not same or any(map(operator.is_not, self._worths, now)):  # one was run on more examples
            self._places, self._worths, self._frontier = places, [], Frontier()
        for number in range(len(self._worths), len(now)):
            self._frontier.add(number, row_of(population, number, places))
        self._worths = now
        return self._frontier.counts()


def frontier(scores: Mapping[int, Mapping[Place, float]]) -> dict[int, int]:
    """The `Frontier` of some candidates: in how many places each is best.

    Args:
        scores: for each candidate, by number, its scores by example or other place; one may be missing.

    Returns:
        The counts by number, in the order given; candidates that are best nowhere, or dominated, are not in it.

    Example:
        >>> frontier({0: {1: 0.2, 2: 0.9}, 1: {1: 0.5, 2: 0.1}, 2: {1: 0.5, 2: 0.3}})
        {0: 1, 2: 1}
    """
    found = Frontier()
    for number, row in scores.items():
        found.add(number, row)
    return found.counts()


def _dominates(one: Mapping[Place, float], other: Mapping[Place, float]) -> bool:
    better = False
    for position, score in other.items():
        own = one.get(position, score)
        if own < score:  # mostly one of the first: of two candidates hardly any are alike on thousands of examples
            return False
        better = better or own > score
    return better
