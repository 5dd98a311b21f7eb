"""Scores by the values of a column: what `show --by` prints, and what `eval --by` needs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textgrad_engine.cli.measured import measured_at
from textgrad_engine.cli.output import colors, width
from textgrad_engine.data import Dataset
from textgrad_engine.data.names import listed
from textgrad_engine.errors import RunError
from textgrad_engine.ops.alike import plain
from textgrad_engine.report.printing import indented, printed, styled
from textgrad_engine.report.slices import Sliced, slices_as_json, slices_of, slices_table
from textgrad_engine.slots import composed

if TYPE_CHECKING:
    from rich.console import RenderableType


def values_of(dataset: Dataset, column: str) -> list[str]:
    """What each example has in a column, in words.

    Args:
        dataset: the examples.
        column: its name.

    Raises:
        DataError: there is no such column.
        RunError: each example has a value of its own there.

    Example:
        >>> values_of(Dataset([{"n": 1, "of": "a"}, {"n": 1, "of": None}, {"n": 2}]), "n")
        ['1', '1', '2']
    """
    if column not in dataset.columns:
        dataset.require(column)
    values = [_said(row.get(column)) for row in dataset]
    if len(set(values)) == len(values) > 1:
        raise RunError(
            f"--by {column}: each of the {len(values)} examples has a value of its own there, so it tells of no kinds "
            f"of examples; the columns are {listed(dataset.columns)}"
        )
    return values


def _said(value: Any) -> str:
    """A value in words: a text as exact match compares it, all else as JSON has it."""
    if value is None:
        return "(none)"
    return plain(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def of_path(path: Path, column: str, *, val: bool = False) -> Sliced:
    """What the run, or the cross-validation, in a folder measured on the slices of its examples.

    Args:
        path: the folder.
        column: of its data, as it is now.
        val: take the validation examples of a run in any case, else the test examples where it has tested any.

    Raises:
        TextgradError: there is none, as `measured_at` says, or no such column.
    """
    column, found = composed(column), measured_at(path, val=val)
    values = dict(zip(found.dataset.ids, values_of(found.dataset, column)))
    slices = slices_of([values[name] for name in found.after.ids], found.after, found.before)
    return Sliced(column, found.split, found.before, found.after, slices)


def as_document(path: Path, found: Sliced) -> dict[str, Any]:
    """What ``--json`` prints."""
    return {"run": str(path), "by": found.column, "split": found.split, "slices": slices_as_json(found.slices)}


def in_words(path: Path, found: Sliced) -> str:
    """What is printed for people."""
    head: list[RenderableType] = [styled(f"{path}: {found.title}", "bold"), ""]
    remarks = [indented(each, 2) for each in found.remarks()]
    return printed([*head, *slices_table(found.column, found.slices), *remarks], width(), colors())
