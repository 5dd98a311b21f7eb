"""Minibatches of a dataset, epoch after epoch, from any point of which a run can go on."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping, Sized
from typing import Any, Generic, TypeVar

from textgrad_engine.checks import check
from textgrad_engine.data.dataset import Examples, by_position
from textgrad_engine.data.sampler import RandomSampler, Sampler, SequentialSampler
from textgrad_engine.keywords import names_told
from textgrad_engine.plain_values import is_flag, is_whole

T = TypeVar("T")


class DataLoader(Generic[T]):
    """Iterates over a dataset in lists of examples (minibatches).

    Each ``for`` over the loader is one epoch. With ``shuffle=True`` the order depends on seed and epoch alone: it
    differs between epochs, and is the same in each run. A loop that is left early ends its epoch: the next ``for``
    begins the epoch after it. Only after `load_state_dict` does the next ``for`` go on in the middle.

    Args:
        dataset: any sequence, or what has a length and an example at each position.
        batch_size: examples in a batch; the last of an epoch may have fewer.
        shuffle: visit the examples in random order.
        sampler: gives the positions to visit instead: a `Sampler`, or any iterable of integers with a length.
        drop_last: leave out a last batch that would have fewer examples.
        seed: of the shuffle; None draws one, which `state_dict` holds. The global `random` is neither read nor changed.

    Raises:
        ValueError: an argument is outside of its range, or `sampler` is given together with `shuffle` or `seed`.
        TypeError: the dataset or the sampler has no length, the sampler is not iterable, or the dataset holds its
            examples by columns.

    Example:
        >>> loader = DataLoader(list("abcde"), batch_size=2)
        >>> list(loader), len(loader)
        ([['a', 'b'], ['c', 'd'], ['e']], 3)
    """

    @names_told
    def __init__(
        self,
        dataset: Examples[T],
        batch_size: int = 1,
        shuffle: bool = False,
        sampler: Iterable[int] | None = None,
        drop_last: bool = False,
        seed: int | None = None,
    ) -> None:
        if not is_whole(batch_size) or batch_size <= 0:
            raise ValueError(f"batch_size must be a positive integer, got batch_size={batch_size!r}")
        for name, flag in (("shuffle", shuffle), ("drop_last", drop_last)):
            if not is_flag(flag):
                raise ValueError(f"{name} must be True or False, got {name}={flag!r}")
        if sampler is not None and shuffle:
            raise ValueError("sampler and shuffle=True exclude each other, both say the order; drop one of them")
        if sampler is not None and seed is not None:
            raise ValueError("seed is of the loader's own shuffle; a sampler has its own seed, give it to that")
        rows = by_position(dataset)
        if sampler is None:
            sampler = RandomSampler(rows, seed=seed) if shuffle else SequentialSampler(rows)
        if not isinstance(sampler, Iterable) or not isinstance(sampler, Sized):
            kind = f"the class {sampler.__name__}" if isinstance(sampler, type) else type(sampler).__name__
            raise TypeError(f"a sampler is an iterable of positions with a length, got {kind}")
        check(DataLoader.__init__, locals())
        self.dataset = rows
        self.batch_size = operator.index(batch_size)  # a plain number, as its state is plain JSON
        self.drop_last = bool(drop_last)
        self.sampler: Iterable[int] = sampler
        self._count: Sized = sampler
        self._epoch = 0
        self._batch = 0  # batches of this epoch that were handed out
        self._resumed = False
        self._order: list[int] | None = None
        self._owner: object = None

    @property
    def epoch(self) -> int:
        """The epoch (from 0) that is under way, or comes next when none is."""
        return self._epoch

    @property
    def examples(self) -> int:
        """Examples in one epoch, those that come twice counted twice, without those that are left out."""
        n = len(self._count)
        return n - n % self.batch_size if self.drop_last else n

    def __len__(self) -> int:
        """Batches in one epoch."""
        n = len(self._count)
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)

    def __repr__(self) -> str:
        drop_last = "drop_last=True, " if self.drop_last else ""
        sampler = repr(self.sampler)
        return (
            f"DataLoader({len(self.dataset)} examples, batch_size={self.batch_size}, {drop_last}"
            f"sampler={sampler if len(sampler) <= 80 else f'{sampler[:79]}…'}, epoch={self._epoch})"
        )

    def __iter__(self) -> Iterator[list[T]]:
        return (examples for _, examples in self.index_batches())

    def index_batches(self) -> Iterator[tuple[list[int], list[T]]]:
        """Like iterating over the loader, but each batch comes as ``(positions in the dataset, examples)``.

        Example:
            >>> list(DataLoader(list("abc"), batch_size=2).index_batches())
            [([0, 1], ['a', 'b']), ([2], ['c'])]
        """
        if self._resumed:
            self._resumed = False
        elif self._batch:
            self._start(self._epoch + 1)
        if self._order is None:
            self._order = self._draw()
        self._owner = owner = object()
        return self._walk(owner, self._order, self._batch)

    def set_epoch(self, epoch: int) -> None:
        """Begin that epoch (from 0) with the next ``for``.

        Right after `load_state_dict`, naming the epoch that was loaded keeps the place in it, so that a loop
        ``for epoch in range(loader.epoch, max_epochs): loader.set_epoch(epoch); ...`` resumes as it should.

        Raises:
            ValueError: the epoch is not an integer of at least 0.
        """
        if not is_whole(epoch) or epoch < 0:
            raise ValueError(f"epoch must be an integer of at least 0, got epoch={epoch!r}")
        if not (self._resumed and epoch == self._epoch):
            self._start(epoch)

    def state_dict(self) -> dict[str, Any]:
        """Where the loader stands, as plain JSON values.

        Asked for inside of the loop, the batch in hand counts as done. Asked for in the last batch of an epoch, the
        loader that loads it gives no batch for the rest of that epoch, and then the next epoch.
        """
        ours = isinstance(self.sampler, Sampler)
        return {
            "epoch": self._epoch,
            "batch": self._batch,
            "examples": len(self.dataset),
            "batch_size": self.batch_size,
            "drop_last": self.drop_last,
            "sampler": self.sampler.state_dict() if isinstance(self.sampler, Sampler) else None,
            # A foreign sampler may not give its order twice, so the order of this epoch is kept.
            "order": None if ours or self._order is None else list(self._order),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where a loader with the same dataset and settings stood.

        Raises:
            ValueError: the state is of a loader with other settings, or malformed; this loader is left as it was.
        """
        for key in ("epoch", "batch", "examples", "batch_size", "drop_last", "sampler", "order"):
            if key not in state:
                raise ValueError(f"this is no state of a DataLoader: it lacks {key!r}")
        mine = self.state_dict()
        for key in ("examples", "batch_size", "drop_last"):
            if state[key] != mine[key]:
                raise ValueError(f"the state is of a loader with {key}={state[key]}, this one has {key}={mine[key]}")
        if (state["sampler"] is None) != (mine["sampler"] is None):
            raise ValueError("the state is of a loader with another kind of sampler")
        if not 0 <= state["batch"] <= len(self) or state["epoch"] < 0:
            raise ValueError(f"the state stands at batch {state['batch']} of {len(self)} in epoch {state['epoch']}")
        if isinstance(self.sampler, Sampler):
            self.sampler.load_state_dict(state["sampler"])
        self._start(state["epoch"])
        self._batch = state["batch"]
        self._order = None if state["order"] is None else list(state["order"])
        self._resumed = True

    def _start(self, epoch: int) -> None:
        self._epoch = epoch
        self._batch = 0
        self._order = None
        self._resumed = False
        self._owner = None

    def _draw(self) -> list[int]:
        if isinstance(self.sampler, Sampler):
            self.sampler.set_epoch(self._epoch)
        order = list(self.sampler)
        for index in order:
            if isinstance(index, bool) or not hasattr(type(index), "__index__"):
                raise TypeError(
                    f"{type(self.sampler).__name__} gave {index!r:.60}, and a position is a whole number: 0 is the "
                    "first example of the dataset, whatever its id; the loader makes the batches"
                )
            if not 0 <= index < len(self.dataset):
                raise IndexError(f"the sampler gave position {index}; the dataset has {len(self.dataset)} examples")
        return order

    def _walk(self, owner: object, order: list[int], start: int) -> Iterator[tuple[list[int], list[T]]]:
        size = self.batch_size
        end = len(order) - len(order) % size if self.drop_last else len(order)
        for batch, first in enumerate(range(0, end, size)):
            if batch < start:
                continue
            indices = order[first : first + size]
            examples = [self.dataset[index] for index in indices]
            if self._owner is owner:  # an older iterator, still held by somebody, no longer says where the loader is
                self._batch = batch + 1
            yield indices, examples
        if self._owner is owner:
            self._start(self._epoch + 1)
