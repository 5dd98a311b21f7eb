"""The runs of a cross-validation, one after the other or several at once, and a budget shared out among them.

NOTE [Shares]
    Each run that is not finished may use an equal part of what is left when it begins. Of runs that go on at once all
    begin with as much left, so one that needs less leaves nothing to the others. So the run on all examples, which has
    more of them, comes after the folds where there is a limit, and gets what these leave.
    What was given before is not shared out again:
    what a finished run took is only played back, and one that a budget ended has to be given as much as it had, or it
    would come less far than before (as a run keeps back what its end takes, what it used is less than that). So the
    runs are filled up to one level: one that had more keeps that, the others get the level. With nothing on record that
    is an equal part. A run that begins with as much left as before is given what it was given before, so one that was
    killed is what it would have been. When all of them have ended, what some have left goes to those that spent theirs.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Mapping, Sequence

from textgrad_engine.llm.amounts import UNLIMITED, Amount
from textgrad_engine.llm.budget import budgets_around, limited
from textgrad_engine.llm.reserve import Reserve
from textgrad_engine.llm.usage import call_part
from textgrad_engine.scoped import setting
from textgrad_engine.train.events import current_part, part_mark
from textgrad_engine.train.fold_parts import FoldsFolder, OnRecord, Part, Share, amount_of, share_of, waves_of
from textgrad_engine.train.interrupt import at_once
from textgrad_engine.train.result import TrainResult


def fit_parts(
    parts: Sequence[Part],
    fit: Callable[[Part], TrainResult],
    folder: FoldsFolder | None = None,
    jobs: int = 1,
) -> list[tuple[Part, TrainResult]]:
    """Run the parts, each within its share of the budget, until one is interrupted or has no room for a call.

    Args:
        parts: by `folds.parts_of`.
        fit: trains and tests on a part.
        folder: knows what runs have on record, and writes down what each is given; None where there is none.
        jobs: at most so many at a time, each in a thread of its own.
    """
    known = {part.name: OnRecord() if folder is None else folder.on_record(part.name) for part in parts}
    ended: dict[str, tuple[TrainResult, Share]] = {}
    before = [amount_of(each.spent) for each in budgets_around()]

    def whole(needed: Amount) -> Amount:
        over = ended.copy()  # at once, as other runs end meanwhile
        now = {name: OnRecord(found.total, found.status == "finished", share) for name, (found, share) in over.items()}
        return _whole(needed, [*{**known, **now}.values()], before)

    interrupted = threading.Event()

    def begun(part: Part, share: Share | None) -> TrainResult | None:
        if interrupted.is_set():
            return None
        with contextlib.ExitStack() as stack:
            if share is not None:
                stack.enter_context(limited(share.limit, whole))
            stack.enter_context(setting(current_part, _in_words(part, parts)))
            stack.enter_context(setting(call_part, parts.index(part) + 1))
            stack.enter_context(setting(part_mark, _mark(part, parts) if jobs > 1 else ""))
            try:
                result = fit(part)
            except Exception as error:
                if jobs > 1:  # one by one, what is said before tells it
                    error.add_note(f"in the run of a cross-validation on {_in_words(part, parts)}")
                raise
        if share is not None:
            ended[part.name] = result, share
        if result.status == "interrupted":
            interrupted.set()
        return result

    runs: list[tuple[Part, TrainResult]] = []
    free = Reserve().free
    for wave in waves_of(parts, jobs, limited=min(free.calls, free.tokens, free.pico) < UNLIMITED):
        to_come = {part.name: known[part.name] for part in parts[len(runs) :]}
        free = Reserve().free
        shares = {part.name: share_of(part.name, to_come, free) for part in wave if not known[part.name].finished}
        for name, share in shares.items():
            if folder is not None:
                folder.keep_share(name, share)
        results: dict[str, TrainResult | None] = {}
        for together in _in_turn(wave, known):
            works = [functools.partial(begun, part, shares.get(part.name)) for part in together]
            results.update(zip([part.name for part in together], at_once(works, jobs)))
        runs += [(part, result) for part in wave if (result := results[part.name]) is not None]
        if interrupted.is_set() or any(result.shortage for _, result in runs):
            break
    return runs


def _in_turn(wave: Sequence[Part], known: Mapping[str, OnRecord]) -> list[list[Part]]:
    """The same, one behind the other: what is only played back, what goes on, and what was not begun.

    Where something else was changed than may be, the first ones are refused, and nothing was paid for beside what they
    paid for before: with some runs of before, and some of now, nobody could go on with all of them.
    """
    turns: list[list[Part]] = [[], [], []]
    for part in wave:
        own = known[part.name]
        turns[0 if own.finished else 1 if own.used.calls else 2].append(part)
    return [turn for turn in turns if turn]


def _in_words(part: Part, parts: Sequence[Part]) -> str:
    """What a run is called where others are shown beside it."""
    return "all examples" if part.test is None else f"{part.name.replace('-', ' ')} of {_folds(parts)}"


def _mark(part: Part, parts: Sequence[Part]) -> str:
    """What a line about a run begins with, among those of others."""
    folds = str(_folds(parts))
    mark = "all" if part.test is None else f"{part.name.removeprefix('fold-'):>{len(folds)}}/{folds}"
    return mark.ljust(2 * len(folds) + 1)


def _folds(parts: Sequence[Part]) -> int:
    return sum(part.test is not None for part in parts)


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
