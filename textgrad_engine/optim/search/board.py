"""The board of a patch search: the best texts, what is known of each example, the edits made and those refused."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from textgrad_engine.optim.patch import Edit, Origin
from textgrad_engine.optim.search.objective import Texts
from textgrad_engine.optim.search.race import RaceRecord

__all__ = ["Accepted", "Board", "Refused"]


@dataclass
class Accepted:
    """An edit that is in the best texts.

    Attributes:
        parameter: which parameter it is in, by position.
        identity: what its lines' origins call it.
        support: the training examples that asked for it, by position.
        round: how many patches had been kept when it was last found to help; -1 before that.
    """

    parameter: int
    identity: str
    support: tuple[int, ...]
    round: int = -1


@dataclass(frozen=True)
class Refused:
    """An edit that was tried and not kept.

    Attributes:
        parameter: which parameter it was for, by position.
        edit: the edit.
        base: the text that it was made for.
        harmless: whether nothing got worse with it: it may be of use in company.
    """

    parameter: int
    edit: Edit
    base: str
    harmless: bool


@dataclass
class Board:
    """What a patch search knows; changed between proposals only, in their order.

    Attributes:
        texts: the best texts.
        origins: for each parameter the origins of its lines.
        val: for the validation examples that races are run on, by position, the score that the best texts have or are
            expected to have.
        train: the last score of each training example that was run, by position.
        tries: how often each training example was drawn since it last did better.
        busy: training examples whose proposals are under way.
        accepted: the edits in the best texts, in order.
        refused: the edits that were not kept, in order.
        kept: how many patches were kept.
        quiet: how many proposals in a row brought nothing.
    """

    texts: Texts
    origins: list[tuple[Origin | None, ...]]
    val: dict[int, float] = field(default_factory=dict)
    train: dict[int, float] = field(default_factory=dict)
    tries: dict[int, int] = field(default_factory=dict)
    busy: set[int] = field(default_factory=set)
    accepted: list[Accepted] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    kept: int = 0
    quiet: int = 0

    @property
    def top(self) -> float:
        """The best score seen on any example: what does as well is right."""
        return max([*self.val.values(), *self.train.values(), 1.0 if self._unit else float("-inf")])

    @property
    def scale(self) -> float:
        """The distance between the best and the worst score seen."""
        if self._unit:
            return 1.0
        seen = [*self.val.values(), *self.train.values()]
        return (max(seen) - min(seen)) or 1.0

    @property
    def _unit(self) -> bool:
        return all(0 <= score <= 1 for score in (*self.val.values(), *self.train.values()))

    @property
    def failing(self) -> list[int]:
        """The validation examples of races that the best texts fail."""
        return [n for n, score in self.val.items() if score < self.top]

    @property
    def right(self) -> list[int]:
        """The validation examples of races that the best texts have right."""
        return [n for n, score in self.val.items() if score >= self.top]

    @property
    def mean(self) -> float:
        """The expected mean validation score of the best texts."""
        return sum(self.val.values()) / len(self.val)

    def draw(self, count: int, ids: int, rng: random.Random, most_tries: int) -> list[int]:
        """Training examples for a minibatch: failures and examples never run, those drawn least often first.

        Args:
            count: how many at most.
            ids: how many training examples there are.
            rng: decides among equals.
            most_tries: an example that was drawn so often without getting better is left alone.
        """
        top = self.top
        open_ = [
            n
            for n in range(ids)
            if n not in self.busy and self.tries.get(n, 0) < most_tries and self.train.get(n, top - 1) < top
        ]
        rng.shuffle(open_)
        return sorted(sorted(open_, key=lambda n: self.tries.get(n, 0))[:count])

    def strata(self, first: Sequence[int], rng: random.Random) -> list[list[int]]:
        """The validation examples in the order of a race: `first`, then other failures, then what is right.

        Args:
            first: where a difference is looked for first, e.g. failures like those that a patch answers.
            rng: orders the others.
        """
        failing, right = ([n for n in part if n not in set(first)] for part in (self.failing, self.right))
        rng.shuffle(failing)
        rng.shuffle(right)
        return [list(first), failing, right] if first else [failing, right] if failing else [right]

    def copy_of_val(self) -> Board:
        """A board that knows the same of the validation examples, for work that goes on beside this one."""
        return Board(self.texts, [], dict(self.val), dict(self.train))

    def learn(self, positions: Sequence[int], scores: Sequence[float | None]) -> None:
        """Take note of training scores with the best texts."""
        for position, score in zip(positions, scores):
            self.tries[position] = self.tries.get(position, 0) + 1
            if score is not None:
                if score > self.train.get(position, score):
                    self.tries[position] = 0
                self.train[position] = score

    def settle(self, record: RaceRecord, positions: dict[str, int], *, exact: bool) -> None:
        """Take note of what the texts that won a race score.

        Args:
            record: the race.
            positions: the position of each example by its id.
            exact: whether those very texts are the best now; else only what changed is taken over.
        """
        for name, before, after in zip(record.examples, record.before, record.after):
            if after is not None and (exact or before is None or before != after):
                self.val[positions[name]] = after
