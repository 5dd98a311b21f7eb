"""Sign flips and max-T: exact where all signs are tried, and right however many candidates there are."""

from __future__ import annotations

import itertools
import math
import random
import tracemalloc
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textgrad_engine.train import permutation
from textgrad_engine.train.statistics import max_t, mcnemar, paired_difference, sign_flip, t_cdf


def test_what_cannot_be_compared_is_refused() -> None:
    """Scores of other examples, broken ones, none at all."""
    with pytest.raises(ValueError, match="got 3 before and 2 after"):
        max_t([0, 1, 0], [[1, 1, 1], [1, 1]])
    with pytest.raises(ValueError, match=r"candidates\[1\]\[0\] is nan"):
        max_t([0], [[1], [math.nan]])
    with pytest.raises(ValueError, match="baseline is empty"):
        max_t([], [])
    with pytest.raises(ValueError, match="resamples=0"):
        max_t([0], [[1]], resamples=0)
    with pytest.raises(ValueError, match="got 2 values and 1 clusters"):
        max_t([0, 1], [[1, 1]], clusters=["a"])
    assert max_t([0, 1], []) == ()


@given(differences=st.lists(st.sampled_from([-1, 0, 1]), min_size=1, max_size=14))
def test_flipping_all_signs_of_binary_differences_is_mcnemar(differences: list[int]) -> None:
    """The exact test that was there before, by another way."""
    assert sign_flip(differences) == pytest.approx(mcnemar(differences.count(1), differences.count(-1)))


@given(values=st.lists(st.floats(-3, 3).map(lambda value: round(value, 3)), min_size=1, max_size=9))
def test_all_signs_are_counted(values: list[float]) -> None:
    """Against the definition, sign by sign; the table of eights and its end agree with it."""
    least = abs(sum(values)) - 1e-9
    signs = list(itertools.product((1, -1), repeat=len(values)))
    count = sum(abs(sum(sign * value for sign, value in zip(each, values))) >= least for each in signs)
    assert sign_flip(values) == pytest.approx(count / len(signs))


def test_random_signs_come_near_to_all_signs() -> None:
    """Where all would be too many, the same to two digits; never 0."""
    source = random.Random(1)
    values = [source.gauss(0.3, 1) for _ in range(18)]
    every = sign_flip(values, resamples=2**17)
    assert sign_flip(values, resamples=5000, seed=3) == pytest.approx(every, abs=0.02)
    assert sign_flip([1.0] * 200, resamples=99) == 0.01
    assert sign_flip([0.7] * 199 + [0.8], resamples=99) == 0.01


@pytest.mark.parametrize("grades", [[1.0], [0.25, 0.5, 0.75, 1.0], [0.1, 0.3 - 0.2]])
def test_counting_bits_and_adding_numbers_give_the_same(
    monkeypatch: pytest.MonkeyPatch, grades: Sequence[float]
) -> None:
    """Differences of few sizes are counted, others added up; either way it is the same."""
    source = random.Random(2)
    rows = [[source.choice([0.0, *grades]) for _ in range(100)] for _ in range(4)]
    base = [source.choice([0.0, *grades]) for _ in range(100)]
    added: list[object] = []
    by_eights = permutation._by_eights
    with monkeypatch.context() as patched:
        patched.setattr(permutation, "_by_eights", added.append)
        counted = max_t(base, rows, seed=4)
    assert not added
    monkeypatch.setattr(permutation, "_by_size", lambda row, sizes, flips: by_eights(row, flips))
    assert max_t(base, rows, seed=4) == counted


def test_examples_where_nothing_differs_cost_nothing() -> None:
    """A candidate raced on 120 of 5,000 examples is looked up for these; 625 tables at once would take 8 megabytes."""
    source = random.Random(4)
    row = [0.0] * 5000
    for unit in source.sample(range(5000), 120):
        row[unit] = source.gauss(0, 1)
    flips = [source.getrandbits(5000) for _ in range(20)]
    tracemalloc.start()
    try:
        flipped = permutation._flipped(row, flips)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2_000_000
    scale = math.sqrt(sum(value * value for value in row))
    for signs, found in zip(flips, flipped, strict=True):
        total = sum(-value if signs >> unit & 1 else value for unit, value in enumerate(row))
        assert found == pytest.approx(abs(total) / scale)


def test_it_is_the_t_test_where_that_holds() -> None:
    """Sixty normal differences: nearly the p-value of Student's t."""
    source = random.Random(5)
    values = [source.gauss(0.2, 1) for _ in range(60)]
    n, mean = len(values), sum(values) / len(values)
    error = math.sqrt(sum((value - mean) ** 2 for value in values) / (n - 1) / n)
    assert sign_flip(values) == pytest.approx(2 * t_cdf(-abs(mean) / error, n - 1), abs=0.01)


def test_one_candidate_needs_no_correction_and_more_need_more() -> None:
    """The p-value grows with the candidates tried; twins count as one, which Bonferroni does not see."""
    source = random.Random(6)
    base = [float(source.random() < 0.5) for _ in range(40)]
    good = [max(score, float(source.random() < 0.35)) for score in base]
    alone = max_t(base, [good])[0]
    assert alone == pytest.approx(sign_flip([b - a for a, b in zip(base, good)]))
    others = [[float(source.random() < 0.5) for _ in range(40)] for _ in range(30)]
    assert alone < max_t(base, [good, *others[:5]])[0] < max_t(base, [good, *others])[0]
    assert max_t(base, [good] * 10)[0] == pytest.approx(alone)


