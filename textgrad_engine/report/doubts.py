"""Examples whose right answer may be wrong, in words and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from textgrad_engine.report.looked_at import expected_of, line_of
from textgrad_engine.report.printing import indented, styled
from textgrad_engine.report.words import count, plural
from textgrad_engine.train.doubtful import Doubtful
from textgrad_engine.train.result import TrainResult

if TYPE_CHECKING:
    from rich.console import RenderableType

FEW = 0.1
"""A report speaks of them where they are no larger a part of the examples: more of them are a rule that is missing."""

SETS = {"train": "training", "val": "validation"}


def note_of(result: TrainResult) -> Iterator[str]:
    """What a report says of them, where they are few."""
    found = result.doubtful
    if not found or result.best_val is None or len(found) > FEW * _examples(result):
        return
    of_sets = [(sum(each.split == split for each in found), name) for split, name in SETS.items()]
    named = " and ".join([f"{count(number)} {name}" for number, name in of_sets if number])
    yield (
        f"On {named} {'example' if len(found) == 1 else 'examples'} no prompt was right, and most gave the same other "
        "answer: a rule is missing, the model is too weak, or the expected answer is wrong. "
        f"`show --doubtful {len(found)}` prints {'it' if len(found) == 1 else 'them'}."
    )


def _examples(result: TrainResult) -> int:
    """How many examples were tried on: those that validate, and those of steps."""
    seen = {name for step in result.steps for name in step.examples}
    validated = set(result.best_val.ids if result.best_val is not None else ())
    apart = any(each.split == "val" for each in result.doubtful)  # named by positions, both have the same names
    return len(seen) + len(validated) if apart else len(seen | validated)


def doubts_as_json(
    found: Sequence[Doubtful], rows: Mapping[tuple[str, str], tuple[str, Mapping[str, Any]]], targets: Sequence[str]
) -> list[dict[str, Any]]:
    """What ``--json`` prints of each; see `doubts_in_words`."""
    return [
        {
            "id": each.id,
            "split": each.split,
            "where": rows[each.split, each.id][0],
            "expected": expected_of(rows[each.split, each.id][1], targets),
            "said": each.said,
            "times": each.times,
            "texts": each.texts,
        }
        for each in found
    ]


def doubts_in_words(
    found: Sequence[Doubtful],
    most: int,
    rows: Mapping[tuple[str, str], tuple[str, Mapping[str, Any]]],
    targets: Sequence[str],
) -> Iterator[RenderableType]:
    """The first of them, each with its place in a file, what is expected, and what was said instead.

    Args:
        found: the examples, in order.
        most: so many are shown.
        rows: by set and id where an example stands, and the example.
        targets: the columns of right answers.
    """
    if not found:
        yield indented(
            "There are none: on each example that was tried often enough, some prompt was right, or the answers "
            "differed.",
            2,
        )
        return
    yield indented(
        f"On {plural(len(found), 'example')} no prompt was right, and most gave the same other answer: a rule is "
        "missing, the model is too weak, or the expected answer is wrong.",
        2,
    )
    for each in found[:most]:
        where, row = rows[each.split, each.id]
        yield ""
        yield styled(f"  {each.id}   {count(each.times)} of {plural(each.texts, 'prompt')}   {where}", "bold")
        for name, value in row.items():
            if name != "id" and name not in targets:
                yield line_of(name, value)
        if (expected := expected_of(row, targets)) is not None:
            yield line_of("expected", expected)
        yield line_of("said", each.said)
    if len(found) > most:
        yield ""
        yield indented(f"and {count(len(found) - most)} more; --doubtful {len(found)} shows all.", 2, "dim")
