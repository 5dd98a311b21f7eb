"""Single examples: what was expected, what the best prompt made of it, and what the seed prompt had made of it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from textgrad_engine.llm.attachments import in_names
from textgrad_engine.report.printing import columns_of, hanging, indented, shortened, styled
from textgrad_engine.report.words import count, plural, score
from textgrad_engine.train.evaluation import Evaluation
from textgrad_engine.train.scores import ALIKE

if TYPE_CHECKING:
    from rich.console import RenderableType

_SHOWN = 300
"""Characters of a text that are shown to people."""

_NAME = 10
"""Columns of the name of a field."""

_WIDEST = 30
"""Columns of that name where nothing is cut; who wrote the table may have called a field by a page."""


@dataclass(frozen=True)
class LookedAt:
    """An example with what became of it.

    Attributes:
        id: its id.
        after: the score with the best texts; None where there was no answer.
        before: that with the seed texts; None where there was none, or nothing is compared.
        said: what the program said with the best texts.
        said_before: what it had said with the seed texts.
        worse: whether it scores less than it did.
        why: why there was no answer; "" where there was one.
        row: the example.
        parts: where the score is made of several metrics, or of criteria that all examples share, those by which the
            answer has less than full marks, with the score that each gave and its full marks.
        samples: with repeats, the score of each answer of now, and `said` is a list of them; else empty.
    """

    id: str
    after: float | None
    before: float | None
    said: Any
    said_before: Any
    worse: bool
    why: str
    row: Mapping[str, Any]
    parts: tuple[tuple[str, float, float], ...] = ()
    samples: tuple[float | None, ...] = ()


def worst_of(rows: Mapping[str, Mapping[str, Any]], after: Evaluation, before: Evaluation | None) -> list[LookedAt]:
    """The examples that do not have the best score there is, those first that got worse, then those that score least.

    Examples without an answer come before the others of each kind. Where nobody knows what the best score is, it is the
    highest that an example has.

    Args:
        rows: the examples by their ids.
        after: the scores of now.
        before: those of before, on the same examples; None where nothing is compared.

    Example:
        >>> rows = {name: {"text": name} for name in "abc"}
        >>> after = Evaluation(("a", "b", "c"), (1.0, 0.0, 0.0), ("yes", "no", "no"), {})
        >>> before = Evaluation(("a", "b", "c"), (0.0, 0.0, 1.0), ("no", "no", "yes"), {})
        >>> [(each.id, each.worse) for each in worst_of(rows, after, before)]
        [('c', True), ('b', False)]
    """
    best = after.limits[1] if after.limits is not None else max(after.answered, default=math.inf)
    had = {} if before is None else dict(zip(before.ids, zip(before.scores, before.predictions)))
    left_out = set(after.not_run)
    found = []
    for at, (name, now) in enumerate(zip(after.ids, after.scores)):
        if name not in left_out and (now is None or now < best - ALIKE):
            found.append(_looked_at(rows[name], after, at, *had.get(name, (None, None))))
    return sorted(found, key=_first)


def looked_at(row: Mapping[str, Any], after: Evaluation) -> LookedAt:
    """The one example of an evaluation that has no other."""
    return _looked_at(row, after, 0, None, None)


def _looked_at(row: Mapping[str, Any], after: Evaluation, at: int, old: float | None, said_before: Any) -> LookedAt:
    name, now = after.ids[at], after.scores[at]
    given = [(part.name, part.scores[at], part.scale[1]) for part in after.parts]
    return LookedAt(
        id=name,
        after=now,
        before=old,
        said=after.predictions[at],
        said_before=said_before,
        worse=old is not None and (now is None or now < old - ALIKE),
        why="" if now is not None else after.failures.get(name, "no answer"),
        row=row,
        parts=tuple([(part, one, full) for part, one, full in given if one is not None and one < full - ALIKE]),
        samples=after.samples[at] if after.samples else (),
    )


def _first(each: LookedAt) -> tuple[bool, float, float]:
    now = -math.inf if each.after is None else each.after
    fell = 0.0 if each.before is None or not each.worse else now - each.before
    return (not each.worse, fell, now)


def looked_at_as_json(found: Sequence[LookedAt], targets: Sequence[str]) -> list[dict[str, Any]]:
    """What ``--json`` prints of each."""
    return [
        {
            "id": each.id,
            "after": each.after,
            "before": each.before,
            "expected": expected_of(each.row, targets),
            "said": each.said,
            "said_before": each.said_before,
            "worse": each.worse,
            "why": each.why or None,
            "parts": {name: one for name, one, _ in each.parts},
        }
        for each in found
    ]


def looked_at_in_words(
    found: Sequence[LookedAt], most: int, targets: Sequence[str], whose: str
) -> Iterator[RenderableType]:
    """The first examples, each with what it was, what was expected, and what was said.

    Args:
        found: the examples, in order.
        most: so many are shown.
        targets: the columns of right answers.
        whose: what they are compared with.
    """
    worse = sum(each.worse for each in found)
    said = f"{plural(len(found), 'example')} without the best score"
    if any(each.before is not None for each in found):
        said += f", {count(worse)} of them worse than with {whose}"
    yield indented(f"{said}." if found else "Every example has the best score.", 2)
    for each in found[:most]:
        yield ""
        now = "no answer" if each.after is None else score(each.after)
        was = "" if each.before is None else f", with {whose} {score(each.before)}"
        yield styled(f"  {each.id}   {now}{was}{'   worse' if each.worse else ''}", "bold")
        for name, value in each.row.items():
            if name != "id" and name not in targets:
                yield line_of(name, value)
        if (expected := expected_of(each.row, targets)) is not None:
            yield line_of("expected", expected)
        yield from _outputs("said", each.why if each.after is None else each.said)
        yield from _lost_by(each)
        if each.before is not None and each.said_before != each.said:
            yield from _outputs("before", each.said_before)
    if len(found) > most:
        yield ""
        yield indented(f"and {count(len(found) - most)} more; --examples {len(found)} shows all.", 2, "dim")


def in_full(row: Mapping[str, Any], targets: Sequence[str]) -> Iterator[RenderableType]:
    """An example with nothing cut, and its right answer."""
    for name, value in row.items():
        if name != "id" and name not in targets:
            yield from _whole(name, value)
    if (expected := expected_of(row, targets)) is not None:
        yield from _whole("expected", expected)


def answer_in_full(each: LookedAt) -> Iterator[RenderableType]:
    """What a prompt made of an example, with nothing cut; of repeats each answer with its score."""
    if each.samples:
        for one, said in zip(each.samples, each.said or [None] * len(each.samples)):
            lost = one is None and said is None
            yield from _outputs("no answer" if one is None else f"said {score(one)}", "" if lost else said, whole=True)
        if each.after is None:
            yield from _whole("why", each.why)
    else:
        yield from _outputs("said", each.why if each.after is None else each.said, whole=True)
    yield from _lost_by(each)


def _lost_by(each: LookedAt) -> Iterator[RenderableType]:
    """By which of several metrics an answer has less than full marks."""
    for number, (name, one, full) in enumerate(each.parts):
        yield line_of("" if number else "lost by", name if (one, full) == (0, 1) else f"{name}: {one:g} of {full:g}")


def expected_of(row: Mapping[str, Any], targets: Sequence[str]) -> Any:
    """The right answer of an example; of several columns what each has, by name."""
    there = {name: row[name] for name in targets if row.get(name) is not None}
    return next(iter(there.values()), None) if len(targets) == 1 else there or None


def _outputs(name: str, said: Any, *, whole: bool = False) -> Iterator[RenderableType]:
    """What a program said; of several outputs each in a line of its own."""
    outputs = (
        [f"{output}: {_written(value)}" for output, value in said.items()] if isinstance(said, Mapping) else [said]
    )
    for number, output in enumerate(outputs or [said]):
        head = " " * columns_of(name) if number else name
        yield from _whole(head, output) if whole else [line_of(head, output)]


def _whole(name: str, value: Any) -> Iterator[RenderableType]:
    """A field of an example with nothing cut, in its own lines, which begin below each other."""
    name = shortened(name, _WIDEST)
    for number, line in enumerate(_written(value).splitlines() or [""]):
        head = " " * columns_of(name) if number else name
        yield hanging(f"    {head}{' ' * (_NAME - columns_of(head))} ", "", line)


def _written(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(in_names(value), ensure_ascii=False, default=str)


def line_of(name: str, value: Any) -> RenderableType:
    """A field of an example, cut where it is long."""
    from rich.cells import set_cell_size  # heavy, and wanted only when something is shown

    text = " ".join(_written(value).split())
    if len(text) > _SHOWN:
        text = f"{text[:_SHOWN]} […{len(text) - _SHOWN:,} more characters]"
    return hanging(f"    {set_cell_size(name, _NAME)} ", "", text)
