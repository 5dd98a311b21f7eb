"""Shorter texts against those that were given: single examples, and races that know slips from what a text does."""

from __future__ import annotations

import functools
import math
import operator
import random
import statistics
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeAlias

from textgrad_engine import dispatch
from textgrad_engine.errors import UNANSWERED, BudgetExceeded
from textgrad_engine.optim.growing import MOST_SLIPS, another_wording
from textgrad_engine.optim.search.board import Board
from textgrad_engine.optim.search.objective import Texts, tokens_of
from textgrad_engine.optim.search.race import BATCH, Race
from textgrad_engine.optim.search.racing import RaceRecord, answered, run_race
from textgrad_engine.optim.search.threshold import GUESSED
from textgrad_engine.optim.shrink import Point, pareto
from textgrad_engine.train.evaluation import Evaluation
from textgrad_engine.train.evaluator import MOST_UNANSWERED
from textgrad_engine.train.front import FrontPoint
from textgrad_engine.train.objective import Objective

Put: TypeAlias = Callable[[str], Texts]
"""The texts with one of them in its place."""

CALIBRATED = 96
"""So many examples are run with the given texts in another wording."""

CHANGED = 0.05
"""Before anything is seen, the share of examples that a shorter text changes."""

DECIDED = 9.0
"""The odds at which an example is not looked at any more."""

MOST_LOOKS = 4
"""An example that has changed is looked at so often at most."""

PROVEN = 0.975
"""The mean is worse when this is so probable."""

MOST_RUNS = 3
"""So often a text that looks worse on the whole is run on all examples."""

MOST_RUNS_OF_EACH, MOST_RUNS_OF_FEW = 40, 4000
"""So many runs of each example are made in search of a text, or of few examples together; what was found is taken."""


