"""Samplers: orders that depend on seed and epoch alone."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from textgrad_engine.data.sampler import RandomSampler, Sampler, SequentialSampler, WeightedRandomSampler


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RandomSampler("ab", num_samples=0), "num_samples must be a positive integer, got num_samples=0"),
        (lambda: RandomSampler("ab", num_samples=True), "num_samples"),
        (lambda: RandomSampler("ab", replacement=1), "replacement must be True or False"),  # type: ignore[arg-type]
        (lambda: RandomSampler("", replacement=True, num_samples=2), "empty dataset"),
        (lambda: RandomSampler("ab", seed=1.5), "seed must be an integer or None"),  # type: ignore[arg-type]
        (lambda: WeightedRandomSampler([1, -1], 1), r"weights\[1\]=-1"),
        (lambda: WeightedRandomSampler([float("nan")], 1), r"\[0\] of it is nan"),
        (lambda: WeightedRandomSampler([0, 0], 1), "at least one"),
        (lambda: WeightedRandomSampler([], 1), "at least one"),
        (lambda: WeightedRandomSampler([1, 1, 0], 3, replacement=False), "only 2 weights"),
        (lambda: WeightedRandomSampler([1], 0), "num_samples"),
    ],
)
def test_arguments_outside_of_their_range_are_refused(make: Any, message: str) -> None:
    """A sampler that could give no order is not made."""
    with pytest.raises(ValueError, match=message):
        make()


def test_a_state_of_another_kind_is_refused() -> None:
    """A shuffled run does not go on in sequential order."""
    with pytest.raises(ValueError, match="the state is of a SequentialSampler, this is a RandomSampler"):
        RandomSampler("ab").load_state_dict(SequentialSampler("ab").state_dict())


def test_random_order_is_a_function_of_seed_and_epoch() -> None:
    """Same seed and epoch, same order; neighbouring seeds and epochs share none."""
    orders = set()
    for seed in (0, 1):
        for epoch in (0, 1):
            sampler = RandomSampler(range(50), seed=seed)
            sampler.set_epoch(epoch)
            assert list(sampler) == list(sampler)
            assert sorted(sampler) == list(range(50))
            orders.add(tuple(sampler))
    assert len(orders) == 4


def test_the_first_orders_never_change() -> None:
    """A run made with an older version is resumed in the same order."""
    sampler = RandomSampler(range(8), seed=0)
    assert list(sampler) == [3, 5, 7, 1, 2, 0, 4, 6]


def test_the_global_random_is_left_alone() -> None:
    """Sampling neither reads nor reseeds the generator of the user's program."""
    random.seed(3)
    state = random.getstate()
    list(RandomSampler(range(9)))
    list(WeightedRandomSampler([1, 2], 5))
    assert random.getstate() == state


def test_a_drawn_seed_is_kept_in_the_state() -> None:
    """Without a seed the order is random, and can still be asked for again."""
    first, second = RandomSampler(range(30)), RandomSampler(range(30))
    assert list(first) != list(second)
    second.load_state_dict(first.state_dict())
    assert list(first) == list(second)


def test_more_or_fewer_samples_than_examples() -> None:
    """Without replacement, every example comes once before any comes twice."""
    assert len(set(RandomSampler(range(9), num_samples=4, seed=0))) == 4
    twice = list(RandomSampler(range(3), num_samples=7, seed=0))
    assert sorted(twice[:3]) == sorted(twice[3:6]) == [0, 1, 2]
    assert len(twice) == 7
    assert list(RandomSampler("", num_samples=2)) == list(RandomSampler("")) == []


def test_replacement_repeats() -> None:
    """Drawing with replacement gives the wanted number, and duplicates."""
    drawn = list(RandomSampler(range(5), replacement=True, num_samples=200, seed=0))
    assert len(drawn) == 200
    assert set(drawn) == set(range(5))


def test_weights_are_frequencies() -> None:
    """Twice the weight is drawn twice as often, and weight zero never."""
    counts = Counter(WeightedRandomSampler([1, 0, 2, 0], 6000, seed=1))
    assert set(counts) == {0, 2}
    assert counts[2] / counts[0] == pytest.approx(2, rel=0.1)


def test_weights_without_replacement() -> None:
    """Each example comes once at most, the heavy ones earlier."""
    first = Counter()  # type: ignore[var-annotated]
    sampler = WeightedRandomSampler([1, 3, 0], 2, replacement=False, seed=0)
    for epoch in range(2000):
        sampler.set_epoch(epoch)
        order = list(sampler)
        assert sorted(order) == [0, 1]
        first[order[0]] += 1
    assert first[1] / 2000 == pytest.approx(0.75, abs=0.04)


def test_a_sampler_of_the_users_needs_two_methods() -> None:
    """The base class does the rest."""

    class Backwards(Sampler):
        def __iter__(self):  # type: ignore[no-untyped-def]
            return iter((2, 1, 0))

        def __len__(self) -> int:
            return 3

    sampler = Backwards()
    sampler.load_state_dict(sampler.state_dict())
    sampler.set_epoch(4)
    assert (list(sampler), sampler.epoch) == ([2, 1, 0], 4)


@pytest.mark.parametrize(
    ("sampler", "shown"),
    [
        (SequentialSampler("abc"), "SequentialSampler(3 positions)"),
        (RandomSampler("abc", seed=1), "RandomSampler(3 positions, seed=1)"),
        (
            RandomSampler("abc", replacement=True, num_samples=9, seed=1),
            "RandomSampler(9 positions, replacement=True, ",
        ),
        (WeightedRandomSampler([1, 2], 5, seed=1), "WeightedRandomSampler(5 positions, seed=1)"),
        (WeightedRandomSampler([1, 2], 2, replacement=False, seed=1), "(2 positions, replacement=False, seed=1)"),
    ],
)
def test_a_notebook_shows_how_many_positions_and_the_seed(sampler: Sampler, shown: str) -> None:
    """Also of a seed that was drawn: who saw a good order can ask for it again."""
    assert shown in repr(sampler)
    drawn = RandomSampler("abc")
    assert repr(drawn) == f"RandomSampler(3 positions, seed={drawn.seed})"
