"""A population: what is bought once, who is ahead, and who descends from whom."""

from __future__ import annotations

from typing import Any

import pytest

from textgrad_engine.optim.search.population import Candidate, Population


class Scores:
    """Gives scores from a table, and keeps what it was asked."""

    tokens_weight = latency_weight = 0.0

    def __init__(self, table: dict[str, list[float | None]]) -> None:
        self.table = table
        self.asked: list[Any] = []

    def matrix(self, candidates: Any, positions: Any, split: str) -> Any:
        self.asked.append(([texts[0] for texts in candidates], list(positions)))
        return [[self.table[texts[0]][position] for position in positions] for texts in candidates]


def of(*texts: str, parents: tuple[tuple[int, ...], ...] = ()) -> Population:
    population = Population(("a", "b", "c"))
    for number, text in enumerate(texts):
        population.add(Candidate((text,), ((None,),), parents[number] if parents else ()))
    return population


def test_a_lost_answer_is_not_asked_for_again() -> None:
    """None is a result, too: the example went unanswered."""
    population, scores = of("x"), Scores({"x": [1.0, None, 0.0]})
    for _ in range(2):
        population.score(scores, [0], [0, 1, 2])  # type: ignore[arg-type]
    assert scores.asked == [(["x"], [0, 1, 2])]
    assert (population.known(0), population.mean(0)) == ({0: 1.0, 2: 0.0}, 0.5)


def test_only_what_is_missing_is_bought() -> None:
    """All at once, for those candidates and examples that lack something."""
    population, scores = of("x", "y"), Scores({"x": [1.0, 1.0, 0.0], "y": [0.0, 1.0, 1.0]})
    population.score(scores, [0], [0, 1])  # type: ignore[arg-type]
    population.score(scores, [0, 1], [0, 1])  # type: ignore[arg-type]
    population.score(scores, [0, 1], [0, 1, 2])  # type: ignore[arg-type]
    assert scores.asked == [(["x"], [0, 1]), (["y"], [0, 1]), (["x", "y"], [2])]


def test_each_candidate_has_scores_on_all_that_was_asked_for() -> None:
    """Also where another one was run on a part of it before."""
    population, scores = of("x", "y"), Scores({"x": [1.0, 1.0, 0.0], "y": [0.0, 1.0, 1.0]})
    population.score(scores, [0], [0, 1])  # type: ignore[arg-type]
    population.score(scores, [1], [0])  # type: ignore[arg-type]
    population.score(scores, [0, 1], [0, 1, 2])  # type: ignore[arg-type]
    assert [population.known(number) for number in (0, 1)] == [{0: 1.0, 1: 1.0, 2: 0.0}, {0: 0.0, 1: 1.0, 2: 1.0}]


def test_what_a_candidate_comes_to_follows_what_it_is_run_on() -> None:
    """It is worked out once, until there is more of it."""
    population, scores = of("x", "y"), Scores({"x": [1.0, 0.0, 3.0], "y": [0.0, 1.0, 1.0]})
    population.score(scores, [0, 1], [0])  # type: ignore[arg-type]
    assert (population.mean(0), population.worth(0), population.lead(0, 1), population.scale) == (1.0, {0: 1.0}, 1.0, 1)
    assert population.worth(0) is population.worth(0)
    population.score(scores, [0, 1], [0, 1, 2])  # type: ignore[arg-type]
    assert (population.mean(0), population.worth(0)) == (4 / 3, {0: 1.0, 1: 0.0, 2: 3.0})
    assert (population.lead(0, 1), population.scale) == (2 / 3, 3)


def test_what_a_candidate_comes_to_is_not_that_of_scores_that_were_taken_back() -> None:
    """As where a round is interrupted and made again: it may run as many other examples."""
    population, scores = of("x"), Scores({"x": [1.0, 0.0, 3.0]})
    population.score(scores, [0], [0])  # type: ignore[arg-type]
    before = population.sizes()
    population.score(scores, [0], [1])  # type: ignore[arg-type]
    assert population.mean(0) == 0.5
    population.back_to(before)
    assert (population.mean(0), population.scale) == (1.0, 1)
    population.score(scores, [0], [1])  # type: ignore[arg-type]
    assert population.mean(0) == 0.5
    population.back_to(before)
    population.score(scores, [0], [2])  # type: ignore[arg-type]
    assert (population.mean(0), population.worth(0)) == (2.0, {0: 1.0, 2: 3.0})


def test_who_is_ahead_is_told_on_what_both_answered() -> None:
    """Losing a hard example to an error is no way to win."""
    population = of("x", "y", "z")
    population.scores = [{0: 1.0, 1: 0.0}, {0: 1.0, 1: None}, {2: 1.0}]
    assert population.mean(1) > population.mean(0)
    assert population.lead(1, 0) == 0.0
    assert population.lead(2, 0) == 0.0


def test_a_comparison_reads_as_a_race() -> None:
    """The journal shows which examples changed, and how sure the difference is."""
    population = of("x", "y", "z")
    population.scores = [{0: 0.0, 1: 0.0, 2: 1.0}, {0: 1.0, 1: 1.0, 2: 0.0}, {}]
    record = population.compared(1, 0, ())
    assert record is not None
    assert (record.examples, record.gained, record.lost) == (("a", "b", "c"), ("a", "b"), ("c",))
    assert record.difference == pytest.approx(1 / 3)
    assert 0.5 < record.probability < 0.95
    assert population.compared(2, 0, ()) is None


def test_a_comparison_knows_clusters() -> None:
    """One document that got better with all of its questions says less than as many documents would."""
    population = Population(tuple(map(str, range(24))))
    for text in "xy":
        population.add(Candidate((text,), ((None,),)))
    population.scores = [dict.fromkeys(range(24), 0.0), {n: float(n < 8) for n in range(24)}]
    apart = population.compared(1, 0, ())
    together = population.compared(1, 0, [str(n // 8) for n in range(24)])
    assert apart is not None
    assert together is not None
    assert (apart.outcome, together.outcome) == ("better", "no difference")
    assert together.probability < 0.9 < 0.99 < apart.probability


def test_scores_of_another_scale_are_known_by_their_spread() -> None:
    """A judge from 1 to 5 has no top of 1."""
    population = of("x", "y")
    population.scores = [{0: 1.0, 1: 4.0}, {0: 0.5}]
    assert (population.top(), population.top([None, 5.0]), population.scale) == (4.0, 5.0, 3.5)
    population.limits = (0.0, 9.0)
    assert (population.top(), population.scale) == (9.0, 9.0)
    population.limits, population.scores = None, [{0: 0.25}, {0: 0.5}]
    assert (population.top(), population.scale) == (1.0, 1.0)


def test_ancestors_are_found_through_merges() -> None:
    """Both parents of a merged candidate count."""
    population = of("a", "b", "c", "d", "e", parents=((), (0,), (0,), (1, 2), (3,)))
    assert population.ancestors(4) == {0, 1, 2, 3}
    assert population.ancestors(0) == set()
    assert (population.number_of(("c",)), population.number_of(("q",))) == (2, None)
