"""Shorter texts shown to be as good as those that were given, but for a margin, by answers that chose nothing.

NOTE [How often it is wrong]
    A text that is worse by the margin, or more, is taken with 5% at most, for all texts of a run together. Two texts
    are looked at for each prompt: the one that was put together, and the shortest, which is looked at only when the
    former was shown to be as good. So of the two, only the first that is worse can be a mistake, and each may have all
    of the prompt's error (a fixed sequence). The prompts share the 5%, and what a prompt leaves of it, as nothing of it
    was refused, goes to the next one (the fallback procedure; Wiens and Dmitrienko, Journal of Biopharmaceutical
    Statistics 15 (2005)).

    The examples that check a text are those that chose it. They lose nothing, as each line that one of them needs was
    put in; others lose what none of these needs. How much that is can be told from the lines that a single example has
    kept: were it not in the set, its line would have gone, and it would have lost. So it counts as lost (leave-one-out;
    for lines that are needed or not it is the missing mass of Good, Biometrika 40 (1953)).
    Simulated, with 30 examples and 20 lines of which each is needed by 1 in 27: in 91 of 100 runs the short prompt lost
    more than the margin on others where this did not count, and in 2 where it does.

    How many fresh answers it takes is worked out beforehand from how much answers change by themselves; so nobody looks
    before the end, but to give up, and the error is that of one look.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from textgrad_engine import dispatch
from textgrad_engine.errors import BudgetExceeded
from textgrad_engine.optim.shrink import Without
from textgrad_engine.train.evaluation import Evaluation
from textgrad_engine.train.evaluator import MOST_UNANSWERED
from textgrad_engine.train.margin import lowest_mean, needed_for_margin, shown_margin
from textgrad_engine.train.objective import Objective
from textgrad_engine.train.shorter import Put, ShorterTexts

ERROR = 0.05
"""So often a run takes texts that are worse by the margin."""

MARGIN = 0.05
"""A mean that is lower by less, as a share of the scores' scale, is as good, where there are examples enough."""

FEWEST_FRESH, MOST_FRESH = 3, 10
"""So many fresh answers of each example are had with each text, where answers change; how much, is known roughly."""

POWER = 0.9
"""So often a text that is just as good is to be shown to be so."""

MOST_ASKED = 15
"""So many runs of each example are made to know which lines a single one keeps, or somewhat more."""

ROOM = 3.0
"""Beyond what rare losses need that nobody saw, so many examples' worth is left for what changes by itself."""

MOST_MARGIN = 0.25
"""A margin that few examples ask for leaves no more room than this, as any text would be as good by a larger one."""


def usual_margin(objective: Objective, before: Evaluation, error: float) -> float:
    """`MARGIN`, or more where so few examples, or clusters, could not show it; of the fewest none may lose."""
    groups = _groups(_names(objective, [n for n, score in enumerate(before.scores) if score is not None]))
    none_lost = shown_margin(groups, sd=0.0, error=error, power=POWER)
    return min(1.0, max(MARGIN, min((ROOM - math.log(error)) / groups, max(MOST_MARGIN, none_lost))))


