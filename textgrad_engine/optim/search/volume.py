"""How much a search will do: the most and what is usual, from its settings and the sizes of the sets.

The least is nothing: a seed prompt with full marks ends a search (`optim.search.marks`).
The most is a bound where the number of decisions is limited (by the trainer's `max_steps`, or by a setting such as
`proposals`): every race buys what it may, every request to the optimizer is repaired once, everything proposed is
raced. A search that only ends when nothing is left to try has no bound; what is assumed of it is stated in words. What
is usual is a rule of thumb, from runs on simulated tasks.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from textgrad_engine.attributes import attributes_told
from textgrad_engine.checks import at_least, check

OFTEN_KEPT = 4
"""A search that ends after so many decisions in vain usually ends after so many times that number in all."""


@attributes_told
@dataclass(frozen=True)
class Range:
    """What a run may use or do of something.

    Attributes:
        low: the least.
        high: the most.
        usual: what is usual.
    """

    low: float = 0.0
    high: float = 0.0
    usual: float = field(default=0.0, repr=False)

    def __post_init__(self) -> None:
        check(Range, vars(self))

    def __add__(self, other: Range) -> Range:
        return Range(self.low + other.low, self.high + other.high, self.usual + other.usual)

    def __or__(self, other: Range) -> Range:
        """Of each figure the larger one, as of what goes on beside each other."""
        return Range(max(self.low, other.low), max(self.high, other.high), max(self.usual, other.usual))

    def __mul__(self, by: float) -> Range:
        return Range(self.low * by, self.high * by, self.usual * by)


@attributes_told
@dataclass(frozen=True)
class Sizes:
    """What a search works on.

    Attributes:
        train: how many training examples.
        val: how many validation examples.
        guarded: how many runs of validation examples guards make for each new text, at most; some are run again.
        parameters: how many texts are trained.
        steps: at most so many decisions; None for no limit.
        patience: after so many decisions in a row that were not kept it is ended; None for no limit.
    """

    train: int
    val: int
    guarded: int = 0
    parameters: int = 1
    steps: int | None = None
    patience: int | None = None

    def decisions(self, own: int) -> int:
        """The most decisions there can be, where a search by itself makes so many.

        Args:
            own: how many it makes.
        """
        return own if self.steps is None else min(own, self.steps)

    def usually(self, decisions: float) -> float:
        """How many decisions are usual, where there are so many without patience."""
        return decisions if self.patience is None else min(decisions, OFTEN_KEPT * self.patience)


@attributes_told
@dataclass(frozen=True)
class Volume:
    """What a search will do, beside scoring the texts it begins and ends with.

    Attributes:
        decisions: how many.
        examples: so many go forward, those of `feedback` included.
        feedback: so many of these go backward, if they are wrong.
        asked: so many requests to the optimizer.
        shared: how many examples may share one feedback call.
        waits: forward passes, backward passes and requests to the optimizer that go on one after the other, when
            nothing waits for a place: the rest goes on beside them.
        growth: tokens that the trained texts gain, on the average over its calls.
        told: tokens that the optimizer is shown, beside the text, about what went wrong and what was tried.
        rewrites: whether new texts are written as a whole.
        assumed: what the most rests on, in words; "" where it is a bound.
    """

    decisions: Range
    examples: Range
    feedback: Range = Range()
    asked: Range = Range()
    shared: int = 1
    waits: tuple[Range, Range, Range] = (Range(), Range(), Range())
    growth: Range = Range()
    told: Range = Range()
    rewrites: bool = True
    assumed: str = field(default="")

    def __post_init__(self) -> None:
        check(Volume, vars(self), at_least(1, "shared"))


def rounded_up(count: int, size: int) -> int:
    """How many parts of a size it takes.

    Example:
        >>> rounded_up(10, 4)
        3
    """
    return -(-count // size)
