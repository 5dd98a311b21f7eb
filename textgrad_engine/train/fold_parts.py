"""The runs of a cross-validation: what each works with, what it is given of a budget, and what is on record of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
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
