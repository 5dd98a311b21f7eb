"""A race that is run: its record, and what ends it before its end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from textgrad_engine.errors import AnswerError, ServerFailed
from textgrad_engine.optim.search.race import MANY, Race
from textgrad_engine.optim.search.racing import LosesAnswers, answered, run_race

Pair = tuple[float | None, float | None]


def flat(ups: int = 0, downs: int = 0, same: int = 0) -> list[Pair]:
    """So many examples that get better, worse, and stay."""
    return [(0.0, 1.0)] * ups + [(1.0, 0.0)] * downs + [(1.0, 1.0)] * same


def test_an_error_of_the_scores_is_raised() -> None:
    """A race that cannot be run has no outcome."""

    def scores(some: Sequence[int]) -> Any:
        raise ServerFailed("gone", status=503)

    with pytest.raises(ServerFailed, match="gone"):
        run_race(Race([[0, 1]]), ("a", "b"), scores)


def test_a_record_says_what_the_candidate_must_make_up_for() -> None:
    """A difference of +0.115 was refused, and nothing told that the longer text cost 0.08 of it."""
    pairs = flat(ups=6, same=6)
    names = [str(n) for n in range(len(pairs))]

    def raced(handicap: float, cost: float) -> str:
        race = Race([range(len(pairs))], first=len(pairs), handicap=handicap)
        return run_race(
            race, names, lambda some: list(zip(*(pairs[n] for n in some))), lambda some: [cost] * len(some)
        ).odds

    assert raced(0.08, 0.0).startswith("its length costs 0.080, better with probability ")
    assert raced(-0.08, 0.02).startswith("its length saves 0.080, its time costs 0.020, better with probability ")
    assert raced(0.0, 0.0).startswith("better with probability ")


def test_a_record_says_what_only_the_balance_decided() -> None:
    """So that nobody takes it for as sure as another decision."""
    found = {}
    for ups in (1, 4, 12):
        pairs = flat(ups=ups, downs=2, same=MANY)
        names = [str(n) for n in range(len(pairs))]
        race = Race([range(len(pairs))], first=len(pairs), at_the_end=0.6)
        record = run_race(race, names, lambda some, pairs=pairs: list(zip(*(pairs[n] for n in some))))
        found[ups] = record.in_words
    assert found == {1: "no difference", 4: "better on balance", 12: "better"}


def test_the_record_tells_all() -> None:
    """In the order of asking, with who gained and who lost; numbers are rounded, so that journals are equal."""
    table = {0: (0.0, 1.0), 1: (0.0, 1.0), 2: (1.0, 0.0), 3: (None, 1.0), 4: (0.0, 1.0), 5: (0.0, 1.0)}

    def scores(some: Sequence[int]) -> list[list[float | None]]:
        return [[table[n][0] for n in some], [table[n][1] for n in some]]

    names = tuple("abcdef")
    record = run_race(Race([[0, 1, 4, 5], [2, 3]], first=3), names, scores)
    assert sorted(record.examples) == list(names)
    assert [record.before[record.examples.index(name)] for name in names] == [table[n][0] for n in range(6)]
    assert set(record.gained) == {"a", "b", "e", "f"}
    assert record.lost == ("c",)
    assert record.probability == round(record.probability, 6)
    assert record.difference == pytest.approx((4 * 1.0 + 2 * -1.0) / 6)


def test_a_candidate_that_loses_answers_is_refused_and_nothing_is_out_of_order() -> None:
    """Texts that answers run into their length limit with may look better on what is left."""
    table = [[0.0, 1.0]] * 6 + [[1.0, None]] * 5 + [[1.0, 1.0]] * 13

    def scores(some: Sequence[int]) -> list[list[float | None]]:
        return [[table[n][0] for n in some], [table[n][1] for n in some]]

    checked = answered(scores)
    assert checked(range(10))[1].count(None) == 4
    with pytest.raises(
        LosesAnswers, match="5 of 24 examples had no answer with the proposed texts, and had one before"
    ):
        checked(range(10, 24))


def test_answers_lost_on_both_sides_end_no_race() -> None:
    """A network loses them at any text; only where most are gone nothing can be said."""
    checked = answered(
        lambda some: [[None if n % 8 == 0 else 1.0 for n in some], [None if n % 8 == 1 else 1.0 for n in some]]
    )
    assert len(checked(range(96))[1]) == 96
    gone = answered(lambda some: [[None for _ in some], [None for _ in some]])
    with pytest.raises(AnswerError, match="24 of 24 examples had no answer") as caught:
        gone(range(24))
    assert not isinstance(caught.value, LosesAnswers)
