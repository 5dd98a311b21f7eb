"""How good a prompt is on each kind of example, and whether it got better or worse there."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from textgrad_engine.report.document import evaluation_as_json, finite
from textgrad_engine.report.printing import fitted, indented, open_table, padded, styled
from textgrad_engine.report.view import said
from textgrad_engine.report.words import count, interval, plural, score
from textgrad_engine.train.comparison import Comparison, compare, compared
from textgrad_engine.train.evaluation import Evaluation

if TYPE_CHECKING:
    from rich.console import RenderableType

Split: TypeAlias = Literal["test", "val", "folds"]
"""Which examples of a run, or of a cross-validation."""

WHOSE: dict[Split, str] = {"test": "test examples", "val": "validation examples", "folds": "examples of all folds"}
"""Which examples they are, in words."""

SHOWN = 30
"""So many slices are shown to people."""

_WIDEST = 40
"""Characters of a value that are shown."""


@dataclass(frozen=True)
class Slice:
    """The examples that share a value of a column.

    Attributes:
        value: in words.
        after: what they scored.
        before: what they scored before; None where nothing is compared.
        comparison: of both, by an interval that holds for all slices together; None where none of the examples has a
            score in both.
    """

    value: str
    after: Evaluation
    before: Evaluation | None = None
    comparison: Comparison | None = None


def slices_of(values: Sequence[str], after: Evaluation, before: Evaluation | None = None) -> list[Slice]:
    """The slices that values make of the examples, the largest first.

    Args:
        values: of the examples, in their order.
        after: their scores.
        before: their scores before, to be compared with.

    Example:
        >>> def scored(*scores):
        ...     return Evaluation(tuple(str(n) for n in range(len(scores))), scores, scores, {})
        >>> first, second = slices_of(["a", "b", "b"], scored(1.0, 0.0, 1.0), scored(0.0, 0.0, 0.0))
        >>> first.value, first.before.mean, first.after.mean, first.comparison.verdict
        ('b', 0.0, 0.5, 'not shown')
    """
    now = after.by(values)
    then = {} if before is None else before.by(values)
    confidence = 1 - 0.05 / len(now)  # Bonferroni: of m intervals, none misses in 95 of 100 cases

    def made(value: str) -> Slice:
        old, new = then.get(value), now[value]
        return Slice(value, new, old, None if old is None else compared(old, new, confidence=confidence))

    return sorted(map(made, now), key=lambda each: (-len(each.after), each.value))


def slices_as_json(slices: Sequence[Slice]) -> list[dict[str, Any]]:
    """What ``--json`` prints of each slice."""
    return [{"value": each.value, **_slice_as_json(each)} for each in slices]


def _slice_as_json(found: Slice) -> dict[str, Any]:
    if found.before is None:
        return _as_json(found.after)
    return {
        "before": _as_json(found.before),
        "after": _as_json(found.after),
        "comparison": None if found.comparison is None else finite(asdict(found.comparison)),
    }


def slices_in_words(
    column: str, slices: Sequence[Slice], whose: tuple[str, str] = ("seed", "best")
) -> tuple[list[str], list[list[str]], str]:
    """What columns a table of slices has, a row for each of the largest, and what is to be known about them.

    Args:
        column: what tells the slices apart.
        slices: the largest first.
        whose: what is compared, before and after, in a word each.
    """
    compared = any(each.before is not None for each in slices)
    heads = [_short(column), "examples", *((*whose, "difference", "") if compared else ("score",))]
    rows = []
    for each in slices[:SHOWN]:
        pair = [_mean(each.before), _mean(each.after), *_compared(each.comparison)]
        rows.append([_short(each.value), count(len(each.after.answered)), *(pair if compared else [_said(each.after)])])
    lost = sum(each.after.unanswered + (each.before.unanswered if each.before else 0) for each in slices)
    more = len(slices) - SHOWN
    others = "is 1 more, no larger one" if more == 1 else f"are {count(more)} more, no larger ones"
    notes = [f"There {others}, which --json prints."] * (more > 0)
    left_out = f"{plural(lost, 'answer')} that {'is' if lost == 1 else 'are'} missing left out"
    of_both = ", and differences are of examples with both" if compared else ""
    notes += [f"{left_out}{of_both}."] * (lost > 0)
    if compared:
        notes.append(f"The intervals of the differences hold for {_all(len(slices))} (Bonferroni).")
    else:
        notes.append("Each interval is a 95% one by itself, so of twenty one misses by chance.")
    return heads, rows, " ".join(notes)


def slices_table(
    column: str, slices: Sequence[Slice], whose: tuple[str, str] = ("seed", "best")
) -> Iterator[RenderableType]:
    """The table, for a terminal.

    Args:
        column: what tells the slices apart.
        slices: the largest first.
        whose: what is compared, before and after, in a word each.
    """
    heads, rows, note = slices_in_words(column, slices, whose)
    table = open_table()
    table.add_column(styled(heads[0]), max_width=_WIDEST)
    table.add_column(heads[1], justify="right", no_wrap=True)
    for head in heads[2:]:
        table.add_column(head, no_wrap=True)
    for value, *cells in rows:
        table.add_row(styled(value), *cells)
    yield padded(fitted(table), 2)
    yield ""
    yield indented(note, 2, "dim")


@dataclass(frozen=True)
class Sliced:
    """What a run, or the folds of one, measured on each slice of its examples.

    Attributes:
        column: what tells the slices apart.
        split: which examples they are: ``"test"``; ``"val"`` where the run tested nothing; or ``"folds"``.
        before: the seed texts' scores; None where they were kept.
        after: the best texts'.
        slices: the largest first.
    """

    column: str
    split: Split
    before: Evaluation | None
    after: Evaluation
    slices: list[Slice]

    @property
    def title(self) -> str:
        """Which examples, by what."""
        return f"{WHOSE[self.split]} by {self.column}"

    def remarks(self) -> list[str]:
        """What all slices come to together, and what is to be known of the examples."""
        if self.before is None:
            found = ["The run kept the seed prompt, so there is nothing to compare it with."]
        else:
            every = compare(self.before, self.after)
            found = [f"All together: {said(every)} on {plural(every.n, 'example')}."]
        if any(each.comparison is not None and each.comparison.verdict == "worse" for each in self.slices):
            floors = "Floors under [guards] of a config keep the next run from making a slice worse"
            by_val = "; choose them by the validation examples (show RUN --by COLUMN --val), not by these"
            seen = "" if self.split == "val" else by_val
            found.append(f"{floors}{seen}.")
        if self.split == "val":
            found.append("These examples chose the best prompt, so its scores on them flatter it.")
        return found


def _all(number: int) -> str:
    return "the one slice" if number == 1 else f"all {count(number)} slices together"


def _as_json(evaluation: Evaluation) -> dict[str, Any]:
    nothing = {"mean": None, "interval": None, "examples": len(evaluation), "unanswered": evaluation.unanswered}
    return (evaluation_as_json(evaluation) if evaluation.answered else None) or nothing


def _mean(evaluation: Evaluation | None) -> str:
    return score(evaluation.mean) if evaluation is not None and evaluation.answered else "no answer"


def _said(evaluation: Evaluation) -> str:
    return f"{score(evaluation.mean)} {interval(evaluation.interval)}" if evaluation.answered else "no answer"


def _compared(found: Comparison | None) -> tuple[str, str]:
    if found is None:
        return "", ""
    return f"{score(found.difference, signed=True)} {interval(found.interval, signed=True)}", found.verdict


def _short(value: str) -> str:
    value = value if value and value == value.strip() else json.dumps(value, ensure_ascii=False)
    return value if len(value) <= _WIDEST else f"{value[: _WIDEST - 1]}…"