class AsGood:
    """Tells whether a text is as good as the one that was given.

    Args:
        races: runs the examples.
        put: puts the text in its place.
        margin: the mean may be lower by less than this, as a share of the scale.
        error: so often a text that is worse by the margin is taken for as good.
        kept_by: the examples that kept lines of the texts of other prompts, which stand beside this one.

    Attributes:
        kept_by: the examples without which a line would have gone, and what they lose then, as a share of the scale.
        at_worst: by how much the mean may be lower with the last text that was shown to be as good; None before that.
        refused: the same of the last one that was not; infinite where too few answers were to be had, or the
            budget was spent before that was known.
    """

    def __init__(
        self, races: ShorterTexts, put: Put, margin: float, error: float, kept_by: Mapping[int, float] | None = None
    ) -> None:
        self._races, self._put, self._margin, self._error = races, put, margin, error
        self._every = sorted(races.board.val)
        self._name_of = dict(zip(self._every, _names(races.objective, self._every)))
        self.kept_by, self._looked = dict(kept_by or {}), False
        self._groups = _groups(self._name_of.values())
        # As `shown_margin` has it, whose examples stand for themselves.
        self._spread = math.sqrt(2 * races.noise * self._groups / len(self._every)) / races.board.scale
        self.at_worst: float | None = None
        self.refused: float | None = None

    @functools.cached_property
    def fresh(self) -> int | None:
        """How many fresh answers show 9 times in 10 that a text just as good is so; None where `MOST_FRESH` do not.

        0 where no answer changes by itself, so that what is known will do.
        """
        if not self._spread:
            return 0 if self._least(1) <= self._margin else None
        some = range(FEWEST_FRESH, MOST_FRESH + 1)
        return next((fresh for fresh in some if self._least(fresh) <= self._margin), None)

    @property
    def needed(self) -> tuple[int, float]:
        """How many examples would do, and which margin, where these cannot show the one that is wanted.

        The margin is above 1, the whole scale, where none would do.
        """
        sd = self._spread / math.sqrt(MOST_FRESH)
        groups = needed_for_margin(self._margin, sd=sd, error=self._error, power=POWER)
        return math.ceil(groups * len(self._every) / self._groups), self._least(MOST_FRESH)

    async def is_shown(self, text: str, without: Sequence[Without] = ()) -> bool:
        """Whether a text is shown to be as good; False also where the budget does not allow to know.

        Args:
            text: the text.
            without: it without each of its units; of the text that is asked about first.
        """
        return await dispatch.aside(functools.partial(self._shown, text, without))

    def _least(self, fresh: int) -> float:
        return shown_margin(self._groups, sd=self._spread / math.sqrt(fresh), error=self._error, power=POWER)

    def _is_shared(self, examples: Collection[int]) -> bool:
        """Whether some examples are not all of one cluster."""
        return len({self._name_of[n] for n in examples}) > 1

    def _keepers(self, without: Sequence[Without]) -> dict[int, float]:
        """The examples without which a line would have gone, and what they lose then, as a share of the scale."""
        found: dict[int, float] = {}
        last = self._races.bought + MOST_ASKED * len(self._every)
        for text, asked in without:
            if self._is_shared(asked):
                continue
            if self._races.bought >= last:  # what is not known is taken for the worst
                found.update(dict.fromkeys(asked, -1.0))
                continue
            losers = self._races.losers(self._put, text, asked, self._is_shared)
            if losers and not self._is_shared(losers):
                told = self._differences(text, losers)  # what chose them would flatter the loss
                for n in losers:
                    found[n] = min(told.get(n, -1.0), found.get(n, 0.0))
        return found

    def _shown(self, text: str, without: Sequence[Without]) -> bool:
        self.refused = None
        try:
            if not self._looked:
                for n, change in self._keepers(without).items():
                    self.kept_by[n] = min(change, self.kept_by.get(n, 0.0))
                self._looked = True
                if (bound := self._bound(dict.fromkeys(self._every, 0.0))) >= self._margin:
                    self.refused = bound  # whatever fresh answers say
                    return False
            told = self._differences(text, self._every)
        except BudgetExceeded:
            self._races.spent, self.refused = True, math.inf
            return False
        bound = self._bound(told) if len(told) >= (1 - MOST_UNANSWERED) * len(self._every) else math.inf
        if bound >= self._margin:
            self.refused = bound
            return False
        self.at_worst = max(0.0, bound)
        return True

    def _bound(self, told: Mapping[int, float]) -> float:
        """By how much the mean may be lower, by the differences of examples."""
        changes = [min(change, self.kept_by.get(n, math.inf)) for n, change in told.items()]
        return -lowest_mean(changes, min(-1.0, *changes), [self._name_of[n] for n in told], self._error)

    def _differences(self, text: str, examples: Sequence[int]) -> dict[int, float]:
        """The mean difference of each example that had all its answers, as a share of the scale."""
        fresh, scale = self.fresh or 0, self._races.board.scale
        found = {n: list[float]() for n in examples}
        for number in range(1, fresh + 1) if fresh else (0,):
            for n, old, new in zip(examples, *self._races.fresh(self._put, text, examples, number)):
                if old is None or new is None:
                    found.pop(n, None)
                elif n in found:
                    found[n].append((new - old) / scale)
            told = {n: math.fsum(changes) / len(changes) for n, changes in found.items()}
            if not told or (number >= fresh / 2 and math.fsum(told.values()) / len(told) <= -self._margin):
                break  # more of them would have to undo that
        return told


def _names(objective: Objective, examples: Sequence[int]) -> Sequence[object]:
    """What some examples belong to: their clusters, or themselves."""
    return [objective.clusters[n] for n in examples] if objective.clusters else examples


def _groups(names: Iterable[object]) -> int:
    """So many clusters as large as the largest are worth what these examples show of rare losses."""
    sizes = Counter(names).values()
    return sum(sizes) // max(sizes)