def test_the_strongest_is_compared_with_all_and_the_next_with_the_rest() -> None:
    """Step down, against the definition of Westfall and Young, over all signs."""
    base = [0.0] * 8
    rows = [[1, 1, 1, 1, 1, 1, 1, 0], [0.5, 0.4, -0.1, 0.3, 0.2, 0.6, 0.1, 0], [0, -1, 1, 0, 1, 0, 0, 0]]
    flips = list(itertools.product((1, -1), repeat=8))

    def statistic(row: list[float], signs: tuple[int, ...]) -> float:
        scale = math.sqrt(sum(value * value for value in row))
        return abs(sum(sign * value for sign, value in zip(signs, row))) / scale

    observed = [statistic(row, (1,) * 8) for row in rows]
    order = sorted(range(3), key=lambda index: -observed[index])
    expected, so_far = {}, 0.0
    for place, index in enumerate(order):
        rest = [rows[each] for each in order[place:]]
        reached = sum(max(statistic(row, signs) for row in rest) >= observed[index] - 1e-9 for signs in flips)
        so_far = max(so_far, reached / len(flips))
        expected[index] = so_far
    assert max_t(base, rows) == pytest.approx([expected[index] for index in range(3)])


@given(
    rows=st.lists(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=6, max_size=6), min_size=1, max_size=5),
    order=st.randoms(use_true_random=False),
)
def test_the_order_of_candidates_does_not_matter(rows: list[list[float]], order: random.Random) -> None:
    """Each keeps its p-value, none is below that of a stronger one, and none below its own without correction."""
    base = [0.0, 1.0, 0.5, 0.0, 1.0, 0.0]
    places = list(range(len(rows)))
    order.shuffle(places)
    found = max_t(base, rows)
    assert max_t(base, [rows[place] for place in places]) == pytest.approx([found[place] for place in places])
    for row, p_value in zip(rows, found):
        assert sign_flip([b - a for a, b in zip(base, row)]) - 1e-9 <= p_value <= 1


@pytest.mark.parametrize(("candidates", "n", "binary"), [(12, 40, True), (10, 15, False)])
def test_the_best_of_many_equal_candidates_is_rarely_called_better(candidates: int, n: int, binary: bool) -> None:
    """The chance of any claim at all is 5%, where testing each by itself gives several times that."""
    source = random.Random(n)
    trials = 150
    claimed, naive = 0, 0
    for trial in range(trials):
        hard = [source.uniform(0.1, 0.9) for _ in range(n)]

        def scores(hard: list[float] = hard) -> list[float]:
            if binary:
                return [float(source.random() < rate) for rate in hard]
            return [source.betavariate(5 * rate, 1) for rate in hard]

        base, rows = scores(), [scores() for _ in range(candidates)]
        claimed += min(max_t(base, rows, resamples=300, seed=trial)) <= 0.05
        naive += min(paired_difference(base, row).p_value for row in rows) <= 0.05
    assert claimed / trials <= 0.08  # 5% and two standard errors of the simulation
    assert naive / trials > 0.12


def test_a_real_gain_is_found_among_useless_candidates() -> None:
    """The correction does not cost all power: a prompt that is right half as often again is found nearly always."""
    source = random.Random(9)
    trials = 60
    found = 0
    for trial in range(trials):
        base = [float(source.random() < 0.5) for _ in range(100)]
        good = [max(score, float(source.random() < 0.5)) for score in base]
        others = [[score if source.random() < 0.8 else 1 - score for score in base] for _ in range(15)]
        found += max_t(base, [*others, good], resamples=300, seed=trial)[-1] <= 0.05
    assert found / trials > 0.9


def test_signs_of_a_cluster_are_flipped_together() -> None:
    """Thirty examples in five clusters have five signs, not thirty."""
    clusters = [n // 6 for n in range(30)]
    assert max_t([0.0] * 30, [[1.0] * 30], clusters=clusters) == (2 / 2**5,)


@pytest.mark.parametrize("clusters", [None, [str(n // 2) for n in range(60)]])
def test_equal_examples_in_another_order_have_equal_p_values(clusters: list[str] | None) -> None:
    """Two runs may have the same rows in other orders, and `diff A B` and `diff B A` are of the same pairs."""
    source = random.Random(4)
    rows = [[source.choice((0.0, 0.2, 0.5, 0.9)) for _ in range(60)] for _ in range(4)]
    order = sorted(range(60), key=lambda _: source.random())
    shuffled = [[row[n] for n in order] for row in rows]
    names = None if clusters is None else [clusters[n] for n in order]
    found = max_t(rows[0], rows[1:], clusters=clusters, resamples=500)
    assert max_t(shuffled[0], shuffled[1:], clusters=names, resamples=500) == pytest.approx(found, abs=1e-12)
    one = max_t(rows[0], rows[1:2], clusters=clusters, resamples=500)
    assert max_t(shuffled[1], shuffled[:1], clusters=names, resamples=500) == pytest.approx(one, abs=1e-12)
