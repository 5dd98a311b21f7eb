"""A budget shared out among runs that go one after the other.

NOTE [Shares]
    Each run that is not finished may use an equal part of what is left. What others have on record is not shared out
    again: what a finished run took is only played back, and one that a budget ended has to be given what it had taken,
    or it would come less far than before. So the parts are filled up to one level: a run with more than that on record
    gets what it has, the others get the level. With nothing on record that is an equal part.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from textgrad_engine.llm.account import PICO, UNLIMITED
from textgrad_engine.llm.budget import Reserve, budget
from textgrad_engine.llm.response import Usage

if TYPE_CHECKING:
    from textgrad_engine.train.crossval import Part
    from textgrad_engine.train.result import TrainResult

__all__ = ["OnRecord", "fit_parts"]


@dataclass(frozen=True)
class OnRecord:
    """What a run has on record from before.

    Attributes:
        used: by its calls.
        finished: whether it is only played back.
    """

    used: Usage = field(default_factory=Usage)
    finished: bool = False


def fit_parts(
    parts: Sequence[Part], fit: Callable[[Part], TrainResult], on_record: Mapping[str, OnRecord] | None = None
) -> list[tuple[Part, TrainResult]]:
    """Run each part in turn within its share of the budget, until one is interrupted or has no room for a call.

    Args:
        parts: by `crossval.parts_of`.
        fit: trains and tests on a part.
        on_record: what runs have on record, by name; those that are not named have nothing.
    """
    known = {part.name: OnRecord() for part in parts} | dict(on_record or {})
    runs = []
    for number, part in enumerate(parts):
        later = [known[each.name] for each in parts[number + 1 :]]
        with contextlib.nullcontext() if known[part.name].finished else _share(known[part.name], later):
            runs.append((part, fit(part)))
        if runs[-1][1].status == "interrupted" or runs[-1][1].shortage:
            break
    return runs


def _share(own: OnRecord, later: Sequence[OnRecord]) -> contextlib.AbstractContextManager[object]:
    """A budget for a run of what is left of those around it; of what nothing limits it limits nothing."""
    free = Reserve().free

    def part(amount: int, of: Callable[[Usage], int]) -> int | None:
        if amount >= UNLIMITED:
            return None
        left = amount - sum(of(each.used) for each in later if each.finished)
        others = [of(each.used) for each in later if not each.finished]
        return min(amount, _filled(left, of(own.used), others))

    dollars = part(free.pico, lambda used: math.ceil((used.dollars or 0.0) * PICO))
    calls, tokens = part(free.calls, lambda used: used.calls), part(free.tokens, lambda used: used.total_tokens)
    return budget(None if dollars is None else dollars / PICO, calls, tokens)


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
