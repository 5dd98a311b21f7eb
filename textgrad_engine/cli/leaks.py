"""Columns of a table that hold the answer itself, from which a prompt would learn no more than to copy it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from textgrad_engine.data import Dataset
from textgrad_engine.ops.evaluators import written

__all__ = ["leaking", "leaks_in_words"]

NEARLY = 0.9
"""A column that is the answer in so large a part of the rows is taken for the answer."""


def leaking(table: Dataset, target: str, clusters: str | None = None) -> dict[str, float]:
    """The columns that hold the answer itself, in all rows or nearly all, each with the part of the rows where it does.

    Of each answer that there is the part of its rows counts, and their mean: where nearly all answers are "no", a
    column that is "no" as often says little.

    Example:
        >>> rows = [{"text": f"ticket {n}", "target": queue, "desk": queue.upper()} for n, queue in enumerate("abab")]
        >>> leaking(Dataset(rows), "target")
        {'desk': 1.0}
    """
    if target not in table.columns:
        return {}
    found = {}
    for name in table.columns:
        if name in (target, clusters, "id"):
            continue
        same: dict[str, list[bool]] = {}
        for row in table:
            answer, value = (written(row.get(each)).strip().casefold() for each in (target, name))
            same.setdefault(answer, []).append(answer == value)
        every = [each for own in same.values() for each in own]
        if sum(sum(own) / len(own) for own in same.values()) / len(same) >= NEARLY:
            found[name] = sum(every) / len(every)
    return found


def leaks_in_words(leaks: Mapping[str, float], shown: Sequence[str], target: str) -> list[str]:
    """What is said of columns that hold the answer."""
    said = []
    for name, share in leaks.items():
        rows = "all rows" if share == 1 else f"{share:.0%} of the rows" if share < 0.995 else "nearly all rows"
        rest = (
            "it is shown, as --input names it, and a prompt may learn no more than to copy it"
            if name in shown
            else "it is left out; --input names the columns to be shown, if it is to be"
        )
        said.append(f"The column {name!r} is the answer itself ({target!r}) in {rows}: {rest}.")
    return said
