"""DataLoader: every example once an epoch, and a place to go on from."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textgrad_engine.data import DataLoader, Dataset, RandomSampler, Sampler, WeightedRandomSampler


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"batch_size": 0}, "batch_size must be a positive integer, got batch_size=0"),
        ({"batch_size": 2.0}, "batch_size must be a positive integer, got batch_size=2.0"),
        ({"batch_size": None}, "got batch_size=None"),
        ({"batch_size": True}, "got batch_size=True"),
        ({"shuffle": "yes"}, "shuffle must be True or False"),
        ({"drop_last": 1}, "drop_last must be True or False"),
        ({"shuffle": True, "sampler": [0]}, "exclude each other"),
        ({"sampler": [0], "seed": 1}, "a sampler has its own seed"),
        ({"shuffle": True, "seed": "a"}, "seed must be an integer"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(arguments: dict[str, Any], message: str) -> None:
    """As in torch, a wrong argument is an error when the loader is made."""
    with pytest.raises(ValueError, match=message):
        DataLoader(list("abc"), **arguments)


def test_a_sampler_without_a_length_is_refused() -> None:
    """The number of steps must be known."""
    with pytest.raises(TypeError, match="with a length, got generator"):
        DataLoader(list("abc"), sampler=(n for n in range(3)))


@pytest.mark.parametrize(
    ("position", "shown"), [("t1", "'t1'"), (1.0, "1.0"), (True, "True"), (None, "None"), ([0, 1], r"\[0, 1\]")]
)
def test_a_sampler_that_gives_no_positions_is_told_what_one_is(position: Any, shown: str) -> None:
    """Ids, and the lists of a sampler of batches, are what people give in the place of positions."""

    class Own(Sampler):
        def __iter__(self) -> Iterator[int]:
            return iter([0, position])

        def __len__(self) -> int:
            return 2

    with pytest.raises(TypeError, match=f"^Own gave {shown}, and a position is a whole number: 0 is the first example"):
        iter(DataLoader(list("abc"), sampler=Own()))


@pytest.mark.parametrize("position", [-1, 3])
def test_a_sampler_that_points_outside_is_named(position: int) -> None:
    """A negative position does not silently count from the end."""
    with pytest.raises(IndexError, match=f"gave position {position}; the dataset has 3"):
        iter(DataLoader(list("abc"), sampler=[0, position]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"batch_size": 3}, "batch_size=3, this one has batch_size=2"),
        ({"examples": 7}, "examples=7"),
        ({"drop_last": True}, "drop_last=True"),
        ({"sampler": None}, "another kind of sampler"),
        ({"sampler": {"kind": "SequentialSampler"}}, "SequentialSampler"),
        ({"batch": 9}, "batch 9 of 3"),
        ({"epoch": -1}, "in epoch -1"),
    ],
)
def test_the_state_of_another_loader_is_refused(change: dict[str, Any], message: str) -> None:
    """A resumed run with other batches would not be the same run; the loader is left as it was."""
    loader = DataLoader(list("abcde"), 2, shuffle=True, seed=0)
    before = loader.state_dict()
    with pytest.raises(ValueError, match=message):
        loader.load_state_dict({**before, **change})
    assert loader.state_dict() == before
    with pytest.raises(ValueError, match="lacks 'epoch'"):
        loader.load_state_dict({})


@pytest.mark.parametrize("epoch", [-1, 1.0, True])
def test_an_epoch_is_a_whole_number(epoch: Any) -> None:
    """set_epoch refuses what is no epoch."""
    with pytest.raises(ValueError, match="epoch must be an integer"):
        DataLoader(list("abc")).set_epoch(epoch)


@given(n=st.integers(0, 30), size=st.integers(1, 10), shuffle=st.booleans(), drop=st.booleans())
def test_every_example_comes_once_an_epoch(n: int, size: int, shuffle: bool, drop: bool) -> None:
    """Nothing is lost or doubled, len() is the number of batches, only the last may be short."""
    loader = DataLoader(range(n), size, shuffle=shuffle, drop_last=drop, seed=1 if shuffle else None)
    for _ in range(2):
        batches = list(loader)
        assert len(batches) == len(loader)
        assert all(len(batch) == size for batch in batches[:-1])
        seen = [x for batch in batches for x in batch]
        assert len(seen) == len(set(seen)) == (n - n % size if drop else n)
        assert shuffle or seen == list(range(len(seen)))


def test_epochs_differ_and_runs_do_not() -> None:
    """Each epoch has an order of its own, which the seed decides; the global random is left alone."""
    random.seed(5)
    state = random.getstate()
    loader, again = (DataLoader(range(40), 8, shuffle=True, seed=3) for _ in range(2))
    first, second = list(loader), list(loader)
    assert first != second
    assert [list(again), list(again)] == [first, second]
    again.set_epoch(1)
    assert list(again) == second
    assert random.getstate() == state


def test_a_loop_left_early_is_followed_by_the_next_epoch() -> None:
    """A break does not show the same examples again."""
    loader, whole = (DataLoader(range(40), 8, shuffle=True, seed=3) for _ in range(2))
    epochs = [list(whole), list(whole)]
    assert next(iter(loader)) == epochs[0][0]
    assert list(loader) == epochs[1]
    assert loader.epoch == 2


@given(
    n=st.integers(1, 20), size=st.integers(1, 6), stop=st.integers(0, 20), drop=st.booleans(),
    kind=st.sampled_from(["shuffle", "sequential", "sampler", "weighted", "list", "unstable"]),
)  # fmt: skip
def test_a_loader_goes_on_exactly_where_another_stood(n: int, size: int, stop: int, drop: bool, kind: str) -> None:
    """Wherever a run is stopped, the batches before and after are those of an uninterrupted run."""

    class Unstable(list[int]):
        def __iter__(self) -> Any:
            return iter(random.Random().sample(range(n), n))

    def make() -> DataLoader[int]:
        if kind in ("shuffle", "sequential"):
            return DataLoader(range(n), size, shuffle=kind == "shuffle", drop_last=drop)
        samplers: dict[str, Any] = {
            "sampler": RandomSampler(range(n)),
            "weighted": WeightedRandomSampler([1.0] * n, n),
            "list": list(reversed(range(n))),
            "unstable": Unstable(range(n)),
        }
        return DataLoader(range(n), size, sampler=samplers[kind], drop_last=drop)

    loader, other = make(), make()
    iterator = loader.index_batches()
    for _ in range(min(stop, len(loader))):
        next(iterator)
    other.load_state_dict(json.loads(json.dumps(loader.state_dict())))
    rest = list(iterator)
    assert list(other.index_batches()) == rest
    assert other.epoch == loader.epoch == 1
    if kind != "unstable":
        assert list(other) == list(loader)


def test_the_last_batch_is_not_given_twice() -> None:
    """A run stopped in the last batch of an epoch resumes with the end of that epoch, not its start."""
    loader = DataLoader(list("abcd"), 2)
    states = [loader.state_dict() for _ in loader]
    other = DataLoader(list("abcd"), 2)
    other.load_state_dict(states[-1])
    assert (other.epoch, list(other), other.epoch) == (0, [], 1)
    assert len(list(other)) == 2


def test_set_epoch_after_loading_keeps_the_place() -> None:
    """The usual loop, which calls set_epoch first, resumes in the middle of the epoch."""
    loader = DataLoader(range(6), 2, shuffle=True, seed=0)
    loader.set_epoch(4)
    iterator = iter(loader)
    next(iterator)
    other = DataLoader(range(6), 2, shuffle=True, seed=9)
    other.load_state_dict(loader.state_dict())
    other.set_epoch(4)
    assert list(other) == list(iterator)
    other.load_state_dict({**loader.state_dict(), "epoch": 4, "batch": 1})
    other.set_epoch(4)
    other.set_epoch(5)
    assert len(list(other)) == 3


def test_an_older_iterator_does_not_move_the_loader() -> None:
    """Two loops at once give what each should, and the state is that of the newer."""
    loader = DataLoader(range(6), 2)
    old = iter(loader)
    next(old)
    new = iter(loader)
    assert [*old] == [[2, 3], [4, 5]]
    assert (loader.epoch, loader.state_dict()["batch"]) == (1, 0)
    assert len(list(new)) == 3
    assert loader.epoch == 2


def test_examples_come_with_their_positions() -> None:
    """The trainer finds the id of each example by its position."""
    dataset = Dataset([{"id": name} for name in "abcde"])
    for indices, examples in DataLoader(dataset, 2, shuffle=True, seed=0).index_batches():
        assert [dataset.ids[i] for i in indices] == [example["id"] for example in examples]


def test_a_stream_is_refused_with_the_repair() -> None:
    """It has no length, and its examples come once; found when the loader is made, not in the middle of a loop."""
    with pytest.raises(TypeError, match=r"got generator; of a stream take a part: list\(itertools.islice"):
        DataLoader((word for word in "abc"), batch_size=2)  # type: ignore[arg-type]


def test_a_notebook_shows_what_a_loader_gives() -> None:
    """Not the address of an object."""
    loader = DataLoader(list("abcde"), batch_size=2, shuffle=True, drop_last=True, seed=3)
    assert repr(loader) == (
        "DataLoader(5 examples, batch_size=2, drop_last=True, sampler=RandomSampler(5 positions, seed=3), epoch=0)"
    )
    assert "DataLoader(3 examples, batch_size=1, sampler=[2, 0], " in repr(DataLoader(list("abc"), sampler=[2, 0]))
    assert len(repr(DataLoader(list("abc") * 999, sampler=[0] * 999))) < 200
