"""In which order examples are visited: each sampler is a function of its arguments and the epoch."""

from __future__ import annotations

import bisect
import itertools
import math
import operator
import random
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence, Sized
from typing import Any, ClassVar

from textgrad_engine.checks import check
from textgrad_engine.keywords import names_told
from textgrad_engine.plain_values import is_flag, is_whole
from textgrad_engine.wording import a_class, with_article


class Sampler(ABC):
    """Positions of examples, in the order in which they are visited.

    The order must depend on nothing but the sampler's arguments, its state and the epoch, so that a run that was
    interrupted can ask for it again.

    Example:
        >>> class ShortestFirst(Sampler):
        ...     def __init__(self, rows):
        ...         self.order = sorted(range(len(rows)), key=lambda n: len(rows[n]["text"]))
        ...     def __iter__(self):
        ...         return iter(self.order)
        ...     def __len__(self):
        ...         return len(self.order)
        >>> list(ShortestFirst([{"text": "long one"}, {"text": "short"}]))
        [1, 0]
    """

    epoch: int = 0

    @abstractmethod
    def __iter__(self) -> Iterator[int]:
        """The positions of this epoch; asked twice in one epoch, the same ones."""

    @abstractmethod
    def __len__(self) -> int:
        """How many positions an epoch has."""

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch (from 0) whose order is asked for next."""
        self.epoch = epoch

    def state_dict(self) -> dict[str, Any]:
        """What is needed to give the same orders again, as plain JSON values."""
        return {"kind": type(self).__name__}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over a state.

        Raises:
            ValueError: it is the state of another kind of sampler.
        """
        if state.get("kind") != type(self).__name__:
            raise ValueError(f"the state is of {with_article(str(state.get('kind')))}, this is {a_class(type(self))}")


class SequentialSampler(Sampler):
    """Every example once, in the order of the dataset.

    Example:
        >>> list(SequentialSampler("abc"))
        [0, 1, 2]
    """

    @names_told
    def __init__(self, data_source: Sized) -> None:
        check(SequentialSampler.__init__, locals())
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)

    def __repr__(self) -> str:
        return f"SequentialSampler({len(self)} positions)"


class _Seeded(Sampler):
    """A sampler with a seed of its own; the global `random` is neither read nor changed."""

    replacement: bool
    _usual: ClassVar[bool]
    """What `replacement` is where nobody says so."""

    def __init__(self, seed: int | None) -> None:
        if seed is not None and not is_whole(seed):
            raise ValueError(f"seed must be an integer or None, got seed={seed!r}")
        self.seed = random.SystemRandom().getrandbits(32) if seed is None else operator.index(seed)

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "seed": self.seed}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        super().load_state_dict(state)
        self.seed = int(state["seed"])

    def __repr__(self) -> str:
        drawn = "" if self.replacement == self._usual else f"replacement={self.replacement}, "
        return f"{type(self).__name__}({len(self)} positions, {drawn}seed={self.seed})"

    def _random(self) -> random.Random:
        # Seeded by both numbers as text, not by their sum: else seed 1 in epoch 0 would repeat seed 0 in epoch 1.
        return random.Random(f"{self.seed}:{self.epoch}")


