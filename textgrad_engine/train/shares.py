"""A budget shared out among runs that go one after the other.

NOTE [Shares]
    Each run that is not finished may use an equal part of what is left. What was given before is not shared out again:
    what a finished run took is only played back, and one that a budget ended has to be given as much as it had, or it
    would come less far than before (as a run keeps back what its end takes, what it used is less than that). So the
    runs are filled up to one level: one that had more keeps that, the others get the level. With nothing on record that
    is an equal part. A run that begins with as much left as before is given what it was given before, so one that was
    killed is what it would have been.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

from textgrad_engine.llm.amounts import UNLIMITED, Amount
from textgrad_engine.llm.budget import budgets_around, limited
from textgrad_engine.llm.reserve import Reserve
from textgrad_engine.scoped import setting
from textgrad_engine.train.events import current_part
from textgrad_engine.train.fold_parts import FoldsFolder, OnRecord, Part, Share, amount_of
from textgrad_engine.train.result import TrainResult


def fit_parts(
    parts: Sequence[Part],
    fit: Callable[[Part], TrainResult],
    folder: FoldsFolder | None = None,
) -> list[tuple[Part, TrainResult]]:
    """Run each part in turn within its share of the budget, until one is interrupted or has no room for a call.

    Args:
        parts: by `folds.parts_of`.
        fit: trains and tests on a part.
        folder: knows what runs have on record, and writes down what each is given; None where there is none.
    """
    folds = sum(part.test is not None for part in parts)
    known = {part.name: OnRecord() if folder is None else folder.on_record(part.name) for part in parts}
    runs: list[tuple[Part, TrainResult]] = []
    shares: dict[str, Share] = {}
    before = [amount_of(each.spent) for each in budgets_around()]

    def whole(needed: Amount) -> Amount:
        ended = {
            each.name: OnRecord(found.total, found.status == "finished", shares[each.name])
            for each, found in runs
            if each.name in shares
        }
        return _whole(needed, [*{**known, **ended}.values()], before)

    for number, part in enumerate(parts):
        with contextlib.ExitStack() as stack:
            if not known[part.name].finished:
                share = _share(known[part.name], [known[each.name] for each in parts[number + 1 :]])
                if folder is not None:
                    folder.keep_share(part.name, share)
                shares[part.name] = share
                stack.enter_context(limited(share.limit, whole))
            stack.enter_context(setting(current_part, _in_words(part, folds)))
            runs.append((part, fit(part)))
        if runs[-1][1].status == "interrupted" or runs[-1][1].shortage:
            break
    return runs


def _in_words(part: Part, folds: int) -> str:
    """What a run is called where others are shown beside it."""
    return "all examples" if part.test is None else f"{part.name.replace('-', ' ')} of {folds}"


def _share(own: OnRecord, later: Sequence[OnRecord]) -> Share:
    """What a run is given of what the budgets around it have left."""
    free = Reserve().free

    def part(name: str) -> int:
        left: int = getattr(free, name)
        if left >= UNLIMITED:
            return UNLIMITED
        if own.share is not None and getattr(own.share.free, name) == left:
            return int(getattr(own.share.limit, name))
        left_over = left - sum(each.held(name) for each in later if each.finished)
        return min(left, _filled(left_over, own.held(name), [each.held(name) for each in later if not each.finished]))

    return Share(free, Amount(part("calls"), part("tokens"), part("pico")))


def _whole(needed: Amount, runs: Sequence[OnRecord], before: Sequence[Amount]) -> Amount:
    """How large the budget around has to be for each run to be given so much, as far as it is not finished.

    Args:
        needed: by one of the runs, which has less.
        runs: all of them, as they are by now.
        before: what the budgets around had spent before the first one.
    """

    def of(name: str) -> int:
        level: int = getattr(needed, name)
        runs_take = sum(each.held(name) if each.finished else max(each.held(name), level) for each in runs)
        return runs_take + max((getattr(each, name) for each in before), default=0)

    return Amount(of("calls"), of("tokens"), of("pico"))


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
