"""The paired race: what it asks for, when it ends, and how often it is wrong."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from textgrad_engine.optim.search.race import (
    ACCEPT,
    AT_THE_END,
    AT_THE_END_LONGER,
    FEWEST,
    GLANCE,
    KEEP,
    MANY,
    Outcome,
    Race,
)

Pair = tuple[float | None, float | None]


def raced(race: Race, pairs: dict[int, Pair]) -> list[int]:
    """Run a race to its end; gives the positions in the order of asking."""
    asked: list[int] = []
    while batch := race.next():
        for position in batch:
            race.add(position, *pairs[position])
        asked += batch
    return asked


def flat(ups: int = 0, downs: int = 0, same: int = 0) -> list[Pair]:
    """So many examples that get better, worse, and stay."""
    return [(0.0, 1.0)] * ups + [(1.0, 0.0)] * downs + [(1.0, 1.0)] * same


def outcome(pairs: Sequence[Pair], **settings: Any) -> Outcome | None:
    """What is decided when all examples are in one stratum and looked at together."""
    race = Race([range(len(pairs))], first=len(pairs), **settings)
    raced(race, dict(enumerate(pairs)))
    return race.outcome


# what it refuses


@pytest.mark.parametrize("strata", [[], [[]], [[1, 1]], [[1, 2], [2]]])
def test_each_example_is_in_one_stratum_once(strata: list[list[int]]) -> None:
    """Twice would count it twice; none at all decides nothing."""
    with pytest.raises(ValueError, match="each in one stratum, once"):
        Race(strata)


@pytest.mark.parametrize(
    "setting",
    [
        {"first": 0},
        {"fewest": 0},
        {"allowance": 0},
        {"allowance": -3},
        {"scale": 0.0},
        {"scale": -1.0},
        {"noise": -0.1},
    ],
)
def test_numbers_are_in_range(setting: dict[str, Any]) -> None:
    """The error shows all of them."""
    name, value = next(iter(setting.items()))
    with pytest.raises(ValueError, match=f"{name}={value}"):
        Race([[1, 2]], **setting)


@pytest.mark.parametrize(
    "setting",
    [{"accept": 0.5}, {"accept": 1.0}, {"reject": 0.4}, {"reject": 1.0}, {"at_the_end": 0.5}, {"at_the_end": 1.0}],
)
def test_levels_are_probabilities(setting: dict[str, float]) -> None:
    """At one half everything would be decided at once, and at 1 nothing ever."""
    with pytest.raises(ValueError, match=r"accept, reject and at_the_end between 0\.5 and 1, got .*\d"):
        Race([[1, 2]], **setting)  # type: ignore[arg-type]


def test_a_batch_must_be_told_before_the_next() -> None:
    """Else the decision would be made on half of what was bought."""
    race = Race([range(30)])
    batch = race.next()
    race.add(batch[0], 0.0, 1.0)
    with pytest.raises(RuntimeError, match="11 examples of the last batch have no scores"):
        race.next()


def test_only_what_was_asked_for_may_be_told() -> None:
    """And once: a score that counts twice would decide."""
    race = Race([range(30)])
    batch = race.next()
    race.add(batch[0], 0.0, 1.0)
    with pytest.raises(ValueError, match=f"no scores of position {batch[0]} are wanted"):
        race.add(batch[0], 0.0, 1.0)
    with pytest.raises(ValueError, match="no scores of position 29 are wanted"):
        race.add(29, 0.0, 1.0)


# when it is decided


def test_a_single_example_never_decides() -> None:
    """However few there are: one more right answer in four is what luck gives."""
    assert FEWEST == 2
    for same in (0, 1, 3, 7):
        assert outcome(flat(ups=1, same=same)) == "no difference"
        assert outcome(flat(downs=1, same=same)) == "no difference"


def test_one_is_enough_where_it_is_said_so() -> None:
    """Where an edit is tried without, one example that speaks for it keeps it."""
    assert outcome(flat(downs=1, same=7), until="worse", reject=KEEP, fewest=1) == "worse"
    assert outcome(flat(downs=1, same=7), until="worse", reject=KEEP) == "no difference"


def test_clear_differences_are_decided_in_the_first_batch() -> None:
    """Twelve examples are enough for what is plain, in either direction."""
    up, down = Race([range(96)]), Race([range(96)])
    assert len(raced(up, dict(enumerate(flat(ups=96))))) == 12
    assert len(raced(down, dict(enumerate(flat(downs=96))))) == 12
    assert (up.outcome, down.outcome) == ("better", "worse")
    assert up.probability > 0.99 > 0.01 > down.probability


def test_as_many_ups_as_downs_decide_nothing() -> None:
    """Whatever their number."""
    for count in (1, 2, 5, 20):
        assert outcome(flat(count, count, 10)) == "no difference"


def test_nothing_that_gets_better_where_it_shows_first_ends_it() -> None:
    """A candidate that is of use only when it is better is not run on what is right anyway."""
    race = Race([range(6), range(6, 96)])
    asked = raced(race, {n: (0.0, 0.0) if n < 6 else (1.0, 1.0) for n in range(96)})
    assert (race.outcome, len(asked)) == ("no difference", 12)
    race = Race([range(50), range(50, 96)])
    assert len(raced(race, dict.fromkeys(range(96), (0.0, 0.0)))) <= 12 + 24
    assert len(race._differences[0]) >= GLANCE  # never given up before so many were looked at


def test_it_ends_when_too_few_are_left_that_could_get_better() -> None:
    """Nothing is bought that cannot change the decision: not even a first batch when only one example is failed."""
    race = Race([range(10, 96), range(10)], hopeful=range(10))
    assert len(raced(race, {n: (0.0, 0.0) if n < 10 else (1.0, 1.0) for n in range(96)})) == 36
    assert Race([range(96)], hopeful=[7]).next() == []
    assert Race([range(96)], hopeful=[7]).outcome == "no difference"
    assert len(Race([range(96)], hopeful=[7, 8]).next()) == 12
    assert len(Race([range(96)], hopeful=[7], until="worse").next()) == 12


def test_a_shorter_text_is_looked_at_where_it_would_break() -> None:
    """Until "worse": ups do not matter; nothing that breaks there ends it, and breakage is looked into."""
    unharmed = Race([range(8), range(8, 96)], until="worse")
    assert len(raced(unharmed, dict.fromkeys(range(96), (1.0, 1.0)))) <= 12 + 24
    assert unharmed.outcome == "no difference"
    stays = dict.fromkeys(range(96), (1.0, 1.0))
    for first, ran in (((0.0, 1.0), 36), ((1.0, 0.0), 96)):
        race = Race([range(8), range(8, 96)], until="worse")
        assert (len(raced(race, {**stays, 0: first})), race.outcome) == (ran, "no difference")
    harmed = Race([range(8), range(8, 96)], until="worse", reject=KEEP)
    raced(harmed, {n: (1.0, 0.0) if n < 6 else (1.0, 1.0) for n in range(96)})
    assert harmed.outcome == "worse"


def test_without_a_glance_a_shorter_text_is_run_to_the_end_unless_it_is_worse() -> None:
    """What is lost may show last; and failures that come out right, as some do with any other text, do not hide it."""
    late = {n: (0.0, 1.0) if n < 8 else (1.0, 0.0) if n >= 90 else (1.0, 1.0) for n in range(96)}
    for glance, ran, decided in ((GLANCE, 12, "better"), (None, 96, "no difference")):
        race = Race([range(8), range(8, 96)], until="worse", glance=glance)
        assert (len(raced(race, late)), race.outcome) == (ran, decided)
    early = Race([range(8), range(8, 96)], until="worse", glance=None, reject=KEEP)
    assert len(raced(early, {n: (1.0, 0.0) if n < 6 else (1.0, 1.0) for n in range(96)})) == 12
    good = Race([range(8), range(8, 96)], until="worse", glance=None)
    assert len(raced(good, late | dict.fromkeys(range(90, 96), (1.0, 1.0)))) == 96
    assert good.outcome == "better"


def test_a_good_beginning_is_not_enough_where_more_is_to_be_run() -> None:
    """Where that is said so: nothing is better before, and all that there is are enough."""
    good = {n: (0.0, 1.0) if n < 8 else (1.0, 1.0) for n in range(96)}
    for least, ran in ((0, 12), (13, 36), (MANY, 84), (200, 96)):
        race = Race([range(8), range(8, 96)], least=least)
        assert (len(raced(race, good)), race.outcome) == (ran, "better")
    short_lived = Race([range(8), range(8, 96)], least=MANY)
    assert len(raced(short_lived, good | dict.fromkeys(range(8, 30), (1.0, 0.0)))) < MANY
    assert short_lived.outcome == "worse"


def test_the_levels_can_differ() -> None:
    """Less is asked for "worse" where taking the text would be the mistake."""
    pairs = flat(ups=2, downs=5, same=30)
    assert outcome(pairs) == "no difference"
    assert outcome(pairs, reject=KEEP) == "worse"
    assert outcome(flat(ups=5, downs=2, same=30)) == "no difference"
    assert outcome(flat(ups=5, downs=2, same=30), accept=0.8) == "better"


def test_the_balance_decides_when_no_more_may_be_run() -> None:
    """Where that is said so, of many examples, for the better only, and never against the balance."""
    close = flat(ups=4, downs=2, same=MANY - 6)
    assert outcome(close) == "no difference"
    assert outcome(close, at_the_end=0.6) == "better"
    assert outcome(close, at_the_end=0.9) == "no difference"
    assert outcome(flat(ups=4, downs=2, same=MANY - 7), at_the_end=0.6) == "no difference"
    assert outcome([(None, 1.0), *close[:-1]], at_the_end=0.6) == "no difference"
    assert outcome(close, at_the_end=0.6, until="worse") == "no difference"
    assert outcome(flat(ups=4, downs=4, same=MANY), at_the_end=0.6) == "no difference"
    assert outcome(flat(ups=1, same=MANY), at_the_end=0.6) == "no difference"


def test_the_balance_decides_nothing_before_the_end() -> None:
    """As long as more may be run, what is likely is looked into; when the allowance is spent, it is the end."""
    pairs: dict[int, Pair] = {n: (float(n % 32 == 8), float(n % 16 == 0)) for n in range(160)}
    for allowance, wanted in ((MANY, MANY), (100, 100), (None, 160)):
        race = Race([range(160)], first=20, allowance=allowance, at_the_end=0.6)
        asked = raced(race, pairs)
        assert (race.outcome, len(asked)) == ("better", wanted)
        assert race.probability < ACCEPT


def test_harm_that_was_seen_is_expected_of_others() -> None:
    """Where what is right and like the failures breaks, a few others that do not break do not make up for it."""
    about, near, failing, right = range(8), range(8, 16), range(16, 20), range(20, 96)
    pairs: dict[int, Pair] = {n: (0.0, 1.0) if n in {*about, *failing} else (1.0, 1.0) for n in range(96)}
    pairs |= dict.fromkeys((8, 9, 10), (1.0, 0.0))
    found = {}
    for hopeful in (None, [*about, *failing]):
        race = Race([about, near, failing, right], first=24, hopeful=hopeful)
        for n in race.next():
            race.add(n, *pairs[n])
        found[hopeful is None] = race.probability
        assert race.outcome == ("better" if hopeful is None else None)
        assert len(raced(race, pairs)) == (0 if hopeful is None else 48)
        assert race.outcome == "better"  # when more of them were run, these count
    assert found[True] > ACCEPT
    assert found[False] < 0.7


def test_where_nothing_breaks_no_harm_is_expected() -> None:
    """Which examples can only get worse makes no difference then."""
    pairs: dict[int, Pair] = {n: (0.0, float(n < 3)) if n < 8 else (1.0, 1.0) for n in range(40)}
    races = [Race([range(8), range(8, 40)], hopeful=hopeful) for hopeful in (None, range(8))]
    for race in races:
        for n in race.next():
            race.add(n, *pairs[n])
    assert races[0].probability == races[1].probability


def test_the_allowance_is_never_passed() -> None:
    """What is left undecided then is no difference."""
    race = Race([range(40), range(40, 96)], allowance=20)
    pairs: dict[int, Pair] = {n: (0.0, float(n % 7 == 0)) if n < 40 else (1.0, float(n % 9 != 0)) for n in range(96)}
    assert len(raced(race, pairs)) == 20
    assert race.outcome == "no difference"


def test_unanswered_examples_say_nothing() -> None:
    """Neither the old nor the new text wins by losing the hard ones; they are spent all the same."""
    lost: list[Pair] = [(None, 1.0), (0.0, None), (None, None)]
    assert outcome([*lost, *flat(ups=1, same=3)]) == "no difference"
    race = Race([range(24)])
    assert len(raced(race, dict.fromkeys(range(24), (0.0, None)))) == 24
    assert (race.outcome, race.probability, race.difference) == ("no difference", 0.5, 0.0)


def test_scores_of_another_scale_decide_alike() -> None:
    """From 1 to 5, or in thousands: what counts is the part of the scale."""
    rng = random.Random(1)
    for scale in (1.0, 4.0, 1000.0, 0.01):
        for ups, downs in ((5, 0), (3, 1), (0, 4), (1, 1)):
            pairs = flat(ups, downs, 8)
            rng.shuffle(pairs)
            wide = [(scale * a, scale * b) for a, b in pairs if a is not None and b is not None]
            assert outcome(wide, scale=scale) == outcome(pairs), (scale, ups, downs)


def test_many_small_gains_count() -> None:
    """With graded scores a gain of a tenth everywhere is one; of a tenth here and there it is none."""
    assert outcome([(0.5, 0.6)] * 12) == "better"
    assert outcome([(0.5, 0.6), (0.5, 0.4)] * 12) == "no difference"


def test_measured_noise_asks_for_more() -> None:
    """What would be plain with steady answers is not when the same texts score otherwise from time to time."""
    pairs = flat(ups=2, same=2)
    assert outcome(pairs) == "better"
    assert outcome(pairs, noise=0.25) == "no difference"
    assert outcome(flat(ups=8), noise=0.25) == "better"


def test_no_example_is_taken_to_be_steadier_than_was_measured() -> None:
    """Eight that did not change say less where answers change by themselves: it may be luck that none did."""

    def probability(noise: float) -> float:
        race = Race([range(4), range(4, 12)], noise=noise)
        raced(race, {n: (0.0, 1.0) if n < 4 else (1.0, 1.0) for n in range(12)})
        return race.probability

    # By strata of a third and two thirds, with one example of the prior in each.
    for noise, failing, right in ((0.0, 4.09 / 5 - 0.64, 0.09 / 9), (0.1, 4.2 / 5 - 0.64, 0.1), (0.5, 0.5, 0.5)):
        spread = math.sqrt(failing / 5 / 9 + right / 9 * 4 / 9)
        assert probability(noise) == pytest.approx(0.5 * (1 + math.erf(0.8 / 3 / spread / math.sqrt(2))))


# looking at failures first does not flatter


def test_the_difference_is_put_together_by_the_sizes_of_the_strata() -> None:
    """Six failures of which half are repaired, among 90 that stay: +3 points, not +25."""
    race = Race([range(6), range(6, 96)], first=12)
    for position in race.next():
        race.add(position, *((0.0, float(position % 2)) if position < 6 else (1.0, 1.0)))
    assert race.difference == pytest.approx(0.5 * 6 / 96)


@settings(max_examples=40)
@given(
    failing=st.lists(st.sampled_from([0.0, 1.0]), min_size=1, max_size=12),
    right=st.lists(st.sampled_from([0.0, 1.0]), min_size=1, max_size=12),
    seed=st.integers(0, 99),
)
def test_the_estimate_is_unbiased(failing: list[float], right: list[float], seed: int) -> None:
    """Over all orders inside the strata the mean estimate after the first batch is the difference over all examples."""
    truth = (sum(failing) + sum(score - 1 for score in right)) / (len(failing) + len(right))
    pairs: dict[int, Pair] = {n: (0.0, score) for n, score in enumerate(failing)}
    pairs |= {len(failing) + n: (1.0, score) for n, score in enumerate(right)}
    head, tail = list(range(len(failing))), list(range(len(failing), len(pairs)))
    rng = random.Random(seed)
    # All cyclic shifts of each stratum: each example is at each place equally often, which is all that a mean needs.
    rng.shuffle(head)
    rng.shuffle(tail)
    estimates = []
    for n in range(len(head)):
        for m in range(len(tail)):
            race = Race([head[n:] + head[:n], tail[m:] + tail[:m]], first=4)
            batch = race.next()
            if {position < len(failing) for position in batch} != {True, False}:
                continue
            for position in batch:
                race.add(position, *pairs[position])
            estimates.append(race.difference)
    assert sum(estimates) / len(estimates) == pytest.approx(truth)


# laws

PAIRS = st.tuples(
    st.one_of(st.none(), st.sampled_from([0.0, 0.5, 1.0])), st.one_of(st.none(), st.sampled_from([0.0, 0.5, 1.0]))
)


@settings(max_examples=60)
@given(
    sizes=st.lists(st.integers(0, 20), min_size=1, max_size=4).filter(any),
    first=st.integers(1, 15),
    allowance=st.one_of(st.none(), st.integers(1, 50)),
    until=st.sampled_from(["better", "worse"]),
    data=st.data(),
)
def test_it_ends_and_never_asks_twice(sizes: list[int], first: int, allowance: Any, until: Any, data: Any) -> None:
    """Whatever the scores are; a decision stands, and all that is asked for is in the strata."""
    positions = iter(range(sum(sizes)))
    strata = [[next(positions) for _ in range(size)] for size in sizes]
    race = Race(strata, first=first, allowance=allowance, until=until)
    asked: list[int] = []
    expected = first
    while batch := race.next():
        assert len(batch) <= expected
        expected *= 2
        for position in batch:
            race.add(position, *data.draw(PAIRS))
        asked += batch
    assert len(set(asked)) == len(asked)
    assert set(asked) <= set(range(sum(sizes)))
    assert len(asked) <= (sum(sizes) if allowance is None else allowance)
    assert race.outcome in ("better", "worse", "no difference")
    assert race.next() == []


@settings(max_examples=60)
@given(st.lists(PAIRS, min_size=2, max_size=24), st.integers(0, 99))
def test_the_order_of_telling_does_not_matter(pairs: list[Pair], seed: int) -> None:
    """Answers come as they come."""
    half = len(pairs) // 2
    outcomes = set()
    for shuffled in (False, True):
        race = Race([range(half), range(half, len(pairs))], first=7)
        rng = random.Random(seed)
        asked = []
        while batch := race.next():
            asked += batch
            if shuffled:
                batch = rng.sample(batch, len(batch))
            for position in batch:
                race.add(position, *pairs[position])
        outcomes.add((race.outcome, tuple(asked), round(race.probability, 9), round(race.difference, 9)))
    assert len(outcomes) == 1


@settings(max_examples=60)
@given(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=2, max_size=30))
def test_better_and_worse_mirror_each_other(scores: list[float]) -> None:
    """When old and new change places, so does the decision."""
    pairs = [(0.5, score) for score in scores]
    mirrored = {"better": "worse", "worse": "better", "no difference": "no difference"}
    there, back = outcome(pairs), outcome([(b, a) for a, b in pairs])
    assert there is not None
    assert back == mirrored[there]


# how often it is wrong


def rate(
    result: Outcome,
    accuracy: float,
    up: float,
    down: float,
    size: int,
    runs: int = 60,
    at_the_end: float | None = None,
) -> float:
    """How often simulated races come to a result.

    Args:
        result: the result that is counted.
        accuracy: of the texts of now.
        up: which part of all examples the candidate repairs.
        down: which part of all examples it breaks.
        size: how many examples there are.
        runs: how many races.
        at_the_end: as for `Race`.
    """
    count = 0
    for seed in range(runs):
        rng = random.Random(seed)
        old = [rng.random() < accuracy for _ in range(size)]
        new = [rng.random() >= down / accuracy if score else rng.random() < up / (1 - accuracy) for score in old]
        strata = [[n for n in range(size) if old[n] is right] for right in (False, True)]
        for stratum in strata:
            rng.shuffle(stratum)
        race = Race(strata, at_the_end=at_the_end)
        raced(race, {n: (float(old[n]), float(new[n])) for n in range(size)})
        count += race.outcome == result
    return count / runs


EVERY = [(accuracy, size) for accuracy in (0.3, 0.6, 0.9) for size in (48, 96, 200)]


@pytest.mark.parametrize(("flips", "mean", "most"), [(0.01, 0.05, 0.12), (0.02, 0.12, 0.27), (0.05, 0.21, 0.49)])
def test_the_rate_of_false_wins_is_as_stated(flips: float, mean: float, most: float) -> None:
    """With as many ups as downs in truth, "better" is as rare as the docstring of the module says."""
    rates = [rate("better", accuracy, flips, flips, size) for accuracy, size in EVERY]
    assert sum(rates) / len(rates) <= mean
    assert max(rates) <= most


@pytest.mark.parametrize(("flips", "mean", "most"), [(0.01, 0.14, 0.32), (0.02, 0.22, 0.36), (0.05, 0.30, 0.54)])
def test_the_balance_is_wrong_as_often_as_is_stated(flips: float, mean: float, most: float) -> None:
    """More often than a decision before the end, and never as often as a coin."""
    rates = [rate("better", accuracy, flips, flips, size, at_the_end=AT_THE_END) for accuracy, size in EVERY]
    assert sum(rates) / len(rates) <= mean
    assert max(rates) <= most


@pytest.mark.parametrize(("gain", "least"), [(0.03, 0.40), (0.08, 0.78), (0.2, 0.88)])
def test_gains_are_found(gain: float, least: float) -> None:
    """The other side of it: what is better by so much is seen so often, over the same sizes and accuracies."""
    rates = [rate("better", accuracy, min(gain + 0.01, 1 - accuracy), 0.01, size, 80) for accuracy, size in EVERY]
    assert sum(rates) / len(rates) >= least


def slipping(
    accuracy: float,
    slips: float,
    gain: float,
    size: int,
    measured: bool,
    runs: int = 60,
    at_the_end: float | None = None,
) -> float:
    """How often a candidate wins where each answer comes out wrong by itself, old and new ones alike.

    Args:
        accuracy: which part of the examples the texts of now can do.
        slips: how often an answer comes out the other way.
        gain: which part of all examples the candidate can do that the texts of now cannot.
        size: how many examples there are.
        measured: whether the race is told of the noise.
        runs: how many races.
        at_the_end: as for `Race`.
    """
    wins = 0
    for seed in range(runs):
        rng = random.Random(seed)
        can = [rng.random() < accuracy for _ in range(size)]
        will = [each or rng.random() < gain / (1 - accuracy) for each in can]
        old, new = ([float(each is (rng.random() >= slips)) for each in those] for those in (can, will))
        strata = [[n for n in range(size) if (old[n] > 0) is right] for right in (False, True)]
        for stratum in strata:
            rng.shuffle(stratum)
        race = Race(strata, hopeful=strata[0], noise=slips * (1 - slips) if measured else 0.0, at_the_end=at_the_end)
        raced(race, dict(enumerate(zip(old, new))))
        wins += race.outcome == "better"
    return wins / runs


@pytest.mark.parametrize("slips", [0.05, 0.1])
def test_noise_that_is_measured_is_not_taken_for_a_gain(slips: float) -> None:
    """A candidate that does the same wins half as often where races know how much answers slip; gains are seen."""
    told, untold = ([slipping(a, slips, 0.0, size, known) for a, size in EVERY] for known in (True, False))
    assert max(untold) >= 0.29
    assert max(told) <= 0.22
    assert sum(told) <= 0.7 * sum(untold)
    gains = [slipping(a, slips, 0.08, 200, True) for a in (0.3, 0.6, 0.9)]
    assert min(gains) >= 0.65


@pytest.mark.parametrize(("at_the_end", "mean", "most"), [(AT_THE_END, 0.25, 0.40), (AT_THE_END_LONGER, 0.18, 0.28)])
def test_noise_is_taken_for_a_gain_by_the_balance_as_often_as_is_stated(
    at_the_end: float, mean: float, most: float
) -> None:
    """Also where it is measured: the balance is no proof; less often where the text is longer, and than unmeasured."""
    told, untold = (
        [slipping(a, 0.05, 0.0, size, known, at_the_end=at_the_end) for a, size in EVERY] for known in (True, False)
    )
    assert sum(told) / len(told) <= mean
    assert max(told) <= most
    assert sum(told) < sum(untold)


def test_harm_is_not_taken_for_a_gain() -> None:
    """A candidate that breaks three in a hundred wins in no more than one race in a hundred."""
    rates = [rate("better", accuracy, 0.0, 0.03, size, 60) for accuracy, size in EVERY]
    assert max(rates) <= 0.01


# examples that belong together


def documents(clusters: bool, docs: int, flips: float, gain: float = 0.0, runs: int = 100) -> float:
    """How often a candidate wins when documents of 8 questions get better or worse as a whole.

    Args:
        clusters: whether the race knows the documents.
        docs: how many there are.
        flips: which part of them changes by chance, as many for the better as for the worse.
        gain: which part gets better beyond that.
        runs: how many races.
    """
    count = 0
    for seed in range(runs):
        rng = random.Random(seed)
        old, new, names = [], [], []
        for doc in range(docs):
            right, drawn = rng.gauss(0.5, 0.2), rng.random()
            to = 1.0 if drawn < flips / 2 + gain else 0.0 if drawn < flips + gain else None
            for _ in range(8):
                old.append(float(rng.random() < right))
                new.append(to if to is not None and rng.random() < 0.8 else old[-1])
                names.append(str(doc))
        strata = [[n for n, score in enumerate(old) if score == mark] for mark in (0.0, 1.0)]
        for stratum in strata:
            rng.shuffle(stratum)
        race = Race(strata, at_the_end=AT_THE_END_LONGER, hopeful=strata[0], clusters=names if clusters else ())
        raced(race, dict(enumerate(zip(old, new))))
        count += race.outcome == "better"
    return count / runs


@pytest.mark.parametrize("docs", [12, 24])
def test_questions_of_one_document_are_not_taken_for_many_proofs(docs: int) -> None:
    """A document that changes by chance changes eight answers at once."""
    assert documents(False, docs, 0.3) >= 0.25
    assert documents(True, docs, 0.3) <= 0.16


def test_documents_that_get_better_are_still_found() -> None:
    """With 24 of them, of which 30 in 100 get better."""
    assert documents(True, 24, 0.1, 0.3) >= 0.75


@given(pairs=st.lists(st.tuples(st.sampled_from([0.0, 0.5, 1.0]), st.sampled_from([0.0, 0.5, 1.0])), min_size=1))
def test_clusters_of_one_example_are_none(pairs: list[tuple[float, float]]) -> None:
    """Nothing is decided otherwise than without."""
    names = [str(n) for n in range(len(pairs))]
    alone, none = (Race([range(len(pairs))], clusters=clusters) for clusters in (names, ()))
    assert raced(alone, dict(enumerate(pairs))) == raced(none, dict(enumerate(pairs)))
    assert (alone.outcome, alone.probability) == (none.outcome, pytest.approx(none.probability))


@given(
    pairs=st.lists(st.tuples(st.sampled_from([0.0, 1.0]), st.sampled_from([0.0, 1.0])), min_size=1, max_size=40),
    docs=st.integers(1, 5),
)
def test_what_belongs_together_is_never_surer(pairs: list[tuple[float, float]], docs: int) -> None:
    """The probability is no further from a half than without clusters."""
    names = [str(n % docs) for n in range(len(pairs))]
    races = [Race([range(len(pairs))], first=len(pairs), clusters=clusters) for clusters in (names, ())]
    for race in races:
        raced(race, dict(enumerate(pairs)))
    known, unknown = (abs(race.probability - 0.5) for race in races)
    assert known <= unknown + 1e-9


def test_one_document_decides_nothing() -> None:
    """However many of its questions get better."""
    pairs = dict(enumerate(flat(ups=8)))
    race = Race([range(8)], first=8, clusters=["a"] * 8)
    raced(race, pairs)
    assert race.outcome == "no difference"
    two = Race([range(8)], first=8, clusters=["a", "b"] * 4)
    raced(two, pairs)
    assert two.outcome == "better"
