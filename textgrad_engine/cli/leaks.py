"""Columns of a table that hold an answer itself, from which a prompt would learn no more than to copy it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from textgrad_engine.cli.init_answers import Answers
from textgrad_engine.data import Dataset
from textgrad_engine.ops.evaluators import written

NEARLY = 0.9
"""A column that is the answer in so large a part of the rows is taken for the answer."""

Leak: TypeAlias = tuple[str, float]
"""Which answer a column holds, and the part of the rows where it does."""


def leaking(table: Dataset, answers: Answers, aside: Sequence[str | None] = ()) -> dict[str, Leak]:
    """The columns that hold an answer itself, in all rows or nearly all, each with the part of the rows where it does.

    Of each value that the answer has the part of its rows counts, and their mean: where nearly all answers are "no", a
    column that is "no" as often says little. Those `aside` are for something else.

    Example:
        >>> from textgrad_engine.cli.init_targets import answers_of
        >>> rows = [{"text": f"ticket {n}", "target": queue, "desk": queue.upper()} for n, queue in enumerate("abab")]
        >>> table = Dataset(rows)
        >>> leaking(table, answers_of(table, ["target"]))
        {'desk': ('target', 1.0)}
    """
    found: dict[str, Leak] = {}
    for name in table.columns:
        if name in (*answers.columns, *aside, "id"):
            continue
        values = [written(row.get(name)).strip().casefold() for row in table]
        for answer in answers.each:
            same: dict[str, list[bool]] = {}
            for wanted, value in zip(answer.values, values):
                wanted = written(wanted).strip().casefold()
                same.setdefault(wanted, []).append(wanted == value)
            every = [each for own in same.values() for each in own]
            if sum(sum(own) / len(own) for own in same.values()) / len(same) >= NEARLY:
                found.setdefault(name, (answer.name, sum(every) / len(every)))
    return found


def leaks_in_words(leaks: Mapping[str, Leak], shown: Sequence[str]) -> Iterator[str]:
    """What is said of columns that hold an answer."""
    for name, (answer, share) in leaks.items():
        rows = "all rows" if share == 1 else f"{share:.0%} of the rows" if share < 0.995 else "nearly all rows"
        rest = (
            "it is shown, as --input names it, and a prompt may learn only to copy it"
            if name in shown
            else "it is left out; --input names the columns to be shown, if it is to be"
        )
        yield f"The column {name!r} is the answer itself ({answer!r}) in {rows}: {rest}."
