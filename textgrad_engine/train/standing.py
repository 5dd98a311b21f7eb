"""How texts stand to a floor of the guards: told in reports, which load nothing of what runs programs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from textgrad_engine.attributes import attributes_told
from textgrad_engine.train.scores import ALIKE, apart

Split: TypeAlias = Literal["val", "test", "other"]


@attributes_told
@dataclass(frozen=True)
class Standing:
    """How the seed texts and the best ones stand to a floor, on the examples of one set.

    Attributes:
        of: what the floor is under, in words; of a criterion all of it.
        least: the floor.
        split: whose examples they are: guards refuse texts by those of ``"val"``; by those of ``"test"`` nothing is
            chosen, so these tell whether it holds; ``"other"`` are those of an evaluation.
        examples: how many of them it is about.
        seed: the mean with the seed texts; None where none of them has a score.
        best: with the best texts.
        unanswered: how many of them have no score with the best texts.

    Example:
        >>> found = Standing("queue = 'billing'", 0.9, "test", examples=25, seed=0.5, best=0.88)
        >>> print(found)
        the floor of 0.9 under queue = 'billing' is not reached on test: 0.500 -> 0.880
    """

    of: str
    least: float
    split: Split
    examples: int
    seed: float | None
    best: float | None
    unanswered: int = 0

    @property
    def reached(self) -> bool:
        """Whether the mean with the best texts is the floor at least."""
        return self.best is not None and self.best >= self.least - ALIKE

    @property
    def means(self) -> str:
        """The means with the seed texts and with the best ones, in words."""
        was, now = ("not measured" if mean is None else apart(mean, self.least)[0] for mean in (self.seed, self.best))
        lost = self.unanswered and self.best is not None
        return f"{was} -> {now}" + (f", without {self.unanswered} that could not be run" if lost else "")

    def __str__(self) -> str:
        stands = f"is{'' if self.reached else ' not'} reached{_ON[self.split]}"
        return f"the floor of {self.least:g} under {in_a_sentence(self.of)} {stands}: {self.means}"


def missed_in_words(floors: Iterable[Standing]) -> str:
    """Which floors the best texts do not reach, to be said behind a verdict; "" where they reach all of them.

    Args:
        floors: of a run; where it tells of one on the test set and on the validation set, the first counts if it is
            missed there.

    Example:
        >>> of = "queue = 'billing'"
        >>> missed_in_words([Standing(of, 0.9, "val", 25, 0.5, 1.0), Standing(of, 0.9, "test", 25, 0.5, 0.8)])
        "floor not reached: queue = 'billing', 0.800 of 0.9 on test"
    """
    missed = {(each.of, each.least): each for each in floors if not each.reached}  # the test set comes last
    if not missed:
        return ""
    told = [
        f"{in_a_sentence(each.of)}, {'not measured' if each.best is None else apart(each.best, each.least)[0]} "
        f"of {each.least:g}{_ON[each.split]}"
        for each in missed.values()
    ]
    more = [f"{len(told) - _MOST_TOLD} more"] if len(told) > _MOST_TOLD else []
    return f"{'floor' if len(told) == 1 else 'floors'} not reached: {'; '.join([*told[:_MOST_TOLD], *more])}"


def in_a_sentence(of: str) -> str:
    """What a floor is under, as a sentence has room for it.

    Example:
        >>> in_a_sentence("the metric 'brief'"), len(in_a_sentence(f"the criterion '{'It is polite. ' * 20}'"))
        ("the metric 'brief'", 97)
    """
    return of if len(of) <= _LONGEST else f"{of[: _LONGEST - 2]}…{of[-1]}"  # the quotation mark at its end stays


_ON: dict[Split, str] = {"val": " on validation", "test": " on test", "other": ""}

_MOST_TOLD = 3
"""So many floors are named."""

_LONGEST = 97
"""Characters of it that stand in a sentence."""
