"""What a run measured of its prompts, beside the examples that it measured them on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from textgrad_engine.cli import runs
from textgrad_engine.cli.config import Config
from textgrad_engine.cli.config_data import load_examples
from textgrad_engine.cli.folds import dealt, dealt_as_before, part_of
from textgrad_engine.cli.resume_words import how_it_ended
from textgrad_engine.cli.run_data import check_splits, check_there
from textgrad_engine.data import Dataset
from textgrad_engine.errors import RunError
from textgrad_engine.report.slices import Split
from textgrad_engine.store import Folds, Run, is_folds, read_folds, read_run
from textgrad_engine.train.evaluation import Evaluation


@dataclass(frozen=True)
class Measured:
    """What a run, or the folds of one, measured.

    Attributes:
        config: says what the columns of the examples are for.
        split: which examples they are: ``"test"``; ``"val"`` where the run tested nothing; or ``"folds"``.
        before: the seed texts' scores; None where they were kept.
        after: the best texts'.
        dataset: examples, those that have scores among them.
    """

    config: Config
    split: Split
    before: Evaluation | None
    after: Evaluation
    dataset: Dataset

    def rows(self) -> dict[str, Mapping[str, Any]]:
        """The examples by their ids."""
        return dict(zip(self.dataset.ids, self.dataset))


def measured_at(path: Path, *, val: bool = False) -> Measured:
    """What there is of the run, or of the cross-validation, in a folder.

    Args:
        path: the folder.
        val: take the validation examples of a run in any case, else the test examples where it has tested any.

    Raises:
        TextgradError: it has no result or no config; the data was changed or cannot be read; or `val` is asked of a
            cross-validation.
    """
    if is_folds(path) and val:
        one = path / "fold-1"
        raise RunError(f"{path}: --val is for one run, as each fold validates on others; name one, such as {one}")
    found = _of_folds(read_folds(path)) if is_folds(path) else _of_run(read_run(path), val=val)
    if not set(found.dataset.ids) >= set(found.after.ids):
        raise RunError(f"{path}: its examples have other ids now than when they were scored; put the data back")
    return found


def _of_run(run: Run, *, val: bool) -> Measured:
    if run.result is None:
        raise RunError(f"{run.path} has no result, as the run {how_it_ended(run)}, so no scores can be shown")
    if run.by_command is None:
        raise RunError(
            f"{run.path}: no config.json names its data, as the run was started from Python; there, result.best_test "
            "has ids, scores and predictions, and result.best_test.by(values) gives an evaluation for each value"
        )
    found = run.result
    split: Split = "val" if val or found.best_test is None else "test"
    before, after = (found.seed_val, found.best_val) if split == "val" else (found.seed_test, found.best_test)
    config = runs.config_of(run, run.best)
    if (part := part_of(config, run)) is not None:
        dataset = dealt(part.val if split == "val" else part.test)
    else:
        key = split if getattr(config.data, split) else "train"
        check_there(run, config, key)
        dataset = load_examples(config, config.file(getattr(config.data, key)))
        check_splits(run, config, {key: dataset})
    assert after is not None
    return Measured(config, split, None if found.best == found.seed else before, after, dataset)


def _of_folds(folds: Folds) -> Measured:
    found = folds.found
    run = next((each for each in folds.runs.values() if each.by_command is not None), None)
    if run is None or found.seed is None or found.best is None:
        raise RunError(f"{folds.path}: no fold was tested, or none has a config.json, so there is nothing to show")
    config = runs.config_of(run, {})
    every, _ = dealt_as_before(folds, config, run)
    return Measured(config, "folds", found.seed, found.best, every)