class RandomSampler(_Seeded):
    """Examples in random order, another one each epoch.

    Args:
        data_source: the dataset, or anything with a length.
        replacement: whether an example may come again before all others have come.
        num_samples: positions in an epoch; by default as many as there are examples. If there are more, the examples
            repeat.
        seed: equal seeds give equal orders; None draws one.

    Raises:
        ValueError: an argument is outside of its range.

    Example:
        >>> sampler = RandomSampler("abcd", seed=0)
        >>> sorted(sampler), list(sampler) == list(sampler)
        ([0, 1, 2, 3], True)
    """

    _usual = False

    @names_told
    def __init__(
        self, data_source: Sized, replacement: bool = False, num_samples: int | None = None, seed: int | None = None
    ) -> None:
        super().__init__(seed)
        _check_flag(replacement)
        check(RandomSampler.__init__, locals() | {"num_samples": None})
        if num_samples is not None:
            _check_count(num_samples)
        if num_samples is not None and replacement and not len(data_source):
            raise ValueError(f"cannot draw num_samples={num_samples} from an empty dataset")
        self.data_source = data_source
        self.replacement = bool(replacement)
        self.num_samples = None if num_samples is None else operator.index(num_samples)

    def __iter__(self) -> Iterator[int]:
        source, n = self._random(), len(self.data_source)
        if self.replacement:
            return iter([int(source.random() * n) for _ in range(len(self))])
        order: list[int] = []
        while len(order) < len(self):
            order += _permutation(n, source)
            if not n:
                break
        return iter(order[: len(self)])

    def __len__(self) -> int:
        return len(self.data_source) if self.num_samples is None else self.num_samples


class WeightedRandomSampler(_Seeded):
    """Examples drawn with given weights.

    Args:
        weights: one weight per example, at least 0; they need not sum to one.
        num_samples: positions in an epoch.
        replacement: whether an example may come more than once in an epoch. Without replacement each draw is made with
            the weights of those that are left, by the keys of Efraimidis and Spirakis (2006).
        seed: equal seeds give equal orders; None draws one.

    Raises:
        ValueError: a weight is negative or not finite, none is positive, or there are too few to draw from.

    Example:
        >>> list(WeightedRandomSampler([0.0, 1.0], num_samples=3, seed=0))
        [1, 1, 1]
    """

    _usual = True

    @names_told
    def __init__(
        self, weights: Sequence[float], num_samples: int, replacement: bool = True, seed: int | None = None
    ) -> None:
        super().__init__(seed)
        _check_flag(replacement)
        _check_count(num_samples)
        check(WeightedRandomSampler.__init__, locals())
        self.weights = tuple(float(weight) for weight in weights)
        for index, weight in enumerate(self.weights):
            if not math.isfinite(weight) or weight < 0:
                raise ValueError(f"weights must be finite and at least 0, got weights[{index}]={weight}")
        positive = sum(weight > 0 for weight in self.weights)
        if not positive:
            raise ValueError("at least one of the weights must be above 0")
        if not replacement and num_samples > positive:
            raise ValueError(
                f"cannot draw num_samples={num_samples} without replacement: only {positive} weights are above 0"
            )
        self.num_samples = operator.index(num_samples)
        self.replacement = bool(replacement)

    def __iter__(self) -> Iterator[int]:
        source = self._random()
        choices = [index for index, weight in enumerate(self.weights) if weight > 0]
        if not self.replacement:
            # 1 - random() is in (0, 1], so that the logarithm exists.
            keys = {index: math.log(1.0 - source.random()) / self.weights[index] for index in choices}
            return iter(sorted(choices, key=lambda index: -keys[index])[: self.num_samples])
        sums = list(itertools.accumulate(self.weights[index] for index in choices))
        last = len(choices) - 1
        return iter(
            [choices[bisect.bisect_right(sums, source.random() * sums[-1], hi=last)] for _ in range(self.num_samples)]
        )

    def __len__(self) -> int:
        return self.num_samples


def _permutation(n: int, source: random.Random) -> list[int]:
    """The numbers below n in random order.

    Sorting by `random()` and not `shuffle`, because only the former is promised to be the same in every Python version.
    """
    keys = [source.random() for _ in range(n)]
    return sorted(range(n), key=keys.__getitem__)


def _check_count(num_samples: int) -> None:
    if not is_whole(num_samples) or num_samples <= 0:
        raise ValueError(f"num_samples must be a positive integer, got {num_samples=}")


def _check_flag(replacement: bool) -> None:
    if not is_flag(replacement):
        raise ValueError(f"replacement must be True or False, got {replacement=}")
