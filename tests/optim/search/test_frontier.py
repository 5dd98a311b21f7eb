"""The Pareto frontier by examples: who is drawn, and how often."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from textgrad_engine.optim.search.frontier import Frontier, PopulationFrontier, frontier
from textgrad_engine.optim.search.population import Candidate, Population

TABLES = st.integers(1, 6).flatmap(
    lambda columns: st.lists(
        st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=columns, max_size=columns), min_size=1, max_size=6
    )
)


def table(rows: list[list[float]]) -> dict[int, dict[int, float]]:
    return {number: dict(enumerate(row)) for number, row in enumerate(rows)}


def test_a_candidate_without_scores_is_never_drawn() -> None:
    """One that was not run yet is no candidate for the next step."""
    assert frontier({0: {}, 1: {0: 0.0}}) == {1: 1}
    assert frontier({}) == {}


def test_best_on_one_example_is_enough() -> None:
    """The specialist stays beside the one that is better on average."""
    assert frontier(table([[1.0, 1.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]])) == {0: 3, 1: 1}


def test_who_is_dominated_is_not_drawn() -> None:
    """Equal where it is best, and worse elsewhere: nothing is lost without it."""
    assert frontier(table([[1.0, 0.0], [1.0, 1.0]])) == {1: 2}


def test_equals_share_their_examples() -> None:
    """Two candidates with the same scores count both."""
    assert frontier(table([[1.0, 0.5], [1.0, 0.5]])) == {0: 2, 1: 2}


def test_a_lost_answer_neither_wins_nor_loses_an_example() -> None:
    """It is compared where both have scores."""
    assert frontier({0: {0: 1.0}, 1: {0: 0.5, 1: 0.5}}) == {0: 1}
    assert frontier({0: {0: 1.0}, 1: {1: 0.5}}) == {0: 1, 1: 1}


def test_two_candidates_are_compared_until_each_is_seen_to_be_better() -> None:
    """Of a hundred candidates on thousands of examples all pairs are compared, at each step."""

    class Row(dict[int, float]):
        read = 0

        def get(self, key: int, default: Any = None) -> Any:
            Row.read += 1
            return super().get(key, default)

    rows = {number: Row({n: float(n % 50 != number) for n in range(1000)}) for number in range(10)}
    assert frontier(rows) == dict.fromkeys(range(10), 980)
    assert Row.read < 10 * 10 * 20


@given(st.lists(st.dictionaries(st.integers(0, 4), st.sampled_from([0.0, 0.5, 1.0])), max_size=8))
def test_a_frontier_that_grows_is_that_of_all(rows: list[dict[int, float]]) -> None:
    """Whoever comes, in whatever order, and whatever is missing: it is what looking at all of them anew gives."""

    def dominates(one: dict[int, float], other: dict[int, float]) -> bool:
        both = [(one.get(place, score), score) for place, score in other.items()]
        return all(a >= b for a, b in both) and any(a > b for a, b in both)

    growing = Frontier()
    for count, row in enumerate(rows, 1):
        growing.add(count - 1, row)
        now = dict(enumerate(rows[:count]))
        best = {place: max(each.get(place, -1.0) for each in now.values()) for place in range(5)}
        held = {n: sum(score == best[place] for place, score in each.items()) for n, each in now.items()}
        left = [n for n in now if held[n]]
        for n in sorted(left, key=lambda n: sum(now[n].values())):
            if any(dominates(now[other], now[n]) for other in left if other != n):
                left.remove(n)
        assert growing.counts() == {n: held[n] for n in left}
        assert list(growing.counts()) == left


class Seen(dict[int, float | None]):
    """Scores that count how often somebody goes through them."""

    times = 0

    def items(self) -> Any:
        Seen.times += 1
        return super().items()


def test_a_proposal_reads_the_scores_of_no_candidate_twice() -> None:
    """A search asks for its frontier at each proposal, and has hundreds of candidates by then."""
    population, growing = Population(tuple(map(str, range(60)))), PopulationFrontier()
    Seen.times = 0
    for number in range(100):
        population.add(Candidate((f"text {number}",), ((None,),)))
        population.scores[number] = Seen({n: float((n * 7 + number) % 11 == 0) for n in range(60)})
        for _ in range(3):  # most proposals bring no candidate
            counts = growing.counts(population, "instance")
        assert (population.top(), population.mean(number) > 0) == (1.0, True)
    assert Seen.times == 100
    assert counts == frontier({n: population.worth(n) for n in range(100)})


def test_a_candidate_that_is_run_on_more_examples_is_looked_at_again() -> None:
    """It may lead there, or be led; and where it counts who is best may be chosen anew."""
    population, growing = Population(("a", "b")), PopulationFrontier()
    for number, scores in enumerate(({0: 1.0, 1: 0.0}, {0: 1.0})):
        population.add(Candidate((f"text {number}",), ((None,),)))
        population.scores[number].update(scores)
    assert growing.counts(population, "instance") == {0: 2, 1: 1}
    population.scores[1][1] = 1.0
    assert growing.counts(population, "instance") == {1: 2}
    population.metrics, population.by_metric = ("right",), [{0: (1.0,), 1: (0.0,)}, {0: (1.0,), 1: (1.0,)}]
    assert growing.counts(population, "hybrid") == {1: 3}


@given(TABLES)
def test_the_laws_of_a_frontier(rows: list[list[float]]) -> None:
    """Somebody is on it; all of it is best somewhere; nobody on it is dominated; every example is held by somebody."""
    counts = frontier(table(rows))
    best = [max(column) for column in zip(*rows)]
    assert counts
    for number, count in counts.items():
        assert count == sum(score == top for score, top in zip(rows[number], best))
        for other in rows:
            assert not (all(a >= b for a, b in zip(other, rows[number])) and other != rows[number])
    for position, top in enumerate(best):
        assert any(rows[number][position] == top for number in counts)
