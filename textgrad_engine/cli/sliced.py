"""Scores by the values of a column: what `show --by` prints, and what `eval --by` needs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from textgrad_engine.cli import build, runs
from textgrad_engine.cli.config_data import load_examples, read_data
from textgrad_engine.cli.folds import check_as_before, part_of, parts_for
from textgrad_engine.cli.output import colors, width
from textgrad_engine.cli.run_data import SPLITS, check_splits, check_there
from textgrad_engine.cli.way_on import how_it_ended
from textgrad_engine.data import Dataset
from textgrad_engine.data.dataset import listed
from textgrad_engine.errors import RunError
from textgrad_engine.report.printing import indented, printed, styled
from textgrad_engine.report.slices import Sliced, slices_as_json, slices_of, slices_table
from textgrad_engine.slots import composed
from textgrad_engine.store import Folds, Run, is_folds, read_folds, read_run
from textgrad_engine.train.evaluation import Evaluation

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
    """A value in words: a text as it is, all else as JSON has it."""
    if value is None:
        return "(none)"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def of_path(path: Path, column: str, *, val: bool = False) -> Sliced:
    """What the run, or the cross-validation, in a folder measured on the slices of its examples (`of_run`, `of_folds`).

    Raises:
        TextgradError: there is none, or what these raise; or `val` is asked of a cross-validation.
    """
    column = composed(column)
    if not is_folds(path):
        return of_run(read_run(path), column, val=val)
    if val:
        one = path / "fold-1"
        raise RunError(f"{path}: --val is for one run, as each fold validates on others; name one, such as {one}")
    return of_folds(read_folds(path), column)


def of_run(run: Run, column: str, *, val: bool = False) -> Sliced:
    """What a run measured on the slices of its test examples, or where it has none of its validation examples.

    Args:
        run: it has a result.
        column: of its data, as it is now.
        val: take the validation examples in any case.

    Raises:
        TextgradError: it has no result or no config, or the data was changed or cannot be read.
    """
    if run.result is None:
        raise RunError(f"{run.path} has no result, as the run {how_it_ended(run)}; --by is for runs that have one")
    if run.config is None:
        raise RunError(
            f"{run.path}: no config.json names its data, as the run was started from Python; there, "
            f"result.best_test.by([row[{column!r}] for row in test]) gives an evaluation for each value"
        )
    found = run.result
    split: Literal["test", "val"] = "val" if val or found.best_test is None else "test"
    before, after = (found.seed_val, found.best_val) if split == "val" else (found.seed_test, found.best_test)
    config = runs.config_of(run, run.best)
    if (part := part_of(config, run)) is not None:
        dataset = Dataset((part.val if split == "val" else part.test) or ())
    else:
        key = split if getattr(config.data, split) else "train"
        check_there(run, config, key)
        dataset = load_examples(config, config.file(getattr(config.data, key)))
        check_splits(run, config, {key: dataset})
    assert after is not None
    return _sliced(run.path, column, split, None if found.best == found.seed else before, after, dataset)


def of_folds(folds: Folds, column: str) -> Sliced:
    """What the runs of a cross-validation measured on the slices of all examples that they were tested on.

    Args:
        folds: some of them were.
        column: of their data, as it is now.

    Raises:
        TextgradError: none was tested or keeps a config, or the data was changed or cannot be read.
    """
    found = folds.found
    run = next((each for each in folds.runs.values() if each.config is not None), None)
    if run is None or found.seed is None or found.best is None:
        raise RunError(f"{folds.path}: no fold was tested, or none has a config.json, so there is nothing to show")
    config = runs.config_of(run, {})
    check_there(run, config, *SPLITS)
    every, parts = parts_for(config, build.make_program(config), read_data(config), folds.folds)
    check_as_before(folds, every, parts)
    return _sliced(folds.path, column, "folds", found.seed, found.best, every)


def _sliced(
    path: Path,
    column: str,
    split: Literal["test", "val", "folds"],
    before: Evaluation | None,
    after: Evaluation,
    dataset: Dataset,
) -> Sliced:
    values = dict(zip(dataset.ids, values_of(dataset, column)))
    if not values.keys() >= set(after.ids):
        raise RunError(f"{path}: its examples have other ids now than when they were scored; put the data back")
    return Sliced(column, split, before, after, slices_of([values[name] for name in after.ids], after, before))


def as_document(path: Path, found: Sliced) -> dict[str, Any]:
    """What ``--json`` prints."""
    return {"run": str(path), "by": found.column, "split": found.split, "slices": slices_as_json(found.slices)}


def in_words(path: Path, found: Sliced) -> str:
    """What is printed for people."""
    head: list[RenderableType] = [styled(f"{path}: {found.title}", "bold"), ""]
    remarks = [indented(each, 2) for each in found.remarks()]
    return printed([*head, *slices_table(found.column, found.slices), *remarks], width(), colors())
