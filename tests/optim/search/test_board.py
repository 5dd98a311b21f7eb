"""The board of a patch search: what is drawn, what counts as right, and what is remembered."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from textgrad_engine.optim.cells import Evidence, Origin
from textgrad_engine.optim.feedback import FeedbackItem
from textgrad_engine.optim.patch import Edit
from textgrad_engine.optim.search.board import MOST_DRAWN, MOST_LOST, Accepted, Begun, Board, Refused, Rival
from textgrad_engine.optim.search.racing import RaceRecord
from textgrad_engine.optim.search.written import Written
from textgrad_engine.optim.telling import Tried


def board(**known: Any) -> Board:
    return Board(("Sort.",), ((None,),), **known)


def draw(of: Board, count: int, size: int, most_tries: int = 2, seed: int = 0) -> list[int]:
    return of.draw(count, size, random.Random(seed), most_tries)


# what is right


def test_all_of_one_middling_score_is_not_right_when_the_scale_is_known() -> None:
    """A judge that gives everything 3 of 5 has not said that nothing can be better."""
    seen = dict.fromkeys(range(4), 3.0)
    assert board(val=seen, limits=(1.0, 5.0)).failing == [0, 1, 2, 3]
    assert draw(board(train=seen, limits=(1.0, 5.0)), 4, 4) == [0, 1, 2, 3]
    assert board(val=seen, limits=(1.0, 5.0)).scale == 4.0


def test_between_0_and_1_a_1_is_right() -> None:
    """Also when the best seen is less: it is the usual scale of a score."""
    known = board(val={0: 0.0, 1: 0.5, 2: 0.9})
    assert (known.top, known.scale, known.failing, known.right) == (1.0, 1.0, [0, 1, 2], [])


def test_elsewhere_the_best_seen_is_right() -> None:
    """Scores without a known end: negative errors, words saved, marks up to a hundred."""
    known = board(val={0: -3.0, 1: -1.0}, train={0: -9.0})
    assert (known.top, known.scale, known.failing, known.right) == (-1.0, 8.0, [0], [1])
    known = board(val={0: 70.0, 1: 90.0}, train={5: 100.0})
    assert (known.top, known.scale, known.failing) == (100.0, 30.0, [0, 1])


def test_where_nobody_knows_the_best_score_no_example_is_without_hope() -> None:
    """All the same tells nothing; of several scores the best is the last to learn from, and may be surpassed."""
    equal = board(val={0: 6.0, 1: 6.0})
    assert (equal.failing, equal.right, equal.hopeful, draw(equal, 2, 2)) == ([0, 1], [], None, [0, 1])
    several = board(val={0: 6.0, 1: 7.0}, train={0: 7.0, 1: 6.0})
    assert (several.failing, several.right, several.hopeful, draw(several, 2, 2)) == ([0], [1], None, [1])
    assert [several.can_gain(n) for n in (0, 1)] == [True, True]
    known = board(val={0: 0.5, 1: 1.0})
    assert (known.hopeful, [known.can_gain(n) for n in (0, 1)]) == ([0], [True, False])


def test_equal_scores_have_a_scale() -> None:
    """A race divides by it."""
    assert board(val={0: 7.0, 1: 7.0}).scale == 1.0


# what is drawn


def test_failures_and_what_was_never_run_are_drawn() -> None:
    """Not what is right, not what somebody else has in hand, not what was given up."""
    known = board(train={0: 1.0, 1: 0.0, 2: 0.0, 3: 0.0}, tries={2: 2}, under_way=[Begun(1, (3,))])
    assert draw(known, 9, 6) == [1, 4, 5]
    assert draw(known, 9, 4) == [1]
    assert draw(known, 9, 1) == []


def test_those_drawn_least_often_come_first() -> None:
    """So that every failure has its turn before one has its second."""
    known = board(tries={n: n % 2 for n in range(8)})
    for seed in range(10):
        assert draw(known, 4, 8, seed=seed) == [0, 2, 4, 6]
        assert set(draw(known, 6, 8, seed=seed)) >= {0, 2, 4, 6}


def test_among_equals_the_seed_decides() -> None:
    """The same one draws the same, others draw others, and all come in order."""
    drawn = {tuple(draw(board(), 4, 20, seed=seed)) for seed in range(20)}
    assert len(drawn) > 10
    assert all(list(each) == sorted(each) for each in drawn)
    assert draw(board(), 4, 20, seed=3) == draw(board(), 4, 20, seed=3)


def test_where_few_fail_more_are_run_to_find_them() -> None:
    """Of ten validation examples one fails, so four failures are expected of forty examples; but not without end."""
    few = board(val={n: float(n > 0) for n in range(10)})
    assert len(draw(few, 4, 200)) == MOST_DRAWN * 4
    half = board(val={n: float(n % 2) for n in range(10)})
    assert len(draw(half, 4, 200)) == 8


@given(
    st.dictionaries(st.integers(0, 15), st.sampled_from([0.0, 0.5, 1.0])),
    st.dictionaries(st.integers(0, 15), st.integers(0, 3)),
    st.sets(st.integers(0, 15)),
    st.integers(1, 20),
)
def test_whatever_is_drawn_may_be(train: dict[int, float], tries: dict[int, int], busy: set[int], count: int) -> None:
    """A law: each once, in range, not right, not busy, not given up; as many as wanted if there are so many."""
    known = board(train=train, tries=tries, under_way=[Begun(number, (n,)) for number, n in enumerate(sorted(busy))])
    may = {n for n in range(16) if n not in busy and tries.get(n, 0) < 2 and train.get(n, 0.0) < 1.0}
    drawn = draw(known, count, 16)
    assert len(set(drawn)) == len(drawn) == min(count, len(may))
    assert set(drawn) <= may


# the order of a race


@given(st.lists(st.sampled_from([0.0, 1.0]), min_size=1, max_size=20), st.data())
def test_the_strata_are_all_examples_once(scores: list[float], data: Any) -> None:
    """First those that were named, in their order, then other failures, then what is right; no stratum is empty."""
    known = board(val=dict(enumerate(scores)))
    first = data.draw(st.lists(st.sampled_from(range(len(scores))), max_size=8))
    strata = known.strata(first, random.Random(1))
    assert sorted(n for stratum in strata for n in stratum) == list(range(len(scores)))
    assert all(strata)
    if first:
        assert strata[0] == list(dict.fromkeys(first))
    others = strata[1:] if first else strata
    kinds = [{scores[n] for n in stratum} for stratum in others]
    assert kinds in ([], [{0.0}], [{1.0}], [{0.0}, {1.0}])


def test_strata_are_made_in_time_by_the_number_of_examples() -> None:
    """Not by its square: whether a line does harm is looked for where the text is right, in all of the examples."""

    class Position(int):
        hashed = 0

        def __hash__(self) -> int:
            Position.hashed += 1
            return int.__hash__(self)

    known = board(val={Position(n): float(n % 10 > 0) for n in range(300)})
    Position.hashed = 0
    assert [len(stratum) for stratum in known.strata(known.right, random.Random(1))] == [270, 30]
    assert Position.hashed < 10 * 300


# what is remembered


def test_a_lost_answer_is_a_try_and_no_score() -> None:
    """What could not be run is not known to be wrong; and it is not drawn for ever."""
    known = board()
    known.learn([1, 2], [None, 0.0])
    assert (known.train, known.tries) == ({2: 0.0}, {1: 1, 2: 1})
    known.learn([1, 2], [None, None])
    assert draw(known, 9, 3) == [0]


def test_a_lost_proposal_is_no_try() -> None:
    """That the optimizer gave no answer says nothing about the examples; they are not drawn for ever all the same."""
    known = board()
    for _ in range(MOST_LOST - 1):
        known.learn([1], [0.0], lost=True)
    assert (known.tries, known.train) == ({}, {1: 0.0})
    assert (draw(known, 9, 2), known.open(2, 2)) == ([0, 1], 2)
    known.learn([1], [0.0], lost=True)
    assert known.open(2, 2) == 1
    known.give_another_try()
    assert known.open(2, 2) == 2


def test_an_example_that_does_better_is_tried_anew() -> None:
    """A gain, even a part of one, shows that it is within reach."""
    known = board(train={0: 0.2, 1: 0.2, 2: 0.2}, tries={0: 1, 1: 1, 2: 1})
    known.learn([0, 1, 2], [0.4, 0.2, 0.1])
    assert (known.tries, known.train) == ({0: 0, 1: 2, 2: 2}, {0: 0.4, 1: 0.2, 2: 0.1})


def record(**scores: tuple[float | None, float | None]) -> RaceRecord:
    before, after = zip(*scores.values())
    return RaceRecord("better", tuple(scores), before, after, 0.99, 0.5)


def test_what_the_winner_scored_is_known_of_the_best() -> None:
    """All of it when these are the very texts, only what changed when they were put together with others."""
    positions = {"a": 0, "b": 1, "c": 2, "d": 3}
    race = record(a=(0.0, 1.0), b=(0.0, 0.0), c=(1.0, None), d=(None, 0.0))
    seen = {0: 0.0, 1: 1.0, 2: 1.0, 3: 1.0}
    exact, put_together = board(val=dict(seen)), board(val=dict(seen))
    exact.settle(race, positions, exact=True)
    put_together.settle(race, positions, exact=False)
    assert exact.val == {0: 1.0, 1: 0.0, 2: 1.0, 3: 0.0}
    assert put_together.val == {0: 1.0, 1: 1.0, 2: 1.0, 3: 0.0}
    put_together.settle(record(e=(0.0, 0.0), f=(0.0, 1.0), g=(None, None)), {"e": 4, "f": 5, "g": 6}, exact=False)
    assert put_together.val == {0: 1.0, 1: 1.0, 2: 1.0, 3: 0.0, 4: 0.0, 5: 1.0}  # new ones, the unchanged ones too
    assert (exact.mean, put_together.mean) == (0.5, 4 / 6)


def test_what_a_race_has_run_of_the_best_is_known() -> None:
    """Also when the candidate lost: it has shown which examples fail now."""
    known = board(val={0: 0.0, 1: 1.0, 2: 0.0})
    known.observe(record(a=(1.0, 0.0), b=(0.0, 0.0), c=(None, 1.0), d=(1.0, 1.0)), {"a": 0, "b": 1, "c": 2, "d": 7})
    assert known.val == {0: 1.0, 1: 0.0, 2: 0.0, 7: 1.0}


def full() -> Board:
    """A board with something in every field."""
    evidence = (Evidence("Say where.", ("t1", "t2")),)
    origin = Origin(2, "asked", evidence, "2.1")
    edit = Edit("add", 1, "Be brief.", "asked", (1,), "2.1")
    item = FeedbackItem("Say where.", 2, "an answer", ("t1", "t2"))
    return Board(
        ("Sort.\nBe brief.",),
        ((None, origin),),
        val={0: 1.0, 7: 0.5},
        train={3: 0.0},
        tries={3: 1},
        under_way=[Begun(5, (3, 4))],
        accepted=[Accepted(0, "2.1", (1, 2))],
        tested={"0/2.1": 1},
        refused=[Refused(0, edit, evidence)],
        history=[Tried(0, "added 'x'", "worse"), Tried(0, "'y'", "no difference", removed=True)],
        noise=0.125,
        limits=(0.0, 1.0),
        begun=5,
        kept=2,
        quiet=1,
        together=1,
        rivals=[Rival(4, ("Sort.",), ((None,),), (Written(0, "Sort.", "Sort!", (edit,), (item,)),), ("v1",))],
        doubtful=[(Accepted(0, "2.1", (1, 2)),)],
        united=[("0/x", "0/y")],
        examples=(("t1", "t2"), ("v1",)),
    )


def test_a_snapshot_is_not_touched_by_what_comes_after() -> None:
    """A lane works on the board of when its proposal was begun."""
    known = full()
    copy, before = known.snapshot(), repr(known)
    for name in ("val", "train", "tries", "under_way", "accepted", "tested", "refused", "history", "rivals"):
        getattr(known, name).clear()
    known.doubtful.clear()
    known.united.clear()
    known.texts, known.quiet = ("Other.",), 9
    assert repr(copy) == before
    copy.val[0] = 0.0
    assert known.val == {}


def test_the_state_is_plain_data_and_comes_back() -> None:
    """Through JSON, which makes texts of numbers in keys; only what was under way is left out."""
    known = full()
    back = TypeAdapter(Board).validate_python(json.loads(json.dumps(known.state_dict())))
    known.under_way = []
    assert back == known


ONE, TWO = Accepted(0, "1.1", (1,)), Accepted(0, "2.1", (2,))
RIVALS = [Rival(n, ("Sort.",), ((None,),), (), ()) for n in range(3)]


def busy_board() -> Board:
    """A board of which six proposals have taken something."""
    known = board(
        tested={"0/1.1": 1}, doubtful=[(ONE,), (TWO,), (ONE, TWO)], rivals=list(RIVALS), united=[("0/a",)], together=3
    )
    known.begin(turn=("0/1.1", 1))
    known.tested["0/1.1"] = 4
    known.begin(turn=("0/2.1", None))
    known.tested["0/2.1"] = 4
    for _ in range(2):
        known.begin(doubtful=known.doubtful.pop(0))
        known.begin(rival=known.rivals.pop(0))
    known.united.append(("0/x", "0/y"))
    known.begin(united=("0/x", "0/y"))
    known.together = 0
    known.begin(together=3)
    known.begin(examples=(7, 8))
    return known


def test_what_was_begun_and_not_settled_is_due_again() -> None:
    """In the order of before; what came in meanwhile stays, and the numbers of proposals are not used twice."""
    known = busy_board()
    known.doubtful.append((TWO, ONE))
    known.together += 1
    assert known.busy == {7, 8}
    known.put_back()
    assert known.tested == {"0/1.1": 1}
    assert known.doubtful == [(ONE,), (TWO,), (ONE, TWO), (TWO, ONE)]
    assert known.rivals == RIVALS
    assert known.united == [("0/a",)]
    assert (known.together, known.busy, known.under_way, known.begun) == (4, set(), [], 9)


def test_what_was_settled_is_not_put_back() -> None:
    """The others still are, as if they had been begun first."""
    known = busy_board()
    for number in (1, 3, 4, 7):
        known.end(number)
    known.put_back()
    assert known.tested == {"0/1.1": 4}
    assert known.doubtful == [(TWO,), (ONE, TWO)]
    assert known.rivals == RIVALS[1:]
    assert known.united == [("0/a",), ("0/x", "0/y")]


def test_an_edit_that_is_tried_without_twice_at_a_time_is_put_back_to_the_first() -> None:
    """What stood there before either of them; where the first is settled, what that has made of it."""
    for settled, expected in ((False, {}), (True, {"0/1.1": 2})):
        known = board(tested={"0/1.1": 9})
        known.begin(turn=("0/1.1", None))
        known.begin(turn=("0/1.1", 2))
        if settled:
            known.end(1)
        known.put_back()
        assert known.tested == expected


def test_one_proposal_is_put_back_alone() -> None:
    """The others are still under way; of two that try without the same edit, the later one is the try now."""
    known = busy_board()
    known.put_back(9)
    assert (known.busy, [begun.number for begun in known.under_way]) == (set(), [1, 2, 3, 4, 5, 6, 7, 8])
    known.put_back(4)
    assert known.rivals == [RIVALS[0], RIVALS[2]]
    known.begin(turn=("0/1.1", 4))
    known.put_back(1)
    assert known.tested == {"0/1.1": 4, "0/2.1": 4}
    known.put_back()
    assert known.tested == {"0/1.1": 1}


def test_the_state_has_what_is_under_way_put_back_and_the_board_goes_on() -> None:
    """A checkpoint is taken in the middle of a search, which must not notice."""
    known, other = busy_board(), busy_board()
    state = json.loads(json.dumps(known.state_dict()))
    assert known == other
    other.put_back()
    assert TypeAdapter(Board).validate_python(state) == other


@pytest.mark.parametrize("field", ["limits", "examples", "under_way", "lost"])
def test_a_state_of_before_a_field_was_there_comes_back(field: str) -> None:
    """A saved search is not lost to a new version."""
    state = full().state_dict()
    del state[field]
    back = TypeAdapter(Board).validate_python({**state, "busy": []})  # which was a field of its own
    assert getattr(back, field) == getattr(board(), field)