class ShorterTexts:
    """Tells whether shorter texts are worse than the given ones; what was run once is known.

    Answers change by themselves, with temperature and with each wording. So the given texts are run once more in
    another wording: what changes there is the rate of slips. An example that comes out otherwise with a shorter text
    is looked at again, until its odds tell a slip from a change; what is no slip is raced. What no single example tells
    of, such as a line that makes all of them a little better, the mean of all examples does.

    Args:
        objective: runs the examples.
        start: the given texts.
        before: them on the validation set.
        doubt: a text is worse when this is so probable, slips aside.
        allowance: at most so many examples in a race; None for all.
        seed: of the order of the examples.
    """

    def __init__(
        self,
        objective: Objective,
        start: Texts,
        before: Evaluation,
        doubt: float,
        allowance: int | None,
        seed: int,
    ) -> None:
        self.objective, self.start, self.before = objective, start, before
        self.doubt, self.allowance = doubt, allowance
        self.rng = functools.partial(random.Random, operator.index(seed))
        known = {n: score for n, score in enumerate(before.scores) if score is not None}
        self.board = Board(start, (), known, limits=objective.scale)
        self.records: dict[Texts, RaceRecord] = {}
        self.refused: set[Texts] = set()
        self.spent = False
        self._bought: set[tuple[Texts, int, int]] = set()
        self._race()  # so that a number out of range is said before anything is run

    async def is_not_worse(self, put: Put, text: str, first: Sequence[int]) -> bool:
        """Whether the given texts, with one of them shortened to this, may take their place."""
        return await dispatch.aside(functools.partial(self._decided, put, text, first))

    async def holds(self, put: Put, text: str, examples: Sequence[int], look: int) -> list[bool]:
        """Whether examples come out as well as with the given texts, up to noise."""
        return await dispatch.aside(functools.partial(self._held, put, text, examples, look))

    def fresh(self, put: Put, text: str, examples: Sequence[int], number: int) -> list[list[float | None]]:
        """The scores of examples with the given texts and with a shorter one, in answers that chose nothing.

        Args:
            put: puts the text in its place.
            text: the text.
            examples: the examples.
            number: which of these answers, from 1; 0 for those that are known, where answers do not change.

        Raises:
            BudgetExceeded: they cannot be paid for.
        """
        look = MOST_LOOKS + number if number else 0
        both = (self._given, self.start[0]), (put, text)
        return [self._scores(where(another_wording(what, look)), examples, look) for where, what in both]

    def losers(self, put: Put, text: str, first: Sequence[int], enough: Callable[[Collection[int]], bool]) -> list[int]:
        """The examples that come out worse with a shorter text, slips aside.

        Args:
            put: puts the text in its place.
            text: the text.
            first: the examples that are run first; they asked for what it lacks, so an answer that is lost tells that.
            enough: whether so many of them will do.

        Raises:
            BudgetExceeded: they cannot be paid for.
        """
        found: list[int] = []
        waiting = [*dict.fromkeys([*first, *self.examples])]
        while waiting and not enough(found):
            some, waiting = waiting[:BATCH], waiting[BATCH:]
            before, after = self._scores(self.start, some, 0), self._look(put, text, some, 0)
            for n, old, new in zip(some, before, self._sure(put, text, some, before, after)):
                if old is not None and (n in first if new is None else new < old - self._tolerance):
                    found.append(n)
        return found

    def begin(self) -> None:
        """Another text is shrunk, which may be searched for as long as the others."""
        self._bought.clear()

    @property
    def bought(self) -> int:
        """How many runs were made in search of the text."""
        return len(self._bought)

    @property
    def is_over(self) -> bool:
        """Whether those are as many as a text may take."""
        return self.bought >= most_searched(len(self.board.val))

    @functools.cached_property
    def examples(self) -> list[int]:
        """The examples that can get worse, in the order of running."""
        known = self.board.val
        lowest = self.objective.scale[0] if self.objective.scale else min(known.values())
        right = set(self.board.right)
        head, tail = ([n for n in known if (n in right) is which] for which in (True, False))
        self.rng().shuffle(head)
        return [*head, *(n for n in tail if known[n] > lowest)][: self.allowance]

    def front(self, known: dict[Texts, float]) -> tuple[FrontPoint, ...]:
        """The front of all that was raced.

        Args:
            known: mean scores that are known better than from a race.
        """
        mean = self.before.mean
        raced = {texts: mean + race.difference for texts, race in self.records.items() if texts not in self.refused}
        scores = {self.start: mean} | raced | known
        every = sorted(scores)
        points = [Point(str(n), tokens_of(texts), scores[texts]) for n, texts in enumerate(every)]
        return tuple(
            FrontPoint(
                dict(zip(self.objective.names, every[int(point.text)])), point.tokens, scores[every[int(point.text)]]
            )
            for point in pareto(points)
        )

    def evaluation(self, texts: Texts) -> Evaluation:
        """The texts on the validation set, as far as that can be paid for."""
        self.objective.adopt(texts)
        try:
            return self.objective.evaluation(texts)
        except BudgetExceeded:
            known = self.objective.known(texts)
            if known is None:
                raise
            self.spent = True
            return known

    @functools.cached_property
    def _again(self) -> dict[int, float]:
        """The scores of examples with the given texts in another wording: what differs there, differs by itself."""
        some = self.rng().sample(sorted(self.board.val), min(CALIBRATED, len(self.board.val)))
        scores = self._look(self._given, self.start[0], some, 1)
        return {n: score for n, score in zip(some, scores) if score is not None}

    @functools.cached_property
    def noise(self) -> float:
        """The variance of one example's score between two wordings of the same texts."""
        return sum((self.board.val[n] - score) ** 2 for n, score in self._again.items()) / 2 / max(1, len(self._again))

    @functools.cached_property
    def _tolerance(self) -> float:
        """A change of an example's score that is not larger says nothing by itself."""
        return min(2 * math.sqrt(self.noise), 0.45 * self.board.scale)

    @functools.cached_property
    def slip(self) -> float:
        """How often an example is wrong by itself."""
        right = set(self.board.right)
        changes = [score < self.board.val[n] - self._tolerance for n, score in self._again.items() if n in right]
        return min(MOST_SLIPS, (sum(changes) + 0.25) / (len(changes) + 1))

    def _given(self, text: str) -> Texts:
        """The given texts with the first of them in other words."""
        return (text, *self.start[1:])

    def _look(self, put: Put, text: str, examples: Sequence[int], look: int) -> list[float | None]:
        """The scores of some examples in search of a text, each look an answer of its own."""
        texts = put(another_wording(text, look))
        self._bought.update((texts, n, look) for n in examples)
        return self._scores(texts, examples, look)

    def _scores(self, texts: Texts, examples: Sequence[int], look: int) -> list[float | None]:
        """The scores of some examples; all None where too few were to be had."""
        if not examples:
            return []
        try:
            return self.objective.matrix([texts], examples, repeat=look)[0]
        except UNANSWERED:
            return [None] * len(examples)

    def _both(self, texts: Texts, examples: Sequence[int]) -> list[list[float | None]]:
        self._bought.update((texts, n, 0) for n in examples)
        return self.objective.matrix([self.start, texts], examples)

    def _held(self, put: Put, text: str, examples: Sequence[int], look: int) -> list[bool]:
        scores = self._look(put, text, examples, look)
        least = (self.board.val[n] - self._tolerance for n in examples)
        return [score is not None and score >= lowest - 1e-9 for score, lowest in zip(scores, least)]

    def _race(self, first: Sequence[int] = ()) -> Race:
        # A loss shows first where the given texts are right. A race goes on to the end where nothing is lost: a line
        # may be of use for one example in a hundred.
        return Race(
            self.board.strata(first or self.board.right, self.rng()),
            first=2 * len(first) or BATCH,
            allowance=self.allowance,
            until="worse",
            reject=self.doubt,
            fewest=1,
            glance=None,
            scale=self.board.scale,
            clusters=self.objective.clusters,
        )

    def _decided(self, put: Put, text: str, first: Sequence[int]) -> bool:
        if self.spent:
            return False
        texts = put(text)
        scores = answered(functools.partial(self._both, texts))
        raw: dict[int, tuple[float | None, float | None]] = {}

        def sure(some: Sequence[int]) -> list[list[float | None]]:
            before, after = scores(some)
            raw.update(zip(some, zip(before, after)))
            return [[*before], self._sure(put, text, some, before, after)]

        try:
            found = run_race(self._race(first), self.objective.val, sure)
            refusal = self.objective.refusal(self.start, texts, again=found.outcome != "worse")  # else for the front
            self.records[texts] = found
            if refusal:
                self.refused.add(texts)
            told = {n: (old, new) for n, (old, new) in raw.items() if old is not None and new is not None}
            shown = len(told) >= (1 - MOST_UNANSWERED) * len(raw)
            return shown and found.outcome != "worse" and not refusal and not self._worse_by_all(put, text, told)
        except BudgetExceeded:
            self.spent = True
            return False
        except UNANSWERED:  # with these texts fewer answers are to be had, so they are not shown to be as good
            return False

    def _sure(
        self,
        put: Put,
        text: str,
        positions: Sequence[int],
        before: Sequence[float | None],
        after: Sequence[float | None],
    ) -> list[float | None]:
        """The scores with a shorter text, but those of before where a change was chance.

        Each example that changed is looked at again on the side where it did worse, until it is clear whether that was
        a slip.
        """
        pairs = {n: (old, new) for n, old, new in zip(positions, before, after) if old is not None and new is not None}
        changed = {n: pair for n, pair in pairs.items() if abs(pair[1] - pair[0]) > self._tolerance}
        odds = dict.fromkeys(changed, CHANGED * (1 - GUESSED) / self.slip)
        for look in range(1, MOST_LOOKS + 1):
            doubtful = [n for n, each in odds.items() if look == 1 or 1 / DECIDED < each < DECIDED]
            for lost, where, what in ((True, put, text), (False, self._given, self.start[0])):
                some = [n for n in doubtful if (changed[n][1] < changed[n][0]) is lost]
                for n, score in zip(some, self._look(where, what, some, look)):
                    wrong = score is None or score < sum(changed[n]) / 2
                    odds[n] *= (1 - GUESSED) / self.slip if wrong else GUESSED / (1 - self.slip)
        slips = {n for n, each in odds.items() if each < 1}
        return [old if n in slips else new for n, old, new in zip(positions, before, after)]

    def _worse_by_all(self, put: Put, text: str, raw: Mapping[int, tuple[float, float]]) -> bool:
        """Whether the mean is lower by more than noise, though no single example tells of it.

        What looks worse and is not decided is run again: of texts that are worse, one would pass by and by.
        """
        given = {n: [old] for n, (old, _) in raw.items()}
        for n, score in self._again.items():
            if n in given:  # where only examples are run that were right, this look alone is no luck
                given[n] = [*given[n], score] if len(raw) == len(self.board.val) else [score]
        now = {n: [new] for n, (_, new) in raw.items()}
        for look in range(1, MOST_RUNS + 1):
            race = Race(
                [list(raw)],
                first=len(raw),
                until="worse",
                scale=self.board.scale,
                noise=self.noise,
                clusters=self.objective.clusters,
            )
            for n in race.next():
                race.add(n, statistics.mean(given[n]), statistics.mean(now[n]))
            if look == MOST_RUNS or not 1 - PROVEN < race.probability < 0.5:
                break
            for n, again in zip(raw, self._look(put, text, list(raw), look)):
                now[n] += [] if again is None else [again]
        return race.probability <= 1 - PROVEN


def most_searched(examples: int) -> int:
    """So many runs are made in search of a text, or somewhat more, as it is looked at between races only."""
    return max(MOST_RUNS_OF_EACH * examples, MOST_RUNS_OF_FEW)
