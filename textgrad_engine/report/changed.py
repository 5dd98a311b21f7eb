"""Which examples score otherwise than before: which got worse, which better, and which lost their answer."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from textgrad_engine.report.printing import columns_of, shortened
from textgrad_engine.report.words import score
from textgrad_engine.train.evaluation import Evaluation
from textgrad_engine.train.scores import ALIKE

SURE = 0.8
"""With repeats, an example changed where of all pairs of a run before and one after so many more say so than say the
opposite. One that is right half of the time is called changed by two runs each in 13 of 100 cases, by three in 3, by
five in 2."""

_WIDEST = 24
"""Columns of an id, which others wrote and may be a page."""


@dataclass(frozen=True)
class Change:
    """An example that scores otherwise; None where it has no answer."""

    id: str
    before: float | None
    after: float | None


@dataclass(frozen=True)
class Changed:
    """The examples that score otherwise than before, those first that changed the most.

    Attributes:
        worse: those that score less.
        better: those that score more.
        lost: those that have no answer any more.
        lost_before: those that have one only now.
        within: with repeats, how many others differ by less than what runs of one prompt may differ by.
        runs: how often each example was run, before or after, whichever is less.
        runs_most: likewise, whichever is more.
    """

    worse: tuple[Change, ...]
    better: tuple[Change, ...]
    lost: tuple[Change, ...]
    lost_before: tuple[Change, ...]
    within: int
    runs: int
    runs_most: int

    @property
    def some(self) -> bool:
        """Whether there is one to be named."""
        return bool(self.worse or self.better or self.lost or self.lost_before)

    @property
    def any(self) -> bool:
        """Whether there is one that has a score in both."""
        return bool(self.worse or self.better or self.within)


def changed(before: Evaluation, after: Evaluation) -> Changed:
    """Which examples score otherwise in the second of two evaluations on the same examples.

    With one run each the score alone counts. With repeats, what the runs of one prompt may differ by is no change.

    Args:
        before: the scores of the first prompt.
        after: those of the second one.

    Example:
        >>> before = Evaluation(("a", "b", "c"), (1.0, 0.0, 1.0), ("yes", "no", "yes"), {})
        >>> after = Evaluation(("a", "b", "c"), (0.0, 0.0, 1.0), ("no", "no", "yes!"), {})
        >>> [each.id for each in changed(before, after).worse]
        ['a']
    """
    left_out = {*before.not_run, *after.not_run}
    there = {name: (now, runs) for name, now, runs in zip(after.ids, after.scores, _runs(after))}
    found: dict[str, list[Change]] = {"worse": [], "better": [], "lost": [], "lost_before": []}
    within = 0
    for name, was, runs_before in zip(before.ids, before.scores, _runs(before)):
        now, runs = there.get(name, (None, ()))
        if name in left_out or (was is None and now is None):
            continue
        change = Change(name, was, now)
        if was is None or now is None:
            found["lost" if now is None else "lost_before"].append(change)
        elif abs(now - was) > ALIKE:
            if _is_sure(runs_before, runs, up=now > was):
                found["better" if now > was else "worse"].append(change)
            else:
                within += 1
    for kind in ("worse", "better"):
        found[kind].sort(key=_size, reverse=True)
    return Changed(
        **{kind: tuple(each) for kind, each in found.items()},
        within=within,
        runs=min(before.repeats, after.repeats),
        runs_most=max(before.repeats, after.repeats),
    )


def changed_as_json(found: Changed | None) -> dict[str, Any] | None:
    """The same as plain JSON values; null where nothing could be compared."""
    if found is None:
        return None
    plain = asdict(found)
    return {key: list(value) if isinstance(value, tuple) else value for key, value in plain.items()}


def changed_in_lines(found: Changed, mark: str, columns: int) -> Iterator[str]:
    r"""A line of what got worse and one of what got better, each with as many ids as there is room for.

    Args:
        found: the examples.
        mark: what each line begins with.
        columns: of the terminal.

    Example:
        >>> found = Changed((), tuple([Change(f"t{n}", 0.0, 1.0) for n in range(9)]), (), (), 0, 1, 1)
        >>> print("\n".join(changed_in_lines(found, "2  ", 42)))
        2  got worse (0)
        2  got better (9): t0, t1, t2, and 6 more
    """
    yield _line(f"{mark}got worse", found.worse, columns)
    yield _line(f"{mark}got better", found.better, columns)
    if found.lost:
        yield _line(f"{mark}no answer", found.lost, columns)
    if found.lost_before:
        yield _line(f"{mark}no answer from the first", found.lost_before, columns)


def how_changed(found: Sequence[Changed], tells: str = "; --repeats tells") -> str:
    """By what examples were said to have changed, in a sentence; "" where none has.

    Args:
        found: the examples, of each comparison.
        tells: behind it, of single runs, how what chance changes is told.
    """
    if not any(each.any for each in found):
        return ""
    runs, most = min(each.runs for each in found), max(each.runs_most for each in found)
    if most == 1:
        return (
            "Worse and better go by the scores of one run each: an answer in other words with the same score does not "
            f"count, and some scores change by chance, as they would with one prompt run twice{tells}."
        )
    within = sum(each.within for each in found)
    others = f" {within:,} more differ{'s' * (within == 1)} by less, as runs of one prompt do." if within else ""
    less = "once" if runs == 1 else f"{runs} times"
    often = f"{less} with each prompt" if runs == most else f"{less} with one prompt and {most} times with the other"
    return (
        f"Each example was run {often}, and counts as worse or better where four of five pairs of runs say so.{others}"
    )


def _runs(evaluation: Evaluation) -> Sequence[Sequence[float | None]]:
    return evaluation.samples or [(each,) for each in evaluation.scores]


def _is_sure(before: Sequence[float | None], after: Sequence[float | None], *, up: bool) -> bool:
    pairs = [(old, new) for old, new in itertools.product(before, after) if old is not None and new is not None]
    rises = sum((new > old + ALIKE) - (new < old - ALIKE) for old, new in pairs)
    return (rises if up else -rises) >= SURE * len(pairs) - ALIKE


def _size(change: Change) -> float:
    return 0.0 if change.before is None or change.after is None else abs(change.after - change.before)


def _line(head: str, found: Sequence[Change], columns: int) -> str:
    head = f"{head} ({len(found):,})"
    if not found:
        return head
    sizes = any(abs(size - 1) > ALIKE for each in found if (size := _size(each)))
    room = columns - columns_of(f"{head}: , and {len(found):,} more") - sizes * len(" +0.000")
    ends, line = list[str](), f"{head}:"
    for each in found:
        line += f"{', ' if ends else ' '}{_name(each, min(_WIDEST, max(8, room)), sizes=sizes)}"
        ends.append(line)
        if columns_of(line) > columns:
            break
    else:
        return line
    for shown, line in reversed(list(enumerate(ends, 1))):
        more = f", and {len(found) - shown:,} more" if shown < len(found) else ""
        if columns_of(line + more) <= columns:
            return line + more
    return ends[0] + (f", and {len(found) - 1:,} more" if len(found) > 1 else "")


def _name(each: Change, widest: int, *, sizes: bool) -> str:
    """An id as a word, and where marks are not right or wrong alone, by how much the score changed."""
    name = shortened(each.id, widest)
    if not sizes or each.before is None or each.after is None:
        return name
    return f"{name} {score(each.after - each.before, signed=True)}"
