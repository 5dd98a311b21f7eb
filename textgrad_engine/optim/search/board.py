"""The board of a patch search: the best texts, what is known of each example, the edits made and those refused."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from textgrad_engine.optim.cells import Evidence, Origin
from textgrad_engine.optim.patch import Edit
from textgrad_engine.optim.search.marks import Marks, marks_of, nothing_to_show
from textgrad_engine.optim.search.objective import Objective, Texts
from textgrad_engine.optim.search.racing import RaceRecord
from textgrad_engine.optim.search.written import Written
from textgrad_engine.optim.telling import Tried

Origins = tuple[tuple[Origin | None, ...], ...]
"""For each parameter the origins of its lines."""


@dataclass(frozen=True)
class Accepted:
    """An edit that is in the best texts.

    Attributes:
        parameter: which parameter it is in, by position.
        edit: its id, as `Origin.edit` has it.
        support: the training examples that asked for it, by position.
    """

    parameter: int
    edit: str
    support: tuple[int, ...]


@dataclass(frozen=True)
class Refused:
    """An edit that was tried and not kept.

    Attributes:
        parameter: which parameter it was for, by position.
        edit: the edit.
        evidence: the feedback that it answers.
    """

    parameter: int
    edit: Edit
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True)
class Rival:
    """A patch that won its race while others changed the same lines: it is raced against what they made of them.

    Attributes:
        number: the proposal's number.
        base: the texts that it was made for.
        origins: where their lines came from.
        written: what it changes.
        gained: the examples that it did better on.
    """

    number: int
    base: Texts
    origins: Origins
    written: tuple[Written, ...]
    gained: tuple[str, ...]


@dataclass(frozen=True)
class Begun:
    """A proposal under way, with what it has taken off the board: it is due again if the proposal is never settled.

    Attributes:
        number: the proposal's number.
        examples: the training examples that it draws.
        turn: the edit that it tries without, as `Board.tested` names it, with what stood there; None for nothing.
        doubtful: the first edits of `Board.doubtful`.
        rival: the first one of `Board.rivals`.
        united: what it has added to `Board.united`.
        together: what `Board.together` was.
    """

    number: int
    examples: tuple[int, ...] = ()
    turn: tuple[str, int | None] | None = None
    doubtful: tuple[Accepted, ...] = ()
    rival: Rival | None = None
    united: tuple[str, ...] = ()
    together: int = 0


MOST_DRAWN = 8
"""A minibatch has at most so many times as many examples as failures are wanted in it."""

MOST_LOST = 8
"""An example whose proposals were lost so often is given up, so that a search ends; a Trainer ends the run before."""


@dataclass
class Board:
    """What a patch search knows; changed between proposals only, in their order.

    Attributes:
        texts: the best texts.
        origins: where their lines come from.
        val: for the validation examples that races are run on, by position, the score that the best texts have or are
            expected to have.
        train: the last score of each training example that was run, by position.
        tries: how often each training example was drawn since it last did better, and a proposal came of it.
        lost: how often it was drawn, likewise, and the proposal came to nothing because answers were not to be had.
        under_way: the proposals that were begun and not settled, in order.
        accepted: the edits in the best texts, in order.
        tested: for edits that were tried without, how many patches had been kept by then.
        refused: the edits that were not kept, in order.
        history: what was tried and what became of it, for the proposer.
        noise: the variance of one example's score between runs of the same texts.
        limits: the worst and the best score that there can be, where the loss says so.
        begun: how many proposals were begun: by those of a board before it, too, whose edits keep their ids.
        before: how many of these were.
        kept: how many patches were kept.
        quiet: how many proposals in a row brought nothing.
        together: how many patches were put together with others since the texts were last tidied.
        rivals: patches that are to be raced against what is in the texts.
        doubtful: edits that are to be tried without again, each time some of them together.
        united: the refused edits that were tried together, each time by parameter and text.
        vain: how often that was settled since a patch was kept.
        examples: the ids of the training and of the validation examples, which positions speak of.
        digest: tells these from others with the same ids (`Objective.digest`).
    """

    texts: Texts
    origins: Origins
    val: dict[int, float] = field(default_factory=dict)
    train: dict[int, float] = field(default_factory=dict)
    tries: dict[int, int] = field(default_factory=dict)
    lost: dict[int, int] = field(default_factory=dict)
    under_way: list[Begun] = field(default_factory=list)
    accepted: list[Accepted] = field(default_factory=list)
    tested: dict[str, int] = field(default_factory=dict)
    refused: list[Refused] = field(default_factory=list)
    history: list[Tried] = field(default_factory=list)
    noise: float = 0.0
    limits: tuple[float, float] | None = None
    begun: int = 0
    before: int = 0
    kept: int = 0
    quiet: int = 0
    together: int = 0
    rivals: list[Rival] = field(default_factory=list)
    doubtful: list[tuple[Accepted, ...]] = field(default_factory=list)
    united: list[tuple[str, ...]] = field(default_factory=list)
    vain: int = 0
    examples: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    digest: str = ""

    @property
    def top(self) -> float:
        """What does as well is right; infinite where nothing is known to be (`optim.search.marks`)."""
        return self._marks.top

    @property
    def scale(self) -> float:
        """The distance between the best and the worst score."""
        return self._marks.scale

    @property
    def hopeful(self) -> list[int] | None:
        """The validation examples of races that texts can do better on, for `Race`; None for all."""
        return self.failing if self._marks.known else None

    @property
    def failing(self) -> list[int]:
        """The validation examples of races that the best texts fail."""
        top = self.top
        return [n for n, score in self.val.items() if score < top]

    @property
    def right(self) -> list[int]:
        """The validation examples of races that the best texts have right."""
        top = self.top
        return [n for n, score in self.val.items() if score >= top]

    @property
    def busy(self) -> set[int]:
        """The training examples whose proposals are under way."""
        return {n for begun in self.under_way for n in begun.examples}

    @property
    def tried_together(self) -> int:
        """How often refused edits were tried together since a patch was kept, also where that is under way."""
        return self.vain + sum(bool(begun.united) for begun in self.under_way)

    @property
    def mean(self) -> float:
        """The expected mean validation score of the best texts."""
        return sum(self.val.values()) / len(self.val)

    @property
    def _marks(self) -> Marks:
        return marks_of(self.limits, [*self.val.values(), *self.train.values()])

    def nothing_to_show(self, objective: Objective) -> str:
        """Why no texts can be shown to be better, in words; see `optim.search.marks`."""
        return nothing_to_show(objective, self.val.values(), self.train.values())

    def can_gain(self, position: int) -> bool:
        """Whether texts can do better on a validation example than the best texts do."""
        marks = self._marks
        return not marks.known or self.val.get(position, marks.top) < marks.top

    def draw(self, count: int, size: int, rng: random.Random, most_tries: int) -> list[int]:
        """Training examples for a minibatch: failures and examples never run, those drawn least often first.

        Args:
            count: how many failures are wanted: of examples never run, as many fail as of the validation examples. At
                most `MOST_DRAWN` times as many are drawn.
            size: how many training examples there are.
            rng: decides among equals.
            most_tries: an example that was drawn so often without getting better is left alone.
        """
        busy = self.busy
        left = [n for n in self._left(size, most_tries) if n not in busy]
        rng.shuffle(left)
        rate = len(self.failing) / len(self.val) if self.val else 1.0
        chosen: list[int] = []
        expected = 0.0
        for n in sorted(left, key=self._drawn)[: MOST_DRAWN * count]:
            if expected >= count:
                break
            chosen.append(n)
            expected += 1.0 if n in self.train else rate
        return sorted(chosen)

    def open(self, size: int, most_tries: int) -> int:
        """How many training examples may fail and were not given up.

        Args:
            size: how many training examples there are.
            most_tries: an example that was drawn so often without getting better is given up.
        """
        return len(self._left(size, most_tries))

    def _left(self, size: int, most_tries: int) -> list[int]:
        top = self.top
        return [
            n
            for n in range(size)
            if self.tries.get(n, 0) < most_tries
            and self.lost.get(n, 0) < MOST_LOST
            and self.train.get(n, -math.inf) < top
        ]

    def _drawn(self, position: int) -> int:
        return self.tries.get(position, 0) + self.lost.get(position, 0)

    def strata(self, first: Iterable[int], rng: random.Random, then: Iterable[int] = ()) -> list[list[int]]:
        """The validation examples in the order of a race: `first`, `then`, other failures, then what is right.

        Args:
            first: where a difference is looked for first, e.g. failures like those that a patch answers.
            rng: orders the others.
            then: where it is looked for next, e.g. what is right and like them.
        """
        chosen = list(dict.fromkeys(first))
        near = list(dict.fromkeys([*chosen, *then]))[len(chosen) :]
        taken = {*chosen, *near}
        failing, right = ([n for n in part if n not in taken] for part in (self.failing, self.right))
        rng.shuffle(failing)
        rng.shuffle(right)
        return [part for part in (chosen, near, failing, right) if part]

    def others(self, first: Iterable[int], rng: random.Random, then: Iterable[int] = ()) -> list[int]:
        """The validation examples in use that are neither `first` nor `then`, failures and right ones by their shares.

        Args:
            first: as for `strata`.
            rng: as for `strata`; with an equal one a race takes these examples next.
            then: as for `strata`.
        """
        taken = {*first, *then}
        parts = [part for part in self.strata(taken, rng) if taken.isdisjoint(part)]
        places = sorted((place / len(part), part[place]) for part in parts for place in range(len(part)))
        return [position for _, position in places]

    def learn(self, positions: Sequence[int], scores: Sequence[float | None], *, lost: bool = False) -> None:
        """Take note of training scores with the best texts.

        Args:
            positions: the examples of a proposal.
            scores: their scores; None where no answer was to be had.
            lost: whether the proposal came to nothing because answers were not to be had: then nothing was tried.
        """
        count = self.lost if lost else self.tries
        for position, score in zip(positions, scores):
            count[position] = count.get(position, 0) + 1
            if score is not None:
                if score > self.train.get(position, score):
                    self.tries[position] = self.lost[position] = 0
                self.train[position] = score

    def give_another_try(self) -> None:
        """Take no example for given up any longer: the texts have changed."""
        self.tries.clear()
        self.lost.clear()

    def settle(self, record: RaceRecord, positions: Mapping[str, int], *, exact: bool) -> None:
        """Take note of what the texts that won a race score.

        Args:
            record: the race.
            positions: the position of each example by its id.
            exact: whether those very texts are the best now; else only what changed is taken over, and what is new.
        """
        for name, before, after in zip(record.examples, record.before, record.after):
            position = positions[name]
            if after is not None and (exact or before is None or before != after or position not in self.val):
                self.val[position] = after

    def observe(self, record: RaceRecord, positions: Mapping[str, int]) -> None:
        """Take note of what the best texts score, where a race has run them.

        Args:
            record: a race against the best texts of now.
            positions: the position of each example by its id.
        """
        for name, before in zip(record.examples, record.before):
            if before is not None:
                self.val[positions[name]] = before

    def begin(self, **taken: Any) -> None:
        """Begin the next proposal.

        Args:
            **taken: what it has taken off the board, as `Begun` has it.
        """
        self.begun += 1
        self.under_way.append(Begun(self.begun, **taken))

    def end(self, number: int) -> None:
        """The proposal of this number is settled."""
        self.under_way = [begun for begun in self.under_way if begun.number != number]

    def put_back(self, number: int | None = None) -> None:
        """Drop what is under way; what it was to try is due again.

        Args:
            number: of the one proposal that is dropped; None for all.
        """
        dropped = [begun for begun in self.under_way if number in (None, begun.number)]
        self.under_way = [begun for begun in self.under_way if begun not in dropped]
        for begun in reversed(dropped):  # so that what was first in a list is first again
            if begun.turn is not None:
                self._take_turn_back(begun, *begun.turn)
            if begun.doubtful:
                self.doubtful.insert(0, begun.doubtful)
            if begun.rival is not None:
                self.rivals.insert(0, begun.rival)
            if begun.united:
                self.united.remove(begun.united)
            self.together += begun.together

    def _take_turn_back(self, begun: Begun, name: str, before: int | None) -> None:
        for place, other in enumerate(self.under_way):
            if other.number > begun.number and other.turn is not None and other.turn[0] == name:
                self.under_way[place] = replace(other, turn=begun.turn)  # the edit is tried without all the same
                return
        if before is None:
            del self.tested[name]
        else:
            self.tested[name] = before

    def snapshot(self) -> Board:
        """A copy for work that goes on beside this one."""
        return replace(
            self,
            val=dict(self.val),
            train=dict(self.train),
            tries=dict(self.tries),
            lost=dict(self.lost),
            under_way=list(self.under_way),
            accepted=list(self.accepted),
            tested=dict(self.tested),
            refused=list(self.refused),
            history=list(self.history),
            rivals=list(self.rivals),
            doubtful=list(self.doubtful),
            united=list(self.united),
        )

    def state_dict(self) -> dict[str, Any]:
        """All of it as plain data; what is under way is due again in it."""
        idle = self.snapshot()
        idle.put_back()
        return asdict(idle)
