"""The runs of a cross-validation: what each works with, what it is given of a budget, and what is on record of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

from textgrad_engine.llm.amounts import PICO, UNLIMITED, Amount
from textgrad_engine.llm.response import Usage

Rows = Sequence[dict[str, Any]]


@dataclass(frozen=True)
class Part:
    """What one of the runs of a cross-validation works with.

    Attributes:
        name: ``"fold-1"`` and so on; ``"final"`` for the run on all examples.
        train: the training examples.
        val: the validation examples; the training examples themselves where none are set aside.
        test: the examples of the fold; None for the final run.
    """

    name: str
    train: Rows
    val: Rows
    test: Rows | None


def waves_of(parts: Sequence[Part], jobs: int, *, limited: bool) -> list[Sequence[Part]]:
    """What begins together; see NOTE [Shares] in `train/shares.py`.

    Args:
        parts: all runs.
        jobs: at most so many go on at once.
        limited: whether there is a budget.
    """
    if jobs == 1:
        return [[part] for part in parts]
    if not limited:
        return [parts]
    waves = [[part for part in parts if (part.test is None) is final] for final in (False, True)]
    return [wave for wave in waves if wave]


@dataclass(frozen=True)
class Share:
    """What a run was given of a budget.

    Attributes:
        free: what was left when it began.
        limit: what it might use of that; vast where there was no limit.
    """

    free: Amount
    limit: Amount


@dataclass(frozen=True)
class OnRecord:
    """What a run has on record from before.

    Attributes:
        used: by its calls.
        finished: whether it is only played back.
        share: what it was given; None where nobody wrote that down.
        spent: whether it ended, with a result, as its share was spent.
    """

    used: Usage = field(default_factory=Usage)
    finished: bool = False
    share: Share | None = None
    spent: bool = False

    def held(self, name: str) -> int:
        """What it holds of calls, tokens or money: what it was given, and what it took where it is finished."""
        used: int = getattr(amount_of(self.used), name)
        limit: int = UNLIMITED if self.share is None else getattr(self.share.limit, name)
        return used if self.finished or limit >= UNLIMITED else max(used, limit)


class FoldsFolder(Protocol):
    """The folder of a cross-validation, as a budget is shared out by it; nobody else goes on with it in its block."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...

    def on_record(self, name: str) -> OnRecord:
        """What one of its runs has on record; nothing where it was not begun."""

    def keep_share(self, name: str, share: Share) -> None:
        """Write down what a run is given, before it begins.

        Raises:
            RunError: it cannot be written.
        """


def amount_of(used: Usage) -> Amount:
    """What was used, as budgets count it."""
    return Amount(used.calls, used.total_tokens, math.ceil((used.dollars or 0.0) * PICO))


def left_for_spent(known: Mapping[str, OnRecord], free: Amount) -> Amount:
    """What runs that spent their part of a budget get besides if all go on with it; nothing unless all have ended.

    Args:
        known: what is on record of each run, by name.
        free: the budget.
    """
    spent = {name: each for name, each in known.items() if each.spent}
    if not all(each.finished or each.spent for each in known.values()):
        return Amount()
    limits = {name: share_of(name, known, free).limit for name in spent}

    def more(kind: str) -> int:
        return sum(getattr(limits[name], kind) - each.held(kind) for name, each in spent.items())

    return Amount(more("calls"), more("tokens"), more("pico"))


def share_of(name: str, to_come: Mapping[str, OnRecord], free: Amount) -> Share:
    """What a run is given of what the budgets around it have left; NOTE [Shares] in `train.shares` has the rules.

    Args:
        name: of the run.
        to_come: what is on record of it, and of the others that have not ended.
        free: what they have left.
    """
    own = to_come[name]
    others = [each for other, each in to_come.items() if other != name]
    all_ended = all(each.finished or each.spent for each in to_come.values())

    def part(kind: str) -> int:
        left: int = getattr(free, kind)
        if left >= UNLIMITED:
            return UNLIMITED
        if own.share is not None and getattr(own.share.free, kind) == left and not all_ended:
            return int(getattr(own.share.limit, kind))
        left_over = left - sum(each.held(kind) for each in others if each.finished)
        return min(left, _filled(left_over, own.held(kind), [each.held(kind) for each in others if not each.finished]))

    return Share(free, Amount(part("calls"), part("tokens"), part("pico")))


def _filled(amount: int, own: int, others: Sequence[int]) -> int:
    """What one of several gets of an amount that they are filled up with to one level.

    Args:
        amount: of all.
        own: what it holds already.
        others: what each of the others holds.

    Example:
        >>> _filled(300, 0, [0, 0]), _filled(300, 0, [200, 0]), _filled(300, 200, [0, 0]), _filled(300, 120, [130, 90])
        (100, 50, 200, 120)
    """
    held, left = sorted([own, *others], reverse=True), max(0, amount)
    while held and held[0] > left // len(held):
        left = max(0, left - held.pop(0))
    return max(own, left // len(held) if held else 0)
